"""Sums, means, variances and what else follows from sums of clipped values."""

from __future__ import annotations

from typing import Any, Unpack

from dpframe.api.arguments import (
    Columns,
    OwnLimits,
    Pair,
    Pairs,
    RowLimits,
    read_bounds,
    read_ddof,
    read_name,
    read_own,
    read_share,
)
from dpframe.api.query import Query
from dpframe.api.statistics.asking import AskedFrame, AskedGroups
from dpframe.engine import Table_co
from dpframe.errors import InvalidArgument, InvalidBounds
from dpframe.plan import Aggregate, Auto, Limits
from dpframe.plan.statistics.base import BoundedStatistic
from dpframe.plan.statistics.sums import GeometricMean, Kurtosis, Mean, Skew, Std, Sum, Var
from dpframe.plan.statistics.two_columns import WeightedMean
from dpframe.usage import statistic

# the statistics, which are dp.NAME
__all__ = ["geometric_mean", "kurtosis", "mean", "skew", "std", "sum", "var"]


@statistic("'wage', bounds=(0, 100)", elsewhere="total")
def sum(  # the field's word, used as dp.sum
    column: str,
    bounds: Pair | None = None,
    unit_bounds: Pair | None = None,
    *,
    share: float = 1,
    **limits: Unpack[OwnLimits],
) -> Aggregate:
    """Sum of a column of numbers or durations; missing values add nothing.

    Input:  bounds (column unit): each value is clipped to them, needed unless the column was
            clipped before; dp.Auto() chooses them inside the release; max_rows and other limits as
            in `count`; unit_bounds (column unit): instead, each unit's total per group is clipped,
            and no limit on rows is needed
    Output: column unit; a duration for durations; an integer for a column of integers whose bounds
            are at most 2^26 (67,108,864) in size, and at most 2^42 divided by max_rows_per_group
            (else max_rows, rounded up to a power of two). With larger bounds a float, of values in
            steps of a power of two: see `dpframe.plan.grid.grid_for`
    Bound:  see `dpframe.theory.formulas.sensitivity.grouped.row_sums` and `unit_sums`
    Errors: InvalidBounds; MissingBounds, UnknownColumn, WrongType, UnboundedContribution where it
            is asked

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
        raise InvalidBounds(
            f"sum({name!r}): dp.Auto() chooses bounds= for each row; unit_bounds= are a pair."
        )
    if rows is not None and units is not None:
        raise InvalidBounds(
            f"sum({name!r}): give bounds= for each row or unit_bounds= for each unit's total, not "
            "both."
        )
    return Sum(read_share(share), name, rows, units, limits=read_own(limits))


@statistic("'wage', bounds=(0, 100)", elsewhere="avg average nanmean")
def mean(
    column: str,
    bounds: Pair | None = None,
    *,
    weights: str | None = None,
    weight_bounds: Pair | None = None,
    share: float = 1,
    **limits: Unpack[OwnLimits],
) -> Aggregate:
    """Mean of a column's values that are not missing, kept inside the
    bounds; with weights a weighted mean.

    Input:  bounds (column unit) as in `sum`; dates, times or timedeltas for a column of these;
            weights: a column of numbers from 0 on, whose values weigh those of the column: the
            price of what is sold, by quantity. A row counts where both have a value; weight_bounds:
            its bounds
    Output: column unit, float; of dates a time, as in Polars, of times and durations the column's
            type
    Bound:  a mean is a noisy sum over a noisy count. The sum is measured from the middle of the
            bounds, so that a value moves it by at most half of their width. Where values cannot be
            missing (`drop_nulls`, `fill_null`) the count is that of the rows, and every mean and
            `count()` of the question share it. With Laplace noise, sum and count are measured as a
            pair, which has √2 less noise on both
            (`dpframe.theory.formulas.sensitivity.sum_and_count`). The ratio is then drawn to the
            middle of the bounds, by as much as its noise deserves: not at all where many values are
            counted, and all the way where none are. So a mean of few values has a bias and a
            smaller error, often half of that of the ratio. For means at the very end of their
            bounds, the ratio itself does as well or better, by up to a fifth. The interval is that
            of the ratio, and holds what is released. A weighted mean has a sum of weighted
            distances from the middle, and a sum of weights in place of the count: see
            `dpframe.plan.totals.sums.product_total`
    Errors: as in `sum`

    >>> import polars as pl, dpframe as dp
    >>> frame = pl.DataFrame({"user": [1, 1, 2], "wage": [3.0, 4.0, 5.0]}).dp(unit="user")
    >>> query = frame.agg(wage=dp.mean("wage", bounds=(0, 10)), max_rows=2)
    >>> {
    ...     name: total.l1 for name, total in query.sensitivity.items()
    ... }  # measured from 5, the middle of the bounds
    {'wage.sum': 10, 'wage.count': 2}
    """
    name = read_name(column, "mean")
    if weights is not None:
        return _weighted(
            name, bounds, read_name(weights, "mean"), weight_bounds, share, read_own(limits)
        )
    if weight_bounds is not None:
        raise InvalidArgument(
            f"mean({name!r}): weight_bounds= go with a column of weights: weights='quantity'."
        )
    return _bounded(Mean, name, bounds, share, limits)


def _weighted(
    name: str,
    bounds: Pair | None,
    weights: str,
    weight_bounds: Pair | None,
    share: float,
    limits: Limits,
) -> Aggregate:
    if name == weights:
        raise InvalidArgument(f"mean({name!r}): the weights are another column.")
    read = (
        read_bounds(bounds, f"mean({name!r})"),
        read_bounds(weight_bounds, f"mean({name!r}, weights={weights!r})"),
    )
    return WeightedMean(read_share(share), name, weights, *read, limits=limits)


@statistic("'wage', bounds=(0, 100)", elsewhere="variance")
def var(
    column: str,
    bounds: Pair | None = None,
    *,
    ddof: int = 1,
    share: float = 1,
    **limits: Unpack[OwnLimits],
) -> Aggregate:
    """Variance of a column's values that are not missing.

    Input:  bounds (column unit) as in `sum`; ddof: 1 divides by n - 1, as pandas and Polars do, 0
            by n
    Output: square of the column unit, float, between 0 and the largest variance that the bounds
            allow
    Bound:  the sum and the count of `mean`, shared with a mean of the same column and bounds; and a
            sum of squared distances from the middle of the bounds, each less half of the largest
            one
    Errors: as in `sum`

    >>> var("wage").typed
    "var('wage')"
    """
    name = read_name(column, "var")
    return _bounded(Var, name, bounds, share, limits, ddof=read_ddof(ddof, f"var({name!r})"))


@statistic("'wage', bounds=(0, 100)", elsewhere="stddev stdev")
def std(
    column: str,
    bounds: Pair | None = None,
    *,
    ddof: int = 1,
    share: float = 1,
    **limits: Unpack[OwnLimits],
) -> Aggregate:
    """Standard deviation of a column's values that are not missing: the root of `var`.

    Input:  as in `var`
    Output: column unit, float; of dates and times a duration
    Bound:  as in `var`; the root is post-processing
    Errors: as in `sum`

    >>> std("wage", ddof=0).typed
    "std('wage', ddof=0)"
    """
    name = read_name(column, "std")
    return _bounded(Std, name, bounds, share, limits, ddof=read_ddof(ddof, f"std({name!r})"))


def _bounded(
    made: type[BoundedStatistic],
    column: str,
    bounds: Pair | None,
    share: float,
    limits: OwnLimits,
    **more: Any,
) -> Aggregate:
    """A statistic of a column whose values are clipped to bounds."""
    name = read_name(column, made.verb)
    read = read_bounds(bounds, f"{made.verb}({name!r})")
    return made(read_share(share), column=name, bounds=read, limits=read_own(limits), **more)


@statistic("'wage', bounds=(0, 100)", elsewhere="skewness")
def skew(
    column: str, bounds: Pair | None = None, *, share: float = 1, **limits: Unpack[OwnLimits]
) -> Aggregate:
    """Skewness of a column's values that are not missing:
    the mean of ((value - mean) / deviation)³.

    Input:  bounds (column unit) as in `sum`; `dp.Auto()` cannot choose them, since it would cut off
            the tails
    Output: a float without a unit: that of the values at hand, as `skew()` of Polars (pandas
            corrects for samples). For n values it lies between -(n - 2)/√(n - 1) and (n - 2)/√(n -
            1). It is 0 where the deviation is below about 1% of half the width of the bounds,
            because sums on a grid cannot tell it there
    Bound:  the sums and the count of `var`, shared with a mean and a variance of the same column
            and bounds; and a sum of cubed distances from the middle of the bounds, each at most the
            cube of half their width: see `dpframe.plan.totals.sums.product_total`. The bounds
            should be close: where values fill a small part of them, the noise of three sums is
            divided by a small deviation cubed
    Source: Kirby 1974, Water Resources Research 10, for the largest skewness of n values
    Errors: as in `sum`

    >>> skew("wage", bounds=(0, 100)).typed
    "skew('wage', bounds=(0, 100))"
    """
    return _bounded(Skew, column, bounds, share, limits)


@statistic("'wage', bounds=(0, 100)", elsewhere="kurt")
def kurtosis(
    column: str, bounds: Pair | None = None, *, share: float = 1, **limits: Unpack[OwnLimits]
) -> Aggregate:
    """Kurtosis of a column's values that are not missing:
    the mean of ((value - mean) / deviation)⁴, less 3.

    Input:  bounds as in `skew`
    Output: a float without a unit: that of the values at hand, as `kurtosis()` of Polars (pandas
            corrects for samples). It is 0 for a normal law. For n values it lies between -2 and (n²
            - 3n + 3)/(n - 1) - 3. It is 0 where the deviation is too small to tell, as for `skew`
    Bound:  the sums and the count of `skew`, shared with a skewness of the same column and bounds;
            and a sum of fourth powers of distances from the middle of the bounds, each less half of
            the largest one, so that one is at most h⁴/2 for bounds of half-width h: see
            `dpframe.plan.totals.sums.product_total`. The bounds should be close
    Source: Dalén 1987, Statistics and Probability Letters 5, for the largest kurtosis of n values
    Errors: as in `skew`

    >>> kurtosis("wage", bounds=(0, 100)).typed
    "kurtosis('wage', bounds=(0, 100))"
    """
    return _bounded(Kurtosis, column, bounds, share, limits)


@statistic("'wage', bounds=(1, 100)", elsewhere="gmean geomean")
def geometric_mean(
    column: str, bounds: Pair | None = None, *, share: float = 1, **limits: Unpack[OwnLimits]
) -> Aggregate:
    """Geometric mean of a column's values that are not missing: e to the mean of their logarithms.

    Input:  bounds (column unit) as in `sum`, both above 0 and at most 2^64 times apart; a value at
            or below the lower one, 0 and negative values included, counts as the lower one.
            `dp.Auto()` cannot choose them
    Output: column unit, float, inside the bounds
    Bound:  a sum of logarithms, each clipped to those of the bounds and measured from their middle,
            so that one is at most log(high/low)/2 in size, and the count of `mean`. Both are a
            row's integers on a grid: see `dpframe.plan.totals.log_total`. What is released is e to
            the mean that they make, as `mean` makes it, and its interval is e to the ends of the
            mean's: the exponential only grows. A logarithm is off by at most 4e-8 and half a step
            of its grid
    Errors: as in `sum`; InvalidBounds for a lower bound that is not above 0, where it is asked

    >>> geometric_mean("wage", bounds=(1, 100)).typed
    "geometric_mean('wage', bounds=(1, 100))"
    """
    return _bounded(GeometricMean, column, bounds, share, limits)


class FrameMoments(AskedFrame[Table_co]):
    """Methods of a protected frame: sums, means and variances."""

    __slots__ = ()

    def sum(
        self,
        column: Columns | None = None,
        bounds: Pairs | None = None,
        unit_bounds: Pairs | None = None,
        **limits: Unpack[RowLimits],
    ) -> Query[Table_co]:
        """Sum of a column (the only one may be left out); see `dp.sum`."""
        return self._ask(sum, column, bounds, unit_bounds, limits=limits)

    def mean(
        self,
        column: Columns | None = None,
        bounds: Pairs | None = None,
        *,
        weights: str | None = None,
        weight_bounds: Pair | None = None,
        **limits: Unpack[RowLimits],
    ) -> Query[Table_co]:
        """Mean of a column (the only one may be left out); see `dp.mean`."""
        return self._ask(
            mean, column, bounds, weights=weights, weight_bounds=weight_bounds, limits=limits
        )

    def var(
        self,
        column: Columns | None = None,
        bounds: Pairs | None = None,
        *,
        ddof: int = 1,
        **limits: Unpack[RowLimits],
    ) -> Query[Table_co]:
        """Variance of a column (the only one may be left out); see `dp.var`."""
        return self._ask(var, column, bounds, ddof=ddof, limits=limits)

    def std(
        self,
        column: Columns | None = None,
        bounds: Pairs | None = None,
        *,
        ddof: int = 1,
        **limits: Unpack[RowLimits],
    ) -> Query[Table_co]:
        """Standard deviation of a column (the only one may be left out); see `dp.std`."""
        return self._ask(std, column, bounds, ddof=ddof, limits=limits)

    def skew(
        self,
        column: Columns | None = None,
        bounds: Pairs | None = None,
        **limits: Unpack[RowLimits],
    ) -> Query[Table_co]:
        """Skewness of a column (the only one may be left out); see `dp.skew`."""
        return self._ask(skew, column, bounds, limits=limits)

    def kurtosis(
        self,
        column: Columns | None = None,
        bounds: Pairs | None = None,
        **limits: Unpack[RowLimits],
    ) -> Query[Table_co]:
        """Kurtosis of a column (the only one may be left out); see `dp.kurtosis`."""
        return self._ask(kurtosis, column, bounds, limits=limits)

    def geometric_mean(
        self,
        column: Columns | None = None,
        bounds: Pairs | None = None,
        **limits: Unpack[RowLimits],
    ) -> Query[Table_co]:
        """Geometric mean of a column (the only one may be left out); see `dp.geometric_mean`."""
        return self._ask(geometric_mean, column, bounds, limits=limits)


class GroupMoments(AskedGroups[Table_co]):
    """Methods of groups: sums, means and variances, one per group."""

    __slots__ = ()

    def sum(
        self, column: Columns, bounds: Pairs | None = None, unit_bounds: Pairs | None = None
    ) -> Query[Table_co]:
        """Sum of a column per group; see `dp.sum`."""
        return self._ask(sum, column, bounds, unit_bounds)

    def mean(
        self,
        column: Columns,
        bounds: Pairs | None = None,
        *,
        weights: str | None = None,
        weight_bounds: Pair | None = None,
    ) -> Query[Table_co]:
        """Mean of a column per group; see `dp.mean`."""
        return self._ask(mean, column, bounds, weights=weights, weight_bounds=weight_bounds)

    def var(
        self, column: Columns, bounds: Pairs | None = None, *, ddof: int = 1
    ) -> Query[Table_co]:
        """Variance of a column per group; see `dp.var`."""
        return self._ask(var, column, bounds, ddof=ddof)

    def std(
        self, column: Columns, bounds: Pairs | None = None, *, ddof: int = 1
    ) -> Query[Table_co]:
        """Standard deviation of a column per group; see `dp.std`."""
        return self._ask(std, column, bounds, ddof=ddof)

    def skew(self, column: Columns, bounds: Pairs | None = None) -> Query[Table_co]:
        """Skewness of a column per group; see `dp.skew`."""
        return self._ask(skew, column, bounds)

    def kurtosis(self, column: Columns, bounds: Pairs | None = None) -> Query[Table_co]:
        """Kurtosis of a column per group; see `dp.kurtosis`."""
        return self._ask(kurtosis, column, bounds)

    def geometric_mean(self, column: Columns, bounds: Pairs | None = None) -> Query[Table_co]:
        """Geometric mean of a column per group; see `dp.geometric_mean`."""
        return self._ask(geometric_mean, column, bounds)
