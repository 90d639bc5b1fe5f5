"""Many marginals of one table in one release: the noisy totals, their variances,
and the variance of each cell.

The table has a column for each of d attributes, with m_1, …, m_d keys. Let v be the vector of its
totals, one integer on some grid for each combination of keys; it is never built. For a set A of
attributes, v_A is the marginal, summed over all other attributes. The workload W is a list of sets
of attributes; its closure is the list of all their subsets.

Interactions. On the keys of one attribute let J be the matrix of ones, and D = I - J/m the
projection that subtracts the mean. D_B is the Kronecker product of D over B. The interaction of B
is D_B v_B: the part of the marginal of B that its own marginals do not determine. Each interaction
in the closure is measured once, with noise, and all marginals are computed from these. With Sub =
[1 | -I], (m - 1) by m, and C_B the Kronecker product of Sub over B (`noise.contrasts`), the noisy
numbers are

    N_B = C_B v_B + ⌊C_B Z_B + 1/2⌋

with Z_B independent real normals of standard deviation σ_B, one for each cell of v_B.

Privacy. (1) C_B v_B is a vector of integers, so N_B = ⌊C_B (v_B + Z_B) + 1/2⌋, which is
post-processing of real noise. (2) Sub maps constants to 0, so Sub = Sub D. It loses nothing else,
so D = Sub⁺ Sub. Hence C_B (v_B + Z_B) and D_B (v_B + Z_B) are functions of each other. (3) D_B Z_B
is normal with covariance σ_B² D_B: white noise inside the range of the projection. If neighbouring
tables differ by Δ in v, they differ there by D_B Δ_B. So this is a Gaussian mechanism with μ = |D_B
Δ_B| / σ_B. With independent noise, all of them together are one Gaussian mechanism with μ² = Σ_B
|D_B Δ_B|² / σ_B² (Dong, Roth, Su 2019, arXiv:1905.02383, corollary 2). Its ρ is μ²/2, and its (ε,
δ) is given by the analytic profile, without a correction. (4) One row of weight 1 in a cell c has
|D_B e_c|² = Π_B (m - 1)/m =: p_B for every cell c, since it is a diagonal entry of the projection.
Let the rows of a unit have weights that add up to at most K; the weights need not be integers, and
the rows may lie in several cells. The unit moves v by Δ = Σ_c d_c e_c with Σ_c |d_c| <= K. By the
triangle inequality |D_B Δ_B| <= Σ_c |d_c| |D_B e_c| <= K √p_B, hence μ² <= K² Σ_B p_B / σ_B². A
unit with all rows in one cell attains this bound for every B at once.

Under replace one unit's rows leave and another's enter. Δ is a sum of at most K steps in all; each
step leads from one cell to another, or from no cell to one. A step from c to c' has |D_B (e_c -
e_c')|² = 2 p_B - 2 D_B[c, c']. The entry D_B[c, c'] is the product of 1 - 1/m over the attributes
in which c and c' agree, and of -1/m over those in which they differ. Its smallest value is -p_B /
(m - 1): the two cells then differ in one attribute only, the one of B with the fewest keys m. So
under replace p_B becomes 2 p_B m / (m - 1), which is 2 to 4 times as much. For the total, which no
step from cell to cell changes, p_B stays 1.

Estimates. The identity I = Π (D + J/m) shows that v_A is the sum over all subsets B of A of D_B
v_B, spread evenly over the keys of the attributes in A that are not in B. The estimate uses C_B⁺
N_B in place of D_B v_B. It is unbiased, up to the rounding of the grid. It is also consistent:
summing over an attribute removes the terms whose B has it, and leaves the estimate of the smaller
marginal, so all tables agree on it. A cell has variance

    Σ over B in A of σ_B² Π_B (m - 1)/m Π_{A less B} 1/m².

Optimum. The sum of the variances of all cells of all tables of W is Σ_B c_B σ_B², where c_B is the
sum over the A in W that contain B of Π_B (m - 1) Π_{A less B} 1/m. If Σ_B p_B / σ_B² <= β, this sum
is at least (Σ_B √(p_B c_B))² / β by Cauchy and Schwarz. It is attained where p_B / σ_B² is
proportional to √(p_B c_B): these are the shares. No Gaussian mechanism with other queries does
better. Let Γ be the information of a mechanism (Q' Σ⁻¹ Q of its queries Q). The sum of variances of
the best unbiased estimates is tr(W Γ⁻ W'), which is convex in Γ. The price of one row is the
largest diagonal entry of Γ, which is convex too. Neither changes when the keys of an attribute are
renamed. So Γ may be replaced by its mean over all renamings, which commutes with them. The
renamings of an attribute split its functions into constants and the range of D, each irreducible.
By Schur's lemma the mean is therefore Σ_B λ_B D_B ⊗ (J/m elsewhere): independent white noise on
interactions, which is the family that was optimized above.

Source: the mechanism is ResidualPlanner, Xiao, He, Zhang, Kifer 2023, arXiv:2305.08175. The
        arguments for rounded noise
and for units with several rows are ours. An attribute with one key has no interactions.
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

Attributes = tuple[int, ...]  # the positions of attributes, in increasing order


def closure(workload: Sequence[Attributes], sizes: Sequence[int]) -> tuple[Attributes, ...]:
    """The sets of attributes whose interactions are measured:
    the workload's subsets without one-key attributes.

    >>> closure([(0, 1)], [3, 4]), closure([(0, 1)], [3, 1])
    (((), (0,), (1,), (0, 1)), ((), (0,)))
    """
    subsets = {
        part for table in workload for n in range(len(table) + 1) for part in combinations(table, n)
    }
    varying = (part for part in subsets if all(sizes[i] > 1 for i in part))
    return tuple(sorted(varying, key=lambda part: (len(part), part)))


def interaction(sizes: Sequence[int], rows: int, relation: Relation) -> Sensitivity:
    """The distance by which one unit moves the interaction D_B v_B of a marginal.

    Input:  sizes: how many keys each attribute of B has, at least 2; rows: the largest total weight
            of a unit's rows, K
    Output: Sensitivity (rows), exact; its l2² is K²·p_B, under replace with the p_B of replace
    Bound:  one row adds the column of D_B that belongs to its cell: in every attribute 1 - 1/m at
            its own key and -1/m at every other key. The difference of two columns is at most p_B m
            / (m - 1) in a cell. For several rows the bound follows from the triangle inequality;
            see above
    Source: ours
    Errors: none here

    >>> interaction([2, 2], 1, "add-remove")
    Sensitivity(l0=4, l1=1, l2=0.5, linf=0.25)
    """
    retention = math.prod((Fraction(m - 1, m) for m in sizes), start=Fraction(1))
    l1, largest = 2 ** len(sizes) * retention, retention
    if relation == Relation.REPLACE and sizes:
        l1, largest = 2 * l1, retention * Fraction(min(sizes), min(sizes) - 1)
    price = _row_price(sizes, relation)
    return Sensitivity.of(
        l0=math.prod(sizes), l1=rows * l1, l2_squared=rows**2 * price, linf=rows * largest
    )


def _row_price(sizes: Sequence[int], relation: Relation) -> Fraction:
    """p_B, exact: the μ² of one row at σ_B = 1; see above for replace."""
    retention = math.prod((Fraction(m - 1, m) for m in sizes), start=Fraction(1))
    return (
        2 * retention * Fraction(min(sizes), min(sizes) - 1)
        if relation == Relation.REPLACE and sizes
        else retention
    )


def shares(
    workload: Sequence[Attributes], sizes: Sequence[int], relation: Relation = Relation.ADD_REMOVE
) -> dict[Attributes, Fraction]:
    """The part of μ² (or of ρ) for each interaction, in any unit: √(p_B c_B); see above.

    Input:  workload: different sets of attributes; sizes: how many keys each attribute has
    Bound:  with these shares the sum of the variances of all cells of the workload is the smallest
            of all Gaussian mechanisms at the price, up to the last bit of a square root. Under
            replace it is the smallest for the upper bound on the price that is used here

    >>> [float(x) for x in shares([(0,)], [4]).values()]
    [0.5, 1.5]
    """
    roots = {}
    for part in closure(workload, sizes):
        price = _row_price([sizes[i] for i in part], relation)
        spread = sum(
            math.prod(
                (Fraction(sizes[i] - 1) if i in part else Fraction(1, sizes[i]) for i in table),
                start=Fraction(1),
            )
            for table in workload
            if set(part) <= set(table)
        )
        roots[part] = Fraction(math.sqrt(price * spread))
    return roots


def cell_variance(
    table: Attributes, sizes: Sequence[int], variances: Mapping[Attributes, float]
) -> float:
    """Variance of a cell of a marginal, from the variance σ_B² of each
    interaction's noise: see above.

    >>> cell_variance((0,), [2], {(): 4.0, (0,): 6.0})
    4.0
    """
    return math.fsum(
        variances[part]
        * math.prod((sizes[i] - 1) / sizes[i] if i in part else 1 / sizes[i] ** 2 for i in table)
        for part in _inside(table, variances)
    )


def rounding_reach(table: Attributes, sizes: Sequence[int]) -> float:
    """The largest error in a cell that rounding the contrasts to their grid can cause (grid steps).

    Bound:  rounding moves each contrast by at most half a step. The absolute values of a row of
            Sub⁺ add up to at most (2m - 3)/m, below 2. So all interactions of a table together move
            a cell by at most 1/2 Π (2 + 1/m)

    >>> rounding_reach((), [])
    0.5
    """
    return 0.5 * math.prod(2 + 1 / sizes[i] for i in table)


def marginal(
    table: Attributes, sizes: Sequence[int], contrasts: Mapping[Attributes, NDArray[np.generic]]
) -> Floats:
    """The estimate of a marginal from the noisy contrasts N_B of all its subsets B: see above.

    Input:  contrasts: for each B an array whose axis for each attribute of B has length m - 1
    Output: an array whose axis for each attribute of the table has length m, in the unit of the
            contrasts

    >>> marginal((0,), [2], {(): np.array(10.0), (0,): np.array([4.0])})
    array([7., 3.])
    """
    total = np.zeros([sizes[i] for i in table])
    for part in _inside(table, contrasts):
        total += _spread(_interactions(np.asarray(contrasts[part], np.float64)), part, table, sizes)
    return total


def _inside(table: Attributes, parts: Collection[Attributes]) -> list[Attributes]:
    """The sets of attributes among `parts` that are subsets of a table's attributes."""
    subsets = (part for n in range(len(table) + 1) for part in combinations(sorted(table), n))
    return [part for part in subsets if part in parts]


def _interactions(values: Floats) -> Floats:
    """C⁺ times contrasts: along every axis, from differences to the first
    key to differences from the mean.
    """
    for axis in range(values.ndim):
        first = values.sum(axis=axis, keepdims=True) / (values.shape[axis] + 1)
        values = np.concatenate([first, first - values], axis=axis)
    return values


def _spread(values: Floats, part: Attributes, table: Attributes, sizes: Sequence[int]) -> Floats:
    """An interaction, spread evenly over the keys of the other attributes of a table."""
    shape = [sizes[i] if i in part else 1 for i in table]
    return values.reshape(shape) / math.prod(sizes[i] for i in table if i not in part)
