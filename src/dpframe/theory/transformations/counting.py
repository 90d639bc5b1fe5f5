"""Transformations to counts: histogram (public categories) and count_by (any keys)."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

from dpframe.arrays import NUMERIC
from dpframe.errors import DomainMismatch, InvalidArgument, MetricMismatch
from dpframe.theory.calls import ordered
from dpframe.theory.datasets import Vector, as_array, dataset
from dpframe.theory.formulas.sensitivity import Relation
from dpframe.theory.formulas.sensitivity import vectors as statistics
from dpframe.theory.framework import Transformation
from dpframe.theory.spaces import (
    AbsoluteDistance,
    AtomDomain,
    Domain,
    L01InfDistance,
    L1Distance,
    MapDomain,
    Metric,
    VectorDomain,
)


def _map(
    metric: Metric, relation: Relation, size: int | None, cells: int | None, name: str
) -> Callable[[int], object]:
    """The map to this metric's distance of counts. Errors: MetricMismatch."""
    if metric.of(statistics.cell_counts(0, relation, size, cells)) is None:
        raise MetricMismatch(
            f"{name}: output_metric={metric!r}; counts are compared by L1Distance(), L2Distance(), "
            "LinfDistance(), L01InfDistance() or L02InfDistance()."
        )
    return lambda d_in: metric.of(statistics.cell_counts(d_in, relation, size, cells))


@ordered
def histogram(
    input_domain: Domain,
    input_metric: Metric,
    categories: Iterable[object] | None = None,
    bins: Iterable[float] | None = None,
    output_metric: Metric | None = None,
    null_category: bool = True,
) -> Transformation:
    """The number of records in each of some public categories, or of some public bins.

    Input:  vectors of any type. Either `categories`, the distinct values to count, or `bins`,
            increasing edges e0 < e1 < … < ek of the intervals [e0, e1), …, [e(k-1), ek], the last
            with its upper edge, as in numpy. With `null_category=True` one more cell at the end
            counts the records that are in no category or bin. `output_metric` is L1Distance() (the
            default), L2Distance(), LinfDistance(), L01InfDistance() or L02InfDistance()
    Output: vector of int with one cell per category or bin (plus one), in the order of the argument
    Bound:  each record is in at most one cell. A record that enters or leaves changes one cell by
            1, so L1 = L2 = linf = l0 = 1. A record that changes may move between two cells, so L1 =
            l0 = 2 and L2 = √2. With several records, all may be in one cell
    Source: `statistics.cell_counts`
    Errors: InvalidArgument for no, repeated or foreign categories and for edges that do not
            increase; DomainMismatch, MetricMismatch

    >>> from dpframe.theory import SymmetricDistance
    >>> t = histogram(VectorDomain(AtomDomain(str)), SymmetricDistance(), categories=["a", "b"])
    >>> t(["a", "b", "a", "x"]), t.map(1)
    ([2, 1, 1], 1)
    """
    domain, relation = dataset(input_domain, input_metric, "histogram")
    atom = domain.element_domain
    if (categories is None) == (bins is None):
        raise InvalidArgument("histogram: give either categories=[...] or bins=[...].")
    if categories is not None:
        cells, run = _categories(atom, list(categories))
    else:
        cells, run = _bins(atom, list(bins or []))
    cells += bool(null_category)
    metric = L1Distance() if output_metric is None else output_metric

    def counted(values: Vector) -> list[int]:
        result = run(values)
        return result if null_category else result[:-1]

    return Transformation(
        domain,
        input_metric,
        VectorDomain(AtomDomain(int), size=cells),
        metric,
        counted,
        _map(metric, relation, domain.size, cells, "histogram"),
    )


def _categories(
    atom: AtomDomain, categories: list[object]
) -> tuple[int, Callable[[Vector], list[int]]]:
    """The number of categories, and the function that counts the records in each and in none."""
    if not categories:
        raise InvalidArgument("histogram: categories is empty; there is nothing to count.")
    if len(set(categories)) != len(categories):
        raise InvalidArgument("histogram: categories are repeated; each record is counted once.")
    atoms = AtomDomain(atom.T)
    if not all(atoms.member(c) for c in categories):
        raise InvalidArgument(f"histogram: categories must be values of {atoms!r}.")
    keys = as_array(categories, atoms).tolist()

    def run(values: Vector) -> list[int]:
        tally = Counter(as_array(values, atom).tolist())
        counts = [tally.get(k, 0) for k in keys]
        return [*counts, tally.total() - sum(counts)]

    return len(keys), run


