"""Operations on texts and on times, as `dp.col("city").str` and `dp.col("when").dt` have them."""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, NoReturn, Protocol, Self, TypeVar

from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan.hints import CALENDAR, PIECES, TEXT
from dpframe.plan.operations import TOTALS, WHITE_SPACE, Ends, Every, Form, Pattern
from dpframe.plan.scalars import check_text, real
from dpframe.plan.types import as_dtype
from dpframe.usage import Hints, check_flags, read_whole


class Callee(Protocol):
    """The part of an expression that its namespaces need."""

    def _call(self, operation: str, *others: object, **options: Any) -> Self: ...


E = TypeVar("E", bound=Callee)
_PLACES = 2**31 - 1  # of a character, as engines count them
_ZONE = re.compile("UTC|[A-Z][A-Za-z]+(/[A-Za-z0-9_+-]+)+")  # those that all engines know
_PIECES = 2**20  # of a text that are looked at
_ZEROS = 100  # of a text that is filled up
_LONG = 100  # times the characters that are replaced
_SIGNS = frozenset(r"\.^$*+?{}[]()|")  # of a regular expression
_GROUPS = frozenset("$\\")  # of a text that puts groups of a match back in


def _word(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(f"{what} takes a text, such as 'a'.")
    check_text(value, what)
    return value


def _looked_for(
    value: object, call: str, literal: object, regex: object, rest: str = "", also: str = ""
) -> str | Pattern:
    """Characters to look for in a text, or a pattern: a regular expression.

    Input:  value: what was typed; call: the method; literal, regex: what the two arguments are,
            regex None if it was not typed; rest: the other arguments as they were typed; also:
            further signs that are not taken literally elsewhere
    Errors: InvalidArgument; UnsupportedOperation for signs of a pattern without literal=True or
            regex=True, with both lines to type, and for a pattern that engines do not read alike
    """
    text = _word(value, call)
    if (
        not isinstance(literal, bool)
        or not (regex is None or isinstance(regex, bool))
        or (literal and regex)
    ):
        raise InvalidArgument(f"{call}: literal= and regex= are True or False, and not both True.")
    has_signs = not _SIGNS.isdisjoint(text)
    if regex:
        return Pattern.read(text, call) if has_signs else text
    if literal or regex is False or (not has_signs and _SIGNS.isdisjoint(also)):
        return text
    typed = f".{call}({text!r}{rest}"
    raise UnsupportedOperation(
        f"{call}: {text!r} has signs of a pattern. If it is one, type {typed}, regex=True); if "
        f"just these characters are meant, type {typed}, literal=True)."
    )


def _never_empty(pattern: str | Pattern, call: str) -> str | Pattern:
    """Refuse what is found where nothing stands: engines count these places differently.
    Errors: InvalidArgument.
    """
    if not (pattern.least if isinstance(pattern, Pattern) else pattern):
        raise InvalidArgument(
            f"{call}: {str(pattern)!r} also matches no characters at all. Each match needs one, as "
            f"in {call}('a+', regex=True)."
        )
    return pattern


@dataclass(frozen=True)
class TextNamespace(Hints, Generic[E]):
    """`dp.col("city").str`: operations on text."""

    _habits = TEXT
    _expr: E

    def __getitem__(self, place: object) -> NoReturn:
        raise InvalidArgument(
            "Characters of a text: type .str.slice(0, 1) for the first one, .str.head(3) for three."
        )

    __iter__ = __len__ = __getitem__

    def to_lowercase(self) -> E:
        """Small letters, a letter for a letter; "İ", whose small letter is
        two characters, stays as it is.
        """
        return self._expr._call("str.to_lowercase")

    def to_uppercase(self) -> E:
        """Capital letters, a letter for a letter; "ß", whose capital would
        be two letters, stays as it is.
        """
        return self._expr._call("str.to_uppercase")

    def len_chars(self) -> E:
        """Number of characters."""
        return self._expr._call("str.len_chars")

    def contains(self, pattern: str, *, literal: bool = False, regex: bool | None = None) -> E:
        """Whether the text contains some characters, or a match of a pattern:
        `str.contains("fall|pain", regex=True)`.

        A pattern is a regular expression of those that mean the same on every engine; see the page
        on row expressions. Signs of a pattern are refused without regex=True, or literal=True, with
        which nothing is one.
        """
        found = _looked_for(pattern, "str.contains", literal, regex)
        if isinstance(found, Pattern):
            return self._expr._call("str.matches", pattern=found)
        return self._expr._call("str.contains", literal=found)

    def extract(self, pattern: str, group_index: int = 1, *, regex: bool = True) -> E:
        """A group of the first match of a pattern:
        `str.extract("ward ([0-9]+)")`; null where nothing matches.

        Of several matches at one place it is that which is tried first, as in Polars and Python.
        `group_index=0` is the whole match. A group is in every match, once: it stands in no other
        repetition or alternative.
        """
        call, number = "str.extract", real(group_index)
        if not isinstance(number, int) or not 0 <= number < _LONG or regex is not True:
            raise InvalidArgument(
                f"{call} takes a pattern and the number of a group, as in {call}('ward ([0-9]+)', "
                "1)."
            )
        found = Pattern.read(_word(pattern, call), call)
        found.check_group(number, call)
        return self._expr._call(call, pattern=found, group=number)

    def count_matches(self, pattern: str, *, literal: bool = False, regex: bool | None = None) -> E:
        """Number of times that some characters, or matches of a pattern, stand
        one behind the other in a text.
        """
        call = "str.count_matches"
        return self._expr._call(
            call, pattern=_never_empty(_looked_for(pattern, call, literal, regex), call)
        )

    def strip_chars(self, characters: str | None = None) -> E:
        """The text without some characters at both ends, in any order;
        without white space by default.
        """
        return self._stripped(characters, Ends.BOTH)

    def strip_chars_start(self, characters: str | None = None) -> E:
        """The text without some characters at its start; see `strip_chars`."""
        return self._stripped(characters, Ends.START)

    def strip_chars_end(self, characters: str | None = None) -> E:
        """The text without some characters at its end; see `strip_chars`."""
        return self._stripped(characters, Ends.END)

    def _stripped(self, characters: str | None, ends: Ends) -> E:
        call = f"str.strip_chars{ends}"
        listed = WHITE_SPACE if characters is None else _word(characters, call)
        if not 1 <= len(listed) <= _LONG:
            raise InvalidArgument(f"{call} takes 1 to {_LONG} characters, as in {call}('.,;').")
        return self._expr._call(
            "str.strip_chars", characters="".join(dict.fromkeys(listed)), ends=ends
        )

    def strip_prefix(self, prefix: str) -> E:
        """The text without these characters at its start, where it has them."""
        return self._expr._call("str.strip_prefix", literal=_word(prefix, "str.strip_prefix"))

    def strip_suffix(self, suffix: str) -> E:
        """The text without these characters at its end, where it has them."""
        return self._expr._call("str.strip_suffix", literal=_word(suffix, "str.strip_suffix"))

    def starts_with(self, literal: str) -> E:
        """Whether the text starts with these characters."""
        return self._expr._call("str.starts_with", literal=_word(literal, "str.starts_with"))

    def ends_with(self, literal: str) -> E:
        """Whether the text ends with these characters."""
        return self._expr._call("str.ends_with", literal=_word(literal, "str.ends_with"))

    def head(self, n: int) -> E:
        """The first n characters; with a negative number all but the last ones."""
        sentence = "str.head takes a whole number: str.head(3), or str.head(-3) for all but three."
        first = read_whole(n, 1 - _PLACES, _PLACES, sentence)
        if first < 0:  # places before the first letter belong to no text
            return self._expr._call("str.slice", offset=1 - _PLACES, length=_PLACES - 1 + first)
        return self._expr._call("str.head", n=first)

    def tail(self, n: int) -> E:
        """The last n characters; with a negative number all but the first ones."""
        sentence = "str.tail takes a whole number: str.tail(3), or str.tail(-3) for all but three."
        last = read_whole(n, 1 - _PLACES, _PLACES - 1, sentence)
        return self.slice(-last) if last else self.head(0)

    def slice(self, offset: int, length: int | None = None) -> E:
        """Some characters: from the place `offset`, counted from 0, or from -1 at the
        end, so many or all that follow.

        Places before the first character count: `str.slice(-3, 2)` of "ab" is "a", as in Polars.
        """
        first, most = real(offset), None if length is None else real(length)
        right = isinstance(first, int) and abs(first) < _PLACES and (most is None or _place(most))
        if not right or (length is not None and most is None):
            raise InvalidArgument(
                "str.slice takes whole numbers: str.slice(2, 3) is the third to the fifth "
                "character, and str.slice(-3) the last three."
            )
        return self._expr._call("str.slice", offset=first, length=most)

    def zfill(self, length: int) -> E:
        """Zeros before a text of fewer characters, behind its sign if
        it has one: "-7" becomes "-07".
        """
        sentence = f"str.zfill takes a length from 1 to {_ZEROS}, as in str.zfill(5)."
        return self._expr._call("str.zfill", length=read_whole(length, 1, _ZEROS, sentence))

    def replace(
        self,
        pattern: str,
        value: str,
        *,
        literal: bool = False,
        regex: bool | None = None,
        n: int = 1,
    ) -> E:
        """Other characters in place of some: the first time, as in Polars; n=-1 for each time.

        With regex=True, in place of the matches of a pattern, each of at least one character; with
        literal=True nothing is a pattern. Null where the text, of n characters, could become longer
        than 2^24: n times the growth of the shortest match, rounded up.
        """
        if n not in (1, -1):
            raise InvalidArgument(
                "str.replace: type str.replace('a', 'b') for the first 'a', and "
                "str.replace_all('a', 'b') for each."
            )
        return self._replaced("str.replace", pattern, value, literal, regex, every=n == -1)

    def replace_all(
        self, pattern: str, value: str, *, literal: bool = False, regex: bool | None = None
    ) -> E:
        """Other characters in place of some, each time; see `replace`."""
        return self._replaced("str.replace_all", pattern, value, literal, regex, every=True)

    def _replaced(
        self, call: str, pattern: str, value: str, literal: bool, regex: bool | None, *, every: bool
    ) -> E:
        want = _word(value, call)
        have = _looked_for(pattern, call, literal, regex, f", {want!r}", "$" * ("$" in want))
        if regex and not _GROUPS.isdisjoint(want):
            raise UnsupportedOperation(
                f"{call}: {want!r} would put groups of the match back in, which is not offered. "
                "Take a group with str.extract('ward ([0-9]+)'), and join texts with "
                "dp.concat_str(['a', 'b'])."
            )
        match have:
            case Pattern() if _never_empty(have, call) and len(want) <= _LONG * have.least:
                return self._expr._call("str.replace_matches", pattern=have, new=want, every=every)
            case str() if have and len(want) <= _LONG * len(have):
                return self._expr._call("str.replace", old=have, new=want, every=every)
        raise InvalidArgument(
            f"{call}: the first text has at least one character, and the second at most {_LONG} "
            "times as many, as in str.replace('St.', 'Street')."
        )

    def to_date(self, format: str | None = None) -> E:
        """The date that a text names, such as `str.to_date("%d.%m.%Y")`; null where it is none.

        Input:  format: %Y, %m and %d once each, in any order, and other characters; "%Y-%m-%d" by
                default. Each part has all its digits: "01.02.2026", not "1.2.2026"
        """
        form = Form.read("%Y-%m-%d" if format is None else format, "str.to_date")
        return self._expr._call("str.to_date", format=form)

    def to_datetime(self, format: str | None = None) -> E:
        """The time that a text names, such as
        `str.to_datetime("%d.%m.%Y %H:%M")`; null where it is none.

        Input:  format: as in `to_date`, with %H, %M and %S too, which are 0 where they are left
                out. Without a format, the text is read as `cast("datetime")` reads it
        """
        if format is None:
            return self._expr._call("cast", dtype=as_dtype("datetime"))
        return self._expr._call("str.to_datetime", format=Form.read(format, "str.to_datetime"))

    def split(self, by: str, *, literal: bool = False) -> Pieces[E]:
        """The pieces of a text between separators: `str.split(",").list.get(0)` is the first piece.

        A separator of one character is that character. A longer one could be a pattern, as in
        pandas, and is refused if it has signs of one; with literal=True nothing is a pattern.
        """
        text = _word(by, "str.split")
        check_flags("str.split: literal= is True or False.", literal)
        if not literal and len(text) > 1 and not _SIGNS.isdisjoint(text):
            raise UnsupportedOperation(
                f"str.split: {text!r} has signs of a pattern, and a text is split by characters "
                f"alone. If just these are meant, type .str.split({text!r}, literal=True)."
            )
        if not text:
            raise InvalidArgument(
                "str.split takes a separator of at least one character, as in str.split(',')."
            )
        return Pieces(self._expr, by)


@cache
def _zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


def _zone(typed: object, call: str) -> str:
    if not isinstance(typed, str) or typed not in _zones() or not _ZONE.fullmatch(typed):
        raise InvalidArgument(
            f"{call} takes the name of a zone, as in {call}('Europe/Berlin') or {call}('UTC')."
        )
    return typed


def _place(value: float | None) -> bool:
    return isinstance(value, int) and 0 <= value < _PLACES


@dataclass(frozen=True)
class Pieces(Hints, Generic[E]):
    """`dp.col("s").str.split(",")`: go on with `.list.get(0)`, or with `.str[0]` as in pandas."""

    _habits = PIECES
    _expr: E
    _by: str

    @property
    def list(self) -> Pieces[E]:
        """As Polars has it: `.list.get(0)`."""
        return self

    @property
    def str(self) -> Pieces[E]:
        """As pandas has it: `.str[0]` or `.str.get(0)`."""
        return self

    def get(self, index: int, null_on_oob: bool = True) -> E:
        """The piece of a number, counted from 0, or from -1 at the
        end; null where there is none.
        """
        number = real(index)
        if not isinstance(number, int) or abs(number) >= _PIECES or null_on_oob is not True:
            raise InvalidArgument(
                f"list.get takes a whole number below {_PIECES}, as in str.split(',').list.get(0); "
                "a piece that is not there is null."
            )
        return self._expr._call("str.split", by=self._by, index=number)

    def first(self) -> E:
        """The first piece, which every text has."""
        return self.get(0)

    def last(self) -> E:
        """The last piece."""
        return self.get(-1)

    def __getitem__(self, index: int) -> E:
        return self.get(index)

    def __iter__(self) -> NoReturn:
        raise InvalidArgument(
            "The pieces of a text are no list before they meet a row: take one, .list.get(0)."
        )


@dataclass(frozen=True)
class CalendarNamespace(Hints, Generic[E]):
    """`dp.col("when").dt`: parts of a date or a time."""

    _habits = CALENDAR
    _expr: E

    def year(self) -> E:
        """Year."""
        return self._expr._call("dt.year")

    def month(self) -> E:
        """Month, 1 to 12."""
        return self._expr._call("dt.month")

    def day(self) -> E:
        """Day of the month, 1 to 31."""
        return self._expr._call("dt.day")

    def weekday(self) -> E:
        """Day of the week, Monday is 1."""
        return self._expr._call("dt.weekday")

    def date(self) -> E:
        """The day, on the clock of the column's zone if it has one."""
        return self._expr._call("dt.date")

    def week(self) -> E:
        """Number of the week as ISO 8601 counts them, 1 to 53:
        a week belongs to the year of its Thursday.
        """
        return self._expr._call("dt.week")

    def quarter(self) -> E:
        """Quarter of the year, 1 to 4."""
        return self._expr._call("dt.quarter")

    def month_start(self) -> E:
        """The first day of the month; a time keeps its clock, as in Polars.
        `dt.truncate("1mo")` is its midnight.
        """
        return self._expr._call("dt.month_start")

    def month_end(self) -> E:
        """The last day of the month; a time keeps its clock, as in Polars."""
        return self._expr._call("dt.month_end")

    def truncate(self, every: str) -> E:
        """The start of the window that holds a date or time:
        `dt.truncate("1w")` is the Monday of its week.

        Input:  every: a number of weeks, months, quarters or years, "2w", "1mo", "1q", "1y", or of
                days, hours, minutes or seconds, "1d", "6h", "15m", "30s". Windows are counted from
                1970-01-01, weeks from 1970-01-05, by the clock of the column's zone
        Output: the column's type. Null where the window begins before the year 1; in a zone, also
                where its clocks never show the start of a window of more than an hour, or show it
                twice
        """
        Every.read(every)
        return self._expr._call("dt.truncate", every=every)

    def offset_by(self, by: str) -> E:
        """A date or time so much later: "3d", "-2h", "1w", "1mo", "-1q", "1y".

        A day that the month does not have becomes its last day. Null outside of the years 1 to
        9999.
        """
        Every.read(by.removeprefix("-") if isinstance(by, str) else by, "dt.offset_by")
        return self._expr._call("dt.offset_by", by=by)

    def total_days(self) -> E:
        """Whole days of a duration, rounded toward zero:
        `(dp.col("out") - dp.col("in")).dt.total_days()`.
        """
        return self._total("d")

    def total_hours(self) -> E:
        """Whole hours of a duration, rounded toward zero."""
        return self._total("h")

    def total_minutes(self) -> E:
        """Whole minutes of a duration, rounded toward zero."""
        return self._total("m")

    def total_seconds(self) -> E:
        """Whole seconds of a duration, rounded toward zero."""
        return self._total("s")

    def _total(self, unit: str) -> E:
        return self._expr._call(f"dt.total_{TOTALS[unit]}", unit=unit)

    def convert_time_zone(self, time_zone: str) -> E:
        """The same moment on the clock of another zone, "Europe/Berlin".
        A time without a zone is read as UTC.
        """
        return self._expr._call(
            "dt.convert_time_zone", zone=_zone(time_zone, "dt.convert_time_zone")
        )

    def replace_time_zone(self, time_zone: str | None) -> E:
        """The time that the clock shows, as one of another zone, or with None of no zone.

        Null where clocks of that zone never show the time, or show it twice, when they are put
        forward or back; and within two days of the ends of the years 1 to 9999.
        """
        call = "dt.replace_time_zone"
        return self._expr._call(call, zone=None if time_zone is None else _zone(time_zone, call))

    def ordinal_day(self) -> E:
        """Day of the year, 1 to 366."""
        return self._expr._call("dt.ordinal_day")

    def hour(self) -> E:
        """Hour, 0 to 23."""
        return self._expr._call("dt.hour")

    def minute(self) -> E:
        """Minute, 0 to 59."""
        return self._expr._call("dt.minute")

    def second(self) -> E:
        """Second, 0 to 59."""
        return self._expr._call("dt.second")
