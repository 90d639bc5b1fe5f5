"""Differential privacy for pandas and Polars dataframes.

`import dpframe as dp` puts `.dp` on pandas and Polars frames.
`df.dp(unit="user_id", budget=dp.Budget(epsilon=1.0))` protects a frame; its methods transform it
row by row or ask a question; `.release(epsilon=...)` answers with noise and pays for it.
"""

from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import Any as _Any
from typing import NoReturn as _NoReturn

from dpframe import errors
from dpframe.accessors import register as _register
from dpframe.api import (
    Auto,
    PrivateFrame,
    PrivateGroupBy,
    Query,
    concat,
    protect,
    set_budget,
    set_memory,
)
from dpframe.api.statistics import choices as _choices
from dpframe.api.statistics import counts as _counts
from dpframe.api.statistics import moments as _moments
from dpframe.api.statistics import pairs as _pairs
from dpframe.api.statistics.choices import *
from dpframe.api.statistics.counts import *
from dpframe.api.statistics.moments import *
from dpframe.api.statistics.pairs import *
from dpframe.budget import Budget, Caps, Ledger
from dpframe.engine import content_hash
from dpframe.plan import MODULE as _MODULE
from dpframe.plan import Expr, coalesce, col, concat_str, duration, lit, when
from dpframe.plan.policy import Policy
from dpframe.plan.steps import Rows
from dpframe.release import (
    HierarchyRelease,
    MarginalsRelease,
    Release,
    SyntheticRelease,
    on_release,
)
from dpframe.theory.formulas.sensitivity import Sensitivity
from dpframe.usage import ELSEWHERE as _ELSEWHERE
from dpframe.usage import nearest as _nearest

__all__ = [
    "Auto",
    "Budget",
    "Caps",
    "Expr",
    "HierarchyRelease",
    "Ledger",
    "MarginalsRelease",
    "Policy",
    "PrivateFrame",
    "PrivateGroupBy",
    "Query",
    "Release",
    "Rows",
    "Sensitivity",
    "SyntheticRelease",
    "coalesce",
    "col",
    "concat",
    "concat_str",
    "content_hash",
    "duration",
    "errors",
    "lit",
    "on_release",
    "protect",
    "set_budget",
    "set_memory",
    "when",
]
__all__ += [*_choices.__all__, *_counts.__all__, *_moments.__all__, *_pairs.__all__]

__version__ = "0.1.0"

_register()


class _Part(_ModuleType):
    """A part of the library whose name is also a verb."""

    def __call__(self, *_: object, **__: object) -> _NoReturn:
        raise errors.UnsupportedOperation(
            "dp.release is no function. A question is released by its method, "
            "query.release(epsilon=0.1), and several together by budget.plan([query, ...], "
            "epsilon=0.1).release()."
        )


_import_module("dpframe.release").__class__ = _Part


def __dir__() -> list[str]:
    return sorted([*__all__, "audit", "testing", "theory", "__version__"])


def __getattr__(name: str) -> _Any:
    """`dp.audit` and `dp.testing`, imported when first used;
    what other libraries call so has another name here.
    """
    if name in ("audit", "testing"):
        return _import_module(f"dpframe.{name}")
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    advice = _ELSEWHERE.get(name) or _MODULE.get(name)
    hint = f" {advice}" if advice else _nearest(name, __all__)
    raise errors.UnknownAttribute(f"dpframe has no {name!r}.{hint}")
