"""Real noise added to real numbers and rounded once: ⌊x + Z + 1/2⌋
for many x, in one pass of numpy.

A float x is a whole number of grid steps plus a remainder r in [-1/2, 1/2] of a step. So the
rounded sum is that whole number plus ⌊Z + r + 1/2⌋, and only r enters here. The scale is large
(above 2^31 steps), so a draw is split as in `inversion`: first the index of a cell of width B =
2^b, then the position inside the cell. The remainder r moves the rounding boundaries by less than a
step; it is part of the c of `inversion.place`:

- Laplace: Z has magnitude B·(q + R) and a fair sign s. For s = +1 the result is ⌊|Z| + (1/2 + r)⌋.
  For s = -1 it is -⌊|Z| + (1/2 - r)⌋ with probability 1, because ⌊c - y⌋ = -⌊y + (1 - c)⌋ unless y
  - c is whole.
- Gaussian: Z = B·(q + R) with q of either sign, and the result is ⌊Z + (1/2 + r)⌋.

The cell and the position are returned as two numbers, since q·B need not fit in 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dpframe.arrays import Floats
from dpframe.errors import InvalidArgument
from dpframe.noise import bits
from dpframe.noise.certified import Ball, ball
from dpframe.noise.gaussian import cell_mass, whole_cells
from dpframe.noise.inversion import DIRECT, SPLIT, Inside, place_floats
from dpframe.noise.laplace import lower_cells
from dpframe.noise.scales import check_scale

Parts = tuple[Floats, Floats, int]
_HALF = Fraction(1, 2)
_ONE = np.float64(1).view(np.uint64)


def shifted_laplace(scale: float, shift: Floats, exact: Callable[[int], Fraction]) -> Parts:
    """Laplace noise plus a fraction of a step, rounded to the nearest integer.

    Input:  scale, a float in (2^31, 2^63], in units of the integers; shift, floats in [-1/2, 1/2],
            one per draw; exact(i), the exact shift of draw i, from which shift[i] differs by at
            most 2^-50
    Output: (high, low, b), two float arrays of whole numbers, of the shape of `shift`: high·2^b +
            low = ⌊Z + shift + 1/2⌋ for independent real Z with density exp(-|z|/scale)/(2·scale).
            |low| is at most 2^b, and has the sign of Z as high has
    Law:  exact for the float `scale` as given and the exact shifts; the argument is at the top of
          this module
    Errors: InvalidArgument for a scale out of range

    >>> high, low, exponent = shifted_laplace(2.0**40, np.zeros(3), lambda i: Fraction(0))
    >>> high.shape, bool((np.abs(low) <= 2**exponent).all()), exponent
    ((3,), True, 9)
    """
    rate, exponent = _width(scale)
    cells = lower_cells(rate, len(shift))
    words = bits.random_words(len(shift))
    # The upper 63 bits of the word give the position. The last bit becomes the sign of a float 1.
    sign = (words << np.uint64(63) | _ONE).view(np.float64)

    def offset(i: int) -> Ball:
        return ball(_HALF + int(sign[i]) * exact(i))

    def distribution(_: int, x: Ball) -> Ball:
        slope = -1 / ball(rate)
        return (slope * x).expm1() / slope.expm1()

    law = Inside(1 / rate, 0.0, distribution)
    inside = place_floats(words, np.asarray(exponent, np.intc), law, sign * shift, offset)
    inside *= sign
    return cells * sign, inside, exponent


def shifted_gaussian(scale: float, shift: Floats, exact: Callable[[int], Fraction]) -> Parts:
    """Gaussian noise plus a fraction of a step, rounded to the nearest integer.

    Input:  as in `shifted_laplace`
    Output: (high, low, b) as in `shifted_laplace`, but with 0 <= low <= 2^b and high of either
            sign. Z is normal with mean 0 and standard deviation `scale`
    Law:  exact for the float `scale` as given and the exact shifts; the argument is at the top of
          this module
    Errors: InvalidArgument for a scale out of range

    >>> high, low, exponent = shifted_gaussian(2.0**40, np.zeros(3), lambda i: Fraction(0))
    >>> bool((low >= 0).all())
    True
    """
    rate, exponent = _width(scale)
    cells = whole_cells(rate, len(shift))
    words = bits.random_words(len(shift))
    variance = rate * rate

    def distribution(i: int, x: Ball) -> Ball:
        return cell_mass(int(cells[i]), x, rate) / cell_mass(int(cells[i]), ball(1), rate)

    law = Inside(np.asarray(cells * (1 / variance), np.float64), 0.5 / variance, distribution)
    inside = place_floats(
        words, np.asarray(exponent, np.intc), law, shift, lambda i: ball(_HALF + exact(i))
    )
    return cells.astype(np.float64), inside, exponent


def _width(scale: float) -> tuple[float, int]:
    """The scale in widths of the cells, and the exponent b of this width 2^b.
    Errors: InvalidArgument for a scale out of range.
    """
    exact_scale = check_scale(scale, 0)
    exponent = int(np.frexp(np.nextafter(exact_scale, 0))[1]) - DIRECT
    if not 0 < exponent <= SPLIT - DIRECT:
        raise InvalidArgument(f"scale={scale!r} must lie in (2^{DIRECT}, 2^{SPLIT}].")
    return math.ldexp(float(exact_scale), -exponent), exponent
