"""Shrinking: its critical values beside linear programs, and its spreads
beside those that were put in.
"""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import laplace, norm

from dpframe.theory.formulas.error import (
    average_critical,
    group_spread,
    safe_moves,
    shrunk_differences,
)

LAWS = {"normal": (norm(), False), "laplace": (laplace(scale=2**-0.5), True)}
SQUARED = np.concatenate([np.linspace(0, 60, 1500), np.geomspace(60, 1e5, 500)])


def worst_share(law, critical, ratio):
    """The largest E[P(|Z + b| > critical)] over laws of b² on a grid with mean
    `ratio`, by linear programming.
    """
    bias = np.sqrt(SQUARED)
    missed = law.sf(critical - bias) + law.cdf(-critical - bias)
    held = linprog(-missed, A_eq=[np.ones_like(SQUARED), SQUARED], b_eq=[1, ratio], bounds=(0, 1))
    return -held.fun


@pytest.mark.parametrize("ratio", [0.01, 0.3, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("name", LAWS)
def test_critical_values_hold_for_the_worst_law_of_biases(name, ratio):
    law, heavy = LAWS[name]
    critical = average_critical(np.array([ratio]), 0.05, heavy=heavy).item()
    assert worst_share(law, critical, ratio) <= 0.0502
    # and are not much wider than they must be
    assert worst_share(law, 0.93 * critical, ratio) > 0.05


def test_the_critical_value_of_normal_noise_would_not_do_for_laplace_noise():
    critical = average_critical(np.array([0.01]), 0.01, heavy=False).item()
    assert worst_share(LAWS["laplace"][0], critical, 0.01) > 0.014


def test_without_bias_they_are_the_quantiles_of_the_noise():
    for alpha in (0.2, 0.05, 0.001):
        normal = average_critical(np.zeros(1), alpha, heavy=False).item()
        assert norm.isf(alpha / 2) <= normal <= 1.05 * norm.isf(alpha / 2)
        heavy = average_critical(np.zeros(1), alpha, heavy=True).item()
        assert heavy >= max(normal, laplace(scale=2**-0.5).isf(alpha / 2))


def test_critical_values_grow_with_the_bias_up_to_chebyshev():
    ratios = np.geomspace(1e-3, 1e7, 300)
    for heavy in (False, True):
        values = average_critical(ratios, 0.05, heavy=heavy)
        assert (np.diff(values) >= -1e-9).all()
        assert (values <= np.sqrt((1 + ratios) / 0.05) + 1e-6).all()


def groups(spread, noise, number, seed=3, count=400):
    """Differences of groups with a spread between them, in noisy numerators."""
    draw = np.random.default_rng(seed)
    true = draw.normal(0, spread, count)
    return true, true * number + draw.normal(0, noise, count)


@pytest.mark.parametrize("spread", [0.0, 1.0, 5.0])
def test_the_spread_between_groups_is_found(spread):
    _, differences = groups(spread, 20, 10)
    found = group_spread(differences, np.full(400, 10.0), np.full(400, 400.0), 50, 50)
    assert abs(found.between**0.5 - spread) < 0.9


@pytest.mark.parametrize("spread", [0.1, 1.0, 3.0])
def test_shrunk_values_err_about_as_the_best_weight_does(spread):
    true, differences = groups(spread, 20, 10)
    sizes, variances = np.full(400, 10.0), np.full(400, 400.0)
    fit = group_spread(differences, sizes, variances, 50, 50)
    moved, deviations, biases = shrunk_differences(differences, sizes, variances, fit)
    raw = np.mean((differences / 10 - true) ** 2)
    best = spread**2 * 4 / (spread**2 + 4)
    assert np.mean((moved - true) ** 2) < min(1.25 * best + 0.05, raw)
    reach = average_critical((biases / deviations) ** 2, 0.05, heavy=False) * deviations
    assert np.mean(np.abs(moved - true) <= reach) > 0.93


def test_values_that_cannot_differ_and_exact_totals():
    assert group_spread(np.zeros(5), np.ones(5), np.ones(5), 0.0, 0.0).between == 0
    exact = group_spread(np.array([0.0, 10, -10, 5]), np.full(4, 10.0), np.zeros(4), 10, 10)
    moved, deviations, _ = shrunk_differences(
        np.array([0.0, 10, -10, 5]), np.full(4, 10.0), np.zeros(4), exact
    )
    assert moved.tolist() == pytest.approx([0, 1, -1, 0.5])
    assert not deviations.any()


TRUTHS = {
    "alike": np.zeros(10),
    "one apart": np.eye(10)[0],
    "two kinds": np.tile([1.0, -1.0], 5),
    "even": np.linspace(-1, 1, 10),
}
NOISES = {
    "alike": np.ones(10),
    "one in all": np.array([100.0] + [1.0] * 9),
    "falling": np.geomspace(100, 1, 10),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("truth", TRUTHS)
def test_no_truth_makes_the_error_over_all_groups_larger(truth, noise, law):
    """Of 500 draws, with the same noise in both errors."""
    draw, deviations = np.random.default_rng(7), NOISES[noise] ** 0.5
    everywhere = np.ones(10, np.bool_)
    for size in (0.3, 1.0, 3.0):
        places = size * TRUTHS[truth] * (deviations if truth == "one apart" else 1.0)
        values = places + deviations * LAWS[law][0].rvs((500, 10), random_state=draw)
        moved = np.array(
            [(1 - safe_moves(v, deviations**2, size**2 / 10, everywhere)) * v for v in values]
        )
        assert np.mean((moved - places) ** 2) < 1.02**2 * np.mean((values - places) ** 2)


def test_groups_that_are_alike_gain_and_one_with_most_of_the_noise_hardly_moves():
    draw, everywhere = np.random.default_rng(8), np.ones(10, np.bool_)
    values = draw.normal(size=(500, 10))
    moved = np.array([(1 - safe_moves(v, np.ones(10), 0.0, everywhere)) * v for v in values])
    assert np.mean(moved**2) < 0.35  # James and Stein's positive part has 0.2
    alone = safe_moves(np.array([3.0] + [0.1] * 9), np.array([1e4] + [1.0] * 9), 0.0, everywhere)
    assert alone[0] < 0.01
    assert alone[1:].min() > 0.5
    assert not safe_moves(np.ones(10), np.ones(10), 0.0, ~everywhere).any()  # all are clipped
