"""The division of a price over the totals of a release, and the noise that each part buys.

A price is spent in one of several ways: with Laplace or Gaussian noise, with or without the optimal rule for keys. Each
way is an `Allocation`. The one with the least noise is taken (`log_noise`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from dpframe.budget import Loss
from dpframe.errors import DeltaRequired
from dpframe.noise import float_up
from dpframe.plan import Allotment, Question
from dpframe.release.pricing.keys import finds_keys, joint_threshold, least_number, log_units_needed, of_the_rest, rule
from dpframe.release.pricing.mechanisms import (
    Chooses,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    JointLaplace,
    Laplace,
    NoNoise,
    PairedLaplace,
    PermuteAndFlip,
    TruncatedGeometric,
)
from dpframe.release.pricing.noise import Noise, NoiseKind, NoisePlan, Rule
from dpframe.release.pricing.pld import largest_parts
from dpframe.release.pricing.shared_noise import elliptic_of, k_norm_of, shared_normal, smaller_of
from dpframe.theory.formulas.error import Source, estimators
from dpframe.theory.formulas.loss import (
    calibration,
    choices_rho,
    count_scale,
    count_scale_rho,
    gdp_to_pure,
    pure_to_gdp,
    range_to_gdp,
    rank_scale,
    rank_scale_rho,
    rho_within,
    selection_scale,
)
from dpframe.theory.formulas.sensitivity import SharedNoise, pair_scale
from dpframe.theory.formulas.sensitivity import rounding as paired_rounding

Together = Mapping[int, frozenset[int]]
_NONE: Together = {}


@dataclass(frozen=True)
class PricedTotal:
    """A total, with its part of a price.

    `epsilon` is its part where ε is divided over Laplace noise and choices. `weight` is its part where ρ, or the μ² of
    one Gaussian mechanism, is divided. The parts of a release add up to 1 in either. `question` tells the questions of
    a batch apart.
    """

    allotment: Allotment
    epsilon: Fraction
    weight: Fraction
    question: int = 0


@dataclass(frozen=True)
class Allocation:
    """One way to spend a price: the noise of each total, and the δ that is left for keys found in the data.

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
        PricedTotal(allotment, share * allotment.epsilon_share / pure, share * allotment.share / weights, id(question))
        for allotment in totals
    ]


def split(parts: Sequence[PricedTotal], *, selects: bool) -> tuple[list[PricedTotal], list[PricedTotal]]:
    """The totals that noise is added to, and the totals by which something is chosen.

    If the optimal rule `selects` keys, its total is a choice.
    """
    halves: tuple[list[PricedTotal], list[PricedTotal]] = ([], [])
    for part in parts:
        halves[part.allotment.total.chosen or (selects and finds_keys(part.allotment))].append(part)
    return halves


def pieces(allotment: Allotment) -> int:
    """Number of choices of equal price that a total pays for; see `choices_rho`."""
    return allotment.total.sensitivity.l0 if allotment.hidden else allotment.total.choices


