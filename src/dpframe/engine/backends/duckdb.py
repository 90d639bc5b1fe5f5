"""DuckDB relations. Queries run in the database of the relation, on its own connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache

import duckdb
import narwhals as nw
import polars as pl
from duckdb import ColumnExpression, DuckDBPyRelation, SQLExpression
from narwhals.dtypes import DType

from dpframe.engine.attended import attended
from dpframe.engine.backends.base import Cased, CellFunction, Frame, Parsed
from dpframe.engine.backends.sql import (
    MOST_ROWS,
    TextSqlBackend,
    our_names,
    plain_table,
    schema_of,
    texts_read,
)
from dpframe.engine.letters import ALIKE, letters
from dpframe.engine.tables import Data
from dpframe.errors import EngineUnavailable, UnsupportedOperation
from dpframe.plan import Kind, Search, Task, kind, zone_of

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
    "offset": "(epoch_us({0}) - {1}) // 1000000",
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


# RE2 reads a pattern, in a time that grows as the text does. Its group is an empty text where
# nothing matches.
_SEARCHES = {
    Task.CONTAINS: "regexp_matches({text}, {pattern})",
    Task.EXTRACT: "CASE WHEN regexp_matches({text}, {pattern}) THEN regexp_extract({text}, "
    "{pattern}, {group}) END",
    Task.COUNT: "CAST(len(regexp_extract_all({text}, {pattern})) AS BIGINT)",
    Task.REPLACE: "regexp_replace({text}, {pattern}, {value})",
    Task.REPLACE_ALL: "regexp_replace({text}, {pattern}, {value}, 'g')",
}


class _DuckDB(TextSqlBackend):
    name = "duckdb"
    parts = _PARTS
    whole_division = "//"
    plans_tables = True

    # Tables

    def adopt(self, table: object) -> Data | None:
        if not isinstance(table, DuckDBPyRelation):
            return None
        _check_reached(table)
        types = dict(nw.from_native(table).collect_schema())
        _check_statistics(types.values())
        texts = {
            name
            for name, dtype in zip(table.columns, table.types, strict=True)
            if str(dtype) == "UUID"
        }
        types |= dict.fromkeys(texts, nw.String())
        names = our_names(types)

        def scan(selection: Sequence[str], *, empty: bool = False) -> DuckDBPyRelation:
            columns = [
                SQLExpression(_held(name, types[name])).alias(names[name]) for name in selection
            ]
            return table.select(*(columns or [SQLExpression("1").alias("s")]))

        def stated() -> dict[str, str]:
            now = _beside(table, f"SELECT * FROM {_VIEW} LIMIT 0")
            assert now is not None
            return {name: str(dtype) for name, dtype in zip(now.columns, now.types, strict=True)}

        schema = schema_of(self, {name: types[name] for name in names})
        return Data("pandas", schema, scan, True, self.name, names, stated=stated)

    def fetch(self, table: DuckDBPyRelation) -> pl.DataFrame:
        return _read(table)

    def together(self, first: DuckDBPyRelation, second: DuckDBPyRelation) -> bool:
        try:
            first.set_alias("a").cross(second.set_alias("b"))
        except duckdb.Error:
            return False
        return True

    def bring(self, beside: Frame, table: pl.DataFrame) -> Frame:
        # DuckDB finds the variable by its name
        _dpframe_public = plain_table(self, beside, table).to_arrow()
        rows: DuckDBPyRelation = beside.to_native()
        relation: DuckDBPyRelation | None = None
        # without external access the variable is not found
        with suppress(duckdb.Error), _reading_python(rows):
            relation = rows.query(_VIEW, "SELECT * FROM _dpframe_public")
        if relation is None:
            raise UnsupportedOperation(
                "This question brings a public table or a list of keys to DuckDB, but this "
                "connection cannot read tables of Python: open it without enable_external_access "
                "= false and lock_configuration = true."
            )
        assert _dpframe_public is not None
        return nw.from_native(relation)

    def collect(self, frames: Sequence[Frame], *, streaming: bool = False) -> list[pl.DataFrame]:
        return [_totals(frame.to_native()) for frame in frames]

    def planned(self, frames: Sequence[Frame]) -> list[pl.DataFrame]:
        """Run each query with LIMIT 0, for which DuckDB computes no row.

        The limit stands at the end of the query: DuckDB takes long to optimise a query of which the
        table has the limit. The queries of one question are of one connection, which is asked for
        its macros once: what is asked beside a query is bound together with that query.
        """
        _check_macros(frames[0].to_native())
        return [_totals(frame.to_native(), empty=True) for frame in frames]

    # Texts

    def bytewise(self, frame: Frame) -> bool:
        return True

    def to_bytes(self, frame: Frame, column: str, into: str) -> Frame:
        return self.computed(frame, f"encode({column})", into)

    def to_text(self, frame: Frame, column: str, into: str) -> Frame:
        """Decode bytes.
        They were encoded from texts, so they are UTF-8, and no cell makes this fail.

        From DuckDB 2.0.1 on, `contains` and `starts_with` follow the collation of a text; "C" is
        that of its bytes.
        """
        return self.computed(frame, f'(decode({column}) COLLATE "C")', into)

    # Columns

    def computed(self, frame: Frame, sql: str, into: str) -> Frame:
        rows: DuckDBPyRelation = frame.to_native()
        others = [ColumnExpression(name) for name in rows.columns if name != into]
        return nw.from_native(rows.select(*others, SQLExpression(sql).alias(into)))

    def text(self, value: str) -> str:
        return _text(value)

    def number(self, value: float) -> str:
        return f"'{value!r}'::DOUBLE"

    def keyed_hash(self, frame: Frame, columns: Sequence[str], salt: int, into: str) -> Frame:
        """The hash of a hash: DuckDB combines hashes of several values by a product
        and xor, which mixes too little.
        """
        return self.computed(frame, f"hash(hash({salt}::UBIGINT, {', '.join(columns)}))", into)

    def stable_hash(self, frame: Frame, columns: list[str], salt: str, into: str) -> Frame:
        rows = frame.to_native()
        blobs = [
            c for c, dtype in zip(rows.columns, rows.types, strict=True) if str(dtype) == "BLOB"
        ]
        values = [f"decode({c})" if c in blobs else f"CAST({c} AS VARCHAR)" for c in columns]
        texts = ", ".join(f"length({text}), {text}" for text in values)
        return self.computed(frame, f"md5(concat_ws(' ', '{salt}', {texts}))", into)

    def sql_of(self, column: str, function: CellFunction) -> str:
        """Of letters, use DuckDB's `upper` and `lower` for most texts:
        `translate` reads the table for each text.
        """
        match function:
            case Parsed(nw.Date()):
                return f"CAST(TRY_CAST({column} AS DATE) - {_DAY} AS BIGINT)"
            case Parsed(nw.Datetime()):
                return f"epoch_us(TRY_CAST(left({column}, 26) AS TIMESTAMP))"
            case Parsed(dtype):
                return f"TRY_CAST({column} AS {_TYPES.get(str(dtype), 'DOUBLE')})"
            case Cased(capital):
                have, want = letters(capital=capital)
                own = f"replace(upper({column}), 'ẞ', 'ß')" if capital else f"lower({column})"
                alike = f"regexp_full_match({column}, '{ALIKE}')"
                return (
                    f"CASE WHEN {alike} THEN {own} ELSE translate({column}, '{have}', '{want}') END"
                )
            case Search(task, pattern, group, new):
                found = _text(pattern.written(r"\b"))
                return _SEARCHES[task].format(
                    text=column, pattern=found, value=_text(new), group=group
                )
        return super().sql_of(column, function)

    def settled(self, frame: Frame) -> Frame:
        rows: DuckDBPyRelation = frame.to_native()
        return nw.from_native(rows.limit(MOST_ROWS))

    def divided(self, frame: Frame, column: str, by: int, into: str) -> Frame:
        return self.computed(frame, f"{column} // {by} - CAST({column} % {by} < 0 AS BIGINT)", into)

    def day_of(self, column: str) -> str:
        return f"({_DAY} + CAST({column} AS INTEGER))"

    def moment_of(self, column: str, zone: str | None) -> str:
        time = f"make_timestamp({column})"
        return time if zone is None else f"timezone('{zone}', timezone('UTC', {time}))"


def _beside(rows: DuckDBPyRelation, sql: str) -> DuckDBPyRelation | None:
    """The relation of a text of SQL on the connection of another relation.

    DuckDB 1 makes a view of the relation for it in the user's own database, and leaves it there:
    drop it again.
    """
    found = rows.query(_VIEW, sql)
    rows.query(_VIEW, f"DROP VIEW IF EXISTS {_VIEW}")
    return found


_VIEW = "_dpframe_beside"


@contextmanager
def _reading_python(rows: DuckDBPyRelation) -> Iterator[None]:
    """Let a connection find tables of Python by their variables meanwhile:
    Ibis and some users switch it off.
    """
    setting = "python_enable_replacements"
    found = _beside(rows, f"SELECT current_setting('{setting}')")
    off = found is not None and found.fetchall() == [(False,)]
    if off:
        _beside(rows, f"SET {setting} = true")
    try:
        yield
    finally:
        rows.query(_VIEW, f"DROP VIEW IF EXISTS {_VIEW}")
        if off:
            _beside(rows, f"SET {setting} = false")


def _text(value: str) -> str:
    """SQL of a text, by its bytes: SQL has no zero byte."""
    digits = "".join(rf"\x{byte:02x}" for byte in value.encode())
    return f"decode('{digits}'::BLOB)"


def _check_reached(rows: DuckDBPyRelation) -> None:
    """`_check_macros` of a table that is taken in, whose connection may be
    closed, or allow DuckDB 1 no view.

    Errors: EngineUnavailable, UnsupportedOperation
    """
    problem: EngineUnavailable | UnsupportedOperation
    try:
        return _check_macros(rows)
    except duckdb.ConnectionException:
        problem = EngineUnavailable(
            "The connection of this DuckDB relation is closed. Before DuckDB 2 a relation does "
            "not keep it open: keep it in a variable, connection = duckdb.connect(...), for as "
            "long as you ask about the table."
        )
    except duckdb.InvalidInputException:
        problem = UnsupportedOperation(
            "DuckDB before 2 needs a view for dpframe's queries, and this database is read-only: "
            "open it without read_only=True, install duckdb>=2, or protect a Polars table: "
            "dp.protect(table.pl(), ...)."
        )
    raise problem


def _check_macros(rows: DuckDBPyRelation) -> None:
    """Refuse a database in which a macro has the name of one of DuckDB's
    own functions and so replaces it.

    The limits rely on these functions: if `least(a, b)` is a macro that returns a, no sum is
    clipped. The check reads the catalog of the database and no row.

    Errors: UnsupportedOperation
    """

    def names(sql: str) -> list[str]:
        catalog = _beside(rows, sql)
        return [] if catalog is None else [name for (name,) in catalog.fetchall()]

    if not names(_MACROS):
        return
    wrong = ", ".join(sorted(names(_SHADOWS)))
    if wrong:
        raise UnsupportedOperation(
            "DuckDB: macros of this database take the place of functions that dpframe uses: "
            f"{wrong}. Give the macros other names (DROP MACRO, CREATE MACRO), or protect a Polars "
            "table: dp.protect(table.pl(), ...)."
        )


_MACROS = "SELECT function_name FROM duckdb_functions() WHERE NOT internal"
_SHADOWS = """SELECT DISTINCT m.function_name FROM duckdb_functions() AS m
JOIN duckdb_functions() AS f ON lower(f.function_name) = lower(m.function_name)
WHERE NOT m.internal AND f.internal AND f.database_name = 'system'"""


# NaN is a float whose bits, without the sign, are a larger number than those of infinity.
_MAGNITUDE, _INFINITE = 2**63 - 1, 0x7FF0000000000000
_BITS = "CAST(CAST(CAST({0} AS DOUBLE) AS BIT) AS BIGINT)"


def _check_statistics(types: Iterable[DType]) -> None:
    """Refuse a version of DuckDB that guesses from statistics whether a float
    is NaN, for a table with floats.

    DuckDB takes the smallest and the largest float of a Parquet file from the file's statistics,
    which leave out NaN. It replaces `isnan(x)` by false where the largest float is a number, and
    `x > 5` where the largest float is 2. So rows with NaN would count as values, or not, according
    to the floats of other people. `_held` reads the bits of each float instead: DuckDB has no
    statistics of bits that were read as a whole number. This check asks DuckDB for the statistics
    of that number in three tables of its own, whose statistics of floats differ.

    Errors: UnsupportedOperation
    """
    if any(kind(dtype) == Kind.FLOAT for dtype in types) and _statistics_pass():
        raise UnsupportedOperation(
            "This version of DuckDB guesses from statistics whether a number is NaN, so NaN could "
            "count as a value: install another version, or protect a Polars table: "
            "dp.protect(table.pl(), ...)."
        )


@cache
def _statistics_pass() -> bool:
    """Whether the statistics of floats say something about their bits."""
    with duckdb.connect() as own:
        for name, floats in (("a", "1, 1"), ("b", "2, 3"), ("c", "4, 'NaN'::DOUBLE")):
            own.execute(f"CREATE TABLE {name} AS SELECT unnest([{floats}]::DOUBLE[]) AS x")
        tests = f"stats({_BITS.format('x')}), stats({_is_number('x')})"
        told = {
            str(own.execute(f"SELECT {tests} FROM {name} LIMIT 1").fetchall()) for name in "abc"
        }
    return len(told) > 1


def _is_number(value: str) -> str:
    return f"({_BITS.format(value)} & {_MAGNITUDE}) <= {_INFINITE}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _held(name: str, dtype: DType) -> str:
    """SQL for a column of the user's in the form in which dpframe holds it:
    a time as its ticks, a text as its bytes.

    NaN becomes null here and not only later: see `_check_statistics`.

    A text that is not valid UTF-8 becomes null. Arrow tables can contain such texts. DuckDB's
    functions would fail on them, and then the whole database fails.
    """
    value = _quoted(name)
    if BACKEND.reason_against(dtype):  # a question can only use whether this column is null
        return value
    if kind(dtype) == Kind.FLOAT:
        return f"CASE WHEN {_is_number(value)} THEN {value} END"
    if kind(dtype) == Kind.DATE:
        return f"CASE WHEN isfinite({value}) THEN CAST({value} - {_DAY} AS BIGINT) END"
    if kind(dtype) == Kind.DATETIME:
        has_zone = zone_of(dtype) is not None
        value = value if has_zone else f"TRY_CAST({value} AS TIMESTAMP)"
        return f"CASE WHEN isfinite({value}) THEN epoch_us({value}) END"
    return (
        f"encode(TRY(decode(encode(CAST({value} AS VARCHAR)))))"
        if kind(dtype) == Kind.STRING
        else value
    )


_NARROW = {"HUGEINT": "BIGINT", "BOOLEAN": "TINYINT"}


def _totals(rows: DuckDBPyRelation, *, empty: bool = False) -> pl.DataFrame:
    """Totals and their keys, in types that Arrow supports under all settings of the connection.

    DuckDB's sums have 128 bits. They fit in 64 bits (see `limits`), and no key has 128 bits (see
    `check_key`). With the setting `arrow_lossless_conversion`, Booleans become an extension type of
    Arrow that Polars does not read, so they travel as numbers.
    """
    types = dict(zip(rows.columns, map(str, rows.types), strict=True))
    columns = [
        ColumnExpression(name).cast(_NARROW[dtype]).alias(name)
        if dtype in _NARROW
        else ColumnExpression(name)
        for name, dtype in types.items()
    ]
    relation = rows.select(*columns)
    table = texts_read(_read(relation.limit(0) if empty else relation))
    return table.with_columns(
        pl.col(name).cast(pl.Boolean) for name, dtype in types.items() if dtype == "BOOLEAN"
    )


def _read(rows: DuckDBPyRelation) -> pl.DataFrame:
    """The table of a query.
    A relation of DuckDB 1 does not say which connection is to be interrupted.
    """
    stop = getattr(getattr(rows, "_con", None), "interrupt", None)
    read = rows.to_arrow_table if hasattr(rows, "to_arrow_table") else rows.fetch_arrow_table
    return pl.DataFrame(attended(read, stop))


BACKEND = _DuckDB()
