"""Tails of values: how many units lie how far from a centre, drawn from the posterior of a law.

Few units have the largest values, and noise drowns their counts; but they decide which bounds are
the best. So a tail is not read bin by bin. Beyond a start, where units are still clearly visible,
the number of units further than t starts from the centre is n · exp(-λ · (t^κ - 1) / κ). This is a
power law at κ = 0, exponential at 1, and about normal at 2; tails of lognormal values are near a
small κ. With a large λ values end abruptly. Or they end at zero, as amounts do.

Beside the law there may be heaps: many units with one value, far out, such as 999 for an answer
that is missing, or amounts that are whole multiples of one amount. No law without gaps has them.
Before the counts are seen, a heap is as likely as a curve of sizes that comes again after a gap
(`MODEL.curve_again`), and a further one is as likely after it. Its place is uniform over the
possible bounds, and so is the logarithm of its units.

Each n, λ and κ of a grid, without a heap and with one at each place, is weighted by the likelihood
of the noisy counts. Cases are drawn by these weights, and the units in each case by Poisson's law.
The grid is a prior that only choices rest on; no bound rests on it.

Source: the law of Weibull 1951, "A statistical distribution function of wide applicability", beyond
        a start, and with Pareto's as its limit
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpframe.arrays import Booleans, Floats, Integers
from dpframe.release.auto.model import MODEL

_STEEP, _BENT = (
    grid.ravel()
    for grid in np.meshgrid(
        np.geomspace(0.1, 60, 26), [0, 0.15, 0.3, 0.5, 0.75, 1, 1.5, 2, 3], indexing="ij"
    )
)  # λ and κ
_NUMBERS = 14  # n that are tried, between the least and the most that the counts allow
_MOST_HEAPS = 8  # in one tail
_SURE = 300.0  # most nats by which counts speak for a heap, so that weights are finite


@dataclass(frozen=True)
class Bins:
    """Ends of the bins, their noisy counts, and the scale of the Laplace noise of each (units)."""

    begins: Floats
    ends: Floats
    counts: Floats
    scales: Floats

    def taken(self, places: slice | Integers | Booleans) -> Bins:
        """The bins at some places."""
        return Bins(*(values[places] for values in vars(self).values()))

    def outward(self, centre: float, sign: int) -> Bins:
        """The bins above a centre (sign = 1) or below it (-1), the nearest
        first, by their distance from it.
        """
        near, far = (self.begins, self.ends) if sign > 0 else (self.ends, self.begins)
        side = np.flatnonzero(sign * (near - centre) >= 0)[::sign]
        return Bins(
            sign * (near[side] - centre),
            sign * (far[side] - centre),
            self.counts[side],
            self.scales[side],
        )

    def beyond(self, start: float) -> Bins:
        """The bins that begin at a start or later, save those that are too
        far away or too narrow to matter.
        """
        far, narrow = start * 4.0**MODEL.tail_octaves, start * 2.0**-MODEL.tail_octaves
        at = (self.begins >= start) & (self.begins < far) & (self.ends - self.begins > narrow)
        return self.taken(at)

    def and_also(self, *others: Bins) -> Bins:
        """These bins and others, which may count the same units."""
        fields = zip(*(vars(bins).values() for bins in (self, *others)), strict=True)
        return Bins(*(np.concatenate(field) for field in fields))


def tail_start(bins: Bins) -> tuple[int, tuple[float, float]]:
    """The bin from which on the law holds, and the least and the most units that
    are probably in it and beyond.

    It is the last with clearly more than `MODEL.tail_scales` scales of units beyond its beginning,
    so that the units of a tail tell its law.

    Input:  bins outward, the last without end; not the bin of the centre
    """
    beyond = np.cumsum(bins.counts[::-1])[::-1]
    error = np.sqrt(2 * np.cumsum(bins.scales[::-1] ** 2)[::-1])
    at = int(np.flatnonzero(beyond >= MODEL.tail_scales * bins.scales + error).max(initial=0))
    scale = float(bins.scales[at])
    return at, (
        max(beyond[at] - 3 * error[at], scale / 4),
        max(beyond[at] + 2 * error[at], 4 * scale),
    )


def draw_tail(
    bins: Bins,
    zero: float,
    units: tuple[float, float],
    distances: Floats,
    dense: float,
    draw: np.random.Generator,
) -> Floats:
    """The units between growing distances, and beyond the last one, in `MODEL.value_cases` cases.

    Input:  bins: those beyond the start; zero: the distance of zero, or infinity where it is on the
            other side; units: the least and the most that there may be; distances: the first is the
            start; dense: units for each distance just before the start. Laws by which values are
            far denser after it are unlikely: in one wide bin with nothing beyond, a steep law would
            have all units at its start; draw: not noise
    """
    start, size = float(distances[0]), len(_STEEP)
    law = _survival(bins.begins / start, _STEEP, _BENT) - _survival(
        bins.ends / start, _STEEP, _BENT
    )
    laws = [law, np.where(bins.begins < zero, law, 0.0)] if math.isfinite(zero) else [law]
    numbers = np.geomspace(*units, _NUMBERS)
    # laws by bins
    expected = (np.concatenate(laws)[:, None] * numbers[:, None]).reshape(-1, len(bins.counts))
    denser = np.tile(_STEEP, len(laws))[:, None] * numbers / start > MODEL.tail_denser * dense
    nats = _likelihood(bins, expected).sum(axis=-1) - MODEL.tail_doubt * denser.ravel()
    heaps = _Heaps.of(bins, distances)
    odds = np.column_stack([np.full(len(nats), 1 - MODEL.curve_again), heaps.odds(expected)[0]])
    cumulative = np.cumsum(np.exp(nats - nats.max())[:, None] * odds)
    cases = MODEL.value_cases
    at = np.searchsorted(cumulative, (draw.permutation(cases) + 0.5) / cases * cumulative[-1])
    at, heap = np.divmod(at, odds.shape[1])
    law_at, number = at // _NUMBERS, numbers[at % _NUMBERS]
    there = _survival(
        np.append(distances / start, math.inf), _STEEP[law_at % size], _BENT[law_at % size]
    )
    mean = number[:, None] * -np.diff(there, axis=1)
    mean[np.ix_(law_at >= size, distances >= zero)] = 0.0
    return np.asarray(draw.poisson(mean + heaps.drawn(expected[at], heap, draw)), np.float64)


def _likelihood(bins: Bins, expected: Floats) -> Floats:
    """The logarithm of the likelihood of each bin's count:
    Laplace noise, and Poisson's variance of the units.
    """
    width = np.sqrt(bins.scales**2 + expected / 2)
    return np.asarray(-np.abs(bins.counts - expected) / width - np.log(width))


@dataclass(frozen=True)
class _Heaps:
    """Heaps that there may be between growing distances:
    the one or two bins that hold each place, if there are any.
    """

    bins: Bins
    first: Integers
    last: Integers
    chances: Floats  # beforehand; 0 where no bin holds the place

    @classmethod
    def of(cls, bins: Bins, distances: Floats) -> _Heaps:
        places = np.append((distances[1:] + distances[:-1]) / 2, 2 * distances[-1])[:, None]
        inside = (bins.begins <= places) & (places < bins.ends)
        last = inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
        chances: Floats = np.where(inside.any(axis=1), MODEL.curve_again / len(places), 0.0)
        return cls(bins, inside.argmax(axis=1), last, chances)

    def odds(self, expected: Floats) -> tuple[Floats, Floats]:
        """Odds of a heap at each place, if others are as likely as not,
        and the units that it would have.

        They are its probability beforehand, times the mean likelihood over its sizes, over the
        likelihood without it. The logarithm of a size is uniform beforehand. The size that fits
        best stands for those within the noise of it.

        Input:  expected: units in each bin without it (cases by bins)
        Output: both cases by places
        """
        counts, scales = self.bins.counts, self.bins.scales
        sizes = np.maximum(counts[self.first] - expected[:, self.first], scales[self.first])
        nats = np.zeros(sizes.shape)
        for at, holds in ((self.first, 1), (self.last, self.last != self.first)):
            own = self.bins.taken(at)
            nats += holds * (
                _likelihood(own, expected[:, at] + sizes) - _likelihood(own, expected[:, at])
            )
        near = np.minimum(2 * np.hypot(scales[self.first], np.sqrt(sizes / 2)) / sizes, 1.0)
        near /= max(math.log(max(float(counts.max()), 1.0) / float(scales.min())), 1.0)
        return np.asarray(self.chances * near * np.exp(np.minimum(nats, _SURE))), sizes

    def drawn(self, expected: Floats, first: Integers, draw: np.random.Generator) -> Floats:
        """Units in heaps at each place, in some cases:
        a first heap, and then further ones, as the counts say.

        Input:  expected: units in each bin without heaps, in each case; first: the first heap of
                each, 0 for none
        """
        cases, held = np.zeros((len(expected), len(self.first))), expected.copy()
        at, place = np.flatnonzero(first), first[first > 0] - 1
        for _ in range(_MOST_HEAPS):
            units = self.odds(held[at])[1][np.arange(len(at)), place]
            noisy = units + draw.laplace(
                0.0, np.sqrt(self.bins.scales[self.first[place]] ** 2 + units / 2)
            )
            cases[at, place] += np.maximum(noisy, 0.0)
            held[at, self.first[place]] += units
            apart = self.last[place] != self.first[place]
            held[at[apart], self.last[place][apart]] += units[apart]
            odds = np.column_stack(
                [np.full(len(at), 1 - MODEL.curve_again), self.odds(held[at])[0]]
            )
            cumulative = np.cumsum(odds, axis=1)
            further = (cumulative <= draw.random((len(at), 1)) * cumulative[:, -1:]).sum(axis=1)
            at, place = at[further > 0], further[further > 0] - 1
        return cases


def _survival(times: Floats, steep: Floats, bent: Floats) -> Floats:
    """The part of a tail's units beyond each multiple of its start: laws by multiples."""
    logs, bent = np.log(times), bent[:, None]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        growth = np.where(bent > 0, np.expm1(bent * logs) / np.where(bent > 0, bent, 1.0), logs)
    return np.asarray(np.exp(-steep[:, None] * growth))
