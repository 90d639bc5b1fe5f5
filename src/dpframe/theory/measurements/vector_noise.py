"""Noise on whole arrays, in one pass of numpy: the law of `grid_noise`, and the same steps whatever the values are.

Integers: value + noise, held at the ends of the type. Floats: x is split into a multiple of the step and a rest, noise
is drawn with that rest (`dpframe.noise.shifted_laplace`), and what is released is the float next to the exact sum. The
sum has three floats, each exact: the multiple of the step, and two parts of the noise. It is rounded once, so that
the release is a function of the exact sum and of nothing else about x; a second rounding would show low bits of x.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.noise import rounded_gaussian, rounded_laplace, shifted_gaussian, shifted_laplace
from dpframe.theory.measurements.grid_noise import Additive
from dpframe.theory.vectors import as_array

__all__ = ["noisy_array"]

Array = np.ndarray[Any, Any]
_BLOCK = 1 << 14  # values per pass: the arrays of a pass then stay in the processor's cache
_WIDE = 2.0**31  # from here on a draw comes in two parts
_LARGEST, _SMALLEST = 900, -960  # exponents of steps and scales between which no sum of floats over- or underflows


def noisy_array(noise: Additive, values: Any) -> Array:
    """The values plus noise, as they are released.

    Input:  noise; values: a vector of members of its atoms, NaN not among them
    Output: an array of their type: multiples of the step, to the nearest that the type holds, within its range.
            Infinite values stay
    """
    array = _exact_array(noise, values)
    if not noise.atom.is_float:
        assert array is not None
        drawn = noise.sampler()(noise.sampler_scale, len(array))
        summed = None if drawn.dtype == object else _integers(noise, array, drawn)
        if summed is None:
            summed = np.array(noise.release(noise.added(array.tolist(), drawn.tolist())), dtype=array.dtype)
        return summed
    if array is not None and _ordinary(noise):
        return _floats(noise, array)
    entries = values.tolist() if hasattr(values, "tolist") else list(values)
    finite = [v for v in entries if math.isfinite(v)]
    noisy = iter(noise.release(noise.noisy(finite)))
    return np.array([next(noisy) if math.isfinite(v) else v for v in entries], dtype=noise.atom.dtype)


def _exact_array(noise: Additive, values: Any) -> Array | None:
    """The values as an array that holds each exactly; None where whole numbers among floats may be too large for that.

    Values of a float32 domain may come as float64: they are not rounded before the noise, which would move them apart.
    """
    if not noise.atom.is_float:
        return as_array(values, noise.atom)
    if not hasattr(values, "__array__"):
        whole = any(issubclass(kind, int | np.integer) for kind in set(map(type, values)))
        array = np.array(list(values), np.float64)
    else:
        array = np.asarray(values)
        whole, array = array.dtype.kind != "f", array.astype(np.float64)
    return None if whole and len(array) and np.abs(array).max() >= 2.0**53 else array


# Integers


def _integers(noise: Additive, values: Array, drawn: Array) -> Array | None:
    """Value + noise, held at the ends of the type; None where the grid is too wide for 64 bits."""
    low, high = (int(end) for end in noise.atom.limits)
    exponent = noise.step.numerator.bit_length() - 1
    if high >= 1 << 63:
        return _unsigned(values, drawn) if exponent == 0 else None
    if exponent > 62:
        return None
    whole = values.astype(np.int64)
    if exponent:  # to the nearest multiple of the step, halves upward
        whole = (whole >> exponent) + ((whole >> (exponent - 1)) & 1)
    total = _saturated(whole, drawn)
    over, under = total > high >> exponent, total < low >> exponent
    result = np.maximum(np.where(over | under, 0, total) << exponent, low)
    result[over], result[under] = high, low
    held: Array = result.astype(values.dtype)
    return held


def _saturated(a: Array, b: Array) -> Array:
    """The sum of 64-bit integers, held at their ends."""
    with np.errstate(over="ignore"):
        total = a + b
    wrapped = ((a ^ total) & (b ^ total)) < 0
    ends = np.iinfo(np.int64)
    result: Array = np.where(wrapped, np.where(b < 0, ends.min, ends.max), total)
    return result


def _unsigned(values: Array, drawn: Array) -> Array:
    """Unsigned 64-bit values plus signed noise, held at 0 and at the largest."""
    size = np.abs(drawn).view(np.uint64)  # -2^63 is its own absolute value, which read without sign is right
    with np.errstate(over="ignore"):
        up, down = values + size, values - size
    up = np.where(up < values, np.iinfo(np.uint64).max, up)
    down = np.where(down > values, np.uint64(0), down)
    return np.where(drawn < 0, down, up).astype(np.uint64)


# Floats


def _ordinary(noise: Additive) -> bool:
    """Whether step and scale are such that sums of floats neither overflow nor lose bits below the smallest float."""
    return noise.exponent > _SMALLEST and max(noise.exponent, math.frexp(float(noise.scale))[1]) < _LARGEST


def _floats(noise: Additive, values: Array) -> Array:
    """Floats plus noise, block by block."""
    result = np.empty(len(values), noise.atom.dtype)
    low, high = noise.atom.limits
    for start in range(0, len(values), _BLOCK):
        block = slice(start, start + _BLOCK)
        x = values[block].astype(np.float64)
        with np.errstate(all="ignore"):  # an infinite value makes NaN on the way, and is put back
            summed = _nearest_sum(*_terms(noise, x))
            if noise.atom.dtype != np.float64:  # sums of ordinary numbers are within the range of a 64-bit float
                np.clip(summed, low, high, out=summed)
            summed += 0.0  # no negative zero
            if not np.isfinite(x).all():
                summed = np.where(np.isinf(x), x, summed)
            result[block] = summed
    return result


def _terms(noise: Additive, x: Array) -> tuple[Array, Array, Array]:
    """Three floats whose exact sum is the value plus noise, rounded to the step."""
    exponent, scale = noise.exponent, noise.sampler_scale
    steps = _scaled(x, -exponent)
    multiple = np.rint(steps)
    rest = steps - multiple  # exact
    if noise.rounds_first:
        multiple += rest == 0.5  # halves upward
        rest = np.zeros(len(x))
    multiple = _scaled(multiple, exponent)
    large = np.abs(x) >= math.ldexp(1.0, exponent + 52)  # multiples of the step already
    multiple, rest = np.where(large, x, multiple), np.where(large, 0.0, rest)
    if scale <= _WIDE:
        draw = rounded_gaussian if noise.law == "gaussian" else rounded_laplace
        first = _scaled(draw(scale, len(x)), exponent)
        return multiple, first, np.zeros(len(x))

    def exact(i: int) -> Fraction:
        below = abs(x[i]) < math.ldexp(1.0, exponent - 1) and not noise.rounds_first
        # Very small values: the float `rest` may have lost bits below the smallest float, the fraction has not.
        return Fraction(float(x[i])) / noise.step if below else Fraction(float(rest[i]))

    shifted = shifted_gaussian if noise.law == "gaussian" else shifted_laplace
    high, low, wide = shifted(scale, rest, exact)
    return multiple, _scaled(high, exponent + wide), _scaled(low, exponent)


def _scaled(values: Array, exponent: int) -> Array:
    """Numbers times a power of two."""
    result: Array = values * math.ldexp(1.0, exponent) if -1022 <= exponent <= 1023 else np.ldexp(values, exponent)
    return result


def _nearest_sum(x: Array, first: Array, second: Array) -> Array:
    """The float next to x + first + second, rounded once.

    The sum of two floats and its rounding error are both floats (`_two_sum`). So the three terms become one float and
    two small ones; the small ones are added with rounding to odd, after which the last addition rounds as the exact
    sum would (Boldo and Melquiond 2008, "Emulation of a FMA and correctly rounded sums", theorem 6). That holds where
    nothing overflows and nothing is lost below the smallest float.
    """
    head = first + second
    second -= head - first  # |first| is at least |second|, or 0: what is left of the sum (Dekker 1971)
    total, error = _two_sum(x, head)
    small, lost = _two_sum(error, second)
    pattern = small.view(np.int64)
    away = np.signbit(lost) == np.signbit(small)
    pattern += ((pattern & 1 == 0) & (lost != 0)) * (2 * away.view(np.int8) - 1)
    total += small
    return total


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The float next to a + b, and what is left of the exact sum (Knuth 1969)."""
    total = a + b
    other = total - a
    error = total - other
    np.subtract(a, error, out=error)
    np.subtract(b, other, out=other)
    error += other
    return total, error
