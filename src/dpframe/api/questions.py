"""The questions that a protected frame answers: one method per question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, Unpack

from dpframe.api.aggregates import read_aggregates
from dpframe.api.arguments import (
    GroupLimits,
    Pair,
    gathered,
    read_by,
    read_limits,
    read_min_units,
    read_name,
    read_names,
    read_row_limits,
    typed_too,
)
from dpframe.api.groups import PrivateGroupBy
from dpframe.api.hierarchy import HierarchyQuery, hierarchy_of, read_crossed, read_tree
from dpframe.api.marginals import MarginalsQuery, listed_levels, marginals_of, workload_of
from dpframe.api.query import Query
from dpframe.api.statistics import choices, counts, moments
from dpframe.api.statistics.asking import Cells
from dpframe.api.statistics.choices import FrameChoices
from dpframe.api.statistics.counts import FrameCounts, count
from dpframe.api.statistics.moments import FrameMoments
from dpframe.engine import Table_co
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan import (
    Aggregate,
    Auto,
    Formula,
    Key,
    Keys,
    Layout,
    Question,
    check_choice,
    read_keys,
    read_other,
)
from dpframe.plan.bins import intervals_of
from dpframe.plan.declared import check_levels, limits_of, min_units_of
from dpframe.plan.layout import check_margins, divided_by
from dpframe.plan.statistics import Several
from dpframe.plan.steps import basic as steps
from dpframe.plan.totals import check_squares
from dpframe.usage import explains


def cell_of(values: str | None, aggfunc: object, bounds: Pair | None) -> Aggregate:
    """The aggregate of each cell of a crosstab: by its word, or a statistic such as
    `dp.quantile("spend", 0.9)`.
    """
    if isinstance(aggfunc, Aggregate):
        if values is not None or bounds is not None or isinstance(aggfunc, Several):
            raise InvalidArgument(
                "crosstab: one statistic has its column and bounds itself: "
                "aggfunc=dp.median('spend', bounds=(0, 100))."
            )
        return aggfunc
    more = "; or a statistic, aggfunc=dp.quantile('spend', 0.9, bounds=(0, 100))"
    check_choice(aggfunc, ("count", "count_units", *_OF_VALUES), "crosstab: aggfunc", more)
    return _called(str(aggfunc), values, bounds, "crosstab")


_OF_VALUES: dict[str, Callable[[str, Pair | None], Aggregate]] = {
    "sum": moments.sum,
    "mean": moments.mean,
    "median": choices.median,
}


def _called(word: str, values: str | None, bounds: Pair | None, verb: str) -> Aggregate:
    """The aggregate of a word."""
    match word:
        case "count" | "count_units" if bounds is not None:
            raise InvalidArgument(
                f"{verb}: bounds= go with aggfunc='sum' or 'mean'; a count needs none."
            )
        case "count":
            return counts.count(values)
        case "count_units" if values is not None:
            raise InvalidArgument(
                "crosstab: aggfunc='count_units' counts people, whatever their values; no values=."
            )
        case "count_units":
            return counts.count_units()
    if values is None:
        raise InvalidArgument(f"{verb}: name the column to take the {word} of: values='spend'.")
    return _OF_VALUES[word](values, bounds)


def _side(names: tuple[str, ...]) -> str:
    """The columns down or across, as people type them."""
    return repr(list(names) if len(names) > 1 else names[0])


def check_cells(question: Question, *, margins: bool, parts: bool) -> None:
    """Refuse a crosstab whose cells are no numbers, or whose sums would be none of people, or
    without suppressed cells.

    Input:  the question; whether there are margins; whether cells are parts of these
    Errors: UnsupportedOperation; InvalidBounds where variances of margins would be beyond floats
    """
    (output,) = question.outputs
    if output.dtype is not None or output.formula is Formula.MODE:
        by, asked = ", ".join(map(repr, question.by)), question.aggregates[0][1].typed
        raise UnsupportedOperation(
            f"crosstab: its cells are numbers; for others: group_by({by}, ...).agg(dp.{asked})."
        )
    if not margins and not parts:
        return
    check_squares(
        (total for _, total in output.totals), f"crosstab: {question.aggregates[0][1].typed}"
    )
    if parts and output.formula is Formula.MEAN:
        raise UnsupportedOperation(
            "crosstab: normalize= gives parts of counts and sums; means have none."
        )
    total = output.total
    alone = 1 in (question.limits.max_groups, question.limits.max_rows) and not question.undecided
    if (
        output.formula not in (Formula.COUNT, Formula.SUM, Formula.MEAN)
        or total.of_different_values
    ):
        raise UnsupportedOperation(
            f"crosstab: the {output.formula.value} of a margin does not follow from those of its "
            "cells, so margins= and normalize= go with counts, sums and means. Release it by the "
            "keys of the margin: group_by(...)."
        )
    if total.of_units and question.table.unit and not alone:
        raise UnsupportedOperation(
            "crosstab: one person may be in several cells, so the people of a margin are not "
            "those of its cells added up. Count each in one cell, max_groups=1; or leave margins= "
            "and normalize= out."
        )
    if question.private_keys:
        raise UnsupportedOperation(
            "crosstab: margins of cells found in the data would leave out the suppressed ones; "
            "list keys={...}."
        )


@explains("{}({}, max_rows=5).release(epsilon=0.1)")
class Questions(FrameCounts[Table_co], FrameMoments[Table_co], FrameChoices[Table_co]):
    """The questions of a protected frame, which is a plan step and what pays.
    Each gives a `Query`; none reads.
    """

    __slots__ = ()

    def agg(
        self,
        *unnamed: object,
        max_rows: int | None = None,
        limits: Auto | None = None,
        **aggregates: object,
    ) -> Query[Table_co]:
        """Several aggregates in one release: `agg(n=dp.count(), spend=dp.mean("spend"))`.

        Bound:  the price is split over the totals that they need, by `share=`; what two of them
                need is paid once. An aggregate may have limits of its own,
                `dp.mean("spend", max_rows=1)`; others have those of the question. Its totals then
                move as far as these limits say, and have noise of their own

        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame(
        ...     {"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"], "spend": [3.0, 4.0, 5.0]}
        ... )
        >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> query = frame.agg(n=dp.count(), spend=dp.mean("spend", bounds=(0, 10)), max_rows=2)
        >>> query.release(epsilon=0.5).table.columns
        ['n', 'spend']
        """
        step, asked = read_aggregates(self._step, "agg", unnamed, aggregates)
        return self._then(step)._query(
            asked, read_row_limits(max_rows, limits), verb="agg(..., {limit})"
        )

    def group_by(
        self,
        *by: Any,
        keys: Any = None,
        other: Any = None,
        min_units: int | None = None,
        max_rows: int | None = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
        limits: Auto | None = None,
        **named: Any,
    ) -> PrivateGroupBy[Table_co]:
        """Groups of rows, and how much one unit may be in them.

        Input:  by: columns, or expressions such as dp.col("when").dt.date(), named by .alias or
                their column; named: expressions by the names of their keys,
                `group_by(day=dp.col("when").dt.date())`; keys: the groups to release, listed
                without looking at the data: a list, a dict of lists (every combination), a list of
                tuples or a public dataframe, each key once (a dataframe with more columns may
                repeat keys). In a column of times a date stands for its midnight. Without keys,
                groups are found in the data, and a group is released if it has enough units (needs
                δ). Null is a key where it is listed, as None; it is never found, and rows without a
                key do not count. Columns of type Enum or Boolean, and those made by `cut`, bring
                their keys, which are public like the schema. A Categorical brings none: its
                categories may be made of the data. max_groups, max_rows_per_group, max_rows: limits
                on one unit, counts. other: the key, such as "(other)", of one more row, always the
                last. With listed keys it is the group of all rows whose key is not listed, or
                missing. Else it has the counts, sums, means and variances of all suppressed groups
                together; a unit counts once in each of its groups. A group that has this key is
                part of that row too. For several columns, a tuple has a label for each; None stands
                for null. min_units: where keys are found, a group in which fewer units count is
                never released, and the threshold of all groups is higher by min_units - 1
        Bound:  rows in unlisted groups do not count. One unit counts in at most max_groups groups,
                chosen at random. Its rows are weighted down to max_rows_per_group in each group and
                max_rows in total. The row of suppressed groups is paid for with the others (see
                `rest_scale` of `dpframe.theory.formulas.loss.key_selection`). min_units costs
                nothing (see `dpframe.release.pricing.keys.least_number`)
        Errors: InvalidArgument, UnknownColumn, WrongType, UnsupportedOperation

        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame({"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"]})
        >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> groups = frame.group_by("city", keys=["Bonn", "Trier"], max_groups=2, max_rows=3)
        >>> groups.count().release(epsilon=0.5).table["city"].to_list()  # all that are listed
        ['Bonn', 'Trier']
        """
        step, names, written = read_by(self._step, by, named)
        typed = read_limits(max_rows, max_groups, max_rows_per_group, limits)
        unit_limits = limits_of(typed, step.table, groups=True)
        also = typed_too(keys=keys, other=other, min_units=min_units)
        verb = f"group_by({', '.join(map(repr, names))}, {also}{{limit}})"
        frame, groups, rest = self._then(step)._grouped(names, keys, other, "group_by")
        if frame._step is not step:
            step, written = frame._step, written | frozenset(names)
        least = read_min_units(min_units)
        least = min_units_of(least, step.table, found=groups is None, call="group_by")
        question = Question(
            step, names, groups, unit_limits, (), verb=verb, other=rest, min_units=least
        )
        return PrivateGroupBy(question, self._budget, written)

    groupby = group_by  # as pandas calls it

    def histogram(
        self,
        column: str | None = None,
        bins: Sequence[Any] | None = None,
        keys: Any = None,
        *,
        underflow: bool = False,
        overflow: bool = False,
        other: Any = None,
        min_units: int | None = None,
        **limits: Unpack[GroupLimits],
    ) -> Query[Table_co]:
        """Rows per interval of a number, or per key of a column.

        Input:  bins: edges (column unit). Intervals are [a, b), the last one [a, b], as in
                `np.histogram`; rows outside of them do not count. underflow: also count rows below
                the first edge, as "< a"; overflow: also count rows at or above the last edge, as "≥
                b", and the last interval is then [a, b) too; keys as in `group_by`; limits of one
                unit, counts; other and min_units as in `group_by`, for keys that are not listed
        Output: a table with the column and `count`, in the order of bins or keys

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"age": [3, 30, 70]}).dp(
        ...     unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0)
        ... )
        >>> frame.histogram("age", bins=[0, 18, 65, 120]).release(epsilon=0.5).table[
        ...     "age"
        ... ].to_list()
        ['[0, 18)', '[18, 65)', '[65, 120]']
        """
        name = self._only(column, "histogram")
        if bins is not None and keys is not None:
            raise InvalidArgument(
                f"histogram({name!r}): give bins= for intervals or keys= for values, not both."
            )
        frame = self
        if bins is not None:
            intervals = intervals_of(bins, underflow, overflow, f"histogram({name!r})")
            frame = self._then(steps.Cut(self._step, name, intervals, name))
        elif underflow or overflow:
            raise InvalidArgument(f"histogram({name!r}): underflow= and overflow= go with bins=.")
        elif keys is None and self._unlisted(name):
            raise InvalidArgument(
                f"histogram({name!r}): say the intervals, bins=[0, 18, 65], or the values, "
                "keys=[...]."
            )
        unit_limits = read_limits(**limits)
        verb = (
            f"histogram({name!r}, "
            f"{typed_too(bins=bins, keys=keys, other=other, min_units=min_units)}{{limit}})"
        )
        frame, groups, rest = frame._grouped((name,), keys, other, "histogram")
        least = read_min_units(min_units)
        rows = (("count", count()),)
        return frame._query(
            rows, unit_limits, by=(name,), keys=groups, verb=verb, other=rest, min_units=least
        )

    def crosstab(
        self,
        index: str | Sequence[str],
        columns: str | Sequence[str],
        values: str | None = None,
        aggfunc: str | Aggregate = "count",
        *,
        bounds: Pair | None = None,
        keys: Any = None,
        margins: bool | str = False,
        subtotals: bool = False,
        normalize: bool | int | str = False,
        other: Any = None,
        min_units: int | None = None,
        **limits: Unpack[GroupLimits],
    ) -> Query[Table_co]:
        """Rows per combination of keys, some down and some across, in the shape of `pd.crosstab`.

        Input:  index, columns: the columns down and across; values, aggfunc: instead of rows, the
                "count", "sum", "mean" or "median" of a column, with bounds= (column unit) as in
                `dp.sum`; "count_units" counts people; or a statistic, aggfunc=dp.quantile("spend",
                0.9, bounds=(0, 100)); keys as in `group_by`; margins: True adds an `All` row and
                column, summed from the released cells (free). "measured" spends a part of the price
                on rows, columns and total of a count or sum, and fits cells and margins to each
                other, where no cell then has more than 1.05 times its error. With Gaussian noise
                (prices in ρ, people in many cells, noise="gaussian") nearly every table gains. With
                Laplace noise tables from some 1,100 cells on gain, and rows and columns have up to
                1.05 times their error, too; `explain` states the parts. subtotals: with several
                columns down and margins=True, one more row for each key of the first of them.
                normalize: "index", "columns" or "all" gives each released cell as a part of its
                row, its column or the total (free; null if the divisor is not above 0); limits of
                one unit, counts, where each cell is a group; other, min_units as in `group_by`
        Errors: UnsupportedOperation for margins of keys that are found in the data, of medians, and
                of people who may be in several cells; for parts of means, and times in cells

        >>> import polars as pl, dpframe as dp
        >>> people = pl.DataFrame({"city": ["Bonn", "Kiel"], "smokes": [True, False]})
        >>> frame = people.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0))
        >>> query = frame.crosstab("city", "smokes", keys={"city": ["Bonn", "Kiel"]}, margins=True)
        >>> query.release(epsilon=0.5).table.columns
        ['city', 'False', 'True', 'All']
        """
        down, across = self._names([index], "crosstab"), self._names([columns], "crosstab")
        if not down or not across:
            raise InvalidArgument("crosstab: name a column down (index) and one across (columns).")
        parts = divided_by(normalize)
        check_margins(margins, subtotals, nested=len(down) > 1, parts=bool(parts))
        unit_limits = read_limits(**limits)
        also = typed_too(values=values, bounds=bounds, keys=keys, other=other, min_units=min_units)
        verb = f"crosstab({_side(down)}, {_side(across)}, {also}{{limit}})"
        aggregate, by = cell_of(values, aggfunc, bounds), down + across
        layout = Layout(
            "crosstab", across, bool(margins), parts, margins == "measured", subtotals=subtotals
        )
        frame, groups, rest = self._grouped(by, keys, other, "crosstab")
        aggregates = ((getattr(aggregate, "column", None) or "count", aggregate),)
        cells: Cells = {"layout": layout, "other": rest, "min_units": read_min_units(min_units)}
        query = frame._query(aggregates, unit_limits, by=by, keys=groups, verb=verb, **cells)
        check_cells(query._question, margins=bool(margins), parts=bool(parts))
        return query

    def marginals(
        self,
        columns: Sequence[str],
        workload: str | Sequence[tuple[str, ...]] = "2-way",
        *,
        keys: Any = None,
        max_rows: int | None = None,
    ) -> MarginalsQuery[Table_co]:
        """Rows by many sets of columns in one release, as tables that agree with one another.

        Input:  columns: columns with listed keys; workload: which tables: "1-way" (every column),
                "2-way" (every pair) and so on, or a list of tuples of columns; keys: a dict of
                lists for columns whose type does not fix them; max_rows: rows of one unit that
                count, once for all tables
        Output: a query whose release is a mapping, `out["a", "b"]`. A row counts when its keys are
                listed in every column. Each table is the sum of any larger one that has its
                columns, and has numbers with fractions
        Bound:  Gaussian noise on interactions. The price is split so that the sum of the variances
                of all cells is the least at that price; see
                `dpframe.theory.formulas.error.marginals`. It needs a δ or a price in ρ
        Source: ResidualPlanner, Xiao, He, Zhang, Kifer 2023, arXiv:2305.08175
        Errors: UnsupportedOperation for keys that are not listed; UnboundedContribution,
                InvalidArgument, UnknownColumn

        >>> import polars as pl, dpframe as dp
        >>> people = pl.DataFrame(
        ...     {"smokes": [True, False], "drives": [True, True], "old": [False, True]}
        ... )
        >>> query = people.dp(unit=dp.Rows(1)).marginals(["smokes", "drives", "old"])
        >>> query.accuracy(epsilon=1.0, delta=1e-6)["column"].to_list()
        ['smokes × drives', 'smokes × old', 'drives × old']
        """
        by = self._names([columns], "marginals")
        if not by:
            raise InvalidArgument(
                "marginals: name the columns, such as marginals(['age', 'sex', 'region'])."
            )
        levels = listed_levels(self._keys(by, keys, "marginals"), by)
        question = marginals_of(
            self._step, by, levels, workload_of(workload, by), read_limits(max_rows)
        )
        return MarginalsQuery(question, self._budget)

    def hierarchy(
        self,
        columns: Sequence[str],
        keys: Any,
        values: str | None = None,
        aggfunc: str = "count",
        *,
        by: Any = None,
        bounds: Pair | None = None,
        shares: Any = None,
        max_rows: int | None = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
    ) -> HierarchyQuery[Table_co]:
        """Rows or sums by every level of a public tree in one release,
        as tables that add up exactly.

        Input:  columns: the levels from the top, such as ["region", "district", "commune"]; keys:
                the tree as a public dataframe with these columns and a row for each leaf (or a list
                of tuples). values, aggfunc: to release a column in place of rows, its name, and
                "count" for the number of its values or "sum" for their sum. bounds: of a sum
                (column unit), as in `dp.sum`. by: other columns that every level is crossed with: a
                dict of their keys, by={"sex": ["f", "m"]}, or the names of columns whose type fixes
                their keys. shares: a dict from every level, and "total", to its part of the price;
                by default the parts follow from the shape of the tree. A level with share 0 is not
                measured, and is the sum of its children. max_rows, max_groups, max_rows_per_group:
                limits of one unit, where each leaf is a group (with by=, each leaf with each
                crossed key)
        Output: a query whose release is a mapping from levels to tables, `out["district"]`, from
                "total" to the leaves. Children add up to their parent exactly. Rows whose leaf is
                not listed do not count
        Bound:  each level is measured with noise of its own, and all are fitted by least squares.
                Shares, proofs and what limits on one unit mean for upper levels:
                `dpframe.theory.formulas.hierarchies`
        Source: Hay, Rastogi, Miklau, Suciu 2010, arXiv:0904.0942
        Errors: UnsupportedOperation if keys is None; UnboundedContribution, InvalidArgument,
                UnknownColumn, WrongType, MissingBounds

        >>> import polars as pl, dpframe as dp
        >>> people = pl.DataFrame({"region": ["n", "n", "s"], "town": ["Kiel", "Husum", "Ulm"]})
        >>> towns = pl.DataFrame({"region": ["n", "s", "s"], "town": ["Kiel", "Ulm", "Aalen"]})
        >>> query = people.dp(unit=dp.Rows(1)).hierarchy(["region", "town"], keys=towns)
        >>> query.accuracy(epsilon=1.0)["column"].to_list()
        ['total', 'region', 'town']
        """
        names = self._names([columns], "hierarchy")
        if not names:
            raise InvalidArgument(
                "hierarchy: name the levels from the top, hierarchy(['region', 'town'], "
                "keys=towns)."
            )
        check_choice(aggfunc, ("count", "sum"), "hierarchy: aggfunc")
        crossed = self._crossed(names, by)
        leaves = None if keys is None else self._keys(names, keys, "hierarchy")
        value = "count" if values is None else read_name(values, "hierarchy: values=")
        aggregate = (value, _called(aggfunc, values, bounds, "hierarchy"))
        limits = read_limits(max_rows, max_groups, max_rows_per_group)
        tree = read_tree(names, leaves, crossed)
        question = hierarchy_of(self._step, tree, aggregate, limits, shares)
        return HierarchyQuery(question, self._budget)

    def _crossed(self, names: tuple[str, ...], by: Any) -> dict[str, tuple[Any, ...]]:
        """The keys of the columns that every level of a tree is crossed with."""
        others = read_crossed(by, list(self._step.table.columns))
        if repeated := {name for name in (*names, *others) if (*names, *others).count(name) > 1}:
            raise InvalidArgument(f"hierarchy: {min(repeated)!r} is named twice.")
        crossed = {}
        for name, listed in others.items():
            own = self._keys((name,), listed, "hierarchy: by=")
            if own is None:
                raise InvalidArgument(
                    f"hierarchy: by= lists the keys of {name!r}: by={{{name!r}: [...]}}."
                )
            crossed[name] = own.levels[0]
        return crossed

    def _keys(self, by: tuple[str, ...], keys: Any, verb: str) -> Keys | None:
        domain = [self._step.table.column(name, verb).listed for name in by]
        call = f"{verb}({', '.join(map(repr, by))})"
        read = read_keys(keys, by, domain, call)
        if read is not None:
            check_levels(self._step.table, by, read.levels, call)
        return read

    def _unlisted(self, name: str) -> bool:
        column = self._step.table.column(name, "histogram")
        return column.is_number and column.listed.keys is None

    def _other(self, by: tuple[str, ...], label: Any, verb: str) -> Key | None:
        domain = [self._step.table.column(name, verb).domain for name in by]
        return (
            None
            if label is None
            else read_other(label, by, domain, f"{verb}({', '.join(map(repr, by))})")
        )

    def _grouped(
        self, by: tuple[str, ...], keys: Any, other: Any, verb: str
    ) -> tuple[Self, Keys | None, Key | None]:
        """The frame, its groups, and the key of suppressed groups;
        where keys are listed, other rows have a key too.
        """
        groups, rest = self._keys(by, keys, verb), self._other(by, other, verb)
        if groups is None or rest is None:
            return self, groups, rest
        step, groups = gathered(self._step, by, groups, rest, f"{verb}({', '.join(map(repr, by))})")
        return self._then(step), groups, None

    def _names(self, values: Iterable[object], verb: str) -> tuple[str, ...]:
        return read_names(values, verb, self._step.table.columns)
