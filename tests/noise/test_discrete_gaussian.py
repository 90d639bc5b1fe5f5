import numpy as np
import pytest

from dpframe.errors import InvalidArgument
from dpframe.noise import discrete_gaussian


@pytest.mark.parametrize("scale", [0.3, 0.5, 1.0, 2.5, 40.0, 1234.5])
def test_draws_fit_their_law_and_not_its_neighbours(scale, chi_square):
    draws = discrete_gaussian(scale, 300_000)
    reach = int(9 * scale) + 2
    support = np.arange(-reach, reach + 1)
    width = max(1, int(scale / 8))
    counts = np.bincount((draws + reach) // width, minlength=2 * reach // width + 1)

    def law(sigma):
        weight = np.exp(-((support / sigma) ** 2) / 2)
        return np.bincount((support + reach) // width, weights=weight / weight.sum())

    assert chi_square(counts, law(scale)) > 1e-8
    if scale >= 0.5:
        assert chi_square(counts, law(scale * 0.97)) < 1e-8
        assert chi_square(counts, law(scale * 1.03)) < 1e-8


def test_small_and_large_scales():
    assert not discrete_gaussian(1e-3, 100).any()
    assert discrete_gaussian(5.0, 0).shape == (0,)
    draws = discrete_gaussian(2.0**60, 300)
    assert abs(np.mean((draws.astype(float) / 2.0**60) ** 2) - 1) < 0.6


@pytest.mark.parametrize("scale", [0.0, 1e-200, 2.0**63, np.ones(3), float("nan")])
def test_other_scales_are_refused(scale):
    with pytest.raises(InvalidArgument):
        discrete_gaussian(scale, 3)
