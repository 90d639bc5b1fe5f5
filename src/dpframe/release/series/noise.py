"""The noise of a series: what its price buys for each total on each level of blocks, over the whole horizon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

from dpframe.budget import Loss
from dpframe.errors import DeltaRequired, InvalidPrice, UnsupportedOperation
from dpframe.plan import Allotment, Question
from dpframe.plan.steps import exchanged
from dpframe.release.pricing import (
    AddsNoise,
    DiscreteLaplace,
    EpsilonPrice,
    Gaussian,
    Laplace,
    NoiseKind,
    NoNoise,
    Price,
    RhoPrice,
)
from dpframe.release.series.shape import PARTS, SHORTEST_PART, Shape, Shapes, Shares, chosen_shape, mean_square
from dpframe.theory.formulas.loss import calibration, gaussian_epsilon, gaussian_mu
from dpframe.theory.formulas.sensitivity import Relation, Sensitivity, period_totals

__all__ = ["Person", "SeriesNoise", "planned_noise"]

MECHANISMS: Mapping[str, type[AddsNoise]] = {kind.label: kind for kind in (Gaussian, Laplace, DiscreteLaplace, NoNoise)}

# By how much a running total may be less exact than it could be, so that windows of a week are more exact. Of 365
# periods it has 4.9 nights' noise with Gaussian noise, and windows 2.6. With Laplace noise nothing is given away: there
# windows of a week would still have 4.4 for a running total of 8.7, and 5.3 for one of 8.4.
_SLACK = {NoiseKind.GAUSSIAN: 1.115, NoiseKind.LAPLACE: 1.0}


@dataclass(frozen=True)
class Person:
    """What one unit can change: the totals of a period, in how many periods, and the neighbour relation.

    `ones` are the sensitivities of the totals of one period when a unit joins or leaves, `swings` how far two units'
    entries in one total are apart at most, both in units of the total's integer.
    """

    ones: tuple[Sensitivity, ...]
    swings: tuple[Fraction, ...]
    periods: int
    relation: Relation

    @classmethod
    def of(cls, question: Question, periods: int) -> Person:
        """Of the question of one period."""
        joining = replace(
            question, step=exchanged(question.step, lambda source: replace(source, relation="add-remove"))
        )
        ones = tuple(allotment.total.sensitivity for allotment in joining.allotments)
        swings = tuple(_swing(allotment) for allotment in joining.allotments)
        return cls(ones, swings, periods, question.table.relation)

    def moved(self, total: int, size: int, periods: int | None = None) -> Sensitivity:
        """How far a unit moves a total over blocks of at most `size` periods, in all its periods or in so many."""
        number = self.periods if periods is None else periods
        return period_totals(self.ones[total], self.swings[total], periods=number, size=size, relation=self.relation)


def _swing(allotment: Allotment) -> Fraction:
    """How far two units' entries in one total of one period are apart, at most: a unit without rows adds 0."""
    grid, entry = allotment.total.grid, allotment.total.sensitivity.exact_linf
    largest = max(abs(grid.lower), abs(grid.upper))
    return entry * (max(grid.upper, 0) - min(grid.lower, 0)) / largest if largest else Fraction(0)


