"""A description of columns in the shape of pandas' `describe`: statistics down, columns across."""

from __future__ import annotations

from typing import Any

import polars as pl

from dpframe.engine import Kind, as_kind
from dpframe.plan import ReleasedColumn
from dpframe.release.answer import Numbers
from dpframe.release.shown.crosstab import unlike

STATISTIC = "statistic"  # the column that names the statistics, as in Polars
_LOWER, _UPPER = "min", "max"
BOUNDS_SHOWN = "min and max are the bounds that values were clipped to, and not the smallest and the largest value."


def described_table(numbers: Numbers) -> pl.DataFrame:
    """The released numbers as a table: a column `statistic`, and one for each described column.

    The bounds are public, or were chosen by `dp.Auto` and released: they follow from the question. A cell is null where
    a column has no such statistic.
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
    return errors.with_columns(pl.Series("column", [parts[name][0] for name in names], pl.String)).insert_column(
        0, pl.Series(STATISTIC, [parts[name][1] for name in names], pl.String)
    )


def errors_across(numbers: Numbers, errors: pl.DataFrame) -> dict[str, list[float | None]]:
    """The error of each cell, by column; None for the bounds, which are exact, and for cells that are null."""
    table, named = described_table(numbers), described_errors(numbers, errors)
    by_cell = {
        (column, label): error for column, label, error in named.select("column", STATISTIC, "error").iter_rows()
    }
    labels = table.to_series(0).to_list()
    return {name: [by_cell.get((name, label)) for label in labels] for name in numbers.layout.across}


def _cells(numbers: Numbers) -> dict[str, dict[str, float | None]]:
    """The numbers by column and statistic, in the order of pandas: the lower bound before quantiles, the upper last."""
    cells: dict[str, dict[str, float | None]] = {name: {} for name in numbers.layout.across}
    ends: dict[str, tuple[float, float]] = {}
    for output in numbers.outputs:
        column, label = _parts(numbers, output)
        if output.rank is not None:
            cells[column].setdefault(_LOWER, ends[column][0])
        cells[column][label] = numbers.shown[output.name][0]
        if output.bounds is not None:
            ends[column] = float(output.bounds.lower), float(output.bounds.upper)
    for column, (low, high) in ends.items():
        cells[column] |= {_LOWER: low, _UPPER: high}
    return cells


def _parts(numbers: Numbers, output: ReleasedColumn) -> tuple[str, str]:
    """The column and the statistic that a released column is about: its name is both, with an underscore between."""
    column, _, label = output.name.rpartition("_")
    assert column in numbers.layout.across
    return column, label


def _heading(numbers: Numbers) -> str:
    """The name of the column of statistics, which is not that of a described column."""
    return unlike(STATISTIC, set(numbers.layout.across))
