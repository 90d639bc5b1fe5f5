"""The privacy loss of showing keys from the data, if only the number of units of a
key decides whether it is shown.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from dpframe.noise import (
    Number,
    ball,
    family_tail,
    float_down,
    keep_probability,
    precision,
    root_up,
    round_down,
    smallest_integer,
    whole,
)
from dpframe.theory.formulas.loss.calibration import laplace_scale, threshold
from dpframe.theory.formulas.loss.loss import gaussian_delta, price, probability
from dpframe.theory.formulas.loss.partitions import Spread, partition_delta, partition_threshold
from dpframe.theory.formulas.sensitivity import Sensitivity

_BLOCKS = 64


def selection_scale(groups: int, epsilon: Number) -> float:
    """Scale of the optimal rule for showing keys (`keep_probability`):
    each key has the rate 1/scale.

    Input:  groups: keys whose number of units differs between neighbouring tables, each by 1: `l0`
            of `sensitivity.unit_counts`, m under add-remove and 2m under replace; epsilon > 0, for
            all keys together
    Output: scale (units): groups/epsilon, rounded up
    Bound:  let ε' = epsilon/groups and δ' = `selection_start`. A key with n units is shown with
            probability π(n), where π(n+1) <= e^ε'·π(n) + δ' and 1 - π(n) <= e^ε'·(1 - π(n+1)) + δ'.
            A key is either shown or not, and since π increases, both inequalities also hold with n
            and n+1 exchanged. So if one key gains or loses one unit, the rule is (ε', δ')-private.
            Keys are decided independently, and only `groups` of them differ; together they are
            (groups·ε', 1 - (1 - δ')^groups)-private. A key without units is never shown (π(0) = 0),
            so the rule needs no list of possible keys. For ρ see `quantile_selection.choices_rho`
    Source: Desfontaines, Voss, Gipson, Mandayam 2020, arXiv:2006.03684, Theorem 1 (no rule of this
            ε' and δ' keeps any key more often); Kairouz, Oh, Viswanath 2015, arXiv:1311.0776,
            Theorem 3.3, for the composition
    Errors: InvalidArgument for fewer than one group, InvalidPrice for an ε that is not positive

    >>> selection_scale(3, 1)
    3.0
    """
    return laplace_scale(whole("groups", groups, 1), epsilon)


def selection_start(delta: Number, groups: int) -> Fraction:
    """The probability δ' with which the optimal rule shows a key that has one unit.

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
    """Scale of the noise on the total of all suppressed groups, at which this
    total costs nothing in addition.

    Input:  cells: the sensitivity of the groups' totals, from `sensitivity.change`; scale of their
            noise; normal: whether the noise is Gaussian
    Output: scale (same unit), rounded up: for Laplace noise the scale itself, for Gaussian noise
            l1/l2 times the scale
    Bound:  let the keys be selected by a part of the release that depends on these totals in no
            other way. Given the keys, one unit changes each released group by some d_g, together a,
            and the total of the other groups by at most l1 - a, since it is a sum over them. That
            is l1 in all. So Laplace noise of one scale on all of these totals costs as much as on
            the groups alone. With Gaussian noise of σ on the groups and σ·l1/l2 on the total of the
            rest, the squares add up to Σ d_g²/σ² + (l1 - a)²·l2²/(l1·σ)². Here Σ d_g² is at most
            f(a) = j·linf² + (a - j·linf)² with j = ⌊a/linf⌋. So it is enough that f(a)/l2² + (1 -
            a/l1)² <= 1, where l2² = f(l1). Between multiples of linf the left side is convex, so it
            is largest at one of the multiples, or at l1, where it is 1. At the multiples it is
            j·linf²/l2² + (1 - j·linf/l1)², which is convex in j. So it is largest at j = 0, where
            it is 1, or at the last multiple. There, with r = l1 - j·linf, it is (l2² - r²)/l2² +
            r²/l1² <= 1
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
    """The smallest number of units at which the optimal rule shows a
    key with probability 1/2 or more.

    Input:  scale and start of the rule
    Output: units; comparable to a threshold for noisy counts, at which a key is shown with
            probability about 1/2

    >>> as_likely_as_not(1.0, 0.5), as_likely_as_not(1.0, 1e-6)
    (1, 14)
    """
    rate = 1 / Fraction(scale)
    return smallest_integer(
        lambda units: units > 0 and keep_probability(units, rate, start)[1] >= 0.5, 1
    )


def deltas_beside_noise(
    threshold: int,
    epsilon: Fraction,
    groups: int,
    scale: Number,
    mu: Callable[[int], Number],
    alone: Spread,
) -> Iterator[Fraction]:
    """The δ of a threshold and the Gaussian noise beside it, for each number of
    groups that a unit may be alone in.

    Input:  as in `threshold_beside_noise`; the largest of the results is the δ of both together
    """
    width = -(-groups // _BLOCKS)
    tails = functools.cache(lambda size: Fraction(family_tail("gaussian", scale, threshold - size)))
    for start in range(0, groups + 1, width):
        parts = alone.of(min(start + width - 1, groups))
        # ln(1 - q) >= -q / (1 - q)
        excess = epsilon - sum(n * tails(c) / (1 - tails(c)) for c, n in parts)
        with_noise = (
            Fraction(gaussian_delta(excess, mu(groups - start))) if excess >= 0 else Fraction(1)
        )
        yield partition_delta(parts, tails) + with_noise


def threshold_beside_noise(
    delta: Number,
    epsilon: Number,
    groups: int,
    scale: Number,
    step: int,
    mu: Callable[[int], Number],
    *,
    spread: Spread | None = None,
) -> int | None:
    """The smallest threshold that stays within δ beside the Gaussian noise of the shown groups.

    Input:  delta in (0, 1) and epsilon >= 0 of threshold and noise together; groups that one unit
            touches; scale of the Gaussian noise on the integer that the threshold is compared with;
            step: how far one unit moves this integer in one group; mu(j): the μ of all totals with
            Gaussian noise, if at most j groups change; spread: what one unit may have in groups
            where it is alone, by default `step` in each of them
    Output: T (units of that integer): groups are shown if the noisy number is at least T. None if
            the noise alone needs more than δ, or if no T up to twice the threshold alone is large
            enough
    Bound:  of the groups that change, some t have only this unit, so they exist in one of the two
            tables only. Let q be the probability that such a group is shown; with probability (1 -
            q)^t none of them is. Then nothing is released about them, and the released answers
            about the other groups have Gaussian noise on at most groups - t groups that change. Let
            P be the distribution of answers for the table that has s of these t groups, and P' that
            for the other table; let P_c and P'_c be those of the other groups. For any set S of
            answers, P(S) <= 1 - (1-q)^s + (1-q)^s·P_c(S) and P'(S) >= (1-q)^(t-s)·P'_c(S). So P(S)
            - e^ε·P'(S) is at most 1 - (1-q)^t + δ_c(ε + t·ln(1-q)), with δ_c the profile of
            μ(groups - t). This holds for some t from 0 to `groups`, under add-remove and replace.
            No table has both t = groups and the full noise, so threshold and noise can both use
            nearly all of δ. If there are many groups, t runs over blocks; a block is bounded by the
            μ of its first t and the q of its last t. If a unit cannot have `step` in all groups,
            (1-q)^t is replaced by the product over the worst way to spread what it has over t
            groups (`Spread.of`): the two products, for s and for t - s of them, are together at
            least that. A mechanism beside the noise that is ε-private (a selection in a group that
            is shown, or other totals) adds its ε
    Source: Wilkins et al. 2024, arXiv:2202.01100, for one number per group; the form is ours
    Errors: InvalidPrice, InvalidArgument as in `calibration.threshold`

    >>> one = lambda j: j / 4.24
    >>> alone = partition_threshold(5e-7, Spread(groups=1, most=1, total=1), "gaussian", 4.37)
    >>> threshold_beside_noise(1e-6, 1, 1, 4.24, 1, one), alone
    (22, 23)
    """
    allowed, loss = probability("delta", delta), price("epsilon", epsilon)
    count = whole("groups", groups, 1)
    alone = spread or Spread(count, step, count * step)
    first = high = partition_threshold(allowed, alone, "gaussian", scale)

    def within(candidate: int) -> bool:
        deltas = deltas_beside_noise(candidate, loss, count, scale, mu, alone)
        return all(delta <= allowed for delta in deltas)

    if gaussian_delta(loss, mu(count)) > allowed:
        return None
    while not within(high):
        high += max(1, (high - step) // 256)
        if high > 2 * first:
            return None
    return high


ROUNDS = 8
"""Rounds of keys without a limit.
By simulation 4 rounds find up to 13% fewer keys, and 16 rounds find no more.
"""

_FIRST, _LATE = Fraction(1, 5), Fraction(4, 5)
"""Parts of the straight way to the last threshold below which a key leaves, after the first round
and the last but one. Chosen on three panels and on Zipf words, out of seven pairs."""


def dropped_below(thresholds: Sequence[int], number: int) -> int:
    """The sum of noisy weights below which a key leaves after a round.

    Input:  thresholds of all rounds; number: that of the round, from 0
    Output: a part of (number + 1) / rounds of the last threshold, rounded down. The part grows from
            1/5 to 4/5: early sums are mostly noise, and a key that is far behind in a late round
            would only take weight from others
    Bound:  any rule would do: the proof in `round_thresholds` holds for every function of noisy
            sums

    >>> [dropped_below([10, 20, 30, 40], number) for number in range(3)]
    [2, 10, 24]
    """
    rounds = len(thresholds)
    part = (
        _FIRST + (_LATE - _FIRST) * Fraction(min(number, rounds - 2), max(rounds - 2, 1))
        if rounds > 1
        else _LATE
    )
    return int(part * thresholds[-1] * (number + 1) / rounds)


def round_thresholds(
    delta: Number, keys: int, rounds: int, scale: float, one: int
) -> tuple[int, ...]:
    """Thresholds on the sums of a key's noisy weights after 1, 2, ...
    rounds, at which keys are released.

    Input:  delta in (0, 1), for all rounds; keys: how many keys one unit has at most; rounds;
            scale: the σ of the Gaussian noise in each round; one: the largest weight that a unit
            gives to a key in one round
    Output: one threshold for each round, in the units of the weights
    Bound:  in a round each unit spreads a weight over its keys that are still in play; the squares
            of its weights add up to at most one². Each key's weights are added up with Gaussian
            noise, and S_j is the sum over rounds 1 to j. A key with S_j of at least T_j is released
            and leaves; one with a low S_j leaves too. Neighbours: a unit joins, and A becomes B.
            Some of its keys are new: no unit of A has them. Imagine that noise is drawn for every
            possible key, also for keys that nobody has. Then what is in play is a function of
            earlier noisy sums. Let n be the noise of the new keys, and E the set of those n whose
            sums after j rounds are below T_j - j·one, for every j and every new key. Then no new
            key is released, whatever weights of at most `one` the unit gives them. n is independent
            of the noise of all other keys, and A's answer does not depend on it. Given n in E, B's
            answer is about the other keys alone. In each round the unit moves their weights by at
            most `one` in l2, whatever the earlier sums were. So, given n, B's rounds differ from
            A's as adaptive Gaussian mechanisms do, of μ² = rounds·one²/σ² in all. Let these be (ε,
            δ_g)-private. Then for every set of answers P_B(S) <= 1 - P(E) + ∫_E P_B(S|n) <= 1 -
            P(E) + e^ε·P_A(S) + δ_g, and P(E)·P_A(S) <= ∫_E (e^ε·P_B(S|n) + δ_g) <= e^ε·P_B(S) +
            δ_g. In both directions the answer is (ε, δ_g + 1 - P(E))-private. In the terms of ρ the
            laws given n in E are ρ-zero-concentrated, so the release is so but with probability 1 -
            P(E). It remains that 1 - P(E) <= delta. Real noise is rounded by at most 1/2 a round.
            So the sum after j rounds is at least T_j - j·one only if normal noise of standard
            deviation σ√j is at least T_j - j·one - j/2. The unit has at most `keys` new keys, with
            independent noise. Round j has the part 2^(j-1)/(2^rounds - 1) of delta, and the parts
            add up: the last round has half of it, since most keys are released there
    Source: Swanberg, Desfontaines, Haney 2023, arXiv:2301.01998, for rounds with removal; Chen,
            Cohen-Addad, Epasto, Zadimoghaddam 2025, arXiv:2502.08878, for weights that follow noisy
            weights; Dong, Roth, Su 2019, arXiv:1905.02383, Corollary 2 and Theorem 4, for adaptive
            Gaussian mechanisms. Sums over rounds are ours
    Errors: InvalidPrice for a delta outside (0, 1); InvalidArgument for counts below 1

    >>> round_thresholds(1e-6, 1, 2, 10.0, 3)
    (54, 76)
    """
    first = probability("delta", delta) / (2 ** whole("rounds", rounds, 1) - 1)
    square = Fraction(scale) ** 2
    # P[real noise >= T - j·one - j/2] is the tail of one rounded noise at T - j·one - (j - 1)/2.
    return tuple(
        threshold(first * 2 ** (j - 1), keys, "gaussian", root_up(square * j), j * one) + j // 2
        for j in range(1, rounds + 1)
    )
