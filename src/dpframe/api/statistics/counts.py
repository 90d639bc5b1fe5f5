"""Counts: of rows, of values, of units and of different values."""

from __future__ import annotations

from typing import Unpack

from dpframe.api.arguments import (
    Columns,
    OwnLimits,
    RowLimits,
    read_name,
    read_own,
    read_row_limits,
    read_share,
)
from dpframe.api.query import Query
from dpframe.api.statistics.asking import AskedFrame, AskedGroups
from dpframe.engine import Table_co
from dpframe.plan import Aggregate, Limits
from dpframe.plan.statistics import Count, CountDistinct, CountUnits
from dpframe.usage import statistic

__all__ = ["count", "count_units", "n_unique"]  # the statistics, which are dp.NAME


@statistic("", elsewhere="size len n_rows")
def count(column: str | None = None, *, share: float = 1, **limits: Unpack[OwnLimits]) -> Aggregate:
    """Number of rows, or of the values of a column that are not missing.

    Input:  column, or None for rows; share, the weight of this aggregate when ε is split; max_rows,
            max_groups, max_rows_per_group: limits on one unit for this column alone, in place of
            those of the question
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
    name = None if column is None else read_name(column, "count")
    return Count(read_share(share), name, limits=read_own(limits))


@statistic("")
def count_units(*, share: float = 1, **limits: Unpack[OwnLimits]) -> Aggregate:
    """Number of distinct units; with `dp.Rows(k)`, which has no identifiers, the number of rows.

    Output: integer, signed
    Bound:  see `dpframe.theory.formulas.sensitivity.grouped.unit_counts`

    >>> import polars as pl, dpframe as dp
    >>> frame = pl.DataFrame({"user": [1, 1, 2]}).dp(unit="user")
    >>> frame.agg(people=dp.count_units()).sensitivity["people"].l1  # no limit on rows is needed
    1
    """
    return CountUnits(read_share(share), limits=read_own(limits))


@statistic("'city'", elsewhere="nunique count_distinct approx_n_unique")
def n_unique(column: str, *, share: float = 1, **limits: Unpack[OwnLimits]) -> Aggregate:
    """Number of different values of a column that are not missing.

    Output: integer, signed
    Bound:  of a unit's different values at most max_rows_per_group in a group and max_rows in total
            count, chosen at random; see `dpframe.theory.formulas.sensitivity.grouped.row_counts`.
            If many units share values, small limits lose hardly any value; dp.Auto() estimates this
            privately
    Errors: UnknownColumn, WrongType, UnboundedContribution where it is asked

    >>> n_unique("shop").typed
    "n_unique('shop')"
    """
    return CountDistinct(read_share(share), read_name(column, "n_unique"), limits=read_own(limits))


class FrameCounts(AskedFrame[Table_co]):
    """Methods of a protected frame: counts."""

    __slots__ = ()

    def count(self, column: Columns | None = None, **limits: Unpack[RowLimits]) -> Query[Table_co]:
        """Number of rows, or of the values of a column that are not missing; see `dp.count`."""
        if column is not None:
            return self._ask(count, column, limits=limits)
        return self._one("count", count(), read_row_limits(**limits))

    def count_units(self) -> Query[Table_co]:
        """Number of distinct units; see `dp.count_units`."""
        return self._one("count_units", count_units(), Limits())

    def n_unique(
        self, column: Columns | None = None, **limits: Unpack[RowLimits]
    ) -> Query[Table_co]:
        """Number of different values of a column (the only one may
        be left out); see `dp.n_unique`.
        """
        return self._ask(n_unique, column, limits=limits)


class GroupCounts(AskedGroups[Table_co]):
    """Methods of groups: counts, one per group."""

    __slots__ = ()

    def count(self, column: Columns | None = None) -> Query[Table_co]:
        """Rows per group, or values of a column that are not missing; see `dp.count`."""
        return self._query((("count", count()),)) if column is None else self._ask(count, column)

    def count_units(self) -> Query[Table_co]:
        """Distinct units per group; see `dp.count_units`."""
        return self._query((("count_units", count_units()),))

    def n_unique(self, column: Columns) -> Query[Table_co]:
        """Different values of a column per group; see `dp.n_unique`."""
        return self._ask(n_unique, column)
