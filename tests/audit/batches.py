"""One question asked of thousands of small tables at once:
the tables stand in one frame, told apart by a column "t".

How it is sound. The frame is protected with unit=("t", "u"), so that limits are enforced for each
unit of each table on its own, and the totals are taken by "t" besides the question's own groups.
What is claimed stays that of the question without "t": the same measures on the same grids under
the same limits. The hash that chooses groups leaves "t" out, as it does where a table is asked
alone, so that two neighbouring tables choose alike for the units that they share. A test holds
totals taken so against those of the same tables asked one by one.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from dpframe import engine
from dpframe.audit.neighbouring import multisets, pairs
from dpframe.engine.backends import backend_named
from dpframe.engine.backends import polars as parts
from dpframe.plan import Hierarchy, Keys, Question
from dpframe.plan.steps import source_of
from dpframe.release.answer.selection import rank_scores, reach_scores
from dpframe.theory.formulas.loss import rank_terms, reach_change
from dpframe.theory.formulas.rank_trees import rank_tree
from places import place_counts
from strategies import hashed_by

# The universe: 12 kinds of rows, and all tables of up to 4 of them.

KINDS = [(u, g, v) for u in ("A", "B", None) for g in ("x", "y") for v in (-1, 3)]
OWNERS = [None if u is None else (u,) for u, _, _ in KINDS]


@functools.cache
def universe(size: int = 4) -> list[tuple[int, ...]]:
    """Every table of up to `size` rows, as how often each kind occurs."""
    return multisets(len(KINDS), size)


@functools.cache
def neighbours(relation: str, declared: int | None = None, size: int = 4) -> np.ndarray:
    """Every two of these tables that are neighbours: an array of shape (pairs, 2)."""
    return np.array(list(pairs(universe(size), OWNERS, relation, declared)))


@functools.cache
def frame(size: int = 4) -> pl.DataFrame:
    """All of them in one frame."""
    rows = [
        (t, *KINDS[kind], KINDS[kind][2])
        for t, counts in enumerate(universe(size))
        for kind, count in enumerate(counts)
        for _ in range(count)
    ]
    return pl.DataFrame(
        rows,
        {"t": pl.Int64, "u": pl.String, "g": pl.String, "v": pl.Float64, "i": pl.Int64},
        orient="row",
    )


# Asking


class _Together(Question):
    """An ask by table besides its groups, whose limits, measures and
    cells are those of the ask alone.
    """

    @property
    def cells(self) -> int | None:
        return self.__dict__["alone"]


def together(ask: Question, tables: int) -> Question:
    """The same ask of every table at once."""
    known = source_of(ask.step).table.columns["t"]
    number = ask.table.columns.get("t", known)
    keys = ask.keys
    if not ask.by:
        keys = Keys((tuple(range(tables)),))
    elif keys is not None and keys.rows is None:
        keys = Keys((tuple(range(tables)), *keys.levels))
    elif keys is not None:
        keys = Keys.of_rows([(t, *row) for t in range(tables) for row in keys.rows])
    made = object.__new__(_Together)
    resolved = {
        name: getattr(ask, name)
        for name in ("limits", "allotments", "unit_limits", "outputs", "threshold", "shape")
    }
    if isinstance(ask, Hierarchy):  # its levels are sums of what is read, and not read themselves
        resolved["allotments"] = ask.read
    by = {
        "by": ("t", *ask.by),
        "keys": keys,
        "group_columns": (number, *ask.group_columns),
        "alone": ask.cells,
    }
    made.__dict__.update({**vars(ask), **resolved, **by})
    return made


@contextmanager
def one_hash_for_all_tables():
    """The hash leaves the table out: it is the first of the identifiers ("u0") and
    the first of the groups ("k0").
    """
    text = parts._hash

    def without_table(real):
        return lambda frame, columns, *rest: real(
            frame, [c for c in columns if c not in ("u0", "k0")], *rest
        )

    with pytest.MonkeyPatch.context() as patch:
        for name in ("polars", "duckdb", "ibis"):
            hashed_by(patch, without_table(backend_named(name).keyed_hash), name)
        patch.setattr(parts, "_hash", lambda row, salt: text(row[1:], salt))
        yield


def totals(
    ask: Question, tables: int, salt: int = 1, *, weighed: bool = False
) -> tuple[list[np.ndarray], list[Any]]:
    """The exact totals of every table: for each measure an array (table, group, …), and the groups.

    Input:  weighed: whether influences have weights, which are random, as large as they can be, and
            those of each group in all tables; else influences are 0
    """
    with one_hash_for_all_tables():
        raw = engine.totals(together(ask, tables), salt)
    rows = raw.keys.rows()
    groups = sorted({row[1:] for row in rows}, key=repr)
    at = {group: i for i, group in enumerate(groups)}
    influences = {
        i: len(p.total.moment.parts) for i, p in enumerate(ask.read) if p.total.of_influence
    }
    if weighed and influences:
        rng = np.random.default_rng(salt)
        of_group = {
            i: rng.integers(-(2**30), 2**30, (len(groups), size)) for i, size in influences.items()
        }
        weights = {i: table[[at[row[1:]] for row in rows]] for i, table in of_group.items()}
        with one_hash_for_all_tables():
            raw = engine.totals(together(ask, tables), salt, None, (raw.held, weights))
    places = np.array([row[0] * len(groups) + at[row[1:]] for row in rows], np.int64)
    found = []
    for values in raw.values:
        values = np.asarray(values)
        array = np.zeros((tables * len(groups), *values.shape[1:]), values.dtype)
        array[places] = values
        found.append(array.reshape(tables, len(groups), *values.shape[1:]))
    return found, groups


# Measuring


def reached(change: np.ndarray) -> tuple[int, int, int, int]:
    """The largest l0, l1, l2² and linf among changes (pairs, cells), exact."""
    change = np.abs(change)
    l0 = int((change != 0).sum(axis=1).max())
    about = change.astype(np.float64)
    l1 = _largest(about.sum(axis=1), change, 1)
    l2 = _largest((about * about).sum(axis=1), change, 2)
    return l0, l1, l2, int(change.max())


def _largest(about: np.ndarray, change: np.ndarray, power: int) -> int:
    """The exact size of the largest change, among those that are nearly so in floats."""
    near = np.flatnonzero(about >= about.max() * (1 - 1e-9))
    _, first = np.unique(about[near], return_index=True)  # one of each float is enough
    return max(sum(int(x) ** power for x in row) for row in change[near[first]])


def scores(measure: Any, counts: np.ndarray) -> np.ndarray:
    """The scores among which permute-and-flip chooses, of every table, group and candidate."""
    flat = counts.reshape(-1, counts.shape[-1])
    return rank_scores(measure, flat, Fraction(1, 2**measure.fraction)).reshape(counts.shape)


def all_reach_scores(measure: Any, counts: np.ndarray) -> np.ndarray:
    """The scores among which a distance from a quantile is chosen, by
    table, group, place and distance.
    """
    flat, needed = (
        counts.reshape(-1, counts.shape[-1]),
        measure.rank.denominator << measure.fraction,
    )
    places = [np.full(len(flat), place) for place in range(counts.shape[-1])]
    counts_of = place_counts(flat)
    found = [reach_scores(measure, counts_of, place, needed) for place in places]
    return np.stack(found, axis=1).reshape(*counts.shape[:2], len(places), -1)


def reach_cost(measure: Any, moved: np.ndarray) -> Fraction:
    """What choices of distances cost, in rows, wherever the quantiles are:
    as `rank_cost`, for the worst places.
    """
    return rank_cost(measure, np.abs(moved).max(axis=2), reach_change(measure.rank))


def rank_cost(measure: Any, moved: np.ndarray, change: int | None = None) -> Fraction:
    """What choices on scores that moved so cost, in rows:
    the largest move of each group, added over the groups.
    """
    change = change or rank_terms(measure.rank)[0]
    return Fraction(int(np.abs(moved).max(axis=2).sum(axis=1).max()), change)


def tree_sizes(
    measure: Any, counts: np.ndarray, here: np.ndarray, there: np.ndarray
) -> dict[str, tuple[Any, Any]]:
    """How far every level of the trees moves, beside the claim:
    all levels of Laplace and of Gaussian noise.
    """
    claim, sizes = measure.sensitivity, []
    for normal in (False, True):
        for level in rank_tree(measure.width, normal=normal).levels(
            counts.reshape(-1, counts.shape[-1])
        ):
            blocks = level.reshape(*counts.shape[:2], -1)
            moved = blocks[there] - blocks[here]
            _, l1, l2, linf = reached(moved.reshape(len(moved), -1))
            groups = int((moved != 0).any(axis=2).sum(axis=1).max())
            square = int((moved.astype(object) ** 2).sum(axis=2).max())
            sizes.append((groups, l1, l2, linf, square))
    l0, l1, l2, linf, square = (max(size) for size in zip(*sizes, strict=True))
    return {
        "tree l0": (l0, claim.l0),
        "tree l1": (l1, claim.exact_l1),
        "tree l2": (l2, claim.l2_squared),
        "tree linf": (linf, claim.exact_linf),
        "tree group": (square, measure.group_square),
    }


def mode_cost(moved: np.ndarray) -> int:
    """What a choice of the most frequent costs, in rows:
    how far apart the moves of a group's candidates are.
    """
    return int((moved.max(axis=2) - moved.min(axis=2)).sum(axis=1).max())
