"""Distances, measured."""

import itertools
import math

import numpy as np
import pytest

import dpframe.theory as t


def test_multisets():
    d = t.SymmetricDistance().distance
    assert d([12, 10, 8, 7], [10, 8, 7]) == 1
    assert d([12, 10, 8, 7], [10, 10, 8, 7]) == 2
    assert d([], []) == 0
    assert d([math.nan], [math.nan]) == 0
    assert d(np.array([1, 2]), [2, 1]) == 0
    assert d([1, 1, 1], [1]) == 2


def test_change_one_and_hamming():
    assert t.ChangeOneDistance().distance([1, 2, 3], [3, 2, 4]) == 1
    assert t.ChangeOneDistance().distance([1], [1, 2]) == math.inf
    assert t.HammingDistance().distance([1, 2, 3], [3, 2, 1]) == 2
    assert t.HammingDistance().distance([1], [1, 2]) == math.inf


def test_insert_delete_is_an_edit_distance(rng):
    def by_search(a, b):
        if not a or not b:
            return len(a) + len(b)
        if a[0] == b[0]:
            return by_search(a[1:], b[1:])
        return 1 + min(by_search(a[1:], b), by_search(a, b[1:]))

    for _ in range(60):
        a, b = (
            rng.integers(0, 3, rng.integers(0, 6)).tolist(),
            rng.integers(0, 3, rng.integers(0, 6)).tolist(),
        )
        assert t.InsertDeleteDistance().distance(a, b) == by_search(a, b)


def test_lengths():
    assert t.AbsoluteDistance().distance(0.5, 2) == 1.5
    assert t.AbsoluteDistance().distance(2**63, 0) == 2**63
    assert t.AbsoluteDistance().distance(math.inf, 0) == math.inf
    assert t.AbsoluteDistance().distance(math.inf, math.inf) == 0
    assert t.L1Distance().distance({"a": 1}, {"b": -2}) == 3
    assert t.L2Distance().distance(np.array([0.0, 1]), np.array([1.0, 0])) == math.sqrt(2)
    assert t.L2Distance().distance([1], [1, 2]) == math.inf
    assert t.LinfDistance().distance([], []) == 0
    assert t.LinfDistance(monotonic=True).distance([1, 2], [2, 3]) == 1
    assert t.LinfDistance(monotonic=True).distance([1, 2], [2, 1]) == math.inf
    assert t.L01InfDistance(t.AbsoluteDistance()).distance([1, 2, 3], [1, 5, 1]) == (2, 5, 3)
    assert t.L02InfDistance(t.AbsoluteDistance()).distance([0, 0], [3, 4]) == (2, 5, 4)
    assert t.L01InfDistance().distance([1], [1, 2]) == (math.inf,) * 3
    assert t.DiscreteDistance().distance(True, False) == 1


@pytest.mark.parametrize(
    "metric",
    [t.SymmetricDistance(), t.InsertDeleteDistance(), t.ChangeOneDistance(), t.HammingDistance()],
)
def test_triangle_inequality(rng, metric):
    sets = [rng.integers(0, 3, 4).tolist() for _ in range(12)]
    for a, b, c in itertools.product(sets, repeat=3):
        assert metric.distance(a, c) <= metric.distance(a, b) + metric.distance(b, c)
        assert metric.distance(a, b) == metric.distance(b, a)


def test_metrics_are_equal_by_kind():
    assert t.SymmetricDistance() == t.SymmetricDistance()
    assert t.SymmetricDistance() != t.InsertDeleteDistance()
    assert t.L01InfDistance(t.AbsoluteDistance()) == t.L01InfDistance()
    assert t.L01InfDistance() != t.L02InfDistance()
    assert t.LinfDistance() != t.LinfDistance(monotonic=True)
    assert t.SymmetricDistance() != "SymmetricDistance()"


def test_triples_are_tightened():
    show = lambda metric, d: metric.show(metric.parse(d))  # noqa: E731
    assert show(t.L01InfDistance(), (100, 10.0, 0.001)) == (100, 0.1, 0.001)
    assert show(t.L02InfDistance(), (100, 10.0, 0.001)) == (100, 0.01, 0.001)
    assert show(t.L01InfDistance(), (3, 4, 99)) == (3, 4, 4)
    assert show(t.L02InfDistance(), (2, 99, 1)) == (2, math.sqrt(2), 1)
    assert show(t.L01InfDistance(), (0, 5, 5)) == (0, 0, 0)
    assert show(t.L01InfDistance(), (1, 1, 1)) == (1, 1, 1)


def test_joints_are_partially_ordered():
    a, b, c = t.Joint((1.0, 1e-6)), t.Joint((1.5, 1e-7)), t.Joint((1.5, 1e-6))
    assert a <= c
    assert b < c
    assert not a <= b
    assert not b <= a
    assert not a >= b
    assert c > a
    assert c >= (1.5, 1e-6)
    assert not c < (1.5, 1e-6)
    assert a == (1.0, 1e-6)


def test_a_unit_that_changes_leaves_and_joins():
    units = t.UnitDistance()
    assert units.distance([(1, "a")], [(1, "b")]) == 2
    assert units.distance([(1, "a"), (2, "b")], [(2, "b"), (1, "a")]) == 0
    assert units.distance([(1, "a"), (1, "a")], [(1, "a")]) == 2
