"""Aggregates for `.agg(name=...)`."""

from __future__ import annotations

from dpframe.api.arguments import read_bounds, read_name, read_share
from dpframe.errors import InvalidBounds
from dpframe.plan.aggregates import Aggregate, Count, CountUnits, Mean, Sum

__all__ = ["count", "count_units", "mean", "sum"]


def count(column: str | None = None, *, share: float = 1) -> Aggregate:
    """Number of rows, or of the values of a column that are not missing.

    Input:  column, or None for rows; share, the weight of this aggregate when ε is split
    Output: integer, signed: noise can take it below zero
    Bound:  see `dpframe.theory.maps.sensitivity.row_counts`
    Errors: UnknownColumn, WrongType, UnboundedContribution where it is asked

    >>> count().typed
    'count()'
    """
    return Count(read_share(share), None if column is None else read_name(column, "count"))


def count_units(*, share: float = 1) -> Aggregate:
    """Number of distinct units (with `dp.Rows(k)`, where nobody can tell them apart, of rows).

    Output: integer, signed
    Bound:  see `dpframe.theory.maps.sensitivity.unit_counts`

    >>> count_units().typed
    'count_units()'
    """
    return CountUnits(read_share(share))


def sum(  # the field's word, used as dp.sum
    column: str,
    bounds: tuple[float, float] | None = None,
    unit_bounds: tuple[float, float] | None = None,
    *,
    share: float = 1,
) -> Aggregate:
    """Sum of a column; missing values add nothing.

    Input:  bounds (column unit): each value is clipped to them, needed unless the column was clipped before;
            unit_bounds (column unit): instead, each unit's total per group is clipped, and no limit on rows is needed
    Output: column unit; an integer for an integer column
    Bound:  see `dpframe.theory.maps.sensitivity.row_sums` and `unit_sums`
    Errors: InvalidBounds; MissingBounds, UnknownColumn, WrongType, UnboundedContribution where it is asked

    >>> sum("spend", bounds=(0, 100)).typed
    "sum('spend', bounds=(0, 100))"
    """
    name = read_name(column, "sum")
    rows, units = read_bounds(bounds, f"sum({name!r})"), read_bounds(unit_bounds, f"sum({name!r})")
    if rows is not None and units is not None:
        raise InvalidBounds(
            f"sum({name!r}): give bounds= for each row or unit_bounds= for each unit's total, not both."
        )
    return Sum(read_share(share), name, rows, units)


def mean(column: str, bounds: tuple[float, float] | None = None, *, share: float = 1) -> Aggregate:
    """Mean of a column's values that are not missing, kept inside the bounds.

    Input:  bounds (column unit) as in `sum`
    Output: column unit, float
    Bound:  a sum measured from the middle of the bounds, whose values are at most half their width, and a count of the
            values. Where values cannot be missing (`drop_nulls`, `fill_null`) the count is that of the rows, and every
            mean and `count()` of the same ask share it
    Errors: as in `sum`

    >>> mean("wage").typed
    "mean('wage')"
    """
    name = read_name(column, "mean")
    return Mean(read_share(share), name, read_bounds(bounds, f"mean({name!r})"))
