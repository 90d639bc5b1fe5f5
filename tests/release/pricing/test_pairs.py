"""A sum and its count as a pair: what one unit moves of both, the noise that is
drawn, and where there is no pair.

Statistics are held to 6 standard errors, which a right one leaves with probability below 1e-6.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.audit.neighbouring import multisets, owners_of, pairs, taken
from dpframe.release.answer.draw import _noisy_ends, _pair_totals, _with_noise
from dpframe.theory.formulas.sensitivity import paired_error
from dpframe.theory.formulas.sensitivity.sum_and_count import paired_l1
from inside import question_of
from prices import Price, noise_plan, priced
from strategies import paired_distance
from tiers import in_turn

LIMITS = {
    "groups": {"max_groups": 2, "max_rows_per_group": 1},
    "weights": {"max_groups": 2, "max_rows_per_group": 2, "max_rows": 2},
    "one": {"max_rows": 1},
}
UNIVERSE = pl.DataFrame(
    {
        "id": [1, 1, 1, 2, 2, 2],
        "g": ["a", "a", "b", "a", "b", "c"],
        "x": [-5.0, 5.0, 5.0, 5.0, -9.0, None],
    }
)


def asked(rows, unit, keys, **limits):
    frame = dp.protect(
        rows, unit, neighbors=limits.pop("neighbors"), budget=dp.Budget(epsilon=1e9, delta=0.1)
    )
    if keys is None and not limits:
        return frame.group_by("g").agg(mean=dp.mean("x", bounds=(-5, 5)))
    frame = frame.group_by("g", keys=keys, **limits) if keys != () else frame.bound(**limits)
    return frame.agg(mean=dp.mean("x", bounds=(-5, 5)))


def reached(query, unit, size, relation):
    """The largest joint change over every two neighbours of up to
    `size` rows, in units of the sum.
    """
    (paid,) = [p for p in question_of(query).allotments if p.beside is not None]
    owners, tables = owners_of(UNIVERSE, unit), multisets(UNIVERSE.height, size)
    answers = []
    for counts in tables:
        found = query.exact_totals(
            taken(UNIVERSE, [i for i, n in enumerate(counts) for _ in range(n)])
        )
        units = (paid.total.unit, paid.beside.total.unit)
        pair = zip((found["mean.sum"], found["mean.count"]), units, strict=True)
        answers.append(
            [{key: value / one for key, value in totals.items()} for totals, one in pair]
        )
    declared = unit.max_rows if isinstance(unit, dp.Rows) else None
    largest = max(
        paired_distance(paid.weight, answers[i], answers[j])
        for i, j in pairs(tables, owners, relation, declared)
    )
    return largest, paired_l1(paid.total.sensitivity)


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("relation", "limits", "keys"),
    in_turn(["add-remove", "replace"], LIMITS, [("a", "b"), None, ("a", "b", "c", "d")]),
)
def test_no_two_neighbours_are_further_apart_than_claimed_and_some_are_as_far(
    relation, limits, keys
):
    query = asked(UNIVERSE, "id", keys and list(keys), neighbors=relation, **LIMITS[limits])
    largest, claim = reached(query, "id", 3, relation)
    assert largest == claim


def test_without_groups_and_without_units():
    query = asked(UNIVERSE, "id", (), neighbors="add-remove", max_rows=2)
    largest, claim = reached(query, "id", 3, "add-remove")
    assert largest == claim
    for relation in ("add-remove", "replace"):
        query = asked(UNIVERSE, dp.Rows(2), None, neighbors=relation)
        largest, claim = reached(query, dp.Rows(2), 3, relation)
        assert largest == claim


def plan_of(epsilon=1.0, noise="laplace", delta=0, **aggregates):
    frame = UNIVERSE.dp(unit="id", budget=dp.Budget(epsilon=1e9, delta=0.1))
    groups = frame.group_by("g", keys=["a", "b"], max_groups=2, max_rows_per_group=1)
    query = groups.agg(**(aggregates or {"mean": dp.mean("x", bounds=(-5, 5))}))
    return noise_plan(question_of(query), Price(Fraction(epsilon), Fraction(delta)), noise)


def test_both_have_less_noise_than_a_half_of_the_price_buys():
    plan = plan_of()
    total, count = plan.noises
    for drawn in plan.noises:
        alone = (
            math.sqrt(2)
            * float(drawn.allotment.total.sensitivity.l1)
            / 0.5
            * float(drawn.allotment.total.unit)
        )
        assert drawn.deviation == pytest.approx(alone / math.sqrt(2))
        assert drawn.label == "paired_laplace"
    assert (total.mechanism.weight, count.mechanism.weight) == (1, total.allotment.weight)
    # both for ε = 1, never less
    assert Fraction(total.scale) >= total.allotment.total.sensitivity.exact_l1
    first, second = plan.events
    assert first["class_name"] == "LaplaceDpEvent"
    assert first["fields"]["noise_multiplier"] == pytest.approx(1.0)
    assert second["class_name"] == "NoOpDpEvent"


def test_a_count_is_in_one_pair_and_a_count_that_somebody_wants_exactly_in_none():
    clean = UNIVERSE.with_columns(pl.col("x").fill_null(0), y=pl.col("x").fill_null(1))
    frame = clean.dp(unit="id", budget=dp.Budget(epsilon=9, delta=0.1)).drop_nulls(["x", "y"])
    groups = frame.group_by("g", keys=["a", "b"], max_groups=2, max_rows_per_group=1)
    both = {
        "first": dp.mean("x", bounds=(-5, 5)),
        "second": dp.var("y", bounds=(0, 1)),
        "n": dp.count(),
    }
    plan = noise_plan(question_of(groups.agg(**both)), Price(Fraction(1), Fraction(0)), "laplace")
    families = {d.allotment.names: d.label for d in plan.noises}
    assert families == {
        ("first.sum",): "paired_laplace",
        ("first.count", "second.count", "n"): "paired_laplace",
        ("second.sum",): "laplace",
        ("second.squares",): "laplace",
    }
    replaced = clean.dp(unit="id", neighbors="replace").drop_nulls("x").bound(max_rows=2)
    # without groups a count changes by half as much
    for paired, more in ((True, {}), (False, {"n": dp.count()})):
        plan = noise_plan(
            question_of(replaced.agg(mean=dp.mean("x", bounds=(-5, 5)), **more)),
            Price(Fraction(1), Fraction(0)),
        )
        assert any(d.label == "paired_laplace" for d in plan.noises) is paired
    wanted = groups.agg(mean=dp.mean("x", bounds=(-5, 5)), n=dp.count(share=9))
    plan = noise_plan(question_of(wanted), Price(Fraction(1), Fraction(0)), "laplace")
    assert "paired_laplace" not in {d.label for d in plan.noises}


def test_there_is_no_pair_where_it_is_not_better_or_not_proved():
    assert {d.label for d in plan_of(noise="gaussian", delta=Fraction(1, 10**6)).noises} == {
        "gaussian"
    }
    frame = UNIVERSE.drop_nulls().dp(unit="id", budget=dp.Budget(rho=1)).drop_nulls("x")
    mean = dp.mean("x", bounds=(-5, 5))
    listed = frame.group_by("g", keys=["a"], max_groups=1, max_rows_per_group=1).agg(mean=mean)
    for price in ({"rho": 0.1, "noise": "laplace"}, {"epsilon": 0.1}):
        assert {d.label for d in priced(question_of(listed), "rho", **price).noises} == {"laplace"}
    found = frame.group_by("g", max_groups=1, max_rows_per_group=1)
    # one row of a unit in each group: the same count
    deciding = found.agg(mean=mean, n=dp.count_units())
    assert not any(p.beside for p in question_of(deciding).allotments)


def test_the_statement_says_what_a_pair_is():
    frame = UNIVERSE.dp(unit="id", budget=dp.Budget(epsilon=2))
    groups = frame.group_by("g", keys=["a", "b"], max_groups=2, max_rows_per_group=1)
    out = groups.agg(mean=dp.mean("x", bounds=(-5, 5))).release(epsilon=1)
    assert out.noise["mechanism"].to_list() == ["paired_laplace"] * 2
    assert out.noise["scale"].to_list() == pytest.approx([10.0, 2.0])
    assert "the same two; both together cost ε" in out.report()
    assert "the same two" not in groups.count().release(epsilon=1).report()


def test_a_batch_pays_for_a_pair_once():
    budget = dp.Budget(epsilon=1)
    frame = UNIVERSE.dp(unit="id", budget=budget)
    groups = frame.group_by("g", keys=["a", "b"], max_groups=2, max_rows_per_group=1)
    batch = budget.plan(
        [groups.agg(mean=dp.mean("x", bounds=(-5, 5))), groups.count()], epsilon=1, noise="laplace"
    )
    (total, _), (count,) = (plan.noises for plan in batch._plans)
    paid = [d.allotment.total.sensitivity.exact_l1 / Fraction(d.scale) for d in (total, count)]
    assert total.label == "paired_laplace"
    assert paid == [Fraction(1, 2), Fraction(1, 2)]


def test_suppressed_groups_are_a_pair_too():
    """What 40 groups of one unit each are together:
    the noise of one group, on the sum and on the count.
    """
    rows = pl.DataFrame({"id": range(40), "g": range(40), "x": [3.0] * 40})
    frame = rows.dp(unit="id", budget=dp.Budget(epsilon=1e12, delta=0.5))
    query = frame.group_by("g", max_groups=1, max_rows_per_group=1, other=-1).agg(
        mean=dp.mean("x", bounds=(-5, 5))
    )
    plan = noise_plan(question_of(query), Price(Fraction(2), Fraction(1, 10**9)), "laplace")
    families = {d.allotment.names[0]: (d.label, d.mechanism) for d in plan.noises}
    for name in ("mean.sum", "mean.count"):
        assert families[f"{name}.other"] == families[name]
        assert families[name][0] == "paired_laplace"
    out = query.release(epsilon=6, delta=1e-15, noise="laplace")
    assert out.table["g"].to_list() == [-1]  # another group is found with probability 40e-15
    assert abs(out.table["mean"].item() - 3) < 1.5  # more than 15 deviations of the noise


# A pair and the number of rows

WITH_ROWS = {"mean": dp.mean("x", bounds=(-5, 5)), "n": dp.count()}


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("relation", "limits", "keys"),
    in_turn(["add-remove", "replace"], LIMITS, [("a", "b"), None, ("a", "b", "c", "d")]),
)
def test_rows_beside_a_pair_move_with_it_by_no_more_than_claimed(relation, limits, keys):
    """Every two neighbours of up to three rows; the claim has 3 units of
    2^-20 rows a group for rounding.
    """
    frame = dp.protect(UNIVERSE, "id", neighbors=relation, budget=dp.Budget(epsilon=1e9, delta=0.1))
    query = frame.group_by("g", keys=keys and list(keys), **LIMITS[limits]).agg(**WITH_ROWS)
    found = [p for p in question_of(query).allotments if p.rows is not None]
    if keys is None and not found:  # the number of rows is that of units, which finds the keys
        assert limits != "weights"
        return
    ((paid,),) = [found]
    owners, tables = owners_of(UNIVERSE, "id"), multisets(UNIVERSE.height, 3)
    one, h = 2**paid.beside.total.fraction, paid.weight
    cells = []
    for counts in tables:
        totals = query.exact_totals(
            taken(UNIVERSE, [i for i, n in enumerate(counts) for _ in range(n)])
        )
        units = {"mean.sum": paid.total.unit, "mean.count": Fraction(1, one), "n": Fraction(1, one)}
        s, v, n = (
            {key: value / units[name] for key, value in totals[name].items()} for name in units
        )
        cells.append(
            {
                (key, part): value
                for key in n
                for part, value in enumerate(
                    (
                        2 * h * (n[key] - v.get(key, 0)),
                        h * v.get(key, 0) + s.get(key, 0),
                        h * v.get(key, 0) - s.get(key, 0),
                    )
                )
            }
        )

    def moved(first, second):
        return sum(
            abs(first.get(key, 0) - second.get(key, 0)) for key in first.keys() | second.keys()
        )

    largest = max(moved(cells[i], cells[j]) for i, j in pairs(tables, owners, relation, None))
    claim = 2 * h * paid.joint
    assert largest <= claim
    # a claim that were half as large would fail
    assert largest >= claim * Fraction(99_999, 100_000)


def rows_of(price=1, **aggregates):
    frame = UNIVERSE.dp(unit="id", budget=dp.Budget(epsilon=1e9, delta=0.1))
    groups = frame.group_by("g", keys=["a", "b"], max_groups=2, max_rows_per_group=1)
    return noise_plan(
        question_of(groups.agg(**(aggregates or WITH_ROWS))),
        Price(Fraction(price), Fraction(0)),
        "laplace",
    )


def test_rows_sum_and_count_share_one_part_and_none_has_more_noise_than_alone():
    noises = {noise.allotment.names[0]: noise for noise in rows_of().noises}
    labels = {name: noise.label for name, noise in noises.items()}
    assert labels == {
        "mean.sum": "paired_laplace",
        "mean.count": "paired_laplace",
        "n": "joint_laplace",
    }
    # of 2/3 and of 1/3
    alone = {"mean.sum": 2 * 10 * 1.5, "mean.count": 2 * 2 * 1.5, "n": math.sqrt(2) * 2 * 3}
    wanted = {"mean.sum": 2 * 10, "mean.count": 2 * 2, "n": math.sqrt(6) * 2}
    for name, noise in noises.items():
        assert noise.deviation == pytest.approx(wanted[name], rel=1e-5)
        assert noise.deviation < alone[name]
    joint = noises["mean.sum"].allotment.joint * noises["mean.sum"].allotment.weight
    assert Fraction(noises["mean.sum"].scale) >= joint  # all three for ε = 1, never less
    assert Fraction(noises["n"].scale) * 2**20 >= noises["mean.sum"].allotment.joint
    event, *others = (noise.event for noise in noises.values())
    assert event["fields"]["noise_multiplier"] >= 1
    assert {other["class_name"] for other in others} == {"NoOpDpEvent"}


def test_what_is_left_over_goes_to_the_others_and_typed_shares_are_kept():
    def scales(**aggregates):
        return {noise.allotment.names[0]: noise for noise in rows_of(**aggregates).noises}

    median = dp.median("x", bounds=(0, 5))
    without = scales(mean=WITH_ROWS["mean"], m=median)
    with_rows = scales(**WITH_ROWS, m=median)
    # 1/2 of ε, no more 1/3
    assert with_rows["m"].scale == pytest.approx(without["m"].scale * 2 / 3, rel=1e-5)
    # as for 2 of 4 shares
    assert with_rows["mean.sum"].deviation <= math.sqrt(2) * 10 / 0.5 * math.sqrt(2)
    wanted = scales(mean=WITH_ROWS["mean"], n=dp.count(share=9))
    assert wanted["n"].label == "laplace" or wanted["n"].deviation <= math.sqrt(2) * 2 * 11 / 9
    assert wanted["n"].deviation <= math.sqrt(2) * 2 * 11 / 9 * 1.0001


@pytest.mark.parametrize(("scale", "holds"), [(1.0, True), (0.8, False)])
def test_a_row_without_a_value_is_as_hidden_as_promised(scale, holds):
    """A row of weight 1 moves the missing values alone; here by all of l1.
    An event is at most e^ε likelier.
    """
    noises = {noise.allotment.names[0]: noise for noise in rows_of().noises}
    smaller = [
        replace(n, mechanism=replace(n.mechanism, scale=n.scale * scale)) for n in noises.values()
    ]
    row = 2 ** noises["n"].allotment.total.fraction
    likelier = []
    for rows in (0, 2):
        totals = {"mean.sum": 0, "mean.count": 0, "n": rows * row}
        many = [(n, np.full(MANY * 5, totals[n.allotment.names[0]], np.int64)) for n in smaller]
        noisy = _with_noise(many)
        n, count = (noisy[noises[name].allotment.total.key] for name in ("n", "mean.count"))
        values = count / 2 ** noises["mean.count"].allotment.total.fraction
        likelier.append(np.mean(n / row - values >= 4))
    slack = 6 * math.sqrt(sum((1 - p) / p / (MANY * 5) for p in likelier))
    assert (math.log(likelier[1] / likelier[0]) <= 1 + slack) is holds
    assert math.log(likelier[1] / likelier[0]) >= 1 - slack


def test_the_noise_of_rows_has_the_law_that_is_stated():
    """The deviation and the error of a sum of three Laplace noises;
    a sum of two is the negative control.
    """
    noises = {noise.allotment.names[0]: noise for noise in rows_of().noises}
    noisy = _with_noise([(n, np.full(MANY * 5, 0, np.int64)) for n in noises.values()])
    rows, total = noises["n"], noises["n"].allotment.total
    found = noisy[total.key] * float(total.unit)
    slack = 6 * math.sqrt(3 / 4 / (MANY * 5))  # the kurtosis is 4
    assert abs(found.std() / rows.deviation - 1) < slack
    assert abs(found.std() / rows.deviation * math.sqrt(3 / 2) - 1) > slack
    for alpha in (0.5, 0.05, 0.01):
        error, beyond = rows.error(alpha), 6 * math.sqrt(alpha / (MANY * 5))
        assert np.mean(np.abs(found) > error) <= alpha + beyond
        assert np.mean(np.abs(found) > error * 0.95) >= alpha - beyond
    assert rows.mechanism.tail(-1.0) == pytest.approx(1 - rows.mechanism.tail(1.0))


def test_a_release_with_rows_beside_a_pair_says_so_and_is_right():
    rows = pl.DataFrame({"id": range(60), "g": ["a", "b", "b"] * 20, "x": [3.0, None, 1.0] * 20})
    frame = rows.dp(unit="id", budget=dp.Budget(epsilon=1e12, delta=0.5))
    query = frame.group_by("g", keys=["a", "b"], max_groups=1, max_rows_per_group=1).agg(
        **WITH_ROWS
    )
    out = query.release(epsilon=1e9, ci=0.95)
    assert out.table.select("g", "n").rows() == [("a", 20), ("b", 40)]
    assert out.table["mean"].to_list() == pytest.approx([3.0, 1.0], abs=1e-3)
    assert out.noise["mechanism"].to_list() == ["paired_laplace", "paired_laplace", "joint_laplace"]
    assert "joint_laplace: a number that follows" in out.report()


# A sum beside a mean


@pytest.mark.parametrize("bounds", [(0, 10), (2, 9), (-3, 4), (0, 0.5), (-7.5, -2)])
def test_a_sum_beside_a_mean_costs_nothing(bounds):
    """Its law and its number, against Laplace noises of the two ends;
    a sum by itself is the negative control.
    """
    rows = pl.DataFrame(
        {"id": range(40), "x": [float(bounds[1]), float(bounds[0]), None, float(bounds[1])] * 10}
    )
    frame = rows.dp(unit="id", budget=dp.Budget(epsilon=1e15))
    query = frame.bound(max_rows=1).agg(
        m=dp.mean("x", bounds=bounds), total=dp.sum("x", bounds=bounds)
    )
    noises = {
        n.allotment.names[0]: n
        for n in noise_plan(question_of(query), Price(Fraction(1), Fraction(0))).noises
    }
    assert noises["total"].label == "joint_laplace"
    # of all of ε, not of a part
    assert noises["m.sum"].deviation == pytest.approx(bounds[1] - bounds[0], rel=1e-5)
    assert noises["total"].deviation == pytest.approx(math.sqrt(2) * math.hypot(*bounds), rel=1e-5)
    exact = query.exact_totals(rows)["total"][()]
    assert float(exact) == pytest.approx(20 * bounds[1] + 10 * bounds[0], abs=1e-4)
    out = query.release(epsilon=1e9)
    assert out.table["total"].item() == pytest.approx(float(exact), abs=1e-3)
    many = [(noises[name], np.full(MANY, 0, np.int64)) for name in ("m.sum", "m.count", "total")]
    found = _with_noise(many)[noises["total"].allotment.total.key] * float(
        noises["total"].allotment.total.unit
    )
    slack = 6 * math.sqrt(5 / 4 / MANY)
    assert abs(found.std() / noises["total"].deviation - 1) < slack
    assert abs(found.std() / noises["total"].deviation / 3 - 1) > slack
    for alpha in (0.5, 0.05):
        error, beyond = noises["total"].error(alpha), 6 * math.sqrt(alpha / MANY)
        assert np.mean(np.abs(found) > error) <= alpha + beyond
        assert np.mean(np.abs(found) > error * 0.9) > alpha - beyond


@pytest.mark.parametrize(
    "values", [pl.Series([3, 8, 1, None] * 5), pl.Series([True, False, True, None] * 5)]
)
@pytest.mark.parametrize("unit", ["id", dp.Rows(2)])
def test_a_sum_of_whole_numbers_is_whole_whatever_the_middle_is(values, unit):
    bounds = None if values.dtype == pl.Boolean else (1, 8)  # the middle is half a number
    frame = pl.DataFrame({"id": range(20), "x": values}).dp(unit, budget=dp.Budget(epsilon=1e15))
    ask = {"m": dp.mean("x", bounds=bounds), "total": dp.sum("x", bounds=bounds), "n": dp.count()}
    out = (
        (frame if isinstance(unit, dp.Rows) else frame.bound(max_rows=2))
        .agg(**ask)
        .release(epsilon=1e9, ci=0.95)
    )
    assert out.table.select("total", "n").rows() == [(int(values.sum()), 20)]
    assert out.table["total"].dtype == pl.Int64
    assert out.table["total_low"].item() <= values.sum() <= out.table["total_high"].item()


def test_sums_with_other_bounds_limits_or_groups_that_may_share_noise_are_by_themselves():
    frame = UNIVERSE.dp(unit="id", budget=dp.Budget(epsilon=9, delta=0.1))
    mean, total = dp.mean("x", bounds=(-5, 5)), dp.sum("x", bounds=(-5, 5))
    listed = frame.group_by("g", keys=["a", "b"], max_groups=2, max_rows_per_group=1)
    one = frame.group_by("g", keys=["a", "b"], max_groups=1, max_rows_per_group=2)
    alone = [
        one.agg(m=mean, t=dp.sum("x", bounds=(0, 5))),
        one.agg(m=mean, t=dp.sum("x", bounds=(-5, 5), max_rows_per_group=1)),
        one.agg(m=mean, t=dp.sum("x", unit_bounds=(-5, 5))),
        listed.agg(m=mean, t=total),
    ]
    assert not any(p.total.follows for query in alone for p in question_of(query).allotments)
    both = question_of(one.agg(m=mean, t=total))
    assert any(p.total.follows for p in both.allotments)
    gaussian = noise_plan(both, Price(Fraction(1), Fraction(1, 10**6)), "gaussian")
    assert {n.label for n in gaussian.noises} == {"gaussian"}  # there it is measured by itself


# What is drawn

MANY = 20_000


def drawn_pairs(plan, total, count, size=MANY):
    first, second = plan.noises
    noisy = _pair_totals(first, _noisy_ends(first, np.full(size, total), np.full(size, count)))
    return noisy[first.allotment.total.key], noisy[second.allotment.total.key]


def test_the_noise_has_the_deviation_that_is_stated():
    plan = plan_of()
    slack = 6 * math.sqrt(3.5 / 4 / MANY)  # of a deviation, relative: the kurtosis is 4.5
    for drawn, values, true in zip(
        plan.noises, drawn_pairs(plan, 10**7, 50), (10**7, 50), strict=True
    ):
        found, stated = values.std() * float(drawn.allotment.total.unit), drawn.deviation
        assert abs(found / stated - 1) < slack
        # the negative control: the noise of each alone
        assert abs(found / stated / math.sqrt(2) - 1) > slack
        assert abs(
            (values.mean() - true) * float(drawn.allotment.total.unit)
        ) < 6 * stated / math.sqrt(MANY)


@pytest.mark.parametrize(("scale", "holds"), [(1.0, True), (0.8, False)])
def test_neighbours_are_as_alike_as_promised(scale, holds):
    """Rows at the upper end move one of the two by all of l1, here as if in one
    group: an event is e^ε likelier.
    """
    plan = plan_of(1.0)
    first, second = plan.noises
    smaller = [
        replace(d, mechanism=replace(d.mechanism, scale=d.scale * scale)) for d in (first, second)
    ]
    one, row = first.allotment.weight, 2**second.allotment.total.fraction
    likelier = []
    for rows in (0, 2 * row):
        ends = _noisy_ends(smaller[0], np.full(MANY * 5, rows * one), np.full(MANY * 5, rows))
        noisy = _pair_totals(smaller[0], ends)
        total, count = (noisy[d.allotment.total.key] for d in (first, second))
        likelier.append(np.mean(total + one * count >= 4 * row * one))
    slack = 6 * math.sqrt(sum((1 - p) / p / (MANY * 5) for p in likelier))
    assert (math.log(likelier[1] / likelier[0]) <= 1 + slack) is holds
    assert math.log(likelier[1] / likelier[0]) >= 1 - slack


def test_without_noise_the_pair_is_what_it_was_whatever_its_size():
    first, second = (
        replace(d, mechanism=replace(d.mechanism, scale=1e-3)) for d in plan_of().noises
    )
    rng = np.random.default_rng(1)
    count = np.array([0, 1, 2**30, *rng.integers(0, 1000, 50)])
    total = np.array(
        [
            int(n) * int(w)
            for n, w in zip(count, rng.integers(-(2**42), 2**42, len(count)), strict=True)
        ]
    )
    noisy = _pair_totals(first, _noisy_ends(first, total.astype(object), count))
    assert noisy[second.allotment.total.key].tolist() == count.tolist()
    assert noisy[first.allotment.total.key].tolist() == [int(x) for x in total]
    small = _pair_totals(first, _noisy_ends(first, np.array([-7, 8]), np.array([3, 4])))
    assert small[first.allotment.total.key].tolist() == [-7, 8]
    assert small[second.allotment.total.key].tolist() == [3, 4]


@pytest.mark.parametrize("alpha", [0.5, 0.05, 0.001])
@pytest.mark.parametrize("weight", [1, 3, 2**20])
def test_the_error_of_one_of_a_pair(alpha, weight):
    """Against the tail of two Laplace noises, rounded: held as often as stated, and hardly more."""
    rng = np.random.default_rng(2)
    scale, n = 6.0, 400_000
    ends = np.rint(rng.laplace(0, 2 * weight * scale, (2, n)))
    noise = np.rint((ends[0] + ends[1]) / (2 * weight))
    error = paired_error(scale, alpha, weight=weight)
    slack = 6 * math.sqrt(alpha / n)
    assert np.mean(np.abs(noise) > error) <= alpha + slack
    assert np.mean(np.abs(noise) > error - 2) >= alpha - slack
