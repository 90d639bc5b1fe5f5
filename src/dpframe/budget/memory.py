"""The book of a budget in memory. It is lost when the process ends."""

from __future__ import annotations

import copy
import datetime as dt
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dpframe.budget.accountants import Accountant
from dpframe.budget.entries import GENESIS, Entry, Failures, sealed, texts_of
from dpframe.budget.losses import Loss
from dpframe.budget.parts import Parts
from dpframe.errors import UnsupportedOperation
from dpframe.fields import Fields


class MemoryBook:
    """A book whose entries are in a list, under a lock.
    Tables are stored for releases that have a name.
    """

    name: str | None = None

    def __init__(
        self, accountant: Accountant, limit: Loss, at: dt.datetime, caps: Fields | None = None
    ) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._page = _MemoryPage(accountant.total([]), caps)
        recorded = {} if caps is None else {"caps": caps["caps"]}
        self._page.append(
            "open", {"accountant": accountant.name, "limit": texts_of(limit), **recorded}, at
        )

    @contextmanager
    def write(self) -> Iterator[_MemoryPage]:
        """The locked page; entries are kept if the block ends without an error."""
        if os.getpid() != self._process:
            raise UnsupportedOperation(
                "This budget is in memory and this process is a fork of the one that made it, so "
                "each copy could be spent in full. Use a budget in a ledger: "
                "dp.Ledger('study.sqlite').budget('...', epsilon=...)."
            )
        with self._lock:
            page = copy.copy(self._page)
            yield page
            self._page = page

    def spent(self) -> Loss:
        """The loss that has been charged so far."""
        return self._page.spent

    def failures(self) -> Failures:
        """The number of releases that failed after they were charged."""
        return self._page.failures

    def subjects(self, subject: str) -> tuple[str | None, list[str]]:
        """The unit that the budget protects; a process has no list of its budgets."""
        return self._page.subject, []

    def caps(self) -> Fields | None:
        """The caps and their sums."""
        return self._page.caps

    def entries(
        self, name: str | None = None, under: int | None = None, number: int | None = None
    ) -> list[Entry]:
        """Every entry; those of a name, those under a charge, or the
        one of a number; oldest first.
        """
        with self._lock:
            entries = list(self._page.entries)
        if name is not None:
            return [entry for entry in entries if entry.name == name]
        if number is not None:
            return entries[max(number - 1, 0) : max(number, 0)]
        if under is not None:
            about = {under, *(entry.number for entry in entries if entry.about == under)}
            return [entry for entry in entries if entry.about in about]
        return entries

    def one_by_one(self, since: dt.datetime | None = None) -> Iterator[Entry]:
        """Every entry, or those from the first one of this time on; oldest first."""
        return itertools.dropwhile(
            lambda entry: since is not None and entry.when < since, self.entries()
        )

    def tables(self, opening: int) -> dict[int, bytes]:
        """The stored tables of the charges that `opening` paid for in advance."""
        with self._lock:
            page = self._page
            members = [entry.number for entry in page.members(opening)]
            return {number: page.data[number] for number in members if number in page.data}

    def reopening(self) -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
        """None: another process cannot open this book."""
        return None


@dataclass
class _MemoryPage:
    """The state of a book in memory. Copies share the entries, to which some are only added."""

    spent: Loss
    caps: Fields | None
    subject: str | None = None
    parts: Parts = field(default_factory=dict)
    failures: Failures = field(default_factory=Failures)
    entries: list[Entry] = field(default_factory=list)
    data: dict[int, bytes] = field(default_factory=dict)
    latest_by: dict[str, Entry] = field(default_factory=dict)
    role: str | None = None
    where: str | None = None

    @property
    def head(self) -> str:
        """The hash of the last entry."""
        return self.entries[-1].hash if self.entries else GENESIS

    def append(self, kind: str, body: Fields, at: dt.datetime, data: bytes | None = None) -> Entry:
        entry = sealed(
            self.head, len(self.entries) + 1, kind, at.isoformat(timespec="microseconds"), body
        )
        if data is not None and self.entries[body["about"] - 1].name is not None:
            self.data[body["about"]] = data
        self.entries.append(entry)
        if entry.spender is not None:
            self.latest_by[entry.spender] = entry
        return entry

    def latest(self, name: str) -> Entry | None:
        return next((e for e in reversed(self.entries) if e.is_charge and e.name == name), None)

    def latest_of(self, spender: str) -> Entry | None:
        return self.latest_by.get(spender)

    def result(self, number: int) -> tuple[Entry, bytes] | None:
        entry = self._about(number, "result")
        # kept only under a name
        return None if entry is None else (entry, self.data.get(number, b""))

    def has_failed(self, number: int) -> bool:
        return self._about(number, "failure") is not None

    def is_lost(self, number: int) -> bool:
        return self._about(number, "lost") is not None

    def members(self, opening: int) -> list[Entry]:
        return [e for e in self.entries if e.is_member_of(opening)]

    def _about(self, number: int, kind: str) -> Entry | None:
        # what is about an entry comes after it, and numbers begin at 1
        later = self.entries[number:]
        return next((e for e in later if e.about == number and e.kind == kind), None)
