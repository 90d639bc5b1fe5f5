"""The price of one release in the terms of the budget it is paid from: (ε, δ), or (ρ, δ)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

from dpframe.budget.losses import Loss, exact, read_delta, read_rho
from dpframe.errors import DeltaRequired, InvalidArgument, InvalidPrice, UnsupportedOperation
from dpframe.plan.ask import Ask, Paid
from dpframe.release import calibrate
from dpframe.release.calibrate import Drawn, NoisePlan, noise_plan, read_price
from dpframe.release.concentrated import (
    epsilon_for_rho,
    gaussian_for_rho,
    laplace_for_epsilon,
    laplace_for_rho,
    rho_of,
    rho_of_choice,
)

__all__ = ["assembled", "check_noise", "described_price", "moved_measures", "priced"]

Terms = Literal["epsilon", "rho"]


def priced(
    ask: Ask, terms: Terms, *, epsilon: Any = None, delta: Any = None, rho: Any = None, noise: str = "auto"
) -> NoisePlan:
    """The noise that a price buys, and what it costs in the budget's terms.

    Input:  ask; terms of the budget; epsilon or rho, and delta, as typed; noise: "auto", "laplace", "gaussian"
    Bound:  in terms of ρ, a price ρ buys Gaussian or rounded Laplace noise of that ρ; a price ε buys rounded Laplace
            noise of that ε, which is charged what it costs in ρ. δ is the threshold's alone
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
    if ask.shape is not None:
        if epsilon is not None or noise == "laplace":
            raise UnsupportedOperation(
                "margins='measured' is paid from this budget with Gaussian noise: release(rho=0.01)."
            )
        noise = "gaussian"
    slack = read_delta(delta)
    moved = moved_measures(ask)
    added, ranks = [p for p in moved if p.measure.rank is None], [p for p in moved if p.measure.rank is not None]
    whole = sum((p.share for p in moved), Fraction(0))
    if rho is None:
        if noise == "gaussian":
            raise InvalidPrice(
                "Gaussian noise has no ε of its own; from this budget it is paid in ρ: release(rho=0.01)."
            )
        price = read_price(epsilon, delta).epsilon
        parts = {id(p): price * p.share / whole for p in moved}
        best = [laplace_for_epsilon(p, parts[id(p)]) for p in added]
        chosen = [calibrate._choice(p, parts[id(p)]) for p in ranks]
        cost = sum((rho_of(d) for d in best), sum((rho_of_choice(parts[id(p)]) for p in ranks), Fraction(0)))
    else:
        cost = read_rho(rho) if moved else Fraction(0)
        parts = {id(p): cost * p.share / whole for p in moved}
        laplace = [laplace_for_rho(p, parts[id(p)]) for p in added if noise != "gaussian"]
        gaussian = [gaussian_for_rho(p, parts[id(p)]) for p in added if noise != "laplace"]
        best = min((plan for plan in (laplace, gaussian) if plan), key=calibrate._spread, default=[])
        chosen = [calibrate._choice(p, epsilon_for_rho(parts[id(p)])) for p in ranks]
    plan = assembled(ask, [*best, *chosen], slack)
    return replace(plan, cost=Loss.charged_rho(cost, slack if ask.private_keys else Fraction(0)))


def check_noise(noise: object) -> None:
    """Errors: InvalidArgument, with the names there are."""
    if noise not in ("auto", "laplace", "gaussian"):
        raise InvalidArgument(f"noise={noise!r}: choose 'auto', 'laplace' or 'gaussian'.")


def moved_measures(ask: Ask) -> list[Paid]:
    """The measures that one unit can change: the others take no share and no noise."""
    return [p for p in ask.paid if p.measure.sensitivity.l0 and p.share]


def assembled(ask: Ask, drawn: Sequence[Drawn], delta: Fraction) -> NoisePlan:
    """A noise plan from the noise of the measures that one unit can change; δ is the threshold's, and nothing else's.

    Errors: DeltaRequired for keys found in the data with δ = 0
    """
    if ask.private_keys and delta == 0:
        raise DeltaRequired(
            f"The keys of {', '.join(map(repr, ask.by))} are found in the data, so a rare key is released with some "
            "small probability: release(..., delta=1e-6). Or list them: group_by(..., keys=[...])."
        )
    still = [Drawn(p, "none", 0.0) for p in ask.paid if not p.measure.sensitivity.l0]
    ordered = tuple(sorted([*drawn, *still], key=lambda d: ask.paid.index(d.paid)))
    decided_by = next((p for p in ask.paid if ask.threshold and p.measure.key == ask.threshold.key), None)
    threshold = calibrate._threshold(decided_by, ordered, delta) if decided_by else None
    return NoisePlan(ordered, threshold, decided_by, Loss(0, 0), ask.shape)


def described_price(plan: NoisePlan, price: Mapping[str, Any], noise: str) -> dict[str, Any]:
    """What was offered and the noise that it buys, as JSON, for the name of a release. Scales to six digits."""
    offered = {name: str(exact(value, name)) for name, value in price.items() if value is not None}
    scales = {", ".join(d.paid.names): f"{d.family} {d.scale:.6g}" for d in plan.drawn}
    return {"price": offered, "noise": noise, "scales": scales, "threshold": plan.threshold}
