"""Texts, and parts of dates and times: the domain of each result."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import narwhals as nw

from dpframe.errors import InvalidArgument
from dpframe.plan.columns import Bounds, ColumnDomain
from dpframe.plan.operations.rules import Applied, Operation, Rule
from dpframe.plan.scalars import check_text


def _text(dtype: nw.dtypes.DType, bounds: Bounds | None = None, *, missing: bool = False) -> Rule:
    def rule(asked: Applied) -> ColumnDomain:
        asked.need("string")
        return ColumnDomain(dtype, missing or asked.nullable, bounds)

    return rule


def _searched(asked: Applied) -> ColumnDomain:
    """Whether a text has some letters.
    Those that none of its letters can be are refused: no text has them.
    """
    domain, possible = _text(nw.Boolean(), _TRUTH)(asked), asked.on.possible
    if possible is not None and possible.of_letters and not possible.holds(asked["literal"]):
        raise InvalidArgument(
            f"{asked.call}: no row has these letters. Give {possible.give.partition(',')[0]}."
        )
    return domain


def _calendar(bounds: Bounds | None, *kinds: str) -> Rule:
    def rule(asked: Applied) -> ColumnDomain:
        asked.need(*kinds)
        return ColumnDomain(nw.Int64(), asked.nullable, bounds)

    return rule


def _maybe(asked: Applied) -> ColumnDomain:
    """A text that may be missing: a piece that is not there, or a
    text that would become too long.
    """
    asked.need("string")
    return ColumnDomain(nw.String())


def concatenated(asked: Applied) -> ColumnDomain:
    """Texts one behind the other: missing where one is, or where they would become too long."""
    asked.need("string", "integer", "boolean", "date")
    return ColumnDomain(nw.String())


_DIGITS = {"%Y": 4, "%m": 2, "%d": 2, "%H": 2, "%M": 2, "%S": 2}
_OF_DATE = frozenset(("%Y", "%m", "%d"))


class Form(str):
    """A form of dates or times in texts, such as "%d.%m.%Y": each part has a fixed place.

    >>> Form("%d.%m.%Y").places
    [('%d', 0, 2), ('.', 2, 3), ('%m', 3, 5), ('.', 5, 6), ('%Y', 6, 10)]
    """

    __slots__ = ()

    @classmethod
    def read(cls, typed: object, call: str) -> Form:
        """Errors: InvalidArgument."""
        pieces = re.findall("%.?|[^%]+", typed) if isinstance(typed, str) else []
        codes = [piece for piece in pieces if piece.startswith("%")]
        allowed = _OF_DATE if call == "str.to_date" else frozenset(_DIGITS)
        if not _OF_DATE <= set(codes) <= allowed or len(codes) > len(set(codes)):
            clock = "" if call == "str.to_date" else ", and perhaps %H, %M and %S"
            raise InvalidArgument(
                f"{call} takes a format with %Y, %m and %d once each{clock}, as in "
                f"{call}('%d.%m.%Y'). Each stands for all its digits."
            )
        check_text(str(typed), call)
        return cls(typed)

    @property
    def places(self) -> Sequence[tuple[str, int, int]]:
        """The codes and the texts between them, each with its first
        place and the place after its last.
        """
        places, end = [], 0
        for piece in re.findall("%.|[^%]+", self):
            start, end = end, end + _DIGITS.get(piece, len(piece))
            places.append((piece, start, end))
        return places


def _named(dtype: nw.dtypes.DType) -> Rule:
    def rule(asked: Applied) -> ColumnDomain:
        asked.need("string")
        return ColumnDomain(dtype)

    return rule


LONGEST_TEXT = 2**24  # characters of a text that has become longer; a longer one would be null
_DAYS, _TIMES = ("date", "datetime"), ("datetime",)
_TRUTH = Bounds(0, 1)

OF_PARTS: Mapping[str, Operation] = {
    "str.to_lowercase": Operation("{0}.str.to_lowercase()", _text(nw.String())),
    "str.to_uppercase": Operation("{0}.str.to_uppercase()", _text(nw.String())),
    "str.len_chars": Operation("{0}.str.len_chars()", _text(nw.Int64())),
    "str.contains": Operation("{0}.str.contains({literal!r}, literal=True)", _searched),
    "str.starts_with": Operation("{0}.str.starts_with({literal!r})", _searched),
    "str.ends_with": Operation("{0}.str.ends_with({literal!r})", _searched),
    "str.head": Operation("{0}.str.head({n})", _text(nw.String())),
    "str.slice": Operation("{0}.str.slice({offset}, {length})", _text(nw.String())),
    "str.replace": Operation(
        "{0}.str.replace({old!r}, {new!r}, literal=True, every={every})", _maybe
    ),
    "str.split": Operation("{0}.str.split({by!r}).list.get({index})", _maybe),
    "str.zfill": Operation("{0}.str.zfill({length})", _maybe, depth=6, size=16),
    "str.to_date": Operation("{0}.str.to_date({format!r})", _named(nw.Date()), depth=10, size=32),
    "str.to_datetime": Operation(
        "{0}.str.to_datetime({format!r})", _named(nw.Datetime("us")), depth=10, size=32
    ),
    "concat_str": Operation(
        "concat_str([{all}], separator={separator!r})", concatenated, depth=2, size=2
    ),
    "concat": Operation("concat_str([{all}])", concatenated),
    "dt.year": Operation("{0}.dt.year()", _calendar(None, *_DAYS)),
    "dt.month": Operation("{0}.dt.month()", _calendar(Bounds(1, 12), *_DAYS)),
    "dt.day": Operation("{0}.dt.day()", _calendar(Bounds(1, 31), *_DAYS)),
    "dt.quarter": Operation("{0}.dt.quarter()", _calendar(Bounds(1, 4), *_DAYS)),
    "dt.week": Operation("{0}.dt.week()", _calendar(Bounds(1, 53), *_DAYS)),
    "dt.weekday": Operation("{0}.dt.weekday()", _calendar(Bounds(1, 7), *_DAYS)),
    "dt.ordinal_day": Operation("{0}.dt.ordinal_day()", _calendar(Bounds(1, 366), *_DAYS)),
    "dt.hour": Operation("{0}.dt.hour()", _calendar(Bounds(0, 23), *_TIMES)),
    "dt.minute": Operation("{0}.dt.minute()", _calendar(Bounds(0, 59), *_TIMES)),
}


OF_PATTERNS: Mapping[str, Operation] = {
    "str.matches": Operation(
        "{0}.str.contains({pattern!r}, regex=True)", _text(nw.Boolean(), Bounds(0, 1))
    ),
    "str.extract": Operation(
        "{0}.str.extract({pattern!r}, {group})", _text(nw.String(), missing=True)
    ),
    "str.count_matches": Operation(
        "{0}.str.count_matches({pattern!r})", _text(nw.Int64()), depth=4, size=5
    ),
    "str.replace_matches": Operation(
        "{0}.str.replace({pattern!r}, {new!r}, regex=True, every={every})",
        _text(nw.String(), missing=True),
    ),
    "str.strip_chars": Operation("{0}.str.strip_chars{ends}({characters!r})", _text(nw.String())),
    "str.strip_prefix": Operation(
        "{0}.str.strip_prefix({literal!r})", _text(nw.String()), depth=2, size=3
    ),
    "str.strip_suffix": Operation(
        "{0}.str.strip_suffix({literal!r})", _text(nw.String()), depth=2, size=3
    ),
}
