"""The noisy totals of a question: how each is added up, and how far one unit moves it."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Literal

from dpframe.errors import InvalidArgument, InvalidBounds, MissingBounds, WrongType
from dpframe.plan.columns import Auto, Bounds, Column
from dpframe.plan.grid import FRACTION_BITS, UNIT_GRID, Candidates, ValueGrid, grid_for
from dpframe.plan.types import TIMES, Kind, Scalar, cast_first, kind, show, ticks
from dpframe.plan.unit_limits import UnitLimits
from dpframe.theory.formulas.sensitivity import Sensitivity
from dpframe.theory.formulas.sensitivity import grouped as maps

__all__ = [
    "Factor",
    "Total",
    "TotalKind",
    "bounds_of",
    "computed_total",
    "cube_total",
    "distinct_total",
    "in_ticks",
    "is_whole",
    "log_total",
    "mode_total",
    "number_column",
    "rank_total",
    "row_total",
    "square_total",
    "sum_total",
    "unit_sum_total",
    "units_total",
    "value_total",
]


class TotalKind(StrEnum):
    """How a total is added up: see `Total`."""

    ROWS = "rows"
    VALUES = "values"
    UNITS = "units"
    SUM = "sum"
    SQUARE = "square"
    CUBE = "cube"
    PRODUCT = "product"
    LOG = "log"
    UNIT_SUM = "unit_sum"
    DISTINCT = "distinct"
    RANKS = "ranks"
    MODES = "modes"
    INTERACTION = "interaction"

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True)
class ComputedTerm:
    """What is computed of a row's value before it is added up, in words: a formula of `column` and `about`; a noun."""

    formula: str
    noun: str


_COMPUTED = {
    TotalKind.SQUARE: ComputedTerm("({column} - {about})²", "squares"),
    TotalKind.CUBE: ComputedTerm("({column} - {about})³", "cubes"),
    TotalKind.PRODUCT: ComputedTerm("{column}", "products"),
    TotalKind.LOG: ComputedTerm("log({column})", "logarithms"),
}


@dataclass(frozen=True)
class Factor:
    """One factor of a product: a column's value, clipped to `bounds` and measured from `about` (column unit)."""

    column: Column
    bounds: Bounds
    about: Fraction


