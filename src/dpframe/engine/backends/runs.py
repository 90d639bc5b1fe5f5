"""Partials of the groups that a unit keeps, from one sort of its rows.

The rule is that of `lowest`: a unit keeps the groups whose hash has rank("max") at most m. In
steps, that is a first choice of rows, a grouping by unit and group, and the ranks of the partials.
Here one sort does the work of all three. Each row becomes a 64-bit word: the number of its unit, as
many upper bits of its group's hash as there is room for, and the number of the row. After sorting,
the rows of a unit are adjacent, with the lowest hash first, and the rows of a group are adjacent
too. Rows with equal unit and equal bits of the hash are called a run.

Why the partials are those of the rule, whatever the hash function is:

- Let the first m runs of a unit have one group each. Then these m groups have the m lowest hashes,
  which differ, so their ranks are 1 to m. Every group of a later run has at least m lower hashes,
  so its rank is above m.
- A run with two groups among the first m is seen, because the key columns of neighbouring rows are
  compared. Then all rows of this unit go through the steps instead. A unit's partials follow from
  its own rows alone, so it does not matter that other units take the other way.

The sums of a run are sums of Int64, as in the steps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.arrays import Booleans, Integers, Words
from dpframe.engine.backends.base import Selection
from dpframe.engine.backends.lowest import Units, at_hand, changes, lowest, sifted, words_of

Rows = NDArray[np.uint32]  # numbers of rows, or of units
Counts = Integers

_SHORT = 2**16  # words that one thread sorts in less time than several
_LEAST_BITS = 12  # bits of the hash below which runs with two groups would be frequent


def kept_partials(table: pl.DataFrame, kept: Selection) -> pl.DataFrame:
    """One row for each unit and group that it keeps.

    Input:  rows with the hash of their group
    Output: the units and groups, the number of rows "n", the unit's sum "a" of min(n, cap) over the
            groups that it keeps, and the sums
    """
    groups = list(kept.groups)
    numbers = at_hand(table, kept.units)
    words = None if numbers is None else _sorted(numbers, words_of(table, kept.hashes))
    if numbers is None or words is None:
        return _in_steps(table, kept)
    number, size = numbers
    rows, lengths, unit = _first_runs(*words, kept.most)
    del words
    chosen = table.select(*groups, *kept.sums.values())[pl.Series(rows)]
    several, others = _with_several(chosen.select(groups).get_columns(), lengths), []
    if several.any():
        again = np.zeros(size, bool)
        again[number[rows[several]]] = True
        others = [_in_steps(table.filter(pl.Series(again[number])), kept)]
        stay = ~again[unit]
        chosen = chosen.filter(pl.Series(np.repeat(stay, lengths)))
        lengths, unit = lengths[stay], unit[stay]
    starts = _starts(lengths)
    totals = [
        pl.Series(
            into, np.add.reduceat(chosen.get_column(column).to_numpy(), starts), dtype=pl.Int64
        )
        for into, column in kept.sums.items()
    ]
    counts = [
        pl.Series("n", lengths, dtype=pl.Int64),
        pl.Series("a", _in_all(unit, lengths, kept.cap)),
    ]
    keys = chosen.select(groups)[pl.Series(starts)]
    partials = pl.DataFrame(
        [_identifiers(table.get_column(kept.units[0]), unit), *keys.get_columns(), *counts, *totals]
    )
    return pl.concat([partials, *others]) if others else partials


def _identifiers(ids: pl.Series, number: Rows) -> pl.Series:
    """The identifiers of units from their numbers, which count from
    the smallest one; see `at_hand`.
    """
    wide = pl.UInt64 if ids.dtype == pl.UInt64 else pl.Int64
    return (pl.Series(ids.name, number).cast(wide) + ids.min()).cast(ids.dtype)


def _starts(lengths: Counts) -> Rows:
    """The place at which each run begins."""
    return (np.cumsum(lengths) - lengths).astype(np.uint32)


def _in_all(unit: Rows, lengths: Counts, cap: int) -> Counts:
    """For each partial, the sum of min(n, cap) over the partials of
    its unit, which are neighbours.
    """
    first = np.flatnonzero(changes(unit))
    sums = np.add.reduceat(np.minimum(lengths, cap), first) if len(first) else np.zeros(0, np.int64)
    return np.repeat(sums, np.diff(first, append=len(unit)))


def _in_steps(table: pl.DataFrame, kept: Selection) -> pl.DataFrame:
    """The partials of the rule, by way of the rows that may stay, their
    partials, and the ranks of these.
    """
    units, groups, hashes, most, cap, sums = kept
    columns = [
        pl.col(column).sum().fill_null(0).cast(pl.Int64).alias(into)
        for into, column in sums.items()
    ]
    rows = (table if most is None else sifted(table, units, hashes, most)).lazy()
    counts = rows.group_by(*units, *groups).agg(
        pl.len().cast(pl.Int64).alias("n"), *columns, pl.col(hashes).first().alias(hashes)
    )
    partials = counts.collect() if most is None else lowest(counts.collect(), units, hashes, most)
    in_all = pl.col("n").clip(0, cap).sum().over(units).alias("a")
    return partials.select(*units, *groups, "n", in_all, *sums)


def _sorted(units: Units, hashes: Words) -> tuple[Words, int, Rows] | None:
    """The words without the numbers of their rows, in order;
    how many bits of the hash they have; and these numbers.

    None where there is no room for enough bits of the hash.
    """
    numbers, size = units
    row_bits, unit_bits = (max(count - 1, 1).bit_length() for count in (len(numbers), size))
    bits = 64 - row_bits - unit_bits
    if bits < _LEAST_BITS or row_bits > 32:
        return None
    words = numbers.astype(np.uint64)
    words <<= np.uint64(bits)
    words |= hashes >> np.uint64(64 - bits)
    words <<= np.uint64(row_bits)
    words |= np.arange(len(words), dtype=np.uint64)
    words = pl.Series(words).sort(multithreaded=len(words) > _SHORT).to_numpy()
    return (
        words >> np.uint64(row_bits),
        bits,
        (words & np.uint64(2**row_bits - 1)).astype(np.uint32),
    )


def _first_runs(
    words: Words, bits: int, order: Rows, most: int | None
) -> tuple[Rows, Counts, Rows]:
    """The rows of the first `most` runs of each unit, or of all, in order;
    the lengths of the runs, and their units.
    """
    starts = np.flatnonzero(changes(words))
    lengths = np.diff(starts, append=len(words))
    unit = (words[starts] >> np.uint64(bits)).astype(np.uint32)
    if most is None:
        return order, lengths, unit
    kept = np.ones(len(starts), bool)
    # else `most` runs of the unit stand before it
    np.not_equal(unit[most:], unit[:-most], out=kept[most:])
    return order[np.repeat(kept, lengths)], lengths[kept], unit[kept]


def _with_several(keys: Sequence[pl.Series], lengths: Counts) -> Booleans:
    """Whether a row has another group than the row before it, in a run of rows."""
    several = np.zeros(int(lengths.sum()), bool)
    for key in keys:
        one, next_one = key.slice(0, len(key) - 1), key.slice(1)
        several[1:] |= (
            one.ne_missing(next_one) if key.null_count() else one != next_one
        ).to_numpy()
    several[_starts(lengths)] = False
    return several
