"""Stages 2 and 3: one row per unit and group, and weights that make the limits true.

Neighbouring tables differ in the rows of one unit, so they differ in that unit's partials only: the weights of a unit
are computed from its own partials and from nothing else. What is claimed of them, in integers, for one unit:

- it keeps at most m groups: those whose hash has rank("max") at most m. Groups with equal hashes share the highest of
  their ranks, so a tie at the border drops all of them, and more than m are never kept, whatever the hash does;
- its row weight in a group is c = min(n, k)·2^f, and where Σ min(n, k) > K it is ⌊2^f · min(n, k)·K / Σ min(n, k)⌋, so
  c ≤ k·2^f and Σ c ≤ K·2^f, exactly, since rounding down never adds;
- a count is at most c, a sum lies in [c·min(L, 0), c·max(U, 0)]: it is computed in floats and then clipped to these
  integers, so the bound does not rest on the float.

Hence a group moves by at most k·max(|L|, |U|) and all of them together by K·max(|L|, |U|), in units of 2^-f steps. A
weighted partial is what cutting the unit's rows at random would give on average, so it has the same bound and no
variance; it does not depend on the order of rows, and is the same on every engine and at every retry.

Nothing wraps: limits are below 2^31, value bits plus limit bits are at most 42 (`plan.grid`), f = 20, so every product
of integers here is below 2^63; where one of more bits would be needed, the quotient is taken first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import narwhals as nw

from dpframe.engine.backends import Backend, Frame, backend_of
from dpframe.engine.stages.values import to_float
from dpframe.plan import FRACTION_BITS, Limits, Total, TotalKind
from dpframe.theory.formulas.sensitivity import Contribution

__all__ = ["Partial", "distinct", "enforced", "partial_bits", "partials", "sifted", "spread"]

_BLOCKS = 8


@dataclass(frozen=True)
class Partial:
    """A total's columns on the way: `rows` per row, `units` per unit and group."""

    total: Total
    rows: str
    units: str


def partials(frame: Frame, units: Sequence[str], groups: Sequence[str], columns: Sequence[Partial]) -> Frame:
    """Stage 2: per unit and group, the number of rows and the sum of each integer column."""
    sums = [
        nw.col(p.rows).sum().fill_null(0).cast(nw.Int64).alias(p.units)
        for p in columns
        if p.total.kind in (TotalKind.VALUES, TotalKind.SUM, TotalKind.SQUARE, TotalKind.LOG, TotalKind.UNIT_SUM)
    ]
    return frame.group_by(*units, *groups).agg(nw.len().cast(nw.Int64).alias("n"), *sums)


def enforced(
    frame: Frame,
    units: Sequence[str],
    groups: Sequence[str],
    totals: Iterable[Total],
    columns: Sequence[Partial],
    limits: Limits,
    cells: int | None,
    salt: int,
    *,
    alone: bool = False,
) -> Frame:
    """Stage 3: the same partials, with at most m groups of a unit, weighted down to k rows each and K in all.

    The row weight is "w", in units of 2^-f, where some total counts rows; alone: nothing is asked but the keys.
    """
    if limits.max_groups is not None and _chosen(groups, limits, cells):
        frame = _preferred(frame, units, groups, salt, alone)
        frame = backend_of(frame).lowest(frame, "h", units, limits.max_groups)
    if any(total.kind not in (TotalKind.UNITS, TotalKind.UNIT_SUM, TotalKind.DISTINCT) for total in totals):
        frame = frame.with_columns(nw.col("n").clip(0, _rows_per_group(limits)).alias("c"))
        frame = _row_weights(frame, units, limits)
    engine = backend_of(frame)
    return frame.with_columns(*(_partial(engine, p).alias(p.units) for p in columns)) if columns else frame


def _preferred(frame: Frame, units: Sequence[str], groups: Sequence[str], salt: int, alone: bool) -> Frame:
    """The hash "h", lowest in the groups that a unit keeps first.

    Each unit has an order of its own, so that a group loses as much as any other, and its numbers no more than they
    must. Where keys are asked for alone, there are no numbers, and a key is shown when enough units keep it: then all
    units of a block, one of eight, have one order, and meet in the groups that are first in it. Of units with 68 groups
    each that keep three, 671 show 10 keys so, and 4 with orders of their own; of units with five groups each, 31 and
    32 (`benchmarks/results/compare.md`). Either way it is a function of the unit's own rows and the salt.
    """
    engine = backend_of(frame)
    if not alone:
        return engine.keyed_hash(frame, [*units, *groups], salt, "h")
    frame = engine.keyed_hash(frame, units, salt, "o")
    block = engine.remainder(engine.remainder(nw.col("o"), _BLOCKS) + _BLOCKS, _BLOCKS)
    return engine.keyed_hash(frame.with_columns(block.alias("o")), ["o", *groups], salt, "h")


