"""Hidden numbers of a table with margins, so that none can be pinned
down: flows between its lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpframe.arrays import Booleans, Floats, Integers
from dpframe.release.answer.suppression import OTHER, SMALL, Reader
from dpframe.release.answer.table_lines import TableLines, with_margins

_TINY = 1e-9
# flows are made of at most so many equal parts, where numbers are not whole or the limit is high
_FINEST = 128
_HUBS = 4  # points through which flows are looked for at once
_FEW = 200  # so many hidden numbers are looked at again, one by one
_Step = tuple[int, int]  # a row and a column


def hidden_in_table(cells: Floats, reader: Reader, groups: Integers | None = None) -> Integers:
    """The hidden cells, subtotals and margins of a table.

    Input:  released numbers, rows by columns, whose margins are published; NaN where there is no
            cell; what the reader knows; groups: as for `with_margins`, where subtotals are
            published
    Output: an array of the shape of `with_margins`: 0 for a shown number, else SMALL or OTHER. If
            no choice keeps the promise beside two marks, all hidden numbers are OTHER
    Bound:  rows and columns of the matrix in `TableLines` are points, and each number is a line
            between its row and its column. What is published says that the lines at each point add
            up to 0, where some signs are turned. So a number may rise by as much as can flow from
            its column back to its row along other hidden numbers, each of which may rise or fall as
            far as its mark allows; and fall by as much as can flow the other way. The largest flow
            is the largest change, for real numbers and for integers (Ford and Fulkerson 1956). A
            hidden number whose two flows are together less than `reader.width` gets more: the
            cheapest way on which numbers are hidden, where a number costs its size. What is hidden
            later only adds to earlier flows, so each hidden number is looked at until it is wide
            enough, and then never again
    Source: Gusfield 1988, doi:10.1137/0217034, for tables as graphs; Fischetti and Salazar 1999,
            doi:10.1007/s101070050008, for intervals of hidden cells; the choice of ways is ours

    One small cell takes three others with it, so that no line has a hidden number alone:

    >>> hidden_in_table(np.array([[3.0, 50.0], [40.0, 60.0]]), Reader(10, 0, whole=True)).tolist()
    [[1, 2, 0], [2, 2, 0], [0, 0, 0]]
    """
    full, lines = with_margins(cells, groups), TableLines.of(cells.shape[0], cells.shape[1], groups)
    there = np.isfinite(full)
    values = np.where(there, full, 0.0)
    small = there & (values < reader.below)
    for told in (True, False):
        hidden = _Lines.of(values, small, there, reader, lines, told=told).widened()
        if hidden is not None:
            return np.where(
                small & told, SMALL, np.where(hidden[lines.rows, lines.columns], OTHER, 0)
            )
    return np.where(there, OTHER, 0)


@dataclass(eq=False)
class _Lines:
    """The numbers of a table as lines between rows and columns.

    `ahead` is how much may flow from a row to a column, and `back` from a column to a row, along
    hidden numbers; the other two are what would be added if a number were hidden. No more than
    `width` matters.
    """

    cost: Floats
    hidden: Booleans
    width: float
    least: float  # a smaller flow is none
    ahead_if: Floats
    back_if: Floats
    ahead: Floats
    back: Floats

    @staticmethod
    def of(
        values: Floats,
        small: Booleans,
        there: Booleans,
        reader: Reader,
        lines: TableLines,
        *,
        told: bool,
    ) -> _Lines:
        up, down = (np.where(there, room, 0.0) for room in reader.room(values, small, told=told))
        ahead = lines.matrix(np.where(lines.turned, down, up))
        back = lines.matrix(np.where(lines.turned, up, down)).T.copy()
        hidden, values = lines.matrix(small) > 0, lines.matrix(values)
        least = max(1.0 if reader.whole else 0.0, reader.width / _FINEST)
        now = np.where(hidden, ahead, 0.0), np.where(hidden.T, back, 0.0)
        return _Lines(np.maximum(values, 0.0) + 1.0, hidden, reader.width, least, ahead, back, *now)

    def widened(self) -> Booleans | None:
        """The numbers that are hidden in the end; None if some number
        stays narrow whatever is hidden.
        """
        small = self.hidden.copy()
        waiting = np.argwhere(self.hidden & ~self._surely_wide()).tolist()[::-1]
        while waiting:
            row, column = waiting.pop()
            while missing := self._missing(row, column):
                more = self._cheapest(row, column, missing)
                if not more:
                    return None
                self._hide(more)
                waiting += [list(step) for step in more]
        self._show_again(np.argwhere(self.hidden & ~small))
        return self.hidden

    def _show_again(self, added: Integers) -> None:
        """Show numbers again that later ways have made needless, the largest first."""
        if self.hidden.sum() > _FEW:
            return
        for row, column in added[np.argsort(-self.cost[tuple(added.T)], kind="stable")].tolist():
            self._hide([(row, column)], hidden=False)
            others = np.argwhere(self.hidden)
            near = np.argsort((others[:, 0] != row) & (others[:, 1] != column), kind="stable")
            if any(self._missing(*step) for step in others[near].tolist()):
                self._hide([(row, column)])

    def _hide(self, steps: Sequence[_Step], *, hidden: bool = True) -> None:
        for row, column in steps:
            self.hidden[row, column] = hidden
            self.ahead[row, column] = self.ahead_if[row, column] if hidden else 0.0
            self.back[column, row] = self.back_if[column, row] if hidden else 0.0

    def _missing(self, row: int, column: int) -> float:
        """By how much a hidden number is not wide enough: 0 if it is."""
        missing = self.width
        for source, target, most in self._ends(row, column):
            flow, pushed = self._flow(source, target, min(most, missing))
            self._undo(pushed)
            missing -= flow
        return missing if missing > self.width * _TINY else 0.0

    def _cheapest(self, row: int, column: int, missing: float) -> list[_Step]:
        """The numbers to hide for a hidden number, on the cheapest way for what it
        lacks; none if there is no way.
        """
        lowest, best = np.inf, list[_Step]()
        for source, target, most in self._ends(row, column):
            flow, pushed = self._flow(source, target, most)
            for amount in (
                self._amounts(min(missing, most - flow)) if most - flow > self.width * _TINY else ()
            ):
                if way := self._cheapest_way(source, target, amount):
                    more = [step for step in map(self._step, way, way[1:]) if not self.hidden[step]]
                    price = sum(self.cost[step] for step in more) / amount
                    if price < lowest:
                        lowest, best = price, more
                    break
            self._undo(pushed)
        return best

    def _ends(self, row: int, column: int) -> Iterator[tuple[int, int, float]]:
        """The two flows along which a number rises and falls:
        from where, to where, at most how much.
        """
        rise, fall = self.ahead[row, column], self.back[column, row]
        # they do not go through the number itself
        self.ahead[row, column] = self.back[column, row] = 0.0
        point = len(self.ahead) + column
        yield point, row, rise
        yield row, point, fall
        self.ahead[row, column], self.back[column, row] = rise, fall

    def _amounts(self, most: float) -> Iterator[float]:
        """The amounts that are tried one after another:
        about half as much each, down to the least.
        """
        while most > self.least:
            yield most
            most = most // (2 * self.least) * self.least
        yield self.least

    def _flow(
        self, source: int, target: int, most: float
    ) -> tuple[float, list[tuple[list[int], float]]]:
        """The largest flow along hidden numbers, up to an amount, and its ways:
        shortest first (Edmonds, Karp 1972).
        """
        total, pushed = 0.0, []
        while most - total > self.width * _TINY and (way := self._open_way(source, target)):
            size = min(most - total, *(self._room(a, b) for a, b in pairwise(way)))
            self._push(way, size)
            pushed.append((way, size))
            total += size
        return total, pushed

    def _room(self, point: int, onward: int) -> float:
        height = len(self.ahead)
        room = (
            self.ahead[point, onward - height]
            if point < height
            else self.back[point - height, onward]
        )
        return float(room)

    def _push(self, way: list[int], amount: float) -> None:
        height = len(self.ahead)
        for point, onward in pairwise(way):
            sign = 1 if point < height else -1
            row, column = self._step(point, onward)
            self.ahead[row, column] -= sign * amount
            self.back[column, row] += sign * amount

    def _undo(self, pushed: list[tuple[list[int], float]]) -> None:
        for way, amount in reversed(pushed):
            self._push(way, -amount)

    def _step(self, point: int, onward: int) -> _Step:
        first, last = sorted((point, onward))
        return first, last - len(self.ahead)

    def _open_way(self, source: int, target: int) -> list[int]:
        """The points of the shortest way along hidden numbers; empty if there is none."""
        height, number = len(self.ahead), sum(self.ahead.shape)
        before, last = np.full(number, -1), np.zeros(number, np.bool_)
        if target < height:
            last[height:] = self.back[:, target] >= self.least
        else:
            last[:height] = self.ahead[:, target - height] >= self.least
        before[source], found = source, [source] if last.any() else []
        for point in found:
            if point < height:
                near = ((self.ahead[point] >= self.least) & (before[height:] < 0)).nonzero()[
                    0
                ] + height
            else:
                near = (
                    (self.back[point - height] >= self.least) & (before[:height] < 0)
                ).nonzero()[0]
            before[near] = point
            ends = near[last[near]]
            if len(ends):
                before[target] = ends[0]
                return _back_to(source, target, before)
            found += near.tolist()
        return []

    def _cheapest_way(self, source: int, target: int, amount: float) -> list[int]:
        """The points of the cheapest way that can take an amount; empty if there is none.
        Hidden numbers are free.

        Rows and columns take turns: each that came nearer to the source looks for what is nearer
        through it (Bellman and Ford).
        """
        height, width = self.ahead.shape
        distance, before = np.full(height + width, np.inf), np.full(height + width, -1)
        distance[source] = 0.0
        fresh = np.array([source])
        while len(fresh):
            if fresh[0] < height:
                beside, at, hidden, cost = (
                    slice(height, None),
                    fresh,
                    self.hidden[fresh],
                    self.cost[fresh],
                )
                now, if_hidden = self.ahead[at], self.ahead_if[at]
            else:
                at = fresh - height
                beside, hidden, cost = slice(0, height), self.hidden.T[at], self.cost.T[at]
                now, if_hidden = self.back[at], self.back_if[at]
            price = np.where(hidden, 0.0, cost)
            price[np.where(hidden, now, if_hidden) < amount] = np.inf
            price += distance[fresh, None]
            best = price.argmin(axis=0)
            through = price[best, np.arange(len(best))]
            nearer = (through < distance[beside]).nonzero()[0]
            distance[beside][nearer], before[beside][nearer] = through[nearer], fresh[best[nearer]]
            fresh = nearer + beside.start
        return _back_to(source, target, before) if before[target] >= 0 else []

    def _surely_wide(self) -> Booleans:
        """Hidden numbers that are wide enough by flows through one point, for all numbers at once.

        Bound:  no cut that separates two points is smaller than both the cuts that separate them
                from a third one. So what can flow between the ends of a number is at least the
                smaller of what can flow from one to the third point and from there to the other.
                Without the number itself it is less by at most its own room
        """
        wide = np.zeros(self.hidden.shape, np.bool_)
        back = self.back.T
        for _ in range(_HUBS):
            open_ = self.hidden & ~wide
            if open_.sum() <= _FEW:
                break
            hub = int(np.argmax(np.where(open_, self.ahead + back, 0.0).sum(axis=1)))
            onward = _trees(self.ahead, self.back, hub, self.width, self.least)
            inward = _trees(back, self.ahead.T, hub, self.width, self.least)
            height = len(wide)
            up = np.minimum.outer(onward[:height], inward[height:]) - back
            down = np.minimum.outer(inward[:height], onward[height:]) - self.ahead
            total = np.minimum(self.ahead, np.maximum(up, 0.0)) + np.minimum(
                back, np.maximum(down, 0.0)
            )
            more = open_ & (total >= self.width)
            wide |= more
            if more.sum() < open_.sum() / 4:
                break
        return wide


def _back_to(source: int, target: int, before: Integers) -> list[int]:
    way = [target]
    while way[-1] != source:
        way.append(int(before[way[-1]]))
    return way[::-1]


def _trees(ahead: Floats, back: Floats, hub: int, width: float, least: float) -> Floats:
    """A lower bound of what can flow from a point to each other point, up to twice the width.

    Bound:  trees that leave the hub, each taking its amount from every line it uses: along all that
            reach a point, their amounts can flow at once
    """
    ahead, back = np.array(ahead, order="C"), np.array(back, order="C")
    total = np.zeros(sum(ahead.shape))
    most, amount = len(_tree(ahead, back, hub, least)), width
    for _ in range(int(4 * width / least)):
        lines = _tree(ahead, back, hub, amount)
        ends = np.array([end for _, end in lines], np.int64)
        if 4 * len(lines) < 3 * most or bool((total[ends] >= 2 * width).all()):
            if amount <= least:
                break
            amount = max(amount // (2 * least) * least, least)
            continue
        for point, onward in lines:
            room, place = (
                (ahead[point], onward - len(ahead))
                if point < len(ahead)
                else (back[point - len(ahead)], onward)
            )
            room[place] -= amount
        total[ends] += amount
    total[hub] = 2 * width
    return total


def _tree(ahead: Floats, back: Floats, hub: int, amount: float) -> list[tuple[int, int]]:
    """The lines of a tree that leaves a point, as far as an amount can flow,
    each line from point to point.

    Depth comes first and the widest line: so few lines leave each point, and the next tree finds
    others.
    """
    height, lines, stack = len(ahead), list[tuple[int, int]](), [hub]
    fresh = np.ones(sum(ahead.shape))
    fresh[hub] = 0.0
    while stack:
        point = stack[-1]
        at = height if point < height else 0
        room = ahead[point] * fresh[height:] if at else back[point - height] * fresh[:height]
        best = int(room.argmax())
        if room[best] < amount:
            stack.pop()
            continue
        fresh[best + at] = 0.0
        stack.append(best + at)
        lines.append((point, best + at))
    return lines
