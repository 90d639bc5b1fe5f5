"""Values as two noisy histograms describe them: bins, and units in each, in several cases.

The first histogram has a bin for each sign and power of two, for every column, and tells where most
values are. Around them the second histogram has narrow bins; its other bins become wider with the
distance. If the first histogram leaves in doubt where most values are, the second one has a bin for
each sign and power of eight: three octaves then share the noise of one bin. Where most units are,
the second histogram is taken as it is. The tails on either side follow a law that fits both
histograms: see `dpframe.release.auto.tails`. Bins of whole numbers hold at least one: that of
powers of two from -3 to -2 is [-3, -1).
"""

from __future__ import annotations

import math

import numpy as np

from dpframe.arrays import Floats
from dpframe.engine import EXPONENTS
from dpframe.release.answer.postprocess import nonnegative
from dpframe.release.auto.model import MODEL
from dpframe.release.auto.posterior import draw_curves, nobody_there
from dpframe.release.auto.tails import Bins, draw_tail, tail_start
from dpframe.release.estimators import BinnedValues

_WIDE = len(EXPONENTS)
_POWERS: Floats = np.ldexp(1.0, np.arange(EXPONENTS[0], EXPONENTS[-1] + 2))
_BEGINS: Floats = np.concatenate([-_POWERS[:0:-1], [0.0], _POWERS[:-1]])
_ENDS: Floats = np.concatenate([-_POWERS[-2::-1], [0.0], _POWERS[1:]])
_LARGEST = float(8 * _POWERS[-1])  # the last bins have no end
_DRAWN = 64  # curves of the first histogram
_PARTS = 64  # most bins where most values are
_FINE = 4  # possible bounds in a tail, for each doubling of the distance
_SMALL = -9  # smaller powers of two, beside the largest, are left out
_RARE = 0.02  # of the cases: bounds are tried as far as so many have units


def powers_of_two(counts: Floats, scale: float, *, whole: bool) -> Bins:
    """The first histogram without bins that no value fits; the bin of zero is in the middle."""
    kept = np.full(len(counts), fill_value=True)
    if whole:
        kept = np.maximum(np.abs(_BEGINS), np.abs(_ENDS)) > 1
    kept[_WIDE] = True
    shift = whole * (_BEGINS < 0)  # a bin holds its end above, below zero, and not its begin
    return Bins(
        (_BEGINS + shift)[kept],
        (_ENDS + shift)[kept],
        counts[kept],
        np.full(np.count_nonzero(kept), scale),
    )


def powers_of_eight(*, whole: bool) -> Floats:
    """Edges: powers of eight of each sign, between which the bin of zero is in the middle."""
    powers = _POWERS[1::3]
    powers = powers[powers >= 1] if whole else powers
    return np.concatenate([whole - powers[::-1], powers])


def between(edges: Floats, counts: Floats, scale: float) -> Bins:
    """The second histogram: the first bin is below all edges, the last one above."""
    ends = np.concatenate([[-math.inf], edges, [math.inf]])
    return Bins(ends[:-1], ends[1:], counts, np.full(len(counts), scale))


def where_zero_is(bins: Bins) -> bool:
    """Whether zeros are clearly seen in a histogram of powers of two."""
    zero = len(bins.counts) // 2
    return bool(bins.counts[zero] > MODEL.clear_bin * bins.scales[zero])


def most_values(bins: Bins, *, doubt: float) -> tuple[float, float, float] | None:
    """Ends of bins between which about half of the values are or more, and the units there.

    Input:  bins: powers of two or of eight of both signs, with that of zero in the middle; doubt:
            probability of a sign without units below which its units count as seen
    Output: None if no sign has units beyond doubt; the number is in scales of the noise
    """
    zero, scale = len(bins.counts) // 2, float(bins.scales[0])
    sides = [bins.counts[:zero][::-1], bins.counts[zero + 1 :]]
    nobody = [nobody_there(side, scale) for side in sides]
    if min(nobody) >= doubt:
        return None
    down, up = (
        draw_curves(side, scale, _DRAWN, begin=1 / len(side)).mean(axis=0)
        if empty < MODEL.sure_side or empty == min(nobody)
        else np.zeros(len(side))
        for side, empty in zip(sides, nobody, strict=True)
    )
    units = np.concatenate([down[::-1], [0.0], up])
    first, last = np.searchsorted(
        np.cumsum(units), units.sum() * np.array([MODEL.bulk_tail, 1 - MODEL.bulk_tail])
    )
    low, high = float(max(bins.begins[first], -_LARGEST)), float(min(bins.ends[last], _LARGEST))
    if where_zero_is(bins):
        low, high = min(low, 0.0), max(high, 0.0)
    return low, high, float(units[first : last + 1].sum()) / scale


def edges_around(low: float, high: float, scales: float, *, whole: bool) -> Floats:
    """Growing edges: equal parts between two numbers, and distances that double in two bins beyond.

    A range of values begins and ends inside bins of the first histogram, so it fills half of them.
    There are as many equal parts as let no noise look like the units of one, were these spread
    evenly over half of the parts, but with a probability of at most a = `MODEL.false_alarm`. For
    one of m Laplace noises is above ln(m / 2a) scales with a probability of at most a. Fewer parts
    say less of where a range ends: years from 1940 to 2009 are a small part of their octave. Where
    distances doubled in one bin, errors of means and of `std` were 1.05 and 1.02 times as large at
    30,000 units, on 27 columns.

    Input:  scales: units between the numbers, in scales of the noise of these bins
    """
    numbers = np.arange(2, _PARTS + 1)
    apart = numbers / 2 * np.log(numbers / (2 * MODEL.false_alarm)) <= scales
    parts = int(numbers[apart].max(initial=2))
    away = (high - low) / 2 * (2.0 ** (np.arange(1, 2 * MODEL.tail_octaves + 1) / 2) - 1)
    edges = np.concatenate([low - away, np.linspace(low, high, parts + 1), high + away, [0.0]])
    return np.unique(np.rint(edges) if whole else edges)


