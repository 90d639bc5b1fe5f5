"""What happens between a charge and its stored table: an error there is recorded before it is seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from dpframe.budget import Receipt

__all__ = ["recorded"]

T = TypeVar("T")


class Recording(Protocol):
    """Whatever keeps failures with its charges."""

    def fail(self, receipt: Receipt) -> None:
        """Record that an error was raised after a charge."""
        ...


def recorded(account: Recording, receipt: Receipt, answer: Callable[[], T]) -> T:
    """Read rows and draw noise for a charge. An error of any kind is recorded with the charge, and raised again.

    The user's own steps before `protect` (a strict cast, a query) may raise on a cell, and running out of memory may
    depend on the rows. Where the failure cannot be recorded, the ledger's own error is raised in place of the first
    one, as when the table cannot be stored: then nobody sees which of the two it was.
    An interrupt (Ctrl-C) or an exit is no failure: a person caused it, not a cell. The charge stays pending, as when
    the process is killed. To store the table is no part of this: what is stored is private, whether that fails or not.
    """
    try:
        return answer()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # of Polars' panics too
        problem = error
    account.fail(receipt)  # outside of the handler, so that the first error does not hang on the ledger's own
    raise problem
