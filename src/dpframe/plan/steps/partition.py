"""Parts of a table: rows with one key, rows of units with few earlier periods,
and each period of a unit apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, UnsupportedOperation, WrongType
from dpframe.plan.columns import Table
from dpframe.plan.expressions import col
from dpframe.plan.scalars import Scalar
from dpframe.plan.steps.basic import Filter, Step
from dpframe.plan.steps.combine import common_units
from dpframe.plan.types import Kind, show
from dpframe.theory.formulas.sensitivity import Relation


@dataclass(frozen=True, eq=False)
class PartitionPart(Step):
    """The rows whose column has one of the listed keys, of at most `max_groups` keys for each unit.

    Rows only leave. Which keys a unit keeps depends on its own rows, the list of keys and the salt.
    None of these changes, and the keys are chosen here, before any later step. So all parts
    together never hold more than `max_groups` of a unit's keys, whatever steps follow.
    """

    effect = "filter"

    before: Step
    name: str
    key: Scalar
    keys: tuple[Scalar, ...]
    max_groups: int
    salt: str = field(repr=False)
    # of engines that keep them, for all parts
    hashes: dict[str, Any] = field(repr=False, default_factory=dict)

    @cached_property
    def table(self) -> Table:
        """Domain and contribution after this step."""
        table = self.before.table
        if table.relation == Relation.REPLACE:
            raise UnsupportedOperation(
                "partition: under neighbors='replace' a unit may leave one part and appear in "
                "another, so parts do not compose in parallel. Protect the table with "
                "neighbors='add-remove'."
            )
        column = table.column(self.name, "partition")
        if column.kind not in (Kind.INTEGER, Kind.STRING, Kind.BOOLEAN, Kind.DATE):
            raise WrongType(
                f"partition({self.name!r}): a column of type {show(column.domain.dtype)} cannot "
                "make parts."
            )
        if {c.id for c in table.unit} == {column.id}:
            raise UnsupportedOperation(
                "partition: each part would be one unit. Choose a column that people share."
            )
        if table.declared is not None and self.max_groups < min(table.declared, len(self.keys)):
            raise InvalidArgument(
                f"partition: one person has up to {table.declared} rows, which may be in as many "
                "parts, and without an identifier none can be left out: "
                f"max_groups={min(table.declared, len(self.keys))}."
            )
        return Filter(self.before, col(self.name) == self.key).table

    @property
    def typed(self) -> str:
        """The line as the user typed it."""
        return f"partition({self.name!r}, max_groups={self.max_groups})[{self.key!r}]"


# Periods of a series


@dataclass(frozen=True, eq=False)
class FirstPeriods(Step):
    """The rows of a period, of the units that have rows in fewer than `most` of the
    periods that were added before it.

    Input:  before: the rows of the period; earlier: the rows of the periods that were added before
                it, a plan for each, or one plan for all of them with `each`, the column whose
                different values are the periods; most; listed: key columns with their listed keys:
                a row with another key uses up no period
    Neighbours: histories that differ in all rows of one unit, in whatever periods
    Changes:  the rows of that unit in the first `most` periods in which it has rows, in the order
                in which periods were added, and no other row
    Bound:  over all periods of a series a unit keeps its rows in at most `most` of them, whatever
            the rows are
    Why:  whether a row stays depends on the rows of its own unit and on the order of periods, which
                is public. The k-th period in which a unit has rows has k - 1 such periods before
                it, so exactly those with k <= `most` stay. They are the same at each reading, as
                long as the rows of a period do not change after it was added
    Source:     the definition of user-level neighbours
    """

    effect = "filter"

    before: Step
    earlier: tuple[Step, ...]
    most: int
    each: str = ""
    listed: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    @property
    def others(self) -> tuple[Step, ...]:
        return self.earlier

    def with_others(self, others: list[Step]) -> Step:
        return replace(self, earlier=tuple(others))

    @cached_property
    def units(self) -> tuple[DType | None, ...]:
        """The types in which identifiers are compared; None if they need no conversion."""
        return common_units(self.before, self.earlier, "series.add")

    @cached_property
    def table(self) -> Table:
        if not self.before.table.unit:
            raise UnsupportedOperation(
                "series.add: enforce=True needs a column that identifies units, and dp.Rows(k) "
                "has none. Protect the table with unit='...'."
            )
        _ = self.units
        return replace(self.before.table, everyone=False)

    @property
    def typed(self) -> str:
        return f"first_periods({self.most})"


@dataclass(frozen=True, eq=False)
class ApartByPeriod(Step):
    """The same rows, of which those of one unit in different periods
    count as those of different units.

    Input:  before: the rows of several periods; name: the column with the period of a row, which is
            in no identifier
    Bound:  a question by period whose units are these pairs enforces, for each period, what a
            question about the rows of that period alone enforces. So its totals are those of one
            question for each period
    Why:  each limit is enforced on the rows of one unit, and each pair has the rows of its unit in
          one period
    """

    before: Step
    name: str

    @cached_property
    def table(self) -> Table:
        table = self.before.table
        return replace(table, unit=(*table.unit, table.column(self.name, "series.add")))

    @property
    def typed(self) -> str:
        return f"apart_by({self.name!r})"
