"""The price of one release in the terms of the budget it is paid from, (ε, δ) or (ρ, δ), and the noise it buys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from dpframe.budget import Loss, exact, read_delta, read_epsilon, read_rho
from dpframe.errors import DeltaRequired, InvalidPrice, UnsupportedOperation
from dpframe.plan import Ask, Marginals
from dpframe.release.pricing.calibrate import (
    NoisePlan,
    Part,
    assembled,
    check_noise,
    choice_of,
    gaussians_of,
    laplace_of,
    laplaces_of,
    moved_measures,
    parted,
    pieces,
    thresholded,
    ways,
    worth,
)
from dpframe.release.pricing.zcdp import drawn_for_rho, laplace_for_epsilon, rho_of, rho_of_choice
from dpframe.theory.formulas.loss import rho_within

__all__ = ["Price", "Terms", "described_price", "noise_plan", "priced", "read_price"]

Terms = Literal["epsilon", "rho"]


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


def noise_plan(ask: Ask, price: Price, noise: str = "auto") -> NoisePlan:
    """Split a price over an ask's measures and calibrate the noise of each.

    Input:  ask; price; noise: "laplace", "gaussian", or "auto" for the one with the smaller standard deviations
    Output: NoisePlan; its cost is at most the price, and δ that nothing uses is not charged
    Bound:  measure i has ε_i = ε · share_i / Σ shares, and the ε_i add up. Laplace: scale l1_i / ε_i; a sum and its
            count may be one mechanism of ε_i + ε_j, see `theory.formulas.sensitivity.pairs`. Ranks: by permute-and-flip, see `rank_scale`;
            or, where there is a δ and it is less noise, with all else as parts of one ρ, see `_concentrated`.
            Gaussian: all additive measures together have the sum of their ε_i, and are one mechanism with
            μ² = Σ (l2_i / σ_i)², whose analytic profile at that sum is at most δ. Keys found in the data: by the
            optimal rule of ε_i and δ_t, see `selection_scale`; or by a threshold, so that a group of one unit's own is
            kept with probability at most δ_t over all its groups. The rest of δ is the Gaussian's; where the threshold
            is on a Gaussian number they share it, see `threshold_beside_noise`. A measure that no unit can change takes
            no share and no noise
    Source: Dwork and Roth 2014, theorems 3.6 and 3.16; Balle and Wang 2018, arXiv:1805.06530, theorem 8;
            Desfontaines et al. 2020, arXiv:2006.03684, for keys
    Errors: InvalidArgument for an unknown noise; DeltaRequired
    """
    check_noise(noise)
    noise = _kind(ask, noise)
    if noise == "gaussian" and price.delta == 0:
        raise DeltaRequired("Gaussian noise needs a δ above 0: release(epsilon=..., delta=1e-6).")
    moved = moved_measures(ask)
    whole = sum((p.epsilon_share for p in moved), Fraction(0))
    parts = [(p, price.epsilon * p.epsilon_share / whole) for p in moved]
    tried = ways(parts, noise, normal=price.delta > 0)
    plans = [_planned(ask, price, parts, normal, selects) for normal, selects in tried]
    if price.delta and noise != "laplace" and any(p.measure.chosen for p in moved):
        plans += [_concentrated(ask, price, parts, normal, selects) for normal, selects in tried]
    return min(plans, key=worth)


def _planned(ask: Ask, price: Price, parts: Sequence[Part], normal: bool, selects: bool) -> NoisePlan:
    """The noise plan of one way to spend a price that is split."""
    added, chosen = parted(parts, selects=selects)
    choices = [choice_of(p, epsilon) for p, epsilon in chosen]
    if normal:
        together = sum((epsilon for _, epsilon in added), Fraction(0))
        weighted = [(p, p.share) for p, _ in added if p.share]
        if ask.private_keys:
            plan = thresholded(ask, weighted, choices, (price.epsilon, together, price.delta))
            if plan is not None:
                return plan
        slack = price.delta / 2 if ask.private_keys else price.delta
        drawn = gaussians_of(weighted, together, slack)
    else:
        drawn = laplaces_of([(p, epsilon) for p, epsilon in added if p.epsilon_share], laplace_of)
    delta = price.delta if normal or ask.private_keys else Fraction(0)
    cost = Loss.charged(price.epsilon if parts else Fraction(0), delta)
    return assembled(ask, [*drawn, *choices], price.delta / 2 if normal else price.delta, cost)


def _concentrated(ask: Ask, price: Price, parts: Sequence[Part], normal: bool, selects: bool) -> NoisePlan:
    """The same of one way, in ρ: where choices are made in many groups, their squares add up to less.

    Bound:  all parts together are ρ-zero-concentrated, with the ρ of (ε, δ), or of (ε, δ/2) where keys take the other
            half: a mechanism that is so but with probability δ/2 is (ε, δ)-private
    Source: Bun, Steinke 2016, arXiv:1605.02065, for composition; `zcdp_to_epsilon`
    """
    slack = price.delta / 2 if ask.private_keys else price.delta
    rho = rho_within(price.epsilon, slack)
    drawn = drawn_for_rho([(p, rho * part / price.epsilon) for p, part in parts if part], normal, selects)
    return assembled(ask, drawn, slack, Loss.charged(price.epsilon, price.delta))


def priced(
    ask: Ask, terms: Terms, *, epsilon: Any = None, delta: Any = None, rho: Any = None, noise: str = "auto"
) -> NoisePlan:
    """The noise that a price buys, and what it costs in the budget's terms.

    Input:  ask; terms of the budget; epsilon or rho, and delta, as typed; noise: "auto", "laplace", "gaussian"
    Bound:  in terms of ρ, a price ρ buys Gaussian or rounded Laplace noise of that ρ; a price ε buys rounded Laplace
            noise of that ε, which is charged what it costs in ρ. Choices for a ρ are made by the exponential mechanism,
            or by permute-and-flip where that misses by less; those for an ε by permute-and-flip, and cost
            `choices_rho`. δ is that of keys alone
    Errors: InvalidPrice, InvalidArgument, DeltaRequired
    """
    if terms == "epsilon":
        if rho is not None:
            raise InvalidPrice(
                "This budget counts ε and δ: release(epsilon=..., delta=...), not rho=. A budget in ρ is "
                "dp.Budget(rho=...)."
            )
        return noise_plan(ask, read_price(epsilon, delta), noise)
    if (rho is None) == (epsilon is None):
        raise InvalidPrice(
            "Say what the release may cost: release(rho=0.01). This budget counts ρ; release(epsilon=0.1) buys Laplace "
            "noise and is charged its ρ."
        )
    check_noise(noise)
    noise = _kind(ask, noise)
    if ask.shape is not None or isinstance(ask, Marginals):
        if epsilon is not None or noise == "laplace":
            what = "marginals are" if ask.shape is None else "margins='measured' is"
            raise UnsupportedOperation(f"{what} paid from this budget with Gaussian noise: release(rho=0.01).")
        noise = "gaussian"
    slack = read_delta(delta)
    moved = [p for p in moved_measures(ask) if p.share]
    whole = sum((p.share for p in moved), Fraction(0))
    for_keys = slack if ask.private_keys else Fraction(0)
    if rho is None:
        if noise == "gaussian":
            raise InvalidPrice(
                "Gaussian noise has no ε of its own; from this budget it is paid in ρ: release(rho=0.01)."
            )
        price = read_price(epsilon, delta).epsilon
        added, chosen = parted([(p, price * p.share / whole) for p in moved], selects=True)
        drawn = [laplace_for_epsilon(p, part) for p, part in added]
        choices = [choice_of(p, part) for p, part in chosen]
        cost = sum((rho_of_choice(part, pieces(p)) for p, part in chosen), sum(map(rho_of, drawn), Fraction(0)))
        return assembled(ask, [*drawn, *choices], slack, Loss.charged_rho(cost, for_keys))
    cost = read_rho(rho) if moved else Fraction(0)
    parts = [(p, cost * p.share / whole) for p in moved]
    paid = Loss.charged_rho(cost, for_keys)
    plans = [
        assembled(ask, drawn_for_rho(parts, normal, selects), slack, paid)
        for normal, selects in ways(parts, noise, normal=True)
    ]
    return min(plans, key=worth)


def _kind(ask: Ask, noise: str) -> str:
    """The noise that was typed, or the only one there is a proof for."""
    if not isinstance(ask, Marginals):
        return noise
    if noise == "laplace":
        raise UnsupportedOperation("marginals are measured with Gaussian noise: release(epsilon=..., delta=1e-6).")
    return "gaussian"


def described_price(plan: NoisePlan, price: Mapping[str, Any], noise: str) -> dict[str, Any]:
    """What was offered and the noise that it buys, as JSON, for the name of a release. Scales to six digits."""
    offered = {name: str(exact(value, name)) for name, value in price.items() if value is not None}
    scales = {", ".join(d.paid.names): f"{d.family} {d.scale:.6g}" for d in plan.drawn}
    return {"price": offered, "noise": noise, "scales": scales, "threshold": plan.threshold}
