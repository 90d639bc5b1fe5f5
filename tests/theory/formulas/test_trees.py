"""Least squares on trees: held against solving the normal equations, for
trees of any degrees and variances.
"""

import random

import numpy as np
import pytest

from dpframe import errors
from dpframe.theory.formulas.trees import Forest


def random_forest(rng):
    """Parents of a few nodes: each inner node takes some of those that have none yet."""
    parents, free = [], []
    for _ in range(rng.randint(1, 12)):
        parents.append(-1)
        if len(free) > 1 and rng.random() < 0.5:
            for child in rng.sample(free, rng.randint(1, len(free))):
                parents[child] = len(parents) - 1
                free.remove(child)
        free.append(len(parents) - 1)
    inner = set(parents)
    variances = [
        float("inf") if node in inner and rng.random() < 0.2 else rng.choice([0.5, 1.0, 3.0, 9.0])
        for node in range(len(parents))
    ]
    return Forest(tuple(parents), tuple(variances))


def design(forest):
    """Leaves by number, and the matrix of which leaves make up each node."""
    leaves = [node for node in range(len(forest.parents)) if node not in forest.parents]
    matrix = np.zeros((len(forest.parents), len(leaves)))
    for place, leaf in enumerate(leaves):
        node = leaf
        while node != -1:
            matrix[node, place] = 1
            node = forest.parents[node]
    return leaves, matrix


def test_estimates_and_variances_are_those_of_the_normal_equations():
    rng, numbers = random.Random(1), np.random.default_rng(1)
    for _ in range(200):
        forest = random_forest(rng)
        leaves, matrix = design(forest)
        precision = np.array([0 if v == np.inf else 1 / v for v in forest.variances])
        values = numbers.normal(0, 10, (len(forest.parents), 3))
        covariance = np.linalg.inv(matrix.T @ (precision[:, None] * matrix))
        solved = covariance @ matrix.T @ (precision[:, None] * values)
        np.testing.assert_allclose(forest.estimates(values), matrix @ solved, atol=1e-9)
        weights = np.zeros((len(forest.parents), 4))
        weights[leaves] = numbers.normal(0, 1, (len(leaves), 4))
        expected = np.einsum("if,ij,jf->f", weights[leaves], covariance, weights[leaves])
        np.testing.assert_allclose(forest.variance(weights), expected, rtol=1e-9)


def test_a_plain_mean_of_children_is_worse_which_the_check_can_see():
    forest = Forest((2, 2, -1), (1.0, 1.0, 1.0))
    assert not np.allclose(
        forest.estimates(np.array([[10.0], [20.0], [36.0]])).ravel(), [13, 23, 36]
    )


def test_totals_that_no_unit_can_move_have_no_noise_to_share():
    forest = Forest((2, 2, -1), (0.0, 0.0, 0.0))
    assert forest.estimates(np.array([[1.0], [2.0], [3.0]])).ravel().tolist() == [1, 2, 3]
    assert forest.variance(np.ones((3, 1))).tolist() == [0]


@pytest.mark.parametrize(
    ("parents", "variances"),
    [
        ((0,), (1.0,)),
        ((-1, 0), (1.0, 1.0)),
        ((-1,), (float("inf"),)),
        ((-1,), ()),
        ((-1,), (-1.0,)),
        ((5,), (1.0,)),
    ],
)
def test_what_is_no_forest_is_refused(parents, variances):
    with pytest.raises(errors.InvalidArgument):
        Forest(parents, variances)
