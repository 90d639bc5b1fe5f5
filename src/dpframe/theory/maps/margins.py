"""Margins: how far a sum of noisy cells may be off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

__all__ = ["sum_error"]


def sum_error(variance: float, laplace: Sequence[tuple[float, int]], alpha: float) -> float:
    """An e that a sum of independent noises exceeds with probability at most alpha.

    Input:  variance of the part that is normal; for the parts that are Laplace, each scale with how many have it (any
            one unit); alpha in (0, 1)
    Output: e (same unit)
    Bound:  normal alone: its quantile. Else Chernoff's: E exp(sX) is exp(s²V/2) times Π 1 / (1 - s²b²)^n, for s below
            every 1/b, and P[|X| > e] <= 2 E exp(sX) / exp(se), at the best s. A discrete Laplace noise of scale b has
            E exp(sX) = (cosh a - 1) / (cosh a - cosh s) with a = 1/b, which is at most a² / (a² - s²), since
            (cosh x - 1) / x² increases in x: the same bound holds
    Source: Chernoff 1952, doi:10.1214/aoms/1177729330
    Errors: none here

    >>> round(sum_error(4.0, [], 0.05), 4)
    3.9199
    >>> sum_error(0.0, [(1.0, 4)], 0.05) > 1.96 * 8**0.5
    True
    """
    parts = [(scale, number) for scale, number in laplace if scale > 0 and number > 0]
    if not parts:
        return math.sqrt(variance) * NormalDist().inv_cdf(1 - alpha / 2)
    s = np.geomspace(1e-4, 1 - 1e-4, 500) / max(scale for scale, _ in parts)
    grown = s**2 * variance / 2 - sum(number * np.log1p(-((s * scale) ** 2)) for scale, number in parts)
    return float(np.min((grown + math.log(2 / alpha)) / s))
