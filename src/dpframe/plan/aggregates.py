"""What can be asked of a group: which noisy totals each aggregate needs, and how its column follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dpframe.errors import MissingBounds, UnboundedContribution, WrongType
from dpframe.plan.columns import Bounds, Column, Table
from dpframe.plan.grid import FRACTION_BITS, UNIT_GRID, Grid, grid_for
from dpframe.plan.types import kind, show
from dpframe.theory.maps import sensitivity as maps
from dpframe.theory.maps.sensitivity import Contribution, Sensitivity

__all__ = ["Aggregate", "Count", "CountUnits", "Mean", "Measure", "Output", "Scope", "Sum", "units_measure"]

Total = Literal["rows", "values", "units", "sum", "unit_sum"]


@dataclass(frozen=True)
class Scope:
    """Where an aggregate is asked: the table, the groups, and what one unit may have in them.

    `contribution` has no more groups than the table; a limit that was not given is None in `known`.
    """

    table: Table
    grouped_by: tuple[str, ...]
    cells: int | None
    max_groups: int | None
    max_rows_per_group: int | None
    max_rows: int | None
    asked: str

    def contribution(self, what: str) -> Contribution:
        """The limits on rows, or an error that names the one to type."""
        groups = self.groups(what)
        if self.max_rows is None and self.max_rows_per_group is None:
            unit = _unit_words(self.table)
            where = f" by {_listed(self.grouped_by)}" if self.grouped_by else ""
            line = "max_rows_per_group=2" if self.grouped_by else "max_rows=20"
            raise UnboundedContribution(
                f"{what}{where}: one {unit} may have any number of rows{' in a group' if self.grouped_by else ''}, so "
                f"no finite noise hides it. Say how many: {self.asked.replace('{limit}', line)}."
            )
        rows = self.max_rows if self.max_rows is not None else groups * (self.max_rows_per_group or 0)
        per_group = self.max_rows_per_group if self.max_rows_per_group is not None else rows
        return Contribution(groups, per_group, rows)

    def groups(self, what: str) -> int:
        """The limit on groups, or an error that names it."""
        if self.max_groups is None:
            raise UnboundedContribution(
                f"{what} by {_listed(self.grouped_by)}: one {_unit_words(self.table)} may appear in any number of "
                f"groups, so no finite noise hides it. Say how many: {self.asked.replace('{limit}', 'max_groups=3')}."
            )
        return self.max_groups

    @property
    def weighted(self) -> bool:
        """Whether rows are weighted, so that totals carry fraction bits (an identifier column enforces the limits)."""
        return bool(self.table.unit)

    @property
    def one_row_each(self) -> bool:
        """Whether neighbours exchange one row for one row of an ungrouped table."""
        return self.table.relation == "replace" and self.table.exactly_one and not self.grouped_by


def _unit_words(table: Table) -> str:
    names = [name for name, column in table.columns.items() if column.is_unit]
    return _listed(names) if names else "unit"


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


@dataclass(frozen=True)
class Measure:
    """One integer total per group, the only thing that noise is ever added to.

    `total` says how it is made, of which `column` on which `grid`; it carries `fraction` bits below the grid step.
    `sensitivity` is in units of that integer; `unit` is what one of it is worth (column unit).
    """

    total: Total
    column: Column | None
    grid: Grid
    fraction: int
    sensitivity: Sensitivity

    @property
    def key(self) -> tuple[object, ...]:
        """Two measures with the same key are the same total, and are paid for once."""
        return (self.total, self.column.id if self.column else None, self.grid)

    @property
    def unit(self) -> Fraction:
        """What one unit of the integer total is worth (column unit)."""
        return self.grid.step / Fraction(2**self.fraction)


@dataclass(frozen=True)
class Output:
    """A released column: the measures it is made of, named, and how.

    "count": the total, rounded to an integer. "sum": the total. "mean": centre + sum / count, kept inside `bounds`.
    """

    name: str
    formula: Literal["count", "sum", "mean"]
    measures: tuple[tuple[str, Measure], ...]
    whole: bool = True
    bounds: Bounds | None = None


@dataclass(frozen=True)
class Aggregate:
    """Something to ask of each group; `share` is its weight when the price is split."""

    share: Fraction = Fraction(1)

    @property
    def typed(self) -> str:
        """As the user typed it."""
        raise NotImplementedError

    def output(self, name: str, scope: Scope) -> Output:
        """The released column, or a typed error when it cannot be private as asked."""
        raise NotImplementedError


def _row_total(scope: Scope, what: str) -> Measure:
    """Rows per group: integers, with fraction bits only where the three limits together force a weight."""
    if scope.one_row_each:
        return Measure("rows", None, UNIT_GRID, 0, maps.one_row_sum(1, 1))
    limits = scope.contribution(what)
    scaled = scope.weighted and limits.rows < limits.groups * limits.rows_per_group
    fraction = FRACTION_BITS if scaled else 0
    bound = maps.row_counts(limits, scope.table.relation, scope.cells)
    return Measure("rows", None, UNIT_GRID, fraction, bound.scaled(2**fraction))


def _value_total(column: Column, scope: Scope, what: str) -> Measure:
    """Values that are not missing, per group; the rows themselves when no value can be missing."""
    if not column.facts.nullable:
        return _row_total(scope, what)
    fraction = FRACTION_BITS if scope.weighted else 0
    bound = maps.row_counts(scope.contribution(what), scope.table.relation, scope.cells)
    return Measure("values", column, UNIT_GRID, fraction, bound.scaled(2**fraction))


def units_measure(scope: Scope, what: str) -> Measure:
    """Units per group; with `dp.Rows(k)` the rows stand for them."""
    if not scope.table.unit:
        return _row_total(scope, what)
    return Measure("units", None, UNIT_GRID, 0, maps.unit_counts(scope.groups(what), scope.table.relation, scope.cells))


def _numeric(name: str, scope: Scope, what: str) -> Column:
    column = scope.table.column(name, what)
    if kind(column.facts.dtype) not in ("integer", "float", "decimal", "boolean"):
        raise WrongType(f"{what}: needs numbers or true and false, not a column of type {show(column.facts.dtype)}.")
    return column


def _bounds(column: Column, given: Bounds | None, name: str, what: str) -> Bounds:
    known = column.facts.bounds
    if given is None and known is None:
        raise MissingBounds(
            f"{what}: one value of {name!r} could be any number, so no finite noise hides it. Say the range: "
            f"clip({name!r}, 0, 100) before it, or bounds=(0, 100) in it, with limits you know without the data."
        )
    if given is None or known is None:
        return given or known  # type: ignore[return-value]
    return Bounds(given.clamp(known.lower), given.clamp(known.upper))


def _sum_total(column: Column, bounds: Bounds, scope: Scope, what: str, *, centred: bool) -> Measure:
    whole = kind(column.facts.dtype) in ("integer", "boolean")
    if scope.one_row_each and not column.facts.nullable:
        grid = grid_for(bounds, whole=whole, centred=centred, limit=1)
        return Measure("sum", column, grid, 0, maps.one_row_sum(grid.lower, grid.upper))
    limits = scope.contribution(what)
    grid = grid_for(bounds, whole=whole, centred=centred, limit=limits.rows_per_group)
    fraction = FRACTION_BITS if scope.weighted else 0
    bound = maps.row_sums(limits, grid.lower, grid.upper, scope.table.relation, scope.cells)
    return Measure("sum", column, grid, fraction, bound.scaled(2**fraction))


@dataclass(frozen=True)
class Count(Aggregate):
    """Rows, or the values of a column that are not missing."""

    column: str | None = None

    @property
    def typed(self) -> str:
        return "count()" if self.column is None else f"count({self.column!r})"

    def output(self, name: str, scope: Scope) -> Output:
        if self.column is None:
            return Output(name, "count", ((name, _row_total(scope, self.typed)),))
        column = scope.table.column(self.column, self.typed)
        if kind(column.facts.dtype) == "other":
            raise WrongType(f"{self.typed}: a column of type {show(column.facts.dtype)} cannot be read.")
        return Output(name, "count", ((name, _value_total(column, scope, self.typed)),))


@dataclass(frozen=True)
class CountUnits(Aggregate):
    """Distinct units."""

    @property
    def typed(self) -> str:
        return "count_units()"

    def output(self, name: str, scope: Scope) -> Output:
        return Output(name, "count", ((name, units_measure(scope, self.typed)),))


@dataclass(frozen=True)
class Sum(Aggregate):
    """Sum of a column: rows clipped to `bounds`, or each unit's total per group clipped to `unit_bounds`."""

    column: str = ""
    bounds: Bounds | None = None
    unit_bounds: Bounds | None = None

    @property
    def typed(self) -> str:
        limit = f", bounds={tuple(self.bounds)}" if self.bounds else ""
        limit += f", unit_bounds={tuple(self.unit_bounds)}" if self.unit_bounds else ""
        return f"sum({self.column!r}{limit})"

    def output(self, name: str, scope: Scope) -> Output:
        column = _numeric(self.column, scope, self.typed)
        whole = kind(column.facts.dtype) in ("integer", "boolean")
        if self.unit_bounds is None:
            bounds = _bounds(column, self.bounds, self.column, self.typed)
            measure = _sum_total(column, bounds, scope, self.typed, centred=False)
        else:
            if not scope.table.unit:
                raise UnboundedContribution(
                    f"{self.typed}: unit_bounds clips each unit's total, and dp.Rows(k) does not say whose rows are "
                    "whose. Use bounds=, or protect the table with unit='...'."
                )
            grid = grid_for(self.unit_bounds, whole=whole, centred=False, limit=1)
            groups = scope.groups(self.typed)
            bound = maps.unit_sums(groups, grid.lower, grid.upper, scope.table.relation, scope.cells)
            measure = Measure("unit_sum", column, grid, 0, bound)
        return Output(name, "sum", ((name, measure),), whole=whole and measure.grid.step == 1)


@dataclass(frozen=True)
class Mean(Aggregate):
    """Mean of the values that are not missing: a sum measured from the middle of the bounds, and a count."""

    column: str = ""
    bounds: Bounds | None = None

    @property
    def typed(self) -> str:
        return f"mean({self.column!r}{f', bounds={tuple(self.bounds)}' if self.bounds else ''})"

    def output(self, name: str, scope: Scope) -> Output:
        column = _numeric(self.column, scope, self.typed)
        bounds = _bounds(column, self.bounds, self.column, self.typed)
        total = _sum_total(column, bounds, scope, self.typed, centred=True)
        count = _value_total(column, scope, self.typed)
        return Output(name, "mean", ((f"{name}.sum", total), (f"{name}.count", count)), False, bounds)
