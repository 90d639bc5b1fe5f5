"""The division of a price over the totals of a release, and the noise that each part buys.

A price is spent in one of several ways: with Laplace or Gaussian noise, with or without the optimal
rule for keys. Each way is an `Allocation`. The one with the least noise is taken (`log_noise`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from dpframe.budget import Loss
from dpframe.errors import DeltaRequired
from dpframe.plan import Allotment, Question
from dpframe.release.pricing.bought_noise import (
    ALONE,
    PricedTotal,
    best_choice_for_gdp,
    best_choice_for_rho,
    choice_of,
    gaussian_for_rho,
    gaussians_of,
    join_pairs,
    laplace_for_rho,
    laplaces_of,
    pieces,
    pure_of,
    rounded_laplace_of,
)
from dpframe.release.pricing.choice_mechanisms import Chooses
from dpframe.release.pricing.keys import (
    finds_keys,
    joint_threshold,
    least_number,
    log_units_needed,
    of_the_rest,
    rule,
)
from dpframe.release.pricing.mechanisms import NoNoise
from dpframe.release.pricing.noise import Noise, NoiseKind, NoisePlan, Rule
from dpframe.release.pricing.pld import largest_parts
from dpframe.release.pricing.together import measured_together
from dpframe.theory.formulas.error import Source, estimators
from dpframe.theory.formulas.loss import (
    gdp_to_pure,
    rho_within,
)


@dataclass(frozen=True)
class Allocation:
    """One way to spend a price: the noise of each total, and the δ that is
    left for keys found in the data.

    `rule` says how losses add up, and `uses_delta` whether the noise needs the δ of the price.
    """

    noises: tuple[Noise, ...]
    key_delta: Fraction
    rule: Rule = Rule.EPSILON
    uses_delta: bool = False


def moved_totals(question: Question) -> list[Allotment]:
    """The totals that one unit can change. The others take no part of the price, and no noise."""
    return [allotment for allotment in question.allotments if allotment.total.sensitivity.l0]


def parts_of(question: Question, share: Fraction = Fraction(1)) -> list[PricedTotal]:
    """The totals of a question with their parts of a price, of which the question has a share."""
    assert not question.in_rounds, "the noise of rounds is bought by the kind of answer"
    totals = moved_totals(question)
    pure = sum((allotment.epsilon_share for allotment in totals), Fraction(0)) or Fraction(1)
    weights = sum((allotment.share for allotment in totals), Fraction(0)) or Fraction(1)
    return [
        PricedTotal(
            allotment,
            share * allotment.epsilon_share / pure,
            share * allotment.share / weights,
            id(question),
        )
        for allotment in totals
    ]


def split(
    parts: Sequence[PricedTotal], *, selects: bool
) -> tuple[list[PricedTotal], list[PricedTotal]]:
    """The totals that noise is added to, and the totals by which something is chosen.

    If the optimal rule `selects` keys, its total is a choice.
    """
    halves: tuple[list[PricedTotal], list[PricedTotal]] = ([], [])
    for part in parts:
        halves[part.allotment.total.chosen or (selects and finds_keys(part.allotment))].append(part)
    return halves


def _ways(
    parts: Sequence[PricedTotal], noise: NoiseKind, *, normal: bool
) -> list[tuple[bool, bool]]:
    """The ways to try: whether noise is Gaussian (if it can be), and whether
    the optimal rule finds the keys.

    The optimal rule is the best pure rule, but Gaussian noise grows more slowly with the number of
    groups of one unit.
    """
    ways = []
    for selects in (True, False) if any(finds_keys(part.allotment) for part in parts) else (True,):
        numbers, _ = split(parts, selects=selects)
        if selects and (noise.pure or not numbers):
            ways.append((False, True))
        if numbers and noise.normal and normal:
            ways.append((True, selects))
    return ways


def allocate_epsilon(
    parts: Sequence[PricedTotal],
    epsilon: Fraction,
    delta: Fraction,
    noise: NoiseKind,
    *,
    finds: bool,
    joint: bool = False,
) -> list[Allocation]:
    """The ways to spend (ε, δ).

    Input:  parts of one release; noise; finds: whether keys are found in the data (they take half
            of δ if the noise needs δ, and all of it otherwise); joint: whether losses are added up
            as distributions
    Bound:  Laplace: part i has ε_i = ε · part, and the ε_i add up: scale l1_i / ε_i. K-norm noise
            of ε_i has the scale of `formulas.loss.window_scale`. A sum and its count may be one
            mechanism of ε_i + ε_j, see `formulas.sensitivity.pairs`. Joint: all ε_i are larger by
            the factor that `largest_parts` proves for (ε, δ). Gaussian: all totals with noise have
            the sum of their ε_i, and are one mechanism with μ² = Σ (l2_i / σ_i)², whose analytic
            profile at that sum is at most δ. Choices: see `choice_of`. If something is chosen, all
            parts are also tried as parts of the ρ of (ε, δ): a mechanism that is
            ρ-zero-concentrated but with probability δ/2 is (ε, δ)-private
    Source: Dwork and Roth 2014, theorems 3.6 and 3.16; Balle and Wang 2018, arXiv:1805.06530,
            theorem 8; Bun and Steinke 2016, arXiv:1605.02065
    """
    slack = delta / 2 if finds else delta
    allocations, ways = [], _ways(parts, noise, normal=delta > 0)
    for normal, selects in ways:
        numbers, selections = split(parts, selects=selects)
        factor, together, rule = epsilon, ALONE, Rule.GAUSSIAN if normal else Rule.EPSILON
        laplace: Callable[[Allotment, Fraction], Noise] = partial(pure_of, noise)
        if not normal and joint and slack and parts and noise.joins:
            rule, laplace = Rule.DISTRIBUTIONS, rounded_laplace_of
        if not normal and noise.joins:
            sets = noise is NoiseKind.AUTO and rule is Rule.EPSILON
            numbers, selections, together = measured_together(
                numbers, selections, epsilon, laplace, sets=sets
            )
        if rule is Rule.DISTRIBUTIONS:
            factor *= _joint_factor(numbers, selections, epsilon, slack)
        if normal:
            whole = sum((epsilon * part.epsilon for part in numbers), Fraction(0))
            noises = gaussians_of(
                [(p.allotment, p.weight) for p in numbers if p.weight], whole, slack, noise
            )
        else:
            noises = laplaces_of(
                [(p.allotment, factor * p.epsilon) for p in numbers if p.epsilon], laplace, together
            )
        choices = [choice_of(part.allotment, factor * part.epsilon) for part in selections]
        uses = rule is not Rule.EPSILON
        allocations.append(Allocation((*noises, *choices), slack if uses else delta, rule, uses))
    if delta and noise.normal and any(part.allotment.total.chosen for part in parts):
        rho = rho_within(epsilon, slack)
        allocations += [
            Allocation(_for_rho(parts, rho, way, noise), slack, Rule.RHO, True) for way in ways
        ]
    return allocations


def _joint_factor(
    numbers: Sequence[PricedTotal],
    selections: Sequence[PricedTotal],
    epsilon: Fraction,
    delta: Fraction,
) -> Fraction:
    """The factor by which each part of ε may be larger under joint
    accounting; see `largest_parts`.
    """
    counts = [(part, pieces(part.allotment)) for part in selections]
    pure = [epsilon * part.epsilon / count for part, count in counts for _ in range(count)]
    noisy = [
        epsilon * part
        for _, part in join_pairs([(p.allotment, p.epsilon) for p in numbers if p.epsilon])
    ]
    return largest_parts(noisy, pure, epsilon, delta)


def allocate_rho(
    parts: Sequence[PricedTotal], rho: Fraction, delta: Fraction, noise: NoiseKind
) -> list[Allocation]:
    """The ways to spend a ρ, with a δ for keys that are found in the data.
    The ρ_i of the parts add up.

    Source: Bun and Steinke 2016, arXiv:1605.02065
    """
    ways = _ways(parts, noise, normal=True)
    return [Allocation(_for_rho(parts, rho, way, noise), delta, Rule.RHO) for way in ways]


def allocate_gdp(
    parts: Sequence[PricedTotal], mu_squared: Fraction, delta: Fraction, noise: NoiseKind
) -> list[Allocation]:
    """The ways to spend a μ², with a δ for keys. Laplace noise gets an ε by `gdp_to_pure`."""
    allocations = []
    for normal, selects in _ways(parts, noise, normal=True):
        numbers, selections = split([part for part in parts if part.weight], selects=selects)
        if normal:
            noises = [
                gaussian_for_rho(p.allotment, mu_squared * p.weight / 2, noise) for p in numbers
            ]
        else:
            noises = [
                pure_of(noise, p.allotment, gdp_to_pure(mu_squared * p.weight)) for p in numbers
            ]
        choices = [
            best_choice_for_gdp(part.allotment, mu_squared * part.weight) for part in selections
        ]
        allocations.append(Allocation((*noises, *choices), delta, Rule.MU_SQUARED))
    return allocations


def _for_rho(
    parts: Sequence[PricedTotal], rho: Fraction, way: tuple[bool, bool], noise: NoiseKind
) -> tuple[Noise, ...]:
    """The noise and the choices that each part of a ρ buys, in one of the `_ways`."""
    normal, selects = way
    numbers, selections = split([part for part in parts if part.weight], selects=selects)
    one_of = gaussian_for_rho if normal else laplace_for_rho
    choices = [best_choice_for_rho(part.allotment, rho * part.weight) for part in selections]
    return (*(one_of(part.allotment, rho * part.weight, noise) for part in numbers), *choices)


def planned(question: Question, allocation: Allocation, cost: Loss) -> NoisePlan:
    """The noise plan of a question from one way to spend a price.

    Errors: DeltaRequired for keys found in the data with δ = 0
    """
    delta = (
        delta_of_keys(question, allocation.key_delta)
        if question.private_keys
        else allocation.key_delta
    )
    asked = {id(allotment) for allotment in question.allotments}
    noises = [noise for noise in allocation.noises if id(noise.allotment) in asked]
    still = [
        Noise(allotment, NoNoise())
        for allotment in question.allotments
        if not allotment.total.sensitivity.l0
    ]
    rest = [
        of_the_rest(p, noises)
        for p in question.allotments
        if p.total.collects and p.total.sensitivity.l0
    ]
    order = {id(allotment): number for number, allotment in enumerate(question.allotments)}
    # that of suppressed groups costs nothing in addition
    squares = [noise.mu_squared for noise in noises]
    mu_squared = (
        None if None in squares else sum((square or Fraction(0) for square in squares), Fraction(0))
    )
    in_order = tuple(sorted([*noises, *still, *rest], key=lambda noise: order[id(noise.allotment)]))
    decided_by = next(
        (
            p
            for p in question.allotments
            if question.threshold and p.total.key == question.threshold.key
        ),
        None,
    )
    if decided_by is None:
        return NoisePlan(
            in_order, None, None, cost, question.shape, mu_squared=mu_squared, rule=allocation.rule
        )
    (threshold, start), least = (
        rule(decided_by, in_order, delta),
        least_number(question, decided_by),
    )
    found = threshold + least, decided_by, cost, question.shape, start, least, mu_squared
    return NoisePlan(in_order, *found, allocation.rule)


def delta_of_keys(question: Question, delta: Fraction) -> Fraction:
    """The δ for keys found in the data. Errors: DeltaRequired where it is 0."""
    if delta == 0:
        verb = question.verb.replace(", {limit}", "").removesuffix(")")
        keys = "keys=[...]" if len(question.by) == 1 else "keys={...}"
        line = f"{verb.partition('(')[0]}(..., {keys})" if "keys=" in verb else f"{verb}, {keys})"
        raise DeltaRequired(
            f"The keys of {', '.join(map(repr, question.by))} are found in the data, so a rare key "
            "is released with some small probability: release(..., delta=1e-6). Or list them: "
            f"{line}."
        )
    return delta


def joint_plan(
    question: Question,
    parts: Sequence[PricedTotal],
    allocation: Allocation,
    epsilon: Fraction,
    delta: Fraction,
) -> NoisePlan | None:
    """A plan of Gaussian noise whose keys are found by a threshold on one of its
    numbers; None where there is none.

    Input:  the question with its parts; a Gaussian allocation of (ε, δ)
    Bound:  the noise uses 19/20 of δ, and T is as low as `threshold_beside_noise` allows. The total
            of suppressed groups would reveal groups of one unit alone, so a question with that
            total has no such plan
    """
    choices = [noise for noise in allocation.noises if not noise.adds]
    chosen = {id(noise.allotment) for noise in choices}
    members = [part for part in parts if part.weight and id(part.allotment) not in chosen]
    decided_by = next(
        (
            p.allotment
            for p in members
            if question.threshold and p.allotment.total.key == question.threshold.key
        ),
        None,
    )
    if decided_by is None or any(allotment.total.collects for allotment in question.allotments):
        return None
    together = sum((epsilon * part.epsilon for part in members), Fraction(0))
    noises = gaussians_of(
        [(part.allotment, part.weight) for part in members],
        together,
        delta * Fraction(19, 20),
        NoiseKind.GAUSSIAN,
    )
    threshold = joint_threshold(decided_by, noises, together, delta)
    if threshold is None:
        return None
    both = replace(allocation, noises=(*noises, *choices), key_delta=delta)
    plan = planned(question, both, Loss.charged(epsilon, delta))
    return replace(plan, threshold=threshold + plan.least, rule=Rule.BESIDE)


# How noisy a plan is


def log_noise(plan: NoisePlan) -> float:
    """Geometric mean of the columns' noise, as a logarithm. Smaller is better.

    It is a sum over released columns. Each term is the logarithm of the standard deviation of added
    noise, or of the error of a choice (`Noise.miss`). If a column has several totals, each has an
    equal weight, and together they weigh
    1. A number that decides which keys are released counts as T + s²/T in place of its standard
       deviation s, with T
    from `log_units_needed`. That is about the mean square error over keys whose sizes follow n^-2,
    where a missing key has an error of its full size. If the number itself is not released, it
    counts as T.
    """
    numbers = [
        n for n in plan.noises if n.adds and not n.exact and n.allotment is not plan.decided_by
    ]
    selections = [n for n in plan.noises if isinstance(n.mechanism, Chooses)]
    choices = math.fsum(float(n.allotment.columns) * math.log(n.miss) for n in selections)
    if plan.decided_by is None:
        return _published_noise(numbers, plan.shape) + choices
    keys, total = log_units_needed(plan), plan.decided_by.total
    unit = float(total.unit * total.sensitivity.exact_linf)
    noisy = 0.0 if plan.decided_by.hidden else plan.of(total).deviation / unit * math.exp(-keys)
    return _published_noise(numbers, plan.shape) + choices + keys + math.log1p(noisy**2)


def _published_noise(noises: Sequence[Noise], shape: tuple[int, int] | None) -> float:
    """Sum of the logarithms of the standard deviations of what is published.

    For a crosstab with measured margins these are the cells and margins after they are fitted to
    each other.
    """
    if shape is None:
        return math.fsum(
            float(noise.allotment.columns) * math.log(max(noise.deviation, 5e-324))
            for noise in noises
        )
    variances: dict[Source, float] = {n.total.merged or "cells": n.deviation**2 for n in noises}
    return math.fsum(map(math.log, estimators(*shape, variances).variances(variances)))
