"""Gaussian noise on the contrasts of a table: differences of independent real normals along every axis, then rounded.

The contrasts are correlated. Rounding the normals before taking differences would give another distribution, so the
real differences are rounded here. A contrast is a signed sum of 2^k normals, for a table with k axes. Each normal X is
known with an error of at most e (`gaussian`). So the error of a contrast is at most the sum of these errors, plus the
rounding errors of its own float operations: k subtractions on the path of each normal and one product, together at most
(k + 2)·u times the sum of the absolute values. If this bound decides the rounding, no later bit of a uniform can change
it. Otherwise ball arithmetic decides it with more random bits. These bits are stored as further bits of their normals,
so that all contrasts are contrasts of one real table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import WideIntegers, Words
from dpframe.noise import bits
from dpframe.noise.arguments import check_scale, check_size
from dpframe.noise.certified import Ball, precision
from dpframe.noise.gaussian import normal_balls, normal_pairs, pair_bits
from dpframe.noise.inversion import UNIT, fit

__all__ = ["contrasts", "rounded_contrasts"]

Table = TypeVar("Table", bound=NDArray[np.generic])
_WHOLE = 2.0**62  # contrasts below this bound fit in int64
_LONGEST = 100.0  # bound on |X|: for a larger normal, 5,000 bits of its uniform would have to be 0


def contrasts(table: Table) -> Table:
    """Along every axis, the first entry minus each other entry. Shape (m_1, …, m_k) becomes (m_1 - 1, …, m_k - 1).

    The contrasts determine a table up to its margins: if two tables have equal contrasts, their difference is a sum of
    tables each of which is constant along some axis.

    >>> contrasts(np.array([[5, 2], [1, 7]]))
    array([[9]])
    """
    for axis in range(table.ndim):
        table = np.take(table, [0], axis) - np.delete(table, 0, axis)
    return table


def rounded_contrasts(scale: float, shape: Sequence[int]) -> WideIntegers:
    """Contrasts of a table of independent normals, each rounded to the nearest integer.

    Input:  scale, a positive float, in units of the integers; the shape of the table, of at least 2 along each axis
    Output: ⌊C + 1/2⌋ for C = `contrasts` of a table of independent real Z, normal with mean 0 and standard deviation
            `scale`; int64, or Python integers (dtype object) where some entry does not fit
    Law:    exact and joint for all entries, for the float `scale` as given; the argument is at the top of this module
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
    result: NDArray[Any] = nearest.astype(np.int64) if fits else np.empty(value.shape, dtype=object)
    table = _Exact(scale, shape, radii, angles)
    for index in np.argwhere(~sure if fits else np.ones_like(sure)):
        at = tuple(map(int, index))
        result[at] = table.contrast(at)
    return result if fits else fit(result)


def _sums(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Along every axis, the first entry plus each other entry."""
    for axis in range(table.ndim):
        table = np.take(table, [0], axis) + np.delete(table, 0, axis)
    return table


class _Exact:
    """The real table of normals behind the random words. Its normals get more bits when a contrast needs them."""

    def __init__(self, scale: float, shape: tuple[int, ...], radii: Words, angles: Words) -> None:
        self._scale, self._shape, self._radii, self._angles = scale, shape, radii, angles
        self._bits_of_pair: dict[int, tuple[int, int, int]] = {}  # of a pair of normals: V, W and their number of bits

    def contrast(self, at: tuple[int, ...]) -> int:
        """⌊C + 1/2⌋ for one entry of the contrasts. Bits of its normals are drawn until the result is certain."""
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
                self._bits_of_pair[pair] = v << 64 | int(fresh[0]), w << 64 | int(fresh[1]), count + 64

    def _corner(self, at: tuple[int, ...], corner: tuple[int, ...]) -> tuple[int, int, int]:
        """One of the normals of a contrast: the number of its pair, its position in the pair (0 or 1), and its sign."""
        place = 0
        for length, index, step in zip(self._shape, at, corner, strict=True):
            place = place * length + (index + 1) * step
        half = len(self._radii)
        return place % half, place // half, (-1) ** sum(corner)

    def _bits(self, pair: int) -> tuple[int, int, int]:
        if pair not in self._bits_of_pair:
            self._bits_of_pair[pair] = (*pair_bits(int(self._radii[pair]), int(self._angles[pair])), 63)
        return self._bits_of_pair[pair]
