"""Polars tables in a live PostgreSQL, as Ibis tables."""

from __future__ import annotations

import itertools
from contextlib import contextmanager

import polars as pl
import pytest


@contextmanager
def connected(url, database="postgres"):
    """Ibis on a server of ours."""
    ibis = pytest.importorskip("ibis")
    pytest.importorskip("ibis.backends.postgres")
    backend = ibis.postgres.connect(host=url.rpartition("=")[2], user="dpframe", database=database)
    yield backend
    backend.disconnect()


def stores(backend):
    """What stores a Polars table there, exactly, and gives it as an Ibis table."""
    numbers = itertools.count()

    def stored(frame: pl.DataFrame):
        table = f"t{next(numbers)}"
        columns = ", ".join(
            f"{_quoted(name)} {_in_postgres(dtype)}" for name, dtype in frame.schema.items()
        )
        with backend.con.cursor() as cursor, backend.con.transaction():
            cursor.execute(f"CREATE TEMPORARY TABLE {table} ({columns})")
            with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                for row in frame.rows():
                    copy.write_row(row)
        return backend.table(table)

    return stored


def _quoted(name):
    return '"' + name.replace('"', '""') + '"'


_POSTGRES = {
    pl.Int8: "smallint",
    pl.Int16: "smallint",
    pl.Int32: "integer",
    pl.Int64: "bigint",
    pl.UInt8: "smallint",
    pl.UInt16: "integer",
    pl.UInt32: "bigint",
    pl.UInt64: "numeric(20, 0)",
    pl.Float32: "real",
    pl.Float64: "double precision",
    pl.Boolean: "boolean",
    pl.Date: "date",
    pl.Duration: "interval",
}


def _in_postgres(dtype):
    """The type of a column there: wide enough where it has none like it."""
    if dtype == pl.Decimal:
        return f"numeric({dtype.precision or 38}, {dtype.scale})"
    if dtype == pl.Datetime:
        return "timestamp" if dtype.time_zone is None else "timestamp with time zone"
    return _POSTGRES.get(dtype.base_type(), "text")
