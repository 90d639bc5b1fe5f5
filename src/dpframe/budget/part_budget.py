"""A budget for releases about one part of a partition; see `parts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from fractions import Fraction
from typing import Any

from dpframe.budget.account import Budget
from dpframe.budget.losses import Loss, Terms
from dpframe.budget.parts import PartName
from dpframe.budget.receipts import Receipt, Stored
from dpframe.safe_text import visible
from dpframe.usage import Hints


class PartBudget(Hints):
    """A budget for one part of a partition. A charge costs the rise of the largest loss of a part, times `groups`."""

    def __init__(self, budget: Budget, partition: str, key: str) -> None:
        self._budget, self._part = budget, PartName(partition, key)

    @property
    def name(self) -> str | None:
        """The name of the whole budget in its ledger; None in memory."""
        return self._budget.name

    @property
    def accountant(self) -> str:
        """The name of the accountant that adds up losses."""
        return self._budget.accountant

    @property
    def terms(self) -> Terms:
        """Whether releases are charged in "epsilon" or in "rho"."""
        return self._budget.terms

    @property
    def limit(self) -> Loss:
        """The largest loss of all releases of the whole budget together."""
        return self._budget.limit

    @property
    def spent(self) -> Loss:
        """The loss that has been charged to the whole budget."""
        return self._budget.spent

    @property
    def remaining(self) -> Loss:
        """The loss that may still be charged to the whole budget."""
        return self._budget.remaining

    def part(self, share: Fraction, name: str | None = None) -> Loss:
        """The price of a share of the whole budget; see `Budget.part`."""
        return self._budget.part(share, name)

    def history(self) -> Sequence[Any]:
        """Every charge of the whole budget."""
        return self._budget.history()

    def charge(self, loss: Loss, subject: str, query: str, **options: Any) -> Receipt:
        """Charge a release about this part; see `Budget.charge`."""
        return self._budget.charge(loss, subject, query, part=self._part, **options)

    def for_spender(self, spender: str) -> PartBudget:
        """The same, where all that is charged is spent by one spender; see `Budget.for_spender`."""
        again = copy(self)
        again._budget = self._budget.for_spender(spender)
        return again

    def store(self, receipt: Receipt, data: bytes, statement: Mapping[str, Any]) -> Stored:
        """Store the released table with its charge."""
        return self._budget.store(receipt, data, statement)

    def fail(self, receipt: Receipt) -> None:
        """Record that an error was raised after a charge. Failures are counted for the whole budget."""
        self._budget.fail(receipt)

    def __repr__(self) -> str:
        return visible(f"part {self._part.key} of {self._budget!r}")
