"""Combinators: several measurements on the same data (compose) or on its parts (parallel)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.errors import DomainMismatch, InvalidArgument, MetricMismatch
from dpframe.theory.datasets import Vector, like, relation_of
from dpframe.theory.formulas.sensitivity import Relation
from dpframe.theory.framework import Measurement
from dpframe.theory.spaces import (
    Approximate,
    Domain,
    MaxDivergence,
    Measure,
    Metric,
    TupleDomain,
    VectorDomain,
    ZeroConcentratedDivergence,
)
from dpframe.usage import is_integer


def _measurements(arguments: tuple[Any, ...], name: str) -> list[Measurement]:
    """The measurements as a list, with one input metric and one output measure."""
    flat = (
        list(arguments[0])
        if len(arguments) == 1 and isinstance(arguments[0], Iterable)
        else list(arguments)
    )
    if not flat or not all(isinstance(m, Measurement) for m in flat):
        raise InvalidArgument(f"{name}: give one or more measurements.")
    first = flat[0]
    for m in flat[1:]:
        if m.input_metric != first.input_metric:
            raise MetricMismatch(
                f"{name}: one input metric is {first.input_metric!r}, another is "
                f"{m.input_metric!r}."
            )
        if m.output_measure != first.output_measure:
            raise MetricMismatch(
                f"{name}: one output measure is {first.output_measure!r}, another is "
                f"{m.output_measure!r}; convert them first (pure_to_zcdp, pure_to_approx, "
                "zcdp_to_approx, fix_delta)."
            )
    return flat


def _common_domain(parts: list[Measurement], name: str) -> Domain:
    """The narrowest input domain, if all others hold it. Errors: DomainMismatch."""
    for candidate in parts:
        if all(candidate.input_domain.within(p.input_domain) for p in parts):
            return candidate.input_domain
    different = next(p for p in parts if p.input_domain != parts[0].input_domain)
    raise DomainMismatch(
        f"{name}: one input domain is {parts[0].input_domain!r}, another is "
        f"{different.input_domain!r}; all run on the same data."
    )


def compose(*measurements: Measurement | Iterable[Measurement]) -> Measurement:
    """Run several measurements on the same data and list their answers (sequential composition).

    Input:  measurements, or one list of them, with the same input domain, input metric and output
            measure
    Output: list of answers, in order
    Bound:  losses add up: ε, ρ, Rényi curves, and pairs part by part (δ at most 1). The sum is
            exact, then rounded up
    Source: Dwork et al. 2006; Bun and Steinke 2016, lemma 1.7 for ρ; Mironov 2017, proposition 1
            for Rényi
    Errors: InvalidArgument for no measurement; DomainMismatch, MetricMismatch

    >>> from dpframe.theory import AbsoluteDistance, AtomDomain, laplace
    >>> m = laplace(AtomDomain(int), AbsoluteDistance(), scale=10)
    >>> compose([m] * 3).map(1)
    0.3
    """
    parts = _measurements(measurements, "compose")
    measure = parts[0].output_measure

    def run(data: object) -> list[object]:
        return [m.function(data) for m in parts]

    return Measurement(
        _common_domain(parts, "compose"),
        parts[0].input_metric,
        measure,
        run,
        lambda d_in: measure.add([m.exact_map(d_in) for m in parts]),
    )


def _split(data: Vector, by: Callable[[Any], int], parts: int) -> list[Any]:
    """The records of each part; `by` gives the index of a record's part."""
    records: list[list[object]] = [[] for _ in range(parts)]
    for record in data.tolist() if hasattr(data, "tolist") else data:
        part = by(record)
        if is_integer(part, 0, parts - 1):
            records[int(part)].append(record)
    return [like(np.array(r), data) if isinstance(data, np.ndarray) else r for r in records]


