"""The engines: how each of them is given a table of hostile cells,
and how rows of it are read back.

To add one: a line in `ENGINES`. An engine gives the table and the cells that it holds after its
users' own conversion: a pandas column of numpy's integers has no null, for example. Columns of a
type that it has not are left out, and a cell that its format cannot store is null there: `plain`
and `finite` say which.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
from cells import Cells
from reference import NANO, family

from datafusion_tables import stored as stored_in_datafusion
from dpframe.engine import Data
from dpframe.engine.backends import backend_of
from dpframe.engine.intake import partition_of
from dpframe.engine.stages import lower
from dpframe.plan.steps import exchanged, source_of
from inside import step_of

__all__ = ["ENGINES", "READERS", "STARTED", "Brought", "Engine", "Table", "plain_values", "rows_of"]

Table = Mapping[str, Cells]
_NUMBER = itertools.count()


@dataclass(frozen=True)
class Brought:
    """A table as users of an engine hold it, and the cells of its columns."""

    native: Any
    cells: Table
    height: int


@dataclass(frozen=True)
class Engine:
    """An engine: its name, its way to make a table, expressions per query, its
    server, and whether it is slow.
    """

    name: str
    make: Callable[[Table], tuple[Any, Table]]
    batch: int
    needs: str = ""  # the fixture of what runs beside the tests, which is then in `STARTED`
    long: bool = False

    def bring(self, table: Table) -> Brought:
        """A table with "r", the number of a row, beside the columns that the engine can have."""
        height = len(next(iter(table.values())).cells)
        numbered = {"r": Cells("r", nw.Int64(), tuple(range(height))), **table}
        native, held = self.make(numbered)
        return Brought(native, held, height)


def column(cells: Cells) -> pa.Array:
    """Cells in Arrow's types; integers beyond 64 bits become texts."""
    dtype = cells.dtype
    values = [None if _infinite(dtype, x) else x for x in cells.cells]
    if family(dtype) == "string":  # also those that are no Unicode, at which Arrow does not look
        raw = [x.encode() if isinstance(x, str) else x for x in values]
        return pa.array(raw, pa.binary()).view(pa.string())
    if isinstance(dtype, (nw.Int128, nw.UInt128)):
        return pa.array([None if x is None else str(x) for x in values], pa.string())
    if family(dtype) == "integer":
        return pa.array(values, getattr(pa, str(dtype).lower())())
    if isinstance(dtype, nw.Date):
        return pa.array(values, pa.int32()).cast(pa.date32())
    if family(dtype) in ("datetime", "duration"):
        ticks = pa.array(
            [None if x is None else x // NANO[dtype.time_unit] for x in values], pa.int64()
        )
        zone = getattr(dtype, "time_zone", None)
        return ticks.cast(
            pa.timestamp(dtype.time_unit, zone)
            if family(dtype) == "datetime"
            else pa.duration(dtype.time_unit)
        )
    if family(dtype) == "decimal":
        return pa.array(
            values,
            (pa.decimal128 if dtype.precision <= 38 else pa.decimal256)(
                dtype.precision, dtype.scale
            ),
        )
    types = {
        "boolean": pa.bool_(),
        "float": pa.float32() if isinstance(dtype, nw.Float32) else pa.float64(),
    }
    return pa.array(values, types[family(dtype)])


def arrow(table: Table) -> pa.Table:
    """A table as Arrow holds it."""
    return pa.table({name: column(cells) for name, cells in table.items()})


def _infinite(dtype: Any, cell: Any) -> bool:
    """Whether a cell is the date or time before or after all others, which
    only DuckDB and PostgreSQL have.
    """
    return family(dtype) in ("date", "datetime") and cell in (math.inf, -math.inf)


def finite(table: Table) -> Table:
    """The cells without infinite dates and times."""
    return _left_out(table, _infinite)


def plain(table: Table) -> Table:
    """The cells without texts that are not Unicode and infinite dates and times,
    which are no values of Python.
    """
    return _left_out(table, lambda dtype, cell: _infinite(dtype, cell) or isinstance(cell, bytes))


def _left_out(table: Table, lacks: Callable[[Any, Any], bool]) -> Table:
    return {
        name: replace(c, cells=tuple(None if lacks(c.dtype, x) else x for x in c.cells))
        for name, c in table.items()
    }


def without(table: Table, *lacking: Callable[[Any], bool]) -> Table:
    """The columns whose types an engine has."""
    return {
        name: cells
        for name, cells in table.items()
        if not any(lacks(cells.dtype) for lacks in lacking)
    }


def wide(dtype: Any) -> bool:
    """Whole numbers beyond 64 bits, which only Polars and DuckDB have."""
    return isinstance(dtype, (nw.Int128, nw.UInt128))


def unsigned_wide(dtype: Any) -> bool:
    return isinstance(dtype, nw.UInt128)


def wide_decimal(dtype: Any) -> bool:
    return family(dtype) == "decimal" and dtype.precision > 38


def duration(dtype: Any) -> bool:
    return family(dtype) == "duration"


def zoned(dtype: Any) -> bool:
    return getattr(dtype, "time_zone", None) is not None


def zoned_elsewhere(zone: str) -> Callable[[Any], bool]:
    """Times with another zone than the one that all times have there."""
    return lambda dtype: getattr(dtype, "time_zone", None) not in (None, zone)


# Polars, and what is read through Arrow


def polars(table: Table) -> tuple[pl.DataFrame, Table]:
    """Decimals of 76 digits are Arrow's alone."""
    table = finite(without(table, wide_decimal))
    frame = pl.from_arrow(arrow(table))
    casts = [
        pl.col(name).cast(getattr(pl, str(c.dtype))) for name, c in table.items() if wide(c.dtype)
    ]
    return frame.with_columns(casts), table


def lazy(table: Table) -> tuple[pl.LazyFrame, Table]:
    frame, held = polars(table)
    return frame.lazy(), held


def pyarrow(change: Callable[[pa.Table], pa.Table]) -> Callable[[Table], tuple[pa.Table, Table]]:
    def made(table: Table) -> tuple[pa.Table, Table]:
        table = finite(without(table, wide))
        return change(arrow(table)), table

    return made


def each(change: Callable[[pa.ChunkedArray], Any]) -> Callable[[pa.Table], pa.Table]:
    """Change every column except the row number."""
    return lambda table: pa.table(
        {n: table[n] if n == "r" else change(table[n]) for n in table.column_names}
    )


def large(array: pa.ChunkedArray) -> pa.ChunkedArray:
    return array.cast(pa.large_string()) if array.type == pa.string() else array


def view(array: pa.ChunkedArray) -> pa.ChunkedArray:
    return array.cast(pa.string_view()) if array.type == pa.string() else array


def dictionary(array: pa.ChunkedArray) -> pa.ChunkedArray:
    return array if pa.types.is_decimal256(array.type) else array.dictionary_encode()


def run_ends(array: pa.ChunkedArray) -> Any:
    import pyarrow.compute as pc

    if pa.types.is_decimal256(array.type) or array.type == pa.bool_():
        return array
    return pc.run_end_encode(array)


def chunked(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Chunks of 0, 1, 2, … rows."""
    starts = list(
        itertools.takewhile(
            lambda x: x < len(array), (i * (i - 1) // 2 for i in itertools.count(1))
        )
    )
    parts = [array.slice(at, size) for size, at in enumerate(starts, start=1)]
    return pa.chunked_array(
        [chunk for part in parts for chunk in [array.slice(0, 0), part]]
        and [c for p in parts for c in p.chunks],
        type=array.type,
    )


def pandas_numpy(table: Table) -> tuple[pd.DataFrame, Table]:
    """Whole numbers and truths of numpy have no null: there stands another cell."""
    table = plain(without(table, wide, lambda d: family(d) in ("decimal", "date")))
    held = {
        name: _filled(c) if family(c.dtype) in ("integer", "boolean") else c
        for name, c in table.items()
    }
    frame = arrow(held).to_pandas(
        types_mapper={pa.string(): pd.StringDtype("python", na_value=float("nan"))}.get
    )
    return frame, held


def _filled(cells: Cells) -> Cells:
    some = next((x for x in cells.cells if x is not None), None)
    return replace(cells, cells=tuple(some if x is None else x for x in cells.cells))


def pandas_nullable(table: Table) -> tuple[pd.DataFrame, Table]:
    table = plain(without(table, wide, lambda d: family(d) in ("decimal", "date")))
    types = {
        **{
            getattr(pa, name.lower())(): getattr(pd, f"{name}Dtype")()
            for name in ("Int8", "Int16", "Int32", "Int64")
        },
        **{
            getattr(pa, name.lower())(): getattr(pd, f"{name}Dtype")()
            for name in ("UInt8", "UInt16", "UInt32", "UInt64")
        },
        pa.float32(): pd.Float32Dtype(),
        pa.float64(): pd.Float64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
        pa.string(): pd.StringDtype("python"),
    }
    return arrow(table).to_pandas(types_mapper=types.get), table


def pandas_pyarrow(table: Table) -> tuple[pd.DataFrame, Table]:
    table = finite(without(table, wide, wide_decimal))
    return arrow(table).to_pandas(types_mapper=pd.ArrowDtype), table


def pandas_object(table: Table) -> tuple[pd.DataFrame, Table]:
    """Texts become Python objects, some of them not Unicode, which are missing values.
    Other columns become numpy's.
    """
    frame, held = pandas_numpy(table)
    lone = ("\ud800", "a\udfff", "\udcff")
    for name, cells in held.items():
        if family(cells.dtype) == "string":
            values = [lone[i % 3] if x is None else x for i, x in enumerate(cells.cells)]
            frame[name] = pd.Series(values, dtype=object)
    return frame, held


def dask(table: Table) -> tuple[Any, Table]:
    """Three partitions, read as pandas' Arrow columns."""
    frame, held = pandas_pyarrow(table)
    return STARTED["dask_here"].from_pandas(
        frame, npartitions=3 if len(frame) else 1, sort=False
    ), held


# Databases

STARTED: dict[str, Any] = {}  # what runs beside the tests, once a test has started it


@functools.cache
def duckdb_connection(*settings: str) -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for setting in settings:
        connection.execute(setting)
    return connection


def storable(table: Table) -> Table:
    """The cells that DuckDB stores for sure: behind a text of other letters than ASCII it looks at
    no bytes, but in each part of some hundred kilobytes anew."""
    height = len(next(iter(table.values())).cells)
    if height <= ONE_PART:
        return table
    return _left_out(table, lambda dtype, cell: isinstance(cell, bytes))


ONE_PART = 1000  # rows


def stored(connection: Any, table: Table) -> str:
    """The name of a table of a DuckDB connection with these columns."""
    name = f"t{next(_NUMBER)}"
    brought = arrow(table)
    for n, c in table.items():
        if any(_infinite(c.dtype, x) for x in c.cells):
            signs = [math.copysign(1, x) if _infinite(c.dtype, x) else 0 for x in c.cells]
            brought = brought.append_column(f"{n} infinite", pa.array(signs, pa.int8()))
    connection.register("brought", brought)
    columns = (_in_duckdb(n, c, f"{n} infinite" in brought.column_names) for n, c in table.items())
    connection.execute(f"CREATE TABLE {name} AS SELECT {', '.join(columns)} FROM brought")
    connection.unregister("brought")
    return name


def _in_duckdb(name: str, cells: Cells, infinite: bool) -> str:
    if wide(cells.dtype):
        return f'CAST("{name}" AS HUGEINT) AS "{name}"'
    if not infinite:
        return f'"{name}"'
    end = (
        "CASE \"{0} infinite\" WHEN 1 THEN CAST('infinity' AS {1}) WHEN -1 THEN CAST('-infinity' "
        "AS {1}) "
    )
    zoned = getattr(cells.dtype, "time_zone", None) is not None
    dtype = (
        "DATE"
        if family(cells.dtype) == "date"
        else "TIMESTAMPTZ"
        if zoned
        else _TIMESTAMPS[cells.dtype.time_unit]
    )
    return end.format(name, dtype) + f'ELSE "{name}" END AS "{name}"'


_TIMESTAMPS = {"ms": "TIMESTAMP_MS", "us": "TIMESTAMP", "ns": "TIMESTAMP_NS"}


def duckdb(*settings: str, zone: str = "UTC") -> Callable[[Table], tuple[Any, Table]]:
    def made(table: Table) -> tuple[Any, Table]:
        connection = duckdb_connection(*settings, f"SET TimeZone = '{zone}'")
        table = storable(
            without(table, unsigned_wide, wide_decimal, zoned_elsewhere(zone), duration)
        )
        return connection.table(stored(connection, table)), table

    return made


@functools.cache
def ibis_connection(*settings: str) -> Any:
    import ibis

    backend = ibis.duckdb.connect()
    for setting in settings:
        backend.raw_sql(setting)
    return backend


def ibis(*settings: str) -> Callable[[Table], tuple[Any, Table]]:
    def made(table: Table) -> tuple[Any, Table]:
        backend = ibis_connection(*settings)
        table = storable(without(table, wide, wide_decimal, zoned_elsewhere("UTC"), duration))
        return backend.table(stored(backend.con, table)), table

    return made


def postgres(table: Table) -> tuple[Any, Table]:
    """Whole numbers are of the next type that PostgreSQL has.
    Its texts have no zero byte, its times no nanoseconds.
    """
    backend = STARTED["in_postgres"]
    table = without(table, wide, wide_decimal, duration, zoned_elsewhere("UTC"), nanoseconds)
    held = {name: _in_postgres(cells) for name, cells in table.items()}
    name = f"t{next(_NUMBER)}"
    kinds = {n: family(c.dtype) for n, c in held.items()}
    raw = ", ".join(
        f'"{n}" {"text" if kinds[n] in _ENDLESS else _written(c.dtype)}' for n, c in held.items()
    )
    made = ", ".join(
        _ENDLESS.get(kinds[n], "{0}").format(f'"{n}"', _written(c.dtype)) for n, c in held.items()
    )
    with backend.con.cursor() as cursor, backend.con.transaction():
        cursor.execute(f"CREATE TEMPORARY TABLE {name}_raw ({raw})")
        with cursor.copy(f"COPY {name}_raw FROM STDIN") as copy:
            for row in zip(*(_ticked(c) for c in held.values()), strict=True):
                copy.write_row(row)
        cursor.execute(f"CREATE TEMPORARY TABLE {name} AS SELECT {made} FROM {name}_raw")
        cursor.execute(f"DROP TABLE {name}_raw")
    return backend.table(name), held


def nanoseconds(dtype: Any) -> bool:
    return family(dtype) == "datetime" and dtype.time_unit == "ns"


_NEXT = {
    **{"Int8": nw.Int16(), "UInt8": nw.Int16(), "UInt16": nw.Int32(), "UInt32": nw.Int64()},
    "UInt64": nw.Decimal(20, 0),
}
_SQL = {
    **{
        "Int16": "smallint",
        "Int32": "integer",
        "Int64": "bigint",
        "Float32": "real",
        "Float64": "double precision",
    },
    **{"String": "text", "Boolean": "boolean", "Date": "date"},
}
_END = "CASE WHEN {0} LIKE '%infinity' THEN CAST({0} AS {1}) ELSE "
_DAYS_AND_CLOCK = (
    "CAST({0} AS BIGINT) / 86400000000 * INTERVAL '1 day' + CAST({0} AS BIGINT) % 86400000000 * "
    "INTERVAL '1 us'"
)
_ENDLESS = {  # dates from days, times from microseconds
    "date": _END + "DATE '1970-01-01' + CAST({0} AS INTEGER) END AS {0}",
    "datetime": _END + f"CAST('1970-01-01 00:00:00' AS {{1}}) + {_DAYS_AND_CLOCK} END AS {{0}}",
}


def _in_postgres(cells: Cells) -> Cells:
    lacking = lambda x: isinstance(x, bytes) or (isinstance(x, str) and "\0" in x)  # noqa: E731
    dtype = _NEXT.get(str(cells.dtype), cells.dtype)
    if family(dtype) == "datetime":
        dtype = nw.Datetime("us", dtype.time_zone)
    return replace(cells, dtype=dtype, cells=tuple(None if lacking(x) else x for x in cells.cells))


def _written(dtype: Any) -> str:
    if family(dtype) == "decimal":
        return f"numeric({dtype.precision}, {dtype.scale})"
    if family(dtype) == "datetime":
        return "timestamp" if dtype.time_zone is None else "timestamptz"
    return _SQL[str(dtype)]


def _ticked(cells: Cells) -> list[Any]:
    """Cells as COPY takes them; days and microseconds, or the words of infinite ones, as texts."""
    if family(cells.dtype) not in _ENDLESS:
        return list(cells.cells)
    unit = 1000 if family(cells.dtype) == "datetime" else 1
    words = {math.inf: "infinity", -math.inf: "-infinity"}
    return [None if x is None else words.get(x) or str(x // unit) for x in cells.cells]


_IN_SQLITE = {
    **{
        "Int8": "TINYINT",
        "Int16": "SMALLINT",
        "Int32": "INTEGER",
        "Int64": "BIGINT",
        "Float32": "REAL",
    },
    **{
        "Float64": "DOUBLE",
        "String": "TEXT",
        "Boolean": "BOOLEAN",
        "Date": "DATE",
        "Datetime": "TIMESTAMP",
    },
}


@functools.cache
def sqlite_connection() -> Any:
    import ibis

    return ibis.sqlite.connect()


def sqlite(collation: str = "") -> Callable[[Table], tuple[Any, Table]]:
    """SQLite has no unsigned whole numbers and no decimals, and its dates and times are texts.

    Each cell of a column of texts that is not UTF-8 is there as these bytes. An infinite time is a
    text too.
    """

    def made(table: Table) -> tuple[Any, Table]:
        backend, name = sqlite_connection(), f"t{next(_NUMBER)}"
        lacking = (wide, duration, zoned, nanoseconds, lambda d: family(d) == "decimal")
        table = without(table, *lacking, lambda d: family(d) == "integer" and str(d)[0] == "U")
        held = {n: _in_sqlite(cells) for n, cells in table.items()}
        declared = {n: _IN_SQLITE[str(c.dtype).partition("(")[0]] for n, c in held.items()}
        loose = {n: collation if family(c.dtype) == "string" else "" for n, c in held.items()}
        backend.con.execute(
            f"CREATE TABLE {name} ({', '.join(f'{n} {declared[n]} {loose[n]}' for n in held)})"
        )
        marks = ", ".join(
            "CAST(? AS TEXT)" if family(c.dtype) == "string" else "?" for c in held.values()
        )
        cells = zip(*(_cells_in_sqlite(c) for c in held.values()), strict=True)
        backend.con.executemany(f"INSERT INTO {name} VALUES ({marks})", list(cells))
        return backend.table(name), held

    return made


def _in_sqlite(cells: Cells) -> Cells:
    """The cells in the types that Ibis states for the declared ones."""
    stated = {"datetime": nw.Datetime("us"), "Int32": nw.Int64()}
    return replace(
        cells, dtype=stated.get(family(cells.dtype)) or stated.get(str(cells.dtype), cells.dtype)
    )


def _cells_in_sqlite(cells: Cells) -> list[Any]:
    """Cells as Python's sqlite3 takes them: texts as their bytes, days and times as texts."""
    kinds = family(cells.dtype)
    if kinds == "string":
        return [x.encode() if isinstance(x, str) else x for x in cells.cells]
    if kinds not in ("date", "datetime"):
        return list(cells.cells)
    return [None if x is None else _as_text(x, kinds) for x in cells.cells]


def _as_text(cell: Any, kinds: str) -> str:
    if isinstance(cell, float):
        return "infinity" if cell > 0 else "-infinity"
    micros = cell * 86_400_000_000 if kinds == "date" else cell // 1000
    days, rest = divmod(micros, 86_400_000_000)
    try:
        day = dt.date.fromordinal(days + dt.date(1970, 1, 1).toordinal()).isoformat()
    except (ValueError, OverflowError):
        return f"{days} days after 1970"
    hours, minutes, seconds = rest // 3_600_000_000, rest // 60_000_000 % 60, rest // 1_000_000 % 60
    clock = f" {hours:02}:{minutes:02}:{seconds:02}.{rest % 1_000_000:06}"
    return day if kinds == "date" else day + clock


@functools.cache
def datafusion_connection() -> Any:
    import datafusion
    import ibis

    return ibis.datafusion.connect(datafusion.SessionContext())


def datafusion(table: Table) -> tuple[Any, Table]:
    """DataFusion holds what Arrow has, except durations, zones and nanoseconds under dpframe."""
    backend = datafusion_connection()
    table = finite(without(table, wide, wide_decimal, zoned, duration, nanoseconds))
    return backend.table(stored_in_datafusion(backend.con, arrow(table))), table


def spark(**settings: str) -> Callable[[Table], tuple[Any, Table]]:
    """Spark has no nanoseconds, and neither Arrow's whole numbers
    without a sign nor its durations.
    """

    def made(table: Table) -> tuple[Any, Table]:
        session = STARTED["spark_session"]
        for setting in _SPARK_SETTINGS:
            session.conf.set(
                setting, settings.get(setting.rpartition(".")[2], _SPARK_SETTINGS[setting])
            )
        table = without(
            table,
            wide,
            wide_decimal,
            zoned,
            duration,
            nanoseconds,
            lambda d: family(d) == "integer" and str(d)[0] == "U",
        )
        table = finite(table)
        return session.createDataFrame(arrow(table)), table

    return made


_SPARK_SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.session.timeZone": "UTC",
}

# how tables enter Polars: the same computation follows, so few operations are asked of each
READERS = (
    Engine("pandas numpy", pandas_numpy, 100),
    Engine("pandas nullable", pandas_nullable, 100),
    Engine("pandas pyarrow", pandas_pyarrow, 100),
    Engine("pandas object", pandas_object, 100),
    Engine("pyarrow", pyarrow(lambda table: table), 100),
    Engine("pyarrow large", pyarrow(each(large)), 100),
    Engine("pyarrow view", pyarrow(each(view)), 100),
    Engine("pyarrow dictionary", pyarrow(each(dictionary)), 100),
    Engine("pyarrow run ends", pyarrow(each(run_ends)), 100),
    Engine("pyarrow chunked", pyarrow(each(chunked)), 100),
)
ENGINES = (
    Engine("polars", polars, 100),
    Engine("polars lazy", lazy, 100),
    Engine("duckdb", duckdb(), 60),
    Engine("duckdb nocase", duckdb("SET default_collation = 'nocase'"), 60),
    Engine("duckdb not ieee", duckdb("SET ieee_floating_point_ops = false"), 60),
    Engine("duckdb integer division", duckdb("SET integer_division = true"), 60),
    Engine("duckdb new york", duckdb(zone="America/New_York"), 60),
    Engine("ibis", ibis(), 40),
    Engine("ibis nocase", ibis("SET default_collation = 'nocase'"), 40),
    Engine("postgres", postgres, 40, needs="in_postgres"),
    Engine("sqlite", sqlite(), 40),
    Engine("sqlite nocase", sqlite("COLLATE NOCASE"), 40),
    Engine("datafusion", datafusion, 40),
    Engine("dask", dask, 100, needs="dask_here"),
    Engine("spark", spark(), 60, needs="spark_session", long=True),
    Engine("spark ansi", spark(enabled="true"), 60, needs="spark_session", long=True),
    Engine(
        "spark new york",
        spark(timeZone="America/New_York", caseSensitive="true"),
        60,
        needs="spark_session",
        long=True,
    ),
)


def rows_of(frame: Any, names: list[str], by: str = "r") -> dict[str, list[Any]]:
    """The values of some columns of a protected table, computed by its
    engine, ordered by another column.
    """
    columns = {name: step_of(frame).table.columns[name] for name in [by, *names]}
    step = step_of(frame)
    if source_of(step).data.engine == "dask":
        step = exchanged(step, _gathered)
    lowered = lower(step, {column.id for column in columns.values()})
    rows = lowered.to_native()
    ours = type(rows).__module__.startswith("ibis") and rows.get_backend().name in (
        "postgres",
        "sqlite",
        "datafusion",
    )
    read = (
        backend_of(lowered).collect([lowered])[0].to_dict(as_series=False) if ours else _read(rows)
    )
    order = sorted(range(len(read[columns[by].id])), key=read[columns[by].id].__getitem__)
    made = {}
    for name in names:
        values, dtype = read[columns[name].id], columns[name].domain.dtype
        if not isinstance(rows, pl.LazyFrame) and family(dtype) in ("datetime", "duration"):
            values = [None if x is None else x * NANO[dtype.time_unit] for x in values]
        made[name] = [values[i] for i in order]
    return made


def _gathered(source: Any) -> Any:
    """A table of Dask as Polars computes it: its partitions as workers
    read them, one below the other.
    """
    native = source.data.scan([name for name, _ in source.schema])
    parts = [part.compute() for part in native.to_delayed()]
    rows = pl.concat([partition_of(part, native._meta.dtypes.to_dict()) for part in parts])

    def scan(names: Any, *, empty: bool = False) -> pl.LazyFrame:
        return (rows.head(0) if empty else rows).lazy().select(names)

    return replace(source, data=Data(source.data.kind, source.data.schema, scan))


def _read(rows: Any) -> dict[str, list[Any]]:
    """A native frame's columns as Python values; times of Polars in nanoseconds."""
    if isinstance(rows, pl.LazyFrame):
        return {column.name: plain_values(column) for column in rows.collect()}
    if type(rows).__module__.startswith("pyspark"):
        return dict(zip(rows.columns, map(list, zip(*rows.collect(), strict=True)), strict=True))
    if hasattr(rows, "fetchall"):
        return dict(zip(rows.columns, _columns(rows.fetchall(), len(rows.columns)), strict=True))
    import ibis

    backend = rows.get_backend()
    read = backend.raw_sql(ibis.to_sql(rows, dialect=backend.name)).fetchall()
    return dict(zip(rows.columns, _columns(read, len(rows.columns)), strict=True))


def _columns(rows: list[Any], width: int) -> list[list[Any]]:
    """Rows as columns; texts, of which DuckDB holds the bytes, as texts."""
    columns = list(map(list, zip(*rows, strict=True))) if rows else [[] for _ in range(width)]
    return [[x.decode() if isinstance(x, bytes) else x for x in column] for column in columns]


def plain_values(column: pl.Series) -> list[Any]:
    """Values of Polars as `reference` has them: dates in days, times in nanoseconds."""
    if column.dtype == pl.Date:
        return column.to_physical().to_list()
    if isinstance(column.dtype, (pl.Datetime, pl.Duration)):
        scale = NANO[column.dtype.time_unit]
        return [None if x is None else x * scale for x in column.to_physical().to_list()]
    return column.to_list()
