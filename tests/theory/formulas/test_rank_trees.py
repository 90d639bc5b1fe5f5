"""Trees over the places of a column: least squares, errors in closed form,
monotone inversion, and intervals.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpframe.theory.formulas.rank_trees import RankTree, rank_tree, tree_is_better
from dpframe.theory.formulas.trees import Forest

HALF = Fraction(1, 2)
SHAPES = [
    RankTree((3,), (Fraction(0), Fraction(1)), normal=False),
    RankTree((2, 3), (Fraction(0), HALF, HALF), normal=False),
    RankTree((2, 2, 2), (Fraction(1, 8), Fraction(1, 8), Fraction(1, 4), HALF), normal=False),
    RankTree((4, 2), (Fraction(1, 6), Fraction(1, 3), HALF), normal=True),
    RankTree((2, 2, 3), (Fraction(0), Fraction(0), HALF, HALF), normal=True),
]


def forest_of(tree):
    """The general least squares on the nodes of a tree, leaves first."""
    sizes = [math.prod(tree.degrees[:level]) for level in range(len(tree.degrees) + 1)]
    starts = np.cumsum([0, *sizes[::-1]])
    parents, variances = [], []
    for back, level in enumerate(range(len(sizes) - 1, -1, -1)):
        for node in range(sizes[level]):
            parents.append(
                -1 if level == 0 else int(starts[back + 1]) + node // tree.degrees[level - 1]
            )
            variances.append(tree.relative[level])
    return Forest(tuple(parents), tuple(variances))


@pytest.mark.parametrize("tree", SHAPES)
def test_the_fit_is_that_of_general_least_squares(tree):
    draw = np.random.default_rng(1)
    levels = tree.levels(draw.integers(0, 50, (3, tree.leaves)))
    noisy = [level + draw.normal(0, 5, level.shape) for level in levels]
    fit = tree.fitted(noisy, 1.0, 1.0, tree.leaves)
    stacked = np.concatenate([level.T for level in noisy[::-1]])
    general = forest_of(tree).estimates(stacked)[: tree.leaves].T
    assert np.allclose(np.diff(fit.below, axis=1), general)


@pytest.mark.parametrize("tree", SHAPES)
@pytest.mark.parametrize("rank", [0.0, 0.3, 0.5, 1.0])
def test_variances_of_ranks_are_those_of_general_least_squares(tree, rank):
    forest = forest_of(tree)
    weights = np.zeros((len(forest.parents), tree.leaves + 1))
    for border in range(tree.leaves + 1):
        weights[: tree.leaves, border] = (np.arange(tree.leaves) < border) - rank
    assert np.allclose(tree.relative_squares(rank), forest.variance(weights))


@pytest.mark.parametrize("tree", SHAPES)
def test_the_expected_error_is_the_mean_over_places_and_ranks(tree):
    """Within a leaf the rows below grow evenly, and ranks are uniform:
    the exact integral, by Simpson's rule.
    """
    forest, values = forest_of(tree), []
    for leaf, (part, at), (rank, of) in itertools.product(
        range(tree.leaves), *[((0.0, 1 / 6), (0.5, 4 / 6), (1.0, 1 / 6))] * 2
    ):
        weights = np.zeros((len(forest.parents), 1))
        weights[: tree.leaves, 0] = (np.arange(tree.leaves) < leaf) - rank
        weights[leaf, 0] += part
        values.append(at * of * float(forest.variance(weights)[0]))
    assert math.sqrt(math.fsum(values) / tree.leaves) == pytest.approx(tree.error)


@pytest.mark.parametrize("normal", [False, True])
@pytest.mark.parametrize("places", [1, 2, 7, 73, 366, 1024])
def test_the_parts_of_the_price_add_up_and_every_place_has_a_leaf(places, normal):
    tree = rank_tree(places, normal=normal)
    assert sum(tree.parts) == 1
    assert min(tree.parts) >= 0
    assert tree.parts[-1] > 0
    assert tree.leaves >= places
    assert max(tree.degrees) <= 64


@pytest.mark.parametrize("normal", [False, True])
def test_the_scales_of_the_levels_cost_no_more_than_one_number(normal):
    tree = rank_tree(1024, normal=normal)
    scales = [Fraction(tree.scale_of(i, 3.7)) for i, part in enumerate(tree.parts) if part]
    if normal:
        assert sum(1 / scale**2 for scale in scales) <= 1 / Fraction(3.7) ** 2
    else:
        assert sum(1 / scale for scale in scales) <= 1 / Fraction(3.7)


def test_the_chosen_tree_beats_a_plain_one_and_equal_parts():
    chosen = rank_tree(1024, normal=False)
    plain = RankTree((2,) * 10, (Fraction(1, 11),) * 11, normal=False)
    sixteen = RankTree((16, 16, 4), (Fraction(0), *[Fraction(1, 3)] * 3), normal=False)
    assert chosen.error < sixteen.error < plain.error


def test_one_rank_is_chosen_and_several_have_a_tree():
    assert not tree_is_better((HALF,), 1024)
    assert tree_is_better((Fraction(1, 4), HALF, Fraction(3, 4)), 1024)
    assert tree_is_better(tuple(Fraction(i, 100) for i in range(1, 100)), 1024)


def exact_fit(counts, tree=None):
    counts = np.asarray(counts)
    tree = tree or rank_tree(counts.shape[1], normal=False)
    return tree.fitted(tree.levels(counts), 1.0, 1e-18, counts.shape[1])


def test_without_noise_quantiles_and_shares_are_exact():
    fit = exact_fit([[10, 0, 20, 10, 0, 0, 0], [0, 0, 0, 0, 0, 0, 5]])
    assert fit.quantiles(0.25) == pytest.approx([1.0, 6.25])
    assert fit.quantiles(0.5) == pytest.approx([2.5, 6.5])
    assert fit.shares(2.5, 0.5) == pytest.approx([0.5, 0.0])
    assert fit.shares(7.0, 1.0) == pytest.approx([1.0, 1.0])
    first, last = fit.reach(0.5, 0.05)
    assert (first.tolist(), last.tolist()) == ([2, 6], [2, 6])


def test_quantiles_grow_with_the_rank_and_shares_with_the_point_whatever_the_noise():
    draw = np.random.default_rng(2)
    tree = rank_tree(100, normal=False)
    noisy = [
        draw.normal(3, 50, level.shape) for level in tree.levels(np.zeros((20, 100), np.int64))
    ]
    fit = tree.fitted(noisy, 1.0, 1.0, 100)
    places = np.stack([fit.quantiles(rank) for rank in np.linspace(0.01, 0.99, 50)])
    shares = np.stack([fit.shares(place, 0.5) for place in np.linspace(0, 100, 50)])
    assert (np.diff(places, axis=0) >= 0).all()
    assert (np.diff(shares, axis=0) >= -1e-12).all()
    assert shares.min() >= 0
    assert shares.max() <= 1


def test_a_group_that_noise_hides_is_spread_evenly():
    tree = rank_tree(10, normal=False)
    noisy = [np.full(level.shape, -1.0) for level in tree.levels(np.zeros((1, 10), np.int64))]
    fit = tree.fitted(noisy, 1.0, 1.0, 10)
    assert fit.quantiles(0.3) == pytest.approx([3.0])
    assert fit.shares(4.0, 0.35) == pytest.approx([0.35])


def covered(normal, alpha, releases, *, deviation_factor=1.0):
    """How often the intervals of quantiles and shares hold the truth."""
    draw = np.random.default_rng(5)
    counts = np.tile(draw.poisson(3, 200) * (np.arange(200) % 7 != 0), (releases, 1))
    tree, scale = rank_tree(200, normal=normal), 2.0
    noisy = []
    for level, (exact, part) in enumerate(zip(tree.levels(counts), tree.parts, strict=True)):
        size = tree.scale_of(level, scale) if part else 0.0
        noisy.append(
            exact
            + (draw.normal(0, size, exact.shape) if normal else draw.laplace(0, size, exact.shape))
        )
    square = scale**2 * (1 if normal else 2) * deviation_factor**2
    fit = tree.fitted(noisy, 1.0, square, 200)
    below = np.concatenate([[0], np.cumsum(counts[0])])
    place = int(np.searchsorted(below, 0.3 * below[-1], side="left")) - 1
    first, last = fit.reach(0.3, alpha)
    low, high = fit.share_reach(80, 80, alpha)
    share = below[80] / below[-1]
    return np.mean((first <= place) & (place <= last)), np.mean((low <= share) & (share <= high))


@pytest.mark.parametrize("normal", [False, True])
def test_intervals_hold_the_truth_as_often_as_they_say(normal):
    """Of 3,000 releases at 90%, at most 385 miss; at exactly 10% that happens
    less than once in a million runs.
    """
    for share in covered(normal, 0.1, 3000):
        assert share >= 1 - 385 / 3000


def test_intervals_of_too_little_noise_miss():
    quantile, share = covered(True, 0.1, 3000, deviation_factor=0.4)
    assert max(quantile, share) < 1 - 385 / 3000
