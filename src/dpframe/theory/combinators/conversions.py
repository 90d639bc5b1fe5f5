"""Conversions: state the loss of a measurement in another measure."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeGuard

import numpy as np

from dpframe.errors import InvalidArgument, MetricMismatch
from dpframe.theory.exact import Real, exact, upward
from dpframe.theory.formulas.loss import loss as privacy
from dpframe.theory.framework import Function, Measurement
from dpframe.theory.spaces import (
    Approximate,
    MaxDivergence,
    Measure,
    PrivacyProfile,
    SmoothedMaxDivergence,
    ZeroConcentratedDivergence,
    probability,
)

Loss = Any  # see `Measure`
Stated = Any  # a Measurement, or a loss by itself


def same_measure(measurement: object, measures: tuple[Measure, ...], name: str) -> Measurement:
    """Check that a measurement's output measure is one of `measures`.
    Errors: InvalidArgument, MetricMismatch.
    """
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
    return _converted(
        m,
        ZeroConcentratedDivergence(),
        lambda e: math.inf if math.isinf(e) else privacy.pure_to_zcdp(e),
    )


def zcdp_to_approx(measurement: Stated) -> Stated:
    """State ρ (or a pair ρ, δ) as a privacy profile: all pairs (ε, δ) that follow from it.

    Input:  a measurement in ZeroConcentratedDivergence() or
            Approximate(ZeroConcentratedDivergence()); or a number ρ, whose PrivacyProfile is
            returned
    Output: the measurement in SmoothedMaxDivergence() or Approximate(SmoothedMaxDivergence()):
            map(d_in) has .delta(epsilon=) and .epsilon(delta=)
    Bound:  the smallest δ over all Rényi orders
    Source: Canonne, Kamath and Steinke 2020, arXiv:2004.00010, corollary 13;
            `privacy.zcdp_to_delta`
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
    return _converted(
        m, Approximate(SmoothedMaxDivergence()), lambda loss: (_profile(loss[0]), loss[1])
    )


def _profile(rho: Fraction | float) -> PrivacyProfile:
    if rho == 0:
        return PrivacyProfile(lambda epsilon: 0.0, lambda delta: 0.0, "no loss")
    if math.isinf(rho):
        return PrivacyProfile(lambda epsilon: 1.0, lambda delta: math.inf, "no privacy")
    return PrivacyProfile(
        lambda epsilon: privacy.zcdp_to_delta(rho, exact(epsilon, "epsilon")),
        lambda delta: (
            math.inf if delta == 0 else privacy.zcdp_to_epsilon(rho, exact(delta, "delta"))
        ),
        f"ρ={upward(Fraction(rho)):.6g}",
    )


def fix_delta(measurement: Stated, delta: Real) -> Stated:
    """Read a privacy profile at one δ: the loss becomes the pair (ε, δ).

    Input:  a measurement in SmoothedMaxDivergence() or Approximate(SmoothedMaxDivergence()), or a
            PrivacyProfile; delta in [0, 1]
    Output: the measurement in Approximate(MaxDivergence()), or the pair (ε, δ) of a profile
    Bound:  ε is the profile's ε at δ. If the loss has a δ0 of its own (say from a threshold), the
            profile is read at δ - δ0
    Source: by definition; events of probability δ0 and δ - δ0 together have at most δ
    Errors: InvalidArgument for delta; MetricMismatch for another measure. Where δ0 exceeds δ, ε is
            infinite

    >>> from dpframe.theory import AbsoluteDistance, AtomDomain, gaussian
    >>> m = fix_delta(
    ...     zcdp_to_approx(gaussian(AtomDomain(float), AbsoluteDistance(), scale=4.0)), 1e-3
    ... )
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
        profile, own_delta = (
            (loss, Fraction(0)) if m.output_measure == smooth else (loss[0], probability(loss[1]))
        )
        if own_delta > target:
            return math.inf, target
        return _epsilon_at(profile, target - own_delta), target

    return _converted(m, measure, change)


def _epsilon_at(profile: PrivacyProfile, delta: Fraction) -> float:
    """The ε of a profile at a δ, which is rounded down so that ε is never too small."""
    down = -upward(-delta)
    return profile.epsilon(max(0.0, down))
