"""Polars, Spark and databases: the release runs the queries that were checked before the
charge, and builds no expression anew.
"""

from __future__ import annotations

import importlib
from functools import partial

import duckdb
import narwhals as nw
import polars as pl
import pytest
from pyspark.sql import functions

from dpframe import engine as rooms
from dpframe.engine.backends.polars import BACKEND as POLARS
from dpframe.engine.backends.rehearsal import asked_again
from dpframe.engine.backends.spark import BACKEND
from dpframe.engine.compile import compiled, is_salted
from inside import question_of
from questions import QUESTIONS, TABLE, exact, expected, protected

_LONG = (
    "ranks",
    "description",
    "concat",
    "features",
    "found",
    "distinct in all",
    "second moments of people",
)
_AT_LENGTH = [pytest.param(name, marks=pytest.mark.long) for name in _LONG]


@pytest.fixture(scope="module")
def table(spark_session):
    return spark_session.createDataFrame(TABLE.to_arrow()).cache()


@pytest.fixture
def calls(monkeypatch):
    """The options of each call that compiles a question."""
    made, module = [], importlib.import_module("dpframe.engine.totals")
    compiled = module.compiled
    monkeypatch.setattr(
        module, "compiled", lambda *a, **named: made.append(named) or compiled(*a, **named)
    )
    return made


def _runs_what_was_checked(table, name, calls):
    """With the salt of the release, and with the tables in place of those without rows."""
    query, right = QUESTIONS[name](protected(table)), expected(name)
    calls.clear()
    rooms.validate(question_of(query))
    assert exact(query) == right
    assert calls
    return all(named.get("empty") for named in calls)


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("name", ["public left", *_AT_LENGTH])
def test_what_was_checked_is_what_runs(table, name, calls):
    """The totals are Polars'."""
    assert _runs_what_was_checked(table, name, calls)


def test_polars_runs_what_was_checked(calls):
    """The totals are those of a question that is made anew, as it is for `concat`
    alone: that is no method of a table.
    """
    anew = [
        name for name in ("public left", *_LONG) if not _runs_what_was_checked(TABLE, name, calls)
    ]
    assert anew == ["concat"]


def test_a_database_runs_what_was_checked_where_no_salt_stands_in_it(calls):
    """The salt of the check stands in the text of no query that runs."""
    table, salt, anew = duckdb.from_arrow(TABLE.to_arrow()), 8613579246801357, []
    for name in ("public left", "ranks", "found", "distinct in all"):
        question = question_of(QUESTIONS[name](protected(table)))
        frames = compiled(question, salt)
        natives = [frame.to_native() for frame in (*frames.mains, *frames.apart.values())]
        assert is_salted(question) is any(str(salt) in native.sql_query() for native in natives)
        if not _runs_what_was_checked(table, name, calls):
            assert is_salted(question)
            anew.append(name)
    assert anew == ["found", "distinct in all"]


def test_arguments_that_are_read_once_last():
    """A generator has nothing left for the second call."""
    rows = pl.LazyFrame({"a": [1, 1, 2], "b": [3, 4, 5]})
    frame = POLARS.rehearsed(nw.from_native(rows.clear()), lambda: rows)
    native = frame.to_native().filter(pl.col(name) > 1 for name in ("a", "b"))
    native = native.group_by(name for name in ("a",)).agg(pl.col(name).sum() for name in ("b",))
    (again,) = asked_again([nw.from_native(native)], 1)
    assert again.to_native().collect().rows() == [(2, 5)]


@pytest.mark.xdist_group("spark")
def test_a_query_with_an_unknown_part_is_made_anew(table):
    """A column of a table without rows is none of the table, and nobody said of an
    unknown table that it is public.
    """
    scan = partial(BACKEND.adopt(table.select("u", "n")).scan, ["u", "n"])

    def rows():
        return BACKEND.rehearsed(nw.from_native(scan(empty=True)), scan).to_native()

    def again(native):
        return asked_again([nw.from_native(native)], 1)

    first, second = rows().columns
    (same,) = again(rows().where(f"{first} IS NOT NULL").select(first, second))
    assert same.to_native().count() == TABLE["u"].drop_nulls().len()
    bound = rows()
    assert again(bound.select(bound[first])) is None
    assert again(rows().join(table.sparkSession.range(3).toDF(first), on=[first])) is None
    assert again(rows().withColumnRenamed(first, "other")) is None
    assert again(rows().join(rows().select(functions.col(first)), on=[first])) is not None
