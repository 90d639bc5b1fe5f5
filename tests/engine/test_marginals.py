"""The sums of many marginals: one pass in Polars, one query for each table
elsewhere, and the same integers.
"""

import datetime as dt

import duckdb
import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine as rooms
from dpframe.engine import marginals as sums
from inside import question_of

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
    question = question_of(
        dp.protect(table, unit=unit).marginals(list(KEYS), workload, keys=KEYS, **limits)
    )
    return [array.tolist() for array in rooms.marginal_totals(question, 1)]


@pytest.mark.parametrize(
    "workload", ["1-way", "2-way", "3-way", [("a", "c"), ("b",), ("a", "b", "c")]]
)
@pytest.mark.parametrize("unit", ["u", dp.Rows(1)], ids=["unit", "rows"])
def test_sums_of_groups_of_parts_and_of_each_table_alone_are_the_same_integers(
    monkeypatch, unit, workload
):
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


@pytest.mark.one_in(2)
def test_synthetic_rows_are_linked_and_as_finely_given_on_every_engine(engine):
    """Person k has 1 + k % 3 rows. Days are midnights, and amounts have one decimal."""
    unit = [k for k in range(60) for _ in range(1 + k % 3)]
    days = [dt.datetime(2026, 1, 1) + dt.timedelta(days=k % 20) for k in unit]
    table = pl.DataFrame(
        {
            "u": unit,
            "day": days,
            "amount": [k / 10 for k in unit],
            "yes": [k % 2 == 0 for k in unit],
        }
    )
    frame = dp.protect(engine(table), unit="u", budget=dp.Budget(epsilon=10_000, delta=0.1))
    bounds = {"day": (dt.date(2026, 1, 1), dt.date(2026, 1, 20)), "amount": (0, 8)}
    query = frame.synthesize(
        ["yes", "day", "amount"],
        120,
        "1-way",
        keys={"yes": [True, False]},
        bounds=bounds,
        per_unit=["yes"],
        max_rows=2,
    )
    out = query.release(epsilon=5000, delta=0.01)
    counts = out.marginals["rows of u",].to_polars()["count"]
    assert counts.to_list() == pytest.approx([20, 80], abs=2), "of three rows of a unit, two count"
    rows = out.to_polars()
    assert rows["day"].equals(rows["day"].dt.truncate("1d"))
    assert rows["amount"].equals(rows["amount"].round(1))
    assert rows.group_by("u").agg(pl.col("yes").n_unique())["yes"].max() == 1
    assert rows.group_by("u").len()["len"].value_counts().sort("len")[
        "count"
    ].to_list() == pytest.approx([24, 48], abs=2)
