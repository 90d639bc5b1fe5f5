"""Keys that nobody listed: which are shown, what that costs, and who pays for it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy import stats

import dpframe as dp
from dpframe import engine, errors
from dpframe.noise import keep_probability
from dpframe.release.pricing import log_noise
from dpframe.theory import threshold
from dpframe.theory.formulas.loss import (
    as_likely_as_not,
    choices_rho,
    selection_scale,
    selection_start,
    threshold_delta,
)
from inside import question_of
from prices import Price, noise_plan, priced

EPSILON, DELTA = Fraction(1), Fraction(1, 10)
PRICE = Price(EPSILON, DELTA)
GROUPS = ("a", "b", "c")


def table(units):
    """A table from the groups that each unit is in; values are all 1."""
    rows = [(i, g, 1.0) for i, groups in enumerate(units) for g in groups]
    return pl.DataFrame(rows, {"u": pl.Int64, "g": pl.String, "x": pl.Float64}, orient="row")


def mean_by_group(frame, most, neighbors="add-remove", unit="u"):
    limits = {} if isinstance(unit, dp.Rows) else {"max_groups": most, "max_rows_per_group": 2}
    protected = dp.protect(
        frame, unit=unit, neighbors=neighbors, budget=dp.Budget(epsilon=1e6, delta=0.9)
    )
    return protected.group_by("g", **limits).agg(x=dp.mean("x", (0, 1)))


def law(query):
    """The exact probability of each set of released keys, and the loss that they are charged."""
    plan = noise_plan(question_of(query), PRICE, "laplace")
    drawn = plan.of(plan.decided_by.total)
    assert drawn.label == "truncated_geometric"
    raw = engine.totals(question_of(query), 1)
    units = raw.values[[p.names for p in question_of(query).read].index(drawn.allotment.names)]
    found = dict(zip(raw.keys["g"].to_list(), units.tolist(), strict=True))
    rate = 1 / Fraction(drawn.scale)
    chance = [sum(keep_probability(found.get(g, 0), rate, plan.start)) / 2 for g in GROUPS]
    return {
        shown: math.prod(c if kept else 1 - c for c, kept in zip(chance, shown, strict=True))
        for shown in itertools.product((False, True), repeat=len(GROUPS))
    }, Fraction(EPSILON) * drawn.allotment.share / sum(
        p.share for p in question_of(query).allotments
    )


def excess(p, q, epsilon):
    return sum(max(0.0, p[o] - math.exp(epsilon) * q[o]) for o in p)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("most", [1, 2])
def test_the_keys_of_every_small_table_are_as_private_as_charged(neighbors, most):
    """All tables of up to three units in up to two of three groups:
    exact laws, every neighbour, both directions.
    """
    shapes = [s for size in range(most + 1) for s in itertools.combinations(GROUPS, size)]
    laws = {}

    def found(units):
        key = tuple(sorted(units))
        if key not in laws:
            laws[key] = law(mean_by_group(table(key), most, neighbors))
        return laws[key]

    worst = 0.0
    for size in range(3):
        for others in itertools.combinations_with_replacement(shapes, size):
            for unit in shapes:
                rivals = [None] if neighbors == "add-remove" else shapes
                for rival in rivals:
                    mine, epsilon = found((*others, unit))
                    theirs, _ = found(others if rival is None else (*others, rival))
                    worst = max(worst, excess(mine, theirs, epsilon), excess(theirs, mine, epsilon))
    assert worst <= DELTA * (1 + 1e-9)
    # Under replace two groups of two units each would have to be paired as badly as can be.
    assert worst >= DELTA * (0.999 if neighbors == "add-remove" else 0.5)


def test_a_rule_for_fewer_groups_would_not_be_private():
    """Negative control: the rule of one group where a unit has two."""
    rate, start = 1 / Fraction(selection_scale(1, EPSILON)), selection_start(DELTA, 1)
    chance = [sum(keep_probability(n, rate, start)) / 2 for n in (0, 1, 2)]
    both = [
        {(i, j): (p if i else 1 - p) * (p if j else 1 - p) for i in (0, 1) for j in (0, 1)}
        for p in chance
    ]
    assert excess(both[1], both[0], EPSILON) > 1.5 * DELTA


@pytest.mark.parametrize("groups", [1, 2, 3, 10])
def test_what_is_left_of_a_rule_without_its_delta_has_the_rho_that_is_charged(groups):
    """P = (1-δ)·P' + δ·P″ with P″ a key never shown, Q″ one always shown:
    P' and Q' within ρ at many orders.
    """
    rate, start = 1 / Fraction(selection_scale(groups, EPSILON)), selection_start(DELTA, groups)
    rho, free = float(choices_rho(groups, EPSILON)) / groups, float(start)
    seen = 0.0
    for n in range(200):
        p, q = (sum(keep_probability(m, rate, start)) / 2 for m in (n, n + 1))
        if q == 1.0:
            break
        near = np.array([p, 1 - p - free]) / (1 - free), np.array([q - free, 1 - q]) / (1 - free)
        for one, two in (near, near[::-1]):
            for order in (1.01, 1.5, 2, 5, 50):
                terms = [
                    a**order * b ** (1 - order) for a, b in zip(one, two, strict=True) if a > 0
                ]
                seen = max(seen, math.log(sum(terms)) / (order - 1) / order)
    assert 0 < seen <= rho * (1 + 1e-6)


@pytest.mark.parametrize("groups", [1, 3, 10, 40])
@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.5])
def test_delta_of_all_keys_is_what_was_given(groups, delta):
    start = selection_start(delta, groups)
    assert delta * (1 - 1e-9) <= threshold_delta(start, groups) <= np.nextafter(delta, 1)


@pytest.mark.parametrize(("groups", "units"), [(1, 14), (3, 40)])
def test_keys_show_with_fewer_units_than_a_noisy_threshold_asks_for(groups, units):
    half = as_likely_as_not(selection_scale(groups, 1), selection_start(1e-6, groups))
    assert half == units < threshold(1e-6, groups, "discrete_laplace", float(groups))


def crowd(sizes):
    """Each key with its number of units, one row each."""
    rows = [(f"{name}/{i}", name) for name, size in sizes.items() for i in range(size)]
    return pl.DataFrame(rows, {"u": pl.String, "g": pl.String}, orient="row").with_columns(
        x=pl.lit(1.0)
    )


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_released_keys_have_the_law_of_the_rule(kind):
    """40 keys of each size in one release: false alarm below 1e-7;
    a rule of half the rate is told apart.
    """
    frame = crowd({f"{n}-{i}": n for n in range(1, 31) for i in range(40)})
    query = mean_by_group(frame if kind == "polars" else frame.to_pandas(), 1)
    kept = np.zeros(31)
    for _ in range(5):
        shown = query.release(epsilon=1, delta=0.01, noise="laplace").table["g"]
        for name in shown:
            kept[int(name.split("-")[0])] += 1
    plan = noise_plan(question_of(query), Price(EPSILON, Fraction(1, 100)), "laplace")
    scale = plan.of(plan.decided_by.total).scale
    chance = np.array(
        [sum(keep_probability(n, 1 / Fraction(scale), plan.start)) / 2 for n in range(31)]
    )
    for n in range(1, 31):
        assert stats.binomtest(int(kept[n]), 200, chance[n]).pvalue > 1e-9
    slow = [sum(keep_probability(n, 1 / Fraction(2 * scale), plan.start)) / 2 for n in range(31)]
    assert min(stats.binomtest(int(kept[n]), 200, slow[n]).pvalue for n in range(1, 31)) < 1e-9


def test_a_released_number_of_units_decides_as_it_did():
    grouped = dp.protect(crowd({"a": 50}), unit="u").group_by(
        "g", max_groups=2, max_rows_per_group=3
    )
    query = grouped.agg(units=dp.count_units(), x=dp.mean("x", (0, 1)))
    plan = noise_plan(question_of(query), PRICE, "laplace")
    assert plan.decided_by.names == ("units",)
    assert plan.start is None
    assert plan.of(plan.decided_by.total).label == "discrete_laplace"


def test_rows_decide_where_each_unit_has_one_of_them():
    """Then the count is one of units: it is not measured twice."""
    frame = dp.protect(crowd({"a": 50}), unit="u")
    one = frame.group_by("g", max_groups=2, max_rows_per_group=1).agg(
        n=dp.count(), x=dp.mean("x", (0, 1))
    )
    assert list(one.sensitivity) == ["n", "x.sum", "x.count"]
    each = frame.per_unit(g=dp.last("g", by="x")).group_by("g").count()
    assert list(each.sensitivity) == ["count"]
    assert question_of(each).threshold.kind == "rows"
    assert noise_plan(question_of(each), PRICE).decided_by.names == ("count",)
    auto = frame.group_by("g", limits=dp.Auto()).agg(n=dp.count())
    assert [p.names for p in question_of(auto).allotments] == [("n",), ("units",)]


def test_gaussian_noise_finds_the_keys_where_one_unit_has_many():
    few, many = (
        noise_plan(
            question_of(mean_by_group(crowd({"a": 5}), m)), Price(EPSILON, Fraction(1, 10**6))
        )
        for m in (1, 200)
    )
    assert few.of(few.decided_by.total).label == "truncated_geometric"
    assert many.of(many.decided_by.total).label == "gaussian"
    assert log_noise(many) < log_noise(
        noise_plan(question_of(mean_by_group(crowd({"a": 5}), 200)), many_price(), "laplace")
    )


@pytest.mark.parametrize(
    ("m", "keys", "counted"),
    [(1, "truncated", "laplace"), (2, "truncated", "laplace"), (3, "g", "g")],
)
def test_the_way_that_releases_most_keys_is_taken(m, keys, counted):
    grouped = dp.protect(crowd({"a": 5}), unit="u").group_by("g", max_groups=m)
    for query, family in ((grouped.keys(), keys), (grouped.count_units(), counted)):
        plan = noise_plan(question_of(query), many_price())
        names = {"truncated": "truncated_geometric", "laplace": "discrete_laplace", "g": "gaussian"}
        assert plan.of(plan.decided_by.total).label == names[family]
        assert plan.threshold <= {1: 15, 2: 30, 3: 38}[m]
        tried = [
            noise_plan(question_of(query), many_price(), noise) for noise in ("laplace", "gaussian")
        ]
        assert log_noise(plan) <= min(map(log_noise, tried))


def test_the_row_of_suppressed_groups_shows_those_of_one_unit_so_noise_and_threshold_share_none():
    frame = dp.protect(crowd({"a": 5}), unit="u")
    plans = [
        noise_plan(
            question_of(frame.group_by("g", max_groups=3, other=other).count_units()),
            many_price(),
            "gaussian",
        )
        for other in (None, "rest")
    ]
    for plan, shared in zip(plans, (True, False), strict=True):
        scale = plan.of(plan.decided_by.total).scale
        assert (plan.threshold < threshold(Fraction(1, 2 * 10**6), 3, "gaussian", scale)) == shared


def many_price():
    return Price(EPSILON, Fraction(1, 10**6))


@pytest.mark.parametrize("k", [1, 3])
def test_declared_rows_have_the_rule_where_one_person_is_one_row(k):
    query = mean_by_group(crowd({"a": 60}), None, unit=dp.Rows(k))
    plan = noise_plan(question_of(query), PRICE, "laplace")
    assert (plan.start is not None) == (k == 1)
    assert query.release(epsilon=20, delta=1e-3).table["g"].to_list() == ["a"]


@pytest.mark.parametrize(
    ("budget", "price"),
    [
        (dp.Budget(epsilon=9, delta=0.1), {"epsilon": 8, "delta": 1e-7}),
        (dp.Budget(epsilon=9, delta=0.1), {"epsilon": 8, "delta": 1e-7, "noise": "gaussian"}),
        (dp.Budget(rho=9, delta=0.1), {"rho": 8, "delta": 1e-7}),
        (dp.Budget(rho=9, delta=0.1), {"epsilon": 8, "delta": 1e-7}),
    ],
)
def test_keys_come_out_whatever_the_budget_counts(budget, price):
    frame = dp.protect(crowd({"rare": 1, "common": 400}), unit="u", budget=budget)
    out = (
        frame.group_by("g", max_groups=1, max_rows_per_group=1)
        .agg(x=dp.sum("x", (0, 1)))
        .release(**price)
    )
    assert out.table["g"].to_list() == ["common"]
    row = out.noise.filter(pl.col("column") == "units").row(0, named=True)
    pure = "rho" not in price and "noise" not in price
    assert row["mechanism"] in (
        ("truncated_geometric",) if pure else ("truncated_geometric", "gaussian")
    )
    assert 1 <= row["threshold"] <= 10
    assert out.cost.delta == 1e-7
    assert "optimal rule" in str(out.report())
    rule = (
        "the optimal rule (truncated_geometric)"
        if row["mechanism"] == "truncated_geometric"
        else "a noisy count"
    )
    assert f"Keys were found by {rule}" in out.report().to_html()


def test_the_report_says_what_a_noisy_count_must_reach():
    frame = dp.protect(
        crowd({"rare": 1, "common": 400}), unit="u", budget=dp.Budget(epsilon=9, delta=0.1)
    )
    out = (
        frame.group_by("g", max_groups=1)
        .agg(n=dp.count_units(), again=dp.count_units())
        .release(1, 1e-6)
    )
    how = f"a group is released where 'n' with its noise is at least {out.noise['threshold'][0]}."
    assert out.report().count("Keys were found by") == 1
    assert f"Keys were found by a noisy count: {how}" in out.report()
    assert "Keys were found by" not in frame.count_units().release(1).report()


def test_the_price_of_keys_in_rho_is_what_the_parts_add_up_to():
    query = mean_by_group(crowd({"a": 5}), 3)
    plan = priced(question_of(query), "rho", epsilon=1, delta=1e-6)
    third = Fraction(1, 3)
    keys = choices_rho(3, third)
    assert plan.of(plan.decided_by.total).scale == 9.0
    assert float(keys) < plan.cost.rho < float(keys) + 2 * float(third) ** 2 / 2 + 1e-9


@pytest.mark.parametrize("accountant", ["basic", "pld"])
def test_keys_in_a_batch(accountant):
    budget = dp.Budget(epsilon=20, delta=0.1, accountant=accountant)
    frame = dp.protect(crowd({"rare": 1, "common": 400}), unit="u", budget=budget)
    ask = frame.group_by("g", max_groups=1, max_rows_per_group=1).agg(x=dp.sum("x", (0, 1)))
    batch = budget.plan([ask, frame.sum("x", (0, 1), max_rows=1)], epsilon=10, delta=1e-7)
    assert "truncated_geometric" in batch.noise["mechanism"].to_list()
    first, _ = batch.release()
    assert first.table["g"].to_list() == ["common"]


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_keys_alone(kind):
    frame = crowd({"rare": 1, "common": 400})
    budget = dp.Budget(epsilon=9, delta=0.1)
    grouped = dp.protect(
        frame if kind == "polars" else frame.to_pandas(), unit="u", budget=budget
    ).group_by("g", max_groups=2)
    query = grouped.keys()
    assert list(query.sensitivity) == ["units"]
    assert "group_by('g').keys()" in str(query.explain())
    assert len(query.accuracy(epsilon=1, delta=1e-6)) == 0
    with pytest.raises(errors.UnsupportedOperation, match="keys alone"):
        query.epsilon_for(error=3, delta=1e-6)
    out = query.release(epsilon=1, delta=1e-8)
    assert out.to_polars().to_dict(as_series=False) == {"g": ["common"]}
    assert out.noise["threshold"][0] == as_likely_as_not(
        selection_scale(2, 1), selection_start(1e-8, 2)
    )
    assert len(out.accuracy()) == 0
    assert "optimal rule" in out.report()
    assert "common" in out._repr_html_()
    assert out.with_ci().to_polars().columns == ["g"]
    for step in (out.plot, out.round, lambda: out.suppress(3)):
        with pytest.raises(errors.UnsupportedOperation):
            step()
    with pytest.raises(errors.DeltaRequired):
        query.release(epsilon=1)
    listed = dp.protect(frame, unit="u").group_by("g", keys=["rare"], max_groups=1)
    with pytest.raises(errors.UnsupportedOperation, match="listed"):
        listed.keys()
    with pytest.raises(errors.UnsupportedOperation, match="other="):
        dp.protect(frame, unit="u").group_by("g", max_groups=1, other="x").keys()
    with pytest.raises(errors.UnsupportedOperation, match=r"^keys\(\): dp\.Auto.* max_groups=3"):
        dp.protect(frame, unit="u").group_by("g", limits=dp.Auto()).keys()
