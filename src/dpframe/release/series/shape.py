"""Which blocks of periods a series measures: chosen from the horizon and the price alone, before anything is read.

Every period is measured, and so are blocks of several periods that lie inside one another. A running total is made of
the largest blocks that are complete, and of the periods after them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument

__all__ = [
    "LONGEST",
    "PARTS",
    "SHORTEST_PART",
    "Shape",
    "Shapes",
    "Shares",
    "chosen_shape",
    "mean_square",
    "window_square",
]

SHORTEST_PART = 32  # periods of the first part of a series without an end; each later part is twice as long
PARTS = 12  # such parts: 131,040 periods together
_DEGREES = range(2, 33)
_LONG, _FEW_DEGREES = 2048, (2, 4, 8, 16)  # beyond so many periods degrees differ by little
LONGEST = 100_000  # periods of one horizon

_TILTS = (  # parts of the price: that of single periods, and of each longer level for one of the level below
    None,
    *((Fraction(first, 20), Fraction(ratio, 20)) for first in (5, 7, 8, 9, 10) for ratio in (14, 15, 16, 18, 20)),
)
_NEAR = 1.35  # shapes whose mean square error with equal parts is at most so many times the least
_WEEK = 7  # periods of the windows that a shape is chosen by
_TRIED = 32  # shapes whose windows are computed
_REACH, _NIGHTS = 64, 12  # periods that are looked at before the end of such a window, and how many windows

Integers = NDArray[np.int64]
Shares = tuple[Fraction, ...]
Relative = Callable[["Shape", Shares], Sequence[float]]


@dataclass(frozen=True)
class Shape:
    """Levels of blocks over the periods 0, 1, … below `length`: each level is a list of the blocks' sizes, in periods.

    The first level is single periods. The last size of a level repeats. Blocks of one level are disjoint, and each is
    made of whole blocks of the level below.

    >>> Shape(10, ((1,), (4, 3, 2, 1))).blocks(1)
    [(0, 4), (4, 7), (7, 9), (9, 10)]
    """

    length: int
    levels: tuple[tuple[int, ...], ...]

    @classmethod
    def of_degree(cls, length: int, children: int, levels: int) -> Shape:
        """Blocks of `children` blocks of the level below."""
        return cls(length, tuple((children**level,) for level in range(levels)))

    @classmethod
    def falling(cls, length: int) -> Shape:
        """Single periods, and blocks that become shorter by one period each: n, n - 1, …, 1.

        A running total at period r of block j has j - 1 blocks and r periods, so early blocks, which come with few
        others before them, may be long. The sum of j - 1 + r over all periods is least where the size of block j and
        j - 1 have the same sum for all j.
        """
        most = int(np.ceil((np.sqrt(8 * length + 1) - 1) / 2))
        return cls(length, ((1,), tuple(range(most, 0, -1))))

    @classmethod
    def from_json(cls, said: Any) -> Shape:
        """A shape as it was kept."""
        return cls(said["length"], tuple(tuple(level) for level in said["levels"]))

    def to_json(self) -> dict[str, Any]:
        """A shape as it is kept."""
        return {"length": self.length, "levels": [list(level) for level in self.levels]}

    @property
    def sizes(self) -> list[int]:
        """The size of the largest block of each level, in periods."""
        return [min(max(level), self.length) for level in self.levels]

    def blocks(self, level: int) -> list[tuple[int, int]]:
        """First period of each block of a level, and the one after its last."""
        firsts, ends = self.borders(level)
        return list(zip(firsts.tolist(), ends.tolist(), strict=True))

    def borders(self, level: int) -> tuple[Integers, Integers]:
        """First periods of the blocks of a level, and those after their last."""
        firsts = self._firsts[level]
        return firsts, np.append(firsts[1:], self.length)

    @cached_property
    def _firsts(self) -> list[Integers]:
        made = []
        for level in self.levels:
            begun = np.concatenate([[0], np.cumsum(level[:-1], dtype=np.int64)])
            firsts = np.concatenate([begun[:-1], np.arange(begun[-1], self.length, level[-1])])
            made.append(firsts[firsts < self.length].astype(np.int64))
        return made

    def block_of(self, level: int, period: int) -> tuple[int, int]:
        """The block of a level that a period is in."""
        firsts, ends = self.borders(level)
        place = int(np.searchsorted(firsts, period, side="right")) - 1
        return int(firsts[place]), int(ends[place])


@dataclass(frozen=True)
class Shapes:
    """The shapes of a series: of its whole horizon, or of each part of one without an end.

    The parts of a series without an end follow one another, and a running total is the sum of theirs. Each is
    calibrated for the whole price: see `theory.formulas.sensitivity.periods`.
    """

    parts: tuple[Shape, ...]

    @cached_property
    def starts(self) -> list[int]:
        """The first period of each part, and at the end the one after the last."""
        return [0, *np.cumsum([part.length for part in self.parts]).tolist()]

    def part_of(self, period: int) -> int:
        """The part that a period is in. Errors: InvalidArgument beyond the horizon."""
        if period >= self.starts[-1]:
            raise InvalidArgument(
                f"period: this series was opened for {self.starts[-1]} periods, and they are over. Open another one: "
                "budget.series('...', horizon=None) has no end."
            )
        return int(np.searchsorted(self.starts, period, side="right")) - 1

    def block_of(self, part: int, level: int, period: int) -> tuple[int, int]:
        """The block of a part's level that a period is in."""
        start, end = self.parts[part].block_of(level, period - self.starts[part])
        return start + self.starts[part], end + self.starts[part]

    def closing(self, after: int, until: int) -> list[tuple[int, int, int, int]]:
        """Blocks of several periods that end after one period and at the latest with another, lowest level first.

        Input:  after, until: numbers of periods, -1 for none
        Output: part, level, first period, the one after the last
        """
        found = []
        for part, shape in enumerate(self.parts):
            start = self.starts[part]
            if start > until or self.starts[part + 1] <= after + 1:
                continue
            for level in range(1, len(shape.levels)):
                firsts, ends = (edge + start for edge in shape.borders(level))
                ended = (ends > after + 1) & (ends <= until + 1)
                pairs = zip(firsts[ended].tolist(), ends[ended].tolist(), strict=True)
                found += [(part, level, first, end) for first, end in pairs]
        return found


