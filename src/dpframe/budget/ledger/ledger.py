"""A ledger: budgets that survive the process, in a file or in PostgreSQL.

SQLAlchemy is only imported when a ledger is opened, so that `import dpframe` stays cheap.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpframe.budget import account
from dpframe.budget.accountants import Accountant, accountant_named, read_limit
from dpframe.budget.budget import Budget
from dpframe.budget.caps import begun, changed, read_caps, replaced
from dpframe.budget.entries import (
    GENESIS,
    Charge,
    Entry,
    as_read_now,
    canonical,
    loss_json,
    loss_of,
    readable,
    sealed,
    texts_of,
)
from dpframe.budget.exceeded import no_budget, read_min_units, warn_of_weak
from dpframe.budget.ledger.export import exported, read_since
from dpframe.budget.ledger.witness import Witness
from dpframe.budget.losses import Loss, Terms
from dpframe.budget.names import Payer, check_plain, is_near, is_text
from dpframe.errors import (
    BudgetMismatch,
    InvalidArgument,
    InvalidPrice,
    LedgerDamaged,
    LedgerUnavailable,
    UnsupportedOperation,
)
from dpframe.fields import FieldDict
from dpframe.safe_text import visible
from dpframe.usage import LEDGER, Hints, check_flags, explains

if TYPE_CHECKING:
    from dpframe.budget.ledger.store import Store

SKEW = dt.timedelta(minutes=10)
LOG = logging.getLogger("dpframe")


@explains(".{}({})", LEDGER)
class Ledger(Hints):
    """Budgets that survive restarts, crashes and other processes.

    Input:  where: the path of a file, which is made if it is missing, or a URL
            "postgresql+psycopg://..." for several machines (needs psycopg); witness: a file outside
            the ledger's folder that records the last entry of each budget, so that a restored older
            copy or a new ledger in its place is noticed. From then on the ledger is opened with it
            alone; new_witness: give a ledger whose witness is lost a new one, once; create: whether
            to make a ledger where there is none. A job takes False: in another folder, or with
            another search_path of PostgreSQL, it is refused and makes no new, full budget; timeout:
            how long to wait for other processes that are charging (seconds); clock_skew: how far
            this machine's clock may be behind the last entry
    Errors: LedgerUnavailable for a file that is missing, read-only, full or on a network drive;
            LedgerDamaged for a file that was replaced, is an older copy or was not copied as a
            whole, and for a witness that is not the ledger's own; InvalidArgument

    A charge is one locked, synced transaction. If the ledger cannot be read, written or trusted,
    nothing is released. It may be used from several threads, and after a fork.

    >>> import tempfile, polars as pl
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(f"{folder.name}/study.sqlite")
    >>> budget = ledger.budget("visits-2026", epsilon=1.0)  # makes the budget, or opens it again
    >>> frame = pl.DataFrame({"user": [1, 1, 2]}).dp(unit="user", budget=budget)
    >>> out = frame.count(max_rows=2).release(epsilon=0.25, name="rows")
    >>> Ledger(f"{folder.name}/study.sqlite").budget("visits-2026").remaining
    Loss(epsilon=0.75, delta=0.0)
    >>> ledger.verify()
    {'visits-2026': 3}
    >>> ledger.close()
    >>> folder.cleanup()
    """

    def __init__(
        self,
        where: str | Path,
        *,
        witness: str | Path | None = None,
        new_witness: bool = False,
        create: bool = True,
        timeout: float = 60.0,
        clock_skew: dt.timedelta = SKEW,
    ) -> None:
        where, self._store = _store_of(where, timeout, create=create)
        self._opened = (where, witness, timeout, clock_skew)
        self._skew = clock_skew
        self._witness = _witness_of(witness, self._store)
        self._store.prepare(self._witness, new_witness=new_witness)
        if self._store.is_new:
            LOG.info("A new ledger was made: %s", visible(self._store.placed()))

    @property
    def where(self) -> str | Path:
        """The path of its file, or its URL: what `dp.Ledger` opens it with."""
        where: str | Path = self._opened[0]
        return where

    # Budgets

    def budget(
        self,
        name: str,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        accountant: str | None = None,
        *,
        min_units: int | None = None,
        caps: Any = None,
        spender: str | None = None,
        purpose: str | None = None,
        create: bool = False,
    ) -> Budget:
        """Make a budget of this name, or open it again; a name alone opens it, and makes none.

        Input:  name; epsilon and delta, or rho and delta, accountant, min_units and caps as in
                `dp.Budget`; spender: who spends what is charged by this object, for a cap of each
                spender and for the history. Nothing proves who it is; purpose: what for, in the
                history; create: make a new budget, also when its name is nearly that of another one
        Output: Budget. When it is made, the logger `dpframe` says so as a warning, with the place
                of the ledger
        Warns:  DpFrameWarning when it is made with a limit that protects little
        Errors: BudgetMismatch if it was made with another limit, accountant or caps, or if there is
                none of this name and one of nearly this name; InvalidPrice, LedgerError
        """
        if not is_text(name):
            raise InvalidArgument("A budget has a name: ledger.budget('visits-2026', epsilon=1.0).")
        check_flags(
            "create= is True or False: whether a name that is nearly another one is a new budget.",
            create,
        )
        typed = (
            None if epsilon is None and rho is None else read_limit(epsilon, delta, rho, accountant)
        )
        capped = read_caps(
            caps, (typed[0] if typed is not None else accountant_named("basic")).terms
        )
        state, who = self._state(name), Payer.of(spender, purpose)
        if state is None:
            check_plain(name)
            self._check_near(name, create=create)
        if state is None and typed is None:
            raise InvalidPrice(no_budget(name, self.budgets()))
        least = read_min_units(min_units)
        if state is None and typed is not None:
            warn_of_weak(typed[1], least, f"ledger.budget({name!r}, {{}})")
            self._make(name, typed[0].name, texts_of(typed[1]), capped)
            state = self._state(name)
        assert state is not None
        kind, limit, caps_now = state
        if typed is not None:
            named = accountant is not None or rho is not None
            _check_limit(name, (kind, limit), typed, named=named)
        _check_caps(name, caps_now, read_caps(caps, accountant_named(kind).terms))
        again = (_reopened, (*self._opened, name))
        from dpframe.budget.ledger.book import LedgerBook

        book = LedgerBook(self._store, name, self._witness, self._skew, again)
        return Budget.kept_in(book, accountant_named(kind), limit, who)

    def change_caps(self, budget: str, caps: Any, by: str, *, keep: bool = False) -> None:
        """Change the caps of a budget, for all who charge it.
        The ledger records the new ones, when, and by whom.

        Input:  budget: its name; caps: all caps that hold from now on, `dp.Caps(...)` or a dict;
                by: who changes them; keep: whether amounts that are not named, and the time zone,
                stay as they are
        Bound:  the budget's limit stays, and so do the sums: what was spent today still counts
                today. Caps of a budget that had none count periods from now on, and what each
                spender ever spent
        Errors: InvalidArgument, InvalidPrice, LedgerError; UnsupportedOperation for another time
                zone
        """
        if not is_text(by):
            raise InvalidArgument(
                "by= is the name of whoever changes the caps: ledger.change_caps(..., by='Ada')."
            )
        changing = self.budget(budget)
        recorded = read_caps(caps, changing.terms)
        if recorded is None:
            raise InvalidArgument(
                "change_caps: give the caps that hold from now on: dp.Caps(day=1)."
            )
        with changing._book.write() as page:
            if page.role is not None:
                raise UnsupportedOperation(
                    f"change_caps: {page.role!r} may not make budgets, and so not change caps."
                )
            at = account.now()
            now = replaced(page.caps, recorded) if keep else recorded
            page.caps = changed(page.caps, now, at)
            page.append("caps", {"caps": now, "by": by}, at)

    def _check_near(self, name: str, *, create: bool) -> None:
        """Refuse a new name that may be that of a budget: it would be a second budget.
        Errors: BudgetMismatch.

        It is nearly that of another one, or this ledger goes on from a copy and no witness knew
        which budgets there were. The name itself is no other: another process may have made this
        budget meanwhile.
        """
        import sqlalchemy as sa

        from dpframe.budget.ledger.schema import ENTRIES, UNWATCHED

        if not create:
            mark = sa.select(ENTRIES.c.number).where(
                ENTRIES.c.kind == "lost",
                ENTRIES.c.body.contains(canonical(UNWATCHED)[1:-1], autoescape=True),
            )
            with self._store.transaction() as connection:
                unsure = connection.execute(mark.limit(1)).first() is not None
            if unsure and name not in self.budgets():
                raise BudgetMismatch(
                    "This ledger goes on from an older copy, and no witness knew whether a budget "
                    f"{name!r} was made after it. If there was one about the same people, a second "
                    "one doubles what they can lose. If there was none, type "
                    f"ledger.budget({name!r}, ..., create=True)."
                )
        names = self.budgets()
        near = [other for other in names if other != name and is_near(name, other)]
        if near and not create:
            raise BudgetMismatch(
                f"There is no budget {name!r} in this ledger, and there is {near[0]!r}; its "
                f"budgets are {', '.join(map(repr, names))}. A second budget about the same people "
                f"doubles what they can lose. Type ledger.budget({near[0]!r}); or, to make another "
                f"budget all the same, ledger.budget({name!r}, ..., create=True)."
            )

    def budgets(self) -> list[str]:
        """Names of the budgets, in order."""
        from dpframe.budget.ledger.book import NAMES, reading

        with reading(self._store, self._witness) as connection:
            return list(connection.execute(NAMES).scalars())

    def _state(self, name: str) -> tuple[str, Loss, Any] | None:
        """Accountant, limit and caps.
        Errors: LedgerDamaged for an older copy than this object has seen.
        """
        import sqlalchemy as sa

        from dpframe.budget.ledger.book import reading
        from dpframe.budget.ledger.schema import BUDGETS

        with reading(self._store, self._witness, name) as connection:
            row = connection.execute(sa.select(BUDGETS).where(BUDGETS.c.name == name)).first()
            if row is None:
                return None
            self._store.check_whole(connection, name, row.number)
        with readable(name):
            limit = replace(loss_of(json.loads(row.allowed)), left=True)
            caps = None if row.caps is None else json.loads(row.caps)["caps"]
        return row.accountant, limit, caps

    def _make(
        self, name: str, kind: str, limit: dict[str, str | None], caps: FieldDict | None
    ) -> None:
        """Write the first entry of a new budget, unless another process has done so already."""
        import sqlalchemy as sa

        from dpframe.budget.ledger.book import check_known, known_of
        from dpframe.budget.ledger.schema import BUDGETS, ENTRIES

        at = account.now().isoformat(timespec="microseconds")
        body = {
            "accountant": kind,
            "budget": name,
            "limit": limit,
            **({} if caps is None else {"caps": caps}),
        }
        first = sealed(GENESIS, 1, "open", at, body)
        nothing = texts_of(accountant_named(kind).total([]))
        row = {
            "name": name,
            "accountant": kind,
            "allowed": canonical(limit),
            "spent": canonical(nothing),
            "parts": "{}",
            "caps": None if caps is None else canonical(begun(caps)),
        }
        known = known_of(self._store, self._witness)
        with self._store.transaction(write=True) as connection:
            self._store._one_at_a_time(connection)
            self._store.check_charged_here(connection)
            self._store.check_steward(connection, f"ledger.budget({name!r}, ...)")
            check_known(connection, known)
            if (
                connection.execute(sa.select(BUDGETS.c.name).where(BUDGETS.c.name == name)).first()
                is not None
            ):
                return
            if (
                connection.execute(
                    sa.select(ENTRIES.c.number).where(ENTRIES.c.budget == name)
                ).first()
                is not None
            ):
                raise LedgerDamaged(
                    f"There are entries of a budget {name!r} and no row: it was removed. Without "
                    "it nobody knows what was spent, so it is not made anew. Put the latest "
                    "ledger back."
                )
            connection.execute(BUDGETS.insert().values(**row, number=1, head=first.hash, at=at))
            line = {
                "budget": name,
                "number": 1,
                "kind": "open",
                "at": at,
                "body": canonical(first.body),
            }
            connection.execute(ENTRIES.insert().values(**line, hash=first.hash))
        if self._witness is not None:
            self._witness.advance(self._store.id, name, 1, first.hash)
        self._tell_made(name, loss_of(limit))

    def _tell_made(self, name: str, limit: Loss) -> None:
        """Log a new budget.
        It is a warning, since a job that meant another place would spend a full budget again.
        """
        place = self._store.placed()
        said = {
            "what": "made",
            "budget": name,
            "limit": loss_json(limit),
            "ledger": place,
            "new": self._store.is_new,
        }
        level = logging.INFO if self.is_test else logging.WARNING
        words = "%s: a new budget of %s, in the ledger %s%s"
        new = ", which is new too" if self._store.is_new else ""
        LOG.log(level, words, visible(name), limit, visible(place), new, extra={"dpframe": said})

    # Verification and export

    def entries(self, name: str) -> list[Entry]:
        """Every entry of a budget, oldest first. Input: name, that of the budget."""
        return self.budget(name)._book.entries()

    def verify(self) -> dict[str, int]:
        """Verify every entry of every budget: the hash chain, the sums, the limits,
        the stored tables, the witness.

        Output: number of entries, by budget
        Errors: LedgerDamaged, which lists every problem
        """
        from dpframe.budget.ledger.verify import verified

        with self._store.transaction() as connection:
            self._store.check_charged_here(connection)
        return verified(self._store, self._witness)

    def resolve(self, budget: str, release: str | int, by: str | None = None) -> Charge:
        """Mark a pending release of a budget as lost, so that its name may be
        paid again; see `Budget.resolve`.
        """
        return self.budget(budget).resolve(release, by)

    def export(self, form: str = "json", since: str | dt.datetime | None = None) -> str:
        """All budgets and their entries as text.

        Input:  form: "json" (everything except the tables), "jsonl" (of that, a line for each
                entry), "csv" (a line for each charge), or "dp_accounting" (JSON with the mechanisms
                of each budget as one composed event, in the fields of dp-accounting's named tuples;
                the δ of keys that come from the data is not an event, and is in the charges);
                since: only entries from this time on, in UTC where it has no zone
        """
        first = read_since(since)
        books = {}
        for name in self.budgets():
            budget = self.budget(name)
            with readable(name):
                entries = [
                    entry
                    for entry in budget.one_by_one(first)
                    if first is None or entry.when >= first
                ]
            books[name] = budget, entries
        return exported(books, form)

    @property
    def is_test(self) -> bool:
        """Whether it is a ledger for tests, which pays under fixed noise; see
        `dpframe.testing.ledger`.
        """
        return self._store.is_test

    def mark_for_tests(self) -> None:
        """Make a ledger without budgets one for tests; see `dpframe.testing.ledger`."""
        self._store.mark_for_tests()

    # Copies

    def backup(self, target: str | Path) -> dict[str, int]:
        """Copy the ledger to a new file or an empty database, while jobs go on
        charging it, and verify the copy.

        Input:  target: a path or a URL
        Output: number of entries in the copy, by budget
        Errors: LedgerUnavailable if there is something in that place; LedgerDamaged for a ledger
                that does not add up

        A backup is set aside: no budget of it is charged. `restore` goes on from it.

        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger(f"{folder.name}/study.sqlite")
        >>> budget = ledger.budget("visits", epsilon=1.0)
        >>> ledger.backup(f"{folder.name}/monday.sqlite")
        {'visits': 1}
        >>> again = Ledger.restore(
        ...     f"{folder.name}/monday.sqlite",
        ...     f"{folder.name}/b.sqlite",
        ...     lost={"visits": 0.25},
        ...     by="Ada",
        ...     why="the disk broke",
        ... )
        >>> again.budget("visits").remaining
        Loss(epsilon=0.75, delta=0.0)
        >>> ledger.close()
        >>> again.close()
        >>> folder.cleanup()
        """
        from dpframe.budget.ledger.copies import backup

        return backup(self._store, _store_of(target)[1], self._witness)

    @staticmethod
    def migrate(
        source: str | Path, target: str | Path, *, witness: str | Path | None = None
    ) -> dict[str, int]:
        """Move a ledger to another place, such as from a file to
        PostgreSQL, while jobs go on charging it.

        Input:  source and target: a path or a URL each; nothing is in the target; witness: that of
                the ledger
        Output: number of entries, by budget
        Bound:  one of the two is charged at any time. Jobs that have the old one open are refused,
                and say so. A move that was stopped goes on when it is called again
        Errors: LedgerUnavailable, LedgerDamaged
        """
        from dpframe.budget.ledger.copies import migrate

        source, store = _store_of(source, create=False)
        watching = _witness_of(witness, store)
        store.prepare(watching, new_witness=False, aside=True)
        target, goes_on = _store_of(target)
        there = _witness_of(witness, goes_on)
        numbers = migrate(store, goes_on, watching)
        if there is not None:
            there.follow(goes_on.id)
        return numbers

    @staticmethod
    def restore(
        backup: str | Path,
        target: str | Path,
        *,
        by: str,
        why: str,
        lost: Any = None,
        witness: str | Path | None = None,
    ) -> Ledger:
        """Put a backup in a place where there is no ledger, and go on from it.

        Input:  backup: a path or a URL; target: the place of the ledger; by, why, lost, witness: as
                in `adopt`
        Bound:  that of `adopt`
        Errors: LedgerUnavailable if there is something in that place; those of `adopt`
        """
        from dpframe.budget.ledger.copies import restore

        target, store = _store_of(target)
        restore(
            _store_of(backup, create=False)[1],
            store,
            _witness_of(witness, store),
            lost,
            by,
            why,
        )
        return Ledger(target, witness=witness, create=False)

    @staticmethod
    def adopt(
        where: str | Path, *, by: str, why: str, lost: Any = None, witness: str | Path | None = None
    ) -> Ledger:
        """Go on from a copy that is not the latest one, and count what is missing as lost.
        Each budget records it.

        Input:  where: the copy, in the place where it is to stay; by: who adopts it; why: the
                reason; lost: what the missing releases cost, for each budget by its name: ε, (ε,
                δ), ρ, (ρ, δ) or (ε, δ, ρ), the sums of their prices, also of those from allowances;
                or "all", which spends the budgets; or "none". It may be left out where the witness
                shows that no entry is missing; witness: that of the ledger, or a new one if it is
                lost
        Bound:  the missing releases compose with all others to the limit, if lost is at least the
                sum of their prices. Nights of a series have none, and a copy does not tell which it
                lacks. So where entries may be missing, a night that the copy does not have is paid
                for: see `Series.add`
        Errors: LedgerDamaged if the copy does not add up, or nobody says what was lost
        """
        from dpframe.budget.ledger.copies import adopt

        where, store = _store_of(where, create=False)
        adopt(store, _witness_of(witness, store), lost, by, why)
        return Ledger(where, witness=witness, create=False)

    def close(self) -> None:
        """Close the connections of this process.
        The next call that needs a connection opens a new one.
        """
        self._store.close()

    def __repr__(self) -> str:
        return visible(f"Ledger({self._store.place})")


def check_copy(where: str | Path) -> dict[str, int]:
    """Verify a backup, or a ledger that was moved. Output: the number of entries, by budget.
    Errors: LedgerError.
    """
    from dpframe.budget.ledger.copies import checked

    return checked(_store_of(where, create=False)[1])


def _store_of(
    where: str | Path, timeout: float = 60.0, *, create: bool = True
) -> tuple[str | Path, Store]:
    """The place of a ledger as it stays, and its database.
    Errors: InvalidArgument, LedgerUnavailable.
    """
    from dpframe.budget.ledger.postgres import POSTGRES, PostgresStore
    from dpframe.budget.ledger.sqlite_file import SqliteStore

    if isinstance(where, str) and (
        "://" in where or (where.startswith("postgres") and "@" in where)
    ):
        if where.startswith("postgresql") and "://" in where:
            return where, PostgresStore(where, timeout, create=create)
        raise InvalidArgument(
            f"A ledger is a file, dp.Ledger('study.sqlite'), or PostgreSQL, {POSTGRES}."
        )
    path = _path_of(where, "ledger")
    return path, SqliteStore(path, timeout, create=create)


def _path_of(typed: str | Path, what: str) -> Path:
    """The absolute path of a file, so that a later change of the working
    directory does not change the file.

    Errors: InvalidArgument for what no file can be named; LedgerUnavailable for a path that cannot
            be followed
    """
    path, problem = None, None
    try:
        path = Path(typed).absolute()
        str(path).encode()  # SQLite takes no other names
        os.stat(path)
    except (TypeError, ValueError):
        path = None
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        problem = error.strerror
    if path is None:
        raise InvalidArgument(
            f"The {what} is a file, and {typed!a} is no path of one: dp.Ledger('study.sqlite'). A "
            "path has no NUL."
        )
    if problem is not None:
        raise LedgerUnavailable(
            f"The {what} {str(path)!r} cannot be used: {problem}. Nothing is released."
        )
    return path


def _witness_of(witness: str | Path | None, store: Store) -> Witness | None:
    """The witness of a ledger, which knows it by its place, whoever opens it."""
    if witness is None:
        return None
    return Witness(_path_of(witness, "witness"), store.watched, store.folder)


def _check_limit(
    name: str, kept: tuple[str, Loss], typed: tuple[Accountant, Loss], *, named: bool
) -> None:
    """Refuse to open a budget with another limit than its own. Errors: BudgetMismatch.

    Unless the accountant was `named`, a budget keeps the one that it was made with.
    """
    kind, limit = kept
    if not named and accountant_named(kind).terms is not Terms.RHO:
        typed = accountant_named(kind), typed[1]
    if typed[0].name != kind or typed[1] not in (limit, as_read_now(limit)):
        raise BudgetMismatch(
            f"Budget {name!r} was made with {limit} and accountant {kind!r}, and is opened with "
            f"{typed[1]} and {typed[0].name!r}. A limit cannot be changed: type "
            f"ledger.budget({name!r}), or choose another name."
        )


def _check_caps(name: str, now: Any, typed: FieldDict | None) -> None:
    """Refuse other caps than a budget has. Errors: BudgetMismatch."""
    if typed is not None and typed != now:
        raise BudgetMismatch(
            f"Budget {name!r} has other caps than these. They are fixed when it is made, and "
            f"nobody who opens it changes them: type ledger.budget({name!r}) without caps=. "
            "Whoever looks after the ledger changes them for all, and the ledger records it: "
            f"ledger.change_caps({name!r}, caps, by='Ada')."
        )


def _reopened(
    where: Any,
    witness: Any,
    timeout: float,
    skew: dt.timedelta,
    name: str,
    spender: str | None,
    purpose: str | None,
) -> Budget:
    """The budget of an unpickled object, in another process."""
    ledger = Ledger(where, witness=witness, create=False, timeout=timeout, clock_skew=skew)
    return ledger.budget(name, spender=spender, purpose=purpose)
