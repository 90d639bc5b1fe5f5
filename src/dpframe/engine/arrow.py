"""Tables through Arrow: PyArrow's own, and pandas'. Only the columns that a query reads are converted."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from dpframe.engine.tables import Data, facts_of
from dpframe.plan.columns import Facts
from dpframe.plan.types import Unread

__all__ = ["from_modin", "from_pandas", "from_pyarrow", "of_type"]

# PyArrow


def _plain_type(dtype: pa.DataType) -> pa.DataType:
    encoded = pa.types.is_dictionary(dtype) or pa.types.is_run_end_encoded(dtype)
    return dtype.value_type if encoded else dtype


def _arrow_schema(fields: Sequence[pa.Field]) -> tuple[tuple[str, Facts], ...]:
    facts = []
    for f in fields:
        if pa.types.is_decimal256(_plain_type(f.type)):  # which makes Polars panic, and write about it
            facts.append((f.name, Facts(Unread(f"{f.type} (first: table.cast, to decimal128 or float64)"))))
            continue
        try:
            empty = pl.from_arrow(pa.table({"x": pa.array([], type=_plain_type(f.type))}))
            known = facts_of(nw.from_native(empty, eager_only=True).schema["x"])  # type: ignore[type-var]
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a type without a counterpart only matters when the column is used; Polars may panic
            known = Facts(nw.Unknown())
        facts.append((f.name, known))
    return tuple(facts)


def _and_unnamed(schema: tuple[tuple[str, Facts], ...], names: Iterable[object]) -> tuple[tuple[str, Facts], ...]:
    """The columns of a schema, and those that no name can mean, each with the line that gives it one; never read."""
    found = dict(schema)
    for name, many in Counter(names).items():
        if isinstance(name, tuple):
            what = "unread (flatten its name first: df.columns = ['_'.join(map(str, c)) for c in df.columns])"
        elif not isinstance(name, str):
            what = "unread (its name is no text; first: df.columns = df.columns.astype(str))"
        elif many > 1:
            what = f"unread ({many} columns have this name; first: df.columns = [...], each with its own)"
        else:
            continue
        found.setdefault(str(name), Facts(Unread(what)))
    return tuple(found.items())


def _from_arrow(columns: dict[str, Any], height: int) -> pl.LazyFrame:
    """Columns as a lazy frame; where none is wanted, the rows are still there to be counted."""
    columns = columns or {"": pa.nulls(height, pa.bool_())}
    numbered = pa.Table.from_arrays(list(columns.values()), names=[str(i) for i in range(len(columns))])
    rows = pl.from_arrow(numbered)
    assert isinstance(rows, pl.DataFrame)
    rows.columns = list(columns)  # on the way, a name "" would become another one
    return rows.lazy()


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_run_end_encoded(column.type):
        chunks = [pc.run_end_decode(chunk) for chunk in column.chunks]
        return _seconds(pa.chunked_array(chunks, type=column.type.value_type))
    if not pa.types.is_dictionary(column.type):
        return _seconds(column)
    chunks = [chunk.dictionary_decode() for chunk in column.chunks]
    return _seconds(pa.chunked_array(chunks, type=column.type.value_type))


def _seconds(column: Any) -> Any:
    """Times in seconds become milliseconds; null where those do not fit, or they would wrap onto other times.

    Of decimals of 76 digits, which Polars has not, only whether there is a value is left.
    """
    if pa.types.is_decimal256(column.type):
        return pc.if_else(column.is_valid(), pa.scalar(True), pa.scalar(None, pa.bool_()))
    if not (pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type)) or column.type.unit != "s":
        return column
    ticks, most = column.cast(pa.int64()), 9 * 10**15
    fits = pc.and_(pc.less_equal(ticks, most), pc.greater_equal(ticks, -most))
    return pc.if_else(fits, column, pa.scalar(None, column.type))


def from_pyarrow(table: Any) -> Data | None:
    """A PyArrow Table; None for anything else."""
    if not isinstance(table, pa.Table):
        return None
    names = table.column_names
    unique = [name for name in names if names.count(name) == 1]

    def scan(wanted: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
        rows = table.slice(0, 0) if empty else table
        return _from_arrow({name: _decoded(rows.column(name)) for name in wanted}, rows.num_rows)

    schema = _arrow_schema([table.schema.field(name) for name in unique])
    return Data("pyarrow", _and_unnamed(schema, names), scan)


# pandas


def from_pandas(frame: Any) -> Data | None:
    """A pandas DataFrame, as it is now; None for anything else."""
    if not isinstance(frame, pd.DataFrame):
        return None
    frame = frame.copy(deep=False)
    counts = frame.columns.value_counts()
    names = [name for name in frame.columns if isinstance(name, str) and counts[name] == 1]
    dtypes = {name: frame.dtypes[name] for name in names}

    def scan(wanted: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
        rows = frame.iloc[:0] if empty else frame
        return _from_arrow({name: _from_pandas(rows[name]) for name in wanted}, len(rows))

    schema = dict(_arrow_schema([pa.field(name, _pandas_type(dtype)) for name, dtype in dtypes.items()]))
    schema |= {name: Facts(Unread(what)) for name, dtype in dtypes.items() if (what := _unread(name, dtype))}
    return Data("pandas", _and_unnamed(tuple(schema.items()), frame.columns), scan)


def _unread(name: str, dtype: Any) -> str:
    """A type that Arrow does not take, and what to type before; "" for others."""
    if isinstance(dtype, pd.PeriodDtype):
        return f"{dtype} (make it a time first: df[{name!r}].dt.to_timestamp())"
    if isinstance(dtype, pd.SparseDtype):
        return f"{dtype} (first: df[{name!r}].sparse.to_dense())"
    return f"{dtype} (make it a text first: df[{name!r}].astype(str))" if isinstance(dtype, pd.IntervalDtype) else ""


def from_modin(frame: Any) -> Data | None:
    """A Modin DataFrame: pandas' types, and of its rows the columns that a query reads; None for anything else."""
    if type(frame).__name__ != "DataFrame":
        return None
    frame = frame.copy()  # whose parts are shared until one of them is written
    dtypes = {name: frame.dtypes[name] for name in frame.columns if list(frame.columns).count(name) == 1}
    types = from_pandas(pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in dtypes.items()}))
    assert types is not None

    def scan(wanted: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
        if empty or not wanted:
            rows = pl.LazyFrame({"": pl.repeat(None, 0 if empty else len(frame), eager=True)})
            return types.scan(wanted, empty=True) if wanted else rows
        part = frame[list(wanted)].modin.to_pandas()
        return pl.DataFrame({name: of_type(part[name], dtypes[name]) for name in wanted}).lazy()

    return Data("pandas", _and_unnamed(types.schema, frame.columns), scan)


def _pandas_type(dtype: Any) -> pa.DataType:
    """The Arrow type of a pandas type. Objects are read as text: what they hold is not for the schema to know."""
    if isinstance(dtype, pd.CategoricalDtype):
        return _pandas_type(dtype.categories.dtype)
    if isinstance(dtype, pd.ArrowDtype):
        return _plain_type(dtype.pyarrow_dtype)
    if dtype == "object" or isinstance(dtype, pd.StringDtype):
        return pa.string()
    try:
        return pa.Array.from_pandas(pd.Series([], dtype=dtype)).type
    except Exception:  # periods, intervals, sparse columns: only matter when used
        return pa.list_(pa.null())


def _from_pandas(series: Any) -> Any:
    wanted = _pandas_type(series.dtype)
    if isinstance(series.dtype, pd.CategoricalDtype):
        codes = pa.array(series.cat.codes.to_numpy(), mask=(series.cat.codes < 0).to_numpy())
        values = _from_pandas(pd.Series(series.cat.categories))
        return values.take(codes) if len(values) else pa.nulls(len(series), wanted)
    if series.dtype == "object" or isinstance(series.dtype, pd.StringDtype):
        return _texts(series)
    return _seconds(_one_array(pa.Array.from_pandas(series, type=wanted)))


def of_type(series: Any, dtype: Any) -> pl.Series:
    """A column of one partition, read by the type that it has in the whole table; null where that does not hold it."""
    wanted = pl.from_arrow(pa.table({"x": pa.array([], type=_pandas_type(dtype))})).schema["x"]  # type: ignore[union-attr]
    other = series.dtype != dtype and wanted == pl.String
    read = pl.Series(_texts(series.astype(object)) if other else _from_pandas(series))
    return read.cast(wanted, strict=False)


def _one_array(array: Any) -> Any:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _texts(series: Any) -> pa.Array:
    """A column of Python objects as text, object by object, so that no row decides how another is read.

    Arrow converts texts at once, and to the same as `_text`; anything else among them is left to it.
    """
    if pd.api.types.infer_dtype(series, skipna=True) in ("string", "empty"):
        try:
            return _one_array(pa.Array.from_pandas(series, type=pa.string()))
        except (pa.ArrowException, ValueError):
            pass  # a text that is no Unicode
    return pa.array([_text(value) for value in series], type=pa.string())


def _text(value: object) -> str | None:
    """One object as text: equal numbers have one text; what is missing, or has no text, is null."""
    try:
        if pd.api.types.is_scalar(value) and pd.isna(value):  # type: ignore[call-overload]
            return None
        if isinstance(value, str):
            text = str.__str__(value)
        elif isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, (bool, np.bool_)):
            text = _number_text(value)
        else:
            text = str(value)
        text.encode()
    except Exception:  # the value's own code may raise anything
        return None
    return text


def _number_text(value: Any) -> str:
    if not math.isfinite(value):
        return str(float(value))
    exact = Fraction(value if isinstance(value, (Decimal, int, float, Fraction)) else value.item())
    if exact.denominator == 1:
        return str(exact.numerator)
    return repr(float(exact)) if Fraction(float(exact)) == exact else f"{exact.numerator}/{exact.denominator}"