def mean_square(shape: Shape, variances: Sequence[float]) -> float:
    """The mean square error of the running total over all periods of a horizon, each at the end of its period.

    Input:  variances: that of the noise of each level's blocks (squared unit of the total)
    Output: mean over the periods (the same unit)
    Bound:  exact. A block that is complete is known by its own measurement and by its parts, with precision the sum of
            both, and what is known of disjoint blocks is independent
    """
    places, firsts = np.arange(shape.length + 1), np.arange(shape.length)
    known = np.full(shape.length, float(variances[0]))  # of each block of this level, by all that is inside it
    square = np.concatenate([[0.0], np.cumsum(known)])  # of the running total, by blocks up to this level
    for level in range(1, len(shape.levels)):
        begun, ends = shape.borders(level)
        inside = np.add.reduceat(known, np.searchsorted(firsts, begun))
        firsts, known = begun, 1 / (1 / variances[level] + 1 / inside)
        complete = np.searchsorted(ends, places, side="right")
        last = np.concatenate([[0], ends])[complete]  # where the last complete block ends
        square = np.concatenate([[0.0], np.cumsum(known)])[complete] + square - square[last]
    return float(square[1:].mean())


def window_square(shape: Shape, variances: Sequence[float], length: int) -> float:
    """The mean square error of windows of some periods, each when its last period is added.

    Input:  variances: as in `mean_square`; length: periods of a window
    Output: mean over some of the periods (the same unit)
    Bound:  none is claimed: it is what shapes are chosen by. Blocks that begin long before the window are left out
    """
    begin, squares = min(shape.length, _REACH), []
    for end in np.unique(np.linspace(begin, shape.length, _NIGHTS, dtype=int)).tolist():
        first = max(end - _REACH, 0)
        precision = np.eye(end - first) / variances[0]
        for level in range(1, len(shape.levels)):
            firsts, ends = shape.borders(level)
            inside = slice(np.searchsorted(firsts, first), np.searchsorted(ends, end, side="right"))
            for one, after in zip((firsts[inside] - first).tolist(), (ends[inside] - first).tolist(), strict=False):
                precision[one:after, one:after] += 1 / variances[level]
        weights = (np.arange(first, end) >= end - length).astype(np.float64)
        squares.append(weights @ np.linalg.solve(precision, weights))
    return float(np.mean(squares))


def chosen_shape(length: int, relative: Relative, slack: float) -> tuple[Shape, Shares]:
    """The shape of a horizon and the part of the price that each of its levels has.

    Input:  length: periods of the horizon; relative: what the variance of each level's noise is in proportion to, for
            a shape and the parts of its levels: a function of both; slack: by how much the error of the running total
            may be larger than the least one, as a factor
    Output: a shape, of single periods alone, blocks of k blocks on up to as many levels as there is room for, for k
            from 2 to 32 (a few of them where the horizon is long), or falling blocks; and parts that add up to 1. Of
            those whose running total is exact enough, the one with the least error of windows of seven periods. Parts
            are equal, or single periods have more and longer blocks less; beyond 2,048 periods they are equal
    """
    shapes = [Shape.of_degree(length, 2, 1), Shape.falling(length)]
    for children in _DEGREES if length <= _LONG else _FEW_DEGREES:
        most = 1
        while children**most <= length:
            most += 1
        fewest = 2 if length <= _LONG else max(2, most - 2)
        shapes += [Shape.of_degree(length, children, levels) for levels in range(fewest, most + 1)]
    equal = {shape: mean_square(shape, relative(shape, _shares(shape, None))) for shape in shapes}
    near = [shape for shape in shapes if equal[shape] <= _NEAR * min(equal.values())]
    made = [
        (mean_square(shape, relative(shape, shares)), shape, shares)
        for shape in near
        for shares in dict.fromkeys(_shares(shape, tilt) for tilt in (_TILTS if length <= _LONG else _TILTS[:1]))
    ]
    least, shape, shares = min(made, key=lambda one: one[0])
    exact = [(shape, shares) for square, shape, shares in made if square <= slack**2 * least]
    if length > _LONG or slack == 1:
        return shape, shares
    exact.sort(key=lambda pair: relative(*pair)[0])  # single periods say most of a week
    exact, week = exact[:_TRIED], min(_WEEK, length)
    return min(exact, key=lambda pair: window_square(pair[0], relative(*pair), week))


def _shares(shape: Shape, tilt: tuple[Fraction, Fraction] | None) -> Shares:
    """The parts of the levels: equal, or that of single periods, and how much less each longer level has."""
    levels = len(shape.levels)
    if tilt is None or levels == 1:
        return (Fraction(1, levels),) * levels
    first, ratio = tilt
    parts = [ratio**level for level in range(levels - 1)]
    return (first, *((1 - first) * part / sum(parts) for part in parts))
