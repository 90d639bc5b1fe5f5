"""Numbers of a tree that add up: exact on the grid, nearest without negative ones, and whole."""

import numpy as np
import pytest
from scipy.optimize import minimize

from dpframe.release.kinds.hierarchy.agreeing import nonnegative_levels, on_grid, whole_levels
from dpframe.theory.formulas.trees import Levels


def random_tree(rng, levels=3):
    first, nodes = [], 1
    for _ in range(levels):
        children = rng.integers(1, 6, nodes)
        first.append(np.concatenate([[0], np.cumsum(children)[:-1]]))
        nodes = int(children.sum())
    return Levels(tuple(first), nodes)


def fitted(tree, rng, scale, cells=2):
    leaves = rng.normal(scale=scale, size=(tree.leaves, cells))
    values = [leaves]
    for level in range(len(tree.first) - 1, -1, -1):
        values.append(tree.up(values[-1], level))
    return values[::-1]


def adds_up(tree, levels):
    return all(np.array_equal(tree.up(levels[i + 1], i), levels[i]) for i in range(len(tree.first)))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e6, 1e18, 1e200])
def test_numbers_add_up_exactly_and_hardly_move(scale):
    rng = np.random.default_rng(0)
    for _ in range(30):
        tree = random_tree(rng)
        values = fitted(tree, rng, scale)
        numbers = on_grid(tree, values)
        assert adds_up(tree, numbers.levels)
        assert adds_up(tree, [numbers.floats(level) for level in range(len(tree.sizes))])
        for level, exact in enumerate(values):
            assert np.abs(numbers.floats(level) - exact).max() <= 2.0**numbers.exponent * 2


def test_zeros_stay_zeros():
    tree = random_tree(np.random.default_rng(1))
    numbers = on_grid(tree, [np.zeros((size, 1)) for size in tree.sizes])
    assert all(not level.any() for level in numbers.levels)


def test_whole_numbers_are_neighbours_of_what_they_were_and_add_up():
    rng = np.random.default_rng(2)
    for turn in range(200):
        tree = random_tree(rng)
        numbers = on_grid(tree, fitted(tree, rng, [0.3, 5.0, 1e4][turn % 3]))
        whole = whole_levels(tree, numbers)
        assert whole.exponent == 0
        assert adds_up(tree, whole.levels)
        for level, integers in enumerate(whole.levels):
            assert np.all(np.abs(integers - numbers.floats(level)) < 1)
        again = whole_levels(tree, whole)
        assert all(np.array_equal(a, b) for a, b in zip(again.levels, whole.levels, strict=True))


def test_numbers_without_negative_ones_are_the_nearest_children_and_stay_so_when_whole():
    rng = np.random.default_rng(3)
    for turn in range(100):
        tree = random_tree(rng)
        values = fitted(tree, rng, [0.3, 5.0, 1e6][turn % 3])
        found = nonnegative_levels(tree, values)
        assert found[0] == pytest.approx(np.maximum(values[0], 0))
        for level in range(len(tree.first)):
            assert found[level + 1].min() >= 0
            assert tree.up(found[level + 1], level) == pytest.approx(found[level], abs=1e-6)
            # Karush, Kuhn and Tucker: children above 0 moved by one number for each parent, the
            # others by no more down.
            shift = values[level + 1] - found[level + 1]
            above = found[level + 1] > 1e-9
            top = np.where(above, shift, -np.inf)
            parent = tree.down(np.maximum.reduceat(top, tree.first[level]), level)
            assert np.all(np.abs(shift - parent)[above] < 1e-6)
            assert np.all((shift <= parent + 1e-6) | above | ~np.isfinite(parent))
        numbers = on_grid(tree, found)
        whole = whole_levels(tree, numbers)
        for one in (numbers, whole):
            assert all(level.min() >= 0 for level in one.levels)
            assert adds_up(tree, one.levels)


def test_the_nearest_children_are_those_of_a_general_solver():
    tree = Levels((np.array([0]),), 5)
    values = np.array([[4.0], [-2.0], [1.0], [-1.0], [3.0]])
    total = float(values.sum())
    solved = minimize(
        lambda x: ((x - values.ravel()) ** 2).sum(),
        np.full(5, total / 5),
        bounds=[(0, None)] * 5,
        constraints={"type": "eq", "fun": lambda x: x.sum() - total},
    )
    found = nonnegative_levels(tree, [np.array([[total]]), values])
    assert found[1].ravel() == pytest.approx(solved.x, abs=1e-4)
