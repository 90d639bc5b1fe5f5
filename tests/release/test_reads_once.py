"""A release reads its rows once, however many columns are made of them."""

from __future__ import annotations

import polars as pl
import pytest
from polars.io.plugins import register_io_source

import dpframe as dp

ROWS = pl.DataFrame(
    {"id": [1, 1, 2, 3], "g": ["a", "b", "a", "a"], "x": [1.0, 2.0, 3.0, None], "y": [1, 2, 3, 4]}
)
ASKED = {
    "n": dp.count(),
    "mean_x": dp.mean("x"),
    "std_x": dp.std("x"),
    "median_x": dp.median("x"),
    "mean_y": dp.mean("y"),
    "std_y": dp.std("y"),
    "median_y": dp.median("y"),
}


@pytest.fixture
def source():
    """A lazy table and the list of what was read of it: the columns of each time."""
    reads = []

    def read(columns, predicate, number, size):
        reads.append(columns or ROWS.columns)
        rows = ROWS if predicate is None else ROWS.filter(predicate)
        yield rows if columns is None else rows.select(columns)

    return register_io_source(read, schema=ROWS.schema), reads


def protect(table, unit="id"):
    frame = dp.protect(table, unit=unit, budget=dp.Budget(epsilon=99, delta=1e-3))
    return frame.clip("x", 0, 5).clip("y", 0, 5)


@pytest.mark.parametrize("keys", [["a", "b"], None])
# too few units: it is about what is read
@pytest.mark.filterwarnings("ignore:The released table is empty")
def test_count_mean_std_and_median_of_two_columns_by_group(source, keys):
    table, reads = source
    asked = (
        protect(table)
        .group_by("g", keys=keys, max_groups=2, max_rows_per_group=2, max_rows=3)
        .agg(**ASKED)
    )
    asked.explain(), asked.sensitivity, asked.accuracy(epsilon=1, delta=1e-6)
    assert reads == []
    asked.release(epsilon=1, delta=1e-6).accuracy()
    assert [sorted(columns) for columns in reads] == [["g", "id", "x", "y"]]


def test_numbers_of_different_values_too(source):
    table, reads = source
    asked = protect(table).group_by("g", keys=["a"], max_groups=1, max_rows_per_group=1)
    asked.agg(a=dp.n_unique("x"), b=dp.n_unique("y"), c=dp.max("y"), **ASKED).release(epsilon=1)
    assert len(reads) == 1


def test_ungrouped_and_without_identifiers(source):
    table, reads = source
    protect(table).bound(max_rows=2).agg(**ASKED).release(epsilon=1)
    protect(table, unit=dp.Rows(2)).group_by("g", keys=["a", "b"]).agg(**ASKED).release(epsilon=1)
    assert len(reads) == 2


def test_the_count_of_reads_counts(source):
    """The negative control: two frames of one table that are collected apart read it twice."""
    table, reads = source
    pl.collect_all([table.select("x"), table.select("y")])
    assert len(reads) == 2
