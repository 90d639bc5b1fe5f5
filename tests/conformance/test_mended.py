"""Defects that random cases revealed, each with the smallest case that shows it."""

from __future__ import annotations

import contextlib
import datetime as dt
import math

import duckdb as duck
import ibis
import narwhals as nw
import polars as pl
import pytest
from cells import Cells
from engines import ENGINES, READERS
from reference import NANO

import dpframe as dp
from dpframe import engine as asked
from dpframe.engine.backends import duckdb as on_duckdb
from dpframe.errors import InvalidBounds, MissingBounds, UnsupportedOperation, WrongType
from inside import question_of


@pytest.mark.parametrize(
    "engine",
    [engine for engine in (*ENGINES, *READERS) if not engine.long],
    ids=lambda engine: engine.name,
)
def test_null_and_a_time_of_utc_are_listed_for_a_column_of_another_zone(engine):
    moment = dt.datetime(2021, 1, 1, tzinfo=dt.UTC)
    ticks = int(moment.timestamp()) * 10**6 * NANO["us"]
    table = {"w": Cells("w", nw.Datetime("us", "Europe/Berlin"), (ticks, ticks, None))}
    brought = engine.bring(table)
    if "w" not in brought.cells:
        pytest.skip("this engine has no times of Berlin")
    frame = dp.protect(brought.native, unit=dp.Rows(1), budget=dp.Budget(epsilon=1000))
    released = frame.histogram("w", keys=[moment, None]).release(epsilon=500)
    assert released.to_polars()["count"].to_list() == [2, 1]


@pytest.mark.parametrize(
    ("dtype", "bounds", "value"),
    [
        (pl.UInt64, (100, 2**64 - 1), 2**64 - 1),
        (pl.Int64, (-(2**63), 2**63 - 1), 2**63 - 1),
        (pl.Int64, (-(2**63), 2**63), 2**63 - 1),
    ],
)
def test_a_quantile_beyond_64_bits_does_not_wrap(dtype, bounds, value):
    table = pl.DataFrame({"x": [value] * 1000}, schema={"x": dtype})
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=1000))
    released = frame.max("x", bounds=bounds).release(epsilon=100).value
    assert released == pytest.approx(float(value), rel=1e-5)  # candidates are round numbers


def test_a_time_at_the_end_of_64_bits_does_not_wrap():
    last = 2**63 - 1
    table = pl.DataFrame({"x": pl.Series([last] * 1000).cast(pl.Duration("us"))})
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=1000))
    bounds = (dt.timedelta(days=-1), dt.timedelta(days=106_751_991))
    assert frame.max("x", bounds=bounds).release(epsilon=100).value > dt.timedelta(days=106_000_000)


def test_rows_are_not_dropped_by_some_of_the_columns_without_a_word():
    """DuckDB reads no nanoseconds: `drop_nulls()` left such a column out, and
    dropped other rows than elsewhere.
    """
    table = {"w": Cells("w", nw.Datetime("ns"), (0, None)), "x": Cells("x", nw.Int64(), (None, 1))}
    duckdb = next(engine for engine in ENGINES if engine.name == "duckdb")
    frame = dp.protect(duckdb.bring(table).native, unit=dp.Rows(1))
    with pytest.raises(WrongType, match=r"drop_nulls\('r', 'x'\)"):
        frame.drop_nulls()
    assert frame.drop_nulls("x").columns == ["r", "w", "x"]


@pytest.mark.parametrize(
    "cells", [(1.0, math.nan, 2.0), (1.0, math.nan, 1.0)], ids=["between", "one number"]
)
@pytest.mark.parametrize(
    "read", [duck.read_parquet, lambda path: ibis.duckdb.connect().read_parquet(path)]
)
def test_nan_of_a_file_is_missing_whatever_the_file_says_of_its_floats(read, cells, tmp_path):
    """DuckDB took the floats of a file to be from 1 to 2, so it replaced
    `isnan(x)` by false, and 5 was added.
    """
    path = str(tmp_path / "t.parquet")
    pl.DataFrame({"x": cells}).write_parquet(path)
    frame = dp.protect(read(path), unit=dp.Rows(1), budget=dp.Budget(epsilon=1000))
    released = (
        frame.agg(n=dp.count("x"), total=dp.sum("x", bounds=(0, 5)))
        .release(epsilon=900)
        .to_polars()
    )
    assert released["n"].item() == 2
    assert released["total"].item() == pytest.approx(cells[0] + cells[2], abs=0.5)
    for kept, condition in (
        (0, dp.col("x") > 5),
        (1, dp.col("x").is_null()),
        (2, dp.col("x") <= 2),
    ):
        assert asked.totals(question_of(frame.filter(condition).count()), 1).values[0].tolist() == [
            kept
        ]


@pytest.mark.parametrize("bits", ["isnan({0})::BIGINT", "CAST({0} AS BIGINT)"])
def test_a_duckdb_that_guesses_nan_from_statistics_is_refused(bits, monkeypatch):
    """As a later version could guess what `_BITS` is."""
    monkeypatch.setattr(on_duckdb, "_BITS", bits)
    on_duckdb._statistics_pass.cache_clear()
    try:
        if not on_duckdb._statistics_pass():
            pytest.skip("this version of DuckDB guesses less")
        with pytest.raises(UnsupportedOperation, match=r"dp\.protect\(table\.pl\(\)"):
            dp.protect(duck.sql("SELECT 1.0::DOUBLE AS x"), unit=dp.Rows(1))
        dp.protect(duck.sql("SELECT 1 AS x"), unit=dp.Rows(1))
    finally:
        on_duckdb._statistics_pass.cache_clear()


