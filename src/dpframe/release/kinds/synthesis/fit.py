"""The fit of a model to noisy tables: tables that agree, and the distribution of
largest entropy that has them.

Everything here is computed from noisy tables and public numbers of keys.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpframe.arrays import Floats
from dpframe.release.answer.joint_tables import largest, summed
from dpframe.release.kinds.synthesis.model import (
    Beliefs,
    JunctionTree,
    cells_of,
    expanded,
    junction_tree,
)
from dpframe.theory.formulas.error import Attributes

_MENDED = 12  # times that tables are made to agree and to have no negative cell
_EVEN = 1e-3  # the part of a table that its margins alone decide, so that no cell is 0
_SMOOTH = 0.01  # rows, by which ratios of small cells are held back
_LEAST = 1e-200  # the smallest probability that is divided by
_CLOSE = 1e-4  # of the rows: the fit ends when no table is farther off in L1


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """A noisy table of some columns (rows), and the standard deviation of
    the noise of each cell (rows).
    """

    part: Attributes
    values: Floats
    deviation: float


@dataclass(frozen=True)
class Fit:
    """A model: probabilities by clique, and the number of rows."""

    beliefs: Beliefs
    rows: float


def together(measured: Sequence[MeasuredTable]) -> list[MeasuredTable]:
    """One table for each set of columns: the mean of those that were
    measured, weighted by their precision.
    """
    merged: dict[Attributes, MeasuredTable] = {}
    for one in measured:
        old = merged.get(one.part)
        if old is None:
            merged[one.part] = one
        else:
            here, there = one.deviation**-2, old.deviation**-2
            values = (here * one.values + there * old.values) / (here + there)
            merged[one.part] = MeasuredTable(one.part, values, (here + there) ** -0.5)
    return list(merged.values())


def agreed(measured: Sequence[MeasuredTable], sizes: Sequence[int]) -> dict[Attributes, Floats]:
    """Tables that agree wherever they share columns, by weighted least squares,
    and with nearly no negative cell.

    Output: for each measured set of columns that is no part of another, its table (rows)
    Bound:  a table is the sum of its interactions, and interactions of different columns are
            orthogonal. So each interaction is the mean of the measured tables that have it,
            weighted by the precision with which they do: the margin of a table of deviation σ has
            deviation σ·√(cells that are added up). Interactions that noise may have made are moved
            to those of independent columns. Then negative cells are moved to 0, for equal parts of
            the others, and the interactions are averaged again by these precisions, some times
    Source: Mullins, Fuentes, Xiao, Kifer, Musco, Sheldon 2024, arXiv:2410.01091 (GReM), for
            marginals from residuals
    """
    tables = [(one.part, one.values, one.deviation**-2) for one in measured]
    whole, precision = _combined(tables, sizes)
    total = max(float(whole[()]), 1.0)
    whole = _held_back(whole, precision, sizes, total)
    parts = [part for part in whole if part]
    result = {part: _assembled(part, whole, sizes) for part in parts}
    for _ in range(_MENDED):
        if all(values.min() >= 0 for values in result.values()):
            break
        moved = [
            (part, _simplex(values, total), precision[part]) for part, values in result.items()
        ]
        mended, _ = _combined(moved, sizes)
        result = {part: _assembled(part, mended, sizes) for part in parts}
    return {part: _mixed(_simplex(result[part], total), total) for part in largest(parts)}


def fitted(sizes: Sequence[int], measured: Sequence[MeasuredTable], sweeps: int) -> Fit:
    """The model that has the agreed tables, as nearly as it can.

    Input:  numbers of keys; noisy tables; the largest number of sweeps
    Output: iterative proportional fitting on the beliefs of a junction tree. A sweep walks along
            the edges of the tree. At each clique its tables are scaled to their targets, and what
            it shares is passed on. Where the targets can be met, this converges to the distribution
            of largest entropy
    Source: Deming, Stephan 1940, doi:10.1214/aoms/1177731829; Koller, Friedman 2009, section 20.7;
            McKenna, Sheldon, Miklau 2019, arXiv:1901.09136, for graphical models of noisy marginals
    """
    targets = agreed(measured, sizes)
    rows = max(float(next(iter(targets.values())).sum()), 1.0)
    tree = junction_tree(targets, sizes)
    scaling = _Scaling(tree, tuple(sizes), targets, rows)
    for _ in range(sweeps):
        if scaling.sweep() <= _CLOSE * rows:
            break
    scaling.settle()
    return Fit(
        Beliefs(tree, tuple(sizes), tuple(table / table.sum() for table in scaling.tables)), rows
    )


class _Scaling:
    """The tables of the cliques while they are scaled, and what each clique
    and its parent last agreed on.
    """

    def __init__(
        self,
        tree: JunctionTree,
        sizes: tuple[int, ...],
        targets: Mapping[Attributes, Floats],
        rows: float,
    ) -> None:
        self._tree, self._targets, self._rows = tree, targets, rows
        self.tables = [
            np.full([sizes[i] for i in clique], 1.0 / cells_of(clique, sizes))
            for clique in tree.cliques
        ]
        self._between = [
            summed(table, clique, separator)
            for table, clique, separator in zip(
                self.tables, tree.cliques, tree.separators, strict=True
            )
        ]
        homes = {part: tree.home(part, sizes) for part in targets}
        self._here = [
            [part for part, home in homes.items() if home == i] for i in range(len(tree.cliques))
        ]

    def sweep(self) -> float:
        """A walk through the tree and back to its roots.
        How far off the farthest table was (rows, in L1).

        Before a clique is scaled, it has heard of every scaling before it, since a walk along the
        edges tells each step to the next clique. If cliques were scaled beside one another, shared
        columns would be corrected twice.
        """
        return max(self._visit(i) for i, parent in enumerate(self._tree.parents) if parent < 0)

    def settle(self) -> None:
        """Tell every clique what the roots know."""
        for i, parent in enumerate(self._tree.parents):
            if parent >= 0:
                self._send(parent, i, i)

    def _visit(self, i: int) -> float:
        off = self._scale(i)
        for child in (k for k, parent in enumerate(self._tree.parents) if parent == i):
            self._send(i, child, child)
            off = max(off, self._visit(child))
            self._send(child, i, child)
        return off

    def _scale(self, i: int) -> float:
        """Scale the table of a clique to each of its targets.
        How far off the farthest was (rows, in L1).
        """
        off, clique = 0.0, self._tree.cliques[i]
        for part in self._here[i]:
            now = self._rows * summed(self.tables[i], clique, part)
            self.tables[i] *= expanded(
                (self._targets[part] + _SMOOTH) / (now + _SMOOTH), part, clique
            )
            off = max(off, float(np.abs(self._targets[part] - now).sum()))
        return off

    def _send(self, one: int, other: int, edge: int) -> None:
        """Give a neighbour what a clique now has of the columns that both have."""
        separator, old = self._tree.separators[edge], self._between[edge]
        new = summed(self.tables[one], self._tree.cliques[one], separator)
        ratio = np.divide(new, old, out=np.zeros_like(new), where=old > _LEAST)
        self.tables[other] *= expanded(ratio, separator, self._tree.cliques[other])
        self._between[edge] = new


def _subsets(part: Attributes) -> list[Attributes]:
    return [small for size in range(len(part) + 1) for small in combinations(part, size)]


def _combined(
    tables: Sequence[tuple[Attributes, Floats, float]], sizes: Sequence[int]
) -> tuple[dict[Attributes, Floats], dict[Attributes, float]]:
    """Each interaction of columns that some table has:
    the mean of the tables' interactions, weighted by precision.

    Input:  sets of columns with their tables and the precision of a cell
    Output: the interactions, and the precision of a cell of each
    """
    sums: dict[Attributes, Floats] = {}
    weights: dict[Attributes, float] = {}
    for part, values, precision in tables:
        for small in _subsets(part):
            weight = precision * cells_of(small, sizes) / cells_of(part, sizes)
            sums[small] = sums.get(small, 0.0) + weight * _centred(summed(values, part, small))
            weights[small] = weights.get(small, 0.0) + weight
    return {part: np.asarray(values / weights[part]) for part, values in sums.items()}, weights


def _held_back(
    whole: Mapping[Attributes, Floats],
    precision: Mapping[Attributes, float],
    sizes: Sequence[int],
    total: float,
) -> dict[Attributes, Floats]:
    """Interactions of several columns, moved towards those of independent columns.

    Bound:  noise alone makes a squared distance of d/w from them, for d free cells of precision w.
            Of a squared distance s, the part 1 - d/(w·s) is kept, and none below 0. So a table that
            noise has made leaves the columns independent, and a clear one hardly moves
    Source: Efron, Morris 1973, doi:10.1080/01621459.1973.10481350, the positive part of
            James and Stein's rule, here with d in place of d - 2
    """
    single = {
        part: _simplex(_assembled(part, whole, sizes), total) / total
        for part in whole
        if len(part) == 1
    }
    result = dict(whole)
    for part in (part for part in whole if len(part) > 1):
        even = np.array(total)
        for i in part:
            even = np.multiply.outer(even, single[(i,)])
        even = _centred(even)
        away = whole[part] - even
        free = math.prod(sizes[i] - 1 for i in part)
        kept = 1 - free / max(precision[part] * float((away**2).sum()), float(free), _LEAST)
        result[part] = even + kept * away
    return result


def _centred(values: Floats) -> Floats:
    """The interaction of all columns of a table: what is left of
    it without means along any axis.
    """
    for axis in range(values.ndim):
        values = values - values.mean(axis=axis, keepdims=True)
    return values


def _assembled(
    part: Attributes, interactions: Mapping[Attributes, Floats], sizes: Sequence[int]
) -> Floats:
    """A table from the interactions of its columns:
    each spread evenly over the cells that it is a sum of.
    """
    values = np.zeros([sizes[i] for i in part])
    for small in _subsets(part):
        values += expanded(interactions[small], small, part) * (
            cells_of(small, sizes) / cells_of(part, sizes)
        )
    return values


def _simplex(values: Floats, total: float) -> Floats:
    """The nearest table without negative cells that adds up to a total.

    Source: Duchi, Shalev-Shwartz, Singer, Chandra 2008, doi:10.1145/1390156.1390191
    """
    largest = np.sort(values, axis=None)[::-1]
    over = (np.cumsum(largest) - total) / np.arange(1, largest.size + 1)
    last = int(np.nonzero(largest >= over)[0][-1])
    return np.asarray(np.maximum(values - over[last], 0.0))


def _mixed(values: Floats, total: float) -> Floats:
    """The table, of which a small part is replaced by the table of its
    margins if columns were independent.
    """
    product = np.array(total)
    for axis in range(values.ndim):
        away = tuple(other for other in range(values.ndim) if other != axis)
        product = np.multiply.outer(product, values.sum(axis=away) / total)
    return np.asarray((1 - _EVEN) * values + _EVEN * product)
