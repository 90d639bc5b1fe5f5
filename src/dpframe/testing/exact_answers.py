"""Answers without noise, on tables that a test makes up."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from dpframe import engine
from dpframe.api import Query
from dpframe.budget import Terms
from dpframe.errors import DpFrameWarning, InvalidArgument, kind_of
from dpframe.plan.steps import rebased
from dpframe.release import release
from dpframe.release.pricing import read_price
from dpframe.testing.fixed_noise import fixed_noise
from dpframe.testing.throwaway import budget

_EPSILON, _DELTA = 1e9, 1 - 1e-9  # noise of the size of a rounding error; each key that is there is found


def exact(query: Any, table: Any) -> Any:
    """The answer of a question on a made-up table, without noise: totals, means, medians, keys, crosstabs.

    The limits and bounds of the question apply, and choices are made among its candidates: a median is the nearest of
    them. The rows that the question was asked of are not read, and its budget is not charged.

    Parameters
    ----------
    query : Query
        The question, with limits and bounds.
    table : table
        A made-up table of any kind that can be protected, with the columns of the protected one.

    Returns
    -------
    Release
        The release, whose numbers are those without noise, up to a billionth of a unit's contribution.

    Examples
    --------
    >>> import polars as pl, dpframe as dp
    >>> real = pl.DataFrame({"user": [1], "spend": [0.0]}).dp(unit="user", budget=dp.Budget(epsilon=1.0))
    >>> made_up = pl.DataFrame({"user": [1, 2, 3], "spend": [10.0, 20.0, 90.0]})
    >>> round(exact(real.median("spend", bounds=(0, 100), max_rows=1), made_up).value)
    20
    """
    if not isinstance(query, Query):
        raise InvalidArgument(f"exact: give a question and a table, not {kind_of(query)}.")
    question = replace(query._question, step=rebased(query._question.step, engine.adopt(table)))
    price = read_price(Terms.EPSILON, epsilon=_EPSILON, delta=_DELTA)
    with fixed_noise("exact"), warnings.catch_warnings():
        warnings.simplefilter("ignore", DpFrameWarning)
        return release(question, budget(2 * _EPSILON, _DELTA, accountant="basic"), price)
