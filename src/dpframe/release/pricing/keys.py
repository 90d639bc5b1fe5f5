"""Keys found in the data: the rule by which they are released, and how many units a key needs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from dpframe.noise import keep_probability
from dpframe.plan import Allotment, Question
from dpframe.release.pricing.noise import Noise, NoisePlan
from dpframe.theory.formulas.loss import Spread, gaussian_mu, rest_scale, threshold_beside_noise

# units of a key
_SIZES = list(itertools.pairwise([*sorted({round(1.02**i) for i in range(1500)}), math.inf]))


def finds_keys(allotment: Allotment) -> bool:
    """Whether the optimal rule can decide: the number of units is not released, and
    one unit moves it by at most 1.
    """
    return allotment.hidden and allotment.total.sensitivity.exact_linf == 1


def rule(
    decided_by: Allotment, noises: Sequence[Noise], delta: Fraction
) -> tuple[int, Fraction | None]:
    """The smallest threshold T on a noisy count that costs at most delta;
    for the optimal rule, its two parameters.
    """
    noise = next(noise for noise in noises if noise.allotment is decided_by)
    return noise.mechanism.rule(delta, spread_of(decided_by))


def spread_of(decided_by: Allotment) -> Spread:
    """Numbers of one unit in groups where it is alone:
    at most linf in each of at most l0 groups, and l1 in all.

    A number with fraction bits adds weights, and a weight may be rounded to 0.
    """
    bound, least = decided_by.total.sensitivity, int(decided_by.total.fraction == 0)
    return Spread(bound.l0, int(bound.exact_linf), int(bound.exact_l1), least)


def least_number(question: Question, decided_by: Allotment) -> int:
    """The largest number of a group that is not released whatever the
    noise is, as `min_units=` asks.

    Input:  the question; the number of units that decides which groups are released
    Output: s = (min_units - 1)·linf (units of its integer); 0 without min_units=
    Bound:  one unit brings at most linf to a group, so a number above s needs min_units units or
            more. A group counts as one that exists if its number is above s, and the rule decides
            on its number less s: a threshold T is compared as T + s, and the optimal rule takes n -
            s. Between neighbouring tables a number moves as far as before, and so does this
            difference. So what holds of groups that both tables have holds as before. A group that
            exists in one of the two tables alone has there at most what the unit that left brings,
            above s: in the other table its number is s or less. So its chance to be shown is at
            most that of a group which has this unit alone, without min_units=, for which δ pays.
            Nothing is released of a group that does not exist, whatever its other totals are. With
            `other=` it is part of the suppressed groups in both tables
    Source: Desfontaines et al. 2020, arXiv:2006.03684, for the rule, whose proof needs that π(0) =
            0 and that one unit moves its argument by 1. PipelineDP calls min_units a pre-threshold
    Errors: none here
    """
    if question.min_units is None:
        return 0
    return (question.min_units - 1) * int(decided_by.total.sensitivity.exact_linf)


def joint_threshold(
    decided_by: Allotment, noises: Sequence[Noise], epsilon: Fraction, delta: Fraction
) -> int | None:
    """The threshold on a Gaussian number that shares δ with the noise; see
    `threshold_beside_noise`.

    Bound: in at most j groups the square of a total's move is at most j·`group_square`, and at most
           l2²
    """
    totals = [noise.total for noise in noises]
    scales = [noise.scale for noise in noises]

    def mu(groups: int) -> float:
        return gaussian_mu(
            [min(m.sensitivity.l2_squared, groups * m.group_square) for m in totals], scales
        )

    scale, most = (
        next(n.scale for n in noises if n.allotment is decided_by),
        max(m.sensitivity.l0 for m in totals),
    )
    step = int(decided_by.total.sensitivity.exact_linf)
    spread = replace(spread_of(decided_by), groups=most)
    return threshold_beside_noise(delta, epsilon, most, scale, step, mu, spread=spread)


def of_the_rest(allotment: Allotment, noises: Sequence[Noise]) -> Noise:
    """The noise of the total of suppressed groups, from the noise
    of the groups; see `rest_scale`.
    """
    cells = next(n for n in noises if n.total.key == replace(allotment.total, collects=False).key)
    scale = rest_scale(cells.total.sensitivity, cells.scale, normal=cells.added.normal)
    return Noise(allotment, replace(cells.mechanism, scale=scale))


def log_units_needed(plan: NoisePlan) -> float:
    """About how many units a key needs to be released, as a logarithm: -log Σ π(n)·n^-2.

    The sum is the number of released keys if the number of keys with n units is proportional to
    n^-2, a broad law of sizes. π(n) is the probability that a key of n units is released. The sum
    is computed in steps of about 2%: the terms n^-2 from k on add up to about 1/(k - 1/2). For a
    noisy number, π(n) is that of the real noise.
    """
    assert plan.decided_by is not None
    assert plan.threshold is not None
    noise, step = (
        plan.of(plan.decided_by.total),
        float(plan.decided_by.total.sensitivity.exact_linf),
    )
    half = plan.threshold - 0.5

    def kept(size: float) -> float:
        if size * step <= plan.least:
            return 0.0
        if plan.start is not None:
            return keep_probability(int(size) - plan.least, 1 / Fraction(noise.scale), plan.start)[
                1
            ]
        return noise.added.tail(half - size * step)

    top = 4 * max(plan.threshold / step, 1)  # every larger key is kept
    terms = (
        (kept(k) if k < top else 1.0) * (1 / (k - 0.5) - 1 / (after - 0.5)) for k, after in _SIZES
    )
    return -math.log(max(math.fsum(terms), 1e-300))
