"""DuckDB relations: read where they live, on the connection that they belong to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import duckdb
import narwhals as nw
import polars as pl
from duckdb import ColumnExpression, DuckDBPyRelation, SQLExpression
from narwhals.dtypes import DType

from dpframe.engine.backends.base import Frame
from dpframe.engine.backends.sql import REPLACED, SqlBackend, our_names, piece_of, plain_table, schema_of, texts_read
from dpframe.engine.letters import ALIKE, letters
from dpframe.engine.tables import Data
from dpframe.errors import UnsupportedOperation
from dpframe.plan import Kind, kind

__all__ = ["BACKEND", "check_macros"]

_DAY = "DATE '1970-01-01'"
_PARTS = {
    "year": "year({0})",
    "month": "month({0})",
    "day": "day({0})",
    "weekday": "isodow({0})",
    "ordinal_day": "dayofyear({0})",
    "hour": "hour({0})",
    "minute": "minute({0})",
    "days": f"CAST({{0}} AS DATE) - {_DAY}",
    "text": "CAST({0} AS VARCHAR)",
}
_TYPES = {
    "Int8": "TINYINT",
    "Int16": "SMALLINT",
    "Int32": "INTEGER",
    "Int64": "BIGINT",
    "UInt8": "UTINYINT",
    "UInt16": "USMALLINT",
    "UInt32": "UINTEGER",
    "UInt64": "UBIGINT",
}


class _DuckDB(SqlBackend):
    name = "duckdb"

    # Tables

    def adopt(self, table: Any) -> Data | None:
        if not isinstance(table, DuckDBPyRelation):
            return None
        _check_macros(table)
        types = dict(nw.from_native(table).collect_schema())
        texts = {name for name, dtype in zip(table.columns, table.types, strict=True) if str(dtype) == "UUID"}
        types |= dict.fromkeys(texts, nw.String())
        names = our_names(types)

        def scan(wanted: Sequence[str], *, empty: bool = False) -> DuckDBPyRelation:
            columns = [SQLExpression(_held(name, types[name])).alias(names[name]) for name in wanted]
            return table.select(*(columns or [SQLExpression("1").alias("s")]))

        return Data("pandas", schema_of(self, {name: types[name] for name in names}), scan, True, self.name, names)

    def fetch(self, table: Any) -> pl.DataFrame:
        return _read(table)

    def together(self, first: Any, second: Any) -> bool:
        try:
            first.set_alias("a").cross(second.set_alias("b"))
        except duckdb.Error:
            return False
        return True

    def bring(self, beside: Frame, table: pl.DataFrame) -> Frame:
        _dpframe_public = plain_table(self, beside, table).to_arrow()  # found by this name, unless a table has it
        made: DuckDBPyRelation | None = None
        with suppress(duckdb.CatalogException):  # nothing is found by a connection that is closed to what is outside
            made = beside.to_native().query("_dpframe_beside", "SELECT * FROM _dpframe_public")
        if made is None:
            raise UnsupportedOperation(
                "This question brings a public table or a list of keys to DuckDB, and the connection may read none of "
                "Python's: SET python_enable_replacements = true, and open it without enable_external_access = false."
            )
        assert _dpframe_public is not None
        return nw.from_native(made)

    def collect(self, frames: Sequence[Frame], *, streaming: bool = False) -> list[pl.DataFrame]:
        return [_totals(frame.to_native()) for frame in frames]

    def planned(self, frames: Sequence[Frame]) -> list[pl.DataFrame]:
        """Of what is then cut to no row, nothing is computed. A table cut to no row first takes long to optimise."""
        for frame in frames:
            _check_macros(frame.to_native())
        return [_totals(frame.to_native(), empty=True) for frame in frames]

    # Texts

    def bytewise(self, frame: Frame) -> bool:
        return True

    def to_bytes(self, frame: Frame, column: str, into: str) -> Frame:
        return _with(frame, f"encode({column})", into)

    def to_text(self, frame: Frame, column: str, into: str) -> Frame:
        """What is held came from texts, so it is in UTF-8: this fails on no cell."""
        return _with(frame, f"decode({column})", into)

    # Columns

    def keyed_hash(self, frame: Frame, columns: Sequence[str], salt: int, into: str) -> Frame:
        """The hash of the hashes: DuckDB joins those of several values by a product and xor, which is no mixture."""
        return _with(frame, f"hash(hash({salt}::UBIGINT, {', '.join(columns)}))", into)

    def stable_hash(self, frame: Frame, columns: list[str], salt: str, into: str) -> Frame:
        rows = frame.to_native()
        held = [c for c, dtype in zip(rows.columns, rows.types, strict=True) if str(dtype) == "BLOB"]
        written = [f"decode({c})" if c in held else f"CAST({c} AS VARCHAR)" for c in columns]
        texts = ", ".join(f"length({text}), {text}" for text in written)
        return _with(frame, f"md5(concat_ws(' ', '{salt}', {texts}))", into)

    def parsed(self, frame: Frame, column: str, dtype: DType, into: str) -> Frame:
        if isinstance(dtype, nw.Date):
            return _with(frame, f"CAST(TRY_CAST({column} AS DATE) - {_DAY} AS BIGINT)", into)
        if isinstance(dtype, nw.Datetime):
            return _with(frame, f"epoch_us(TRY_CAST(left({column}, 26) AS TIMESTAMP))", into)
        return _with(frame, f"TRY_CAST({column} AS {_TYPES.get(str(dtype), 'DOUBLE')})", into)

    def cased(self, frame: Frame, column: str, capital: bool, into: str) -> Frame:
        """By DuckDB's own function for most texts, since its `translate` reads the whole table for each text."""
        have, want = letters(capital=capital)
        own = f"replace(upper({column}), 'ẞ', 'ß')" if capital else f"lower({column})"
        alike = f"regexp_full_match({column}, '{ALIKE}')"
        return _with(frame, f"CASE WHEN {alike} THEN {own} ELSE translate({column}, '{have}', '{want}') END", into)

    def replaced(self, frame: Frame, column: str, change: tuple[str, str], every: bool, into: str) -> Frame:
        old, new = map(_text, change)
        if every:
            return _with(frame, f"replace({column}, {old}, {new})", into)
        first = REPLACED.format(text=column, old=old, new=new, size=len(change[0]), find="instr")
        return _with(frame, first, into)

    def piece(self, frame: Frame, column: str, by: str, index: int, into: str) -> Frame:
        return _with(frame, piece_of(column, _text(by), len(by), index, "//"), into)

    def divided(self, frame: Frame, column: str, by: int, into: str) -> Frame:
        return _with(frame, f"{column} // {by} - CAST({column} % {by} < 0 AS BIGINT)", into)

    def part(self, frame: Frame, column: str, dtype: DType, part: str, into: str) -> Frame:
        if kind(dtype) == Kind.DATE:
            value = f"({_DAY} + CAST({column} AS INTEGER))"
        else:
            frame = frame.with_columns(self._microseconds(nw.col(column), dtype).alias(column))
            value, zone = f"make_timestamp({column})", getattr(dtype, "time_zone", None)
            if zone is not None:
                value = f"timezone('{zone}', timezone('UTC', {value}))"
        made = _PARTS[part].format(value)
        return _with(frame, made if part == "text" else f"CAST({made} AS BIGINT)", into)


