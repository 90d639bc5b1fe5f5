"""What a price buys for synthetic rows: a ρ for all rounds of choices and noisy tables."""

from __future__ import annotations

from fractions import Fraction

from dpframe.budget import Loss
from dpframe.errors import DeltaRequired, UnsupportedOperation
from dpframe.plan import Synthesis
from dpframe.release.pricing.kinds import NoiseKind
from dpframe.release.pricing.mechanisms import TableRounds
from dpframe.release.pricing.noise import Noise, NoisePlan
from dpframe.theory.formulas.loss import gaussian_scale_rho, rho_within

__all__ = ["tables_for_epsilon", "tables_for_rho"]


def tables_for_epsilon(question: Synthesis, epsilon: Fraction, delta: Fraction, noise: NoiseKind) -> NoisePlan:
    """Rounds at (ε, δ): they may spend the largest ρ that implies it.

    Source: Bun, Steinke 2016, arXiv:1605.02065, for adaptive composition; Feldman, Zrnic 2021, arXiv:2008.11193, for
            prices that are chosen as the rounds go, within a fixed sum
    Errors: DeltaRequired; UnsupportedOperation with noise="laplace"
    """
    if delta == 0:
        raise DeltaRequired("synthesize: choices and tables in rounds need a δ: release(epsilon=..., delta=1e-9).")
    return _planned(question, rho_within(epsilon, delta), noise, Loss.charged(epsilon, delta))


def tables_for_rho(question: Synthesis, rho: Fraction, noise: NoiseKind) -> NoisePlan:
    """Rounds at ρ. Errors: UnsupportedOperation with noise="laplace"."""
    return _planned(question, rho, noise, Loss.charged_rho(rho, Fraction(0)))


def _planned(question: Synthesis, rho: Fraction, noise: NoiseKind, cost: Loss) -> NoisePlan:
    if noise is NoiseKind.LAPLACE:
        raise UnsupportedOperation(
            "synthesize: tables are measured with Gaussian noise: release(epsilon=..., delta=1e-9) without noise=, or "
            "release(rho=0.01) from a budget in ρ."
        )
    (allotment,) = question.allotments
    scale = gaussian_scale_rho(l2_squared=allotment.total.sensitivity.l2_squared, rho=rho)
    return NoisePlan((Noise(allotment, TableRounds(scale, rho)),), None, None, cost)
