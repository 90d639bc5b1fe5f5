"""Least squares on noisy totals of nested sets:
estimates of all totals of a tree, and their variances.

A node is a set. Its children are disjoint sets whose union is the node, so its total is the sum of
theirs. Each node was measured once, with independent noise. Numbers of children and variances may
differ from node to node. The passes run on whole levels, as arrays, since a hierarchy may have
millions of leaves.

Source: Hay, Rastogi, Miklau, Suciu 2010, arXiv:0904.0942, section 4, for one degree and one
        variance; the passes for
any degrees and variances are those of Gaussian elimination on a tree
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpframe.arrays import Floats, Integers, WideIntegers
from dpframe.errors import InvalidArgument

_PARTS = 60  # a level's part of the price is a multiple of 1/60

Variances = Sequence[float | Floats]  # of the noise of each level: one number, or one for each node


@dataclass(frozen=True, eq=False)
class Levels:
    """A tree, level by level.
    Nodes are in such an order that the children of a node follow one another.

    Input:  first: for each level but the last, an array with the place of each node's first child
            in the next level; leaves: how many nodes the last level has. The first level is the
            root alone
    Errors: InvalidArgument

    Two regions, with one and with two districts:

    >>> tree = Levels((np.array([0]), np.array([0, 1])), 3)
    >>> tree.sizes, tree.most_leaves
    ((1, 2, 3), (3, 2, 1))
    """

    first: tuple[Integers, ...]
    leaves: int

    def __post_init__(self) -> None:
        below = [len(first) for first in self.first[1:]] + [self.leaves]
        for level, (first, size) in enumerate(zip(self.first, below, strict=True)):
            rising = (
                len(first) > 0
                and first[0] == 0
                and first[-1] < size
                and bool(np.all(np.diff(first) > 0))
            )
            if not rising or (level == 0 and len(first) != 1):
                raise InvalidArgument(
                    "Levels: one root, and each node has at least one child in the next level."
                )

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of nodes of each level, from the root."""
        return (*(len(first) for first in self.first), self.leaves)

    @cached_property
    def children(self) -> tuple[Integers, ...]:
        """Number of children of each node, for each level but the last."""
        return tuple(
            np.diff(np.append(first, size))
            for first, size in zip(self.first, self.sizes[1:], strict=True)
        )

    @cached_property
    def most_leaves(self) -> tuple[int, ...]:
        """For each level the largest number of leaves below a node."""
        counts = [np.ones(self.leaves, np.int64)]
        for first in reversed(self.first):
            counts.append(np.add.reduceat(counts[-1], first))
        return tuple(int(count.max()) for count in reversed(counts))

    @property
    def mean_leaves(self) -> tuple[float, ...]:
        """For each level the mean number of leaves below a node, N_j."""
        return tuple(self.leaves / size for size in self.sizes)

    def up(self, values: WideIntegers | Floats, level: int) -> np.ndarray:
        """Sums over the children of the nodes of a level;
        `values` has a row for each node of the next level.
        """
        return np.add.reduceat(values, self.first[level], axis=0)

    def down(self, values: np.ndarray, level: int) -> np.ndarray:
        """The value of the parent, for each node of the level below `level`."""
        return np.repeat(values, self.children[level], axis=0)

    def parents(self, level: int) -> Integers:
        """The place of the parent, for each node of the level below `level`."""
        return self.down(np.arange(self.sizes[level]), level)

    def totals(self, leaves: WideIntegers) -> list[WideIntegers]:
        """Exact totals of the nodes of all levels, from the root.
        They are Python integers where int64 might wrap.
        """
        largest = max((int(np.abs(leaves).max(initial=0))), 1) if leaves.dtype != object else 2**63
        totals = [leaves if largest * self.leaves < 2**62 else leaves.astype(object)]
        for level in reversed(range(len(self.first))):
            totals.append(self.up(totals[-1], level))
        return totals[::-1]

    # Least squares

    def _from_below(self, variances: Variances) -> tuple[list[Floats], list[Floats], list[Floats]]:
        """Variances of each node's estimate from its own subtree, and of the sum of
        its children's; and its weight.

        A node's own measurement and the sum of its children's estimates are independent. So their
        average with weights 1 / variance is the best estimate, in which the measurement has the
        weight that is returned.
        """
        own, under, weights = [np.zeros(self.leaves) + variances[-1]], [np.zeros(0)], [np.zeros(0)]
        for level in reversed(range(len(self.first))):
            total, variance = (
                self.up(own[-1], level),
                np.zeros(self.sizes[level]) + variances[level],
            )
            infinite, weight = np.isinf(variance), _part(total, total + variance)
            own.append(np.where(infinite, total, np.where(infinite, 0.0, variance) * weight))
            under.append(total)
            weights.append(weight)
        return own[::-1], under[::-1], weights[::-1]

    def variances(self, variances: Variances) -> list[Floats]:
        """The variance of the estimate of each node, level by level from the root.

        Input:  variances: of the noise of each level, as one number or one for each node (any
                squared unit); infinite for nodes above the leaves that are not measured
        Output: for each level an array over its nodes, in the unit of the input
        Bound:  exact. Let a node's estimate have variance f, its children's own estimates u_c with
                sum U. A child's estimate is its own one plus u_c/U times the difference between the
                node's final estimate and the sum of its children's, so its variance is u_c - u_c²/U
                + (u_c/U)² f

        >>> Levels((np.array([0]),), 2).variances([1.0, 1.0])
        [array([0.66666667]), array([0.66666667, 0.66666667])]
        """
        own, under, _ = self._from_below(variances)
        result = [own[0]]
        for level in range(len(self.first)):
            part = _part(own[level + 1], self.down(under[level], level))
            result.append(own[level + 1] * (1 - part) + part**2 * self.down(result[level], level))
        return result

    def sum_variances(self, weights: Floats, variances: Variances) -> Floats:
        """Variances of weighted sums of the leaves' estimates.

        Input:  weights: leaves by sums; variances: as in `variances`
        Output: a variance for each column
        Bound:  exact. Within the subtree of a node with total s, the weighted sum is a + b·s plus
                an independent error of variance q. Here b is the average of the children's b_i with
                their variances u_i as weights, and q = Σ q_i + Σ u_i (b_i - b)². At the root, s has
                the variance u of its estimate, so the sum has q + b²·u
        """
        own, under, _ = self._from_below(variances)
        slopes, residual = np.asarray(weights, np.float64), np.zeros_like(weights, np.float64)
        for level in reversed(range(len(self.first))):
            shares = own[level + 1][:, None]
            mean = _part(self.up(slopes * shares, level), under[level][:, None])
            residual = self.up(residual + shares * (slopes - self.down(mean, level)) ** 2, level)
            slopes = mean
        return np.asarray((residual + slopes**2 * own[0])[0])

    def reach(self, variances: Variances, steps: Sequence[float]) -> list[Floats]:
        """Error of each node's estimate if every measurement of level j is off by at most steps[j].

        Bound:  the triangle inequality along the passes of `estimates`, whose weights are not
                negative
        """
        values = [
            np.full((size, 1), float(step)) for size, step in zip(self.sizes, steps, strict=True)
        ]
        return [level.ravel() for level in self._passed(values, variances, 1)]

    def estimates(self, noisy: Sequence[Floats], variances: Variances) -> list[Floats]:
        """Least-squares estimates of all totals, which add up from level to level
        but for the rounding of floats.

        Input:  noisy: for each level an array of its nodes by any number of columns (ignored where
                a node is not measured); variances: as in `variances`
        Output: arrays of these shapes
        Bound:  the best linear unbiased estimates from all measured nodes, for each node and each
                weighted sum of nodes. Once the totals of a node's children are known, the subtrees
                under different children are independent, so two passes are enough, for any numbers
                of children. From the root down, the difference between a node's final estimate and
                the sum of its children's estimates is divided among the children in proportion to
                their variances

        The sum of two leaves is 6 above the two together, and each of the three takes a third of
        the difference.

        >>> [
        ...     level.ravel().tolist()
        ...     for level in Levels((np.array([0]),), 2).estimates(
        ...         [np.array([[36.0]]), np.array([[10.0], [20.0]])], [1.0, 1.0]
        ...     )
        ... ]
        [[34.0], [12.0, 22.0]]
        """
        return self._passed([np.asarray(level, np.float64) for level in noisy], variances, -1)

    def _passed(self, values: Sequence[Floats], variances: Variances, sign: int) -> list[Floats]:
        """The passes of least squares: up, a node with the sum of its
        children; down, what the two differ by.

        With `sign` 1 the sum of the two goes down, in place of their difference.
        """
        own, under, weights = self._from_below(variances)
        best, sums = [values[-1]], [np.zeros(0)]
        for level in reversed(range(len(self.first))):
            total, weight = self.up(best[-1], level), weights[level][:, None]
            sums.append(total)
            best.append(total + weight * (np.where(weight, values[level], total) - total))
        best, sums = best[::-1], sums[::-1]
        for level in range(len(self.first)):
            part = _part(own[level + 1], self.down(under[level], level))[:, None]
            best[level + 1] = best[level + 1] + part * self.down(
                best[level] + sign * sums[level], level
            )
        return best


