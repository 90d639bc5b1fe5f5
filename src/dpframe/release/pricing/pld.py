"""Privacy loss distributions, by Google's dp-accounting: the joint cost of several mechanisms.

dp-accounting is an extra (`dpframe[pld]`) and is imported when it is first used.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from dpframe.errors import InvalidPrice, UnsupportedOperation
from dpframe.noise import halved

SLACK = Fraction(1, 10**11)  # of δ, kept back for the rounding of its Fourier transforms
STEPS = 30  # halvings: the scale is within 1e-9 of the best


def largest_parts(
    laplace: Sequence[Fraction], pure: Sequence[Fraction], epsilon: Fraction, delta: Fraction
) -> Fraction:
    """The largest c such that Laplace mechanisms of c·ε_i, and others of
    c·ε_j, are (ε, δ)-private together.

    Input:  laplace: parts ε_i of real or rounded Laplace noise; pure: parts ε_j of any ε-private
            mechanism; all parts together are at most ε; epsilon > 0, delta > 0
    Output: c >= 1, since the parts as they are cost at most ε by basic composition
    Bound:  noise on a whole vector with L1 sensitivity l1 is no worse than noise on one number that
            moves by l1: changing the coordinates one after the other, the trade-off function of the
            vector is at least the group composition of theirs (Dong, Roth, Su 2019,
            arXiv:1905.02383, on group privacy, for a chain of neighbours), which for shifts of one
            Laplace law is that of the added shift. Any ε-private mechanism is no worse than
            randomized response of ε. Distributions are discretized pessimistically and composed by
            convolution
    Source: Koskela, Jälkö, Honkela 2020, arXiv:1906.03049; Doroshenko et al. 2022, arXiv:2207.04380
    Errors: UnsupportedOperation without dp-accounting; InvalidPrice for a δ too small for its
            arithmetic
    """
    pld, common = _import()
    target_delta = delta - SLACK
    if target_delta <= 0:
        raise InvalidPrice(
            f"delta={float(delta):g} is too small for the accountant 'pld'; take at least 1e-10."
        )
    step = 1e-4 * max(1.0, float(epsilon))
    # rounded in the safe direction: a smaller ε, larger parts
    target = math.nextafter(float(epsilon), 0)
    groups = [(part, count, True) for part, count in Counter(laplace).items()]
    groups += [(part, count, False) for part, count in Counter(pure).items()]

    def private(factor: Fraction) -> bool:
        whole = None
        for part, count, noise in groups:
            size = math.nextafter(float(factor * part), math.inf)
            if noise:
                one = pld.from_laplace_mechanism(
                    math.nextafter(1 / size, 0), value_discretization_interval=step
                )
            else:
                worst = common.DifferentialPrivacyParameters(size, 0.0)
                one = pld.from_privacy_parameters(worst, value_discretization_interval=step)
            many = one.self_compose(count)
            whole = many if whole is None else whole.compose(many)
        return whole is None or whole.get_delta_for_epsilon(target) <= float(target_delta)

    low, high = Fraction(1), Fraction(2)
    while high < 2**10 and private(high):
        low, high = high, 2 * high
    return halved(lambda factor: not private(factor), low, high, STEPS)[0]


def _import() -> tuple[Any, Any]:
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError:
        privacy_loss_distribution = None
    if privacy_loss_distribution is None:
        raise UnsupportedOperation(
            "The accountant 'pld' needs dp-accounting: pip install dp-accounting."
        )
    return privacy_loss_distribution, common