def test_null_and_the_largest_number_of_8_bits_are_listed_for_ibis():
    """Ibis read the key of 8 bits without a sign as one of 8 bits with a sign, and
    failed on 255 after the charge.
    """
    connection = ibis.duckdb.connect()
    connection.raw_sql("CREATE TABLE t AS SELECT unnest([0, 255, NULL])::UTINYINT AS x")
    frame = dp.protect(connection.table("t"), unit=dp.Rows(1), budget=dp.Budget(epsilon=1000))
    released = frame.histogram("x", keys=[0, 255, None]).release(epsilon=500)
    assert released.to_polars()["count"].to_list() == [1, 1, 1]


@pytest.mark.parametrize("size", [0, 1e-200, 1e-60, 1e60, 1e100, 1e200])
@pytest.mark.parametrize("covers", ["noise", "population"])
def test_bounds_of_any_size_are_released_or_refused_before_the_charge(size, covers):
    """Squares of products overflowed after the charge, and bounds (0, 0) divided zero by zero."""
    ends = (-size, size)
    table = pl.DataFrame({"x": [0.0, 1.0], "y": [1.0, 0.0]})
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=1000, delta=0.1))
    both = {"bounds": {"x": ends, "y": ends}}
    asked_for = [
        dp.cov("x", "y", **both),
        dp.corr("x", "y", **both),
        dp.var("x", bounds=ends),
        dp.mean("x", bounds=ends),
    ]
    asked_for.append(dp.mean("x", bounds=ends, weights="y", weight_bounds=(0, size)))
    for aggregate in asked_for:
        with contextlib.suppress(InvalidBounds):
            released = frame.agg(a=aggregate).release(
                epsilon=5, delta=1e-6, covers=covers, fill=True
            )
            assert math.isfinite(released.value)
            assert math.isfinite(released.accuracy()["error"].item())


@pytest.mark.parametrize("ends", [(dt.date(2020, 1, 1), dt.date(2021, 1, 1)), None])
def test_a_matrix_of_a_clipped_date_is_refused_by_type(ends):
    """It compared the days of a clip with dates, a bare TypeError."""
    frame = dp.protect(pl.DataFrame({"d": [dt.date(2020, 5, 5)], "x": [1.0]}), unit=dp.Rows(1))
    clipped = frame.clip("d", dt.date(2020, 1, 1), dt.date(2021, 1, 1)).clip("x", 0, 1)
    with pytest.raises((WrongType, MissingBounds), match="'d'"):
        clipped.cov(["d", "x"], None if ends is None else {"d": ends})


def test_durations_as_keys_are_exported():
    """Polars casts no duration to text."""
    waits = [dt.timedelta(0), dt.timedelta(hours=3)]
    table = pl.DataFrame({"g": ["a", "b"], "wait": waits})
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=100, delta=1e-3))
    tree = frame.hierarchy(["g", "wait"], [("a", waits[0]), ("b", waits[1])]).release(epsilon=1)
    assert tree.to_polars()["wait"].to_list() == ["", "", "", "0:00:00", "3:00:00"]
    tables = frame.marginals(["g", "wait"], keys={"g": ["a", "b"], "wait": waits}).release(
        epsilon=1, delta=1e-6
    )
    assert set(tables.to_polars()["wait"]) == {"0:00:00", "3:00:00"}


@pytest.mark.parametrize(
    "engine", [e for e in (*ENGINES, *READERS) if not e.needs], ids=lambda engine: engine.name
)
def test_keys_of_64_bits_without_a_sign_are_joined(engine):
    """A join compared them as numbers with a sign, so that half of
    all keys by a hash found nothing.
    """
    large = 2**64 - 1
    rows = {
        "u": Cells("u", nw.Int64(), (1, 2, 3, 4)),
        "k": Cells("k", nw.UInt64(), (1, large, large - 1, 2**63)),
    }
    public = {
        "k": Cells("k", nw.UInt64(), (1, large, 2**63)),
        "p": Cells("p", nw.Int64(), (0, 1, 2)),
    }
    if "k" not in engine.make(rows)[1] or engine.name == "datafusion":
        pytest.skip("this engine has no such numbers, or refuses them")
    joined = dp.protect(engine.make(rows)[0], unit=dp.Rows(1)).join(engine.make(public)[0], on="k")
    assert asked.totals(question_of(joined.sum("p", bounds=(0, 5))), 1).values[0].tolist() == [3]


def test_numbers_of_128_bits_are_no_keys_of_a_join():
    """Polars dropped those beyond 64 bits, and DuckDB took neighbours for equal."""
    table = pl.DataFrame({"k": pl.Series([2**100], dtype=pl.Int128)})
    with pytest.raises(WrongType, match=r"\.cast\('k', 'int64'\)"):
        dp.protect(table, unit=dp.Rows(1)).join(table, on="k")
