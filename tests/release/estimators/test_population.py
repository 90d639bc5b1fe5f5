"""Intervals for the population: the second moments they need, what one unit
moves these by, and their coverage.
"""

import inspect
import itertools
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.api import Query
from dpframe.errors import InvalidArgument, InvalidBounds, UnsupportedOperation
from dpframe.plan import Covers, Formula, Product, has_population
from dpframe.plan.statistics import Missing
from dpframe.release.estimators import Estimator, estimator_of
from inside import question_of
from statistics_table import statistics

VALUES = (-1.0, 3.0, None)
LIMITS = (
    {"max_groups": 2, "max_rows": 2},
    {"max_groups": 1, "max_rows_per_group": 2},
    {"max_groups": 2, "max_rows_per_group": 2, "max_rows": 3},
    {"max_groups": 2, "max_rows_per_group": 1},
    {"max_groups": 1, "max_rows_per_group": 1},
)
AGGREGATES = {
    "m": dp.mean("x", bounds=(-2, 3)),
    "r": dp.mean("b"),
    "n": dp.count(),
    "c": dp.count("x"),
    "s": dp.sum("x", bounds=(0, 3)),
    "t": dp.sum("x", bounds=(-1, 3)),
    "d": dp.sum("x", bounds=(-3, -1)),
    "u": dp.sum("x", unit_bounds=(0, 4)),
}
SCHEMA = {"u": pl.Int64, "g": pl.String, "x": pl.Float64, "b": pl.Boolean}


def _frame(relation="add-remove", unit="u"):
    table = pl.DataFrame(schema={**SCHEMA, "y": pl.Float64})
    return dp.protect(table, unit=unit, budget=dp.Budget(epsilon=1.0), neighbors=relation)


def _population(query):
    return Query(question_of(query).covering(Covers.POPULATION), query._budget)


def _units():
    """Every unit of up to two rows, and every third one of three."""
    kinds = [(g, x) for g in "ab" for x in VALUES]
    for size in range(3):
        yield from itertools.combinations_with_replacement(kinds, size)
    yield from list(itertools.combinations_with_replacement(kinds, 3))[::3]


def _vectors(query, names):
    """For each small unit, its part of each second moment: one number per group."""
    parts = []
    for unit in _units():
        rows = {
            "u": [1] * len(unit),
            "g": [g for g, _ in unit],
            "x": [x for _, x in unit],
            "b": [None if x is None else x > 0 for _, x in unit],
        }
        totals = query.exact_totals(pl.DataFrame(rows, schema=SCHEMA))
        parts.append([[totals[name]["a"], totals[name]["b"]] for name in names])
    return parts


def _exceeds(change, bound):
    sizes = [abs(x) for x in change]
    squares = sum((x * x for x in sizes), Fraction(0))
    nonzero = sum(x != 0 for x in sizes)
    return (
        nonzero > bound.l0
        or sum(sizes) > bound.exact_l1
        or squares > bound.l2_squared
        or max(sizes) > bound.exact_linf
    )


@pytest.mark.one_in(9)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(
    "limits",
    [*LIMITS[1:3], *(pytest.param(x, marks=pytest.mark.long) for x in (LIMITS[0], *LIMITS[3:]))],
    ids=str,
)
def test_no_second_moment_moves_by_more_than_is_claimed(relation, limits):
    """Totals add up over units: a neighbour's change is the part of one unit, or the
    difference of two units' parts.
    """
    query = _population(
        _frame(relation).group_by("g", keys=list("abcdef"), **limits).agg(**AGGREGATES)
    )
    allotments = {name: p.total for p in question_of(query).read for name in p.names}
    names = [name for name, total in allotments.items() if total.moment is not None]
    claims = {name: allotments[name].sensitivity.scaled(allotments[name].unit) for name in names}
    parts = _vectors(query, names)
    reached = dict.fromkeys(names, Fraction(0))
    pairs = (
        itertools.combinations(parts, 2)
        if relation == "replace"
        else (([[0, 0]] * len(names), p) for p in parts)
    )
    for one, other in pairs:
        for name, before, after in zip(names, one, other, strict=True):
            change = [y - x for x, y in zip(before, after, strict=True)]
            assert not _exceeds(change, claims[name]), (name, change, claims[name])
            reached[name] = max(reached[name], abs(change[0]))
    assert {name for name, most in reached.items() if most >= claims[name].exact_linf / 4} >= {
        "m.square",
        "t.square",
    }


