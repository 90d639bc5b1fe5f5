"""Transformations: functions of datasets, each with a bound on how far it can spread two neighbours."""

from dpframe.theory.transformations.aggregates import (
    count,
    mean,
    quantile_scores,
    sum,
    sum_squared_deviations,
    variance,
)
from dpframe.theory.transformations.counting import (
    consistent_tree,
    count_by,
    histogram,
    tree,
)
from dpframe.theory.transformations.records import (
    cast,
    clamp,
    impute,
    join,
    resize,
)
from dpframe.theory.transformations.units import (
    grouped_counts,
    grouped_pairs,
    grouped_sums,
    grouped_units,
)

__all__ = [
    "cast",
    "clamp",
    "consistent_tree",
    "count",
    "count_by",
    "grouped_counts",
    "grouped_pairs",
    "grouped_sums",
    "grouped_units",
    "histogram",
    "impute",
    "join",
    "mean",
    "quantile_scores",
    "resize",
    "sum",
    "sum_squared_deviations",
    "tree",
    "variance",
]
