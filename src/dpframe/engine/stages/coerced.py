"""Values in narwhals that all stages share: numbers without NaN, whole numbers of 64
bits, dates in years 1 to 9999.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.plan import (
    TICKS,
    ColumnDomain,
    integer_range,
    is_wide,
    ticks_of_a_day,
    time_unit,
    zone_of,
)

# a result whose float is smaller than this in magnitude fits in int64: 2^63 is 9.223e18
WITHIN = 9.2e18


def not_nan(value: nw.Expr) -> nw.Expr:
    """Null in place of NaN."""
    return nw.when(~value.is_nan()).then(value)


def to_float(value: nw.Expr) -> nw.Expr:
    """A number as Float64."""
    return value.cast(nw.Float64)


def typed(value: Any) -> Any:
    """A constant of an expression.
    A whole number from 2^63 on gets its type: Ibis takes plain ones for int64.
    """
    return nw.lit(value, nw.UInt64()) if isinstance(value, int) and value >= 2**63 else value


def beyond(value: int | None) -> Any:
    """An end of a clip.
    One beyond 128 bits with a sign gets its type: Polars takes no plain one.
    """
    return nw.lit(value, nw.UInt128()) if value is not None and value >= 2**127 else value


def by_edges(
    value: nw.Expr,
    edges: Sequence[float],
    constants: Sequence[float],
    constant: Callable[[float], nw.Expr] = nw.lit,
) -> nw.Expr:
    """The constant of the interval between growing edges that holds a value.
    Bisection keeps the expression shallow.
    """
    if not edges:
        return constant(constants[0])
    middle = len(edges) // 2
    below = by_edges(value, edges[:middle], constants[: middle + 1], constant)
    above = by_edges(value, edges[middle + 1 :], constants[middle + 1 :], constant)
    return nw.when(value < constant(edges[middle])).then(below).otherwise(above)


def in_calendar(
    value: nw.Expr, dtype: DType, years: tuple[int, int] = (1, 9999), becomes: DType | None = None
) -> nw.Expr:
    """Null in place of a date or time outside of the years.

    For a time that has a zone, or gets one, the range is a day shorter at each end: the zone's
    clock may be a day off.
    """
    spare = any(zone_of(one) is not None for one in (dtype, becomes))
    epoch, ticks = dt.date(1970, 1, 1), value.cast(nw.Int64)
    per_day = ticks_of_a_day(dtype)
    low = ((dt.date(years[0], 1, 1) - epoch).days + spare) * per_day
    high = ((dt.date(years[1], 12, 31) - epoch).days + 1 - spare) * per_day
    return nw.when((ticks >= max(low, -(2**63))) & (ticks < min(high, 2**63 - 1))).then(value)


def in_timedelta(value: nw.Expr, dtype: DType) -> nw.Expr:
    """Null in place of a duration of more than 999,999,999 days:
    Python has none, so it could not be shown.
    """
    most = dt.timedelta.max.days * 86_400 * TICKS[time_unit(dtype)]
    ticks = value.cast(nw.Int64)
    return value if most > 2**63 else nw.when((ticks >= -most) & (ticks <= most)).then(value)


def int64(value: nw.Expr, domain: ColumnDomain) -> nw.Expr:
    """A whole number as Int64, null where it does not fit."""
    if is_wide(domain.dtype):
        low, high = integer_range(nw.Int64())
        inside = value <= high if domain.dtype == nw.UInt64 else (value <= high) & (value >= low)
        value = nw.when(inside).then(value)
    return value.cast(nw.Int64)


def one_zero(value: nw.Expr) -> nw.Expr:
    """A column of floats with 0.0 in place of -0.0, which are one number.

    Adding 0.0 is not enough: Polars returns the column of an eager table unchanged. Then a key
    would be released as it stands in the first row of its group, and one cell would show.
    """
    return nw.when(value == 0).then(value.abs() + 0.0).otherwise(value)