def test_a_claim_that_is_too_small_is_noticed():
    query = _population(_frame().group_by("g", keys=["a", "b"], **LIMITS[1]).agg(**AGGREGATES))
    (total,) = [p.total for p in question_of(query).read if "m.square" in p.names]
    half = total.sensitivity.scaled(total.unit / 2)
    changes = [part for (part,) in _vectors(query, ["m.square"])]
    assert any(_exceeds(change, half) for change in changes)


def _moments(table, limits, **aggregates):
    query = _population(
        dp.protect(table, unit="u", budget=dp.Budget(epsilon=1.0)).agg(**aggregates, **limits)
    )
    return query, query.exact_totals(table)


def test_second_moments_are_those_of_people():
    """Four people with 1, 2, 3 and 2 rows, limit 3:
    A - 2dB + d²C from the totals is Σ (S - d·N)² by hand.
    """
    table = pl.DataFrame(
        {"u": [1, 2, 2, 3, 3, 3, 4, 4], "x": [1.0, 2.0, 4.0, 0.0, 5.0, 10.0, 3.0, 9.5]}
    )
    query, totals = _moments(table, {"max_rows": 3}, m=dp.mean("x", bounds=(0, 10)))
    moments = {
        m.moment.product: m for output in question_of(query).outputs for _, m in output.moments
    }
    n = table.group_by("u").agg(s=(pl.col("x") - 5).sum(), n=pl.len()).sort("u")
    s, n = n["s"].to_numpy(), n["n"].to_numpy()
    got = {name: float(value[()]) for name, value in totals.items()}
    square = moments[Product.SQUARE]
    slope = float(square.moment.slope * square.unit * Fraction(2**20, 2**square.moment.rows_shift))
    assert got["m.square"] + slope * n.sum() == pytest.approx((s**2).sum(), rel=1e-5)
    assert 3 * s.sum() - got["m.cross"] == pytest.approx((s * n).sum(), rel=1e-5, abs=1e-4)
    assert 3 * n.sum() - got["m.row_spread"] == pytest.approx((n**2).sum(), rel=1e-5)


def test_sums_far_from_zero_keep_their_squares():
    table = pl.DataFrame({"u": [1, 2, 3], "x": [1e9, 2.5e9, 4e9]})
    query, totals = _moments(table, {"max_rows": 100}, s=dp.sum("x", bounds=(0, 4e9)))
    ((_, total),) = question_of(query).outputs[0].moments
    most = total.moment.most * math.sqrt(total.unit)
    squares = most * float(totals["s"][()]) - float(totals["s.spread"][()])
    assert squares == pytest.approx(1e18 + 6.25e18 + 16e18, rel=1e-2)


@pytest.mark.parametrize(
    ("unit", "aggregate", "limits", "number"),
    [
        (dp.Rows(1), dp.mean("b"), {}, 0),
        (dp.Rows(1), dp.count(), {}, 0),
        (dp.Rows(1), dp.mean("x", bounds=(0, 1)), {}, 1),
        ("u", dp.mean("b"), {"max_rows": 1}, 0),  # p(1 - p)n holds where rows are fractions too
        ("u", dp.mean("b"), {"max_rows": 2}, 3),
        ("u", dp.count_units(), {"max_rows": 5}, 0),
        ("u", dp.count(), {"max_rows": 5}, 1),
        ("u", dp.count(), {"max_rows": 1}, 0),
        ("u", dp.mean("x", bounds=(0, 1)), {"max_rows": 5}, 3),
    ],
)
def test_what_follows_from_the_release_is_not_paid_for(unit, aggregate, limits, number):
    question = question_of(_frame(unit=unit).agg(y=aggregate, **limits)).covering(Covers.POPULATION)
    assert len(question.allotments) - len(question.covering(Covers.NOISE).allotments) == number