def _bins(atom: AtomDomain, edges: list[float]) -> tuple[int, Callable[[Vector], list[int]]]:
    """The number of bins, and the function that counts the records in each and in none."""
    if atom.dtype.kind not in NUMERIC:
        raise DomainMismatch(
            f"histogram: bins are for numbers; the records are {atom!r}. Give categories instead."
        )
    atoms = AtomDomain(float)
    if len(edges) < 2 or not all(atoms.member(e) and np.isfinite(e) for e in edges):
        raise InvalidArgument("histogram: bins is a list of at least two finite edges.")
    if any(a >= b for a, b in itertools.pairwise(edges)):
        raise InvalidArgument("histogram: the edges of bins must increase.")
    limits = np.array(
        edges, dtype=atom.dtype if all(AtomDomain(atom.T).member(e) for e in edges) else np.float64
    )

    def run(values: Vector) -> list[int]:
        array = as_array(values, atom)
        index = np.searchsorted(limits, array, side="right") - 1
        index[array == limits[-1]] = len(limits) - 2
        index[(index < 0) | (index >= len(limits) - 1)] = len(limits) - 1
        counts: list[int] = np.bincount(index, minlength=len(limits)).tolist()
        return counts

    return len(edges) - 1, run


@ordered
def count_by(
    input_domain: Domain,
    input_metric: Metric,
    output_metric: Metric | None = None,
    keys: Iterable[object] | None = None,
) -> Transformation:
    """The number of records of each distinct value.
    The values are private too, unless `keys` lists them.

    Input:  vectors of any type without NaN; keys: the distinct values to count, if they are public;
            other values are left out. With public keys the counts may go to `laplace` (in
            L1Distance()) and `gaussian` (in L2Distance()), otherwise to laplace_threshold and
            gaussian_threshold. `output_metric` is L01InfDistance() (the default, which
            laplace_threshold needs), L02InfDistance() (for gaussian_threshold), L1Distance(),
            L2Distance() or LinfDistance()
    Output: mapping from each value that occurs to its count (records); a value that is not in it
            has the count 0
    Bound:  as for `histogram`; with private keys there is no limit on the number of cells
    Source: `statistics.cell_counts`
    Errors: DomainMismatch, also when NaN is allowed, since NaN is not equal to itself;
            MetricMismatch; InvalidArgument for keys that are repeated or are not values of the
            element domain

    >>> from dpframe.theory import SymmetricDistance
    >>> t = count_by(VectorDomain(AtomDomain(str)), SymmetricDistance())
    >>> t(["a", "b", "a"]), t.map(2)
    ({'a': 2, 'b': 1}, (2, 2, 2))
    >>> t = count_by(
    ...     VectorDomain(AtomDomain(str)), SymmetricDistance(), L1Distance(), keys=["a", "c"]
    ... )
    >>> t(["a", "b", "a"]), t.map(2)
    ({'a': 2}, 2)
    """
    domain, relation = dataset(input_domain, input_metric, "count_by")
    atom = domain.element_domain
    if atom.nan:
        raise DomainMismatch(
            f"count_by: the records may be NaN ({atom!r}), and NaN cannot be a key. Replace NaN "
            "first: impute(domain, metric, constant)."
        )
    metric = L01InfDistance(AbsoluteDistance()) if output_metric is None else output_metric

    output = MapDomain(atom, AtomDomain(int), keys)
    public = None if output.keys is None else set(output.keys)

    def run(values: Vector) -> dict[object, int]:
        counts = Counter(as_array(values, atom).tolist())
        return dict(counts) if public is None else {k: n for k, n in counts.items() if k in public}

    return Transformation(
        domain,
        input_metric,
        output,
        metric,
        run,
        _map(metric, relation, domain.size, None if public is None else len(public), "count_by"),
    )
