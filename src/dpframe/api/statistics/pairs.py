"""Ratios of sums, covariances and correlations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from dpframe.api.arguments import (
    OwnLimits,
    read_bounds,
    read_ddof,
    read_mapping,
    read_name,
    read_own,
    read_share,
)
from dpframe.api.query import Query
from dpframe.api.statistics.asking import AskedGroups
from dpframe.engine import Table_co
from dpframe.errors import InvalidArgument, InvalidBounds, UnknownColumn
from dpframe.plan import Aggregate, Auto, Bounds
from dpframe.plan.statistics import Count, CountUnits, Sum
from dpframe.plan.statistics.base import mean_instead
from dpframe.plan.statistics.two_columns import Corr, Cov, Ratio
from dpframe.usage import check_flags, statistic

__all__ = ["corr", "cov", "ratio"]  # the statistics, which are dp.NAME

PairBounds = Mapping[str, Any] | None


@statistic("dp.sum('wage', bounds=(0, 100)), dp.sum('hours', bounds=(0, 60))")
def ratio(
    top: Aggregate, bottom: Aggregate, *, share: float = 1, **limits: Unpack[OwnLimits]
) -> Aggregate:
    """Ratio of two sums, such as revenue for each visit.

    Input:  top, bottom: `dp.sum(...)` with its bounds; the values below are 0 or more. Missing
            values add nothing to either sum, so a row may be in one of them alone: `drop_nulls`
            before keeps rows that have both
    Output: a float, unit of the sum above over that of the sum below. It is drawn to 0 where the
            noise of the sum below is as large as that sum
    Bound:  two sums, each shared with the same sum elsewhere in the question. The interval is
            Fieller's set, which holds the ratio without noise as often as stated; where the sum
            below may be 0, it has no end
    Source: Fieller 1954, Journal of the Royal Statistical Society B 16
    Errors: InvalidArgument for what is no sum; InvalidBounds where the sum below may be negative;
            as in `sum`

    >>> import dpframe as dp
    >>> dp.ratio(dp.sum("wage", bounds=(0, 100)), dp.sum("hours", bounds=(0, 60)))
    dp.ratio(dp.sum('wage', bounds=(0, 100)), dp.sum('hours', bounds=(0, 60)))
    """
    match top, bottom:
        case Sum(), Sum():
            pass
        case Sum() | str(), Count() | CountUnits():
            raise InvalidArgument(f"ratio: {mean_instead(top, bottom)}")
        case _:
            raise InvalidArgument(
                "ratio: give two sums: dp.ratio(dp.sum('wage', bounds=(0, 100)), dp.sum('hours', "
                "bounds=(0, 60)))."
            )
    if top.limits != bottom.limits or top.limits.typed:
        raise InvalidArgument(
            "ratio: both sums are measured under the same limits. Type them once: "
            "dp.ratio(dp.sum('wage', bounds=(0, 100)), dp.sum('hours', bounds=(0, 60)), "
            "max_rows=5)."
        )
    return Ratio(read_share(share), top, bottom, limits=read_own(limits))


@statistic("'wage', 'hours', bounds={'wage': (0, 100), 'hours': (0, 60)}", elsewhere="covariance")
def cov(
    x: str,
    y: str,
    bounds: PairBounds = None,
    *,
    ddof: int = 1,
    narrow: bool = False,
    share: float = 1,
    **limits: Unpack[OwnLimits],
) -> Aggregate:
    """Covariance of two columns, over the rows in which both have a value.

    Input:  bounds: a dict from each column to its pair (column unit), as in `sum`; a column that
            was clipped before may be left out; ddof: 1 divides by n - 1, as pandas and Polars do, 0
            by n; narrow: whether the release first finds narrower bounds inside the typed ones, for
            20% of the price of the question. Noise is then smaller; values beyond these bounds are
            clipped, and the answer is that of clipped values
    Output: product of both columns' units, float, no larger in size than the bounds allow
    Bound:  sums of both columns, measured from the middles of their bounds, a sum of products of
            these distances, and a count: see `dpframe.plan.totals.sums.product_total`. The interval
            is about the noise. Narrower bounds follow from noisy answers alone: see
            `dpframe.release.auto.narrowing`
    Errors: as in `sum`; InvalidArgument for a column beside itself, and for narrow=True where no
            bounds can be narrower; UnsupportedOperation for narrow=True beside dp.Auto()

    >>> import polars as pl, dpframe as dp
    >>> frame = pl.DataFrame({"user": [1, 2], "wage": [3.0, 4.0], "hours": [8, 9]}).dp(unit="user")
    >>> both = {"wage": (0, 10), "hours": (0, 12)}
    >>> query = frame.agg(both=dp.cov("wage", "hours", both), max_rows=1)
    >>> query.sensitivity["both.products"].l1  # 5 from the middle, times 6 from the middle
    30
    """
    check_flags("cov: narrow= is True or False.", narrow)
    pair = read_pair_bounds(x, y, bounds, "cov")
    return Cov(
        read_share(share), *pair, read_ddof(ddof, "cov"), narrow=narrow, limits=read_own(limits)
    )


@statistic(
    "'wage', 'hours', bounds={'wage': (0, 100), 'hours': (0, 60)}",
    elsewhere="correlation pearson_corr",
)
def corr(
    x: str,
    y: str,
    bounds: PairBounds = None,
    *,
    narrow: bool = False,
    share: float = 1,
    **limits: Unpack[OwnLimits],
) -> Aggregate:
    """Pearson's correlation of two columns, over the rows in which both have a value.

    Input:  bounds, narrow: as in `cov`
    Output: a float from -1 to 1; 0 where a column's variance is too small to tell from 0
    Bound:  the totals of `cov`, and sums of squared distances from the middles, as for `var`, in
            the same rows. The interval is about the noise, and holds with the means and variances
            that fit: see `dpframe.release.estimators.correlation`
    Errors: as in `cov`

    >>> corr("wage", "hours").typed
    "corr('wage', 'hours')"
    """
    check_flags("corr: narrow= is True or False.", narrow)
    return Corr(
        read_share(share),
        *read_pair_bounds(x, y, bounds, "corr"),
        narrow=narrow,
        limits=read_own(limits),
    )


def read_pair_bounds(
    x: object, y: object, bounds: object, verb: str
) -> tuple[str, str, Bounds | Auto | None, Bounds | Auto | None]:
    """Two different columns and the bounds of each, from a dict."""
    first, second = read_name(x, verb), read_name(y, verb)
    if first == second:
        raise InvalidArgument(
            f"{verb}: name two columns. That of a column beside itself is dp.var({first!r}, ...)."
        )
    call = f"{verb}({first!r}, {second!r})"
    if bounds is not None and not isinstance(bounds, Mapping):
        raise InvalidBounds(
            f"{call}: bounds= is a dict: bounds={{{first!r}: (0, 100), {second!r}: (0, 100)}}."
        )
    read = {} if bounds is None else read_mapping(bounds, call)
    for name, ends in read.items():
        if ends is None:
            raise InvalidBounds(
                f"{call}: give both bounds of {name!r}, such as {{{name!r}: (0, 100)}}."
            )
        if name not in (first, second):
            raise UnknownColumn(
                f"{call}: bounds= names {name!r}, which is neither of both columns."
            )
    return first, second, read_bounds(read.get(first), call), read_bounds(read.get(second), call)


class GroupPairs(AskedGroups[Table_co]):
    """Covariances and correlations by group."""

    def cov(
        self, x: str, y: str, bounds: PairBounds = None, *, ddof: int = 1, narrow: bool = False
    ) -> Query[Table_co]:
        """Covariance of two columns per group, in a column named "x_y"; see `dp.cov`."""
        return self._query(((f"{x}_{y}", cov(x, y, bounds, ddof=ddof, narrow=narrow)),))

    def corr(
        self, x: str, y: str, bounds: PairBounds = None, *, narrow: bool = False
    ) -> Query[Table_co]:
        """Correlation of two columns per group, in a column named "x_y"; see `dp.corr`."""
        return self._query(((f"{x}_{y}", corr(x, y, bounds, narrow=narrow)),))
