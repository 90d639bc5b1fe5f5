"""Features: one value for each unit from its rows, whatever the order of the
rows and the way they are split.

Integers are added in two halves so that nothing wraps. A float is cut into limbs of 32 bits, and
the limbs are added as integers. These additions are exact, and only the last step rounds. So a
unit's total does not depend on how the engine divided the rows, which other units could change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import narwhals as nw

from dpframe.engine.backends import Backend, Frame
from dpframe.engine.stages.coerced import to_float
from dpframe.engine.stages.lowering import Lowering
from dpframe.plan import TIMES, ColumnDomain, Kind, integer_range, is_wide, kind
from dpframe.plan.steps import Feature, small

_LIMB = 32  # bits of a limb: the sum of 2^31 limbs of one unit fits in int64
_FAR = 100  # floats without bounds are clipped to ±2^100, and rounded to 2^-92
_INSIDE = 9.2e18  # a total whose float is smaller than this in magnitude fits in int64
_END_OF = {"min": nw.Expr.min, "max": nw.Expr.max, "first": nw.Expr.min, "last": nw.Expr.max}


@dataclass
class _Stages:
    """The columns of one feature.

    `rows` are added to the rows, `sums` are computed per unit, and `after` are added to the sums.
    Of `rows` and `after`, a stage is a list of columns that may read the columns of earlier stages.
    """

    rows: list[list[nw.Expr]]
    sums: list[nw.Expr]
    after: list[list[nw.Expr]]


def per_unit(
    here: Lowering, units: list[str], identifiers: list[str], features: dict[str, Feature]
) -> Frame:
    """One row per unit: its identifier, the columns `identifiers` that show it, and
    each feature under its version.
    """
    sums = [nw.col(name).min().alias(name) for name in identifiers]
    stages_of_features = []
    for i, (into, feature) in enumerate(features.items()):
        value = None if feature.value is None else here.expr(feature.value)
        stages_of_features.append(_stages(here, feature, value, into, f"f{i}x", units))
        sums += stages_of_features[-1].sums
    rows = _staged(here.frame, [stages.rows for stages in stages_of_features])
    rows = rows if rows is here.frame else here.engine.settled(rows)
    per_unit_rows = rows.group_by(*units).agg(*(sums or [nw.len().alias("n")]))
    made = _staged(per_unit_rows, [stages.after for stages in stages_of_features])
    return here.engine.settled(made.select(*units, *identifiers, *features))


def _staged(frame: Frame, features: Sequence[Sequence[Sequence[nw.Expr]]]) -> Frame:
    """Add the columns of every feature to a frame:
    the first stage of all features at once, then the second, ….
    """
    for stage in zip_longest(*features, fillvalue=()):
        frame = frame.with_columns(*(column for columns in stage for column in columns))
    return frame


def _stages(
    here: Lowering, feature: Feature, value: nw.Expr | None, into: str, name: str, units: list[str]
) -> _Stages:
    if value is None or feature.known is None:
        return _Stages([], [nw.len().cast(nw.Int64).alias(into)], [])
    family = kind(feature.known.dtype)
    match feature.made:
        case "values":
            return _Stages(
                [], [(~value.is_null()).cast(nw.Int64).sum().fill_null(0).alias(into)], []
            )
        case "distinct":
            apart, gap = _one_zero(value, family).n_unique(), value.is_null().cast(nw.Int64).max()
            # `n_unique` counts null as a value
            number = nw.col(name).cast(nw.Int64) - nw.col(f"{name}g")
            return _Stages([], [apart.alias(name), gap.alias(f"{name}g")], [[number.alias(into)]])
        case "min" | "max":
            return _Stages([], [_one_zero(_END_OF[feature.made](value), family).alias(into)], [])
        case "first" | "last":
            return _pick(here, feature, value, into, name, units)
    engine = here.engine
    stages = (
        _float_sum(engine, value, feature.known, name)
        if family.real
        else _sum(engine, value, feature, name)
    )
    return _finished(engine, stages, feature, value, into, name)


def _one_zero(value: nw.Expr, family: Kind) -> nw.Expr:
    return value + 0.0 if family.real else value  # -0.0 and 0.0 tie


def _pick(
    here: Lowering, feature: Feature, value: nw.Expr, into: str, name: str, units: list[str]
) -> _Stages:
    """The value where `by` is least or greatest.
    Where several rows tie, it is the smallest of their values.
    """
    assert feature.by is not None
    assert feature.known is not None
    by, end = nw.col(here.table.columns[feature.by].id), f"{name}e"
    extreme = _END_OF[feature.made](by).over(*units)
    candidate = nw.when(by == nw.col(end)).then(value)
    least = _one_zero(nw.col(name).min(), kind(feature.known.dtype))
    return _Stages([[extreme.alias(end)], [candidate.alias(name)]], [least.alias(into)], [])


def _sum(engine: Backend, value: nw.Expr, feature: Feature, name: str) -> _Stages:
    """The sum of integers as column `name`, clipped to int64.

    For a mean the column is the sum as a float. For a mean of times it is already the mean in
    ticks, rounded down.
    """
    domain = feature.known
    assert domain is not None
    times = feature.averages and domain.kind in TIMES
    if is_wide(domain.dtype):
        value = value.clip(max(-(2**63), integer_range(domain.dtype)[0]), 2**63 - 1)
    value = value.cast(nw.Int64) * feature.ticks
    if small(domain) and not times:
        return _Stages(
            [[value.alias(name)]], [nw.col(name).sum().fill_null(0).cast(nw.Int64).alias(name)], []
        )
    high, low, limb_size = nw.col(f"{name}h"), nw.col(f"{name}l"), 2**_LIMB
    upper = engine.quotient(nw.col(name), limb_size)
    split = [upper.alias(f"{name}h"), (nw.col(name) - upper * limb_size).alias(f"{name}l")]
    sums = [
        part.sum().fill_null(0).cast(nw.Int64).alias(f"{name}{end}")
        for part, end in ((high, "h"), (low, "l"))
    ]
    over = engine.quotient(low, limb_size)
    carry = [(high + over).alias(f"{name}h"), (low - over * limb_size).alias(f"{name}l")]
    if times:  # long division of the two halves by the number of values; no step leaves int64
        many, part = _positive(nw.col(f"{name}c")), nw.col(f"{name}p")
        remainder = (high - part * many) * limb_size + low
        quotients = [
            [engine.quotient(high, many).alias(f"{name}p")],
            [(part * limb_size + engine.quotient(remainder, many)).alias(name)],
        ]
        return _Stages([[value.alias(name)], split], sums, [carry, *quotients])
    total = to_float(high) * float(limb_size) + to_float(low)
    if feature.averages:
        return _Stages([[value.alias(name)], split], sums, [carry, [total.alias(name)]])
    exact = nw.when(total.abs() < _INSIDE).then(high) * limb_size + low
    end = nw.when(total > 0).then(nw.lit(2**63 - 1)).otherwise(nw.lit(-(2**63)))
    return _Stages(
        [[value.alias(name)], split], sums, [carry, [nw.coalesce(exact, end).alias(name)]]
    )


def _positive(count: nw.Expr) -> nw.Expr:
    return nw.when(count > 0).then(count)


def _float_sum(engine: Backend, value: nw.Expr, domain: ColumnDomain, name: str) -> _Stages:
    """The sum of floats as column `name`: an exact sum of limbs, and
    one or two roundings at the end.
    """
    top, many = _FAR, 6
    if domain.bounds is not None:
        top, many = max(math.frexp(float(domain.bounds.magnitude))[1], -800), 3
    value = value.clip(-(2.0**top), 2.0**top)
    powers = [top - _LIMB * (i + 1) for i in range(many)]
    rows, remainder = [[value.alias(f"{name}r")]], nw.col(f"{name}r")
    limbs = [f"{name}{i}" for i in range(many)]
    for limb, power in zip(limbs, powers, strict=True):
        rows.append([engine.whole_part(remainder * 2.0**-power).alias(limb)])
        rows.append([(remainder - to_float(nw.col(limb)) * 2.0**power).alias(f"{name}r")])
    sums = [nw.col(limb).sum().fill_null(0).cast(nw.Int64).alias(limb) for limb in limbs]
    negative = f"{name}s"
    after = [*_carried(engine, limbs), [(nw.col(limbs[0]) < 0).alias(negative)]]
    after.append(
        [
            nw.when(nw.col(negative)).then(-1 * nw.col(x)).otherwise(nw.col(x)).alias(x)
            for x in limbs
        ]
    )
    after += _carried(engine, limbs)
    total = to_float(nw.col(limbs[-1])) * 2.0 ** powers[-1]
    for limb, power in zip(limbs[-2::-1], powers[-2::-1], strict=True):
        total = total + to_float(nw.col(limb)) * 2.0**power
    after.append([nw.when(nw.col(negative)).then(total * -1.0).otherwise(total).alias(name)])
    return _Stages(rows, sums, after)


def _carried(engine: Backend, limbs: list[str]) -> list[list[nw.Expr]]:
    """Carry between limbs, so that each limb but the first lies in [0, 2^32).
    The number they stand for stays.
    """
    limb_size, stages = 2**_LIMB, []
    for above, limb in zip(limbs[-2::-1], limbs[:0:-1], strict=True):
        carry = engine.quotient(nw.col(limb), limb_size)
        stages.append(
            [(nw.col(above) + carry).alias(above), (nw.col(limb) - carry * limb_size).alias(limb)]
        )
    return stages


def _finished(
    engine: Backend, stages: _Stages, feature: Feature, value: nw.Expr, into: str, name: str
) -> _Stages:
    """Make the feature of a sum: divide it by the number of values for a mean, and
    clip it to the feature's bounds.
    """
    total, times = nw.col(name), feature.domain.kind in TIMES
    if feature.averages:
        stages.sums.append((~value.is_null()).cast(nw.Int64).sum().fill_null(0).alias(f"{name}c"))
        total = total if times else to_float(total) / to_float(_positive(nw.col(f"{name}c")))
    bounds = feature.domain.bounds
    if bounds is not None:
        total = total.clip(bounds.lower, bounds.upper)
    if times:
        total = engine.from_ticks(total, feature.domain.dtype)
    stages.after.append([total.alias(into)])
    return stages
