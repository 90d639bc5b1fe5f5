"""Functions of numbers, from sums, products and comparisons of floats alone:
so each value is the same on every engine.

An engine's own logarithm, power or rounding may differ from another's in the last digit, and none
is called.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping

import narwhals as nw

from dpframe.engine.stages.coerced import WITHIN, to_float
from dpframe.engine.stages.operands import Columns, Lower, Operands, TableFloats
from dpframe.plan import LARGEST_POWER, LEAST_POWER, Floats, Kind, exponential, log1p, logarithm

_WHOLE = 2.0**52  # from here on, floats are whole numbers

_MOST = sys.float_info.max


def _real(on: Operands) -> nw.Expr:
    """A number as Float64, which floats and decimals are already."""
    return to_float(on.value) if on.kind == Kind.INTEGER else on.value


def _power(here: Columns, on: Operands) -> nw.Expr:
    """Products in the order of `plan.operations.power_of`;
    of whole numbers null as soon as one does not fit.
    """
    whole = on.kind == Kind.INTEGER
    value = here.hold(on.whole if whole else _real(on))

    def product(a: nw.Expr, b: nw.Expr) -> nw.Expr:
        fits = nw.when((to_float(a) * to_float(b)).abs() < WITHIN).then(a) if whole else a
        return here.hold(fits * b)

    def power(exponent: int) -> nw.Expr:
        if exponent == 1:
            return value
        half = power(exponent // 2)
        square = product(half, half)
        return product(square, value) if exponent % 2 else square

    if on.options["exponent"]:
        return power(on.options["exponent"])
    one = nw.lit(1).cast(nw.Int64) if whole else here.engine.real(1.0)
    return nw.when(~value.is_null()).then(one)


def _sign(here: Columns, on: Operands) -> nw.Expr:
    value = here.hold(on.value)
    below = nw.when(value < 0).then(nw.lit(-1)).otherwise(nw.lit(0))
    sign = nw.when(value > 0).then(nw.lit(1)).otherwise(below).cast(nw.Int64)
    signed = nw.when(~value.is_null()).then(sign)
    return signed if on.kind == Kind.INTEGER else signed.cast(nw.Float64)


def _round(here: Columns, on: Operands) -> nw.Expr:
    """A float below 2^52 plus 2^52 has no room for a fraction:
    the sum is rounded to a whole number, half to even.
    """
    if on.kind == Kind.INTEGER:
        return on.value
    real, decimals = here.engine.real, on.options["decimals"]
    value = here.hold(_real(on))
    scaled = here.hold(value * real(10.0**decimals)) if decimals else value
    inside = here.hold(nw.when((scaled > -_WHOLE) & (scaled < _WHOLE)).then(scaled))
    up, down = (inside + real(_WHOLE)) - real(_WHOLE), (inside - real(_WHOLE)) + real(_WHOLE)
    nearest = nw.when(inside >= 0).then(up).otherwise(down)
    quotient = here.engine.ratio(nearest, real(10.0**decimals)) if decimals else nearest
    return nw.when(~inside.is_null()).then(quotient).otherwise(value)


def _inside(
    here: Columns,
    on: Operands,
    inside: Callable[[nw.Expr], nw.Expr],
    function: Callable[[nw.Expr, Floats], nw.Expr],
) -> tuple[nw.Expr, nw.Expr]:
    """A number, and a function of it, null for a number that is not inside of
    what the function is computed for.
    """
    value = here.hold(_real(on))
    return value, function(here.hold(nw.when(inside(value)).then(value)), TableFloats(here))


def _log(here: Columns, on: Operands) -> nw.Expr:
    zero, most = map(here.engine.real, (0.0, _MOST))
    value, result = _inside(
        here,
        on,
        lambda x: (x > zero) & (x <= most),
        lambda x, floats: logarithm(x, on.options["base"], floats),
    )
    return nw.when(value > most).then(value).otherwise(result)


def _log1p(here: Columns, on: Operands) -> nw.Expr:
    least, most = map(here.engine.real, (-1.0, _MOST))
    value, result = _inside(here, on, lambda x: (x > least) & (x <= most), log1p)
    return nw.when(value > most).then(value).otherwise(result)


def _exp(here: Columns, on: Operands) -> nw.Expr:
    """Infinite above all powers that a float holds, and 0 below."""
    real = here.engine.real
    least, most = real(LEAST_POWER), real(LARGEST_POWER)
    value, result = _inside(here, on, lambda x: (x >= least) & (x <= most), exponential)
    beyond = nw.when(value > most).then(real(math.inf)).otherwise(result)
    return nw.when(value < least).then(real(0.0)).otherwise(beyond)


FUNCTIONS: Mapping[str, Lower] = {
    "power": _power,
    "sign": _sign,
    "round": _round,
    "log": _log,
    "log1p": _log1p,
    "exp": _exp,
}
