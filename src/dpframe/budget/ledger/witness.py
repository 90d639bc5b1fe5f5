"""A witness: how far each budget of a ledger had come, kept outside the ledger's folder.

Whoever restores a backup of the ledger's folder, or copies an old file back, does not restore the witness, which then
knows of charges that the ledger has lost. It only ever moves forward.
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
    """What was last seen of a ledger. Input: path of the witness; place, where the ledger is (a path or URL)."""

    def __init__(self, path: Path, place: str, folder: Path | None) -> None:
        self._path, self._place = path.absolute(), place
        if folder is not None and self._path.parent.resolve().is_relative_to(folder.resolve()):
            raise InvalidArgument(
                f"witness={str(path)!r} is in the ledger's own folder, where it would be put back together with it. "
                "Choose a file elsewhere, best on another disk."
            )
        with self._open(create=True) as connection:
            connection.execute(TABLE)

    def known_here(self) -> str | None:
        """The id of the ledger that was last seen in this place."""
        with self._open() as connection:
            row = connection.execute("SELECT ledger FROM seen WHERE place = ? ORDER BY rowid DESC", (self._place,))
            found = row.fetchone()
        return None if found is None else str(found[0])

    def check(self, ledger: str, budget: str, number: int, head: str, hash_at: Callable[[int], str | None]) -> None:
        """Hold a budget's state against what was seen. Errors: LedgerDamaged."""
        with self._open() as connection:
            found = connection.execute(
                "SELECT number, head FROM seen WHERE ledger = ? AND budget = ?", (ledger, budget)
            ).fetchone()
        if found is not None:
            check_forward(budget, (int(found[0]), str(found[1])), (number, head), hash_at)

    def advance(self, ledger: str, budget: str, number: int, head: str) -> None:
        """Remember a budget's state, unless a later one is known."""
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
                f"The witness {str(self._path)!r} cannot be used ({problem}), so nothing tells whether the ledger is "
                "the latest. Nothing is released."
            )


def check_forward(
    budget: str, seen: tuple[int, str], state: tuple[int, str], hash_at: Callable[[int], str | None]
) -> None:
    """A book may only have grown since it was seen. Errors: LedgerDamaged."""
    if state == seen:
        return
    if state[0] < seen[0] or (state[0] == seen[0] and state[1] != seen[1]) or hash_at(seen[0]) != seen[1]:
        raise LedgerDamaged(
            f"Budget {budget!r} had {seen[0]} entries, and the ledger that is there now does not hold them: an older "
            "copy was put back, or it was changed. Charges are missing from it, so nothing is released. "
            "Put the latest ledger back."
        )
