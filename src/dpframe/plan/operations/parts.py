"""Texts, and parts of dates and times: the domain of each result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import narwhals as nw

from dpframe.plan.columns import Bounds, ColumnDomain
from dpframe.plan.operations.rules import Operation, Options, Rule, need


def _text(dtype: nw.dtypes.DType, bounds: Bounds | None = None) -> Rule:
    def rule(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
        need(call, args[0], "string")
        return ColumnDomain(dtype, args[0].nullable, bounds)

    return rule


def _calendar(bounds: Bounds | None, *kinds: str) -> Rule:
    def rule(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
        need(call, args[0], *kinds)
        return ColumnDomain(nw.Int64(), args[0].nullable, bounds)

    return rule


def _maybe(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
    """A text that may be missing: a piece that is not there, or a text that would become too long."""
    need(call, args[0], "string")
    return ColumnDomain(nw.String())


LONGEST_TEXT = 2**24  # characters of a text that has become longer; a longer one would be null
_DAYS, _TIMES = ("date", "datetime"), ("datetime",)
_TRUTH = Bounds(0, 1)

OF_PARTS: Mapping[str, Operation] = {
    "str.to_lowercase": Operation("{0}.str.to_lowercase()", _text(nw.String())),
    "str.to_uppercase": Operation("{0}.str.to_uppercase()", _text(nw.String())),
    "str.len_chars": Operation("{0}.str.len_chars()", _text(nw.Int64())),
    "str.contains": Operation("{0}.str.contains({literal!r}, literal=True)", _text(nw.Boolean(), _TRUTH)),
    "str.starts_with": Operation("{0}.str.starts_with({literal!r})", _text(nw.Boolean(), _TRUTH)),
    "str.ends_with": Operation("{0}.str.ends_with({literal!r})", _text(nw.Boolean(), _TRUTH)),
    "str.head": Operation("{0}.str.head({n})", _text(nw.String())),
    "str.slice": Operation("{0}.str.slice({offset}, {length})", _text(nw.String())),
    "str.replace": Operation("{0}.str.replace({old!r}, {new!r}, literal=True, every={every})", _maybe),
    "str.split": Operation("{0}.str.split({by!r}).list.get({index})", _maybe),
    "dt.year": Operation("{0}.dt.year()", _calendar(None, *_DAYS)),
    "dt.month": Operation("{0}.dt.month()", _calendar(Bounds(1, 12), *_DAYS)),
    "dt.day": Operation("{0}.dt.day()", _calendar(Bounds(1, 31), *_DAYS)),
    "dt.quarter": Operation("{0}.dt.quarter()", _calendar(Bounds(1, 4), *_DAYS)),
    "dt.week": Operation("{0}.dt.week()", _calendar(Bounds(1, 53), *_DAYS)),
    "dt.weekday": Operation("{0}.dt.weekday()", _calendar(Bounds(1, 7), *_DAYS)),
    "dt.ordinal_day": Operation("{0}.dt.ordinal_day()", _calendar(Bounds(1, 366), *_DAYS)),
    "dt.hour": Operation("{0}.dt.hour()", _calendar(Bounds(0, 23), *_TIMES)),
    "dt.minute": Operation("{0}.dt.minute()", _calendar(Bounds(0, 59), *_TIMES)),
}
