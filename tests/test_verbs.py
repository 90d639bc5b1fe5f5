"""The pages that translate verbs of pandas and Polars:
every line of their tables runs on the page's own table.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import dpframe as dp

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import examples  # noqa: E402 - it is found by the line above

PAGES = {
    name: examples.read(ROOT / "docs" / "howto" / f"from-{name}.md")
    for name in ("pandas", "polars")
}
_ROW = re.compile(r"\| (`.+?) \| (.+) \|")
_CODE = re.compile(r"`([^`]+)`")

# Verbs that people type most, each of which must be on the left of its page.
COMMON = {
    "pandas": "agg apply assign astype clip concat corr count cov crosstab cumsum cut describe "
    "diff drop drop_duplicates dropna explode fillna groupby head hist info interpolate isin "
    "isna kurt loc map max mean median melt merge min mode nlargest nunique pct_change "
    "pivot_table plot qcut quantile query rank rename replace resample reset_index rolling "
    "sample set_index shape shift size skew sort_values stack std sum to_csv to_datetime "
    "transform unique value_counts var where",
    "polars": "agg cast clip coalesce collect concat count cov corr cum_sum cut describe diff drop "
    "drop_nulls explode fill_null filter glimpse group_by group_by_dynamic head height hist "
    "implode is_in join join_asof len map_elements max mean median min mode n_unique "
    "null_count over partition_by pivot quantile rank rename replace rolling_mean row sample "
    "schema select shift skew sort std sum top_k unique unpivot value_counts var vstack when "
    "with_columns with_row_index write_csv",
}


def _cells(page: examples.Page) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for line in page.lines if (match := _ROW.fullmatch(line))]


def _lines(side: int) -> list[Any]:
    return [
        pytest.param(name, code, id=f"{name}: {code}")
        for name, page in PAGES.items()
        for code in dict.fromkeys(
            code for cells in _cells(page) for code in _CODE.findall(cells[side])
        )
        if "." in code or "(" in code
    ]


def _names(name: str) -> dict[str, Any]:
    """The table of the page, and its protected table with a whole budget."""
    names: dict[str, Any] = {}
    for block in PAGES[name].blocks:
        exec(block.code, names)
    return names


@pytest.mark.filterwarnings("ignore")  # of Polars about its own verbs
@pytest.mark.parametrize(("name", "code"), _lines(0))
def test_the_verb_on_the_left_is_one(name, code):
    eval(code, _names(name))


# four rows have no key that enough units share
@pytest.mark.filterwarnings("ignore:The released table is empty")
@pytest.mark.parametrize(("name", "code"), _lines(1))
def test_the_line_on_the_right_runs(name, code):
    found = eval(code, _names(name))
    if isinstance(found, dp.Query):
        found = found.release(epsilon=1.0, delta=1e-6).table
        assert isinstance(found, pd.DataFrame if name == "pandas" else pl.DataFrame)


@pytest.mark.parametrize("name", PAGES)
def test_every_common_verb_has_its_row(name):
    left = " ".join(cells[0] for cells in _cells(PAGES[name]))
    assert [verb for verb in COMMON[name].split() if not re.search(rf"\b{verb}\b", left)] == []


def test_no_row_is_overlooked():
    for page in PAGES.values():
        rows = [
            line
            for line in page.lines
            if line.startswith("| ") and not line.startswith(("| pandas", "| Polars"))
        ]
        assert len(rows) == len(_cells(page)) > 50
