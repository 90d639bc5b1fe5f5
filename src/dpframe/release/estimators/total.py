"""Counts and sums: the noisy total itself; missing values, the difference of
two; and measured margins of both.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from dpframe.arrays import Floats, Integers
from dpframe.plan import ReleasedColumn, Total
from dpframe.release.estimators.base import Estimator, Interval, Noisy, real
from dpframe.release.estimators.binned_values import BinnedValues
from dpframe.release.estimators.fieller import farthest, reaches
from dpframe.release.estimators.influence import (
    Influence,
    NoisyColumn,
    Sampled,
    adaptive_moments,
    reach_of,
)
from dpframe.release.estimators.sampling import sampled_total, total_population
from dpframe.release.pricing import Noise, NoisePlan
from dpframe.theory.formulas.error import (
    Source,
    estimators,
    laplace_total_error,
    sum_error,
    whole_total_error,
)

Margin = Literal["cell", "row", "column", "total"]

_COARSE = 20  # the scale below which the law of discrete noise is told from that of real noise
_WHOLE = (-(2.0**62), 2.0**62)  # a number of rows, far inside int64


class SumEstimator(Estimator):
    """The noisy total."""

    adds_up = compares = True

    def value(self, output: NoisyColumn, noisy: Noisy) -> Any:
        total = output.total
        return _whole(total, noisy) if output.whole else real(total, noisy)

    def interval(
        self, output: NoisyColumn, alpha: float, numbers: Floats, rows: Floats | None
    ) -> Interval:
        """By the tails of the noise, exactly."""
        error = _direct_error(output, alpha) * output.ticks
        return numbers - error, numbers + error

    def population(self, output: NoisyColumn, alpha: float, numbers: Floats) -> Interval:
        """The totals that fit noise and the sampling of people, whose number is random too."""
        return total_population(output, alpha, numbers)

    def influence(self, output: NoisyColumn) -> Influence:
        """Contribution of a person to the total."""
        ((name, total),) = output.totals
        moment = adaptive_moments(output)[0][1].moment
        assert moment is not None
        ones = np.ones(moment.groups)
        largest = max(map(abs, reach_of(output, total)))
        return Influence({name: ones}, largest * ones)

    def sampled(self, output: NoisyColumn, numbers: Floats) -> Sampled:
        """The sampling variance from a second moment, or from the number itself."""
        return sampled_total(output, numbers)

    def expected_error(self, output: NoisyColumn, alpha: float, rows: float | None) -> float | None:
        """The error before and after a release: it does not depend on the data."""
        return float(np.max(_direct_error(output, alpha))) * output.ticks

    def clipping_error(
        self, values: BinnedValues, low: Integers, high: Integers, noise: Floats
    ) -> Floats | None:
        most = np.maximum(np.abs(values.edges[low]), np.abs(values.highs[high]))
        return np.hypot(values.lost(low, high), noise * most)

    def reach(self, output: ReleasedColumn) -> float:
        """The largest value of a row (column unit)."""
        total = output.total
        return float(total.grid.magnitude * total.grid.step)


class MissingEstimator(Estimator):
    """The noisy number of rows less the noisy number of values, rounded to a whole
    number; signed, as counts are.
    """

    adds_up = True

    def value(self, output: NoisyColumn, noisy: Noisy) -> Any:
        (_, rows), (_, values) = output.totals
        return np.clip(np.rint(real(rows, noisy) - real(values, noisy)), *_WHOLE).astype(np.int64)

    def interval(
        self, output: NoisyColumn, alpha: float, numbers: Floats, rows: Floats | None
    ) -> Interval:
        """By the law of the difference of both noises."""
        error = _difference_error(output, alpha)
        return numbers - error, numbers + error

    def expected_error(self, output: NoisyColumn, alpha: float, rows: float | None) -> float | None:
        """The error before and after a release: it does not depend on the data."""
        return _difference_error(output, alpha)

    def reach(self, output: ReleasedColumn) -> float:
        """One row."""
        return 1.0


class CountEstimator(SumEstimator):
    """The noisy total, rounded to a whole number."""

    def clipping_error(
        self, values: BinnedValues, low: Integers, high: Integers, noise: Floats
    ) -> Floats | None:
        return None

    def reach(self, output: ReleasedColumn) -> float:
        """One row."""
        return 1.0


def _whole(total: Total, noisy: Noisy) -> Any:
    """A noisy total rounded to an integer, held inside int64."""
    values, per = noisy[total.key], total.per_one
    if per > 1:
        values = (values + per // 2) // per
    if values.dtype == object:
        values = np.array([min(max(v, -(2**63)), 2**63 - 1) for v in values], dtype=np.int64)
    return values


def _direct_error(output: NoisyColumn, alpha: float) -> float | Floats:
    """The error of a count or sum, or of each (column unit).
    A total with fraction bits is rounded after the noise.
    """
    total = output.total
    if output.plan.reconciled:
        return error_of_part(output, "cell", alpha)
    if output.whole and total.per_one > 1:
        return output.noise(total).mechanism.error(alpha, total.per_one)
    return output.noise(total).error(alpha)


def _difference_error(output: NoisyColumn, alpha: float) -> float:
    """The smallest error of rows less values that both noises together exceed with
    probability at most alpha (rows).

    Bound:  the noises are independent, and symmetric about 0; see `fieller.reaches`. Fractions of
            rows are rounded after the noise, which adds up to 1/2. Without fractions the error is a
            whole number
    """
    (_, rows), (_, values) = output.totals
    noises = [output.noise(total) for total in (rows, values)]
    if rows.key == values.key or all(noise.exact for noise in noises):
        return 0.0
    terms = [(np.ones(1), noise) for noise in noises]
    most = sum(noise.error(alpha / 2) for noise in noises) + 1.0
    error = farthest(lambda size: reaches(size, terms, alpha), np.zeros(1), most).item()
    return error + 0.5 if rows.fraction or values.fraction else float(math.floor(error + 1e-9))


def error_of_sum(output: NoisyColumn, alpha: float, number: int) -> float:
    """Error of the sum of several released counts or sums of one column, all
    with the same noise: of a margin.

    It is the error relative to the sum of the true totals. Fractions in true counts add less than
    rounding does.

    Bound:  for whole numbers, the exact law of the sum: see `whole_total_error`. For other numbers,
            the law of the real noises, see `laplace_total_error`, and half a step of the grid for
            rounding each. A sum of normal noises is normal; rounding each counts as a noise of
            variance 1/4 step², three times the variance of a uniform error of that size; see
            `_of_whole` for whole numbers
    """
    total = output.total
    noise = output.noise(total)
    if noise.exact:
        return 0.0
    unit = float(total.unit)
    rounding = 1.0 if output.whole and total.per_one > 1 else 0.0
    law, scales = noise.added, [scale * unit for scale in noise.added.laplaces]
    if law.normal or len(scales) > 1:
        variance = sum((deviation * unit) ** 2 for deviation in law.normals)
        several = [(scale, number, 0.0) for scale in scales]
        error = sum_error(number * (variance + (unit**2 + rounding) / 4), several, alpha)
        return _of_whole(error) if output.whole and total.per_one == 1 else error
    (scale,) = scales
    if output.whole:
        whole = whole_total_error(scale, number, alpha, discrete=law.discrete)
        if whole is not None:
            return float(whole)
    return laplace_total_error(scale, number, alpha) + number * (unit + rounding) / 2


# Crosstabs with measured margins


def error_of_part(output: NoisyColumn, part: Margin, alpha: float) -> float | Floats:
    """Error of a cell or margin of a reconciled table, exceeded with
    probability at most alpha (column unit).

    Bound:  a sum of independent noises with the coefficients of `estimators`, whose law is exact:
            see `sum_error`. Rounding a noise to its grid counts as a normal noise of variance 1/4
            step². Rounding to whole numbers that add up counts as one of variance 1/3; see
            `_of_whole`. Discrete Laplace noise K of scale b is real noise L that is rounded, too:
            |K| is |L| + d rounded down where e^(d/b) = 2 / (1 + e^(-1/b)), since P[|K| >= k] =
            2e^(-k/b) / (1 + e^(-1/b)) = P[|L| >= k - d]. Steps that matter for whole numbers keep
            their own law
    """
    if output.plan.fitted:
        return output.plan.fitted[part].error(alpha)
    assert output.plan.shape is not None
    terms = getattr(estimators(*output.plan.shape, variances(output.plan)), part)
    sources = _sources(output.plan)
    normal = 1 / 3 if output.whole else 0.0
    scales: list[tuple[float, int, float]] = []
    for weight, source, number in terms:
        if source not in sources or not number:
            continue
        law, unit = sources[source].added, float(sources[source].total.unit)
        normal += number * sum((weight * deviation * unit) ** 2 for deviation in law.normals)
        coarse = law.discrete and output.whole and law.scale < _COARSE
        normal += 0.0 if coarse else number * (weight * max(law.step, law.discrete / 2) * unit) ** 2
        scales += [
            (abs(weight * b) * unit, number, abs(weight) * unit * coarse) for b in law.laplaces
        ]
    error = sum_error(normal, scales, alpha)
    whole = output.whole and not output.total.fraction
    return _of_whole(error) if whole else error


def _of_whole(error: float) -> float:
    """The error of a whole number, from that of the real number X of
    which it is about the rounded one.

    Bound:  a whole number exceeds e from e + 1 on, where X is at least e + 1/2: e + 1/2 is at least
            the error of X
    """
    return float(math.ceil(error - 0.5))


def source_of(noise: Noise) -> Source:
    """The source of a noise: cells, or one of the margins."""
    return noise.total.merged or "cells"


def _sources(plan: NoisePlan) -> dict[Source, Noise]:
    return {source_of(noise): noise for noise in plan.noises}


def variances(plan: NoisePlan) -> dict[Source, float]:
    """The variance of the noise of each source."""
    return {source: noise.deviation**2 for source, noise in _sources(plan).items()}
