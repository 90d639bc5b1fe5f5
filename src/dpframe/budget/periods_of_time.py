"""Periods as people write them: lengths of time, and the period in the name of a release.

Lengths are "1d", "12h", "7d", "night", and for a calendar "1mo". The name "visits 2026-03" is about
a month; names may be about years, quarters, weeks, days and hours too.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import zoneinfo
from calendar import monthrange
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from dpframe.errors import InvalidArgument, said

_UNITS = {"h": dt.timedelta(hours=1), "d": dt.timedelta(days=1), "w": dt.timedelta(weeks=1)}
_WORDS = {"hour": "1h", "day": "1d", "night": "1d", "week": "1w", "month": "1mo"}
_MONTHS = re.compile(r"([1-9][0-9]{0,5})mo")
_MONTH = dt.timedelta(days=146_097 / 4800)  # the mean of 400 years
_LENGTH = re.compile(r"([1-9][0-9]{0,5})([hdw])")


def read_length(text: object, name: str, *, months: bool = False) -> dt.timedelta:
    """The length of time of a text: "1h", "1d", "7d", "1w", or "hour", "day", "night", "week".

    Input:  months: whether the caller takes months too, which the refusal then names

    >>> read_length("7d", "every") == read_length("1w", "every") == dt.timedelta(days=7)
    True
    """
    match = _LENGTH.fullmatch(_WORDS.get(text, text)) if isinstance(text, str) else None
    if match is None:
        units, such = ("weeks or calendar months", "1mo") if months else ("or weeks", "12h")
        raise InvalidArgument(
            f"{name}={said(text)}: give a number of hours, days{',' * months} {units}, such as "
            f"{name}='1d' or {name}={such!r}."
        )
    return int(match[1]) * _UNITS[match[2]]


def later(start: dt.datetime, number: int, length: dt.timedelta, what: str) -> dt.datetime:
    """The time that is a number of lengths after a start.
    Errors: InvalidArgument outside of the years 1 to 9999.

    >>> later(dt.datetime(2026, 1, 1), 2, read_length("1w", "every"), "series.add").date()
    datetime.date(2026, 1, 15)
    """
    try:
        return start + number * length
    except OverflowError:
        raise InvalidArgument(
            f"{what}: this reaches beyond the years 1 to 9999, which are all that a date can have. "
            "Begin earlier, or give fewer or shorter periods."
        ) from None


def time_of(typed: object) -> dt.datetime | None:
    """A time, or the midnight of a date, perhaps typed as a text;
    None for anything else, as for the NaT of pandas.
    """
    if isinstance(typed, str):
        with suppress(ValueError):
            typed = dt.datetime.fromisoformat(typed)
    match typed:
        case dt.datetime():
            return typed if typed == typed else None
        case dt.date():
            return dt.datetime(*typed.timetuple()[:3])
    return None


def read_zone(name: object) -> zoneinfo.ZoneInfo:
    """A time zone. Errors: InvalidArgument for one that this machine does not know."""
    try:
        if isinstance(name, str):
            return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise InvalidArgument(
        f"zone={said(name)}: this machine knows no such time zone. Type one such as "
        "zone='Europe/Vienna', or pip install tzdata where the system has none."
    )


@dataclass(frozen=True)
class Periods:
    """Periods that follow one another from a start on:
    a length of time, or a number of calendar months.

    In a time zone, days, weeks and months begin at the same time of the clock there, so that a day
    may have 23 or 25 hours. Months that begin on a 31st begin on the last day where there is none.
    Without a zone the clock is UTC.
    """

    start: dt.datetime
    length: dt.timedelta  # of one; 0 for months
    months: int = 0
    zone: zoneinfo.ZoneInfo | None = None

    @classmethod
    def of(cls, start: dt.datetime, text: object, zone: str | None, name: str = "per") -> Periods:
        """Periods as they were typed. Errors: InvalidArgument.

        >>> months = Periods.of(dt.datetime(2026, 1, 31, tzinfo=dt.UTC), "1mo", None)
        >>> (
        ...     months.begins(1).date(),
        ...     months.begins(2).date(),
        ...     months.number(dt.datetime(2026, 3, 30, tzinfo=dt.UTC)),
        ... )
        (datetime.date(2026, 2, 28), datetime.date(2026, 3, 31), 1)
        """
        match = _MONTHS.fullmatch(_WORDS.get(text, text)) if isinstance(text, str) else None
        length = dt.timedelta() if match else read_length(text, name, months=True)
        return cls(
            start, length, int(match[1]) if match else 0, None if zone is None else read_zone(zone)
        )

    def begins(self, number: int, what: str = "allocate") -> dt.datetime:
        """The time at which a period begins, in UTC.
        Errors: InvalidArgument outside of the years 1 to 9999.
        """
        if not self.months and (self.zone is None or self.length % dt.timedelta(days=1)):
            return later(self.start, number, self.length, what)
        zone = self.zone or dt.UTC
        clock = self.start.astimezone(zone).replace(tzinfo=None)
        try:
            if self.months:
                years, month = divmod(clock.month - 1 + number * self.months, 12)
                year, month = clock.year + years, month + 1
                clock = clock.replace(
                    year=year, month=month, day=min(clock.day, monthrange(year, month)[1])
                )
            else:
                clock += number * self.length
            return clock.replace(tzinfo=zone).astimezone(dt.UTC)
        except (OverflowError, ValueError, IndexError):
            return later(self.start, 10**9, dt.timedelta(days=1), what)  # which is refused

    def number(self, when: dt.datetime, what: str = "allocate") -> int:
        """The number of the period at a time, from 0; negative before the start.
        Errors: see `begins`.
        """
        number = math.floor((when - self.start) / (self.length or self.months * _MONTH))
        while self.begins(number, what) > when:
            number -= 1
        while self.begins(number + 1, what) <= when:
            number += 1
        return number


# Periods in names

_NAMES_OF_MONTHS = [
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
]
_Y, _M, _D = r"(?P<y>(?:19|20)[0-9]{2})", r"(?P<m>0[1-9]|1[0-2])", r"(?P<d>0[1-9]|[12][0-9]|3[01])"
_NAME = rf"(?P<name>{'|'.join(_NAMES_OF_MONTHS)})[a-z]*\.?"
_DATE = rf"{_Y}(?P<s>[-_/.]?){_M}(?P=s){_D}"
_NO_MORE = r"(?![-_/.]?[0-9]|[a-z])"
_FORMS = {  # the finest first: a day is not read as a month
    "hour": [rf"{_DATE}[-_ t]?(?P<h>[01][0-9]|2[0-3])(?::?[0-5][0-9](?::?[0-5][0-9])?|h)?z?"],
    "day": [_DATE, rf"{_D}(?P<s>[-_/.]){_M}(?P=s){_Y}"],
    "week": [
        rf"{_Y}[-_ ]?(?:week|w|kw)[-_ ]?(?P<w>[0-5]?[0-9])",
        rf"(?:week|w|kw)[-_ ]?(?P<w>[0-5]?[0-9])[-_ /]{_Y}",
    ],
    "quarter": [rf"{_Y}[-_ /]?q(?P<q>[1-4])", rf"q(?P<q>[1-4])[-_ /]?{_Y}"],
    "month": [
        rf"{_Y}[-_/.]?{_M}",
        rf"{_M}[-_/.]{_Y}",
        rf"{_NAME}[-_ ]?{_Y}",
        rf"{_Y}[-_ ]?{_NAME}",
    ],
    "year": [rf"(?:fy)?{_Y}"],
}
_AFTER = {"hour": "(?![0-9])", "day": "(?![0-9])"}  # else no part of a longer date
_PATTERNS = [
    (
        word,
        re.compile(
            rf"(?<![0-9a-z])(?<![0-9][-_/.]){form}{_AFTER.get(word, _NO_MORE)}", re.IGNORECASE
        ),
    )
    for word, forms in _FORMS.items()
    for form in forms
]


def _number(word: str, found: dict[str, str]) -> int:
    """The place of a period among all of its kind.
    Errors: ValueError for a date that there is not.
    """
    year, month = int(found["y"]), int(found.get("m", 1))
    if name := found.get("name"):
        month = _NAMES_OF_MONTHS.index(name.lower()) + 1
    if week := found.get("w"):
        return dt.date.fromisocalendar(year, int(week), 1).toordinal() // 7
    day = dt.date(year, month, int(found.get("d", 1))).toordinal()
    in_year = {
        "year": year,
        "quarter": 4 * year + int(found.get("q", 1)) - 1,
        "month": 12 * year + month - 1,
    }
    return (in_year | {"day": day, "hour": day * 24 + int(found.get("h", 0))})[word]


_FIRST: dict[str, Callable[[int], dt.date]] = {  # the first day of a period
    "hour": lambda number: dt.date.fromordinal(number // 24),
    "day": dt.date.fromordinal,
    "week": lambda number: dt.date.fromordinal(number * 7 + 1),
    "quarter": lambda number: dt.date(number // 4, number % 4 * 3 + 1, 1),
    "month": lambda number: dt.date(number // 12, number % 12 + 1, 1),
    "year": lambda number: dt.date(number, 1, 1),
}


@dataclass(frozen=True)
class NamedPeriod:
    """A period: its kind, such as "month", and its place among all of this kind."""

    word: str
    number: int

    @classmethod
    def of(cls, name: str | None) -> NamedPeriod | None:
        """The one period in a name, if there is one.

        >>> NamedPeriod.of("visits 2026-03").last, NamedPeriod.of("visits 2026-W05").last
        (datetime.date(2026, 3, 31), datetime.date(2026, 2, 1))
        >>> NamedPeriod.of("visits 2026-03 to 2026-05") is None
        True
        """
        for word, pattern in _PATTERNS:
            matches = list(pattern.finditer(name or ""))
            if len(matches) > 1:
                return None
            if matches:
                found = {
                    key: text for key, text in matches[0].groupdict().items() if text is not None
                }
                try:
                    return cls(word, _number(word, found))
                except ValueError:
                    return None
        return None

    @property
    def last(self) -> dt.date:
        """The last day of the period. Errors: OverflowError, ValueError after the year 9999."""
        first = _FIRST[self.word]
        # the first, of an hour
        return max(first(self.number), first(self.number + 1) - dt.timedelta(days=1))
