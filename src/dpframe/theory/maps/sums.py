"""How large a sum of independent noises can be: what the error of a ratio is made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

__all__ = ["gaussian_sum_reaches", "laplace_sum_reaches"]

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
_APART = 1 + 1e-3  # scales nearer than this to each other are moved apart, upward


def gaussian_sum_reaches(size: Floats, deviations: Sequence[Floats], alpha: float) -> Booleans:
    """Whether P[|X| >= size] > alpha for a sum X of independent normal noises.

    Input:  size and standard deviations >= 0 (any one unit), arrays of one shape; alpha in (0, 1)
    Output: array of that shape
    Bound:  X is normal with the root of the summed squares as its standard deviation
    Source: textbook
    Errors: none here

    >>> gaussian_sum_reaches(np.array([9.79, 9.81]), [np.array([3.0, 3.0]), np.array([4.0, 4.0])], 0.05)
    array([ True, False])
    """
    width = np.zeros_like(size, np.float64)
    for deviation in deviations:
        width = np.hypot(width, deviation)  # not the root of squares, which may be beyond floats
    return np.asarray((size <= 0) | (size < width * NormalDist().inv_cdf(1 - alpha / 2)))


def laplace_sum_reaches(
    size: Floats, scales: Sequence[Floats], alpha: float, whole: tuple[Floats, float] | None = None
) -> Booleans:
    """Whether P[|X| >= size] > alpha for a sum X of independent Laplace noises, of which one may be discrete.

    Input:  size and scales >= 0 (any one unit), arrays of one shape; alpha in (0, 1); whole: (step, scale) of a noise
            that is step · K, with K discrete Laplace of that scale (in steps)
    Output: array of that shape; True where a size is within 0.2% of the smallest one for which it is False
    Bound:  for different scales b_i, P[|X| >= t] = Σ A_i e^(-t/b_i) with A_i = Π_(j≠i) b_i² / (b_i² - b_j²), from the
            partial fractions of the characteristic function Π 1 / (1 + b_i²s²). It grows with every scale (each noise
            is symmetric and unimodal), so scales that are too near for these differences are moved apart upward. With
            step · K beside, X has that mixture of laws of Z_i + step · K: see `_with_steps`
    Source: Kotz, Kozubowski, Podgórski 2001, The Laplace Distribution, section 2.3; the sums are ours
    Errors: none here

    >>> laplace_sum_reaches(np.array([2.99, 3.0]), [np.ones(2), np.zeros(2)], 0.05)
    array([ True, False])
    """
    # In units of the largest scale, from the smallest up.
    size = np.asarray(size, np.float64)
    steps = np.zeros_like(size) if whole is None else whole[0]
    largest = np.maximum(np.max(scales, axis=0), 1e-12 * steps)
    unit = np.where(largest > 0, largest, 1.0)
    ordered = np.sort(np.maximum(np.stack(scales), largest * 1e-12) / unit, axis=0)
    for i in range(1, len(ordered)):
        ordered[i] = np.maximum(ordered[i], ordered[i - 1] * _APART)
    squares = ordered**2
    tail = np.zeros_like(size)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        for i, scale in enumerate(ordered):
            weight = np.ones_like(size)
            for j, square in enumerate(squares):
                if j != i:
                    weight = weight * squares[i] / (squares[i] - square)
            t = np.maximum(size, 0.0) / unit / scale
            tail += weight * (np.exp(-t) if whole is None else _with_steps(t, steps / unit / scale, whole[1]))
    return np.asarray((size <= 0) | ((tail > alpha) & (largest > 0)))


def _with_steps(t: Floats, step: Floats, scale: float) -> Floats:
    """P[|Z + step · K| >= t] for Laplace Z of scale 1 and discrete Laplace K of this scale.

    P[|Z + u| >= t] is e^-t cosh u where |u| <= t, else 1 - e^-|u| sinh t. With P[K = k] = p·a^|k|, a = e^(-1/scale),
    p = (1 - a) / (1 + a), the sum over k is made of four geometric series, up to and above k = ⌊t / step⌋.
    """
    step = np.maximum(step, 1e-12 * np.maximum(t, 1.0))
    last = np.floor(t / step)
    rate, p = 1 / scale, math.tanh(1 / (2 * scale))
    both, beyond = -rate - step, (last + 1) * -rate
    outside = -np.expm1(both)
    inside = p * (np.exp(-t) + _series(step - rate, last, t) + _series(both, last, t))
    far = 2 * np.exp(beyond) / (1 + math.exp(-rate))
    return np.asarray(inside + far - p * (np.exp(t + (last + 1) * both) - np.exp((last + 1) * both - t)) / outside)


def _series(log: Floats, last: Floats, t: Floats) -> Floats:
    """e^-t · Σ_(k=1..last) e^(k·log), whatever the sign of the logarithm."""
    slope = np.maximum(np.abs(log), 1e-12)
    first = np.where(log > 0, last, 1.0) * log
    return np.asarray(np.exp(first - t) * np.expm1(-last * slope) / np.expm1(-slope))
