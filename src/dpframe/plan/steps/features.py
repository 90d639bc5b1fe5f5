"""One row for each unit: features computed from its rows, such as totals,
extremes, first and last values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import narwhals as nw

from dpframe.errors import InvalidArgument, UnsupportedOperation, WrongType
from dpframe.plan import nodes
from dpframe.plan.columns import Auto, Bounds, ColumnDomain, Limits, Table
from dpframe.plan.nodes import Call, Name, Node
from dpframe.plan.operations import at_least, clip_domain
from dpframe.plan.statistics import (
    Aggregate,
    Aggregates,
    Count,
    CountDistinct,
    Mean,
    Quantile,
    ReleasedColumn,
    Sum,
)
from dpframe.plan.steps.basic import Step
from dpframe.plan.types import TIMES, Kind, cast_first, cast_to, kind, mean_type, show
from dpframe.plan.unit_limits import UnitLimits

_NUMBERS = ("integer", "float", "decimal", "boolean")
_ORDERED = ("integer", "float", "decimal", "date", "datetime", "duration")


@dataclass(frozen=True, repr=False)
class Pick(Aggregate):
    """The value of a column in a unit's first or last row by another column."""

    column: str = ""
    by: str = ""
    last: bool = False

    @property
    def typed(self) -> str:
        return f"{'last' if self.last else 'first'}({self.column!r}, by={self.by!r})"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        raise UnsupportedOperation(
            f"{self.typed}: that row is one person's. Take it for each unit, "
            f"per_unit({name}=dp.{self.typed}), and then ask for a statistic over the units."
        )


@dataclass(frozen=True)
class Feature:
    """One value for each unit: how it is computed from the unit's rows, and its domain.

    `made` is "rows", "values", "distinct", "sum", "mean", "min", "max", "first" or "last". `value`
    is the expression of a row that the feature reads, and `known` is the domain of that expression.
    `by` is the column by which "first" and "last" order rows. Sums and means are clipped to the
    bounds in `domain`. A mean of times has `ticks` ticks of its type for each tick of the values.
    """

    made: str
    value: Node | None
    known: ColumnDomain | None
    by: str | None
    domain: ColumnDomain
    ticks: int = 1

    @property
    def averages(self) -> bool:
        """Whether it is a mean."""
        return self.made == "mean"

    @property
    def reads(self) -> frozenset[str]:
        """The columns that the feature reads."""
        read = frozenset() if self.value is None else nodes.names(self.value)
        return read if self.by is None else read | {self.by}


def _mean(value: Node, row_domain: ColumnDomain) -> Feature:
    dtype, ticks = mean_type(row_domain.dtype)
    inside = row_domain.bounds
    if inside is not None:
        inside = Bounds(*(float(x) if dtype is None else x * ticks for x in inside))
    domain = ColumnDomain(dtype or nw.Float64(), row_domain.nullable, inside)
    return Feature("mean", value, row_domain, None, domain, ticks)


def feature(name: str, aggregate: Aggregate, table: Table) -> Feature:
    """The feature of an aggregate: how it is computed from one unit's rows, and its domain.

    A unit has at least one row, so a count of rows and a sum are never missing. Other features are
    missing only if all values that they read are missing. Bounds of values hold for their mean and
    their extremes; a sum has those of unit_bounds. Errors: InvalidArgument, UnknownColumn,
    WrongType, UnsupportedOperation
    """
    call = f"per_unit({name}={aggregate.typed})"
    if aggregate.limits.typed:
        raise InvalidArgument(
            f"{call}: {aggregate.limits.typed} limits a unit in a question; leave it out here."
        )
    if aggregate.share != 1:
        raise InvalidArgument(
            f"{call}: share= splits a price, and nothing is paid here; leave it out."
        )
    match aggregate:
        case Count(column=None):
            return Feature(
                "rows", None, None, None, ColumnDomain(nw.Int64(), False, possible=at_least(1))
            )
        case Count(column=str(column)) | CountDistinct(column=column):
            verb = "distinct" if isinstance(aggregate, CountDistinct) else "values"
            domain = ColumnDomain(nw.Int64(), False, possible=at_least(0))
            return Feature(verb, Name(column), _row_domain(column, table, call), None, domain)
        case Sum(column=column, bounds=bounds, unit_bounds=unit_bounds):
            return _sum(column, bounds, unit_bounds, table, call)
        case Mean(column=column, bounds=bounds):
            return _mean(*_clip(column, bounds, table, call, *_NUMBERS, *TIMES))
        case Quantile(column=column, bounds=bounds, verb="min" | "max" as verb):
            value, row_domain = _clip(column, bounds, table, call, *_ORDERED, Kind.BOOLEAN)
            if kind(row_domain.dtype) == Kind.BOOLEAN:  # whether it ever held, or always: 1 or 0
                value = Call("cast", (value,), (("dtype", nw.Int64()),))
                row_domain = ColumnDomain(
                    nw.Int64(), row_domain.nullable, Bounds(0, 1), clipped=row_domain.clipped
                )
            domain = replace(row_domain, dtype=_engine_type(row_domain), keys=None)
            return Feature(verb, value, row_domain, None, domain)
        case Pick(column=column, by=by, last=last):
            row_domain, order = _row_domain(column, table, call), _row_domain(by, table, call)
            if kind(order.dtype) not in (*_ORDERED, Kind.STRING) or order.dtype == nw.Enum:
                raise WrongType(
                    f"{call}: by= is a number, a time or a text, not of type {show(order.dtype)}."
                )
            domain = replace(
                row_domain,
                dtype=_engine_type(row_domain),
                nullable=row_domain.nullable or order.nullable,
            )
            return Feature("last" if last else "first", Name(column), row_domain, by, domain)
    raise UnsupportedOperation(
        f"{call}: of one unit's rows there are count, n_unique, sum, mean, min, max, first and "
        "last. Ask for the rest over the units, after per_unit."
    )


