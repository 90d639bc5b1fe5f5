"""The aggregates: which noisy totals each of them needs, and how its released column follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, InvalidBounds, UnboundedContribution, WrongType
from dpframe.plan.columns import Auto, Bounds, Column
from dpframe.plan.keys import read_keys
from dpframe.plan.totals import (
    Total,
    bounds_of,
    cube_total,
    distinct_total,
    in_ticks,
    is_whole,
    log_total,
    mode_total,
    number_column,
    rank_total,
    row_total,
    square_total,
    sum_total,
    unit_sum_total,
    units_total,
    value_total,
)
from dpframe.plan.types import TIMES, Kind, Scalar, check_key, kind, mean_type, show
from dpframe.plan.unit_limits import UnitLimits

__all__ = [
    "Aggregate",
    "Count",
    "CountDistinct",
    "CountUnits",
    "Formula",
    "GeometricMean",
    "Mean",
    "Mode",
    "Quantile",
    "ReleasedColumn",
    "Skew",
    "Sum",
    "Var",
]


class Formula(StrEnum):
    """How a released column follows from its totals. Each formula has an estimator in `release.estimators`."""

    COUNT = "count"
    SUM = "sum"
    MEAN = "mean"
    VAR = "var"
    STD = "std"
    SKEW = "skew"
    GEOMETRIC_MEAN = "geometric_mean"
    RATIO = "ratio"
    COV = "cov"
    CORR = "corr"
    QUANTILE = "quantile"
    MODE = "mode"

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True)
class ReleasedColumn:
    """A released column: its formula, and the totals that the formula needs, by name.

    "count": the total, rounded to an integer. "sum": the total. "mean": centre + sum / count, drawn
    to the centre where noise is all there is (see `release.estimators.formulas.mean_of`) and kept inside `bounds`.
    "var", "std": from the sum, the sum of squares and the count; `ddof` as in pandas and Polars. "skew": from these and
    the sum of cubes.
    "geometric_mean": e to the mean of the logarithms. "ratio": a sum over a sum; with `bounds` measured from `about`
    and kept inside the bounds. "cov", "corr": from sums of two columns, of their products, for "corr" of their squares,
    and a count; `bounds` are those of the first, and `bounds_beside` those of the second.
    "quantile", "mode": the value of the chosen candidate. With `dtype` the result is a time of that type: `ticks` of it
    for each unit of the column.
    """

    name: str
    formula: Formula
    totals: tuple[tuple[str, Total], ...]
    whole: bool = True
    bounds: Bounds | None = None
    ddof: int = 0
    dtype: DType | None = None
    ticks: int = 1
    bounds_beside: Bounds | None = None
    about: Fraction = Fraction(0)

    @property
    def derived(self) -> bool:
        """Whether it follows from several totals. The first is a sum, the last a count or another divisor."""
        return len(self.totals) > 1


def _time_type(column: Column) -> DType | None:
    """The type of a column of times, None for numbers."""
    return column.domain.dtype if kind(column.domain.dtype) in TIMES else None


def _typed_bounds(bounds: Bounds | Auto | None) -> str:
    """Bounds as the user typed them."""
    if bounds is None:
        return ""
    return f", bounds={bounds.typed if isinstance(bounds, Auto) else tuple(bounds)}"


@dataclass(frozen=True, repr=False)
class Aggregate:
    """A statistic to ask of each group. `share` is its weight when the price is split."""

    share: Fraction = Fraction(1)

    @property
    def typed(self) -> str:
        """As the user typed it."""
        raise NotImplementedError

    @property
    def words(self) -> str:
        """What it is, as people say it: "mean of spend"."""
        raise NotImplementedError

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        """The released column, or a typed error when it cannot be private as asked."""
        raise NotImplementedError

    def __repr__(self) -> str:
        if self.share == 1:
            return f"dp.{self.typed}"
        return f"dp.{self.typed[:-1]}, share={float(self.share):g})".replace("(, ", "(")


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
            return ReleasedColumn(name, Formula.COUNT, ((name, row_total(unit_limits, self.typed)),))
        column = unit_limits.table.column(self.column, self.typed)
        if kind(column.domain.dtype) == Kind.OTHER:
            raise WrongType(f"{self.typed}: a column of type {show(column.domain.dtype)} cannot be read.")
        return ReleasedColumn(name, Formula.COUNT, ((name, value_total(column, unit_limits, self.typed)),))


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
        return ReleasedColumn(name, Formula.COUNT, ((name, units_total(unit_limits, self.typed)),))


@dataclass(frozen=True, repr=False)
class Sum(Aggregate):
    """Sum of a column: rows clipped to `bounds`, or each unit's total per group clipped to `unit_bounds`."""

    column: str = ""
    bounds: Bounds | Auto | None = None
    unit_bounds: Bounds | None = None

    @property
    def typed(self) -> str:
        limit = _typed_bounds(self.bounds)
        limit += f", unit_bounds={tuple(self.unit_bounds)}" if self.unit_bounds else ""
        return f"sum({self.column!r}{limit})"

    @property
    def words(self) -> str:
        return f"sum of {self.column}"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        column = number_column(self.column, unit_limits, self.typed, "duration", other="mean")
        whole = is_whole(column)
        if self.unit_bounds is None:
            bounds = bounds_of(column, self.bounds, self.column, self.typed)
            total = sum_total(column, bounds, unit_limits, self.typed, centred=False)
        else:
            if not unit_limits.table.unit:
                raise UnboundedContribution(
                    f"{self.typed}: unit_bounds clips each unit's total, and dp.Rows(k) does not say whose rows are "
                    "whose. Use bounds=, or protect the table with unit='...'."
                )
            total = unit_sum_total(column, in_ticks(self.unit_bounds, column, self.typed), unit_limits, self.typed)
        whole = whole and total.grid.step == 1
        return ReleasedColumn(name, Formula.SUM, ((name, total),), whole=whole, dtype=_time_type(column))


