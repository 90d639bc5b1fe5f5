"""The price of showing keys that are found in the data, when nothing but the number of units decides."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dpframe.noise import (
    Number,
    ball,
    float_down,
    keep_probability,
    precision,
    root_up,
    round_down,
    rounded_gaussian_tail,
    whole,
)
from dpframe.theory.formulas.loss.calibration import laplace_scale, threshold
from dpframe.theory.formulas.loss.loss import gaussian_delta, price, probability, threshold_delta
from dpframe.theory.formulas.sensitivity import Sensitivity

__all__ = ["as_likely_as_not", "rest_scale", "selection_scale", "selection_start", "threshold_beside_noise"]

_BLOCKS = 64


def selection_scale(groups: int, epsilon: Number) -> float:
    """Scale of the optimal rule (`keep_probability`): each key has the rate 1/scale.

    Input:  groups: keys whose number of units differs between neighbouring tables, each by 1: `l0` of
            `sensitivity.unit_counts`, m under add-remove and 2m under replace; epsilon > 0, for all keys together
    Output: scale (units): groups/epsilon, rounded up
    Bound:  with ε' = epsilon/groups and δ' = `selection_start`: a key with n units is kept with probability π(n), and
            π(n+1) <= e^ε'·π(n) + δ' and 1 - π(n) <= e^ε'·(1 - π(n+1)) + δ'. Kept and not kept are all that can come of
            a key, and the same two inequalities hold the other way round since π increases; so for one key of which
            one unit is added or taken the rule is (ε', δ')-private. Keys are drawn independently, only `groups` of them
            differ, and those together are (groups·ε', 1 - (1 - δ')^groups)-private. A key without units is never kept
            (π(0) = 0), so that it need not be known. In ρ: see `ranks.choices_rho`
    Source: Desfontaines, Voss, Gipson, Mandayam 2020, arXiv:2006.03684, Theorem 1 (no rule of this ε' and δ' keeps any
            key more often); Kairouz, Oh, Viswanath 2015, arXiv:1311.0776, Theorem 3.3, for the composition
    Errors: InvalidArgument for a negative number of groups, InvalidPrice for an ε that is not positive

    >>> selection_scale(3, 1)
    3.0
    """
    return laplace_scale(whole("groups", groups, 1), epsilon)


def selection_start(delta: Number, groups: int) -> Fraction:
    """The probability with which the optimal rule keeps a key of one unit: δ' for each key.

    Input:  delta in (0, 1), for all keys together; groups as in `selection_scale`
    Output: δ', rounded down to a float
    Bound:  1 - (1 - δ')^groups <= delta
    Source: as `selection_scale`
    Errors: InvalidPrice for a delta outside (0, 1); InvalidArgument for fewer than one group

    >>> 0.5 - 1e-16 < selection_start(0.75, 2) <= 0.5
    True
    """
    allowed, count = probability("delta", delta), whole("groups", groups, 1)
    if count == 1:
        return Fraction(float_down(allowed))
    with precision(128):
        return Fraction(round_down(-((-ball(allowed)).log1p() / count).expm1()))


def rest_scale(cells: Sensitivity, scale: float, *, normal: bool) -> float:
    """Scale of the noise on the total of all suppressed groups, for which nothing is paid beside that of the others.

    Input:  cells: the sensitivity of the groups' totals, as made by `sensitivity.change`; scale of their noise; normal:
            whether it is Gaussian
    Output: scale (same unit), rounded up: the same for Laplace noise, l1/l2 times as large for Gaussian noise
    Bound:  let the released keys be found by a part of the release that says nothing else of these totals. Given the
            keys, what one unit changes is d_g in each released group, in all a, and the total of the others by at most
            l1 - a, since it is a sum over them: l1 in all. So Laplace noise of one scale on everything costs what it
            does on the groups alone. With Gaussian noise of σ on the groups and σ·l1/l2 on the rest, the squares are
            Σ d_g²/σ² + (l1 - a)²·l2²/(l1·σ)². Here Σ d_g² is at most f(a) = j·linf² + (a - j·linf)² with
            j = ⌊a/linf⌋, so it is enough that f(a)/l2² + (1 - a/l1)² <= 1, where l2² = f(l1). Between multiples of linf
            the left side is convex, so it is largest at one of them or at l1, where it is 1. At the multiples it is
            j·linf²/l2² + (1 - j·linf/l1)², convex in j, so largest at j = 0, where it is 1, or at the last one, where,
            with r = l1 - j·linf, it is (l2² - r²)/l2² + r²/l1² <= 1
    Source: ours
    Errors: none here

    >>> one = Sensitivity.of(l0=3, l1=6, l2_squared=12, linf=2)
    >>> rest_scale(one, 2.0, normal=False), round(rest_scale(one, 2.0, normal=True), 6)
    (2.0, 3.464102)
    """
    if not normal:
        return scale
    return root_up(Fraction(scale) ** 2 * cells.exact_l1**2 / cells.l2_squared)


def as_likely_as_not(scale: float, start: Number) -> int:
    """The smallest number of units at which the optimal rule keeps a key with probability 1/2 or more.

    Input:  scale and start of the rule
    Output: units: what a threshold is to a noisy count, which is above it with probability 1/2 there

    >>> as_likely_as_not(1.0, 0.5), as_likely_as_not(1.0, 1e-6)
    (1, 14)
    """
    rate = 1 / Fraction(scale)
    high = 1
    while keep_probability(high, rate, start)[1] < 0.5:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keep_probability(middle, rate, start)[1] < 0.5 else (low, middle)
    return high


def threshold_beside_noise(
    delta: Number, epsilon: Number, groups: int, scale: Number, step: int, mu: Callable[[int], Number]
) -> int | None:
    """The smallest threshold whose δ, with that of the Gaussian noise on the groups that are kept, is within a δ.

    Input:  delta in (0, 1) and epsilon >= 0 of both together; groups that one unit touches; scale of the Gaussian noise
            on the integer that decides, and step, how far one unit moves it in one group; mu(j): the L2 sensitivity of
            all that has Gaussian noise over its scales, where at most j groups change
    Output: T (units of that integer): groups are kept where the noisy number is at least T; None where the noise alone
            takes more than δ, or there is no T below twice that of the threshold alone
    Bound:  of the groups that change, some t have no unit but this one, and so are on one side only. With q the
            probability that such a group is kept, p = (1 - q)^t is that none of them is. Then nothing is seen of them,
            and what is seen of the others has the law of Gaussian noise on at most groups - t groups. Let P be a law on
            the side that has s of those t and P' the other; P_c and P'_c the laws of the others. For any set of answers
            P(S) <= 1 - (1-q)^s + (1-q)^s·P_c(S), and P'(S) >= (1-q)^(t-s)·P'_c(S). So P(S) - e^ε·P'(S) is at most
            1 - (1-q)^t + δ_c(ε + t·ln(1-q)), with δ_c the profile of μ(groups - t), and this for some t from 0 to
            `groups`, under add-remove and replace. No table has t = groups and the full noise at once, so that nearly
            all of δ serves both. Where there are many groups, each t of a block has the first one's μ and the last
            one's q. What is pure beside the noise adds its ε: a choice in a group that is kept, or other measures
    Source: Wilkins, Kifer, Zhang, Karrer 2024, arXiv:2202.01100, for one noisy number per group; the form is ours
    Errors: InvalidPrice, InvalidArgument as in `calibration.threshold`

    >>> one = lambda j: j / 4.24
    >>> threshold_beside_noise(1e-6, 1, 1, 4.24, 1, one), threshold(5e-7, 1, "gaussian", 4.37)
    (22, 23)
    """
    allowed, loss, count = probability("delta", delta), price("epsilon", epsilon), whole("groups", groups, 1)
    width = -(-count // _BLOCKS)
    first = threshold(allowed, count, "gaussian", scale, step)

    def within(found: int) -> bool:
        tail = Fraction(rounded_gaussian_tail(scale, found - step))
        for start in range(0, count + 1, width):
            end = min(start + width - 1, count)
            left = loss - end * tail / (1 - tail)  # ln(1 - q) >= -q / (1 - q)
            spent = Fraction(threshold_delta(tail, end))
            if left < 0 or spent + Fraction(gaussian_delta(left, mu(count - start))) > allowed:
                return False
        return True

    if gaussian_delta(loss, mu(count)) > allowed:
        return None
    high = first
    while not within(high):
        high += max(1, (high - step) // 256)
        if high > 2 * first:
            return None
    return high
