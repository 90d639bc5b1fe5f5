"""Noise on numbers and on arrays: how a value and exact integer noise become one
release, and what rounding costs.

Integers get integer noise. A float x gets real noise Z, and the sum is rounded to a grid. round(x +
Z) is post-processing of the textbook mechanism, so it costs nothing if it is drawn exactly. The
step of the grid is 2^-61 of the scale. If x lies on the grid, round(x + Z) = x + round(Z), which
needs one call of the sampler. The rare x with bits below the grid are drawn by inversion in ball
arithmetic. With an explicit `granularity`, x is first rounded to that grid. This can move two
values apart by one more step, and the maps charge it. `Additive` handles one value at a time, in
exact fractions.

`noisy_array` handles whole arrays in one pass of numpy, with the same distribution; no step depends
on the values.

Integers: value + noise, clipped to the range of the type. Floats: x is split into a multiple of the
          step and a
remainder. Noise is drawn for that remainder (`dpframe.noise.shifted_laplace`). The released number
is the float nearest to the exact sum. The sum has three terms, each an exact float: the multiple of
the step, and two parts of the noise. It is rounded once, so the release depends on x through the
exact sum alone; a second rounding would show low bits of x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpframe.arrays import Array, WideIntegers
from dpframe.errors import InvalidArgument
from dpframe.noise import (
    ball,
    bits,
    discrete_laplace,
    float_up,
    gaussian_tail,
    laplace_tail,
    precision,
    rounded_gaussian,
    rounded_laplace,
    shifted_gaussian,
    shifted_laplace,
    uniform_ball,
)
from dpframe.theory.datasets import Vector, as_array
from dpframe.theory.exact import binary, ceil_log2, exact
from dpframe.theory.spaces import AtomDomain


def _laplace_ball(bits: int, first: Any, second: Any, scale: float) -> Any:
    # the first bit of one uniform is the sign
    return second.log() * ball(scale if bits else -scale)


def _gaussian_ball(bits: int, first: Any, second: Any, scale: float) -> Any:
    return ball(scale) * (-2 * first.log()).sqrt() * (2 * second).cos_pi()


@dataclass(frozen=True)
class Law:
    """A law of noise: its name, noise for integers, real noise rounded to integers, and
    real noise added to remainders.

    `inverted` is real noise from the first bit of a uniform number, two uniform numbers and a
    scale. `tail` is that of real noise, and `family` names the tail of the noise for integers.
    """

    name: str
    whole: Callable[[float, int], WideIntegers]
    rounded: Callable[[float, int], WideIntegers]
    shifted: Callable[..., tuple[Array, Array, int]]
    inverted: Callable[[int, Any, Any, float], Any]
    tail: Callable[[Fraction, Fraction], float]
    family: str


LAPLACE = Law(
    "laplace",
    discrete_laplace,
    rounded_laplace,
    shifted_laplace,
    _laplace_ball,
    laplace_tail,
    "discrete_laplace",
)
GAUSSIAN = Law(
    "gaussian",
    rounded_gaussian,
    rounded_gaussian,
    shifted_gaussian,
    _gaussian_ball,
    gaussian_tail,
    "gaussian",
)

_FINE = 61


def checked_scale(scale: object) -> Fraction:
    """A positive finite scale, exact. Errors: InvalidArgument."""
    value = exact(scale, "scale")
    if value <= 0:
        raise InvalidArgument(
            f"scale={scale!r}: noise has a positive scale; without noise nothing is private."
        )
    return value


def checked_granularity(granularity: object, atom: AtomDomain) -> Fraction | None:
    """The grid step, exact: a power of two, at least 1 for integers. Errors: InvalidArgument."""
    if granularity is None:
        return None
    if isinstance(granularity, float | np.floating) and math.isfinite(granularity):
        # the binary value; the shortest decimal of 2.0**-24 is not a power of two
        step = binary(granularity)
    else:
        step = exact(granularity, "granularity")
    power = (
        step > 0
        and step.numerator & (step.numerator - 1) == 0
        and step.denominator & (step.denominator - 1) == 0
    )
    if not power:
        raise InvalidArgument(
            f"granularity={granularity!r} is the step of the grid, a power of two such as 2.0**-10."
        )
    if not atom.is_float and step < 1:
        raise InvalidArgument(
            f"granularity={granularity!r}: the step of a grid of integers is at least 1."
        )
    return step


@dataclass(frozen=True)
class Additive:
    """Noise of one distribution and scale for one type of atoms.

    `noisy` returns exact numbers (units of `step`), which are compared with thresholds. `release`
    turns them into atoms: the nearest values of the type.
    """

    law: Law
    scale: Fraction
    atom: AtomDomain
    granularity: Fraction | None

    @classmethod
    def of(cls, law: Law, scale: object, granularity: object, atom: AtomDomain) -> Additive:
        """Noise as typed. Errors: InvalidArgument, also where the grid does not suit it."""
        noise = cls(law, checked_scale(scale), atom, checked_granularity(granularity, atom))
        _ = noise.sampler_scale  # refuses such a grid here, not at the first call
        return noise

    @cached_property
    def exponent(self) -> int:
        """The exponent of the grid's step, a power of two (unit of the values)."""
        coarse = None if self.granularity is None else ceil_log2(self.granularity)
        if not self.atom.is_float:
            return coarse or 0
        fine = math.frexp(float_up(self.scale))[1] - 1 - _FINE
        return fine if coarse is None else max(coarse, fine)

    @cached_property
    def step(self) -> Fraction:
        """The step of that grid, exact (unit of the values)."""
        return Fraction(2) ** self.exponent

    @property
    def rounds_first(self) -> bool:
        """Whether values are rounded to the grid before the noise.

        A granularity below 2^-61 of the scale has no effect: all points of the noise's grid are
        multiples of it.
        """
        return self.granularity is not None and self.granularity == self.step

    @property
    def charge(self) -> Fraction:
        """The largest distance that rounding can add between two values (their unit)."""
        if not self.rounds_first or (self.step == 1 and not self.atom.is_float):
            return Fraction(0)
        return self.step

    @cached_property
    def sampler_scale(self) -> float:
        """The scale in steps of the grid, rounded up, so there is never too little noise.
        Errors: InvalidArgument.
        """
        units = float_up(self.scale / self.step)
        if not 0 < units < math.inf:
            raise InvalidArgument(
                f"scale={float_up(self.scale)!r}: the scale, in steps of the grid, is too large or "
                "too small for a float. Give another scale or granularity."
            )
        return units

    def noisy(self, values: list[float]) -> list[int]:
        """The values plus noise, in units of the grid. Values are finite."""
        return self.added(values, self.sampler()(self.sampler_scale, len(values)).tolist())

    def added(self, values: list[float], noise: list[int]) -> list[int]:
        """The values plus noise from the grid.
        For a value between grid points, the noisy value is drawn by inversion.

        The noise that is then not used is independent of everything else, so no distribution
        changes.
        """
        points = [binary(v) / self.step for v in values]
        if self.rounds_first:
            points = [Fraction(math.floor(p + Fraction(1, 2))) for p in points]
        return [
            p.numerator + w if p.denominator == 1 else _inverted(self.law, self.sampler_scale, p)
            for p, w in zip(points, noise, strict=True)
        ]

    def sampler(self) -> Callable[[float, int], WideIntegers]:
        """The noise of the grid, in whole steps: real noise rounded, or
        discrete Laplace noise for integers.
        """
        return self.law.rounded if self.atom.is_float else self.law.whole

    def release(self, noisy: list[int]) -> list[float]:
        """Grid units as atoms: clipped to the type; floats are rounded to the nearest."""
        low, high = self.atom.limits
        values = (n * self.step for n in noisy)
        if not self.atom.is_float:
            return [max(int(low), min(int(high), int(v))) for v in values]
        kind = self.atom.dtype.type
        return [float(kind(float(max(Fraction(low), min(Fraction(high), v))))) for v in values]


