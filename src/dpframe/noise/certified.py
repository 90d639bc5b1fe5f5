"""Ball arithmetic: real numbers with a proven error, and their rounding to floats in a chosen direction.

A ball (`flint.arb`) is a midpoint and a radius; every operation returns a ball that surely contains the exact
result. So a comparison that a ball decides is a proof, and one that it cannot decide is repeated with more bits.
flint takes some 50 ms to import and is needed by almost no draw, so it is imported where it is first used.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

__all__ = ["Ball", "Number", "ball", "decide", "float_down", "float_up", "precision", "round_down", "round_up"]

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
    return -round_up(-x)


def float_up(x: Number) -> float:
    """Return the smallest float that is at least x, exactly."""
    return -float_down(-x)


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


def decide(question: Callable[[], bool | None], start: int = 64, limit: int = 1 << 16) -> bool:
    """Ask with more and more bits of precision until the answer is certain (not None)."""
    bits = start
    while bits <= limit:
        with precision(bits):
            answer = question()
        if answer is not None:
            return answer
        bits *= 2
    raise ArithmeticError(f"a comparison stayed undecided at {limit} bits")
