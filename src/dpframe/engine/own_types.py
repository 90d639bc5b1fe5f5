"""Columns of synthetic rows in the types that a table has where the types of Polars say less.

Polars holds the texts of a pandas Categorical, of `string[pyarrow]` and of an Arrow dictionary in one type. A table
remembers its own types, and released columns are converted to them. Its categories come from the data, so they are
dropped: a released column has the listed keys as its categories.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

PandasType = np.dtype | pd.api.extensions.ExtensionDtype


def pandas_types(dtypes: Mapping[str, PandasType]) -> dict[str, PandasType]:
    """The types of pandas that a conversion from Polars would change; of categories only whether they are ordered."""
    kept: dict[str, PandasType] = {}
    for name, dtype in dtypes.items():
        if isinstance(dtype, pd.CategoricalDtype):
            kept[name] = pd.CategoricalDtype(pd.Index([], dtype=dtype.categories.dtype), dtype.ordered)
        elif isinstance(dtype, pd.ArrowDtype):
            if _is_plain(dtype.pyarrow_dtype):
                kept[name] = dtype
        elif dtype == "object" or (isinstance(dtype, pd.StringDtype) or getattr(dtype, "na_value", None) is pd.NA):
            kept[name] = dtype
    return kept


def arrow_types(types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    """The types of PyArrow that a conversion from Polars would change."""
    return {name: dtype for name, dtype in types.items() if pa.types.is_dictionary(dtype) or _is_plain(dtype)}


def polars_types(types: Mapping[str, pl.DataType]) -> dict[str, type[pl.Enum]]:
    """The columns of categories, which a plan holds as texts.

    They come back as an Enum of the listed keys. All Categorical columns of a process share one list of texts in
    Polars, so a released Categorical could show texts of the protected table.
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


def in_own_types(table: Any, types: Mapping[str, Any], keys: Mapping[str, Sequence[Any]]) -> Any:
    """A released table with some columns in the user's own types.

    Input:  a table of Polars, pandas or PyArrow; the types, of this kind of table; keys: the listed keys of the columns
            that have some, which become the categories
    """
    for name, dtype in types.items():
        if isinstance(table, pl.DataFrame):
            table = table.with_columns(pl.col(name).cast(dtype(keys[name])))
        elif isinstance(table, pd.DataFrame):
            table[name] = _in_pandas(table[name], dtype, keys.get(name))
        else:
            place = table.column_names.index(name)
            table = table.set_column(place, name, _in_arrow(table.column(name), dtype, keys.get(name)))
    return table


def _in_pandas(column: pd.Series, dtype: PandasType, keys: Sequence[Any] | None) -> pd.Series:
    if not isinstance(dtype, pd.CategoricalDtype):
        return column.astype(dtype)
    if keys is None:  # values of bins: no category is listed
        return column
    return column.astype(pd.CategoricalDtype(pd.Index(keys, dtype=dtype.categories.dtype), dtype.ordered))


def _in_arrow(column: pa.ChunkedArray, dtype: pa.DataType, keys: Sequence[object] | None) -> pa.ChunkedArray:
    if not pa.types.is_dictionary(dtype):
        return column.cast(dtype)
    if keys is None:
        return column.cast(dtype.value_type)
    places = {key: place for place, key in enumerate(keys)}
    codes = [None if value is None else places[value] for value in column.to_pylist()]
    indices = pa.array(codes, pa.int64()).cast(_wide_enough(dtype.index_type, len(keys)))
    return pa.DictionaryArray.from_arrays(indices, pa.array(keys, dtype.value_type), ordered=dtype.ordered)


def _wide_enough(index: pa.DataType, keys: int) -> pa.DataType:
    """The type of places, or a wider one where more keys are listed than it has places for."""
    return index if keys - 1 <= np.iinfo(index.to_pandas_dtype()).max else pa.int32()
