"""Synthetic rows from the places of their keys:
values in the types of the table, and rows of one unit together.

Everything here is computed from the model, from noisy tables, and from random numbers that are
independent of the data. Listed keys stand for themselves. A value of a bin is drawn evenly within
it, as finely as most values are given.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.arrays import Array, Integers
from dpframe.engine import polars_dtype
from dpframe.errors import InvalidArgument
from dpframe.plan import TIMES, Key, Kind, LinkedRows, SyntheticColumn, Tables, alike, kind, ticks
from dpframe.release.kinds.synthesis.fit import Fit, MeasuredTable
from dpframe.release.kinds.synthesis.model import drawn_rows

_LENGTHS = {
    f"1{name[0]}": dt.timedelta(**{name: 1}) for name in ("days", "hours", "minutes", "seconds")
}


@dataclass(frozen=True)
class RowLayout:
    """The layout of synthetic rows, without any row:
    keys, columns, and how rows belong to units.
    """

    tables: Tables
    columns: tuple[SyntheticColumn, ...]
    linked: LinkedRows | None

    @property
    def ids(self) -> tuple[SyntheticColumn, ...]:
        """The columns that say whose row it is."""
        return () if self.linked is None else self.linked.ids

    def level(self, name: str) -> Key:
        """The listed keys of a column."""
        return self.tables.levels[self.tables.by.index(name)]

    @property
    def shown(self) -> list[int]:
        """The places of columns whose tables the rows can be held against:
        all but how finely values are given.
        """
        hints = {column.precision for column in self.columns}
        return [i for i, name in enumerate(self.tables.by) if name not in hints]

    def drawn(
        self,
        fit: Fit,
        measured: Sequence[MeasuredTable],
        number: int,
        draw: np.random.Generator,
        given: Mapping[str, Any] | None = None,
    ) -> pl.DataFrame:
        """Synthetic rows: the columns of units, those of the table, and the place of each key.

        Input:  given: columns with the value that all rows have
        """
        by = {name: i for i, name in enumerate(self.tables.by)}
        given = given or {}
        beliefs = fit.beliefs
        if given:
            columns = {column.name: column for column in self.columns}
            beliefs = beliefs.given(
                {by[n]: _place(columns[n], self.level(n), value) for n, value in given.items()}
            )
        codes = drawn_rows(beliefs, number, draw)
        unit, leader = None, None
        if self.linked is not None:
            same = [by[name] for name in self.linked.same]
            codes, unit = linked(codes, by[self.linked.rows], same, draw)
            leader = np.searchsorted(unit, unit)
        series = []
        for column in self.ids:
            numbers = pl.Series(column.name, unit, dtype=pl.Int64) + 1
            series.append(numbers.cast(polars_dtype(column.dtype)))
        for column in self.columns:
            table = next(
                (one for one in measured if self.tables.names(one.part) == (column.precision,)),
                None,
            )
            finest = None if table is None else _finest(column, table, fit.rows)
            values = values_of(
                column, self.level(column.name), codes[:, by[column.name]], draw, finest
            )
            if leader is not None and self.linked is not None and column.name in self.linked.same:
                values = values.gather(leader)
            if column.lows and given.get(column.name) is not None:
                values = (
                    pl.Series(column.name, [given[column.name]])
                    .cast(values.dtype)
                    .new_from_index(0, number)
                )
            series.append(values)
        return pl.DataFrame(
            [*series, *(pl.Series(f"{i} place", codes[:, i]) for i in range(codes.shape[1]))]
        )


def linked(
    codes: NDArray[np.int32], rows: int, same: Sequence[int], draw: np.random.Generator
) -> tuple[NDArray[np.int32], Integers]:
    """Rows of one unit together, and the number of each row's unit, in growing order.

    Input:  codes: places of keys; rows: the column whose place k says that the unit has k + 1 rows;
            same: the columns that have one value in all rows of a unit
    Output: rows with one number of rows are ordered by the columns in `same`, and cut into runs of
            so many rows. A run gets the keys of its first row in these columns. The last unit of
            each number may have fewer rows
    """
    codes = codes[np.lexsort([codes[:, k] for k in (*reversed(same), rows)])]
    starts = np.searchsorted(codes[:, rows], codes[:, rows])
    first = (np.arange(len(codes)) - starts) % (codes[:, rows] + 1) == 0
    unit = np.cumsum(first) - 1
    leader = np.flatnonzero(first)[unit]
    codes[:, same] = codes[leader][:, same]
    codes[:, rows] = np.bincount(unit)[unit] - 1 if len(unit) else 0
    number = draw.permutation(int(first.sum()))[unit]
    order = np.argsort(number, kind="stable")
    return codes[order], number[order]


def _place(column: SyntheticColumn, level: Key, value: Any) -> int:
    """The place of a value among the keys or bins of a column. Errors: InvalidArgument."""
    if not column.lows or value is None:
        places = [i for i, key in enumerate(level) if alike(key, value)]
    else:
        at = (
            ticks(value, column.dtype, f"sample: given={{{column.name!r}: ...}}")
            if kind(column.dtype) in TIMES
            else value
        )
        places = [
            i
            for i, (low, high) in enumerate(zip(column.lows, column.highs, strict=True))
            if low <= at <= high
        ]
    if not places:
        raise InvalidArgument(
            f"sample: given= has a value for {column.name!r} that is none of its keys, nor in its "
            "bins."
        )
    return places[0]


def _finest(column: SyntheticColumn, table: MeasuredTable, rows: float) -> Any:
    """The coarsest precision beyond which nearly no value is given; None for values as they are.

    Finer values count if they are more than one in a hundred and than noise is likely to make: five
    deviations, or two where five would be a sixth of the rows. Where two are a third of the rows,
    nothing is known.
    """
    for place, precision in enumerate(column.precisions):
        finer = table.values[place + 1 :]
        deviation = table.deviation * math.sqrt(finer.size)
        likely = min(5 * deviation, max(2 * deviation, rows / 6))
        if float(finer.sum()) <= max(likely, rows / 100) and 2 * deviation <= rows / 3:
            return precision
    return None


def values_of(
    column: SyntheticColumn,
    levels: Key,
    places: NDArray[np.int32],
    draw: np.random.Generator,
    finest: Any = None,
) -> pl.Series:
    """A column of synthetic values in its type, from the places of its keys.

    Input:  the column; its keys, of which a last one may be null; the place of each row's key; how
            finely values are given, decimals or a window of time, None for as finely as the type
            can
    Output: whole numbers and times are drawn evenly among those of the bin, floats between its
            ends. A bin that has no value of this precision has finer ones
    """
    dtype, family = polars_dtype(column.dtype), kind(column.dtype)
    if not column.lows:
        keys = pl.Series(column.name, list(levels), dtype=dtype, strict=False)
        return (_in_decimals(keys, column.dtype) if family == Kind.DECIMAL else keys).gather(places)
    missing = places >= len(column.lows)
    at = np.where(missing, 0, places)
    if family in (Kind.INTEGER, *TIMES):
        lows, highs = [int(low) for low in column.lows], [int(high) for high in column.highs]
        steps = np.array(
            [high - low + 1 for low, high in zip(lows, highs, strict=True)], np.float64
        )[at]
        offsets = np.minimum(np.floor(draw.random(len(at)) * steps), steps - 1)
        if max(map(abs, (*lows, *highs))) < 2**62:
            series = pl.Series(column.name, np.array(lows)[at] + offsets.astype(np.int64))
        else:
            numbers = [min(lows[i] + int(k), highs[i]) for i, k in zip(at, offsets, strict=True)]
            series = pl.Series(
                column.name, numbers, dtype=dtype if family == Kind.INTEGER else pl.Int64
            )
    else:
        low, high = np.array(column.lows, np.float64)[at], np.array(column.highs, np.float64)[at]
        values = np.minimum(low + draw.random(len(at)) * (high - low), high)
        if isinstance(column.dtype, nw.Decimal):
            finest = column.dtype.scale if finest is None else min(finest, column.dtype.scale)
        if finest is not None:
            values = _with_decimals(values, low, high, finest, draw)
        series = pl.Series(column.name, values)
    series = _in_decimals(series, column.dtype) if family == Kind.DECIMAL else series.cast(dtype)
    if finest is not None and family in TIMES:
        first, last = (
            pl.Series(np.array(ends, np.int64)[at]).cast(dtype)
            for ends in (column.lows, column.highs)
        )
        series = _in_windows(series, first, last, finest)
    return series.zip_with(
        pl.Series(~missing), pl.Series([None], dtype=series.dtype).new_from_index(0, len(at))
    )


def _in_decimals(values: pl.Series, dtype: Any) -> pl.Series:
    """Numbers in a type of decimals; those that it cannot hold
    become its largest or smallest one.
    """
    precision, scale = min(dtype.precision, 38), dtype.scale
    above = 10.0 ** (precision - scale)
    most = min(above - 10.0**-scale, math.nextafter(above, 0))
    return values.cast(pl.Float64).clip(-most, most).cast(pl.Decimal(precision, scale))


def _with_decimals(
    values: Array, low: Array, high: Array, decimals: int, draw: np.random.Generator
) -> Array:
    """Numbers of so many decimals, drawn evenly between the ends, both included;
    values stay where there is none.
    """
    power = 10.0**decimals
    first, last = np.ceil(np.round(low * power, 6)), np.floor(np.round(high * power, 6))
    first, last = first + (first / power < low), last - (last / power > high)
    places = np.minimum(first + np.floor(draw.random(len(values)) * (last - first + 1)), last)
    return np.asarray(
        np.where((first <= last) & (np.abs(places) < 2.0**50), places / power, values)
    )


def _in_windows(values: pl.Series, low: pl.Series, high: pl.Series, every: str) -> pl.Series:
    """Times at the starts of windows, by the clock of their zone;
    values stay where no start is between the ends.
    """
    if values.dtype == pl.Duration:
        length = pl.Series([_LENGTHS[every]]).cast(values.dtype).cast(pl.Int64).item()
        first = (values.cast(pl.Int64) // length * length).cast(values.dtype)
        starts = [first, first + _LENGTHS[every]]
    else:
        local = _local(values).dt.truncate(every)
        starts = [_zoned(local, values.dtype), _zoned(local.dt.offset_by(every), values.dtype)]
    for start in reversed(starts):
        values = values.zip_with(~((start >= low) & (start <= high)).fill_null(False), start)
    return values


def _local(times: pl.Series) -> pl.Series:
    return times.dt.replace_time_zone(None) if times.dtype == pl.Datetime else times


def _zoned(local: pl.Series, dtype: Any) -> pl.Series:
    if not isinstance(dtype, pl.Datetime) or dtype.time_zone is None:
        return local
    return local.dt.replace_time_zone(dtype.time_zone, ambiguous="earliest", non_existent="null")
