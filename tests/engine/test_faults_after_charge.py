"""Faults of the infrastructure after the charge, beside a cell on which the user's own step fails.

Of two neighbouring tables one has a unit whose cell makes the engine fail. What is raised, what the
ledger says of it, and what is logged must not tell which one it was: neither alone, nor while a
connection, a file, a worker or the ledger is gone, a statement is cancelled, or somebody presses
Ctrl-C.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
from postgres_server import restarting_server, server_programs, why_not

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::dpframe.errors.DpFrameWarning")]

LOG = logging.getLogger("dpframe")
totals = importlib.import_module("dpframe.engine.totals")
SOUND = pl.DataFrame({"id": [*range(40)] * 2, "s": [str(n % 7) for n in range(80)]})
CELLS = ("boom", "9" * 30, "7" * 70_000)
NEIGHBOURS = [
    SOUND,
    *(pl.concat([SOUND, pl.DataFrame({"id": [99], "s": [cell]})]) for cell in CELLS),
]
QUESTIONS = {
    "sum": lambda rows: rows.sum("x", bounds=(0, 10), max_rows=2),
    "found keys": lambda rows: rows.group_by("x", max_groups=2, max_rows_per_group=2).agg(
        m=dp.median("x", bounds=(0, 10))
    ),
}


def outcome(table, ask, fault, monkeypatch, budget=None):
    """What is raised and recorded where a fault comes between the
    charge and the reading of rows.
    """
    budget, read = budget or dp.Budget(epsilon=5, delta=1e-3), totals._read

    def after_charge(*arguments):
        fault()
        return read(*arguments)

    query, lines = ask(dp.protect(table, unit="id", budget=budget)), []
    with monkeypatch.context() as patch:
        patch.setattr(totals, "_read", after_charge)
        patch.setattr(LOG, "handle", lambda record: lines.append(record.getMessage()))
        patch.setattr(LOG, "level", logging.INFO)
        problem = None
        try:
            query.release(epsilon=0.5, delta=1e-6)
        except BaseException as error:
            problem = error
    if problem is None:
        return None
    assert problem.__cause__ is problem.__context__ is None
    entries = "gone"
    with suppress(dp.errors.LedgerError):
        entries = [line.status for line in budget.history()], budget.failures
    assert ": charged ε = 0.5" in lines[0], lines
    return (
        type(problem),
        re.sub(r"\d+\.sqlite", "a.sqlite", str(problem)),
        repr(entries),
        tuple(lines),
    )


def hold(made, faults, monkeypatch, *, budget=None, wrong=CELLS):
    """Under each fault all neighbours that raise raise the same.
    Without one, those raise that have a wrong cell.

    Input:  made: a context that gives a table and its faults by name, for a frame; budget: makes
            one for each release; wrong: those of CELLS that the engine cannot read as a number
    """
    told = {}
    for name in faults:
        for asked, ask in QUESTIONS.items():
            for place, frame in enumerate(NEIGHBOURS):
                with made(frame) as (table, break_):
                    paid_from = budget() if budget else None
                    said = outcome(table, ask, break_[name], monkeypatch, paid_from)
                told.setdefault((name, asked), []).append((place, said))
    assert len(told) == len(faults) * len(QUESTIONS)
    for case, outcomes in told.items():
        raised = {said for _, said in outcomes if said is not None}
        assert len(raised) <= 1, (case, raised)
        if case[0] == "nothing":
            fails = [cell in wrong for cell in (None, *CELLS)]
            assert [said is not None for _, said in outcomes] == fails[: len(NEIGHBOURS)], case
    return {case: [said is not None for _, said in outcomes] for case, outcomes in told.items()}


def nothing():
    """No fault: the cell alone."""


def pressed():
    """Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)


@contextmanager
def cancelling(cancel):
    """Cancel whatever runs, over and over, until the table is not needed any more."""
    stop, begun = threading.Event(), threading.Event()

    def work():
        while not stop.is_set():
            if begun.is_set():
                with suppress(Exception):
                    cancel()
            time.sleep(0.001)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield begun.set
    finally:
        stop.set()
        thread.join()


# Files under Polars, DuckDB, Dask and Spark


