"""Noisy histograms: how far one unit moves them, what they cost,
and what they say without noise.
"""

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine
from dpframe.engine import EXPONENTS, NODES, ONE
from dpframe.release.auto.noisy_histograms import histogram_scale
from dpframe.release.auto.value_histograms import (
    between,
    in_octaves,
    near,
    powers_of_eight,
    powers_of_two,
)
from inside import question_of
from prices import offer

SIZES = ("rows", "groups", "rows_per_group")
VALUES = [None, 0.0, -0.0, 1.0, -7.5, 3e40, -1e-40, float("inf"), float("-inf"), float("nan"), 2.5]
SCHEMA = {"id": pl.Int64, "g": pl.Int64, "x": pl.Float64}


def histograms(ask):
    """Every histogram there is of an ask, by name."""
    column = ask.table.columns["x"]
    edges = [-3.0, -0.5, 0.0, 1.0, 2.5, 40.0]
    return {
        **engine.size_profile(ask, SIZES),
        "keys": engine.key_profile(ask),
        "magnitudes": engine.magnitude_profile(ask, column),
        "values": engine.value_profile(ask, column, edges),
    }


def rows_of(draw, units, number):
    return [
        {
            "id": int(draw.choice(units)),
            "g": int(draw.integers(0, 5)),
            "x": VALUES[draw.integers(len(VALUES))],
        }
        for _ in range(number)
    ]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("keys", [[0, 1, 2], None])
def test_one_unit_moves_a_histogram_by_one(seed, keys):
    draw = np.random.default_rng(seed)
    rest, unit, another = rows_of(draw, range(5), 60), rows_of(draw, [9], 12), rows_of(draw, [9], 5)
    tables = [pl.DataFrame(rows, schema=SCHEMA) for rows in (rest, rest + unit, rest + another)]
    without, one, other = (
        histograms(
            question_of(dp.protect(t, unit="id").group_by("g", keys=keys, limits=dp.Auto()).count())
        )
        for t in tables
    )
    for name in without:
        for first, second, most in (
            (without, one, ONE),
            (without, other, ONE),
            (one, other, 2 * ONE),
        ):
            assert np.abs(first[name] - second[name]).sum() <= most, name
        assert without[name].sum() <= 5 * ONE
    # A unit gives all it has to its size, wherever it has rows that count, so the bound is reached.
    assert np.abs(without["rows"] - one["rows"]).sum() == ONE or keys is not None


def test_the_bound_of_an_exchange_is_reached():
    few, many = [{"id": 1, "g": 0, "x": 1.0}], [{"id": 1, "g": 0, "x": -40.0}] * 8
    one, other = (
        histograms(
            question_of(
                dp.protect(pl.DataFrame(t, schema=SCHEMA), unit="id", neighbors="replace")
                .group_by("g", keys=[0], limits=dp.Auto())
                .count()
            )
        )
        for t in (few, many)
    )
    for name in ("rows", "rows_per_group", "magnitudes", "values"):
        assert np.abs(one[name] - other[name]).sum() == 2 * ONE


@pytest.mark.parametrize("seed", range(3))
def test_with_declared_rows_one_person_moves_a_histogram_of_values_by_one(seed):
    draw = np.random.default_rng(seed)
    rows = rows_of(draw, range(5), 30)
    whole, less = (
        question_of(
            dp.protect(pl.DataFrame(r, schema=SCHEMA), unit=dp.Rows(3)).sum("x", bounds=dp.Auto())
        )
        for r in (rows, rows[3:])
    )
    for made in (engine.magnitude_profile, lambda a, c: engine.value_profile(a, c, [0.0, 2.0])):
        moved = made(whole, whole.table.columns["x"]) - made(less, less.table.columns["x"])
        assert np.abs(moved).sum() <= ONE


def test_histograms_say_what_they_say():
    table = pl.DataFrame({"id": [1] * 5 + [2] + [3] * 100, "g": [0, 0, 0, 1, 1] + [7] + [2] * 100})
    ask = question_of(
        dp.protect(table, unit="id").group_by("g", keys=[0, 1, 2, 3], limits=dp.Auto()).count()
    )
    sizes = engine.size_profile(ask, SIZES)
    for name, mean in (("rows", 105), ("groups", 3), ("rows_per_group", 103)):
        assert sizes[name].sum() == 2 * ONE
        assert sizes[name] @ NODES == pytest.approx(mean * ONE, abs=200)  # whole parts of ONE round
    assert engine.key_profile(ask).tolist() == [ONE * 3 // 5, ONE * 2 // 5, ONE, 0]
    values = pl.DataFrame({"id": [1, 2, 3, 4], "x": [0.0, 1.0, -3.0, 4e200]})
    ask = question_of(dp.protect(values, unit="id").sum("x", bounds=dp.Auto(), max_rows=1))
    counts, wide = engine.magnitude_profile(ask, ask.table.columns["x"]), len(EXPONENTS)
    assert np.flatnonzero(counts).tolist() == [wide - 102, wide, wide + 101, 2 * wide]


def test_a_histogram_costs_its_price():
    for relation, moved in (("add-remove", 1), ("replace", 2)):
        assert (
            histogram_scale(offer("epsilon", Fraction(1, 10), Fraction(0), "auto"), relation)
            == 10 * moved * ONE
        )
        rho = histogram_scale(offer("rho", Fraction(1, 10), Fraction(0), "auto"), relation)
        epsilon = moved * ONE / rho
        assert epsilon + np.exp(-epsilon) - 1 == pytest.approx(0.1, rel=1e-9)


def test_powers_of_eight_with_most_values_are_divided_by_the_first_histogram():
    """200 people at 170. The bin of zero and those far away stay as they are."""
    whole = np.full(200, 170)
    counts = np.zeros(2 * len(EXPONENTS) + 1)
    counts[len(EXPONENTS) + 1 + 7 - EXPONENTS[0]] = 210.0  # from 128 to 256
    octaves = powers_of_two(counts, 12.0, whole=True)
    edges = powers_of_eight(whole=True)
    eights = between(edges, np.histogram(whole, [-np.inf, *edges, np.inf])[0] * 1.0, 6.0)
    bins = in_octaves(near(eights, 64.0, 512.0), octaves, 64.0, 512.0)
    inside = (bins.begins >= 64) & (bins.ends <= 512)
    assert bins.begins[inside].tolist() == [64, 128, 256]
    assert bins.counts[inside].argmax() == 1
    gain = 12**2 / (3 * 12**2 + 6**2)
    assert bins.counts[inside].sum() == pytest.approx(210 - 3 * gain * 10)
    assert bins.scales[inside] == pytest.approx(np.full(3, 12 * math.sqrt(1 - gain)))
    assert len(bins.counts) == len(near(eights, 64.0, 512.0).counts) + 2
    assert np.all(bins.begins[1:] == bins.ends[:-1])


def test_the_bin_of_zero_is_not_divided():
    """It has every octave of numbers near zero; noise in these was taken for values of 1e-29."""
    octaves = powers_of_two(np.zeros(2 * len(EXPONENTS) + 1), 12.0, whole=False)
    edges = powers_of_eight(whole=False)
    eights = near(between(edges, np.zeros(len(edges) + 1), 6.0), -8.0, 8.0)
    bins = in_octaves(eights, octaves, -8.0, 8.0)
    zero = (bins.begins < 0) & (bins.ends > 0)
    assert zero.sum() == 1
    assert bins.ends[zero] == eights.ends[len(eights.counts) // 2]
