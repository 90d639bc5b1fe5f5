"""Statistics of two columns: ratios, weighted means, covariances and
correlations, with the totals they need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from dpframe.errors import InvalidArgument, InvalidBounds, WrongType
from dpframe.fields import Names
from dpframe.plan.columns import Auto, Bounds, Column
from dpframe.plan.moments import influence_total
from dpframe.plan.statistics import Aggregate, Formula, Regressors, ReleasedColumn, Sum
from dpframe.plan.totals import (
    Factor,
    bounds_of,
    check_squares,
    from_middle,
    is_whole,
    middle_of,
    number_column,
    power_total,
    product_total,
    sum_total,
    value_total,
    without_bounds,
)
from dpframe.plan.types import Kind
from dpframe.plan.unit_limits import UnitLimits

NARROWING = Fraction(1, 5)  # of the price, for narrower bounds: see `release.auto.narrowing`
# width over size of bounds, below which floats hardly tell numbers between them apart
_CLOSE = 1e-9
Ends = tuple[tuple[str, Bounds], ...]  # columns with their bounds


def has_room(column: Column, ends: Bounds) -> bool:
    """Whether bounds can be narrower: not those of true and false, of few whole
    numbers, or close beside their size.
    """
    if column.kind == Kind.BOOLEAN or ends.upper - ends.lower <= _CLOSE * ends.magnitude:
        return False
    return not is_whole(column) or (
        ends.upper - ends.lower >= 4 and all(float(end).is_integer() for end in ends)
    )


def check_room(verb: str, columns: Iterable[tuple[Column, Bounds]]) -> None:
    """Errors: InvalidArgument where no bounds can be narrower."""
    if not any(has_room(column, ends) for column, ends in columns):
        raise InvalidArgument(
            f"{verb}: narrow=True finds narrower bounds inside the typed ones, and no column here "
            "has room for them: true and false, categories, few whole numbers and bounds that are "
            "not whole in a column of whole numbers stay as they are. Leave narrow= out; the "
            "answer then has all of the price."
        )


@dataclass(frozen=True, repr=False)
class Narrows(Aggregate):
    """A statistic of several columns.
    With `narrow`, the release first narrows the bounds of these columns.
    """

    narrow: bool = field(default=False, kw_only=True)

    @property
    def narrowing(self) -> Fraction:
        return NARROWING if self.narrow else Fraction(0)


def _typed(bounds: object, name: str) -> str:
    """Bounds as the user typed them; nothing where none were."""
    return (
        ""
        if bounds is None
        else f", {name}={tuple(bounds) if isinstance(bounds, tuple) else bounds!r}"
    )


def _read(
    name: str, bounds: Bounds | Auto | None, unit_limits: UnitLimits
) -> tuple[Column, Bounds]:
    """A column of numbers and its bounds.

    Errors: InvalidBounds for bounds that are to be chosen from the data; those of `number_column`
            and `bounds_of`
    """
    if isinstance(bounds, Auto):
        raise InvalidBounds(
            f"{unit_limits.what}: dp.Auto() does not choose bounds of two columns at once. Type "
            "them, as (0, 100)."
        )
    column = number_column(name, unit_limits)
    return column, bounds_of(column, bounds, name, unit_limits)


@dataclass(frozen=True, repr=False)
class Ratio(Aggregate):
    """A sum over a sum, each with its own bounds."""

    top: Sum = field(default_factory=Sum)
    bottom: Sum = field(default_factory=Sum)

    @property
    def typed(self) -> str:
        return f"ratio(dp.{self.top.typed}, dp.{self.bottom.typed})"

    @property
    def words(self) -> str:
        return f"{self.top.words} over {self.bottom.words}"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        for part in (self.top, self.bottom):
            if isinstance(part.bounds, Auto):
                raise InvalidBounds(
                    f"{self.typed}: dp.Auto() chooses no bounds of a ratio. Type them, as (0, 100)."
                )
        top, bottom = (
            part.output(name, replace(unit_limits, what=part.typed))
            for part in (self.top, self.bottom)
        )
        if top.dtype is not None or bottom.dtype is not None:
            raise WrongType(
                f"{self.typed}: needs numbers, not durations. Make numbers of them first: "
                "with_columns(hours=dp.col('x').dt.total_seconds() / 3600)."
            )
        ((_, over),), ((_, under),) = top.totals, bottom.totals
        if over.key == under.key:
            raise InvalidArgument(
                f"{self.typed}: both sums are the same one, so the ratio is 1 whatever the rows "
                "are. Type two other ones, as in dp.ratio(dp.sum('revenue', bounds=(0, 100)), "
                "dp.sum('visits', bounds=(0, 10)))."
            )
        if under.grid.ends[0] < 0:
            raise InvalidBounds(
                f"{self.typed}: its bounds let the second sum be negative, and a ratio divides by "
                "that sum. Give the second sum bounds from 0 on, such as bounds=(0, 100)."
            )
        if not under.grid.magnitude and not under.grid.centre:
            raise InvalidBounds(
                f"{self.typed}: with these bounds the sum below is 0. Give it bounds such as (0, "
                "100)."
            )
        check_squares((over, under), self.typed)
        totals = ((f"{name}.sum", over), (f"{name}.divisor", under))
        return ReleasedColumn(name, Formula.RATIO, totals, False)


@dataclass(frozen=True, repr=False)
class WeightedMean(Aggregate):
    """A sum of weighted distances from the middle of the bounds over the sum of the weights."""

    column: str = ""
    weights: str = ""
    bounds: Bounds | Auto | None = None
    weight_bounds: Bounds | Auto | None = None

    @property
    def typed(self) -> str:
        limit = _typed(self.bounds, "bounds") + _typed(self.weight_bounds, "weight_bounds")
        return f"mean({self.column!r}, weights={self.weights!r}{limit})"

    @property
    def words(self) -> str:
        return f"mean of {self.column}, weighted by {self.weights}"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        column, bounds = _read(self.column, self.bounds, unit_limits)
        weights, reach = _read(self.weights, self.weight_bounds, unit_limits)
        if reach.lower < 0:
            raise InvalidBounds(
                f"{self.typed}: a weight is 0 or more. Give the weights bounds from 0 on: "
                "weight_bounds=(0, 100)."
            )
        weighed = product_total(
            (from_middle(column, bounds), Factor(weights, reach, Fraction(0))), unit_limits
        )
        whole = sum_total(weights, reach, unit_limits, centred=False, present=(column,))
        check_squares((weighed, whole), self.typed)
        totals = ((f"{name}.sum", weighed), (f"{name}.weights", whole))
        return ReleasedColumn(name, Formula.RATIO, totals, False, bounds, about=middle_of(bounds))


@dataclass(frozen=True, repr=False)
class Pair(Narrows):
    """A statistic of two columns over the rows in which both have a value."""

    column: str = ""
    beside: str = ""
    bounds: Bounds | Auto | None = None
    bounds_beside: Bounds | Auto | None = None

    def ends(self, output: ReleasedColumn) -> Ends:
        both = (self.column, output.bounds), (self.beside, output.bounds_beside)
        return tuple((name, bounds) for name, bounds in both if bounds is not None)

    def within(self, bounds: Mapping[str, Bounds]) -> Pair:
        """The statistic with narrower bounds of its columns, where it asks for them."""
        if not self.narrow:
            return self
        first, second = (
            bounds.get(self.column, self.bounds),
            bounds.get(self.beside, self.bounds_beside),
        )
        return replace(self, bounds=first, bounds_beside=second, narrow=False)


@dataclass(frozen=True, repr=False)
class Cov(Pair):
    """Covariance of two columns over the rows in which both have a value."""

    ddof: int = 1

    @property
    def typed(self) -> str:
        return f"cov({_pair_typed(self)}{'' if self.ddof == 1 else f', ddof={self.ddof}'})"

    @property
    def words(self) -> str:
        return f"covariance of {self.column} and {self.beside}"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        return _pair_output(self, Formula.COV, name, unit_limits, self.ddof)


@dataclass(frozen=True, repr=False)
class Corr(Pair):
    """Pearson's correlation of two columns over the rows in which both have a value."""

    @property
    def typed(self) -> str:
        return f"corr({_pair_typed(self)})"

    @property
    def words(self) -> str:
        return f"correlation of {self.column} and {self.beside}"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        return _pair_output(self, Formula.CORR, name, unit_limits, 0)


