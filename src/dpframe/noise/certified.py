"""Ball arithmetic: real numbers with a proven error, and their rounding
to floats in a chosen direction.

A ball (`flint.arb`) is a midpoint and a radius. Every operation returns a ball that surely contains
the exact result. So a comparison of balls is a proof if it is decided; if it is not, it is repeated
with more bits. Importing flint takes some 50 ms and hardly any draw needs it, so each function
imports it when it is called.
"""

from __future__ import annotations

import math
import os
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, TypeVar

Number = int | float | Fraction
Ball = Any  # flint.arb has no type stubs
Halved = TypeVar("Halved", float, Fraction)

_lock = threading.RLock()


def _fresh_lock() -> None:
    # if another thread holds the lock at a fork, the child's copy of it is never released
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh_lock)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Set the precision of ball arithmetic inside the block, for one thread at a time.

    flint's precision is a global variable of the process. If other code changes it meanwhile, the
    balls may become wider, but they still contain the exact results.
    """
    from flint import ctx

    with _lock, ctx.workprec(bits):
        yield


def ball(x: Number) -> Ball:
    """Return a ball that contains x: the exact value of an integer or float, and
    the tightest ball for a fraction.
    """
    from flint import arb, fmpq

    if isinstance(x, Fraction):
        return arb(fmpq(x.numerator, x.denominator))
    return arb(x)


def round_up(x: Ball) -> float:
    """Return the smallest float that is surely at least the real number in the ball x."""
    top = x.upper()
    guess = float(top)
    while not ball(guess) >= top:
        guess = math.nextafter(guess, math.inf)
    return guess


def round_down(x: Ball) -> float:
    """Return the largest float that is surely at most the real number in the ball x."""
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
    """Return the smallest float whose square is at least `square`, exactly.

    >>> root_up(Fraction(9))
    3.0
    """
    if square <= 0:
        return 0.0
    # Start from an integer square root of some 64 bits, and find the last place by exact
    # comparisons.
    shift = max(0, 128 - square.numerator.bit_length() + square.denominator.bit_length()) // 2
    guess = float_up(
        Fraction(math.isqrt((square.numerator << 2 * shift) // square.denominator), 1 << shift)
    )
    while guess < math.inf and Fraction(guess) ** 2 < square:
        guess = math.nextafter(guess, math.inf)
    while guess > 0 and Fraction(below := math.nextafter(guess, 0)) ** 2 >= square:
        guess = below
    return guess


def accurate(value: Callable[[], Ball]) -> Ball:
    """Return the value with about 60 correct bits.
    The precision is doubled until cancellation leaves that many.
    """
    bits = 128
    while True:
        with precision(bits):
            result = value()
        if result.rel_accuracy_bits() >= 60 or bits > 1 << 13:
            return result
        bits *= 2


def at_most(value: Callable[[], Ball], limit: Fraction) -> bool:
    """Whether a value is at most the limit, with certainty."""
    result = accurate(value)
    with precision(128):
        return bool(result <= ball(limit))


def upper(value: Callable[[], Ball]) -> float:
    """Return the smallest float that is surely at least a value, for a value of at least 0."""
    result = accurate(value)
    with precision(128):
        return max(0.0, round_up(result))


def solve(curve: Callable[[Ball], tuple[Ball, Ball]], target: Fraction, start: float) -> float:
    """Return an approximate x > 0 at which a positive monotone function has the value `target`.
    It is not certified.

    Input:  curve(x): the function's value and derivative at x; start: a first guess
    Method: Newton's method on the logarithm of the value, as a function of log x
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
                    step = (
                        float(((aim - value.log()) * value / (slope * x)).mid())
                        if value > 0
                        else math.nan
                    )
                    break
            bits *= 2
        if math.isnan(step):
            return x
        x *= math.exp(max(-2.0, min(2.0, step)))
        if abs(step) < 1e-9:  # the next step would be below 1e-16
            return x
    return x


def smallest_float(enough: Callable[[float], bool], guess: float) -> float:
    """Return the smallest positive float x for which `enough(x)` is true, by a
    search that starts at `guess`.

    Input:  enough: a condition that, if it is true for x, is true for every larger float
    Output: inf where it is true for no finite float

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
    return _ranked(first_enough(lambda rank: enough(_ranked(rank)), low, high))


def first_enough(enough: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest integer above `low` for which a monotone
    condition holds, as it does for `high`.
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def halved(
    enough: Callable[[Halved], bool], low: Halved, high: Halved, times: int = 60
) -> tuple[Halved, Halved]:
    """Return an interval, halved some times, that has the place from which
    on a monotone condition holds.
    """
    for _ in range(times):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return low, high


def smallest_integer(enough: Callable[[int], bool], start: int) -> int:
    """Return the smallest integer for which a monotone condition holds, searching from `start`."""
    step = 1
    if enough(start):
        high, low = start, start - 1
        while enough(low):
            high, low, step = low, low - 2 * step, 2 * step
    else:
        low, high = start, start + 1
        while not enough(high):
            low, high, step = high, high + 2 * step, 2 * step
    return first_enough(enough, low, high)


def _rank(x: float) -> int:
    """Return the position of a float in the list of all floats from 0 on."""
    return int(struct.unpack("<q", struct.pack("<d", x))[0])


def _ranked(rank: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", rank))[0])


_LARGEST = _rank(math.nextafter(math.inf, 0))
