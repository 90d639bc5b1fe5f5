"""Steps that make rows of several rows or of several tables, and what one unit has after them.

Each keeps the rule of `plan.steps` in its own way: every row put out belongs to one unit, and is made of that unit's
rows and of what is public, of nothing else. So one unit that joins, leaves or changes its rows changes only its own
rows of the result, however many these are, and the limits enforced at the ask bound what they can do there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan.aggregates import Aggregate
from dpframe.plan.columns import Limits, Table
from dpframe.plan.features import Feature, feature
from dpframe.plan.steps import Step

__all__ = ["PerUnit"]


@dataclass(frozen=True, eq=False)
class PerUnit(Step):
    """One row for each unit that has a row, made of that unit's rows alone.

    Neighbours: tables that differ in the rows of one unit
    Changes:    that unit's one row
    Bound:      at most one row of a unit. Under "replace", exactly one row takes the place of one row, as long as no
                step before could take a unit's last row away
    Why:        a group of rows with one identifier is one unit; a feature does not read the rows of another, nor their
                order: sums are exact, ties are broken by value
    Source:     the definition of user-level neighbours
    """

    before: Step
    features: tuple[tuple[str, Aggregate], ...]

    @cached_property
    def made(self) -> dict[str, Feature]:
        """Each feature, resolved."""
        return {name: feature(name, aggregate, self.before.table) for name, aggregate in self.features}

    @cached_property
    def table(self) -> Table:
        table = self.before.table
        if not table.unit:
            raise UnsupportedOperation(
                "per_unit: with dp.Rows(k) nobody can tell which rows are one person's. Protect the table with "
                "unit='...' to take one row for each."
            )
        kept = {name: column for name, column in table.columns.items() if column.is_unit}
        for name in self.made:
            if name in kept:
                raise InvalidArgument(f"per_unit({name}=...): {name!r} says whose row it is; choose another name.")
        table = replace(table, columns=kept, single=True, limits=table.limits.and_also(Limits(max_rows=1)))
        origins = {name: f"per_unit({name}={aggregate.typed})" for name, aggregate in self.features}
        return table.with_versions(
            (name, replace(f.facts, origin=origins[name] if f.facts.bounds else f.facts.origin))
            for name, f in self.made.items()
        )

    @property
    def typed(self) -> str:
        return f"per_unit({', '.join(f'{name}={aggregate.typed}' for name, aggregate in self.features)})"
