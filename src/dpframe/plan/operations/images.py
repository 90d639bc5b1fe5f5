"""The values that each row operation can give: see `dpframe.plan.columns.Possible`.

Bounds of a result are held beside it, so only what they do not say is here. An operation without a
rule may give any value of its type. Each rule may be too wide, and never too narrow: a value that
it refuses is the result of no row.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.plan.columns import ColumnDomain, Possible
from dpframe.plan.operations.elementary import rounded
from dpframe.plan.operations.images_of_texts import (
    as_text,
    cased,
    extracted,
    head,
    joined,
    padded,
    piece_of,
    replaced,
    split,
    stripped,
)
from dpframe.plan.operations.images_of_times import (
    day,
    edge_of_month,
    later,
    named,
    offset,
    relabelled,
    rezoned,
    shown_in_utc,
    truncated,
    years,
)
from dpframe.plan.operations.rules import Applied, Image
from dpframe.plan.operations.windows import is_local
from dpframe.plan.scalars import as_held
from dpframe.plan.types import TIMES, Kind, integer_range, kind
from dpframe.usage import is_integer

_EXACT = 2**50  # whole numbers below this in size are exact in floats, also after a rounded product
_SINGLE = 2**24  # the same of floats of 32 bits


def imaged(operation: str, asked: Applied, result: ColumnDomain) -> ColumnDomain:
    """The domain of an operation's result, with the values that it can have,
    and what clipped its arguments.

    Input:  result: the domain that its rule gives
    """
    rule = _IMAGES.get(operation)
    possible = None if rule is None else rule(asked, result)
    clipped = next((arg.clipped for arg in asked.args if arg.clipped), "")
    result = replace(result, clipped=clipped) if clipped else result
    return result if possible is None else replace(result, possible=possible)


# Numbers


def _is_whole(value: Any) -> bool:
    return bool(value == value // 1)


def _whole(decimals: int = 0) -> Possible:
    if not decimals:
        return Possible(_is_whole, "whole numbers")
    return Possible(
        lambda key: abs(key) * 10.0**decimals >= _EXACT or rounded(float(key), decimals) == key,
        f"numbers of {decimals} decimals at most",
    )


def _held(domain: ColumnDomain, result: ColumnDomain) -> Possible | None:
    """Possible values once they are of the type of a result:
    a whole number as a float, or a value as it is.
    """
    possible = domain.possible
    if kind(result.dtype) != Kind.FLOAT or kind(domain.dtype) not in (Kind.INTEGER, Kind.BOOLEAN):
        return possible
    most = _SINGLE if result.dtype == nw.Float32 else _EXACT
    if possible is None:
        return _whole()
    if possible.values is not None and all(abs(value) < most for value in possible.values):
        return Possible.listed(map(float, possible.values))
    holds = possible.holds
    return Possible(
        lambda key: _is_whole(key) and (abs(key) >= most or holds(int(key))), possible.give
    )


def _constant(domain: ColumnDomain) -> int | None:
    """The one whole number that an expression stands for."""
    values = domain.values
    value = next(iter(values)) if values is not None and len(values) == 1 else None
    return value if is_integer(value) else None


def _one_constant(args: Sequence[ColumnDomain]) -> tuple[ColumnDomain, int] | None:
    """Of two arguments the one that varies, and the other, a whole number.
    Input: arguments of which order is free.
    """
    for varies, other in (args, args[::-1]):
        if (by := _constant(other)) is not None:
            return varies, by
    return None


def _add(asked: Applied, result: ColumnDomain) -> Possible | None:
    if kind(result.dtype) == Kind.STRING:
        return joined(asked, result)
    if kind(result.dtype) in TIMES:
        time, by = asked.args if kind(asked.dtype) == kind(result.dtype) else asked.args[::-1]
        return later(time, by, 1)
    pair = _one_constant(asked.args) if kind(result.dtype) == Kind.INTEGER else None
    possible = None if pair is None else pair[0].possible
    return None if pair is None or possible is None else _raised(possible, pair[1])


def _subtract(asked: Applied, result: ColumnDomain) -> Possible | None:
    if kind(result.dtype) in TIMES:
        return (
            later(asked.on, asked.args[1], -1)
            if kind(asked.dtype) == kind(result.dtype) != Kind.DURATION
            else None
        )
    by = _constant(asked.args[1]) if kind(result.dtype) == Kind.INTEGER else None
    possible = asked.on.possible
    return None if by is None or possible is None else _raised(possible, -by)


def _raised(possible: Possible, by: int) -> Possible:
    return possible.seen(lambda key: key - by, f"sums of {by} and {possible.give}")


def _multiply(asked: Applied, result: ColumnDomain) -> Possible | None:
    pair = _one_constant(asked.args) if kind(result.dtype) == Kind.INTEGER else None
    if pair is None:
        return None
    varies, by = pair
    if by == 0:
        return Possible.listed([0])
    holds = (varies.possible or _whole()).holds
    return Possible(
        lambda key: key % by == 0 and holds(key // by),
        f"multiples of {abs(by)}, such as {3 * abs(by)}",
    )


def _negative(asked: Applied, result: ColumnDomain) -> Possible | None:
    possible = _held(asked.on, result)
    return possible and possible.seen(lambda key: -key, f"the negative of {possible.give}")


def _within(asked: Applied, result: ColumnDomain) -> Possible | None:
    """Parts of dates and times, within their bounds."""
    bounds = result.bounds
    if bounds is None:
        return None
    lower, upper = bounds
    return Possible(lambda key: lower <= key <= upper, f"numbers from {lower} to {upper}")


def _not_below(least: int) -> Image:
    def rule(asked: Applied, result: ColumnDomain) -> Possible:
        return at_least(least)

    return rule


def at_least(least: int) -> Possible:
    """Numbers from a least one on."""
    return Possible(lambda key: key >= least, f"numbers from {least} on")


def _remainder(asked: Applied, result: ColumnDomain) -> Possible:
    by = asked["by"]
    return Possible(lambda key: 0 <= key < by, f"numbers from 0 to {by - 1}")


def _power(asked: Applied, result: ColumnDomain) -> Possible | None:
    return at_least(0) if asked["exponent"] % 2 == 0 else None


def _rounded(asked: Applied, result: ColumnDomain) -> Possible | None:
    return (
        asked.on.possible
        if kind(result.dtype) == Kind.INTEGER
        else _whole(asked.options.get("decimals", 0))
    )


def _sign(asked: Applied, result: ColumnDomain) -> Possible:
    return Possible.listed([-1, 0, 1])


# Any type


def _case(asked: Applied, result: ColumnDomain) -> Possible | None:
    branches = [_held(branch, result) for branch in (*asked.args[1::2], asked.args[-1])]
    known = [branch for branch in branches if branch is not None]
    return known[0].either(*known[1:]) if len(known) == len(branches) else None


def _filled(asked: Applied, result: ColumnDomain) -> Possible | None:
    possible = _held(asked.on, result)
    return possible and possible.either(_typed([asked["value"]], result.dtype))


def _typed(values: Sequence[Any], dtype: DType) -> Possible:
    """Values as a column of a type holds them."""
    return Possible.listed(
        float(x) if kind(dtype) == Kind.FLOAT else as_held(x, dtype) for x in values
    )


def _clipped(asked: Applied, result: ColumnDomain) -> Possible | None:
    possible, ends = _held(asked.on, result), [asked["lower"], asked["upper"]]
    if possible is None:
        return None
    if kind(result.dtype) == Kind.INTEGER:
        first, last = integer_range(result.dtype)
        up, down = (
            end if end is None else to(end)
            for to, end in zip((math.ceil, math.floor), ends, strict=True)
        )
        ends = [end if end is None else min(max(end, first), last) for end in (up, down)]
    return possible.either(_typed([end for end in ends if end is not None], result.dtype))


def _cast(asked: Applied, result: ColumnDomain) -> Possible | None:
    (value,), have, want = asked.args, kind(asked.dtype), kind(result.dtype)
    if want == Kind.STRING:
        if isinstance(value.dtype, nw.Enum) and value.possible is None:
            return Possible.listed(value.dtype.categories)
        return value.possible if have == Kind.STRING else as_text(value)
    if want == Kind.FLOAT:
        single = have == Kind.FLOAT and result.dtype == nw.Float32
        return None if single or have == Kind.STRING else _held(value, result)
    if have == want == Kind.INTEGER:
        return value.possible
    if want == Kind.DATE and have in (Kind.DATE, Kind.DATETIME):
        return None if is_local(value.dtype) else day(asked, result)
    if want == Kind.DATETIME and have == Kind.DATE:
        own = value.possible
        return Possible(
            lambda key: (
                shown_in_utc(key).time() == dt.time()
                and (own is None or own.holds(shown_in_utc(key).date()))
            ),
            "midnights" if own is None else own.give,
            None,
            not is_local(result.dtype),
        )
    return rezoned(asked, result) if have == want == Kind.DATETIME else None


_IMAGES: Mapping[str, Image] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "modulo": _remainder,
    "negative": _negative,
    **dict.fromkeys(("abs", "sqrt", "exp", "str.len_chars", "str.count_matches"), _not_below(0)),
    "power": _power,
    **dict.fromkeys(("floor", "ceil", "round"), _rounded),
    "sign": _sign,
    "case": _case,
    "fill_null": _filled,
    "clip": _clipped,
    "cast": _cast,
    "str.to_lowercase": cased(capital=False),
    "str.to_uppercase": cased(capital=True),
    "str.head": head,
    "str.slice": piece_of,
    "str.replace": replaced,
    "str.split": split,
    "str.strip_chars": stripped,
    "str.zfill": padded,
    "str.extract": extracted,
    "str.to_datetime": named,
    "concat_str": joined,
    "dt.year": years,
    **{
        f"dt.{part}": _within
        for part in ("month", "day", "quarter", "week", "weekday", "ordinal_day")
    },
    **{f"dt.{part}": _within for part in ("hour", "minute", "second")},
    "dt.date": day,
    "dt.truncate": truncated,
    "dt.month_start": edge_of_month(last=False),
    "dt.month_end": edge_of_month(last=True),
    "dt.offset_by": offset,
    "dt.convert_time_zone": rezoned,
    "dt.replace_time_zone": relabelled,
}
