"""Queries that are fixed together: priced before any of them runs, split, and released as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import polars as pl

from dpframe.budget import Loss, exact, read_delta, read_rho
from dpframe.errors import InvalidArgument, InvalidPrice, UnsupportedOperation
from dpframe.plan import BATCH, Ask, Habits, Marginals, render_text
from dpframe.release.accuracy import check_ci, read_ci
from dpframe.release.pricing import (
    Drawn,
    NoisePlan,
    Part,
    Price,
    assembled,
    check_noise,
    choice_of,
    drawn_for_rho,
    gaussians_of,
    joined,
    laplace_for_epsilon,
    laplace_of,
    laplaces_of,
    largest_parts,
    moved_measures,
    parted,
    pieces,
    read_price,
    ways,
    worth,
)
from dpframe.release.publish import Release, noise_table
from dpframe.release.run import Account, settled
from dpframe.theory.formulas.loss import rho_within

__all__ = ["Batch", "batch_of"]


@dataclass(frozen=True, repr=False)
class Batch(Habits):
    """Queries with their noise and what they cost together. Nothing has been read and nothing paid.

    `cost` is the loss that `release` will charge, once for all of them.
    """

    cost: Loss
    _asks: tuple[Ask, ...] = field(repr=False)
    _plans: tuple[NoisePlan, ...] = field(repr=False)
    _account: Account = field(repr=False)
    _typed: tuple[dict[str, Any], str] = field(repr=False)
    _ci: float | None = field(repr=False)
    _habits = BATCH

    @property
    def noise(self) -> pl.DataFrame:
        """One row per noisy measure: query (its place), column, aggregate, mechanism, scale, threshold."""
        tables = [
            noise_table(ask.outputs, plan).select(pl.lit(i).alias("query"), pl.all())
            for i, (ask, plan) in enumerate(zip(self._asks, self._plans, strict=True))
        ]
        return pl.concat(tables)

    def release(self, name: str | None = None, *, refresh: bool = False) -> list[Release]:
        """Pay once, then answer every query, in order. With a name, the stored answers when it was released before.

        Errors: as `Query.release`
        """
        price, noise = self._typed
        questions = list(zip(self._asks, self._plans, strict=True))
        said: dict[str, Any] = {"name": name, "refresh": refresh, "batch": True}
        answers: list[Release] = settled(questions, self._account, self.cost, price, noise, **said)
        return answers if self._ci is None else [answer.with_ci(self._ci) for answer in answers]

    def __reduce__(self) -> Any:
        raise UnsupportedOperation("A batch cannot be pickled or copied out: the copy would hold raw rows.")

    def __repr__(self) -> str:
        table = self.noise
        rows = [
            tuple("" if x is None else f"{x:g}" if isinstance(x, float) else str(x) for x in r) for r in table.rows()
        ]
        return f"Batch of {len(self._asks)} at {self.cost}, not released:\n{render_text(table.columns, rows)}"


def batch_of(
    asks: Sequence[Ask],
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

    Input:  asks; the account; epsilon and delta, or rho and delta, for all together; noise as in a release; shares: a
            weight for each query, equal by default; ci: as in a release
    Bound:  Laplace: the ε_i add up; from a budget of privacy loss distributions they are instead as large as their
            joint distribution allows at (ε, δ). Gaussian: all measures of all queries are one mechanism, whose profile
            at ε is at most δ; in ρ, the ρ_i add up, and so they do in the ρ of (ε, δ), which is tried where there are
            choices. Keys found in the data take half of δ beside a mechanism that needs
            δ, and all of it otherwise, in equal parts for each query that has them
    Errors: InvalidArgument, InvalidPrice, DeltaRequired
    """
    check_noise(noise)
    if epsilon is None and rho is None:
        raise InvalidPrice(
            "Say what the batch may cost: "
            f"budget.plan([...], {'rho=0.1' if account.terms == 'rho' else 'epsilon=1.0, delta=1e-6'})."
        )
    asks = [replace(ask if ci is None else ask.with_ci(read_ci(ci))) for ask in asks]  # named twice, it is two
    if any(ask.shape is not None for ask in asks):
        raise UnsupportedOperation("budget.plan: release a crosstab with margins='measured' by itself.")
    if any(isinstance(ask, Marginals) for ask in asks):
        raise UnsupportedOperation("budget.plan: marginals share their noise; release them by themselves.")
    if any(ask.undecided for ask in asks):
        raise UnsupportedOperation(
            "budget.plan: limits that are chosen inside a release (dp.Auto) need one of their own."
        )
    if ci is not None:
        for ask in asks:
            check_ci(ci, ask.by, ask.outputs, ask.layout)
    weights = _weights(asks, shares)
    paying = [(p, w, sum(q.share for q in moved_measures(a))) for a, w in weights for p in moved_measures(a) if p.share]
    parts = [(p, w * p.share / whole) for p, w, whole in paying]
    found = sum(ask.private_keys for ask in asks)
    if account.terms == "rho":
        if epsilon is not None or rho is None:
            raise InvalidPrice("A batch from this budget is paid in ρ: budget.plan([...], rho=0.1).")
        whole, slack = read_rho(rho), read_delta(delta)
        cost = Loss.charged_rho(whole if parts else Fraction(0), slack if found else Fraction(0))
        tried = [(drawn, cost, slack) for drawn in _ways_in_rho(parts, whole, noise)]
    else:
        if rho is not None:
            raise InvalidPrice(
                "A batch from this budget is paid in ε and δ: budget.plan([...], epsilon=1, delta=1e-6)."
            )
        price = read_price(epsilon, delta)
        half = price.delta / 2 if found else price.delta
        tried = []
        spent = price.epsilon if parts else Fraction(0)
        joint = account.accountant == "pld"
        for drawn, uses in _ways_in_epsilon(parts, Price(price.epsilon, half), noise, joint=joint):
            cost = Loss.charged(spent, price.delta if uses or found else Fraction(0))
            tried.append((drawn, cost, half if uses else price.delta))
    offers = [(cost, _plans(asks, drawn, for_keys, found, cost)) for drawn, cost, for_keys in tried]
    cost, plans = min(offers, key=lambda offer: math.fsum(map(worth, offer[1])))
    typed = {"epsilon": epsilon, "delta": delta, "rho": rho}
    return Batch(cost, tuple(asks), tuple(plans), account, (typed, noise), ci)


