"""Lengths of time in the form in which people type them: "1d", "12h", "7d", "night"."""

from __future__ import annotations

import datetime as dt
import re

from dpframe.errors import InvalidArgument, kind_of

_UNITS = {"h": dt.timedelta(hours=1), "d": dt.timedelta(days=1), "w": dt.timedelta(weeks=1)}
_WORDS = {"hour": "1h", "day": "1d", "night": "1d", "week": "1w"}
_LENGTH = re.compile(r"([1-9][0-9]{0,5})([hdw])")


def read_length(text: object, name: str) -> dt.timedelta:
    """The length of time of a text: "1h", "1d", "7d", "1w", or "hour", "day", "night", "week".

    >>> read_length("7d", "every") == read_length("1w", "every") == dt.timedelta(days=7)
    True
    """
    match = _LENGTH.fullmatch(_WORDS.get(text, text)) if isinstance(text, str) else None
    if match is None:
        words = repr(text) if isinstance(text, str) else kind_of(text)
        raise InvalidArgument(
            f"{name}={words}: give a number of hours, days or weeks, such as {name}='1d' or {name}='12h'."
        )
    return int(match[1]) * _UNITS[match[2]]


def later(start: dt.datetime, number: int, length: dt.timedelta, what: str) -> dt.datetime:
    """The time that is a number of lengths after a start. Errors: InvalidArgument outside of the years 1 to 9999.

    >>> later(dt.datetime(2026, 1, 1), 2, read_length("1w", "every"), "series.add").date()
    datetime.date(2026, 1, 15)
    """
    try:
        return start + number * length
    except OverflowError:
        raise InvalidArgument(
            f"{what}: this reaches beyond the years 1 to 9999, which are all that a date can have. Begin earlier, or "
            "give fewer or shorter periods."
        ) from None
