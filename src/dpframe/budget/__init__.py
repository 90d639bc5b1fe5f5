"""What a release may cost: losses, how they add up, and the account that is charged before any row is read."""

from dpframe.budget.account import Budget
from dpframe.budget.accountants import Accountant
from dpframe.budget.entries import Charge
from dpframe.budget.ledger import Ledger
from dpframe.budget.losses import (
    Loss,
    Terms,
    read_delta,
    read_epsilon,
    read_rho,
    typed_number,
)
from dpframe.budget.part_budget import (
    PartBudget,
)
from dpframe.budget.planner import plan_with
from dpframe.budget.receipts import Receipt, Stored

__all__ = [
    "Accountant",
    "Budget",
    "Charge",
    "Ledger",
    "Loss",
    "PartBudget",
    "Receipt",
    "Stored",
    "Terms",
    "plan_with",
    "read_delta",
    "read_epsilon",
    "read_rho",
    "typed_number",
]
