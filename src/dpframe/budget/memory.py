"""The book of a budget in memory. It is lost when the process ends."""

from __future__ import annotations

import datetime as dt
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dpframe.budget.accountants import Accountant
from dpframe.budget.entries import GENESIS, Entry, Failures, sealed, texts_of
from dpframe.budget.losses import Loss
from dpframe.budget.parts import Parts
from dpframe.errors import UnsupportedOperation


class MemoryBook:
    """A book whose entries are in a list, under a lock. Tables are stored for releases that have a name."""

    name: str | None = None

    def __init__(
        self, accountant: Accountant, limit: Loss, at: dt.datetime, caps: Mapping[str, Any] | None = None
    ) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._entries: list[Entry] = []
        self._data: dict[int, bytes] = {}
        self._latest_of: dict[str, Entry] = {}
        self._spent = accountant.total([])
        self._subject: str | None = None
        self._parts: Parts = {}
        self._failures = Failures()
        self._caps = caps
        recorded = {} if caps is None else {"caps": caps["caps"]}
        first = {"accountant": accountant.name, "limit": texts_of(limit), **recorded}
        _MemoryPage(self).append("open", first, at)

    @contextmanager
    def write(self) -> Iterator[_MemoryPage]:
        """The locked page; entries are kept if the block ends without an error."""
        if os.getpid() != self._process:
            raise UnsupportedOperation(
                "This budget is in memory and this process is a fork of the one that made it, so each copy could be "
                "spent in full. Use a budget in a ledger: dp.Ledger('study.sqlite').budget('...', epsilon=...)."
            )
        with self._lock:
            page = _MemoryPage(self)
            yield page
            self._spent, self._subject, self._parts = page.spent, page.subject, page.parts
            self._failures, self._caps = page.failures, page.caps

    def spent(self) -> Loss:
        """The loss that has been charged so far."""
        with self._lock:
            return self._spent

    def failures(self) -> Failures:
        """The number of releases that failed after they were charged."""
        with self._lock:
            return self._failures

    def subjects(self, subject: str) -> tuple[str | None, list[str]]:
        """Whose privacy the budget is about; a process has no list of its budgets."""
        with self._lock:
            return self._subject, []

    def caps(self) -> Mapping[str, Any] | None:
        """The caps and their sums."""
        with self._lock:
            return self._caps

    def entries(self) -> list[Entry]:
        """Every entry, oldest first."""
        with self._lock:
            return list(self._entries)

    def tables(self, opening: int) -> dict[int, bytes]:
        """The stored tables of the charges that `opening` paid for in advance."""
        with self._lock:
            members = [e.number for e in self._entries if e.about == opening and e.kind == "charge"]
            return {number: self._data[number] for number in members if number in self._data}

    def reopening(self) -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
        """None: another process cannot open this book."""
        return None


class _MemoryPage:
    """A page of a book in memory."""

    role: str | None = None

    def __init__(self, book: MemoryBook) -> None:
        self._book = book
        self.spent, self.subject, self.parts = book._spent, book._subject, book._parts
        self.failures, self.caps = book._failures, book._caps

    @property
    def head(self) -> str:
        """The hash of the last entry."""
        return self._book._entries[-1].hash if self._book._entries else GENESIS

    def append(self, kind: str, body: Mapping[str, Any], at: dt.datetime, data: bytes | None = None) -> Entry:
        entries = self._book._entries
        entry = sealed(self.head, len(entries) + 1, kind, at.isoformat(timespec="microseconds"), body)
        if data is not None and entries[body["about"] - 1].name is not None:
            self._book._data[body["about"]] = data
        entries.append(entry)
        if entry.spender is not None:
            self._book._latest_of[entry.spender] = entry
        return entry

    def latest(self, name: str) -> Entry | None:
        return next((e for e in reversed(self._book._entries) if e.kind == "charge" and e.name == name), None)

    def latest_of(self, spender: str) -> Entry | None:
        return self._book._latest_of.get(spender)

    def result(self, number: int) -> tuple[Entry, bytes] | None:
        entry = self._about(number, "result")
        return None if entry is None else (entry, self._book._data.get(number, b""))  # kept only under a name

    def has_failed(self, number: int) -> bool:
        return self._about(number, "failure") is not None

    def is_lost(self, number: int) -> bool:
        return self._about(number, "lost") is not None

    def members(self, opening: int) -> list[Entry]:
        return [e for e in self._book._entries if e.about == opening and e.kind in ("charge", "transfer")]

    def _about(self, number: int, kind: str) -> Entry | None:
        later = self._book._entries[number:]  # what is about an entry comes after it, and numbers begin at 1
        return next((e for e in later if e.about == number and e.kind == kind), None)
