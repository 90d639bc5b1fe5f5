"""Aggregates for `.agg(name=...)`."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from dpframe.api.arguments import Pair, read_bounds, read_name, read_rank, read_share, read_values
from dpframe.errors import InvalidArgument, InvalidBounds
from dpframe.plan import (
    Aggregate,
    Auto,
    Count,
    CountDistinct,
    CountUnits,
    GeometricMean,
    Mean,
    Mode,
    Quantile,
    Sum,
    Var,
    real,
)
from dpframe.plan.steps import Pick, check_limit
from dpframe.usage import explained

__all__ = [
    "count",
    "count_units",
    "first",
    "geometric_mean",
    "last",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "n_unique",
    "quantile",
    "std",
    "sum",
    "var",
]


@explained
def count(column: str | None = None, *, share: float = 1) -> Aggregate:
    """Number of rows, or of the values of a column that are not missing.

    Input:  column, or None for rows; share, the weight of this aggregate when ε is split
    Output: integer, signed: noise can take it below zero
    Bound:  see `dpframe.theory.formulas.sensitivity.grouped.row_counts`
    Errors: UnknownColumn, WrongType, UnboundedContribution where it is asked

    >>> import polars as pl, dpframe as dp
    >>> visits = pl.DataFrame({"user": [1, 1, 2], "spend": [3.0, None, 5.0]})
    >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
    >>> query = frame.agg(rows=dp.count(), values=dp.count("spend"), max_rows=2)
    >>> query.release(epsilon=0.5).table.columns
    ['rows', 'values']
    """
    return Count(read_share(share), None if column is None else read_name(column, "count"))


@explained
def count_units(*, share: float = 1) -> Aggregate:
    """Number of distinct units; with `dp.Rows(k)`, which has no identifiers, the number of rows.

    Output: integer, signed
    Bound:  see `dpframe.theory.formulas.sensitivity.grouped.unit_counts`

    >>> import polars as pl, dpframe as dp
    >>> frame = pl.DataFrame({"user": [1, 1, 2]}).dp(unit="user")
    >>> frame.agg(people=dp.count_units()).sensitivity["people"].l1  # no limit on rows is needed
    1
    """
    return CountUnits(read_share(share))


@explained
def sum(  # the field's word, used as dp.sum
    column: str,
    bounds: Pair | None = None,
    unit_bounds: Pair | None = None,
    *,
    share: float = 1,
) -> Aggregate:
    """Sum of a column of numbers or durations; missing values add nothing.

    Input:  bounds (column unit): each value is clipped to them, needed unless the column was clipped before;
            dp.Auto() chooses them inside the release;
            unit_bounds (column unit): instead, each unit's total per group is clipped, and no limit on rows is needed
    Output: column unit; a duration for durations; an integer for a column of integers whose bounds are at most 2^26
            (67,108,864) in size, and at most 2^42 divided by max_rows_per_group (else max_rows, rounded up to a power
            of two). With larger bounds a float, of values in steps of a power of two: see `dpframe.plan.grid.grid_for`
    Bound:  see `dpframe.theory.formulas.sensitivity.grouped.row_sums` and `unit_sums`
    Errors: InvalidBounds; MissingBounds, UnknownColumn, WrongType, UnboundedContribution where it is asked

    >>> import polars as pl, dpframe as dp
    >>> frame = pl.DataFrame({"user": [1, 1, 2], "spend": [3.0, 4.0, 50.0]}).dp(unit="user")
    >>> query = frame.agg(spend=dp.sum("spend", bounds=(0, 10)), max_rows=2)
    >>> query.sensitivity["spend"].l1  # two rows of at most 10
    20
    >>> query.accuracy(epsilon=1.0)["error"].round(1).to_list()
    [59.9]
    """
    name = read_name(column, "sum")
    rows, units = read_bounds(bounds, f"sum({name!r})"), read_bounds(unit_bounds, f"sum({name!r})")
    if isinstance(units, Auto):
        raise InvalidBounds(f"sum({name!r}): dp.Auto() chooses bounds= for each row; unit_bounds= are a pair.")
    if rows is not None and units is not None:
        raise InvalidBounds(
            f"sum({name!r}): give bounds= for each row or unit_bounds= for each unit's total, not both."
        )
    return Sum(read_share(share), name, rows, units)


@explained
def mean(column: str, bounds: Pair | None = None, *, share: float = 1) -> Aggregate:
    """Mean of a column's values that are not missing, kept inside the bounds.

    Input:  bounds (column unit) as in `sum`; dates, times or timedeltas for a column of these
    Output: column unit, float; of dates a time, as in Polars, of times and durations the column's type
    Bound:  a mean is a noisy sum over a noisy count. The sum is measured from the middle of the bounds, so that a
            value moves it by at most half of their width. Where values cannot be missing (`drop_nulls`, `fill_null`)
            the count is that of the rows, and every mean and `count()` of the question share it. With Laplace noise,
            sum and count are measured as a pair, which has √2 less noise on both
            (`dpframe.theory.formulas.sensitivity.pairs`). The ratio is then drawn to the middle of the bounds, by as
            much as its noise deserves: not at all where many values are counted, and all the way where none are. So a
            mean of few values has a bias and a smaller error, often half of that of the ratio. For means at the very
            end of their bounds, the ratio itself does as well or better, by up to a fifth. The interval is that of
            the ratio, and holds what is released
    Errors: as in `sum`

    >>> import polars as pl, dpframe as dp
    >>> frame = pl.DataFrame({"user": [1, 1, 2], "wage": [3.0, 4.0, 5.0]}).dp(unit="user")
    >>> query = frame.agg(wage=dp.mean("wage", bounds=(0, 10)), max_rows=2)
    >>> {name: total.l1 for name, total in query.sensitivity.items()}  # measured from 5, the middle of the bounds
    {'wage.sum': 10, 'wage.count': 2}
    """
    name = read_name(column, "mean")
    return Mean(read_share(share), name, read_bounds(bounds, f"mean({name!r})"))


@explained
def var(column: str, bounds: Pair | None = None, *, ddof: int = 1, share: float = 1) -> Aggregate:
    """Variance of a column's values that are not missing.

    Input:  bounds (column unit) as in `sum`; ddof: 1 divides by n - 1, as pandas and Polars do, 0 by n
    Output: square of the column unit, float, between 0 and the largest variance that the bounds allow
    Bound:  the sum and the count of `mean`, shared with a mean of the same column and bounds; and a sum of squared
            distances from the middle of the bounds, each less half of the largest one
    Errors: as in `sum`

    >>> var("wage").typed
    "var('wage')"
    """
    return _spread(column, bounds, ddof, share, "var")


@explained
def std(column: str, bounds: Pair | None = None, *, ddof: int = 1, share: float = 1) -> Aggregate:
    """Standard deviation of a column's values that are not missing: the root of `var`.

    Input:  as in `var`
    Output: column unit, float; of dates and times a duration
    Bound:  as in `var`; the root is post-processing
    Errors: as in `sum`

    >>> std("wage", ddof=0).typed
    "std('wage', ddof=0)"
    """
    return _spread(column, bounds, ddof, share, "std")


def _spread(column: str, bounds: Pair | None, ddof: int, share: float, verb: str) -> Aggregate:
    name, less = read_name(column, verb), real(ddof)
    if not isinstance(less, int) or less not in (0, 1):
        raise InvalidArgument(f"{verb}({name!r}): ddof= is 0 or 1.")
    return Var(read_share(share), name, read_bounds(bounds, f"{verb}({name!r})"), less, verb == "std")


@explained
def geometric_mean(column: str, bounds: Pair | None = None, *, share: float = 1) -> Aggregate:
    """Geometric mean of a column's values that are not missing: e to the mean of their logarithms.

    Input:  bounds (column unit) as in `sum`, both above 0 and at most 2^64 times apart; a value at or below the lower
            one, 0 and negative values included, counts as the lower one. `dp.Auto()` cannot choose them
    Output: column unit, float, inside the bounds
    Bound:  a sum of logarithms, each clipped to those of the bounds and measured from their middle, so that one is at
            most log(high/low)/2 in size, and the count of `mean`. Both are a row's integers on a grid: see
            `dpframe.plan.totals.log_total`. What is released is e to the mean that they make, as `mean` makes it, and
            its interval is e to the ends of the mean's: the exponential only grows. A logarithm is off by at most 4e-8
            and half a step of its grid
    Errors: as in `sum`; InvalidBounds for a lower bound that is not above 0, where it is asked

    >>> geometric_mean("wage", bounds=(1, 100)).typed
    "geometric_mean('wage', bounds=(1, 100))"
    """
    name = read_name(column, "geometric_mean")
    return GeometricMean(read_share(share), name, read_bounds(bounds, f"geometric_mean({name!r})"))


@explained
def n_unique(column: str, *, share: float = 1) -> Aggregate:
    """Number of different values of a column that are not missing.

    Output: integer, signed
    Bound:  of a unit's different values at most max_rows_per_group in a group and max_rows in total count, chosen at
            random; see `dpframe.theory.formulas.sensitivity.grouped.row_counts`. If many units share values, small
            limits lose hardly any value; dp.Auto() estimates this privately
    Errors: UnknownColumn, WrongType, UnboundedContribution where it is asked

    >>> n_unique("shop").typed
    "n_unique('shop')"
    """
    return CountDistinct(read_share(share), read_name(column, "n_unique"))


@explained
def quantile(column: str, q: float, bounds: Pair | None = None, *, share: float = 1) -> Aggregate:
    """The value that a part q of a column's values does not exceed.

    Input:  q in [0, 1], to six decimals; bounds (column unit) as in `sum`
    Output: column unit, one of 1,024 evenly spaced values between the bounds (every integer or day, where there are
            fewer); dates, times and durations keep their type; a float where bounds reach beyond 64 bits
    Bound:  the value is chosen among these candidates, by the numbers of rows below and above each. Permute-and-flip
            costs what l1 calls for; the exponential mechanism needs a δ or a ρ and costs what l2 calls for. The one
            with less noise is taken: see `dpframe.theory.formulas.loss.quantile_selection`. Beside the rows of each
            group there are 8 · scale public rows, spread evenly between the bounds (not for q of 0 and 1). So a group
            with too few rows gets a value near the part q of the way between its bounds. `release(..., ci=0.95)`
            spends half of the price on an interval: see `dpframe.theory.formulas.error.quantile_interval`
    Errors: as in `sum`; InvalidArgument for q

    >>> import polars as pl, dpframe as dp
    >>> wages = pl.DataFrame({"user": [1, 1, 2], "wage": [3.0, 4.0, 5.0]})
    >>> frame = wages.dp(unit="user", budget=dp.Budget(epsilon=1.0))
    >>> query = frame.agg(low=dp.quantile("wage", 0.25, bounds=(0, 10)), max_rows=2)
    >>> 0 <= query.release(epsilon=0.5).value <= 10
    True
    """
    return _quantile(column, read_rank(q), bounds, share, "quantile")


@explained
def median(column: str, bounds: Pair | None = None, *, share: float = 1) -> Aggregate:
    """The middle value: `quantile` at 1/2.

    >>> import polars as pl, dpframe as dp
    >>> wages = pl.DataFrame({"user": [1, 1, 2], "wage": [3.0, 4.0, 5.0]})
    >>> frame = wages.dp(unit="user", budget=dp.Budget(epsilon=1.0))
    >>> out = frame.agg(wage=dp.median("wage", bounds=(0, 10)), max_rows=2).release(epsilon=0.5, ci=0.95)
    >>> out.table.columns
    ['wage', 'wage_low', 'wage_high']
    """
    return _quantile(column, Fraction(1, 2), bounds, share, "median")


@explained
def min(column: str, bounds: Pair | None = None, *, share: float = 1) -> Aggregate:
    """A value that hardly any row is below.

    The smallest value is one person's. The release is a value with few rows below it: as many as the noise can hide,
    about (scale · ln 1024) rows.

    >>> min("wage").typed
    "min('wage')"
    """
    return _quantile(column, Fraction(0), bounds, share, "min")


@explained
def max(column: str, bounds: Pair | None = None, *, share: float = 1) -> Aggregate:
    """A value that hardly any row is above; see `min`.

    >>> max("wage").typed
    "max('wage')"
    """
    return _quantile(column, Fraction(1), bounds, share, "max")


def _quantile(column: str, q: Fraction, bounds: Pair | None, share: float, verb: str) -> Aggregate:
    name = read_name(column, verb)
    return Quantile(read_share(share), name, q, read_bounds(bounds, f"{verb}({name!r})"), verb)


@explained
def mode(column: str, keys: Iterable[Any] | None = None, *, share: float = 1) -> Aggregate:
    """The most frequent of the listed values of a column.

    Input:  keys: the values to choose from, listed without looking at the data; a column of type Enum or Boolean, and
            one made by `cut`, brings them. Null counts if it is listed. Rows with other values do not count
    Output: one of the listed values, in the type that the column has as a key: its own, but text for categories and
            float for decimals, as everywhere inside the engine
    Bound:  a choice, scored by the rows that have each value; mechanism and cost are as in `quantile`: see
            `dpframe.theory.formulas.loss.quantile_selection`
    Errors: InvalidArgument, UnknownColumn, WrongType, UnboundedContribution where it is asked

    >>> mode("city", keys=["Bonn", "Kiel"]).typed
    "mode('city')"
    """
    name = read_name(column, "mode")
    return Mode(read_share(share), name, read_values(keys, f"mode({name!r})"))


def top_k(column: str, k: int, keys: Iterable[Any] | None = None) -> Aggregate:
    """The k most frequent of the listed values. Only `PrivateFrame.top_k` asks this, since the answer has k rows."""
    name = read_name(column, "top_k")
    return Mode(Fraction(1), name, read_values(keys, f"top_k({name!r})"), check_limit(k, "k"))


@explained
def first(column: str, by: str) -> Aggregate:
    """The value of a column in a unit's first row by another column; for `per_unit` only.

    Input:  by: a number, a time or a text; rows in which it is missing do not count. Of several first rows the smallest
            value is taken (missing only if all are missing), so the order of rows never matters
    Output: column unit
    Errors: UnsupportedOperation anywhere else, because that row is one person's

    >>> first("shop", by="when").typed
    "first('shop', by='when')"
    """
    return _pick(column, by, "first")


@explained
def last(column: str, by: str) -> Aggregate:
    """The value of a column in a unit's last row by another column; see `first`.

    >>> last("shop", by="when").typed
    "last('shop', by='when')"
    """
    return _pick(column, by, "last")


def _pick(column: str, by: str, verb: str) -> Aggregate:
    name = read_name(column, verb)
    return Pick(Fraction(1), name, read_name(by, f"{verb}({name!r}): by="), verb == "last")
