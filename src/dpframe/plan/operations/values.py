"""Comparisons, logic, missing values, casts and choices: the domain of each result."""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, WrongType
from dpframe.plan.columns import Bounds, ColumnDomain
from dpframe.plan.operations.rules import NUMBERS, Applied, Operation, as_floats, finite, need
from dpframe.plan.scalars import (
    GIVE,
    Scalar,
    as_held,
    check_no_times,
    check_scalar,
    check_years,
    moment,
    number,
    ticks,
)
from dpframe.plan.types import (
    TIMES,
    Kind,
    Null,
    cast_to,
    check_cast,
    integer_range,
    is_wide,
    kind,
    show,
    zone_of,
)


def _compare(asked: Applied) -> ColumnDomain:
    first, second = (a.kind for a in asked.args)
    alike = first == second or any({first, second} <= set(family) for family in (NUMBERS, MOMENTS))
    if Kind.OTHER in (first, second) or not alike:
        texts = any(kind(a.dtype) is Kind.STRING and a.values is None for a in asked.args)
        raise WrongType(
            f"{asked.call}: cannot compare "
            f"{asked.types}.{_comparison({first, second}, texts=texts)}"
        )
    if any(a.dtype == nw.UInt128 for a in asked.args) and any(map(_signed, asked.args)):
        raise WrongType(
            f"{asked.call}: {asked.types} have no common type. Cast one first, as in "
            "dp.col('x').cast('float64')."
        )
    if len({zone_of(a.dtype) is None for a in asked.args}) > 1:
        if Kind.DATE in (first, second):
            raise WrongType(
                f"{asked.call}: a date does not compare with a time that has a zone. Compare the "
                "day in that zone: dp.col('x').dt.date() >= datetime.date(2026, 1, 31)."
            )
        raise WrongType(
            f"{asked.call}: a time with a zone does not compare with one that has none; that of a "
            "time as typed is tzinfo=datetime.timezone.utc."
        )
    return ColumnDomain(nw.Boolean(), asked.nullable, Bounds(0, 1))


def _equal(asked: Applied) -> ColumnDomain:
    domain = _compare(asked)
    for x, other in (asked.args, asked.args[::-1]):
        values = other.values
        if values is not None and len(values) == 1:
            _check_reached(asked.call, x, list(values))
            _check_not_clipped(asked.call, x, list(values))
    return domain


def _ordered(holds: Callable[[Any, Any], bool], asked: Applied) -> ColumnDomain:
    """The domain of a comparison by order. Input: holds: whether it holds for two values."""
    domain = _compare(asked)
    first, second = asked.args
    for x, other, true in ((first, second, holds), (second, first, lambda a, b: holds(b, a))):
        if other.values is not None and len(other.values) == 1:
            _check_not_clipped(asked.call, x, list(other.values), true)
    return domain


def _check_not_clipped(
    call: str,
    column: ColumnDomain,
    values: Sequence[Any],
    holds: Callable[[Any, Any], bool] | None = None,
) -> None:
    """Refuse a comparison whose answer is the same in every row because
    something else clipped the column.

    A policy file moves 35 to the end of [0, 20] before any expression reads it. Then `v >= 30` is
    false and `v < 30` true, whatever the table holds. Values beyond the end are compared as the end
    is.

    Input:  holds: whether a value stands in the relation to a typed one; None for equality
    Errors: InvalidArgument
    """
    if not column.clipped or column.bounds is None or column.values is not None:
        return
    least, most = column.bounds
    typed = [ticks(x, column.dtype, call) if kind(column.dtype) in TIMES else x for x in values]
    outside = all(not least <= x <= most for x in typed)
    answers = {False} if holds is None else {holds(end, x) for end in (least, most) for x in typed}
    if len(answers) == 2 or (True in answers and not outside) or (holds is None and not outside):
        return
    low, high = (
        number(moment(x, column.dtype) if kind(column.dtype) in TIMES else x) for x in column.bounds
    )
    raise InvalidArgument(
        f"{call}: {column.clipped} moved values beyond [{low}, {high}] to the nearer end, so the "
        "answer would be the same for every row. Compare with a value between the ends."
    )


