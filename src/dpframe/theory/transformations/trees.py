"""Trees of counts: the sums at every node of a b-ary tree over public leaves, and least squares on noisy nodes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.errors import DomainMismatch, InvalidArgument, MetricMismatch
from dpframe.theory.calls import ordered
from dpframe.theory.exact import Root, square
from dpframe.theory.formulas.sensitivity import vectors as statistics
from dpframe.theory.framework import Transformation
from dpframe.theory.spaces import AtomDomain, Domain, L1Distance, L2Distance, Metric, VectorDomain
from dpframe.theory.vectors import as_array

__all__ = ["consistent_tree", "tree"]


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

    def run(values: Any) -> list[int]:
        level = [int(v) for v in as_array(values, atom).tolist()] + [0] * (width**height - leaves)
        levels = [level]
        while len(level) > 1:
            level = [sum(level[i : i + width]) for i in range(0, len(level), width)]
            levels.append(level)
        return [max(_LOW, min(_HIGH, v)) for nodes_of_level in reversed(levels) for v in nodes_of_level]

    def change(d_in: Any) -> Any:
        if isinstance(input_metric, L1Distance):
            return statistics.tree_length(width, height, d_in)
        return Root(statistics.tree_square(width, height, square(d_in)))

    return Transformation(
        input_domain, input_metric, VectorDomain(AtomDomain(int), size=nodes), input_metric, run, change
    )


_LOW, _HIGH = (int(end) for end in AtomDomain(int).limits)


def _branching(branching: Any) -> int:
    if isinstance(branching, bool) or not isinstance(branching, int | np.integer) or branching < 2:
        raise InvalidArgument(f"branching={branching!r}: a node has a whole number of children, at least 2.")
    return int(branching)


def _height(leaves: int, branching: int) -> int:
    height = 0
    while branching**height < leaves:
        height += 1
    return height


def consistent_tree(nodes: Any, branching: int = 2) -> list[float]:
    """Least-squares estimate of the leaves from all noisy nodes of a tree. It is post-processing and costs nothing.

    Input:  nodes: the released nodes level by level from the root, in the order of `tree`, all with noise of one
            variance; branching as in `tree`
    Output: list of float, one per leaf (appended zeros have leaves too): among all trees whose nodes are the sums of
            their children, the leaves of the one nearest to `nodes`. No leaf has more variance than its noisy node
    Bound:  the closed form: from the leaves up z = ((b^i - b^(i-1))·node + (b^(i-1) - 1)·Σ z of the children)/(b^i - 1)
            at height i of a node (1 for leaves), and down h = z + (h of the parent - Σ z of the siblings)/b
    Source: Hay, Rastogi, Miklau and Suciu 2010, arXiv:0904.0942, theorem 3
    Errors: InvalidArgument if no full tree has this number of nodes

    >>> consistent_tree([6, 3, 3, 1, 2, 3, 0])
    [1.0, 2.0, 3.0, 0.0]
    >>> consistent_tree([9, 3, 3])
    [4.0, 4.0]
    """
    width = _branching(branching)
    values = [Fraction(v) if isinstance(v, int | float | Fraction) else Fraction(float(v)) for v in nodes]
    levels: list[list[Fraction]] = []
    start = 0
    while start < len(values):
        levels.append(values[start : start + width ** len(levels)])
        start += width ** (len(levels) - 1)
    if not values or start != len(values):
        raise InvalidArgument(f"consistent_tree: no full tree of {width} children per node has {len(values)} nodes.")
    fitted = [levels[-1]]
    for height, level in enumerate(reversed(levels[:-1]), start=2):
        below, all_leaves, some = fitted[-1], width**height, width ** (height - 1)
        fitted.append(
            [
                ((all_leaves - some) * node + (some - 1) * sum(below[i * width : (i + 1) * width])) / (all_leaves - 1)
                for i, node in enumerate(level)
            ]
        )
    final = fitted[-1]
    for below in reversed(fitted[:-1]):
        gaps = [(h - sum(below[i * width : (i + 1) * width])) / width for i, h in enumerate(final)]
        final = [z + gaps[i // width] for i, z in enumerate(below)]
    return [float(v) for v in final]
