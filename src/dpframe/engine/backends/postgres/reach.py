"""Bounds on the size of a float, from its expression. Arithmetic that cannot overflow or underflow needs no CASE."""

from __future__ import annotations

import math

import ibis.expr.operations as ops

from dpframe.engine.backends.ibis_compiler import listed_float

Reach = tuple[int, int]  # (l, h): every value of a float that is not 0 has a magnitude between 2^l and 2^h

LEAST, MOST = -1074, 1023  # exponents of the smallest and the largest floats
_ANY: Reach = (LEAST, MOST + 1)
_WHOLE: Reach = (0, 100)  # bounds for a whole number, also for a sum of many


def reach(op: ops.Value) -> Reach:
    """Exponents (l, h) such that each value of an expression is 0 or has a magnitude between 2^l and 2^h.

    The range may be wider than needed. A sum of two floats that are multiples of 2^(l - 52) is a multiple of 2^(l - 52)
    too, so it is 0 or at least 2^(l - 52) in magnitude.
    """
    if op.dtype.is_integer():
        return _WHOLE
    number = listed_float(op)
    if number is not None:
        power = math.frexp(number)[1]
        return _ANY if not math.isfinite(number) else (power - 1, power) if number else (0, 0)
    match type(op).__name__:
        case "Literal" if op.value and math.isfinite(op.value):
            power = math.frexp(op.value)[1]
            return power - 1, power
        case "Literal" if op.value == 0:
            return 0, 0
        case "Cast" if op.arg.dtype.is_integer() or op.arg.dtype.is_boolean():
            return _WHOLE
        case "Alias":
            return reach(op.arg)
        case "Floor":
            return 0, max(reach(op.arg)[1], 0) + 1
        case "Abs" | "Negate":
            return reach(op.arg)
        case "Add" | "Subtract":
            (low, high), (lower, higher) = reach(op.left), reach(op.right)
            return max(min(low, lower) - 52, LEAST), min(max(high, higher) + 1, MOST + 1)
        case "Multiply":
            (low, high), (lower, higher) = reach(op.left), reach(op.right)
            return max(low + lower - 1, LEAST), min(high + higher, MOST + 1)
        case "Divide":
            (low, high), (lower, higher) = reach(op.left), reach(op.right)
            return max(low - higher - 1, LEAST), min(high - lower + 1, MOST + 1)
        case "Clip" if isinstance(op.lower, ops.Literal) and isinstance(op.upper, ops.Literal):
            ends = [reach(end)[1] for end in (op.lower, op.upper) if not end.dtype.is_integer() or end.value]
            return LEAST, max(ends, default=0)
    return _ANY
