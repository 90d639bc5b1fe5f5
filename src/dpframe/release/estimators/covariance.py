"""Covariances: from noisy sums of two columns, a noisy sum of their products, and a noisy count."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpframe.arrays import Booleans, Floats
from dpframe.plan import Bounds, ReleasedColumn, Total
from dpframe.release.estimators.base import Estimator, Interval, Noisy, real, widened
from dpframe.release.estimators.fieller import ASIDE, divisors, expected, farthest, reaches
from dpframe.release.estimators.influence import Influence, NoisyColumn, reach_of, sampling_variance
from dpframe.release.estimators.mean import bounded_mean, mean_interval


class CovarianceEstimator(Estimator):
    """E (x - a)(y - b) - E(x - a)·E(y - b), for the middles a and b, no larger than the bounds allow."""

    def value(self, output: NoisyColumn, noisy: Noisy) -> Any:
        count = np.maximum(real(output.totals[-1][1], noisy), 1.0)
        return covariance_of(output, noisy) * count / np.maximum(count - output.ddof, 1.0)

    def interval(self, output: NoisyColumn, alpha: float, numbers: Floats, rows: Floats | None) -> Interval:
        """The covariances that fit, widened to hold the released number.

        Bound:  write X + x, Y + y, P + p and N = n + w for the noisy sums of both columns and of products, measured
                from the middles, and the noisy count; q = P/n, a = X/n, b = Y/n and C = q - ab. These are exact:

                N · (released q - q) = p - q·w,  N · (released a - a) = x - a·w,  and so for b
                N · (released C - C) = p - b·x - a·y + (ab - C)·w - N·e·f, with e and f the errors of both means

                A sum that is measured from a place s beside its middle adds b·s (or a·s) to the weight of w. With
                probability 1 - alpha/25 both means are in their intervals, which bound e, f and the weights. The rest
                of alpha, but for alpha/50 for the count in n/(n - 1), is for the sum of noises. Its quantile is a norm
                of the weights and so convex in C: see `fieller`
        """
        return self._interval(output, alpha, numbers)

    def population(self, output: NoisyColumn, alpha: float, numbers: Floats) -> Interval:
        """The covariances that fit noise and sampling: a normal error is one more noise of the covariance."""
        variance = sampling_variance(output, self.influence(output), alpha)
        return self._interval(output, alpha, numbers, np.sqrt(variance))

    def influence(self, output: NoisyColumn) -> Influence:
        """((x - a)·(y - b) - C) / n of a row, for the means a and b."""
        (first, _), (second, _), (products, _), *_, (size, _) = output.totals
        pair = moments_of(output)
        (a, b), number = pair.means, pair.number
        weights = {
            products: 1 / number,
            first: -b / number,
            second: -a / number,
            size: (b * output[first] + a * output[second] - output[products]) / number**2,
        }
        (x, g), (y, h) = ((mean, half) for mean, half in zip(pair.means, pair.halves, strict=True))
        largest = ((np.abs(x) + g) * (np.abs(y) + h) + np.abs(pair.covariance)) / number
        rows = reach_of(output, output.totals[-1][1])[1]
        return Influence(weights, rows * largest)

    def _interval(
        self,
        output: NoisyColumn,
        alpha: float,
        numbers: Floats,
        sampling: Floats | None = None,
    ) -> Interval:
        (_, first), (_, second), (products, product_), *_, (size, count) = output.totals
        number, most = output[size], _most(output)
        sampled = None if sampling is None else sampling * np.maximum(number, 1.0)
        fit = means_that_fit(output, alpha * ASIDE)
        spread = output[products] / np.maximum(number, 1.0) - fit.ratios[0] * fit.ratios[1]
        rest = alpha * (1 - ASIDE * (3 if output.ddof else 2))

        def fits(covariance: Floats) -> Booleans:
            weight = np.max([np.abs(a * b - covariance) for a, b in fit.corners], axis=0) + fit.beside
            terms = [
                (np.ones_like(weight), output.noise(product_)),
                (fit.widest[1], output.noise(first)),
                (fit.widest[0], output.noise(second)),
                (weight, output.noise(count)),
            ]
            return reaches((np.abs(covariance - spread) - fit.off[0] * fit.off[1]) * number, terms, rest, sampled) | (
                number < 1
            )

        low, high = (np.clip(farthest(fits, spread, end), -most, most) for end in (-most, most))
        if output.ddof:
            error = output.noise(count).error(alpha * ASIDE)
            least, largest = divisors(number - error, number + error)
            low = np.where(number < 1, -2 * most, low * np.where(low < 0, largest, least))
            high = np.where(number < 1, 2 * most, high * np.where(high > 0, largest, least))
        return widened((low, high), numbers)

    def widest(self, output: NoisyColumn) -> tuple[Any, Any] | None:
        """The product of half of each width, either way."""
        return -_most(output), _most(output)

    def expected_error(self, output: NoisyColumn, alpha: float, rows: float | None) -> float | None:
        """The error for any values inside their bounds, as for a variance."""
        if rows is None:
            return None
        (_, first), (_, second), (_, product_), *_, (_, count) = output.totals
        (_, g), (_, h) = ((side, _half(side.bounds)) for side in sides(output))
        most = g * h
        means = [
            expected(output, [(1.0, total)], count, half, rows, alpha * ASIDE, 2 * half)
            for total, half in ((first, g), (second, h))
        ]
        terms = [(1.0, product_), (h, first), (g, second)]
        error = expected(output, terms, count, 2 * most, rows, alpha * (1 - 3 * ASIDE), 2 * most) + means[0] * means[1]
        if output.ddof:
            off = output.noise(count).error(alpha * ASIDE)
            least, largest = (float(x) for x in divisors(np.array(rows - off), np.array(rows + off)))
            error = error * largest + most * (largest - least)
        return min(error, 4 * most)

    def constant_error(self, output: ReleasedColumn) -> float | None:
        """That of 0: a covariance lies between the largest one and its negative."""
        return _most(output)

    def reach(self, output: ReleasedColumn) -> float:
        """The largest covariance that the bounds allow."""
        return _most(output)


@dataclass(frozen=True)
class PairMoments:
    """The noisy means of two columns from the middles, their covariance, the number of rows, and half of each range."""

    means: tuple[Floats, Floats]
    covariance: Floats
    number: Floats
    halves: tuple[float, float]


def moments_of(output: NoisyColumn) -> PairMoments:
    """What the noisy totals of a pair say."""
    (products, _), (size, _) = output.totals[2], output.totals[-1]
    number = np.maximum(output[size], 1.0)
    means, halves = [], []
    for side in sides(output):
        name, total = side.totals[0]
        half = _half(side.bounds)
        means.append(np.clip(output[name] / number + _shift(side.bounds, total), -half, half))
        halves.append(half)
    most = _most(output)
    covariance = np.clip(output[products] / number - means[0] * means[1], -most, most)
    return PairMoments((means[0], means[1]), covariance, number, (halves[0], halves[1]))


@dataclass(frozen=True)
class MeansThatFit:
    """The means of two columns, measured from the middles: as released, and the places where they surely are.

    `off` is how far the released ones may be from the true ones, `widest` the largest of the true ones in size,
    `corners` the pairs of ends, and `beside` the weight of the count's noise from sums measured beside their middles.
    """

    ratios: tuple[Floats, Floats]
    off: tuple[Floats, Floats]
    widest: tuple[Floats, Floats]
    corners: tuple[tuple[Floats, Floats], ...]
    shifts: tuple[float, float]

    @property
    def beside(self) -> Floats:
        return self.widest[1] * abs(self.shifts[0]) + self.widest[0] * abs(self.shifts[1])


def sides(output: NoisyColumn) -> tuple[NoisyColumn, NoisyColumn]:
    """Each column of a pair as a mean of its own: its sum, the count, and its bounds."""
    assert output.bounds_beside is not None
    count = output.totals[-1]
    return (
        replace(output, totals=(output.totals[0], count)),
        replace(output, totals=(output.totals[1], count), bounds=output.bounds_beside),
    )


def means_that_fit(output: NoisyColumn, alpha: float) -> MeansThatFit:
    """Where the means of both columns surely are, each but with probability alpha."""
    number = np.maximum(output[output.totals[-1][0]], 1.0)
    ratios, off, widest, ends, shifts = [], [], [], [], []
    for side in sides(output):
        name, total = side.totals[0]
        middle, shift = _middle(side.bounds), _shift(side.bounds, total)
        near, far = (end - middle for end in mean_interval(side, alpha))
        ratio = output[name] / number + shift
        ratios.append(ratio)
        off.append(np.maximum(np.abs(ratio - near), np.abs(far - ratio)))
        widest.append(np.maximum(np.abs(near), np.abs(far)))
        ends.append((near, far))
        shifts.append(shift)
    corners = tuple((a, b) for a in ends[0] for b in ends[1])
    return MeansThatFit(
        (ratios[0], ratios[1]), (off[0], off[1]), (widest[0], widest[1]), corners, (shifts[0], shifts[1])
    )


def covariance_of(output: NoisyColumn, noisy: Noisy) -> Any:
    """The covariance with divisor n from noisy totals, no larger in size than the bounds allow."""
    _, _, (_, products), *_, (_, count) = output.totals
    number = np.maximum(real(count, noisy), 1.0)
    means = [
        bounded_mean(side, real(side.total, noisy), number, float(side.total.grid.centre)) - _middle(side.bounds)
        for side in sides(output)
    ]
    most = _most(output)
    return np.clip(real(products, noisy) / number - means[0] * means[1], -most, most)


def _middle(bounds: Bounds | None) -> float:
    assert bounds is not None
    return float(bounds.lower) / 2 + float(bounds.upper) / 2


def _half(bounds: Bounds | None) -> float:
    assert bounds is not None
    return float(bounds.upper) / 2 - float(bounds.lower) / 2


def _shift(bounds: Bounds | None, total: Total) -> float:
    """How far the place that a sum is measured from is beside the middle of the bounds (column unit)."""
    return float(total.grid.centre) - _middle(bounds)


def _most(output: ReleasedColumn) -> float:
    """The largest covariance that the bounds allow: of two columns that are at their ends together."""
    return _half(output.bounds) * _half(output.bounds_beside)
