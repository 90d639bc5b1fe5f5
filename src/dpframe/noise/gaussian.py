"""Gaussian noise on the integers: the real normal distribution, rounded.

Two uniform reals V and W give two independent normals (Box and Muller 1958): with R = √(-2 ln V)
and a uniform angle φ = πW, W in [-1, 1), they are R·cos φ and R·sin φ. The angle is evaluated
through t = tan(φ/2), cos φ = (1-t²)/(1+t²) and sin φ = 2t/(1+t²). So only one trigonometric
function is needed, which numpy evaluates in vector code where it can. One word gives m, 63 bits of
V. Another word gives W in [w, w+1]/2^63 with w in [-2^63, 2^63).

When a draw is certain. Let u = 2^-53 and L = -ln V, and let a hat mark the float that approximates
a number. All errors are relative to the scale:

- L has the three errors of Laplace noise (see `laplace`): |L - L̂| ≤ 16u·L̂ + 3u + 1.01·2^-63·e^L̂.
  As R - R̂ = 2(L - L̂)/(R + R̂), the error of R is at most this bound divided by R̂/2. The first
  part of the bound contributes 8u·R̂, since R and R̂ are near each other. The square root adds u·R.
- φ/2 has an error of 3u·π/2 from the conversion of w, the constant π/2 and their product, and one
  of π/2·2^-63 from the unknown bits. So φ, cos φ and sin φ have errors below 10u.
- tan has a relative error of 16u (see `inversion`). As |d cos φ/d ln t| = 4t²/(1+t²)² ≤ 1 and |d
  sin φ/d ln t| ≤ 1/2, it contributes at most 17u.
- t², 1±t², the quotient and the last product contribute at most 6u, since |1-t²| ≤ 1+t².

Together |X - X̂| ≤ 44u·R̂ + (6u + 2.02·2^-63·e^L̂)/R̂. For 2^-8 ≤ R̂ ≤ √24 this bound is below
2^-42, so one comparison with a constant decides almost every draw. The other draws are compared
with the bound itself. If that does not decide them, or if L̂ > 40, ball arithmetic decides them
with more bits of V and W. Both draws of a pair use the same bits.

For a scale above 2^31 the draw is B·(q + R), where q = ⌊Z/B⌋ is drawn as above with σ = scale/B,
and R in [0, 1) has a density ∝ exp(-(q+R)²/2σ²), that is ∝ exp(-R·q/σ² - R²/2σ²).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import Floats, Integers, WideIntegers, Words
from dpframe.noise import bits
from dpframe.noise.certified import Ball, ball, precision
from dpframe.noise.inversion import (
    BLOCK,
    UNIT,
    Inside,
    blocks,
    by_size,
    combine,
    magnitude_bits,
    place,
    uniform_ball,
)
from dpframe.noise.scales import check_scale, check_size, part

_HALF_TURN = math.pi / 2 * 2.0**-63


def rounded_gaussian(scale: float | Floats, size: int) -> WideIntegers:
    """Gaussian noise rounded to the nearest integer.

    Input:  scale, one positive float or a float64 array with one per draw, in units of the
            integers; size draws
    Output: ⌊Z + 1/2⌋ for independent real Z, normal with mean 0 and standard deviation `scale`;
            int64, or Python integers (dtype object) where some draw does not fit
    Law:    exact for the float `scale` as given; the argument is at the top of this module
    Source: Box and Muller 1958, doi:10.1214/aoms/1177706645
    Errors: InvalidArgument for a scale that is not positive and finite, or a shape that is not
            (size,)

    >>> rounded_gaussian(10.0, 5).shape
    (5,)
    """
    size = check_size(size)
    return by_size(
        check_scale(scale, size),
        size,
        lambda scale, size: _direct(scale, size, 0.0),
        _split,
        _huge,
    )


def _direct(scale: float | Floats, size: int, shift: float) -> Integers:
    """Draws of ⌊Z + 1/2 + shift⌋ for scales up to 2^31; shift is 0 or -1/2."""
    result = np.empty(size, np.int64)
    work = np.empty((5, (min(size, BLOCK) + 1) // 2))
    for start in range(0, size, BLOCK):
        count = min(BLOCK, size - start)
        half = (count + 1) // 2
        words = bits.random_words(2 * half)
        cosines = slice(start, start + half)
        sines = slice(start + half, start + count)
        scales = part(scale, cosines), part(scale, sines)
        result[cosines], result[sines] = _block(
            scales, shift, words[:half], words[half:], count - half, work
        )
    return result


def _block(
    scales: tuple[float | Floats, float | Floats],
    shift: float,
    radii: Words,
    angles: Words,
    sines: int,
    work: Floats,
) -> tuple[Floats, Floats]:
    """Return the draws of one block as floats (all below 2^53):
    R·cos φ of each pair, R·sin φ of the first `sines`.
    """
    radius, tangent, square, first, second = work[:, : len(radii)]
    np.add(radii.view(np.int64), 0.5, out=radius)
    np.abs(radius, out=radius)
    radius *= 2.0**-63
    np.log(radius, out=radius)
    radius *= -2
    extreme = radius.max() > 24 or radius.min() < 2.0**-16
    np.sqrt(radius, out=radius)
    np.multiply(angles.view(np.int64), _HALF_TURN, out=tangent)
    np.tan(tangent, out=tangent)
    np.multiply(tangent, tangent, out=square)
    np.add(square, 1, out=first)
    np.divide(radius, first, out=second)
    np.subtract(1, square, out=first)
    first *= second
    second *= tangent
    second *= 2
    nearest = []
    suspects = (radius > 4.89) | (radius < 1.0001 * 2.0**-8) if extreme else None
    for value, scale in zip((first, second[:sines]), scales, strict=True):
        value *= scale
        if shift:
            value += shift
        integers = np.rint(value)
        value -= integers
        gap = np.abs(value, out=value)
        margin = 0.5 - 2.0**-46 - 2.0**-42 * scale
        if (gap > margin).any():
            suspects = np.zeros(len(radius), bool) if suspects is None else suspects
            suspects[: len(gap)] |= gap > margin
        nearest.append(integers)
    if suspects is not None:
        _settle(scales, shift, radii, angles, (nearest[0], nearest[1]), np.nonzero(suspects)[0])
    return nearest[0], nearest[1]


def _settle(
    scales: tuple[float | Floats, float | Floats],
    shift: float,
    radii: Words,
    angles: Words,
    nearest: tuple[Floats, Floats],
    suspects: NDArray[np.intp],
) -> None:
    """Decide the pairs that the constant bound does not decide, and
    write their draws into `nearest`.
    """
    cosine, sine, error = normal_pairs(radii[suspects], angles[suspects])
    open_pairs = np.isinf(error)
    for value, scale, integers in zip((cosine, sine), scales, nearest, strict=True):
        present = suspects < len(integers)
        index = suspects[present]
        own = part(scale, index)
        draw = own * value[present] + shift
        integers[index] = np.rint(draw)
        open_pairs[present] |= ~(
            np.abs(draw - integers[index]) <= 0.5 - own * error[present] - 2.0**-46
        )
    for i in suspects[open_pairs]:
        pair = tuple(
            float(part(scale, i))
            for scale, integers in zip(scales, nearest, strict=True)
            if i < len(integers)
        )
        for integers, whole in zip(
            nearest, _exact(pair, shift, int(radii[i]), int(angles[i])), strict=False
        ):
            integers[i] = whole


def _exact(scales: tuple[float, ...], shift: float, radius: int, angle: int) -> list[int]:
    """⌊scale·R·cos φ + ½ + shift⌋ and, with a second scale,
    ⌊scale·R·sin φ + ½ + shift⌋ for two words.
    """
    prefix, turn = pair_bits(radius, angle)
    count = 63
    exponent = max(0, *(math.frexp(scale)[1] for scale in scales))
    while True:
        if prefix:
            with precision(count + exponent + 64):
                wholes = [
                    (normal * scale + (0.5 + shift)).floor().unique_fmpz()
                    for scale, normal in zip(
                        scales, normal_balls(prefix, turn, count), strict=False
                    )
                ]
            if None not in wholes:
                return [int(whole) for whole in wholes]
        fresh = bits.random_words(2)
        prefix = prefix << 64 | int(fresh[0])
        turn = turn << 64 | int(fresh[1])
        count += 64


def normal_pairs(radii: Words, angles: Words) -> tuple[Floats, Floats, Floats]:
    """R·cos φ and R·sin φ as floats, and a bound on the error of each:
    inf where only ball arithmetic can decide.
    """
    # With the absolute value in place of a minus, a logarithm of 0 gives +0, so that its error is
    # +inf and not -inf.
    length = np.abs(np.log(np.abs(radii.view(np.int64) + 0.5) * 2.0**-63))
    radius = np.sqrt(2 * length)
    tangent = np.tan(angles.view(np.int64) * _HALF_TURN)
    quotient = radius / (1 + tangent * tangent)
    with np.errstate(divide="ignore"):
        error = 44 * UNIT * radius + (6 * UNIT + 2.02 * 2.0**-63 * np.exp(length)) / radius
    error[length > 40] = math.inf
    return quotient * (1 - tangent * tangent), 2 * (quotient * tangent), error


def pair_bits(radius: int, angle: int) -> tuple[int, int]:
    """The integers of a pair of words: m, the 63 bits of V, and w,
    the 63 bits and the sign of W.
    """
    return magnitude_bits(radius), angle if angle < 1 << 63 else angle - (1 << 64)


def normal_balls(prefix: int, turn: int, count: int) -> tuple[Ball, Ball]:
    """R·cos φ and R·sin φ as balls, from the first `count` bits of V (`prefix`,
    which is not 0) and of W (`turn`).
    """
    length = (-2 * uniform_ball(prefix, count).log()).nonnegative_part().sqrt()
    phase = uniform_ball(turn, count)
    return phase.cos_pi() * length, phase.sin_pi() * length


def _split(scale: float | Floats, size: int, exponent: NDArray[np.intc]) -> WideIntegers:
    """Draws for scales in (2^31, 2^63]: first the cell, then the position in it."""
    cell_scale = np.ldexp(scale, -exponent)
    rates, exponents = (np.broadcast_to(part, (size,)) for part in (cell_scale, exponent))
    cells = _direct(float(cell_scale) if isinstance(scale, float) else cell_scale, size, -0.5)
    inside = np.empty(size, np.int64)
    for block, words in blocks(size):
        cell, rate = cells[block], rates[block]
        variance = rate * rate

        def distribution(i: int, x: Ball, cell: Integers = cell, rate: Floats = rate) -> Ball:
            return cell_mass(int(cell[i]), x, float(rate[i])) / cell_mass(
                int(cell[i]), ball(1), float(rate[i])
            )

        inside[block] = place(
            words,
            exponents[block],
            Inside(cell / variance, 0.5 / variance, distribution),
            0.0,
            _half,
        )
    return combine(cells, exponent, inside)


def _half(_: int) -> Ball:
    return ball(0.5)


def cell_mass(cell: int, x: Ball, scale: float) -> Ball:
    """A constant multiple of the normal probability of (cell, cell + x),
    without cancellation in the tails.
    """
    start, root = ball(cell), scale * ball(2).sqrt()
    if cell >= 0:
        return (start / root).erfc() - ((start + x) / root).erfc()
    return (-(start + x) / root).erfc() - (-start / root).erfc()


def whole_cells(scale: float, size: int) -> Integers:
    """⌊Z⌋ for independent normal Z with a standard deviation of at most 2^31."""
    return _direct(scale, size, -0.5)


def _huge(scale: float) -> int:
    radius, angle = (int(word) for word in bits.random_words(2))
    return _exact((scale,), 0.0, radius, angle)[0]
