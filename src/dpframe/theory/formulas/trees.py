"""Least squares on noisy totals of nested sets: what a tree of noisy nodes says of each set, and how exactly.

A node is a set, its children are disjoint sets that make it up, and its total is the sum of theirs. Each node was
measured once, with noise of its own. Degrees and variances may differ from node to node.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument

__all__ = ["Forest"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Forest:
    """Trees of noisy totals.

    Input:  parents: for each node the number of its parent, which comes after it, or -1 for a root; variances: that of
            each node's noise (any squared unit), infinite for an inner node that was not measured
    Bound:  `estimates` are the best linear unbiased ones, of all that was measured, and `variance` is theirs. Given the
            total s of a node, what lies under different children is independent but for the sum of the children, so
            two passes are enough, whatever the degrees: see `_upward` and `estimates`
    Source: Hay, Rastogi, Miklau, Suciu 2010, arXiv:0904.0942, section 4, for one degree and one variance; Honaker 2015,
            "Efficient Use of Differentially Private Binary Trees", for nodes that are published one after another; the
            passes for any degrees and variances are those of Gaussian elimination on a tree
    Errors: InvalidArgument

    Two nights and their sum, each with noise of variance 1: half of what the sum says otherwise goes to each night in
    part.

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
            raise InvalidArgument("Forest: one variance for each node.")
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
        """For each node the variance of its estimate by what is in its own tree, and of the sum of its children's."""
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
        """For each node its estimate by what is in its own tree, and the sum of its children's.

        A node's own value and the sum of its children's estimates are independent, so their mean by inverse variances
        is the best estimate.
        """
        _, under = self._from_below
        best, sums = np.array(values, np.float64), np.zeros_like(values, np.float64)
        for node, children in enumerate(self._children):
            if children:
                sums[node] = best[children].sum(axis=0)
                variance = self.variances[node]
                whole = under[node] + variance
                part = 0.0 if math.isinf(variance) or not whole else under[node] / whole
                best[node] = sums[node] + part * (np.where(part, best[node], 0.0) - sums[node])
        return best, sums

    def estimates(self, values: Floats) -> Floats:
        """Least-squares estimates of all totals: consistent, children add up to their parent.

        Input:  values: what was measured, a row for each node (columns: any number of groups); where a node was not
                measured its row is not read
        Output: the same shape
        Bound:  unbiased, with the least variance of all linear estimates, for each node and each weighted sum of them.
                From the roots down, what a node's final estimate differs by from the sum of its children's is shared
                among them by their variances
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

        Input:  weights: a row for each node, of which those of leaves are read; a column for each sum
        Output: a variance for each column
        Bound:  exact. In the tree of a node whose total is s the sum is a + b·s, with an error of variance q beside:
                b is the mean of the children's b by their variances u, and q = Σ q_i + Σ u_i (b_i - b)². At a root s
                has the variance of its estimate, so the sum has q + b²·u
        """
        own, under = self._from_below
        weights = np.asarray(weights, np.float64)
        slopes, rest = np.zeros_like(weights), np.zeros_like(weights)
        total = np.zeros(weights.shape[1])
        for node, children in enumerate(self._children):
            if not children:
                slopes[node] = weights[node]
            else:
                shares = np.array([own[child] for child in children])[:, None]
                if under[node]:
                    slopes[node] = (slopes[children] * shares).sum(axis=0) / under[node]
                rest[node] = (rest[children] + shares * (slopes[children] - slopes[node]) ** 2).sum(axis=0)
            if self.parents[node] == -1:
                total += rest[node] + slopes[node] ** 2 * own[node]
        return np.asarray(total)

    @property
    def roots(self) -> Sequence[int]:
        """The nodes that are in no other."""
        return [node for node, parent in enumerate(self.parents) if parent == -1]
