"""Hierarchies: the part of the price of each level of a tree, and least squares
over all of its levels at once.

The leaves of the tree are cells of a table, such as communes. Level j has n_j nodes, from one root
(j = 0) down to the leaves (j = L). The total of a node is the sum over its leaves. Every node of
level j is measured once, with independent noise of variance s_j. The estimates are those of
`theory.formulas.trees`: two passes of least squares, for any degrees and variances.

Privacy. Let one unit move the totals of level j by a vector Δ_j with |Δ_j|₂² <= π_j and |Δ_j|₁ <=
ℓ_j (see `theory.formulas.sensitivity.grouped.node_limits` for what limits on rows and groups say of
a level). All levels together are one mechanism on the vector (Δ_0, …, Δ_L). With Gaussian noise its
μ² is Σ_j |Δ_j|² / s_j <= Σ_j π_j / s_j, and with Laplace noise of scales b_j its ε is Σ_j |Δ_j|₁ /
b_j <= Σ_j ℓ_j / b_j. So the price is split over levels: the parts of μ² (or ρ) are π_j / s_j, those
of ε are ℓ_j / b_j. This holds for every tree, whatever its degrees.

Shares, if all nodes of a level have equally many children. Let N_j = n_L / n_j be the leaves below
a node of level j. Let E_j be the projection on functions of leaves that are constant on the nodes
of level j, and P_j = E_j - E_(j-1) (with P_0 = E_0). These P_j are orthogonal projections that add
up to I; the rank of P_j is n_j - n_(j-1). If A_j adds leaves up to level j, then A_j'A_j = N_j E_j.
So the information of all measurements is Γ = Σ_j A_j'A_j / s_j = Σ_i λ_i P_i with

    λ_i = Σ over j >= i of N_j / s_j,

which falls (or stays) from the root to the leaves; and every such sequence λ belongs to some s:
1/s_j is (λ_j - λ_(j+1)) / N_j, with λ_(L+1) = 0. The mean variance of the estimates of level j is

    V_j = tr(A_j Γ⁻¹ A_j') / n_j = Σ over i <= j of N_j² (1/N_i - 1/N_(i-1)) / λ_i,   1/N_(-1) = 0.

The price is Σ_j π_j / s_j = Σ_i q_i λ_i with q_i = π_i/N_i - π_(i-1)/N_(i-1). Σ_j V_j is Σ_i c_i /
λ_i with c_i = (1/N_i - 1/N_(i-1)) Σ over j >= i of N_j². By Cauchy and Schwarz, Σ c_i/λ_i is at
least (Σ √(c_i q_i))² / price, and this is attained at λ_i = √(c_i/q_i) if that sequence falls. If π
is one number for all levels, as for one row per unit, λ_i = √(Σ over j >= i of N_j²), which falls.
Otherwise neighbouring levels that do not fall are merged, which is the exact solution of this
problem under an order (Barlow and others 1972): c and q of merged levels are added, λ is equal in
them, and a level whose λ is that of the next one is not measured (its noise is infinite).

Optimum. If one unit is one row and π is one number, no Gaussian mechanism with any queries has a
smaller Σ_j V_j at the price. Let Γ be the information of any mechanism. Its Σ_j V_j is convex in Γ,
and so is the price of one row, the largest diagonal entry of Γ. Neither changes if the nodes of a
tree of equal degrees are renamed, children with their parents. So Γ may be replaced by its mean
over all renamings, which commutes with them. Under the renamings the functions of leaves split into
the ranges of P_0, …, P_L, each irreducible and no two alike. By Schur's lemma the mean is Σ_i λ_i
P_i with some λ_i >= 0: the problem that was solved above, and its solution falls, so that
independent noise per node attains it.

Each level is then no worse than a measurement of its own with an equal part of the price, which has
V_j = (L + 1) π. With π = 1: Σ_j 1/s_j = Σ_j (√S_j - √S_(j+1)) / N_j for S_i = Σ over j >= i of
N_j², and √S_j - √S_(j+1) is at most √(S_j - S_(j+1)) = N_j, so the sum is at most L + 1. As λ_i >=
λ_j = √S_j >= N_j for i <= j, V_j is at most N_j² (1/N_j) / N_j = 1 in the unit in which the price
is that sum; at price 1 it is at most L + 1.

Trees whose nodes have different numbers of children have no such symmetry, and no closed form of
the optimum is known to us. The shares are those of the mean degrees, N_j = n_L / n_j. Privacy and
estimates do not depend on that. The promise that no level is worse than a measurement of its own is
checked on the tree itself, with exact variances; where it fails, all levels have equal shares, for
which it holds, since least squares is no worse than a node's own measurement.

Source: Hay, Rastogi, Miklau, Suciu 2010, arXiv:0904.0942, for trees of one degree with equal
        shares; Xiao, He, Zhang,
Kifer 2023, arXiv:2305.08175, for such a proof with marginals. The shares of levels and their
optimum are ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpframe.theory.formulas.trees import Levels, moved_parts


def normal_shares(tree: Levels, squares: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """The part of ρ (or μ²) of each level, in any unit; 0 for a level that is not measured.

    Input:  tree; squares: π_j, the squared l2 of the change of each level, above 0 (any unit)
    Bound:  see above: the least sum of the levels' mean variances where degrees are equal; and on
            every tree no level has a larger mean variance than with an equal part of the price and
            its own measurement alone

    >>> shares = normal_shares(Levels((np.array([0]),), 3), [Fraction(1), Fraction(1)])
    >>> round(float(shares[0] / sum(shares)), 4)  # (√10 - 1)/3 of (√10 - 1)/3 + 1
    0.4189
    """
    leaves, prices = tree.mean_leaves, [float(square) for square in squares]
    tails = np.cumsum([n**2 for n in reversed(leaves)])[::-1]
    before = [0.0, *(1 / n for n in leaves[:-1])]
    blocks: list[tuple[float, float, int]] = []  # Σ c, Σ q and how many levels, of merged levels
    for level, n in enumerate(leaves):
        price_before = prices[level - 1] * before[level] if level else 0.0
        block = ((1 / n - before[level]) * float(tails[level]), prices[level] / n - price_before, 1)
        while blocks and block[0] * blocks[-1][1] >= blocks[-1][0] * block[1]:
            above = blocks.pop()
            block = (above[0] + block[0], above[1] + block[1], above[2] + block[2])
        blocks.append(block)
    rates = [math.sqrt(c / q) for c, q, number in blocks for _ in range(number)]
    below = [*rates[1:], 0.0]
    shares = [
        Fraction(price * max(rate - rate_below, 0.0) / n)
        for price, rate, rate_below, n in zip(prices, rates, below, leaves, strict=True)
    ]
    relative = [
        math.inf if not share else float(sum(shares) * square / share)
        for share, square in zip(shares, squares, strict=True)
    ]
    return tuple(shares) if _no_worse(tree, relative, prices) else (Fraction(1),) * len(leaves)


def pure_shares(tree: Levels, sizes: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """The part of ε of each level for Laplace noise, in any unit;
    0 for a level that is not measured.

    Input:  tree; sizes: ℓ_j, the l1 of the change of each level, above 0 (any unit)
    Bound:  parts in sixtieths, moved one at a time between levels as long as that makes the sum of
            the levels' mean variances smaller (on a tree of the mean degrees); no level may become
            worse than with an equal part and its own measurement alone. The variance of Laplace
            noise goes with the square of its part, so that there is no closed form

    The total of three leaves is best taken from the leaves, that of a hundred needs a measurement
    of its own.

    >>> for leaves in (3, 100):
    ...     print(*pure_shares(Levels((np.array([0]),), leaves), [Fraction(1), Fraction(1)]))
    0 1
    1/2 1/2
    """
    leaves, squares = tree.mean_leaves, [float(size) ** 2 for size in sizes]
    before = [0.0, *(1 / n for n in leaves[:-1])]

    def relative(parts: Sequence[int]) -> list[float]:
        whole = sum(parts)
        return [
            math.inf if not part else square * (whole / part) ** 2
            for part, square in zip(parts, squares, strict=True)
        ]

    def error(parts: Sequence[int]) -> float:
        precision = [n / variance for n, variance in zip(leaves, relative(parts), strict=True)]
        rates = np.cumsum(precision[::-1])[::-1]
        steps = np.cumsum(
            [(1 / n - b) / rate for n, b, rate in zip(leaves, before, rates, strict=True)]
        )
        mean = [n**2 * float(step) for n, step in zip(leaves, steps, strict=True)]
        equal = [square * len(leaves) ** 2 for square in squares]
        fair = all(
            variance <= most * (1 + 1e-12) for variance, most in zip(mean, equal, strict=True)
        )
        return sum(mean) if fair else math.inf

    parts = moved_parts(len(leaves), error)
    fair = _no_worse(tree, relative(parts), [square * len(leaves) for square in squares])
    return (
        tuple(Fraction(part, sum(parts)) for part in parts)
        if fair
        else (Fraction(1),) * len(leaves)
    )


def _no_worse(tree: Levels, variances: Sequence[float], squares: Sequence[float]) -> bool:
    """Whether no level has a larger mean variance than its own measurement
    at an equal part of the price.
    """
    means = [float(level.mean()) for level in tree.variances(variances)]
    return all(
        mean <= len(squares) * square * (1 + 1e-12)
        for mean, square in zip(means, squares, strict=True)
    )
