"""The expected error under several limits, from paid histograms, so that
a person can choose among them.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import polars as pl

from dpframe import engine
from dpframe.budget import read_delta, read_epsilon
from dpframe.errors import InvalidArgument, UnboundedContribution, UnsupportedOperation
from dpframe.fields import Fields
from dpframe.plan import Auto, Limits, Question, described
from dpframe.plan.declared import check_limits
from dpframe.plan.steps import check_limit
from dpframe.release.auto import check_auto, expected_errors, judged_by, read_people, try_people
from dpframe.release.paying import (
    Account,
    Naming,
    described_origin,
    recorded,
    subject_of,
    told,
    under_policy,
)
from dpframe.release.pricing import UNNAMED, Price
from dpframe.release.shown import fixed_words
from dpframe.release.stored import Answer, packed, unpacked

_NAMES = ("max_rows", "max_groups", "max_rows_per_group")
_MOST = 10_000


def tuned(
    question: Question,
    grid: object,
    account: Account,
    *,
    price: Price,
    at: Any,
    delta: Any,
    **naming: Unpack[Naming],
) -> pl.DataFrame:
    """Pay for the histograms, and estimate the error of a question under each choice of limits.

    Input:  grid: lists of limits by name; the price of the histograms; at: the ε or ρ of the
            planned release, nine times that price by default, with its δ
    Output: one row for each choice: its limits, and the expected error of each column (column unit)
    Bound:  as `dpframe.release.auto.choice.choose`: each histogram costs its part of the price
    Errors: those of a release, before anything is read
    """
    limits = _choices(grid)
    for choice in limits:
        check_limits(choice, question.table, "tune")
    _check(question)
    free = replace(question, given=Limits(auto=Auto(scaled=False)), chosen=None)
    check_auto(price)
    amount = 9 * price.amount if at is None else read_epsilon(at, "at")
    release_price = replace(price, amount=amount, delta=read_delta(delta))
    _check_planned(free, limits, release_price)
    also = sorted({histogram for choice in limits for histogram in judged_by(choice)})
    engine.check_unchanged(free.step)
    try_people(free, release_price, also)
    name = naming.get("name")
    plan = None if name is None else _description(free, limits, price, release_price)
    words = f"tune of {', '.join(output.name for output in question.outputs)}"
    cost = price.loss(delta=False)
    receipt = account.charge(
        cost,
        subject_of(question),
        words,
        plan=plan,
        **naming,
        batch=False,
        events=[UNNAMED],
        **under_policy([question], account, cost),
    )
    told(account, receipt, name, [question])
    if receipt.stored is not None:
        return unpacked(receipt.stored.data)[0].long

    def answer() -> tuple[pl.DataFrame, bytes, Fields]:
        unit_sizes = read_people(free, price, release_price, also)
        table = _table(free, limits, expected_errors(free, unit_sizes, release_price, limits))
        drawn = dt.datetime.now(dt.UTC).isoformat()
        return table, packed([Answer(table, {})]), {**fixed_words(), "tune": words, "drawn": drawn}

    return recorded(account, receipt, name, [free], answer)[0]


def _check_planned(question: Question, limits: Sequence[Limits], price: Price) -> None:
    """Refuse now what a release under some of the limits would refuse.
    Errors: UnboundedContribution, and others.
    """
    for choice in limits:
        try:
            price.plan(question.with_limits(choice))
        except UnboundedContribution:
            raise UnboundedContribution(
                "tune: the listed limits take the place of the question's limits, and one limit "
                "is missing. List all: tune({'max_groups': [3], 'max_rows_per_group': [1, 10]})."
            ) from None


def _check(question: Question) -> None:
    """Refuse a question whose errors the listed limits do not decide.
    Errors: UnsupportedOperation.
    """
    if question.open_bounds or question.narrowing:
        raise UnsupportedOperation(
            "tune: errors depend on the bounds; say bounds=(0, 100) in the question, without "
            "narrow=True."
        )
    if any(aggregate.limits.typed for _, aggregate in question.aggregates):
        raise UnsupportedOperation(
            "tune: a column has limits of its own, and the listed ones are tried for all columns. "
            "Leave its limits out."
        )


def _table(
    question: Question, limits: Sequence[Limits], errors: Sequence[Mapping[str, float]]
) -> pl.DataFrame:
    limit_columns = {n: pl.Series([getattr(x, n) for x in limits], dtype=pl.Int64) for n in _NAMES}
    nonempty = {n: column for n, column in limit_columns.items() if column.is_not_null().any()}
    return pl.DataFrame(
        {**nonempty, **{f"{o.name}_error": [e[o.name] for e in errors] for o in question.outputs}}
    )


def _choices(grid: object) -> list[Limits]:
    """Every combination of the limits listed. Errors: InvalidArgument."""
    if not isinstance(grid, Mapping) or not grid or set(grid) - set(_NAMES):
        raise InvalidArgument(
            f"tune: list limits to try, tune({{'max_rows': [1, 10, 100]}}); of {', '.join(_NAMES)}."
        )
    lists = []
    for name, values in grid.items():
        if not isinstance(values, (list, tuple, range)) or not values:
            raise InvalidArgument(
                f"tune: {name!r} is a list of limits to try, such as [1, 10, 100]."
            )
        lists.append([None if value is None else check_limit(value, name) for value in values])
    combinations = [
        Limits(**dict(zip(grid, choice, strict=True))) for choice in itertools.product(*lists)
    ]
    if len(combinations) > _MOST:
        raise InvalidArgument(
            f"tune: {len(combinations)} combinations of limits are too many to try; list fewer."
        )
    return combinations


def _description(
    question: Question, limits: Sequence[Limits], histogram_price: Price, release_price: Price
) -> dict[str, Any]:
    """The description under a name."""
    choices = [[getattr(x, n) for n in _NAMES] for x in limits]
    price = {
        "price": str(histogram_price.amount),
        "at": str(release_price.amount),
        "delta": str(release_price.delta),
        "noise": histogram_price.noise.value,
    }
    return {**described(question), "tune": choices, **price, **described_origin(question)}
