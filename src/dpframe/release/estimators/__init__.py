"""Estimators: each statistic from noisy totals, with its interval and its expected error.

One file holds one statistic, with its `Estimator`; the table below registers it under its formula.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpframe.plan import Formula, ReleasedColumn
from dpframe.release.estimators.base import (
    Compared,
    Estimator,
    Noisy,
    Shrunk,
    in_ticks,
    real,
    shown,
    whole_rows,
)
from dpframe.release.estimators.binned_values import BinnedValues
from dpframe.release.estimators.correlation import CorrelationEstimator
from dpframe.release.estimators.covariance import CovarianceEstimator
from dpframe.release.estimators.geometric_mean import GeometricMeanEstimator
from dpframe.release.estimators.influence import (
    Influence,
    NoisyColumn,
    Sampled,
    adaptive_moments,
    covariances,
    influence_weights,
    sampling_variance,
)
from dpframe.release.estimators.mean import MeanEstimator, mean_of, merged_mean_interval
from dpframe.release.estimators.mode import ModeEstimator, rows_fewer
from dpframe.release.estimators.quantile import QuantileEstimator, end_names
from dpframe.release.estimators.rank_tree import CdfEstimator, tree_ends
from dpframe.release.estimators.ratio import RatioEstimator
from dpframe.release.estimators.standardized import KurtosisEstimator, SkewEstimator
from dpframe.release.estimators.total import (
    CountEstimator,
    MissingEstimator,
    SumEstimator,
    error_of_part,
    error_of_sum,
    source_of,
    variances,
)
from dpframe.release.estimators.variance import StandardDeviationEstimator, VarianceEstimator

__all__ = [
    "BinnedValues",
    "Compared",
    "Estimator",
    "Influence",
    "Noisy",
    "NoisyColumn",
    "Sampled",
    "Shrunk",
    "adaptive_moments",
    "covariances",
    "end_names",
    "error_of_part",
    "error_of_sum",
    "estimator_of",
    "in_ticks",
    "influence_weights",
    "mean_of",
    "merged_mean_interval",
    "real",
    "rows_fewer",
    "sampling_variance",
    "shown",
    "source_of",
    "tree_ends",
    "variances",
    "whole_rows",
]

_ESTIMATORS: Mapping[Formula, Estimator] = {
    Formula.COUNT: CountEstimator(),
    Formula.MISSING: MissingEstimator(),
    Formula.SUM: SumEstimator(),
    Formula.MEAN: MeanEstimator(),
    Formula.VAR: VarianceEstimator(),
    Formula.STD: StandardDeviationEstimator(),
    Formula.SKEW: SkewEstimator(),
    Formula.KURTOSIS: KurtosisEstimator(),
    Formula.GEOMETRIC_MEAN: GeometricMeanEstimator(),
    Formula.RATIO: RatioEstimator(),
    Formula.COV: CovarianceEstimator(),
    Formula.CORR: CorrelationEstimator(),
    Formula.QUANTILE: QuantileEstimator(),
    Formula.MODE: ModeEstimator(),
    Formula.CDF: CdfEstimator(),
}


def estimator_of(output: ReleasedColumn) -> Estimator:
    """The estimator of a released column."""
    return _ESTIMATORS[output.formula]
