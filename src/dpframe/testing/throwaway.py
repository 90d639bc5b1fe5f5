"""Budgets and ledgers of tests."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from dpframe.budget import Budget, Ledger
from dpframe.errors import DpFrameWarning


def budget(epsilon: float = 100.0, delta: float = 0.01, **options: Any) -> Budget:
    """A budget in memory that is large enough for a test, and does not warn of it.

    Parameters
    ----------
    epsilon, delta : float
        The limit.
    **options
        As in `dpframe.Budget`.

    Examples
    --------
    >>> budget().remaining
    Loss(epsilon=100.0, delta=0.01)
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpFrameWarning)
        return Budget(epsilon, delta, **options)


def ledger(where: str | Path, **options: Any) -> Ledger:
    """A ledger that is marked as a test, for ever: under `fixed_noise` it pays, and no other ledger does.

    Parameters
    ----------
    where : str or path
        A new file, a URL, or a test ledger that was made before. A ledger that has a budget is never marked.
    **options
        As in `dpframe.Ledger`.

    Raises
    ------
    UnsupportedOperation
        If there is a ledger that is not marked and has a budget, or a witness.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> tests = ledger(f"{folder.name}/tests.sqlite")
    >>> tests.is_test, Ledger(f"{folder.name}/tests.sqlite").is_test, Ledger(f"{folder.name}/real.sqlite").is_test
    (True, True, False)
    >>> tests.close(); folder.cleanup()
    """
    made = Ledger(where, **options)
    made.mark_for_tests()
    return made
