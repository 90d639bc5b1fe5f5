"""Days, weeks, quarters and truncated times, from whole numbers: days and ticks since 1970."""

from __future__ import annotations

from collections.abc import Mapping

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.engine.stages.coerced import in_calendar, in_timedelta
from dpframe.engine.stages.operands import Columns, Lower, Operands
from dpframe.plan import TICKS, Every, Kind, Window, in_zone, kind, ticks_of_a_day, zone_of

_FIRST = -(2**63)
_DAY = 86_400  # seconds
_LAST = 2**63 - 1
_YEAR = 12  # months
_EPOCH = 1970 * _YEAR


def _days(here: Columns, value: nw.Expr, dtype: DType) -> nw.Expr:
    """The day of a date or time on the clock of its zone, as days since 1970."""
    if kind(dtype) == Kind.DATE:
        return value.cast(nw.Int64)
    if zone_of(dtype) is not None:
        return here.part(value, dtype, "days")
    return here.engine.retimed(value, dtype, nw.Date()).cast(nw.Int64)


def _date(here: Columns, on: Operands) -> nw.Expr:
    if on.kind == Kind.DATE:
        return on.value
    return here.engine.from_ticks(_days(here, on.value, on.dtype), nw.Date())


def _week(here: Columns, on: Operands) -> nw.Expr:
    """The number of the Thursday in its year: a week of ISO 8601
    belongs to the year of its Thursday.
    """
    day = here.hold(_days(here, on.value, on.dtype))
    thursday = day - here.engine.remainder(day + 3, 7) + 3
    ordinal = here.part(here.engine.from_ticks(thursday, nw.Date()), nw.Date(), "ordinal_day")
    return here.engine.quotient(ordinal - 1, 7) + 1


def _quarter(here: Columns, on: Operands) -> nw.Expr:
    return here.engine.quotient(here.part(on.value, on.dtype, "month") + 2, 3)


def _month_start(here: Columns, on: Operands) -> nw.Expr:
    value = here.hold(on.value)
    return _moved(
        here, value, (1 - here.part(value, on.dtype, "day")) * ticks_of_a_day(on.dtype), on.dtype
    )


def _truncate(here: Columns, on: Operands) -> nw.Expr:
    """The start of the window that holds a time: its ticks, less those since that start."""
    dtype, every = on.dtype, Every.read(on.options["every"])
    value = here.hold(on.value)
    ticks = here.hold(value.cast(nw.Int64))
    if every.window is not Window.MONTH:
        length = every.seconds * ticks_of_a_day(dtype) // _DAY
        since = here.engine.remainder(ticks, length)
        if every.window is Window.WEEK:  # the first Monday is the 5th of January 1970
            monday = here.hold(since) - 4 * ticks_of_a_day(dtype) % length
            since = nw.when(monday >= 0).then(monday).otherwise(monday + length)
        return _moved(here, value, since * -1, dtype)
    month = here.hold(_month(here, value, dtype))
    start = here.hold(month - here.engine.remainder(month - _EPOCH, every.months))
    back = here.hold(_first(here, start) - _days(here, value, dtype)) * ticks_of_a_day(dtype)
    if kind(dtype) != Kind.DATE:
        back = back - here.engine.remainder(ticks, ticks_of_a_day(dtype))
    return _moved(here, value, back, dtype)


def _offset(here: Columns, on: Operands) -> nw.Expr:
    """A time so much later. Of months: the same day of another month, or its last one."""
    dtype, typed = on.dtype, on.options["by"]
    every, sign = Every.read(typed.removeprefix("-")), -1 if typed.startswith("-") else 1
    value = here.hold(on.value)
    if every.window is not Window.MONTH:
        by = nw.when(~value.is_null()).then(
            nw.lit(sign * every.seconds * ticks_of_a_day(dtype) // _DAY)
        )
        return _moved(here, value, by, dtype)
    month = here.hold(_month(here, value, dtype) + sign * every.months)
    day = here.part(value, dtype, "day")
    inside = here.hold(nw.when((month >= _YEAR) & (month < 10_000 * _YEAR)).then(month))
    first, end = here.held_all([_first(here, inside), _first(here, inside + 1)])
    day = here.hold(nw.when(day > end - first).then(end - first).otherwise(day))
    return _moved(
        here, value, (first + day - 1 - _days(here, value, dtype)) * ticks_of_a_day(dtype), dtype
    )


def _month_end(here: Columns, on: Operands) -> nw.Expr:
    value = here.hold(on.value)
    end = here.hold(_first(here, _month(here, value, on.dtype) + 1))
    return _moved(
        here, value, (end - 1 - _days(here, value, on.dtype)) * ticks_of_a_day(on.dtype), on.dtype
    )


def _month(here: Columns, value: nw.Expr, dtype: DType) -> nw.Expr:
    """Months since January of the year 0."""
    return here.part(value, dtype, "year") * _YEAR + here.part(value, dtype, "month") - 1


def _first(here: Columns, month: nw.Expr) -> nw.Expr:
    """The first day of a month of the years 1 to 10,000, in days since 1970.

    Years that begin in March end with the leap day, and each five months from then on have 153
    days: see H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
    """
    quotient = here.engine.quotient
    since = here.hold(month - 2)
    year = here.hold(quotient(since, _YEAR))
    leap = quotient(year, 4) - quotient(year, 100) + quotient(year, 400)
    return year * 365 + leap + quotient((since - year * _YEAR) * 153 + 2, 5) - 719_468


def _moved(here: Columns, value: nw.Expr, by: nw.Expr, dtype: DType) -> nw.Expr:
    """A time so many ticks later; null outside of the years 1 to 9999, or of what 64 bits hold."""
    by = here.hold(by)
    ticks = here.hold(value.cast(nw.Int64))
    back = (by < 0) & (ticks >= nw.when(by < 0).then(by * -1) + _FIRST)
    ahead = (by >= 0) & (ticks <= _LAST - nw.when(by >= 0).then(by))
    there = nw.when(back | ahead).then(ticks) + by
    return here.engine.from_ticks(here.hold(in_calendar(here.hold(there), dtype)), dtype)


def _clock(here: Columns, on: Operands) -> nw.Expr:
    """A time as the clock of its zone shows it. Zones differ from UTC by whole seconds."""
    value, local = here.hold(on.value), in_zone(on.dtype, None)
    return _moved(here, value, here.part(value, on.dtype, "offset") * TICKS[local.time_unit], local)


def _later(here: Columns, on: Operands) -> nw.Expr:
    return _moved(here, here.hold(on.value), on.values[1], on.dtype)


def _from_ticks(here: Columns, on: Operands) -> nw.Expr:
    dtype = on.options["dtype"]
    return here.engine.from_ticks(here.hold(in_timedelta(here.hold(on.value), dtype)), dtype)


CALENDAR: Mapping[str, Lower] = {
    "dt.date": _date,
    "dt.week": _week,
    "dt.quarter": _quarter,
    "dt.month_start": _month_start,
    "dt.month_end": _month_end,
    "window": _truncate,
    "dt.offset_by": _offset,
    "ticks": lambda _, on: on.value.cast(nw.Int64),
    "later": _later,
    "dt.clock": _clock,
    "from_ticks": _from_ticks,
}
