"""Processes that cannot answer: a fork has the memory and the open files of its
process, and none of its threads.

Polars, Dask and DataFusion compute in threads of their own. In a fork of a process that had started
these threads they wait forever for an answer. Whether the threads were started is not known:
anybody's code may have done it. So a small computation is tried before anything is charged, in a
thread that can be left behind.

PostgreSQL and Spark answer through a connection. Two processes on one connection read each other's
answers. So a connection that was open when this process was forked is refused.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any

import polars as pl

from dpframe.engine.backends import Backend, backend_named, backend_taking
from dpframe.engine.tables import Data
from dpframe.errors import UnsupportedOperation
from dpframe.plan.steps import Step, sources_of

# seconds for a computation that takes some milliseconds, also on a machine that does much else
PATIENCE = 30.0
_POLARS = "Polars"
_SPAWN = (
    "Start processes by spawn: multiprocessing.get_context('spawn'), "
    "ProcessPoolExecutor(mp_context=multiprocessing.get_context('spawn')); let a server load the "
    "application in each worker, as gunicorn does without --preload."
)
_answering: dict[str, bool] = {}  # whether an engine answered in this process
_forked = False
# the open files that this process has from the one that it is a fork of
_inherited: set[tuple[int, int]] = set()


def _begin_anew(files: str = "/dev/fd") -> None:
    """Input: files: the folder of the files that are open, in this process or
    in the one that it is a fork of.
    """
    global _forked
    _forked = True
    _answering.clear()
    _inherited.clear()
    with suppress(OSError):
        for number in os.listdir(files):
            with suppress(OSError):  # the folder itself was open while it was read
                _inherited.add(_file(f"{files}/{number}"))


def _file(place: int | str) -> tuple[int, int]:
    """An open file, by its device and its number there."""
    status = os.stat(place)
    return status.st_dev, status.st_ino


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
# dpframe is imported after the fork
if type(multiprocessing.current_process()).__name__ == "ForkProcess":
    _begin_anew(f"/proc/{os.getppid()}/fd")


def check_process() -> None:
    """Refuse a process in which Polars does not answer. Errors: UnsupportedOperation."""
    _check(_POLARS, _small)


def check_connection(table: object) -> None:
    """Refuse a user's table whose connection is also that of another process.
    Errors: UnsupportedOperation.
    """
    engine = backend_taking(table) if _forked else None
    if engine is not None:
        _check_connection(engine, lambda: table)


def check_threads(tables: Step | Data) -> None:
    """Refuse a process in which Polars, or the engine of the tables, does not answer.

    Input:  tables: those of a step; or one table
    Errors: UnsupportedOperation
    """
    check_process()
    every = [tables] if isinstance(tables, Data) else [source.data for source in sources_of(tables)]
    for data in every if _forked else ():
        engine = backend_named(data.engine)
        name = _check_connection(engine, partial(data.scan, (), empty=True))
        _check(name, partial(engine.try_threads, data))


def _check_connection(engine: Backend, table: Callable[[], Any]) -> str:
    """The name of the engine of a table, whose connection is of this process.
    Errors: UnsupportedOperation.
    """
    name, connection = engine.reached(table)
    if connection is not None and _file(connection) in _inherited:
        raise UnsupportedOperation(
            f"{name}: this process is a fork of the one that made the connection of this table. "
            "Both would read the answers to either. Nothing was charged. Connect in this process, "
            f"with a session of its own. Or: {_SPAWN}"
        )
    return name


def _check(name: str, run: Callable[[], object]) -> None:
    if not _answering.get(name) and (name not in _answering or not _forked):
        _answering[name] = _answers(run)
    if not _answering[name]:
        raise UnsupportedOperation(
            f"{name} does not answer in this process: it is a fork of one that had used {name}, "
            f"whose threads a fork does not have. Nothing was charged. {_SPAWN}"
        )


def _answers(run: Callable[[], object]) -> bool:
    """Whether a computation ends.
    An error is an end too: the question itself will say what is wrong.
    """

    def quiet() -> None:
        with suppress(BaseException):
            run()

    thread = Thread(target=quiet, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return not thread.is_alive()


def _small() -> None:
    """A computation in Polars' threads; in a fork also in those for
    tables that are not in memory.
    """
    rows = pl.LazyFrame({"a": [1, 2, 1], "b": [1, 2, 3]}).group_by("a").agg(pl.col("b").sum())
    rows.collect()
    if _forked:
        rows.collect(engine="streaming")
