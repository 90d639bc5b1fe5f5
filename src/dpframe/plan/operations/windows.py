"""Windows of time, such as a week, and the domains of days, weeks, quarters and truncated times."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, WrongType
from dpframe.plan.columns import Bounds, ColumnDomain
from dpframe.plan.operations.rules import Applied, Operation, corner_bounds
from dpframe.plan.types import TIMES, Kind, kind, ticks_of_a_day, time_unit, zone_of

_DAY = 86_400  # seconds
_FINE: tuple[Literal["ms", "us", "ns"], ...] = ("ms", "us", "ns")
_YEARS = 9999 * 366  # days, more than from 1970 to the year 1 or 9999
_LONGEST = 100 * 366 * _DAY  # seconds


class Window(StrEnum):
    """A window of whole months of the calendar, of weeks, or of a number of seconds."""

    WEEK = "week"
    MONTH = "month"
    CLOCK = "clock"


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": _DAY, "w": 7 * _DAY}
_MONTHS = {"mo": 1, "q": 3, "y": 12}
TOTALS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}


@dataclass(frozen=True)
class Every:
    """Windows of time, as Polars writes them: "1w" begins on Monday; "15m"
    counts from midnight of 1970-01-01.

    >>> Every.read("1q"), Every.read("2h").seconds
    (Every(window=<Window.MONTH: 'month'>, seconds=0, months=3), 7200)
    """

    window: Window
    seconds: int = 0  # length of a window that is not of the calendar
    months: int = 0  # length of one that is

    @classmethod
    def read(cls, typed: object, call: str = "dt.truncate") -> Every:
        """A text such as "2w", "1mo", "1q", "1y", "1d", "6h", "15m" or "30s".
        Errors: InvalidArgument.
        """
        form = (
            re.fullmatch(r"([0-9]{1,9})(s|m|h|d|w|mo|q|y)", typed)
            if isinstance(typed, str)
            else None
        )
        if form is not None:
            number, unit = int(form[1]), form[2]
            if unit in _MONTHS and 1 <= number * _MONTHS[unit] <= 1200:
                return cls(Window.MONTH, months=number * _MONTHS[unit])
            if unit in _SECONDS and 1 <= number * _SECONDS[unit] <= _LONGEST:
                return cls(Window.WEEK if unit == "w" else Window.CLOCK, number * _SECONDS[unit])
        raise InvalidArgument(
            f"{call} takes a number of weeks, months, quarters or years, '2w', '1mo', '1q', '1y', "
            "or of days, hours, minutes or seconds, '1d', '6h', '15m', '30s', of a hundred years "
            "at most."
        )

    @property
    def days(self) -> int:
        """The most days that a window has, rounded up."""
        return 31 * self.months or -(-self.seconds // _DAY)


def _date(asked: Applied) -> ColumnDomain:
    """A zone's clock shows the day of UTC or one beside it."""
    asked.need(Kind.DATE, Kind.DATETIME)
    bounds, per_day = asked.bounds, ticks_of_a_day(asked.dtype)
    spare = 0 if zone_of(asked.dtype) is None else 1
    days = bounds and Bounds(
        int(bounds.lower) // per_day - spare, int(bounds.upper) // per_day + spare
    )
    return ColumnDomain(nw.Date(), asked.nullable, days)


def _on_one_clock(asked: Applied, every: Every) -> DType:
    """The type of a column whose clock shows each time once, and whose
    windows can be of this length.
    """
    asked.need(Kind.DATE, Kind.DATETIME)
    call, dtype = asked.call, asked.dtype
    if kind(dtype) == Kind.DATE and every.seconds % _DAY:
        raise WrongType(
            f"{call}: a date has no clock: give days, such as '1d', or cast it to 'datetime'."
        )
    if is_local(dtype):
        raise WrongType(
            f"{call}: where clocks change in spring, an hour is missing. Type .dt.date() first, or "
            ".dt.replace_time_zone(None) for the time that the clock shows, as in "
            "dp.col('x').dt.replace_time_zone(None).dt.month_start()."
        )
    if getattr(dtype, "time_unit", "") == "s":
        raise WrongType(
            f"{call}: times in seconds are not held alike everywhere. Cast it to 'datetime' first."
        )
    return dtype


