"""A ledger's database: connections for forks and threads, locked transactions, typed errors."""

from __future__ import annotations

import json
import os
import sqlite3
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dpframe.budget.ledger.schema import BUDGETS, EARLIEST, ENTRIES, FORMAT, LEDGER, METADATA, MOVED
from dpframe.budget.ledger.witness import Witness
from dpframe.errors import LedgerDamaged, LedgerUnavailable, UnsupportedOperation

TEST = "test-"  # the beginning of the id of a ledger for tests
LOGLESS = 4  # the first format that is kept without a write-ahead log
# engines of the parent process of a fork; closing them would close the parent's files
INHERITED: list[Any] = []


def _close(engine: sa.Engine, process: int) -> None:
    """Close the connections of an unused store, in the process that opened them."""
    if os.getpid() == process:
        engine.dispose()


def new_id() -> str:
    """The id of a new ledger."""
    return uuid.uuid4().hex


def make_ledger(connection: sa.Connection) -> None:
    """Make an empty ledger."""
    METADATA.create_all(connection)
    connection.execute(LEDGER.insert().values(one=1, id=new_id(), format=FORMAT, witnessed=False))


def set_aside(connection: sa.Connection, place: str) -> LedgerUnavailable:
    """The refusal of a ledger that is a backup, or was moved."""
    at = connection.execute(sa.select(ENTRIES.c.body).where(MOVED).limit(1)).scalar()
    if at is None:
        return LedgerUnavailable(
            f"The ledger {place} is a backup. Nothing is charged to it. To verify it: python -m "
            f"dpframe ledger check {place}. To go on from it: python -m dpframe ledger restore "
            f"{place} NEW_PLACE --by NAME --why WHY, which asks what was lost since; or adopt, "
            "where it is."
        )
    to = json.loads(at)["to"]
    return LedgerUnavailable(
        f"The ledger {place} was moved to {to}, which goes on without it. Nothing is charged here. "
        f"Open the new one: dp.Ledger({to}). If that is lost, go on from its latest backup: python "
        "-m dpframe ledger restore BACKUP NEW_PLACE --by NAME --why WHY."
    )


def none_there(place: str) -> LedgerUnavailable:
    """The refusal of a place without a ledger. Whoever has lost one must not make another."""
    return LedgerUnavailable(
        f"There is no ledger {place}. If it was lost, put its latest backup there: python -m "
        f"dpframe ledger restore BACKUP {place} --by NAME --why WHY. If there never was one, "
        f"dp.Ledger({place}) makes it."
    )


