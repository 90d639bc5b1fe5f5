"""Questions for keys alone: the units of a block prefer the same groups, on every engine."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine as totals_of
from inside import question_of

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
    found = totals_of.totals(question_of(asked), salt)
    return dict(zip(found.keys.to_series().to_list(), found.values[0].tolist(), strict=True))


@pytest.mark.one_in(2)
@pytest.mark.spark
def test_units_meet_in_few_groups_and_each_keeps_as_many_as_it_may(engine):
    """Eight blocks keep three groups each, so 24 groups at most.
    With separate orders, units keep all 40.
    """
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
        here, there = (
            counts(query(r).keys(), salt) for r in (rows, rows.filter(pl.col("u") != leaving))
        )
        moved = [here.get(g, 0) - there.get(g, 0) for g in range(GROUPS)]
        assert sorted(moved)[-MOST:] == [1] * MOST
        assert sum(map(abs, moved)) == MOST


@pytest.mark.long
def test_no_group_is_first_more_often_than_another():
    """Over 400 salts each group is kept by some unit in as many of
    them, about 8 · 3 of 40 at most.
    """
    some = table(range(40))
    met = np.zeros(GROUPS)
    for salt in range(400):
        for g, n in counts(query(some).keys(), salt).items():
            met[g] += n > 0
    share = met.sum() / GROUPS
    assert np.abs(met - share).max() < 5.5 * np.sqrt(share * (1 - share / 400))


@pytest.mark.usefixtures("same_noise")
def test_more_keys_are_shown_where_units_have_many():
    """Each of 360 units keeps three of 40 groups: 27 per group, or 45 where a
    block meets; about 38 are needed.
    """
    rows = table(range(360))
    shown, own = query(rows).keys(), query(rows).count_units()
    few, many = (
        np.mean([q.release(epsilon=1, delta=1e-6).table.height for _ in range(10)])
        for q in (own, shown)
    )
    assert few < 8 < 11 < many


# In rounds, where no limit is typed

WORDS = pl.DataFrame(
    {
        "u": [1, 1, 1, 2, 2, 3, 3, 3, 3, 4, 5, 5, None],
        "word": ["a", "a", "b", "a", "c", "a", "b", "c", "d", "É", None, "d", "e"],
        "number": [0.0, -0.0, 1.5, 0.0, 2.0, 0.0, 1.5, 2.0, 7.0, 3.0, None, 7.0, 9.0],
        "yes": [True, True, False, True, None, True, False, True, True, False, None, True, False],
        "day": [dt.date(2024, 1, i) for i in (1, 1, 2, 1, 3, 1, 2, 3, 4, 5)]
        + [None, dt.date(2024, 1, 4), None],
    },
    schema_overrides={"u": pl.Int64},
)
ONE = 2**20


def spread(rows, by, in_play=None):
    """Weights of keys in plain Python, from (unit, key) pairs."""
    lists, weights = {}, {}
    for unit, *key in rows.select("u", *by).unique().iter_rows():
        if None not in key:
            lists.setdefault(unit, []).append(tuple(key))
    for keys in lists.values():
        mine = [key for key in keys if in_play is None or key in in_play]
        for key in mine:
            weights[key] = weights.get(key, 0) + math.isqrt(ONE * ONE // len(mine))
    return weights


def read(asked, in_play=None):
    found = totals_of.totals(question_of(asked), 3, in_play)
    return dict(zip(found.keys.rows(), found.values[0].tolist(), strict=True)), found.held


@pytest.mark.one_in(2)
@pytest.mark.spark
@pytest.mark.parametrize(
    "by",
    [
        ("word", "number"),
        *(pytest.param(by, marks=pytest.mark.long) for by in (("word",), ("number",), ("day",))),
    ],
)
def test_units_spread_the_same_weights_on_every_engine(engine, by):
    asked = dp.protect(engine(WORDS), unit="u").group_by(*by).keys()
    rows = WORDS.filter(pl.col("u").is_not_null())
    weights, held = read(asked)
    assert weights == spread(rows, by)
    ranked = sorted(weights, key=str)
    in_play = set(ranked[::2])
    kept = held.filter(pl.Series([key in in_play for key in weights]))
    assert read(asked, kept)[0] == spread(rows, by, in_play)
    assert read(asked, kept.clear())[0] == {}


@pytest.mark.one_in(2)
def test_a_unit_keeps_a_hundred_keys(engine):
    rows = pl.DataFrame({"u": [1] * 150 + [2] * 2, "g": [*range(150), 7, 8]})
    asked = dp.protect(engine(rows), unit="u").group_by("g").keys()
    weights, held = read(asked)
    small = math.isqrt(ONE * ONE // 100)
    assert sorted(n for key, n in weights.items() if key not in ((7,), (8,))) in (
        [small] * k for k in (98, 99, 100)
    )
    # the hundred do not grow by keys that were left out before
    later, _ = read(asked, held.filter(pl.col("k0") < 75))
    assert set(later) <= set(weights)


def test_rounds_in_parts_of_the_units_add_up(monkeypatch):
    from dpframe.engine.parts import buckets

    draw = np.random.default_rng(5)
    rows = pl.DataFrame({"u": draw.integers(0, 60, 900), "g": draw.integers(0, 40, 900)})
    asked = dp.protect(rows, unit="u").group_by("g").keys()
    whole, held = read(asked)
    some = held[::3]
    before = read(asked, some)[0]
    monkeypatch.setattr(buckets, "_rows_of_a_part", lambda _: 200)
    assert (read(asked)[0], read(asked, some)[0]) == (whole, before)


def test_a_unit_that_joins_moves_weights_by_a_length_of_one_at_most():
    """Random tables, with and without one unit, at random keys in play;
    a weight that ignores t moves them by more.
    """
    draw, lengths = np.random.default_rng(9), []
    for _ in range(60):
        rows = pl.DataFrame({"u": draw.integers(0, 5, 30), "g": draw.integers(0, 9, 30)})
        asked, fewer = (
            dp.protect(r, unit="u").group_by("g").keys()
            for r in (rows, rows.filter(pl.col("u") != 2))
        )
        held = pl.DataFrame({"k0": np.flatnonzero(draw.random(9) < 0.7)})
        here, there = read(asked, held)[0], read(fewer, held)[0]
        lengths.append(sum((here[key] - there.get(key, 0)) ** 2 for key in here))
        assert set(there) <= set(here)
    bound = question_of(asked).threshold.sensitivity
    assert 0.9 * bound.l2_squared < max(lengths) <= bound.l2_squared
