"""A ledger: budgets that survive the process, in a file or in PostgreSQL.

SQLAlchemy is only imported when a ledger is opened, so that `import dpframe` stays cheap.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpframe.budget import account
from dpframe.budget.accountants import accountant_named, read_limit
from dpframe.budget.entries import GENESIS, Charge, Entry, as_read_now, canonical, in_units, loss_of, sealed, texts_of
from dpframe.budget.ledger.export import exported
from dpframe.budget.ledger.witness import Witness
from dpframe.budget.limits import read_min_units, warn_of_weak
from dpframe.budget.losses import Loss
from dpframe.budget.names import is_text
from dpframe.errors import BudgetMismatch, InvalidArgument, InvalidPrice, LedgerDamaged
from dpframe.usage import LEDGER, explains

if TYPE_CHECKING:
    from dpframe.budget.ledger.store import Store

__all__ = ["Ledger"]

SKEW = dt.timedelta(minutes=10)


@explains(".{}({})", LEDGER)
class Ledger:
    """Budgets that survive restarts, crashes and other processes.

    Input:  where: the path of a file, made when it is missing, or a URL "postgresql+psycopg://..." for several
            machines (needs dpframe[postgres]); witness: a file outside the ledger's folder that remembers how far each
            budget had come, so that an older copy of the ledger put back, or a ledger made anew, is noticed; create:
            whether a missing file is made; timeout: how long to wait for others who are charging (seconds);
            clock_skew: how far this machine's clock may be behind the last entry
    Errors: LedgerUnavailable for a file that is missing, read-only, full or on a network drive; LedgerDamaged for one
            that was replaced or put back; InvalidArgument

    A charge is one locked, synced transaction. Whenever the ledger cannot be read, written or trusted, nothing is
    released. It may be used from several threads, and after a fork.

    >>> import tempfile, polars as pl
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(f"{folder.name}/study.sqlite")
    >>> budget = ledger.budget("visits-2026", epsilon=1.0)  # made, or opened again
    >>> frame = pl.DataFrame({"user": [1, 1, 2]}).dp(unit="user", budget=budget)
    >>> out = frame.count(max_rows=2).release(epsilon=0.25, name="rows")
    >>> Ledger(f"{folder.name}/study.sqlite").budget("visits-2026").remaining
    Loss(epsilon=0.75, delta=0.0)
    >>> ledger.verify()
    {'visits-2026': 3}
    >>> ledger.close(); folder.cleanup()
    """

    def __init__(
        self,
        where: str | Path,
        *,
        witness: str | Path | None = None,
        create: bool = True,
        timeout: float = 60.0,
        clock_skew: dt.timedelta = SKEW,
    ) -> None:
        from dpframe.budget.ledger.store import PostgresStore, SqliteStore

        if isinstance(where, Path) or "://" not in where:
            where = Path(where).absolute()  # so that a change of folder does not change the ledger
        self._opened = (where, witness, timeout, clock_skew)
        self._skew = clock_skew
        if isinstance(where, str) and "://" in where:
            if not where.startswith("postgresql"):
                raise InvalidArgument(
                    "A ledger is a file, dp.Ledger('study.sqlite'), or PostgreSQL, "
                    "dp.Ledger('postgresql+psycopg://user@host/database')."
                )
            self._store: Store = PostgresStore(where, timeout)
        else:
            self._store = SqliteStore(Path(where), timeout, create=create)
        self._witness = None
        known = None
        if witness is not None:
            self._witness = Witness(Path(witness), self._place, self._store.folder)
            known = self._witness.known_here()
            if known is not None and self._store.folder is not None and not Path(where).exists():
                raise LedgerDamaged(
                    f"The witness knows a ledger in {self._store.place}, and there is none. What was spent is not "
                    "known without it, so no new one is made. Put the file back."
                )
        self._store.prepare(witnessed=witness is not None)
        if known is not None and known != self._store.id:
            raise LedgerDamaged(
                f"The witness knows another ledger in {self._store.place}: it was replaced. Nothing is released."
            )
        if self._store.witnessed and witness is None:
            raise LedgerDamaged(
                f"The ledger {self._store.place} has a witness, and without it nothing tells whether it is the latest "
                "copy: dp.Ledger(..., witness='...')."
            )

    @property
    def _place(self) -> str:
        where = self._opened[0]  # a path, or a URL, whose password is nobody's business
        return str(where) if isinstance(where, Path) else self._store.place

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
    ) -> account.Budget:
        """Make a budget of this name, or open it again: with the same limit and accountant, or with none named.

        Input:  name; epsilon and delta, or rho and delta, accountant and min_units as in `dp.Budget`
        Output: Budget
        Warns:  DpFrameWarning when it is made with a limit that promises little; not when it is opened again
        Errors: BudgetMismatch when it was made with another limit or accountant; InvalidPrice, LedgerError
        """
        if not is_text(name):
            raise InvalidArgument("A budget has a name: ledger.budget('visits-2026', epsilon=1.0).")
        asked = None if epsilon is None and rho is None else read_limit(epsilon, delta, rho, accountant)
        opened = self._state(name)
        if opened is None and asked is None:
            raise InvalidPrice(
                f"There is no budget {name!r} yet; it needs its limit: ledger.budget({name!r}, epsilon=1.0)."
            )
        least = read_min_units(min_units)
        if opened is None and asked is not None:
            warn_of_weak(asked[1], least, f"ledger.budget({name!r}, {{}})")
            self._make(name, asked[0].name, texts_of(asked[1]))
            opened = self._state(name)
        assert opened is not None
        kind, limit, in_whole_units, seen = opened
        if asked is not None and (asked[0].name != kind or not _is_limit(asked[1], limit, in_whole_units)):
            raise BudgetMismatch(
                f"Budget {name!r} was made with {limit} and accountant {kind!r}, and is asked for with {asked[1]} and "
                f"{asked[0].name!r}. A limit cannot be changed: open it with its own, or make one of another name."
            )
        again = (_reopened, (*self._opened, name))
        from dpframe.budget.ledger.book import LedgerBook

        book = LedgerBook(self._store, name, self._witness, self._skew, again, seen)
        return account.Budget.kept_in(book, accountant_named(kind), limit)

    def budgets(self) -> list[str]:
        """Names of the budgets, in order."""
        import sqlalchemy as sa

        from dpframe.budget.ledger.tables import BUDGETS

        with self._store.transaction() as connection:
            return list(connection.execute(sa.select(BUDGETS.c.name).order_by(BUDGETS.c.name)).scalars())

    def _state(self, name: str) -> tuple[str, Loss, bool, tuple[int, str]] | None:
        """Accountant, limit, whether it was rounded down to the whole units of format 1, and the last entry."""
        import sqlalchemy as sa

        from dpframe.budget.ledger.tables import BUDGETS

        with self._store.transaction() as connection:
            row = connection.execute(sa.select(BUDGETS).where(BUDGETS.c.name == name)).first()
        if row is None:
            return None
        limit = replace(loss_of(json.loads(row.allowed)), left=True)
        return row.accountant, limit, "/" not in row.allowed, (row.number, row.head)

    def _make(self, name: str, kind: str, limit: dict[str, str | None]) -> None:
        """Write the first entry, unless another process was faster."""
        import sqlalchemy as sa

        from dpframe.budget.ledger.tables import BUDGETS, ENTRIES

        at = account.now().isoformat(timespec="microseconds")
        first = sealed(GENESIS, 1, "open", at, {"accountant": kind, "limit": limit})
        nothing = texts_of(accountant_named(kind).total([]))
        row = {
            "name": name,
            "accountant": kind,
            "allowed": canonical(limit),
            "spent": canonical(nothing),
            "parts": "{}",
        }
        with self._store.transaction(write=True) as connection:
            self._store._one_at_a_time(connection)
            if connection.execute(sa.select(BUDGETS.c.name).where(BUDGETS.c.name == name)).first() is not None:
                return
            connection.execute(BUDGETS.insert().values(**row, number=1, head=first.hash, at=at))
            body = {"budget": name, "number": 1, "kind": "open", "at": at, "body": canonical(first.body)}
            connection.execute(ENTRIES.insert().values(**body, hash=first.hash))
        if self._witness is not None:
            self._witness.advance(self._store.id, name, 1, first.hash)

    # Checking and taking out

    def entries(self, name: str) -> list[Entry]:
        """Every entry of a budget, oldest first."""
        return self.budget(name)._book.entries()

    def verify(self) -> dict[str, int]:
        """Go over every entry of every budget: the hash chain, the sums, the limits, the stored tables, the witness.

        Output: entries checked, by budget
        Errors: LedgerDamaged, with every finding
        """
        from dpframe.budget.ledger.verify import findings

        found: list[str] = []
        checked: dict[str, int] = {}
        for name in self.budgets():
            checked[name], problems = findings(self._store, name, self._witness)
            found += [f"{name!r}: {problem}" for problem in problems]
        if found:
            raise LedgerDamaged("The ledger does not add up:\n" + "\n".join(f"  {line}" for line in found))
        return checked

    def resolve(self, budget: str, release: str | int, by: str | None = None) -> Charge:
        """Mark a pending release of a budget as lost, so that its name may be paid again; see `Budget.resolve`."""
        return self.budget(budget).resolve(release, by)

    def export(self, form: str = "json") -> str:
        """All budgets and their entries as text.

        Input:  form: "json" (everything but the tables), "csv" (a line for each charge), or "dp_accounting" (JSON with
                each budget's mechanisms as one composed event, in the fields of dp-accounting's named tuples; the δ of
                keys found in the data is not an event, and is in the charges)
        """
        budgets = {name: self.budget(name) for name in self.budgets()}
        return exported({name: (budget, budget._book.entries()) for name, budget in budgets.items()}, form)

    def close(self) -> None:
        """Close the connections of this process; they are opened again when they are needed."""
        self._store.close()

    def __repr__(self) -> str:
        return f"Ledger({self._store.place})"


def _reopened(where: Any, witness: Any, timeout: float, skew: dt.timedelta, name: str) -> account.Budget:
    """A budget in another process."""
    return Ledger(where, witness=witness, create=False, timeout=timeout, clock_skew=skew).budget(name)


def _is_limit(typed: Loss, limit: Loss, in_whole_units: bool) -> bool:
    """Whether a limit that is typed now is that of a budget, which an earlier version may have read in its own way."""
    return in_units(typed) == limit if in_whole_units else typed in (limit, as_read_now(limit))
