"""A ledger's database: connections that survive forks and threads, locked transactions, refusals in typed errors."""

from __future__ import annotations

import importlib.util
import os
import sqlite3
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dpframe.budget.ledger.filesystem import refuse_network
from dpframe.budget.ledger.tables import BUDGETS, FORMAT, LEDGER, METADATA
from dpframe.errors import LedgerDamaged, LedgerUnavailable, UnsupportedOperation

__all__ = ["PostgresStore", "SqliteStore", "Store"]

INHERITED: list[Any] = []  # engines of the process that this one was forked from: closing them would close its files


def _close(engine: sa.Engine, process: int) -> None:
    """Close the connections of a store that nobody uses any more, in the process that opened them."""
    if os.getpid() == process:
        engine.dispose()


class Store:
    """A database that holds a ledger. Input: timeout, how long to wait for a lock (seconds)."""

    place: str  # what messages call it
    folder: Path | None = None  # where its file is
    created: bool = False  # whether it was made now

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._engine, self._process = self._opened(), os.getpid()
        self.id = ""
        self.witnessed = False

    def _connecting(self) -> sa.Engine:
        """An engine whose transactions lock; it connects when it is first used."""
        raise NotImplementedError

    @property
    def engine(self) -> sa.Engine:
        """The engine of this process; connections are never shared with the process it was forked from."""
        if os.getpid() != self._process:
            INHERITED.append((self._engine, self._engine.pool))
            self._engine.dispose(close=False)
            self._engine, self._process = self._opened(), os.getpid()
        return self._engine

    def _opened(self) -> sa.Engine:
        engine = self._connecting()
        weakref.finalize(self, _close, engine, os.getpid())
        return engine

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[sa.Connection]:
        """One transaction, locked from its first statement on when it writes. Errors: LedgerError."""
        problem = None
        try:
            with self.engine.connect().execution_options(dpframe_write=write) as connection, connection.begin():
                self._check(connection)
                yield connection
        except sa.exc.TimeoutError:
            problem = "no connection was free in time"
        except sa.exc.DBAPIError as error:
            problem = str(error.orig).strip().splitlines()[0]
        except sqlite3.Error as error:
            problem = str(error)
        else:
            self._check_after()
        if problem is not None:
            raise LedgerUnavailable(f"The ledger {self.place} cannot be used: {problem}. Nothing is released.")

    def _check(self, connection: sa.Connection) -> None:
        """Whether the database is still the one that was opened."""

    def _check_after(self) -> None:
        """The same once a transaction has ended."""

    def prepare(self, *, witnessed: bool) -> None:
        """Make the tables where there are none, and read whose ledger it is. Errors: LedgerError."""
        with self.transaction(write=True) as connection:
            self._one_at_a_time(connection)
            METADATA.create_all(connection)
            self._check_tables(connection)
            row = connection.execute(sa.select(LEDGER)).first()
            if row is None:
                self.created = True
                made = {"one": 1, "id": uuid.uuid4().hex, "format": FORMAT, "witnessed": witnessed}
                connection.execute(LEDGER.insert().values(**made))
                row = connection.execute(sa.select(LEDGER)).one()
            elif witnessed and not row.witnessed:
                connection.execute(LEDGER.update().values(witnessed=True))
            if row.format < FORMAT:
                self._bring_forward(connection)
        if row.format > FORMAT:
            raise LedgerUnavailable(f"The ledger {self.place} was written by a later version of dpframe.")
        self.id, self.witnessed = row.id, bool(row.witnessed)

    def _bring_forward(self, connection: sa.Connection) -> None:
        """Make a ledger of format 1 one of this format, under the lock, in the transaction that opens it.

        Entries stay as they are, and so do their hashes: a loss in whole units is a number without "/", and is read as
        one. What is new in the row of a budget is the number of its failures; format 1 recorded none.
        """
        for column in (BUDGETS.c.failures, BUDGETS.c.acknowledged):
            connection.exec_driver_sql(
                f"ALTER TABLE {BUDGETS.name} ADD COLUMN {column.name} INTEGER NOT NULL DEFAULT 0"
            )
        connection.execute(LEDGER.update().values(format=FORMAT))

    def _one_at_a_time(self, connection: sa.Connection) -> None:
        """Hold others back while tables are made."""

    def _check_tables(self, connection: sa.Connection) -> None:
        """Whether the tables keep what is written. Errors: LedgerError."""

    def close(self) -> None:
        """Close the connections of this process."""
        self.engine.dispose()


