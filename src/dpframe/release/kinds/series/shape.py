"""The blocks of periods that a series measures.
They depend on the horizon and the price alone, not on rows.

Every period is measured, and so are nested blocks of several periods. A running total is the sum of
the largest complete blocks and of the periods after them.
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

# periods of the first part of a series without an end; each later part is twice as long
SHORTEST_PART = 32
PARTS = 12  # the number of parts of a series without an end: 131,040 periods together
_DEGREES = range(2, 33)
# for more periods than _LONG only these degrees are tried
_LONG, _FEW_DEGREES = 2048, (2, 4, 8, 16)
LONGEST = 100_000  # the largest number of periods of a horizon

# the part of the price of single periods, and the ratio of each longer level's part to the level
# below
_TILTS = (
    None,
    *(
        (Fraction(first, 20), Fraction(ratio, 20))
        for first in (5, 7, 8, 9, 10)
        for ratio in (14, 15, 16, 18, 20)
    ),
)
# shapes with a larger mean square error than this multiple of the smallest, at equal parts, are
# dropped
_NEAR = 1.35
_WEEK = 7  # periods of the windows whose error chooses the shape
_TRIED = 32  # the number of shapes whose windows are computed
# periods before the end of a window that are regarded, and the number of windows
_REACH, _NIGHTS = 64, 12

Integers = NDArray[np.int64]
Shares = tuple[Fraction, ...]
Relative = Callable[["Shape", Shares], Sequence[float]]


@dataclass(frozen=True)
class Shape:
    """Levels of blocks over the periods 0, 1, … below `length`:
    each level is a list of the blocks' sizes, in periods.

    The first level is single periods. The last size of a level repeats. Blocks of one level are
    disjoint, and each is made of whole blocks of the level below. With `weights` there are no
    blocks: each period, when it is added, is measured in a weighted sum with those that were added
    before it, by lag; see `weights`.

    >>> Shape(10, ((1,), (4, 3, 2, 1))).blocks(1)
    [(0, 4), (4, 7), (7, 9), (9, 10)]
    """

    length: int
    levels: tuple[tuple[int, ...], ...]
    weights: tuple[int, ...] = ()

    @classmethod
    def weighted(cls, length: int, weights: tuple[int, ...]) -> Shape:
        """A shape of weighted sums."""
        return cls(length, ((1,),), weights)

    @classmethod
    def of_degree(cls, length: int, children: int, levels: int) -> Shape:
        """A shape whose blocks consist of `children` blocks of the level below."""
        return cls(length, tuple((children**level,) for level in range(levels)))

    @classmethod
    def falling(cls, length: int) -> Shape:
        """Single periods, and blocks that become shorter by one period each: n, n - 1, …, 1.

        A running total at period r of block j adds up j - 1 blocks and r periods. Early blocks have
        few blocks before them, so they may be long. The sum of j - 1 + r over all periods is
        smallest if the size of block j plus j - 1 is constant over all j.
        """
        most = int(np.ceil((np.sqrt(8 * length + 1) - 1) / 2))
        return cls(length, ((1,), tuple(range(most, 0, -1))))

    @classmethod
    def from_json(cls, fields: Any) -> Shape:
        """The shape from its stored form."""
        levels = tuple(tuple(level) for level in fields["levels"])
        return cls(fields["length"], levels, tuple(fields.get("weights", ())))

    def to_json(self) -> dict[str, Any]:
        """The stored form of the shape."""
        weights = {"weights": list(self.weights)} if self.weights else {}
        return {"length": self.length, "levels": [list(level) for level in self.levels], **weights}

    @property
    def sizes(self) -> list[int]:
        """The size of the largest block of each level, in periods."""
        return [min(max(level), self.length) for level in self.levels]

    def blocks(self, level: int) -> list[tuple[int, int]]:
        """For each block of a level its first period, and the period after its last."""
        firsts, ends = self.borders(level)
        return list(zip(firsts.tolist(), ends.tolist(), strict=True))

    def borders(self, level: int) -> tuple[Integers, Integers]:
        """The first periods of the blocks of a level, and the
        periods after their last, as arrays.
        """
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

    The parts of a series without an end are consecutive, and a running total is the sum of the
    totals of the parts. Each part is calibrated for the whole price: see
    `theory.formulas.sensitivity.periods`.
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
                f"period: this series was opened for {self.starts[-1]} periods, and they are over. "
                "Open another series; budget.series('...', horizon=None) has no end."
            )
        return int(np.searchsorted(self.starts, period, side="right")) - 1

    def block_of(self, part: int, level: int, period: int) -> tuple[int, int]:
        """The block of a part's level that a period is in."""
        start, end = self.parts[part].block_of(level, period - self.starts[part])
        return start + self.starts[part], end + self.starts[part]

    def closing(self, after: int, until: int) -> list[tuple[int, int, int, int]]:
        """Blocks of several periods that end after the period `after` and not
        after the period `until`, by level.

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
    """The mean square error of the running total over all periods of a horizon,
    each at the end of its period.

    Input:  variances: the variance of the noise of the blocks of each level (squared unit of the
            total)
    Output: mean over the periods (squared unit of the total)
    Bound:  exact. A complete block is estimated by its own measurement and by its parts; the
            precisions of the two add up. Estimates of disjoint blocks are independent
    """
    places, firsts = np.arange(shape.length + 1), np.arange(shape.length)
    # of each block of this level, from measurements inside it
    variance = np.full(shape.length, float(variances[0]))
    # of the running total, from blocks up to this level
    square = np.concatenate([[0.0], np.cumsum(variance)])
    for level in range(1, len(shape.levels)):
        begun, ends = shape.borders(level)
        inside = np.add.reduceat(variance, np.searchsorted(firsts, begun))
        firsts, variance = begun, 1 / (1 / variances[level] + 1 / inside)
        complete = np.searchsorted(ends, places, side="right")
        last = np.concatenate([[0], ends])[complete]  # the end of the last complete block
        square = np.concatenate([[0.0], np.cumsum(variance)])[complete] + square - square[last]
    return float(square[1:].mean())


def window_square(shape: Shape, variances: Sequence[float], length: int) -> float:
    """The mean square error of windows of `length` periods, each when its last period is added.

    Input:  variances: as in `mean_square`; length: number of periods of a window
    Output: mean over some of the periods (squared unit of the total)
    Bound:  none is claimed, because this number only chooses among shapes. Blocks that begin more
            than 64 periods before the end of a window are left out
    """
    begin, squares = min(shape.length, _REACH), []
    for end in np.unique(np.linspace(begin, shape.length, _NIGHTS, dtype=int)).tolist():
        first = max(end - _REACH, 0)
        precision = np.eye(end - first) / variances[0]
        for level in range(1, len(shape.levels)):
            firsts, ends = shape.borders(level)
            inside = slice(np.searchsorted(firsts, first), np.searchsorted(ends, end, side="right"))
            borders = zip(
                (firsts[inside] - first).tolist(), (ends[inside] - first).tolist(), strict=False
            )
            for block_first, block_end in borders:
                precision[block_first:block_end, block_first:block_end] += 1 / variances[level]
        weights = (np.arange(first, end) >= end - length).astype(np.float64)
        squares.append(weights @ np.linalg.solve(precision, weights))
    return float(np.mean(squares))


def chosen_shape(length: int, relative: Relative, slack: float) -> tuple[Shape, Shares]:
    """The shape of a horizon, and the part of the price of each of its levels.

    Input:  length: number of periods of the horizon; relative: a function from a shape and the
            parts of its levels to numbers that are proportional to the variances of the noise on
            its levels; slack: the largest allowed error of the running total, as a multiple of the
            smallest one
    Output: a shape, and parts of the price that add up to 1. The shape is one of: single periods
            alone; blocks of k blocks on as many levels as fit, for k from 2 to 32 (a few k only if
            the horizon is long); or falling blocks. The parts are equal, or single periods have a
            larger part and longer blocks have smaller ones; for more than 2,048 periods they are
            equal. Among the pairs whose running total is within the slack, the pair with the
            smallest error of windows of seven periods is chosen
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
    candidates = [
        (mean_square(shape, relative(shape, shares)), shape, shares)
        for shape in near
        for shares in dict.fromkeys(
            _shares(shape, tilt) for tilt in (_TILTS if length <= _LONG else _TILTS[:1])
        )
    ]
    least, shape, shares = min(candidates, key=lambda candidate: candidate[0])
    exact = [(shape, shares) for square, shape, shares in candidates if square <= slack**2 * least]
    if length > _LONG or slack == 1:
        return shape, shares
    # the error of a week depends most on single periods
    exact.sort(key=lambda pair: relative(*pair)[0])
    exact, week = exact[:_TRIED], min(_WEEK, length)
    return min(exact, key=lambda pair: window_square(pair[0], relative(*pair), week))


def _shares(shape: Shape, tilt: tuple[Fraction, Fraction] | None) -> Shares:
    """The parts of the price by level: equal, or from the part of single periods
    and the ratio of later levels.
    """
    levels = len(shape.levels)
    if tilt is None or levels == 1:
        return (Fraction(1, levels),) * levels
    first, ratio = tilt
    parts = [ratio**level for level in range(levels - 1)]
    return (first, *((1 - first) * part / sum(parts) for part in parts))
