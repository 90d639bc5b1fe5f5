"""Transformations: functions of datasets, each with a bound on how
far it can spread two neighbours.
"""

from dpframe.theory.transformations.aggregates import (
    count,
    mean,
    sum,
    variance,
)
from dpframe.theory.transformations.counting import (
    count_by,
    histogram,
)
from dpframe.theory.transformations.records import (
    cast,
    clamp,
    impute,
    resize,
)

__all__ = [
    "cast",
    "clamp",
    "count",
    "count_by",
    "histogram",
    "impute",
    "mean",
    "resize",
    "sum",
    "variance",
]
