"""Shares and least squares of hierarchies: against matrices, a search, and
bounds that hold for any mechanism.
"""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dpframe.errors import InvalidArgument
from dpframe.theory.formulas.error import log_concave_error, normal_error, unimodal_error
from dpframe.theory.formulas.hierarchies import normal_shares, pure_shares
from dpframe.theory.formulas.trees import Forest, Levels

ONE = Fraction(1)


def tree_of(*levels):
    """A tree from the numbers of children of the nodes of each level."""
    first = tuple(
        np.concatenate([[0], np.cumsum(children)[:-1]]).astype(np.int64) for children in levels
    )
    return Levels(first, int(sum(levels[-1])))


def even(*degrees):
    nodes, levels = 1, []
    for degree in degrees:
        levels.append([degree] * nodes)
        nodes *= degree
    return tree_of(*levels)


UNEVEN = tree_of([3], [1, 4, 2], [2, 1, 5, 1, 3, 1, 7])
TREES = [even(2), even(2, 3), even(5, 1, 2), UNEVEN, even(1, 1), tree_of([2], [1, 30])]


def sums(tree):
    """For each level the matrix that adds up leaves."""
    matrices = [np.eye(tree.leaves)]
    for level in range(len(tree.first) - 1, -1, -1):
        matrices.append(tree.up(matrices[-1], level))
    return matrices[::-1]


def covariances(tree, variances):
    """The covariance of the best estimates of each level, by matrices."""
    information = sum(
        a.T @ a / s for a, s in zip(sums(tree), variances, strict=True) if not math.isinf(s)
    )
    inverse = np.linalg.inv(information)
    return [a @ inverse @ a.T for a in sums(tree)]


def means(tree, shares, squares):
    """The mean variance of each level if these shares of a price of 1 are spent."""
    whole = sum(shares)
    variances = [
        math.inf if not share else float(square * whole / share)
        for share, square in zip(shares, squares, strict=True)
    ]
    return [float(level.mean()) for level in tree.variances(variances)]


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("unmeasured", [(), (0,), (1,)])
def test_estimates_and_variances_are_those_of_matrices_and_of_forest(tree, unmeasured):
    rng = np.random.default_rng(1)
    variances = [
        math.inf if j in unmeasured and j < len(tree.first) else 1.0 + j / 3
        for j in range(len(tree.sizes))
    ]
    noisy = [rng.normal(size=(size, 2)) for size in tree.sizes]
    found = tree.estimates(noisy, variances)
    weights = [0.0 if math.isinf(s) else 1 / s for s in variances]
    information = sum(w * a.T @ a for a, w in zip(sums(tree), weights, strict=True))
    leaves = np.linalg.solve(
        information, sum(w * a.T @ y for a, w, y in zip(sums(tree), weights, noisy, strict=True))
    )
    for a, level, squares, covariance in zip(
        sums(tree), found, tree.variances(variances), covariances(tree, variances), strict=True
    ):
        assert np.allclose(level, a @ leaves)
        assert np.allclose(squares, np.diag(covariance))
    order = [(j, i) for j in range(len(tree.sizes) - 1, -1, -1) for i in range(tree.sizes[j])]
    parent = {
        (j + 1, i): (j, int(p))
        for j in range(len(tree.first))
        for i, p in enumerate(tree.down(np.arange(tree.sizes[j]), j))
    }
    forest = Forest(
        tuple(order.index(parent[node]) if node in parent else -1 for node in order),
        tuple(variances[j] for j, _ in order),
    )
    same = forest.estimates(np.array([noisy[j][i] for j, i in order]))
    assert np.allclose(same, np.array([found[j][i] for j, i in order]))


@pytest.mark.parametrize("tree", TREES)
def test_movements_of_measurements_move_estimates_by_at_most_their_reach(tree):
    rng = np.random.default_rng(2)
    variances, steps = (
        [1.0, 2.0, 0.5, 1.0][: len(tree.sizes)],
        [0.5, 0.25, 1.0, 0.5][: len(tree.sizes)],
    )
    reach = tree.reach(variances, steps)
    for _ in range(50):
        moved = [
            s * rng.choice([-1.0, 1.0], (size, 1))
            for s, size in zip(steps, tree.sizes, strict=True)
        ]
        for found, most in zip(tree.estimates(moved, variances), reach, strict=True):
            assert np.all(np.abs(found.ravel()) <= most + 1e-12)
    ones = tree.estimates(
        [np.full((size, 1), s) for s, size in zip(steps, tree.sizes, strict=True)], variances
    )
    assert np.allclose(tree.up(ones[-1], len(tree.first) - 1), ones[-2])


@pytest.mark.parametrize("tree", [even(2), even(7), even(2, 3), even(4, 4, 2), even(3, 2, 5)])
def test_shares_of_even_trees_are_the_optimum_over_all_gaussian_mechanisms(tree):
    """Weak duality: tr(M Γ⁻¹) is at least (tr √M)² / n for every Γ
    whose largest diagonal entry is 1.
    """
    total = sum(a.T @ a / len(a) for a in sums(tree))
    bound = np.sqrt(np.linalg.eigvalsh(total).clip(0)).sum() ** 2 / tree.leaves
    squares = [ONE] * len(tree.sizes)
    assert sum(means(tree, normal_shares(tree, squares), squares)) == pytest.approx(bound, rel=1e-9)
    equal = sum(means(tree, squares, squares))
    assert equal >= bound * (1 + 1e-6)  # the control: other shares are not the optimum


