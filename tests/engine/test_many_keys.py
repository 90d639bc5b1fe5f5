"""Many listed keys come to a database as a table, and the totals are those of a short list."""

from __future__ import annotations

import datetime as dt
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

import dpframe as dp
from dpframe.engine import totals, validate
from dpframe.engine.backends import sql
from dpframe.engine.compile import compiled
from inside import question_of
from strategies import answer

DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days=i) for i in range(400)]
# some are keys, and some are nearly
TEXTS = ["", "bonn ", "a\u0301", "\u00e1", "it's", 'say "x"', "back\\", "Bonn"]
COLUMNS = {
    "whole": [*(7 * i for i in range(250)), 2**63 - 1, -(2**63)],
    "text": [
        "Ärger",
        "bonn",
        "BONN",
        "",
        "bonn ",
        "a\u0301",
        "it's",
        'say "x"',
        "back\\",
        *(f"key {i}" for i in range(250)),
    ],
    "real": [0.0, *(i / 8 + 1 for i in range(250))],
    "day": DAYS[::2][:150] + DAYS[1::4],
}
ROWS = {
    "u": [1, 1, 1, 2, 2, 3, 3, None, 4, 4, 4, 4, 5, 5, 5, 5],
    "whole": [0, 7, None, 7, 8, 7 * 249, 7 * 250, 0, 2**63 - 1, -(2**63), 2**63 - 2, *[1] * 5],
    "text": ["bonn", "BONN", None, "Ärger", "ärger", "key 249", "key 250", "bonn", *TEXTS],
    "real": [-0.0, 0.0, None, 1.125, 1.13, float("nan"), 32.125, 0.0, *[0.3] * 8],
    "day": [
        DAYS[0],
        DAYS[2],
        None,
        DAYS[2],
        DAYS[399],
        DAYS[1],
        DAYS[397],
        DAYS[0],
        *[DAYS[399]] * 8,
    ],
}
FRAME = pl.DataFrame(
    ROWS, {"u": pl.Int64, "whole": pl.Int64, "text": pl.String, "real": pl.Float64, "day": pl.Date}
)


def counted(table, column, *null):
    """The raw numbers of rows of the groups that have any."""
    query = (
        dp.protect(table, unit="u")
        .group_by(column, keys=[*COLUMNS[column], *null], max_rows=4)
        .count()
    )
    validate(question_of(query))
    (groups,) = answer(query)
    return {key: total for (key,), total in groups.items() if total}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("column", COLUMNS)
def test_totals_are_those_of_a_short_list(engine, column):
    cells = (
        FRAME.drop_nulls("u")
        .with_columns(pl.col("real").fill_nan(None))
        .get_column(column)
        .to_list()
    )
    for null in ([], [None]):
        kept = [cell for cell in cells if cell in {*COLUMNS[column], *null}]
        assert counted(engine(FRAME), column, *null) == {
            cell: kept.count(cell) * 2**20 for cell in kept
        }


def test_the_text_of_a_query_does_not_grow_with_the_keys():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    table = connection.sql("SELECT 1 AS u, 'key' AS g")
    sizes = []
    for number in (sql.MOST_CONSTANTS + 1, 3000):
        query = (
            dp.protect(table, unit="u")
            .group_by("g", keys=[f"key {i}" for i in range(number)], max_rows=2)
            .count()
        )
        sizes.append(len(compiled(question_of(query), 1).main.to_native().sql_query()))
    assert abs(sizes[1] - sizes[0]) < 100


def test_without_a_way_for_tables_the_keys_are_constants():
    """A connection that cannot read tables of Python, and one that only reads a database."""
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect(
        config={"enable_external_access": "false", "python_enable_replacements": "false"}
    )
    connection.execute("CREATE TABLE t AS SELECT 1 AS u, 'key 3' AS text")
    assert counted(connection.table("t"), "text") == {"key 3": 2**20}


@pytest.mark.long
def test_a_postgres_session_that_only_reads_gets_constants(in_postgres, stored_in_postgres):
    table = stored_in_postgres(FRAME)
    in_postgres.raw_sql("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY").close()
    try:
        assert counted(table, "whole") == counted(FRAME, "whole")
    finally:
        in_postgres.raw_sql("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE").close()


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        ([1, 2, None, 2, 9], [2, 1, 5]),
        (["a", "b", None, "b", "z"], ["b", "", "a"]),
        ([True, False, None, False, True], [False, True]),
        ([1, 2, None, 2, 9], [2, None, 1]),
        ([0.0, -0.0, None, 2.5, float("nan")], [0.0, 2.5]),
    ],
)
def test_sums_are_found_for_a_few_keys_as_by_a_join(values, keys, monkeypatch):
    totals_room = sys.modules["dpframe.engine.totals"]
    rows = pl.DataFrame({"u": range(5), "k": values, "x": [1.0, 2.0, 4.0, 8.0, 16.0]})
    groups = dp.protect(rows, unit="u").group_by("k", keys=keys, max_groups=1, max_rows=1)
    query = groups.agg(s=dp.sum("x", bounds=(0, 20)), n=dp.count())
    looked_up = query.exact_totals(rows)
    monkeypatch.setattr(totals_room, "_FEW", -1)
    assert query.exact_totals(rows) == looked_up


