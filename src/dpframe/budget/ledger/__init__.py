"""Budgets that survive the process: the ledger, its database, its book, its witness, and its verification."""

from dpframe.budget.ledger.ledger import (
    Ledger,
)

__all__ = [
    "Ledger",
]
