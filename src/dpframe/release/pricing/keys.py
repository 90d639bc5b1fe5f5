"""Keys found in the data: the rule by which they are released, and how many units a key needs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from dpframe.noise import keep_probability
from dpframe.plan import Allotment
from dpframe.release.pricing.noise import Noise, NoisePlan
from dpframe.theory.formulas.loss import Spread, gaussian_mu, rest_scale, threshold_beside_noise

_SIZES = list(itertools.pairwise([*sorted({round(1.02**i) for i in range(1500)}), math.inf]))  # units of a key


def finds_keys(allotment: Allotment) -> bool:
    """Whether the optimal rule can decide: the number of units is not released, and one unit moves it by at most 1."""
    return allotment.hidden and allotment.total.sensitivity.exact_linf == 1


def rule(decided_by: Allotment, noises: Sequence[Noise], delta: Fraction) -> tuple[int, Fraction | None]:
    """The smallest threshold T on a noisy count that costs at most delta; for the optimal rule, its two parameters."""
    noise = next(noise for noise in noises if noise.allotment is decided_by)
    return noise.mechanism.rule(delta, spread_of(decided_by))


def spread_of(decided_by: Allotment) -> Spread:
    """Numbers of one unit in groups where it is alone: at most linf in each of at most l0 groups, and l1 in all.

    A number with fraction bits adds weights, and a weight may be rounded to 0.
    """
    bound, least = decided_by.total.sensitivity, int(decided_by.total.fraction == 0)
    return Spread(bound.l0, int(bound.exact_linf), int(bound.exact_l1), least)


def joint_threshold(decided_by: Allotment, noises: Sequence[Noise], epsilon: Fraction, delta: Fraction) -> int | None:
    """The threshold on a Gaussian number that shares δ with the noise; see `threshold_beside_noise`.

    Bound: in at most j groups the square of a total's move is at most j·`group_square`, and at most l2²
    """
    totals = [noise.allotment.total for noise in noises]
    scales = [noise.scale for noise in noises]

    def mu(groups: int) -> float:
        return gaussian_mu([min(m.sensitivity.l2_squared, groups * m.group_square) for m in totals], scales)

    scale, most = next(n.scale for n in noises if n.allotment is decided_by), max(m.sensitivity.l0 for m in totals)
    step = int(decided_by.total.sensitivity.exact_linf)
    spread = replace(spread_of(decided_by), groups=most)
    return threshold_beside_noise(delta, epsilon, most, scale, step, mu, spread=spread)


def of_the_rest(allotment: Allotment, noises: Sequence[Noise]) -> Noise:
    """The noise of the total of suppressed groups, from the noise of the groups; see `rest_scale`."""
    cells = next(n for n in noises if n.allotment.total.key == replace(allotment.total, collects=False).key)
    scale = rest_scale(cells.allotment.total.sensitivity, cells.scale, normal=cells.added.normal)
    return Noise(allotment, replace(cells.mechanism, scale=scale))


def log_units_needed(plan: NoisePlan) -> float:
    """About how many units a key needs to be released, as a logarithm: -log Σ π(n)·n^-2.

    The sum is the number of released keys if the number of keys with n units is proportional to n^-2, a broad law of
    sizes. π(n) is the probability that a key of n units is released. The sum is computed in steps of about 2%: the
    terms n^-2 from k on add up to about 1/(k - 1/2). For a noisy number, π(n) is that of the real noise.
    """
    assert plan.decided_by is not None
    assert plan.threshold is not None
    noise, step = plan.of(plan.decided_by.total), float(plan.decided_by.total.sensitivity.exact_linf)
    half = plan.threshold - 0.5

    def kept(size: float) -> float:
        if plan.start is not None:
            return keep_probability(int(size), 1 / Fraction(noise.scale), plan.start)[1]
        return noise.added.tail(half - size * step)

    top = 4 * max(plan.threshold / step, 1)  # every larger key is kept
    terms = ((kept(k) if k < top else 1.0) * (1 / (k - 0.5) - 1 / (after - 0.5)) for k, after in _SIZES)
    return -math.log(max(math.fsum(terms), 1e-300))
