"""Groups of a protected frame, as `group_by` returns them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic, NoReturn

import polars as pl

from dpframe.api import aggregates as make
from dpframe.api.arguments import Pair, read_rank
from dpframe.api.query import Query
from dpframe.engine import Table_co
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan import GROUPS, Aggregate, Hints, Question, is_len
from dpframe.release import Account
from dpframe.usage import explains

__all__ = ["PrivateGroupBy", "named", "quantiles"]


@explains(".{}({}).release(epsilon=0.1)")
class PrivateGroupBy(Hints, Generic[Table_co]):
    """Groups of a protected frame; ask them for aggregates.

    >>> import polars as pl, dpframe as dp
    >>> visits = pl.DataFrame({"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"], "spend": [3.0, 4.0, 5.0]})
    >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
    >>> groups = frame.group_by("city", keys=["Bonn", "Kiel"], max_groups=2, max_rows=3)
    >>> groups.agg(n=dp.count(), spend=dp.mean("spend", bounds=(0, 10))).release(epsilon=0.5).table.columns
    ['city', 'n', 'spend']
    >>> groups.median("spend", bounds=(0, 10)).release(epsilon=0.5).table.columns
    ['city', 'spend']
    """

    __slots__ = ("_budget", "_groups", "_written")
    _habits = GROUPS

    def __init__(self, groups: Question, budget: Account | None, written: frozenset[str] = frozenset()) -> None:
        """`groups` is a question without aggregates; `written` are columns that an expression among the keys took."""
        groups.unit_limits.groups("groups")  # columns, keys and the limit are checked as soon as they are named
        self._groups, self._budget, self._written = groups, budget, written

    def agg(self, *unnamed: object, **aggregates: Aggregate) -> Query[Table_co]:
        """Several aggregates of each group in one release: `agg(n=dp.count(), spend=dp.mean("spend"))`."""
        return self._query(named(aggregates, unnamed=unnamed))

    def keys(self) -> Query[Table_co]:
        """The keys alone, of the groups that enough units are in: as many as the price allows, which needs a δ.

        If units have more groups than the limit, many units keep the same ones. So fewer groups have any unit, and more
        of these are released, than in a question that asks for numbers too.

        Bound:  see `dpframe.theory.formulas.loss.key_selection.selection_scale`
        Errors: UnsupportedOperation for listed keys, with other=, which adds up numbers, and with limits=dp.Auto(),
                which weighs the errors of numbers
        """
        if self._groups.keys is not None:
            raise UnsupportedOperation("keys(): these keys are listed, so there is nothing to find out about them.")
        if self._groups.other is not None:
            raise UnsupportedOperation("keys(): other= adds up numbers, and none is asked for here; leave it out.")
        if self._groups.auto is not None:
            raise UnsupportedOperation(
                "keys(): dp.Auto() weighs the errors of numbers, and none is asked for here; leave it out and say "
                "max_groups=3, or ask for count_units()."
            )
        return self._query(())

    def count(self, column: str | None = None) -> Query[Table_co]:
        """Rows per group, or values of a column that are not missing; see `dp.count`."""
        return self._query((("count" if column is None else column, make.count(column)),))

    def count_units(self) -> Query[Table_co]:
        """Distinct units per group; see `dp.count_units`."""
        return self._query((("count_units", make.count_units()),))

    def sum(self, column: str, bounds: Pair | None = None, unit_bounds: Pair | None = None) -> Query[Table_co]:
        """Sum of a column per group; see `dp.sum`."""
        return self._query(((column, make.sum(column, bounds, unit_bounds)),))

    def mean(self, column: str, bounds: Pair | None = None) -> Query[Table_co]:
        """Mean of a column per group; see `dp.mean`."""
        return self._query(((column, make.mean(column, bounds)),))

    def var(self, column: str, bounds: Pair | None = None, *, ddof: int = 1) -> Query[Table_co]:
        """Variance of a column per group; see `dp.var`."""
        return self._query(((column, make.var(column, bounds, ddof=ddof)),))

    def std(self, column: str, bounds: Pair | None = None, *, ddof: int = 1) -> Query[Table_co]:
        """Standard deviation of a column per group; see `dp.std`."""
        return self._query(((column, make.std(column, bounds, ddof=ddof)),))

    def geometric_mean(self, column: str, bounds: Pair | None = None) -> Query[Table_co]:
        """Geometric mean of a column per group; see `dp.geometric_mean`."""
        return self._query(((column, make.geometric_mean(column, bounds)),))

    def n_unique(self, column: str) -> Query[Table_co]:
        """Different values of a column per group; see `dp.n_unique`."""
        return self._query(((column, make.n_unique(column)),))

    def quantile(self, column: str, q: float | Sequence[float] = 0.5, bounds: Pair | None = None) -> Query[Table_co]:
        """One or several quantiles of a column per group; see `PrivateFrame.quantile`."""
        return self._query(quantiles(column, q, bounds))

    def median(self, column: str, bounds: Pair | None = None) -> Query[Table_co]:
        """Median of a column per group; see `dp.median`."""
        return self._query(((column, make.median(column, bounds)),))

    def min(self, column: str, bounds: Pair | None = None) -> Query[Table_co]:
        """A value that hardly any row is below, per group; see `dp.min`."""
        return self._query(((column, make.min(column, bounds)),))

    def max(self, column: str, bounds: Pair | None = None) -> Query[Table_co]:
        """A value that hardly any row is above, per group; see `dp.max`."""
        return self._query(((column, make.max(column, bounds)),))

    def mode(self, column: str, keys: Iterable[Any] | None = None) -> Query[Table_co]:
        """The most frequent of the listed values of a column per group; see `dp.mode`."""
        return self._query(((column, make.mode(column, keys)),))

    def top_k(self, column: str, k: int, keys: Iterable[Any] | None = None) -> Query[Table_co]:
        """The k most frequent of the listed values per group, k rows each; see `PrivateFrame.top_k`."""
        return self._query(((column, make.top_k(column, k, keys)),))

    def _query(self, aggregates: tuple[tuple[str, Aggregate], ...]) -> Query[Table_co]:
        for _, aggregate in aggregates:
            name = getattr(aggregate, "column", None)
            if name in self._written:
                raise InvalidArgument(
                    f"{aggregate.typed}: the keys are written into {name!r}, in place of its values. Give the keys "
                    f"another name: group_by((...).alias('{name}_key'), ...)."
                )
        return Query(replace(self._groups, aggregates=aggregates), self._budget)

    def _advice(self, name: str) -> str:
        if name in self._groups.table.columns:
            return f" It is a column: name it in the question, as in .mean({name!r}, bounds=(0, 100))."
        return super()._advice(name)

    def __getitem__(self, key: object) -> NoReturn:
        if isinstance(key, int):  # a loop asks for 0, 1, ...
            line = f"partition({', '.join(map(repr, self._groups.by))}, keys=[...], max_groups=1)"
            raise InvalidArgument(f"Groups take no [...] and no loop: one frame for each key is in {line}.")
        name = key if isinstance(key, str) else "x"
        raise InvalidArgument(
            f"Groups take no [...]: name the column in the question, as in .mean({name!r}, bounds=(0, 100))."
        )

    def __repr__(self) -> str:
        return f"PrivateGroupBy by {', '.join(map(repr, self._groups.by))}. Ask it: .agg(n=dp.count())"

    def __reduce__(self) -> Any:
        raise UnsupportedOperation("A protected frame cannot be pickled or copied out: the copy would hold raw rows.")


def named(
    aggregates: Mapping[str, Any], verb: str = "agg", unnamed: tuple[object, ...] = ()
) -> tuple[tuple[str, Aggregate], ...]:
    """Aggregates with their names, checked. An aggregate without a name is refused."""
    counts = {x.meta.output_name(): make.count() for x in unnamed if isinstance(x, pl.Expr) and is_len(x)}
    if len(counts) < len(unnamed):
        raise InvalidArgument(
            f"{verb}: name each aggregate, as in {verb}(n=dp.count(), m=dp.mean('x', bounds=(0, 1)))."
        )
    aggregates = counts | {name: _counted(aggregate) for name, aggregate in aggregates.items()}
    if not aggregates:
        raise InvalidArgument(f"{verb}: name at least one aggregate, such as {verb}(n=dp.count()).")
    for name, aggregate in aggregates.items():
        if name in ("epsilon", "delta", "rho") and not isinstance(aggregate, Aggregate):
            raise InvalidArgument(f"{verb}: the price is said at the release: {verb}(...).release({name}=...).")
        if not isinstance(aggregate, Aggregate):
            raise InvalidArgument(
                f"{verb}({name}=...): give an aggregate, such as dp.count() or dp.mean('spend', bounds=(0, 100))."
            )
    return tuple(aggregates.items())


def _counted(aggregate: Any) -> Any:
    """`pl.len()` as the number of rows."""
    return make.count() if isinstance(aggregate, pl.Expr) and is_len(aggregate) else aggregate


def quantiles(name: str, q: Any, bounds: Pair | None) -> tuple[tuple[str, Aggregate], ...]:
    """One quantile, or several that are named after column and rank."""
    if not isinstance(q, (list, tuple)):
        return ((name, make.quantile(name, q, bounds)),)
    if not q or len({read_rank(x) for x in q}) != len(q):
        raise InvalidArgument(f"quantile({name!r}): q= is a number, or a list of different numbers, from 0 to 1.")
    return tuple((f"{name}_{x:g}", make.quantile(name, x, bounds)) for x in q)
