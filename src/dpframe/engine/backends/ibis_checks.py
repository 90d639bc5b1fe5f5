"""What a database of Ibis that nobody has tried is asked before a table of it is protected, on values of ours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any
from weakref import WeakSet

import ibis
import polars as pl

from dpframe.errors import UnsupportedOperation

__all__ = ["check_apart", "check_numbers", "check_tries", "fetched", "loose"]

_TRYING = ("TRY_CAST", "SAFE_CAST", "accurateCastOrNull")  # what databases call a cast that cannot fail

_LOOSE = "its collation does not tell all texts apart: give the column one that compares bytes"
# Texts of which some collation or other takes two for one: by case, accent, form, space, width or letter.
_APART = ("a", "A", "\u00e1", "a\u0301", "a ", "a\u00ad", "\uff41", "ss", "\u00df")


# Numbers whose sums, products and quotients are too large or too small for a float, and one that is neither.
_EXTREME = (1.7e308, -1.7e308, 1e-200, 5e-324, 3.0)

_RELIABLE: WeakSet[Any] = WeakSet()  # connections to databases that do not fail on these


def fetched(rows: Any) -> pl.DataFrame:
    """The rows of a query, as Ibis reads them."""
    table = pl.from_arrow(rows.to_pyarrow())
    assert isinstance(table, pl.DataFrame)
    return table


def loose(table: Any, texts: Sequence[str]) -> dict[str, str]:
    """Why columns of text cannot be held: the database takes some different texts for one. No row is read.

    There "bonn" and "BONN" would make one group, and the spelling of one unit could be the key that is shown.
    """
    backends, _ = table._find_backends()
    if not texts or not backends:  # a table without a database cannot be read
        return {}
    columns = {f"c{i}": table[name].cast("string") for i, name in enumerate(texts)}
    none = table.filter(ibis.literal(False)).select(**columns)
    every = none.union(ibis.memtable(dict.fromkeys(columns, _APART)))
    pairs = every.cross_join(every.view().rename({f"{name}d": name for name in columns}))
    distinct = {name: pairs[name].nunique() for name in columns}  # which not all databases find as they find groups
    equal = {f"{name}d": (pairs[name] == pairs[f"{name}d"]).ifelse(1, 0).cast("int64").sum() for name in columns}
    try:
        (counts,) = fetched(pairs.aggregate(**distinct, **equal)).rows(named=True)
    except Exception as error:  # a database that cannot say so is not believed
        asked = (
            f"dpframe asked whether its collation tells all texts apart, and that failed with {type(error).__name__}"
        )
        return dict.fromkeys(texts, f"{asked}: make it a number before dp.protect(...)")
    apart = len(_APART)
    return {
        text: _LOOSE
        for name, text in zip(columns, texts, strict=True)
        if counts[name] < apart or counts[f"{name}d"] > apart
    }


def check_apart(table: Any) -> None:
    """Refuses a database that takes some different texts of its own for one. Errors: UnsupportedOperation."""
    backends, _ = table._find_backends()
    if backends and not _apart(backends[0]):
        raise UnsupportedOperation(
            f"{backends[0].name}: texts that a question makes are compared by the collation of the database, which "
            "does not tell all texts apart. Give the database, or the session, one that compares bytes."
        )


def _apart(backend: Any) -> bool:
    """Whether a database tells texts apart that stand in a query; no row is read."""
    pairs = [(ibis.literal(x) == ibis.literal(y)).ifelse(1, 0) for x in _APART for y in _APART]
    try:
        return int(backend.execute(sum(pairs[1:], pairs[0]))) == len(_APART)
    except Exception:  # a database that cannot say so is not believed
        return False


def check_numbers(table: Any) -> None:
    """Refuses a database that fails where numbers overflow, asked on numbers of ours: it would fail on a cell.

    That would be after the charge, and tell that there is this cell. Errors: UnsupportedOperation.
    """
    backends, _ = table._find_backends()
    if not backends or backends[0] in _RELIABLE:  # a table without a database cannot be read
        return
    numbers = ibis.memtable({"x": list(_EXTREME)})
    pairs = numbers.cross_join(numbers.view().rename(y="x"))
    x, y = pairs.x, pairs.y
    computed = pairs.select(a=x + y, b=x - y, c=x * y, d=x / y, e=ibis.cases((x.abs() < 1, x)).cast("float32"))
    for rows, failed in ((pairs, "takes in no table of numbers"), (computed, "fails where a number overflows")):
        if not _runs(backends[0], rows):
            raise UnsupportedOperation(
                f"dp.protect: {backends[0].name} {failed}, so one cell could make a query fail. Bring the table as "
                "another: dp.protect(table.to_polars(), ...)."
            )
    _RELIABLE.add(backends[0])


def _runs(backend: Any, rows: Any) -> bool:
    """Whether a database runs a query on numbers of ours."""
    try:
        backend.to_pyarrow(rows)
    except Exception:
        return False
    return True


def check_tries(rows: Any) -> None:
    """Refuses a database where Ibis writes no cast that is null where a text is no number: it would fail on a cell.

    That would be after the charge, and tell that there is such a cell. Errors: UnsupportedOperation.
    """
    backends, _ = rows._find_backends()
    if backends and not _tries(backends[0].name):
        raise UnsupportedOperation(
            f"cast: Ibis has no cast of text for {backends[0].name} that gives null where a text is no number, date or "
            "time, so one cell could make the query fail. Make it one there before it is protected."
        )


@cache
def _tries(dialect: str) -> bool:
    """Whether the SQL of a database has a cast that cannot fail, and Ibis writes it. No dialect: that is not known."""
    text = ibis.table({"s": "string"}, name="t").s
    try:
        written = [str(ibis.to_sql(text.try_cast(to), dialect=dialect)) for to in ("int64", "date")]
    except Exception:  # Ibis has no such dialect, or no such cast there
        return False
    return all(any(word in sql for word in _TRYING) for sql in written)