def parallel(
    *measurements: Measurement | Iterable[Measurement], by: Callable[[Any], int] | None = None
) -> Measurement:
    """Run one measurement on each part of a partitioned dataset (parallel composition).

    Input:  measurements, or one list of them, under SymmetricDistance() or InsertDeleteDistance(),
            each on a dataset. Without `by` the input is a list with one dataset per part. With
            `by`, a function from a record to the index of its part, it is one dataset, which is
            split; records with another index are in no part
    Output: list of answers, one per part
    Bound:  a record is in one part only. If d_in records enter or leave, they split as d_1 + … +
            d_k = d_in over the parts. The loss is at most the largest sum of the parts' losses over
            all these splits, which is computed exactly; for d_in = 1 it is the largest single loss.
            The distance between two lists of datasets is the sum of the distances of their parts
    Source: McSherry 2009, doi:10.1145/1559845.1559850, theorem 4; the maximum over splits is
            elementary
    Errors: InvalidArgument; MetricMismatch under a replacement metric, where a record can move
            between parts. A replacement is then a removal and an addition: chain from a dataset
            metric that adds and removes, at 2·d_in

    >>> from dpframe.theory import AtomDomain, SymmetricDistance, VectorDomain, count, laplace
    >>> c = count(VectorDomain(AtomDomain(int)), SymmetricDistance())
    >>> noisy = c >> laplace(*c.output_space, scale=2)
    >>> parallel([noisy] * 10).map(1)
    0.5
    """
    parts = _measurements(measurements, "parallel")
    metric = parts[0].input_metric
    if relation_of(metric, "parallel") != Relation.ADD_REMOVE:
        raise MetricMismatch(
            f"parallel: the input metric is {metric!r}; a record that is replaced can leave one "
            "part and enter another. Use SymmetricDistance(), with 2·d_in."
        )
    measure = parts[0].output_measure
    domains = [m.input_domain for m in parts]
    for d in domains:
        if not isinstance(d, VectorDomain) or d.size is not None:
            raise DomainMismatch(
                f"parallel: an input domain is {d!r}; parts are datasets whose size is not public."
            )

    def run(datasets: Iterable[object]) -> list[object]:
        return [m.function(d) for m, d in zip(parts, datasets, strict=True)]

    def privacy_map(d_in: Any) -> Any:
        return _largest_split([[m.exact_map(d) for d in range(d_in + 1)] for m in parts], measure)

    if by is None:
        return Measurement(TupleDomain(*domains), _SumOverParts(metric), measure, run, privacy_map)
    split = by

    def run_split(data: Vector) -> list[object]:
        return run(_split(data, split, len(parts)))

    return Measurement(_common_domain(parts, "parallel"), metric, measure, run_split, privacy_map)


@dataclass(frozen=True)
class _SumOverParts(Metric):
    """The distance between two lists of datasets: the sum of the distances of their parts."""

    inner_metric: Metric

    def distance(self, a: Any, b: Any) -> int:
        """The number of records that differ, over all parts."""
        return sum(self.inner_metric.distance(x, y) for x, y in zip(a, b, strict=True))

    def parse(self, distance: object, name: str = "d_in") -> Any:
        """As that of a part."""
        return self.inner_metric.parse(distance, name)

    def show(self, distance: Any) -> Any:
        """As that of a part."""
        return self.inner_metric.show(distance)


def _largest_split(losses: list[list[Any]], measure: Measure) -> Any:
    """The largest total loss over all ways to split d_in among the parts: losses[part][d]."""
    if isinstance(measure, Approximate):
        pairs = [[measure.parse(x) for x in row] for row in losses]
        inner = _largest_split([[x[0] for x in row] for row in pairs], measure.inner_measure)
        return inner, min(
            Fraction(1), _largest_split([[x[1] for x in row] for row in pairs], MaxDivergence())
        )
    if not isinstance(measure, MaxDivergence | ZeroConcentratedDivergence):
        raise InvalidArgument(
            f"parallel: losses of {measure!r} are not numbers; fix a δ or an order first."
        )
    best = [measure.parse(x) for x in losses[0]]
    for row in losses[1:]:
        values = [measure.parse(x) for x in row]
        best = [max(best[d - k] + values[k] for k in range(d + 1)) for d in range(len(best))]
    return best[-1]
