"""Which cases of a test are quick, and which are asked in the long tier only."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def in_turn(*values: Iterable[Any]) -> list[Any]:
    """Every combination of some parameters' values; every second one is long, so that each value stays quick somewhere.

    Of two parameters with values a, b and 1, 2 the cases (a, 1) and (b, 2) are quick: a bug of one value is found by
    either of its cases, and a bug of one combination in the long tier.
    """
    cases = itertools.product(*map(enumerate, values))
    return [
        pytest.param(*(value for _, value in case), marks=pytest.mark.long if sum(i for i, _ in case) % 2 else ())
        for case in cases
    ]


def thin_out(items: Sequence[pytest.Item]) -> None:
    """Make the cases of tests with `@pytest.mark.one_in(n)` long, but for about every n-th.

    Of a list that is each n-th case. Of a grid, such as engines and questions, it is each case whose places in the
    lists add up to a multiple of n; and each value that has no quick case then keeps its first one. So every engine and
    every question stays in the quick tier: a bug of one value is found there, one of a combination in the long tier.
    """
    families = defaultdict(list)
    for item in items:
        if item.get_closest_marker("one_in") and not item.get_closest_marker("long"):
            families[item.nodeid.partition("[")[0]].append(item)
    for family in families.values():
        _thin_out(family)


def _thin_out(family: Sequence[Any]) -> None:
    step = family[0].get_closest_marker("one_in").args[0]
    cases = [{name: repr(value) for name, value in item.callspec.params.items()} for item in family]
    values = {name: list(dict.fromkeys(case[name] for case in cases)) for name in cases[0]}
    lists = [name for name in values if 1 < len(values[name]) < len(cases)]  # others differ from case to case
    if len(lists) > 1:
        quick = [sum(values[name].index(case[name]) for name in lists) % step == 0 for case in cases]
    else:
        quick = [number % step == 0 for number in range(len(cases))]
    met = {(name, case[name]) for case, is_quick in zip(cases, quick, strict=True) if is_quick for name in lists}
    for item, case, is_quick in zip(family, cases, quick, strict=True):
        mine = {(name, case[name]) for name in lists}
        if is_quick or not met.issuperset(mine):
            met |= mine
        else:
            item.add_marker(pytest.mark.long)
