"""The noisy totals of a question: how each is made, and how far one unit moves it."""

from dpframe.plan.totals.base import Factor, Total, TotalKind, is_whole
from dpframe.plan.totals.choices import candidates_of, mode_total, rank_total, tree_total
from dpframe.plan.totals.sums import (
    bounds_of,
    distinct_total,
    from_middle,
    in_ticks,
    log_total,
    middle_of,
    number_column,
    power_total,
    product_total,
    row_total,
    sum_total,
    unit_sum_total,
    units_total,
    value_total,
    weights_total,
    without_bounds,
)

__all__ = [
    "Factor",
    "Total",
    "TotalKind",
    "bounds_of",
    "candidates_of",
    "distinct_total",
    "from_middle",
    "in_ticks",
    "is_whole",
    "log_total",
    "middle_of",
    "mode_total",
    "number_column",
    "power_total",
    "product_total",
    "rank_total",
    "row_total",
    "sum_total",
    "tree_total",
    "unit_sum_total",
    "units_total",
    "value_total",
    "weights_total",
    "without_bounds",
]
