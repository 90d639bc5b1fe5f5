"""Patterns on texts that make a search take forever if it tries one way after another."""

import narwhals as nw
import pytest
from cells import Cells
from engines import ENGINES, rows_of
from test_operations import engines

import dpframe as dp

MANY = 20_000
TEXTS = ("a" * MANY, "a" * MANY + "b", "", None)


@pytest.mark.parametrize("engine", engines(ENGINES, settings=False))
def test_no_text_takes_forever(engine):
    cells = {"r": Cells("r", nw.Int64(), tuple(range(len(TEXTS)))), "s": Cells("s", nw.String(), TEXTS)}
    frame = dp.protect(engine.bring(cells).native, unit=dp.Rows(1))
    text = dp.col("s").str
    made = frame.with_columns(
        x=text.contains("(?:a|a|a+)+(?:a|aa)*b", regex=True), y=text.contains("a.*a.*a.*c|^$", regex=True)
    )
    assert rows_of(made, ["x", "y"]) == {"x": [False, True, False, None], "y": [False, False, True, None]}
