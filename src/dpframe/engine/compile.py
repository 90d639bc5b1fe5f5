"""One compiler for every engine: an ask becomes rows, partials, limits and integer totals, written once in narwhals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw

from dpframe.engine.expressions import to_float
from dpframe.engine.hooks import Frame
from dpframe.engine.keys import key_frame
from dpframe.engine.limits import Partial, enforced, partial_bits, partials
from dpframe.engine.rows import lower, unit_names
from dpframe.plan.ask import Ask
from dpframe.plan.columns import Column
from dpframe.plan.measures import Measure
from dpframe.plan.types import integer_range, kind

__all__ = ["HIGH", "compiled", "group_names", "split_bits"]

HIGH = "x"  # suffix of the high part of a total that is added in two parts
_ROOM = 27  # bits of a partial that 2^36 of can be added in int64


def group_names(ask: Ask) -> list[str]:
    """The key columns of the totals."""
    return [f"k{i}" for i in range(len(ask.by))]


def split_bits(measure: Measure) -> int:
    """Low bits that are added apart so that no sum wraps; 0 when the whole partial is small."""
    bits = partial_bits(measure)
    return 0 if bits <= _ROOM else (bits + 1) // 2


def compiled(ask: Ask, salt: int, *, empty: bool = False) -> Frame:
    """The totals of an ask as a lazy frame: key columns k0, k1, …, and t0, t1, … for the measures of `ask.paid`."""
    columns = [Partial(p.measure, f"q{i}", f"m{i}") for i, p in enumerate(ask.paid)]
    units, groups = unit_names(ask.table), group_names(ask)
    live = {column.id for column in ask.group_columns} | {p.measure.column.id for p in columns if p.measure.column}
    frame = lower(ask.step, live, empty=empty)
    frame = _keyed(ask, frame, groups)
    integers = [_row_integer(p.measure).alias(p.rows) for p in columns if p.measure.column or not units]
    frame = frame.with_columns(*integers) if integers else frame
    if units:
        frame = partials(frame, units, groups, columns)
        frame = _listed_rows(ask, frame, groups)
        frame = enforced(frame, units, groups, columns, ask.limits, ask.cells, salt)
        return _totals(frame, groups, [(p.units, p.measure) for p in columns])
    return _totals(_listed_rows(ask, frame, groups), groups, [(p.rows, p.measure) for p in columns])


# Stage 1: keys and integers


def _keyed(ask: Ask, frame: Frame, groups: Sequence[str]) -> Frame:
    """Rows with their keys, those of unlisted groups dropped first, so that no unit wastes a slot on them."""
    if not groups:
        return frame
    keys = [_key(column).alias(name) for column, name in zip(ask.group_columns, groups, strict=True)]
    frame = frame.with_columns(*keys)
    if ask.keys is None:
        return frame.filter(*(~nw.col(name).is_null() for name in groups))
    kept = []
    for name, level in zip(groups, ask.keys.levels, strict=True):
        values = [value for value in level if value is not None]
        known = nw.col(name).is_in(values) if values else nw.col(name).is_null() & ~nw.col(name).is_null()
        kept.append(known | nw.col(name).is_null() if None in level else known)
    return frame.filter(*kept)


def _key(column: Column) -> nw.Expr:
    value = nw.col(column.id)
    return value + 0.0 if kind(column.facts.dtype) == "float" else value  # -0.0 and 0.0 are one key


def _listed_rows(ask: Ask, frame: Frame, groups: Sequence[str]) -> Frame:
    """Only the listed combinations, when they are fewer than all combinations of the listed values."""
    if ask.keys is None or ask.keys.rows is None:
        return frame
    # Null matches nothing in a join: a key is compared as a value and as a flag that says whether there is one.
    listed = key_frame(ask, groups)
    on = [*groups, *(f"{name}n" for name in groups)]
    flags = [nw.col(name).is_null().alias(f"{name}n") for name in groups]
    known = nw.from_native(listed.lazy()).with_columns(*flags)
    fills = [nw.col(name).fill_null(_some(ask, i)) for i, name in enumerate(groups)]
    frame = frame.with_columns(*flags)
    matched = frame.with_columns(*fills).join(known.with_columns(*fills), on=on, how="semi")
    back = [nw.when(~nw.col(f"{name}n")).then(nw.col(name)).alias(name) for name in groups]
    return matched.with_columns(*back).drop(*(f"{name}n" for name in groups))


def _some(ask: Ask, i: int) -> Any:
    assert ask.keys is not None
    return next((value for value in ask.keys.levels[i] if value is not None), 0)


def _row_integer(measure: Measure) -> nw.Expr:
    """A row's value as an integer on the measure's grid, 0 where it is missing; the last clip makes the bound true."""
    if measure.column is None:
        return nw.lit(1).cast(nw.Int64)
    value, facts, grid = nw.col(measure.column.id), measure.column.facts, measure.grid
    if measure.total == "values":
        return (~value.is_null()).cast(nw.Int64)
    # A unit's total is clipped later; its rows only so far that they cannot wrap (see plan.grid).
    widen = 2**10 if measure.total == "unit_sum" else 1
    lower, upper = (-widen * grid.magnitude, widen * grid.magnitude) if widen > 1 else (grid.lower, grid.upper)
    family = kind(facts.dtype)
    if family == "boolean":
        value = value.cast(nw.Int64)
    if family != "float" and grid.step == 1 and measure.total != "square":
        if family == "integer":
            first, last = integer_range(facts.dtype)
            centre = int(grid.centre)
            value = value.clip(min(max(lower + centre, first), last), min(max(upper + centre, first), last))
        whole = value.cast(nw.Int64) - int(grid.centre)
    else:
        ends = [float(grid.centre + end * grid.step) for end in (lower, upper)]
        value = to_float(value)
        if measure.total == "square":
            value = (value - float(measure.about)) * (value - float(measure.about))
        exact = value.clip(*ends) - float(grid.centre)
        whole = (exact * float(1 / grid.step) + 0.5).floor().cast(nw.Int64)
    return whole.clip(lower, upper).fill_null(0)


# Stage 4: totals


def _totals(frame: Frame, groups: Sequence[str], columns: Sequence[tuple[str, Measure]]) -> Frame:
    """Integer sums per group; a wide partial is added in two halves, put together after."""
    sums = []
    for i, (name, measure) in enumerate(columns):
        value, low = nw.col(name), split_bits(measure)
        if low:
            high = value // 2**low
            sums.append(high.sum().fill_null(0).alias(f"t{i}{HIGH}"))
            value = value - high * 2**low
        sums.append(value.sum().fill_null(0).alias(f"t{i}"))
    return frame.group_by(*groups).agg(*sums) if groups else frame.select(*sums)
