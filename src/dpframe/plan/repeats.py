"""What was worked out of a question, for the next question that is typed alike.

A dashboard asks one question many times. Each time it is a new `Question`, and all that is worked out of it is equal:
its totals, its sensitivities, its derivation, the noise that a price buys. So a step of a plan keeps what was worked
out of the last questions about it, and a question that is typed alike takes it over. Examples: `frame.sum("x",
bounds=(0, 100), max_rows=5)` asked twice shares its totals, and with `bounds=(0, 100.0)` it has its own.

Why nothing is taken over from another question, other types of columns or other data:

- The step is the place where it is kept. A step has one schema and one table for ever, and each call of
  `dpframe.protect`, `filter` or any other step makes a new one.
- Two questions about one step are alike if all fields of `Question` are. `exact` compares them by their types too, so
  that 1, 1.0 and True differ. It knows values of a few plain types and dataclasses of such values. A question in which
  it meets anything else is kept nowhere.
- What is kept follows from these fields alone, as functions without a state. No row and no total is ever in it: a
  question refers to rows through its step alone, and no step is kept, so that a table is freed with its last frame.

Refusals are not kept. A question that is refused is refused each time by the code that refused it first.
"""

from __future__ import annotations

import datetime as dt
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from functools import cache, cached_property
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar

__all__ = ["Asked", "Worked", "exact", "forget", "once", "taken_over"]

_MOST = 64  # questions about one step, and results of one question, that are kept
_LONG = 1000  # values of the longest list that is compared; a longer one takes more time to compare than it saves
_PLAIN: frozenset[type] = frozenset({int, str, bytes, bool, type(None), Fraction, dt.date, dt.timedelta})

P = ParamSpec("P")
R = TypeVar("R")
Q = TypeVar("Q", bound="Worked")

_lock = Lock()
_ABSENT = object()
_era = [0]  # a number in each key: what was kept before `forget` is never met again


def _fresh_lock() -> None:
    global _lock  # if another thread holds the lock at a fork, the child's copy of it is never released
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh_lock)


class Worked:
    """A base of questions: `worked` has what functions made of the question, shared by all questions that are alike."""

    step: Any

    @cached_property
    def worked(self) -> OrderedDict[Hashable, Any]:
        """Results by function and arguments; see `once`."""
        return OrderedDict()


class Asked:
    """What was worked out of the last questions about one step, by the exact fields of each question."""

    def __init__(self) -> None:
        self._results: OrderedDict[Hashable, dict[str, Any]] = OrderedDict()

    def get(self, key: Hashable) -> dict[str, Any] | None:
        """What was worked out of a question with this key; None if no such question was asked."""
        return self._results.get((_era[0], key))

    def put(self, key: Hashable, results: dict[str, Any]) -> None:
        """Keep results under a key. Those that were kept first are dropped."""
        with _lock:
            self._results[_era[0], key] = results
            while len(self._results) > _MOST:
                self._results.popitem(last=False)


def taken_over(question: Worked, asked: Asked, work: Callable[[], None]) -> None:
    """Give a question what was worked out of one that is alike; else work it out and keep it.

    Input:  a new question; what its step keeps; work: checks the question, and fills its cached properties
    Errors: those of `work`
    """
    names = {name: value for name, value in vars(question).items() if name != "step"}
    try:
        key = exact(tuple(names.values()))
    except TypeError:
        return work()
    results = asked.get(key)
    if results is None:
        work()
        _ = question.worked
        asked.put(key, {name: value for name, value in vars(question).items() if name not in names and name != "step"})
        return None
    return vars(question).update(results)


def forget() -> None:
    """Use nothing any more of what is kept now."""
    _era[0] += 1


def once(function: Callable[Concatenate[Q, P], R], question: Q, *args: P.args, **kwargs: P.kwargs) -> R:
    """What a function makes of a question, computed once for all questions that are alike.

    Input:  a function of the question and of the other arguments alone, whose result nobody changes; arguments that
            are compared exactly, see `exact`; others are computed anew
    Errors: those of the function, each time
    """
    try:
        key = (_era[0], function, exact(args))
    except TypeError:
        return function(question, *args, **kwargs)
    results = question.worked
    value: Any = results.get(key, _ABSENT)  # one look-up, since another thread may drop the result after it
    if value is not _ABSENT:
        result: R = value
        return result
    result = function(question, *args, **kwargs)
    with _lock:
        results[key] = result
        while len(results) > _MOST:
            results.popitem(last=False)
    return result


def exact(value: Any) -> Hashable:
    """A value with the types of all its parts, so that two are equal only if nothing tells them apart.

    Errors: TypeError for a value of a type that this does not know, or a list of more than a thousand values

    >>> exact((1, 2.0)) == exact((1, 2)), exact(0.0) == exact(-0.0), exact((1, "x")) == exact((1, "x"))
    (False, False, True)
    """
    kind: Any = type(value)
    if kind in _PLAIN:
        return kind, value
    if kind is float:
        return kind, value.hex()
    if isinstance(value, tuple) and len(value) <= _LONG:
        return (kind, *map(exact, value))
    names = _parts(kind)
    if names is not None:
        return (kind, *[exact(getattr(value, name)) for name in names])
    if isinstance(value, Enum):
        return kind, value.name
    if kind is dt.datetime and value.tzinfo is None:
        return kind, value, value.fold
    raise TypeError("a value that is not compared")


@cache
def _parts(kind: Any) -> tuple[str, ...] | None:
    """The fields of a frozen dataclass of dpframe that is compared by its fields; None for another type."""
    own = is_dataclass(kind) and kind.__module__.startswith("dpframe.")
    if not own or not kind.__dataclass_params__.frozen or not kind.__dataclass_params__.eq:  # a step is no value
        return None
    return tuple(part.name for part in fields(kind))
