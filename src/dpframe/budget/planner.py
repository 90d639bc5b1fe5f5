"""Who prices several queries of a budget together.

A budget knows no queries: they are a matter of `api`, which stands above it. `api` registers its function here, and
`Budget.plan` calls it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from dpframe.budget.account import Budget

__all__ = ["Planner", "plan_with", "planner"]


class Planner(Protocol):
    """A function of queries and of the budget that pays for them; it gives a batch, and charges nothing."""

    def __call__(self, queries: Sequence[object], budget: Budget, /, **price: Any) -> Any:
        """The batch, with its noise and its cost."""
        ...


_REGISTERED: list[Planner] = []


def plan_with(planner: Planner) -> Planner:
    """Register the function that `Budget.plan` calls, in place of any other."""
    _REGISTERED[:] = [planner]
    return planner


def planner() -> Planner:
    """The function that was registered last; `import dpframe` registers that of `api`."""
    return _REGISTERED[-1]
