"""Pearson's correlation: a noisy covariance over the root of two noisy variances."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpframe.arrays import Booleans, Floats
from dpframe.plan import ReleasedColumn
from dpframe.release.estimators.base import Estimator, Interval, Noisy, half_width, real, widened
from dpframe.release.estimators.covariance import (
    corners,
    covariance_of,
    means_that_fit,
    moments_of,
    sides,
    weight_beside,
)
from dpframe.release.estimators.fieller import ASIDE, farthest, reaches
from dpframe.release.estimators.influence import Influence, NoisyColumn, reach_of, sampling_variance
from dpframe.release.estimators.mean import bounded_mean
from dpframe.release.estimators.variance import variance_interval
from dpframe.release.pricing import simulated

_DRAWS = 4000
_SMALLEST = 1 / 200  # an alpha whose quantiles these draws tell


class CorrelationEstimator(Estimator):
    """The covariance over both deviations, from -1 to 1;
    0 where a variance is too small to tell from 0.
    """

    def value(self, output: NoisyColumn, noisy: Noisy) -> Any:
        number = np.maximum(real(output.totals[-1][1], noisy), 1.0)
        variances = [np.asarray(_variance(side, noisy, number)) for side in _spreads(output)]
        told = np.logical_and(
            *(v > _least(s) for v, s in zip(variances, _spreads(output), strict=True))
        )
        divisor = np.sqrt(np.where(told, variances[0] * variances[1], 1.0))
        return np.where(told, np.clip(covariance_of(output, noisy) / divisor, -1.0, 1.0), 0.0)

    def interval(
        self, output: NoisyColumn, alpha: float, numbers: Floats, rows: Floats | None
    ) -> Interval:
        """The correlations that fit, widened to hold the released number.

        Bound:  let C be the covariance, U and V the variances, and t = √(U/V). For r = C/√(UV),

                C - r/2 · (U/t + V·t) = 0

                The released left side is linear in the noises but for products of the errors e and
                f of both means (see `CovarianceEstimator.interval`). With noises p, k and l of the
                sums of products and squares, x and y of sums and w of the count, N times it is

                p - r/(2t)·k - rt/2·l - (b - ra/t)·x - (a - rtb)·y + g·w
                  - N·(e·f - r/2·(e²/t + t·f²))

                where C, U and V cancel in g = ab - r/2·(a²/t + t·b²), but for the centres c and d
                of the squares' grids and the shifts of sums, which add r/2·(c/t + t·d) and their
                own weights. With probability 1 - alpha/25 both means, and with another 1 - alpha/25
                both variances, are in their intervals. So a, b and t lie between known ends, and
                the weights are at most their largest at these ends: they are linear in a, b, t and
                1/t, or convex. A value r fits if for some such t the sum of noises reaches the left
                side with the rest of alpha. The left side is linear in r, and the quantile convex:
                see `fieller`
        """
        return _interval(output, alpha, numbers)

    def population(self, output: NoisyColumn, alpha: float, numbers: Floats) -> Interval:
        """The correlations that fit noise and sampling:
        a normal error is one more noise of the correlation.

        For alpha from 1/200 on they are quantiles of correlations that the true one may be: those
        of the noisy totals less noise of their own law, which is public, with a normal error of
        sampling. A draw in which a variance is not above 0 says nothing about the correlation: half
        of these draws count as -1 and half as 1. So they only widen the interval, and where they
        are more than a part alpha of all draws, every correlation fits. For a smaller alpha, the
        ends are those of `interval`.
        """
        variance = sampling_variance(output, self.influence(output), alpha)
        if alpha < _SMALLEST:
            return _interval(output, alpha, numbers, np.sqrt(variance))
        return widened(_drawn_ends(output, alpha, np.sqrt(variance)), numbers)

    def influence(self, output: NoisyColumn) -> Influence:
        """(u·v - r/2·(u² + v²)) / n of a row, for the standardized values u and v.

        One row's part is largest at an end of the bounds, or near it: a few places are tried.
        """
        (first, _), (second, _), (products, _), (xx, _), (yy, _), (size, _) = output.totals
        (a, b), covariance, number, halves = moments_of(output)
        g, h = (half or 1.0 for half in halves)
        middles = [
            (float(total.grid.centre), _least(side))
            for side in _spreads(output)
            for total in [side.totals[1][1]]
        ]
        u, v = (
            np.clip(centre + output[name] / number - mean**2, max(least, 1e-6 * half**2), half**2)
            for (centre, least), name, mean, half in zip(
                middles, (xx, yy), (a, b), (g, h), strict=True
            )
        )
        root = np.sqrt(u * v)
        r = np.clip(covariance / root, -1.0, 1.0)
        weights = {
            products: 1 / (root * number),
            first: (-b / root + r * a / u) / number,
            second: (-a / root + r * b / v) / number,
            xx: -r / (2 * u * number),
            yy: -r / (2 * v * number),
        }
        weights[size] = (
            -sum((weights[name] * output[name] for name in weights), np.zeros_like(number)) / number
        )
        tried = np.linspace(-1.0, 1.0, 9)
        x, y = (
            (half * tried[:, None] - mean) / np.sqrt(spread)
            for mean, half, spread in ((a, g, u), (b, h, v))
        )
        places = x[:, None] * y[None] - r / 2 * (x[:, None] ** 2 + y[None] ** 2)
        rows = reach_of(output, output.totals[-1][1])[1]
        return Influence(weights, rows * np.abs(places).max(axis=(0, 1)) / number)

    def widest(self, output: NoisyColumn) -> tuple[Any, Any] | None:
        """Between -1 and 1."""
        return -1.0, 1.0

    def expected_error(self, output: NoisyColumn, alpha: float, rows: float | None) -> float | None:
        """2, the largest there is: values that hardly differ have a correlation that is all noise.

        After a release, the interval is far narrower where the values fill their bounds.
        """
        return None if rows is None else 2.0

    def constant_error(self, output: ReleasedColumn) -> float | None:
        """Not known before a release: `expected_error` holds for values that hardly differ."""
        return None

    def reach(self, output: ReleasedColumn) -> float:
        """A correlation has no unit."""
        return 1.0


def _interval(
    output: NoisyColumn,
    alpha: float,
    numbers: Floats,
    sampling: Floats | None = None,
) -> Interval:
    """The correlations that fit, widened to hold the released number;
    see `CorrelationEstimator.interval`.
    """
    number = output[output.totals[-1][0]]
    variances = [
        variance_interval(replace(side, ddof=0), alpha * ASIDE) for side in _spreads(output)
    ]
    told = np.logical_and(
        *(v[0] > _least(s) for v, s in zip(variances, _spreads(output), strict=True))
    )
    safe = [tuple(np.where(told, end, 1.0) for end in ends) for ends in variances]
    ratios = np.sqrt(safe[0][0] / safe[1][1]), np.sqrt(safe[0][1] / safe[1][0])
    fits, start = _fits(output, alpha, ratios, sampling)
    start = np.where(told, np.clip(start, -1.0, 1.0), 0.0)
    return widened(
        (np.where(told & (number >= 1), farthest(fits, start, end), end) for end in (-1.0, 1.0)),
        numbers,
    )


def _drawn_ends(output: NoisyColumn, alpha: float, sampling: Floats) -> tuple[Floats, Floats]:
    """Quantiles of correlations that the true one of each group may be;
    see `CorrelationEstimator.population`.
    """
    rng, ends = np.random.default_rng(0), []
    centres = [float(side.totals[1][1].grid.centre) for side in _spreads(output)]
    shifts = [float(side.total.grid.centre - side.totals[1][1].about) for side in _spreads(output)]
    for group, deviation in enumerate(sampling):
        noises = simulated([output.noise(total) for _, total in output.totals], rng, _DRAWS)
        x, y, products, xx, yy, number = (
            output[name][group] - noise
            for (name, _), noise in zip(output.totals, noises, strict=True)
        )
        number = np.maximum(number, 1.0)
        a, b = x / number + shifts[0], y / number + shifts[1]
        u, v = centres[0] + xx / number - a**2, centres[1] + yy / number - b**2
        told = (u > 0) & (v > 0)
        r = np.divide(products / number - a * b, np.sqrt(np.where(told, u * v, 1.0)))
        r = np.clip(r + deviation * rng.normal(size=len(r)), -1.0, 1.0)
        r[~told] = np.where(np.arange(np.count_nonzero(~told)) % 2, 1.0, -1.0)
        ends.append(tuple(np.quantile(r, [alpha / 2, 1 - alpha / 2])))
    low, high = np.array(ends).reshape(-1, 2).T
    return low, high


def _spreads(output: NoisyColumn) -> tuple[NoisyColumn, NoisyColumn]:
    """Each column of a pair as a variance of its own:
    its sum, its squares, the count, and its bounds.
    """
    squares = output.totals[3:5]
    first, second = (
        replace(side, totals=(side.totals[0], square, side.totals[1]))
        for side, square in zip(sides(output), squares, strict=True)
    )
    return first, second


def _variance(side: ReleasedColumn, noisy: Noisy, number: Any) -> Any:
    """A variance with divisor n from noisy totals; it may be below 0."""
    (_, total), (_, squares), _ = side.totals
    mean = bounded_mean(side, real(total, noisy), number, float(total.grid.centre)) - float(
        squares.about
    )
    return float(squares.grid.centre) + real(squares, noisy) / number - mean**2


def _least(side: ReleasedColumn) -> float:
    """A variance that rounding to the grids may make of values that do not
    differ (square of the column unit).
    """
    (_, total), (_, squares), _ = side.totals
    return float(squares.grid.step) + 2 * half_width(side) * (
        0.0 if total.is_exact else float(total.grid.step)
    )


def _fits(
    output: NoisyColumn,
    alpha: float,
    ratios: tuple[Floats, Floats],
    sampling: Floats | None,
) -> tuple[Any, Floats]:
    """Whether a correlation fits, and a correlation that does."""
    (_, first), (_, second), (products, product), (xx, squares), (yy, others), (size, count) = (
        output.totals
    )
    number, least = output[size], np.maximum(output[size], 1.0)
    one, other = fit = means_that_fit(output, alpha * ASIDE)
    (m, e, a), (n, f, b) = ((x.ratio, x.off, x.widest) for x in fit)
    centres = float(squares.grid.centre), float(others.grid.centre)
    covariance = output[products] / least - m * n
    u, v = centres[0] + output[xx] / least - m**2, centres[1] + output[yy] / least - n**2
    small, large = ratios
    ends = [u / t + v * t for t in ratios]
    between = np.sqrt(np.maximum(u / np.where(v > 0, v, 1.0), 0.0))
    inside = np.clip(between, small, large)
    widths = np.minimum(np.minimum(*ends), u / inside + v * inside) / 2, np.maximum(*ends) / 2
    sampled = None if sampling is None else sampling * widths[1] * least
    slack = e * f, (e**2 / small + large * f**2) / 2

    def fits(r: Floats) -> Booleans:
        size = np.abs(r)
        weights = np.zeros((3, *r.shape))
        for x, y in corners(*fit):
            for t in ratios:
                weights[0] = np.maximum(weights[0], np.abs(y - r * x / t))
                weights[1] = np.maximum(weights[1], np.abs(x - r * t * y))
        across = a * b + size / 2 * (a**2 / small + large * b**2)
        beside = weight_beside(*fit) + size * (
            a * abs(one.shift) / small + large * b * abs(other.shift)
        )
        weights[2] = (
            across + beside + size / 2 * (abs(centres[0]) / small + large * abs(centres[1]))
        )
        away = [covariance - r * width for width in widths]
        distance = np.where(away[0] * away[1] <= 0, 0.0, np.minimum(*(np.abs(x) for x in away)))
        terms = [
            (np.ones_like(r), output.noise(product)),
            (size / 2 / small, output.noise(squares)),
            (size / 2 * large, output.noise(others)),
            (weights[0], output.noise(first)),
            (weights[1], output.noise(second)),
            (weights[2], output.noise(count)),
        ]
        near = (distance - slack[0] - size * slack[1]) * number
        unclear: Booleans = (number < 1) | (widths[0] <= 0)
        return reaches(near, terms, alpha * (1 - 4 * ASIDE), sampled) | unclear

    return fits, covariance / np.where(widths[0] > 0, widths[0], 1.0)
