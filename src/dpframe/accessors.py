"""The `.dp` accessor on pandas and Polars frames and series: a door to `dpframe.api`. It holds no state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypedDict, Unpack

import pandas as pd
import polars as pl

from dpframe.api import Pair, PrivateFrame, protect
from dpframe.errors import InvalidArgument
from dpframe.plan import ACCESSOR, Hints
from dpframe.plan.steps import Rows
from dpframe.release.publish import MarginalsRelease, Release
from dpframe.usage import DOORS, explains

__all__ = ["FrameAccessor", "SeriesAccessor", "register"]


class Whose(TypedDict, total=False):
    """Whose privacy, and what pays."""

    unit: Any
    budget: Any
    neighbors: str
    data: Any


class ReleaseArguments(TypedDict, total=False):
    """What `Query.release` takes."""

    epsilon: float
    delta: float
    rho: float
    noise: str
    name: str
    refresh: bool
    on_pending: str
    ci: float


class Once(Whose, ReleaseArguments, total=False):
    """What a one-liner takes besides the question: whose privacy, the price, and the limit on rows, or `dp.Auto()`."""

    max_rows: int
    limits: Any


class _Accessor(Hints):
    """Protects on call; asks and releases at once through its verbs, which are those of `PrivateFrame`."""

    _habits = ACCESSOR

    def __init__(self, native: Any) -> None:
        self._native = native

    def __call__(
        self, unit: Any = None, budget: Any = None, neighbors: str = "add-remove", data: Any = None
    ) -> PrivateFrame:
        """Protect the table; see `dpframe.protect`."""
        return protect(self._native, unit, budget, neighbors, data)

    def __repr__(self) -> str:
        return f"{type(self).__name__}: protect the table with .dp(unit='user_id', budget=dp.Budget(epsilon=1.0))."

    def __getitem__(self, asked: object) -> NoReturn:
        name = asked if isinstance(asked, str) else "x"
        raise InvalidArgument(
            "The accessor takes no [...]: protect the table first, frame = df.dp(unit='user_id'). In a question a "
            f"column is its name, as in frame.mean({name!r}, bounds=(0, 100), max_rows=5); in a step, dp.col({name!r})."
        )

    def _once(self, verb: str, *args: Any, **options: Any) -> Release:
        whose, price = (
            {name: options.pop(name) for name in kind.__annotations__ if name in options}
            for kind in (Whose, ReleaseArguments)
        )
        question: Callable[..., Any] = getattr(self(**whose), verb)
        return question(*args, **options).release(**price)  # type: ignore[no-any-return]

    def count(self, column: str | None = None, **once: Unpack[Once]) -> Release:
        """`PrivateFrame.count`, released at once: `df.dp.count(unit="user_id", max_rows=20, epsilon=0.1)`."""
        return self._once("count", column, **once)

    def count_units(self, **once: Unpack[Once]) -> Release:
        """`PrivateFrame.count_units`, released at once."""
        return self._once("count_units", **once)

    def n_unique(self, column: str | None = None, **once: Unpack[Once]) -> Release:
        """`PrivateFrame.n_unique`, released at once."""
        return self._once("n_unique", column, **once)

    def sum(
        self,
        column: str | None = None,
        bounds: Pair | None = None,
        unit_bounds: Pair | None = None,
        **once: Unpack[Once],
    ) -> Release:
        """`PrivateFrame.sum`, released at once."""
        return self._once("sum", column, bounds, unit_bounds, **once)

    def mean(self, column: str | None = None, bounds: Pair | None = None, **once: Unpack[Once]) -> Release:
        """`PrivateFrame.mean`, released at once."""
        return self._once("mean", column, bounds, **once)

    def var(
        self, column: str | None = None, bounds: Pair | None = None, *, ddof: int = 1, **once: Unpack[Once]
    ) -> Release:
        """`PrivateFrame.var`, released at once."""
        return self._once("var", column, bounds, ddof=ddof, **once)

    def std(
        self, column: str | None = None, bounds: Pair | None = None, *, ddof: int = 1, **once: Unpack[Once]
    ) -> Release:
        """`PrivateFrame.std`, released at once."""
        return self._once("std", column, bounds, ddof=ddof, **once)

    def geometric_mean(self, column: str | None = None, bounds: Pair | None = None, **once: Unpack[Once]) -> Release:
        """`PrivateFrame.geometric_mean`, released at once."""
        return self._once("geometric_mean", column, bounds, **once)

    def quantile(
        self,
        column: str | None = None,
        q: float | Sequence[float] = 0.5,
        bounds: Pair | None = None,
        **once: Unpack[Once],
    ) -> Release:
        """`PrivateFrame.quantile`, released at once."""
        return self._once("quantile", column, q, bounds, **once)

    def median(self, column: str | None = None, bounds: Pair | None = None, **once: Unpack[Once]) -> Release:
        """`PrivateFrame.median`, released at once."""
        return self._once("median", column, bounds, **once)

    def min(self, column: str | None = None, bounds: Pair | None = None, **once: Unpack[Once]) -> Release:
        """`PrivateFrame.min`, released at once."""
        return self._once("min", column, bounds, **once)

    def max(self, column: str | None = None, bounds: Pair | None = None, **once: Unpack[Once]) -> Release:
        """`PrivateFrame.max`, released at once."""
        return self._once("max", column, bounds, **once)

    def mode(self, column: str | None = None, keys: Any = None, **once: Unpack[Once]) -> Release:
        """`PrivateFrame.mode`, released at once."""
        return self._once("mode", column, keys, **once)

    def top_k(self, column: str, k: int, keys: Any = None, **once: Unpack[Once]) -> Release:
        """`PrivateFrame.top_k`, released at once."""
        return self._once("top_k", column, k, keys, **once)

    def histogram(self, column: str | None = None, **options: Any) -> Release:
        """`PrivateFrame.histogram`, released at once."""
        return self._once("histogram", column, **options)


@explains("df.dp({1})", DOORS)
@explains("df.dp.{}({}, unit='user_id', max_rows=5, epsilon=0.1)")
class FrameAccessor(_Accessor):
    """`df.dp(unit="user_id")` protects; `df.dp.sum("spend", unit="user_id", ...)` asks and releases at once."""

    def agg(self, *unnamed: object, **options: Any) -> Release:
        """`PrivateFrame.agg`, released at once: `df.dp.agg(n=dp.count(), unit="user_id", max_rows=5, epsilon=0.1)`.

        A keyword that is no aggregate says whose privacy or what price; use `df.dp(...).agg(...)` to name a column so.
        """
        return self._once("agg", *unnamed, **options)

    def crosstab(self, index: Any, columns: Any, **options: Any) -> Release:
        """`PrivateFrame.crosstab`, released at once."""
        return self._once("crosstab", index, columns, **options)

    def marginals(self, columns: Any, workload: Any = "2-way", **options: Any) -> MarginalsRelease:
        """`PrivateFrame.marginals`, released at once."""
        return self._once("marginals", columns, workload, **options)  # type: ignore[return-value]


@explains("series.dp({1})", {"__call__": "unit=df['user_id']"})
@explains("series.dp.{}({}, unit=df['user_id'], max_rows=5, epsilon=0.1)")
class SeriesAccessor(_Accessor):
    """`series.dp`: one column, with `unit=dp.Rows(1)` or a series of identifiers of the same length."""

    def __call__(
        self, unit: Any = None, budget: Any = None, neighbors: str = "add-remove", data: Any = None
    ) -> PrivateFrame:
        """Protect the column; see `dpframe.protect`."""
        values = self._native
        name = values.name if isinstance(values.name, str) and values.name else "value"
        pandas = isinstance(values, pd.Series)
        if unit is None or isinstance(unit, Rows):
            frame = pd.DataFrame({name: values}) if pandas else pl.DataFrame([values.alias(name)])
            return protect(frame, unit, budget, neighbors, data)
        if (
            not isinstance(unit, type(values))
            or len(unit) != len(values)
            or (pandas and not unit.index.equals(values.index))
        ):
            raise InvalidArgument(
                "unit= of a series is dp.Rows(k), or a series of the same kind, length and index with one identifier "
                "for each value. To name a column, protect the dataframe: df.dp(unit='user_id')."
            )
        ids = unit.name if isinstance(unit.name, str) and unit.name and unit.name != name else "unit"
        frame = (
            pd.DataFrame({name: values, ids: unit}) if pandas else pl.DataFrame([values.alias(name), unit.alias(ids)])
        )
        return protect(frame, ids, budget, neighbors, data)


def register() -> None:
    """Put `.dp` on pandas and Polars. Expressions are left alone: another library has its own `.dp` there."""
    pd.api.extensions.register_dataframe_accessor("dp")(FrameAccessor)
    pd.api.extensions.register_series_accessor("dp")(SeriesAccessor)
    pl.api.register_dataframe_namespace("dp")(FrameAccessor)
    pl.api.register_lazyframe_namespace("dp")(FrameAccessor)
    pl.api.register_series_namespace("dp")(SeriesAccessor)
