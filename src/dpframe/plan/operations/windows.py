"""Windows of time, such as a week, and the domains of days, weeks, quarters and truncated times."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, WrongType
from dpframe.plan.columns import Bounds, ColumnDomain
from dpframe.plan.operations.rules import Operation, Options, need
from dpframe.plan.types import Kind, kind

_DAY = 86_400  # seconds
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_LONGEST = 100 * 366 * _DAY  # seconds


class Window(StrEnum):
    """A window whose length in days is that of a calendar, or a number of seconds."""

    WEEK = "w"
    MONTH = "mo"
    QUARTER = "q"
    YEAR = "y"
    CLOCK = "clock"


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": _DAY}
_DAYS = {Window.WEEK: 7, Window.MONTH: 31, Window.QUARTER: 92, Window.YEAR: 366}


@dataclass(frozen=True)
class Every:
    """Windows of time, as Polars writes them: "1w" begins on Monday; "15m" counts from midnight of 1970-01-01.

    >>> Every.read("1w"), Every.read("2h").seconds
    (Every(window=<Window.WEEK: 'w'>, seconds=0), 7200)
    """

    window: Window
    seconds: int = 0  # length of a window that is not of the calendar

    @classmethod
    def read(cls, typed: object) -> Every:
        """A text such as "1w", "1mo", "1q", "1y", "1d", "6h", "15m" or "30s". Errors: InvalidArgument."""
        form = re.fullmatch(r"([0-9]{1,9})(s|m|h|d|w|mo|q|y)", typed) if isinstance(typed, str) else None
        if form is not None:
            number, unit = int(form[1]), form[2]
            if unit in _SECONDS and 1 <= number * _SECONDS[unit] <= _LONGEST:
                return cls(Window.CLOCK, number * _SECONDS[unit])
            if unit not in _SECONDS and number == 1:
                return cls(Window(unit))
        raise InvalidArgument(
            "dt.truncate takes '1w', '1mo', '1q' or '1y', or a number of days, hours, minutes or seconds: '1d', '6h', "
            "'15m', '30s'."
        )

    @property
    def days(self) -> int:
        """The most days that a window has, rounded up."""
        return _DAYS.get(self.window) or -(-self.seconds // _DAY)


def _per_day(dtype: DType) -> int:
    return 1 if kind(dtype) == Kind.DATE else _PER_SECOND[getattr(dtype, "time_unit", "us")] * _DAY


def _date(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
    """A zone's clock shows the day of UTC or one beside it."""
    need(call, args[0], Kind.DATE, Kind.DATETIME)
    bounds, per_day = args[0].bounds, _per_day(args[0].dtype)
    spare = 0 if getattr(args[0].dtype, "time_zone", None) is None else 1
    days = bounds and Bounds(int(bounds.lower) // per_day - spare, int(bounds.upper) // per_day + spare)
    return ColumnDomain(nw.Date(), args[0].nullable, days)


def _truncated(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
    every = Every.read(options.get("every", "1mo"))
    need(call, args[0], Kind.DATE, Kind.DATETIME)
    dtype = args[0].dtype
    if kind(dtype) == Kind.DATE and every.seconds % _DAY:
        raise WrongType(f"{call}: a date has no clock: give days, such as dt.truncate('1d'), or cast it to 'datetime'.")
    if getattr(dtype, "time_zone", None) is not None:
        raise WrongType(
            f"{call}: clocks of a zone skip times, and a window may begin at one. Type .dt.date() first, as in "
            "dp.col('x').dt.date().dt.truncate('1w')."
        )
    if getattr(dtype, "time_unit", "") == "s":
        raise WrongType(f"{call}: times in seconds are not held alike everywhere. Cast it to 'datetime' first.")
    bounds = args[0].bounds and Bounds(args[0].bounds.lower - every.days * _per_day(dtype), args[0].bounds.upper)
    return ColumnDomain(dtype, True, bounds)


OF_WINDOWS: Mapping[str, Operation] = {
    "dt.date": Operation("{0}.dt.date()", _date),
    "dt.month_start": Operation("{0}.dt.month_start()", _truncated),
    "dt.truncate": Operation("{0}.dt.truncate({every!r})", _truncated),
}
