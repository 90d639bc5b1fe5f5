"""Noise on numbers: how a value and exact integer noise become one release, and what rounding costs.

Integers get integer noise. A float x gets real noise Z, and the sum is rounded to a grid: round(x + Z) is
post-processing of the textbook mechanism, so it costs nothing as long as it is drawn exactly. The grid is 2^-61 of the
scale. Where x lies on it, round(x + Z) = x + round(Z) and one call of the sampler does; the rare x with bits below the
grid are drawn by inversion in ball arithmetic. With an explicit `granularity` x is rounded to that grid first, which
can move two values apart by one step more; the maps charge it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
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
    step = exact(granularity, "granularity")
    power = step > 0 and step.numerator & (step.numerator - 1) == 0 and step.denominator & (step.denominator - 1) == 0
    if not power:
        raise InvalidArgument(f"granularity={granularity!r} is the step of the grid, a power of two such as 2.0**-10.")
    if not atom.is_float and step < 1:
        raise InvalidArgument(f"granularity={granularity!r}: the step of a grid of integers is at least 1.")
    return step


@dataclass(frozen=True)
class Additive:
    """Noise of one law and scale for one type of atoms.

    `noisy` returns exact numbers (units of `step`), which thresholds are compared with; `release` turns them into
    atoms, to the nearest value that the type holds.
    """

    law: Law
    scale: Fraction
    atom: AtomDomain
    granularity: Fraction | None

    @property
    def step(self) -> Fraction:
        """The grid that releases lie on (unit of the values)."""
        if self.granularity is not None:
            return self.granularity
        if not self.atom.is_float:
            return Fraction(1)
        return Fraction(2) ** (math.frexp(float_up(self.scale))[1] - 1 - _FINE)

    @property
    def charge(self) -> Fraction:
        """How much further apart rounding to the grid can move two values (unit of the values)."""
        if self.granularity is None or (self.granularity == 1 and not self.atom.is_float):
            return Fraction(0)
        return self.granularity

    @property
    def sampler_scale(self) -> float:
        """The scale in units of the grid, rounded up: never less noise than was asked for. Errors: InvalidArgument."""
        units = float_up(self.scale / self.step)
        if not 0 < units < math.inf:
            raise InvalidArgument("granularity: the grid is too fine, or too coarse, for this scale.")
        return units

    def noisy(self, values: list[Any]) -> list[int]:
        """The values plus noise, in units of the grid. Values are finite."""
        step, scale = self.step, self.sampler_scale
        points = [_fraction(v) / step for v in values]
        if self.granularity is not None:
            points = [Fraction(math.floor(p + Fraction(1, 2))) for p in points]
        noise = self._sampler()(scale, len(points))
        return [
            p.numerator + int(w) if p.denominator == 1 else _inverted(self.law, scale, p)
            for p, w in zip(points, noise.tolist(), strict=True)
        ]

    def _sampler(self) -> Callable[[float, int], Any]:
        if self.law == "gaussian":
            return rounded_gaussian
        return rounded_laplace if self.atom.is_float else discrete_laplace

    def release(self, noisy: list[int]) -> list[Any]:
        """Grid units as atoms: clipped to the range of the type, floats to the nearest."""
        low, high = self.atom.limits
        values = (n * self.step for n in noisy)
        if not self.atom.is_float:
            return [max(int(low), min(int(high), int(v))) for v in values]
        kind = self.atom.dtype.type
        return [float(kind(float(max(Fraction(low), min(Fraction(high), v))))) for v in values]


def _fraction(value: Any) -> Fraction:
    return Fraction(int(value)) if isinstance(value, int | np.integer) else Fraction(float(value))


def _inverted(law: Law, scale: float, point: Fraction) -> int:
    """floor(point + Z + 1/2) for real noise Z, with as many random bits as it takes to be certain."""
    drawn = [int(w) for w in bits.random_words(2)]
    count = 64
    while True:
        with precision(2 * count + 128):
            if all(drawn):
                first, second = (uniform_ball(d, count) for d in drawn)
                if law == "laplace":
                    # The first bit of one uniform is the sign; the other gives the magnitude.
                    noise = second.log() * ball(scale if drawn[0] >> (count - 1) else -scale)
                else:
                    noise = ball(scale) * (-2 * first.log()).sqrt() * (2 * second).cos_pi()
                whole = (noise + ball(point) + ball(Fraction(1, 2))).floor().unique_fmpz()
                if whole is not None:
                    return int(whole)
        drawn = [d << 64 | int(w) for d, w in zip(drawn, bits.random_words(2), strict=True)]
        count += 64