def _check_reached(call: str, column: ColumnDomain, values: Sequence[Any]) -> None:
    """Refuse a comparison for equality that is false in every row:
    with values that no row can have.

    Constants are compared with each other as they are. Errors: InvalidArgument
    """
    if kind(column.dtype) == Kind.DATE and all(
        isinstance(as_held(x, column.dtype), dt.datetime) for x in values
    ):
        raise InvalidArgument(
            f"{call}: no day has a time. Compare with days, such as datetime.date(2026, 1, 31)."
        )
    possible, few = column.possible, column.values
    if (
        possible is None
        or (few is not None and len(few) <= 1)
        or any(possible.holds(as_held(value, column.dtype)) for value in values)
    ):
        return
    raise InvalidArgument(
        f"{call}: no row has {'this value' if len(values) == 1 else 'these values'}. Compare with "
        f"{possible.give}."
    )


MOMENTS = (Kind.DATE, Kind.DATETIME)  # a date compares with a time as its midnight


def _signed(column: ColumnDomain) -> bool:
    """Whether integers have a sign.
    A constant from 0 on, whose bounds are one number, needs none.
    """
    constant = column.bounds is not None and 0 <= column.bounds.lower == column.bounds.upper
    return column.dtype.is_signed_integer() and not constant


def _comparison(families: set[str], *, texts: bool) -> str:
    """A line to type that compares values of two families, to end a message;
    `texts`: whether a column has texts.
    """
    if Kind.STRING in families and families & set(NUMBERS):
        return " Cast one before, as in dp.col('x').cast('float64')."
    kinds = sorted(families & {*TIMES, "boolean"})
    if not kinds or Kind.OTHER in families:
        return ""
    if texts and Kind.STRING in families:
        return f" The column holds texts: cast them before, dp.col('x').cast({kinds[0]!r})."
    cast = (
        f", or cast the texts before: dp.col('x').cast({kinds[0]!r})"
        if families < {Kind.DATE, Kind.DATETIME, Kind.STRING}
        else ""
    )
    return f" Compare with {' or '.join(GIVE[family] for family in kinds)}{cast}."


def _logic(asked: Applied) -> ColumnDomain:
    for a in asked.args:
        if a.kind != Kind.BOOLEAN:
            raise _not_boolean(asked.call, a.dtype, alone=len(asked.args) == 1)
    return ColumnDomain(nw.Boolean(), asked.nullable, Bounds(0, 1))


def _not_boolean(call: str, dtype: DType, *, alone: bool) -> WrongType:
    """The error for an argument that is not true or false.
    In Python, & | ~ bind closer than == and > do.
    """
    typed = "~(dp.col('age') >= 18)" if alone else "(dp.col('age') >= 18) & (dp.col('age') < 65)"
    cast = " Whole numbers that stand for true and false: dp.col('x').cast('boolean')."
    return WrongType(
        f"{call}: needs boolean, not a column of type {show(dtype)}. Put each condition into "
        f"brackets, as in {typed}.{cast if kind(dtype) == Kind.INTEGER else ''}"
    )


def _is_null(asked: Applied) -> ColumnDomain:
    return ColumnDomain(nw.Boolean(), False, Bounds(0, 1))


def _is_in(asked: Applied) -> ColumnDomain:
    for value in asked["values"]:
        if check_scalar(value, asked.dtype, asked.call) is None:
            raise WrongType(f"{asked.call}: null is not a value; ask is_null() beside it.")
        if isinstance(time := as_held(value, asked.dtype), dt.datetime):
            check_years(time, asked.call)
    if asked["values"]:
        _check_reached(asked.call, asked.on, asked["values"])
        _check_not_clipped(asked.call, asked.on, asked["values"])
    return ColumnDomain(nw.Boolean(), asked.nullable, Bounds(0, 1))


