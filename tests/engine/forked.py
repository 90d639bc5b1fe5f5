"""Processes that a process with engines starts: run by the tests, in an interpreter of its own.

python forked.py ENGINE START USED LEDGER [URL] # what a question gives in such a process, and the
cost

ENGINE is that of the table, which this process makes and the other one gets, or makes anew where it
is spawned. START is how the other one starts: "fork", "spawn", "pool" (of forks) or "beside"
(forked while threads of this one hold locks). USED is what this process does before: "nothing",
"asked" for the same question, "computed" with the engine alone, or leaves it to the other process
to make a table of "its own".
"""

import concurrent.futures
import json
import multiprocessing
import os
import sys
import threading
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
warnings.simplefilter("ignore")

PATIENCE = 2.0  # seconds: no test waits for an engine that is known not to answer


def table_of(engine, url):
    """A table of thirty rows, made without Polars."""
    import pyarrow as pa

    arrow = pa.table({"u": [1, 2, 3] * 10, "x": [1.0] * 30})
    if engine == "pandas":
        return arrow.to_pandas()
    if engine == "polars":
        import polars as pl

        return pl.from_arrow(arrow)
    if engine == "duckdb":
        import duckdb

        return duckdb.from_arrow(arrow)
    if engine == "dask":
        import dask.dataframe

        return dask.dataframe.from_pandas(arrow.to_pandas(), npartitions=2)
    if engine == "spark":
        from engine.conftest import spark_here

        session = spark_here(Path(os.environ["TMPDIR"])).__enter__()
        return session.createDataFrame(arrow.to_pandas())
    import ibis

    if engine == "datafusion":
        import datafusion

        from datafusion_tables import stored

        context = datafusion.SessionContext()
        backend = ibis.datafusion.connect(context)
        return backend.table(stored(context, arrow))
    host = {"host": url.rpartition("=")[2], "user": "dpframe", "database": "postgres"}
    backend = ibis.postgres.connect(**host) if url else ibis.sqlite.connect()
    backend.con.execute(
        f"CREATE {'TEMPORARY ' if url else ''}TABLE visits (u INTEGER, x DOUBLE PRECISION)"
    )
    backend.con.execute("INSERT INTO visits VALUES (1, 1.0), (2, 1.0), (3, 1.0)")
    backend.con.commit()
    return backend.table("visits")


def asked(table, ledger, url=None):
    """What a question gives, and what is spent afterwards."""
    import dpframe as dp
    from dpframe.engine import forks

    forks.PATIENCE = PATIENCE if forks._forked else 30.0
    budget = dp.Ledger(ledger).budget("b", epsilon=1)
    try:
        table = table_of(*table) if isinstance(table, tuple) else table
        dp.protect(table, unit="u", budget=budget).sum("x", bounds=(0, 1), max_rows=1).release(
            epsilon=0.5
        )
    except Exception as error:
        return f"{type(error).__name__}: {error}", budget.spent.epsilon
    return "answered", budget.spent.epsilon


def send(pipe, *words):
    pipe.send(asked(*words))


def holding():
    """Threads that hold each lock of the engines while this process is forked."""
    from dpframe.engine import totals  # noqa: F401 - imported before the fork
    from dpframe.engine.backends.postgres import dialect as server

    for module in (sys.modules["dpframe.engine.totals"], server):
        thread = threading.Thread(target=module._lock.acquire)
        thread.start()
        thread.join()


def main():
    engine, start, used, ledger, url = (*sys.argv[1:], "")[:5]
    table = (engine, url) if start == "spawn" or used == "its own" else table_of(engine, url)
    if used == "asked":
        assert asked(table, f"{ledger}.here")[0] == "answered"
    if used == "computed":
        table.compute() if engine == "dask" else table.fetchall()
    if start == "beside":
        holding()
    context = multiprocessing.get_context("spawn" if start == "spawn" else "fork")
    if start == "pool":
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
            # a table that pickle copies is another table
            said = pool.submit(asked, table, ledger).result(120)
    else:
        here, there = context.Pipe()
        process = context.Process(target=send, args=(there, table, ledger))
        process.start()
        said = here.recv() if here.poll(120) else ("never ended", None)
        process.kill()
    print(json.dumps(said), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
