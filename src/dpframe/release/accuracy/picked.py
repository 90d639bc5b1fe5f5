"""Intervals of numbers that were picked because they are large: they hold for all groups that were found, together."""

from __future__ import annotations

import numpy as np

from dpframe.arrays import Floats
from dpframe.plan import ReleasedColumn
from dpframe.release.answer import GROUPS_FOUND, Numbers


def picked_from(numbers: Numbers) -> int:
    """The number of groups found, where the released ones were picked from them by their numbers; else 0."""
    found = numbers.parts.get(GROUPS_FOUND)
    return 0 if found is None or numbers.layout.largest is None or not len(found) else int(found[0])


def alpha_of_each(alpha: float, groups: int) -> float:
    """The probability of a larger error for one group, so that all groups found hold together with 1 - alpha.

    Input:  alpha in (0, 1); groups >= 1, those that were found
    Output: a / (1 + a/2) with a = alpha / groups
    Bound:  where the keys follow from other noise than the counts, each of the m found groups fails with probability
            at most alpha / m, and the noise of the counts does not depend on m. Where one noisy number both finds a key
            and is released, let G(x) = P[noise >= x]. The noise is symmetric and its law log-concave, so G(x + y) G(0)
            <= G(x) G(y) for x, y >= 0. Let T be the threshold, c the true count of a group, d = T - c, so that it is
            found with probability G(d), and t the error with 2 G(t + 1) <= a / (1 + a/2). By `with_rare_groups` the
            interval misses c from above only if noise >= t + 1 and noise >= t + 1 + d. For d >= 0 this has probability
            at most G(t + 1) G(d) / G(0) <= 2 G(t + 1) G(d), since G(0) >= 1/2. For d < 0 it is at most 2 G(t + 1) G(d)
            too, since then G(d) >= 1/2. It misses c from below only if noise <= -t - 1, and is found then only if d <=
            -t - 1; so G(d) >= 1 - G(t + 1), and both misses together have probability at most 2 G(t + 1) <= 2 G(t + 1)
            / (1 - G(t + 1)) G(d). In each case that is at most a G(d). Given the noise of all other groups, of which n
            are found, m = n + 1 if this one is found too. So it is found and missed with probability at most alpha
            E[1/m, found]. The sum over all groups is at most alpha, however many groups nobody found
    Source: the sum over groups is that of Benjamini and Yekutieli 2005, doi:10.1198/016214504000001907

    >>> alpha_of_each(0.5, 1), alpha_of_each(0.5, 2)
    (0.4, 0.2222222222222222)
    """
    each = alpha / groups
    return each / (1 + each / 2)


def with_rare_groups(numbers: Numbers, output: ReleasedColumn, value: Floats, low: Floats, high: Floats) -> Floats:
    """Lower ends for counts that found their own key: 0 where the count is hardly larger than the threshold.

    Input:  released counts and their intervals, value + error (rows)
    Bound:  a group with few rows is found by its noise alone, so nothing bounds that noise from above. Its interval
            reaches to 0 if its count is at most error + threshold
    """
    plan, (_, total) = numbers.noise, output.totals[0]
    if plan.decided_by is None or plan.threshold is None or plan.decided_by.total.key != total.key:
        return low
    reach = high - value + float(plan.threshold * total.unit) + float(total.fraction > 0)
    return np.where(value <= reach, np.minimum(low, 0.0), low)