def near(bins: Bins, low: float, high: float) -> Bins:
    """The powers of eight that are neither tiny nor huge beside these numbers, and that of zero."""
    size, most = np.maximum(np.abs(bins.begins), np.abs(bins.ends)), max(abs(low), abs(high))
    kept = (size > most * 2.0**_SMALL) & (size < most * 2.0 ** (MODEL.tail_octaves + 2))
    below, above = kept & (bins.ends <= 0), kept & (bins.begins > 0)
    kept[len(kept) // 2] = True
    return between(
        np.append(bins.ends[below], bins.begins[above]), bins.counts[kept], float(bins.scales[0])
    )


def in_octaves(bins: Bins, octaves: Bins, low: float, high: float) -> Bins:
    """Powers of eight, of which those between two numbers are divided into powers of two.

    Once powers of eight show where most values are, only a few powers of two are left, and the
    first histogram tells them apart. Both histograms count the same units there: each power of two
    takes an equal part of the difference from the count of its bin, weighted by their precisions.
    """
    parts: list[Bins] = []
    for i in range(len(bins.counts)):
        own = bins.taken(slice(i, i + 1))
        begin, end = float(own.begins[0]), float(own.ends[0])
        at = (octaves.begins >= begin) & (octaves.ends <= end) & (octaves.begins < octaves.ends)
        if low <= begin and end <= high and begin * end >= 0 and at.any():
            counts, square = octaves.counts[at], octaves.scales[at] ** 2
            gain = square / (square.sum() + own.scales**2)
            counts = counts + gain * (own.counts - counts.sum())
            scales = np.sqrt(square * (1 - gain))
            own = Bins(octaves.begins[at], octaves.ends[at], counts, scales)
        parts.append(own)
    return parts[0].and_also(*parts[1:])


def read_values(octaves: Bins, fine: Bins, low: float, high: float, *, whole: bool) -> BinnedValues:
    """Units in each bin, in equally likely cases.

    Input:  octaves: the first histogram; fine: the second; low, high: most values are between them
    """
    draw = np.random.default_rng(1)  # not noise: the cases follow from the counts
    edges, inside = fine.ends[:-1], (fine.begins >= low) & (fine.ends <= high)
    cumulative = np.cumsum(np.where(inside, np.maximum(fine.counts - fine.scales, 0.0), 0.0))
    middle = int(np.clip(np.searchsorted(cumulative, cumulative[-1] / 2), 1, len(edges) - 1))
    centre = float(edges[middle - 1] + edges[middle]) / 2
    tails, ends, places = [], [], []
    for sign, near in ((-1, middle - 1), (1, middle)):
        bins = fine.outward(centre, sign)
        at, units = tail_start(bins)
        places.append(near + sign * at)
        points = _possible_bounds(edges, float(edges[places[-1]]), centre, sign, whole=whole)
        distances = sign * (points - centre)
        # the bins on either side of the start
        before, after = places[-1] + (sign < 0), places[-1] + (sign > 0)
        dense, beyond = (
            _density(fine, at, out, distances[0] / 2)
            for at, out in ((before, -sign), (after, sign))
        )
        if beyond > MODEL.tail_denser * dense:  # a heap
            dense = math.inf
        octaves_beyond = octaves.outward(centre, sign).beyond(distances[0])
        bins = bins.beyond(distances[0]).and_also(octaves_beyond)
        zero = -sign * centre if sign * centre <= 0 else math.inf
        cases = draw_tail(bins, zero, units, distances, dense, draw)
        last = int(np.flatnonzero((cases > 0).mean(axis=0) > _RARE).max(initial=0)) + 1
        last = min(last, len(points) - 1)
        tails.append(np.column_stack([cases[:, :last], cases[:, last:].sum(axis=1)])[:, ::sign])
        ends.append(points[: last + 1][::sign])
    lower, upper = places
    inner = np.tile(nonnegative(fine.counts[None, lower + 1 : upper + 1]), (MODEL.value_cases, 1))
    cases = np.hstack([tails[0], inner, tails[1]])
    return BinnedValues.of(
        np.concatenate([ends[0], edges[lower + 1 : upper], ends[1]]),
        cases,
        float(fine.scales[middle]),
        whole=whole,
    )


def _density(bins: Bins, first: int, step: int, width: float) -> float:
    """The most units for each unit of width in a bin and those next to it, as far as a width."""
    last = first
    while 0 < last < len(bins.counts) - 1 and abs(bins.ends[last] - bins.begins[first]) < width:
        last += step
    at = slice(min(first, last), max(first, last) + 1)
    most = bins.counts[at].sum() + 3 * math.sqrt((bins.scales[at] ** 2).sum())
    return float(most / (bins.ends[at][-1] - bins.begins[at][0]))


def _possible_bounds(
    edges: Floats, start: float, centre: float, sign: int, *, whole: bool
) -> Floats:
    """Numbers outward from the start of a tail, the edges, some in each octave, and zero.

    So each bin is a place where a heap may be, however narrow it is.
    """
    times = 2.0 ** (np.arange(1, 2 * _FINE * MODEL.tail_octaves + 1) / _FINE)
    points = centre + (start - centre) * times
    known = np.append(edges[sign * (edges - start) > 0], 0.0)
    apart = np.abs(points[:, None] - known).min(axis=1) > np.abs(points - centre) / (4 * _FINE)
    points = np.concatenate([np.rint(points[apart]) if whole else points[apart], known])
    return np.append(start, np.unique(points[sign * (points - start) > 0])[::sign])
