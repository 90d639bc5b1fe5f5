"""Noise that is correlated between the cells of a table:
a part that all share, one window, contrasts.

Shared normal noise is drawn on a finer grid, of 1/65,536 of an integer. Each cell has its own noise
on that grid, all cells have one more noise on it, and their sum is rounded to an integer.

Window noise has the law exp(-N(z) / scale), with N(z) = max(0, max z) + max(0, max -z), on the
vectors z of d integers. Since Σ_{R >= r} e^(-R/s) = e^(-r/s) / (1 - e^(-1/s)), this is a mixture:
draw whole R, Q >= 0 with a chance that is proportional to e^(-(R + Q)/s) · L^d, where L = R + Q +
1, and then each z_g from the L integers from -Q to R. Of all pairs with one L there are L. So L has
a chance proportional to L^(d+1) · e^(-L/s), R is one of 0, …, L - 1, and each z_g is R less one of
0, …, L - 1.

Cube noise has the law exp(-max |z| / scale) on the vectors z of d integers: a mixture as well, of
cubes from -R to R with a chance that is proportional to e^(-R/s) · L^d, where L = 2R + 1. So an odd
L has a chance proportional to L^d · e^(-L/2s), and each z_g is R less one of 0, …, L - 1.

Many lengths L of a wide law are drawn at once. The sum m of p geometric numbers, P[G >= k] =
e^(-k/s), has a chance proportional to (m + 1)···(m + p - 1) · e^(-m/s). So L = m + 1 that is kept
with chance L/L · L/(L + 1) ··· L/(L + p -
2) has one proportional to L^(p-1) · e^(-L/s).

Gaussian noise on the contrasts of a table: differences of independent real normals along every
axis, then rounded.

The contrasts are correlated. Rounding the normals before taking differences would give another
distribution, so the real differences are rounded here. A contrast is a signed sum of 2^k normals,
for a table with k axes. Each normal X is known with an error of at most e (`gaussian`). So the
error of a contrast is at most the sum of these errors, plus the rounding errors of its own float
operations: k subtractions on the path of each normal and one product, together at most (k + 2)·u
times the sum of the absolute values. If this bound decides the rounding, no later bit of a uniform
can change it. Otherwise ball arithmetic decides it with more random bits. These bits are stored as
further bits of their normals, so that all contrasts are contrasts of one real table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import Array, Floats, WideIntegers, Words
from dpframe.noise import bits
from dpframe.noise.certified import Ball, ball, precision, round_up
from dpframe.noise.choosing import index_at, uniform_index
from dpframe.noise.gaussian import normal_balls, normal_pairs, pair_bits, rounded_gaussian
from dpframe.noise.inversion import UNIT, fit, uniform_below
from dpframe.noise.laplace import discrete_laplace, geometric
from dpframe.noise.scales import check_scale, check_size

GRID = 2**16  # steps of the grid on which shared normal noise is drawn, in one unit of the integers
MOST_CELLS = 1024  # of window noise: the tail of one cell is a sum of as many terms
_PROPOSALS = 32  # lengths that are proposed at once; about two of three would be taken


def shared_gaussian(own: float, shared: float, size: int) -> WideIntegers:
    """Normal noise on the integers of which all draws share a part.

    Input:  own, shared: positive floats, the deviations of each draw's own noise and of the noise
            that all draws share, in units of the integers; size draws
    Output: ⌊(N_i + C) / 65536 + 1/2⌋ for independent N_i and one C; int64, or Python integers
            (dtype object) where some draw does not fit
    Law:  exact: N_i is a real normal of deviation 65536·own, rounded to the nearest integer; C one
            of 65536·shared. So N_i and C are steps of a grid of 1/65536, and only their sum is
            rounded to whole numbers
    Errors: InvalidArgument for a deviation that is not positive and finite, or too near the largest
            float

    >>> shared_gaussian(10.0, 5.0, 4).shape
    (4,)
    """
    size = check_size(size)
    common = int(rounded_gaussian(shared * GRID, 1)[0])
    alone = rounded_gaussian(own * GRID, size)
    if (
        alone.dtype == object
        or abs(common) >= 2**61
        or (size and int(np.abs(alone).max()) >= 2**61)
    ):
        return fit((alone.astype(object) + (common + GRID // 2)) // GRID)
    return np.asarray((alone + (common + GRID // 2)) // GRID)


def window_noise(scale: float, cells: int) -> WideIntegers:
    """Noise on the integers for all cells of a table, from one random window around 0.

    Input:  scale, a positive float, in units of the integers; cells >= 1
    Output: one vector z of shape (cells,); int64, or Python integers (dtype object) where some
            entry does not fit
    Law:  exact and joint: P[z] is proportional to exp(-N(z) / scale), where N(z) is the largest
            positive entry plus the largest negative entry, without its sign. The argument is at the
            top of this module
    Source: Joseph, Yu 2024, arXiv:2309.15790, for noise of a law like this; the mixture of windows
            is ours
    Errors: InvalidArgument for a scale that is not positive and finite

    >>> window_noise(10.0, 4).shape
    (4,)
    """
    return window_noises(scale, cells, 1).reshape(-1)


def window_noises(scale: float, cells: int, size: int) -> WideIntegers:
    """Independent vectors of `window_noise`. Output: an array of shape (size, cells).

    >>> window_noises(2.0**30, 4, 3).shape
    (3, 4)
    """
    scale, cells = float(check_scale(scale, 1)), check_size(cells)
    places = _uniform(_lengths(cells + 1, scale, check_size(size)), cells + 1)
    return fit(places[:, :1] - places[:, 1:])


def cube_noises(scale: float, cells: int, size: int) -> WideIntegers:
    """Independent vectors of noise on the integers, each uniform in a random cube around 0.

    Input:  scale, a positive float, in units of the integers; cells >= 1; size: how many vectors
    Output: vectors z of shape (size, cells); int64, or Python integers (dtype object) where some
            entry does not fit
    Law:  exact and joint: P[z] is proportional to exp(-max |z| / scale). The argument is at the top
          of this module
    Source: Hardt, Talwar 2010, arXiv:0907.3754, for noise of a norm; Steinke, Ullman 2017,
            arXiv:1501.06095, for l∞
    Errors: InvalidArgument for a scale that is not positive and finite

    >>> cube_noises(2.0**30, 4, 3).shape
    (3, 4)
    """
    scale, cells = float(check_scale(scale, 1)), check_size(cells)
    lengths: list[int] = []
    while len(lengths) < check_size(size):
        drawn = _lengths(cells, 2 * scale, 2 * (size - len(lengths)) + 4)
        lengths += [length for length in drawn if length % 2]
    lengths = lengths[:size]
    middles = np.array([[length // 2] for length in lengths], dtype=object)
    return fit(middles - _uniform(lengths, cells))


def _lengths(power: int, scale: float, size: int) -> list[int]:
    """Independent whole L >= 1 with a chance proportional to L^power · e^(-L/scale)."""
    if scale < 4 * power:
        return [_length(power, scale) for _ in range(size)]
    lengths: list[int] = []
    while len(lengths) < size:
        wanted = size - len(lengths) + 1
        steps, number = geometric(scale, (power + 1) * wanted), power + 1
        for start, word in zip(
            range(0, len(steps), number), bits.random_words(wanted).tolist(), strict=True
        ):
            length = sum(steps[start : start + number]) + 1
            if word < (1 - power**2 / length - 2.0**-40) * 2.0**64 or uniform_below(
                word, 64, partial(_kept, power, length)
            ):
                lengths.append(length)
    return lengths[:size]


def _kept(power: int, length: int) -> Ball:
    """L/L · L/(L + 1) ··· L/(L + power - 1); it is at least 1 - power²/L."""
    chance = ball(1)
    for more in range(power):
        chance = chance * length / (length + more)
    return chance


def _length(power: int, scale: float) -> int:
    """A whole L >= 1 with a chance proportional to L^power · e^(-L/scale).

    Lengths are proposed around the most likely one, L_0, with discrete Laplace noise of scale t.
    With g(L) = power·ln L
    - L/scale + |L - L_0|/t, a proposal is taken with chance exp(g(L) - C), where C is at least
      every g(L). On either
    side of L_0, g is concave, so its maximum over the reals of that side from 1 on is known. C is
    the larger of the two maxima, rounded up. All of them are taken less g(L_0): at a scale of 1e-18
    that is -1e18, and C would be rounded up so far that no proposal was ever taken.
    """
    exact = Fraction(scale)
    middle = max(1, round(power * exact))
    spread = scale * math.sqrt(max(power, 2))
    width = Fraction(spread)

    def height(length: Fraction, side: int) -> Ball:
        return power * ball(length / middle).log() - ball(
            (length - middle) * (1 / exact - side / width)
        )

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


def _uniform(choices: Sequence[int], size: int) -> NDArray[np.object_]:
    """Independent uniform integers below each of the `choices`, `size` for each:
    ⌊choices·U⌋ for uniform reals U.
    """
    draws = [_uniform_below(number, size) for number in choices]
    return np.array(draws, dtype=object).reshape(len(choices), size)


def _uniform_below(choices: int, size: int) -> list[int]:
    """Independent uniform integers in [0, choices), as in `uniform_index`."""
    if choices <= 1 << 32:
        return [int(index) for index in uniform_index(choices, size)]
    words = choices.bit_length() // 64 + 2
    prefixes = bits.random_words(words * size).tolist()
    draws = []
    for start in range(0, words * size, words):
        prefix = 0
        for word in prefixes[start : start + words]:
            prefix = prefix << 64 | word
        draws.append(index_at(choices, prefix, 64 * words))
    return draws


def window_tail(cells: int, scale: Fraction, k: int) -> Ball:
    """P[z_g >= k] of one cell of window noise, as a ball at the current precision.

    Of the L² pairs of a window's top and a cell's place, (L - k)(L - k + 1) / 2 give at least k,
    for 1 <= k < L. So the tail is Σ_{L > k} L^(d-1) (L - k)(L - k + 1) e^(-L/s) / 2 over Σ L^(d+1)
    e^(-L/s). With v = L - k and the binomial theorem it is e^(-k/s) times a polynomial in k, whose
    coefficients are sums Σ v^i e^(-v/s): polylogarithms. All terms are positive, so nothing
    cancels.
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
            math.comb(cells - 1, j) * (sums[j + 2] + sums[j + 1]) / (2 * sums[cells + 1])
            for j in range(cells)
        )


