"""What window noise (K-norm noise) costs, and how far off one cell may be."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dpframe.errors import InvalidArgument
from dpframe.noise import MOST_CELLS, Number, at_most, float_up, positive, rounded_reach, whole, window_tail
from dpframe.theory.formulas.loss.loss import positive_price, probability, sensitivity


def window_scale(linf: Number, epsilon: Number, *, vectors: int = 1) -> float:
    """Smallest scale of window noise for ε, on totals to which each unit adds numbers of one sign.

    Input:  linf, the largest number that one unit adds to one group; epsilon > 0; vectors: 1 if a unit joins or leaves,
            2 if one takes the place of another
    Output: scale, in the units of linf: the smallest float that is at least vectors · linf / epsilon
    Bound:  the noise z has P[z] proportional to e^(-N(z)/s) with N(z) = max(0, max z) + max(0, max -z). N is a norm:
            N(u + v) <= N(u) + N(v), since that holds of the largest entry of u and of -u. So moving the totals by v
            changes the probability of each table by a factor of at most e^(N(v)/s). One unit adds v with entries in
            [0, linf], or with entries in [-linf, 0]; in both cases N(v) <= linf. Two units change the totals by v - v',
            and N(v - v') <= 2·linf. How many groups one unit is in does not matter
    Source: Hardt, Talwar 2010, arXiv:0907.3754, for K-norm noise; Joseph, Yu 2024, arXiv:2309.15790, for noise fitted
            to counts
    Errors: InvalidArgument for a negative linf or vectors below 1; InvalidPrice for an ε that is not positive

    >>> window_scale(3, 0.5), window_scale(3, 0.5, vectors=2)
    (6.0, 12.0)
    """
    return float_up(whole("vectors", vectors, 1) * sensitivity("linf", linf) / positive_price("epsilon", epsilon))


def window_error(cells: int, scale: Number, alpha: Number, *, per: int = 1) -> int:
    """Smallest e with P[|z_g| > e] <= alpha for one cell of window noise.

    Input:  cells, from 1 to 1,024; scale of the noise; alpha in (0, 1); per: how many units of the noise make 1, if the
            noisy number is rounded to multiples of it
    Output: e >= 0, in units of the noise; with `per` in multiples of it
    Bound:  the law is symmetric, so P[|z_g| > e] = 2·P[z_g >= e + 1]. With `per`, as in `rounded_reach`:
            the law is a mixture of differences of two uniform numbers, so tail probabilities are convex, and
            P[z_g >= e·per + 1] + P[z_g >= (e + 1)·per] is the worst case
    Source: `dpframe.noise.window_tail`
    Errors: InvalidArgument for cells out of range or a scale not above 0; InvalidPrice for an alpha not in (0, 1)

    >>> window_error(1, 1, 0.05), window_error(24, 1, 0.05)
    (3, 21)
    """
    if not 1 <= cells <= MOST_CELLS:
        raise InvalidArgument(f"cells={cells!r} must lie between 1 and {MOST_CELLS}.")
    return _error(cells, positive("scale", scale), probability("alpha", alpha), per)


@lru_cache(maxsize=256)
def _error(cells: int, exact: Fraction, chance: Fraction, per: int) -> int:
    """`window_error`, which a release asks for once for its table, its statement and its chart."""

    def within(near: int, far: int) -> bool:
        return at_most(lambda: window_tail(cells, exact, near) + window_tail(cells, exact, far), chance)

    return rounded_reach(within, per)


def window_tail_real(cells: int, reach: float) -> float:
    """P[z_g >= reach] of window noise of scale 1 on the reals, as a float; it is not certified.

    The window has a Gamma(cells + 2) length S and z_g = S·(V - U) for uniform U and V, so the tail is E[(1 - t/S)²; S >
    t] / 2 for t >= 0: three terms in the upper tails of Gamma laws.

    >>> window_tail_real(1, 0.0), round(window_tail_real(1, 2.0), 6) == round(math.exp(-2.0) / 2, 6)
    (0.5, True)
    """
    if reach < 0:
        return 1 - window_tail_real(cells, -reach)
    if reach == 0:
        return 0.5
    shape = cells + 2

    def above(order: int) -> float:
        terms = (i * math.log(reach) - reach - math.lgamma(i + 1) for i in range(order))
        return math.fsum(math.exp(term) for term in terms)

    second, third = 2 * reach / (shape - 1), reach**2 / ((shape - 1) * (shape - 2))
    return max(0.0, above(shape) - second * above(shape - 1) + third * above(shape - 2)) / 2