def _pair_typed(pair: Pair) -> str:
    """The columns and bounds of a pair as the user typed them."""
    typed = {
        name: tuple(bounds)
        for name, bounds in ((pair.column, pair.bounds), (pair.beside, pair.bounds_beside))
        if isinstance(bounds, tuple)
    }
    narrow = ", narrow=True" if pair.narrow else ""
    return f"{pair.column!r}, {pair.beside!r}{f', bounds={typed}' if typed else ''}{narrow}"


def _pair_output(
    pair: Pair, formula: Formula, name: str, unit_limits: UnitLimits, ddof: int
) -> ReleasedColumn:
    """Sums of both columns, of their products and for a correlation of their squares,
    and a count, of the same rows.
    """
    if any(isinstance(bounds, Auto) for bounds in (pair.bounds, pair.bounds_beside)):
        verb = pair.typed.partition("(")[0]
        raise InvalidBounds(
            f"{pair.typed}: dp.Auto() does not choose bounds of two columns at once. Type wide "
            f"ones; narrower ones inside them are found by {verb}({pair.column!r}, "
            f"{pair.beside!r}, bounds={{{pair.column!r}: (0, 100), {pair.beside!r}: (0, 100)}}, "
            "narrow=True)."
        )
    lines = []
    for title, typed in ((pair.column, pair.bounds), (pair.beside, pair.bounds_beside)):
        own = number_column(title, unit_limits).domain.bounds
        if typed is None and own is None:
            lines.append(title)
    if lines:
        raise without_bounds(
            lines[0],
            pair.typed,
            " of both columns, with limits you know without the data: "
            f"bounds={{{pair.column!r}: (0, 100), {pair.beside!r}: (0, 100)}}.",
        )
    x, bounds = _read(pair.column, pair.bounds, unit_limits)
    y, beside = _read(pair.beside, pair.bounds_beside, unit_limits)
    if pair.narrow:
        check_room(pair.typed, ((x, bounds), (y, beside)))
    first = sum_total(x, bounds, unit_limits, centred=True, present=(y,))
    second = sum_total(y, beside, unit_limits, centred=True, present=(x,))
    product = product_total((from_middle(x, bounds), from_middle(y, beside)), unit_limits)
    widths = [end.upper - end.lower for end in (bounds, beside)] if formula is Formula.CORR else []
    if any(width and not 1e-65 <= width <= 1e65 for width in widths):
        raise InvalidBounds(
            f"{pair.typed}: products of squares of values this far apart, or this close together, "
            "are beyond floats. Give bounds that are from 1e-65 to 1e65 apart."
        )
    squares = (
        (
            (f"{name}.squares", power_total(x, bounds, 2, unit_limits, (y,))),
            (f"{name}.squares_beside", power_total(y, beside, 2, unit_limits, (x,))),
        )
        if formula is Formula.CORR
        else ()
    )
    count = value_total(x, unit_limits, (y,))
    sums = ((f"{name}.sum", first), (f"{name}.sum_beside", second), (f"{name}.products", product))
    totals = (*sums, *squares, (f"{name}.count", count))
    return ReleasedColumn(name, formula, totals, False, bounds, ddof, bounds_beside=beside)


