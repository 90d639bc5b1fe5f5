"""Joins, trees, quantile scores and squared deviations: their maps by brute force, their answers by definition."""

import itertools
import math

import numpy as np
import pytest

import dpframe.theory as t
from dpframe import errors

SYMMETRIC, CHANGE_ONE = t.SymmetricDistance(), t.ChangeOneDistance()
TABLE = t.VectorDomain(t.TupleDomain(t.AtomDomain(str), t.AtomDomain(int)))


# Quantile scores


@pytest.mark.one_in(2)
@pytest.mark.parametrize("alpha", [0, 0.25, 0.5, 0.9, 1])
@pytest.mark.parametrize(("metric", "relation"), [(SYMMETRIC, "add-remove"), (CHANGE_ONE, "replace")])
def test_quantile_scores_by_brute_force(alpha, metric, relation):
    scores = t.quantile_scores(t.VectorDomain(t.AtomDomain(int)), metric, [1, 2, 3], alpha)
    for distance in (1, 2, 3):
        truth = t.empirical_sensitivity(
            scores, [0, 1, 2, 3, 4], 3, distance, relation, replacement=True, progress=False
        )
        assert truth <= scores.map(distance)
        assert truth == scores.map(distance) or (distance > 1 and relation == "replace")
    sized = t.quantile_scores(t.VectorDomain(t.AtomDomain(int), size=3), SYMMETRIC, [1, 2, 3], alpha)
    assert sized.map(1) == 0
    assert sized.map(2) == scores.map(1) * (1 if relation == "replace" else sized.map(2) / scores.map(1))


def test_quantile_scores_are_best_at_the_quantile():
    records = np.random.default_rng(3).integers(0, 100, 501)
    for alpha in (0.1, 0.5, 0.75):
        scores = t.quantile_scores(t.VectorDomain(t.AtomDomain(int)), SYMMETRIC, range(101), alpha)(records)
        assert abs(int(np.argmax(scores)) - np.quantile(records, alpha, method="inverted_cdf")) <= 1
    floats = t.quantile_scores(t.VectorDomain(t.AtomDomain(float)), SYMMETRIC, [0.5, 1.5], 0.5)
    assert floats([0.0, 1.0, 1.5]) == [-1, -2]
    assert floats([]) == [0, 0]


@pytest.mark.parametrize("candidates", [[], [2, 1], [1, 1], ["a"], [1.5]])
def test_quantile_scores_refuse_candidates(candidates):
    with pytest.raises(errors.InvalidArgument):
        t.quantile_scores(t.VectorDomain(t.AtomDomain(int)), SYMMETRIC, candidates, 0.5)


def test_quantile_scores_refuse():
    for alpha in (-0.1, 1.1, math.nan, math.pi):
        with pytest.raises(errors.InvalidArgument):
            t.quantile_scores(t.VectorDomain(t.AtomDomain(int)), SYMMETRIC, [1], alpha)
    for atom in (t.AtomDomain(str), t.AtomDomain(float, nan=True)):
        with pytest.raises(errors.DomainMismatch):
            t.quantile_scores(t.VectorDomain(atom), SYMMETRIC, [1.0], 0.5)


# Trees


@pytest.mark.parametrize("branching", [2, 3])
@pytest.mark.parametrize("leaves", [1, 2, 3, 4, 5])
def test_trees_by_brute_force(branching, leaves):
    """Every pair of small leaves: L1 and L2 of the nodes are within the map, and the worst case is reached."""
    for metric in (t.L1Distance(), t.L2Distance()):
        nodes = t.tree(t.VectorDomain(t.AtomDomain(int), size=leaves), metric, branching)
        ratio = 0.0
        for a in itertools.product((0, 1, 2), repeat=leaves):
            start = [1] * leaves
            d_in = metric.distance(start, a)
            d_out = metric.distance(nodes(start), nodes(list(a)))
            bound = nodes.map(math.nextafter(d_in, 99) if d_in else 0)
            assert d_out <= bound
            ratio = max(ratio, d_out / bound if d_in else 0)
        full = branching ** math.ceil(math.log(leaves, branching) - 1e-9) == leaves
        assert ratio > (0.999999 if full or isinstance(metric, t.L1Distance) else 0.5)


def test_a_tree_adds_up():
    nodes = t.tree(t.VectorDomain(t.AtomDomain(int), size=4), t.L1Distance())([1, 2, 3, 4])
    assert nodes == [10, 3, 7, 1, 2, 3, 4]
    histogram = t.histogram(t.VectorDomain(t.AtomDomain(int)), SYMMETRIC, bins=range(9), null_category=False)
    noisy = (
        histogram
        >> t.tree(*histogram.output_space)
        >> t.laplace(t.VectorDomain(t.AtomDomain(int), 15), t.L1Distance(), 4)
    )
    assert noisy.map(1) == 1
    released = (noisy >> t.consistent_tree)([0, 1, 1, 5])
    assert len(released) == 8


