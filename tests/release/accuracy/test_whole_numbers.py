"""Errors of whole numbers that are put together of rounded ones:
differences, margins and periods, by the exact law.

A whole number exceeds an error e from the next whole number on. Where such errors are multiplied or
added as if they were those of real numbers, intervals miss more than they say: up to 10% in place
of 5%, where noise is small.
"""

import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

import dpframe as dp
from dpframe.release.estimators import error_of_sum
from inside import numbers_of

GROUPS = list(range(4))
RHO = [0.02, 0.1, 0.3, 0.5, 0.8, 1.2, 2.0, 3.0]
LEVELS = [0.01, 0.05, 0.2]


def law(scale, number):
    """The probabilities of whole numbers from the middle on, of
    the sum of rounded normal noises.
    """
    reach = math.ceil(12 * scale) + 2
    whole = np.arange(-reach, reach + 1)
    one = norm.cdf((whole + 0.5) / scale) - norm.cdf((whole - 0.5) / scale)
    chance = one
    for _ in range(number - 1):
        chance = np.convolve(chance, one)
    return chance


def missed(scale, number, error):
    chance = law(scale, number)
    apart = np.arange(len(chance)) - len(chance) // 2
    return chance[np.abs(apart) > error].sum()


def released(rho):
    """Counts of four groups with normal noise, and its scale."""
    table = pl.DataFrame({"u": range(40), "g": GROUPS * 10})
    frame = table.dp(unit="u", budget=dp.Budget(rho=10), max_rows=1)
    out = frame.group_by("g", keys=GROUPS).count().release(rho=rho, noise="gaussian")
    return out, out.noise["scale"].item()


@pytest.mark.parametrize("rho", RHO)
def test_differences_are_missed_as_often_as_is_said(rho):
    out, scale = released(rho)
    for alpha in LEVELS:
        row = out.difference(0, 1, alpha=alpha)
        half = ((row["upper"] - row["lower"]) / 2).item()
        assert half.is_integer()
        assert missed(scale, 2, half) <= alpha
        assert missed(scale, 2, max(half - 3, 0)) > alpha  # not much wider than it must be


@pytest.mark.parametrize("rho", RHO)
def test_sums_of_groups_are_missed_as_often_as_is_said(rho):
    out, scale = released(rho)
    (output,) = numbers_of(out).outputs
    for number in (1, 2, 7):
        for alpha in LEVELS:
            error = error_of_sum(numbers_of(out).noisy(output), alpha, number)
            assert missed(scale, number, error) <= alpha
            assert missed(scale, number, max(error - 3, 0)) > alpha


@pytest.mark.parametrize("rho", RHO)
def test_a_period_of_a_series_is_missed_as_often_as_is_said(rho):
    budget = dp.Budget(rho=10)
    frame = pl.DataFrame({"u": range(40)}).dp(unit="u", budget=budget)
    series = budget.series("s", every="1d", horizon=1, rho=rho, unit_periods=1)
    error = series.add(frame.count(max_rows=1), "2026-11-21").error
    scale = series._opened().noise.mechanisms[0][0][0].scale
    assert missed(scale, 1, error) <= 0.05
    assert missed(scale, 1, max(error - 3, 0)) > 0.05


def test_errors_as_of_real_numbers_miss_too_much():
    """The negative control: the error of one count, times √2;
    and the floor of the error of a real sum.
    """
    worst = max(
        missed(scale, 2, math.sqrt(2) * math.ceil(1.96 * scale - 0.5)) for scale in (0.61, 2.8, 3.3)
    )
    assert worst > 0.055
    floors = max(
        missed(s, 2, math.floor(1.96 * math.sqrt(2 * s**2 + 0.5))) for s in np.linspace(0.6, 5, 50)
    )
    assert floors > 0.055
