"""What shared normal noise costs: held against every vector of one unit, and against
the inverse of the covariance.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpframe.noise import GRID
from dpframe.theory.formulas.sensitivity import (
    Contribution,
    best_shared_noise,
    row_counts,
    shared_noise_square,
)

RATIOS = [Fraction(1, 50), Fraction(1, 5), Fraction(1), Fraction(7)]
LIMITS = [
    (4, Contribution(4, 1, 4)),
    (4, Contribution(2, 1, 2)),
    (4, Contribution(3, 2, 5)),
    (4, Contribution(4, 3, 7)),
    (3, Contribution(3, 4, 12)),
    (5, Contribution(5, 2, 3)),
    (2, Contribution(1, 3, 3)),
]


def vectors(cells, limits):
    """Every vector of whole numbers that one unit may add."""
    for vector in itertools.product(range(limits.rows_per_group + 1), repeat=cells):
        if sum(vector) <= limits.rows and sum(map(bool, vector)) <= limits.groups:
            yield vector


def square(vector, ratio):
    """The least (Σ (x - w)² + w² / ratio) over whole steps w of the grid, exact."""
    weight = Fraction(sum(vector)) / (len(vector) + 1 / ratio)
    steps = [Fraction(round_(weight * GRID), GRID) for round_ in (math.floor, math.ceil)]
    return min(sum((x - w) ** 2 for x in vector) + w**2 / ratio for w in steps)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize(("cells", "limits"), LIMITS)
def test_no_vector_of_a_unit_costs_more_and_one_costs_as_much(cells, limits, ratio):
    claim = shared_noise_square(row_counts(limits, "add-remove", cells), cells, ratio)
    worst = max(square(vector, ratio) for vector in vectors(cells, limits))
    assert worst <= claim <= worst * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize("ratio", RATIOS)
def test_it_is_the_loss_of_normal_noise_with_this_covariance(ratio):
    """v'·S⁻¹·v of the worst vector, for real noise of covariance S = 1 +
    ratio: the grid adds less than 1e-6.
    """
    cells, limits = 4, Contribution(3, 2, 5)
    inverse = np.linalg.inv(np.eye(cells) + float(ratio))
    worst = max(float(np.array(v) @ inverse @ v) for v in vectors(cells, limits))
    claim = shared_noise_square(row_counts(limits, "add-remove", cells), cells, ratio)
    assert float(claim) == pytest.approx(worst, rel=1e-6)


def test_more_groups_than_the_limit_would_cost_more():
    """Negative control: the square of 3 groups does not cover a unit in 4."""
    claim = shared_noise_square(
        row_counts(Contribution(3, 1, 3), "add-remove", 4), 4, Fraction(1, 50)
    )
    assert square((1, 1, 1, 1), Fraction(1, 50)) > claim


@pytest.mark.parametrize("cells", [2, 5, 24, 365, 5000])
def test_the_best_division_where_a_unit_may_be_everywhere(cells):
    """At most (√d + 1) / 2, the deviation for the real number of
    groups where the loss is largest.
    """
    best = best_shared_noise(row_counts(Contribution(cells, 1, cells), "add-remove", cells), cells)
    assert 0.94 < float(best.variance) ** 0.5 / ((math.sqrt(cells) + 1) / 2) < 1 + 1e-6


def test_no_other_ratio_is_better():
    for cells, limits in LIMITS:
        bound = row_counts(limits, "add-remove", cells)
        best = float(best_shared_noise(bound, cells).variance)
        others = [Fraction(i, 200) for i in range(1, 600)]
        assert best <= min(
            (1 + r) * float(shared_noise_square(bound, cells, r)) for r in others
        ) * (1 + 1e-4)
        assert best <= bound.l2_squared


def test_one_group_has_no_noise_to_share():
    bound = row_counts(Contribution(1, 3, 3), "add-remove", 1)
    assert best_shared_noise(bound, 1).ratio == 0
    assert best_shared_noise(bound, 1).own_square == bound.l2_squared
