"""One noise for several totals of a group: what one unit moves of them, where it
is taken, its law, what follows.

Statistics are held to 6 standard errors, which a right one leaves with probability below 1e-6.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.audit.neighbouring import multisets, owners_of, pairs, taken
from dpframe.dpframe_check import Check
from dpframe.release.answer.draw import _with_noise
from dpframe.release.pricing.joint_noise import Cube, WindowNoise, joint_noises
from dpframe.theory import from_certificate
from dpframe.theory.formulas.error import error_of_tail
from dpframe.theory.formulas.loss import calibration, joint_scale
from inside import question_of
from prices import Price, noise_plan, priced
from tiers import in_turn

UNIVERSE = pl.DataFrame(
    {
        "id": [1, 1, 1, 2, 2, 2],
        "g": ["a", "a", "b", "a", "b", "c"],
        "x": [-5.0, 5.0, 5.0, 5.0, -9.0, None],
        "y": [4.0, 0.0, 4.0, 1.0, 9.0, 4.0],
        "z": [-3.0, -3.0, 0.0, -1.0, -3.0, None],
    }
)
LIMITS = {
    "groups": {"max_groups": 2, "max_rows_per_group": 1},
    "weights": {"max_groups": 2, "max_rows_per_group": 2, "max_rows": 2},
}
ONE_SIGN = {
    "n": dp.count(),
    "y": dp.sum("y", bounds=(0, 4)),
    "z": dp.sum("z", bounds=(-3, -1)),
    "v": dp.count("x"),
}
UNITS = {
    "u": dp.count_units(),
    "t": dp.sum("y", unit_bounds=(0, 6)),
    "w": dp.sum("z", unit_bounds=(-4, 0)),
}
COV = dp.cov("x", "y", bounds={"x": (-5, 5), "y": (0, 4)})
EITHER = {"n": dp.count(), "c": COV, "l": dp.geometric_mean("y", (1, 4))}
KEYS = {"listed": ["a", "b"], "found": None, "more": ["a", "b", "c", "d"]}


def asked(aggregates, relation="add-remove", keys="listed", **limits):
    budget = dp.Budget(epsilon=1e9, delta=0.1)
    frame = dp.protect(UNIVERSE, "id", neighbors=relation, budget=budget)
    if not limits.get("max_groups"):
        return frame.bound(**limits).agg(**aggregates)
    return frame.group_by("g", keys=KEYS[keys], **limits).agg(**aggregates)


def plan_of(query, epsilon=1, noise="auto", delta=0):
    return noise_plan(question_of(query), Price(Fraction(epsilon), Fraction(delta)), noise)


# What one unit moves


def moved(members, first, second, *, one_signed):
    """The largest Σ over groups of N(x), with x the moves of a group
    in units of each total's `size`.
    """
    whole = Fraction(0)
    for key in {key for table in (*first, *second) for key in table}:
        moves = [
            (one.get(key, 0) - other.get(key, 0)) / step.size * (step.sign if one_signed else 1)
            for step, one, other in zip(members, first, second, strict=True)
        ]
        up, down = max(0, *moves), max(0, *(-x for x in moves))
        whole += up + down if one_signed else max(up, down)
    return whole


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("relation", "limits", "keys", "aggregates"),
    in_turn(
        ["add-remove", "replace"],
        [*LIMITS.values(), {"max_rows": 2}],
        ["listed", "found", "more"],
        [ONE_SIGN, UNITS, EITHER],
    ),
)
def test_no_two_neighbours_move_totals_in_step_by_more_than_claimed(
    relation, limits, keys, aggregates
):
    """All tables of up to three rows of two units; a claim that were a tenth smaller would fail."""
    query = asked(aggregates, relation, keys, **limits)
    sets = {}
    for paid in question_of(query).allotments:
        if paid.in_step is not None:
            sets.setdefault((paid.in_step.under, paid.in_step.rows), []).append(paid)
    owners, tables = owners_of(UNIVERSE, "id"), multisets(UNIVERSE.height, 3)
    answers = []
    for counts in tables:
        found = query.exact_totals(
            taken(UNIVERSE, [i for i, n in enumerate(counts) for _ in range(n)])
        )
        answers.append({name: dict(values) for name, values in found.items()})
    assert sets
    for (_, rows), members in sets.items():
        steps = [paid.in_step for paid in members]
        one_signed = all(step.sign for step in steps)
        totals = [
            [
                {key: value / paid.total.unit for key, value in table[paid.names[0]].items()}
                for paid in members
            ]
            for table in answers
        ]
        for signed in (True, False) if one_signed else (False,):
            claim = rows * (steps[0].vectors if signed else 1)
            largest = max(
                moved(steps, totals[i], totals[j], one_signed=signed)
                for i, j in pairs(tables, owners, relation, None)
            )
            assert largest <= claim
            if len(members) > 2:
                assert largest >= claim * Fraction(1, 2)


def test_the_scale_pays_for_the_farthest_total_and_hardly_more():
    for length, sizes, epsilon in (
        (1, [1, 1], 1),
        (8, [1, 2**20 * 977, 3], Fraction(1, 7)),
        (Fraction(5, 2), [2**61, 1], 9),
    ):
        scale, factors = joint_scale(length, sizes, epsilon)
        cost = [
            Fraction(length) * a * size / Fraction(scale)
            for a, size in zip(factors, sizes, strict=True)
        ]
        assert all(Fraction(epsilon) * Fraction(2**20 - 1, 2**20) <= one <= epsilon for one in cost)
        assert min(factors) >= 2**20


# Where it is taken


def test_sums_of_one_sign_share_a_window_and_moments_a_cube():
    sums = {name: dp.sum("y", bounds=(0, 4 + i)) for i, name in enumerate("abcde")}
    for number, wanted in ((2, 1.826), (5, 3.055)):
        plan = plan_of(asked(dict(list(sums.items())[:number]), max_rows=1))
        assert {type(noise.mechanism) for noise in plan.noises} == {WindowNoise}
        for i, noise in enumerate(plan.noises):
            assert noise.deviation == pytest.approx(wanted * (4 + i), rel=2e-3)
    plan = plan_of(asked({"c": COV}, max_rows=1))
    assert {noise.label for noise in plan.noises} == {"cube"}
    assert plan.of(plan.noises[-1].allotment.total).deviation == pytest.approx(
        math.sqrt(30 / 3), rel=2e-3
    )


def test_it_is_taken_where_no_number_has_more_noise_and_never_with_typed_noise_or_in_rho():
    def labels(query, **price):
        return {noise.label for noise in plan_of(query, **price).noises}

    mean = {"m": dp.mean("x", bounds=(-5, 5)), "n": dp.count()}
    assert labels(asked(mean, max_rows=1)) == {"paired_laplace", "joint_laplace"}
    assert labels(asked(ONE_SIGN, max_rows=1)) == {"window"}
    assert labels(asked(ONE_SIGN, max_rows=1), noise="laplace") & {"window", "cube"} == set()
    # two units in one group: see `in_step`
    assert labels(asked(ONE_SIGN, "replace", max_rows=1)) == {"cube"}
    far = {"a": dp.sum("y", bounds=(0, 4)), "b": dp.sum("y", bounds=(0, 5), share=9)}
    assert labels(asked(far, max_rows=1)) == {"laplace"}
    own = {"a": dp.sum("y", bounds=(0, 4), max_rows_per_group=2), "b": dp.sum("y", bounds=(0, 5))}
    assert labels(asked(own, max_groups=2, max_rows_per_group=1)) & {"window", "cube"} == set()
    rho = dp.protect(UNIVERSE, "id", budget=dp.Budget(rho=1)).bound(max_rows=1).agg(**ONE_SIGN)
    for price in ({"rho": 0.1}, {"epsilon": 0.1}):
        assert {noise.label for noise in priced(question_of(rho), "rho", **price).noises} & {
            "window",
            "cube",
        } == set()


def test_a_number_that_finds_the_keys_and_suppressed_groups_have_noise_of_their_own():
    query = asked({"u": dp.count_units(), **ONE_SIGN}, keys="found", **LIMITS["groups"])
    plan = plan_of(query, delta=Fraction(1, 10**6))
    assert not plan.of(plan.decided_by.total).mechanism.together
    frame = dp.protect(UNIVERSE, "id", budget=dp.Budget(epsilon=1e9, delta=0.1))
    rest = frame.group_by("g", other="else", **LIMITS["groups"]).agg(**ONE_SIGN)
    assert not any(paid.in_step for paid in question_of(rest).allotments)


def test_everything_else_keeps_at_least_its_part():
    """No total has more noise than at its own part of ε."""
    for aggregates in (
        ONE_SIGN,
        EITHER,
        {**ONE_SIGN, **EITHER, "q": dp.median("y", (0, 4))},
        {**UNITS, **EITHER},
    ):
        for relation in ("add-remove", "replace"):
            query = asked(aggregates, relation, **LIMITS["weights"])
            apart, together = plan_of(query, noise="laplace"), plan_of(query)
            for noise in together.noises:
                before = apart.of(noise.allotment.total)
                assert noise.mechanism.deviation <= before.mechanism.deviation * (1 + 1e-9)


def test_what_a_set_saves_makes_all_noise_smaller_alike():
    """Moments of a regression and the influences beside them;
    so slopes gain what the moments do.
    """
    frame = dp.protect(UNIVERSE, "id", budget=dp.Budget(epsilon=1))
    query = frame.ols("y ~ x", bounds={"x": (-5, 5), "y": (0, 4)}, max_rows=1)._query
    apart, together = plan_of(query, noise="laplace"), plan_of(query)
    shared, influences = list[float](), list[float]()
    for noise in together.noises:
        ratio = noise.mechanism.deviation / apart.of(noise.allotment.total).mechanism.deviation
        (shared if noise.mechanism.together else influences).append(ratio)
    *moments, square = shared
    assert len(influences) == 2
    assert max(influences) < 0.7
    assert max(moments + influences) < (1 + 1e-6) * min(moments + influences)
    assert square < min(moments)  # it had a quarter of the price of the others


# The law


MANY = 20_000


@pytest.mark.parametrize(("aggregates", "law"), [(ONE_SIGN, WindowNoise), (EITHER, Cube)])
def test_drawn_noise_has_the_law_that_is_stated(aggregates, law):
    """Deviations, errors and correlations; independent noise is the negative control."""
    query = asked(aggregates, max_groups=1, max_rows_per_group=1)
    noises = plan_of(query).noises
    assert {type(noise.mechanism) for noise in noises} == {law}
    drawn = _with_noise([(noise, np.zeros(MANY, np.int64)) for noise in noises])
    found = np.array(
        [drawn[noise.allotment.total.key] * float(noise.allotment.total.unit) for noise in noises],
        float,
    )
    for noise, values in zip(noises, found, strict=True):
        kurtosis = np.mean((values / noise.deviation) ** 4)
        assert abs(values.std() / noise.deviation - 1) < 6 * math.sqrt(kurtosis / 4 / MANY)
        for alpha in (0.5, 0.05, 0.01):
            error, beyond = noise.error(alpha), 6 * math.sqrt(alpha / MANY)
            assert np.mean(np.abs(values) > error) <= alpha + beyond
            assert (
                np.mean(np.abs(values) > error * 0.9 - 1e-9) >= alpha - beyond
                or noise.allotment.total.unit == 1
            )
    sizes = found / np.array([[noise.deviation] for noise in noises])
    slack = 6 * 3 / math.sqrt(MANY)
    if law is WindowNoise:  # of one sign: numbers that are moved down have a factor below 0
        signs = np.array([noise.allotment.in_step.sign for noise in noises])
        assert np.corrcoef(sizes * signs[:, None])[0, 1:] == pytest.approx(0.5, abs=slack)
        assert np.corrcoef(sizes)[0, list(signs).index(-1)] < -slack
    else:
        assert np.corrcoef(sizes)[0, 1:] == pytest.approx(0, abs=slack)
        # one radius for all: they are not independent
        assert np.corrcoef(np.abs(sizes))[0, 1] > slack


@pytest.mark.parametrize(("one_signed", "smaller"), in_turn([True, False], [1, 0.7]))
def test_an_event_is_at_most_e_to_the_epsilon_likelier(one_signed, smaller):
    """The unit moves every total by all of its size.
    In the event, each vector is e times as likely with it.
    """
    query = asked(ONE_SIGN if one_signed else EITHER, max_rows=1)
    members = [p for p in question_of(query).allotments if p.in_step is not None]
    noises = joint_noises(members, Fraction(1), one_signed=one_signed)
    noises = [
        replace(n, mechanism=replace(n.mechanism, steps=n.mechanism.steps * smaller))
        for n in noises
    ]
    moves = [p.in_step.size * (p.in_step.sign if one_signed else 1) for p in members]
    likelier = []
    for there in (0, 1):
        totals = [
            (n, np.full(MANY * 2, there * move, np.int64))
            for n, move in zip(noises, moves, strict=True)
        ]
        noisy = _with_noise(totals)
        sizes = [noisy[p.total.key] / move for p, move in zip(members, moves, strict=True)]
        least, most = np.min(sizes, axis=0), np.max(sizes, axis=0)
        likelier.append(np.mean(least >= 1 if one_signed else (most >= 1) & (most + least >= 2)))
    slack = 6 * math.sqrt(sum((1 - p) / p / (MANY * 2) for p in likelier))
    assert (math.log(likelier[1] / likelier[0]) <= 1 + slack) is (smaller == 1)
    assert math.log(likelier[1] / likelier[0]) >= 1 - slack


# What follows


@pytest.mark.one_in(2)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("limits", [{"max_rows": 2}, *LIMITS.values()])
@pytest.mark.parametrize("aggregates", [ONE_SIGN, UNITS, EITHER])
def test_certificates_are_proved_and_the_theory_has_the_same_price(relation, limits, aggregates):
    frame = dp.protect(UNIVERSE, "id", neighbors=relation, budget=dp.Budget(epsilon=9))
    frame = (
        frame.group_by("g", keys=["a", "b", "c"], **limits)
        if "max_groups" in limits
        else frame.bound(**limits)
    )
    out = frame.agg(**aggregates).release(epsilon=1)
    certificate = out.certificate()
    check = Check(certificate)
    assert check.verdict == "PROVED", check.text
    assert 0.99 < float(from_certificate(certificate).map(1)) <= 1
    shared = [one for one in certificate["mechanisms"] if one["law"] in ("window", "cube")]
    for mechanism in shared:
        for change in (_smaller_scale, _larger_factor, _other_sign, _fewer_factors):
            forged = change(certificate, mechanism)
            verdict = Check(forged).verdict
            assert verdict == "REFUSED" or (change is _other_sign and mechanism["law"] == "cube")
    assert ("window, cube: numbers of one group" in out.report()) is bool(shared)


@pytest.mark.parametrize("order", [("s", "m", "n"), ("n", "s", "m"), ("m", "s", "n")])
@pytest.mark.parametrize("limits", [{"max_rows": 2}, {"max_groups": 1, "max_rows": 2}])
def test_certificates_are_proved_in_any_order_of_columns(order, limits):
    """The sum of a mean's values follows from the mean's totals,
    which may be asked for after it.
    """
    columns = {"s": dp.sum("y", bounds=(0, 4)), "m": dp.mean("y", bounds=(0, 4)), "n": dp.count()}
    check = Check(
        asked({name: columns[name] for name in order}, **limits).release(epsilon=1).certificate()
    )
    assert check.verdict == "PROVED", check.text


def _changed(certificate, name, **changes):
    mechanisms = [
        {**one, **changes} if one["id"] == name else one for one in certificate["mechanisms"]
    ]
    return {**certificate, "mechanisms": mechanisms}


def _smaller_scale(certificate, mechanism):
    return _changed(certificate, mechanism["id"], scale=f"{Fraction(mechanism['scale']) / 2}/1")


def _larger_factor(certificate, mechanism):
    return _changed(
        certificate, mechanism["id"], factors=[2 * factor for factor in mechanism["factors"]]
    )


def _other_sign(certificate, mechanism):
    first, *others = mechanism["factors"]
    return _changed(certificate, mechanism["id"], factors=[-first, *others])


def _fewer_factors(certificate, mechanism):
    return _changed(certificate, mechanism["id"], factors=mechanism["factors"][1:])


STATISTICS = {
    "cov": dp.cov("x", "y", bounds={"x": (0, 10), "y": (0, 4)}),
    "var": dp.var("x", bounds=(0, 10)),
    "mean": dp.mean("y", bounds=(0, 4)),
    "sum": dp.sum("x", bounds=(0, 10)),
    "n": dp.count(),
}


def test_intervals_hold_the_number_without_noise():
    """600 groups in one release: at least 1 - alpha of the intervals, less 6 standard errors;
    and they are no wider than they need to be for single numbers."""
    draw, groups = np.random.default_rng(5), 600
    rows = pl.DataFrame(
        {"g": np.repeat(np.arange(groups), 60), "x": draw.uniform(0, 10, groups * 60)}
    )
    rows = rows.with_columns(
        y=pl.col("x") / 4 + draw.uniform(0, 1, groups * 60), id=pl.int_range(pl.len())
    )
    frame = rows.dp(unit="id", budget=dp.Budget(epsilon=1e15), max_rows=1)
    query = frame.group_by("g", keys=list(range(groups))).agg(**STATISTICS)
    out, exact = query.release(epsilon=8), query.release(epsilon=1e10).table
    assert set(out.noise["mechanism"]) == {"cube"}
    for alpha in (0.5, 0.2, 0.05):
        table = out.accuracy(alpha)
        for name in STATISTICS:
            ends, truth = table.filter(pl.col("column") == name), exact[name].to_numpy()
            inside = (ends["lower"].to_numpy() <= truth + 1e-4) & (
                truth - 1e-4 <= ends["upper"].to_numpy()
            )
            assert inside.mean() >= 1 - alpha - 6 * math.sqrt(alpha / groups)
            if name in ("sum", "mean"):
                assert inside.mean() <= 1 - alpha * 0.5 + 6 * math.sqrt(alpha / groups)


@pytest.mark.parametrize("law", [WindowNoise, Cube])
@pytest.mark.parametrize("scale", [1.0, 3.7, 2.0**40 / 3])
def test_the_error_is_searched_from_where_it_is_and_not_from_0(law, scale, monkeypatch):
    """Else a table of many columns takes as long as their number, squared:
    each step adds up a term for each.
    """
    noise, asked, tail = law(scale, cells=40), [], law.cell_tail
    monkeypatch.setattr(
        law, "cell_tail", staticmethod(lambda *said: asked.append(said) or tail(*said))
    )
    for per, alpha in ((1, 0.05), (1, 1e-6), (2**20, 0.05)):
        noise.error(alpha, per)  # finds the quantile of the law, once for all scales
        asked.clear()
        error = noise.error(alpha, per)
        assert len(asked) <= 16
        assert error == pytest.approx(error_of_tail(noise._whole_tail, alpha, per=per), rel=1e-9)


def test_each_of_many_columns_works_out_the_noise_of_its_own_totals(monkeypatch):
    """Else a price for many means takes as long as their number, squared:
    each pair asked for the noise of all.
    """
    names, made, scale = [f"c{i}" for i in range(24)], [], calibration.laplace_scale
    monkeypatch.setattr(
        calibration, "laplace_scale", lambda *said: made.append(said) or scale(*said)
    )
    frame = dp.protect(
        pl.DataFrame({"id": [1, 2], **{name: [0.0, 1.0] for name in names}}), unit="id"
    )

    def number(columns):
        made.clear()
        plan_of(
            frame.agg(
                **{name: dp.mean(name, bounds=(0, 1)) for name in names[:columns]}, max_rows=2
            )
        )
        return len(made)

    assert 0 < number(24) <= 4.5 * number(6)
