"""Spark: the same choice at every retry and on any partition, no job before the charge, and few questions each time."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine as rooms
from dpframe.engine.backends import backend_of
from dpframe.errors import DpFrameError
from questions import QUESTIONS, REFUSED, TABLE, exact, expected, protected

pytestmark = pytest.mark.xdist_group("spark")
_EACH_TIME = ["texts parsed", "clip", "two", "all three", "moments", "ranks", "distinct", "public", "zone"]


@pytest.fixture(scope="module")
def table(spark_session):
    return spark_session.createDataFrame(TABLE.to_arrow()).cache()


@pytest.mark.parametrize("name", _EACH_TIME)
def test_totals_are_those_of_polars(table, name):
    assert exact(QUESTIONS[name](protected(table))) == expected(name)


@pytest.mark.parametrize("name", [name for engine, name in REFUSED if engine == "spark"])
def test_what_is_refused_says_why(table, name):
    with pytest.raises(DpFrameError, match=REFUSED["spark", name]):
        QUESTIONS[name](protected(table))


def test_the_lowest_hashes_without_those_that_tie_beyond(spark_session):
    """By rank("max"), as narwhals has it: a tie at the border drops all of it."""
    hashes = {1: [5, -3, 5, 9], 2: [7, 7, 7], 3: [-(2**63), 2**63 - 1], 4: [1, 2, 2, 2]}
    table = pl.DataFrame([(u, h) for u, hs in hashes.items() for h in hs], schema=["u0", "h"], orient="row")
    frame = nw.from_native(spark_session.createDataFrame(table.to_arrow()))
    engine = backend_of(frame)
    for most in (1, 2, 3):
        (found,) = engine.collect([engine.lowest(frame, "h", ["u0"], most).select("u0", "h")])
        rank = pl.col("h").rank("max").over("u0")
        assert sorted(found.rows()) == sorted(table.filter(rank <= most).rows())


def test_hashes_that_share_their_upper_bits(spark_session):
    """Of each unit, hashes that share all bits, or the upper ones, or few; the lowest and the highest among them."""
    draw, made = np.random.default_rng(5), []
    for unit in range(120):
        bits, shift = [(1, 0), (3, 58), (5, 20), (6, 57), (63, 0)][unit % 5]
        hashes = draw.integers(-(2**bits), 2**bits, int(draw.integers(1, 60))) << shift
        ends = [-(2**63), 2**63 - 1] if unit % 3 == 0 else []
        made += [(unit, h) for h in [*hashes.tolist(), *ends]]
    table = pl.DataFrame(made, schema={"u0": pl.Int64, "h": pl.Int64}, orient="row")
    frame = nw.from_native(spark_session.createDataFrame(table.to_arrow()))
    engine = backend_of(frame)
    for most in (1, 2, 7, 31, 32, 64):
        (found,) = engine.collect([engine.lowest(frame, "h", ["u0"], most).select("u0", "h")])
        rank = pl.col("h").rank("max").over("u0")
        assert sorted(found.rows()) == sorted(table.filter(rank <= most).rows()), most


def test_many_listed_keys(spark_session):
    texts = ["", "it's", 'say "x"', "back\\slash", "\\n", "\n", "\0", "Düren", "🙂", "%", "${x}", *map(str, range(60))]
    whole = [-(2**63), -(2**63) + 1, 2**63 - 1, *range(60)]
    gaps = [2**63 - 1, *range(0, 60, 2), 31]
    table = pl.DataFrame({"u": range(80), "s": [*texts, *[None] * (80 - len(texts))], "i": [*whole, *range(100, 117)]})
    for name, keys in (
        ("s", texts[:-5]),
        ("s", [*texts[:-5], None]),
        ("i", whole[:-5]),
        ("i", whole[1:-5]),
        ("i", gaps),
    ):

        def asked(frame, name=name, keys=keys):
            return dp.protect(frame, unit="u").group_by(name, keys=keys, max_groups=1).count_units()

        there = asked(spark_session.createDataFrame(table.to_arrow()))
        assert exact(there) == exact(asked(table))


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
