"""A ledger's database: connections for forks and threads, locked transactions, and typed errors for every failure."""

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

INHERITED: list[Any] = []  # engines of the parent process of a fork; closing them would close the parent's files


def _close(engine: sa.Engine, process: int) -> None:
    """Close the connections of an unused store, in the process that opened them."""
    if os.getpid() == process:
        engine.dispose()


class Store:
    """A database that holds a ledger. Input: timeout, how long to wait for a lock (seconds)."""

    place: str  # the path or URL, for messages
    folder: Path | None = None  # the folder of the file
    created: bool = False  # whether this object made the ledger

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._engine, self._process = self._opened(), os.getpid()
        self.id = ""
        self.witnessed = False

    def _connecting(self) -> sa.Engine:
        """An engine whose transactions take locks; it connects when it is first used."""
        raise NotImplementedError

    @property
    def engine(self) -> sa.Engine:
        """The engine of this process. After a fork, parent and child never share a connection."""
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
        """One transaction; if it writes, it is locked from its first statement on. Errors: LedgerError."""
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
        """Check that the database is still the one that was opened. Errors: LedgerError."""

    def _check_after(self) -> None:
        """Check this again after a transaction. Errors: LedgerError."""

    def prepare(self, *, witnessed: bool) -> None:
        """Make the tables if there are none, and read the ledger's id. Errors: LedgerError."""
        with self.transaction(write=True) as connection:
            self._one_at_a_time(connection)
            METADATA.create_all(connection)
            self._check_tables(connection)
            row = connection.execute(sa.select(LEDGER)).first()
            if row is None:
                self.created = True
                values = {"one": 1, "id": uuid.uuid4().hex, "format": FORMAT, "witnessed": witnessed}
                connection.execute(LEDGER.insert().values(**values))
                row = connection.execute(sa.select(LEDGER)).one()
            elif witnessed and not row.witnessed:
                connection.execute(LEDGER.update().values(witnessed=True))
            if not isinstance(row.format, int):
                raise LedgerDamaged(f"The ledger {self.place} has no number of its format: it was changed.")
            if row.format < FORMAT:
                self._bring_forward(connection, row.format)
        if row.format > FORMAT:
            raise LedgerUnavailable(f"The ledger {self.place} was written by a later version of dpframe.")
        self.id, self.witnessed = row.id, bool(row.witnessed)

    def _bring_forward(self, connection: sa.Connection, earlier: int) -> None:
        """Convert a ledger of an earlier format to this one, under the lock, in the transaction that opens it.

        Entries and their hashes do not change: `loss_of` also reads the losses of format 1, and `statement_of` the
        statements of formats 1 and 2. The row of a budget gets the number of its failures; format 1 recorded none.
        """
        for column in (BUDGETS.c.failures, BUDGETS.c.acknowledged) if earlier < 2 else ():
            connection.exec_driver_sql(
                f"ALTER TABLE {BUDGETS.name} ADD COLUMN {column.name} INTEGER NOT NULL DEFAULT 0"
            )
        connection.execute(LEDGER.update().values(format=FORMAT))

    def _one_at_a_time(self, connection: sa.Connection) -> None:
        """Make other processes wait while tables are made."""

    def _check_tables(self, connection: sa.Connection) -> None:
        """Check that the tables store rows durably. Errors: LedgerError."""

    def close(self) -> None:
        """Close the connections of this process."""
        self.engine.dispose()


class SqliteStore(Store):
    """A SQLite file, with write-ahead log, full sync, and a lock from the beginning of a transaction that writes."""

    def __init__(self, path: Path, timeout: float, *, create: bool) -> None:
        self.path = path.absolute()
        self.place, self.folder = repr(str(path)), self.path.parent
        refuse_network(self.path.resolve())
        self._mode = "rwc" if create else "rw"
        if not create and not self.path.exists():
            raise LedgerUnavailable(f"There is no ledger {self.place}; dp.Ledger({self.place}) makes one.")
        if not os.path.isdir(self.folder):  # unlike Path.is_dir, it is false where it may not look
            raise LedgerUnavailable(
                f"The ledger {self.place} cannot be used: there is no such folder, or it cannot be read. Make the "
                "folder first. Nothing is released."
            )
        self._file: tuple[int, int] | None = None
        super().__init__(timeout)

    def prepare(self, *, witnessed: bool) -> None:
        """Make the tables. After that, a file that disappears is not made again."""
        super().prepare(witnessed=witnessed)
        self._mode, self._file = "rw", self._identity()

    def _connecting(self) -> sa.Engine:
        alive = weakref.ref(self)  # A strong reference would keep the store alive, and the engine would never close.

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
        try:
            for setting in ("synchronous = FULL", "fullfsync = ON", "checkpoint_fullfsync = ON"):
                connection.execute(f"PRAGMA {setting}")
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
                if mode != "wal":
                    raise sqlite3.OperationalError(f"this file system gives no write-ahead log, only {mode!r}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _identity(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _check(self, connection: sa.Connection) -> None:
        if self._file is None:
            return
        identity = self._identity()
        if identity is None:
            raise LedgerUnavailable(
                f"The ledger {self.place} is gone. Without it nobody knows what was spent, so nothing is released. "
                "Put the file back."
            )
        if identity != self._file:
            raise LedgerDamaged(
                f"The ledger {self.place} was replaced by another file while it was open. Nothing is released. "
                "If the new file is the latest copy, open it again: dp.Ledger(...)."
            )

    def _check_after(self) -> None:
        if self._file is not None and self._identity() != self._file:
            raise LedgerDamaged(f"The ledger {self.place} was replaced while it was written. Nothing is released.")


# The first schema of the search path with a ledger, or else the schema in which tables are made.
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
    """A PostgreSQL database, for several machines. The row of a budget is locked during a charge."""

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
        """Set, for this transaction, the settings that a role, a database or a pooler may have changed.

        A commit waits for the disk. Only this ledger's schema is searched, before temporary tables. If a policy would
        hide rows, the statement fails. Each statement sees all earlier commits, so a process that waited for the lock
        reads the latest charge.
        """
        if self._schema is None:
            self._schema = connection.exec_driver_sql(SCHEMA).scalar()
            if self._schema is None:
                raise LedgerUnavailable(f"The ledger {self.place} has no schema. Set the search_path of its role.")
        level = connection.exec_driver_sql(SETTLED, (str(int(self.timeout * 1000)), self._schema)).scalar()
        if level != "read committed":
            raise LedgerUnavailable(
                f"The ledger {self.place} is read at the isolation level {level!r}; it needs 'read committed'. Nothing "
                "is released."
            )

    def _check_tables(self, connection: sa.Connection) -> None:
        ordinary = connection.exec_driver_sql(TABLES, (self._schema, list(METADATA.tables))).scalar()
        if ordinary != len(METADATA.tables):
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