def _lowest(frame: Frame, hashed: Sequence[str], within: Sequence[str], most: int, salt: int) -> Frame:
    """At most `most` rows of each of the groups `within`: those with the lowest hashes, and none of a tie beyond."""
    frame = backend_of(frame).keyed_hash(frame, hashed, salt, "h")
    return backend_of(frame).lowest(frame, "h", within, most)


def _chosen(groups: Sequence[str], limits: Limits, cells: int | None) -> bool:
    """Whether a unit may have more groups than it keeps."""
    return limits.max_groups is not None and bool(groups) and (cells is None or limits.max_groups < cells)


def sifted(
    rows: Frame,
    units: Sequence[str],
    groups: Sequence[str],
    limits: Limits,
    cells: int | None,
    salt: int,
    *,
    alone: bool = False,
) -> Frame:
    """Stage 1, for speed: the rows of an ask, perhaps without some of groups that stage 3 will not keep.

    Every row must be of a group that is listed: one that is not would take another's place here, too.
    """
    if limits.max_groups is None or not _chosen(groups, limits, cells) or not backend_of(rows).sifts:
        return rows
    hashed = _preferred(rows, units, groups, salt, alone)
    return backend_of(rows).sifted(hashed, "h", units, limits.max_groups)


def distinct(pairs: Frame, units: Sequence[str], groups: Sequence[str], value: str, limits: Limits, salt: int) -> Frame:
    """At most k distinct values of a unit in a group, and K (group, value) pairs of it in all, chosen by hash.

    Without one unit, each value that only this unit brought is missing: at most k in a group and K in all.
    """
    frame = _lowest(pairs, [*units, *groups, value], [*units, *groups], _rows_per_group(limits), salt)
    if limits.max_rows is None:
        return frame
    return _lowest(frame, [*units, *groups, value], units, limits.max_rows, salt)


def spread(engine: Backend, count: str) -> nw.Expr:
    """⌊d · w / n⌋ for a part of d of a unit's n rows in a group; the parts together are at most the row weight w.

    With w = q·n + r it is d·q + ⌊d·r / n⌋, in integers: d·q <= w, and d·r < n² fits while a unit has fewer than 2^31
    rows in a group.
    """
    d, w, n = nw.col(count), nw.col("w"), nw.col("n")
    quotient = engine.quotient(w, n)
    return d * quotient + engine.quotient(d * (w - quotient * n), n)


def _rows_per_group(limits: Limits) -> int:
    given = [x for x in (limits.max_rows, limits.max_rows_per_group) if x is not None]
    return min(given)


def _row_weights(frame: Frame, units: Sequence[str], limits: Limits) -> Frame:
    """The row weight "w" with fraction bits: c·2^f, scaled by K / Σ c where a unit has more than K rows left."""
    one = 2**FRACTION_BITS
    whole = nw.col("c") * one
    groups, most = limits.max_groups or 1, limits.max_rows
    if most is None or Contribution(groups, _rows_per_group(limits), most).rows == groups * _rows_per_group(limits):
        return frame.with_columns(whole.alias("w"))
    engine = backend_of(frame)
    frame = frame.with_columns(nw.col("c").sum().over(*units).cast(nw.Int64).alias("a"))
    product = nw.col("c") * most  # both below 2^31
    quotient = engine.quotient(product, nw.col("a"))
    rest = product - quotient * nw.col("a")
    scaled = quotient * one + engine.quotient(rest * one, nw.col("a"))  # = ⌊2^f · c·K / a⌋
    return frame.with_columns(nw.when(nw.col("a") > most).then(scaled).otherwise(whole).alias("w"))


def _partial(engine: Backend, p: Partial) -> nw.Expr:
    """A total's partial from the unit's rows, sums and row weight; the bound holds by the last clip."""
    total, grid = p.total, p.total.grid
    if total.kind == TotalKind.UNITS:
        return nw.lit(1).cast(nw.Int64)
    if total.kind == TotalKind.ROWS:
        return nw.col("w") if total.fraction else nw.col("c")
    if total.kind == TotalKind.UNIT_SUM:
        return nw.col(p.units).clip(grid.lower, grid.upper)
    share = engine.whole_part(to_float(nw.col(p.units)) * to_float(nw.col("w")) / to_float(nw.col("n")))
    low = nw.col("w") * min(grid.lower, 0)
    high = nw.col("w") * max(grid.upper, 0)
    return nw.max_horizontal(nw.min_horizontal(share, high), low)


def partial_bits(total: Total) -> int:
    """Bits of the largest partial of a total: its change of one cell, or more where one row takes another's place."""
    change: int = math.ceil(total.sensitivity.exact_linf)
    row: int = total.grid.magnitude << total.fraction
    return max(change, row).bit_length()
