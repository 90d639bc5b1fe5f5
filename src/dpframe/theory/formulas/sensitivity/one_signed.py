"""Totals to which one unit adds entries of one sign:
how far noise that groups share goes in hiding it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

from dpframe.noise import GRID
from dpframe.theory.formulas.sensitivity.grouped import Sensitivity

Number = TypeVar("Number", Fraction, float)
_PLACES = 400  # at which the ratio of the two variances is tried


@dataclass(frozen=True, slots=True)
class OneSigned:
    """Public facts of totals to which each unit adds entries of one sign:
    all at least 0, or all at most 0.

    `cells` is how many groups the table has. `vectors` is of how many units a change is made: 1
    under add-remove, and 2 under replace, where one unit's vector is taken away and another's is
    added.

    >>> OneSigned(cells=24).vectors
    1
    """

    cells: int
    vectors: int = 1


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """Normal noise that is divided into noise of each cell's own and noise that all cells share.

    `ratio` is the variance of the shared noise over that of the own noise. At μ = 1 the own noise
    has the variance `own_square` (squared unit of the total's integer).
    """

    ratio: Fraction
    own_square: Fraction

    @property
    def variance(self) -> Fraction:
        """The variance of one cell's noise at μ = 1 (squared unit of the total's integer)."""
        return (1 + self.ratio) * self.own_square


def shared_noise_square(bound: Sensitivity, cells: int, ratio: Fraction) -> Fraction:
    """Square of the own noise that hides one unit, where each cell has own normal
    noise and all share one more noise.

    Input:  bound: of the totals, in units of their integer; cells: how many groups the table has;
            ratio >= 0: the variance of the shared noise over that of the own noise
    Output: the variance of the own noise at μ = 1 (squared unit of the integer), exact; for own
            noise of variance s the mechanism is no worse than a Gaussian one with μ² = output / s
    Bound:  neighbouring tables differ in one unit. It adds the integers x_g >= 0, at most l0 of
            them above 0, each at most linf, together at most l1 (or all of them with the other
            sign). Take any whole number w of steps of the grid, 1/65,536 of a unit each, that
            follows from x alone. Releasing A_g = Σ (x_g - w) + N_g for each group and B = Σ w + C,
            sums over units, is a Gaussian mechanism in which the unit moves each A_g by x_g - w and
            B by w. With own noise N of variance s and shared noise C of variance ratio·s, μ² = (Σ
            (x_g - w)² + w² / ratio) / s. The released number A_g + B = Σ x_g + N_g + C follows from
            these, and so does its rounding, as all sums lie on the grid. Over real w the least μ²·s
            is Σ x² - c·(Σ x)² with c = ratio / (1 + cells·ratio); the nearest step is at most half
            a step away, which adds at most (cells + 1 / ratio) / (4·65536²). For a given Σ x = T
            the sum of squares is largest where as many entries as possible are linf and one is the
            rest r. Between two whole numbers of full entries, r² - c·(j·linf + r)² is convex in r,
            as c < 1. So the largest value is at T = j·linf or at T = l1. With full entries it is
            linf²·(j - c·j²), concave in j and largest near j = 1 / 2c
    Source: Joseph, Yu 2024, arXiv:2309.15790, for elliptic Gaussian noise; the two measurements,
            the exact vertex argument and the grid are ours
    Errors: none here

    >>> bound = Sensitivity.of(l0=24, l1=24, l2_squared=24, linf=1)
    >>> shared_noise_square(bound, 24, Fraction(0))
    Fraction(24, 1)
    """
    if not ratio:
        return bound.l2_squared
    length = min(bound.exact_l1, bound.l0 * bound.exact_linf)
    return _vertex(bound.exact_linf, length, cells, ratio) + (cells + 1 / ratio) / (4 * GRID**2)


def _vertex(linf: Number, length: Number, cells: int, ratio: Number) -> Number:
    """The largest Σ x² - c·(Σ x)² of entries in [0, linf] that add up to at most `length`."""
    c = ratio / (1 + cells * ratio)
    full = int(length // linf)
    best = 1 / (2 * c)
    places = {min(max(place, 0), full) for place in (math.floor(best), math.ceil(best), full)}
    rest = full * linf**2 + (length - full * linf) ** 2 - c * length**2
    return max(rest, *(linf**2 * (j - c * j * j) for j in places))


@lru_cache(maxsize=256)
def best_shared_noise(bound: Sensitivity, cells: int) -> SharedNoise:
    """The division into own and shared noise with the least noise on one cell.

    Input:  bound: of totals with entries of one sign, in units of their integer; cells: how many
            groups the table has
    Output: the ratio of the variances, and the variance of the own noise at μ = 1. Where no shared
            noise helps, the ratio is 0. If a unit may be in all of d groups, the deviation of a
            cell is (√d + 1) / 2 times linf, where independent noise has √d times linf
    Bound:  any ratio is private, see `shared_noise_square`. The ratio is found by trying 400 values
            of c·cells in (0, 1), and then a finer list around the best; it is rounded to a multiple
            of 2^-40
    Source: Joseph, Yu 2024, arXiv:2309.15790
    Errors: none here

    >>> bound = Sensitivity.of(l0=24, l1=24, l2_squared=24, linf=1)
    >>> round(float(best_shared_noise(bound, 24).variance) ** 0.5 / 24**0.5, 3)
    0.602
    """
    alone = SharedNoise(Fraction(0), bound.l2_squared)
    if cells < 2 or not bound.l0:
        return alone

    linf, length = float(bound.exact_linf), float(min(bound.exact_l1, bound.l0 * bound.exact_linf))

    def variance(place: float) -> float:
        ratio = place / (cells * (1 - place))
        return (1 + ratio) * _vertex(linf, length, cells, ratio)

    coarse = min((i / _PLACES for i in range(1, _PLACES)), key=variance)
    finer = [coarse + i / _PLACES**2 for i in range(1 - _PLACES, _PLACES)]
    place = min((i for i in finer if 0 < i < 1), key=variance)
    ratio = Fraction(round(place / (cells * (1 - place)) * 2**40), 2**40)
    return min(
        (alone, SharedNoise(ratio, shared_noise_square(bound, cells, ratio))),
        key=lambda noise: noise.variance,
    )