def clip_domain(
    call: str, domain: ColumnDomain, lower: Any, upper: Any, origin: str = ""
) -> ColumnDomain:
    """The domain after clip: missing stays missing, other values lie in
    [lower, upper]; one end may be open.

    The bounds of a time are held in its ticks.
    """
    if domain.kind in TIMES:
        low, high = (None if x is None else ticks(x, domain.dtype, call) for x in (lower, upper))
        inside, old = Bounds.open(low, high), domain.bounds or Bounds.open(None, None)
        bounds = finite(inside.clamp(old.lower), inside.clamp(old.upper))
        return ColumnDomain(domain.dtype, domain.nullable, bounds, origin=origin)
    if domain.kind == Kind.BOOLEAN:
        raise WrongType(
            f"{call}: true and false lie between 0 and 1 as they are; leave it out, or "
            ".cast('int64') before."
        )
    need(call, domain, *NUMBERS)
    check_no_times((lower, upper), domain.dtype, call)
    dtype = domain.dtype if domain.kind == Kind.INTEGER else nw.Float64()
    if kind(dtype) == Kind.INTEGER:  # the whole numbers in the interval, and in the type
        first, last = integer_range(dtype)
        lower = None if lower is None else min(max(math.ceil(lower), first), last)
        upper = None if upper is None else min(max(math.floor(upper), first), last)
        if lower is not None and upper is not None and lower > upper:
            raise WrongType(
                f"{call}: there is no whole number between the two limits, and the column holds "
                "integers. Give whole ones, such as (0, 1), or make the column float64 before."
            )
    else:
        lower, upper = (
            None if lower is None else float(lower),
            None if upper is None else float(upper),
        )
    old = (
        domain.bounds if kind(dtype) == Kind.INTEGER else as_floats(domain.bounds)
    ) or Bounds.open(None, None)
    limit = Bounds.open(lower, upper)
    bounds = finite(limit.clamp(old.lower), limit.clamp(old.upper))
    return ColumnDomain(dtype, domain.nullable, bounds, origin=origin)


def _clip(asked: Applied) -> ColumnDomain:
    return clip_domain(asked.call, asked.on, asked["lower"], asked["upper"])


def fill_domain(call: str, domain: ColumnDomain, value: object, origin: str = "") -> ColumnDomain:
    """The domain after missing values are replaced by a constant.
    No value is missing; bounds cover the constant.
    """
    value = check_scalar(value, domain.dtype, call)
    if value is None:
        raise WrongType(f"{call}: fill with a value, not with null.")
    dtype = domain.dtype
    if kind(dtype) == Kind.INTEGER:
        first, last = integer_range(dtype)
        if not isinstance(value, int) or not first <= value <= last:
            raise WrongType(
                f"{call}: the value is not a whole number of type {show(dtype)}. Give one from "
                f"{first} to {last}, or cast the column before, as in dp.col('x').cast('float64')."
            )
    if kind(dtype).real:
        dtype, value = nw.Float64(), float(value)  # type: ignore[arg-type]
    number = ticks(value, dtype, call) if kind(dtype) in TIMES else value
    bounds = domain.bounds and (
        domain.bounds.cover(number) if isinstance(number, (int, float)) else domain.bounds
    )
    keys = domain.keys if domain.keys is None or value in domain.keys else (*domain.keys, value)
    if dtype == nw.Enum:
        dtype = nw.Enum([str(key) for key in keys or ()])
    return ColumnDomain(dtype, False, bounds, keys, origin or domain.origin)


def _fill_null(asked: Applied) -> ColumnDomain:
    return fill_domain(asked.call, asked.on, asked["value"])


