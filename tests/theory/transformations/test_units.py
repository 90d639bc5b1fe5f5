"""Totals of units by group: their maps by brute force over every small table and every unit more or less."""

import itertools
import math

import numpy as np
import pytest

import dpframe.theory as t
from dpframe import errors

PLAIN = t.VectorDomain(t.TupleDomain(t.AtomDomain(int), t.AtomDomain(str)))
VALUED = t.VectorDomain(t.TupleDomain(t.AtomDomain(int), t.AtomDomain(str), t.AtomDomain(float)))
UNITS = t.UnitDistance()
METRICS = [t.L1Distance(), t.L2Distance(), t.LinfDistance(), t.L01InfDistance(), t.L02InfDistance()]


def parts(valued):
    """What one unit may have: up to four rows in three groups."""
    rows = list(itertools.product("abc", (-3.0, 5.0))) if valued else [(k,) for k in "abc"]
    return [c for n in range(1, 5) for c in itertools.combinations_with_replacement(rows, n)]


def table(*units):
    return [(i, *row) for i, unit in enumerate(units) for row in unit]


MAKERS = {
    "units": lambda metric, keys: t.grouped_units(PLAIN, UNITS, 2, metric, keys),
    "counts": lambda metric, keys: t.grouped_counts(PLAIN, UNITS, 2, 2, metric, keys),
    "sums": lambda metric, keys: t.grouped_sums(VALUED, UNITS, 2, 2, (-2, 4), metric, keys),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("keys", [None, ["a", "b"], ["c"]])
@pytest.mark.parametrize("metric", METRICS, ids=repr)
@pytest.mark.parametrize("name", MAKERS)
def test_one_unit_more_by_brute_force(name, metric, keys):
    made = MAKERS[name](metric, keys)
    other = parts(name == "sums")[7]
    reached = None
    for unit in parts(name == "sums"):
        with_it, without = made(table(other, unit)), made(table(other))
        assert UNITS.distance(table(other, unit), table(other)) == 1
        distance = made.output_metric.distance(with_it, without)
        bound = made.map(1)
        joint = isinstance(bound, tuple)
        assert all(d <= b for d, b in zip(distance, bound, strict=True)) if joint else distance <= bound
        biggest = distance[1] if joint else distance
        reached = biggest if reached is None else max(reached, biggest)
    assert reached == pytest.approx(bound[1] if joint else bound, rel=1e-12)


def test_pairs_by_brute_force():
    pair = t.grouped_pairs(VALUED, UNITS, 2, 2, (-4, 4))
    worst = max(t.L1Distance().distance(pair(table(unit)), pair([])) for unit in parts(valued=True))
    assert worst <= pair.map(1) == 32
    assert worst == 32
    assert pair.map(3) == 96
    with pytest.raises(errors.InvalidArgument):
        t.grouped_pairs(VALUED, UNITS, 2, 2, (0, 4))


def test_several_units_add_up():
    counts = t.grouped_counts(PLAIN, UNITS, 2, 3, t.L2Distance())
    assert counts.map(2) == pytest.approx(2 * math.sqrt(18), rel=1e-15)
    both = table((("a",), ("a",), ("a",), ("b",), ("b",), ("b",)), (("a",), ("a",), ("a",), ("b",), ("b",), ("b",)))
    assert t.L2Distance().distance(counts(both), counts([])) == pytest.approx(counts.map(2), rel=1e-15)


def test_a_unit_that_changes_leaves_and_joins():
    assert UNITS.distance([(1, "a")], [(1, "b")]) == 2
    assert UNITS.distance([(1, "a"), (2, "b")], [(2, "b"), (1, "a")]) == 0
    assert UNITS.distance([(1, "a"), (1, "a")], [(1, "a")]) == 2


def test_groups_of_a_unit_are_chosen_without_the_others():
    counts = t.grouped_units(PLAIN, UNITS, 1)
    unit = [(1, k) for k in "abcdefgh"]
    alone = counts(unit)
    assert sum(alone.values()) == 1
    more = counts([(2, "a"), *unit[::-1], (3, "h")])
    assert sum(more.values()) == 3
    assert all(more[k] >= n for k, n in alone.items())


def test_equal_tables_have_equal_totals_whatever_their_types():
    counts = t.grouped_units(t.VectorDomain(t.TupleDomain(t.AtomDomain(int), t.AtomDomain(float))), UNITS, 1)
    plain = [(1, 0.0), (1, 1.0), (1, 2.0), (1, 3.0)]
    assert counts(plain) == counts([(np.int64(u), np.float64(-0.0 if k == 0 else k)) for u, k in plain])
    assert counts(plain) == counts([(u, int(k)) for u, k in plain])


def test_tables_of_units_refuse():
    for wrong in (
        lambda: t.grouped_units(PLAIN, t.SymmetricDistance(), 1),
        lambda: t.grouped_units(t.VectorDomain(t.AtomDomain(int)), UNITS, 1),
        lambda: t.grouped_units(PLAIN, UNITS, 0),
        lambda: t.grouped_counts(PLAIN, UNITS, 1, 1.5),
        lambda: t.grouped_sums(PLAIN, UNITS, 1, 1, (0, 1)),
        lambda: t.grouped_sums(VALUED, UNITS, 1, 1, (1, 0)),
        lambda: t.grouped_counts(PLAIN, UNITS, 1, 1, t.SymmetricDistance()),
        lambda: t.grouped_counts(PLAIN, UNITS, 1, 1, keys=[]),
        lambda: t.grouped_counts(PLAIN, UNITS),
    ):
        with pytest.raises(errors.DpFrameError):
            wrong()
