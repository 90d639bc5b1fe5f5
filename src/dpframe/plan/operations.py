"""The row operations, and the domain of each one's result.

Each operation reads a single row, so a row stays with its unit. Each operation is total: a result that does not exist
(overflow, division by zero, a text that is no number) is null, on every engine. So no cell makes an operation fail, and
no failure reveals a row. Missing means null or NaN; both are null once a column is read.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from dpframe.errors import WrongType
from dpframe.plan.columns import Bounds, ColumnDomain
from dpframe.plan.types import (
    GIVE,
    TIMES,
    Kind,
    Null,
    Scalar,
    cast_first,
    cast_to,
    check_cast,
    check_scalar,
    integer_range,
    kind,
    show,
    ticks,
)

__all__ = ["OPERATIONS", "Operation", "cast_domain", "clip_domain", "fill_domain", "overflows"]

Options = Mapping[str, Any]
Rule = Callable[[str, Sequence[ColumnDomain], Options], ColumnDomain]

_NUMBERS = ("integer", "float", "decimal")
_SAFE = 2.0**62  # integers below this in absolute value stay inside int64, even where bounds are rounded floats


@dataclass(frozen=True)
class Operation:
    """How an operation is written, and the rule that gives the domain of its result or refuses its arguments."""

    text: str  # a format string over the arguments' texts ({0}, {1}) and the options
    rule: Rule


def _nullable(args: Sequence[ColumnDomain]) -> bool:
    return any(a.nullable for a in args)


def _need(call: str, domain: ColumnDomain, *kinds: str) -> None:
    if kind(domain.dtype) not in kinds:
        number = cast_first(domain.dtype) if Kind.FLOAT in kinds else ""
        typed = number or cast_to(domain.dtype, *kinds)
        raise WrongType(f"{call}: needs {' or '.join(kinds)}, not a column of type {show(domain.dtype)}.{typed}")


def overflows(bounds: Bounds | None) -> bool:
    """Whether an integer result with these bounds could leave int64 (and then has to be checked row by row)."""
    return bounds is None or not bounds.magnitude < _SAFE


def _finite(lower: float, upper: float) -> Bounds | None:
    return Bounds(lower, upper) if math.isfinite(lower) and math.isfinite(upper) else None


def _as_floats(bounds: Bounds | None) -> Bounds | None:
    """Bounds of a value that was converted to float. The conversion rounds values, so the bounds are rounded too."""
    return bounds and Bounds(float(bounds.lower), float(bounds.upper))


def _corner_bounds(a: Bounds | None, b: Bounds | None, op: Callable[[Any, Any], Any]) -> Bounds | None:
    """Bounds of +, -, · and /. The extremes are at the corners; rounding is monotone, so they stay the extremes."""
    if a is None or b is None:
        return None
    try:
        corners = [op(x, y) for x in a for y in b]
    except OverflowError:
        return None
    return _finite(min(corners), max(corners))


def _arithmetic(op: Callable[[Any, Any], Any]) -> Rule:
    def rule(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
        for a in args:
            _need(call, a, *_NUMBERS)
        if all(kind(a.dtype) == Kind.INTEGER for a in args):
            bounds = _corner_bounds(args[0].bounds, args[1].bounds, op)
            wide = any(isinstance(a.dtype, (nw.UInt64, nw.Int128, nw.UInt128)) for a in args)
            return ColumnDomain(nw.Int64(), _nullable(args) or overflows(bounds) or wide, bounds)
        return ColumnDomain(
            nw.Float64(), True, _corner_bounds(_as_floats(args[0].bounds), _as_floats(args[1].bounds), op)
        )

    return rule


def _divide(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
    for a in args:
        _need(call, a, *_NUMBERS)
    top, bottom = (_as_floats(a.bounds) for a in args)
    if top and bottom and (bottom.lower > 0 or bottom.upper < 0):
        bounds = _corner_bounds(top, bottom, lambda x, y: x / y)
        return ColumnDomain(nw.Float64(), bounds is None or _nullable(args), bounds)
    return ColumnDomain(nw.Float64(), True)


def _by_constant(bounds_of: Callable[[Bounds, int], Bounds]) -> Rule:
    def rule(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
        _need(call, args[0], "integer")
        by = options["by"]
        if isinstance(by, bool) or not isinstance(by, int) or not 1 <= by < 2**62:
            raise WrongType(f"{call}: the divisor must be a whole number of at least 1, as in dp.col('x') // 10.")
        wide = isinstance(args[0].dtype, (nw.UInt64, nw.Int128, nw.UInt128))
        return ColumnDomain(nw.Int64(), args[0].nullable or wide, args[0].bounds and bounds_of(args[0].bounds, by))

    return rule


def _negative(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
    zero = ColumnDomain(nw.Int64() if kind(args[0].dtype) == Kind.INTEGER else nw.Float64(), False, Bounds(0, 0))
    return _arithmetic(lambda x, y: x - y)(call, [zero, args[0]], options)


def _absolute(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
    domain = _negative(call, args, options)
    bounds = args[0].bounds
    if bounds is None:
        return ColumnDomain(domain.dtype, domain.nullable)
    low = 0 if bounds.lower <= 0 <= bounds.upper else min(abs(bounds.lower), abs(bounds.upper))
    return ColumnDomain(domain.dtype, domain.nullable, Bounds(low, bounds.magnitude))


def _monotone(function: Callable[[Any], float]) -> Rule:
    def rule(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
        _need(call, args[0], *_NUMBERS)
        bounds = _as_floats(args[0].bounds)
        return ColumnDomain(
            nw.Float64(), args[0].nullable, bounds and Bounds(function(bounds.lower), function(bounds.upper))
        )

    return rule


def _root(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
    _need(call, args[0], *_NUMBERS)
    bounds = _as_floats(args[0].bounds)
    if bounds is None or bounds.lower < 0:
        return ColumnDomain(nw.Float64(), True)
    return ColumnDomain(nw.Float64(), args[0].nullable, Bounds(math.sqrt(bounds.lower), math.sqrt(bounds.upper)))


def _compare(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
    first, second = (kind(a.dtype) for a in args)
    if Kind.OTHER in (first, second) or not (first == second or (first in _NUMBERS and second in _NUMBERS)):
        types = " with ".join(show(a.dtype) for a in args)
        raise WrongType(f"{call}: cannot compare {types}.{_comparison({first, second})}")
    if len({getattr(a.dtype, "time_zone", None) is None for a in args}) > 1:
        raise WrongType(
            f"{call}: a time with a zone does not compare with one that has none; that of a time as typed is "
            "tzinfo=datetime.timezone.utc."
        )
    return ColumnDomain(nw.Boolean(), _nullable(args), Bounds(0, 1))


def _comparison(families: set[str]) -> str:
    """What to type to compare values of two families, as the end of a message."""
    if families == {Kind.DATE, Kind.DATETIME}:
        return " Cast one before, as in dp.col('x').cast('datetime')."
    if Kind.STRING in families and families & set(_NUMBERS):
        return " Cast one before, as in dp.col('x').cast('float64')."
    kinds = sorted(families & {*TIMES, "boolean"})
    if not kinds or Kind.OTHER in families:
        return ""
    cast = (
        f", or cast the texts before: dp.col('x').cast({kinds[0]!r})"
        if families < {Kind.DATE, Kind.DATETIME, Kind.STRING}
        else ""
    )
    return f" Compare with {' or '.join(GIVE[family] for family in kinds)}{cast}."


def _logic(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
    for a in args:
        _need(call, a, "boolean")
    return ColumnDomain(nw.Boolean(), _nullable(args), Bounds(0, 1))


def _is_null(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
    return ColumnDomain(nw.Boolean(), False, Bounds(0, 1))


def _is_in(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
    for value in options["values"]:
        if check_scalar(value, args[0].dtype, call) is None:
            raise WrongType(f"{call}: null is not a value; ask is_null() beside it.")
    return ColumnDomain(nw.Boolean(), args[0].nullable, Bounds(0, 1))


def clip_domain(call: str, domain: ColumnDomain, lower: Any, upper: Any, origin: str = "") -> ColumnDomain:
    """The domain after clip: missing stays missing, other values lie in [lower, upper]; one end may be open.

    The bounds of a time are held in its ticks.
    """
    if kind(domain.dtype) in TIMES:
        low, high = (None if x is None else ticks(x, domain.dtype, call) for x in (lower, upper))
        inside = Bounds(-math.inf if low is None else low, math.inf if high is None else high)
        old = domain.bounds or Bounds(-math.inf, math.inf)
        bounds = _finite(inside.clamp(old.lower), inside.clamp(old.upper))
        return ColumnDomain(domain.dtype, domain.nullable, bounds, origin=origin)
    if kind(domain.dtype) == Kind.BOOLEAN:
        raise WrongType(
            f"{call}: true and false lie between 0 and 1 as they are; leave it out, or .cast('int64') before."
        )
    _need(call, domain, *_NUMBERS)
    if any(isinstance(x, (dt.date, dt.timedelta)) for x in (lower, upper)):
        raise WrongType(f"{call}: a column of type {show(domain.dtype)} goes with numbers, not with times.")
    dtype = domain.dtype if kind(domain.dtype) == Kind.INTEGER else nw.Float64()
    if kind(dtype) == Kind.INTEGER:  # the whole numbers in the interval, and in the type
        first, last = integer_range(dtype)
        lower = None if lower is None else min(max(math.ceil(lower), first), last)
        upper = None if upper is None else min(max(math.floor(upper), first), last)
        if lower is not None and upper is not None and lower > upper:
            raise WrongType(f"{call}: there is no whole number between the two limits, and the column holds integers.")
    else:
        lower, upper = None if lower is None else float(lower), None if upper is None else float(upper)
    old = (domain.bounds if kind(dtype) == Kind.INTEGER else _as_floats(domain.bounds)) or Bounds(-math.inf, math.inf)
    limit = Bounds(-math.inf if lower is None else lower, math.inf if upper is None else upper)
    bounds = _finite(limit.clamp(old.lower), limit.clamp(old.upper))
    return ColumnDomain(dtype, domain.nullable, bounds, origin=origin)


def _clip(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
    return clip_domain(call, args[0], options["lower"], options["upper"])


def fill_domain(call: str, domain: ColumnDomain, value: object, origin: str = "") -> ColumnDomain:
    """The domain after missing values are replaced by a constant. No value is missing; bounds cover the constant."""
    value = check_scalar(value, domain.dtype, call)
    if value is None:
        raise WrongType(f"{call}: fill with a value, not with null.")
    dtype = domain.dtype
    if kind(dtype) == Kind.INTEGER:
        first, last = integer_range(dtype)
        if not isinstance(value, int) or not first <= value <= last:
            raise WrongType(
                f"{call}: the value is not a whole number of type {show(dtype)}. Give one from {first} to {last}, or "
                "cast the column before, as in dp.col('x').cast('float64')."
            )
    if kind(dtype) in (Kind.FLOAT, Kind.DECIMAL):
        dtype, value = nw.Float64(), float(value)  # type: ignore[arg-type]
    number = ticks(value, dtype, call) if kind(dtype) in TIMES else value
    bounds = domain.bounds and (domain.bounds.cover(number) if isinstance(number, (int, float)) else domain.bounds)
    keys = domain.keys if domain.keys is None or value in domain.keys else (*domain.keys, value)
    if isinstance(dtype, nw.Enum):
        dtype = nw.Enum([str(key) for key in keys or ()])
    return ColumnDomain(dtype, False, bounds, keys, origin or domain.origin)


def _fill_null(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
    return fill_domain(call, args[0], options["value"])


def cast_domain(call: str, domain: ColumnDomain, target: nw.dtypes.DType, origin: str = "") -> ColumnDomain:
    """The domain after a conversion. A value that does not convert is null."""
    check_cast(domain.dtype, target, call)
    keys: tuple[Scalar, ...] | None = tuple(target.categories) if isinstance(target, nw.Enum) else None
    have, want = kind(domain.dtype), kind(target)
    bounds, nullable = None, True
    if have in (*_NUMBERS, Kind.BOOLEAN) and want in _NUMBERS and domain.bounds:
        lower, upper = (
            domain.bounds if have in (Kind.INTEGER, Kind.BOOLEAN) else _as_floats(domain.bounds) or domain.bounds
        )
        if want == Kind.INTEGER:
            first, last = integer_range(target)
            whole = Bounds(math.trunc(lower), math.trunc(upper))
            bounds = Bounds(min(max(whole.lower, first), last), min(max(whole.upper, first), last))
            nullable = domain.nullable or bounds != whole
        elif isinstance(target, nw.Float64):  # Float32 rounds, perhaps out of the old bounds
            bounds, nullable = _finite(float(lower), float(upper)), domain.nullable
    if want == Kind.BOOLEAN:
        bounds, nullable = Bounds(0, 1), domain.nullable
    if want == Kind.STRING and keys is None:
        target, keys, nullable = nw.String(), domain.keys if have == Kind.STRING else None, domain.nullable
    return ColumnDomain(target, nullable, bounds, keys, origin)


def _cast(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
    return cast_domain(call, args[0], options["dtype"])


def _case(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
    condition, yes, no = args
    _need(call, condition, "boolean")
    nulls = [f for f in (yes, no) if isinstance(f.dtype, Null)]
    branches = [f for f in (yes, no) if not isinstance(f.dtype, Null)]
    if not branches:
        raise WrongType(f"{call}: one of the two branches must have a type.")
    for f in branches:
        _need(call, f, *GIVE)
    kinds = {kind(f.dtype) for f in branches}
    numbers = kinds <= set(_NUMBERS)
    times = {str(f.dtype) for f in branches if kind(f.dtype) in (Kind.DATETIME, Kind.DURATION)}
    if (len(kinds) > 1 and not numbers) or len(times) > 1:
        types = " and ".join(show(f.dtype) for f in branches)
        typed = cast_to(branches[-1].dtype, kind(branches[0].dtype))
        raise WrongType(f"{call}: the branches have different types, {types}.{typed}")
    whole = kinds == {Kind.INTEGER}
    limits = [f.bounds if whole or not numbers else _as_floats(f.bounds) for f in branches]
    corners = [edge for limit in limits if limit for edge in limit]
    bounds = Bounds(min(corners), max(corners)) if all(limits) else None
    dtype = nw.Int64() if whole else nw.Float64() if numbers else branches[0].dtype
    dtype = nw.String() if kind(dtype) == Kind.STRING else dtype
    wide = whole and any(isinstance(f.dtype, (nw.UInt64, nw.Int128, nw.UInt128)) for f in branches)
    return ColumnDomain(dtype, bool(nulls) or wide or _nullable(branches), bounds)


def _text(dtype: nw.dtypes.DType, bounds: Bounds | None = None) -> Rule:
    def rule(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
        _need(call, args[0], "string")
        return ColumnDomain(dtype, args[0].nullable, bounds)

    return rule


def _calendar(bounds: Bounds | None, *kinds: str) -> Rule:
    def rule(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
        _need(call, args[0], *kinds)
        return ColumnDomain(nw.Int64(), args[0].nullable, bounds)

    return rule


_DAYS, _TIMES = ("date", "datetime"), ("datetime",)
_TRUTH = Bounds(0, 1)

OPERATIONS: Mapping[str, Operation] = {
    "add": Operation("({0} + {1})", _arithmetic(lambda x, y: x + y)),
    "subtract": Operation("({0} - {1})", _arithmetic(lambda x, y: x - y)),
    "multiply": Operation("({0} * {1})", _arithmetic(lambda x, y: x * y)),
    "divide": Operation("({0} / {1})", _divide),
    "floor_divide": Operation("({0} // {by})", _by_constant(lambda b, by: Bounds(b.lower // by, b.upper // by))),
    "modulo": Operation("({0} % {by})", _by_constant(lambda b, by: Bounds(0, by - 1))),
    "negative": Operation("(-{0})", _negative),
    "abs": Operation("{0}.abs()", _absolute),
    "floor": Operation("{0}.floor()", _monotone(lambda x: float(math.floor(x)))),
    "ceil": Operation("{0}.ceil()", _monotone(lambda x: float(math.ceil(x)))),
    "sqrt": Operation("{0}.sqrt()", _root),
    "equal": Operation("({0} == {1})", _compare),
    "not_equal": Operation("({0} != {1})", _compare),
    "less": Operation("({0} < {1})", _compare),
    "less_equal": Operation("({0} <= {1})", _compare),
    "greater": Operation("({0} > {1})", _compare),
    "greater_equal": Operation("({0} >= {1})", _compare),
    "and": Operation("({0} & {1})", _logic),
    "or": Operation("({0} | {1})", _logic),
    "not": Operation("(~{0})", _logic),
    "is_null": Operation("{0}.is_null()", _is_null),
    "is_in": Operation("{0}.is_in({values})", _is_in),
    "fill_null": Operation("{0}.fill_null({value!r})", _fill_null),
    "clip": Operation("{0}.clip({lower}, {upper})", _clip),
    "cast": Operation("{0}.cast({dtype})", _cast),
    "case": Operation("when({0}).then({1}).otherwise({2})", _case),
    "str.to_lowercase": Operation("{0}.str.to_lowercase()", _text(nw.String())),
    "str.to_uppercase": Operation("{0}.str.to_uppercase()", _text(nw.String())),
    "str.len_chars": Operation("{0}.str.len_chars()", _text(nw.Int64())),
    "str.contains": Operation("{0}.str.contains({literal!r})", _text(nw.Boolean(), _TRUTH)),
    "str.starts_with": Operation("{0}.str.starts_with({literal!r})", _text(nw.Boolean(), _TRUTH)),
    "str.ends_with": Operation("{0}.str.ends_with({literal!r})", _text(nw.Boolean(), _TRUTH)),
    "str.head": Operation("{0}.str.head({n})", _text(nw.String())),
    "dt.year": Operation("{0}.dt.year()", _calendar(None, *_DAYS)),
    "dt.month": Operation("{0}.dt.month()", _calendar(Bounds(1, 12), *_DAYS)),
    "dt.day": Operation("{0}.dt.day()", _calendar(Bounds(1, 31), *_DAYS)),
    "dt.weekday": Operation("{0}.dt.weekday()", _calendar(Bounds(1, 7), *_DAYS)),
    "dt.ordinal_day": Operation("{0}.dt.ordinal_day()", _calendar(Bounds(1, 366), *_DAYS)),
    "dt.hour": Operation("{0}.dt.hour()", _calendar(Bounds(0, 23), *_TIMES)),
    "dt.minute": Operation("{0}.dt.minute()", _calendar(Bounds(0, 59), *_TIMES)),
}
