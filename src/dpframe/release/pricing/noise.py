"""The noise of a release: the mechanism of each total, and the rule for
keys that are found in the data.

All of this depends on the question and the price alone, never on rows. So one `NoisePlan` serves
`accuracy` before a release, the release itself, and its report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum
from fractions import Fraction
from functools import cached_property

from dpframe.arrays import Floats
from dpframe.budget import Loss
from dpframe.plan import Allotment, ReleasedColumn, Total
from dpframe.release.pricing.choice_mechanisms import Chooses
from dpframe.release.pricing.mechanisms import AddsNoise, Event, Mechanism
from dpframe.theory.formulas.error import log_concave_error, normal_error
from dpframe.theory.formulas.rank_trees import RankTree, rank_tree


class Rule(StrEnum):
    """The rule by which the losses of a plan's mechanisms add up to its cost;
    see the page about certificates.
    """

    EPSILON = "epsilon"
    GAUSSIAN = "gaussian"
    BESIDE = "threshold_beside_noise"
    RHO = "rho"
    MU_SQUARED = "mu_squared"
    DISTRIBUTIONS = "distributions"


class NoiseKind(Enum):
    """The typed kind of noise: one kind, or the one with less noise."""

    AUTO = "auto"
    LAPLACE = "laplace"
    GAUSSIAN = "gaussian"
    ELLIPTIC = "elliptic"
    K_NORM = "k-norm"

    def allows(self, kind: NoiseKind) -> bool:
        """Whether noise of a kind may be bought: of any kind with AUTO, else of this kind alone."""
        return self in (NoiseKind.AUTO, kind)

    @property
    def pure(self) -> bool:
        """Whether noise of a pure ε may be bought."""
        return self.allows(NoiseKind.LAPLACE) or self is NoiseKind.K_NORM

    @property
    def normal(self) -> bool:
        """Whether normal noise may be bought."""
        return self.allows(NoiseKind.GAUSSIAN) or self is NoiseKind.ELLIPTIC

    @property
    def joins(self) -> bool:
        """Whether several totals may be one mechanism of Laplace noise, and
        losses be added up as distributions.
        """
        return self is not NoiseKind.K_NORM

    @property
    def shared(self) -> bool:
        """Whether it is typed as noise of which cells share a part."""
        return self in (NoiseKind.ELLIPTIC, NoiseKind.K_NORM)


@dataclass(frozen=True)
class Noise:
    """The mechanism of one total, which adds noise to it or chooses by it.
    The scale is in units of its integer.

    `of_choice` is the μ² of a choice, from the price that bought it.
    """

    allotment: Allotment
    mechanism: Mechanism
    of_choice: Fraction | None = None

    @property
    def total(self) -> Total:
        """The total that it is of."""
        return self.allotment.total

    @property
    def scale(self) -> float:
        """The mechanism's scale, in units of the total's integer."""
        return self.mechanism.scale

    @property
    def label(self) -> str:
        """The mechanism's name, for tables."""
        return self.mechanism.label if self.tree is None else f"{self.mechanism.label}_tree"

    @property
    def tree(self) -> RankTree | None:
        """The tree whose blocks are measured; None for one number.
        The scale is a level's at the whole price.
        """
        total = self.total
        return rank_tree(total.width or 1, normal=self.added.normal) if total.is_tree else None

    @property
    def adds(self) -> bool:
        """Whether noise is added to a number; else a choice is made.
        No noise counts as noise of 0.
        """
        return isinstance(self.mechanism, AddsNoise)

    @property
    def added(self) -> AddsNoise:
        """The mechanism of a number that noise is added to."""
        assert isinstance(self.mechanism, AddsNoise)
        return self.mechanism

    @property
    def choice(self) -> Chooses:
        """The mechanism of a choice."""
        assert isinstance(self.mechanism, Chooses)
        return self.mechanism

    @property
    def exact(self) -> bool:
        """Whether no noise is needed, since no unit can change the total."""
        return self.mechanism.exact

    @property
    def paired(self) -> bool:
        """Whether a sum and a count are measured together."""
        return self.mechanism.paired

    @property
    def step(self) -> float:
        """Largest move of the real noise by rounding (units of the integer)."""
        return self.added.step

    @property
    def deviation(self) -> float:
        """Standard deviation (column unit) of the real noise, before it is rounded to the grid.

        For a tree it is the expected error of a rank (rows).
        """
        tree = self.tree
        return (
            self.mechanism.deviation
            * float(self.total.unit)
            * (1.0 if tree is None else tree.error)
        )

    def deviation_of_sum(self, groups: int) -> float:
        """Standard deviation (column unit) of the noise of all groups added up,
        of which these may share a part.
        """
        apart = self.mechanism.apart
        return self.deviation * math.sqrt(groups * (apart + (1 - apart) * groups))

    def error(self, alpha: float) -> float:
        """An error (column unit) that the noise exceeds with probability
        at most alpha; NaN for a choice.

        The distance of a chosen rank from a value depends on the data.
        """
        return self.mechanism.error(alpha) * float(self.total.unit)

    @property
    def miss(self) -> float:
        """A measure of the error of a choice (units of the integer), by which
        mechanisms that choose are compared.

        At equal scales permute-and-flip has the smaller error. For most frequent values the
        difference is computed; among the many candidates of a quantile it is negligible.
        """
        return self.choice.rows_fewer(len(self.total.values), 0.05) or self.scale

    @property
    def rho(self) -> Fraction:
        """The cost of this total's noise in ρ. Errors: UnsupportedOperation if that is unknown."""
        return self.mechanism.rho(self.total.sensitivity)

    @property
    def mu_squared(self) -> Fraction | None:
        """The μ² of this total's noise or choice in Gaussian privacy; None if that is unknown."""
        return self.of_choice or self.mechanism.mu_squared(self.total.sensitivity)

    @property
    def event(self) -> Event:
        """The mechanism in the words of Google's dp-accounting."""
        return self.mechanism.event(self.total.sensitivity)


