"""Rows whose files are not there, or not yet, are refused by one
error before anything is charged.
"""

from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from dpframe import errors

ROWS = pl.DataFrame({"user": [1, 1, 2]})
SCANS = {
    "a file": lambda at: pl.scan_parquet(at / "night.parquet"),
    "a folder": lambda at: pl.scan_parquet(at / "night"),
    "an empty folder": lambda at: pl.scan_parquet(at / "empty"),
    "a pattern": lambda at: pl.scan_parquet(at / "night" / "*.parquet"),
    "several": lambda at: pl.scan_parquet([at / "there.parquet", at / "night.parquet"][::-1]),
    "csv": lambda at: pl.scan_csv(at / "night.csv"),
    "arrow": lambda at: pl.scan_ipc(at / "night.arrow"),
    "json": lambda at: pl.scan_ndjson(at / "night.json"),
    "a step of one's own": lambda at: pl.scan_parquet(at / "night.parquet").filter(
        pl.col("user") > 0
    ),
}


@pytest.fixture
def place(tmp_path):
    (tmp_path / "empty").mkdir()
    ROWS.write_parquet(tmp_path / "there.parquet")
    return tmp_path


@pytest.mark.parametrize("scan", SCANS)
def test_a_scan_without_files_is_one_error_at_every_door(scan, place):
    budget = dp.Budget(epsilon=1)
    query = ROWS.dp(unit="user", budget=budget).count(max_rows=2)
    for door in (
        lambda rows: dp.protect(rows, unit="user", budget=budget),
        lambda rows: rows.dp(unit="user", budget=budget),
        query.check,
    ):
        with pytest.raises(
            errors.MissingFile, match=r"There is no file '.+', so there are no rows"
        ) as refused:
            door(SCANS[scan](place))
        assert isinstance(refused.value, FileNotFoundError)
        assert str(place) in str(refused.value)
    assert budget.spent.epsilon == 0


@pytest.mark.parametrize("path", ["night.parquet", "empty"])
def test_a_label_of_files_that_are_not_there_is_the_same_error(path, place):
    budget = dp.Budget(epsilon=1)
    with pytest.raises(errors.MissingFile):
        dp.content_hash(place / path, key="a key of our team")
    with pytest.raises(errors.MissingFile):
        dp.protect(ROWS, unit="user", budget=budget, data=Path(place / path)).count(
            max_rows=2
        ).release(1, name="night")
    assert budget.history() == []


def test_other_errors_of_a_scan_are_its_own(place):
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        dp.protect(pl.scan_parquet(place / "there.parquet").select("spend"), unit="user")
    (place / "broken.parquet").write_bytes(b"no parquet")
    with pytest.raises(pl.exceptions.ComputeError):
        dp.protect(pl.scan_parquet(place / "broken.parquet"), unit="user")
