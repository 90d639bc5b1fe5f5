"""Tables of units, and their totals by group under limits on each unit: the steps of a question about a dataframe.

A row is (unit, key) or (unit, key, value). A distance counts the units whose rows all enter or all leave. Weights limit
a unit's rows, and no row is left out: if a unit has n rows in a group and k are allowed, each row has the weight k/n.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from dpframe.errors import DomainMismatch, InvalidArgument, MetricMismatch
from dpframe.theory.calls import ordered
from dpframe.theory.datasets import plain_value
from dpframe.theory.exact import Real, exact
from dpframe.theory.formulas.sensitivity import Contribution, Sensitivity, row_counts, unit_counts
from dpframe.theory.formulas.sensitivity.grouped import row_sums
from dpframe.theory.formulas.sensitivity.sum_and_count import paired_l1
from dpframe.theory.framework import Transformation
from dpframe.theory.spaces import (
    AtomDomain,
    Domain,
    L1Distance,
    MapDomain,
    Metric,
    TupleDomain,
    UnitDistance,
    VectorDomain,
)
from dpframe.theory.transformations.counting import reading

_GRID = 1 << 20  # The weighted total of a unit in a group is rounded toward zero to a multiple of 1/_GRID.

Totals = dict[object, Any]


@ordered
def grouped_units(
    input_domain: Domain,
    input_metric: Metric,
    max_groups: int,
    output_metric: Metric | None = None,
    keys: Iterable[object] | None = None,
) -> Transformation:
    """The number of units in each group. Each unit is counted in at most `max_groups` groups.

    Input:  tables of rows (unit, key, …): VectorDomain(TupleDomain(unit, key, …)) under UnitDistance(); max_groups: the
            largest number of groups in which one unit is counted (at least 1), chosen by a secret hash of unit and
            key; keys: the groups, if they are public. output_metric as in `count_by`, L1Distance() by default
    Output: mapping from key to units (int)
    Bound:  the sensitivity of `unit_counts`, for each unit that joins or leaves
    Source: `grouped.unit_counts`, which the dataframe tracker calls too
    Errors: InvalidArgument for the limits; DomainMismatch, MetricMismatch

    >>> rows = VectorDomain(TupleDomain(AtomDomain(int), AtomDomain(str)))
    >>> t = grouped_units(rows, UnitDistance(), max_groups=2)
    >>> t([(1, "a"), (1, "a"), (2, "a")]), t.map(1)
    ({'a': 2}, 2)
    """
    limits = _limits(max_groups, 1)
    return _grouped(
        (input_domain, input_metric, "grouped_units", keys, output_metric),
        limits.groups,
        AtomDomain(int),
        lambda rows: 1,
        unit_counts(limits.groups, "add-remove", _cells(keys)),
    )


@ordered
def grouped_counts(
    input_domain: Domain,
    input_metric: Metric,
    max_groups: int,
    max_rows_per_group: int,
    output_metric: Metric | None = None,
    keys: Iterable[object] | None = None,
) -> Transformation:
    """The number of rows in each group, with limits on the groups of a unit and on its rows in each group.

    Input:  as in `grouped_units`; max_rows_per_group (count, at least 1): a unit adds at most this to a group's count
    Output: mapping from key to rows (int)
    Bound:  the sensitivity of `row_counts`, for each unit that joins or leaves
    Source: `grouped.row_counts`, which the dataframe tracker calls too
    Errors: as `grouped_units`

    >>> rows = VectorDomain(TupleDomain(AtomDomain(int), AtomDomain(str)))
    >>> t = grouped_counts(rows, UnitDistance(), max_groups=2, max_rows_per_group=3)
    >>> t([(1, "a")] * 5 + [(2, "a")]), t.map(1)
    ({'a': 4}, 6)
    """
    limits = _limits(max_groups, max_rows_per_group)
    return _grouped(
        (input_domain, input_metric, "grouped_counts", keys, output_metric),
        limits.groups,
        AtomDomain(int),
        lambda rows: min(len(rows), limits.rows_per_group),
        row_counts(limits, "add-remove", _cells(keys)),
    )


@ordered
def grouped_sums(
    input_domain: Domain,
    input_metric: Metric,
    max_groups: int,
    max_rows_per_group: int,
    bounds: tuple[Real, Real],
    output_metric: Metric | None = None,
    keys: Iterable[object] | None = None,
) -> Transformation:
    """The sum of the third column in each group, with limits as in `grouped_counts`.

    Input:  tables of rows (unit, key, value); values are clamped to bounds (L, U)
    Output: mapping from key to the sum (float, a multiple of 2^-20). If a unit has n rows in a group and only k < n are
            allowed, its sum is multiplied by k/n; then it is rounded toward zero
    Bound:  the sensitivity of `row_sums`, for each unit that joins or leaves. Rounding toward zero never makes a unit's
            part larger
    Source: `grouped.row_sums`, which the dataframe tracker calls too
    Errors: as `grouped_units`

    >>> rows = VectorDomain(TupleDomain(AtomDomain(int), AtomDomain(str), AtomDomain(float)))
    >>> t = grouped_sums(rows, UnitDistance(), max_groups=2, max_rows_per_group=3, bounds=(0, 100))
    >>> t([(1, "a", 500.0), (2, "a", 7.5)]), t.map(1)
    ({'a': 107.5}, 600)
    """
    limits, (lower, upper) = _limits(max_groups, max_rows_per_group), _bounds(bounds)
    return _grouped(
        (input_domain, input_metric, "grouped_sums", keys, output_metric),
        limits.groups,
        AtomDomain(float),
        lambda rows: _weighted_sum(rows, limits.rows_per_group, lower, upper),
        row_sums(limits, lower, upper, "add-remove", _cells(keys)),
        columns=3,
    )


@ordered
def grouped_pairs(
    input_domain: Domain,
    input_metric: Metric,
    max_groups: int,
    max_rows_per_group: int,
    bounds: tuple[Real, Real],
    keys: Iterable[object] | None = None,
) -> Transformation:
    """For a mean: h·N + S and h·N - S in each group, where N counts values in [-h, h] and S is their sum.

    Input:  as in `grouped_sums`; bounds (-h, h): values are measured from the middle of their bounds
    Output: mapping from "+key" to h·N + S and from "-key" to h·N - S of each group (floats), under L1Distance(); with
            public keys the output domain lists them
    Bound:  2·h·(rows of a unit): each value x adds h + x to the first total and h - x to the second, together 2h
    Source: `pairs.paired_l1`, which the dataframe tracker calls too
    Errors: as `grouped_units`; InvalidArgument for bounds that are not -h and h

    >>> rows = VectorDomain(TupleDomain(AtomDomain(int), AtomDomain(str), AtomDomain(float)))
    >>> t = grouped_pairs(rows, UnitDistance(), 2, 3, bounds=(-50, 50), keys=["a", "b"])
    >>> t([(1, "a", 10.0), (2, "a", -20.0)]), t.map(1)
    ({'+a': 90.0, '-a': 110.0}, 600)
    """
    lower, upper = _bounds(bounds)
    if lower != -upper:
        raise InvalidArgument(
            f"grouped_pairs: bounds={bounds!r} are not -h and h. Measure values from the middle of their bounds and "
            "type bounds=(-h, h)."
        )
    names = None if keys is None else list(keys)
    limits = _limits(max_groups, max_rows_per_group)
    counts = grouped_sums(input_domain, input_metric, max_groups, max_rows_per_group, bounds, keys=names)
    salted = counts.function

    def run(table: Iterable[Sequence[Any]]) -> Totals:
        sums = salted(table)
        rows = salted([(u, k, float(upper)) for u, k, _ in table])  # h·N, with the choice of groups that the sums have
        return {f"{sign}{k}": rows[k] + (v if sign == "+" else -v) for sign in "+-" for k, v in sums.items()}

    public = None if names is None else [f"{sign}{k}" for sign in "+-" for k in names]
    total = row_sums(limits, lower, upper, "add-remove", _cells(names))
    return Transformation(
        input_domain,
        input_metric,
        MapDomain(AtomDomain(str), AtomDomain(float), public),
        L1Distance(),
        run,
        lambda d_in: d_in * paired_l1(total),
    )


def _grouped(
    call: tuple[Domain, Metric, str, Iterable[object] | None, Metric | None],
    max_groups: int,
    value: AtomDomain,
    part: Callable[[list[Any]], int | Fraction],
    per_unit: Sensitivity,
    columns: int = 2,
) -> Transformation:
    """The transformation that adds up the units' parts in each group, for the groups in which a unit is counted."""
    domain, metric, name, keys, output_metric = call
    row = domain.element_domain if isinstance(domain, VectorDomain) else None
    if (
        not isinstance(row, TupleDomain)
        or len(row.domains) < columns
        or any(getattr(d, "nan", False) for d in row.domains)
    ):
        raise DomainMismatch(
            f"{name}: the input domain is {domain!r}; it works on tables of rows without NaN. Type "
            f"VectorDomain(TupleDomain(AtomDomain(int), AtomDomain(str){', AtomDomain(float)' * (columns > 2)}))."
        )
    if metric != UnitDistance():
        raise MetricMismatch(f"{name}: the input metric is {metric!r}; it counts units: UnitDistance().")
    output = MapDomain(row.domains[1], value, keys)  # type: ignore[arg-type]  # it refuses any other domain
    compared = L1Distance() if output_metric is None else output_metric
    distance_of, salt = reading(compared, name), os.urandom(16)
    public = None if output.keys is None else set(output.keys)

    def run(table: Iterable[Sequence[Any]]) -> Totals:
        units: dict[object, dict[object, list[object]]] = defaultdict(lambda: defaultdict(list))
        for unit, key, *value_column in table:
            if public is None or key in public:
                units[unit][key].append(value_column[0] if value_column else None)
        totals: Totals = defaultdict(Fraction)
        for unit, groups in units.items():
            for key in _kept(unit, groups, max_groups, salt):
                totals[key] += part(groups[key])
        return {k: int(v) if value.is_integer else float(v) for k, v in totals.items()}

    def change(d_in: int) -> object:
        return distance_of(
            Sensitivity(
                d_in * per_unit.l0, d_in * per_unit.exact_l1, d_in**2 * per_unit.l2_squared, d_in * per_unit.exact_linf
            )
        )

    return Transformation(domain, metric, output, compared, run, change)


