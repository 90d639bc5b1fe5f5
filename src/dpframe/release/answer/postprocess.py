"""Free changes of a released table: numbers made consistent, in tables whose margins still add up.

Nothing here reads rows or draws noise: each function takes released numbers and gives others, so it
has no privacy cost whatever it does (post-processing, Dwork and Roth 2014, proposition 2.1). The
largest of released groups are picked too.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from dpframe.arrays import Floats, Integers
from dpframe.plan import Formula, Question, ReleasedColumn
from dpframe.release.estimators import estimator_of

_SWEEPS = 1000
_TINY = 1e-9


def nonnegative(cells: Floats) -> Floats:
    """The nonnegative table nearest to `cells`, by least squares, with the same total and margins.

    Input:  cells: rows by columns; a list is a table of one row
    Output: a table of the same shape. The total is kept, or is 0 if it was negative. Row sums and
            column sums are kept if all are at least 0; else they are first projected in the same
            way, with this total
    Bound:  max(cells - a_i - b_j, 0) with the a and b that give these sums: the conditions of
            Karush, Kuhn and Tucker. All a and all b are solved for in turn, until sums are within
            1e-9 of the total
    Source: Michelot 1986, doi:10.1007/BF00938486, for one row; Dykstra 1983, doi:10.2307/2288193,
            for turns

    >>> nonnegative(np.array([[5.0, -2.0, 3.0]]))
    array([[4., 0., 2.]])
    """
    cells = np.asarray(cells, np.float64)
    if not cells.size or cells.min() >= 0:
        return cells
    total = max(float(cells.sum()), 0.0)
    if not total:
        return np.zeros_like(cells)
    rows, columns = (
        _projection(cells.sum(axis=axis)[None], np.array([total]))[0] for axis in (1, 0)
    )
    if 1 in cells.shape:
        return np.asarray(rows[:, None] if cells.shape[1] == 1 else columns[None])
    return nearest_table(cells, rows, columns)


def nearest_table(cells: Floats, rows: Floats, columns: Floats) -> Floats:
    """The nonnegative table nearest to `cells` (least squares) with given sums of rows
    and columns; see `nonnegative`.

    Input:  cells; rows, columns: sums of at least 0, with one total
    """
    across, total = np.zeros(cells.shape[1]), float(rows.sum())
    result = cells
    for _ in range(_SWEEPS):
        down = _shift(cells - across, rows)
        across = _shift((cells - down[:, None]).T, columns)
        result = np.maximum(cells - down[:, None] - across, 0.0)
        if np.abs(result.sum(axis=1) - rows).max() <= _TINY * total:
            break
    return np.asarray(result)


def nearest_with_sums(values: Floats, totals: Floats, *, positive: bool) -> Floats:
    """The nearest rows (least squares) with given sums;
    not negative if `positive`, with sums of at least 0.

    >>> nearest_with_sums(np.array([[5.0, 1.0]]), np.array([2.0]), positive=True)
    array([[2., 0.]])
    """
    if not positive:
        return np.asarray(values + ((totals - values.sum(axis=1)) / values.shape[1])[:, None])
    result = _projection(values, totals)
    result[totals <= 0] = 0.0
    return result


def _projection(values: Floats, totals: Floats) -> Floats:
    return np.maximum(values - _shift(values, totals)[:, None], 0.0)


def _shift(values: Floats, totals: Floats) -> Floats:
    """For each row, the t with sum of max(value - t, 0) = its total, at least 0."""
    descending = -np.sort(-values, axis=1)
    count = np.arange(1, values.shape[1] + 1)
    levels = (np.cumsum(descending, axis=1) - totals[:, None]) / count
    # the values above their level are the first ones
    last = np.maximum((descending > levels).sum(axis=1) - 1, 0)
    return np.asarray(levels[np.arange(len(values)), last])


def table_of(
    values: Floats, rows: pl.DataFrame, columns: pl.DataFrame
) -> tuple[Floats, Integers] | None:
    """Values as a table, and the place of each in it;
    None unless every combination of rows and columns occurs once.

    Input:  rows, columns: the keys of each value, along each side of the table, which are in the
            order of their first value
    """
    table, places = spread(values, rows, columns)
    return None if np.isnan(table).any() else (table, places)


def spread(values: Floats, rows: pl.DataFrame, columns: pl.DataFrame) -> tuple[Floats, Integers]:
    """Values as a table with NaN where there is none, and the place
    of each in it; see `table_of`.
    """
    down, across = (keys.unique(maintain_order=True) for keys in (rows, columns))
    places = _numbers_of(rows, down) * across.height + _numbers_of(columns, across)
    table = np.full(down.height * across.height, np.nan)
    table[places] = values
    return table.reshape(down.height, across.height), places


def _numbers_of(keys: pl.DataFrame, different: pl.DataFrame) -> Integers:
    """The number of each key among the different ones; null is a key."""
    # a column of the user's may be called as that of the numbers
    names = [f"k{i}" for i in range(keys.width)]
    numbered = different.rename(dict(zip(keys.columns, names, strict=True))).with_row_index(
        "number"
    )
    joined = keys.rename(dict(zip(keys.columns, names, strict=True))).join(
        numbered, on=names, how="left", nulls_equal=True, maintain_order="left"
    )
    return joined.get_column("number").cast(pl.Int64).to_numpy()


def floats_of(table: pl.DataFrame, name: str) -> Floats:
    """A column of numbers as floats."""
    return table.get_column(name).cast(pl.Float64).to_numpy()


def is_total(output: ReleasedColumn) -> bool:
    """Whether a column holds counts or sums of numbers."""
    return estimator_of(output).adds_up and output.dtype is None


def adds_up(output: ReleasedColumn) -> bool:
    """Whether the numbers of groups add up to the number of all;
    numbers of different values do not.
    """
    return is_total(output) and not output.total.of_different_values


def known_nonnegative(output: ReleasedColumn) -> bool:
    """Whether a column holds counts, or sums of values whose lower bound is at least 0."""
    return is_total(output) and (output.formula is Formula.COUNT or output.total.grid.ends[0] >= 0)


# The largest groups

# among the parts of an answer: how many groups the kept ones were picked from
GROUPS_FOUND = "groups found"


def largest_groups(
    question: Question, table: pl.DataFrame, parts: dict[str, np.ndarray]
) -> tuple[pl.DataFrame, dict[str, np.ndarray]]:
    """The groups with the largest released numbers, the largest first;
    all groups where the question keeps all.

    Input:  the released table, one row per group that was found; parts: numbers beside it, one per
            group
    Output: table and parts with at most `layout.largest` groups. Equal numbers keep the order of
            the table. The parts have `GROUPS_FOUND` too, in each row
    Bound:  the table was released in full: its keys and its noisy numbers are private together.
            Which of them are shown, and how many there were, is a function of that table
    Source: post-processing, Dwork and Roth 2014, proposition 2.1
    """
    most = question.layout.largest
    if most is None:
        return table, parts
    ((name, _),) = question.aggregates
    kept = np.argsort(-floats_of(table, name), kind="stable")[:most]
    return table[kept], {n: p[kept] for n, p in parts.items()} | {
        GROUPS_FOUND: np.full(len(kept), float(table.height))
    }


def found_words(question: Question, table: pl.DataFrame) -> str:
    """The number of groups that were found, and whether it is less than was asked for."""
    most = question.layout.largest or 0
    fewer = f", fewer than the {most} that were asked for" if table.height < most else ""
    return f"Groups that were found: {table.height}{fewer}."
