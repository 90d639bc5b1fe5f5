"""Going over a ledger's book: whether what is there is what was written, and all of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import sqlalchemy as sa

from dpframe.budget.accountants import accountant_named
from dpframe.budget.entries import GENESIS, Failures, loss_of, sealed
from dpframe.budget.ledger.book import ALL, HASH, entry_of, failures_of
from dpframe.budget.ledger.store import Store
from dpframe.budget.ledger.tables import BUDGETS, DATA
from dpframe.budget.ledger.witness import Witness
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
    accountant, head, charges, about = accountant_named(state.accountant), GENESIS, {}, set()
    failures = Failures()
    failed: set[int | None] = set()
    parts: Parts = {}
    for place, row in enumerate(rows, 1):
        entry = entry_of(row)
        if entry.number != place:
            problems.append(f"entry {place} is missing")
            break
        if sealed(head, place, entry.kind, entry.at, entry.body).hash != entry.hash:
            problems.append(f"entry {place} was changed, or the one before it")
            break
        if (row.name, row.about) != (entry.name, entry.about):
            problems.append(f"entry {place} is looked up by another name than it has")
        head = entry.hash
        if entry.kind == "charge":
            charges[place] = loss_of(entry.body["loss"])
            if "part" in entry.body:
                said = entry.body["part"]
                part = Part(said["partition"], said["key"])
                added, parts = raised(parts, part, loss_of(said["loss"])) if part.partition in parts else (None, parts)
                if added != charges[place]:
                    problems.append(f"charge {place} is not what its part of a partition adds")
        elif entry.kind == "partition":
            parts = opened(parts, entry.body["partition"], entry.body["groups"], entry.body["salt"])
        elif entry.kind == "result":
            if entry.about not in charges or entry.about in about:
                problems.append(f"entry {place} is the result of no earlier charge")
            if kept.get(entry.about or 0) != entry.body["digest"]:
                problems.append(f"the table of charge {entry.about} was changed")
            about.add(entry.about)
        elif entry.kind == "failure":
            if entry.about not in charges or entry.about in about | failed:
                problems.append(f"entry {place} is the failure of no earlier charge")
            failed.add(entry.about)
            failures = Failures(failures.failed + 1, failures.unacknowledged + 1)
        elif entry.kind == "acknowledgement":
            if (entry.body["failed"], entry.body["failures"]) != failures:
                problems.append(f"entry {place} acknowledges other failures than there were")
            failures = Failures(failures.failed, 0)
    if extra := sorted(set(kept) - about):
        problems.append(f"there is a table of charge {extra[0]} without an entry")
    if compared(json.loads(state.parts)) != compared(parts):
        problems.append("what its row says of partitions is not what its charges add up to")
    if failures_of(state) != failures:
        problems.append("what its row says of failures is not what its entries say")
    if not problems:
        problems = _sums(state, rows, head, accountant.total(charges.values()))
    return len(rows), problems


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
