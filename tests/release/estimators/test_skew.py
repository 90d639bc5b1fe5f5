"""Skewness: the integer of a row, how far one unit moves the sums, what is
released, and how far off it may be.

Every group has noise of its own, so 2,000 groups are 2,000 releases; a coverage is false where an
exact bound says so, which for a right one has probability 1e-8.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.audit.trials import at_least
from dpframe.engine.stages import row_integers
from dpframe.errors import InvalidBounds, WrongType
from inside import question_of
from strategies import answer

GROUPS = 2000
CERTAIN = 1e12
SHAPES = {
    "few": [1.0, 2.0, 40.0],
    "even": list(np.linspace(0, 100, 60)),
    "right": [1.0] * 40 + [5.0] * 30 + [20.0] * 20 + [90.0] * 10,
    "left": [100.0] * 50 + [70.0] * 20 + [0.0] * 10,
    "same": [30.0] * 60,
}
BOUNDS = [
    (0, 100),
    (-3, 10),
    (-1e6, 1e12),
    (1e-3, 2e-3),
    (-1e88, 1e88),
    (0, 1e-88),
    (3, 3),
    (1, math.nextafter(1, 2)),
]


def grouped(values, groups=GROUPS):
    """Skewness by group, each group with the same values, one from each unit."""
    rows = pl.DataFrame(
        {
            "g": np.repeat(np.arange(groups), len(values)),
            "x": np.tile(np.array(values, float), groups),
        }
    )
    frame = dp.protect(
        rows.with_row_index("id"), unit="id", budget=dp.Budget(epsilon=1e12, delta=0.1)
    )
    limited = frame.group_by("g", keys=list(range(groups)), max_groups=1, max_rows_per_group=1)
    return limited.skew("x", bounds=(0, 100))


def skewness(values):
    off = np.array(values) - np.mean(values)
    return float((off**3).mean() / (off**2).mean() ** 1.5) if off.any() else 0.0


def missed_too_often(held, alpha):
    """Whether the share of misses is surely above alpha."""
    return at_least(int(np.sum(~np.asarray(held))), GROUPS, 1e-8) > alpha


# The integer of a row


def integers(values, bounds):
    query = dp.protect(pl.DataFrame({"u": [1], "x": [1.0]}), unit="u").skew("x", bounds, max_rows=1)
    _, _, (_, total), _ = question_of(query).outputs[0].totals
    table = pl.DataFrame({total.column.id: values}, schema={total.column.id: pl.Float64})
    return total, row_integers(nw.from_native(table), {"n": total})["n"].to_list()


@pytest.mark.parametrize("bounds", BOUNDS[:6])
def test_a_rows_integer_is_its_cubed_distance_on_the_grid(bounds):
    """Within half a step, and what floats round in three products:
    nine roundings of the largest cube at most.
    """
    low, high = (float(end) for end in bounds)
    values = np.linspace(low, high, 2001).clip(low, high).tolist()
    total, numbers = integers(values, bounds)
    grid, middle = total.grid, (Fraction(low) + Fraction(high)) / 2
    largest = ((Fraction(high) - Fraction(low)) / 2) ** 3
    assert grid.centre == 0
    for value, number in zip(values, numbers, strict=True):
        assert grid.lower <= number <= grid.upper
        off = abs(number * grid.step - (Fraction(value) - middle) ** 3)
        assert off <= grid.step / 2 + largest * Fraction(9, 2**53) + grid.step * Fraction(
            1, 2**20
        ) or number in (
            grid.lower,
            grid.upper,
        )
    assert {grid.lower, grid.upper} <= set(numbers)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_what_is_outside_is_at_an_end_and_what_is_missing_adds_nothing(bounds):
    total, numbers = integers([-math.inf, -1e308, math.inf, 1e308, None], bounds)
    assert numbers == [total.grid.lower] * 2 + [total.grid.upper] * 2 + [0]


# How far one unit moves it


@pytest.mark.one_in(2)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2])
def test_one_unit_moves_the_totals_by_no_more_than_claimed_and_by_that_much(relation, rows):
    """All pairs of a unit's rows, at the ends, the middle and beyond:
    the largest change is the claim.

    The fraction bits and a step of the grid are all that is between them, so half of the claim
    would be broken.
    """

    def totals(values):
        frame = pl.DataFrame({"u": [1, 2] + [3] * len(values), "x": [3.0, 50.0, *values]})
        query = dp.protect(frame, unit="u", neighbors=relation).skew("x", (0, 100), max_rows=rows)
        return query, [part[()] for part in answer(query)]

    units = [
        list(u) for n in range(rows + 2) for u in itertools.product([-1e9, 50.0, 1e9], repeat=n)
    ]
    measures = [total for _, total in question_of(totals([])[0]).outputs[0].totals]
    answers = [totals(values)[1] for values in units]
    others = answers if relation == "replace" else answers[:1]
    assert len(measures) == 4
    for place, measure in enumerate(measures):
        moved = max(abs(a[place] - b[place]) for a in answers for b in others)
        assert moved <= measure.sensitivity.l1
        assert moved >= measure.sensitivity.l1 * (1 - 1e-6)


def test_the_claim_is_the_cube_of_half_the_width():
    query = dp.protect(pl.DataFrame({"u": [1], "x": [1.0]}), unit="u").skew(
        "x", (-2, 6), max_rows=3
    )
    assert {name: total.l1 for name, total in query.sensitivity.items()} == {
        "x.sum": 12, "x.squares": 24, "x.cubes": 192, "x.count": 3,
    }  # fmt: skip


# What is released


@pytest.mark.parametrize("name", SHAPES)
def test_without_noise_it_is_the_skewness(name):
    out = grouped(SHAPES[name], groups=3).release(epsilon=CERTAIN).table
    assert out["x"].to_list() == pytest.approx([skewness(SHAPES[name])] * 3, abs=1e-5)
    assert skewness(SHAPES[name]) == pytest.approx(
        pl.Series(SHAPES[name]).skew() if name != "same" else 0.0
    )


def test_alone_beside_others_of_whole_numbers_and_with_clipped_values():
    x = [1, 0, 0, 0, None, -4, 7]
    frame = dp.protect(
        pl.DataFrame({"u": range(7), "x": x}), unit="u", budget=dp.Budget(epsilon=1e15)
    )
    expected = skewness([1, 0, 0, 0, 0, 1])
    assert frame.skew("x", (0, 1), max_rows=1).release(epsilon=CERTAIN).value == pytest.approx(
        expected, abs=1e-6
    )
    query = frame.agg(
        max_rows=1, k=dp.skew("x", (0, 1)), v=dp.var("x", (0, 1), ddof=0), m=dp.mean("x", (0, 1))
    )
    # the mean and the variance need no total of their own
    assert len(question_of(query).allotments) == 4
    assert query.release(epsilon=CERTAIN).table.row(0) == pytest.approx(
        (expected, 2 / 9, 1 / 3), abs=1e-5
    )
    assert frame.clip("x", 0, 1).skew("x", max_rows=1).release(
        epsilon=CERTAIN
    ).value == pytest.approx(expected)


def test_nothing_counted_and_nothing_that_differs_is_0():
    rows = pl.DataFrame({"u": [1, 2], "x": [None, None]}, {"u": pl.Int64, "x": pl.Float64})
    for table in (
        rows,
        rows.with_columns(x=pl.lit(3.3)),
        rows.with_columns(x=3.3 + pl.col("u") * 1e-9),
    ):
        frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1e15))
        assert frame.skew("x", (0, 10), max_rows=1).release(epsilon=CERTAIN).value == 0


def test_it_is_never_more_than_the_largest_of_as_many_values():
    out = grouped(SHAPES["same"]).release(epsilon=6).table["x"]
    assert out.abs().max() > 1
    # a count of about 1 has no skewness but by its own noise
    few = grouped([3.0]).release(epsilon=1).table["x"]
    assert few.abs().max() < 10


# How far off


@pytest.mark.one_in(3)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", [*list(SHAPES)[:-1], pytest.param("same", marks=pytest.mark.long)])
def test_intervals_and_errors_hold_as_often_as_stated(name, noise):
    query, true = grouped(SHAPES[name]), skewness(SHAPES[name])
    out = query.release(epsilon=20, delta=1e-6, noise=noise)
    errors = out.accuracy()
    held = (errors["lower"] <= true + 1e-5) & (true - 1e-5 <= errors["upper"])
    assert not missed_too_often(held, 0.05)
    stated = query.accuracy(epsilon=20, delta=1e-6, noise=noise, assume_rows=len(SHAPES[name]))[
        "error"
    ].item()
    assert not missed_too_often((out.table["x"] - true).abs() <= stated + 1e-5, 0.05)


def test_an_interval_says_something_where_values_fill_their_bounds():
    values = SHAPES["right"] * 20
    errors = grouped(values, groups=50).release(epsilon=2).accuracy()
    assert (errors["upper"] - errors["lower"]).max() < 2 < skewness(values)


def test_intervals_of_a_higher_price_are_caught():
    """The negative control: noise twenty times as large as stated misses too often."""
    true = skewness(SHAPES["right"])
    wide, narrow = (grouped(SHAPES["right"]).release(epsilon=epsilon) for epsilon in (10, 200))
    half = (narrow.accuracy()["upper"] - narrow.accuracy()["lower"]) / 2
    assert missed_too_often((wide.table["x"] - true).abs() <= half.mean(), 0.05)


# What is refused


@pytest.mark.parametrize("bounds", [(-1e95, 1e95), (0, 1e-95)])
def test_bounds_whose_cubes_are_beyond_floats_are_refused_where_it_is_asked(bounds):
    frame = dp.protect(pl.DataFrame({"u": [1], "x": [1.0]}), unit="u")
    with pytest.raises(InvalidBounds, match="1e-89 to 1e89 apart"):
        frame.skew("x", bounds, max_rows=1)


def test_bounds_that_are_to_be_chosen_and_times_are_refused():
    frame = dp.protect(
        pl.DataFrame({"u": [1], "x": [1.0]}).with_columns(day=pl.date(2020, 1, 1)), unit="u"
    )
    with pytest.raises(InvalidBounds, match="Type bounds="):
        frame.skew("x", dp.Auto(), max_rows=1)
    with pytest.raises(WrongType, match="needs numbers"):
        frame.skew("day", (1, 2), max_rows=1)