def _inverted(law: Law, scale: float, point: Fraction) -> int:
    """floor(point + Z + 1/2) for real noise Z. Bits are drawn until the result is certain."""
    uniforms = [int(w) for w in bits.random_words(2)]
    count = 64
    while True:
        with precision(2 * count + 128):
            if all(uniforms):
                first, second = (uniform_ball(d, count) for d in uniforms)
                noise = law.inverted(uniforms[0] >> (count - 1), first, second, scale)
                rounded = (noise + ball(point) + ball(Fraction(1, 2))).floor().unique_fmpz()
                if rounded is not None:
                    return int(rounded)
        uniforms = [d << 64 | int(w) for d, w in zip(uniforms, bits.random_words(2), strict=True)]
        count += 64


_BLOCK = 1 << 14  # values per pass; the arrays of a pass then fit in the processor's cache
_WIDE = 2.0**31  # the scale (grid steps) above which a draw has two parts
# between these exponents of steps and scales, no sum of floats over- or underflows
_LARGEST, _SMALLEST = 900, -960


def noisy_array(noise: Additive, values: Vector) -> Array:
    """The values plus noise, ready for release.

    Input:  noise; values: a vector of members of its atoms, without NaN
    Output: an array of their type: multiples of the step, rounded to the nearest number of the type
            and clipped to its range. Infinite values do not change
    """
    array = _exact_array(noise, values)
    if not noise.atom.is_float:
        assert array is not None
        draws = noise.sampler()(noise.sampler_scale, len(array))
        summed = None if draws.dtype == object else _integers(noise, array, draws)
        if summed is None:
            summed = np.array(
                noise.release(noise.added(array.tolist(), draws.tolist())), dtype=array.dtype
            )
        return summed
    if array is not None and _ordinary(noise):
        return _floats(noise, array)
    entries = values.tolist() if hasattr(values, "tolist") else list(values)
    finite = [v for v in entries if math.isfinite(v)]
    noisy = iter(noise.release(noise.noisy(finite)))
    return np.array(
        [next(noisy) if math.isfinite(v) else v for v in entries], dtype=noise.atom.dtype
    )


