"""Measurements that release a mapping with private keys: noise, and a threshold for rare keys.

If only one of two neighbours has a key, showing the key reveals which of the two it is. This
happens if noise lifts the small value of that key to the threshold; δ bounds the probability. A
value of 0 is treated as an absent key, so mappings at distance 0 have equal releases. Keys are
released sorted by type and value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from dpframe.errors import DomainMismatch, InvalidArgument, MetricMismatch
from dpframe.noise import family_tail
from dpframe.theory.calls import ordered
from dpframe.theory.exact import Length, Real, Triple, exact, fraction_above, square
from dpframe.theory.formulas.loss import loss as privacy
from dpframe.theory.formulas.sensitivity import vectors as statistics
from dpframe.theory.framework import Function, Measurement
from dpframe.theory.measurements.additive_noise import noisy_atom
from dpframe.theory.measurements.grid_noise import GAUSSIAN, LAPLACE, Additive, Law
from dpframe.theory.spaces import (
    Approximate,
    Domain,
    L01InfDistance,
    L02InfDistance,
    MapDomain,
    MaxDivergence,
    Measure,
    Metric,
    ZeroConcentratedDivergence,
)


@ordered
def laplace_threshold(
    input_domain: Domain,
    input_metric: Metric,
    scale: Real,
    threshold: Real,
    granularity: Real | None = None,
    negate: bool | None = None,
) -> Measurement:
    """Add Laplace noise to every value of a mapping and keep the keys that reach the threshold.

    Input:  mappings to integers or floats under L01InfDistance(AbsoluteDistance()): (l0 keys, l1
            and l∞ in the unit of the values); scale > 0; threshold T: a key is kept if noisy >= T,
            or, for T < 0, if noisy <= T; granularity as in `laplace`; negate: True for noisy <= T
            and False for noisy >= T, for T of either sign. (With a δ above 1/2, a lower limit may
            be negative: negate=False)
    Output: mapping from the keys that are kept to their noisy values
    Bound:  (ε, δ) = (Δ1/scale, 1 - (1 - P[noise >= T - Δ∞])^Δ0), with -T for T if negated. Δ1 and
            Δ∞ are first reduced to Δ1 <= Δ0·Δ∞ and Δ∞ <= Δ1. For integers the tail is that of
            discrete Laplace noise, and P[noise >= …] includes equality. Granularity adds one step
            per key to Δ1 and one step to Δ∞
    Source: Korolova et al. 2009; Wilson et al. 2019, arXiv:1909.01917, theorem 2;
            `privacy.threshold_delta`
    Errors: InvalidArgument for scale, threshold and granularity; DomainMismatch, MetricMismatch

    >>> from dpframe.theory import AtomDomain
    >>> space = MapDomain(AtomDomain(str), AtomDomain(float)), L01InfDistance()
    >>> laplace_threshold(*space, scale=1.0, threshold=20.0).map((1, 1, 1))
    (1.0, 2.801398218768634e-09)
    """
    return _thresholded(
        input_domain,
        input_metric,
        L01InfDistance(),
        (LAPLACE, scale, threshold, granularity, negate),
        privacy.laplace_loss,
        MaxDivergence(),
    )


@ordered
def gaussian_threshold(
    input_domain: Domain,
    input_metric: Metric,
    scale: Real,
    threshold: Real,
    granularity: Real | None = None,
    negate: bool | None = None,
) -> Measurement:
    """Add Gaussian noise to every value of a mapping and keep the keys that reach the threshold.

    Input:  mappings to integers or floats under L02InfDistance(AbsoluteDistance()): (l0 keys, l2
            and l∞ in the unit of the values); scale: the standard deviation > 0; threshold,
            granularity and negate as in `laplace_threshold`
    Output: mapping from the keys that are kept to their noisy values
    Bound:  (ρ, δ) = (Δ2²/(2·scale²), 1 - (1 - P[noise >= T - Δ∞])^Δ0), with -T for T if negated. Δ2
            and Δ∞ are first reduced to Δ2 <= √Δ0·Δ∞ and Δ∞ <= Δ2. For integers the noise is real
            noise that is rounded, so the tail begins half a unit lower
    Source: Bun and Steinke 2016; Wilson et al. 2019, arXiv:1909.01917, theorem 2;
            `privacy.threshold_delta`
    Errors: as `laplace_threshold`

    >>> from dpframe.theory import AtomDomain
    >>> space = MapDomain(AtomDomain(str), AtomDomain(float)), L02InfDistance()
    >>> rho, delta = gaussian_threshold(*space, scale=1.0, threshold=20.0).map((1, 1, 1))
    >>> rho, delta < 1e-80
    (0.5, True)
    """
    return _thresholded(
        input_domain,
        input_metric,
        L02InfDistance(),
        (GAUSSIAN, scale, threshold, granularity, negate),
        privacy.gaussian_loss,
        ZeroConcentratedDivergence(),
    )


def _thresholded(
    domain: Domain,
    metric: Metric,
    required: Metric,
    settings: tuple[Law, Real, Real, Real | None, bool | None],
    loss: Callable[[Length, Fraction], Fraction],
    inner: Measure,
) -> Measurement:
    law, scale, threshold, granularity, negate = settings
    name = f"{law.name}_threshold"
    if not isinstance(domain, MapDomain):
        raise DomainMismatch(
            f"{name}: the input domain is {domain!r}; it works on a MapDomain(keys, values)."
        )
    if metric != required:
        raise MetricMismatch(
            f"{name}: the input metric is {metric!r}; its noise is measured by {required!r}."
        )
    atom = noisy_atom(domain.value_domain, name)
    if domain.key_domain.nan:
        raise DomainMismatch(
            f"{name}: keys may be NaN ({domain.key_domain!r}), and NaN cannot be a key."
        )
    noise = Additive.of(law, scale, granularity, atom)
    limit = exact(threshold, "threshold")
    if not isinstance(negate, bool | None):
        raise InvalidArgument(f"{name}: negate={negate!r} is True, False or None.")
    sign = -1 if (limit < 0 if negate is None else negate) else 1

    def privacy_map(d_in: Triple) -> tuple[Fraction, float]:
        l0, middle, linf = _with_rounding(d_in, noise.charge, isinstance(required, L01InfDistance))
        if l0 == 0 or square(linf) == 0:
            return Fraction(0), 0.0
        tail = _tail(noise, sign * limit, linf)
        return loss(middle, noise.scale), privacy.threshold_delta(tail, l0)

    run = _function(noise, sign * limit, sign)
    return Measurement(domain, metric, Approximate(inner), run, privacy_map)


def _with_rounding(d_in: Triple, charge: Fraction, sums: bool) -> Triple:
    """The triple after the values of both mappings were rounded to a grid."""
    l0, middle, linf = d_in
    if charge == 0 or l0 == 0 or square(linf) == 0:
        return d_in
    linf = fraction_above(linf) + charge
    if sums:
        return statistics.tight_l1(l0, fraction_above(middle) + l0 * charge, linf)
    return statistics.tight_l2(l0, statistics.lengthened(middle, charge, l0), linf)


def _tail(noise: Additive, limit: Fraction, linf: Length) -> float:
    """The probability that noise lifts a value of linf to the threshold."""
    # the sampler's scale, which is never below the caller's
    scale = Fraction(noise.sampler_scale) * noise.step
    reach = fraction_above(linf)
    if noise.atom.is_float:
        return noise.law.tail(scale, limit - reach)
    if noise.charge == 0:
        reach = Fraction(math.floor(reach))
    # On a grid of step g a value v becomes round(v/g). If round(v/g) >= T/g - k, noise of at least
    # k - 1/2 steps lifts it to the threshold; the charge of one step covers that half step.
    steps = math.ceil((limit - reach) / noise.step)
    return family_tail(noise.law.family, scale / noise.step, steps)


def _function(noise: Additive, limit: Fraction, sign: int) -> Function:
    """Add noise, compare exact numbers with the threshold, then round to the type."""
    step = noise.step
    bound = math.ceil(limit / step)
    if noise.atom.is_float and not noise.rounds_first:
        bound += 1  # A value that rounding lifted to the threshold was below it.

    def run(mapping: Mapping[Any, float]) -> dict[object, float]:
        keys = sorted((k for k, v in mapping.items() if v != 0), key=lambda k: (str(type(k)), k))
        finite = [k for k in keys if math.isfinite(mapping[k])]
        noisy = dict(zip(finite, noise.noisy([mapping[k] for k in finite]), strict=True))
        shown_keys = [k for k in finite if sign * noisy[k] >= bound]
        released = dict(zip(shown_keys, noise.release([noisy[k] for k in shown_keys]), strict=True))
        for k in keys:
            if k not in noisy and (mapping[k] > 0) == (sign > 0):
                released[k] = float(mapping[k])
        return released

    return run
