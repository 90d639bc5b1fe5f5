"""Rows whose files are not there, or not yet, are refused by one
error before anything is charged.
"""

import gc
from pathlib import Path

import polars as pl
import pytest
from pyarrow import dataset

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


def duckdb_rows(read):
    def rows(at):
        duckdb = pytest.importorskip("duckdb")
        return read(duckdb.connect(), str(at))

    return rows


def ibis_rows(at):
    return pytest.importorskip("ibis").duckdb.connect().read_parquet(at / "*.parquet")


def dask_rows(form):
    return lambda at: getattr(pytest.importorskip("dask.dataframe"), f"read_{form}")(
        str(at / f"night.{form}")
    )


TABLES = {
    "polars": lambda at: pl.scan_parquet(at / "night.parquet"),
    "polars, a pattern": lambda at: pl.scan_csv(at / "*.csv"),
    "pyarrow": lambda at: pl.scan_pyarrow_dataset(dataset.dataset(at / "night.parquet")),
    "duckdb, parquet": duckdb_rows(lambda duckdb, at: duckdb.read_parquet(f"{at}/night.parquet")),
    "duckdb, csv": duckdb_rows(lambda duckdb, at: duckdb.read_csv(f"{at}/*.csv")),
    "duckdb, sql": duckdb_rows(
        lambda duckdb, at: duckdb.sql(f"SELECT * FROM '{at}/night.parquet' WHERE user > 0")
    ),
    "ibis": ibis_rows,
    "dask, parquet": dask_rows("parquet"),
    "dask, csv": dask_rows("csv"),
}


def refused_for_free(budget, call):
    with pytest.raises(errors.MissingFile, match="There is no file"):
        call()
    assert (budget.history(), budget.failures) == ([], (0, 0))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("reader", [*TABLES, pytest.param("spark", marks=pytest.mark.long)])
def test_a_file_that_goes_is_the_same_error_on_every_engine(reader, tmp_path, request):
    """After the table was protected, and before that where the engine read its
    columns already: nothing is paid.
    """
    ROWS.write_parquet(tmp_path / "night.parquet")
    ROWS.write_csv(tmp_path / "night.csv")
    if reader == "spark":
        rows = request.getfixturevalue("spark_session").read.parquet(f"{tmp_path}/night.parquet")
    else:
        rows = TABLES[reader](tmp_path)

    def protected():
        return dp.protect(rows, unit="user", budget=budget).count(max_rows=2)

    budget = dp.Budget(epsilon=1)
    query = protected()
    gc.collect()  # a reader may hold the file
    for file in tmp_path.iterdir():
        file.unlink()
    refused_for_free(budget, lambda: query.release(epsilon=0.5))
    refused_for_free(budget, lambda: protected().release(epsilon=0.5))