@dataclass(frozen=True)
class Total:
    """One number for each group: an integer that noise is added to, or scores by which a candidate is chosen.

    `kind` says how it is made, of which `column` on which `grid`; it carries `fraction` bits below the grid step.
    `sensitivity` is in units of that integer; `unit` is what one of it is worth (column unit; its square for "square",
    which adds (value - about)² instead of the value; its cube for "cube"; 1 for "log",
    which adds the natural logarithm; for "product" that of its `factors`, multiplied). Only rows in which the `present`
    columns have values are added up. "distinct" is the number of different values; "ranks" chooses the
    candidate that has a `rank` part of the rows below it, and its sensitivity is that of the rows per group; with `ci`
    also how far from it the quantile may be, at that confidence. "modes" chooses the most frequent of the listed
    `values`, or the first of them, in as many `rounds`.
    """

    kind: TotalKind
    column: Column | None
    grid: ValueGrid
    fraction: int
    sensitivity: Sensitivity
    about: Fraction = Fraction(0)
    candidates: Candidates | None = None
    rank: Fraction | None = None
    ci: float | None = None
    values: tuple[Scalar | None, ...] = ()
    rounds: int = 1
    merged: Literal["", "rows", "columns", "total"] = ""  # the margin of a crosstab whose cells it adds up
    collects: bool = False  # it adds up the suppressed groups
    finds: bool = False  # it decides which groups are released, and is not released itself
    among: tuple[str, ...] = ()  # the columns of the interaction, in a release of many marginals
    factors: tuple[Factor, ...] = ()  # what a product is of
    present: tuple[Column, ...] = ()  # other columns whose value must not be missing in a row that is added up

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns whose values are read for it."""
        own = () if self.column is None else (self.column,)
        return (*own, *(factor.column for factor in self.factors), *self.present)

    @property
    def counts_rows(self) -> bool:
        """Whether it is a number of rows, or of values that are not missing."""
        return self.kind in (TotalKind.ROWS, TotalKind.VALUES)

    @property
    def additive(self) -> bool:
        """Whether it is a sum over units. One pass over the rows adds up all of these totals."""
        return self.kind not in (TotalKind.DISTINCT, TotalKind.RANKS, TotalKind.MODES)

    @property
    def of_units(self) -> bool:
        """Whether each unit brings one number to a group, however many rows it has there."""
        return self.kind in (TotalKind.UNITS, TotalKind.UNIT_SUM)

    @property
    def of_different_values(self) -> bool:
        """Whether it is a number of different values."""
        return self.kind == TotalKind.DISTINCT

    @property
    def sums_rows(self) -> bool:
        """Whether the integers of a unit's rows in a group are added up: all additive totals but plain counts."""
        return self.additive and self.kind not in (TotalKind.ROWS, TotalKind.UNITS, TotalKind.INTERACTION)

    @property
    def weighs_rows(self) -> bool:
        """Whether the limits on rows weigh each row, so that it needs the weight of a unit's rows in a group."""
        return not self.of_units and not self.of_different_values

    @property
    def computed(self) -> ComputedTerm | None:
        """What is computed of a row's value before it is added up; None where the value itself is added."""
        return _COMPUTED.get(self.kind)

    @property
    def chosen(self) -> bool:
        """Whether it is a choice among candidates, and not a number that noise is added to."""
        return self.kind in (TotalKind.RANKS, TotalKind.MODES)

    @property
    def choices(self) -> int:
        """How many choices are made in each group, one after the other, for equal parts of the price."""
        return self.rounds if self.ci is None else 2

    @property
    def between(self) -> bool:
        """Whether it is a quantile strictly between the minimum and the maximum. Only these can have an interval."""
        return self.rank is not None and 0 < self.rank < 1

    def surely(self, alpha: float) -> bool:
        """Whether the release paid for an interval that misses with at most this probability."""
        return self.ci is not None and alpha >= (1 - self.ci) * (1 - 1e-9)  # 1 - 0.95 is above 0.05

    @property
    def width(self) -> int | None:
        """How many candidates there are to choose from; None for a number."""
        return self.candidates.count if self.candidates is not None else len(self.values) or None

    @property
    def key(self) -> tuple[object, ...]:
        """Two totals with the same key are the same total, and are paid for once."""
        column = self.column.id if self.column else None
        others = tuple((factor.column.id, factor.bounds, factor.about) for factor in self.factors)
        part = (self.merged, self.collects, self.finds, self.among, others, frozenset(c.id for c in self.present))
        return (self.kind, column, self.grid, self.about, self.choice, part)

    @property
    def choice(self) -> tuple[object, ...]:
        """The candidates, and which of them is chosen; empty for a number."""
        return (self.candidates, self.rank, self.ci, self.values, self.rounds)

    @property
    def unit(self) -> Fraction:
        """The value of one unit of the integer (column unit)."""
        return self.grid.step / Fraction(2**self.fraction)


def row_total(unit_limits: UnitLimits, what: str) -> Total:
    """Rows per group. It is an integer; it has fraction bits only if the three limits can force weights."""
    if unit_limits.one_row_each:
        return Total(TotalKind.ROWS, None, UNIT_GRID, 0, maps.one_row_sum(1, 1))
    limits = unit_limits.contribution(what)
    fractional = unit_limits.weighted and limits.rows < limits.groups * limits.rows_per_group
    fraction = FRACTION_BITS if fractional else 0
    bound = maps.row_counts(limits, unit_limits.table.relation, unit_limits.cells)
    return Total(TotalKind.ROWS, None, UNIT_GRID, fraction, bound.scaled(2**fraction))


def value_total(column: Column, unit_limits: UnitLimits, what: str, present: tuple[Column, ...] = ()) -> Total:
    """Values that are not missing, per group, in rows where the `present` ones are not missing either.

    If no value can be missing, these are the rows.
    """
    column, *others = [c for c in (column, *present) if c.domain.nullable] or [column]
    if not column.domain.nullable:
        return row_total(unit_limits, what)
    fraction = FRACTION_BITS if unit_limits.weighted else 0
    bound = maps.row_counts(unit_limits.contribution(what), unit_limits.table.relation, unit_limits.cells)
    return Total(TotalKind.VALUES, column, UNIT_GRID, fraction, bound.scaled(2**fraction), present=tuple(others))


