"""The price of choosing a quantile: how far one row moves the score of a candidate."""

from __future__ import annotations

from fractions import Fraction

from dpframe.theory.maps.sensitivity import Sensitivity

__all__ = ["rank_scale", "rank_terms"]


def rank_terms(rank: Fraction) -> tuple[int, int]:
    """How far one row moves an integer score of a candidate, and how many score units make one row.

    Input:  rank = a/b in [0, 1], the part of the rows that the quantile is not above
    Output: (change per row, score units per row)
    Bound:  with L rows below a candidate, E at it and U above, the score is minus the larger of (b - a)·L - a·(U + E),
            a·U - (b - a)·(L + E) and 0: it is 0 where the candidate is the quantile. A row moves each of the first two
            by a or by b - a. For the minimum (a = 0) the score is minus the larger of 2·L - t, t - 2·(L + E) and 0,
            with t = min(T, n), a constant T and n rows in all: a row moves t by 0 to 1, and L or E by 0 or 1, so each
            of these by at most 2. The maximum is the same with U. A row that counts w moves each by w times as much
    Source: Smith 2011, STOC, for rank scores; the scores for the ends are ours
    Errors: none here

    >>> rank_terms(Fraction(1, 2)), rank_terms(Fraction(1, 4)), rank_terms(Fraction(0))
    ((1, 2), (3, 4), (2, 2))
    """
    if rank in (0, 1):
        return 2, 2
    return max(rank.numerator, rank.denominator - rank.numerator), rank.denominator


def rank_scale(rank: Fraction, rows: Sensitivity, epsilon: Fraction) -> Fraction:
    """Scale of permute-and-flip on rank scores, in the unit of the rows' sensitivity.

    Input:  rank; rows: the sensitivity of the rows per group and place (`row_places`, not `row_counts`: a row that
            moves inside a group moves scores too); epsilon > 0, for all groups together
    Output: exact; a candidate whose split is wrong by `scale` more rows is e times rarer
    Bound:  in a group where a unit's rows change by c, permute-and-flip at rate r costs 2·r·(change per row)·c
            (scores move both ways), and the c add up to at most l1: so grouped choices pay for l1, not for l0·linf
    Source: McKenna and Sheldon 2020, arXiv:2010.12603
    Errors: none here

    >>> rank_scale(Fraction(1, 2), Sensitivity.of(l0=10, l1=10, l2_squared=100, linf=10), Fraction(1))
    Fraction(10, 1)
    """
    change, units = rank_terms(rank)
    return 2 * rows.exact_l1 * change / units / epsilon
