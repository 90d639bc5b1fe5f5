"""Operations that are made of others: an engine computes these, and
needs nothing for the ones here.

So a quotient of columns, a padded text or a window of the calendar is the same on every engine
where its parts are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.plan.columns import Table
from dpframe.plan.expressions.choices import case
from dpframe.plan.expressions.expression import Expr
from dpframe.plan.nodes import UNLIMITED, Call, Literal, Node, domain
from dpframe.plan.operations import (
    DIVISIBLE,
    TOTALS,
    Every,
    Form,
    Pattern,
    Window,
    difference_type,
    in_zone,
    is_local,
)
from dpframe.plan.operations.rules import Applied
from dpframe.plan.operations.values import MOMENTS
from dpframe.plan.types import TICKS, TIMES, Kind, kind, ticks_of_a_day, time_unit, zone_of

Composition = Callable[[Sequence[Expr], Applied], Expr | None]


def _chosen(*branches: tuple[Expr, object], other: object) -> Expr:
    nodes = [(condition._node, _node(value)) for condition, value in branches]
    return Expr(case(nodes, _node(other)))


def _node(value: Any) -> Node:
    return value._node if isinstance(value, Expr) else Literal(value)


def _divided(args: Sequence[Expr]) -> tuple[Expr, Expr]:
    """The quotient of two whole numbers, rounded down, and the remainder,
    which has the sign of the divisor.

    Input:  numbers x and b, null from 9·10^18 on
    Bound:  q = trunc(fl(x / b)), of three roundings, so |q·b| ≤ |x| (1 + 2^-51), which is below
            9.2·10^18, and the rest r = x - q·b is at most |b| + 2^12 in size. The quotient r / b is
            at most 2^12 + 1 in size, so its float is closer than 2^-38 to it, and trunc is off by
            one at most: the rest s that it leaves is below |b| (1 + 2^-38) in size. So the floor is
            found by comparing s with 0, b and -b.
    """
    top, by = (_chosen(((x < DIVISIBLE) & (x > -DIVISIBLE), x), other=None) for x in args)
    first = (top / by).cast("int64")
    rest = top - first * by
    second = (rest / by).cast("int64")
    left = rest - second * by
    up, down = by > 0, by < 0
    whole = (up & (left >= by)) | (down & (left <= by))
    twice = (up & (left < -by)) | (down & (left > -by))
    against = (up & (left < 0)) | (down & (left > 0))
    step = _chosen((whole, 1), (twice, -2), (against, -1), other=0)
    remainder = _chosen(
        (whole, left - by), (twice, (left + by) + by), (against, left + by), other=left
    )
    return first + second + step, remainder


def _concat(args: Sequence[Expr], asked: Applied) -> Expr:
    texts = [
        x if d.kind == Kind.STRING else x.cast(nw.String())
        for x, d in zip(args, asked.args, strict=True)
    ]
    separator = Literal(asked.options.get("separator", ""))
    between = [separator] if separator.value else []
    nodes = [node for text in texts for node in (*between, text._node)]
    return Expr(Call("concat", tuple(nodes[len(between) :])))


def _sum(args: Sequence[Expr], asked: Applied) -> Expr | None:
    if kind(asked.dtype) == Kind.STRING:
        return _concat(args, asked)
    return _moved(args, asked, 1)


def _moved(args: Sequence[Expr], asked: Applied, sign: int) -> Expr | None:
    """The sum or difference of times and durations, from their ticks."""
    kinds = [d.kind for d in asked.args]
    if not set(kinds) & set(TIMES):
        return None
    dtype = difference_type(asked)
    first, second = (_ticks_in(x, d.dtype, dtype) for x, d in zip(args, asked.args, strict=True))
    if kind(dtype) == Kind.DURATION:
        return (first + second if sign == 1 else first - second)._call("from_ticks", dtype=dtype)
    time, by = (
        (args[1], first)
        if kinds[0] == Kind.DURATION
        else (args[0], second if sign == 1 else -second)
    )
    return time._call("later", by)


def _ticks_in(value: Expr, source: DType, target: DType) -> Expr:
    """Ticks of a time or duration in the unit of another one, rounded down."""
    have, want = map(ticks_of_a_day, (source, target))
    ticks = value._call("ticks")
    if have == want:
        return ticks
    return ticks * (want // have) if want > have else ticks // (have // want)


def _of_moments(operation: str) -> Composition:
    """A comparison of a date and a time: that of the date's midnight."""

    def compared(args: Sequence[Expr], asked: Applied) -> Expr | None:
        kinds = [d.kind for d in asked.args]
        if set(kinds) != set(MOMENTS):
            return None
        first, second = (
            x.cast(nw.Datetime()) if k == Kind.DATE else x for x, k in zip(args, kinds, strict=True)
        )
        return first._call(operation, second)

    return compared


