"""A graphical model of the rows: the distribution of largest entropy that fits
noisy tables, by a junction tree.

Everything here is computed from noisy tables and public numbers of keys. Junction trees follow from
sets of columns and numbers of keys.

Keys of synthetic rows are drawn evenly, so that tables of the rows are near the model. The rows are
drawn from the model alone. Their randomness hides nothing and need not be secret.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import Array, Floats, Integers, row_cells
from dpframe.release.answer.joint_tables import summed
from dpframe.theory.formulas.error import Attributes


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order in which each comes after its parent;
    a separator is what a clique shares with its parent.

    Each column of a clique that its separator does not have is in no earlier clique.
    """

    cliques: tuple[Attributes, ...]
    parents: tuple[int, ...]  # the place of the parent; -1 for a root
    separators: tuple[Attributes, ...]

    def home(self, part: Attributes, sizes: Sequence[int]) -> int | None:
        """The place of the smallest clique that has these columns; None if there is none."""
        places = [i for i, clique in enumerate(self.cliques) if set(part) <= set(clique)]
        return min(places, key=lambda i: cells_of(self.cliques[i], sizes)) if places else None


def cells_of(part: Iterable[int], sizes: Sequence[int]) -> int:
    """The number of cells in the table of a set of columns."""
    return math.prod(sizes[i] for i in part)


def tree_cells(sets: Iterable[Attributes], sizes: Sequence[int]) -> int:
    """The number of cells in the tables of all cliques together, in
    the junction tree of these sets.

    >>> tree_cells([(0, 1), (1, 2)], (2, 3, 5)), tree_cells([(0, 1), (1, 2), (0, 2)], (2, 3, 5))
    (21, 30)
    """
    return sum(cells_of(_members(clique), sizes) for clique in _maximal(_eliminated(sets, sizes)))


def junction_tree(sets: Iterable[Attributes], sizes: Sequence[int]) -> JunctionTree:
    """A junction tree whose cliques together have every column, and each
    of the sets within some clique.

    Columns are eliminated one after the other, the one with the smallest table first. The cliques
    are joined by a spanning tree of largest separators, which has the running intersection
    property.

    Source: Koller, Friedman 2009, "Probabilistic Graphical Models", sections 9.4.3 and 10.4

    >>> junction_tree([(0, 1), (1, 2)], (2, 2, 2)).separators
    ((), (1,))
    """
    masks = _maximal(_eliminated(sets, sizes))
    first = max(range(len(masks)), key=lambda i: (masks[i].bit_count(), -i))
    order, parents, rest = [first], [-1], set(range(len(masks))) - {first}
    while rest:
        child, place = max(
            ((i, k) for i in sorted(rest) for k in range(len(order))),
            key=lambda pair: (masks[pair[0]] & masks[order[pair[1]]]).bit_count(),
        )
        joined = masks[child] & masks[order[place]]
        order.append(child)
        parents.append(place if joined else -1)
        rest.remove(child)
    separators = [
        0 if p < 0 else masks[i] & masks[order[p]] for i, p in zip(order, parents, strict=True)
    ]
    return JunctionTree(
        tuple(_members(masks[i]) for i in order), tuple(parents), tuple(map(_members, separators))
    )


def _members(mask: int) -> Attributes:
    return tuple(i for i in range(mask.bit_length()) if mask >> i & 1)


def _maximal(masks: Iterable[int]) -> list[int]:
    """The sets that are no part of another, as bits."""
    kept: list[int] = []
    for mask in sorted(set(masks), key=lambda m: (-m.bit_count(), m)):
        if not any(mask & other == mask for other in kept):
            kept.append(mask)
    return kept


def _eliminated(sets: Iterable[Attributes], sizes: Sequence[int]) -> list[int]:
    """The cliques of an elimination of all columns, as bits:
    each time the column with the smallest clique leaves.
    """
    logs = [math.log(size) + 1e-9 for size in sizes]
    neighbours = [1 << i for i in range(len(sizes))]
    for part in sets:
        mask = sum(1 << i for i in part)
        for i in part:
            neighbours[i] |= mask
    weights = {i: sum(logs[k] for k in _members(neighbours[i])) for i in range(len(sizes))}
    cliques = []
    while weights:
        gone = min(weights, key=lambda i: (weights[i], i))
        del weights[gone]
        clique = neighbours[gone]
        cliques.append(clique)
        for i in _members(clique & ~(1 << gone)):
            neighbours[i] = (neighbours[i] | clique) & ~(1 << gone)
            weights[i] = sum(logs[k] for k in _members(neighbours[i]))
    return cliques


