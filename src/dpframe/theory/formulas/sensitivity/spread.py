"""A weight of length 1 that each unit spreads evenly over its keys, in integers."""

from __future__ import annotations

import math

from dpframe.errors import InvalidArgument
from dpframe.theory.formulas.sensitivity.grouped import Sensitivity

__all__ = ["MOST_KEYS", "key_weights", "spread_weight"]

MOST_KEYS = 100
"""Keys that one unit keeps where nobody typed a limit. More keys cost a higher threshold, by simulation: with Zipf
words, ratings and routes 100 finds at most 7% fewer than the best of 30, 100, 300 and 1,000.
Where lists are long, 30 finds half."""


def spread_weight(keys: int, one: int) -> int:
    """The weight that a unit with this many keys gives to each of them, in parts of `one`.

    Input:  keys >= 1; one: the integer that stands for the weight 1
    Output: ⌊√(one²/keys)⌋, an integer
    Bound:  keys · weight² <= one², exactly, since the root is rounded down
    Source: Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin 2020, arXiv:2002.09745, weighted Gaussian
    Errors: InvalidArgument for less than one key, or a weight below 1

    >>> spread_weight(4, 1000), spread_weight(2, 1000)
    (500, 707)
    """
    if keys < 1 or one < 1:
        raise InvalidArgument(f"keys={keys!r}, one={one!r}: both are whole numbers of at least 1.")
    return math.isqrt(one * one // keys)


def key_weights(most: int, one: int) -> Sensitivity:
    """How far one unit moves the keys' weights when it joins or leaves, whatever its keys are.

    Input:  most: keys that one unit keeps at most; one: the integer that stands for the weight 1
    Output: l0, l1, l2, linf, in parts of `one`
    Bound:  a unit with t keys adds `spread_weight(t)` to each of them and 0 elsewhere. So l1 is the largest
            t · weight(t), the square of l2 the largest t · weight(t)² <= one², and linf the weight of a single key
    Source: as `spread_weight`
    Errors: as `spread_weight`

    >>> key_weights(4, 1000)
    Sensitivity(l0=4, l1=2000, l2=1000, linf=1000)
    """
    weights = [(t, spread_weight(t, one)) for t in range(1, most + 1)]
    if not weights:
        raise InvalidArgument(f"most={most!r}: a unit keeps at least 1 key.")
    lengths = {"l1": max(t * w for t, w in weights), "l2_squared": max(t * w * w for t, w in weights)}
    return Sensitivity.of(l0=most, linf=one, **lengths)