@dataclass(frozen=True, eq=False)
class Fitted:
    """The noise of numbers that were fitted to others (column unit):
    of each number, or the same for all.

    `deviation` is that of a weighted sum of real noises, which are all normal, or Laplace noises
    too; rounding has `moved` it by at most so much.
    """

    deviation: float | Floats
    moved: float | Floats
    normal: bool = True

    def error(self, alpha: float) -> float | Floats:
        """An error that is exceeded with probability at most alpha, for each number."""
        return (normal_error if self.normal else log_concave_error)(
            1.0, alpha
        ) * self.deviation + self.moved


@dataclass(frozen=True)
class NoisePlan:
    """The noise of every total of a question, the rule for keys found in the
    data, and the price of it all.

    A key found in the data is released if its noisy number of units is at least `threshold`. If
    `start` is not None, the optimal rule decides on the number of units itself: it keeps a key of
    one unit with probability `start`, and a key of `threshold` units with probability of about one
    half.

    `mu_squared` is the μ² of all noises and choices together in Gaussian privacy, where that is
    known: they are independent, or chosen one after another, so their μ² add up. `rule` says how
    losses add up to the cost.

    With `least` above 0, a key whose number is `least` or smaller is never released: see
    `pricing.keys.least_number`. Both numbers are in units of the integer that decides.
    """

    noises: tuple[Noise, ...]
    threshold: int | None
    decided_by: Allotment | None
    cost: Loss
    shape: tuple[int, int] | None = None  # of a crosstab whose margins are measured
    start: Fraction | None = None
    least: int = 0
    mu_squared: Fraction | None = None
    rule: Rule = Rule.EPSILON

    # For the "cell", "row", "column" and "total" of a marginal, or the "cell" of a level, where
    # tables were fitted.
    fitted: Mapping[str, Fitted] = field(default_factory=dict)

    @property
    def reconciled(self) -> bool:
        """Whether margins have noise of their own.
        Cells and margins are then fitted to each other.
        """
        return bool(self.fitted) or any(noise.total.merged for noise in self.noises)

    @property
    def fitted_tables(self) -> str:
        """The kind of tables that were fitted to each other:
        marginals have margins, levels have none.
        """
        return "marginals" if "row" in self.fitted else "levels"

    @property
    def collected(self) -> NoisePlan | None:
        """The noise of the row of suppressed groups, as a plan for that
        row; None if there is no such row.
        """
        alone = [noise for noise in self.noises if noise.total.collects]
        if not alone:
            return None
        noises = [
            replace(n, allotment=replace(n.allotment, total=replace(n.total, collects=False)))
            for n in alone
        ]
        return replace(self, noises=tuple(noises))

    def of(self, total: Total) -> Noise:
        """The noise of a total."""
        return self._of_totals[total.key]

    @cached_property
    def _of_totals(self) -> Mapping[tuple[object, ...], Noise]:
        return {noise.total.key: noise for noise in reversed(self.noises)}

    def apart(self, output: ReleasedColumn) -> float:
        """Variance of the difference of two groups' noises in a released column,
        over that of independent ones.
        """
        return 1.0 if self.fitted or not output.single else self.of(output.total).mechanism.apart

    @property
    def events(self) -> list[Event]:
        """One event of dp-accounting for each total; a pair has one, on its
        sum; else an unsupported event.
        """
        return [noise.event for noise in self.noises]
