"""Posteriors from noisy histograms of sizes: how many units are at each
node, and how sizes of groups vary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from dpframe.arrays import Floats
from dpframe.release.auto.model import MODEL
from dpframe.release.auto.posterior import draw_curves, left_open

_DRAWN = 192  # curves
_CASES = 48  # that stand for them
# of groups there may be, four to an octave
_NUMBERS: Floats = np.unique(np.rint(2 ** (np.arange(65) / 4)))
_UNEVEN = (0.05, 0.4, 0.8, 1.2, 1.6, 2.0)  # deviations of the logarithm of their sizes
_KINDS = 64  # of groups, where there are more
_LEVEL = 0.1  # between levels of a bin, in their logarithm
_NORMAL: Floats = np.linspace(-9, 9, 721)
_BELOW: Floats = np.array([NormalDist().cdf(float(x)) for x in _NORMAL])


@dataclass(frozen=True)
class SizePosterior:
    """The number of units at each node, in several cases with their
    probabilities; and the scale of the noise.
    """

    masses: Floats  # cases by nodes
    odds: Floats
    scale: float = 0.0

    @property
    def units(self) -> float:
        """Number of units."""
        return float(max(self.odds @ self.masses.sum(axis=1), 1.0))

    @property
    def left_open(self) -> Floats:
        """Variance of the number of units within each case, since noise leaves it open."""
        return np.asarray(left_open(self.masses, self.scale).sum(axis=1))

    @property
    def unsure(self) -> float:
        """The relative error of that number: half the distance
        between its quantiles at 16% and 84%.
        """
        units = self.masses.sum(axis=1)
        order = np.argsort(units, kind="stable")
        low, high = np.interp((0.16, 0.84), np.cumsum(self.odds[order]), units[order])
        return float(high - low) / (2 * self.units)


@dataclass(frozen=True)
class Groups:
    """Sizes of groups (any unit), by kinds, and the number of groups of each
    kind; in several cases or in one.
    """

    sizes: Floats  # cases by kinds
    each: Floats

    @property
    def number(self) -> Floats:
        """Number of groups in each case."""
        return np.asarray(self.each.sum(axis=1))

    def shares(self, even: Floats | float = 0.0) -> Floats:
        """The share of each group in the total: by its size (even = 0), equal for all
        (1), or between, in each case.
        """
        mixture = np.maximum(self.sizes, 1e-12) ** (1 - np.reshape(even, (-1, 1)))
        return np.asarray(mixture / (mixture * self.each).sum(axis=1, keepdims=True))

    def mean(self, values: Floats) -> Floats:
        """The mean over groups, in each case, of values of their kinds."""
        return np.asarray((values * self.each).sum(axis=-1) / self.number)


def read_spread(
    counts: Floats, scale: float, nodes: Floats, once: float = MODEL.curve_end
) -> SizePosterior:
    """Cases that fit a noisy histogram over growing nodes, in order from few rows to many.

    Input:  scale: of its Laplace noise (units); once: how likely nobody is beyond the first node
    """
    curves = draw_curves(counts, scale, _DRAWN, again=MODEL.curve_again, once=once)
    curves = curves[np.argsort(curves @ nodes, kind="stable")]
    largest = nodes[np.where(curves > 0, np.arange(len(nodes)), 0).max(axis=1)]
    weights = (
        np.clip(curves.sum(axis=1) / (MODEL.sure_units * scale), 1e-3, 1.0) ** 2
        / largest**MODEL.seldom_large
    )
    case = np.minimum(
        (np.cumsum(weights) - weights / 2) / weights.sum() * _CASES, _CASES - 1
    ).astype(int)
    cases = [case == i for i in np.unique(case)]
    odds = np.array([weights[i].sum() for i in cases])
    masses = np.array([weights[i] @ curves[i] for i in cases]) / odds[:, None]
    return SizePosterior(masses, odds / odds.sum(), scale)


def quantiles(masses: Floats, nodes: Floats, at: Floats) -> Floats:
    """The nodes at which parts `at` of the units are reached."""
    parts = np.cumsum(masses) / max(float(masses.sum()), 1e-300)
    return nodes[np.minimum(np.searchsorted(parts, at), len(nodes) - 1)]


def _kinds(visible: Floats, others: Floats, units: float) -> list[Floats]:
    """Sizes of groups in kinds, from the largest on:
    visible ones, and others that share what units are left.
    """
    # these share bins
    rest = np.maximum(others / max(others.sum(), 1e-9) * (units - visible.sum()), 1.0)
    return np.array_split(np.sort(np.concatenate([visible, rest]))[::-1], _KINDS)


def read_groups(counts: Floats, scale: float, units: float, least: float, cases: int) -> Groups:
    """Cases of group sizes that fit a noisy histogram of hashed keys, drawn by their probabilities.

    Input:  counts: units in each bin, each unit spread over its groups; scale: of their Laplace
            noise (units); units: how many there are in all, one or more; least: how many groups
            there are, at least
    Output: `cases` cases. Large groups are about as measured. The number of other groups is a guess
            that fits the nonempty bins and the number of units. Equal counts give equal cases

    Sizes of groups are modelled as lognormal. First their number and unevenness are drawn, then
    each bin: empty, or of some size. The prior probability of a number of groups is proportional to
    1 / number. A bin with several groups has their sum, whose mean and variance are those of a
    compound Poisson law.
    """
    draw = np.random.default_rng(1)  # not noise: the cases follow from the counts
    bins = len(counts)
    rungs = math.ceil(math.log(16 * max(units, scale) / scale) / _LEVEL)
    edges = np.concatenate([[0.0], scale / 8 * np.exp(_LEVEL * np.arange(rungs + 1))])
    # bins by levels
    likelihood = np.diff(laplace_below(edges - counts[:, None], scale), axis=1) / np.diff(edges)
    empty = np.exp(-np.abs(counts) / scale) / (2 * scale)
    first = int(np.searchsorted(_NUMBERS[:-1], least))
    numbers = [float(number) for number in _NUMBERS[first:] if number <= max(2 * least, units)]
    laws = [
        (number, uneven)
        for number in numbers
        for uneven in (_UNEVEN if number > 1 else _UNEVEN[:1])
    ]
    full = np.array([1 - (1 - 1 / bins) ** number for number, _ in laws])
    parts = np.array(
        [
            f * _lognormal(edges, units / (bins * f), law, bins)
            for f, law in zip(full, laws, strict=True)
        ]
    )
    chances = np.log(np.maximum(likelihood @ parts.T + (1 - full) * empty[:, None], 1e-300)).sum(
        axis=0
    )
    chances -= np.log([number for number, _ in laws])
    cumulative = np.cumsum(np.exp(chances - chances.max()))
    sizes, each = np.zeros((cases, _KINDS)), np.zeros((cases, _KINDS))
    for case, at in enumerate(
        np.searchsorted(cumulative / cumulative[-1], (draw.permutation(cases) + 0.5) / cases)
    ):
        number, uneven = laws[at]
        likely = np.cumsum(
            np.column_stack([(1 - full[at]) * empty, likelihood * parts[at]]), axis=1
        )
        level = (likely < draw.random((bins, 1)) * likely[:, -1:]).sum(axis=1)
        visible = np.clip(counts, edges[level - 1], edges[level])[level > 0]
        others = draw.standard_normal(max(int(number) - len(visible), int(len(visible) == 0)))
        kinds = _kinds(visible, np.exp(uneven * others), units)
        each[case] = [len(kind) for kind in kinds]
        sizes[case] = [kind.mean() if len(kind) else 0.0 for kind in kinds]
    return Groups(sizes, each)


def normal_below(x: Floats) -> Floats:
    """Probability that a standard normal number is below x."""
    return np.asarray(np.interp(x, _NORMAL, _BELOW))


def normal_value(chance: Floats) -> Floats:
    """The number that a standard normal number is below with this chance."""
    return np.asarray(np.interp(chance, _BELOW, _NORMAL))


def laplace_below(x: Floats, scale: float = 1.0) -> Floats:
    """Probability that Laplace noise is below x."""
    tail = np.exp(-np.abs(x) / scale) / 2
    return np.where(x < 0, tail, 1 - tail)


def _lognormal(edges: Floats, mean: float, law: tuple[float, float], bins: int) -> Floats:
    """Probability that a nonempty bin lies between growing edges, for a number
    of groups and their unevenness.
    """
    number, uneven = law
    full = 1 - (1 - 1 / bins) ** number
    spread = math.sqrt(math.log(max(full * (math.exp(uneven**2) * bins / number + 1), 1.001)))
    middle = math.log(mean) - spread**2 / 2
    return np.diff(normal_below((np.log(np.maximum(edges, 1e-300)) - middle) / spread))
