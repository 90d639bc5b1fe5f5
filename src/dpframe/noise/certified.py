"""Ball arithmetic: real numbers with a proven error, and their rounding to floats in a chosen direction.

A ball (`flint.arb`) is a midpoint and a radius; every operation returns a ball that surely contains the exact
result. So a comparison that a ball decides is a proof, and one that it cannot decide is repeated with more bits.
flint takes some 50 ms to import and is needed by almost no draw, so it is imported where it is first used.
"""

from __future__ import annotations

import math
import os
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

__all__ = [
    "Ball",
    "Number",
    "accurate",
    "at_most",
    "ball",
    "float_down",
    "float_up",
    "precision",
    "root_up",
    "round_down",
    "round_up",
    "smallest_float",
    "solve",
    "upper",
]

Number = int | float | Fraction
Ball = Any  # flint.arb has no type stubs

_lock = threading.RLock()


def _fresh_lock() -> None:
    global _lock  # a lock that another thread held at the fork is never released in the child
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh_lock)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Ball arithmetic at this many bits inside the block, one thread at a time.

    flint's precision is a global of the process. Foreign code that changes it meanwhile can only widen the balls.
    """
    from flint import ctx

    with _lock, ctx.workprec(bits):
        yield


def ball(x: Number) -> Ball:
    """Return a ball that contains x: exact for integers and floats, the tightest at this precision for fractions."""
    from flint import arb, fmpq

    if isinstance(x, Fraction):
        return arb(fmpq(x.numerator, x.denominator))
    return arb(x)


def round_up(x: Ball) -> float:
    """Return the smallest float that is surely at least x."""
    top = x.upper()
    guess = float(top)
    while not ball(guess) >= top:
        guess = math.nextafter(guess, math.inf)
    return guess


def round_down(x: Ball) -> float:
    """Return the largest float that is surely at most x."""
    return 0.0 - round_up(-x)


def float_up(x: Number) -> float:
    """Return the smallest float that is at least x, exactly."""
    return 0.0 - float_down(-x)


def float_down(x: Number) -> float:
    """Return the largest float that is at most x, exactly.

    >>> float_down(Fraction(1, 10)) <= Fraction(1, 10) <= float_up(Fraction(1, 10))
    True
    """
    try:
        guess = float(x)
    except OverflowError:
        return math.nextafter(math.inf, 0) if x > 0 else -math.inf
    return guess if Fraction(guess) <= x else math.nextafter(guess, -math.inf)


def root_up(square: Fraction) -> float:
    """Return the smallest float whose square is at least this, exactly.

    >>> root_up(Fraction(9))
    3.0
    """
    if square <= 0:
        return 0.0
    # An integer square root of some 64 bits; the last place is settled by exact comparison.
    shift = max(0, 128 - square.numerator.bit_length() + square.denominator.bit_length()) // 2
    guess = float_up(Fraction(math.isqrt((square.numerator << 2 * shift) // square.denominator), 1 << shift))
    while guess < math.inf and Fraction(guess) ** 2 < square:
        guess = math.nextafter(guess, math.inf)
    while guess > 0 and Fraction(below := math.nextafter(guess, 0)) ** 2 >= square:
        guess = below
    return guess


def accurate(value: Callable[[], Ball], bits: int = 128) -> Ball:
    """Return the value with about 60 correct bits, whatever cancels in it."""
    while True:
        with precision(bits):
            result = value()
        if result.rel_accuracy_bits() >= 60 or bits > 1 << 13:
            return result
        bits *= 2


def at_most(value: Callable[[], Ball], limit: Fraction) -> bool:
    """Whether a value is surely at most the limit."""
    result = accurate(value)
    with precision(128):
        return bool(result <= ball(limit))


def upper(value: Callable[[], Ball]) -> float:
    """Return the smallest float that is surely at least a value that lies at 0 or above."""
    result = accurate(value)
    with precision(128):
        return max(0.0, round_up(result))


def solve(curve: Callable[[Ball], tuple[Ball, Ball]], target: Fraction, start: float) -> float:
    """Return an x > 0 near which a positive monotone curve takes the value `target`. Not certified.

    `curve` gives value and derivative. Newton's method for the logarithm of the value as a function of that of x.
    """
    x = max(start, 1e-300)
    with precision(96):
        aim = ball(target).log()
    for _ in range(100):
        bits = 96
        while True:
            with precision(bits):
                value, slope = curve(ball(x))
                if value.rel_accuracy_bits() >= 56 or bits > 1 << 13:
                    step = float(((aim - value.log()) * value / (slope * x)).mid()) if value > 0 else math.nan
                    break
            bits *= 2
        if math.isnan(step):
            return x
        x *= math.exp(max(-2.0, min(2.0, step)))
        if abs(step) < 1e-9:  # the next step would be below 1e-16
            return x
    return x


def smallest_float(enough: Callable[[float], bool], guess: float) -> float:
    """Return the smallest positive float for which a monotone claim is certain, starting near `guess`.

    >>> smallest_float(lambda x: x * x >= 2, 1.4)
    1.4142135623730951
    """
    rank = _rank(guess)
    step = 1
    if enough(guess):
        high = rank
        while (low := max(0, rank - step)) and enough(_ranked(low)):
            high, step = low, step * 4
    else:
        low = rank
        while not enough(_ranked(high := min(_LARGEST, rank + step))):
            if high == _LARGEST:
                return math.inf
            low, step = high, step * 4
    while high - low > 1:
        middle = (low + high) // 2
        if enough(_ranked(middle)):
            high = middle
        else:
            low = middle
    return _ranked(high)


def _rank(x: float) -> int:
    """Return the place of a float among the floats from 0 on."""
    return int(struct.unpack("<q", struct.pack("<d", x))[0])


def _ranked(rank: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", rank))[0])


_LARGEST = _rank(math.nextafter(math.inf, 0))