def test_a_column_without_missing_values_has_whole_people():
    frame = _frame().drop_nulls("b")
    question = question_of(frame.agg(y=dp.mean("b"), max_rows=1)).covering(Covers.POPULATION)
    assert len(question.allotments) == 2


def test_the_price_is_the_same_and_noise_is_more():
    frame = dp.protect(
        pl.DataFrame({"u": [1, 2], "x": [1.0, 2.0]}), unit="u", budget=dp.Budget(epsilon=3.0)
    )
    query = frame.agg(y=dp.mean("x", bounds=(0, 1)), max_rows=5)
    out, plain = query.release(epsilon=1.0, covers="population"), query.release(epsilon=1.0)
    assert out.cost == plain.cost
    assert out.noise["scale"][0] == pytest.approx(1.25 * plain.noise["scale"][0])


BOTH = {"x": (0, 1), "y": (0, 4)}
LISTED = statistics("x", "y", ("g", ["a"]), (0, 1), (0, 4))
STATISTICS = {name: made.aggregate() for name, made in LISTED.items()} | {
    "missing values": Missing(Fraction(1), "x")
}
PICKS = {"first", "last"}  # of per_unit alone


def test_the_list_has_every_statistic():
    names = {name for name in dp.__all__ if inspect.isfunction(getattr(dp, name))}
    makers = {
        name
        for name in names
        if "Aggregate" in str(inspect.signature(getattr(dp, name)).return_annotation)
    }
    assert makers - PICKS == {made.verb for made in LISTED.values()}


def test_an_estimator_has_an_interval_for_the_population_exactly_where_questions_ask_for_one():
    for formula in Formula:
        (output,) = [
            output
            for aggregate in STATISTICS.values()
            for output in question_of(_frame().agg(y_=aggregate, max_rows=2)).outputs
            if output.formula is formula
        ][:1]
        has_interval = type(estimator_of(output)).population is not Estimator.population
        assert has_interval == has_population(formula), formula


@pytest.mark.parametrize("name", STATISTICS)
def test_a_statistic_has_an_interval_for_the_population_or_is_refused_before_anything_is_paid(name):
    aggregate, frame = STATISTICS[name], _frame()
    query = frame.agg(made=aggregate, max_rows=2)
    if has_population(question_of(query).outputs[0].formula) and name != "n_unique":
        out = query.release(epsilon=0.5, covers="population")
        assert set(out.accuracy()["covers"]) == {"95% interval for the population"}
        assert "made" in repr(out)
        return
    with pytest.raises(UnsupportedOperation, match=r"release\(\.\.\., covers='noise'\)"):
        query.release(epsilon=0.5, covers="population")
    assert frame.budget.spent.epsilon == 0


def test_matrices_and_regressions_have_the_intervals_that_they_have():
    frame = _frame()
    for query, other in (
        (frame.cov(["x", "y"], BOTH, max_rows=2), "population"),
        (frame.corr(["x", "y"], BOTH, max_rows=2), "population"),
        (frame.ols(y="y", x=["x"], bounds=BOTH, max_rows=2), "noise"),
    ):
        with pytest.raises(UnsupportedOperation, match="covers="):
            query.release(epsilon=0.5, covers=other)
        with pytest.raises(InvalidArgument, match="covers"):
            query.release(epsilon=0.5, covers="everything")
    assert frame.budget.spent.epsilon == 0


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (lambda f: f.count(limits=dp.Auto()), "dp.Auto"),
        (
            lambda f: f.crosstab(
                "g", "b", keys={"g": ["a"]}, margins=True, max_groups=1, max_rows=1
            ),
            "margins=",
        ),
        (
            lambda f: f.crosstab(
                "g", "b", keys={"g": ["a"]}, normalize=True, max_groups=1, max_rows=1
            ),
            "normalize",
        ),
        (lambda f: f.group_by("g", other="rest", max_groups=1, max_rows=1).count(), "other="),
    ],
)
def test_tables_without_such_intervals_are_refused(query, words):
    with pytest.raises(UnsupportedOperation, match=words):
        query(_frame()).release(epsilon=0.5, delta=1e-6, covers="population")


