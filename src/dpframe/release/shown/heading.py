"""Titles and subtitles of charts, in words from the question: the statistic, the price and the protected unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpframe.budget import Loss
from dpframe.plan import Derivation
from dpframe.release.shown.charts import Heading

__all__ = ["heading_of", "in_words", "title_of"]

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


def heading_of(
    title: str, cost: Loss, statement: Mapping[str, Any], steps: Sequence[str], unseen: Sequence[str] = ()
) -> Heading:
    """The heading of a chart of a release: title, price and unit, and the steps of post-processing by name."""
    together = statement.get("guarantee", {}).get("charged_for_queries", 1)
    batch = f" for {together} queries together" if together > 1 else ""
    unit = statement.get("unit_of_privacy")
    whose = f"; protected: {unit}" if unit else ""
    verbs = [step.partition(":")[0] for step in steps if step.partition(":")[0].endswith(")")]
    after = f" After {', '.join(verbs)}." if verbs else ""
    return Heading(title, (f"Released at {cost}{batch}{whose}.{after}", *unseen))
