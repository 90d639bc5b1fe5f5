"""Shrinking noisy ratios of many groups towards one value, and intervals that
are right on average over groups.

Group g has the ratio m_g = S_g / n_g. Known are a noisy numerator and a noisy number. T_g is the
noisy numerator of the differences from a common value μ: T_g = n_g · (m_g - μ) + noise. A group in
which the noise is larger than the differences between groups says little of itself, and its
neighbours say more of it than it does.

All of this is post-processing: it reads noisy numbers alone, so it needs no bound and no budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpframe.arrays import Booleans, Floats

_STEIN = 2  # times the largest noise: what Stein's lemma takes from the noise of all groups
_LEAST = 1e-3  # of the widest difference: smaller spreads between groups are not told apart from 0
_SPREADS, _WITHIN = 40, 12  # points of the grid of spreads, between groups and within them
_TINY = 1e-150  # in place of no noise, so that quotients and squares exist
_EXACT = 1e-9  # of the widest difference: the noise of exact totals, so that logarithms exist
_GROUPS = 20_000  # that a fit reads at most, evenly chosen
_RATIOS = np.geomspace(1e-2, 1e4, 80)  # of squared bias to variance
_FARTHER = np.geomspace(1.0, 3e3, 240)
_HALVINGS = 25
_ERFC = np.frompyfunc(math.erfc, 1, 1)


@dataclass(frozen=True)
class GroupSpread:
    """Squared distance of groups' ratios from the common value:
    an expectation given the noisy numbers.

    `between` is for every group alike. `wide` and `within` are of the richer model, in which a
    group of n values differs by `wide + within / n`: small groups may lie farther out.
    """

    between: float
    wide: float
    within: float

    def of_groups(self, numbers: Floats) -> Floats:
        """The expected square of each group's difference, for intervals:
        the larger of what the two models say.
        """
        return np.maximum(self.between, self.wide + self.within / np.maximum(numbers, 1.0))


def group_spread(
    differences: Floats, numbers: Floats, variances: Floats, most: float, half: float
) -> GroupSpread:
    """The spread of the ratios of groups around their common value.

    Input:  differences: T_g = n_g · (m_g - μ) + noise; numbers: the noisy n_g; variances: of that
            noise; most: the largest |m_g - μ| that bounds allow; half: the largest standard
            deviation of a value that they allow
    Output: expectations of the squared spreads. The prior of each standard deviation is flat from 0
            to `most`, or to `half` for values within a group, as Gelman advises for few groups. The
            likelihood of T_g is normal with variance n²·τ² + V, and n²·τ² + n·s² + V in the richer
            model
    Source: Gelman 2006, Bayesian Analysis 1(3); Fay, Herriot 1979, JASA 74 for the model
    Errors: none here

    >>> spread = group_spread(
    ...     np.array([90.0, -110.0, 100.0, -80.0]), np.full(4, 10.0), np.full(4, 1.0), 50.0, 50.0
    ... )
    >>> 5 < spread.between**0.5 < 20
    True
    """
    if most <= 0 or half <= 0:
        return GroupSpread(0.0, 0.0, 0.0)
    step = -(-len(differences) // _GROUPS)
    squares, sizes = differences[::step] ** 2, np.maximum(numbers[::step], 0.0)
    noise = np.maximum(variances[::step], (_EXACT * most) ** 2)
    between = np.concatenate([[0.0], np.geomspace(_LEAST, 1.0, _SPREADS)]) * most
    within = np.concatenate([[0.0], np.geomspace(10 * _LEAST, 1.0, _WITHIN)]) * half
    logs = np.empty((len(between), len(within)))
    for place, spread in enumerate(within):
        variance = np.outer(between**2, sizes**2) + sizes * spread**2 + noise
        logs[:, place] = -0.5 * np.sum(np.log(variance) + squares / variance, axis=1)
    alone = _odds(logs[:, 0]) * np.gradient(between)
    both = _odds(logs) * np.outer(np.gradient(between), np.gradient(within))
    alone, both = alone / alone.sum(), both / both.sum()
    return GroupSpread(
        float(alone @ between**2),
        float(both.sum(axis=1) @ between**2),
        float(both.sum(axis=0) @ within**2),
    )


def _odds(logs: Floats) -> Floats:
    """Likelihoods, the largest as 1."""
    return np.asarray(np.exp(logs - logs.max()))


def shrunk_differences(
    differences: Floats, numbers: Floats, variances: Floats, spread: GroupSpread
) -> tuple[Floats, Floats, Floats]:
    """The differences of the groups from their common value, shrunk;
    and what their errors are made of.

    Input:  as in `group_spread`, whose answer `spread` is
    Output: T·n / (n² + V/τ²) for each group, 0 where no value is counted; the standard deviation of
            its noise; and the root of its expected squared bias
    Bound:  with the true n, and m the ratio's difference from the common value, the error is
            w·noise/n - (1 - w)·m with w = n² / (n² + V/τ²). Its mean square over groups is least at
            this w if the mean of m² is τ²
    Source: James, Stein 1961; Efron, Morris 1973, JASA 68
    """
    sizes = np.maximum(numbers, 0.0)
    if spread.between <= 0:
        return np.zeros_like(sizes), np.zeros_like(sizes), np.sqrt(spread.of_groups(sizes))
    divisor = sizes**2 + variances / spread.between
    weight = np.divide(sizes, divisor, out=np.zeros_like(sizes), where=divisor > 0)
    return (
        differences * weight,
        np.sqrt(variances) * weight,
        (1 - sizes * weight) * np.sqrt(spread.of_groups(sizes)),
    )


def safe_moves(values: Floats, variances: Floats, spread: float, inside: Booleans) -> Floats:
    """How far each group moves towards its target, as a share of its distance, so that
    no truth makes all groups worse.

    Input:  values: distances v of the released numbers from their targets; variances: d of their
            noise; spread: the expected square τ² of the true distances; inside: whether a number is
            strictly inside what it can be, since noise that was clipped is smaller
    Output: k·a for each group, with a = min(d²/(d + τ²), L) / d, c = Σ a·d - 2·max a·d over the
            numbers inside, and k = min(1, max(c, 0) / Σ a²v²). L is the cap with the largest gain
            c² / Σ a²(d + τ²) that is expected
    Bound:  let noise be normal and independent, a and the targets fixed, Q = Σ a²v² and k = c/Q. By
            Stein's lemma the risk is Σ d - E[2k·Σ a·d - 4k·Σ a³·d·v²/Q - k²Q], and Σ a³·d·v² <=
            max(a·d)·Q. So it is at most Σ d - E[c²/Q], and the values alone have Σ d, whatever the
            truth is. The cap lets c be positive where one group has most of the noise. That group
            hardly moves then: a rule that moves it far is worse for some truth. This proves nothing
            of an estimated τ², common value and number of values, of k cut off at 1, of clipping to
            bounds and of Laplace noise: these were measured, see the page Figures
    Source: Tan 2015, Bernoulli 21(1), for the shares under unequal noise; Stein 1981, Annals of
            Statistics 9(6)
    Errors: none here

    >>> safe_moves(np.array([1.0, -1, 1, -1, 1, -1]), np.ones(6), 0.0, np.ones(6, np.bool_)).round(
    ...     2
    ... ).tolist()
    [0.67, 0.67, 0.67, 0.67, 0.67, 0.67]
    >>> bool(
    ...     safe_moves(np.ones(4), np.array([1e6, 1.0, 1.0, 1.0]), 0.0, np.ones(4, np.bool_)).max()
    ...     <= 1
    ... )
    True
    """
    noise = np.maximum(variances, _TINY)
    reach = np.maximum(noise * (noise / (noise + spread)), _TINY)
    caps = -np.sort(-reach)
    rest = caps.sum() - np.cumsum(caps)  # of the groups below each cap
    places = np.arange(1, len(caps) + 1)
    gains = np.maximum((places - _STEIN) * caps + rest, 0.0) ** 2 / (
        caps**2 * np.cumsum(1 / caps) + rest
    )
    capped = np.minimum(reach, caps[np.argmax(gains)])
    least = capped[inside].sum() - _STEIN * capped.max()
    shares = capped / noise
    whole = float(np.sum((shares * values) ** 2))
    return np.asarray(shares * min(1.0, max(least, 0.0) / max(whole, _TINY)))


def average_critical(ratios: Floats, alpha: float, *, heavy: bool) -> Floats:
    """Number of standard deviations of the noise that an interval must reach to
    be right on average over groups.

    Input:  ratios: squared bias over variance of the noise, t >= 0; alpha: the share of groups that
            may be missed; heavy: whether the noise may be a sum of Laplace noises, else it is
            normal
    Output: for each t the smallest χ, found from above, with E[P(|Z + b| > χ)] <= alpha for every
            law of b with E[b²] = t; where noise may be heavy, the larger one of normal noise and of
            Laplace noise
    Bound:  P(|Z + b| > χ) as a function of u = b² is convex up to χ² and concave from there on, for
            both laws: for Laplace noise it is e^-χ·cosh(√u) and then 1 - e^-√u·cosh(χ). So the
            worst law of u with mean t puts its mass on 0 and on one place x >= t. At 95% and more a
            sum of Laplace noises has lighter tails than one Laplace noise of its variance; below,
            the normal one reaches farther
    Source: Armstrong, Kolesár, Plagborg-Møller 2022, Econometrica 90(6), for normal noise; for
            Laplace noise ours
    Errors: none here

    >>> average_critical(np.array([0.0, 1.0]), 0.05, heavy=False).round(1).tolist()
    [2.0, 3.3]
    """
    criticals = _criticals(alpha, heavy)
    near = np.sqrt(np.interp(ratios, np.concatenate([[0.0], _RATIOS]), criticals**2))
    return np.where(ratios > _RATIOS[-1], np.sqrt((1 + ratios) / alpha), near)


@lru_cache(maxsize=32)
def _criticals(alpha: float, heavy: bool) -> Floats:
    """The critical values at 0 and at each of the ratios; at 0 that of the least ratio."""
    ratios, places = _RATIOS[:, None], _RATIOS[:, None] * _FARTHER
    low, high = np.zeros_like(ratios), np.sqrt((1 + ratios) / alpha)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        misses = [_missed(middle, ratios, places, _normal_tail)]
        misses += [_missed(middle, ratios, places, _laplace_tail)] if heavy else []
        fits = np.max(misses, axis=0) <= alpha
        low, high = np.where(fits, low, middle), np.where(fits, middle, high)
    return np.concatenate([high[:1, 0], high[:, 0]])


def _missed(
    critical: Floats, ratios: Floats, places: Floats, tail: Callable[[Floats], Floats]
) -> Floats:
    """The largest E[P(|Z + b| > critical)] over laws of b with E[b²] =
    ratio, on 0 and one of the places.
    """

    def outside(squared: Floats) -> Floats:
        bias = np.sqrt(squared)
        return tail(critical - bias) + tail(critical + bias)

    centred, share = outside(np.zeros_like(ratios)), ratios / places
    return np.asarray(
        np.max(centred * (1 - share) + outside(places) * share, axis=1, keepdims=True)
    )


def _normal_tail(reach: Floats) -> Floats:
    """P[Z > reach] of standard normal noise."""
    return np.asarray(_ERFC(reach / math.sqrt(2)), np.float64) / 2


def _laplace_tail(reach: Floats) -> Floats:
    """P[Z > reach] of Laplace noise with standard deviation 1."""
    half = np.exp(-math.sqrt(2) * np.abs(reach)) / 2
    return np.where(reach > 0, half, 1 - half)
