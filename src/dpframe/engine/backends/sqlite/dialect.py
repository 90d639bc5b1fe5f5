"""Differences of SQLite from other databases of Ibis:
its connection, its settings and its operations.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import ibis
import ibis.expr.operations as ops
import narwhals as nw
import polars as pl
from narwhals.dtypes import DType

from dpframe.engine.automaton import automaton
from dpframe.engine.backends.base import (
    Cased,
    Cell,
    CellFunction,
    Parsed,
    Part,
    Piece,
    Replaced,
    Stripped,
)
from dpframe.engine.backends.ibis_checks import database_of
from dpframe.engine.backends.ibis_compiler import (
    CompiledDialect,
    called,
    table_of,
    whole_literal,
    written,
)
from dpframe.engine.backends.ibis_dialect import microseconds_of
from dpframe.engine.backends.sqlite.compiler import SqliteTotalCompiler
from dpframe.engine.backends.sqlite.functions import FUNCTIONS
from dpframe.engine.backends.sqlite.written import float_literal, text_literal
from dpframe.errors import UnsupportedOperation
from dpframe.plan import Kind, Search, Task, integer_range, kind, zone_of

# SQLite's own functions that dpframe calls.
NATIVE = (
    "abs",
    "coalesce",
    "count",
    "instr",
    "length",
    "max",
    "min",
    "nullif",
    "rank",
    "row_number",
    "substr",
    "sum",
)
_NATIVE = (*NATIVE, "typeof", "iif", "ifnull")
# bytes of a text or of a row that a connection must take; eight texts of the largest length
_LEAST_LENGTH = 2**27


def check(connection: sqlite3.Connection) -> None:
    """Refuse a connection on which a cell could make a query fail, or
    change what an operation means.

    Errors: UnsupportedOperation
    """
    encoding = _values(connection, "PRAGMA encoding")[0]
    if encoding != "UTF-8":
        raise UnsupportedOperation(
            f"dp.protect: this SQLite database holds texts in {encoding}. dpframe compares the "
            "bytes of UTF-8: copy the tables to a new database, where PRAGMA encoding = 'UTF-8' "
            "stands first."
        )
    names = ", ".join(f"'{name}'" for name in _NATIVE)
    query = (
        "SELECT DISTINCT lower(name) FROM pragma_function_list WHERE {} AND lower(name) IN ({}) "
        "ORDER BY 1"
    )
    if len(_values(connection, query.format("builtin", names))) < len(NATIVE):
        raise UnsupportedOperation(
            "dp.protect: this SQLite does not list its functions, so another function could "
            "replace one that dpframe uses. Give SQLite 3.30 or later, built with PRAGMA "
            "function_list."
        )
    replaced = _values(connection, query.format("NOT builtin", names))
    if replaced:
        raise UnsupportedOperation(
            f"dp.protect: on this connection another function replaces SQLite's {replaced[0]}(). "
            "Give dpframe a connection without it, as with ibis.sqlite.connect(path)."
        )
    if (
        sys.version_info >= (3, 11)
        and connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) < _LEAST_LENGTH
    ):
        raise UnsupportedOperation(
            "dp.protect: this connection refuses long texts, so one cell could make a query fail. "
            "Raise its limit: connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10**9)."
        )


def prepare(connection: sqlite3.Connection) -> None:
    """Register the functions of dpframe that a connection does not have yet."""
    have = set(
        _values(connection, "SELECT name FROM pragma_function_list WHERE name LIKE 'dpframe%'")
    )
    for name, (arguments, function) in FUNCTIONS.items():
        if name not in have:
            connection.create_function(name, arguments, function, deterministic=True)


def fetch_rows(connection: sqlite3.Connection, query: str) -> list[tuple[Cell, ...]]:
    """The rows of a query as tuples, whatever rows the user's connection makes."""
    cursor = connection.cursor()
    try:
        cursor.row_factory = None
        rows: list[tuple[Cell, ...]] = cursor.execute(query).fetchall()
    finally:
        cursor.close()
    return rows


def _values(connection: sqlite3.Connection, query: str) -> list[str]:
    return [
        value.decode() if isinstance(value, bytes) else str(value)
        for (value,) in fetch_rows(connection, query)
    ]


_DAY = 86_400_000_000
# what SQLite says of a query with too many parts
_TOO_LONG = ("stack overflow", "too large", "too many", "at most")

