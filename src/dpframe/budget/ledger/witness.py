"""A witness: the last entry of each budget of a ledger, in a file outside the ledger's folder.

If somebody restores a backup of the ledger's folder, or copies an old file back, the witness is not restored. It then
has entries that the ledger has lost. The state in a witness only moves forward.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dpframe.errors import InvalidArgument, LedgerDamaged, LedgerUnavailable

__all__ = ["Witness"]

TABLE = """CREATE TABLE IF NOT EXISTS seen (
    ledger TEXT NOT NULL, place TEXT NOT NULL, budget TEXT NOT NULL, number INTEGER NOT NULL, head TEXT NOT NULL,
    PRIMARY KEY (ledger, budget))"""


class Witness:
    """The last known state of a ledger. Input: path of the witness; place: path or URL of the ledger; its folder."""

    def __init__(self, path: Path, place: str, folder: Path | None) -> None:
        self._path, self._place = path.absolute(), place
        if folder is not None and self._path.parent.resolve().is_relative_to(folder.resolve()):
            raise InvalidArgument(
                f"witness={str(path)!r} is in the ledger's own folder, so a backup would restore both together. "
                "Choose a file in another folder, best on another disk."
            )
        with self._open(create=True) as connection:
            connection.execute(TABLE)

    def known_here(self) -> str | None:
        """The id of the ledger that was last seen in this place."""
        with self._open() as connection:
            rows = connection.execute("SELECT ledger FROM seen WHERE place = ? ORDER BY rowid DESC", (self._place,))
            latest = rows.fetchone()
        return None if latest is None else str(latest[0])

    def budgets(self, ledger: str) -> list[str]:
        """The names of the budgets that were seen in a ledger."""
        with self._open() as connection:
            rows = connection.execute("SELECT budget FROM seen WHERE ledger = ? ORDER BY budget", (ledger,))
            return [str(row[0]) for row in rows]

    def check(self, ledger: str, budget: str, number: int, head: str, hash_at: Callable[[int], str | None]) -> None:
        """Compare a budget's state with the last known one. Errors: LedgerDamaged."""
        with self._open() as connection:
            row = connection.execute(
                "SELECT number, head FROM seen WHERE ledger = ? AND budget = ?", (ledger, budget)
            ).fetchone()
        if row is not None:
            check_forward(budget, (int(row[0]), str(row[1])), (number, head), hash_at)

    def advance(self, ledger: str, budget: str, number: int, head: str) -> None:
        """Record a budget's state, unless a later one is recorded."""
        with self._open() as connection:
            connection.execute(
                "INSERT INTO seen VALUES (?, ?, ?, ?, ?) ON CONFLICT (ledger, budget) DO UPDATE "
                "SET number = excluded.number, head = excluded.head, place = excluded.place "
                "WHERE excluded.number >= seen.number",
                (ledger, self._place, budget, number, head),
            )

    @contextmanager
    def _open(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        problem = None
        try:
            uri = f"{self._path.as_uri()}?mode={'rwc' if create else 'rw'}"
            connection = sqlite3.connect(uri, uri=True, timeout=60, isolation_level=None)
            try:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            finally:
                connection.close()
        except sqlite3.Error as error:
            problem = str(error)
        if problem is not None:
            raise LedgerUnavailable(
                f"The witness {str(self._path)!r} cannot be used ({problem}), so nobody knows whether this is the "
                "latest copy of the ledger. Nothing is released."
            )


def check_forward(
    budget: str, last: tuple[int, str], state: tuple[int, str], hash_at: Callable[[int], str | None]
) -> None:
    """Check that a book has only grown since its last known entry. Errors: LedgerDamaged."""
    if state == last:
        return
    if state[0] < last[0] or (state[0] == last[0] and state[1] != last[1]) or hash_at(last[0]) != last[1]:
        raise LedgerDamaged(
            f"Budget {budget!r} had {last[0]} entries, and this ledger does not have them: it is an older copy, "
            "or it was changed. Charges are missing from it, so nothing is released. Put the latest ledger back."
        )
