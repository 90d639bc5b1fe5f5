"""The default budget, and checks of named budgets."""

from __future__ import annotations

from typing import Any

from dpframe.budget import Allowance, Budget, Ledger, PartBudget
from dpframe.engine import set_most
from dpframe.errors import BudgetMismatch, BudgetRequired, InvalidArgument, kind_of
from dpframe.plan import real
from dpframe.release import Account, spent_by
from dpframe.usage import door

_default: Account | None = None


def check_budget(budget: Any) -> Account | None:
    """A budget that can be charged, or None. Errors: InvalidArgument."""
    match budget:
        case Ledger():
            raise InvalidArgument(
                "budget= takes one of the ledger's budgets: ledger.budget('visits-2026', "
                "epsilon=1.0)."
            )
        case PartBudget():
            raise InvalidArgument(
                "budget= is that of one part of a partition, and only releases about that part "
                "compose in parallel. Name the whole budget, and join or concatenate tables "
                "before they are partitioned."
            )
    if budget is not None and not all(
        callable(getattr(budget, verb, None)) for verb in ("charge", "store")
    ):
        raise InvalidArgument(
            f"budget= takes a budget, dp.Budget(epsilon=1.0), not {kind_of(budget)}."
        )
    account: Account | None = budget
    return account


def check_subject(budget: Account | None, subject: str) -> None:
    """Refuse a table of other units than those of its budget.
    Errors: BudgetMismatch. Warns: DpFrameWarning.
    """
    # an account of somebody else looks when it is charged
    if isinstance(budget, (Budget, Allowance)):
        budget.check_subject(subject)


def check_same_budget(first: Account | None, second: Account | None, call: str) -> None:
    """Refuse protected tables that are paid from different budgets. Errors: BudgetMismatch."""
    if first is not second and first != second:
        raise BudgetMismatch(
            f"{call}: the tables are paid from different budgets, and a release about both would "
            "be charged to one of them only. Protect them with the same budget=, and join or "
            "concatenate before you partition."
        )


@door
def set_budget(budget: Any) -> None:
    """Pay every release that names no budget from this one; None takes it back.

    >>> import polars as pl, dpframe as dp
    >>> dp.set_budget(dp.Budget(epsilon=1.0))
    >>> out = pl.DataFrame({"user": [1, 1, 2]}).dp.count(unit="user", max_rows=2, epsilon=0.25)
    >>> out.cost
    Loss(epsilon=0.25, delta=0.0)
    >>> dp.set_budget(None)
    """
    global _default
    _default = check_budget(budget)


@door
def set_memory(gib: float | None) -> None:
    """The most memory that the rows of one question take at a time; None takes the setting back.

    A release about more rows works on one part of the units after another. Its answer is the same,
    and no release is refused for the number of its rows. Without a setting it is 4 GiB, or less
    where `ulimit -v` or the container of the process allows less. This is about pandas, Polars and
    PyArrow; databases and Spark have settings of their own.

    Input:  gib: GiB, 2**30 bytes
    Errors: InvalidArgument

    >>> set_memory(2)
    >>> set_memory(None)
    """
    if gib is not None and not 0 < (real(gib) or 0) < 2**20:
        raise InvalidArgument("set_memory: give GiB, such as dp.set_memory(2), or None.")
    set_most(None if gib is None else int(gib * 2**30))


def resolve_budget(
    budget: Account | None, spender: str | None = None, purpose: str | None = None
) -> Account:
    """The named budget, or the default; with a spender, as it is spent by this one.

    Errors: BudgetRequired, with the line to type; InvalidArgument
    """
    account = _default if budget is None else budget
    if account is not None:
        return spent_by(account, spender, purpose)  # type: ignore[no-any-return]
    raise BudgetRequired(
        "No budget was named, so nothing says how much may be spent. Name one, df.dp(unit=..., "
        "budget=dp.Budget(epsilon=1.0, delta=1e-6)), or set it for all: "
        "dp.set_budget(dp.Budget(epsilon=1.0, delta=1e-6))."
    )
