"""The groups that a unit keeps, from one sort of machine words instead of
`rank("max")` of a hash within units.

The rule: a unit keeps the groups whose hash has rank("max") at most m. Here a unit is a number, and
          this number and the
upper 32 bits of the hash form one 64-bit word. After sorting, the words of a unit are adjacent,
with the lowest hash first. So the m-th word of a unit has m - 1 words of that unit before it. Two
functions use this:

- `lowest` gets partials, with one word for each group, and keeps those of rank m at most. The upper
  32 bits decide this unless the m-th and the next word of some unit are equal. Then the ranks of
  the whole hashes are computed instead.
- `sifted` gets rows, of which many may be of one group. It keeps the rows whose upper bits are
  among the m lowest distinct ones of their unit. A group of rank at most m has at most m hashes
  that are not above its own, so at most m distinct upper parts, and its rows stay. A row that is
  removed has a rank above m. Removing it changes no rank of the others that stay, because a rank
  depends on lower and equal hashes alone. So the rule, applied afterwards, keeps the groups that it
  would have kept, and reads fewer rows.

So both functions give the result of the rule, whatever the hash function is. Its quality only
affects their speed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.arrays import Booleans, Words

_HALF = np.uint64(32)
_ROOM = 16  # largest ratio of the length of an array over unit numbers to the number of rows
_SAMPLE = 64  # one unit in 64 is examined first, to estimate the share of rows that would stay
_WORTH = 0.75  # largest share of rows that may stay for `sifted` to remove any

# the number of the unit of each row, and a bound above all numbers
Units = tuple[NDArray[np.uint32], int]


def lowest(table: pl.DataFrame, units: Sequence[str], hashes: str, most: int) -> pl.DataFrame:
    """The partials whose hash has rank("max") at most `most` within their unit."""
    numbers = at_hand(table, units) or _by_hash(table, units)
    keep = None if numbers is None else _lowest(numbers, words_of(table, hashes), most)
    if keep is None:
        return table.filter(pl.col(hashes).rank("max").over(units) <= most)
    return table.filter(pl.Series(keep))


def sifted(table: pl.DataFrame, units: Sequence[str], hashes: str, most: int) -> pl.DataFrame:
    """The rows, perhaps without rows of groups that are not kept.
    All rows stay where the check would be slow.
    """
    numbers = at_hand(table, units)
    stay = None if numbers is None else _may_stay(numbers, words_of(table, hashes), most)
    return table if stay is None else table.filter(pl.Series(stay))


def words_of(table: pl.DataFrame, hashes: str) -> Words:
    """A column of 64-bit hashes as machine words."""
    return table.get_column(hashes).cast(pl.UInt64).to_numpy()


def changes(numbers: Words | NDArray[np.uint32]) -> Booleans:
    """Whether a number differs from the one before it."""
    new = np.ones(len(numbers), bool)
    np.not_equal(numbers[1:], numbers[:-1], out=new[1:])
    return new


def at_hand(table: pl.DataFrame, units: Sequence[str]) -> Units | None:
    """Numbers for units whose identifiers are whole numbers in a short
    range; None for other identifiers.
    """
    dtype = table.schema[units[0]]
    if len(units) > 1 or not dtype.is_integer() or str(dtype).endswith("128") or not table.height:
        return None
    ids = table.get_column(units[0])
    ids = ids if dtype == pl.UInt64 else ids.cast(pl.Int64)  # so that a difference cannot wrap
    first, last = int(ids.min()), int(ids.max())  # type: ignore[arg-type]
    if last - first >= min(_ROOM * table.height, 2**32):
        return None
    return (ids - first).cast(pl.UInt32).to_numpy(), last - first + 1


def _by_hash(table: pl.DataFrame, units: Sequence[str]) -> Units | None:
    """Numbers for units, ordered by a hash of their identifiers;
    None if two units share a hash, or without rows.
    """
    if not table.height:
        return None
    hashes = table.select(pl.struct(units).hash(0)).to_series().to_numpy()
    order = np.argsort(hashes)
    new = changes(hashes[order])
    in_order = table.select(pl.col(units).gather(pl.Series(order)))
    differs = (
        in_order.select(pl.any_horizontal(pl.all() != pl.all().shift(1)).fill_null(True))
        .to_series()
        .to_numpy()
    )
    if np.any(differs & ~new):
        return None
    numbers = np.empty(len(order), np.uint32)
    numbers[order] = np.cumsum(new, dtype=np.uint32) - np.uint32(1)
    return numbers, int(numbers[order[-1]]) + 1


def _may_stay(units: Units, hashes: Words, most: int) -> Booleans | None:
    """Whether a row's group may be kept, for each row;
    None where a sample shows that nearly all rows would stay.
    """
    numbers, size = units
    sample = numbers % np.uint32(_SAMPLE) == 0
    sample_stays = _below((numbers[sample], size), hashes[sample], most)
    if np.count_nonzero(sample_stays) > _WORTH * len(sample_stays):
        return None
    return _below(units, hashes, most)


def _below(units: Units, hashes: Words, most: int) -> Booleans:
    """Whether the upper part of a row's hash is among the `most`
    lowest distinct ones of its unit.
    """
    upper, words = _words(units[0], hashes)
    border, last, _ = _borders(words[changes(words)], most)
    return _up_to(upper, units, border, last)


def _lowest(units: Units, hashes: Words, most: int) -> Booleans | None:
    """Whether a partial's hash has rank("max") at most `most` within its unit;
    None where 32 bits do not decide it.
    """
    upper, words = _words(units[0], hashes)
    border, last, following = _borders(words, most)
    if np.any(last == following):
        return None
    return _up_to(upper, units, border, last)


def _up_to(
    upper: NDArray[np.uint32], units: Units, border: NDArray[np.uint32], last: NDArray[np.uint32]
) -> Booleans:
    """Whether the upper part of a hash is at most the last that its unit keeps;
    units within their border keep all.
    """
    numbers, size = units
    limits = np.full(size, 2**32 - 1, np.uint32)
    limits[border] = last
    return np.asarray(upper <= limits[numbers])


def _words(numbers: NDArray[np.uint32], hashes: Words) -> tuple[NDArray[np.uint32], Words]:
    """The upper parts of the hashes, and the sorted words of unit number and upper part."""
    upper = hashes >> _HALF
    words = numbers.astype(np.uint64)
    words <<= _HALF
    words |= upper
    words.sort()
    return upper.astype(np.uint32), words


def _borders(
    words: Words, most: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    """For each unit with more than m of the sorted words:
    its number, and the upper parts of its m-th and next word.
    """
    unit = (words >> _HALF).astype(np.uint32)
    # entry i: at least m words of its unit stand before word i + m
    beyond = unit[most:] == unit[:-most]
    if len(beyond) > 1:
        beyond[1:] &= unit[most + 1 :] != unit[: -most - 1]  # and not m + 1
    at = np.flatnonzero(beyond) + most
    return unit[at], words[at - 1].astype(np.uint32), words[at].astype(np.uint32)
