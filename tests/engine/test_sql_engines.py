"""Properties of engines other than Polars: hashes, names, connections,
refusals, and messages of failures.
"""

from __future__ import annotations

import random

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from scipy import stats

import dpframe as dp
from dpframe import engine as rooms
from dpframe.engine.backends import backend_of
from dpframe.errors import (
    DpFrameError,
    DpFrameWarning,
    EngineError,
    InvalidArgument,
    UnknownColumn,
    UnsupportedOperation,
)
from inside import question_of
from strategies import as_frame, check_claims, random_plan, random_question, random_rows

CANARY = "canary-7b1f"
SQL = ("duckdb", "ibis", "postgres", "sqlite", "datafusion", "spark")


def _plain(rows):
    return as_frame(rows).with_columns(pl.col("level").cast(pl.String))


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 12))]
)
def test_claims_hold_where_groups_are_chosen_by_hash(engine, seed):
    rng = random.Random(seed)
    rows, plan = random_rows(rng), random_plan(rng)
    left_out = rng.choice([row[0] for row in rows])
    other = [row for row in rows if row[0] != left_out]

    def asked(rows, ask):
        return ask(plan(dp.protect(engine(_plain(rows)), unit="u")))

    for _ in range(20):
        ask = random_question(rng)
        try:
            first = asked(rows, ask)
        except DpFrameError:
            continue
        check_claims(first, asked(other, ask), salt=rng.getrandbits(64))
        return


def _hashes(frame, salt):
    rows = nw.from_native(frame).select(u0=nw.col("s0"), k0=nw.col("s1"))
    backend = backend_of(rows)
    (found,) = backend.collect([backend.keyed_hash(rows, ["u0", "k0"], salt, "h")])
    return found.sort("u0", "k0")


def _pairs(units, keys):
    return pl.DataFrame(
        {
            "u": [u for u in range(units) for _ in range(keys)],
            "k": [f"k{k}" for k in range(keys)] * units,
        }
    )


@pytest.mark.one_in(2)
@pytest.mark.spark
def test_the_hash_favours_no_key_and_no_unit(engine):
    """Which of 8 keys has a unit's lowest hash, which of three units a key's, and the
    order of three keys: chi-square.

    False alarms: 18 tests at 1e-8 each. The negative control is a hash that always chooses the
                  first key.
    """
    table = _pairs(4000, 8)
    data = rooms.adopt(engine(table))
    rows = (
        data.scan(["u", "k"]) if data.names else pl.LazyFrame(table).rename({"u": "s0", "k": "s1"})
    )
    for salt in (1, 2**64 - 1):
        hashes = _hashes(rows, salt)["h"].to_numpy().reshape(4000, 8)
        lowest = np.bincount(hashes.argmin(axis=1), minlength=8)
        assert stats.chisquare(lowest).pvalue > 1e-8
        units = np.bincount(hashes[:3999].reshape(1333, 3, 8).argmin(axis=1).ravel(), minlength=3)
        assert stats.chisquare(units).pvalue > 1e-8
        orders = np.unique(hashes[:, :3].argsort(axis=1), axis=0, return_counts=True)[1]
        assert len(orders) == 6
        assert stats.chisquare(orders).pvalue > 1e-8
        assert len(np.unique(hashes)) == hashes.size
    constant = np.bincount(np.zeros(4000, int), minlength=8)
    assert stats.chisquare(constant).pvalue < 1e-8


def test_another_salt_is_another_choice(engine):
    table = _pairs(50, 8)
    data = rooms.adopt(engine(table))
    rows = (
        data.scan(["u", "k"]) if data.names else pl.LazyFrame(table).rename({"u": "s0", "k": "s1"})
    )
    first, again, other = (_hashes(rows, salt)["h"].to_list() for salt in (5, 5, 6))
    assert first == again
    assert set(first).isdisjoint(other)


