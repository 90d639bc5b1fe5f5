"""The aggregates: which noisy totals each of them needs, and how its
released column follows from them.
"""

from dpframe.plan.statistics.base import (
    Aggregate,
    Aggregates,
    Formula,
    Named,
    Regressors,
    ReleasedColumn,
    Several,
)
from dpframe.plan.statistics.choices import Cdf, Mode, Quantile, cut_at_points
from dpframe.plan.statistics.sums import (
    Count,
    CountDistinct,
    CountUnits,
    Mean,
    Missing,
    Std,
    Sum,
)

__all__ = [
    "Aggregate",
    "Aggregates",
    "Cdf",
    "Count",
    "CountDistinct",
    "CountUnits",
    "Formula",
    "Mean",
    "Missing",
    "Mode",
    "Named",
    "Quantile",
    "Regressors",
    "ReleasedColumn",
    "Several",
    "Std",
    "Sum",
    "cut_at_points",
]
