"""Types that a budget and its book exchange: the locked page, the
receipt of a charge, a stored table.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from dpframe.budget.entries import Entry, Failures
from dpframe.budget.losses import Loss
from dpframe.budget.parts import Parts
from dpframe.fields import FieldDict, Fields

NO_FAILURES = Failures()


class Page(Protocol):
    """The locked state of one budget.
    New entries are added through it, and nobody else can add any meanwhile.
    """

    spent: Loss
    subject: str | None
    parts: Parts
    failures: Failures
    caps: Fields | None  # caps and their sums; see `dpframe.budget.caps`
    role: str | None  # who spends, where the database says it
    where: str | None  # the ledger and its budget, as they are typed in a shell

    @property
    def head(self) -> str:
        """The hash of the last entry."""
        ...

    def append(self, kind: str, body: Fields, at: dt.datetime, data: bytes | None = None) -> Entry:
        """Add an entry.
        The caller first sets the attributes above to the state after it; both are stored together.
        """
        ...

    def latest(self, name: str) -> Entry | None:
        """The last charge of this name."""
        ...

    def latest_of(self, spender: str) -> Entry | None:
        """The last charge of this spender."""
        ...

    def result(self, number: int) -> tuple[Entry, bytes] | None:
        """The stored table of a charge."""
        ...

    def has_failed(self, number: int) -> bool:
        """Whether an error was raised after a charge."""
        ...

    def is_lost(self, number: int) -> bool:
        """Whether a pending charge was marked as lost."""
        ...

    def members(self, opening: int) -> list[Entry]:
        """The charges that the charge `opening` paid for in advance, and
        transfers to it, oldest first.
        """
        ...


class Book(Protocol):
    """The store of a budget's entries."""

    @property
    def name(self) -> str | None:
        """The name of the budget in its ledger; None in memory."""
        ...

    def write(self) -> AbstractContextManager[Page]:
        """The budget's page, locked against everyone else;
        entries are kept if the block ends without an error.
        """
        ...

    def spent(self) -> Loss:
        """The loss that has been charged so far."""
        ...

    def failures(self) -> Failures:
        """The number of releases that failed after they were charged."""
        ...

    def subjects(self, subject: str) -> tuple[str | None, list[str]]:
        """The unit that the budget protects, None before the first charge;
        other budgets here for the same unit.
        """
        ...

    def caps(self) -> Fields | None:
        """The caps and their sums; None without caps."""
        ...

    def entries(
        self, name: str | None = None, under: int | None = None, number: int | None = None
    ) -> list[Entry]:
        """Every entry, or those of a name, or what is about a charge and about these
        in turn, or one; oldest first.
        """
        ...

    def one_by_one(self, since: dt.datetime | None = None) -> Iterator[Entry]:
        """Every entry, or those from the first one of this time on;
        oldest first, without holding all of them.
        """
        ...

    def tables(self, opening: int) -> dict[int, bytes]:
        """The stored tables of the charges that `opening` paid for in
        advance, by the number of the charge.
        """
        ...

    def reopening(self) -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
        """Function and arguments, but for the spender, with which another
        process opens this book; or None.
        """
        ...


class Within(Protocol):
    """The place of a charge within an opening: an earlier charge that paid in
    advance, for a series or an allowance.
    """

    @property
    def opening(self) -> Entry:
        """That earlier charge."""
        ...

    def again(self, loss: Loss) -> Loss:
        """The cost of the charge if its name was paid for before and the answer was lost."""
        ...

    def may_repeat(self, page: Page) -> bool:
        """Whether a name without a charge may have been paid for in a later copy
        of the ledger, which was lost.
        """
        ...

    def enter(self, page: Page, loss: Loss) -> tuple[Loss, Fields]:
        """The loss that is charged to the budget, and the place that the entry records.
        Errors: BudgetError.
        """
        ...


@dataclass(frozen=True)
class Standing:
    """The state of a budget after its charges.

    `spent` is the loss under the budget's account, and `simple` that of adding up ε and δ, price by
    price. `more` is how many more releases like the last one are accepted, if no others come
    between them, and `price` is its price. `more` and `price` are None before the first charge.
    """

    limit: Loss
    spent: Loss
    simple: Loss
    more: int | None = None
    price: Loss | None = None

    @property
    def words(self) -> str:
        """The state of the budget, in sentences.

        >>> from fractions import Fraction
        >>> one, much = Loss.limit(Fraction(1), Fraction(0)), Loss(Fraction(10), Fraction(0))
        >>> last = Loss(Fraction(1, 10), Fraction(0))
        >>> print(
        ...     Standing(one, Loss(Fraction(3, 8), Fraction(0)), much, 57, last).words.partition(
        ...         ". "
        ...     )[0]
        ... )
        ε = 0.375 of ε = 1 is spent; adding up prices would say ε = 10
        """
        words = f"{self.spent} of {self.limit} is spent"
        if self.simple != self.spent:
            words += f"; adding up prices would say {self.simple}"
        if self.price is None:
            return f"{words}."
        if not self.more:
            return f"{words}. Another release like the last does not fit: {self.price}."
        number = (
            "1 more release like the last fits"
            if self.more == 1
            else f"{self.more:,} more like the last fit"
        )
        return f"{words}. {number}, {self.price} each."

    def to_json(self) -> FieldDict:
        """The standing as plain values."""
        return {"words": self.words, "more_like_this": self.more}


@dataclass(frozen=True)
class Stored:
    """A released table as it was stored, its statement, and the time at which it was stored."""

    data: bytes
    statement: Fields
    when: dt.datetime


@dataclass(frozen=True)
class Receipt:
    """A new charge, or the stored answer of an earlier charge, which costs nothing now.

    `failures` counts the failures of the whole budget at the time of the charge. `again` is whether
    the name had been paid for before. `standing` is that of the budget after the charge, if its
    sums are not the loss itself. `hash` is that of the charge's entry, and `previous` that of the
    entry before it. `spender` is who spends, if that is known.
    """

    number: int
    when: dt.datetime
    loss: Loss
    remaining: Loss
    stored: Stored | None = None
    failures: Failures = NO_FAILURES
    again: bool = False
    standing: Standing | None = None
    hash: str = ""
    previous: str = ""
    spender: str | None = None
