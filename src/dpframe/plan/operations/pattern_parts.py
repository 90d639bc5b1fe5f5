"""The parts of a regular expression, what is known of their
matches, and how an engine reads them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial, reduce
from itertools import pairwise

Span = tuple[int, int]  # code points, both of which belong to it
_LAST = sys.maxunicode
_IN_SETS = frozenset(r"\]^-[&~")


@dataclass(frozen=True)
class Chars:
    """One character out of a set, as spans in order, none of which touches the next."""

    spans: tuple[Span, ...]

    def __contains__(self, code: int) -> bool:
        return any(low <= code <= high for low, high in self.spans)


class Mark(StrEnum):
    """A place between two characters."""

    START = "^"
    END = "$"
    WORD = r"\b"


@dataclass(frozen=True)
class Chain:
    """Parts one behind the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class OneOf:
    """One of several parts; the first that leads to a match."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Repeat:
    """A part several times: as often as possible, or as rarely."""

    part: Part
    least: int
    most: int | None
    lazy: bool


@dataclass(frozen=True)
class Group:
    """A part whose text can be asked for by a number."""

    part: Part
    number: int


Part = Chars | Mark | Chain | OneOf | Repeat | Group


def chars(spans: Sequence[Span], *, opposite: bool = False) -> Chars:
    """A set of spans in any order, or of all other characters."""
    joined: list[Span] = []
    for low, high in sorted(spans):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    if opposite:
        starts, ends = (
            [0, *(high + 1 for _, high in joined)],
            [*(low - 1 for low, _ in joined), _LAST],
        )
        joined = [(low, high) for low, high in zip(starts, ends, strict=True) if low <= high]
    return Chars(tuple(joined))


WORD_SPANS: Sequence[Span] = ((48, 57), (65, 90), (95, 95), (97, 122))
WORD, ANY = chars(WORD_SPANS), chars([(10, 10)], opposite=True)


def size_of(tree: Part) -> int:
    """The characters and places of a pattern that is written out."""
    match tree:
        case Chain(parts) | OneOf(parts):
            return sum(map(size_of, parts))
        case Repeat(part):
            return size_of(part) * max(tree.least + 1, tree.most or 0)
        case Group(part):
            return size_of(part)
    return 1


def least_of(tree: Part) -> int:
    """The fewest characters of a match."""
    match tree:
        case Chain(parts):
            return sum(map(least_of, parts))
        case OneOf(parts):
            return min(map(least_of, parts))
        case Repeat(part):
            return least_of(part) * tree.least
        case Group(part):
            return least_of(part)
    return int(isinstance(tree, Chars))


_Place = tuple[int, Chars]  # a set at its place in a pattern


@dataclass(frozen=True)
class _Places:
    """The places at which a match of a part begins and ends, and whether it may be empty."""

    empty: bool
    first: list[_Place]
    last: list[_Place]


def _places(tree: Part, beside: dict[int, list[_Place]]) -> _Places | None:
    """The places of a part; None if it asks for the shorter of two matches.

    Input:  beside: for each place those that may come next, to which the part adds its own
    """
    match tree:
        case Mark():
            return _Places(True, [], [])
        case Chars():
            place = (len(beside), tree)
            beside[place[0]] = []
            return _Places(False, [place], [place])
        case Group(part):
            return _places(part, beside)
        case Repeat(part, least, most, lazy):
            inner = None if lazy else _places(part, beside)
            if inner is not None and most != 1:
                _join(inner, inner, beside)
            return inner and _Places(inner.empty or not least, inner.first, inner.last)
    several = [_places(part, beside) for part in tree.parts]
    one_of = isinstance(tree, OneOf)
    if None in several or (one_of and any(part.empty for part in several if part)):
        return None
    return reduce(partial(_either if one_of else _behind, beside), filter(None, several))


def _join(one: _Places, other: _Places, beside: dict[int, list[_Place]]) -> None:
    for number, _ in one.last:
        # twice the same place is a choice too: to repeat a part, or what it stands in
        beside[number] += other.first


def _behind(beside: dict[int, list[_Place]], one: _Places, other: _Places) -> _Places:
    _join(one, other, beside)
    first = one.first + other.first * one.empty
    return _Places(one.empty and other.empty, first, other.last + one.last * other.empty)


def _either(_: dict[int, list[_Place]], one: _Places, other: _Places) -> _Places:
    return _Places(False, one.first + other.first, one.last + other.last)


def is_certain(tree: Part) -> bool:
    """Whether each character says which part it belongs to: see `Pattern.certain`."""
    beside: dict[int, list[_Place]] = {}
    part = _places(tree, beside)
    return part is not None and all(map(_apart, [part.first, *beside.values()]))


def _apart(places: Sequence[_Place]) -> bool:
    """Whether no character belongs to two of some sets."""
    spans = sorted(span for _, one in places for span in one.spans)
    return all(high < low for (_, high), (low, _) in pairwise(spans))


def sure_groups(tree: Part) -> frozenset[int]:
    """The groups that are in every match once."""
    match tree:
        case Chain(parts):
            return frozenset().union(*map(sure_groups, parts))
        case Group(part, number):
            return sure_groups(part) | {number}
    return frozenset()


def part_of_group(tree: Part, number: int) -> Part:
    """The part of a pattern whose text is asked for by a number."""
    pending = [tree]
    while number and pending:
        part = pending.pop()
        if isinstance(part, Group) and part.number == number:
            return part.part
        pending += (
            part.parts
            if isinstance(part, (Chain, OneOf))
            else [part.part]
            if hasattr(part, "part")
            else []
        )
    return tree


def written(tree: Part, word: str) -> str:
    r"""A part as an engine reads it. Input: word: its sign for \b."""
    match tree:
        case Chars():
            return _set(tree)
        case Mark():
            return word if tree is Mark.WORD else tree.value
        case Chain(parts):
            return "".join(
                f"(?:{written(p, word)})" if isinstance(p, OneOf) else written(p, word)
                for p in parts
            )
        case OneOf(parts):
            return "|".join(written(part, word) for part in parts)
        case Group(part):
            return f"({written(part, word)})"
    most = "" if tree.most is None else tree.most
    return f"(?:{written(tree.part, word)}){{{tree.least},{most}}}{'?' * tree.lazy}"


def _set(one: Chars) -> str:
    """A set that lists its characters, or those that do not belong to it."""
    spans, opposite = one.spans, ""
    if spans[-1][1] == _LAST:
        spans, opposite = chars(spans, opposite=True).spans, "^"
    if not spans:
        return "(?:[a]|[^a])"
    listed = "".join(
        _sign(low) if low == high else f"{_sign(low)}-{_sign(high)}" for low, high in spans
    )
    return f"[{opposite}{listed}]"


def _sign(code: int) -> str:
    return f"\\{chr(code)}" if chr(code) in _IN_SETS else chr(code)
