"""Which blocks of periods a series measures: chosen from the horizon and the price alone, before anything is read.

Every period is measured, and so are blocks of several periods that lie inside one another. A running total is made of
the largest blocks that are complete, and of the periods after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument

__all__ = ["LONGEST", "PARTS", "SHORTEST_PART", "Shape", "Shapes", "chosen_shape", "mean_square"]

SHORTEST_PART = 32  # periods of the first part of a series without an end; each later part is twice as long
PARTS = 12  # such parts: 131,040 periods together
_DEGREES = range(2, 33)
_LONG, _FEW_DEGREES = 2048, (2, 4, 8, 16)  # beyond so many periods degrees differ by little
LONGEST = 100_000  # periods of one horizon

Integers = NDArray[np.int64]


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


def chosen_shape(length: int, relative: Any) -> Shape:
    """The shape with the least mean square error of the running total over a horizon.

    Input:  length: periods of the horizon; relative: what the noise of each level's variance is in proportion to, for
            a shape: a function of it
    Output: one of: single periods alone, blocks of k blocks on up to as many levels as there is room for, for k from 2
            to 32 (a few of them where the horizon is long), or falling blocks
    """
    shapes = [Shape.of_degree(length, 2, 1), Shape.falling(length)]
    for children in _DEGREES if length <= _LONG else _FEW_DEGREES:
        most = 1
        while children**most <= length:
            most += 1
        fewest = 2 if length <= _LONG else max(2, most - 2)
        shapes += [Shape.of_degree(length, children, levels) for levels in range(fewest, most + 1)]
    return min(shapes, key=lambda shape: mean_square(shape, relative(shape)))