class SqliteStore(Store):
    """A file: write-ahead log, full sync, and a lock that is taken when a transaction begins."""

    def __init__(self, path: Path, timeout: float, *, create: bool) -> None:
        self.path = path.absolute()
        self.place, self.folder = repr(str(path)), self.path.parent
        refuse_network(self.path.resolve())
        self._mode = "rwc" if create else "rw"
        if not create and not self.path.exists():
            raise LedgerUnavailable(f"There is no ledger {self.place}; dp.Ledger({self.place}) makes one.")
        self._file: tuple[int, int] | None = None
        super().__init__(timeout)

    def prepare(self, *, witnessed: bool) -> None:
        """Make the tables; from then on a file that is gone is not made again."""
        super().prepare(witnessed=witnessed)
        self._mode, self._file = "rw", self._identity()

    def _connecting(self) -> sa.Engine:
        alive = weakref.ref(self)  # the engine may not keep the store, which closes it

        def connect() -> sqlite3.Connection:
            store = alive()
            assert store is not None
            return store._connect()

        engine = sa.create_engine(
            "sqlite://", creator=connect, poolclass=sa.QueuePool, max_overflow=-1, hide_parameters=True
        )

        @sa.event.listens_for(engine, "begin")
        def begin(connection: sa.Connection) -> None:
            write = connection.get_execution_options().get("dpframe_write", False)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

        return engine

    def _connect(self) -> sqlite3.Connection:
        uri = f"{self.path.as_uri()}?mode={self._mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=self.timeout, isolation_level=None, check_same_thread=False)
        for setting in ("synchronous = FULL", "fullfsync = ON", "checkpoint_fullfsync = ON"):
            connection.execute(f"PRAGMA {setting}")
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            if mode != "wal":
                raise sqlite3.OperationalError(f"this file system gives no write-ahead log, only {mode!r}")
        return connection

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _check(self, connection: sa.Connection) -> None:
        if self._file is None:
            return
        found = self._identity()
        if found is None:
            raise LedgerUnavailable(
                f"The ledger {self.place} is gone. What was spent is not known without it, so nothing is released. "
                "Put the file back."
            )
        if found != self._file:
            raise LedgerDamaged(
                f"The ledger {self.place} was replaced by another file while it was open. Nothing is released. "
                "If the new file is the latest, open it again: dp.Ledger(...)."
            )

    def _check_after(self) -> None:
        if self._file is not None and self._identity() != self._file:
            raise LedgerDamaged(f"The ledger {self.place} was replaced while it was written. Nothing is released.")


# The first schema of the search path that holds a ledger, or the one that tables are made in.
SCHEMA = """
SELECT coalesce(
    (SELECT s FROM unnest(current_schemas(false)) WITH ORDINALITY AS path (s, i)
     WHERE to_regclass(quote_ident(s) || '.dpframe_ledger') IS NOT NULL ORDER BY i LIMIT 1),
    current_schema())"""
SETTLED = """
SELECT current_setting('transaction_isolation'), set_config('synchronous_commit', 'on', true),
    set_config('row_security', 'off', true), set_config('lock_timeout', %s, true),
    set_config('search_path', quote_ident(%s) || ', pg_temp', true)"""
TABLES = """
SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = ANY(%s) AND c.relkind = 'r' AND c.relpersistence = 'p'"""


class PostgresStore(Store):
    """A PostgreSQL database, for several machines: the budget's row is locked while it is charged."""

    def __init__(self, url: str, timeout: float) -> None:
        self._url = sa.make_url(url)
        self.place = repr(self._url.render_as_string(hide_password=True))
        self._schema: str | None = None
        super().__init__(timeout)

    def _connecting(self) -> sa.Engine:
        if importlib.util.find_spec(self._url.get_driver_name()) is None:
            raise UnsupportedOperation("A ledger in PostgreSQL needs its driver: pip install 'dpframe[postgres]'.")
        return sa.create_engine(
            self._url,
            pool_pre_ping=True,
            max_overflow=-1,
            hide_parameters=True,
            isolation_level="READ COMMITTED",
        )

    def _check(self, connection: sa.Connection) -> None:
        """Settle, for this transaction, what a role, a database or a pooler may have set otherwise.

        A commit waits for the disk. Only this ledger's schema is searched, before temporary tables. Rows that a policy
        would hide are an error. Each statement sees what others committed before it, so that whoever waited for the
        lock reads the latest charge.
        """
        if self._schema is None:
            self._schema = connection.exec_driver_sql(SCHEMA).scalar()
            if self._schema is None:
                raise LedgerUnavailable(f"The ledger {self.place} has no schema: set the role's search_path.")
        level = connection.exec_driver_sql(SETTLED, (str(int(self.timeout * 1000)), self._schema)).scalar()
        if level != "read committed":
            raise LedgerUnavailable(f"The ledger {self.place} is read at the wrong isolation level, {level}.")

    def _check_tables(self, connection: sa.Connection) -> None:
        kept = connection.exec_driver_sql(TABLES, (self._schema, list(METADATA.tables))).scalar()
        if kept != len(METADATA.tables):
            raise LedgerDamaged(
                f"The tables of the ledger {self.place} are not ordinary, logged tables of the schema "
                f"{self._schema!r}, so charges could be lost. Nothing is released."
            )
        if connection.exec_driver_sql("SHOW fsync").scalar() != "on":
            raise LedgerUnavailable(
                f"The server of the ledger {self.place} runs with fsync = off, so a crash could lose charges. Nothing "
                "is released. Set fsync = on."
            )

    def _one_at_a_time(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7305242117)")
