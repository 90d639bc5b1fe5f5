"""Transformations to counts: histogram (public categories), count_by (any keys), and trees of such counts."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dpframe.arrays import Floats
from dpframe.errors import DomainMismatch, InvalidArgument, MetricMismatch
from dpframe.theory.calls import ordered
from dpframe.theory.datasets import Vector, as_array, dataset
from dpframe.theory.exact import Length, Root, is_whole, square
from dpframe.theory.formulas.hierarchies import Levels
from dpframe.theory.formulas.sensitivity import Relation, Sensitivity
from dpframe.theory.formulas.sensitivity import vectors as statistics
from dpframe.theory.framework import Transformation
from dpframe.theory.spaces import (
    AbsoluteDistance,
    AtomDomain,
    Domain,
    L01InfDistance,
    L02InfDistance,
    L1Distance,
    L2Distance,
    LinfDistance,
    MapDomain,
    Metric,
    VectorDomain,
)


def reading(metric: Metric, name: str) -> Callable[[Sensitivity], object]:
    """The function that takes a metric's distance (L1, L2, …) from a `Sensitivity`. Errors: MetricMismatch."""
    if isinstance(metric, L1Distance):
        return lambda s: s.exact_l1
    if isinstance(metric, L2Distance):
        return lambda s: Root(s.l2_squared)
    if isinstance(metric, LinfDistance) and not metric.monotonic:
        return lambda s: s.exact_linf
    if isinstance(metric, L01InfDistance):
        return lambda s: (s.l0, s.exact_l1, s.exact_linf)
    if isinstance(metric, L02InfDistance):
        return lambda s: (s.l0, Root(s.l2_squared), s.exact_linf)
    raise MetricMismatch(
        f"{name}: output_metric={metric!r}; counts are compared by L1Distance(), L2Distance(), LinfDistance(), "
        "L01InfDistance() or L02InfDistance()."
    )


def _map(
    relation: Relation, size: int | None, cells: int | None, distance_of: Callable[[Sensitivity], object]
) -> Callable[[int], object]:
    return lambda d_in: distance_of(statistics.cell_counts(d_in, relation, size, cells))


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

    Input:  vectors of any type. Either `categories`, the distinct values to count, or `bins`, increasing edges
            e0 < e1 < … < ek of the intervals [e0, e1), …, [e(k-1), ek], the last with its upper edge, as in numpy.
            With `null_category=True` one more cell at the end counts the records that are in no category or bin.
            `output_metric` is L1Distance() (the default), L2Distance(), LinfDistance(), L01InfDistance() or
            L02InfDistance()
    Output: vector of int with one cell per category or bin (plus one), in the order of the argument
    Bound:  each record is in at most one cell. A record that enters or leaves changes one cell by 1, so L1 = L2 = linf
            = l0 = 1. A record that changes may move between two cells, so L1 = l0 = 2 and L2 = √2. With several
            records, all may be in one cell
    Source: `statistics.cell_counts`
    Errors: InvalidArgument for no, repeated or foreign categories and for edges that do not increase; DomainMismatch,
            MetricMismatch

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
    distance_of = reading(metric, "histogram")

    def counted(values: Vector) -> list[int]:
        result = run(values)
        return result if null_category else result[:-1]

    return Transformation(
        domain,
        input_metric,
        VectorDomain(AtomDomain(int), size=cells),
        metric,
        counted,
        _map(relation, domain.size, cells, distance_of),
    )


def _categories(atom: AtomDomain, categories: list[object]) -> tuple[int, Callable[[Vector], list[int]]]:
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
    if atom.dtype.kind not in "iuf":
        raise DomainMismatch(f"histogram: bins are for numbers; the records are {atom!r}. Give categories instead.")
    atoms = AtomDomain(float)
    if len(edges) < 2 or not all(atoms.member(e) and np.isfinite(e) for e in edges):
        raise InvalidArgument("histogram: bins is a list of at least two finite edges.")
    if any(a >= b for a, b in itertools.pairwise(edges)):
        raise InvalidArgument("histogram: the edges of bins must increase.")
    limits = np.array(edges, dtype=atom.dtype if all(AtomDomain(atom.T).member(e) for e in edges) else np.float64)

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
    """The number of records of each distinct value. The values are private too, unless `keys` lists them.

    Input:  vectors of any type without NaN; keys: the distinct values to count, if they are public; other values are
            left out. With public keys the counts may go to `laplace` (in L1Distance()) and `gaussian` (in
            L2Distance()), otherwise to laplace_threshold and gaussian_threshold. `output_metric` is L01InfDistance()
            (the default, which laplace_threshold needs), L02InfDistance() (for gaussian_threshold), L1Distance(),
            L2Distance() or LinfDistance()
    Output: mapping from each value that occurs to its count (records); a value that is not in it has the count 0
    Bound:  as for `histogram`; with private keys there is no limit on the number of cells
    Source: `statistics.cell_counts`
    Errors: DomainMismatch, also when NaN is allowed, since NaN is not equal to itself; MetricMismatch; InvalidArgument
            for keys that are repeated or are not values of the element domain

    >>> from dpframe.theory import SymmetricDistance
    >>> t = count_by(VectorDomain(AtomDomain(str)), SymmetricDistance())
    >>> t(["a", "b", "a"]), t.map(2)
    ({'a': 2, 'b': 1}, (2, 2, 2))
    >>> t = count_by(VectorDomain(AtomDomain(str)), SymmetricDistance(), L1Distance(), keys=["a", "c"])
    >>> t(["a", "b", "a"]), t.map(2)
    ({'a': 2}, 2)
    """
    domain, relation = dataset(input_domain, input_metric, "count_by")
    atom = domain.element_domain
    if atom.nan:
        raise DomainMismatch(
            f"count_by: the records may be NaN ({atom!r}), and NaN cannot be a key. Replace NaN first: "
            "impute(domain, metric, constant)."
        )
    metric = L01InfDistance(AbsoluteDistance()) if output_metric is None else output_metric
    distance_of = reading(metric, "count_by")

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
        _map(relation, domain.size, None if public is None else len(public), distance_of),
    )


