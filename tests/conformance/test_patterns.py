"""Patterns: those of chance mean on every engine what they mean in Python, and
no text makes one take forever.
"""

import random

import narwhals as nw
import pytest
from cells import Cells
from engines import ENGINES, rows_of
from suite import check
from test_operations import engines

import dpframe as dp
from dpframe.errors import DpFrameError

MANY = 20_000
TEXTS = ("a" * MANY, "a" * MANY + "b", "", None)
LETTERS = (
    *"aabcABK019_- \n\r\t.éßſKıİςΣ²٣Ａ👩\u0301",
    *("\x00", "\x0b", "\x1c", "\x85", "\xa0", "\u2028", "\ud7ff", "\ue000", "\U0010ffff"),
)
SETS = (
    "[a-c]",
    "[^a-c0]",
    "[A-Z_]",
    "[^é-€]",
    "[ -~]",
    "[^\\d]",
    "[\\w-]",
    "\\d",
    "\\D",
    "\\w",
    "\\W",
    "\\s",
    "\\S",
    ".",
)
TIMES = ("?", "*", "+", "{2}", "{1,3}", "{0,2}", "{2,}")


def pattern(chance, depth=2):
    """OneOf of some parts each, at times within each other;
    a part may be a place, or stand several times.
    """
    return "|".join(
        "".join(_part(chance, depth) for _ in range(chance.randint(1, 4)))
        for _ in range(chance.choice([1, 1, 2, 3]))
    )


def _part(chance, depth):
    if chance.random() < 0.1:
        return chance.choice(["^", "$", "\\b"])
    letter = chance.choice(LETTERS)
    parts = [chance.choice(SETS), f"\\{letter}" if letter in ".-" else letter]
    parts += [f"{chance.choice(['(', '(?:'])}{pattern(chance, depth - 1)})"] if depth else []
    times = chance.choice(TIMES) + chance.choice(["", "", "?"]) if chance.random() < 0.4 else ""
    return chance.choice(parts) + times


def asked(chance, many):
    """Expressions of patterns that are accepted."""
    made, text = [], dp.col("a_string").str
    while len(made) < many:
        typed = chance.choice(["", "", "(?i)"]) + pattern(chance)
        for ask in (
            lambda x: text.contains(x, regex=True),
            lambda x: text.extract(x, 0),
            lambda x: text.extract(x, 1),
            lambda x: text.count_matches(x, regex=True),
            lambda x: text.replace(x, "<>", regex=True),
            lambda x: text.replace_all(x, "", regex=True),
        ):
            try:
                made.append(ask(typed))
            except DpFrameError:  # such as a group that is not in every match
                continue
    return made


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 5))]
)
@pytest.mark.parametrize("engine", engines(ENGINES, settings=False))
def test_patterns_of_chance_mean_what_they_mean_in_python(engine, seed):
    chance = random.Random(seed)
    texts = [
        "".join(chance.choices(LETTERS, k=chance.choice([0, 1, 2, 3, 5, 8, 13]))) for _ in range(60)
    ]
    # on longer ones Python needs a minute for a pattern
    texts += ["", None, "\n", "a\n", "\r\n", "ab" * 30]
    check(
        engine,
        {"a_string": Cells("a_string", nw.String(), tuple(texts))},
        asked(chance, 60 if seed else 12),
    )


@pytest.mark.parametrize("engine", engines(ENGINES, settings=False))
def test_no_text_takes_forever(engine):
    cells = {
        "r": Cells("r", nw.Int64(), tuple(range(len(TEXTS)))),
        "s": Cells("s", nw.String(), TEXTS),
    }
    frame = dp.protect(engine.bring(cells).native, unit=dp.Rows(1))
    text = dp.col("s").str
    made = frame.with_columns(
        x=text.contains("(?:a|a|a+)+(?:a|aa)*b", regex=True),
        y=text.contains("a.*a.*a.*c|^$", regex=True),
        z=text.contains("(?i)" + "abcdefghij" * 90, regex=True),  # whose table is large
    )
    assert rows_of(made, ["x", "y", "z"]) == {
        "x": [False, True, False, None],
        "y": [False, False, True, None],
        "z": [False, False, False, None],
    }
