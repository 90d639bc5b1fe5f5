"""Coins with an exact bias: a rational probability, or exp(-x) for a rational x.

A coin is the comparison of a uniform real U with its probability. 64 bits of U settle all but about one in 2^44; those
are decided with more bits, in integers (rational probability) or in ball arithmetic (exponentials).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import Booleans, Floats
from dpframe.errors import InvalidArgument
from dpframe.noise import bits
from dpframe.noise.arguments import check_size, rational
from dpframe.noise.certified import Ball, Number, ball
from dpframe.noise.inversion import FUNCTION, UNIT, uniform_below

__all__ = ["bernoulli", "bernoulli_exp", "flips"]


def bernoulli(probability: Number, size: int) -> Booleans:
    """Independent coins that are True with exactly this probability.

    Input:  probability, an int, float or Fraction in [0, 1], taken exactly; size coins
    Output: booleans, shape (size,)
    Law:    True when U < probability. The first 64 bits of U decide unless they equal those of the probability
    Errors: InvalidArgument for a probability outside [0, 1]

    >>> bernoulli(1, 3)
    array([ True,  True,  True])
    """
    p = rational("probability", probability)
    if not 0 <= p <= 1:
        raise InvalidArgument(f"probability={probability!r} must lie in [0, 1].")
    count = check_size(size)
    if p == 1:
        return np.ones(count, bool)
    first = p.numerator * (1 << 64) // p.denominator
    words = bits.random_words(count)
    coins = words < np.uint64(first)
    for i in np.nonzero(words == np.uint64(first))[0]:
        coins[i] = _below(p * (1 << 64) - first)
    return coins


def _below(fraction: Fraction) -> bool:
    """Whether a fresh uniform real is below a fraction in [0, 1)."""
    while fraction:
        fraction *= 1 << 64
        first, word = math.floor(fraction), int(bits.random_words(1)[0])
        if word != first:
            return word < first
        fraction -= first
    return False


def bernoulli_exp(x: NDArray[Any] | Sequence[Number], unit: Number = 1) -> Booleans:
    """Independent coins, the i-th True with probability exactly exp(-x[i]·unit).

    Input:  x, non-negative integers or floats (an array) or fractions (any sequence), taken exactly; unit, a positive
            int, float or Fraction
    Output: booleans, shape of x
    Law:    True when U < exp(-x·unit) for the real numbers x and unit
    Errors: InvalidArgument for a negative, infinite or missing x or unit

    >>> bernoulli_exp([0, 0])
    array([ True,  True])
    """
    factor = rational("unit", unit)
    if isinstance(x, np.ndarray) and x.dtype.kind in "iuf":
        values, exact = x, None
    else:
        exact = [rational("x", value) for value in x]
        values = np.array([float(value) for value in exact], dtype=np.float64)
    approximate = values.astype(np.float64)
    if factor <= 0 or not (np.isfinite(approximate) & (approximate >= 0)).all():
        raise InvalidArgument("bernoulli_exp: x must be finite and at least 0, and unit positive.")
    flat = values.ravel()
    ordinary = 2.0**-512 <= factor <= 2.0**512
    with np.errstate(over="ignore"):  # a rate that overflows has an infinite error, and is decided exactly
        rates = (approximate * float(factor if ordinary else 1)).ravel()
    # Both conversions to floats and the product: three roundings.
    coins = flips(
        rates,
        4 * UNIT * rates if ordinary else np.full(len(rates), np.inf),
        lambda i: (Fraction(flat[i].item()) if exact is None else exact[i]) * factor,
    )
    return np.reshape(coins, values.shape)


def flips(x: Floats, error: Floats, exact: Callable[[int], Fraction]) -> Booleans:
    """Coins with probability exp(-exact(i)), where x[i] is within error[i] of exact(i).

    U < exp(-x) is -ln U > x, and ŷ = -log((m+½)/2^64) is as near to -ln U as for Laplace noise (see `laplace`; that
    all 64 bits of the word are used here only helps): within 16u·ŷ + 3u + 1.01·2^-63·e^ŷ while ŷ ≤ 40.
    """
    words = bits.random_words(len(x))
    y = -np.log((words + 0.5) * 2.0**-64)
    doubt = FUNCTION * y + 4 * UNIT + 1.01 * 2.0**-63 * np.exp(y) + error
    coins: Booleans = y > x
    for i in np.nonzero((np.abs(y - x) <= doubt) | (y > 40))[0]:
        rate = exact(int(i))
        coins[i] = rate == 0 or uniform_below(int(words[i]), 64, _exponential(rate))
    return coins


def _exponential(rate: Fraction) -> Callable[[], Ball]:
    return lambda: (-ball(rate)).exp()
