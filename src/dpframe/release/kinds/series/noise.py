"""The noise of a series: the mechanism of each total on each level of blocks, for
the price of the whole horizon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cache

from dpframe.budget import Loss
from dpframe.errors import DeltaRequired, InvalidPrice, UnsupportedOperation
from dpframe.fields import FieldDict, Fields
from dpframe.plan import Question
from dpframe.release.kinds.series.progress import Block
from dpframe.release.kinds.series.shape import (
    PARTS,
    SHORTEST_PART,
    Shape,
    Shapes,
    Shares,
    chosen_shape,
    mean_square,
)
from dpframe.release.kinds.series.unit_change import UnitChange
from dpframe.release.kinds.series.weights import LONGEST, chosen_weights, errors
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
from dpframe.theory.formulas.loss import calibration, gaussian_epsilon, gaussian_mu
from dpframe.theory.formulas.sensitivity import Sensitivity

MECHANISMS: Mapping[str, type[AddsNoise]] = {
    kind.label: kind for kind in (Gaussian, Laplace, DiscreteLaplace, NoNoise)
}

# The largest error of a running total in blocks, as a multiple of the smallest possible one, that
# is accepted for more exact windows of a week. Over 365 periods a running total has the noise of
# 4.9 nights with Gaussian noise, and windows have that of 2.6. With Laplace noise nothing is given
# up: windows would have 4.4 instead of 5.3, at 8.7 and not 8.4. Nothing is given up either if a
# unit is counted in several periods, since that costs the running total enough.
_SLACK = 1.115


class ReadAgain(Enum):
    """Times at which the rows of earlier periods are read again."""

    NEVER = "never"  # only those of the period that is added are at hand
    # when a block ends: where each reading has to find out whose periods are used up
    AT_ENDS = "at ends"
    EACH_NIGHT = "each night"


@dataclass(frozen=True)
class SeriesNoise:
    """The shapes of a series, and the mechanisms by part, level and total."""

    shapes: Shapes
    mechanisms: tuple[tuple[tuple[AddsNoise, ...], ...], ...]

    def to_json(self) -> FieldDict:
        """The form in which the ledger stores it."""
        return {
            "shapes": [shape.to_json() for shape in self.shapes.parts],
            "noise": [mechanism.label for mechanism in self.mechanisms[0][0]],
            "scales": [
                [[mechanism.scale for mechanism in level] for level in part]
                for part in self.mechanisms
            ],
        }

    @classmethod
    def from_json(cls, fields: Fields) -> SeriesNoise:
        """The noise from its stored form."""
        kinds = [MECHANISMS[label] for label in fields["noise"]]
        mechanisms = tuple(
            tuple(
                tuple(kind(scale) for kind, scale in zip(kinds, level, strict=True))
                for level in part
            )
            for part in fields["scales"]
        )
        return cls(Shapes(tuple(Shape.from_json(shape) for shape in fields["shapes"])), mechanisms)

    @property
    def normal(self) -> bool:
        """Whether the noise is Gaussian."""
        return any(mechanism.normal for mechanism in self.mechanisms[0][0])

    def variance(self, part: int, level: int, total: int) -> float:
        """Variance of the noise of one block (squared units of the total's
        integer), with what rounding may add.
        """
        return self.mechanisms[part][level][total].variance

    def error(self, part: int, total: int) -> float:
        """Root mean square error of the running total within a part
        (units of the total's integer).
        """
        shape = self.shapes.parts[part]
        if shape.weights:
            return (
                math.sqrt(self.variance(part, 0, total)) * errors(shape.weights, shape.length)[-1]
            )
        variances = [self.variance(part, level, total) for level in range(len(shape.levels))]
        return math.sqrt(mean_square(shape, variances)) if all(variances) else 0.0

    def again(self, unit: UnitChange, blocks: Sequence[Block], price: Price) -> Loss:
        """The loss of measuring some blocks once more, in addition to the loss of the series.

        Input:  unit: the change that the noise was bought for; blocks; the price of the series
        Bound:  a block has at most as many of a unit's periods as it has periods, and these have
                its largest weights. For Laplace noise the l1 / scale add up; for Gaussian noise the
                l2² / σ² add up, at the δ of the price
        """
        changes = [
            (_once(unit, total, block), self.mechanisms[block.part][block.level][total])
            for block in blocks
            for total in range(len(unit.totals))
        ]
        changes = [(bound, mechanism) for bound, mechanism in changes if bound.l0]
        if not self.normal:
            epsilon = sum(
                (bound.exact_l1 / Fraction(noise.scale) for bound, noise in changes), Fraction(0)
            )
            return Loss.charged(epsilon, Fraction(0))
        squares = [bound.l2_squared / Fraction(noise.scale) ** 2 for bound, noise in changes]
        if isinstance(price, RhoPrice):
            return Loss.charged_rho(sum(squares, Fraction(0)) / 2, Fraction(0))
        mu = gaussian_mu(
            [bound.l2_squared for bound, _ in changes], [noise.scale for _, noise in changes]
        )
        return Loss.charged(
            Fraction(gaussian_epsilon(price.delta, mu)) if mu else Fraction(0), price.delta
        )

    def repeated(self, unit: UnitChange, price: Price) -> tuple[Loss, Loss]:
        """The largest loss of measuring one period again, alone and
        with the blocks that end with it.

        Input:  as in `again`. Bound: no block of a level is longer than its largest, so none costs
                more
        """
        alone, ended = [], []
        for part, shape in enumerate(self.shapes.parts):
            blocks = [
                Block(part, level, 0, tuple(range(size)), shape.weights[:1])
                for level, size in enumerate(shape.sizes)
            ]
            alone.append(self.again(unit, blocks[:1], price))
            ended.append(self.again(unit, blocks, price))
        return max(alone, key=_amounts), max(ended, key=_amounts)


def _amounts(loss: Loss) -> tuple[Fraction, Fraction]:
    return loss.exact_rho or Fraction(0), loss.exact_epsilon


def _once(unit: UnitChange, total: int, block: Block) -> Sensitivity:
    """The sensitivity of one block that is measured once more."""
    if block.weights:
        return unit.weighted(total, sorted(block.weights, reverse=True), nights=1)
    return unit.over(total, len(block.periods), min(unit.periods, len(block.periods)))


def planned_noise(
    question: Question, unit: UnitChange, price: Price, horizon: int | None, read_again: ReadAgain
) -> SeriesNoise:
    """The shapes and the noise with the smallest errors of the running totals at a price.

    Input:  the question of one period; the change of one unit; the price of the whole horizon;
            horizon (periods), None for a series without an end; read_again: how often the rows of
            earlier periods can be read
    Bound:  on each level a unit moves the blocks by at most `UnitChange.over`, in all its periods
            together. The levels share the price by parts that add up to 1, and the totals of a
            level share its part by their shares. For Laplace noise the ε of a level and total is l1
            / scale, and these add up. For Gaussian noise all blocks of all levels and totals are
            one mechanism with μ² = Σ l2² / σ², in ρ with ρ = Σ l2² / 2σ². This also holds if later
            questions depend on earlier answers. A block is measured once. The weighted sums of all
            nights are one level, which a unit moves by at most `UnitChange.weighted`
    Source: Dwork, Naor, Pitassi, Rothblum 2010, doi:10.1145/1806689.1806787, and Chan, Shi, Song
            2011, doi:10.1145/2043621.2043626, for trees of periods; Dong, Roth, Su 2019,
            arXiv:1905.02383, corollary 2, and Bun, Steinke 2016, arXiv:1605.02065, lemma 1.7, for
            answers that follow one another
    Errors: InvalidPrice, DeltaRequired, UnsupportedOperation
    """
    lengths = [horizon] if horizon is not None else [SHORTEST_PART << part for part in range(PARTS)]
    candidates = []
    for kind in _kinds(price):
        shapes = [_shape(length, kind, unit.periods, read_again) for length in lengths]
        mechanisms = tuple(_mechanisms(question, unit, price, kind, *shape) for shape in shapes)
        candidates.append(SeriesNoise(Shapes(tuple(shape for shape, _ in shapes)), mechanisms))
    return min(candidates, key=lambda noise: _log_error(noise, len(unit.totals)))


def _kinds(price: Price) -> list[NoiseKind]:
    """The kinds of noise that are possible at a price."""
    if price.noise.shared:
        raise UnsupportedOperation(
            f"noise={price.noise.value!r}: blocks of a series are added up, which needs noises "
            "that are independent. Leave noise= out."
        )
    match price:
        case RhoPrice() if price.noise.normal:
            return [NoiseKind.GAUSSIAN]
        case RhoPrice():
            raise UnsupportedOperation(
                "A series with a price in ρ has Gaussian noise: leave noise= out."
            )
        case EpsilonPrice() if price.noise.pure or price.delta:
            return price.noises
        case EpsilonPrice():
            raise DeltaRequired(
                "Gaussian noise needs a δ above 0: budget.series(..., epsilon=1, delta=1e-6)."
            )
    raise InvalidPrice(
        "This budget counts ρ, so give the series a price in ρ: budget.series(..., rho=0.01)."
    )


@cache
def _shape(
    length: int, kind: NoiseKind, periods: int, read_again: ReadAgain
) -> tuple[Shape, Shares]:
    """The shape of one part of a series, and its levels' parts of the price."""
    if read_again is ReadAgain.NEVER:
        return Shape.of_degree(length, 2, 1), (Fraction(1),)
    if read_again is ReadAgain.EACH_NIGHT and kind.normal and length <= LONGEST:
        weights = chosen_weights(length, periods)
        shape = (
            Shape.weighted(length, weights) if len(weights) > 1 else Shape.of_degree(length, 2, 1)
        )
        return shape, (Fraction(1),)

    def relative(shape: Shape, shares: Shares) -> list[float]:
        """Numbers proportional to the variances of the levels'
        noise, for given parts of the price.
        """
        if kind.normal:
            return [
                min(periods, size) / float(share)
                for size, share in zip(shape.sizes, shares, strict=True)
            ]
        return [float(share) ** -2 for share in shares]

    return chosen_shape(length, relative, _SLACK if kind.normal and periods == 1 else 1.0)


def _mechanisms(
    question: Question,
    unit: UnitChange,
    price: Price,
    kind: NoiseKind,
    shape: Shape,
    levels: Shares,
) -> tuple[tuple[AddsNoise, ...], ...]:
    """The mechanism of each level and total of one shape;
    `levels` are the levels' parts of the price.
    """
    shares = [
        allotment.share if one.l0 else Fraction(0)
        for allotment, one in zip(question.allotments, unit.ones, strict=True)
    ]
    total_share = sum(shares, Fraction(0)) or Fraction(1)
    places = [
        (level, total)
        for level in range(len(shape.sizes))
        for total, share in enumerate(shares)
        if share
    ]
    bounds = [
        unit.weighted(total, shape.weights)
        if shape.weights
        else unit.over(total, shape.sizes[level])
        for level, total in places
    ]
    parts = [levels[level] * shares[total] / total_share for level, total in places]
    by_place: dict[tuple[int, int], AddsNoise] = {}
    if not kind.normal:
        for (level, total), bound, part in zip(places, bounds, parts, strict=True):
            law = DiscreteLaplace if question.allotments[total].total.unit == 1 else Laplace
            by_place[level, total] = law(
                calibration.laplace_scale(bound.exact_l1, price.amount * part)
            )
    elif isinstance(price, RhoPrice):
        for place, bound, part in zip(places, bounds, parts, strict=True):
            by_place[place] = Gaussian(
                calibration.gaussian_scale_rho(l2_squared=bound.l2_squared, rho=price.amount * part)
            )
    elif places:
        scales = calibration.gaussian_scales(
            [bound.l2_squared for bound in bounds], parts, price.amount, price.delta
        )
        by_place |= {place: Gaussian(scale) for place, scale in zip(places, scales, strict=True)}
    totals = range(len(shares))
    return tuple(
        tuple(by_place.get((level, total), NoNoise()) for total in totals)
        for level in range(len(shape.sizes))
    )


def _log_error(noise: SeriesNoise, totals: int) -> float:
    """Sum of the logarithms of the errors of a series' running totals. Smaller is better."""
    errors = [
        noise.error(part, total) for part in range(len(noise.mechanisms)) for total in range(totals)
    ]
    return math.fsum(math.log(error) for error in errors if error)
