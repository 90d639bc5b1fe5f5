r"""Regular expressions: the part of them that means the same on every engine.

Characters, `.`, sets such as `[a-z]` and `[^0-9]`, `\d`, `\w` and `\s`, alternatives, groups, `?`, `*`, `+` and counted
repetition, `^` and `$` at the ends of the text, `\b`, and `(?i)` before all. `\d`, `\w`, `\b` and `(?i)` are about the
letters and digits of ASCII, `\s` about the white space of Unicode. A pattern is read into a tree, and each engine gets
one in which every set lists its characters, so that it never decides itself which letters are meant.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache, partial, reduce
from itertools import pairwise
from typing import NoReturn

import narwhals as nw

from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan.columns import Bounds, ColumnDomain
from dpframe.plan.operations.rules import Operation, Options, Rule, need
from dpframe.plan.types import check_text

Span = tuple[int, int]  # code points, both of which belong to it
_LAST = sys.maxunicode
_TIMES, _LARGEST, _NESTED = 100, 1_000, 20  # repetitions of a part; characters in all when written out; groups


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
class Choice:
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


Part = Chars | Mark | Chain | Choice | Repeat | Group


class Pattern(str):
    """A regular expression of this part.

    >>> Pattern("(?i)fall|pain").tree.parts[1].parts[0]
    Chars(spans=((80, 80), (112, 112)))
    """

    __slots__ = ()

    @classmethod
    def read(cls, typed: str, call: str) -> Pattern:
        """Errors: UnsupportedOperation for what is not in this part; InvalidArgument for a text that is no pattern."""
        check_text(typed, call)
        problem = ""
        try:
            _parsed(typed)
        except _OutsideError as outside:
            problem = str(outside)
        if problem:
            raise UnsupportedOperation(f"{call}: {typed!r}: {problem}")
        return cls(typed)

    @classmethod
    def of(cls, text: str) -> Pattern:
        """The pattern of just these characters."""
        return cls("".join(f"\\{x}" if x in _SIGNS else x for x in text))

    @property
    def tree(self) -> Part:
        """What was read."""
        return _parsed(str(self))

    @property
    def least(self) -> int:
        """The fewest characters of a match."""
        return _least(self.tree)

    @property
    def certain(self) -> bool:
        """Whether each character says which part it belongs to, and each part takes as many as it can.

        Then one match at a place goes as far as another or further along one way through the pattern. The match that is
        tried first is the longest one, and its groups hold the same: all engines find it. See A. Brüggemann-Klein,
        D. Wood, "One-Unambiguous Regular Languages" (1998); `True` may be missing, and is never wrong.

        >>> Pattern("id ([0-9]+)").certain, Pattern("a|ab").certain, Pattern("a+?").certain
        (True, False, False)
        """
        beside: dict[int, list[_Place]] = {}
        part = _places(self.tree, beside)
        return part is not None and all(map(_apart, [part.first, *beside.values()]))

    def form(self, group: int) -> str:
        """A regular expression of the texts that a group can hold; 0 is the whole match."""
        return _written(_group(self.tree, group), "")

    def check_group(self, number: int, call: str) -> None:
        """Refuse a group that is not in every match, or there more than once: engines differ in what it holds then."""
        sure = _sure(self.tree)
        if number and number not in sure:
            raise InvalidArgument(
                f"{call}: {str(self)!r} has no group {number} that is in every match once. Put brackets around what is "
                f"wanted, not within ?, *, | or {{}}, as in {call}('id ([0-9]+)'), or ask for the whole match with "
                "group_index=0."
            )

    def written(self, word: str) -> str:
        r"""The pattern as an engine reads it, in which every set lists its characters. Input: word: its sign for \b."""
        return _written(self.tree, word)


class Task(StrEnum):
    """What is asked of the matches of a pattern in a text."""

    CONTAINS = "contains"
    EXTRACT = "extract"
    COUNT = "count_matches"
    REPLACE = "replace"
    REPLACE_ALL = "replace_all"


@dataclass(frozen=True)
class Search:
    """A task for an engine. Input: group: to extract, 0 for the match; value: what comes in place of a match."""

    task: Task
    pattern: Pattern
    group: int = 0
    value: str = ""


class Ends(StrEnum):
    """Where a text is stripped, as the end of the method's name."""

    BOTH = ""
    START = "_start"
    END = "_end"