def _part(part: Floats, whole: Floats) -> Floats:
    """A part of a whole, as a ratio; 0 where the whole is 0."""
    return np.divide(
        part, whole, out=np.zeros(np.broadcast_shapes(part.shape, whole.shape)), where=whole > 0
    )


@dataclass(frozen=True)
class Forest:
    """Trees of noisy totals whose leaves are at any depth, such as the nodes of a series.

    Input:  parents: for each node the index of its parent, which comes after it, or -1 for a root;
            variances: the variance of each node's noise (any squared unit), infinite for an inner
            node that was not measured
    Bound:  one tree of `Levels`. Above all roots is a node that was not measured, which tells them
            nothing. Above a leaf that is less deep than others are nodes with one child each, not
            measured either
    Source: Honaker 2015, "Efficient Use of Differentially Private Binary Trees", for nodes that are
            published one after another
    Errors: InvalidArgument

    Two nights and their sum, each with noise of variance 1:

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
            if not self.variances[node] >= 0 or (
                node not in self._children and math.isinf(self.variances[node])
            ):
                raise InvalidArgument(
                    "Forest: a variance is at least 0, and finite for a node without children."
                )

    @cached_property
    def _children(self) -> dict[int, list[int]]:
        children: dict[int, list[int]] = {}
        for node, parent in enumerate(self.parents):
            children.setdefault(parent, []).append(node)
        return children

    @cached_property
    def _tree(self) -> tuple[Levels, list[Integers]]:
        """The tree, and the node at each place of its levels;
        a leaf is also at the places above it, until its own.
        """
        nodes, first = [[-1]], list[Integers]()
        while any(node in self._children for node in nodes[-1]):
            below = [self._children.get(node, [node]) for node in nodes[-1]]
            first.append(np.cumsum([0, *map(len, below)])[:-1])
            nodes.append([child for children in below for child in children])
        return Levels(tuple(first), len(nodes[-1])), [np.array(level) for level in nodes]

    @cached_property
    def _variances(self) -> list[Floats]:
        """The variance of the noise at each place of the tree."""
        _, nodes = self._tree
        known = np.array([*self.variances, math.inf])
        inner = np.array([node in self._children for node in range(len(self.parents))] + [True])
        return [np.where(inner[level], known[level], math.inf) for level in nodes[:-1]] + [
            known[nodes[-1]]
        ]

    def estimates(self, values: Floats) -> Floats:
        """Least-squares estimates of all totals.
        They are consistent: children add up to their parent.

        Input:  values: the measured totals, a row for each node (columns: any number of groups);
                the row of a node that was not measured is ignored
        Output: estimates, an array of that shape
        Bound:  see `Levels.estimates`
        """
        tree, nodes = self._tree
        result = np.zeros((len(values) + 1, *values.shape[1:]))
        padded = np.append(values, result[:1], axis=0)
        for level, best in zip(
            nodes, tree.estimates([padded[level] for level in nodes], self._variances), strict=True
        ):
            result[level] = best
        return result[:-1]

    def variance(self, weights: Floats) -> Floats:
        """Variances of weighted sums of the leaves' estimates: see `Levels.sum_variances`.

        Input:  weights: a row for each node (only the rows of leaves are used), a column for each
                sum
        Output: a variance for each column
        """
        tree, nodes = self._tree
        return tree.sum_variances(np.asarray(weights)[nodes[-1]], self._variances)


def moved_parts(levels: int, error: Callable[[Sequence[int]], float]) -> list[int]:
    """Parts of the price for the levels of a tree, in sixtieths (or finer,
    for many levels), leaves last.

    Input:  how many levels; error: the error of a tree whose levels have these parts
    Output: parts near those with the smallest error. From equal parts, one sixtieth at a time is
            moved from one level to another, the best move first, as long as that makes the error
            smaller. Leaves keep a part

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
