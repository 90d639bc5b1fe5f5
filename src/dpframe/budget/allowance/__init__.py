"""Allowances: parts of a budget that are paid in advance, and what is moved between them."""

from dpframe.budget.allowance.pace import AllowanceRecord, Pace
from dpframe.budget.allowance.purse import Allowance, PartBudget

__all__ = ["Allowance", "AllowanceRecord", "Pace", "PartBudget"]
