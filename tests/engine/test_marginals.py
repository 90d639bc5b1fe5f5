"""The sums of many marginals: one pass in Polars, one query for each table elsewhere, and the same integers."""

import duckdb
import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine as rooms
from dpframe.engine import marginals as sums

KEYS = {"a": [0, 1, 2, 7], "b": ["x", "y", None], "c": [False, True]}


def people(rows=300):
    draw = np.random.default_rng(3)
    table = {
        "u": draw.integers(0, 40, rows),
        "a": draw.integers(0, 4, rows),
        "b": [["x", "y", "other", None][i] for i in draw.integers(0, 4, rows)],
        "c": [[False, True, None][i] for i in draw.integers(0, 3, rows)],
    }
    return pl.DataFrame(table, schema_overrides={"b": pl.String, "c": pl.Boolean})


def totals(table, unit="u", workload="2-way"):
    limits = {} if isinstance(unit, dp.Rows) else {"max_rows": 3}
    question = dp.protect(table, unit=unit).marginals(list(KEYS), workload, keys=KEYS, **limits)._question
    return [array.tolist() for array in rooms.marginal_totals(question, 1)]


@pytest.mark.parametrize("workload", ["1-way", "2-way", "3-way", [("a", "c"), ("b",), ("a", "b", "c")]])
@pytest.mark.parametrize("unit", ["u", dp.Rows(1)], ids=["unit", "rows"])
def test_sums_of_groups_of_parts_and_of_each_table_alone_are_the_same_integers(monkeypatch, unit, workload):
    table = people()
    grouped = totals(table, unit, workload)
    assert sum(map(np.sum, grouped)) > 0
    monkeypatch.setattr(sums, "_CELLS", 1)
    assert totals(table, unit, workload) == grouped
    _people = table.to_arrow()
    assert totals(duckdb.sql("SELECT * FROM _people"), unit, workload) == grouped


def test_sums_that_floats_would_round_are_added_as_integers(monkeypatch):
    table = people()
    once = totals(table)
    monkeypatch.setattr(sums, "_is_small", lambda values: False)
    assert totals(table) == once
    monkeypatch.setattr(sums, "_CELLS", 1)
    assert totals(table) == once
    cells, large = np.array([0, 0, 1]), np.array([2**60, 1, -(2**53) - 1])
    assert sums._added(cells, large, 3).tolist() == [2**60 + 1, -(2**53) - 1, 0]
