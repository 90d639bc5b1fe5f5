"""Numbers of a tree that add up exactly, are not negative, or are whole:
post-processing of released numbers.

Nothing here reads rows or draws noise (post-processing, Dwork and Roth 2014, proposition 2.1). A
level is an array of its nodes by crossed keys; each column of all levels is a tree of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpframe.arrays import Floats, Integers
from dpframe.theory.formulas.trees import Levels

_BITS = 50  # numbers are held as integers of at most this size
_FINEST = -20  # and as multiples of 2^-20 at the finest


@dataclass(frozen=True, eq=False)
class Agreeing:
    """The numbers of all levels as integers, in units of 2^exponent:
    children add up to their parent exactly.
    """

    levels: tuple[Integers, ...]
    exponent: int

    def floats(self, level: int) -> Floats:
        """The numbers of a level.
        Sums of floats among them are exact too, since every one has at most 52 bits.
        """
        return np.ldexp(self.levels[level].astype(np.float64), self.exponent)


def on_grid(tree: Levels, values: Sequence[Floats]) -> Agreeing:
    """Numbers that nearly add up as integers that do:
    each is within one unit of its number, plus the errors of floats.

    Input:  for each level from the root an array; finite
    Output: multiples of a power of two, at most 2^50 units in size: of 2^-20, or coarser where
            numbers are large
    """
    most = max(
        float(np.abs(level).sum(axis=0).max(initial=0.0)) for level in (values[-1], *values[:-1])
    )
    exponent = max(_FINEST, math.frexp(most)[1] - _BITS if most else _FINEST)
    scaled = [np.ldexp(np.asarray(level, np.float64), -exponent) for level in values]
    return Agreeing(tuple(_apportioned(tree, scaled)), exponent)


def whole_levels(tree: Levels, numbers: Agreeing, base: int = 1) -> Agreeing:
    """Integers that add up: each number becomes one of its two neighbouring
    integers, or multiples of `base`.

    Input:  numbers that add up exactly
    Bound:  the root is rounded to the nearest integer. A node with number V has been rounded to R,
            one of the two integers next to V. Its children V_c have floors with sum F. R - F of
            them are rounded up, those with the largest fractions. V - F is the sum of the
            fractions, so R - F is at least 0, and at most the number of children whose fraction is
            not 0: every child becomes one of its two neighbouring integers
    Source: controlled rounding from the top of a tree, as in the top-down algorithm of the US
            census (Abowd and others 2022, doi:10.1162/99608f92.529e3cb9) and InfTDA (Boninsegna and
            Silvestri 2024, arXiv:2412.09256)
    """
    if base > 1:
        parts = on_grid(
            tree, [numbers.floats(level) / base for level in range(len(numbers.levels))]
        )
        whole = whole_levels(tree, parts)
        return Agreeing(tuple(level * base for level in whole.levels), whole.exponent)
    if numbers.exponent >= 0:
        return numbers
    one = 1 << -numbers.exponent
    levels = [(numbers.levels[0] + one // 2) // one]
    for level in range(len(tree.first)):
        values = numbers.levels[level + 1]
        low = values // one
        levels.append(_raised(tree, level, low, values - low * one, levels[level]))
    return Agreeing(tuple(levels), 0)


def _apportioned(tree: Levels, values: Sequence[Floats]) -> list[Integers]:
    """Integers near real numbers that add up: from the root, each parent's integer
    is divided among its children.
    """
    levels = [np.rint(values[0]).astype(np.int64)]
    for level in range(len(tree.first)):
        low = np.floor(values[level + 1])
        whole = low.astype(np.int64)
        _settle(tree, level, whole, levels[level])
        levels.append(_raised(tree, level, whole, values[level + 1] - low, levels[level]))
    return levels


def _settle(tree: Levels, level: int, whole: Integers, parents: Integers) -> None:
    """Change the largest children so that raising some children by 1 reaches
    their parent's number, in place.

    The errors of floats may make the floors of children exceed their parent, or fall short by more
    than 1 each. A child that is not negative stays so.
    """
    node, count = tree.parents(level), tree.children[level][:, None]
    while True:
        short = parents - tree.up(whole, level)
        change = np.where(short < 0, short, np.maximum(short - count, 0))
        if not change.any():
            return
        for cell in np.flatnonzero(change.any(axis=0)):
            largest = np.lexsort((-whole[:, cell], node))[tree.first[level]]
            at, by = largest[change[:, cell] != 0], change[change[:, cell] != 0, cell]
            whole[at, cell] += np.where(whole[at, cell] > 0, np.maximum(by, -whole[at, cell]), by)


def _raised(
    tree: Levels, level: int, low: Integers, parts: np.ndarray, parents: Integers
) -> Integers:
    """Add 1 to the children with the largest parts, as many as their parent's number needs."""
    need, result = parents - tree.up(low, level), low.copy()
    node = tree.parents(level)
    for cell in range(low.shape[1]):
        order = np.lexsort((-parts[:, cell], node))
        # the place among the siblings, in this order
        rank = np.arange(len(node)) - tree.first[level][node]
        result[order, cell] += rank < need[node, cell]
    return result


def nonnegative_levels(tree: Levels, values: Sequence[Floats]) -> list[Floats]:
    """The numbers of a tree without negative ones, from the top down.

    Input:  for each level from the root an array of nodes by crossed keys
    Output: arrays of these shapes. The root is kept, or is 0 if it was negative. The children of a
            node are the nearest numbers (least squares) that are not negative and add up to their
            parent's new number
    Bound:  max(child - t, 0) with the t that gives this sum, for each parent: the conditions of
            Karush, Kuhn and Tucker
    Source: Michelot 1986, doi:10.1007/BF00938486, for one parent; InfTDA (Boninsegna and Silvestri
            2024, arXiv:2412.09256) for the way down, there with the largest difference in place of
            squares
    """
    levels = [np.maximum(np.asarray(values[0], np.float64), 0.0)]
    for level in range(len(tree.first)):
        below = np.asarray(values[level + 1], np.float64)
        node = tree.parents(level)
        result = np.empty_like(below)
        for cell in range(below.shape[1]):
            result[:, cell] = _projected(tree, level, node, below[:, cell], levels[level][:, cell])
        levels.append(result)
    return levels


def _projected(tree: Levels, level: int, node: Integers, values: Floats, totals: Floats) -> Floats:
    """For each parent, the nearest nonnegative children with its total."""
    first, order = tree.first[level], np.lexsort((-values, node))
    descending = values[order]
    running = np.cumsum(descending)
    before = np.append(0.0, running)[first]
    rank = np.arange(1, len(values) + 1) - first[node]
    shifts = (running - before[node] - totals[node]) / rank
    # The children above their own shift are the largest of their siblings; the last of them has the
    # shift of all.
    number = np.maximum(np.add.reduceat((descending > shifts).astype(np.int64), first), 1)
    shift = shifts[first + number - 1]
    result: Floats = np.maximum(values - shift[node], 0.0)
    result[totals[node] <= 0] = 0.0
    return result
