"""Upper tail probabilities of the distributions of the samplers, certified and rounded up.

All these distributions are symmetric about 0. For the rounded ones a tie has probability 0, so
P[round(Z) ≥ k] = P[Z ≥ k - 1/2] for every integer k. Scales and points may be int, float or Fraction and are taken
exactly. A scale that is not positive and finite is an InvalidArgument. The functions in `TAILS` return the tail
probabilities as balls at the current precision.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dpframe.errors import InvalidArgument
from dpframe.noise.certified import Ball, Number, ball, precision, round_up, upper
from dpframe.noise.scales import positive, rational


def laplace_tail(scale: Number, x: Number) -> float:
    """P[Z ≥ x] of the real Laplace distribution, rounded up.

    >>> laplace_tail(1, 0)
    0.5
    """
    exact, point = positive("scale", scale), rational("x", x)
    return min(1.0, upper(lambda: _laplace(exact, point)))


def gaussian_tail(scale: Number, x: Number) -> float:
    """P[Z ≥ x] of the real normal distribution, rounded up.

    >>> gaussian_tail(1, 0)
    0.5
    """
    exact, point = positive("scale", scale), rational("x", x)
    return min(1.0, upper(lambda: _gaussian(exact, point)))


def rounded_laplace_tail(scale: Number, k: int) -> float:
    """P[round(Z) ≥ k] of the rounded Laplace distribution, rounded up.

    >>> rounded_laplace_tail(1, 20) == laplace_tail(1, 19.5)
    True
    """
    return family_tail("laplace", scale, k)


def rounded_gaussian_tail(scale: Number, k: int) -> float:
    """P[round(Z) ≥ k] of the rounded normal distribution, rounded up.

    >>> rounded_gaussian_tail(1, 4) == gaussian_tail(1, 3.5)
    True
    """
    return family_tail("gaussian", scale, k)


def discrete_laplace_tail(scale: Number, k: int) -> float:
    """P[X ≥ k] of the discrete Laplace distribution, rounded up.

    >>> round(discrete_laplace_tail(1, 9), 8)
    9.022e-05
    """
    return family_tail("discrete_laplace", scale, k)


def discrete_gaussian_tail(scale: Number, k: int) -> float:
    """P[X ≥ k] of the discrete Gaussian distribution, rounded up. Above scale 4096, the relative error is below 1e-6.

    >>> discrete_gaussian_tail(1, 4) < rounded_gaussian_tail(1, 4)
    True
    """
    exact, point = positive("scale", scale), whole("k", k)
    with precision(192):
        return min(1.0, round_up(discrete_gaussian_tails(exact, [point])[0]))


def family_tail(family: str, scale: Number, k: int) -> float:
    """P[X ≥ k] of one of the integer distributions in `TAILS`, rounded up."""
    if family not in TAILS:
        raise InvalidArgument(f"family={family!r} must be one of {', '.join(map(repr, TAILS))}.")
    exact, point = positive("scale", scale), whole("k", k)
    return min(1.0, upper(lambda: TAILS[family](exact, point)))


def whole(name: str, value: object, least: int | None = None) -> int:
    """Return an argument as an int; any number with an integer value is accepted."""
    exact = rational(name, value)
    if exact.denominator != 1 or (least is not None and exact < least):
        raise InvalidArgument(f"{name}={value!r} must be an integer{'' if least is None else f' of at least {least}'}.")
    return int(exact)


# Balls


def _laplace(scale: Fraction, x: Fraction) -> Ball:
    """P[Z ≥ x] is exp(-x/scale)/2 for x ≥ 0."""
    half = (-ball(abs(x) / scale)).exp() / 2
    return half if x >= 0 else 1 - half


def _gaussian(scale: Fraction, x: Fraction) -> Ball:
    """P[Z ≥ x] is erfc(x/(scale·√2))/2."""
    return (ball(x / scale) / ball(2).sqrt()).erfc() / 2


def _discrete_laplace(scale: Fraction, k: int) -> Ball:
    """P[X ≥ k] is a^k/(1+a) for k ≥ 1, with a = exp(-1/scale)."""
    one = 1 + (-ball(1 / scale)).exp()
    return (-ball(k / scale)).exp() / one if k >= 1 else 1 - (-ball((1 - k) / scale)).exp() / one


TAILS: dict[str, Callable[[Fraction, int], Ball]] = {
    "laplace": lambda scale, k: _laplace(scale, Fraction(2 * k - 1, 2)),
    "discrete_laplace": _discrete_laplace,
    "gaussian": lambda scale, k: _gaussian(scale, Fraction(2 * k - 1, 2)),
}


def discrete_gaussian_tails(scale: Fraction, points: list[int]) -> list[Ball]:
    """P[X ≥ k] of the discrete Gaussian distribution for each k.

    For scales up to 4096 the terms are summed, and a geometric series bounds the terms that are left out. Above, the
    midpoint rule is used: Σ_{x≥k} f(x) differs from the integral of f from k - 1/2 on by at most 1/8 of the integral of
    |f''|.
    """
    sums = _summed if scale <= 4096 else _integrated
    total = 2 * sums(scale, 1) + 1
    return [sums(scale, k) / total if k >= 1 else 1 - sums(scale, 1 - k) / total for k in points]


def _summed(scale: Fraction, k: int) -> Ball:
    """Σ_{x≥k} exp(-x²/2σ²) for k ≥ 1."""
    from flint import ctx

    variance = scale * scale
    term = (-ball(Fraction(k * k) / (2 * variance))).exp()
    quotient = (-ball(Fraction(2 * k + 1) / (2 * variance))).exp()  # the next term divided by this one
    ratio = (-ball(1 / variance)).exp()  # the next quotient divided by this one
    total, negligible = term, term / (1 << ctx.prec)
    while term > negligible:
        term = term * quotient
        total = total + term
        quotient = quotient * ratio
    # The sum of the other terms is at most that of the geometric series with the present quotient, which is below 1.
    return total + (term * quotient / (1 - quotient)).union(ball(0))


def _integrated(scale: Fraction, k: int) -> Ball:
    """Σ_{x≥k} exp(-x²/2σ²) for k ≥ 1 and a large σ, as a ball of relative radius about 1/σ²."""
    variance, start = scale * scale, Fraction(2 * k - 1, 2)
    bend = ball(start / variance) * (-ball(start * start / (2 * variance))).exp()
    if start < scale:
        # |f'| rises up to its largest value at σ, and then falls to 0.
        bend = 2 * ball(Fraction(-1, 2)).exp() / ball(scale) - bend
    area = 2 * _gaussian(scale, start) * ball(scale) * (ball(2).pi() / 2).sqrt()
    return area + (bend / 8).union(-bend / 8)
