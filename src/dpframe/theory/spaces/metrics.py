"""Metrics: how far apart two values of a domain are, and which numbers can be such a distance.

The metrics of this module compare datasets, and their distances are counts. Metrics between aggregates are in
`lengths`. `distance(a, b)` computes the distance of two values, so the claim of a map can be tested. `parse` turns a
number that a caller passes into the exact form that maps compute with; `show` turns it back, rounded up.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from dpframe.errors import InvalidArgument
from dpframe.theory.exact import Joint, exact

__all__ = [
    "ChangeOneDistance",
    "DiscreteDistance",
    "HammingDistance",
    "InsertDeleteDistance",
    "Metric",
    "PairDistance",
    "SymmetricDistance",
    "UnitDistance",
    "whole",
]


class Metric:
    """A distance between members of a domain. Two metrics of the same kind are equal.

    >>> SymmetricDistance().distance([12, 10, 8], [10, 8])
    1
    """

    def distance(self, a: Any, b: Any) -> Any:
        """The distance between two values; infinite when the metric does not compare them."""
        raise NotImplementedError

    def parse(self, distance: Any, name: str = "d_in") -> Any:
        """The exact form of a distance that a caller passes. Errors: InvalidArgument for a distance of another kind."""
        raise NotImplementedError

    def show(self, distance: Any) -> Any:
        """The exact distance as a number, rounded up."""
        raise NotImplementedError


def whole(distance: Any, metric: Metric, name: str) -> int:
    """Check that a distance is a count, and return it as an int. Errors: InvalidArgument."""
    if isinstance(distance, tuple | list):
        raise InvalidArgument(f"{name}={distance!r}: {metric!r} is one whole number, not several.")
    value = exact(distance, f"{name}, a distance of {metric!r},")
    if value < 0 or value.denominator != 1:
        raise InvalidArgument(f"{name}={distance!r}: {metric!r} counts, so it is a whole number of at least 0.")
    return value.numerator


def _key(value: Any) -> Any:
    """A hashable stand-in under which NaN equals NaN."""
    if hasattr(value, "item"):
        value = value.item()
    return ("NaN",) if isinstance(value, float) and math.isnan(value) else value


class _Counting(Metric):
    """Base class of the metrics between datasets; their distances are counts."""

    def parse(self, distance: Any, name: str = "d_in") -> int:
        return whole(distance, self, name)

    def show(self, distance: Any) -> int:
        return int(distance)


@dataclass(frozen=True)
class SymmetricDistance(_Counting):
    """How many records must be added or removed to turn one multiset into the other; the order does not matter.

    >>> SymmetricDistance().distance([12, 10, 8, 7], [10, 8, 7])
    1
    """

    def distance(self, a: Any, b: Any) -> int:
        """Number of records that are in one dataset but not in the other, with multiplicity."""
        first, second = Counter(map(_key, a)), Counter(map(_key, b))
        return (first - second).total() + (second - first).total()


@dataclass(frozen=True)
class ChangeOneDistance(_Counting):
    """How many records must be replaced to turn one multiset into the other; infinite when the sizes differ.

    >>> ChangeOneDistance().distance([12, 10, 8, 7], [7, 8, 10, 10])
    1
    """

    def distance(self, a: Any, b: Any) -> int | float:
        """Half the symmetric distance of multisets of one size."""
        return SymmetricDistance().distance(a, b) // 2 if len(a) == len(b) else math.inf


@dataclass(frozen=True)
class InsertDeleteDistance(_Counting):
    """How many insertions and deletions turn one ordered vector into the other.

    >>> InsertDeleteDistance().distance([1, 2, 3], [2, 1, 3])
    2
    """

    def distance(self, a: Any, b: Any) -> int:
        """len(a) + len(b) minus twice the longest common subsequence."""
        first, second = [_key(v) for v in a], [_key(v) for v in b]
        row = [0] * (len(second) + 1)
        for x in first:
            previous = row
            row = [0]
            for j, y in enumerate(second):
                row.append(previous[j] + 1 if x == y else max(previous[j + 1], row[j]))
        return len(first) + len(second) - 2 * row[-1]


@dataclass(frozen=True)
class HammingDistance(_Counting):
    """At how many positions two ordered vectors differ; infinite when the sizes differ.

    >>> HammingDistance().distance([1, 2, 3], [2, 1, 3])
    2
    """

    def distance(self, a: Any, b: Any) -> int | float:
        """Count of differing positions."""
        if len(a) != len(b):
            return math.inf
        return sum(1 for x, y in zip(a, b, strict=True) if _key(x) != _key(y))


@dataclass(frozen=True)
class DiscreteDistance(_Counting):
    """0 if two values are equal, 1 if they are not. Neighbours may differ in any way.

    >>> DiscreteDistance().distance("a", "b")
    1
    """

    def distance(self, a: Any, b: Any) -> int:
        """0 or 1."""
        return int(_key(a) != _key(b))

    def parse(self, distance: Any, name: str = "d_in") -> int:
        """0 or 1. Errors: InvalidArgument for anything else."""
        value = whole(distance, self, name)
        if value > 1:
            raise InvalidArgument(f"{name}={distance!r}: a DiscreteDistance is 0 or 1.")
        return value


@dataclass(frozen=True)
class PairDistance(Metric):
    """The distances of two tables side by side: (records on the left, records on the right).

    >>> PairDistance().distance(([1, 2], [3]), ([1], [3, 4]))
    (1, 1)
    """

    inner_metric: Metric = SymmetricDistance()

    def distance(self, a: Any, b: Any) -> Joint:
        """(count, count)."""
        return Joint(self.inner_metric.distance(x, y) for x, y in zip(a, b, strict=True))

    def parse(self, distance: Any, name: str = "d_in") -> tuple[int, int]:
        """A pair of counts. Errors: InvalidArgument for anything else."""
        if not isinstance(distance, tuple | list) or len(distance) != 2:
            raise InvalidArgument(f"{name}={distance!r}: {self!r} is a pair (left, right).")
        d_left, d_right = (self.inner_metric.parse(part, f"{name}[{i}]") for i, part in enumerate(distance))
        return d_left, d_right

    def show(self, distance: Any) -> Joint:
        """The pair of counts."""
        return Joint(int(part) for part in distance)


@dataclass(frozen=True)
class UnitDistance(_Counting):
    """How many units must join or leave to turn one table into the other; the first entry of a row names its unit.

    A unit whose rows differ leaves and joins again, so it counts twice. The order of rows does not matter.

    >>> UnitDistance().distance([(1, "a"), (1, "b"), (2, "a")], [(2, "a")])
    1
    """

    def distance(self, a: Any, b: Any) -> int:
        """Count of units that join or leave."""
        first, second = self._rows(a), self._rows(b)
        return sum((u in first) + (u in second) for u in {**first, **second} if first.get(u) != second.get(u))

    def _rows(self, table: Any) -> dict[Any, Counter[Any]]:
        """The rows of each unit, with multiplicity."""
        units: dict[Any, Counter[Any]] = {}
        for row in table:
            units.setdefault(_key(row[0]), Counter())[tuple(map(_key, row[1:]))] += 1
        return units
