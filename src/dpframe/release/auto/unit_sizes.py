"""Rows, groups and largest groups of units, as noisy histograms describe them:
quantiles of units in one order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpframe.arrays import Floats
from dpframe.engine import NODES
from dpframe.release.auto.distinct_values import Shared
from dpframe.release.auto.model import MODEL
from dpframe.release.auto.size_histograms import Groups, SizePosterior, quantiles

_NODES = NODES.astype(np.float64)
# Quantiles of the units that represent all of them, finer where few units have most of the rows;
# and their weights.
AT: Floats = np.concatenate([np.linspace(0.0075, 0.9375, 63), 1 - np.geomspace(0.05, 1e-5, 45)])
WEIGHTS: Floats = np.diff(np.concatenate([[0.0], (AT[1:] + AT[:-1]) / 2, [1.0]]))
_AS_MANY = 0.02  # least relative difference between numbers of units that count as equal
NODE = 1.5  # largest ratio of two neighbouring nodes, beyond the first few


@dataclass(frozen=True)
class UnitSizes:
    """Posteriors of unit sizes: units by rows, by groups and by their largest
    group; and the sizes of groups.

    `keys` has the units in each group, each unit spread over its groups, for each case of `rows` or
    once for all; None if it was not measured. No unit is in more than `cells` groups.
    """

    rows: SizePosterior
    groups: SizePosterior | None = None
    peaks: SizePosterior | None = None
    keys: Groups | None = None
    cells: float = math.inf
    values: Mapping[str, Shared] = field(default_factory=dict)

    @cached_property
    def seen_rows(self) -> Floats:
        """Rows (cases by units), as their histogram alone says."""
        return np.array([quantiles(masses, _NODES, AT) for masses in self.rows.masses])

    @cached_property
    def sizes(self) -> tuple[Floats, Floats, Floats]:
        """Rows (cases by units), groups and largest groups of units, in order."""
        rows = self.seen_rows
        most = np.minimum(self.cells, np.inf if self.keys is None else self.keys.number[:, None])
        largest = None if self.peaks is None else self._beside(self.peaks)
        # a unit between two nodes counts at both, so it may seem larger than possible
        if largest is not None:
            rows = np.where(rows <= NODE * most * largest, np.minimum(rows, most * largest), rows)
        if self.peaks is not None and largest is not None:
            largest = extrapolated(
                rows, largest, MODEL.hidden_scales * self.peaks.scale / self.rows.units
            )
        if self.groups is not None:
            groups = self._beside(self.groups)
        else:  # as few groups as possible
            groups = np.ones_like(rows) if largest is None else np.maximum(rows / largest, 1.0)
        groups = np.minimum(np.minimum(groups, most), rows)
        evenly = rows / groups
        largest = np.ceil(evenly) if largest is None else largest
        peaks = np.clip(largest, evenly, np.maximum(rows - groups + 1, evenly))
        return rows, np.broadcast_to(groups, rows.shape), np.broadcast_to(peaks, rows.shape)

    def _beside(self, other: SizePosterior) -> Floats:
        """Sizes (cases by units) from another histogram of the same units:
        one of its cases for each case of `rows`.

        It is drawn among those with about as many units. So what noise makes of the other histogram
        stays in few cases, and units that the first one does not show hardly count. "About" is as
        near as noise lets the two numbers be. A closer match prefers cases in which noise looks
        like units: 316 units with one row in each group seemed to be 240, and 70 with two rows.
        """
        draw = np.random.default_rng(1)  # not noise: the pairs follow from the counts
        cases = len(self.rows.odds)
        bandwidth = max(other.unsure * len(other.odds) ** -0.2, _AS_MANY) * other.units
        width = np.sqrt(bandwidth**2 + self.rows.left_open[:, None] + other.left_open)
        off = self.rows.masses.sum(axis=1)[:, None] - other.masses.sum(axis=1)
        near = -((off / width) ** 2) / 2 - np.log(width)
        chances = np.cumsum(other.odds * np.exp(near - near.max(axis=1, keepdims=True)), axis=1)
        at = (draw.permutation(cases) + 0.5) / cases * chances[:, -1]
        sizes = np.array([quantiles(masses, _NODES, AT) for masses in other.masses])
        return np.asarray(sizes[(chances < at[:, None]).sum(axis=1)])


def extrapolated(rows: Floats, largest: Floats, hidden: float) -> Floats:
    """Largest groups of units in order, where the noise may hide those of a part of
    the units, which have most rows.

    They have at least as large a part of their rows in one group as the largest units that are
    seen. Without that, 23 viewers with 1,000 films were taken to have as many films in each of 22
    groups: no larger groups were seen in the noise. Neighbouring nodes stand for the same size.
    """
    seen = max(int(np.searchsorted(AT, 1 - hidden)) - 1, 0)
    part = largest[:, seen, None] / rows[:, seen, None] / NODE
    return np.concatenate([largest[:, :seen], np.maximum(largest, rows * part)[:, seen:]], axis=1)
