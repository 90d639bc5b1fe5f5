"""Queries that Ctrl-C ends: while they run, the main thread waits in Python, where
handlers of signals are called.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")
_LOOK = 0.5  # seconds between two looks: on Windows a signal does not end the waiting
_PATIENCE = 3.0  # seconds for a query that was told to stop


def attended(run: Callable[[], T], stop: Callable[[], object] | None = None) -> T:
    """Run a query in a thread of its own, and let handlers of signals raise meanwhile.

    Input:  run: a query of an engine that computes outside of Python; stop: what tells the engine
            to end it
    Output: the result; nothing of a query that was left
    Errors: those of the query; what the handler of a signal raises, as KeyboardInterrupt for Ctrl-C

    Python calls handlers in the main thread, once that runs Python's code again. Polars runs it
    when all is computed, and DuckDB now and then; neither does while a function of the user's runs
    in a thread of the engine's. A query that does not stop in time is left behind: its thread
    computes on, and nobody sees what comes out. Handlers are for the main thread alone, so in other
    threads the query runs at once.
    """
    if threading.current_thread() is not threading.main_thread():
        return run()
    results: list[T] = []
    errors: list[BaseException] = []
    done, context = threading.Event(), copy_context()

    def work() -> None:
        try:
            results.append(context.run(run))
        except BaseException as error:  # also panics of Polars
            errors.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while not done.wait(_LOOK):
            pass
    except BaseException:
        if stop is not None:
            with suppress(Exception):
                stop()
        if thread.ident is not None:  # Python's code in this thread, as a function of the user's
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
            )
        done.wait(_PATIENCE)
        raise
    if errors:
        raise errors.pop()
    return results.pop()
