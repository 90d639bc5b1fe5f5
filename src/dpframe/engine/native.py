"""Tables in and out: what users bring, the schema it has, and the same kind of table given back.

pandas and PyArrow tables enter Polars through Arrow, only the columns that a query reads. The schema is taken from the
types alone, never from values, so that it is the same for neighbouring tables.
"""

from __future__ import annotations

import hashlib
import io
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan.columns import Bounds, Facts
from dpframe.plan.types import kind

__all__ = ["Data", "Kind", "adopt", "as_kind", "content", "polars_dtype", "public"]

Kind = Literal["polars", "pyarrow", "pandas"]


@dataclass(frozen=True, eq=False, repr=False)
class Data:
    """A table that only the engine reads: its schema is public, its rows are not.

    `scan(names)` gives the named columns as a lazy frame; with `empty=True` the same columns without a row.
    `kind` is what the user brought, and what a released table is given back as.
    """

    kind: Kind
    schema: tuple[tuple[str, Facts], ...]
    scan: Callable[..., pl.LazyFrame] = field(repr=False)
    lazy: bool = False

    def __repr__(self) -> str:
        return f"<{self.kind}>"

    def __reduce__(self) -> Any:
        raise UnsupportedOperation("A protected table cannot be pickled or copied out: the copy would hold raw rows.")


def adopt(frame: Any) -> Data:
    """Take in a pandas DataFrame, a Polars DataFrame or LazyFrame, or a PyArrow Table.

    Output: Data; nothing is read or converted yet
    Errors: UnsupportedOperation for anything else
    """
    if isinstance(frame, pl.DataFrame):
        return _polars(frame.lazy())
    if isinstance(frame, pl.LazyFrame):
        return _polars(frame, lazy=True)
    if isinstance(frame, pa.Table):
        return _pyarrow(frame)
    if type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "iloc") and hasattr(frame, "columns"):
        return _pandas(frame)
    raise UnsupportedOperation(
        f"dpframe protects pandas DataFrames, Polars DataFrames and LazyFrames and PyArrow Tables, "
        f"not a {type(frame).__name__}."
    )


