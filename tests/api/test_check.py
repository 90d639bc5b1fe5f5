"""A question is held against another night's table, by names and types alone."""

import datetime as dt

import duckdb
import polars as pl
import pytest

import dpframe as dp
from dpframe import errors

ROWS = pl.DataFrame(
    {"id": [1, 2], "city": ["Bonn", "Kiel"], "x": [1.0, 2.0], "day": [dt.date(2026, 1, 1)] * 2}
)
BUDGET = dp.Budget(epsilon=1)
QUERY = (
    dp.protect(ROWS, unit="id", budget=BUDGET, max_rows=2, max_groups=1)
    .filter(dp.col("day") > dt.date(2025, 1, 1))
    .group_by("city", keys=["Bonn"])
    .mean("x", bounds=(0, 10))
)


@pytest.mark.parametrize(
    "table", [ROWS, ROWS.lazy(), ROWS.to_pandas(), ROWS.to_arrow(), ROWS.head(0), ROWS.reverse()]
)
def test_a_table_like_the_first_fits(table):
    if not hasattr(table, "index"):
        QUERY.check(table)
    else:
        QUERY.check(pl.from_pandas(table).with_columns(pl.col("day").cast(pl.Date)))
    assert BUDGET.history() == []


CHANGED = {
    "id": pl.col("id").cast(pl.String),
    "city": pl.col("city") == "Bonn",
    "x": pl.col("x").cast(pl.Int64),
    "day": pl.col("day").cast(pl.String),
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_column_of_another_type_is_named(name):
    with pytest.raises(errors.WrongType, match=f"check: '{name}' has the type"):
        QUERY.check(ROWS.with_columns(CHANGED[name].alias(name)))


@pytest.mark.parametrize("name", CHANGED)
def test_a_column_that_is_missing_is_named(name):
    with pytest.raises(errors.SchemaError, match=name):
        QUERY.check(ROWS.drop(name))


def test_no_row_is_read():
    connection = duckdb.connect()
    connection.create_function("read", lambda _: 1 / 0, ["BIGINT"], "BIGINT")
    connection.execute("CREATE TABLE t AS SELECT 1::BIGINT AS id, 2.0::DOUBLE AS x")
    table = connection.sql("SELECT read(id) AS id, x FROM t")
    query = dp.protect(pl.DataFrame({"id": [1], "x": [1.0]}), unit="id").sum(
        "x", bounds=(0, 1), max_rows=1
    )
    query.check(table)


def test_the_steward_asks_for_rows(tmp_path, capsys):
    from dpframe.__main__ import main

    (tmp_path / "a.toml").write_text('unit = "id"\nmax_rows = 2\n')
    ROWS.write_parquet(tmp_path / "a.parquet")
    for floor, code in ((2, 0), (3, 1)):
        words = [
            "policy",
            "check",
            str(tmp_path / "a.toml"),
            str(tmp_path / "a.parquet"),
            "--min-rows",
            str(floor),
        ]
        assert main(words) == code
    assert "2 rows have a unit, fewer than --min-rows 3" in capsys.readouterr().out
