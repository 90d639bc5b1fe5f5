"""A tree of groups as one question: every level is released, and only the leaves are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from dpframe.arrays import Integers
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.fields import FieldDict, Fields, Names
from dpframe.plan.allotments import Allotment
from dpframe.plan.grid import FRACTION_BITS
from dpframe.plan.keys import Key, Keys
from dpframe.plan.question import Question
from dpframe.plan.scalars import Scalar
from dpframe.plan.statistics import Formula, ReleasedColumn
from dpframe.plan.totals import Total, check_squares
from dpframe.theory.formulas.hierarchies import normal_shares, pure_shares
from dpframe.theory.formulas.sensitivity import Sensitivity, node_limits, row_counts, row_sums
from dpframe.theory.formulas.trees import Levels

_TOTAL = "total"  # the name of the level above all columns


@dataclass(frozen=True, eq=False)
class Tree:
    """The tree of a question, without any row. A release may keep this.

    `columns` are the columns of the levels, from the top; `crossed` those that every level is
    crossed with, which have `cells` combinations of keys. `shape` has one level more, the root; its
    leaves are in the order of release.
    """

    columns: Names
    crossed: Names
    cells: int
    shape: Levels

    @property
    def names(self) -> Names:
        """The names of the levels, from the root: "total", then the columns."""
        root = _TOTAL
        while root in (*self.columns, *self.crossed):
            root += "_"
        return (root, *self.columns)

    def by(self, level: int) -> Names:
        """The key columns of a level's table."""
        return self.columns[:level] + self.crossed

    @cached_property
    def first_leaves(self) -> tuple[Integers, ...]:
        """For each level the place of the first leaf of each node."""
        places = [np.arange(self.shape.leaves)]
        for first in reversed(self.shape.first):
            places.append(places[-1][first])
        return tuple(places[::-1])


