"""Processes that cannot answer: a fork has the memory of the process that it was made of, and none of its threads.

Polars, Dask and DataFusion compute in threads of their own. In a fork of a process that had started these threads they
wait forever for an answer. Whether the threads were started is not known: anybody's code may have done it. So a small
computation is tried before anything is charged, in a thread that can be left behind.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

import polars as pl

from dpframe.engine.backends import backend_named
from dpframe.engine.tables import Data
from dpframe.errors import UnsupportedOperation
from dpframe.plan.steps import Step, sources_of

PATIENCE = 30.0  # seconds for a computation that takes some milliseconds, also on a machine that does much else
_POLARS = "Polars"
_answering: dict[str, bool] = {}  # whether an engine answered in this process
_forked = False


def _begin_anew() -> None:
    global _forked
    _forked = True
    _answering.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def check_process() -> None:
    """Refuse a process in which Polars does not answer. Errors: UnsupportedOperation."""
    _check(_POLARS, _small)


def check_threads(tables: Step | Data) -> None:
    """Refuse a process in which Polars, or the engine of the tables, does not answer.

    Input:  tables: those of a step; or one table
    Errors: UnsupportedOperation
    """
    check_process()
    every = [tables] if isinstance(tables, Data) else [source.data for source in sources_of(tables)]
    for data in every if _forked else ():
        engine = backend_named(data.engine)
        _check(engine.name, lambda: engine.try_threads(data))  # noqa: B023  (called in this round)


def _check(name: str, run: Callable[[], object]) -> None:
    if not _answering.get(name) and (name not in _answering or not _forked):
        _answering[name] = _answers(run)
    if not _answering[name]:
        raise UnsupportedOperation(
            f"{name} does not answer in this process: it is a fork of one that had used {name}, whose threads a fork "
            "does not have. Nothing was charged. Start processes by spawn: multiprocessing.get_context('spawn'), "
            "ProcessPoolExecutor(mp_context=multiprocessing.get_context('spawn')); let a server load the application "
            "in each worker, as gunicorn does without --preload."
        )


def _answers(run: Callable[[], object]) -> bool:
    """Whether a computation ends. An error is an end too: the question itself will say what is wrong."""

    def quiet() -> None:
        with suppress(BaseException):
            run()

    thread = Thread(target=quiet, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return not thread.is_alive()


def _small() -> None:
    """A computation in Polars' threads; in a fork also in those for tables that are not in memory."""
    rows = pl.LazyFrame({"a": [1, 2, 1], "b": [1, 2, 3]}).group_by("a").agg(pl.col("b").sum())
    rows.collect()
    if _forked:
        rows.collect(engine="streaming")