def public(frame: Any) -> Data:
    """A public table, or a dict of columns, as it is now: read, copied, and without the columns that nothing can read.

    Errors: UnsupportedOperation for anything that is no table; InvalidArgument for a dict that is no table
    """
    if isinstance(frame, Mapping):
        try:
            frame = pl.DataFrame(dict(frame))
        except Exception:
            frame = None
        if frame is None:
            raise InvalidArgument("A public table given as a dict has columns of one length, each of one type.")
    data = adopt(frame)
    readable = {name: facts for name, facts in data.schema if kind(facts.dtype) != "other"}
    rows = data.scan(list(readable)).collect()
    rows = rows.select(pl.all().gather(pl.int_range(rows.height))) if rows.height else rows  # no memory is shared

    def scan(names: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
        return rows.lazy().select(names)

    return Data(data.kind, tuple(readable.items()), scan)


def content(data: Data) -> str:
    """A short text that two public tables share only when they hold the same rows in the same order."""
    buffer = io.BytesIO()
    data.scan([name for name, _ in data.schema]).collect().write_ipc(buffer, compat_level=pl.CompatLevel.oldest())
    return hashlib.sha256(buffer.getvalue()).hexdigest()[:16]


def as_kind(table: pl.DataFrame, kind: Kind) -> Any:
    """A released table as the kind of table that the user brought."""
    if kind == "pandas":
        return table.to_pandas()
    return table.to_arrow() if kind == "pyarrow" else table


def polars_dtype(dtype: DType) -> Any:
    """The Polars type of a plan's type."""
    if isinstance(dtype, nw.Enum):
        return pl.Enum(list(dtype.categories))
    if isinstance(dtype, nw.Datetime):
        return pl.Datetime("ms" if dtype.time_unit == "s" else dtype.time_unit, dtype.time_zone)
    if isinstance(dtype, nw.Duration):
        return pl.Duration("ms" if dtype.time_unit == "s" else dtype.time_unit)
    if isinstance(dtype, nw.Categorical):
        return pl.String()
    if dtype.is_decimal():
        return pl.Float64()
    return getattr(pl, type(dtype).__name__)()


def _facts(dtype: DType) -> Facts:
    """What a type alone says of a column: Enum categories are public keys, categories of a Categorical are not."""
    if isinstance(dtype, nw.Enum):
        return Facts(dtype, True, None, tuple(dtype.categories), "the column's Enum type")
    if isinstance(dtype, nw.Categorical):
        return Facts(nw.String())
    if isinstance(dtype, nw.Boolean):
        return Facts(dtype, True, Bounds(0, 1), None, "the column's Boolean type")
    return Facts(dtype)


# Polars


def _polars(frame: pl.LazyFrame, *, lazy: bool = False) -> Data:
    schema = frame.collect_schema()
    typed = nw.from_native(pl.DataFrame(schema=_readable(schema))).schema
    facts = tuple((name, _facts(typed[name]) if name in typed else Facts(nw.Unknown())) for name in schema)

    def scan(names: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
        if empty:
            return pl.LazyFrame(schema={name: schema[name] for name in names})
        return frame.select(names)

    return Data("polars", facts, scan, lazy)


def _readable(schema: Any) -> dict[str, Any]:
    """The columns whose type narwhals has a name for."""
    return {name: dtype for name, dtype in schema.items() if not isinstance(dtype, (pl.Object, pl.Unknown, pl.Null))}


# PyArrow


def _plain_type(dtype: pa.DataType) -> pa.DataType:
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def _arrow_schema(fields: Sequence[pa.Field]) -> tuple[tuple[str, Facts], ...]:
    facts = []
    for f in fields:
        try:
            empty = pl.from_arrow(pa.table({"x": pa.array([], type=_plain_type(f.type))}))
            known = _facts(nw.from_native(empty, eager_only=True).schema["x"])  # type: ignore[type-var]
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # a type without a counterpart only matters when the column is used; Polars may panic
            known = Facts(nw.Unknown())
        facts.append((f.name, known))
    return tuple(facts)


def _from_arrow(columns: dict[str, Any], height: int) -> pl.LazyFrame:
    """Columns as a lazy frame; where none is wanted, the rows are still there to be counted."""
    return pl.from_arrow(pa.table(columns or {"": pa.nulls(height, pa.bool_())})).lazy()  # type: ignore[union-attr]


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(column.type):
        return _seconds(column)
    chunks = [chunk.dictionary_decode() for chunk in column.chunks]
    return _seconds(pa.chunked_array(chunks, type=column.type.value_type))


def _seconds(column: Any) -> Any:
    """Times in seconds become milliseconds; null where those do not fit, or they would wrap onto other times."""
    if not (pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type)) or column.type.unit != "s":
        return column
    ticks, most = column.cast(pa.int64()), 9 * 10**15
    fits = pc.and_(pc.less_equal(ticks, most), pc.greater_equal(ticks, -most))
    return pc.if_else(fits, column, pa.scalar(None, column.type))


def _pyarrow(table: pa.Table) -> Data:
    names = table.column_names
    unique = [name for name in names if names.count(name) == 1]

    def scan(wanted: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
        rows = table.slice(0, 0) if empty else table
        return _from_arrow({name: _decoded(rows.column(name)) for name in wanted}, rows.num_rows)

    schema = _arrow_schema([table.schema.field(name) for name in unique])
    return Data("pyarrow", schema, scan)


# pandas


def _pandas(frame: Any) -> Data:
    frame = frame.copy(deep=False)
    counts = frame.columns.value_counts()
    names = [name for name in frame.columns if isinstance(name, str) and counts[name] == 1]
    dtypes = {name: frame.dtypes[name] for name in names}

    def scan(wanted: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
        rows = frame.iloc[:0] if empty else frame
        return _from_arrow({name: _from_pandas(rows[name]) for name in wanted}, len(rows))

    schema = _arrow_schema([pa.field(name, _pandas_type(dtype)) for name, dtype in dtypes.items()])
    return Data("pandas", schema, scan)


def _pandas_type(dtype: Any) -> pa.DataType:
    """The Arrow type of a pandas type. Objects are read as text: what they hold is not for the schema to know."""
    import pandas as pd

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
    import pandas as pd

    wanted = _pandas_type(series.dtype)
    if isinstance(series.dtype, pd.CategoricalDtype):
        codes = pa.array(series.cat.codes.to_numpy(), mask=(series.cat.codes < 0).to_numpy())
        values = _from_pandas(pd.Series(series.cat.categories))
        return values.take(codes) if len(values) else pa.nulls(len(series), wanted)
    if series.dtype == "object" or isinstance(series.dtype, pd.StringDtype):
        return _texts(series)
    return _seconds(_one_array(pa.Array.from_pandas(series, type=wanted)))


def _one_array(array: Any) -> Any:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _texts(series: Any) -> pa.Array:
    """A column of Python objects as text, object by object, so that no row decides how another is read.

    Arrow converts texts at once, and to the same as `_text`; anything else among them is left to it.
    """
    import pandas as pd

    if pd.api.types.infer_dtype(series, skipna=True) in ("string", "empty"):
        try:
            return _one_array(pa.Array.from_pandas(series, type=pa.string()))
        except (pa.ArrowException, ValueError):
            pass  # a text that is no Unicode
    return pa.array([_text(value) for value in series], type=pa.string())


def _text(value: object) -> str | None:
    """One object as text: equal numbers have one text; what is missing, or has no text, is null."""
    import pandas as pd

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
