"""Datasets: a sequence as an array of its domain's type, and the grid on which floats are added up.

Grids: floats as whole multiples of a power of two, so that sums are exact and their order does not
       matter.

The grid depends only on the bounds and the public size. Values are clipped to the largest and
smallest grid points within the bounds, and rounded to the nearest grid point. All sums are sums of
integers; at the end, a total is multiplied by the step of the grid, which is exact.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.arrays import Array, Integers
from dpframe.errors import DomainMismatch, MetricMismatch
from dpframe.theory.exact import ceil_log2, exact
from dpframe.theory.formulas.sensitivity import Relation
from dpframe.theory.spaces import (
    AtomDomain,
    Domain,
    Metric,
    VectorDomain,
)

Vector = Collection[Any]  # a list, tuple, array or Series


def relation_of(metric: Metric, name: str) -> Relation:
    """Whether a dataset metric counts records that enter or leave, or records that change.
    Errors: MetricMismatch.
    """
    if metric.relation is None:
        raise MetricMismatch(
            f"{name}: the input metric is {metric!r}; a dataset is compared by "
            "SymmetricDistance(), InsertDeleteDistance(), ChangeOneDistance() or "
            "HammingDistance()."
        )
    return metric.relation


def dataset(domain: Domain, metric: Metric, name: str) -> tuple[VectorDomain, Relation]:
    """Check that a transformation's input is a dataset; return its domain and relation.

    Errors: DomainMismatch, MetricMismatch
    """
    if not isinstance(domain, VectorDomain):
        raise DomainMismatch(f"{name}: the input domain is {domain!r}; it works on a VectorDomain.")
    if not isinstance(domain.element_domain, AtomDomain) and name != "count":
        raise DomainMismatch(
            f"{name}: the input domain is {domain!r}; it works on a vector of single values."
        )
    return domain, relation_of(metric, name)


def as_array(values: Vector, atom: AtomDomain) -> Array:
    """A vector of members as an array of the domain's type; strings as Python objects."""
    if atom.dtype.kind == "O":
        array = np.empty(len(values), dtype=object)
        array[:] = [str(v) for v in values]
        return array
    return np.asarray(values if hasattr(values, "__array__") else list(values), dtype=atom.dtype)


def like(array: Array, original: Any) -> object:
    """The result as an array if the caller passed an array or a Series,
    otherwise as a list of Python values.
    """
    return array if hasattr(original, "__array__") else array.tolist()


_LEAST = -1074  # the smallest exponent of a float


@dataclass(frozen=True)
class Grid:
    """The points i·2^exponent for low <= i <= high; `largest`:
    the largest total (grid steps) that a float can hold.
    """

    exponent: int
    low: int
    high: int
    largest: int

    @property
    def step(self) -> Fraction:
        """Distance between neighbouring points (unit of the values)."""
        return Fraction(2) ** self.exponent

    def points(self, values: Array) -> Integers:
        """The index i of each value's nearest grid point;
        infinities get the lowest or highest index.
        """
        step = 2.0**self.exponent
        inside = np.clip(values.astype(np.float64), self.low * step, self.high * step)
        points: Integers = np.floor(inside / step + 0.5).astype(np.int64)
        np.clip(points, self.low, self.high, out=points)
        return points

    def value(self, total: int) -> float:
        """A total of grid steps as a float (unit of the values), clipped to totals
        that a float can hold exactly.
        """
        return math.ldexp(max(-self.largest, min(self.largest, total)), self.exponent)


def sum_grid(atom: AtomDomain, size: int | None, top: Fraction | None = None) -> Grid:
    """The grid on which values of a bounded float domain are summed.

    Input:  a float domain with bounds; public size (count) or None; top: a lower upper bound, if
            any
    Output: a grid whose points lie within the bounds. With a public size the total of `size` points
            is exact in T; otherwise each value has 28 bits (for float32: 10 of the 24), and totals
            beyond 2^25 (float32: 2^14) times the largest bound are clipped to that limit. Clipping
            never makes a distance larger
    """
    assert atom.bounds is not None
    lower, upper = (exact(b, "bound") for b in atom.bounds)
    upper = upper if top is None else max(lower, min(upper, top))
    mantissa = np.finfo(atom.dtype).nmant + 1
    unsized = 28 if mantissa == 53 else 10
    bits = unsized if size is None else max(1, mantissa - 1 - (size - 1).bit_length())
    largest = max(abs(lower), abs(upper))
    exponent = max(_LEAST, ceil_log2(largest) - bits) if largest else 0
    step = Fraction(2) ** exponent
    low, high = math.ceil(lower / step), math.floor(upper / step)
    # No grid point lies between the bounds: take the nearest one on the side of zero.
    if low > high:
        low = high = math.floor(lower / step) if lower > 0 else math.ceil(upper / step)
    return Grid(
        exponent,
        low,
        high,
        min(1 << mantissa, math.floor(exact(float(np.finfo(atom.dtype).max), "") / step)),
    )


def integer_total(values: Array) -> int:
    """The exact sum of an integer array.
    Sums of 32-bit halves cannot overflow for fewer than 2^31 entries.
    """
    if values.dtype.kind == "b" or values.dtype.itemsize < 8:
        return int(values.sum(dtype=np.int64))
    low = values & values.dtype.type(0xFFFFFFFF)
    high = values >> values.dtype.type(32)
    return (int(high.sum()) << 32) + int(low.sum())
