"""Values in bins, as noisy histograms describe them, and how far two of
the edges leave values outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpframe.arrays import Floats, Integers

_NOBODY = 1e-9  # units
_FARTHEST = 600.0  # scales: an exponential of more is 0 or nearly so


@dataclass(frozen=True)
class BinnedValues:
    """Parts of the units (cases by bins) between edges, and how many units there are in each case.

    Errors that follow from them are arrays of cases by pairs of edges; edges have numbers.
    """

    edges: Floats
    parts: Floats
    units: Floats
    scale: float  # of the noise in a bin
    whole: bool

    @classmethod
    def of(cls, edges: Floats, cases: Floats, scale: float, *, whole: bool) -> BinnedValues:
        units = np.maximum(cases.sum(axis=1), 1.0)
        return cls(edges, cases / units[:, None], units, scale, whole)

    @cached_property
    def ends(self) -> Floats:
        """Ends of the bins; the bins below and above all edges are
        as wide as those next to them.
        """
        first, last = 2 * self.edges[:1] - self.edges[1:2], 2 * self.edges[-1:] - self.edges[-2:-1]
        return np.concatenate([first, self.edges, last])

    @cached_property
    def middles(self) -> Floats:
        """Values that stand for the bins."""
        return np.asarray((self.ends[1:] + self.ends[:-1] - self.whole) / 2)

    @cached_property
    def middle(self) -> int:
        """The bin that holds the median."""
        cumulative = np.cumsum(self.parts.mean(axis=0))
        return int(np.searchsorted(cumulative, cumulative[-1] / 2))

    @cached_property
    def inside(self) -> Floats:
        """The variance of the values of a bin, if they are evenly spread."""
        return np.asarray((np.diff(self.ends) ** 2 - self.whole) / 12)

    @cached_property
    def highs(self) -> Floats:
        """The largest values below the edges."""
        return self.edges - self.whole

    def chosen_away(self, low: Integers, high: Integers, rows: Floats, scale: float) -> Floats:
        """Expected distance of a choice between two edges from the value
        that has so many units below it.

        The law is that of an exponential mechanism: a value that splits the units worse by `scale`
        more of them is e times less likely. Within a bin values are evenly spread. So a bin of
        width w is as likely as w times the mean of exp(-|r| / scale) over the ranks r of its
        values, measured from `rows`. Wide bins without units beyond the last values are likely
        where few units are beyond the quantile.

        Input:  pairs of edges; rows: units below the value, in each case; scale: of the choice
                (units)
        Source: Smith 2011, STOC
        """
        numbers = self.parts * self.units[:, None]
        after = np.cumsum(numbers, axis=1) - rows[:, None]
        before = after - numbers
        at, cases = (
            np.minimum((after < 0).sum(axis=1), numbers.shape[1] - 1),
            np.arange(len(numbers)),
        )
        inside = np.clip(-before[cases, at] / np.maximum(numbers[cases, at], _NOBODY), 0, 1)
        value = (self.ends[at] + inside * (self.ends[at + 1] - self.ends[at]))[:, None]
        sides = (
            np.maximum(after, 0) - np.maximum(before, 0),
            np.maximum(-before, 0) - np.maximum(-after, 0),
        )
        nearest = np.exp(-np.minimum(np.maximum(np.maximum(before, -after), 0) / scale, _FARTHEST))
        mean = sum(-np.expm1(-side / scale) * scale for side in sides) + _NOBODY
        weights = np.diff(self.ends) * nearest * mean / (numbers + _NOBODY)
        whole, away = (
            _between(x, low + 1, high + 1)
            for x in (weights, weights * np.abs(self.middles - value))
        )
        beyond = np.maximum(np.maximum(self.edges[low] - value, value - self.edges[high]), 0.0)
        return np.asarray(
            np.maximum(np.divide(away, whole, out=beyond.copy(), where=whole > 0), beyond)
        )

    def lost(self, low: Integers, high: Integers) -> Floats:
        """Mean distance of values beyond a pair of edges."""
        below = self.parts @ np.maximum(self.edges - self.middles[:, None], 0.0)
        above = self.parts @ np.maximum(self.middles[:, None] - self.highs, 0.0)
        return np.asarray(below[:, low] + above[:, high])


def _between(parts: Floats, first: Integers, last: Integers) -> Floats:
    """Sums of parts from `first` to before `last`, in each case.

    They are differences of sums from that end beyond which there is less, so that a small sum does
    not vanish beside a large one.
    """
    nothing = np.zeros((len(parts), 1))
    up = np.hstack([nothing, np.cumsum(parts, axis=1)])
    down = np.hstack([np.cumsum(parts[:, ::-1], axis=1)[:, ::-1], nothing])
    upward = up[:, first] < down[:, last]
    return np.asarray(np.where(upward, up[:, last] - up[:, first], down[:, first] - down[:, last]))
