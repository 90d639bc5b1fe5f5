"""Geometric means: the integer of a row, how far one unit moves the sum, what is
released, and how far off it may be.

Every group has noise of its own, so 2,000 groups are 2,000 releases; a coverage is false where an
exact bound says so, which for a right one has probability 1e-8.
"""

from __future__ import annotations

import itertools
import math

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
    "even": list(np.linspace(1, 100, 60)),
    "low": [1.0] * 50,
    "high": [100.0] * 60,
}
BOUNDS = [
    (1, 100),
    (0.001, 1e12),
    (1e-3, 2e-3),
    (1, 2.0**64),
    (1e260, 1e270),
    (1e-270, 1e-260),
    (3, 3),
    (1, math.nextafter(1, 2)),
]


def grouped(values, groups=GROUPS):
    """Geometric means by group, each group with the same values, one from each unit."""
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
    return limited.geometric_mean("x", bounds=(1, 100))


def geometric_mean(values):
    return math.exp(np.log(np.clip(values, 1, 100)).mean())


def missed_too_often(held, alpha):
    """Whether the share of misses is surely above alpha."""
    return at_least(int(np.sum(~np.asarray(held))), GROUPS, 1e-8) > alpha


# The integer of a row


def integers(values, bounds):
    query = dp.protect(pl.DataFrame({"u": [1], "x": [1.0]}), unit="u").geometric_mean(
        "x", bounds, max_rows=1
    )
    (_, total), _ = question_of(query).outputs[0].totals
    table = pl.DataFrame({total.column.id: values}, schema={total.column.id: pl.Float64})
    return total.grid, row_integers(nw.from_native(table), {"n": total})["n"].to_list()


@pytest.mark.parametrize("bounds", BOUNDS)
def test_a_rows_integer_is_its_logarithm_on_the_grid(bounds):
    """Within half a step, at an end one and a half, and what floats
    round of logarithms up to 700.
    """
    low, high = (float(end) for end in bounds)
    inside = np.exp(np.linspace(math.log(low), math.log(high), 3000)).clip(low, high).tolist()
    grid, numbers = integers(inside, bounds)
    for value, number in zip(inside, numbers, strict=True):
        assert grid.lower <= number <= grid.upper
        assert (
            abs(float(grid.centre + number * grid.step) - math.log(value))
            <= 1.5 * float(grid.step) + 1e-12
        )


def test_what_has_no_logarithm_is_the_lower_bound_and_what_is_missing_adds_nothing():
    grid, numbers = integers(
        [0.0, -0.0, -5.0, -math.inf, 0.5, 1.0, math.inf, 1e308, None], (1, 100)
    )
    assert numbers == [grid.lower] * 6 + [grid.upper] * 2 + [0]


@pytest.mark.parametrize("values", [[False, True], [0, 1], [0.0, 1.0]])
def test_a_logarithm_is_a_float_whatever_the_type_of_the_column(values):
    table = pl.DataFrame({"id": range(1000), "x": values * 500})
    frame = dp.protect(table, unit="id", budget=dp.Budget(epsilon=1e9))
    out = frame.geometric_mean("x", bounds=(0.25, 1), max_rows=1).release(epsilon=1e6)
    assert out.value == pytest.approx(0.5, rel=1e-3)


# How far one unit moves it


@pytest.mark.one_in(2)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2])
def test_one_unit_moves_the_totals_by_no_more_than_claimed_and_by_that_much(relation, rows):
    """All pairs of a unit's rows, each at one of the ends:
    the largest change is the claim, but for fraction bits.

    So half of the claim would be broken.
    """

    def totals(values):
        frame = pl.DataFrame({"u": [1, 2] + [3] * len(values), "x": [3.0, 50.0, *values]})
        query = dp.protect(frame, unit="u", neighbors=relation).geometric_mean(
            "x", (1, 100), max_rows=rows
        )
        return query, [part[()] for part in answer(query)]

    units = [list(u) for n in range(rows + 2) for u in itertools.product([-1.0, 1e9], repeat=n)]
    query = totals([])[0]
    measures = [total for _, total in question_of(query).outputs[0].totals]
    found = [totals(values)[1] for values in units]
    others = found if relation == "replace" else found[:1]
    for place, measure in enumerate(measures):
        moved = max(abs(a[place] - b[place]) for a in found for b in others)
        assert moved <= measure.sensitivity.l1
        assert moved >= measure.sensitivity.l1 * (1 - 1e-6)


