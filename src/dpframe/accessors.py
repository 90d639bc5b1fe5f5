"""The `.dp` accessor on pandas and Polars frames and series: a door to `dpframe.api`. It holds no state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import pandas as pd
import polars as pl

from dpframe.api import PrivateFrame, TableChoices, TableCounts, TableMoments, protect
from dpframe.errors import InvalidArgument
from dpframe.plan import ACCESSOR
from dpframe.plan.steps import Rows
from dpframe.release import HierarchyRelease
from dpframe.release.kinds.marginals import MarginalsRelease
from dpframe.release.kinds.regression import MatrixRelease, Regression
from dpframe.release.kinds.synthesis import SyntheticRelease
from dpframe.release.shown import Release
from dpframe.usage import ARGUMENTS, DOORS, MATRICES, explains

__all__ = ["FrameAccessor", "SeriesAccessor", "register"]


class _Accessor(TableCounts, TableMoments, TableChoices):
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

    def describe(self, columns: Any = None, bounds: Any = None, **options: Any) -> Release:
        """`PrivateFrame.describe`, released at once."""
        return self._once("describe", columns, bounds, **options)

    def histogram(self, column: str | None = None, **options: Any) -> Release:
        """`PrivateFrame.histogram`, released at once."""
        return self._once("histogram", column, **options)


@explains("df.dp({1})", DOORS)
@explains("df.dp.{}({}, unit='user_id', max_rows=5, epsilon=0.1)", {**ARGUMENTS, **MATRICES})
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

    def cov(self, columns: Sequence[str], bounds: Mapping[str, Any] | None = None, **options: Any) -> MatrixRelease:
        """`PrivateFrame.cov`, released at once."""
        return self._once("cov", columns, bounds, **options)  # type: ignore[return-value]

    def corr(self, columns: Sequence[str], bounds: Mapping[str, Any] | None = None, **options: Any) -> MatrixRelease:
        """`PrivateFrame.corr`, released at once."""
        return self._once("corr", columns, bounds, **options)  # type: ignore[return-value]

    def ols(self, formula: str | None = None, **options: Any) -> Regression:
        """`PrivateFrame.ols`, released at once: `df.dp.ols(y="wage", x=["hours"], ...)`."""
        return self._once("ols", formula, **options)  # type: ignore[return-value]

    def hierarchy(self, columns: Any, keys: Any, values: Any = None, **options: Any) -> HierarchyRelease:
        """`PrivateFrame.hierarchy`, released at once."""
        return self._once("hierarchy", columns, keys, values, **options)  # type: ignore[return-value]

    def synthesize(self, columns: Any = None, **options: Any) -> SyntheticRelease:
        """`PrivateFrame.synthesize`, released at once."""
        return self._once("synthesize", columns, **options)  # type: ignore[return-value]


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