def units_total(unit_limits: UnitLimits, what: str) -> Total:
    """Units per group. It counts rows if one unit has at most one row in each group, and with `dp.Rows(k)`."""
    if not unit_limits.table.unit or unit_limits.one_row_each or unit_limits.one_each:
        return row_total(unit_limits, what)
    return Total(
        TotalKind.UNITS,
        None,
        UNIT_GRID,
        0,
        maps.unit_counts(unit_limits.groups(what), unit_limits.table.relation, unit_limits.cells),
    )


def number_column(name: str, unit_limits: UnitLimits, what: str, *times: str, other: str = "") -> Column:
    """A column of numbers, or of the kinds of times that are allowed. Times are whole numbers of ticks.

    Input:  name; the limits of one unit; what: the aggregate, for messages; times: the kinds of times that are allowed;
            other: the aggregate that takes other times
    Errors: UnknownColumn, WrongType
    """
    column = unit_limits.table.column(name, what)
    family = kind(column.domain.dtype)
    if family not in (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, Kind.BOOLEAN, *times):
        dtype, besides = show(column.domain.dtype), "".join(f", {time}s" for time in times)
        instead = f" Ask for {other}({name!r})." if other and family in TIMES else cast_first(column.domain.dtype, name)
        if family == Kind.STRING:
            instead += (
                f" The share of rows with one text is the mean of a condition: with_columns(yes=dp.col({name!r}) == "
                "'yes'), then mean('yes')."
            )
        raise WrongType(f"{what}: needs numbers{besides} or true and false, not a column of type {dtype}.{instead}")
    return column


def is_whole(column: Column) -> bool:
    """Whether a column's values are whole numbers inside the engine."""
    return kind(column.domain.dtype) in (Kind.INTEGER, Kind.BOOLEAN, *TIMES)


def in_ticks(bounds: Bounds, column: Column, what: str) -> Bounds:
    """Bounds in the unit in which the engine holds the column, which for times is ticks. Errors: WrongType."""
    if kind(column.domain.dtype) in TIMES:
        return Bounds(*(ticks(x, column.domain.dtype, what) for x in bounds))
    if any(isinstance(x, (dt.date, dt.timedelta)) for x in bounds):
        raise WrongType(f"{what}: a column of type {show(column.domain.dtype)} goes with numbers, not with times.")
    return bounds


_EXAMPLES = {
    "date": ("date(2020, 1, 1)", "date(2021, 1, 1)"),
    "datetime": ("datetime(2020, 1, 1)", "datetime(2021, 1, 1)"),
    "duration": ("timedelta(0)", "timedelta(hours=1)"),
}


def bounds_of(column: Column, bounds: Bounds | Auto | None, name: str, what: str) -> Bounds:
    """The bounds that values are clipped to: the typed ones, inside those of the column's domain.

    Errors: MissingBounds; InvalidArgument for bounds=dp.Auto() of a column of true and false
    """
    own = column.domain.bounds
    if isinstance(bounds, Auto):  # until they are chosen, bounds that any column could have
        if kind(column.domain.dtype) == Kind.BOOLEAN:
            raise InvalidArgument(f"{what}: true and false lie between 0 and 1; leave bounds= out.")
        return own or Bounds(0, 1)
    if bounds is None and own is None:
        low, high = _EXAMPLES.get(kind(column.domain.dtype), ("0", "100"))
        raise MissingBounds(
            f"{what}: one value of {name!r} could be anything, so no finite noise hides it. Say the range: "
            f"clip({name!r}, {low}, {high}) before it, or bounds=({low}, {high}) in it, with limits you know without "
            "the data; or have them chosen privately inside the release: bounds=dp.Auto()."
        )
    bounds = bounds and in_ticks(bounds, column, what)
    if bounds is None or own is None:
        return bounds or own  # type: ignore[return-value]
    return Bounds(bounds.clamp(own.lower), bounds.clamp(own.upper))


