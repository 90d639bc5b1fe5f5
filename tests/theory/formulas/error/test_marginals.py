"""Marginals through their interactions: the cost of a row, the estimates,
their variance, and the optimum.
"""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from dpframe.noise import contrasts
from dpframe.theory.formulas.error import (
    cell_variance,
    interaction,
    marginal,
    rounding_reach,
    shares,
)
from dpframe.theory.formulas.error.marginals import closure

WORKLOADS = [
    ([(0,)], [4]),
    ([(0,), (1,)], [3, 2]),
    ([(0, 1)], [3, 4]),
    ([(0, 1), (2,)], [2, 3, 2]),
    ([(0, 1), (1, 2), (0, 2)], [2, 3, 4]),
    ([(0, 1, 2)], [2, 1, 3]),
    ([(0,), (0, 1)], [5, 1]),
]


def projection(sizes, part):
    """D on the attributes of a part, sums over the others:
    from all cells to the interaction of the part.
    """
    whole = np.ones((1, 1))
    for i, m in enumerate(sizes):
        one = np.eye(m) - np.ones((m, m)) / m if i in part else np.ones((1, m))
        whole = np.kron(whole, one)
    return whole


def optimal(workload, sizes, budget=1.0):
    """σ_B² at the shares, with Σ p_B / σ_B² = budget."""
    weights = {part: float(share) for part, share in shares(workload, sizes).items()}
    whole = sum(weights.values())
    price = {part: math.prod((sizes[i] - 1) / sizes[i] for i in part) for part in weights}
    return {part: price[part] * whole / (weights[part] * budget) for part in weights}


def sum_of_variances(workload, sizes, variances):
    return sum(
        math.prod(sizes[i] for i in t) * cell_variance(t, sizes, variances) for t in workload
    )


@pytest.mark.parametrize("sizes", [[], [2], [5], [2, 3], [3, 2, 4], [4, 3, 5]])
def test_a_row_moves_an_interaction_by_its_sensitivity_whichever_cell_it_is_in(sizes):
    columns = projection(sizes, range(len(sizes))).T
    bound = interaction(sizes, 1, "add-remove")
    for column in columns:
        assert np.count_nonzero(column) == bound.l0
        assert math.isclose(np.abs(column).sum(), bound.l1)
        assert math.isclose((column**2).sum(), bound.l2_squared)
        assert math.isclose(np.abs(column).max(), bound.linf)
    moves = [*columns, *(one - other for one, other in combinations(columns, 2))]
    bound = interaction(sizes, 1, "replace")
    assert math.isclose(max((move**2).sum() for move in moves), bound.l2_squared)  # attained
    assert math.isclose(max(np.abs(move).max() for move in moves), bound.linf)
    assert max(np.abs(move).sum() for move in moves) <= bound.l1 * (1 + 1e-12)


@pytest.mark.parametrize(("workload", "sizes"), WORKLOADS)
@pytest.mark.parametrize(("relation", "rows"), [("add-remove", 3), ("replace", 2)])
def test_a_unit_s_rows_cost_at_most_their_number_squared_times_one_row(
    workload, sizes, relation, rows
):
    rng = np.random.default_rng(7)
    variances = optimal(workload, sizes)
    bounds = {part: interaction([sizes[i] for i in part], rows, relation) for part in variances}
    claimed = sum(float(bound.l2_squared) / variances[part] for part, bound in bounds.items())
    projections = {part: projection(sizes, part) for part in variances}
    cells = math.prod(sizes)
    largest = 0.0
    for trial in range(300):
        came, went = (
            rng.dirichlet(np.full(cells, rng.choice([0.05, 1.0]))) * rows * rng.choice([0.3, 1.0])
            for _ in range(2)
        )
        if trial % 3 == 0:
            came, went = (rows * np.eye(cells)[rng.integers(cells)] for _ in range(2))
        change = came - went if relation == "replace" else came
        moved = {part: projections[part] @ change for part in variances}
        for part, move in moved.items():
            assert (move**2).sum() <= bounds[part].l2_squared * (1 + 1e-12)
        cost = sum((move**2).sum() / variances[part] for part, move in moved.items())
        largest = max(largest, cost)
    assert largest <= claimed * (1 + 1e-12)
    if relation == "add-remove":
        assert math.isclose(claimed, rows**2)  # of a budget of 1 for one row
        assert math.isclose(largest, claimed)  # all rows in one cell attain it
    assert claimed <= rows**2 * (4 if relation == "replace" else 1) * (1 + 1e-12)


def exact(table, workload, sizes):
    """Contrasts of every interaction of a table without noise."""
    summed = {
        part: table.sum(axis=tuple(i for i in range(len(sizes)) if i not in part))
        for part in closure(workload, sizes)
    }
    return {part: contrasts(np.asarray(values)) for part, values in summed.items()}


@pytest.mark.parametrize(("workload", "sizes"), WORKLOADS)
def test_without_noise_the_estimates_are_the_marginals(workload, sizes):
    table = np.random.default_rng(1).integers(0, 1000, sizes)
    found = exact(table, workload, sizes)
    for one in workload:
        expected = table.sum(axis=tuple(i for i in range(len(sizes)) if i not in one))
        assert np.allclose(marginal(one, sizes, found), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("workload", "sizes"), WORKLOADS)
