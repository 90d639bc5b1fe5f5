"""Intervals that someone listed: the bins of a histogram, the classes of `cut`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, WrongType
from dpframe.plan.columns import ColumnDomain
from dpframe.plan.expressions import check_bound, comparable
from dpframe.plan.types import TIMES, Kind, cast_first, cast_to, kind, number, show, ticks

__all__ = ["Intervals"]


@dataclass(frozen=True)
class Intervals:
    """Adjoining intervals between listed edges, in order, each with a label.

    `right` says which end belongs to an interval: the right one (as in `pd.cut`) or the left one (as in
    `np.histogram`, whose last interval also holds its right end). `closed_ends` includes the outermost edge that
    would otherwise be left out.

    >>> Intervals.of([0, 18, 65], right=False, closed_ends=True).labels
    ('[0, 18)', '[18, 65]')
    >>> Intervals.of([0, 18, 65], right=True).labels
    ('(0, 18]', '(18, 65]')
    """

    edges: tuple[Any, ...]  # numbers, or times of one kind
    labels: tuple[str, ...]
    right: bool
    closed_ends: bool

    @classmethod
    def of(
        cls,
        edges: Sequence[object],
        labels: Sequence[object] | None = None,
        *,
        right: bool,
        closed_ends: bool = False,
        asked: str = "cut",
    ) -> Intervals:
        """Check the edges (finite, strictly increasing, at least two) and the labels (one for each interval)."""
        if isinstance(edges, (str, bytes)) or not hasattr(edges, "__iter__"):
            raise InvalidArgument(
                f"{asked}: bins are a list of edges, such as [0, 18, 65]; a number of bins would "
                "have to be placed by looking at the data."
            )
        points = tuple(check_bound(e, f"{asked}: bins") for e in edges)
        if not all(comparable(a, b) for a, b in pairwise(points)):
            raise InvalidArgument(f"{asked}: bins are all numbers, or all times of one kind.")
        if len(points) < 2 or any(a >= b for a, b in pairwise(points)):
            raise InvalidArgument(f"{asked}: bins need at least two edges, each above the one before.")
        if not isinstance(right, bool) or not isinstance(closed_ends, bool):
            raise InvalidArgument(f"{asked}: right= and include_lowest= are True or False.")
        return cls(points, _labels(points, labels, right, closed_ends, asked), right, closed_ends)

    def edges_of(self, dtype: DType, asked: str) -> list[int] | list[float]:
        """The edges in the unit in which the engine holds a column: ticks for times. Errors: WrongType."""
        if kind(dtype) in TIMES:
            return [ticks(edge, dtype, f"{asked}: bins") for edge in self.edges]
        if kind(dtype) not in (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL):
            raise WrongType(
                f"{asked}: needs a number or a time, not a column of type {show(dtype)}."
                f"{cast_first(dtype) or cast_to(dtype, Kind.INTEGER, Kind.DATETIME)}"
            )
        if not all(isinstance(edge, (int, float)) for edge in self.edges):
            raise WrongType(f"{asked}: a column of type {show(dtype)} goes with bins of numbers, such as [0, 18].")
        return [float(edge) for edge in self.edges]

    def facts(self, origin: str) -> ColumnDomain:
        """The domain of the labelled column: its labels are all the keys there are; outside every interval is null."""
        return ColumnDomain(nw.Enum(self.labels), True, None, self.labels, origin)


def _labels(
    points: tuple[Any, ...], labels: Sequence[object] | None, right: bool, closed: bool, asked: str
) -> tuple[str, ...]:
    if labels is None:
        last = len(points) - 2
        pairs = enumerate(pairwise(points))
        if right:
            return tuple(f"{'[' if closed and i == 0 else '('}{number(a)}, {number(b)}]" for i, (a, b) in pairs)
        return tuple(f"[{number(a)}, {number(b)}{']' if closed and i == last else ')'}" for i, (a, b) in pairs)
    listed = isinstance(labels, Iterable) and not isinstance(labels, (str, Mapping))
    labels = tuple(labels) if listed else ()
    if not listed or not all(isinstance(x, str) for x in labels):
        raise InvalidArgument(f"{asked}: labels are a list of texts.")
    if len(labels) != len(points) - 1 or len(set(labels)) != len(labels):
        raise InvalidArgument(f"{asked}: give {len(points) - 1} different labels, one for each interval.")
    return tuple(str(x) for x in labels)
