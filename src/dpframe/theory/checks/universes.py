"""All datasets of one size over a small universe, and their
neighbours, as vectors of multiplicities.

A dataset is a vector: how often each distinct item of the universe occurs. A neighbour differs by a
small vector.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from dpframe.errors import InvalidArgument
from dpframe.theory.formulas.sensitivity import Relation
from dpframe.usage import is_integer

Counts = tuple[int, ...]


@dataclass(frozen=True)
class Universe:
    """Distinct items, how often each may be drawn, and the size of the datasets.

    >>> u = Universe.of([1, 2, 3, 4], size=3)
    >>> u.datasets, sum(1 for _ in u), sum(1 for _ in u.neighbours((1, 1, 1, 0), 1, "add-remove"))
    (4, 4, 4)
    """

    items: tuple[object, ...]
    limits: Counts
    size: int

    @classmethod
    def of(cls, records: Sequence[object], size: int, replacement: bool = False) -> Universe:
        """A universe from a list of records, each drawn once;
        with `replacement`, each may be drawn `size` times.
        """
        items: list[object] = []
        limits: list[int] = []
        places: dict[object, int] = {}
        for record in records:
            key = _key(record)
            if key in places:
                limits[places[key]] += 1
            else:
                places[key] = len(items)
                items.append(record)
                limits.append(1)
        if not items:
            raise InvalidArgument("universe: it is empty; give at least one record.")
        if not is_integer(size, 1):
            raise InvalidArgument(
                f"size={size!r}: datasets have a whole number of records, at least 1."
            )
        if replacement:
            limits = [size] * len(items)
        if size > sum(limits):
            raise InvalidArgument(
                f"size={size}: the universe has {sum(limits)} records to draw from."
            )
        return cls(tuple(items), tuple(limits), size)

    # How many

    @cached_property
    def datasets(self) -> int:
        """The number of different datasets of this size."""
        ways = [1] + [0] * self.size
        for limit in self.limits:
            ways = [
                sum(ways[n - k] for k in range(min(limit, n) + 1)) for n in range(self.size + 1)
            ]
        return ways[self.size]

    def changes(self, distance: int, relation: Relation) -> int:
        """The largest number of neighbours of a dataset:
        that of change vectors, or of other datasets if smaller.

        >>> u = Universe.of([1, 2, 3], size=2)
        >>> u.changes(5, "replace"), u.changes(5, "add-remove")
        (2, 7)
        """
        return min(self._vectors(distance, relation), self._others(distance, relation))

    def _others(self, distance: int, relation: Relation) -> int:
        """The number of other datasets whose sizes neighbours may have."""
        reach = 0 if relation == Relation.REPLACE else distance
        sizes = range(max(0, self.size - reach), min(sum(self.limits), self.size + reach) + 1)
        return sum(replace(self, size=s).datasets for s in sizes) - 1

    def _vectors(self, distance: int, relation: Relation) -> int:
        k = len(self.items)
        if relation == Relation.ADD_REMOVE:
            # Choose j items that change, their signs, and how the distance is split: the points of
            # a ball in L1.
            return sum(
                2**j * math.comb(k, j) * math.comb(distance, j)
                for j in range(1, min(k, distance) + 1)
            )
        return sum(
            math.comb(k, j) * math.comb(r - 1, j - 1) * math.comb(r + k - j - 1, k - j - 1)
            for r in range(1, distance + 1)
            for j in range(1, min(k - 1, r) + 1)
        )

    # Which

    def __iter__(self) -> Iterator[Counts]:
        return self._fill(0, self.size)

    def _fill(self, place: int, remaining: int) -> Iterator[Counts]:
        if place == len(self.limits) - 1:
            if remaining <= self.limits[place]:
                yield (remaining,)
            return
        for count in range(min(self.limits[place], remaining), -1, -1):
            for tail in self._fill(place + 1, remaining - count):
                yield (count, *tail)

    def neighbours(self, dataset: Counts, distance: int, relation: Relation) -> Iterator[Counts]:
        """Every other dataset within this distance: of any size under add-remove,
        of the same size under replace.
        """
        budget = (distance, distance) if relation == Relation.REPLACE else (distance, None)
        for counts in self._near(dataset, 0, *budget):
            if counts != dataset:
                yield counts

    def _near(
        self, dataset: Counts, place: int, added: int, removed: int | None
    ) -> Iterator[Counts]:
        """Change the items from `place` on; `added` and `removed` are the records that
        may still be added and removed.

        If `removed` is None, additions and removals together are limited by `added`.
        """
        if place == len(dataset):
            if removed is None or added == removed:
                yield ()
            return
        have, limit = dataset[place], self.limits[place]
        down = min(have, added if removed is None else removed)
        for count in range(have - down, min(limit, have + added) + 1):
            up, out = max(0, count - have), max(0, have - count)
            limits = (added - up - out, None) if removed is None else (added - up, removed - out)
            for tail in self._near(dataset, place + 1, *limits):
                yield (count, *tail)

    def records(self, counts: Counts) -> list[object]:
        """The records of a dataset, in the order of the universe."""
        return [item for item, count in zip(self.items, counts, strict=True) for _ in range(count)]


def _key(record: object) -> object:
    """A hashable value that is equal for equal records."""
    match record:
        case dict():
            return tuple(sorted((str(k), _key(v)) for k, v in record.items()))
        case list() | tuple():
            return tuple(_key(v) for v in record)
    return record.item() if hasattr(record, "item") and getattr(record, "ndim", 0) == 0 else record
