"""Exact arithmetic on distances: a float is read as the decimal that a person
typed, and results are rounded up.

0.1 means one tenth here, not the binary fraction next to it. So `0.1 + 0.2 <= 0.3` holds, and a
claim printed as 0.48 is 12/25. Inside a chain of maps nothing is rounded. Only `map` rounds, at the
end: the decimal of its result is never below the exact number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.errors import InvalidArgument

Real = int | float | Fraction | Decimal | np.integer[Any] | np.floating[Any]


def exact(value: object, name: str) -> Fraction:
    """A finite real number as a fraction; a float is read as its shortest decimal.

    Input:  int, float, Fraction, Decimal or a numpy number; name: the argument's name for the
            message
    Output: Fraction
    Errors: InvalidArgument for anything else, for a bool, NaN and infinity

    >>> exact(0.1, "scale")
    Fraction(1, 10)
    """
    match value:
        case Fraction():
            return value
        case bool() | np.bool_():
            pass
        case int() | np.integer():
            return Fraction(int(value))
        case Decimal() if math.isfinite(value):
            return Fraction(value)
        case float() | np.floating() if math.isfinite(value):
            return Fraction(repr(value) if type(value) is float else str(value))
    raise InvalidArgument(f"{name} is a finite real number; {value!r} is not.")


def binary(value: Any) -> Fraction:
    """The exact value of a finite number: of a float its binary value."""
    return (
        Fraction(int(value))
        if isinstance(value, int | np.integer | np.bool_)
        else Fraction(float(value))
    )


def limit(value: object, name: str) -> Fraction:
    """A finite upper limit as a fraction: the larger of its shortest
    decimal and its exact binary value.

    A limit that was typed means its decimal (0.3 is three tenths). A limit that a computation
    rounded up means its binary value.

    >>> (
    ...     limit(0.3, "d_out") == Fraction(3, 10),
    ...     limit(0.1, "d_out") == Fraction(0.1) > Fraction(1, 10),
    ... )
    (True, True)
    """
    decimal = exact(value, name)
    return max(decimal, binary(value)) if isinstance(value, float | np.floating) else decimal


@dataclass(frozen=True, slots=True)
class Root:
    """The square root of a rational number that is not negative, stored as its square.

    Euclidean lengths are square roots. A ρ needs only the square, so a chain to Gaussian noise
    rounds nothing.
    """

    squared: Fraction


Length = Fraction | Root
# of cells: how many change, the l1 or l2 of the change, the largest change
Triple = tuple[int, Length, Length]


def square(value: Length) -> Fraction:
    """The exact square of a length.

    >>> square(Root(Fraction(2)))
    Fraction(2, 1)
    """
    return value.squared if isinstance(value, Root) else value * value


def exact_root(squared: Fraction) -> Fraction | None:
    """The square root of a fraction if it is rational, else None."""
    root = Fraction(*map(math.isqrt, squared.as_integer_ratio()))
    return root if root * root == squared else None


def root_above(squared: Fraction) -> Fraction:
    """The square root of a fraction: exact if it is rational, otherwise rounded up by
    less than 2^-128 of its value.

    >>> root_above(Fraction(4, 9)), 0 < root_above(Fraction(2)) ** 2 - 2 < Fraction(1, 2**120)
    (Fraction(2, 3), True)
    """
    if (root := exact_root(squared)) is not None:
        return root
    top, bottom = squared.as_integer_ratio()
    shift = max(0, 280 - top.bit_length() + bottom.bit_length()) // 2 * 2
    return Fraction(math.isqrt((top << shift) // bottom) + 1, 1 << shift // 2)


def ceil_log2(value: Fraction) -> int:
    """The smallest integer k with value <= 2^k; 0 for zero."""
    k = value.numerator.bit_length() - value.denominator.bit_length()
    return k + (value > Fraction(2) ** k) if value else 0


def upward(value: Length) -> float:
    """The smallest float whose decimal or binary value is at least the exact value.

    Input:  a rational number or a root of one
    Output: float; infinite when no finite float is large enough

    >>> upward(Fraction(12, 25)), upward(Root(Fraction(2))), upward(Fraction(1, 3))
    (0.48, 1.4142135623730951, 0.33333333333333337)
    """

    def covers(near: float) -> bool:
        if math.isinf(near):
            return near > 0
        bound = limit(near, "float")
        if isinstance(value, Root):
            return bound >= 0 and bound * bound >= value.squared
        return bound >= value

    near = _near(value)
    while not covers(near):
        near = math.nextafter(near, math.inf)
    while covers(below := math.nextafter(near, -math.inf)):
        near = below
    return near


def fraction_above(value: Length) -> Fraction:
    """A length as a fraction; for a root that of the float above it."""
    return value if isinstance(value, Fraction) else exact(upward(value), "length")


def _near(value: Length) -> float:
    """Some float close to the value."""
    if isinstance(value, Root):
        top, bottom = value.squared.as_integer_ratio()
        shift = max(0, 140 - top.bit_length() + bottom.bit_length()) & ~1
        root = math.isqrt((top << shift) // bottom)
        return _near(Fraction(root, 1 << (shift // 2)))
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


class Joint(tuple[Any, ...]):
    """A tuple of distances or losses that is compared part by part:
    a <= b if each part of a is at most that of b.

    Two joints can be incomparable: neither is `<=` the other.

    >>> (
    ...     Joint((1.0, 1e-6)) <= (1.5, 1e-6),
    ...     Joint((1.0, 1e-6)) <= (1.5, 1e-7),
    ...     Joint((1.5, 1e-7)) <= (1.0, 1e-6),
    ... )
    (True, False, False)
    """

    __slots__ = ()

    def __le__(self, other: Any) -> bool:
        return len(self) == len(other) and all(a <= b for a, b in zip(self, other, strict=True))

    def __ge__(self, other: Any) -> bool:
        return len(self) == len(other) and all(a >= b for a, b in zip(self, other, strict=True))

    def __lt__(self, other: Any) -> bool:
        return self <= other and tuple(self) != tuple(other)

    def __gt__(self, other: Any) -> bool:
        return self >= other and tuple(self) != tuple(other)