def _plans(asks: Sequence[Ask], drawn: Sequence[Drawn], delta: Fraction, found: int, cost: Loss) -> list[NoisePlan]:
    """Each query with its noise; those whose keys are found in the data share δ."""
    part = delta / found if found else Fraction(0)
    return [assembled(ask, [d for d in drawn if any(d.paid is p for p in ask.paid)], part, cost) for ask in asks]


def _weights(asks: Sequence[Ask], shares: Sequence[float] | None) -> list[tuple[Ask, Fraction]]:
    """Each query with its part of the price; a query that no unit can change takes none."""
    if not asks:
        raise InvalidArgument("budget.plan([...]): give at least one query.")
    if shares is not None and (isinstance(shares, (str, bytes)) or not isinstance(shares, Sequence)):
        raise InvalidArgument("budget.plan: shares= is a list of numbers, one for each query.")
    given = [Fraction(1)] * len(asks) if shares is None else [exact(share, "share") for share in shares]
    if len(given) != len(asks) or any(share <= 0 for share in given):
        raise InvalidArgument("budget.plan: shares= has a number above 0 for each query.")
    paying = [(ask, share) for ask, share in zip(asks, given, strict=True) if moved_measures(ask)]
    whole = sum((share for _, share in paying), Fraction(0))
    return [(ask, share / whole) for ask, share in paying]


def _ways_in_rho(parts: Sequence[Part], rho: Fraction, noise: str) -> list[list[Drawn]]:
    """What a ρ buys, for each way to spend it."""
    priced = [(p, rho * part) for p, part in parts]
    return [drawn_for_rho(priced, normal, selects) for normal, selects in ways(parts, noise, normal=True)]


def _ways_in_epsilon(parts: Sequence[Part], price: Price, noise: str, *, joint: bool) -> list[tuple[list[Drawn], bool]]:
    """What a price buys, for each way to spend it, and whether the noise uses the price's δ."""
    if noise == "gaussian" and price.delta == 0:
        raise InvalidPrice("Gaussian noise needs a δ above 0: budget.plan([...], epsilon=..., delta=1e-6).")
    tried: list[tuple[list[Drawn], bool]] = []
    for normal, selects in ways(parts, noise, normal=price.delta > 0):
        added, chosen = parted(parts, selects=selects)
        factor, uses, laplace = price.epsilon, normal, laplace_of
        if not normal and joint and price.delta and parts:
            pure = [price.epsilon * part / pieces(p) for p, part in chosen for _ in range(pieces(p))]
            noisy = [price.epsilon * part for _, part in joined(added)]
            factor *= largest_parts(noisy, pure, price.epsilon, price.delta)
            uses, laplace = True, laplace_for_epsilon
        together = sum((price.epsilon * part for _, part in added), Fraction(0))
        drawn = (
            gaussians_of(added, together, price.delta)
            if normal
            else laplaces_of([(p, factor * part) for p, part in added], laplace)
        )
        tried.append(([*drawn, *(choice_of(p, factor * part) for p, part in chosen)], uses))
        if price.delta and noise != "laplace" and any(p.measure.chosen for p, _ in parts):
            rho = rho_within(price.epsilon, price.delta)
            tried.append((drawn_for_rho([(p, rho * part) for p, part in parts], normal, selects), True))
    return tried
