"""The privacy loss of selecting a candidate: how far one unit moves the scores, and
what selections cost in ε and ρ.

A candidate is selected by permute-and-flip, which is the best mechanism for ε, or by the
exponential mechanism. The log ratios of the exponential mechanism lie in one interval, so in ρ it
costs a quarter as much, and the ρ of selections in many groups adds up by squares.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpframe.noise import whole
from dpframe.theory.formulas.loss.calibration import gaussian_scale_rho
from dpframe.theory.formulas.loss.loss import pure_to_zcdp
from dpframe.theory.formulas.sensitivity import Sensitivity

# Number of public rows that are added to a quantile of no rows, in scales of its selection:
# `rank_prior`.
PRIOR = 8
# The part of a score's change that fading public rows add at most is 1 / FADING: `fade`.
FADING = 32
# Odds against a choice beyond all rows, for the minimum and the maximum; see `extreme_targets`.
BEYOND = 8
_LARGEST = 2**60


def fade(rank: Fraction) -> int:
    """Rows of a group by which it has one public row less.

    Input:  rank q in (0, 1)
    Bound:  with one public row less for each f rows, a row moves a score by max(q, 1 - q) + min(q,
            1 - q)/f rows in place of max(q, 1 - q), see `rank_prior`. So fading adds a part min(q,
            1 - q)/(max(q, 1 - q)·f), which is at most 1/FADING for this f, whatever the rank. A
            median has f = 32; a 9th decile has f = 4, since a row above it moves its score nine
            times as much as one below does: there, public rows leave eight times as soon
    Source: ours

    >>> fade(Fraction(1, 2)), fade(Fraction(1, 10)), fade(Fraction(9, 10)), fade(Fraction(99, 100))
    (32, 4, 4, 1)
    """
    return math.ceil(FADING * min(rank, 1 - rank) / max(rank, 1 - rank))


def rank_terms(rank: Fraction) -> tuple[int, int]:
    """Change of an integer score of a candidate by one row, and number of
    score units that make one row.

    Input:  rank = a/b in [0, 1]: the quantile has this part of the rows below it
    Output: (change per row, score units per row)
    Bound:  with L rows below a candidate, E at it and U above, the score is minus the largest of (b
            - a)·L - a·(U + E), a·U - (b - a)·(L + E) and 0, each with the constants of `rank_prior`
            where there are few rows; it is 0 if the candidate is the quantile. A row changes each
            of the first two by a or by b - a, and what public rows add to it by at most a part 1/f
            of the other of these in the same direction, with f of `fade`. Scores are whole numbers,
            so the unit is a part 1/f of that of a and b. For the minimum (a = 0) the score is minus
            the largest of 2·L - t, t - 2·(L + E) and 0, with t of the number of rows, see
            `extreme_targets`. A row changes t by 0 to 1, and L or E by 0 or 1, so each of these by
            at most 2. For the maximum, U takes the place of L. A row of weight w changes each of
            them w times as much
    Source: Smith 2011, STOC, for rank scores; the scores for the ends are ours
    Errors: none here

    >>> rank_terms(Fraction(1, 2)), rank_terms(Fraction(1, 4)), rank_terms(Fraction(0))
    ((33, 64), (34, 44), (2, 2))
    """
    if rank in (0, 1):
        return 2, 2
    rows = fade(rank)
    return (rows - 1) * reach_change(rank) + rank.denominator, rows * rank.denominator


def reach_change(rank: Fraction) -> int:
    """Change of a score without public rows by one row, in parts 1/b of a row, for a rank a/b.

    >>> reach_change(Fraction(1, 4))
    3
    """
    return max(rank.numerator, rank.denominator - rank.numerator)


def rank_prior(rank: Fraction, candidates: int, rate: Fraction) -> list[tuple[int, int]]:
    """Public rows, spread evenly over the candidates, in the two terms
    of each score of a small group.

    Input:  rank in (0, 1), so neither minimum nor maximum; candidates: how many; rate > 0 of the
            selection per score unit
    Output: for each of the borders between candidates, from before the first to after the last, a
            constant p (score units, rounded toward 0) and a whole number t of which p is a
            multiple. With n rows in the group, a border stands for |p| - ⌊|t|·n/C⌋ units of score,
            or 0 if this is negative, with the sign of p. The border before a candidate is added to
            (b - a)·L - a·(U + E), and that after it is taken from a·U - (b - a)·(L + E), see
            `rank_terms`
    Bound:  an empty group gets PRIOR·scale additional rows, where `scale` is that of the selection,
            in rows, so that
            scale·f·b = 1/rate, with f of `fade`. Of the C candidates, i are below the i-th border,
            so they add p = PRIOR/rate·t/(b·C) with t = b·i - a·C. The p do not depend on the table
            (they are limited to 2^60). The number of additional rows falls by one for each f rows
            of the group, and none are left in a group of PRIOR·f·scale rows. So a row, or w of
            them, changes what a border stands for by at most ⌈|t|·w/C⌉, towards
            0. Where t is negative, |t| is at most a·C: this rises by at most w·a, and so (b - a)·L
               - a·(U + E) with it
            by at most w·(f·(b - a) + a), if the rows are below the candidate, or it falls by at
            most w·f·a. Where t is positive, it is at most (b - a)·C: the sum falls by at most
            w·(f·a + b - a) or rises by at most w·f·(b - a). The other sum is that of the mirror
            image. The score is minus the largest of both sums and 0, so it changes by at most
            w·max(f·(b - a) + a, f·a + b - a).
            The benefit: in a group with hardly any rows the quantile is near the part a/b of the
                         way between the
            bounds, instead of anywhere, and in a large group it is that of the group's rows alone.
            The cost: a part 1/FADING of the price or less. In a small group the quantile is that of
            its rows together with the additional ones, so its rank shifts by at most
            PRIOR·scale·max(a/b, 1 - a/b) rows. Rounded toward 0, they never count for more, and
            less than a score unit counts for nothing. Rounded down, -0.1 is -1, which is a part of
            a row: 4 would be as good a median of 1, 2, 3, 4, 5 as 3
    Source: ours; this PRIOR did best on six public panels, see `benchmarks/results/compare.md`
    Errors: none here

    >>> rank_prior(Fraction(1, 2), 2, Fraction(1, 10)) == [(-5 * PRIOR, -2), (0, 0), (5 * PRIOR, 2)]
    True
    >>> rank_prior(Fraction(1, 2), 3, Fraction(100))[0]
    (0, -3)
    """
    a, b = rank.as_integer_ratio()
    rows, per = (PRIOR / rate).as_integer_ratio()
    per *= b * candidates
    turns = [b * i - a * candidates for i in range(candidates + 1)]
    return [
        (min(abs(turn) * rows // per, _LARGEST) * (1 if turn > 0 else -1), turn) for turn in turns
    ]


def extreme_targets(candidates: int, rate: Fraction, row: int) -> tuple[int, list[int]]:
    """The constants of t, how many score units from the end the
    minimum or the maximum is looked for.

    Input:  candidates: how many, with their copies; rate > 0 of the selection per score unit; row:
            units of one row
    Output: (T, [c_0, c_1, …]) so that t = min(n, T, n + c_0, ⌊n/2⌋ + c_1, ⌊n/4⌋ + c_2, …) for n
            units of rows; at most 2^61
    Bound:  n and each ⌊n/2^k⌋ grow by 0 to w if n grows by a whole number w, and so does their
            minimum. The constants
            do not depend on the table.
            The benefit: ln(1 + BEYOND·rate·n)/rate is a concave function of n, and the terms are
                         its tangents where it
            has the slopes 2^-k. A candidate beyond all rows has a score of -t, so it is less likely
            than those at the target by a factor of 1 + BEYOND·rate·n. About 1/rate of the n gaps
            between rows are near the target, so that all candidates beyond the rows together are
            chosen with a probability of about 1/BEYOND or less. T is enough for any table: there,
            all candidates are less likely together than one at the target
    Source: ours
    Errors: none here

    >>> extreme_targets(3, Fraction(1, 10), 1)
    (14, [13])
    """
    most = min(max(math.ceil(math.log(candidates + 1) / rate), row), 2 * _LARGEST)
    slopes = range(max(math.ceil(math.log2((candidates + 1) / BEYOND)), 1))
    logs = (math.log(BEYOND * 2.0**k) - 1 + 2.0**-k / BEYOND for k in slopes)
    return most, [min(max(math.ceil(log / rate), row), 2 * _LARGEST) for log in logs]


def rank_scale(rank: Fraction, rows: Sensitivity, epsilon: Fraction) -> Fraction:
    """Scale of permute-and-flip on rank scores, in the unit of the rows' sensitivity.

    Input:  rank; rows: the sensitivity of the rows per group and place (`row_places`, not
            `row_counts`: a row that moves inside a group moves scores too); epsilon > 0, for all
            groups together
    Output: exact; a candidate whose rank error is larger by `scale` rows is e times less likely
    Bound:  in a group where a unit's rows change by c, permute-and-flip at rate r costs 2·r·(change
            per row)·c, since scores may rise and fall. The c add up to at most l1, so selections in
            groups cost in proportion to l1, not to l0·linf
    Source: McKenna and Sheldon 2020, arXiv:2010.12603
    Errors: none here

    >>> rank_scale(
    ...     Fraction(1, 2), Sensitivity.of(l0=10, l1=10, l2_squared=100, linf=10), Fraction(1)
    ... )
    Fraction(165, 16)
    """
    change, units = rank_terms(rank)
    return 2 * rows.exact_l1 * change / units / epsilon


def rank_scale_rho(rank: Fraction, rows: Sensitivity, rho: Fraction) -> Fraction:
    """Scale of the exponential mechanism on rank scores, in the unit of the rows' sensitivity.

    Input:  rank; rows as in `rank_scale`; rho > 0, for all groups together
    Output: rounded up; a candidate whose rank error is larger by `scale` rows is e times less
            likely
    Bound:  in a group where a unit's rows change by c, scores change by at most (change per row)·c
            up or down. At rate r the log ratio of a candidate's two probabilities is r times the
            change of its score, minus a constant that all candidates share. So all log ratios lie
            in one interval of length 2·r·(change per row)·c, and the selection costs the square of
            this length over 8 (`privacy.bounded_range_rho`). Over all groups the squares of c add
            up to at most l2². So ρ is (r·change)²·l2²/2, as for Gaussian noise on the rows with σ =
            1/(r·change)
    Source: Dong, Durfee, Rogers 2020, arXiv:1909.13830, for the range; Cesar, Rogers 2021,
            arXiv:2004.07223
    Errors: none here

    >>> rank_scale_rho(
    ...     Fraction(1, 2), Sensitivity.of(l0=16, l1=16, l2_squared=16, linf=1), Fraction(1, 2)
    ... )
    Fraction(33, 16)
    """
    change, units = rank_terms(rank)
    return Fraction(gaussian_scale_rho(l2_squared=rows.l2_squared, rho=rho)) * change / units


def count_scale(rows: Sensitivity, rounds: int, epsilon: Fraction) -> Fraction:
    """Scale of permute-and-flip on the rows of each candidate, in the
    unit of the rows' sensitivity.

    Input:  rows: the sensitivity of the rows per group and value (`row_places`); rounds: how many
            candidates are selected one after the other, each from the remaining candidates; epsilon
            > 0, for all groups and rounds together
    Output: exact; a candidate with `scale` fewer rows is e times less likely
    Bound:  permute-and-flip selects the argmax of rate·score + E, with independent E ~ Exp(1).
            Given the E of all other candidates, candidate v wins if its E is at least t = max over
            u ≠ v of (rate·score_u + E_u) - rate·score_v. Let all scores change by amounts in an
            interval of length w. Then the maximum changes by an amount in rate times this interval,
            and so does rate·score_v. So t changes by at most rate·w, and P[E >= t] = exp(-max(t,
            0)) by a factor of at most exp(rate·w). A group therefore costs rate·w, without a factor
            2, although scores may rise and fall. A unit with c rows in a group changes scores by
            amounts in [0, c] if it joins and in [-c, 0] if it leaves, so w = c. Under replace a
            unit with c rows leaves and one with c' rows joins: the amounts are in [-c, c'], so w =
            c + c'. The w of all groups add up to at most l1. Rounds compose sequentially; the
            earlier rounds determine the candidates of a round. Each round has epsilon/rounds
    Source: McKenna and Sheldon 2020, arXiv:2010.12603; Ding et al. 2021, arXiv:2105.07260, for the
            form as an argmax; the bound by the range is ours
    Errors: none here

    >>> count_scale(Sensitivity.of(l0=3, l1=4, l2_squared=8, linf=2), 2, Fraction(1, 2))
    Fraction(16, 1)
    """
    return rounds * rows.exact_l1 / epsilon


def count_scale_rho(rows: Sensitivity, rounds: int, rho: Fraction) -> Fraction:
    """Scale of the exponential mechanism on the rows of each candidate, in the
    unit of the rows' sensitivity.

    Input:  rows, rounds as in `count_scale`; rho > 0, for all groups and rounds together
    Output: rounded up; a candidate with `scale` fewer rows is e times less likely
    Bound:  in a group where a unit has c rows, scores change by amounts in an interval of length c
            (the w of `count_scale`). Log ratios lie in an interval of c/scale, which costs
            (c/scale)²/8, as in `rank_scale_rho`
    Source: as `rank_scale_rho`
    Errors: none here

    >>> count_scale_rho(Sensitivity.of(l0=4, l1=4, l2_squared=4, linf=1), 2, Fraction(1, 4))
    Fraction(2, 1)
    """
    return Fraction(gaussian_scale_rho(l2_squared=rows.l2_squared, rho=rho / rounds)) / 2


def fewer_rows(scale: float, candidates: int, alpha: float, *, exponential: bool = False) -> float:
    """The number of rows by which the selected candidate falls short of the best
    with probability at most alpha.

    Input:  scale of the selection, in rows; number of candidates; alpha in (0, 1); exponential:
            True for the exponential mechanism, False for permute-and-flip
    Output: rows
    Bound:  a candidate with e·scale fewer rows than the best wins only if its E (see `count_scale`)
            is at least e larger than that of the best. This has probability exp(-e)/2. There are at
            most candidates - 1 of them, so e = ln((candidates - 1) / 2·alpha); for two candidates
            this is exact. Under the exponential mechanism the k = candidates - 1 others together
            have probability at most k·exp(-e)/(1 + k·exp(-e)), so e = ln(k·(1 - alpha)/alpha)
    Source: as `count_scale`
    Errors: none here

    >>> fewer_rows(2.0, 1, 0.05), round(fewer_rows(2.0, 11, 0.05), 4)
    (0.0, 9.2103)
    """
    rivals = candidates - 1
    if rivals < 1:
        return 0.0
    return scale * max(
        0.0, math.log(rivals * (1 - alpha) / alpha if exponential else rivals / (2 * alpha))
    )


def choices_rho(pieces: int, epsilon: Fraction) -> Fraction:
    """ρ of a composition of `pieces` mechanisms with epsilon/pieces each:
    rounds of selections, or keys that are shown.

    Input:  pieces: how many; epsilon > 0, for all of them together
    Output: ρ, rounded up: pieces·ε'·tanh(ε'/2) with ε' = epsilon/pieces
    Bound:  each round of permute-and-flip, over all groups together, is ε'-private, and rounds
            compose sequentially. The optimal rule for keys (`key_selection.selection_scale`) is
            (ε', δ')-private for each of `pieces` keys. Its distributions on two neighbours are P =
            (1-δ')·P' + δ'·P″ and Q = (1-δ')·Q' + δ'·Q″ with P' and Q' ε'-close. For any (ε',
            δ')-private pair is post-processing of randomized response with ε' that reveals its
            secret with probability δ'. With probability (1-δ')^pieces no key reveals it, on either
            side; the remaining distribution is a product of ε'-close pairs. This is δ-approximate
            zCDP
    Source: `privacy.pure_to_zcdp` for one piece; Kairouz, Oh, Viswanath 2015, arXiv:1311.0776,
            section 3, for the decomposition; Bun, Steinke 2016, arXiv:1605.02065, lemma 2.3 and
            definition 8.1
    Errors: InvalidArgument for fewer than one piece, InvalidPrice for a negative ε

    >>> choices_rho(1, Fraction(1)) > choices_rho(4, Fraction(1))
    True
    """
    count = whole("pieces", pieces, 1)
    return count * Fraction(pure_to_zcdp(epsilon / count))
