"""Layouts of released tables: as a crosstab, as a description, and in the user's kind of table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.arrays import Array, Booleans, Floats
from dpframe.engine import Kind, as_kind
from dpframe.plan import Layout, ReleasedColumn, label
from dpframe.release.accuracy import quotient_ends
from dpframe.release.answer import Numbers

ALL = "All"  # the name of a margin, as in pandas
Key = tuple[Any, ...]


# value, lower and upper end of each row of the long table
CellColumns = tuple[NDArray[np.object_], Floats, Floats]
# rows of it → value and ends of their margin
Merged = Callable[[Array], tuple[int | float | None, float, float]]


@dataclass(frozen=True)
class ShareError:
    """Facts for the interval of a share beside those of cells and margins.

    `half` is half a step of whole numbers, `moved` how far rounding moved each number, and
    `clipped` says that no share is below 0 or above 1.
    """

    half: float
    moved: float
    clipped: bool

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest share that there may be."""
        return (0.0, 1.0) if self.clipped else (-np.inf, np.inf)


@dataclass(frozen=True)
class Crosstab:
    """A crosstab: keys down and across, margins last, and in each cell a number
    with the ends of its interval.

    Subtotals are rows between the cells and the margin of all rows; `order` says where they are
    read. `values` are Python numbers, None if a number is suppressed or there is no cell. `lower`
    and `upper` are NaN if they are not known. `sizes` counts the rows and the columns without
    margins. `whole`: whether all numbers are integers.
    """

    down: tuple[str, ...]
    across: tuple[str, ...]
    rows: list[Key]
    columns: list[Key]
    values: NDArray[np.object_]
    lower: Floats
    upper: Floats
    sizes: tuple[int, int]
    whole: bool
    # texts in place of suppressed numbers, where a number is None
    marks: NDArray[np.object_] | None = None

    @cached_property
    def order(self) -> list[int]:
        """The rows as they are read: a subtotal stands after the rows that it adds up."""
        height = self.sizes[0]
        parts = range(height, len(self.rows) - 1)
        bottom = range(max(len(self.rows) - 1, height), len(self.rows))
        last = {key[0]: row for row, key in enumerate(self.rows[:height])}
        after = {last[self.rows[part][0]]: part for part in parts}
        return [
            at for row in range(height) for at in (row, *([after[row]] if row in after else []))
        ] + list(bottom)

    def read(self) -> Crosstab:
        """The grid with its rows in the order in which they are read."""
        at = self.order
        return replace(
            self,
            rows=[self.rows[i] for i in at],
            values=self.values[at],
            lower=self.lower[at],
            upper=self.upper[at],
            marks=None if self.marks is None else self.marks[at],
        )

    @cached_property
    def numbers(self) -> Floats:
        """The numbers as floats, NaN for a missing number."""
        return self.values.astype(np.float64)

    @cached_property
    def marked(self) -> NDArray[np.object_]:
        """The numbers with texts in place of suppressed ones."""
        if self.marks is None:
            return self.values
        missing = np.array([value is None for value in self.values.flat], bool).reshape(
            self.values.shape
        )
        return np.where(missing, self.marks, self.values)

    def rounded(self, places: int | None) -> Crosstab:
        """The grid with its numbers in a number of decimals; unchanged without one."""
        if places is None or self.whole:
            return self
        cells = np.array(
            [[None if x is None else round(x, places) for x in row] for row in self.values],
            np.object_,
        )
        return replace(self, values=cells.reshape(self.values.shape))

    def in_percent(self) -> Crosstab:
        """The grid with its numbers in per cent."""
        cells = np.array(
            [[None if x is None else 100 * x for x in row] for row in self.values], np.object_
        )
        return replace(self, values=cells, lower=100 * self.lower, upper=100 * self.upper)

    @cached_property
    def errors(self) -> Floats:
        """The largest distance from each number to an end of its interval; NaN if unknown."""
        return np.maximum(np.maximum(self.numbers - self.lower, self.upper - self.numbers), 0.0)


