"""Variances and standard deviations: from a noisy sum, a noisy sum of squares and a noisy count."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpframe.arrays import Booleans, Floats, Integers
from dpframe.plan import ReleasedColumn
from dpframe.release.estimators.base import (
    Compared,
    Estimator,
    Interval,
    Noisy,
    half_width,
    real,
    widened,
)
from dpframe.release.estimators.binned_values import BinnedValues
from dpframe.release.estimators.fieller import ASIDE, divisors, expected, farthest, reaches
from dpframe.release.estimators.influence import Influence, NoisyColumn, reach_of, sampling_variance
from dpframe.release.estimators.mean import bounded_mean, compared_means, is_heavy, mean_that_fits


class VarianceEstimator(Estimator):
    """E(x - middle)² - (E x - middle)², kept between 0 and the largest
    variance that the bounds allow.
    """

    shrinks = compares = True

    def of_variance(self, variance: Any) -> Any:
        """The statistic from a variance; it grows with the variance."""
        return variance

    def value(self, output: NoisyColumn, noisy: Noisy) -> Any:
        return self.of_variance(_variance(output, noisy))

    def interval(
        self, output: NoisyColumn, alpha: float, numbers: Floats, rows: Floats | None
    ) -> Interval:
        """The variances that fit, widened to hold the released number, whose
        mean may be clipped to its bounds.
        """
        return widened(
            map(self.of_variance, variance_interval(output, alpha)), numbers, output.ticks
        )

    def widest(self, output: NoisyColumn) -> tuple[Any, Any] | None:
        """Between 0 and the largest that the bounds allow."""
        return 0.0, float(self.of_variance(half_width(output) ** 2)) * output.ticks

    def population(self, output: NoisyColumn, alpha: float, numbers: Floats) -> Interval:
        """The variances that fit noise and sampling: a normal error is
        one more noise of the variance.
        """
        deviation = np.sqrt(sampling_variance(output, self.influence(output), alpha))
        ends = variance_interval(output, alpha, deviation)
        return widened(map(self.of_variance, ends), numbers, output.ticks)

    def influence(self, output: NoisyColumn) -> Influence:
        """((x - m)² - V) / n of a row, for the variance, whose interval that
        of the statistic follows from.

        It is largest at an end of the bounds or in the middle.
        """
        (name, total), (squares, square), (size, count) = output.totals
        number, half, shift = (
            np.maximum(output[size], 1.0),
            half_width(output),
            float(total.grid.centre - square.about),
        )
        mean = np.clip(output[name] / number + shift, -half, half)
        variance = np.clip(
            float(square.grid.centre) + output[squares] / number - mean**2, 0.0, half**2
        )
        weights = {name: -2 * mean / number, squares: 1 / number}
        weights[size] = (
            -(weights[name] * output[name] + weights[squares] * output[squares]) / number
        )
        largest = np.maximum((np.abs(mean) + half) ** 2 - variance, variance) / number
        rows = reach_of(output, count)[1]
        return Influence(weights, rows * largest)

    def compared(self, output: NoisyColumn) -> Compared:
        """Variances with divisor n beside their average over all groups, by number of values.

        The mean of each group enters as it is when shrunk: that of a small group would bring more
        noise than it removes.

        Bound:  none is needed. n·(v - common) = Q - n·(m² + common) with Q the sum of squares; the
                noise of Q, of the mean and of n enter as in the identity of
                `release.estimators.fieller`
        """
        (_, total), (squares, square), (size, count) = output.totals
        sizes, counted, centre = (
            output[size],
            np.maximum(output[size], 0.0),
            float(square.grid.centre),
        )
        means = compared_means(output).shrunk().values - float(square.about)
        number, largest = max(float(counted.sum()), 1.0), half_width(output) ** 2
        average = centre + float(output[squares].sum() - counted @ means**2) / number
        common = min(max(average, 0.0), largest)
        weight = np.maximum(np.abs(centre - means**2 - common), np.abs(centre + means**2 - common))
        noises = (output.noise(square), output.noise(total), output.noise(count))
        weights = (np.ones_like(weight), 2 * np.abs(means), weight)
        deviations = [np.abs(w * noise.deviation) for w, noise in zip(weights, noises, strict=True)]
        whole = np.hypot(np.hypot(*deviations[:2]), deviations[2])
        differences = output[squares] + sizes * (centre - means**2 - common)
        heavy = is_heavy(output, square, total, count)
        targets, slopes = np.full(len(sizes), common), 1 / np.maximum(sizes, 1.0)
        return Compared(
            common, differences, sizes, whole, targets, slopes, 0.0, largest, 2 * largest, heavy
        )

    def from_ratio(self, output: NoisyColumn, ratios: Floats) -> Floats:
        """The statistic with the divisor n - ddof of its variance,
        in place of n; n is at least 1.
        """
        number = np.maximum(output[output.totals[-1][0]], 1.0)
        return np.asarray(
            self.of_variance(ratios * (number / np.maximum(number - output.ddof, 1.0)))
        )

    def expected_error(self, output: NoisyColumn, alpha: float, rows: float | None) -> float | None:
        """The error for any values inside their bounds: see `_expected_error`."""
        if rows is None:
            return None
        return float(self.of_variance(_expected_error(output, alpha, rows))) * output.ticks

    def clipping_error(
        self, values: BinnedValues, low: Integers, high: Integers, noise: Floats
    ) -> Floats | None:
        return _clipped_variance(values, low, high, noise)[0]

    def constant_error(self, output: ReleasedColumn) -> float | None:
        """Half of the largest variance or deviation, since it lies between 0 and that."""
        return self.reach(output) / 2

    def reach(self, output: ReleasedColumn) -> float:
        """The largest variance that the bounds allow (square of the column unit)."""
        return (half_width(output) * output.ticks) ** 2


class StandardDeviationEstimator(VarianceEstimator):
    """The root of the variance.

    Its expected error is at most the root of that of the variance, and that large only if values
    hardly differ. After a release, the interval is often far narrower.
    """

    def of_variance(self, variance: Any) -> Any:
        """The root."""
        return np.sqrt(variance)

    def per_influence(self, numbers: Floats) -> Floats:
        """1/2s, the derivative of the root at a deviation s; 0 at 0, where there is none."""
        return np.divide(0.5, numbers, out=np.zeros_like(numbers), where=numbers > 0)

    def clipping_error(
        self, values: BinnedValues, low: Integers, high: Integers, noise: Floats
    ) -> Floats | None:
        error, variance = _clipped_variance(values, low, high, noise)
        return np.asarray(error / (np.sqrt(variance) + np.sqrt(variance + error) + 1e-300))

    def reach(self, output: ReleasedColumn) -> float:
        """The largest deviation that the bounds allow: half their width (column unit)."""
        return half_width(output) * output.ticks


def _variance(output: NoisyColumn, noisy: Noisy) -> Any:
    """E(x - middle)² - (E x - middle)², kept between 0 and the largest
    variance that the bounds allow.
    """
    (_, total), (_, squares), (_, count) = output.totals
    number = np.maximum(real(count, noisy), 1.0)
    second = float(squares.grid.centre) + real(squares, noisy) / number
    first = bounded_mean(output, real(total, noisy), number, float(total.grid.centre)) - float(
        squares.about
    )
    variance = np.clip(second - first**2, 0.0, half_width(output) ** 2)
    return variance * number / np.maximum(number - output.ddof, 1.0)


def variance_interval(
    output: NoisyColumn, alpha: float, sampling: Floats | None = None
) -> Interval:
    """The variances that fit, for any mean and any divisor in their own intervals.

    With probability 1 - alpha/50 the mean is in its interval, which bounds (released - m)² and the
    weights of z and w. With ddof=1 another alpha/50 is for the count in n / (n - 1). The rest of
    alpha is for y - 2m·z + (2m² - q)·w, and for a sampling error of the deviation `sampling`, where
    that is given.
    """
    (_, total), (squares, square), (size, count) = output.totals
    number, half, centre = output[size], half_width(output), float(square.grid.centre)
    # squares are measured from there, the sum beside it
    mean = mean_that_fits(output, alpha * ASIDE, square.about)
    near, far, off, widest = mean.near, mean.far, mean.off**2, mean.widest
    closest = np.where(near * far <= 0, 0.0, np.minimum(np.abs(near), np.abs(far)))
    spread = centre + output[squares] / np.maximum(number, 1.0) - mean.ratio**2
    rest = alpha * (1 - ASIDE * (2 if output.ddof else 1))
    sampled = None if sampling is None else sampling * np.maximum(number, 1.0)

    def fits(variance: Floats) -> Booleans:
        weight = np.maximum(
            np.abs(widest**2 - variance + centre), np.abs(closest**2 - variance + centre)
        )
        weight = weight + 2 * widest * abs(mean.shift)
        terms = [
            (np.ones_like(weight), output.noise(square)),
            (2 * widest, output.noise(total)),
            (weight, output.noise(count)),
        ]
        size = np.where(variance > spread, variance - spread - off, spread - variance) * number
        return reaches(size, terms, rest, sampled) | (number < 1)

    low, high = (np.clip(farthest(fits, spread, end), 0.0, half**2) for end in (0.0, half**2))
    if not output.ddof:
        return low, high
    least, most = divisors(number, output.noise(count), alpha)
    return np.where(number < 1, 0.0, low * least), np.where(number < 1, 2.0, most) * high


def _expected_error(output: NoisyColumn, alpha: float, rows: float) -> float:
    """An error of a variance that is exceeded with probability at most
    alpha (square of the column unit).

    Bound:  as for a mean (`MeanEstimator.expected_error`), with 2|m| <= 2h and |2m² - q| <= 3h²/2
    """
    half = half_width(output)
    total, count = output.total, output.totals[-1][1]
    mean = expected(output, [(1.0, total)], count, half, rows, alpha * ASIDE, 2 * half)
    terms = [(1.0, output.totals[1][1]), (2 * half, total)]
    rest = alpha * (1 - ASIDE * (2 if output.ddof else 1))
    variance = min(
        expected(output, terms, count, 1.5 * half**2, rows, rest, half**2) + mean**2, half**2
    )
    if output.ddof:
        least, most = map(float, divisors(np.array(rows), output.noise(count), alpha))
        variance = min(variance * most + half**2 * (most - least), half**2 * most)
    return variance


def _clipped_variance(
    values: BinnedValues, low: Integers, high: Integers, noise: Floats
) -> tuple[Floats, Floats]:
    """The error of a variance, from clipping and noise, and the variance itself.

    The release measures squares less h²/2, a sum and a count, where h is half the width of the
    bounds. Let v be the clipped variance, and m the distance of the clipped mean from the middle.
    Relative noise of 1 in each of the three moves v by h²/2, by 2·m·h and by v - m² - h²/2.
    """
    about = float((values.parts @ values.middles).mean())
    middles, edges, highs = (x - about for x in (values.middles, values.edges, values.highs))
    below, above = middles[:, None] < edges, middles[:, None] > highs

    def moment(plain: Floats, power: int) -> Floats:  # of the clipped values
        from_below = values.parts @ ((edges**power - plain[:, None]) * below)
        from_above = values.parts @ ((highs**power - plain[:, None]) * above)
        return np.asarray(
            (values.parts @ plain)[:, None] + from_below[:, low] + from_above[:, high]
        )

    squares = middles**2 + values.inside
    variance = np.maximum(values.parts @ squares - (values.parts @ middles) ** 2, 0.0)[:, None]
    mean, half = moment(middles, 1), (highs[high] - edges[low]) / 2
    remaining, off = moment(squares, 2) - mean**2, mean - (highs[high] + edges[low]) / 2
    shift = np.sqrt(
        (half**2 / 2) ** 2 + (2 * off * half) ** 2 + (remaining - off**2 - half**2 / 2) ** 2
    )
    return np.hypot(variance - remaining, noise * shift), variance
