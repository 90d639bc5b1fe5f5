"""Modin dataframes: the totals of pandas.
Modin is not among the packages that the tests install.
"""

from __future__ import annotations

import pandas as pd
import pytest

import dpframe as dp
from questions import QUESTIONS, TABLE, exact, expected, protected

modin = pytest.importorskip("modin.pandas")
pytestmark = pytest.mark.filterwarnings("ignore")  # Modin's own


@pytest.fixture(scope="module")
def table():
    return modin.DataFrame(TABLE.to_arrow().to_pandas(types_mapper=pd.ArrowDtype))


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_has_the_totals_of_polars(table, name):
    assert exact(QUESTIONS[name](protected(table))) == expected(name)


def test_a_frame_is_read_as_it_was_when_it_was_protected():
    frame = modin.DataFrame({"u": [1, 1, 2], "x": ["1", 1, None]})
    query = dp.protect(frame, unit="u").group_by("x", max_groups=2, max_rows_per_group=2).count()
    frame["x"] = "canary"
    assert exact(query)[("count",)] == {("1",): 2}
    out = (
        dp.protect(frame[["u"]], unit=dp.Rows(1), budget=dp.Budget(epsilon=10**6))
        .count()
        .release(epsilon=10**5)
    )
    assert (type(out.table), out.value) == (pd.DataFrame, 3)
