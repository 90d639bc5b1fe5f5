"""Sensitivity by brute force: the largest change over every dataset of a
small universe and every neighbour.

It is a lower bound on the true sensitivity, and exact for datasets of this universe. The tests of
this package compare the maps of `dpframe.theory` with it.
"""

from __future__ import annotations

import contextlib
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.progress import watched
from dpframe.theory.checks.common_part import Ask, NotNumbersError, common_part_work, largest_number
from dpframe.theory.checks.universes import Universe
from dpframe.theory.formulas.sensitivity import Relation, Sensitivity
from dpframe.theory.framework import Transformation
from dpframe.theory.spaces import AbsoluteDistance, L1Distance, Metric
from dpframe.usage import is_list, read_whole

Answer = Any  # of a query; or the distance of two answers, in whatever a metric gives
Query = Any  # a function of a dataset, a Transformation, a `TableQuery`, or the name of a statistic
Compare = Callable[[Answer, Answer], Answer]
Norms = tuple[int, Fraction, Fraction, Fraction]  # l0, l1, l2², linf
Records = Any  # a sequence, a mapping of columns, or a table with columns


@runtime_checkable
class TableQuery(Protocol):
    """A question about a table that can be asked of any other table with
    the same columns, without noise.

    >>> import polars as pl, dpframe as dp
    >>> rows = pl.DataFrame({"user": [1, 1, 2]})
    >>> query = rows.dp(unit="user").count(max_rows=1)  # is one
    >>> query.unit_columns, query.exact_totals(rows)["count"]
    (('user',), {(): Fraction(2, 1)})
    """

    @property
    def unit_columns(self) -> tuple[str, ...]:
        """The columns that identify the unit of a row; empty if each row is a unit of its own."""
        ...

    def exact_totals(self, table: Any) -> Mapping[str, Mapping[Any, int | Fraction]]:
        """The exact totals of a pandas DataFrame with the protected columns: {name
        of a total: {group key: value}}.
        """
        ...


def empirical_sensitivity(
    query: Query,
    universe: object,
    size: int,
    distance: int = 1,
    neighbors: str = "add-remove",
    *,
    replacement: bool = False,
    metric: Metric | None = None,
    progress: bool | None = None,
    limit: int = 5_000_000,
) -> Answer:
    """The largest change of a query between neighbouring datasets, by trying all of them.

    Input:  query: a function of a dataset; "count", "sum", "mean", "median", "min", "max", "var",
            "std" (the last two divide by n) or "percentile 25" (linear between records), which like
            `np.mean` are computed exactly; a Transformation, which is applied to members of its
            input domain; or a query of this library (`TableQuery`). universe: the records to draw
            from. From a sequence each record is drawn at most once (equal records as often as they
            are listed); with `replacement=True` each value may be drawn up to `size` times. From a
            mapping {name: records} each entry is used separately, and so are the columns of a
            DataFrame if the query is a name; otherwise the query gets DataFrames. size: records per
            dataset; distance: the largest number of records added or removed
            (neighbors="add-remove") or replaced ("replace"); metric: how two answers are compared
            (|a - b|, or L1Distance() for vectors); progress: True, False, or None, which shows a
            line on an interactive standard error if it takes long; limit: the largest number of
            comparisons
    Output: float, in the unit of the answers; a mapping if there are several columns; for a
            `TableQuery` a mapping from the name of each noisy total to its Sensitivity, where
            `size` counts units and a neighbour has one unit more or less
    Bound:  the maximum of metric.distance(query(D), query(D')) over all D with `size` records and
            all D' within the distance. Datasets are left out if the answer is NaN, or if they are
            empty and the query fails
    Source: by definition of global sensitivity, Dwork, McSherry, Nissim and Smith 2006
    Errors: InvalidArgument; UnsupportedOperation, which states the number of datasets, when there
            are too many to try

    >>> empirical_sensitivity("sum", [1, 2, 3, 4], size=3)
    4.0
    >>> empirical_sensitivity("median", [1, 2, 3, 10], size=3, neighbors="replace")
    1.0
    """
    relation = _relation(neighbors)
    sentence = f"distance={distance!r}: neighbours differ in a whole number of records, at least 1."
    search = _Search(read_whole(distance, 1, math.inf, sentence), relation, progress, limit)
    if isinstance(query, TableQuery):
        return _table_sensitivity(query, universe, size, search)
    columns = (
        _columns(universe) if isinstance(query, str) or isinstance(universe, Mapping) else None
    )
    sampling = size, replacement
    if columns is None:
        return _of_records(query, *_records(universe), sampling, metric, search)
    return {
        name: _of_records(query, *_records(values), sampling, metric, search)
        for name, values in columns.items()
    }


