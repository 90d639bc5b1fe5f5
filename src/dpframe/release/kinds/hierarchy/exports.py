"""A released hierarchy as other kinds of tables, as files and as markup."""

from __future__ import annotations

from abc import abstractmethod
from html import escape
from typing import Any

import numpy as np
import polars as pl

from dpframe.arrays import Integers
from dpframe.budget import Loss
from dpframe.engine import as_kind
from dpframe.errors import UnsupportedOperation
from dpframe.plan import Tree
from dpframe.release.answer import OTHER, Suppression
from dpframe.release.shown import Report, as_text, check_installed, write_csv, write_excel, write_latex, write_parquet

__all__ = ["HierarchyExports"]

_LONGEST = 1_048_575  # rows of a sheet of Excel below its head
_SHOWN = 12  # rows of a level in a notebook


class HierarchyExports:
    """What is written of a released hierarchy. One level is `level="region"`; without it all levels are together."""

    _tree: Tree
    _suppression: Suppression | None
    _value: str
    cost: Loss

    @abstractmethod
    def _polars(self, level: int) -> pl.DataFrame:
        """A level as a Polars table."""

    @abstractmethod
    def _place(self, level: object) -> int:
        """The place of a level from the root, by its name."""

    @property
    @abstractmethod
    def _hidden(self) -> list[Integers] | None:
        """Why numbers of each level are not shown; None if all are."""

    @abstractmethod
    def report(self) -> Report:
        """The privacy statement."""

    @property
    def _level_name(self) -> str:
        """The name of the column with the level: "level", with underscores if a key column has this name."""
        name = "level"
        while name in (*self._tree.columns, *self._tree.crossed, self._value):
            name += "_"
        return name

    def to_polars(self, level: str | None = None) -> pl.DataFrame:
        """A level, or all of them in one table: `level` first, keys as text, and "" in the columns of lower levels."""
        if level is not None:
            return self._polars(self._place(level))
        columns, parts = (*self._tree.columns, *self._tree.crossed), []
        name = self._level_name
        for place, title in enumerate(self._tree.names):
            table = self._polars(place)
            keys = [
                (as_text(table[column]) if column in table.columns else pl.lit("")).alias(column) for column in columns
            ]
            numbers = [column for column in table.columns if column not in columns]
            parts.append(table.select(pl.lit(title).alias(name), *keys, *numbers))
        return pl.concat(parts)

    def to_pandas(self, level: str | None = None) -> Any:
        """A level, or all of them in one pandas table; see `to_polars`."""
        return as_kind(self.to_polars(level), "pandas")

    def to_arrow(self, level: str | None = None) -> Any:
        """A level, or all of them in one PyArrow table; see `to_polars`."""
        return as_kind(self.to_polars(level), "pyarrow")

    def _marked(self, level: str | None = None) -> pl.DataFrame:
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
        return write_csv(self._marked(level), path)

    def to_parquet(self, path: Any, level: str | None = None) -> None:
        """A level, or all of them together, as a Parquet file with the privacy statement in its metadata."""
        write_parquet(self.to_arrow(level), path, self.report().to_dict())

    def to_excel(self, path: Any) -> None:
        """One sheet per level, and the privacy statement on the last sheet; needs the extra `excel`.

        Errors: UnsupportedOperation without the extra, and for a level with more rows than a sheet can hold
        """
        check_installed("openpyxl", "to_excel() needs openpyxl")
        names = self._tree.names
        if self._tree.shape.leaves * self._tree.cells > _LONGEST:
            raise UnsupportedOperation(
                f"to_excel(): a sheet holds {_LONGEST:,} rows, and {names[-1]!r} has more. Type "
                "out.to_csv('table.csv')."
            )
        sheets = {name: (as_kind(self._marked(name), "pandas"), False) for name in names}
        write_excel(sheets, path, self.report(), numbered=True)

    def to_latex(self, path: Any = None, level: str | None = None, **options: Any) -> str | None:
        """A level, or all of them together, in LaTeX, by pandas' `DataFrame.to_latex`; needs the extra `latex`."""
        return write_latex(as_kind(self._marked(level), "pandas"), path, False, options)

    def to_html(self, path: Any = None, level: str | None = None, **options: Any) -> str | None:
        """A level, or all of them together, in plain HTML, by pandas' `DataFrame.to_html`."""
        options.setdefault("index", False)
        return as_kind(self._marked(level), "pandas").to_html(path, **options)  # type: ignore[no-any-return]

    def _repr_html_(self) -> str:
        parts = []
        for place, name in enumerate(self._tree.names):
            size = self._tree.shape.sizes[place] * self._tree.cells
            short = as_kind(self._marked(name).head(_SHOWN), "pandas").to_html(index=False, border=0)
            more = f"<p>… and {size - _SHOWN:,} more rows.</p>" if size > _SHOWN else ""
            parts.append(f"<p><b>{escape(name)}</b></p>{short}{more}")
        sentence = f"All levels released together at {self.cost}; they add up. Errors: .accuracy(), .with_ci()."
        return f"<div class='dpframe'>{''.join(parts)}<p>{escape(sentence)}</p></div>"