def grid_of(
    table: pl.DataFrame,
    by: Sequence[str],
    layout: Layout,
    cells: CellColumns,
    merged: Merged,
    hidden: Booleans | None,
    *,
    whole: bool,
    share: ShareError | None = None,
) -> Crosstab:
    """The crosstab of a long table, with margins, or with shares of the margins
    where `share` says how they err.

    What is `hidden` of cells and margins is null, and so are shares of it.
    """
    across = layout.across
    down = tuple(name for name in by if name not in across)
    (rows, lines), (columns, stacks) = lines_of(table, down), lines_of(table, across)
    height, width = sizes = len(rows), len(columns)
    at = np.empty((2, table.height), np.int64)
    for axis, groups in enumerate((lines, stacks)):
        for number, line in enumerate(groups):
            at[axis, line] = number
    margins = bool(layout.margins or layout.normalize)
    parts = subtotals(rows) if layout.subtotals else {}
    shape = height + len(parts) + margins, width + margins
    values = np.full(shape, None, np.object_)
    lower, upper = np.full(shape, np.nan), np.full(shape, np.nan)
    values[*at], lower[*at], upper[*at] = cells
    if not margins:
        return Crosstab(down, across, rows, columns, values, lower, upper, sizes, whole)
    counted = np.zeros(shape)  # how many cells each number adds up
    counted[*at] = 1

    def put(i: int, j: int, members: Array) -> None:
        values[i, j], lower[i, j], upper[i, j] = merged(members)
        counted[i, j] = len(members)

    for i, line in enumerate(lines):
        put(i, -1, line)
    for j, stack in enumerate(stacks):
        put(-1, j, stack)
    everywhere = np.arange(table.height)
    for i, members in enumerate(parts.values(), height):
        several = np.sort(np.concatenate([lines[row] for row in members]))
        for j, stack in enumerate([*stacks, everywhere]):
            at_both = np.intersect1d(several, stack, assume_unique=True)
            if at_both.size:
                put(i, j, at_both)
    put(-1, -1, everywhere)
    if hidden is not None:
        values[hidden], lower[hidden], upper[hidden] = None, np.nan, np.nan
    names = [(first, *_margin([key[1:] for key in rows])) for first in parts]
    rows, columns = [*rows, *names, _margin(rows)], [*columns, _margin(columns)]
    full = Crosstab(
        down, across, rows, columns, values, lower, upper, sizes, whole and share is None
    )
    return full if share is None else _shares(full, layout, counted, share)


def subtotals(rows: Sequence[Key]) -> dict[Any, list[int]]:
    """For each first part of the keys of some rows, the places of its rows."""
    parts: dict[Any, list[int]] = {}
    for place, key in enumerate(rows):
        parts.setdefault(key[0], []).append(place)
    return parts


def lines_of(table: pl.DataFrame, names: Sequence[str]) -> tuple[list[Key], list[Array]]:
    """The distinct keys of some columns, in order, and for each the places of its rows."""
    at = unlike("at", set(names))
    groups = table.select(names).with_row_index(at).group_by(names, maintain_order=True).agg(at)
    return groups.select(names).rows(), [rows.to_numpy() for rows in groups.get_column(at)]


def _shares(grid: Crosstab, layout: Layout, counted: Floats, share: ShareError) -> Crosstab:
    """Each number divided by its row margin, column margin or the total, as in `pd.crosstab`.

    Input:  grid: cells and margins, whose intervals are around the numbers as drawn; counted: how
            many cells each of its numbers adds up
    Output: shares with about 95% intervals where those of the grid are 95%; a share is null where
            the margin is not above 0, and has the ends of every possible share where the noise does
            not tell the margin from 0
    Bound:  let a cell a have an error of length e, and its margin b, the sum of k such cells, one
            of length f. Noise is alike in all cells of a margin, so that their covariances with b
            are alike too, and a part of m cells has m / k of the variance of b as its covariance
            with b. So a - r·b has the squared length e² - 2 r·m/k·f² + r²·f², and the interval
            holds every r within it, as in Fieller's theorem. It is the same for r and 1 - r in a
            margin of two cells. Rounding moves a - r·b by at most (1 + |r|) times `moved`, and (x +
            y)² <= (1 + t)x² + (1 + 1/t)y² for t = moved / e
    Source: Fieller 1954, "Some problems in interval estimation"
    """
    of = {"index": np.s_[:, -1:], "columns": np.s_[-1:, :], "all": np.s_[-1:, -1:]}[
        layout.normalize
    ]
    middle = (grid.lower + grid.upper) / 2
    length = (grid.upper - grid.lower) / 2 + share.half - share.moved
    own, part = length[of] ** 2, counted / np.maximum(counted[of], 1)
    factor = 1 + share.moved / np.where(length > 0, length, 1.0)
    # (1 + 1/t) moved² (1 + |r|)², of which the last is <= 2 + 2r²
    beside = 2 * share.moved * (share.moved + length)
    squares = factor * length**2 + beside, factor * part * own, factor * own + beside
    low, high = quotient_ends(middle, np.broadcast_to(middle[of], middle.shape), squares)
    open_ended, (least, most) = np.isnan(low) & ~np.isnan(length), share.ends
    low = np.where(open_ended, least, np.maximum(low, least))
    high = np.where(open_ended, most, np.minimum(high, most))
    ratio = grid.numbers / np.where(grid.numbers[of] > 0, grid.numbers[of], np.nan)
    values = ratio.astype(np.object_)
    values[np.isnan(ratio)] = None
    height = None if layout.margins and layout.normalize != "columns" else -1
    width = None if layout.margins and layout.normalize != "index" else -1
    return replace(
        grid,
        rows=grid.rows[:height],
        columns=grid.columns[:width],
        values=values[:height, :width],
        lower=low[:height, :width],
        upper=high[:height, :width],
    )


