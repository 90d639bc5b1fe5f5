"""The calendar of a series: the length of its periods, the start of the first, and their labels."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dpframe.budget import Periods, time_of
from dpframe.errors import InvalidArgument

_NAMED = 5  # missing periods of windows are named; more are counted


def _moment(value: Any, name: str) -> dt.datetime:
    """A date or time without a zone, from what was typed. Errors: InvalidArgument."""
    time = time_of(value)
    if time is None or time.tzinfo is not None:
        raise InvalidArgument(
            f"{name}: give the day or time at which a period begins, without a zone: "
            f"{name}='2026-11-21'."
        )
    # of a Timestamp of pandas without nanoseconds
    return dt.datetime(*time.timetuple()[:6], time.microsecond)


@dataclass(frozen=True)
class Calendar:
    """Consecutive periods of one length, numbered from 0. Months are those of a calendar.

    A row is in one period, whose number is all that a series knows of it: units are promised a
    number of periods. So nothing of the privacy of a series depends on how long periods are, nor on
    whether they are equally long.

    >>> nights = Calendar.read("1d", "2026-01-01")
    >>> nights.number("2026-01-31"), nights.label(30), nights.window("7d")
    (30, '2026-01-31', 7)
    >>> months = Calendar.read("1mo", "2026-01-01")
    >>> months.number("2026-03-01"), months.label(1), months.window("3mo")
    (2, '2026-02-01', 3)
    """

    periods: Periods

    @classmethod
    def read(cls, every: object, start: object) -> Calendar:
        """A calendar from what was typed. Errors: InvalidArgument."""
        begin = _moment(start, "start").replace(tzinfo=dt.UTC)
        return cls(Periods.of(begin, every, None, "every"))

    @property
    def start(self) -> dt.datetime:
        """The time at which the first period begins."""
        return self.moment(0)

    @property
    def at_midnight(self) -> bool:
        """Whether all periods begin at midnight."""
        return (
            self.periods.length % dt.timedelta(days=1) == dt.timedelta(0)
            and self.start.time() == dt.time()
        )

    @property
    def is_daily(self) -> bool:
        """Whether each day is one period."""
        return self.periods.length == dt.timedelta(days=1) and self.at_midnight

    def number(self, period: object) -> int:
        """The number of a period.
        Errors: InvalidArgument if no period begins then, or if it is before the first.
        """
        moment = _moment(period, "period")
        number = self.periods.number(moment.replace(tzinfo=dt.UTC), "period")
        if self.moment(number) != moment:
            near = self.label(max(number, 0))
            raise InvalidArgument(
                f"period: no period of this series begins then; one begins at {near}."
            )
        if number < 0:
            raise InvalidArgument(
                f"period: this series begins with {self.label(0)}, and that period is before. To "
                "begin earlier, give start='...' when the series is opened, before its first "
                "period is added."
            )
        return number

    def moment(self, number: int) -> dt.datetime:
        """The time at which a period begins. Errors: InvalidArgument beyond the year 9999."""
        return self.periods.begins(number, "period").replace(tzinfo=None)

    def label(self, number: int) -> str:
        """The label of a period: its day, with the time of day if
        periods do not begin at midnight.
        """
        moment = self.moment(number)
        return (
            moment.date().isoformat() if self.at_midnight else moment.isoformat(timespec="minutes")
        )

    def short_windows(
        self, lengths: Sequence[str], added: Sequence[int], *, latest: bool = False
    ) -> list[str]:
        """Sentences for windows that hold fewer periods than their length has.

        Input:  lengths of windows; the numbers of the added periods, in order; latest: whether the
                last window alone is shown, and not one for each period
        Output: which periods are missing, for each length; readers would take such windows for low
        """
        said, first, last = [], added[0], added[-1]
        for length in lengths:
            before = self.window(length) - 1  # periods of a window before its end
            # the first end after a gap has the window that reaches farthest back
            ends = ((one, other, last if latest else other) for one, other in pairwise(added))
            gaps = [n for one, other, end in ends for n in range(max(one + 1, end - before), other)]
            reaches = (last if latest else first) - before
            missing = [f"before {self.label(first)}"] if reaches < first else []
            missing += [f"for {self.label(gap)}" for gap in gaps[:_NAMED]]
            missing += [f"for {len(gaps) - _NAMED:,} more"] if len(gaps) > _NAMED else []
            if missing:
                said.append(
                    f"Windows of {length} hold the added periods alone: none was added "
                    f"{', nor '.join(missing)}."
                )
        return said

    def window(self, length: object) -> int:
        """The number of periods in a length of time.
        Errors: InvalidArgument if it is not a whole number.
        """
        window = Periods.of(self.periods.start, length, None, "window")
        if self.periods.months:
            number, remainder = divmod(window.months, self.periods.months)
        else:
            number, rest = divmod(window.length, self.periods.length)
            remainder = bool(rest)
        if remainder or not number:
            raise InvalidArgument(
                f"window={length!r}: give a whole number of periods, each of {self}."
            )
        return number

    def __str__(self) -> str:
        months = self.periods.months
        return (
            f"{months} calendar month{'s' * (months > 1)}" if months else str(self.periods.length)
        )
