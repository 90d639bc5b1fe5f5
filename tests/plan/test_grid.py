"""Whole numbers are measured from the middle of their bounds, so that
they have the noise of floats.
"""

from __future__ import annotations

import datetime as dt
import itertools
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.plan import Bounds
from dpframe.plan.grid import grid_for
from statistics_table import shapes

RELATIONS = ("add-remove", "replace")


@pytest.mark.parametrize("limit", [1, 3, 2**20])
def test_a_centred_grid_is_half_as_wide_as_the_bounds_and_holds_all_whole_numbers(limit):
    ends = [*range(-6, 7), -100, 99, 2**20, 2**25 + 1]
    for low, high in itertools.combinations_with_replacement(sorted(ends), 2):
        if (high - low) * limit > 2**42:
            continue
        grid = grid_for(Bounds(low, high), whole=True, centred=True, limit=limit)
        points = {grid.centre + grid.step * number for number in (grid.lower, grid.upper)}
        assert grid.magnitude * grid.step == Fraction(high - low, 2)
        assert points == {low, high}
        assert ((Fraction(low) - grid.centre) / grid.step).denominator == 1
        assert grid.magnitude * limit <= 2**42


@pytest.mark.parametrize(
    ("bounds", "inside"),
    [((0.5, 3.5), (1, 3)), ((0.5, 4.0), (1, 4)), ((-2.9, -0.1), (-2, -1)), ((1.25, 2.25), (2, 2))],
)
def test_bounds_between_whole_numbers_are_moved_inward(bounds, inside):
    assert grid_for(Bounds(*bounds), whole=True, centred=True, limit=1) == grid_for(
        Bounds(*inside), whole=True, centred=True, limit=1
    )


@pytest.mark.parametrize("bounds", [(0.2, 0.8), (-0.8, -0.2), (0.3, 0.31)])
def test_bounds_with_no_whole_number_inside_leave_one_value(bounds):
    grid = grid_for(Bounds(*bounds), whole=True, centred=True, limit=1)
    assert (grid.magnitude, grid.step <= 1, abs(grid.centre - Fraction(bounds[0])) <= 1) == (
        0,
        True,
        True,
    )


TYPES = {  # a column of whole numbers, its bounds, and the same numbers as floats
    "condition": (pl.Series([True, False, True]), None),
    "int8": (pl.Series([1, 2, 3], dtype=pl.Int8), (-1, 2)),
    "uint64": (pl.Series([1, 2, 3], dtype=pl.UInt64), (0, 5)),
    "int64": (pl.Series([1, 2, 3]), (-8, 1)),
    "even": (pl.Series([1, 2, 3]), (2, 10)),
    "fractions": (pl.Series([1, 2, 3]), (-1, 2.0)),
    "duration": (
        pl.Series([1, 2, 3], dtype=pl.Duration("us")),
        (dt.timedelta(0), dt.timedelta(microseconds=3)),
    ),
    "date": (pl.Series([1, 2, 3], dtype=pl.Date), (dt.date(1970, 1, 1), dt.date(1970, 1, 4))),
    "time": (
        pl.Series([1, 2, 3], dtype=pl.Datetime("us")),
        (dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, microsecond=3)),
    ),
}
_NUMBERS = {"duration": (0, 3), "date": (0, 3), "time": (0, 3), "condition": (0, 1)}
STATISTICS = {
    "mean": lambda x, b, **own: {"a": dp.mean(x, bounds=b, **own)},
    "std": lambda x, b, **own: {"a": dp.std(x, bounds=b, **own)},
    "var": lambda x, b, **own: {"a": dp.var(x, bounds=b, **own)},
    **{
        verb: lambda x, b, verb=verb, **own: {"a": getattr(dp, verb)(x, bounds=b, **own)}
        for verb in shapes("x", (0, 1))
    },
    "cov": lambda x, b, **own: {"a": dp.cov(x, "y", bounds={x: b, "y": (0, 1)}, **own)},
    "corr": lambda x, b, **own: {"a": dp.corr(x, "y", bounds={x: b, "y": (0, 1)}, **own)},
    "weighted": lambda x, b, **own: {
        "a": dp.mean(x, bounds=b, weights="y", weight_bounds=(0, 1), **own)
    },
    "several": lambda x, b, **own: {
        "a": dp.mean(x, bounds=b, **own),
        "s": dp.std(x, bounds=b),
        "n": dp.count(),
    },
}
UNITS = (dp.Rows(1), dp.Rows(2), "u")


def _claims(query):
    return [x for claim in query.sensitivity.values() for x in (claim.l1, claim.l2, claim.linf)]


def _asked(column, ends, statistic, unit, relation):
    """One statistic of a column: of the table, by groups, and with limits of its own."""
    table = pl.DataFrame({"u": [1, 2, 3], "x": column, "y": [0.0, 0.5, 1.0], "g": list("aab")})
    frame = dp.protect(table, unit=unit, neighbors=relation)
    ask = STATISTICS[statistic]
    if isinstance(unit, dp.Rows):
        return [
            frame.agg(**ask("x", ends)),
            frame.group_by("g", keys=["a", "b"]).agg(**ask("x", ends)),
        ]
    groups = frame.group_by("g", keys=["a", "b"], max_groups=2, max_rows_per_group=2, max_rows=3)
    asked = [ask("x", ends), ask("x", ends, max_rows=5)]
    return [frame.agg(**asked[0], max_rows=3), *(groups.agg(**each) for each in asked)]


