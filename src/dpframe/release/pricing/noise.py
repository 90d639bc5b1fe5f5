"""The noise of a release: the mechanism of each total, and the rule for keys that are found in the data.

Everything here depends on the question and the price alone, never on rows, so one `NoisePlan` serves `accuracy` before
a release, the release itself, and its report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpframe.budget import Loss
from dpframe.plan import Allotment, Total
from dpframe.release.pricing.mechanisms import AddsNoise, Chooses, Mechanism, NoNoise, PairedLaplace

__all__ = ["Noise", "NoisePlan"]


@dataclass(frozen=True)
class Noise:
    """The mechanism of one total, which adds noise to it or chooses by it. The scale is in units of its integer."""

    allotment: Allotment
    mechanism: Mechanism

    @property
    def scale(self) -> float:
        """The mechanism's scale, in units of the total's integer."""
        return self.mechanism.scale

    @property
    def label(self) -> str:
        """The mechanism's name, for tables."""
        return self.mechanism.label

    @property
    def adds(self) -> bool:
        """Whether noise is added to a number, rather than a choice made. No noise counts as noise of 0."""
        return isinstance(self.mechanism, AddsNoise)

    @property
    def exact(self) -> bool:
        """Whether no noise is needed, since no unit can change the total."""
        return isinstance(self.mechanism, NoNoise)

    @property
    def paired(self) -> bool:
        """Whether a sum and a count are measured together."""
        return isinstance(self.mechanism, PairedLaplace)

    @property
    def step(self) -> float:
        """How far rounding moves the real noise, at most (units of the integer)."""
        assert isinstance(self.mechanism, AddsNoise)
        return self.mechanism.step

    @property
    def deviation(self) -> float:
        """Standard deviation (column unit) of the real noise, before it is rounded to the grid."""
        return self.mechanism.deviation * float(self.allotment.total.unit)

    def error(self, alpha: float) -> float:
        """An error (column unit) that the noise exceeds with probability at most alpha; NaN for a choice.

        How far a chosen rank is from a value depends on the data.
        """
        return self.mechanism.error(alpha) * float(self.allotment.total.unit)

    @property
    def miss(self) -> float:
        """How far a choice is off (units of the integer), by which two mechanisms that choose are compared.

        At the same scale permute-and-flip is off by less: for most frequent values it is known by how much, and among
        the many candidates of a quantile it is hardly any.
        """
        assert isinstance(self.mechanism, Chooses)
        return self.mechanism.rows_fewer(len(self.allotment.total.values), 0.05) or self.scale

    @property
    def rho(self) -> Fraction:
        """What the noise of this total costs in ρ. Errors: UnsupportedOperation where that is unknown."""
        return self.mechanism.rho(self.allotment.total.sensitivity)

    @property
    def event(self) -> dict[str, Any]:
        """The mechanism in the words of Google's dp-accounting."""
        return self.mechanism.event(self.allotment.total.sensitivity)


@dataclass(frozen=True)
class NoisePlan:
    """The noise of every total of a question, the rule for keys found in the data, and the price of it all.

    Such keys are released when a noisy number of units is at least `threshold`; or, where `start` is not None, by the
    optimal rule on the number of units itself, which keeps a key of one unit with probability `start` and is as likely
    to keep as not at `threshold` units.
    """

    noises: tuple[Noise, ...]
    threshold: int | None
    decided_by: Allotment | None
    cost: Loss
    shape: tuple[int, int] | None = None  # of a crosstab whose margins are measured
    start: Fraction | None = None

    # Of a marginal's "cell", "row", "column" and "total": standard deviation, and what rounding adds at most.
    parts: Mapping[str, tuple[float, float]] | None = None

    @property
    def reconciled(self) -> bool:
        """Whether margins have noise of their own, so that cells and margins are fitted to each other."""
        return self.parts is not None or any(noise.allotment.total.merged for noise in self.noises)

    @property
    def collected(self) -> NoisePlan | None:
        """The noise of the row of suppressed groups, in place of that of a group; None where there is no such row."""
        alone = [noise for noise in self.noises if noise.allotment.total.collects]
        if not alone:
            return None
        noises = [
            replace(n, allotment=replace(n.allotment, total=replace(n.allotment.total, collects=False))) for n in alone
        ]
        return replace(self, noises=tuple(noises))

    def of(self, total: Total) -> Noise:
        """The noise of a total."""
        return next(noise for noise in self.noises if noise.allotment.total.key == total.key)

    @property
    def events(self) -> list[dict[str, Any]]:
        """One event of dp-accounting for each total, a pair's on its sum; unsupported where it has no name there."""
        return [noise.event for noise in self.noises]
