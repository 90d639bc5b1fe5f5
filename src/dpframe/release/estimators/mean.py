"""Means: the ratio of a noisy sum and a noisy count."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.arrays import Booleans, Floats, Integers
from dpframe.plan import ReleasedColumn, Total
from dpframe.release.estimators.base import (
    Compared,
    Estimator,
    Interval,
    Noisy,
    bounds_of,
    half_width,
    real,
    widened,
)
from dpframe.release.estimators.binned_values import BinnedValues
from dpframe.release.estimators.fieller import (
    ASIDE,
    expected,
    farthest,
    farthest_by_group,
    reaches,
    scales,
)
from dpframe.release.estimators.influence import Influence, NoisyColumn, Sampled
from dpframe.release.estimators.sampling import mean_influence, mean_population, sampled_mean
from dpframe.release.pricing import Noise
from dpframe.theory.formulas.error import chernoff_error


class MeanEstimator(Estimator):
    """Centre + sum / count, shrunk towards the centre if the count is
    small, and kept inside the bounds.
    """

    shrinks = compares = True

    def value(self, output: NoisyColumn, noisy: Noisy) -> Any:
        (_, total), (_, count) = output.totals
        return mean_of(
            output, real(total, noisy), real(count, noisy), output.noise(total).deviation
        )

    def interval(
        self, output: NoisyColumn, alpha: float, numbers: Floats, rows: Floats | None
    ) -> Interval:
        """Fieller's set, widened to hold the released number, which
        may be shrunk towards the centre.
        """
        return widened(mean_interval(output, alpha), numbers, output.ticks)

    def widest(self, output: NoisyColumn) -> tuple[Any, Any] | None:
        """The bounds."""
        return bounds_of(output)

    def population(self, output: NoisyColumn, alpha: float, numbers: Floats) -> Interval:
        """The means that fit noise and sampling, widened to hold the released number."""
        return widened(mean_population(output, alpha), numbers, output.ticks)

    def influence(self, output: NoisyColumn) -> Influence:
        """(S_u - d·N_u) / n of a person, with d the distance of the mean from the middle."""
        return mean_influence(output)

    def sampled(self, output: NoisyColumn, numbers: Floats) -> Sampled:
        """The sampling variance from second moments."""
        return sampled_mean(output)

    def compared(self, output: NoisyColumn) -> Compared:
        """Means beside the mean of all groups together:
        n·(m - μ) + z - (μ - centre)·w, with the noises z and w.
        """
        return compared_means(output)

    def expected_error(self, output: NoisyColumn, alpha: float, rows: float | None) -> float | None:
        """The error for any values inside their bounds.

        Bound:  with n values known and N = n + w, |released mean - m| > e needs z - (m + e)·w > e·n
                or -z + (m - e)·w > e·n, and |m| is at most half the width of the bounds, h. A mean
                is shrunk towards the middle by c/N, c = (σ/h)² (see `mean_of`). The condition is
                then z - (m + e)·w > e·n + (m + e)·c/N. So shrinkage helps the error by at most c·(h
                - e)/N, and not at all if e >= h. With probability 1 - alpha/50, N is at least n
                less its error at alpha/50
        """
        if rows is None:
            return None
        half = half_width(output)
        total, count = output.total, output.totals[-1][1]
        mean = expected(output, [(1.0, total)], count, half, rows, alpha, 2 * half)
        least = rows - output.noise(count).error(alpha * ASIDE)
        if least <= 0 or not half:
            return max(mean, half) * output.ticks
        pull = (output.noise(total).deviation / half) ** 2 / least
        pull_error = expected(
            output, [(1.0, total)], count, half, rows, alpha * (1 - ASIDE), 2 * half, pull
        )
        return min(pull_error, max(mean, half)) * output.ticks

    def clipping_error(
        self, values: BinnedValues, low: Integers, high: Integers, noise: Floats
    ) -> Floats | None:
        first, last = values.edges[low], values.highs[high]
        mean = np.clip(
            (values.parts @ values.middles)[:, None], first, last
        )  # the count's noise moves it off the middle
        return np.hypot(
            values.lost(low, high), noise * np.hypot((last - first) / 2, mean - (last + first) / 2)
        )


def compared_means(output: NoisyColumn) -> Compared:
    """The means of groups beside the mean of all groups together, of a column
    whose totals begin with a sum.
    """
    (name, total), (size, count) = output.totals[0], output.totals[-1]
    noise, sizes = output.noise(total).deviation, output[size]
    common = float(mean_of(output, output[name].sum(), sizes.sum(), noise * len(sizes) ** 0.5))
    distance = common - float(total.grid.centre)
    deviation = float(np.hypot(noise, distance * output.noise(count).deviation))
    return Compared(
        common,
        output[name] - distance * sizes,
        sizes,
        np.full(len(sizes), deviation),
        mean_of(output, distance * sizes, sizes, noise),
        1 / _divisor(output, sizes, noise),
        *output.ends,
        half_width(output),
        heavy=is_heavy(output, total, count),
    )


def is_heavy(output: NoisyColumn, *totals: Total) -> bool:
    """Whether some noise has heavier tails than normal noise."""
    return not all(noise.exact or noise.added.normal for noise in map(output.noise, totals))


def mean_of(output: ReleasedColumn, total: Any, count: Any, deviation: float) -> Any:
    """A mean from a noisy sum and count: their ratio, shrunk towards the middle of the bounds.

    Input:  total: measured from the middle; deviation: that of its noise, σ (both column unit);
            count
    Output: middle + total · n / (n² + (σ/h)²) with n = max(count, 0) and h half the width of the
            bounds, inside them
    Bound:  none is needed, since it is post-processing. With the true n, and m the distance of the
            true mean from the middle, the mean square error is (n²σ² + (σ/h)⁴m²) / (n² + (σ/h)²)².
            Since |m| <= h it is at most σ² / (n² + (σ/h)²), below the σ² / n² of the ratio
    Source: Hoerl, Kennard 1970, Technometrics 12, for the weight; the bounds say how large m can be
    """
    ((_, part), *_) = output.totals
    return np.clip(
        float(part.grid.centre) + total / _divisor(output, count, deviation), *output.ends
    )


def _divisor(output: ReleasedColumn, count: Any, deviation: float) -> Any:
    """What the sum of a mean is divided by: n + (σ/h)²/n, as in
    `mean_of`; infinite where n <= 0.
    """
    low, high = output.ends
    half, number = high / 2 - low / 2, np.maximum(count, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        pull = np.divide((deviation / half) ** 2, number) if half and deviation else 0.0
    return np.where(number > 0, number + pull, np.inf)


def bounded_mean(output: ReleasedColumn, total: Any, count: Any, centre: float) -> Any:
    """A mean from a sum measured from a centre, inside the bounds (column unit)."""
    return np.clip(centre + total / np.maximum(count, 1.0), *output.ends)


def mean_interval(output: NoisyColumn, alpha: float) -> Interval:
    """Fieller's set, inside the bounds."""
    (name, total), (size, count) = output.totals[0], output.totals[-1]
    number, centre = output[size], float(total.grid.centre)
    ratio = output[name] / np.maximum(number, 1.0)
    sum_noise, count_noise = output.noise(total), output.noise(count)

    def fits(mean: Floats, groups: Integers) -> Booleans:
        terms = [(np.ones_like(mean), sum_noise), (np.abs(mean), count_noise)]
        rows = number[groups]
        return reaches(np.abs(ratio[groups] - mean) * rows, terms, alpha) | (rows < 1)

    least, most = output.ends_from(total.grid.centre)
    low, high = (np.clip(farthest_by_group(fits, ratio, end), least, most) for end in (least, most))
    return low + centre, high + centre


