"""Stages 2 to 4 compared with an independent reference in dictionaries,
Python integers and fractions.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from fractions import Fraction

import narwhals as nw
import polars as pl
import pytest

import dpframe as dp
from inside import question_of
from strategies import answer, bring, hashed_by

ONE = 2**20  # the fraction bits of everything that is divided


def _hash_by_length(frame, columns, salt, into):
    """A stand-in that Python can follow: the number of characters of the
    group, so that "a" and "b" tie.
    """
    return frame.with_columns(nw.col(columns[-1]).str.len_chars().alias(into))


def _kept(groups, most):
    """Groups whose rank by hash is at most `most`, where equal
    hashes all have their highest rank.
    """
    return [g for g in groups if sum(len(h) <= len(g) for h in groups) <= most]


def _weights(rows, keys, most_rows, most_groups, most_per_group):
    """Per unit and group: its number of rows, and its row weight times 2^20."""
    units = defaultdict(lambda: defaultdict(list))
    for unit, group, value in rows:
        if unit is not None and group in keys:
            units[unit][group].append(value)
    for unit, groups in units.items():
        kept = (
            _kept(groups, min(most_groups, most_rows))
            if min(most_groups, most_rows) < len(keys)
            else list(groups)
        )
        counted = {g: min(len(groups[g]), most_per_group, most_rows) for g in kept}
        total = sum(counted.values())
        for g in kept:
            weight = (
                counted[g] * ONE if total <= most_rows else ONE * counted[g] * most_rows // total
            )
            yield unit, g, groups[g], weight


def _reference(rows, keys, limits, bounds):
    """Rows, values, sum and units of each group, in 2^-20 steps where rows are weighted."""
    lower, upper = bounds
    totals = {g: [0, 0, 0, 0, 0] for g in keys}
    for _, group, values, weight in _weights(rows, keys, *limits):
        known = [v for v in values if v is not None]
        clipped = sum(min(max(v, lower), upper) for v in known)
        into = totals[group]
        into[0] += weight
        into[1] += math.trunc(Fraction(len(known) * weight, len(values)))
        into[2] += math.trunc(Fraction(clipped * weight, len(values)))
        into[3] += 1
        into[4] += min(max(sum(known), lower), upper)
    return totals


def _table(rng):
    groups = ["a", "b", "cc", "ddd", "e" * 5, "unlisted"]
    return [
        (
            rng.choice([1, 2, 3, None]),
            rng.choice(groups[: rng.randint(1, 6)]),
            rng.choice([None, rng.randint(-20, 20)]),
        )
        for _ in range(rng.randint(0, 60))
    ]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(60))
def test_totals_are_those_of_the_design(monkeypatch, seed):
    hashed_by(monkeypatch, _hash_by_length)
    rng = random.Random(seed)
    rows, keys = _table(rng), ["a", "b", "cc", "ddd", "e" * 5]
    limits = (rng.randint(1, 9), rng.randint(1, 5), rng.randint(1, 5))
    bounds = rng.choice([(-3, 10), (0, 5), (4, 9), (-9, -2)])
    frame = pl.DataFrame(rows, {"u": pl.Int64, "g": pl.String, "x": pl.Int64}, orient="row")
    query = (
        dp.protect(bring(frame, rng.choice(["polars", "lazy", "pyarrow"])), unit="u")
        .group_by(
            "g", keys=keys, max_rows=limits[0], max_groups=limits[1], max_rows_per_group=limits[2]
        )
        .agg(
            n=dp.count(),
            v=dp.count("x"),
            s=dp.sum("x", bounds=bounds),
            units=dp.count_units(),
            t=dp.sum("x", unit_bounds=bounds),
        )
    )
    expected = _reference(rows, keys, limits, bounds)
    for paid, total in zip(question_of(query).allotments, answer(query), strict=True):
        for name in paid.names:  # with one row in a group the rows are the units
            i = ["n", "v", "s", "units", "t"].index(name)
            scale = ONE // 2**paid.total.fraction if i < 3 else 1
            assert {k: v * scale for (k,), v in total.items()} == {
                g: t[i] for g, t in expected.items()
            }, name


def test_a_count_that_is_cut_down_is_the_stated_formula():
    # min(n, k) = 3, 3, 1: scaled by 4/7
    rows = [(1, g) for g in "aaaabbbbc"] + [(2, g) for g in "ab"]
    frame = pl.DataFrame(rows, {"u": pl.Int64, "g": pl.String}, orient="row")
    query = dp.protect(frame, unit="u").group_by(
        "g", keys=["a", "b", "c"], max_rows=4, max_groups=3, max_rows_per_group=3
    )
    a, c = ONE * 12 // 7, ONE * 4 // 7
    assert answer(query.count()) == [{("a",): a + ONE, ("b",): a + ONE, ("c",): c}]


def test_sums_and_counts_are_weighted_alike_so_means_stay():
    rng = random.Random(1)
    rows = [(u, g, 7.5) for u in range(20) for g in "abc" for _ in range(rng.randint(0, 9))]
    frame = pl.DataFrame(rows, {"u": pl.Int64, "g": pl.String, "x": pl.Float64}, orient="row")
    for limits in itertools.product([1, 4], [1, 3], [1, 2]):
        named = dict(zip(["max_rows", "max_groups", "max_rows_per_group"], limits, strict=True))
        query = (
            dp.protect(frame, unit="u")
            .group_by("g", keys=["a", "b", "c"], **named)
            .mean("x", bounds=(0, 10))
        )
        total, count = answer(query, 3)
        paid = question_of(query).allotments
        for key in total:
            if count[key]:
                ratio = (
                    Fraction(total[key])
                    * paid[0].total.unit
                    / (Fraction(count[key]) * paid[1].total.unit)
                )
                # measured from the middle, 5
                assert abs(ratio - Fraction(5, 2)) < Fraction(1, 10**4)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("limit", [1, 2, 1000, 2**31 - 1])
@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt64, pl.Float64])
@pytest.mark.parametrize(
    "bounds",
    [
        (-(2**63), 2**63),
        (0, 2**64 - 1),
        (-1e270, 1e270),
        (1e-300, 2e-300),
        (-5, 5),
        (2**62, 2**63 - 1),
    ],
)
def test_totals_never_wrap(limit, dtype, bounds):
    ends = {
        pl.Int64: [-(2**63), 2**63 - 1],
        pl.UInt64: [0, 2**64 - 1],
        pl.Float64: [-1.7e308, 1.7e308],
    }[dtype]
    for value in ends:
        frame = pl.DataFrame({"u": [*range(500)] * 2, "x": pl.Series([value] * 1000, dtype=dtype)})
        frame = dp.protect(frame, unit="u")
        query = frame.agg(
            max_rows=limit, s=dp.sum("x", bounds=bounds), t=dp.sum("x", unit_bounds=bounds)
        )
        rows = min(limit, 2)
        exact = [
            rows * 500 * min(max(Fraction(value), *map(Fraction, bounds[:1])), Fraction(bounds[1]))
        ]
        exact.append(500 * min(max(2 * Fraction(value), Fraction(bounds[0])), Fraction(bounds[1])))
        for paid, total, truth in zip(
            question_of(query).allotments, answer(query), exact, strict=True
        ):
            measured = total[()] * paid.total.unit
            step = paid.total.grid.step
            assert abs(measured - truth) <= abs(truth) / 2**9 + 1000 * step, (
                paid.names,
                float(measured),
                float(truth),
            )


def test_a_total_wider_than_64_bits_is_exact():
    units = 3000
    frame = pl.DataFrame({"u": range(units), "x": pl.Series([2**31 - 1] * units, dtype=pl.Int64)})
    query = dp.protect(frame, unit="u").sum("x", bounds=(0, 2**26), max_rows=2**15)
    paid = question_of(query).allotments[0].total
    assert answer(query)[0][()] == units * paid.grid.upper * ONE


def test_one_engine_run_in_batches_gives_the_same_totals():
    """Large enough for the streaming engine to split it."""
    rng = random.Random(5)
    rows = [
        (rng.randrange(3000), rng.choice("abcdefgh"), rng.uniform(-5, 15)) for _ in range(60_000)
    ]
    frame = pl.DataFrame(rows, {"u": pl.Int64, "g": pl.String, "x": pl.Float64}, orient="row")
    answers = [
        answer(
            dp.protect(bring(f, kind), unit="u")
            .group_by("g", max_groups=3, max_rows_per_group=2, max_rows=5)
            .agg(n=dp.count(), m=dp.mean("x", bounds=(0, 10))),
            11,
        )
        for f, kind in (
            (frame, "polars"),
            (frame, "lazy"),
            (frame.sample(fraction=1, shuffle=True), "lazy"),
        )
    ]
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("keys", [{"a": ["x"], "b": ["x"]}, [("x", "x"), ("y", "z")]])
def test_no_slot_and_no_weight_is_spent_on_groups_that_are_not_listed(keys):
    rows = [(1, a, b) for a in "xyz" for b in "xyz"] * 3 + [(2, "q", "q")]
    frame = pl.DataFrame(rows, {"u": pl.Int64, "a": pl.String, "b": pl.String}, orient="row")
    ask = dp.protect(frame, unit="u").group_by(
        "a", "b", keys=keys, max_rows=6, max_groups=2, max_rows_per_group=5
    )
    for salt in range(20):
        counted, units = answer(ask.agg(n=dp.count(), units=dp.count_units()), salt)
        assert set(counted.values()) == {
            3 * (ONE if question_of(ask.count()).allotments[0].total.fraction else 1)
        }
        assert set(units.values()) == {1}
