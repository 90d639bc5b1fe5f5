"""Titles of charts, in words from the question."""

from __future__ import annotations

from collections.abc import Sequence

from dpframe.plan import Derivation

__all__ = ["in_words", "title_of"]

_PARTS = {"": "", "index": ", in % of the row", "columns": ", in % of the column", "all": ", in % of all"}


def in_words(why: Derivation, column: str) -> str:
    """The statistic of a released column in words: `Mean of spend`."""
    words = dict(why.words).get(column, column)
    return words[:1].upper() + words[1:]


def title_of(why: Derivation, words: str, by: Sequence[str], normalize: str = "") -> str:
    """The question as a title: `Mean of spend by city and sex, where age >= 18`."""
    keys = " and ".join(filter(None, [", ".join(by[:-1]), *by[-1:]]))
    where = f", where {' and '.join(why.where)}" if why.where else ""
    return f"{words}{f' by {keys}' if keys else ''}{_PARTS[normalize]}{where}"
