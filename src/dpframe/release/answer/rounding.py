"""Whole numbers, or multiples of a number, near released ones, whose sums are
near those of the released ones.

Nothing here reads rows or draws noise: each function takes released numbers and gives others, so it
has no privacy cost whatever it does (post-processing, Dwork and Roth 2014, proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dpframe.arrays import Booleans, Floats, Integers
from dpframe.release.answer.table_lines import TableLines, with_margins
from dpframe.usage import read_whole

_TURNS = 2  # of exchanges between rows, then columns; more hardly bring cells nearer
# fractions nearer to a whole number are none, more where sums of floats are less exact
_TINY = 1e-7
_FLOAT = 1e-14
_DIGITS = 9  # errors of floats beyond them decide nothing


def read_base(base: object) -> int:
    """The number of which rounded numbers are multiples. Errors: InvalidArgument."""
    return read_whole(
        base,
        1,
        10**9,
        "round(): numbers become multiples of a whole number: round() for whole numbers, "
        "round(5), round(10). Decimals are rounded in the table: out.table.round(2).",
    )


def rounded(cells: Floats, base: int = 1) -> Integers:
    """Integers near `cells` that add up: each cell, row sum, column sum and
    the total is rounded up or down.

    Input:  cells: rows by columns; a list is a table of one row; base: of which number they are to
            be multiples
    Output: integers of the same shape. For a list they are the nearest such integers to the cells
    Bound:  see `rounded_table`

    >>> rounded(np.array([[0.5, 0.5], [0.5, 0.5]])).sum(axis=0)
    array([1, 1])
    >>> rounded(np.array([[3.0, 4.0, 4.0]]), 5)
    array([[0, 5, 5]])
    """
    cells = np.asarray(cells, np.float64)
    if 1 not in cells.shape:
        return rounded_table(cells, base)
    exact = np.round(cells.ravel() / base, _DIGITS)
    tiny = _tiny(exact)
    low = np.floor(exact + tiny)
    parts = np.where(exact - low < tiny, 0.0, exact - low)
    up = np.zeros(len(parts))
    up[np.argsort(-parts, kind="stable")[: int(parts.sum() + 0.5)]] = 1
    return (low + up).astype(np.int64).reshape(cells.shape) * base


def rounded_table(cells: Floats, base: int, groups: Integers | None = None) -> Integers:
    """Multiples near the cells of a table: each cell, subtotal and margin is
    rounded up or down, and they add up.

    Input:  cells: rows by columns, NaN where there is none; base; groups: as for `with_margins`
    Output: integers of the shape of the cells, 0 where there is none. Their subtotals and margins
            are those of the rounded table. A number that is a multiple stays
    Bound:  in `TableLines` every line adds up to 0. So the fractions of a line add up to an
            integer, and a line with one fraction has two: there are closed walks through fractions.
            Fractions on such a walk go up and down in turn by one amount, which keeps all sums,
            until one of them is whole: see `_wholes`. Exchanges between two lines then bring
            numbers nearer, and keep all sums too
    Source: Cox 1987, "A constructive procedure for unbiased controlled rounding",
            doi:10.1080/01621459.1987.10478456
    """
    lines = TableLines.of(cells.shape[0], cells.shape[1], groups)
    numbers = np.round(np.nan_to_num(with_margins(cells, groups)) / base, _DIGITS)
    full = lines.matrix(np.where(lines.turned, -numbers, numbers))
    tiny = _tiny(full)
    low = np.floor(full + tiny)
    parts = np.round(full - low, _DIGITS)
    parts[parts < tiny] = 0.0
    up = _wholes(parts, tiny)
    for _ in range(_TURNS):
        up = _nearer(_nearer(up, parts).T.copy(), parts.T).T.copy()
    height, width = cells.shape
    return np.asarray(
        (low.astype(np.int64) + up)[lines.rows, lines.columns][:height, :width] * base
    )


def _tiny(numbers: Floats) -> float:
    """The largest fraction that is taken to be an error of floats."""
    return min(max(_TINY, _FLOAT * float(np.abs(numbers).max(initial=0.0))), 0.25)


def _neighbours(there: Booleans) -> list[set[int]]:
    """For each row, then each column, the points on the other side of its entries;
    columns are numbered after rows.
    """
    height = len(there)
    rows = [set((np.flatnonzero(row) + height).tolist()) for row in there]
    return rows + [set(np.flatnonzero(column).tolist()) for column in there.T]


def _wholes(parts: Floats, tiny: float) -> Integers:
    """Fractions as 0 or 1 with the sums of lines kept, which are integers up to errors of floats.
    0 stays 0.

    Bound:  a walk goes on from fraction to fraction, a row and a column in turn, until it meets
            itself. That closed walk moves by the smaller of the two amounts that make one of its
            fractions whole; the walk before it stays
    """
    height, now, near = len(parts), parts.tolist(), _neighbours(parts > 0)
    for start in range(height):
        walk, place = [start], {start: 0}
        while near[walk[-1]]:
            before = walk[-2] if len(walk) > 1 else -1
            if len(walk) > 3 and walk[-4] in near[walk[-1]]:
                onward: int | None = walk[-4]  # the shortest closed walk
            else:
                onward = next((point for point in near[walk[-1]] if point != before), None)
            if onward is not None and onward not in place:
                place[onward] = len(walk)
                walk.append(onward)
                continue
            if onward is None:  # errors of floats have left one fraction
                steps, by = [sorted((before, walk[-1]))], 0.0
                del place[walk.pop()]
                row, column = steps[0]
                now[row][column - height] = round(now[row][column - height])
            else:
                closed = walk[place[onward] :]
                steps = [sorted(pair) for pair in pairwise([*closed, onward])]
                by = _amount([now[row][column - height] for row, column in steps])
                for point in closed[1:]:
                    del place[point]
                del walk[place[onward] + 1 :]
            for turn, (row, column) in enumerate(steps):
                part = now[row][column - height] + (by if turn % 2 else -by)
                if part < tiny or part > 1 - tiny:
                    part = round(part)
                    near[row].discard(column)
                    near[column].discard(row)
                now[row][column - height] = part
    return np.array(now).round().astype(np.int64).reshape(parts.shape)


def _amount(parts: Sequence[float]) -> float:
    """By how much fractions go down and up in turn until one is whole:
    the smaller of two such amounts, by its size.
    """
    ahead = min(*parts[::2], *(1 - part for part in parts[1::2]))
    back = min(*parts[1::2], *(1 - part for part in parts[::2]))
    return ahead if ahead <= back else -back


def _nearer(up: Integers, parts: Floats) -> Integers:
    """Exchange roundings between pairs of rows, so that they are nearer to
    the fractions; column sums stay.

    Of the columns in which one of two rows goes up and both have fractions, as many as before go up
    in the first row: those where its fraction is larger by most. That is the nearest to the
    fractions, for these two rows. All pairs a power of two apart have their turn.
    """
    height, apart = len(up), 1
    while apart < height:
        first = np.flatnonzero(
            (np.arange(height) & apart == 0) & (np.arange(height) + apart < height)
        )
        mine, theirs = up[first] == 1, up[first + apart] == 1
        either = (mine != theirs) & (parts[first] > 0) & (parts[first + apart] > 0)
        more = np.where(either, parts[first] - parts[first + apart], -2.0)
        order = np.argsort(-more, axis=1, kind="stable")
        goes_up = np.zeros_like(mine)
        number = (mine & either).sum(axis=1, keepdims=True)
        np.put_along_axis(goes_up, order, np.arange(up.shape[1]) < number, axis=1)
        up[first] = np.where(either, goes_up, mine)
        up[first + apart] = np.where(either, ~goes_up, theirs)
        apart *= 2
    return up
