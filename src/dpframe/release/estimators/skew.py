"""Skewness: from noisy sums of distances from the middle of the bounds, of their squares and cubes, and a count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import Floats
from dpframe.plan import ReleasedColumn
from dpframe.release.estimators.base import Estimator, Interval, Noisy, half_width, real
from dpframe.release.estimators.fieller import ASIDE, farthest, reaches
from dpframe.release.estimators.influence import Parts
from dpframe.release.estimators.mean import mean_interval
from dpframe.release.estimators.variance import variance_interval
from dpframe.release.pricing import NoisePlan


class SkewEstimator(Estimator):
    """The third central moment over the cubed deviation, at most the largest skewness of as many values."""

    def value(self, output: ReleasedColumn, noisy: Noisy, plan: NoisePlan) -> Any:
        (_, total), (_, squares), (_, cubes), (_, count) = output.totals
        half, number = half_width(output), np.maximum(real(count, noisy), 1.0)
        first = np.clip(float(total.grid.centre - squares.about) + real(total, noisy) / number, -half, half)
        second = np.clip(float(squares.grid.centre) + real(squares, noisy) / number, 0.0, half**2)
        third = np.clip(float(cubes.grid.centre) + real(cubes, noisy) / number, -(half**3), half**3)
        return _ratio(output, third - 3 * first * second + 2 * first**3, second - first**2, number)

    def interval(
        self, output: ReleasedColumn, plan: NoisePlan, alpha: float, numbers: Floats, parts: Parts, rows: Floats | None
    ) -> Interval:
        """The ratios of third moments and variances that fit.

        Bound:  half of alpha is for the variance, and alpha/50 for the largest skewness of as many values as there may
                be. The rest is for the third moment: see `_third_moments`. With both in their intervals, the ratio is
                extreme at their ends. Where the variance may be too small to tell, any skewness fits
        """
        sums, count = output.totals[:2], output.totals[-1]
        variances = variance_interval(replace(output, totals=(*sums, count), ddof=0), plan, alpha / 2, parts)
        low, high = _third_moments(output, plan, alpha * (1 / 2 - ASIDE), parts)
        small, large = (variance**1.5 for variance in variances)
        most = _largest(parts[count[0]] + plan.of(count[1]).error(alpha * ASIDE))
        told = variances[0] > _least_variance(output)
        with np.errstate(divide="ignore", invalid="ignore"):
            lower = np.where(told, low / np.where(low < 0, small, large), -most)
            upper = np.where(told, high / np.where(high > 0, small, large), most)
        lower, upper = np.clip(lower, -most, most), np.clip(upper, -most, most)
        return np.minimum(lower, numbers), np.maximum(upper, numbers)

    def expected_error(self, output: ReleasedColumn, plan: NoisePlan, alpha: float, rows: float | None) -> float | None:
        """The largest skewness of as many values, twice: values that hardly differ have a skewness that is all noise.

        After a release, the interval is far narrower where the values fill their bounds.
        """
        if rows is None:
            return None
        count = output.totals[-1][1]
        return float(_largest(np.array(rows)) + _largest(np.array(rows + plan.of(count).error(alpha))))

    def constant_error(self, output: ReleasedColumn) -> float | None:
        """Not known before a release: `expected_error` holds for values that hardly differ."""
        return None

    def reach(self, output: ReleasedColumn) -> float:
        """One deviation, cubed, over itself: skewness has no unit."""
        return 1.0


def _third_moments(output: ReleasedColumn, plan: NoisePlan, alpha: float, parts: Parts) -> Interval:
    """The third central moments that fit, for any mean in its own interval (cube of the column unit).

    Write C + x, Q + y, S + z and N = n + w for the noisy sums of cubes, squares and distances from the middle, and the
    noisy count; q and s for the released ratios of Q and S; m for the distance of the true mean from the middle, and M
    for the third central moment. With T(m) = C - 3m·Q + 3m²·S - m³·N of the noisy sums,

    - T(m) - N·M = x - 3m·y + 3m²·z - (m³ + M)·w, since the sum of (value - mean)³ is n·M
    - T(m)/N - T(s)/N = -3(q - s²)(m - s) - (m - s)³, whatever m is

    With probability 1 - alpha/50 the mean is in its interval, which bounds the second line, and |m| in the first. The
    squares are measured from the centre c of their grid and the sum from a centre d beside the middle: the weight of w
    is then -3m·c + 3m²·d - m³ - M. The quantile of the sum of noises is a norm of the weights, so that larger weights
    never make it smaller, and it is convex in M: see `fieller`.
    """
    (name, total), (squares, square), (cubes, cube), (size, count) = output.totals
    half, about = half_width(output), float(square.about)
    number, shift, centre = parts[size], float(total.grid.centre - square.about), float(square.grid.centre)
    divisor = np.maximum(number, 1.0)
    first, second = parts[name] / divisor + shift, parts[squares] / divisor + centre
    middle = float(cube.grid.centre) + parts[cubes] / divisor - 3 * first * second + 2 * first**3
    near, far = (end - about for end in mean_interval(output, plan, alpha * ASIDE, parts))
    off = np.maximum(np.abs(first - near), np.abs(far - first))
    off = 3 * np.abs(second - first**2) * off + off**3
    widest = np.maximum(np.abs(near), np.abs(far))
    weight = 3 * widest * centre + 3 * widest**2 * abs(shift) + widest**3 + abs(float(cube.grid.centre))

    def fits(moment: Floats) -> NDArray[np.bool_]:
        terms = [
            (np.ones_like(moment), plan.of(cube)),
            (3 * widest, plan.of(square)),
            (3 * widest**2, plan.of(total)),
            (weight + np.abs(moment), plan.of(count)),
        ]
        return reaches((np.abs(moment - middle) - off) * number, terms, alpha * (1 - ASIDE)) | (number < 1)

    low, high = (np.clip(farthest(fits, middle, end), -(half**3), half**3) for end in (-(half**3), half**3))
    return low, high


def _ratio(output: ReleasedColumn, third: Any, variance: Any, number: Any) -> Any:
    """A skewness from central moments; 0 where the variance is too small to tell."""
    told, most = variance > _least_variance(output), _largest(number)
    return np.clip(np.where(told, third / np.where(told, variance, 1.0) ** 1.5, 0.0), -most, most)


def _largest(number: Any) -> Any:
    """The largest skewness of a number of values: (n - 2)/√(n - 1), where all but one are equal (Kirby 1974)."""
    return np.maximum(number - 2.0, 0.0) / np.sqrt(np.maximum(number - 1.0, 1.0))


def _least_variance(output: ReleasedColumn) -> float:
    """The variance below which rounding to the grids may move a skewness by 1 (square of the column unit).

    A row's value, square and cube are each off by at most half a step of its grid. For distances up to h from the
    middle, this moves the third central moment by at most (a + 3h·b + 3h²·c)/2, with the steps a of cubes, b of squares
    and c of values. Whole numbers that the grid holds are not rounded.
    """
    (_, total), (_, squares), (_, cubes), _ = output.totals
    half, rounded = half_width(output), 0.0 if total.is_exact else float(total.grid.step)
    moved = float(cubes.grid.step) + 3 * half * float(squares.grid.step) + 3 * half**2 * rounded
    return float((moved / 2) ** (2 / 3))