def test_with_any_noise_the_estimates_agree_where_they_share_columns(workload, sizes):
    rng = np.random.default_rng(2)
    noisy = {
        part: rng.normal(size=[sizes[i] - 1 for i in part]) * 1000
        for part in closure(workload, sizes)
    }
    for one, other in combinations(workload, 2):
        shared = tuple(sorted(set(one) & set(other)))
        sums = [
            marginal(t, sizes, noisy).sum(axis=tuple(k for k, i in enumerate(t) if i not in shared))
            for t in (one, other)
        ]
        assert np.allclose(sums[0], sums[1], rtol=0, atol=1e-8)
        assert np.allclose(sums[0], marginal(shared, sizes, noisy), rtol=0, atol=1e-8)


@pytest.mark.parametrize(("workload", "sizes"), WORKLOADS)
def test_every_cell_has_the_variance_of_the_closed_form(workload, sizes):
    rng = np.random.default_rng(3)
    parts = closure(workload, sizes)
    variances = {part: float(rng.uniform(0.5, 9)) for part in parts}
    for table in [*workload, ()]:
        covariance = np.zeros((math.prod(sizes[i] for i in table),) * 2)
        for part in parts:
            if not set(part) <= set(table):
                continue
            shape = [sizes[i] for i in part]
            moved = []
            for k in range(math.prod(shape)):  # one cell of the noise at a time
                cell = np.zeros(math.prod(shape))
                cell[k] = 1
                only = {b: np.zeros([sizes[i] - 1 for i in b]) for b in parts}
                only[part] = contrasts(cell.reshape(shape))
                moved.append(marginal(table, sizes, only).ravel())
            covariance += variances[part] * np.array(moved).T @ np.array(moved)
        assert np.allclose(np.diag(covariance), cell_variance(table, sizes, variances))


@pytest.mark.parametrize(("workload", "sizes"), WORKLOADS)
def test_rounding_moves_no_cell_further_than_its_reach(workload, sizes):
    parts = closure(workload, sizes)
    for table in workload:
        reach = np.zeros([sizes[i] for i in table])
        for part in (b for b in parts if set(b) <= set(table)):
            for at in product(*(range(sizes[i] - 1) for i in part)):
                only = {b: np.zeros([sizes[i] - 1 for i in b]) for b in parts}
                only[part][at] = 0.5
                reach += np.abs(marginal(table, sizes, only))
        assert reach.max() <= rounding_reach(table, sizes) + 1e-12


def general_optimum(workload, sizes):
    """The least sum of variances over all Gaussian mechanisms at a price
    of 1 for each row, by descent.

    Such a mechanism has an information matrix with ones on its diagonal: products of vectors of
    length 1.
    """
    optimize = pytest.importorskip("scipy.optimize")
    cells = list(product(*map(range, sizes)))
    rows = [
        [float(all(cell[i] == k for i, k in zip(table, key, strict=True))) for cell in cells]
        for table in workload
        for key in product(*(range(sizes[i]) for i in table))
    ]
    gram = np.array(rows).T @ np.array(rows)

    def value(flat):
        given = flat.reshape(len(cells), len(cells))
        lengths = np.linalg.norm(given, axis=1, keepdims=True)
        unit = given / lengths
        inverse = np.linalg.inv(unit @ unit.T + 1e-9 * np.eye(len(cells)))
        slope = -2 * inverse @ gram @ inverse @ unit
        slope = (slope - (slope * unit).sum(axis=1, keepdims=True) * unit) / lengths
        return float(np.trace(inverse @ gram)), slope.ravel()

    start = np.eye(len(cells)) + 0.1 * np.random.default_rng(0).normal(
        size=(len(cells), len(cells))
    )
    return optimize.minimize(
        value, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 2000}
    ).fun


@pytest.mark.parametrize(
    ("workload", "sizes"),
    [
        ([(0,)], [3]),
        ([(0, 1), (1,)], [3, 2]),
        pytest.param([(0,), (1,)], [2, 3], marks=pytest.mark.long),
        pytest.param([(0, 1), (1, 2)], [2, 3, 2], marks=pytest.mark.long),
    ],
)
def test_no_gaussian_mechanism_found_by_search_has_a_smaller_sum_of_variances(workload, sizes):
    ours = sum_of_variances(workload, sizes, optimal(workload, sizes))
    found = general_optimum(workload, sizes)
    assert 0.999 * ours <= found
    assert found <= 1.001 * ours, "the search did not end"


@pytest.mark.parametrize(("workload", "sizes"), WORKLOADS)
def test_the_sum_of_variances_is_the_bound_of_cauchy_and_schwarz(workload, sizes):
    weights = shares(workload, sizes)
    ours = sum_of_variances(workload, sizes, optimal(workload, sizes))
    assert math.isclose(ours, float(sum(weights.values())) ** 2, rel_tol=1e-12)


def test_equal_shares_are_no_optimum():
    workload, sizes = [(0, 1), (1, 2), (0, 2)], [2, 3, 40]
    parts = closure(workload, sizes)
    price = {part: math.prod(Fraction(sizes[i] - 1, sizes[i]) for i in part) for part in parts}
    equal = {part: float(price[part] * len(parts)) for part in parts}
    ours = sum_of_variances(workload, sizes, optimal(workload, sizes))
    assert sum_of_variances(workload, sizes, equal) > 1.5 * ours


def test_one_table_alone_is_measured_as_its_cells_would_be():
    sizes = [3, 4]
    variances = optimal([(0, 1)], sizes, budget=0.5)
    # white noise of 1/σ² = 0.5 on each cell
    assert math.isclose(cell_variance((0, 1), sizes, variances), 2.0)
    assert math.isclose(cell_variance((), sizes, variances), 24.0)
