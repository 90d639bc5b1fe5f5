"""What a price buys for keys that are found in rounds: the noise of each round, and its thresholds."""

from __future__ import annotations

from fractions import Fraction
from typing import NoReturn

from dpframe.budget import Loss
from dpframe.errors import UnsupportedOperation
from dpframe.plan import Question
from dpframe.release.pricing.allocation import delta_of_keys
from dpframe.release.pricing.kinds import NoiseKind
from dpframe.release.pricing.mechanisms import GaussianRounds
from dpframe.release.pricing.noise import Noise, NoisePlan
from dpframe.theory.formulas.loss import ROUNDS, calibration, round_thresholds

__all__ = ["refuse_rounds", "rounds_for_epsilon", "rounds_for_rho"]


def rounds_for_epsilon(question: Question, epsilon: Fraction, delta: Fraction, noise: NoiseKind) -> NoisePlan:
    """Rounds at (ε, δ): the noise of all rounds has half of δ, and the thresholds have the other half.

    Bound:  see `theory.formulas.loss.key_rounds.round_thresholds`. The rounds are adaptive Gaussian mechanisms, whose
            μ² add up to that of one Gaussian mechanism of (ε, δ/2)
    Errors: DeltaRequired; UnsupportedOperation with noise="laplace"
    """
    if noise is NoiseKind.LAPLACE:
        refuse_rounds(question)
    half = delta_of_keys(question, delta) / 2
    scale = calibration.gaussian_scale(l2_squared=_square(question), epsilon=epsilon, delta=half)
    return _planned(question, scale, half, Loss.charged(epsilon, delta))


def rounds_for_rho(question: Question, rho: Fraction, delta: Fraction, noise: NoiseKind) -> NoisePlan:
    """Rounds at (ρ, δ): the ρ of the rounds add up, and the thresholds have all of δ.

    Errors: as `rounds_for_epsilon`
    """
    if noise is NoiseKind.LAPLACE:
        refuse_rounds(question)
    slack = delta_of_keys(question, delta)
    scale = calibration.gaussian_scale_rho(l2_squared=_square(question), rho=rho)
    return _planned(question, scale, slack, Loss.charged_rho(rho, delta))


def refuse_rounds(question: Question) -> NoReturn:
    """Refuse Laplace noise, which has no rounds. Errors: UnsupportedOperation, with the line to type."""
    names = ", ".join(map(repr, question.by))
    raise UnsupportedOperation(
        f"keys(): without max_groups=, keys are found with Gaussian noise. Give a price in (ε, δ) or ρ without "
        f"noise='laplace', or a limit: group_by({names}, max_groups=3).keys()."
    )


def _square(question: Question) -> Fraction:
    (allotment,) = question.allotments
    return ROUNDS * allotment.total.sensitivity.l2_squared


def _planned(question: Question, scale: float, delta: Fraction, cost: Loss) -> NoisePlan:
    """The plan. Its threshold is the mean weight that a key needs after the last round, in units, rounded up."""
    (allotment,) = question.allotments
    bound = allotment.total.sensitivity
    one = int(bound.exact_linf)
    thresholds = round_thresholds(delta, bound.l0, ROUNDS, scale, one)
    noise = Noise(allotment, GaussianRounds(scale, thresholds))
    return NoisePlan((noise,), -(-thresholds[-1] // (ROUNDS * one)), allotment, cost)
