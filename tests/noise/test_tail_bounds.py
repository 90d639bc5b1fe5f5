from fractions import Fraction

import pytest
from scipy import stats

from dpframe.errors import InvalidArgument
from dpframe.noise import precision
from dpframe.noise import tail_bounds as tails


@pytest.mark.parametrize("scale", [1e-3, 0.5, 1, 2.5, Fraction(100, 3), 1e6])
@pytest.mark.parametrize("at", [-3, -0.5, 0, 0.5, 1, 3.3, 8])
def test_real_tails_agree_with_scipy(scale, at):
    x = at * float(scale)
    assert tails.laplace_tail(scale, x) == pytest.approx(
        stats.laplace.sf(x, scale=float(scale)), rel=1e-12
    )
    assert tails.gaussian_tail(scale, x) == pytest.approx(
        stats.norm.sf(x, scale=float(scale)), rel=1e-12
    )


@pytest.mark.parametrize("scale", [0.3, 1, 7.5, Fraction(100, 3)])
def test_integer_tails_are_sums_of_masses(scale):
    s = float(scale)
    for k in range(-5, 12):
        assert tails.family_tail("laplace", scale, k) == pytest.approx(
            stats.laplace.sf(k - 0.5, scale=s), rel=1e-12
        )
        assert tails.family_tail("gaussian", scale, k) == pytest.approx(
            stats.norm.sf(k - 0.5, scale=s), rel=1e-12
        )
        assert tails.family_tail("discrete_laplace", scale, k) == pytest.approx(
            stats.dlaplace.sf(k - 1, 1 / s), rel=1e-12
        )


def test_tails_of_both_sides_sum_to_one():
    for tail in tails.TAILS.values():
        for k in (-4, 0, 1, 9):
            with precision(200):
                assert (tail(Fraction(7, 2), k) + tail(Fraction(7, 2), 1 - k)).overlaps(
                    tail(Fraction(1), 1) * 0 + 1
                )


def test_far_tails_keep_their_relative_accuracy():
    assert tails.gaussian_tail(1, 19) == pytest.approx(8.5e-81, rel=0.01)
    assert tails.laplace_tail(1, 19) == pytest.approx(2.801398224505647e-09, rel=1e-14)
    assert tails.gaussian_tail(1, 10**6) == 5e-324  # rounded up, never 0


def test_arguments_that_make_no_sense_are_refused():
    for call in (
        lambda: tails.laplace_tail(0, 1),
        lambda: tails.gaussian_tail(-1, 1),
        lambda: tails.family_tail("laplace", 1, 1.5),
        lambda: tails.family_tail("gaussian", 1, "2"),
        lambda: tails.family_tail("cauchy", 1, 2),
        lambda: tails.gaussian_tail(1, float("nan")),
    ):
        with pytest.raises(InvalidArgument):
            call()
