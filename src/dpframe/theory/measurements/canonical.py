"""Canonical noise: for one number and one (ε, δ), the noise whose privacy profile is exactly that pair."""

from __future__ import annotations

import math
from fractions import Fraction

from dpframe.errors import DomainMismatch, InvalidArgument, MetricMismatch
from dpframe.noise import ball, bits, discrete_laplace, float_up, precision
from dpframe.theory.calls import ordered
from dpframe.theory.exact import Length, Real, exact, limit, upward
from dpframe.theory.formulas.loss import group_privacy
from dpframe.theory.framework import Measurement
from dpframe.theory.spaces import AbsoluteDistance, Approximate, AtomDomain, Domain, MaxDivergence, Metric, probability


@ordered
def canonical_noise(input_domain: Domain, input_metric: Metric, d_in: Real, d_out: tuple[Real, Real]) -> Measurement:
    """Add the canonical noise of (ε, δ) to a number. At this price no (ε, δ)-private noise allows more powerful tests.

    Input:  a number under AbsoluteDistance(); d_in > 0 in its unit; d_out = (ε, δ) with ε > 0 and 0 <= δ < 1
    Output: float: x + d_in·N, rounded to a multiple of 2^-40·d_in (or to the nearest float), where N has the Tulap
            distribution: N = K + U for a two-sided geometric K of ratio e^-ε and a uniform U in (-1/2, 1/2), given that
            the distribution function of K + U lies in [q/2, 1 - q/2], q = 2δb/(1 - b + 2δb), b = e^-ε
    Bound:  (ε, δ) for distances up to d_in. A larger distance d takes k = ⌈d / d_in⌉ steps:
            (kε, δ·(e^kε - 1)/(e^ε - 1)). A float is not rounded before the noise, so rounding afterwards is
            post-processing
    Source: Awan and Vadhan 2023, arXiv:2108.04303, for canonical noise; Awan and Slavković 2018, arXiv:1805.09236,
            definition 5.1 and lemma 5.3, for the Tulap distribution under (ε, δ)
    Errors: InvalidArgument for d_in and d_out; DomainMismatch, MetricMismatch

    >>> m = canonical_noise(AtomDomain(float), AbsoluteDistance(), d_in=1.0, d_out=(1.0, 1e-7))
    >>> m.map(1.0), m.check(0.5, (1.0, 1e-7))
    ((1.0, 1e-07), True)
    """
    if not isinstance(input_domain, AtomDomain) or not input_domain.is_float or input_domain.nan:
        raise DomainMismatch(f"canonical_noise: the input domain is {input_domain!r}; it is a float without NaN.")
    if input_metric != AbsoluteDistance():
        raise MetricMismatch(f"canonical_noise: the input metric is {input_metric!r}; it is AbsoluteDistance().")
    unit = limit(d_in, "d_in")
    if not isinstance(d_out, tuple | list) or len(d_out) != 2:
        raise InvalidArgument(f"canonical_noise: d_out={d_out!r} is a pair (ε, δ).")
    epsilon, delta = exact(d_out[0], "epsilon"), exact(d_out[1], "delta")
    if unit <= 0 or epsilon <= 0 or not 0 <= probability(delta) < 1:
        raise InvalidArgument("canonical_noise: d_in > 0, ε > 0 and 0 <= δ < 1.")
    step = Fraction(2) ** (math.frexp(float(unit))[1] - 41)

    def privacy_map(distance: Length) -> tuple[Real, Real]:
        length = distance if isinstance(distance, Fraction) else exact(upward(distance), "d_in")
        steps = math.ceil(length / unit)
        if steps <= 1:
            return steps * epsilon, steps * delta
        return group_privacy(epsilon, delta, steps)

    def run(value: float) -> float:
        return value if math.isinf(value) else _noisy(Fraction(value), unit, step, float_up(1 / epsilon), delta)

    return Measurement(input_domain, input_metric, Approximate(MaxDivergence()), run, privacy_map)


def _noisy(value: Fraction, unit: Fraction, step: Fraction, scale: float, delta: Fraction) -> float:
    """The value plus noise, rounded to the step. Bits of U are drawn until the result is certain.

    1/ε is rounded up to a float. The noise is canonical for the corresponding ε, which is never above the caller's.
    """
    epsilon = 1 / Fraction(scale)
    while True:
        k = int(discrete_laplace(scale, 1)[0])
        uniform_bits, count = int(bits.random_words(1)[0]), 64
        while True:
            low = Fraction(uniform_bits, 1 << count) - Fraction(1, 2)
            inside = _within(k, low, Fraction(1, 1 << count), epsilon, delta)
            points = [
                math.floor((value + unit * (k + u)) / step + Fraction(1, 2))
                for u in (low, low + Fraction(1, 1 << count))
            ]
            if inside is False or (inside is True and points[0] == points[1]):
                break
            uniform_bits, count = uniform_bits << 64 | int(bits.random_words(1)[0]), count + 64
        if inside:
            return _held(points[0] * step)


def _held(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(1.7976931348623157e308, value)


def _within(n: int, low: Fraction, width: Fraction, epsilon: Fraction, delta: Fraction) -> bool | None:
    """Whether the distribution function at K + U is in [q/2, 1 - q/2], for all U of an interval; None if for some."""
    if delta == 0:
        return True
    with precision(256):
        b = ball(-epsilon).exp()
        q = 2 * ball(delta) * b / (1 - b + 2 * ball(delta) * b)
        ends = []
        for u in (low, low + width):
            k, part = (n, u) if n <= 0 else (-n, -u)  # By symmetry the lower half is enough.
            # F(k + u) = b^-k/(1 + b)·(b + (u + 1/2)(1 - b)) for k <= 0.
            ends.append(b ** (-k) / (1 + b) * (b + (ball(part) + ball(Fraction(1, 2))) * (1 - b)))
        outside, inside = [bool(e < q / 2) for e in ends], [bool(e >= q / 2) for e in ends]
        if n == 0:  # Both tails may reach into the middle cell.
            mirror = [1 - e for e in ends]
            outside = [o or bool(m < q / 2) for o, m in zip(outside, mirror, strict=True)]
            inside = [i and bool(m >= q / 2) for i, m in zip(inside, mirror, strict=True)]
    if all(inside):
        return True
    return False if all(outside) else None