class _OutsideError(Exception):
    """What is not in this part of regular expressions, in words."""


_SIGNS = frozenset(r"\.^$*+?{}[]()|")
_IN_SETS = frozenset(r"\]^-[&~")
_DIGIT: Sequence[Span] = ((48, 57),)
_WORD: Sequence[Span] = ((48, 57), (65, 90), (95, 95), (97, 122))
_WHITE: Sequence[Span] = (
    *((9, 13), (32, 32), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)),
    *((0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)),
)
WHITE_SPACE = "".join(chr(code) for low, high in _WHITE for code in range(low, high + 1))
_SETS = {"d": _DIGIT, "w": _WORD, "s": _WHITE}
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
_COUNTED = re.compile(r"\{([0-9]{1,4})(,([0-9]{1,4})?)?\}")


def chars(spans: Sequence[Span], *, opposite: bool = False) -> Chars:
    """A set of spans in any order, or of all other characters."""
    joined: list[Span] = []
    for low, high in sorted(spans):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    if opposite:
        starts, ends = [0, *(high + 1 for _, high in joined)], [*(low - 1 for low, _ in joined), _LAST]
        joined = [(low, high) for low, high in zip(starts, ends, strict=True) if low <= high]
    return Chars(tuple(joined))


WORD, ANY = chars(_WORD), chars([(10, 10)], opposite=True)


