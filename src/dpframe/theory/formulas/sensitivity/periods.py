"""Distances by which one unit can move a series' measurements of its periods:
totals of blocks, and weighted sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpframe.theory.formulas.sensitivity.grouped import Relation, Sensitivity


def period_totals(
    one: Sensitivity, swing: Fraction | int, *, periods: int, size: int, relation: Relation
) -> Sensitivity:
    """Sensitivity of totals over disjoint blocks, each of at most `size` periods.

    Input:  one: the sensitivity of the totals of one period, under "add-remove" (any unit); swing:
            the largest difference between two units' entries in one total of one period (same
            unit); periods: the largest number of periods in which a unit is counted; relation:
            neighbouring histories differ in all rows of one unit, in any periods, which are present
            or absent ("add-remove") or exchanged for another unit's ("replace")
    Output: Sensitivity (same unit), exact, of all blocks and groups together
    Bound:  in each of its periods a unit moves the totals by a vector v with l1(v) at most one.l1
            and entries at most one.linf. A block adds up the vectors of its periods, and at most c
            = min(periods, size) of them are the unit's. So over all blocks l1 is at most periods ·
            one.l1, and an entry is at most c · one.linf. Under "replace" the change is the
            difference of two such vectors: l1 is at most twice as much, and an entry at most c ·
            swing. Always Σx² <= max|x| · Σ|x|, so l2² <= linf · l1. l1 and l2² grow at least in
            proportion to `periods`. Several series may follow one another, each calibrated for
            `periods` periods of a unit. If a unit's periods are spread over them, the losses
            therefore add up to at most the loss of one series
    Source: Dwork, Naor, Pitassi, Rothblum 2010, doi:10.1145/1806689.1806787, for one period; the
            bound for several is Hölder's inequality
    Errors: none here; the limits are checked at birth

    One row a night, in at most 5 nights, and blocks of 3 nights:

    >>> night = Sensitivity.of(l0=1, l1=1, l2_squared=1, linf=1)
    >>> period_totals(night, 1, periods=5, size=3, relation="add-remove")
    Sensitivity(l0=5, l1=5, l2=3.872983346207417, linf=3)
    >>> period_totals(night, 1, periods=1, size=3, relation="replace")
    Sensitivity(l0=2, l1=2, l2=1.4142135623730951, linf=1)
    """
    both = 2 if relation == Relation.REPLACE else 1
    entry = Fraction(swing) if relation == Relation.REPLACE else one.exact_linf
    l1, linf = both * periods * one.exact_l1, min(periods, size) * entry
    return Sensitivity.of(l0=both * periods * one.l0, l1=l1, l2_squared=l1 * linf, linf=linf)


def weighted_square(weights: Sequence[int], periods: int) -> int:
    """The largest Σ_t c_t², where c_t adds up the weights that night t
    gives to the periods of one unit.

    Input:  weights: by lag, falling and not negative; night t gives weights[lag] to the period that
            was added `lag` places before it; periods: the largest number of periods of one unit
    Output: an integer, exact; the largest over all sets of so many periods
    Bound:  Σ_t c_t² = Σ g(|s - s'|) over all pairs of the unit's places s, s', with g(d) = Σ_j
            weights[j]·weights[j+d]. g falls, since the weights do. The places in order are
            integers, so the i-th and the j-th are at least |i - j| apart. So consecutive places are
            the worst: periods·g(0) + 2·Σ_d (periods - d)·g(d). A pair of a night and a period that
            is left out makes a c_t smaller
    Source: as the bound; Choquette-Choo, Dvijotham, Pillutla, Ganesh, Steinke, Thakurta 2023,
            arXiv:2306.08153, for several participations in a banded factorisation

    >>> weighted_square([2, 1], 1), weighted_square([2, 1], 2), weighted_square([1], 7)
    (5, 14, 7)
    """
    pairs = range(1, min(periods, len(weights)))
    apart = [
        sum(one * two for one, two in zip(weights, weights[lag:], strict=False))
        for lag in (0, *pairs)
    ]
    return periods * apart[0] + 2 * sum((periods - lag) * apart[lag] for lag in pairs)


def weighted_totals(
    one: Sensitivity,
    swing: Fraction | int,
    *,
    weights: Sequence[int],
    periods: int,
    relation: Relation,
    nights: int | None = None,
) -> Sensitivity:
    """Sensitivity of weighted sums of periods' totals, one sum a night.

    Input:  one, swing, periods, relation: as in `period_totals`; weights: as in `weighted_square`;
            nights: 1 for the sum of a single night, None for the sums of all nights together
    Output: Sensitivity (same unit), exact
    Neighbours: as in `period_totals`. The totals of a period may differ from night to night in any
            way, for another question or after rows were corrected, as long as a unit is in at most
            `periods` periods and moves each total at each reading by at most `one`, with entries
            between the same two ends
    Bound:  in night t a unit adds c_t·a_t, where c_t is as in `weighted_square` and a_t an average
            of vectors of l1 at most one.l1 with entries between the ends. So l1 <= Σc_t·one.l1,
            where each period is in each weight once, and an entry is at most C·linf, where C adds
            up the first `periods` weights. Squares: |c_t·a_t|² <= c_t²·one.l1·linf, and their sum
            follows from `weighted_square`. Under "replace" night t moves by c_t·a_t - c'_t·b_t.
            Where two entries have one sign, the square of their difference is at most the larger of
            c²a² and c'²b². Where a and b have different signs, (c|a| + c'|b|)² <= (c²|a| +
            c'²|b|)·(|a| + |b|) by Cauchy and Schwarz, and |a| + |b| <= swing. So squares add up to
            at most (Σc_t² + Σc'_t²)·one.l1·swing. Per period, Σc_t² and l1 grow with `periods`,
            which is what parts of a series need: see `period_totals`
    Source: Denisov, McMahan, Rush, Smith, Thakurta 2022, arXiv:2202.08312, for questions that are
            chosen as answers come; here noise is fresh in each night, so the bound holds for totals
            that change between nights too

    One row a night, in at most 2 nights; each night adds half of the night before:

    >>> night = Sensitivity.of(l0=1, l1=1, l2_squared=1, linf=1)
    >>> weighted_totals(night, 1, weights=[2, 1], periods=2, relation="add-remove")
    Sensitivity(l0=4, l1=6, l2=3.7416573867739418, linf=3)
    >>> weighted_totals(night, 1, weights=[1], periods=5, relation="replace") == period_totals(
    ...     night, 1, periods=5, size=1, relation="replace"
    ... )
    True
    """
    both = 2 if relation == Relation.REPLACE else 1
    entry = Fraction(swing) if relation == Relation.REPLACE else one.exact_linf
    most = sum(weights[:periods])
    rows = periods * len(weights) if nights is None else min(periods, len(weights))
    whole, square = (
        (periods * sum(weights), weighted_square(weights, periods))
        if nights is None
        else (most, most**2)
    )
    return Sensitivity.of(
        l0=both * rows * one.l0,
        l1=both * whole * one.exact_l1,
        l2_squared=both * square * one.exact_l1 * entry,
        linf=most * entry,
    )
