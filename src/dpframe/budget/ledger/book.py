"""The book of a budget in a ledger: each change is one locked transaction."""

from __future__ import annotations

import datetime as dt
import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from dpframe.budget.entries import (
    Entry,
    Failures,
    canonical,
    chained,
    digest_of,
    loss_of,
    readable,
    texts_of,
)
from dpframe.budget.ledger.schema import BUDGETS, DATA, ENTRIES, RESULTS
from dpframe.budget.ledger.store import Store
from dpframe.budget.ledger.witness import Witness, check_forward
from dpframe.budget.losses import Loss
from dpframe.budget.parts import Parts
from dpframe.errors import LedgerDamaged, LedgerUnavailable, UnsupportedOperation
from dpframe.fields import FieldDict, Fields
from dpframe.noise import bits

Known = list[tuple[str, tuple[int, str]]]  # budgets, each with the number and the hash of an entry
Reopening = tuple[Callable[..., Any], tuple[Any, ...]]

AT_ONCE = 1000  # entries of a part that is read
B = sa.bindparam
STATE = sa.select(BUDGETS).where(BUDGETS.c.name == B("b")).with_for_update()
CAPS = sa.select(BUDGETS.c.caps).where(BUDGETS.c.name == B("b"))
SUBJECTS = (
    sa.select(BUDGETS.c.name, BUDGETS.c.subject)
    .where(BUDGETS.c.subject != "")
    .order_by(BUDGETS.c.name)
)
SPENT = sa.select(BUDGETS.c.spent).where(BUDGETS.c.name == B("b"))
FAILURES = sa.select(BUDGETS.c.failures, BUDGETS.c.acknowledged).where(BUDGETS.c.name == B("b"))
HASH = sa.select(ENTRIES.c.hash).where(ENTRIES.c.budget == B("b"), ENTRIES.c.number == B("n"))
NAMES = sa.select(BUDGETS.c.name).order_by(BUDGETS.c.name)
WRITTEN = (
    sa.select(BUDGETS, ENTRIES.c.hash)
    .join(ENTRIES, sa.and_(ENTRIES.c.budget == BUDGETS.c.name, ENTRIES.c.number == B("n")))
    .where(BUDGETS.c.name == B("b"))
)
OF_BUDGET = sa.select(ENTRIES).where(ENTRIES.c.budget == B("b"))
NEXT = OF_BUDGET.where(ENTRIES.c.number > B("n")).order_by(ENTRIES.c.number).limit(AT_ONCE)
FIRST = sa.select(sa.func.min(ENTRIES.c.number)).where(
    ENTRIES.c.budget == B("b"), ENTRIES.c.at >= B("at")
)
FROM = sa.select(FIRST.scalar_subquery(), BUDGETS.c.number).where(BUDGETS.c.name == B("b"))
BEFORE, CHARGES, OTHERS = ENTRIES.alias("before"), ENTRIES.alias("charges"), ENTRIES.alias("others")
# Databases would go over all entries in the order of numbers, and not look into the index of what
# is sought, if the number itself was the order.
PLACE = ENTRIES.c.number + sa.literal_column("0")
NAMED = OF_BUDGET.where(ENTRIES.c.name == B("sought")).order_by(PLACE)
NUMBERED = OF_BUDGET.where(ENTRIES.c.number == B("sought"))
LATEST = NAMED.order_by(None).order_by(PLACE.desc())
# one list of numbers, since databases go over all entries for "this one, or one of these"
UNDER = OF_BUDGET.where(
    ENTRIES.c.about.in_(
        sa.union_all(
            sa.select(OTHERS.c.number).where(
                OTHERS.c.budget == B("b"), OTHERS.c.about == B("sought")
            ),
            sa.select(sa.cast(B("sought"), sa.Integer)),
        )
    )
).order_by(PLACE)
LAST_OF = sa.select(sa.func.max(OTHERS.c.number)).where(
    OTHERS.c.budget == B("b"), OTHERS.c.spender == B("who")
)
LAST = sa.select(sa.func.max(OTHERS.c.number)).where(OTHERS.c.budget == B("b")).scalar_subquery()
# a budget's row beside the last of its entries, in one statement: others may charge before the next
# one
NOW = (
    sa.select(
        BUDGETS.c.number,
        BUDGETS.c.head,
        ENTRIES.c.number.label("last"),
        ENTRIES.c.hash,
        ENTRIES.c.kind,
    )
    .outerjoin_from(
        BUDGETS, ENTRIES, sa.and_(ENTRIES.c.budget == BUDGETS.c.name, ENTRIES.c.number == LAST)
    )
    .where(BUDGETS.c.name == B("b"))
)
OF_SPENDER = OF_BUDGET.where(ENTRIES.c.number == LAST_OF.scalar_subquery())
STORED = (  # results, each with its table and the hash of the entry before it
    sa.select(ENTRIES, DATA.c.data, BEFORE.c.hash.label("before"))
    .join(DATA, sa.and_(DATA.c.budget == ENTRIES.c.budget, DATA.c.number == ENTRIES.c.about))
    .join(
        BEFORE,
        sa.and_(BEFORE.c.budget == ENTRIES.c.budget, BEFORE.c.number == ENTRIES.c.number - 1),
    )
    .where(ENTRIES.c.budget == B("b"), RESULTS)
)
RESULT = STORED.where(ENTRIES.c.about == B("n"))
TABLES = STORED.join(
    CHARGES, sa.and_(CHARGES.c.budget == ENTRIES.c.budget, CHARGES.c.number == ENTRIES.c.about)
).where(CHARGES.c.about == B("n"), CHARGES.c.kind == "charge")
ABOUT = sa.select(ENTRIES.c.number).where(
    ENTRIES.c.budget == B("b"), ENTRIES.c.about == B("n"), ENTRIES.c.kind == B("kind")
)
MEMBERS = OF_BUDGET.where(
    ENTRIES.c.about == B("n"), ENTRIES.c.kind.in_(["charge", "transfer"])
).order_by(PLACE)
STATES = ("spent", "subject", "parts", "number", "head", "at", "failures", "acknowledged", "caps")
ADD, KEEP = ENTRIES.insert(), DATA.insert()
MOVE = (
    BUDGETS.update().where(BUDGETS.c.name == B("b")).values({key: B(f"to_{key}") for key in STATES})
)


