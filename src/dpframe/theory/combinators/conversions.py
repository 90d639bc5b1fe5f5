"""Conversions: state the loss of a measurement in another measure, for a larger population, or for a random sample."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeGuard

import numpy as np

from dpframe.errors import DomainMismatch, InvalidArgument, MetricMismatch
from dpframe.noise import ball, bernoulli, float_down, round_down, whole
from dpframe.noise import precision as at_precision
from dpframe.theory.datasets import Vector, relation_of
from dpframe.theory.exact import Real, exact, is_whole, upward
from dpframe.theory.formulas.loss import composition, curves
from dpframe.theory.formulas.loss import loss as privacy
from dpframe.theory.formulas.sensitivity import vectors as statistics
from dpframe.theory.framework import Function, Measurement
from dpframe.theory.spaces import (
    Approximate,
    MaxDivergence,
    Measure,
    Metric,
    PrivacyProfile,
    RenyiCurve,
    RenyiDivergence,
    SmoothedMaxDivergence,
    VectorDomain,
    ZeroConcentratedDivergence,
    grouped,
    probability,
)

Loss = Any  # see `Measure`
Stated = Any  # a Measurement, or a loss by itself
Pair = tuple[Loss, Loss]  # (ε, δ), exact or rounded up


def same_measure(measurement: object, measures: tuple[Measure, ...], name: str) -> Measurement:
    """Check that a measurement's output measure is one of `measures`. Errors: InvalidArgument, MetricMismatch."""
    if not isinstance(measurement, Measurement):
        raise InvalidArgument(f"{name}: {measurement!r} is not a measurement.")
    if measurement.output_measure not in measures:
        raise MetricMismatch(
            f"{name}: the output measure is {measurement.output_measure!r}; it converts from "
            f"{' or '.join(map(repr, measures))}."
        )
    return measurement


def _is_number(value: object) -> TypeGuard[Real]:
    return isinstance(value, int | float | Fraction | np.number) and not isinstance(value, bool)


def _converted(measurement: Measurement, measure: Measure, change: Function) -> Measurement:
    return Measurement(
        measurement.input_domain,
        measurement.input_metric,
        measure,
        measurement.function,
        lambda d_in: change(measurement.exact_map(d_in)),
    )


def pure_to_approx(measurement: Measurement) -> Measurement:
    """State a pure loss ε as the pair (ε, 0), so that it composes with losses (ε, δ).

    >>> import dpframe.theory as t
    >>> t.pure_to_approx(t.laplace(t.AtomDomain(int), t.AbsoluteDistance(), scale=2.0)).map(1)
    (0.5, 0.0)
    """
    m = same_measure(measurement, (MaxDivergence(),), "pure_to_approx")
    return _converted(m, Approximate(MaxDivergence()), lambda epsilon: (epsilon, Fraction(0)))


def pure_to_zcdp(measurement: Stated) -> Stated:
    """State a pure loss ε as ρ = ε·tanh(ε/2), which is below ε²/2 (`privacy.pure_to_zcdp`).

    Input:  a measurement in MaxDivergence(), or a number ε
    Output: the measurement in ZeroConcentratedDivergence(), or the number ρ, rounded up

    >>> pure_to_zcdp(1.0) < 0.46212
    True
    """
    if _is_number(measurement):
        return privacy.pure_to_zcdp(exact(measurement, "epsilon"))
    m = same_measure(measurement, (MaxDivergence(),), "pure_to_zcdp")
    return _converted(m, ZeroConcentratedDivergence(), lambda e: math.inf if math.isinf(e) else privacy.pure_to_zcdp(e))


def zcdp_to_approx(measurement: Stated) -> Stated:
    """State ρ (or a pair ρ, δ) as a privacy profile: all pairs (ε, δ) that follow from it.

    Input:  a measurement in ZeroConcentratedDivergence() or Approximate(ZeroConcentratedDivergence()); or a number ρ,
            whose PrivacyProfile is returned
    Output: the measurement in SmoothedMaxDivergence() or Approximate(SmoothedMaxDivergence()): map(d_in) has
            .delta(epsilon=) and .epsilon(delta=)
    Bound:  the smallest δ over all Rényi orders
    Source: Canonne, Kamath and Steinke 2020, arXiv:2004.00010, corollary 13; `privacy.zcdp_to_delta`
    Errors: MetricMismatch for another measure

    >>> from dpframe.theory import AbsoluteDistance, AtomDomain, gaussian
    >>> profile = zcdp_to_approx(gaussian(AtomDomain(float), AbsoluteDistance(), scale=4.0)).map(1)
    >>> round(profile.epsilon(delta=1e-3), 6)
    0.688002
    """
    if _is_number(measurement):
        return _profile(ZeroConcentratedDivergence().parse(measurement, "rho"))
    zcdp, approximate = ZeroConcentratedDivergence(), Approximate(ZeroConcentratedDivergence())
    m = same_measure(measurement, (zcdp, approximate), "zcdp_to_approx")
    if m.output_measure == zcdp:
        return _converted(m, SmoothedMaxDivergence(), _profile)
    return _converted(m, Approximate(SmoothedMaxDivergence()), lambda loss: (_profile(loss[0]), loss[1]))


