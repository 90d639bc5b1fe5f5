"""Least squares on noisy totals of nested sets: estimates of all totals of a tree, and their variances.

A node is a set. Its children are disjoint sets whose union is the node, so its total is the sum of theirs. Each node
was measured once, with independent noise. Numbers of children and variances may differ from node to node.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument

_PARTS = 60  # a level's part of the price is a multiple of 1/60

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Forest:
    """Trees of noisy totals.

    Input:  parents: for each node the index of its parent, which comes after it, or -1 for a root; variances: the
            variance of each node's noise (any squared unit), infinite for an inner node that was not measured
    Bound:  `estimates` are the best linear unbiased estimates from all measured nodes, and `variance` is their
            variance. Once the totals of a node's children are known, the subtrees under different children are
            independent. So two passes are enough, for any numbers of children: see `_upward` and `estimates`
    Source: Hay, Rastogi, Miklau, Suciu 2010, arXiv:0904.0942, section 4, for one degree and one variance; Honaker 2015,
            "Efficient Use of Differentially Private Binary Trees", for nodes that are published one after another; the
            passes for any degrees and variances are those of Gaussian elimination on a tree
    Errors: InvalidArgument

    Two nights and their sum, each with noise of variance 1. The sum is 6 above the two nights together, and each of the
    three nodes takes a third of the difference.

    >>> forest = Forest((2, 2, -1), (1.0, 1.0, 1.0))
    >>> forest.estimates(np.array([[10.0], [20.0], [36.0]])).ravel()
    array([12., 22., 34.])
    >>> float(forest.variance(np.array([[1.0], [1.0], [0.0]]))[0])
    0.6666666666666666
    """

    parents: tuple[int, ...]
    variances: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.parents) != len(self.variances):
            raise InvalidArgument("Forest: give one variance for each node.")
        for node, parent in enumerate(self.parents):
            if parent != -1 and not node < parent < len(self.parents):
                raise InvalidArgument("Forest: a parent comes after its children.")
            leaf = not self._children[node]
            if not self.variances[node] >= 0 or (leaf and math.isinf(self.variances[node])):
                raise InvalidArgument("Forest: a variance is at least 0, and finite for a node without children.")

    @cached_property
    def _children(self) -> list[list[int]]:
        children: list[list[int]] = [[] for _ in self.parents]
        for node, parent in enumerate(self.parents):
            if parent != -1:
                children[parent].append(node)
        return children

    @cached_property
    def _from_below(self) -> tuple[list[float], list[float]]:
        """For each node, from its own subtree alone: variances of its estimate and of the sum of its children's."""
        own: list[float] = []
        under: list[float] = []
        for node, variance in enumerate(self.variances):
            children = self._children[node]
            total = math.fsum(own[child] for child in children)
            under.append(total)
            if not children:
                own.append(variance)
            elif math.isinf(variance):
                own.append(total)
            else:
                own.append(total * variance / (total + variance) if total + variance else 0.0)
        return own, under

    def _upward(self, values: Floats) -> tuple[Floats, Floats]:
        """For each node, from its own subtree alone: its estimate, and the sum of its children's estimates.

        A node's own value and the sum of its children's estimates are independent. So their average with weights
        1 / variance is the best estimate.
        """
        _, under = self._from_below
        best, sums = np.array(values, np.float64), np.zeros_like(values, np.float64)
        for node, children in enumerate(self._children):
            if children:
                sums[node] = best[children].sum(axis=0)
                variance = self.variances[node]
                both = under[node] + variance
                part = 0.0 if math.isinf(variance) or not both else under[node] / both
                best[node] = sums[node] + part * (np.where(part, best[node], 0.0) - sums[node])
        return best, sums

    def estimates(self, values: Floats) -> Floats:
        """Least-squares estimates of all totals. They are consistent: children add up to their parent.

        Input:  values: the measured totals, a row for each node (columns: any number of groups); the row of a node that
                was not measured is ignored
        Output: estimates, an array of that shape
        Bound:  unbiased, with the smallest variance of all linear estimates, for each node and each weighted sum of
                nodes. From the roots down, the difference between a node's final estimate and the sum of its children's
                estimates is divided among the children in proportion to their variances
        """
        own, under = self._from_below
        best, sums = self._upward(np.asarray(values, np.float64))
        for node in range(len(self.parents) - 1, -1, -1):
            for child in self._children[node]:
                if under[node]:
                    best[child] += own[child] / under[node] * (best[node] - sums[node])
        return best

    def variance(self, weights: Floats) -> Floats:
        """Variances of weighted sums of the leaves' estimates.

        Input:  weights: a row for each node (only the rows of leaves are used), a column for each sum
        Output: a variance for each column
        Bound:  exact. Within the subtree of a node with total s, the weighted sum is a + b·s plus an independent error
                of variance q. Here b is the average of the children's b_i with their variances u_i as weights, and
                q = Σ q_i + Σ u_i (b_i - b)². At a root, s has the variance u of its estimate, so the sum has q + b²·u
        """
        own, under = self._from_below
        weights = np.asarray(weights, np.float64)
        slopes, residual = np.zeros_like(weights), np.zeros_like(weights)
        total = np.zeros(weights.shape[1])
        for node, children in enumerate(self._children):
            if not children:
                slopes[node] = weights[node]
            else:
                shares = np.array([own[child] for child in children])[:, None]
                if under[node]:
                    slopes[node] = (slopes[children] * shares).sum(axis=0) / under[node]
                residual[node] = (residual[children] + shares * (slopes[children] - slopes[node]) ** 2).sum(axis=0)
            if self.parents[node] == -1:
                total += residual[node] + slopes[node] ** 2 * own[node]
        return np.asarray(total)

    @property
    def roots(self) -> Sequence[int]:
        """The nodes without a parent."""
        return [node for node, parent in enumerate(self.parents) if parent == -1]


def moved_parts(levels: int, error: Callable[[Sequence[int]], float]) -> list[int]:
    """Parts of the price for the levels of a tree, in sixtieths (or finer, for many levels), leaves last.

    Input:  how many levels; error: the error of a tree whose levels have these parts
    Output: parts near those with the smallest error. From equal parts, one sixtieth at a time is moved from one level
            to another, the best move first, as long as that makes the error smaller. Leaves keep a part

    >>> moved_parts(2, lambda parts: abs(parts[0] - 20))
    [20, 40]
    """
    parts = [max(_PARTS // levels, 1)] * levels
    parts[-1] += max(_PARTS - sum(parts), 0)
    best = error(parts)
    while True:
        trials = []
        for giver, taker in itertools.permutations(range(levels), 2):
            if parts[giver] > (giver == levels - 1):
                trial = parts.copy()
                trial[giver] -= 1
                trial[taker] += 1
                trials.append((error(trial), trial))
        if not trials:
            return parts
        least, trial = min(trials)
        if least >= best * (1 - 1e-12):
            return parts
        best, parts = least, trial
