"""Stage 1: a row's value as an integer, which is a point on the grid of a
total or the number of a candidate.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from functools import reduce

import narwhals as nw

from dpframe.engine.backends import Frame, backend_of
from dpframe.engine.stages.coerced import by_edges, to_float
from dpframe.engine.stages.operands import Columns, TableFloats
from dpframe.plan import TIMES, Candidates, Factor, Kind, Total, TotalKind, integer_range, logarithm

_WIDER = 2**10  # a row's integer may be so many times the bound of the unit's total (see plan.grid)


def row_integers(frame: Frame, totals: Mapping[str, Total]) -> Frame:
    """Add the integer of a row on the grid of each total, 0 where the value is missing.

    A row in which a column that must be `present` is missing has the integer 0 too.

    The last operation on another row clips the integer to the grid, so the bound does not rest on
    the computation before it.
    """
    logs = {f"{name}_log": total for name, total in totals.items() if total.kind == TotalKind.LOG}
    rows = _with_logarithms(frame, logs) if logs else frame
    integers = {}
    for name, total in totals.items():
        integer = _integer(total, nw.col(f"{name}_log") if f"{name}_log" in logs else None)
        for column in total.present:
            integer = (
                nw.when(~nw.col(column.id).is_null())
                .then(integer)
                .otherwise(nw.lit(0).cast(nw.Int64))
            )
        integers[name] = integer
    rows = rows.with_columns(**integers) if integers else rows
    return rows.drop(*logs) if logs else rows


def _with_logarithms(frame: Frame, totals: Mapping[str, Total]) -> Frame:
    """Add the logarithm of a row's value for each total, clipped to its bounds
    first; null where it is missing.
    """
    kept = frame.collect_schema().names()
    here, logs = Columns(frame, kept), {}
    for name, total in totals.items():
        (column,), grid = total.columns, total.grid
        low, high = (math.exp(grid.centre + end * grid.step) for end in (grid.lower, grid.upper))
        value = here.hold(to_float(nw.col(column.id)).clip(low, high))
        logs[name] = logarithm(value, math.e, TableFloats(here))
    return here.frame.select(*kept, **logs)


def _integer(total: Total, log: nw.Expr | None) -> nw.Expr:
    """A row's value, or its logarithm, as an integer on the total's
    grid, 0 where the value is missing.
    """
    if total.column is None:
        return nw.lit(1).cast(nw.Int64)
    value, grid = nw.col(total.column.id), total.grid
    if log is not None:
        return _on_grid(log, total)
    if total.kind == TotalKind.VALUES:
        return (~value.is_null()).cast(nw.Int64)
    lower, upper = grid.lower, grid.upper
    if total.kind == TotalKind.UNIT_SUM:
        lower, upper = -_WIDER * grid.magnitude, _WIDER * grid.magnitude
    family = total.column.kind
    if total.kind == TotalKind.PRODUCT:
        return _on_grid(_product(total), total)
    if family in (Kind.BOOLEAN, *TIMES):
        value = value.cast(nw.Int64)
    low, high = (
        math.floor(grid.centre + lower * grid.step),
        math.ceil(grid.centre + upper * grid.step),
    )
    fits = low >= -(2**63) and high < 2**63
    if not family.real and grid.step <= 1 and fits and total.computed is None:
        # clip within the column's own type, so that a limit outside of it cannot wrap
        if family != Kind.BOOLEAN:
            first, last = integer_range(
                total.column.domain.dtype if family == Kind.INTEGER else nw.Int64()
            )
            value = value.clip(min(max(low, first), last), min(max(high, first), last))
        middle = math.floor(grid.centre)
        whole = value.cast(nw.Int64) - middle
        if grid.step < 1:  # in half units, from a middle that is half a number: see `grid_for`
            whole = whole * 2 - int((grid.centre - middle) * 2)
    else:
        return _on_grid(to_float(value), total, lower, upper)
    return whole.clip(lower, upper).fill_null(0)


def _on_grid(
    value: nw.Expr, total: Total, lower: int | None = None, upper: int | None = None
) -> nw.Expr:
    """A float as the nearest integer of the total's grid, from `lower` to
    `upper`; 0 where it is missing.
    """
    grid = total.grid
    lower, upper = grid.lower if lower is None else lower, grid.upper if upper is None else upper
    ends = [float(grid.centre + end * grid.step) for end in (lower, upper)]
    exact = value.clip(*ends) - float(grid.centre)
    whole = (exact * float(1 / grid.step) + 0.5).floor().cast(nw.Int64)
    return whole.clip(lower, upper).fill_null(0)


def _product(total: Total) -> nw.Expr:
    """The product of clipped values, each measured from its own
    place; missing where one of them is.

    Each is clipped before it is multiplied, so that no engine has to multiply numbers beyond
    floats, which PostgreSQL refuses. A power is clipped a little beyond the largest distance, so
    that its integer does not depend on that place.
    """
    distances = [_distance(factor, beyond=not total.multiplies) for factor in total.factors]
    return reduce(operator.mul, distances)


def _distance(factor: Factor, *, beyond: bool) -> nw.Expr:
    value = nw.col(factor.column.id)
    if factor.column.kind in (Kind.BOOLEAN, *TIMES):
        value = value.cast(nw.Int64)
    if beyond:
        reach = float(max(map(abs, factor.ends))) * (1 + 1e-9)
        return (to_float(value) - float(factor.about)).clip(-reach, reach)
    low, high = (float(end) for end in factor.bounds)
    return to_float(value).clip(low, high) - float(factor.about)


def placed(frame: Frame, total: Total) -> Frame:
    """Add the number "b" of the candidate of a row's value, or of the part between
    two cuts; -1 where it is missing.
    """
    assert total.column is not None
    value = nw.col(total.column.id)
    value = to_float(value.cast(nw.Int64) if total.column.kind in TIMES else value)
    if total.candidates is not None:
        return candidate_number(frame, value, total.candidates, "b")
    after = [math.nextafter(cut, math.inf) for cut in total.cuts]  # a value at a cut is before it
    place = by_edges(value, after, range(len(after) + 1)).cast(nw.Int64)
    return frame.with_columns(
        nw.when(~value.is_null()).then(place).otherwise(nw.lit(-1).cast(nw.Int64)).alias("b")
    )


def candidate_number(frame: Frame, value: nw.Expr, candidates: Candidates, into: str) -> Frame:
    """Add the number of the candidate nearest to a value, -1 where the value is
    missing: see `Candidates.nearest`.

    Floats are subtracted once, multiplied by powers of two and rounded down. All engines do these
    operations alike. They do not divide floats alike: Polars multiplies by the reciprocal, and a
    tie would then go to another candidate. The position is a column of its own, since engines of
    SQL would write it out each time that it is used.
    """
    nearest = backend_of(frame).nearest(frame, value, candidates, into)
    if nearest is not None:
        return nearest
    last, (times, add, whole) = candidates.count - 1, candidates.quotient
    inside = value.clip(candidates.lower, candidates.upper) - candidates.lower
    if not candidates.extent:
        return frame.with_columns((inside * 0.0).cast(nw.Int64).fill_null(-1).alias(into))
    frame = frame.with_columns(_scaled(inside, candidates.power).floor().cast(nw.Int64).alias(into))
    number = backend_of(frame).quotient(nw.col(into) * times + add, whole)
    return frame.with_columns(number.clip(0, last).fill_null(-1).alias(into))


def _scaled(value: nw.Expr, power: int) -> nw.Expr:
    """A float of at least 0 times 2^power, exactly.
    A product below 1 becomes 0, so that no product underflows.
    """
    if power < 0:
        value = nw.when(value < 2.0**-power).then(value * 0.0).otherwise(value)
    if power <= 1000:
        return value * 2.0**power
    return value * 2.0**1000 * 2.0 ** (power - 1000)
