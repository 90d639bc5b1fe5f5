"""Which cases are quick, and which of the long ones are asked in a turn."""

from __future__ import annotations

import itertools
import os
import random
from types import SimpleNamespace

import pytest

from dpframe.noise.bits import random_words
from tiers import MOST, out_of_turn, thin_out


class Case:
    """A test's case as pytest collects it: its parameters and its marks."""

    def __init__(self, step, **params):
        self.nodeid, self.callspec = f"tests/a.py::test[{params}]", SimpleNamespace(params=params)
        self.marks = {"one_in": pytest.mark.one_in(step).mark}

    def get_closest_marker(self, name):
        return self.marks.get(name)

    def add_marker(self, mark):
        self.marks[mark.name] = mark.mark

    @property
    def is_quick(self):
        return "long" not in self.marks


def test_of_a_list_each_nth_case_is_quick():
    cases = [Case(3, name=name) for name in "abcdefg"]
    thin_out(cases)
    assert [case.callspec.params["name"] for case in cases if case.is_quick] == ["a", "d", "g"]


@pytest.mark.parametrize("step", [2, 3, 5, 100])
@pytest.mark.parametrize("engines", [1, 2, 8])
def test_of_a_grid_each_value_stays_quick(step, engines):
    cases = [
        Case(step, engine=engine, name=name) for name in "abcdefg" for engine in range(engines)
    ]
    thin_out(cases)
    kept = [case.callspec.params for case in cases if case.is_quick]
    if engines > 1:
        assert {params["engine"] for params in kept} == set(range(engines))
        assert {params["name"] for params in kept} == set("abcdefg")
        assert len(kept) < len(cases)


@pytest.mark.parametrize("questions", [3, 7, 20])
def test_of_a_grid_as_few_cases_as_hold_each_value_are_quick_in_equal_parts(questions):
    cases = [Case(2, engine=engine, name=name) for engine in "abc" for name in range(questions)]
    thin_out(cases)
    kept = [case.callspec.params["engine"] for case in cases if case.is_quick]
    assert len(kept) == questions
    assert max(map(kept.count, "abc")) <= min(map(kept.count, "abc")) + 1


def long_cases(**values):
    cases = [
        Case(1, **dict(zip(values, case, strict=True)))
        for case in itertools.product(*values.values())
    ]
    for case in cases:
        case.add_marker(pytest.mark.long)
    return cases


@pytest.mark.parametrize("engines", [1, 2, 8])
def test_turns_together_ask_every_long_case_and_each_one_every_value(engines):
    cases = long_cases(engine=range(engines), name=range(60))
    turns = [set(cases) - set(out_of_turn(cases, turn)) for turn in range(-(-len(cases) // MOST))]
    assert set.union(*turns) == set(cases)
    for turn in turns:
        assert len(turn) <= MOST + 60 * (engines > 1)
        if engines > 1:
            assert {case.callspec.params["engine"] for case in turn} == set(range(engines))
            assert {case.callspec.params["name"] for case in turn} == set(range(60))


def test_a_test_of_few_long_cases_has_one_turn():
    assert out_of_turn(long_cases(name=range(MOST)), 0) == []
    assert len(out_of_turn(long_cases(name=range(MOST + 1)), 0)) == MOST // 2


@pytest.mark.skipif(os.environ.get("DPFRAME_NOISE") == "new", reason="asked for new noise")
def test_quick_tests_have_the_same_noise_in_each_run(request, monkeypatch):
    words = random.Random(request.node.nodeid)
    assert random_words(3).tobytes() == words.randbytes(24)
    assert random_words(1).tobytes() == words.randbytes(8)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert random_words(1).tobytes() != words.randbytes(8), "a child of a fork has its own noise"


@pytest.mark.long
def test_long_tests_have_new_noise(request):
    assert random_words(1).tobytes() != random.Random(request.node.nodeid).randbytes(8)
