"""Budgets that survive the process: the ledger, its database, its book, its witness, and the check of all of them."""

from dpframe.budget.ledger.ledger import (
    Ledger,
)

__all__ = [
    "Ledger",
]