@lru_cache(512)
def _parsed(typed: str) -> Part:
    return _Reader(typed).whole()


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, typed: str) -> None:
        self.folds = typed.startswith("(?i)")
        self.rest, self.groups, self.depth = typed.removeprefix("(?i)"), 0, 0

    def whole(self) -> Part:
        tree = self.choice()
        if self.rest:
            self.refuse("a bracket ) without its (. Type \\) for the sign.")
        if _size(tree) > _LARGEST:
            self.refuse(f"written out, it has more than {_LARGEST:,} characters. Take fewer repetitions.")
        return tree

    def refuse(self, why: str) -> NoReturn:
        raise _OutsideError(why)

    def take(self, *signs: str) -> str:
        """The sign that comes next, if it is one of these."""
        found = next((sign for sign in signs if self.rest.startswith(sign)), "")
        self.rest = self.rest[len(found) :]
        return found

    def next(self) -> str:
        if not self.rest:
            self.refuse("it ends too early.")
        sign, self.rest = self.rest[0], self.rest[1:]
        return sign

    def choice(self) -> Part:
        parts = [self.chain()]
        while self.take("|"):
            parts.append(self.chain())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def chain(self) -> Part:
        parts: list[Part] = []
        while self.rest and self.rest[0] not in "|)":
            parts.append(self.repeated())
        if not parts:
            self.refuse("one side of | or a group is empty. Type (?:a|b)? for what may be missing.")
        return parts[0] if len(parts) == 1 else Chain(tuple(parts))

    def repeated(self) -> Part:
        part = self.atom()
        counted = _COUNTED.match(self.rest)
        if counted is not None:
            self.rest = self.rest[counted.end() :]
            least, most = int(counted[1]), int(counted[3] or counted[1]) if counted[3] or not counted[2] else None
        elif sign := self.take("?", "*", "+"):
            least, most = int(sign == "+"), 1 if sign == "?" else None
        else:
            return part
        if not _least(part):
            self.refuse("what may be empty is not repeated. Leave out the outer repetition.")
        if max(least, most or 0) > _TIMES or (most is not None and least > most):
            self.refuse(f"a repetition is counted from a smaller number to a larger one, up to {_TIMES}.")
        lazy = bool(self.take("?"))
        if self.rest[:1] in ("?", "*", "+", "{") and self.rest:
            self.refuse("a repetition of a repetition. Put the first one into (?:...).")
        return Repeat(part, least, most, lazy)

    def atom(self) -> Part:
        match sign := self.next():
            case "(":
                return self.group()
            case "[":
                return self.set()
            case ".":
                return ANY
            case "^" | "$":
                return Mark(sign)
            case "\\":
                if self.take("b"):
                    return Mark.WORD
                return self.folded(self.escaped())
            case "*" | "+" | "?" | "{" | "}" | "]":
                self.refuse(f"{sign} with nothing to repeat, or a sign: type \\{sign} for the sign.")
        return self.folded([(ord(sign), ord(sign))])

    def group(self) -> Part:
        number = None
        if not self.take("?:"):
            if self.rest.startswith("?"):
                self.refuse("of what begins with (?, there are (?i) at the beginning and (?:...).")
            self.groups += 1
            number = self.groups
        self.depth += 1
        if self.depth > _NESTED:
            self.refuse(f"it has more than {_NESTED} groups within each other.")
        inner = self.choice()
        self.depth -= 1
        if not self.take(")"):
            self.refuse("a bracket ( without its ). Type \\( for the sign.")
        return inner if number is None else Group(inner, number)

    def set(self) -> Part:
        opposite, spans, first = bool(self.take("^")), list[Span](), True
        while first or not self.take("]"):
            first = False
            spans += self.span()
        folded = self.folded(spans).spans
        made = chars(folded, opposite=opposite)
        if not made.spans:
            self.refuse("a set of no characters.")
        return made

    def span(self) -> Sequence[Span]:
        """A character of a set, a set within it, or all characters from one to another."""
        low = self.in_set()
        if len(low) > 1 or low[0][0] < low[0][1] or not self.rest.startswith("-") or self.rest.startswith("-]"):
            return low
        self.next()
        high = self.in_set()
        if len(high) > 1 or high[0][0] < high[0][1] or high[0][0] < low[0][0]:
            self.refuse("a span in a set goes from one character to a later one, as in [a-z]. Type \\- for the sign.")
        return [(low[0][0], high[0][0])]

    def in_set(self) -> Sequence[Span]:
        sign = self.next()
        if sign in "[]" or (sign in "&-~" and self.rest.startswith(sign)):
            self.refuse(f"{sign} in a set: type \\{sign} for the sign. Sets are not within each other.")
        return self.escaped() if sign == "\\" else [(ord(sign), ord(sign))]

    def escaped(self) -> Sequence[Span]:
        sign = self.next()
        if sign.lower() in _SETS:
            return chars(_SETS[sign.lower()], opposite=sign.isupper()).spans
        if sign.isascii() and not sign.isalnum() and sign.isprintable():
            return [(ord(sign), ord(sign))]
        if sign not in _CONTROL:
            self.refuse(
                f"of what begins with \\ there are \\d \\w \\s \\D \\W \\S \\b \\t \\n \\r and signs, not \\{sign}."
            )
        return [(ord(_CONTROL[sign]), ord(_CONTROL[sign]))]

    def folded(self, spans: Sequence[Span]) -> Chars:
        """With `(?i)`, both cases of each letter of ASCII. Another letter is refused: engines fold it differently."""
        if not self.folds:
            return chars(spans)
        if any(x.upper() != x or x.lower() != x for low, high in spans if low == high > 127 for x in [chr(low)]):
            self.refuse("(?i) is about the letters of ASCII. Type both cases of another one, as in [Éé].")
        both = list(spans)
        for low, high in spans:
            for first, last, by in ((65, 90, 32), (97, 122, -32)):
                if max(low, first) <= min(high, last):
                    both.append((max(low, first) + by, min(high, last) + by))
        return chars(both)


def _size(tree: Part) -> int:
    """The characters and places of a pattern that is written out."""
    match tree:
        case Chain(parts) | Choice(parts):
            return sum(map(_size, parts))
        case Repeat(part):
            return _size(part) * max(tree.least + 1, tree.most or 0)
        case Group(part):
            return _size(part)
    return 1


def _least(tree: Part) -> int:
    """The fewest characters of a match."""
    match tree:
        case Chain(parts):
            return sum(map(_least, parts))
        case Choice(parts):
            return min(map(_least, parts))
        case Repeat(part):
            return _least(part) * tree.least
        case Group(part):
            return _least(part)
    return int(isinstance(tree, Chars))


_Place = tuple[int, Chars]  # a set at its place in a pattern


@dataclass(frozen=True)
class _Places:
    """Where a match of a part begins and ends, and whether it may be empty."""

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
    if None in several or (isinstance(tree, Choice) and any(part.empty for part in several if part)):
        return None
    return reduce(partial(_behind if isinstance(tree, Chain) else _either, beside), filter(None, several))


