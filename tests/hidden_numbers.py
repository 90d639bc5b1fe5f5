"""What a reader finds out about hidden numbers:
linear programs, which share no line of code with what hides them.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog

from dpframe.theory.formulas.trees import Levels


def table_equations(height, width, there=None, groups=None):
    """Each line of a table with margins adds up to its margin; a missing cell is in no line.

    Numbers are in the order of the table's rows: cells, subtotals of groups, margins.
    """
    parts = 0 if groups is None else max(groups) + 1
    shape = height + parts + 1, width + 1
    cells = np.zeros(shape)
    cells[:height, :width] = 1 if there is None else there
    equations = []
    for i in range(height + parts + 1):  # a row adds up to its margin
        one = np.zeros(shape)
        one[i, :width] = cells[i, :width] if i < height else 1
        one[i, width] = -1
        equations.append(one)
    members = [np.arange(height)] + [
        np.flatnonzero(np.equal(groups, part)) for part in range(parts)
    ]
    for total, rows in zip([height + parts, *range(height, height + parts)], members, strict=True):
        for j in range(width):  # a column, and each part of it
            one = np.zeros(shape)
            one[rows, j] = cells[rows, j]
            one[total, j] = -1
            equations.append(one)
    return np.array([one.ravel() for one in equations])


def random_groups(rng, height):
    """For each row the number of its subtotal, in order."""
    return np.unique(np.sort(rng.integers(0, max(height // 2, 1), height)), return_inverse=True)[1]


def tree_equations(tree):
    """The children of each node add up to it; numbers are in the order of the levels."""
    offsets = np.concatenate([[0], np.cumsum(tree.sizes)])
    rows = []
    for level, first in enumerate(tree.first):
        for node, (start, number) in enumerate(zip(first, tree.children[level], strict=True)):
            one = np.zeros(offsets[-1])
            one[offsets[level] + node] = -1
            one[offsets[level + 1] + start : offsets[level + 1] + start + number] = 1
            rows.append(one)
    return np.array(rows)


def random_table(rng, kind):
    """A sparse table, one with small and large numbers, or one of small numbers alone."""
    shape = rng.integers(1, 8, 2)
    if kind == 0:
        return rng.poisson(rng.gamma(0.5, 20, shape)) * 1.0
    if kind == 1:
        return (
            np.where(
                rng.random(shape) < 0.4, rng.integers(0, 10, shape), rng.integers(10, 300, shape)
            )
            * 1.0
        )
    return rng.poisson(rng.choice([0.5, 1, 3]), shape) * 1.0


def random_tree(rng, kind, cells=1):
    """A tree of one to four levels below its root, and its numbers."""
    first, nodes = [], 1
    for _ in range(rng.integers(1, 5)):
        children = rng.integers(1, 5, nodes)
        first.append(np.concatenate([[0], np.cumsum(children)[:-1]]))
        nodes = int(children.sum())
    tree = Levels(tuple(first), nodes)
    leaves = (
        rng.integers(0, 40, (nodes, cells))
        if kind
        else rng.poisson(rng.gamma(0.5, 20, (nodes, cells)))
    )
    values = [leaves * 1.0]
    for level in range(len(first) - 1, -1, -1):
        values.append(tree.up(values[-1], level))
    return tree, values[::-1]


def widths(equations, values, codes, below, floor=0.0, *, whole=True, told=True):
    """How far the largest and the smallest value of each hidden number lie
    apart, for all that a reader knows.

    Input:  equations: those that the numbers fulfil; values: all of them, of which those with code
            0 are shown; below: the limit; floor: the least number; told: whether marks tell which
            hidden numbers are small. If not, the reader still knows of small ones that they are
            small
    """
    hidden = np.flatnonzero(codes)
    matrix = equations[:, hidden]
    matrix = matrix[np.abs(matrix).sum(axis=1) > 0]
    small = values[hidden] < below
    least = math.ceil(below) if whole else below
    low = np.where(small | (not told), floor, least)
    high = np.where(small, least - 1 if whole else below, np.inf)
    result = []
    for number in range(len(hidden)):
        ends = []
        for sign in (1, -1):
            aim = np.zeros(len(hidden))
            aim[number] = sign
            found = linprog(
                aim,
                A_eq=matrix,
                b_eq=matrix @ values[hidden],
                bounds=np.column_stack([low, high]),
                method="highs",
            )
            assert found.status in (0, 3), found.message
            ends.append(sign * found.fun if found.status == 0 else -sign * np.inf)
        result.append(ends[1] - ends[0])
    return np.array(result)
