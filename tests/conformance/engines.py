"""The engines: how each of them is given a table of hostile cells, and how rows of it are read back.

To add one: a line in `ENGINES`. An engine gives the table and the cells that it holds after its users' own conversion:
a pandas column of numpy's integers has no null, for example. Columns of a type that it has not are left out.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
from cells import Cells
from reference import NANO, family

from dpframe.engine.stages.rows import lower

__all__ = ["ENGINES", "READERS", "Brought", "Engine", "Table", "rows_of"]

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
    """A name; how a table is brought; how many expressions one query takes; whether it is quick."""

    name: str
    make: Callable[[Table], tuple[Any, Table]]
    batch: int
    long: bool = False

    def bring(self, table: Table) -> Brought:
        """A table with "r", the number of a row, beside the columns that the engine can have."""
        height = len(next(iter(table.values())).cells)
        numbered = {"r": Cells("r", nw.Int64(), tuple(range(height))), **table}
        native, held = self.make(numbered)
        return Brought(native, held, height)


def column(cells: Cells) -> pa.Array:
    """Cells as Arrow holds them; whole numbers beyond 64 bits as texts."""
    dtype, values = cells.dtype, list(cells.cells)
    if isinstance(dtype, (nw.Int128, nw.UInt128)):
        return pa.array([None if x is None else str(x) for x in values], pa.string())
    if family(dtype) == "integer":
        return pa.array(values, getattr(pa, str(dtype).lower())())
    if isinstance(dtype, nw.Date):
        return pa.array(values, pa.int32()).cast(pa.date32())
    if family(dtype) in ("datetime", "duration"):
        ticks = pa.array([None if x is None else x // NANO[dtype.time_unit] for x in values], pa.int64())
        zone = getattr(dtype, "time_zone", None)
        return ticks.cast(
            pa.timestamp(dtype.time_unit, zone) if family(dtype) == "datetime" else pa.duration(dtype.time_unit)
        )
    if family(dtype) == "decimal":
        return pa.array(
            values, (pa.decimal128 if dtype.precision <= 38 else pa.decimal256)(dtype.precision, dtype.scale)
        )
    types = {
        "string": pa.string(),
        "boolean": pa.bool_(),
        "float": pa.float32() if isinstance(dtype, nw.Float32) else pa.float64(),
    }
    return pa.array(values, types[family(dtype)])


def arrow(table: Table) -> pa.Table:
    """A table as Arrow holds it."""
    return pa.table({name: column(cells) for name, cells in table.items()})


def without(table: Table, *lacking: Callable[[Any], bool]) -> Table:
    """The columns of types that an engine has."""
    return {name: cells for name, cells in table.items() if not any(lacks(cells.dtype) for lacks in lacking)}


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
    table = without(table, wide_decimal)
    frame = pl.from_arrow(arrow(table))
    casts = [pl.col(name).cast(getattr(pl, str(c.dtype))) for name, c in table.items() if wide(c.dtype)]
    return frame.with_columns(casts), table


def lazy(table: Table) -> tuple[pl.LazyFrame, Table]:
    frame, held = polars(table)
    return frame.lazy(), held


def pyarrow(change: Callable[[pa.Table], pa.Table]) -> Callable[[Table], tuple[pa.Table, Table]]:
    def made(table: Table) -> tuple[pa.Table, Table]:
        table = without(table, wide)
        return change(arrow(table)), table

    return made


def each(change: Callable[[pa.ChunkedArray], Any]) -> Callable[[pa.Table], pa.Table]:
    """A change of every column but the number of the row."""
    return lambda table: pa.table({n: table[n] if n == "r" else change(table[n]) for n in table.column_names})


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
    starts = list(itertools.takewhile(lambda x: x < len(array), (i * (i - 1) // 2 for i in itertools.count(1))))
    parts = [array.slice(at, size) for size, at in enumerate(starts, start=1)]
    return pa.chunked_array(
        [chunk for part in parts for chunk in [array.slice(0, 0), part]] and [c for p in parts for c in p.chunks],
        type=array.type,
    )


def pandas_numpy(table: Table) -> tuple[pd.DataFrame, Table]:
    """Whole numbers and truths of numpy have no null: there stands another cell."""
    table = without(table, wide, lambda d: family(d) in ("decimal", "date"))
    held = {name: _filled(c) if family(c.dtype) in ("integer", "boolean") else c for name, c in table.items()}
    frame = arrow(held).to_pandas(types_mapper={pa.string(): pd.StringDtype("python", na_value=float("nan"))}.get)
    return frame, held


def _filled(cells: Cells) -> Cells:
    some = next((x for x in cells.cells if x is not None), None)
    return replace(cells, cells=tuple(some if x is None else x for x in cells.cells))


def pandas_nullable(table: Table) -> tuple[pd.DataFrame, Table]:
    table = without(table, wide, lambda d: family(d) in ("decimal", "date"))
    types = {
        **{getattr(pa, name.lower())(): getattr(pd, f"{name}Dtype")() for name in ("Int8", "Int16", "Int32", "Int64")},
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
    table = without(table, wide, wide_decimal)
    return arrow(table).to_pandas(types_mapper=pd.ArrowDtype), table


def pandas_object(table: Table) -> tuple[pd.DataFrame, Table]:
    """Texts as Python objects, among them some that are no Unicode, which are missing; the rest as numpy holds it."""
    frame, held = pandas_numpy(table)
    lone = ("\ud800", "a\udfff", "\udcff")
    for name, cells in held.items():
        if family(cells.dtype) == "string":
            values = [lone[i % 3] if x is None else x for i, x in enumerate(cells.cells)]
            frame[name] = pd.Series(values, dtype=object)
    return frame, held


# Databases


@functools.cache
def duckdb_connection(*settings: str) -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for setting in settings:
        connection.execute(setting)
    return connection


def stored(connection: Any, table: Table) -> str:
    """The name of a table of a DuckDB connection with these columns."""
    name = f"t{next(_NUMBER)}"
    brought = arrow(table)
    connection.register("brought", brought)
    columns = (f'CAST("{n}" AS HUGEINT) AS "{n}"' if wide(c.dtype) else f'"{n}"' for n, c in table.items())
    connection.execute(f"CREATE TABLE {name} AS SELECT {', '.join(columns)} FROM brought")
    connection.unregister("brought")
    return name


def duckdb(*settings: str, zone: str = "UTC") -> Callable[[Table], tuple[Any, Table]]:
    def made(table: Table) -> tuple[Any, Table]:
        connection = duckdb_connection(*settings, f"SET TimeZone = '{zone}'")
        table = without(table, unsigned_wide, wide_decimal, zoned_elsewhere(zone), duration)
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
        table = without(table, wide, wide_decimal, zoned_elsewhere("UTC"), duration)
        return backend.table(stored(backend.con, table)), table

    return made


def spark(**settings: str) -> Callable[[Table], tuple[Any, Table]]:
    def made(table: Table) -> tuple[Any, Table]:
        session = SPARK["session"]
        for name, value in settings.items():
            session.conf.set(f"spark.sql.{name.replace('__', '.')}", value)
        table = without(
            table, wide, wide_decimal, zoned, duration, lambda d: family(d) == "integer" and str(d)[0] == "U"
        )
        return session.createDataFrame(arrow(table)), table

    return made


SPARK: dict[str, Any] = {}  # the session, once a test has started it

READERS = (  # how tables enter Polars: the same computation follows, so few operations are asked of each
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
    Engine("spark", spark(), 60, long=True),
    Engine("spark ansi", spark(ansi__enabled="true"), 60, long=True),
    Engine("spark new york", spark(session__timeZone="America/New_York", caseSensitive="true"), 60, long=True),
)


def rows_of(frame: Any, names: list[str]) -> dict[str, list[Any]]:
    """The values of some columns of a protected table as its engine computes them, in the order of "r"."""
    columns = {name: frame._step.table.columns[name] for name in ["r", *names]}
    rows = lower(frame._step, {column.id for column in columns.values()}).to_native()
    read = _read(rows)
    order = sorted(range(len(read[columns["r"].id])), key=read[columns["r"].id].__getitem__)
    made = {}
    for name in names:
        values, dtype = read[columns[name].id], columns[name].domain.dtype
        if not isinstance(rows, pl.LazyFrame) and family(dtype) == "datetime":
            values = [None if x is None else x * NANO[dtype.time_unit] for x in values]
        made[name] = [values[i] for i in order]
    return made


def _read(rows: Any) -> dict[str, list[Any]]:
    """A native frame's columns as Python values; times of Polars in nanoseconds."""
    if isinstance(rows, pl.LazyFrame):
        return {column.name: _plain(column) for column in rows.collect()}
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


def _plain(column: pl.Series) -> list[Any]:
    if column.dtype == pl.Date:
        return column.to_physical().to_list()
    if isinstance(column.dtype, (pl.Datetime, pl.Duration)):
        scale = NANO[column.dtype.time_unit]
        return [None if x is None else x * scale for x in column.to_physical().to_list()]
    return column.to_list()
