"""The noisy totals that answers are made of: how each is added up, and how far one unit moves it."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from narwhals.dtypes import DType
from numpy.typing import NDArray

from dpframe.errors import InvalidArgument, InvalidBounds, MissingBounds, UnboundedContribution, WrongType
from dpframe.plan.columns import Auto, Bounds, Column, Table
from dpframe.plan.grid import FRACTION_BITS, UNIT_GRID, Grid, grid_for
from dpframe.plan.types import TIMES, Kind, Scalar, cast_first, kind, show, ticks
from dpframe.theory.formulas.sensitivity import Contribution, Sensitivity
from dpframe.theory.formulas.sensitivity import grouped as maps

__all__ = [
    "Candidates",
    "Formula",
    "Measure",
    "ReleasedColumn",
    "TotalKind",
    "UnitLimits",
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

_CANDIDATES = 1024
_LATTICE_BITS = 50  # of a value between the candidates: doubled and times 1,023 it is below 2^61


@dataclass(frozen=True)
class UnitLimits:
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
    one_each: bool = False  # one unit surely has at most one row in a group, so that rows count units
    choosable: bool = True  # dp.Auto() may choose limits here
    ci: float | None = None  # the confidence at which quantiles have intervals, which are paid for

    def contribution(self, what: str) -> Contribution:
        """The limits on rows, or an error that names the one to type."""
        groups = self.groups(what)
        if self.max_rows is None and self.max_rows_per_group is None:
            unit = _unit_words(self.table)
            where = f" by {_listed(self.grouped_by)}" if self.grouped_by else ""
            line = f"max_groups={groups}, max_rows_per_group=2" if self.grouped_by else "max_rows=20"
            raise UnboundedContribution(
                f"{what}{where}: one {unit} may have any number of rows{' in a group' if self.grouped_by else ''}, so "
                f"no finite noise hides it. {self._advice(line)}"
            )
        rows = self.max_rows if self.max_rows is not None else groups * (self.max_rows_per_group or 0)
        per_group = self.max_rows_per_group if self.max_rows_per_group is not None else rows
        return Contribution(groups, per_group, rows)

    def groups(self, what: str) -> int:
        """The limit on groups, or an error that names it."""
        if self.max_groups is None:
            limits = f"max_groups=3, max_rows_per_group={self.max_rows_per_group or 2}"
            raise UnboundedContribution(
                f"{what} by {_listed(self.grouped_by)}: one {_unit_words(self.table)} may appear in any number of "
                f"groups, so no finite noise hides it. {self._advice(limits)}"
            )
        return self.max_groups

    def _advice(self, limits: str) -> str:
        chosen = "; or have it chosen privately inside the release: limits=dp.Auto()" if self.choosable else ""
        return f"Say how many: {self.asked.replace('{limit}', limits)}{chosen}."

    @property
    def weighted(self) -> bool:
        """Whether rows are weighted, so that totals carry fraction bits (an identifier column enforces the limits)."""
        return bool(self.table.unit)

    @property
    def one_row_each(self) -> bool:
        """Whether neighbours exchange one row for one row of an ungrouped table."""
        return self.table.exactly_one and not self.grouped_by


def _unit_words(table: Table) -> str:
    names = [name for name, column in table.columns.items() if column.is_unit]
    return _listed(names) if names else "unit"


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


@dataclass(frozen=True)
class Candidates:
    """The values among which a quantile is chosen: `lower`, `lower + step`, …, `count` of them (column unit).

    Which candidate is nearest to a value is decided in integers, so that all engines agree on ties. A value is measured
    from `lower`, in one subtraction of floats. A power of two then scales the distance, which loses nothing, and makes
    the distance of the last candidate a whole number of about 2^50, the `extent`. The rest is arithmetic of integers.
    """

    lower: float
    step: float
    count: int
    whole: bool

    @classmethod
    def between(cls, bounds: Bounds, *, whole: bool) -> Candidates:
        """Every integer between the bounds, if the column holds integers and there are few; else 1,024 points."""
        lower, width = float(bounds.lower), float(Fraction(bounds.upper) - Fraction(bounds.lower))
        if width == 0:
            return cls(lower, 1.0, 1, whole)
        if whole and width < _CANDIDATES:
            return cls(lower, 1.0, int(width) + 1, whole)
        return cls(lower, width / (_CANDIDATES - 1), _CANDIDATES, whole)

    @property
    def fits(self) -> bool:
        """Whether each candidate, which is a float, is a whole number of 64 bits once it is rounded."""
        return self.lower >= -(2.0**63) and self.point(self.count - 1) < 2.0**63

    def point(self, number: int) -> float:
        """The value of a candidate (column unit)."""
        return self.lower + number * self.step

    @property
    def power(self) -> int:
        """The power of two that scales distances from `lower`, so that the last candidate's is about 2^50."""
        width = Fraction(self.step) * (self.count - 1)
        return _LATTICE_BITS - (width.numerator.bit_length() - width.denominator.bit_length()) if width else 0

    @property
    def extent(self) -> int:
        """The scaled distance between the first candidate and the last, as a whole number below 2^51; 0 for one value.

        >>> Candidates(0.0, 1.0, 11, True).extent == 10 * 2**47
        True
        """
        return round(Fraction(self.step) * (self.count - 1) * Fraction(2) ** self.power)

    def nearest(self, value: float) -> int:
        """The number of the candidate nearest to a value, of two the greater: what every engine computes.

        Input:  value, finite or infinite (column unit)
        Output: an integer in [0, count)
        Bound:  the candidate is within half a step of the value, save a part of 2^-38 of a step and what the
                subtraction rounds; it depends on this value alone

        >>> [Candidates(0.0, 1.0, 11, False).nearest(x) for x in (-math.inf, 0.49, 0.5, 7.0, math.inf)]
        [0, 0, 1, 7, 10]
        """
        last = self.count - 1
        if not self.extent:
            return 0
        inside = min(max(value, self.lower), self.point(last)) - self.lower
        scaled = math.floor(Fraction(inside) * Fraction(2) ** self.power)
        return min((2 * last * scaled + self.extent) // (2 * self.extent), last)

    def around(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[NDArray[Any], ...]:
        """Between what the values are that are read as these candidates and those between them (column unit).

        A value is read as the nearest candidate, so it is within half a step and what floats leave out of that; of
        whole values, only whole ones are.
        """
        largest = max(abs(self.lower), abs(self.point(self.count - 1)))
        exact = self.whole and self.step == 1 and largest < 2**52
        beside = 0.501 * self.step + (0.0 if exact else 2 * math.ulp(largest))
        low, high = self.lower + first * self.step - beside, self.lower + last * self.step + beside
        return (np.ceil(low), np.floor(high)) if self.whole else (low, high)


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
class Measure:
    """What is asked of each group of rows: an integer that noise is added to, or a rank that a candidate is chosen for.

    `total` says how it is made, of which `column` on which `grid`; it carries `fraction` bits below the grid step.
    `sensitivity` is in units of that integer; `unit` is what one of it is worth (column unit; its square for "square",
    which adds (value - about)² instead of the value). "distinct" is the number of different values; "ranks" chooses the
    candidate that has a `rank` part of the rows below it, and its sensitivity is that of the rows per group; with `ci`
    also how far from it the quantile may be, at that confidence. "modes" chooses the most frequent of the listed
    `values`, or the first of them, in as many `rounds`.
    """

    total: TotalKind
    column: Column | None
    grid: Grid
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
        return self.total not in (TotalKind.DISTINCT, TotalKind.RANKS, TotalKind.MODES)

    @property
    def chosen(self) -> bool:
        """Whether it is a choice among candidates, and not a number that noise is added to."""
        return self.total in (TotalKind.RANKS, TotalKind.MODES)

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
        """Two measures with the same key are the same total, and are paid for once."""
        column = self.column.id if self.column else None
        part = (self.merged, self.collects, self.finds, self.among)
        return (self.total, column, self.grid, self.about, self.choice, part)

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
    """A released column: the measures it is made of, named, and how.

    "count": the total, rounded to an integer. "sum": the total. "mean": centre + sum / count, drawn
    to the centre where noise is all there is (see `release.estimators.formulas.mean_of`) and kept inside `bounds`.
    "var", "std": from the sum, the sum of squares and the count; `ddof` as in pandas and Polars. "quantile", "mode":
    the value of the chosen candidate. With `dtype` the result is a time of that type: `ticks` of it for each unit of
    the column.
    """

    name: str
    formula: Formula
    measures: tuple[tuple[str, Measure], ...]
    whole: bool = True
    bounds: Bounds | None = None
    ddof: int = 0
    dtype: DType | None = None
    ticks: int = 1

    @property
    def derived(self) -> bool:
        """Whether it is made of several totals: a sum measured from the middle of the bounds first, a count last."""
        return len(self.measures) > 1


def row_total(scope: UnitLimits, what: str) -> Measure:
    """Rows per group: integers, with fraction bits only where the three limits together force a weight."""
    if scope.one_row_each:
        return Measure(TotalKind.ROWS, None, UNIT_GRID, 0, maps.one_row_sum(1, 1))
    limits = scope.contribution(what)
    scaled = scope.weighted and limits.rows < limits.groups * limits.rows_per_group
    fraction = FRACTION_BITS if scaled else 0
    bound = maps.row_counts(limits, scope.table.relation, scope.cells)
    return Measure(TotalKind.ROWS, None, UNIT_GRID, fraction, bound.scaled(2**fraction))


def value_total(column: Column, scope: UnitLimits, what: str) -> Measure:
    """Values that are not missing, per group; the rows themselves when no value can be missing."""
    if not column.facts.nullable:
        return row_total(scope, what)
    fraction = FRACTION_BITS if scope.weighted else 0
    bound = maps.row_counts(scope.contribution(what), scope.table.relation, scope.cells)
    return Measure(TotalKind.VALUES, column, UNIT_GRID, fraction, bound.scaled(2**fraction))


def units_total(scope: UnitLimits, what: str) -> Measure:
    """Units per group; the rows where one unit has one row in each; with `dp.Rows(k)` the rows stand for them."""
    if not scope.table.unit or scope.one_row_each or scope.one_each:
        return row_total(scope, what)
    return Measure(
        TotalKind.UNITS, None, UNIT_GRID, 0, maps.unit_counts(scope.groups(what), scope.table.relation, scope.cells)
    )


def number_column(name: str, scope: UnitLimits, what: str, *times: str, other: str = "") -> Column:
    """A column of numbers, or of the kinds of times named, which are whole numbers of ticks; or a typed error.

    Input:  name; scope; what was asked; times: the kinds of times that it may be; other: what to ask of other times
    Errors: UnknownColumn, WrongType
    """
    column = scope.table.column(name, what)
    family = kind(column.facts.dtype)
    if family not in (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, Kind.BOOLEAN, *times):
        dtype, besides = show(column.facts.dtype), "".join(f", {time}s" for time in times)
        instead = f" Ask for {other}({name!r})." if other and family in TIMES else cast_first(column.facts.dtype, name)
        raise WrongType(f"{what}: needs numbers{besides} or true and false, not a column of type {dtype}.{instead}")
    return column


def is_whole(column: Column) -> bool:
    """Whether a column's values are whole numbers inside the engine."""
    return kind(column.facts.dtype) in (Kind.INTEGER, Kind.BOOLEAN, *TIMES)


def in_ticks(given: Bounds, column: Column, what: str) -> Bounds:
    """Bounds as typed, in the unit in which the engine holds the column: ticks for a time. Errors: WrongType."""
    if kind(column.facts.dtype) in TIMES:
        return Bounds(*(ticks(x, column.facts.dtype, what) for x in given))
    if any(isinstance(x, (dt.date, dt.timedelta)) for x in given):
        raise WrongType(f"{what}: a column of type {show(column.facts.dtype)} goes with numbers, not with times.")
    return given


_EXAMPLES = {
    "date": ("date(2020, 1, 1)", "date(2021, 1, 1)"),
    "datetime": ("datetime(2020, 1, 1)", "datetime(2021, 1, 1)"),
    "duration": ("timedelta(0)", "timedelta(hours=1)"),
}


def bounds_of(column: Column, given: Bounds | Auto | None, name: str, what: str) -> Bounds:
    """The bounds that values are clipped to: those given, within those known.

    Errors: MissingBounds; InvalidArgument for bounds to be chosen of true and false
    """
    known = column.facts.bounds
    if isinstance(given, Auto):  # until they are chosen, some that any column could have
        if kind(column.facts.dtype) == Kind.BOOLEAN:
            raise InvalidArgument(f"{what}: true and false lie between 0 and 1; leave bounds= out.")
        return known or Bounds(0, 1)
    if given is None and known is None:
        low, high = _EXAMPLES.get(kind(column.facts.dtype), ("0", "100"))
        raise MissingBounds(
            f"{what}: one value of {name!r} could be anything, so no finite noise hides it. Say the range: "
            f"clip({name!r}, {low}, {high}) before it, or bounds=({low}, {high}) in it, with limits you know without "
            "the data; or have them chosen privately inside the release: bounds=dp.Auto()."
        )
    given = given and in_ticks(given, column, what)
    if given is None or known is None:
        return given or known  # type: ignore[return-value]
    return Bounds(given.clamp(known.lower), given.clamp(known.upper))


def sum_total(column: Column, bounds: Bounds, scope: UnitLimits, what: str, *, centred: bool) -> Measure:
    """Values per group, each clipped to the bounds and, for means, measured from their middle."""
    whole = is_whole(column)
    if scope.one_row_each and not column.facts.nullable:
        grid = grid_for(bounds, whole=whole, centred=centred, limit=1)
        fraction = FRACTION_BITS if scope.weighted else 0
        return Measure(
            TotalKind.SUM, column, grid, fraction, maps.one_row_sum(grid.lower, grid.upper).scaled(2**fraction)
        )
    limits = scope.contribution(what)
    grid = grid_for(bounds, whole=whole, centred=centred, limit=limits.rows_per_group)
    fraction = FRACTION_BITS if scope.weighted else 0
    bound = maps.row_sums(limits, grid.lower, grid.upper, scope.table.relation, scope.cells)
    return Measure(TotalKind.SUM, column, grid, fraction, bound.scaled(2**fraction))


def square_total(column: Column, bounds: Bounds, scope: UnitLimits, what: str) -> Measure:
    """Squared distances from the middle of the bounds, per group, measured from half of the largest one.

    A value in bounds of half-width h has (value - middle)² in [0, h²]; around h²/2 that is at most h²/2 in size, half
    of what the plain square would cost.
    """
    half = (Fraction(bounds.upper) - Fraction(bounds.lower)) / 2
    middle = (Fraction(bounds.lower) + Fraction(bounds.upper)) / 2
    if half**2 > 10**270:
        raise InvalidBounds(f"{what}: squares of values this far apart are beyond floats. Give bounds=(-1e134, 1e134).")
    limits = None if scope.one_row_each and not column.facts.nullable else scope.contribution(what)
    grid = grid_for(Bounds(0, float(half**2)), whole=False, centred=True, limit=limits.rows_per_group if limits else 1)
    fraction = FRACTION_BITS if scope.weighted else 0
    if limits is None:
        bound = maps.one_row_sum(grid.lower, grid.upper)
        return Measure(TotalKind.SQUARE, column, grid, fraction, bound.scaled(2**fraction), middle)
    bound = maps.row_sums(limits, grid.lower, grid.upper, scope.table.relation, scope.cells)
    return Measure(TotalKind.SQUARE, column, grid, fraction, bound.scaled(2**fraction), middle)


def unit_sum_total(column: Column, bounds: Bounds, scope: UnitLimits, what: str) -> Measure:
    """Each unit's total per group, clipped to the bounds and added up over the units."""
    whole = is_whole(column)
    grid = grid_for(bounds, whole=whole, centred=False, limit=1)
    bound = maps.unit_sums(scope.groups(what), grid.lower, grid.upper, scope.table.relation, scope.cells)
    return Measure(TotalKind.UNIT_SUM, column, grid, 0, bound)


def distinct_total(column: Column, scope: UnitLimits, what: str) -> Measure:
    """Different values per group: a unit brings at most k to a group and K in all, and they may go with it."""
    bound = maps.row_counts(scope.contribution(what), scope.table.relation, scope.cells)
    return Measure(TotalKind.DISTINCT, column, UNIT_GRID, 0, bound)


def rank_total(column: Column, bounds: Bounds, rank: Fraction, scope: UnitLimits, what: str) -> Measure:
    """The rows below and above each candidate, per group, for the choice of a quantile.

    Errors: InvalidBounds where the distance between the bounds is none that a float can hold
    """
    if Fraction(bounds.upper) - Fraction(bounds.lower) > 10**300:
        raise InvalidBounds(f"{what}: values this far apart are beyond floats; keep bounds 1e300 apart.")
    fraction = FRACTION_BITS if scope.weighted else 0
    bound = maps.row_places(scope.contribution(what), scope.table.relation, scope.cells)
    candidates = Candidates.between(bounds, whole=is_whole(column))
    bound, ci = bound.scaled(2**fraction), scope.ci if 0 < rank < 1 else None
    return Measure(TotalKind.RANKS, column, UNIT_GRID, fraction, bound, candidates=candidates, rank=rank, ci=ci)


def mode_total(column: Column, values: tuple[Scalar | None, ...], rounds: int, scope: UnitLimits, what: str) -> Measure:
    """The rows at each listed value, per group, for the choice of the most frequent ones."""
    fraction = FRACTION_BITS if scope.weighted else 0
    bound = maps.row_places(scope.contribution(what), scope.table.relation, scope.cells)
    return Measure(
        TotalKind.MODES, column, UNIT_GRID, fraction, bound.scaled(2**fraction), values=values, rounds=rounds
    )
