"""Costs of window noise and cube noise (K-norm noise), and the error of one cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from dpframe.arrays import Floats
from dpframe.errors import InvalidArgument
from dpframe.noise import (
    MOST_CELLS,
    Number,
    at_most,
    float_up,
    positive,
    rounded_reach,
    whole,
    window_tail,
)
from dpframe.theory.formulas.loss.loss import positive_price, probability, sensitivity


def window_scale(linf: Number, epsilon: Number, *, vectors: int = 1) -> float:
    """Smallest scale of window noise for ε, on totals to which each unit adds numbers of one sign.

    Input:  linf, the largest number that one unit adds to one group; epsilon > 0; vectors: 1 if a
            unit joins or leaves, 2 if one takes the place of another
    Output: scale, in the units of linf: the smallest float that is at least vectors · linf /
            epsilon
    Bound:  the noise z has P[z] proportional to e^(-N(z)/s) with N(z) = max(0, max z) + max(0, max
            -z). N is a norm: N(u + v) <= N(u) + N(v), since that holds of the largest entry of u
            and of -u. So moving the totals by v changes the probability of each table by a factor
            of at most e^(N(v)/s). One unit adds v with entries in [0, linf], or with entries in
            [-linf, 0]; in both cases N(v) <= linf. Two units change the totals by v - v', and N(v -
            v') <= 2·linf. How many groups one unit is in does not matter
    Source: Hardt, Talwar 2010, arXiv:0907.3754, for K-norm noise; Joseph, Yu 2024,
            arXiv:2309.15790, for noise fitted to counts
    Errors: InvalidArgument for a negative linf or vectors below 1; InvalidPrice for an ε that is
            not positive

    >>> window_scale(3, 0.5), window_scale(3, 0.5, vectors=2)
    (6.0, 12.0)
    """
    return float_up(
        whole("vectors", vectors, 1)
        * sensitivity("linf", linf)
        / positive_price("epsilon", epsilon)
    )


# steps of joint noise in one unit of its integer, and in the scale, of each total, at least
_FINE = 2**20


def joint_scale(
    length: Number, sizes: Sequence[int], epsilon: Number
) -> tuple[float, tuple[int, ...]]:
    """The scale of one noise for several totals of each group, and the factors
    by which these are multiplied.

    Input:  length: the rows of one unit in all groups together, at most; of two units, where one
            takes the place of another: see `sensitivity.grouped.row_places`. sizes: how far a row
            moves each total, at most (units of its integer, at least 1); epsilon > 0. Without
            groups also: sizes: how far neighbouring tables differ in each total; length: 1 for
            cubes, and for windows the number of units in which they differ
    Output: a scale s and factors a_c: vectors of noise z of scale s are added to the vectors
            a_c·X_c, one for each group, and (a_c·X_c + z_c) / a_c is released, rounded
    Bound:  in a group in which the rows of a unit weigh w, it moves X_c by x_c with |x_c| <=
            size_c·w. Let M be the largest a_c·size_c, so all |a_c·x_c| <= M·w. Cube noise has P[z]
            proportional to e^(-N(z)/s) with N(z) = max |z|, and window noise with N(z) = max(0, max
            z) + max(0, max -z). Both N are norms. For cube noise N(a·x) <= M·w; for window noise
            too, if no x_c is negative, or none is positive. Moving the vectors of all groups by a·x
            changes the probability of each table by a factor of at most e^(Σ N(a·x)/s), summed over
            the groups, in which the noises are independent. Their w add up to at most `length`. Two
            units move the vectors by a·(x - x'), and N(a·(x - x')) <= N(a·x) + N(a·x'). Without
            groups, if totals differ by at most size_c, the entries of their vectors do by at most
            M: that is N for cubes, and N of windows for each unit. As a_c <= s·ε / (length·size_c),
            M·length/s <= ε. What is released follows from the noisy vectors. s is a power of two at
            which every a_c is at least 2^20, so rounding a_c down makes at most a millionth of
            noise
    Source: Hardt, Talwar 2010, arXiv:0907.3754; Awan, Slavković 2021, arXiv:1905.09420, for the l∞
            norm of moments; Joseph, Yu 2024, arXiv:2309.15790, for the norm of one sign; the grid
            is ours
    Errors: InvalidArgument for a length or a size that is not positive; InvalidPrice for an ε that
            is not

    >>> joint_scale(1, [1, 100], 1)
    (134217728.0, (134217728, 1342177))
    """
    epsilon, length = positive_price("epsilon", epsilon), positive("length", length)
    least = _FINE * max(
        length * max(whole("size", size, 1) for size in sizes) / epsilon, Fraction(1)
    )
    scale = 2 ** (math.ceil(least) - 1).bit_length()
    return float(scale), tuple(math.floor(scale * epsilon / (length * size)) for size in sizes)


def cube_tail_real(cells: int, reach: float) -> float:
    """P[z_g >= reach] of one cell of cube noise of scale 1 on the reals,
    as a float; it is not certified.

    The cube has a Gamma(cells + 1) radius R, in which z_g is uniform, so the tail is E[1 - t/R; R >
    t] / 2 for t >= 0.

    >>> cube_tail_real(1, 0.0), round(cube_tail_real(1, 2.0), 6) == round(math.exp(-2.0) / 2, 6)
    (0.5, True)
    """
    if reach < 0:
        return 1 - cube_tail_real(cells, -reach)
    if reach == 0:
        return 0.5
    less, whole_order = _gammas_above(cells + 1, reach, 2)
    return max(0.0, whole_order - reach / cells * less) / 2


def _gammas_above(order: int, reach: float, number: int) -> list[float]:
    """P[X >= reach] of Gamma variables of so many whole orders, of which `order`
    is the largest, for reach > 0.
    """
    terms = np.exp(np.arange(order) * math.log(reach) - reach - _log_factorials(order))
    return list(
        accumulate(
            terms[order - number + 1 :].tolist(), initial=float(terms[: order - number + 1].sum())
        )
    )


@lru_cache(maxsize=16)
def _log_factorials(number: int) -> Floats:
    return np.array([math.lgamma(i + 1) for i in range(number)])


def window_error(cells: int, scale: Number, alpha: Number, *, per: int = 1) -> int:
    """Smallest e with P[|z_g| > e] <= alpha for one cell of window noise.

    Input:  cells, from 1 to 1,024; scale of the noise; alpha in (0, 1); per: how many units of the
            noise make 1, if the noisy number is rounded to multiples of it
    Output: e >= 0, in units of the noise; with `per` in multiples of it
    Bound:  the law is symmetric, so P[|z_g| > e] = 2·P[z_g >= e + 1]. With `per`, as in
            `rounded_reach`: the law is a mixture of differences of two uniform numbers, so tail
            probabilities are convex, and P[z_g >= e·per + 1] + P[z_g >= (e + 1)·per] is the worst
            case
    Source: `dpframe.noise.window_tail`
    Errors: InvalidArgument for cells out of range or a scale not above 0; InvalidPrice for an alpha
            not in (0, 1)

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
        return at_most(
            lambda: window_tail(cells, exact, near) + window_tail(cells, exact, far), chance
        )

    return rounded_reach(within, per)


def window_tail_real(cells: int, reach: float) -> float:
    """P[z_g >= reach] of window noise of scale 1 on the reals, as a float; it is not certified.

    The window has a Gamma(cells + 2) length S and z_g = S·(V - U) for uniform U and V, so the tail
    is E[(1 - t/S)²; S > t] / 2 for t >= 0: three terms in the upper tails of Gamma laws.

    >>> window_tail_real(1, 0.0), round(window_tail_real(1, 2.0), 6) == round(math.exp(-2.0) / 2, 6)
    (0.5, True)
    """
    if reach < 0:
        return 1 - window_tail_real(cells, -reach)
    if reach == 0:
        return 0.5
    shape = cells + 2
    second, third = 2 * reach / (shape - 1), reach**2 / ((shape - 1) * (shape - 2))
    two_less, one_less, whole_order = _gammas_above(shape, reach, 3)
    return max(0.0, whole_order - second * one_less + third * two_less) / 2
