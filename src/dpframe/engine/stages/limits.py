"""Stages 2 and 3: one row per unit and group, and weights that enforce the
limits on each unit's contribution.

A row per unit and group is called a partial. The weights of a unit are computed from its own
partials alone. Neighbouring tables differ in the rows of one unit, so they differ in the partials
and weights of that unit alone. Let a unit have n rows in a group, and let the limits be m groups, k
rows in a group and K rows in all (max_groups, max_rows_per_group, max_rows). Then for one unit, in
integers:

- It keeps at most m groups: those whose hash has rank("max") at most m. Groups with equal hashes
  share the highest of their ranks. So a tie at the border drops all groups of the tie, and a unit
  never keeps more than m, whatever the hash function is.
- Its row weight c in a group is min(n, k)·2^f. Where Σ min(n, k) > K, it is ⌊2^f · min(n, k)·K / Σ
  min(n, k)⌋. So c ≤ k·2^f and Σ c ≤ K·2^f, exactly, since rounding down never adds.
- Its count in a group is at most c, and its sum lies in [c·min(L, 0), c·max(U, 0)] for values in
  [L, U]. The sum is computed in floats and then clipped to these integers, so the bound does not
  rest on the float.

Hence the total of one group changes by at most k·max(|L|, |U|), and the totals of all groups
together by at most K·max(|L|, |U|), in units of 2^-f steps. A weighted partial is the expectation
of a partial of k rows that are chosen at random. So it obeys the bound of such a choice and has no
variance. It does not depend on the order of rows, on the engine or on the run.

No integer wraps: limits are below 2^31, value bits plus limit bits are at most 42 (`plan.grid`),
and f = 20. So every product of integers here is below 2^63. Where a product would need more bits,
the quotient is taken first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import narwhals as nw
import polars as pl

from dpframe.engine.backends import Backend, Frame, Selection, backend_of
from dpframe.engine.stages.coerced import to_float
from dpframe.plan import FRACTION_BITS, Limits, Product, Total, TotalKind, UnitMoment
from dpframe.theory.formulas.sensitivity import Contribution

# the role of a group in a total of products between groups; 0 for the others
AT_PLACE, BEFORE_PLACE = 2, 1
_BLOCKS = 8


@dataclass(frozen=True)
class Partial:
    """A total and the names of its columns: `rows` in the rows, `units` in the partials."""

    total: Total
    rows: str
    units: str


def partials(
    frame: Frame, units: Sequence[str], groups: Sequence[str], columns: Sequence[Partial]
) -> Frame:
    """Stage 2: for each unit and group, the number of rows "n" and
    the sum of each integer column.
    """
    sums = {p.units: p.rows for p in columns if p.total.sums_rows}
    return backend_of(frame).added(frame, [*units, *groups], sums, "n")


class Choice(NamedTuple):
    """The groups that a unit keeps: as many as its limits say, those with the lowest hashes."""

    units: Sequence[str]
    groups: Sequence[str]
    limits: Limits
    cells: int | None  # the number of all groups; None where they are found in the data
    salt: int
    alone: bool  # whether the question asks for keys and for no statistic

    @property
    def most(self) -> int | None:
        """The most groups that a unit keeps; None where it keeps all that it has."""
        most = self.limits.max_groups
        return (
            None
            if most is None or not self.groups or (self.cells is not None and most >= self.cells)
            else most
        )


def kept_partials(frame: Frame, choice: Choice, columns: Sequence[Partial]) -> Frame:
    """Stage 2 and the choice of groups of stage 3 in one step, on engines that keep by sorting.

    Input:  rows, all of listed groups; choice: one that limits groups
    Output: the partials that `enforced` gets as `chosen`
    """
    units, groups, limits = choice.units, choice.groups, choice.limits
    assert choice.most is not None
    sums = {p.units: p.rows for p in columns if p.total.sums_rows}
    # then nothing weighs rows
    cap = _rows_per_group(limits) if limits.max_rows or limits.max_rows_per_group else 1
    kept = Selection(units, groups, "h", choice.most, cap, sums)
    return backend_of(frame).kept_partials(_preferred(frame, choice), kept)


def enforced(
    frame: Frame,
    choice: Choice,
    totals: Iterable[Total],
    columns: Sequence[Partial],
    *,
    chosen: bool = False,
    weights: pl.DataFrame | None = None,
) -> Frame:
    """Stage 3: partials of at most m groups for each unit, weighted down to k
    rows in a group and K rows in all.

    Input:  chosen: whether these are the partials of `kept_partials`; weights: see `multiplied`
    Output: the partials, with the row weight "w" in units of 2^-f where some total needs it
    """
    units = choice.units
    if choice.most is not None and not chosen:
        frame = backend_of(frame).lowest(_preferred(frame, choice), "h", units, choice.most)
    if any(total.weighs_rows for total in totals):
        frame = frame.with_columns(nw.col("n").clip(0, _rows_per_group(choice.limits)).alias("c"))
        frame = _row_weights(frame, units, choice.limits, summed=chosen)
    engine = backend_of(frame)
    plain = [p for p in columns if p.total.moment is None]
    frame = (
        frame.with_columns(*(_partial(engine, p).alias(p.units) for p in plain)) if plain else frame
    )
    return multiplied(
        frame, {p.total.key: p.units for p in columns}, columns, choice.groups, weights, units
    )


def weighted_rows(rows: Frame, choice: Choice) -> Frame:
    """Stages 2 and 3 on the rows themselves, on engines that have `kept_rows`.

    Input:  rows, all of listed groups
    Output: the rows of the groups that units keep, with the number "n" of the unit's rows in the
            group, and the row weight "w" of all n
    """
    engine, most = backend_of(rows), choice.most
    rows = engine.gathered(rows, choice.units)  # before a hash is there, which would be moved too
    hashed = rows if most is None else _preferred(rows, choice)
    cap = _rows_per_group(choice.limits)
    kept = engine.kept_rows(hashed, Selection(choice.units, choice.groups, "h", most, cap, {}))
    return _row_weights(kept, choice.units, choice.limits, summed=True)


def _preferred(frame: Frame, choice: Choice) -> Frame:
    """Partials with a hash "h". A unit keeps the groups with the lowest hashes.

    Usually each unit has a random order of groups of its own, so that all groups lose the same
    share of their units. Where the question asks for keys alone, no statistic can be biased, and a
    key is shown when enough units keep it. Then units share their orders: there are eight blocks of
    units, and the units of a block have one order. So they keep the same groups, and more keys
    reach the threshold. With 671 units of 68 groups each, of which three are kept, shared orders
    show 10 keys and separate orders 4; with units of five groups each, 31 and 32
    (`benchmarks/results/compare.md`). In both cases the hash is a function of the unit's own rows
    and the salt.
    """
    engine, (units, groups, _, _, salt, alone) = backend_of(frame), choice
    if not alone:
        return engine.keyed_hash(frame, [*units, *groups], salt, "h")
    frame = engine.keyed_hash(frame, units, salt, "o")
    block = engine.remainder(engine.remainder(nw.col("o"), _BLOCKS) + _BLOCKS, _BLOCKS)
    return engine.keyed_hash(frame.with_columns(block.alias("o")), ["o", *groups], salt, "h")


def _lowest(
    frame: Frame, columns: Sequence[str], within: Sequence[str], most: int, salt: int
) -> Frame:
    """At most `most` rows for each combination of the columns
    `within`: those with the lowest hashes.

    Of rows that tie at the border none is kept.
    """
    frame = backend_of(frame).keyed_hash(frame, columns, salt, "h")
    return backend_of(frame).lowest(frame, "h", within, most)


def sifted(rows: Frame, choice: Choice) -> Frame:
    """Stage 1, for speed: remove some of the rows of groups that stage 3 will not keep.

    Every row must belong to a listed group. A group that is not listed would take the place of a
    listed one.
    """
    if choice.most is None or not backend_of(rows).sifts:
        return rows
    names = rows.collect_schema().names()
    return (
        backend_of(rows)
        .sifted(_preferred(rows, choice), "h", choice.units, choice.most)
        .select(*names)
    )


def distinct(pairs: Frame, choice: Choice, value: str) -> Frame:
    """Pairs of group and value: for each unit at most k values in a group and
    K pairs in all, chosen by hash.

    When a unit leaves, the values that no other unit has disappear: at most k in a group and K in
    all.
    """
    units, groups, limits, salt = choice.units, choice.groups, choice.limits, choice.salt
    frame = _lowest(
        pairs, [*units, *groups, value], [*units, *groups], _rows_per_group(limits), salt
    )
    if limits.max_rows is None:
        return frame
    return _lowest(frame, [*units, *groups, value], units, limits.max_rows, salt)


def _rows_per_group(limits: Limits) -> int:
    limits_in_rows = [x for x in (limits.max_rows, limits.max_rows_per_group) if x is not None]
    return min(limits_in_rows)


def _row_weights(frame: Frame, units: Sequence[str], limits: Limits, *, summed: bool) -> Frame:
    """Add the row weight "w" = c·2^f for c = min(n, k), scaled by K / Σ c
    where a unit's Σ c is more than K.

    Input:  summed: whether the column "a" has Σ c already
    """
    scale = 2**FRACTION_BITS
    whole = nw.col("c") * scale
    groups, most, cap = limits.max_groups or 1, limits.max_rows, _rows_per_group(limits)
    if most is None or Contribution(groups, cap, most).rows == groups * cap:
        return frame.with_columns(whole.alias("w"))
    engine = backend_of(frame)
    frame = (
        frame
        if summed
        else frame.with_columns(nw.col("c").sum().over(*units).cast(nw.Int64).alias("a"))
    )
    product = nw.col("c") * most  # both factors are below 2^31
    if cap * most < 2 ** (63 - FRACTION_BITS):
        reduced_weight = engine.quotient(product * scale, nw.col("a"))
    else:
        quotient = engine.quotient(product, nw.col("a"))
        remainder = product - quotient * nw.col("a")
        # = ⌊2^f · c·K / a⌋, as above
        reduced_weight = quotient * scale + engine.quotient(remainder * scale, nw.col("a"))
    return frame.with_columns(
        nw.when(nw.col("a") > most).then(reduced_weight).otherwise(whole).alias("w")
    )


def _partial(engine: Backend, p: Partial) -> nw.Expr:
    """The weighted partial of a total. The last operation clips it, so the bound
    holds whatever was computed before.
    """
    total, grid = p.total, p.total.grid
    if total.kind in (TotalKind.UNITS, TotalKind.KEY_WEIGHTS):
        return nw.lit(1).cast(nw.Int64)
    if total.kind == TotalKind.ROWS:
        return nw.col("w") if total.fraction else nw.col("c")
    if total.kind == TotalKind.UNIT_SUM:
        return nw.col(p.units).clip(grid.lower, grid.upper)
    share = engine.whole_part(
        to_float(nw.col(p.units)) * to_float(nw.col("w")) / to_float(nw.col("n"))
    )
    low = nw.col("w") * min(grid.lower, 0)
    high = nw.col("w") * max(grid.upper, 0)
    return nw.max_horizontal(nw.min_horizontal(share, high), low)


def multiplied(
    frame: Frame,
    names: Mapping[tuple[object, ...], str],
    columns: Sequence[Partial],
    groups: Sequence[str],
    weights: pl.DataFrame | None,
    units: Sequence[str] = (),
) -> Frame:
    """Add the products of a unit's partials, for second moments, under the names of their totals.

    Input:  partials, one row per unit and group; names: the column of each total, by its key;
            weights: for influences,
            a public table with the groups and the weights of each group, see `weight_name`; without
            it influences are
            0. Where there are influences, partials of groups that it does not have are left out
    Bound:  no integer wraps: the factors are below 2^25 when they are multiplied. Each product is
            clipped last, to the range that its sensitivity was computed from, so the bound does not
            rest on the arithmetic before it
    """
    engine = backend_of(frame)
    moments = [(p.total.moment, names[p.total.key]) for p in columns if p.total.moment is not None]
    adaptive = (Product.INFLUENCE, Product.BETWEEN)
    products = [(m, name) for m, name in moments if m.product not in adaptive]
    if products:
        frame = frame.with_columns(
            *(_product(engine, m, names).alias(name) for m, name in products)
        )
    influences = [(m, name) for m, name in moments if m.product in adaptive]
    if weights is None or not influences:
        zeros = [nw.lit(0).cast(nw.Int64).alias(name) for _, name in influences]
        frame = frame.with_columns(*zeros) if zeros else frame
        return engine.settled(frame) if moments else frame
    if groups:
        frame = frame.join(engine.bring(frame, weights), on=list(groups), how="inner")
    frame = _with_influences(frame, influences, names, {} if groups else weights.row(0, named=True))
    squares = [(m, name) for m, name in influences if m.product is Product.INFLUENCE]
    frame = _squared(frame, squares, names) if squares else frame
    between = [(m, name) for m, name in influences if m.product is Product.BETWEEN]
    frame = _between(frame, between, units) if between else frame
    return engine.settled(frame)


def weight_name(name: str, part: int) -> str:
    """The column with the weights of one part of an influence;
    name: that of the total's partials.
    """
    return f"{name}w{part}"


def _with_influences(
    frame: Frame,
    influences: Sequence[tuple[UnitMoment, str]],
    names: Mapping[tuple[object, ...], str],
    alone: Mapping[str, int],
) -> Frame:
    """The influence of each unit: a weighted sum of its partials, clipped;
    see `dpframe.plan.UnitMoment`.

    Input:  alone: the weights where there is one group; else they are columns of the frame
    Bound:  no integer wraps: partials are at most 2^24 after the lift, weights at most 2^30, and
            there are fewer than 2^8 of them. Each step is a column of its own, since engines of SQL
            would write out an expression each time that it is used
    """
    engine = backend_of(frame)
    lifted: dict[tuple[tuple[object, ...], int], str] = {}
    for moment, _ in influences:
        for part in zip(moment.parts, moment.lifts, strict=True):
            lifted.setdefault(part, f"lifted{len(lifted)}")
    columns = []
    for (key, lift), name in lifted.items():
        part_of_unit = nw.col(names[key]).cast(nw.Int64)
        moved = part_of_unit * 2**lift if lift >= 0 else engine.quotient(part_of_unit, 2**-lift)
        columns.append(moved.alias(name))
    frame = frame.with_columns(*columns)
    frame = frame.with_columns(
        *(_within(nw.col(name), -(2**24), 2**24).alias(name) for name in lifted.values())
    )
    sums = []
    for moment, name in influences:
        value = nw.lit(0).cast(nw.Int64)
        for i, part in enumerate(zip(moment.parts, moment.lifts, strict=True)):
            column = weight_name(name, i)
            weight = nw.lit(alone[column]).cast(nw.Int64) if alone else nw.col(column)
            value = value + nw.col(lifted[part]) * weight
        sums.append(value.alias(name))
    ends = [(nw.col(name), m.most, name) for m, name in influences]
    frame = frame.with_columns(*sums)
    frame = frame.with_columns(
        *(engine.quotient(nw.col(name), 2**24).alias(name) for _, name in influences)
    )
    return frame.with_columns(
        *(_within(column, -most, most).alias(name) for column, most, name in ends)
    )


def _squared(
    frame: Frame,
    influences: Sequence[tuple[UnitMoment, str]],
    names: Mapping[tuple[object, ...], str],
) -> Frame:
    """The squares of influences, less a multiple of the rows where
    there are counts; clipped last.
    """
    engine = backend_of(frame)
    counted = [
        (m, name, nw.col(names[m.counts]).cast(nw.Int64))
        for m, name in influences
        if m.counts is not None
    ]
    rows = [
        _within(engine.quotient(count, 2**m.rows_shift), 0, m.most_counted).alias(f"{name}n")
        for m, name, count in counted
    ]
    frame = frame.with_columns(*rows) if rows else frame
    squares = []
    for moment, name in influences:
        square = nw.col(name) * nw.col(name)
        squares.append(
            (square if moment.counts is None else square - nw.col(f"{name}n") * moment.slope).alias(
                name
            )
        )
    frame = frame.with_columns(*squares)
    ends = [
        _within(nw.col(name), 0, m.most**2).alias(name)
        for m, name in influences
        if m.counts is None
    ]
    for moment, name, _ in counted:
        most = nw.col(f"{name}n") * moment.cap
        least = nw.col(f"{name}n") * -moment.cap
        ends.append(nw.max_horizontal(nw.min_horizontal(nw.col(name), most), least).alias(name))
    return frame.with_columns(*ends)


def _between(
    frame: Frame, influences: Sequence[tuple[UnitMoment, str]], units: Sequence[str]
) -> Frame:
    """In the groups before a place, a unit's influence there times its influence on
    the group at the place; else 0.

    Bound:  a unit has at most one row in each of the groups that it keeps. So at most `others` of
            its rows are before the place, and each product is clipped last to [-cap, cap]. A unit
            without a row at the place adds 0. No integer wraps: both factors are clipped to 2^16
            before they are multiplied
    """
    roles = {name: nw.col(weight_name(name, len(m.parts))) for m, name in influences}
    zero = nw.lit(0).cast(nw.Int64)
    here = [
        nw.when(roles[name] == AT_PLACE).then(nw.col(name)).otherwise(zero).alias(f"{name}at")
        for _, name in influences
    ]
    frame = frame.with_columns(*here)
    sums = [
        nw.col(f"{name}at").sum().over(*units).cast(nw.Int64).alias(f"{name}at")
        for _, name in influences
    ]
    frame = frame.with_columns(*sums)
    ends = [
        _within(nw.col(f"{name}at"), -m.most, m.most).alias(f"{name}at") for m, name in influences
    ]
    frame = frame.with_columns(*ends)
    products = [
        nw.when(roles[name] == BEFORE_PLACE)
        .then(nw.col(name) * nw.col(f"{name}at"))
        .otherwise(zero)
        .alias(name)
        for _, name in influences
    ]
    frame = frame.with_columns(*products)
    return frame.with_columns(
        *(_within(nw.col(name), -m.cap, m.cap).alias(name) for m, name in influences)
    )


def _product(
    engine: Backend, moment: UnitMoment, names: Mapping[tuple[object, ...], str]
) -> nw.Expr:
    """One product of a unit's sum and rows; see `dpframe.plan.UnitMoment`."""
    if moment.counts is None:
        rows = None
    else:
        exact_rows = nw.col(names[moment.counts]).cast(nw.Int64)
        rows = _within(engine.quotient(exact_rows, 2**moment.rows_shift), 0, moment.most_rows)
    if moment.product is Product.ROW_SPREAD:
        assert rows is not None
        return _within(rows * (moment.most_rows - rows), 0, moment.most_rows**2 // 4)
    assert moment.sums is not None
    sums = nw.col(names[moment.sums]).cast(nw.Int64)
    twice = (engine.quotient(sums, 2**moment.pre) if moment.pre else sums) * 2
    if moment.tilt:
        twice = twice - exact_rows * (moment.tilt * 2**moment.lift)
    value = _within(engine.quotient(twice, 2**moment.shift), -moment.most, moment.most)
    if moment.product is Product.SPREAD:
        value = _within(value, 0, moment.most)
        return _within(value * (moment.most - value), 0, moment.most**2 // 4)
    if rows is None:
        return _within(value * value, 0, moment.most**2)
    if moment.product is Product.SQUARE:
        product = value * value - rows * moment.slope
    else:
        largest = -(-moment.most * moment.most_rows // 4)
        product = _within(value * (moment.most_rows - rows), -largest, largest)
    return nw.max_horizontal(nw.min_horizontal(product, rows * moment.cap), rows * -moment.cap)


def _within(value: nw.Expr, low: int, high: int) -> nw.Expr:
    """A value that is never null, clipped.

    `clip` names its operand twice in SQL, so the text of products of products would double at each
    step.
    """
    return nw.max_horizontal(nw.min_horizontal(value, nw.lit(high)), nw.lit(low))


def partial_bits(total: Total) -> int:
    """Number of bits of the largest partial of a total.

    A partial is at most the change of one cell of the total, or the value of one row, whichever is
    larger.
    """
    change: int = math.ceil(total.sensitivity.exact_linf)
    row: int = total.grid.magnitude << total.fraction
    return max(change, row).bit_length()
