"""From places of keys to values: listed keys stand for themselves, and a value of a bin is drawn evenly within it.

What is drawn here is independent of the data, given the places. It hides nothing and need not be secret.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engine import polars_dtype
from dpframe.plan import TIMES, Key, Kind, SyntheticColumn, kind

__all__ = ["values_of"]


def values_of(
    column: SyntheticColumn,
    levels: Key,
    places: NDArray[np.int32],
    draw: np.random.Generator,
) -> pl.Series:
    """A column of synthetic values in its type, from the places of its keys.

    Input:  the column; its keys, of which a last one may be null; the place of each row's key
    Output: whole numbers and times are drawn evenly among those of the bin, floats between its ends
    """
    dtype = polars_dtype(column.dtype)
    if not column.lows:
        return pl.Series(column.name, list(levels), dtype=dtype, strict=False).gather(places)
    missing = places >= len(column.lows)
    at = np.where(missing, 0, places)
    if kind(column.dtype) in (Kind.INTEGER, *TIMES):
        lows, highs = [int(low) for low in column.lows], [int(high) for high in column.highs]
        steps = np.array([high - low + 1 for low, high in zip(lows, highs, strict=True)], np.float64)[at]
        offsets = np.minimum(np.floor(draw.random(len(at)) * steps), steps - 1)
        if max(map(abs, (*lows, *highs))) < 2**62:
            series = pl.Series(column.name, np.array(lows)[at] + offsets.astype(np.int64))
        else:
            numbers = [min(lows[i] + int(k), highs[i]) for i, k in zip(at, offsets, strict=True)]
            series = pl.Series(column.name, numbers, dtype=dtype if kind(column.dtype) == Kind.INTEGER else pl.Int64)
    else:
        low, high = np.array(column.lows)[at], np.array(column.highs)[at]
        series = pl.Series(column.name, np.minimum(low + draw.random(len(at)) * (high - low), high))
    return series.cast(dtype).zip_with(pl.Series(~missing), pl.Series([None], dtype=dtype).new_from_index(0, len(at)))
