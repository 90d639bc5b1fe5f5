"""Verification of a ledger's book: all entries are there, unchanged and in
order, and their sums are right.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from dpframe.budget import caps
from dpframe.budget.accountants import Accountant, accountant_named
from dpframe.budget.entries import GENESIS, UNREADABLE, Entry, Failures, chained, digest_of, loss_of
from dpframe.budget.ledger.book import HASH, B, caps_of, check_seen, entry_of, failures_of
from dpframe.budget.ledger.schema import BUDGETS, DATA, ENTRIES, RESULTS
from dpframe.budget.ledger.store import Store
from dpframe.budget.ledger.witness import Witness
from dpframe.budget.losses import Loss
from dpframe.budget.parts import PartName, Parts, Share, compared, moved, opened, raised
from dpframe.errors import LedgerDamaged, UnsupportedOperation
from dpframe.fields import Fields

PART = (  # the next entries, each result with its table
    sa.select(ENTRIES, DATA.c.data)
    .outerjoin(
        DATA,
        sa.and_(DATA.c.budget == ENTRIES.c.budget, DATA.c.number == ENTRIES.c.about, RESULTS),
    )
    .where(ENTRIES.c.budget == B("b"), ENTRIES.c.number > B("n"), ENTRIES.c.number <= B("m"))
    .order_by(ENTRIES.c.number)
    .limit(1000)
)
ANSWER = sa.exists().where(ENTRIES.c.budget == B("b"), ENTRIES.c.about == DATA.c.number, RESULTS)
ORPHAN = sa.select(sa.func.min(DATA.c.number)).where(DATA.c.budget == B("b"), ~ANSWER)
LAST = sa.select(sa.func.max(ENTRIES.c.number)).where(ENTRIES.c.budget == B("b")).scalar_subquery()
COUNTED = sa.select(BUDGETS.c.number, LAST).where(BUDGETS.c.name == B("b"))


def verified(store: Store, witness: Witness | None) -> dict[str, int]:
    """Verify every budget. Output: the number of entries, by budget.
    Errors: LedgerDamaged, with every problem.
    """
    damage = store.damage()
    lines = [] if damage is None else [f"SQLite says of its file: {damage}"]
    lines += [f"{name!r}: {problem}" for name, problem in unowned(store, witness).items()]
    with store.transaction() as connection:
        names = list(
            connection.execute(sa.select(BUDGETS.c.name).order_by(BUDGETS.c.name)).scalars()
        )
    numbers: dict[str, int] = {}
    for name in names:
        numbers[name], problems = findings(store, name, witness)
        lines += [f"{name!r}: {problem}" for problem in problems]
    if lines:
        raise LedgerDamaged(
            "The ledger does not add up:\n" + "\n".join(f"  {line}" for line in lines)
        )
    return numbers


def findings(store: Store, name: str, witness: Witness | None) -> tuple[int, list[str]]:
    """The number of a budget's entries, and a sentence for each problem.

    An entry that was changed, left out, added or moved breaks the chain of hashes. A table that was
    changed no longer has the digest in its entry. If somebody rewrites the whole chain, only a
    witness shows it. What another process charges between two readings looks like a problem. So
    problems are looked for again under the lock.
    """
    number, problems = _findings(store, name, witness, locked=False)
    return _findings(store, name, witness, locked=True) if problems else (number, problems)


def _findings(
    store: Store, name: str, witness: Witness | None, *, locked: bool
) -> tuple[int, list[str]]:
    """As `findings`; locked: whether nobody can charge the budget while it is read.

    Entries are read in parts. Without the lock each part is a transaction of its own, so that
    nobody waits for long.
    """
    known = store.seen.get(name)  # before the reading: another thread may charge meanwhile
    with store.transaction(write=locked) as connection:
        row = sa.select(BUDGETS).where(BUDGETS.c.name == name)
        state = connection.execute(row.with_for_update() if locked else row).one()
        problems = [] if witness is None else _unwitnessed(store, connection, name, state, witness)
        try:
            check_seen(connection, name, known, state)
        except LedgerDamaged as error:
            problems.append(str(error))
        reading = _Reading(problems)
        if locked:
            _read_all(reading, state, lambda: nullcontext(connection))
    if not locked:
        _read_all(reading, state, store.transaction)
    return reading.place, reading.problems


def _read_all(
    reading: _Reading, state: Any, transaction: Callable[[], AbstractContextManager[sa.Connection]]
) -> None:
    """Read all entries, and compare the budget's row with what follows from them."""
    try:
        reading.total = accountant_named(state.accountant).total([])
        more = True
        while more and reading.linked:
            with transaction() as connection:
                part = connection.execute(
                    PART, {"b": state.name, "n": reading.place, "m": state.number}
                )
                before = reading.place
                for row in part:
                    reading.read(row, accountant_named(state.accountant))
                    if not reading.linked:
                        break
                more = reading.place > before
        with transaction() as connection:
            orphan = connection.execute(ORPHAN, {"b": state.name}).scalar()
            counted, present = connection.execute(COUNTED, {"b": state.name}).one()
        if orphan is not None:
            reading.problems.append(f"there is a table of charge {orphan} without an entry")
        reading.compare(state)
        if reading.linked and (counted != present or reading.place != state.number):
            reading.problems.append(
                f"its row counts {counted} entries, and there are {present}: the last ones are "
                "missing"
            )
    except (*UNREADABLE, UnsupportedOperation):
        reading.problems.append("a value in its row or in an entry is none that dpframe writes")


