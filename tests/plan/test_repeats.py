"""Questions that are typed alike share what was worked out of them, and no other two questions do."""

from __future__ import annotations

import datetime as dt
import gc
import os
import weakref
from collections import OrderedDict
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe.engine import prepared
from dpframe.errors import InvalidArgument, UnboundedContribution
from dpframe.plan import derivation, once, repeats
from dpframe.plan.repeats import exact


def protected(**options):
    rows = pl.DataFrame({"u": [1, 1, 2], "g": ["a", "b", "a"], "x": [1.0, 2.0, 3.0], "n": [1, 2, 3]})
    return dp.protect(rows, unit="u", budget=dp.Budget(epsilon=10), **options)


ASKED = [
    lambda f: f.sum("x", bounds=(0, 1), max_rows=2),
    lambda f: f.sum("x", bounds=(0, 1.0), max_rows=2),
    lambda f: f.sum("x", bounds=(0, 2), max_rows=2),
    lambda f: f.sum("x", bounds=(0, 1), max_rows=3),
    lambda f: f.sum("x", unit_bounds=(0, 1)),
    lambda f: f.sum("n", bounds=(0, 1), max_rows=2),
    lambda f: f.mean("x", bounds=(0, 1), max_rows=2),
    lambda f: f.median("x", bounds=(0, 1), max_rows=2),
    lambda f: f.agg(y=dp.sum("x", bounds=(0, 1)), max_rows=2),
    lambda f: f.agg(y=dp.sum("x", bounds=(0, 1), max_rows=1), max_rows=2),
    lambda f: f.group_by("g", keys=["a"], max_groups=1, max_rows=2).sum("x", bounds=(0, 1)),
    lambda f: f.group_by("g", keys=["b"], max_groups=1, max_rows=2).sum("x", bounds=(0, 1)),
    lambda f: f.group_by("g", keys=["a", "b"], max_groups=1, max_rows=2).sum("x", bounds=(0, 1)),
    lambda f: f.group_by("g", max_groups=1, max_rows=2).sum("x", bounds=(0, 1)),
    lambda f: f.group_by("g", max_groups=1, max_rows=2, other="rest").sum("x", bounds=(0, 1)),
]


def facts_of(question):
    return question.allotments, question.outputs, question.limits, question.read, str(derivation(question))


def test_questions_that_are_typed_alike_share_their_totals():
    frame = protected()
    for ask in ASKED:
        first, second = ask(frame)._question, ask(frame)._question
        assert first is not second
        assert first.allotments is second.allotments
        assert first.worked is second.worked


def test_no_two_other_questions_share_anything():
    frame = protected()
    asked = [ask(frame)._question for ask in ASKED]
    assert len({id(question.worked) for question in asked}) == len(ASKED)
    assert len({id(question.allotments) for question in asked}) == len(ASKED)


def test_what_is_taken_over_is_what_would_be_worked_out():
    frame = protected()
    for ask in ASKED:
        ask(frame)
        again = facts_of(ask(frame)._question)
        repeats.forget()
        assert facts_of(ask(frame)._question) == again


def test_a_table_with_other_types_or_another_relation_shares_nothing():
    frame, ask = protected(), ASKED[0]
    steps = [
        frame,
        frame.filter(dp.col("x") > 0),
        frame.filter(dp.col("x") > 0),
        protected(),
        protected(neighbors="replace"),
    ]
    assert len({id(ask(one)._question.allotments) for one in steps}) == len(steps)


def test_intervals_that_are_paid_for_are_another_question():
    query = protected().median("x", bounds=(0, 1), max_rows=2)
    assert query._with_ci(0.95)._question.allotments is not query._question.allotments
    assert query._with_ci(0.95)._question.allotments is query._with_ci(0.95)._question.allotments


def test_a_price_is_read_with_its_type_and_its_noise():
    frame = protected()

    def scale(**price):
        return ASKED[0](frame).release(**price).noise.row(0)[2:4]

    prices = [{"epsilon": 1}, {"epsilon": 0.5}, {"epsilon": 1, "noise": "laplace"}, {"epsilon": 1, "delta": 1e-6}]
    first = [scale(**price) for price in prices]
    assert first == [scale(**price) for price in prices]
    assert first[0][1] * 2 == pytest.approx(first[1][1])


