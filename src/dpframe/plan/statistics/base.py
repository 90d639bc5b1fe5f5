"""Aggregates, and the released column that follows from the noisy totals of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, NoReturn

from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, UnknownAttribute, UnsupportedOperation
from dpframe.fields import Word
from dpframe.plan.columns import Auto, Bounds, Column, Limits
from dpframe.plan.hints import AGGREGATE, NO_NUMBER
from dpframe.plan.totals import Total, bounds_of, number_column
from dpframe.plan.types import TIMES
from dpframe.plan.unit_limits import UnitLimits
from dpframe.usage import Hints, NoNumber


class Formula(Word):
    """A rule by which a released column follows from its totals.
    Each has an estimator in `release.estimators`.
    """

    COUNT = "count"
    MISSING = "missing"
    SUM = "sum"
    MEAN = "mean"
    VAR = "var"
    STD = "std"
    SKEW = "skew"
    KURTOSIS = "kurtosis"
    GEOMETRIC_MEAN = "geometric_mean"
    RATIO = "ratio"
    COV = "cov"
    CORR = "corr"
    QUANTILE = "quantile"
    MODE = "mode"
    CDF = "cdf"


@dataclass(frozen=True)
class Regressors:
    """The subject of a regression's moments: columns with their bounds, the
    outcome last, and the coefficients.

    `same` has groups of columns of which a row has at most one true. `entries` are the names and
    totals of the moments.
    """

    among: tuple[tuple[str, Bounds], ...]
    same: tuple[tuple[str, ...], ...]
    terms: tuple[str, ...]
    entries: tuple[tuple[str, Total], ...]


@dataclass(frozen=True)
class ReleasedColumn:
    """A released column: its formula, and the totals that the formula needs, by name.

    "count": the total, rounded to an integer. "missing": rows less values. "sum": the total.
    "mean": centre + sum / count, drawn to the centre where noise is all there is (see
    `release.estimators.mean.mean_of`) and kept inside `bounds`. "var", "std": from the sum, the sum
    of squares and the count; `ddof` as in pandas and Polars. "skew": from these and the sum of
    cubes; "kurtosis": and that of fourth powers. "geometric_mean": e to the mean of the logarithms.
    "quantile", "mode": the value of the chosen candidate; where the total is a tree, the value at
    the `rank`. "cdf": the part of the values up to the `point` (column unit). With `dtype` the
    result is a time of that type: `ticks` of it for each unit of the column.
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
    # second moments, where the sampling of people is covered
    moments: tuple[tuple[str, Total], ...] = ()
    rank: Fraction | None = None
    point: float | None = None
    # of the number of rows of a regression, which has all influences
    regressors: Regressors | None = None

    def under(self, limits: Limits | None) -> ReleasedColumn:
        """The column with totals under limits of its own; None for the limits of the question."""

        def limited(totals: tuple[tuple[str, Total], ...]) -> tuple[tuple[str, Total], ...]:
            return tuple((name, replace(total, limits=limits)) for name, total in totals)

        return (
            self
            if limits is None
            else replace(self, totals=limited(self.totals), moments=limited(self.moments))
        )

    @property
    def total(self) -> Total:
        """The first total, or the only one."""
        return self.totals[0][1]

    @property
    def ends(self) -> tuple[float, float]:
        """The bounds as floats (column unit)."""
        return self.ends_from(Fraction(0))

    def ends_from(self, place: Fraction) -> tuple[float, float]:
        """The distances of the bounds from a place, each rounded once (column unit)."""
        assert self.bounds is not None
        low, high = (float(Fraction(end) - place) for end in self.bounds)
        return low, high

    @property
    def single(self) -> bool:
        """Whether it is one total: a count or a sum."""
        return self.formula in (Formula.COUNT, Formula.SUM) and not self.derived

    @property
    def derived(self) -> bool:
        """Whether it follows from several totals. The first is a centred sum, the last a count."""
        return len(self.totals) > 1


def time_type(column: Column) -> DType | None:
    """The type of a column of times, None for numbers."""
    return column.domain.dtype if column.kind in TIMES else None


def typed_bounds(bounds: Bounds | Auto | None) -> str:
    """Bounds as the user typed them."""
    if bounds is None:
        return ""
    return f", bounds={bounds.typed if isinstance(bounds, Auto) else tuple(bounds)}"


def mean_instead(top: Aggregate | str, bottom: Aggregate) -> str:
    """The line to type for the quotient of a sum, or a column, and a
    number of rows, values or units.

    Rows without a value are counted by count(), and not by a mean.
    """
    of = top.typed[4:-1] if isinstance(top, Aggregate) else repr(top)
    column = of.partition(",")[0]
    if bottom.typed == "count_units()":
        return (
            "a sum over the number of units is the mean of their totals: "
            f"frame.per_unit(total=dp.sum({column})).mean('total', bounds=(0, 100))."
        )
    rows = f" With rows that have no value, as 0: frame.fill_null({column}, 0) before." * (
        bottom.typed == "count()"
    )
    return f"a sum over the number of its values is a mean: dp.mean({of}).{rows}"


