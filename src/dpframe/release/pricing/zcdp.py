"""Noise for a price in ρ, and what noise costs in ρ: for budgets that count zero-concentrated privacy."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpframe.errors import UnsupportedOperation
from dpframe.plan import Paid
from dpframe.release.pricing.calibrate import Drawn, Part, choice_for_rho, choice_of, parted, pieces
from dpframe.theory.formulas.loss import calibration, choices_rho
from dpframe.theory.formulas.loss import loss as privacy

__all__ = [
    "drawn_for_rho",
    "epsilon_for_rho",
    "gaussian_for_rho",
    "laplace_for_epsilon",
    "laplace_for_rho",
    "rho_of",
    "rho_of_choice",
]

# Real noise that is rounded is used on the unit grid too: the discrete Laplace law costs more in ρ, as much as any
# mechanism of its ε, since its privacy loss is that of randomized response.


def drawn_for_rho(parts: Sequence[Part], normal: bool, selects: bool) -> list[Drawn]:
    """The noise and the choices that each part of a ρ buys; see `ways`."""
    added, chosen = parted(parts, selects=selects)
    noise = gaussian_for_rho if normal else laplace_for_rho
    return [*(noise(p, rho) for p, rho in added), *(_choice(p, rho) for p, rho in chosen)]


def _choice(paid: Paid, rho: Fraction) -> Drawn:
    """The better choice of ρ: for keys there is one, for large ρ it is permute-and-flip."""
    pure = choice_of(paid, epsilon_for_rho(rho, pieces(paid)))
    return pure if paid.hidden else min(pure, choice_for_rho(paid, rho), key=lambda drawn: drawn.off)


def gaussian_for_rho(paid: Paid, rho: Fraction) -> Drawn:
    """Gaussian noise of ρ on one measure: σ² >= l2² / 2ρ."""
    return Drawn(paid, "gaussian", calibration.gaussian_scale_rho(paid.measure.sensitivity.l2_squared, rho))


def laplace_for_rho(paid: Paid, rho: Fraction) -> Drawn:
    """Rounded Laplace noise of ρ on one measure."""
    return Drawn(paid, "laplace", calibration.laplace_scale_rho(paid.measure.sensitivity.exact_l1, rho))


def laplace_for_epsilon(paid: Paid, epsilon: Fraction) -> Drawn:
    """Rounded Laplace noise of ε on one measure."""
    return Drawn(paid, "laplace", calibration.laplace_scale(paid.measure.sensitivity.exact_l1, epsilon))


def epsilon_for_rho(rho: Fraction, count: int = 1) -> Fraction:
    """An ε such that every mechanism of `count` choices of ε/count costs at most ρ: just below the largest.

    >>> 0.999999 < rho_of_choice(epsilon_for_rho(Fraction(1, 10))) * 10 <= 1
    True
    """
    low, high = Fraction(0), count + 2 * rho  # (1 + 2ρ)·tanh(1/2 + ρ) > ρ, for each of them
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rho_of_choice(middle, count) <= rho else (low, middle)
    return low


def rho_of_choice(epsilon: Fraction, count: int = 1) -> Fraction:
    """What a choice of ε costs in ρ that is made of `count` choices of ε/count; see `choices_rho`."""
    return choices_rho(count, epsilon)


def rho_of(drawn: Drawn) -> Fraction:
    """What the noise of one measure costs in ρ.

    Bound:  Gaussian: l2²/2σ², exact. Laplace (real, rounded): ε + e^-ε - 1 with ε = l1/scale. Discrete Laplace: that of
            any ε-private mechanism, ε·tanh(ε/2)
    Source: `dpframe.theory.formulas.loss.loss`: gaussian_rho, laplace_rho, pure_to_zcdp
    Errors: UnsupportedOperation for a mechanism whose ρ does not follow from its scale
    """
    bound, scale = drawn.paid.measure.sensitivity, Fraction(drawn.scale)
    if drawn.family == "none":
        return Fraction(0)
    if drawn.family == "gaussian":
        return bound.l2_squared / (2 * scale**2)
    if drawn.family == "laplace":
        return Fraction(privacy.laplace_rho(bound.exact_l1, scale))
    if drawn.family == "discrete_laplace":
        return Fraction(privacy.pure_to_zcdp(bound.exact_l1 / scale))
    raise UnsupportedOperation(f"{drawn.family}: what it costs in ρ is not known from its scale; use a budget in ε.")
