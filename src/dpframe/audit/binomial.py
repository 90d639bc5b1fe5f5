"""Exact confidence bounds for a probability, from the number of times that an event occurred."""

from __future__ import annotations

from dpframe.errors import InvalidArgument
from dpframe.noise import ball, precision

__all__ = ["at_least", "at_most"]


def at_least(hits: int, trials: int, alpha: float) -> float:
    """A lower confidence bound for the probability of an event, wrong with probability at most alpha.

    Input:  hits of trials (counts); alpha in (0, 1)
    Output: the largest p, to 1e-12, at which P[hits or more] is surely at most alpha; 0 without a hit
    Bound:  that tail is the regularised incomplete beta function I_p(hits, trials - hits + 1), taken in ball
            arithmetic; it grows with p
    Source: Clopper and Pearson 1934, doi:10.1093/biomet/26.4.404
    Errors: InvalidArgument

    >>> round(at_least(10, 10, 0.5), 6)
    0.933033
    """
    if not 0 <= hits <= trials or not 0 < alpha < 1:
        raise InvalidArgument("at_least: hits are from 0 to trials, and alpha is between 0 and 1.")
    if hits == 0:
        return 0.0
    low, high = 0.0, 1.0
    with precision(128):
        while high - low > 1e-12:
            middle = (low + high) / 2
            if ball(middle).beta_lower(ball(hits), ball(trials - hits + 1), 1) <= alpha:
                low = middle
            else:
                high = middle
    return low


def at_most(hits: int, trials: int, alpha: float) -> float:
    """An upper confidence bound for the probability of an event, wrong with probability at most alpha: see `at_least`.

    >>> at_most(0, 10, 0.5) == 1 - at_least(10, 10, 0.5)
    True
    """
    return 1 - at_least(trials - hits, trials, alpha)