def _second(args: Sequence[Expr], asked: Applied) -> Expr:
    return _clock(args[0], asked.dtype)._call("ticks") // (TICKS[time_unit(asked.dtype)]) % 60


def _clock(time: Expr, dtype: DType) -> Expr:
    """The time that the clock of its zone shows, without a zone."""
    return time if zone_of(dtype) is None else time._call("dt.clock")


def _convert_zone(args: Sequence[Expr], asked: Applied) -> Expr:
    return args[0].cast(in_zone(asked.dtype, asked["zone"]))


def _replace_zone(args: Sequence[Expr], asked: Applied) -> Expr:
    local = _clock(args[0], asked.dtype)
    return local if asked["zone"] is None else _localized(local, asked.dtype, asked["zone"])


def _localized(local: Expr, dtype: DType, zone: str) -> Expr:
    """The moment at which the clock of a zone shows a time; null where it shows it never, or twice.

    Clocks change once in two days at most. So the clock is as far from UTC as it is a day before or
    a day behind, and each of the two is tried: a moment is right if the clock shows the time then.
    """
    target, day = in_zone(dtype, zone), ticks_of_a_day(dtype)

    def offset(by: int) -> Expr:
        beside = local._call("later", by).cast(target)
        return beside._call("dt.clock")._call("ticks") - beside._call("ticks")

    offsets = offset(-day), offset(day)
    moments = [local._call("later", -by).cast(target) for by in offsets]
    before, behind = (moment._call("dt.clock") == local for moment in moments)
    alone = before & (~behind | (offsets[0] == offsets[1]))
    return _chosen((alone, moments[0]), (~before & behind, moments[1]), other=None)


def _truncated(args: Sequence[Expr], asked: Applied) -> Expr:
    """In a zone, by its clock. Windows within an hour begin as long ago as the clock says."""
    dtype, every = asked.dtype, Every.read(asked["every"])
    if not is_local(dtype):
        return args[0]._call("window", every=asked["every"])
    local = _clock(args[0], dtype)
    if every.window is Window.CLOCK and _SECONDS["h"] % every.seconds == 0:
        return args[0]._call(
            "later", -(local._call("ticks") % (every.seconds * TICKS[time_unit(dtype)]))
        )
    return _localized(
        local._call("window", every=asked["every"]), dtype, str(getattr(dtype, "time_zone", ""))
    )


