"""The formulas of whole-vector statistics, against enumeration."""

import itertools
import math
from fractions import Fraction

import pytest

from dpframe.theory.exact import Root, exact, limit, square, upward
from dpframe.theory.formulas.sensitivity import vectors as statistics


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_sized_variance_is_the_maximum(relation):
    """All datasets of 4 values among {0, 1, 3}: the formula is reached and never exceeded."""
    values, size = (Fraction(0), Fraction(1), Fraction(3)), 4

    def variance(x):
        return sum((v - sum(x) / size) ** 2 for v in x) / (size - 1)

    datasets = list(itertools.combinations_with_replacement(values, size))
    for d_in in range(6):
        changed = d_in if relation == "replace" else d_in // 2
        largest = Fraction(0)
        for a, b in itertools.product(datasets, repeat=2):
            rest = list(b)
            common = sum(1 for v in a if v in rest and not rest.remove(v))
            if size - common <= changed:
                largest = max(largest, abs(variance(a) - variance(b)))
        assert statistics.sized_variance(d_in, Fraction(0), Fraction(3), relation, size) == largest


def test_tight_triples_never_exclude_a_real_vector():
    for cells in itertools.product([0, 1, 3], repeat=3):
        l0 = sum(c != 0 for c in cells)
        l1, linf = Fraction(sum(cells)), Fraction(max(cells))
        l2 = Root(Fraction(sum(c * c for c in cells)))
        assert statistics.tight_l1(l0, l1, linf) == (l0, l1, linf)
        kept = statistics.tight_l2(l0, l2, linf)
        assert kept[0] == l0
        assert square(kept[1]) == l2.squared
        assert square(kept[2]) == linf**2


def test_lengthened_is_an_upper_bound_and_close():
    for squared, step, cells in itertools.product(
        (0, 1, 2, Fraction(1, 3)), (Fraction(1, 1024), 1), (1, 2, 5)
    ):
        longer = statistics.lengthened(Root(Fraction(squared)), Fraction(step), cells)
        true = math.sqrt(squared) + math.sqrt(cells) * float(step)
        assert upward(longer) >= true * (1 - 1e-15)
        assert upward(longer) <= true * (1 + 1e-14)
    assert statistics.lengthened(Fraction(3), Fraction(0), 4) == 3


def test_reading_and_rounding():
    assert exact(0.1, "x") == Fraction(1, 10)
    assert limit(0.3, "x") == Fraction(3, 10)
    assert limit(0.1, "x") == Fraction(0.1)
    for value in (
        Fraction(1, 3),
        Fraction(12, 25),
        Fraction(10**400),
        Fraction(-1, 3),
        Fraction(0),
    ):
        near = upward(value)
        assert near == math.inf or limit(near, "x") >= value
        if math.isfinite(near):
            assert limit(math.nextafter(near, -math.inf), "x") < value
    assert upward(Root(Fraction(1, 4))) == 0.5
    assert upward(Root(Fraction(2))) ** 2 >= 2
