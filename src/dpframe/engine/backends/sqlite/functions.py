"""The functions that SQLite calls in Python.
Each is total: null where there is no result, for null and any cell.

An exception in one of them would make the query fail, so none can raise one. Texts arrive and leave
as bytes: Python would raise an error at a text that is not UTF-8.
"""

from __future__ import annotations

import datetime as dt
import functools
import math
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from dpframe.engine.automaton import automaton
from dpframe.engine.backends.base import Cell, digest
from dpframe.engine.backends.polars import applied
from dpframe.engine.letters import letters
from dpframe.plan import Ends, Pattern, Search, Task

_LONGEST = 2**24  # largest length of a text in bytes; a longer text is null
_EPOCH, _DAY = dt.date(1970, 1, 1).toordinal(), 86_400_000_000
_FIRST, _LAST = dt.date.min.toordinal() - _EPOCH, dt.date.max.toordinal() - _EPOCH
_LARGEST_SINGLE = 3.4028235677973366e38  # from this number on, the nearest 32-bit float is infinite
_WHEN = re.compile(
    rb"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    rb"(?:[T ]([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,9}))?)?)?"
)
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_DIGITS = 19  # digits of the largest whole number of 64 bits


def _text(cell: bytes) -> bytes | None:
    """A text as it is held: null where its bytes are not UTF-8."""
    if len(cell) > _LONGEST:
        return None
    try:
        cell.decode()
    except UnicodeDecodeError:
        return None
    return cell


def _length(text: bytes) -> int:
    return len(text.decode())


def _head(text: bytes, start: int, length: int) -> bytes:
    """Characters from a place on, or from one at the end. Places before the first one count."""
    letters_ = text.decode()
    first = start if start >= 0 else len(letters_) + start
    return letters_[max(first, 0) : max(first + length, 0)].encode()


@functools.cache
def _table(capital: bool) -> dict[int, int]:
    have, want = letters(capital=capital)
    return str.maketrans(have, want)


def _cased(text: bytes, capital: int) -> bytes:
    return text.decode().translate(_table(bool(capital))).encode()


def _replaced(text: bytes, old: bytes, new: bytes, many: int) -> bytes | None:
    """A text with other characters in place of the first `many`, or of all where this is -1.

    Bytes of UTF-8 are replaced: one character never begins within another. A result may be too
    long, as in `_text`.
    """
    result = text.replace(old, new, many)
    return None if len(result) > _LONGEST else result


def _joined(*texts: bytes | None) -> bytes | None:
    """Texts one behind the other; null where one is."""
    there = [text for text in texts if text is not None]
    return b"".join(there) if len(there) == len(texts) else None


def _piece(text: bytes, by: bytes, index: int) -> bytes | None:
    """A piece between separators, counted from 0, or from the end
    with -1; null where there is none.
    """
    pieces = text.split(by)
    return pieces[index] if -len(pieces) <= index < len(pieces) else None


@functools.cache
def _pattern(regex: bytes) -> re.Pattern[str]:
    return re.compile(regex.decode())


def _matches(text: bytes, regex: bytes) -> bool:
    return _pattern(regex).search(text.decode()) is not None


def _found(text: bytes, pattern: bytes) -> bool:
    """Whether a text has a match of a pattern; see `automaton`."""
    return automaton(Pattern(pattern.decode())).matches(text.decode())


@functools.cache
def _search(task: bytes, pattern: bytes, group: int, value: bytes) -> pl.Expr:
    search = Search(Task(task.decode()), Pattern(pattern.decode()), group, value.decode())
    return applied(pl.col("a"), search)


def _searched(
    text: bytes, task: bytes, pattern: bytes, group: int, value: bytes
) -> int | bytes | None:
    """The number, the first or the replacement of the matches of a pattern, by
    Polars: its time grows as the text.
    """
    found = pl.DataFrame({"a": [text.decode()]}).select(_search(task, pattern, group, value)).item()
    return found.encode() if isinstance(found, str) else found


_STRIPS = {Ends.BOTH: str.strip, Ends.START: str.lstrip, Ends.END: str.rstrip}


def _stripped(text: bytes, characters: bytes, ends: bytes) -> bytes:
    return _STRIPS[Ends(ends.decode())](text.decode(), characters.decode()).encode()


# Numbers


def _whole(value: float, low: int, high: int) -> int | None:
    """A number without its fraction, null where it leaves the range."""
    number = math.trunc(value) if math.isfinite(value) else None
    return None if number is None or not low <= number <= high else number


def _floor(value: float) -> int | None:
    number = math.floor(value) if math.isfinite(value) else None
    return None if number is None or not -(2**63) <= number < 2**63 else number