def _total(args: Sequence[Expr], asked: Applied) -> Expr:
    unit = TICKS[time_unit(asked.dtype)] * _SECONDS[asked["unit"]]
    ticks = args[0]._call("ticks")
    return _chosen((ticks < 0, -(-ticks // unit)), other=ticks // unit)


def _zfill(args: Sequence[Expr], asked: Applied) -> Expr:
    """Zeros before the text, or between its sign and the rest."""
    (text,), length = args, asked["length"]

    def padded(rest: Expr, most: int) -> Expr:
        return Expr(Call("concat", (Literal("0" * most), rest._node))).str.slice(-most)

    branches = [(text.str.len_chars() >= length, text)]
    if length > 1:
        rest = padded(text.str.slice(1), length - 1)
        signed = text.str.starts_with("-") | text.str.starts_with("+")
        branches.append((signed, Expr(Call("concat", (text.str.head(1)._node, rest._node)))))
    return _chosen(*branches, other=padded(text, length))


def _counted(args: Sequence[Expr], asked: Applied) -> Expr | None:
    """Characters are counted by what is lost without them; a pattern is counted by the engine."""
    (text,), literal = args, asked["pattern"]
    if isinstance(literal, Pattern):
        return None
    lost = text.str.len_chars() - text.str.replace_all(literal, "", literal=True).str.len_chars()
    return lost // len(literal)


def _without_prefix(args: Sequence[Expr], asked: Applied) -> Expr:
    (text,), start = args, asked["literal"]
    return _chosen((text.str.starts_with(start), text.str.slice(len(start))), other=text)


def _without_suffix(args: Sequence[Expr], asked: Applied) -> Expr:
    (text,), end = args, asked["literal"]
    return _chosen((text.str.ends_with(end), text.str.head(-len(end))), other=text) if end else text


def _to_time(args: Sequence[Expr], form: Form, *, clock: bool) -> Expr:
    """The parts of a text in the order that a cast reads.
    Its form is tried first, and its digits by the cast.
    """
    (text,) = args
    places = {
        code: text.str.slice(start, end - start)
        for code, start, end in form.places
        if code.startswith("%")
    }
    fits = text.str.len_chars() == form.places[-1][2]
    for between, start, end in form.places:
        if not between.startswith("%"):
            fits = fits & (text.str.slice(start, end - start) == between)
    pieces: list[Node] = []
    for code, before in zip(
        _CODES if clock else _CODES[:3], ("", "-", "-", "T", ":", ":"), strict=False
    ):
        pieces += [Literal(before)] * bool(before)
        pieces.append(_node(places.get(code, "00")))
    named = Expr(Call("concat", tuple(pieces))).cast("datetime" if clock else "date")
    return _chosen((fits, named), other=None)


_CODES = ("%Y", "%m", "%d", "%H", "%M", "%S")
_SECONDS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
COMPOSED: Mapping[str, Composition] = {
    "floor_divide_by": lambda args, *_: _divided(args)[0],
    "modulo_by": lambda args, *_: _divided(args)[1],
    "add": _sum,
    "subtract": lambda args, asked: _moved(args, asked, -1),
    **{
        name: _of_moments(name)
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    },
    "dt.second": _second,
    "dt.convert_time_zone": _convert_zone,
    "dt.replace_time_zone": _replace_zone,
    "dt.truncate": _truncated,
    **dict.fromkeys((f"dt.total_{name}" for name in TOTALS.values()), _total),
    "concat_str": _concat,
    "str.zfill": _zfill,
    "str.count_matches": _counted,
    "str.strip_prefix": _without_prefix,
    "str.strip_suffix": _without_suffix,
    "str.to_date": lambda args, asked: _to_time(args, asked["format"], clock=False),
    "str.to_datetime": lambda args, asked: _to_time(args, asked["format"], clock=True),
}


def composed(node: Node, table: Table) -> Node:
    """An expression in which each operation of `COMPOSED` is written out.
    A node that stands twice stays one node.
    """
    before = UNLIMITED.set(True)
    try:
        return _written(node, table, {})
    finally:
        UNLIMITED.reset(before)


def _written(node: Node, table: Table, done: dict[int, tuple[Node, Node]]) -> Node:
    if not isinstance(node, Call):
        return node
    if id(node) not in done:
        done[id(node)] = (node, _composed(node, table, done))
    return done[id(node)][1]


def _composed(node: Call, table: Table, done: dict[int, tuple[Node, Node]]) -> Node:
    args = tuple(_written(arg, table, done) for arg in node.args)
    if node.operation in COMPOSED:
        asked = Applied("", [domain(a, table, "") for a in node.args], dict(node.options))
        made = COMPOSED[node.operation]([Expr(arg) for arg in args], asked)
        if made is not None:
            return _written(made._node, table, done)
    alike = all(new is old for new, old in zip(args, node.args, strict=True))
    return node if alike else Call(node.operation, args, node.options)
