"""Losses of several mechanisms in sequence, of one mechanism for several units, and of one on a sample.

Every figure is certified in ball arithmetic and rounded up, so a published ε, δ or ρ is never below the truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from dpframe.errors import InvalidArgument, InvalidPrice
from dpframe.noise import Ball, Number, ball, float_up, precision, round_up, upper, whole
from dpframe.theory.formulas.loss.loss import price, price_up, probability

Losses = Iterable[tuple[Number, Number]]


def basic_composition(losses: Losses) -> tuple[float, float]:
    """(ε, δ) of mechanisms that answer one after the other about the same units.

    Input:  pairs (ε_i, δ_i)
    Output: (Σε_i, Σδ_i), δ at most 1
    Bound:  sums, exact and rounded up; also for adaptively chosen mechanisms
    Source: Dwork, Kenthapadi, McSherry, Mironov, Naor 2006, doi:10.1007/11761679_29
    Errors: InvalidPrice for a negative ε or a δ outside [0, 1]

    >>> basic_composition([(0.5, 0), (0.25, 0.125)])
    (0.75, 0.125)
    """
    pairs = _pairs(losses)
    epsilon, delta = sum((e for e, _ in pairs), Fraction(0)), sum((d for _, d in pairs), Fraction(0))
    return price_up(epsilon), min(1.0, price_up(delta))


def composition_delta(losses: Losses, epsilon: Number) -> float:
    """δ at this ε of several mechanisms together, by the optimal composition of their (ε_i, δ_i).

    Input:  pairs (ε_i, δ_i); epsilon ≥ 0 of all together
    Output: δ
    Bound:  1 - (1-δ')·Π(1-δ_i), where δ' is that of independent randomized responses with ε_i, the worst case: the sum
            over their joint privacy loss ℓ of P[ℓ]·max(0, 1 - e^(ε-ℓ)). The sum is exact if ℓ has at most 4096 values
            (always so if the ε_i have few distinct values); otherwise each ε_i is first rounded up to a common grid
    Source: Kairouz, Oh, Viswanath 2015, arXiv:1311.0776; Murtagh, Vadhan 2016, arXiv:1507.03113, Theorem 1.5
    Errors: InvalidPrice for a negative ε or a δ outside [0, 1]

    >>> composition_delta([(1, 0), (1, 0)], 2)
    0.0
    """
    pairs, loss = _pairs(losses), price("epsilon", epsilon)
    with precision(256):
        atoms = _loss_atoms([e for e, _ in pairs])
        excess = _sum(mass * (1 - (ball(loss - level)).exp()) for level, mass in atoms if level > loss)
        return min(1.0, max(0.0, round_up(1 - (1 - excess) * _none_fails(pairs))))


def composition_epsilon(losses: Losses, delta: Number) -> float:
    """Smallest ε at this δ of several mechanisms together, by optimal composition.

    Input:  pairs (ε_i, δ_i); delta of all together, in [0, 1)
    Output: ε, at most Σε_i
    Bound:  the solution of `composition_delta` = delta
    Source: Kairouz, Oh, Viswanath 2015, arXiv:1311.0776; Murtagh, Vadhan 2016, arXiv:1507.03113, Theorem 1.5
    Errors: InvalidPrice for a negative ε, a δ outside [0, 1), or a delta that the δ_i alone exceed

    >>> composition_epsilon([(0.1, 0)] * 100, 1e-6) < 6
    True
    """
    pairs, target = _pairs(losses), probability("delta", delta, closed=True)
    survives = math.prod((1 - d for _, d in pairs), start=Fraction(1))
    if target == 1 or 1 - target > survives:
        raise InvalidPrice(
            f"delta={delta!r} must be below 1 and at least 1 - Π(1 - δ_i), the δ that the mechanisms themselves have."
        )
    with precision(256):
        allowed = ball(1 - (1 - target) / survives)
        # For ε between two neighbouring values of ℓ, δ' = P[ℓ > ε] - e^ε·E[e^-ℓ; ℓ > ε]. Try the largest values first.
        mass = weighted = ball(0)
        levels = sorted(_loss_atoms([e for e, _ in pairs]), key=lambda atom: atom[0], reverse=True)
        bound = float_up(sum((e for e, _ in pairs), Fraction(0)))
        for place, (level, chance) in enumerate(levels):
            if level <= 0:
                break
            mass, weighted = mass + chance, weighted + chance * ball(-level).exp()
            below = max(Fraction(0), levels[place + 1][0]) if place + 1 < len(levels) else Fraction(0)
            if not mass - ball(below).exp() * weighted <= allowed:
                surplus = mass - allowed
                solved = round_up((surplus / weighted).log()) if surplus > 0 else bound
                return max(0.0, min(bound, solved))
        return 0.0


def _pairs(losses: Losses) -> list[tuple[Fraction, Fraction]]:
    return [(price("epsilon", e), probability("delta", d, closed=True)) for e, d in losses]


def _none_fails(pairs: list[tuple[Fraction, Fraction]]) -> Ball:
    return ball(math.prod((1 - d for _, d in pairs), start=Fraction(1)))


def _sum(parts: Iterable[Ball]) -> Ball:
    total = ball(0)
    for part in parts:
        total = total + part
    return total


def _loss_atoms(epsilons: Sequence[Fraction], limit: int = 4096) -> list[tuple[Fraction, Ball]]:
    """Return the joint privacy loss of independent randomized responses: its values and their probabilities.

    Each moves the loss by +ε with probability e^ε/(1+e^ε), else by -ε. Equal values are merged, which is exact.
    """
    grid: Fraction | None = None
    while True:
        atoms = {Fraction(0): ball(1)}
        for epsilon in sorted(epsilons, reverse=True):
            if epsilon == 0:
                continue
            step = epsilon if grid is None else math.ceil(epsilon / grid) * grid
            up = 1 / (1 + ball(-step).exp())
            joint: dict[Fraction, Ball] = {}
            for level, chance in atoms.items():
                joint[level + step] = joint.get(level + step, 0) + chance * up
                joint[level - step] = joint.get(level - step, 0) + chance * (1 - up)
            atoms = joint
            if len(atoms) > limit:
                break
        if len(atoms) <= limit:
            return list(atoms.items())
        # On a grid of step h there are at most Σ⌈ε_i/h⌉ + 1 values, one per two steps.
        grid = sum(epsilons, Fraction(0)) / (limit - len(epsilons) - 1) if grid is None else 2 * grid


def group_privacy(epsilon: Number, delta: Number, size: int) -> tuple[float, float]:
    """(ε, δ) for a group of several units.

    Input:  (ε, δ) for one unit; size, how many units are in the group
    Output: (size·ε, δ·(e^(size·ε) - 1)/(e^ε - 1)), δ at most 1
    Bound:  a chain of `size` one-unit steps: each step adds δ times e^ε to the power of the steps before it
    Source: Vadhan 2017, "The Complexity of Differential Privacy", Lemma 2.2, with the geometric sum kept
    Errors: InvalidPrice for a negative ε or a δ outside [0, 1]; InvalidArgument for a size below 1

    >>> group_privacy(0.5, 0, 4)
    (2.0, 0.0)
    """
    loss, slack, count = price("epsilon", epsilon), probability("delta", delta, closed=True), whole("size", size, 1)
    if slack == 0 or loss == 0 or count == 1:
        return price_up(count * loss), min(1.0, price_up(count * slack)) if loss == 0 else price_up(slack)
    grown = upper(lambda: ball(slack) * ball(count * loss).expm1() / ball(loss).expm1())
    return price_up(count * loss), min(1.0, grown)


def group_privacy_rho(rho: Number, size: int) -> float:
    """ρ for a group of several units.

    Input:  ρ for one unit; size, how many units are in the group
    Output: size²·ρ
    Bound:  the triangle inequality of Rényi divergences
    Source: Bun, Steinke 2016, arXiv:1605.02065, Proposition 1.9
    Errors: InvalidPrice for a negative ρ; InvalidArgument for a size below 1

    >>> group_privacy_rho(0.5, 2)
    2.0
    """
    return price_up(price("rho", rho) * whole("size", size, 1) ** 2)


def amplification_by_sampling(epsilon: Number, delta: Number, sampled: int, total: int) -> tuple[float, float]:
    """(ε, δ) of a mechanism that runs on a uniform sample without replacement.

    Input:  (ε, δ) of the mechanism under replacement of one unit; sampled units of total
    Output: (ln(1 + q·(e^ε - 1)), q·δ) with q = sampled/total, for replacement of one unit of the population
    Bound:  a unit outside the sample costs nothing; advanced joint convexity
    Source: Balle, Barthe, Gaboardi 2018, arXiv:1807.01647, Theorem 9
    Errors: InvalidPrice for a negative ε or a δ outside [0, 1]; InvalidArgument unless 0 ≤ sampled ≤ total, total ≥ 1

    >>> amplification_by_sampling(1, 0.5, 10, 10)
    (1.0, 0.5)
    """
    loss, slack = price("epsilon", epsilon), probability("delta", delta, closed=True)
    everyone = whole("total", total, 1)
    part = whole("sampled", sampled, 0)
    if part > everyone:
        raise InvalidArgument(f"sampled={sampled!r} must be at most total={total!r}.")
    rate = Fraction(part, everyone)
    if rate in (0, 1) or loss == 0:
        return (price_up(loss) if rate == 1 else 0.0), price_up(rate * slack)
    return upper(lambda: (ball(rate) * ball(loss).expm1()).log1p()), price_up(rate * slack)