# Names and places


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "names",
    [("n", "k0"), ("t0", "q0"), ("u0", "v0"), ("h", "r"), ("C", "W"), ("a.b", "m 0"), ('q"', "`")],
)
def test_no_name_of_the_user_meets_one_of_ours(engine, names):
    first, second = names
    table = pl.DataFrame({"unit": [1, 1, 2], first: [1, 1, 2], second: [5.0, 6.0, 7.0]})
    private = dp.protect(engine(table), unit="unit")
    query = private.group_by(first, keys=[1, 2], max_groups=1, max_rows_per_group=2).agg(
        c=dp.count(), s=dp.sum(second, bounds=(0, 8))
    )
    found = rooms.totals(question_of(query), 1)
    assert found.values[0].tolist() == [2, 1]


_ODD = [
    " ",
    "'",
    '"',
    "`",
    "\\",
    "a b",
    "a.b",
    "a,b",
    "a;--",
    "(a)",
    "[a]",
    "{x}",
    "%",
    "?",
    "$1",
    "#",
    "\n",
    "*a",
    "^a",
    "a$",
]
_ODD += [
    "é",
    "e\u0301",
    "日本",
    "🙂",
    "select",
    "count(1)",
    "rowid",
    "index",
    "s0",
    "u0",
    "k0",
    "v0",
    "n",
    "t0",
    "_1",
    "x" * 200,
]


@pytest.mark.one_in(4)
@pytest.mark.spark
def test_odd_names_are_names(engine):
    # where longer names are cut
    odd = [name for name in _ODD if engine.name != "postgres" or len(name) < 64]
    table = pl.DataFrame(
        {"unit": [1, 1, 2], **{name: [i, i + 1, None] for i, name in enumerate(odd)}}
    )

    def ask(frame):
        private = dp.protect(frame, unit="unit")
        return private.agg(max_rows=2, **{f"{name}!": dp.sum(name, bounds=(0, 99)) for name in odd})

    found = rooms.totals(question_of(ask(engine(table))), 1)
    assert [int(value[0]) for value in found.values] == [
        (2 * i + 1) * 2**20 for i in range(len(odd))
    ]


@pytest.mark.one_in(3)
@pytest.mark.spark
@pytest.mark.parametrize("names", [("n", "N"), ("", "x"), ("ß", "ẞ")])
def test_a_name_that_an_engine_cannot_tell_apart_is_no_column(engine, names):
    """DuckDB renames one of the columns, and a Spark query cannot name either of them."""
    if (engine.name == "postgres" and "" in names) or (engine.name == "sqlite" and "n" in names):
        pytest.skip("the engine has no such name")
    table = pl.DataFrame({"unit": [1, 1, 2], names[0]: [1, 2, 3], names[1]: [4, 5, 6]})
    private = dp.protect(engine(table), unit="unit")
    for name, total in zip(names, (6, 15), strict=True):
        if name in private.columns or engine.name not in SQL:
            query = private.sum(name, bounds=(0, 9), max_rows=2)
            assert rooms.totals(question_of(query), 1).values[0].tolist() == [total * 2**20]
        else:
            with pytest.raises(UnknownColumn):
                private.sum(name, bounds=(0, 9), max_rows=2)


@pytest.mark.parametrize("name", ["*", "^a$", "^.*$"])
def test_a_name_that_is_a_pattern_to_polars_is_refused(engine, name):
    table = pl.DataFrame({"unit": [1, 1, 2], "a": [1, 2, 3]})
    private = dp.protect(engine(table), unit="unit")
    asked = (
        lambda: dp.protect(engine(pl.DataFrame({"unit": [1], "a": [2], name: [3]})), unit="unit"),
        lambda: private.rename({"a": name}),
        lambda: private.with_columns(**{name: dp.col("a")}),
        lambda: private.per_unit(**{name: dp.sum("a")}),
        lambda: private.agg(max_rows=1, **{name: dp.count()}),
        lambda: private.join(pl.DataFrame({"a": [1], name: [3]}), on="a"),
    )
    for call in asked:
        with pytest.raises(InvalidArgument, match="pattern"):
            call()


def test_names_that_differ_in_case_are_one_to_sql():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()  # in DuckDB 1 a relation does not hold its own
    table = connection.sql("SELECT 1 AS u, 2 AS n, 3 AS x")
    assert dp.protect(table, unit="u").columns == ["u", "n", "x"]
    from dpframe.engine.backends.sql import our_names

    assert our_names(["u", "n", "N", "ß", "ss"]) == {"u": "s0"}