def renyi_to_approx(measurement: Stated) -> Stated:
    """State a Rényi curve as a privacy profile: all pairs (ε, δ) that follow from it.

    Input:  a measurement in RenyiDivergence(), or a `RenyiCurve`, whose PrivacyProfile is returned
    Output: the measurement in SmoothedMaxDivergence(): map(d_in) has .delta(epsilon=) and .epsilon(delta=)
    Bound:  each order implies a δ; the smallest over all orders is used
    Source: Canonne, Kamath and Steinke 2020, arXiv:2004.00010, proposition 12; `curves.renyi_to_delta`
    Errors: MetricMismatch for another measure

    >>> from dpframe.theory import RenyiCurve
    >>> round(renyi_to_approx(RenyiCurve(lambda order: 0.5 * order)).epsilon(delta=1e-6), 4)
    5.2215
    """
    if isinstance(measurement, RenyiCurve):
        return _of_curve(measurement)
    m = same_measure(measurement, (RenyiDivergence(),), "renyi_to_approx")
    return _converted(m, SmoothedMaxDivergence(), _of_curve)


def for_several_units(loss: Loss, size: int) -> Loss:
    """The loss for a group of several units, computed from the loss for one unit.

    Input:  a PrivacyProfile, a RenyiCurve, a pair (ε, δ), or a number ε; size: how many units are in the group (count)
    Output: a loss of the kind of the input
    Bound:  exact for profiles of Gaussian noise; other profiles are read at ε/size for each step; curves by the weak
            triangle inequality; pairs by `group_privacy`; a number ε is multiplied by size. The map of a measurement at
            a larger d_in is often smaller, so try it first
    Source: `profiles.grouped`, `curves.group_renyi`, `composition.group_privacy`
    Errors: InvalidArgument

    >>> from dpframe.theory import RenyiCurve
    >>> for_several_units(0.5, 3), round(for_several_units(RenyiCurve(lambda order: 0.5 * order), 2)(2.0), 6)
    (1.5, 4.5)
    """
    count = whole("size", size, 1)
    if isinstance(loss, PrivacyProfile):
        return grouped(loss, count)
    if isinstance(loss, RenyiCurve):
        return RenyiCurve(lambda alpha: curves.group_renyi(loss, exact(alpha, "alpha"), count))
    if isinstance(loss, tuple | list) and len(loss) == 2:
        return composition.group_privacy(exact(loss[0], "epsilon"), exact(loss[1], "delta"), count)
    return MaxDivergence().show(count * MaxDivergence().parse(loss, "loss"))


def _of_curve(curve: RenyiCurve) -> PrivacyProfile:
    return PrivacyProfile(
        lambda epsilon: curves.renyi_to_delta(curve, exact(epsilon, "epsilon")),
        lambda delta: math.inf if delta == 0 else curves.renyi_to_epsilon(curve, exact(delta, "delta")),
        "of a Rényi curve",
    )


def _profile(rho: Fraction | float) -> PrivacyProfile:
    if rho == 0:
        return PrivacyProfile(lambda epsilon: 0.0, lambda delta: 0.0, "no loss")
    if math.isinf(rho):
        return PrivacyProfile(lambda epsilon: 1.0, lambda delta: math.inf, "no privacy")
    return PrivacyProfile(
        lambda epsilon: privacy.zcdp_to_delta(rho, exact(epsilon, "epsilon")),
        lambda delta: math.inf if delta == 0 else privacy.zcdp_to_epsilon(rho, exact(delta, "delta")),
        f"ρ={upward(Fraction(rho)):.6g}",
    )


