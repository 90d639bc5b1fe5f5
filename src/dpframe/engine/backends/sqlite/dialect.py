"""The operations in which SQLite differs from other databases of Ibis."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import ibis
import ibis.expr.operations as ops
import narwhals as nw
import polars as pl
from narwhals.dtypes import DType

from dpframe.engine.backends.ibis import Dialect
from dpframe.engine.backends.sqlite import connection
from dpframe.engine.backends.sqlite.compiler import Called, Compiler
from dpframe.engine.backends.sqlite.written import float_literal, integer_literal, text_literal
from dpframe.engine.backends.written import written
from dpframe.errors import UnsupportedOperation
from dpframe.plan import Kind, integer_range, kind

_DAY = 86_400_000_000
_TOO_LONG = ("stack overflow", "too large", "too many", "at most")  # what SQLite says of a query with too many parts

_OF_TEXT = "CASE WHEN TYPEOF(a) = 'text' THEN {} END"
_WHOLE = "CASE WHEN TYPEOF(a) = 'integer' THEN CASE WHEN a BETWEEN {} AND {} THEN a END END"
_TRUTH = "CASE WHEN TYPEOF(a) = 'integer' THEN CASE WHEN a IN (0, 1) THEN a END END"
# A float. A whole number that is no float is null, since rounding it could make two identifiers one. SQLite stores the
# float 2^60 in some columns as a whole number. Near 2^63 its cast back from a float would be cut to 2^63 - 1.
_FLOAT = """CASE TYPEOF(a) WHEN 'real' THEN a WHEN 'integer' THEN
CASE WHEN a < 9223372036854774785 THEN
CASE WHEN CAST(CAST(a AS REAL) AS INTEGER) = a THEN CAST(a AS REAL) END END END"""


class _SqliteDialect(Dialect):
    def opened(self, table: Any) -> Any:
        """The user's table with the user's own steps as a finished SQL query, as Ibis writes it."""
        if isinstance(table.op(), ops.DatabaseTable):
            return table
        backend = _backend(table)
        if backend is None:
            return table
        backend._run_pre_execute_hooks(table)
        return ops.SQLQueryResult(str(backend.compile(table)), table.schema(), backend).to_expr()

    def types(self, table: Any) -> dict[str, DType]:
        """SQLite has no decimals and no unsigned numbers: their cells are floats and whole numbers of 64 bits."""
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

    def against(self, table: Any, types: Mapping[str, DType]) -> dict[str, str]:
        """Columns of types that SQLite only has by name.

        Errors: UnsupportedOperation for a connection on which a cell could make a query fail
        """
        backend = _backend(table)
        if backend is not None:
            connection.check(backend.con)
            connection.prepare(backend.con)
        cast = "cast it before, table.mutate(x=table[{!r}].cast('{}'))"
        odd = {
            name: f"dpframe does not read it: {cast.format(name, 'string')}"
            for name, dtype in types.items()
            if kind(dtype) == Kind.OTHER
        }
        zoned = {
            name: f"a text has no zone there: store the time in UTC, {cast.format(name, 'timestamp')}"
            for name, dtype in types.items()
            if getattr(dtype, "time_zone", None) is not None
        }
        return odd | zoned

    def held(self, value: Any, dtype: DType) -> Any:
        """A cell of the column's own type, as dpframe holds it; any other cell is null."""
        match kind(dtype):
            case Kind.STRING:
                return written(value, _OF_TEXT.format("dpframe_text(CAST(a AS BLOB))"), "string")
            case Kind.DATE:
                return written(value, _OF_TEXT.format("dpframe_days(CAST(a AS BLOB))"), "int64")
            case Kind.DATETIME:
                return written(value, _OF_TEXT.format("dpframe_micros(CAST(a AS BLOB), 1)"), "int64")
            case Kind.BOOLEAN:
                return written(value, _TRUTH, "boolean")
            case Kind.INTEGER:
                low, high = integer_range(dtype)
                return written(value, _WHOLE.format(integer_literal(low), high), str(dtype).lower())
            case Kind.FLOAT:
                real = written(value, _FLOAT, "float64")
                return real if isinstance(dtype, nw.Float64) else real.cast("float32")
        return value

    def bytewise(self, rows: Any) -> bool:
        """Texts are held as texts for Ibis; its compiler here writes each as its bytes."""
        return False

    def decimal(self, value: nw.Expr) -> nw.Expr:
        return value.cast(nw.Float64)

    def keyed_hash(self, rows: Any, columns: Sequence[str], salt: str) -> Any:
        cells = tuple(rows[column].op() for column in columns)
        return Called("hash", salt, cells, ibis.dtype("int64")).to_expr()

    def stable_hash(self, rows: Any, columns: Sequence[str], salt: str) -> Any:
        cells = tuple(rows[column].op() for column in columns)
        return Called("stable_hash", salt, cells, ibis.dtype("string")).to_expr()

    def one_of(self, value: Any, values: pl.Series) -> Any:
        """A list of constants in SQL, of which SQLite makes an index. A join to it would read it for each row."""
        if values.dtype == pl.UInt64 and (values >= 2**63).any():
            return None
        return written(value, f"a IN (VALUES {', '.join(f'({_constant(key)})' for key in values)})", "boolean")

    def brought(self, beside: Any, table: pl.DataFrame) -> Any:
        """A public table as SQL. A query carries its rows, so nothing is stored in the user's database."""
        for name, dtype in table.schema.items():
            if dtype == pl.UInt64 and (table.get_column(name) >= 2**63).any():
                raise UnsupportedOperation(
                    f"join: the public column {name!r} has numbers of 2^63 or more, and SQLite's integers are smaller. "
                    "Cast the column to pl.Float64."
                )
        rows = ", ".join(f"({', '.join(map(_constant, row))})" for row in table.iter_rows())
        columns = ", ".join(f'column{i + 1} AS "{name}"' for i, name in enumerate(table.columns))
        empty = ", ".join(f'NULL AS "{name}"' for name in table.columns)
        query = f"SELECT {columns} FROM (VALUES {rows})" if rows else f"SELECT {empty} WHERE 0"
        schema = {name: _ibis_type(dtype) for name, dtype in table.schema.items()}
        return ops.SQLQueryResult(query, ibis.schema(schema), _backend(beside)).to_expr()

    def parsed(self, rows: Any, column: str, dtype: DType) -> Any:
        text, family = rows[column], kind(dtype)
        if family == Kind.DATE:
            return written(text, "dpframe_days(a)", "int64")
        if family == Kind.DATETIME:
            return written(text, "dpframe_micros(a, 0)", "int64")
        if family == Kind.FLOAT:
            return written(text, "dpframe_real(a)", "float64")
        if isinstance(dtype, nw.UInt64):
            raise UnsupportedOperation("cast: SQLite has no uint64. Take 'int64', or 'float64'.")
        low, high = integer_range(dtype)
        return written(text, f"dpframe_integer(a, {integer_literal(low)}, {high})", str(dtype).lower())

    def cased(self, value: Any, *, capital: bool) -> Any:
        return written(value, f"dpframe_cased(a, {int(capital)})", "string")

    def replaced(self, value: Any, old: str, new: str, *, every: bool) -> Any:
        change = ", ".join(str(text_literal(text).name) for text in (old, new))
        return written(value, f"dpframe_replaced(a, {change}, {-1 if every else 1})", "string")

    def piece(self, value: Any, by: str, index: int) -> Any:
        return written(value, f"dpframe_piece(a, {text_literal(by).name}, {index})", "string")

    def part(self, value: Any, dtype: DType, part: str) -> Any:
        per_day = 1 if kind(dtype) == Kind.DATE else _DAY
        name = f"x'{part.encode().hex()}'"
        return written(value, f"dpframe_part(a, {per_day}, {name})", "string" if part == "text" else "int64")

    def planned(self, rows: Any) -> pl.DataFrame:
        """The table of a query with LIMIT 0, which reads no row. The functions are those that the check was about."""
        backend = _backend(rows)
        if backend is not None:
            connection.check(backend.con)
        try:
            return super().planned(rows)
        except sqlite3.OperationalError as error:  # about the query alone: no row is read
            if not any(words in str(error) for words in _TOO_LONG):
                raise
        raise UnsupportedOperation(
            "SQLite's parser has no room for this question. Compute its longest expressions in the database, before "
            "dp.protect(...), as in table.mutate(x=table.x * 2), or ask for fewer statistics at once."
        )

    def read(self, rows: Any) -> pl.DataFrame:
        """The rows of a query, in the types that Ibis states."""
        backend = _backend(rows)
        assert backend is not None
        values = connection.fetch_rows(backend.con, Compiler().written(rows))
        columns: Iterator[Any] | list[Any] = zip(*values, strict=True) if values else iter([()] * len(rows.columns))
        schema = rows.schema().items()
        return pl.DataFrame(
            [connection.column_of(name, cells, dtype) for (name, dtype), cells in zip(schema, columns, strict=True)]
        )


def _backend(rows: Any) -> Any:
    """Ibis' backend of an Ibis table; None for a table without a database."""
    backends, _ = rows._find_backends()
    return backends[0] if backends else None


def _constant(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return str(text_literal(value).name)
    return float_literal(value) if isinstance(value, float) else integer_literal(int(value))


def _ibis_type(dtype: pl.DataType) -> str:
    if dtype == pl.String:
        return "string"
    return "boolean" if dtype == pl.Boolean else "float64" if dtype.is_float() else str(dtype).lower()


DIALECT = _SqliteDialect()
