"""A witness: the last entry of each budget of a ledger, in a file outside the ledger's folder.

If somebody restores a backup of the ledger's folder, or copies an old file back, the witness is not
restored. It then has entries that the ledger has lost. The state in a witness only moves forward. A
witness has an id, which the ledger records. So a witness that is missing, or was made anew, is
noticed too.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from dpframe.budget.ledger.unforked import unforked
from dpframe.errors import InvalidArgument, LedgerDamaged, LedgerUnavailable

# a budget: its name, the number of its entries, the hash of the last one
State = tuple[str, int, str]

TABLES = (
    """CREATE TABLE IF NOT EXISTS seen (
    ledger TEXT NOT NULL, place TEXT NOT NULL, budget TEXT NOT NULL,
    number INTEGER NOT NULL, head TEXT NOT NULL,
    PRIMARY KEY (ledger, budget))""",
    "CREATE TABLE IF NOT EXISTS witness (id TEXT NOT NULL)",
)
LAST = "SELECT number, head FROM seen WHERE ledger = ? AND budget = ?"
# in place of the hash of a budget that was lost with the latest copy: its name is never made anew
GONE = "gone"
ADVANCE = (
    "INSERT INTO seen VALUES (?, ?, ?, ?, ?) ON CONFLICT (ledger, budget) DO UPDATE SET number = "
    "excluded.number, head = excluded.head, place = excluded.place WHERE excluded.number >= "
    "seen.number"
)
MOVED = "UPDATE seen SET place = ? WHERE ledger = ? AND place <> ?"
NO_BUDGET = ("", 0, "")  # the line of a ledger itself, which may have no budget yet


class Witness:
    """The last known state of ledgers.
    Input: path of the witness; place: path or URL of the ledger; its folder.
    """

    def __init__(self, path: Path, place: str, folder: Path | None) -> None:
        self._path, self._place = path.absolute(), place
        self._id: str | None = None
        if folder is not None and self._path.parent.resolve().is_relative_to(folder.resolve()):
            raise InvalidArgument(
                f"witness={str(path)!r} is in the ledger's folder or below it, so a backup would "
                "restore both together. Choose a file in another folder, best on another disk."
            )

    def known_here(self) -> set[str]:
        """The ids of the ledgers that were last seen in this place."""
        if not self._is_there():
            return set()
        with self._open() as connection:
            rows = connection.execute(
                "SELECT DISTINCT ledger FROM seen WHERE place = ?", (self._place,)
            )
            return {str(row[0]) for row in rows}

    def knows(self, ledger: str, recorded: str | None) -> bool:
        """Whether this is the witness that a ledger records; None:
        one of an earlier version, which recorded no id.
        """
        if not self._is_there():
            return False
        with self._open() as connection:
            known = (
                connection.execute("SELECT 1 FROM seen WHERE ledger = ?", (ledger,)).fetchone()
                is not None
            )
            if known and recorded is not None:
                known = connection.execute("SELECT id FROM witness").fetchone() == (recorded,)
                connection.execute(MOVED, (self._place, ledger, self._place))
        self._id = recorded if known else None
        return known

    def follow(self, ledger: str) -> None:
        """Record that a ledger was moved to this place, so that no
        other one is taken for it there.
        """
        with self._open() as connection:
            connection.execute(MOVED, (self._place, ledger, self._place))

    def take(
        self, ledger: str, states: Iterable[State], hash_at: Callable[[str, int], str | None]
    ) -> str:
        """Record the state of every budget of a ledger. Make the witness if there is none.

        Output: the id of the witness, for the ledger to record
        Errors: LedgerDamaged if the witness has seen later entries
        """
        with self._open(make=True) as connection:
            for budget, number, head in (NO_BUDGET, *states):
                row = connection.execute(LAST, (ledger, budget)).fetchone()
                if row is not None:
                    check_forward(budget, tuple(row), (number, head), partial(hash_at, budget))
                connection.execute(ADVANCE, (ledger, self._place, budget, number, head))
            (own,) = connection.execute("SELECT id FROM witness").fetchone()
        self._id = str(own)
        return self._id

    def states(self, ledger: str, recorded: str | None = None) -> dict[str, tuple[int, str]] | None:
        """The last known state of each budget of a ledger:
        the number of its entries, and the hash of the last one.

        Output: None if it does not know the ledger, or is not the witness that the ledger records
        """
        if not self._is_there():
            return None
        line = (
            "SELECT budget, number, head FROM seen WHERE ledger = ? AND head <> ? ORDER BY budget"
        )
        with self._open() as connection:
            known = {
                str(row[0]): (int(row[1]), str(row[2]))
                for row in connection.execute(line, (ledger, GONE))
            }
            own = connection.execute("SELECT id FROM witness").fetchone()
        if known.pop("", None) is None or (recorded is not None and own != (recorded,)):
            return None
        return known

    def adopt(self, ledger: str, states: Iterable[State]) -> str:
        """Take the states of an adopted copy for the last known ones.
        Output: the id of the witness.
        """
        with self._open(make=True) as connection:
            connection.execute(
                "UPDATE seen SET head = ? WHERE ledger = ? AND budget <> ''", (GONE, ledger)
            )
            for budget, number, head in (NO_BUDGET, *states):
                connection.execute(
                    "DELETE FROM seen WHERE ledger = ? AND budget = ?", (ledger, budget)
                )
                connection.execute(ADVANCE, (ledger, self._place, budget, number, head))
            (own,) = connection.execute("SELECT id FROM witness").fetchone()
        return str(own)

    def seen(self, ledger: str, budget: str | None = None) -> list[tuple[str, tuple[int, str]]]:
        """The last known entry of one budget, or of all, each by the name of the budget."""
        line = (
            "SELECT budget, number, head FROM seen WHERE ledger = ? AND budget <> '' AND (? IS "
            "NULL OR budget = ?)"
        )
        with self._open() as connection:
            return [
                (str(b), (int(n), str(h)))
                for b, n, h in connection.execute(line, (ledger, budget, budget))
            ]

    def knows_none(self, budget: str, number: int) -> LedgerDamaged:
        """The refusal of a budget with charges that the witness does not know."""
        return LedgerDamaged(
            f"Budget {budget!r} has {number} entries, and the witness {str(self._path)!r} has seen "
            "none of them: one of the two files was changed. Nothing is released."
        )

    def check(
        self, ledger: str, budget: str, number: int, head: str, hash_at: Callable[[int], str | None]
    ) -> None:
        """Compare a budget's state with the last known one. Errors: LedgerDamaged.

        Who makes a budget may be stopped before the witness is told. So it need not know a budget
        without a charge.
        """
        with self._open() as connection:
            row = connection.execute(LAST, (ledger, budget)).fetchone()
            if row is None and number == 1:
                connection.execute(ADVANCE, (ledger, self._place, budget, number, head))
        if row is not None:
            check_forward(budget, (int(row[0]), str(row[1])), (number, head), hash_at)
        elif number != 1:
            raise self.knows_none(budget, number)

    def advance(self, ledger: str, budget: str, number: int, head: str) -> None:
        """Record a budget's state, unless a later one is recorded."""
        with self._open() as connection:
            connection.execute(ADVANCE, (ledger, self._place, budget, number, head))

    def _is_there(self) -> bool:
        return self._path.exists() and self._path.stat().st_size > 0

    @contextmanager
    def _open(self, *, make: bool = False) -> Iterator[sqlite3.Connection]:
        """One locked transaction.
        Errors: LedgerUnavailable, also where another witness is in this place by now.
        """
        with unforked(), self._opened(make=make) as connection:
            yield connection

    @contextmanager
    def _opened(self, *, make: bool) -> Iterator[sqlite3.Connection]:
        problem = None
        try:
            uri = f"{self._path.as_uri()}?mode={'rwc' if make else 'rw'}"
            connection = sqlite3.connect(uri, uri=True, timeout=60, isolation_level=None)
            try:
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("BEGIN IMMEDIATE")
                for table in TABLES if make else ():
                    connection.execute(table)
                if make and connection.execute("SELECT 1 FROM witness").fetchone() is None:
                    connection.execute("INSERT INTO witness VALUES (?)", (uuid.uuid4().hex,))
                if self._id is not None and connection.execute(
                    "SELECT id FROM witness"
                ).fetchone() != (self._id,):
                    raise sqlite3.DatabaseError("it was replaced by another one")
                yield connection
                connection.execute("COMMIT")
            finally:
                connection.close()
        except sqlite3.Error as error:
            problem = str(error)
        if problem is not None:
            raise LedgerUnavailable(
                f"The witness {str(self._path)!r} cannot be used ({problem}), so nobody knows "
                "whether this is the latest copy of the ledger. Nothing is released."
            )


def check_forward(
    budget: str, last: tuple[int, str], state: tuple[int, str], hash_at: Callable[[int], str | None]
) -> None:
    """Check that a book has only grown since its last known entry. Errors: LedgerDamaged."""
    if state == last:
        return
    if (
        state[0] < last[0]
        or (state[0] == last[0] and state[1] != last[1])
        or hash_at(last[0]) != last[1]
    ):
        raise LedgerDamaged(
            f"Budget {budget!r} had {last[0]} entries, and this ledger does not have them: it is "
            "an older copy, or it was changed. Charges are missing from it, so nothing is "
            "released. Put the latest ledger back."
        )
