"""The database of an Ibis table: its connection, checks of the session, and the rows of a query."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, RLock
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from ibis.backends import BaseBackend

from dpframe.errors import UnsupportedOperation


@contextmanager
def alone(backend: BaseBackend) -> Iterator[None]:
    """Use the connection of Ibis' backend for this thread alone.

    psycopg runs one statement of a connection at a time, but a transaction is several statements: those of two threads
    would be in one transaction, which fails.
    """
    with _lock:
        lock = _locks.setdefault(backend.con, RLock())
    with lock:
        yield


def check_path(backend: BaseBackend) -> None:
    """Refuse a session in which other functions can replace PostgreSQL's own. Errors: UnsupportedOperation."""
    with alone(backend), backend.con.cursor() as cursor, backend.con.transaction():
        (schemas,) = cursor.execute("SELECT pg_catalog.current_schemas(true)").fetchone()
    first = next((name for name in schemas if not name.startswith("pg_temp")), "")  # never searched for functions
    if first != "pg_catalog":
        raise UnsupportedOperation(
            f"dp.protect: this session looks for functions in {first!r} before pg_catalog, so another function could "
            "replace one that dpframe uses. SET search_path to schemas of yours, without pg_catalog."
        )


def may_store(backend: BaseBackend) -> bool:
    """Whether this session may make temporary tables: a user may lack the right, and a replica only reads."""
    with alone(backend), backend.con.cursor() as cursor, backend.con.transaction():
        (answer,) = cursor.execute(_MAY_STORE).fetchone()
    return bool(answer)


_MAY_STORE = """SELECT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMPORARY')
AND pg_catalog.current_setting('transaction_read_only') OPERATOR(pg_catalog.=) 'off'"""
_lock = Lock()
_locks: WeakKeyDictionary[psycopg.Connection, RLock] = WeakKeyDictionary()  # from a connection to its lock


def _begin_anew() -> None:
    """After a fork: another thread may have held the lock. The connections are those of another process."""
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


# How texts are read and written, and that no time of the user's ends a query after the charge.
_SETTINGS = ("client_encoding TO 'UTF8'", "standard_conforming_strings TO on", "statement_timeout TO 0")


def fetch_rows(connection: psycopg.Connection, query: str) -> list[Any]:
    """The rows of a query, in the server's binary format: in its text format, floats could lose digits."""
    with connection.transaction(), connection.cursor(binary=True) as cursor:
        for setting in _SETTINGS:
            cursor.execute(f"SET LOCAL {setting}")
        rows: list[Any] = cursor.execute(query).fetchall()
    return rows


def drop(backend: BaseBackend, name: str) -> None:
    """Remove a temporary table from the session."""
    with backend.con.cursor() as cursor, backend.con.transaction():
        cursor.execute(f'DROP TABLE IF EXISTS pg_temp."{name}"')
