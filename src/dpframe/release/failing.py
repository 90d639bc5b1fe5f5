"""Errors between a charge and its stored table: they are recorded before anybody sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from dpframe.budget import Receipt

__all__ = ["recorded"]

T = TypeVar("T")


class Recording(Protocol):
    """An account that keeps failures with its charges."""

    def fail(self, receipt: Receipt) -> None:
        """Record that an error was raised after a charge."""
        ...


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
