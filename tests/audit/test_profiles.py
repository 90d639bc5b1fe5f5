"""The histograms from which `dp.Auto` chooses:
what one unit moves in each, on all small tables and neighbours.
"""

from fractions import Fraction

import batches
import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.engine import histograms as profile
from dpframe.plan import Limits
from dpframe.release.auto.noisy_histograms import noisy_values
from inside import question_of
from prices import offer

SIZES = ("rows", "groups", "rows_per_group")


def profiles(rows, unit, keys, relation):
    """Every histogram of a table."""
    limits = {} if isinstance(unit, dp.Rows) else {"limits": dp.Auto()}
    frame = dp.protect(rows, unit=unit, neighbors=relation)
    ask = question_of(
        frame.group_by("g", keys=keys, **limits).agg(s=dp.sum("v", bounds=(-1, 3)), n=dp.count())
    )
    column = ask.table.columns["v"]
    found = {}
    if not isinstance(unit, dp.Rows):  # limits are chosen where they are enforced
        found = {**profile.size_profile(ask, SIZES), "keys": profile.key_profile(ask)}
    found["magnitudes"] = profile.magnitude_profile(ask, column)
    found["values"] = profile.value_profile(ask, column, [-1, 0, 2])
    return found


def hold(size, unit, keys, relation):
    declared = getattr(unit, "max_rows", None)
    many = batches.frame(size)
    found = [
        profiles(many.filter(pl.col("t") == t), unit, keys, relation)
        for t in range(len(batches.universe(size)))
    ]
    here, there = batches.neighbours(relation, declared, size).T
    moved = {}
    for name in found[0]:
        counts = np.array([one[name] for one in found])
        moved[name] = int(np.abs(counts[there] - counts[here]).sum(axis=1).max())
    most = profile.ONE * (2 if relation == "replace" else 1)
    assert all(change <= most for change in moved.values()), moved
    assert sum(change > most * 0.9 for change in moved.values()) >= len(moved) - 1, (
        "hardly any bound is reached"
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("keys", [["x", "y"], None])
def test_one_unit_gives_one_to_each_histogram(keys, relation):
    hold(2, "u", keys, relation)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_declared_rows_give_one_to_each_histogram(relation):
    hold(2, dp.Rows(1), ["x", "y"], relation)


@pytest.mark.long
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("unit", ["u", dp.Rows(1), dp.Rows(2)], ids=str)
def test_one_unit_gives_one_to_each_histogram_of_larger_tables(unit, relation):
    hold(3, unit, ["x", "y"], relation)


# Numbers of different values


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(
    "limits", [Limits(1), Limits(2), Limits(3), Limits(None, 2, 1), Limits(None, 1, 2)], ids=str
)
def test_one_unit_moves_the_number_of_values_in_all_groups_by_what_it_is_charged_for(
    relation, limits
):
    frame = dp.protect(batches.frame(4), unit=("t", "u"), neighbors=relation)
    ask = question_of(
        frame.group_by("g", keys=["x", "y"], limits=dp.Auto()).n_unique("v")
    ).with_limits(limits)
    (counts, *_), _ = batches.totals(ask, len(batches.universe(4)))
    numbers = counts.sum(axis=1)
    here, there = batches.neighbours(relation, None, 4).T
    moved = int(np.abs(numbers[there] - numbers[here]).max())
    _, scale = noisy_values(offer("epsilon", Fraction(1), Fraction(0), "auto"), ask)
    assert scale == moved
