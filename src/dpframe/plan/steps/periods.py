"""The rows of units that have had rows in few earlier periods: how `unit_periods` of a series is enforced."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from narwhals.dtypes import DType

from dpframe.errors import UnsupportedOperation
from dpframe.plan.columns import Table
from dpframe.plan.steps.basic import Step
from dpframe.plan.steps.combine import same_units


@dataclass(frozen=True, eq=False)
class FirstPeriods(Step):
    """The rows of a period, of the units that have rows in fewer than `most` of the periods that were added before it.

    Input:      before: the rows of the period; earlier: the rows of the periods that were added before it, a plan for
                each, or one plan for all of them with `each`, the column whose different values are the periods; most;
                listed: key columns with their listed keys: a row with another key uses up no period
    Neighbours: histories that differ in all rows of one unit, in whatever periods
    Changes:    the rows of that unit in the first `most` periods in which it has rows, in the order in which periods
                were added, and no other row
    Bound:      over all periods of a series a unit keeps its rows in at most `most` of them, whatever the rows are
    Why:        whether a row stays depends on the rows of its own unit and on the order of periods, which is public.
                The k-th period in which a unit has rows has k - 1 such periods before it, so exactly those with
                k <= `most` stay. They are the same at each reading, as long as the rows of a period do not change
                after it was added
    Source:     the definition of user-level neighbours
    """

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
        pairs = [same_units(self.before, step, "series.add") for step in self.earlier]
        return tuple(next((t for t in types if t is not None), None) for types in zip(*pairs, strict=True))

    @cached_property
    def table(self) -> Table:
        if not self.before.table.unit:
            raise UnsupportedOperation(
                "series.add: enforce=True needs a column that identifies units, and dp.Rows(k) has none. Protect the "
                "table with unit='...'."
            )
        _ = self.units
        return replace(self.before.table, everyone=False)

    @property
    def typed(self) -> str:
        return f"first_periods({self.most})"
