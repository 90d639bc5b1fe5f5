"""Budgets that survive the process: the ledger, its database, its book, its
witness, and its verification.
"""

from dpframe.budget.ledger.export import read_since
from dpframe.budget.ledger.ledger import Ledger, check_copy

__all__ = ["Ledger", "check_copy", "read_since"]
