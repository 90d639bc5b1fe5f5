"""Differences between groups of a release, with intervals and p-values:
post-processing of released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from dpframe.arrays import Floats
from dpframe.noise import first_enough
from dpframe.plan import Covers, Formula, ReleasedColumn, is_whole
from dpframe.release.accuracy.intervals import intervals
from dpframe.release.answer import Numbers
from dpframe.release.estimators import Sampled, covariances, estimator_of
from dpframe.theory.formulas.error import normal_error

# The levels at which intervals are computed for p-values; between them p is interpolated. Common
# levels are among them, so that p is at most 0.05 just where the 95% interval leaves 0 out.
_LEVELS = np.unique(
    np.concatenate([np.geomspace(1e-6, 0.999, 21), [0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5]])
)


_NEARLY = 1e-9  # steps by which floats may be above a whole number of steps


@dataclass(frozen=True)
class Differences:
    """Differences of pairs of groups in one column of a release, in the
    column's unit, times in ticks.

    `apart` says whether each unit is in at most one group. If units may be in both groups of a
    pair, the sampling errors of the two are correlated: as measured, where the release paid for
    that, else in any way.
    """

    numbers: Numbers
    output: ReleasedColumn
    first: Sequence[int]
    second: Sequence[int]
    apart: bool

    @property
    def values(self) -> Floats:
        """The released number of each group."""
        drawn = self.numbers.drawn.get_column(self.output.name)
        return np.asarray(drawn.to_physical().cast(pl.Float64).to_numpy())

    @property
    def estimates(self) -> Floats:
        """The differences of the released numbers."""
        return np.asarray(self.values[list(self.first)] - self.values[list(self.second)])

    def interval(self, alpha: float) -> tuple[Floats, Floats]:
        """The ends of an interval for each difference, each right with
        probability 1 - alpha by itself.

        Bound:  groups have independent noises. For independent errors with intervals [l, u] around
                y, the difference y - y' has about the interval from y - y' - √((y - l)² + (u' -
                y')²) to y - y' + √((u - y)² + (y' - l')²): exact for normal errors, and wider than
                needed for sums of Laplace noises. For the population, s and s' are the sampling
                parts of the two lengths, and s² + s'² under the root is multiplied by the part that
                `sampling_parts` gives: it knows how many people are in both groups, and needs one
                allowance for both variances. Where a unit may be in both groups and their
                covariance was not paid for, 2·s·s' is added instead: that is the largest the
                variance can be, at a correlation of -1. For rates see `_pooled`. If all groups
                share a part of their noise, it cancels in the difference: what is left has the
                variance of independent noises times `apart`, so the lengths are multiplied by the
                root of that; see `pricing.shared_noise`. An error e of whole numbers is exceeded
                from e + 1 on: it stands for e + 1/2 on the reals. So half a step is added to each
                length before lengths are put together, and taken off afterwards, and what is left
                is rounded up to whole steps: without that, 95% intervals at σ = 0.6 missed up to
                10% of differences
        Source: Zou, Donner 2008, Statistics in Medicine 27, "Construction of confidence limits
                about effect measures"
        """
        value, (low, high) = self.values, intervals(self.numbers, self.output, alpha)
        apart, step = math.sqrt(self.numbers.noise.apart(self.output)), self._step
        down, up = (value - low + step / 2) * apart, (high - value + step / 2) * apart
        unit = _unit(down, up)
        down, up = down / unit, up / unit
        one, other = list(self.first), list(self.second)
        extra_low = extra_high = np.zeros(len(one))
        if self.numbers.covers is Covers.POPULATION:
            noise_low, noise_high = intervals(self.numbers, self.output, alpha, covers=Covers.NOISE)
            sampled_down = np.sqrt(np.maximum(down**2 - ((value - noise_low) / unit) ** 2, 0.0))
            sampled_up = np.sqrt(np.maximum(up**2 - ((noise_high - value) / unit) ** 2, 0.0))
            parts = sampling_parts(self.numbers, self.output, (one, other), alpha, apart=self.apart)
            extra_low = _extra(sampled_down[one], sampled_up[other], parts)
            extra_high = _extra(sampled_up[one], sampled_down[other], parts)
            if self.apart and self._is_rate:
                first, second = self._pooled(alpha, unit)
                extra_low += _more(first, sampled_down[one]) + _more(second, sampled_up[other])
                extra_high += _more(first, sampled_up[one]) + _more(second, sampled_down[other])
        below = np.sqrt(down[one] ** 2 + up[other] ** 2 + extra_low)
        above = np.sqrt(up[one] ** 2 + down[other] ** 2 + extra_high)
        below, above = in_steps(below * unit, step), in_steps(above * unit, step)
        return self.estimates - below, self.estimates + above

    @property
    def _step(self) -> float:
        """Step of which released counts and sums, and so their errors, are
        multiples (column unit); 0 for no step.
        """
        if self.numbers.covers is Covers.POPULATION or not estimator_of(self.output).adds_up:
            return 0.0
        if all(self.numbers.noise.of(total).exact for _, total in self.output.totals):
            return 0.0
        ((_, total), *_) = self.output.totals
        return 1.0 if self.output.whole else float(total.unit) * self.output.ticks

    @property
    def _is_rate(self) -> bool:
        """Whether the column is the mean of conditions, or of whole
        numbers between bounds one apart.
        """
        column, bounds = self.output.total.column, self.output.bounds
        if self.output.formula is not Formula.MEAN or column is None or bounds is None:
            return False
        return is_whole(column) and bounds.upper - bounds.lower == 1

    def _pooled(self, alpha: float, unit: float) -> tuple[Floats, Floats]:
        """Squared sampling lengths of both groups of each pair if both
        have one rate (squared `unit`).

        Bound:  a rate of n people has the variance q·(1 - q) / n, where q is the rate of both
                groups together. A small group in which nobody has a rare condition seems to have no
                variance: so its lengths are at least these
        Source: the pooled variance of the score test; Wilson 1927, JASA 22, for one group
        """
        values = (self.values / self.output.ticks) - self.output.ends[0]
        sizes = np.maximum(self.numbers.parts[self.output.totals[-1][0]], 1.0)
        one, other = list(self.first), list(self.second)
        sums = values[one] * sizes[one] + values[other] * sizes[other]
        rate = np.clip(sums / (sizes[one] + sizes[other]), 0.0, 1.0)
        square = (normal_error(self.output.ticks / unit, alpha)) ** 2 * rate * (1 - rate)
        return square / sizes[one], square / sizes[other]

    @property
    def p_values(self) -> Floats:
        """The smallest level at which the interval leaves 0 out, for
        each difference; at least 1e-6.
        """
        return _p_values(self)


def in_steps(lengths: Floats, step: float) -> Floats:
    """Lengths on the reals as those of numbers in steps, rounded up;
    the same lengths where there is no step.
    """
    return np.ceil(lengths / step - 0.5 - _NEARLY) * step if step else lengths


def _unit(down: Floats, up: Floats) -> float:
    """The largest finite length: squares of lengths in this unit are
    floats, whatever the bounds are.
    """
    lengths = np.concatenate([down, up])
    return float(np.max(lengths, where=np.isfinite(lengths), initial=0.0)) or 1.0


def _extra(one: Floats, other: Floats, parts: Floats | None) -> Floats:
    """The addition to the sum of squared sampling lengths that gives that of a
    difference; at the worst 2·s·s'.
    """
    worst = 2 * one * other
    with np.errstate(invalid="ignore"):  # infinite lengths have no parts
        extra = worst if parts is None else np.minimum((parts - 1) * (one**2 + other**2), worst)
    return np.where(np.isnan(extra), worst, extra)


def _more(square: Floats, length: Floats) -> Floats:
    """The rest of a squared length beside another."""
    return np.maximum(square - length**2, 0.0)


def _p_values(differences: Differences) -> Floats:
    """For each difference, the place between two levels at which its interval
    comes to leave 0 out, by bisection.
    """
    computed: dict[int, Floats] = {}

    def inside(level: int) -> Floats:
        """For each difference, how far 0 is inside the interval of a
        level; below 0 where it is outside.
        """
        if level not in computed:
            low, high = differences.interval(float(_LEVELS[level]))
            computed[level] = np.minimum(-low, high)
        return computed[level]

    return np.array([_p_value(inside, i) for i in range(len(differences.first))])


def _p_value(all_inside: Callable[[int], Floats], i: int) -> float:
    """The level, read between two of those in the list, up to which 0 is
    inside the interval of a difference.
    """

    def inside(level: int) -> float:
        return float(all_inside(level)[i])

    leaves = first_enough(lambda level: not inside(level) >= 0, -1, len(_LEVELS))
    if leaves == 0:
        return float(_LEVELS[0])
    if leaves == len(_LEVELS):
        return 1.0
    holds = leaves - 1
    margin, beyond = inside(holds), -inside(leaves)
    part = margin / (margin + beyond) if math.isfinite(margin) else 1.0
    return float(_LEVELS[holds] * (_LEVELS[leaves] / _LEVELS[holds]) ** part)


def holm(p: Floats) -> Floats:
    """P-values for several differences at once: the chance that any null is
    rejected stays below the level.

    Bound:  the i-th smallest of k p-values times k - i + 1, and never below an earlier one; true
            whatever the dependence between the differences is
    Source: Holm 1979, Scandinavian Journal of Statistics 6

    >>> holm(np.array([0.04, 0.01])).tolist()
    [0.04, 0.02]
    """
    order, number = np.argsort(p, kind="stable"), len(p)
    adjusted = np.maximum.accumulate(np.minimum(p[order] * (number - np.arange(number)), 1.0))
    result = np.empty(number)
    result[order] = adjusted
    return result


# People in both groups


def sampling_parts(
    numbers: Numbers,
    output: ReleasedColumn,
    pairs: tuple[Sequence[int], Sequence[int]],
    alpha: float,
    *,
    apart: bool,
) -> Floats | None:
    """For each difference, its sampling variance over the sum of those of the two
    groups, each with its allowance.

    Input:  a release for the population and one of its columns; the rows of the first and of the
            second groups; alpha; apart: whether each unit is in at most one group
    Output: numbers in [0, 2]; None where people may be in both groups and no covariance was paid
            for
    Bound:  let V and V' be the sampling variances of the two numbers and C their covariance over
            people, 0 if nobody is in both groups. The difference has V + V' - 2·C. The noisy V, V'
            and C have independent noises of the scales b, b' and c, so this sum has noise with the
            variance of Laplace noise of the scale √(b² + b'² + 4·c²). One allowance for it is added
            in place of two: see `variance_allowance`, where a sum of such noises has lighter tails
            than the Laplace noise that is assumed. By Cauchy and Schwarz the variance of a
            difference is between (√V - √V')² and (√V + √V')², so it is kept between these, taken at
            V and V' with their allowances; for groups that share nobody it is at most V + V'
    Source: Cochran 1977, "Sampling Techniques", chapter 6; ours for the allowance
    """
    if not apart and not any(total.between_groups for _, total in output.moments):
        return None
    estimator, noisy = estimator_of(output), numbers.noisy(output)
    values = numbers.drawn.get_column(output.name).to_physical().to_numpy().astype(np.float64)
    slopes = estimator.per_influence(values)
    between = None if apart else covariances(noisy, estimator.influence(noisy))
    sampled = estimator.sampled(noisy, values)
    one, other = list(pairs[0]), list(pairs[1])
    uppers = sampled.upper(alpha) * slopes**2
    first, second = uppers[one], uppers[other]
    value = (sampled.value * slopes**2)[one] + (sampled.value * slopes**2)[other]
    # squares leave floats
    scale = np.hypot((sampled.scale * slopes**2)[one], (sampled.scale * slopes**2)[other])
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
