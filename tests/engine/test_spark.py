"""Spark: the choice of groups does not depend on retries or partitions, and
no job runs before the charge.
"""

from __future__ import annotations

import re
from contextlib import contextmanager

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine as rooms
from dpframe.arrays import PlaceCounts
from dpframe.engine.backends import backend_of
from dpframe.engine.backends.spark import BACKEND
from dpframe.engine.compile import compiled
from dpframe.engine.totals import totals
from dpframe.errors import DpFrameError, EngineError, UnsupportedOperation
from inside import question_of
from questions import ABSENT, QUESTIONS, REFUSED, TABLE, exact, expected, protected

pytestmark = pytest.mark.xdist_group("spark")
_EACH_TIME = ["texts parsed", "all three", "zone"]
_AT_LENGTH = [
    pytest.param(n, marks=pytest.mark.long)
    for n in ("clip", "two", "moments", "ranks", "distinct", "public")
]


@pytest.fixture(scope="module")
def table(spark_session):
    return spark_session.createDataFrame(TABLE.to_arrow()).cache()


@pytest.mark.parametrize("name", [*_EACH_TIME, *_AT_LENGTH])
def test_totals_are_those_of_polars(table, name):
    assert exact(QUESTIONS[name](protected(table))) == expected(name)


@pytest.mark.parametrize("name", [name for engine, name in REFUSED if engine == "spark"])
def test_what_is_refused_says_why(table, name):
    with pytest.raises(DpFrameError, match=re.escape(REFUSED["spark", name])):
        QUESTIONS[name](protected(table))


def test_the_lowest_hashes_without_those_that_tie_beyond(spark_session):
    """The rule rank("max") of narwhals: a tie at the border is dropped as a whole."""
    hashes = {1: [5, -3, 5, 9], 2: [7, 7, 7], 3: [-(2**63), 2**63 - 1], 4: [1, 2, 2, 2]}
    table = pl.DataFrame(
        [(u, h) for u, hs in hashes.items() for h in hs], schema=["u0", "h"], orient="row"
    )
    frame = nw.from_native(spark_session.createDataFrame(table.to_arrow()))
    engine = backend_of(frame)
    for most in (1, 2, 3):
        (found,) = engine.collect([engine.lowest(frame, "h", ["u0"], most).select("u0", "h")])
        rank = pl.col("h").rank("max").over("u0")
        assert sorted(found.rows()) == sorted(table.filter(rank <= most).rows())


@pytest.mark.long
@pytest.mark.parametrize("names", ["n", "ndmq"])
def test_a_planner_does_not_look_through_columns_of_columns(table, names):
    """A logarithm is ten columns, each of which reads others twice. Spark puts them in place of
    their names, to move the filter of the keys to the rows, and to find out what the keys of the
    joins come from: then it does not end."""

    def asked(rows):
        groups = protected(rows).with_columns(y=dp.col("x").log().exp().round(0))
        limited = groups.group_by("y", keys=[1.0, 2.0], max_groups=2, max_rows_per_group=3)
        return limited.agg(**{name: aggregates[name] for name in names})

    aggregates = {
        "n": dp.count(),
        "d": dp.n_unique("n"),
        "m": dp.mean("x", (-3, 10)),
        "q": dp.median("x", (-3, 10)),
    }

    assert exact(asked(table)) == exact(asked(TABLE))


def test_hashes_that_share_their_upper_bits(spark_session):
    """For each unit, hashes that share all bits, the upper bits or few bits, with
    the lowest and the highest hash.
    """
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


