"""Checks of a database of Ibis without a dialect, on numbers and texts of ours: no row is read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

import ibis
import ibis.expr.operations as ops
import polars as pl
from ibis.backends import BaseBackend

from dpframe.errors import UnsupportedOperation

# names of casts that give null instead of failing
_TRYING = ("TRY_CAST", "SAFE_CAST", "accurateCastOrNull")

_LOOSE = (
    "its collation takes some different texts for equal: give the column a collation that "
    "compares bytes"
)
# Different texts that some collation takes for equal: they differ in case, accent, form, space,
# width or letter.
_APART = ("a", "A", "\u00e1", "a\u0301", "a ", "a\u00ad", "\uff41", "ss", "\u00df")

# Numbers whose sums, products and quotients are too large or too small for a float, and one
# ordinary number.
_EXTREME = (1.7e308, -1.7e308, 1e-200, 5e-324, 3.0)

# Connections to databases that computed with these numbers and did not fail, by their id: to Ibis,
# two connections that were made alike are equal, whatever their settings are.
_RELIABLE: WeakValueDictionary[int, BaseBackend] = WeakValueDictionary()

_NEEDED = (
    ops.Hash,
    ops.Floor,
    ops.IsNan,
    ops.Modulus,
    ops.Clip,
    ops.MinRank,
    ops.CountDistinct,
    ops.SearchedCase,
)


def database_of(rows: ibis.Table) -> Any:
    """Ibis' backend of an Ibis table; None for a table without a database."""
    backends, _ = rows._find_backends()
    return backends[0] if backends else None


def fetched(rows: ibis.Table) -> pl.DataFrame:
    """The rows of a query, as Ibis reads them."""
    return pl.DataFrame(rows.to_pyarrow())


def loose(table: ibis.Table, texts: Sequence[str]) -> dict[str, str]:
    """The text columns whose collation takes some different texts for equal, each with that reason.
    No row is read.

    In such a column "bonn" and "BONN" would form one group, and the spelling of one unit could be
    the released key.
    """
    if not texts or database_of(table) is None:  # a table without a database cannot be read
        return {}
    columns = {f"c{i}": table[name].cast("string") for i, name in enumerate(texts)}
    none = table.filter(ibis.literal(False)).select(**columns)
    every = none.union(ibis.memtable(dict.fromkeys(columns, _APART)))
    pairs = every.cross_join(every.view().rename({f"{name}d": name for name in columns}))
    # some databases group texts by another rule than `=`
    distinct = {name: pairs[name].nunique() for name in columns}
    equal = {
        f"{name}d": (pairs[name] == pairs[f"{name}d"]).ifelse(1, 0).cast("int64").sum()
        for name in columns
    }
    try:
        (counts,) = fetched(pairs.aggregate(**distinct, **equal)).rows(named=True)
    except Exception as error:  # a database that cannot run this check is taken to fail it
        reason = (
            "dpframe's check that its collation tells all texts apart failed with "
            f"{type(error).__name__}"
        )
        return dict.fromkeys(texts, f"{reason}: make it a number before dp.protect(...)")
    apart = len(_APART)
    return {
        text: _LOOSE
        for name, text in zip(columns, texts, strict=True)
        if counts[name] < apart or counts[f"{name}d"] > apart
    }


def check_apart(table: ibis.Table) -> None:
    """Refuse a database that takes different constants for equal. Errors: UnsupportedOperation."""
    backend = database_of(table)
    if backend is not None and not _apart(backend):
        raise UnsupportedOperation(
            f"{backend.name}: the collation of the database takes some different texts for equal, "
            "and texts that a question computes are compared by it. Give the database, or the "
            "session, one that compares bytes."
        )


def _apart(backend: BaseBackend) -> bool:
    """Whether a database tells different text constants of a query apart. No row is read."""
    pairs = [(ibis.literal(x) == ibis.literal(y)).ifelse(1, 0) for x in _APART for y in _APART]
    try:
        return int(backend.execute(sum(pairs[1:], pairs[0]))) == len(_APART)
    except Exception:  # a database that cannot run this check is taken to fail it
        return False


def check_operations(table: ibis.Table) -> None:
    """Refuse a database for which Ibis has no SQL for an operation that questions need.
    Errors: UnsupportedOperation.

    What one question lacks would otherwise be refused by that question alone, without the name of
    the operation.
    """
    backend = database_of(table)
    lacking = [
        op.__name__ for op in _NEEDED if backend is not None and not backend.has_operation(op)
    ]
    if lacking:
        raise UnsupportedOperation(
            f"dp.protect: Ibis cannot write {', '.join(lacking)} in the SQL of {backend.name}. "
            "Protect a Polars table: dp.protect(table.to_polars(), ...)."
        )


def check_numbers(table: ibis.Table) -> None:
    """Refuse a database that fails where a number overflows.
    The check computes with numbers of ours.

    Such a database could fail on a cell, after the charge, and the failure would tell that this
    cell exists.
    Errors: UnsupportedOperation.
    """
    backend = database_of(table)
    if backend is None or id(backend) in _RELIABLE:  # a table without a database cannot be read
        return
    numbers = ibis.memtable({"x": list(_EXTREME)})
    pairs = numbers.cross_join(numbers.view().rename(y="x"))
    x, y = pairs.x, pairs.y
    results = pairs.select(
        a=x + y, b=x - y, c=x * y, d=x / y, e=ibis.cases((x.abs() < 1, x)).cast("float32")
    )
    for rows, failure in (
        (pairs, "takes in no table of numbers"),
        (results, "fails where a number overflows"),
    ):
        if not _runs(backend, rows):
            raise UnsupportedOperation(
                f"dp.protect: {backend.name} {failure}, so one cell could make a query fail. "
                "Protect a Polars table: dp.protect(table.to_polars(), ...)."
            )
    _RELIABLE[id(backend)] = backend


def _runs(backend: BaseBackend, rows: ibis.Table) -> bool:
    """Whether a database runs a query without an error."""
    try:
        backend.to_pyarrow(rows)
    except Exception:
        return False
    return True


def check_tries(rows: ibis.Table) -> None:
    """Refuse a database for which Ibis writes no cast that gives null
    for a text that is not a number.

    Another cast could fail on a cell, after the charge, and the failure would tell that this cell
    exists.
    Errors: UnsupportedOperation.
    """
    backend = database_of(rows)
    if backend is not None and not _tries(backend.name):
        raise UnsupportedOperation(
            f"cast: Ibis has no cast of text for {backend.name} that gives null where a text is no "
            "number, date or time, so one cell could make the query fail. Convert the column in "
            "the database, before dp.protect(...)."
        )


@cache
def _tries(dialect: str) -> bool:
    """Whether Ibis writes casts that cannot fail for a database; False for an unknown one."""
    text = ibis.table({"s": "string"}, name="t").s
    try:
        statements = [
            str(ibis.to_sql(text.try_cast(to), dialect=dialect)) for to in ("int64", "date")
        ]
    except Exception:  # Ibis has no such dialect, or no such cast there
        return False
    return all(any(word in sql for word in _TRYING) for sql in statements)
