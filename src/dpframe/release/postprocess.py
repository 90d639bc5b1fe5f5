"""What may be done to a released table for free: numbers made consistent, in tables whose margins still add up.

Nothing here reads rows or draws noise: each function takes released numbers and gives others, so it has no privacy cost
whatever it does (post-processing, Dwork and Roth 2014, proposition 2.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.plan.measures import Output

__all__ = ["adds_up", "is_total", "known_nonnegative", "nonnegative", "rounded", "table_of"]

Floats = NDArray[np.float64]
_SWEEPS = 1000
_TINY = 1e-9
_BITS = 20  # numbers are rounded from a grid of 2^-20
_ONE = 2**_BITS


def nonnegative(cells: Floats) -> Floats:
    """The table nearest to `cells`, in squares, that is nowhere negative and keeps total and margins.

    Input:  cells: rows by columns; a list is a table of one row
    Output: the same shape. The total is kept, or 0 where it was negative. Row sums and column sums are kept where they
            are at least 0; where some are not, they are first projected in the same way onto those with this total
    Bound:  max(cells - a_i - b_j, 0) with the a and b that give these sums: the conditions of Karush, Kuhn and Tucker.
            They are found by solving for all a, then all b, in turn, until sums are within 1e-9 of the total
    Source: Michelot 1986, doi:10.1007/BF00938486, for one row; Dykstra 1983, doi:10.2307/2288193, for turns

    >>> nonnegative(np.array([[5.0, -2.0, 3.0]]))
    array([[4., 0., 2.]])
    """
    cells = np.asarray(cells, np.float64)
    if not cells.size or cells.min() >= 0:
        return cells
    total = max(float(cells.sum()), 0.0)
    if not total:
        return np.zeros_like(cells)
    rows, columns = (_shifted(cells.sum(axis=axis)[None], np.array([total]))[0] for axis in (1, 0))
    if 1 in cells.shape:
        return np.asarray(rows[:, None] if cells.shape[1] == 1 else columns[None])
    across = np.zeros(cells.shape[1])
    fitted = cells
    for _ in range(_SWEEPS):
        down = _shift(cells - across, rows)
        across = _shift((cells - down[:, None]).T, columns)
        fitted = np.maximum(cells - down[:, None] - across, 0.0)
        if np.abs(fitted.sum(axis=1) - rows).max() <= _TINY * total:
            break
    return np.asarray(fitted)


def _shifted(values: Floats, totals: Floats) -> Floats:
    return np.maximum(values - _shift(values, totals)[:, None], 0.0)


def _shift(values: Floats, totals: Floats) -> Floats:
    """For each row, the t with sum of max(value - t, 0) = its total, at least 0."""
    ordered = -np.sort(-values, axis=1)
    count = np.arange(1, values.shape[1] + 1)
    levels = (np.cumsum(ordered, axis=1) - totals[:, None]) / count
    last = np.maximum((ordered > levels).sum(axis=1) - 1, 0)  # the values above their level are the first ones
    return np.asarray(levels[np.arange(len(values)), last])


def rounded(cells: Floats) -> NDArray[np.int64]:
    """Integers beside `cells` that still add up: cells, row sums, column sums and total each go to one of the two next.

    Input:  cells: rows by columns; a list is a table of one row
    Output: the same shape, integers. A list is the nearest such one to the cells
    Bound:  with the fractions of the margins as one more row and column, every line has an integer sum, so a line with
            one fraction has two, and there is a closed walk through fractions. Moving along it, up and down in turn,
            keeps all sums and makes one more cell an integer; of the two directions the nearer one is taken
    Source: Cox 1987, "A constructive procedure for unbiased controlled rounding", doi:10.1080/01621459.1987.10478456

    >>> rounded(np.array([[0.5, 0.5], [0.5, 0.5]])).sum(axis=0)
    array([1, 1])
    """
    cells = np.asarray(cells, np.float64)
    low = np.floor(cells)
    parts = np.rint((cells - low) * _ONE).astype(np.int64)
    if 1 in cells.shape:
        up = _largest(parts.ravel()).reshape(cells.shape)
    else:
        table = np.zeros((cells.shape[0] + 1, cells.shape[1] + 1), np.int64)
        table[:-1, :-1] = parts
        table[:-1, -1] = -table[:-1].sum(axis=1) % _ONE
        table[-1] = -table[:-1].sum(axis=0) % _ONE
        up = _walked(table)[:-1, :-1]
    return np.asarray(low.astype(np.int64) + up)


def _largest(parts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Round up the largest fractions, as many as the total of all asks for."""
    number = int((int(parts.sum()) + _ONE // 2) // _ONE)
    up = np.zeros(len(parts), np.int64)
    up[np.argsort(-parts, kind="stable")[:number]] = 1
    return up


def _walked(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """0 or 1 for each fraction of a table whose every line adds up to an integer, with the same sums of lines."""
    first, height = table.tolist(), table.shape[0]
    now = [list(row) for row in first]
    # One graph: rows are 0 to height - 1, columns follow; an edge for each cell that is still a fraction.
    joined: list[dict[int, None]] = [{} for _ in range(sum(table.shape))]
    for i, j in zip(*(x.tolist() for x in np.nonzero(table % _ONE)), strict=True):
        joined[i][height + j] = joined[height + j][i] = None
    for start in range(height):
        while joined[start]:
            cycle = _closed_walk(joined, start)
            cells = [(min(a, b), max(a, b) - height) for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True)]
            ups, downs = cells[::2], cells[1::2]
            more = min(*(_ONE - now[i][j] for i, j in ups), *(now[i][j] for i, j in downs))
            less = min(*(now[i][j] for i, j in ups), *(_ONE - now[i][j] for i, j in downs))
            pull = sum(now[i][j] - first[i][j] for i, j in ups) - sum(now[i][j] - first[i][j] for i, j in downs)
            move = more if more * (more * len(cells) + 2 * pull) <= less * (less * len(cells) - 2 * pull) else -less
            for sign, side in ((move, ups), (-move, downs)):
                for i, j in side:
                    now[i][j] += sign
                    if now[i][j] % _ONE == 0:
                        del joined[i][height + j], joined[height + j][i]
    return np.asarray(np.array(now, np.int64) // _ONE)


def _closed_walk(joined: list[dict[int, None]], start: int) -> list[int]:
    """Nodes of a cycle that is reached from `start`; every node with an edge has two."""
    path, place = [start], {start: 0}
    while True:
        before = path[-2] if len(path) > 1 else -1
        step = next(node for node in joined[path[-1]] if node != before)
        if step in place:
            return path[place[step] :]
        place[step] = len(path)
        path.append(step)


def table_of(values: Floats, rows: list[Any], columns: list[Any]) -> tuple[Floats, NDArray[np.int64]] | None:
    """Values as a table, and the place of each in it, when every combination of rows and columns is there once."""
    down, across = ({key: i for i, key in enumerate(dict.fromkeys(keys))} for keys in (rows, columns))
    if len(values) != len(down) * len(across):
        return None
    places = np.array([down[r] * len(across) + across[c] for r, c in zip(rows, columns, strict=True)], np.int64)
    table = np.zeros(len(values))
    table[places] = values
    return table.reshape(len(down), len(across)), places


def is_total(output: Output) -> bool:
    """Whether a column holds counts or sums of numbers."""
    return output.formula in ("count", "sum") and output.dtype is None


def adds_up(output: Output) -> bool:
    """Whether the numbers of groups add up to that of all: not numbers of different values."""
    return is_total(output) and output.measures[0][1].total != "distinct"


def known_nonnegative(output: Output) -> bool:
    """Whether a column holds counts, or sums of values whose bounds hold nothing negative."""
    grid = output.measures[0][1].grid
    return is_total(output) and (output.formula == "count" or grid.centre + grid.lower * grid.step >= 0)
