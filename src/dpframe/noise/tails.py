"""Upper tails of the laws that this room draws from, certified and rounded up.

All laws are symmetric about 0. For the rounded laws a tie has probability 0, so P[round(Z) ≥ k] = P[Z ≥ k - 1/2] for
every integer k. Scales and points may be int, float or Fraction and are taken exactly; a scale that is not positive
and finite is an InvalidArgument. The functions in `TAILS` give the same numbers as balls at the current precision.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dpframe.errors import InvalidArgument
from dpframe.noise.arguments import positive, rational
from dpframe.noise.certified import Ball, Number, ball, upper

__all__ = [
    "TAILS",
    "discrete_laplace_tail",
    "family_tail",
    "gaussian_tail",
    "laplace_tail",
    "rounded_gaussian_tail",
    "whole",
]

# Certified floats


def laplace_tail(scale: Number, x: Number) -> float:
    """P[Z ≥ x] of the real Laplace law, rounded up.

    >>> laplace_tail(1, 0)
    0.5
    """
    exact, point = positive("scale", scale), rational("x", x)
    return min(1.0, upper(lambda: _laplace(exact, point)))


def gaussian_tail(scale: Number, x: Number) -> float:
    """P[Z ≥ x] of the real normal law, rounded up.

    >>> gaussian_tail(1, 0)
    0.5
    """
    exact, point = positive("scale", scale), rational("x", x)
    return min(1.0, upper(lambda: _gaussian(exact, point)))


def rounded_gaussian_tail(scale: Number, k: int) -> float:
    """P[round(Z) ≥ k] of the rounded normal law, rounded up.

    >>> rounded_gaussian_tail(1, 4) == gaussian_tail(1, 3.5)
    True
    """
    return family_tail("gaussian", scale, k)


def discrete_laplace_tail(scale: Number, k: int) -> float:
    """P[X ≥ k] of the discrete Laplace law, rounded up.

    >>> round(discrete_laplace_tail(1, 9), 8)
    9.022e-05
    """
    return family_tail("discrete_laplace", scale, k)


def family_tail(family: str, scale: Number, k: int) -> float:
    """P[X ≥ k] of one of the integer laws in `TAILS`, rounded up."""
    if family not in TAILS:
        raise InvalidArgument(f"family={family!r} must be one of {', '.join(map(repr, TAILS))}.")
    exact, point = positive("scale", scale), whole("k", k)
    return min(1.0, upper(lambda: TAILS[family](exact, point)))


def whole(name: str, value: Any, least: int | None = None) -> int:
    """Return an integer argument, of any integer type."""
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
