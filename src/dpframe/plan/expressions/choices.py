"""Choices in each row: conditions in turn, values of a mapping, the first value that
is there, ends of an interval.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from dpframe.errors import InvalidArgument
from dpframe.plan.nodes import Call, Literal, Node

_ENTRIES = 1_000  # of a mapping


class Closed(StrEnum):
    """The ends that an interval holds, in the words of Polars."""

    BOTH = "both"
    LEFT = "left"
    RIGHT = "right"
    NONE = "none"

    @classmethod
    def read(cls, typed: object) -> Closed:
        """Errors: InvalidArgument."""
        if typed not in list(cls):
            raise InvalidArgument(
                "is_between: closed= is 'both', 'left', 'right' or 'none', as in is_between(0, 10)."
            )
        return cls(str(typed))


def between(value: Node, lower: Node, upper: Node, closed: Closed) -> Call:
    """Whether a value lies in an interval.
    Errors: InvalidArgument for ends of which the first is the larger one.
    """
    ends = [end.value for end in (lower, upper) if isinstance(end, Literal)]
    numbers: list[Any] = [end for end in ends if isinstance(end, (int, float))]
    days: list[Any] = [end for end in ends if type(end) is dt.date]
    if any(len(pair) == 2 and pair[0] > pair[1] for pair in (numbers, days)):
        raise InvalidArgument(
            "is_between: the first end is above the second. Give the lower one first, "
            "is_between(0, 9)."
        )
    above = "greater_equal" if closed in (Closed.BOTH, Closed.LEFT) else "greater"
    below = "less_equal" if closed in (Closed.BOTH, Closed.RIGHT) else "less"
    return Call("and", (Call(above, (value, lower)), Call(below, (value, upper))))


def same(value: Node, other: Node) -> Call:
    """Whether two values are equal, or both missing; never missing."""
    missing = [Call("is_null", (node,)) for node in (value, other)]
    if other == Literal(None):
        return missing[0]
    equal = Call("fill_null", (Call("equal", (value, other)),), (("value", False),))
    return Call("or", (equal, Call("and", (missing[0], missing[1]))))


def case(branches: Sequence[tuple[Node, Node]], other: Node) -> Call:
    """The value of the first condition that holds.
    Input: branches: conditions with their values.
    """
    return Call("case", (*(node for branch in branches for node in branch), other))


def coalesced(values: Sequence[Node]) -> Node:
    """The first value that is not missing."""
    *first, last = values
    there = [(Call("not", (Call("is_null", (value,)),)), value) for value in first]
    return case(there, last) if there else last


def mapped(value: Node, mapping: Mapping[Node, Node], other: Node, call: str) -> Node:
    """The value that a mapping has for a value, a null too, or another one.
    Errors: InvalidArgument.
    """
    if not 1 <= len(mapping) <= _ENTRIES:
        raise InvalidArgument(
            f"{call} takes a mapping of 1 to {_ENTRIES:,} values, as in {call}({{'a': 'b'}}). More "
            "stand in a public table: frame.join({'x': [...], 'y': [...]}, on='x')."
        )
    missing = Literal(None)
    return case(
        [
            (Call("is_null", (value,)) if old == missing else Call("equal", (value, old)), new)
            for old, new in mapping.items()
        ],
        other,
    )
