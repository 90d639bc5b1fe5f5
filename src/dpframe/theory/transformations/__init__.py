"""Transformations: functions of datasets, each with a bound on how far it can spread two neighbours."""

from dpframe.theory.transformations.aggregates import (
    count,
    mean,
    sum,
    sum_squared_deviations,
    variance,
)
from dpframe.theory.transformations.counting import (
    count_by,
    histogram,
)
from dpframe.theory.transformations.joins import (
    join,
)
from dpframe.theory.transformations.ranks import (
    quantile_scores,
)
from dpframe.theory.transformations.resizing import (
    resize,
)
from dpframe.theory.transformations.rowwise import (
    cast,
    clamp,
    impute,
)
from dpframe.theory.transformations.trees import (
    consistent_tree,
    tree,
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
