"""Limits on one unit's rows and groups, as an aggregate meets them;
or the error that names a missing limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpframe.errors import UnboundedContribution
from dpframe.plan.columns import Table
from dpframe.plan.grid import FRACTION_BITS
from dpframe.theory.formulas.sensitivity import Contribution


@dataclass(frozen=True)
class UnitLimits:
    """The table, its groups, and the limits on one unit's rows and groups, for one aggregate.

    A limit that was not typed, and follows from nothing else, is None.
    """

    table: Table
    grouped_by: tuple[str, ...]
    cells: int | None
    max_groups: int | None
    max_rows_per_group: int | None
    max_rows: int | None
    verb: str
    what: str  # the aggregate, for messages
    # one unit has at most one row in a group, so a count of rows is a count of units
    one_each: bool = False
    choosable: bool = True  # dp.Auto() may choose limits here
    ci: float | None = None  # the confidence of quantiles' intervals, which are paid for

    @property
    def contribution(self) -> Contribution:
        """The limits on rows. Errors: UnboundedContribution, which names the limit to type."""
        groups = self.groups
        if self.max_rows is None and self.max_rows_per_group is None:
            unit = unit_in_quotes(self.table)
            where = f" by {_in_quotes(self.grouped_by)}" if self.grouped_by else ""
            line = (
                f"max_groups={groups}, max_rows_per_group=2" if self.grouped_by else "max_rows=20"
            )
            raise UnboundedContribution(
                f"{self.what}{where}: one {unit} may have any number of "
                f"rows{' in a group' if self.grouped_by else ''}, so no finite noise hides it. "
                f"{self._advice(line)}"
            )
        rows = (
            self.max_rows if self.max_rows is not None else groups * (self.max_rows_per_group or 0)
        )
        per_group = self.max_rows_per_group if self.max_rows_per_group is not None else rows
        return Contribution(groups, per_group, rows)

    @property
    def groups(self) -> int:
        """The limit on groups. Errors: UnboundedContribution, which names the limit to type."""
        if self.max_groups is None:
            limits = f"max_groups=3, max_rows_per_group={self.max_rows_per_group or 2}"
            raise UnboundedContribution(
                f"{self.what} by {_in_quotes(self.grouped_by)}: one {unit_in_quotes(self.table)} "
                "may appear in any number of groups, so no finite noise hides it. "
                f"{self._advice(limits)}"
            )
        return self.max_groups

    def _advice(self, limits: str) -> str:
        one = "; max_rows=1 if each has one row" if limits.startswith("max_rows") else ""
        choice = (
            "; or have it chosen privately inside the release: limits=dp.Auto()"
            if self.choosable
            else ""
        )
        once = f"; or once for all questions: dp.protect(..., {limits})"
        return (
            "Say how many: "
            f"{self.verb.replace('{limit}', limits)}{one}{once}{choice}.{self.table.undeclared}"
        )

    @property
    def weighted(self) -> bool:
        """Whether an identifier column enforces the limits:
        rows then have weights, and totals carry fraction bits.
        """
        return bool(self.table.unit)

    @property
    def fraction(self) -> int:
        """The bits below the grid step that totals of weighted rows carry."""
        return FRACTION_BITS if self.weighted else 0

    @property
    def one_row_each(self) -> bool:
        """Whether neighbours exchange one row for one row of an ungrouped table."""
        return self.table.exactly_one and not self.grouped_by


def unit_in_quotes(table: Table) -> str:
    """The columns that identify a unit, or the word."""
    names = [name for name, column in table.columns.items() if column.is_unit]
    return _in_quotes(names) if names else "unit"


def _in_quotes(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
