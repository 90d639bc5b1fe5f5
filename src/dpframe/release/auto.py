"""Limits chosen privately, inside the release: the largest gain in accuracy there is.

A limit that is too low throws rows away, one that is too high costs noise. The best one balances the two, and depends
on how many rows people have, which is learnt from histograms in which each unit counts once: their noise is tiny beside
that of the totals. The choice is then post-processing of these noisy histograms, and the totals are a second release
under the limits chosen: sequential composition of two adaptively chosen parts.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe import engine
from dpframe.budget import Loss
from dpframe.engine import EDGES
from dpframe.errors import UnsupportedOperation
from dpframe.noise import discrete_laplace
from dpframe.plan.ask import Ask
from dpframe.plan.columns import Limits
from dpframe.release.calibrate import NoisePlan
from dpframe.release.pricing import Price, noise_plan, read_price
from dpframe.theory.maps import calibration

__all__ = ["check_auto", "choose_limits", "chosen_limits", "split_price"]

Floats = NDArray[np.float64]
# The quantiles of units that stand for all of them, finer where few units have most of the rows, and their weights.
_AT: Floats = np.concatenate([np.linspace(0.0025, 0.9475, 190), 1 - np.geomspace(0.05, 1e-6, 150)])
_UNEVEN = 1.3  # root mean square over mean, for groups of ordinary unevenness
_SLOPES: Floats = np.concatenate([[0.0], np.geomspace(0.03, 8, 30)])
_BENDS: Floats = np.concatenate([[0.0], np.geomspace(1e-3, 2, 24)])
_WEIGHTS: Floats = np.diff(np.concatenate([[0.0], (_AT[1:] + _AT[:-1]) / 2, [1.0]]))


def check_auto(ask: Ask, terms: str, epsilon: object, delta: object) -> Loss:
    """What an ask with `dp.Auto` costs, whatever limits it will choose. Errors: UnsupportedOperation, InvalidPrice."""
    if terms != "epsilon" or epsilon is None:
        raise UnsupportedOperation("dp.Auto() is paid in ε from a budget that counts ε and δ: release(epsilon=...).")
    price = read_price(epsilon, delta)
    return Loss.charged(price.epsilon, price.delta)


def chosen_limits(limits: Limits) -> dict[str, int]:
    """Limits as they are kept with a stored release."""
    return {name: value for name, value in vars(limits).items() if isinstance(value, int)}


def split_price(ask: Ask, price: Price) -> tuple[Price, Price]:
    """The part of a price that chooses the limits, and the rest, which pays for the answer."""
    assert ask.auto is not None
    first = price.epsilon * ask.auto.share
    return Price(first, Fraction(0)), replace(price, epsilon=price.epsilon - first)


def choose_limits(ask: Ask, price: Price, noise: str) -> Limits:
    """Read how many rows units have, with noise, and choose the limits with the smallest expected error.

    Input:  an ask with `dp.Auto`; the whole price; noise as in `release`
    Output: Limits; it never fails on data
    Bound:  each unit is in one bucket of each histogram used: its l1 is 1 (2 under replace), discrete Laplace noise of
            scale l1 / ε costs ε, and the histograms' parts of the price add up
    Source: Amin, Kulesza, Muñoz, Vassilvitskii 2019, "Bounding user contributions", for the balance of bias and noise
    """
    first, rest = split_price(ask, price)
    parts = _parts(ask, rest, noise)
    moved = 2 if ask.table.relation == "replace" else 1
    scales = {name: calibration.laplace_scale(moved, first.epsilon * part) for name, part in parts.items()}
    raw = engine.profile(ask)
    noisy = {name: _noisy(getattr(raw, name), scale) for name, scale in scales.items()}
    del raw
    sizes = {name: _sizes(counts, scales[name]) for name, counts in noisy.items()}
    units = float(max(noisy["rows"].sum(), 1))
    return _best(ask, rest, noise, sizes, units)


def _parts(ask: Ask, rest: Price, noise: str) -> dict[str, Fraction]:
    """The histograms that can matter, and their parts of the price.

    Rows always; groups and rows per group where l0, linf or l2 count, which is less often what decides.
    """
    grouped = bool(ask.by) and ask.cells != 1
    if grouped and (ask.private_keys or (rest.delta > 0 and noise != "laplace")):
        return {"rows": Fraction(7, 10), "groups": Fraction(3, 20), "rows_per_group": Fraction(3, 20)}
    return {"rows": Fraction(1)}


def _noisy(counts: NDArray[np.int64], scale: float) -> Floats:
    return (counts + discrete_laplace(scale, len(counts))).astype(np.float64)


def _sizes(counts: Floats, scale: float) -> Floats:
    """Sizes of units at the quantiles `_AT`, from a noisy histogram.

    Few units have the most rows, and their counts drown in the noise; they matter all the same. Buckets that stand out
    (noise alone does so less than once in 10,000 histograms) are taken as they are. Beyond the last of them stands a
    curve fitted to every bucket from the fullest on. Inside a bucket, sizes are spread evenly on a log scale.
    """
    clear = np.flatnonzero(counts > 13 * scale)
    if not len(clear):
        return np.ones(len(_AT))
    mode, last = int(np.argmax(counts)), int(clear[-1])
    level = np.maximum(counts, 0.0)
    level[last + 1 :] = _falling(counts[mode:], scale)[last + 1 - mode :]
    level[np.cumsum(level[::-1])[::-1] < 0.3] = 0.0  # less than a third of a unit is nobody
    share = np.concatenate([[0.0], np.cumsum(level) / level.sum()])
    ends = np.concatenate([[0.0], np.log2(EDGES)])
    known = np.flatnonzero(np.diff(share, prepend=-1.0) > 0)  # where the share rises, so that it can be inverted
    known = np.union1d(known, np.maximum(known - 1, 0))
    return np.asarray(np.ceil(2.0 ** np.interp(_AT, share[known] + 1e-12 * known, ends[known])))


def _falling(counts: Floats, scale: float) -> Floats:
    """A curve A·exp(-a·j - b·j²) near the counts.

    Of those that fit as well as noise lets one tell, it is the one whose units have the fewest rows, so that noise in
    far buckets does not put anybody there.
    """
    j = np.arange(len(counts))
    shapes = np.exp(-(_SLOPES[:, None, None] * j + _BENDS[None, :, None] * j**2)).reshape(-1, len(counts))[1:]
    heights = np.maximum(shapes @ counts / (shapes**2).sum(axis=1), 0.0)
    curves = heights[:, None] * shapes
    misses = ((curves - counts) ** 2).sum(axis=1)
    fitting = np.flatnonzero(misses <= misses.min() + 2 * scale**2)
    rows = curves[fitting] @ 2.0**j
    return np.asarray(curves[fitting[int(np.argmin(rows))]])


# The expected error


def _best(ask: Ask, rest: Price, noise: str, sizes: dict[str, Floats], units: float) -> Limits:
    """The candidate limits with the smallest expected error."""
    rows = sizes["rows"]
    groups = np.minimum(sizes.get("groups", rows), rows)
    peak = np.minimum(np.maximum(sizes.get("rows_per_group", rows), rows / groups), rows)
    cells = float(ask.cells if ask.cells is not None else max(groups.max(), 1.0))
    unit_noise = _UnitNoise(ask, rest, noise)
    best: tuple[float, Limits] | None = None
    for limits in _candidates(ask, sizes):
        kept = _kept(limits, rows, groups, peak)
        error = _error(ask.with_limits(limits), unit_noise, rows @ _WEIGHTS * units, kept @ _WEIGHTS * units, cells)
        if best is None or error < best[0]:
            best = (error, limits)
    assert best is not None
    return best[1]


def _candidates(ask: Ask, sizes: dict[str, Floats]) -> list[Limits]:
    """Limits a factor of 1.26 apart (1.6 where there are three), up to the largest sizes there seem to be."""
    per_octave = 3.0 if "groups" not in sizes else 1.5

    def steps(name: str) -> list[int]:
        largest = float(sizes[name].max())
        powers = np.arange(math.floor(per_octave * math.log2(largest)) + 1) / per_octave
        return sorted({round(2.0**power) for power in powers} | {int(largest)})

    if "groups" not in sizes:
        return [Limits(max_rows=k) for k in steps("rows")]
    widths = steps("groups") if ask.private_keys else [0]
    return [
        Limits(total, width or total, height)
        for total in steps("rows")
        for width in widths
        for height in steps("rows_per_group")
        if height <= total and width <= total
    ]


def _kept(limits: Limits, rows: Floats, groups: Floats, peak: Floats) -> Floats:
    """Rows that count, of units with these sizes; their groups fall off from the peak as a power that fits the mean."""
    most, width, height = limits.max_rows, limits.max_groups, limits.max_rows_per_group
    share = np.minimum(1.0, (width or math.inf) / groups)
    part = np.ones_like(rows)
    if height is not None:
        power = np.maximum(peak * groups / rows - 1, 1e-9)
        cut = np.exp(np.log(np.minimum(height / peak, 1.0)) / power)
        level = height * (1 - cut) + peak * cut ** (power + 1) / (power + 1)
        part = np.where(peak <= height, 1.0, np.minimum(level / (rows / groups), 1.0))
    return np.minimum(rows * share * part, math.inf if most is None else most)


class _UnitNoise:
    """Standard deviations for given sensitivities at a price, from one calibration: noise is proportional to them."""

    def __init__(self, ask: Ask, rest: Price, noise: str) -> None:
        self.offered = {}
        for family in ("laplace", "gaussian"):
            if noise in ("auto", family) and (family == "laplace" or rest.delta > 0):
                self.offered[family] = self._factors(noise_plan(ask, rest, family), family)

    @staticmethod
    def _factors(plan: NoisePlan, family: str) -> list[float]:
        factors = []
        for drawn in plan.drawn:
            bound = drawn.paid.measure.sensitivity
            size = bound.l2 if family == "gaussian" and not drawn.paid.measure.chosen else bound.l1
            factors.append(drawn.scale / float(size) if size else 0.0)
        return factors

    def deviations(self, ask: Ask) -> list[list[float]]:
        """For each family, the standard deviation of each measure relative to its largest row value."""
        made = []
        for family, factors in self.offered.items():
            sizes = []
            for factor, paid in zip(factors, ask.paid, strict=True):
                bound, measure = paid.measure.sensitivity, paid.measure
                reach = float(measure.grid.magnitude or 1) * 2**measure.fraction
                size = bound.l2 if family == "gaussian" and not measure.chosen else bound.l1
                spread = 1.0 if family == "gaussian" else math.sqrt(2)
                sizes.append(spread * factor * float(size) / reach)
            made.append(sizes)
        return made


def _error(ask: Ask, unit_noise: _UnitNoise, rows: Any, kept: Any, cells: float) -> float:
    """Expected error of the asked columns, in rows a group: the geometric mean over columns, of the better family.

    A count or a sum misses the rows that do not count, rows - kept, spread (unevenly) over the groups; the noise adds
    to it. In a
    mean, a variance or a quantile what is missing cancels, and noise matters relative to the rows that do count.
    """
    bias = _UNEVEN * (rows - kept) / cells
    scores = []
    for deviations in unit_noise.deviations(ask):
        at = {paid.measure.key: d for paid, d in zip(ask.paid, deviations, strict=True)}
        logs = []
        for output in ask.outputs:
            spread = max(at[measure.key] for _, measure in output.measures)
            if output.formula in ("count", "sum"):
                missed = 0.0 if output.measures[0][1].total in ("units", "unit_sum") else bias
                logs.append(math.log(math.hypot(missed, spread) + 1e-9))
            else:
                logs.append(math.log(spread * rows / max(kept, 1e-9) + 1e-9))
        scores.append(math.exp(math.fsum(logs) / len(logs)))
    return min(scores)
