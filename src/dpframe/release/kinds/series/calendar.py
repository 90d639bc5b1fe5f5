"""The calendar of a series: the length of its periods, the start of the first, and their labels."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from dpframe.budget import later, read_length
from dpframe.errors import InvalidArgument


def _moment(value: Any, name: str) -> dt.datetime:
    """A date or time without a zone, from what was typed. Errors: InvalidArgument."""
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value)
        except ValueError:
            value = None
    if isinstance(value, dt.datetime):  # This includes the Timestamp and NaT of pandas.
        clock = (value.hour, value.minute, value.second, value.microsecond)
        value = None if value.tzinfo is not None or value != value else dt.datetime(*value.timetuple()[:3], *clock)
    elif isinstance(value, dt.date):
        value = dt.datetime(value.year, value.month, value.day)
    if not isinstance(value, dt.datetime):
        raise InvalidArgument(
            f"{name}: give the day or time at which a period begins, without a zone: {name}='2026-11-21'."
        )
    return value


@dataclass(frozen=True)
class Calendar:
    """Consecutive periods of one length, numbered from 0.

    >>> nights = Calendar.read("1d", "2026-01-01")
    >>> nights.number("2026-01-31"), nights.label(30), nights.window("7d")
    (30, '2026-01-31', 7)
    """

    every: dt.timedelta
    start: dt.datetime

    @classmethod
    def read(cls, every: object, start: object) -> Calendar:
        """A calendar from what was typed. Errors: InvalidArgument."""
        return cls(read_length(every, "every"), _moment(start, "start"))

    def number(self, period: object) -> int:
        """The number of a period. Errors: InvalidArgument if no period begins then, or if it is before the first."""
        moment = _moment(period, "period")
        number, offset = divmod(moment - self.start, self.every)
        if offset:
            near = self.label(number) if number >= 0 else self.label(0)
            raise InvalidArgument(f"period: no period of this series begins then; one begins at {near}.")
        if number < 0:
            raise InvalidArgument(
                f"period: this series begins with {self.label(0)}, and that period is before. To begin earlier, give "
                "start='...' when the series is opened, before its first period is added."
            )
        return number

    def moment(self, number: int) -> dt.datetime:
        """The time at which a period begins. Errors: InvalidArgument beyond the year 9999."""
        return later(self.start, number, self.every, "period")

    def label(self, number: int) -> str:
        """The label of a period: its day, with the time of day if periods do not begin at midnight."""
        moment = self.moment(number)
        days = self.every % dt.timedelta(days=1) == dt.timedelta(0) and moment.time() == dt.time()
        return moment.date().isoformat() if days else moment.isoformat(timespec="minutes")

    def window(self, length: object) -> int:
        """The number of periods in a length of time. Errors: InvalidArgument if it is not a whole number."""
        number, remainder = divmod(read_length(length, "window"), self.every)
        if remainder or not number:
            raise InvalidArgument(f"window={length!r}: give a whole number of periods, each of {self.every}.")
        return number
