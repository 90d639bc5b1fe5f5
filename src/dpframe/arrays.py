"""Types of numpy arrays, for annotations; and tables of integers of which most are 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]  # of any type
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# int64, or Python integers where some do not fit in 64 bits
WideIntegers = NDArray[np.int64] | NDArray[np.object_]
Booleans = NDArray[np.bool_]
Words = NDArray[np.uint64]

# Kinds of numpy's types
WHOLE = frozenset("iu")
WHOLE_OR_FLAG = WHOLE | {"b"}
NUMERIC = WHOLE | {"f"}
NUMERIC_OR_FLAG = NUMERIC | {"b"}
OBJECT = np.dtype(object)  # of any Python values


def ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Integers as ranges: the first and the last of each.

    >>> ranges([5, 0, 1, 2])
    [[0, 2], [5, 5]]
    """
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number <= found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def row_cells(codes: NDArray[np.int32], part: Iterable[int], sizes: Sequence[int]) -> Integers:
    """The place of each row's cell in the table of some columns."""
    place = np.zeros(len(codes), np.int64)
    for k in part:
        place = place * sizes[k] + codes[:, k]
    return place


@dataclass(frozen=True, repr=False)
class PlaceCounts:
    """Integers of shape (groups, places), of which most are 0:
    the rows of each group at each candidate, say.

    Input:  groups, places, numbers: the position and the value of each number that is not 0, in the
            order of the groups; shape: (groups, places)
    Output: `pieces` gives some groups after another as arrays, so that memory never holds all
            groups and places

    >>> counts = PlaceCounts(np.array([0, 2]), np.array([1, 0]), np.array([5, 7]), (3, 2))
    >>> [(at.start, piece.tolist()) for at, piece in counts.pieces(4)]
    [(0, [[0, 5], [0, 0]]), (2, [[7, 0]])]
    >>> np.asarray(counts[np.array([False, True, True])]).tolist()
    [[0, 0], [7, 0]]
    """

    groups: Integers
    places: Integers
    numbers: Integers
    shape: tuple[int, int]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, keep: Booleans) -> PlaceCounts:
        """The groups for which `keep` is true."""
        stay, renumbered = keep[self.groups], np.cumsum(keep) - 1
        shape = int(np.count_nonzero(keep)), self.shape[1]
        return PlaceCounts(
            renumbered[self.groups[stay]], self.places[stay], self.numbers[stay], shape
        )

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """All numbers in one array, with the zeros."""
        return self._rows(0, len(self)).astype(dtype or np.int64, copy=False)

    def pieces(self, cells: int) -> Iterator[tuple[slice, Integers]]:
        """Arrays of some groups, each with its slice of the groups;
        an array has about so many cells.
        """
        rows = max(1, cells // max(self.shape[1], 1))
        for first in range(0, len(self), rows):
            after = min(first + rows, len(self))
            yield slice(first, after), self._rows(first, after)

    def runs(self, cells: int, edges: Integers) -> Iterator[tuple[slice, Integers, Integers]]:
        """As `pieces`, with neighbouring places as one run:
        where a run begins in each group, and its number.

        Input:  cells: about so many runs a piece has; edges: the places, from 0 on, at which runs
                begin in all groups
        Output: runs of a group begin at growing places; one that begins at the number of places is
                empty. A place whose number is not 0 is a run of its own

        >>> counts = PlaceCounts(np.array([0, 2]), np.array([1, 0]), np.array([5, 7]), (3, 9))
        >>> [(first.tolist(), runs.tolist()) for _, first, runs in counts.runs(4, np.array([0, 4]))]
        [([[0, 1, 2, 4]], [[0, 5, 0, 0]]), ([[0, 4]], [[0, 0]]), ([[0, 1, 4]], [[7, 0, 0]])]
        """
        size = len(self)
        sizes = 2 * np.bincount(self.groups, minlength=size) + len(edges)
        first = 0
        while first < size:
            some = sizes[first : first + max(1, cells // len(edges))]
            fit = np.maximum.accumulate(some) * np.arange(1, len(some) + 1) <= cells
            after = first + max(1, int(np.count_nonzero(fit)))
            yield slice(first, after), *self._runs(first, after, edges)
            first = after

    def _runs(self, first: int, after: int, edges: Integers) -> tuple[Integers, Integers]:
        groups, width = after - first, self.shape[1]
        start, end = np.searchsorted(self.groups, [first, after])
        at = (self.groups[start:end] - first) * width + self.places[start:end]
        beside = at[self.places[start:end] < width - 1] + 1
        begins = np.concatenate([at, beside, (np.arange(groups)[:, None] * width + edges).ravel()])
        begins.sort(kind="stable")
        begins = begins[np.diff(begins, prepend=-1) > 0]
        row = begins // width
        sizes = np.bincount(row, minlength=groups)
        column = np.arange(len(begins)) - (np.cumsum(sizes) - sizes)[row]
        places, numbers = (
            np.full((groups, sizes.max(initial=0)), fill, np.int64) for fill in (width, 0)
        )
        places[row, column] = begins - row * width
        owner = np.searchsorted(begins, at)
        numbers[row[owner], column[owner]] = self.numbers[start:end]
        return places, numbers

    def upto(self, places: Integers) -> Array:
        """For each group the sum of its numbers at or before each of some
        places, of shape (groups, any).

        Python integers, where int64 could not hold the sum of all numbers.
        """
        wide = float(np.abs(self.numbers).sum(dtype=np.float64)) >= 2.0**62
        sums = np.concatenate([[0], np.cumsum(self.numbers, dtype=object if wide else np.int64)])
        row = np.arange(len(self))[:, None]
        at = np.searchsorted(
            self.groups * self.shape[1] + self.places, row * self.shape[1] + places, side="right"
        )
        return np.asarray(sums[at] - sums[np.searchsorted(self.groups, row)])

    def _rows(self, first: int, after: int) -> Integers:
        start, end = np.searchsorted(self.groups, [first, after])
        rows = np.zeros((after - first, self.shape[1]), np.int64)
        rows[self.groups[start:end] - first, self.places[start:end]] = self.numbers[start:end]
        return rows