@pytest.mark.long
def test_many_listed_keys(spark_session):
    texts = [
        "",
        "it's",
        'say "x"',
        "back\\slash",
        "\\n",
        "\n",
        "\0",
        "Düren",
        "🙂",
        "%",
        "${x}",
        *map(str, range(60)),
    ]
    whole = [-(2**63), -(2**63) + 1, 2**63 - 1, *range(60)]
    gaps = [2**63 - 1, *range(0, 60, 2), 31]
    table = pl.DataFrame(
        {
            "u": range(80),
            "s": [*texts, *[None] * (80 - len(texts))],
            "i": [*whole, *range(100, 117)],
        }
    )
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
    found = rooms.totals(question_of(query), 11)
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


@pytest.mark.long
# of pandas 3, at any Python function
@pytest.mark.filterwarnings("ignore:PySpark does not yet:FutureWarning")
def test_a_task_that_fails_and_runs_again_changes_nothing(spark_session, tmp_path):
    """The first attempt at each partition fails after it has read its rows;
    master local[2,4] tries again.
    """
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


@pytest.mark.filterwarnings("ignore:The released table is empty")  # there are few units
def test_nothing_runs_before_the_charge(spark_session, table):
    """Validation analyses and plans the query; the number of Spark's jobs does not move."""
    context = spark_session.sparkContext

    def jobs():
        return len(context.statusTracker().getJobIdsForGroup("watched"))

    budget = dp.Budget(epsilon=10, delta=1e-6)
    context.setJobGroup("watched", "")
    query = (
        dp.protect(table, unit="u", budget=budget)
        .group_by("city", max_groups=2)
        .agg(n=dp.count_units())
    )
    before = jobs()
    rooms.validate(question_of(query))
    assert jobs() == before
    query.release(epsilon=1, delta=1e-6)
    assert jobs() > before


@contextmanager
def _set(session, settings):
    """A session with other settings for a while."""
    before = {name: session.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            session.conf.unset(name) if value is None else session.conf.set(name, value)


_OTHERWISE = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.session.timeZone": "Pacific/Apia",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.crossJoin.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.groupByAliases": "false",
    "spark.sql.orderByOrdinal": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.ansi.enforceReservedKeywords": "true",
}


@pytest.mark.parametrize(
    "name", ["arithmetic", pytest.param("texts parsed", marks=pytest.mark.long)]
)
def test_settings_of_the_session_have_no_say(spark_session, table, name):
    with _set(spark_session, _OTHERWISE):
        assert exact(QUESTIONS[name](protected(table))) == expected(name)


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("setting", [*_OTHERWISE, None])
def test_no_setting_of_the_session_has_a_say(spark_session, table, setting, part):
    """Every fourth question, so that each turn asks some of them under each
    setting, and all turns ask all.
    """
    settings = _OTHERWISE if setting is None else {setting: _OTHERWISE[setting]}
    with _set(spark_session, settings):
        for name in list(QUESTIONS)[part::4]:
            if ("spark", name) not in REFUSED and ("spark", name) not in ABSENT:
                assert exact(QUESTIONS[name](protected(table))) == expected(name), name


def test_a_setting_that_drops_the_columns_of_groups_is_refused_before_the_charge(
    spark_session, table
):
    budget, line = (
        dp.Budget(epsilon=1),
        re.escape("spark.conf.set('spark.sql.retainGroupColumns', 'true')"),
    )
    query = (
        dp.protect(table, unit="u", budget=budget)
        .group_by("city", keys=["Bonn"], max_groups=1)
        .count_units()
    )
    with _set(spark_session, {"spark.sql.retainGroupColumns": "false"}):
        with pytest.raises(UnsupportedOperation, match=line):
            dp.protect(table, unit="u")
        with pytest.raises(UnsupportedOperation, match=line):
            query.release(epsilon=0.5)
    assert budget.history() == []
    query.release(epsilon=0.5)


