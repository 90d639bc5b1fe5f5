"""Transformations from a dataset to one number: count, sum, mean, variance."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dpframe.arrays import WHOLE_OR_FLAG
from dpframe.errors import (
    InvalidBounds,
    MissingBounds,
    UnsupportedOperation,
    WrongType,
)
from dpframe.theory.calls import ordered
from dpframe.theory.datasets import Vector, as_array, dataset, integer_total, sum_grid
from dpframe.theory.exact import exact
from dpframe.theory.formulas.sensitivity import Relation
from dpframe.theory.formulas.sensitivity import vectors as statistics
from dpframe.theory.framework import Transformation
from dpframe.theory.spaces import AbsoluteDistance, AtomDomain, Domain, Metric, VectorDomain
from dpframe.usage import read_whole


@ordered
def count(input_domain: Domain, input_metric: Metric) -> Transformation:
    """The number of records.

    Input:  vectors of any type
    Output: int (records)
    Bound:  d_out = d_in where records enter or leave; 0 where records only change, or where the
            size is public
    Source: `statistics.vector_length`
    Errors: DomainMismatch, MetricMismatch when the input is not a dataset

    >>> from dpframe.theory import SymmetricDistance
    >>> count(VectorDomain(AtomDomain(str)), SymmetricDistance()).map(2)
    2
    """
    domain, relation = dataset(input_domain, input_metric, "count")
    return Transformation(
        domain,
        input_metric,
        AtomDomain(int),
        AbsoluteDistance(),
        len,
        lambda d_in: statistics.vector_length(d_in, relation, domain.size),
    )


def _bounded(domain: VectorDomain, name: str) -> tuple[AtomDomain, Fraction, Fraction]:
    """The element domain of a vector of bounded numbers, and its exact bounds.
    Errors: see `sum`.
    """
    atom = domain.element_domain
    if atom.dtype.kind == "b":
        return atom, Fraction(0), Fraction(1)
    if atom.dtype.kind == "O":
        raise WrongType(
            f"{name}: the records are text ({atom!r}). Turn them into numbers first: cast(..., "
            "T=float)."
        )
    if atom.nan:
        raise UnsupportedOperation(
            f"{name}: the records may be NaN ({atom!r}), and then the result may be NaN. Replace "
            "NaN first: impute(domain, metric, constant)."
        )
    if atom.bounds is None:
        raise MissingBounds(
            f"{name}: the records have no bounds ({atom!r}), so one of them can move the result "
            "without limit. Bound them first: clamp(domain, metric, bounds=(lower, upper))."
        )
    return atom, exact(atom.bounds[0], "lower bound"), exact(atom.bounds[1], "upper bound")


def _integers(atom: AtomDomain) -> bool:
    return atom.dtype.kind in WHOLE_OR_FLAG


@ordered
def sum(input_domain: Domain, input_metric: Metric) -> Transformation:
    """The sum of bounded numbers.

    Input:  vectors of numbers within the domain's bounds [L, U], or of bool (False is 0, True is 1)
    Output: a number of type T. Integers are added exactly and the total clipped to the range of T;
            floats are first rounded to a grid that depends only on the bounds and the size
            (`sum_grid`). So neither the order of addition nor the rounding of a total can break the
            bound
    Bound:  d_in·max(|L|, |U|) where records enter or leave; d_in·(U - L) where they change, and
            ⌊d_in/2⌋·(U - L) where they enter or leave under a public size. Rounding to the grid
            keeps values within the bounds, and clipping never moves two totals further apart, so
            neither adds to the bound
    Source: `statistics.total`; Casacuberta et al. 2022, arXiv:2207.10635, for what goes wrong with
            float sums
    Errors: MissingBounds; UnsupportedOperation when NaN is allowed; WrongType for text;
            DomainMismatch, MetricMismatch

    >>> from dpframe.theory import SymmetricDistance
    >>> t = sum(VectorDomain(AtomDomain(int, bounds=(0, 12))), SymmetricDistance())
    >>> t([12, 10, 8, 7]), t.map(1)
    (37, 12)
    """
    domain, relation = dataset(input_domain, input_metric, "sum")
    atom, lower, upper = _bounded(domain, "sum")
    if _integers(atom):
        low, high = AtomDomain(int).limits if atom.dtype.kind == "b" else atom.limits

        def run(values: Vector) -> float:
            return max(low, min(high, integer_total(as_array(values, atom))))
    else:
        grid = sum_grid(atom, domain.size)

        def run(values: Vector) -> float:
            return grid.value(integer_total(grid.points(as_array(values, atom))))

    return Transformation(
        domain,
        input_metric,
        AtomDomain(int if atom.dtype.kind == "b" else atom.T),
        AbsoluteDistance(),
        run,
        lambda d_in: statistics.total(d_in, lower, upper, relation, domain.size),
    )


def _sized(domain: VectorDomain, name: str) -> int:
    if domain.size is None:
        raise UnsupportedOperation(
            f"{name}: without a public size there may be few records, and one record can then move "
            f"the {name} as far as the bounds allow. Fix the size with resize(domain, metric, "
            "size, constant), or release a sum and a count and divide."
        )
    return domain.size


def _powers(
    atom: AtomDomain, size: int, top: Fraction
) -> Callable[[Vector], tuple[Fraction, Fraction]]:
    """A function from a vector to the exact sums of its values and of their
    squares, each value capped at `top`.
    """
    if _integers(atom):
        last = math.floor(top)

        def whole(values: Vector) -> tuple[Fraction, Fraction]:
            array = as_array(values, atom)
            above = array > last
            excess, small = int(above.sum()), array[~above].astype(object)
            return Fraction(int(small.sum())) + excess * top, Fraction(
                int((small * small).sum())
            ) + excess * top * top

        return whole
    assert atom.bounds is not None
    grid = sum_grid(AtomDomain(np.float64, bounds=atom.bounds), size, top)

    def rounded(values: Vector) -> tuple[Fraction, Fraction]:
        points = grid.points(as_array(values, atom)).astype(object)
        return int(points.sum()) * grid.step, int((points * points).sum()) * grid.step**2

    return rounded


def _lattice(largest: Fraction) -> Fraction:
    """A power of two of which 2^52 multiples reach the largest result, so results
    and differences are exact floats.
    """
    if largest == 0:
        return Fraction(1)
    if largest > Fraction(sys.float_info.max):
        raise InvalidBounds("variance: with these bounds it could be larger than any float.")
    return Fraction(2) ** max(-1074, math.frexp(float(largest))[1] - 52)


def _nearest(value: Fraction, step: Fraction) -> float:
    """The multiple of a power of two next to a fraction, ties upward, as a float."""
    return float(math.floor(value / step + Fraction(1, 2)) * step)


@ordered
def mean(input_domain: Domain, input_metric: Metric) -> Transformation:
    """The mean of bounded numbers; the number of records is public.

    Input:  vectors of `size` numbers within the domain's bounds [L, U]
    Output: float (unit of the values)
    Bound:  the bound of the sum, divided by the size. The result is rounded to a multiple of a
            power of two (the step), which could move two results apart by one step. So the upper
            bound is first lowered by size·step (about 10^-15 of the bounds, times the size); this
            reduces the distance by at least one step
    Source: `statistics.sized_mean`
    Errors: UnsupportedOperation without a public size; otherwise as `sum`

    >>> from dpframe.theory import ChangeOneDistance
    >>> t = mean(VectorDomain(AtomDomain(float, bounds=(0, 10)), size=4), ChangeOneDistance())
    >>> t([1.0, 2.0, 3.0, 4.0]), t.map(1)
    (2.5, 2.5)
    """
    domain, relation = dataset(input_domain, input_metric, "mean")
    atom, lower, upper = _bounded(domain, "mean")
    size = _sized(domain, "mean")
    step = _lattice(max(abs(lower), abs(upper)))
    powers = _powers(atom, size, max(lower, upper - size * step))

    def run(values: Vector) -> float:
        return _nearest(powers(values)[0] / size, step)

    return Transformation(
        domain,
        input_metric,
        AtomDomain(float),
        AbsoluteDistance(),
        run,
        lambda d_in: statistics.sized_mean(d_in, lower, upper, relation, size),
    )


@ordered
def variance(input_domain: Domain, input_metric: Metric, ddof: int = 1) -> Transformation:
    """The variance of bounded numbers; the number of records is public.

    Input:  vectors of `size` numbers within the domain's bounds [L, U]; ddof (count): the divisor
            is size - ddof; 1 for the estimate of a population's variance, 0 for the mean squared
            deviation
    Output: float (unit of the values squared)
    Bound:  (U - L)²·j(size - j)/(size·(size - ddof)) with j = min(changed records, ⌊size/2⌋). As in
            `mean`, the result is rounded to a multiple of a power of two, and the bounds are
            narrowed by just enough to make up for it
    Source: `statistics.sized_variance`
    Errors: InvalidArgument for a ddof outside [0, size); otherwise as `mean`

    >>> from dpframe.theory import ChangeOneDistance
    >>> t = variance(VectorDomain(AtomDomain(float, bounds=(0, 10)), size=4), ChangeOneDistance())
    >>> t([0.0, 3.0, 3.0, 6.0]), t.map(1)
    (6.0, 25)
    """
    domain, relation = dataset(input_domain, input_metric, "variance")
    atom, lower, upper = _bounded(domain, "variance")
    size = _sized(domain, "variance")
    sentence = f"variance: ddof={ddof!r} is a whole number from 0 to {size - 1}, below the size."
    divisor = size - read_whole(ddof, 0, size - 1, sentence)

    def bound(d_in: int, near: Relation = relation) -> Fraction:
        return statistics.squared_deviations(d_in, lower, upper, near, size) / divisor

    step, one_change = _lattice(bound(size, Relation.REPLACE)), bound(1, Relation.REPLACE)
    # With d records, narrowing the width by s lowers the bound by at least its d = 1 value times
    # s/width.
    narrowed = upper - step * (upper - lower) / one_change if one_change else upper
    powers = _powers(atom, size, max(lower, narrowed))

    def run(values: Vector) -> float:
        total, squared = powers(values)
        return _nearest((squared - total * total / size) / divisor, step)

    return Transformation(domain, input_metric, AtomDomain(float), AbsoluteDistance(), run, bound)
