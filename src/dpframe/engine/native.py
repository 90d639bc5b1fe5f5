"""Tables in: what users bring, and the schema it has.

pandas and PyArrow tables enter Polars through Arrow, only the columns that a query reads. The schema is taken from the
types alone, never from values, so that it is the same for neighbouring tables.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import polars as pl

from dpframe.engine.tables import Data, facts_of
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan.columns import Facts
from dpframe.plan.types import kind

__all__ = ["adopt", "content", "public"]


def adopt(frame: Any) -> Data:
    """Take in a pandas DataFrame, a Polars DataFrame or LazyFrame, or a PyArrow Table.

    Output: Data; nothing is read or converted yet
    Errors: UnsupportedOperation for anything else
    """
    if isinstance(frame, pl.DataFrame):
        return _polars(frame.lazy())
    if isinstance(frame, pl.LazyFrame):
        return _polars(frame, lazy=True)
    family = type(frame).__module__.partition(".")[0]
    if family in ("pandas", "pyarrow"):  # PyArrow is imported for those who need it
        from dpframe.engine import arrow

        found = arrow.from_pandas(frame) if family == "pandas" else arrow.from_pyarrow(frame)
        if found is not None:
            return found
    raise UnsupportedOperation(
        f"dpframe protects pandas DataFrames, Polars DataFrames and LazyFrames and PyArrow Tables, "
        f"not a {type(frame).__name__}."
    )


def public(frame: Any) -> Data:
    """A public table, or a dict of columns, as it is now: read, copied, and without the columns that nothing can read.

    Errors: UnsupportedOperation for anything that is no table; InvalidArgument for a dict that is no table
    """
    if isinstance(frame, Mapping):
        try:
            frame = pl.DataFrame(dict(frame))
        except Exception:
            frame = None
        if frame is None:
            raise InvalidArgument("A public table given as a dict has columns of one length, each of one type.")
    data = adopt(frame)
    readable = {name: facts for name, facts in data.schema if kind(facts.dtype) != "other"}
    rows = data.scan(list(readable)).collect()
    rows = rows.select(pl.all().gather(pl.int_range(rows.height))) if rows.height else rows  # no memory is shared

    def scan(names: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
        return rows.lazy().select(names)

    return Data(data.kind, tuple(readable.items()), scan)


def content(data: Data) -> str:
    """A short text that two public tables share only when they hold the same rows in the same order."""
    buffer = io.BytesIO()
    data.scan([name for name, _ in data.schema]).collect().write_ipc(buffer, compat_level=pl.CompatLevel.oldest())
    return hashlib.sha256(buffer.getvalue()).hexdigest()[:16]


# Polars


def _polars(frame: pl.LazyFrame, *, lazy: bool = False) -> Data:
    schema = frame.collect_schema()
    typed = nw.from_native(pl.DataFrame(schema=_readable(schema))).schema
    facts = tuple((name, facts_of(typed[name]) if name in typed else Facts(nw.Unknown())) for name in schema)

    def scan(names: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
        if empty:
            return pl.LazyFrame(schema={name: schema[name] for name in names})
        return frame.select(names)

    return Data("polars", facts, scan, lazy)


def _readable(schema: Any) -> dict[str, Any]:
    """The columns whose type narwhals has a name for."""
    return {name: dtype for name, dtype in schema.items() if not isinstance(dtype, (pl.Object, pl.Unknown, pl.Null))}
