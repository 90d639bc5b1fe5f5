"""The price of showing keys that are found in the data, when nothing but the number of units decides."""

from __future__ import annotations

from fractions import Fraction

from dpframe.noise.certified import Number, ball, float_down, precision, round_down
from dpframe.noise.partition import keep_probability
from dpframe.noise.tails import whole
from dpframe.theory.maps.calibration import laplace_scale
from dpframe.theory.maps.privacy import probability

__all__ = ["as_likely_as_not", "selection_scale", "selection_start"]


def selection_scale(groups: int, epsilon: Number) -> float:
    """Scale of the optimal rule (`keep_probability`): each key has the rate 1/scale.

    Input:  groups: keys whose number of units differs between neighbouring tables, each by 1: `l0` of
            `sensitivity.unit_counts`, m under add-remove and 2m under replace; epsilon > 0, for all keys together
    Output: scale (units): groups/epsilon, rounded up
    Bound:  with ε' = epsilon/groups and δ' = `selection_start`: a key with n units is kept with probability π(n), and
            π(n+1) <= e^ε'·π(n) + δ' and 1 - π(n) <= e^ε'·(1 - π(n+1)) + δ'. Kept and not kept are all that can come of
            a key, and the same two inequalities hold the other way round since π increases; so for one key of which
            one unit is added or taken the rule is (ε', δ')-private. Keys are drawn independently, only `groups` of them
            differ, and those together are (groups·ε', 1 - (1 - δ')^groups)-private. A key without units is never kept
            (π(0) = 0), so that it need not be known. In ρ: see `ranks.choices_rho`
    Source: Desfontaines, Voss, Gipson, Mandayam 2020, arXiv:2006.03684, Theorem 1 (no rule of this ε' and δ' keeps any
            key more often); Kairouz, Oh, Viswanath 2015, arXiv:1311.0776, Theorem 3.3, for the composition
    Errors: InvalidArgument for a negative number of groups, InvalidPrice for an ε that is not positive

    >>> selection_scale(3, 1)
    3.0
    """
    return laplace_scale(whole("groups", groups, 1), epsilon)


def selection_start(delta: Number, groups: int) -> Fraction:
    """The probability with which the optimal rule keeps a key of one unit: δ' for each key.

    Input:  delta in (0, 1), for all keys together; groups as in `selection_scale`
    Output: δ', rounded down to a float
    Bound:  1 - (1 - δ')^groups <= delta
    Source: as `selection_scale`
    Errors: InvalidPrice for a delta outside (0, 1); InvalidArgument for fewer than one group

    >>> 0.5 - 1e-16 < selection_start(0.75, 2) <= 0.5
    True
    """
    allowed, count = probability("delta", delta), whole("groups", groups, 1)
    if count == 1:
        return Fraction(float_down(allowed))
    with precision(128):
        return Fraction(round_down(-((-ball(allowed)).log1p() / count).expm1()))


def as_likely_as_not(scale: float, start: Number) -> int:
    """The smallest number of units at which the optimal rule keeps a key with probability 1/2 or more.

    Input:  scale and start of the rule
    Output: units: what a threshold is to a noisy count, which is above it with probability 1/2 there

    >>> as_likely_as_not(1.0, 0.5), as_likely_as_not(1.0, 1e-6)
    (1, 14)
    """
    rate = 1 / Fraction(scale)
    high = 1
    while keep_probability(high, rate, start)[1] < 0.5:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keep_probability(middle, rate, start)[1] < 0.5 else (low, middle)
    return high
