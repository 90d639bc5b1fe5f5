"""The (ε, δ) that follows from a Rényi loss at every order, and the Rényi loss for a group of several units."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpframe.noise import Number, ball, upper
from dpframe.theory.formulas.loss.loss import price, price_up, probability

__all__ = ["group_renyi", "renyi_to_delta", "renyi_to_epsilon"]

Curve = Callable[[float], float]

_ORDERS = [1 + 2.0**k for k in range(-8, 25)]


def renyi_to_delta(curve: Curve, epsilon: Number) -> float:
    """δ at this ε of a mechanism whose Rényi divergence at each order α is at most curve(α).

    Input:  curve: order above 1 to ε of Rényi privacy, never below the truth; epsilon ≥ 0
    Output: δ
    Bound:  exp((α-1)(curve(α)-ε))/(α-1)·(1-1/α)^α. It holds for each α > 1; a nearly optimal α is used
    Source: Canonne, Kamath, Steinke 2020, arXiv:2004.00010, Proposition 12: the best bound from one order
    Errors: InvalidPrice for a negative ε

    >>> renyi_to_delta(lambda order: 0.5 * order, 10) < 1e-9
    True
    """
    loss = price("epsilon", epsilon)

    def exponent(order: float) -> float:
        return (order - 1) * (curve(order) - float(loss)) - math.log(order - 1) + order * math.log1p(-1 / order)

    alpha = Fraction(_least(exponent))
    if math.isinf(curve(float(alpha))):
        return 1.0
    renyi_loss = Fraction(curve(float(alpha)))
    above = ball(alpha - 1)
    bound = upper(lambda: (above * ball(renyi_loss - loss) + ball(alpha) * ball(1 - 1 / alpha).log()).exp() / above)
    return min(1.0, bound)


def renyi_to_epsilon(curve: Curve, delta: Number) -> float:
    """ε at this δ of a mechanism whose Rényi divergence at each order α is at most curve(α).

    Input:  curve as in `renyi_to_delta`; delta in (0, 1)
    Output: ε
    Bound:  curve(α) + (ln(1/δ) - ln α)/(α-1) + ln(1-1/α). It holds for each α > 1; a nearly optimal α is used
    Source: Canonne, Kamath, Steinke 2020, arXiv:2004.00010, Proposition 12, solved for ε
    Errors: InvalidPrice for a delta outside (0, 1)

    >>> round(renyi_to_epsilon(lambda order: 0.5 * order, 1e-6), 4)
    5.2215
    """
    target = probability("delta", delta)
    cost = math.log(target.denominator) - math.log(target.numerator)

    def implied(order: float) -> float:
        return curve(order) + (cost - math.log(order)) / (order - 1) + math.log1p(-1 / order)

    alpha = Fraction(_least(implied))
    if math.isinf(curve(float(alpha))):
        return math.inf
    renyi_loss = Fraction(curve(float(alpha)))
    return upper(
        lambda: (
            ball(renyi_loss) - (ball(target).log() + ball(alpha).log()) / ball(alpha - 1) + ball(1 - 1 / alpha).log()
        ).nonnegative_part()
    )


def _least(function: Callable[[float], float]) -> float:
    """Approximately the order at which a function is smallest. The caller's bound holds at any order."""
    usable = [order for order in _ORDERS if math.isfinite(function(order))]
    if not usable:
        return 2.0
    best = min(usable, key=function)
    low, high = math.log((best - 1) / 2), math.log((best - 1) * 2)
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(40):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        if function(1 + math.exp(a)) <= function(1 + math.exp(b)):
            high = b
        else:
            low = a
    near = 1 + math.exp((low + high) / 2)
    return near if function(near) <= function(best) else best


def group_renyi(curve: Curve, alpha: Number, size: int) -> float:
    """Rényi loss at one order for a group of several units.

    Input:  curve for one unit, as in `renyi_to_delta`; alpha > 1; size, how many units are in the group
    Output: ε of Rényi privacy at alpha
    Bound:  D_α(P‖R) ≤ (α-1/p)/(α-1)·D_{pα}(P‖Q) + D_β(Q‖R) with 1/p + 1/q = 1 and β = q(α-1/p), for each p > 1; here
            the first unit takes p = size, then the rest follow one by one. For curve(α) = ρα the result is about
            size²·ρ·α, as for zCDP
    Source: Mironov 2017, arXiv:1702.07476, proposition 11 (the weak triangle inequality, by Hölder)
    Errors: none here

    >>> group_renyi(lambda order: order, 2.0, 1)
    2.0
    """
    order, total = Fraction(alpha), Fraction(0)
    for units in range(size, 1, -1):
        p = Fraction(units)
        total += (order - 1 / p) / (order - 1) * Fraction(curve(_order_up(p * order)))
        order = (order - 1 / p) * p / (p - 1)
    return price_up(total + Fraction(curve(_order_up(order))))


def _order_up(order: Fraction) -> float:
    """The smallest float that is not below an order; a Rényi divergence does not decrease with its order."""
    near = float(order)
    return near if Fraction(near) >= order else math.nextafter(near, math.inf)