Table = TypeVar("Table", bound=NDArray[np.generic])
_WHOLE = 2.0**62  # contrasts below this bound fit in int64
_LONGEST = 100.0  # bound on |X|: for a larger normal, 5,000 bits of its uniform would have to be 0


def contrasts(table: Table) -> Table:
    """Along every axis, the first entry minus each other entry.
    Shape (m_1, …, m_k) becomes (m_1 - 1, …, m_k - 1).

    The contrasts determine a table up to its margins: if two tables have equal contrasts, their
    difference is a sum of tables each of which is constant along some axis.

    >>> contrasts(np.array([[5, 2], [1, 7]]))
    array([[9]])
    """
    for axis in range(table.ndim):
        table = np.take(table, [0], axis) - np.delete(table, 0, axis)
    return table


def rounded_contrasts(scale: float, shape: Sequence[int]) -> WideIntegers:
    """Contrasts of a table of independent normals, each rounded to the nearest integer.

    Input:  scale, a positive float, in units of the integers; the shape of the table, of at least 2
            along each axis
    Output: ⌊C + 1/2⌋ for C = `contrasts` of a table of independent real Z, normal with mean 0 and
            standard deviation `scale`; int64, or Python integers (dtype object) where some entry
            does not fit
    Law:  exact and joint for all entries, for the float `scale` as given; the argument is at the
          top of this module
    Errors: InvalidArgument for a scale that is not positive and finite

    >>> rounded_contrasts(10.0, (3, 4)).shape
    (2, 3)
    """
    shape = tuple(check_size(length) for length in shape)
    scale = float(check_scale(scale, 1))
    size = math.prod(shape)
    half = (size + 1) // 2
    words = bits.random_words(2 * half)
    radii, angles = words[:half], words[half:]
    first, second, error = normal_pairs(radii, angles)
    normals = np.concatenate([first, second])[:size].reshape(shape)
    errors = np.concatenate([error, error])[:size].reshape(shape)
    value = np.asarray(contrasts(normals) * scale)
    nearest = np.asarray(np.rint(value))
    lost = _sums(errors) + (len(shape) + 2) * UNIT * _sums(np.abs(normals))
    sure = np.abs(value - nearest) <= 0.5 - 2.0**-46 - scale * lost * (1 + 2.0**-40)
    fits = scale * _LONGEST * 2 ** len(shape) < _WHOLE
    result: Array = nearest.astype(np.int64) if fits else np.empty(value.shape, dtype=object)
    table = _Exact(scale, shape, radii, angles)
    for index in np.argwhere(~sure if fits else np.ones_like(sure)):
        at = tuple(map(int, index))
        result[at] = table.contrast(at)
    return result if fits else fit(result)


