"""What the samplers share: certain and uncertain draws, large scales, integers too large for int64.

A draw is F⁻¹(U) for a uniform real U of which 64 bits are known. Its rounded value is certain when the whole
interval of F⁻¹ over those 64 bits, widened by the error of the float computation, rounds to one integer; then no
later bit of U can change it. Otherwise more bits are drawn and ball arithmetic decides. So the result is, for every U,
the rounded value of F⁻¹(U) at the real number U: its law is exactly that of the rounded real variable.

Errors of floats. ``UNIT`` is the unit roundoff 2^-53: one float operation (and one conversion of an integer) is off
by at most that, relatively. ``FUNCTION`` = 16 units is what is granted to log and tan: the vector code inside numpy
states at most 4 ulp (8 units), the C libraries about 1 ulp; the tests measure it on every platform.

Scales by size:

- up to 2^31: one float per draw;
- up to 2^63: the real line is cut into cells of width B = 2^b, with scale/B in (2^30, 2^31]. First the index of the
  cell is drawn (at scale/B, rounded down), then the place inside the cell from its conditional law, which is nearly
  uniform (`cells`). By the chain rule the pair has exactly the joint law;
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


BLOCK = 1 << 14  # draws per pass: the few arrays of a pass then stay in the processor's cache
DIRECT = 31
SPLIT = 63
UNIT = 2.0**-53
FUNCTION = 16 * UNIT


def by_size(
    scale: float | Floats,
    size: int,
    direct: Callable[[float | Floats, int], NDArray[np.int64]],
    split: Callable[[float | Floats, int, NDArray[np.intc]], WideIntegers],
    exact: Callable[[float], int],
) -> WideIntegers:
    """`size` draws, each by the method for its scale; split is given the exponent b of its cells' width."""
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
    """Return cells · 2^exponent + inside, as int64 or as exact Python integers where that does not fit."""
    if not cells.size or (int(np.abs(cells).max()) + 2) << int(np.max(exponent)) < 1 << 63:
        return (cells << exponent) + inside
    return fit(np.left_shift(cells.astype(object), np.asarray(exponent).astype(object)) + inside.astype(object))


def fit(values: NDArray[np.object_]) -> WideIntegers:
    """int64 if every value fits, else the Python integers as they are."""
    if values.size and not -(1 << 63) <= values.min() <= values.max() < 1 << 63:
        return values
    return values.astype(np.int64)


def magnitude_bits(word: int) -> int:
    """Return m, the 63 bits of V in a word: the word where its top (sign) bit is 0, else its complement."""
    return (1 << 64) - 1 - word if word >> 63 else word


def uniform_ball(prefix: int, count: int) -> Ball:
    """Return the interval [known, known + 1] / 2^count of a uniform real of which `count` bits are known."""
    return ball(prefix).union(ball(prefix + 1)) / (1 << count)


def uniform_below(prefix: int, count: int, probability: Callable[[], Ball]) -> bool:
    """Whether a uniform real U, known to lie in [known, known + 1] / 2^count, is below a probability.

    The probability is evaluated with more and more bits, and as many are drawn for U, until the two balls part.
    U equals it with probability 0.
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
