"""The optimal rule for choosing which keys to show, from the number of units of each key alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import Booleans
from dpframe.errors import InvalidArgument
from dpframe.noise import bits
from dpframe.noise.arguments import rational
from dpframe.noise.certified import Ball, Number, ball, precision, round_down, round_up
from dpframe.noise.inversion import uniform_below

__all__ = ["keep_probability", "truncated_geometric_keep"]


def truncated_geometric_keep(counts: NDArray[Any], rate: Number, start: Number) -> Booleans:
    """Keep each key with the largest probability that privacy allows for its count.

    Input:  counts, integers (units per key), any shape; rate ≥ 0 and start in (0, 1), ints, floats or Fractions,
            taken exactly. With rate = ε and start = δ the result is (ε, δ)-private for units that have one key each
    Output: booleans, shape of counts; a count of 0 or less is never kept
    Law:    True with probability exactly π(count), see `keep_probability`
    Source: Desfontaines, Voss, Gipson, Mandayam 2020, arXiv:2006.03684, Theorem 1
    Errors: InvalidArgument for counts that are not integers, a negative rate, or start outside (0, 1)

    >>> truncated_geometric_keep(np.array([0, 10**9]), 1, 1e-6)
    array([False,  True])
    """
    counts = np.asarray(counts)
    if counts.dtype.kind not in "iu":
        raise InvalidArgument("truncated_geometric_keep: counts must be integers.")
    rule = _rule(*_checked(rate, start))
    words = bits.random_words(counts.size).reshape(counts.shape)
    uniform = (words + 0.5) * 2.0**-64
    distinct, position = np.unique(np.clip(counts, 0, rule.last), return_inverse=True)
    chance = np.array([rule.approximate(count) for count in distinct.tolist()])[position.reshape(counts.shape)]
    certain = counts > rule.last
    keep = (uniform < chance) | certain
    # `chance` is within 2^-52 of π, and `uniform` within 2^-52 of U.
    for index in zip(*np.nonzero((np.abs(uniform - chance) < 2.0**-49) & ~certain & (counts > 0)), strict=True):
        keep[index] = uniform_below(int(words[index]), 64, rule.probability(int(counts[index])))
    return keep & (counts > 0)


def keep_probability(count: int, rate: Number, start: Number) -> tuple[float, float]:
    """Lower and upper bounds, as floats, of π(count), the largest probability of keeping a key.

    Input:  as for `truncated_geometric_keep`
    Output: (lower, upper), within about 1e-15 of each other
    Bound:  π(0) = 0 and π(n) = min(e^rate·π(n-1) + start, 1 - e^-rate·(1 - π(n-1) - start), 1)
    Source: Desfontaines, Voss, Gipson, Mandayam 2020, arXiv:2006.03684, Theorem 1
    Errors: InvalidArgument for a negative rate or start outside (0, 1)

    >>> low, high = keep_probability(1, 1, 0.125)
    >>> low <= 0.125 <= high < low + 1e-15
    True
    """
    rule = _rule(*_checked(rate, start))
    if count <= 0 or count > rule.last:
        return (0.0, 0.0) if count <= 0 else (1.0, 1.0)
    return rule.bounds(count)


def _checked(rate: Number, start: Number) -> tuple[Fraction, Fraction]:
    growth, first = rational("rate", rate), rational("start", start)
    if growth < 0:
        raise InvalidArgument(f"rate={rate!r} must be at least 0.")
    if not 0 < first < 1:
        raise InvalidArgument(f"start={start!r} must lie strictly between 0 and 1.")
    return growth, first


@dataclass(frozen=True)
class _Rule:
    """The function π. Up to `turn`, π + step grows by the factor e^rate per unit; then 1 - π + step shrinks by it.

    The step is start/(e^rate - 1). From `last` + 1 on, π is 1. With rate 0, π(n) = n·start up to `last`.
    """

    rate: Fraction
    start: Fraction
    turn: int
    last: int

    def probability(self, count: int) -> Callable[[], Ball]:
        """π(count) at the current precision, for counts from 1 to `last`."""
        return lambda: _probability(self.rate, self.start, self.turn, count)

    def approximate(self, count: int) -> float:
        """π(count) within 2^-52."""
        return sum(self.bounds(count)) / 2 if count else 0.0

    def bounds(self, count: int) -> tuple[float, float]:
        """The two floats next to π(count), at most 2^-52 apart."""
        with precision(128):
            value = _probability(self.rate, self.start, self.turn, count)
            return round_down(value), round_up(value)


def _probability(rate: Fraction, start: Fraction, turn: int, count: int) -> Ball:
    if rate == 0:
        return ball(count * start)
    growth, first = ball(rate), ball(start)
    step = first / growth.expm1()
    below = (growth * min(count, turn)).expm1() * step
    if count <= turn:
        return below
    return 1 + step - (1 - below + step) * (-growth * (count - turn)).exp()


@lru_cache(maxsize=64)
def _rule(rate: Fraction, start: Fraction) -> _Rule:
    """The counts `turn` and `last` of π.

    The first term of the minimum in `keep_probability` is the smallest while π(n-1) ≤ (1-start)/(e^rate+1). Both counts
    are floors of real numbers, and ball arithmetic decides a floor only if the number is not an integer. Neither number
    is one: e^rate is transcendental, so an equation between polynomials in e^rate would have to be an identity. The
    only identity is start = 1/2, where π(2) = 1, and it is handled apart.
    """
    if rate == 0:
        last = -(-start.denominator // start.numerator) - 1
        return _Rule(rate, start, last, last)

    def turn() -> Ball:
        growth = ball(rate)
        return ((1 - ball(start)) * growth.expm1() / (ball(start) * (growth.exp() + 1))).log1p() / growth

    bend = _floor(turn) + 1

    def length() -> Ball:
        growth = ball(rate)
        step = ball(start) / growth.expm1()
        return ((1 - _probability(rate, start, bend, bend) + step) / step).log() / growth

    return _Rule(rate, start, bend, 1 if start == Fraction(1, 2) else bend + _floor(length))


def _floor(value: Callable[[], Ball]) -> int:
    precision_bits = 128
    while True:
        with precision(precision_bits):
            whole = value().floor().unique_fmpz()
        if whole is not None:
            return int(whole)
        precision_bits *= 2
