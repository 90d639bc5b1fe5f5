"""Questions for keys alone: the units of a block prefer the same groups, on every engine."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine as totals_of

UNITS, GROUPS, MOST = 320, 40, 3


def table(units=range(UNITS)):
    """Every unit is in every group, twice in some."""
    rows = [(u, g) for u in units for g in range(GROUPS) for _ in range(1 + (u + g) % 2)]
    return pl.DataFrame(rows, {"u": pl.Int64, "g": pl.Int64}, orient="row")


def query(rows):
    frame = dp.protect(rows, unit="u", budget=dp.Budget(epsilon=1e6, delta=0.9))
    return frame.group_by("g", max_groups=MOST)


def counts(asked, salt):
    """Number of units that keep each group."""
    found = totals_of.totals(asked._question, salt)
    return dict(zip(found.keys.to_series().to_list(), found.values[0].tolist(), strict=True))


@pytest.mark.spark
def test_units_meet_in_few_groups_and_each_keeps_as_many_as_it_may(engine):
    """Eight blocks keep three groups each, so 24 groups at most. With separate orders, units keep all 40."""
    rows = engine(table())
    kept, own = counts(query(rows).keys(), 7), counts(query(rows).count_units(), 7)
    assert sum(kept.values()) == sum(own.values()) == UNITS * MOST
    assert sum(n > 0 for n in kept.values()) <= 8 * MOST
    assert max(kept.values()) > 30
    assert sum(n > 0 for n in own.values()) == GROUPS


def test_one_unit_moves_as_many_groups_as_it_may_have_by_one_each():
    rows, draw = table(), np.random.default_rng(1)
    for salt in range(20):
        leaving = int(draw.integers(UNITS))
        here, there = (counts(query(r).keys(), salt) for r in (rows, rows.filter(pl.col("u") != leaving)))
        moved = [here.get(g, 0) - there.get(g, 0) for g in range(GROUPS)]
        assert sorted(moved)[-MOST:] == [1] * MOST
        assert sum(map(abs, moved)) == MOST


def test_no_group_is_first_more_often_than_another():
    """Over 400 salts each group is kept by some unit in as many of them, about 8 · 3 of 40 at most."""
    some = table(range(40))
    met = np.zeros(GROUPS)
    for salt in range(400):
        for g, n in counts(query(some).keys(), salt).items():
            met[g] += n > 0
    share = met.sum() / GROUPS
    assert np.abs(met - share).max() < 5.5 * np.sqrt(share * (1 - share / 400))


@pytest.mark.usefixtures("same_noise")
def test_more_keys_are_shown_where_units_have_many():
    """Each of 360 units keeps three of 40 groups: 27 per group, or 45 where a block meets; about 38 are needed."""
    rows = table(range(360))
    shown, own = query(rows).keys(), query(rows).count_units()
    few, many = (np.mean([q.release(epsilon=1, delta=1e-6).table.height for _ in range(10)]) for q in (own, shown))
    assert few < 8 < 11 < many
