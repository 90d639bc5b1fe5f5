"""The method of all samplers: inversion, with an exact decision of each rounding.

A draw is F⁻¹(U) for a uniform real U of which the first 64 bits are known. F⁻¹ maps the interval of all U with these
bits to an interval. If this interval, widened by the error of the float computation, rounds to one integer, the draw is
certain: no later bit of U can change it. Otherwise more bits are drawn, and ball arithmetic decides. So for every real
U the result is F⁻¹(U), rounded, and the sampler has exactly the distribution of the rounded real variable.

Errors of floats. ``UNIT`` is the unit roundoff 2^-53: one float operation, or the conversion of an integer, has a
relative error of at most this. ``FUNCTION`` = 16 units is the assumed bound for log and tan: numpy's vector code states
at most 4 ulp (8 units), and C libraries about 1 ulp. The tests measure this error on every platform.

The method depends on the scale:

- up to 2^31: one float per draw;
- up to 2^63: the real line is cut into cells of width B = 2^b, with scale/B in (2^30, 2^31]. First the index of the
  cell is drawn (with the scale scale/B, rounded down), then the position inside the cell from its conditional
  distribution, which is nearly uniform (`cells`). By the chain rule the pair has exactly the joint distribution;
- above 2^63: every draw is decided by ball arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import Floats, WideIntegers
from dpframe.noise import bits
from dpframe.noise.certified import Ball, ball, precision

__all__ = [
    "BLOCK",
    "DIRECT",
    "FUNCTION",
    "SPLIT",
    "UNIT",
    "by_size",
    "combine",
    "fit",
    "magnitude_bits",
    "uniform_ball",
    "uniform_below",
]


BLOCK = 1 << 14  # draws per pass: small enough that the arrays of a pass stay in the processor's cache
DIRECT = 31  # scales up to 2^DIRECT need one float per draw
SPLIT = 63  # scales up to 2^SPLIT are drawn as a cell and a position in it
UNIT = 2.0**-53
FUNCTION = 16 * UNIT


def by_size(
    scale: float | Floats,
    size: int,
    direct: Callable[[float | Floats, int], NDArray[np.int64]],
    split: Callable[[float | Floats, int, NDArray[np.intc]], WideIntegers],
    exact: Callable[[float], int],
) -> WideIntegers:
    """Return `size` draws, each by the method for its scale. `split` also gets the exponent b of the cell width 2^b."""
    if isinstance(scale, float):
        cells = np.frexp(np.nextafter(scale, 0))[1] - DIRECT
        if cells <= 0:
            return direct(scale, size)
        if cells <= SPLIT - DIRECT:
            return split(scale, size, np.asarray(cells, np.intc))
        return fit(np.fromiter((exact(scale) for _ in range(size)), dtype=object, count=size))
    exponents = np.frexp(np.nextafter(scale, 0))[1] - DIRECT
    if not (exponents > 0).any():
        return direct(scale, size)
    draws = np.empty(size, dtype=object)
    small, huge = exponents <= 0, exponents > SPLIT - DIRECT
    middle = ~(small | huge)
    draws[small] = direct(scale[small], int(small.sum()))
    draws[middle] = split(scale[middle], int(middle.sum()), exponents[middle])
    draws[huge] = [exact(float(value)) for value in scale[huge]]
    return fit(draws)


def combine(cells: NDArray[np.int64], exponent: NDArray[np.intc], inside: NDArray[np.int64]) -> WideIntegers:
    """Return cells · 2^exponent + inside: int64 if every value fits, otherwise Python integers."""
    if not cells.size or (int(np.abs(cells).max()) + 2) << int(np.max(exponent)) < 1 << 63:
        return (cells << exponent) + inside
    return fit(np.left_shift(cells.astype(object), np.asarray(exponent).astype(object)) + inside.astype(object))


def fit(values: NDArray[np.object_]) -> WideIntegers:
    """Convert Python integers to int64 if every value fits; otherwise return them unchanged."""
    if values.size and not -(1 << 63) <= values.min() <= values.max() < 1 << 63:
        return values
    return values.astype(np.int64)


def magnitude_bits(word: int) -> int:
    """Return m, the 63 bits of V in a word: the word where its top (sign) bit is 0, else its complement."""
    return (1 << 64) - 1 - word if word >> 63 else word


def uniform_ball(prefix: int, count: int) -> Ball:
    """Return the interval [prefix, prefix + 1] / 2^count, which holds a uniform real with these first `count` bits."""
    return ball(prefix).union(ball(prefix + 1)) / (1 << count)


def uniform_below(prefix: int, count: int, probability: Callable[[], Ball]) -> bool:
    """Whether a uniform real U, which lies in [prefix, prefix + 1] / 2^count, is below a probability.

    Bits of U are drawn, and the probability is evaluated with a growing precision, until the balls of the two are
    disjoint. U equals the probability with probability 0.
    """
    while True:
        with precision(2 * count + 128):
            bound = probability() * (1 << count)
            if bound >= prefix + 1:
                return True
            if bound <= prefix:
                return False
        prefix = prefix << 64 | int(bits.random_words(1)[0])
        count += 64
