"""Periods in the names of releases: the year, quarter, month, week, day or hour that "visits 2026-03" is about."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_Y, _M, _D = r"(?P<y>(?:19|20)[0-9]{2})", r"(?P<m>0[1-9]|1[0-2])", r"(?P<d>0[1-9]|[12][0-9]|3[01])"
_NAME = rf"(?P<name>{'|'.join(_MONTHS)})[a-z]*\.?"
_DATE = rf"{_Y}(?P<s>[-_/.]?){_M}(?P=s){_D}"
_NO_MORE = r"(?![-_/.]?[0-9]|[a-z])"
_FORMS = {  # the finest first: a day is not read as a month
    "hour": [rf"{_DATE}[-_ t]?(?P<h>[01][0-9]|2[0-3])(?::?[0-5][0-9](?::?[0-5][0-9])?|h)?z?"],
    "day": [_DATE, rf"{_D}(?P<s>[-_/.]){_M}(?P=s){_Y}"],
    "week": [rf"{_Y}[-_ ]?(?:week|w|kw)[-_ ]?(?P<w>[0-5]?[0-9])", rf"(?:week|w|kw)[-_ ]?(?P<w>[0-5]?[0-9])[-_ /]{_Y}"],
    "quarter": [rf"{_Y}[-_ /]?q(?P<q>[1-4])", rf"q(?P<q>[1-4])[-_ /]?{_Y}"],
    "month": [rf"{_Y}[-_/.]?{_M}", rf"{_M}[-_/.]{_Y}", rf"{_NAME}[-_ ]?{_Y}", rf"{_Y}[-_ ]?{_NAME}"],
    "year": [rf"(?:fy)?{_Y}"],
}
_AFTER = {"hour": "(?![0-9])", "day": "(?![0-9])"}  # else no part of a longer date
_PATTERNS = [
    (word, re.compile(rf"(?<![0-9a-z])(?<![0-9][-_/.]){form}{_AFTER.get(word, _NO_MORE)}", re.IGNORECASE))
    for word, forms in _FORMS.items()
    for form in forms
]


def _number(word: str, found: dict[str, str]) -> int:
    """The place of a period among all of its kind. Errors: ValueError for a date that there is not."""
    year, month = int(found["y"]), int(found.get("m", 1))
    if "name" in found:
        month = _MONTHS.index(found["name"].lower()) + 1
    if word == "week":
        return dt.date.fromisocalendar(year, int(found["w"]), 1).toordinal() // 7
    day = dt.date(year, month, int(found.get("d", 1))).toordinal()
    in_year = {"year": year, "quarter": 4 * year + int(found.get("q", 1)) - 1, "month": 12 * year + month - 1}
    return in_year.get(word, day * 24 + int(found.get("h", 0)) if word == "hour" else day)


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
                found = {key: text for key, text in matches[0].groupdict().items() if text is not None}
                try:
                    return cls(word, _number(word, found))
                except ValueError:
                    return None
        return None

    @property
    def last(self) -> dt.date:
        """The last day of the period. Errors: OverflowError, ValueError after the year 9999."""
        if self.word == "hour":
            return _FIRST["hour"](self.number)
        return _FIRST[self.word](self.number + 1) - dt.timedelta(days=1)