@dataclass(frozen=True, repr=False)
class Mean(Aggregate):
    """Mean of the values that are not missing: a sum measured from the middle of the bounds, and a count."""

    column: str = ""
    bounds: Bounds | Auto | None = None

    @property
    def typed(self) -> str:
        return f"mean({self.column!r}{_typed_bounds(self.bounds)})"

    @property
    def words(self) -> str:
        return f"mean of {self.column}"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        column = number_column(self.column, unit_limits, self.typed, *TIMES)
        bounds = bounds_of(column, self.bounds, self.column, self.typed)
        total = sum_total(column, bounds, unit_limits, self.typed, centred=True)
        count = value_total(column, unit_limits, self.typed)
        dtype, per = mean_type(column.domain.dtype)
        parts = ((f"{name}.sum", total), (f"{name}.count", count))
        return ReleasedColumn(name, Formula.MEAN, parts, False, bounds, dtype=dtype, ticks=per)


@dataclass(frozen=True, repr=False)
class Var(Aggregate):
    """Variance, or with `root` the standard deviation, of the values that are not missing."""

    column: str = ""
    bounds: Bounds | Auto | None = None
    ddof: int = 1
    root: bool = False

    @property
    def typed(self) -> str:
        limit = _typed_bounds(self.bounds)
        limit += "" if self.ddof == 1 else f", ddof={self.ddof}"
        return f"{'std' if self.root else 'var'}({self.column!r}{limit})"

    @property
    def words(self) -> str:
        return f"{'standard deviation' if self.root else 'variance'} of {self.column}"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        column = number_column(self.column, unit_limits, self.typed, *(TIMES if self.root else ()), other="std")
        bounds = bounds_of(column, self.bounds, self.column, self.typed)
        total = sum_total(column, bounds, unit_limits, self.typed, centred=True)
        squares = square_total(column, bounds, unit_limits, self.typed)
        count = value_total(column, unit_limits, self.typed)
        parts = ((f"{name}.sum", total), (f"{name}.squares", squares), (f"{name}.count", count))
        dtype, per = mean_type(column.domain.dtype)
        dtype = dtype and nw.Duration(getattr(dtype, "time_unit", "us"))
        return ReleasedColumn(
            name, Formula.STD if self.root else Formula.VAR, parts, False, bounds, self.ddof, dtype, per
        )


@dataclass(frozen=True, repr=False)
class Skew(Aggregate):
    """Skewness of the values that are not missing: sums of distances, of their squares and cubes, and a count."""

    column: str = ""
    bounds: Bounds | Auto | None = None

    @property
    def typed(self) -> str:
        return f"skew({self.column!r}{_typed_bounds(self.bounds)})"

    @property
    def words(self) -> str:
        return f"skewness of {self.column}"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        if isinstance(self.bounds, Auto):
            raise InvalidBounds(
                f"{self.typed}: bounds that are chosen from the data cut off the tails, which skewness is about. "
                "Type bounds=(low, high), such as (0, 100)."
            )
        column = number_column(self.column, unit_limits, self.typed)
        bounds = bounds_of(column, self.bounds, self.column, self.typed)
        cubes = cube_total(column, bounds, unit_limits, self.typed)
        total = sum_total(column, bounds, unit_limits, self.typed, centred=True)
        squares = square_total(column, bounds, unit_limits, self.typed)
        count = value_total(column, unit_limits, self.typed)
        sums = ((f"{name}.sum", total), (f"{name}.squares", squares), (f"{name}.cubes", cubes))
        return ReleasedColumn(name, Formula.SKEW, (*sums, (f"{name}.count", count)), False, bounds)


