"""A sum and a count that are measured as a pair: less noise on both than one half of the price buys for each."""

from __future__ import annotations

import math
from fractions import Fraction

from dpframe.theory.formulas.sensitivity.grouped import Sensitivity

__all__ = ["pair_gains", "pair_scale", "paired_error", "paired_l1", "rounding"]


def paired_l1(total: Sensitivity) -> Fraction:
    """L1 sensitivity of h·N + S and h·N - S over all groups together, for a sum S and the count N of its values.

    Input:  total: the sensitivity of S as `row_sums` makes it, of values in [lower, upper]; h = max(|lower|, |upper|)
    Output: in the unit of S, exact: twice the l1 of S alone
    Bound:  |a + b| + |a - b| = 2·max(|a|, |b|), so in a group in which N changes by n and S by s the two change by
            2·max(h·|n|, |s|). Let w be a unit's weight in a group, at most k in it and K in all: there its part of N
            lies in [0, w], and of S in [w·min(lower, 0), w·max(upper, 0)], so within h·w. When one unit joins or
            leaves, the change is at most 2h·w in each of its groups, so 2h·min(K, groups·k). When one takes another's
            place, it is at most 2h·(w + w') in a group, and n within k, s within k·width, where the width is that of
            [lower, upper] and 0, so at least h: 2·min(2h·K, groups·k·width). Both are twice the l1 of `row_sums`. It
            is not asked whether a value is in both N and S, so missing values and rounding toward 0 change nothing.
            Groups that are added together change by no more in all (as in `rest_scale`)
    Source: ours; for values in [-h, h] it is what a value adds to "up" and "down", h + x and h - x, which add up to 2h
    Errors: none here

    >>> from dpframe.theory.formulas.sensitivity.grouped import Contribution, row_sums
    >>> paired_l1(row_sums(Contribution(groups=3, rows_per_group=2, rows=4), -5, 5, "add-remove"))
    Fraction(40, 1)
    """
    return 2 * total.exact_l1


def pair_scale(scale: float, weight: int) -> tuple[float, float]:
    """The noise on S and on N when Laplace noise is added to h·N + S and to h·N - S.

    Input:  scale: l1/ε rounded up, with l1 that of S alone (its unit); weight: h, in units of S for each of N
    Output: the scales a and b: the noise on S is the sum of two independent Laplace noises of scale a (unit of S), and
            that on N of two of scale b (unit of N)
    Bound:  the two have noise of scale 2·l1/ε by `paired_l1`. Half their difference is S, half their sum h·N; so S has
            two noises of scale l1/ε, and N has the same two, one with the other sign, divided by h
    Source: ours
    Errors: none here

    >>> pair_scale(20.0, 5)
    (20.0, 4.0)
    """
    return scale, scale / weight


def pair_gains(
    total: Sensitivity, count: Sensitivity, weight: int, shares: tuple[Fraction, Fraction], *, mean_only: bool
) -> bool:
    """Whether less noise comes of a pair than each of the two would have for its own share of ε.

    Input:  sensitivities of S and N (each in its unit); weight as in `pair_scale`; the shares of S and N; mean_only:
            whether N serves a single mean (or spread) and nothing else
    Bound:  alone the variances are 2·(l1/share)², as a pair 4·(l1/(sum of shares))² with the l1 of S, over h² for N.
            Neither may be larger; but if all that is made of them is a mean m, that of N counts m² times, which is at
            most h² times, and it is enough that both V(S) and V(S) + h²·V(N) are not larger
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
    paired = 4 * (total.exact_l1 / (of_sum + of_count)) ** 2  # for S, and h² times that of N
    sum_alone, count_alone = 2 * (total.exact_l1 / of_sum) ** 2, 2 * (weight * count.exact_l1 / of_count) ** 2
    return paired <= sum_alone and (2 * paired <= sum_alone + count_alone if mean_only else paired <= count_alone)


def paired_error(scale: float, alpha: float, *, weight: int = 1, per: int = 1) -> int:
    """Smallest e that the noise of one of a pair exceeds with probability at most alpha, after rounding.

    Input:  scale (grid units) of the two noises it is made of, see `pair_scale`; alpha in (0, 1); weight: that of N, 1
            for S; per: how many grid units make 1: with more than one, what is released is the number of them, rounded
            half up, as in `rounded_error`
    Output: e, in units of `per`; up to a grid unit more than the least
    Bound:  for scale 1, a sum of two Laplace noises is t or more with probability e^-t (2 + t)/4. Rounding each to the
            grid moves half their sum over the weight by up to 1/(2·weight), and rounding that by 1/2; a number of
            several grid units as in `rounded_error`
    Source: Kotz, Kozubowski, Podgórski 2001, The Laplace Distribution, section 2.3
    Errors: none here

    >>> paired_error(20.0, 0.05), paired_error(20.0, 0.05, weight=2**20), paired_error(20.0 * 2**20, 0.05, per=2**20)
    (83, 82, 82)
    """
    moved = rounding(weight)

    def tail(units: int) -> float:
        t = max(units - moved, 0) / scale
        return (2 + t) / 4 * math.exp(-t)

    def within(e: int) -> bool:
        far = tail((e + 1) * per)
        return (2 * far if per == 1 else tail(e * per + 1) + far) <= alpha

    low, high = -1, 1
    while not within(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if within(middle) else (middle, high)
    return high


def rounding(weight: int) -> float:
    """How far rounding moves the noise of one of a pair at most, in its grid units: see `paired_error`.

    >>> rounding(1), rounding(4)
    (1.0, 0.625)
    """
    return 0.5 + 0.5 / weight
