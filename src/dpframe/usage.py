"""Wrong arguments of a call: the error names the line to type, in place of Python's TypeError."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, TypeVar, get_args, get_type_hints

from dpframe.errors import DpFrameWarning, WrongCall
from dpframe.safe_text import visible

_KEYS = "keys={'region': ['north', 'south'], 'sex': ['f', 'm']}"
ARGUMENTS = {  # of questions that are methods alone; a statistic brings its own: see `statistic`
    "top_k": "'city', 1, keys=['Bonn', 'Kiel']",
    "histogram": "'wage', bins=[0, 50, 100]",
    "crosstab": f"'region', 'sex', {_KEYS}",
    "describe": "bounds={'wage': (0, 100)}",
    "marginals": f"['region', 'sex'], {_KEYS}",
    "hierarchy": "['region', 'city'], keys=[('north', 'Kiel'), ('south', 'Ulm')]",
    "synthesize": f"['region', 'sex'], {_KEYS}",
}
_BOTH = "bounds={'wage': (0, 100), 'hours': (0, 60)}"
MATRICES = {
    "cov": f"['wage', 'hours'], {_BOTH}",
    "corr": f"['wage', 'hours'], {_BOTH}",
    "ols": f"y='wage', x=['hours'], {_BOTH}",
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
RELEASED = {
    "with_ci": "0.95",
    "suppress": "below=10",
    "round": "",
    "nonnegative": "",
    "accuracy": "alpha=0.05",
    "difference": "'treated', 'control'",
    "compare": "reference='control'",
}
BUDGET = {"__init__": "epsilon=1.0, delta=1e-6"}
PLAN = {"plan": "[query, ...], epsilon=0.1"}
PLANNED = {"release": ""}
LEDGER = {"budget": "'visits-2026', epsilon=1.0, delta=1e-6"}
DOORS = {"protect": "table, unit='user_id'", "__call__": "unit='user_id', budget=dp.Budget(epsilon=1.0)"}

ELSEWHERE: dict[str, str] = {}  # what other libraries call a statistic, and what to type here: see `statistic`

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


def explained(question: F, line: str = "dp.{}({})", typed: str | None = None) -> F:
    """Wrap a function, so that a call that does not fit its signature raises an error with the line to type.

    Input:  line: the line to type, with {} for the function's name and for its arguments; typed: these arguments, by
            default the example listed above for the function's name
    Errors: WrongCall

    >>> def n_unique(column): ...
    >>> explained(n_unique)()
    Traceback (most recent call last):
    dpframe.errors.WrongCall: n_unique: missing a required argument: 'column'. Type dp.n_unique('city').
    """
    if (signature := _spelled_out(question)) != inspect.signature(question):
        question.__signature__ = signature  # type: ignore[attr-defined]
    spelled_out: inspect.Signature | None = getattr(question, "__signature__", None)

    @wraps(question)
    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            if spelled_out is not None:  # Python itself would take any name for its `**`
                spelled_out.bind(*args, **kwargs)
            return question(*args, **kwargs)
        except TypeError:  # other signatures are checked only now, so that a correct call takes no extra time
            wrong = _misfit(question, args, kwargs)
            if wrong is None:
                raise
        verb = question.__name__
        arguments = {**ARGUMENTS, **STEPS, **PRICED, **DOORS}[verb] if typed is None else typed
        prefix = line.partition("(")[0]
        subject = verb if "{}" in prefix and not verb.startswith("__") else prefix
        raise WrongCall(f"{subject}: {wrong}. Type {line.format(verb, arguments).replace('(, ', '(')}.")

    return checked  # type: ignore[return-value]


def statistic(typed: str, elsewhere: str = "") -> Callable[[F], F]:
    """A statistic that people type, as `dp.NAME` and as a method: a call that does not fit names the line to write.

    Input:  typed: the arguments of that line; elsewhere: what other libraries call it, with spaces between
    Errors: WrongCall

    >>> @statistic("'wage'", elsewhere="midpoint")
    ... def midrange(column): ...
    >>> ELSEWHERE.pop("midpoint"), ARGUMENTS.pop("midrange")
    ("Type dp.midrange('x').", "'wage'")
    """

    def checked(question: F) -> F:
        verb = question.__name__
        ARGUMENTS[verb] = typed
        short = typed.replace("'wage'", "'x'").replace("'city'", "'x'")
        ELSEWHERE.update(dict.fromkeys(elsewhere.split(), f"Type dp.{verb}({short})."))
        return explained(question)

    return checked


def _spelled_out(question: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function, with the names of a TypedDict in place of `**limits: Unpack[...]`."""
    signature = inspect.signature(question)
    *parameters, last = signature.parameters.values()
    if "Unpack" not in str(last.annotation):
        return signature
    (options,) = get_args(get_type_hints(question)[last.name])
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in get_type_hints(options).items()
    ]
    return signature.replace(parameters=parameters)


def _misfit(question: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError | None:
    try:
        inspect.signature(question).bind(*args, **kwargs)
    except TypeError as error:
        return error
    return None


def explains(line: str, verbs: Mapping[str, str] = ARGUMENTS) -> Callable[[C], C]:
    """A decorator that applies `explained` to the methods of a class that `verbs` lists, with example arguments."""

    def changed(kind: C) -> C:
        for verb in filter(partial(hasattr, kind), verbs):
            verb_line = line.replace(", max_rows=5", "") if verb == "count_units" else line
            setattr(kind, verb, explained(getattr(kind, verb), verb_line, verbs[verb]))
        return kind

    return changed


def warn(words: str) -> None:
    """Issue a `DpFrameWarning` at the line that called dpframe; Python shows it once for each such line."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(visible(words, keep="\n"), DpFrameWarning, stacklevel=level)
