"""Spark: the same choice at every retry and on any partition, no job before the charge, and few questions each time."""

from __future__ import annotations

import polars as pl
import pytest

import dpframe as dp
from dpframe import engine as rooms
from questions import QUESTIONS, TABLE, exact, expected, protected

pytestmark = pytest.mark.xdist_group("spark")
_EACH_TIME = ["texts parsed", "clip", "two", "all three", "ranks", "public", "zone"]


@pytest.fixture(scope="module")
def table(spark_session):
    return spark_session.createDataFrame(TABLE.to_arrow()).cache()


@pytest.mark.parametrize("name", _EACH_TIME)
def test_totals_are_those_of_polars(table, name):
    assert exact(QUESTIONS[name](protected(table))) == expected(name)


def _chosen(frame):
    query = dp.protect(frame, unit="u").group_by("k", max_groups=2).count_units()
    found = rooms.totals(query._ask, 11)
    return dict(zip(found.keys["k"].to_list(), found.values[0].tolist(), strict=True))


def _visits():
    units = [u for u in range(40) for _ in range(6)]
    return pl.DataFrame({"u": units, "k": [f"k{(7 * i) % 9}" for i in range(len(units))]})


def test_a_unit_keeps_the_same_groups_on_any_partition(spark_session):
    rows = spark_session.createDataFrame(_visits().to_arrow())
    first = _chosen(rows)
    assert sum(first.values()) == 80
    assert _chosen(rows.repartition(7)) == first
    assert _chosen(rows.repartition(3, "k").orderBy("u")) == first


@pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning")  # of pandas 3, at any Python function
def test_a_task_that_fails_and_runs_again_changes_nothing(spark_session, tmp_path):
    """The first attempt at each partition fails after it has read its rows; master local[2,4] tries again."""
    rows = spark_session.createDataFrame(_visits().to_arrow()).repartition(3, "u")
    marks = str(tmp_path)

    def once(batches):
        import pathlib

        from pyspark import TaskContext

        task = TaskContext.get()
        held = list(batches)
        mark = pathlib.Path(marks) / f"{task.stageId()}-{task.partitionId()}"
        if task.attemptNumber() == 0 and not mark.exists():
            mark.touch()
            raise RuntimeError("the first attempt")
        yield from held

    failing = rows.mapInArrow(once, "u long, k string")
    assert _chosen(failing) == _chosen(rows)
    assert list(tmp_path.iterdir())


def test_nothing_runs_before_the_charge(spark_session, table):
    """Validation analyses and plans the query; the number of Spark's jobs does not move."""
    context = spark_session.sparkContext

    def jobs():
        return len(context.statusTracker().getJobIdsForGroup("watched"))

    budget = dp.Budget(epsilon=10, delta=1e-6)
    context.setJobGroup("watched", "")
    query = dp.protect(table, unit="u", budget=budget).group_by("city", max_groups=2).agg(n=dp.count_units())
    before = jobs()
    rooms.validate(query._ask)
    assert jobs() == before
    query.release(epsilon=1, delta=1e-6)
    assert jobs() > before