@dataclass(frozen=True)
class SeriesNoise:
    """The shapes of a series, and the mechanism of each total: by part, level and total."""

    shapes: Shapes
    mechanisms: tuple[tuple[tuple[AddsNoise, ...], ...], ...]

    def to_json(self) -> dict[str, Any]:
        """As it is kept in the ledger."""
        return {
            "shapes": [shape.to_json() for shape in self.shapes.parts],
            "noise": [mechanism.label for mechanism in self.mechanisms[0][0]],
            "scales": [[[one.scale for one in level] for level in part] for part in self.mechanisms],
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> SeriesNoise:
        """As it was kept."""
        kinds = [MECHANISMS[label] for label in said["noise"]]
        made = tuple(
            tuple(tuple(kind(scale) for kind, scale in zip(kinds, level, strict=True)) for level in part)
            for part in said["scales"]
        )
        return cls(Shapes(tuple(Shape.from_json(shape) for shape in said["shapes"])), made)

    @property
    def normal(self) -> bool:
        """Whether the noise is Gaussian."""
        return any(isinstance(one, Gaussian) for one in self.mechanisms[0][0])

    def variance(self, part: int, level: int, total: int) -> float:
        """Variance of the noise of one block (squared units of the total's integer), with what rounding may add."""
        return self.mechanisms[part][level][total].variance

    def error(self, part: int, total: int) -> float:
        """Root mean square error of the running total within a part (units of the total's integer)."""
        shape = self.shapes.parts[part]
        variances = [self.variance(part, level, total) for level in range(len(shape.levels))]
        return math.sqrt(mean_square(shape, variances)) if all(variances) else 0.0

    def again(self, person: Person, blocks: Sequence[tuple[int, int, int]], price: Price) -> Loss:
        """What it costs to measure some blocks once more, beside all that the series costs.

        Input:  blocks: part, level and number of periods of each; the price of the series
        Bound:  a unit has at most as many of its periods in a block as the block has. Laplace: the l1 / scale add up.
                Gaussian: the l2² / σ² do, at the δ of the price
        """
        moved = [
            (person.moved(total, size, min(person.periods, size)), self.mechanisms[part][level][total])
            for part, level, size in blocks
            for total in range(len(person.ones))
        ]
        moved = [(bound, mechanism) for bound, mechanism in moved if bound.l0]
        if not self.normal:
            epsilon = sum((bound.exact_l1 / Fraction(noise.scale) for bound, noise in moved), Fraction(0))
            return Loss.charged(epsilon, Fraction(0))
        squares = [bound.l2_squared / Fraction(noise.scale) ** 2 for bound, noise in moved]
        if isinstance(price, RhoPrice):
            return Loss.charged_rho(sum(squares, Fraction(0)) / 2, Fraction(0))
        mu = gaussian_mu([bound.l2_squared for bound, _ in moved], [noise.scale for _, noise in moved])
        return Loss.charged(Fraction(gaussian_epsilon(price.delta, mu)) if mu else Fraction(0), price.delta)


def planned_noise(question: Question, person: Person, price: Price, horizon: int | None, *, alone: bool) -> SeriesNoise:
    """The shapes and the noise with the least error of the running totals that a price buys.

    Input:  the question of one period; what one unit can change; the price of the whole horizon; horizon (periods),
            None for one without an end; alone: whether only single periods can be measured
    Bound:  on each level a unit moves the blocks by at most `Person.moved`, in all its periods. The levels share the
            price by parts that add up to 1, as several totals do by their shares. Laplace: ε of level and total is
            l1 / scale, and these add up. Gaussian: all blocks of all levels and totals are one mechanism with
            μ² = Σ l2² / σ², in ρ with ρ = Σ l2² / 2σ², which holds when later questions follow from earlier answers.
            A block is measured once
    Source: Dwork, Naor, Pitassi, Rothblum 2010, doi:10.1145/1806689.1806787, and Chan, Shi, Song 2011,
            doi:10.1145/2043621.2043626, for trees of periods; Dong, Roth, Su 2019, arXiv:1905.02383, corollary 2, and
            Bun, Steinke 2016, arXiv:1605.02065, lemma 1.7, for answers that follow one another
    Errors: InvalidPrice, DeltaRequired, UnsupportedOperation
    """
    lengths = [horizon] if horizon is not None else [SHORTEST_PART << part for part in range(PARTS)]
    made = []
    for kind in _kinds(price):
        shapes = [_shape(length, kind, person.periods, alone) for length in lengths]
        mechanisms = tuple(_mechanisms(question, person, price, kind, *shape) for shape in shapes)
        made.append(SeriesNoise(Shapes(tuple(shape for shape, _ in shapes)), mechanisms))
    return min(made, key=lambda noise: _log_error(noise, len(person.ones)))


def _kinds(price: Price) -> list[NoiseKind]:
    """The kinds of noise that a price buys."""
    if isinstance(price, RhoPrice):
        if price.noise is NoiseKind.LAPLACE:
            raise UnsupportedOperation("A series that is paid in ρ has Gaussian noise: leave noise= out.")
        return [NoiseKind.GAUSSIAN]
    if not isinstance(price, EpsilonPrice):
        raise InvalidPrice("This budget counts ρ, and so does the price of a series: budget.series(..., rho=0.01).")
    if price.noise is NoiseKind.GAUSSIAN and not price.delta:
        raise DeltaRequired("Gaussian noise needs a δ above 0: budget.series(..., epsilon=1, delta=1e-6).")
    return price.noises


@cache
def _shape(length: int, kind: NoiseKind, periods: int, alone: bool) -> tuple[Shape, Shares]:
    """The shape of one part of a series, and the parts of the price that its levels have."""
    if alone:
        return Shape.of_degree(length, 2, 1), (Fraction(1),)

    def relative(shape: Shape, shares: Shares) -> list[float]:
        """What the variance of a level's noise is in proportion to."""
        if kind is NoiseKind.GAUSSIAN:
            return [min(periods, size) / float(share) for size, share in zip(shape.sizes, shares, strict=True)]
        return [float(share) ** -2 for share in shares]

    return chosen_shape(length, relative, _SLACK[kind])


def _mechanisms(
    question: Question, person: Person, price: Price, kind: NoiseKind, shape: Shape, levels: Shares
) -> tuple[tuple[AddsNoise, ...], ...]:
    """The mechanism of each level and total of one shape; `levels` are the parts of the price that levels have."""
    shares = [
        allotment.share if one.l0 else Fraction(0)
        for allotment, one in zip(question.allotments, person.ones, strict=True)
    ]
    whole = sum(shares, Fraction(0)) or Fraction(1)
    places = [(level, total) for level in range(len(shape.sizes)) for total, share in enumerate(shares) if share]
    bounds = [person.moved(total, shape.sizes[level]) for level, total in places]
    parts = [levels[level] * shares[total] / whole for level, total in places]
    made: dict[tuple[int, int], AddsNoise] = {}
    if kind is NoiseKind.LAPLACE:
        for (level, total), bound, part in zip(places, bounds, parts, strict=True):
            law = DiscreteLaplace if question.allotments[total].total.unit == 1 else Laplace
            made[level, total] = law(calibration.laplace_scale(bound.exact_l1, price.amount * part))
    elif isinstance(price, RhoPrice):
        for place, bound, part in zip(places, bounds, parts, strict=True):
            made[place] = Gaussian(calibration.gaussian_scale_rho(l2_squared=bound.l2_squared, rho=price.amount * part))
    elif places:
        scales = calibration.gaussian_scales([bound.l2_squared for bound in bounds], parts, price.amount, price.delta)
        made |= {place: Gaussian(scale) for place, scale in zip(places, scales, strict=True)}
    totals = range(len(shares))
    return tuple(tuple(made.get((level, total), NoNoise()) for total in totals) for level in range(len(shape.sizes)))


def _log_error(noise: SeriesNoise, totals: int) -> float:
    """How noisy a series is: the logarithms of the errors of its running totals, added. Smaller is better."""
    errors = [noise.error(part, total) for part in range(len(noise.mechanisms)) for total in range(totals)]
    return math.fsum(math.log(error) for error in errors if error)
