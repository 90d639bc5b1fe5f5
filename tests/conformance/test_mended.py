"""Defects that random cases revealed, each with the smallest case that shows it."""

from __future__ import annotations

import datetime as dt

import narwhals as nw
import polars as pl
import pytest
from cells import Cells
from engines import ENGINES, READERS
from reference import NANO

import dpframe as dp
from dpframe.errors import WrongType


@pytest.mark.parametrize(
    "engine", [engine for engine in (*ENGINES, *READERS) if not engine.long], ids=lambda engine: engine.name
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
    assert frame.max("x", bounds=bounds).release(epsilon=100).value == float(value)


def test_a_time_at_the_end_of_64_bits_does_not_wrap():
    last = 2**63 - 1
    table = pl.DataFrame({"x": pl.Series([last] * 1000).cast(pl.Duration("us"))})
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=1000))
    bounds = (dt.timedelta(days=-1), dt.timedelta(days=106_751_991))
    assert frame.max("x", bounds=bounds).release(epsilon=100).value > dt.timedelta(days=106_000_000)


def test_rows_are_not_dropped_by_some_of_the_columns_without_a_word():
    """DuckDB reads no nanoseconds: `drop_nulls()` left such a column out, and dropped other rows than elsewhere."""
    table = {"w": Cells("w", nw.Datetime("ns"), (0, None)), "x": Cells("x", nw.Int64(), (None, 1))}
    duckdb = next(engine for engine in ENGINES if engine.name == "duckdb")
    frame = dp.protect(duckdb.bring(table).native, unit=dp.Rows(1))
    with pytest.raises(WrongType, match=r"drop_nulls\('r', 'x'\)"):
        frame.drop_nulls()
    assert frame.drop_nulls("x").columns == ["r", "w", "x"]
