"""Noise of which the cells of a table share a part: the noises of two cells are correlated.

Shared normal noise is drawn on a finer grid, of 1/65,536 of an integer. Each cell has its own noise on that grid, all
cells have one more noise on it, and their sum is rounded to an integer.

Window noise has the law exp(-N(z) / scale), with N(z) = max(0, max z) + max(0, max -z), on the vectors z of d integers.
Since Σ_{R >= r} e^(-R/s) = e^(-r/s) / (1 - e^(-1/s)), this is a mixture: draw whole R, Q >= 0 with a chance that is
proportional to e^(-(R + Q)/s) · L^d, where L = R + Q + 1, and then each z_g from the L integers from -Q to R. Of all
pairs with one L there are L. So L has a chance proportional to L^(d+1) · e^(-L/s), R is one of 0, …, L - 1, and each
z_g is R less one of 0, …, L - 1.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from dpframe.arrays import WideIntegers
from dpframe.noise import bits
from dpframe.noise.arguments import check_scale, check_size
from dpframe.noise.certified import Ball, ball, precision, round_up
from dpframe.noise.gaussian import rounded_gaussian
from dpframe.noise.inversion import fit, uniform_below
from dpframe.noise.laplace import discrete_laplace
from dpframe.noise.selection import uniform_index

__all__ = ["GRID", "MOST_CELLS", "shared_gaussian", "window_noise", "window_tail"]

GRID = 2**16  # steps of the grid on which shared normal noise is drawn, in one unit of the integers
MOST_CELLS = 1024  # of window noise: the tail of one cell is a sum of as many terms
_PROPOSALS = 32  # lengths that are proposed at once; about two of three would be taken


def shared_gaussian(own: float, shared: float, size: int) -> WideIntegers:
    """Normal noise on the integers of which all draws share a part.

    Input:  own, shared: positive floats, the deviations of each draw's own noise and of the noise that all draws share,
            in units of the integers; size draws
    Output: ⌊(N_i + C) / 65536 + 1/2⌋ for independent N_i and one C; int64, or Python integers (dtype object) where some
            draw does not fit
    Law:    exact: N_i is a real normal of deviation 65536·own, rounded to the nearest integer; C one of 65536·shared.
            So N_i and C are steps of a grid of 1/65536, and only their sum is rounded to whole numbers
    Errors: InvalidArgument for a deviation that is not positive and finite, or too near the largest float

    >>> shared_gaussian(10.0, 5.0, 4).shape
    (4,)
    """
    size = check_size(size)
    common = int(rounded_gaussian(shared * GRID, 1)[0])
    alone = rounded_gaussian(own * GRID, size)
    if alone.dtype == object or abs(common) >= 2**61 or (size and int(np.abs(alone).max()) >= 2**61):
        return fit((alone.astype(object) + (common + GRID // 2)) // GRID)
    return np.asarray((alone + (common + GRID // 2)) // GRID)


def window_noise(scale: float, cells: int) -> WideIntegers:
    """Noise on the integers for all cells of a table, from one random window around 0.

    Input:  scale, a positive float, in units of the integers; cells >= 1
    Output: one vector z of shape (cells,); int64, or Python integers (dtype object) where some entry does not fit
    Law:    exact and joint: P[z] is proportional to exp(-N(z) / scale), where N(z) is the largest positive entry plus
            the largest negative entry, without its sign. The argument is at the top of this module
    Source: Joseph, Yu 2024, arXiv:2309.15790, for noise of a law like this; the mixture of windows is ours
    Errors: InvalidArgument for a scale that is not positive and finite

    >>> window_noise(10.0, 4).shape
    (4,)
    """
    scale, cells = float(check_scale(scale, 1)), check_size(cells)
    length = _length(cells + 1, scale)
    top, *below = _uniform(length, cells + 1)
    return fit(np.array([top - one for one in below], dtype=object))


def _length(power: int, scale: float) -> int:
    """A whole L >= 1 with a chance proportional to L^power · e^(-L/scale).

    Lengths are proposed around the most likely one, L_0, with discrete Laplace noise of scale t. With g(L) = power·ln L
    - L/scale + |L - L_0|/t, a proposal is taken with chance exp(g(L) - C), where C is at least every g(L). On either
    side of L_0, g is concave, so its maximum over the reals of that side from 1 on is known. C is the larger of the two
    maxima, rounded up.
    """
    exact = Fraction(scale)
    middle = max(1, round(power * exact))
    spread = scale * math.sqrt(power)
    width = Fraction(spread)

    def height(length: Fraction, side: int) -> Ball:
        return power * ball(length).log() - ball(length / exact - side * (length - middle) / width)

    with precision(256):
        above = max(power / (1 / exact - 1 / width), Fraction(middle))
        below = min(max(power / (1 / exact + 1 / width), Fraction(1)), Fraction(middle))
        maxima = [height(above, 1), height(below, -1)]
        ceiling = max(Fraction(round_up(maximum)) for maximum in maxima)

    def chance(length: Fraction, side: int) -> Ball:
        return (height(length, side) - ball(ceiling)).exp()

    while True:
        steps = discrete_laplace(spread, _PROPOSALS).tolist()
        for step, word in zip(steps, bits.random_words(_PROPOSALS).tolist(), strict=True):
            proposal, side = Fraction(middle + step), 1 if step >= 0 else -1
            if proposal >= 1 and uniform_below(word, 64, partial(chance, proposal, side)):
                return int(proposal)


def _uniform(choices: int, size: int) -> list[int]:
    """Independent uniform integers in [0, choices): ⌊choices·U⌋ for uniform reals U, as in `uniform_index`."""
    if choices <= 1 << 32:
        return [int(index) for index in uniform_index(choices, size)]
    words = choices.bit_length() // 64 + 2
    prefixes = bits.random_words(words * size).tolist()
    draws = []
    for start in range(0, words * size, words):
        prefix, count = 0, 64 * words
        for word in prefixes[start : start + words]:
            prefix = prefix << 64 | word
        while choices * prefix >> count != (choices * (prefix + 1) - 1) >> count:
            prefix, count = prefix << 64 | int(bits.random_words(1)[0]), count + 64
        draws.append(choices * prefix >> count)
    return draws


def window_tail(cells: int, scale: Fraction, k: int) -> Ball:
    """P[z_g >= k] of one cell of window noise, as a ball at the current precision.

    Of the L² pairs of a window's top and a cell's place, (L - k)(L - k + 1) / 2 give at least k, for 1 <= k < L. So the
    tail is Σ_{L > k} L^(d-1) (L - k)(L - k + 1) e^(-L/s) / 2 over Σ L^(d+1) e^(-L/s). With v = L - k and the binomial
    theorem it is e^(-k/s) times a polynomial in k, whose coefficients are sums Σ v^i e^(-v/s): polylogarithms. All
    terms are positive, so nothing cancels.
    """
    from flint import ctx

    if k < 1:
        return 1 - window_tail(cells, scale, 1 - k)
    value = ball(0)
    for coefficient in _coefficients(cells, scale, ctx.prec):
        value = value * k + coefficient
    return value * (-ball(Fraction(k) / scale)).exp()


@lru_cache(maxsize=16)
def _coefficients(cells: int, scale: Fraction, precision_bits: int) -> tuple[Ball, ...]:
    """The coefficients of the polynomial of `window_tail`, that of the highest power first."""
    from flint import acb

    with precision(precision_bits):
        rate = (-ball(1 / scale)).exp()
        sums = [acb(rate).polylog(acb(-power)).real for power in range(cells + 2)]
        return tuple(
            math.comb(cells - 1, j) * (sums[j + 2] + sums[j + 1]) / (2 * sums[cells + 1]) for j in range(cells)
        )