def unowned(store: Store, witness: Witness | None) -> dict[str, str]:
    """A sentence for each name that has entries, tables or a line in the
    witness, and no row among the budgets.

    The names of budgets are read last, since another process may make a budget meanwhile.
    """
    sentences = (
        {}
        if witness is None
        else dict.fromkeys(witness.states(store.id) or {}, "the witness knows it")
    )
    with store.transaction() as connection:
        for column, words in (
            (DATA.c.budget, "there are tables of it"),
            (ENTRIES.c.budget, "there are entries of it"),
        ):
            sentences |= dict.fromkeys(
                connection.execute(sa.select(column).distinct()).scalars(), words
            )
        names = set(connection.execute(sa.select(BUDGETS.c.name)).scalars())
    return {
        str(name): f"{words}, and no row: the budget was removed"
        for name, words in sentences.items()
        if name not in names
    }


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
    """The state that follows from a budget's entries, read in order, and the problems with them.

    Of the charges it holds only those without an answer, so it does not grow with the number of
    entries.
    """

    problems: list[str]
    place: int = 0  # the number of entries that were read
    head: str = GENESIS
    # whether the chain of hashes holds so far; if not, no later entry can be trusted
    linked: bool = True
    opening: Fields = field(default_factory=dict)  # the body of the first entry
    total: Loss = field(default_factory=Loss.none)
    charged: set[int | None] = field(default_factory=set)  # charges without a result
    failed: set[int | None] = field(default_factory=set)  # of these
    lost: set[int | None] = field(default_factory=set)  # of these
    failures: Failures = field(default_factory=Failures)
    parts: Parts = field(default_factory=dict)
    # charges that pay for later ones
    openings: dict[int | None, Fields] = field(default_factory=dict)
    # of these, the allowance that paid for them
    payers: dict[int | None, int | None] = field(default_factory=dict)
    within: dict[int | None, Loss] = field(default_factory=dict)  # what was spent of each of these
    # what the budget counts for each allowance
    shares: dict[int | None, Share] = field(default_factory=dict)
    given: Entry | None = None  # the last entry, if it is a part that an allowance gives
    caps: caps.State | None = None  # the caps with their sums
    spenders: dict[str, Loss] = field(default_factory=dict)  # what each spender spent
    adopted: bool = False  # whether it goes on from a copy, with what was counted as lost
    subject: str | None = None  # of the last charge whose subject is known
    at: str = ""  # the time of the last entry
    latest: str = ""  # the latest time of an entry

    def read(self, row: Any, accountant: Accountant) -> None:
        """Add one entry to the state, and note its problems."""
        place = self.place + 1
        if row.number != place or chained(self.head, place, row.kind, row.at, row.body) != row.hash:
            what = "is missing" if row.number != place else "was changed, or the one before it"
            self.problems.append(f"entry {place} {what}")
            self.linked = False
            return
        entry = entry_of(row)
        self.place, self.head, self.at, self.latest = (
            place,
            row.hash,
            entry.at,
            max(self.latest, entry.at),
        )
        if (row.name, row.about, row.spender) != (entry.name, entry.about, entry.spender):
            self.problems.append(f"entry {place} is indexed under another name than its own")
        given, self.given = self.given, None
        if given is not None and not entry.is_transfer:
            self.problems.append(f"charge {given.number} gives a part of an allowance to nobody")
        match entry.kind:
            case "transfer":
                self._transfer(place, entry, given, accountant)
            case "open":
                self.opening = self.opening or entry.body
                self.caps = caps.begun(entry.body.get("caps"))
            case "caps":
                self.caps = caps.changed(
                    self.caps, entry.body["caps"], None if "adopted" in entry.body else entry.when
                )
            case "charge":
                self._charge(place, entry, accountant)
            case "partition":
                body = entry.body
                self.parts = opened(self.parts, body["partition"], body["groups"], body["salt"])
            case "result":
                self._result(place, entry, row.data)
            case "failure":
                if entry.about not in self.charged or entry.about in self.failed:
                    self.problems.append(f"entry {place} is the failure of no earlier charge")
                self.failed.add(entry.about)
                self.failures = Failures(self.failures.failed + 1, self.failures.unacknowledged + 1)
            case "lost":
                if not self._is_open(entry.about) or entry.about in self.failed:
                    self.problems.append(f"entry {place} marks no pending charge as lost")
                self.lost.add(entry.about)
            case "acknowledgement":
                if (entry.body["failed"], entry.body["failures"]) != self.failures:
                    self.problems.append(
                        f"entry {place} acknowledges other failures than there were"
                    )
                self.failures = Failures(self.failures.failed, 0)

    def _charge(self, place: int, entry: Entry, accountant: Accountant) -> None:
        loss = loss_of(entry.body["loss"])
        self.charged.add(place)
        self.total = accountant.total([self.total, loss])
        self.subject = entry.body.get("subject") or self.subject
        if "adopted" in entry.body:
            self.adopted = True
        else:
            self._capped(place, entry)
        if entry.opens is not None:
            self.openings[place] = entry.opens
            self.payers[place] = entry.about
            if entry.allowance is not None:
                self.shares[place] = Share.of(accountant, entry)
        if entry.within:
            self._within(place, entry)
        if "part" not in entry.body:
            return
        body, added = entry.body["part"], None
        part = PartName(body["partition"], body["key"])
        if part.partition in self.parts:
            added, self.parts = raised(self.parts, part, loss_of(body["loss"]))
        if added != loss:
            self.problems.append(
                f"charge {place} is not the loss that its part of a partition adds"
            )

    def _capped(self, place: int, entry: Entry) -> None:
        """Add a charge to the sums of its spender and of the caps."""
        price, held = caps.own_price(entry), caps.spender_price(entry)
        spender, before = entry.spender, Loss.none()
        if spender is not None:
            before = self.spenders.get(spender, before)
            self.spenders[spender] = before + held
            if loss_of(entry.body["by_spender"]) != self.spenders[spender]:
                self.problems.append(
                    f"charge {place} has another sum of its spender than the charges add up to"
                )
        if self.caps is not None:
            sums = caps.CapSums.of(self.caps, before, entry.when)
            if sums.exceeded(price, held) or (
                spender is None and caps.needs_spender(self.caps, held)
            ):
                self.problems.append(f"charge {place} is above a cap")
            self.caps = sums.after(price)

    def _within(self, place: int, entry: Entry) -> None:
        """Add a charge that an earlier one paid for in advance."""
        # or that of its series
        about = entry.about if entry.about in self.shares else self.payers.get(entry.about)
        if entry.about not in self.openings or (
            entry.part is not None and about not in self.shares
        ):
            self.problems.append(f"charge {place} names no earlier charge that paid for it")
        elif entry.part is not None:
            adds_up = accountant_named(self.openings[about]["accountant"])
            before = self.within.get(about, adds_up.total([]))
            self.within[about] = adds_up.total([before, entry.part])
            if entry.gives:
                self.given = entry
            else:
                self.shares[about] = self.shares[about].after(entry)

    def _transfer(
        self, place: int, entry: Entry, given: Entry | None, accountant: Accountant
    ) -> None:
        """Add what an allowance receives, or what is returned to the budget when it is closed."""
        about, body = entry.about, entry.body
        if (
            given is None
            or given.number != body["from"]
            or about not in self.shares
            or given.about not in self.shares
        ):
            self.problems.append(f"entry {place} is no part that an allowance gave")
            return
        giving, amount = self.shares[given.about], loss_of(given.body["within"]["loss"])
        if entry.receives:
            change, self.shares[given.about], self.shares[about] = moved(
                giving, self.shares[about], amount
            )
            received = loss_of(body["within"]["loss"])
            nothing = accountant_named(self.openings[about]["accountant"]).total([])
            self.within[about] = self.within.get(about, nothing) - received
        else:
            change, received = giving.closed(self.total), amount
            self.shares[given.about] = giving.after(given)
        if change != loss_of(body["loss"]) or amount != received:
            self.problems.append(f"entry {place} has another loss than that which was moved")
        self.total = self.total + change
        self._capped(place, entry)

    def _result(self, place: int, entry: Entry, data: object) -> None:
        if not self._is_open(entry.about):
            self.problems.append(f"entry {place} is the result of no earlier charge")
        if digest_of(data) != entry.body["digest"]:
            self.problems.append(f"the table of charge {entry.about} was changed")
        for charges in (self.charged, self.failed, self.lost):
            charges.discard(entry.about)

    def _is_open(self, charge: int | None) -> bool:
        """Whether there is such a charge, with neither a result nor the mark that it was lost."""
        return charge in self.charged and charge not in self.lost

    def compare(self, state: Any) -> None:
        """Compare the budget's own row with the entries."""
        if compared(json.loads(state.parts)) != compared(self.parts):
            self.problems.append(
                "the losses of partitions in its row are not those that its charges add up to"
            )
        if failures_of(state) != self.failures:
            self.problems.append("the numbers of failures in its row are not those of its entries")
        if caps_of(state) != self.caps:
            self.problems.append(
                "the sums of its caps in its row are not those that its charges add up to"
            )
        if state.subject != self.subject:
            self.problems.append(
                f"its row is about {state.subject!r}, and its charges are about {self.subject!r}"
            )
        if state.at not in (self.at, self.latest):  # formats before 4 wrote the latest time
            self.problems.append("the time in its row is not that of its latest entry")
        for number, spent in self.within.items():
            if not spent <= loss_of(self.openings[number]["limit"]):
                self.problems.append(f"more than the allowance of charge {number} was spent")
        if not self.problems:
            self.problems += self._sums(state)

    def _sums(self, state: Any) -> list[str]:
        """The differences between the budget's row and its entries."""
        problems, limit = [], loss_of(json.loads(state.allowed))
        if state.head != self.head:
            problems.append("the last entry is not the one that its row names")
        # earlier versions did not write it
        if self.opening.get("budget", state.name) != state.name:
            problems.append(f"its entries are those of the budget {self.opening['budget']!r}")
        made = self.opening.get("limit")
        if made is None or loss_of(made) != limit or self.opening["accountant"] != state.accountant:
            problems.append("its limit is not the one that it was made with")
        row_total = loss_of(json.loads(state.spent))
        if row_total != self.total:
            problems.append(
                f"its row says {row_total} was spent, and the charges add up to {self.total}"
            )
        if not self.adopted and not accountant_named(state.accountant).allows(row_total, limit):
            problems.append(f"more than its limit was spent: {row_total} of {limit}")
        return problems
