"""A lost connection is told apart before the charge alone: no row is read there."""

import gc
import importlib
import os

import duckdb
import polars as pl
import pytest

import dpframe as dp
from dpframe import errors

totals = importlib.import_module("dpframe.engine.totals")
ROWS = pl.DataFrame({"id": [1, 2, 3], "x": [1.0, 2.0, 3.0]})


def asked(table, budget):
    return dp.protect(table, unit="id", budget=budget, max_rows=1).sum("x", bounds=(0, 10))


CLIENTS = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"


@pytest.fixture
def end_connections(postgres_server):
    """End the connections that were made since, as a restart does; those of other tests stay."""
    psycopg = pytest.importorskip("psycopg")
    host = postgres_server.rpartition("=")[2]
    with psycopg.connect(host=host, user="dpframe", dbname="postgres", autocommit=True) as other:
        earlier = [pid for (pid,) in other.execute(f"SELECT pid {CLIENTS}")]
        yield lambda: other.execute(
            f"SELECT pg_terminate_backend(pid) {CLIENTS} AND NOT pid = ANY(%s)", (earlier,)
        )


@pytest.fixture
def postgres_table(end_connections, postgres_server):
    from postgres_tables import connected, stores

    with connected(postgres_server) as backend:
        yield stores(backend)(ROWS)


def test_a_connection_that_was_lost_before_the_charge_costs_nothing(
    postgres_table, end_connections
):
    budget = dp.Budget(epsilon=5)
    query = asked(postgres_table, budget)
    query.release(epsilon=0.5)
    end_connections()
    for _ in range(3):
        with pytest.raises(errors.EngineUnavailable, match="Nothing was paid"):
            query.release(epsilon=0.5)
    assert [line.status for line in budget.history()] == ["released"]
    assert budget.failures == (0, 0)


def test_a_connection_that_was_closed_costs_nothing():
    connection, budget = duckdb.connect(), dp.Budget(epsilon=5)
    connection.register("brought", ROWS.to_arrow())
    connection.execute("CREATE TABLE kept AS SELECT * FROM brought")
    query = asked(connection.table("kept"), budget)
    connection.close()
    with pytest.raises(errors.EngineUnavailable):
        query.release(epsilon=0.5)
    assert budget.history() == []


def test_a_connection_that_is_closed_is_no_table():
    connection = duckdb.connect()
    relation = connection.sql("SELECT 1 AS id, 2.0 AS x")
    connection.close()
    with pytest.raises(errors.EngineUnavailable, match="keep it in a variable"):
        dp.protect(relation, unit="id", budget=dp.Budget(epsilon=1))


def test_a_table_of_ibis_holds_its_connection():
    ibis, budget = pytest.importorskip("ibis"), dp.Budget(epsilon=1e6)

    def table():
        backend = ibis.duckdb.connect()
        backend.raw_sql("CREATE TABLE t AS SELECT 1 AS id, 2.0 AS x")
        return dp.protect(backend.table("t"), unit="id", budget=budget, max_rows=1)

    frame = table()
    gc.collect()
    assert frame.sum("x", bounds=(0, 10)).release(epsilon=1e5).value == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("only", [False, True])
def test_a_file_of_duckdb_is_as_it_was(tmp_path, only):
    """DuckDB 1 makes a view to run SQL beside a relation:
    none stays, and a file that is only read is refused.
    """
    with duckdb.connect(tmp_path / "file.db") as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS id, 2.0 AS x, 'a' AS g")
    budget = dp.Budget(epsilon=1)
    with duckdb.connect(tmp_path / "file.db", read_only=only) as connection:
        if only and duckdb.__version__ < "2":
            with pytest.raises(errors.UnsupportedOperation, match=r"table\.pl\(\)"):
                asked(connection.table("t"), budget)
            return
        frame = dp.protect(connection.table("t"), unit="id", budget=budget)
        frame.group_by(
            "g", keys=[f"{i}" for i in range(300)], max_groups=1, max_rows=1
        ).count().release(epsilon=0.5)
        assert (
            connection.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
            == []
        )


def test_a_connection_that_is_lost_after_the_charge_is_a_failure_like_any_other(
    postgres_table, end_connections, monkeypatch
):
    """The words and the class are those of an error on a cell, and it counts."""
    budget, read = dp.Budget(epsilon=5), totals._read
    query = asked(postgres_table, budget)

    def restarted(*arguments):
        end_connections()
        return read(*arguments)

    monkeypatch.setattr(totals, "_read", restarted)
    with pytest.raises(errors.EngineError) as caught:
        query.release(epsilon=0.5)
    assert type(caught.value) is errors.EngineError
    assert str(caught.value) == totals._WITHHELD
    assert budget.failures == (1, 1)
    assert budget.acknowledge_failures("Ada") == 1


class ServerError(Exception):
    def __init__(self, sqlstate):
        super().__init__("cell 31337")
        self.sqlstate = sqlstate


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (ConnectionResetError("31337"), True),
        (ServerError("08006"), True),
        (ServerError("57P01"), True),
        (ServerError("53300"), True),
        *(
            (ServerError(state), False)
            for state in ("22012", "22P02", "57014", "53100", "53200", "42P01", "XX000")
        ),
        *(
            (kind("31337"), False)
            for kind in (ValueError, OSError, MemoryError, TimeoutError, pl.exceptions.ComputeError)
        ),
    ],
    ids=repr,
)
def test_which_errors_say_that_a_connection_is_lost(error, lost):
    def fails():
        raise error

    def within():
        try:
            fails()
        except BaseException as first:
            raise RuntimeError("31337") from first

    for run in (fails, within):
        for before in (True, False):
            with pytest.raises(errors.EngineError) as caught:
                totals.sealed(run, before=before)
            assert isinstance(caught.value, errors.EngineUnavailable) is (lost and before)
            assert "31337" not in str(caught.value)
            assert caught.value.__cause__ is caught.value.__context__ is None


def test_errors_that_come_from_each_other_in_a_circle_end():
    """As libraries make them that raise an error again from the one that
    was raised while they handled it.
    """

    def fails():
        first, second = ValueError("31337"), KeyError("31337")
        first.__cause__, second.__cause__ = second, first
        raise first

    with pytest.raises(errors.EngineError):
        totals.sealed(fails, before=True)


def test_a_file_that_was_written_meanwhile_is_told_alike_whether_or_not_a_cell_fails(
    tmp_path, monkeypatch
):
    """More faults, on every engine with files, are in `test_faults_after_charge`."""
    path, read, told = tmp_path / "rows.parquet", totals._read, set()
    for cell in ("1", "a"):
        pl.DataFrame({"id": [1, 2], "s": ["1", cell]}).write_parquet(path)
        rows = pl.scan_parquet(path).select("id", x=pl.col("s").cast(pl.Int64))
        query = asked(rows, dp.Budget(epsilon=5))

        def touched(*arguments):
            os.utime(path, (1, 1))
            return read(*arguments)

        monkeypatch.setattr(totals, "_read", touched)
        with pytest.raises(errors.EngineError, match="were written after") as caught:
            query.release(epsilon=0.5)
        told.add(str(caught.value))
        monkeypatch.undo()
    assert len(told) == 1
