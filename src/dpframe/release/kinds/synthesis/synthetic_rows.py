"""Synthetic rows from a graphical model: keys that are drawn evenly, so that tables of the rows are near the model.

Then values are put in the place of keys: listed keys stand for themselves, and a value of a bin is drawn evenly within
it. The rows are drawn from the model alone. Their randomness hides nothing and need not be secret.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.arrays import Floats
from dpframe.engine import polars_dtype
from dpframe.plan import TIMES, Key, Kind, SyntheticColumn, kind
from dpframe.release.kinds.synthesis.model import Beliefs
from dpframe.theory.formulas.error import Attributes

_STEP = (5**0.5 - 1) / 2


def drawn_rows(beliefs: Beliefs, rows: int, draw: np.random.Generator, *, evenly: bool = True) -> NDArray[np.int32]:
    """Rows of the model: an array of shape (rows, columns) with the place of each row's key among the keys.

    Clique after clique, each row gets the columns that its clique adds, given those of the separator. Rows with equal
    separators are ordered by their other columns, and take points of a sequence of steps of the golden ratio. So every
    run of neighbouring rows has nearly the numbers of keys that the model expects, and tables of the rows are nearer to
    the model than those of independent rows.
    """
    sizes, tree = beliefs.sizes, beliefs.tree
    codes = np.zeros((rows, len(sizes)), np.int32)
    have: list[int] = []
    for i, (clique, separator) in enumerate(zip(tree.cliques, tree.separators, strict=True)):
        new = tuple(k for k in clique if k not in separator)
        table = beliefs.conditionals[i]
        given = _places(codes, separator, sizes)
        others = [k for k in have if k not in separator]
        points: NDArray[Any] = (draw.random() + _STEP * np.arange(rows)) % 1.0
        if have and evenly:
            keys: list[NDArray[Any]] = [*(codes[:, int(k)] for k in draw.permutation(others)), given]
            order = np.lexsort(keys)
            points[order] = points.copy()
        elif have:
            points = draw.random(rows)
        chosen = _chosen(table, given, points)
        for k, values in zip(new, np.unravel_index(chosen, [sizes[k] for k in new]), strict=True):
            codes[:, k] = values
        have += new
    return codes[draw.permutation(rows)] if evenly else codes


def _places(codes: NDArray[np.int32], part: Attributes, sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """The place of each row's cell in the table of some columns."""
    place = np.zeros(len(codes), np.int64)
    for k in part:
        place = place * sizes[k] + codes[:, k]
    return place


def _chosen(table: Floats, given: NDArray[np.int64], points: Floats) -> NDArray[np.int64]:
    """For each row the place in its line of the table at which the cumulated share reaches its point."""
    width = table.shape[1]
    line = np.maximum(table, 0)
    totals = line.sum(axis=1, keepdims=True)
    line = np.where(totals > 0, line / np.where(totals > 0, totals, 1), 1 / width)
    ends = np.cumsum(line, axis=1)
    ends[:, -1] = 1.0
    flat = (ends + np.arange(len(ends))[:, None]).ravel()
    at = np.searchsorted(flat, given + points, side="right")
    return np.asarray(np.clip(at - given * width, 0, width - 1))


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
