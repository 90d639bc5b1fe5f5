"""Which cases of a test are quick, and which are asked in the long tier only."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def in_turn(*values: Iterable[Any]) -> list[Any]:
    """Every combination of some parameters' values;
    every second one is long, so that each value stays quick somewhere.

    Of two parameters with values a, b and 1, 2 the cases (a, 1) and (b, 2) are quick: a bug of one
    value is found by either of its cases, and a bug of one combination in the long tier.
    """
    cases = itertools.product(*map(enumerate, values))
    return [
        pytest.param(
            *(value for _, value in case),
            marks=pytest.mark.long if sum(i for i, _ in case) % 2 else (),
        )
        for case in cases
    ]


MOST = 20  # long cases of one test in a turn


def thin_out(items: Sequence[pytest.Item]) -> None:
    """Make the cases of tests with `@pytest.mark.one_in(n)` long, but for about every n-th.

    Of a list that is each n-th case. Of a grid, such as engines and questions, it is each case
    whose places in the lists add up to a multiple of n; and each value that has no quick case then
    keeps its first one. So every engine and every question stays in the quick tier: a bug of one
    value is found there, one of a combination in the long tier.
    """
    thinned = (
        x for x in items if x.get_closest_marker("one_in") and not x.get_closest_marker("long")
    )
    for family in _families(thinned):
        for item, is_quick in zip(
            family, _nth(family, family[0].get_closest_marker("one_in").args[0]), strict=True
        ):
            if not is_quick:
                item.add_marker(pytest.mark.long)


def out_of_turn(items: Sequence[pytest.Item], turn: int) -> list[pytest.Item]:
    """The long cases that another turn asks.

    A test with more than MOST long cases is asked in several turns, each of which has about MOST of
    them and each value of a grid at least once. All turns together ask every case.
    """
    left = []
    for family in _families(item for item in items if item.get_closest_marker("long")):
        turns = -(-len(family) // MOST)
        if turns > 1:
            left += [
                item for item, now in zip(family, _nth(family, turns, turn), strict=True) if not now
            ]
    return left


def _families(items: Iterable[pytest.Item]) -> Iterable[list[Any]]:
    """The cases of each test."""
    families = defaultdict(list)
    for item in items:
        families[item.nodeid.partition("[")[0]].append(item)
    return families.values()


def _nth(family: Sequence[Any], step: int, first: int = 0) -> list[bool]:
    """For each case of a test, whether it is one of every n-th, and each
    value of a grid at least once.
    """
    cases = [{name: repr(value) for name, value in item.callspec.params.items()} for item in family]
    values = {name: list(dict.fromkeys(case[name] for case in cases)) for name in cases[0]}
    # others differ from case to case
    lists = [name for name in values if 1 < len(values[name]) < len(cases)]
    if len(lists) > 1:
        chosen = [
            (sum(values[name].index(case[name]) for name in lists) - first) % step == 0
            for case in cases
        ]
    else:
        chosen = [(number - first) % step == 0 for number in range(len(cases))]
    met = {
        (name, case[name])
        for case, is_chosen in zip(cases, chosen, strict=True)
        if is_chosen
        for name in lists
    }
    for number, case in enumerate(cases):
        mine = {(name, case[name]) for name in lists}
        if not met.issuperset(mine):
            chosen[number] = True
            met |= mine
    return chosen
