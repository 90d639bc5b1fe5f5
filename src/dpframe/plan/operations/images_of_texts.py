"""Texts that operations can give: see `dpframe.plan.operations.images`."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from typing import Any

from dpframe.plan.columns import ColumnDomain, Possible
from dpframe.plan.operations.patterns import Pattern
from dpframe.plan.operations.rules import Applied, Image
from dpframe.plan.types import Kind, kind

_LONG_KEY = 1_000  # characters; a longer text is not held against a pattern
_ALTERNATIVES = 100  # of a text within others
_INTEGER_TEXT, _DATE_TEXT = "0|-?[1-9][0-9]*", "[0-9]{4}-[0-9]{2}-[0-9]{2}"


def as_text(value: ColumnDomain) -> Possible | None:
    """Whole numbers, dates and truth as they are written."""
    possible = value.possible
    match kind(value.dtype):
        case Kind.BOOLEAN:
            return Possible.listed(["true", "false"])
        case Kind.INTEGER:
            form, give = _INTEGER_TEXT, "whole numbers as texts, such as '7'"
        case Kind.DATE:
            form, give = _DATE_TEXT, "days as texts, such as '2026-01-31'"
        case _:
            return None
    read: Callable[[str], Any] = int if kind(value.dtype) == Kind.INTEGER else dt.date.fromisoformat
    ends, pattern = value.bounds if kind(value.dtype) == Kind.INTEGER else None, re.compile(form)

    def holds(key: str) -> bool:
        if len(key) > _LONG_NUMBER or not pattern.fullmatch(key):
            return False
        try:
            named = read(key)
        except ValueError:
            return False  # no day of the calendar
        return (ends is None or ends.lower <= named <= ends.upper) and (
            possible is None or possible.holds(named)
        )

    return Possible(holds, give, form=_form(value))


_LONG_NUMBER = 60  # characters of a whole number of 128 bits, with some to spare


def cased(capital: bool) -> Image:
    """Texts in one case: a letter whose other case is several letters stays."""

    def one(letter: str) -> str:
        other = letter.upper() if capital else letter.lower()
        return other if len(other) == 1 else letter

    def rule(asked: Applied, result: ColumnDomain) -> Possible:
        case = "upper" if capital else "lower"
        return Possible(
            lambda key: all(one(letter) == letter for letter in key),
            f"texts in {case} case, as in keys=[key.{case}() for key in keys]",
            of_letters=True,
        )

    return rule


def _short(most: int) -> Possible:
    return Possible(lambda key: len(key) <= most, f"texts of at most {most} characters")


def head(asked: Applied, result: ColumnDomain) -> Possible:
    """Texts of at most so many letters."""
    return _short(asked["n"])


def piece_of(asked: Applied, result: ColumnDomain) -> Possible | None:
    """Texts of at most so many letters, of a slice that has an end."""
    offset, length = asked["offset"], asked["length"]
    ends = [end for end in (length, -offset if offset < 0 else None) if end is not None]
    return _short(min(ends)) if ends else None


def _without(letters: str) -> Possible:
    return Possible(lambda key: letters not in key, f"texts without {letters!r}")


def replaced(asked: Applied, result: ColumnDomain) -> Possible | None:
    """Texts without a letter that was replaced each time."""
    old, new = asked["old"], asked["new"]
    return _without(old) if asked["every"] and len(old) == 1 and old not in new else None


def split(asked: Applied, result: ColumnDomain) -> Possible:
    """Pieces without what is between them."""
    return _without(asked["by"])


def stripped(asked: Applied, result: ColumnDomain) -> Possible:
    """Texts without some letters at their ends."""
    strip = {"": str.strip, "_start": str.lstrip, "_end": str.rstrip}[asked["ends"]]
    letters = asked["characters"]
    where = {"": "the start or the end", "_start": "the start", "_end": "the end"}[asked["ends"]]
    shown = "white space" if letters.isspace() else repr(letters)
    return Possible(lambda key: strip(key, letters) == key, f"texts without {shown} at {where}")


def padded(asked: Applied, result: ColumnDomain) -> Possible:
    """Texts of at least so many letters."""
    least = asked["length"]
    return Possible(
        lambda key: len(key) >= least,
        f"texts of at least {least} characters, as in keys=[str(key).zfill({least}) for key in "
        "keys]",
    )


def joined(asked: Applied, result: ColumnDomain) -> Possible:
    """Texts one behind the other. Each part may be what texts of its type are."""
    form = re.escape(asked.options.get("separator", "")).join(map(_form, asked.args))
    pattern = re.compile(form, re.DOTALL)
    parts = " and ".join(_part(arg) for arg in asked.args)
    return Possible(
        lambda key: len(key) > _LONG_KEY or pattern.fullmatch(key) is not None,
        f"texts that are put together of {parts}",
        form=form,
    )


def _form(arg: ColumnDomain) -> str:
    values, bounds = arg.values, arg.bounds
    if kind(arg.dtype) == Kind.STRING:
        if arg.possible is not None and arg.possible.form:
            return arg.possible.form
        few = values is not None and len(values) <= _ALTERNATIVES
        return f"(?:{'|'.join(re.escape(text) for text in sorted(values or ()))})" if few else ".*"
    if (
        kind(arg.dtype) == Kind.INTEGER
        and bounds is not None
        and bounds.upper - bounds.lower < _ALTERNATIVES
    ):
        inside = range(math.floor(bounds.lower), math.ceil(bounds.upper) + 1)
        return f"(?:{'|'.join(map(str, inside))})"
    forms = {Kind.INTEGER: _INTEGER_TEXT, Kind.DATE: _DATE_TEXT, Kind.BOOLEAN: "true|false"}
    return f"(?:{forms.get(kind(arg.dtype), '.*')})"


def _part(arg: ColumnDomain) -> str:
    values = arg.values
    if values is not None and len(values) == 1:
        return repr(next(iter(values)))
    parts = {
        Kind.INTEGER: "a whole number without zeros before it",
        Kind.DATE: "a day such as 2026-01-31",
    }
    return parts.get(kind(arg.dtype), "a text")


def extracted(asked: Applied, result: ColumnDomain) -> Possible:
    """Texts that a group of a pattern can hold."""
    pattern: Pattern = asked["pattern"]
    form = re.compile(pattern.form(asked["group"]))
    return Possible(
        lambda key: len(key) > _LONG_KEY or form.fullmatch(key) is not None,
        f"texts that the {'brackets' if asked['group'] else 'whole'} of {str(pattern)!r} can be",
    )