def cast_domain(
    call: str, domain: ColumnDomain, target: nw.dtypes.DType, origin: str = ""
) -> ColumnDomain:
    """The domain after a conversion. A value that does not convert is null."""
    check_cast(domain.dtype, target, call)
    keys: tuple[Scalar | None, ...] | None = (
        tuple(target.categories) if isinstance(target, nw.Enum) else None
    )
    have, want = domain.kind, kind(target)
    bounds, nullable = None, True
    if have in (*NUMBERS, Kind.BOOLEAN) and want in NUMBERS and domain.bounds:
        lower, upper = (
            domain.bounds
            if have in (Kind.INTEGER, Kind.BOOLEAN)
            else as_floats(domain.bounds) or domain.bounds
        )
        if want == Kind.INTEGER:
            first, last = integer_range(target)
            whole = Bounds(math.trunc(lower), math.trunc(upper))
            bounds = Bounds(min(max(whole.lower, first), last), min(max(whole.upper, first), last))
            nullable = domain.nullable or bounds != whole
        elif target == nw.Float64:  # Float32 rounds, perhaps out of the old bounds
            bounds, nullable = finite(float(lower), float(upper)), domain.nullable
    if want == Kind.BOOLEAN:
        bounds, nullable = Bounds(0, 1), domain.nullable
    if want == Kind.STRING and keys is None:
        target, keys, nullable = (
            nw.String(),
            domain.keys if have == Kind.STRING else None,
            domain.nullable,
        )
    return ColumnDomain(target, nullable, bounds, keys, origin)


def _cast(asked: Applied) -> ColumnDomain:
    return cast_domain(asked.call, asked.on, asked["dtype"])


def _case(asked: Applied) -> ColumnDomain:
    values = (*asked.args[1::2], asked.args[-1])
    for condition in asked.args[:-1:2]:
        need(asked.call, condition, "boolean")
    branches = [f for f in values if not isinstance(f.dtype, Null)]
    if not branches:
        raise WrongType(f"{asked.call}: one of the branches must have a type.")
    for f in branches:
        need(asked.call, f, *GIVE)
    kinds = {f.kind for f in branches}
    numbers = kinds <= set(NUMBERS)
    times = {str(f.dtype) for f in branches if f.kind in (Kind.DATETIME, Kind.DURATION)}
    if (len(kinds) > 1 and not numbers) or len(times) > 1:
        types = " and ".join(dict.fromkeys(show(f.dtype) for f in branches))
        typed = cast_to(branches[-1].dtype, branches[0].kind)
        raise WrongType(f"{asked.call}: the branches have different types, {types}.{typed}")
    whole = kinds == {Kind.INTEGER}
    limits = [f.bounds if whole or not numbers else as_floats(f.bounds) for f in branches]
    corners = [edge for limit in limits if limit for edge in limit]
    bounds = Bounds(min(corners), max(corners)) if all(limits) else None
    dtype = nw.Int64() if whole else nw.Float64() if numbers else branches[0].dtype
    dtype = nw.String() if kind(dtype) == Kind.STRING else dtype
    wide = whole and any(is_wide(f.dtype) for f in branches)
    return ColumnDomain(
        dtype, len(branches) < len(values) or wide or any(f.nullable for f in branches), bounds
    )


OF_VALUES: Mapping[str, Operation] = {
    "equal": Operation("({0} == {1})", _equal),
    "not_equal": Operation("({0} != {1})", _equal),
    "less": Operation("({0} < {1})", partial(_ordered, operator.lt)),
    "less_equal": Operation("({0} <= {1})", partial(_ordered, operator.le)),
    "greater": Operation("({0} > {1})", partial(_ordered, operator.gt)),
    "greater_equal": Operation("({0} >= {1})", partial(_ordered, operator.ge)),
    "and": Operation("({0} & {1})", _logic),
    "or": Operation("({0} | {1})", _logic),
    "xor": Operation("({0} ^ {1})", _logic),
    "not": Operation("(~{0})", _logic),
    "is_null": Operation("{0}.is_null()", _is_null),
    "is_in": Operation("{0}.is_in({values})", _is_in),
    "fill_null": Operation("{0}.fill_null({value!r})", _fill_null),
    "clip": Operation("{0}.clip({lower}, {upper})", _clip),
    "cast": Operation("{0}.cast({dtype})", _cast),
    "case": Operation(
        "when({0}).then({1}){more}.otherwise({last})", _case, more=".when({0}).then({1})"
    ),
}
