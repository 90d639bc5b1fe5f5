"""The noisy totals that answers are made of: how each is added up, and how far one unit moves it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Literal

from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, InvalidBounds, MissingBounds, WrongType
from dpframe.plan.candidates import Candidates
from dpframe.plan.columns import Auto, Bounds, Column
from dpframe.plan.grid import FRACTION_BITS, UNIT_GRID, ValueGrid, grid_for
from dpframe.plan.types import TIMES, Kind, Scalar, cast_first, kind, show, ticks
from dpframe.plan.unit_limits import UnitLimits
from dpframe.theory.formulas.sensitivity import Sensitivity
from dpframe.theory.formulas.sensitivity import grouped as maps

__all__ = [
    "Formula",
    "ReleasedColumn",
    "Total",
    "TotalKind",
    "bounds_of",
    "distinct_total",
    "in_ticks",
    "is_whole",
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
    """How a total is added up: see `Measure`."""

    ROWS = "rows"
    VALUES = "values"
    UNITS = "units"
    SUM = "sum"
    SQUARE = "square"
    UNIT_SUM = "unit_sum"
    DISTINCT = "distinct"
    RANKS = "ranks"
    MODES = "modes"
    INTERACTION = "interaction"

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True)
class Total:
    """What is asked of each group of rows: an integer that noise is added to, or a rank that a candidate is chosen for.

    `kind` says how it is made, of which `column` on which `grid`; it carries `fraction` bits below the grid step.
    `sensitivity` is in units of that integer; `unit` is what one of it is worth (column unit; its square for "square",
    which adds (value - about)² instead of the value). "distinct" is the number of different values; "ranks" chooses the
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
    merged: Literal["", "rows", "columns", "total"] = ""  # a margin of a crosstab: cells added together
    collects: bool = False  # the groups that are suppressed, added together
    finds: bool = False  # the groups to release, and is not released itself
    among: tuple[str, ...] = ()  # the columns whose interaction it is, in a release of many marginals

    @property
    def additive(self) -> bool:
        """Whether it is a sum over units, so that one pass adds it up with the others."""
        return self.kind not in (TotalKind.DISTINCT, TotalKind.RANKS, TotalKind.MODES)

    @property
    def chosen(self) -> bool:
        """Whether it is a choice among candidates, and not a number that noise is added to."""
        return self.kind in (TotalKind.RANKS, TotalKind.MODES)

    @property
    def choices(self) -> int:
        """How many choices are made of each group, one after the other, for equal parts of the price."""
        return self.rounds if self.ci is None else 2

    @property
    def between(self) -> bool:
        """Whether it is a quantile between the minimum and the maximum, which alone can have an interval."""
        return self.rank is not None and 0 < self.rank < 1

    def surely(self, alpha: float) -> bool:
        """Whether ends were paid for that miss with at most this probability."""
        return self.ci is not None and alpha >= (1 - self.ci) * (1 - 1e-9)  # 1 - 0.95 is above 0.05

    @property
    def width(self) -> int | None:
        """How many candidates there are to choose from; None for a number."""
        return self.candidates.count if self.candidates is not None else len(self.values) or None

    @property
    def key(self) -> tuple[object, ...]:
        """Two totals with the same key are the same total, and are paid for once."""
        column = self.column.id if self.column else None
        part = (self.merged, self.collects, self.finds, self.among)
        return (self.kind, column, self.grid, self.about, self.choice, part)

    @property
    def choice(self) -> tuple[object, ...]:
        """What is chosen, if anything is."""
        return (self.candidates, self.rank, self.ci, self.values, self.rounds)

    @property
    def unit(self) -> Fraction:
        """What one unit of the integer total is worth (column unit)."""
        return self.grid.step / Fraction(2**self.fraction)


class Formula(StrEnum):
    """How a released column is made of its totals. What each of them means is in `release.estimators`."""

    COUNT = "count"
    SUM = "sum"
    MEAN = "mean"
    VAR = "var"
    STD = "std"
    QUANTILE = "quantile"
    MODE = "mode"

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True)
class ReleasedColumn:
    """A released column: the totals it is made of, named, and how.

    "count": the total, rounded to an integer. "sum": the total. "mean": centre + sum / count, drawn
    to the centre where noise is all there is (see `release.estimators.formulas.mean_of`) and kept inside `bounds`.
    "var", "std": from the sum, the sum of squares and the count; `ddof` as in pandas and Polars. "quantile", "mode":
    the value of the chosen candidate. With `dtype` the result is a time of that type: `ticks` of it for each unit of
    the column.
    """

    name: str
    formula: Formula
    totals: tuple[tuple[str, Total], ...]
    whole: bool = True
    bounds: Bounds | None = None
    ddof: int = 0
    dtype: DType | None = None
    ticks: int = 1

    @property
    def derived(self) -> bool:
        """Whether it is made of several totals: a sum measured from the middle of the bounds first, a count last."""
        return len(self.totals) > 1


def row_total(unit_limits: UnitLimits, what: str) -> Total:
    """Rows per group: integers, with fraction bits only where the three limits together force a weight."""
    if unit_limits.one_row_each:
        return Total(TotalKind.ROWS, None, UNIT_GRID, 0, maps.one_row_sum(1, 1))
    limits = unit_limits.contribution(what)
    fractional = unit_limits.weighted and limits.rows < limits.groups * limits.rows_per_group
    fraction = FRACTION_BITS if fractional else 0
    bound = maps.row_counts(limits, unit_limits.table.relation, unit_limits.cells)
    return Total(TotalKind.ROWS, None, UNIT_GRID, fraction, bound.scaled(2**fraction))


