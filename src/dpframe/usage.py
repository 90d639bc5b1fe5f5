"""The doors of the library: a wrong call or an unknown name is answered with the
line to type, and errors end here.

A traceback shows the caller's own line, not what happened inside. `DPFRAME_TRACEBACK=full` in the
environment keeps it.
"""

from __future__ import annotations

import inspect
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial, wraps
from types import FunctionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    NamedTuple,
    NoReturn,
    TypeGuard,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
)

import numpy as np

from dpframe.errors import (
    DpFrameError,
    DpFrameWarning,
    InvalidArgument,
    UnknownAttribute,
    UnknownColumn,
    WrongCall,
)
from dpframe.fields import FieldDict, Fields
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
    "rename": "{'city': 'y'}",
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
DOORS = {
    "protect": "table, unit='user_id'",
    "__call__": "unit='user_id', budget=dp.Budget(epsilon=1.0)",
}

# what other libraries call a statistic, and what to type here: see `statistic`
ELSEWHERE: dict[str, str] = {}


def elsewhere(name: str) -> str:
    """The method that other libraries call so, after a space; an empty text if there is none."""
    return f" {ELSEWHERE[name].replace('dp.', '.', 1)}" if name in ELSEWHERE else ""


F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)


def explained(question: F, line: str = "dp.{}({})", typed: str | None = None) -> F:
    """Wrap a function, so that a call that does not fit its signature raises
    an error with the line to type.

    Input:  line: the line to type, with {} for the function's name and for its arguments; typed:
            these arguments, by default the example listed above for the function's name
    Errors: WrongCall

    >>> def n_unique(column): ...
    >>> explained(n_unique)()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    dpframe.errors.WrongCall: n_unique: missing a required argument: 'column'. Type ...
    """
    question = getattr(question, "__wrapped__", question)  # without its own door
    if (signature := _spelled_out(question)) != inspect.signature(question):
        question.__signature__ = signature  # type: ignore[union-attr]
    verb = question.__name__
    prefix = line.partition("(")[0]
    subject = verb if "{}" in prefix and not verb.startswith("__") else prefix

    def advice() -> str:
        arguments = {**ARGUMENTS, **STEPS, **PRICED, **DOORS}[verb] if typed is None else typed
        return f"Type {line.format(verb, arguments).replace('(, ', '(')}."

    return _door(question, subject, advice)


def door(question: F) -> F:
    """Make a public function a door: see `_door`."""
    return _door(question, f"dp.{question.__name__}")


