"""Poisson sampling: each record is in the sample with its own independent chance, which makes the loss smaller."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.errors import DomainMismatch, InvalidArgument, MetricMismatch
from dpframe.noise import ball, bernoulli, float_down, round_down
from dpframe.noise import precision as at_precision
from dpframe.theory.combinators.conversions import amplified, same_measure
from dpframe.theory.exact import exact
from dpframe.theory.formulas.loss import composition
from dpframe.theory.framework import Measurement
from dpframe.theory.spaces import (
    Approximate,
    MaxDivergence,
    Metric,
    PrivacyProfile,
    SmoothedMaxDivergence,
    VectorDomain,
)
from dpframe.theory.vectors import relation_of

__all__ = ["poisson_sample"]


def poisson_sample(measurement: Measurement, rate: Any, input_metric: Metric | None = None) -> Measurement:
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

    def run(data: Any) -> Any:
        in_sample = bernoulli(q, len(data))
        if isinstance(data, np.ndarray):
            return m.function(data[in_sample])
        return m.function([v for v, k in zip(data, in_sample.tolist(), strict=True) if k])

    return Measurement(domain, metric, m.output_measure, run, lambda d_in: _sampled(m, d_in, steps, q))


def _sampled(m: Measurement, d_in: int, steps: int, rate: Fraction) -> Any:
    """The loss for datasets that differ in d_in places; one place is a distance of `steps` for the measurement."""
    chance = 1 - (1 - rate) ** d_in
    if m.output_measure == SmoothedMaxDivergence():
        return _profile(m.exact_map(steps * d_in), chance)
    pure = m.output_measure == MaxDivergence()
    if d_in == 0:
        return Fraction(0) if pure else (Fraction(0), Fraction(0))

    def loss_of(places: int) -> tuple[Any, Any]:
        loss = m.exact_map(steps * places)
        return (loss, 0) if pure else loss

    best = amplified(loss_of(d_in), chance)
    if d_in > 1:
        single = amplified(loss_of(1), rate)
        if not math.isinf(single[0]):
            best = min(best, composition.group_privacy(*single, d_in))
    return best[0] if pure else best


def _profile(profile: PrivacyProfile, chance: Fraction) -> PrivacyProfile:
    """δ'(ε') = p·δ(ε) with e^ε' = 1 + p(e^ε - 1), ε rounded down."""

    def delta(epsilon: Any) -> float:
        loss = exact(epsilon, "epsilon")
        if chance == 0:
            return 0.0
        with at_precision(192):
            inner = max(0.0, round_down((ball(loss).expm1() / ball(chance)).log1p()))
        return math.nextafter(profile.delta(inner) * math.nextafter(float(chance), 1), 1)

    return PrivacyProfile(delta, label=f"sampled with {float_down(chance):.3g}")
