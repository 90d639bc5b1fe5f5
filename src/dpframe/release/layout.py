"""Tables as people read them: a released long table laid out as a crosstab, and as the user's kind of table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from dpframe.engine.tables import Kind, as_kind
from dpframe.plan.ask import Layout

__all__ = ["ALL", "Grid", "Number", "Read", "grid_of", "label_of", "laid_out", "unlike"]

ALL = "All"  # the name of a margin, as in pandas
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Number:
    """A number of a table with the interval that it stands for; None where it is suppressed or not known."""

    value: int | float | None
    lower: float | None = None
    upper: float | None = None

    @property
    def error(self) -> float | None:
        """The largest distance from the number to an end of its interval."""
        if self.value is None or self.lower is None or self.upper is None:
            return None
        return max(self.value - self.lower, self.upper - self.value, 0.0)


Read = Callable[[Sequence[int]], Number]  # the number that rows of the long table make together


@dataclass(frozen=True)
class Grid:
    """A crosstab: keys down and across, margins last, and a number in each cell, None where there is no cell.

    `sizes` is how many rows and how many columns are no margins; `whole` says whether all numbers are integers.
    """

    down: tuple[str, ...]
    across: tuple[str, ...]
    rows: list[Key]
    columns: list[Key]
    cells: list[list[Number | None]]
    sizes: tuple[int, int]
    whole: bool

    def values(self) -> list[list[int | float | None]]:
        """The numbers alone."""
        return [[None if cell is None else cell.value for cell in row] for row in self.cells]


def grid_of(table: pl.DataFrame, by: Sequence[str], layout: Layout, read: Read, *, whole: bool) -> Grid:
    """The crosstab of a long table, with its margins, or as parts of them where the layout says so."""
    across = layout.across
    down = tuple(name for name in by if name not in across)
    keys_down, keys_across = table.select(down).rows(), table.select(across).rows()
    rows, columns = list(dict.fromkeys(keys_down)), list(dict.fromkeys(keys_across))
    at = {pair: i for i, pair in enumerate(zip(keys_down, keys_across, strict=True))}
    lines = [[at[row, key] for key in columns if (row, key) in at] for row in rows]
    stacks = [[at[row, key] for row in rows if (row, key) in at] for key in columns]
    cells = [[read([at[row, key]]) if (row, key) in at else None for key in columns] for row in rows]
    full = Grid(down, across, rows, columns, cells, (len(rows), len(columns)), whole and not layout.normalize)
    if not layout.margins and not layout.normalize:
        return full
    beside, below = [read(line) for line in lines], [read(stack) for stack in stacks]
    corner = read(range(table.height))
    full = replace(
        full,
        rows=[*rows, _margin(rows)],
        columns=[*columns, _margin(columns)],
        cells=[[*row, margin] for row, margin in zip(cells, beside, strict=True)] + [[*below, corner]],
    )
    return _shares(full, layout) if layout.normalize else full


def _shares(grid: Grid, layout: Layout) -> Grid:
    """Each number as a part of its row, its column or the total, with the margins that `pd.crosstab` then has."""
    last_row, last_column = grid.cells[-1], [row[-1] for row in grid.cells]
    cells = [
        [
            _share(cell, {"index": last_column[i], "columns": last_row[j], "all": last_row[-1]}[layout.normalize])
            for j, cell in enumerate(row)
        ]
        for i, row in enumerate(grid.cells)
    ]
    height = len(cells) if layout.margins and layout.normalize != "columns" else len(cells) - 1
    width = len(cells[0]) if layout.margins and layout.normalize != "index" else len(cells[0]) - 1
    kept = [row[:width] for row in cells[:height]]
    return replace(grid, rows=grid.rows[:height], columns=grid.columns[:width], cells=kept)


def _share(part: Number | None, whole: Number | None) -> Number | None:
    """Part / whole, null where the whole is not above 0.

    With a part within e and a whole N within f, true / true differs from the released ratio by at most
    (e + true ratio · f) / N, and the true ratio is at most 1 and at most the released one plus that.
    """
    if part is None or whole is None:
        return None
    if part.value is None or whole.value is None or whole.value <= 0:
        return Number(None)
    ratio = part.value / whole.value
    if part.error is None or whole.error is None:
        return Number(ratio)
    error = (part.error + whole.error) / whole.value
    for _ in range(8):
        error = min(error, (part.error + min(1.0, max(ratio, 0.0) + error) * whole.error) / whole.value)
    return Number(ratio, ratio - error, ratio + error)


def laid_out(table: pl.DataFrame, kind: Kind, grid: Grid | None) -> Any:
    """The released table, as a grid where there is one, as the user's kind of table."""
    if grid is None:
        return as_kind(table, kind)
    if kind == "pandas":
        return _pandas(grid)
    return as_kind(_polars(table, grid), kind)


# pandas


def _pandas(grid: Grid) -> Any:
    import pandas as pd

    index, columns = _index(pd, grid.rows, grid.down), _index(pd, grid.columns, grid.across)
    values = grid.values()
    gaps = any(value is None for row in values for value in row)
    dtype = "float64" if not grid.whole else "Int64" if gaps else "int64"
    return pd.DataFrame(values, index=index, columns=columns, dtype=dtype)


def _index(pd: Any, keys: list[Key], names: Sequence[str]) -> Any:
    if len(names) == 1:
        return pd.Index([key[0] for key in keys], name=names[0])
    return pd.MultiIndex.from_tuples(keys, names=list(names))


def _margin(keys: list[Key]) -> Key:
    """The key of a margin: "All", or with underscores after it where that is a key already."""
    name = unlike(ALL, {key[0] for key in keys})
    return (name, *[""] * (len(keys[0]) - 1 if keys else 0))


def unlike(name: str, taken: set[Any]) -> str:
    """A name, with underscores after it where it is taken."""
    while name in taken:
        name += "_"
    return name


# Polars


def _polars(table: pl.DataFrame, grid: Grid) -> pl.DataFrame:
    """One column for each key across; the keys down are texts where a margin stands among them."""
    height, width = grid.sizes
    labels = _labels(grid.columns[:width], set(grid.down))
    if len(grid.columns) > width:
        labels.append(unlike(ALL, {*labels, *grid.down}))
    keys = table.select(grid.down).unique(maintain_order=True)
    if len(grid.rows) > height:
        bottom = pl.DataFrame({name: [part] for name, part in zip(grid.down, grid.rows[-1], strict=True)})
        keys = pl.concat([keys.with_columns(pl.all().cast(pl.String)), bottom])
    values, dtype = grid.values(), pl.Int64() if grid.whole else pl.Float64()
    return keys.with_columns(
        [pl.Series(label, [row[j] for row in values], dtype=dtype) for j, label in enumerate(labels)]
    )


def _labels(keys: list[Key], taken: set[str]) -> list[str]:
    """Keys as different column names: ("a", 1) is "a, 1"; underscores tell apart what would look alike."""
    labels: list[str] = []
    for key in keys:
        labels.append(unlike(label_of(key), taken | set(labels)))
    return labels


def label_of(key: Key) -> str:
    """A key as text."""
    return ", ".join("null" if part is None else str(part) for part in key)
