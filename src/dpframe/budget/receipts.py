"""What passes between a budget and its book: the locked page, the receipt of a charge, a stored table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from dpframe.budget.entries import Entry, Failures
from dpframe.budget.losses import Loss
from dpframe.budget.parts import Parts

__all__ = ["Book", "Page", "Receipt", "Stored"]


NO_FAILURES = Failures()


class Page(Protocol):
    """The state of one budget, and the only way to add to it, for as long as nobody else can."""

    spent: Loss
    subject: str | None
    parts: Parts
    failures: Failures

    def append(self, kind: str, body: Mapping[str, Any], at: dt.datetime, data: bytes | None = None) -> Entry:
        """Add an entry; the state above moves with it, and is set beforehand."""
        ...

    def latest(self, name: str) -> Entry | None:
        """The last charge of this name."""
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
        """The charges that an opening paid for, oldest first."""
        ...


class Book(Protocol):
    """Where a budget's entries are kept."""

    def write(self) -> AbstractContextManager[Page]:
        """The budget's page, locked against everyone; what was appended is kept when the block ends well."""
        ...

    def spent(self) -> Loss:
        """What has been charged so far."""
        ...

    def failures(self) -> Failures:
        """How many releases failed after they were charged."""
        ...

    def entries(self) -> list[Entry]:
        """Every entry, oldest first."""
        ...

    def tables(self, opening: int) -> dict[int, bytes]:
        """The stored tables of the charges that an opening paid for, by the number of the charge."""
        ...

    def reopening(self) -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
        """How another process opens the same book; None when it cannot."""
        ...


class Within(Protocol):
    """The place of a charge under an opening: a charge that paid beforehand, for a series or for an allowance.

    `opening` is its number.
    """

    @property
    def opening(self) -> int: ...

    def again(self, loss: Loss) -> Loss:
        """What the charge costs where its name was paid for before, and its answer lost."""
        ...

    def enter(self, page: Page, loss: Loss) -> tuple[Loss, Mapping[str, Any]]:
        """What is charged to the budget for a loss, and what the line says of its place. Errors: BudgetError."""
        ...


@dataclass(frozen=True)
class Stored:
    """A table as it was released and stored, its statement, and when it was drawn."""

    data: bytes
    statement: Mapping[str, Any]
    when: dt.datetime


@dataclass(frozen=True)
class Receipt:
    """A charge that was made, or the stored answer of an earlier one, for which nothing was paid now.

    `failures` are those of the whole budget when it was charged. `again` is whether the name had been paid for before.
    """

    number: int
    when: dt.datetime
    loss: Loss
    remaining: Loss
    stored: Stored | None = None
    failures: Failures = NO_FAILURES
    again: bool = False
