"""How far one unit can move totals over several periods, if it is counted in a limited number of periods."""

from __future__ import annotations

from fractions import Fraction

from dpframe.theory.formulas.sensitivity.grouped import Relation, Sensitivity

__all__ = ["period_totals"]


def period_totals(
    one: Sensitivity, swing: Fraction | int, *, periods: int, size: int, relation: Relation
) -> Sensitivity:
    """Sensitivity of totals over disjoint blocks, each of at most `size` periods.

    Input:  one: the sensitivity of the totals of one period, under "add-remove" (any unit); swing: the largest
            difference between two units' entries in one total of one period (same unit); periods: the largest number of
            periods in which a unit is counted; relation: neighbouring histories differ in all rows of one unit, in any
            periods, which are present or absent ("add-remove") or exchanged for another unit's ("replace")
    Output: Sensitivity (same unit), exact, of all blocks and groups together
    Bound:  in each of its periods a unit moves the totals by a vector v with l1(v) at most one.l1 and entries at most
            one.linf. A block adds up the vectors of its periods, and at most c = min(periods, size) of them are the
            unit's. So over all blocks l1 is at most periods · one.l1, and an entry is at most c · one.linf. Under
            "replace" the change is the difference of two such vectors: l1 is at most twice as much, and an entry at
            most c · swing. Always Σx² <= max|x| · Σ|x|, so l2² <= linf · l1. l1 and l2² grow at least in proportion to
            `periods`. Several series may follow one another, each calibrated for `periods` periods of a unit. If a
            unit's periods are spread over them, the losses therefore add up to at most the loss of one series
    Source: Dwork, Naor, Pitassi, Rothblum 2010, doi:10.1145/1806689.1806787, for one period; the bound for several is
            Hölder's inequality
    Errors: none here; the limits are checked at birth

    One row a night, in at most 5 nights, and blocks of 3 nights:

    >>> night = Sensitivity.of(l0=1, l1=1, l2_squared=1, linf=1)
    >>> period_totals(night, 1, periods=5, size=3, relation="add-remove")
    Sensitivity(l0=5, l1=5, l2=3.872983346207417, linf=3)
    >>> period_totals(night, 1, periods=1, size=3, relation="replace")
    Sensitivity(l0=2, l1=2, l2=1.4142135623730951, linf=1)
    """
    both = 2 if relation == "replace" else 1
    entry = Fraction(swing) if relation == "replace" else one.exact_linf
    l1, linf = both * periods * one.exact_l1, min(periods, size) * entry
    return Sensitivity.of(l0=both * periods * one.l0, l1=l1, l2_squared=l1 * linf, linf=linf)
