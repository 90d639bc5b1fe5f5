"""The noise of each measure for its part of a price, and the threshold for keys found in the data.

Everything here depends on the ask and the price alone, never on rows, so the same numbers serve `accuracy` before a
release, the release itself, and its report.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dpframe.budget.losses import Loss
from dpframe.errors import DeltaRequired, InvalidArgument
from dpframe.plan.ask import Ask, Paid
from dpframe.plan.measures import Measure
from dpframe.theory.maps import calibration
from dpframe.theory.maps.margins import Source, estimators
from dpframe.theory.maps.ranks import rank_scale

__all__ = [
    "Drawn",
    "Family",
    "NoisePlan",
    "assembled",
    "check_noise",
    "choice_of",
    "gaussians_of",
    "laplace_of",
    "moved_measures",
    "published",
    "spread",
]

Family = Literal["none", "laplace", "discrete_laplace", "gaussian", "permute_and_flip"]


@dataclass(frozen=True)
class Drawn:
    """The noise of one measure: its family and its scale in units of the measure's integer."""

    paid: Paid
    family: Family
    scale: float

    @property
    def deviation(self) -> float:
        """Standard deviation (column unit), of the real noise before rounding to the grid."""
        spread = {"none": 0.0, "gaussian": 1.0}.get(self.family, math.sqrt(2))
        return spread * self.scale * float(self.paid.measure.unit)

    def error(self, alpha: float) -> float:
        """An error (column unit) that the noise exceeds with probability at most alpha."""
        if self.family == "none":
            return 0.0
        if self.family == "permute_and_flip":
            return math.nan  # how far a rank is from a value depends on the data
        return float(calibration.noise_error(self.family, self.scale, alpha) * self.paid.measure.unit)


@dataclass(frozen=True)
class NoisePlan:
    """The noise of every measure of an ask, the threshold for keys found in the data, and the price of it all."""

    drawn: tuple[Drawn, ...]
    threshold: int | None
    decided_by: Paid | None
    cost: Loss
    shape: tuple[int, int] | None = None  # of a crosstab whose margins are measured

    @property
    def reconciled(self) -> bool:
        """Whether margins have noise of their own, so that cells and margins share what each says."""
        return any(d.paid.measure.merged for d in self.drawn)

    def of(self, measure: Measure) -> Drawn:
        """The noise of a measure."""
        return next(d for d in self.drawn if d.paid.measure.key == measure.key)


def check_noise(noise: object) -> None:
    """Errors: InvalidArgument, with the names there are."""
    if noise not in ("auto", "laplace", "gaussian"):
        raise InvalidArgument(f"noise={noise!r}: choose 'auto', 'laplace' or 'gaussian'.")


def moved_measures(ask: Ask) -> list[Paid]:
    """The measures that one unit can change: the others take no share and no noise."""
    return [p for p in ask.paid if p.measure.sensitivity.l0]


def assembled(ask: Ask, drawn: Sequence[Drawn], delta: Fraction, cost: Loss) -> NoisePlan:
    """A noise plan from the noise of the measures that one unit can change.

    Input:  delta: the threshold's alone
    Errors: DeltaRequired for keys found in the data with δ = 0
    """
    if ask.private_keys and delta == 0:
        raise DeltaRequired(
            f"The keys of {', '.join(map(repr, ask.by))} are found in the data, so a rare key is released with some "
            "small probability: release(..., delta=1e-6). Or list them: group_by(..., keys=[...])."
        )
    still = [Drawn(p, "none", 0.0) for p in ask.paid if not p.measure.sensitivity.l0]
    ordered = tuple(sorted([*drawn, *still], key=lambda d: ask.paid.index(d.paid)))
    decided_by = next((p for p in ask.paid if ask.threshold and p.measure.key == ask.threshold.key), None)
    threshold = _threshold(decided_by, ordered, delta) if decided_by else None
    return NoisePlan(ordered, threshold, decided_by, cost, ask.shape)


def spread(drawn: Sequence[Drawn]) -> float:
    """The product of the standard deviations, as a logarithm: what "less noise" means for several columns."""
    return math.fsum(math.log(d.deviation) for d in drawn)


def published(drawn: Sequence[Drawn], shape: tuple[int, int] | None) -> float:
    """The same, for a crosstab with measured margins of the cells and margins that it publishes."""
    if shape is None:
        return spread(drawn)
    measured: dict[Source, float] = {d.paid.measure.merged or "cells": d.deviation**2 for d in drawn}
    return math.fsum(map(math.log, estimators(*shape, measured).variances(measured)))


def laplace_of(paid: Paid, epsilon: Fraction) -> Drawn:
    """Laplace noise of ε on one measure: discrete on the unit grid, where that is the least noise there is."""
    scale = calibration.laplace_scale(paid.measure.sensitivity.exact_l1, epsilon)
    return Drawn(paid, "discrete_laplace" if paid.measure.unit == 1 else "laplace", scale)


def choice_of(paid: Paid, epsilon: Fraction) -> Drawn:
    """A choice by permute-and-flip of ε; see `rank_scale`."""
    measure = paid.measure
    assert measure.rank is not None
    scale = rank_scale(measure.rank, measure.sensitivity, epsilon)
    return Drawn(paid, "permute_and_flip", calibration.laplace_scale(scale, 1))


def gaussians_of(weighted: Sequence[tuple[Paid, Fraction]], epsilon: Fraction, delta: Fraction) -> list[Drawn]:
    """Gaussian noise on several measures, one mechanism of (ε, δ) together; each with its weight in μ²."""
    lengths = [p.measure.sensitivity.l2_squared for p, _ in weighted]
    scales = calibration.gaussian_scales(lengths, [weight for _, weight in weighted], epsilon, delta)
    return [Drawn(paid, "gaussian", scale) for (paid, _), scale in zip(weighted, scales, strict=True)]


def _threshold(decided_by: Paid, drawn: Sequence[Drawn], delta: Fraction) -> int:
    """The smallest T such that keeping a group when its noisy count is at least T costs at most delta.

    One unit alone in a group puts at most linf there, and it has at most l0 such groups.
    """
    noise = next(d for d in drawn if d.paid is decided_by)
    bound = decided_by.measure.sensitivity
    assert noise.family in ("laplace", "discrete_laplace", "gaussian")  # a count that one unit always moves
    return calibration.threshold(delta, bound.l0, noise.family, noise.scale, int(bound.exact_linf))