def test_rows_do_not_leave_their_place(engine):
    if engine.name not in (*SQL, "dask"):
        return
    table, budget = pl.DataFrame({"u": [1, 2], "x": [1, 2]}), dp.Budget(epsilon=1)
    here = dp.protect(engine(table), unit="u", budget=budget)
    there = dp.protect(table, unit="u", budget=budget)
    with pytest.raises(UnsupportedOperation, match="different places"):
        dp.concat([here, there])
    with pytest.raises(UnsupportedOperation, match="different places"):
        there.join(here.rename({"x": "y"}), on="u")
    assert budget.spent.epsilon == 0


@pytest.mark.parametrize("database", ["duckdb", "sqlite"])
def test_two_databases_in_memory_are_two_places(database):
    """To Ibis they are equal, and so are their tables of one name: one of them was read twice."""
    ibis, budget, frames = pytest.importorskip("ibis"), dp.Budget(epsilon=1), []
    for unit in (1, 2):
        backend = getattr(ibis, database).connect()
        backend.con.execute("CREATE TABLE t (u BIGINT)")
        backend.con.execute(f"INSERT INTO t VALUES ({unit})")
        frames.append(dp.protect(backend.table("t"), unit="u", budget=budget))
    with pytest.raises(UnsupportedOperation, match="different places"):
        dp.concat(frames)
    with pytest.raises(UnsupportedOperation, match="different places"):
        frames[0].join(frames[1], on="u")


def test_types_that_an_engine_has_not_are_refused_where_they_are_typed(engine):
    if engine.name not in SQL:
        return
    budget = dp.Budget(epsilon=1)
    here = dp.protect(engine(pl.DataFrame({"u": [1, 2], "x": [1, 2]})), unit="u", budget=budget)
    with pytest.raises(
        UnsupportedOperation, match="no fixed length there: make it a number before"
    ):
        here.join(
            pl.DataFrame({"x": [1], "d": [None]}, {"x": pl.Int64, "d": pl.Duration("us")}), on="x"
        )
    with pytest.raises(UnsupportedOperation, match="microseconds"):
        here.with_columns(t=dp.lit("2020-01-01 00:00:00").cast(nw.Datetime("ns")))
    assert budget.spent.epsilon == 0


def test_two_connections_are_two_places():
    duckdb = pytest.importorskip("duckdb")
    # held, since in DuckDB 1 a relation does not hold its own
    connections = [duckdb.connect() for _ in range(2)]
    frames = [
        dp.protect(connection.sql("SELECT 1 AS u, 2 AS x"), unit="u") for connection in connections
    ]
    with pytest.raises(UnsupportedOperation, match="one connection"):
        dp.concat(frames)


@pytest.mark.one_in(2)
@pytest.mark.spark
def test_a_public_table_may_live_there(engine):
    table = pl.DataFrame({"u": [1, 1, 2], "k": ["a", "b", "b"]})
    areas = pl.DataFrame({"k": ["b", "a"], "area": [2, 3]})
    query = (
        dp.protect(engine(table), unit="u")
        .join(engine(areas), on="k")
        .sum("area", bounds=(0, 9), max_rows=9)
    )
    assert rooms.totals(question_of(query), 1).values[0].tolist() == [7 * 2**20]


# Released tables


@pytest.mark.one_in(2)
@pytest.mark.spark
def test_an_empty_table_is_released_and_auto_chooses(engine):
    table = pl.DataFrame({"u": [1, 1, 2], "k": ["a", "b", "b"]})
    budget = dp.Budget(epsilon=100, delta=1e-6)
    kind = {"polars": pl, "polars-lazy": pl}.get(engine.name)
    nobody = dp.protect(engine(table.head(0)), unit="u", budget=budget)
    with pytest.warns(DpFrameWarning, match="The released table is empty"):
        out = nobody.group_by("k", max_groups=1).count_units().release(epsilon=1, delta=1e-8)
    assert out.to_polars().shape == (0, 2)
    private = dp.protect(engine(table), unit="u", budget=budget)
    out = (
        private.group_by("k", keys=["a", "b"], limits=dp.Auto())
        .agg(n=dp.count())
        .release(epsilon=50)
    )
    assert out.to_polars()["k"].to_list() == ["a", "b"]
    expected = "polars" if kind is pl else "pyarrow" if engine.name == "pyarrow" else "pandas"
    assert type(out.table).__module__.partition(".")[0] == expected


