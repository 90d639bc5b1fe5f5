"""Verification of a ledger's book: all entries are there, unchanged and in order, and their sums are right."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from dpframe.budget.accountants import accountant_named
from dpframe.budget.entries import GENESIS, Entry, Failures, chained, digest_of, loss_of
from dpframe.budget.ledger.book import ALL, HASH, UNREADABLE, entry_of, failures_of
from dpframe.budget.ledger.store import Store
from dpframe.budget.ledger.tables import BUDGETS, DATA, ENTRIES
from dpframe.budget.ledger.witness import Witness
from dpframe.budget.losses import Loss
from dpframe.budget.parts import PartName, Parts, compared, opened, raised
from dpframe.errors import LedgerDamaged, UnsupportedOperation

__all__ = ["findings", "unowned"]


def findings(store: Store, name: str, witness: Witness | None) -> tuple[int, list[str]]:
    """The number of a budget's entries, and a sentence for each problem.

    An entry that was changed, left out, added or moved breaks the chain of hashes. A table that was changed no longer
    has the digest in its entry. If somebody rewrites the whole chain, only a witness shows it. What another process
    charges between two readings looks like a problem. So problems are looked for again under the lock.
    """
    number, problems = _findings(store, name, witness, locked=False)
    return _findings(store, name, witness, locked=True) if problems else (number, problems)


def _findings(store: Store, name: str, witness: Witness | None, *, locked: bool) -> tuple[int, list[str]]:
    """As `findings`; locked: whether nobody can charge the budget while it is read."""
    with store.transaction(write=locked) as connection:
        row = sa.select(BUDGETS).where(BUDGETS.c.name == name)
        state = connection.execute(row.with_for_update() if locked else row).one()
        rows = connection.execute(ALL, {"b": name}).all()
        tables = connection.execute(sa.select(DATA.c.number, DATA.c.data).where(DATA.c.budget == name))
        digests = {number: digest_of(data) for number, data in tables}
        problems = [] if witness is None else _unwitnessed(store, connection, name, state, witness)
    try:
        _read(_Reading(digests, problems), state, rows)
    except (*UNREADABLE, UnsupportedOperation):
        problems.append("a value in its row or in an entry is none that dpframe writes")
    return len(rows), problems


def unowned(store: Store, witness: Witness | None) -> dict[str, str]:
    """A sentence for each name that has entries, tables or a line in the witness, and no row among the budgets.

    The names of budgets are read last, since another process may make a budget meanwhile.
    """
    sentences = {} if witness is None else dict.fromkeys(witness.budgets(store.id), "the witness knows it")
    with store.transaction() as connection:
        for column, words in ((DATA.c.budget, "there are tables of it"), (ENTRIES.c.budget, "there are entries of it")):
            sentences |= dict.fromkeys(connection.execute(sa.select(column).distinct()).scalars(), words)
        names = set(connection.execute(sa.select(BUDGETS.c.name)).scalars())
    return {
        str(name): f"{words}, and no row: the budget was removed"
        for name, words in sentences.items()
        if name not in names
    }


def _read(reading: _Reading, state: sa.Row, rows: Sequence[sa.Row]) -> None:  # type: ignore[type-arg]
    """Read all entries, and compare the budget's row with what follows from them."""
    for place, row in enumerate(rows, 1):
        if not reading.linked(place, row):
            break
        reading.read(place, entry_of(row), (row.name, row.about))
    reading.compare(state)
    if not reading.problems:
        total = accountant_named(state.accountant).total(reading.charges.values())
        reading.problems += _sums(state, rows, reading.head, total)


def _unwitnessed(
    store: Store,
    connection: sa.Connection,
    name: str,
    state: sa.Row,  # type: ignore[type-arg]
    witness: Witness,
) -> list[str]:
    """The problem, if the witness has seen entries of a budget that the ledger no longer has."""

    def hash_of(number: int) -> str | None:
        return connection.execute(HASH, {"b": name, "n": number}).scalar()

    try:
        witness.check(store.id, name, state.number, state.head, hash_of)
    except LedgerDamaged as error:
        return [str(error)]
    except TypeError:
        return ["the number of entries in its row is no number"]
    return []


