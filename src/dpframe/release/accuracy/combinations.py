"""Weighted sums of released groups and quotients of two, with intervals:
post-processing of released numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from dpframe.arrays import Floats, Integers
from dpframe.plan import Covers, ReleasedColumn
from dpframe.release.accuracy.group_differences import in_steps
from dpframe.release.accuracy.intervals import intervals
from dpframe.release.answer import Numbers
from dpframe.release.estimators import estimator_of

Places = Integers


@dataclass(frozen=True)
class Combinations:
    """Weighted sums of the groups of one column, with intervals for the same sums without noise.

    The values are those that the table shows, NaN where a group is not shown; the intervals are
    those of the numbers as drawn, and about the noise alone.
    """

    numbers: Numbers
    output: ReleasedColumn
    alpha: float

    @cached_property
    def shown(self) -> Floats:
        """The shown number of each group, in ticks for times; NaN for a missing one."""
        return _floats(self.numbers.shown, self.output.name)

    def sums(self, at: Places, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Weighted sums: value, lower and upper end.

        Input:  at: the groups of each sum, sums by groups; weights: one for each group of a sum, of
                one size
        Bound:  groups have independent noises, of which each has an interval [l, u] around its y. A
                weighted sum of independent errors has about the interval whose squared lengths are
                the weighted squares of theirs: exact for normal errors, and wider than needed for
                sums of Laplace noises. A number with a negative weight counts with its other end.
                If all groups share a part of their noise, the variance is that of independent
                noises times `apart`, and the square of the sum of weights times what is left; see
                `pricing.shared_noise`. Released whole numbers stand for reals that are up to half a
                step away, so half a step is added to each length before lengths are put together,
                and the sum is then rounded to steps
        Source: Zou, Donner 2008, Statistics in Medicine 27, as for differences of two
        """
        drawn, down, up = self._lengths
        middle = (drawn[at] * weights).sum(axis=1)
        below, above = (
            np.where(weights < 0, up[at], down[at]),
            np.where(weights < 0, down[at], up[at]),
        )
        step = abs(float(weights[0])) * 2 * half_step(self.numbers, self.output)
        ends = [
            in_steps(np.sqrt(self._square(lengths * weights)), step) for lengths in (below, above)
        ]
        return (self.shown[at] * weights).sum(axis=1), middle - ends[0], middle + ends[1]

    def quotients(self, over: Places, under: Places) -> tuple[Floats, Floats, Floats]:
        """One group over a sum of groups: value, lower and upper end;
        NaN where the divisor may be 0.

        Input:  over: a group for each quotient; under: the groups of its divisor, quotients by
                groups; or one row, if all have the same divisor
        Bound:  the true quotient r makes the sum A - r·B of its groups 0 without noise. So the
                interval holds every r for which that weighted sum of the released groups is within
                its length: a quadratic inequality in r
        Source: Fieller 1954, "Some problems in interval estimation"; the lengths are those of
                `sums`
        """
        drawn, down, up = self._lengths
        length, apart = np.maximum(down, up), self._apart
        a, b = drawn[over], drawn[under].sum(axis=1)
        own, shared = length[under], length[under].sum(axis=1)
        one = length[over]
        inside = np.isin(over, under) if len(under) == 1 else (under == over[:, None]).any(axis=1)
        squares = (
            one**2,
            np.where(inside, apart * one**2, 0.0) + (1 - apart) * one * shared,
            self._square(own),
        )
        ends = quotient_ends(a, b, squares)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = self.shown[over] / self.shown[under].sum(axis=1)
        return np.where(np.isnan(ends[0]), np.nan, values), *ends

    @property
    def _apart(self) -> float:
        return float(self.numbers.noise.apart(self.output))

    @cached_property
    def _lengths(self) -> tuple[Floats, Floats, Floats]:
        """The drawn numbers, and how far their intervals reach down and up."""
        numbers = replace(
            self.numbers, long=self.numbers.drawn, before=None, lifted=False, suppression=None
        )
        drawn = _floats(numbers.long, self.output.name)
        low, high = intervals(numbers, self.output, self.alpha, covers=Covers.NOISE)
        half = half_step(self.numbers, self.output)
        return drawn, drawn - low + half, high - drawn + half

    def _square(self, lengths: Floats) -> Floats:
        """The squared length of each sum of groups."""
        return np.asarray(
            self._apart * (lengths**2).sum(axis=1) + (1 - self._apart) * lengths.sum(axis=1) ** 2
        )


def quotient_ends(
    a: Floats, b: Floats, squares: tuple[Floats, Floats, Floats]
) -> tuple[Floats, Floats]:
    """Both ends of the interval of a quotient of two noisy numbers; NaN where the divisor may be 0.

    Input:  a, b: the numbers; squares: of the length of a - r·b, which is the square root of one -
            2 r·both + r²·own
    Output: the least and the largest r with |a - r·b| no larger than its length
    """
    one, both, own = squares
    high, middle, low = b**2 - own, a * b - both, a**2 - one
    root = np.sqrt(np.maximum(middle**2 - high * low, 0.0))
    surely = (high > 0) & (b > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(surely, (middle - root) / high, np.nan), np.where(
            surely, (middle + root) / high, np.nan
        )


def half_step(numbers: Numbers, output: ReleasedColumn) -> float:
    """Half a step of whole numbers with noise, else 0."""
    exact = all(numbers.noise.of(total).exact for _, total in output.totals)
    return 0.5 if estimator_of(output).adds_up and output.whole and not exact else 0.0


def _floats(table: pl.DataFrame, name: str) -> Floats:
    values = table.get_column(name).to_physical().cast(pl.Float64)
    return np.asarray(values.fill_null(np.nan).to_numpy())
