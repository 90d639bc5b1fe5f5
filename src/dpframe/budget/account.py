"""A budget: a limit, what has been spent of it, and the one function through which every charge passes."""

from __future__ import annotations

import datetime as dt
import threading
from typing import Any, NamedTuple

from dpframe.budget.accountants import accountant_named
from dpframe.budget.losses import Loss, read_delta, read_epsilon
from dpframe.errors import BudgetExceeded, BudgetMismatch, InvalidPrice, UnsupportedOperation

__all__ = ["Budget", "Charge"]


class Charge(NamedTuple):
    """One line of a budget's history: when (UTC), for what, and its price."""

    when: dt.datetime
    query: str
    epsilon: float
    delta: float


class Budget:
    """How much privacy the releases of this process may cost together.

    Input:  epsilon > 0, the limit on ε; delta in [0, 1), the limit on δ; accountant, how losses add up
    Bound:  the releases charged here compose to at most (epsilon, delta) for the one unit and neighbour relation that
            the first charge binds the budget to
    Errors: InvalidPrice; at a release BudgetExceeded and BudgetMismatch, which spend nothing

    A charge is made before any row is read, under a lock, and is never taken back.

    >>> budget = Budget(epsilon=1.0, delta=1e-6)
    >>> budget.remaining
    Loss(epsilon=1.0, delta=1e-06)
    """

    def __init__(
        self, epsilon: float | None = None, delta: float = 0.0, rho: float | None = None, accountant: str = "basic"
    ) -> None:
        self._accountant = accountant_named(accountant)
        if rho is not None:
            raise UnsupportedOperation(f"accountant={accountant!r} counts ε and δ; give epsilon= and delta=, not rho=.")
        if epsilon is None:
            raise InvalidPrice("A budget needs its limit: dp.Budget(epsilon=1.0, delta=1e-6).")
        self._limit = Loss.limit(read_epsilon(epsilon), read_delta(delta))
        self._spent = Loss(0, 0)
        self._history: list[Charge] = []
        self._subject: str | None = None
        self._lock = threading.Lock()

    # What it holds

    @property
    def limit(self) -> Loss:
        """What all releases together may cost."""
        return self._limit

    @property
    def spent(self) -> Loss:
        """What has been charged so far."""
        with self._lock:
            return self._spent

    @property
    def remaining(self) -> Loss:
        """What is left."""
        return self._limit - self.spent

    def history(self) -> list[Charge]:
        """Every charge, oldest first."""
        with self._lock:
            return list(self._history)

    # Paying

    def charge(self, loss: Loss, subject: str, query: str) -> None:
        """Pay, or refuse and change nothing.

        Input:  loss, the price of one release; subject, whose privacy it is (unit and neighbour relation); query, the
                release in words that are public
        Errors: BudgetMismatch when the budget is bound to another subject; BudgetExceeded
        """
        with self._lock:
            if self._subject not in (None, subject):
                raise BudgetMismatch(
                    f"This budget protects {self._subject}; the release is about {subject}. Losses about different "
                    "units do not add up: give each unit a budget of its own, dp.Budget(epsilon=...)."
                )
            spent = self._accountant.total([self._spent, loss])
            if not spent <= self._limit:
                raise BudgetExceeded(
                    f"The release costs {loss}, and {self._limit - self._spent} of {self._limit} is left. "
                    "Nothing was spent. Ask for less: release(epsilon=...) with what is left at most."
                )
            self._spent, self._subject = spent, subject
            self._history.append(Charge(dt.datetime.now(dt.UTC), query, loss.epsilon, loss.delta))

    def __repr__(self) -> str:
        return f"Budget({self.limit}; spent {self.spent}; accountant {self._accountant.name!r})"

    def __reduce__(self) -> Any:
        raise UnsupportedOperation(
            "A budget in memory cannot be pickled or copied: each copy could be spent in full, as could the original."
        )
