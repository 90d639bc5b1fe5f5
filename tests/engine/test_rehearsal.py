"""Spark: the release runs the queries that were checked before the charge,
and builds no expression anew.
"""

from __future__ import annotations

import importlib

import narwhals as nw
import pytest
from pyspark.sql import functions

from dpframe import engine as rooms
from dpframe.engine.backends.spark import BACKEND
from inside import question_of
from questions import QUESTIONS, TABLE, exact, expected, protected

pytestmark = pytest.mark.xdist_group("spark")
_AT_LENGTH = [
    pytest.param(name, marks=pytest.mark.long)
    for name in (
        "ranks",
        "description",
        "concat",
        "features",
        "found",
        "distinct in all",
        "second moments of people",
    )
]


@pytest.fixture(scope="module")
def table(spark_session):
    return spark_session.createDataFrame(TABLE.to_arrow()).cache()


@pytest.mark.parametrize("name", ["public left", *_AT_LENGTH])
def test_what_was_checked_is_what_runs(table, name, monkeypatch):
    """With the salt of the release, and with the tables in place of those
    without rows: the totals are Polars'.
    """
    query, right, made = QUESTIONS[name](protected(table)), expected(name), []
    module = importlib.import_module("dpframe.engine.totals")
    compiled = module.compiled
    monkeypatch.setattr(
        module, "compiled", lambda *a, **named: made.append(named) or compiled(*a, **named)
    )
    rooms.validate(question_of(query))
    assert exact(query) == right
    assert made
    assert all(named.get("empty") for named in made)


def test_a_query_with_an_unknown_part_is_made_anew(table):
    """A column of a table without rows is none of the table, and nobody said of an
    unknown table that it is public.
    """
    data = BACKEND.adopt(table.select("u", "n"))

    def rows():
        return data.scan(["u", "n"], empty=True)

    def again(native):
        return BACKEND.asked_again([nw.from_native(native)], 1)

    first, second = rows().columns
    (same,) = again(rows().where(f"{first} IS NOT NULL").select(first, second))
    assert same.to_native().count() == TABLE["u"].drop_nulls().len()
    bound = rows()
    assert again(bound.select(bound[first])) is None
    assert again(rows().join(table.sparkSession.range(3).toDF(first), on=[first])) is None
    assert again(rows().withColumnRenamed(first, "other")) is None
    assert again(rows().join(rows().select(functions.col(first)), on=[first])) is not None