def _door(question: F, subject: str, advice: Callable[[], str] | None = None) -> F:
    """A function whose errors end here: what was raised within is not shown, and a call
    that does not fit is explained.

    Input:  question: a function without a door; subject: how the function is called in a message;
            advice: what to type, by default the names of its arguments
    """
    spelled_out: inspect.Signature | None = getattr(question, "__signature__", None)

    @wraps(question)
    def checked(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            if spelled_out is not None:  # Python itself would take any name for its `**`
                spelled_out.bind(*args, **kwargs)
            return question(*args, **kwargs)
        except (DpFrameError, TypeError) as error:  # a correct call takes no extra time
            wrong = _misfit(question, args, kwargs) if isinstance(error, TypeError) else None
            refusal, cause = error, error.__cause__
            if wrong is not None:
                of = (
                    getattr(args[0], "__name__", type(args[0]).__name__)
                    if subject.startswith(".") and args
                    else ""
                )
                called = f"{of}{subject}"
                refusal, cause = (
                    WrongCall(f"{called}: {wrong} {advice() if advice else _takes(question)}"),
                    None,
                )
            if not isinstance(refusal, DpFrameError):
                raise
            if question.__name__ != "__init__":  # whose object is not whole yet
                _in_own_columns(refusal, args, kwargs)
            if os.environ.get("DPFRAME_TRACEBACK") == "full":
                raise refusal from cause
        # DPFRAME_TRACEBACK=full shows the way that led here
        raise refusal.with_traceback(None) from cause

    return cast(F, checked)


_BODIES: dict[Callable[..., Any], Callable[..., Any]] = {}


def declared(method: F) -> F:
    """A method of which this room has the signature and the words, and a
    higher one the body: see `body_of`.
    """
    signature = inspect.signature(method)

    @wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        return _BODIES[method](*given.args, **given.kwargs)

    return cast(F, _door(called, f".{method.__name__}"))


def body_of(method: Callable[..., Any]) -> Callable[[F], F]:
    """A decorator: this function is the body of a declared method.
    It gets each argument, also what nobody typed.
    """

    def brought(body: F) -> F:
        _BODIES[inspect.unwrap(method)] = body
        return body

    return brought


def statistic(typed: str, elsewhere: str = "") -> Callable[[F], F]:
    """A statistic that people type, as `dp.NAME` and as a method:
    a call that does not fit names the line to write.

    Input:  typed: the arguments of that line; elsewhere: what other libraries call it, with spaces
            between
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
    """The signature of a function, with the names of a TypedDict in
    place of `**limits: Unpack[...]`.
    """
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


def _misfit(question: Callable[..., Any], args: tuple[Any, ...], kwargs: FieldDict) -> str | None:
    """Why arguments do not fit a function, with the nearest name, as
    sentences; None where they fit.
    """
    signature = inspect.signature(question)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        unknown = next((name for name in kwargs if f"argument {name!r}" in str(error)), "")
        unknown = unknown or next(
            (name for name in kwargs if name in _ABROAD and name not in signature.parameters), ""
        )
        # one may be given twice
        others = [name for name in signature.parameters if name != unknown]
        return f"{error}.{_ABROAD.get(unknown) or nearest(unknown, others)}"
    return None


def _takes(question: Callable[..., Any]) -> str:
    """The arguments of a method in words."""
    names = [name for name in inspect.signature(question).parameters if name not in ("self", "cls")]
    return f"It takes {', '.join(names)}." if names else "It takes nothing."


def explains(line: str, verbs: Mapping[str, str] = ARGUMENTS) -> Callable[[C], C]:
    """A decorator that applies `explained` to the methods of a class that `verbs`
    lists, with example arguments.
    """

    def changed(kind: C) -> C:
        for verb in filter(partial(hasattr, kind), verbs):
            verb_line = line.replace(", max_rows=5", "") if verb == "count_units" else line
            setattr(kind, verb, explained(getattr(kind, verb), verb_line, verbs[verb]))
        return kind

    return changed


_IN_A_FILE = (
    " A budget that outlives the process: dp.Ledger('study.sqlite').budget('visits', epsilon=1.0)."
)
_ABROAD = {  # arguments of other libraries, and of other calls
    **dict.fromkeys(("ledger", "path", "file", "filename", "database"), _IN_A_FILE),
    "unit_bounds": " Bounds of one unit's total are of a sum: dp.sum('wage', unit_bounds=(0, "
    "100)). Others take the bounds of each value.",
    "limits": " Limits that each release chooses are frame.bound(limits=dp.Auto()).",
    **dict.fromkeys(
        ("max_groups", "max_rows_per_group"),
        " Groups are limited where they are made, also beyond what the table declares: "
        "group_by('city', max_groups=3).",
    ),
    **dict.fromkeys(
        ("left_on", "right_on"),
        " Columns that are joined have one name in both tables: rename one before it is "
        "protected, table.rename({'no': 'id'}), in pandas table.rename(columns={'no': 'id'}); "
        "then join(other, on='id').",
    ),
    "offset": " Weeks that begin on a Sunday: (dp.col('x') + "
    "dp.duration(days=1)).dt.truncate('1w') - dp.duration(days=1).",
}
_ALIKE = 0.7  # of 1; with 0.6, "melt" would be taken for "select"


def nearest(name: str, names: Iterable[str]) -> str:
    """`" Did you mean 'wage'?"`, or an empty text if no name is similar.

    >>> nearest("wag", ["user", "wage"]), nearest("x", ["user", "wage"])
    (" Did you mean 'wage'?", '')
    """
    near = get_close_matches(name, list(names), n=1, cutoff=_ALIKE)
    return f" Did you mean {near[0]!r}?" if near else ""


class Examples(NamedTuple):
    """The material of examples in messages: columns of the table that
    was asked, and its declarations.

    `limits` are names of arguments; `bounds` and `keys` are columns that have them.
    """

    numbers: Sequence[str] = ()
    others: Sequence[str] = ()
    limits: Sequence[str] = ()
    bounds: Sequence[str] = ()
    keys: Sequence[str] = ()


class Hints:
    """A public class: its methods are doors, and an unknown attribute is
    answered with the line to type.

    The error is an AttributeError too. Names that begin with an underscore get Python's own error,
    since other libraries probe objects with them.
    """

    __slots__ = ()
    _habits: ClassVar[Mapping[str, str]] = {}
    _inner: ClassVar[frozenset[str]] = frozenset()  # names that other modules use, and nobody types

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in self._inner]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, value in list(vars(cls).items()):
            if name.startswith("_") and not (
                name.startswith("__") and isinstance(value, FunctionType)
            ):
                continue
            # of a class below, perhaps
            subject = cls.__name__ if name == "__init__" else f".{name}"
            if isinstance(value, FunctionType) and not hasattr(value, "__wrapped__"):
                setattr(cls, name, _door(value, subject))
            elif isinstance(value, classmethod | staticmethod):
                setattr(cls, name, type(value)(_door(value.__func__, subject)))
            elif type(value) is property and value.fget is not None:
                setattr(
                    cls,
                    name,
                    property(_door(value.fget, subject), value.fset, value.fdel, value.__doc__),
                )

    if not TYPE_CHECKING:  # a type checker knows which names exist

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            error = UnknownAttribute(f"{type(self).__name__} has no {name!r}.{self._advice(name)}")
            _in_own_columns(error, (self, name), {})
            raise error

    def _advice(self, name: str) -> str:
        """A line to type instead, after a space."""
        if name in self._habits:
            return f" {self._habits[name]}"
        return nearest(
            name, (attribute for attribute in dir(type(self)) if not attribute.startswith("_"))
        )

    def _examples(self) -> Examples:
        """The material of examples in messages; nothing where the table is not known."""
        return Examples()


class NoNumber:
    """A public class whose objects are neither numbers nor tables:
    an operator is answered with the line to type.
    """

    __slots__ = ()
    _instead: ClassVar[str] = "Type its methods."

    if not TYPE_CHECKING:  # a type checker refuses them by itself

        def __add__(self, *_: object) -> NoReturn:
            raise InvalidArgument(self._instead)

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = (
            __floordiv__
        ) = __add__
        __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __pow__ = __rpow__ = __neg__ = __pos__ = (
            __add__
        )
        __abs__ = __round__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = (
            __invert__
        ) = __add__
        __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = __setitem__ = __delitem__ = __len__ = (
            __add__
        )
        __matmul__ = __rmatmul__ = __add__

    def __bool__(self) -> bool:
        return True


_OF_NUMBERS = ("wage", "age", "hours", "spend", "weeks")
_OF_OTHERS = ("city", "region", "sex", "town")
_KEYS_OF_EXAMPLES = re.compile(r"\[\(?'(?:Bonn|Kiel|Ulm|north|south|f|m)'.*?\](?=[,)}])")


def _in_own_columns(error: DpFrameError, args: Sequence[Any], kwargs: Fields) -> None:
    """Give the examples in a message the columns of the table that was
    asked, where it has no such column.

    What the table declares is left out of them: typed, it would take the place of what is declared.
    """
    asked = next((x for x in args[:1] if isinstance(x, Hints)), None)
    if isinstance(error, UnknownColumn) or not isinstance(error.args[0], str):
        return
    typed, message = set(_texts([args if asked is None else args[1:], kwargs])), error.args[0]
    # of dp.mean("x"), columns
    first = [] if asked is not None else [x for x in args if isinstance(x, str)]
    examples = Examples(first, first) if asked is None else asked._examples()
    other: dict[str, str] = {}
    for words, own in ((_OF_NUMBERS, examples.numbers), (_OF_OTHERS, examples.others)):
        named = [
            name
            for name in words
            if f"'{name}'" in message and name not in own and name not in typed
        ]
        free = sorted(own, key=lambda name: (name not in typed, f"'{name}'" in message))
        other |= dict(zip(named, free, strict=False))
    if other:
        message = re.sub(r"'(\w+)'", lambda quoted: repr(other.get(quoted[1], quoted[1])), message)
        message = _KEYS_OF_EXAMPLES.sub("[...]", message)
    if isinstance(error, InvalidArgument | UnknownAttribute):
        declared = [rf"\b{name}=\d+" for name in examples.limits if name not in kwargs]
        for argument, columns in (("bounds", examples.bounds), ("keys", examples.keys)):
            pattern = {"bounds": r"\([^()]*\)", "keys": r"\[[^\]]*\]"}[argument]
            declared += [
                rf"(?<={re.escape(repr(x))}), {argument}={pattern}"
                for x in columns
                if argument not in kwargs
            ]
        for argument in declared:
            message = re.sub(rf"(, )?{argument}", "", message)
        message = message.replace("(, ", "(")
    error.args = (message, *error.args[1:])


def _texts(values: Any) -> Iterable[str]:
    """The texts among arguments, within lists and mappings too."""
    match values:
        case str():
            yield values
        case Mapping():
            yield from _texts([*values, *values.values()])
        case list() | tuple():
            for value in values:
                yield from _texts(value)


def is_integer(
    value: object, least: int | None = None, most: float | None = None
) -> TypeGuard[int]:
    """Whether a value is an int or an integer of numpy, no bool, and within these limits.

    >>> is_integer(np.int8(3), 1), is_integer(True, 1), is_integer(3.0, 1), is_integer(3, 1, 2)
    (True, False, False, False)
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        return False
    return bool((least is None or value >= least) and (most is None or value <= most))


def read_whole(value: object, least: int, most: float, sentence: str) -> int:
    """A whole number within these limits, as `is_integer` has them.
    Errors: InvalidArgument with this sentence.
    """
    # an array without axes is its number
    number = value[()] if isinstance(value, np.ndarray) else value
    if not is_integer(number, least, most):
        raise InvalidArgument(sentence)
    return int(number)


def is_list(values: object) -> TypeGuard[Iterable[Any]]:
    """Whether these are several values: no text, no dict and no table, which would
    be gone through by its columns.
    """
    several = isinstance(values, Iterable) and not hasattr(values, "columns")
    return several and not isinstance(values, str | bytes | Mapping)


def one_by_one(values: Iterable[object]) -> list[Any]:
    """The values, and those of lists and tuples among them."""
    return [x for value in values for x in (value if isinstance(value, list | tuple) else [value])]


def in_tuple(value: object) -> tuple[Any, ...]:
    """The value as a tuple: itself if it is one."""
    return value if isinstance(value, tuple) else (value,)


def check_flags(sentence: str, *flags: object) -> None:
    """Errors: InvalidArgument with this sentence where one of these is neither True nor False."""
    if not all(isinstance(flag, bool) for flag in flags):
        raise InvalidArgument(sentence)


def warn(words: str, category: type[DpFrameWarning] = DpFrameWarning) -> None:
    """Issue a `DpFrameWarning` at the line that called dpframe;
    Python shows it once for each such line.
    """
    level, frame = 1, inspect.currentframe()
    while (
        frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__
    ):
        level, frame = level + 1, frame.f_back
    warnings.warn(visible(words, keep="\n"), category, stacklevel=level)
