"""Tables of PyArrow and pandas, through Arrow. Only the columns that a query reads are converted.

A table may be hostile. Its memory may not be valid for its type (`dpframe.engine.intake.buffers`),
it may contain objects whose own code raises (`dpframe.engine.intake.cells`), and a column may give
other cells than it states. A cell that is not valid becomes null, and no other cell changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpframe.arrays import OBJECT, Booleans
from dpframe.engine.intake.buffers import plain_type, sound, views_are_read
from dpframe.engine.intake.cells import each, text, value_for
from dpframe.engine.tables import Data, PandasType, arrow_types, domain_of, pandas_types
from dpframe.plan import TICKS, ColumnDomain, Kind, Unread, kind, time_unit, zone_of

# PyArrow


def _arrow_schema(fields: Sequence[pa.Field]) -> tuple[tuple[str, ColumnDomain], ...]:
    return tuple((field.name, _arrow_domain(plain_type(field.type))) for field in fields)


def _arrow_domain(dtype: pa.DataType) -> ColumnDomain:
    """The domain of an Arrow type.
    A type without a counterpart is Unknown, and refused when its column is used.
    """
    if pa.types.is_timestamp(dtype) and dtype.tz is not None and not _is_zone(dtype.tz):
        return ColumnDomain(
            Unread(f"{dtype} (its time zone has no IANA name; convert its times to 'UTC' first)")
        )
    if pa.types.is_decimal256(dtype):  # Polars would panic, and print that it does
        return ColumnDomain(Unread(f"{dtype} (first: table.cast, to decimal128 or float64)"))
    if dtype == pa.string_view() and not views_are_read():
        return ColumnDomain(
            Unread(f"{dtype} (PyArrow {pa.__version__} cannot check it; bring it as string)")
        )
    if pa.types.is_interval(dtype):  # Polars would panic, and print that it does
        return ColumnDomain(nw.Unknown())
    try:
        return _converted_domain(dtype)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # Polars may panic
        return ColumnDomain(nw.Unknown())


@lru_cache
def _converted_domain(dtype: pa.DataType) -> ColumnDomain:
    empty = pl.from_arrow(pa.table({"x": pa.array([], type=dtype)}))
    return domain_of(nw.from_native(empty, eager_only=True).schema["x"])  # type: ignore[type-var]


def _is_zone(name: str) -> bool:
    try:
        pl.Series([], dtype=pl.Datetime("us", name))
    except pl.exceptions.PolarsError:
        return False
    return True


def _and_unnamed(
    schema: tuple[tuple[str, ColumnDomain], ...], names: Iterable[object]
) -> tuple[tuple[str, ColumnDomain], ...]:
    """The schema with an entry for each column that a question cannot name, with
    the line that gives it a name.

    Such columns have a name that is not a text, or a name that several columns have. They are never
    read.
    """
    domains = dict(schema)
    for name, many in Counter(names).items():
        match name:
            case tuple():
                reason = (
                    "unread (flatten its name first: df.columns = ['_'.join(map(str, c)) for c in "
                    "df.columns])"
                )
            case str() if many == 1:
                continue
            case str():
                reason = (
                    f"unread ({many} columns have this name; first: df.columns = [...], each with "
                    "its own)"
                )
            case _:
                reason = (
                    "unread (its name is not a text; first: df.columns = df.columns.astype(str))"
                )
        (text_name,) = each(str, [name])  # a name may be an object whose own code raises
        if text_name is not None:
            domains.setdefault(str.__str__(text_name), ColumnDomain(Unread(reason)))
    return tuple(domains.items())


def _from_arrow(columns: dict[str, pa.ChunkedArray], height: int) -> pl.LazyFrame:
    """Columns as a lazy frame.
    Without columns, the frame has one column of nulls, so that its rows can be counted.
    """
    columns = columns or {"": pa.nulls(height, pa.bool_())}
    table = pa.Table.from_arrays(
        list(columns.values()), names=[str(i) for i in range(len(columns))]
    )
    rows = pl.DataFrame(table)
    rows.columns = list(columns)  # names are set here because the conversion would change a name ""
    return rows.lazy()


def _sound(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return _seconds(sound(column))


def _seconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column with null for times in seconds that do not fit as
    milliseconds: a conversion would wrap them.

    A column of decimals of 76 digits, which Polars lacks, becomes True for a value and null for
    none.
    """
    if pa.types.is_decimal256(column.type):
        return pc.if_else(column.is_valid(), pa.scalar(True), pa.scalar(None, pa.bool_()))
    if (
        not (pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type))
        or column.type.unit != "s"
    ):
        return column
    ticks, most = column.cast(pa.int64()), 9 * 10**15
    fits = pc.and_(pc.less_equal(ticks, most), pc.greater_equal(ticks, -most))
    return pc.if_else(fits, column, pa.scalar(None, column.type))


