"""Parquet files: those who write them, and the engines that scan them.

A file tells of each part of a column its smallest and its largest value, how many cells are null,
and sometimes which values occur. Engines skip parts of a file, and replace expressions by
constants, by what the file tells. Writers leave NaN out of the smallest and the largest value, cut
long texts off, and write 0.0 for -0.0.
"""

from __future__ import annotations

import functools
import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from engines import (
    STARTED,
    Engine,
    Table,
    arrow,
    datafusion_connection,
    duckdb_connection,
    duration,
    ibis_connection,
    nanoseconds,
    plain,
    wide,
    wide_decimal,
    without,
    zoned_elsewhere,
)
from reference import family

__all__ = ["LONG_SCANNERS", "SCANNERS", "WRITERS"]

_ROWS = 4  # of a part of a file, which has statistics of its own
_NUMBER = itertools.count()
Write = Callable[[pa.Table, str], None]


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="dpframe-conformance-")


def _by_polars(table: pa.Table, path: str) -> None:
    pl.from_arrow(table).write_parquet(path, row_group_size=_ROWS, statistics="full")


def _by_polars_in_one(table: pa.Table, path: str) -> None:
    pl.from_arrow(table).write_parquet(path)


def _by_pyarrow(table: pa.Table, path: str) -> None:
    pq.write_table(
        table, path, row_group_size=_ROWS, data_page_size=64, write_page_index=True, version="2.6"
    )


def _by_pyarrow_as_codes(table: pa.Table, path: str) -> None:
    pq.write_table(table, path, use_dictionary=True, store_schema=False, data_page_version="2.0")


def _by_duckdb(table: pa.Table, path: str) -> None:
    connection = duckdb_connection()
    connection.register("to_write", table)
    connection.execute(
        f"COPY (SELECT * FROM to_write) TO '{path}' (FORMAT PARQUET, ROW_GROUP_SIZE {_ROWS})"
    )
    connection.unregister("to_write")


def _by_pandas(table: pa.Table, path: str) -> None:
    """pandas keeps Arrow's types, so that NaN is not null."""
    table.to_pandas(types_mapper=pd.ArrowDtype).to_parquet(path, row_group_size=_ROWS)


WRITERS: dict[str, Write] = {
    "polars": _by_polars,
    "polars in one": _by_polars_in_one,
    "pyarrow": _by_pyarrow,
    "pyarrow codes": _by_pyarrow_as_codes,
    "duckdb": _by_duckdb,
    "pandas": _by_pandas,
}


def _scanner(
    name: str, scan: Callable[[str], Any], *lacking: Callable[[Any], bool], **more: Any
) -> Any:
    """For a writer, the engine that scans its files."""

    def of(writer: str) -> Engine:
        def made(table: Table) -> tuple[Any, Table]:
            # DuckDB writes times of every zone as times of UTC
            own = (_UTC,) if writer == "duckdb" else ()
            table = plain(without(table, wide, wide_decimal, duration, nanoseconds, *lacking, *own))
            path = str(Path(_folder().name) / f"t{next(_NUMBER)}.parquet")
            WRITERS[writer](arrow(table), path)
            return scan(path), table

        return Engine(f"{name} of {writer}", made, 60, **more)

    return name, of


def _unsigned(dtype: Any) -> bool:
    return family(dtype) == "integer" and str(dtype)[0] == "U"


def _zoned(dtype: Any) -> bool:
    return getattr(dtype, "time_zone", None) is not None


def _unsigned_wide(dtype: Any) -> bool:
    return str(dtype) == "UInt64"


def _no_decimal(dtype: Any) -> bool:
    return family(dtype) == "decimal"


def _filtered(path: str) -> Any:
    """A relation with a step of the user's own that keeps all rows."""
    return duckdb_connection().sql(
        f"SELECT * FROM (SELECT * FROM '{path}') WHERE r >= 0 OR r IS NULL"
    )


_UTC = zoned_elsewhere("UTC")
SCANNERS = dict(
    [
        _scanner("polars", pl.scan_parquet),
        _scanner("polars dataset", lambda path: pl.scan_pyarrow_dataset(ds.dataset(path))),
        _scanner("pyarrow", pq.read_table),
        _scanner("duckdb", lambda path: duckdb_connection().read_parquet(path), _UTC),
        _scanner("duckdb filtered", _filtered, _UTC),
        _scanner(
            "duckdb dataset", lambda path: duckdb_connection().from_arrow(ds.dataset(path)), _UTC
        ),
        _scanner("ibis", lambda path: ibis_connection().read_parquet(path), _UTC),
        _scanner(
            "datafusion",
            lambda path: datafusion_connection().read_parquet(path),
            _unsigned_wide,
            _zoned,
        ),
        _scanner("pandas", lambda path: pd.read_parquet(path, dtype_backend="pyarrow")),
        _scanner("dask", lambda path: _in_dask(path), needs="dask_here"),
    ]
)
LONG_SCANNERS = dict(
    [
        _scanner(
            "spark",
            lambda path: _in_spark(path),
            _unsigned,
            _zoned,
            needs="spark_session",
            long=True,
        )
    ]
)


def _in_dask(path: str) -> Any:
    return STARTED["dask_here"].read_parquet(path, dtype_backend="pyarrow", split_row_groups=True)


def _in_spark(path: str) -> Any:
    return STARTED["spark_session"].read.parquet(path)
