"""Which released numbers are not shown: small ones, and others without which a small one could be computed.

Nothing here reads rows or draws noise: what is hidden follows from released numbers alone (post-processing, Dwork and
Roth 2014, proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpframe.arrays import Booleans, Floats
from dpframe.errors import InvalidArgument
from dpframe.plan import real
from dpframe.theory.formulas.hierarchies import Levels

__all__ = ["Suppression", "hidden_in_table", "hidden_in_tree", "read_suppression", "with_margins"]

_OTHER = "*"  # marks a number that is hidden to protect a small one, unless another mark was typed


@dataclass(frozen=True)
class Suppression:
    """Numbers below `below` are hidden; if `secondary`, also others from which these could be computed.

    `marks` stand in files for a small number and for another hidden one; None if nothing was typed.
    """

    below: float
    marks: tuple[str, str] | None = None
    secondary: bool = False

    def after(self, earlier: Suppression | None) -> Suppression:
        """Both steps together: the stricter limit, the later marks."""
        if earlier is None:
            return self
        marks = self.marks if self.marks is not None else earlier.marks
        return Suppression(max(self.below, earlier.below), marks, self.secondary or earlier.secondary)

    @property
    def sentence(self) -> str:
        """What was done, for the report."""
        also = ", nor others from which these could be computed" if self.secondary else "; margins count them"
        return f"suppress(below={self.below:g}): groups with fewer are not shown{also}."


def read_suppression(below: object, marker: object, secondary: object) -> Suppression:
    """The typed arguments of `suppress`. Errors: InvalidArgument."""
    least = real(below)
    if least is None or not 0 < least <= 1e300:
        raise InvalidArgument("suppress(below=): give a number above 0, such as suppress(below=10).")
    if not isinstance(secondary, bool):
        raise InvalidArgument("suppress(secondary=) is True or False.")
    marks: tuple[str, str] | None = None
    if isinstance(marker, str):
        marks = (marker, _OTHER)
    elif isinstance(marker, tuple) and len(marker) == 2 and all(isinstance(mark, str) for mark in marker):
        marks = marker
    elif marker is not None:
        raise InvalidArgument(
            "suppress(marker=) is a text for small numbers, marker='<10'; or a pair, the second text for others that "
            "are hidden with them, marker=('<10', 'c')."
        )
    return Suppression(float(least), marks, secondary)


def hidden_in_tree(tree: Levels, values: Sequence[Floats], below: float, *, secondary: bool) -> list[Booleans]:
    """Which numbers of a tree are hidden.

    Input:  for each level from the root the released numbers, nodes by crossed keys; below: smaller ones are hidden;
            secondary: whether others are hidden too, so that no hidden number follows from those that are shown
    Output: arrays of these shapes
    Bound:  what is published of a tree is that children add up to their parent. While some parent and its children have
            exactly one hidden number among them, the smallest shown child is hidden (or the parent, if no child is
            shown). In the end each such equation has none or at least two. Numbers and equations form a forest, as each
            number is in at most two equations. From a hidden number one can thus walk through equations to another
            hidden number of each, without returning, until numbers that are in no further equation. Adding and taking
            any amount in turn along this walk changes nothing that is shown, so the number can be any
    """
    hidden = [np.asarray(level) < below for level in values]
    changed = secondary
    while changed:
        changed = False
        for level in range(len(tree.first)):
            alone = hidden[level] + tree.up(hidden[level + 1].astype(np.int64), level) == 1
            if not alone.any():
                continue
            changed = True
            for cell in np.flatnonzero(alone.any(axis=0)):
                shown = np.where(hidden[level + 1][:, cell], np.inf, values[level + 1][:, cell])
                smallest = _smallest_child(tree, level, shown)
                at = np.flatnonzero(alone[:, cell])
                none = np.isinf(shown[smallest[at]])
                hidden[level][at[none], cell] = True
                hidden[level + 1][smallest[at[~none]], cell] = True
    return hidden


def _smallest_child(tree: Levels, level: int, values: Floats) -> np.ndarray:
    """The place of the smallest child of each node of a level."""
    node = np.repeat(np.arange(tree.sizes[level]), tree.children[level])
    return np.asarray(np.lexsort((values, node))[tree.first[level]])


def hidden_in_table(cells: Floats, below: float, *, secondary: bool) -> Booleans:
    """Which cells and margins of a table are hidden.

    Input:  released counts, rows by columns, whose margins are published; below, secondary as in `hidden_in_tree`
    Output: an array with one row and one column more, for the margins
    Bound:  take rows and columns (and the margins' own) as points of a graph, and each hidden number as a line between
            its row and its column. What is published says how much the lines at each point add up to. A hidden number
            can be computed just if its line is a bridge, on no closed walk: along a closed walk, any amount can be
            added and taken in turn. While there is a bridge, the numbers on the cheapest other way between its ends are
            hidden, where a number costs its size
    Source: Gusfield 1988, doi:10.1137/0217034, for bridges; the choice of the way is ours

    One small cell takes three others with it, so that no line has a hidden number alone:

    >>> hidden_in_table(np.array([[3.0, 50.0], [40.0, 60.0]]), 10, secondary=True).astype(int).tolist()
    [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
    """
    full = with_margins(cells)
    hidden = full < below
    cost = np.maximum(full, 0.0) + 1.0
    while secondary and (bridge := _bridge(hidden)) is not None:
        for row, column in _way(hidden, cost, *bridge):
            hidden[row, column] = True
    return np.asarray(hidden)


def with_margins(cells: Floats) -> Floats:
    """A table with its margins, in one row and one column more."""
    full = np.zeros((cells.shape[0] + 1, cells.shape[1] + 1))
    full[:-1, :-1] = cells
    full[-1, :-1], full[:-1, -1], full[-1, -1] = cells.sum(axis=0), cells.sum(axis=1), cells.sum()
    return full


def _bridge(hidden: Booleans) -> tuple[int, int] | None:
    """A hidden number that is on no closed walk of hidden numbers; None if there is none.

    Depth-first search; a line is a bridge if nothing below it has a line to above it (Tarjan 1974).
    """
    height, number = hidden.shape[0], sum(hidden.shape)
    near = [
        np.flatnonzero(hidden[i]) + height if i < height else np.flatnonzero(hidden[:, i - height])
        for i in range(number)
    ]
    order, lowest = np.full(number, -1), np.full(number, -1)
    count = 0
    for start in range(number):
        if order[start] >= 0:
            continue
        order[start] = lowest[start] = count
        count += 1
        stack = [(start, -1, iter(near[start].tolist()))]
        while stack:
            point, before, rest = stack[-1]
            onward = next(rest, None)
            if onward is None:
                stack.pop()
                if before >= 0:
                    lowest[before] = min(lowest[before], lowest[point])
                    if lowest[point] > order[before]:
                        row, column = sorted((point, before))
                        return row, column - height
            elif onward != before:
                if order[onward] < 0:
                    order[onward] = lowest[onward] = count
                    count += 1
                    stack.append((onward, point, iter(near[onward].tolist())))
                else:
                    lowest[point] = min(lowest[point], order[onward])
    return None


def _way(hidden: Booleans, cost: Floats, row: int, column: int) -> list[tuple[int, int]]:
    """The numbers on the cheapest way from a row to a column but by their own number; hidden ones cost nothing."""
    height, width = hidden.shape
    weight = np.where(hidden, 0.0, cost)
    weight[row, column] = np.inf
    distance, done = np.full(height + width, np.inf), np.zeros(height + width, np.bool_)
    before = np.full(height + width, -1)
    distance[row] = 0.0
    while not done[height + column]:
        point = int(np.argmin(np.where(done, np.inf, distance)))
        done[point] = True
        beside = slice(height, None) if point < height else slice(0, height)
        through = distance[point] + (weight[point] if point < height else weight[:, point - height])
        nearer = (through < distance[beside]) & ~done[beside]
        distance[beside] = np.where(nearer, through, distance[beside])
        before[beside] = np.where(nearer, point, before[beside])
    numbers, point = [], height + column
    while point != row:
        ends = sorted((point, int(before[point])))
        numbers.append((ends[0], ends[1] - height))
        point = int(before[point])
    return numbers
