"""Days, weeks, quarters and truncated times, from whole numbers: days and ticks since 1970."""

from __future__ import annotations

from collections.abc import Mapping

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.engine.stages.operands import Columns, Lower, Operands
from dpframe.engine.stages.values import TICKS, in_calendar
from dpframe.plan import Every, Kind, Window, kind

_FIRST = -(2**63)
_DAY = 86_400  # seconds
_QUARTERS = (0, 90, 181, 273)  # days from the first of January to each quarter, without the 29th of February


def _days(here: Columns, value: nw.Expr, dtype: DType) -> nw.Expr:
    """The day of a date or time on the clock of its zone, as days since 1970."""
    if kind(dtype) == Kind.DATE:
        return value.cast(nw.Int64)
    if getattr(dtype, "time_zone", None) is not None:
        return here.part(value, dtype, "days")
    return here.engine.retimed(value, dtype, nw.Date()).cast(nw.Int64)


def _date(here: Columns, on: Operands) -> nw.Expr:
    if on.kind == Kind.DATE:
        return on.value
    return here.engine.from_ticks(_days(here, on.value, on.dtype), nw.Date())


def _week(here: Columns, on: Operands) -> nw.Expr:
    """The number of the Thursday in its year: a week of ISO 8601 belongs to the year of its Thursday."""
    day = here.hold(_days(here, on.value, on.dtype))
    thursday = day - here.engine.remainder(day + 3, 7) + 3
    ordinal = here.part(here.engine.from_ticks(thursday, nw.Date()), nw.Date(), "ordinal_day")
    return here.engine.quotient(ordinal - 1, 7) + 1


def _quarter(here: Columns, on: Operands) -> nw.Expr:
    return here.engine.quotient(here.part(on.value, on.dtype, "month") + 2, 3)


def _month_start(here: Columns, on: Operands) -> nw.Expr:
    dtype = on.dtype
    value = here.hold(on.value)
    back = here.hold((here.part(value, dtype, "day") - 1) * _per_day(dtype))
    return _time(here, value.cast(nw.Int64), back, dtype)


def _truncate(here: Columns, on: Operands) -> nw.Expr:
    """The start of the window that holds a time: its ticks, less those since that start."""
    dtype, every = on.dtype, Every.read(on.options["every"])
    value = here.hold(on.value)
    ticks = here.hold(value.cast(nw.Int64))
    if every.seconds:
        length = every.seconds * _per_day(dtype) // _DAY
        return _time(here, ticks, here.hold(here.engine.remainder(ticks, length)), dtype)
    day = here.hold(_days(here, value, dtype))
    back = here.hold(_since(here, value, day, dtype, every.window) * _per_day(dtype))
    if kind(dtype) == Kind.DATE:
        return _time(here, ticks, back, dtype)
    clock = here.hold(here.engine.remainder(ticks, _per_day(dtype)))
    return _time(here, ticks, here.hold(back + clock), dtype)


def _since(here: Columns, value: nw.Expr, day: nw.Expr, dtype: DType, window: Window) -> nw.Expr:
    """Days since the start of a week, month, quarter or year."""
    if window is Window.WEEK:
        return here.engine.remainder(day + 3, 7)
    if window is Window.MONTH:
        return here.part(value, dtype, "day") - 1
    ordinal = here.part(value, dtype, "ordinal_day")
    if window is Window.YEAR:
        return ordinal - 1
    ordinal, month = here.hold(ordinal), here.hold(here.part(value, dtype, "month"))
    year = here.hold(here.part(value, dtype, "year"))
    fourth, hundredth, last = (here.hold(here.engine.remainder(year, n)) for n in (4, 100, 400))
    leap = nw.when(((fourth == 0) & (hundredth > 0)) | (last == 0)).then(nw.lit(1)).otherwise(nw.lit(0))
    past = nw.lit(_QUARTERS[0])
    for first, days in zip((4, 7, 10), _QUARTERS[1:], strict=True):
        past = nw.when(month >= first).then(nw.lit(days)).otherwise(past)
    return ordinal - 1 - past.cast(nw.Int64) - nw.when(month >= 4).then(leap).otherwise(nw.lit(0)).cast(nw.Int64)


def _per_day(dtype: DType) -> int:
    return 1 if kind(dtype) == Kind.DATE else TICKS[getattr(dtype, "time_unit", "us")] * _DAY


def _time(here: Columns, ticks: nw.Expr, back: nw.Expr, dtype: DType) -> nw.Expr:
    """A time so many ticks before; null where it is before the year 1, or below what 64 bits hold."""
    start = nw.when(ticks >= back + _FIRST).then(ticks) - back
    return in_calendar(here.hold(here.engine.from_ticks(start, dtype)), dtype)


CALENDAR: Mapping[str, Lower] = {
    "dt.date": _date,
    "dt.week": _week,
    "dt.quarter": _quarter,
    "dt.month_start": _month_start,
    "dt.truncate": _truncate,
}
