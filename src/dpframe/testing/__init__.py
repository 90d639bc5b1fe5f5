"""Tests of your own pipelines: fixed noise, throwaway budgets, exact answers on
made-up tables, golden outputs.

Nothing here works on a real ledger. Under fixed noise each ledger refuses to pay, unless it was
made by `dpframe.testing.ledger` and is a test ledger for ever. A release under fixed noise says so
in its statement.
"""

from dpframe.testing.comparing import ENGINES, assert_golden, assert_same_on
from dpframe.testing.fixed_noise import Words, fixed_noise
from dpframe.testing.throwaway import budget, exact, ledger

__all__ = [
    "ENGINES",
    "Words",
    "assert_golden",
    "assert_same_on",
    "budget",
    "exact",
    "fixed_noise",
    "ledger",
]