@pytest.mark.long
def test_no_switch_of_spark_has_a_say(spark_session, table):
    """Every setting that is true or false, the other way round:
    the same totals, or a refusal with the line to type.
    """
    c, switches = dp.col, {"true": "false", "false": "true"}

    def ask(private):
        made = private.with_columns(
            y=c("x").abs() * 2, h=c("time").dt.hour(), z=c("s").cast("float64")
        )
        return made.group_by("city", "yes", max_groups=99, max_rows_per_group=2).agg(
            n=dp.count(),
            s=dp.sum("y", (-2.5, 7)),
            k=dp.n_unique("h"),
            q=dp.median("x", (-3, 10)),
            z=dp.sum("z", (0, 9)),
        )

    right, wrong = exact(ask(protected(TABLE))), {}
    for name, value, *_ in spark_session.sql("SET -v").collect():
        if value not in switches or not spark_session.conf.isModifiable(name):
            continue
        with _set(spark_session, {name: switches[value]}):
            try:
                same = exact(ask(protected(table))) == right
            except UnsupportedOperation as error:
                same = f"spark.conf.set({name!r}, {value!r})" in str(error)
            except EngineError:
                same = False
        if not same:
            wrong[name] = value
    assert not wrong


def test_names_that_are_patterns(spark_session):
    """With this setting Spark reads a quoted name in SQL as a
    pattern, and "a.b" matches "axb" too.
    """
    rows = spark_session.sql(
        "SELECT id AS u, id % 5 AS `a.b`, id % 3 AS `axb`, id % 2 AS `x+`, 1 AS `a``b` FROM "
        "range(9)"
    )
    with _set(spark_session, {"spark.sql.parser.quotedRegexColumnNames": "true"}):
        names = {"a": "a.b", "b": "axb", "c": "x+", "d": "a`b"}
        sums = {into: dp.sum(name, bounds=(0, 9)) for into, name in names.items()}
        counts = exact(dp.protect(rows, unit=dp.Rows(1)).agg(**sums))
        assert [list(count.values()) for count in counts.values()] == [[16], [9], [4], [9]]


def test_columns_of_one_name(spark_session):
    """A question cannot name one of the two columns.
    Both are left out, as are names that differ in case alone.
    """
    rows = spark_session.sql("SELECT id AS u, 1 AS x, 2 AS x, 3 AS y, 4 AS Y, 5 AS z FROM range(9)")
    frame = dp.protect(rows, unit="u")
    for name in ("x", "y"):
        with pytest.raises(DpFrameError, match="no column"):
            frame.sum(name, bounds=(0, 9), max_rows=1)
    assert list(exact(dp.protect(rows, unit=dp.Rows(1)).sum("z", bounds=(0, 9))).values()) == [
        {(): 45}
    ]


def test_bytes_that_are_no_text_are_missing(spark_session):
    """Such texts were returned as a key that could not be read, after the
    charge, and the error showed them.
    """
    rows = spark_session.sql(
        "SELECT id AS u, CAST(IF(id % 2 = 0, X'ff41', X'42') AS STRING) AS t FROM range(40)"
    )
    budget = dp.Budget(epsilon=1e9, delta=0.5)
    query = dp.protect(rows, unit="u", budget=budget).group_by("t", max_groups=1).count_units()
    assert query.release(epsilon=1e6, delta=1e-6).table.to_dict("list") == {
        "t": ["B"],
        "count_units": [20],
    }
    assert list(exact(dp.protect(rows, unit=dp.Rows(1)).count("t")).values()) == [{(): 20}]
    assert list(exact(dp.protect(rows, unit="t").count_units()).values()) == [{(): 1}]


