"""Ctrl-C inside an engine stays a KeyboardInterrupt, whatever the engine makes
of it, and is no failed release.

Each table computes its rows by a function of Python, which presses Ctrl-C while the engine reads
them. Python's own exception goes through the engine, which puts one of its own in its place, or
drops it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import ibis
import polars as pl
import pytest

import dpframe as dp
from dpframe.engine import attended
from dpframe.errors import EngineError

_HELD = []
ROWS = pl.DataFrame({"u": [1, 2, 3], "x": [1.0, 2.0, 3.0]})


def _in_polars(press):
    def read(rows):
        if rows.height:
            press()
        return rows

    return ROWS.lazy().map_batches(read, schema=ROWS.schema)


def _in_sqlite(press):
    backend = ibis.sqlite.connect()
    backend.con.create_function("pressed", 1, lambda x: press() or x)
    backend.con.execute("CREATE TABLE held (u INTEGER, x DOUBLE)")
    backend.con.executemany("INSERT INTO held VALUES (?, ?)", ROWS.rows())
    backend.con.execute("CREATE TEMPORARY VIEW visits AS SELECT u, pressed(x) AS x FROM held")
    schema = ibis.schema({"u": "int64", "x": "float64"})
    return backend.sql("SELECT u, x FROM temp.visits", schema=schema)


def _in_duckdb(press):
    connection = duckdb.connect()
    _HELD.append(connection)  # in DuckDB 1 a relation does not hold its own
    connection.create_function("pressed", lambda x: press() or x, ["DOUBLE"], "DOUBLE")
    connection.execute("CREATE TABLE held (u INTEGER, x DOUBLE)")
    connection.executemany("INSERT INTO held VALUES (?, ?)", ROWS.rows())
    return connection.sql("SELECT u, pressed(x) AS x FROM held")


TABLES = {"duckdb": _in_duckdb, "polars": _in_polars, "sqlite": _in_sqlite}


def released(table, handler):
    """What a release raises, with this handler of Ctrl-C, and its budget."""
    before = signal.signal(signal.SIGINT, handler)
    budget = dp.Budget(epsilon=1)
    try:
        frame = dp.protect(table, unit="u", budget=budget)
        frame.sum("x", bounds=(0, 5), max_rows=1).release(epsilon=0.5)
    except BaseException as error:
        return error, budget
    finally:
        signal.signal(signal.SIGINT, before)
    return None, budget


class TimeIsOverError(Exception):
    """What a handler of the user's may raise, such as that of a time limit."""


@pytest.mark.parametrize("engine_name", TABLES)
def test_an_interrupt_inside_an_engine_is_no_failure(engine_name):
    error, budget = released(
        TABLES[engine_name](lambda: os.kill(os.getpid(), signal.SIGINT)), signal.default_int_handler
    )
    assert type(error) is KeyboardInterrupt
    assert error.__cause__ is None
    assert error.__context__ is None
    assert budget.failures == (0, 0)


@pytest.mark.parametrize("engine_name", TABLES)
def test_an_error_inside_an_engine_is_a_failure(engine_name):
    """The negative control: the same function, and an exception that no signal raised."""

    def broken():
        raise ValueError("cell")

    error, budget = released(TABLES[engine_name](broken), signal.default_int_handler)
    assert type(error) is EngineError
    assert budget.failures == (1, 1)


def test_another_exception_of_a_handler_is_as_it_was_raised():
    def over(*_):
        raise TimeIsOverError

    error, _ = released(_in_sqlite(lambda: os.kill(os.getpid(), signal.SIGINT)), over)
    assert type(error) is TimeIsOverError


PROGRAM = Path(__file__).parent / "interrupted.py"
LONG_QUERIES = (
    "polars",
    "polars_function",
    "pandas",
    "duckdb",
    "duckdb_function",
    "ibis",
    "ibis_function",
    "sqlite",
    "datafusion",
    "dask",
    "dask_threads",
    "postgres",
    "spark",
)
HALF = {"raised": "KeyboardInterrupt", "failures": [0, 0], "status": ["pending"], "spent": 0.5}


@pytest.mark.parametrize(
    "engine_name",
    [
        pytest.param(name, marks=() if name == "duckdb" else pytest.mark.long)
        for name in LONG_QUERIES
    ],
)
def test_an_interrupt_ends_a_query_that_computes_for_minutes(engine_name, request):
    """In a process of its own, a second after the charge.
    The query would take more than twice the time limit.
    """
    server = [request.getfixturevalue("postgres_server")] if engine_name == "postgres" else []
    command = [sys.executable, PROGRAM, engine_name, *server]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240)
    said = json.loads(ended.stdout.splitlines()[-1])
    assert {name: said[name] for name in HALF} == HALF


@pytest.mark.parametrize("stops", [True, False])
def test_a_query_that_does_not_stop_is_left_behind(stops, monkeypatch):
    monkeypatch.setattr(attended, "_PATIENCE", 0.2)
    told, left = threading.Event(), threading.Event()

    def query():
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        (told if stops else left).wait()

    with pytest.raises(KeyboardInterrupt):
        attended.attended(query, told.set)
    assert told.is_set()
    left.set()


def test_a_query_in_another_thread_runs_there():
    seen = []
    thread = threading.Thread(
        target=lambda: seen.append(attended.attended(threading.current_thread))
    )
    thread.start()
    thread.join()
    assert seen == [thread]
    assert attended.attended(threading.current_thread) is not threading.current_thread()


def test_an_error_of_a_query_is_that_of_the_call():
    def broken():
        raise ValueError("cell")

    with pytest.raises(ValueError, match="cell"):
        attended.attended(broken)
