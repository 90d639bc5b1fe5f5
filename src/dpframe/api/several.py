"""Several protected frames as one, and several queries as one batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dpframe.api.frame import PrivateFrame
from dpframe.api.query import Query
from dpframe.api.settings import check_same_budget
from dpframe.budget import Budget, Loss
from dpframe.engine import Table_co
from dpframe.errors import InvalidArgument, WrongCall
from dpframe.plan.steps import Concat
from dpframe.release import Batch, batch_of
from dpframe.usage import body_of, door, explained, is_list


@door
def concat(frames: Iterable[PrivateFrame[Table_co]]) -> PrivateFrame[Table_co]:
    """The rows of several protected frames, one below the other: `dp.concat([january, february])`.

    Input:  frames: protected frames of the same unit, neighbour relation and budget, with the same
            columns in any order
    Output: PrivateFrame; whole numbers of different types become Int64, numbers Float64, texts
            String. Bounds cover those of every frame, and are known where every frame has them
    Bound:  see `dpframe.plan.steps.combine.Concat`: limits are enforced on the rows of all frames
            together, so nothing is multiplied
    Errors: InvalidArgument, WrongType, UnsupportedOperation with `dp.Rows(k)` and for different
            units; BudgetMismatch

    >>> import polars as pl, dpframe as dp
    >>> months = [
    ...     pl.DataFrame({"user": [1, 2], "spend": [3.0, 4.0]}),
    ...     pl.DataFrame({"user": [2], "spend": [5.0]}),
    ... ]
    >>> budget = dp.Budget(epsilon=1)
    >>> year = concat([dp.protect(month, unit="user", budget=budget) for month in months])
    >>> year.sum("spend", bounds=(0, 10), max_rows=2).sensitivity["spend"].l1
    20
    """
    members: list[PrivateFrame[Table_co]] = list(frames) if is_list(frames) else []
    if not members or not all(isinstance(frame, PrivateFrame) for frame in members):
        raise InvalidArgument(
            "concat: give a list of protected frames, such as dp.concat([january, february])."
        )
    first, *more = members
    for frame in more:
        check_same_budget(first._budget, frame._budget, "concat")
    return first._then(Concat(first._step, tuple(frame._step for frame in more))) if more else first


@body_of(Budget.plan)
def _planned(
    budget: Budget, typed: Iterable[object] | None, *, n: int | None, **price: Any
) -> Batch | Loss:
    """Several queries as one batch of a budget, or the price of each of
    n releases: see `Budget.plan`.
    """
    if typed is None:
        if n is None or price:
            raise WrongCall(
                "plan: missing a required argument: 'queries'. Type budget.plan([query, ...], "
                "epsilon=0.1)."
            )
        return budget.each(n)
    queries = list(typed) if isinstance(typed, Iterable) else []
    if not queries or not isinstance(queries[0], Query):
        raise InvalidArgument("budget.plan([...]) takes queries, such as frame.count_units().")
    questions = []
    for query in queries:
        if not isinstance(query, Query) or query._budget not in (None, budget):
            raise InvalidArgument(
                "budget.plan([...]) takes queries of frames that this budget pays for."
            )
        questions.append(query._question)
    return explained(batch_of, "budget.plan({1})")(questions, budget, **price)
