"""The size of a sum of two independent noises: what the error of a ratio is made of."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

__all__ = ["gaussian_pair_error", "laplace_pair_error"]

Floats = NDArray[np.float64]


def gaussian_pair_error(first: Floats, second: Floats, alpha: float) -> Floats:
    """Smallest e with P[|X + Y| > e] <= alpha for independent normal X and Y.

    Input:  first, second: standard deviations >= 0 (any one unit), arrays of one shape; alpha in (0, 1)
    Output: array of that shape (same unit)
    Bound:  X + Y is normal with the root of the summed squares as its standard deviation
    Source: textbook
    Errors: none here

    >>> gaussian_pair_error(np.array([3.0]), np.array([4.0]), 0.05).round(4)
    array([9.7998])
    """
    return np.asarray(np.hypot(first, second) * NormalDist().inv_cdf(1 - alpha / 2))


def laplace_pair_error(first: Floats, second: Floats, alpha: float) -> Floats:
    """Smallest e with P[|X + Y| > e] <= alpha for independent Laplace X and Y.

    Input:  first, second: scales >= 0 (any one unit), arrays of one shape; alpha in (0, 1)
    Output: array of that shape (same unit), within 1e-9 relatively and never below
    Bound:  for scales a > b, P[|X + Y| > t] = (a² e^(-t/a) - b² e^(-t/b)) / (a² - b²), from the partial fractions of
            the characteristic function 1 / ((1 + a²s²)(1 + b²s²)). It grows with either scale, so scales closer than
            one part in a million are moved apart upward
    Source: Kotz, Kozubowski, Podgórski 2001, The Laplace Distribution, section 2.3
    Errors: none here

    >>> laplace_pair_error(np.array([1.0]), np.array([0.0]), 0.05).round(4)
    array([2.9957])
    """
    small, large = np.minimum(first, second), np.maximum(first, second)
    large = np.where((large > 0) & (small > large * (1 - 1e-6)), small * (1 + 2e-6), large)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        part = np.where(large > 0, small / large, 0.0)  # scales in units of the larger one: 1 and part

        def tail(t: Floats) -> Floats:
            rest = np.where(part > 0, part**2 * np.exp(-t / np.maximum(part, 1e-300)), 0.0)
            return np.asarray((np.exp(-t) - rest) / (1 - part**2))

        low, high = np.zeros_like(part), np.full_like(part, 2 * math.log(4 / alpha) + 4)
        for _ in range(60):
            middle = (low + high) / 2
            enough = tail(middle) <= alpha
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(high * large * (1 + 1e-9))
