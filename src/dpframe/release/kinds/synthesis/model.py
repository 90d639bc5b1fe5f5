"""A graphical model of the rows: the distribution of largest entropy that fits noisy tables, by a junction tree.

Everything here is computed from noisy tables and public numbers of keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpframe.arrays import Floats
from dpframe.theory.formulas.error import Attributes


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order in which each comes after its parent; a separator is what a clique shares with its parent.

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
    """The number of cells in the tables of all cliques together, in the junction tree of these sets.

    >>> tree_cells([(0, 1), (1, 2)], (2, 3, 5)), tree_cells([(0, 1), (1, 2), (0, 2)], (2, 3, 5))
    (21, 30)
    """
    return sum(cells_of(_members(clique), sizes) for clique in _maximal(_eliminated(sets, sizes)))


def junction_tree(sets: Iterable[Attributes], sizes: Sequence[int]) -> JunctionTree:
    """A junction tree whose cliques together have every column, and each of the sets within some clique.

    Columns are eliminated one after the other, the one with the smallest table first. The cliques are joined by a
    spanning tree of largest separators, which has the running intersection property.

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
    separators = [0 if p < 0 else masks[i] & masks[order[p]] for i, p in zip(order, parents, strict=True)]
    return JunctionTree(tuple(_members(masks[i]) for i in order), tuple(parents), tuple(map(_members, separators)))


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
    """The cliques of an elimination of all columns, as bits: each time the column with the smallest clique leaves."""
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


def summed(values: Floats, part: Attributes, to: Attributes) -> Floats:
    """The table of the columns `to`, added up from the table of more columns. Both are in growing order."""
    away = tuple(axis for axis, i in enumerate(part) if i not in to)
    return np.asarray(values.sum(axis=away)) if away else values


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

    @cached_property
    def conditionals(self) -> tuple[Floats, ...]:
        """For each clique its probabilities, with the separator's axes first and as one axis, and the others as one."""
        shaped = []
        for table, clique, separator in zip(self.tables, self.tree.cliques, self.tree.separators, strict=True):
            first = [clique.index(i) for i in separator]
            rest = [axis for axis in range(len(clique)) if axis not in first]
            rows = int(np.prod([self.sizes[i] for i in separator], dtype=np.int64))
            shaped.append(np.ascontiguousarray(table.transpose([*first, *rest])).reshape(rows, -1))
        return tuple(shaped)
