"""A release on an engine that computes for minutes, and Ctrl-C a second after its
charge: what is raised, and when.

Run as a program of its own: `python interrupted.py ENGINE [SERVER]`. It prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl

ROWS = pl.DataFrame({"u": [1, 2, 3], "x": [1.0, 2.0, 3.0]})
LONG = 10**11  # rows of a table that no engine reads in minutes
QUERY = "SELECT {i} % 1000 AS u, {i} * 0.001 AS x FROM {rows}"


def waits(rows=None):
    """Python's code, which takes minutes on a table with rows."""
    if rows is None or len(rows):
        for _ in range(30_000):
            time.sleep(0.01)
    return rows


def in_polars():
    """A chain of sines: minutes of Rust, without Python's code."""
    column = pl.int_range(0, 10**7, eager=True).cast(pl.Float64).alias("x")
    chain = pl.col("x")
    for _ in range(400):
        chain = (chain + 0.5).sin()
    return (
        column.to_frame()
        .lazy()
        .select((pl.int_range(0, pl.len()) % 1000).alias("u"), chain.alias("x"))
    )


def in_polars_function():
    return ROWS.lazy().map_batches(waits, schema=ROWS.schema)


def in_pandas():
    """Objects, which are read one by one: a minute of Python's code."""
    import pandas as pd

    return pd.DataFrame({"u": np.full(10**7, Decimal("1.5")), "x": 1.0})


def _held(connection, to=[]):  # noqa: B006 (in DuckDB 1 a relation does not hold its own connection)
    to.append(connection)
    return connection


def in_duckdb():
    import duckdb

    return _held(duckdb.connect()).sql(QUERY.format(i="range", rows=f"range({LONG})"))


def _with_function(connection):
    connection.create_function("slow", lambda x: waits() or x, ["DOUBLE"], "DOUBLE")
    connection.execute("CREATE TABLE held AS SELECT 1 AS u, 2.0::DOUBLE AS x")
    connection.execute("CREATE VIEW visits AS SELECT u, slow(x) AS x FROM held")
    return connection


def in_duckdb_function():
    import duckdb

    return _with_function(_held(duckdb.connect())).table("visits")


def in_ibis():
    import ibis

    backend = ibis.duckdb.connect()
    backend.con.execute("CREATE VIEW visits AS " + QUERY.format(i="range", rows=f"range({LONG})"))
    return backend.table("visits")


def in_ibis_function():
    import ibis

    backend = ibis.duckdb.connect()
    _with_function(backend.con)
    return backend.table("visits")


def in_sqlite():
    import ibis

    backend = ibis.sqlite.connect()
    rows = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {LONG}) "
    backend.con.execute("CREATE TABLE held (u INTEGER, x DOUBLE)")
    backend.con.execute("CREATE TEMPORARY VIEW visits AS " + rows + QUERY.format(i="i", rows="n"))
    return backend.sql(
        "SELECT u, x FROM temp.visits", schema=ibis.schema({"u": "int64", "x": "float64"})
    )


def in_postgres(server):
    import ibis

    backend = ibis.postgres.connect(
        host=server.rpartition("=")[2], user="dpframe", database="postgres"
    )
    rows = "(SELECT g.i, pg_sleep(0.1) FROM generate_series(1, 3000) AS g(i)) AS s"
    query = "SELECT i % 1000 AS u, i * 0.001::float8 AS x FROM " + rows
    return backend.sql(query, schema=ibis.schema({"u": "int64", "x": "float64"}))


def in_datafusion():
    import ibis
    from datafusion import SessionContext

    context = SessionContext()
    backend = ibis.datafusion.connect(context)
    context.sql(
        "CREATE VIEW visits AS " + QUERY.format(i="value", rows=f"generate_series(1, {LONG})")
    ).collect()
    return backend.table("visits")


def in_spark():
    sys.path.append(str(Path(__file__).parents[1]))
    from conftest import spark_here

    session = spark_here(Path(tempfile.mkdtemp())).__enter__()
    return session.range(LONG).selectExpr("id % 1000 AS u", "id * 0.001D AS x")


def in_dask(scheduler="synchronous"):
    import dask
    import dask.dataframe as dd

    dask.config.set(scheduler=scheduler)
    return dd.from_pandas(ROWS.to_pandas(), npartitions=2).map_partitions(
        waits, meta=ROWS.to_pandas().head(0)
    )


def in_dask_threads():
    return in_dask("threads")


TABLES = {name[3:]: make for name, make in list(globals().items()) if name.startswith("in_")}


def interrupted(name, *server):
    """What a release raises, its seconds from Ctrl-C to the end, and what the budget says of it."""
    import dpframe as dp
    from dpframe.budget import Budget

    # a process in the background may be started without
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pressed, charge = [], Budget.charge

    def press():
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    def charged(*args, **options):
        receipt = charge(*args, **options)
        timer = threading.Timer(1, press)
        timer.daemon = True
        timer.start()
        return receipt

    Budget.charge = charged
    budget = dp.Budget(epsilon=1)
    frame = dp.protect(TABLES[name](*server), unit="u", budget=budget)
    raised = "nothing"
    try:
        frame.sum("x", bounds=(0, 5), max_rows=1).release(epsilon=0.5)
    except BaseException as error:
        raised = type(error).__name__
    seconds = round(time.monotonic() - pressed[0], 2) if pressed else None
    status = [charge.status for charge in budget.history()]
    failures, spent = list(budget.failures), budget.spent.epsilon
    return {
        "raised": raised,
        "seconds": seconds,
        "failures": failures,
        "status": status,
        "spent": spent,
    }


if __name__ == "__main__":
    print(json.dumps(interrupted(*sys.argv[1:])), flush=True)
    os._exit(0)  # threads of an engine that still compute keep no process alive
