"""The mechanisms that choose one of several candidates at random, at a scale in rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpframe.arrays import Array, Booleans, Floats, Integers
from dpframe.noise import (
    exponential_choice,
    permute_and_flip,
    truncated_geometric_keep,
)
from dpframe.release.pricing.mechanisms import Mechanism
from dpframe.theory.formulas.error import choice_error, margin
from dpframe.theory.formulas.loss import (
    Spread,
    as_likely_as_not,
    fewer_rows,
    selection_start,
)
from dpframe.theory.formulas.sensitivity import Sensitivity


@dataclass(frozen=True)
class Chooses(Mechanism):
    """A mechanism that chooses one of several candidates, at a scale in rows.

    `exponential` says that it has the law of the exponential mechanism, and not that of
    permute-and-flip.
    """

    exponential: ClassVar[bool] = False

    @abstractmethod
    def choose(self, scores: Array, rate: Fraction, *copies: Integers) -> Integers:
        """The place of one candidate in each row of scores, of shape (groups,
        candidates); see `permute_and_flip`.
        """

    def rows_fewer(self, candidates: int, alpha: float, unit: float = 1.0) -> float:
        """Rows that the chosen candidate lacks beside the best one, exceeded
        with probability at most alpha.
        """
        return fewer_rows(self.scale * unit, candidates, alpha, exponential=self.exponential)

    def error_among(self, gaps: Floats, distances: Floats, alpha: float, many: Floats) -> float:
        """The distance of the choice from the best candidate; see `choice_error`."""
        return choice_error(gaps, distances, alpha, exponential=self.exponential, many=many)

    def margin(self, number: int, alpha: float) -> float:
        """Error of a choice among `number` candidates, in scales;
        see `quantile_interval.margin`.
        """
        return margin(number, alpha, exponential=self.exponential)


@dataclass(frozen=True)
class PermuteAndFlip(Chooses):
    """Permute-and-flip: the least error among pure mechanisms of its ε (McKenna,
    Sheldon 2020, arXiv:2010.12603).
    """

    label = law = "permute_and_flip"

    def choose(self, scores: Array, rate: Fraction, *copies: Integers) -> Integers:
        return permute_and_flip(scores, rate, *copies)


@dataclass(frozen=True)
class Exponential(Chooses):
    """The exponential mechanism, whose losses add up by squares (McSherry, Talwar 2007)."""

    label = law = "exponential"
    exponential = True

    def length(self, bound: Sensitivity) -> float:
        return float(bound.l2)

    def choose(self, scores: Array, rate: Fraction, *copies: Integers) -> Integers:
        return exponential_choice(scores, rate, *copies)


@dataclass(frozen=True)
class TruncatedGeometric(Mechanism):
    """The optimal rule for keys found in the data (Desfontaines et al. 2020, arXiv:2006.03684)."""

    label = law = "truncated_geometric"

    def rule(self, delta: Fraction, spread: Spread) -> tuple[int, Fraction | None]:
        start = selection_start(delta, spread.groups)
        return as_likely_as_not(self.scale, start), start

    def keep(self, units: Array, start: Fraction) -> Booleans:
        """Keys that are released, from their numbers of units;
        a key of one unit with probability `start`.
        """
        return truncated_geometric_keep(units, 1 / Fraction(self.scale), start)
