"""Thresholds on noisy numbers of found keys: the way to spread a unit's rows over
groups that shows a key most likely.

A unit that is alone in a group is revealed if the group is shown. The unit may be alone in several
groups, with few rows in many groups or many rows in few. The δ of a threshold is the largest
probability, over all these ways, that any of the groups is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from dpframe.errors import InvalidArgument
from dpframe.noise import Number, family_tail, first_enough, whole
from dpframe.theory.formulas.loss.calibration import Family, threshold
from dpframe.theory.formulas.loss.loss import probability, threshold_delta

# numbers of rows (units of a total's integer), and how many groups have each
Parts = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Spread:
    """The rows of one unit in groups where it is alone.

    Input:  groups: at most so many; most: at most so much in each of them; total: at most so much
            in all; least: at least so much in each of them (1 where whole rows are counted, since a
            group without rows is not found; 0 where rows have weights, which may be rounded to 0).
            All but `groups` are in units of the number's integer
    Errors: InvalidArgument

    >>> Spread(groups=3, most=3, total=4, least=1).of(2)
    ((3, 1), (1, 1))
    """

    groups: int
    most: int
    total: int
    least: int = 1

    def __post_init__(self) -> None:
        for name in ("groups", "most", "total"):
            whole(name, getattr(self, name), 1)
        if self.least not in (0, 1):
            raise InvalidArgument("Spread: least is 0 or 1.")

    @property
    def count(self) -> int:
        """The largest number of groups that the unit can be alone in."""
        return min(self.groups, self.total) if self.least else self.groups

    def of(self, groups: int) -> Parts:
        """The worst way over so many groups: all but at most one have `most` or `least` in them.

        Bound:  let h(c) be -log(1 - p(T - c)), with p(t) the probability that the noise is at least
                t. No group is shown with probability exp(-Σ h(c_i)). 1 - p(T - c) is the
                distribution function of the noise at T - c - 1. All noises here have log-concave
                densities or probabilities, or are these rounded, so this function is log-concave
                (Prékopa 1973), and h is convex and increasing. If two groups have least < c <= d <
                most, moving one from c to d changes Σ h by (h(d+1) - h(d)) - (h(c) - h(c-1)) >= 0.
                So in a worst way, at most one group is strictly between, and all of the total is
                used
        """
        count = min(whole("groups", groups, 0), self.count)
        if count * self.most <= self.total:
            return ((self.most, count),)
        if self.most == self.least:
            return ((self.most, count),)
        full, rest = divmod(self.total - count * self.least, self.most - self.least)
        parts = ((self.most, full), (self.least + rest, 1), (self.least, count - full - 1))
        return tuple((size, number) for size, number in parts if number > 0)

    def worst(self) -> Iterator[Parts]:
        """Ways among which the worst over all numbers of groups is,
        whatever the threshold and the noise.

        Bound:  with `least` 0 a further group adds h(0) >= 0, so the most groups are the worst.
                With `least` 1 and all of the total used, one more group costs one row of the group
                that is strictly between. So Σ h changes by h(1) - (h(r) - h(r-1)), where r falls
                from `most` to 2 and then starts again. Since h is convex, this change grows while r
                falls: between two starts Σ h is convex in the number of groups, so it is largest
                where r starts. From one start to the next Σ h changes by a constant. So the largest
                value is at the first or the last start, at the fewest groups that hold all of the
                total, or at the most groups
        """
        last = self.count
        first = min(-(-self.total // self.most), last)
        counts = {first, last}
        if self.least and self.most > 1:
            step = self.most - 1
            counts |= {first + (self.total - first) % step, last - (last - self.total) % step}
        yield from (self.of(count) for count in sorted(counts) if first <= count <= last)


def partition_delta(parts: Parts, tail: Callable[[int], Fraction]) -> Fraction:
    """The probability that any of a unit's own groups is shown: 1 - Π (1 - p(T - c_i)), rounded up.

    Input:  parts: what the unit has in its groups; tail(c): the probability that a group with c is
            shown, rounded up

    >>> round(float(partition_delta(((2, 1), (1, 2)), lambda size: Fraction(size, 10))), 6)
    0.352
    """
    hidden = Fraction(1)
    for size, number in parts:
        hidden *= 1 - Fraction(min(threshold_delta(tail(size), number), 1.0))
    return 1 - hidden


def partition_threshold(delta: Number, spread: Spread, family: Family, scale: Number) -> int:
    """Smallest threshold T such that showing the keys with noisy value ≥ T costs
    at most δ, for the worst spread.

    Input:  delta in (0, 1); spread: what one unit may have in its own groups; the family and scale
            of the noise on each group's value, in grid units
    Output: T, in grid units; at most `calibration.threshold` for the same groups, each with `most`
    Bound:  neighbouring tables differ in groups that one unit is alone in, and in groups of others.
            The keys of the former are shown in one of the two tables alone, with probability at
            most `partition_delta` of the worst spread. Under replace the two units together have
            twice the groups and the total, so any way to spread their rows is among those of that
            sum
    Source: Wilson et al. 2019, arXiv:1909.01917, Theorem 2, for equal groups; the worst spread is
            ours
    Errors: InvalidPrice, InvalidArgument as in `calibration.threshold`

    >>> partition_threshold(1e-6, Spread(groups=1, most=1, total=1), "discrete_laplace", 1)
    15
    >>> alike = threshold(1e-6, 5, "laplace", 2.0, 5)
    >>> partition_threshold(1e-6, Spread(groups=5, most=5, total=5), "laplace", 2.0) < alike
    True
    """
    allowed = probability("delta", delta)
    high = threshold(allowed, spread.groups, family, scale, spread.most)
    if spread.most == spread.least and spread.count == spread.groups:
        return high
    ways = list(spread.worst())

    def enough(candidate: int) -> bool:
        tails = {
            size: Fraction(family_tail(family, scale, candidate - size))
            for parts in ways
            for size, _ in parts
        }
        return all(partition_delta(parts, tails.__getitem__) <= allowed for parts in ways)

    low = min(spread.most, high - 1)
    return low if enough(low) else first_enough(enough, low, high)