# Failures


# which computes with few rows while it plans, and has loggers in Java and in Python
@pytest.mark.spark
def test_a_failure_that_only_rows_cause_shows_nothing(engine, capfd):
    """A cast that the user wrote before the table was protected fails on a cell."""
    table = pl.DataFrame({"u": [1, 2], "s": ["5", CANARY], "x": [1, 2]})
    native = engine(table)
    if engine.name == "duckdb":
        native = native.project("u, CAST(s AS BIGINT) AS s")
    elif engine.name in ("ibis", "postgres"):
        native = native.mutate(s=native.s.cast("int64"))
    elif engine.name == "spark":
        native = native.selectExpr("u", "CAST(s AS BIGINT) AS s")
    elif engine.name == "dask":
        native = native.astype({"s": "int64[pyarrow]"})
    else:
        return
    budget = dp.Budget(epsilon=1)
    with pytest.raises(EngineError) as caught:
        dp.protect(native, unit="u", budget=budget).sum("s", bounds=(0, 9), max_rows=1).release(
            epsilon=0.5
        )
    assert (caught.value.__cause__, caught.value.__context__, budget.spent.epsilon) == (
        None,
        None,
        0.5,
    )
    assert CANARY not in str(caught.value) + "".join(capfd.readouterr())


# SQL for databases that are not here


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "bigquery", "snowflake"])
def test_a_query_is_written_in_the_sql_of_other_databases(dialect):
    ibis = pytest.importorskip("ibis")
    from dpframe.engine.compile import compiled

    types = {
        "User": "int64",
        "city": "string",
        "spend": "float64",
        "day": "date",
        "at": "timestamp(6)",
        "yes": "boolean",
    }
    private = dp.protect(ibis.table(types, name="visits"), unit="User")
    private = (
        private.filter(dp.col("at") >= dp.lit("2020-01-01 00:00:00").cast("datetime"))
        if dialect == "duckdb"
        else private
    )
    query = (
        private.with_columns(month=dp.col("day").dt.month(), big=dp.col("spend").floor())
        .join({"city": ["Bonn", "Kiel"], "sea": [False, True]}, on="city")
        .group_by("city", "month", max_groups=2, max_rows_per_group=3, max_rows=4)
        .agg(
            n=dp.count(),
            s=dp.mean("spend", bounds=(0, 100)),
            d=dp.n_unique("day"),
            q=dp.median("big", bounds=(0, 9)),
        )
    )
    made = compiled(question_of(query), 1)
    for frame in [made.main, *made.apart.values()]:
        text = str(ibis.to_sql(frame.to_native(), dialect=dialect))
        assert "visits" in text
        assert "GROUP BY" in text


def test_a_database_without_an_operation_is_refused_at_protect_with_its_name(monkeypatch):
    """A dialect of ours is tested to have them all;
    a database without one is asked what Ibis can write.
    """
    ibis = pytest.importorskip("ibis")

    backend = ibis.duckdb.connect()
    backend.raw_sql("CREATE TABLE t (u BIGINT, x BIGINT)")
    monkeypatch.setattr(type(backend), "name", "another")
    rows = backend.table("t")
    dp.protect(rows, unit="u").sum("x", bounds=(0, 9), max_rows=1)
    monkeypatch.setattr(
        type(backend), "has_operation", lambda _, op: op.__name__ not in ("Hash", "IsNan")
    )
    with pytest.raises(
        UnsupportedOperation, match=r"cannot write Hash, IsNan in the SQL of another.*to_polars"
    ):
        dp.protect(rows, unit="u")


