"""The keys of groups, found in rounds from weights that each unit spreads over
its keys that are still in play.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import polars as pl

from dpframe import engine
from dpframe.arrays import WideIntegers
from dpframe.budget import Terms
from dpframe.engine import Totals
from dpframe.errors import UnsupportedOperation
from dpframe.noise import keep_at_least
from dpframe.plan import Question
from dpframe.release.answer import aligned, plus
from dpframe.release.kinds.answers import TableAnswer
from dpframe.release.pricing import (
    Event,
    Gaussian,
    Noise,
    NoisePlan,
    Parameters,
    Price,
    Rule,
    check_shared,
    delta_of_keys,
)
from dpframe.release.stored import Answer
from dpframe.theory.formulas.loss import ROUNDS, calibration, dropped_below, round_thresholds
from dpframe.theory.formulas.sensitivity import Sensitivity


@dataclass(frozen=True)
class GaussianRounds(Gaussian):
    """Gaussian noise on weights of keys in several rounds, each with a threshold on
    the sums of noisy weights so far.

    The scale is the standard deviation in one round.
    """

    thresholds: tuple[int, ...] = ()

    label = law = "gaussian_rounds"

    @property
    def parameters(self) -> Parameters:
        """The scale, and the thresholds of the rounds."""
        return {**super().parameters, "thresholds": self.thresholds}

    def rho(self, bound: Sensitivity) -> Fraction:
        """The rounds add up: rounds · l2² / 2σ²."""
        return len(self.thresholds) * super().rho(bound)

    def event(self, bound: Sensitivity) -> Event:
        """All rounds together are one Gaussian mechanism."""
        noise = float(Fraction(self.scale)) / bound.l2 / math.sqrt(len(self.thresholds))
        return {"class_name": "GaussianDpEvent", "fields": {"noise_multiplier": noise}}


class KeysAnswer(TableAnswer):
    """The keys of groups, found in rounds."""

    alone = (
        "keys() without max_groups= takes several rounds; release it by itself, or say "
        "max_groups=3."
    )

    def noise(self, question: Question, price: Price) -> NoisePlan:
        """Noise and thresholds of the rounds.
        The plan's threshold is the mean weight (units) that a key needs at last.

        Bound:  see `formulas.loss.key_selection.round_thresholds`. The rounds are adaptive Gaussian
                mechanisms. In (ε, δ) their μ² add up to that of one Gaussian mechanism of (ε, δ/2),
                and the thresholds have the other half of δ. In ρ their ρ add up, and the thresholds
                have all of δ
        Errors: DeltaRequired; UnsupportedOperation for Laplace noise, which has no rounds
        """
        check_shared(question, price.noise)
        if not price.noise.normal or price.converts:
            raise UnsupportedOperation(
                "keys(): without max_groups=, keys are found with Gaussian noise. Give a price in "
                "(ε, δ) or ρ without noise='laplace', or a limit: "
                f"group_by({', '.join(map(repr, question.by))}, max_groups=3).keys()."
            )
        delta, (allotment,) = delta_of_keys(question, price.delta), question.allotments
        bound, one = allotment.total.sensitivity, int(allotment.total.sensitivity.exact_linf)
        square = ROUNDS * bound.l2_squared
        if price.terms is Terms.EPSILON:
            delta /= 2
            scale = calibration.gaussian_scale(l2_squared=square, epsilon=price.amount, delta=delta)
        else:
            scale = calibration.gaussian_scale_rho(l2_squared=square, rho=price.amount)
        thresholds = round_thresholds(delta, bound.l0, ROUNDS, scale, one)
        noise = Noise(allotment, GaussianRounds(scale, thresholds))
        rule = Rule.GAUSSIAN if price.terms is Terms.EPSILON else Rule.RHO
        return NoisePlan(
            (noise,),
            -(-thresholds[-1] // (ROUNDS * one)),
            allotment,
            price.loss(delta=True),
            rule=rule,
        )

    def answer(self, question: Question, plan: NoisePlan, salt: int) -> Answer:
        """The released keys."""
        return Answer(
            keys_in_rounds(plan, lambda in_play: engine.totals(question, salt, in_play)), {}
        )


def keys_in_rounds(plan: NoisePlan, read: Callable[[pl.DataFrame | None], Totals]) -> pl.DataFrame:
    """The released keys, in the order of the first reading.

    Input:  the noise and thresholds; read(in_play): the exact weights of the keys in play, where
            None stands for all
    Bound:  see `formulas.loss.key_selection.round_thresholds`. Which keys are in play is a function
            of noisy sums. The noise of each round is fresh, for every key in play. A key that no
            unit has is never a candidate
    """
    (noise,) = plan.noises
    mechanism = noise.mechanism
    assert isinstance(mechanism, GaussianRounds)
    first = read(None)
    keys, held, weights = first.keys, first.held, first.values[0]
    places = np.arange(keys.height)  # of the keys in play, among all keys
    sums: WideIntegers = np.zeros(keys.height, np.int64)
    released = np.zeros(keys.height, np.bool_)
    for number, threshold in enumerate(mechanism.thresholds):
        if number:
            again = read(held[places])
            weights = aligned(again.held, again.values[0], held[places])
        sums = plus(plus(sums, weights), mechanism.draw(len(places)))
        passed = keep_at_least(sums, threshold)
        released[places[passed]] = True
        stay = ~passed & keep_at_least(sums, dropped_below(mechanism.thresholds, number))
        places, sums = places[stay], sums[stay]
        if not len(places):
            break
    return keys.filter(pl.Series(released))