@dataclass(frozen=True)
class MeanThatFits:
    """The mean of a column, measured from a place:
    as released, and the ends between which it surely is.

    `shift` is how far the place that its sum is measured from is beside that place (column unit).
    """

    ratio: Floats
    near: Floats
    far: Floats
    shift: float

    @property
    def off(self) -> Floats:
        """Largest distance of the released mean from the true one."""
        return np.maximum(np.abs(self.ratio - self.near), np.abs(self.far - self.ratio))

    @property
    def widest(self) -> Floats:
        """The largest size of the true mean."""
        return np.maximum(np.abs(self.near), np.abs(self.far))


def mean_that_fits(output: NoisyColumn, alpha: float, about: Fraction) -> MeanThatFits:
    """The mean measured from a place, between ends that miss it with probability at most alpha."""
    (name, total), (size, _) = output.totals[0], output.totals[-1]
    shift = float(total.grid.centre - about)
    near, far = (end - float(about) for end in mean_interval(output, alpha))
    return MeanThatFits(output[name] / np.maximum(output[size], 1.0) + shift, near, far, shift)


def merged_mean_interval(
    output: NoisyColumn, alpha: float, total: float, number: float, groups: int
) -> tuple[float, float]:
    """The interval that holds the mean over several groups with
    probability 1 - alpha (column unit).

    Input:  total, number: the sum and the count over these groups, as released (column unit); how
            many groups they are
    Output: the two ends, inside the bounds; the bounds themselves if the count is below 1
    Bound:  Fieller's set for sums of noises: see `chernoff_error`. The error is convex in the mean:
            for each s the logarithm of Chernoff's bound is, and so is the minimum over s of its
            perspective. So a path away from the released value leaves the set at most once.
            Rounding counts as in `error_of_sum`
    """
    (_, sum_part), (_, count_part) = output.totals[0], output.totals[-1]
    centre = float(sum_part.grid.centre)
    least, most = output.ends_from(sum_part.grid.centre)
    if number < 1:
        return least + centre, most + centre
    ratio = total / number

    def fits(means: Floats) -> Booleans:
        (mean,) = means
        normal = 0.0
        terms: list[tuple[Floats, Noise]] = []
        for weight, noise in ((1.0, output.noise(sum_part)), (abs(mean), output.noise(count_part))):
            unit = weight * float(noise.total.unit)
            terms.append((np.array([unit]), noise))
            normal += groups * sum((deviation * unit) ** 2 for deviation in noise.added.normals)
            normal += groups * (unit * noise.step) ** 2
        laplace = [(scale.item(), groups) for scale in scales(terms)]
        return np.array([abs(ratio - mean) * number < chernoff_error(normal, laplace, alpha)])

    ends = (farthest(fits, np.array([ratio]), end).item() for end in (least, most))
    low, high = (min(max(end, least), most) + centre for end in ends)
    return low, high