def expanded(values: Floats, part: Attributes, to: Attributes) -> Floats:
    """A table of some columns with an axis of length 1 for each other column of `to`."""
    shape = [values.shape[part.index(i)] if i in part else 1 for i in to]
    return values.reshape(shape)


@dataclass(frozen=True)
class Beliefs:
    """Probabilities of the cells of each clique. Cliques agree on what they share."""

    tree: JunctionTree
    sizes: tuple[int, ...]
    tables: tuple[Floats, ...]

    def table(self, part: Attributes) -> Floats | None:
        """The probabilities of the cells of some columns; None if no clique has them."""
        home = self.tree.home(part, self.sizes)
        return None if home is None else summed(self.tables[home], self.tree.cliques[home], part)

    def given(self, places: Mapping[int, int]) -> Beliefs:
        """The model of the rows that have one key in some columns:
        each column with the place of its key.

        Other cells become 0. Then each clique, from the leaves on, tells its parent by how much the
        cells of what they share became less likely. So rows that are drawn from the roots on have
        the conditional distribution.
        """
        tables = []
        for table, clique in zip(self.tables, self.tree.cliques, strict=True):
            held = np.zeros_like(table)
            cells = tuple(places.get(i, slice(None)) for i in clique)
            held[cells] = table[cells]
            tables.append(held)
        for i in reversed(range(len(tables))):
            clique, separator, parent = (
                self.tree.cliques[i],
                self.tree.separators[i],
                self.tree.parents[i],
            )
            if parent >= 0:
                before = summed(self.tables[i], clique, separator)
                ratio = summed(tables[i], clique, separator) / np.where(before > 0, before, 1)
                tables[parent] = tables[parent] * expanded(
                    ratio, separator, self.tree.cliques[parent]
                )
        return replace(self, tables=tuple(tables))

    @cached_property
    def conditionals(self) -> tuple[Floats, ...]:
        """For each clique its probabilities, with the separator's axes first and as
        one axis, and the others as one.
        """
        shaped = []
        for table, clique, separator in zip(
            self.tables, self.tree.cliques, self.tree.separators, strict=True
        ):
            first = [clique.index(i) for i in separator]
            rest = [axis for axis in range(len(clique)) if axis not in first]
            rows = int(np.prod([self.sizes[i] for i in separator], dtype=np.int64))
            shaped.append(np.ascontiguousarray(table.transpose([*first, *rest])).reshape(rows, -1))
        return tuple(shaped)


# Rows

_STEP = (5**0.5 - 1) / 2


def drawn_rows(
    beliefs: Beliefs, rows: int, draw: np.random.Generator, *, evenly: bool = True
) -> NDArray[np.int32]:
    """Rows of the model: an array of shape (rows, columns) with the place of
    each row's key among the keys.

    Clique after clique, each row gets the columns that its clique adds, given those of the
    separator. Rows with equal separators are ordered by their other columns, and take points of a
    sequence of steps of the golden ratio. So every run of neighbouring rows has nearly the numbers
    of keys that the model expects, and tables of the rows are nearer to the model than those of
    independent rows.
    """
    sizes, tree = beliefs.sizes, beliefs.tree
    codes = np.zeros((rows, len(sizes)), np.int32)
    have: list[int] = []
    for i, (clique, separator) in enumerate(zip(tree.cliques, tree.separators, strict=True)):
        new = tuple(k for k in clique if k not in separator)
        table = beliefs.conditionals[i]
        given = row_cells(codes, separator, sizes)
        others = [k for k in have if k not in separator]
        points: Array = (draw.random() + _STEP * np.arange(rows)) % 1.0
        if have and evenly:
            keys: list[Array] = [*(codes[:, int(k)] for k in draw.permutation(others)), given]
            order = np.lexsort(keys)
            points[order] = points.copy()
        elif have:
            points = draw.random(rows)
        chosen = _chosen(table, given, points)
        for k, values in zip(new, np.unravel_index(chosen, [sizes[k] for k in new]), strict=True):
            codes[:, k] = values
        have += new
    return codes[draw.permutation(rows)] if evenly else codes


def _chosen(table: Floats, given: Integers, points: Floats) -> Integers:
    """For each row the place in its line of the table at which the
    cumulated share reaches its point.
    """
    width = table.shape[1]
    line = np.maximum(table, 0)
    totals = line.sum(axis=1, keepdims=True)
    line = np.where(totals > 0, line / np.where(totals > 0, totals, 1), 1 / width)
    ends = np.cumsum(line, axis=1)
    ends[:, -1] = 1.0
    flat = (ends + np.arange(len(ends))[:, None]).ravel()
    at = np.searchsorted(flat, given + points, side="right")
    return np.asarray(np.clip(at - given * width, 0, width - 1))
