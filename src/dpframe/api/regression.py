"""Matrices of covariances and correlations, and linear regressions,
as methods of a protected frame.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any, Generic, NamedTuple, TypeVar, Unpack

import narwhals as nw
import polars as pl

from dpframe.api.arguments import (
    Options,
    read_bounds,
    read_limits,
    read_mapping,
    read_name,
    read_names,
    typed_too,
)
from dpframe.api.query import AskedThrough, Query
from dpframe.api.statistics.asking import AskedFrame
from dpframe.engine import Table_co, as_kind
from dpframe.errors import InvalidArgument, InvalidBounds, UnsupportedOperation
from dpframe.plan import (
    QUERY,
    TIMES,
    Aggregates,
    Auto,
    Bounds,
    Covers,
    Kind,
    Table,
    col,
    kind,
    read_covers,
)
from dpframe.plan.declared import check_fact, check_levels
from dpframe.plan.statistics.two_columns import Moment, check_room
from dpframe.plan.steps import source_of
from dpframe.plan.totals import without_bounds
from dpframe.release.kinds.regression import INTERCEPT, MatrixRelease, Regression, moments_of
from dpframe.release.shown import Release
from dpframe.usage import MATRICES, check_flags, explains

R = TypeVar("R")

# the square of the outcome is needed for the residual variance alone
_OF_RESIDUALS = Fraction(1, 4)
_OF_OTHERS = Fraction(1, 2)
_TYPICAL = "if values fill the bounds evenly; assume_rows= says how many"
_ABOUT = {
    Covers.NOISE: "the noise alone",
    Covers.POPULATION: "noise and the sampling of people together",
}
_FOR_OTHERS = {
    Covers.NOISE: " One pair of columns has an interval for the population: agg(r=dp.corr('wage', "
    "'hours', bounds={...}), max_rows=5).release(epsilon=0.1, covers='population').",
    Covers.POPULATION: "",
}


class MomentsQuery(AskedThrough, Generic[R]):
    """A question that is answered by moments of several columns.
    Nothing has been read and nothing paid.
    """

    __slots__ = ("_answer", "_asked", "_covers")
    _habits = QUERY

    def __init__(
        self,
        query: Query[Any],
        answer: Callable[[Release[Any]], R],
        covers: Covers,
        asked: TypicalErrors,
    ) -> None:
        """`covers` is what the intervals of the answer are about."""
        self._query, self._answer, self._covers, self._asked = query, answer, covers, asked

    def release(
        self, epsilon: float | None = None, delta: float | None = None, **options: Unpack[Options]
    ) -> R:
        """Pay, read the rows, draw the noise, and give the answer:
        see `Query.release`, which has the same options.
        """
        if options.pop("ci", None) is not None:
            raise InvalidArgument("release: the answer has its intervals already; leave ci= out.")
        if read_covers(options.pop("covers", self._covers.value)) is not self._covers:
            raise UnsupportedOperation(
                f"release: the intervals of this answer are about {_ABOUT[self._covers]}. Leave "
                f"covers= out, or type covers={self._covers.value!r}.{_FOR_OTHERS[self._covers]}"
            )
        return self._answer(self._query.release(epsilon, delta, **options))

    def accuracy(self, epsilon: Any = None, delta: float | None = None, **options: Any) -> Any:
        """The error to expect at a price, before anything is spent: see `Query.accuracy`.

        Input:  as for `Query.accuracy`: epsilon, delta, rho, alpha, noise; assume_rows: how many
                rows there are
        Output: a row for each correlation, covariance or coefficient: the error of the noise in a
                typical case, where values are spread evenly over the bounds and columns have no
                relation. It is null without assume_rows. Values that fill less of their bounds have
                a larger error, by the square of what they fill. Then a row for each moment that
                these follow from, with errors that hold for any data: the number of rows, each sum,
                and each sum of products
        Errors: those of `release`, without touching the budget
        """
        table, rows = self._query.accuracy(epsilon, delta, **options), options.get("assume_rows")
        moments: pl.DataFrame = nw.from_native(table, eager_only=True).to_polars()
        lines = self._asked.table(moments, None if rows is None else int(rows))
        return as_kind(lines, source_of(self._query._question.step).data.kind)


@dataclass(frozen=True)
class TypicalErrors:
    """The errors of what is asked about some columns, by those of their moments;
    `outcome` is that of a regression.
    """

    verb: str
    bounds: Mapping[str, Bounds]
    outcome: str | None = None

    def table(self, moments: pl.DataFrame, rows: int | None) -> pl.DataFrame:
        """The table of `MomentsQuery.accuracy`, from that of the moments, for each price."""
        prices = moments.columns[: moments.columns.index("column")]
        parts = moments.partition_by(prices, maintain_order=True) if prices else [moments]
        return pl.concat([pl.concat([self._lines(part, prices, rows), part]) for part in parts])

    def _lines(self, moments: pl.DataFrame, prices: list[str], rows: int | None) -> pl.DataFrame:
        """A row for each number that is asked.

        Bound:  let values be even over [-h, h] around the middle of their bounds, of variance h²/3.
                To the first order in the noise, the covariance of columns without relation moves by
                the noise e of their sum of products over n, their correlation by 3e / (n·g·h), and
                a coefficient by 3e / (n·h²), h that of the input
        """
        errors = dict(moments.select("column", "error").iter_rows())
        half = {name: float(one.upper - one.lower) / 2 or 1.0 for name, one in self.bounds.items()}
        lines = []
        for first, second in self._pairs:
            known = next(
                name for name in (f"{first}·{second}", f"{second}·{first}") if name in errors
            )
            size = half[first] * half[second]
            times, least = {
                "corr": (3 / size, 3 * errors[known] / size),
                "cov": (1.0, errors[known] / size),
                "ols": (3 / half[first] ** 2, None),
            }[self.verb]
            error = None if rows is None else errors[known] * times / rows
            name = (
                f"coefficient of {first}"
                if self.verb == "ols"
                else f"{self.verb} of {first} and {second}"
            )
            lines.append(
                (
                    name,
                    None if error is None else min(error, 2.0) if self.verb == "corr" else error,
                    least,
                )
            )
        names, found, least = zip(*lines, strict=True)
        told = {
            "column": names,
            "aggregate": [f"{self.verb}, {_TYPICAL}"] * len(lines),
            "error": found,
            "useful_from": [None if one is None else math.ceil(one) for one in least],
        }
        told |= {name: [moments[name][0]] * len(lines) for name in prices}
        table = pl.DataFrame(
            told, {name: dtype for name, dtype in moments.schema.items() if name in told}
        )
        return pl.concat([moments.clear(), table], how="diagonal")

    @property
    def _pairs(self) -> list[tuple[str, str]]:
        """The pairs of columns that a number is asked of:
        of a regression, each input with the outcome.
        """
        names, last = list(self.bounds), self.outcome
        if last is not None:
            return [(name, last) for name in names if name != last]
        return [
            pair
            for pair in combinations_with_replacement(names, 2)
            if self.verb == "cov" or pair[0] != pair[1]
        ]


@explains("{}({}, max_rows=5).release(epsilon=0.1)", MATRICES)
class FrameMatrices(AskedFrame[Table_co]):
    """Covariances, correlations and regressions of a protected frame."""

    def cov(
        self,
        columns: Sequence[str],
        bounds: Mapping[str, Any] | None = None,
        *,
        max_rows: int | None = None,
        narrow: bool = False,
    ) -> MomentsQuery[MatrixRelease]:
        """Covariance matrix of several columns, over the rows in which all of them have a value.

        Input:  columns, at least two; bounds: a dict from each column to its pair; max_rows as
                elsewhere; narrow: whether the release first finds narrower bounds inside the typed
                ones, as in `ols`
        Output: after `.release(...)` a `MatrixRelease`, whose `.table` has the shape of pandas
        Bound:  one release of a count, of sums and of sums of products: see
                `dpframe.plan.totals.sums.product_total`. The nearest positive semidefinite matrix
                is released, which is post-processing
        """
        return self._matrix("cov", columns, bounds, max_rows, narrow)

    def corr(
        self,
        columns: Sequence[str],
        bounds: Mapping[str, Any] | None = None,
        *,
        max_rows: int | None = None,
        narrow: bool = False,
    ) -> MomentsQuery[MatrixRelease]:
        """Correlation matrix of several columns; see `cov`.

        Input:  columns, bounds, max_rows, narrow: as in `cov`
        """
        return self._matrix("corr", columns, bounds, max_rows, narrow)

    def ols(
        self,
        formula: str | None = None,
        *,
        y: str | None = None,
        x: str | Sequence[str] | None = None,
        bounds: Mapping[str, Any] | None = None,
        keys: Mapping[str, Sequence[Any]] | None = None,
        max_rows: int | None = None,
        narrow: bool = False,
    ) -> MomentsQuery[Regression]:
        """Linear regression by least squares, over the rows in which all columns have a value.

        Input:  formula: "wage ~ education + C(region)", with the extra `formula`; or y and x,
                columns of which those with keys are categories; bounds: a dict from each column of
                numbers to its pair; keys: a dict from each category to its values, listed without
                looking at the data. The first is the reference; rows with others do not count;
                narrow: whether the release first finds narrower bounds inside the typed ones, for
                20% of its price. Noise is then smaller; values beyond these bounds are clipped, and
                the coefficients are those of clipped values
        Output: after `.release(...)` a `Regression`: its `.table` has coefficient, std_error, low
                and high
        Bound:  one release of the second moments of all columns. The intervals hold for noise and
                sampling together. How much one person moves each coefficient is measured too, so
                rows of one person may be alike, and errors of the outcome may vary from row to row.
                They are approximate: see `Regression`. Narrower bounds follow from noisy answers
                alone: see `dpframe.release.auto.narrowing`
        Errors: InvalidArgument, also for narrow=True where no bounds can be narrower;
                MissingBounds; UnsupportedOperation for terms that are not linear
        """
        return _regression(
            self, _terms(formula, y, x, keys, self._step.table), bounds, max_rows, narrow
        )

    def _matrix(
        self,
        verb: str,
        columns: Sequence[str],
        bounds: Mapping[str, Any] | None,
        max_rows: int | None,
        narrow: bool,
    ) -> MomentsQuery[MatrixRelease]:
        if isinstance(columns, str):
            raise InvalidArgument(
                f"{verb}: give a list of columns: {verb}(['wage', 'hours'], bounds={{...}})."
            )
        names = read_names(columns, verb, self._step.table.columns)
        if len(names) < 2 or len(set(names)) < len(names):
            raise InvalidArgument(
                f"{verb}: name two different columns or more: {verb}(['wage', 'hours'])."
            )
        read = _bounds_of(self, names, bounds, verb)
        _check_room(self, read, verb, narrow)
        line = (
            f"{verb}({list(names)!r}, "
            f"{typed_too(bounds=bounds)}{{limit}}{', narrow=True' if narrow else ''})"
        )
        shares = {"rows": _OF_OTHERS} | dict.fromkeys(names, _OF_OTHERS) if narrow else {}
        query = _moments(self, read, max_rows, line, _Fitted(shares=shares, narrow=narrow))

        def answer(out: Release[Any]) -> MatrixRelease:
            numbers = out._numbers
            used = {
                o.name: o.bounds for o in numbers.outputs if o.name in read and o.bounds is not None
            }
            return MatrixRelease(
                out._record, out, moments_of(numbers, used, ()), verb == "corr", numbers.filled
            )

        return MomentsQuery(query, answer, Covers.NOISE, TypicalErrors(verb, read))


def _bounds_of(
    frame: AskedFrame[Any],
    names: Sequence[str],
    bounds: Mapping[str, Any] | Auto | None,
    verb: str,
    *,
    categories: bool = False,
) -> dict[str, Bounds]:
    """The bounds of each column: those that were typed or else
    declared, inside those of the column.
    """
    typed = _typed_bounds(bounds, names, verb)
    line = ", ".join(f"{name!r}: {_pair_of(typed.get(name))}" for name in names)
    for name in names:
        # a name with a typing error is refused as an unknown column
        frame._step.table.column(name, verb)
    for name in typed:
        if name not in names:
            category = " A category has keys= instead." if categories else ""
            raise InvalidArgument(
                f"{verb}: bounds= names {name!r}, which is no column of numbers here. Columns that "
                f"need bounds: {', '.join(map(repr, names))}.{category}"
            )
    read: dict[str, Bounds] = {}
    for name in names:
        column = frame._step.table.column(name, verb)
        ends, own = read_bounds(typed.get(name), f"{verb}, {name!r}"), column.domain.bounds
        if kind(column.domain.dtype) == Kind.BOOLEAN:
            own = Bounds(0, 1)
        elif kind(column.domain.dtype) in TIMES:
            own = None  # in ticks; times are refused where the moments are built
        ends = ends or column.defaults.bounds
        if ends is not None and not isinstance(ends, Bounds):
            raise InvalidBounds(
                f"{verb}: dp.Auto() does not choose bounds of several columns at once. Type wide "
                f"ones, and the release finds narrower ones inside them: bounds={{{line}}}, "
                "narrow=True."
            )
        check_fact(column, "bounds", ends, f"{verb}: bounds of {name!r}")
        if ends is None and own is None:
            category = (
                f" If {name!r} is a category, list its keys: keys={{{name!r}: [...]}}."
                if categories
                else ""
            )
            raise without_bounds(
                name,
                verb,
                " of each column, with limits you know without the data: "
                f"bounds={{{line}}}.{category}",
            )
        chosen = ends or own
        assert chosen is not None
        read[name] = (
            chosen if own is None else Bounds(own.clamp(chosen.lower), own.clamp(chosen.upper))
        )
    return read


def _typed_bounds(
    bounds: Mapping[str, Any] | Auto | None, names: Sequence[str], verb: str
) -> Mapping[str, Any]:
    """Bounds by column; dp.Auto() alone stands for all columns."""
    match bounds:
        case None:
            return {}
        case Auto():
            return dict.fromkeys(names, bounds)
    return read_mapping(bounds, verb)


def _pair_of(typed: Any) -> str:
    """Bounds as they were typed, or an example."""
    match typed:
        case None | Auto():
            return "(0, 100)"
    return repr(typed)


@dataclass(frozen=True)
class _Fitted:
    """Arguments of a regression beside its moments.

    `same` are columns for the keys of one category. `shares` are the weights of sums and products
    in the price, 1 for those that are not named. `terms` are the names of the coefficients, whose
    influences are measured too. For `narrow` see `FrameMatrices.ols`.
    """

    same: tuple[tuple[str, ...], ...] = ()
    shares: Mapping[str, Fraction] = field(default_factory=dict)
    terms: tuple[str, ...] = ()
    narrow: bool = False


def _moments(
    frame: AskedFrame[Any],
    bounds: Mapping[str, Bounds],
    max_rows: int | None,
    verb: str,
    fitted: _Fitted = _Fitted(),
) -> Query[Any]:
    """The question for all moments of some columns, but for those that
    follow from others: see `Moments`.
    """
    same, shares, terms = fitted.same, fitted.shares, fitted.terms
    group = {name: number for number, names in enumerate(same) for name in names}
    among = tuple(bounds.items())
    asked = [(name, Moment(shares.get(name, Fraction(1)), (name,), among)) for name in bounds]
    for a, b in combinations_with_replacement(bounds, 2):
        if a in group and group[a] == group.get(b):
            continue
        title = f"{a}·{b}"
        asked.append((title, Moment(shares.get(title, Fraction(1)), (a, b), among)))
    rows = Moment(
        shares.get("rows", Fraction(1)),
        (),
        among,
        tuple(asked) if terms else (),
        same,
        terms,
        narrow=fitted.narrow,
    )
    aggregates: Aggregates = (("rows", rows), *asked)
    return frame._query(aggregates, read_limits(max_rows), verb=verb)


class _Formula(NamedTuple):
    """The outcome of a regression, its inputs, and the keys of those that are categories."""

    outcome: str
    inputs: list[str]
    kinds: dict[str, list[Any]]


def _terms(
    formula: str | None,
    y: str | None,
    x: str | Sequence[str] | None,
    keys: Mapping[str, Sequence[Any]] | None,
    table: Table,
) -> _Formula:
    """A regression as it was typed. Categories have typed or declared keys.
    Errors: InvalidArgument.
    """
    if (formula is None) == (y is None) or (formula is None) == (x is None):
        raise InvalidArgument(
            "ols: give a formula, or y= and x=: ols(y='wage', x=['education'], bounds={...})."
        )
    listed = {} if keys is None else read_mapping(keys, "ols")
    if formula is not None:
        outcome, inputs, categories = _parsed(formula)
    else:
        outcome = read_name(y, "ols")
        inputs = [read_name(name, "ols") for name in ([x] if isinstance(x, str) else x or ())]
        declared = [
            name
            for name, column in table.columns.items()
            if column.defaults.keys and not column.is_number
        ]
        categories = [name for name in inputs if name in listed or name in declared]
    if not inputs or len({outcome, *inputs}) != len(inputs) + 1:
        raise InvalidArgument(
            "ols: name an outcome and other columns, each once: 'wage ~ education + C(region)'."
        )
    for name in categories:
        if (
            name not in listed
            and (column := table.columns.get(name)) is not None
            and column.defaults.keys
        ):
            listed[name] = column.defaults.keys
        if name not in listed or isinstance(listed[name], str) or len(set(listed[name])) < 2:
            raise InvalidArgument(
                f"ols: list two keys of {name!r} or more: keys={{{name!r}: ['north', 'south']}}."
            )
    for name in categories:
        check_levels(table, (name,), (listed[name],), "ols")
    if set(listed) - set(categories):
        raise InvalidArgument("ols: keys= are for categories, written C(region) in a formula.")
    return _Formula(outcome, inputs, {name: list(listed[name]) for name in categories})


def _parsed(formula: str) -> tuple[str, list[str], list[str]]:
    """The outcome, the columns, and which of them are categories.

    Errors: UnsupportedOperation for what is not linear, and without the extra
    """
    try:
        from formulaic import Formula
    except ImportError:
        raise UnsupportedOperation(
            "ols: formulas need formulaic: pip install formulaic. Or type ols(y='wage', "
            "x=['education'])."
        ) from None
    refused = UnsupportedOperation(
        "ols: a formula is an outcome, columns and C(category), added up: 'wage ~ education + "
        "C(region)'. Make other terms columns first: with_columns(squared=dp.col('age') * "
        "dp.col('age'))."
    )
    try:
        parsed = Formula(read_name(formula, "ols"))
        left, right = ([str(term) for term in side] for side in (parsed.lhs, parsed.rhs))
    except Exception:
        raise refused from None
    if "1" not in right or len(left) != 1 or not left[0].isidentifier():
        raise refused
    names = [term for term in right if term != "1"]
    categories = [term[2:-1] for term in names if term.startswith("C(") and term.endswith(")")]
    plain = [term[2:-1] if term.startswith("C(") and term.endswith(")") else term for term in names]
    if not all(name.isidentifier() for name in plain):
        raise refused
    return left[0], plain, categories


def _regression(
    frame: Any,
    formula: _Formula,
    bounds: Mapping[str, Any] | None,
    max_rows: int | None,
    narrow: bool,
) -> MomentsQuery[Regression]:
    """The question of a regression, on a table with a column of true and
    false for each key but the first.
    """
    outcome, inputs, kinds = formula
    numbers = [name for name in inputs if name not in kinds]
    read, same, categories = (
        _bounds_of(frame, [*numbers, outcome], bounds, "ols", categories=True),
        [],
        {},
    )
    made: dict[str, Bounds] = {name: read[name] for name in numbers}
    for name, values in kinds.items():
        columns = {f"{name}[{value}]": col(name) == value for value in values[1:]}
        frame = frame.filter(col(name).is_in(values)).with_columns(**columns)
        same.append(tuple(columns))
        categories.update(
            {title: (name, value) for title, value in zip(columns, values[1:], strict=True)}
        )
        made.update(dict.fromkeys(columns, Bounds(0, 1)))
    made[outcome] = read[outcome]
    _check_room(frame, made, "ols", narrow)
    shares = _narrow_shares(made, outcome) if narrow else {f"{outcome}·{outcome}": _OF_RESIDUALS}
    terms = (INTERCEPT, *(name for name in made if name != outcome))
    also = ", narrow=True" if narrow else ""
    verb = f"ols(y={outcome!r}, x={list(inputs)!r}, {{limit}}{also})"
    query = _moments(frame, made, max_rows, verb, _Fitted(tuple(same), shares, terms, narrow))

    def answer(out: Release[Any]) -> Regression:
        regressors = out._numbers.outputs[0].regressors
        assert regressors is not None
        used = dict(regressors.among)  # the typed bounds, or those that the release narrowed
        ends = {name: (float(b.lower), float(b.upper)) for name, b in used.items()}
        return Regression(out._record, out, moments_of(out._numbers, used, same), categories, ends)

    return MomentsQuery(query, answer, Covers.POPULATION, TypicalErrors("ols", made, outcome))


def _check_room(frame: Any, bounds: Mapping[str, Bounds], verb: str, narrow: object) -> None:
    """Errors: InvalidArgument for another type, and where `narrow` is True
    and no bounds can be narrower.
    """
    check_flags(f"{verb}: narrow= is True or False.", narrow)
    if narrow:
        check_room(verb, [(frame._step.table.columns[name], ends) for name, ends in bounds.items()])


def _narrow_shares(bounds: Mapping[str, Bounds], outcome: str) -> dict[str, Fraction]:
    """Weights in the price of a regression inside narrower bounds.

    The middle of such bounds is about the mean of the column. So the noise of a count, a sum or a
    square is multiplied by a small number in a coefficient, and that of a product of an input and
    the outcome by 1. These products have the weight 1, the square of the outcome 1/8, all others
    1/2.
    """
    shares = {"rows": _OF_OTHERS} | dict.fromkeys(bounds, _OF_OTHERS)
    pairs = combinations_with_replacement(bounds, 2)
    shares |= {f"{a}·{b}": _OF_OTHERS for a, b in pairs if b != outcome}
    return shares | {f"{outcome}·{outcome}": _OF_RESIDUALS / 2}
