"""Costs of choices in ρ, for budgets that count zero-concentrated privacy."""

from __future__ import annotations

from fractions import Fraction

from dpframe.theory.formulas.loss import choices_rho

__all__ = ["epsilon_for_rho", "rho_of_choice"]


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
    """The cost in ρ of `count` choices of ε/count each; see `choices_rho`."""
    return choices_rho(count, epsilon)