def entry_of(row: Any) -> Entry:
    """An entry from its row."""
    return Entry(row.number, row.kind, row.at, json.loads(row.body), row.hash)


def now_of(connection: sa.Connection, name: str) -> Any:
    """A budget's row, with the kind of the last of its entries; None if there is no row.

    Errors: LedgerDamaged if row and entries are not of one transaction
    """
    row = quick(connection, NOW, {"b": name}).first()
    if row is not None and (row.last, row.hash) != (row.number, row.head):
        raise LedgerDamaged(
            f"The row of {name!r} does not name the last of its entries: the ledger was changed, "
            "or copied while it was written, or a process was killed and the ledger's journal is "
            "lost. Nothing is released. Put the latest ledger back. ledger.verify() names what "
            "was changed."
        )
    return row


def check_seen(
    connection: sa.Connection, name: str, known: tuple[int, str] | None, row: Any
) -> None:
    """Check that a budget has only grown since the last entry that is known of it.
    Input: row: the budget's, or None.

    Errors: LedgerDamaged
    """
    if known is not None:
        state = (0, "") if row is None else (row.number, row.head)
        check_forward(
            name,
            known,
            state,
            lambda number: quick(connection, HASH, {"b": name, "n": number}).scalar(),
        )


def known_of(store: Store, witness: Witness | None, name: str | None = None) -> Known:
    """The last entries that this process and the witness have seen, of one budget or of all.

    It is asked before a transaction that reads, because another process or thread may charge
    meanwhile.
    """
    known = [(budget, state) for budget, state in store.seen.items() if name in (None, budget)]
    return known if witness is None else known + witness.seen(store.id, name)


def check_known(connection: sa.Connection, known: Known) -> None:
    """Check that budgets have only grown since then, also those that nobody asks for.
    Errors: LedgerDamaged.
    """
    for name, last in known:
        check_seen(connection, name, last, quick(connection, NOW, {"b": name}).first())