def _sums(table: Floats) -> Floats:
    """Along every axis, the first entry plus each other entry."""
    for axis in range(table.ndim):
        table = np.take(table, [0], axis) + np.delete(table, 0, axis)
    return table


class _Exact:
    """The real table of normals behind the random words.
    Its normals get more bits when a contrast needs them.
    """

    def __init__(self, scale: float, shape: tuple[int, ...], radii: Words, angles: Words) -> None:
        self._scale, self._shape, self._radii, self._angles = scale, shape, radii, angles
        # of a pair of normals: V, W and their number of bits
        self._bits_of_pair: dict[int, tuple[int, int, int]] = {}

    def contrast(self, at: tuple[int, ...]) -> int:
        """⌊C + 1/2⌋ for one entry of the contrasts.
        Bits of its normals are drawn until the result is certain.
        """
        signed = [self._corner(at, corner) for corner in product((0, 1), repeat=len(at))]
        pairs = {pair for pair, _, _ in signed}
        exponent = max(0, math.frexp(self._scale)[1])
        while True:
            pair_bits_of = {pair: self._bits(pair) for pair in pairs}
            if all(v for v, _, _ in pair_bits_of.values()):
                with precision(max(count for _, _, count in pair_bits_of.values()) + exponent + 64):
                    balls = {pair: normal_balls(*words) for pair, words in pair_bits_of.items()}
                    total: Ball = sum(sign * balls[pair][part] for pair, part, sign in signed)
                    whole = (total * self._scale + 0.5).floor().unique_fmpz()
                if whole is not None:
                    return int(whole)
            for pair in sorted(pairs):
                v, w, count = pair_bits_of[pair]
                fresh = bits.random_words(2)
                self._bits_of_pair[pair] = (
                    v << 64 | int(fresh[0]),
                    w << 64 | int(fresh[1]),
                    count + 64,
                )

    def _corner(self, at: tuple[int, ...], corner: tuple[int, ...]) -> tuple[int, int, int]:
        """One of the normals of a contrast: the number of its pair, its position in
        the pair (0 or 1), and its sign.
        """
        place = 0
        for length, index, step in zip(self._shape, at, corner, strict=True):
            place = place * length + (index + 1) * step
        half = len(self._radii)
        return place % half, place // half, (-1) ** sum(corner)

    def _bits(self, pair: int) -> tuple[int, int, int]:
        if pair not in self._bits_of_pair:
            self._bits_of_pair[pair] = (
                *pair_bits(int(self._radii[pair]), int(self._angles[pair])),
                63,
            )
        return self._bits_of_pair[pair]