def test_two_queries_that_are_typed_alike_are_two_in_a_batch():
    """Each of them has noise of its own, for half of the price."""
    frame = protected()
    alone, batch = ASKED[0](frame), frame.budget.plan([ASKED[0](frame), ASKED[0](frame)], epsilon=2)
    assert batch.noise.get_column("scale").to_list() == alone.release(epsilon=1).noise.get_column("scale").to_list() * 2
    one, other = (plan.noises[0] for plan in batch._plans)
    assert one is not other
    assert len(batch.release()) == 2


def test_a_refusal_comes_each_time():
    frame = protected()
    for _ in range(3):
        with pytest.raises(UnboundedContribution):
            frame.sum("x", bounds=(0, 1))
        with pytest.raises(InvalidArgument):
            frame.group_by("g", keys=["a"], max_groups=1, max_rows=1).agg(g=dp.count())


def test_a_table_is_freed_with_its_last_frame():
    frame = protected()
    ASKED[0](frame).release(epsilon=1)
    step = weakref.ref(frame._step)
    gc.disable()
    try:
        del frame
        assert step() is None
    finally:
        gc.enable()


def test_few_questions_and_few_results_are_kept():
    frame = protected()
    for limit in range(1, repeats._MOST + 20):
        question = frame.count(max_rows=limit)._question
    assert len(frame._step.asked._results) == repeats._MOST
    for number in range(repeats._MOST + 20):
        once(lambda question, number: number, question, number)
    assert len(question.worked) == repeats._MOST


def test_a_result_is_computed_once_for_arguments_that_are_alike():
    calls = []

    def counted(question, *args):
        calls.append(args)
        return len(calls)

    question = protected().count(max_rows=2)._question
    assert [once(counted, question, 1) for _ in range(3)] == [1, 1, 1]
    assert [once(counted, question, other) for other in (1.0, True, "1", [1], [1])] == [2, 3, 4, 5, 6]  # lists never
    repeats.forget()
    assert once(counted, question, 1) == 7


@pytest.mark.parametrize(
    "others",
    [
        (1, 1.0, True, Fraction(1), "1", b"1", None),
        (0.0, -0.0, 0),
        (float("nan"), float("inf"), -float("inf")),
        ((1, 2), (1, (2,)), ((1,), 2), (1, 2.0)),
        (dt.date(2024, 1, 1), dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, fold=1)),
        (dp.Auto(), dp.Auto(0.1), dp.Auto(scaled=False)),
    ],
)
def test_values_that_something_tells_apart_are_not_exactly_equal(others):
    assert len({exact(value) for value in others}) == len(others)
    assert all(exact(value) == exact(value) for value in others)


@pytest.mark.parametrize("value", [[1], {1: 2}, object(), tuple(range(1001)), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)])
def test_a_value_of_another_type_is_not_compared(value):
    with pytest.raises(TypeError):
        exact(value)


def test_a_step_is_no_value():
    with pytest.raises(TypeError):
        exact(protected()._step)


class Fleeting(OrderedDict):
    """Results that another thread drops as soon as somebody has asked whether they are there."""

    def __contains__(self, key):
        there = super().__contains__(key)
        self.pop(key, None)
        return there


def test_a_result_that_another_thread_drops_is_no_error():
    question = protected().count(max_rows=2)._question
    vars(question)["worked"] = Fleeting()
    assert [once(limit_of, question) for _ in range(3)] == [2, 2, 2]


def limit_of(question):
    return question.limits.max_rows


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # Python 3.12+: other tests may have left threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
@pytest.mark.parametrize("module", [repeats, prepared])
def test_a_fork_has_a_lock_of_its_own(module):
    """A fork while another thread holds the lock: nobody in the child would ever release its copy."""
    with module._lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if module._lock.acquire(timeout=1) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
