"""Going over a ledger's book: whether what is there is what was written, and all of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from dpframe.budget.accountants import accountant_named
from dpframe.budget.entries import GENESIS, Entry, Failures, loss_of, sealed
from dpframe.budget.ledger.book import ALL, HASH, entry_of, failures_of
from dpframe.budget.ledger.store import Store
from dpframe.budget.ledger.tables import BUDGETS, DATA
from dpframe.budget.ledger.witness import Witness
from dpframe.budget.losses import Loss
from dpframe.budget.parts import Part, Parts, compared, opened, raised
from dpframe.errors import LedgerDamaged

__all__ = ["findings"]


def findings(store: Store, name: str, witness: Witness | None) -> tuple[int, list[str]]:
    """How many entries a budget has, and what is wrong with them, in words.

    An entry that was changed, left out, added or moved breaks the chain of hashes; a table that was changed no longer
    has the digest in its entry. Whoever rewrites the whole chain is only found out by a witness.
    """
    problems = []
    with store.transaction() as connection:
        state = connection.execute(sa.select(BUDGETS).where(BUDGETS.c.name == name)).one()
        rows = connection.execute(ALL, {"b": name}).all()
        kept = {
            n: hashlib.sha256(data).hexdigest()
            for n, data in connection.execute(sa.select(DATA.c.number, DATA.c.data).where(DATA.c.budget == name))
        }
        if witness is not None:
            try:
                witness.check(
                    store.id,
                    name,
                    state.number,
                    state.head,
                    lambda n: connection.execute(HASH, {"b": name, "n": n}).scalar(),
                )
            except LedgerDamaged as error:
                problems.append(str(error))
    seen = _Seen()
    for place, row in enumerate(rows, 1):
        entry = entry_of(row)
        if entry.number != place:
            problems.append(f"entry {place} is missing")
            break
        if sealed(seen.head, place, entry.kind, entry.at, entry.body).hash != entry.hash:
            problems.append(f"entry {place} was changed, or the one before it")
            break
        if (row.name, row.about) != (entry.name, entry.about):
            problems.append(f"entry {place} is looked up by another name than it has")
        seen.head = entry.hash
        problems += seen.add(place, entry, kept.get(entry.about or 0))
    if extra := sorted(set(kept) - seen.answered):
        problems.append(f"there is a table of charge {extra[0]} without an entry")
    if compared(json.loads(state.parts)) != compared(seen.parts):
        problems.append("what its row says of partitions is not what its charges add up to")
    if failures_of(state) != seen.failures:
        problems.append("what its row says of failures is not what its entries say")
    problems += seen.allowances()
    if not problems:
        problems = _sums(state, rows, seen.head, accountant_named(state.accountant).total(seen.charges.values()))
    return len(rows), problems


@dataclass
class _Seen:
    """What the entries so far add up to."""

    head: str = GENESIS
    charges: dict[int | None, Loss] = field(default_factory=dict)
    answered: set[int | None] = field(default_factory=set)
    failed: set[int | None] = field(default_factory=set)
    lost: set[int | None] = field(default_factory=set)
    failures: Failures = field(default_factory=Failures)
    parts: Parts = field(default_factory=dict)
    openings: dict[int | None, Mapping[str, Any]] = field(default_factory=dict)
    within: dict[int | None, list[Loss]] = field(default_factory=dict)

    def add(self, place: int, entry: Entry, digest: str | None) -> list[str]:
        """Go on with an entry; what is wrong with it, in words. Input: its place, and the hash of its stored table."""
        about, body = entry.about, entry.body
        if entry.kind == "charge":
            return self._charge(place, entry)
        if entry.kind == "partition":
            self.parts = opened(self.parts, body["partition"], body["groups"], body["salt"])
        if entry.kind == "result":
            known = about in self.charges and about not in self.answered | self.lost
            self.answered.add(about)
            wrong = [] if known else [f"entry {place} is the result of no earlier charge"]
            return wrong if digest == body["digest"] else [*wrong, f"the table of charge {about} was changed"]
        if entry.kind == "failure":
            known = about in self.charges and about not in self.answered | self.failed
            self.failed.add(about)
            self.failures = Failures(self.failures.failed + 1, self.failures.unacknowledged + 1)
            return [] if known else [f"entry {place} is the failure of no earlier charge"]
        if entry.kind == "lost":
            known = about in self.charges and about not in self.answered | self.failed | self.lost
            self.lost.add(about)
            return [] if known else [f"entry {place} marks no pending charge as lost"]
        if entry.kind == "acknowledgement":
            same = (body["failed"], body["failures"]) == self.failures
            self.failures = Failures(self.failures.failed, 0)
            return [] if same else [f"entry {place} acknowledges other failures than there were"]
        return []

    def _charge(self, place: int, entry: Entry) -> list[str]:
        body, wrong = entry.body, []
        self.charges[place] = loss_of(body["loss"])
        if "opens" in body:
            self.openings[place] = body["opens"]
        if "within" in body:
            if entry.about not in self.openings:
                wrong.append(f"charge {place} is paid by no earlier one")
            elif "loss" in body["within"]:
                self.within.setdefault(entry.about, []).append(loss_of(body["within"]["loss"]))
        if "part" in body:
            said = body["part"]
            part, added = Part(said["partition"], said["key"]), None
            if part.partition in self.parts:
                added, self.parts = raised(self.parts, part, loss_of(said["loss"]))
            if added != self.charges[place]:
                wrong.append(f"charge {place} is not what its part of a partition adds")
        return wrong

    def allowances(self) -> list[str]:
        """Whether what was spent of each allowance is within it."""
        return [
            f"more than the allowance of charge {number} was spent"
            for number, losses in self.within.items()
            if not accountant_named(self.openings[number]["accountant"]).total(losses)
            <= loss_of(self.openings[number]["limit"])
        ]


def _sums(state: sa.Row, rows: Sequence[sa.Row], head: str, total: object) -> list[str]:  # type: ignore[type-arg]
    """Whether the budget's row follows from its entries."""
    problems = []
    limit, opened = loss_of(json.loads(state.allowed)), json.loads(rows[0].body) if rows else {}
    if (state.number, state.head) != (len(rows), head):
        problems.append(f"its row counts {state.number} entries, and there are {len(rows)}: the last ones are missing")
    if opened.get("limit") is None or loss_of(opened["limit"]) != limit or opened["accountant"] != state.accountant:
        problems.append("its limit is not the one that it was made with")
    spent = loss_of(json.loads(state.spent))
    if spent != total:
        problems.append(f"its row says {spent} was spent, and the charges add up to {total}")
    if not spent <= limit:
        problems.append(f"more than its limit was spent: {spent} of {limit}")
    return problems
