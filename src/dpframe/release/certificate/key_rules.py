"""Rules by which groups were found in the data, as a certificate says them, and the δ of each."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpframe.noise import ball, family_tail, gaussian_tail, root_up
from dpframe.release.certificate.rationals import certified_up, rounded_up, text
from dpframe.release.pricing import NoisePlan, Rule, spread_of
from dpframe.theory.formulas.loss import Spread, partition_delta, threshold_delta


def key_rule(plan: NoisePlan, number: int, by: str, mechanism: str) -> tuple[dict[str, Any], Fraction]:
    """The rule of a plan whose groups are found in the data, and its δ; 0 where δ is shared with the noise.

    Input:  number: the place of the question; by: the id of the total that decides; mechanism: the id of its noise
    Bound:  see `theory.formulas.loss`: `partition_delta` for thresholds, `selection_scale` for the optimal rule,
            `round_thresholds` for rounds
    """
    assert plan.decided_by is not None
    assert plan.threshold is not None
    noise = plan.of(plan.decided_by.total)
    rule, own, delta = _optimal(plan) if plan.start is not None else ("threshold", dict[str, Any](), Fraction(0))
    if noise.mechanism.law == "gaussian_rounds":
        rule, delta = "rounds", _rounds_delta(plan)
    elif plan.start is None:
        spread = spread_of(plan.decided_by)
        alone = {"groups": spread.groups, "most": spread.most, "total": spread.total, "each": spread.least}
        own = {"threshold": plan.threshold, "alone": alone}
        delta = Fraction(0) if plan.rule is Rule.BESIDE else _threshold_delta(plan, spread)
    shown = None if plan.rule is Rule.BESIDE and rule == "threshold" else text(rounded_up(delta))
    facts = {"question": number, "rule": rule, "by": by, "mechanism": mechanism, "least": plan.least, "delta": shown}
    return {**facts, **own}, rounded_up(delta)


def _optimal(plan: NoisePlan) -> tuple[str, dict[str, Any], Fraction]:
    """The optimal rule: its start, and the δ of all groups together."""
    assert plan.start is not None
    assert plan.decided_by is not None
    start, groups = plan.start, plan.decided_by.total.sensitivity.l0
    delta = start if groups == 1 else certified_up(lambda: -(groups * (-ball(start)).log1p()).expm1())
    return "optimal", {"start": text(start)}, delta


def _threshold_delta(plan: NoisePlan, spread: Spread) -> Fraction:
    """The δ of a threshold on a noisy number, for the worst way to be alone in groups."""
    assert plan.decided_by is not None
    assert plan.threshold is not None
    noise, above = plan.of(plan.decided_by.total), plan.threshold - plan.least

    def tail(size: int) -> Fraction:
        return Fraction(family_tail(noise.added.family, noise.scale, above - size))

    return max(partition_delta(parts, tail) for parts in spread.worst())


def _rounds_delta(plan: NoisePlan) -> Fraction:
    """The δ of the thresholds of all rounds."""
    assert plan.decided_by is not None
    noise, bound = plan.of(plan.decided_by.total), plan.decided_by.total.sensitivity
    thresholds = noise.mechanism.parameters["thresholds"]
    assert isinstance(thresholds, tuple)
    delta = Fraction(0)
    for j, threshold in enumerate(thresholds, 1):
        reach = threshold - j * bound.exact_linf - Fraction(j, 2)
        tail = gaussian_tail(root_up(Fraction(noise.scale) ** 2 * j), reach)
        delta += Fraction(threshold_delta(tail, bound.l0))
    return delta
