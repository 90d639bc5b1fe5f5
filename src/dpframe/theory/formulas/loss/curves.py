"""Curves of loss: of Laplace noise, at every ε and every Rényi order.

Laplace noise has two families: real noise, which may be rounded to a grid afterwards at no cost,
and discrete noise (two-sided geometric) on the integers. All results are certified and rounded up.
Arguments may be int, float or Fraction; a float stands for its exact binary value.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpframe.errors import InvalidArgument
from dpframe.noise import Ball, Number, ball, positive, rational, upper
from dpframe.theory.formulas.loss.loss import price, sensitivity


def laplace_delta(epsilon: Number, l1: Number, scale: Number) -> float:
    """δ at this ε of real Laplace noise on one number.

    Input:  epsilon ≥ 0; l1, how far the number moves, and the scale, in the same units
    Output: δ
    Bound:  1 - e^((ε - l1/scale)/2) if ε is below l1/scale, otherwise 0. The privacy loss is at
            least ε for noise below (l1 - ε·scale)/2, and both probabilities of this event are
            integrals of exponentials
    Source: Balle, Barthe and Gaboardi 2018, arXiv:1807.01647, theorem 3
    Errors: InvalidPrice for a negative ε; InvalidArgument for a negative l1 or a scale that is not
            positive

    >>> round(laplace_delta(0.5, 1, 1), 6) == round(1 - math.exp(-0.25), 6)
    True
    """
    excess = sensitivity("l1", l1) / positive("scale", scale) - price("epsilon", epsilon)
    return upper(lambda: -(ball(-excess / 2).expm1())) if excess > 0 else 0.0


def discrete_laplace_delta(epsilon: Number, l1: int, scale: Number) -> float:
    """δ at this ε of discrete Laplace noise on one integer.

    Input:  epsilon ≥ 0; l1, how far the integer moves (whole); scale
    Output: δ
    Bound:  with a = e^(-1/scale) and m the largest whole number below (l1 - ε·scale)/2, the loss
            exceeds ε for noise up to m, and δ = P[X ≤ m] - e^ε·P[X ≤ m - l1] = 1 - (a^(m+1) +
            e^ε·a^(l1-m))/(1+a)
    Source: by definition, with the tails of the two-sided geometric law (Ghosh, Roughgarden and
            Sundararajan 2009)
    Errors: InvalidPrice for a negative ε; InvalidArgument for an l1 that is not whole or a scale
            that is not positive

    >>> round(discrete_laplace_delta(0, 1, 1), 6) == round(math.tanh(0.5), 6)
    True
    """
    distance, width, loss = _whole(l1), positive("scale", scale), price("epsilon", epsilon)
    if loss * width >= distance:
        return 0.0
    m = math.ceil((distance - loss * width) / 2) - 1

    def delta() -> Ball:
        near, far = (
            ball(-Fraction(m + 1) / width).exp(),
            ball(loss - Fraction(distance - m) / width).exp(),
        )
        return 1 - (near + far) / (1 + ball(-1 / width).exp())

    return min(1.0, upper(delta))


def laplace_renyi(alpha: Number, l1: Number, scale: Number) -> float:
    """Rényi divergence of order alpha of real Laplace noise.

    Input:  alpha > 1; l1, how far the answer moves in L1, and the scale, in the same units
    Output: ε of Rényi privacy at this order
    Bound:  ln(α/(2α-1)·e^((α-1)x) + (α-1)/(2α-1)·e^(-αx))/(α-1) with x = l1/scale. It is convex in
            x (the logarithm of a sum of exponentials) and 0 at 0, so a vector costs most if one
            entry changes by all of l1
    Source: Mironov 2017, arXiv:1702.07476, proposition 6; the argument for vectors is ours
    Errors: InvalidArgument for an order that is not above 1, a negative l1 or a scale that is not
            positive

    >>> round(laplace_renyi(2, 1, 1), 6) == round(
    ...     math.log(2 / 3 * math.e + 1 / 3 * math.exp(-2)), 6
    ... )
    True
    """
    order, x = _order(alpha), sensitivity("l1", l1) / positive("scale", scale)

    def divergence() -> Ball:
        up, down = ball((order - 1) * x).expm1(), ball(-order * x).expm1()
        return (
            ball(order / (2 * order - 1)) * up + ball((order - 1) / (2 * order - 1)) * down
        ).log1p() / ball(order - 1)

    return upper(divergence) if x else 0.0


def discrete_laplace_renyi(alpha: Number, l1: int, scale: Number) -> float:
    """Rényi divergence of order alpha of discrete Laplace noise on integers.

    Input:  alpha > 1; l1, how far the answer moves in L1 (whole); scale
    Output: ε of Rényi privacy at this order
    Bound:  ln(A·e^((α-1)x) + B·e^(-αx))/(α-1) with x = l1/scale, a = e^(-1/scale), r =
            e^(-(2α-1)/scale), and A = (1 - a·r)/((1+a)(1-r)), B = (a - r)/((1+a)(1-r)), which add
            up to 1: the sum over all integers of p^α·q^(1-α) is three geometric series. It is
            convex in l1, so it also holds for vectors, as for real noise
    Source: by definition (Mironov 2017, definition 3)
    Errors: InvalidArgument for an order that is not above 1, an l1 that is not whole or a scale
            that is not positive

    >>> laplace_renyi(2, 1, 1) < discrete_laplace_renyi(2, 1, 1) < 1
    True
    """
    order, distance, width = _order(alpha), _whole(l1), positive("scale", scale)
    x = distance / width

    def divergence() -> Ball:
        a, r = ball(-1 / width).exp(), ball(-(2 * order - 1) / width).exp()
        up, down = ball((order - 1) * x).expm1(), ball(-order * x).expm1()
        return (((1 - a * r) * up + (a - r) * down) / ((1 + a) * (1 - r))).log1p() / ball(order - 1)

    return upper(divergence) if x else 0.0


def _order(alpha: Number) -> Fraction:
    order = rational("alpha", alpha)
    if order <= 1:
        raise InvalidArgument(f"alpha={alpha!r}: a Rényi order is above 1.")
    return order


def _whole(l1: Number) -> int:
    distance = sensitivity("l1", l1)
    if distance.denominator != 1:
        raise InvalidArgument(f"l1={l1!r}: integers differ by a whole number.")
    return distance.numerator
