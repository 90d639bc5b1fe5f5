"""How far a released number may be from the total it stands for, at a confidence, before and after the release.

The error is that of the noise: of a total under the stated limits and bounds, not of what limits and bounds leave out.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument
from dpframe.plan.aggregates import Output
from dpframe.release.calibrate import NoisePlan

__all__ = ["check_alpha", "direct_error", "mean_error"]

Floats = NDArray[np.float64]


def check_alpha(alpha: object) -> float:
    """A probability of missing, strictly between 0 and 1. Errors: InvalidArgument."""
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 < alpha < 1:
        raise InvalidArgument("alpha must be between 0 and 1; 0.05 gives 95% confidence.")
    return float(alpha)


def direct_error(output: Output, noise: NoisePlan, alpha: float) -> float:
    """Error of a released count or sum (column unit), exceeded with probability at most alpha.

    A count or a whole sum that carries fraction bits is rounded after the noise, which moves it by at most 1/2.
    """
    ((_, measure),) = output.measures
    rounding = 0.5 if output.whole and measure.fraction else 0.0
    return noise.of(measure).error(alpha) + rounding


def mean_error(
    output: Output, noise: NoisePlan, alpha: float, rows: Floats, distance: Floats | float | None = None
) -> Floats:
    """Error of a mean, per group, exceeded with probability at most alpha.

    Input:  rows: a number of rows that the true one is surely not below, given the error of the count (rows); distance:
            |released mean - centre| (column unit), the half-width of the bounds when nothing is released yet
    Output: array shaped like rows (column unit); the width of the bounds where nothing smaller can be said
    Bound:  with released sum S + z and count n + w, released - true = (z - (released - centre)·w) / n, so within
            (|z| + distance·|w|) / n; each of z and w is within its own error with probability 1 - alpha/2. Moving the
            released mean into its bounds only brings it closer
    Source: the identity is ours; the union bound over the two noises
    """
    (_, total), (_, count) = output.measures
    assert output.bounds is not None
    width = float(Fraction(output.bounds.upper) - Fraction(output.bounds.lower))
    off_total, off_count = (noise.of(m).error(alpha / 2) for m in (total, count))
    off = off_total + (width / 2 if distance is None else np.asarray(distance)) * off_count
    error: Floats = np.divide(off, rows, out=np.full(rows.shape, math.inf), where=rows > 0)
    return np.minimum(error, width)
