"""Stage 1: a row's value as an integer, on the grid of a total or as the number of a candidate."""

from __future__ import annotations

import narwhals as nw

from dpframe.engine.backends import Backend
from dpframe.engine.stages.expressions import to_float
from dpframe.plan import TIMES, Candidates, Kind, Total, TotalKind, integer_range, kind

__all__ = ["candidate_number", "row_integer"]

_WIDER = 2**10  # a unit's rows may be this much larger than its clipped total: far from wrapping (see plan.grid)


def row_integer(total: Total) -> nw.Expr:
    """A row's value as an integer on the total's grid, 0 where it is missing; the last clip makes the bound true."""
    if total.column is None:
        return nw.lit(1).cast(nw.Int64)
    value, grid = nw.col(total.column.id), total.grid
    if total.kind == TotalKind.VALUES:
        return (~value.is_null()).cast(nw.Int64)
    lower, upper = grid.lower, grid.upper
    if total.kind == TotalKind.UNIT_SUM:
        lower, upper = -_WIDER * grid.magnitude, _WIDER * grid.magnitude
    family = kind(total.column.domain.dtype)
    if family in (Kind.BOOLEAN, *TIMES):
        value = value.cast(nw.Int64)
    centre = int(grid.centre) if grid.step == 1 else 0
    fits = centre + lower >= -(2**63) and centre + upper < 2**63
    if family not in (Kind.FLOAT, Kind.DECIMAL) and grid.step == 1 and fits and total.kind != TotalKind.SQUARE:
        if family == Kind.INTEGER:  # in the column's own type, so that a limit outside of it cannot wrap
            first, last = integer_range(total.column.domain.dtype)
            value = value.clip(min(max(lower + centre, first), last), min(max(upper + centre, first), last))
        whole = value.cast(nw.Int64) - centre
    else:
        ends = [float(grid.centre + end * grid.step) for end in (lower, upper)]
        value = to_float(value)
        if total.kind == TotalKind.SQUARE:
            value = (value - float(total.about)) * (value - float(total.about))
        exact = value.clip(*ends) - float(grid.centre)
        whole = (exact * float(1 / grid.step) + 0.5).floor().cast(nw.Int64)
    return whole.clip(lower, upper).fill_null(0)


def candidate_number(total: Total, candidates: Candidates, engine: Backend) -> nw.Expr:
    """The number of the candidate nearest to a row's value, -1 where it is missing: see `Candidates.nearest`.

    Floats are subtracted once, multiplied by powers of two and rounded down, which all engines do alike. A division of
    floats is not alike everywhere: Polars multiplies by the reciprocal, and a tie then goes to another candidate.
    """
    assert total.column is not None
    value, last = nw.col(total.column.id), candidates.count - 1
    value = to_float(value.cast(nw.Int64) if kind(total.column.domain.dtype) in TIMES else value)
    inside = value.clip(candidates.lower, candidates.point(last)) - candidates.lower
    if not candidates.extent:
        return (inside * 0.0).cast(nw.Int64).fill_null(-1)
    scaled = _scaled(inside, candidates.power).floor().cast(nw.Int64)
    nearest = engine.quotient(scaled * (2 * last) + candidates.extent, 2 * candidates.extent)
    return nearest.clip(0, last).fill_null(-1)


def _scaled(value: nw.Expr, power: int) -> nw.Expr:
    """A float of at least 0 times 2^power, exactly; 0 where that is less than 1, so that nothing is too small."""
    if power < 0:
        value = nw.when(value < 2.0**-power).then(value * 0.0).otherwise(value)
    if power <= 1000:
        return value * 2.0**power
    return value * 2.0**1000 * 2.0 ** (power - 1000)
