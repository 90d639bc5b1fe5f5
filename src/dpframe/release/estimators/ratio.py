"""Ratios of two noisy sums, and weighted means, which are such ratios."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpframe.arrays import Booleans, Floats
from dpframe.plan import ReleasedColumn, Total, TotalKind
from dpframe.release.estimators.base import (
    Estimator,
    Interval,
    Noisy,
    bounds_of,
    half_width,
    real,
    widened,
)
from dpframe.release.estimators.fieller import expected, farthest, reaches
from dpframe.release.estimators.influence import Influence, NoisyColumn, reach_of, sampling_variance

_ROUNDED = 2.0**-16  # of a ratio, more than arithmetic in floats moves it by


class RatioEstimator(Estimator):
    """A sum over a sum that is 0 or more; with bounds, a weighted mean of values inside them."""

    def value(self, output: NoisyColumn, noisy: Noisy) -> Any:
        """S·T / (T² + c) with T = max(divisor, 0): where noise is all there is,
        it is 0 (the middle for a mean).

        For a ratio c is the variance of the divisor's noise: noise in T raises S/T by about that
        part. For a weighted mean c is (σ/h)², as for a mean, with σ the deviation of the noise of S
        and h half the width of the bounds.
        """
        (_, over), (_, under) = output.totals
        total, whole = real(over, noisy), np.maximum(real(under, noisy), 0.0)
        if output.bounds is None:
            ratio = _drawn(total, whole, output.noise(under).deviation)
            return ratio
        half = half_width(output)
        ratio = _drawn(total, whole, output.noise(over).deviation / half if half else 0.0)
        return np.clip(float(output.about) + ratio, *output.ends)

    def interval(
        self, output: NoisyColumn, alpha: float, numbers: Floats, rows: Floats | None
    ) -> Interval:
        """Fieller's set, widened to hold the released number.
        Where the divisor may be 0, it has no end.

        Bound:  write S + z and T + w for the noisy sums, and R = S/T. Then S + z - R·(T + w) = z -
                R·w exactly. A ratio R fits where |z - R·w| reaches the size of the left side with
                probability alpha, so the set holds the true ratio with probability 1 - alpha,
                whatever the ratio and the noise. Both sides are multiplied by cos θ with R = s·tan
                θ, so that ratios without an end are reached at θ = ±π/2. For T + w > 0, a path away
                from the released ratio leaves the set at most once, since the quantile is a norm:
                see `fieller`
        Source: Fieller 1954, Journal of the Royal Statistical Society B 16
        """
        return _interval(output, alpha, numbers)

    def widest(self, output: NoisyColumn) -> tuple[Any, Any] | None:
        """The bounds of a weighted mean, or the ratios that the bounds of both sums allow."""
        return _possible(output) if output.bounds is None else bounds_of(output)

    def population(self, output: NoisyColumn, alpha: float, numbers: Floats) -> Interval:
        """The ratios that fit noise and sampling.

        Bound:  for a ratio R beside the released r, the sampling error of S - R·T is about normal
                with the variance Σ (S_u - R·T_u)² over people. That is Σ (S_u - r·T_u)², and (R -
                r)²·Σ T_u², where Σ T_u² is at most the largest T_u times T; what both have in
                common has opposite signs on both sides of r, and is left out (Cochran 1977,
                "Sampling Techniques", chapter 6). So few people have wide intervals
        """
        (_, _), (divisor, under) = output.totals
        # where it is not, every ratio fits
        whole = np.where(output[divisor] > 0, output[divisor], 1.0)
        variance = sampling_variance(output, self.influence(output), alpha)
        spread = np.sqrt(variance) * whole, np.sqrt(reach_of(output, under)[1] * whole)
        return _interval(output, alpha, numbers, spread)

    def influence(self, output: NoisyColumn) -> Influence:
        """(S_u - r·T_u) / T of a person, which is largest at a corner of what a person can add."""
        (name, over), (divisor, under) = output.totals
        whole = np.maximum(output[divisor], _largest(under) or 1.0)
        ratio = output[name] / whole
        if output.bounds is None:
            corners = [
                np.abs(s - ratio * t)
                for s in reach_of(output, over)
                for t in reach_of(output, under)
            ]
        else:
            least, most = output.ends_from(output.about)
            ratio = np.clip(ratio, least, most)
            corners = [reach_of(output, under)[1] * np.abs(end - ratio) for end in (least, most)]
        largest = np.max(corners, axis=0) / whole
        return Influence({name: 1 / whole, divisor: -ratio / whole}, largest)

    def expected_error(self, output: NoisyColumn, alpha: float, rows: float | None) -> float | None:
        """The error where the divisor's values are, on average, in the middle of their bounds.

        It is not known before a release how large the divisor is. That of n rows in the middle of
        the bounds [a, b] is n·(a + b)/2, and the ratio is then at most the largest value above,
        over that middle.
        """
        if rows is None:
            return None
        (_, over), (_, under) = output.totals
        low, high = _row_ends(under)
        middle, size = (low + high) / 2, _largest(over)
        if not middle:
            return None
        most = size / middle if output.bounds is None else half_width(output)
        return expected(output, [(1.0, over)], under, most, rows * middle, alpha, 2 * most)

    def constant_error(self, output: ReleasedColumn) -> float | None:
        """Half the width of the bounds of a weighted mean; no bounds hold any other ratio."""
        return None if output.bounds is None else half_width(output)

    def reach(self, output: ReleasedColumn) -> float:
        """Half the width of a mean's bounds, and for a ratio the largest value
        above over the largest one below.
        """
        return _scale(output) if output.bounds is None else half_width(output)


def _interval(
    output: NoisyColumn,
    alpha: float,
    numbers: Floats,
    spread: tuple[Floats, Floats] | None = None,
) -> Interval:
    """The ratios that fit, widened to hold the released number.

    Input:  spread: the deviation of the sampling error of S - r·T at the released ratio r, and what
            it grows by for each unit of |R - r|; None for the noise alone
    """
    (name, over), (divisor, under) = output.totals
    total, whole, unit = output[name], output[divisor], _scale(output)
    positive = np.where(whole > 0, whole, 1.0)  # where it is not, every ratio fits
    with np.errstate(over="ignore"):
        ratio = np.clip(total / positive, -1e300, 1e300)
        start = np.arctan2(total, positive * unit)

    def fits(angle: Floats) -> Booleans:
        one, slope = np.cos(angle), unit * np.sin(angle)
        sampled = (
            None if spread is None else np.hypot(one * spread[0], (slope - one * ratio) * spread[1])
        )
        terms = [(np.abs(one), output.noise(over)), (np.abs(slope), output.noise(under))]
        return reaches(np.abs(one * total - slope * whole), terms, alpha, sampled) | (whole <= 0)

    ends = []
    for end in (-math.pi / 2, math.pi / 2):
        angle = farthest(fits, start, end)
        ends.append(np.where(angle == end, math.copysign(math.inf, end), unit * np.tan(angle)))
    low, high = ends
    if output.bounds is None:
        low, high = (np.clip(end, *_possible(output)) for end in (low, high))
    else:
        least, most = output.ends_from(output.about)
        low, high = (np.clip(end, least, most) + float(output.about) for end in (low, high))
    return widened((low, high), numbers)


def _possible(output: ReleasedColumn) -> tuple[float, float]:
    """The smallest and largest ratio that the bounds of both sums allow;
    without an end where they allow any.

    Bound:  a row adds s from [a, b] to the sum above and t from [c, d] to that below, with c >= 0.
            Where no row lacks one of both values, the same rows with the same weights are in both
            sums. Then the ratio is a mean of the rows' s/t, weighted with t. So it is at least a/d
            for a >= 0, or else a/c, and at most b/c for b >= 0, or else b/d. Where values may be
            missing, each sum has rows of its own, and only the sign is known: a sum of numbers that
            are 0 or more is 0 or more. Values move outwards by the step of a grid that does not
            hold them exactly, and those of ratios by 2^-16 of their size, for arithmetic in floats
    """
    sums = [total for _, total in output.totals]
    steps = [0.0 if total.is_exact else float(total.grid.step) for total in sums]
    (least, most), (low, high) = (
        (a - step, b + step) for (a, b), step in zip(map(_row_ends, sums), steps, strict=True)
    )
    least, most, low = (
        0.0 if 0 > least >= -steps[0] else least,
        0.0 if 0 < most <= steps[0] else most,
        max(low, 0.0),
    )
    columns = [total.column for total in sums]
    same = all(total.kind is TotalKind.SUM and total.limits == sums[0].limits for total in sums)
    if not same or any(column is None or column.domain.nullable for column in columns):
        low, high = 0.0, math.inf
    return -_largest_ratio(-least, low, high), _largest_ratio(most, low, high)


def _largest_ratio(above: float, low: float, high: float) -> float:
    """The largest ratio of numbers up to `above` to numbers from `low` >=
    0 to `high`, and a little more.
    """
    by = low if above > 0 else high
    if not above:
        return 0.0
    return (
        above / by * (1 + math.copysign(_ROUNDED, above)) if by else math.copysign(math.inf, above)
    )


def _drawn(total: Any, whole: Any, deviation: float) -> Any:
    """Total / whole, drawn to 0 where the whole is not larger than
    the deviation; 0 where it is 0.
    """
    squared = whole**2 + deviation**2
    return np.divide(
        total * whole, squared, out=np.zeros_like(whole), where=(whole > 0) & (squared > 0)
    )


def _row_ends(total: Total) -> tuple[float, float]:
    """The smallest and largest value that one row adds to a total (column unit)."""
    low, high = map(float, total.grid.ends)
    return low, high


def _largest(total: Total) -> float:
    """The largest value in size that one row adds to a total (column unit)."""
    return max(map(abs, _row_ends(total)))


def _scale(output: ReleasedColumn) -> float:
    """A public ratio of the right size: the largest value above over the largest one below."""
    above, below = (_largest(total) for _, total in output.totals)
    return above / below if above and below else 1.0
