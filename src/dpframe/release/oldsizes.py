"""What a noisy histogram says of those it counted: how many there are at each node, and how sure that is.

Few units have the most rows, and their counts drown in the noise; they matter all the same. So a histogram is read in
two parts. Up to a node that is surely reached, its bins are taken as they are. Beyond stand several curves that fall
off, each as likely as it makes the bins there; one of them is that nobody is beyond.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Spread", "nats", "quantiles", "reached", "read_spread"]

Floats = NDArray[np.float64]

_WINDOWS = (1, 2, 3, 4, 6, 8, 12, 16)  # bins that are looked at together
MORE = 8.0  # how unlikely noise must be before bins next to those that are reached are reached too
PER_BIN = 0.3  # and how much less likely for each bin that they are away
_BEYOND = np.arange(1, 21)
_SLOPES = np.array([0, 0.2, 0.4, 0.7, 1, 1.5, 2, 3, 5, 9])
_BENDS = np.array([0.03, 0.1, 0.3, 1.0])
_HEIGHTS = np.array([0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 1, 1.5])  # relative to the bins before
NOBODY = 0.2  # how likely that is beforehand, relative to all the others together
_CASES = 6  # curves that stand for all


@dataclass(frozen=True)
class Spread:
    """How many units are at each node, in several cases; each case has its probability."""

    masses: Floats  # cases by nodes
    odds: Floats
    seen: int  # nodes up to the last that is surely reached

    @property
    def units(self) -> float:
        """How many units there are."""
        return float(max(self.odds @ self.masses.sum(axis=1), 1.0))


def read_spread(
    counts: Floats,
    scale: float,
    *,
    start: float = 0.0,
    per_bin: float = PER_BIN,
    more: float = MORE,
    nobody: float = NOBODY,
) -> Spread:
    """The cases that a noisy histogram over growing nodes leaves open.

    Input:  scale: of its Laplace noise (units); start, per_bin, more as in `reached`; nobody: how likely it is
            beforehand that nobody is beyond those that are seen, relative to somebody being there
    """
    end = reached(counts, scale, start=start, per_bin=per_bin, more=more)
    if not end:
        return Spread(np.eye(1, len(counts)), np.ones(1), 0)
    known = np.zeros(len(counts))
    known[:end] = _rising(counts[:end])
    curves, odds = _beyond(counts, scale, end, nobody)
    cases = np.zeros((len(curves), len(counts)))
    cases[:, end : end + curves.shape[1]] = curves
    return Spread(cases + known, odds, end)


def reached(counts: Floats, scale: float, *, start: float = 0.0, per_bin: float = PER_BIN, more: float = MORE) -> int:
    """The number of bins up to the last that is surely reached from those where most units are; 0 where none is.

    Input:  start: how unlikely noise must be, in nats, before anybody is seen at all, for each bin `per_bin` more;
            more: the same, for bins next to those that are seen, and the more the further they are: where sizes grow
            with the bins (per_bin) what is far costs most; elsewhere a gap does
    Source: how likely noise is to make the sum of some bins as large is bounded as in Chernoff 1952
    """
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    found = []
    for w in _WINDOWS:
        if w >= len(sums):
            break
        unlikely = nats(sums[w:] - sums[:-w], w, scale) - per_bin * np.arange(w, len(sums))
        found.append((float(unlikely.max()), w + int(np.argmax(unlikely))))
    best, end = max(found)
    if best <= start:
        return 0
    while True:
        steps = [
            e
            for w in _WINDOWS
            for e in range(end + w, min(end + w + 32, len(sums)))
            if nats(sums[e] - sums[e - w], w, scale)
            > more + 2 * PER_BIN * max(0, e - end - 4 if per_bin else e - w - end)
        ]
        if not steps:
            return end
        end = min(steps)


def nats(total: Floats, bins: int, scale: float) -> Floats:
    """How unlikely a sum of so many Laplace draws is to be as large, in nats: max over λ of λS + w·ln(1 - λ²)."""
    ratio = np.maximum(total / (scale * bins), 1e-9)
    best = (np.sqrt(1 + ratio**2) - 1) / ratio
    return np.asarray(bins * (ratio * best + np.log1p(-(best**2))))


def _rising(counts: Floats) -> Floats:
    """Bins without negative ones and much the same sums: halfway between the curves that rise just below and above."""
    sums = np.cumsum(counts)
    least, most = np.minimum.accumulate(sums[::-1])[::-1], np.maximum.accumulate(sums)
    return np.diff(np.maximum((least + most) / 2, 0.0), prepend=0.0)


def _beyond(counts: Floats, scale: float, end: int, nobody: float) -> tuple[Floats, Floats]:
    """Curves over the bins beyond, and how likely each is; few that stand for many."""
    data = counts[end : end + len(_BEYOND)]
    shapes = np.exp(-_SLOPES[:, None, None] * _BEYOND - _BENDS[:, None] * _BEYOND**2).reshape(-1, len(_BEYOND))
    level = max(float(np.mean(counts[max(0, end - 2) : end])), scale / 4)
    curves = (level * _HEIGHTS[:, None, None] * shapes).reshape(-1, len(_BEYOND))[:, : len(data)]
    curves = np.concatenate([curves, np.zeros((1, len(data)))])
    prior = np.ones(len(curves))
    prior[-1] = nobody * len(curves)
    fit = -np.abs(curves - data).sum(axis=1) / scale
    odds = prior * np.exp(fit - fit.max())
    odds /= odds.sum()
    order = np.argsort(curves @ 2.0 ** (np.arange(len(data)) / 2))  # by how many rows they add
    part = np.minimum((np.cumsum(odds[order]) - odds[order] / 2) * _CASES, _CASES - 1).astype(int)
    groups = [order[part == i] for i in range(_CASES)]
    groups = [g for g in groups if len(g) and odds[g].sum() > 1e-9]
    means = [(odds[g] @ curves[g]) / odds[g].sum() for g in groups]
    return np.array(means), np.array([odds[g].sum() for g in groups]) / sum(odds[g].sum() for g in groups)


def quantiles(masses: Floats, nodes: Floats, at: Floats) -> Floats:
    """The nodes at which parts `at` of the units are reached."""
    parts = np.cumsum(masses) / max(float(masses.sum()), 1e-300)
    return nodes[np.minimum(np.searchsorted(parts, at), len(nodes) - 1)]
