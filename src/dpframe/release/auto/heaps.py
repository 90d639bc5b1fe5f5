"""Values as a few heaps that explain a noisy histogram, and bounds that clip few values.

A heap is a normal law with a scale of its own on either side of its top. A histogram of equal bins
with Laplace noise is explained by one heap after another: each time the one that makes the
histogram likeliest, as long as noise alone would hardly look like it. All bins tell of a heap
together. So far fewer units are enough than each bin by itself would need, and bins without units
add nothing to what lies far out, as they do to quantiles of a noisy histogram.

With few units there is one heap, which says where most values are. With many, further heaps say how
long the tails are. Nothing here reads rows: all of it follows from a noisy histogram. All places
are parts of the width of the typed bounds: 0 is the lower bound and 1 the upper one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpframe.arrays import Floats, Integers
from dpframe.release.auto.size_histograms import normal_below, normal_value

_MOST = 6  # heaps of one histogram
# Log-likelihood by which a heap is better than noise at any place: noise alone reaches 4 in e^-4 of
# all cases. More is asked of further heaps: one that is noise makes bounds as wide as the typed
# ones, one that is missed is small.
_SURE, _FURTHER = 4.0, 8.0
_SMALLEST = 0.3  # scale of the smallest heaps (bins)
_WIDER = 1.35  # of the next scale
_SKEWED: Floats = np.array([0.35, 0.6, 1.0, 1.7, 2.9])  # the scale above the top over that below it
_OVERLAP = 3.0  # so many of the heaps that are tried look alike
# of the units of heaps within a bin: with more that may be elsewhere, these say nothing of a width
_BESIDE = 0.25
_QUANTILES: Floats = (np.arange(100) + 0.5) / 100  # values that stand for a heap
# ends (scales)
_REACHES: Floats = np.array(
    [1.2, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0, 3.4, 3.8, 4.5, 5.5, 7.0, 9.0]
)
# noise over the sampling error of a variance, below which it hardly matters: √(1 + 1/9) = 1.05
_OF_SAMPLING = 1 / 3


@dataclass(frozen=True)
class Heaps:
    """Heaps of values: the top of each, its scale on either side, and its units."""

    tops: Floats
    below: Floats
    above: Floats
    units: Floats

    @classmethod
    def of(cls, edges: Floats, counts: Floats, scale: float) -> Heaps | None:
        """The heaps that explain a histogram.

        Input:  growing edges of the bins, one more than counts; the scale of the Laplace noise in
                counts
        Output: None where noise may explain all of it; or where only heaps within a bin are seen
                while many units may be elsewhere, as of a column that is mostly zeros
        """
        tried, parts = _tried(edges)
        levels, rest, found = list(_levels(tried, parts, edges)), counts, list[Floats]()
        while len(found) < _MOST:
            best, likely = 0, -np.inf
            for places, blocks, doubt in levels:
                own, seen = (
                    np.add.reduceat(parts[places], blocks, axis=1),
                    np.add.reduceat(rest, blocks),
                )
                units = np.maximum(own @ seen / (own**2).sum(axis=1), 0.0)
                left = np.abs(seen - units[:, None] * own).sum(axis=1)
                better = (np.abs(seen).sum() - left) / (scale * np.sqrt(blocks[1])) - doubt
                at = int(np.argmax(better))
                if better[at] > likely:
                    best, likely, number = places[at], better[at], units[at]
            if likely < (_FURTHER if found else _SURE):
                break
            found.append(np.append(tried[best], number))
            rest = rest - number * parts[best]
        if not found:
            return None
        heaps = cls(*np.array(found).T)
        elsewhere = rest.sum() + scale * np.sqrt(2 * len(rest))
        within_a_bin = (heaps.below + heaps.above).max() < 2 * _SMALLEST * _WIDER * np.diff(
            edges
        ).max()
        if within_a_bin and elsewhere > _BESIDE * heaps.units.sum():
            return None
        return heaps

    @property
    def values(self) -> tuple[Floats, Floats]:
        """Values that stand for the units of all heaps, and the weight of each."""
        below, above = self.below[:, None], self.above[:, None]
        rank = _QUANTILES * (below + above)
        low, high = (
            normal_value(x) for x in (rank / (2 * below), 0.5 + (rank - below) / (2 * above))
        )
        values = self.tops[:, None] + np.where(rank < below, below * low, above * high)
        return values.ravel(), np.repeat(self.units / len(_QUANTILES), len(_QUANTILES))

    def ends(self, noise: float, weight: float) -> tuple[float, float]:
        """Ends from 0 to 1 with the smallest error of a variance, from clipping and noise together.

        Input:  noise: the deviation of a sum of products, for columns from -1 to 1, over what one
                person adds at most; weight: how much more the error from clipping counts than that
                from noise
        Output: the ends reach at least as far as noise is small beside sampling: with more people
                they are further out, and clipping disappears
        Bound:  none is needed. With n people and half-width h, noise is noise·h²/n of a variance,
                and clipping takes away the variance beyond the ends. Sampling moves a variance by
                the deviation of squares over √n
        """
        values, weights = self.values
        values = np.clip(values, 0.0, 1.0)
        people = weights.sum()
        mean = float(weights @ values / people)
        squares = (values - mean) ** 2
        variance = float(weights @ squares / people)
        away = [scales[:, None] * _REACHES for scales in (self.below, self.above)]
        lows = np.unique(np.clip(np.append(self.tops[:, None] - away[0], 0.0), 0.0, 1.0))
        highs = np.unique(np.clip(np.append(self.tops[:, None] + away[1], 1.0), 0.0, 1.0))
        raised = np.maximum(values, lows[:, None])
        errors = np.full((len(lows), len(highs)), np.inf)
        for place, end in enumerate(highs):
            clipped = np.minimum(raised, end)
            means = clipped @ weights / people
            lost = variance - ((clipped - means[:, None]) ** 2 @ weights) / people
            noisy = noise / people * ((end - lows) / 2) ** 2
            errors[:, place] = np.where(lows < end, np.hypot(weight * lost, noisy), np.inf)
        first, last = np.unravel_index(int(np.argmin(errors)), errors.shape)
        sampling = np.sqrt(weights @ (squares - variance) ** 2 / people / people)
        width = 2 * np.sqrt(_OF_SAMPLING * sampling * people / noise) if noise else 1.0
        sides = np.array([weights[at] @ squares[at] for at in (values < mean, values >= mean)])
        parts = np.sqrt(sides) / max(np.sqrt(sides).sum(), 1e-300)
        start, end = (
            min(lows[first], mean - width * parts[0]),
            max(highs[last], mean + width * parts[1]),
        )
        return max(float(start), 0.0), min(float(end), 1.0)


def _tried(edges: Floats) -> tuple[Floats, Floats]:
    """The heaps that are tried, as rows of top and both scales; and their parts in bins."""
    bins, low, high = len(edges) - 1, edges[0], edges[-1]
    width, heaps = (high - low) / bins, []
    scale = _SMALLEST
    while scale < bins / 2:
        tops = (
            np.arange(0.5, bins, 1.0)
            if scale < 0.5
            else np.arange(0.0, bins + 1e-9, max(1.0, scale / 2))
        )
        for ratio in _SKEWED if scale > 1 else [1.0]:
            sides = 2 * scale / (1 + ratio) * np.array([1.0, ratio])
            heaps.append(
                np.column_stack(
                    [low + width * tops, *(np.full(len(tops), width * side) for side in sides)]
                )
            )
        scale *= _WIDER
    tried = np.concatenate(heaps)
    tops, below, above = tried.T[:, :, None]
    away = edges - tops
    left = 2 * below * normal_below(np.minimum(away, 0.0) / below)
    cumulative = (left + above * (2 * normal_below(np.maximum(away, 0.0) / above) - 1)) / (
        below + above
    )
    parts = np.diff(cumulative, axis=1)
    kept = parts.sum(axis=1) > 1 / 3
    return tried[kept], parts[kept]


def _levels(
    tried: Floats, parts: Floats, edges: Floats
) -> Iterator[tuple[Integers, Integers, Floats]]:
    """Heaps that are looked for in a histogram, the first bin of each block, and their doubt.

    All heaps are looked for in the bins themselves. Those with scales of 2, 4, 8 and more bins are
    also looked for in blocks of so many: values that are whole numbers or rounded leave bins
    between them empty.

    Bound:  of heaps that are tried without a reason, the likeliest is better than noise by the
            logarithm of their number. The sum of m Laplace noises has the variance of one of √m
            times the scale, and smaller tails
    """
    scales = (tried[:, 1] + tried[:, 2]) / 2 * (len(edges) - 1) / (edges[-1] - edges[0])
    _, place, alike = np.unique(
        np.round(np.log(scales), 6), return_inverse=True, return_counts=True
    )
    doubt = np.log(2 * alike[place] * len(alike) / _OVERLAP)
    yield np.arange(len(tried)), np.arange(len(edges) - 1), doubt
    size = 2
    while size < scales.max():
        places = np.flatnonzero((scales >= size) & (scales < 2 * size))
        yield places, np.arange(0, len(edges) - 1, size), doubt[places]
        size *= 2
