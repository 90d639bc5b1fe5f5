"""The threshold that shares δ with Gaussian noise: exact divergences of whole releases on neighbouring tables."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpframe.theory.formulas.loss.calibration import gaussian_scale, threshold
from dpframe.theory.formulas.loss.key_selection import threshold_beside_noise

EPSILON, DELTA = 0.5, 0.05


def law(units, scale, least):
    """Of one group: hidden, or a noisy number from `least` on; a group without units is not there."""
    values = np.arange(least, least + int(14 * scale) + 40)
    if units == 0:
        return np.concatenate([[1.0], np.zeros(len(values))])
    shown = stats.norm.cdf(values + 0.5, units, scale) - stats.norm.cdf(values - 0.5, units, scale)
    return np.concatenate([[stats.norm.cdf(least - 0.5, units, scale)], shown])


def worst(scale, least, changes):
    """The largest divergence, both ways: one unit in two groups comes (+1), leaves (-1), or moves from one to one."""
    sizes = range(least + 4)
    laws = [law(n, scale, least) for n in range(least + 6)]
    found = 0.0
    for before in itertools.product(sizes, repeat=len(changes)):
        after = [n + d for n, d in zip(before, changes, strict=True)]
        if min(after) < 0:
            continue
        p, q = (np.multiply.outer(*[laws[n] for n in side]) for side in (before, after))
        found = max(found, *(np.maximum(x - math.exp(EPSILON) * y, 0).sum() for x, y in ((p, q), (q, p))))
    return found


@pytest.mark.parametrize("changes", [(1, 1), (1, -1)])
def test_noise_and_threshold_together_are_within_delta(changes):
    """Both keep nearly all of δ; a threshold that is lower by two is not paid for (negative control)."""
    scale = gaussian_scale(l2_squared=2, epsilon=EPSILON, delta=DELTA * 19 / 20)
    least = threshold_beside_noise(DELTA, EPSILON, 2, scale, 1, lambda j: math.sqrt(min(j, 2)) / scale)
    assert DELTA / 3 < worst(scale, least, changes) <= DELTA
    if changes == (1, 1):
        assert worst(scale, least - 2, changes) > DELTA


@pytest.mark.parametrize("groups", [1, 2, 5, 64, 65, 300])
def test_it_is_never_below_the_threshold_of_all_of_delta_and_hardly_above(groups):
    scale = gaussian_scale(l2_squared=groups, epsilon=1, delta=1e-6 * 19 / 20)
    least = threshold_beside_noise(1e-6, 1, groups, scale, 1, lambda j: math.sqrt(j) / scale)
    alone = threshold(1e-6, groups, "gaussian", scale)
    assert alone <= least <= alone * 1.02 + 1
    halves = threshold(5e-7, groups, "gaussian", gaussian_scale(l2_squared=groups, epsilon=1, delta=5e-7))
    assert least < 0.97 * halves


def test_there_is_none_where_the_noise_takes_all_of_delta_or_a_unit_may_put_all_into_one_group():
    scale = gaussian_scale(l2_squared=100, epsilon=1, delta=1e-6)
    assert threshold_beside_noise(1e-7, 1, 100, scale, 1, lambda j: math.sqrt(j) / scale) is None
    scale = gaussian_scale(l2_squared=100, epsilon=1, delta=0.95e-6)
    wide = threshold_beside_noise(1e-6, 1, 100, scale, 1, lambda j: math.sqrt(100) / scale)
    assert wide is None or wide > threshold(1e-6, 100, "gaussian", scale)
