"""Tables that users bring, and their schemas.

pandas and PyArrow tables are converted to Polars through Arrow, and only the columns that a query
reads. The schema follows from the types alone, never from values. So neighbouring tables have one
schema.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import polars as pl

from dpframe.engine.backends import backend_taking
from dpframe.engine.forks import check_connection, check_process, check_threads
from dpframe.engine.origins import check_there, no_file, says_missing, versions
from dpframe.engine.tables import Data
from dpframe.errors import DpFrameError, InvalidArgument, UnsupportedOperation, kind_of
from dpframe.plan import Bounds, Kind, check_names, kind

# From a package to the line to type for its tables, where there is one.
_THROUGH_IBIS = "give a table through Ibis, as in dp.protect(ibis.{}.table('visits'), ...)"
_FILE = "read it first, as in pl.scan_parquet('visits.parquet'), or pd.read_csv('visits.csv')"
_WAYS: Mapping[str, str] = {
    "_duckdb": "give a table, as in dp.protect(connection.table('visits'), ...)",
    "ibis": "give a table, as in dp.protect(connection.table('visits'), ...)",
    "pathlib": _FILE,
    "psycopg": _THROUGH_IBIS.format("postgres.connect(database='shop')"),
    "sqlalchemy": _THROUGH_IBIS.format("postgres.connect(database='shop')"),
    "sqlite3": _THROUGH_IBIS.format("sqlite.connect('visits.db')"),
    "datafusion": "take it through Ibis, which starts on DataFusion 50 and before: "
    "session.register_view('rows', frame), then "
    "dp.protect(ibis.datafusion.connect(session).table('rows'), ...)",
}


def adopt(frame: object) -> Data:
    """Take in a table of any engine.

    Output: Data; no row is read or converted yet
    Errors: UnsupportedOperation for an object that is no table of a known engine, and in a fork in
            which the engine does not answer; MissingFile where a file of the table is not there
    """
    check_process()
    check_connection(frame)
    data, is_missing = None, False
    try:
        engine = backend_taking(frame)
        data = None if engine is None else engine.adopt(frame)
    except DpFrameError:
        raise
    except Exception as error:
        if not says_missing(error):
            raise
        is_missing = True
    if is_missing:
        raise no_file()
    if data is None:
        raise UnsupportedOperation(
            "dpframe protects pandas and Modin DataFrames, Polars DataFrames and LazyFrames, "
            "PyArrow Tables, DuckDB relations, Ibis tables, Spark and Dask DataFrames, not "
            f"{kind_of(frame)}{_package(frame)}."
        )
    check_there(data.watched or data.files)
    check_threads(data)
    if data.stated is not None:
        types: Mapping[str, str] | None = None
        # a database that cannot be asked, to which only the query itself can tell
        with suppress(Exception):
            types = data.stated()
        data = replace(data, stated=None) if types is None else replace(data, types=types)
    return replace(data, versions=versions(data.watched)) if data.watched else data


def _package(frame: object) -> str:
    """The package of a type, as an ending of the message:
    another library's type may be called DataFrame too.

    The text is empty for types of Python itself.
    """
    package = type(frame).__module__.partition(".")[0]
    way = _WAYS.get(package, "convert it to one of these first")
    if isinstance(frame, str):
        return (
            f": {_FILE}. The table of a database is "
            "dp.protect(ibis.connect('...').table('visits'), ...)"
        )
    return "" if package == "builtins" else f" of {package}: {way}"


def public(frame: object) -> Data:
    """A public table, or a dict of columns, read now and copied.
    Columns of types that no engine can read are left out.

    Errors: UnsupportedOperation for an object that is no table, or cannot be read; InvalidArgument
            for a dict that is no table, or for a column whose name is a pattern
    """
    if isinstance(frame, Mapping):
        try:
            frame = pl.DataFrame(dict(frame))
        except Exception:
            frame = None
        if frame is None:
            raise InvalidArgument(
                "A public table given as a dict has columns of one length, each of one type."
            )
    data = adopt(frame)
    has_order = data.engine == "polars"
    if not has_order:
        data = adopt(_fetched(frame))
    readable = {name: domain for name, domain in data.schema if kind(domain.dtype) != Kind.OTHER}
    check_names(readable)
    rows: pl.DataFrame = data.scan(list(readable)).collect()
    rows = rows if has_order else rows.sort(rows.columns)
    # a copy of the memory
    rows = rows.select(pl.all().gather(pl.int_range(rows.height))) if rows.height else rows

    def scan(names: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
        return rows.lazy().select(names)

    return Data(data.kind, tuple(readable.items()), scan)


def _fetched(frame: object) -> pl.DataFrame:
    """The rows of a public table.
    Errors: UnsupportedOperation for a cell that Python cannot hold.
    """
    engine, problem = backend_taking(frame), ""
    assert engine is not None
    try:
        return engine.fetch(frame)
    except DpFrameError:
        raise
    except Exception as error:
        problem = str(error)
    raise UnsupportedOperation(
        f"The public table cannot be read: {problem}. Leave such cells out, or bring it as a "
        "Polars table."
    )


_ENDS: Mapping[Kind, tuple[Any, Any]] = {
    Kind.FLOAT: (-1e270, 1e270),
    Kind.DATE: (dt.date.min, dt.date.max),
}  # of bounds: see `check_bound`
_MOST_KEYS = 1_000  # different values of a public column that are its keys


def values_of(data: Data) -> dict[str, tuple[Bounds | None, tuple[Any, ...] | None]]:
    """For columns of a public table their smallest and largest value, and their
    different values, up to 1,000.

    Numbers and dates have bounds, if they are not all one; texts, whole numbers and dates have
    keys, in the order of the table. Null, NaN, dates that Python does not have, and floats that no
    bound may have are neither. The rows are public, so nothing of them is private.
    """
    table: pl.DataFrame = data.scan(data.columns).collect()
    found: dict[str, tuple[Bounds | None, tuple[Any, ...] | None]] = {}
    for name, domain in data.schema:
        family, column = kind(domain.dtype), table[name].drop_nulls()
        if domain.keys is not None or family not in (
            Kind.STRING,
            Kind.INTEGER,
            Kind.FLOAT,
            Kind.DATE,
        ):
            continue
        if family in _ENDS:
            column = column.filter(column.is_between(*_ENDS[family]))
        low, high = (None, None) if family is Kind.STRING else (column.min(), column.max())
        keys = None if family is Kind.FLOAT else tuple(column.unique(maintain_order=True))
        bounds = None if low is None or low == high else Bounds(low, high)  # type: ignore[arg-type]
        found[name] = bounds, keys if keys and len(keys) <= _MOST_KEYS else None
    return found


def content(data: Data) -> str:
    """A digest of a public table.
    Two tables have one digest only if they hold the same rows in the same order.
    """
    buffer = io.BytesIO()
    data.scan(data.columns).collect().write_ipc(buffer, compat_level=pl.CompatLevel.oldest())
    return hashlib.sha256(buffer.getvalue()).hexdigest()[:16]
