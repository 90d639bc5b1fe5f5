"""The method of all samplers: inversion, with an exact decision of each rounding.

A draw is F⁻¹(U) for a uniform real U of which the first 64 bits are known. F⁻¹ maps the interval of
all U with these bits to an interval. If this interval, widened by the error of the float
computation, rounds to one integer, the draw is certain: no later bit of U can change it. Otherwise
more bits are drawn, and ball arithmetic decides. So for every real U the result is F⁻¹(U), rounded,
and the sampler has exactly the distribution of the rounded real variable.

Errors of floats. ``UNIT`` is the unit roundoff 2^-53: one float operation, or the conversion of an
integer, has a relative error of at most this. ``FUNCTION`` = 16 units is the assumed bound for log
and tan: numpy's vector code states at most 4 ulp (8 units), and C libraries about 1 ulp. The tests
measure this error on every platform.

The method depends on the scale:

- up to 2^31: one float per draw;
- up to 2^63: the real line is cut into cells of width B = 2^b, with scale/B in (2^30, 2^31]. First
  the index of the cell is drawn (with the scale scale/B, rounded down), then the position inside
  the cell from its conditional distribution, which is nearly uniform (`place`). By the chain rule
  the pair has exactly the joint distribution;
- above 2^63: every draw is decided by ball arithmetic.

`place` draws the position of a draw of large scale inside its cell of width 2^b.

Scale the cell to [0, 1]. Its density is proportional to exp(-tilt·x - curve·x²), where tilt and
curve are at most 2^-26 in magnitude. The distribution function is F(x) = x + (tilt/2)·x(1-x) + ρ
with |ρ| ≤ tilt²/6 + 1.1·curve: expand the quotient of the two integrals, and note that the factor
exp(-curve·x²) lies between exp(-curve) and 1. Hence F⁻¹(u) = u - (tilt/2)·u(1-u) + ρ' with |ρ'| ≤
tilt² + 2·curve, since replacing x by u in the second term changes it by at most (|tilt|/2)·|x-u| ≤
tilt²/8. So one multiplication gives the position with an error of about 2^-49 of the cell's width.
Few positions are so close to a rounding boundary that this error matters. For these, U is compared
with F at the boundary, in ball arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import Floats, Integers, WideIntegers, Words
from dpframe.noise import bits
from dpframe.noise.certified import Ball, ball, precision

# draws per pass: small enough that the arrays of a pass stay in the processor's cache
BLOCK = 1 << 14
DIRECT = 31  # scales up to 2^DIRECT need one float per draw
SPLIT = 63  # scales up to 2^SPLIT are drawn as a cell and a position in it
UNIT = 2.0**-53
FUNCTION = 16 * UNIT


def blocks(size: int) -> Iterator[tuple[slice, Words]]:
    """The places of `size` draws, block by block, and a random word for each."""
    for start in range(0, size, BLOCK):
        block = slice(start, min(start + BLOCK, size))
        yield block, bits.random_words(block.stop - start)


def by_size(
    scale: float | Floats,
    size: int,
    direct: Callable[[float | Floats, int], Integers],
    split: Callable[[float | Floats, int, NDArray[np.intc]], WideIntegers],
    exact: Callable[[float], int],
) -> WideIntegers:
    """Return `size` draws, each by the method for its scale.
    `split` also gets the exponent b of the cell width 2^b.
    """
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


def combine(cells: Integers, exponent: NDArray[np.intc], inside: Integers) -> WideIntegers:
    """Return cells · 2^exponent + inside: int64 if every value fits, otherwise Python integers."""
    if not cells.size or (int(np.abs(cells).max()) + 2) << int(np.max(exponent)) < 1 << 63:
        return (cells << exponent) + inside
    return fit(
        np.left_shift(cells.astype(object), np.asarray(exponent).astype(object))
        + inside.astype(object)
    )


def fit(values: NDArray[np.object_]) -> WideIntegers:
    """Convert Python integers to int64 if every value fits; otherwise return them unchanged."""
    if values.size and not -(1 << 63) <= values.min() <= values.max() < 1 << 63:
        return values
    return values.astype(np.int64)


def magnitude_bits(word: int) -> int:
    """Return m, the 63 bits of V in a word: the word where its top (sign)
    bit is 0, else its complement.
    """
    return (1 << 64) - 1 - word if word >> 63 else word


def uniform_ball(prefix: int, count: int) -> Ball:
    """Return the interval [prefix, prefix + 1] / 2^count, which holds a uniform real
    with these first `count` bits.
    """
    return ball(prefix).union(ball(prefix + 1)) / (1 << count)


def uniform_below(prefix: int, count: int, probability: Callable[[], Ball]) -> bool:
    """Whether a uniform real U, which lies in [prefix, prefix + 1] /
    2^count, is below a probability.

    Bits of U are drawn, and the probability is evaluated with a growing precision, until the balls
    of the two are disjoint. U equals the probability with probability 0.
    """
    while True:
        with precision(2 * count + 128):
            bound = probability() * (1 << count)
            if bound >= prefix + 1:
                return True
            if bound <= prefix:
                return False
        prefix = prefix << 64 | bits.random_word()
        count += 64


class Inside(NamedTuple):
    """The law of the position in a cell: tilt and curve of the density above;
    distribution(i, x) is F(x) of draw i.
    """

    tilt: float | Floats
    curve: float | Floats
    distribution: Callable[[int, Ball], Ball]


def place(
    words: Words,
    exponent: NDArray[np.intc],
    law: Inside,
    shift: float | Floats,
    offset: Callable[[int], Ball],
) -> Integers:
    """floor(2^b·X + c) for X with the density above, by inversion at
    the upper 63 bits of each word.

    Input:  shift is c - 1/2 as a float, within 2^-47; offset(i) is c of draw i, as a ball
    Output: integers in [0, 2^b], shape of words
    """
    return place_floats(words, exponent, law, shift, offset).astype(np.int64)


def place_floats(
    words: Words,
    exponent: NDArray[np.intc],
    law: Inside,
    shift: float | Floats,
    offset: Callable[[int], Ball],
) -> Floats:
    """The integers of `place`, as floats. The floats are exact."""
    tilt, curve, distribution = law
    uniform = (words >> np.uint64(1)).view(np.int64) + 0.5
    uniform *= 2.0**-63
    width = np.ldexp(1.0, exponent)
    where = uniform * uniform
    where -= uniform
    where *= 0.5 * tilt
    where += uniform
    where *= width
    where += shift
    result = np.rint(where, out=uniform)
    gap = np.subtract(where, result, out=where)
    # Five roundings and half a bit of U are at most 6 units of the width; the error bound allows
    # 16.
    error = width * (16 * UNIT + tilt * tilt + 2 * curve) + 2.0**-46
    for i in np.nonzero(np.abs(gap) > 0.5 - error)[0]:
        boundary = int(result[i]) + int(gap[i] > 0)
        wide = int(np.broadcast_to(exponent, words.shape)[i])

        def at_boundary(i: int = int(i), boundary: int = boundary, wide: int = wide) -> Ball:
            return distribution(i, (ball(boundary) - offset(i)) / (1 << wide))

        below = uniform_below(int(words[i]) >> 1, 63, at_boundary)
        result[i] = boundary - 1 if below else boundary
    return result
