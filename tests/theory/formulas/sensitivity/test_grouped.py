"""Totals over blocks of periods: the bound against every history of up to
two units on a small calendar.
"""

import itertools
from fractions import Fraction

import pytest

from dpframe.theory.formulas.sensitivity import Sensitivity, period_totals

NIGHTS = 4
# what one unit may add in one period, the sensitivity of that, and how far two units' entries are
# apart
NIGHT = {
    "rows": ([1, 2], Sensitivity.of(l0=1, l1=2, l2_squared=4, linf=2), 2),
    "signed": ([-1, 1], Sensitivity.of(l0=1, l1=1, l2_squared=1, linf=1), 2),
}


def histories(values, periods):
    """Every unit: in at most so many of the periods, and one of the values in each."""
    for number in range(periods + 1):
        for where in itertools.combinations(range(NIGHTS), number):
            for what in itertools.product(values, repeat=number):
                made = [0] * NIGHTS
                for night, value in zip(where, what, strict=True):
                    made[night] = value
                yield made


def blocks(history, size):
    return [sum(history[start : start + size]) for start in range(0, NIGHTS, size)]


@pytest.mark.parametrize("kind", NIGHT)
@pytest.mark.parametrize("periods", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_no_history_moves_the_blocks_by_more(kind, periods, size, relation):
    values, one, swing = NIGHT[kind]
    bound = period_totals(one, swing, periods=periods, size=size, relation=relation)
    units = [blocks(history, size) for history in histories(values, periods)]
    others = units if relation == "replace" else [[0] * len(units[0])]
    moved = [[a - b for a, b in zip(u, w, strict=True)] for u in units for w in others]
    assert max(sum(map(abs, v)) for v in moved) <= bound.exact_l1
    assert max(sum(x * x for x in v) for v in moved) <= bound.l2_squared
    assert max(max(map(abs, v)) for v in moved) <= bound.exact_linf
    assert max(sum(x != 0 for x in v) for v in moved) <= bound.l0
    if relation == "add-remove":  # and reached, where it can be
        assert max(sum(map(abs, v)) for v in moved) == bound.exact_l1
        assert max(max(map(abs, v)) for v in moved) == bound.exact_linf


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_it_grows_in_proportion_to_the_periods_at_least(relation):
    _, one, swing = NIGHT["rows"]
    for size in (1, 2, 5):
        made = [
            period_totals(one, swing, periods=m, size=size, relation=relation) for m in range(1, 9)
        ]
        for name in ("exact_l1", "l2_squared"):
            per = [Fraction(getattr(bound, name)) / m for m, bound in enumerate(made, 1)]
            assert per == sorted(per)