def _exact_array(noise: Additive, values: Vector) -> Array | None:
    """The values as an array that holds each exactly;
    None if whole numbers among floats may be too large for floats.

    Values of a float32 domain may be float64. They are not rounded before the noise, which would
    move them apart.
    """
    if not noise.atom.is_float:
        return as_array(values, noise.atom)
    if not hasattr(values, "__array__"):
        has_integers = any(issubclass(kind, int | np.integer) for kind in set(map(type, values)))
        array = np.array(list(values), np.float64)
    else:
        array = np.asarray(values)
        has_integers, array = array.dtype.kind != "f", array.astype(np.float64)
    return None if has_integers and len(array) and np.abs(array).max() >= 2.0**53 else array


# Integers


def _integers(noise: Additive, values: Array, draws: Array) -> Array | None:
    """Value + noise, clipped to the range of the type; None if the grid is too wide for 64 bits."""
    low, high = (int(end) for end in noise.atom.limits)
    exponent = noise.step.numerator.bit_length() - 1
    if high >= 1 << 63:
        return _unsigned(values, draws) if exponent == 0 else None
    if exponent > 62:
        return None
    points = values.astype(np.int64)
    if exponent:  # to the nearest multiple of the step, halves upward
        points = (points >> exponent) + ((points >> (exponent - 1)) & 1)
    total = _saturated(points, draws)
    over, under = total > high >> exponent, total < low >> exponent
    result = np.maximum(np.where(over | under, 0, total) << exponent, low)
    result[over], result[under] = high, low
    typed: Array = result.astype(values.dtype)
    return typed


def _saturated(a: Array, b: Array) -> Array:
    """The sum of 64-bit integers, clipped to their range."""
    with np.errstate(over="ignore"):
        total = a + b
    wrapped = ((a ^ total) & (b ^ total)) < 0
    ends = np.iinfo(np.int64)
    result: Array = np.where(wrapped, np.where(b < 0, ends.min, ends.max), total)
    return result


