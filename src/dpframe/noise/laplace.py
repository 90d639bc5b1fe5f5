"""Laplace noise on the integers: the real Laplace distribution, rounded, and the
discrete Laplace distribution.

Both are |X| = ⌊scale·(-ln V) + c⌋ with a fair sign, for one uniform real V:

- rounded Laplace: |Z| = scale·(-ln V), and c = 1/2 rounds |Z| to the nearest integer (ties have
  probability 0);
- discrete Laplace, P[X = x] ∝ a^|x| with a = exp(-1/scale): P[|X| ≥ k] = 2a^k/(1+a) for k ≥ 1. This
  is equal to P[scale·(-ln V) + c ≥ k] for c = scale·ln(2/(1+a)). As c lies in (0, 1/2), the latter
  probability is 1 for k = 0, as it must be. A magnitude of 0 has no sign.

One word gives the sign (1 bit) and m, 63 bits of V. So V lies in [m, m+1]/2^63.

When a draw is certain. Let y = -ln V for the real V, ŷ = -log((m+½)/2^63) in floats, and u = 2^-53.
There are three errors:

- V differs from the centre (m+½)/2^63 of its interval: their logarithms differ by at most 1/(2m),
  and 1/m < 1.01·2^-63·e^ŷ for ŷ ≤ 40;
- computing m+½ in floats takes two roundings, which change the logarithm by at most 2u;
- the logarithm itself has an error of 16u·ŷ (see `inversion`).

So |y - ŷ| ≤ 16u·ŷ + 3u + 1.01·2^-63·e^ŷ. The product with the scale and the sum with c add 2u times
the result. For ŷ ≤ 12 the whole error is below 2^-44·scale, so one comparison with a constant
decides almost every draw. The other draws are compared with the bound itself. If that does not
decide them, or if ŷ > 40, ball arithmetic decides them with more bits of V.

For a scale above 2^31 the magnitude is B·(q + R). Here q = ⌊|Z|/B⌋ is drawn as above with c = 0 and
the scale scale/B. R in [0, 1) has a density ∝ exp(-R·B/scale) and is independent of q, since the
exponential distribution has no memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import Floats, Integers, WideIntegers, Words
from dpframe.noise import bits
from dpframe.noise.certified import Ball, ball, precision
from dpframe.noise.inversion import (
    BLOCK,
    FUNCTION,
    UNIT,
    Inside,
    blocks,
    by_size,
    combine,
    magnitude_bits,
    place,
    uniform_ball,
    uniform_below,
)
from dpframe.noise.scales import check_scale, check_size, part


@dataclass(frozen=True)
class _Rounding:
    """The constant c of a sampler: `shift` is c - 1/2 in floats, within
    2^-48, and `offset` is c as a ball.
    """

    shift: Callable[[float | Floats], float | Floats]
    offset: Callable[[float], Ball]


def _discrete_shift(scale: float | Floats) -> float | Floats:
    with np.errstate(over="ignore", divide="ignore"):
        return -scale * np.log1p(np.expm1(-1 / np.asarray(scale)) / 2) - 0.5


def _discrete_offset(scale: float) -> Ball:
    return scale * -((-1 / ball(scale)).expm1() / 2).log1p()


_ROUNDED = _Rounding(lambda scale: 0.0, lambda scale: ball(0.5))
_DISCRETE = _Rounding(_discrete_shift, _discrete_offset)
_DEEP = 2.0**63 * math.exp(-12) * 1.001  # for m below this number, -log((m+½)/2^63) may be above 12
_DOWN = _Rounding(lambda scale: -0.5, lambda scale: ball(0))


def rounded_laplace(scale: float | Floats, size: int) -> WideIntegers:
    """Laplace noise rounded to the nearest integer.

    Input:  scale, one positive float or a float64 array with one per draw, in units of the
            integers; size draws
    Output: round(Z) for independent real Z with density exp(-|z|/scale)/(2·scale); int64, or Python
            integers (dtype object) where some draw does not fit
    Law:    exact for the float `scale` as given; the argument is at the top of this module
    Errors: InvalidArgument for a scale that is not positive and finite, or a shape that is not
            (size,)

    >>> rounded_laplace(10.0, 5).shape
    (5,)
    """
    return _draw(_ROUNDED, scale, size)


def discrete_laplace(scale: float | Floats, size: int) -> WideIntegers:
    """Discrete Laplace (two-sided geometric) noise.

    Input:  scale, one positive float or a float64 array with one per draw; size draws
    Output: independent integers X with P[X = x] ∝ exp(-|x|/scale); int64, or Python integers (dtype
            object) where some draw does not fit
    Law:    exact for the float `scale` as given; the argument is at the top of this module
    Source: Ghosh, Roughgarden, Sundararajan 2009, arXiv:0811.2841
    Errors: InvalidArgument for a scale that is not positive and finite, or a shape that is not
            (size,)

    >>> discrete_laplace(0.5, 3).dtype
    dtype('int64')
    """
    return _draw(_DISCRETE, scale, size)


def _draw(rule: _Rounding, scale: float | Floats, size: int) -> WideIntegers:
    size = check_size(size)
    return by_size(
        check_scale(scale, size),
        size,
        lambda scale, size: _direct(rule, scale, size),
        lambda scale, size, exponent: _split(rule, scale, size, exponent),
        lambda scale: _huge(rule, scale),
    )


def _direct(rule: _Rounding, scale: float | Floats, size: int) -> Integers:
    result = np.empty(size, np.int64)
    work = np.empty((3, min(size, BLOCK)))
    for block, words in blocks(size):
        result[block] = _block(rule, part(scale, block), words, work)
    return result


def _block(rule: _Rounding, scale: float | Floats, words: Words, work: Floats) -> Floats:
    """Return the signed draws of one block, as floats (all below 2^53)."""
    signed, value, nearest = work[:, : len(words)]
    np.add(words.view(np.int64), 0.5, out=signed)
    np.abs(signed, out=value)
    value *= 2.0**-63
    np.log(value, out=value)
    deep = value.min() < -12
    value *= -scale
    if rule is not _ROUNDED:
        value += rule.shift(scale)
    np.rint(value, out=nearest)
    gap = np.subtract(value, nearest, out=value)
    np.abs(gap, out=gap)
    margin = 0.5 - 2.0**-46 - 2.0**-44 * scale
    if deep or (gap > margin).any():
        suspects = np.nonzero((gap > margin) | (np.abs(signed) < _DEEP))[0]
        _settle(rule, scale, words, nearest, suspects)
    result: Floats = np.copysign(nearest, signed, out=nearest)
    return result


def _settle(
    rule: _Rounding,
    scale: float | Floats,
    words: Words,
    nearest: Floats,
    suspects: NDArray[np.intp],
) -> None:
    """Decide the draws that the constant bound does not decide, and write them into `nearest`."""
    scales = part(scale, suspects)
    y = -np.log(np.abs(words[suspects].view(np.int64) + 0.5) * 2.0**-63)
    value = scales * y + rule.shift(scales)
    error = scales * ((FUNCTION + 2 * UNIT) * y + 3 * UNIT + 1.01 * 2.0**-63 * np.exp(y)) + 2.0**-46
    integers = np.rint(value)
    nearest[suspects] = integers
    for i in suspects[(np.abs(value - integers) > 0.5 - error) | (y > 40)]:
        nearest[i] = _exact(rule, float(part(scale, i)), magnitude_bits(int(words[i])), 63)


def _exact(rule: _Rounding, scale: float, prefix: int, count: int) -> int:
    """⌊scale·(-ln V) + c⌋ for a V whose first `count` bits are `prefix`.
    Bits are drawn until the result is certain.
    """
    exponent = max(0, math.frexp(scale)[1])
    while True:
        if prefix:
            with precision(count + exponent + 64):
                whole = (
                    (rule.offset(scale) - scale * uniform_ball(prefix, count).log())
                    .floor()
                    .unique_fmpz()
                )
            if whole is not None:
                return int(whole)
        prefix = prefix << 64 | bits.random_word()
        count += 64


def geometric(scale: float, size: int) -> list[int]:
    """Independent whole G >= 0 with P[G >= k] = e^(-k/scale), of any scale.

    Law:  exact. G = ⌊scale·E⌋ for exponential E. For a scale above 2^30 it is B·q + r with B a
            power of two: q is such a number of scale/B, and r in [0, B) has a chance proportional
            to e^(-r/scale), independent of q. A uniform r is kept with that chance, which is at
            least 1 - 2^-29
    """
    exponent = max(0, math.frexp(scale)[1] - 30)
    high: list[int] = lower_cells(math.ldexp(scale, -exponent), size).tolist()
    if not exponent:
        return high
    words = exponent // 64 + 2
    low: list[int] = []
    while len(low) < size:
        drawn = bits.random_words(words * (size - len(low))).tolist()
        for start in range(0, len(drawn), words):
            word, rest = drawn[start], 0
            for more in drawn[start + 1 : start + words]:
                rest = rest << 64 | more
            rest >>= 64 * (words - 1) - exponent
            sure = word < (1 - rest / scale - 2.0**-40) * 2.0**64
            if sure or uniform_below(word, 64, lambda rest=rest: (-ball(rest) / ball(scale)).exp()):  # type: ignore[misc]
                low.append(rest)
    return [one << exponent | other for one, other in zip(high, low, strict=True)]


def lower_cells(scale: float, size: int) -> Integers:
    """⌊|Z|⌋ for independent Laplace Z with a scale of at most 2^31."""
    return np.abs(_direct(_DOWN, scale, size))


def _split(
    rule: _Rounding, scale: float | Floats, size: int, exponent: NDArray[np.intc]
) -> WideIntegers:
    """Draws for scales in (2^31, 2^63]: first the cell, then the position in it and the sign."""
    cell_scale = np.ldexp(scale, -exponent)
    scales, rates, exponents = (
        np.broadcast_to(part, (size,)) for part in (scale, cell_scale, exponent)
    )
    cells = np.abs(
        _direct(_DOWN, float(cell_scale) if isinstance(scale, float) else cell_scale, size)
    )
    inside = np.empty(size, np.int64)
    negative = np.empty(size, bool)
    for block, words in blocks(size):
        rate = rates[block]

        def offset(i: int, own: Floats = scales[block]) -> Ball:
            return rule.offset(float(own[i]))

        def distribution(i: int, x: Ball, rate: Floats = rate) -> Ball:
            slope = -1 / ball(float(rate[i]))
            return (slope * x).expm1() / slope.expm1()

        # The upper 63 bits of the word give the position, the last bit gives the sign.
        shift = rule.shift(scales[block])
        inside[block] = place(
            words, exponents[block], Inside(1 / rate, 0.0, distribution), shift, offset
        )
        negative[block] = (words & np.uint64(1)).astype(bool)
    magnitude = combine(cells, exponent, inside)
    return np.where(negative, -magnitude, magnitude)


def _huge(rule: _Rounding, scale: float) -> int:
    word = bits.random_word()
    magnitude = _exact(rule, scale, magnitude_bits(word), 63)
    return -magnitude if word >> 63 else magnitude
