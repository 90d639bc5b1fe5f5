"""The protected frame: one method per plan step. Its questions are in `questions`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any, NoReturn

import polars as pl

from dpframe import engine
from dpframe.api.aggregates import read_aggregates
from dpframe.api.arguments import (
    Columns,
    read_columns,
    read_expr,
    read_limits,
    read_mapping,
    read_name,
)
from dpframe.api.describing import FrameDescription
from dpframe.api.groups import PrivateGroupBy
from dpframe.api.partition import partitioned
from dpframe.api.questions import Questions
from dpframe.api.regression import FrameMatrices
from dpframe.api.settings import check_same_budget
from dpframe.api.synthesis import FrameSynthesis
from dpframe.engine import Table_co
from dpframe.errors import InvalidArgument, InvalidBounds, UnsupportedOperation, WrongType
from dpframe.plan import (
    FRAME,
    NO_ROWS,
    Aggregate,
    Auto,
    Bounds,
    Expr,
    Intervals,
    Kind,
    as_dtype,
    check_choice,
    check_interval,
    col,
    describe,
    kind,
    plain,
    render_html,
    render_text,
    show,
    warn_of_computed_bounds,
    warn_of_public_units,
)
from dpframe.plan.declared import check_fact, completed, within_rows
from dpframe.plan.steps import PerUnit, Rows, combine, rewrites, source_of
from dpframe.plan.steps import basic as steps
from dpframe.usage import STEPS, elsewhere, explains


@explains("{}({})", STEPS)
class PrivateFrame(
    Questions[Table_co],
    FrameMatrices[Table_co],
    FrameDescription[Table_co],
    FrameSynthesis[Table_co],
):
    """A protected table.
    It can be transformed row by row and asked questions; it cannot be looked at.

    No method changes the frame. Transformations return a new frame and keep track of what one unit
    can contribute. Questions return a `Query`, which alone can be released.
    """

    __slots__ = ()
    _habits = FRAME

    # Shape

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._step.table.columns)

    @property
    def unit(self) -> tuple[str, ...] | Rows:
        """The unit of privacy: the identifying columns of the source, or `dp.Rows(k)`."""
        return source_of(self._step).unit

    @property
    def neighbors(self) -> str:
        """The neighbour relation: "add-remove" or "replace"."""
        return self._step.table.relation

    @property
    def budget(self) -> Any:
        """The budget that pays for releases; None if the default of `dp.set_budget` pays."""
        return self._budget

    def __repr__(self) -> str:
        title, rows = describe(self._step)
        return f"PrivateFrame. {title}\n{render_text(('column', 'type', 'known'), rows)}"

    def _repr_html_(self) -> str:
        title, rows = describe(self._step)
        return (
            "<p><b>PrivateFrame.</b> "
            f"{escape(title)}</p>{render_html(('column', 'type', 'known'), rows)}"
        )

    def __reduce__(self) -> Any:
        raise UnsupportedOperation(
            "A protected frame cannot be pickled or copied out: the copy would hold raw rows."
        )

    def _advice(self, name: str) -> str:
        if name in self.columns:
            return (
                f" It is a column: in a step it is dp.col({name!r}), in a question {name!r}, as in "
                f"count({name!r})."
            )
        return elsewhere(name) or super()._advice(name)

    def __len__(self) -> NoReturn:
        raise InvalidArgument(f"A protected frame does not tell its number of rows. {NO_ROWS}")

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, key: object) -> NoReturn:
        match key:
            case Expr():
                raise InvalidArgument(
                    "A protected frame takes no [...]: rows are kept by filter(dp.col('age') >= "
                    "18)."
                )
            case list() | tuple():
                raise InvalidArgument(
                    "A protected frame takes no [...]: columns are kept by select('age', 'city')."
                )
            case str():
                name = key if key in self.columns else "age"
                raise InvalidArgument(
                    f"A protected frame takes no [...]: in a step a column is dp.col({name!r}), in "
                    f"a question {name!r}, as in count({name!r}, max_rows=5)."
                )
        raise InvalidArgument(
            f"A protected frame takes no [...] and no loop: {NO_ROWS[0].lower()}{NO_ROWS[1:]} Some "
            "are kept by filter(dp.col('age') >= 18)."
        )

    def __setitem__(self, key: object, value: object) -> NoReturn:
        name = key if isinstance(key, str) and key.isidentifier() else "double"
        raise InvalidArgument(
            f"A protected frame never changes: type frame = frame.with_columns({name}=...), with "
            "an expression such as dp.col('wage') * 2."
        )

    def __delitem__(self, key: object) -> NoReturn:
        raise InvalidArgument(f"A protected frame never changes: type frame = frame.drop({key!r}).")

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_"):
            self[name] = value
        super().__setattr__(name, value)

    # Transform

    def filter(self, *conditions: Expr | pl.Expr | str, **equal: Any) -> PrivateFrame[Table_co]:
        """Keep the rows where every condition holds: `filter(dp.col("age") >= 18)`.

        Input:  conditions: expressions, or names of columns of true and false; equal: values that
                columns have, as in
                Polars: `filter(city="Bonn")`

        Rows where a condition is null are dropped. Bound: rows only leave, so no unit has more than
        before.

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame(
        ...     {"user": [1, 1, 2], "age": [17, 30, 41], "wage": [0.0, 4.0, 9.0]}
        ... ).dp(unit="user")
        >>> adults = frame.filter((dp.col("age") >= 18) & (dp.col("wage") > 0))
        >>> adults.count(max_rows=3).sensitivity[
        ...     "count"
        ... ].l1  # of one unit, still at most three rows count
        3
        """
        if not conditions and not equal:
            raise InvalidArgument("filter: give a condition, such as filter(dp.col('age') >= 18).")
        frame = self
        for condition in (*conditions, *(col(name) == value for name, value in equal.items())):
            match condition:
                case str() if condition not in self.columns and set("<>=!") & set(condition):
                    raise InvalidArgument(
                        "filter: a condition is not text but an expression, such as dp.col('age') "
                        ">= 18."
                    )
                case bool():
                    raise InvalidArgument(
                        f"filter: {condition} is not about the rows. Python has compared before "
                        "dpframe could, as in 'age' == 18. Name the column: filter(dp.col('age') "
                        "== 18)."
                    )
            frame = frame._then(steps.Filter(frame._step, read_expr(condition, "filter")))
        return frame

    def with_columns(self, *unnamed: Any, **columns: Any) -> PrivateFrame[Table_co]:
        """Write columns, each computed from its own row:
        `with_columns(weekly=dp.col("wage") / dp.col("weeks"))`.

        An expression without a keyword has the name of its `.alias("weekly")`, or else of its first
        column. Expressions of Polars, `pl.col("wage") / 52`, are read as ours where each part of
        them has a counterpart.

        Old bounds do not reach new values; they are derived anew where the expression allows. The
        columns that identify the unit cannot be rewritten.

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame(
        ...     {"user": [1, 1, 2], "age": [17, 30, 41], "wage": [0.0, 4.0, 9.0]}
        ... ).dp(unit="user")
        >>> richer = frame.clip("wage", 0, 10).with_columns(
        ...     double=dp.col("wage") * 2, old=dp.col("age") >= 40
        ... )
        >>> richer.columns
        ['user', 'age', 'wage', 'double', 'old']
        >>> richer.sum("double", max_rows=1).sensitivity[
        ...     "double"
        ... ].l1  # its bounds follow from those of the wage
        20
        """
        if not columns and not unnamed:
            raise InvalidArgument(
                "with_columns: name a column, such as with_columns(double=dp.col('x') * 2)."
            )
        written = read_columns("with_columns", unnamed, columns, self._step.table.columns)
        return self._then(rewrites.WithColumns(self._step, written))

    def select(self, *columns: Columns) -> PrivateFrame[Table_co]:
        """Keep these columns, in this order. The unit's identifier travels on, hidden.

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"user": [1, 1, 2], "age": [17, 30, None]}).dp(unit="user")
        >>> frame.select("age").columns
        ['age']
        """
        names = self._names(columns, "select")
        if not names:
            raise InvalidArgument("select: name at least one column: select('age', 'city').")
        return self._then(steps.Select(self._step, names))

    def drop(self, *columns: Columns) -> PrivateFrame[Table_co]:
        """Leave out these columns. The unit's identifier travels on, hidden."""
        return self._then(steps.Drop(self._step, self._names(columns, "drop")))

    def rename(self, columns: Mapping[str, str]) -> PrivateFrame[Table_co]:
        """Other names: `rename({"old": "new"})`.
        Input: columns, a dict from each old name to the new one.
        """
        return self._then(steps.Rename(self._step, read_mapping(columns, "rename")))

    def clip(self, column: str, lower: Any = None, upper: Any = None) -> PrivateFrame[Table_co]:
        """Move the values of a column into [lower, upper] (column unit, times as
        times); missing stays missing.

        Choose the limits without looking at the data. With both, sums and means of the column need
        no `bounds=`.

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame(
        ...     {"user": [1, 1, 2], "age": [17, 30, 41], "wage": [0.0, 4.0, 9.0]}
        ... ).dp(unit="user")
        >>> frame.clip("wage", 0, 5).sum("wage", max_rows=2).sensitivity["wage"].l1
        10
        """
        name = read_name(column, "clip")
        if any(isinstance(end, Auto) for end in (lower, upper)):
            raise InvalidBounds(
                f"clip({name!r}): dp.Auto() is for a question: dp.mean({name!r}, bounds=dp.Auto())."
            )
        low, high = check_interval(lower, upper, f"clip({name!r})")
        if low is not None and high is not None:
            typed = Bounds(low, high)
            check_fact(
                self._step.table.columns.get(name), "bounds", typed, f"clip({name!r}): its limits"
            )
        warn_of_computed_bounds((lower, upper), f"clip({name!r})")
        return self._then(rewrites.Clip(self._step, name, low, high))

    def fill_null(
        self, column: str | Mapping[str, Any], value: Any = None
    ) -> PrivateFrame[Table_co]:
        """A constant in place of what is missing (null or NaN):
        `fill_null("spend", 0)`, `fill_null({"spend": 0})`.

        Input:  column: its name, or a dict from each column to its constant; value: the constant of
                one column

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"user": [1, 1, 2], "age": [17, 30, None]}).dp(unit="user")
        >>> frame.fill_null("age", 0).mean("age", bounds=(0, 120), max_rows=1).sensitivity[
        ...     "age.count"
        ... ].l1
        1
        """
        step = self._step
        for name, filler in _pairs(column, value, "fill_null"):
            step = rewrites.FillNull(step, name, plain(filler))
        return self._then(step)

    def drop_nulls(self, *columns: Columns) -> PrivateFrame[Table_co]:
        """Drop the rows in which one of these columns (by default any
        column) is missing (null or NaN).

        Errors: UnknownColumn; WrongType where a column cannot be read, also where none is named
        """
        names = self._names(columns, "drop_nulls")
        domain = {name: column.domain for name, column in self._step.table.columns.items()}
        readable = tuple(name for name in domain if kind(domain[name].dtype) != Kind.OTHER)
        if not names and len(readable) < len(domain):
            name = next(name for name in domain if name not in readable)
            raise WrongType(
                f"drop_nulls(): a column of type {show(domain[name].dtype)}, {name!r}, cannot be "
                f"read. Name the others: drop_nulls({', '.join(map(repr, readable))})."
            )
        return self._then(steps.DropNulls(self._step, names or readable))

    def cast(self, column: str | Mapping[str, Any], dtype: Any = None) -> PrivateFrame[Table_co]:
        """Another type: `cast("age", "int64")` or `cast({"age": pl.Int64})`.
        What does not convert is null.

        Input:  column: its name, or a dict from each column to its type; dtype: the type of one
                column, a type of Polars, narwhals or Python, or its name

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"user": [1, 1, 2], "age": [17, 30, None]}).dp(unit="user")
        >>> texts = frame.cast("age", "string")
        >>> texts.cast({"age": pl.Int64}).mean("age", bounds=(0, 120), max_rows=1)
        Query of age: not released. See .explain(), .accuracy(epsilon=...), .release(epsilon=...).
        """
        pairs = _pairs(column, dtype, "cast")
        return self._then(
            rewrites.Cast(self._step, tuple((name, as_dtype(target)) for name, target in pairs))
        )

    def cut(
        self,
        column: str,
        bins: Sequence[Any],
        labels: Sequence[str] | None = None,
        *,
        right: bool = True,
        include_lowest: bool = False,
        into: str | None = None,
    ) -> PrivateFrame[Table_co]:
        """Put numbers or times into labelled intervals, as `pd.cut` does: (a, b], null outside.
        Labels are public keys.

        Input:  bins: the edges, increasing (column unit); labels: one text per interval; right:
                whether an interval holds its right edge, else its left; include_lowest: whether the
                outermost edge left out is held too; into: the name of the new column, by default
                the same

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame(
        ...     {"user": [1, 1, 2], "age": [17, 30, 41], "wage": [0.0, 4.0, 9.0]}
        ... ).dp(unit="user")
        >>> ages = frame.cut(
        ...     "age", [0, 17, 64, 120], labels=["child", "adult", "old"], into="group"
        ... )
        >>> query = ages.group_by(
        ...     "group", max_groups=1, max_rows=2
        ... ).count()  # the labels are listed keys
        >>> [line.split(",")[0] for line in str(query.explain()).splitlines() if "Keys" in line]
        ['Keys are public: all 3 listed groups are released']
        """
        name = read_name(column, "cut")
        call = f"cut({name!r})"
        intervals = Intervals.of(bins, labels, right=right, closed_ends=include_lowest, call=call)
        return self._then(
            steps.Cut(self._step, name, intervals, name if into is None else read_name(into, call))
        )

    def bound(
        self, max_rows: int | None = None, *, limits: Auto | None = None
    ) -> PrivateFrame[Table_co]:
        """A limit for every later question: of the rows that reach it, at
        most max_rows of one unit count.

        Enforced by weights: a unit with n > max_rows rows counts each with weight max_rows / n.
        With limits=dp.Auto() it is chosen inside each release.

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame(
        ...     {"user": [1, 1, 2], "age": [17, 30, 41], "wage": [0.0, 4.0, 9.0]}
        ... ).dp(unit="user")
        >>> frame.bound(max_rows=2).sum("wage", bounds=(0, 10)).sensitivity["wage"].l1
        20
        """
        if max_rows is None and limits is None:
            raise InvalidArgument("bound: say how many rows, such as bound(max_rows=20).")
        return self._then(steps.Bound(self._step, read_limits(max_rows, limits=limits)))

    def per_unit(self, **features: Aggregate) -> PrivateFrame[Table_co]:
        """One row for each unit: `per_unit(total=dp.sum("spend"), n=dp.count(),
        city=dp.last("city", by="when"))`.

        Input:  features: count, n_unique, sum, mean, min, max, first and last of the unit's rows,
                named; bounds= clips each value, unit_bounds= a sum
        Output: a frame with the columns that identify the unit and the features; it needs no limit
                on rows
        Bound:  one row of a unit, made of its own rows alone; see
                `dpframe.plan.steps.features.PerUnit`
        Errors: UnsupportedOperation with `dp.Rows(k)` and for other aggregates; InvalidArgument,
                UnknownColumn, WrongType

        >>> import polars as pl, dpframe as dp
        >>> visits = dp.protect(
        ...     pl.DataFrame({"user": [1, 1, 2], "spend": [3.0, 4.0, 5.0]}), unit="user"
        ... )
        >>> visits.per_unit(total=dp.sum("spend")).mean("total", bounds=(0, 10)).sensitivity[
        ...     "total.sum"
        ... ].l1
        5
        """
        step, asked = read_aggregates(self._step, "per_unit", (), features)
        made = tuple(
            (name, completed(feature, step.table, chosen=False)) for name, feature in asked
        )
        each: steps.Step = PerUnit(step, made)
        for name, lower, upper in within_rows(made, step.table):
            each = rewrites.Clip(each, name, lower, upper)
        return self._then(each)

    def join(
        self, other: Any, on: str | Sequence[str], how: str = "inner"
    ) -> PrivateFrame[Table_co]:
        """Each row with the rows of another table that have its key: `join(regions, on="city")`.

        Input:  other: a public table of any kind that can be protected, or a dict of columns, which
                is read now; or a protected frame of the same unit and budget, with the columns that
                identify the unit in on=. on: columns that both have; a missing key matches nothing.
                how: "inner" drops rows without a match, "left" keeps them
        Output: a frame with the columns of the other table added. A public table declares the ends
                and the different values (up to 1,000) of its columns, as bounds= and keys= of
                `dp.protect` do for a protected one
        Bound:  see `dpframe.plan.steps.combine.Join` and `JoinProtected`: with an identifier column
                limits are enforced after the join; with `dp.Rows(k)` k is multiplied by the largest
                number of public rows that one key has
        Warns:  DpFrameWarning for a public table that is joined on the columns of the unit
        Errors: InvalidArgument where both tables have a column, UnknownColumn, WrongType,
                UnsupportedOperation, BudgetMismatch

        >>> import polars as pl, dpframe as dp
        >>> visits = dp.protect(
        ...     pl.DataFrame({"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Kiel"]}), unit="user"
        ... )
        >>> visits.join({"city": ["Bonn", "Kiel"], "sea": [False, True]}, on="city").columns
        ['user', 'city', 'sea']
        """
        check_choice(how, tuple(combine.How), "join: each row stays with its owner; how")
        names = self._names([on], "join: on=")
        match other:
            case PrivateGroupBy():
                raise InvalidArgument("join: give a public table, or a protected frame.")
            case PrivateFrame():
                check_same_budget(self._budget, other._budget, "join")
                return self._then(
                    combine.JoinProtected(self._step, other._step, names, combine.How(how))
                )
        table = engine.public(other)
        first = combine.Join(self._step, table, names, combine.How(how), 0, "")
        most = engine.most_per_key(table, names, first.keys)
        warn_of_public_units(other, self._step.table, names)
        return self._then(
            replace(
                first, most=most, content=engine.content(table), declared=engine.values_of(table)
            )
        )

    def partition(
        self, by: str, keys: Sequence[Any] | None = None, max_groups: int = 1
    ) -> dict[Any, PrivateFrame[Table_co]]:
        """One protected frame for each key of a column;
        releases about different parts compose in parallel.

        Input:  by: a column; keys: the parts, listed without looking at the data, here or once for
                the table; max_groups: in how many parts one unit may be. A hash with a salt chooses
                them; the salt is drawn for this call and kept with the budget
        Output: frames by key; the budget is charged what the dearest part costs, times max_groups,
                for ε, δ, ρ each
        Bound:  a unit's rows are in at most max_groups parts, the same ones in every release.
                Releases about the other parts reveal nothing of it
        Source: McSherry 2009, doi:10.1145/1559845.1559850, theorem 4
        Errors: UnsupportedOperation under neighbors="replace"; InvalidArgument, UnknownColumn,
                WrongType, BudgetRequired

        >>> import polars as pl, dpframe as dp
        >>> budget = dp.Budget(epsilon=1.0)
        >>> frame = pl.DataFrame({"user": [1, 2], "region": ["north", "south"]}).dp(
        ...     unit="user", budget=budget
        ... )
        >>> parts = frame.partition("region", keys=["north", "south"])
        >>> counts = [part.count_units().release(epsilon=0.5) for part in parts.values()]
        >>> budget.spent  # not 1.0: nobody is in both parts
        Loss(epsilon=0.5, delta=0.0)
        """
        parts = partitioned(self._step, self._budget, by, keys, max_groups)
        return {key: PrivateFrame(step, budget) for key, step, budget in parts}


def _pairs(column: Any, value: Any, verb: str) -> Iterable[tuple[str, Any]]:
    if isinstance(column, str):
        if value is None:
            raise InvalidArgument(f"{verb}({column!r}, ...): the second argument is missing.")
        return [(column, value)]
    if value is not None:
        raise InvalidArgument(f"{verb}: give a column and a value, or a dict, not both.")
    return list(read_mapping(column, verb).items())
