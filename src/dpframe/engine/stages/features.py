"""One value for each unit from its rows, exactly: the same for any order of rows and any way to split them.

Integers are added in two halves so that nothing wraps. A float is cut into limbs of 32 bits, which are added as
integers: what is added is exact, and only the last step rounds. So a unit's total cannot tell how the engine divided
the rows, which depends on other units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import narwhals as nw

from dpframe.engine.backends import Backend, Frame
from dpframe.engine.stages.expressions import Lowering
from dpframe.engine.stages.values import to_float
from dpframe.plan import TIMES, ColumnDomain, Kind, integer_range, kind
from dpframe.plan.steps import Feature, small

__all__ = ["per_unit"]

_LIMB = 32  # bits: 2^31 limbs of a unit can be added in int64
_FAR = 100  # floats without bounds are clipped to ±2^100, and rounded to 2^-92
_INSIDE = 9.2e18  # an approximate total below this in size is surely inside int64


@dataclass
class _Stages:
    """Columns to add one after another: of rows, per unit, and of the result."""

    rows: list[list[nw.Expr]]
    sums: list[nw.Expr]
    after: list[list[nw.Expr]]


def per_unit(here: Lowering, units: list[str], kept: list[str], features: dict[str, Feature]) -> Frame:
    """One row per unit: its identifier, the visible columns of it, and each feature under its version."""
    sums = [nw.col(name).min().alias(name) for name in kept]
    found = []
    for i, (into, feature) in enumerate(features.items()):
        value = None if feature.value is None else here.expr(feature.value)
        found.append(_stages(here, feature, value, into, f"f{i}x", units))
        sums += found[-1].sums
    rows = _staged(here.frame, [stages.rows for stages in found])
    made = rows.group_by(*units).agg(*(sums or [nw.len().alias("n")]))
    return _staged(made, [stages.after for stages in found]).select(*units, *kept, *features)


def _staged(frame: Frame, features: Sequence[Sequence[Sequence[nw.Expr]]]) -> Frame:
    """A frame with the columns of every feature, the first stage of each at once, then the second, …."""
    for stage in zip_longest(*features, fillvalue=()):
        frame = frame.with_columns(*(column for columns in stage for column in columns))
    return frame


def _stages(here: Lowering, feature: Feature, value: nw.Expr | None, into: str, name: str, units: list[str]) -> _Stages:
    if value is None or feature.known is None:
        return _Stages([], [nw.len().cast(nw.Int64).alias(into)], [])
    family = kind(feature.known.dtype)
    match feature.made:
        case "values":
            return _Stages([], [(~value.is_null()).cast(nw.Int64).sum().fill_null(0).alias(into)], [])
        case "distinct":
            apart, gap = _one_zero(value, family).n_unique(), value.is_null().cast(nw.Int64).max()
            found = nw.col(name).cast(nw.Int64) - nw.col(f"{name}g")  # a missing value is none
            return _Stages([], [apart.alias(name), gap.alias(f"{name}g")], [[found.alias(into)]])
        case "min" | "max":
            least = value.min() if feature.made == "min" else value.max()
            return _Stages([], [_one_zero(least, family).alias(into)], [])
        case "first" | "last":
            return _pick(here, feature, value, into, name, units)
    real = family in (Kind.FLOAT, Kind.DECIMAL)
    made = _float_sum(here.engine, value, feature.known, name) if real else _sum(here.engine, value, feature, name)
    return _finished(here.engine, made, feature, value, into, name)


def _one_zero(value: nw.Expr, family: str) -> nw.Expr:
    return value + 0.0 if family in (Kind.FLOAT, Kind.DECIMAL) else value  # -0.0 and 0.0 tie


def _pick(here: Lowering, feature: Feature, value: nw.Expr, into: str, name: str, units: list[str]) -> _Stages:
    """The value where `by` is least or greatest; of several the smallest, whatever the order of rows."""
    assert feature.by is not None
    assert feature.known is not None
    by, end = nw.col(here.table.columns[feature.by].id), f"{name}e"
    extreme = (by.max() if feature.made == "last" else by.min()).over(*units)
    chosen = nw.when(by == nw.col(end)).then(value)
    least = _one_zero(nw.col(name).min(), kind(feature.known.dtype))
    return _Stages([[extreme.alias(end)], [chosen.alias(name)]], [least.alias(into)], [])


def _sum(engine: Backend, value: nw.Expr, feature: Feature, name: str) -> _Stages:
    """The sum of integers as `name`, held inside int64; for a mean, as a float; of times, their mean, rounded down."""
    known = feature.known
    assert known is not None
    times = feature.made == "mean" and kind(known.dtype) in TIMES
    if isinstance(known.dtype, (nw.UInt64, nw.Int128, nw.UInt128)):
        value = value.clip(max(-(2**63), integer_range(known.dtype)[0]), 2**63 - 1)
    value = value.cast(nw.Int64) * feature.ticks
    if small(known) and not times:
        return _Stages([[value.alias(name)]], [nw.col(name).sum().fill_null(0).cast(nw.Int64).alias(name)], [])
    high, low, one = nw.col(f"{name}h"), nw.col(f"{name}l"), 2**_LIMB
    upper = engine.quotient(nw.col(name), one)
    split = [upper.alias(f"{name}h"), (nw.col(name) - upper * one).alias(f"{name}l")]
    sums = [part.sum().fill_null(0).cast(nw.Int64).alias(f"{name}{end}") for part, end in ((high, "h"), (low, "l"))]
    over = engine.quotient(low, one)
    carry = [(high + over).alias(f"{name}h"), (low - over * one).alias(f"{name}l")]
    if times:  # high and low by the number of values, as by hand; no step leaves int64
        many, part = _positive(nw.col(f"{name}c")), nw.col(f"{name}p")
        rest = (high - part * many) * one + low
        divided = [
            [engine.quotient(high, many).alias(f"{name}p")],
            [(part * one + engine.quotient(rest, many)).alias(name)],
        ]
        return _Stages([[value.alias(name)], split], sums, [carry, *divided])
    total = to_float(high) * float(one) + to_float(low)
    if feature.made == "mean":
        return _Stages([[value.alias(name)], split], sums, [carry, [total.alias(name)]])
    exact = nw.when(total.abs() < _INSIDE).then(high) * one + low
    end = nw.when(total > 0).then(nw.lit(2**63 - 1)).otherwise(nw.lit(-(2**63)))
    return _Stages([[value.alias(name)], split], sums, [carry, [nw.coalesce(exact, end).alias(name)]])


def _positive(count: nw.Expr) -> nw.Expr:
    return nw.when(count > 0).then(count)


def _float_sum(engine: Backend, value: nw.Expr, known: ColumnDomain, name: str) -> _Stages:
    """The sum of floats as `name`: exact in limbs, rounded once or twice at the end."""
    top, many = _FAR, 6
    if known.bounds is not None:
        top, many = max(math.frexp(float(known.bounds.magnitude))[1], -800), 3
    value = value.clip(-(2.0**top), 2.0**top)
    powers = [top - _LIMB * (i + 1) for i in range(many)]
    rows, rest = [[value.alias(f"{name}r")]], nw.col(f"{name}r")
    limbs = [f"{name}{i}" for i in range(many)]
    for limb, power in zip(limbs, powers, strict=True):
        rows.append([engine.whole_part(rest * 2.0**-power).alias(limb)])
        rows.append([(rest - to_float(nw.col(limb)) * 2.0**power).alias(f"{name}r")])
    sums = [nw.col(limb).sum().fill_null(0).cast(nw.Int64).alias(limb) for limb in limbs]
    negative = f"{name}s"
    after = [*_carried(engine, limbs), [(nw.col(limbs[0]) < 0).alias(negative)]]
    after.append([nw.when(nw.col(negative)).then(-1 * nw.col(x)).otherwise(nw.col(x)).alias(x) for x in limbs])
    after += _carried(engine, limbs)
    total = to_float(nw.col(limbs[-1])) * 2.0 ** powers[-1]
    for limb, power in zip(limbs[-2::-1], powers[-2::-1], strict=True):
        total = total + to_float(nw.col(limb)) * 2.0**power
    after.append([nw.when(nw.col(negative)).then(total * -1.0).otherwise(total).alias(name)])
    return _Stages(rows, sums, after)


def _carried(engine: Backend, limbs: list[str]) -> list[list[nw.Expr]]:
    """Every limb but the first between 0 and 2^32, the same number in all."""
    one, stages = 2**_LIMB, []
    for above, limb in zip(limbs[-2::-1], limbs[:0:-1], strict=True):
        carry = engine.quotient(nw.col(limb), one)
        stages.append([(nw.col(above) + carry).alias(above), (nw.col(limb) - carry * one).alias(limb)])
    return stages


def _finished(engine: Backend, stages: _Stages, feature: Feature, value: nw.Expr, into: str, name: str) -> _Stages:
    """A sum as it is, or within its bounds, or over the number of values."""
    total, times = nw.col(name), kind(feature.domain.dtype) in TIMES
    if feature.made == "mean":
        stages.sums.append((~value.is_null()).cast(nw.Int64).sum().fill_null(0).alias(f"{name}c"))
        total = total if times else to_float(total) / to_float(_positive(nw.col(f"{name}c")))
    bounds = feature.domain.bounds
    if bounds is not None:
        total = total.clip(bounds.lower, bounds.upper)
    if times:
        total = engine.from_ticks(total, feature.domain.dtype)
    stages.after.append([total.alias(into)])
    return stages
