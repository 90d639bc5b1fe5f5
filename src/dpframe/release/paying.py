"""The account that pays for releases, and what its entries say of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from dpframe import engine
from dpframe.budget import Loss, Normal, Receipt, Stored, Terms
from dpframe.plan import Question, unit_words
from dpframe.plan.steps import source_of, sources_of
from dpframe.safe_text import visible

_LOG = logging.getLogger("dpframe")
T = TypeVar("T")


class Recording(Protocol):
    """An account that keeps failures with its charges."""

    def fail(self, receipt: Receipt) -> None:
        """Record that an error was raised after a charge."""
        ...


class Account(Recording, Protocol):
    """An account: it can be charged, and keeps released tables with their charges."""

    @property
    def terms(self) -> Terms:
        """The terms of its losses: ε or ρ."""
        ...

    @property
    def accountant(self) -> str:
        """Name of the rule by which losses add up."""
        ...

    @property
    def limit(self) -> Loss:
        """Limit on the cost of all releases together."""
        ...

    def charge(
        self,
        loss: Loss,
        subject: str,
        query: str,
        *,
        name: str | None = None,
        plan: Mapping[str, Any] | None = None,
        refresh: bool = False,
        retry: bool = False,
        batch: bool = False,
        events: Sequence[Mapping[str, Any]] = (),
        normal: Normal | None = None,
    ) -> Receipt:
        """Pay, or refuse and change nothing, or return the stored answer."""
        ...

    def part(self, share: Fraction, name: str | None = None) -> Loss:
        """The price of a share of the limit; of a name that was charged for this share, the price that it had."""
        ...

    def store(self, receipt: Receipt, data: bytes, statement: Mapping[str, Any]) -> Stored:
        """Keep the released table with its charge."""
        ...


def subject_of(question: Question) -> str:
    """The subject of a release: the unit and the neighbour relation."""
    return f"{unit_words(source_of(question.step).table)}, {question.table.relation}"


def described_origin(question: Question) -> dict[str, Any]:
    """Public origin of the rows, for the name of a release; empty where it is not known."""
    origins = [engine.origin_of(source.origin, source.data.files) for source in sources_of(question.step)]
    named = [origin for origin in origins if origin is not None]
    return {"data": named} if named else {}


def told(receipt: Receipt, name: str | None) -> dict[str, str]:
    """Note, also logged, about an answer that came from the store, or that was paid for again."""
    if receipt.stored is not None:
        words = f"Stored answer of {receipt.stored.when:%Y-%m-%d %H:%M} UTC, nothing charged."
        _LOG.info("%s: %s", visible(str(name)), visible(words))
        return {"stored": words}
    if receipt.again:
        _LOG.info("%s: measured again, which costs %s", visible(str(name)), receipt.loss)
    return {}


def recorded(account: Recording, receipt: Receipt, answer: Callable[[], T]) -> T:
    """Read rows and draw noise for a charge. An error of any kind is recorded with the charge, and raised again.

    The user's own steps before `protect` (a strict cast, a query) may raise on a cell, and running out of memory may
    depend on the rows. If the failure cannot be recorded, the ledger's error is raised in place of the first one. An
    answer that cannot be stored raises that error too, so nobody sees which of the two happened. An interrupt (Ctrl-C)
    or an exit is no failure: a person caused it, not a cell. The charge stays pending, as when the process is killed.
    Storing the table happens elsewhere: the table is private, so a failure to store it reveals nothing.
    """
    try:
        return answer()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # also panics of Polars
        problem = error
    account.fail(receipt)  # outside of the handler, so that the first error is not the context of the ledger's
    raise problem