def test_rows_of_nobody_in_particular_are_no_sample_of_people():
    with pytest.raises(UnsupportedOperation, match="unit="):
        _frame(unit=dp.Rows(2)).count().release(epsilon=0.5, covers="population")


@pytest.mark.parametrize("bounds", [(-1e269, 1e269), (0, 1e-200)])
def test_squares_beyond_floats_are_refused_before_anything_is_paid(bounds):
    for aggregate in (
        dp.sum("x", bounds=bounds),
        dp.mean("x", bounds=bounds),
        dp.sum("x", unit_bounds=bounds),
    ):
        frame = _frame()
        with pytest.raises(InvalidBounds, match="within floats"):
            frame.agg(y=aggregate, max_rows=2).release(epsilon=0.5, covers="population")
        assert frame.budget.spent.epsilon == 0


def test_covers_is_one_of_two_words():
    with pytest.raises(InvalidArgument, match="covers"):
        _frame().count(max_rows=2).release(epsilon=0.5, covers="everything")


def _held(aggregate, truth, make, limits, repeats, epsilon, **options):
    draw, held = np.random.default_rng(5), 0
    for _ in range(repeats):
        frame = dp.protect(make(draw), unit="u", budget=dp.Budget(epsilon=9.0, delta=1e-4))
        out = frame.agg(y=aggregate, **limits).release(epsilon=epsilon, ci=0.95, **options)
        _, low, high = out.table.row(0)
        held += bool(low <= truth <= high)
    return held


def _people(draw):
    """150 people with one to four rows; rows of a person are alike."""
    rows = draw.integers(1, 5, 150)
    own = draw.normal(5, 2, 150)
    return pl.DataFrame(
        {"u": np.repeat(np.arange(150), rows), "x": np.clip(np.repeat(own, rows), 0, 10)}
    )


@pytest.mark.long
@pytest.mark.parametrize(
    "options", [{}, {"delta": 1e-5, "noise": "gaussian"}], ids=["laplace", "gaussian"]
)
def test_intervals_hold_the_number_of_the_population(options):
    """At a chance of 0.95 each, fewer than 46 of 60 hold it with probability below 1e-6.

    Of intervals for the noise alone, the negative control, 26 or fewer do on average, with a
    standard deviation of 2.
    """
    mean = dp.mean("x", bounds=(0, 10))
    held = _held(mean, 5.0, _people, {"max_rows": 4}, 60, 8.0, covers="population", **options)
    assert held >= 46
    assert _held(mean, 5.0, _people, {"max_rows": 4}, 60, 8.0, **options) < 46


@pytest.mark.long
def test_counts_and_sums_are_about_people_drawn_at_random():
    """The number of people is random too: 150 on average, with 2.5 rows each.
    The chance of failure is below 1e-6.
    """

    def drawn(draw):
        number = draw.poisson(150)
        rows = draw.integers(1, 5, number)
        return pl.DataFrame({"u": np.repeat(np.arange(number), rows), "x": np.ones(rows.sum())})

    assert _held(dp.count(), 375, drawn, {"max_rows": 4}, 60, 4.0, covers="population") >= 46
    assert (
        _held(dp.sum("x", bounds=(0, 1)), 375, drawn, {"max_rows": 4}, 60, 4.0, covers="population")
        >= 46
    )
    assert _held(dp.count_units(), 150, drawn, {}, 60, 4.0, covers="population") >= 46
    assert _held(dp.count(), 375, drawn, {"max_rows": 4}, 60, 4.0) < 46
