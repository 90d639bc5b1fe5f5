"""Polars tables in SQLite, as Ibis tables."""

from __future__ import annotations

import itertools
from decimal import Decimal

import polars as pl

_TYPES = {
    pl.Int8: "TINYINT",
    pl.Int16: "SMALLINT",
    pl.Int32: "INTEGER",
    pl.Int64: "BIGINT",
    pl.Float32: "REAL",
    pl.Float64: "DOUBLE",
    pl.Boolean: "BOOLEAN",
    pl.Date: "DATE",
    pl.Decimal: "DECIMAL(10, 2)",
    pl.String: "TEXT",
}
_NUMBER = itertools.count()


def stored(backend, frame: pl.DataFrame):
    """Store a Polars table in SQLite, and give it as an Ibis table.
    Dates and times are texts, as users have them.
    """
    table = f"t{next(_NUMBER)}"
    columns = ", ".join(
        f"{_quoted(name)} {_declared(dtype)}" for name, dtype in frame.schema.items()
    )
    cells = frame.with_columns(
        pl.col(pl.Date).dt.strftime("%Y-%m-%d"),
        pl.col(pl.Datetime).dt.strftime("%Y-%m-%d %H:%M:%S.%f"),
        pl.col(pl.Duration).dt.total_microseconds(),
    )
    backend.con.execute(f"CREATE TABLE {table} ({columns})")
    marks = ", ".join("?" * cells.width)
    rows = [
        [float(cell) if isinstance(cell, Decimal) else cell for cell in row] for row in cells.rows()
    ]
    backend.con.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    return backend.table(table)


def _declared(dtype):
    if dtype == pl.Datetime:
        return "TIMESTAMP" if dtype.time_zone is None else "TIMESTAMPTZ"
    return _TYPES.get(dtype.base_type(), "TEXT")


def _quoted(name):
    return '"' + name.replace('"', '""') + '"'
