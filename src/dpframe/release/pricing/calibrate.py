"""The noise of each measure for its part of a price, and the rule for keys found in the data.

Everything here depends on the ask and the price alone, never on rows, so the same numbers serve `accuracy` before a
release, the release itself, and its report.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from dpframe.budget import Loss
from dpframe.errors import DeltaRequired
from dpframe.noise import keep_probability
from dpframe.plan import Ask, Measure, Paid, check_choice
from dpframe.theory.formulas.error import Source, estimators
from dpframe.theory.formulas.loss import (
    as_likely_as_not,
    calibration,
    count_scale,
    count_scale_rho,
    fewer_rows,
    gaussian_mu,
    rank_scale,
    rank_scale_rho,
    rest_scale,
    selection_scale,
    selection_start,
    threshold_beside_noise,
)
from dpframe.theory.formulas.sensitivity import pair_scale, paired_error, rounding

__all__ = [
    "Drawn",
    "Family",
    "NoisePlan",
    "Part",
    "assembled",
    "check_noise",
    "choice_for_rho",
    "choice_of",
    "gaussians_of",
    "joined",
    "laplace_of",
    "laplaces_of",
    "moved_measures",
    "parted",
    "pieces",
    "thresholded",
    "ways",
    "worth",
]

Family = Literal[
    "none",
    "laplace",
    "discrete_laplace",
    "gaussian",
    "paired_laplace",
    "permute_and_flip",
    "exponential",
    "truncated_geometric",
]
Part = tuple[Paid, Fraction]  # a measure, and its part of a price
_SIZES = list(itertools.pairwise([*sorted({round(1.02**i) for i in range(1500)}), math.inf]))  # units of a key


@dataclass(frozen=True)
class Drawn:
    """The noise of one measure: its family and its scale in units of the measure's integer.

    "paired_laplace": that of a sum or of the count beside it, measured as a pair. On each of them it is the sum of two
    independent Laplace noises of this scale, the same two for both; `weight` is that of the count, 1 for the sum.
    """

    paid: Paid
    family: Family
    scale: float
    weight: int = 1

    @property
    def added(self) -> bool:
        """Whether noise (or, where no unit can change it, nothing) is added to a number, rather than a choice made."""
        return self.family not in ("permute_and_flip", "exponential", "truncated_geometric")

    @property
    def deviation(self) -> float:
        """Standard deviation (column unit), of the real noise before rounding to the grid."""
        spread = {"none": 0.0, "gaussian": 1.0, "paired_laplace": 2.0}.get(self.family, math.sqrt(2))
        return spread * self.scale * float(self.paid.measure.unit)

    @property
    def rounding(self) -> float:
        """How far rounding moves the real noise, at most (units of the integer); an integer law is what it is."""
        if self.family == "paired_laplace":
            return rounding(self.weight)
        return 0.0 if self.family in ("none", "discrete_laplace") else 0.5

    def error(self, alpha: float) -> float:
        """An error (column unit) that the noise exceeds with probability at most alpha."""
        if self.family == "none":
            return 0.0
        if self.family == "permute_and_flip" or self.family == "exponential" or self.family == "truncated_geometric":
            return math.nan  # how far a rank is from a value depends on the data
        if self.family == "paired_laplace":
            return float(paired_error(self.scale, alpha, weight=self.weight) * self.paid.measure.unit)
        return float(calibration.noise_error(self.family, self.scale, alpha) * self.paid.measure.unit)

    @property
    def off(self) -> float:
        """How far a choice is off: what those by different mechanisms are compared by (units of the integer).

        At the same scale permute-and-flip is off by less: for most frequent values it is known by how much, and among
        the many candidates of a quantile it is hardly any.
        """
        measure, exponential = self.paid.measure, self.family == "exponential"
        return fewer_rows(self.scale, len(measure.values), 0.05, exponential=exponential) or self.scale


@dataclass(frozen=True)
class NoisePlan:
    """The noise of every measure of an ask, the rule for keys found in the data, and the price of it all.

    Such keys are released when a noisy number of units is at least `threshold`; or, where `start` is not None, by the
    optimal rule on the number of units itself, which keeps a key of one unit with probability `start` and is as likely
    to keep as not at `threshold` units.
    """

    drawn: tuple[Drawn, ...]
    threshold: int | None
    decided_by: Paid | None
    cost: Loss
    shape: tuple[int, int] | None = None  # of a crosstab whose margins are measured
    start: Fraction | None = None

    # Of a marginal's "cell", "row", "column" and "total": standard deviation, and what rounding adds at most.
    known: Mapping[str, tuple[float, float]] | None = None

    @property
    def reconciled(self) -> bool:
        """Whether margins have noise of their own, so that cells and margins share what each says."""
        return self.known is not None or any(d.paid.measure.merged for d in self.drawn)

    @property
    def collected(self) -> NoisePlan | None:
        """The noise of the row of suppressed groups, in place of that of a group; None where there is no such row."""
        alone = [d for d in self.drawn if d.paid.measure.collects]
        if not alone:
            return None
        drawn = [replace(d, paid=replace(d.paid, measure=replace(d.paid.measure, collects=False))) for d in alone]
        return replace(self, drawn=tuple(drawn))

    def of(self, measure: Measure) -> Drawn:
        """The noise of a measure."""
        return next(d for d in self.drawn if d.paid.measure.key == measure.key)


def check_noise(noise: object) -> None:
    """Errors: InvalidArgument, with the names there are."""
    check_choice(noise, ("auto", "laplace", "gaussian"), "noise")


def moved_measures(ask: Ask) -> list[Paid]:
    """The measures that one unit can change: the others take no share and no noise."""
    return [p for p in ask.paid if p.measure.sensitivity.l0]


def _selectable(paid: Paid) -> bool:
    """Whether the optimal rule can decide: no number of units is released, and one unit moves each by at most one."""
    return paid.hidden and paid.measure.sensitivity.exact_linf == 1


def parted(parts: Sequence[Part], *, selects: bool) -> tuple[list[Part], list[Part]]:
    """What noise is added to, and what is chosen; the optimal rule for keys is a choice, where it `selects`."""
    kinds: tuple[list[Part], list[Part]] = ([], [])
    for part in parts:
        kinds[part[0].measure.chosen or (selects and _selectable(part[0]))].append(part)
    return kinds


def pieces(paid: Paid) -> int:
    """Of how many choices of equal price a choice is made; see `choices_rho`."""
    return paid.measure.sensitivity.l0 if paid.hidden else paid.measure.choices


def ways(parts: Sequence[Part], noise: str, *, normal: bool) -> list[tuple[bool, bool]]:
    """What may be tried: whether noise is Gaussian (if it can be), and whether the optimal rule finds the keys.

    Among pure rules it is the best, but Gaussian noise adds up more slowly over many groups of one unit.
    """
    tried = []
    for selects in (True, False) if any(_selectable(p) for p, _ in parts) else (True,):
        added, _ = parted(parts, selects=selects)
        if selects and (noise != "gaussian" or not added):
            tried.append((False, True))
        if added and noise != "laplace" and normal:
            tried.append((True, selects))
    return tried


def assembled(ask: Ask, drawn: Sequence[Drawn], delta: Fraction, cost: Loss) -> NoisePlan:
    """A noise plan from the noise of the measures that one unit can change.

    Input:  delta: that of the keys alone
    Errors: DeltaRequired for keys found in the data with δ = 0
    """
    if ask.private_keys and delta == 0:
        raise DeltaRequired(
            f"The keys of {', '.join(map(repr, ask.by))} are found in the data, so a rare key is released with some "
            "small probability: release(..., delta=1e-6). Or list them: group_by(..., keys=[...])."
        )
    still = [Drawn(p, "none", 0.0) for p in ask.paid if not p.measure.sensitivity.l0]
    beside = [_beside(p, drawn) for p in ask.paid if p.measure.collects and p.measure.sensitivity.l0]
    ordered = tuple(sorted([*drawn, *still, *beside], key=lambda d: ask.paid.index(d.paid)))
    decided_by = next((p for p in ask.paid if ask.threshold and p.measure.key == ask.threshold.key), None)
    threshold, start = _rule(decided_by, ordered, delta) if decided_by else (None, None)
    return NoisePlan(ordered, threshold, decided_by, cost, ask.shape, start)


def thresholded(
    ask: Ask,
    weighted: Sequence[tuple[Paid, Fraction]],
    choices: Sequence[Drawn],
    price: tuple[Fraction, Fraction, Fraction],
) -> NoisePlan | None:
    """A plan of Gaussian noise whose keys are found by a threshold on one of its numbers; None where there is none.

    Input:  weighted: the measures with noise, as in `gaussians_of`; choices beside them; price: ε in all, the part
            of it that the noise takes, and δ
    Bound:  the noise is that of 19/20 of δ, and T as low as `threshold_beside_noise` allows: in at most j groups a
            measure's square is at most j·linf², and at most l2². The total of suppressed groups would show those of one
            unit alone, so beside it there is no such plan
    """
    epsilon, together, delta = price
    decided_by = next((p for p, _ in weighted if ask.threshold and p.measure.key == ask.threshold.key), None)
    if decided_by is None or any(p.measure.collects for p in ask.paid):
        return None
    drawn = gaussians_of(weighted, together, delta * Fraction(19, 20))
    bounds = [d.paid.measure.sensitivity for d in drawn]
    scales = [d.scale for d in drawn]

    def mu(groups: int) -> float:
        return gaussian_mu([min(b.l2_squared, groups * b.exact_linf**2) for b in bounds], scales)

    scale = next(d.scale for d in drawn if d.paid is decided_by)
    bound = decided_by.measure.sensitivity
    found = threshold_beside_noise(delta, together, max(b.l0 for b in bounds), scale, int(bound.exact_linf), mu)
    if found is None:
        return None
    return replace(assembled(ask, [*drawn, *choices], delta, Loss.charged(epsilon, delta)), threshold=found)


def worth(plan: NoisePlan) -> float:
    """How noisy a plan is, as a logarithm: what "less noise" means for several columns.

    The product over released columns of the standard deviation of what noise is added to, or of how far a choice is off
    (`Drawn.off`). A column that is made of several measures is one: each counts as much, together they weigh 1.
    For a number that decides which keys are released it is T + s²/T in place of its s, with T from `_fewest_units`:
    about the mean square error over keys of sizes as n^-2, of which those that are missing are off by all of their
    size. It is T where the number itself is not released.
    """
    seen = [d for d in plan.drawn if d.added and d.family != "none" and d.paid is not plan.decided_by]
    chosen = [d for d in plan.drawn if d.paid.measure.chosen and d.family != "none"]
    choices = math.fsum(float(d.paid.columns) * math.log(d.off) for d in chosen)
    if plan.decided_by is None:
        return _published(seen, plan.shape) + choices
    keys, measure = _fewest_units(plan), plan.decided_by.measure
    unit = float(measure.unit * measure.sensitivity.exact_linf)
    noisy = 0.0 if plan.decided_by.hidden else plan.of(measure).deviation / unit * math.exp(-keys)
    return _published(seen, plan.shape) + choices + keys + math.log1p(noisy**2)


def _fewest_units(plan: NoisePlan) -> float:
    """How many units a key needs to be released, about, as a logarithm: minus that of Σ π(n)·n^-2.

    So many keys are released where those of n units are as n^-2, which is a broad law of sizes; π(n) is the probability
    that a key of n units is released. In steps of about 2%: the n from k on have about 1/(k - 1/2) of the sum. For a
    noisy number the chance is that of the real noise.
    """
    assert plan.decided_by is not None
    assert plan.threshold is not None
    noise, step = plan.of(plan.decided_by.measure), float(plan.decided_by.measure.sensitivity.exact_linf)
    half = plan.threshold - 0.5

    def kept(size: float) -> float:
        if plan.start is not None:
            return keep_probability(int(size), 1 / Fraction(noise.scale), plan.start)[1]
        reach = (half - size * step) / noise.scale
        if noise.family == "gaussian":
            return math.erfc(reach / math.sqrt(2)) / 2
        return math.exp(-reach) / 2 if reach > 0 else 1 - math.exp(reach) / 2

    top = 4 * max(plan.threshold / step, 1)  # beyond, all are kept
    terms = ((kept(k) if k < top else 1.0) * (1 / (k - 0.5) - 1 / (after - 0.5)) for k, after in _SIZES)
    return -math.log(max(math.fsum(terms), 1e-300))


def _published(drawn: Sequence[Drawn], shape: tuple[int, int] | None) -> float:
    """The same of noises: for a crosstab with measured margins, of the cells and margins that it publishes."""
    if shape is None:
        return math.fsum(float(d.paid.columns) * math.log(d.deviation) for d in drawn)
    measured: dict[Source, float] = {d.paid.measure.merged or "cells": d.deviation**2 for d in drawn}
    return math.fsum(map(math.log, estimators(*shape, measured).variances(measured)))


def laplace_of(paid: Paid, epsilon: Fraction) -> Drawn:
    """Laplace noise of ε on one measure: discrete on the unit grid, where that is the least noise there is."""
    scale = calibration.laplace_scale(paid.measure.sensitivity.exact_l1, epsilon)
    return Drawn(paid, "discrete_laplace" if paid.measure.unit == 1 else "laplace", scale)


def joined(parts: Sequence[Part]) -> list[Part]:
    """Parts of a price for Laplace noise: a sum that is measured as a pair has that of the count beside it too."""
    given = {id(p): part for p, part in parts}
    beside = {id(p.beside): id(p) for p, _ in parts if p.beside is not None and id(p.beside) in given}
    extra = {of: given[count] for count, of in beside.items()}
    return [(p, part + extra.get(id(p), 0)) for p, part in parts if id(p) not in beside]


def laplaces_of(parts: Sequence[Part], one_of: Callable[[Paid, Fraction], Drawn]) -> list[Drawn]:
    """Laplace noise on several measures, each for its part of ε, by `one_of`; see `pair_scale` for those that pair."""
    drawn = []
    for one in (one_of(paid, part) for paid, part in joined(parts)):
        if one.paid.beside is None:
            drawn.append(one)
            continue
        of_sum, of_count = pair_scale(one.scale, one.paid.weight)
        drawn.append(Drawn(one.paid, "paired_laplace", of_sum))
        drawn.append(Drawn(one.paid.beside, "paired_laplace", of_count, one.paid.weight))
    return drawn


def choice_for_rho(paid: Paid, rho: Fraction) -> Drawn:
    """A choice of ρ by the exponential mechanism, see `rank_scale_rho` and `count_scale_rho`."""
    measure = paid.measure
    if measure.rank is None:
        scale = count_scale_rho(measure.sensitivity, measure.rounds, rho)
    else:
        scale = rank_scale_rho(measure.rank, measure.sensitivity, rho / measure.choices)
    return Drawn(paid, "exponential", calibration.laplace_scale(scale, 1))


def choice_of(paid: Paid, epsilon: Fraction) -> Drawn:
    """A choice of ε: by permute-and-flip, see `rank_scale` and `count_scale`; of keys, see `selection_scale`."""
    measure = paid.measure
    if paid.hidden:
        return Drawn(paid, "truncated_geometric", selection_scale(measure.sensitivity.l0, epsilon))
    if measure.rank is None:
        scale = count_scale(measure.sensitivity, measure.rounds, epsilon)
    else:
        scale = rank_scale(measure.rank, measure.sensitivity, epsilon / measure.choices)
    return Drawn(paid, "permute_and_flip", calibration.laplace_scale(scale, 1))


def gaussians_of(weighted: Sequence[tuple[Paid, Fraction]], epsilon: Fraction, delta: Fraction) -> list[Drawn]:
    """Gaussian noise on several measures, one mechanism of (ε, δ) together; each with its weight in μ²."""
    lengths = [p.measure.sensitivity.l2_squared for p, _ in weighted]
    scales = calibration.gaussian_scales(lengths, [weight for _, weight in weighted], epsilon, delta)
    return [Drawn(paid, "gaussian", scale) for (paid, _), scale in zip(weighted, scales, strict=True)]


def _beside(paid: Paid, drawn: Sequence[Drawn]) -> Drawn:
    """The noise of the total of suppressed groups, from that of the groups; see `rest_scale`."""
    cells = next(d for d in drawn if d.paid.measure.key == replace(paid.measure, collects=False).key)
    scale = rest_scale(cells.paid.measure.sensitivity, cells.scale, normal=cells.family == "gaussian")
    return replace(cells, paid=paid, scale=scale)


def _rule(decided_by: Paid, drawn: Sequence[Drawn], delta: Fraction) -> tuple[int, Fraction | None]:
    """The smallest T such that keeping a group when its noisy count is at least T costs at most delta; or the rule.

    One unit alone in a group puts at most linf there, and it has at most l0 such groups.
    """
    noise = next(d for d in drawn if d.paid is decided_by)
    bound = decided_by.measure.sensitivity
    if noise.family == "truncated_geometric":
        start = selection_start(delta, bound.l0)
        return as_likely_as_not(noise.scale, start), start
    assert noise.family in ("laplace", "discrete_laplace", "gaussian")  # a count that one unit always moves
    return calibration.threshold(delta, bound.l0, noise.family, noise.scale, int(bound.exact_linf)), None
