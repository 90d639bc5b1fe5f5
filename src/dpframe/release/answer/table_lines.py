"""A crosstab's cells, subtotals and margins as a matrix each of whose lines adds up to 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpframe.arrays import Booleans, Floats, Integers


def with_margins(cells: Floats, groups: Integers | None = None) -> Floats:
    """A table with its subtotals and margins, in more rows and one column
    more; a missing cell adds nothing.

    Input:  cells, NaN where there is none; groups: for each row the number of the subtotal that it
            belongs to; None without subtotals
    Output: the rows of the table, a row for each group of subtotals, NaN where it has no cell, and
            the row of margins

    >>> with_margins(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 0])).tolist()
    [[1.0, 2.0, 3.0], [3.0, 4.0, 7.0], [4.0, 6.0, 10.0], [4.0, 6.0, 10.0]]
    """
    known, there = np.nan_to_num(cells), np.isfinite(cells)
    parts = np.zeros((0 if groups is None else int(groups.max(initial=-1)) + 1, cells.shape[1]))
    empty = np.full(parts.shape, np.nan)
    if groups is not None:
        np.add.at(parts, groups, known)
        empty[groups[np.nonzero(there)[0]], np.nonzero(there)[1]] = 0.0
    body = np.vstack([known, parts, known.sum(axis=0)])
    full = np.column_stack([body, body.sum(axis=1)])
    full[:-1, :-1] = np.vstack([cells, parts + empty])
    return full


@dataclass(frozen=True)
class TableLines:
    """The place of each number of a table with margins in a matrix whose lines add up to 0.

    Without subtotals the matrix is the table itself, and the sign of row and column margins is
    turned. With subtotals there is a row for each row of the table, for each of its columns, and
    for the group totals; and a column for each column of a group, for the rows of a group, and for
    the column margins. So each number is in one row and one column, each sum of the table is one
    line, and there are no others:

    - a row of cells and its margin are a row; a column of cells in a group and its subtotal are a
      column;
    - the subtotals of a column and its margin are a row; the row margins of a group and its total
      are a column;
    - the group totals and the grand total are a row; the column margins and the grand total are a
      column.

    Numbers that are turned: row margins, subtotals of cells, and the grand total (without subtotals
    see above).
    """

    rows: Integers
    columns: Integers
    turned: Booleans
    shape: tuple[int, int]

    @staticmethod
    def of(height: int, width: int, groups: Integers | None = None) -> TableLines:
        """The lines of a table of so many rows and columns; groups: as for `with_margins`."""
        if groups is None:
            rows, columns = np.indices((height + 1, width + 1))
            return TableLines(
                rows, columns, (rows == height) != (columns == width), (height + 1, width + 1)
            )
        parts = int(groups.max(initial=-1)) + 1
        rows, columns = np.indices((height + parts + 1, width + 1))
        rows[height:] = height + np.arange(width + 1)
        columns[:height] = np.column_stack(
            [groups[:, None] * width + np.arange(width), parts * width + groups]
        )
        columns[height:-1] = np.column_stack(
            [np.arange(parts * width).reshape(parts, width), parts * width + np.arange(parts)]
        )
        columns[-1] = parts * (width + 1)
        turned = np.zeros(rows.shape, np.bool_)
        turned[:height, -1] = turned[height:-1, :-1] = turned[-1, -1] = True
        return TableLines(rows, columns, turned, (height + width + 1, parts * (width + 1) + 1))

    def matrix(self, numbers: Floats | Booleans) -> Floats:
        """Numbers of the table at their places in the matrix, 0 elsewhere. No sign is turned."""
        result = np.zeros(self.shape)
        result[self.rows, self.columns] = numbers
        return result