def _row_domain(column: str, table: Table, call: str) -> ColumnDomain:
    domain = table.column(column, call).domain
    if domain.kind == Kind.OTHER:
        raise WrongType(f"{call}: a column of type {show(domain.dtype)} cannot be read.")
    return domain


def _engine_type(domain: ColumnDomain) -> Any:
    """The type in which a value is held from here on: a decimal is a float inside the engine."""
    return nw.Float64() if domain.kind.real else domain.dtype


def _clip(
    column: str, bounds: Bounds | Auto | None, table: Table, call: str, *kinds: str
) -> tuple[Node, ColumnDomain]:
    """A column's value clipped to the typed bounds, and the domain of the result."""
    domain = _row_domain(column, table, call)
    if domain.kind not in kinds:
        raise WrongType(
            f"{call}: needs {' or '.join(kinds)}, not a column of type {show(domain.dtype)}."
            f"{cast_first(domain.dtype, column) or cast_to(domain.dtype, *kinds)}"
        )
    if isinstance(bounds, Auto):
        raise UnsupportedOperation(
            f"{call}: dp.Auto() cannot choose bounds of a feature; type them, such as bounds=(0, "
            "100)."
        )
    if bounds is None:
        return Name(column), domain
    if domain.kind == Kind.BOOLEAN:
        raise WrongType(f"{call}: true and false need no bounds; leave bounds= out.")
    options: Mapping[str, Any] = {"lower": bounds.lower, "upper": bounds.upper}
    return Call("clip", (Name(column),), tuple(options.items())), clip_domain(call, domain, *bounds)


def _sum(
    column: str, bounds: Bounds | Auto | None, unit_bounds: Bounds | None, table: Table, call: str
) -> Feature:
    """A sum.
    Of integers and durations it is an integer, clipped to 64 bits; of floats it is a float.
    """
    value, row_domain = _clip(column, bounds, table, call, *_NUMBERS, "duration")
    family = kind(row_domain.dtype)
    whole = family in (Kind.INTEGER, Kind.BOOLEAN)
    dtype = nw.Int64() if whole else row_domain.dtype if family == Kind.DURATION else nw.Float64()
    domain = ColumnDomain(dtype, False)
    if unit_bounds is not None:
        domain = clip_domain(call, domain, *unit_bounds)
    return Feature("sum", value, row_domain, None, domain)


def small(domain: ColumnDomain) -> bool:
    """Whether integers are so small that the sum of 2^31 of them fits in 64 bits."""
    if domain.bounds is not None and domain.bounds.magnitude <= 2**31:
        return True
    return domain.dtype in (nw.Boolean, nw.Int8, nw.Int16, nw.Int32, nw.UInt8, nw.UInt16)


@dataclass(frozen=True, eq=False)
class PerUnit(Step):
    """One row for each unit that has a row, made of that unit's rows alone.

    Neighbours: tables that differ in the rows of one unit
    Changes:    that unit's one row
    Bound:  at most one row of a unit. Under "replace", exactly one row takes the place of one row,
                if no earlier step could remove a unit's last row: neighbours then have equal
                numbers of units
    Why:  rows with one identifier are one unit. A feature reads no row of another unit. It does not
                depend on the order of rows: sums are exact, and ties are broken by value
    Source:     the definition of user-level neighbours
    """

    effect = "per_unit"

    before: Step
    features: Aggregates

    @cached_property
    def made(self) -> dict[str, Feature]:
        """Each feature, resolved."""
        return {
            name: feature(name, aggregate, self.before.table) for name, aggregate in self.features
        }

    @cached_property
    def table(self) -> Table:
        table = self.before.table
        if not table.unit:
            raise UnsupportedOperation(
                "per_unit: with dp.Rows(k) nobody can tell which rows are one person's. Protect "
                "the table with unit='...' to take one row for each."
            )
        units = {name: column for name, column in table.columns.items() if column.is_unit}
        for name in self.made:
            if name in units:
                raise InvalidArgument(
                    f"per_unit({name}=...): {name!r} says whose row it is; choose another name."
                )
        table = replace(
            table, columns=units, single=True, limits=table.limits.and_also(Limits(max_rows=1))
        )
        origins = {name: f"per_unit({name}={aggregate.typed})" for name, aggregate in self.features}
        picked = {name: pick.column for name, pick in self.features if isinstance(pick, Pick)}
        before = self.before.table.columns
        clips = {
            name: clip for name, aggregate in self.features if (clip := self._clip(name, aggregate))
        }
        return table.with_versions(
            (
                name,
                replace(
                    f.domain,
                    origin=origins[name] if f.domain.bounds else f.domain.origin,
                    clipped=clips.get(name, "" if f.known is None else f.known.clipped),
                ),
            )
            for name, f in self.made.items()
        ).with_defaults({name: before[column].defaults for name, column in picked.items()})

    def _clip(self, name: str, aggregate: Aggregate) -> str:
        """The rule that clips a feature: a policy file that limits rows, or
        typed bounds; empty without one.
        """
        locked = [lock.file for lock in self.before.table.locks if lock.limits.max_rows]
        if locked and isinstance(aggregate, (Count, CountDistinct, Sum)):
            return locked[0]
        bounds = getattr(aggregate, "bounds", None) or getattr(aggregate, "unit_bounds", None)
        return f"per_unit({name}={aggregate.typed})" if bounds is not None else ""

    @property
    def typed(self) -> str:
        typed = (f"{name}={aggregate.typed}" for name, aggregate in self.features)
        return f"per_unit({', '.join(typed)})"
