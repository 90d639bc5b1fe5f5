"""Intervals that someone typed: the bins of a histogram, the classes of
`cut`, and the two limits of a clip.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, InvalidBounds, WrongType, kind_of
from dpframe.plan.columns import ColumnDomain
from dpframe.plan.scalars import check_text, has_zone, kind_of_scalar, number, plain, real, ticks
from dpframe.plan.types import TIMES, Kind, cast_first, cast_to, kind, show
from dpframe.usage import check_flags, is_list


@dataclass(frozen=True)
class Intervals:
    """Adjoining intervals between listed edges, in order, each with a label.

    `right` says which end belongs to an interval. It is the right end as in `pd.cut`, or the left
    end as in `np.histogram`, whose last interval also holds its right end. `closed_ends` includes
    the outermost edge that no interval would hold otherwise.

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
        call: str = "cut",
    ) -> Intervals:
        """Check the edges (finite, strictly increasing, at least two) and the
        labels (one for each interval).
        """
        if not is_list(edges):
            raise InvalidArgument(
                f"{call}: bins are a list of edges, such as [0, 18, 65]; a number of bins would "
                "have to be placed by looking at the data."
            )
        points = tuple(check_bound(e, f"{call}: bins") for e in edges)
        if not all(comparable(a, b) for a, b in pairwise(points)):
            raise InvalidArgument(f"{call}: bins are all numbers, or all times of one kind.")
        if len(points) < 2 or any(a >= b for a, b in pairwise(points)):
            raise InvalidArgument(
                f"{call}: bins need at least two edges, each above the one before."
            )
        check_flags(f"{call}: right= and include_lowest= are True or False.", right, closed_ends)
        return cls(points, _labels(points, labels, right, closed_ends, call), right, closed_ends)

    def edges_of(self, dtype: DType, call: str) -> list[int] | list[float]:
        """The edges in the unit in which the engine holds a column: ticks for times.
        Errors: WrongType.
        """
        if kind(dtype) in TIMES:
            return [ticks(edge, dtype, f"{call}: bins") for edge in self.edges]
        if kind(dtype) not in (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL):
            raise WrongType(
                f"{call}: needs a number or a time, not a column of type {show(dtype)}."
                f"{cast_first(dtype) or cast_to(dtype, Kind.INTEGER, Kind.DATETIME)}"
            )
        if not all(isinstance(edge, (int, float)) for edge in self.edges):
            raise WrongType(
                f"{call}: a column of type {show(dtype)} goes with bins of numbers, such as [0, "
                "18]."
            )
        return [float(edge) for edge in self.edges]

    def domain(self, origin: str) -> ColumnDomain:
        """The domain of the labelled column: its labels are its keys, and a value
        outside every interval is null.
        """
        return ColumnDomain(nw.Enum(self.labels), True, None, self.labels, origin)


def _labels(
    points: tuple[Any, ...],
    labels: Sequence[object] | None,
    right: bool,
    closed_ends: bool,
    call: str,
) -> tuple[str, ...]:
    if labels is None:
        last = len(points) - 2
        pairs = enumerate(pairwise(points))
        if right:
            return tuple(
                f"{'[' if closed_ends and i == 0 else '('}{number(a)}, {number(b)}]"
                for i, (a, b) in pairs
            )
        return tuple(
            f"[{number(a)}, {number(b)}{']' if closed_ends and i == last else ')'}"
            for i, (a, b) in pairs
        )
    texts = tuple(labels) if is_list(labels) else (None,)
    if not all(isinstance(x, str) for x in texts):
        raise InvalidArgument(f"{call}: labels are a list of texts.")
    if len(texts) != len(points) - 1 or len(set(texts)) != len(texts):
        raise InvalidArgument(
            f"{call}: give {len(points) - 1} different labels, one for each interval."
        )
    for text in texts:
        check_text(text, call)
    return tuple(map(str, texts))


def check_bound(value: object, what: str) -> Any:
    """An end of an interval: an int, a finite float, a date, a time or a timedelta.
    Errors: InvalidBounds.
    """
    value = plain(value)
    if isinstance(value, (dt.date, dt.timedelta)):
        return value
    end = real(value)
    if end is None:
        raise InvalidBounds(
            f"{what}: a bound is a number or a time, such as datetime.date(2026, 1, 31), not "
            f"{kind_of(value)}."
        )
    most = 2**64 - 1 if isinstance(end, int) else 1e270
    if not -most <= end <= most:
        raise InvalidBounds(
            f"{what}: a bound must be finite and at most 1e270; a whole number must fit in 64 "
            "bits. Give one such as 1e270."
        )
    return end


def comparable(first: object, second: object) -> bool:
    """Whether two ends can be ordered: two numbers, or two times of one kind,
    both with a zone or both without.
    """
    kinds = [kind_of_scalar(x) for x in (first, second)]
    zones = [has_zone(x) for x in (first, second)]
    return (kinds[0] == kinds[1] or set(kinds) == {Kind.INTEGER, Kind.FLOAT}) and zones[0] == zones[
        1
    ]


def check_interval(lower: object, upper: object, what: str) -> tuple[Any, Any]:
    """The two ends of an interval, in order. One of them may be open (None).
    Errors: InvalidBounds.
    """
    low = None if lower is None else check_bound(lower, what)
    high = None if upper is None else check_bound(upper, what)
    if low is None and high is None:
        raise InvalidBounds(f"{what}: give a lower bound, an upper bound, or both.")
    if low is not None and high is not None and not comparable(low, high):
        raise InvalidBounds(f"{what}: the two bounds are two numbers, or two times of one kind.")
    if low is not None and high is not None and low > high:
        raise InvalidBounds(
            f"{what}: the lower bound {number(low)} is above the upper bound {number(high)}."
        )
    return low, high


def intervals_of(bins: Sequence[Any], underflow: bool, overflow: bool, call: str) -> Intervals:
    """The intervals of a histogram, with one below the edges
    (`underflow`) and one above (`overflow`).
    """
    check_flags(f"{call}: underflow= and overflow= are True or False.", underflow, overflow)
    inner = Intervals.of(bins, right=False, closed_ends=not overflow, call=call)
    if not underflow and not overflow:
        return inner
    first, last = inner.edges[0], inner.edges[-1]
    if not isinstance(first, (int, float)):
        raise InvalidArgument(f"{call}: underflow= and overflow= go with bins of numbers.")
    edges, labels = inner.edges, inner.labels
    if underflow:
        edges, labels = (-math.inf, *edges), (f"< {number(first)}", *labels)
    if overflow:
        edges, labels = (*edges, math.inf), (*labels, f"≥ {number(last)}")
    return Intervals(edges, labels, right=False, closed_ends=True)
