"""How each statistic follows from noisy totals, with its interval and its expected error.

One file holds one statistic, with its `Estimator`; the table below registers it under its formula.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpframe.plan import Formula, ReleasedColumn
from dpframe.release.estimators.base import Estimator, Noisy, Parts, in_ticks, real, shown
from dpframe.release.estimators.margins import error_of_part, source_of, variances
from dpframe.release.estimators.mean import Mean, mean_of, merged_mean_interval
from dpframe.release.estimators.mode import Mode, rows_fewer
from dpframe.release.estimators.quantile import Quantile, end_names
from dpframe.release.estimators.total import Count, Sum, error_of_sum
from dpframe.release.estimators.variance import StandardDeviation, Variance

__all__ = [
    "Estimator",
    "Noisy",
    "Parts",
    "end_names",
    "error_of_part",
    "error_of_sum",
    "estimator_of",
    "in_ticks",
    "mean_of",
    "merged_mean_interval",
    "real",
    "rows_fewer",
    "shown",
    "source_of",
    "variances",
]

_ESTIMATORS: Mapping[Formula, Estimator] = {
    Formula.COUNT: Count(),
    Formula.SUM: Sum(),
    Formula.MEAN: Mean(),
    Formula.VAR: Variance(),
    Formula.STD: StandardDeviation(),
    Formula.QUANTILE: Quantile(),
    Formula.MODE: Mode(),
}


def estimator_of(output: ReleasedColumn) -> Estimator:
    """The estimator of a released column."""
    return _ESTIMATORS[output.formula]