def sum_total(
    column: Column,
    bounds: Bounds,
    unit_limits: UnitLimits,
    what: str,
    *,
    centred: bool,
    present: tuple[Column, ...] = (),
) -> Total:
    """Sum of the clipped values per group. For means, values are measured from the middle of the bounds.

    A row in which a `present` column is missing adds 0, which is what a row with a missing value adds. So the bound is
    that of a column with missing values.
    """
    whole, present = is_whole(column), tuple(c for c in present if c.domain.nullable)
    if unit_limits.one_row_each and not column.domain.nullable and not present:
        grid = grid_for(bounds, whole=whole, centred=centred, limit=1)
        fraction = FRACTION_BITS if unit_limits.weighted else 0
        return Total(
            TotalKind.SUM, column, grid, fraction, maps.one_row_sum(grid.lower, grid.upper).scaled(2**fraction)
        )
    limits = unit_limits.contribution(what)
    grid = grid_for(bounds, whole=whole, centred=centred, limit=limits.rows_per_group)
    fraction = FRACTION_BITS if unit_limits.weighted else 0
    bound = maps.row_sums(limits, grid.lower, grid.upper, unit_limits.table.relation, unit_limits.cells)
    return Total(TotalKind.SUM, column, grid, fraction, bound.scaled(2**fraction), present=present)


def square_total(
    column: Column, bounds: Bounds, unit_limits: UnitLimits, what: str, present: tuple[Column, ...] = ()
) -> Total:
    """Sum per group of the squared distances from the middle of the bounds, each less half of the largest one.

    For bounds of half-width h, (value - middle)² lies in [0, h²]. Less h²/2, it is at most h²/2 in absolute value: half
    of the sensitivity of the plain square.
    """
    half = (Fraction(bounds.upper) - Fraction(bounds.lower)) / 2
    middle = (Fraction(bounds.lower) + Fraction(bounds.upper)) / 2
    if half**2 > 10**270:
        raise InvalidBounds(f"{what}: squares of values this far apart are beyond floats. Give bounds=(-1e134, 1e134).")
    span = Bounds(0, float(half**2))
    return computed_total(TotalKind.SQUARE, column, span, unit_limits, what, middle, present=present)


def cube_total(column: Column, bounds: Bounds, unit_limits: UnitLimits, what: str) -> Total:
    """Sum per group of the cubed distances from the middle of the bounds.

    Input:  column; bounds (column unit); what was asked
    Output: a total whose integer is worth a step of its grid, a power of two that follows from the bounds alone
    Bound:  for bounds of half-width h, (value - middle)³ lies in [-h³, h³], and the integer of a row is clipped to
            these ends. Neighbouring tables differ in the rows of one unit. With at most k rows in each of m groups and
            K in all, joining or leaving moves a group by at most k·h³ and all groups together by K·h³
    Source: `dpframe.theory.formulas.sensitivity.grouped.row_sums`, and `one_row_sum` where a unit surely has one row
    Errors: InvalidBounds where cubes of distances are beyond floats, or are no longer told from 0
    """
    half = (Fraction(bounds.upper) - Fraction(bounds.lower)) / 2
    if half and not 10**-270 <= half**3 <= 10**270:
        raise InvalidBounds(
            f"{what}: cubes of values this far apart, or this close together, are beyond floats. Give bounds that are "
            "from 1e-89 to 1e89 apart."
        )
    middle = (Fraction(bounds.lower) + Fraction(bounds.upper)) / 2
    span = Bounds(-float(half**3), float(half**3))
    return computed_total(TotalKind.CUBE, column, span, unit_limits, what, middle)


_SMALLEST = 1e-270  # of values whose logarithm is taken: its reciprocal is a float too
_OCTAVES = 64  # between the bounds: each is two entries in a table that every engine searches


def log_total(column: Column, bounds: Bounds, unit_limits: UnitLimits, what: str) -> Total:
    """Logarithms of the values per group, each clipped to those of the bounds and measured from their middle.

    Input:  column; bounds (column unit), above 0; what was asked
    Output: a total whose integer is worth a step of its grid, a power of two that follows from the bounds alone
    Bound:  whatever an engine computes as a row's logarithm, its integer is clipped to [grid.lower, grid.upper]
            afterwards. So the total is a sum of values in known bounds, and `row_sums` (where each unit surely has one
            row, `one_row_sum`) says how far one unit moves it; no property of the logarithm is needed
    Source: `dpframe.theory.formulas.sensitivity.grouped.row_sums`
    Errors: InvalidBounds where the lower bound is not above 0, or the bounds are further apart than 64 octaves
    """
    if bounds.lower <= 0:
        raise InvalidBounds(
            f"{what}: only numbers above 0 have a logarithm. Type bounds=(low, high) with low above 0, such as "
            "bounds=(1, 100)."
        )
    if bounds.lower < _SMALLEST or bounds.upper / bounds.lower > 2.0**_OCTAVES:
        raise InvalidBounds(
            f"{what}: the lower bound is at least {_SMALLEST:g}, and the upper one at most 2^{_OCTAVES} (about 1.8e19) "
            "times the lower one. Type narrower ones."
        )
    logs = Bounds(math.log(bounds.lower), math.log(bounds.upper))
    return computed_total(TotalKind.LOG, column, logs, unit_limits, what)