_OF_TIMES = ("mean", "std", "several")
CASES = [
    (kind, s)
    for kind in TYPES
    for s in STATISTICS
    if kind not in ("duration", "date", "time") or s in _OF_TIMES
]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("kind", "statistic"), CASES)
def test_whole_numbers_have_the_claims_of_the_same_floats(kind, statistic, relation):
    whole, bounds = TYPES[kind]
    floats, numbers = whole.cast(pl.Int64).cast(pl.Float64), _NUMBERS.get(kind, bounds)
    bounds = (0, 1) if kind == "condition" and statistic in ("cov", "corr", "weighted") else bounds
    for unit in UNITS:
        queries = zip(
            _asked(whole, bounds, statistic, unit, relation),
            _asked(floats, numbers, statistic, unit, relation),
            strict=True,
        )
        for one, other in queries:
            assert _claims(one) == pytest.approx(_claims(other), rel=1e-5)


@pytest.mark.parametrize("bounds", [(0, 1), (0, 3), (-2, 5), (0, 4)])
def test_the_expected_error_of_a_mean_is_that_of_the_same_floats(bounds):
    queries = [
        _asked(pl.Series([1, 1, 1]).cast(t), bounds, "mean", "u", "replace")
        for t in (pl.Int64, pl.Float64)
    ]
    for one, other in zip(*queries, strict=True):
        errors = [
            query.accuracy(epsilon=0.1, assume_rows=10**5)["error"].item() for query in (one, other)
        ]
        assert errors[0] == pytest.approx(errors[1], rel=1e-3)


def test_conditions_that_are_computed_have_half_a_unit():
    table = pl.DataFrame({"u": [1, 2, 3], "x": [1.5, 2.5, None], "n": [1, 2, 3]})
    for relation, l1 in zip(RELATIONS, (Fraction(1, 2), 1), strict=True):
        frame = dp.protect(table, unit="u", neighbors=relation)
        frame = frame.with_columns(
            high=dp.col("x") > 2,
            odd=dp.col("n") == 1,
            some=dp.col("x").is_null(),
            days=dp.col("n").clip(0, 7),
        )
        query = frame.agg(
            **{name: dp.mean(name) for name in ("high", "odd", "some", "days")}, max_rows=1
        )
        claims = query.sensitivity
        assert [claims[f"{name}.sum"].l1 for name in ("high", "odd", "some")] == [l1, l1, l1]
        assert claims["days.sum"].l1 == 7 * l1


def test_the_noise_of_a_rate_is_that_of_the_same_floats():
    """600 groups of 100 rows at ε = 0.5: the ratio of two root mean square errors
    is within 1.3 but once in 1e6.
    """
    groups, size = 600, 100
    draw = np.random.default_rng(3)
    yes = draw.random(groups * size) < 0.3
    table = pl.DataFrame(
        {"u": np.arange(len(yes)), "g": np.repeat(np.arange(groups), size), "yes": yes}
    )
    table = table.with_columns(number=pl.col("yes").cast(float), wide=pl.col("yes").cast(int))
    frame = table.dp(unit="u", budget=dp.Budget(epsilon=1.5))
    true = yes.reshape(groups, size).mean(axis=1)

    def error(column, bounds=None):
        grouped = frame.group_by("g", keys=list(range(groups)), max_groups=1, max_rows_per_group=1)
        out = grouped.mean(column, bounds).release(epsilon=0.5).table[column].to_numpy()
        return float(np.sqrt(np.mean((out - true) ** 2)))

    floats = error("number", (0, 1))
    assert 1 / 1.3 < error("yes") / floats < 1.3
    # a rate that is measured from 0, as from the floor of its middle
    assert error("wide", (-1, 1)) / floats > 1.3


def test_a_mean_of_no_rows_is_the_middle():
    table = pl.DataFrame({"u": [1], "g": ["a"], "yes": [True], "n": [3]})
    frame = table.dp(unit="u", budget=dp.Budget(epsilon=1e9, delta=0.1))
    grouped = frame.group_by("g", keys=["a", "none"], max_groups=1, max_rows_per_group=1)
    out = (
        grouped.agg(yes=dp.mean("yes"), n=dp.mean("n", bounds=(0, 5)))
        .release(epsilon=1e8, fill=True)
        .table
    )
    assert out.rows() == [("a", pytest.approx(1), pytest.approx(3)), ("none", 0.5, 2.5)]


def test_the_middle_between_two_days_is_noon():
    table = pl.DataFrame({"u": [1], "d": [dt.date(2020, 1, 1)]})
    query = table.dp(unit="u").mean(
        "d", bounds=(dt.date(2020, 1, 1), dt.date(2020, 1, 2)), max_rows=1
    )
    assert "measured from 2020-01-01 12:00:00" in str(query.explain())
