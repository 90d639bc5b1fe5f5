"""Types of numpy arrays, for annotations; and tables of integers of which most are 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]  # of any type
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
WideIntegers = NDArray[np.int64] | NDArray[np.object_]  # int64, or Python integers where some do not fit in 64 bits
Booleans = NDArray[np.bool_]
Words = NDArray[np.uint64]


@dataclass(frozen=True, repr=False)
class PlaceCounts:
    """Integers of shape (groups, places), of which most are 0: the rows of each group at each candidate, say.

    Input:  groups, places, numbers: the position and the value of each number that is not 0, in the order of the
            groups; shape: (groups, places)
    Output: `pieces` gives some groups after another as arrays, so that memory never holds all groups and places

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
        return PlaceCounts(renumbered[self.groups[stay]], self.places[stay], self.numbers[stay], shape)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """All numbers in one array, with the zeros."""
        return self._rows(0, len(self)).astype(dtype or np.int64, copy=False)

    def pieces(self, cells: int) -> Iterator[tuple[slice, Integers]]:
        """Arrays of some groups, each with its slice of the groups; an array has about so many cells."""
        rows = max(1, cells // max(self.shape[1], 1))
        for first in range(0, len(self), rows):
            after = min(first + rows, len(self))
            yield slice(first, after), self._rows(first, after)

    def _rows(self, first: int, after: int) -> Integers:
        start, end = np.searchsorted(self.groups, [first, after])
        rows = np.zeros((after - first, self.shape[1]), np.int64)
        rows[self.groups[start:end] - first, self.places[start:end]] = self.numbers[start:end]
        return rows
