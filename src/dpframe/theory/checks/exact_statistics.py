"""Statistics in exact arithmetic, so that rounding of floats does not affect a largest change.

Percentiles interpolate linearly between records; variance and standard deviation divide by n, as numpy does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.errors import InvalidArgument

__all__ = ["exact_statistic"]

Number = int | Fraction
Statistic = Callable[[Sequence[Number]], Any]


def _mean(x: Sequence[Number]) -> Fraction:
    return Fraction(sum(x), len(x))


def _var(x: Sequence[Number]) -> Fraction:
    total, count = sum(x), len(x)
    return Fraction(count * sum(v * v for v in x) - total * total, count * count)


def _percentile(x: Sequence[Number], percent: Fraction) -> Fraction:
    ordered = sorted(x)
    parts = 100 * percent.denominator
    below, remainder = divmod(percent.numerator * (len(x) - 1), parts)
    above = min(below + 1, len(x) - 1)
    return Fraction(ordered[below] * parts + remainder * (ordered[above] - ordered[below]), parts)


_NAMED: dict[str, Statistic] = {
    "count": len,
    "sum": sum,
    "mean": _mean,
    "median": lambda x: _percentile(x, Fraction(50)),
    "min": min,
    "max": max,
    "var": _var,
    "std": lambda x: math.sqrt(_var(x)),
}
_NUMPY: dict[Any, str] = {
    np.sum: "sum",
    np.mean: "mean",
    np.median: "median",
    np.min: "min",
    np.max: "max",
    np.var: "var",
    np.std: "std",
}


def exact_statistic(query: Any) -> Statistic | None:
    """The exact function for a statistic's name or its numpy function; None for any other function.

    Input:  "count", "sum", "mean", "median", "min", "max", "var", "std", "percentile 25", or `np.mean` and its like
    Output: function of exact numbers; it fails on an empty dataset where it is undefined
    Errors: InvalidArgument for another name

    >>> exact_statistic("percentile 25")([1, 2, 4])
    Fraction(3, 2)
    """
    if not isinstance(query, str):
        try:
            return _NAMED[_NUMPY[query]] if query in _NUMPY else None
        except TypeError:
            return None
    percentile = re.fullmatch(r"(?:percentile|p)[ _]?(\d+(?:\.\d+)?)", query)
    if percentile and float(percentile[1]) <= 100:
        percent = Fraction(percentile[1])
        return lambda x: _percentile(x, percent)
    if query not in _NAMED:
        raise InvalidArgument(f'query={query!r}: it is one of {", ".join(map(repr, _NAMED))}, or "percentile 25".')
    return _NAMED[query]
