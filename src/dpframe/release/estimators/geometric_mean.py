"""Geometric means: e to the mean of logarithms, whose sum and count are noisy."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from dpframe.arrays import Floats
from dpframe.plan import Bounds, ReleasedColumn
from dpframe.release.estimators.base import Compared, Estimator, Interval, Noisy, bounds_of, widened
from dpframe.release.estimators.influence import NoisyColumn
from dpframe.release.estimators.mean import MeanEstimator

_LOGS = MeanEstimator()


class GeometricMeanEstimator(Estimator):
    """e to the mean of the logarithms, kept inside the bounds;
    the exponential is post-processing.
    """

    shrinks = compares = True

    def value(self, output: NoisyColumn, noisy: Noisy) -> Any:
        return _exponential(output, _LOGS.value(_of_logs(output), noisy))

    def interval(
        self, output: NoisyColumn, alpha: float, released: Floats, rows: Floats | None
    ) -> Interval:
        """Exponentials of the ends of the interval of the mean of logarithms;
        it holds as often, for they only grow.
        """
        ends = _LOGS.interval(_of_logs(output), alpha, np.log(released), rows)
        return widened((_exponential(output, end) for end in ends), released)

    def widest(self, output: NoisyColumn) -> tuple[Any, Any] | None:
        """The bounds."""
        return bounds_of(output)

    def compared(self, output: NoisyColumn) -> Compared:
        """Means of logarithms beside that of all groups together."""
        return _LOGS.compared(_of_logs(output))

    def from_ratio(self, output: NoisyColumn, ratios: Floats) -> Floats:
        """The exponential of the mean of logarithms."""
        return np.asarray(_exponential(output, ratios))

    def expected_error(self, output: NoisyColumn, alpha: float, rows: float | None) -> float | None:
        """Whatever the values in their bounds are.

        Bound:  let e bound the error of the mean of logarithms. Of the true and the released
                geometric mean, both in the bounds, let b be the greater: the other one is at least
                b·exp(-e), so they are at most b·(1 - exp(-e)) <= high·(1 - exp(-e)) apart, and
                never more than the width of the bounds
        """
        error = _LOGS.expected_error(_of_logs(output), alpha, rows)
        if error is None:
            return None
        low, high = output.ends
        return min(-high * math.expm1(-error), high - low)


def _of_logs(output: NoisyColumn) -> NoisyColumn:
    """The mean of logarithms that a geometric mean is made of."""
    assert output.bounds is not None
    return replace(output, bounds=Bounds(*(math.log(end) for end in output.bounds)))


def _exponential(output: ReleasedColumn, logs: Any) -> Any:
    """The exponential of a mean of logarithms, inside the bounds (column unit)."""
    return np.clip(np.exp(logs), *output.ends)
