r"""Regular expressions: the part of them that means the same on every engine.

Characters, `.`, sets such as `[a-z]` and `[^0-9]`, `\d`, `\w` and `\s`, alternatives, groups, `?`,
`*`, `+` and counted repetition, `^` and `$` at the ends of the text, `\b`, and `(?i)` before all.
`\d`, `\w`, `\b` and `(?i)` are about the letters and digits of ASCII, `\s` about the white space of
Unicode. A pattern is read into a tree, and each engine gets one in which every set lists its
characters, so that it never decides itself which letters are meant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NoReturn

from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan.operations.pattern_parts import (
    ANY,
    WORD_SPANS,
    Chain,
    Chars,
    Group,
    Mark,
    OneOf,
    Part,
    Repeat,
    Span,
    chars,
    is_certain,
    least_of,
    part_of_group,
    size_of,
    sure_groups,
    written,
)
from dpframe.plan.scalars import check_text

# repetitions of a part; characters in all when written out; groups
_TIMES, _LARGEST, _NESTED = 100, 1_000, 20


class Pattern(str):
    """A regular expression of this part.

    >>> Pattern("(?i)fall|pain").tree.parts[1].parts[0]
    Chars(spans=((80, 80), (112, 112)))
    """

    __slots__ = ()

    @classmethod
    def read(cls, typed: str, call: str) -> Pattern:
        """Errors: UnsupportedOperation for what is not in this part;
        InvalidArgument for a text that is no pattern.
        """
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
        """The parts that were read."""
        return _parsed(str(self))

    @property
    def least(self) -> int:
        """The fewest characters of a match."""
        return least_of(self.tree)

    @property
    def certain(self) -> bool:
        """Whether each character says which part it belongs to, and
        each part takes as many as it can.

        Then one match at a place goes as far as another or further along one way through the
        pattern. The match that is tried first is the longest one, and its groups hold the same: all
        engines find it. See A. Brüggemann-Klein, D. Wood, "One-Unambiguous Regular Languages"
        (1998); `True` may be missing, and is never wrong.

        >>> Pattern("id ([0-9]+)").certain, Pattern("a|ab").certain, Pattern("a+?").certain
        (True, False, False)
        """
        return is_certain(self.tree)

    def form(self, group: int) -> str:
        """A regular expression of the texts that a group can hold; 0 is the whole match."""
        return written(part_of_group(self.tree, group), "")

    def check_group(self, number: int, call: str) -> None:
        """Refuse a group that is not in every match, or there more than once:
        engines differ in what it holds then.
        """
        sure = sure_groups(self.tree)
        if number and number not in sure:
            raise InvalidArgument(
                f"{call}: {str(self)!r} has no group {number} that is in every match once. Put "
                f"brackets around what is wanted, not within ?, *, | or {{}}, as in {call}('id "
                "([0-9]+)'), or ask for the whole match with group_index=0."
            )

    def written(self, word: str) -> str:
        r"""The pattern as an engine reads it, in which every set lists its characters.
        Input: word: its sign for \b.
        """
        return written(self.tree, word)


class Task(StrEnum):
    """A question about the matches of a pattern in a text."""

    CONTAINS = "contains"
    EXTRACT = "extract"
    COUNT = "count_matches"
    REPLACE = "replace"
    REPLACE_ALL = "replace_all"


@dataclass(frozen=True)
class Search:
    """A task for an engine.
    Input: group: to extract, 0 for the match; value: what comes in place of a match.
    """

    task: Task
    pattern: Pattern
    group: int = 0
    value: str = ""

    @property
    def result(self) -> str:
        """The type of the result, by its name in Ibis."""
        return {Task.CONTAINS: "boolean", Task.COUNT: "int64"}.get(self.task, "string")


class Ends(StrEnum):
    """The side at which a text is stripped, as the end of the method's name."""

    BOTH = ""
    START = "_start"
    END = "_end"


