"""The laws, held against scipy's.
Each p-value below 1e-6 after correction for the number of tests is a failure.
"""

import numpy as np
import pytest
from scipy import stats

from dpframe import noise
from dpframe.noise.inversion import BLOCK

DRAWS = 1_000_000
SCALES = [0.5, 0.8, 1.0, 2.5, 7.0, 20.0, 100.0, 999.0, 12_345.6, 100_000.0, 500_000.0, 1e6]
ALARM = 1e-6 / (12 * 3)


def rounded_laplace_cdf(scale, k):
    return stats.laplace.cdf(k + 0.5, scale=scale)


def rounded_gaussian_cdf(scale, k):
    return stats.norm.cdf(k + 0.5, scale=scale)


def discrete_laplace_cdf(scale, k):
    a = np.exp(-1 / scale)
    k = np.asarray(k, float)
    return np.where(k >= 0, 1 - a ** (np.abs(k) + (k >= 0)) / (1 + a), a ** np.abs(k) / (1 + a))


LAWS = {  # the sampler, the law of its whole numbers, and the real law beside it at large scales
    "rounded_laplace": (noise.rounded_laplace, rounded_laplace_cdf, stats.laplace),
    "rounded_gaussian": (noise.rounded_gaussian, rounded_gaussian_cdf, stats.norm),
    "discrete_laplace": (noise.discrete_laplace, discrete_laplace_cdf, stats.laplace),
}


def edges_for(draws, scale):
    """Integer right ends of about 200 bins over the draws, or one bin per integer."""
    low, high = (-6 * scale, 6 * scale) if scale > 16 else (-100, 100)
    return np.unique(np.floor(np.linspace(low, high, 201)))


def fit(draws, cdf, scale, chi_square, law_scale):
    edges = edges_for(draws, scale)
    counts = np.bincount(np.searchsorted(edges, draws), minlength=len(edges) + 1)
    cumulative = np.concatenate([[0.0], cdf(law_scale, edges), [1.0]])
    return chi_square(counts, np.diff(cumulative))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", SCALES)
def test_a_million_draws_fit_their_law_and_not_its_neighbours(law, scale, chi_square):
    draw, cdf, _ = LAWS[law]
    draws = draw(scale, DRAWS)
    assert draws.dtype == np.int64
    assert fit(draws, cdf, scale, chi_square, scale) > ALARM
    assert fit(draws, cdf, scale, chi_square, scale * 0.98) < ALARM
    assert fit(draws, cdf, scale, chi_square, scale * 1.02) < ALARM


@pytest.mark.parametrize("law", LAWS)
def test_one_scale_per_draw_gives_each_draw_its_own_law(law, chi_square):
    draw, cdf, _ = LAWS[law]
    scales = np.tile(np.array(SCALES), DRAWS // 12)
    draws = draw(scales, len(scales))
    for scale in SCALES:
        assert fit(draws[scales == scale], cdf, scale, chi_square, scale) > ALARM


@pytest.mark.one_in(3)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("exponent", [30, 31, 32, 45, 62])
def test_large_scales_fit_in_their_quantiles_and_their_last_bits(law, exponent, chi_square):
    scale, count = 1.37 * 2.0**exponent, 100_000
    draw, _, real = LAWS[law]
    draws = draw(scale, count)
    if exponent == 62:
        assert draws.dtype == object  # some do not fit into 64 bits, and none was wrapped
    inner = real.ppf(np.arange(1, 50) / 50) * scale
    places = np.searchsorted(inner, draws.astype(float))
    assert chi_square(np.bincount(places, minlength=50), np.full(50, 0.02)) > 1e-8
    for shift in {0, max(0, exponent - 33), max(0, exponent - 29)}:
        last = np.array([int(value) >> shift & 15 for value in draws])
        assert chi_square(np.bincount(last, minlength=16), np.full(16, 1 / 16)) > 1e-8


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [0.5, 3.0, 1000.0])
def test_zero_has_its_mass_and_the_signs_are_fair(law, scale):
    draw, cdf, _ = LAWS[law]
    draws = draw(scale, DRAWS)
    mass = float(cdf(scale, 0) - cdf(scale, -1))
    zeros = int((draws == 0).sum())
    assert stats.binomtest(zeros, DRAWS, mass).pvalue > 1e-8
    assert stats.binomtest(int((draws > 0).sum()), DRAWS - zeros, 0.5).pvalue > 1e-8


@pytest.mark.one_in(3)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("lag", [1, 2, BLOCK // 2, BLOCK])
def test_draws_that_are_apart_by_a_lag_are_independent(law, lag, chi_square):
    # The lag of half a block joins the two normals of one Box-Muller pair.
    draws = LAWS[law][0](1000.0, DRAWS)
    kind = np.searchsorted(np.quantile(draws, [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875]), draws)
    share = np.bincount(kind, minlength=8) / DRAWS
    joint = np.bincount(8 * kind[:-lag] + kind[lag:], minlength=64)
    assert chi_square(joint, np.outer(share, share).ravel()) > 1e-8


@pytest.mark.parametrize("law", LAWS)
def test_totals_of_neighbours_have_the_same_support_and_last_bits(law, chi_square):
    # Totals are integers; noise on total and on total + 1 ends in each pattern of bits equally
    # often.
    draws = LAWS[law][0](1e5, DRAWS)
    for total in (0, 1, 12_345):
        ends = np.bincount((total + draws) % 64, minlength=64)
        assert chi_square(ends, np.full(64, 1 / 64)) > 1e-8


def test_small_scales_give_zero_or_the_tail_that_is_due():
    assert not noise.rounded_laplace(1e-3, 1000).any()
    assert not noise.rounded_gaussian(1e-3, 1000).any()
    assert not noise.discrete_laplace(1e-3, 1000).any()
    draws = noise.rounded_laplace(0.05, DRAWS)
    assert stats.binomtest(int((draws != 0).sum()), DRAWS, np.exp(-10)).pvalue > 1e-8
