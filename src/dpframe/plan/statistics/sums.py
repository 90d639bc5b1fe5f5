"""Counts, sums and what follows from them: their noisy totals."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import narwhals as nw

from dpframe.errors import InvalidBounds, UnboundedContribution
from dpframe.plan.columns import Auto, Bounds
from dpframe.plan.statistics.base import (
    Aggregate,
    BoundedStatistic,
    Formula,
    ReleasedColumn,
    time_type,
)
from dpframe.plan.totals import (
    Total,
    bounds_of,
    distinct_total,
    in_ticks,
    log_total,
    noun_of,
    number_column,
    power_total,
    readable_column,
    row_total,
    sum_total,
    unit_sum_total,
    units_total,
    value_total,
)
from dpframe.plan.types import TIMES, mean_type, time_unit
from dpframe.plan.unit_limits import UnitLimits


@dataclass(frozen=True, repr=False)
class Count(Aggregate):
    """Rows, or the values of a column that are not missing."""

    column: str | None = None

    @property
    def typed(self) -> str:
        return "count()" if self.column is None else f"count({self.column!r})"

    @property
    def words(self) -> str:
        return "number of rows" if self.column is None else f"number of values of {self.column}"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        if self.column is None:
            return ReleasedColumn(name, Formula.COUNT, ((name, row_total(unit_limits)),))
        column = readable_column(self.column, unit_limits)
        return ReleasedColumn(name, Formula.COUNT, ((name, value_total(column, unit_limits)),))


@dataclass(frozen=True, repr=False)
class CountUnits(Aggregate):
    """Distinct units."""

    @property
    def typed(self) -> str:
        return "count_units()"

    @property
    def words(self) -> str:
        return "number of units"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        return ReleasedColumn(name, Formula.COUNT, ((name, units_total(unit_limits)),))


@dataclass(frozen=True, repr=False)
class Sum(BoundedStatistic):
    """Sum of a column: rows clipped to `bounds`, or each unit's total per
    group clipped to `unit_bounds`.
    """

    verb = "sum"
    noun = "sum"
    unit_bounds: Bounds | None = None

    @property
    def typed_too(self) -> str:
        return f", unit_bounds={tuple(self.unit_bounds)}" if self.unit_bounds else ""

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        column = number_column(self.column, unit_limits, "duration", other="mean")
        if self.unit_bounds is None:
            bounds = bounds_of(column, self.bounds, self.column, unit_limits)
            total = sum_total(column, bounds, unit_limits, centred=False)
        else:
            if not unit_limits.table.unit:
                raise UnboundedContribution(
                    f"{self.typed}: unit_bounds clips each unit's total, and dp.Rows(k) does not "
                    "say whose rows are whose. Use bounds=, or protect the table with unit='...'."
                )
            total = unit_sum_total(
                column, in_ticks(self.unit_bounds, column, self.typed), unit_limits
            )
        return ReleasedColumn(
            name, Formula.SUM, ((name, total),), whole=total.is_exact, dtype=time_type(column)
        )


@dataclass(frozen=True, repr=False)
class Mean(BoundedStatistic):
    """Mean of the values that are not missing: a sum measured from the
    middle of the bounds, and a count.
    """

    verb = "mean"
    noun = "mean"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        column, bounds = self.read(unit_limits, *TIMES)
        total = sum_total(column, bounds, unit_limits, centred=True)
        count = value_total(column, unit_limits)
        dtype, per = mean_type(column.domain.dtype)
        parts = ((f"{name}.sum", total), (f"{name}.count", count))
        return ReleasedColumn(name, Formula.MEAN, parts, False, bounds, dtype=dtype, ticks=per)


@dataclass(frozen=True, repr=False)
class Var(BoundedStatistic):
    """Variance of the values that are not missing."""

    verb = "var"
    noun = "variance"
    ddof: int = 1
    root: bool = False

    @property
    def typed_too(self) -> str:
        return "" if self.ddof == 1 else f", ddof={self.ddof}"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        column, bounds = self.read(unit_limits, *(TIMES if self.root else ()), other="std")
        total = sum_total(column, bounds, unit_limits, centred=True)
        squares = power_total(column, bounds, 2, unit_limits)
        count = value_total(column, unit_limits)
        parts = ((f"{name}.sum", total), (f"{name}.squares", squares), (f"{name}.count", count))
        dtype, per = mean_type(column.domain.dtype)
        dtype = dtype and nw.Duration(time_unit(dtype))
        return ReleasedColumn(
            name,
            Formula.STD if self.root else Formula.VAR,
            parts,
            False,
            bounds,
            self.ddof,
            dtype,
            per,
        )


@dataclass(frozen=True, repr=False)
class Std(Var):
    """Standard deviation of the values that are not missing, which times have too."""

    verb = "std"
    noun = "standard deviation"
    root: bool = True


@dataclass(frozen=True, repr=False)
class StandardizedMoment(BoundedStatistic):
    """A central moment over a power of the deviation:
    sums of powers of distances up to that power, and a count.
    """

    formula: ClassVar[Formula]
    power: ClassVar[int]

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        if isinstance(self.bounds, Auto):
            raise InvalidBounds(
                f"{self.typed}: bounds that are chosen from the data cut off the tails, which "
                f"{self.noun} is about. Type bounds=(low, high), such as (0, 100)."
            )
        column, bounds = self.read(unit_limits)
        powers = [
            power_total(column, bounds, power, unit_limits) for power in range(self.power, 1, -1)
        ]
        total = sum_total(column, bounds, unit_limits, centred=True)
        named = [
            (f"{name}.{noun_of(power.factors).replace(' ', '_')}", power)
            for power in reversed(powers)
        ]
        count = value_total(column, unit_limits)
        totals = ((f"{name}.sum", total), *named, (f"{name}.count", count))
        return ReleasedColumn(name, self.formula, totals, False, bounds)


@dataclass(frozen=True, repr=False)
class Skew(StandardizedMoment):
    """Skewness of the values that are not missing."""

    verb = "skew"
    noun = "skewness"
    formula = Formula.SKEW
    power = 3


@dataclass(frozen=True, repr=False)
class Kurtosis(StandardizedMoment):
    """Excess kurtosis of the values that are not missing."""

    verb = "kurtosis"
    noun = "kurtosis"
    formula = Formula.KURTOSIS
    power = 4


@dataclass(frozen=True, repr=False)
class GeometricMean(BoundedStatistic):
    """e to the mean of logarithms: a sum of logarithms measured from the
    middle of their bounds, and a count.
    """

    verb = "geometric_mean"
    noun = "geometric mean"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        if isinstance(self.bounds, Auto):
            raise InvalidBounds(
                f"{self.typed}: bounds that are chosen from the data may reach 0, which has no "
                "logarithm. Type bounds=(low, high) with low above 0, such as (1, 100)."
            )
        column, bounds = self.read(unit_limits, other="mean")
        total = log_total(column, bounds, unit_limits)
        count = value_total(column, unit_limits)
        parts = ((f"{name}.logs", total), (f"{name}.count", count))
        return ReleasedColumn(name, Formula.GEOMETRIC_MEAN, parts, False, bounds)


@dataclass(frozen=True, repr=False)
class CountDistinct(Aggregate):
    """Different values of a column that are not missing."""

    column: str = ""

    @property
    def typed(self) -> str:
        return f"n_unique({self.column!r})"

    @property
    def words(self) -> str:
        return f"number of different values of {self.column}"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        column = readable_column(self.column, unit_limits)
        return ReleasedColumn(name, Formula.COUNT, ((name, distinct_total(column, unit_limits)),))


@dataclass(frozen=True, repr=False)
class Missing(Aggregate):
    """Rows in which a column has no value: a number of rows, less a number of values.

    `share` is the weight of the rows, which the columns of one table share, and `values` that of
    the values. Where no value can be missing, both are one total, and the difference is 0.
    """

    column: str = ""
    values: Fraction = Fraction(1)

    @property
    def typed(self) -> str:
        return f"missing({self.column!r})"

    @property
    def words(self) -> str:
        return f"number of missing values of {self.column}"

    def weight(self, total: Total) -> Fraction:
        return self.share if total.column is None else self.values

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        column = unit_limits.table.column(self.column, self.typed)
        rows, values = row_total(unit_limits), value_total(column, unit_limits)
        return ReleasedColumn(
            name, Formula.MISSING, ((f"{name}.rows", rows), (f"{name}.values", values))
        )