def value_total(column: Column, unit_limits: UnitLimits, what: str) -> Total:
    """Values that are not missing, per group; the rows themselves when no value can be missing."""
    if not column.domain.nullable:
        return row_total(unit_limits, what)
    fraction = FRACTION_BITS if unit_limits.weighted else 0
    bound = maps.row_counts(unit_limits.contribution(what), unit_limits.table.relation, unit_limits.cells)
    return Total(TotalKind.VALUES, column, UNIT_GRID, fraction, bound.scaled(2**fraction))


def units_total(unit_limits: UnitLimits, what: str) -> Total:
    """Units per group; the rows where one unit has one row in each; with `dp.Rows(k)` the rows stand for them."""
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
    """A column of numbers, or of the kinds of times named, which are whole numbers of ticks; or a typed error.

    Input:  name; scope; what was asked; times: the kinds of times that it may be; other: what to ask of other times
    Errors: UnknownColumn, WrongType
    """
    column = unit_limits.table.column(name, what)
    family = kind(column.domain.dtype)
    if family not in (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, Kind.BOOLEAN, *times):
        dtype, besides = show(column.domain.dtype), "".join(f", {time}s" for time in times)
        instead = f" Ask for {other}({name!r})." if other and family in TIMES else cast_first(column.domain.dtype, name)
        raise WrongType(f"{what}: needs numbers{besides} or true and false, not a column of type {dtype}.{instead}")
    return column


def is_whole(column: Column) -> bool:
    """Whether a column's values are whole numbers inside the engine."""
    return kind(column.domain.dtype) in (Kind.INTEGER, Kind.BOOLEAN, *TIMES)


def in_ticks(bounds: Bounds, column: Column, what: str) -> Bounds:
    """Bounds as typed, in the unit in which the engine holds the column: ticks for a time. Errors: WrongType."""
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
    """The bounds that values are clipped to: those given, within those known.

    Errors: MissingBounds; InvalidArgument for bounds to be chosen of true and false
    """
    own = column.domain.bounds
    if isinstance(bounds, Auto):  # until they are chosen, some that any column could have
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


def sum_total(column: Column, bounds: Bounds, unit_limits: UnitLimits, what: str, *, centred: bool) -> Total:
    """Values per group, each clipped to the bounds and, for means, measured from their middle."""
    whole = is_whole(column)
    if unit_limits.one_row_each and not column.domain.nullable:
        grid = grid_for(bounds, whole=whole, centred=centred, limit=1)
        fraction = FRACTION_BITS if unit_limits.weighted else 0
        return Total(
            TotalKind.SUM, column, grid, fraction, maps.one_row_sum(grid.lower, grid.upper).scaled(2**fraction)
        )
    limits = unit_limits.contribution(what)
    grid = grid_for(bounds, whole=whole, centred=centred, limit=limits.rows_per_group)
    fraction = FRACTION_BITS if unit_limits.weighted else 0
    bound = maps.row_sums(limits, grid.lower, grid.upper, unit_limits.table.relation, unit_limits.cells)
    return Total(TotalKind.SUM, column, grid, fraction, bound.scaled(2**fraction))


def square_total(column: Column, bounds: Bounds, unit_limits: UnitLimits, what: str) -> Total:
    """Squared distances from the middle of the bounds, per group, measured from half of the largest one.

    A value in bounds of half-width h has (value - middle)² in [0, h²]; around h²/2 that is at most h²/2 in size, half
    of what the plain square would cost.
    """
    half = (Fraction(bounds.upper) - Fraction(bounds.lower)) / 2
    middle = (Fraction(bounds.lower) + Fraction(bounds.upper)) / 2
    if half**2 > 10**270:
        raise InvalidBounds(f"{what}: squares of values this far apart are beyond floats; keep bounds 1e135 apart.")
    limits = None if unit_limits.one_row_each and not column.domain.nullable else unit_limits.contribution(what)
    grid = grid_for(Bounds(0, float(half**2)), whole=False, centred=True, limit=limits.rows_per_group if limits else 1)
    fraction = FRACTION_BITS if unit_limits.weighted else 0
    if limits is None:
        bound = maps.one_row_sum(grid.lower, grid.upper)
        return Total(TotalKind.SQUARE, column, grid, fraction, bound.scaled(2**fraction), middle)
    bound = maps.row_sums(limits, grid.lower, grid.upper, unit_limits.table.relation, unit_limits.cells)
    return Total(TotalKind.SQUARE, column, grid, fraction, bound.scaled(2**fraction), middle)


def unit_sum_total(column: Column, bounds: Bounds, unit_limits: UnitLimits, what: str) -> Total:
    """Each unit's total per group, clipped to the bounds and added up over the units."""
    whole = is_whole(column)
    grid = grid_for(bounds, whole=whole, centred=False, limit=1)
    bound = maps.unit_sums(
        unit_limits.groups(what), grid.lower, grid.upper, unit_limits.table.relation, unit_limits.cells
    )
    return Total(TotalKind.UNIT_SUM, column, grid, 0, bound)


def distinct_total(column: Column, unit_limits: UnitLimits, what: str) -> Total:
    """Different values per group: a unit brings at most k to a group and K in all, and they may go with it."""
    bound = maps.row_counts(unit_limits.contribution(what), unit_limits.table.relation, unit_limits.cells)
    return Total(TotalKind.DISTINCT, column, UNIT_GRID, 0, bound)


def rank_total(column: Column, bounds: Bounds, rank: Fraction, unit_limits: UnitLimits, what: str) -> Total:
    """The rows below and above each candidate, per group, for the choice of a quantile.

    Errors: InvalidBounds where the distance between the bounds is none that a float can hold
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
