"""Gaussian differential privacy: the μ² of pure mechanisms, and what a μ² costs in (ε, δ).

A mechanism is μ-GDP if telling two neighbours apart by its answer is at least as hard as telling a
standard normal number from one that is moved by μ. The squares of μ add up, also if each mechanism
and its μ depend on earlier answers. Every figure is certified in ball arithmetic and rounded to the
safe side.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from dpframe.noise import ball, float_up, halved, root_up, upper
from dpframe.theory.formulas.loss.calibration import gaussian_scale
from dpframe.theory.formulas.loss.loss import gaussian_delta, gaussian_epsilon

_CLOSED = Fraction(100)  # above this ε the closed bound is used
_PI = Fraction(3141593, 10**6)  # rounded up
_LEAST = Fraction(1, 10**300)  # of a δ at which a search begins


@lru_cache(4096)
def pure_to_gdp(epsilon: Fraction) -> Fraction:
    """μ² of any mechanism that is ε-private.

    Input:  epsilon >= 0
    Output: μ², rounded up
    Bound:  μ = -2·Φ⁻¹(p) with p = 1 / (1 + e^ε). The trade-off function of ε-privacy consists of
            the chords from (0, 1) to (p, p) and from there to (1, 0). The trade-off function of μ
            is convex and goes through these three points, so it is nowhere above the chords.
            Randomized response attains it, and so does discrete Laplace noise on a count that moves
            by 1. Above ε = 100: erfc(y) <= e^(-y²), so μ² = 8·erfcinv(2p)² <= 8·ε
    Source: Dong, Roth, Su 2019, arXiv:1905.02383, for trade-off functions
    Errors: none here

    >>> round(float(pure_to_gdp(Fraction(1))), 4)
    1.5179
    """
    if not epsilon:
        return Fraction(0)
    if epsilon > _CLOSED:
        return 8 * epsilon
    return Fraction(upper(lambda: 8 * (2 / (1 + ball(epsilon).exp())).erfcinv() ** 2))


def range_to_gdp(rho: Fraction) -> Fraction:
    """μ² of choices by the exponential mechanism that together have this ρ.

    Input:  rho >= 0: the sum of w²/8 over choices whose log ratios, for each two neighbours, lie in
            an interval of length w
    Output: π·ρ, rounded up; Gaussian noise of this ρ has 2·ρ
    Bound:  let the ratios P/Q lie in [e^(t-w), e^t]. Their mean under Q is 1. Among all laws on
            this interval with mean 1, the one on both ends alone is the largest in convex order, so
            it has the smallest trade-off function. It has one corner, (1 - p, q), with logit(p) -
            logit(q) = w. The trade-off function of a μ is convex and so nowhere above the two
            chords if it is not above the corner: if μ >= Ψ(x + w) - Ψ(x), where Ψ = Φ⁻¹∘σ, σ is the
            logistic function and x = logit(q). The inverse of Ψ is y(z) = ln Φ(z) - ln Φ(-z), with
            the slope h(z) + h(-z) for the hazard h(z) = φ(z)/Φ(-z), which is convex. So for z > 0
            this slope grows, and Ψ is concave there; and Ψ is odd. So its slope is largest in 0 and
            falls on both sides, and the difference is largest where x = -w/2: 2·Ψ(w/2), which is at
            most w·Ψ'(0) = w·√(2π)/4. The squares are π·w²/8, and add up
    Source: Dong, Durfee, Rogers 2020, arXiv:1909.13830, for the law on both ends; Sampford 1953,
            doi:10.1214/aoms/1177729093, for the hazard; the bound by one μ is ours
    Errors: none here

    >>> float(range_to_gdp(Fraction(1, 8))), float(range_to_gdp(Fraction(1)))
    (0.392699125, 3.141593)
    """
    return rho * _PI


@lru_cache(4096)
def gdp_to_pure(mu_squared: Fraction) -> Fraction:
    """Nearly the largest ε such that every ε-private mechanism has at most this μ².

    Input:  mu_squared >= 0
    Output: ε, rounded down, so that `pure_to_gdp` of it is at most mu_squared

    >>> pure_to_gdp(gdp_to_pure(Fraction(1, 100))) <= Fraction(1, 100)
    True
    """
    most = 2 * Fraction(root_up(mu_squared)) + mu_squared
    return halved(lambda epsilon: pure_to_gdp(epsilon) > mu_squared, Fraction(0), most, 50)[0]


@lru_cache(1024)
def gdp_within(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest μ² that implies (ε, δ).

    Input:  epsilon > 0; delta in [0, 1)
    Output: μ², rounded down; 0 with δ = 0
    Bound:  1/σ² for the smallest scale σ that surely meets (ε, δ) on a number that moves by 1: see
            `gaussian_scale`
    Source: Dong, Roth, Su 2019, arXiv:1905.02383, Corollary 1; Balle, Wang 2018, arXiv:1805.06530,
            Theorem 8

    >>> round(float(gdp_within(Fraction(1), Fraction(1, 10**6))) ** 0.5, 4)
    0.2367
    """
    return 1 / Fraction(gaussian_scale(1, epsilon, delta)) ** 2 if delta else Fraction(0)


@lru_cache(1024)
def gdp_to_epsilon(mu_squared: Fraction, delta: Fraction) -> Fraction:
    """ε at this δ of any mechanism with this μ², rounded up.

    >>> round(float(gdp_to_epsilon(Fraction(1), Fraction(1, 10**6))), 4)
    4.8866
    """
    return Fraction(gaussian_epsilon(delta, root_up(mu_squared))) if mu_squared else Fraction(0)


@lru_cache(1024)
def gdp_in_proportion(mu_squared: Fraction, rate: Fraction) -> Fraction:
    """The ε of a mechanism with this μ² whose δ is at most rate·ε.

    Input:  mu_squared >= 0; rate > 0, the δ that each unit of ε may have
    Output: ε, rounded up: the mechanism is (ε, rate·ε)-private
    Bound:  `gaussian_delta`(ε, μ) <= rate·ε, checked for the ε that is returned. δ falls in ε, and
            rate·ε rises
    Source: Dong, Roth, Su 2019, arXiv:1905.02383, Corollary 1

    >>> epsilon = gdp_in_proportion(Fraction(1, 100), Fraction(1, 10**6))
    >>> gaussian_delta(epsilon, Fraction(1, 10)) <= epsilon / 10**6
    True
    """
    if not mu_squared:
        return Fraction(0)
    mu, epsilon = root_up(mu_squared), Fraction(1)
    # The right side moves by the logarithm of ε alone, so this hardly changes after four steps.
    for _ in range(4):
        epsilon = (
            Fraction(gaussian_epsilon(min(max(rate * epsilon, _LEAST), Fraction(1, 2)), mu)) or rate
        )
    step = epsilon / 2**40
    while gaussian_delta(epsilon, mu) > rate * epsilon:
        epsilon, step = Fraction(float_up(epsilon + step)), 2 * step
    return epsilon