@dataclass(frozen=True, repr=False)
class GeometricMean(Aggregate):
    """e to the mean of logarithms: a sum of logarithms measured from the middle of their bounds, and a count."""

    column: str = ""
    bounds: Bounds | Auto | None = None

    @property
    def typed(self) -> str:
        return f"geometric_mean({self.column!r}{_typed_bounds(self.bounds)})"

    @property
    def words(self) -> str:
        return f"geometric mean of {self.column}"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        if isinstance(self.bounds, Auto):
            raise InvalidBounds(
                f"{self.typed}: bounds that are chosen from the data may reach 0, which has no logarithm. "
                "Type bounds=(low, high) with low above 0, such as (1, 100)."
            )
        column = number_column(self.column, unit_limits, self.typed, other="mean")
        bounds = bounds_of(column, self.bounds, self.column, self.typed)
        total = log_total(column, bounds, unit_limits, self.typed)
        count = value_total(column, unit_limits, self.typed)
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
        column = unit_limits.table.column(self.column, self.typed)
        if kind(column.domain.dtype) == Kind.OTHER:
            raise WrongType(f"{self.typed}: a column of type {show(column.domain.dtype)} cannot be read.")
        return ReleasedColumn(name, Formula.COUNT, ((name, distinct_total(column, unit_limits, self.typed)),))


@dataclass(frozen=True, repr=False)
class Quantile(Aggregate):
    """The value that a part q of the rows does not exceed: 0 is the minimum, 1/2 the median, 1 the maximum."""

    column: str = ""
    q: Fraction = Fraction(1, 2)
    bounds: Bounds | Auto | None = None
    verb: str = "quantile"

    @property
    def typed(self) -> str:
        q = f", {float(self.q):g}" if self.verb == "quantile" else ""
        return f"{self.verb}({self.column!r}{q}{_typed_bounds(self.bounds)})"

    @property
    def words(self) -> str:
        named = {Fraction(0): "minimum", Fraction(1, 2): "median", Fraction(1): "maximum"}
        return f"{named.get(self.q, f'quantile {float(self.q):g}')} of {self.column}"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        column = number_column(self.column, unit_limits, self.typed, *TIMES)
        bounds = bounds_of(column, self.bounds, self.column, self.typed)
        total = rank_total(column, bounds, self.q, unit_limits, self.typed)
        assert total.candidates is not None
        whole = total.candidates.whole and (total.candidates.fits or _time_type(column) is not None)
        return ReleasedColumn(name, Formula.QUANTILE, ((name, total),), whole, bounds, dtype=_time_type(column))


@dataclass(frozen=True, repr=False)
class Mode(Aggregate):
    """The most frequent of the listed values of a column; with `most`, the `most` most frequent ones, in order."""

    column: str = ""
    keys: tuple[Scalar | None, ...] | None = None
    most: int | None = None

    @property
    def typed(self) -> str:
        return f"mode({self.column!r})" if self.most is None else f"top_k({self.column!r}, {self.most})"

    @property
    def words(self) -> str:
        most = "most frequent value" if self.most is None else f"{self.most} most frequent values"
        return f"{most} of {self.column}"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        column = unit_limits.table.column(self.column, self.typed)
        if kind(column.domain.dtype) == Kind.OTHER:
            raise WrongType(f"{self.typed}: a column of type {show(column.domain.dtype)} cannot be read.")
        check_key(column.domain.dtype, self.column, self.typed)
        keys = read_keys(self.keys, (self.column,), (column.domain,), self.typed)
        if keys is None:
            raise InvalidArgument(
                f"{self.typed}: list the values to choose from, without looking at the data: "
                f"{self.typed[:-1]}, keys=[...]). Where nobody can list them, release their counts and sort those: "
                f"group_by({self.column!r}, max_groups=3, max_rows_per_group=2).count()"
                ".release(epsilon=0.1, delta=1e-6)."
            )
        (values,) = keys.levels
        if self.most is not None and self.most > len(values):
            raise InvalidArgument(f"{self.typed}: only {len(values)} values are listed.")
        total = mode_total(column, values, self.most or 1, unit_limits, self.typed)
        return ReleasedColumn(name, Formula.MODE, ((name, total),), whole=False)
