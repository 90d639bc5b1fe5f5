"""The noise that a price requires, and the error that it causes:
the inverses of the functions in `loss`.

Every scale, threshold and error is certified and rounded to the safe side: a scale is the smallest
float that provably meets its price (or the largest that provably meets an error). Arguments may be
int, float or Fraction; a float stands for its exact binary value, so pass a Fraction for a price
that is meant as a decimal.

The integer distributions are named by family: "laplace" and "gaussian" are real noise rounded to
the nearest integer, "discrete_laplace" is the two-sided geometric distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Literal

from dpframe.errors import InvalidArgument
from dpframe.noise import (
    Ball,
    Number,
    at_most,
    ball,
    float_up,
    halved,
    positive,
    precision,
    root_up,
    rounded_reach,
    smallest_float,
    smallest_integer,
    solve,
    tail_of,
    whole,
)
from dpframe.theory.formulas.loss.loss import (
    gaussian_profile,
    normal_quantile,
    positive_price,
    price,
    probability,
    sensitivity,
    zcdp_to_epsilon,
)

Family = Literal["laplace", "discrete_laplace", "gaussian"]
# Scales for a price


def laplace_scale(l1: Number, epsilon: Number) -> float:
    """Smallest Laplace scale for ε, whether the noise is real, rounded or discrete.

    Input:  l1, how far one unit moves the answer in L1; epsilon > 0
    Output: scale, in the units of l1
    Bound:  the smallest float that is at least l1/epsilon
    Source: Dwork, McSherry, Nissim, Smith 2006, doi:10.1007/11681878_14, Proposition 1
    Errors: InvalidArgument for a negative l1, InvalidPrice for an ε that is not positive

    >>> laplace_scale(12, Fraction(48, 100))
    25.0
    """
    return float_up(sensitivity("l1", l1) / positive_price("epsilon", epsilon))


def laplace_scale_rho(l1: Number, rho: Number) -> float:
    """Smallest Laplace scale for ρ (zero-concentrated), for real or rounded noise,
    not for discrete Laplace noise.

    Input:  l1, how far one unit moves the answer in L1; rho > 0
    Output: scale, in the units of l1
    Bound:  the smallest float at which ε + e^-ε - 1 with ε = l1/scale (`privacy.laplace_rho`) is
            surely at most rho
    Source: Harrison, Manurangsi 2025, arXiv:2510.25746
    Errors: InvalidArgument for a negative l1, InvalidPrice for a ρ that is not positive

    >>> round(laplace_scale_rho(1, 0.3678794), 4)
    1.0
    """
    length, target = sensitivity("l1", l1), positive_price("rho", rho)
    if length == 0:
        return 0.0

    def charge(scale: float) -> Ball:
        epsilon = ball(length / Fraction(scale))
        return epsilon + (-epsilon).expm1()

    # Newton's method from above for the convex ε + e^-ε - 1 = ρ; ε ≤ ρ + √2ρ.
    aim = float(target)
    epsilon = aim + math.sqrt(2 * aim)
    for _ in range(60):
        epsilon -= (epsilon + math.expm1(-epsilon) - aim) / -math.expm1(-epsilon)
    return smallest_float(
        lambda scale: scale > 0 and at_most(lambda: charge(scale), target), float(length) / epsilon
    )


def gaussian_scale_rho(
    l2: Number | None = None, rho: Number = 0, *, l2_squared: Number | None = None
) -> float:
    """Smallest Gaussian scale σ for ρ (zero-concentrated).

    Input:  l2, how far one unit moves the answer in L2, or by name l2_squared, its square; rho > 0
    Output: σ, in the units of l2
    Bound:  the smallest float with σ² ≥ l2²/(2ρ)
    Source: Bun, Steinke 2016, arXiv:1605.02065, Proposition 1.6
    Errors: InvalidArgument for a negative length or square, InvalidPrice for a ρ that is not
            positive

    >>> gaussian_scale_rho(3, 0.5), gaussian_scale_rho(l2_squared=9, rho=0.5)
    (3.0, 3.0)
    """
    return root_up(_square("gaussian_scale_rho", l2, l2_squared) / (2 * positive_price("rho", rho)))


def _square(name: str, l2: Number | None, l2_squared: Number | None) -> Fraction:
    """The square of an L2 sensitivity; the caller passes either the sensitivity or its square."""
    if (l2 is None) == (l2_squared is None):
        raise InvalidArgument(
            f"{name}: give the L2 sensitivity, l2=3, or its square, l2_squared=9."
        )
    return sensitivity("l2", l2) ** 2 if l2 is not None else sensitivity("l2_squared", l2_squared)


def rho_within(epsilon: Number, delta: Number) -> Fraction:
    """Nearly the largest ρ that implies (ε, δ): the inverse of `privacy.zcdp_to_epsilon`.

    Input:  epsilon > 0; delta in (0, 1)
    Output: ρ, rounded down
    Errors: InvalidPrice for an ε that is not positive, or a delta outside (0, 1)

    >>> zcdp_to_epsilon(rho_within(1, 1e-6), 1e-6) <= 1
    True
    """
    target = positive_price("epsilon", epsilon)
    low, high = Fraction(0), target
    # If δ is large compared with ε, ρ may be above ε.
    while zcdp_to_epsilon(high, delta) <= target:
        low, high = high, 2 * high
    return halved(lambda rho: zcdp_to_epsilon(rho, delta) > target, low, high)[0]


def gaussian_scale(
    l2: Number | None = None,
    epsilon: Number = -1,
    delta: Number = 0,
    *,
    l2_squared: Number | None = None,
) -> float:
    """Smallest Gaussian scale σ for (ε, δ), for real or rounded noise.

    Input:  l2, how far one unit moves the answer in L2, or by name l2_squared, its square; epsilon
            ≥ 0; delta in (0, 1)
    Output: σ, in the units of l2
    Bound:  the smallest float at which the exact profile (`privacy.gaussian_delta`) is surely at
            most delta
    Source: Balle, Wang 2018, arXiv:1805.06530, Theorem 8
    Errors: InvalidArgument for a negative length or square, InvalidPrice for a negative ε or a
            delta outside (0, 1)

    >>> (
    ...     round(gaussian_scale(10, 1, 1e-6), 1),
    ...     round(gaussian_scale(l2_squared=100, epsilon=1, delta=1e-6), 1),
    ... )
    (42.2, 42.2)
    """
    square = _square("gaussian_scale", l2, l2_squared)
    loss, target = price("epsilon", epsilon), probability("delta", delta)
    if square == 0:
        return 0.0

    def curve(mu: Ball) -> tuple[Ball, Ball]:
        # The slope in μ is the normal density at ε/μ - μ/2.
        middle = ball(loss) / mu - mu / 2
        return gaussian_profile(ball(loss), mu), (-middle * middle / 2).exp() / (
            2 * ball(2).pi()
        ).sqrt()

    def enough(sigma: float) -> bool:
        return sigma > 0 and at_most(
            lambda: gaussian_profile(ball(loss), ball(square).sqrt() / ball(sigma)), target
        )

    mu = solve(curve, target, _smallest_mu(float(loss), target))
    with precision(96):
        guess = float((ball(square).sqrt() / ball(mu)).mid())
    return smallest_float(enough, guess)


def _smallest_mu(epsilon: float, delta: Fraction) -> float:
    """Return a starting value for μ below the solution:
    from the first term of the profile, and from ε = 0.
    """
    quantile = normal_quantile(delta)
    root = math.sqrt(quantile * quantile + 2 * epsilon)
    alone = 2 * epsilon / (quantile + root) if quantile > 0 else root - quantile
    return max(alone, float(delta) * math.sqrt(2 * math.pi), 1e-300)


def gaussian_scales(
    l2_squareds: Sequence[Number], shares: Sequence[Number], epsilon: Number, delta: Number
) -> list[float]:
    """Gaussian scales of several columns as one mechanism under (ε, δ).

    Input:  the square of each column's L2 sensitivity; each column's share of the price, positive,
            in any unit; epsilon ≥ 0; delta in (0, 1)
    Output: σ of each column, in its own units
    Bound:  together the columns are one Gaussian mechanism with μ² = Σ l2_i²/σ_i². The largest μ²
            for (ε, δ) is split in proportion to the shares, and each σ_i is rounded up
    Source: Dong, Roth, Su 2019, arXiv:1905.02383, Corollary 2; Balle, Wang 2018, arXiv:1805.06530,
            Theorem 8
    Errors: InvalidArgument for lists of unequal length, a negative square or a share that is not
            positive; InvalidPrice for a negative ε or a delta outside (0, 1)

    >>> one, two = gaussian_scales([1, 1], [1, 3], 1, 1e-6)
    >>> round(one / two, 9) == round(3**0.5, 9)
    True
    """
    if len(l2_squareds) != len(shares):
        raise InvalidArgument(
            f"gaussian_scales: {len(l2_squareds)} sensitivities for {len(shares)} shares."
        )
    squares = [sensitivity("l2_squared", square) for square in l2_squareds]
    weights = [positive("share", share) for share in shares]
    unit = Fraction(gaussian_scale(1, epsilon, delta)) ** 2
    total = sum(weights, Fraction(0))
    return [
        root_up(square * unit * total / weight)
        for square, weight in zip(squares, weights, strict=True)
    ]


# Thresholds


def threshold(delta: Number, groups: int, family: Family, scale: Number, step: int = 1) -> int:
    """Smallest threshold T such that showing the keys with noisy value ≥ T costs at most δ.

    Input:  delta in (0, 1); groups that one unit touches; the family and scale of the noise on each
            group's value, in grid units; step, how far one unit moves the value of one group
    Output: T, in grid units
    Bound:  1 - (1 - P[noise ≥ T - step])^groups ≤ delta. A group that only this unit is in has a
            value of at most `step`; a key whose noisy value equals T is shown
    Source: Wilson et al. 2019, arXiv:1909.01917, Theorem 2
    Errors: InvalidPrice for a delta outside (0, 1); InvalidArgument for groups or step below 1, an
            unknown family, or a scale that is not positive

    >>> threshold(Fraction(1, 10**6), 1, "discrete_laplace", 1)
    15
    """
    allowed, count, reach = (
        probability("delta", delta),
        whole("groups", groups, 1),
        whole("step", step, 1),
    )
    tail, exact = tail_of(family), positive("scale", scale)

    def enough(k: int) -> bool:
        # 1 - (1-p)^m ≤ δ is p ≤ 1 - (1-δ)^(1/m).
        def slack() -> Ball:
            return -((-ball(allowed)).log1p() / count).expm1() - tail(exact, k)

        return _surely(slack)

    with precision(96):
        allowed_tail = -((-ball(allowed)).log1p() / count).expm1()
        start = _quantile(family, exact, allowed_tail)
    return reach + smallest_integer(enough, start)


def _surely(slack: Callable[[], Ball]) -> bool:
    """Whether a number is provably at least 0. If 8192 bits do not decide, the answer is False."""
    bits = 128
    while bits < 1 << 13:
        with precision(bits):
            value = slack()
            if value >= 0:
                return True
            if value < 0:
                return False
        bits *= 2
    return False


def _quantile(family: str, scale: Fraction, tail: Ball) -> int:
    """Return about the smallest integer k with P[noise ≥ k] ≤ tail."""
    if family == "gaussian":
        real = (2 * tail).erfcinv() * ball(2).sqrt() * ball(scale) + ball(0.5)
    else:
        real = (-(2 * tail).log() if 2 * tail <= 1 else (2 * (1 - tail)).log()) * ball(
            scale
        ) + ball(0.5)
    return int(real.mid().ceil().unique_fmpz() or 0)


# Errors at a confidence


def noise_error(family: Family, scale: Number, alpha: Number, *, per: int = 1) -> int:
    """Smallest e with P[|round((t + noise) / per) - round(t / per)| >
    e] ≤ alpha for every integer t.

    Input:  the family and scale of the noise, in grid units; alpha in (0, 1), the chance of a
            larger error; per: 1, or an even number of grid units that make 1: noisy numbers are
            rounded half up to multiples of it
    Output: e ≥ 0
    Bound:  see `rounded_reach`; the noise is an integer and symmetric
    Source: the tails in `dpframe.noise.tail_bounds`
    Errors: InvalidArgument for an unknown family or a scale not above 0; InvalidPrice for an alpha
            not in (0, 1)

    >>> noise_error("laplace", 25, 0.05), noise_error("laplace", 25 * 2**20, 0.05, per=2**20)
    (75, 75)
    """
    chance, tail, exact = probability("alpha", alpha), tail_of(family), positive("scale", scale)
    with precision(96):
        start = max(0, _quantile(family, exact, ball(chance / 2)) // per - 1)
    return rounded_reach(
        lambda near, far: _surely(lambda: ball(chance) - tail(exact, near) - tail(exact, far)),
        per,
        start,
    )
