"""A ledger in a SQLite file: the file alone holds every charge that was granted.

A ledger's file must be on a disk of this machine, since locks and shared memory fail on network
drives.
"""

from __future__ import annotations

import os
import random
import sqlite3
import sys
import time
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from dpframe.budget.ledger.schema import ENTRIES, FORMAT, LEDGER, METADATA
from dpframe.budget.ledger.store import LOGLESS, Store, make_ledger, none_there
from dpframe.budget.ledger.unforked import unforked
from dpframe.budget.ledger.witness import Witness
from dpframe.errors import LedgerDamaged, LedgerUnavailable

REMOTE = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "fuse.sshfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.glusterfs",
    }
    | {
        "fuse.ceph",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "ocfs2",
        "orangefs",
        "panfs",
    }
    | {
        "prl_fs",
        "pvfs2",
        "smb2",
        "smb3",
        "smbfs",
        "sshfs",
        "vboxsf",
        "webdav",
        "fuse.gcsfuse",
        "fuse.blobfuse",
    }
)


def refuse_network(path: Path) -> None:
    """Refuse a path on a network drive. Errors: LedgerUnavailable."""
    kind = filesystem_of(path)
    if kind in REMOTE:
        raise LedgerUnavailable(
            f"{str(path)!r} is on a network drive ({kind}), where file locks do not hold and two "
            "machines could spend the same budget. Use a local disk, or PostgreSQL for several "
            "machines: dp.Ledger('postgresql+psycopg://...')."
        )


def filesystem_of(path: Path, mounts: str | None = None) -> str:
    r"""The type of the file system of a path; "" if it cannot be determined.

    Input:  path, which need not exist; mounts, the text of /proc/self/mountinfo

    >>> mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /home/me rw - nfs4 server:/me rw"
    >>> (
    ...     filesystem_of(Path("/home/me/study.sqlite"), mounts),
    ...     filesystem_of(Path("/home/you.sqlite"), mounts),
    ... )
    ('nfs4', 'ext4')
    """
    if mounts is None:
        if sys.platform == "win32":
            return _windows(path)
        try:
            mounts = Path("/proc/self/mountinfo").read_text()
        except OSError:
            return ""
    best, kind = "", ""
    for line in mounts.splitlines():
        mount, _, details = line.partition(" - ")
        point = mount.split(" ")[4].replace("\\040", " ")
        inside = str(path) == point or str(path).startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, details.split(" ")[0]
    return kind


def _windows(path: Path) -> str:
    """The type of the file system on Windows.
    A share is a network drive, with or without a letter.
    """
    if str(path).startswith("\\\\"):
        return "smbfs"
    kernel = getattr(__import__("ctypes"), "windll").kernel32  # noqa: B009 (only there on Windows)
    return "smbfs" if kernel.GetDriveTypeW(os.path.splitdrive(path)[0] + "\\") == 4 else ""


INDEXES = (
    "dpframe_entries_name",
    "dpframe_entries_about",
    "dpframe_entries_spender",
    "sqlite_autoindex_dpframe_entries_1",
)


