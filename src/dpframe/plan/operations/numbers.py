"""Arithmetic: the domain of each result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import narwhals as nw

from dpframe.errors import WrongType
from dpframe.plan.columns import Bounds, ColumnDomain
from dpframe.plan.operations.rules import (
    NUMBERS,
    Applied,
    Operation,
    Rule,
    as_floats,
    corner_bounds,
    need,
    overflows,
)
from dpframe.plan.operations.texts_and_dates import concatenated
from dpframe.plan.operations.windows import moved
from dpframe.plan.types import TIMES, Kind, is_wide
from dpframe.usage import is_integer


def _arithmetic(op: Callable[[Any, Any], Any]) -> Rule:
    def rule(asked: Applied) -> ColumnDomain:
        asked.need(*NUMBERS)
        ends = [a.bounds for a in asked.args]
        if all(a.kind == Kind.INTEGER for a in asked.args):
            bounds = corner_bounds(op, *ends)
            wide = any(is_wide(a.dtype) for a in asked.args)
            return ColumnDomain(nw.Int64(), asked.nullable or overflows(bounds) or wide, bounds)
        return ColumnDomain(nw.Float64(), True, corner_bounds(op, *map(as_floats, ends)))

    return rule


_SUM, _DIFFERENCE = _arithmetic(lambda x, y: x + y), _arithmetic(lambda x, y: x - y)


def _add(asked: Applied) -> ColumnDomain:
    if any(a.kind in TIMES for a in asked.args):
        return moved(asked, 1)
    return (concatenated if asked.on.kind == Kind.STRING else _SUM)(asked)


def _subtract(asked: Applied) -> ColumnDomain:
    if any(a.kind in TIMES for a in asked.args):
        return moved(asked, -1)
    return _DIFFERENCE(asked)


def _divide(asked: Applied) -> ColumnDomain:
    asked.need(*NUMBERS)
    top, bottom = (as_floats(a.bounds) for a in asked.args)
    if top and bottom and (bottom.lower > 0 or bottom.upper < 0):
        bounds = corner_bounds(lambda x, y: x / y, top, bottom)
        return ColumnDomain(nw.Float64(), bounds is None or asked.nullable, bounds)
    return ColumnDomain(nw.Float64(), True)


def _by_constant(bounds_of: Callable[[Bounds, int], Bounds]) -> Rule:
    def rule(asked: Applied) -> ColumnDomain:
        asked.need("integer")
        by = asked["by"]
        if not is_integer(by, 1, 2**62 - 1):
            raise WrongType(
                f"{asked.call}: the divisor must be a whole number of at least 1, as in "
                "dp.col('x') // 10."
            )
        wide = is_wide(asked.dtype)
        return ColumnDomain(
            nw.Int64(), asked.nullable or wide, asked.bounds and bounds_of(asked.bounds, by)
        )

    return rule


DIVISIBLE = 9 * 10**18  # a larger whole number is not divided by a column


def _whole_by(asked: Applied) -> bool:
    """Whether a division of two columns of whole numbers may have no result. Errors: WrongType."""
    for a in asked.args:
        if a.kind.real:
            raise WrongType(
                f"{asked.call}: needs whole numbers. Of others, type (dp.col('x') / "
                "dp.col('y')).floor()."
            )
        need(asked.call, a, "integer")
    known = [a.bounds is not None and a.bounds.magnitude < DIVISIBLE for a in asked.args]
    by = asked.args[1].bounds
    return asked.nullable or not all(known) or by is None or by.lower <= 0 <= by.upper


def _floor_divide_by(asked: Applied) -> ColumnDomain:
    """A quotient by 1 or more is no larger than what is divided;
    by bounds without 0 it is one between the corners.
    """
    missing = _whole_by(asked)
    top, by = (a.bounds for a in asked.args)
    if top is None:
        return ColumnDomain(nw.Int64(), True)
    if by is None or by.lower <= 0 <= by.upper:
        most = math.ceil(max(top.magnitude, 1))
        return ColumnDomain(nw.Int64(), missing, Bounds(-most, most))
    corners = [math.floor(Fraction(x) / Fraction(y)) for x in top for y in by]
    return ColumnDomain(nw.Int64(), missing, Bounds(min(corners), max(corners)))


def _modulo_by(asked: Applied) -> ColumnDomain:
    """A remainder has the sign of the divisor, and is smaller than it."""
    missing, by = _whole_by(asked), asked.args[1].bounds
    bounds = by and Bounds(min(0, math.ceil(by.lower) + 1), max(0, math.floor(by.upper) - 1))
    return ColumnDomain(nw.Int64(), missing, bounds)


def _negative(asked: Applied) -> ColumnDomain:
    zero = ColumnDomain(
        nw.Int64() if asked.on.kind == Kind.INTEGER else nw.Float64(), False, Bounds(0, 0)
    )
    return _arithmetic(lambda x, y: x - y)(replace(asked, args=[zero, asked.on]))


def _absolute(asked: Applied) -> ColumnDomain:
    domain = _negative(asked)
    bounds = asked.bounds
    if bounds is None:
        return ColumnDomain(domain.dtype, domain.nullable)
    low = 0 if bounds.lower <= 0 <= bounds.upper else min(abs(bounds.lower), abs(bounds.upper))
    return ColumnDomain(domain.dtype, domain.nullable, Bounds(low, bounds.magnitude))


def _monotone(function: Callable[[Any], float]) -> Rule:
    def rule(asked: Applied) -> ColumnDomain:
        asked.need(*NUMBERS)
        bounds = as_floats(asked.bounds)
        return ColumnDomain(
            nw.Float64(),
            asked.nullable,
            bounds and Bounds(function(bounds.lower), function(bounds.upper)),
        )

    return rule


def _root(asked: Applied) -> ColumnDomain:
    asked.need(*NUMBERS)
    bounds = as_floats(asked.bounds)
    if bounds is None or bounds.lower < 0:
        return ColumnDomain(nw.Float64(), True)
    return ColumnDomain(
        nw.Float64(), asked.nullable, Bounds(math.sqrt(bounds.lower), math.sqrt(bounds.upper))
    )


OF_NUMBERS: Mapping[str, Operation] = {
    "add": Operation("({0} + {1})", _add),
    "subtract": Operation("({0} - {1})", _subtract),
    "multiply": Operation("({0} * {1})", _arithmetic(lambda x, y: x * y)),
    "divide": Operation("({0} / {1})", _divide),
    "floor_divide": Operation(
        "({0} // {by})", _by_constant(lambda b, by: Bounds(b.lower // by, b.upper // by))
    ),
    "modulo": Operation("({0} % {by})", _by_constant(lambda b, by: Bounds(0, by - 1))),
    "floor_divide_by": Operation("({0} // {1})", _floor_divide_by, depth=16, size=40),
    "modulo_by": Operation("({0} % {1})", _modulo_by, depth=16, size=40),
    "negative": Operation("(-{0})", _negative),
    "abs": Operation("{0}.abs()", _absolute),
    "floor": Operation("{0}.floor()", _monotone(lambda x: float(math.floor(x)))),
    "ceil": Operation("{0}.ceil()", _monotone(lambda x: float(math.ceil(x)))),
    "sqrt": Operation("{0}.sqrt()", _root),
}
