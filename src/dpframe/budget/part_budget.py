"""A budget as one part of a partition sees it; see `parts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpframe.budget.account import Budget
from dpframe.budget.losses import Loss, Terms
from dpframe.budget.parts import PartName
from dpframe.budget.receipts import Receipt, Stored

__all__ = ["PartBudget"]


class PartBudget:
    """A budget as one part of a partition charges it: by how far the dearest part rises, times the parts of a unit."""

    def __init__(self, budget: Budget, partition: str, key: str) -> None:
        self._budget, self._part = budget, PartName(partition, key)

    @property
    def accountant(self) -> str:
        """How losses add up."""
        return self._budget.accountant

    @property
    def terms(self) -> Terms:
        """Whether releases are charged in "epsilon" or in "rho"."""
        return self._budget.terms

    @property
    def limit(self) -> Loss:
        """What all releases of the whole budget may cost together."""
        return self._budget.limit

    @property
    def spent(self) -> Loss:
        """What has been charged to the whole budget."""
        return self._budget.spent

    @property
    def remaining(self) -> Loss:
        """What is left of the whole budget."""
        return self._budget.remaining

    def history(self) -> Sequence[Any]:
        """Every charge of the whole budget."""
        return self._budget.history()

    def charge(self, loss: Loss, subject: str, query: str, **options: Any) -> Receipt:
        """Pay for a release about this part; see `Budget.charge`."""
        return self._budget.charge(loss, subject, query, part=self._part, **options)

    def store(self, receipt: Receipt, data: bytes, statement: Mapping[str, Any]) -> Stored:
        """Keep the released table with its charge."""
        return self._budget.store(receipt, data, statement)

    def fail(self, receipt: Receipt) -> None:
        """Record that an error was raised after a charge; failures are those of the whole budget."""
        self._budget.fail(receipt)

    def __repr__(self) -> str:
        return f"part {self._part.key} of {self._budget!r}"
