"""Values in bins, as noisy histograms describe them, and how far two of
the edges leave values outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpframe.arrays import Floats, Integers


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

    def lost(self, low: Integers, high: Integers) -> Floats:
        """Mean distance of values beyond a pair of edges."""
        below = self.parts @ np.maximum(self.edges - self.middles[:, None], 0.0)
        above = self.parts @ np.maximum(self.middles[:, None] - self.highs, 0.0)
        return np.asarray(below[:, low] + above[:, high])
