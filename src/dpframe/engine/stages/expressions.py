"""Row expressions in narwhals: each operation of `plan.operations`, as an
expression that no cell makes fail.

Where a result would overflow or not exist, the operand is made null first. So no engine evaluates
an operation that it could fail on. Inside the engine a number of type float is always Float64, and
is never NaN.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.engine.backends import Backend, Cased, Piece, Replaced, Stripped
from dpframe.engine.stages.coerced import beyond, in_calendar, int64, not_nan, to_float, typed
from dpframe.engine.stages.dates import CALENDAR
from dpframe.engine.stages.functions import FUNCTIONS
from dpframe.engine.stages.operands import Columns, Lower, Operands
from dpframe.errors import WrongType
from dpframe.fields import Fields
from dpframe.plan import (
    LONGEST_TEXT,
    TICKS,
    TIMES,
    ColumnDomain,
    Kind,
    Search,
    Task,
    clip_domain,
    integer_range,
    is_wide,
    kind,
    ticks,
    zone_of,
)

Binary = Callable[[nw.Expr, nw.Expr], nw.Expr]
_LAST_LETTER = 2**31 - 2  # the last place of a character that engines have a number for


# Of floats: NaN goes through these, and is made null after them. `Lowering` has those of whole
#            numbers.
SIGNS: Mapping[str, Binary] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
}


def _of_floats(op: Binary) -> Lower:
    return lambda _, on: op(*map(to_float, on.values))


def _divide(here: Columns, on: Operands) -> nw.Expr:
    top, bottom = map(to_float, on.values)
    return not_nan(here.engine.ratio(top, nw.when(bottom != 0).then(bottom)))


def _floor_divide(here: Columns, on: Operands) -> nw.Expr:
    return here.divided(on.whole, int(on.options["by"]))


def _modulo(here: Columns, on: Operands) -> nw.Expr:
    return here.engine.remainder(on.whole, int(on.options["by"]))


def _negative(_: Columns, on: Operands) -> nw.Expr:
    if on.kind != Kind.INTEGER:
        return to_float(on.value) * -1.0
    value = on.whole
    return nw.when(value > integer_range(nw.Int64())[0]).then(value) * -1


def _absolute(here: Columns, on: Operands) -> nw.Expr:
    positive = to_float(on.value) if on.kind != Kind.INTEGER else on.whole
    return nw.when(on.value < 0).then(_negative(here, on)).otherwise(positive)


def _simple(op: Callable[..., nw.Expr]) -> Lower:
    return lambda _, on: op(*on.values)


def _floats(op: Callable[[Backend, nw.Expr], nw.Expr]) -> Lower:
    return lambda here, on: op(here.engine, to_float(on.value))


def _compare(op: Binary) -> Lower:
    def lower(here: Columns, on: Operands) -> nw.Expr:
        units = [getattr(f.dtype, "time_unit", "") for f in on.domains]
        if len(set(units)) > 1 and (
            "ns" in units or on.kind == Kind.DURATION
        ):  # without this, an engine would round to the coarser unit
            return op(*(_nanoseconds(x, unit) for x, unit in zip(on.values, units, strict=True)))
        return op(*(here.engine.moment(x, f) for x, f in zip(on.values, on.domains, strict=True)))

    return lower


def _nanoseconds(value: nw.Expr, unit: str) -> nw.Expr:
    """A time or a duration in whole nanoseconds. The years 1 to 9999 need more than 64 bits."""
    return value.cast(nw.Int64).cast(nw.Int128) * (10**9 // TICKS[unit])


def _is_in(here: Columns, on: Operands) -> nw.Expr:
    family, value, constants = on.kind, on.value, list(on.options["values"])
    if family.real:
        constants = [float(x) for x in constants]
    elif family == Kind.INTEGER:
        return _is_one_of_whole(
            here, value, on.domains[0], [int(x) for x in constants if int(x) == x]
        )
    elif family in TIMES:
        value = value.cast(nw.Int64)
        constants = [tick for x in constants if (tick := _tick(x, on.dtype)) is not None]
    return (
        here.engine.is_one_of(here.frame, value, constants)
        if constants
        else nw.when(~value.is_null()).then(nw.lit(False))
    )


def _is_one_of_whole(
    here: Columns, value: nw.Expr, domain: ColumnDomain, listed: Sequence[int]
) -> nw.Expr:
    """Whether a whole number of any width is one of some of 64 bits:
    those with a sign, and those above them.
    """
    engine, missing, last = here.engine, value.is_null(), 2**63 - 1
    first, beyond = (
        [x for x in listed if -(2**63) <= x <= last],
        [x for x in listed if last < x < 2**64],
    )
    inside = engine.is_one_of(here.frame, int64(value, domain), first) if first else nw.lit(False)
    if is_wide(domain.dtype):
        inside = inside.fill_null(False) if first else inside
        if beyond:
            above = value > last
            if domain.dtype != nw.UInt64:
                above = above & (value <= typed(2**64 - 1))
            large = nw.when(above).then(value).cast(nw.UInt64)
            inside = inside | engine.is_one_of(here.frame, large, beyond).fill_null(False)
    return nw.when(~missing).then(inside)


def _tick(value: object, dtype: DType) -> int | None:
    """The ticks of a time in a column of times; None where the
    column's type cannot hold the time.
    """
    try:
        return ticks(value, dtype, "")
    except WrongType:
        return None


def _fill_null(here: Columns, on: Operands) -> nw.Expr:
    value, dtype = on.options["value"], on.dtype
    if kind(dtype) in TIMES:
        constant = here.engine.from_ticks(nw.lit(ticks(value, dtype, "")), dtype)
        return nw.when(on.value.is_null()).then(constant).otherwise(on.value)
    return on.value.fill_null(float(value) if kind(dtype).real else typed(here.constant(value)))


def _clip(here: Columns, on: Operands) -> nw.Expr:
    if on.kind in TIMES:
        ends = (
            None if on.options[x] is None else ticks(on.options[x], on.dtype, "")
            for x in ("lower", "upper")
        )
        return here.engine.from_ticks(on.value.cast(nw.Int64).clip(*ends), on.dtype)
    lower, upper = on.options["lower"], on.options["upper"]
    limits = clip_domain("", ColumnDomain(on.dtype), lower, upper)
    # clip within the column's own type, so that a limit outside of it cannot wrap
    if on.kind == Kind.INTEGER:
        first, last = integer_range(on.dtype)
        low, high = limits.bounds or (
            first if lower is None else min(max(-(-lower // 1), first), last),
            last if upper is None else min(max(upper // 1, first), last),
        )
        inside = (None if low == first else int(low), None if high == last else int(high))
        return on.value if inside == (None, None) else on.value.clip(*map(beyond, inside))
    return to_float(on.value).clip(
        None if lower is None else float(lower), None if upper is None else float(upper)
    )


def _cast(here: Columns, on: Operands) -> nw.Expr:
    target, value = on.options["dtype"], on.value
    have, want = on.kind, kind(target)
    if have == Kind.STRING and want in (Kind.INTEGER, Kind.FLOAT, Kind.DATE, Kind.DATETIME):
        # parse to microseconds, which hold the years 1 to 9999
        if want in (Kind.DATE, Kind.DATETIME):
            wide = nw.Date() if want == Kind.DATE else nw.Datetime("us")
            return _cast_time(here, in_calendar(here.converted(value, wide), wide), wide, target)
        if want == Kind.INTEGER:
            return here.converted(value, target)
        number = not_nan(here.converted(value, nw.Float64()))
        return here.engine.single(number) if target == nw.Float32 else number
    if want == Kind.STRING:
        categories = list(target.categories) if target == nw.Enum else None
        if have != Kind.STRING:
            text = (
                here.part(value, on.dtype, "text") if have == Kind.DATE else value.cast(nw.String)
            )
            value = here.held(text)
        if categories is None:
            return value
        return nw.when(value.is_in(here.engine.texts(here.frame, categories))).then(value)
    if want == Kind.INTEGER:
        low, high = integer_range(target)
        if have.real:
            value = here.engine.truncated(value)
            inside = (
                (value > float(low) - 1) & (value < float(high + 1))
                if high < 2**52
                else ((value >= float(low)) & (value < float(high + 1)))
            )
            value = nw.when(inside).then(value)
        elif have == Kind.INTEGER:
            first, last = integer_range(on.dtype)
            value = value if low <= first else nw.when(value >= low).then(value)
            value = value if high >= last else nw.when(value <= high).then(value)
        return here.engine.whole(value, target)
    if want == Kind.FLOAT:
        return here.engine.single(to_float(value)) if target == nw.Float32 else to_float(value)
    if want == Kind.BOOLEAN:
        return value != 0 if have != Kind.BOOLEAN else value
    return _cast_time(here, value, on.dtype, target)


def _cast_time(here: Columns, value: nw.Expr, source: DType, target: DType) -> nw.Expr:
    """A date or time cast to another type of time. What it cannot hold becomes null.

    64 bits of nanoseconds do not reach from year 1 to 9999, and a zone's clock may show a day
    beyond them.
    """
    short = (
        getattr(target, "time_unit", None) == "ns" and getattr(source, "time_unit", None) != "ns"
    )
    zoned = zone_of(target) is not None and zone_of(source) is None
    if short or zoned:
        value = in_calendar(value, source, (1678, 2261) if short else (1, 9999), target)
    return here.engine.retimed(value, source, target)


_FEW = 8  # conditions of a choice that are asked one within the other


def _case(here: Columns, on: Operands) -> nw.Expr:
    """Many conditions in blocks: each block is a column, and so is
    whether one of its conditions holds.

    So a query states a condition twice, and nests 8 of them at most: SQLite's parser holds 100 open
    ends.
    """
    domains = [*on.domains[1::2], on.domains[-1]]
    *values, other = _branches([*on.values[1::2], on.values[-1]], domains)
    pairs = list(zip(on.values[:-1:2], values, strict=True))
    typed = [f.kind != Kind.OTHER for f in domains[:-1]]  # a column of nulls alone has no type
    while len(pairs) > _FEW:
        blocks = [slice(i, i + _FEW) for i in range(0, len(pairs), _FEW)]
        typed = [any(typed[block]) for block in blocks]
        conditions = [
            reduce(operator.or_, [condition for condition, _ in pairs[block]]) for block in blocks
        ]
        found = [
            _first(pairs[block], nw.lit(None))
            for block, has_type in zip(blocks, typed, strict=True)
            if has_type
        ]
        columns = here.held_all([*conditions, *found])
        results = iter(columns[len(blocks) :])
        chosen = [next(results) if has_type else nw.lit(None) for has_type in typed]
        pairs = list(zip(columns[: len(blocks)], chosen, strict=True))
    return _first(pairs, other)


def _branches(values: Sequence[nw.Expr], domains: Sequence[ColumnDomain]) -> Sequence[nw.Expr]:
    """Values of one type: numbers as floats, unless all are whole."""
    types = [f.kind for f in domains]
    if Kind.FLOAT in types or Kind.DECIMAL in types:
        return [x if t == Kind.OTHER else to_float(x) for x, t in zip(values, types, strict=True)]
    if Kind.INTEGER in types:
        return [
            x if t == Kind.OTHER else int64(x, f)
            for x, t, f in zip(values, types, domains, strict=True)
        ]
    return values


def _first(pairs: Sequence[tuple[nw.Expr, nw.Expr]], other: nw.Expr) -> nw.Expr:
    """The value of the first condition that holds."""
    return reduce(
        lambda rest, pair: nw.when(pair[0]).then(pair[1]).otherwise(rest), reversed(pairs), other
    )


def _part(name: str) -> Lower:
    return lambda here, on: here.part(on.value, on.dtype, name)


Texts = Callable[[Any, Fields], nw.Expr]


def _of_text(op: Texts) -> Lower:
    """A function of a text whose result is a number or a Boolean."""
    return lambda here, on: op(here.read(on.value).str, on.options)


def _text(op: Texts) -> Lower:
    """A function of a text whose result is a text."""
    return lambda here, on: here.held(op(here.read(on.value).str, on.options))


def _slice(here: Columns, on: Operands) -> nw.Expr:
    offset, length = on.options["offset"], on.options["length"]
    most = -offset if offset < 0 else _LAST_LETTER - offset
    most = most if length is None else min(length, most)
    text = here.read(on.value)
    return here.held(
        here.ending(text, offset, most) if offset < 0 else text.str.slice(offset, most)
    )


def _concat(here: Columns, on: Operands) -> nw.Expr:
    """Null where the text would become too long: engines fail there."""
    texts = [here.read(value) for value in on.values]
    letters = reduce(operator.add, [text.str.len_chars().cast(nw.Int64) for text in texts])
    fits = nw.when(letters <= LONGEST_TEXT).then(texts[0])
    return here.held(nw.concat_str([fits, *texts[1:]]))


def _growing(here: Columns, on: Operands, least: int) -> nw.Expr:
    """The text, null where it could become too long with others in place of
    parts of it: engines fail there.
    """
    value = here.hold(here.read(on.value))
    growth = -(-len(on.options["new"]) // least)
    return (
        nw.when(value.str.len_chars() <= LONGEST_TEXT // growth).then(value)
        if growth > 1
        else value
    )


def _replace(here: Columns, on: Operands) -> nw.Expr:
    old, new = on.options["old"], on.options["new"]
    return here.held(
        here.applied(_growing(here, on, len(old)), Replaced(old, new, on.options["every"]))
    )


def _replace_matches(here: Columns, on: Operands) -> nw.Expr:
    pattern, task = on.options["pattern"], Task.REPLACE_ALL if on.options["every"] else Task.REPLACE
    value = _growing(here, on, pattern.least)
    return here.held(here.applied(value, Search(task, pattern, value=on.options["new"])))


def _own(function: Callable[[Fields], Any]) -> Lower:
    """A function of a text that the engine computes itself, by the options of the operation."""
    return lambda here, on: here.of_text(on.value, function(on.options))


LOWERED: Mapping[str, Lower] = {
    **FUNCTIONS,
    **CALENDAR,
    **{name: _of_floats(sign) for name, sign in SIGNS.items()},
    "divide": _divide,
    "floor_divide": _floor_divide,
    "modulo": _modulo,
    "negative": _negative,
    "abs": _absolute,
    "floor": _floats(lambda engine, x: engine.floor(x)),
    "ceil": _floats(lambda engine, x: engine.ceil(x)),
    "sqrt": _floats(lambda _, x: nw.when(x >= 0).then(x).sqrt()),
    "equal": _compare(lambda x, y: x == y),
    "not_equal": _compare(lambda x, y: x != y),
    "less": _compare(lambda x, y: x < y),
    "less_equal": _compare(lambda x, y: x <= y),
    "greater": _compare(lambda x, y: x > y),
    "greater_equal": _compare(lambda x, y: x >= y),
    "and": _simple(lambda x, y: x & y),
    "or": _simple(lambda x, y: x | y),
    "xor": _simple(lambda x, y: x != y),
    # `not` needs a CASE: Ibis writes NOT x IS NULL without brackets, and SQL reads it as the
    # opposite of x IS NULL.
    "not": _simple(lambda x: nw.when(~x.is_null()).then(~x)),
    "is_null": _simple(lambda x: x.is_null()),
    "is_in": _is_in,
    "fill_null": _fill_null,
    "clip": _clip,
    "cast": _cast,
    "case": _case,
    "str.to_lowercase": _own(lambda o: Cased(capital=False)),
    "str.to_uppercase": _own(lambda o: Cased(capital=True)),
    "str.len_chars": _of_text(lambda s, o: s.len_chars().cast(nw.Int64)),
    "str.contains": _of_text(lambda s, o: s.contains(o["literal"], literal=True)),
    "str.starts_with": _of_text(lambda s, o: s.starts_with(o["literal"])),
    "str.ends_with": _of_text(lambda s, o: s.ends_with(o["literal"])),
    "str.slice": _slice,
    "concat": _concat,
    "str.replace": _replace,
    "str.split": _own(lambda o: Piece(o["by"], o["index"])),
    "str.matches": _own(lambda o: Search(Task.CONTAINS, o["pattern"])),
    "str.count_matches": _own(lambda o: Search(Task.COUNT, o["pattern"])),
    "str.extract": _own(lambda o: Search(Task.EXTRACT, o["pattern"], o["group"])),
    "str.replace_matches": _replace_matches,
    "str.strip_chars": _own(lambda o: Stripped(o["characters"], o["ends"])),
    "str.head": _text(lambda s, o: s.head(o["n"])),
    "dt.year": _part("year"),
    "dt.month": _part("month"),
    "dt.day": _part("day"),
    "dt.weekday": _part("weekday"),
    "dt.ordinal_day": _part("ordinal_day"),
    "dt.hour": _part("hour"),
    "dt.minute": _part("minute"),
}