def laid_out(table: pl.DataFrame, kind: Kind, grid: Crosstab | None) -> Any:
    """The released table in the user's kind of table; as a crosstab if there is a grid."""
    if grid is None:
        return as_kind(table, kind)
    grid = grid.read()
    if kind == "pandas":
        return _pandas(grid)
    return as_kind(_polars(table, grid), kind)


# pandas


def _pandas(grid: Crosstab) -> Any:
    import pandas as pd

    index, columns = _index(pd, grid.rows, grid.down), _index(pd, grid.columns, grid.across)
    dtype = "float64" if not grid.whole else "Int64" if np.isnan(grid.numbers).any() else "int64"
    if grid.marks is not None:
        return pd.DataFrame(grid.marked, index=index, columns=columns, dtype=object)
    return pd.DataFrame(grid.values, index=index, columns=columns, dtype=dtype)


def _index(pd: Any, keys: list[Key], names: Sequence[str]) -> Any:
    if len(names) == 1:
        return pd.Index([key[0] for key in keys], name=names[0])
    return pd.MultiIndex.from_tuples(keys, names=list(names))


def _margin(keys: list[Key]) -> Key:
    """The key of a margin: "All", followed by underscores if there is such a key."""
    name = unlike(ALL, {key[0] for key in keys})
    return (name, *[""] * (len(keys[0]) - 1 if keys else 0))


def unlike(name: str, names: set[Any]) -> str:
    """A name that is not among `names`: underscores are appended until it differs."""
    while name in names:
        name += "_"
    return name


# Polars


def _polars(table: pl.DataFrame, grid: Crosstab) -> pl.DataFrame:
    """A Polars table with a column for each key across; keys down are text beside a margin."""
    height, width = grid.sizes
    labels = _labels(grid.columns[:width], set(grid.down))
    if len(grid.columns) > width:
        labels.append(unlike(ALL, {*labels, *grid.down}))
    keys = table.select(grid.down).unique(maintain_order=True)
    if len(grid.rows) > height:
        names = dict(
            zip(
                keys.rows(), keys.with_columns(map(as_text, keys.get_columns())).rows(), strict=True
            )
        )
        texts = [names.get(key, tuple(map(label, key))) for key in grid.rows]
        keys = pl.DataFrame(texts, dict.fromkeys(grid.down, pl.String), orient="row")
    dtype: pl.DataType = pl.Int64() if grid.whole else pl.Float64()
    values = grid.values
    if grid.marks is not None:
        dtype, values = pl.String(), np.vectorize(_as_mark, otypes=[object])(grid.marked)
    series = zip(labels, values.T.tolist(), strict=True)
    return keys.with_columns([pl.Series(label, values, dtype=dtype) for label, values in series])


def _as_mark(value: object) -> str | None:
    return None if value is None else str(value)


def as_text(keys: pl.Series) -> pl.Series:
    """Keys as texts, as `label_of` writes them too: "True", "2026-01-31 00:00:00", "3:00:00"."""
    if keys.dtype not in (pl.Boolean, pl.Datetime, pl.Duration):
        return keys.cast(pl.String)
    return pl.Series(
        keys.name, [None if key is None else label(key) for key in keys], dtype=pl.String
    )


