"""The position of a draw of large scale inside its cell of width 2^b.

Scale the cell to [0, 1]. Its density is proportional to exp(-tilt·x - curve·x²), where tilt and curve are at most 2^-26
in magnitude. The distribution function is F(x) = x + (tilt/2)·x(1-x) + ρ with |ρ| ≤ tilt²/6 + 1.1·curve: expand the
quotient of the two integrals, and note that the factor exp(-curve·x²) lies between exp(-curve) and 1. Hence
F⁻¹(u) = u - (tilt/2)·u(1-u) + ρ' with |ρ'| ≤ tilt² + 2·curve, since replacing x by u in the second term changes it by
at most (|tilt|/2)·|x-u| ≤ tilt²/8. So one multiplication gives the position with an error of about 2^-49 of the cell's
width. Few positions are so close to a rounding boundary that this error matters. For these, U is compared with F at the
boundary, in ball arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import Floats, Words
from dpframe.noise.certified import Ball, ball
from dpframe.noise.inversion import UNIT, uniform_below

__all__ = ["place", "place_floats"]


def place(
    words: Words,
    exponent: NDArray[np.intc],
    tilt: float | Floats,
    curve: float | Floats,
    shift: float | Floats,
    offset: Callable[[int], Ball],
    distribution: Callable[[int, Ball], Ball],
) -> NDArray[np.int64]:
    """floor(2^b·X + c) for X with the density above, by inversion at the upper 63 bits of each word.

    Input:  shift is c - 1/2 as a float, within 2^-47; offset(i) is c and distribution(i, x) is F(x) of draw i, as balls
    Output: integers in [0, 2^b], shape of words
    """
    return place_floats(words, exponent, tilt, curve, shift, offset, distribution).astype(np.int64)


def place_floats(
    words: Words,
    exponent: NDArray[np.intc],
    tilt: float | Floats,
    curve: float | Floats,
    shift: float | Floats,
    offset: Callable[[int], Ball],
    distribution: Callable[[int, Ball], Ball],
) -> Floats:
    """The integers of `place`, as floats. The floats are exact."""
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
    # Five roundings and half a bit of U are at most 6 units of the width; the error bound allows 16.
    error = width * (16 * UNIT + tilt * tilt + 2 * curve) + 2.0**-46
    for i in np.nonzero(np.abs(gap) > 0.5 - error)[0]:
        boundary = int(result[i]) + int(gap[i] > 0)
        wide = int(np.broadcast_to(exponent, words.shape)[i])

        def at_boundary(i: int = int(i), boundary: int = boundary, wide: int = wide) -> Ball:
            return distribution(i, (ball(boundary) - offset(i)) / (1 << wide))

        below = uniform_below(int(words[i]) >> 1, 63, at_boundary)
        result[i] = boundary - 1 if below else boundary
    return result