def test_texts_are_compared_by_their_bytes(spark_session):
    """Texts are compared by bytes for every collation:
    in keys, filters, joins, and in computed texts.
    """
    texts = ["bonn", "BONN", "Bonn", "kiel", "Kiel"]
    spelled = " ".join(f"WHEN {i} THEN '{text}'" for i, text in enumerate(texts))
    rows = spark_session.sql(f"SELECT id AS u, CASE id % 5 {spelled} END AS t FROM range(10)")
    area, t = {"t": texts[:4], "z": ["q", "Q", "r", "k"]}, dp.col("t")

    def answers(frame):
        frame = dp.protect(frame, unit="u")
        made = frame.with_columns(
            e=t == "bonn", i=t.is_in(texts[:2]), b=t.str.contains("B"), h=t.str.starts_with("k")
        )
        return [
            exact(made.agg(max_rows=1, e=dp.sum("e"), i=dp.sum("i"), b=dp.sum("b"), h=dp.sum("h"))),
            exact(frame.group_by("t", max_groups=9).count_units()),
            exact(frame.join(pl.DataFrame(area), on="t").group_by("z", max_groups=9).count_units()),
        ]

    plain = answers(pl.DataFrame({"u": range(10), "t": [texts[i % 5] for i in range(10)]}))
    for collation in ("UTF8_LCASE", "UNICODE_CI"):
        assert answers(rows.selectExpr("u", f"CAST(t AS STRING COLLATE {collation}) AS t")) == plain


@pytest.mark.long
def test_rows_are_added_up_before_they_are_moved(spark_session):
    """A unit or a group with most of the rows is added up where its rows
    lie, so no task gets all of them.

    There are three shuffles: of partials by unit and group, of partials by unit, and of sums by
    group.
    """
    rows = pl.DataFrame(
        {"u": [1] * 900 + [2, 3], "g": ["a", "b", "c"] * 300 + ["a", "b"], "x": [1.0] * 902}
    )
    frame = spark_session.createDataFrame(rows.to_arrow())
    query = dp.protect(frame, unit="u").group_by(
        "g", keys=["a", "b", "c"], max_groups=2, max_rows_per_group=2
    )
    query = query.agg(n=dp.count(), s=dp.sum("x", bounds=(0, 1)))
    plan = (
        compiled(question_of(query), 1)
        .main.to_native()
        ._jdf.queryExecution()
        .executedPlan()
        .toString()
    )
    lines = plan.splitlines()
    moved = [i for i, line in enumerate(lines) if "Exchange" in line]
    assert len(moved) == 3
    assert "partial_count" in lines[moved[-1] + 1]  # the rows that are read
    assert "partial_sum" in lines[moved[0] + 1]


def _with_equal_hashes(self, frame, columns, salt, into):
    return self.computed(frame, f"pmod(xxhash64({', '.join(columns)}), 7)", into)


@pytest.mark.long
@pytest.mark.parametrize("limits", [(2, 9, 2), (3, 4, 3), (9, 9, 2)])
@pytest.mark.parametrize("equal", [False, True])
def test_rows_are_kept_by_windows_as_by_partials(spark_session, monkeypatch, limits, equal):
    """Medians and modes are the same by one pass over sorted rows and by
    partials that the rows are joined to.

    Also where many groups of a unit have equal hashes, which drops them at the border.
    """
    engine, random = type(BACKEND), np.random.default_rng(3)
    rows = pl.DataFrame(
        {
            "u": random.integers(0, 40, 900),
            "g": random.integers(0, 11, 900),
            "x": random.integers(0, 6, 900),
        }
    )
    frame = dp.protect(spark_session.createDataFrame(rows.to_arrow()), unit="u")
    groups, most, each = limits
    by = frame.group_by(
        "g", keys=list(range(10)), max_groups=groups, max_rows=most, max_rows_per_group=each
    )
    question = question_of(
        by.agg(n=dp.count(), m=dp.median("x", bounds=(0, 5)), o=dp.mode("x", keys=[1, 2, 4]))
    )
    if equal:
        monkeypatch.setattr(engine, "keyed_hash", _with_equal_hashes)
    found = totals(question, 5)
    monkeypatch.setattr(engine, "keeps_by_windows", False)
    for one, other in zip(found.values, totals(question, 5).values, strict=True):
        parts = [
            (v.groups, v.places, v.numbers) if isinstance(v, PlaceCounts) else (v,)
            for v in (one, other)
        ]
        assert all(np.array_equal(*pair) for pair in zip(*parts, strict=True))
        assert parts[0][-1].sum() > 0


