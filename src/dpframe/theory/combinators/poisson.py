"""Poisson sampling: each record takes part by its own coin, and the loss shrinks."""

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
    """Run a measurement on a Poisson sample, and state the smaller loss of the whole.

    Input:  a measurement on a VectorDomain without a public size under SymmetricDistance() or InsertDeleteDistance(),
            in MaxDivergence(), Approximate(MaxDivergence()) or SmoothedMaxDivergence(); rate q in (0, 1], the chance of
            each record to be in the sample; input_metric: that of the measurement (None), or ChangeOneDistance() or
            HammingDistance(), for neighbours that replace records
    Output: the same measurement, run on a sample that is drawn anew, and in secret, at each call
    Bound:  let two datasets differ in k places (records that enter, leave, or are replaced), and let the coins of these
            places be shared. With probability (1-q)^k no coin shows heads, and both answers have one law, P0. Else,
            with probability p, they have laws P1 and Q1. The samples under P1 and Q1 are within a distance d of each
            other (k, or 2k for replaced records), and each is within d of one under P0, since leaving out is less than
            replacing. So with δ(ε) that of the measurement at d, and e^ε' = 1 + p(e^ε - 1), the divergence of the
            two mixtures at ε' is p times that of P1 from a mixture of P0 and Q1 at ε, which is at most p·δ(ε): advanced
            joint convexity. For more than one place, k steps of one are tried too, and the better is taken
    Source: Balle, Barthe and Gaboardi 2018, arXiv:1807.01647, theorem 2 (joint convexity) and theorem 8 (Poisson)
    Errors: InvalidArgument for the rate; DomainMismatch with a public size, which no sample has; MetricMismatch

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
        kept = bernoulli(q, len(data))
        if isinstance(data, np.ndarray):
            return m.function(data[kept])
        return m.function([v for v, k in zip(data, kept.tolist(), strict=True) if k])

    return Measurement(domain, metric, m.output_measure, run, lambda d_in: _sampled(m, d_in, steps, q))


def _sampled(m: Measurement, d_in: int, steps: int, rate: Fraction) -> Any:
    """The loss for datasets that differ in d_in places, each of which is `steps` of the measurement's distance."""
    met = 1 - (1 - rate) ** d_in
    if m.output_measure == SmoothedMaxDivergence():
        return _profile(m.exact_map(steps * d_in), met)
    pure = m.output_measure == MaxDivergence()
    if d_in == 0:
        return Fraction(0) if pure else (Fraction(0), Fraction(0))

    def loss_of(places: int) -> tuple[Any, Any]:
        loss = m.exact_map(steps * places)
        return (loss, 0) if pure else loss

    best = amplified(loss_of(d_in), met)
    if d_in > 1:
        one = amplified(loss_of(1), rate)
        if not math.isinf(one[0]):
            best = min(best, composition.group_privacy(*one, d_in))
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