@dataclass(frozen=True, eq=False)
class Hierarchy(Question):
    """Rows or sums by the leaves of a public tree, and by every level above them.

    `by` are the columns of the tree and those that it is crossed with; `keys` are the leaves, each
    with every crossed key. Rows are read by leaf, under the limits of one unit; upper levels are
    sums of leaves. Each level is measured with noise of its own: see `theory.formulas.hierarchies`.
    `typed_shares` are the parts of the price by level, from the root, if they were typed.
    """

    tree: Tree | None = None
    typed_shares: tuple[Fraction, ...] | None = None

    @property
    def tables_in_words(self) -> str:
        """The levels of a hierarchy, and how the price is split over them."""
        tree = self.levels
        nodes = ", ".join(
            f"{size:,} {name}" for size, name in zip(tree.shape.sizes, tree.names, strict=True)
        )
        by = f", each by {' and '.join(tree.crossed)} ({tree.cells} cells)" if tree.crossed else ""
        normal, pure = (
            [float(share / sum(shares)) for share in shares]
            for shares in (
                [allotment.share for allotment in self.allotments],
                [allotment.epsilon_share for allotment in self.allotments],
            )
        )
        of_rho, of_epsilon = (
            ", ".join(f"{share:.2%} {name}" for share, name in zip(shares, tree.names, strict=True))
            for shares in (normal, pure)
        )
        return (
            f"Keys are public: a tree with {nodes}{by}, whatever the data holds. A row counts if "
            "its leaf is listed. Every level is measured with noise of its own, and all levels "
            "are fitted to each other by least squares, so that they add up. Shares of ρ, for "
            f"Gaussian noise: {of_rho}. Shares of ε, for Laplace noise: {of_epsilon}."
        )

    @property
    def tables_asked(self) -> Fields:
        """The part of a question's description that is about its tables; no data."""
        return {"levels": list(self.levels.columns), "shares": self.typed_shares}

    @property
    def takes_auto(self) -> bool:
        """Limits of a tree are typed."""
        return False

    @cached_property
    def shape(self) -> None:
        """No margins of a crosstab are measured."""
        return

    @property
    def levels(self) -> Tree:
        """The tree."""
        assert self.tree is not None
        return self.tree

    @cached_property
    def leaf(self) -> ReleasedColumn:
        """The column of the leaves, as it would be by itself. Errors: those of the aggregate."""
        _ = self.group_columns
        if self.undecided:
            raise UnsupportedOperation(
                "hierarchy: dp.Auto() cannot choose limits or bounds here; type them."
            )
        ((name, aggregate),) = self.aggregates
        if name in self.by:
            raise InvalidArgument(
                f"hierarchy: the result would have two columns {name!r}; rename({{{name!r}: "
                f"'{name}_key'}}) before."
            )
        column = aggregate.output(name, replace(self.unit_limits, what=aggregate.typed))
        if column.dtype is not None:
            raise UnsupportedOperation(
                f"hierarchy: {name!r} is a column of times; a hierarchy has counts and sums."
            )
        check_squares((total for _, total in column.totals), f"hierarchy: {aggregate.typed}")
        return column

    @property
    def read(self) -> tuple[Allotment, ...]:
        """The one total that rows are read for: that of the leaves."""
        ((name, total),) = self.leaf.totals
        return (Allotment((name,), total, Fraction(1)),)

    @cached_property
    def bounds(self) -> tuple[Sensitivity, ...]:
        """The distance by which one unit moves the totals of each level, from the root
        (units of the totals' integer).

        Bound:  a unit's rows are limited in the leaves, and `node_limits` says what follows for a
                level above; the rest is the bound of a count or sum by group
        """
        total = self.leaf.total
        limits, relation, bounds = self.unit_limits.contribution, self.table.relation, []
        shape = self.levels.shape
        for nodes, leaves in zip(shape.sizes, shape.most_leaves, strict=True):
            level, cells = node_limits(limits, leaves), nodes * self.levels.cells
            if total.counts_rows:
                bound = row_counts(level, relation, cells)
            else:
                bound = row_sums(level, total.grid.lower, total.grid.upper, relation, cells)
            bounds.append(bound.scaled(2**self.bits))
        return tuple(bounds)

    def limits_on(self, total: Total) -> FieldDict:
        """The limits at a level, and how many leaves one of its
        nodes has, from which they follow.
        """
        shape = self.levels.shape
        level, limits = (
            len(total.among) - 1 - len(self.levels.crossed),
            self.unit_limits.contribution,
        )
        leaves, cells = shape.most_leaves[level], shape.sizes[level] * self.levels.cells
        return {"limits": node_limits(limits, leaves).to_json(), "cells": cells, "leaves": leaves}

    @property
    def bits(self) -> int:
        """Number of bits of the noisy totals below the grid step:
        always 20 for counts, so that rounding is small.
        """
        total = self.leaf.total
        return FRACTION_BITS if total.counts_rows else total.fraction

    @cached_property
    def allotments(self) -> tuple[Allotment, ...]:
        """The levels from the root, each with its part of the price."""
        shares = self._shares
        return tuple(
            Allotment((name,), total, normal, pure)
            for name, total, (normal, pure) in zip(
                self.levels.names, self._totals, shares, strict=True
            )
        )

    @cached_property
    def _totals(self) -> tuple[Total, ...]:
        """The totals of the levels, from the root."""
        total = self.leaf.total
        return tuple(
            replace(
                total, fraction=self.bits, sensitivity=bound, among=("", *self.levels.by(level))
            )
            for level, bound in enumerate(self.bounds)
        )

    @cached_property
    def _shares(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """The parts of each level: of ρ or μ², and of ε for Laplace noise."""
        if self.typed_shares is not None:
            return tuple(zip(self.typed_shares, self.typed_shares, strict=True))
        if not all(bound.l0 for bound in self.bounds):
            return ((Fraction(1), Fraction(1)),) * len(self.bounds)
        shape = self.levels.shape
        normal = normal_shares(shape, [bound.l2_squared for bound in self.bounds])
        return tuple(
            zip(normal, pure_shares(shape, [bound.exact_l1 for bound in self.bounds]), strict=True)
        )

    @cached_property
    def outputs(self) -> tuple[ReleasedColumn, ...]:
        """One for each level, under the level's name."""
        formula = Formula.COUNT if self.leaf.total.counts_rows else Formula.SUM
        return tuple(
            ReleasedColumn(name, formula, ((name, total),), whole=False)
            for name, total in zip(self.levels.names, self._totals, strict=True)
        )


def tree_of(
    leaves: Sequence[Key], columns: Sequence[str], crossed: Mapping[str, Sequence[Scalar | None]]
) -> tuple[Tree, Keys]:
    """The tree of listed leaves, and the keys of its cells in the order of release.

    Input:  leaves: different tuples with a value for each column, from the top; crossed: the keys
            of each column that every level is crossed with
    Output: nodes are in the order in which they are first listed, under their parents; the keys of
            the last crossed column change fastest
    """
    parents, paths = np.zeros(len(leaves), np.int64), []
    for values in zip(*leaves, strict=True):
        places: dict[object, int] = {}
        codes = np.array([places.setdefault(value, len(places)) for value in values], np.int64)
        _, index, inverse = np.unique(
            parents * len(places) + codes, return_index=True, return_inverse=True
        )
        ranks = np.empty(len(index), np.int64)
        ranks[np.argsort(index)] = np.arange(len(index))
        parents = ranks[inverse]
        paths.append(parents)
    order = np.lexsort(paths[::-1])
    starts = [np.zeros(1, np.int64)]
    for path in paths:
        ordered = path[order]
        starts.append(np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])))
    first = tuple(np.searchsorted(below, above) for above, below in pairwise(starts))
    cells = Keys(tuple(tuple(level) for level in crossed.values())) if crossed else None
    tree = Tree(
        tuple(columns), tuple(crossed), cells.size if cells else 1, Levels(first, len(leaves))
    )
    rows = [leaves[place] for place in order.tolist()]
    if cells is not None:
        rows = [(*row, *cell) for row in rows for cell in list(cells)]
    return tree, Keys.of_rows(rows)
