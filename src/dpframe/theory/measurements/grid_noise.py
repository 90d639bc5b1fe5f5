"""Noise on numbers: how a value and exact integer noise become one release, and what rounding costs.

Integers get integer noise. A float x gets real noise Z, and the sum is rounded to a grid. round(x + Z) is
post-processing of the textbook mechanism, so it costs nothing if it is drawn exactly. The step of the grid is 2^-61 of
the scale. If x lies on the grid, round(x + Z) = x + round(Z), which needs one call of the sampler. The rare x with bits
below the grid are drawn by inversion in ball arithmetic. With an explicit `granularity`, x is first rounded to that
grid. This can move two values apart by one more step, and the maps charge it. This module handles one value at a time,
in exact fractions; `vector_noise` handles whole arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from dpframe.errors import InvalidArgument
from dpframe.noise import (
    ball,
    bits,
    discrete_laplace,
    float_up,
    precision,
    rounded_gaussian,
    rounded_laplace,
    uniform_ball,
)
from dpframe.theory.exact import exact
from dpframe.theory.spaces import AtomDomain

__all__ = ["Additive", "checked_granularity", "checked_scale"]

Law = Literal["laplace", "gaussian"]

_FINE = 61


def checked_scale(scale: Any) -> Fraction:
    """A positive finite scale, exact. Errors: InvalidArgument."""
    value = exact(scale, "scale")
    if value <= 0:
        raise InvalidArgument(f"scale={scale!r}: noise has a positive scale; without noise nothing is private.")
    return value


def checked_granularity(granularity: Any, atom: AtomDomain) -> Fraction | None:
    """The grid step, exact: a power of two, at least 1 for integers. Errors: InvalidArgument."""
    if granularity is None:
        return None
    if isinstance(granularity, float | np.floating) and math.isfinite(granularity):
        step = Fraction(float(granularity))  # the binary value; the shortest decimal of 2.0**-24 is not a power of two
    else:
        step = exact(granularity, "granularity")
    power = step > 0 and step.numerator & (step.numerator - 1) == 0 and step.denominator & (step.denominator - 1) == 0
    if not power:
        raise InvalidArgument(f"granularity={granularity!r} is the step of the grid, a power of two such as 2.0**-10.")
    if not atom.is_float and step < 1:
        raise InvalidArgument(f"granularity={granularity!r}: the step of a grid of integers is at least 1.")
    return step


@dataclass(frozen=True)
class Additive:
    """Noise of one distribution and scale for one type of atoms.

    `noisy` returns exact numbers (units of `step`), which are compared with thresholds. `release` turns them into
    atoms: the nearest values of the type.
    """

    law: Law
    scale: Fraction
    atom: AtomDomain
    granularity: Fraction | None

    @cached_property
    def exponent(self) -> int:
        """The exponent of the grid's step, a power of two (unit of the values); releases lie on this grid."""
        coarse = None if self.granularity is None else _exponent(self.granularity)
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

        A granularity below 2^-61 of the scale has no effect: all points of the noise's grid are multiples of it.
        """
        return self.granularity is not None and self.granularity == self.step

    @property
    def charge(self) -> Fraction:
        """The largest distance that rounding to the grid can add between two values (unit of the values)."""
        if not self.rounds_first or (self.step == 1 and not self.atom.is_float):
            return Fraction(0)
        return self.step

    @cached_property
    def sampler_scale(self) -> float:
        """The scale in steps of the grid, rounded up, so there is never too little noise. Errors: InvalidArgument."""
        units = float_up(self.scale / self.step)
        if not 0 < units < math.inf:
            raise InvalidArgument(
                f"scale={float_up(self.scale)!r}: the scale, in steps of the grid, is too large or too small for a "
                "float. Give another scale or granularity."
            )
        return units

    def noisy(self, values: list[Any]) -> list[int]:
        """The values plus noise, in units of the grid. Values are finite."""
        return self.added(values, self.sampler()(self.sampler_scale, len(values)).tolist())

    def added(self, values: list[Any], noise: list[int]) -> list[int]:
        """The values plus noise from the grid. For a value between grid points, the noisy value is drawn by inversion.

        The noise that is then not used is independent of everything else, so no distribution changes.
        """
        points = [_fraction(v) / self.step for v in values]
        if self.rounds_first:
            points = [Fraction(math.floor(p + Fraction(1, 2))) for p in points]
        return [
            p.numerator + w if p.denominator == 1 else _inverted(self.law, self.sampler_scale, p)
            for p, w in zip(points, noise, strict=True)
        ]

    def sampler(self) -> Callable[[float, int], Any]:
        """The noise of the grid, in whole steps: real noise rounded, or discrete Laplace noise for integers."""
        if self.law == "gaussian":
            return rounded_gaussian
        return rounded_laplace if self.atom.is_float else discrete_laplace

    def release(self, noisy: list[int]) -> list[Any]:
        """Grid units as atoms: clipped to the range of the type; floats are rounded to the nearest."""
        low, high = self.atom.limits
        values = (n * self.step for n in noisy)
        if not self.atom.is_float:
            return [max(int(low), min(int(high), int(v))) for v in values]
        kind = self.atom.dtype.type
        return [float(kind(float(max(Fraction(low), min(Fraction(high), v))))) for v in values]


def _exponent(power: Fraction) -> int:
    """The exponent k of a power of two 2^k."""
    return power.numerator.bit_length() - power.denominator.bit_length()


def _fraction(value: Any) -> Fraction:
    return Fraction(int(value)) if isinstance(value, int | np.integer) else Fraction(float(value))


def _inverted(law: Law, scale: float, point: Fraction) -> int:
    """floor(point + Z + 1/2) for real noise Z. Random bits are drawn until the result is certain."""
    uniforms = [int(w) for w in bits.random_words(2)]
    count = 64
    while True:
        with precision(2 * count + 128):
            if all(uniforms):
                first, second = (uniform_ball(d, count) for d in uniforms)
                if law == "laplace":
                    # The first bit of one uniform is the sign; the other gives the magnitude.
                    noise = second.log() * ball(scale if uniforms[0] >> (count - 1) else -scale)
                else:
                    noise = ball(scale) * (-2 * first.log()).sqrt() * (2 * second).cos_pi()
                rounded = (noise + ball(point) + ball(Fraction(1, 2))).floor().unique_fmpz()
                if rounded is not None:
                    return int(rounded)
        uniforms = [d << 64 | int(w) for d, w in zip(uniforms, bits.random_words(2), strict=True)]
        count += 64
