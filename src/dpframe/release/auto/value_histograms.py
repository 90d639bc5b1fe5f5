"""Posteriors from two noisy histograms of values: bins, and the number of units in each, in several cases.

The first histogram has a bin for each sign and power of two, for every column, and tells the scale of the values. The
second histogram divides powers of two into equal numbers of bins. Where both count the same units, they are reconciled
by least squares. Then they are read as curves, from zero outward.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import Floats
from dpframe.engine import EXPONENTS
from dpframe.release.auto.model import MODEL
from dpframe.release.auto.posterior import draw_curves, nobody_there

__all__ = ["Scales", "find_scales", "most_between", "read_values"]


_WIDE = len(EXPONENTS)
_POWERS: Floats = np.ldexp(1.0, np.arange(EXPONENTS[0], EXPONENTS[-1] + 2))
_DRAWN = 128  # curves of the first histogram
_CASES = 64  # of the second
_MOST, _BINS = 64, 64  # bins of a side; of one power of two
_RATES: Floats = np.arange(1, 100) / 100  # tried in Chernoff's bound, which holds for each


@dataclass(frozen=True)
class Scales:
    """Growing edges of bins for the second histogram, and the first one.

    `nobody` holds the probabilities that no unit has a negative value, and that no unit has a positive one. If no power
    of two is seen on either side, the edges are 0 and 1.
    """

    edges: Floats
    counts: Floats
    nobody: tuple[float, float]
    seen: bool
    whole: bool


def find_scales(counts: Floats, scale: float, *, whole: bool) -> Scales:
    """Edges of bins over the powers of two in which values probably are.

    Input:  counts: noisy, from the most negative bin to the most positive, zero in the middle; scale: of their Laplace
            noise (units); whole: whether values are whole numbers
    """
    least = -EXPONENTS[0] if whole else 0  # the first power of two that there can be
    sides = [counts[:_WIDE][::-1][least:], counts[_WIDE + 1 :][least:]]
    nobody = [nobody_there(side, scale) for side in sides]
    down, up = (
        _bin_edges(side, scale, _POWERS[least:], 1 - empty) if empty < MODEL.empty_side else np.zeros(0)
        for side, empty in zip(sides, nobody, strict=True)
    )
    both = len(up) > 0 and len(down) > 0
    zero = [0.0] if both or (len(up) + len(down) and counts[_WIDE] > MODEL.clear_bin * scale) else []
    # A bin contains its lower edge. Negative edges are shifted so that a bin contains the end nearer to zero, as in the
    # first histogram.
    down = np.floor(-down) + 1 if whole else np.nextafter(-down, 0)
    edges = np.unique(np.concatenate([down, zero, np.ceil(up) if whole else up]))
    ends = edges if len(edges) else np.array([0.0, 1.0])
    return Scales(ends, counts, (nobody[0], nobody[1]), len(edges) > 0, whole)


def _bin_edges(counts: Floats, scale: float, powers: Floats, there: float) -> Floats:
    """Edges of bins over the powers of two in which units probably are, and one more power on either side."""
    curves = draw_curves(counts, scale, _DRAWN, begin=1 / len(counts))
    places = np.flatnonzero((curves > 0).mean(axis=0) * there > MODEL.power_seen)
    if not len(places):
        return np.zeros(0)
    first, last = max(places[0] - 1, 0), min(places[-1] + 2, len(counts))
    curve = curves.mean(axis=0)[first:last]
    units, cumulative = float(curve.sum()), np.cumsum(curve)
    least, most = MODEL.bins_tail * units, (1 - MODEL.bins_tail) * units
    middle = np.count_nonzero((cumulative > least) & (cumulative - curve < most))
    parts = max(int(min(units / (MODEL.units_in_bin * scale * max(int(middle), 1)), _MOST / len(curve), _BINS)), 1)
    return np.append((powers[first:last, None] * (1 + np.arange(parts) / parts)).ravel(), powers[last])


def read_values(counts: Floats, scale: float, scales: Scales) -> Floats:
    """Units in each bin (cases by bins), in equally likely cases. The first bin is below all edges, the last above.

    Input:  counts: noisy, of the bins between `scales.edges`; scale: of the Laplace noise of both histograms (units)
    """
    if not scales.seen:
        return np.maximum(counts, 0.0)[None]
    counts = _reconciliation(counts, scales)
    zero = int(np.searchsorted(scales.edges, 0.0, side="right"))  # the bin that has it
    sides = [np.arange(zero - 1, -1, -1), np.arange(zero + 1, len(counts))]
    nobody = [
        before * nobody_there(counts[side], scale) if len(side) else 1.0
        for side, before in zip(sides, scales.nobody, strict=True)
    ]
    there = [
        len(x) > 0 and (empty < MODEL.sure_side or empty == min(nobody)) for x, empty in zip(sides, nobody, strict=True)
    ]
    apart = all(there) or counts[zero] > MODEL.clear_bin * scale  # zero is no part of a curve
    cases = np.zeros((_CASES, len(counts)))
    cases[:, zero] = max(counts[zero], 0.0) if apart else 0.0
    for side in (side for side, somebody in zip(sides, there, strict=True) if somebody):
        bins = side if apart else np.append(zero, side)
        cases[:, bins] = draw_curves(counts[bins], scale, _CASES, begin=1 / len(bins), jump=MODEL.values_jump)
    if apart:  # what is on one side says nothing of the other
        cases[:, :zero] = cases[np.random.default_rng(1).permutation(_CASES), :zero]
    return cases


def most_between(counts: Floats, scale: float) -> bool:
    """Whether the second histogram significantly has more units between its edges than beyond them.

    If so, the median of the values lies between the edges. If the table is empty, or noise hides where most units are,
    nothing can be said.

    Input:  as in `read_values`: the first bin is below all edges, the last above
    Output: true with a probability of at most 1% where at most half of the units are between the edges. It follows from
            the noisy counts and the edges, which follow from the first noisy histogram, so it is post-processing and
            has no price
    Bound:  with at most half between the edges, k bins next to one another have no more units than the two beyond. Then
            their sum, less these two, is at most the sum of k + 2 independent Laplace noises, which is above t scales
            with a probability of at most exp(-s·t) / (1 - s²)^(k + 2) for any s in (0, 1). There are fewer than
            bins · (1 + log2(bins)) runs of 1, 2, 4, … bins, and each may be above its t once in 100 times so many
    Source: Chernoff's bound with the moment generating function of Laplace noise, and Boole's inequality
    """
    inner, beyond = counts[1:-1], counts[0] + counts[-1]
    lengths = 2 ** np.arange(int(np.log2(len(inner))) + 1)
    runs = len(inner) * len(lengths)
    cumulative = np.concatenate([[0.0], np.cumsum(inner)])
    for length in lengths.tolist():
        most = float((cumulative[length:] - cumulative[:-length]).max() - beyond) / scale
        nats = -_RATES * most - (length + 2) * np.log1p(-(_RATES**2))
        if nats.min() <= math.log(MODEL.false_alarm / runs):
            return True
    return False


def _reconciliation(counts: Floats, scales: Scales) -> Floats:
    """The second histogram, made more precise by the counts of the first in each power of two.

    Source: least squares; a number that is measured once by itself and once as the sum of k parts, with equal noise,
            leaves k + 1 equal parts of the difference, of which each of the k takes one
    """
    last = scales.edges[1:] - 1 if scales.whole else np.nextafter(scales.edges[1:], -np.inf)
    first, last = _numbers(scales.edges[:-1]), _numbers(last)
    result = counts.copy()
    for i in np.unique(first[first == last]):
        parts = 1 + np.flatnonzero((first == i) & (last == i))
        result[parts] += (scales.counts[i] - counts[parts].sum()) / (len(parts) + 1)
    return result


def _numbers(values: Floats) -> NDArray[np.int64]:
    """The bins of the first histogram that values are in."""
    power = np.clip(np.frexp(values)[1] - 1, EXPONENTS[0], EXPONENTS[-1]) - EXPONENTS[0]
    return np.where(values == 0, _WIDE, _WIDE + np.sign(values) * (power + 1)).astype(np.int64)
