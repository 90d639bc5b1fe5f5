"""Coins with an exact bias: a rational probability, or exp(-x) for a rational x.

A coin is True if a uniform real U is below the coin's probability. The first 64 bits of U decide
nearly all coins: about one coin in 2^44 needs more bits. Such a coin is decided in integers (for a
rational probability) or in ball arithmetic (for an exponential).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from dpframe.arrays import NUMERIC, Array, Booleans, Floats
from dpframe.errors import InvalidArgument
from dpframe.noise import bits
from dpframe.noise.certified import Ball, Number, ball
from dpframe.noise.inversion import FUNCTION, UNIT, uniform_below
from dpframe.noise.scales import check_size, rational


def bernoulli(probability: Number, size: int) -> Booleans:
    """Independent coins that are True with exactly this probability.

    Input:  probability, an int, float or Fraction in [0, 1], taken exactly; size coins
    Output: booleans, shape (size,)
    Law:  True when U < probability. The first 64 bits of U decide this unless they equal those of
          the probability
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
    """Whether a new uniform real is below a fraction in [0, 1)."""
    while fraction:
        fraction *= 1 << 64
        first, word = math.floor(fraction), bits.random_word()
        if word != first:
            return word < first
        fraction -= first
    return False


def bernoulli_exp(x: Array | Sequence[Number], unit: Number = 1) -> Booleans:
    """Independent coins, of which the i-th is True with probability exactly exp(-x[i]·unit).

    Input:  x, non-negative integers or floats (an array) or fractions (any sequence), taken
            exactly; unit, a positive int, float or Fraction
    Output: booleans, shape of x
    Law:    True when U < exp(-x·unit) for the real numbers x and unit
    Errors: InvalidArgument for a negative, infinite or missing x or unit

    >>> bernoulli_exp([0, 0])
    array([ True,  True])
    """
    factor = rational("unit", unit)
    if isinstance(x, np.ndarray) and x.dtype.kind in NUMERIC:
        values, exact = x, None
    else:
        exact = [rational("x", value) for value in x]
        values = np.array([float(value) for value in exact], dtype=np.float64)
    approximate = values.astype(np.float64)
    if factor <= 0 or not (np.isfinite(approximate) & (approximate >= 0)).all():
        raise InvalidArgument("bernoulli_exp: x must be finite and at least 0, and unit positive.")
    flat = values.ravel()
    ordinary = 2.0**-512 <= factor <= 2.0**512
    # a rate that overflows gets an infinite error, so its coin is decided exactly
    with np.errstate(over="ignore"):
        rates = (approximate * float(factor if ordinary else 1)).ravel()
    # There are three roundings: the two conversions to floats and the product.
    coins = flips(
        rates,
        4 * UNIT * rates if ordinary else np.full(len(rates), np.inf),
        lambda i: (Fraction(flat[i].item()) if exact is None else exact[i]) * factor,
    )
    return np.reshape(coins, values.shape)


def flips(x: Floats, error: Floats, exact: Callable[[int], Fraction]) -> Booleans:
    """Coins with probability exp(-exact(i)), where x[i] is within error[i] of exact(i).

    U < exp(-x) is equivalent to -ln U > x. Let ŷ = -log((m+½)/2^64) for the first 64 bits m of U.
    For ŷ ≤ 40, the error |ŷ - (-ln U)| is at most 16u·ŷ + 3u + 1.01·2^-63·e^ŷ, by the argument in
    `laplace`. That argument uses 63 bits; with 64 bits the error is smaller.
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
