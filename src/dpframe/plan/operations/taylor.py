"""Logarithms and exponentials, from sums, products and comparisons of floats in one fixed order.

IEEE 754 rounds each sum and each product to the nearest float, so it leaves an engine no choice.
The functions here are written once, for Python's floats and for the columns of an engine alike.
`Floats` says how a constant is picked and how an intermediate value is held. So the value of an
engine is that of Python, to the last digit.

Source: reduction of the argument by tables of constants in two parts, Tang 1989 (exp) and 1990
        (log), ACM TOMS 15 and
16; sums with their rounding error, Dekker 1971, Numerische Mathematik 18
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache
from typing import Any

_BITS = 300  # of the constants, before each is cut to two floats
_GRID = 36  # the first part of a constant is a multiple of 2^-36, so that sums of several are exact
_COARSE = 2.0**22  # a number from ½ to 2, plus and minus this, keeps 30 bits below the point
_OCTAVES = 64
_PIECES = range(23, 46)  # numbers from 64/91 to 64/45, each near 32/j
_LOG_TERMS, _EXP_TERMS = 12, 8  # powers of the series, whose arguments are at most 1/46 in size
_STEPS = 16  # of e^x, between two powers of two
LARGEST_POWER, LEAST_POWER = 709.8, -745.2  # e^x is infinite above, and 0 below


Number = Any  # a float of Python, or an expression of an engine


class Floats:
    """Python's own floats."""

    def real(self, number: float) -> Number:
        """A constant."""
        return number

    def hold(self, *values: Number) -> list[Number]:
        """Values that are read more than once."""
        return list(values)

    def floor(self, value: Number) -> Number:
        """A float rounded down."""
        return float(math.floor(value))

    def pick(self, value: Number, edges: Sequence[float], constants: Sequence[float]) -> Number:
        """The constant of the interval that holds a value:
        there is one more constant than growing edges.
        """
        return constants[bisect_right(edges, value)]


def logarithm(value: Number, base: float, floats: Floats, beyond: Number = None) -> Number:
    """The logarithm of a float, at least 5e-324 and finite;
    of value + beyond where a second, far smaller one is given.

    Output: within 1.5 units in the last place of the logarithm
    Bound:  v = 2^k · (32/j) · (1 + r) with |r| < 1/46, by two lookups of k and one of j; then log v
            = k·log 2 + log(32/j) + (r - r²/2 + …), to twelve powers. k·log 2 + log(32/j) is the sum
            of a multiple of 2^-36, which is exact, and of a small rest. So is r, whose first part
            has 30 bits. The two first parts are added with their rounding error

    >>> logarithm(1000.0, 10.0, Floats()), logarithm(8.0, 2.0, Floats())
    (3.0, 3.0)
    """
    table, real = _table(base), floats.real
    scale, power = floats.hold(
        floats.pick(value, _FAR_EDGES, _FAR_DOWN),
        floats.pick(value, _FAR_EDGES, [float(64 * a) for a in _FAR]),
    )
    (near,) = floats.hold(value * scale * scale)
    down, octave = floats.hold(
        floats.pick(near, _NEAR_EDGES, _NEAR_DOWN),
        floats.pick(near, _NEAR_EDGES, [float(b) for b in _NEAR]) + power,
    )
    (number,) = floats.hold(near * down)
    inverse, first, second = floats.hold(
        *(
            floats.pick(number, _PIECE_EDGES, column)
            for column in (_INVERSES, table.first, table.second)
        )
    )
    coarse = (number + real(_COARSE)) - real(_COARSE)
    rest = (number - coarse) * inverse
    if beyond is not None:
        rest = rest + beyond * scale * scale * down * inverse
    main, rest = floats.hold(coarse * inverse - real(1.0), rest)
    whole = octave * real(table.two[0]) + first
    (r, total) = floats.hold(main + rest, whole + main * real(table.inverse[0]))
    lost = (whole - total) + main * real(table.inverse[0])
    series = real(_log_term(_LOG_TERMS))
    for term in range(_LOG_TERMS - 1, 1, -1):
        series = series * r + real(_log_term(term))
    small = (octave * real(table.two[1]) + second) + (
        rest * real(table.whole) + main * real(table.inverse[1])
    )
    return total + (small + (series * r * r * real(table.whole) + lost))


def log1p(value: Number, floats: Floats | None = None) -> Number:
    """The natural logarithm of 1 + x, for a float above -1 and finite:
    of the sum, and of what it lost in rounding.

    Output: within 1.5 units in the last place

    >>> log1p(1e-300)
    1e-300
    """
    floats = floats or Floats()
    one = floats.real(1.0)
    (total,) = floats.hold(value + one)
    (back,) = floats.hold(total - one)
    (lost,) = floats.hold((one - (total - back)) + (value - back))
    return logarithm(total, math.e, floats, lost)