@dataclass(frozen=True, repr=False)
class Aggregate(NoNumber):
    """A statistic to ask of each group. `share` is its weight when the price is split.

    `limits` are limits on one unit for this column alone. Those that were not typed here are those
    of the question.
    """

    _instead: ClassVar[str] = NO_NUMBER

    share: Fraction = Fraction(1)
    limits: Limits = field(default=Limits(), kw_only=True)

    if not TYPE_CHECKING:  # a type checker refuses them by itself
        __float__ = __int__ = NoNumber.__add__

        def __truediv__(self, other: object) -> NoReturn:
            if not isinstance(other, Aggregate):
                raise InvalidArgument(self._instead)
            if self.typed.startswith("sum(") and other.typed.startswith("count"):
                raise InvalidArgument(f"{self!r} / {other!r}: {mean_instead(self, other)}")
            raise InvalidArgument(
                f"{self!r} / {other!r}: the quotient of two sums is dp.ratio({self!r}, {other!r}). "
                "Others are computed after the release, from its table."
            )

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            advice = f" {AGGREGATE[name]}" if name in AGGREGATE else ""
            raise UnknownAttribute(f"An aggregate has no {name!r}.{advice}")

    @property
    def typed(self) -> str:
        """As the user typed it, without share and limits."""
        raise NotImplementedError

    @property
    def limited(self) -> str:
        """As the user typed it, with limits of its own."""
        return (
            f"{self.typed[:-1]}, {self.limits.typed})".replace("(, ", "(")
            if self.limits.typed
            else self.typed
        )

    @property
    def words(self) -> str:
        """The statistic as people say it: "mean of spend"."""
        raise NotImplementedError

    @property
    def narrowing(self) -> Fraction:
        """The part of the price for which the release narrows
        bounds before it measures; mostly 0.
        """
        return Fraction(0)

    def ends(self, output: ReleasedColumn) -> tuple[tuple[str, Bounds], ...]:
        """The columns whose bounds the release may narrow, with their bounds; mostly none."""
        return ()

    def within(self, bounds: Mapping[str, Bounds]) -> Aggregate:
        """The aggregate with these bounds of columns, where the release was to choose them."""
        if not isinstance(getattr(self, "bounds", None), Auto):
            return self
        return replace(self, bounds=bounds[self.column])  # type: ignore[attr-defined, call-arg]

    def weight(self, total: Total) -> Fraction:
        """The weight of one of its totals when the price is split."""
        return self.share

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        """The released column, or a typed error when it cannot be private as asked."""
        raise NotImplementedError

    def columns(self, name: str) -> Aggregates:
        """The aggregates of the released columns that this one asks for, by name:
        itself, unless it is `Several`.
        """
        return ((name, self),)

    def alias(self, name: str) -> Named:
        """A name for the released column: `agg(dp.count().alias("n"))`, as in Polars."""
        return Named(self, name)

    def __repr__(self) -> str:
        if self.share == 1:
            return f"dp.{self.limited}"
        return f"dp.{self.limited[:-1]}, share={float(self.share):g})".replace("(, ", "(")


# statistics with the names of their released columns
Aggregates = tuple[tuple[str, Aggregate], ...]


@dataclass(frozen=True)
class Named(Hints):
    """A statistic with the name of its released column."""

    aggregate: Aggregate
    name: str


@dataclass(frozen=True, repr=False)
class BoundedStatistic(Aggregate):
    """A statistic of one column of numbers, whose values are clipped to bounds.
    `verb` and `noun` are its names.
    """

    verb: ClassVar[str]
    noun: ClassVar[str]
    column: str = ""
    bounds: Bounds | Auto | None = None

    @property
    def typed(self) -> str:
        return f"{self.verb}({self.column!r}{typed_bounds(self.bounds)}{self.typed_too})"

    @property
    def typed_too(self) -> str:
        """The other arguments as the user typed them: `, ddof=0`."""
        return ""

    @property
    def words(self) -> str:
        return f"{self.noun} of {self.column}"

    def read(self, unit_limits: UnitLimits, *times: str, other: str = "") -> tuple[Column, Bounds]:
        """The column and the bounds that its values are clipped to;
        see `number_column` and `bounds_of`.
        """
        column = number_column(self.column, unit_limits, *times, other=other)
        return column, bounds_of(column, self.bounds, self.column, unit_limits)


@dataclass(frozen=True, repr=False)
class Several(Aggregate):
    """Several released columns of one statistic; each is named after
    this one and a label: `wage_0.25`.
    """

    parts: Aggregates = ()

    @property
    def typed(self) -> str:
        return ", ".join(part.typed for _, part in self.parts)

    @property
    def limited(self) -> str:
        return ", ".join(part.limited for _, part in self.parts)

    @property
    def words(self) -> str:
        return ", ".join(part.words for _, part in self.parts)

    def columns(self, name: str) -> Aggregates:
        return tuple((f"{name}_{label}", part) for label, part in self.parts)

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        raise UnsupportedOperation(
            f"{name!r}: this place takes one column, and {len(self.parts)} are asked for."
        )