class _OutsideError(Exception):
    """A sign outside of this part of regular expressions, in words."""


_SIGNS = frozenset(r"\.^$*+?{}[]()|")
_DIGIT: Sequence[Span] = ((48, 57),)
_WHITE: Sequence[Span] = (
    *(
        (9, 13),
        (32, 32),
        (0x85, 0x85),
        (0xA0, 0xA0),
        (0x1680, 0x1680),
        (0x2000, 0x200A),
        (0x2028, 0x2029),
    ),
    *((0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)),
)
WHITE_SPACE = "".join(chr(code) for low, high in _WHITE for code in range(low, high + 1))
_SETS = {"d": _DIGIT, "w": WORD_SPANS, "s": _WHITE}
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
_COUNTED = re.compile(r"\{([0-9]{1,4})(,([0-9]{1,4})?)?\}")


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
        if size_of(tree) > _LARGEST:
            self.refuse(
                f"written out, it has more than {_LARGEST:,} characters. Take fewer repetitions."
            )
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
        return parts[0] if len(parts) == 1 else OneOf(tuple(parts))

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
            least, most = (
                int(counted[1]),
                int(counted[3] or counted[1]) if counted[3] or not counted[2] else None,
            )
        elif sign := self.take("?", "*", "+"):
            least, most = int(sign == "+"), 1 if sign == "?" else None
        else:
            return part
        if not least_of(part):
            self.refuse("what may be empty is not repeated. Leave out the outer repetition.")
        if max(least, most or 0) > _TIMES or (most is not None and least > most):
            self.refuse(
                f"a repetition is counted from a smaller number to a larger one, up to {_TIMES}."
            )
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
                self.refuse(
                    f"{sign} with nothing to repeat, or a sign: type \\{sign} for the sign."
                )
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
        if (
            len(low) > 1
            or low[0][0] < low[0][1]
            or not self.rest.startswith("-")
            or self.rest.startswith("-]")
        ):
            return low
        self.next()
        high = self.in_set()
        if len(high) > 1 or high[0][0] < high[0][1] or high[0][0] < low[0][0]:
            self.refuse(
                "a span in a set goes from one character to a later one, as in [a-z]. Type \\- "
                "for the sign."
            )
        return [(low[0][0], high[0][0])]

    def in_set(self) -> Sequence[Span]:
        sign = self.next()
        if sign in "[]" or (sign in "&-~" and self.rest.startswith(sign)):
            self.refuse(
                f"{sign} in a set: type \\{sign} for the sign. Sets are not within each other."
            )
        return self.escaped() if sign == "\\" else [(ord(sign), ord(sign))]

    def escaped(self) -> Sequence[Span]:
        sign = self.next()
        if sign.lower() in _SETS:
            return chars(_SETS[sign.lower()], opposite=sign.isupper()).spans
        if sign.isascii() and not sign.isalnum() and sign.isprintable():
            return [(ord(sign), ord(sign))]
        if sign not in _CONTROL:
            self.refuse(
                "of what begins with \\ there are \\d \\w \\s \\D \\W \\S \\b \\t \\n \\r and "
                f"signs, not \\{sign}."
            )
        return [(ord(_CONTROL[sign]), ord(_CONTROL[sign]))]

    def folded(self, spans: Sequence[Span]) -> Chars:
        """With `(?i)`, both cases of each letter of ASCII.
        Another letter is refused: engines fold it differently.
        """
        if not self.folds:
            return chars(spans)
        if any(
            x.upper() != x or x.lower() != x
            for low, high in spans
            if low == high > 127
            for x in [chr(low)]
        ):
            self.refuse(
                "(?i) is about the letters of ASCII. Type both cases of another one, as in [Éé]."
            )
        both = list(spans)
        for low, high in spans:
            for first, last, by in ((65, 90, 32), (97, 122, -32)):
                if max(low, first) <= min(high, last):
                    both.append((max(low, first) + by, min(high, last) + by))
        return chars(both)
