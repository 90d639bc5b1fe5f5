"""Exact confidence bounds for a probability, from the number of times that an event occurred."""

from __future__ import annotations

import math

from dpframe.errors import InvalidArgument
from dpframe.noise import ball, precision

_CLOSE = 1e-12  # how near the bound comes to the largest p


def at_least(hits: int, trials: int, alpha: float) -> float:
    """A lower confidence bound for the probability of an event, wrong with probability at most alpha.

    Input:  hits of trials (counts); alpha in (0, 1)
    Output: the largest p, to 1e-12, at which P[hits or more] is surely at most alpha; 0 without a hit
    Bound:  that tail is the regularised incomplete beta function I_p(hits, trials - hits + 1), taken in ball
            arithmetic; it grows with p
    Source: Clopper and Pearson 1934, doi:10.1093/biomet/26.4.404. The logarithm of the tail is concave in p, so that
            Newton's steps from below stay below; each p is held against alpha before it is used, in ball arithmetic
    Errors: InvalidArgument

    >>> round(at_least(10, 10, 0.5), 6)
    0.933033
    """
    if not 0 <= hits <= trials or not 0 < alpha < 1:
        raise InvalidArgument("at_least: hits are from 0 to trials, and alpha is between 0 and 1.")
    if hits == 0:
        return 0.0
    low, high, rate = 0.0, 1.0, hits / trials
    guess = rate - math.sqrt(2 * math.log(1 / alpha) * rate * (1 - rate) / trials)
    with precision(128):
        while high - low > _CLOSE:
            p = guess if low < guess < high else (low + high) / 2
            tail = ball(p).beta_lower(ball(hits), ball(trials - hits + 1), 1)
            if tail <= alpha:
                low, guess = p, p + max(_step(hits, trials, alpha, p, float(tail.mid())), 0.9 * _CLOSE)
            else:
                high, guess = p, 0.0
    return low


def _step(hits: int, trials: int, alpha: float, p: float, tail: float) -> float:
    """How far Newton's method goes from p, by the logarithm of the tail there; 1 where floats cannot tell."""
    ways = math.lgamma(trials + 1) - math.lgamma(hits) - math.lgamma(trials - hits + 1)
    density = math.exp(ways + (hits - 1) * math.log(p) + (trials - hits) * math.log1p(-p))
    return math.log(alpha / tail) * tail / density if tail > 0 and density > 0 else 1.0


def at_most(hits: int, trials: int, alpha: float) -> float:
    """An upper confidence bound for the probability of an event, wrong with probability at most alpha: see `at_least`.

    >>> at_most(0, 10, 0.5) == 1 - at_least(10, 10, 0.5)
    True
    """
    return 1 - at_least(trials - hits, trials, alpha)
