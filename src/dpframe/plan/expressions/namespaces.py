"""Operations on texts and on times, as `dp.col("city").str` and `dp.col("when").dt` have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpframe.errors import InvalidArgument
from dpframe.plan.hints import CALENDAR, TEXT, Hints
from dpframe.plan.operations import Every
from dpframe.plan.types import real

if TYPE_CHECKING:
    from dpframe.plan.expressions.expression import Expr

__all__ = ["CalendarNamespace", "TextNamespace"]


def _word(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(f"{what} takes a text.")
    return value


@dataclass(frozen=True)
class TextNamespace(Hints):
    """`dp.col("city").str`: operations on text."""

    _habits = TEXT
    _expr: Expr

    def to_lowercase(self) -> Expr:
        """Small letters, a letter for a letter; "İ", whose small letter is two characters, stays as it is."""
        return self._expr._call("str.to_lowercase")

    def to_uppercase(self) -> Expr:
        """Capital letters, a letter for a letter; "ß", whose capital would be two letters, stays as it is."""
        return self._expr._call("str.to_uppercase")

    def len_chars(self) -> Expr:
        """Number of characters."""
        return self._expr._call("str.len_chars")

    def contains(self, literal: str) -> Expr:
        """Whether the text contains these characters, literally (no pattern)."""
        return self._expr._call("str.contains", literal=_word(literal, "str.contains"))

    def starts_with(self, literal: str) -> Expr:
        """Whether the text starts with these characters."""
        return self._expr._call("str.starts_with", literal=_word(literal, "str.starts_with"))

    def ends_with(self, literal: str) -> Expr:
        """Whether the text ends with these characters."""
        return self._expr._call("str.ends_with", literal=_word(literal, "str.ends_with"))

    def head(self, n: int) -> Expr:
        """The first n characters."""
        first = real(n)
        if not isinstance(first, int) or not 0 <= first < 2**31:
            raise InvalidArgument("str.head takes a whole number of at least 0.")
        return self._expr._call("str.head", n=first)


@dataclass(frozen=True)
class CalendarNamespace(Hints):
    """`dp.col("when").dt`: parts of a date or a time."""

    _habits = CALENDAR
    _expr: Expr

    def year(self) -> Expr:
        """Year."""
        return self._expr._call("dt.year")

    def month(self) -> Expr:
        """Month, 1 to 12."""
        return self._expr._call("dt.month")

    def day(self) -> Expr:
        """Day of the month, 1 to 31."""
        return self._expr._call("dt.day")

    def weekday(self) -> Expr:
        """Day of the week, Monday is 1."""
        return self._expr._call("dt.weekday")

    def date(self) -> Expr:
        """The day, on the clock of the column's zone if it has one."""
        return self._expr._call("dt.date")

    def week(self) -> Expr:
        """Number of the week as ISO 8601 counts them, 1 to 53: a week belongs to the year of its Thursday."""
        return self._expr._call("dt.week")

    def quarter(self) -> Expr:
        """Quarter of the year, 1 to 4."""
        return self._expr._call("dt.quarter")

    def month_start(self) -> Expr:
        """The first day of the month; a time keeps its clock, as in Polars. `dt.truncate("1mo")` is its midnight."""
        return self._expr._call("dt.month_start")

    def truncate(self, every: str) -> Expr:
        """The start of the window that holds a date or time: `dt.truncate("1w")` is the Monday of its week.

        Input:  every: "1w", "1mo", "1q" or "1y"; or a number of days, hours, minutes or seconds, such as "1d", "6h",
                "15m" or "30s", in windows that are counted from 1970-01-01
        Output: the column's type. Null where the window begins before the year 1
        """
        Every.read(every)
        return self._expr._call("dt.truncate", every=every)

    def ordinal_day(self) -> Expr:
        """Day of the year, 1 to 366."""
        return self._expr._call("dt.ordinal_day")

    def hour(self) -> Expr:
        """Hour, 0 to 23."""
        return self._expr._call("dt.hour")

    def minute(self) -> Expr:
        """Minute, 0 to 59."""
        return self._expr._call("dt.minute")
