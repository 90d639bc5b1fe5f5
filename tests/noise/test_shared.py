"""Noise that cells share: joint laws of several cells, held against independent noise and noise of another share."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpframe import noise
from dpframe.errors import InvalidArgument
from dpframe.noise import shared

DRAWS = 24_000  # so many that an independent sum, 0.87 times as wide, is noticed: p-values around 1e-28
ALARM = 1e-7
LONG = pytest.mark.long


@pytest.fixture(scope="module")
def draws():
    """Two cells of many tables, with own deviation 30 and shared deviation 20."""
    return np.array([noise.shared_gaussian(30.0, 20.0, 2) for _ in range(DRAWS)])


def fit(values, deviation):
    """The p-value of normal values of this deviation: of a Kolmogorov-Smirnov test of continuous spread."""
    spread = values + np.random.default_rng(1).uniform(-0.5, 0.5, len(values))
    return stats.kstest(spread / deviation, "norm").pvalue


def test_a_cell_and_the_sum_and_difference_of_two_have_their_laws(draws):
    """False alarms: 3e-7. Rounding adds at most 1/12 to a variance of 1,300, which the test cannot see."""
    one, other = draws.T
    assert fit(one, np.hypot(30, 20)) > ALARM
    assert fit(one - other, 30 * np.sqrt(2)) > ALARM
    assert fit(one + other, np.sqrt(2 * 900 + 4 * 400)) > ALARM


def test_another_share_is_noticed(draws):
    one, other = draws.T
    independent = np.hypot(30, 20) * np.sqrt(2)
    assert fit(one - other, independent) < ALARM
    assert fit(one + other, independent) < ALARM
    assert fit(one, 30) < ALARM


def test_differences_and_sums_are_independent(draws, chi_square):
    one, other = draws.T
    rough = [np.searchsorted(np.quantile(x, [0.25, 0.5, 0.75]), x) for x in (one - other, one + other)]
    joint = np.bincount(4 * rough[0] + rough[1], minlength=16)
    share = [np.bincount(x, minlength=4) / DRAWS for x in rough]
    assert chi_square(joint, np.outer(*share).ravel()) > ALARM


def test_small_noise_is_rounded_once():
    """Own and shared noise of 1/4 would both be 0 after rounding; their sum is above 1/2 in 8% of draws."""
    draws = noise.shared_gaussian(0.25, 0.25, 1)
    assert draws.dtype == np.int64
    ones = sum(int(noise.shared_gaussian(0.25, 0.25, 1)[0] != 0) for _ in range(2000))
    assert stats.binomtest(ones, 2000, 2 * stats.norm.sf(0.5 / np.hypot(0.25, 0.25))).pvalue > ALARM


def test_large_noise_does_not_wrap():
    # At 2^70 all three would fit into 64 bits in 6 of 1,000 runs; at 2^90 they do with a chance of 6e-9.
    draws = noise.shared_gaussian(2.0**50, 2.0**90, 3)
    assert draws.dtype == object
    assert max(abs(int(x - draws[0])) for x in draws) < 2**54
    assert noise.shared_gaussian(2.0**50, 2.0**45, 3).dtype == np.int64


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.inf, np.nan])
def test_deviations_are_positive_and_finite(wrong):
    with pytest.raises(InvalidArgument):
        noise.shared_gaussian(wrong, 1.0, 2)
    with pytest.raises(InvalidArgument):
        noise.shared_gaussian(1.0, wrong, 2)


# Window noise


def norm(vector):
    """The largest positive entry plus the largest negative one, without its sign."""
    return max(0, *vector) + max(0, *(-x for x in vector))


def masses(cells, scale, reach):
    """The law of window noise, from its definition, on all vectors with entries up to `reach`."""
    vectors = list(itertools.product(range(-reach, reach + 1), repeat=cells))
    weights = np.exp([-norm(vector) / scale for vector in vectors])
    return vectors, weights / weights.sum()


@pytest.mark.parametrize(
    ("cells", "scale"), [(2, 0.8), pytest.param(1, 1.3, marks=LONG), pytest.param(3, 0.6, marks=LONG)]
)
def test_windows_have_the_joint_law_of_the_norm(cells, scale, chi_square):
    """All vectors with entries up to 4, the others in one bin. Negative controls: another scale, and Laplace noise.

    The larger scale has a chance of 1e-13 or less to pass: one cell shows less of it than two, so it has 5,000 draws.
    """
    vectors, law = masses(cells, scale, 24 if cells < 3 else 10)
    number = {vector: i for i, vector in enumerate(vectors) if max(map(abs, vector)) <= 4}
    bins = {vector: i for i, vector in enumerate(number)}
    counts = np.zeros(len(bins) + 1)
    for _ in range(5000 if cells == 1 else 2500):
        counts[bins.get(tuple(noise.window_noise(scale, cells).tolist()), -1)] += 1

    def fit(law):
        chances = np.array([*(law[i] for i in number.values()), 0.0])
        chances[-1] = 1 - chances.sum()
        return chi_square(counts, chances)

    assert fit(law) > ALARM
    assert fit(masses(cells, scale * 1.25, 24 if cells < 3 else 10)[1]) < ALARM
    if cells > 1:
        laplace = np.exp([-sum(map(abs, vector)) / scale for vector in vectors])
        assert fit(laplace / laplace.sum()) < ALARM


@pytest.mark.parametrize(("cells", "scale"), [(1, 1.0), (2, 1.5), (3, 0.7)])
def test_the_tail_of_a_cell_is_that_of_the_norm(cells, scale):
    vectors, law = masses(cells, scale, 30 if cells < 3 else 14)
    first = np.array([vector[0] for vector in vectors])
    for k in (-2, 0, 1, 2, 5):
        with noise.precision(128):
            tail = float(noise.window_tail(cells, Fraction(scale), k))
        assert tail == pytest.approx(law[first >= k].sum(), abs=1e-6)


@pytest.mark.parametrize(("cells", "scale"), [(24, 1.0), (24, 3.0 * 2**20), (365, 0.4), (24, 2.0**61)])
def test_windows_for_many_cells_have_their_spread(cells, scale):
    """The mean of 200 lengths L is within 6 of its standard errors of its expectation, about (d + 2) scales."""
    lengths = np.array([shared._length(cells + 1, scale) for _ in range(200)], float)
    expected = scale * (cells + 2)
    assert abs(lengths.mean() - expected) < 6 * scale * np.sqrt(cells + 2) / np.sqrt(200) + 1
    assert abs(lengths.mean() - expected * 1.1) > 6 * scale * np.sqrt(cells + 2) / np.sqrt(200) or cells < 100
    vector = noise.window_noise(scale, cells)
    assert vector.shape == (cells,)
    assert int(max(vector)) - int(min(vector)) < max(lengths) * 3
    assert vector.dtype == (object if scale > 2**60 else np.int64)


def test_small_scales_have_no_noise():
    assert not noise.window_noise(0.01, 5).any()


def test_places_in_a_large_window_are_uniform(chi_square):
    for choices in (7, 2**40 + 1, 3 * 2**70):
        draws = shared._uniform(choices, 20_000)
        assert min(draws) >= 0
        assert max(draws) < choices
        counts = np.bincount([draw * 7 // choices for draw in draws], minlength=7)
        assert chi_square(counts, np.full(7, 1 / 7)) > ALARM
        lowest = np.bincount([draw % 7 for draw in draws], minlength=7)
        assert chi_square(lowest, np.full(7, 1 / 7)) > ALARM
