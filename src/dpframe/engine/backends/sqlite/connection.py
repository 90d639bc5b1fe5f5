"""The connection of a SQLite table: its functions, checks of its settings, and the rows of a query."""

from __future__ import annotations

import sqlite3
import sys

from dpframe.engine.backends.digests import Cell
from dpframe.engine.backends.sqlite.functions import FUNCTIONS
from dpframe.errors import UnsupportedOperation

# SQLite's own functions that dpframe calls.
NATIVE = ("abs", "coalesce", "count", "instr", "length", "max", "min", "nullif", "rank", "row_number", "substr", "sum")
_NATIVE = (*NATIVE, "typeof", "iif", "ifnull")
_LEAST_LENGTH = 2**27  # bytes of a text or of a row that a connection must take; eight texts of the largest length


def check(connection: sqlite3.Connection) -> None:
    """Refuse a connection on which a cell could make a query fail, or change what an operation means.

    Errors: UnsupportedOperation
    """
    encoding = _values(connection, "PRAGMA encoding")[0]
    if encoding != "UTF-8":
        raise UnsupportedOperation(
            f"dp.protect: this SQLite database holds texts in {encoding}. dpframe compares the bytes of UTF-8: copy "
            "the tables to a new database, where PRAGMA encoding = 'UTF-8' stands first."
        )
    names = ", ".join(f"'{name}'" for name in _NATIVE)
    query = "SELECT DISTINCT lower(name) FROM pragma_function_list WHERE {} AND lower(name) IN ({}) ORDER BY 1"
    if len(_values(connection, query.format("builtin", names))) < len(NATIVE):
        raise UnsupportedOperation(
            "dp.protect: this SQLite does not list its functions, so another function could replace one that dpframe "
            "uses. Give SQLite 3.30 or later, built with PRAGMA function_list."
        )
    replaced = _values(connection, query.format("NOT builtin", names))
    if replaced:
        raise UnsupportedOperation(
            f"dp.protect: on this connection another function replaces SQLite's {replaced[0]}(). Give dpframe a "
            "connection without it, as with ibis.sqlite.connect(path)."
        )
    if sys.version_info >= (3, 11) and connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) < _LEAST_LENGTH:
        raise UnsupportedOperation(
            "dp.protect: this connection refuses long texts, so one cell could make a query fail. Raise its limit: "
            "connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10**9)."
        )


def prepare(connection: sqlite3.Connection) -> None:
    """Register the functions of dpframe that a connection does not have yet."""
    have = set(_values(connection, "SELECT name FROM pragma_function_list WHERE name LIKE 'dpframe%'"))
    for name, (arguments, function) in FUNCTIONS.items():
        if name not in have:
            connection.create_function(name, arguments, function, deterministic=True)


def fetch_rows(connection: sqlite3.Connection, query: str) -> list[tuple[Cell, ...]]:
    """The rows of a query as tuples, whatever rows the user's connection makes."""
    cursor = connection.cursor()
    try:
        cursor.row_factory = None
        rows: list[tuple[Cell, ...]] = cursor.execute(query).fetchall()
    finally:
        cursor.close()
    return rows


def _values(connection: sqlite3.Connection, query: str) -> list[str]:
    return [value.decode() if isinstance(value, bytes) else str(value) for (value,) in fetch_rows(connection, query)]