def computed_total(
    total_kind: TotalKind,
    column: Column,
    span: Bounds,
    unit_limits: UnitLimits,
    what: str,
    about: Fraction = Fraction(0),
    *,
    factors: tuple[Factor, ...] = (),
    present: tuple[Column, ...] = (),
) -> Total:
    """Sum per group of what is computed of each value, inside a span and measured from the middle of that span.

    Bound:  a row's integer is clipped to its grid, whatever the engine computed. So the total is a sum of values in
            known bounds: see `dpframe.theory.formulas.sensitivity.grouped.row_sums`, and `one_row_sum` where each unit
            surely has one row. A row in which a value is missing adds 0
    """
    read = (column, *(factor.column for factor in factors), *present)
    if unit_limits.one_row_each and not any(c.domain.nullable for c in read):
        grid = grid_for(span, whole=False, centred=True, limit=1)
        bound = maps.one_row_sum(grid.lower, grid.upper)
    else:
        limits = unit_limits.contribution(what)
        grid = grid_for(span, whole=False, centred=True, limit=limits.rows_per_group)
        bound = maps.row_sums(limits, grid.lower, grid.upper, unit_limits.table.relation, unit_limits.cells)
    fraction = FRACTION_BITS if unit_limits.weighted else 0
    nullable = tuple(c for c in present if c.domain.nullable)
    return Total(
        total_kind, column, grid, fraction, bound.scaled(2**fraction), about, factors=factors, present=nullable
    )


def unit_sum_total(column: Column, bounds: Bounds, unit_limits: UnitLimits, what: str) -> Total:
    """Each unit's total per group, clipped to the bounds and added up over the units."""
    whole = is_whole(column)
    grid = grid_for(bounds, whole=whole, centred=False, limit=1)
    bound = maps.unit_sums(
        unit_limits.groups(what), grid.lower, grid.upper, unit_limits.table.relation, unit_limits.cells
    )
    return Total(TotalKind.UNIT_SUM, column, grid, 0, bound)


def distinct_total(column: Column, unit_limits: UnitLimits, what: str) -> Total:
    """Number of different values per group. One unit moves it by at most k in a group, and by K in all groups."""
    bound = maps.row_counts(unit_limits.contribution(what), unit_limits.table.relation, unit_limits.cells)
    return Total(TotalKind.DISTINCT, column, UNIT_GRID, 0, bound)


def rank_total(column: Column, bounds: Bounds, rank: Fraction, unit_limits: UnitLimits, what: str) -> Total:
    """The rows below and above each candidate, per group, for the choice of a quantile.

    Errors: InvalidBounds if the distance between the bounds is too large for a float
    """
    if Fraction(bounds.upper) - Fraction(bounds.lower) > 10**300:
        raise InvalidBounds(f"{what}: values this far apart are beyond floats; keep bounds 1e300 apart.")
    fraction = FRACTION_BITS if unit_limits.weighted else 0
    bound = maps.row_places(unit_limits.contribution(what), unit_limits.table.relation, unit_limits.cells)
    candidates = Candidates.between(bounds, whole=is_whole(column))
    bound, ci = bound.scaled(2**fraction), unit_limits.ci if 0 < rank < 1 else None
    return Total(TotalKind.RANKS, column, UNIT_GRID, fraction, bound, candidates=candidates, rank=rank, ci=ci)


def mode_total(
    column: Column, values: tuple[Scalar | None, ...], rounds: int, unit_limits: UnitLimits, what: str
) -> Total:
    """The rows at each listed value, per group, for the choice of the most frequent ones."""
    fraction = FRACTION_BITS if unit_limits.weighted else 0
    bound = maps.row_places(unit_limits.contribution(what), unit_limits.table.relation, unit_limits.cells)
    return Total(TotalKind.MODES, column, UNIT_GRID, fraction, bound.scaled(2**fraction), values=values, rounds=rounds)