def _kept(unit: object, groups: Iterable[object], limit: int, salt: bytes) -> list[object]:
    """The groups in which a unit is counted: those with the smallest hashes of (unit, key)."""
    ranked = sorted(
        (hashlib.blake2b(repr((plain_value(unit), plain_value(k))).encode(), key=salt).digest(), i, k)
        for i, k in enumerate(groups)
    )
    return [k for _, _, k in ranked[:limit]]


def _weighted_sum(values: list[float], most: int, lower: Fraction, upper: Fraction) -> Fraction:
    """The sum of n clamped values, times most/n if n is above `most`; rounded toward zero to the grid."""
    total = sum((max(lower, min(upper, Fraction(v))) for v in values), Fraction(0))
    return Fraction(math.trunc(total * min(Fraction(1), Fraction(most, len(values))) * _GRID), _GRID)


def _limits(max_groups: int, rows: int) -> Contribution:
    for name, value in (("max_groups", max_groups), ("max_rows_per_group", rows)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidArgument(f"{name}={value!r} is a whole number of at least 1.")
    return Contribution(groups=max_groups, rows_per_group=rows, rows=max_groups * rows)


def _cells(keys: Iterable[object] | None) -> int | None:
    return None if keys is None else len(list(keys))


def _bounds(bounds: object) -> tuple[Fraction, Fraction]:
    if (
        not isinstance(bounds, tuple | list)
        or len(bounds) != 2
        or exact(bounds[0], "lower") > exact(bounds[1], "upper")
    ):
        raise InvalidArgument(f"bounds={bounds!r}: give a pair (lower, upper).")
    return exact(bounds[0], "lower"), exact(bounds[1], "upper")