@dataclass
class _Reading:
    """The state that follows from a budget's entries, read in order, and the problems with them."""

    digests: Mapping[int, str]  # digests of the stored tables, by charge
    problems: list[str]
    head: str = GENESIS
    charges: dict[int, Loss] = field(default_factory=dict)
    answered: set[int | None] = field(default_factory=set)  # charges that have a result
    failed: set[int | None] = field(default_factory=set)
    lost: set[int | None] = field(default_factory=set)
    failures: Failures = field(default_factory=Failures)
    parts: Parts = field(default_factory=dict)
    openings: dict[int | None, Mapping[str, Any]] = field(default_factory=dict)  # charges that pay for later ones
    within: dict[int | None, list[Loss]] = field(default_factory=dict)  # the losses within each of these openings
    subject: str | None = None  # of the last charge whose subject is known
    at: str = ""  # the latest time of an entry

    def linked(self, place: int, row: sa.Row) -> bool:  # type: ignore[type-arg]
        """Whether a row is the next entry of the chain. If it is not, no later entry can be trusted."""
        if row.number != place:
            self.problems.append(f"entry {place} is missing")
            return False
        if chained(self.head, place, row.kind, row.at, row.body) != row.hash:
            self.problems.append(f"entry {place} was changed, or the one before it")
            return False
        self.head = row.hash
        return True

    def read(self, place: int, entry: Entry, index: tuple[str | None, int | None]) -> None:
        """Add one entry to the state, and note its problems. `index` is where its row says that it is found."""
        if index != (entry.name, entry.about):
            self.problems.append(f"entry {place} is indexed under another name than its own")
        self.at = max(self.at, entry.at)
        match entry.kind:
            case "charge":
                self._charge(place, entry)
            case "partition":
                body = entry.body
                self.parts = opened(self.parts, body["partition"], body["groups"], body["salt"])
            case "result":
                self._result(place, entry)
            case "failure":
                if entry.about not in self.charges or entry.about in self.answered or entry.about in self.failed:
                    self.problems.append(f"entry {place} is the failure of no earlier charge")
                self.failed.add(entry.about)
                self.failures = Failures(self.failures.failed + 1, self.failures.unacknowledged + 1)
            case "lost":
                if not self._is_open(entry.about) or entry.about in self.failed:
                    self.problems.append(f"entry {place} marks no pending charge as lost")
                self.lost.add(entry.about)
            case "acknowledgement":
                if (entry.body["failed"], entry.body["failures"]) != self.failures:
                    self.problems.append(f"entry {place} acknowledges other failures than there were")
                self.failures = Failures(self.failures.failed, 0)

    def _charge(self, place: int, entry: Entry) -> None:
        self.charges[place] = loss_of(entry.body["loss"])
        self.subject = entry.body.get("subject") or self.subject
        if "opens" in entry.body:
            self.openings[place] = entry.body["opens"]
        if "within" in entry.body:
            self._within(place, entry)
        if "part" not in entry.body:
            return
        body, added = entry.body["part"], None
        part = PartName(body["partition"], body["key"])
        if part.partition in self.parts:
            added, self.parts = raised(self.parts, part, loss_of(body["loss"]))
        if added != self.charges[place]:
            self.problems.append(f"charge {place} is not the loss that its part of a partition adds")

    def _within(self, place: int, entry: Entry) -> None:
        """Add a charge that an earlier one paid for in advance."""
        if entry.about not in self.openings:
            self.problems.append(f"charge {place} names no earlier charge that paid for it")
        elif "loss" in entry.body["within"]:
            self.within.setdefault(entry.about, []).append(loss_of(entry.body["within"]["loss"]))

    def _result(self, place: int, entry: Entry) -> None:
        if not self._is_open(entry.about):
            self.problems.append(f"entry {place} is the result of no earlier charge")
        if self.digests.get(entry.about or 0) != entry.body["digest"]:
            self.problems.append(f"the table of charge {entry.about} was changed")
        self.answered.add(entry.about)

    def _is_open(self, charge: int | None) -> bool:
        """Whether there is such a charge, with neither a result nor the mark that it was lost."""
        return charge in self.charges and charge not in self.answered and charge not in self.lost

    def compare(self, state: sa.Row) -> None:  # type: ignore[type-arg]
        """Compare the budget's own row and the stored tables with the entries."""
        if orphans := sorted(set(self.digests) - self.answered):
            self.problems.append(f"there is a table of charge {orphans[0]} without an entry")
        if compared(json.loads(state.parts)) != compared(self.parts):
            self.problems.append("the losses of partitions in its row are not those that its charges add up to")
        if failures_of(state) != self.failures:
            self.problems.append("the numbers of failures in its row are not those of its entries")
        if state.subject != self.subject:
            self.problems.append(f"its row is about {state.subject!r}, and its charges are about {self.subject!r}")
        if state.at != self.at:
            self.problems.append("the time in its row is not that of its latest entry")
        for number, losses in self.within.items():
            opening = self.openings[number]
            if not accountant_named(opening["accountant"]).total(losses) <= loss_of(opening["limit"]):
                self.problems.append(f"more than the allowance of charge {number} was spent")


def _sums(state: sa.Row, rows: Sequence[sa.Row], head: str, total: object) -> list[str]:  # type: ignore[type-arg]
    """The differences between the budget's row and its entries."""
    problems = []
    limit, opening = loss_of(json.loads(state.allowed)), json.loads(rows[0].body) if rows else {}
    if (state.number, state.head) != (len(rows), head):
        problems.append(f"its row counts {state.number} entries, and there are {len(rows)}: the last ones are missing")
    if opening.get("budget", state.name) != state.name:  # earlier versions did not write it
        problems.append(f"its entries are those of the budget {opening['budget']!r}")
    if opening.get("limit") is None or loss_of(opening["limit"]) != limit or opening["accountant"] != state.accountant:
        problems.append("its limit is not the one that it was made with")
    row_total = loss_of(json.loads(state.spent))
    if row_total != total:
        problems.append(f"its row says {row_total} was spent, and the charges add up to {total}")
    if not row_total <= limit:
        problems.append(f"more than its limit was spent: {row_total} of {limit}")
    return problems