def _join(one: _Places, other: _Places, beside: dict[int, list[_Place]]) -> None:
    for number, _ in one.last:
        beside[number] += other.first  # twice the same place is a choice too: to repeat a part, or what it stands in


def _behind(beside: dict[int, list[_Place]], one: _Places, other: _Places) -> _Places:
    _join(one, other, beside)
    first = one.first + other.first * one.empty
    return _Places(one.empty and other.empty, first, other.last + one.last * other.empty)


def _either(_: dict[int, list[_Place]], one: _Places, other: _Places) -> _Places:
    return _Places(False, one.first + other.first, one.last + other.last)


def _apart(places: Sequence[_Place]) -> bool:
    """Whether no character belongs to two of some sets."""
    spans = sorted(span for _, one in places for span in one.spans)
    return all(high < low for (_, high), (low, _) in pairwise(spans))


def _sure(tree: Part) -> frozenset[int]:
    """The groups that are in every match once."""
    match tree:
        case Chain(parts):
            return frozenset().union(*map(_sure, parts))
        case Group(part, number):
            return _sure(part) | {number}
    return frozenset()


def _group(tree: Part, number: int) -> Part:
    """The part of a pattern whose text is asked for by a number."""
    pending = [tree]
    while number and pending:
        part = pending.pop()
        if isinstance(part, Group) and part.number == number:
            return part.part
        pending += part.parts if isinstance(part, (Chain, Choice)) else [part.part] if hasattr(part, "part") else []
    return tree


def _written(tree: Part, word: str) -> str:
    match tree:
        case Chars():
            return _set(tree)
        case Mark():
            return word if tree is Mark.WORD else tree.value
        case Chain(parts):
            return "".join(f"(?:{_written(p, word)})" if isinstance(p, Choice) else _written(p, word) for p in parts)
        case Choice(parts):
            return "|".join(_written(part, word) for part in parts)
        case Group(part):
            return f"({_written(part, word)})"
    most = "" if tree.most is None else tree.most
    return f"(?:{_written(tree.part, word)}){{{tree.least},{most}}}{'?' * tree.lazy}"


def _set(one: Chars) -> str:
    """A set that lists its characters, or those that do not belong to it."""
    spans, opposite = one.spans, ""
    if spans[-1][1] == _LAST:
        spans, opposite = chars(spans, opposite=True).spans, "^"
    if not spans:
        return "(?:[a]|[^a])"
    listed = "".join(_sign(low) if low == high else f"{_sign(low)}-{_sign(high)}" for low, high in spans)
    return f"[{opposite}{listed}]"


def _sign(code: int) -> str:
    return f"\\{chr(code)}" if chr(code) in _IN_SETS else chr(code)


def _of_text(dtype: nw.dtypes.DType, bounds: Bounds | None = None, *, missing: bool = False) -> Rule:
    def rule(call: str, args: Sequence[ColumnDomain], options: Options) -> ColumnDomain:
        need(call, args[0], "string")
        return ColumnDomain(dtype, missing or args[0].nullable, bounds)

    return rule


OF_PATTERNS: Mapping[str, Operation] = {
    "str.matches": Operation("{0}.str.contains({pattern!r}, regex=True)", _of_text(nw.Boolean(), Bounds(0, 1))),
    "str.extract": Operation("{0}.str.extract({pattern!r}, {group})", _of_text(nw.String(), missing=True)),
    "str.count_matches": Operation("{0}.str.count_matches({pattern!r})", _of_text(nw.Int64()), depth=4, size=5),
    "str.replace_matches": Operation(
        "{0}.str.replace({pattern!r}, {new!r}, regex=True, every={every})", _of_text(nw.String(), missing=True)
    ),
    "str.strip_chars": Operation("{0}.str.strip_chars{ends}({characters!r})", _of_text(nw.String())),
    "str.strip_prefix": Operation("{0}.str.strip_prefix({literal!r})", _of_text(nw.String()), depth=2, size=3),
    "str.strip_suffix": Operation("{0}.str.strip_suffix({literal!r})", _of_text(nw.String()), depth=2, size=3),
}
