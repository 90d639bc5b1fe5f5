"""A sum and a count that are measured as a pair, with less noise than if each
of them had half of the price.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpframe.noise import rounded_reach
from dpframe.theory.formulas.sensitivity.grouped import (
    Contribution,
    Relation,
    Sensitivity,
    row_counts,
)


def paired_l1(total: Sensitivity) -> Fraction:
    """L1 sensitivity of h·N + S and h·N - S over all groups together, for a sum S
    and the count N of its values.

    Input:  total: the sensitivity of S as `row_sums` makes it, of values in [lower, upper]; h =
            max(|lower|, |upper|)
    Output: in the unit of S, exact: twice the l1 of S alone
    Bound:  |a + b| + |a - b| = 2·max(|a|, |b|). So in a group in which N changes by n and S by s,
            the two totals change by 2·max(h·|n|, |s|) together. Let w be a unit's weight in a
            group, at most k in one group and K in all. Then the unit's part of N lies in [0, w],
            and its part of S in [w·min(lower, 0), w·max(upper, 0)], so within h·w. If one unit
            joins or leaves, the change is at most 2h·w in each of its groups, so in all at most
            2h·min(K, groups·k). If one unit replaces another with weight w', it is at most 2h·(w +
            w') in a group. Also n is at most k, and s at most k·width, where width is that of the
            smallest interval with lower, upper and 0, so at least h. In all this gives 2·min(2h·K,
            groups·k·width). Both bounds are twice the l1 of `row_sums`. The proof does not assume
            that a value is in both N and S, so it holds with missing values and with rounding
            toward 0. Groups that are added together change by no more in all (as in `rest_scale`)
    Source: ours; in words: a value x in [-h, h] adds h + x to one total and h - x to the other,
            together 2h
    Errors: none here

    >>> from dpframe.theory.formulas.sensitivity.grouped import Contribution, row_sums
    >>> paired_l1(row_sums(Contribution(groups=3, rows_per_group=2, rows=4), -5, 5, "add-remove"))
    Fraction(40, 1)
    """
    return 2 * total.exact_l1


def joint_l1(
    limits: Contribution, relation: Relation, row: Fraction, cells: int | None = None
) -> Fraction:
    """L1 sensitivity of missing values, and of a sum and a count as a
    pair, over all groups together.

    A group has N rows and V values, which lie in [-h, h], with the sum S. Its vector is N - V, (V +
    S/h) / 2 and (V - S/h) / 2. A row without a value moves the first of the three by 1. A row with
    the value x moves the second by (1 + x/h) / 2 and the third by (1 - x/h) / 2, which is 1
    together.

    Input:  limits of one unit (counts); row: what one row of weight 1 adds to N and V (units of V),
            1 where rows have no weights; cells: how many groups the table has, None where it is not
            known
    Output: the l1 of the three, over all groups (units of V), exact
    Bound:  neighbouring tables differ in the rows of one unit; under replace, of two. Let a unit
            have n rows in a group, v of them with a value, and let s be the sum of these values, so
            |s| <= h·v. Without weights it moves the three by n - v and by (|v + s/h| + |v - s/h|) /
            2 = max(v, |s|/h) = v, together by n. With weights its rows weigh w in all, and it adds
            w to N, v' to V and s' to S. There v' is v·w/n and s' is s·w/n, each computed in floats,
            rounded toward 0, and clipped to [0, w] and [-h·w, h·w]. Three operations on floats are
            off by at most 3·2^-53 of w, which is below 2^51, so by 3/4. Hence |s'|/h <= v·w/n + 3/4
            and v' > v·w/n - 7/4. The unit moves the three by w - v' + max(v', |s'|/h) <= w + 3, in
            units of 2^-20 rows. The weights of a unit add up to at most the l1 of the counts, in at
            most l0 groups. If two units differ, the triangle inequality adds both
    Source: Dwork, McSherry, Nissim, Smith 2006, doi:10.1007/11681878_14, for histograms; Awan,
            Slavković 2021, arXiv:1905.09420, for joint sensitivities of this kind; the cells are
            ours
    Errors: none here

    >>> joint_l1(Contribution(groups=3, rows_per_group=2, rows=4), "add-remove", Fraction(1))
    Fraction(4, 1)
    >>> (
    ...     joint_l1(Contribution(groups=3, rows_per_group=2, rows=4), "replace", Fraction(2**20))
    ...     - 8 * 2**20
    ... )
    Fraction(18, 1)
    """
    one = row_counts(limits, Relation.ADD_REMOVE, cells)
    rounding_of_weights = 0 if row == 1 else 3 * one.l0
    return (2 if relation == Relation.REPLACE else 1) * (one.exact_l1 * row + rounding_of_weights)


def pair_scale(scale: float, weight: int) -> tuple[float, float]:
    """The noise on S and on N when Laplace noise is added to h·N + S and to h·N - S.

    Input:  scale: l1/ε rounded up, with l1 that of S alone (its unit); weight: h, in units of S for
            each of N
    Output: the scales a and b: the noise on S is the sum of two independent Laplace noises of scale
            a (unit of S), and the noise on N is the sum of two of scale b (unit of N)
    Bound:  by `paired_l1` both totals have noise of scale 2·l1/ε. S is half their difference, and
            h·N is half their sum. So S has the sum of two noises of scale l1/ε. N has these two
            noises, one with its sign changed, divided by h
    Source: ours
    Errors: none here

    >>> pair_scale(20.0, 5)
    (20.0, 4.0)
    """
    return scale, scale / weight


def pair_gains(
    total: Sensitivity,
    count: Sensitivity,
    weight: int,
    shares: tuple[Fraction, Fraction],
    *,
    mean_only: bool,
) -> bool:
    """Whether S and N have less noise as a pair than if each of them had its own share of ε.

    Input:  sensitivities of S and N (each in its unit); weight as in `pair_scale`; the shares of S
            and N; mean_only: whether N is used for a single mean (or standard deviation) and for
            nothing else
    Bound:  separately the variances are 2·(l1/share)². As a pair they are 4·(l1/(sum of shares))²
            with the l1 of S; for N divided by h². Neither may be larger as a pair. But if only a
            mean m is computed from them, the variance of N has the weight m² <= h². Then it is
            enough that V(S) and V(S) + h²·V(N) are not larger
    Source: ours
    Errors: none here

    >>> from dpframe.theory.formulas.sensitivity.grouped import Contribution, row_counts, row_sums
    >>> one = Contribution(groups=3, rows_per_group=2, rows=4)
    >>> total, count = row_sums(one, -5, 5, "add-remove"), row_counts(one, "add-remove")
    >>> pair_gains(total, count, 5, (Fraction(1), Fraction(1)), mean_only=False)
    True
    >>> pair_gains(total, count, 5, (Fraction(1), Fraction(9)), mean_only=False)
    False
    """
    of_sum, of_count = shares
    # the variance of S, and h² times the variance of N
    paired = 4 * (total.exact_l1 / (of_sum + of_count)) ** 2
    sum_alone, count_alone = (
        2 * (total.exact_l1 / of_sum) ** 2,
        2 * (weight * count.exact_l1 / of_count) ** 2,
    )
    return paired <= sum_alone and (
        2 * paired <= sum_alone + count_alone if mean_only else paired <= count_alone
    )


def paired_error(scale: float, alpha: float, *, weight: int = 1, per: int = 1) -> int:
    """The e that the noise on S or on N exceeds with probability at most alpha, after rounding.

    Input:  scale (grid units) of the two Laplace noises in the sum, see `pair_scale`; alpha in (0,
            1); weight: h for N, 1 for S; per: how many grid units make 1. If it is above 1, the
            released number is rounded half up to a multiple of `per`, as in `rounded_reach`
    Output: e, in units of `per`; at most one grid unit above the smallest such e
    Bound:  for scale 1, a sum of two Laplace noises is at least t with probability e^-t (2 + t)/4.
            Rounding both noises to the grid moves half their sum, divided by the weight, by up to
            1/(2·weight). Rounding the result moves it by up to 1/2. For `per` above 1, see
            `rounded_reach`
    Source: Kotz, Kozubowski, Podgórski 2001, The Laplace Distribution, section 2.3
    Errors: none here

    >>> (
    ...     paired_error(20.0, 0.05),
    ...     paired_error(20.0, 0.05, weight=2**20),
    ...     paired_error(20.0 * 2**20, 0.05, per=2**20),
    ... )
    (83, 82, 82)
    """
    shift = rounding(weight)

    def tail(units: int) -> float:
        t = max(units - shift, 0) / scale
        return (2 + t) / 4 * math.exp(-t)

    return rounded_reach(lambda near, far: tail(near) + tail(far) <= alpha, per)


def rounding(weight: int) -> float:
    """The largest move that rounding can add to the noise on S or on N
    (grid units): see `paired_error`.

    >>> rounding(1), rounding(4)
    (1.0, 0.625)
    """
    return 0.5 + 0.5 / weight