def file_faults(path):
    content = path.read_bytes()

    def another():
        pl.DataFrame({"id": ["a"], "s": [1.5]}).write_parquet(path)

    def folder():
        path.unlink()
        path.mkdir()

    return {
        "nothing": nothing,
        "ctrl-c": pressed,
        "removed": path.unlink,
        "cut off": lambda: path.write_bytes(content[: len(content) // 2]),
        "overwritten": lambda: path.write_bytes(b"\0" * len(content)),
        "emptied": lambda: path.write_bytes(b""),
        "another table": another,
        "a folder": folder,
    }


def parquet(tmp_path, frame):
    path = tmp_path / "rows" / "rows.parquet"
    shutil.rmtree(path.parent, ignore_errors=True)
    path.parent.mkdir()
    frame.write_parquet(path)
    return path


FILES = (
    "nothing",
    "ctrl-c",
    "removed",
    "cut off",
    "overwritten",
    "emptied",
    "another table",
    "a folder",
)


def _of_polars(path):
    return pl.scan_parquet(path).select("id", x=pl.col("s").cast(pl.Int64))


def _of_duckdb(path):
    relation = pytest.importorskip("duckdb").connect().read_parquet(str(path))
    return relation.select("id, CAST(s AS BIGINT) AS x")


def _of_dask(path):
    frames = pytest.importorskip("dask.dataframe").read_parquet(path)
    return frames.assign(x=frames["s"].astype("int64"))[["id", "x"]]


@pytest.mark.parametrize("read", [_of_polars, _of_duckdb, _of_dask])
def test_a_file_that_is_gone(read, tmp_path, monkeypatch):
    @contextmanager
    def made(frame):
        path = parquet(tmp_path, frame)
        yield read(path), file_faults(path)

    hold(made, FILES, monkeypatch)


FAULTS_OF_SPARK = ("nothing", "ctrl-c", "removed", "killed", "cancelled")


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of Spark, about pandas
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("fault", FAULTS_OF_SPARK)
def test_a_fault_of_spark(fault, spark_session, tmp_path, monkeypatch):
    """A file, a worker or a job that is gone."""
    kill = str(tmp_path / "kill")

    def in_worker(batches):
        if os.path.exists(kill):
            os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    @contextmanager
    def made(frame):
        path = parquet(tmp_path, frame)
        rows = spark_session.read.parquet(str(path)).mapInArrow(in_worker, "id long, s string")
        faults = {
            name: fault for name, fault in file_faults(path).items() if name in FAULTS_OF_SPARK
        }
        faults["killed"] = lambda: open(kill, "w").close()
        with cancelling(spark_session.sparkContext.cancelAllJobs) as faults["cancelled"]:
            yield rows.selectExpr("id", "CAST(s AS BIGINT) AS x"), faults
        if os.path.exists(kill):
            os.remove(kill)

    with monkeypatch.context() as patch:
        patch.setattr(f"{__name__}.NEIGHBOURS", NEIGHBOURS[:3])
        hold(made, [fault], monkeypatch)


def spark_without_its_server(kind, cell, fault, folder):
    """Print what is raised and recorded where the JVM, or the server of Spark
    Connect, is killed after the charge.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.remote("local[2]")
        if kind == "connect"
        else SparkSession.builder.master("local[2]")
    )
    quiet = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "OFF",
    }
    for key, value in {
        **quiet,
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
    }.items():
        builder = builder.config(key, value)
    session, process = builder.getOrCreate(), SparkContext._gateway.proc
    if kind == "connect":
        retries = importlib.import_module("pyspark.sql.connect.client.retries")
        session.client.set_retry_policies([retries.DefaultPolicy(max_retries=1)])

    def killed():
        process.kill()
        process.wait()

    path = parquet(Path(folder), NEIGHBOURS[int(cell)])
    rows = session.read.parquet(str(path)).selectExpr("id", "CAST(s AS BIGINT) AS x")
    with pytest.MonkeyPatch.context() as patch:
        said = outcome(rows, QUESTIONS["sum"], killed if fault == "killed" else nothing, patch)
    print("told:", said and (said[0].__name__, *said[1:]), flush=True)
    os._exit(0)  # there is no JVM that would say goodbye


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_a_server_of_spark_that_is_gone(kind, tmp_path):
    pytest.importorskip("pyspark")
    if kind == "connect":
        pytest.importorskip("grpc_status")
    paths = os.pathsep.join(
        [str(Path(__file__).parent), str(Path(__file__).parent.parent), *sys.path]
    )
    here = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths}
    code = (
        "import sys, warnings; warnings.simplefilter('ignore'); import test_faults_after_charge "
        "as here; "
    )
    code += "here.spark_without_its_server(*sys.argv[1:])"
    told = {}
    for fault, cell in (("nothing", 1), ("killed", 0), ("killed", 1)):
        words = [kind, str(cell), fault, str(tmp_path)]
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            env={**os.environ, **here},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        told[fault, cell] = "".join(done.stdout.partition("told:")[1:]) or done.stderr
    # the last is the cell alone
    assert told["killed", 0] == told["killed", 1] == told["nothing", 1]
    assert "told: ('EngineError'" in told["nothing", 1]


# Databases


FAULTS_OF_DUCKDB = (
    "nothing",
    "ctrl-c",
    "cancelled",
    "closed",
    "dropped",
    "another table",
    "little memory",
    "full disk",
)


@pytest.mark.parametrize("fault", FAULTS_OF_DUCKDB)
def test_a_fault_of_duckdb(fault, monkeypatch):
    duckdb = pytest.importorskip("duckdb")

    @contextmanager
    def made(frame):
        connection = duckdb.connect()
        connection.register("brought", frame.to_arrow())
        connection.execute("CREATE TABLE kept AS SELECT * FROM brought")

        def run(*statements):
            return lambda: [connection.execute(statement) for statement in statements]

        faults = {
            "nothing": nothing,
            "ctrl-c": pressed,
            "closed": connection.close,
            "dropped": run("DROP TABLE kept"),
            "another table": run("DROP TABLE kept", "CREATE TABLE kept (id VARCHAR, s DOUBLE)"),
            "little memory": run("SET temp_directory = ''", "SET memory_limit = '100KB'"),
            "full disk": run("SET memory_limit = '1MB'", "SET max_temp_directory_size = '0KB'"),
        }
        with cancelling(connection.interrupt) as faults["cancelled"]:
            yield connection.table("kept").select("id, CAST(s AS BIGINT) AS x"), faults
        connection.close()

    hold(made, [fault], monkeypatch)


@pytest.mark.parametrize(
    "fault",
    ["nothing", "ctrl-c", "cancelled", "closed", "dropped", "cut off", "overwritten", "locked"],
)
def test_a_fault_of_sqlite(fault, tmp_path, monkeypatch):
    ibis = pytest.importorskip("ibis")
    pytest.importorskip("ibis.backends.sqlite")

    @contextmanager
    def made(frame):
        path = tmp_path / f"{os.urandom(4).hex()}.sqlite"
        backend = ibis.sqlite.connect(path)
        backend.con.execute("CREATE TABLE kept (id BIGINT, s TEXT)")
        backend.con.executemany("INSERT INTO kept VALUES (?, ?)", frame.rows())
        backend.con.execute(
            "CREATE VIEW seen AS SELECT id, CAST(json_extract(s, '$') AS BIGINT) AS x FROM kept"
        )
        backend.con.commit()
        backend.con.execute("PRAGMA cache_size = 0")
        backend.con.execute("PRAGMA busy_timeout = 20")
        other = sqlite3.connect(path)
        size = path.stat().st_size

        def drop():
            other.execute("DROP TABLE kept")
            other.commit()

        faults = {
            "nothing": nothing,
            "ctrl-c": pressed,
            "closed": backend.con.close,
            "dropped": drop,
            "cut off": lambda: os.truncate(path, 100),
            "overwritten": lambda: path.write_bytes(b"\0" * size),
            "locked": lambda: other.execute("BEGIN EXCLUSIVE"),
        }
        with cancelling(backend.con.interrupt) as faults["cancelled"]:
            yield backend.table("seen"), faults
        other.close()

    # SQLite takes a number that is too large as its largest
    hold(made, [fault], monkeypatch, wrong=CELLS[:1])


@pytest.fixture(scope="module")
def crashing():
    if why_not() is not None:
        pytest.skip(why_not())
    pytest.importorskip("ibis.backends.postgres")
    with restarting_server(server_programs()) as server:
        yield server


FAULTS_OF_POSTGRES = (
    "ended",
    "crashed",
    "timeout",
    "full disk",
    "dropped",
    "another table",
    "locked",
    "revoked",
)


@pytest.mark.parametrize("fault", ["nothing", "ctrl-c", "cancelled", *FAULTS_OF_POSTGRES])
def test_a_fault_of_postgres(fault, crashing, monkeypatch):
    import ibis
    import psycopg

    url, restart = crashing
    host = url.rpartition("=")[2]

    @contextmanager
    def made(frame):
        with psycopg.connect(
            host=host, user="dpframe", dbname="postgres", autocommit=True
        ) as other:
            other.execute("DROP TABLE IF EXISTS kept CASCADE")
            other.execute("CREATE TABLE kept (id bigint, s text)")
            with other.cursor().copy("COPY kept FROM STDIN") as copy:
                for row in frame.rows():
                    copy.write_row(row)
            other.execute("CREATE VIEW seen AS SELECT id, CAST(s AS bigint) AS x FROM kept")
            other.execute(
                "DROP OWNED BY reader" if _has_role(other) else "CREATE ROLE reader LOGIN"
            )
            other.execute("GRANT SELECT ON seen TO reader")
            backend = ibis.postgres.connect(host=host, user="reader", database="postgres")

            def set_here(*settings):
                return lambda: [backend.con.execute(f"SET {setting}") for setting in settings]

            def there(*statements):
                return lambda: [other.execute(statement) for statement in statements]

            def locked():
                backend.con.execute("SET lock_timeout = '20ms'")
                other.execute("BEGIN")
                other.execute("LOCK TABLE kept IN ACCESS EXCLUSIVE MODE")

            end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'"
            limited = there(
                "ALTER SYSTEM SET temp_file_limit = 0",
                "SELECT pg_reload_conf()",
                "SELECT pg_sleep(0.1)",
            )
            faults = {
                "nothing": nothing,
                "ctrl-c": pressed,
                "ended": there(end),
                "crashed": restart,
                "timeout": set_here("statement_timeout = 1"),
                "full disk": lambda: [
                    limited(),
                    set_here("work_mem = '64kB'", "enable_hashagg = off")(),
                ],
                "dropped": there("DROP TABLE kept CASCADE"),
                "another table": there(
                    "DROP VIEW seen", "CREATE VIEW seen AS SELECT s AS id, id AS x FROM kept"
                ),
                "locked": locked,
                "revoked": there("REVOKE SELECT ON seen FROM reader"),
            }
            try:
                with cancelling(there(end.replace("terminate", "cancel"))) as faults["cancelled"]:
                    yield backend.table("seen"), faults
            finally:
                backend.con.close()
        with psycopg.connect(
            host=host, user="dpframe", dbname="postgres", autocommit=True
        ) as after:
            after.execute("ALTER SYSTEM RESET temp_file_limit")

    with monkeypatch.context() as patch:
        patch.setattr(f"{__name__}.NEIGHBOURS", NEIGHBOURS[:3])
        hold(made, [fault], monkeypatch)


def _has_role(connection):
    return (
        connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'reader'").fetchone() is not None
    )


# The ledger


@pytest.mark.parametrize("fault", ["removed", "replaced", "overwritten", "locked", "a folder"])
def test_a_ledger_that_is_gone_says_nothing_of_the_cell(fault, tmp_path, monkeypatch):
    """Neither an answer nor an error on a cell is seen where the ledger cannot record it."""
    ledgers = []

    def budget():
        path = tmp_path / f"{len(ledgers)}.sqlite"
        ledgers.append(path)
        return dp.Ledger(path, timeout=0.05).budget("visits", epsilon=5, delta=1e-3)

    def gone():
        path = ledgers[-1]
        if fault == "locked":
            other = sqlite3.connect(path, check_same_thread=False)
            other.execute("BEGIN EXCLUSIVE")
            held.append(other)
            return
        path.unlink()
        if fault == "a folder":
            path.mkdir()
        elif fault == "replaced":
            dp.Ledger(path).budget("visits", epsilon=5, delta=1e-3)
        elif fault == "overwritten":
            path.write_bytes(b"\0" * 4096)

    held = []

    @contextmanager
    def made(frame):
        yield _of_polars(parquet(tmp_path, frame)), {fault: gone}
        for other in held:
            other.close()

    found = hold(made, [fault], monkeypatch, budget=budget)
    assert all(all(raised) for raised in found.values())
