"""A description of columns, as a method of a protected frame:
the table that pandas' `describe` gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Unpack

from dpframe.api.arguments import (
    Pair,
    RowLimits,
    read_bounds,
    read_mapping,
    read_names,
    read_rank,
    read_row_limits,
    typed_too,
)
from dpframe.api.query import Query
from dpframe.api.statistics.asking import AskedFrame
from dpframe.engine import Table_co
from dpframe.errors import InvalidArgument, InvalidBounds, UnknownColumn, WrongType
from dpframe.plan import Aggregate, Auto, Bounds, Kind, Layout, kind, show
from dpframe.plan.statistics import Count, Mean, Missing, Quantile, Std
from dpframe.plan.totals import without_bounds
from dpframe.usage import explains, is_list

_QUARTILES = (0.25, 0.5, 0.75)
_NUMBERS = (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL)
# distance of a mean from the middle of the bounds, in half the width of the bounds
_TYPICAL_MEAN = 0.5
_TYPICAL_SPREAD = 1 / 3  # standard deviation, in the same unit
_TURNS = 200
_DIGITS = 100  # weights are held to two decimals


@explains("{}({}, max_rows=5).release(epsilon=0.1)")
class FrameDescription(AskedFrame[Table_co]):
    """The description of a protected frame."""

    __slots__ = ()

    def describe(
        self,
        columns: str | Sequence[str] | None = None,
        bounds: Mapping[str, Any] | Pair | None = None,
        *,
        percentiles: Sequence[float] = _QUARTILES,
        **limits: Unpack[RowLimits],
    ) -> Query[Table_co]:
        """The table that pandas' `describe` gives, in one release:
        count, missing, mean, std, bounds and quartiles.

        Input:  columns: the columns to describe; by default those in bounds=, and if bounds= names
                none, all columns of numbers and of true and false. bounds: a dict from each column
                to its pair (column unit) or dp.Auto(); for a single column its pair; or dp.Auto()
                for all columns, which share the part of the price that it takes. A column that was
                clipped before, or whose bounds are declared, needs none. percentiles: ranks between
                0 and 1, by default the quartiles. max_rows, limits: as in `sum`
        Output: a query whose release has a row for each statistic and a column for each column. In
                pandas the statistics are the index; other kinds of tables have them in a column
                `statistic`. All cells are floats. The rows "min" and "max" are the bounds that
                values are clipped to, since the smallest and the largest value belong to one
                person. A column of true and false has null for std and quartiles. "missing" may be
                negative because of the noise. `accuracy()` has a line for each released number
        Bound:  the totals are those of `dp.count`, `dp.mean`, `dp.std` and `dp.quantile`: of each
                column a sum, a sum of squares, a count and one tree for all quantiles; and one
                number of rows, which the missing values of all columns share. They are priced
                together, as one release; see `dpframe.api.describing.split` for their parts of the
                price
        Errors: MissingBounds, with the line to type; WrongType for columns of other types;
                InvalidArgument, InvalidBounds, UnknownColumn, UnboundedContribution

        >>> import pandas as pd, dpframe as dp
        >>> people = pd.DataFrame(
        ...     {"user": [1, 1, 2], "age": [31, 31, 64], "wage": [9.5, None, 20.0]}
        ... )
        >>> frame = people.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> query = frame.describe(bounds={"age": (0, 120), "wage": (0, 100)}, max_rows=2)
        >>> out = query.release(epsilon=0.5)
        >>> list(out.table.index)
        ['count', 'missing', 'mean', 'std', 'min', '25%', '50%', '75%', 'max']
        >>> out.table.loc[["min", "max"], "age"].tolist()  # the bounds
        [0.0, 120.0]
        """
        names = _names(self, columns, bounds)
        ends = _bounds_of(self, names, bounds)
        ranks = _ranks(percentiles)
        described = [_Described(name, ends[name], *_domain(self, name)) for name in names]
        weights = split([not column.nullable for column in described], len(ranks))
        aggregates = tuple(
            part for column in described for part in column.aggregates(weights, ranks)
        )
        verb = f"describe({list(names)!r}, {typed_too(bounds=bounds)}{{limit}})"
        return self._query(
            aggregates, read_row_limits(**limits), verb=verb, layout=Layout("describe", names)
        )


@dataclass(frozen=True)
class Weights:
    """The weights of a description's totals when its price is split:
    rows, values, sums, squares, one quantile.
    """

    rows: Fraction
    values: Fraction
    sums: Fraction
    squares: Fraction
    quantile: Fraction = Fraction(1)


def split(complete: Sequence[bool], quantiles: int) -> Weights:
    """The part of the price of each total of a description.

    Input:  complete: for each column, whether none of its values can be missing; quantiles: how
            many each column has
    Output: weights, to two decimals. A tree of n quantiles has n times the weight of one
    Bound:  any split keeps the price. This one makes the sum of the logarithms of all cells' errors
            the smallest, as `release.pricing.allocation.log_noise` compares plans: it is the same
            for any unit of a column. Let cell j have the variance Σ_i a_ij/ε_i². Where the sum of
            logarithms is smallest, each ε_i is proportional to the sum over cells of the part of
            the cell's variance that total i brings. So a total has the weight of the cells that
            follow from it, each cell divided over its totals. The count is one cell and a part of
            three: missing values are rows less values; a mean has the noise z - m·w; a variance y -
            2m·z + (m² - s² + 1/2)·w (see `release.estimators.fieller`; in half the width of the
            bounds, squares measured from 1/2). The equations are solved by iteration at m = 1/2 and
            s = 1/3. At other m and s the weights change by at most a third, and errors by a few
            percent

    >>> weights = split([False], 3)
    >>> [
    ...     float(x)
    ...     for x in (weights.rows, weights.values, weights.sums, weights.squares, weights.quantile)
    ... ]
    [0.78, 1.47, 1.23, 0.52, 1.0]
    """
    mean, spread = _TYPICAL_MEAN, _TYPICAL_SPREAD
    number, some = float(len(complete)), float(len(complete) - sum(complete))
    of_square = {"squares": 0.25, "sums": 4 * mean**2}
    skewed = (mean**2 - spread**2 + 0.5) ** 2
    # the variance of a cell by total, and how many there are
    cells: list[tuple[dict[str, float], float]] = []
    for count, columns in (("values", some), ("rows", number - some)):
        cells += [({count: 1.0}, columns), ({"sums": 1.0, count: mean**2}, columns)]
        cells += [({**of_square, count: skewed}, columns)]
    cells.append(({"rows": 1.0, "values": 1.0}, some))
    # how many there are
    totals = {"rows": 1.0, "values": max(some, 1.0), "sums": number, "squares": number}
    weights = dict.fromkeys(totals, 1.0)
    for _ in range(_TURNS):
        parts = dict.fromkeys(totals, 0.0)
        for variances, columns in cells:
            noise = {name: size / weights[name] ** 2 for name, size in variances.items()}
            for name, size in noise.items():
                parts[name] += columns * size / sum(noise.values()) / totals[name]
        weights = {name: (weights[name] + max(parts[name], 1 / _DIGITS)) / 2 for name in totals}
    return Weights(
        **{
            name: Fraction(max(round(weight * _DIGITS), 1), _DIGITS)
            for name, weight in weights.items()
        }
    )


@dataclass(frozen=True)
class _Described:
    """A column to describe, with its bounds, and what its type says."""

    name: str
    bounds: Bounds | Auto | None
    nullable: bool
    boolean: bool

    def aggregates(
        self, weights: Weights, ranks: Sequence[Fraction]
    ) -> Iterator[tuple[str, Aggregate]]:
        """The aggregates, by the names `age_count`, `age_25%`, in the order of the table.

        A count that a mean needs too has the larger weight of both. So each aggregate has that of
        its own total.
        """
        count = weights.values if self.nullable else weights.rows
        parts: list[tuple[str, Aggregate]] = [
            ("count", Count(count, self.name)),
            ("missing", Missing(weights.rows, self.name, count)),
            ("mean", Mean(weights.sums, self.name, self.bounds)),
        ]
        if not self.boolean:
            parts.append(("std", Std(weights.squares, self.name, self.bounds)))
            one = Quantile(
                weights.quantile * len(ranks), self.name, bounds=self.bounds, beside=tuple(ranks)
            )
            parts += [(f"{100 * float(rank):g}%", replace(one, q=rank)) for rank in ranks]
        return ((f"{self.name}_{label}", part) for label, part in parts)


def _names(frame: AskedFrame[Any], columns: object, bounds: object) -> tuple[str, ...]:
    """The columns to describe: those that are named, those that have bounds, or all of numbers."""
    table = frame._step.table
    if columns is not None:
        names = read_names([columns], "describe", table.columns)
    elif isinstance(bounds, Mapping):
        names = tuple(read_mapping(bounds, "describe: bounds="))
    else:
        fitting = (*_NUMBERS, Kind.BOOLEAN)
        names = tuple(
            n for n, c in table.columns.items() if not c.is_unit and kind(c.domain.dtype) in fitting
        )
    if not names or len(set(names)) < len(names):
        raise InvalidArgument(
            "describe: name columns of numbers, each once: describe(bounds={'age': (0, 120), "
            "'wage': (0, 100)})."
        )
    return names


def _domain(frame: AskedFrame[Any], name: str, names: Sequence[str] = ()) -> tuple[bool, bool]:
    """Whether values of a column can be missing, and whether they are true and false.
    Errors: WrongType.

    Input:  names: all columns that were named; the error types those that can be described
    """
    domain = frame._step.table.column(name, "describe").domain
    family = kind(domain.dtype)
    if family not in (*_NUMBERS, Kind.BOOLEAN):
        columns = frame._step.table.columns
        fitting = [
            n
            for n in names
            if n in columns and kind(columns[n].domain.dtype) in (*_NUMBERS, Kind.BOOLEAN)
        ]
        raise WrongType(
            f"describe: columns of numbers, and of true and false; {name!r} is a column of type "
            f"{show(domain.dtype)}. Type describe({fitting or ['age', 'wage']}, ...) without it. "
            f"Its values are counted by count({name!r}) and n_unique({name!r}); of times there are "
            f"mean({name!r}, ...) and median({name!r}, ...)."
        )
    return domain.nullable, family == Kind.BOOLEAN


def _bounds_of(
    frame: AskedFrame[Any], names: Sequence[str], bounds: object
) -> dict[str, Bounds | Auto | None]:
    """The bounds of each column as typed; None for bounds that it has already.

    Errors: MissingBounds, with the line to type
    """
    for name in names:
        _domain(frame, name, names)
    open_columns = [name for name in names if _own(frame, name) is None]
    match bounds:
        case Auto():
            read_bounds(bounds, "describe")
            each = bounds
            if bounds.typed_share is not None:
                each = replace(bounds, typed_share=bounds.typed_share / max(len(open_columns), 1))
            return {name: each if name in open_columns else None for name in names}
        case None | Mapping():
            typed = {} if bounds is None else read_mapping(bounds, "describe: bounds=")
        case _:
            pair = read_bounds(bounds, "describe")
            if len(names) > 1:
                raise InvalidBounds(
                    "describe: several columns have a dict of bounds: "
                    f"bounds={{{', '.join(f'{name!r}: (0, 100)' for name in names)}}}."
                )
            return {names[0]: pair}
    for name in typed:
        if name not in names:
            raise UnknownColumn(
                f"describe: bounds= names {name!r}, which is none of the columns "
                f"{', '.join(names)}."
            )
    read = {name: read_bounds(typed.get(name), f"describe, {name!r}") for name in names}
    columns = frame._step.table.columns
    lacking = [
        name
        for name in open_columns
        if read[name] is None and columns[name].defaults.bounds is None
    ]
    if lacking:
        added = ", ".join(f"{name!r}: (0, 100)" for name in lacking)
        raise without_bounds(
            lacking[0],
            "describe",
            f", with limits that you know without the data: bounds={{{added}}}; or have it chosen "
            f"privately inside the release: bounds={{{lacking[0]!r}: dp.Auto()}}. To leave a "
            "column out, name the others: describe(['age'], ...).",
        )
    return read


def _own(frame: AskedFrame[Any], name: str) -> Bounds | None:
    """The bounds that a column has already; those of true and false are 0 and 1."""
    domain = frame._step.table.column(name, "describe").domain
    return Bounds(0, 1) if kind(domain.dtype) == Kind.BOOLEAN else domain.bounds


def _ranks(percentiles: object) -> tuple[Fraction, ...]:
    """Ranks between 0 and 1, in order. Errors: InvalidArgument."""
    if not is_list(percentiles):
        raise InvalidArgument(
            "describe: percentiles= is a list of ranks between 0 and 1, such as [0.1, 0.5, 0.9]."
        )
    ranks = sorted(read_rank(rank) for rank in percentiles)
    if len(set(ranks)) < len(ranks) or {0, 1} & set(ranks):
        raise InvalidArgument(
            "describe: percentiles= are different ranks between 0 and 1. The smallest and the "
            "largest value are one person's: the rows min and max are the bounds."
        )
    return tuple(ranks)
