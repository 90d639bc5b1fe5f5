"""A protected table as the engine holds it, and the kind of table in which a release is returned.

Polars holds the texts of a pandas Categorical, of `string[pyarrow]` and of an Arrow dictionary in
one type. So a table remembers its own types, and released columns are converted to them. Its
categories come from the data and are dropped: a released column has the listed keys as its
categories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from narwhals.dtypes import DType

from dpframe.arrays import OBJECT
from dpframe.errors import UnsupportedOperation
from dpframe.fields import FieldDict, Fields
from dpframe.plan import Bounds, ColumnDomain

PandasType = np.dtype | pd.api.extensions.ExtensionDtype


def pandas_types(dtypes: Mapping[str, PandasType]) -> dict[str, PandasType]:
    """The types of pandas that a conversion from Polars would change;
    of categories only whether they are ordered.
    """
    kept: dict[str, PandasType] = {}
    for name, dtype in dtypes.items():
        match dtype:
            case pd.CategoricalDtype():
                kept[name] = pd.CategoricalDtype(
                    pd.Index([], dtype=dtype.categories.dtype), dtype.ordered
                )
            case pd.ArrowDtype():
                if _is_plain(dtype.pyarrow_dtype):
                    kept[name] = dtype
            case _ if (
                isinstance(dtype, pd.StringDtype)
                or dtype == OBJECT
                or getattr(dtype, "na_value", None) is pd.NA
            ):
                kept[name] = dtype
    return kept


def arrow_types(types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    """The types of PyArrow that a conversion from Polars would change."""
    return {
        name: dtype
        for name, dtype in types.items()
        if pa.types.is_dictionary(dtype) or _is_plain(dtype)
    }


def polars_types(types: Mapping[str, pl.DataType]) -> dict[str, type[pl.Enum]]:
    """The columns of categories, which a plan holds as texts.

    They come back as an Enum of the listed keys. All Categorical columns of a process share one
    list of texts in Polars, so a released Categorical could show texts of the protected table.
    """
    return {name: pl.Enum for name, dtype in types.items() if dtype == pl.Categorical}


def _is_plain(dtype: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_boolean(dtype)
        or types.is_integer(dtype)
        or types.is_floating(dtype)
        or types.is_string(dtype)
        or types.is_large_string(dtype)
        or types.is_date32(dtype)
    )


def in_own_types(table: Any, types: Fields, keys: Mapping[str, Sequence[Any]]) -> Any:
    """A released table with some columns in the user's own types.

    Input:  a table of Polars, pandas or PyArrow; the types, of this kind of table; keys: the listed
            keys of the columns that have some, which become the categories
    """
    for name, dtype in types.items():
        match table:
            case pl.DataFrame():
                table = table.with_columns(pl.col(name).cast(dtype(keys[name])))
            case pd.DataFrame():
                table[name] = _in_pandas(table[name], dtype, keys.get(name))
            case _:
                place = table.column_names.index(name)
                table = table.set_column(
                    place, name, _in_arrow(table.column(name), dtype, keys.get(name))
                )
    return table


def _in_pandas(column: pd.Series, dtype: PandasType, keys: Sequence[Any] | None) -> pd.Series:
    if not isinstance(dtype, pd.CategoricalDtype):
        return column.astype(dtype)
    if keys is None:  # values of bins: no category is listed
        return column
    return column.astype(
        pd.CategoricalDtype(pd.Index(keys, dtype=dtype.categories.dtype), dtype.ordered)
    )


def _in_arrow(
    column: pa.ChunkedArray, dtype: pa.DataType, keys: Sequence[object] | None
) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(dtype):
        return column.cast(dtype)
    if keys is None:
        return column.cast(dtype.value_type)
    places = {key: place for place, key in enumerate(keys)}
    codes = [None if value is None else places[value] for value in column.to_pylist()]
    indices = pa.array(codes, pa.int64()).cast(_wide_enough(dtype.index_type, len(keys)))
    return pa.DictionaryArray.from_arrays(
        indices, pa.array(keys, dtype.value_type), ordered=dtype.ordered
    )


def _wide_enough(index: pa.DataType, keys: int) -> pa.DataType:
    """The type of places, or a wider one where more keys are listed than it has places for."""
    return index if keys - 1 <= np.iinfo(index.to_pandas_dtype()).max else pa.int32()


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # The type of a released table, for type checkers: pd.DataFrame, pl.DataFrame, or Any where it
    # is not known.
    Table_co = TypeVar("Table_co", covariant=True, default=Any)
else:  # `typing.TypeVar` has defaults from Python 3.13 on; type checkers know them in every version
    from typing import TypeVar

    Table_co = TypeVar("Table_co", covariant=True)

Kind = Literal["polars", "pyarrow", "pandas"]


@dataclass(frozen=True, eq=False, repr=False)
class Data:
    """A table that only the engine reads: its schema is public, its rows are not.

    - `scan(names)` gives the named columns as a lazy frame; with `empty=True` these columns without
      a row;
    - `kind` is the kind of table in which a release is returned: the user's own kind, or pandas for
      the tables of databases and clusters;
    - `lazy`: whether the rows are not in memory yet;
    - `engine` is the name of the engine that reads the rows;
    - `names` maps a column's name to the name under which it is scanned, for engines that cannot
      tell some names apart; a column that it does not list is scanned under its own name;
    - `files` are the files that the table scans, where they are known, and `versions` what
      `origins.versions` said of them when the table was taken in;
    - `stated()` gives the types of the columns as the engine states them now, each as a text; no
      row is read. `types` is what it gave when the table was taken in. It is None for a table whose
      types cannot change afterwards, or whose engine cannot be asked;
    - `watched` are files of which only their versions matter, on engines where a table is not named
      after its files;
    - `own_types` are the user's types of columns where the plan's types say less, without
      categories;
    - `height` is the number of rows of a table of Polars, pandas or PyArrow in memory, which is not
      public; None for other tables.
    """

    kind: Kind
    schema: tuple[tuple[str, ColumnDomain], ...]
    scan: Callable[..., Any] = field(repr=False)
    lazy: bool = False
    engine: str = "polars"
    names: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: tuple[Path, ...] = field(default=(), repr=False)
    versions: tuple[object, ...] = field(default=(), repr=False)
    own_types: Fields = field(default_factory=dict, repr=False)
    stated: Callable[[], Mapping[str, str]] | None = field(default=None, repr=False)
    types: Mapping[str, str] = field(default_factory=dict, repr=False)
    watched: tuple[Path, ...] = field(default=(), repr=False)
    height: int | None = field(default=None, repr=False)

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return [name for name, _ in self.schema]

    def called(self, name: str) -> str:
        """The name under which a column is scanned."""
        return self.names.get(name, name)

    def __repr__(self) -> str:
        return f"<{self.kind if self.engine == 'polars' else self.engine}>"

    def __reduce__(self) -> Any:
        raise UnsupportedOperation(
            "A protected table cannot be pickled or copied out: the copy would hold raw rows."
        )


def as_kind(table: pl.DataFrame, kind: Kind) -> Any:
    """A released table as the kind of table that the user brought."""
    if kind == "pandas":
        return _pandas(table)
    return _arrow(table) if kind == "pyarrow" else table


def _arrow(table: pl.DataFrame) -> Any:
    """A PyArrow table.
    Whole numbers of 128 bits, which PyArrow has not, become decimals of 39 digits.
    """
    import pyarrow as pa

    wide = [name for name, dtype in table.schema.items() if dtype in _WIDE]
    made = table.with_columns(pl.col(wide).cast(pl.String)).to_arrow()
    for name in wide:
        decimals = made[name].cast(pa.string()).cast(pa.decimal256(39, 0))
        made = made.set_column(made.schema.get_field_index(name), name, decimals)
    return made


# pandas and PyArrow have none
_WIDE = [getattr(pl, name) for name in ("Int128", "UInt128") if hasattr(pl, name)]
# pandas has them too
_WHOLE = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)


def _pandas(table: pl.DataFrame) -> Any:
    """A pandas table.
    A column of whole numbers with nulls becomes Int64 with <NA>, not float64 with NaN.
    """
    import pandas as pd

    gaps = [column for column in table if column.dtype in _WHOLE and column.null_count()]
    whole: FieldDict = {c.name: pd.Series(c.to_list(), dtype=f"{c.dtype}") for c in gaps}
    wide = {c.name: pd.Series(c.to_list(), dtype=object) for c in table if c.dtype in _WIDE}
    return (
        table.with_columns(pl.lit(None).alias(name) for name in wide)
        .to_pandas()
        .assign(**whole, **wide)
    )


def polars_dtype(dtype: DType) -> Any:
    """The Polars type of a plan's type."""
    match dtype:
        case nw.Enum():
            return pl.Enum(list(dtype.categories))
        case nw.Datetime():
            return pl.Datetime("ms" if dtype.time_unit == "s" else dtype.time_unit, dtype.time_zone)
        case nw.Duration():
            return pl.Duration("ms" if dtype.time_unit == "s" else dtype.time_unit)
        case nw.Categorical():
            return pl.String()
    if dtype.is_decimal():
        return pl.Float64()
    return getattr(pl, type(dtype).__name__)()


def domain_of(dtype: DType) -> ColumnDomain:
    """The domain of a column as its type alone gives it.

    The categories of an Enum are public keys. The categories of a Categorical come from the data,
    so they are not.
    """
    match dtype:
        case nw.Enum():
            return ColumnDomain(
                dtype, True, None, tuple(dtype.categories), "the column's Enum type"
            )
        case nw.Categorical():
            return ColumnDomain(nw.String())
        case nw.Boolean():
            return ColumnDomain(dtype, True, Bounds(0, 1), None, "the column's Boolean type")
    return ColumnDomain(dtype)
