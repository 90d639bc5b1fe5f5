"""Allowances: parts of a budget that are paid in advance, and what is moved between them."""

from dpframe.budget.allowance.forecast import Forecast, forecast
from dpframe.budget.allowance.left import per_cent_left
from dpframe.budget.allowance.pace import AllowanceRecord, Pace
from dpframe.budget.allowance.purse import Allowance, PartBudget, allocate

__all__ = [
    "Allowance",
    "AllowanceRecord",
    "Forecast",
    "Pace",
    "PartBudget",
    "allocate",
    "forecast",
    "per_cent_left",
]
