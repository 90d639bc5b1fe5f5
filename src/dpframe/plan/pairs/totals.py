"""Sums of products of two columns, over rows in which both have a value."""

from __future__ import annotations

from fractions import Fraction

from dpframe.errors import InvalidBounds
from dpframe.plan.columns import Bounds, Column
from dpframe.plan.totals import Factor, Total, TotalKind, computed_total
from dpframe.plan.unit_limits import UnitLimits

__all__ = ["from_middle", "middle_of", "product_total"]


def middle_of(bounds: Bounds) -> Fraction:
    """The middle of the bounds, exact (column unit)."""
    return (Fraction(bounds.lower) + Fraction(bounds.upper)) / 2


def from_middle(column: Column, bounds: Bounds) -> Factor:
    """A column's clipped value, measured from the middle of its bounds."""
    return Factor(column, bounds, middle_of(bounds))


def product_total(
    first: Factor, second: Factor, unit_limits: UnitLimits, what: str, present: tuple[Column, ...] = ()
) -> Total:
    """Sum per group of the products of two clipped values, each measured from its own place.

    Input:  the two factors; what was asked; present: other columns whose value must not be missing
    Output: a total whose integer is worth a step of its grid, a power of two that follows from the bounds alone
    Bound:  let the distances lie in [a, b] and [c, d]. Their product lies between the smallest and the largest of ac,
            ad, bc and bd, since it is linear in each of them. A row's integer is clipped to these ends, and a row in
            which a value is missing adds 0. Neighbouring tables differ in the rows of one unit. With at most k rows in
            each of m groups and K in all, a unit that joins or leaves moves a group by at most k times the larger end,
            and all groups together by at most K times that end. For distances from the middles of both bounds, with
            half-widths g and h, the larger end is g·h
    Source: `dpframe.theory.formulas.sensitivity.grouped.row_sums`, and `one_row_sum` where a unit surely has one row
            without a missing value
    Errors: InvalidBounds where products are beyond floats, or are no longer told from 0
    """
    ends = [[Fraction(end) - factor.about for end in factor.bounds] for factor in (first, second)]
    products = [a * b for a in ends[0] for b in ends[1]]
    largest = max(map(abs, products))
    if largest and not Fraction(1, 10**270) <= largest <= 10**270:
        raise InvalidBounds(
            f"{what}: products of values this far apart, or this close together, are beyond floats. Give bounds that "
            "are from 1e-130 to 1e130 apart."
        )
    span = Bounds(float(min(products)), float(max(products)))
    return computed_total(
        TotalKind.PRODUCT, first.column, span, unit_limits, what, factors=(first, second), present=present
    )
