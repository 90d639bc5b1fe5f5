"""Batches: queries that are priced together before any of them runs, and released as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import polars as pl

from dpframe.budget import Loss, Terms, typed_number
from dpframe.errors import InvalidArgument, InvalidPrice, UnsupportedOperation
from dpframe.plan import BATCH, Question, render_text
from dpframe.release.accuracy import check_ci, read_ci
from dpframe.release.kinds import answer_kind
from dpframe.release.paying import Account, spent_by
from dpframe.release.pricing import (
    Allocation,
    EpsilonPrice,
    NoisePlan,
    Price,
    check_shared,
    log_noise,
    moved_totals,
    parts_of,
    planned,
    read_price,
)
from dpframe.release.run import settled
from dpframe.release.shown import Release, noise_table
from dpframe.usage import PLANNED, Hints, explains


@explains("plan.{}({})", PLANNED)
@dataclass(frozen=True, repr=False)
class Batch(Hints):
    """Queries with their noise and what they cost together. Nothing has been read and nothing paid.

    `cost` is the loss that `release` will charge, once for all of them.
    """

    cost: Loss
    _asks: tuple[Question, ...] = field(repr=False)
    _plans: tuple[NoisePlan, ...] = field(repr=False)
    _account: Account = field(repr=False)
    _price: Price = field(repr=False)
    _ci: float | None = field(repr=False)
    _habits = BATCH

    @property
    def noise(self) -> pl.DataFrame:
        """One row per noisy total: query (its place), column,
        aggregate, mechanism, scale, threshold.
        """
        tables = [
            noise_table(question.outputs, plan).select(pl.lit(i).alias("query"), pl.all())
            for i, (question, plan) in enumerate(zip(self._asks, self._plans, strict=True))
        ]
        return pl.concat(tables)

    def release(
        self,
        name: str | None = None,
        *,
        refresh: bool = False,
        spender: str | None = None,
        purpose: str | None = None,
    ) -> list[Release]:
        """Pay once, then answer every query, in order.
        With a name, the stored answers when it was released before.

        Input:  name, refresh, spender, purpose as in `Query.release`
        Errors: as `Query.release`
        """
        questions = list(zip(self._asks, self._plans, strict=True))
        options: dict[str, Any] = {"name": name, "refresh": refresh, "batch": True}
        account = spent_by(self._account, spender, purpose)
        answers: list[Release] = settled(questions, account, self.cost, self._price, **options)
        return answers if self._ci is None else [answer.with_ci(self._ci) for answer in answers]

    def __reduce__(self) -> Any:
        raise UnsupportedOperation(
            "A batch cannot be pickled or copied out: the copy would hold raw rows."
        )

    def __repr__(self) -> str:
        table = render_text(self.noise.columns, self.noise.rows())
        return f"Batch of {len(self._asks)} at {self.cost}, not released:\n{table}"


def batch_of(
    asks: Sequence[Question],
    account: Account,
    *,
    epsilon: Any = None,
    delta: Any = None,
    rho: Any = None,
    noise: str = "auto",
    shares: Sequence[float] | None = None,
    ci: float | None = None,
) -> Batch:
    """Split a price over queries and calibrate the noise of all of them as one release.

    Input:  questions; the account; epsilon and delta, or rho and delta, for all together; noise as
            in a release; shares: a weight for each query, equal by default; ci: as in a release
    Bound:  Laplace: the ε_i add up. A budget of privacy loss distributions instead allows ε_i as
            large as their joint distribution permits at (ε, δ). Gaussian: the totals of all queries
            are one mechanism, whose profile at ε is at most δ. In ρ, the ρ_i add up. If there are
            choices, the ρ of (ε, δ) is tried too, and there the ρ_i add up as well. Keys found in
            the data take half of δ if a mechanism needs δ, and all of it otherwise, in equal parts
            for each query that has them
    Errors: InvalidArgument, InvalidPrice, DeltaRequired
    """
    if epsilon is None and rho is None:
        raise InvalidPrice(
            "Say what the batch may cost: budget.plan([...], "
            f"{'rho=0.1' if account.terms is Terms.RHO else 'epsilon=1.0, delta=1e-6'})."
        )
    asks = [
        (question if ci is None else question.with_ci(read_ci(ci))).apart() for question in asks
    ]
    if any(question.shape is not None for question in asks):
        raise UnsupportedOperation(
            "budget.plan: release a crosstab with margins='measured' by itself."
        )
    for question in asks:
        if words := answer_kind(question).alone:
            raise UnsupportedOperation(f"budget.plan: {words}")
    if any(question.undecided for question in asks):
        raise UnsupportedOperation(
            "budget.plan: limits that are chosen inside a release (dp.Auto) need one of their own."
        )
    if ci is not None:
        for question in asks:
            check_ci(ci, question.by, question.outputs, question.layout)
    parts = [
        part for question, share in _weights(asks, shares) for part in parts_of(question, share)
    ]
    finding = sum(question.private_keys for question in asks)
    price = _read_price(account.terms, epsilon, delta, rho, noise)
    for question in asks:
        check_shared(question, price.noise)
    allocations = price.allocations(parts, finds=finding > 0, joint=account.accountant == "pld")
    costs = [(price.cost(allocation, asks), allocation) for allocation in allocations]
    offers = [(cost, _plans(asks, allocation, finding, cost)) for cost, allocation in costs]
    cost, plans = min(offers, key=lambda offer: math.fsum(map(log_noise, offer[1])))
    return Batch(cost, tuple(asks), tuple(plans), account, price, ci)


def _read_price(terms: Terms, epsilon: object, delta: object, rho: object, noise: object) -> Price:
    """The price of a batch, from what was typed. Errors: InvalidPrice."""
    if terms is Terms.RHO and epsilon is not None:
        raise InvalidPrice("A batch from this budget is paid in ρ: budget.plan([...], rho=0.1).")
    if terms is Terms.EPSILON and rho is not None:
        raise InvalidPrice(
            "A batch from this budget is paid in ε and δ: budget.plan([...], epsilon=1, "
            "delta=1e-6)."
        )
    price = read_price(terms, epsilon=epsilon, delta=delta, rho=rho, noise=noise)
    if isinstance(price, EpsilonPrice) and not price.noise.pure and price.delta == 0:
        raise InvalidPrice(
            "Gaussian noise needs a δ above 0: budget.plan([...], epsilon=..., delta=1e-6)."
        )
    return price


def _plans(
    asks: Sequence[Question], allocation: Allocation, finding: int, cost: Loss
) -> list[NoisePlan]:
    """Each query with its noise; those whose keys are found in the data share δ."""
    part = allocation.key_delta / finding if finding else Fraction(0)
    return [planned(question, replace(allocation, key_delta=part), cost) for question in asks]


def _weights(
    asks: Sequence[Question], shares: Sequence[float] | None
) -> list[tuple[Question, Fraction]]:
    """Each query with its part of the price; a query that no unit can change takes none."""
    if not asks:
        raise InvalidArgument("budget.plan([...]): give at least one query.")
    if shares is not None and (
        isinstance(shares, (str, bytes)) or not isinstance(shares, Sequence)
    ):
        raise InvalidArgument("budget.plan: shares= is a list of numbers, one for each query.")
    weights = (
        [Fraction(1)] * len(asks)
        if shares is None
        else [typed_number(share, "share") for share in shares]
    )
    if len(weights) != len(asks) or any(share <= 0 for share in weights):
        raise InvalidArgument("budget.plan: shares= has a number above 0 for each query.")
    paying = [
        (question, share)
        for question, share in zip(asks, weights, strict=True)
        if moved_totals(question)
    ]
    whole = sum((share for _, share in paying), Fraction(0))
    return [(question, share / whole) for question, share in paying]
