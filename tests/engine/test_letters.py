"""Every engine has the capital and small letters of one table, for every character of Unicode."""

from __future__ import annotations

import functools

import polars as pl
import pytest

import dpframe as dp
from dpframe import engine as asked
from inside import question_of

CHARACTERS = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
TEXTS = ["Straße", "ΟΔΥΣΣΕΥΣ", "İstanbul", "ǅ", "ﬁ", "ẞß", "Жук é e\u0301", "ᾳ ß", "ꭰ Ꭰ", "'\\%"]


def other(text, *, capital):
    """Replace each letter whose other case is one letter."""
    cases = ((x, x.upper() if capital else x.lower()) for x in text)
    return "".join(y if len(y) == 1 else x for x, y in cases)


@functools.cache
def letters(*, capital):
    """Every character among its neighbours, and those that have another case
    alone, beside what they become.
    """
    alone = [x for x in CHARACTERS if x.upper() != x or x.lower() != x]
    packed = ["".join(CHARACTERS[i : i + 100]) for i in range(0, len(CHARACTERS), 100)]
    texts = [*TEXTS, *alone, *packed]
    return pl.DataFrame({"s": texts, "t": [other(text, capital=capital) for text in texts]})


@pytest.mark.one_in(2)
@pytest.mark.parametrize("capital", [True, False], ids=["capital", "small"])
def test_letters_are_those_of_the_table(engine, capital):
    """All are equal, in one count."""
    table = letters(capital=capital)
    frame = dp.protect(engine(table), unit=dp.Rows(1))
    made = dp.col("s").str.to_uppercase() if capital else dp.col("s").str.to_lowercase()
    counted = asked.totals(
        question_of(frame.with_columns(z=made).filter(dp.col("z") == dp.col("t")).count()), 1
    )
    assert counted.values[0].tolist() == [table.height]
