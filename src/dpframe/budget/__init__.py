"""Privacy budgets: losses, how they add up, and the account that is
charged before any row is read.
"""

from dpframe.budget.adaptive import Normal
from dpframe.budget.allowance import Allowance, Forecast, PartBudget, per_cent_left
from dpframe.budget.budget import Budget
from dpframe.budget.caps import NAMES as CAPS
from dpframe.budget.caps import Caps
from dpframe.budget.entries import PENDING, Charge, Entry, canonical, loss_json
from dpframe.budget.ledger import Ledger
from dpframe.budget.losses import (
    Loss,
    Terms,
    read_delta,
    read_epsilon,
    read_rho,
    typed_number,
    written_number,
)
from dpframe.budget.names import fingerprint, is_text, user_name
from dpframe.budget.periods_of_time import NamedPeriod, Periods, read_length, time_of
from dpframe.budget.processes import ending, patient
from dpframe.budget.receipts import Page, Receipt, Standing, Stored, Within

__all__ = [
    "CAPS",
    "PENDING",
    "Allowance",
    "Budget",
    "Caps",
    "Charge",
    "Entry",
    "Forecast",
    "Ledger",
    "Loss",
    "NamedPeriod",
    "Normal",
    "Page",
    "PartBudget",
    "Periods",
    "Receipt",
    "Standing",
    "Stored",
    "Terms",
    "Within",
    "canonical",
    "ending",
    "fingerprint",
    "is_text",
    "loss_json",
    "patient",
    "per_cent_left",
    "read_delta",
    "read_epsilon",
    "read_length",
    "read_rho",
    "time_of",
    "typed_number",
    "user_name",
    "written_number",
]
