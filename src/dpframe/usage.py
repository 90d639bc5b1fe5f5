"""A call with wrong arguments is answered with the line to write, in place of Python's TypeError."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, TypeVar

from dpframe.errors import DpFrameWarning, WrongCall

__all__ = [
    "BUDGET",
    "DOORS",
    "LEDGER",
    "PLAN",
    "PLANNED",
    "PRICED",
    "RELEASED",
    "STEPS",
    "explained",
    "explains",
    "warn",
]

_KEYS = "keys={'region': ['north', 'south'], 'sex': ['f', 'm']}"
_ARGUMENTS = {
    "count": "",
    "count_units": "",
    **dict.fromkeys(("sum", "mean", "var", "std", "median", "min", "max"), "'wage', bounds=(0, 100)"),
    "geometric_mean": "'wage', bounds=(1, 100)",
    "quantile": "'wage', 0.9, bounds=(0, 100)",
    "n_unique": "'city'",
    "mode": "'city', keys=['Bonn', 'Kiel']",
    "top_k": "'city', 1, keys=['Bonn', 'Kiel']",
    "first": "'city', by='when'",
    "last": "'city', by='when'",
    "histogram": "'wage', bins=[0, 50, 100]",
    "crosstab": f"'region', 'sex', {_KEYS}",
    "marginals": f"['region', 'sex'], {_KEYS}",
}
STEPS = {
    "filter": "dp.col('wage') >= 18",
    "with_columns": "double=dp.col('wage') * 2",
    "select": "'wage', 'city'",
    "drop": "'city'",
    "rename": "{'city': 'town'}",
    "clip": "'wage', 0, 100",
    "fill_null": "'wage', 0",
    "drop_nulls": "'wage'",
    "cast": "'wage', 'float32'",
    "cut": "'wage', [0, 50, 100]",
    "bound": "max_rows=20",
    "per_unit": "total=dp.sum('wage', bounds=(0, 100))",
    "join": "{'city': ['Bonn', 'Kiel'], 'sea': [False, True]}, on='city'",
    "partition": "'city', keys=['Bonn', 'Kiel']",
    "group_by": "'city', keys=['Bonn', 'Kiel'], max_groups=1, max_rows_per_group=5",
}
PRICED = {
    "release": "epsilon=0.1",
    "accuracy": "epsilon=0.1",
    "epsilon_for": "error=10",
    "tune": "{'max_rows': [1, 10, 100]}, epsilon=0.1",
    "batch_of": "[query, ...], epsilon=0.1",
}
RELEASED = {"with_ci": "0.95", "suppress": "below=10", "accuracy": "alpha=0.05"}
BUDGET = {"__init__": "epsilon=1.0, delta=1e-6"}
PLAN = {"plan": "[query, ...], epsilon=0.1"}
PLANNED = {"release": ""}
LEDGER = {"budget": "'visits-2026', epsilon=1.0, delta=1e-6"}
DOORS = {"protect": "table, unit='user_id'", "__call__": "unit='user_id', budget=dp.Budget(epsilon=1.0)"}

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


def explained(question: F, line: str = "dp.{}({})", typed: str | None = None) -> F:
    """The same function; a call that does not fit its signature is answered with the line to write.

    Input:  line: where its name and its arguments go; typed: these arguments, by default those known for its name
    Errors: WrongCall

    >>> def n_unique(column): ...
    >>> explained(n_unique)()
    Traceback (most recent call last):
    dpframe.errors.WrongCall: n_unique: missing a required argument: 'column'. Type dp.n_unique('city').
    """

    @wraps(question)
    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            return question(*args, **kwargs)
        except TypeError:  # perhaps of the call itself; a call that fits costs nothing more
            wrong = _misfit(question, args, kwargs)
            if wrong is None:
                raise
        verb = question.__name__
        said = {**_ARGUMENTS, **STEPS, **PRICED, **DOORS}[verb] if typed is None else typed
        called = line.partition("(")[0]
        asked = verb if "{}" in called and not verb.startswith("__") else called
        raise WrongCall(f"{asked}: {wrong}. Type {line.format(verb, said).replace('(, ', '(')}.")

    return checked  # type: ignore[return-value]


def _misfit(question: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError | None:
    try:
        inspect.signature(question).bind(*args, **kwargs)
    except TypeError as error:
        return error
    return None


def explains(line: str, verbs: Mapping[str, str] = _ARGUMENTS) -> Callable[[C], C]:
    """A class whose questions, or other verbs, are explained, each by its line."""

    def changed(kind: C) -> C:
        for verb in filter(partial(hasattr, kind), verbs):
            one = line.replace(", max_rows=5", "") if verb == "count_units" else line
            setattr(kind, verb, explained(getattr(kind, verb), one, verbs[verb]))
        return kind

    return changed


def warn(words: str) -> None:
    """Issue a `DpFrameWarning` at the line that called dpframe; Python shows it once for each such line."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(words, DpFrameWarning, stacklevel=level)
