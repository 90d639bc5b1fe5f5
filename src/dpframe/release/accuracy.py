"""How far a released number may be from what it stands for, at a confidence, before and after the release.

The error is that of the noise: of a total under the stated limits and bounds, not of what limits and bounds leave out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument
from dpframe.plan.measures import Measure, Output
from dpframe.release.calibrate import NoisePlan
from dpframe.release.reconcile import error_of_part
from dpframe.theory.maps.margins import sum_error
from dpframe.theory.maps.pairs import gaussian_pair_error, laplace_pair_error

__all__ = ["check_alpha", "error_of", "error_of_sum"]

Floats = NDArray[np.float64]
Parts = Mapping[str, Floats]


def check_alpha(alpha: object) -> float:
    """A probability of missing, strictly between 0 and 1. Errors: InvalidArgument."""
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 < alpha < 1:
        raise InvalidArgument("alpha must be between 0 and 1; 0.05 gives 95% confidence.")
    return float(alpha)


def error_of(output: Output, noise: NoisePlan, alpha: float, size: int, parts: Parts) -> Floats:
    """Error of a released column, per group, exceeded with probability at most alpha.

    Input:  size: number of groups; parts: the noisy totals under a derived column, by name (column unit); before a
            release, only a count that is assumed
    Output: array of `size` (column unit)
    Bound:  a quantile is right in rank, and how far that is in value depends on the data: NaN. Counts and sums: the
            noise's own. Means and variances: see `_ratio_error`; a variance is a second moment
            less a squared mean, and each of the two is within its error with probability 1 - alpha/2
    Source: the identities are ours
    """
    if output.formula == "quantile":
        return np.full(size, math.nan)
    if output.formula in ("count", "sum"):
        return np.full(size, _direct_error(output, noise, alpha))
    half = _half_width(output)
    if output.formula == "mean":
        return np.asarray(np.minimum(_ratio_error(output, noise, alpha, parts, 0, half), 2 * half))
    first = _ratio_error(output, noise, alpha / 2, parts, 0, half)
    second = _ratio_error(output, noise, alpha / 2, parts, 1, half**2 / 2)
    mean = _ratio(output, parts, 0, half)
    variance = np.minimum(second + (2 * np.abs(mean) + first) * first, half**2)
    if output.formula == "var":
        return np.asarray(variance)
    moment = _ratio(output, parts, 1, half**2 / 2) + half**2 / 2
    value = np.clip(moment - mean**2, 0, half**2)
    up = np.sqrt(value + variance) - np.sqrt(value)
    down = np.sqrt(value) - np.sqrt(np.maximum(value - variance, 0.0))
    return np.asarray(np.minimum(np.maximum(up, down), half))


def _direct_error(output: Output, noise: NoisePlan, alpha: float) -> float:
    """Of a count or sum. One that carries fraction bits is rounded after the noise, which moves it by at most 1/2."""
    ((_, measure),) = output.measures
    if noise.reconciled:
        return error_of_part(output, noise, "cell", alpha)
    rounding = 0.5 if output.whole and measure.fraction else 0.0
    return noise.of(measure).error(alpha) + rounding


def error_of_sum(output: Output, noise: NoisePlan, alpha: float, number: int) -> float:
    """Error of a margin: of the sum of several released counts or sums of one column, all with the same noise.

    Bound:  see `sum_error`. Rounding each noise to its grid adds at most half a step in size, which is counted as a
            normal part of variance 1/4 step², three times what a uniform error of that size has; a count that is
            rounded after its noise likewise. Where true and released are whole, so is what lies between them
    """
    ((_, measure),) = output.measures
    drawn = noise.of(measure)
    if drawn.family == "none":
        return 0.0
    unit = float(measure.unit)
    normal = (drawn.scale * unit) ** 2 if drawn.family == "gaussian" else 0.0
    steps = unit**2 * (drawn.family != "discrete_laplace") + (1.0 if output.whole and measure.fraction else 0.0)
    scales = [] if drawn.family == "gaussian" else [(drawn.scale * unit, number)]
    error = sum_error(number * (normal + steps / 4), scales, alpha)
    return float(math.floor(error)) if output.whole and not measure.fraction else error


def _half_width(output: Output) -> float:
    assert output.bounds is not None
    return float(Fraction(output.bounds.upper) - Fraction(output.bounds.lower)) / 2


def _ratio(output: Output, parts: Parts, part: int, reach: float) -> Floats:
    """A released mean, from its centre: sum / count, within reach; as far as it can be where the sum is not known."""
    count = np.maximum(parts[output.measures[-1][0]], 1.0)
    name = output.measures[part][0]
    return np.clip(parts[name] / count, -reach, reach) if name in parts else np.full(count.shape, reach)


def _ratio_error(output: Output, noise: NoisePlan, alpha: float, parts: Parts, part: int, reach: float) -> Floats:
    """Error of sum / count, exceeded with probability at most alpha; `reach` is how far the true ratio can be from 0.

    With released sum S + z and count N = n + w, N · (released - true) = z - true · w exactly. So the true ratio is in
    the set where |released - true| · N is at most the quantile of |z - true · w|, with probability 1 - alpha
    (Fieller 1954). The error given is the largest distance in that set, found by going down from the largest one there
    can be; moving the released value into its bounds only brings it closer.
    """
    total, count = output.measures[part][1], output.measures[-1][1]
    number = parts[output.measures[-1][0]]
    released = np.abs(_ratio(output, parts, part, reach))
    error = np.full(number.shape, 2 * reach)
    for _ in range(8):
        size = _pair(noise, total, count, np.minimum(released + error, reach), alpha)
        error = np.minimum(error, np.divide(size, number, out=np.full(number.shape, math.inf), where=number > 0))
    return error


def _pair(noise: NoisePlan, total: Measure, count: Measure, weight: Floats, alpha: float) -> Floats:
    """Quantile of |z - weight · w|.

    An integer noise is a real one, rounded by at most half a grid step; a discrete Laplace draw is smaller than a
    rounded one, in distribution.
    """
    first, second = noise.of(total), noise.of(count)
    units = [float(drawn.paid.measure.unit) for drawn in (first, second)]
    one, two = (np.broadcast_to(d.scale * u, weight.shape) for d, u in zip((first, second), units, strict=True))
    pair = gaussian_pair_error if "gaussian" in (first.family, second.family) else laplace_pair_error
    return np.asarray(pair(one, weight * two, alpha) + (units[0] + weight * units[1]) / 2)
