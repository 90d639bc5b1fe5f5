"""The `.dp` accessor on pandas and Polars frames and series: a door to `dpframe.api`.
It holds no state.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NoReturn, Unpack

import pandas as pd
import polars as pl

from dpframe.api import Declarations, PrivateFrame, Query, protect
from dpframe.api.statistics.choices import FrameChoices
from dpframe.api.statistics.counts import FrameCounts
from dpframe.api.statistics.moments import FrameMoments
from dpframe.errors import InvalidArgument
from dpframe.plan import ACCESSOR
from dpframe.plan.steps import Rows
from dpframe.release.shown import Release
from dpframe.usage import ARGUMENTS, DOORS, MATRICES, Hints, explains

_WHOSE = ("unit", "budget", "neighbors", "data", "people", "policy")
_PRICE = tuple(inspect.signature(Query.release).parameters)[1:]
_OPTIONS = inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD, annotation=Any)


def _at_once(verb: str, *named: str) -> Callable[..., Any]:
    """A verb of `PrivateFrame`, released at once: it also takes whose privacy it is, and the price.

    Input:  named: the parameters that its signature shows, by default all but the limit on rows and
            dp.Auto(). Other parameters of the verb are typed by name
    """
    signature = inspect.signature(getattr(PrivateFrame, verb))
    shown = [
        parameter
        for name, parameter in signature.parameters.items()
        if name in ("self", *named) or (not named and name not in ("max_rows", "limits"))
    ]
    signature = signature.replace(parameters=[*shown, _OPTIONS])

    def released(self: _Accessor, *args: Any, **options: Any) -> Any:
        typed = signature.bind(self, *args, **options)
        return self._once(verb, *typed.args[1:], **typed.kwargs)

    released.__name__, released.__signature__ = verb, signature  # type: ignore[attr-defined]
    released.__doc__ = (
        f"`PrivateFrame.{verb}`, released at once: `unit='user_id'` and `epsilon=0.1` are typed "
        "too."
    )
    return released


class _Accessor(Hints):
    """Protects on call; asks and releases at once through its verbs,
    which are those of `PrivateFrame`.
    """

    _habits = ACCESSOR

    def __init__(self, native: Any) -> None:
        self._native = native

    def __call__(
        self,
        unit: Any = None,
        budget: Any = None,
        neighbors: str | None = None,
        data: Any = None,
        policy: Any = None,
        **declared: Unpack[Declarations],
    ) -> PrivateFrame:
        """Protect the table; see `dpframe.protect`."""
        return protect(self._native, unit, budget, neighbors, data, policy, **declared)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}: protect the table with .dp(unit='user_id', "
            "budget=dp.Budget(epsilon=1.0))."
        )

    def __getitem__(self, asked: object) -> NoReturn:
        name = asked if isinstance(asked, str) else "x"
        raise InvalidArgument(
            "The accessor takes no [...]: protect the table first, frame = df.dp(unit='user_id'). "
            f"In a question a column is its name, as in frame.mean({name!r}, bounds=(0, 100), "
            f"max_rows=5); in a step, dp.col({name!r})."
        )

    def _once(self, verb: str, *args: Any, **options: Any) -> Release:
        whose, price = (
            {name: options.pop(name) for name in names if name in options}
            for names in (_WHOSE, _PRICE)
        )
        question: Callable[..., Any] = getattr(self(**whose), verb)
        out: Release = question(*args, **options).release(**price)
        return out

    top_k = _at_once("top_k")
    describe = _at_once("describe", "columns", "bounds")
    histogram = _at_once("histogram", "column")


for _methods in (FrameCounts, FrameMoments, FrameChoices):
    for _verb in [name for name in vars(_methods) if not name.startswith("_")]:
        setattr(_Accessor, _verb, _at_once(_verb))


@explains("df.dp({1})", DOORS)
@explains("df.dp.{}({}, unit='user_id', max_rows=5, epsilon=0.1)", {**ARGUMENTS, **MATRICES})
class FrameAccessor(_Accessor):
    """`df.dp(unit="user_id")` protects;
    `df.dp.sum("spend", unit="user_id", ...)` asks and releases at once.
    """

    def agg(self, *unnamed: object, **options: Any) -> Release:
        """`PrivateFrame.agg`, released at once:
        `df.dp.agg(n=dp.count(), unit="user_id", max_rows=5, epsilon=0.1)`.

        A keyword that is no aggregate says whose privacy or what price; use `df.dp(...).agg(...)`
        to name a column so.
        """
        return self._once("agg", *unnamed, **options)

    crosstab = _at_once("crosstab", "index", "columns")
    marginals = _at_once("marginals", "columns", "workload")
    cov = _at_once("cov", "columns", "bounds")
    corr = _at_once("corr", "columns", "bounds")
    ols = _at_once("ols", "formula")
    hierarchy = _at_once("hierarchy", "columns", "keys", "values")
    synthesize = _at_once("synthesize", "columns")


@explains("series.dp({1})", {"__call__": "unit=df['user_id']"})
@explains("series.dp.{}({}, unit=df['user_id'], max_rows=5, epsilon=0.1)")
class SeriesAccessor(_Accessor):
    """`series.dp`: one column, with `unit=dp.Rows(1)` or a series of
    identifiers of the same length.
    """

    def __call__(
        self,
        unit: Any = None,
        budget: Any = None,
        neighbors: str | None = None,
        data: Any = None,
        policy: Any = None,
        **declared: Unpack[Declarations],
    ) -> PrivateFrame:
        """Protect the column; see `dpframe.protect`."""
        values = self._native
        name = values.name if isinstance(values.name, str) and values.name else "value"
        pandas = isinstance(values, pd.Series)
        if unit is None or isinstance(unit, Rows):
            frame = pd.DataFrame({name: values}) if pandas else pl.DataFrame([values.alias(name)])
            return protect(frame, unit, budget, neighbors, data, policy, **declared)
        if (
            not isinstance(unit, type(values))
            or len(unit) != len(values)
            or (pandas and not unit.index.equals(values.index))
        ):
            raise InvalidArgument(
                "unit= of a series is dp.Rows(k), or a series of the same kind, length and index "
                "with one identifier for each value. To name a column, protect the dataframe: "
                "df.dp(unit='user_id')."
            )
        ids = (
            unit.name if isinstance(unit.name, str) and unit.name and unit.name != name else "unit"
        )
        frame = (
            pd.DataFrame({name: values, ids: unit})
            if pandas
            else pl.DataFrame([values.alias(name), unit.alias(ids)])
        )
        return protect(frame, ids, budget, neighbors, data, policy, **declared)


def register() -> None:
    """Put `.dp` on pandas and Polars.
    Expressions are left alone: another library has its own `.dp` there.
    """
    pd.api.extensions.register_dataframe_accessor("dp")(FrameAccessor)
    pd.api.extensions.register_series_accessor("dp")(SeriesAccessor)
    pl.api.register_dataframe_namespace("dp")(FrameAccessor)
    pl.api.register_lazyframe_namespace("dp")(FrameAccessor)
    pl.api.register_series_namespace("dp")(SeriesAccessor)
