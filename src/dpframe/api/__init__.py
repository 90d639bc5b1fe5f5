"""What users call: protected frames, aggregates, queries."""

from dpframe.api.aggregates import (
    count,
    count_units,
    first,
    geometric_mean,
    last,
    max,
    mean,
    median,
    min,
    mode,
    n_unique,
    quantile,
    std,
    sum,
    var,
)
from dpframe.api.arguments import (
    Pair,
)
from dpframe.api.concat import (
    concat,
)
from dpframe.api.frame import PrivateFrame, protect
from dpframe.api.groups import PrivateGroupBy
from dpframe.api.limits import (
    Auto,
)
from dpframe.api.query import Query
from dpframe.api.settings import set_budget

__all__ = [
    "Auto",
    "Pair",
    "PrivateFrame",
    "PrivateGroupBy",
    "Query",
    "concat",
    "count",
    "count_units",
    "first",
    "geometric_mean",
    "last",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "n_unique",
    "protect",
    "quantile",
    "set_budget",
    "std",
    "sum",
    "var",
]