def exponential(value: Number, floats: Floats) -> Number:
    """E to the power of a float from -745.2 to 709.8: infinite where it is too large.

    Output: within 1.5 units in the last place of the exponential
    Bound:  x = (16·k + j)·(log 2)/16 + r with |r| < 1/46; then e^x = 2^k · 2^(j/16) · (1 + r + r²/2
            + …), to eight powers. The product of 16·k + j and the first part of (log 2)/16 is
            exact, and so is its difference from x

    >>> exponential(0.0, Floats()), exponential(1.0, Floats())
    (1.0, 2.718281828459045)
    """
    real = floats.real
    first, second, inverse = _step()
    (steps,) = floats.hold(floats.floor(value * real(inverse) + real(0.5)))
    octaves, above, below = floats.hold(
        floats.floor(steps * real(1 / _STEPS)), value - steps * real(first), steps * real(-second)
    )
    step, far, r = floats.hold(
        steps - octaves * real(float(_STEPS)),
        floats.floor(octaves * real(1 / _OCTAVES)),
        above + below,
    )
    roots = _roots()
    edges = [j + 0.5 for j in range(_STEPS - 1)]
    root, rest, scale, near = floats.hold(
        floats.pick(step, edges, [root for root, _ in roots]),
        floats.pick(step, edges, [rest for _, rest in roots]),
        floats.pick(far, [a - 0.5 for a in _FAR[1:]], [2.0 ** (32 * a) for a in _FAR]),
        floats.pick(
            octaves - far * real(float(_OCTAVES)),
            [b + 0.5 for b in range(63)],
            [2.0**b for b in range(_OCTAVES)],
        ),
    )
    series = real(1 / math.factorial(_EXP_TERMS))
    for term in range(_EXP_TERMS - 1, 1, -1):
        series = series * r + real(1 / math.factorial(term))
    small = r + (series * r * r + ((above - r) + below))
    return (root + (rest + root * small)) * near * scale * scale


_FAR = range(-17, 17)  # times 64 octaves
_FAR_EDGES = [2.0 ** (64 * a - 32) for a in _FAR[1:]]
_FAR_DOWN = [2.0 ** (-32 * a) for a in _FAR]
_NEAR = range(-32, 34)
_NEAR_EDGES = [64 / 91 * 2.0**b for b in _NEAR[1:]]
_NEAR_DOWN = [2.0**-b for b in _NEAR]
_BY_SIZE = _PIECES[::-1]  # growing numbers
_PIECE_EDGES = [64 / (2 * j - 1) for j in _BY_SIZE[:-1]]
_INVERSES = [j / 32 for j in _BY_SIZE]


def _log_term(power: int) -> float:
    return (1.0 if power % 2 else -1.0) / power


class _Table:
    """The constants of logarithms to one base, each in two parts."""

    def __init__(self, base: float) -> None:
        with _flint().ctx.workprec(_BITS):
            scale = _flint().arb(base).log() if base != math.e else _flint().arb(1)
            logs = [_parts((_flint().arb(32) / j).log() / scale) for j in _BY_SIZE]
            self.first, self.second = ([pair[i] for pair in logs] for i in (0, 1))
            self.two = _parts(_flint().arb.const_log2() / scale)
            self.inverse = _parts(1 / scale, 20)
            self.whole = _nearest(1 / scale)


_table = cache(_Table)


@cache
def _step() -> tuple[float, float, float]:
    """(log 2)/16 in two parts, and its inverse."""
    with _flint().ctx.workprec(_BITS):
        step = _flint().arb.const_log2() / _STEPS
        return *_parts(step), _nearest(1 / step)


@cache
def _roots() -> list[tuple[float, float]]:
    """2^(j/16), each as the nearest float and the rest."""
    with _flint().ctx.workprec(_BITS):
        powers = [_flint().arb(2) ** (_flint().arb(j) / _STEPS) for j in range(_STEPS)]
        return [(_nearest(power), _nearest(power - _nearest(power))) for power in powers]


def _parts(number: Number, grid: int = _GRID) -> tuple[float, float]:
    """A constant as a multiple of 2^-grid, and the float nearest to the rest."""
    with _flint().ctx.workprec(_BITS):
        first = float(int((number * 2**grid + _flint().arb(0.5)).floor().unique_fmpz())) / 2**grid
        return first, _nearest(number - first)


def _nearest(number: Number) -> float:
    """The float nearest to a constant of many bits."""
    return float(number.mid())


def _flint() -> Any:
    """Ball arithmetic, which takes some 50 ms to import and is needed by few questions."""
    import flint

    return flint