@contextmanager
def reading(
    store: Store, witness: Witness | None, name: str | None = None
) -> Iterator[sa.Connection]:
    """A transaction that reads one budget, or of all.
    The ledger must hold all that was seen of it, as for a charge.

    Errors: LedgerDamaged for an older copy, another ledger, or one that was not copied as a whole;
            LedgerUnavailable for one that was moved while it was open
    """
    known = known_of(store, witness, name)
    with store.transaction() as connection:
        store.check_charged_here(connection)
        check_known(connection, known)
        names = [row.name for row in connection.execute(NAMES)] if name is None else [name]
        rows = {budget: now_of(connection, budget) for budget in names}
        yield connection
    for budget, row in rows.items():
        if row is not None:
            store.saw(budget, (row.number, row.head))
            if witness is not None and row.number > 1 and not witness.seen(store.id, budget):
                raise witness.knows_none(budget, row.number)


def answer_of(name: str, row: Any) -> tuple[Entry, bytes]:
    """A result with its table, from a row of `STORED`.

    Errors: LedgerDamaged unless both are what was stored, and stored for this charge
    """
    entry = entry_of(row)
    unchanged = chained(row.before, row.number, row.kind, row.at, row.body) == row.hash
    if not unchanged or entry.about != row.about or digest_of(row.data) != entry.body["digest"]:
        raise LedgerDamaged(
            f"The stored table of charge {row.about} of {name!r} is not the one that was released: "
            "the ledger was changed. It is not shown. ledger.verify() names what was changed."
        )
    return entry, bytes(row.data)


def failures_of(row: Any) -> Failures:
    """The failures of a budget, from its row."""
    return Failures(row.failures, row.failures - row.acknowledged)


def caps_of(row: Any) -> Fields | None:
    """The caps of a budget with their sums, from its row."""
    return None if row.caps is None else {**json.loads(row.caps)}


TEXTS: dict[tuple[str, int], tuple[str, list[str] | None]] = {}


def quick(connection: sa.Connection, statement: Any, values: Fields) -> sa.CursorResult[Any]:
    """Run one of the statements above.
    It is compiled only once, so that the lock is held for a short time.
    """
    dialect = connection.dialect
    key = dialect.name, id(statement)
    if key not in TEXTS:
        compiled = statement.compile(dialect=dialect, column_keys=list(values))
        TEXTS[key] = str(compiled), compiled.positiontup
    text, order = TEXTS[key]
    return connection.exec_driver_sql(
        text, dict(values) if order is None else tuple(values[name] for name in order)
    )


