"""Tables of explanations as wide as the terminal."""

from __future__ import annotations

import io
import sys

import polars as pl
import pytest

import dpframe as dp


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def query():
    table = pl.DataFrame({"user": [1], "city": ["Bonn"], "spend": [3.0]})
    frame = table.dp(
        unit="user", budget=dp.Budget(epsilon=1.0), max_rows=9, bounds={"spend": (0, 100)}
    )
    groups = frame.filter(pl.col("spend") > 0).group_by("city", keys=["Bonn", "Kiel"], max_groups=1)
    return groups.agg(mean=dp.mean("spend"), total=dp.sum("spend"), spread=dp.std("spend"))


@pytest.mark.parametrize("width", [80, 100, 120])
def test_tables_are_no_wider_than_the_terminal(query, width, monkeypatch):
    whole = str(query.explain())
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", str(width))
    narrow = str(query.explain())
    tables = [part for part in narrow.split("\n\n") if "─" in part]
    assert len(tables) == 2
    assert max(len(line) for table in tables for line in table.splitlines()) <= width
    assert sorted("".join(narrow.split()).replace("─", "")) == sorted(
        "".join(whole.split()).replace("─", "")
    )
    assert max(len(line) for line in whole.splitlines()) > 120  # in a file nothing is wrapped
    report = str(query.release(epsilon=0.5).report())
    assert max(len(line) for line in report.splitlines() if "─" in line) <= width


def test_a_column_stays_legible_in_a_terminal_that_is_very_narrow(query, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "10")
    assert (
        max(len(line) for line in str(query.explain()).splitlines() if "─" in line) <= 7 * 12 + 12
    )