@pytest.mark.parametrize("degree", [2, 3, 10, 1000])
def test_two_levels_of_equal_degree_are_as_worked_out_by_hand(degree):
    """Root and d leaves at price 1: λ_0 = √(d² + 1), λ_1 = 1; 1/s = (λ_0 - 1)/d and 1."""
    tree, squares = even(degree), [ONE, ONE]
    price = 1 + (math.sqrt(degree**2 + 1) - 1) / degree
    root = price * degree / math.sqrt(degree**2 + 1)
    leaf = price * (1 / (degree * math.sqrt(degree**2 + 1)) + 1 - 1 / degree)
    assert means(tree, normal_shares(tree, squares), squares) == pytest.approx([root, leaf])


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("squares", [[1] * 4, [9, 4, 2, 1], [16, 16, 16, 1], [2, 2, 2, 2]])
def test_no_level_is_worse_than_a_release_of_its_own(tree, squares):
    squares = [Fraction(x) for x in squares[: len(tree.sizes)]]
    for found, least in (
        (
            means(tree, normal_shares(tree, squares), squares),
            [len(squares) * float(s) for s in squares],
        ),
        (
            [
                float(level.mean())
                for level in tree.variances(
                    [
                        math.inf if not share else float(s / share) ** 2
                        for share, s in zip(pure_shares(tree, squares), squares, strict=True)
                    ]
                )
            ],
            [(len(squares) * float(s)) ** 2 for s in squares],
        ),
    ):
        assert all(mean <= most * (1 + 1e-9) for mean, most in zip(found, least, strict=True))


@pytest.mark.parametrize("squares", [[1, 1, 1, 1], [9, 4, 2, 1], [64, 8, 8, 1], [40, 1, 1, 1]])
def test_no_other_shares_are_better_on_even_trees(squares):
    """Moves of a tenth of any share make the sum of the levels' mean variances
    larger, for squares as limits allow.
    """
    tree = even(8, 5, 2)
    squares = [Fraction(min(s, squares[-1] * 80 // 1)) for s in squares]
    shares = [float(share) for share in normal_shares(tree, squares)]
    best = sum(means(tree, shares, squares))
    rng = np.random.default_rng(3)
    for _ in range(200):
        other = [max(share, sum(shares) * 1e-3) * math.exp(rng.normal() / 5) for share in shares]
        assert sum(means(tree, other, squares)) >= best * (1 - 1e-9)


def test_shares_of_uneven_trees_are_near_a_bound_on_every_gaussian_mechanism():
    rng = np.random.default_rng(4)
    worst = 0.0
    for _ in range(20):
        regions = rng.integers(1, 9, 4).tolist()
        tree = tree_of([4], regions, rng.integers(1, 12, sum(regions)).tolist())
        squares = [ONE] * 4
        total = sum(a.T @ a / len(a) for a in sums(tree))
        bound = np.sqrt(np.linalg.eigvalsh(total).clip(0)).sum() ** 2 / tree.leaves
        worst = max(worst, sum(means(tree, normal_shares(tree, squares), squares)) / bound)
    assert 1 <= worst < 1.25, worst


def test_shares_of_laplace_noise_are_no_worse_than_equal_ones():
    for tree in TREES:
        sizes = [ONE] * len(tree.sizes)
        shares = pure_shares(tree, sizes)
        found, equal = (
            sum(
                float(level.mean())
                for level in tree.variances(
                    [math.inf if not e else float(1 / e) ** 2 for e in parts]
                )
            )
            for parts in (shares, [Fraction(1, len(sizes))] * len(sizes))
        )
        assert found <= equal * (1 + 1e-9)
        assert sum(shares) == 1 or shares == (ONE,) * len(sizes)


@pytest.mark.parametrize(
    ("first", "leaves"), [(([0, 1],), 3), (([1],), 3), (([0], [0, 0]), 3), (([0], [0, 3]), 3)]
)
def test_what_is_no_tree_is_refused(first, leaves):
    with pytest.raises(InvalidArgument):
        Levels(tuple(np.array(one) for one in first), leaves)


def test_totals_do_not_wrap():
    tree = even(2, 2)
    found = tree.totals(np.full((4, 1), 2**62, np.int64))
    assert found[0].tolist() == [[2**64]]
    assert all(
        np.array_equal(tree.up(below, i), above) for i, (above, below) in enumerate(pairwise(found))
    )


def test_a_sum_of_laplace_noises_exceeds_its_error_as_rarely_as_told():
    """One noise has the exact tail exp(-e/b), two equal ones exp(-e/b)(1 + e/2b).
    The bound is 12% above one.
    """
    for alpha in (0.5, 0.1, 0.05, 1e-3, 1e-9):
        error = log_concave_error(math.sqrt(2), alpha)
        assert math.exp(-error) <= alpha * (1 + 1e-12)
        error = log_concave_error(2.0, alpha)
        assert math.exp(-error) * (1 + error / 2) <= alpha * (1 + 1e-12)
        assert (
            normal_error(1.0, alpha) <= log_concave_error(1.0, alpha) <= unimodal_error(1.0, alpha)
        )
    assert log_concave_error(math.sqrt(2), 0.05) / -math.log(0.05) < 1.12
