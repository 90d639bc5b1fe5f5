"""Allowances for a noisy sampling variance, so that an interval
made with it misses rarely enough.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

import numpy as np

from dpframe.arrays import Floats

# of the intervals into which the law of the noise is cut, in scales
_EDGES = np.linspace(-8.0, 8.0, 129)
# known variances that are solved for, in scales
_KNOWN = np.concatenate([[1e-9], np.geomspace(1e-3, 1e4, 22)])
# sampling variances that are tried, in scales
_UNKNOWN = np.concatenate([[1e-6], np.geomspace(1e-2, 1e4, 31)])
_HALVINGS = 16
_SLACK = 1.002  # of alpha: the mean over the noise is computed from 130 points


def variance_allowance(known: Floats, alpha: float) -> Floats:
    """Number of scales of its noise that are added to a noisy sampling variance.

    Input:  known: the variance of the noise in a released number, in scales b of the Laplace noise
            in the released sampling variance, at least 0; alpha in (0, 1): the probability with
            which the interval may miss
    Output: c >= 0, an array of that shape
    Bound:  let a number have the error Z of variance K + V, with K known and V released as V + b·e.
            The interval is ± the normal quantile times the root of K + max(V + b·e + c·b, 0). It
            misses with probability E P[|Z| > that], where the mean is over e. c is the smallest
            number for which this is at most alpha for each V >= 0, on a grid of V from 1e-6 to 1e4
            scales; between known variances that are solved for, the larger c is taken. Where K is
            large, an error in V hardly matters, and c is near 0; where K is 0, c is about ln(1 /
            2·alpha)
    Source: ours; a confidence limit for V at alpha/10, as in Berger, Boos 1994, JASA 89, would add
            twice as much
    Errors: none here

    >>> bool(
    ...     variance_allowance(np.array([1e4]), 0.05)[0]
    ...     < 0.05
    ...     < 2
    ...     < variance_allowance(np.array([0.0]), 0.05)[0]
    ...     < 3
    ... )
    True
    """
    places = np.searchsorted(_KNOWN, np.asarray(known, np.float64), side="right") - 1
    return _solved(float(alpha))[np.maximum(places, 0)]


@cache
def _solved(alpha: float) -> Floats:
    """The allowance at each of the known variances; it falls as they grow."""
    quantile = NormalDist().inv_cdf(1 - alpha / 2)
    low, high = np.zeros(len(_KNOWN)), np.full(len(_KNOWN), 2 * math.log(1 / alpha) + 2)
    most = alpha * _SLACK
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        misses = np.array(
            [_worst_miss(k, c, quantile) for k, c in zip(_KNOWN, middle, strict=True)]
        )
        low, high = np.where(misses > most, middle, low), np.where(misses > most, high, middle)
    return np.maximum.accumulate(high[::-1])[::-1]


def _worst_miss(known: float, allowance: float, quantile: float) -> float:
    """The largest probability of a miss over the sampling variances that are tried."""
    noise = np.concatenate([[_EDGES[0] - 1], (_EDGES[1:] + _EDGES[:-1]) / 2, [_EDGES[-1] + 1]])
    below = np.where(_EDGES < 0, np.exp(-np.abs(_EDGES)) / 2, 1 - np.exp(-np.abs(_EDGES)) / 2)
    chances = np.diff(below, prepend=0.0, append=1.0)
    used = known + np.maximum(_UNKNOWN[:, None] + noise + allowance, 0.0)
    ratio = np.sqrt(used / (known + _UNKNOWN[:, None]))
    return float(np.max(_two_tails(quantile * ratio) @ chances))


_PLACES = np.linspace(0.0, 8.0, 1601)
_TAIL = np.array([math.erfc(x / math.sqrt(2)) for x in _PLACES])


def _two_tails(x: Floats) -> Floats:
    """P[|Z| > x] of a normal Z for x >= 0, between the values of a table;
    it is convex, so this is not below it.
    """
    return np.asarray(np.interp(x, _PLACES, _TAIL))
