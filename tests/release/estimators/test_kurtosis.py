"""Kurtosis: the integer of a row, how far one unit moves its sums, what is
released, and how far off it may be.

Every group has noise of its own, so 1,000 groups are 1,000 releases; a coverage is false where an
exact bound says so, which for a right one has probability 1e-8.
"""

from __future__ import annotations

import itertools
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

GROUPS = 1000
CERTAIN = 1e12
SHAPES = {
    "two": [0.0, 100.0] * 40,
    "even": list(np.linspace(0, 100, 60)),
    "tails": [50.0] * 80 + [0.0, 100.0] * 4,
    "outlier": [10.0] * 60 + [100.0],
}


def grouped(values, groups=GROUPS):
    """Kurtoses by group, each group with the same values, one from each unit."""
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
    return limited.kurtosis("x", bounds=(0, 100))


def kurtosis(values):
    away = np.array(values, float) - np.mean(values)
    return float(np.mean(away**4) / np.mean(away**2) ** 2 - 3)


def missed_too_often(held, alpha):
    """Whether the share of misses is surely above alpha."""
    return at_least(int(np.sum(~np.asarray(held))), GROUPS, 1e-8) > alpha


@pytest.mark.parametrize("bounds", [(0, 100), (-3.5, 10), (1e10, 1e10 + 1), (3, 3)])
def test_a_rows_integer_is_its_fourth_power_on_the_grid(bounds):
    """Within half a step, and what floats round of four distances;
    beyond the bounds it is that of an end.
    """
    low, high = (float(end) for end in bounds)
    query = dp.protect(pl.DataFrame({"u": [1], "x": [1.0]}), unit="u").kurtosis(
        "x", bounds, max_rows=1
    )
    total = dict(question_of(query).outputs[0].totals)["x.fourth_powers"]
    values = [*np.linspace(low, high, 501).clip(low, high).tolist(), -1e308, float("inf"), None]
    table = nw.from_native(
        pl.DataFrame({total.column.id: values}, schema={total.column.id: pl.Float64})
    )
    numbers = row_integers(table, {"n": total})["n"].to_list()
    grid, half = total.grid, (Fraction(high) - Fraction(low)) / 2
    for value, number in zip(values[:-3], numbers, strict=False):
        off = abs(grid.centre + number * grid.step - (Fraction(value) - Fraction(low) - half) ** 4)
        assert off <= grid.step + half**4 * Fraction(20, 2**53)
    assert numbers[-3:] == [numbers[0], numbers[500], 0]


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_one_unit_moves_the_totals_by_no_more_than_claimed_and_by_that_much(relation):
    """All pairs of a unit's rows, at the ends, the middle and beyond:
    the largest change is the claim.
    """

    def totals(values):
        frame = pl.DataFrame({"u": [1, 2] + [3] * len(values), "x": [3.0, 50.0, *values]})
        query = dp.protect(frame, unit="u", neighbors=relation).kurtosis("x", (0, 100), max_rows=2)
        return query, [part[()] for part in answer(query)]

    units = [list(u) for n in range(3) for u in itertools.product([-1e9, 50.0, 1e9], repeat=n)]
    measures = [total for _, total in question_of(totals([])[0]).outputs[0].totals]
    answers = [totals(values)[1] for values in units]
    others = answers if relation == "replace" else answers[:1]
    assert len(measures) == 5
    for place, measure in enumerate(measures):
        moved = max(abs(a[place] - b[place]) for a in answers for b in others)
        assert measure.sensitivity.l1 * (1 - 1e-6) <= moved <= measure.sensitivity.l1


def test_the_claim_is_half_of_the_fourth_power_of_half_the_width():
    query = dp.protect(pl.DataFrame({"u": [1], "x": [1.0]}), unit="u").kurtosis(
        "x", (-2, 6), max_rows=3
    )
    assert {name: total.l1 for name, total in query.sensitivity.items()} == {
        "x.sum": 12, "x.squares": 24, "x.cubes": 192, "x.fourth_powers": 384, "x.count": 3,
    }  # fmt: skip
    both = dp.protect(pl.DataFrame({"u": [1], "x": [1.0]}), unit="u").agg(
        k=dp.kurtosis("x", (0, 1)), s=dp.skew("x", (0, 1)), v=dp.var("x", (0, 1)), max_rows=1
    )
    # the skewness and the variance need no total of their own
    assert len(question_of(both).allotments) == 5


@pytest.mark.parametrize("name", SHAPES)
def test_without_noise_it_is_the_kurtosis(name):
    out = grouped(SHAPES[name], groups=3).release(epsilon=CERTAIN).table
    assert out["x"].to_list() == pytest.approx([kurtosis(SHAPES[name])] * 3, abs=2e-4)
    assert kurtosis(SHAPES[name]) == pytest.approx(pl.Series(SHAPES[name]).kurtosis())


def test_what_does_not_differ_is_0_and_nothing_is_beyond_what_as_many_values_can_have():
    rows = pl.DataFrame({"u": range(9), "x": [3.3] * 9})
    frame = dp.protect(rows, unit="u", budget=dp.Budget(epsilon=1e15))
    assert frame.kurtosis("x", (0, 10), max_rows=1).release(epsilon=CERTAIN).value == 0
    out = grouped([1.0, 2.0, 40.0]).release(epsilon=1).table["x"]
    assert out.min() >= -2
    assert out.max() < 60


@pytest.mark.one_in(3)
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", SHAPES)
def test_intervals_and_errors_hold_as_often_as_stated(name, noise):
    query, true = grouped(SHAPES[name]), kurtosis(SHAPES[name])
    out = query.release(epsilon=20, delta=1e-6, noise=noise)
    errors = out.accuracy()
    assert not missed_too_often(
        (errors["lower"] <= true + 2e-4) & (true - 2e-4 <= errors["upper"]), 0.05
    )
    stated = query.accuracy(epsilon=20, delta=1e-6, noise=noise, assume_rows=len(SHAPES[name]))[
        "error"
    ].item()
    assert not missed_too_often((out.table["x"] - true).abs() <= stated + 2e-4, 0.05)


def test_an_interval_says_something_and_one_of_a_higher_price_is_caught():
    """The negative control: noise twenty times as large as stated misses too often."""
    values = SHAPES["even"] * 10
    wide, narrow = (grouped(values).release(epsilon=epsilon) for epsilon in (10, 200))
    errors = narrow.accuracy()
    assert (errors["upper"] - errors["lower"]).max() < 1
    half = (errors["upper"] - errors["lower"]) / 2
    assert missed_too_often((wide.table["x"] - kurtosis(values)).abs() <= half.mean() / 4, 0.05)


def test_what_cannot_be_is_refused_where_it_is_asked():
    frame = dp.protect(
        pl.DataFrame({"u": [1], "x": [1.0]}).with_columns(day=pl.date(2020, 1, 1)), unit="u"
    )
    for bounds in ((-1e70, 1e70), (0, 1e-70)):
        with pytest.raises(InvalidBounds, match=r"fourth powers .* 1e-66 to 1e66 apart"):
            frame.kurtosis("x", bounds, max_rows=1)
    with pytest.raises(InvalidBounds, match="which kurtosis is about"):
        frame.kurtosis("x", dp.Auto(), max_rows=1)
    with pytest.raises(WrongType, match="needs numbers"):
        frame.kurtosis("day", (1, 2), max_rows=1)