# the question, and the most jobs (with adaptive execution) and the shuffles that are stated
_ASKED = {
    "sum": (lambda f: f.sum("x", bounds=(0, 6), max_rows=3), (3, 2)),
    "mean": (
        lambda f: f.group_by("g", keys=["a", "b"], max_groups=2, max_rows=4).agg(
            n=dp.count(), m=dp.mean("x", bounds=(0, 6))
        ),
        (4, 3),
    ),
    "quantile": (
        lambda f: f.group_by("g", keys=["a", "b"], max_groups=2, max_rows=4).quantile(
            "x", 0.5, bounds=(0, 6)
        ),
        (3, 2),
    ),
    "different": (lambda f: f.n_unique("g", max_rows=3), (7, 5)),
    "found": (lambda f: f.group_by("g", max_groups=2, max_rows=4).count(), (4, 3)),
    "crosstab": (
        lambda f: f.crosstab("g", "h", keys={"g": ["a", "b"], "h": ["x", "y"]}, max_rows=4),
        (4, 3),
    ),
    "table of keys": (
        lambda f: f.group_by(
            "g", keys=[f"k{i}" for i in range(300)], max_groups=2, max_rows=4
        ).count(),
        (5, 3),
    ),
}


def _stated(query):
    """The jobs and shuffles that `explain` states."""
    last = str(query.explain()).splitlines()[-1]
    return tuple(
        map(
            int,
            re.fullmatch(r"On Spark, .* most (\d+) jobs?, .* (\d+) shuffles?\. .*", last).groups(),
        )
    )


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The released table is empty")
def test_a_release_starts_the_jobs_and_shuffles_that_are_stated(spark_session, tmp_path):
    """Real jobs and shuffles are at most those that `explain` states, and stating them runs no job.

    Without adaptive execution, a job has one stage for each shuffle that it makes, and one for its
    result.
    """
    context, tracker = spark_session.sparkContext, spark_session.sparkContext.statusTracker()
    rows = pl.DataFrame(
        [(i % 50, "ab"[i % 2], "xyx"[i % 3], float(i % 7)) for i in range(400)],
        ["u", "g", "h", "x"],
        orient="row",
    )
    spark_session.createDataFrame(rows.to_arrow()).write.parquet(str(tmp_path / "rows"))
    frame = dp.protect(
        spark_session.read.parquet(str(tmp_path / "rows")),
        unit="u",
        budget=dp.Budget(epsilon=99, delta=0.1),
    )
    try:
        for adaptive in ("true", "false"):
            with _set(spark_session, {"spark.sql.adaptive.enabled": adaptive}):
                for name, (ask, most) in _ASKED.items():
                    group, query = f"{adaptive} {name}", ask(frame)
                    context.setJobGroup(group, "")
                    jobs, shuffles = _stated(query)
                    assert not tracker.getJobIdsForGroup(group), name
                    assert shuffles == most[1], name
                    assert jobs == (most[0] if adaptive == "true" else most[0] - shuffles), name
                    query.release(epsilon=1, delta=1e-6 if name == "found" else None)
                    started = tracker.getJobIdsForGroup(group)
                    assert 1 <= len(started) <= jobs, name
                    stages = {
                        stage for job in started for stage in tracker.getJobInfo(job).stageIds
                    }
                    ran = [
                        s
                        for s in stages
                        if (info := tracker.getStageInfo(s)) and info.numCompletedTasks
                    ]
                    if adaptive == "false":
                        assert 1 <= len(ran) - len(started) <= shuffles, name
    finally:
        context.setJobGroup("other", "")


def test_other_engines_state_no_jobs():
    frame = dp.protect(_visits(), unit="u")
    assert "jobs" not in str(frame.count(max_rows=2).explain())
