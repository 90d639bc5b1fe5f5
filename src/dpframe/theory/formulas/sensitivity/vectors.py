"""Sensitivity of whole-vector statistics: how far counts, sums, means, variances
and histograms move per record.

Distances between datasets come in two kinds. Under `add-remove` a distance counts records that
enter or leave (symmetric, insert-delete). Under `replace` it counts records that change their value
(change-one, Hamming). If the size is public, equally many records enter and leave, so d_in
additions and removals are ⌊d_in/2⌋ replacements.
"""

from __future__ import annotations

from fractions import Fraction

from dpframe.theory.exact import Root, root_above, square
from dpframe.theory.formulas.sensitivity.grouped import (
    Contribution,
    Relation,
    Sensitivity,
    one_row_sum,
    row_counts,
    row_sums,
)


def replacements(d_in: int, relation: Relation, size: int | None) -> int | None:
    """The largest number of records that change their value, if no record can enter or leave.

    Input:  d_in: distance (count); size: public number of records, None when it is not public
    Output: count, at most the size; None when records may enter or leave
    Bound:  with a fixed size every record that leaves is matched by one that enters
    Source: Kifer and Machanavajjhala 2011, section 2 (bounded and unbounded neighbours)
    Errors: none here

    >>> (
    ...     replacements(3, "add-remove", 10),
    ...     replacements(3, "replace", None),
    ...     replacements(3, "add-remove", None),
    ... )
    (1, 3, None)
    """
    if relation == Relation.REPLACE:
        return d_in if size is None else min(d_in, size)
    return None if size is None else min(d_in // 2, size)


def vector_length(d_in: int, relation: Relation, size: int | None) -> Fraction:
    """Change of the number of records: d_in, or 0 if the size is public.

    >>> vector_length(3, "add-remove", None), vector_length(3, "replace", None)
    (Fraction(3, 1), Fraction(0, 1))
    """
    return Fraction(0) if replacements(d_in, relation, size) is not None else Fraction(d_in)


def total(
    d_in: int, lower: Fraction, upper: Fraction, relation: Relation, size: int | None
) -> Fraction:
    """Change of the sum of values in [lower, upper].

    Input:  d_in (count); lower <= upper (unit of the values); size: public number of records or
            None
    Output: unit of the values, exact
    Bound:  a record that enters or leaves adds at most max(|lower|, |upper|); one that changes its
            value moves the sum by at most upper - lower
    Source: `row_sums` and `one_row_sum`
    Errors: none here

    >>> (
    ...     total(1, Fraction(-3), Fraction(10), "add-remove", None),
    ...     total(2, Fraction(-3), Fraction(10), "add-remove", 5),
    ... )
    (Fraction(10, 1), Fraction(13, 1))
    """
    replaced = replacements(d_in, relation, size)
    if replaced is not None:
        return replaced * one_row_sum(lower, upper).exact_l1
    if d_in == 0:
        return Fraction(0)
    limits = Contribution(groups=1, rows_per_group=d_in, rows=d_in)
    return row_sums(limits, lower, upper, Relation.ADD_REMOVE, cells=1).exact_l1


def sized_mean(
    d_in: int, lower: Fraction, upper: Fraction, relation: Relation, size: int
) -> Fraction:
    """Change of the mean of `size` values in [lower, upper]:
    that of their sum, divided by the size.

    >>> sized_mean(1, Fraction(0), Fraction(10), "replace", 4)
    Fraction(5, 2)
    """
    return total(d_in, lower, upper, relation, size) / size


def sized_variance(
    d_in: int, lower: Fraction, upper: Fraction, relation: Relation, size: int, ddof: int = 1
) -> Fraction:
    """Change of the variance (sum of squared deviations over size - ddof) of
    `size` values in [lower, upper].

    Input:  as in `total`, with a public size > ddof (counts)
    Output: unit of the values squared, exact
    Bound:  let d values change and let m = size - d values with mean μ stay. The sum of squared
            deviations is that of the values that stay, plus f = SS_d + (m·d/size)·(mean_d - μ)². f
            is 0 if all d values equal μ. It is convex in each value and in μ, so it is largest if
            all of them are at the ends of the interval. With μ at one end and j of the d values at
            the other, f = width²·j(size - j)/size. So the change is at most width²·max_{j <= d}
            j(size - j)/(size·(size - ddof)), and this bound is attained
    Source: the decomposition is Chan, Golub and LeVeque 1983; for d = 1 see D'Orazio, Honaker and
            King 2015
    Errors: none here

    >>> sized_variance(1, Fraction(0), Fraction(10), "replace", 4)
    Fraction(25, 1)
    """
    replaced = replacements(d_in, relation, size) or 0
    j = min(replaced, size // 2)
    return (upper - lower) ** 2 * Fraction(j * (size - j), size * (size - ddof))


def cell_counts(d_in: int, relation: Relation, size: int | None, cells: int | None) -> Sensitivity:
    """Change of the number of records per category. Each record is in one cell or in none.

    Input:  d_in (count); size: public number of records or None; cells: number of categories, None
            if it is not public
    Output: Sensitivity (records), exact
    Bound:  a record that enters or leaves changes one cell by 1; a record that changes its value
            changes two cells. All d_in records may be in one cell, so linf = d_in, and l2 is d_in
            (entering) or √2·d_in (changing)
    Source: `row_counts`, with one unit that owns all the records that differ
    Errors: none here

    >>> cell_counts(2, "add-remove", None, 5), cell_counts(2, "replace", None, 5)
    (Sensitivity(l0=2, l1=2, l2=2, linf=2), Sensitivity(l0=4, l1=4, l2=2.8284271247461903, linf=2))
    """
    replaced = replacements(d_in, relation, size)
    differing = d_in if replaced is None else replaced
    if differing == 0:
        return Sensitivity.of(l0=0, l1=0, l2_squared=0, linf=0)
    limits = Contribution(groups=differing, rows_per_group=differing, rows=differing)
    return row_counts(limits, Relation.ADD_REMOVE if replaced is None else Relation.REPLACE, cells)


def resized(d_in: int, relation: Relation, size: int | None, length: int) -> int:
    """Distance, of the kind of d_in, between two datasets after both were cut or
    filled up to `length` records.

    Input:  d_in, and length (counts); size: public number of records before, or None
    Output: count
    Bound:  the result has `length` records, chosen by an order that does not depend on the other
            records. So each record that enters or leaves replaces at most one record; a replacement
            counts as one addition and one removal. At most all records are replaced
    Source: the order is by a hash of value and multiplicity, as in bottom-k sampling (Cohen and
            Kaplan 2007)
    Errors: none here

    >>> (
    ...     resized(3, "add-remove", None, 10),
    ...     resized(3, "replace", None, 10),
    ...     resized(99, "replace", None, 10),
    ... )
    (6, 3, 10)
    """
    most = replacements(d_in, relation, size)
    replaced = min(d_in if most is None else most, length)
    return replaced if relation == Relation.REPLACE else 2 * replaced


def squared_deviations(
    d_in: int, lower: Fraction, upper: Fraction, relation: Relation, size: int
) -> Fraction:
    """Change of the sum of squared deviations from the mean of `size` values in [lower, upper].

    Bound:  the bound of `sized_variance` times its divisor: (upper - lower)²·j(size - j)/size with
            j = min(number of records that change, ⌊size/2⌋)

    >>> squared_deviations(1, Fraction(0), Fraction(10), "replace", 4)
    Fraction(75, 1)
    """
    return size * sized_variance(d_in, lower, upper, relation, size, 0)


def tight_l1(
    l0: int, l1: Fraction | Root, linf: Fraction | Root
) -> tuple[int, Fraction | Root, Fraction | Root]:
    """The triple (l0, l1, linf), with l1 and linf reduced to what the other two numbers allow.

    Input:  cells that change (count), sum of the changes and the largest one (unit of the cells)
    Output: (l0, min(l1, l0·linf), min(linf, l1)), exact
    Bound:  a sum of l0 terms is at most l0 times the largest; no term is above the sum of all
    Source: elementary
    Errors: none here

    >>> tight_l1(100, Fraction(10), Fraction(1, 1000))[1]
    Fraction(1, 10)
    """
    if square(l1) > l0 * l0 * square(linf):
        l1 = l0 * linf if isinstance(linf, Fraction) else Root(l0 * l0 * square(linf))
    return l0, l1, linf if square(linf) <= square(l1) else l1


def tight_l2(
    l0: int, l2: Fraction | Root, linf: Fraction | Root
) -> tuple[int, Fraction | Root, Fraction | Root]:
    """The triple (l0, l2, linf), with l2 and linf reduced to what the other two numbers allow.

    Input:  cells that change (count), Euclidean length of the change and the largest one (unit of
            the cells)
    Output: (l0, min(l2, √l0·linf), min(linf, l2)), exact
    Bound:  a sum of l0 squares is at most l0 times the largest; no entry is longer than the vector
    Source: elementary
    Errors: none here

    >>> tight_l2(100, Fraction(10), Fraction(1, 1000))[1]
    Root(squared=Fraction(1, 10000))
    """
    if square(l2) > l0 * square(linf):
        l2 = Root(l0 * square(linf))
    return l0, l2, linf if square(linf) <= square(l2) else l2


def lengthened(l2: Fraction | Root, step: Fraction, cells: int) -> Fraction | Root:
    """L2 distance of two vectors after rounding moved each of `cells` entries
    by up to step/2 in each vector.

    Input:  l2 before rounding and the step (unit of the entries); cells (count)
    Output: l2 + √cells·step (unit of the entries). Its square is exact if l2·√cells is rational,
            otherwise rounded up by less than 2^-128 of its value
    Bound:  the triangle inequality; the two vectors of moves differ by at most √cells·step
    Source: elementary
    Errors: none here

    >>> lengthened(Fraction(3), Fraction(1, 2), 4)
    Root(squared=Fraction(16, 1))
    """
    if step == 0:
        return l2
    before, moves = square(l2), cells * step * step
    return Root(before + moves + 2 * root_above(before * moves))
