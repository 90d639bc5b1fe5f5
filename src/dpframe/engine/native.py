"""Tables in: what users bring, and the schema it has.

pandas and PyArrow tables enter Polars through Arrow, only the columns that a query reads. The schema is taken from the
types alone, never from values, so that it is the same for neighbouring tables.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from dpframe.engine.backends import adopted, fetched
from dpframe.engine.tables import Data
from dpframe.errors import InvalidArgument, UnsupportedOperation, kind_of
from dpframe.plan import Kind, check_names, kind

__all__ = ["adopt", "content", "public"]


def adopt(frame: Any) -> Data:
    """Take in a table of any engine.

    Output: Data; nothing is read or converted yet
    Errors: UnsupportedOperation for anything else
    """
    data = adopted(frame)
    if data is None:
        raise UnsupportedOperation(
            "dpframe protects pandas and Modin DataFrames, Polars DataFrames and LazyFrames, PyArrow Tables, DuckDB "
            f"relations, Ibis tables, Spark and Dask DataFrames, not {kind_of(frame)}{_package(frame)}."
        )
    return data


def _package(frame: Any) -> str:
    """Where a type is from, for those whose names are those of others; "" for Python's own."""
    package = type(frame).__module__.partition(".")[0]
    return "" if package == "builtins" else f" of {package}: convert it to one of these first"


def public(frame: Any) -> Data:
    """A public table, or a dict of columns, as it is now: read, copied, and without the columns that nothing can read.

    Errors: UnsupportedOperation for anything that is no table; InvalidArgument for a dict that is no table, or for a
            name that is a pattern
    """
    if isinstance(frame, Mapping):
        try:
            frame = pl.DataFrame(dict(frame))
        except Exception:
            frame = None
        if frame is None:
            raise InvalidArgument("A public table given as a dict has columns of one length, each of one type.")
    data = adopt(frame)
    has_order = data.engine == "polars"
    if not has_order:
        data = adopt(fetched(frame))
    readable = {name: domain for name, domain in data.schema if kind(domain.dtype) != Kind.OTHER}
    check_names(readable)
    rows: pl.DataFrame = data.scan(list(readable)).collect()
    rows = rows if has_order else rows.sort(rows.columns)
    rows = rows.select(pl.all().gather(pl.int_range(rows.height))) if rows.height else rows  # no memory is shared

    def scan(names: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
        return rows.lazy().select(names)

    return Data(data.kind, tuple(readable.items()), scan)


def content(data: Data) -> str:
    """A short text that two public tables share only when they hold the same rows in the same order."""
    buffer = io.BytesIO()
    data.scan([name for name, _ in data.schema]).collect().write_ipc(buffer, compat_level=pl.CompatLevel.oldest())
    return hashlib.sha256(buffer.getvalue()).hexdigest()[:16]
