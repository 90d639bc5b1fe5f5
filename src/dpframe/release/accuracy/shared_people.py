"""The sampling variance of a difference of two groups, beside the variances of both: people may be in both groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpframe.arrays import Floats
from dpframe.plan import ReleasedColumn
from dpframe.release.answer import Numbers
from dpframe.release.estimators import Sampled, covariances, estimator_of


def sampling_parts(
    numbers: Numbers, output: ReleasedColumn, pairs: tuple[Sequence[int], Sequence[int]], alpha: float, *, apart: bool
) -> Floats | None:
    """For each difference, its sampling variance over the sum of those of the two groups, each with its allowance.

    Input:  a release for the population and one of its columns; the rows of the first and of the second groups; alpha;
            apart: whether each unit is in at most one group
    Output: numbers in [0, 2]; None where people may be in both groups and no covariance was paid for
    Bound:  let V and V' be the sampling variances of the two numbers and C their covariance over people, 0 if nobody is
            in both groups. The difference has V + V' - 2·C. The noisy V, V' and C have independent noises of the scales
            b, b' and c, so this sum has noise with the variance of Laplace noise of the scale √(b² + b'² + 4·c²). One
            allowance for it is added in place of two: see `variance_allowance`, where a sum of such noises has lighter
            tails than the Laplace noise that is assumed. By Cauchy and Schwarz the variance of a difference is between
            (√V - √V')² and (√V + √V')², so it is kept between these, taken at V and V' with their allowances; for
            groups that share nobody it is at most V + V'
    Source: Cochran 1977, "Sampling Techniques", chapter 6; ours for the allowance
    """
    if not apart and not any(total.between_groups for _, total in output.moments):
        return None
    estimator, plan, parts = estimator_of(output), numbers.noise, numbers.parts
    values = numbers.drawn.get_column(output.name).to_physical().to_numpy().astype(np.float64)
    slopes = estimator.per_influence(values)
    between = None if apart else covariances(output, plan, estimator.influence(output, plan, parts), parts)
    sampled = estimator.sampled(output, plan, values, parts)
    one, other = list(pairs[0]), list(pairs[1])
    uppers = sampled.upper(alpha) * slopes**2
    first, second = uppers[one], uppers[other]
    value = (sampled.value * slopes**2)[one] + (sampled.value * slopes**2)[other]
    scale = np.hypot((sampled.scale * slopes**2)[one], (sampled.scale * slopes**2)[other])  # squares leave floats
    if between is not None:
        worth = slopes[one] * slopes[other]
        value = value - 2 * worth * between[0][one, other]
        scale = np.hypot(scale, 2 * worth * between[1][one, other])
    known = (sampled.known * slopes**2)[one] + (sampled.known * slopes**2)[other]
    together = Sampled(value, scale, known).upper(alpha)
    least, most = (np.sqrt(first) - np.sqrt(second)) ** 2, (np.sqrt(first) + np.sqrt(second)) ** 2
    together = np.clip(together, least, np.where(apart, first + second, most))
    both = first + second
    worst = np.full_like(both, 1.0 if apart else 2.0)
    told = (both > 0) & (slopes[one] > 0) & (slopes[other] > 0)
    return np.divide(together, both, out=worst, where=told)
