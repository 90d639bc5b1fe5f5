"""The price of a choice among candidates: how far one unit moves their scores, and what choices cost in ρ.

A choice is made by permute-and-flip, which is the best one for ε, or by the exponential mechanism, whose log ratios lie
in an interval, so that in ρ it costs a quarter as much and choices in many groups add up by squares.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from dpframe.noise import whole
from dpframe.theory.formulas.loss.calibration import gaussian_scale_rho
from dpframe.theory.formulas.loss.loss import permute_and_flip_rho
from dpframe.theory.formulas.sensitivity import Sensitivity

__all__ = [
    "PRIOR",
    "choices_rho",
    "count_scale",
    "count_scale_rho",
    "fewer_rows",
    "rank_prior",
    "rank_scale",
    "rank_scale_rho",
    "rank_terms",
]

PRIOR = 8  # public rows under every quantile, in scales of its choice; see `rank_prior`
_LARGEST = 2**60


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


def rank_prior(rank: Fraction, candidates: int, rate: Fraction) -> list[tuple[int, int]]:
    """What public rows, spread evenly over the candidates, add to the score of each; none under a minimum or maximum.

    Input:  rank in (0, 1); candidates: how many; rate > 0 of the choice per score unit
    Output: for each candidate what they add to (b - a)·L - a·(U + E), and to a·U - (b - a)·(L + E) (score units), see
            `rank_terms`; rounded down
    Bound:  each group is taken to have PRIOR·scale more rows, where `scale` is that of the choice, in rows, so that
            scale·b = 1/rate. With i of the C candidates below the i-th, these add PRIOR/rate·(i/C - a/b) to the one and
            PRIOR/rate·(a/b - (i + 1)/C) to the other: constants that no table has a part in (held at 2^60). The score
            is minus the larger of both sums and 0, which a row moves by no more than before. What it gains: a group
            with hardly a row has a quantile near the part a/b of the way between the bounds, and not anywhere between
            them. What it costs: a quantile is that of the rows and of these, so it moves by at most
            PRIOR·scale·max(a/b, 1 - a/b) of the ranks of the rows, and by less where it is near that place
    Source: ours; the number is the one that did best over six public panels, see `benchmarks/results/compare.md`
    Errors: none here

    >>> rank_prior(Fraction(1, 2), 2, Fraction(1, 10)) == [(-5 * PRIOR, 0), (0, -5 * PRIOR)]
    True
    """
    a, b = rank.as_integer_ratio()
    rows, per = (PRIOR / rate).as_integer_ratio()
    per *= b * candidates
    turns = [rows * (b * i - a * candidates) for i in range(candidates + 1)]
    return [
        (max(min(up // per, _LARGEST), -_LARGEST), max(min(-down // per, _LARGEST), -_LARGEST))
        for up, down in itertools.pairwise(turns)
    ]


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


def rank_scale_rho(rank: Fraction, rows: Sensitivity, rho: Fraction) -> Fraction:
    """Scale of the exponential mechanism on rank scores, in the unit of the rows' sensitivity.

    Input:  rank; rows as in `rank_scale`; rho > 0, for all groups together
    Output: rounded up; a candidate whose split is wrong by `scale` more rows is e times rarer
    Bound:  in a group where a unit's rows change by c, scores move by at most (change per row)·c either way. At rate r
            the log ratio of a candidate's chances is r times its move, less what all candidates have in common, so all
            lie in one interval of length 2·r·(change per row)·c, and the choice costs the square of that over 8
            (`privacy.bounded_range_rho`). Over all groups the squares of c add up to at most l2²: so ρ is
            (r·change)²·l2²/2, that of Gaussian noise on the rows with σ = 1/(r·change)
    Source: Dong, Durfee, Rogers 2020, arXiv:1909.13830, for the range; Cesar, Rogers 2021, arXiv:2004.07223
    Errors: none here

    >>> rank_scale_rho(Fraction(1, 2), Sensitivity.of(l0=16, l1=16, l2_squared=16, linf=1), Fraction(1, 2))
    Fraction(2, 1)
    """
    change, units = rank_terms(rank)
    return Fraction(gaussian_scale_rho(l2_squared=rows.l2_squared, rho=rho)) * change / units


def count_scale(rows: Sensitivity, rounds: int, epsilon: Fraction) -> Fraction:
    """Scale of permute-and-flip on the rows of each candidate, in the unit of the rows' sensitivity.

    Input:  rows: the sensitivity of the rows per group and value (`row_places`); rounds: how many candidates are
            chosen, one after the other, each among those that are left; epsilon > 0, for all groups and rounds together
    Output: exact; a candidate with `scale` fewer rows is e times rarer
    Bound:  permute-and-flip is the argmax of rate·score + E, with independent E of law Exp(1). Given the others' E, a
            candidate v wins when its E is at least t = max over u ≠ v of (rate·score_u + E_u), less rate·score_v. Let
            scores move by d, all of them in an interval of length w: that maximum moves by something in rate·(the
            interval), rate·score_v too, so t by at most rate·w, and P[E >= t] = exp(-max(t, 0)) by a factor of at most
            exp(rate·w). So a group costs rate·w: no factor 2, although scores may move both ways. A unit with c rows
            in a group moves scores by d in [0, c] when it comes, in [-c, 0] when it leaves: w = c. Under replace one
            with c leaves and one with c' comes: d is in [-c, c'], w = c + c'. The w of all groups add up to at most
            l1. Rounds are composed one after the other, the candidates of a round being known from those before: each
            has epsilon/rounds
    Source: McKenna and Sheldon 2020, arXiv:2010.12603; Ding et al. 2021, arXiv:2105.07260, for the law as an argmax;
            the bound by the range is ours
    Errors: none here

    >>> count_scale(Sensitivity.of(l0=3, l1=4, l2_squared=8, linf=2), 2, Fraction(1, 2))
    Fraction(16, 1)
    """
    return rounds * rows.exact_l1 / epsilon


def count_scale_rho(rows: Sensitivity, rounds: int, rho: Fraction) -> Fraction:
    """Scale of the exponential mechanism on the rows of each candidate, in the unit of the rows' sensitivity.

    Input:  rows, rounds as in `count_scale`; rho > 0, for all groups and rounds together
    Output: rounded up; a candidate with `scale` fewer rows is e times rarer
    Bound:  in a group where a unit has c rows, its scores move by something in an interval of length c (w of
            `count_scale`), and so do log ratios, times the rate: (c/scale)²/8, as in `rank_scale_rho`
    Source: as `rank_scale_rho`
    Errors: none here

    >>> count_scale_rho(Sensitivity.of(l0=4, l1=4, l2_squared=4, linf=1), 2, Fraction(1, 4))
    Fraction(2, 1)
    """
    return Fraction(gaussian_scale_rho(l2_squared=rows.l2_squared, rho=rho / rounds)) / 2


def fewer_rows(scale: float, candidates: int, alpha: float, *, exponential: bool = False) -> float:
    """How many fewer rows than the best candidate the chosen one may have, exceeded with probability at most alpha.

    Input:  scale of the choice on rows; candidates there are to choose from; alpha in (0, 1); exponential: by the
            exponential mechanism, in place of permute-and-flip
    Output: rows
    Bound:  a candidate with e·scale fewer rows than the best wins only if its E (see `count_scale`) is at least the
            best one's plus e, which has probability exp(-e)/2; there are at most candidates - 1 of these:
            e = ln((candidates - 1) / 2·alpha). For two candidates it is exact. By the exponential mechanism the k =
            candidates - 1 together have at most k·exp(-e)/(1 + k·exp(-e)): e = ln(k·(1 - alpha)/alpha)
    Source: as `count_scale`
    Errors: none here

    >>> fewer_rows(2.0, 1, 0.05), round(fewer_rows(2.0, 11, 0.05), 4)
    (0.0, 9.2103)
    """
    others = candidates - 1
    if others < 1:
        return 0.0
    return scale * max(0.0, math.log(others * (1 - alpha) / alpha if exponential else others / (2 * alpha)))


def choices_rho(pieces: int, epsilon: Fraction) -> Fraction:
    """ρ of a mechanism that is made of pieces of epsilon/pieces each: rounds of choices, or keys that are kept.

    Input:  pieces: how many; epsilon > 0, of all together
    Output: ρ, rounded up: pieces·ε'·tanh(ε'/2) with ε' = epsilon/pieces
    Bound:  rounds of permute-and-flip, over all groups together, are ε'-private one after the other. The optimal rule
            for keys (`partitions.selection_scale`) is (ε', δ')-private for each of `pieces` keys: its two laws are
            P = (1-δ')·P' + δ'·P″ and Q = (1-δ')·Q' + δ'·Q″ with P' and Q' ε'-close, since any such pair is randomized
            response of ε' that with probability δ' shows its secret, post-processed. With probability (1-δ')^pieces
            no key shows it, on either side, and what is left is a product of ε'-close pairs: δ-approximate zCDP
    Source: `privacy.pure_to_zcdp` for one piece; Kairouz, Oh, Viswanath 2015, arXiv:1311.0776, section 3, for the
            decomposition; Bun, Steinke 2016, arXiv:1605.02065, lemma 2.3 and definition 8.1
    Errors: InvalidArgument for fewer than one piece, InvalidPrice for a negative ε

    >>> choices_rho(1, Fraction(1)) > choices_rho(4, Fraction(1))
    True
    """
    count = whole("pieces", pieces, 1)
    return count * Fraction(permute_and_flip_rho(epsilon / count))