def _unsigned(values: Array, draws: Array) -> Array:
    """Unsigned 64-bit values plus signed noise, clipped to the range of the type."""
    # np.abs leaves -2^63 as it is, and the unsigned view of that is 2^63.
    size = np.abs(draws).view(np.uint64)
    with np.errstate(over="ignore"):
        up, down = values + size, values - size
    up = np.where(up < values, np.iinfo(np.uint64).max, up)
    down = np.where(down > values, np.uint64(0), down)
    return np.where(draws < 0, down, up).astype(np.uint64)


# Floats


def _ordinary(noise: Additive) -> bool:
    """Whether sums of floats with this step and scale neither overflow nor lose
    bits below the smallest float.
    """
    return (
        noise.exponent > _SMALLEST
        and max(noise.exponent, math.frexp(float(noise.scale))[1]) < _LARGEST
    )


def _floats(noise: Additive, values: Array) -> Array:
    """Floats plus noise, block by block."""
    result = np.empty(len(values), noise.atom.dtype)
    low, high = noise.atom.limits
    for start in range(0, len(values), _BLOCK):
        block = slice(start, start + _BLOCK)
        x = values[block].astype(np.float64)
        # Infinite values become NaN in between and are restored below.
        with np.errstate(all="ignore"):
            summed = _nearest_sum(*_terms(noise, x))
            # For float64, `_ordinary` excludes sums beyond the range.
            if noise.atom.dtype != np.float64:
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
    remainder = steps - multiple  # exact
    if noise.rounds_first:
        multiple += remainder == 0.5  # halves upward
        remainder = np.zeros(len(x))
    multiple = _scaled(multiple, exponent)
    large = np.abs(x) >= math.ldexp(1.0, exponent + 52)  # multiples of the step already
    multiple, remainder = np.where(large, x, multiple), np.where(large, 0.0, remainder)
    if scale <= _WIDE:
        first = _scaled(noise.law.rounded(scale, len(x)), exponent)
        return multiple, first, np.zeros(len(x))

    def exact_remainder(i: int) -> Fraction:
        below = abs(x[i]) < math.ldexp(1.0, exponent - 1) and not noise.rounds_first
        # For very small values the float `remainder` may have lost bits below the smallest float;
        # the fraction not.
        return Fraction(float(x[i])) / noise.step if below else Fraction(float(remainder[i]))

    high, low, wide = noise.law.shifted(scale, remainder, exact_remainder)
    return multiple, _scaled(high, exponent + wide), _scaled(low, exponent)


def _scaled(values: Array, exponent: int) -> Array:
    """Numbers times a power of two."""
    result: Array = (
        values * math.ldexp(1.0, exponent)
        if -1022 <= exponent <= 1023
        else np.ldexp(values, exponent)
    )
    return result


def _nearest_sum(x: Array, first: Array, second: Array) -> Array:
    """The float nearest to x + first + second, rounded once.

    The sum of two floats and its rounding error are both floats (`_two_sum`). So the three terms
    become one float and two small ones. The small ones are added with rounding to odd; then the
    last addition rounds as the exact sum would (Boldo and Melquiond 2008, "Emulation of a FMA and
    correctly rounded sums", theorem 6). This holds if nothing overflows and no bits are lost below
    the smallest float.
    """
    head = first + second
    # the rounding error of the sum; |first| is at least |second|, or 0 (Dekker 1971)
    second -= head - first
    total, error = _two_sum(x, head)
    small, lost = _two_sum(error, second)
    pattern = small.view(np.int64)
    away = np.signbit(lost) == np.signbit(small)
    pattern += ((pattern & 1 == 0) & (lost != 0)) * (2 * away.view(np.int8) - 1)
    total += small
    return total


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The float nearest to a + b, and the rounding error of this sum (Knuth 1969)."""
    total = a + b
    second_part = total - a
    error = total - second_part
    np.subtract(a, error, out=error)
    np.subtract(b, second_part, out=second_part)
    error += second_part
    return total, error
