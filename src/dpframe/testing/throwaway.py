"""Budgets and ledgers of tests, and answers without noise on tables that a test makes up."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpframe import engine
from dpframe.api import Query
from dpframe.budget import Budget, Ledger, Terms
from dpframe.errors import DpFrameWarning, InvalidArgument, kind_of
from dpframe.plan.steps import Step, UnderPolicy, rebased
from dpframe.release import release
from dpframe.release.pricing import read_price
from dpframe.testing.fixed_noise import fixed_noise

# noise of the size of a rounding error; each key that is there is found
_EPSILON, _DELTA = 1e9, 1 - 1e-9


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
    """A ledger that is marked as a test, for ever:
    under `fixed_noise` it pays, and no other ledger does.

    Parameters
    ----------
    where : str or path
        A new file, a URL, or a test ledger that was made before. A ledger that has a budget is
        never marked.
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
    >>> (
    ...     tests.is_test,
    ...     Ledger(f"{folder.name}/tests.sqlite").is_test,
    ...     Ledger(f"{folder.name}/real.sqlite").is_test,
    ... )
    (True, True, False)
    >>> tests.close()
    >>> folder.cleanup()
    """
    made = Ledger(where, **options)
    made.mark_for_tests()
    return made


def exact(query: Any, table: Any) -> Any:
    """The answer of a question on a made-up table, without noise:
    totals, means, medians, keys, crosstabs.

    The limits and bounds of the question apply, and choices are made among its candidates: a median
    is the nearest of them. The rows that the question was asked of are not read, and its budget is
    not charged. So the caps of a policy file, which are about what is paid for answers on real
    rows, do not apply.

    Parameters
    ----------
    query : Query
        The question, with limits and bounds.
    table : table
        A made-up table of any kind that can be protected, with the columns of the protected one.

    Returns
    -------
    Release
        The release, whose numbers are those without noise, up to a billionth of a unit's
        contribution.

    Examples
    --------
    >>> import polars as pl, dpframe as dp
    >>> real = pl.DataFrame({"user": [1], "spend": [0.0]}).dp(
    ...     unit="user", budget=dp.Budget(epsilon=1.0)
    ... )
    >>> made_up = pl.DataFrame({"user": [1, 2, 3], "spend": [10.0, 20.0, 90.0]})
    >>> round(exact(real.median("spend", bounds=(0, 100), max_rows=1), made_up).value)
    20
    """
    if not isinstance(query, Query):
        raise InvalidArgument(f"exact: give a question and a table, not {kind_of(query)}.")
    question = replace(
        query._question, step=_without_caps(rebased(query._question.step, engine.adopt(table)))
    )
    price = read_price(Terms.EPSILON, epsilon=_EPSILON, delta=_DELTA)
    with fixed_noise("exact"), warnings.catch_warnings():
        warnings.simplefilter("ignore", DpFrameWarning)
        return release(question, budget(2 * _EPSILON, _DELTA, accountant="basic"), price)


def _without_caps(step: Step) -> Step:
    """A plan whose policy files have no caps, and are otherwise as they were."""
    if step.parent is None:
        return step
    before = {"before": _without_caps(step.parent)}
    made: Step = replace(step.with_others([_without_caps(more) for more in step.others]), **before)
    return (
        replace(made, lock=replace(made.lock, caps={})) if isinstance(made, UnderPolicy) else made
    )