class LedgerBook:
    """The entries of one budget of a ledger.

    Before an entry is added, the book is compared with the last state that this process and the
    witness have seen: it may only have grown since then.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        witness: Witness | None,
        skew: dt.timedelta,
        reopening: Reopening | None,
    ) -> None:
        self._store, self._name, self._witness, self._skew = store, name, witness, skew
        self.name: str | None = name
        self._reopening = reopening

    @contextmanager
    def write(self) -> Iterator[LedgerPage]:
        """The page, locked against all other processes and machines;
        kept if the block ends without an error.

        Errors: LedgerError; UnsupportedOperation where noise is not random and the ledger is not
                one of tests
        """
        with self._store.transaction(write=True) as connection:
            page = LedgerPage(connection, self._name, self._skew)
            page.role = self._store.role(connection)
            page.where = f"{self._store.place} --budget {shlex.quote(self._name)}"
            self._check(page)
            yield page
            if page.moved:
                page.check_written()
        self._store.saw(self._name, (page.number, page.head))  # it is committed
        if self._witness is not None and page.moved:
            self._witness.advance(self._store.id, self._name, page.number, page.head)

    def _check(self, page: LedgerPage) -> None:
        if bits.are_replaced() and not self._store.is_test:
            raise UnsupportedOperation(
                "Noise is fixed here, so it hides nobody, and this is a real ledger. Nothing is "
                "released and nothing was spent. In a test use dpframe.testing.ledger(...), which "
                "makes a ledger for tests."
            )
        if page.went:
            # a copy from before the move is an older one
            self._store.saw(self._name, (page.number, page.head))
            raise LedgerUnavailable(
                f"Budget {self._name!r} was moved with its ledger while it was open, and goes on "
                "in the new place. Nothing was spent. Open the ledger there."
            )
        state = page.number, page.head
        if self._name in self._store.seen:
            check_forward(self._name, self._store.seen[self._name], state, page.hash_at)
        if self._witness is not None:
            self._witness.check(self._store.id, self._name, *state, page.hash_at)

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with readable(self._name), reading(self._store, self._witness, self._name) as connection:
            yield connection

    def spent(self) -> Loss:
        """The loss that has been charged so far."""
        with self._reading() as connection:
            return loss_of(json.loads(connection.execute(SPENT, {"b": self._name}).scalar_one()))

    def failures(self) -> Failures:
        """The number of releases that failed after they were charged."""
        with self._reading() as connection:
            return failures_of(connection.execute(FAILURES, {"b": self._name}).one())

    def subjects(self, subject: str) -> tuple[str | None, list[str]]:
        """The unit that the budget protects, and the other budgets
        of the ledger for the same unit.
        """
        with self._reading() as connection:
            subjects = {row.name: row.subject for row in connection.execute(SUBJECTS)}
        own, unit = subjects.pop(self._name, None), subject.rpartition(", ")[0]
        return own, [name for name, other in subjects.items() if other.rpartition(", ")[0] == unit]

    def caps(self) -> Fields | None:
        """The caps and their sums."""
        with self._reading() as connection:
            return caps_of(connection.execute(CAPS, {"b": self._name}).one())

    def entries(
        self, name: str | None = None, under: int | None = None, number: int | None = None
    ) -> list[Entry]:
        """Every entry; those of a name, those under a charge, or the
        one of a number; oldest first.
        """
        asked = ((NAMED, name), (UNDER, under), (NUMBERED, number))
        by, sought = next((pair for pair in asked if pair[1] is not None), (None, None))
        if by is None:
            return list(self.one_by_one())
        with self._reading() as connection:
            return [
                entry_of(row) for row in connection.execute(by, {"b": self._name, "sought": sought})
            ]

    def one_by_one(self, since: dt.datetime | None = None) -> Iterator[Entry]:
        """Every entry, or those from the first one of this time on; oldest first.

        They are read in parts, so that nobody who charges waits until all are read.
        """
        place, part = self._before(since), AT_ONCE
        while part == AT_ONCE:
            with self._reading() as connection:
                entries = [
                    entry_of(row) for row in connection.execute(NEXT, {"b": self._name, "n": place})
                ]
            yield from entries
            place, part = place + len(entries), len(entries)

    def _before(self, since: dt.datetime | None) -> int:
        """The number of entries before the first one of a time.
        Clocks differ, so later ones may be older again.
        """
        if since is None:
            return 0
        with self._reading() as connection:
            # as entries hold it, so texts compare
            at = since.astimezone(dt.UTC).isoformat(timespec="microseconds")
            first, last = connection.execute(FROM, {"b": self._name, "at": at}).one()
        return int(last if first is None else first - 1)

    def tables(self, opening: int) -> dict[int, bytes]:
        """The stored tables of the charges that `opening` paid for in
        advance, by the number of the charge.
        """
        with self._reading() as connection:
            rows = connection.execute(TABLES, {"b": self._name, "n": opening})
            return {row.about: answer_of(self._name, row)[1] for row in rows}

    def reopening(self) -> Reopening | None:
        """Function and arguments with which another process opens this book."""
        return self._reopening


class LedgerPage:
    """The locked row of a budget, through which entries are added."""

    def __init__(self, connection: sa.Connection, name: str, skew: dt.timedelta) -> None:
        self._connection, self._name, self._skew = connection, name, skew
        self.role: str | None = None
        self.where: str | None = None
        row = quick(connection, STATE, {"b": name}).first()
        if row is None:
            raise LedgerDamaged(
                f"The ledger has no budget {name!r} any more: its file was replaced. Nothing is "
                "released."
            )
        with readable(name):
            self.spent, self.subject = loss_of(json.loads(row.spent)), row.subject
            self.parts: Parts = {**json.loads(row.parts)}
            self.failures, self.caps = failures_of(row), caps_of(row)
            self.number, self.head, self._at = int(row.number), row.head, row.at
            dt.datetime.fromisoformat(self._at)
        self.went, self.moved = now_of(connection, name).kind == "moved", False
        self._moved_to: FieldDict = {}

    def hash_at(self, number: int) -> str | None:
        """The hash of an entry."""
        return quick(self._connection, HASH, {"b": self._name, "n": number}).scalar()

    def append(self, kind: str, body: Fields, at: dt.datetime, data: bytes | None = None) -> Entry:
        """Add an entry, and update the budget's row in the same transaction."""
        behind = dt.datetime.fromisoformat(self._at) - at
        if kind == "charge" and behind > self._skew:
            raise LedgerUnavailable(
                f"This machine's clock says {at:%Y-%m-%d %H:%M} UTC, before the last entry of "
                f"{self._name!r} ({self._at[:16]}): one of the two clocks is wrong. Nothing was "
                "spent. Set this clock. If it is right, open the ledger once with dp.Ledger(..., "
                f"clock_skew=datetime.timedelta({behind.days + 1})): after one charge the ledger "
                "goes on from this clock."
            )
        number, time, text = self.number + 1, at.isoformat(timespec="microseconds"), canonical(body)
        entry = Entry(number, kind, time, body, chained(self.head, number, kind, time, text))
        content = {
            "body": text,
            "hash": entry.hash,
            "name": entry.name,
            "about": entry.about,
            "spender": entry.spender,
        }
        add = {
            "budget": self._name,
            "number": entry.number,
            "kind": kind,
            "at": entry.at,
            **content,
        }
        self._one_row(quick(self._connection, ADD, add))
        if data is not None:
            table = {"budget": self._name, "number": entry.about, "data": data}
            self._one_row(quick(self._connection, KEEP, table))
        self.number, self.head, self._at, self.moved = entry.number, entry.hash, entry.at, True
        move = {
            "to_spent": canonical(texts_of(self.spent)),
            "to_subject": self.subject,
            "to_number": self.number,
        }
        failed, unacknowledged = self.failures
        move |= {
            "to_parts": canonical(self.parts),
            "to_failures": failed,
            "to_acknowledged": failed - unacknowledged,
        }
        move |= {
            "to_head": self.head,
            "to_at": self._at,
            "to_caps": self.caps and canonical(self.caps),
        }
        self._one_row(quick(self._connection, MOVE, {"b": self._name, **move}))
        self._moved_to = {key.removeprefix("to_"): value for key, value in move.items()}
        return entry

    def _one_row(self, result: sa.CursorResult[Any]) -> None:
        """Errors: LedgerDamaged if a trigger or a rule of the database drops the new row."""
        if result.rowcount != 1:
            raise LedgerDamaged(self._dropped)

    def check_written(self) -> None:
        """Read back the new state before the commit, and compare it. Errors: LedgerDamaged."""
        row = quick(self._connection, WRITTEN, {"b": self._name, "n": self.number}).first()
        equal = row is not None and all(
            getattr(row, key) == value for key, value in self._moved_to.items()
        )
        if row is None or not equal or row.hash != self.head:
            raise LedgerDamaged(self._dropped)

    @property
    def _dropped(self) -> str:
        return (
            f"The ledger does not store the new rows of {self._name!r}: a trigger or a rule of its "
            "database drops or changes them. Nothing is released."
        )

    def latest(self, name: str) -> Entry | None:
        """The last charge of this name."""
        row = quick(self._connection, LATEST, {"b": self._name, "sought": name}).first()
        with readable(self._name):
            return None if row is None else entry_of(row)

    def latest_of(self, spender: str) -> Entry | None:
        """The last charge of this spender."""
        row = quick(self._connection, OF_SPENDER, {"b": self._name, "who": spender}).first()
        with readable(self._name):
            return None if row is None else entry_of(row)

    def result(self, number: int) -> tuple[Entry, bytes] | None:
        """The stored table of a charge."""
        row = self._connection.execute(RESULT, {"b": self._name, "n": number}).first()
        with readable(self._name):
            return None if row is None else answer_of(self._name, row)

    def has_failed(self, number: int) -> bool:
        """Whether an error was raised after a charge."""
        return self._is("failure", number)

    def is_lost(self, number: int) -> bool:
        """Whether a pending charge was marked as lost."""
        return self._is("lost", number)

    def _is(self, kind: str, number: int) -> bool:
        return (
            quick(self._connection, ABOUT, {"b": self._name, "n": number, "kind": kind}).first()
            is not None
        )

    def members(self, opening: int) -> list[Entry]:
        """The charges that `opening` paid for in advance, and transfers to it, oldest first."""
        with readable(self._name):
            return [
                entry_of(row)
                for row in self._connection.execute(MEMBERS, {"b": self._name, "n": opening})
            ]
