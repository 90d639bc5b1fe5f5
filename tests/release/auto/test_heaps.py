"""Heaps that explain a noisy histogram, and the bounds that follow
from them: no rows and no engine.
"""

from __future__ import annotations

import numpy as np
import pytest

from dpframe.release.auto.heaps import Heaps

EDGES = np.linspace(0, 1, 129)
SCALE = 10.0  # of the noise: that of two columns at ε = 1
NOISE = 5.4  # of a product: that of six moments for 80% of ε = 1


def found(values, draw, scale=SCALE):
    """The heaps of values from 0 to 1."""
    return Heaps.of(
        EDGES, np.histogram(values, EDGES)[0] + draw.laplace(0, scale, len(EDGES) - 1), scale
    )


def clipped(values, draw, weight=1.0):
    """The part of the variance beyond the ends, and half of the distance of
    these over the standard deviation.
    """
    heaps = found(values, draw)
    low, high = (0.0, 1.0) if heaps is None else heaps.ends(NOISE, weight)
    return 1 - np.clip(values, low, high).var() / values.var(), (high - low) / 2 / values.std()


@pytest.mark.parametrize("part", [1 / 60, 1 / 150, 1 / 300])
def test_ends_of_500_normal_values_are_about_two_deviations_away(part):
    draw = np.random.default_rng(1)
    lost, width = np.median([clipped(draw.normal(0.3, part, 500), draw) for _ in range(9)], axis=0)
    assert lost < 0.12
    assert 1.8 < width < 3


def test_with_more_people_ends_are_further_out_and_clip_less():
    draw = np.random.default_rng(2)
    lost, widths = np.array(
        [clipped(draw.normal(0.6, 1 / 75, n), draw) for n in (500, 5_000, 50_000, 500_000)]
    ).T
    assert list(widths) == sorted(widths)
    assert widths[-1] > 5
    assert lost[-1] < 1e-4


@pytest.mark.parametrize(
    "values",
    [
        lambda draw, n: 0.02 * draw.standard_normal(n) + draw.choice([0.2, 0.7], n),
        lambda draw, n: np.where(draw.random(n) < 0.6, 0.0, draw.normal(0.3, 0.02, n)),
        lambda draw, n: np.exp(draw.normal(-3, 0.6, n)),
        lambda draw, n: draw.uniform(0.2, 0.4, n),
        lambda draw, n: np.rint(draw.normal(12, 3, n)) / 40,
    ],
)
def test_two_heaps_zeros_tails_and_whole_numbers_are_not_clipped_away(values):
    draw = np.random.default_rng(3)
    lost, width = np.median(
        [clipped(np.clip(values(draw, 5000), 0, 1), draw) for _ in range(3)], axis=0
    )
    assert lost < 0.2
    assert width < 4


def test_noise_alone_is_no_heap():
    """e^-4 of all cases at most: that more than 7 of 25 are heaps is beyond 1e-6."""
    draw = np.random.default_rng(4)
    assert sum(found(np.zeros(0), draw) is not None for _ in range(25)) <= 7


def test_a_heap_within_a_bin_says_nothing_while_others_may_be_elsewhere():
    draw = np.random.default_rng(5)
    few, many = np.full(400, 0.503), np.full(40_000, 0.503)
    assert found(few, draw) is None
    heaps = found(many, draw)
    assert heaps is not None
    low, high = heaps.ends(NOISE, 1.0)
    assert 0.45 < low < 0.503 < high < 0.55


def test_clipping_counts_more_with_a_larger_weight():
    draw = np.random.default_rng(6)
    values = draw.normal(0.5, 0.02, 500)
    one, four = (clipped(values, np.random.default_rng(7), weight) for weight in (1.0, 4.0))
    assert one[0] > four[0]
    assert one[1] < four[1]


def test_without_noise_nothing_is_clipped():
    draw = np.random.default_rng(8)
    heaps = found(draw.normal(0.5, 0.1, 5000), draw, scale=1e-9)
    assert heaps is not None
    assert heaps.ends(0.0, 1.0) == (0.0, 1.0)
