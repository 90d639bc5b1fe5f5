"""Raw histograms from which `dp.Auto` chooses:
units by number of rows, by number of groups, by key and by value.

The histograms are not private. Neighbouring tables differ in the rows of one unit. In each
histogram a unit has the weight `ONE`, and spreads at most that weight over the bins, whatever its
rows are:

- sizes (rows in all, groups, most rows in one group): a size lies between two nodes and splits its
  weight between them. The nearer node gets the larger share: a size of 50 between the nodes 45 and
  64 gives 14/19 of its weight to 45 and 5/19 to 64. The shares are integers that add up to `ONE`,
  so the histogram has the mean of the sizes, up to rounding;
- keys and values: a unit with n of its rows in a bin gives that bin ⌊ONE · n / rows⌋. These floors
  add up to at most `ONE`. With `dp.Rows(k)` each row gives ⌊ONE / k⌋, and one person has at most k
  rows.

So a histogram changes by at most `ONE` in L1 when a unit joins or leaves, and by at most 2·`ONE`
when one unit is exchanged for another. The bins follow from the question alone, or from earlier
releases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import narwhals as nw
import numpy as np
import polars as pl

from dpframe.arrays import Integers
from dpframe.engine.backends import Frame, Selection, backend_of
from dpframe.engine.parts import Sums, added, planned
from dpframe.engine.stages import (
    group_names,
    key_frame,
    keyed,
    listed_only,
    lower,
    to_float,
    unit_names,
)
from dpframe.engine.totals import guarded
from dpframe.plan import TIMES, Column, Kind, Question

ONE = 2**16  # the weight of a unit in a histogram
# Nodes of the histograms of sizes: four in each octave up to 32, then two. The last node also
# stands for larger sizes.
NODES: Integers = np.unique(
    np.rint(2 ** np.concatenate([np.arange(20) / 4, np.arange(10, 63) / 2])).astype(np.int64)
)
# e of the bins [2^e, 2^(e+1)) of magnitudes; the outermost bins also hold values beyond
EXPONENTS = range(-100, 101)
_ANY = 2**62  # no unit has more rows than this
_HASHED = 256  # number of bins for keys that are not listed, or of which too many are listed
_LISTED = 4096  # largest number of listed keys that have a bin each


def size_profile(
    question: Question, names: Sequence[str], *, empty: bool = False
) -> dict[str, Integers]:
    """Histograms of units by size and by key, from one reading of the rows.

    Input:  names of histograms, of sizes: "rows" (rows of a unit in all), "groups" (groups of a
            unit), "rows_per_group" (the unit's rows in the group where it has most); or "keys"
    Output: of sizes, one bin for each of NODES. Of keys, a bin for each listed key, in their order;
            or bins of a hash of the key, where keys are not listed or where more than 4,096 are
    Errors: EngineError
    """
    return guarded(lambda: _people(question, names, empty))


def key_profile(question: Question, *, empty: bool = False) -> Integers:
    """Histogram of units by key alone; see `size_profile`."""
    return size_profile(question, ["keys"], empty=empty)["keys"]


def magnitude_profile(question: Question, column: Column, *, empty: bool = False) -> Integers:
    """Histogram of units by the sign and the power of two of a column's values.

    The bins go from the most negative values to the most positive. Each sign has one bin for each e
    of EXPONENTS, which holds the magnitudes in [2^e, 2^(e+1)). The bin in the middle holds zero.
    """
    first, last = EXPONENTS[0], EXPONENTS[-1]

    def numbered(rows: Frame) -> Frame:
        value, engine = nw.col("t"), backend_of(rows)
        size = value.abs().clip(2.0**first, 2.0**last)
        power = engine.floor(size.log(2)).clip(first, last).cast(nw.Int64) - first + 1
        signed_power = nw.when(value < 0).then(0 - power).otherwise(power)
        return rows.with_columns(
            nw.when(value.abs() > 0)
            .then(signed_power)
            .otherwise(nw.lit(0).cast(nw.Int64))
            .alias("b")
        )

    wide = len(EXPONENTS)
    return guarded(lambda: _values(question, column, numbered, -wide, wide, empty))


def value_profile(
    question: Question, column: Column, edges: Sequence[float], *, empty: bool = False
) -> Integers:
    """Histogram of units by the values of a column, between growing edges.

    The first bin holds the values below the first edge, the last bin those from the last edge on.
    """
    floats, numbers = [float(edge) for edge in edges], range(len(edges) + 1)

    def numbered(rows: Frame) -> Frame:
        rows = backend_of(rows).labelled(rows, "t", floats, False, numbers, "b")
        return rows.with_columns(nw.col("b").cast(nw.Int64))

    return guarded(lambda: _values(question, column, numbered, 0, len(edges), empty))


def _rows(question: Question, column: Column | None, empty: bool) -> Frame:
    live = {c.id for c in question.group_columns} | ({column.id} if column else set())
    return listed_only(question, keyed(question, lower(question.step, live, empty=empty)))


def _added(
    question: Question, build: Callable[[Question, bool], Sums], empty: bool
) -> pl.DataFrame:
    (table,) = (
        planned(question, [build(question, True).frame])
        if empty
        else added(question, lambda part, _: [build(part, empty)])
    )
    return table


# Sizes and keys

_SIZES = {"rows": "a", "groups": "b", "rows_per_group": "c"}


def _people(question: Question, names: Sequence[str], empty: bool) -> dict[str, Integers]:
    groups, sizes = group_names(question), [name for name in names if name in _SIZES]
    keys = "keys" in names

    def build(part: Question, _: bool) -> list[Sums]:
        units, partials = unit_names(part.table), _partials(part, empty)
        partials = backend_of(partials).shared(partials) if sizes and keys else partials
        per_unit = partials.group_by(*units).agg(
            nw.col("n").sum().alias("a"),
            nw.len().cast(nw.Int64).alias("b"),
            nw.col("n").max().alias("c"),
        )
        by_size = per_unit.group_by("a", "b", "c").agg(nw.len().cast(nw.Int64).alias("u"))
        by_key = (
            _with_parts(partials, units).group_by(*groups).agg(nw.col("s").sum()) if keys else None
        )
        sums = [Sums(by_size, ("a", "b", "c"))] if sizes else []
        return sums if by_key is None else [*sums, Sums(by_key, tuple(groups))]

    tables = (
        planned(question, [x.frame for x in build(question, True)])
        if empty
        else added(question, build)
    )
    histograms = {}
    if sizes:
        units = tables[0].get_column("u").to_numpy()
        histograms = {
            size: _at_nodes(tables[0].get_column(_SIZES[size]).to_numpy(), units) for size in sizes
        }
    return histograms if not keys else histograms | {"keys": _by_key(question, tables[-1])}


def _partials(question: Question, empty: bool) -> Frame:
    """One row for each unit and group, with its number of rows "n"."""
    units, groups, rows = (
        unit_names(question.table),
        group_names(question),
        _rows(question, None, empty),
    )
    engine = backend_of(rows)
    if not engine.keeps_by_sorting or not groups:
        return rows.group_by(*units, *groups).agg(nw.len().cast(nw.Int64).alias("n"))
    kept = Selection(units, groups, "h", None, _ANY, {})
    return engine.kept_partials(engine.keyed_hash(rows, groups, 0, "h"), kept)


def _at_nodes(sizes: Integers, units: Integers) -> Integers:
    """A histogram in which each unit splits the weight ONE between
    the two nodes around its size.
    """
    size = np.clip(sizes, NODES[0], NODES[-1])
    below = np.clip(np.searchsorted(NODES, size, side="right") - 1, 0, len(NODES) - 2)
    upper = ((size - NODES[below]) * ONE) // (NODES[below + 1] - NODES[below])
    counts = np.zeros(len(NODES), np.int64)
    np.add.at(counts, below, units * (ONE - upper))
    np.add.at(counts, below + 1, units * upper)
    return counts


def _with_parts(frame: Frame, units: Sequence[str]) -> Frame:
    """Partials, each with the share "s" = ⌊ONE · n / a⌋ for the unit's n
    rows in it and its a rows in all.
    """
    if "a" not in frame.collect_schema().names():
        frame = frame.with_columns(nw.col("n").sum().over(*units).alias("a"))
    return frame.with_columns(backend_of(frame).quotient(nw.col("n") * ONE, nw.col("a")).alias("s"))


def _by_key(question: Question, table: pl.DataFrame) -> Integers:
    """The histogram of keys, from the sum "s" of each group that occurs."""
    groups = group_names(question)
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
    numbered: Callable[[Frame], Frame],
    first: int,
    last: int,
    empty: bool,
) -> Integers:
    """Histogram of units by the bins of their values, numbered from `first` to `last`.
    A missing value has no bin.

    Input:  numbered: adds the number "b" of the bin of a value "t" to rows
    """

    def build(part: Question, empty: bool) -> Sums:
        units, rows = unit_names(part.table), _rows(part, column, empty)
        rows = rows.filter(~nw.col(column.id).is_null())
        value = nw.col(column.id)
        if column.kind in (Kind.BOOLEAN, *TIMES):
            value = value.cast(nw.Int64)
        bins = numbered(rows.with_columns(to_float(value).alias("t")))
        bin_counts = bins.group_by(*units, "b").agg(nw.len().cast(nw.Int64).alias("n"))
        share = ONE // (part.table.declared or 1)
        bin_counts = (
            _with_parts(bin_counts, units)
            if units
            else bin_counts.with_columns((nw.col("n") * share).alias("s"))
        )
        return Sums(bin_counts.group_by("b").agg(nw.col("s").sum()), ("b",))

    table = _added(question, build, empty)
    counts = np.zeros(last - first + 1, np.int64)
    np.add.at(counts, table.get_column("b").to_numpy() - first, table.get_column("s").to_numpy())
    return counts
