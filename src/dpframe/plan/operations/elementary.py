"""Signs, rounding, powers, logarithms and exponentials: the domain of each result.

Each of these functions does not decrease, or is even: so its bounds are its values at the ends of
the argument's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import narwhals as nw

from dpframe.plan.columns import Bounds, ColumnDomain
from dpframe.plan.operations.rules import NUMBERS, Applied, Operation, as_floats, finite, overflows
from dpframe.plan.operations.taylor import (
    LARGEST_POWER,
    LEAST_POWER,
    Floats,
    exponential,
    log1p,
    logarithm,
)
from dpframe.plan.types import Kind

_WHOLE = 2.0**52  # from here on, floats are whole numbers
_WIDE = (nw.UInt64, nw.Int128, nw.UInt128)


def power_of(value: float, exponent: int) -> int | float:
    """A power by products in a fixed order: the square of that of half the exponent,
    and once more the number if odd.

    >>> power_of(3, 5), power_of(0.5, 2)
    (243, 0.25)
    """
    if exponent < 2:
        return value if exponent else type(value)(1)
    half = power_of(value, exponent // 2)
    return half * half * value if exponent % 2 else half * half


def rounded(value: float, decimals: int) -> float:
    """A float times 10^decimals, rounded to a whole number, a half to
    the even one, and divided again.

    >>> rounded(2.5, 0), rounded(3.14159, 2)
    (2.0, 3.14)
    """
    scaled = value * 10.0**decimals
    return round(scaled) / 10.0**decimals if abs(scaled) < _WHOLE else value


def outward(ends: Bounds) -> Bounds:
    """Both ends moved to the next float outside.
    An end at 0 stays: it is exact, and no sign of a value is wrong.
    """
    low, high = ends
    return Bounds(
        math.nextafter(low, -math.inf) if low else low,
        math.nextafter(high, math.inf) if high else high,
    )


def _power(asked: Applied) -> ColumnDomain:
    asked.need(*NUMBERS)
    exponent, whole = asked["exponent"], asked.on.kind == Kind.INTEGER
    limits = asked.bounds if whole else as_floats(asked.bounds)
    bounds = None if exponent else Bounds(1, 1)
    if limits is not None and exponent:
        ends = [power_of(end, exponent) for end in limits]
        through = [0] if exponent % 2 == 0 and limits.lower <= 0 <= limits.upper else []
        bounds = Bounds(min(*ends, *through), max(ends))
    if not whole:
        return ColumnDomain(nw.Float64(), asked.nullable, bounds and finite(*bounds))
    missing = overflows(bounds) or isinstance(asked.dtype, _WIDE)
    inside = bounds and Bounds(*(min(max(end, -(2**63)), 2**63 - 1) for end in bounds))
    return ColumnDomain(nw.Int64(), asked.nullable or missing, inside)


def _sign(asked: Applied) -> ColumnDomain:
    asked.need(*NUMBERS)
    dtype = nw.Int64() if asked.on.kind == Kind.INTEGER else nw.Float64()
    ends = asked.bounds or Bounds(-1, 1)
    return ColumnDomain(dtype, asked.nullable, Bounds(*((end > 0) - (end < 0) for end in ends)))


def _round(asked: Applied) -> ColumnDomain:
    """Whole numbers stay as they are.
    The quotient of a rounded product is rounded, so bounds are widened by one.
    """
    asked.need(*NUMBERS)
    if asked.on.kind == Kind.INTEGER:
        return ColumnDomain(asked.dtype, asked.nullable, asked.bounds)
    bounds, decimals = as_floats(asked.bounds), asked["decimals"]
    if bounds is not None:
        ends = Bounds(*(rounded(end, decimals) for end in bounds))
        bounds = finite(*outward(ends)) if decimals else ends
    return ColumnDomain(nw.Float64(), asked.nullable, bounds)


def _logarithm(asked: Applied) -> ColumnDomain:
    """A computed logarithm is within 1.5 units of the last place of the true one, so
    two floats outside are bounds.
    """
    asked.need(*NUMBERS)
    bounds, base = as_floats(asked.bounds), asked.options.get("base")
    least = 0.0 if base is not None else -1.0
    if bounds is None or not bounds.lower > least or math.isinf(bounds.upper):
        return ColumnDomain(nw.Float64(), True)
    ends = [log1p(end) if base is None else logarithm(end, base, Floats()) for end in bounds]
    return ColumnDomain(nw.Float64(), asked.nullable, outward(outward(Bounds(*ends))))


def _exponential(asked: Applied) -> ColumnDomain:
    asked.need(*NUMBERS)
    bounds = as_floats(asked.bounds)
    if bounds is None or bounds.upper > LARGEST_POWER:
        return ColumnDomain(nw.Float64(), asked.nullable)
    low, high = (exponential(max(end, LEAST_POWER), Floats()) for end in bounds)
    ends = outward(outward(Bounds(low, high)))
    return ColumnDomain(nw.Float64(), asked.nullable, finite(max(ends.lower, 0.0), ends.upper))


ELEMENTARY: Mapping[str, Operation] = {
    "power": Operation("({0} ** {exponent})", _power),
    "sign": Operation("{0}.sign()", _sign),
    "log": Operation("{0}.log({base!r})", _logarithm, depth=8),
    "log1p": Operation("{0}.log1p()", _logarithm, depth=8),
    "exp": Operation("{0}.exp()", _exponential, depth=8),
    "round": Operation("{0}.round({decimals})", _round),
}
