"""A text is converted only if all its characters have the required form;
a line end at the end is not allowed.
"""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dp
from questions import exact

_FORMED = ["12", "1.5", "2020-02-29", "2020-02-29 01:02:03", "2020-02-29T01:02:03.5"]
_BESIDE = [
    "\n",
    "\r",
    "\r\n",
    "\n\n",
    "\u2028",
    "\u2029",
    "\u0085",
    "\x0b",
    "\x0c",
    "\x00",
    " ",
    "\u00a0",
    "\t",
]
_OTHER = ["\uff11\uff12", "\u0661\u0662", "1\n2", "12\n13", "2020-02-29\n2020-03-01", "\n", ""]


@pytest.mark.one_in(2)
@pytest.mark.spark
def test_texts_with_a_line_end_are_no_numbers_or_times(engine):
    """Java's "$" matches before a line end at the end: "12\\n" was 12 on
    Spark, and null on other engines.
    """
    texts = [
        *_FORMED,
        *_OTHER,
        *(t + b for t in _FORMED for b in _BESIDE),
        *(b + t for t in _FORMED for b in _BESIDE),
    ]
    if engine.name == "postgres":  # whose texts hold no NUL
        texts = [text for text in texts if "\x00" not in text]
    table = pl.DataFrame({"s": texts})
    kinds = ("int64", "uint8", "float64", "date", "datetime")
    made = {kind: ~dp.col("s").cast(kind).is_null() for kind in kinds}
    frame = dp.protect(engine(table), unit=dp.Rows(1)).with_columns(**made)
    counts = exact(frame.agg(**{kind: dp.sum(kind) for kind in kinds}))
    assert [list(count.values()) for count in counts.values()] == [[1], [1], [2], [1], [2]]
