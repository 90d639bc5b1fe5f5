"""Gaussian noise on the contrasts of a table: independent real normals, differenced along every axis, then rounded.

The differences are not independent of one another, so rounding each normal before they are taken would be another law.
Here the real differences are rounded. Each normal X is known within an error e (`gaussian`), so a difference, a sum of
2^k of them with signs, is known within the sum of their errors and what its own float operations lose: k subtractions
on the way of each and one product, (k + 2)·u of the sum of the absolute values. Where that decides the rounding, no
later bit of any uniform can change it. The rest is decided by ball arithmetic; bits that are drawn for it belong to
their normals from then on, so that all differences are those of one and the same real table.
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
_WHOLE = 2.0**62  # beyond this, no float is an int64
_LONGEST = 100.0  # |X| is surely below it: a normal that is not has to have 5,000 bits of its uniform 0


def contrasts(table: Table) -> Table:
    """First entry less each other one, along every axis: (m_1, …, m_k) to (m_1 - 1, …, m_k - 1).

    It loses what the margins say and nothing else: two tables with the same contrasts differ by tables that do not
    depend on all of their axes.

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
    """First entry and each other one, added along every axis."""
    for axis in range(table.ndim):
        table = np.take(table, [0], axis) + np.delete(table, 0, axis)
    return table


class _Exact:
    """The real table behind the words: as many bits of its normals as are needed."""

    def __init__(self, scale: float, shape: tuple[int, ...], radii: Words, angles: Words) -> None:
        self._scale, self._shape, self._radii, self._angles = scale, shape, radii, angles
        self._bits_of_pair: dict[
            int, tuple[int, int, int]
        ] = {}  # for a pair of normals: V, W and how many bits of each

    def contrast(self, at: tuple[int, ...]) -> int:
        """⌊C + 1/2⌋ for one entry, with more bits of its normals until that is certain."""
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
        """One of the normals of a contrast: its pair, its part of the pair, its sign."""
        place = 0
        for length, index, step in zip(self._shape, at, corner, strict=True):
            place = place * length + (index + 1) * step
        half = len(self._radii)
        return place % half, place // half, (-1) ** sum(corner)

    def _bits(self, pair: int) -> tuple[int, int, int]:
        if pair not in self._bits_of_pair:
            self._bits_of_pair[pair] = (*pair_bits(int(self._radii[pair]), int(self._angles[pair])), 63)
        return self._bits_of_pair[pair]
