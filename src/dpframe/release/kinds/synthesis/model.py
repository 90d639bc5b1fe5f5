"""A graphical model of the rows: the distribution of largest entropy that fits noisy tables, by a junction tree.

Everything here is computed from noisy tables and public numbers of keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpframe.arrays import Floats
from dpframe.release.kinds.synthesis.junction_trees import JunctionTree
from dpframe.theory.formulas.error import Attributes


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
