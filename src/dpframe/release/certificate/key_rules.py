"""Rules by which groups were found in the data, as a certificate says them, and the δ of each."""

from __future__ import annotations

from fractions import Fraction

from dpframe.fields import FieldDict
from dpframe.noise import ball, family_tail, gaussian_tail, root_up
from dpframe.release.certificate.rationals import certified_up, rounded_up, text
from dpframe.release.pricing import NoisePlan, Rule, spread_of
from dpframe.theory.formulas.loss import partition_delta, threshold_delta


def key_rule(plan: NoisePlan) -> tuple[FieldDict, Fraction]:
    """The rule that finds groups in the data, and its δ; 0 where δ is shared with the noise.

    Bound:  see `theory.formulas.loss`: `partition_delta` for thresholds, `selection_scale` for the
            optimal rule, `round_thresholds` for rounds
    """
    assert plan.decided_by is not None
    if plan.start is not None:
        own, delta = _optimal(plan)
    elif plan.of(plan.decided_by.total).mechanism.law == "gaussian_rounds":
        own, delta = {}, _rounds_delta(plan)
    else:
        shared = plan.rule is Rule.BESIDE
        own, delta = (
            {"threshold": plan.threshold},
            Fraction(0) if shared else _threshold_delta(plan),
        )
    shown = None if plan.rule is Rule.BESIDE and "threshold" in own else text(rounded_up(delta))
    return {"least": plan.least, "delta": shown, **own}, rounded_up(delta)


def _optimal(plan: NoisePlan) -> tuple[FieldDict, Fraction]:
    """The optimal rule: its start, and the δ of all groups together."""
    assert plan.start is not None
    assert plan.decided_by is not None
    start, groups = plan.start, plan.decided_by.total.sensitivity.l0
    delta = (
        start if groups == 1 else certified_up(lambda: -(groups * (-ball(start)).log1p()).expm1())
    )
    return {"start": text(start)}, delta


def _threshold_delta(plan: NoisePlan) -> Fraction:
    """The δ of a threshold on a noisy number, for the worst way to be alone in groups."""
    assert plan.decided_by is not None
    assert plan.threshold is not None
    noise, above = plan.of(plan.decided_by.total), plan.threshold - plan.least

    def tail(size: int) -> Fraction:
        return Fraction(family_tail(noise.added.family, noise.scale, above - size))

    return max(partition_delta(parts, tail) for parts in spread_of(plan.decided_by).worst())


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
