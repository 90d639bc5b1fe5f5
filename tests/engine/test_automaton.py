"""A pattern as a table of states finds what Python's regular expressions
find, and any text is read once.
"""

import random
import re

import pytest

from dpframe.engine.automaton import Automaton
from dpframe.errors import UnsupportedOperation
from dpframe.plan import Pattern

LETTERS = "ab1 \n_-"


def a_pattern(rng, deep=3):
    """A random pattern of few letters; what may be empty is not repeated."""
    kind = rng.choice("cccssrrga") if deep else "c"
    inner = [a_pattern(rng, deep - 1) for _ in range(3 * bool(deep))]
    match kind:
        case "c":
            return rng.choice([*"ab1", ".", r"\d", r"\w", "[^a]", "[a-b]", r"\W", "-"])
        case "s":
            return "".join(inner[: rng.randint(2, 3)]) + rng.choice(["", "", "", r"\b", "$"])
        case "r":
            part = rng.choice("ab1") + (inner[0] if rng.random() < 0.5 else "")
            return f"(?:{part}){rng.choice(['*', '+', '?', '{2}', '{0,2}', '{1,}'])}"
        case "g":
            return f"({inner[0]})"
    place = rng.choice(["^", r"\b", ""])
    return f"(?:{place}{inner[0]}|{inner[1]}{rng.choice(['$', ''])})"


@pytest.mark.parametrize("seed", range(20))
def test_a_table_finds_what_python_finds(seed):
    rng = random.Random(seed)
    for _ in range(20):
        pattern = a_pattern(rng)
        table, own = (
            Automaton(Pattern.read(pattern, "x")),
            re.compile(pattern.replace("$", r"\Z"), re.ASCII),
        )
        for _ in range(20):
            text = "".join(rng.choices(LETTERS, k=rng.randint(0, 7)))
            assert table.matches(text) == bool(own.search(text)), (pattern, text)


def test_a_text_is_read_once_however_a_pattern_is_nested():
    """A search that tries one way after another would take longer than the world exists."""
    table = Automaton(Pattern("(?:a|a|a+)+(?:a|aa)*b"))
    assert not table.matches("a" * 50_000)
    assert table.matches("a" * 50_000 + "b")


def test_a_table_that_grows_without_end_is_refused():
    with pytest.raises(UnsupportedOperation, match="states"):
        Automaton(Pattern("a.{20}b"))
