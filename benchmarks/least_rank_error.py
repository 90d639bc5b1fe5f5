"""The least rank error that any choice of a median can have, by a linear program
over all choices of few cells.

A table is up to so many people in a few cells. A choice gives each table a probability of each
cell; it is ε-private where one person more or less moves each by at most a factor e^ε. Of all
choices that have no more error than permute-and-flip in any table, the program finds the one with
the least error, relative to it, over tables of a number of people who are in any cell alike. Tables
from `people - more` to `people + more` people are held against each other, so what is printed is a
lower bound. With the cells their number grows fast: six cells take a minute.

    python benchmarks/least_rank_error.py [cells people more epsilon]
"""

from __future__ import annotations

import math
import sys
from itertools import combinations_with_replacement

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, vstack

Cells = tuple[int, ...]
CASES = ((4, 4, 2, 1.0), (5, 4, 3, 1.0), (6, 4, 2, 1.0), (4, 6, 3, 1.0))


def rank_errors(table: Cells, cells: int) -> np.ndarray:
    """Of each cell, the number of people between it and the median."""
    upto = np.cumsum(np.bincount(table, minlength=cells)) if table else np.zeros(cells)
    below = np.concatenate([[0], upto[:-1]])
    return np.maximum(np.maximum(below - len(table) / 2, len(table) / 2 - upto), 0.0)


def permute_and_flip(errors: np.ndarray, epsilon: float) -> np.ndarray:
    """Its probabilities, by the integral over the largest key."""
    gaps = epsilon * (errors - errors.min(axis=1, keepdims=True))
    keys = np.linspace(1e-6, 40, 8000)
    tails = np.exp(-(keys + gaps[:, :, None]))
    under = np.clip(1 - tails, 1e-300, 1)
    found = np.trapezoid(np.prod(under, axis=1)[:, None] / under * tails, keys, axis=2)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def least(cells: int, people: int, more: int, epsilon: float) -> tuple[float, float]:
    """Mean ratios of errors to those of permute-and-flip:
    of the best choice, and of the exponential mechanism.
    """
    sizes = range(max(people - more, 0), people + more + 1)
    tables = [
        table for size in sizes for table in combinations_with_replacement(range(cells), size)
    ]
    place = {table: number for number, table in enumerate(tables)}
    errors = np.array([rank_errors(table, cells) for table in tables])
    usual = np.sum(permute_and_flip(errors, epsilon) * errors, axis=1)
    likely = np.array([_likely(table, cells) if len(table) == people else 0.0 for table in tables])
    likely = np.where(usual > 0, likely, 0.0) / likely[usual > 0].sum()
    pairs = [
        (place[table] * cells + cell, place[tuple(sorted((*table, new)))] * cells + cell)
        for table in tables[: -math.comb(sizes[-1] + cells - 1, cells - 1)]
        for new in range(cells)
        for cell in range(cells)
    ]
    one, other = np.array(pairs).T
    first, second, row = (
        np.concatenate([one, other]),
        np.concatenate([other, one]),
        np.arange(2 * len(pairs)),
    )
    factors = np.concatenate([np.ones(len(row)), np.full(len(row), -math.exp(epsilon))])
    private = coo_matrix(
        (factors, (np.tile(row, 2), np.concatenate([first, second]))), (len(row), errors.size)
    )
    owner, each = np.repeat(np.arange(len(tables)), cells), np.arange(errors.size)
    no_worse = coo_matrix((errors.ravel(), (owner, each)))
    weights = likely / np.maximum(usual, 1e-9)
    found = linprog(
        (weights[:, None] * errors).ravel(),
        vstack([private, no_worse]).tocsr(),
        np.concatenate([np.zeros(len(row)), usual + 1e-9]),
        coo_matrix((np.ones(errors.size), (owner, each))).tocsr(),
        np.ones(len(tables)),
        bounds=(0, 1),
        method="highs-ipm",
    )
    exponential = np.exp(-epsilon * errors)
    exponential /= exponential.sum(axis=1, keepdims=True)
    return float(found.fun), float(weights @ np.sum(exponential * errors, axis=1))


def _likely(table: Cells, cells: int) -> float:
    """The probability of a table of people who are in any cell alike, times a constant."""
    counts = np.bincount(table, minlength=cells)
    return 1 / math.prod(math.factorial(int(count)) for count in counts)


if __name__ == "__main__":
    asked = sys.argv[1:]
    cases = [(int(asked[0]), int(asked[1]), int(asked[2]), float(asked[3]))] if asked else CASES
    print(
        "| cells | people | ε | least possible | exponential mechanism "
        "|\n|---:|---:|---:|---:|---:|"
    )
    for case in cases:
        best, exponential = least(*case)
        print(
            f"| {case[0]} | {case[1]} | {case[3]:g} | {best:.2f} | {exponential:.2f} |", flush=True
        )