# columns of DuckDB, and what each gives as a key, a number of values and a unit; or the line to
# type
_TYPES = {
    "h": ("(i % 3)::HUGEINT", "CAST", "cast('h', 'int64')"),
    "d": ("((i % 3) * 1.5)::DECIMAL(10, 2)", "", ""),
    "w": ("((i % 3) * 1.5)::DECIMAL(38, 10)", "", ""),
    "n": (
        "TIMESTAMP_NS '2020-01-01 00:00:00.000000001'",
        "CAST",
        "CAST(x AS TIMESTAMP) before dp.protect",
    ),
    "v": ("INTERVAL (i) DAY", "CAST", "EXTRACT(EPOCH FROM x)"),
    "l": ("[i]", "CAST", ""),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("place", ["duckdb", "ibis"])
@pytest.mark.parametrize("name", _TYPES)
def test_a_type_works_or_its_refusal_says_the_line_to_type(place, name):
    duckdb, ibis = pytest.importorskip("duckdb"), pytest.importorskip("ibis")
    backend = ibis.duckdb.connect() if place == "ibis" else None
    connection = duckdb.connect() if backend is None else backend.con
    connection.execute(
        f"CREATE TABLE t AS SELECT i AS u, {_TYPES[name][0]} AS {name} FROM range(9) r(i)"
    )
    frame = dp.protect((connection if backend is None else backend).table("t"), unit="u")
    # which Ibis takes for a decimal
    works = _TYPES[name][1] == "" or (place == "ibis" and name == "h")
    if works:
        grouped = frame.group_by(name, max_groups=1).count_units()
        assert rooms.totals(question_of(grouped), 1).values[0].tolist() == [3, 3, 3]
        assert rooms.totals(question_of(frame.n_unique(name, max_rows=1)), 1).values[
            0
        ].tolist() == [3]
        return
    line = _TYPES[name][2]
    with pytest.raises(DpFrameError) as caught:
        frame.group_by(name, max_groups=1).count_units()
    assert line in str(caught.value)


@pytest.mark.parametrize(
    ("dialect", "word"),
    [("duckdb", "TRY_CAST"), ("bigquery", "SAFE_CAST"), ("clickhouse", "OrNull"), ("mysql", "")],
)
def test_text_is_cast_only_where_no_cell_can_make_it_fail(dialect, word):
    """For MySQL and Snowflake Ibis writes a plain cast, which does not give null."""
    ibis = pytest.importorskip("ibis")
    from dpframe.engine.backends import ibis_checks as ours
    from dpframe.engine.compile import compiled

    table = ibis.table({"u": "int64", "s": "string"}, name="t")
    query = (
        dp.protect(table, unit="u")
        .with_columns(x=dp.col("s").cast("int64"))
        .sum("x", bounds=(0, 9), max_rows=1)
    )
    written = str(ibis.to_sql(compiled(question_of(query), 1).main.to_native(), dialect=dialect))
    assert [name for name in ("TRY_CAST", "SAFE_CAST", "OrNull") if name in written] == (
        [word] if word else []
    )
    assert ours._tries(dialect) == bool(word)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("collation", ["nocase", "noaccent", "nocase.noaccent", "default"])
def test_texts_are_compared_by_their_bytes_whatever_the_collation(collation):
    """With a loose collation, one unit's spelling became the released key, and a
    listed key fell from 50 units to 0.
    """
    connection = pytest.importorskip("duckdb").connect()
    said = f"COLLATE {collation}" if collation != "default" else ""
    if not said:
        connection.execute("SET default_collation = 'nocase'")
    for place in (0, 21, 49):  # the first row, one within, the last
        spelled = f"CASE WHEN i = {place} THEN 'bÖnN' ELSE 'bonn' END"
        connection.execute(
            f"CREATE OR REPLACE TABLE t (id INTEGER, who VARCHAR {said}, city VARCHAR {said})"
        )
        connection.execute(
            f"INSERT INTO t SELECT i, CASE i % 2 WHEN 0 THEN 'A' ELSE 'a' END, {spelled} FROM "
            "range(50) r(i)"
        )
        frame = dp.protect(
            connection.table("t"), unit="id", budget=dp.Budget(epsilon=10**7, delta=0.1)
        )
        listed = (
            frame.group_by("city", keys=["bonn", "bÖnN"], max_groups=1)
            .count_units()
            .release(epsilon=1000)
        )
        assert listed.table["count_units"].tolist() == [49, 1]
        # for one unit
        found = frame.group_by("city", max_groups=1).count_units().release(epsilon=100, delta=1e-12)
        assert found.table["city"].tolist() == ["bonn"]
        assert (
            frame.filter(dp.col("city") == "bonn").count_units().release(epsilon=1000).value == 49
        )
        assert frame.n_unique("city", max_rows=1).release(epsilon=1000).value == 2
    people = dp.protect(connection.table("t"), unit="who", budget=dp.Budget(epsilon=10**7))
    assert people.count_units().release(epsilon=1000).value == 2


def test_no_table_of_the_user_takes_the_place_of_listed_keys():
    """DuckDB looks among its own tables first, and there the keys were called `public`."""
    connection = pytest.importorskip("duckdb").connect()
    connection.execute(
        "CREATE TABLE t AS SELECT i AS id, 'c' || (i % 3) AS city, i % 2 AS g FROM range(100) r(i)"
    )
    connection.execute("CREATE TABLE public AS SELECT 'c2' AS k0, 1::BIGINT AS k1")
    frame = dp.protect(connection.table("t"), unit="id", budget=dp.Budget(epsilon=10**6))
    made = (
        frame.group_by("city", "g", keys=[("c0", 0), ("c1", 1)], max_groups=1)
        .count_units()
        .release(epsilon=1000)
    )
    assert made.table["count_units"].tolist() == [17, 17]


def test_a_connection_that_is_closed_to_python_says_so_before_the_charge():
    connection = pytest.importorskip("duckdb").connect()
    connection.execute(
        "CREATE TABLE t AS SELECT i AS id, 'c' || (i % 3) AS city FROM range(90) r(i)"
    )
    connection.execute("SET enable_external_access = false")
    budget = dp.Budget(epsilon=10**4)
    frame = dp.protect(connection.table("t"), unit="id", budget=budget)
    listed = frame.group_by("city", keys=["c0"], max_groups=1).count_units().release(epsilon=1000)
    assert listed.table["count_units"].tolist() == [30]
    with pytest.raises(UnsupportedOperation, match="enable_external_access"):
        frame.join({"city": ["c0"]}, on="city").count(max_rows=1).release(epsilon=1)
    assert budget.spent.epsilon == 1000


def test_a_connection_finds_public_tables_and_no_other_variables_afterwards():
    """As Ibis does, a user may switch off that a query reads the variables of Python."""
    connection = pytest.importorskip("duckdb").connect()
    connection.execute(
        "CREATE TABLE t AS SELECT i AS id, 'c' || (i % 3) AS city FROM range(90) r(i)"
    )
    connection.execute("SET python_enable_replacements = false")
    frame = dp.protect(connection.table("t"), unit="id", budget=dp.Budget(epsilon=10**4))
    out = frame.join({"city": ["c0"]}, on="city").count(max_rows=1).release(epsilon=1000)
    assert out.value == 30
    assert connection.sql("SELECT current_setting('python_enable_replacements')").fetchall() == [
        (False,)
    ]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("cell", [3, 2**62])
def test_no_cell_makes_fail_what_ibis_takes_for_64_bits(cell):
    """A user's own sum has 128 bits in DuckDB, and a product with 0.5 is a
    decimal. Ibis states other types.
    """
    ibis = pytest.importorskip("ibis")
    backend = ibis.duckdb.connect()
    backend.raw_sql("CREATE TABLE t (u BIGINT, i BIGINT)")
    backend.raw_sql(f"INSERT INTO t VALUES (1, {cell}), (1, {cell}), (2, 1)")
    rows = backend.table("t")
    for made in (rows.group_by("u").agg(z=rows.i.sum()), rows.mutate(z=rows.i * 0.5)):
        frame = dp.protect(made, unit="u")
        squared = frame.with_columns(w=dp.col("z") * dp.col("z"))
        for query in (
            squared.sum("w", bounds=(0, 9), max_rows=1),
            frame.group_by("z", max_groups=1, max_rows_per_group=1).agg(n=dp.count()),
            frame.per_unit(m=dp.mean("z"), s=dp.sum("z")).sum("s", bounds=(0, 9)),
        ):
            rooms.totals(question_of(query), 1)