_OF_TEXT = "CASE WHEN TYPEOF(a) = 'text' THEN {} END"
_WHOLE = "CASE WHEN TYPEOF(a) = 'integer' THEN CASE WHEN a BETWEEN {} AND {} THEN a END END"
_TRUTH = "CASE WHEN TYPEOF(a) = 'integer' THEN CASE WHEN a IN (0, 1) THEN a END END"
# A float. A whole number that is no float is null, since rounding it could make two identifiers
# one. SQLite stores the float 2^60 in some columns as a whole number. Near 2^63 its cast back from
# a float would be cut to 2^63 - 1.
_FLOAT = """CASE TYPEOF(a) WHEN 'real' THEN a WHEN 'integer' THEN
CASE WHEN a < 9223372036854774785 THEN
CASE WHEN CAST(CAST(a AS REAL) AS INTEGER) = a THEN CAST(a AS REAL) END END END"""


class _SqliteDialect(CompiledDialect):
    integers = "SQLite's integers"

    def types(self, table: ibis.Table) -> dict[str, DType]:
        """SQLite has no decimals and no unsigned numbers:
        their cells are floats and whole numbers of 64 bits.
        """
        held = super().types(table)
        for name, dtype in table.schema().items():
            if dtype.is_decimal():
                held[name] = nw.Float64()
            elif dtype.is_uint64():
                held[name] = nw.Int64()
            elif dtype.is_uuid():
                held[name] = nw.String()
            elif dtype.is_timestamp() and dtype.timezone is None:
                held[name] = nw.Datetime("us")
        return held

    def types_of(
        self, backend: Any, source: ops.DatabaseTable | ops.SQLQueryResult
    ) -> dict[str, str]:
        """The declared types.
        Without one, Ibis would read the first row; and a query's columns have none.
        """
        if isinstance(source, ops.SQLQueryResult):
            return {}
        place = (source.name, source.namespace.database)
        info = f"pragma_table_xinfo({', '.join(text_literal(name) for name in place if name)})"
        found = fetch_rows(
            backend.con,
            f"SELECT name, CASE type WHEN '' THEN 'of no type' ELSE type END FROM {info}",
        )
        if not found:
            raise LookupError(source.name)
        return {str(name): str(dtype) for name, dtype in found}

    def against(self, table: ibis.Table, types: Mapping[str, DType]) -> dict[str, str]:
        """Columns of types that SQLite only has by name.

        Errors: UnsupportedOperation for a connection on which a cell could make a query fail
        """
        backend = database_of(table)
        if backend is not None:
            check(backend.con)
            prepare(backend.con)
        cast = "cast it before, table.mutate(x=table[{!r}].cast('{}'))"
        odd = {
            name: f"dpframe does not read it: {cast.format(name, 'string')}"
            for name, dtype in types.items()
            if kind(dtype) == Kind.OTHER
        }
        zoned = {
            name: "a text has no zone there: store the time in UTC, "
            f"{cast.format(name, 'timestamp')}"
            for name, dtype in types.items()
            if zone_of(dtype) is not None
        }
        return odd | zoned

    def held(self, value: ibis.Value, dtype: DType) -> ibis.Value:
        """A cell of the column's own type, as dpframe holds it; any other cell is null."""
        match kind(dtype):
            case Kind.STRING:
                return written(value, _OF_TEXT.format("dpframe_text(CAST(a AS BLOB))"), "string")
            case Kind.DATE:
                return written(value, _OF_TEXT.format("dpframe_days(CAST(a AS BLOB))"), "int64")
            case Kind.DATETIME:
                return written(
                    value, _OF_TEXT.format("dpframe_micros(CAST(a AS BLOB), 1)"), "int64"
                )
            case Kind.BOOLEAN:
                return written(value, _TRUTH, "boolean")
            case Kind.INTEGER:
                low, high = integer_range(dtype)
                return written(value, _WHOLE.format(whole_literal(low), high), str(dtype).lower())
            case Kind.FLOAT:
                real = written(value, _FLOAT, "float64")
                return real if dtype == nw.Float64 else real.cast("float32")
        return value

    def keyed_hash(self, rows: ibis.Table, columns: Sequence[str], salt: str) -> ibis.Value:
        return called("hash", [rows[column] for column in columns], "int64", salt)

    def stable_hash(self, rows: ibis.Table, columns: Sequence[str], salt: str) -> ibis.Value:
        return called("stable_hash", [rows[column] for column in columns], "string", salt)

    def one_of(self, value: ibis.Value, values: pl.Series) -> ibis.Value:
        """A list of constants in SQL, of which SQLite makes an index.
        A join to it would read it for each row.
        """
        if values.dtype == pl.UInt64 and (values >= 2**63).any():
            return None
        return written(
            value, f"a IN (VALUES {', '.join(f'({_constant(key)})' for key in values)})", "boolean"
        )

    def brought(self, beside: ibis.Table, table: pl.DataFrame) -> ibis.Table:
        """A public table as SQL.
        A query carries its rows, so nothing is stored in the user's database.
        """
        self.check_large(table)
        rows = ", ".join(f"({', '.join(map(_constant, row))})" for row in table.iter_rows())
        columns = ", ".join(f'column{i + 1} AS "{name}"' for i, name in enumerate(table.columns))
        empty = ", ".join(f'NULL AS "{name}"' for name in table.columns)
        query = f"SELECT {columns} FROM (VALUES {rows})" if rows else f"SELECT {empty} WHERE 0"
        schema = {name: _ibis_type(dtype) for name, dtype in table.schema.items()}
        return ops.SQLQueryResult(query, ibis.schema(schema), database_of(beside)).to_expr()

    def apply(self, value: ibis.Value, function: CellFunction) -> ibis.Value:
        match function:
            case Parsed(dtype):
                return _parsed(value, dtype)
            case Cased(capital):
                call: tuple[object, ...] = "cased", capital
            case Replaced(old, new, every):
                call = "replaced", old, new, -1 if every else 1
            case Piece(by, index):
                call = "piece", by, index
            case Stripped(characters, ends):
                call = "stripped", characters, ends
            case Part(dtype, part):
                value = microseconds_of(value, dtype)
                call = "part", 1 if kind(dtype) == Kind.DATE else _DAY, part
            case Search(Task.CONTAINS, pattern):
                # a pattern that needs too many states is refused here, before the charge
                automaton(pattern)
                call = "found", pattern
            case Search(task, pattern, group, new):
                call = "searched", task, pattern, group, new
        return _call(value, function.result, *call)

    def planned(self, rows: ibis.Table) -> pl.DataFrame:
        """The table of a query with LIMIT 0, which reads no row.
        The functions are those that the check was about.
        """
        backend = database_of(rows)
        if backend is not None:
            check(backend.con)
        try:
            return super().planned(rows)
        except sqlite3.OperationalError as error:  # about the query alone: no row is read
            if not any(words in str(error) for words in _TOO_LONG):
                raise
        raise UnsupportedOperation(
            "SQLite's parser has no room for this question. Compute its longest expressions in "
            "the database, before dp.protect(...), as in table.mutate(x=table.x * 2), or ask for "
            "fewer statistics at once."
        )

    def read(self, rows: ibis.Table) -> pl.DataFrame:
        """The rows of a query, in the types that Ibis states."""
        return table_of(
            rows, fetch_rows(database_of(rows).con, SqliteTotalCompiler().written(rows))
        )


def _call(value: ibis.Value, result: str, name: object, *options: object) -> ibis.Value:
    """A call of one of dpframe's functions with constants."""
    return written(value, f"dpframe_{name}({', '.join(['a', *map(_constant, options)])})", result)


def _parsed(text: ibis.Value, dtype: DType) -> ibis.Value:
    match kind(dtype):
        case Kind.DATE:
            return _call(text, "int64", "days")
        case Kind.DATETIME:
            return _call(text, "int64", "micros", 0)
        case Kind.FLOAT:
            return _call(text, "float64", "real")
    if dtype == nw.UInt64:
        raise UnsupportedOperation("cast: SQLite has no uint64. Take 'int64', or 'float64'.")
    return _call(text, str(dtype).lower(), "integer", *integer_range(dtype))


def _constant(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case str():
            return text_literal(value)
        case float():
            return float_literal(value)
    return whole_literal(int(value))


def _ibis_type(dtype: pl.DataType) -> str:
    if dtype == pl.String:
        return "string"
    return (
        "boolean" if dtype == pl.Boolean else "float64" if dtype.is_float() else str(dtype).lower()
    )


DIALECT = _SqliteDialect()
