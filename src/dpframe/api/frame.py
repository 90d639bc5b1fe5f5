"""The protected frame: one method per plan step, one per question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from dpframe import engine
from dpframe.api import aggregates as make
from dpframe.api.arguments import Pair, read_expr, read_limits, read_mapping, read_name, read_names
from dpframe.api.cells import cell_of, intervals_of, parts_of
from dpframe.api.groups import PrivateGroupBy, named, quantiles
from dpframe.api.marginals import MarginalsQuery, listed_levels, workload_of
from dpframe.api.partition import partitioned
from dpframe.api.query import Query
from dpframe.api.settings import check_budget, check_same_budget
from dpframe.errors import InvalidArgument, UnknownColumn, UnsupportedOperation
from dpframe.plan import combine, steps
from dpframe.plan.aggregates import Aggregate
from dpframe.plan.ask import Ask, Layout
from dpframe.plan.columns import Auto, Limits
from dpframe.plan.explain import describe, render_html, render_text
from dpframe.plan.expressions import Expr, check_interval, lit
from dpframe.plan.habits import FRAME, NO_ROWS, Habits
from dpframe.plan.intervals import Intervals
from dpframe.plan.keys import Key, Keys, read_keys, read_other
from dpframe.plan.marginals import Marginals
from dpframe.plan.steps import Rows, Source, Step, source_of
from dpframe.plan.types import as_dtype, check_choice, kind, plain
from dpframe.release.run import Account

__all__ = ["PrivateFrame", "protect"]


def protect(
    frame: Any,
    unit: str | tuple[str, ...] | list[str] | Rows | None = None,
    budget: Any = None,
    neighbors: str = "add-remove",
) -> PrivateFrame:
    """Protect a table: from here on it can only be asked questions whose answers are differentially private.

    Input:  frame: pandas DataFrame, Polars DataFrame or LazyFrame, PyArrow Table, Dask DataFrame, DuckDB relation, Ibis
            table or Spark DataFrame, whose rows stay where they are: only exact totals come back; unit: the column, or
            tuple of columns, that says whose row it is, or `dp.Rows(k)` when there is none and one person has at most k
            rows; budget: what releases are paid from; neighbors: "add-remove" (one unit joins or leaves) or "replace"
            (one unit's rows are exchanged for another's, "bounded DP")
    Output: PrivateFrame, which never changes; rows whose unit is null are not part of it
    Errors: InvalidArgument, UnknownColumn, WrongType, UnsupportedOperation; nothing is read

    >>> import polars as pl
    >>> protect(pl.DataFrame({"user": [1, 1, 2], "spend": [3.0, 4.0, 5.0]}), unit="user").columns
    ['user', 'spend']
    """
    if isinstance(frame, (PrivateFrame, PrivateGroupBy)):
        raise InvalidArgument("This frame is protected already.")
    check_choice(neighbors, ("add-remove", "replace"), "neighbors")
    data = engine.adopt(frame)
    if unit is None or (isinstance(unit, (str, tuple, list)) and not unit):
        raise InvalidArgument(
            "Say whose privacy is at stake: dp(unit='user_id') names the column that identifies a person; "
            "dp(unit=dp.Rows(1)) says that there is none and that one person has at most one row."
        )
    ids = unit if isinstance(unit, Rows) else read_names([unit], "unit=")
    if not isinstance(ids, Rows) and len(set(ids)) != len(ids):
        raise InvalidArgument("unit=: a column is named twice.")
    source = Source(data, data.schema, ids, neighbors)  # type: ignore[arg-type]
    try:
        _ = source.table
    except UnknownColumn as error:
        pandas = data.kind == "pandas" and data.engine == "polars"
        hint = " If it is the index of a pandas table, call reset_index() first." if pandas else ""
        message = f"{error}{hint}"
    else:
        return PrivateFrame(source, check_budget(budget))
    raise UnknownColumn(message)


class PrivateFrame(Habits):
    """A protected table. It can be transformed row by row and asked questions; it cannot be looked at.

    Every method returns something new. Transformations keep track of what one unit can contribute; questions give a
    `Query`, which alone can be released.
    """

    __slots__ = ("_budget", "_step")
    _habits = FRAME

    def __init__(self, step: Step, budget: Account | None) -> None:
        _ = step.table  # refuse now what cannot be
        engine.check_supported(step)
        self._step, self._budget = step, budget

    # Shape

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._step.table.columns)

    @property
    def unit(self) -> tuple[str, ...] | Rows:
        """Whose privacy is protected: the identifying columns of the source, or `dp.Rows(k)`."""
        return source_of(self._step).unit

    @property
    def neighbors(self) -> str:
        """The neighbour relation: "add-remove" or "replace"."""
        return self._step.table.relation

    @property
    def budget(self) -> Any:
        """What releases are paid from; None where the default of `dp.set_budget` is used."""
        return self._budget

    def __repr__(self) -> str:
        title, rows = describe(self._step)
        return f"PrivateFrame. {title}\n{render_text(('column', 'type', 'known'), rows)}"

    def _repr_html_(self) -> str:
        title, rows = describe(self._step)
        return f"<p><b>PrivateFrame.</b> {title}</p>{render_html(('column', 'type', 'known'), rows)}"

    def __reduce__(self) -> Any:
        raise UnsupportedOperation("A protected frame cannot be pickled or copied out: the copy would hold raw rows.")

    def _advice(self, name: str) -> str:
        if name in self.columns:
            return f" It is a column: in a step it is dp.col({name!r}), in a question {name!r}, as in count({name!r})."
        return super()._advice(name)

    def __getitem__(self, asked: object) -> NoReturn:
        if isinstance(asked, Expr):
            raise InvalidArgument("A protected frame takes no [...]: rows are kept by filter(dp.col('age') >= 18).")
        if isinstance(asked, (list, tuple)):
            raise InvalidArgument("A protected frame takes no [...]: columns are kept by select('age', 'city').")
        if isinstance(asked, str):
            name = asked if asked in self.columns else "age"
            raise InvalidArgument(f"A protected frame takes no [...]: in a step a column is dp.col({name!r}).")
        raise InvalidArgument(
            f"A protected frame takes no [...]: {NO_ROWS[0].lower()}{NO_ROWS[1:]} Some are kept by "
            "filter(dp.col('age') >= 18)."
        )

    # Transform

    def _then(self, step: Step) -> PrivateFrame:
        return PrivateFrame(step, self._budget)

    def filter(self, *conditions: Expr | str) -> PrivateFrame:
        """Keep the rows where every condition holds: `filter(dp.col("age") >= 18)`.

        Rows where a condition is null are dropped. Bound: rows only leave, so no unit has more than before.
        """
        if not conditions:
            raise InvalidArgument("filter: give a condition, such as filter(dp.col('age') >= 18).")
        frame = self
        for condition in conditions:
            frame = frame._then(steps.Filter(frame._step, read_expr(condition, "filter")))
        return frame

    def with_columns(self, **columns: Any) -> PrivateFrame:
        """Write columns, each computed from its own row: `with_columns(weekly=dp.col("wage") / dp.col("weeks"))`.

        Old bounds do not reach new values; they are derived anew where the expression allows. The columns that identify
        the unit cannot be rewritten.
        """
        if not columns:
            raise InvalidArgument("with_columns: name a column, such as with_columns(double=dp.col('x') * 2).")
        made = tuple((name, value if isinstance(value, Expr) else lit(value)) for name, value in columns.items())
        return self._then(steps.WithColumns(self._step, made))

    def select(self, *columns: str | Sequence[str]) -> PrivateFrame:
        """Keep these columns, in this order. The unit's identifier travels on, hidden."""
        names = read_names(columns, "select")
        if not names:
            raise InvalidArgument("select: name at least one column.")
        return self._then(steps.Select(self._step, names))

    def drop(self, *columns: str | Sequence[str]) -> PrivateFrame:
        """Leave out these columns. The unit's identifier travels on, hidden."""
        return self._then(steps.Drop(self._step, read_names(columns, "drop")))

    def rename(self, columns: Mapping[str, str]) -> PrivateFrame:
        """Other names: `rename({"old": "new"})`."""
        return self._then(steps.Rename(self._step, read_mapping(columns, "rename")))

    def clip(self, column: str, lower: Any = None, upper: Any = None) -> PrivateFrame:
        """Move the values of a column into [lower, upper] (column unit, times as times); missing stays missing.

        Choose the limits without looking at the data. With both, sums and means of the column need no `bounds=`.
        """
        name = read_name(column, "clip")
        low, high = check_interval(lower, upper, f"clip({name!r})")
        return self._then(steps.Clip(self._step, name, low, high))

    def fill_null(self, column: str | Mapping[str, Any], value: Any = None) -> PrivateFrame:
        """A constant in place of what is missing (null or NaN): `fill_null("spend", 0)`, `fill_null({"spend": 0})`."""
        step = self._step
        for name, filler in _pairs(column, value, "fill_null"):
            step = steps.FillNull(step, name, plain(filler))
        return self._then(step)

    def drop_nulls(self, *columns: str | Sequence[str]) -> PrivateFrame:
        """Drop the rows in which one of these columns (by default any column) is missing (null or NaN)."""
        readable = [name for name, c in self._step.table.columns.items() if kind(c.facts.dtype) != "other"]
        names = read_names(columns, "drop_nulls") or tuple(readable)
        return self._then(steps.DropNulls(self._step, names))

    def cast(self, column: str | Mapping[str, Any], dtype: Any = None) -> PrivateFrame:
        """Another type: `cast("age", "int64")` or `cast({"age": pl.Int64})`. What does not convert is null."""
        pairs = _pairs(column, dtype, "cast")
        return self._then(steps.Cast(self._step, tuple((name, as_dtype(given)) for name, given in pairs)))

    def cut(
        self,
        column: str,
        bins: Sequence[Any],
        labels: Sequence[str] | None = None,
        *,
        right: bool = True,
        include_lowest: bool = False,
        into: str | None = None,
    ) -> PrivateFrame:
        """Put numbers or times into labelled intervals, as `pd.cut` does: (a, b], null outside. Labels are public keys.

        Input:  bins: the edges, increasing (column unit); labels: one text per interval; right: whether an interval
                holds its right edge, else its left; include_lowest: whether the outermost edge left out is held too;
                into: the name of the new column, by default the same
        """
        name = read_name(column, "cut")
        asked = f"cut({name!r})"
        intervals = Intervals.of(bins, labels, right=right, closed_ends=include_lowest, asked=asked)
        return self._then(steps.Cut(self._step, name, intervals, name if into is None else read_name(into, asked)))

    def bound(self, max_rows: int | None = None, *, limits: Auto | None = None) -> PrivateFrame:
        """A limit for every later question: of the rows that reach it, at most max_rows of one unit count.

        Enforced by weights: a unit with n > max_rows rows counts each with weight max_rows / n. With limits=dp.Auto()
        it is chosen inside each release.
        """
        if max_rows is None and limits is None:
            raise InvalidArgument("bound: say how many rows, such as bound(max_rows=20).")
        return self._then(steps.Bound(self._step, read_limits(max_rows, limits=limits)))

    def per_unit(self, **features: Aggregate) -> PrivateFrame:
        """One row for each unit: `per_unit(total=dp.sum("spend"), n=dp.count(), city=dp.last("city", by="when"))`.

        Input:  features: count, n_unique, sum, mean, min, max, first and last of the unit's rows, named; bounds= clips
                each value, unit_bounds= a sum
        Output: a frame with the columns that identify the unit and the features; ask it as any other, with no limit on
                rows
        Bound:  one row of a unit, made of its own rows alone; see `dpframe.plan.combine.PerUnit`
        Errors: UnsupportedOperation with `dp.Rows(k)` and for other aggregates; InvalidArgument, UnknownColumn,
                WrongType

        >>> import polars as pl, dpframe as dp
        >>> visits = dp.protect(pl.DataFrame({"user": [1, 1, 2], "spend": [3.0, 4.0, 5.0]}), unit="user")
        >>> visits.per_unit(total=dp.sum("spend")).mean("total", bounds=(0, 10)).sensitivity["total.sum"].l1
        5
        """
        return self._then(combine.PerUnit(self._step, named(features, "per_unit")))

    def join(self, other: Any, on: str | Sequence[str], how: str = "inner") -> PrivateFrame:
        """Each row with the rows of another table that have its key: `join(regions, on="city")`.

        Input:  other: a public table of any kind that can be protected, or a dict of columns, which is read now; or a
                protected frame of the same unit and budget, with the columns that identify the unit in on=. on: columns
                that both have; a missing key matches nothing. how: "inner" drops rows without a match, "left" keeps
                them
        Output: a frame with the columns of the other table added. Bounds and keys of public columns follow their types,
                and are not looked for in the values
        Bound:  see `dpframe.plan.combine.Join` and `JoinProtected`: with an identifier column limits are enforced after
                the join; with `dp.Rows(k)` k is multiplied by the largest number of public rows that one key has
        Errors: InvalidArgument where both tables have a column, UnknownColumn, WrongType, UnsupportedOperation,
                BudgetMismatch

        >>> import polars as pl, dpframe as dp
        >>> visits = dp.protect(pl.DataFrame({"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Kiel"]}), unit="user")
        >>> visits.join({"city": ["Bonn", "Kiel"], "sea": [False, True]}, on="city").columns
        ['user', 'city', 'sea']
        """
        check_choice(how, ("inner", "left"), "join: each row stays with its owner; how")
        names = read_names([on], "join: on=")
        if isinstance(other, PrivateGroupBy):
            raise InvalidArgument("join: give a public table, or a protected frame.")
        if isinstance(other, PrivateFrame):
            check_same_budget(self._budget, other._budget, "join")
            return self._then(combine.JoinProtected(self._step, other._step, names, how))  # type: ignore[arg-type]
        table = engine.public(other)
        first = combine.Join(self._step, table, names, how, 0, "")  # type: ignore[arg-type]
        most = engine.most_per_key(table, names, first.keys)
        return self._then(replace(first, most=most, content=engine.content(table)))

    def partition(self, by: str, keys: Sequence[Any], max_groups: int = 1) -> dict[Any, PrivateFrame]:
        """One protected frame for each key of a column; releases about different parts compose in parallel.

        Input:  by: a column; keys: the parts, listed without looking at the data; max_groups: in how many of them one
                unit may be. Which ones is chosen here, by a hash under a salt drawn for this call, kept with the budget
        Output: frames by key; the budget is charged what the dearest part costs, times max_groups, for ε, δ, ρ each
        Bound:  a unit's rows are in at most max_groups parts, the same in every release; what the others release says
                nothing of it
        Source: McSherry 2009, doi:10.1145/1559845.1559850, theorem 4
        Errors: UnsupportedOperation under neighbors="replace"; InvalidArgument, UnknownColumn, WrongType,
                BudgetRequired
        """
        parts = partitioned(self._step, self._budget, by, keys, max_groups)
        return {key: PrivateFrame(step, budget) for key, step, budget in parts}

    # Ask

    def count(self, column: str | None = None, *, max_rows: int | None = None, limits: Auto | None = None) -> Query:
        """Number of rows, or of the values of a column that are not missing; see `dp.count`."""
        return self._one("count" if column is None else column, make.count(column), max_rows, limits)

    def count_units(self) -> Query:
        """Number of distinct units; see `dp.count_units`."""
        return self._one("count_units", make.count_units(), None)

    def sum(
        self,
        column: str | None = None,
        bounds: Pair | None = None,
        unit_bounds: Pair | None = None,
        *,
        max_rows: int | None = None,
        limits: Auto | None = None,
    ) -> Query:
        """Sum of a column (the only one may be left out); see `dp.sum`."""
        name = self._only(column, "sum")
        return self._one(name, make.sum(name, bounds, unit_bounds), max_rows, limits)

    def mean(
        self,
        column: str | None = None,
        bounds: Pair | None = None,
        *,
        max_rows: int | None = None,
        limits: Auto | None = None,
    ) -> Query:
        """Mean of a column (the only one may be left out); see `dp.mean`."""
        name = self._only(column, "mean")
        return self._one(name, make.mean(name, bounds), max_rows, limits)

    def var(
        self,
        column: str | None = None,
        bounds: Pair | None = None,
        *,
        ddof: int = 1,
        max_rows: int | None = None,
        limits: Auto | None = None,
    ) -> Query:
        """Variance of a column (the only one may be left out); see `dp.var`."""
        name = self._only(column, "var")
        return self._one(name, make.var(name, bounds, ddof=ddof), max_rows, limits)

    def std(
        self,
        column: str | None = None,
        bounds: Pair | None = None,
        *,
        ddof: int = 1,
        max_rows: int | None = None,
        limits: Auto | None = None,
    ) -> Query:
        """Standard deviation of a column (the only one may be left out); see `dp.std`."""
        name = self._only(column, "std")
        return self._one(name, make.std(name, bounds, ddof=ddof), max_rows, limits)

    def n_unique(self, column: str | None = None, *, max_rows: int | None = None, limits: Auto | None = None) -> Query:
        """Number of different values of a column (the only one may be left out); see `dp.n_unique`."""
        name = self._only(column, "n_unique")
        return self._one(name, make.n_unique(name), max_rows, limits)

    def quantile(
        self,
        column: str | None = None,
        q: float | Sequence[float] = 0.5,
        bounds: Pair | None = None,
        *,
        max_rows: int | None = None,
        limits: Auto | None = None,
    ) -> Query:
        """One or several quantiles of a column (the only one may be left out); see `dp.quantile`.

        Several are named after the column and the rank: `spend_0.25`, `spend_0.75`.
        """
        name = self._only(column, "quantile")
        return self._ask(
            quantiles(name, q, bounds), read_limits(max_rows, limits=limits), verb=f"quantile({name!r}, {{limit}})"
        )

    def median(
        self,
        column: str | None = None,
        bounds: Pair | None = None,
        *,
        max_rows: int | None = None,
        limits: Auto | None = None,
    ) -> Query:
        """Median of a column (the only one may be left out); see `dp.median`."""
        name = self._only(column, "median")
        return self._one(name, make.median(name, bounds), max_rows, limits)

    def min(
        self,
        column: str | None = None,
        bounds: Pair | None = None,
        *,
        max_rows: int | None = None,
        limits: Auto | None = None,
    ) -> Query:
        """A value that hardly any row is below; see `dp.min`."""
        name = self._only(column, "min")
        return self._one(name, make.min(name, bounds), max_rows, limits)

    def max(
        self,
        column: str | None = None,
        bounds: Pair | None = None,
        *,
        max_rows: int | None = None,
        limits: Auto | None = None,
    ) -> Query:
        """A value that hardly any row is above; see `dp.max`."""
        name = self._only(column, "max")
        return self._one(name, make.max(name, bounds), max_rows, limits)

    def mode(
        self, column: str | None = None, keys: Iterable[Any] | None = None, *, max_rows: int | None = None
    ) -> Query:
        """The most frequent of the listed values of a column (the only one may be left out); see `dp.mode`."""
        name = self._only(column, "mode")
        return self._one(name, make.mode(name, keys), max_rows)

    def top_k(self, column: str, k: int, keys: Iterable[Any] | None = None, *, max_rows: int | None = None) -> Query:
        """The k most frequent of the listed values of a column, in order: k rows with `rank` from 1 and the value.

        Input:  k; keys as in `dp.mode`
        Bound:  one choice after the other, each among the values that are left, for a k-th of the price; see
                `dpframe.theory.maps.ranks.count_scale`
        Errors: as in `dp.mode`; InvalidArgument for more values than are listed
        """
        return self._one(read_name(column, "top_k"), make.top_k(column, k, keys), max_rows)

    def agg(
        self, *unnamed: object, max_rows: int | None = None, limits: Auto | None = None, **aggregates: Aggregate
    ) -> Query:
        """Several aggregates in one release: `agg(n=dp.count(), spend=dp.mean("spend"))`."""
        return self._ask(
            named(aggregates, unnamed=unnamed), read_limits(max_rows, limits=limits), verb="agg(..., {limit})"
        )

    def group_by(
        self,
        *by: str | Sequence[str],
        keys: Any = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
        max_rows: int | None = None,
        limits: Auto | None = None,
        other: Any = None,
    ) -> PrivateGroupBy:
        """Groups of rows, and how much one unit may be in them.

        Input:  by: columns; keys: the groups to release, listed without looking at the data: a list, a dict of lists
                (every combination), a list of tuples or a public dataframe. Without keys, groups are found in the data
                and released when enough units are in them (needs δ); columns of type Enum or Boolean, and those made by
                `cut`, bring their keys. max_groups, max_rows_per_group, max_rows: of one unit, counts. other: the key,
                such as "(other)", of one more row, always the last, with the counts, sums, means and variances of all
                suppressed groups together (units are counted in each); a group that has this key is in it as well. For
                several columns a tuple has a label for each, None for null
        Bound:  a unit's rows in unlisted groups do not count; of the rest at most max_groups groups, chosen at random,
                rows weighted down to max_rows_per_group in each and max_rows in all. The row of suppressed groups is
                paid for with the others: see `dpframe.theory.maps.partitions.rest_scale`
        Errors: InvalidArgument, UnknownColumn, WrongType, UnsupportedOperation
        """
        names = read_names(by, "group_by")
        if not names:
            raise InvalidArgument("group_by: name at least one column.")
        said = read_limits(max_rows, max_groups, max_rows_per_group, limits)
        rest = self._other(names, other, "group_by")
        listed, verb = self._keys(names, keys, "group_by"), f"group_by({', '.join(map(repr, names))}, {{limit}})"
        asked = Ask(self._step, names, listed, said, (), verb=verb, other=rest)
        return PrivateGroupBy(asked, self._budget)

    def histogram(
        self,
        column: str | None = None,
        bins: Sequence[Any] | None = None,
        keys: Any = None,
        *,
        underflow: bool = False,
        overflow: bool = False,
        max_rows: int | None = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
        limits: Auto | None = None,
        other: Any = None,
    ) -> Query:
        """Rows per interval of a number, or per key of a column.

        Input:  bins: edges (column unit); intervals are [a, b), the last one [a, b], as in `np.histogram`, and rows
                outside of them do not count; underflow, overflow: also count, as "< a", what is below the first edge,
                and as "≥ b" what is not below the last one, which then closes no interval; keys as in `group_by`;
                limits of one unit, counts; other as in `group_by`, for keys that nobody listed
        Output: a table with the column and `count`, in the order of bins or keys
        """
        name = self._only(column, "histogram")
        if bins is not None and keys is not None:
            raise InvalidArgument(f"histogram({name!r}): give bins= for intervals or keys= for values, not both.")
        frame = self
        if bins is not None:
            intervals = intervals_of(bins, underflow, overflow, f"histogram({name!r})")
            frame = self._then(steps.Cut(self._step, name, intervals, name))
        elif underflow or overflow:
            raise InvalidArgument(f"histogram({name!r}): underflow= and overflow= go with bins=.")
        elif keys is None and kind(self._step.table.column(name, "histogram").facts.dtype) in ("integer", "float"):
            raise InvalidArgument(
                f"histogram({name!r}): say the intervals, bins=[0, 18, 65], or the values, keys=[...]."
            )
        said = read_limits(max_rows, max_groups, max_rows_per_group, limits)
        verb = f"histogram({name!r}, {{limit}})"
        listed = frame._keys((name,), keys, "histogram")
        rest = frame._other((name,), other, "histogram")
        return frame._ask((("count", make.count()),), said, by=(name,), keys=listed, verb=verb, other=rest)

    def crosstab(
        self,
        index: str | Sequence[str],
        columns: str | Sequence[str],
        values: str | None = None,
        aggfunc: str = "count",
        *,
        bounds: Pair | None = None,
        keys: Any = None,
        margins: bool | str = False,
        normalize: bool | int | str = False,
        max_rows: int | None = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
        limits: Auto | None = None,
        other: Any = None,
    ) -> Query:
        """Rows per combination of keys, some down and some across, in the shape of `pd.crosstab`.

        Input:  index, columns: the columns down and across; values, aggfunc: instead of rows, the "count", "sum" or
                "mean" of a column, with bounds= (column unit) as in `dp.sum`; keys as in `group_by`; margins: add an
                `All` row and column, made of the released cells (free); "measured" spends a part of the price on rows,
                columns and total of a count or sum, and reconciles all of them, where no cell then has more than 1.05
                times the error and no margin more than a sum of cells: with Gaussian noise (prices in ρ, people in many
                cells, noise="gaussian") nearly always, with Laplace noise from some 190 by 190 cells on; `explain`
                states the parts;
                normalize: "index", "columns" or "all" gives each released cell as a part of its row, its column or the
                total (free, post-processing; null where that is not above 0); limits of one unit, counts, where a cell
                is a group; other as in `group_by`: one more cell, in a row and a column of its own
        Errors: UnsupportedOperation for margins of keys that are found in the data, parts of means, and times in cells
        """
        down, across = read_names([index], "crosstab"), read_names([columns], "crosstab")
        if not down or not across:
            raise InvalidArgument("crosstab: name a column down (index) and one across (columns).")
        if not isinstance(margins, bool) and not (isinstance(margins, str) and margins == "measured"):
            raise InvalidArgument("crosstab: margins= is True, False or 'measured'.")
        said = read_limits(max_rows, max_groups, max_rows_per_group, limits)
        verb = f"crosstab({', '.join(map(repr, [*down, *across]))}, {{limit}})"
        parts = parts_of(normalize)
        aggregate = cell_of(values, aggfunc, bounds)
        if parts and aggfunc == "mean":
            raise UnsupportedOperation("crosstab: normalize= gives parts of counts and sums; means have none.")
        layout = Layout("crosstab", across, bool(margins), parts, margins == "measured")
        by = down + across
        listed = self._keys(by, keys, "crosstab")
        named = ((values or "count", aggregate),)
        rest = self._other(by, other, "crosstab")
        query = self._ask(named, said, by=by, keys=listed, verb=verb, layout=layout, other=rest)
        if query._ask.outputs[0].dtype is not None:
            raise UnsupportedOperation(
                f"crosstab: its cells are numbers; for times: group_by({', '.join(map(repr, by))}, ...)"
                f".agg({values}=dp.{aggfunc}({values!r}))."
            )
        if (margins or parts) and query._ask.private_keys:
            raise UnsupportedOperation(
                "crosstab: margins of cells found in the data would leave out the suppressed ones; list keys={...}."
            )
        return query

    def marginals(
        self,
        columns: Sequence[str],
        workload: str | Sequence[tuple[str, ...]] = "2-way",
        *,
        keys: Any = None,
        max_rows: int | None = None,
    ) -> MarginalsQuery:
        """Rows by many sets of columns in one release, as tables that agree with one another.

        Input:  columns: columns with listed keys; workload: which tables: "1-way" (every column), "2-way" (every pair)
                and so on, or a list of tuples of columns; keys: a dict of lists for columns whose type does not fix
                them; max_rows: rows of one unit that count, once for all tables
        Output: a query whose release is a mapping, `out["a", "b"]`. A row counts when its keys are listed in every
                column. Each table is the sum of any larger one that has its columns, and has numbers with fractions
        Bound:  Gaussian noise on interactions, allotted so that the sum of variances of all cells is the least there is
                at the price; see `dpframe.theory.maps.marginals`. It needs a δ or a price in ρ
        Source: ResidualPlanner, Xiao, He, Zhang, Kifer 2023, arXiv:2305.08175
        Errors: UnsupportedOperation for keys that nobody listed; UnboundedContribution, InvalidArgument, UnknownColumn

        >>> import polars as pl, dpframe as dp
        >>> people = pl.DataFrame({"smokes": [True, False], "drives": [True, True], "old": [False, True]})
        >>> query = people.dp(unit=dp.Rows(1)).marginals(["smokes", "drives", "old"])
        >>> query.accuracy(epsilon=1.0, delta=1e-6)["column"].to_list()
        ['smokes × drives', 'smokes × old', 'drives × old']
        """
        by = read_names([columns], "marginals")
        if not by:
            raise InvalidArgument("marginals: name the columns, such as marginals(['age', 'sex', 'region']).")
        tables = workload_of(workload, by)
        used = sorted({i for table in tables for i in table})
        listed = listed_levels(self._keys(by, keys, "marginals"), by)
        levels = Keys(tuple(listed.levels[i] for i in used))
        tables = tuple(tuple(used.index(i) for i in table) for table in tables)
        names = tuple(by[i] for i in used)
        verb = f"marginals([{', '.join(map(repr, names))}], {{limit}})"
        counted = (("count", make.count()),)
        ask = Marginals(self._step, names, levels, read_limits(max_rows), counted, verb=verb, workload=tables)
        return MarginalsQuery(ask, self._budget)

    def _keys(self, by: tuple[str, ...], keys: Any, verb: str) -> Keys | None:
        facts = [self._step.table.column(name, verb).facts for name in by]
        return read_keys(keys, by, facts, f"{verb}({', '.join(map(repr, by))})")

    def _other(self, by: tuple[str, ...], label: Any, verb: str) -> Key | None:
        facts = [self._step.table.column(name, verb).facts for name in by]
        return None if label is None else read_other(label, by, facts, f"{verb}({', '.join(map(repr, by))})")

    def _only(self, column: str | None, verb: str) -> str:
        if column is not None:
            return read_name(column, verb)
        names = [name for name, c in self._step.table.columns.items() if not c.is_unit]
        if len(names) != 1:
            raise InvalidArgument(f"{verb}: name a column; there are {', '.join(map(repr, names))}.")
        return names[0]

    def _one(self, name: str, aggregate: Aggregate, max_rows: int | None = None, limits: Auto | None = None) -> Query:
        verb = f"{aggregate.typed[:-1]}{'' if aggregate.typed.endswith('()') else ', '}{{limit}})"
        return self._ask(((name, aggregate),), read_limits(max_rows, limits=limits), verb=verb)

    def _ask(
        self,
        aggregates: tuple[tuple[str, Aggregate], ...],
        limits: Limits,
        *,
        by: tuple[str, ...] = (),
        keys: Keys | None = None,
        verb: str,
        layout: Layout | None = None,
        other: Key | None = None,
    ) -> Query:
        asked = Ask(self._step, by, keys, limits, aggregates, layout or Layout(), verb=verb, other=other)
        return Query(asked, self._budget)


def _pairs(column: Any, value: Any, verb: str) -> Iterable[tuple[str, Any]]:
    if isinstance(column, str):
        if value is None:
            raise InvalidArgument(f"{verb}({column!r}, ...): the second argument is missing.")
        return [(column, value)]
    if value is not None:
        raise InvalidArgument(f"{verb}: give a column and a value, or a dict, not both.")
    return list(read_mapping(column, verb).items())
