"""Running totals and windows of a series: least squares over all published blocks,
and the errors of the estimates.

This is post-processing: nothing here reads rows or draws noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpframe.release.kinds.series.answer import Measured
from dpframe.release.kinds.series.noise import SeriesNoise
from dpframe.release.kinds.series.progress import Block
from dpframe.theory.formulas.error import normal_error, unimodal_error
from dpframe.theory.formulas.trees import Forest

Floats = NDArray[np.float64]


Measurement = tuple[Block, tuple[np.ndarray, ...]]


@dataclass(frozen=True)
class Estimates:
    """Least-squares estimates from the released periods of a series.

    Input:  blocks and noisy totals by period, in the order of their charges; the noise of the
            series
    Bound:  parts of a series have no block in common, so each is estimated by itself
    """

    blocks: Mapping[int, Sequence[Block]]
    answers: Mapping[int, Measured]
    noise: SeriesNoise

    @cached_property
    def periods(self) -> list[int]:
        """Periods that were released, in order."""
        return sorted(self.answers)

    @cached_property
    def _parts(self) -> list[_Nested | _Weighted]:
        """Parts that are estimated together.
        A block over a period that was never released is left out.
        """
        released, weighted = set(self.periods), dict[int, list[Measurement]]()
        nested: list[Measurement] = []
        for period in (period for period in self.blocks if period in released):
            for block, values in zip(self.blocks[period], self.answers[period].values, strict=True):
                if released.issuperset(block.periods):
                    (weighted.setdefault(block.part, []) if block.weights else nested).append(
                        (block, values)
                    )
        nested.sort(key=lambda node: (node[0].level, node[0].periods))
        parts: list[_Nested | _Weighted] = [
            _Weighted(sums, self.noise) for sums in weighted.values()
        ]
        return [*parts, *([_Nested(nested, self.noise)] if nested else [])]

    def each(self, total: int) -> Floats:
        """Estimates of each released period (units of the total's integer):
        a row for each, a column for each group.
        """
        rows: dict[int, Floats] = {}
        for part in self._parts:
            rows |= dict(zip(part.periods, part.each(total), strict=True))
        return np.array([rows[period] for period in self.periods])

    def deviations(self, total: int, weights: Floats) -> Floats:
        """Standard deviations of weighted sums of the periods' estimates:
        a row of weights for each sum.
        """
        places = {period: place for place, period in enumerate(self.periods)}
        squares = [
            part.variances(total, weights[:, [places[period] for period in part.periods]])
            for part in self._parts
        ]
        return np.asarray(np.sqrt(np.sum(squares, axis=0)))

    def error(self, deviation: float, alpha: float) -> float:
        """An error that a sum with this standard deviation exceeds with probability at most alpha.

        Both are in units of the total's integer.

        Bound:  a sum of Gaussian noises is normal. Where it is a whole number, it exceeds e from
                the next whole number on, which real noise reaches half a step before: so half a
                step is added. A sum of Laplace noises is symmetric and unimodal, and the bound for
                such laws is wider than theirs by more than a step
        """
        if not self.noise.normal or not deviation:
            return unimodal_error(deviation, alpha)
        return normal_error(deviation, alpha) + 0.5


@dataclass(frozen=True)
class _Nested:
    """Least squares over nested blocks, lowest level first: the first blocks are single periods."""

    nodes: Sequence[Measurement]
    noise: SeriesNoise

    @cached_property
    def periods(self) -> list[int]:
        return [block.first for block, _ in self.nodes if block.level == 0]

    @cached_property
    def _parents(self) -> tuple[int, ...]:
        """For each node the position of the smallest node that contains it, or -1."""
        places = {(b.part, b.level, b.first): i for i, (b, _) in enumerate(self.nodes)}
        parents = []
        for block, _ in self.nodes:
            shape, parent = self.noise.shapes, -1
            for level in range(block.level + 1, len(shape.parts[block.part].levels)):
                first, _ = shape.block_of(block.part, level, block.first)
                place = places.get((block.part, level, first))
                if place is not None and block.periods[0] in self.nodes[place][0].periods:
                    parent = place
                    break
            parents.append(parent)
        return tuple(parents)

    def _forest(self, total: int) -> Forest:
        variances = tuple(
            self.noise.variance(block.part, block.level, total) for block, _ in self.nodes
        )
        return Forest(self._parents, variances)

    def each(self, total: int) -> Floats:
        return self._forest(total).estimates(_floats(self.nodes, total))[: len(self.periods)]

    def variances(self, total: int, weights: Floats) -> Floats:
        padded = np.zeros((len(self.nodes), len(weights)))
        padded[: len(self.periods)] = weights.T
        return self._forest(total).variance(padded)


@dataclass(frozen=True)
class _Weighted:
    """Weighted sums of one part, in the order of their charges.

    Bound:  a sum has a period of its own and periods that were answered before, so there are as
            many sums as periods, in a triangle without zeros on its diagonal. So the totals follow
            from the sums, and no other estimates are without bias
    """

    sums: Sequence[Measurement]
    noise: SeriesNoise

    @cached_property
    def periods(self) -> list[int]:
        return [block.first for block, _ in self.sums]

    @cached_property
    def _inverse(self) -> Floats:
        places = {period: place for place, period in enumerate(self.periods)}
        matrix = np.zeros((len(places), len(places)))
        for row, (block, _) in enumerate(self.sums):
            matrix[row, [places[period] for period in block.periods]] = block.weights
        return np.asarray(np.linalg.inv(matrix), np.float64)

    def each(self, total: int) -> Floats:
        return np.asarray(self._inverse @ _floats(self.sums, total))

    def variances(self, total: int, weights: Floats) -> Floats:
        variance = self.noise.variance(self.sums[0][0].part, 0, total)
        return np.asarray(variance * ((weights @ self._inverse) ** 2).sum(axis=1))


def _floats(measured: Sequence[Measurement], total: int) -> Floats:
    return np.array([list(map(float, values[total])) for _, values in measured], np.float64)


def windows(periods: Sequence[int], length: float) -> Floats:
    """Weights of the windows that end with each period;
    a window has this period and the `length` - 1 before it.
    """
    at = np.array(periods)
    return ((at[None] <= at[:, None]) & (at[None] > at[:, None] - length)).astype(np.float64)


def running(periods: Sequence[int]) -> Floats:
    """Weights of the running totals."""
    return windows(periods, math.inf)