@pytest.mark.parametrize(("branching", "height"), [(2, 1), (2, 3), (3, 2), (4, 2), (5, 1)])
def test_consistent_leaves_are_least_squares(branching, height):
    leaves = branching**height
    rows = []
    for level in range(height + 1):
        width = leaves // branching**level
        rows += [[int(i // width == node) for i in range(leaves)] for node in range(branching**level)]
    design = np.array(rows, dtype=float)
    noisy = np.random.default_rng(leaves).normal(size=len(rows)) * 10
    expected = np.linalg.lstsq(design, noisy, rcond=None)[0]
    assert t.consistent_tree(noisy, branching) == pytest.approx(expected, abs=1e-9)
    exact = design @ np.arange(leaves)
    assert t.consistent_tree(exact.tolist(), branching) == list(range(leaves))


def test_trees_refuse():
    for wrong in (
        lambda: t.tree(t.VectorDomain(t.AtomDomain(int)), t.L1Distance()),
        lambda: t.tree(t.VectorDomain(t.AtomDomain(float), 3), t.L1Distance()),
        lambda: t.tree(t.VectorDomain(t.AtomDomain(int), 3), t.LinfDistance()),
        lambda: t.tree(t.VectorDomain(t.AtomDomain(int), 3), t.L1Distance(), branching=1),
        lambda: t.consistent_tree([1, 2]),
        lambda: t.consistent_tree([]),
    ):
        with pytest.raises(errors.DpFrameError):
            wrong()


# Squared deviations


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_squared_deviations_by_brute_force(kind, size):
    domain = t.VectorDomain(t.AtomDomain(kind, bounds=(-1, 2)), size=size)
    deviations = t.sum_squared_deviations(domain, CHANGE_ONE)
    for distance in (1, 2, 3):
        truth = t.empirical_sensitivity(deviations, [-1, 0, 1, 2], size, distance, "replace", replacement=True)
        assert truth <= deviations.map(distance) * (1 + 1e-12)
        assert truth == pytest.approx(deviations.map(distance), rel=1e-9)
    variance = t.variance(domain, CHANGE_ONE, ddof=0)
    values = [kind(v) for v in (-1, 2, 0, 1)[:size]]
    assert deviations(values) == pytest.approx(size * variance(values), abs=1e-9)


# Joins


def test_a_join_is_the_join():
    join = t.join(TABLE, TABLE, max_left=9, max_right=9)
    left, right = [("a", 1), ("a", 2), ("b", 3), ("c", 4)], [("a", 5), ("b", 6), ("b", 7), ("d", 8)]
    expected = [(k, v, w) for k, v in left for m, w in right if k == m]
    assert sorted(join((left, right))) == sorted(expected)
    assert join.output_domain.member(join((left, right)))
    limited = t.join(TABLE, TABLE, max_left=1, max_right=1)
    assert len(limited((left, right))) == 2
    count = limited >> t.count(*limited.output_space)
    assert (count >> t.laplace(*count.output_space, scale=4.0)).map((1, 1)) == 1


@pytest.mark.parametrize(("max_left", "max_right"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_joins_by_brute_force(max_left, max_right):
    """Every pair of tables of up to 3 rows on the left and 2 on the right, and every neighbour in one row of either."""
    join = t.join(TABLE, TABLE, max_left, max_right)
    rows = [("a", 1), ("a", 2), ("b", 1)]
    lefts = [list(c) for n in range(4) for c in itertools.combinations_with_replacement(rows, n)]
    rights = [list(c) for n in range(3) for c in itertools.combinations_with_replacement(rows, n)]
    answers = {(i, j): join((a, b)) for i, a in enumerate(lefts) for j, b in enumerate(rights)}
    worst = {(1, 0): 0, (0, 1): 0}
    for (i, j), answer in answers.items():
        near = [(k, j, (1, 0)) for k, other in enumerate(lefts) if SYMMETRIC.distance(lefts[i], other) == 1]
        near += [(i, k, (0, 1)) for k, other in enumerate(rights) if SYMMETRIC.distance(rights[j], other) == 1]
        for k, m, step in near:
            worst[step] = max(worst[step], SYMMETRIC.distance(answer, answers[k, m]))
    for step, largest in worst.items():
        assert largest <= join.map(step)
    assert worst[1, 0] >= max_right
    assert worst[0, 1] >= max_left
    assert join.map((2, 1)) == 2 * (2 * max_right + max_left)


def test_joins_do_not_see_the_order():
    join = t.join(TABLE, TABLE, max_left=1, max_right=1)
    left, right = [("a", i) for i in range(9)], [("a", i) for i in range(5)]
    assert join((left, right)) == join((left[::-1], right[::-1]))


def test_joins_refuse():
    for wrong in (
        lambda: t.join(TABLE, TABLE, 0, 1),
        lambda: t.join(TABLE, TABLE, 1, 1.5),
        lambda: t.join(TABLE, t.VectorDomain(t.TupleDomain(t.AtomDomain(int), t.AtomDomain(int))), 1, 1),
        lambda: t.join(TABLE, t.VectorDomain(t.AtomDomain(int)), 1, 1),
        lambda: t.join(TABLE, t.VectorDomain(TABLE.element_domain, size=3), 1, 1),
        lambda: t.join(TABLE, t.VectorDomain(t.TupleDomain(t.AtomDomain(float, nan=True))), 1, 1),
        lambda: t.join(TABLE, TABLE, 1, 1).map(1),
        lambda: t.sum(TABLE, SYMMETRIC),
        lambda: t.clamp(TABLE, SYMMETRIC, (0, 1)),
    ):
        with pytest.raises(errors.DpFrameError):
            wrong()
    assert t.count(TABLE, SYMMETRIC)([("a", 1)]) == 1
