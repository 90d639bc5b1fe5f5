"""The allowance for a noisy sampling variance, and tails of a normal error
beside Laplace noise, by simulation.
"""

import numpy as np
import pytest

from dpframe.theory.formulas.error import normal_laplace_reaches, variance_allowance

DRAWS = 200_000


@pytest.mark.parametrize("known", [0.0, 0.1, 1.0, 10.0, 1e3])
@pytest.mark.parametrize("unknown", [0.01, 0.5, 2.0, 10.0, 100.0])
def test_intervals_with_the_allowance_miss_rarely_enough(known, unknown):
    """Misses of 200,000 draws: 5% and six standard errors, with 2% for the grid;
    a false alarm is rarer than 1e-8.
    """
    draw = np.random.default_rng(1)
    added = variance_allowance(np.array([known]), 0.05)[0]
    used = known + np.maximum(unknown + draw.laplace(size=DRAWS) + added, 0.0)
    missed = np.mean(
        np.abs(draw.normal(size=DRAWS)) * np.sqrt(known + unknown) > 1.96 * np.sqrt(used)
    )
    assert missed < 0.05 * 1.02 + 6 * (0.05 * 0.95 / DRAWS) ** 0.5


def test_without_the_allowance_too_many_miss():
    draw = np.random.default_rng(2)
    used = np.maximum(0.5 + draw.laplace(size=DRAWS), 0.0)
    assert np.mean(np.abs(draw.normal(size=DRAWS)) * np.sqrt(0.5) > 1.96 * np.sqrt(used)) > 0.2


def test_the_allowance_falls_as_the_known_variance_grows():
    added = variance_allowance(np.geomspace(1e-4, 1e6, 50), 0.05)
    assert (np.diff(added) <= 0).all()
    assert added[-1] == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("scales", [(1.0,), (1.0, 2.0), (1.0, 1.0), (3.0, 0.0, 1.0)])
@pytest.mark.parametrize("deviation", [0.0, 0.1, 1.5, 20.0])
def test_tails_of_sums_of_normal_and_laplace_errors(scales, deviation):
    """The 95th percentile of 400,000 draws, within 3%:
    eight standard errors, and what nearby scales are moved by.
    """
    draw = np.random.default_rng(3)
    total = deviation * draw.normal(size=400_000) + sum(
        s * draw.laplace(size=400_000) for s in scales
    )
    quantile = np.quantile(np.abs(total), 0.95)
    sizes = quantile * np.array([0.97, 1.03])
    reached = normal_laplace_reaches(
        sizes, [np.full(2, s) for s in scales], np.full(2, deviation), 0.05
    )
    assert reached.tolist() == [True, False]