class SqliteStore(Store):
    """A SQLite file, with rollback journal, full sync, and a lock from the
    beginning of a transaction that writes.

    The file alone holds every charge that was granted: a transaction ends with the file synced and
    the journal gone. So a journal that is lost takes no charge with it. It holds the former pages
    of a transaction that did not end. If that is lost, the file may be half-written, and
    `check_whole` and `LedgerPage` refuse it. With a write-ahead log the last charges would be in a
    second file, and SQLite opens the first one without it as an older ledger without a word.
    """

    def __init__(self, path: Path, timeout: float, *, create: bool) -> None:
        self.path = path.absolute()
        self.place, self.watched = repr(str(path)), str(self.path)
        self.folder = self.path.parent
        self._log, self._journal = f"{path.resolve()}-wal", f"{path.resolve()}-journal"
        refuse_network(self.path.resolve())
        if not create and not self.path.exists():
            raise none_there(self.place)
        if not os.path.isdir(self.folder):  # unlike Path.is_dir, it is false where it may not look
            raise LedgerUnavailable(
                f"The ledger {self.place} cannot be used: there is no such folder, or it cannot be "
                "read. Make the folder first. Nothing is released."
            )
        self._file: tuple[int, int] | None = None
        super().__init__(timeout, create=create)

    def prepare(self, witness: Witness | None, *, new_witness: bool, aside: bool = False) -> None:
        """Make the file if there is none.
        It gets its name when it is whole, so an empty file is never a new ledger.
        """
        problem = None
        try:
            with unforked():
                if not self.path.exists():
                    self._make(witness)
                self._leave_log(witnessed=witness is not None)
        except (OSError, sqlite3.Error, sa.exc.DBAPIError) as error:
            problem = str(getattr(error, "orig", error))
        if problem is not None:
            raise LedgerUnavailable(
                f"The ledger {self.place} cannot be used: {problem}. Nothing is released."
            )
        super().prepare(witness, new_witness=new_witness, aside=aside)
        self._file = self._identity()

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[sa.Connection]:
        """One transaction, in which this process is not forked."""
        with unforked(), super().transaction(write=write) as connection:
            yield connection

    def _make(self, witness: Witness | None) -> None:
        """Make an empty ledger under a name of its own, and move it here
        unless another process was faster.
        """
        if witness is not None and witness.known_here():
            raise LedgerDamaged(
                f"The witness knows a ledger in {self.place}, but there is no file now. Without it "
                "nobody knows what was spent, so no new ledger is made. Put the file back, or its "
                f"latest backup: python -m dpframe ledger restore BACKUP {self.place} --witness "
                "WITNESS --by NAME --why WHY."
            )
        with self._building(make_ledger):
            pass
        self.is_new = True

    @contextmanager
    def building(self) -> Iterator[sa.Connection]:
        """A new file, which gets its name when it is whole. Errors: LedgerError."""
        problem = None
        if self.path.exists():
            raise LedgerUnavailable(
                f"There is a file {self.place} already. Choose another place, or move it away."
            )
        try:
            with self._building(METADATA.create_all, alone=True) as connection:
                yield connection
        except (OSError, sqlite3.Error, sa.exc.DBAPIError) as error:
            problem = str(getattr(error, "orig", error))
        if problem is not None:
            raise LedgerUnavailable(f"{self.place} cannot be written: {problem}.")

    @contextmanager
    def _building(
        self, made: Callable[[sa.Connection], None], *, alone: bool = False
    ) -> Iterator[sa.Connection]:
        """Write a file under a name of its own, and move it here when it is whole.

        Input:  made: makes its tables; alone: whether a file that another process put here
                meanwhile is an error
        """
        if left := next(
            (path for path in (self._log, self._journal) if os.path.exists(path)), None
        ):
            raise LedgerDamaged(
                f"There is no ledger {self.place}, and {left!r} is left of one: the file was "
                "removed. Without it nobody knows what was spent, so no new ledger is made. Put "
                "the file back."
            )
        new = self.path.with_name(f"{self.path.name}.{uuid.uuid4().hex}.new")
        engine = sa.create_engine(
            sa.URL.create("sqlite", database=str(new)), poolclass=sa.NullPool, hide_parameters=True
        )
        try:
            with engine.begin() as connection:
                made(connection)
                yield connection
            try:
                os.link(new, self.path)  # unlike a rename, it never replaces a file
            except FileExistsError:
                if alone:
                    raise
            except OSError:  # a file system without links
                if not self.path.exists():
                    os.rename(new, self.path)
                elif alone:
                    raise
        finally:
            new.unlink(missing_ok=True)

    def _without_tables(self, connection: sa.Connection) -> None:
        raise LedgerDamaged(
            f"{self.place} has none of a ledger's tables: it is another file, or was not copied as "
            "a whole. Nothing is released. Put the ledger back. If there never was one, remove "
            "the file, and a new ledger is made."
        )

    def _leave_log(self, *, witnessed: bool) -> None:
        """Bring a ledger of a format before 4 out of its write-ahead log. Errors: LedgerError.

        Without that log it opens as an older ledger, and only a witness could tell. From format 4
        on, `_check` sees to it that no charge is written to a log. A log beside such a ledger would
        take its place, and is none of its own.
        """
        had_log, until = self._has_log(), time.monotonic() + self.timeout
        in_file = self._format("immutable=1")  # without the log
        if in_file is not None and in_file >= LOGLESS:
            self._check_before()
        while (in_log := self._format("mode=rw", logged=True)) is not None and in_log <= FORMAT:
            if in_log < LOGLESS and not had_log and not witnessed:
                break
            connection = self._opened_file("mode=rw")
            try:
                connection.execute("PRAGMA journal_mode = DELETE")  # brings the log into the file
            except sqlite3.OperationalError:  # another process has it open
                if time.monotonic() > until:
                    raise
            else:
                return
            finally:
                connection.close()
            time.sleep(random.uniform(0.01, 0.05))
        else:
            return
        line = f"sqlite3.connect({str(self.path)!r}).execute('PRAGMA journal_mode = DELETE')"
        raise LedgerDamaged(
            f"An earlier version of dpframe wrote the last charges of {self.place} to "
            f"{self._log!r} first, and that file is not here. It is not needed if every job ended "
            "by itself. If a job was killed, or the ledger was copied without it, charges are "
            "missing: put it back. Nothing is released. To go on without it, once: "
            f'python -c "import sqlite3; {line}"'
        )

    def _has_log(self) -> bool:
        return os.path.exists(self._log) and os.path.getsize(self._log) > 0

    def _check_before(self) -> None:
        if self._has_log():  # SQLite would use it as soon as the file is opened
            raise LedgerDamaged(
                f"{self._log!r} is not of the ledger {self.place}, and SQLite would take it for "
                "later charges. Nothing is released. End the program that has the ledger open, or "
                "remove that file."
            )

    def _opened_file(self, how: str) -> sqlite3.Connection:
        uri = f"{self.path.as_uri()}?{how}"
        return sqlite3.connect(
            uri, uri=True, timeout=self.timeout, isolation_level=None, check_same_thread=False
        )

    def _format(self, how: str, *, logged: bool = False) -> int | None:
        """The format of the ledger in the file; None if it is none, and with
        `logged` if it has no write-ahead log.
        """
        connection = self._opened_file(how)
        try:
            if logged and not _writes_ahead(connection):
                return None
            tables = connection.execute(
                "SELECT name FROM sqlite_master WHERE name = ?", (LEDGER.name,)
            ).fetchone()
            row = (
                None
                if tables is None
                else connection.execute(f"SELECT format FROM {LEDGER.name}").fetchone()
            )
            return row[0] if row is not None and isinstance(row[0], int) else None
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            return None  # no database, or half of one, which is refused when it is opened
        finally:
            connection.close()

    def _connecting(self) -> sa.Engine:
        # A strong reference would keep the store alive, and the engine would never close.
        alive = weakref.ref(self)

        def connect() -> sqlite3.Connection:
            store = alive()
            assert store is not None
            return store._connect()

        engine = sa.create_engine(
            "sqlite://",
            creator=connect,
            poolclass=sa.QueuePool,
            max_overflow=-1,
            hide_parameters=True,
        )

        @sa.event.listens_for(engine, "begin")
        def begin(connection: sa.Connection) -> None:
            # A copy that is put over the file can have the counter of changes by which SQLite knows
            # that what it read before is still true. Then it would add entries to the old copy as
            # if it had the later ones. So each transaction reads the file anew.
            connection.exec_driver_sql("PRAGMA shrink_memory")
            write = connection.get_execution_options().get("dpframe_write", False)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

        return engine

    def _connect(self) -> sqlite3.Connection:
        connection = self._opened_file("mode=rw")
        try:
            for setting in ("synchronous = EXTRA", "fullfsync = ON"):
                connection.execute(f"PRAGMA {setting}")
            if not _writes_ahead(connection):
                connection.execute("PRAGMA journal_mode = DELETE")
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
                f"The ledger {self.place} is gone. Without it nobody knows what was spent, so "
                "nothing is released. Put the file back."
            )
        if identity != self._file:
            raise LedgerDamaged(
                f"The ledger {self.place} was replaced by another file while it was open. Nothing "
                "is released. If the new file is the latest copy, open it again: dp.Ledger(...)."
            )
        file = connection.connection.driver_connection
        assert isinstance(file, sqlite3.Connection)
        if _writes_ahead(file):
            connection.invalidate()  # it would keep the file locked
            raise LedgerUnavailable(
                f"Another program changed the journal mode of the ledger {self.place}, so its file "
                "alone would not hold every charge. Nothing is released. End that program, and "
                "open the ledger again: dp.Ledger(...)."
            )

    def check_whole(self, connection: sa.Connection, name: str, number: int) -> None:
        """As many entries must be in each index as in the budget's row.

        A process that is killed writes a part of its pages. If its journal is lost too, an index
        may lack entries: the ones of an allowance, say, which add up to what may still be spent.
        """
        for index in INDEXES:
            counted = f"SELECT count(*) FROM {ENTRIES.name} INDEXED BY {index} WHERE budget = ?"
            if connection.exec_driver_sql(counted, (name,)).scalar() != number:
                raise LedgerDamaged(
                    f"The ledger {self.place} is half-written: {index} does not have the {number} "
                    f"entries of {name!r}. A process was killed and {self._journal!r} is lost; or "
                    "the file was copied while it was written, or changed. Nothing is released. "
                    "Put the journal or a later copy back. ledger.verify() says more."
                )

    def damage(self) -> str | None:
        """The damage that SQLite finds in the pages of the file."""
        with self.transaction() as connection:
            found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
        return None if found == "ok" else str(found)

    def _check_after(self) -> None:
        if self._file is not None and self._identity() != self._file:
            raise LedgerDamaged(
                f"The ledger {self.place} was replaced while it was written. Nothing is released."
            )


def _writes_ahead(file: sqlite3.Connection) -> bool:
    """Whether charges are in a write-ahead log, so that the file alone lacks some."""
    return bool(file.execute("PRAGMA journal_mode").fetchone()[0] == "wal")