# What is released


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", SHAPES)
def test_without_noise_it_is_the_geometric_mean(name):
    out = grouped(SHAPES[name], groups=3).release(epsilon=CERTAIN).table
    assert out["x"].to_list() == pytest.approx([geometric_mean(SHAPES[name])] * 3, rel=1e-5)


def test_alone_grouped_beside_others_and_at_once():
    x = [1.0, 10.0, 1000.0, None, -4.0]
    frame = dp.protect(
        pl.DataFrame({"u": range(5), "x": x}), unit="u", budget=dp.Budget(epsilon=1e15)
    )
    expected = (1 * 10 * 100 * 1) ** (1 / 4)
    assert frame.geometric_mean("x", (1, 100), max_rows=1).release(
        epsilon=CERTAIN
    ).value == pytest.approx(expected)
    both = frame.agg(
        max_rows=1, m=dp.mean("x", (1, 100)), g=dp.geometric_mean("x", (1, 100))
    ).release(epsilon=CERTAIN)
    assert both.table.row(0) == pytest.approx((112 / 4, expected), rel=1e-5)
    clipped = frame.clip("x", 1, 100).geometric_mean("x", max_rows=1)
    assert clipped.release(epsilon=CERTAIN).value == pytest.approx(expected)


def test_nothing_counted_is_the_middle_of_the_logarithms():
    rows = pl.DataFrame({"u": [1], "x": [None]}, {"u": pl.Int64, "x": pl.Float64})
    frame = dp.protect(rows, unit="u", budget=dp.Budget(epsilon=1e15))
    out = frame.geometric_mean("x", (1, 100), max_rows=1).release(epsilon=CERTAIN)
    assert out.value == pytest.approx(10, rel=1e-6)
    assert (out.accuracy()["lower"].item(), out.accuracy()["upper"].item()) == pytest.approx(
        (1, 100), rel=1e-6
    )


# How far off


@pytest.mark.filterwarnings("ignore:With .* rows in a group")  # some tables are small
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", SHAPES)
def test_intervals_and_errors_hold_as_often_as_stated(name, noise):
    query, true = grouped(SHAPES[name]), geometric_mean(SHAPES[name])
    out = query.release(epsilon=6, delta=1e-6, noise=noise)
    errors = out.accuracy()
    held = (errors["lower"] <= true * (1 + 1e-6)) & (true * (1 - 1e-6) <= errors["upper"])
    assert not missed_too_often(held, 0.05)
    stated = query.accuracy(epsilon=6, delta=1e-6, noise=noise, assume_rows=len(SHAPES[name]))[
        "error"
    ].item()
    assert not missed_too_often((out.table["x"] - true).abs() <= stated * (1 + 1e-6), 0.05)


def test_intervals_of_twice_the_price_are_caught():
    """The negative control: noise twice as large as stated misses too often."""
    true = geometric_mean(SHAPES["even"])
    wide, narrow = (grouped(SHAPES["even"]).release(epsilon=epsilon) for epsilon in (3, 6))
    half = (narrow.accuracy()["upper"] - narrow.accuracy()["lower"]) / 2
    assert missed_too_often((wide.table["x"] - true).abs() <= half.mean(), 0.05)


# What is refused


@pytest.mark.parametrize(
    ("bounds", "line"),
    [
        ((0, 9), "low above 0"),
        ((-1, 9), "low above 0"),
        ((1, 2.0**65), "narrower"),
        ((1e-305, 1e-304), "narrower"),
    ],
)
def test_bounds_without_logarithms_are_refused_where_it_is_asked(bounds, line):
    frame = dp.protect(pl.DataFrame({"u": [1], "x": [1.0]}), unit="u")
    with pytest.raises(InvalidBounds, match=line):
        frame.geometric_mean("x", bounds, max_rows=1)


def test_bounds_that_are_to_be_chosen_and_times_are_refused():
    frame = dp.protect(
        pl.DataFrame({"u": [1], "x": [1.0]}).with_columns(day=pl.date(2020, 1, 1)), unit="u"
    )
    with pytest.raises(InvalidBounds, match="low above 0"):
        frame.geometric_mean("x", dp.Auto(), max_rows=1)
    with pytest.raises(WrongType, match="needs numbers"):
        frame.geometric_mean("day", (1, 2), max_rows=1)