def _single(value: float) -> float:
    """The nearest 32-bit float."""
    if abs(value) >= _LARGEST_SINGLE:
        return math.copysign(math.inf, value)
    return struct.unpack("f", struct.pack("f", value))[0]


def _root(value: float) -> float | None:
    return math.sqrt(value) if value >= 0 else None


def _logarithm(value: float, base: float) -> float | None:
    return math.log(value) / math.log(base) if value > 0 else None


def _integer(text: bytes, low: int, high: int) -> int | None:
    """The whole number that a text writes, null where it leaves the range."""
    if not _INTEGER.fullmatch(text) or len(text.lstrip(b"+-0")) > _DIGITS:
        return None
    number = int((b"-" if text.startswith(b"-") else b"") + (text.lstrip(b"+-0") or b"0"))
    return number if low <= number <= high else None


def _real(text: bytes) -> float | None:
    """The number that a text writes. The caller has checked the form of the text."""
    try:
        return float(text)
    except ValueError:
        return None


# Times


def _moment(text: bytes) -> tuple[int, int, bytes] | None:
    """The day since 1970, the second of the day, and the digits after the point;
    null for a text of another form.
    """
    parts = _WHEN.fullmatch(text)
    if parts is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in parts.groups()[:6])
    try:
        days = dt.date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None
    return days, (hour * 60 + minute) * 60 + second, parts[7] or b""


def _days(text: bytes) -> int | None:
    """The day of a date or of a midnight. A time within a day is no date."""
    moment = _moment(text)
    if moment is None or moment[1] or moment[2].strip(b"0"):
        return None
    return moment[0]


def _micros(text: bytes, exactly: int) -> int | None:
    """The microseconds of a time.
    With `exactly`, a time with a finer fraction is null, so no two times become one.
    """
    moment = _moment(text)
    if moment is None or (exactly and moment[2][6:].strip(b"0")):
        return None
    days, seconds, digits = moment
    return days * _DAY + seconds * 1_000_000 + int(digits[:6].ljust(6, b"0"))


_PARTS: Mapping[str, Callable[[dt.date], int]] = {
    "year": lambda day: day.year,
    "month": lambda day: day.month,
    "day": lambda day: day.day,
    "weekday": lambda day: day.isoweekday(),
    "ordinal_day": lambda day: day.timetuple().tm_yday,
}
_CLOCK = {"hour": (3_600_000_000, 24), "minute": (60_000_000, 60)}


def _part(value: float, per_day: int, name: bytes) -> int | bytes | None:
    """A part of a date or time, from its ticks; the "text" of a date."""
    part, ticks = name.decode(), int(value) if math.isfinite(value) else 0
    days = ticks // per_day
    if not math.isfinite(value) or not _FIRST <= days <= _LAST:
        return None
    if part in _CLOCK:
        unit, many = _CLOCK[part]
        return ticks // unit % many
    day = dt.date.fromordinal(days + _EPOCH)
    return day.isoformat().encode() if part == "text" else _PARTS[part](day)


# Hashes


def _hash(salt: bytes, *cells: Cell) -> int:
    """64 bits that depend on the salt and the cells alone."""
    return int.from_bytes(digest(8, salt, cells), "little", signed=True)


def _stable_hash(salt: bytes, *cells: Cell) -> bytes:
    return digest(16, salt, cells)


def _of_null(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with null for null as its first argument."""

    @functools.wraps(function)
    def total(first: Any, *others: Any) -> Any:
        return None if first is None else function(first, *others)

    return total


_EVERY = -1  # any number of arguments
FUNCTIONS: Mapping[str, tuple[int, Callable[..., Any]]] = {
    "dpframe_hash": (_EVERY, _hash),
    "dpframe_stable_hash": (_EVERY, _stable_hash),
    "dpframe_joined": (_EVERY, _joined),
    **{
        f"dpframe_{name}": (many, _of_null(function))
        for name, many, function in (
            ("text", 1, _text),
            ("length", 1, _length),
            ("head", 3, _head),
            ("cased", 2, _cased),
            ("replaced", 4, _replaced),
            ("piece", 3, _piece),
            ("matches", 2, _matches),
            ("found", 2, _found),
            ("searched", 5, _searched),
            ("stripped", 3, _stripped),
            ("whole", 3, _whole),
            ("floor", 1, _floor),
            ("single", 1, _single),
            ("root", 1, _root),
            ("logarithm", 2, _logarithm),
            ("integer", 3, _integer),
            ("real", 1, _real),
            ("days", 1, _days),
            ("micros", 2, _micros),
            ("part", 3, _part),
        )
    },
}
