"""Exact numbers of a certificate as texts: bounds and losses are rounded up."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dpframe.noise import Ball, precision

_ABOVE = 1 + Fraction(1, 2**80)
_BITS = 256  # of a number that is written in full; a longer one is rounded up to so many bits


def text(number: Fraction | int) -> str:
    """A rational number as `n/d`.

    >>> text(Fraction(1, 10)), text(3)
    ('1/10', '3/1')
    """
    number = Fraction(number)
    return f"{number.numerator}/{number.denominator}"


def rounded_up(number: Fraction) -> Fraction:
    """A number >= 0 itself, or slightly more if its digits are too many.

    >>> rounded_up(Fraction(1, 3)), 0 <= rounded_up(Fraction(1, 3**200)) * 3**200 - 1 < 1e-60
    (Fraction(1, 3), True)
    """
    top, bottom = number.as_integer_ratio()
    if max(top.bit_length(), bottom.bit_length()) <= _BITS:
        return number
    shift = _BITS - (top.bit_length() - bottom.bit_length())
    unit = Fraction(2) ** -shift
    return -(-number // unit) * unit


def certified_up(value: Callable[[], Ball]) -> Fraction:
    """A rational number that is at least a value and above it by 2^-80 to 2^-79 of it.

    The distance is there for whoever derives the value again, with fewer bits: intervals must end
    below the claim.

    Input:  value: computes a ball around the number, at the current precision
    """
    bits = 256
    while True:
        with precision(bits):
            ball = value()
            if ball.rel_accuracy_bits() >= 128 or bits > 1 << 13:
                mantissa, exponent = ball.upper().man_exp()
                return rounded_up(
                    max(Fraction(0), int(mantissa) * Fraction(2) ** int(exponent)) * _ABOVE
                )
        bits *= 2
