"""What a release may cost: losses, how they add up, and the account that is charged before any row is read."""

from dpframe.budget.account import Budget, Charge
from dpframe.budget.accountants import Accountant
from dpframe.budget.losses import Loss

__all__ = ["Accountant", "Budget", "Charge", "Loss"]