HOSTILE = [
    "",
    "it's",
    'say "x"',
    "back\\slash",
    "%s",
    "%(k0)s",
    "{k0}",
    "é",
    "e\u0301",
    "bonn",
    "BONN",
    "bonn ",
    "\n",
    "🙂",
]
EDGES = {
    "s": [*HOSTILE, None],
    "i": [-(2**63), 2**63 - 1, 0, -1, *range(4, 14), None],
    "x": [
        -0.0,
        5e-324,
        1e308,
        0.1,
        1 / 3,
        -1e308,
        float("nan"),
        *(i / 7 for i in range(1, 8)),
        None,
    ],
    "d": [dt.date(1, 1, 1), dt.date(9999, 12, 31), *DAYS[:12], None],
    "b": [True, False, None] * 5,
}
LISTED = {
    "s": [*HOSTILE, None, *(f"key {i}" for i in range(250))],
    "i": [-(2**63), 2**63 - 1, 2**63 - 2, 0, -1, *range(4, 300), None],
    "x": [0.0, 5e-324, 1e308, 0.1, 1 / 3, -1e308, *(i / 7 for i in range(1, 250)), None],
    "d": [dt.date(1, 1, 1), dt.date(9999, 12, 31), *DAYS[:300]],
    "b": [True, False, None],
}
HARD = pl.DataFrame(
    {"u": range(15), **EDGES}, schema_overrides={"u": pl.Int64, "i": pl.Int64}, strict=False
)


def hard(table, *columns):
    """The raw numbers of rows of the groups by some columns that have any."""
    frame = dp.protect(table, unit="u").group_by(
        *columns, keys={name: LISTED[name] for name in columns}, max_rows=4
    )
    query = frame.count()
    validate(question_of(query))
    (groups,) = answer(query)
    return {key: total for key, total in groups.items() if total}


_SETS = [("s",), ("i",), ("x",), ("d",), ("s", "b"), ("x", "b")]


@pytest.mark.long
@pytest.mark.parametrize("columns", _SETS, ids="-".join)
def test_hard_keys(engine, columns):
    want = hard(HARD, *columns)
    assert len(want) > 9
    assert hard(engine(HARD), *columns) == want


def test_no_table_stays_in_a_connection_of_duckdb():
    pytest.importorskip("duckdb")
    ibis = pytest.importorskip("ibis")
    backend = ibis.duckdb.connect()
    backend.raw_sql("CREATE TABLE t AS SELECT 1 AS u, 'key 3' AS text, 2.0 AS x")
    assert counted(backend.table("t"), "text") == {"key 3": 2**20}
    query = dp.protect(backend.table("t"), unit="u").group_by(
        "text", keys=COLUMNS["text"], max_rows=2
    )
    totals(
        question_of(query.agg(n=dp.count(), q=dp.quantile("x", 0.5, bounds=(0, 9)))), 11
    )  # two frames with one table of keys
    left = backend.con.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    assert left == []


@pytest.mark.long
def test_no_table_stays_in_a_session_of_postgres(in_postgres, stored_in_postgres):
    table = stored_in_postgres(HARD)
    stored = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ 'memtable|dpframe'"
    assert hard(table, "s", "b") == hard(HARD, "s", "b")
    with in_postgres.con.transaction():
        assert hard(table, "i") == hard(HARD, "i")
    query = dp.protect(table, unit="u").group_by("s", keys=LISTED["s"], max_rows=2)
    totals(question_of(query.agg(n=dp.count(), q=dp.quantile("x", 0.5, bounds=(0, 9)))), 11)
    assert in_postgres.con.execute(stored).fetchall() == []


@pytest.mark.long
def test_threads_share_a_session_of_postgres(stored_in_postgres):
    table, asked = stored_in_postgres(HARD), [*_SETS, *_SETS]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda columns: hard(table, *columns), asked))
    assert answers == [hard(HARD, *columns) for columns in asked]


def test_types_are_stated_while_no_other_thread_has_the_session_of_postgres(postgres_server):
    from dpframe.engine.backends.ibis_checks import database_of
    from dpframe.engine.backends.ibis_dialect import dialect_of
    from dpframe.engine.backends.postgres.dialect import alone
    from postgres_tables import connected, stores

    with connected(postgres_server) as backend:
        table, stated = stores(backend)(HARD), []
        other = threading.Thread(target=lambda: stated.append(dialect_of(table).stated(table)))
        with alone(database_of(table)):
            other.start()
            other.join(0.5)
            assert not stated
        other.join()
        assert stated[0].keys() == {*table.columns}


@pytest.mark.long
def test_names_of_the_users_schema_have_no_say(in_postgres, stored_in_postgres):
    """A schema of the user's with a type, a function and a table whose
    names dpframe or the server uses.
    """
    table, run = stored_in_postgres(HARD), in_postgres.con.execute
    run("CREATE SCHEMA mine")
    run("CREATE FUNCTION mine.lower(text) RETURNS text LANGUAGE sql AS 'SELECT 1::text'")
    run("CREATE DOMAIN mine.text AS pg_catalog.text CHECK (false)")
    run("CREATE TABLE mine.k0 (x int)")
    try:
        run("SET search_path TO mine")
        assert hard(table, "s", "b") == hard(HARD, "s", "b")
    finally:
        run("RESET search_path")
        run("DROP SCHEMA mine CASCADE")
