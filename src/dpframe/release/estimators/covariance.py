"""Covariances: from noisy sums of two columns, a noisy sum of their products, and a noisy count."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dpframe.arrays import Booleans, Floats
from dpframe.plan import ReleasedColumn
from dpframe.release.estimators.base import Estimator, Interval, Noisy, half_width, real, widened
from dpframe.release.estimators.fieller import ASIDE, divisors, expected, farthest, reaches
from dpframe.release.estimators.influence import Influence, NoisyColumn, reach_of, sampling_variance
from dpframe.release.estimators.mean import MeanThatFits, bounded_mean, mean_that_fits


class CovarianceEstimator(Estimator):
    """E (x - a)(y - b) - E(x - a)·E(y - b) for the middles a and b, inside what bounds allow."""

    def value(self, output: NoisyColumn, noisy: Noisy) -> Any:
        count = np.maximum(real(output.totals[-1][1], noisy), 1.0)
        return covariance_of(output, noisy) * count / np.maximum(count - output.ddof, 1.0)

    def interval(
        self, output: NoisyColumn, alpha: float, numbers: Floats, rows: Floats | None
    ) -> Interval:
        """The covariances that fit, widened to hold the released number.

        Bound:  write X + x, Y + y, P + p and N = n + w for the noisy sums of both columns and of
                products, measured from the middles, and the noisy count; q = P/n, a = X/n, b = Y/n
                and C = q - ab. These are exact:

                N · (released q - q) = p - q·w, N · (released a - a) = x - a·w, and so for b N ·
                (released C - C) = p - b·x - a·y + (ab - C)·w - N·e·f, with e and f the errors of
                both means

                A sum that is measured from a place s beside its middle adds b·s (or a·s) to the
                weight of w. With probability 1 - alpha/25 both means are in their intervals, which
                bound e, f and the weights. The rest of alpha, but for alpha/50 for the count in
                n/(n - 1), is for the sum of noises. Its quantile is a norm of the weights and so
                convex in C: see `fieller`
        """
        return self._interval(output, alpha, numbers)

    def population(self, output: NoisyColumn, alpha: float, numbers: Floats) -> Interval:
        """The covariances that fit noise and sampling, whose normal error is one more noise."""
        variance = sampling_variance(output, self.influence(output), alpha)
        return self._interval(output, alpha, numbers, np.sqrt(variance))

    def influence(self, output: NoisyColumn) -> Influence:
        """((x - a)·(y - b) - C) / n of a row, for the means a and b."""
        (first, _), (second, _), (products, _), *_, (size, _) = output.totals
        (a, b), covariance, number, (g, h) = moments_of(output)
        weights = {
            products: 1 / number,
            first: -b / number,
            second: -a / number,
            size: (b * output[first] + a * output[second] - output[products]) / number**2,
        }
        largest = ((np.abs(a) + g) * (np.abs(b) + h) + np.abs(covariance)) / number
        rows = reach_of(output, output.totals[-1][1])[1]
        return Influence(weights, rows * largest)

    def _interval(
        self, output: NoisyColumn, alpha: float, numbers: Floats, sampling: Floats | None = None
    ) -> Interval:
        (_, first), (_, second), (products, product_), *_, (size, count) = output.totals
        number, most = output[size], _most(output)
        sampled = None if sampling is None else sampling * np.maximum(number, 1.0)
        x, y = fit = means_that_fit(output, alpha * ASIDE)
        spread = output[products] / np.maximum(number, 1.0) - x.ratio * y.ratio
        rest = alpha * (1 - ASIDE * (3 if output.ddof else 2))

        def fits(covariance: Floats) -> Booleans:
            weight = np.max(
                [np.abs(a * b - covariance) for a, b in corners(*fit)], axis=0
            ) + weight_beside(*fit)
            terms = [
                (np.ones_like(weight), output.noise(product_)),
                (y.widest, output.noise(first)),
                (x.widest, output.noise(second)),
                (weight, output.noise(count)),
            ]
            size = (np.abs(covariance - spread) - x.off * y.off) * number
            return reaches(size, terms, rest, sampled) | (number < 1)

        low, high = (np.clip(farthest(fits, spread, end), -most, most) for end in (-most, most))
        if output.ddof:
            least, largest = divisors(number, output.noise(count), alpha)
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
        g, h = map(half_width, sides(output))
        most = g * h
        means = [
            expected(output, [(1.0, total)], count, half, rows, alpha * ASIDE, 2 * half)
            for total, half in ((first, g), (second, h))
        ]
        terms = [(1.0, product_), (h, first), (g, second)]
        error = (
            expected(output, terms, count, 2 * most, rows, alpha * (1 - 3 * ASIDE), 2 * most)
            + means[0] * means[1]
        )
        if output.ddof:
            least, largest = map(float, divisors(np.array(rows), output.noise(count), alpha))
            error = error * largest + most * (largest - least)
        return min(error, 4 * most)

    def constant_error(self, output: ReleasedColumn) -> float | None:
        """That of 0: a covariance lies between the largest one and its negative."""
        return _most(output)

    def reach(self, output: ReleasedColumn) -> float:
        """The largest covariance that the bounds allow."""
        return _most(output)


class PairMoments(NamedTuple):
    """Noisy means of two columns from the middles, covariance, rows, and half ranges."""

    means: tuple[Floats, Floats]
    covariance: Floats
    number: Floats
    halves: tuple[float, float]


def moments_of(output: NoisyColumn) -> PairMoments:
    """The moments of a pair, from its noisy totals."""
    (products, _), (size, _) = output.totals[2], output.totals[-1]
    number = np.maximum(output[size], 1.0)
    means, halves = [], []
    for side in sides(output):
        name, total = side.totals[0]
        half, shift = half_width(side), float(total.grid.centre - _middle(side))
        means.append(np.clip(output[name] / number + shift, -half, half))
        halves.append(half)
    most = _most(output)
    covariance = np.clip(output[products] / number - means[0] * means[1], -most, most)
    return PairMoments((means[0], means[1]), covariance, number, (halves[0], halves[1]))


def sides(output: NoisyColumn) -> tuple[NoisyColumn, NoisyColumn]:
    """Each column of a pair as a mean of its own: its sum, the count, and its bounds."""
    assert output.bounds_beside is not None
    count = output.totals[-1]
    return (
        replace(output, totals=(output.totals[0], count)),
        replace(output, totals=(output.totals[1], count), bounds=output.bounds_beside),
    )


def means_that_fit(output: NoisyColumn, alpha: float) -> tuple[MeanThatFits, MeanThatFits]:
    """The means of both columns, each from the middle of its bounds; see `mean_that_fits`."""
    first, second = (mean_that_fits(side, alpha, _middle(side)) for side in sides(output))
    return first, second


def corners(first: MeanThatFits, second: MeanThatFits) -> list[tuple[Floats, Floats]]:
    """The pairs of ends of two means."""
    return [(a, b) for a in (first.near, first.far) for b in (second.near, second.far)]


def weight_beside(first: MeanThatFits, second: MeanThatFits) -> Floats:
    """The weight of the count's noise from sums that are measured beside the middles."""
    return second.widest * abs(first.shift) + first.widest * abs(second.shift)


def covariance_of(output: NoisyColumn, noisy: Noisy) -> Any:
    """The covariance with divisor n from noisy totals, no larger in size than the bounds allow."""
    _, _, (_, products), *_, (_, count) = output.totals
    number = np.maximum(real(count, noisy), 1.0)
    means = [
        bounded_mean(side, real(side.total, noisy), number, float(side.total.grid.centre))
        - float(_middle(side))
        for side in sides(output)
    ]
    most = _most(output)
    return np.clip(real(products, noisy) / number - means[0] * means[1], -most, most)


def _middle(side: ReleasedColumn) -> Fraction:
    low, high = side.ends
    return Fraction(low / 2 + high / 2)


def _most(output: ReleasedColumn) -> float:
    """The largest covariance that the bounds allow: both columns at their ends together."""
    return half_width(output) * half_width(replace(output, bounds=output.bounds_beside))
