"""Differences of PostgreSQL from other databases of Ibis:
its connection, its session and its operations.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from threading import Lock, RLock
from typing import Any
from weakref import WeakKeyDictionary

import ibis
import ibis.expr.operations as ops
import narwhals as nw
import polars as pl
import psycopg
from ibis.backends import BaseBackend
from narwhals.dtypes import DType

from dpframe.engine.backends.base import (
    Cased,
    CellFunction,
    Parsed,
    Part,
    Piece,
    Replaced,
    Stripped,
)
from dpframe.engine.backends.ibis_checks import database_of
from dpframe.engine.backends.ibis_compiler import CompiledDialect, table_of, written
from dpframe.engine.backends.ibis_dialect import forgotten, has_many_digits, microseconds_of
from dpframe.engine.backends.postgres import operations as sql
from dpframe.engine.backends.postgres.compiler import PostgresTotalCompiler, sendable
from dpframe.engine.backends.sql import REPLACED, piece_of, stripped_of
from dpframe.engine.letters import NEAR, letters
from dpframe.errors import UnsupportedOperation
from dpframe.plan import Kind, Pattern, Search, Task, integer_range, kind, zone_of


@contextmanager
def alone(backend: BaseBackend) -> Iterator[None]:
    """Use the connection of Ibis' backend for this thread alone.

    psycopg runs one statement of a connection at a time, but a transaction is several statements:
    those of two threads would be in one transaction, which fails.
    """
    with _lock:
        lock = _locks.setdefault(backend.con, RLock())
    with lock:
        yield


def check_path(backend: BaseBackend) -> None:
    """Refuse a session in which other functions can replace PostgreSQL's own.
    Errors: UnsupportedOperation.
    """
    with alone(backend), backend.con.cursor() as cursor, backend.con.transaction():
        (schemas,) = cursor.execute("SELECT pg_catalog.current_schemas(true)").fetchone()
    # never searched for functions
    first = next((name for name in schemas if not name.startswith("pg_temp")), "")
    if first != "pg_catalog":
        raise UnsupportedOperation(
            f"dp.protect: this session looks for functions in {first!r} before pg_catalog, so "
            "another function could replace one that dpframe uses. SET search_path to schemas of "
            "yours, without pg_catalog."
        )


def may_store(backend: BaseBackend) -> bool:
    """Whether this session may make temporary tables:
    a user may lack the right, and a replica only reads.
    """
    with alone(backend), backend.con.cursor() as cursor, backend.con.transaction():
        (answer,) = cursor.execute(_MAY_STORE).fetchone()
    return bool(answer)


_MAY_STORE = """SELECT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMPORARY')
AND pg_catalog.current_setting('transaction_read_only') OPERATOR(pg_catalog.=) 'off'"""
_lock = Lock()
# from a connection to its lock
_locks: WeakKeyDictionary[psycopg.Connection, RLock] = WeakKeyDictionary()


def _begin_anew() -> None:
    """After a fork: another thread may have held the lock.
    The connections are those of another process.
    """
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


# How texts are read and written, and that no time of the user's ends a query after the charge.
_SETTINGS = (
    "client_encoding TO 'UTF8'",
    "standard_conforming_strings TO on",
    "statement_timeout TO 0",
)


def fetch_rows(connection: psycopg.Connection, query: str) -> list[Any]:
    """The rows of a query, in the server's binary format:
    in its text format, floats could lose digits.
    """
    with connection.transaction(), connection.cursor(binary=True) as cursor:
        for setting in _SETTINGS:
            cursor.execute(f"SET LOCAL {setting}")
        rows: list[Any] = cursor.execute(query).fetchall()
    return rows


def drop(backend: BaseBackend, name: str) -> None:
    """Remove a temporary table from the session."""
    with backend.con.cursor() as cursor, backend.con.transaction():
        cursor.execute(f'DROP TABLE IF EXISTS pg_temp."{name}"')


class _PostgresDialect(CompiledDialect):
    integers = "PostgreSQL's integers"

    def alone(self, backend: BaseBackend) -> AbstractContextManager[None]:
        return alone(backend)

    def types(self, table: ibis.Table) -> dict[str, DType]:
        """UUIDs are texts.
        A decimal with more than 38 digits, of which PostgreSQL allows thousands, is a decimal.
        """
        schema = table.schema().items()
        texts = [name for name, dtype in schema if dtype.is_uuid()]
        decimals = [name for name, dtype in schema if has_many_digits(dtype)]
        return (
            super().types(table)
            | dict.fromkeys(texts, nw.String())
            | dict.fromkeys(decimals, nw.Decimal(38, 9))
        )

    def types_of(
        self, backend: Any, source: ops.DatabaseTable | ops.SQLQueryResult
    ) -> dict[str, str]:
        """In a transaction of its own, which ends.
        Of a query no row is taken; Ibis would make a view of it.
        """
        with alone(backend), backend.con.transaction(), backend.con.cursor() as cursor:
            if isinstance(source, ops.DatabaseTable):
                return super().types_of(backend, source)
            columns = cursor.execute(f"SELECT * FROM ({source.query}) AS q LIMIT 0").description
            return {column.name: column.type_display for column in columns}

    def against(self, table: ibis.Table, types: Mapping[str, DType]) -> dict[str, str]:
        """Columns of unknown types can be read as text, and unsigned integers as
        decimals, after a cast by the user.

        Errors: UnsupportedOperation for a database that is not in UTF-8, or a session with
                functions of others
        """
        encoding = database_of(table).con.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise UnsupportedOperation(
                f"dp.protect: this PostgreSQL database holds texts in {encoding}, and a text that "
                "is not Unicode could make a query fail. Use a database in UTF8: CREATE DATABASE "
                "study ENCODING 'UTF8' TEMPLATE template0."
            )
        check_path(database_of(table))
        odd = [name for name, dtype in types.items() if kind(dtype) == Kind.OTHER]
        large = [name for name, dtype in types.items() if dtype == nw.UInt64]
        cast = "cast it before, table.mutate(x=table[{!r}].cast('{}'))"
        return {
            **{name: f"dpframe does not read it: {cast.format(name, 'string')}" for name in odd},
            **{name: f"this type does not exist: {cast.format(name, 'decimal')}" for name in large},
        }

    def held(self, value: ibis.Value, dtype: DType) -> ibis.Value:
        family = kind(dtype)
        if family == Kind.STRING:
            return written(value, sql.TEXT, "string")
        # 1.0 and 1.00 are equal, so they must have one text if the column identifies a unit
        if family == Kind.DECIMAL:
            return written(value, "NULLIF(TRIM_SCALE(CAST(a AS NUMERIC)), 'NaN')", "decimal")
        if family == Kind.DATE:
            return written(value, sql.DAYS, "int64")
        if family == Kind.DATETIME and zone_of(dtype) is None:
            return written(value, sql.MICROSECONDS, "int64")
        return _as_said(value) if family in (Kind.INTEGER, Kind.FLOAT) else value

    def planned(self, rows: ibis.Table) -> pl.DataFrame:
        """The table of a query with LIMIT 0, in a session that still
        finds PostgreSQL's functions first.
        """
        check_path(database_of(rows))
        return super().planned(rows)

    def digest(self, text: ibis.Value) -> ibis.Value:
        """A digest of 256 bits: Ibis writes none, and a server may refuse MD5."""
        return written(text, "ENCODE(SHA256(CONVERT_TO(a, 'UTF8')), 'hex')", "string")

    def brings_keys(self, rows: ibis.Table) -> bool:
        """Ibis stores a public table as a temporary one, which neither
        every user nor a replica may make.
        """
        return may_store(database_of(rows))

    def brought(self, beside: ibis.Table, table: pl.DataFrame) -> ibis.Table:
        texts = [name for name, dtype in table.schema.items() if dtype == pl.String]
        if any(table.get_column(name).str.contains("\0", literal=True).any() for name in texts):
            raise UnsupportedOperation(
                "PostgreSQL holds no text with a zero byte, and one is in a public table or in a "
                "list of keys: leave it out, as with "
                "public.filter(~pl.col('s').str.contains('\\0', literal=True))."
            )
        rows = super().brought(beside, table)
        return rows.mutate(
            **{name: written(rows[name], "CAST(a AS TEXT)", "string") for name in texts}
        )

    def apply(self, value: ibis.Value, function: CellFunction) -> ibis.Value:
        match function:
            case Parsed(dtype):
                return _parsed(value, dtype)
            case Cased(capital):
                text = _cased(capital)
            case Replaced(old, new, every):
                have, want = sql.text(sendable(old)), sql.text(sendable(new))
                first = REPLACED.format(text="a", old=have, new=want, size=len(old), find="STRPOS")
                text = f"REPLACE(a, {have}, {want})" if every else first
            case Piece(by, index):
                text = piece_of("a", sql.text(sendable(by)), len(by), index, "/")
            case Stripped(characters, ends):
                text = stripped_of("a", sql.text(sendable(characters)), ends)
            case Part(dtype, part):
                value, text = microseconds_of(value, dtype), _part(dtype, part)
            case Search():
                text = _searched(function)
        return written(value, text, function.result)

    def against_search(self, task: Task, pattern: Pattern) -> str:
        """PostgreSQL finds the longest match at a place, and other
        engines the one that is tried first.
        """
        if task is Task.CONTAINS or pattern.certain:
            return ""
        return (
            "PostgreSQL finds another match where a character could belong to two parts of it, or "
            "to none, as in a|ab, [a-z]+x or a+?"
        )

    def read(self, rows: ibis.Table) -> pl.DataFrame:
        """The rows of a query, in the types that Ibis states.
        No table of ours stays in the session.
        """
        backend = database_of(rows)
        assert backend is not None
        query = PostgresTotalCompiler().written(rows)
        with alone(backend):
            try:
                backend._run_pre_execute_hooks(rows)
                values = fetch_rows(backend.con, query)
            finally:
                forgotten(rows, lambda name: drop(backend, name))
        return table_of(rows, values)


def _parsed(text: ibis.Value, dtype: DType) -> ibis.Value:
    match kind(dtype):
        case Kind.DATE:
            return written(text, sql.DATE, "int64")
        case Kind.DATETIME:
            return written(text, sql.TIME, "int64")
        case Kind.FLOAT:
            return written(text, sql.REAL, "decimal").cast("float64")
    low, high = integer_range(dtype)
    wide = written(text, sql.INTEGER, "decimal")
    return written(wide, f"CASE WHEN a BETWEEN {low} AND {high} THEN a END", str(dtype).lower())


def _cased(capital: bool) -> str:
    have, want = letters(capital=capital)
    near_have, near_want = letters(capital=capital, most=0x17F)
    return sql.CASED.format(
        function="UPPER" if capital else "LOWER",
        near=NEAR,
        near_have=near_have,
        near_want=near_want,
        have=have,
        want=want,
    )


def _searched(search: Search) -> str:
    pattern = search.pattern.written(sql.AT_WORD)
    if search.task is Task.EXTRACT and not search.group:
        pattern = f"({pattern})"
    found, new = sql.text(sendable(pattern)), sql.text(sendable(search.value.replace("\\", "\\\\")))
    number, many = max(search.group, 1), f"(SELECT COUNT(*) FROM REGEXP_MATCHES(a, {found}, 'g'))"
    return {
        Task.CONTAINS: f"a ~ {found}",
        Task.EXTRACT: f"(REGEXP_MATCH(a, {found}))[{number}]",
        Task.COUNT: f"CASE WHEN a IS NOT NULL THEN {many} END",
        Task.REPLACE: f"REGEXP_REPLACE(a, {found}, {new})",
        Task.REPLACE_ALL: f"REGEXP_REPLACE(a, {found}, {new}, 'g')",
    }[search.task]


def _part(dtype: DType, part: str) -> str:
    """SQL of a part of a date in days, or of a time in microseconds.

    Whole numbers are used because PostgreSQL multiplies an interval by a float: that would round
    the last microsecond of a day up to the next day.
    """
    if kind(dtype) == Kind.DATE:
        day = "(DATE '1970-01-01' + CAST(a AS INTEGER))"
        text = f"TO_CHAR(CAST({day} AS TIMESTAMP), 'YYYY-MM-DD')"
        return sql.ON_DAY.format(text if part == "text" else sql.OF_DAY[part].format(day))
    if part in sql.OF_CLOCK:
        return sql.AT_TIME.format(sql.OF_CLOCK[part].replace("a", f"(a + {sql.YEARS})", 1))
    day = f"(DATE '1970-01-01' + CAST((a + {sql.YEARS}) / 86400000000 - 730000 AS INTEGER))"
    return sql.AT_TIME.format(sql.OF_DAY[part].format(day))


def _as_said(value: ibis.Value) -> ibis.Value:
    """A column of numbers, cast to the type that Ibis states for it;
    null where a number does not fit.

    Ibis states the type of a table's own column correctly, except for an oid. A column that the
    user's own steps compute may have another type than Ibis states, and a wider one.
    """
    dtype = value.type()
    if not isinstance(value.op().rel, ops.SQLQueryResult):
        return written(value, "a", str(dtype.copy(nullable=True))) if dtype.is_integer() else value
    if dtype.is_integer():
        low, high = dtype.bounds
        text = sql.WHOLE_OF.replace("{low}", str(low)).replace("{high}", str(high))
        return written(value, text, str(dtype.copy(nullable=True)))
    real = written(value, sql.FLOAT_OF, "float64")
    return real if dtype.is_float64() else real.cast(dtype)


DIALECT = _PostgresDialect()