def _check_macros(rows: DuckDBPyRelation) -> None:
    def names(sql: str) -> list[str]:
        catalog = rows.query("_dpframe_beside", sql)
        return [] if catalog is None else [name for (name,) in catalog.fetchall()]

    check_macros(names)


def check_macros(names: Callable[[str], list[str]]) -> None:
    """Refuses a database where a macro has the name of one of DuckDB's own functions, and takes its place.

    Limits rest on these functions: where `least(a, b)` is a macro that gives a, no sum is clipped. The catalog of the
    database is looked at, and no row.

    Input:  names: what runs a query of one column
    Errors: UnsupportedOperation
    """
    if not names(_MACROS):
        return
    wrong = ", ".join(sorted(names(_SHADOWS)))
    if wrong:
        raise UnsupportedOperation(
            f"DuckDB: macros of this database take the place of functions that dpframe computes with: {wrong}. Give "
            "them other names (DROP MACRO, CREATE MACRO), or bring the table as another: dp.protect(table.pl(), ...)."
        )


_MACROS = "SELECT function_name FROM duckdb_functions() WHERE NOT internal"
_SHADOWS = """SELECT DISTINCT m.function_name FROM duckdb_functions() AS m
JOIN duckdb_functions() AS f ON lower(f.function_name) = lower(m.function_name)
WHERE NOT m.internal AND f.internal AND f.database_name = 'system'"""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    """A text that stands in SQL, by its bytes."""
    digits = "".join(rf"\x{byte:02x}" for byte in value.encode())
    return f"decode('{digits}'::BLOB)"