def _ways(parts: Sequence[PricedTotal], noise: NoiseKind, *, normal: bool) -> list[tuple[bool, bool]]:
    """The ways to try: whether noise is Gaussian (if it can be), and whether the optimal rule finds the keys.

    The optimal rule is the best pure rule, but Gaussian noise grows more slowly with the number of groups of one unit.
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

    Input:  parts of one release; noise; finds: whether keys are found in the data (they take half of δ if the noise
            needs δ, and all of it otherwise); joint: whether losses are added up as distributions
    Bound:  Laplace: part i has ε_i = ε · part, and the ε_i add up: scale l1_i / ε_i. K-norm noise of ε_i has the
            scale of `formulas.loss.window_scale`. A sum and its count may be one mechanism of ε_i + ε_j, see
            `formulas.sensitivity.pairs`. Joint: all ε_i are larger by the factor that `largest_parts` proves for (ε,
            δ). Gaussian: all totals with noise have the sum of their ε_i, and are one mechanism with μ² = Σ (l2_i /
            σ_i)², whose analytic profile at that sum is at most δ. Choices: see `choice_of`. If something is chosen,
            all parts are also tried as parts of the ρ of (ε, δ): a mechanism that is ρ-zero-concentrated but with
            probability δ/2 is (ε, δ)-private
    Source: Dwork and Roth 2014, theorems 3.6 and 3.16; Balle and Wang 2018, arXiv:1805.06530, theorem 8; Bun and
            Steinke 2016, arXiv:1605.02065
    """
    slack = delta / 2 if finds else delta
    allocations, ways = [], _ways(parts, noise, normal=delta > 0)
    for normal, selects in ways:
        numbers, selections = split(parts, selects=selects)
        factor, together, rule = epsilon, _NONE, Rule.GAUSSIAN if normal else Rule.EPSILON
        laplace: Callable[[Allotment, Fraction], Noise] = partial(_pure_of, noise)
        if not normal and joint and slack and parts and noise is not NoiseKind.K_NORM:
            rule, laplace = Rule.DISTRIBUTIONS, rounded_laplace_of
        if not normal and noise is not NoiseKind.K_NORM:
            numbers, selections, together = measured_together(numbers, selections, epsilon, laplace)
        if rule is Rule.DISTRIBUTIONS:
            factor *= _joint_factor(numbers, selections, epsilon, slack)
        if normal:
            whole = sum((epsilon * part.epsilon for part in numbers), Fraction(0))
            noises = gaussians_of([(p.allotment, p.weight) for p in numbers if p.weight], whole, slack, noise)
        else:
            noises = laplaces_of([(p.allotment, factor * p.epsilon) for p in numbers if p.epsilon], laplace, together)
        choices = [choice_of(part.allotment, factor * part.epsilon) for part in selections]
        uses = rule is not Rule.EPSILON
        allocations.append(Allocation((*noises, *choices), slack if uses else delta, rule, uses))
    if delta and noise.normal and any(part.allotment.total.chosen for part in parts):
        rho = rho_within(epsilon, slack)
        allocations += [Allocation(_for_rho(parts, rho, way, noise), slack, Rule.RHO, True) for way in ways]
    return allocations


def _joint_factor(
    numbers: Sequence[PricedTotal], selections: Sequence[PricedTotal], epsilon: Fraction, delta: Fraction
) -> Fraction:
    """The factor by which each part of ε may be larger under joint accounting; see `largest_parts`."""
    counts = [(part, pieces(part.allotment)) for part in selections]
    pure = [epsilon * part.epsilon / count for part, count in counts for _ in range(count)]
    noisy = [epsilon * part for _, part in _join_pairs([(p.allotment, p.epsilon) for p in numbers if p.epsilon])]
    return largest_parts(noisy, pure, epsilon, delta)