def fix_delta(measurement: Stated, delta: Real) -> Stated:
    """Read a privacy profile at one δ: the loss becomes the pair (ε, δ).

    Input:  a measurement in SmoothedMaxDivergence() or Approximate(SmoothedMaxDivergence()), or a PrivacyProfile;
            delta in [0, 1]
    Output: the measurement in Approximate(MaxDivergence()), or the pair (ε, δ) of a profile
    Bound:  ε is the profile's ε at δ. If the loss has a δ0 of its own (say from a threshold), the profile is read at
            δ - δ0
    Source: by definition; events of probability δ0 and δ - δ0 together have at most δ
    Errors: InvalidArgument for delta; MetricMismatch for another measure. Where δ0 exceeds δ, ε is infinite

    >>> from dpframe.theory import AbsoluteDistance, AtomDomain, gaussian
    >>> m = fix_delta(zcdp_to_approx(gaussian(AtomDomain(float), AbsoluteDistance(), scale=4.0)), 1e-3)
    >>> m.check(1, (0.7, 1e-3))
    True
    """
    target = probability(delta)
    measure = Approximate(MaxDivergence())
    if isinstance(measurement, PrivacyProfile):
        return measure.show((_epsilon_at(measurement, target), target))
    smooth, approximate = SmoothedMaxDivergence(), Approximate(SmoothedMaxDivergence())
    m = same_measure(measurement, (smooth, approximate), "fix_delta")

    def change(loss: Loss) -> tuple[Loss, Fraction]:
        profile, own_delta = (loss, Fraction(0)) if m.output_measure == smooth else (loss[0], probability(loss[1]))
        if own_delta > target:
            return math.inf, target
        return _epsilon_at(profile, target - own_delta), target

    return _converted(m, measure, change)


def _epsilon_at(profile: PrivacyProfile, delta: Fraction) -> float:
    """The ε of a profile at a δ, which is rounded down so that ε is never too small."""
    down = -upward(-delta)
    return profile.epsilon(max(0.0, down))


def sample(measurement: Measurement, population_size: int) -> Measurement:
    """State the smaller loss of a measurement on a secret sample of a larger population (without replacement).

    Input:  a measurement on a VectorDomain of public size n under ChangeOneDistance() or HammingDistance(), or under
            SymmetricDistance() (where d_in counts two per replacement), in MaxDivergence() or
            Approximate(MaxDivergence()); population_size N >= n (count)
    Output: a measurement that expects a sample of n, drawn uniformly from N; its distances are between populations
    Bound:  ε' = ln(1 + q(e^ε - 1)), δ' = q·δ with q = n/N for one replacement in the population. For k replacements the
            smaller of two bounds: group privacy over k single replacements; or the formula above with q the chance that
            the sample has any of the k records, and with ε, δ for k replacements
    Source: Balle, Barthe and Gaboardi 2018, arXiv:1807.01647, theorem 9; `composition.amplification_by_sampling`
    Errors: InvalidArgument for the population; DomainMismatch without a public size; MetricMismatch

    >>> from dpframe.theory import AtomDomain, SymmetricDistance, laplace, mean
    >>> average = mean(VectorDomain(AtomDomain(float, bounds=(0, 10)), size=10), SymmetricDistance())
    >>> m = sample(average >> laplace(*average.output_space, scale=0.5), population_size=100)
    >>> m.check(2, 0.4941), m.check(2, 0.494)
    (True, False)
    """
    m = same_measure(measurement, (MaxDivergence(), Approximate(MaxDivergence())), "sample")
    domain = m.input_domain
    if not isinstance(domain, VectorDomain) or domain.size is None:
        raise DomainMismatch(f"sample: the input domain is {domain!r}; the size of the sample must be public.")
    relation = relation_of(m.input_metric, "sample")
    n, pure = domain.size, m.output_measure == MaxDivergence()
    if not is_whole(population_size, n):
        raise InvalidArgument(f"sample: population_size={population_size!r} is a whole number of at least {n}.")
    population = int(population_size)

    def loss_of(replaced: int) -> Pair:
        loss = m.exact_map(replaced if relation == "replace" else 2 * replaced)
        return (loss, 0) if pure else loss

    def change(d_in: int) -> Loss:
        k = statistics.replacements(d_in, relation, population) or 0
        if k == 0:
            return Fraction(0) if pure else (Fraction(0), Fraction(0))
        chance = 1 - Fraction(math.comb(population - k, n), math.comb(population, n))
        best = amplified(loss_of(min(k, n)), chance)
        if k > 1:
            steps = amplified(loss_of(1), Fraction(n, population))
            if not math.isinf(steps[0]):
                best = min(best, composition.group_privacy(*steps, k))
        return best[0] if pure else best

    return Measurement(domain, m.input_metric, m.output_measure, m.function, change)


def amplified(loss: Pair, chance: Fraction) -> tuple[float, float]:
    """The loss of a mechanism whose sample has a differing record only with this chance."""
    if math.isinf(loss[0]):
        return math.inf, 1.0
    return composition.amplification_by_sampling(*loss, chance.numerator, chance.denominator)