def is_local(dtype: DType) -> bool:
    """Whether a type of times has a zone whose clocks may change."""
    return zone_of(dtype) not in (None, "UTC")


def in_zone(dtype: DType, zone: str | None) -> nw.Datetime:
    """A type of times in another zone, or without one."""
    return nw.Datetime(dtype.time_unit if isinstance(dtype, nw.Datetime) else "us", zone)


def _truncated(asked: Applied) -> ColumnDomain:
    """In a zone, a window begins where the clock shows its start, which is a day
    from the same time in UTC at most.
    """
    every = Every.read(asked.options.get("every", "1mo"))
    zone = is_local(asked.dtype) and "every" in asked.options
    dtype = _timed(asked) if zone else _on_one_clock(asked, every)
    lower, upper = (every.days + 2 * zone) * ticks_of_a_day(dtype), 2 * zone * ticks_of_a_day(dtype)
    bounds = asked.bounds and Bounds(asked.bounds.lower - lower, asked.bounds.upper + upper)
    return ColumnDomain(dtype, True, bounds)


def _timed(asked: Applied) -> DType:
    """The type of a column of times that are held alike everywhere. Errors: WrongType."""
    asked.need(Kind.DATETIME)
    if getattr(asked.dtype, "time_unit", "") == "s":
        raise WrongType(
            f"{asked.call}: times in seconds are not held alike everywhere. Cast it to 'datetime' "
            "first."
        )
    return asked.dtype


def _rezoned(asked: Applied) -> ColumnDomain:
    """The same moment on another clock."""
    return ColumnDomain(in_zone(_timed(asked), asked["zone"]), True, asked.bounds)


def _relabelled(asked: Applied) -> ColumnDomain:
    """The same clock, of another zone or of none. Clocks differ from UTC by a day at most."""
    dtype = _timed(asked)
    spare = 2 * ticks_of_a_day(dtype)
    bounds = asked.bounds and Bounds(asked.bounds.lower - spare, asked.bounds.upper + spare)
    return ColumnDomain(in_zone(dtype, asked.options.get("zone")), True, bounds)


def _moved(asked: Applied) -> ColumnDomain:
    """A time so many months or seconds later, or at the end of its month."""
    typed = asked.options.get("by", "1mo")
    every = Every.read(typed.removeprefix("-"))
    dtype, bounds = _on_one_clock(asked, every), asked.bounds
    most = every.days * ticks_of_a_day(dtype)
    back = typed.startswith("-")
    return ColumnDomain(
        dtype, True, bounds and Bounds(bounds.lower - most * back, bounds.upper + most * (not back))
    )


def _second(asked: Applied) -> ColumnDomain:
    _timed(asked)
    return ColumnDomain(nw.Int64(), asked.nullable or is_local(asked.dtype), Bounds(0, 59))


