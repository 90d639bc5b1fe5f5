"""Limits of an interval that a user typed: numbers or times, finite and in order."""

from __future__ import annotations

import datetime as dt
from typing import Any

from dpframe.errors import InvalidBounds, kind_of
from dpframe.plan.types import Kind, kind_of_scalar, number, plain, real

__all__ = ["check_bound", "check_interval", "comparable"]


def check_bound(value: object, what: str) -> Any:
    """A limit of an interval: an int or a finite float, a date, time or timedelta; or a typed error that names it."""
    value = plain(value)
    if isinstance(value, (dt.date, dt.timedelta)):
        return value
    end = real(value)
    if end is None:
        raise InvalidBounds(
            f"{what}: a bound is a number or a time, such as datetime.date(2026, 1, 31), not {kind_of(value)}."
        )
    most = 2**64 - 1 if isinstance(end, int) else 1e270
    if not -most <= end <= most:
        raise InvalidBounds(f"{what}: a bound must be finite and at most 1e270; a whole number must fit in 64 bits.")
    return end


def comparable(first: object, second: object) -> bool:
    """Whether two limits can be put in order: numbers, or times of one kind that both have a zone or neither."""
    kinds = [kind_of_scalar(x) for x in (first, second)]
    zoned = [isinstance(x, dt.datetime) and x.tzinfo is not None for x in (first, second)]
    return (kinds[0] == kinds[1] or set(kinds) == {Kind.INTEGER, Kind.FLOAT}) and zoned[0] == zoned[1]


def check_interval(lower: object, upper: object, what: str) -> tuple[Any, Any]:
    """Two limits in order, either of which may be open (None)."""
    low = None if lower is None else check_bound(lower, what)
    high = None if upper is None else check_bound(upper, what)
    if low is None and high is None:
        raise InvalidBounds(f"{what}: give a lower bound, an upper bound, or both.")
    if low is not None and high is not None and not comparable(low, high):
        raise InvalidBounds(f"{what}: the two bounds are two numbers, or two times of one kind.")
    if low is not None and high is not None and low > high:
        raise InvalidBounds(f"{what}: the lower bound {number(low)} is above the upper bound {number(high)}.")
    return low, high