def with_every_key(table: pl.DataFrame, fillers: Mapping[str, str]) -> pl.DataFrame:
    """A table with all of some keys, as texts; a filler is in columns that it does not have."""
    keys = [
        (as_text(table[name]) if name in table.columns else pl.lit(filler)).alias(name)
        for name, filler in fillers.items()
    ]
    return table.select(*keys, *(name for name in table.columns if name not in fillers))


def _labels(keys: list[Key], names: set[str]) -> list[str]:
    """Keys as distinct column names: ("a", 1) is "a, 1"; underscores tell equal names apart."""
    labels, names = [], set(names)
    for key in keys:
        labels.append(unlike(label_of(key), names))
        names.add(labels[-1])
    return labels


def label_of(key: Key) -> str:
    """A key as text."""
    return ", ".join(map(label, key))


# Descriptions

STATISTIC = "statistic"  # the column that names the statistics, as in Polars
_LOWER, _UPPER = "min", "max"
BOUNDS_SHOWN = (
    "min and max are the bounds that values were clipped to, and not the smallest and the largest "
    "value."
)


def described_table(numbers: Numbers) -> pl.DataFrame:
    """The released numbers as a table: a column `statistic`, and one for each described column.

    The bounds are public, or were chosen by `dp.Auto` and released: they follow from the question.
    A cell is null where a column has no such statistic.
    """
    cells = _cells(numbers)
    rows = [list(column) for column in cells.values()]
    labels = max(rows, key=len)  # a column of numbers has all statistics
    columns = {
        name: pl.Series(name, [column.get(label) for label in labels], dtype=pl.Float64)
        for name, column in cells.items()
    }
    return pl.DataFrame({_heading(numbers): labels, **columns})


def described(numbers: Numbers, kind: Kind) -> Any:
    """The description in the user's kind of table. In pandas the statistics are the index."""
    table = as_kind(described_table(numbers), kind)
    if kind != "pandas":
        return table
    return table.set_index(_heading(numbers)).rename_axis(None)


def described_errors(numbers: Numbers, errors: pl.DataFrame) -> pl.DataFrame:
    """A table of errors with the statistic and the column that each line is about."""
    parts = {output.name: _parts(numbers, output) for output in numbers.outputs}
    names = errors["column"].to_list()
    return errors.with_columns(
        pl.Series("column", [parts[name][0] for name in names], pl.String)
    ).insert_column(0, pl.Series(STATISTIC, [parts[name][1] for name in names], pl.String))


def errors_across(numbers: Numbers, errors: pl.DataFrame) -> dict[str, list[float | None]]:
    """The error of each cell, by column; None for exact bounds and for cells that are null."""
    table, named = described_table(numbers), described_errors(numbers, errors)
    by_cell = {
        (column, label): error
        for column, label, error in named.select("column", STATISTIC, "error").iter_rows()
    }
    labels = table.to_series(0).to_list()
    return {
        name: [by_cell.get((name, label)) for label in labels] for name in numbers.layout.across
    }


def _cells(numbers: Numbers) -> dict[str, dict[str, float | None]]:
    """The numbers by column and statistic, in the order of pandas:
    the lower bound before quantiles, the upper last.
    """
    cells: dict[str, dict[str, float | None]] = {name: {} for name in numbers.layout.across}
    ends: dict[str, tuple[float, float]] = {}
    for output in numbers.outputs:
        column, label = _parts(numbers, output)
        if output.rank is not None:
            cells[column].setdefault(_LOWER, ends[column][0])
        cells[column][label] = numbers.shown[output.name][0]
        if output.bounds is not None:
            ends[column] = output.ends
    for column, (low, high) in ends.items():
        cells[column] |= {_LOWER: low, _UPPER: high}
    return cells


def _parts(numbers: Numbers, output: ReleasedColumn) -> tuple[str, str]:
    """The column and the statistic of a released column, whose name has an underscore between."""
    column, _, label = output.name.rpartition("_")
    assert column in numbers.layout.across
    return column, label


def _heading(numbers: Numbers) -> str:
    """The name of the column of statistics, which is not that of a described column."""
    return unlike(STATISTIC, set(numbers.layout.across))
