"""Values that rows of a computed column can have, as a condition on keys that somebody lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Possible:
    """A condition that holds for each value that a row can have, beside null, and perhaps for others.

    It follows from the expression alone, and no row is read. A key for which it does not hold has no rows: a Sunday
    among starts of weeks, "Bonn" among texts in lower case.

    >>> one = Possible.listed(["a", "b"])
    >>> one.holds("a"), one.holds("A"), one.either(Possible.listed(["A"])).holds("A")
    (True, False, True)
    """

    holds: Callable[[Any], bool]
    give: str  # what to list, in words that follow "List"
    values: frozenset[Any] | None = None  # all of them, where they are few
    midnights: bool = False  # whether they are times of which each is the midnight of a day
    of_letters: bool = False  # whether a part of a text that it holds for is held for too
    form: str = ""  # a regular expression of all of them, where texts are put together

    @classmethod
    def listed(cls, values: Iterable[Any], what: str = "what the expression gives") -> Possible:
        """Exactly these values. Input: what: whose values they are."""
        every = list(dict.fromkeys(values))
        few = ", ".join(map(repr, every[:_FEW]))
        return cls(frozenset(every).__contains__, f"{what}: {few}{', …' * (len(every) > _FEW)}", frozenset(every))

    def either(self, *others: Possible) -> Possible:
        """Values for which one of several conditions holds. Listed values of all are put together."""
        parts = (self, *others)
        finite = [part.values for part in parts if part.values is not None]
        together = Possible.listed(sorted(frozenset().union(*finite), key=repr))
        rest = [part for part in parts if part.values is None]
        if not rest:
            return together
        gives = dict.fromkeys(part.give for part in (*rest, *([together] if together.values else [])))
        return Possible(_any([together, *rest]), ", or ".join(gives), None, all(part.midnights for part in parts))

    def seen(self, of: Callable[[Any], Any], give: str = "", *, midnights: bool = False) -> Possible:
        """Values whose counterpart fulfils this condition. Input: of: the counterpart of a value."""
        return Possible(lambda key: self.holds(of(key)), give or self.give, None, midnights)


_FEW = 5


def _any(parts: Sequence[Possible]) -> Callable[[Any], bool]:
    return lambda key: any(part.holds(key) for part in parts)
