"""The solver behind intervals of means, variances and other ratios of noisy totals.

Write S + z and N = n + w for the noisy sum and count, and Q + y for the noisy sum of squares. All
are measured from the centres of their totals. Write m = S/n, q = Q/n, and V = q - m² for the
variance. The noises are independent, but for z and w of a pair (see `scales`). These identities are
exact:

- N · (released mean - m) = z - m·w
- N · (released variance - V) = y - 2m·z + (2m² - q)·w - N · (released mean - m)²

A value m fits the release if |z - m·w| reaches N·|released - m| with probability at least alpha.
The set of these values holds the true m with probability 1 - alpha (Fieller 1954). At each
probability, the quantile of a sum of symmetric log-concave noises is a norm of their scales (Meyer
and Reisner 1991; Bobkov 2010), hence convex in m. So a path away from the released value leaves the
set at most once, and bisection finds the place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from dpframe.arrays import Booleans, Floats, Integers
from dpframe.plan import Total
from dpframe.release.estimators.base import Interval
from dpframe.release.estimators.influence import NoisyColumn
from dpframe.release.pricing import JointNoise, Noise
from dpframe.theory.formulas.error import (
    gaussian_sum_reaches,
    laplace_sum_reaches,
    mixed_normal_error,
    mixed_normal_reaches,
    normal_laplace_reaches,
)

Terms = Sequence[tuple[Floats, Noise]]  # noises with their weights
ASIDE = 1 / 50  # of alpha, for each of the two small terms of a variance
_HALVINGS = 40
_AT_ONCE = 5  # halvings whose places are tried at once
_PARTS = np.arange(1, 2**_AT_ONCE + 1) / 2**_AT_ONCE
_TOGETHER = 2**13  # groups whose arrays stay in the processor's cache


def expected(
    output: NoisyColumn,
    terms: Sequence[tuple[float, Total]],
    count: Total,
    weight: float,
    rows: float,
    alpha: float,
    most: float,
    pull: float = 0.0,
) -> float:
    """The largest error e, up to `most`, that weighted noises, helped by a
    pull, reach with probability alpha.

    Some places are tried at once, in place of one after another: for few numbers numpy takes its
    time for each call.
    """

    def fits(error: Floats) -> Booleans:
        parts = [(np.full_like(error, x), output.noise(total)) for x, total in terms]
        size = error * rows - pull * np.maximum(weight - error, 0.0)
        return reaches(size, [*parts, (weight + error, output.noise(count))], alpha)

    inside, outside = 0.0, most
    if fits(np.array([most])).item():
        return most
    for _ in range(_HALVINGS // _AT_ONCE):
        places = inside + (outside - inside) * _PARTS
        places[-1] = outside
        first = int(np.argmin(fits(places)))
        inside, outside = (places[first - 1].item() if first else inside), places[first].item()
    return outside


def reaches(size: Floats, terms: Terms, alpha: float, sampling: Floats | None = None) -> Booleans:
    """Whether the weighted sum of noises, and of a normal sampling error, reaches a
    size with probability above alpha.

    Input:  sampling: the standard deviation of the sampling error (unit of the size); None for the
            noise alone

    The discrete Laplace noise of a count enters exactly. Any other integer noise is real noise that
    is rounded by at most half a step of its grid (see `Noise.step`), or smaller than that in
    distribution. The cells of joint noise are uncorrelated, so the squares of their weighted
    deviations add up: see `JointNoise.quantile`.
    """
    moving = [
        (weight * float(noise.total.unit), noise) for weight, noise in terms if not noise.exact
    ]
    joint = [
        (weight, noise.mechanism)
        for weight, noise in moving
        if isinstance(noise.mechanism, JointNoise)
    ]
    if joint:
        size = size - sum((weight * noise.step for weight, noise in moving), np.zeros_like(size))
        law, rest = (
            joint[0][1],
            [(weight, noise) for weight, noise in moving if not noise.mechanism.together],
        )
        mixed = reduce(np.hypot, [weight * own.deviation for weight, own in joint])
        if not rest and sampling is None:
            return np.asarray((size <= 0) | (size < mixed * law.quantile(alpha)))
        normal = [np.abs(weight * one) for weight, noise in rest for one in noise.added.normals]
        normal += [np.zeros_like(size) if sampling is None else sampling]
        mixed = mixed * (law.quantile(alpha) / mixed_normal_error(law.order, alpha))
        return mixed_normal_reaches(
            size, scales(rest), reduce(np.hypot, normal), mixed, law.order, alpha
        )
    deviations = [weight * one for weight, noise in moving for one in noise.added.normals]
    normal, whole = deviations if sampling is None else [*deviations, sampling], None
    if not normal and moving and moving[-1][1].added.discrete:
        weight, last = moving.pop()
        whole = weight, last.scale
    size = size - sum(
        (weight * max(noise.step, 0.5) for weight, noise in moving), np.zeros_like(size)
    )
    laplace = scales(moving)
    if deviations and not laplace:
        return gaussian_sum_reaches(size, normal, alpha)
    laplace = laplace or [np.zeros_like(size)]
    if normal:
        return normal_laplace_reaches(size, laplace, reduce(np.hypot, normal), alpha)
    return laplace_sum_reaches(size, laplace, alpha, whole)


def scales(terms: Terms) -> list[Floats]:
    """Scales of the independent Laplace noises in a weighted sum of
    noises (in units of each total).

    The sum and the count of a pair share two noises, one of them with opposite signs. With weighted
    scales a and b, the two noises have the scales a + b and |a - b|, whatever the signs of the
    weights. The law is symmetric in each weight and log-concave, so its quantiles are a norm of the
    weights here too. A count without its sum has two noises, both of scale b. Two sums that are
    each measured with a count of their own have two noises each.
    """
    alone = [
        weight * scale
        for weight, noise in terms
        if not noise.paired
        for scale in noise.added.laplaces
    ]
    pair = [weight * noise.scale for weight, noise in terms if noise.paired]
    if not pair:
        return alone
    members = [noise.total for _, noise in terms if noise.paired]
    if len(pair) == 2 and not any(total.counts_rows for total in members):
        return [*alone, pair[0], pair[0], pair[1], pair[1]]
    first, second = pair if len(pair) == 2 else (pair[0], np.zeros_like(pair[0]))
    return [*alone, first + second, np.abs(first - second)]


def farthest(fits: Callable[[Floats], Booleans], start: Floats, end: float) -> Floats:
    """The farthest place from start (which fits) towards the end:
    the end itself, or a place that just does not fit.
    """
    inside, outside = np.array(start, np.float64), np.full_like(start, end, np.float64)
    all_of_it = fits(outside)
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        yes = fits(middle)
        inside, outside = np.where(yes, middle, inside), np.where(yes, outside, middle)
    return np.where(all_of_it, end, outside)


def farthest_by_group(
    fits: Callable[[Floats, Integers], Booleans], start: Floats, end: float
) -> Floats:
    """The places of `farthest` for many groups. Where the end itself fits, nothing else is tried.

    Input:  fits(places, groups): whether the places of these groups fit, by the numbers of the
            groups
    """
    places = np.full_like(start, end, np.float64)
    for first in range(0, len(start), _TOGETHER):
        groups = np.arange(first, min(first + _TOGETHER, len(start)))
        groups = groups[~fits(places[groups], groups)]
        if len(groups):
            fit = lambda tried, groups=groups: fits(tried, groups)  # noqa: E731
            places[groups] = farthest(fit, start[groups], end)
    return places


def divisors(number: Floats, noise: Noise, alpha: float) -> Interval:
    """The smallest and largest n / max(n - 1, 1) over the n >= 1 that
    a noisy number surely is about.
    """
    error = noise.error(alpha * ASIDE)
    low, high = np.maximum(number - error, 1.0), np.maximum(number + error, 1.0)
    at_low, at_high = low / np.maximum(low - 1, 1.0), high / np.maximum(high - 1, 1.0)
    most = np.where((low <= 2) & (high >= 2), 2.0, np.maximum(at_low, at_high))
    return np.minimum(at_low, at_high), most