def _held(name: str, dtype: DType) -> str:
    """A column of the user's as it is held: a time as its ticks, a text as its bytes.

    A text that is no Unicode, which Arrow's tables can bring in, is null: DuckDB's functions fail on it, and with them
    the whole database.
    """
    value = _quoted(name)
    if BACKEND.reason_against(dtype):  # of which nothing can be asked but whether there is a value
        return value
    if kind(dtype) == Kind.DATE:
        return f"CASE WHEN isfinite({value}) THEN CAST({value} - {_DAY} AS BIGINT) END"
    if kind(dtype) == Kind.DATETIME:
        zoned = getattr(dtype, "time_zone", None) is not None
        value = value if zoned else f"TRY_CAST({value} AS TIMESTAMP)"
        return f"CASE WHEN isfinite({value}) THEN epoch_us({value}) END"
    return f"encode(TRY(decode(encode(CAST({value} AS VARCHAR)))))" if kind(dtype) == Kind.STRING else value


def _with(frame: Frame, made: str, into: str) -> Frame:
    """A frame with a column that DuckDB computes."""
    rows: DuckDBPyRelation = frame.to_native()
    kept = [ColumnExpression(name) for name in rows.columns if name != into]
    return nw.from_native(rows.select(*kept, SQLExpression(made).alias(into)))


_NARROW = {"HUGEINT": "BIGINT", "BOOLEAN": "TINYINT"}


def _totals(rows: DuckDBPyRelation, *, empty: bool = False) -> pl.DataFrame:
    """Totals and their keys, in types that Arrow has whatever the settings of the connection are.

    DuckDB makes sums in 128 bits, which fit in 64 (see `limits`); no key is of this type (see `check_key`). By
    `arrow_lossless_conversion`, truth is of a type that is Arrow's extension and not read by Polars: so it is a number.
    """
    types = dict(zip(rows.columns, map(str, rows.types), strict=True))
    columns = [
        ColumnExpression(name).cast(_NARROW[dtype]).alias(name) if dtype in _NARROW else ColumnExpression(name)
        for name, dtype in types.items()
    ]
    narrowed = rows.select(*columns)
    table = texts_read(_read(narrowed.limit(0) if empty else narrowed))
    return table.with_columns(pl.col(name).cast(pl.Boolean) for name, dtype in types.items() if dtype == "BOOLEAN")


def _read(rows: DuckDBPyRelation) -> pl.DataFrame:
    found = pl.from_arrow(rows.to_arrow_table() if hasattr(rows, "to_arrow_table") else rows.fetch_arrow_table())
    assert isinstance(found, pl.DataFrame)
    return found


BACKEND = _DuckDB()
