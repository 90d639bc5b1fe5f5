"""Many marginals of many columns as one question: the tables to release, and the interactions that are paid for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from dpframe.errors import UnboundedContribution, UnsupportedOperation
from dpframe.plan.aggregates import Count
from dpframe.plan.ask import Ask, Layout, Paid
from dpframe.plan.columns import Limits
from dpframe.plan.grid import FRACTION_BITS, UNIT_GRID
from dpframe.plan.keys import Keys
from dpframe.plan.measures import Measure, Output
from dpframe.theory.maps.marginals import Part, interaction, shares
from dpframe.theory.maps.sensitivity import Sensitivity

__all__ = ["COUNT", "Marginals", "titled"]

COUNT = "count"  # the released column


def titled(columns: Sequence[str]) -> str:
    """The name of a marginal: "a × b", or "total"."""
    return " × ".join(columns) or "total"


@dataclass(frozen=True, eq=False)
class Marginals(Ask):
    """Rows by each of several sets of columns, the `workload`, as sums of one table that has all columns in `by`.

    A row counts when its key is listed in every column. Of one unit at most `max_rows` rows count, once for all
    tables: more are weighted down together. The measures are the interactions of `theory.maps.marginals`, on a grid of
    2^-20 rows; a price is split over them as there.
    """

    workload: tuple[Part, ...] = ()  # places in `by`

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many keys each column has."""
        assert self.keys is not None
        return tuple(map(len, self.keys.levels))

    @cached_property
    def limits(self) -> Limits:
        """The limit on rows; a unit may have some in every group."""
        return Limits(super().limits.max_rows, self.cells)

    @property
    def read(self) -> tuple[Paid, ...]:
        """The one total that rows are read for: the weights of rows by all columns, of which marginals are sums."""
        (_, rows), bits = self.output(()).measures[0], FRACTION_BITS if self.table.unit else 0
        return (Paid((COUNT,), replace(rows, fraction=bits), Fraction(1)),)

    @cached_property
    def paid(self) -> tuple[Paid, ...]:
        """The interactions, each with its part of the price; see `theory.maps.marginals.shares`."""
        _ = self.group_columns
        if self.auto is not None:
            raise UnsupportedOperation("marginals: the limit is said, max_rows=1, not chosen by dp.Auto().")
        rows = self.limits.max_rows
        if rows is None:
            unit = ", ".join(f"'{name}'" for name, column in self.table.columns.items() if column.is_unit)
            raise UnboundedContribution(
                f"marginals of {', '.join(map(repr, self.by))}: one {unit or 'unit'} may have any number of rows, so "
                "no finite noise hides it. Say how many: marginals([...], max_rows=1)."
            )
        return tuple(
            Paid((titled(among),), self._measure(among, interaction(sizes, rows, self.table.relation)), share)
            for part, share in shares(self.workload, self.sizes, self.table.relation).items()
            for among, sizes in [(self.names(part), [self.sizes[i] for i in part])]
        )

    @cached_property
    def outputs(self) -> tuple[Output, ...]:
        """One for each table of the workload."""
        titles = [(titled(self.names(table)), self.output(table).measures) for table in self.workload]
        return tuple(Output(title, "count", ((f"{title}.{COUNT}", m),), whole=False) for title, ((_, m),) in titles)

    def output(self, table: Part) -> Output:
        """The released numbers of a marginal: rows, with fractions."""
        rows = (self.limits.max_rows or 1) * (1 if self.table.relation == "add-remove" else 2)
        bound = Sensitivity.of(l0=rows, l1=rows, l2_squared=rows**2, linf=rows)
        measure = replace(self._measure(self.names(table), bound), total="rows")
        return Output(COUNT, "count", ((COUNT, measure),), whole=False)

    def _measure(self, among: tuple[str, ...], bound: Sensitivity) -> Measure:
        fine = bound.scaled(2**FRACTION_BITS)
        return Measure("interaction", None, UNIT_GRID, FRACTION_BITS, fine, among=among)

    def names(self, part: Part) -> tuple[str, ...]:
        """The columns of a set."""
        return tuple(self.by[i] for i in part)

    def one(self, table: Part) -> Ask:
        """One marginal as a question of its own: its keys, and how it is laid out, with its last column across."""
        names = self.names(table)
        assert self.keys is not None
        keys = Keys(tuple(self.keys.levels[i] for i in table)) if table else None
        layout = Layout("crosstab", names[-1:], margins=True) if len(names) > 1 else Layout()
        return Ask(self.step, names, keys, self.given, ((COUNT, Count()),), layout, verb=self.verb)