class Store:
    """A database that holds a ledger.
    Input: timeout, how long to wait for a lock (seconds); create: a missing one.
    """

    place: str  # the path or URL, for messages
    watched: str  # its place for a witness: the same for every user of a database
    folder: Path | None = None  # the folder of the file

    def __init__(self, timeout: float, *, create: bool) -> None:
        self.timeout, self._create = timeout, create
        self._engine, self._process = self._opened(), os.getpid()
        self.id = ""
        self.is_new = False  # whether this object made the ledger
        # the last entry of each budget that this process knows
        self.seen: dict[str, tuple[int, str]] = {}

    def saw(self, budget: str, state: tuple[int, str]) -> None:
        """Remember the number and the hash of a budget's last
        entry, unless a later one is known.
        """
        if state[0] >= self.seen.get(budget, (0, ""))[0]:
            self.seen[budget] = state

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
        """One transaction; if it writes, it is locked from its first statement on.
        Errors: LedgerError.
        """
        problem = None
        self._check_before()
        try:
            with (
                self.engine.connect().execution_options(dpframe_write=write) as connection,
                connection.begin(),
            ):
                self._check(connection)
                yield connection
        except sa.exc.TimeoutError:
            problem = "no connection was free in time"
        except sa.exc.DBAPIError as error:
            problem = self._shown(str(error.orig).strip().splitlines()[0])
        except sqlite3.Error as error:
            problem = str(error)
        except UnicodeError:  # whose words may hold a password
            problem = "its address has letters that no host or database is named with"
        else:
            self._check_after()
        if problem is not None:
            raise LedgerUnavailable(
                f"The ledger {self.place} cannot be used: {problem}. Nothing is released."
            )

    def _check_before(self) -> None:
        """Check this before a database is opened. Errors: LedgerError."""

    def _check(self, connection: sa.Connection) -> None:
        """Check that the database is still the one that was opened. Errors: LedgerError."""

    def _check_after(self) -> None:
        """Check this again after a transaction. Errors: LedgerError."""

    def _shown(self, problem: str) -> str:
        """The words of a database without passwords."""
        return problem

    def prepare(self, witness: Witness | None, *, new_witness: bool, aside: bool = False) -> None:
        """Read the ledger's id, and bind it to its witness.
        Errors: LedgerError, unless aside if it is set aside.
        """
        with self.transaction(write=True) as connection:
            self._one_at_a_time(connection)
            self._find_tables(connection)
            self._check_tables(connection)
            row = connection.execute(
                sa.select(LEDGER.c.id, LEDGER.c.format, LEDGER.c.witnessed)
            ).first()
            if row is None or not isinstance(row.format, int):
                raise LedgerDamaged(
                    f"The ledger {self.place} has no number of its format: it was changed."
                )
            if row.format < 0 and aside:
                self.id = row.id
                return
            if row.format < 0:
                raise set_aside(connection, self.place)
            if row.format > FORMAT:
                raise LedgerUnavailable(
                    f"The ledger {self.place} was written by a later version of dpframe."
                )
            if row.format < EARLIEST:
                raise LedgerUnavailable(
                    f"The ledger {self.place} was written by a version of dpframe that was never "
                    "published, and this one does not read it. Go on with that version: a new "
                    "ledger would not know what was spent."
                )
            if row.format < FORMAT:
                self._bring_forward(connection, row.format)
            self.id = row.id
            recorded = connection.execute(sa.select(LEDGER.c.witness)).scalar()
            self._bind(
                connection, witness, recorded, had=bool(row.witnessed), new_witness=new_witness
            )

    def _find_tables(self, connection: sa.Connection) -> None:
        """Find the tables of a ledger; a table that is missing is never made anew.
        Errors: LedgerDamaged.
        """
        found = {name for name in METADATA.tables if sa.inspect(connection).has_table(name)}
        if not found:
            self._without_tables(connection)
        elif missing := sorted(set(METADATA.tables) - found):
            raise LedgerDamaged(
                f"The ledger {self.place} has no table {missing[0]!r} any more, so nobody knows "
                "what was spent. Nothing is released. Put the latest ledger back."
            )

    def _without_tables(self, connection: sa.Connection) -> None:
        """Make the tables of a new ledger. Errors: LedgerError."""
        if not self._create:
            raise none_there(self.place)
        make_ledger(connection)
        self.is_new = True

    def placed(self) -> str:
        """The whole place of the ledger, in words."""
        return self.place

    @property
    def is_test(self) -> bool:
        """Whether the ledger was made for tests: its id says so, which all
        its witnesses and copies have.
        """
        return self.id.startswith(TEST)

    def mark_for_tests(self) -> None:
        """Mark a ledger without budgets as one of tests. Errors: UnsupportedOperation."""
        with self.transaction(write=True) as connection:
            self.lock(connection)
            if self.is_test:
                return
            witnessed = connection.execute(sa.select(LEDGER.c.witnessed)).scalar_one()
            if (
                witnessed
                or connection.execute(sa.select(ENTRIES.c.number).limit(1)).first() is not None
            ):
                raise UnsupportedOperation(
                    f"The ledger {self.place} has budgets or a witness, so it is no ledger for "
                    "tests. Name a new file."
                )
            connection.execute(LEDGER.update().values(id=f"{TEST}{self.id}"))
            self.id = f"{TEST}{self.id}"

    def lock(self, connection: sa.Connection) -> int:
        """Make everybody else wait who would charge or make a budget.
        Output: the ledger's format.
        Errors: LedgerError.

        It does not matter whether the ledger is set aside.
        """
        self._one_at_a_time(connection)
        self._find_tables(connection)
        self._check_tables(connection)
        row = connection.execute(sa.select(LEDGER.c.id, LEDGER.c.format)).first()
        if row is None or not EARLIEST <= abs(row.format) <= FORMAT:
            raise LedgerUnavailable(
                f"The ledger {self.place} is of no format that this version of dpframe reads."
            )
        self.id = row.id
        connection.execute(
            sa.select(BUDGETS.c.name).order_by(BUDGETS.c.name).with_for_update()
        ).all()
        return int(row.format)

    def check_steward(self, connection: sa.Connection, call: str) -> None:
        """Check that who is here may make budgets. Errors: UnsupportedOperation."""
        role = self.role(connection)
        if role is not None:
            raise UnsupportedOperation(
                f"{role!r} may not make budgets in this ledger. Its steward types {call}."
            )

    def role(self, connection: sa.Connection) -> str | None:
        """Who spends, where the database says it; None where whoever may
        charge a budget may also make one.
        """
        return None

    def check_charged_here(self, connection: sa.Connection) -> None:
        """Errors: LedgerUnavailable for one that was set aside while it was open;
        LedgerDamaged for another ledger.
        """
        row = connection.execute(sa.select(LEDGER.c.id, LEDGER.c.format)).first()
        if row is None or row.id != self.id:
            raise LedgerDamaged(
                f"The ledger {self.place} was replaced by another one while it was open. Nothing "
                "is released. Put the latest ledger back."
            )
        if row.format < 0:
            raise set_aside(connection, self.place)

    @contextmanager
    def building(self) -> Iterator[sa.Connection]:
        """A transaction that writes a ledger where there is none.
        Nobody sees it before it is whole.

        Errors: LedgerError
        """
        with self.transaction(write=True) as connection:
            self._one_at_a_time(connection)
            if any(sa.inspect(connection).has_table(name) for name in METADATA.tables):
                raise LedgerUnavailable(
                    f"There is a ledger in {self.place} already. Choose another place."
                )
            METADATA.create_all(connection)
            yield connection

    def _bind(
        self,
        connection: sa.Connection,
        witness: Witness | None,
        recorded: str | None,
        *,
        had: bool,
        new_witness: bool,
    ) -> None:
        """Check that a ledger is opened with its own witness, or give it one, under the lock.
        Errors: LedgerDamaged.

        Input:  recorded: the id of its witness; had: whether it ever had one, which earlier
                versions recorded alone
        """
        if witness is None:
            if had:
                raise LedgerDamaged(
                    f"The ledger {self.place} has a witness, and only the witness shows whether "
                    "this is the latest copy. Open it with its witness: dp.Ledger(..., "
                    "witness='...'), or --witness FILE in a shell."
                )
            return
        here = witness.known_here()
        if here and self.id not in here:
            raise LedgerDamaged(
                f"The witness knows another ledger in {self.place}: it was replaced, or its tables "
                "were removed. Nothing is released. Put back the one that the witness knows, or "
                "restore its latest backup."
            )
        known = witness.knows(self.id, recorded)
        if had and not known and not new_witness:
            raise LedgerDamaged(
                f"The ledger {self.place} has a witness, and this is not the one: it is missing, "
                "was made anew, or is that of another ledger. Only its own shows whether this is "
                "the latest copy. Nothing is released. Put it back. If it is lost, make sure that "
                "no later copy of the ledger exists, and give it a new one: "
                f"dp.Ledger({self.place}, witness='...', new_witness=True), or in a shell: python "
                f"-m dpframe ledger verify {self.place} --witness FILE --new-witness."
            )
        if recorded is not None and known:
            return
        states = connection.execute(
            sa.select(BUDGETS.c.name, BUDGETS.c.number, BUDGETS.c.head)
        ).all()
        at = sa.select(ENTRIES.c.hash).where(
            ENTRIES.c.budget == sa.bindparam("b"), ENTRIES.c.number == sa.bindparam("n")
        )
        own = witness.take(
            self.id,
            [tuple(row) for row in states],
            lambda b, n: connection.execute(at, {"b": b, "n": n}).scalar(),
        )
        connection.execute(LEDGER.update().values(witnessed=True, witness=own))

    def _bring_forward(self, connection: sa.Connection, earlier: int) -> None:
        """Convert a ledger of an earlier format to this one, under the lock, in
        the transaction that opens it.

        Entries and their hashes do not change. Format 3 did not record the id of the witness, and
        format 4 had neither caps nor spenders.
        """
        columns = (
            BUDGETS.c.caps,
            ENTRIES.c.spender,
            *((LEDGER.c.witness,) if earlier < LOGLESS else ()),
        )
        for column in columns:
            connection.exec_driver_sql(
                f"ALTER TABLE {column.table.name} ADD COLUMN {column.name} TEXT"
            )
        next(index for index in ENTRIES.indexes if index.name == "dpframe_entries_spender").create(
            connection
        )
        connection.execute(LEDGER.update().values(format=FORMAT))

    def check_whole(self, connection: sa.Connection, name: str, number: int) -> None:
        """Check that the last transaction on a budget was written as a whole.
        Errors: LedgerDamaged.
        """

    def damage(self) -> str | None:
        """The damage that the database reports of its own files, if there is any."""
        return None

    def _one_at_a_time(self, connection: sa.Connection) -> None:
        """Make other processes wait while tables are made."""

    def _check_tables(self, connection: sa.Connection) -> None:
        """Check that the tables store rows durably. Errors: LedgerError."""

    def close(self) -> None:
        """Close the connections of this process."""
        self.engine.dispose()
