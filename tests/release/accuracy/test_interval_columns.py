"""Interval columns: `n_low` and `n_high` beside `n`, layout only."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import InvalidArgument, UnsupportedOperation

ROWS = pl.DataFrame(
    {
        "id": range(40),
        "g": ["a", "b"] * 20,
        "x": [float(i) for i in range(40)],
        "when": [dt.datetime(2020, 1, 1) + dt.timedelta(days=i) for i in range(40)],
    }
)
DAYS = (dt.datetime(2020, 1, 1), dt.datetime(2020, 3, 1))


def protect(table=ROWS, budget=None):
    return dp.protect(table, unit="id", budget=budget or dp.Budget(epsilon=99, delta=1e-3))


def grouped(frame, **options):
    options.setdefault("keys", ["a", "b"])
    return frame.group_by("g", max_groups=1, max_rows_per_group=1, **options)


def test_the_ends_stand_beside_each_number_and_are_those_of_accuracy():
    asked = grouped(protect()).agg(
        n=dp.count(), total=dp.sum("x", (0, 40)), mean=dp.mean("when", DAYS)
    )
    out = asked.release(epsilon=1, ci=0.9)
    assert out.table.columns == [
        "g",
        "n",
        "n_low",
        "n_high",
        "total",
        "total_low",
        "total_high",
        "mean",
        "mean_low",
        "mean_high",
    ]
    assert out.table.schema["n_low"] == pl.Int64
    assert out.table.schema["mean_high"] == pl.Datetime("us")
    stated = out.accuracy(alpha=0.1)
    for name in ("n", "total", "mean"):
        found = stated.filter(pl.col("column") == name)
        for end, column in (("lower", f"{name}_low"), ("upper", f"{name}_high")):
            assert (
                np.abs(out.table[column].cast(pl.Float64).to_numpy() - found[end].to_numpy()).max()
                <= 1
            )


def test_more_confidence_is_wider_and_costs_nothing():
    budget = dp.Budget(epsilon=1)
    out = (
        grouped(protect(budget=budget))
        .agg(n=dp.count(), mean=dp.mean("x", (0, 40)))
        .release(epsilon=1)
    )
    narrow, wide = out.with_ci(0.5).table, out.with_ci(0.99).table
    for name in ("n", "mean"):
        assert (wide[f"{name}_low"] <= narrow[f"{name}_low"]).all()
        assert (narrow[f"{name}_high"] <= wide[f"{name}_high"]).all()
    assert out.table.columns == ["g", "n", "mean"]
    assert out.with_ci().table.select("g", "n", "mean").equals(out.table)


def test_pandas_gets_pandas():
    table = grouped(protect(ROWS.to_pandas())).agg(n=dp.count()).release(epsilon=1, ci=0.95).table
    assert table.columns.tolist() == ["g", "n", "n_low", "n_high"]
    assert table["n_low"].dtype == "int64"


def test_one_number_in_one_line():
    out = ROWS.dp.sum(
        "x", bounds=(0, 40), unit="id", max_rows=1, budget=dp.Budget(epsilon=1), epsilon=1, ci=0.95
    )
    assert out.table.columns == ["x", "x_low", "x_high"]
    assert out.value == out.table["x"].item()
    assert out.table["x_low"].item() < out.value < out.table["x_high"].item()


def test_a_histogram_has_them_and_a_crosstab_says_where_they_are():
    out = protect().histogram("x", bins=[0, 20, 40], max_rows=1).release(epsilon=1, ci=0.95)
    assert out.table.columns[-3:] == ["count", "count_low", "count_high"]
    budget = dp.Budget(epsilon=1)
    table = protect(ROWS.with_columns(h=pl.lit("c")), budget).crosstab(
        "g", "h", keys={"g": ["a"], "h": ["c"]}, max_rows=1
    )
    with pytest.raises(UnsupportedOperation, match="accuracy"):
        table.release(epsilon=1, ci=0.95)
    assert budget.spent.epsilon == 0


@pytest.mark.parametrize("ci", [0, 1, 95, -0.5, True, "0.95", float("nan")])
def test_a_confidence_that_is_none_is_refused_before_anything_is_paid(ci):
    budget = dp.Budget(epsilon=1)
    with pytest.raises(InvalidArgument, match="ci="):
        grouped(protect(budget=budget)).count().release(epsilon=1, ci=ci)
    assert budget.spent.epsilon == 0
    with pytest.raises(InvalidArgument, match="ci="):
        grouped(protect(budget=budget)).count().release(epsilon=1).with_ci(ci)


@pytest.mark.parametrize("names", [("n", "n_low"), ("n", "n_high"), ("a_low", "a")])
def test_names_that_would_meet_are_refused_before_anything_is_paid(names):
    budget = dp.Budget(epsilon=1)
    asked = grouped(protect(budget=budget)).agg(**{name: dp.count() for name in names})
    with pytest.raises(InvalidArgument, match="second column"):
        asked.release(epsilon=1, ci=0.95)
    frame = protect(ROWS.rename({"g": "n_low"}), budget)
    asked = frame.group_by("n_low", keys=["a"], max_groups=1, max_rows_per_group=1).agg(
        n=dp.count()
    )
    with pytest.raises(InvalidArgument, match="'n_low'"):
        asked.release(epsilon=1, ci=0.95)
    assert budget.spent.epsilon == 0


def test_the_stored_answer_is_the_same_with_and_without(tmp_path):
    budget = dp.Ledger(tmp_path / "study.sqlite").budget("b", epsilon=1.0)
    asked = grouped(protect(budget=budget)).agg(n=dp.count(), mean=dp.mean("x", (0, 40)))
    first = asked.release(epsilon=1, name="table")
    again = asked.release(epsilon=1, name="table", ci=0.95)
    assert again.table.select("g", "n", "mean").equals(first.table)
    assert again.table.equals(first.with_ci(0.95).table)
    assert budget.remaining.epsilon == 0


def test_keys_found_in_the_data_and_suppressed_groups():
    out = (
        grouped(protect(), keys=None)
        .agg(n=dp.count(), x=dp.sum("x", (0, 40)))
        .release(epsilon=50, delta=1e-3, ci=0.95)
    )
    assert out.table["g"].to_list() == ["a", "b"]
    hidden = out.suppress(below=1000).table
    assert all(
        hidden[name].null_count() == 2 for name in ("n", "n_low", "n_high", "x", "x_low", "x_high")
    )


def test_post_processing_keeps_the_intervals_of_what_was_drawn():
    frame = protect(ROWS.head(0))
    out = (
        grouped(frame, keys=[str(i) for i in range(50)])
        .agg(n=dp.count())
        .release(epsilon=0.1, ci=0.95)
    )
    assert (out.table["n_low"] < 0).any()
    fixed = out.nonnegative().round().table
    assert (fixed["n_low"] >= 0).all()
    assert (fixed["n_low"] <= fixed["n_high"]).all()
    assert fixed.schema["n_high"] == pl.Int64


def test_numbers_at_the_end_of_64_bits_do_not_wrap():
    frame = protect(ROWS.with_columns(y=pl.lit(2**62)))
    asked = frame.bound(max_rows=1).agg(total=dp.sum("y", (0, 2**62)))
    table = asked.release(epsilon=0.01, ci=0.999).table
    assert table["total_low"].item() <= table["total"].item() <= table["total_high"].item()
