"""Ibis tables.
A query is one expression, which Ibis writes in the SQL of the table's database: see `Dialect`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import ibis
import ibis.expr.operations as ops
import narwhals as nw
import polars as pl
from ibis.common.exceptions import OperationNotDefinedError
from narwhals.dtypes import DType

from dpframe.engine.backends.base import CellFunction, Frame, Reached
from dpframe.engine.backends.ibis_checks import database_of, fetched
from dpframe.engine.backends.ibis_dialect import Dialect, dialect_of
from dpframe.engine.backends.sql import (
    MOST_CONSTANTS,
    SqlBackend,
    our_names,
    plain_table,
    schema_of,
)
from dpframe.engine.tables import Data
from dpframe.errors import UnsupportedOperation
from dpframe.plan import ColumnDomain, Kind, Pattern, Task, kind, zone_of


class _Ibis(SqlBackend):
    name = "ibis"
    plans_tables = True

    # Tables

    def adopt(self, table: object) -> Data | None:
        if not isinstance(table, ibis.Table):
            return None
        if getattr(database_of(table), "name", "") == "duckdb":
            return _held_open(
                table,
                import_module("dpframe.engine.backends.duckdb").BACKEND.adopt(_relation(table)),
            )
        dialect = dialect_of(table)
        types = dialect.types(table)
        names = our_names(types)
        column_types = {name: types[name] for name in names}
        schema, source = (
            schema_of(self, column_types, dialect.against(table, column_types)),
            dialect.opened(table),
        )
        unread = {name for name, domain in schema if kind(domain.dtype) == Kind.OTHER}

        def scan(selection: Sequence[str], *, empty: bool = False) -> ibis.Value:
            columns = {
                names[name]: _is_there(source[name])
                if name in unread
                else dialect.held(source[name], types[name])
                for name in selection
            }
            return source.select(**(columns or {"s": ibis.literal(1)}))

        return Data(
            "pandas", schema, scan, True, self.name, names, stated=lambda: dialect.stated(table)
        )

    def fetch(self, table: ibis.Table) -> pl.DataFrame:
        return fetched(table)

    def together(self, first: ibis.Table, second: ibis.Table) -> bool:
        """Whether both are tables of one connection.

        To Ibis, two connections that were made alike are equal, such as two databases in memory. It
        would read the tables of both names from one of them.
        """
        tables = [
            table
            for rows in (first, second)
            for table in rows.op().find((ops.DatabaseTable, ops.SQLQueryResult))
        ]
        return len({id(table.source) for table in tables}) <= 1

    def bring(self, beside: Frame, table: pl.DataFrame) -> Frame:
        rows = beside.to_native()
        return nw.from_native(dialect_of(rows).brought(rows, plain_table(self, beside, table)))

    def brings_keys(self, frame: Frame) -> bool:
        rows = frame.to_native()
        return dialect_of(rows).brings_keys(rows)

    def reached(self, table: Callable[[], Any]) -> Reached:
        """The database of a table.
        Ibis has its connection, which is an open file where the database is a server.
        """
        for backend in table()._find_backends()[0]:
            opened = getattr(backend.con, "fileno", None)
            return Reached(backend.name, None if opened is None else opened())
        return super().reached(table)

    def try_threads(self, data: Data) -> None:
        rows = data.scan((), empty=True)
        dialect_of(rows).try_threads(rows)

    def collect(self, frames: Sequence[Frame], *, streaming: bool = False) -> list[pl.DataFrame]:
        native = [frame.to_native() for frame in frames]
        return [dialect_of(rows).read(rows) for rows in native]

    def planned(self, frames: Sequence[Frame]) -> list[pl.DataFrame]:
        native = [frame.to_native() for frame in frames]
        lacking = ""
        try:
            return [dialect_of(rows).planned(rows) for rows in native]
        except OperationNotDefinedError as error:  # about the query alone: no row is read
            lacking = str(error)
        raise UnsupportedOperation(
            f"Ibis cannot write this question in the SQL of {database_of(native[0]).name}: "
            f"{lacking}. Protect a Polars table: dp.protect(table.to_polars(), ...)."
        )

    # Texts

    def bytewise(self, frame: Frame) -> bool:
        rows = frame.to_native()
        return dialect_of(rows).bytewise(rows)

    def membership(self, frame: Frame, column: str, values: pl.Series, into: str) -> Frame | None:
        """Write many constants at once, where the database can:
        Ibis makes an object of each value of a list.
        """
        rows = frame.to_native()
        test = (
            dialect_of(rows).one_of(rows[column], values) if len(values) > MOST_CONSTANTS else None
        )
        return None if test is None else nw.from_native(rows.mutate(**{into: test}))

    def is_one_of(self, frame: Frame, value: nw.Expr, values: Iterable[object]) -> nw.Expr:
        """Compare with constants.
        Those from 2^63 on get the type uint64, since Ibis takes plain integers for int64.
        """
        return value.is_in(
            [ibis.literal(x, "uint64") if _is_large(x) else x for x in self.texts(frame, values)]
        )

    # Columns

    def decimal(self, frame: Frame, value: nw.Expr) -> nw.Expr:
        return dialect_of(frame.to_native()).decimal(value)

    def keyed_hash(self, frame: Frame, columns: Sequence[str], salt: int, into: str) -> Frame:
        return _added(frame, into, lambda here, rows: here.keyed_hash(rows, columns, str(salt)))

    def stable_hash(self, frame: Frame, columns: list[str], salt: str, into: str) -> Frame:
        return _added(frame, into, lambda here, rows: here.stable_hash(rows, columns, salt))

    def apply(self, frame: Frame, column: str, function: CellFunction, into: str) -> Frame:
        return _added(frame, into, lambda here, rows: here.apply(rows[column], function))

    def against_search(self, rows: Any, task: Task, pattern: Pattern) -> str:
        return dialect_of(rows).against_search(task, pattern)

    def ending(self, frame: Frame, column: str, offset: int, length: int, into: str) -> Frame:
        return _added(frame, into, lambda here, rows: here.ending(rows[column], offset, length))

    def settled(self, frame: Frame) -> Frame:
        rows = frame.to_native()
        return nw.from_native(dialect_of(rows).settled(rows))

    def real(self, value: float) -> nw.Expr:
        """A float constant, as a cast of a text: Ibis writes a plain
        0.5, which SQL reads as a decimal.
        """
        return nw.lit(repr(value)).cast(nw.Float64)

    def moment(self, value: nw.Expr, domain: ColumnDomain) -> nw.Expr:
        """Unsigned integers as decimals, which compare exactly:
        Ibis cannot compare unsigned with signed integers.
        """
        is_unsigned = domain.dtype.is_unsigned_integer()
        return value.cast(nw.Decimal(20, 0)) if is_unsigned else super().moment(value, domain)

    def reason_against(self, dtype: DType) -> str:
        if zone_of(dtype) is not None:
            return (
                "databases do not agree on zones: store times without one, on the clock that you "
                "ask about, before dp.protect(...)"
            )
        return super().reason_against(dtype)


def _held_open(table: ibis.Table, data: Data) -> Data:
    """The data of a relation, with its connection:
    a relation of DuckDB 1 does not keep its own open.
    """
    backend = database_of(table)

    def scan(selection: Sequence[str], *, empty: bool = False) -> Any:
        assert backend is not None
        return data.scan(selection, empty=empty)

    return replace(data, scan=scan)


def _relation(table: ibis.Table) -> Any:
    """A table of Ibis on DuckDB as DuckDB's own relation, on the same connection.

    DuckDB's sums of whole numbers have 128 bits. Ibis states another type for them, in which they
    are read; null where a number does not fit.
    """
    backend, schema = database_of(table), table.schema()
    backend._run_pre_execute_hooks(table)
    rows = backend.con.sql(str(backend.compile(table)))
    wide = [
        name
        for name, dtype in zip(rows.columns, rows.types, strict=True)
        if str(dtype) == "HUGEINT"
    ]
    said = {name: "BIGINT" if schema[name].is_integer() else "DECIMAL(38, 0)" for name in wide}
    quoted = {name: '"' + name.replace('"', '""') + '"' for name in wide}
    casts = ", ".join(
        f"TRY_CAST({quoted[name]} AS {said[name]}) AS {quoted[name]}" for name in wide
    )
    return rows.project(f"* REPLACE ({casts})") if wide else rows


def _is_large(value: object) -> bool:
    """Whether a value is a whole number that needs 64 bits without a sign."""
    return isinstance(value, int) and value >= 2**63


def _is_there(value: ibis.Value) -> ibis.Value:
    """A column of which a question can only use whether it is null: the number 1, or null.

    The column's own type stays in the database, since narwhals may have no such type.
    """
    return ibis.cases((value.notnull(), 1))


def _added(frame: Frame, into: str, compute: Callable[[Dialect, ibis.Table], ibis.Value]) -> Frame:
    """The frame with one more column, as the dialect of its database computes it."""
    rows = frame.to_native()
    return nw.from_native(rows.mutate(**{into: compute(dialect_of(rows), rows)}))


BACKEND = _Ibis()
