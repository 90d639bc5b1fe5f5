"""Which cases of a test are quick, and which are asked in the long tier only."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
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

    Of a list that is each n-th case. Of a grid, such as engines and questions, it is as few cases
    as hold each value of each list. So every engine and every question stays in the quick tier: a
    bug of one value is found there, one of a combination in the long tier.
    """
    thinned = (
        x for x in items if x.get_closest_marker("one_in") and not x.get_closest_marker("long")
    )
    for family in _families(thinned):
        for item, is_quick in zip(
            family, _few(family, family[0].get_closest_marker("one_in").args[0]), strict=True
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
                item
                for item, now in zip(family, _asked_in(family, turns, turn), strict=True)
                if not now
            ]
    return left


def _families(items: Iterable[pytest.Item]) -> Iterable[list[Any]]:
    """The cases of each test."""
    families = defaultdict(list)
    for item in items:
        families[item.nodeid.partition("[")[0]].append(item)
    return families.values()


def _few(family: Sequence[Any], step: int) -> list[bool]:
    """For each case of a test, whether it is quick."""
    cases = [_values(item) for item in family]
    lists = _lists(cases)
    return _with_each_value(
        cases, lists, [len(lists) < 2 and number % step == 0 for number in range(len(cases))]
    )


def _asked_in(family: Sequence[Any], turns: int, turn: int) -> list[bool]:
    """For each case of a test, whether it is asked in this turn."""
    cases = [_values(item) for item in family]
    lists = _lists(cases)
    if len(lists) > 1:
        places = [sum(lists[name].index(case[name]) for name in lists) for case in cases]
    else:
        places = list(range(len(cases)))
    return _with_each_value(cases, lists, [(place - turn) % turns == 0 for place in places])


def _values(item: Any) -> dict[str, str]:
    """The values of a case, by parameter."""
    return {name: repr(value) for name, value in item.callspec.params.items()}


def _lists(cases: Sequence[dict[str, str]]) -> dict[str, list[str]]:
    """The values of each parameter that several cases share."""
    values = {name: list(dict.fromkeys(case[name] for case in cases)) for name in cases[0]}
    return {name: own for name, own in values.items() if 1 < len(own) < len(cases)}


def _with_each_value(
    cases: Sequence[dict[str, str]], lists: dict[str, list[str]], chosen: list[bool]
) -> list[bool]:
    """The chosen cases, and as few others as it takes to hold each value of each list.

    Of cases that add as many values, it is one whose values were taken least often: each engine
    has about as many questions.
    """
    mine = [{(name, case[name]) for name in lists} for case in cases]
    taken = Counter(itertools.chain.from_iterable(itertools.compress(mine, chosen)))
    while unmet := [own for own in mine if not own <= taken.keys()]:
        best = max(unmet, key=lambda own: (len(own - taken.keys()), -sum(taken[x] for x in own)))
        chosen[mine.index(best)] = True
        taken.update(best)
    return chosen
