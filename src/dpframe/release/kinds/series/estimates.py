"""Running totals and windows of a series: least squares over all published blocks, and the errors of the estimates.

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


@dataclass(frozen=True)
class Estimates:
    """Least-squares estimates from the released periods of a series.

    Input:  blocks and noisy totals by period; the noise of the series
    """

    blocks: Mapping[int, Sequence[Block]]
    answers: Mapping[int, Measured]
    noise: SeriesNoise

    @cached_property
    def periods(self) -> list[int]:
        """Periods that were released, in order."""
        return sorted(self.answers)

    @cached_property
    def _nodes(self) -> list[tuple[Block, tuple[np.ndarray, ...]]]:
        """Published blocks, lowest level first. A block over a period that was never released is left out."""
        released = set(self.periods)
        nodes = [
            (block, values)
            for period in self.periods
            for block, values in zip(self.blocks[period], self.answers[period].values, strict=True)
            if released.issuperset(block.periods)
        ]
        return sorted(nodes, key=lambda node: (node[0].level, node[0].periods))

    @cached_property
    def _parents(self) -> tuple[int, ...]:
        """For each node the position of the smallest node that contains it, or -1."""
        places = {(b.part, b.level, b.first): i for i, (b, _) in enumerate(self._nodes)}
        parents = []
        for block, _ in self._nodes:
            shape, parent = self.noise.shapes, -1
            for level in range(block.level + 1, len(shape.parts[block.part].levels)):
                first, _ = shape.block_of(block.part, level, block.first)
                place = places.get((block.part, level, first))
                if place is not None and block.periods[0] in self._nodes[place][0].periods:
                    parent = place
                    break
            parents.append(parent)
        return tuple(parents)

    def _forest(self, total: int) -> Forest:
        variances = tuple(self.noise.variance(block.part, block.level, total) for block, _ in self._nodes)
        return Forest(self._parents, variances)

    def each(self, total: int) -> Floats:
        """Estimates of each released period (units of the total's integer): a row for each, a column for each group."""
        values = np.array([list(map(float, published[total])) for _, published in self._nodes], np.float64)
        return self._forest(total).estimates(values)[: len(self.periods)]

    def deviations(self, total: int, weights: Floats) -> Floats:
        """Standard deviations of weighted sums of the periods' estimates: a row of weights for each sum."""
        padded = np.zeros((len(self._nodes), len(weights)))
        padded[: len(self.periods)] = weights.T
        return np.asarray(np.sqrt(self._forest(total).variance(padded)))

    def error(self, deviation: float, alpha: float) -> float:
        """An error that a sum with this standard deviation exceeds with probability at most alpha.

        Both are in units of the total's integer.

        Bound:  a sum of Gaussian noises is normal. Where it is a whole number, it exceeds e from the next whole number
                on, which real noise reaches half a step before: so half a step is added. A sum of Laplace noises is
                symmetric and unimodal, and the bound for such laws is wider than theirs by more than a step
        """
        if not self.noise.normal or not deviation:
            return unimodal_error(deviation, alpha)
        return normal_error(deviation, alpha) + 0.5


def windows(periods: Sequence[int], length: float) -> Floats:
    """Weights of the windows that end with each period; a window has this period and the `length` - 1 before it."""
    at = np.array(periods)
    return ((at[None] <= at[:, None]) & (at[None] > at[:, None] - length)).astype(np.float64)


def running(periods: Sequence[int]) -> Floats:
    """Weights of the running totals."""
    return windows(periods, math.inf)
