"""The database behind an Ibis table: its connection, the rows of a query, and a collation that knows letters."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import polars as pl

from dpframe.errors import UnsupportedOperation

__all__ = ["check_path", "column_of", "database_of", "fetch_rows", "letters_of"]


def database_of(rows: Any) -> Any:
    """The database that an Ibis table is in, as Ibis holds it; None where it is in none."""
    backends, _ = rows._find_backends()
    return backends[0] if backends else None


def check_path(backend: Any) -> None:
    """Refuses a session where other functions take the place of PostgreSQL's. Errors: UnsupportedOperation."""
    with backend.con.cursor() as cursor, backend.con.transaction():
        (schemas,) = cursor.execute("SELECT pg_catalog.current_schemas(true)").fetchone()
    first = next((name for name in schemas if not name.startswith("pg_temp")), "")  # which is no place of functions
    if first != "pg_catalog":
        raise UnsupportedOperation(
            f"dp.protect: this session looks for functions in {first!r} before it looks in PostgreSQL's own, so what "
            "dpframe computes could be something else. SET search_path to schemas of yours, without pg_catalog."
        )


_SETTINGS = ("client_encoding TO 'UTF8'", "standard_conforming_strings TO on")  # what texts are read and written by


def fetch_rows(connection: Any, written: str) -> list[Any]:
    """The rows of a query, as the server holds them: as texts, floats could lose digits."""
    with connection.transaction(), connection.cursor(binary=True) as cursor:
        for setting in _SETTINGS:
            cursor.execute(f"SET LOCAL {setting}")
        rows: list[Any] = cursor.execute(written).fetchall()
    return rows


def column_of(name: str, cells: Any, dtype: Any) -> pl.Series:
    """One column of a query's rows, in the type that Ibis says it has."""
    if dtype.is_integer() or dtype.is_uint64():
        return pl.Series(name, [None if cell is None else int(cell) for cell in cells], pl.Int64)
    if dtype.is_floating() or dtype.is_decimal():
        return pl.Series(name, [None if cell is None else float(cell) for cell in cells], pl.Float64)
    return pl.Series(name, list(cells), pl.Boolean if dtype.is_boolean() else pl.String)


_LETTERS: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
_KNOW_LETTERS = """SELECT c.collname FROM pg_catalog.pg_collation AS c
WHERE c.collname IN ('pg_unicode_fast', 'pg_c_utf8', 'und-x-icu', 'C.utf8', 'C.UTF-8', 'en_US.utf8', 'en_US.UTF-8')
AND c.collencoding IN (-1, (SELECT d.encoding FROM pg_catalog.pg_database AS d WHERE d.datname = current_database()))
AND pg_catalog.pg_collation_is_visible(c.oid) ORDER BY c.collname"""


def letters_of(backend: Any) -> str:
    """A collation of a database that knows which letters are the capitals of which; "" where it has none."""
    if backend not in _LETTERS:
        with backend.con.cursor() as cursor, backend.con.transaction():
            names = [name for (name,) in cursor.execute(_KNOW_LETTERS).fetchall()]
        _LETTERS[backend] = next((name for name in names if _knows_letters(backend, name)), "")
    return _LETTERS[backend]


def _knows_letters(backend: Any, collation: str) -> bool:
    """Whether a database can use a collation that it lists, and finds small letters by it."""
    try:
        with backend.con.cursor() as cursor, backend.con.transaction():
            (small,) = cursor.execute(f"""SELECT LOWER('\u00c9\u0416' COLLATE "{collation}")""").fetchone()
    except Exception:  # it is of another encoding, or of a library that this server does not have
        return False
    return bool(small == "\u00e9\u0436")
