"""Quantiles, distribution functions, most frequent values;
and the first and last value of a unit, for `per_unit`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Unpack

from dpframe.api.arguments import (
    Columns,
    GroupLimits,
    OwnLimits,
    Pair,
    Pairs,
    RowLimits,
    read_bounds,
    read_limits,
    read_min_units,
    read_name,
    read_own,
    read_points,
    read_rank,
    read_share,
    read_values,
    typed_too,
)
from dpframe.api.query import Query
from dpframe.api.statistics.asking import AskedFrame, AskedGroups
from dpframe.api.statistics.counts import count
from dpframe.engine import Table_co
from dpframe.errors import InvalidArgument
from dpframe.plan import Aggregate, Layout, Limits, read_keys
from dpframe.plan.declared import min_units_of
from dpframe.plan.statistics import Cdf, Mode, Quantile, Several
from dpframe.plan.steps import Pick, check_limit
from dpframe.usage import statistic

# the statistics, which are dp.NAME
__all__ = ["cdf", "first", "last", "max", "median", "min", "mode", "quantile"]


@statistic("'wage', 0.9, bounds=(0, 100)", elsewhere="percentile")
def quantile(
    column: str,
    q: float | Sequence[float],
    bounds: Pair | None = None,
    *,
    share: float = 1,
    **limits: Unpack[OwnLimits],
) -> Aggregate:
    """The value that a part q of a column's values does not exceed; or several, for a list of q.

    Input:  q in [0, 1], to six decimals, or a list of different ones; bounds (column unit) as in
            `sum`
    Output: column unit, a multiple of the smallest step that leaves at most 2^22 values between the
            bounds: 1 or 5 times a power of ten, or a number of seconds, minutes or hours. It is at
            least 1 in a column of integers or dates. Dates, times and durations keep their type; a
            float where bounds reach beyond 64 bits. For a list there is one column for each q:
            `agg(wage=dp.quantile("wage", [0.25, 0.75]))` has `wage_0.25`, `wage_0.75`
    Bound:  the value is chosen among these candidates, by the numbers of rows below and above each.
            Permute-and-flip costs what l1 calls for; the exponential mechanism needs a δ or a ρ and
            costs what l2 calls for. The one with less noise is taken: see
            `dpframe.theory.formulas.loss.quantile_selection`. Rounder numbers stand in the list of
            candidates more often. Beside the rows of each group there are 8 · scale public rows,
            less one for each 32 · min(q, 1 - q) / max(q, 1 - q) rows, rounded up (32 for a median,
            4 for a 9th decile), spread evenly between the bounds (not for q of 0 and 1). So a group
            with too few rows gets a value near the part q of the way between its bounds.
            `release(..., ci=0.95)` spends half of the price on an interval: see
            `dpframe.theory.formulas.error.quantile_interval`. Several q between 0 and 1 together
            follow from one tree of noisy counts if its expected error is smaller than that of a
            choice for each: see `dpframe.theory.formulas.rank_trees`. The number of q and of
            candidates decides, and no row is read for it. The values of a tree grow with q, may lie
            between candidates, and have free intervals
    Errors: as in `sum`; InvalidArgument for q

    >>> import polars as pl, dpframe as dp
    >>> wages = pl.DataFrame({"user": [1, 1, 2], "wage": [3.0, 4.0, 5.0]})
    >>> frame = wages.dp(unit="user", budget=dp.Budget(epsilon=1.0))
    >>> query = frame.agg(low=dp.quantile("wage", 0.25, bounds=(0, 10)), max_rows=2)
    >>> 0 <= query.release(epsilon=0.5).value <= 10
    True
    """
    own, q = read_own(limits), q.tolist() if hasattr(q, "tolist") else q  # of an array
    if not isinstance(q, (list, tuple)):
        return _quantile(column, read_rank(q), bounds, share, "quantile", own)
    ranks = [read_rank(x) for x in q]
    if not ranks or len(set(ranks)) != len(ranks):
        raise InvalidArgument(
            f"quantile({column!r}): q= is a number, or a list of different numbers, from 0 to 1."
        )
    beside = tuple(rank for rank in ranks if 0 < rank < 1)
    one = _quantile(column, ranks[0], bounds, share, "quantile", own)
    parts = ((f"{float(rank):g}", replace(one, q=rank, beside=beside)) for rank in ranks)
    return Several(one.share, tuple(parts))


@statistic("'wage', points=[10, 20, 50], bounds=(0, 100)", elsewhere="ecdf")
def cdf(
    column: str,
    points: Sequence[Any],
    bounds: Pair | None = None,
    *,
    share: float = 1,
    **limits: Unpack[OwnLimits],
) -> Aggregate:
    """The part of a column's values that are at most each point: its distribution function.

    Input:  points: different values between the bounds, of the column's type; bounds (column unit)
            as in `sum`
    Output: parts from 0 to 1 that grow with the points, one column for each:
            `agg(wage=dp.cdf("wage", [10, 20]))` has `wage_10` and `wage_20`. A group whose rows are
            hidden by noise gets the parts of evenly spread values
    Bound:  all points of a question follow from one measurement, for one price: rows between the
            points, in a tree of noisy counts, see `dpframe.theory.formulas.rank_trees`. Beside a
            list of quantiles with these bounds they follow from its tree. Intervals are free, and
            right for any values
    Errors: as in `sum`; InvalidArgument for points; InvalidBounds for points outside the bounds,
            and for dp.Auto()

    >>> import polars as pl, dpframe as dp
    >>> wages = pl.DataFrame({"user": [1, 1, 2], "wage": [3.0, 4.0, 5.0]})
    >>> frame = wages.dp(unit="user", budget=dp.Budget(epsilon=1.0))
    >>> out = frame.cdf("wage", [2, 4.5], bounds=(0, 10), max_rows=2).release(epsilon=0.5)
    >>> out.table.columns
    ['wage_2', 'wage_4.5']
    """
    name = read_name(column, "cdf")
    listed, read = read_points(points, f"cdf({name!r})"), read_bounds(bounds, f"cdf({name!r})")
    weight, own = read_share(share), read_own(limits)
    return Several(
        weight,
        tuple((label, Cdf(weight, name, point, read, limits=own)) for label, point in listed),
    )


@statistic("'wage', bounds=(0, 100)")
def median(
    column: str, bounds: Pair | None = None, *, share: float = 1, **limits: Unpack[OwnLimits]
) -> Aggregate:
    """The middle value: `quantile` at 1/2, which says what column,
    bounds, share and the limits are.

    >>> import polars as pl, dpframe as dp
    >>> wages = pl.DataFrame({"user": [1, 1, 2], "wage": [3.0, 4.0, 5.0]})
    >>> frame = wages.dp(unit="user", budget=dp.Budget(epsilon=1.0))
    >>> out = frame.agg(wage=dp.median("wage", bounds=(0, 10)), max_rows=2).release(
    ...     epsilon=0.5, ci=0.95
    ... )
    >>> out.table.columns
    ['wage', 'wage_low', 'wage_high']
    """
    return _quantile(column, Fraction(1, 2), bounds, share, "median", read_own(limits))


@statistic("'wage', bounds=(0, 100)")
def min(
    column: str, bounds: Pair | None = None, *, share: float = 1, **limits: Unpack[OwnLimits]
) -> Aggregate:
    """A value that hardly any row is below.
    Its column, bounds, share and limits are those of `quantile`.

    The smallest value is one person's. The release is a value with few rows below it: as many as
    the noise can hide, about (scale · ln 1024) rows.

    >>> min("wage").typed
    "min('wage')"
    """
    return _quantile(column, Fraction(0), bounds, share, "min", read_own(limits))


@statistic("'wage', bounds=(0, 100)")
def max(
    column: str, bounds: Pair | None = None, *, share: float = 1, **limits: Unpack[OwnLimits]
) -> Aggregate:
    """A value that hardly any row is above; see `min`.

    >>> max("wage").typed
    "max('wage')"
    """
    return _quantile(column, Fraction(1), bounds, share, "max", read_own(limits))


def _quantile(
    column: str, q: Fraction, bounds: Pair | None, share: float, verb: str, limits: Limits
) -> Quantile:
    name = read_name(column, verb)
    return Quantile(
        read_share(share), name, q, read_bounds(bounds, f"{verb}({name!r})"), verb, limits=limits
    )


@statistic("'city', keys=['Bonn', 'Kiel']")
def mode(
    column: str, keys: Iterable[Any] | None = None, *, share: float = 1, **limits: Unpack[OwnLimits]
) -> Aggregate:
    """The most frequent of the listed values of a column.

    Input:  keys: the values to choose from, listed without looking at the data; a column of type
            Enum or Boolean, and one made by `cut`, brings them. Null counts if it is listed. Rows
            with other values do not count
    Output: one of the listed values, in the type that the column has as a key: its own, but text
            for categories and float for decimals, as everywhere inside the engine
    Bound:  a choice, scored by the rows that have each value; mechanism and cost are as in
            `quantile`: see `dpframe.theory.formulas.loss.quantile_selection`
    Errors: InvalidArgument, UnknownColumn, WrongType, UnboundedContribution where it is asked

    >>> mode("city", keys=["Bonn", "Kiel"]).typed
    "mode('city')"
    """
    name = read_name(column, "mode")
    return Mode(
        read_share(share), name, read_values(keys, f"mode({name!r})"), limits=read_own(limits)
    )


def _top_k(column: str, k: int, keys: Iterable[Any] | None = None) -> Aggregate:
    """The k most frequent of the listed values.
    Only `PrivateFrame.top_k` asks this, since the answer has k rows.
    """
    name = read_name(column, "top_k")
    return Mode(Fraction(1), name, read_values(keys, f"top_k({name!r})"), check_limit(k, "k"))


@statistic("'city', by='when'")
def first(column: str, by: str) -> Aggregate:
    """The value of a column in a unit's first row by another column; for `per_unit` only.

    Input:  by: a number, a time or a text; rows in which it is missing do not count. Of several
            first rows the smallest value is taken (missing only if all are missing), so the order
            of rows never matters
    Output: column unit
    Errors: UnsupportedOperation anywhere else, because that row is one person's

    >>> first("shop", by="when").typed
    "first('shop', by='when')"
    """
    return _pick(column, by, "first")


@statistic("'city', by='when'")
def last(column: str, by: str) -> Aggregate:
    """The value of a column in a unit's last row by another column; see `first`.

    >>> last("shop", by="when").typed
    "last('shop', by='when')"
    """
    return _pick(column, by, "last")


def _pick(column: str, by: str, verb: str) -> Aggregate:
    name = read_name(column, verb)
    return Pick(Fraction(1), name, read_name(by, f"{verb}({name!r}): by="), verb == "last")


Points = Sequence[Any] | Mapping[str, Sequence[Any]]  # of one column, or of each of several


class FrameChoices(AskedFrame[Table_co]):
    """Methods of a protected frame: quantiles, distribution functions and most frequent values."""

    __slots__ = ()

    def quantile(
        self,
        column: Columns | None = None,
        q: float | Sequence[float] = 0.5,
        bounds: Pairs | None = None,
        **limits: Unpack[RowLimits],
    ) -> Query[Table_co]:
        """One or several quantiles of a column (the only one may be left out); see `dp.quantile`.

        Several are named after the column and the rank: `spend_0.25`, `spend_0.75`.
        """
        return self._ask(
            quantile, column, q, bounds, limits=limits, also=typed_too(q=q, bounds=bounds)
        )

    def cdf(
        self,
        column: Columns,
        points: Points,
        bounds: Pairs | None = None,
        **limits: Unpack[RowLimits],
    ) -> Query[Table_co]:
        """The part of a column's values that are at most each point; see `dp.cdf`.

        Columns are named after the column and the point: `spend_10`, `spend_50`.
        """
        return self._ask(
            cdf, column, points, bounds, limits=limits, also=typed_too(points=points, bounds=bounds)
        )

    def median(
        self,
        column: Columns | None = None,
        bounds: Pairs | None = None,
        **limits: Unpack[RowLimits],
    ) -> Query[Table_co]:
        """Median of a column (the only one may be left out); see `dp.median`."""
        return self._ask(median, column, bounds, limits=limits)

    def min(
        self,
        column: Columns | None = None,
        bounds: Pairs | None = None,
        **limits: Unpack[RowLimits],
    ) -> Query[Table_co]:
        """A value that hardly any row is below; see `dp.min`."""
        return self._ask(min, column, bounds, limits=limits)

    def max(
        self,
        column: Columns | None = None,
        bounds: Pairs | None = None,
        **limits: Unpack[RowLimits],
    ) -> Query[Table_co]:
        """A value that hardly any row is above; see `dp.max`."""
        return self._ask(max, column, bounds, limits=limits)

    def mode(
        self,
        column: Columns | None = None,
        keys: Iterable[Any] | None = None,
        **limits: Unpack[RowLimits],
    ) -> Query[Table_co]:
        """The most frequent of the listed values of a column (the only one
        may be left out); see `dp.mode`.
        """
        return self._ask(mode, column, keys, limits=limits)

    def top_k(
        self,
        column: str,
        k: int,
        keys: Iterable[Any] | None = None,
        *,
        min_units: int | None = None,
        **limits: Unpack[GroupLimits],
    ) -> Query[Table_co]:
        """The k most frequent values of a column, in order:
        of the listed ones, or of those that the data holds.

        Input:  k; keys as in `dp.mode`, or None where nobody can list them. Then limits on one unit
                (counts), as in `group_by`: at most max_groups values, max_rows_per_group rows with
                each, max_rows rows in all. min_units: a value that fewer units have is never
                released, as in `group_by`
        Output: with keys, k rows with `rank` from 1 and the value. Without, the value and its noisy
                `count` of rows, the largest first: k rows, or fewer where fewer values are found,
                as the report says. Null is a value where keys= lists None, and is never found, as
                in `group_by`
        Bound:  with keys: k choices, one after the other, each among the values that were not
                chosen yet, for a k-th of the price; see
                `dpframe.theory.formulas.loss.quantile_selection.count_scale`. Without: values are
                found as groups of `group_by` are, by a threshold on their noisy number of units,
                which needs a δ. Rows are counted with noise of their own. The price is split evenly
                over both numbers. With max_rows=1 or max_rows_per_group=1 they are one number,
                which has the whole price. The largest counts are taken from the noisy ones, which
                is post-processing. Intervals hold for all values that were found, together; see
                `dpframe.release.accuracy.intervals.alpha_of_each`
        Errors: as in `dp.mode`; InvalidArgument for more values than are listed; without keys
                UnboundedContribution for a missing limit, and DeltaRequired at a release without a
                δ

        >>> import polars as pl, dpframe as dp
        >>> rows = pl.DataFrame(
        ...     {"user": range(900), "word": ["yes"] * 800 + ["no"] * 99 + ["perhaps"]}
        ... )
        >>> frame = rows.dp(unit="user", budget=dp.Budget(epsilon=10.0, delta=1e-6))
        >>> out = frame.top_k("word", 2, max_rows=1).release(epsilon=10.0, delta=1e-6)
        >>> out.table["word"].to_list()
        ['yes', 'no']
        """
        name = read_name(column, "top_k")
        read, least = read_limits(**limits), read_min_units(min_units)
        if keys is None and not self._listed(name):
            return self._largest(name, check_limit(k, "k"), read, least)
        min_units_of(least, self._step.table, found=False, call=f"top_k({name!r}, {k!r})")
        if (apart := replace(read, max_rows=None, auto=None)) != Limits():
            raise InvalidArgument(
                f"top_k({name!r}, {k!r}): listed values are chosen for the whole table, so only "
                f"rows have a limit: {apart.typed} is for values that nobody listed. Type "
                "max_rows=5 in its place."
            )
        return self._one(name, _top_k(column, k, keys), read)

    def _listed(self, name: str) -> bool:
        """Whether the values of a column are declared, or listed by its type."""
        table = self._step.table
        return (
            read_keys(None, (name,), (table.column(name, "top_k").listed,), f"top_k({name!r})")
            is not None
        )

    def _largest(self, name: str, k: int, limits: Limits, min_units: int | None) -> Query[Table_co]:
        """Rows for each value of a column that is found, the k largest."""
        rows = "count" if name != "count" else "count_"
        verb, layout = f"top_k({name!r}, {k}, {{limit}})", Layout(largest=k)
        return self._query(
            ((rows, count()),), limits, by=(name,), verb=verb, layout=layout, min_units=min_units
        )


class GroupChoices(AskedGroups[Table_co]):
    """Methods of groups: quantiles and most frequent values, one per group."""

    __slots__ = ()

    def quantile(
        self, column: Columns, q: float | Sequence[float] = 0.5, bounds: Pairs | None = None
    ) -> Query[Table_co]:
        """One or several quantiles of a column per group; see `PrivateFrame.quantile`."""
        return self._ask(quantile, column, q, bounds)

    def cdf(self, column: Columns, points: Points, bounds: Pairs | None = None) -> Query[Table_co]:
        """The part of a column's values that are at most each point, per group; see `dp.cdf`."""
        return self._ask(cdf, column, points, bounds)

    def median(self, column: Columns, bounds: Pairs | None = None) -> Query[Table_co]:
        """Median of a column per group; see `dp.median`."""
        return self._ask(median, column, bounds)

    def min(self, column: Columns, bounds: Pairs | None = None) -> Query[Table_co]:
        """A value that hardly any row is below, per group; see `dp.min`."""
        return self._ask(min, column, bounds)

    def max(self, column: Columns, bounds: Pairs | None = None) -> Query[Table_co]:
        """A value that hardly any row is above, per group; see `dp.max`."""
        return self._ask(max, column, bounds)

    def mode(self, column: Columns, keys: Iterable[Any] | None = None) -> Query[Table_co]:
        """The most frequent of the listed values of a column per group; see `dp.mode`."""
        return self._ask(mode, column, keys)

    def top_k(self, column: str, k: int, keys: Iterable[Any] | None = None) -> Query[Table_co]:
        """The k most frequent of the listed values per group, k rows
        each; see `PrivateFrame.top_k`.
        """
        return self._ask(_top_k, column, k, keys)
