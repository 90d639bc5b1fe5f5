"""How losses add up. An accountant says what a series of releases costs together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from dpframe.budget.losses import Loss
from dpframe.errors import UnsupportedOperation

__all__ = ["ACCOUNTANTS", "Accountant", "Basic", "accountant_named"]


class Accountant(Protocol):
    """The rule by which losses of adaptively chosen releases compose."""

    name: str

    def total(self, losses: Iterable[Loss]) -> Loss:
        """The loss of all releases together."""
        ...


class Basic:
    """Sums of ε and of δ.

    Holds when each release is chosen after seeing the ones before, with its price fixed before it is drawn: basic
    composition is a valid filter. Source: Dwork and Roth 2014, theorem 3.16 and section 3.5; Rogers et al. 2016,
    arXiv:1605.08294, for adaptively chosen prices.

    >>> Basic().total([Loss(1, 0), Loss(2, 5)])
    Loss(epsilon=3e-12, delta=5e-18)
    """

    name = "basic"

    def total(self, losses: Iterable[Loss]) -> Loss:
        """Componentwise sum."""
        return sum(losses, Loss(0, 0))


ACCOUNTANTS: dict[str, type[Accountant]] = {Basic.name: Basic}


def accountant_named(name: object) -> Accountant:
    """An accountant by its name. Errors: UnsupportedOperation, with the names there are."""
    if not isinstance(name, str) or name not in ACCOUNTANTS:
        raise UnsupportedOperation(f"accountant={name!r}: choose one of {', '.join(map(repr, ACCOUNTANTS))}.")
    return ACCOUNTANTS[name]()
