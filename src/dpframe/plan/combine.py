"""Steps that make rows of several rows or of several tables, and what one unit has after them.

Each keeps the rule of `plan.steps` in its own way: every row put out belongs to one unit, and is made of that unit's
rows and of what is public, of nothing else. So one unit that joins, leaves or changes its rows changes only its own
rows of the result, however many these are, and the limits enforced at the ask bound what they can do there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, UnknownColumn, UnsupportedOperation, WrongType
from dpframe.plan.aggregates import Aggregate
from dpframe.plan.columns import Facts, Limits, Table
from dpframe.plan.features import Feature, feature
from dpframe.plan.steps import MOST, Bound, Step, lineage
from dpframe.plan.types import kind, show

__all__ = ["How", "Join", "PerUnit", "key_types"]

How = Literal["inner", "left"]


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


def key_types(left: Sequence[Facts], right: Sequence[Facts], on: Sequence[str], asked: str) -> tuple[DType, ...]:
    """The types in which the columns of a join are compared, or a typed error.

    Whole numbers meet as Int64 and numbers as Float64, so that a column of pandas that became float for a null still
    finds its key; -0.0 is 0.0. Times meet when their types are the same.
    """
    types: list[DType] = []
    for first, second, name in zip(left, right, on, strict=True):
        kinds = {kind(first.dtype), kind(second.dtype)}
        if kinds == {"integer"}:
            types.append(nw.Int64())
        elif kinds <= {"integer", "float", "decimal"}:
            types.append(nw.Float64())
        elif kinds == {"string"}:
            types.append(nw.String())
        elif len(kinds) == 1 and "other" not in kinds and first.dtype == second.dtype:
            types.append(first.dtype)
        else:
            raise WrongType(
                f"{asked}: {name!r} is of type {show(first.dtype)} here and {show(second.dtype)} there; cast one of "
                "them so that they can be equal."
            )
    return tuple(types)


def _unique(on: Sequence[str], asked: str) -> None:
    if not on or len(set(on)) != len(on):
        raise InvalidArgument(f"{asked}: on= names at least one column, and none twice.")


def _limits(step: Step, *, single: bool) -> Limits:
    """The limits that were said before a step; of a table with one row per unit, that as well."""
    limits = Limits()
    for earlier in lineage(step):
        limits = limits.and_also(earlier.limits) if isinstance(earlier, Bound) else limits
    return limits.and_also(Limits(max_rows=1)) if single else limits


@dataclass(frozen=True, eq=False)
class Join(Step):
    """Each row with the rows of a public table that have its key; by "left" also the rows that have none there.

    Neighbours: tables that differ in the rows of one unit; the public table is the same, or there would be nothing
                public about it
    Changes:    what comes of that unit's rows: at most `most` rows of each, the largest number of public rows that one
                key has (at least 1)
    Bound:      with an identifier, the limits, enforced on the rows that come out; with `dp.Rows(k)`, k · most rows
    Why:        a row put out is one row of the protected table and public values, so it belongs to that row's unit. A
                missing key equals nothing
    Source:     McSherry 2009, "Privacy integrated queries", section 3.6, for joins whose fan-out is bounded
    """

    before: Step
    public: Any = field(repr=False)  # a table of the engine, whose schema and rows are public
    on: tuple[str, ...]
    how: How
    most: int
    content: str  # tells two public tables apart

    @property
    def asked(self) -> str:
        """How errors call it."""
        return f"join(on={list(self.on)!r})"

    @cached_property
    def brought(self) -> dict[str, Facts]:
        """The columns of the public table that are joined to the rows. A left row may find no value for them."""
        known = {name: facts for name, facts in self.public.schema if name not in self.on}
        return {name: replace(facts, nullable=True) for name, facts in known.items()}

    @cached_property
    def keys(self) -> tuple[DType, ...]:
        """The types in which keys are compared."""
        table, there = self.before.table, dict(self.public.schema)
        _unique(self.on, self.asked)
        for name in self.on:
            if name not in there:
                raise UnknownColumn(
                    f"{self.asked}: the public table has no column {name!r}. Columns: {', '.join(there)}."
                )
        here = [table.column(name, self.asked).facts for name in self.on]
        return key_types(here, [there[name] for name in self.on], self.on, self.asked)

    @cached_property
    def table(self) -> Table:
        _ = self.keys
        table = self.before.table
        if both := [name for name in self.brought if name in table.columns]:
            raise InvalidArgument(
                f"{self.asked}: both tables have a column {both[0]!r}; rename or drop it in one of them first."
            )
        single = table.single and self.most <= 1
        limits = table.limits if self.most <= 1 else _limits(self.before, single=single)
        declared = table.declared and table.declared * max(self.most, 1)
        if declared is not None and declared > MOST:
            raise UnsupportedOperation(
                f"{self.asked}: one key has {self.most} public rows, and one person would have too many to bound."
            )
        everyone = table.everyone and self.how == "left"
        table = replace(table, single=single, everyone=everyone, limits=limits, declared=declared)
        return table.with_versions(self.brought.items())

    @property
    def typed(self) -> str:
        on = repr(self.on[0]) if len(self.on) == 1 else repr(list(self.on))
        return f"join(public table, on={on}, how={self.how!r})"
