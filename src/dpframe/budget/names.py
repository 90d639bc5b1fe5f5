"""What a name stands for: the fingerprint of a described release, and what differs between two."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from dpframe.budget.entries import canonical

__all__ = ["differences", "fingerprint"]

SHOWN = 8  # differences in a message


def fingerprint(plan: Mapping[str, Any]) -> str:
    """A hash that equal descriptions share, whatever the order of their keys.

    >>> fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    True
    """
    return hashlib.sha256(canonical(plan).encode()).hexdigest()


def differences(before: Any, after: Any) -> list[str]:
    """Where two descriptions differ, one line each: the place, what it was, what it is.

    >>> differences({"price": {"epsilon": "1"}, "by": ["city"]}, {"price": {"epsilon": "0.5"}, "by": ["city"]})
    ['price.epsilon: 1, 0.5']
    """
    old, new = dict(_flat(before)), dict(_flat(after))
    places = [place for place in {**old, **new} if old.get(place) != new.get(place)]
    lines = [f"{place}: {old.get(place, 'nothing')}, {new.get(place, 'nothing')}" for place in places]
    return lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"and {len(lines) - SHOWN} more"]


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Every leaf with its place."""
    if isinstance(value, Mapping):
        for key in sorted(value):
            yield from _flat(value[key], f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _flat(item, f"{place}[{i}]")
        if not value:
            yield place, "nothing"
    else:
        yield place, str(value)
