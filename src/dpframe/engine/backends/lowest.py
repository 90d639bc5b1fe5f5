"""What `rank("max")` of a hash within units says, from one sort of machine words: which groups of a unit are kept.

A unit is a number, a hash the upper 32 of its 64 bits, and both together are one word. In sorted order a unit's words
stand together, the lowest hash first, so the m-th of a unit is the one that has m - 1 of the same unit before it. Two
questions are answered by it:

- `lowest` of partials, where every word is one group: those of rank m at most. The upper bits decide unless the m-th
  and the next one of a unit have the same; then nobody is told, and the ranks themselves are taken.
- `sifted` of rows, many of which may be of one group: those whose upper bits are among the m lowest different ones of
  their unit. A group of rank m at most has at most m hashes that are not above its own, so at most m different upper
  parts, and stays. What goes is surely of a rank above m; leaving it out changes no rank of what stays, because that
  depends on hashes that are not above. So the rule itself, applied after, gives the same groups, and has less to do.

Nothing here is a second rule. It rests on no property of the hash; how often it helps does.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.arrays import Words

__all__ = ["lowest", "sifted"]

_HALF = np.uint64(32)
_ROOM = 16  # an array over all numbers of units has at most this many places for each row
_SAMPLE = 64  # one unit of so many says whether leaving rows out is worth while
_WORTH = 0.75

Units = tuple[NDArray[np.uint32], int]  # a number for each row, below a bound


def lowest(table: pl.DataFrame, units: list[str], hashes: str, most: int) -> pl.DataFrame:
    """The partials of rank("max") at most m by their hash, within their unit."""
    numbers = _at_hand(table, units) or _by_hash(table, units)
    keep = None if numbers is None else _lowest(numbers, _words_of(table, hashes), most)
    if keep is None:
        return table.filter(pl.col(hashes).rank("max").over(units) <= most)
    return table.filter(pl.Series(keep))


def sifted(table: pl.DataFrame, units: list[str], hashes: str, most: int) -> pl.DataFrame:
    """Rows, or fewer: without such as are of a group that is surely not kept, where that is quickly known."""
    numbers = _at_hand(table, units)
    stay = None if numbers is None else _may_stay(numbers, _words_of(table, hashes), most)
    return table if stay is None else table.filter(pl.Series(stay))


def _words_of(table: pl.DataFrame, hashes: str) -> Words:
    return table.get_column(hashes).cast(pl.UInt64).to_numpy()


def _at_hand(table: pl.DataFrame, units: list[str]) -> Units | None:
    """Numbers of units that are whole numbers close together."""
    dtype = table.schema[units[0]]
    if len(units) > 1 or not dtype.is_integer() or str(dtype).endswith("128") or not table.height:
        return None
    ids = table.get_column(units[0])
    ids = ids if dtype == pl.UInt64 else ids.cast(pl.Int64)  # so that a difference cannot wrap
    first, last = int(ids.min()), int(ids.max())  # type: ignore[arg-type]
    if last - first >= min(_ROOM * table.height, 2**32):
        return None
    return (ids - first).cast(pl.UInt32).to_numpy(), last - first + 1


def _by_hash(table: pl.DataFrame, units: list[str]) -> Units | None:
    """Numbers of units in the order of a hash of them; None where two share one, or where there are none."""
    if not table.height:
        return None
    hashes = table.select(pl.struct(units).hash(0)).to_series().to_numpy()
    order = np.argsort(hashes)
    hashes = hashes[order]
    new = np.ones(len(order), bool)
    np.not_equal(hashes[1:], hashes[:-1], out=new[1:])
    in_order = table.select(pl.col(units).gather(pl.Series(order)))
    differs = in_order.select(pl.any_horizontal(pl.all() != pl.all().shift(1)).fill_null(True)).to_series().to_numpy()
    if np.any(differs & ~new):
        return None
    numbers = np.empty(len(order), np.uint32)
    numbers[order] = np.cumsum(new, dtype=np.uint32) - np.uint32(1)
    return numbers, int(numbers[order[-1]]) + 1


def _may_stay(units: Units, hashes: Words, most: int) -> NDArray[np.bool_] | None:
    """Which rows are of a group that may be kept; None where that is nearly all of them."""
    numbers, size = units
    sample = numbers % np.uint32(_SAMPLE) == 0
    sample_stays = _below((numbers[sample], size), hashes[sample], most)
    if np.count_nonzero(sample_stays) > _WORTH * len(sample_stays):
        return None
    return _below(units, hashes, most)


def _below(units: Units, hashes: Words, most: int) -> NDArray[np.bool_]:
    """Whether the upper part of a hash is among the lowest different ones of its unit."""
    numbers, size = units
    upper, words = _words(numbers, hashes)
    first = np.ones(len(words), bool)
    np.not_equal(words[1:], words[:-1], out=first[1:])
    border, last, _ = _borders(words[first], most)
    limits = np.full(size, 2**32 - 1, np.uint32)
    limits[border] = last
    return np.asarray(upper <= limits[numbers])


def _lowest(units: Units, hashes: Words, most: int) -> NDArray[np.bool_] | None:
    """Which partials have rank("max") at most m by their hash, within their unit; None where 32 bits do not tell."""
    numbers, size = units
    upper, words = _words(numbers, hashes)
    border, last, following = _borders(words, most)
    if np.any(last == following):
        return None
    limits = np.full(size, 2**32 - 1, np.uint32)
    limits[border] = last
    return np.asarray(upper <= limits[numbers])


def _words(numbers: NDArray[np.uint32], hashes: Words) -> tuple[NDArray[np.uint32], Words]:
    """The upper parts of hashes, and, sorted, the words that they make with their units."""
    upper = hashes >> _HALF
    words = numbers.astype(np.uint64)
    words <<= _HALF
    words |= upper
    words.sort()
    return upper.astype(np.uint32), words


def _borders(words: Words, most: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
    """Of each unit with more than m of the sorted words: its number, the hash of its m-th and of the next one."""
    unit = (words >> _HALF).astype(np.uint32)
    beyond = unit[most:] == unit[:-most]  # of the word at i + m: m of the same unit stand before it
    if len(beyond) > 1:
        beyond[1:] &= unit[most + 1 :] != unit[: -most - 1]  # and no more than m
    at = np.flatnonzero(beyond) + most
    return unit[at], words[at - 1].astype(np.uint32), words[at].astype(np.uint32)
