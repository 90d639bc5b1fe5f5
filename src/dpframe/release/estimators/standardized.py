"""Skewness and kurtosis, which are standardised moments: noisy sums of powers, and a count."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from math import comb
from typing import Any, ClassVar

import numpy as np

from dpframe.arrays import Booleans, Floats
from dpframe.plan import ReleasedColumn
from dpframe.release.estimators.base import Estimator, Interval, Noisy, half_width, real, widened
from dpframe.release.estimators.fieller import ASIDE, farthest, reaches
from dpframe.release.estimators.influence import NoisyColumn
from dpframe.release.estimators.mean import mean_that_fits
from dpframe.release.estimators.variance import variance_interval


class StandardizedEstimator(Estimator):
    """A central moment over the same power of the deviation, inside what as many values can have.

    `power` is that of the moment, and `normal` is taken from the ratio: what a normal law has.
    """

    power: ClassVar[int]
    normal: ClassVar[float] = 0.0

    @abstractmethod
    def range(self, number: Any) -> tuple[Any, Any]:
        """The least and the largest value of the statistic for a number of values."""

    def value(self, output: NoisyColumn, noisy: Noisy) -> Any:
        *sums, (_, count) = output.totals
        half, number = half_width(output), np.maximum(real(count, noisy), 1.0)
        ratios = []
        for power, (_, total) in enumerate(sums, 1):
            ratio = _centre(output, power) + real(total, noisy) / number
            ratios.append(np.clip(ratio, 0.0 if power % 2 == 0 else -(half**power), half**power))
        variance, moment = (_about_mean(ratios, power) for power in (2, self.power))
        told = variance > _least_variance(output)
        shape = np.where(
            told, moment / np.where(told, variance, 1.0) ** (self.power / 2) - self.normal, 0.0
        )
        return np.clip(shape, *self.range(number))

    def interval(
        self, output: NoisyColumn, alpha: float, numbers: Floats, rows: Floats | None
    ) -> Interval:
        """The ratios of central moments and variances that fit.

        Bound:  half of alpha is for the variance, and alpha/50 for the range of as many values as
                there may be. The rest is for the central moment: see `_central_moments`. With both
                in their intervals, the ratio is extreme at their ends. Where the variance may be
                too small to tell, any value of the range fits
        """
        sums, count = output.totals[:2], output.totals[-1]
        variances = variance_interval(replace(output, totals=(*sums, count), ddof=0), alpha / 2)
        low, high = _central_moments(output, alpha * (1 / 2 - ASIDE))
        small, large = (variance ** (self.power / 2) for variance in variances)
        least, most = self.range(output[count[0]] + output.noise(count[1]).error(alpha * ASIDE))
        told = variances[0] > _least_variance(output)
        with np.errstate(divide="ignore", invalid="ignore"):
            lower = np.where(told, low / np.where(low < 0, small, large) - self.normal, least)
            upper = np.where(told, high / np.where(high > 0, small, large) - self.normal, most)
        return widened((np.clip(end, least, most) for end in (lower, upper)), numbers)

    def widest(self, output: NoisyColumn) -> tuple[Any, Any] | None:
        """Ends that as many values can reach, or three where they are fewer."""
        return self.range(np.maximum(output[output.totals[-1][0]], 3.0))

    def expected_error(self, output: NoisyColumn, alpha: float, rows: float | None) -> float | None:
        """The width of the range: values that hardly differ have a statistic that is all noise.

        After a release, the interval is far narrower where the values fill their bounds.
        """
        if rows is None:
            return None
        error = output.noise(output.totals[-1][1]).error(alpha)
        (low, high), (least, most) = self.range(np.array(rows)), self.range(np.array(rows + error))
        return float(max(most - low, high - least))

    def constant_error(self, output: ReleasedColumn) -> float | None:
        """Not known before a release: `expected_error` holds for values that hardly differ."""
        return None

    def reach(self, output: ReleasedColumn) -> float:
        """One deviation over itself: a standardised moment has no unit."""
        return 1.0


class SkewEstimator(StandardizedEstimator):
    """The third central moment over the cubed deviation."""

    power = 3

    def range(self, number: Any) -> tuple[Any, Any]:
        """±(n - 2)/√(n - 1), where all values but one are equal (Kirby 1974)."""
        most = np.maximum(number - 2.0, 0.0) / np.sqrt(np.maximum(number - 1.0, 1.0))
        return -most, most


def _centre(output: ReleasedColumn, power: int) -> float:
    """The place from which the powers of distances from the middle are measured in a total."""
    total = output.totals[power - 1][1]
    return float(total.grid.centre - (output.totals[1][1].about if power == 1 else 0))


def _about_mean(ratios: list[Any], power: int) -> Any:
    """A central moment from means of the first and higher powers of distances from a place."""
    mean, moment = ratios[0], ratios[power - 1]
    for k in range(power - 1, 1, -1):
        moment = moment + comb(power, k) * (-mean) ** (power - k) * ratios[k - 1]
    return moment + (-1) ** power * (1 - power) * mean**power


def _central_moments(output: NoisyColumn, alpha: float) -> Interval:
    """The central moments that fit, for any mean in its own interval (a power of the column unit).

    Let p be the power of the moment. Write A_k + x_k for the noisy sum of the k-th powers of
    distances from the middle, and N = n + w for the noisy count; r_k for the released ratios, and s
    for r_1; m for the distance of the true mean from the middle, and M for the central moment. With
    weights v_k = (p over k)·(-m)^(p - k) and T(m) = Σ v_k·A_k of the noisy sums, where A_0 is N,

    - T(m) - N·M = Σ v_k·x_k + (v_0 - M)·w, since the sum of (value - mean)^p is n·M
    - T(m)/N - T(s)/N = Σ over j from 1 to p of (p over j)·(s - m)^j·μ_(p - j), whatever m is, with
      the released central moments μ about s, of which μ_1 is 0

    With probability 1 - alpha/50 the mean is in its interval, which bounds the second line, and |m|
    in the first. The k-th powers are measured from the centre c_k of their grid: the weight of w is
    then v_0 - M + Σ v_k·c_k. The quantile of the sum of noises is a norm of the weights, so that
    larger weights never make it smaller, and it is convex in M: see `fieller`.
    """
    *sums, (size, count) = output.totals
    power, half, number = len(sums), half_width(output), output[size]
    centres = [_centre(output, k) for k in range(1, power + 1)]
    divisor = np.maximum(number, 1.0)
    ratios = [
        output[name] / divisor + centre for (name, _), centre in zip(sums, centres, strict=True)
    ]
    moments = [1.0, 0.0, *(_about_mean(ratios, k) for k in range(2, power + 1))]
    mean = mean_that_fits(output, alpha * ASIDE, output.totals[1][1].about)
    off = sum(
        comb(power, j) * mean.off**j * np.abs(moments[power - j]) for j in range(1, power + 1)
    )
    weights = [comb(power, k) * mean.widest ** (power - k) for k in range(1, power + 1)]
    weight = mean.widest**power + sum(
        w * abs(centre) for w, centre in zip(weights, centres, strict=True)
    )

    def fits(moment: Floats) -> Booleans:
        terms = [
            (w * np.ones_like(moment), output.noise(total))
            for w, (_, total) in zip(weights, sums, strict=True)
        ]
        terms.append((weight + np.abs(moment), output.noise(count)))
        return reaches(
            (np.abs(moment - moments[-1]) - off) * number, terms, alpha * (1 - ASIDE)
        ) | (number < 1)

    least, most = 0.0 if power % 2 == 0 else -(half**power), half**power
    low, high = (np.clip(farthest(fits, moments[-1], end), least, most) for end in (least, most))
    return low, high


def _least_variance(output: ReleasedColumn) -> float:
    """The variance below which rounding may move a ratio by 1 (square of the column unit).

    The k-th power of a distance is off by at most half a step of its grid. For distances up to h
    from the middle, this moves the p-th central moment by at most Σ (p over k)·h^(p - k)·(step of
    the k-th powers)/2. Whole numbers that the grid holds are not rounded.
    """
    totals = [total for _, total in output.totals[:-1]]
    power, half = len(totals), half_width(output)
    steps = [
        0.0 if total.is_exact and not total.factors else float(total.grid.step) for total in totals
    ]
    moved = sum(comb(power, k) * half ** (power - k) * step for k, step in enumerate(steps, 1))
    return float((moved / 2) ** (2 / power))


class KurtosisEstimator(StandardizedEstimator):
    """The fourth central moment over the squared variance, less 3."""

    power = 4
    normal = 3.0

    def range(self, number: Any) -> tuple[Any, Any]:
        """Between -2, for values half and half at two places, and (n² - 3n + 3)/(n - 1) - 3.

        The latter is that of n values of which all but one are equal.

        Source: Dalén 1987, Statistics and Probability Letters 5, for the largest; Pearson 1916 for
                the least
        """
        least = np.full_like(np.asarray(number, np.float64), 1.0)
        most = np.maximum((number**2 - 3 * number + 3) / np.maximum(number - 1.0, 1.0), least)
        return least - self.normal, most - self.normal