def _of_records(
    query: Query,
    records: list[object],
    shape: Callable[[list[object]], Records],
    sampling: tuple[int, bool],
    metric: Metric | None,
    search: _Search,
) -> Answer:
    """The largest change of a query over datasets of these records."""
    exact = None if isinstance(query, Transformation) else exact_statistic(query)
    if exact is not None:
        records, shape = [_exactly(r) for r in records], list
    every = Universe.of(records, *sampling)
    ask, compare = _asked(query if exact is None else exact, metric)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # Queries of empty or tiny datasets warn and return NaN.
        warnings.simplefilter("ignore", RuntimeWarning)
        largest = search.answered(every, lambda rows: ask(shape(rows)), compare)
    if largest is None:
        raise InvalidArgument(
            "empirical_sensitivity: no two neighbours have a defined answer; is the universe too "
            "small?"
        )
    return largest


def _relation(neighbors: str) -> Relation:
    try:
        return Relation(neighbors)
    except ValueError:
        raise InvalidArgument(
            f'neighbors={neighbors!r}: it is "add-remove" or "replace".'
        ) from None


# The universe


def _columns(universe: Records) -> dict[str, list[object]] | None:
    """The columns of a mapping or a DataFrame; None for a sequence of records."""
    if isinstance(universe, Mapping):
        return {str(k): list(v) for k, v in universe.items()}
    if hasattr(universe, "columns") and hasattr(universe, "__getitem__"):
        return {str(c): list(universe[c]) for c in universe.columns}
    return None


def _records(universe: Records) -> tuple[list[Any], Callable[[list[Any]], Records]]:
    """The records, and the function that turns some of them into a dataset:
    a frame, an array of numbers, or a list.
    """
    columns = _columns(universe)
    if columns is not None:
        names = list(columns)
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        make = type(universe)
        return rows, lambda part: make({n: [r[n] for r in part] for n in names})
    if not is_list(universe):
        raise InvalidArgument(f"universe={universe!r}: give the records to draw from.")
    rows = [r.item() if hasattr(r, "item") else r for r in universe]
    if rows and all(isinstance(r, int | float) for r in rows):
        return rows, np.array
    return rows, list


# The query


def _asked(query: Query, metric: Metric | None) -> tuple[Callable[[object], Answer], Compare]:
    """The query as a function that returns None if it is undefined, and the
    function that compares two answers.
    """
    if isinstance(query, Transformation):
        compare = (metric or query.output_metric).distance
        return lambda data: query.invoke(data) if query.input_domain.member(data) else None, compare
    if not callable(query):
        raise InvalidArgument(
            f"query={query!r}: give a function of a dataset, or the name of a statistic."
        )

    def ask(data: Any) -> object:
        if len(data) > 0:
            return _defined(query(data))
        try:
            return _defined(query(data))
        except (ValueError, IndexError, ArithmeticError):
            return None

    return ask, metric.distance if metric is not None else _difference


def _exactly(value: object) -> int | Fraction:
    match value:
        case bool() | int() | np.integer():
            return int(value)
        case float() | np.floating() if math.isfinite(value):
            return Fraction(float(value))
    raise InvalidArgument(
        "empirical_sensitivity: this statistic is of finite numbers; the universe has something "
        "else."
    )


