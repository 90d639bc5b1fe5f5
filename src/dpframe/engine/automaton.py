"""A pattern as a table of states, for engines whose own regular expressions can
take forever or fail on a cell.

A text is read once from left to right, one step in the table for each character. See K. Thompson,
"Regular Expression Search Algorithm" (1968), and the subset construction of M. O. Rabin and D.
Scott (1959).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from functools import cache

from dpframe.errors import UnsupportedOperation
from dpframe.plan import WORD, Chain, Chars, Group, Mark, OneOf, Part, Pattern, Repeat

# states; characters looked at to make them: these take about a second
_MOST, _WORK = 1_000, 2_000_000
_SURROGATES = (0xD800, 0xE000)  # no text has a character from the first on and before the second


class _Side(Enum):
    """The character beside a place in the text."""

    NOTHING = 0
    WORD = 1
    OTHER = 2


class _Graph:
    """Steps of a pattern, by number: on a character or at a place, or none of these, to other
    steps. Step 0 is the end.

    A text contains a match if the end can be reached from the first step, taken before any of its
    characters.
    """

    def __init__(self, tree: Part) -> None:
        self.steps: list[tuple[Chars | Mark | None, tuple[int, ...]]] = [(None, ())]
        self.first = self._added(tree, 0)

    def _new(self, on: Chars | Mark | None, *to: int) -> int:
        self.steps.append((on, to))
        return len(self.steps) - 1

    def _added(self, tree: Part, after: int) -> int:
        """The first step of a part. Input: after: the step that follows the part."""
        match tree:
            case Chain(parts):
                for part in reversed(parts):
                    after = self._added(part, after)
                return after
            case OneOf(parts):
                return self._new(None, *(self._added(part, after) for part in parts))
            case Group(part):
                return self._added(part, after)
            case Repeat(part, least, most):
                end = after
                if most is None:
                    after = self._new(None)
                    self.steps[after] = (None, (self._added(part, after), end))
                for _ in range((most or least) - least):
                    after = self._new(None, self._added(part, after), end)
                for _ in range(least):
                    after = self._added(part, after)
                return after
        return self._new(tree, after)

    def reached(self, steps: Iterable[int], before: _Side, behind: _Side) -> set[int]:
        """The steps that can be taken at a place without reading a character."""
        holds = {
            Mark.START: before is _Side.NOTHING,
            Mark.END: behind is _Side.NOTHING,
            Mark.WORD: (before is _Side.WORD) != (behind is _Side.WORD),
        }
        found, pending = set[int](), list(steps)
        while pending:
            step = pending.pop()
            if step not in found:
                found.add(step)
                on, to = self.steps[step]
                if on is None or (isinstance(on, Mark) and holds[on]):
                    pending += to
        return found


class Automaton:
    """Whether a text contains a match.

    >>> found = Automaton(Pattern("fall|pa+in"))
    >>> found.matches("no paaain"), found.matches("pan")
    (True, False)

    Attributes: edges: the first characters of the classes of characters, less the first; rows: for
                each state and
    class the next state, where 0 is a match; ends: for each state whether a text that ends in it
    has a match; the first state is 1

    Errors: UnsupportedOperation where there would be too many states
    """

    def __init__(self, pattern: Pattern) -> None:
        graph = _Graph(pattern.tree)
        marks = {on for on, _ in graph.steps if isinstance(on, Mark)}
        read = [(i, on, to) for i, (on, to) in enumerate(graph.steps) if isinstance(on, Chars)]
        sets = [on for _, on, _ in read] + [WORD] * (Mark.WORD in marks)
        starts = {
            x
            for one in sets
            for low, high in one.spans
            for x in (low, high + 1)
            if 0 < x < 0x110000
        }
        self.edges = sorted(
            {_SURROGATES[1] if _SURROGATES[0] <= x < _SURROGATES[1] else x for x in starts}
        )
        codes = [0, *self.edges]
        sides = [
            _Side.WORD if Mark.WORD in marks and code in WORD else _Side.OTHER for code in codes
        ]
        targets = {i: (to, [k for k, code in enumerate(codes) if code in on]) for i, on, to in read}
        start = (frozenset({graph.first}), _Side.NOTHING)
        states, pending, work = {start: 1}, [start], 0
        self.rows, self.ends = [[0] * len(codes)], [True]
        for steps, before in pending:
            row, beside = [], {side: graph.reached(steps, before, side) for side in _Side}
            later = defaultdict[int, set[int]](lambda: set(start[0]))
            for side in set(sides):
                for to, on in (targets[step] for step in beside[side] if step in targets):
                    work += len(on)
                    for k in on:
                        if sides[k] is side:
                            later[k].update(to)
            for k, side in enumerate(sides):
                state = (frozenset(later[k]) if k in later else start[0], side)
                if 0 not in beside[side] and state not in states:
                    if len(states) >= _MOST or work > _WORK:
                        raise UnsupportedOperation(
                            f"str.contains: {str(pattern)!r} needs too large a table of states "
                            "here. Take fewer counted repetitions or alternatives, or ask for its "
                            "parts: s.str.contains('a', regex=True) | s.str.contains('b', "
                            "regex=True)."
                        )
                    states[state] = len(states) + 1
                    pending.append(state)
                row.append(0 if 0 in beside[side] else states[state])
            self.rows.append(row)
            self.ends.append(0 in beside[_Side.NOTHING])

    def matches(self, text: str) -> bool:
        """Whether a text contains a match."""
        state, rows, edges = 1, self.rows, self.edges
        for letter in text:
            state = rows[state][bisect_right(edges, ord(letter))]
            if not state:
                return True
        return self.ends[state]


@cache
def automaton(pattern: Pattern) -> Automaton:
    """The table of a pattern."""
    return Automaton(pattern)
