"""The tables of a released hierarchy: one for each level, or all together, as other kinds of tables and as files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
import polars as pl

from dpframe.arrays import Floats, Integers
from dpframe.engine import Kind, Table_co, as_kind
from dpframe.errors import UnknownColumn
from dpframe.plan import ReleasedColumn, Tree
from dpframe.release.answer import OTHER, SMALL, Reader, Suppression, hidden_in_tree
from dpframe.release.kinds.hierarchy.agreeing import Agreeing, on_grid
from dpframe.release.kinds.hierarchy.errors import level_errors, level_variances
from dpframe.release.pricing import NoisePlan
from dpframe.release.shown import Released, unlike, with_every_key
from dpframe.release.shown.files import write_csv, write_latex, write_parquet

_SHOWN = 12  # rows of a level in a notebook


@dataclass(frozen=True, eq=False, repr=False)
class LevelTables(Released[Table_co]):
    """The numbers of a hierarchy as tables. One level is `level="region"`; without it all levels are together."""

    _tree: Tree
    _outputs: tuple[ReleasedColumn, ...]
    _leaf_keys: pl.DataFrame
    _noise: NoisePlan
    _drawn: pl.DataFrame
    _value: str = "count"
    _changed: Agreeing | None = None
    _lifted: bool = False  # whether negative numbers were removed, so that intervals end at 0
    _ci: float | None = None
    _suppression: Suppression | None = None

    _numbered = True

    # Levels

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels, from the top: "total", then the columns of the tree."""
        return self._tree.names

    @property
    def table(self) -> Table_co:
        """The table of the leaves, in the kind of table that was protected."""
        leaves: Table_co = self[self.levels[-1]]
        return leaves

    def __getitem__(self, level: str) -> Any:
        """The table of a level, in the kind of table that was protected. Errors: UnknownColumn."""
        return as_kind(self._polars(self._place(level)), self._kind)

    def __iter__(self) -> Iterator[str]:
        return iter(self.levels)

    def __len__(self) -> int:
        return len(self.levels)

    def _place(self, level: object) -> int:
        if level not in self.levels:
            raise UnknownColumn(f"hierarchy: there is no level {level!r}. Levels: {', '.join(self.levels)}.")
        return self.levels.index(str(level))

    def _keys(self, level: int) -> pl.DataFrame:
        """The keys of a level's table, a row for each node and crossed key."""
        cells = self._tree.cells
        rows = (self._tree.first_leaves[level][:, None] * cells + np.arange(cells)).ravel()
        return self._leaf_keys[rows].select(self._tree.by(level))

    def _polars(self, level: int) -> pl.DataFrame:
        """A level as a Polars table, with the ends of its intervals if they are shown."""
        columns = [self._series(level)]
        if self._ci is not None:
            lower, upper = (pl.Series(end, nan_to_null=True) for end in self._ends(level, 1 - self._ci))
            if self._numbers.exponent == 0:
                lower, upper = (end.cast(pl.Int64) for end in (lower.floor(), upper.ceil()))
            columns += [lower.alias(f"{self._value}_low"), upper.alias(f"{self._value}_high")]
        return pl.concat([self._keys(level), pl.DataFrame(columns)], how="horizontal")

    def _series(self, level: int) -> pl.Series:
        """The numbers of a level as they are shown: whole ones as integers, suppressed ones as null."""
        numbers = self._numbers
        if numbers.exponent == 0:
            series = pl.Series(self._value, numbers.levels[level].ravel(), dtype=pl.Int64)
        else:
            series = pl.Series(self._value, numbers.floats(level).ravel())
        if self._hidden is None:
            return series
        shown = pl.Series(self._hidden[level].ravel() == 0)
        return pl.select(pl.when(shown).then(series).alias(self._value)).to_series()

    @cached_property
    def _fitted(self) -> Agreeing:
        """The least-squares estimates of all nodes, as they were released: they add up exactly."""
        shape, noisy = self._tree.shape, []
        by_level = {int(level): part["value"].to_numpy() for (level,), part in self._drawn.group_by("level")}
        for level, size in enumerate(shape.sizes):
            values = by_level.get(level, np.zeros(0))
            noisy.append(values.reshape(size, self._tree.cells) if len(values) else np.zeros((size, self._tree.cells)))
        return on_grid(shape, shape.estimates(noisy, self._variances))

    @cached_property
    def _variances(self) -> list[float]:
        """The variance of the noise of each level; ones where no unit can change a number."""
        variances = level_variances(self.levels, self._noise)
        return variances if all(variances) else [1.0] * len(variances)

    @property
    def _numbers(self) -> Agreeing:
        return self._fitted if self._changed is None else self._changed

    @cached_property
    def _hidden(self) -> list[Integers] | None:
        """Why numbers of each level are not shown, by the codes of `release.answer.suppression`; None if all are."""
        if self._suppression is None:
            return None
        numbers, below = self._numbers, self._suppression.below
        values = [numbers.floats(level) for level in range(len(self.levels))]
        if not self._suppression.secondary:
            return [np.where(level < below, SMALL, 0) for level in values]
        reader = Reader(below, 0.0 if self._lifted else -math.inf, whole=numbers.exponent == 0)
        return hidden_in_tree(self._tree.shape, values, reader)

    @property
    def _veiled(self) -> bool:
        """Whether intervals would tell what is hidden: see `dpframe.release.answer.numbers`."""
        return self._lifted and self._suppression is not None and self._suppression.secondary

    def _ends(self, level: int, alpha: float) -> tuple[Floats, Floats]:
        """The ends of the intervals of a level's numbers; NaN for suppressed ones, and where they would tell these."""
        middle = self._fitted.floats(level)
        error = level_errors(self._tree.shape, self._noise, self._variances, alpha)[level][:, None]
        error = error + 2.0**self._fitted.exponent * 2  # what the grid of exact sums moves
        lower, upper = middle - error, middle + error
        if self._lifted:
            lower, upper = np.maximum(lower, 0.0), np.maximum(upper, 0.0)
        if self._hidden is not None:
            told = (self._hidden[level] == 0) & (not self._veiled)
            lower, upper = (np.where(told, end, math.nan) for end in (lower, upper))
        return lower.ravel(), upper.ravel()

    # All levels together

    def _in_kind(self, kind: Kind) -> Any:
        return as_kind(self.to_polars(), kind)

    def _marked(self, kind: Kind) -> Any:
        return as_kind(self._written(), kind)

    def _together(self, tables: Sequence[pl.DataFrame], by: Sequence[str]) -> pl.DataFrame:
        """Tables of all levels in one: `level` first, keys as text, and "" in the columns of lower levels."""
        name = unlike("level", {*self._tree.columns, *self._tree.crossed, self._value})
        full = [with_every_key(table, dict.fromkeys(by, "")) for table in tables]
        levels = zip(self.levels, full, strict=True)
        return pl.concat([table.select(pl.lit(level).alias(name), pl.all()) for level, table in levels])

    def to_polars(self, level: str | None = None) -> pl.DataFrame:
        """A level, or all of them in one table: `level` first, keys as text, and "" in the columns of lower levels."""
        if level is not None:
            return self._polars(self._place(level))
        return self._together(list(map(self._polars, range(len(self)))), (*self._tree.columns, *self._tree.crossed))

    def to_pandas(self, level: str | None = None) -> Any:
        """A level, or all of them in one pandas table; see `to_polars`."""
        return as_kind(self.to_polars(level), "pandas")

    def to_arrow(self, level: str | None = None) -> Any:
        """A level, or all of them in one PyArrow table; see `to_polars`."""
        return as_kind(self.to_polars(level), "pyarrow")

    def _written(self, level: str | None = None) -> pl.DataFrame:
        """The table of `to_polars` with marks in place of suppressed numbers, which makes their column a text."""
        table = self.to_polars(level)
        if self._suppression is None or self._suppression.marks is None or self._hidden is None:
            return table
        small, other = self._suppression.marks
        places = range(len(self._tree.names)) if level is None else [self._place(level)]
        is_other = np.concatenate([self._hidden[place].ravel() == OTHER for place in places])
        mark = pl.when(pl.Series(is_other)).then(pl.lit(other)).otherwise(pl.lit(small))
        number = pl.col(self._value)
        text = pl.when(number.is_null()).then(mark).otherwise(number.cast(pl.String))
        return table.with_columns(text.alias(self._value))

    def to_csv(self, path: Any = None, level: str | None = None) -> str | None:
        """A level, or all of them together, as CSV: a text, or a file if there is a path; see `to_polars`."""
        return write_csv(self._written(level), path)

    def to_parquet(self, path: Any, level: str | None = None) -> None:
        """A level, or all of them together, as a Parquet file with the privacy statement in its metadata."""
        write_parquet(self.to_arrow(level), path, self.report().to_dict())

    def _sheets(self) -> dict[str, tuple[Any, bool]]:
        return {name: (as_kind(self._written(name), "pandas"), False) for name in self.levels}

    def to_latex(self, path: Any = None, level: str | None = None, **options: Any) -> str | None:
        """A level, or all of them together, in LaTeX, by pandas' `DataFrame.to_latex`; needs the extra `latex`."""
        return write_latex(as_kind(self._written(level), "pandas"), path, False, options)

    def to_html(self, path: Any = None, level: str | None = None, **options: Any) -> str | None:
        """A level, or all of them together, in plain HTML, by pandas' `DataFrame.to_html`."""
        text: str | None = as_kind(self._written(level), "pandas").to_html(path, **{"index": False, **options})
        return text

    def _repr_html_(self) -> str:
        parts = []
        for place, name in enumerate(self._tree.names):
            size = self._tree.shape.sizes[place] * self._tree.cells
            short = as_kind(self._written(name).head(_SHOWN), "pandas").to_html(index=False, border=0)
            more = f"<p>… and {size - _SHOWN:,} more rows.</p>" if size > _SHOWN else ""
            parts.append(f"<p><b>{escape(name)}</b></p>{short}{more}")
        sentence = f"All levels released together at {self.cost}; they add up. Errors: .accuracy(), .with_ci()."
        return f"<div class='dpframe'>{''.join(parts)}<p>{escape(sentence)}</p></div>"