@dataclass(frozen=True, repr=False)
class Moment(Narrows):
    """One entry of a matrix of moments, over the rows in which all
    columns of the matrix have a value.

    `of` has the columns that are multiplied: none for the number of rows, one for a sum, two for a
    sum of products. `among` has all columns of the matrix with their bounds. The number of rows of
    a regression has the other `entries` too, the `same` groups of columns and the names of the
    coefficients, whose influences it brings. With `narrow`, it asks the release to narrow the
    bounds first.
    """

    of: Names = ()
    among: tuple[tuple[str, Bounds], ...] = ()
    entries: tuple[tuple[str, Moment], ...] = ()
    same: tuple[Names, ...] = ()
    terms: Names = ()

    def ends(self, output: ReleasedColumn) -> Ends:
        return self.among

    def within(self, bounds: Mapping[str, Bounds]) -> Moment:
        """The moment with narrower bounds of some columns."""
        among = tuple((title, bounds.get(title, typed)) for title, typed in self.among)
        entries = tuple((title, entry.within(bounds)) for title, entry in self.entries)
        return replace(self, among=among, entries=entries, narrow=False)

    @property
    def typed(self) -> str:
        return f"moment({', '.join(map(repr, self.of))})"

    @property
    def words(self) -> str:
        return f"sum of {'·'.join(self.of)}" if self.of else "number of rows"

    def output(self, name: str, unit_limits: UnitLimits) -> ReleasedColumn:
        unit_limits = replace(unit_limits, choosable=False, what=unit_limits.verb.partition("(")[0])
        read = {title: _read(title, bounds, unit_limits) for title, bounds in self.among}
        present = tuple(column for column, _ in read.values())
        if not self.of:
            total = value_total(present[0], unit_limits, present[1:])
            rows = ReleasedColumn(name, Formula.SUM, ((name, total),), False)
            return self._with_influences(rows, unit_limits) if self.terms else rows
        (x, bounds), (y, beside) = read[self.of[0]], read[self.of[-1]]
        others = tuple(column for column in present if column.id not in (x.id, y.id))
        if len(self.of) == 1:
            total = sum_total(x, bounds, unit_limits, centred=True, present=others)
        elif x.id == y.id:
            total = power_total(x, bounds, 2, unit_limits, others)
        else:
            total = product_total(
                (from_middle(x, bounds), from_middle(y, beside)), unit_limits, others
            )
        return ReleasedColumn(
            name, Formula.SUM, ((name, total),), False, bounds, bounds_beside=beside
        )

    def _with_influences(self, rows: ReleasedColumn, unit_limits: UnitLimits) -> ReleasedColumn:
        """The number of rows with the squared influences of each coefficient beside it."""
        others = [
            pair
            for title, entry in self.entries
            for pair in entry.output(title, unit_limits).totals
        ]
        entries = (*others, *rows.totals)
        totals = [total for _, total in entries]
        moments = tuple(
            (f"{term}.influence", influence_total(totals, unit_limits, place))
            for place, term in enumerate(self.terms)
        )
        return replace(
            rows, moments=moments, regressors=Regressors(self.among, self.same, self.terms, entries)
        )