def _unread_of(schema: Iterable[tuple[str, ColumnDomain]]) -> frozenset[str]:
    return frozenset(name for name, domain in schema if kind(domain.dtype) == Kind.OTHER)


def _is_there(column: pa.ChunkedArray | pd.Series) -> pa.ChunkedArray:
    """A column of which a question can only use whether it is null: True for a value, or null.

    The column's own type is dropped, since Polars lacks some of these types and panics at others.
    """
    (there,) = each(lambda cells: pa.array(_valid(cells), pa.bool_()), [column])
    if there is None or len(there) != len(column):
        return pa.nulls(len(column), pa.bool_())
    return pc.if_else(there, pa.scalar(True), pa.scalar(None, pa.bool_()))


def _valid(column: pa.ChunkedArray | pd.Series) -> Booleans:
    return (
        column.is_valid().to_numpy()
        if isinstance(column, pa.ChunkedArray)
        else np.asarray(column.notna(), bool)
    )


def from_pyarrow(table: object) -> Data | None:
    """A PyArrow Table as `Data`; None for any other object."""
    if not isinstance(table, pa.Table):
        return None
    names = table.column_names
    unique = [name for name in names if names.count(name) == 1]

    def scan(selection: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
        rows = table.slice(0, 0) if empty else table
        columns = {
            name: (_is_there if name in unread else _sound)(rows.column(name)) for name in selection
        }
        return _from_arrow(columns, rows.num_rows)

    schema = _arrow_schema([table.schema.field(name) for name in unique])
    unread = _unread_of(schema)
    own = arrow_types({name: table.schema.field(name).type for name in unique})
    return Data("pyarrow", _and_unnamed(schema, names), scan, own_types=own, height=table.num_rows)


# pandas


def from_pandas(frame: object) -> Data | None:
    """A pandas DataFrame as `Data`, with the columns that it has now; None for any other object."""
    if not isinstance(frame, pd.DataFrame):
        return None
    frame = pd.DataFrame(frame, copy=False)  # without the methods and attrs of a subclass
    counts = frame.columns.value_counts()
    names = [name for name in frame.columns if isinstance(name, str) and counts[name] == 1]
    dtypes = {name: frame.dtypes[name] for name in names}

    def scan(selection: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
        rows = frame.iloc[:0] if empty else frame
        columns = {
            name: (_is_there if name in unread else _from_pandas)(rows[name]) for name in selection
        }
        return _from_arrow(columns, len(rows))

    schema = dict(
        _arrow_schema([pa.field(name, _pandas_type(dtype)) for name, dtype in dtypes.items()])
    )
    schema |= {
        name: ColumnDomain(Unread(reason))
        for name, dtype in dtypes.items()
        if (reason := _unread(name, dtype))
    }
    unread = _unread_of(schema.items())
    return Data(
        "pandas",
        _and_unnamed(tuple(schema.items()), frame.columns),
        scan,
        own_types=pandas_types(dtypes),
        height=len(frame),
    )


def _unread(name: str, dtype: PandasType) -> str:
    """The words for a type that Arrow does not take, with the line that
    converts it; "" for other types.
    """
    match dtype:
        case pd.PeriodDtype():
            return f"{dtype} (make it a time first: df[{name!r}].dt.to_timestamp())"
        case pd.SparseDtype():
            return f"{dtype} (first: df[{name!r}].sparse.to_dense())"
    return (
        f"{dtype} (make it a text first: df[{name!r}].astype(str))"
        if isinstance(dtype, pd.IntervalDtype)
        else ""
    )


def from_modin(frame: Any) -> Data | None:
    """A Modin DataFrame as `Data`, with the types of pandas; None for any other object.

    Only the columns that a query reads are converted to pandas.
    """
    if type(frame).__name__ != "DataFrame":
        return None
    frame = frame.copy()  # copy on write: the copy shares its memory until a part is changed
    dtypes = {
        name: frame.dtypes[name] for name in frame.columns if list(frame.columns).count(name) == 1
    }
    types = from_pandas(
        pd.DataFrame({name: pd.Series(dtype=dtype) for name, dtype in dtypes.items()})
    )
    assert types is not None

    def scan(selection: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
        if empty or not selection:
            rows = pl.LazyFrame({"": pl.repeat(None, 0 if empty else len(frame), eager=True)})
            return types.scan(selection, empty=True) if selection else rows
        part = frame[list(selection)].modin.to_pandas()
        return pl.DataFrame({name: of_type(part[name], dtypes[name]) for name in selection}).lazy()

    return Data(
        "pandas", _and_unnamed(types.schema, frame.columns), scan, own_types=types.own_types
    )


def _pandas_type(dtype: PandasType) -> pa.DataType:
    """The Arrow type of a pandas type.
    Columns of objects are read as text: the schema must not depend on the cells.
    """
    match dtype:
        case pd.CategoricalDtype():
            return _pandas_type(dtype.categories.dtype)
        case pd.ArrowDtype():
            return plain_type(dtype.pyarrow_dtype)
    if dtype == OBJECT or isinstance(dtype, pd.StringDtype):
        return pa.string()
    try:  # a type of numpy can be hashed; what a class of somebody's does is not known
        return (_of_numpy if isinstance(dtype, np.dtype) else _converted)(dtype)
    except Exception:  # periods, intervals, sparse columns: refused when a question uses the column
        return pa.list_(pa.null())


def _converted(dtype: PandasType) -> pa.DataType:
    return pa.Array.from_pandas(pd.Series([], dtype=dtype)).type


_of_numpy = lru_cache(_converted)


def _from_pandas(series: pd.Series) -> pa.ChunkedArray:
    """A pandas column as Arrow, with as many cells;
    null where a cell is not valid in the column's type.
    """
    dtype, target = series.dtype, _pandas_type(series.dtype)
    if isinstance(dtype, pd.CategoricalDtype):
        values = _from_pandas(_categories(series))
        codes, missing = _codes(series)
        return (
            values.take(pa.array(codes, mask=missing))
            if len(values)
            else pa.nulls(len(series), target)
        )
    if dtype == OBJECT or (isinstance(dtype, pd.StringDtype) and dtype.storage == "python"):
        return _texts(series)
    # the column's class may have code that raises
    (column,) = each(lambda series: _brought(series, target), [series])
    return _one_by_one(series, _in_polars(target)).to_arrow() if column is None else _sound(column)


def _brought(series: pd.Series, target: pa.DataType) -> pa.ChunkedArray | None:
    """A column converted to Arrow by its own class;
    None where the number or the type of the cells is wrong.
    """
    arrays = hasattr(series.array, "__arrow_array__")
    column = series.array.__arrow_array__() if arrays else pa.Array.from_pandas(series, type=target)
    texts = pa.types.is_string(target) and pa.types.is_large_string(column.type)
    return (
        column
        if len(column) == len(series) and (texts or plain_type(column.type) == target)
        else None
    )


def _categories(series: pd.Series) -> pd.Series:
    categories: pd.Index = series.array.categories
    return pd.Series(categories.array, dtype=categories.dtype)


def _codes(series: pd.Series) -> tuple[NDArray[np.integer], Booleans]:
    """The codes of a column of categories, and for each row whether
    its code belongs to no category.
    """
    codes = series.array.codes
    return codes, (codes < 0) | (codes >= len(series.array.categories))


def _in_polars(dtype: pa.DataType) -> pl.DataType:
    """The Polars type of an Arrow type; Null where Polars has none."""
    if _arrow_domain(dtype).dtype == nw.Unknown():
        return pl.Null()
    return pl.Series(pa.array([], type=dtype)).dtype


def _texts(series: pd.Series) -> pa.Array:
    """A column of Python objects as text.
    Each object is converted by itself, so no row affects another row's text.

    A column of texts alone is converted by Arrow at once, with the result that `cells.text` would
    give.
    """
    objects = _objects(series)
    (family,) = each(lambda cells: pd.api.types.infer_dtype(cells, skipna=True), [series])
    if family in ("string", "empty"):
        try:
            return pa.Array.from_pandas(series, type=pa.large_string())
        except (pa.ArrowException, ValueError):
            pass  # some text is not Unicode
    return pa.array(each(lambda i: text(objects[i]), range(len(objects))), type=pa.large_string())


def _objects(series: pd.Series) -> NDArray[np.object_] | pd.api.extensions.ExtensionArray:
    """A copy of the cells of a column of objects: before pandas 3, an object's
    own code can change other cells.
    """
    (cells,) = each(lambda array: np.array(array, dtype=object, copy=True), [series.array])
    return cells if cells is not None and cells.shape == (len(series),) else series.array


# Columns of one partition, read by the types of the whole table


def of_type(series: pd.Series, dtype: PandasType) -> pl.Series:
    """A column of one partition in the type that it has in the whole table;
    null where that type cannot hold a cell.

    One cell can give a partition another type than the whole table has. So each cell is read from
    its own value alone: the result does not depend on the other cells, nor on whether the column
    holds objects, floats or categories (see `cells.value_for`).
    """
    target = _in_polars(_pandas_type(dtype))
    if isinstance(series.dtype, pd.CategoricalDtype):
        values = of_type(_categories(series), dtype)
        codes, missing = _codes(series)
        indices = pl.Series(codes.astype("int64")).set(pl.Series(missing), None)
        return (
            values.gather(indices) if len(values) else pl.Series([None] * len(series), dtype=target)
        )
    if series.dtype == OBJECT:
        return pl.Series(_texts(series)) if target == pl.String else _one_by_one(series, target)
    if _in_polars(_pandas_type(series.dtype)) == pl.Null:
        return _one_by_one(series, target)
    column = pl.Series(_from_pandas(series))
    if column.dtype == target:
        return column
    convert = None if target == pl.String else _conversion(column.dtype, target)
    return (
        _one_by_one(series, target)
        if convert is None
        else column.to_frame("x").select(convert(pl.col("x")))["x"]
    )


def partition_of(partition: object, types: Mapping[str, PandasType]) -> pl.DataFrame:
    """The columns of a partition in the types of the whole table.
    Errors: none, whatever the partition is.

    A column that the partition lacks, or has twice, is null. A partition that is not a pandas
    DataFrame has no row.
    """
    rows = pd.DataFrame(partition if isinstance(partition, pd.DataFrame) else None, copy=False)
    numbers: dict[str, list[int]] = {}
    for number, name in enumerate(rows.columns):
        if isinstance(name, str):
            numbers.setdefault(name, []).append(number)
    null = pd.Series([None] * len(rows), dtype=object)
    columns = {
        name: rows.iloc[:, at[0]] if len(at := numbers.get(name, [])) == 1 else null
        for name in types
    }
    return pl.DataFrame({name: of_type(column, types[name]) for name, column in columns.items()})


def _one_by_one(series: pd.Series, target: pl.DataType) -> pl.Series:
    """A column converted cell by cell, to texts or to values of another type."""
    array = _objects(series) if series.dtype == OBJECT else series.array
    reader = text if target == pl.String else value_for(target)
    cells = each(lambda i: reader(array[i]), range(len(array)))
    times = target in (pl.Date, pl.Datetime, pl.Duration)
    return pl.Series(cells, dtype=pl.Int64 if times else target).cast(target, strict=False)


def _conversion(source: pl.DataType, target: pl.DataType) -> Callable[[pl.Expr], pl.Expr] | None:
    """A conversion of whole columns of numbers or times, with the results of
    `cells.value_for` for each cell.

    None where there is no such conversion, and the column has to be converted cell by cell.
    """
    if source == pl.Boolean or source.is_integer() or source.is_float():
        return _of_numbers(source, target)
    times = (pl.Date, pl.Datetime)
    if source == pl.Duration and target == pl.Duration:
        return lambda value: _retimed(value, _per_second(source), _per_second(target), target)
    zones = [zone_of(dtype) is None for dtype in (source, target)]
    if source not in times or target not in times or zones[0] != zones[1]:
        return None
    return lambda value: _retimed(value, _per_second(source), _per_second(target), target)


def _per_second(dtype: pl.DataType) -> Fraction:
    return Fraction(1, 86_400) if dtype == pl.Date else Fraction(TICKS[time_unit(dtype)])


def _of_numbers(source: pl.DataType, target: pl.DataType) -> Callable[[pl.Expr], pl.Expr] | None:
    if target == pl.Boolean:
        return lambda value: pl.when((value == 0) | (value == 1)).then(value == 1)
    if target.is_integer() and source.is_float():
        return lambda value: pl.when(value.floor() == value).then(value).cast(target, strict=False)
    if target.is_integer():
        return lambda value: value.cast(target, strict=False)
    return (lambda value: value.cast(pl.Float64).cast(target)) if target.is_float() else None


def _retimed(value: pl.Expr, have: Fraction, want: Fraction, target: pl.DataType) -> pl.Expr:
    """Ticks of one unit converted to another, rounded down; null where they do not fit.

    Input:  have, want: ticks per second of the two units
    Output: for a target of dates, null where a time is not midnight
    """
    ticks, ratio = value.cast(pl.Int64), want / have
    if ratio >= 1:
        most = (2**63 - 1) // ratio.numerator
        return (
            pl.when(ticks.is_between(-most, most))
            .then(ticks * ratio.numerator)
            .cast(target, strict=False)
        )
    whole = ticks // ratio.denominator
    if target == pl.Date:
        whole = pl.when(ticks % ratio.denominator == 0).then(whole)
    return (
        whole.cast(pl.Int32, strict=False).cast(target) if target == pl.Date else whole.cast(target)
    )
