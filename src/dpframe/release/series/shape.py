"""The blocks of periods that a series measures. They depend on the horizon and the price alone, not on rows.

Every period is measured, and so are nested blocks of several periods. A running total is the sum of the largest
complete blocks and of the periods after them.
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
PARTS = 12  # the number of parts of a series without an end: 131,040 periods together
_DEGREES = range(2, 33)
_LONG, _FEW_DEGREES = 2048, (2, 4, 8, 16)  # for more periods than _LONG only these degrees are tried
LONGEST = 100_000  # the largest number of periods of a horizon

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
        """A shape whose blocks consist of `children` blocks of the level below."""
        return cls(length, tuple((children**level,) for level in range(levels)))

    @classmethod
    def falling(cls, length: int) -> Shape:
        """Single periods, and blocks that become shorter by one period each: n, n - 1, …, 1.

        A running total at period r of block j adds up j - 1 blocks and r periods. Early blocks have few blocks before
        them, so they may be long. The sum of j - 1 + r over all periods is smallest if the size of block j plus j - 1
        is constant over all j.
        """
        most = int(np.ceil((np.sqrt(8 * length + 1) - 1) / 2))
        return cls(length, ((1,), tuple(range(most, 0, -1))))

    @classmethod
    def from_json(cls, fields: Any) -> Shape:
        """The shape from its stored form."""
        return cls(fields["length"], tuple(tuple(level) for level in fields["levels"]))

    def to_json(self) -> dict[str, Any]:
        """The stored form of the shape."""
        return {"length": self.length, "levels": [list(level) for level in self.levels]}

    @property
    def sizes(self) -> list[int]:
        """The size of the largest block of each level, in periods."""
        return [min(max(level), self.length) for level in self.levels]

    def blocks(self, level: int) -> list[tuple[int, int]]:
        """For each block of a level its first period, and the period after its last."""
        firsts, ends = self.borders(level)
        return list(zip(firsts.tolist(), ends.tolist(), strict=True))

    def borders(self, level: int) -> tuple[Integers, Integers]:
        """The first periods of the blocks of a level, and the periods after their last, as arrays."""
        firsts = self._firsts[level]
        return firsts, np.append(firsts[1:], self.length)

    @cached_property
    def _firsts(self) -> list[Integers]:
        first_periods = []
        for level in self.levels:
            begun = np.concatenate([[0], np.cumsum(level[:-1], dtype=np.int64)])
            firsts = np.concatenate([begun[:-1], np.arange(begun[-1], self.length, level[-1])])
            first_periods.append(firsts[firsts < self.length].astype(np.int64))
        return first_periods

    def block_of(self, level: int, period: int) -> tuple[int, int]:
        """The block of a level that a period is in."""
        firsts, ends = self.borders(level)
        place = int(np.searchsorted(firsts, period, side="right")) - 1
        return int(firsts[place]), int(ends[place])


@dataclass(frozen=True)
class Shapes:
    """The shapes of a series: one for its horizon, or one for each part of a series without an end.

    The parts of a series without an end are consecutive, and a running total is the sum of the totals of the parts.
    Each part is calibrated for the whole price: see `theory.formulas.sensitivity.periods`.
    """

    parts: tuple[Shape, ...]

    @cached_property
    def starts(self) -> list[int]:
        """The first period of each part, and at the end the period after the last part."""
        return [0, *np.cumsum([part.length for part in self.parts]).tolist()]

    def part_of(self, period: int) -> int:
        """The part that a period is in. Errors: InvalidArgument beyond the horizon."""
        if period >= self.starts[-1]:
            raise InvalidArgument(
                f"period: this series was opened for {self.starts[-1]} periods, and they are over. Open another "
                "series; budget.series('...', horizon=None) has no end."
            )
        return int(np.searchsorted(self.starts, period, side="right")) - 1

    def block_of(self, part: int, level: int, period: int) -> tuple[int, int]:
        """The block of a part's level that a period is in."""
        start, end = self.parts[part].block_of(level, period - self.starts[part])
        return start + self.starts[part], end + self.starts[part]

    def closing(self, after: int, until: int) -> list[tuple[int, int, int, int]]:
        """Blocks of several periods that end after the period `after` and not after the period `until`, by level.

        Input:  after, until: numbers of periods, -1 for none
        Output: part, level, first period, and the period after the last, of each block
        """
        blocks = []
        for part, shape in enumerate(self.parts):
            start = self.starts[part]
            if start > until or self.starts[part + 1] <= after + 1:
                continue
            for level in range(1, len(shape.levels)):
                firsts, ends = (edge + start for edge in shape.borders(level))
                within = (ends > after + 1) & (ends <= until + 1)
                pairs = zip(firsts[within].tolist(), ends[within].tolist(), strict=True)
                blocks += [(part, level, first, end) for first, end in pairs]
        return blocks


def mean_square(shape: Shape, variances: Sequence[float]) -> float:
    """The mean square error of the running total over all periods of a horizon, each at the end of its period.

    Input:  variances: the variance of the noise of the blocks of each level (squared unit of the total)
    Output: mean over the periods (squared unit of the total)
    Bound:  exact. A complete block is estimated by its own measurement and by its parts; the precisions of the two add
            up. Estimates of disjoint blocks are independent
    """
    places, firsts = np.arange(shape.length + 1), np.arange(shape.length)
    variance = np.full(shape.length, float(variances[0]))  # of each block of this level, from measurements inside it
    square = np.concatenate([[0.0], np.cumsum(variance)])  # of the running total, from blocks up to this level
    for level in range(1, len(shape.levels)):
        begun, ends = shape.borders(level)
        inside = np.add.reduceat(variance, np.searchsorted(firsts, begun))
        firsts, variance = begun, 1 / (1 / variances[level] + 1 / inside)
        complete = np.searchsorted(ends, places, side="right")
        last = np.concatenate([[0], ends])[complete]  # the end of the last complete block
        square = np.concatenate([[0.0], np.cumsum(variance)])[complete] + square - square[last]
    return float(square[1:].mean())


def chosen_shape(length: int, relative: Any) -> Shape:
    """The shape with the smallest mean square error of the running total over a horizon.

    Input:  length: number of periods of the horizon; relative: a function from a shape to numbers that are proportional
            to the variances of the noise on its levels
    Output: one of: single periods alone; blocks of k blocks on as many levels as fit, for k from 2 to 32 (a few k only
            if the horizon is long); or falling blocks
    """
    shapes = [Shape.of_degree(length, 2, 1), Shape.falling(length)]
    for children in _DEGREES if length <= _LONG else _FEW_DEGREES:
        most = 1
        while children**most <= length:
            most += 1
        fewest = 2 if length <= _LONG else max(2, most - 2)
        shapes += [Shape.of_degree(length, children, levels) for levels in range(fewest, most + 1)]
    return min(shapes, key=lambda shape: mean_square(shape, relative(shape)))
