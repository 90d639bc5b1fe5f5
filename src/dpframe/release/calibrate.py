"""From a price to noise: how ε and δ are split over the noisy totals of an ask, and what the release then costs.

Everything here depends on the ask and the price alone, never on rows, so the same numbers serve `accuracy` before a
release, the release itself, and its report.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dpframe.budget.losses import Loss, read_delta, read_epsilon
from dpframe.errors import DeltaRequired, InvalidArgument, InvalidPrice
from dpframe.plan.ask import Ask, Paid
from dpframe.plan.measures import Measure
from dpframe.theory.maps import calibration
from dpframe.theory.maps.margins import Source, estimators
from dpframe.theory.maps.ranks import rank_scale

__all__ = ["Drawn", "Family", "NoisePlan", "Price", "noise_plan", "read_price"]

Family = Literal["none", "laplace", "discrete_laplace", "gaussian", "permute_and_flip"]


@dataclass(frozen=True)
class Price:
    """What the user offers: ε > 0 and δ >= 0, exact."""

    epsilon: Fraction
    delta: Fraction


def read_price(epsilon: object, delta: object, rho: object = None) -> Price:
    """A price from what was typed. Errors: InvalidPrice."""
    if rho is not None:
        raise InvalidPrice("A basic budget is paid in ε and δ: release(epsilon=..., delta=...), not rho=.")
    if epsilon is None:
        raise InvalidPrice("Say what the release may cost: release(epsilon=0.1).")
    return Price(read_epsilon(epsilon), read_delta(delta))


@dataclass(frozen=True)
class Drawn:
    """The noise of one measure: its family and its scale in units of the measure's integer."""

    paid: Paid
    family: Family
    scale: float

    @property
    def deviation(self) -> float:
        """Standard deviation (column unit), of the real noise before rounding to the grid."""
        spread = {"none": 0.0, "gaussian": 1.0}.get(self.family, math.sqrt(2))
        return spread * self.scale * float(self.paid.measure.unit)

    def error(self, alpha: float) -> float:
        """An error (column unit) that the noise exceeds with probability at most alpha."""
        if self.family == "none":
            return 0.0
        if self.family == "permute_and_flip":
            return math.nan  # how far a rank is from a value depends on the data
        return float(calibration.noise_error(self.family, self.scale, alpha) * self.paid.measure.unit)


@dataclass(frozen=True)
class NoisePlan:
    """The noise of every measure of an ask, the threshold for keys found in the data, and the price of it all."""

    drawn: tuple[Drawn, ...]
    threshold: int | None
    decided_by: Paid | None
    cost: Loss
    shape: tuple[int, int] | None = None  # of a crosstab whose margins are measured

    @property
    def reconciled(self) -> bool:
        """Whether margins have noise of their own, so that cells and margins share what each says."""
        return any(d.paid.measure.merged for d in self.drawn)

    def of(self, measure: Measure) -> Drawn:
        """The noise of a measure."""
        return next(d for d in self.drawn if d.paid.measure.key == measure.key)


