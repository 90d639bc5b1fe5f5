"""Sums of noises against laws that are known another way."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpframe.theory.formulas.error import (
    gaussian_sum_reaches,
    laplace_sum_reaches,
    laplace_total_error,
    whole_total_error,
)


def quantile(scales, alpha, whole=None):
    """The size that a sum of Laplace noises reaches with probability alpha."""
    low, high = 0.0, 1e5
    for _ in range(90):
        middle = (low + high) / 2
        step = None if whole is None else (np.array([whole[0]]), whole[1])
        yes = laplace_sum_reaches(np.array([middle]), [np.array([s]) for s in scales], alpha, step)[
            0
        ]
        low, high = (middle, high) if yes else (low, middle)
    return high


def tail(size, scales):
    """P[|X| >= size], by the characteristic function: 1 - 2/π ∫ sin(s·size)/s · φ(s) ds."""
    s = np.linspace(1e-9, 400 / max(scales), 400_001)
    values = np.sin(s * size) / s / np.prod([1 + (b * s) ** 2 for b in scales], axis=0)
    return (
        1 - 2 / math.pi * np.trapezoid(values, s)
        if hasattr(np, "trapezoid")
        else 1 - 2 / math.pi * np.trapz(values, s)
    )


@pytest.mark.parametrize(
    "scales", [(1.0, 0.3), (1.0, 1.0), (2.0, 1.0, 0.5), (1.0, 1.0, 1.0), (1.0, 1.0001, 0.9999)]
)
@pytest.mark.parametrize("alpha", [0.3, 0.05])
def test_sums_of_laplace_noises_have_the_stated_tails(scales, alpha):
    size = quantile(scales, alpha)
    assert alpha * 0.99 <= tail(size, scales) <= alpha * (1 + 1e-4)


@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6])
def test_one_laplace_noise_has_its_own_quantile(alpha):
    assert quantile([3.0], alpha) == pytest.approx(3 * math.log(1 / alpha), rel=1e-9)
    assert quantile([3.0, 0.0, 0.0], alpha) == pytest.approx(3 * math.log(1 / alpha), rel=1e-9)


@pytest.mark.parametrize(
    ("step", "scale"), [(1.0, 2.0), (0.5, 2.0), (3.0, 0.8), (1e-9, 3.0), (40.0, 1.5)]
)
@pytest.mark.parametrize("scales", [(1.0,), (0.4, 2.0)])
def test_a_discrete_noise_beside_is_taken_as_it_is(step, scale, scales):
    a = math.exp(-1 / scale)
    k = np.arange(-400, 401)
    law = (1 - a) / (1 + a) * a ** np.abs(k)
    for size in (0.3, 1.0, 2.2, 7.0, 45.0):
        exact = 0.0
        for i, b in enumerate(scales):  # a mixture, as the sum of the continuous ones is
            weight = math.prod(b**2 / (b**2 - c**2) for j, c in enumerate(scales) if j != i)
            shifted = np.abs(step * k)
            near = np.exp(-size / b) * np.cosh(np.minimum(shifted, size) / b)
            far = 1 - np.exp(-shifted / b) * np.sinh(min(size / b, 300))
            exact += weight * float(law @ np.where(shifted <= size, near, far))
        reached = [
            laplace_sum_reaches(
                np.array([size]),
                [np.array([b]) for b in scales],
                exact * factor,
                (np.array([step]), scale),
            )[0]
            for factor in (1 - 1e-6, 1 + 1e-6)
        ]
        assert reached == [True, False]


def test_normal_noises_add_their_squares():
    size = np.array([9.799, 9.7999, 0.0])
    deviations = [np.full(3, 3.0), np.full(3, 4.0)]
    assert gaussian_sum_reaches(size, deviations, 0.05).tolist() == [True, False, True]


def test_without_noise_only_nothing_is_reached():
    size, none = np.array([-1.0, 0.0, 1e-9]), [np.zeros(3)]
    assert laplace_sum_reaches(size, none, 0.05).tolist() == [True, True, False]
    assert gaussian_sum_reaches(size, none, 0.05).tolist() == [True, True, False]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("number", [1, 2, 5, 40])
@pytest.mark.parametrize("alpha", [0.3, 0.01])
def test_a_total_of_equal_noises_has_the_stated_tail(number, alpha):
    error = laplace_total_error(2.0, number, alpha)
    if number == 1:
        assert error == pytest.approx(2 * math.log(1 / alpha))
    else:
        assert tail(error, (2.0,) * number) == pytest.approx(alpha, rel=1e-4)


def test_a_total_of_very_many_noises_is_nearly_normal():
    assert laplace_total_error(1.0, 20_000, 0.05) == pytest.approx(1.959964 * 200, rel=1e-3)


@pytest.mark.parametrize("discrete", [True, False])
@pytest.mark.parametrize("scale", [0.2, 1.0, 6.0])
@pytest.mark.parametrize("number", [1, 2, 9])
@pytest.mark.parametrize("alpha", [0.3, 0.05, 1e-6])
def test_a_total_of_integer_noises_by_convolution(discrete, scale, number, alpha):
    a, k = math.exp(-1 / scale), np.arange(1, 400)
    side = (1 - a) / (1 + a) * a**k if discrete else (1 - a) / 2 * a ** (k - 0.5)
    one = np.concatenate([side[::-1], [1 - 2 * side.sum()], side])
    law = np.ones(1)
    for _ in range(number):
        law = np.convolve(law, one)
    half = len(law) // 2
    beyond = 2 * (law[half:].sum() - np.cumsum(law[half:]))
    assert whole_total_error(scale, number, alpha, discrete=discrete) == int(
        np.argmax(beyond <= alpha)
    )


def test_a_law_that_is_too_wide_for_a_table():
    assert whole_total_error(1e6, 10, 0.05, discrete=True) is None
