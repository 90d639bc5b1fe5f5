"""Window noise: its ε by brute force over vectors of one and of two
units, and the error of one cell.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpframe import noise
from dpframe.errors import InvalidArgument, InvalidPrice
from dpframe.theory.formulas.loss import noise_error, window_error, window_scale, window_tail_real

REACH = 6


def log_law(vectors, scale):
    """Logarithms of the masses, up to a constant: -N(z) / scale."""
    return -(np.maximum(vectors.max(axis=1), 0) + np.maximum((-vectors).max(axis=1), 0)) / scale


def worst(changes, scale, cells):
    """The largest logarithm of a ratio of masses over all vectors up to REACH,
    for some changes of the totals.
    """
    outputs = np.array(list(itertools.product(range(-REACH, REACH + 1), repeat=cells)))
    return max(
        np.abs(log_law(outputs, scale) - log_law(outputs - change, scale)).max()
        for change in changes
    )


@pytest.mark.parametrize(
    ("cells", "linf"), [(1, 3), (2, 1), (2, 3), (3, 1), pytest.param(3, 3, marks=pytest.mark.long)]
)
def test_the_worst_unit_costs_what_is_claimed(cells, linf):
    units = [np.array(v) for v in itertools.product(range(linf + 1), repeat=cells)]
    scale = window_scale(linf, Fraction(7, 10))
    assert worst(units, scale, cells) == pytest.approx(0.7)
    two = window_scale(linf, Fraction(7, 10), vectors=2)
    apart = [a - b for a, b in itertools.product(units, units)]
    assert worst(apart, two, cells) <= 0.7 * (1 + 1e-12)
    if cells > 1:
        assert worst(apart, two, cells) == pytest.approx(0.7)
        # negative control: the scale of one unit, for two
        assert worst(apart, scale, cells) > 0.7 * 1.9


def test_numbers_of_both_signs_are_not_covered():
    """Negative control: a unit that raises one group and lowers another costs twice as much."""
    assert worst([np.array([1, -1])], window_scale(1, Fraction(7, 10)), 2) == pytest.approx(1.4)


@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6])
@pytest.mark.parametrize(("cells", "scale"), [(1, 1.0), (24, 1.0), (24, 2.0**20), (100, 3.3)])
def test_the_error_is_the_smallest_one(cells, scale, alpha):
    def beyond(e, per):
        low, high = e * per + 1, (e + 1) * per
        with noise.precision(128):
            return float(sum(noise.window_tail(cells, Fraction(scale), k) for k in (low, high)))

    for per in (1, 2**20) if scale > 1000 else (1,):
        error = window_error(cells, scale, alpha, per=per)
        assert beyond(error, per) <= alpha
        assert error == 0 or beyond(error - 1, per) > alpha


def test_one_cell_has_the_laplace_law():
    assert [window_error(1, 5.0, a) for a in (0.3, 0.05, 1e-4)] == [
        noise_error("discrete_laplace", 5.0, a) for a in (0.3, 0.05, 1e-4)
    ]
    assert window_tail_real(1, 3.0) == pytest.approx(math.exp(-3) / 2)


@pytest.mark.parametrize("cells", [1, 5, 24])
def test_the_law_on_the_reals_is_the_limit_of_the_law_on_integers(cells):
    for reach in (0.5, 3.0, 20.0):
        with noise.precision(128):
            whole = float(noise.window_tail(cells, Fraction(2**24), round(reach * 2**24)))
        assert window_tail_real(cells, reach) == pytest.approx(whole, rel=1e-5)


def test_arguments_are_checked():
    with pytest.raises(InvalidArgument):
        window_error(0, 1.0, 0.05)
    with pytest.raises(InvalidArgument):
        window_error(noise.MOST_CELLS + 1, 1.0, 0.05)
    with pytest.raises(InvalidPrice):
        window_scale(1, 0)
    assert window_scale(0, 1) == 0