def noise_plan(ask: Ask, price: Price, noise: str = "auto") -> NoisePlan:
    """Split a price over an ask's measures and calibrate the noise of each.

    Input:  ask; price; noise: "laplace", "gaussian", or "auto" for the one with the smaller standard deviations
    Output: NoisePlan; its cost is at most the price, and δ that nothing uses is not charged
    Bound:  measure i has ε_i = ε · share_i / Σ shares, and the ε_i add up. Laplace: scale l1_i / ε_i. Ranks: by
            permute-and-flip, see `rank_scale`. Gaussian: all additive measures together have the sum of their ε_i, and
            are one mechanism with μ² = Σ (l2_i / σ_i)², whose analytic profile at that sum is at most δ. Keys found in
            the data: a group of one unit's own is kept with probability at most δ_t over all its groups, and the rest
            of δ is the Gaussian's. A measure that no unit can change takes no share and no noise
    Source: Dwork and Roth 2014, theorems 3.6 and 3.16; Balle and Wang 2018, arXiv:1805.06530, theorem 8;
            Desfontaines et al. 2020, arXiv:2006.03684, for thresholds
    Errors: InvalidArgument for an unknown noise; DeltaRequired
    """
    if noise not in ("auto", "laplace", "gaussian"):
        raise InvalidArgument(f"noise={noise!r}: choose 'auto', 'laplace' or 'gaussian'.")
    if ask.private_keys and price.delta == 0:
        raise DeltaRequired(
            f"The keys of {', '.join(map(repr, ask.by))} are found in the data, so a rare key is released with some "
            "small probability: release(epsilon=..., delta=1e-6). Or list them: group_by(..., keys=[...])."
        )
    if noise == "gaussian" and price.delta == 0:
        raise DeltaRequired("Gaussian noise needs a δ above 0: release(epsilon=..., delta=1e-6).")
    moved = [p for p in ask.paid if p.measure.sensitivity.l0]
    whole = sum((p.epsilon_share for p in moved), Fraction(0))
    epsilons = {id(p): price.epsilon * p.epsilon_share / whole for p in moved}
    added = [p for p in moved if p.measure.rank is None]
    plans = []
    if added and noise != "gaussian":
        plans.append([_laplace(p, epsilons[id(p)]) for p in added if p.epsilon_share])
    if added and noise != "laplace" and price.delta > 0:
        together = sum((epsilons[id(p)] for p in added), Fraction(0))
        slack = price.delta / 2 if ask.private_keys else price.delta
        plans.append(_gaussian([p for p in added if p.share], together, slack))
    best = min(plans, key=lambda plan: _published(plan, ask.shape), default=[])
    chosen = [_choice(p, epsilons[id(p)]) for p in moved if p.measure.rank is not None]
    still = [Drawn(p, "none", 0.0) for p in ask.paid if p not in moved]
    drawn = tuple(sorted([*best, *chosen, *still], key=lambda d: ask.paid.index(d.paid)))
    normal = any(d.family == "gaussian" for d in best)
    share = price.delta / 2 if normal else price.delta  # of δ, for the threshold
    decided_by = next((p for p in ask.paid if ask.threshold and p.measure.key == ask.threshold.key), None)
    threshold = _threshold(decided_by, drawn, share) if decided_by else None
    delta = price.delta if normal or ask.private_keys else Fraction(0)
    cost = Loss.charged(price.epsilon if moved else Fraction(0), delta)
    return NoisePlan(drawn, threshold, decided_by, cost, ask.shape)


def _spread(drawn: Sequence[Drawn]) -> float:
    """The product of the standard deviations, as a logarithm: what "less noise" means for several columns."""
    return math.fsum(math.log(d.deviation) for d in drawn)


def _published(drawn: Sequence[Drawn], shape: tuple[int, int] | None) -> float:
    """The same, for a crosstab with measured margins of the cells and margins that it publishes."""
    if shape is None:
        return _spread(drawn)
    measured: dict[Source, float] = {d.paid.measure.merged or "cells": d.deviation**2 for d in drawn}
    return math.fsum(map(math.log, estimators(*shape, measured).variances(measured)))


def _laplace(paid: Paid, epsilon: Fraction) -> Drawn:
    scale = calibration.laplace_scale(paid.measure.sensitivity.exact_l1, epsilon)
    return Drawn(paid, "discrete_laplace" if paid.measure.unit == 1 else "laplace", scale)


def _choice(paid: Paid, epsilon: Fraction) -> Drawn:
    measure = paid.measure
    assert measure.rank is not None
    scale = rank_scale(measure.rank, measure.sensitivity, epsilon)
    return Drawn(paid, "permute_and_flip", calibration.laplace_scale(scale, 1))


def _gaussian(moved: Sequence[Paid], epsilon: Fraction, delta: Fraction) -> list[Drawn]:
    lengths = [p.measure.sensitivity.l2_squared for p in moved]
    scales = calibration.gaussian_scales(lengths, [p.share for p in moved], epsilon, delta)
    return [Drawn(paid, "gaussian", scale) for paid, scale in zip(moved, scales, strict=True)]


def _threshold(decided_by: Paid, drawn: Sequence[Drawn], delta: Fraction) -> int:
    """The smallest T such that keeping a group when its noisy count is at least T costs at most delta.

    One unit alone in a group puts at most linf there, and it has at most l0 such groups.
    """
    noise = next(d for d in drawn if d.paid is decided_by)
    bound = decided_by.measure.sensitivity
    assert noise.family in ("laplace", "discrete_laplace", "gaussian")  # a count that one unit always moves
    return calibration.threshold(delta, bound.l0, noise.family, noise.scale, int(bound.exact_linf))