@ordered
def tree(input_domain: Domain, input_metric: Metric, branching: int = 2) -> Transformation:
    """The sums of a vector of counts at every node of a tree, level by level from the root.

    Input:  vectors of integers of a public size (the leaves, say from `histogram`) under L1Distance() or L2Distance();
            branching: children of a node (count, at least 2). Zeros are appended until the number of leaves is a power
            of `branching`
    Output: vector of int, under the metric of the input: the root, its children, …, the leaves
    Bound:  the tree has h + 1 levels. In L1 each level changes by at most d_in, the change of the leaves, so the bound
            is (h + 1)·d_in. In L2 a sum of b^j leaves changes by at most √(b^j) times the Euclidean length of their
            changes (Cauchy and Schwarz). So the squares over that level add up to at most b^j·d_in², and the bound is
            d_in·√(1 + b + … + b^h). If only one leaf changes, L2 is d_in·√(h + 1); chain from L1Distance() for that
    Source: Hay, Rastogi, Miklau and Suciu 2010, arXiv:0904.0942, for the tree; `statistics.tree_length`
    Errors: InvalidArgument for the branching; DomainMismatch, MetricMismatch

    >>> t = tree(VectorDomain(AtomDomain(int), size=3), L1Distance())
    >>> t([1, 2, 3]), t.map(1)
    ([6, 3, 3, 1, 2, 3, 0], 3)
    """
    if not isinstance(input_domain, VectorDomain) or input_domain.size is None:
        raise DomainMismatch(
            f"tree: the input domain is {input_domain!r}; its leaves are a VectorDomain of public size."
        )
    atom, leaves = input_domain.element_domain, input_domain.size
    if not atom.is_integer:
        raise DomainMismatch(f"tree: the leaves are {atom!r}; they are integers.")
    if not isinstance(input_metric, L1Distance | L2Distance):
        raise MetricMismatch(f"tree: the input metric is {input_metric!r}; it is L1Distance() or L2Distance().")
    width = _branching(branching)
    height = _height(leaves, width)
    nodes = sum(width**j for j in range(height + 1))

    def run(values: Vector) -> list[int]:
        level = [int(v) for v in as_array(values, atom).tolist()] + [0] * (width**height - leaves)
        levels = [level]
        while len(level) > 1:
            level = [sum(level[i : i + width]) for i in range(0, len(level), width)]
            levels.append(level)
        return [max(_LOW, min(_HIGH, v)) for nodes_of_level in reversed(levels) for v in nodes_of_level]

    def change(d_in: Any) -> Length:
        if isinstance(input_metric, L1Distance):
            return statistics.tree_length(width, height, d_in)
        return Root(statistics.tree_square(width, height, square(d_in)))

    return Transformation(
        input_domain, input_metric, VectorDomain(AtomDomain(int), size=nodes), input_metric, run, change
    )


_LOW, _HIGH = (int(end) for end in AtomDomain(int).limits)


def _branching(branching: object) -> int:
    if not is_whole(branching, 2):
        raise InvalidArgument(f"branching={branching!r}: a node has a whole number of children, at least 2.")
    return int(branching)


def _height(leaves: int, branching: int) -> int:
    height = 0
    while branching**height < leaves:
        height += 1
    return height


def consistent_tree(nodes: Iterable[float], branching: int = 2) -> list[float]:
    """Least-squares estimate of the leaves from all noisy nodes of a tree. It is post-processing and costs nothing.

    Input:  nodes: the released nodes level by level from the root, in the order of `tree`, all with noise of one
            variance; branching as in `tree`
    Output: list of float, one per leaf (appended zeros have leaves too): among all trees whose nodes are the sums of
            their children, the leaves of the one nearest to `nodes`. No leaf has more variance than its noisy node
    Bound:  two passes of least squares; with one variance they are the closed form of the source
    Source: Hay, Rastogi, Miklau and Suciu 2010, arXiv:0904.0942, theorem 3; `hierarchies.Levels.estimates`
    Errors: InvalidArgument if no full tree has this number of nodes

    >>> consistent_tree([6, 3, 3, 1, 2, 3, 0])
    [1.0, 2.0, 3.0, 0.0]
    >>> consistent_tree([9, 3, 3])
    [4.0, 4.0]
    """
    width, values = _branching(branching), np.array([float(v) for v in nodes])[:, None]
    levels: list[Floats] = []
    start = 0
    while start < len(values):
        levels.append(values[start : start + width ** len(levels)])
        start += width ** (len(levels) - 1)
    if not len(values) or start != len(values):
        raise InvalidArgument(f"consistent_tree: no full tree of {width} children per node has {len(values)} nodes.")
    if len(levels) == 1:
        return list(map(float, values[:, 0]))
    full = Levels(tuple(np.arange(len(level)) * width for level in levels[:-1]), len(levels[-1]))
    leaves: list[float] = full.estimates(levels, [1.0] * len(levels))[-1].ravel().tolist()
    return leaves
