"""What narwhals has no word for: a keyed hash, and a conversion that gives null where it fails. One place per engine.

Privacy does not rest on the hash: equal hashes only cost groups (see `limits`). Its key is drawn anew for each release.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import polars as pl
from narwhals.dtypes import DType

from dpframe.engine.tables import polars_dtype

__all__ = ["Frame", "convert", "keyed_hash"]

Frame = nw.LazyFrame[Any]


def keyed_hash(frame: Frame, columns: Sequence[str], salt: int, into: str) -> Frame:
    """A 64-bit hash of some columns of each row under a 64-bit key, as a new column."""
    native: pl.LazyFrame = frame.to_native()
    return nw.from_native(native.with_columns(pl.struct(list(columns)).hash(salt).alias(into)))


def convert(frame: Frame, column: str, dtype: DType, into: str) -> Frame:
    """Text as a number, a date or a time, as a new column; null where the text is none."""
    native: pl.LazyFrame = frame.to_native()
    text = pl.col(column)
    if isinstance(dtype, nw.Date):
        made = text.str.to_date("%Y-%m-%d", strict=False)
    elif isinstance(dtype, nw.Datetime):
        unit = polars_dtype(dtype).time_unit
        made = pl.coalesce(
            text.str.to_datetime(form, time_unit=unit, strict=False)
            for form in ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f")
        )
    else:
        made = text.cast(polars_dtype(dtype), strict=False)
    return nw.from_native(native.with_columns(made.alias(into)))
