"""Many marginals of one table in one release: what is measured, with how much noise, and how exact each cell then is.

The table has a column for each of d attributes, with m_1, …, m_d keys, and v is the vector of its totals: integers, on
some grid, one for each combination of keys. It is never built. For a set A of attributes v_A is the marginal, summed
over all others; the workload W is a list of such sets, and its closure all their subsets.

Interactions. On the keys of one attribute let J be the matrix of ones, D = I - J/m the projection that takes the mean
out. D_B is the product of D over B: D_B v_B, the interaction of B, is what the marginal of B says beyond its own
marginals. It is measured for every B in the closure, once, and all marginals are made of these. With Sub = [1 | -I],
(m - 1) by m, and C_B the product of Sub over B (`noise.contrasts`), the numbers that are drawn and kept are

    N_B = C_B v_B + ⌊C_B Z_B + 1/2⌋,   Z_B independent real normals of standard deviation σ_B, one for each cell of v_B.

Privacy. (1) C_B v_B is a vector of integers, so N_B = ⌊C_B (v_B + Z_B) + 1/2⌋: post-processing of real noise. (2) Sub
maps constants to 0, so Sub = Sub D, and loses nothing else, so D = Sub⁺ Sub: C_B (v_B + Z_B) and D_B (v_B + Z_B) are
functions of each other. (3) D_B Z_B is normal with covariance σ_B² D_B, that of white noise inside the range of the
projection, where neighbouring tables, which differ by Δ in v, differ by D_B Δ_B. So this is a Gaussian mechanism with
μ = |D_B Δ_B| / σ_B, and all together, with independent noise, one with μ² = Σ_B |D_B Δ_B|² / σ_B² (Dong, Roth, Su 2019,
arXiv:1905.02383, corollary 2): ρ = μ²/2, and (ε, δ) by the analytic profile, with no correction. (4) One row of weight
1 in one cell c has |D_B e_c|² = Π_B (m - 1)/m =: p_B, whichever cell it is: the diagonal of a projection. A unit whose
rows weigh K in all, integers or not, in one cell or in many, moves v by Δ = Σ_c d_c e_c with Σ_c |d_c| <= K, so
|D_B Δ_B| <= Σ_c |d_c| |D_B e_c| <= K √p_B by the triangle inequality, hence μ² <= K² Σ_B p_B / σ_B². All of its rows in
one cell attain it, for every B at once.

Under replace one unit's rows go and another's come: Δ is a sum of at most K steps in all, from one cell to another or
from none to one. A step from c to c' has |D_B (e_c - e_c')|² = 2 p_B - 2 D_B[c, c']. That entry is the product of
1 - 1/m over the attributes where they agree and of -1/m over those where they differ; its least value, -p_B / (m - 1),
is that of a difference in one attribute alone, the one of B with the fewest keys m. So p_B is replaced by
2 p_B m / (m - 1), between 2 and 4 times as much; for the total, which such a step does not move, it stays 1.

Estimates. I = Π (D + J/m) says v_A = Σ over B in A of D_B v_B spread evenly over the keys of A less B. With C_B⁺ N_B
for D_B v_B this is unbiased, up to the rounding of the grid, and consistent: summing over an attribute removes the
terms with it in B and leaves the estimate of the smaller marginal, the same from whichever table. A cell has variance

    Σ over B in A of σ_B² Π_B (m - 1)/m Π_{A less B} 1/m².

Optimum. The sum over all cells of all tables of W is Σ_B c_B σ_B², c_B = Σ over A in W above B of Π_B (m - 1) Π_{A less
B} 1/m. Under Σ_B p_B / σ_B² <= β it is at least (Σ_B √(p_B c_B))² / β by Cauchy and Schwarz, attained where p_B / σ_B²
is proportional to √(p_B c_B): these are the shares. No other Gaussian mechanism does better, whatever its queries: let
Γ be its information (queries' Q' Σ⁻¹ Q). The sum of variances of the best unbiased estimates is tr(W Γ⁻ W'), convex in
Γ, and the price of one row, the largest diagonal entry of Γ, is convex too. Neither changes when the keys of an
attribute are renamed, so Γ may be replaced by its mean over all renamings, which commutes with them. The renamings of
an attribute split its functions into constants and the range of D, each irreducible, so by Schur's lemma this mean is
Σ_B λ_B D_B ⊗ (J/m elsewhere): independent white noise on interactions, which is what was optimized.

Source: the mechanism is ResidualPlanner, Xiao, He, Zhang, Kifer 2023, arXiv:2305.08175; the arguments are written out
for rounded noise and for units with several rows, which are ours. An attribute with one key has no interactions.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import Floats
from dpframe.theory.formulas.sensitivity import Relation, Sensitivity

__all__ = ["Attributes", "cell_variance", "closure", "interaction", "marginal", "rounding_reach", "shares"]

Attributes = tuple[int, ...]  # places of attributes, in order


def closure(workload: Sequence[Attributes], sizes: Sequence[int]) -> tuple[Attributes, ...]:
    """Every set of attributes whose interaction is measured: subsets of the workload's, without attributes of one key.

    >>> closure([(0, 1)], [3, 4]), closure([(0, 1)], [3, 1])
    (((), (0,), (1,), (0, 1)), ((), (0,)))
    """
    subsets = {part for table in workload for n in range(len(table) + 1) for part in combinations(table, n)}
    found = (part for part in subsets if all(sizes[i] > 1 for i in part))
    return tuple(sorted(found, key=lambda part: (len(part), part)))


def interaction(sizes: Sequence[int], rows: int, relation: Relation) -> Sensitivity:
    """How far one unit moves the interaction D_B v_B of a marginal.

    Input:  sizes: how many keys each attribute of B has, at least 2; rows: the most that a unit's rows weigh (count)
    Output: Sensitivity (rows), exact; its l2² is K²·p_B, under replace with the p_B of replace
    Bound:  one row moves the column of D_B at its cell: 1 - 1/m at its own key and -1/m at each other one, in every
            attribute; of two such columns the difference is at most p_B m / (m - 1) in a cell. Several rows: the
            triangle inequality; see above
    Source: ours
    Errors: none here

    >>> interaction([2, 2], 1, "add-remove")
    Sensitivity(l0=4, l1=1, l2=0.5, linf=0.25)
    """
    kept = math.prod((Fraction(m - 1, m) for m in sizes), start=Fraction(1))
    l1, largest = 2 ** len(sizes) * kept, kept
    if relation == "replace" and sizes:
        l1, largest = 2 * l1, kept * Fraction(min(sizes), min(sizes) - 1)
    price = _row_price(sizes, relation)
    return Sensitivity.of(l0=math.prod(sizes), l1=rows * l1, l2_squared=rows**2 * price, linf=rows * largest)


def _row_price(sizes: Sequence[int], relation: Relation) -> Fraction:
    """p_B, exact: what one row costs at σ_B = 1; see above for replace."""
    kept = math.prod((Fraction(m - 1, m) for m in sizes), start=Fraction(1))
    return 2 * kept * Fraction(min(sizes), min(sizes) - 1) if relation == "replace" and sizes else kept


def shares(
    workload: Sequence[Attributes], sizes: Sequence[int], relation: Relation = "add-remove"
) -> dict[Attributes, Fraction]:
    """The part of μ² (or of ρ) that each interaction is given, in any unit: √(p_B c_B); see above.

    Input:  workload: different sets of attributes; sizes: how many keys each attribute has
    Bound:  for these the sum of the variances of all cells of the workload is the least of all Gaussian mechanisms at
            the price, but for the last bit of a root; under replace, the least at the bound on the price that is used

    >>> [float(x) for x in shares([(0,)], [4]).values()]
    [0.5, 1.5]
    """
    found = {}
    for part in closure(workload, sizes):
        price = _row_price([sizes[i] for i in part], relation)
        spread = sum(
            math.prod(
                (Fraction(sizes[i] - 1) if i in part else Fraction(1, sizes[i]) for i in table), start=Fraction(1)
            )
            for table in workload
            if set(part) <= set(table)
        )
        found[part] = Fraction(math.sqrt(price * spread))
    return found


def cell_variance(table: Attributes, sizes: Sequence[int], variances: Mapping[Attributes, float]) -> float:
    """Variance of a cell of a marginal, from the variance σ_B² of each interaction's noise: see above.

    >>> cell_variance((0,), [2], {(): 4.0, (0,): 6.0})
    4.0
    """
    return math.fsum(
        variances[part] * math.prod((sizes[i] - 1) / sizes[i] if i in part else 1 / sizes[i] ** 2 for i in table)
        for part in _inside(table, variances)
    )


def rounding_reach(table: Attributes, sizes: Sequence[int]) -> float:
    """How far rounding the contrasts to their grid moves a cell at most (grid steps).

    Bound:  half a step for each contrast; a row of Sub⁺ adds up to (2m - 3)/m or less in absolute values, below 2, so
            all parts of a table give at most 1/2 Π (2 + 1/m)

    >>> rounding_reach((), [])
    0.5
    """
    return 0.5 * math.prod(2 + 1 / sizes[i] for i in table)


def marginal(table: Attributes, sizes: Sequence[int], contrasts: Mapping[Attributes, NDArray[np.generic]]) -> Floats:
    """The estimate of a marginal from the noisy contrasts N_B of every B in it: see above.

    Input:  contrasts: for each B an array of (m - 1 for each attribute of B)
    Output: an array of (m for each attribute of the table), in their unit

    >>> marginal((0,), [2], {(): np.array(10.0), (0,): np.array([4.0])})
    array([7., 3.])
    """
    total = np.zeros([sizes[i] for i in table])
    for part in _inside(table, contrasts):
        total += _spread(_interactions(np.asarray(contrasts[part], np.float64)), part, table, sizes)
    return total


def _inside(table: Attributes, parts: Collection[Attributes]) -> list[Attributes]:
    """The parts whose attributes are all in a table."""
    subsets = (part for n in range(len(table) + 1) for part in combinations(sorted(table), n))
    return [part for part in subsets if part in parts]


def _interactions(values: Floats) -> Floats:
    """C⁺ of contrasts: first less each other one, back to differences from the mean, along every axis."""
    for axis in range(values.ndim):
        first = values.sum(axis=axis, keepdims=True) / (values.shape[axis] + 1)
        values = np.concatenate([first, first - values], axis=axis)
    return values


def _spread(values: Floats, part: Attributes, table: Attributes, sizes: Sequence[int]) -> Floats:
    """An interaction, spread evenly over the keys of the other attributes of a table."""
    shape = [sizes[i] if i in part else 1 for i in table]
    return values.reshape(shape) / math.prod(sizes[i] for i in table if i not in part)
