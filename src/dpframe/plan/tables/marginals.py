"""Many marginals of many columns as one question:
the tables to release, and the interactions that are paid for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from dpframe.errors import UnboundedContribution, UnsupportedOperation
from dpframe.fields import FieldDict, Fields, Names
from dpframe.plan.allotments import Allotment
from dpframe.plan.columns import Limits
from dpframe.plan.grid import FRACTION_BITS, UNIT_GRID
from dpframe.plan.keys import Keys
from dpframe.plan.layout import Layout
from dpframe.plan.question import Question
from dpframe.plan.scalars import Scalar, counted
from dpframe.plan.statistics import Count, Formula, ReleasedColumn
from dpframe.plan.totals import Total, TotalKind
from dpframe.plan.unit_limits import unit_in_quotes
from dpframe.theory.formulas.error import Attributes, interaction, shares
from dpframe.theory.formulas.sensitivity import Relation, Sensitivity

COUNT = "count"  # the released column


def titled(columns: Sequence[str]) -> str:
    """The name of a marginal: "a × b", or "total"."""
    return " × ".join(columns) or "total"


@dataclass(frozen=True)
class Tables:
    """The tables of a question: their columns, keys and totals, without any row.
    A release may keep this.

    `levels` are the listed keys of each column; `total` is what a cell counts.
    """

    by: Names
    levels: tuple[tuple[Scalar | None, ...], ...]
    workload: tuple[Attributes, ...]
    total: Total

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of keys of each column."""
        return tuple(map(len, self.levels))

    def names(self, part: Attributes) -> Names:
        """The columns of a set."""
        return tuple(self.by[i] for i in part)

    @property
    def named(self) -> tuple[Names, ...]:
        """The columns of each table."""
        return tuple(map(self.names, self.workload))

    def part(self, names: Sequence[str]) -> Attributes:
        """The places of columns."""
        return tuple(map(self.by.index, names))

    def output(self, table: Attributes) -> ReleasedColumn:
        """The released numbers of a marginal: rows, with fractions."""
        return ReleasedColumn(
            COUNT,
            Formula.COUNT,
            ((COUNT, replace(self.total, among=self.names(table))),),
            whole=False,
        )

    def layout(self, table: Attributes) -> Layout:
        """The layout of a marginal: the last column across, with margins."""
        return (
            Layout("crosstab", self.names(table)[-1:], margins=True) if len(table) > 1 else Layout()
        )


@dataclass(frozen=True, eq=False)
class Marginals(Question):
    """Rows by each of several sets of columns, the `workload`, as sums of one
    table that has all columns in `by`.

    A row counts if its key is listed in every column. At most `max_rows` rows of one unit count,
    for all tables together; a unit with more rows has a smaller weight on each. The totals are the
    interactions of `theory.formulas.error.marginals`, on a grid of 2^-20 rows. That module also
    splits the price over them.
    """

    workload: tuple[Attributes, ...] = ()  # places in `by`

    @property
    def tables_in_words(self) -> str:
        """The released marginals, and the split of the price over their interactions, in words."""
        whole, by_size = sum(allotment.share for allotment in self.allotments), dict[int, float]()
        for allotment in self.allotments:
            ways = len(allotment.total.among)
            by_size[ways] = by_size.get(ways, 0.0) + float(allotment.share / whole)
        nouns = {0: "the total", 1: "single columns", 2: "pairs"}
        parts = ", ".join(
            f"{share:.2%} {nouns.get(ways, f'sets of {ways}')}" for ways, share in by_size.items()
        )
        return (
            f"Keys are public: {counted(len(self.workload), 'table')} with all listed keys, "
            "whatever the data holds. A row counts if it has a listed key in every column. "
            "Interactions of columns are measured once each, with Gaussian noise, and the tables "
            "are computed from them. ρ is split so that the sum of the cells' variances is the "
            f"smallest: {parts}."
        )

    @property
    def tables_asked(self) -> Fields:
        """The part of a question's description that is about its tables; no data."""
        return {"workload": [list(names) for names in self.tables.named]}

    @property
    def limits_groups(self) -> bool:
        """A unit may have rows in every group."""
        return False

    @cached_property
    def tables(self) -> Tables:
        """The tables that are released, without any row."""
        assert self.keys is not None
        rows = (self.limits.max_rows or 1) * (
            1 if self.table.relation == Relation.ADD_REMOVE else 2
        )
        bound = Sensitivity.of(l0=rows, l1=rows, l2_squared=rows**2, linf=rows).scaled(
            2**FRACTION_BITS
        )
        return Tables(
            self.by,
            self.keys.levels,
            self.workload,
            Total(TotalKind.ROWS, None, UNIT_GRID, FRACTION_BITS, bound),
        )

    def limits_on(self, total: Total) -> FieldDict:
        """The limit on rows, and how many keys the columns of an interaction have."""
        sizes = [self.tables.sizes[i] for i in self.tables.part(total.among)]
        return {
            "limits": {"rows": self.limits.max_rows},
            "levels": sizes,
            "cells": math.prod(sizes),
        }

    @cached_property
    def limits(self) -> Limits:
        """The limit on rows. A unit may have rows in every group."""
        return Limits(super().limits.max_rows, self.cells)

    @property
    def read(self) -> tuple[Allotment, ...]:
        """The one total that rows are read for: the weights of rows by all columns.
        Every marginal is a sum of it.
        """
        bits = FRACTION_BITS if self.table.unit else 0
        return (Allotment((COUNT,), replace(self.tables.total, fraction=bits), Fraction(1)),)

    @cached_property
    def allotments(self) -> tuple[Allotment, ...]:
        """The interactions, each with its part of the price:
        see `theory.formulas.error.marginals.shares`.
        """
        _ = self.group_columns
        if self.auto is not None:
            raise UnsupportedOperation(
                "marginals: dp.Auto() cannot choose the limit; type it, such as max_rows=1."
            )
        rows = self.limits.max_rows
        if rows is None:
            raise UnboundedContribution(
                f"marginals of {', '.join(map(repr, self.by))}: one {unit_in_quotes(self.table)} "
                "may have any number of rows, so no finite noise hides it. Say how many: "
                "marginals([...], max_rows=1)."
            )
        sizes = self.tables.sizes
        return tuple(
            Allotment(
                (titled(among),),
                _interaction(among, interaction(keys, rows, self.table.relation)),
                share,
            )
            for part, share in shares(self.workload, sizes, self.table.relation).items()
            for among, keys in [(self.tables.names(part), [sizes[i] for i in part])]
        )

    @cached_property
    def outputs(self) -> tuple[ReleasedColumn, ...]:
        """One for each table of the workload."""
        pairs = [
            (titled(self.tables.names(table)), self.tables.output(table).totals)
            for table in self.workload
        ]
        return tuple(
            ReleasedColumn(title, Formula.COUNT, ((f"{title}.{COUNT}", m),), whole=False)
            for title, ((_, m),) in pairs
        )

    def one(self, table: Attributes) -> Question:
        """One marginal as a question of its own: its keys, and how it is laid out."""
        assert self.keys is not None
        keys = Keys(tuple(self.keys.levels[i] for i in table)) if table else None
        aggregates, layout = ((COUNT, Count()),), self.tables.layout(table)
        return Question(
            self.step,
            self.tables.names(table),
            keys,
            self.given,
            aggregates,
            layout,
            verb=self.verb,
        )


def _interaction(among: Names, bound: Sensitivity) -> Total:
    fine = bound.scaled(2**FRACTION_BITS)
    return Total(TotalKind.INTERACTION, None, UNIT_GRID, FRACTION_BITS, fine, among=among)