def _defined(answer: Answer) -> object:
    match answer:
        case None | int() | Fraction() | Mapping():
            return answer
    if hasattr(answer, "to_numpy"):
        answer = answer.to_numpy()
    if np.ndim(answer) == 0:
        number = answer.item() if hasattr(answer, "item") else answer
        return None if isinstance(number, float) and math.isnan(number) else number
    flat = np.asarray(answer, dtype=float).ravel()
    return None if np.isnan(flat).any() else flat


def _difference(a: Answer, b: Answer) -> float:
    if isinstance(a, Mapping) or np.ndim(a) > 0:
        return float(L1Distance().distance(a, b))
    return float(abs(a - b))


# The search


@dataclass(frozen=True)
class _Search:
    """The search over neighbouring datasets: their relation, a line of
    progress, and the most comparisons.
    """

    distance: int
    relation: Relation
    progress: bool | None
    limit: int

    def answered(self, every: Universe, ask: Ask, compare: Compare) -> Answer:
        """The largest change: for numbers by common parts, for other answers by
        trying every pair of neighbours.
        """
        numbers = compare is _difference or isinstance(
            getattr(compare, "__self__", None), AbsoluteDistance
        )
        if numbers and common_part_work(every, self.distance, self.relation) <= self.limit:
            with contextlib.suppress(NotNumbersError):
                change = largest_number(every, self.distance, self.relation, ask, self.progress)
                return None if change is None else compare(change, 0)
        return self.largest(every, ask, compare)

    def largest(self, every: Universe, ask: Ask, compare: Compare) -> Answer:
        """The largest distance between answers of neighbours;
        None if no two neighbours have an answer.

        Errors: UnsupportedOperation where there are too many
        """
        changes = every.changes(self.distance, self.relation)
        if every.datasets * (changes + 1) > self.limit:
            raise UnsupportedOperation(
                f"empirical_sensitivity: there are {every.datasets} datasets of {every.size} "
                f"records, each with up to {changes} neighbours; that is more than "
                f"limit={self.limit} comparisons and would take too long. Make the universe, the "
                "size or the distance smaller, or raise limit=."
            )
        answer = cache(lambda counts: ask(every.records(counts)))
        largest: Answer = None
        for dataset in watched(every, every.datasets, "datasets", self.progress):
            if (own_answer := answer(dataset)) is None:
                continue
            for neighbour in every.neighbours(dataset, self.distance, self.relation):
                if (neighbour_answer := answer(neighbour)) is not None:
                    change = compare(own_answer, neighbour_answer)
                    largest = change if largest is None else _greater(largest, change)
        return largest


def _greater(a: Answer, b: Answer) -> Answer:
    """The larger of two distances; for tuples and mappings the larger of each part."""
    match a:
        case Mapping():
            return {name: _greater(part, b[name]) for name, part in a.items()}
        case tuple():
            return type(a)(max(x, y) for x, y in zip(a, b, strict=True))
    return max(a, b)


def _table_sensitivity(
    query: TableQuery, universe: Records, size: int, search: _Search
) -> dict[str, Sensitivity]:
    """For each noisy total, the largest l0, l1, l2 and linf between
    tables that differ in whole units.
    """
    import pandas as pd

    columns = _columns(universe)
    if columns is None:
        raise InvalidArgument(
            "universe: a query of a table needs rows with columns: a DataFrame, or a mapping."
        )
    rows = pd.DataFrame(columns)
    owners = list(query.unit_columns)
    places: list[Sequence[int]]
    places = (
        [list(p) for p in rows.groupby(owners, sort=False).indices.values()]
        if owners
        else [[i] for i in range(len(rows))]
    )
    every = Universe.of(range(len(places)), size)

    def ask(units: list[int]) -> object:
        return query.exact_totals(
            rows.iloc[[i for u in units for i in places[u]]].reset_index(drop=True)
        )

    in_both: frozenset[str] = getattr(query, "only_in_both", frozenset())
    largest = search.largest(every, ask, partial(_sensitivities, in_both=in_both))
    if largest is None:
        raise InvalidArgument(
            "empirical_sensitivity: there are no two neighbours; is the universe too small?"
        )
    return {
        name: Sensitivity.of(l0=part[0], l1=part[1], l2_squared=part[2], linf=part[3])
        for name, part in largest.items()
    }


