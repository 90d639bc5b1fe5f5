"""Transformations: functions of datasets, each with a bound on how far it can spread two neighbours."""

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
from dpframe.theory.transformations.resizing import (
    resize,
)
from dpframe.theory.transformations.rowwise import (
    cast,
    clamp,
    impute,
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
