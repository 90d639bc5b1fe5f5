"""The aggregates: which noisy totals each of them needs, and how its released column follows from them."""

from dpframe.plan.statistics.base import Aggregate, Formula, Regressors, ReleasedColumn, Several
from dpframe.plan.statistics.choices import Cdf, Mode, Quantile
from dpframe.plan.statistics.sums import (
    Count,
    CountDistinct,
    CountUnits,
    GeometricMean,
    Mean,
    Missing,
    Skew,
    Std,
    Sum,
    Var,
)

__all__ = [
    "Aggregate",
    "Cdf",
    "Count",
    "CountDistinct",
    "CountUnits",
    "Formula",
    "GeometricMean",
    "Mean",
    "Missing",
    "Mode",
    "Quantile",
    "Regressors",
    "ReleasedColumn",
    "Several",
    "Skew",
    "Std",
    "Sum",
    "Var",
]
