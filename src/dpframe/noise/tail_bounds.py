"""Upper tail probabilities of the distributions of the samplers, certified and rounded up.

All these distributions are symmetric about 0. For the rounded ones a tie has probability 0, so
P[round(Z) ≥ k] = P[Z ≥ k - 1/2] for every integer k. Scales and points may be int, float or
Fraction and are taken exactly. A scale that is not positive and finite is an InvalidArgument. The
functions in `TAILS` return the tail probabilities as balls at the current precision.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dpframe.errors import InvalidArgument
from dpframe.noise.certified import Ball, Number, ball, smallest_integer, upper
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


def family_tail(family: str, scale: Number, k: int) -> float:
    """P[X ≥ k] of one of the integer distributions in `TAILS`, rounded up."""
    tail, exact, point = tail_of(family), positive("scale", scale), whole("k", k)
    return min(1.0, upper(lambda: tail(exact, point)))


def tail_of(family: str) -> Callable[[Fraction, int], Ball]:
    """The tail of one of the integer distributions in `TAILS`.
    Errors: InvalidArgument for another name.
    """
    if family not in TAILS:
        raise InvalidArgument(f"family={family!r} must be one of {', '.join(map(repr, TAILS))}.")
    return TAILS[family]


def whole(name: str, value: object, least: int | None = None) -> int:
    """Return an argument as an int; any number with an integer value is accepted."""
    exact = rational(name, value)
    if exact.denominator != 1 or (least is not None and exact < least):
        raise InvalidArgument(
            f"{name}={value!r} must be an "
            f"integer{'' if least is None else f' of at least {least}'}."
        )
    return int(exact)


def rounded_reach(within: Callable[[int, int], bool], per: int, start: int = 0) -> int:
    """Smallest e ≥ 0 that |round((t + noise) / per) - round(t / per)| exceeds
    seldom enough, for every integer t.

    Input:  within(near, far): whether P[noise ≥ near] + P[noise ≥ far] is small enough; per: how
            many grid units make 1, if noisy numbers are rounded half up to multiples of it, else 1;
            start: where the search begins
    Output: e, in units of `per`
    Bound:  with t = n·per + f, -per/2 ≤ f < per/2, the noise is at least e·per + per/2 - f above or
            at least e·per + per/2 + f + 1 below. These two limits add up to (2e + 1)·per + 1 for
            each f. A tail probability is convex, so the sum is largest at the ends of f: P[noise ≥
            e·per + 1] + P[noise ≥ (e + 1)·per]. For per = 1 both are P[noise ≥ e + 1]
    Source: ours

    >>> rounded_reach(lambda near, far: near + far >= 9, 2)  # 2e + 1 and 2e + 2
    2
    """
    return smallest_integer(lambda e: e >= 0 and within(e * per + 1, (e + 1) * per), start)


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
