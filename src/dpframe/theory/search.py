"""Search for the parameter at which a promise begins to hold:
the least noise, the largest bound, the smallest size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from dpframe.errors import DpFrameError, InvalidArgument
from dpframe.theory.framework import Measurement, Transformation

Made = TypeVar("Made", Transformation, Measurement)
_REFUSALS = (DpFrameError, OverflowError, ZeroDivisionError)


def binary_search(
    predicate: Callable[[Any], bool],
    bounds: tuple[float, float] | None = None,
    T: type | None = None,
) -> float:
    """The last argument for which a monotone predicate still holds.

    Input:  predicate: a function from a number to bool that changes once between the bounds;
            bounds: (lower, upper), or None to look for the change among powers of two of either
            sign, positive ones first; T: int or float (None: the type of the bounds, or the type
            that the predicate accepts)
    Output: int or float: the argument nearest the change (to the last bit of a float) for which the
            predicate holds. Without bounds, only arguments are used that the predicate does not
            refuse with an error of this library
    Errors: InvalidArgument when the predicate does not change

    >>> binary_search(lambda x: x * x <= 200, bounds=(0, 100))
    14
    """
    kind = _kind(predicate, bounds, T)
    if bounds is None:
        low, high = _bracket(predicate, kind)
    else:
        low, high = _ends(bounds, kind)
    at_low, at_high = bool(predicate(low)), bool(predicate(high))
    if at_low == at_high:
        raise InvalidArgument(
            f"binary_search: the predicate is {at_low} at both bounds, {low!r} and {high!r}; give "
            "bounds between which it changes."
        )
    while (middle := _middle(low, high, kind)) not in (low, high):
        if bool(predicate(middle)) == at_low:
            low = middle
        else:
            high = middle
    return low if at_low else high


def _kind(
    predicate: Callable[[Any], bool], bounds: tuple[float, float] | None, kind: type | None
) -> type:
    if kind is not None:
        if kind not in (int, float):
            raise InvalidArgument(f"binary_search: T={kind!r} is int or float.")
        return kind
    if bounds is not None:
        return int if all(isinstance(b, int | np.integer) for b in bounds) else float
    for probe in (1.5, 0.75, 1000.5, 1, 1000):
        try:
            predicate(probe)
        except (*_REFUSALS, TypeError):
            continue
        return type(probe)
    return float


def _ends(bounds: tuple[float, float], kind: type) -> tuple[float, float]:
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise InvalidArgument(f"binary_search: bounds={bounds!r} is a pair (lower, upper).")
    if (
        not all(isinstance(b, int | float | np.number) and math.isfinite(b) for b in bounds)
        or bounds[0] > bounds[1]
    ):
        raise InvalidArgument(
            f"binary_search: bounds={bounds!r} is a pair of finite numbers, the lower first."
        )
    return kind(bounds[0]), kind(bounds[1])


def _middle(low: float, high: float, kind: type) -> float:
    return (low + high) // 2 if kind is int else low / 2 + high / 2


def _runs(kind: type) -> Iterator[Iterator[float]]:
    """Sequences of arguments in which to look for the change;
    each runs in one direction, in powers of two.
    """
    if kind is int:
        yield (v for v in [0, *(1 << k for k in range(63))])
        yield (v for v in [0, *(-(1 << k) for k in range(63))])
        return
    yield (2.0**k for k in range(1024))
    yield (v for v in [*(2.0**-k for k in range(1075)), 0.0])
    yield (v for v in [0.0, *(-(2.0**k) for k in range(1024))])


def _bracket(predicate: Callable[[Any], bool], kind: type) -> tuple[float, float]:
    """Two neighbouring powers of two between which the predicate changes."""
    for run in _runs(kind):
        before: tuple[float, bool] | None = None
        for value in run:
            try:
                holds = bool(predicate(value))
            except _REFUSALS:
                if before is not None:
                    break
                continue
            if before is not None and before[1] != holds:
                return min(before[0], value), max(before[0], value)
            before = value, holds
    raise InvalidArgument(
        "binary_search: the predicate has one value at all powers of two; give bounds=(lower, "
        "upper) between which it changes."
    )


def binary_search_param(
    make: Callable[[Any], Made],
    d_in: object,
    d_out: object,
    bounds: tuple[float, float] | None = None,
    T: type | None = None,
) -> float:
    """The last parameter for which `make(parameter).check(d_in, d_out)` holds.

    Input:  make: a function from a number to a Transformation or Measurement whose map is monotone
            in that number; d_in and d_out as in its `check`; bounds and T as in `binary_search`
    Output: int or float: for example the smallest scale, or the largest bound
    Errors: as `binary_search`

    >>> from dpframe.theory import AbsoluteDistance, AtomDomain, laplace
    >>> binary_search_param(
    ...     lambda s: laplace(AtomDomain(float), AbsoluteDistance(), s), d_in=12, d_out=0.48
    ... )
    25.0
    """
    return binary_search(lambda value: make(value).check(d_in, d_out), bounds, T)
