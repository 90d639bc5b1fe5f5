"""How many rows and groups units have, and which values: histograms from which `dp.Auto` chooses. Raw, not private.

Neighbouring tables differ in the rows of one unit. In each histogram a unit has `ONE` to give, and spreads no more than
that over its bins, whatever its rows are:

- sizes (rows in all, groups, most rows in one group): a size between two nodes gives each of them the part that it is
  nearer to the other, in whole parts of `ONE`, so the two add up to `ONE`. The histogram's mean is then the exact mean;
- keys and values: each group (each bin) has the part of the unit's rows that is in it, ⌊ONE · n / rows⌋, and the floors
  of parts of `ONE` add up to at most `ONE`. With `dp.Rows(k)` each row gives ⌊ONE / k⌋, and one person has k at most.

So when a unit joins or leaves, a histogram moves by at most `ONE` in L1, and by at most 2·`ONE` when one is exchanged.
Which bins there are follows from the ask alone, or from what was released before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import narwhals as nw
import numpy as np
import polars as pl

from dpframe.arrays import Integers
from dpframe.engine.backends import Backend, Frame, backend_of
from dpframe.engine.parts import Sums, added, planned
from dpframe.engine.stages import group_names, key_frame, keyed, listed_only, lower, to_float, unit_names
from dpframe.engine.totals import guarded
from dpframe.plan import TIMES, Column, Kind, Question, kind

__all__ = ["EXPONENTS", "NODES", "ONE", "key_profile", "magnitude_profile", "size_profile", "value_profile"]


ONE = 2**16  # what a unit gives to a histogram
# Sizes that stand for all others, four to an octave up to 32, then two; the last one for whatever is larger.
NODES: Integers = np.unique(np.rint(2 ** np.concatenate([np.arange(20) / 4, np.arange(10, 63) / 2])).astype(np.int64))
EXPONENTS = range(-100, 101)  # of the powers of two that tell values apart; what is smaller or larger counts as these
_HASHED = 256  # bins of groups that nobody listed, or that are too many
_LISTED = 4096


def size_profile(question: Question, sizes: Sequence[str], *, empty: bool = False) -> dict[str, Integers]:
    """Units by size, at the NODES: "rows" in all, "groups", "rows_per_group", the most in one. Errors: EngineError."""
    return guarded(lambda: _sizes(question, sizes, empty))


def key_profile(question: Question, *, empty: bool = False) -> Integers:
    """Units by group, in the order of the listed keys; by a hash of the key where they are not listed, or too many."""
    return guarded(lambda: _keys(question, empty))


def magnitude_profile(question: Question, column: Column, *, empty: bool = False) -> Integers:
    """Units by the sign and the power of two of a column's values, from the most negative bin to the most positive.

    Each sign has a bin for each of EXPONENTS, which holds [2^e, 2^(e+1)); zero has the one in the middle.
    """
    first, last = EXPONENTS[0], EXPONENTS[-1]

    def number(engine: Backend, value: nw.Expr) -> nw.Expr:
        size = value.abs().clip(2.0**first, 2.0**last)
        power = engine.floor(size.log(2)).clip(first, last).cast(nw.Int64) - first + 1
        signed_power = nw.when(value < 0).then(0 - power).otherwise(power)
        return nw.when(value.abs() > 0).then(signed_power).otherwise(nw.lit(0).cast(nw.Int64))

    wide = len(EXPONENTS)
    return guarded(lambda: _values(question, column, number, -wide, wide, empty))


def value_profile(question: Question, column: Column, edges: Sequence[float], *, empty: bool = False) -> Integers:
    """Units by the values of a column between growing edges; the first bin is below all of them, the last not."""

    def number(engine: Backend, value: nw.Expr) -> nw.Expr:
        def search(first: int, after: int) -> nw.Expr:  # by halving, so that hundreds of bins stay shallow
            if after == first:
                return nw.lit(first).cast(nw.Int64)
            middle = (first + after) // 2
            return nw.when(value < edges[middle]).then(search(first, middle)).otherwise(search(middle + 1, after))

        return search(0, len(edges))

    return guarded(lambda: _values(question, column, number, 0, len(edges), empty))


def _rows(question: Question, column: Column | None, empty: bool) -> Frame:
    live = {c.id for c in question.group_columns} | ({column.id} if column else set())
    return listed_only(question, keyed(question, lower(question.step, live, empty=empty)))


def _added(question: Question, build: Callable[[Question, bool], Sums], empty: bool) -> pl.DataFrame:
    (table,) = (
        planned(question, [build(question, True).frame])
        if empty
        else added(question, lambda part, _: [build(part, empty)])
    )
    return table


# Sizes


def _sizes(question: Question, sizes: Sequence[str], empty: bool) -> dict[str, Integers]:
    names = {"rows": "a", "groups": "b", "rows_per_group": "c"}

    def build(part: Question, empty: bool) -> Sums:
        units, groups = unit_names(part.table), group_names(part)
        partials = _rows(part, None, empty).group_by(*units, *groups).agg(nw.len().cast(nw.Int64).alias("n"))
        per_unit = partials.group_by(*units).agg(
            nw.col("n").sum().alias("a"), nw.len().cast(nw.Int64).alias("b"), nw.col("n").max().alias("c")
        )
        return Sums(per_unit.group_by("a", "b", "c").agg(nw.len().cast(nw.Int64).alias("u")), ("a", "b", "c"))

    table = _added(question, build, empty)
    units = table.get_column("u").to_numpy()
    return {size: _at_nodes(table.get_column(names[size]).to_numpy(), units) for size in sizes}


def _at_nodes(sizes: Integers, units: Integers) -> Integers:
    """A histogram in which each unit gives ONE to the two nodes around its size."""
    size = np.clip(sizes, NODES[0], NODES[-1])
    below = np.clip(np.searchsorted(NODES, size, side="right") - 1, 0, len(NODES) - 2)
    upper = ((size - NODES[below]) * ONE) // (NODES[below + 1] - NODES[below])
    counts = np.zeros(len(NODES), np.int64)
    np.add.at(counts, below, units * (ONE - upper))
    np.add.at(counts, below + 1, units * upper)
    return counts


# Keys and values


def _with_parts(frame: Frame, units: Sequence[str]) -> Frame:
    """Partials with "s" = ⌊ONE · n / rows of the unit⌋."""
    frame = frame.with_columns(nw.col("n").sum().over(*units).alias("a"))
    return frame.with_columns(backend_of(frame).quotient(nw.col("n") * ONE, nw.col("a")).alias("s"))


def _keys(question: Question, empty: bool) -> Integers:
    groups = group_names(question)

    def build(part: Question, empty: bool) -> Sums:
        units = unit_names(part.table)
        partials = _rows(part, None, empty).group_by(*units, *groups).agg(nw.len().cast(nw.Int64).alias("n"))
        shares = _with_parts(partials, units)
        return Sums(shares.group_by(*groups).agg(nw.col("s").sum()), tuple(groups))

    table = _added(question, build, empty)
    if question.cells is not None and question.cells <= _LISTED:
        key_table = key_frame(question).join(table, on=groups, how="left", maintain_order="left")
        return np.asarray(key_table.get_column("s").fill_null(0).to_numpy(), np.int64)
    counts = np.zeros(_HASHED, np.int64)
    if table.height:
        at = table.select(pl.struct(groups).hash(0) % _HASHED).to_series().to_numpy()
        np.add.at(counts, at, table.get_column("s").to_numpy())
    return counts


def _values(
    question: Question,
    column: Column,
    number: Callable[[Backend, nw.Expr], nw.Expr],
    first: int,
    last: int,
    empty: bool,
) -> Integers:
    """Units by the number of the bin of their values; missing values are in none."""

    def build(part: Question, empty: bool) -> Sums:
        units, rows = unit_names(part.table), _rows(part, column, empty)
        rows = rows.filter(~nw.col(column.id).is_null())
        value = nw.col(column.id)
        if kind(column.domain.dtype) in (Kind.BOOLEAN, *TIMES):
            value = value.cast(nw.Int64)
        bins = rows.with_columns(number(backend_of(rows), to_float(value)).alias("b"))
        bin_counts = bins.group_by(*units, "b").agg(nw.len().cast(nw.Int64).alias("n"))
        share = ONE // (part.table.declared or 1)
        bin_counts = (
            _with_parts(bin_counts, units) if units else bin_counts.with_columns((nw.col("n") * share).alias("s"))
        )
        return Sums(bin_counts.group_by("b").agg(nw.col("s").sum()), ("b",))

    table = _added(question, build, empty)
    counts = np.zeros(last - first + 1, np.int64)
    np.add.at(counts, table.get_column("b").to_numpy() - first, table.get_column("s").to_numpy())
    return counts
