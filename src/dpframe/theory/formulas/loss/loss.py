"""The privacy loss (ε, δ or ρ) of noise of a given scale, and conversions between losses.

Every result is certified in ball arithmetic and rounded up. So a published ε, δ or ρ is never below
the exact value, and above it by one or two units in the last place. Arguments may be int, float or
Fraction; a float stands for its exact binary value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from dpframe.errors import InvalidArgument, InvalidPrice
from dpframe.noise import (
    Ball,
    Number,
    at_most,
    ball,
    float_up,
    halved,
    positive,
    precision,
    rational,
    root_up,
    smallest_float,
    solve,
    upper,
    whole,
)
from dpframe.theory.exact import Root, fraction_above, square

# Arguments


def sensitivity(name: str, value: object) -> Fraction:
    """Return a sensitivity (or its square), at least 0, as an exact number."""
    exact = rational(name, value)
    if exact < 0:
        raise InvalidArgument(f"{name}={value!r} must be at least 0.")
    return exact


def price(name: str, value: object) -> Fraction:
    """Return an ε, ρ or μ, finite and at least 0, as an exact number."""
    try:
        exact = rational(name, value)
    except InvalidArgument:
        exact = Fraction(-1)
    if exact < 0:
        raise InvalidPrice(f"{name}={value!r} must be a finite number that is at least 0.")
    return exact


def positive_price(name: str, value: Number) -> Fraction:
    """Return an ε or ρ above 0 as an exact number."""
    exact = price(name, value)
    if exact == 0:
        raise InvalidPrice(f"{name}={value!r} must be positive.")
    return exact


def probability(name: str, value: object, *, closed: bool = False) -> Fraction:
    """Return a δ or α as an exact number. It must lie in (0, 1), or in [0, 1] if `closed`."""
    exact = price(name, value)
    if exact > 1 or (not closed and exact in (0, 1)):
        raise InvalidPrice(
            f"{name}={value!r} must lie {'in [0, 1]' if closed else 'strictly between 0 and 1'}."
        )
    return exact


def price_up(x: Fraction) -> float:
    """Return a rational price as the float that prints as exactly this decimal,
    or rounded up if there is none.

    The float 0.48 stands for exactly 48/100, as it prints.
    """
    near = float_up(x)
    for guess in (near, math.nextafter(near, 0)):
        if math.isfinite(guess) and Fraction(repr(guess)) == x:
            return guess
    return near


# Laplace


def laplace_epsilon(l1: Number, scale: Number) -> float:
    """ε of Laplace noise, real, rounded or discrete.

    Input:  l1, how far one unit moves the answer in L1; scale of the noise, in the same units
    Output: ε
    Bound:  l1/scale, rounded up; rounding the real noise is post-processing
    Source: Dwork, McSherry, Nissim, Smith 2006, doi:10.1007/11681878_14, Proposition 1
    Errors: InvalidArgument for a negative l1 or a scale that is not positive

    >>> laplace_epsilon(12, 25)
    0.48
    """
    return price_up(laplace_loss(sensitivity("l1", l1), positive("scale", scale)))


def laplace_loss(l1: Fraction | Root, scale: Fraction) -> Fraction:
    """ε of Laplace noise as an exact number; `laplace_epsilon` rounds it to a float.

    >>> laplace_loss(Fraction(3), Fraction(10))
    Fraction(3, 10)
    """
    return fraction_above(l1) / scale


def laplace_rho(l1: Number, scale: Number) -> float:
    """ρ (zero-concentrated) of real or rounded Laplace noise.

    Input:  l1, how far one unit moves the answer in L1; scale of the noise, in the same units
    Output: ρ, below ε·tanh(ε/2), the bound for an arbitrary ε-private mechanism
    Bound:  ε + e^-ε - 1 with ε = l1/scale. This is convex and 0 at 0, so several columns that share
            l1 cost no more
    Source: Harrison, Manurangsi 2025, arXiv:2510.25746
    Errors: InvalidArgument for a negative l1 or a scale that is not positive

    >>> round(laplace_rho(1, 1), 6)
    0.367879
    """
    epsilon = laplace_loss(sensitivity("l1", l1), positive("scale", scale))
    return upper(lambda: ball(epsilon) + (-ball(epsilon)).expm1()) if epsilon else 0.0


# Gaussian


def gaussian_rho(l2: Number, scale: Number) -> float:
    """ρ (zero-concentrated) of Gaussian noise, real, rounded or discrete.

    Input:  l2, how far one unit moves the answer in L2; scale (standard deviation σ) in the same
            units
    Output: ρ
    Bound:  l2²/(2σ²); for several columns, μ²/2 with `gaussian_mu`
    Source: Bun, Steinke 2016, arXiv:1605.02065, Proposition 1.6; discrete: Canonne, Kamath, Steinke
            2020
    Errors: InvalidArgument for a negative l2 or a scale that is not positive

    >>> gaussian_rho(1, 1)
    0.5
    """
    return price_up(gaussian_loss(sensitivity("l2", l2), positive("scale", scale)))


def gaussian_loss(l2: Fraction | Root, scale: Fraction) -> Fraction:
    """ρ of Gaussian noise as an exact number; `gaussian_rho` rounds it to a float.

    >>> gaussian_loss(Root(Fraction(2)), Fraction(1))
    Fraction(1, 1)
    """
    return square(l2) / (2 * scale * scale)


def gaussian_mu(l2_squareds: Sequence[Number], scales: Sequence[Number]) -> float:
    """μ of several Gaussian columns as one mechanism.

    Input:  the square of each column's L2 sensitivity, exact; the standard deviation σ of each
            column's noise
    Output: μ, the L2 sensitivity of all columns in units of their noise
    Bound:  √Σ l2_i²/σ_i²: with each column divided by its σ, all columns together have spherical
            Gaussian noise
    Source: Dong, Roth, Su 2019, arXiv:1905.02383, Corollary 2
    Errors: InvalidArgument for lists of unequal length, a negative square or a scale that is not
            positive

    >>> gaussian_mu([9, 16], [1, 1])
    5.0
    """
    if len(l2_squareds) != len(scales):
        raise InvalidArgument(
            f"gaussian_mu: {len(l2_squareds)} sensitivities for {len(scales)} scales."
        )
    square = sum(
        (
            sensitivity("l2_squared", square) / positive("scale", scale) ** 2
            for square, scale in zip(l2_squareds, scales, strict=True)
        ),
        Fraction(0),
    )
    return root_up(square)


def gaussian_profile(epsilon: Ball, mu: Ball) -> Ball:
    """δ(ε) of Gaussian noise at the current precision, ε ≥ 0 and μ > 0."""
    root = ball(2).sqrt()
    middle, half = epsilon / mu, mu / 2
    return (((middle - half) / root).erfc() - epsilon.exp() * ((middle + half) / root).erfc()) / 2


def gaussian_delta(epsilon: Number, mu: Number) -> float:
    """δ at this ε of real or rounded Gaussian noise: the exact privacy profile.

    Input:  epsilon ≥ 0; mu, the L2 sensitivity divided by σ (`gaussian_mu`)
    Output: δ
    Bound:  Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ), in any dimension
    Source: Balle, Wang 2018, arXiv:1805.06530, Theorem 8
    Errors: InvalidPrice for a negative ε or μ

    >>> gaussian_delta(1, 0.2367) < 1e-6 < gaussian_delta(1, 0.2368)
    True
    """
    loss, distance = price("epsilon", epsilon), price("mu", mu)
    return (
        min(1.0, upper(lambda: gaussian_profile(ball(loss), ball(distance)))) if distance else 0.0
    )


def gaussian_epsilon(delta: Number, mu: Number) -> float:
    """Smallest ε of real or rounded Gaussian noise at this δ.

    Input:  delta in (0, 1); mu, the L2 sensitivity divided by σ (`gaussian_mu`)
    Output: ε
    Bound:  the solution of `gaussian_delta` = delta, rounded up; 0 if the total variation is at
            most delta
    Source: Balle, Wang 2018, arXiv:1805.06530, Theorem 8
    Errors: InvalidPrice for a delta outside (0, 1) or a negative μ

    >>> round(gaussian_epsilon(1e-6, 1), 4)
    4.8866
    """
    target, distance = probability("delta", delta), price("mu", mu)

    if distance == 0:
        return 0.0

    def curve(epsilon: Ball) -> tuple[Ball, Ball]:
        reach = (epsilon / ball(distance) + ball(distance) / 2) / ball(2).sqrt()
        return gaussian_profile(epsilon, ball(distance)), -epsilon.exp() * reach.erfc() / 2

    def enough(epsilon: float) -> bool:
        return at_most(lambda: gaussian_profile(ball(epsilon), ball(distance)), target)

    if enough(0.0):
        return 0.0
    # Without its second term the profile is Φ(μ/2 - ε/μ), which gives ε in closed form and slightly
    # too large.
    size = float_up(distance)
    return smallest_float(
        enough, solve(curve, target, size * size / 2 + size * normal_quantile(target))
    )


def normal_quantile(tail: Fraction) -> float:
    """Return the approximate z with P[N ≥ z] = tail."""
    with precision(64):
        return float((ball(2 * tail).erfcinv() * ball(2).sqrt()).mid())


# Randomized response


def response_epsilon(keep: Fraction, choices: int) -> float:
    """ε of answering truly with probability `keep`, and otherwise with one
    of the other choices at random.

    Input:  keep in [1/choices, 1); choices (count, at least 2)
    Output: ε, rounded up
    Bound:  ln(keep·(choices - 1)/(1 - keep)): the log ratio of the probability of the true answer
            to that of one other answer. A value outside the choices is answered uniformly; its
            probability 1/choices lies between the two
    Source: Kairouz, Oh and Viswanath 2014, arXiv:1407.1338
    Errors: none here

    >>> response_epsilon(Fraction(1, 4), 4)
    0.0
    """
    ratio = keep * (choices - 1) / (1 - keep)
    return upper(lambda: ball(ratio).log()) if ratio > 1 else 0.0


# Thresholds


def threshold_delta(tail: Number, groups: int) -> float:
    """δ of showing keys by a threshold.

    Input:  tail, the probability that a group with one unit only reaches the threshold; groups that
            one unit touches
    Output: δ = 1 - (1 - tail)^groups
    Bound:  the noises of the groups are independent, so all keys that only this unit has stay
            hidden with probability (1 - tail)^groups. A value equal to the threshold is shown. So
            with integer noise, threshold T and a unit that moves each group by s, the tail is
            P[noise ≥ T - s]
    Source: Wilson et al. 2019, arXiv:1909.01917, Theorem 2; Desfontaines et al. 2020,
            arXiv:2006.03684
    Errors: InvalidPrice for a tail outside [0, 1]; InvalidArgument for fewer than 0 groups

    >>> threshold_delta(1e-6, 1), threshold_delta(1e-6, 20)
    (1e-06, 1.9999810001139996e-05)
    """
    chance, count = probability("tail", tail, closed=True), whole("groups", groups, 0)
    if count == 0 or chance in (0, 1):
        return float(chance) if count else 0.0
    if count == 1:
        return float_up(chance)
    return min(1.0, upper(lambda: -(count * (-ball(chance)).log1p()).expm1()))


# Zero-concentrated privacy


def pure_to_zcdp(epsilon: Number) -> float:
    """ρ of any mechanism that is ε-private.

    Input:  epsilon ≥ 0
    Output: ρ
    Bound:  ε·tanh(ε/2), attained by randomized response; below the older ε²/2
    Source: Harrison, Manurangsi 2025, arXiv:2510.25746, Section 1
    Errors: InvalidPrice for a negative ε

    >>> pure_to_zcdp(1) < 0.4622 < 0.5
    True
    """
    loss = price("epsilon", epsilon)
    return upper(lambda: ball(loss) * ball(loss / 2).tanh()) if loss else 0.0


def bounded_range_rho(epsilon: Number) -> float:
    """ρ of the exponential mechanism, or of another mechanism whose log ratios
    lie in one interval of length ε.

    Input:  epsilon ≥ 0
    Output: ρ
    Bound:  ε²/8: a loss of bounded range is subgaussian (Hoeffding)
    Source: Cesar, Rogers 2021, arXiv:2004.07223, Lemma 3.4; Dong, Durfee, Rogers 2020,
            arXiv:1909.13830, for the range
    Errors: InvalidPrice for a negative ε

    >>> bounded_range_rho(2)
    0.5
    """
    return price_up(price("epsilon", epsilon) ** 2 / 8)


def zcdp_to_delta(rho: Number, epsilon: Number) -> float:
    """δ at this ε of any mechanism that is ρ-zero-concentrated.

    Input:  rho ≥ 0; epsilon ≥ 0
    Output: δ
    Bound:  exp((α-1)(αρ-ε))/(α-1)·(1-1/α)^α. It holds for each α > 1; a nearly optimal α is used
    Source: Canonne, Kamath, Steinke 2020, arXiv:2004.00010, Corollary 13
    Errors: InvalidPrice for a negative ρ or ε

    >>> zcdp_to_delta(0.5, 10) < 1e-9
    True
    """
    charge, loss = price("rho", rho), price("epsilon", epsilon)
    if charge == 0:
        return 0.0
    slope, bend = float(charge), float(loss)
    # The logarithm of the bound is stationary where (2α-1)ρ - ε + ln(1-1/α) = 0; the left side
    # rises with α.
    order = _increasing_root(lambda t: (2 * t + 1) * slope - bend - math.log1p(1 / t))
    above, alpha = ball(order), 1 + Fraction(order)
    return min(
        1.0,
        upper(
            lambda: (
                (above * ball(alpha * charge - loss)).exp()
                / above
                * (-ball(alpha) * (1 / above).log1p()).exp()
            )
        ),
    )


def zcdp_to_epsilon(rho: Number, delta: Number) -> float:
    """ε at this δ of any mechanism that is ρ-zero-concentrated.

    Input:  rho ≥ 0; delta in (0, 1)
    Output: ε
    Bound:  αρ + (ln(1/δ) - ln α)/(α-1) + ln(1-1/α). It holds for each α > 1; a nearly optimal α is
            used
    Source: Canonne, Kamath, Steinke 2020, arXiv:2004.00010, Corollary 13 solved for ε
    Errors: InvalidPrice for a negative ρ or a delta outside (0, 1)

    >>> round(zcdp_to_epsilon(0.5, 1e-6), 4)
    5.2215
    """
    charge, target = price("rho", rho), probability("delta", delta)
    if charge == 0:
        return 0.0
    alpha = zcdp_order(charge, target)

    def loss() -> Ball:
        above = ball(alpha - 1)
        exact = (
            ball(alpha * charge)
            - (ball(target).log() + ball(alpha).log()) / above
            - (1 / above).log1p()
        )
        return exact.nonnegative_part()

    return upper(loss)


def zcdp_order(rho: Fraction, delta: Fraction) -> Fraction:
    """The nearly optimal α with which `zcdp_to_epsilon` converts ρ > 0 at a δ."""
    slope, cost = float(rho), -_logarithm(delta)
    return 1 + Fraction(_increasing_root(lambda t: t * t * slope - cost + math.log1p(t)))


def _increasing_root(function: Callable[[float], float]) -> float:
    """Return the approximate t > 0 at which an increasing function is 0, between e^-60 and e^60."""
    return math.exp(halved(lambda x: function(math.exp(x)) > 0, -60.0, 60.0)[1])


def _logarithm(x: Fraction) -> float:
    """Return ln(x) approximately, also for an x below the smallest float."""
    return math.log(x.numerator) - math.log(x.denominator)
