"""The periods of a series: how long each is, when the first one begins, and what each is called."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from dpframe.budget import read_length
from dpframe.errors import InvalidArgument

__all__ = ["Calendar"]


def _moment(value: Any, name: str) -> dt.datetime:
    """A date or time without a zone, as it is typed."""
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value)
        except ValueError:
            value = None
    if isinstance(value, dt.datetime):  # a pandas Timestamp or its NaT too
        clock = (value.hour, value.minute, value.second, value.microsecond)
        value = None if value.tzinfo is not None or value != value else dt.datetime(*value.timetuple()[:3], *clock)
    elif isinstance(value, dt.date):
        value = dt.datetime(value.year, value.month, value.day)
    if not isinstance(value, dt.datetime):
        raise InvalidArgument(f"{name}: the day or time at which a period begins, without a zone: {name}='2026-11-21'.")
    return value


@dataclass(frozen=True)
class Calendar:
    """Periods of one length that follow one another, numbered from 0.

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
        """The number of a period. Errors: InvalidArgument where none begins there, or where it is before the first."""
        moment = _moment(period, "period")
        number, rest = divmod(moment - self.start, self.every)
        if rest:
            near = self.label(number) if number >= 0 else self.label(0)
            raise InvalidArgument(f"period: no period of this series begins then; one begins at {near}.")
        if number < 0:
            raise InvalidArgument(
                f"period: this series begins with {self.label(0)}, and that is before. Say start='...' when the series "
                "is opened, before its first period is added."
            )
        return number

    def moment(self, number: int) -> dt.datetime:
        """When a period begins."""
        return self.start + number * self.every

    def label(self, number: int) -> str:
        """What a period is called: its day, and its time of day where it does not begin at midnight."""
        moment = self.moment(number)
        days = self.every % dt.timedelta(days=1) == dt.timedelta(0) and moment.time() == dt.time()
        return moment.date().isoformat() if days else moment.isoformat(timespec="minutes")

    def window(self, length: object) -> int:
        """How many periods a length of time has. Errors: InvalidArgument where it is no whole number of them."""
        number, rest = divmod(read_length(length, "window"), self.every)
        if rest or not number:
            raise InvalidArgument(f"window={length!r}: a whole number of periods, each of {self.every}.")
        return number