def _total(asked: Applied) -> ColumnDomain:
    asked.need(Kind.DURATION)
    unit, bounds = ticks_of_a_day(asked.dtype) // _DAY * _SECONDS[asked["unit"]], asked.bounds
    whole = bounds and Bounds(
        *(int(end) // unit if end >= 0 else -(-int(end) // unit) for end in bounds)
    )
    return ColumnDomain(nw.Int64(), True, whole)


def _ticks(asked: Applied) -> ColumnDomain:
    """Ticks of a time; those of the calendar, from the year 1 to 9999, have bounds."""
    asked.need(*TIMES)
    dtype, bounds = asked.dtype, asked.bounds
    if bounds is None and time_unit(dtype) != "ns" and kind(dtype) != Kind.DURATION:
        bounds = Bounds(-_YEARS * ticks_of_a_day(dtype), _YEARS * ticks_of_a_day(dtype))
    return ColumnDomain(nw.Int64(), asked.nullable, bounds)


def _from_ticks(asked: Applied) -> ColumnDomain:
    return ColumnDomain(asked["dtype"], True, asked.bounds)


def _later(asked: Applied) -> ColumnDomain:
    bounds = corner_bounds(lambda x, y: x + y, *(a.bounds for a in asked.args))
    return ColumnDomain(asked.dtype, True, bounds)


def difference_type(asked: Applied) -> DType:
    """The type of a sum or difference of times and durations; a duration between two times.
    Errors: WrongType.
    """
    (first, second), units = (
        map(kind, (a.dtype for a in asked.args)),
        [time_unit(a.dtype) for a in asked.args],
    )
    zones = {zone_of(a.dtype) is None for a in asked.args}
    if first == second and (first == Kind.DATE or len(zones) == 1):
        return nw.Duration(next((u for u in _FINE if units == [u, u]), "us"))
    if Kind.DURATION in (first, second) and {first, second} & {Kind.DATE, Kind.DATETIME}:
        return asked.args[first == Kind.DURATION].dtype
    raise WrongType(
        f"{asked.call}: {asked.types}. Give two dates, two times that both have a zone or both "
        "have none, or a time and a duration, as in dp.col('x') + dp.duration(days=3)."
    )


def moved(asked: Applied, sign: int) -> ColumnDomain:
    """The sum (sign 1) or difference (-1) of times and durations;
    bounds where both have the unit of the result.
    """
    dtype = difference_type(asked)
    first, second = (a.kind for a in asked.args)
    if sign == 1 and first == second != Kind.DURATION:
        raise WrongType(
            f"{asked.call}: two times have no sum. Type dp.col('x') - dp.col('y') for the time "
            "between them."
        )
    if (sign == -1 and second == Kind.DURATION != first) or first == second or sign == 1:
        scales = [ticks_of_a_day(a.dtype) for a in asked.args]
        bounds = corner_bounds(lambda x, y: x + sign * y, *(a.bounds for a in asked.args))
        return ColumnDomain(dtype, True, bounds if set(scales) == {ticks_of_a_day(dtype)} else None)
    raise WrongType(
        f"{asked.call}: a time is not taken from a duration. Type dp.col('when') - "
        "dp.duration(days=3)."
    )


OF_WINDOWS: Mapping[str, Operation] = {
    "dt.date": Operation("{0}.dt.date()", _date),
    "dt.month_start": Operation("{0}.dt.month_start()", _truncated),
    "dt.truncate": Operation("{0}.dt.truncate({every!r})", _truncated, depth=16, size=32),
    "window": Operation("{0}.dt.truncate({every!r})", _truncated),
    "dt.convert_time_zone": Operation("{0}.dt.convert_time_zone({zone!r})", _rezoned),
    "dt.replace_time_zone": Operation(
        "{0}.dt.replace_time_zone({zone!r})", _relabelled, depth=15, size=30
    ),
    "dt.clock": Operation("{0}.dt.replace_time_zone(None)", _relabelled),
    "dt.month_end": Operation("{0}.dt.month_end()", _moved),
    "dt.offset_by": Operation("{0}.dt.offset_by({by!r})", _moved),
    "dt.second": Operation("{0}.dt.second()", _second, depth=4, size=4),
    **{
        f"dt.total_{name}": Operation(f"{{0}}.dt.total_{name}()", _total, depth=6, size=12)
        for name in TOTALS.values()
    },
    "ticks": Operation("{0}.ticks()", _ticks),
    "from_ticks": Operation("{0}.from_ticks({dtype})", _from_ticks),
    "later": Operation("{0}.later({1})", _later),
}