def poisson_sample(measurement: Measurement, rate: Real, input_metric: Metric | None = None) -> Measurement:
    """Run a measurement on a Poisson sample of the records; its loss is smaller than that of the measurement.

    Input:  a measurement on a VectorDomain without a public size under SymmetricDistance() or InsertDeleteDistance(),
            in MaxDivergence(), Approximate(MaxDivergence()) or SmoothedMaxDivergence(); rate q in (0, 1], the chance of
            each record to be in the sample; input_metric: None for the metric of the measurement; ChangeOneDistance()
            or HammingDistance() for neighbours that replace records
    Output: a measurement that draws a new secret sample at each call and runs the given measurement on it
    Bound:  let two datasets differ in k places (records that enter, leave, or are replaced), and use the same coin for
            a place in both datasets. With probability (1-q)^k no differing record is in the sample, and both answers
            have one distribution, P0. Otherwise, with probability p = 1 - (1-q)^k, they have distributions P1 and Q1.
            The samples under P1 and Q1 are within a distance d of each other (k, or 2k for replaced records). Each is
            within d of a sample under P0, since leaving a record out is a smaller change than replacing it. Let δ(ε) be
            the profile of the measurement at d, and e^ε' = 1 + p(e^ε - 1). By advanced joint convexity, the divergence
            of the two mixtures at ε' is p times the divergence at ε of P1 from a mixture of P0 and Q1, so at most
            p·δ(ε). For k > 1, the bound of k steps of one place each is computed too, and the smaller one is used
    Source: Balle, Barthe and Gaboardi 2018, arXiv:1807.01647, theorem 2 (joint convexity) and theorem 8 (Poisson)
    Errors: InvalidArgument for the rate; DomainMismatch with a public size, which samples do not have; MetricMismatch

    >>> from dpframe.theory import AtomDomain, ChangeOneDistance, SymmetricDistance, count, laplace
    >>> total = count(VectorDomain(AtomDomain(int)), SymmetricDistance())
    >>> noisy = total >> laplace(*total.output_space, scale=1.0)
    >>> m = poisson_sample(noisy, rate=0.1)
    >>> m.check(1, 0.1586), m.check(1, 0.1585)
    (True, False)
    >>> poisson_sample(noisy, 0.1, input_metric=ChangeOneDistance()).map(1) > m.map(1)
    True
    """
    pure, approximate, smooth = MaxDivergence(), Approximate(MaxDivergence()), SmoothedMaxDivergence()
    m = same_measure(measurement, (pure, approximate, smooth), "poisson_sample")
    domain = m.input_domain
    if not isinstance(domain, VectorDomain) or domain.size is not None:
        raise DomainMismatch(f"poisson_sample: the input domain is {domain!r}; a sample has no public size.")
    if relation_of(m.input_metric, "poisson_sample") != "add-remove":
        raise MetricMismatch(
            f"poisson_sample: the measurement's metric is {m.input_metric!r}; a record may be in one sample and not in "
            "the other, so it is SymmetricDistance() or InsertDeleteDistance(). For neighbours that replace records: "
            "input_metric=ChangeOneDistance()."
        )
    metric = m.input_metric if input_metric is None else input_metric
    steps = 2 if relation_of(metric, "poisson_sample") == "replace" else 1
    q = exact(rate, "rate")
    if not 0 < q <= 1:
        raise InvalidArgument(f"poisson_sample: rate={rate!r} is a probability above 0 and at most 1.")

    def run(data: Vector) -> object:
        in_sample = bernoulli(q, len(data))
        if isinstance(data, np.ndarray):
            return m.function(data[in_sample])
        return m.function([v for v, k in zip(data, in_sample.tolist(), strict=True) if k])

    return Measurement(domain, metric, m.output_measure, run, lambda d_in: _sampled(m, d_in, steps, q))


def _sampled(m: Measurement, d_in: int, steps: int, rate: Fraction) -> Loss:
    """The loss for datasets that differ in d_in places; one place is a distance of `steps` for the measurement."""
    chance = 1 - (1 - rate) ** d_in
    if m.output_measure == SmoothedMaxDivergence():
        return _sampled_profile(m.exact_map(steps * d_in), chance)
    pure = m.output_measure == MaxDivergence()
    if d_in == 0:
        return Fraction(0) if pure else (Fraction(0), Fraction(0))

    def loss_of(places: int) -> Pair:
        loss = m.exact_map(steps * places)
        return (loss, 0) if pure else loss

    best = amplified(loss_of(d_in), chance)
    if d_in > 1:
        single = amplified(loss_of(1), rate)
        if not math.isinf(single[0]):
            best = min(best, composition.group_privacy(*single, d_in))
    return best[0] if pure else best


def _sampled_profile(profile: PrivacyProfile, chance: Fraction) -> PrivacyProfile:
    """δ'(ε') = p·δ(ε) with e^ε' = 1 + p(e^ε - 1), ε rounded down."""

    def delta(epsilon: Real) -> float:
        loss = exact(epsilon, "epsilon")
        if chance == 0:
            return 0.0
        with at_precision(192):
            inner = max(0.0, round_down((ball(loss).expm1() / ball(chance)).log1p()))
        return math.nextafter(profile.delta(inner) * math.nextafter(float(chance), 1), 1)

    return PrivacyProfile(delta, label=f"sampled with {float_down(chance):.3g}")