def allocate_rho(parts: Sequence[PricedTotal], rho: Fraction, delta: Fraction, noise: NoiseKind) -> list[Allocation]:
    """The ways to spend a ρ, with a δ for keys that are found in the data. The ρ_i of the parts add up.

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
            noises = [_gaussian_for_rho(p.allotment, mu_squared * p.weight / 2, noise) for p in numbers]
        else:
            noises = [_pure_of(noise, p.allotment, gdp_to_pure(mu_squared * p.weight)) for p in numbers]
        choices = [_best_choice_for_gdp(part.allotment, mu_squared * part.weight) for part in selections]
        allocations.append(Allocation((*noises, *choices), delta, Rule.MU_SQUARED))
    return allocations


def _for_rho(
    parts: Sequence[PricedTotal], rho: Fraction, way: tuple[bool, bool], noise: NoiseKind
) -> tuple[Noise, ...]:
    """The noise and the choices that each part of a ρ buys, in one of the `_ways`."""
    normal, selects = way
    numbers, selections = split([part for part in parts if part.weight], selects=selects)
    one_of = _gaussian_for_rho if normal else _laplace_for_rho
    choices = [_best_choice_for_rho(part.allotment, rho * part.weight) for part in selections]
    return (*(one_of(part.allotment, rho * part.weight, noise) for part in numbers), *choices)


def planned(question: Question, allocation: Allocation, cost: Loss) -> NoisePlan:
    """The noise plan of a question from one way to spend a price.

    Errors: DeltaRequired for keys found in the data with δ = 0
    """
    delta = delta_of_keys(question, allocation.key_delta) if question.private_keys else allocation.key_delta
    asked = {id(allotment) for allotment in question.allotments}
    noises = [noise for noise in allocation.noises if id(noise.allotment) in asked]
    still = [Noise(allotment, NoNoise()) for allotment in question.allotments if not allotment.total.sensitivity.l0]
    rest = [of_the_rest(p, noises) for p in question.allotments if p.total.collects and p.total.sensitivity.l0]
    order = {id(allotment): number for number, allotment in enumerate(question.allotments)}
    squares = [noise.mu_squared for noise in noises]  # that of suppressed groups costs nothing in addition
    mu_squared = None if None in squares else sum((square or Fraction(0) for square in squares), Fraction(0))
    in_order = tuple(sorted([*noises, *still, *rest], key=lambda noise: order[id(noise.allotment)]))
    decided_by = next(
        (p for p in question.allotments if question.threshold and p.total.key == question.threshold.key), None
    )
    if decided_by is None:
        return NoisePlan(in_order, None, None, cost, question.shape, mu_squared=mu_squared, rule=allocation.rule)
    (threshold, start), least = rule(decided_by, in_order, delta), least_number(question, decided_by)
    found = threshold + least, decided_by, cost, question.shape, start, least, mu_squared
    return NoisePlan(in_order, *found, allocation.rule)


def delta_of_keys(question: Question, delta: Fraction) -> Fraction:
    """The δ for keys found in the data. Errors: DeltaRequired where it is 0."""
    if delta == 0:
        verb = question.verb.replace(", {limit}", "").removesuffix(")")
        keys = "keys=[...]" if len(question.by) == 1 else "keys={...}"
        line = f"{verb.partition('(')[0]}(..., {keys})" if "keys=" in verb else f"{verb}, {keys})"
        raise DeltaRequired(
            f"The keys of {', '.join(map(repr, question.by))} are found in the data, so a rare key is released with "
            f"some small probability: release(..., delta=1e-6). Or list them: {line}."
        )
    return delta


def joint_plan(
    question: Question, parts: Sequence[PricedTotal], allocation: Allocation, epsilon: Fraction, delta: Fraction
) -> NoisePlan | None:
    """A plan of Gaussian noise whose keys are found by a threshold on one of its numbers; None where there is none.

    Input:  the question with its parts; a Gaussian allocation of (ε, δ)
    Bound:  the noise uses 19/20 of δ, and T is as low as `threshold_beside_noise` allows. The total of suppressed
            groups would reveal groups of one unit alone, so a question with that total has no such plan
    """
    choices = [noise for noise in allocation.noises if not noise.adds]
    chosen = {id(noise.allotment) for noise in choices}
    members = [part for part in parts if part.weight and id(part.allotment) not in chosen]
    decided_by = next(
        (p.allotment for p in members if question.threshold and p.allotment.total.key == question.threshold.key), None
    )
    if decided_by is None or any(allotment.total.collects for allotment in question.allotments):
        return None
    together = sum((epsilon * part.epsilon for part in members), Fraction(0))
    noises = gaussians_of(
        [(part.allotment, part.weight) for part in members], together, delta * Fraction(19, 20), NoiseKind.GAUSSIAN
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

    It is a sum over released columns. Each term is the logarithm of the standard deviation of added noise, or of the
    error of a choice (`Noise.miss`). If a column has several totals, each has an equal weight, and together they weigh
    1. A number that decides which keys are released counts as T + s²/T in place of its standard deviation s, with T
    from `log_units_needed`. That is about the mean square error over keys whose sizes follow n^-2, where a missing key
    has an error of its full size. If the number itself is not released, it counts as T.
    """
    numbers = [n for n in plan.noises if n.adds and not n.exact and n.allotment is not plan.decided_by]
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

    For a crosstab with measured margins these are the cells and margins after they are fitted to each other.
    """
    if shape is None:
        return math.fsum(float(noise.allotment.columns) * math.log(max(noise.deviation, 5e-324)) for noise in noises)
    variances: dict[Source, float] = {n.allotment.total.merged or "cells": n.deviation**2 for n in noises}
    return math.fsum(map(math.log, estimators(*shape, variances).variances(variances)))


# The mechanism of one total


def laplace_of(allotment: Allotment, epsilon: Fraction) -> Noise:
    """Laplace noise of ε on one total; on the unit grid it is discrete, which is the least noise there."""
    scale = calibration.laplace_scale(allotment.total.sensitivity.exact_l1, epsilon)
    return Noise(allotment, DiscreteLaplace(scale) if allotment.total.unit == 1 else Laplace(scale))


def _pure_of(noise: NoiseKind, allotment: Allotment, epsilon: Fraction) -> Noise:
    """Noise of a pure ε on one total: Laplace noise, or noise that groups share if it is typed or smaller."""
    if noise is NoiseKind.K_NORM:
        return k_norm_of(allotment, epsilon)
    alone = laplace_of(allotment, epsilon)
    return smaller_of(alone, epsilon) if noise is NoiseKind.AUTO else alone


def rounded_laplace_of(allotment: Allotment, epsilon: Fraction) -> Noise:
    """Rounded real Laplace noise of ε on one total.

    If losses are not counted in ε, it is used on the unit grid too. The discrete law costs more in ρ: as much as any
    mechanism of its ε, since its privacy loss is that of randomized response.
    """
    return Noise(allotment, Laplace(calibration.laplace_scale(allotment.total.sensitivity.exact_l1, epsilon)))


def _laplace_for_rho(allotment: Allotment, rho: Fraction, noise: NoiseKind) -> Noise:
    """Rounded Laplace noise of ρ on one total, or K-norm noise if that is typed."""
    if noise is NoiseKind.K_NORM:
        return k_norm_of(allotment, epsilon_for_rho(rho))
    return Noise(allotment, Laplace(calibration.laplace_scale_rho(allotment.total.sensitivity.exact_l1, rho)))


def _gaussian_for_rho(allotment: Allotment, rho: Fraction, noise: NoiseKind) -> Noise:
    """Gaussian noise of ρ on one total: σ² >= l2² / 2ρ, or in place of l2² the square of `shared_normal`."""
    shared = shared_normal(allotment, noise)
    square = shared.own_square if shared else allotment.total.sensitivity.l2_squared
    return _normal(allotment, calibration.gaussian_scale_rho(l2_squared=square, rho=rho), shared)


def gaussians_of(
    parts: Sequence[tuple[Allotment, Fraction]], epsilon: Fraction, delta: Fraction, noise: NoiseKind
) -> list[Noise]:
    """Gaussian noise on several totals, one mechanism of (ε, δ) together; each with its weight in μ².

    Bound:  see `calibration.gaussian_scales`. Noise that cells share is no worse than a Gaussian mechanism whose μ² is
            `own_square` over the variance of the own noise, so that square stands for l2² there
    """
    shares = [shared_normal(allotment, noise) for allotment, _ in parts]
    squares = [
        shared.own_square if shared else allotment.total.sensitivity.l2_squared
        for (allotment, _), shared in zip(parts, shares, strict=True)
    ]
    scales = calibration.gaussian_scales(squares, [weight for _, weight in parts], epsilon, delta)
    return [
        _normal(allotment, scale, shared) for (allotment, _), scale, shared in zip(parts, scales, shares, strict=True)
    ]


def _normal(allotment: Allotment, scale: float, shared: SharedNoise | None) -> Noise:
    """Normal noise whose own part has this deviation."""
    return Noise(allotment, Gaussian(scale)) if shared is None else elliptic_of(allotment, scale, shared)


def _join_pairs(parts: Sequence[tuple[Allotment, Fraction]]) -> list[tuple[Allotment, Fraction]]:
    """Parts of a price for Laplace noise. The sum of a pair also has the part of its count."""
    by_id = {id(allotment): part for allotment, part in parts}
    beside = {
        id(allotment.beside): id(allotment)
        for allotment, _ in parts
        if allotment.beside is not None and id(allotment.beside) in by_id
    }
    extra = {of: by_id[count] for count, of in beside.items()}
    return [(allotment, part + extra.get(id(allotment), 0)) for allotment, part in parts if id(allotment) not in beside]


def laplaces_of(
    parts: Sequence[tuple[Allotment, Fraction]],
    one_of: Callable[[Allotment, Fraction], Noise],
    together: Together = _NONE,
) -> list[Noise]:
    """Laplace noise on several totals, each for its part of ε, by `one_of`; see `pair_scale` for pairs.

    Input:  together: for the id of each sum that is measured with more than its count, the ids of these totals
    """
    noises: list[Noise] = []
    for allotment, part in _join_pairs(parts):
        if id(allotment) in together:
            noises += _joint_laplaces_of(allotment, part, together[id(allotment)])
        elif allotment.beside is None:
            noises.append(one_of(allotment, part))
        else:
            noises += _pair_of(allotment, one_of(allotment, part).scale)
    return noises


def _pair_of(allotment: Allotment, scale: float, joint: Fraction = Fraction(0)) -> list[Noise]:
    """The noise of a sum and of the count beside it; see `pair_scale`."""
    assert allotment.beside is not None
    of_sum, of_count = pair_scale(scale, allotment.weight)
    count = PairedLaplace(of_count, allotment.weight, of_count=True)
    return [Noise(allotment, PairedLaplace(of_sum, joint=joint)), Noise(allotment.beside, count)]


def _joint_laplaces_of(allotment: Allotment, epsilon: Fraction, members: Container[int]) -> list[Noise]:
    """The noise of ε on a sum, the count beside it, and those of its rows and its sum from 0 that are `members`.

    Bound:  let J be `joint_l1`, and h the weight of the pair. The missing values, and h·V + S and h·V - S divided by
            2h, move by at most J together. Each gets Laplace noise of scale J/ε, drawn for the pair as noise of scale
            2h·J/ε. The rows are the count and the missing values, so they have the noise of the count and one more.
            Rounding moves the number of missing values by half a unit, and the rows once more where they are whole. A
            sum S + c·V from 0 is half of (c/h + 1) times the first of the pair and (c/h - 1) times the second, so it
            costs nothing; for bounds that begin at 0, c = h and it is the first alone. Without the rows, J is the l1 of
            the count: see `paired_l1`
    Source: Dwork, McSherry, Nissim, Smith 2006; `theory.formulas.sensitivity.joint_l1`
    """
    rows, total, count = allotment.rows, allotment.sum, allotment.beside
    assert count is not None
    with_rows, weight = rows is not None and id(rows) in members, allotment.weight
    joint = allotment.joint * weight if with_rows else allotment.total.sensitivity.exact_l1
    scale = calibration.laplace_scale(joint, epsilon)
    noises = _pair_of(allotment, scale, joint)
    if rows is not None and with_rows:
        one = 2.0 ** (rows.total.fraction - count.total.fraction)
        slack = one * (paired_rounding(weight) + 0.5) + (0.5 if one < 1 else 0.0)
        law = JointLaplace(float_up(Fraction(scale) / weight) * one, (1.0, 1.0, 1.0), slack)
        noises.append(Noise(rows, law))
    if total is not None and id(total) in members:
        centre = abs(Fraction(total.total.added_up(0, 1), weight))
        larger, smaller = centre + 1, abs(centre - 1)
        slack = float(larger + smaller) / 4 + (0.5 if smaller else 0.0)
        ratios = (1.0, float(smaller / larger)) if smaller else (1.0,)
        noises.append(Noise(total, JointLaplace(scale * float(larger), ratios, slack)))
    return noises


def measured_together(
    numbers: Sequence[PricedTotal],
    selections: Sequence[PricedTotal],
    epsilon: Fraction,
    one_of: Callable[[Allotment, Fraction], Noise],
) -> tuple[list[PricedTotal], list[PricedTotal], Together]:
    """Parts of ε where a sum, its count and numbers beside them share one part, if none of them has more noise then.

    Input:  the parts of ε of totals with noise and of choices; ε; `one_of` as in `laplaces_of`
    Output: new parts with the same sum for each question, and `together` as for `laplaces_of`
    Bound:  they need the part at which each has the noise that its own part buys, which is less than their parts
            together. What is left over goes to what then has the least for its share (`filled`), so nothing has more
            noise than without this. All of it follows from the question and the price alone
    """
    bought = [p for p in numbers if p.epsilon]
    alone = laplaces_of([(p.allotment, epsilon * p.epsilon) for p in bought], one_of)
    deviations = {id(noise.allotment): noise.mechanism.deviation for noise in alone}
    parts = {id(p.allotment): p.epsilon for p in (*bought, *selections)}
    needed, wanted, together = dict(parts), dict(parts), dict[int, frozenset[int]]()
    for allotment in (p.allotment for p in bought if p.allotment.beside is not None):
        pair = id(allotment), id(allotment.beside)
        needed[pair[0]], wanted[pair[0]] = parts[pair[0]] + parts[pair[1]], max(parts[one] for one in pair)
        needed[pair[1]] = Fraction(0)
        more = [id(member) for member in (allotment.rows, allotment.sum) if id(member) in parts]
        for members in dict.fromkeys((frozenset(more), *(frozenset([one]) for one in more))):
            whole = parts[pair[0]] + parts[pair[1]] + sum((parts[one] for one in members), Fraction(0))
            joint = _joint_laplaces_of(allotment, epsilon * whole, members)
            ratio = max(n.mechanism.deviation / deviations[id(n.allotment)] for n in joint)
            if members and ratio < 1:
                needed[pair[0]], wanted[pair[0]] = whole * Fraction(ratio), max(parts[one] for one in (*pair, *members))
                needed |= dict.fromkeys(members, Fraction(0))
                together[pair[0]] = members
                break
    if not together:
        return list(numbers), list(selections), {}
    moved = dict[int, Fraction]()
    for question in {p.question for p in bought}:
        asked = [id(p.allotment) for p in (*bought, *selections) if p.question == question]
        whole = sum((parts[one] for one in asked), Fraction(0))
        moved |= filled({one: (needed[one], wanted[one]) for one in asked if needed[one]}, whole)
    new = [replace(p, epsilon=moved.get(id(p.allotment), Fraction(0))) for p in bought]
    return new, [replace(p, epsilon=moved.get(id(p.allotment), p.epsilon)) for p in selections], together


def filled(parts: Mapping[int, tuple[Fraction, Fraction]], whole: Fraction) -> dict[int, Fraction]:
    """Parts of a whole in proportion to what is wanted, but each at least what is needed.

    Input:  for each the least that it needs, which together are at most the whole, and the weight that is wanted
    Output: the parts, which add up to the whole, exactly

    >>> filled({1: (Fraction(1, 2), Fraction(1)), 2: (Fraction(1, 4), Fraction(1))}, Fraction(1))
    {1: Fraction(1, 2), 2: Fraction(1, 2)}
    """
    rising = dict(parts)
    while True:
        left = whole - sum((least for one, (least, _) in parts.items() if one not in rising), Fraction(0))
        level = left / sum((wanted for _, wanted in rising.values()), Fraction(0))
        above = [one for one, (least, wanted) in rising.items() if least > level * wanted]
        if not above:
            return {one: level * wanted if one in rising else least for one, (least, wanted) in parts.items()}
        rising = {one: part for one, part in rising.items() if one not in above}


def epsilon_for_rho(rho: Fraction, count: int = 1) -> Fraction:
    """An ε such that every mechanism of `count` choices of ε/count costs at most ρ: just below the largest.

    >>> 0.999999 < choices_rho(1, epsilon_for_rho(Fraction(1, 10))) * 10 <= 1
    True
    """
    low, high = Fraction(0), count + 2 * rho  # (1 + 2ρ)·tanh(1/2 + ρ) > ρ, for each of them
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if choices_rho(count, middle) <= rho else (low, middle)
    return low


def choice_for_rho(allotment: Allotment, rho: Fraction) -> Noise:
    """A choice of ρ by the exponential mechanism, see `rank_scale_rho` and `count_scale_rho`."""
    total = allotment.total
    if total.rank is None:
        scale = count_scale_rho(total.sensitivity, total.rounds, rho)
    else:
        scale = rank_scale_rho(total.rank, total.sensitivity, rho / total.choices)
    return Noise(allotment, Exponential(calibration.laplace_scale(scale, 1)), range_to_gdp(rho))


def choice_of(allotment: Allotment, epsilon: Fraction) -> Noise:
    """A choice of ε: by permute-and-flip, see `rank_scale` and `count_scale`; of keys, see `selection_scale`."""
    total, count = allotment.total, pieces(allotment)
    mu_squared = count * pure_to_gdp(epsilon / count)
    if allotment.hidden:
        mechanism = TruncatedGeometric(selection_scale(total.sensitivity.l0, epsilon))
        return Noise(allotment, mechanism, mu_squared)
    if total.rank is None:
        scale = count_scale(total.sensitivity, total.rounds, epsilon)
    else:
        scale = rank_scale(total.rank, total.sensitivity, epsilon / total.choices)
    return Noise(allotment, PermuteAndFlip(calibration.laplace_scale(scale, 1)), mu_squared)


def _best_choice_for_rho(allotment: Allotment, rho: Fraction) -> Noise:
    """The better choice of ρ. For keys there is only one; for large ρ it is permute-and-flip."""
    pure = choice_of(allotment, epsilon_for_rho(rho, pieces(allotment)))
    return pure if allotment.hidden else min(pure, choice_for_rho(allotment, rho), key=lambda noise: noise.miss)


def _best_choice_for_gdp(allotment: Allotment, mu_squared: Fraction) -> Noise:
    """The better choice of a μ². For keys there is only one; for large μ² it is permute-and-flip."""
    count = pieces(allotment)
    pure = choice_of(allotment, count * gdp_to_pure(mu_squared / count))
    exponential = choice_for_rho(allotment, mu_squared / range_to_gdp(Fraction(1)))
    return pure if allotment.hidden else min(pure, exponential, key=lambda noise: noise.miss)
