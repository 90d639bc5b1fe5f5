"""Metrics: how far apart two values of a domain are, and which numbers can be such a distance.

Metrics of datasets have counts as distances. Metrics of aggregates measure lengths of the
difference of two numbers, vectors or mappings. `distance(a, b)` computes the distance of two
values, so the claim of a map can be tested. `parse` turns a number that a caller passes into the
exact form that maps compute with; `show` turns it back.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpframe.errors import InvalidArgument
from dpframe.theory.exact import Joint, Length, Root, Triple, binary, exact, exact_root, upward
from dpframe.theory.formulas.sensitivity import Relation, Sensitivity, tight_l1, tight_l2

Row = Sequence[object]
Parts = list[Fraction | float]  # absolute differences of two values, entry by entry
Value = Any  # a member of the domain of a metric: a number, a dataset, a vector, a mapping


class Metric:
    """A distance between members of a domain. Two metrics of the same kind are equal.

    >>> SymmetricDistance().distance([12, 10, 8], [10, 8])
    1
    """

    # of datasets: whether records enter and leave, or are replaced
    relation: ClassVar[Relation | None] = None
    ordered: ClassVar[bool] = False  # of datasets: whether the order of records matters

    def distance(self, a: Value, b: Value) -> Any:
        """The distance between two values; infinite when the metric does not compare them."""
        raise NotImplementedError

    def of(self, bound: Sensitivity) -> Any:
        """The exact distance of this kind in a sensitivity of counts;
        None if it is of another kind.
        """
        return None

    def parse(self, distance: object, name: str = "d_in") -> Any:
        """The exact form of a distance that a caller passes.
        Errors: InvalidArgument for a distance of another kind.
        """
        raise NotImplementedError

    def show(self, distance: Any) -> Any:
        """The exact distance as a number, rounded up."""
        raise NotImplementedError


def whole(distance: object, metric: Metric, name: str) -> int:
    """Check that a distance is a count, and return it as an int. Errors: InvalidArgument."""
    if isinstance(distance, tuple | list):
        raise InvalidArgument(f"{name}={distance!r}: {metric!r} is one whole number, not several.")
    value = exact(distance, f"{name}, a distance of {metric!r},")
    if value < 0 or value.denominator != 1:
        raise InvalidArgument(
            f"{name}={distance!r}: {metric!r} counts, so it is a whole number of at least 0."
        )
    return value.numerator


def _key(value: object) -> object:
    """A hashable stand-in under which NaN equals NaN."""
    if hasattr(value, "item"):
        value = value.item()
    return ("NaN",) if isinstance(value, float) and math.isnan(value) else value


class _Counting(Metric):
    """Base class of the metrics between datasets; their distances are counts."""

    def parse(self, distance: object, name: str = "d_in") -> int:
        return whole(distance, self, name)

    def show(self, distance: int) -> int:
        return int(distance)


@dataclass(frozen=True)
class SymmetricDistance(_Counting):
    """Number of records that must be added or removed to turn one multiset into the
    other; the order does not matter.

    >>> SymmetricDistance().distance([12, 10, 8, 7], [10, 8, 7])
    1
    """

    relation = Relation.ADD_REMOVE

    def distance(self, a: Collection[object], b: Collection[object]) -> int:
        """Number of records that are in one dataset but not in the other, with multiplicity."""
        first, second = Counter(map(_key, a)), Counter(map(_key, b))
        return (first - second).total() + (second - first).total()


@dataclass(frozen=True)
class ChangeOneDistance(_Counting):
    """Number of records that must be replaced to turn one multiset into the other;
    infinite when the sizes differ.

    >>> ChangeOneDistance().distance([12, 10, 8, 7], [7, 8, 10, 10])
    1
    """

    relation = Relation.REPLACE

    def distance(self, a: Collection[object], b: Collection[object]) -> int | float:
        """Half the symmetric distance of multisets of one size."""
        return SymmetricDistance().distance(a, b) // 2 if len(a) == len(b) else math.inf


@dataclass(frozen=True)
class InsertDeleteDistance(_Counting):
    """Number of insertions and deletions that turn one ordered vector into the other.

    >>> InsertDeleteDistance().distance([1, 2, 3], [2, 1, 3])
    2
    """

    relation = Relation.ADD_REMOVE
    ordered = True

    def distance(self, a: Collection[object], b: Collection[object]) -> int:
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

    relation = Relation.REPLACE
    ordered = True

    def distance(self, a: Collection[object], b: Collection[object]) -> int | float:
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

    def distance(self, a: object, b: object) -> int:
        """0 or 1."""
        return int(_key(a) != _key(b))

    def parse(self, distance: object, name: str = "d_in") -> int:
        """0 or 1. Errors: InvalidArgument for anything else."""
        value = whole(distance, self, name)
        if value > 1:
            raise InvalidArgument(f"{name}={distance!r}: a DiscreteDistance is 0 or 1.")
        return value


@dataclass(frozen=True)
class UnitDistance(_Counting):
    """Number of units that must join or leave to turn one table into the
    other; a row begins with its unit.

    A unit whose rows differ leaves and joins again, so it counts twice. The order of rows does not
    matter.

    >>> UnitDistance().distance([(1, "a"), (1, "b"), (2, "a")], [(2, "a")])
    1
    """

    def distance(self, a: Iterable[Row], b: Iterable[Row]) -> int:
        """Count of units that join or leave."""
        first, second = self._rows(a), self._rows(b)
        return sum(
            (u in first) + (u in second)
            for u in {**first, **second}
            if first.get(u) != second.get(u)
        )

    def _rows(self, table: Iterable[Row]) -> dict[object, Counter[tuple[object, ...]]]:
        """The rows of each unit, with multiplicity."""
        units: dict[object, Counter[tuple[object, ...]]] = {}
        for row in table:
            units.setdefault(_key(row[0]), Counter())[tuple(map(_key, row[1:]))] += 1
        return units


@dataclass(frozen=True)
class ExchangedUnitDistance(UnitDistance):
    """Number of units that must be exchanged to turn one table into the other;
    the first entry of a row is a unit.

    Tables with unequal numbers of units that differ are infinitely far apart.

    >>> ExchangedUnitDistance().distance([(1, "a"), (2, "a")], [(3, "b"), (2, "a")])
    1
    """

    def distance(self, a: Iterable[Row], b: Iterable[Row]) -> Any:
        """Count of units that are exchanged, or infinity."""
        first, second = self._rows(a), self._rows(b)
        left, joined = (
            [u for u in one if one[u] != other.get(u)]
            for one, other in ((first, second), (second, first))
        )
        return len(left) if len(left) == len(joined) else math.inf


def _real(distance: object, metric: Metric, name: str) -> Length:
    """Check that a distance is one number of at least 0, and return it in exact form.
    Errors: InvalidArgument.
    """
    match distance:
        case Root():
            return distance
        case tuple() | list():
            raise InvalidArgument(f"{name}={distance!r}: {metric!r} is one number, not several.")
    value = exact(distance, f"{name}, a distance of {metric!r},")
    if value < 0:
        raise InvalidArgument(f"{name}={distance!r}: a distance is at least 0.")
    return value


def _number(value: Length | int) -> int | float:
    """An exact length as an int if it is whole, otherwise as a float, rounded up."""
    if isinstance(value, Root):
        root = exact_root(value.squared)
        return upward(value) if root is None else _number(root)
    return int(value) if Fraction(value).denominator == 1 else upward(Fraction(value))


class _Length(Metric):
    """Base class of the metrics on numbers and on vectors of numbers."""

    def parse(self, distance: object, name: str = "d_in") -> Length:
        return _real(distance, self, name)

    def show(self, distance: Length) -> int | float:
        return _number(distance)

    def distance(self, a: Value, b: Value) -> int | float:
        """In the unit of the entries; infinite for vectors of unequal length."""
        parts = _parts(a, b)
        return math.inf if parts is None else self._length(parts)

    @staticmethod
    def _length(parts: Parts) -> int | float:
        raise NotImplementedError


def _difference(a: float, b: float) -> Fraction | float:
    """Distance |a - b|, exact; infinite if one of them is infinite
    and the other is not the same.
    """
    if math.isfinite(a) and math.isfinite(b):
        return abs(binary(a) - binary(b))
    return Fraction(0) if a == b or (a != a and b != b) else math.inf


def _measured(value: Fraction | float) -> int | float:
    """A computed length as an int if it is whole, otherwise as the nearest float."""
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else float(value)


def _parts(a: Value, b: Value) -> Parts | None:
    """Absolute differences per coordinate (per key, where an absent key is 0);
    None for vectors of unequal length.
    """
    if isinstance(a, Mapping):
        return [_difference(a.get(k, 0), b.get(k, 0)) for k in {**a, **b}]
    if not hasattr(a, "__len__"):
        return [_difference(a, b)]
    return [_difference(x, y) for x, y in zip(a, b, strict=True)] if len(a) == len(b) else None


def _total(parts: Parts) -> int | float:
    return (
        math.inf if math.inf in parts else _measured(sum((Fraction(p) for p in parts), Fraction(0)))
    )


def _largest(parts: Parts) -> int | float:
    return _measured(max(parts, default=Fraction(0)))


def _euclid(parts: Parts) -> int | float:
    if math.inf in parts:
        return math.inf
    squared = sum((Fraction(p) ** 2 for p in parts), Fraction(0))
    root = exact_root(squared)
    return math.sqrt(squared) if root is None else _measured(root)


@dataclass(frozen=True)
class AbsoluteDistance(_Length):
    """|a - b| of two numbers.

    >>> AbsoluteDistance().distance(3, 10)
    7
    """

    def distance(self, a: Value, b: Value) -> int | float:
        """In the unit of the numbers."""
        return _measured(_difference(a, b))


@dataclass(frozen=True)
class L1Distance(_Length):
    """Sum of |a_i - b_i| of two vectors or mappings.

    >>> L1Distance().distance([1, 2, 3], [2, 2, 1])
    3
    """

    _length = staticmethod(_total)

    def of(self, bound: Sensitivity) -> Fraction:
        """The l1."""
        return bound.exact_l1


@dataclass(frozen=True)
class L2Distance(_Length):
    """Euclidean length of a - b, for vectors or mappings.

    >>> L2Distance().distance([0, 0], [3, 4])
    5
    """

    _length = staticmethod(_euclid)

    def of(self, bound: Sensitivity) -> Root:
        """The l2."""
        return Root(bound.l2_squared)


@dataclass(frozen=True)
class LinfDistance(_Length):
    """Largest |a_i - b_i| of two vectors or mappings.

    `monotonic=True` promises that between neighbours all entries move in the same direction, as
    counts do when records are only added; selection then costs half.

    >>> LinfDistance().distance([1, 2, 3], [2, 2, 1])
    2
    """

    monotonic: bool = False

    _length = staticmethod(_largest)

    def of(self, bound: Sensitivity) -> Fraction | None:
        """The linf; monotonic counts have none here."""
        return None if self.monotonic else bound.exact_linf

    def distance(self, a: Value, b: Value) -> int | float:
        """In the unit of the entries; infinite for unequal lengths, and
        where `monotonic` does not hold.
        """
        length = super().distance(a, b)
        if self.monotonic and length < math.inf:
            keys = {**a, **b} if isinstance(a, Mapping) else None
            pairs = (
                list(zip(a, b, strict=True))
                if keys is None
                else [(a.get(k, 0), b.get(k, 0)) for k in keys]
            )
            if any(x > y for x, y in pairs) and any(x < y for x, y in pairs):
                return math.inf
        return length


@dataclass(frozen=True)
class _CellDistance(Metric):
    """Base class of the joint distances on cells: (number of cells that change,
    l1 or l2 of the change, linf).
    """

    inner_metric: AbsoluteDistance = AbsoluteDistance()
    _middle: ClassVar[str]

    @staticmethod
    def _length(parts: Parts) -> int | float:
        raise NotImplementedError

    @staticmethod
    def _tightened(l0: int, middle: Length, linf: Length, /) -> Triple:
        raise NotImplementedError

    def distance(self, a: Value, b: Value) -> Joint:
        """(count, unit of the cells, unit of the cells);
        infinite lengths for vectors of unequal length.
        """
        parts = _parts(a, b)
        if parts is None:
            return Joint((math.inf, math.inf, math.inf))
        return Joint((sum(p != 0 for p in parts), self._length(parts), _largest(parts)))

    def parse(self, distance: object, name: str = "d_in") -> Triple:
        if not isinstance(distance, tuple | list) or len(distance) != 3:
            raise InvalidArgument(
                f"{name}={distance!r}: {self!r} is a triple (l0, {self._middle}, linf)."
            )
        l0 = whole(distance[0], self, f"{name}[0]")
        return self._tightened(
            l0, _real(distance[1], self, f"{name}[1]"), _real(distance[2], self, f"{name}[2]")
        )

    def show(self, distance: Triple) -> Joint:
        return Joint((int(distance[0]), _number(distance[1]), _number(distance[2])))


class L01InfDistance(_CellDistance):
    """The triple (l0, l1, linf) of two vectors or mappings:
    number, sum and largest of the cells' differences.

    A triple that a caller passes is reduced to consistent numbers: l1 is at most l0·linf, and linf
    is at most l1.

    >>> L01InfDistance(AbsoluteDistance()).distance({"a": 3}, {"a": 1, "b": 1})
    (2, 3, 2)
    """

    _middle, _length, _tightened = "l1", staticmethod(_total), staticmethod(tight_l1)

    def of(self, bound: Sensitivity) -> Triple:
        """The l0, l1 and linf."""
        return bound.l0, bound.exact_l1, bound.exact_linf


class L02InfDistance(_CellDistance):
    """The triple (l0, l2, linf) of two vectors or mappings:
    number, length and largest of the cells' differences.

    >>> L02InfDistance(AbsoluteDistance()).distance({"a": 3}, {"a": 0, "b": 4})
    (2, 5, 4)
    """

    _middle, _length, _tightened = "l2", staticmethod(_euclid), staticmethod(tight_l2)

    def of(self, bound: Sensitivity) -> Triple:
        """The l0, l2 and linf."""
        return bound.l0, Root(bound.l2_squared), bound.exact_linf
