"""Measurements that add noise to a number or to every entry of a vector."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from dpframe.errors import DomainMismatch, InvalidArgument, MetricMismatch
from dpframe.theory.calls import ordered
from dpframe.theory.datasets import like
from dpframe.theory.exact import Length, Real, exact, fraction_above, square, upward
from dpframe.theory.formulas.loss import curves
from dpframe.theory.formulas.loss import loss as privacy
from dpframe.theory.formulas.sensitivity import vectors as statistics
from dpframe.theory.framework import Function, Measurement
from dpframe.theory.measurements.grid_noise import GAUSSIAN, LAPLACE, Additive, noisy_array
from dpframe.theory.spaces import (
    AbsoluteDistance,
    AtomDomain,
    Domain,
    L1Distance,
    L2Distance,
    MapDomain,
    MaxDivergence,
    Measure,
    Metric,
    PrivacyProfile,
    RenyiCurve,
    RenyiDivergence,
    SmoothedMaxDivergence,
    VectorDomain,
    ZeroConcentratedDivergence,
    gaussian_profile,
)


def number_domain(domain: Domain, name: str) -> AtomDomain:
    """The domain of the numbers that noise is added to; they must not be NaN.
    Errors: DomainMismatch.
    """
    atom = domain
    match domain:
        case VectorDomain():
            atom = domain.element_domain
        case MapDomain(possible_keys=None):
            raise DomainMismatch(
                f"{name}: the keys of {domain!r} are private, and noise does not hide which keys "
                "there are. List all possible keys: count_by(..., keys=[...]); or hide rare keys: "
                f"{name}_threshold(domain, metric, scale=..., threshold=...)."
            )
        case MapDomain():
            atom = domain.value_domain
    if not isinstance(atom, AtomDomain):
        raise DomainMismatch(
            f"{name}: the input domain is {domain!r}; noise is added to a number, a vector of "
            "numbers, or a mapping to numbers."
        )
    return noisy_atom(atom, name)


def noisy_atom(atom: AtomDomain, name: str) -> AtomDomain:
    """Check that noise can hide differences between these atoms. Errors: DomainMismatch."""
    if not (atom.is_integer or atom.is_float):
        raise DomainMismatch(
            f"{name}: the values are {atom!r}; noise is added to integers or floats."
        )
    if atom.nan:
        raise DomainMismatch(
            f"{name}: the values may be NaN ({atom!r}), which noise does not hide. Replace NaN "
            "first: impute(domain, metric, constant)."
        )
    return atom


def _spread(
    domain: Domain, metric: Metric, vector: Metric, noise: Additive, name: str
) -> Callable[[Length], Length]:
    """The function that adds the effect of rounding to a distance;
    checks that the metric fits the domain.
    """
    keys = domain.possible_keys if isinstance(domain, MapDomain) else None
    if isinstance(domain, VectorDomain | MapDomain):
        if metric != vector:
            raise MetricMismatch(
                f"{name}: the input metric is {metric!r}; the noise of several numbers is measured "
                f"by {vector!r}."
            )
        cells = (
            len(keys)
            if keys is not None
            else domain.size
            if isinstance(domain, VectorDomain)
            else None
        )
        if noise.charge and cells is None and noise.atom.is_float:
            raise DomainMismatch(
                f"{name}: the input domain is {domain!r}. With a granularity, each float is "
                "rounded to the grid, and the map charges for each, so their number must be "
                "public: type VectorDomain(atom, size=...), or leave out granularity."
            )
    else:
        if metric != AbsoluteDistance():
            raise MetricMismatch(
                f"{name}: the input metric is {metric!r}; the noise of one number is measured by "
                "AbsoluteDistance()."
            )
        cells = 1
    step = noise.charge

    def grown(d_in: Length) -> Length:
        if step == 0 or square(d_in) == 0:
            return d_in
        count, l1 = (
            cells,
            d_in if isinstance(vector, L1Distance) and isinstance(d_in, Fraction) else None,
        )
        # Integers that differ, differ by 1 or more, so at most l1 (or l2²) of them do.
        if not noise.atom.is_float:
            most = math.floor(square(d_in) if l1 is None else l1)
            count = most if count is None else min(count, most)
        assert count is not None
        return statistics.lengthened(d_in, step, count) if l1 is None else l1 + count * step

    return grown


def _function(domain: Domain, noise: Additive) -> Function:
    """The function that adds noise to every finite entry; infinite entries do not change."""

    def run_vector(values: Any) -> Any:
        return like(noisy_array(noise, values), values)

    def run_number(value: Any) -> Any:
        return noise.release(noise.noisy([value]))[0] if math.isfinite(value) else value

    def run_mapping(values: Any) -> Any:
        return dict(zip(keys, run_vector([values.get(k, zero) for k in keys]), strict=True))

    match domain:
        case MapDomain():
            keys, zero = domain.possible_keys or (), noise.atom.dtype.type(0).item()
            return run_mapping
        case VectorDomain():
            return run_vector
    return run_number


@ordered
def laplace(
    input_domain: Domain,
    input_metric: Metric,
    scale: Real,
    granularity: Real | None = None,
    output_measure: Measure | None = None,
) -> Measurement:
    """Add Laplace noise to a number or to every entry of a vector.

    Input:  a number under AbsoluteDistance(), or a vector, or a mapping whose possible keys are
            public, under L1Distance(); scale > 0 in the unit of the numbers; granularity: the step
            of the grid, a power of two from 2^-1074 on, or None. With a granularity, a vector of
            floats needs a public size
    Output: a value of the type of the input, with real Laplace noise for floats and discrete
            Laplace noise for integers, clipped to the range of the type. A mapping has every
            possible key; an absent key counts as 0
    Bound:  ε = d_in/scale. Without granularity a float is not rounded before the noise, and
            rounding the sum afterwards costs nothing. With a granularity, rounding can move two
            entries apart by one more step, so d_in grows by one step per entry (for integers: per
            entry that can differ). A granularity below 2^-61 of the scale has no effect.
            `output_measure` may be MaxDivergence() (the default); ZeroConcentratedDivergence(),
            with ρ = ε + e^-ε - 1 for real noise and ε·tanh(ε/2) for discrete noise;
            RenyiDivergence() or RenyiDivergence(alpha), exact; or, for one number,
            SmoothedMaxDivergence(), δ = 1 - e^((ε' - ε)/2) at ε'
    Source: Dwork, McSherry, Nissim and Smith 2006; `privacy.laplace_epsilon`,
            `privacy.laplace_rho`, `loss.curves`
    Errors: InvalidArgument for scale, granularity and measure; DomainMismatch, MetricMismatch

    >>> m = laplace(AtomDomain(float), AbsoluteDistance(), scale=25.0)
    >>> m.map(12), m.check(12, 0.48)
    (0.48, True)
    >>> laplace(AtomDomain(float), AbsoluteDistance(), scale=1.0, granularity=2**-10).map(1)
    1.0009765625
    """
    noise = Additive.of(LAPLACE, scale, granularity, number_domain(input_domain, "laplace"))
    grown = _spread(input_domain, input_metric, L1Distance(), noise, "laplace")

    def epsilon(d_in: Length) -> Fraction:
        return privacy.laplace_loss(grown(d_in), noise.scale)

    def rho(d_in: Length) -> float:
        return (
            privacy.laplace_rho(epsilon(d_in), 1)
            if noise.atom.is_float
            else privacy.pure_to_zcdp(epsilon(d_in))
        )

    maps: dict[Measure, Function] = {MaxDivergence(): epsilon, ZeroConcentratedDivergence(): rho}
    if isinstance(input_domain, AtomDomain):
        maps[SmoothedMaxDivergence()] = lambda d_in: _laplace_profile(noise, grown(d_in))
    maps[RenyiDivergence()] = lambda d_in: _laplace_curve(noise, grown(d_in))
    return _noisy(input_domain, input_metric, noise, maps, output_measure)


def _in_steps(noise: Additive, l1: Length) -> tuple[Fraction, Fraction]:
    """Distance and scale of Laplace noise for the formulas;
    for integers both are in whole grid steps.
    """
    distance = fraction_above(l1)
    if noise.atom.is_float:
        return distance, noise.scale
    return Fraction(math.floor(distance / noise.step)), noise.scale / noise.step


def _laplace_curve(noise: Additive, l1: Length) -> RenyiCurve:
    distance, scale = _in_steps(noise, l1)
    if noise.atom.is_float:
        return RenyiCurve(
            lambda alpha: curves.laplace_renyi(exact(alpha, "alpha"), distance, scale)
        )
    return RenyiCurve(
        lambda alpha: curves.discrete_laplace_renyi(
            exact(alpha, "alpha"), distance.numerator, scale
        )
    )


def _laplace_profile(noise: Additive, l1: Length) -> PrivacyProfile:
    distance, scale = _in_steps(noise, l1)
    if noise.atom.is_float:
        return PrivacyProfile(
            lambda epsilon: curves.laplace_delta(exact(epsilon, "epsilon"), distance, scale),
            label="Laplace",
        )
    return PrivacyProfile(
        lambda epsilon: curves.discrete_laplace_delta(
            exact(epsilon, "epsilon"), distance.numerator, scale
        ),
        label="discrete Laplace",
    )


@ordered
def gaussian(
    input_domain: Domain,
    input_metric: Metric,
    scale: Real,
    granularity: Real | None = None,
    output_measure: Measure | None = None,
) -> Measurement:
    """Add Gaussian noise to a number or to every entry of a vector.

    Input:  a number under AbsoluteDistance(), or a vector or a mapping as in `laplace` under
            L2Distance(); scale: the standard deviation > 0, in the unit of the numbers; granularity
            as in `laplace`
    Output: a value of the type of the input, with real Gaussian noise, clipped to the range of the
            type. For integers the noise is rounded to the nearest integer, which keeps the exact
            profile of the real noise
    Bound:  ρ = d_in²/(2·scale²); a granularity adds √entries·granularity to d_in. `output_measure`
            may be ZeroConcentratedDivergence() (the default), RenyiDivergence() or
            RenyiDivergence(alpha), ε = ρ·α, or SmoothedMaxDivergence(): the exact δ = Φ(μ/2 - ε/μ)
            - e^ε·Φ(-μ/2 - ε/μ) with μ = d_in/scale
    Source: Bun and Steinke 2016, proposition 1.6; Balle and Wang 2018, theorem 8;
            `privacy.gaussian_rho`, `privacy.gaussian_delta`
    Errors: InvalidArgument for scale and granularity; DomainMismatch, MetricMismatch

    >>> gaussian(AtomDomain(float), AbsoluteDistance(), scale=1.0).map(1)
    0.5
    """
    noise = Additive.of(GAUSSIAN, scale, granularity, number_domain(input_domain, "gaussian"))
    grown = _spread(input_domain, input_metric, L2Distance(), noise, "gaussian")

    def rho(d_in: Length) -> Fraction:
        return privacy.gaussian_loss(grown(d_in), noise.scale)

    maps: dict[Measure, Function] = {
        ZeroConcentratedDivergence(): rho,
        SmoothedMaxDivergence(): lambda d_in: gaussian_profile(
            square(grown(d_in)) / noise.scale**2
        ),
        RenyiDivergence(): lambda d_in: _renyi_curve(rho(d_in)),
    }
    return _noisy(input_domain, input_metric, noise, maps, output_measure)


def _noisy(
    domain: Domain,
    metric: Metric,
    noise: Additive,
    maps: Mapping[Measure, Function],
    measure: Measure | None,
) -> Measurement:
    """The measurement that adds noise, with its map to a measure, by default the first.
    Errors: InvalidArgument.
    """
    measure = next(iter(maps)) if measure is None else measure
    function = _function(domain, noise)
    if isinstance(measure, RenyiDivergence) and (order := measure.alpha) is not None:
        curve = maps[RenyiDivergence()]
        return Measurement(domain, metric, measure, function, lambda d_in: curve(d_in)(order))
    if measure not in maps:
        known = ", ".join(map(repr, maps))
        raise InvalidArgument(
            f"{noise.law.name}: output_measure={measure!r}; on {domain!r} it is one of {known}."
        )
    return Measurement(domain, metric, measure, function, maps[measure])


def _renyi_curve(rho: Fraction) -> RenyiCurve:
    return RenyiCurve(lambda alpha: upward(rho * exact(alpha, "alpha")))