def _sensitivities(a: Answer, b: Answer, in_both: frozenset[str]) -> dict[str, Norms]:
    """(l0, l1, l2², linf) between two answers, for each noisy total."""
    return {name: distances(a[name], b[name], in_both=name in in_both) for name in a}


def distances(a: Mapping[Any, Any], b: Mapping[Any, Any], *, in_both: bool = False) -> Norms:
    """(l0, l1, l2², linf) between two answers by group, exact.

    A group that is missing counts as 0. With `in_both`, a group that one answer lacks is an event
    of keys, which δ pays for, and no distance.
    """
    groups = [k for k in {**a, **b} if not in_both or (k in a and k in b)]
    parts = [abs(Fraction(a.get(k, 0)) - Fraction(b.get(k, 0))) for k in groups]
    return (
        sum(1 for p in parts if p),
        sum(parts, Fraction(0)),
        sum((p * p for p in parts), Fraction(0)),
        max(parts, default=Fraction(0)),
    )


Number = int | Fraction
Statistic = Callable[[Sequence[Number]], Any]


def _mean(x: Sequence[Number]) -> Fraction:
    return Fraction(sum(x), len(x))


def _var(x: Sequence[Number]) -> Fraction:
    total, count = sum(x), len(x)
    return Fraction(count * sum(v * v for v in x) - total * total, count * count)


def _percentile(x: Sequence[Number], percent: Fraction) -> Fraction:
    ordered = sorted(x)
    parts = 100 * percent.denominator
    below, remainder = divmod(percent.numerator * (len(x) - 1), parts)
    above = min(below + 1, len(x) - 1)
    return Fraction(ordered[below] * parts + remainder * (ordered[above] - ordered[below]), parts)


_NAMED: dict[str, Statistic] = {
    "count": len,
    "sum": sum,
    "mean": _mean,
    "median": lambda x: _percentile(x, Fraction(50)),
    "min": min,
    "max": max,
    "var": _var,
    "std": lambda x: math.sqrt(_var(x)),
}
_NUMPY: dict[Any, str] = {
    np.sum: "sum",
    np.mean: "mean",
    np.median: "median",
    np.min: "min",
    np.max: "max",
    np.var: "var",
    np.std: "std",
}


def exact_statistic(query: Query) -> Statistic | None:
    """The exact function for a statistic's name or its numpy function; None for any other function.

    No rounding of floats then affects a largest change.

    Input:  "count", "sum", "mean", "median", "min", "max", "var", "std", "percentile 25", or
            `np.mean` and its like
    Output: function of exact numbers. Percentiles interpolate linearly between records; variance
            and standard deviation divide by n, as numpy does. It fails on an empty dataset where it
            is undefined
    Errors: InvalidArgument for another name

    >>> exact_statistic("percentile 25")([1, 2, 4])
    Fraction(3, 2)
    """
    if not isinstance(query, str):
        try:
            return _NAMED[_NUMPY[query]] if query in _NUMPY else None
        except TypeError:
            return None
    percentile = re.fullmatch(r"(?:percentile|p)[ _]?(\d+(?:\.\d+)?)", query)
    if percentile and float(percentile[1]) <= 100:
        percent = Fraction(percentile[1])
        return lambda x: _percentile(x, percent)
    if query not in _NAMED:
        raise InvalidArgument(
            f'query={query!r}: it is one of {", ".join(map(repr, _NAMED))}, or "percentile 25".'
        )
    return _NAMED[query]
