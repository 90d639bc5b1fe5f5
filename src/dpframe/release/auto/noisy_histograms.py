"""Noisy histograms and numbers that `dp.Auto()` pays for, each for a part of the price."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dpframe import engine
from dpframe.arrays import Floats, Integers
from dpframe.engine import ONE
from dpframe.errors import UnsupportedOperation
from dpframe.noise import bits, rounded_laplace
from dpframe.plan import Question
from dpframe.release.certificate import Read
from dpframe.release.estimators import BinnedValues
from dpframe.release.pricing import EpsilonFromRho, Price
from dpframe.theory.formulas.sensitivity import Relation


@dataclass
class Seen:
    """Noisy histograms that a release has paid for and read so far:
    of sizes with their scales, and of values.

    `reads` are all noisy answers.
    """

    sizes: dict[str, tuple[Floats, float]] = field(default_factory=dict)
    values: dict[str, BinnedValues] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)


def check_auto(price: Price) -> None:
    """Errors: UnsupportedOperation for an ε from a budget in ρ, which cannot pay for histograms."""
    if isinstance(price, EpsilonFromRho):
        raise UnsupportedOperation("dp.Auto() is paid from this budget in ρ: release(rho=0.01).")


def histogram_scale(price: Price, relation: Relation) -> float:
    """The Laplace scale of a histogram that costs all of the price. A unit adds at most ONE to it.

    Bound:  its l1 is ONE when a unit joins or leaves, and 2·ONE when one is exchanged (see
            `engine.histograms`)
    """
    return price.laplace_scale(ONE * (2 if relation == Relation.REPLACE else 1))


def noisy_histogram(
    price: Price, question: Question, counts: Integers, seen: Seen
) -> tuple[Floats, float]:
    """A histogram with noise, and the scale of the noise, both in units."""
    scale = histogram_scale(price, question.table.relation)
    seen.reads.append(Read("histogram", len(counts), ONE, scale))
    noisy = np.asarray(counts + rounded_laplace(scale, len(counts)), np.float64)
    return noisy / ONE, scale / ONE


def noisy_values(price: Price, question: Question, seen: Seen | None = None) -> tuple[float, float]:
    """The number of different values in all groups together, with
    noise, and the scale of the noise.

    Input:  a question of `dp.n_unique` of one column, under limits by which a unit brings K pairs
            of group and value
    Bound:  which K pairs a unit brings depends on its own rows and the salt alone. So when it
            joins, the pairs of all units together become more by 0 to K. When it is exchanged, that
            number is from 0 to K above the number without it both before and after. So it moves by
            K at most under either relation. (In L1 the numbers of the groups move by up to 2K when
            a unit is exchanged.)
    Source: Dwork, McSherry, Nissim, Smith 2006, for Laplace noise of scale K / ε
    """
    raw = engine.totals(question, bits.random_word())
    numbers = [
        v.sum()
        for allotment, v in zip(question.read, raw.values, strict=True)
        if allotment.total.of_different_values
    ]
    most = question.unit_limits.contribution.rows
    scale = price.laplace_scale(most)
    (seen or Seen()).reads.append(Read("count_of_pairs", 1, most, scale))
    (noisy,) = np.asarray(np.array(numbers) + rounded_laplace(scale, 1), np.float64)
    return float(noisy), scale
