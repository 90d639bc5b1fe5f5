"""Two questions that are typed alike: each is checked, computed and paid by itself."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

import dpframe as dp
from dpframe import engine
from dpframe.errors import InvalidArgument, UnboundedContribution
from inside import question_of, step_of


def protected():
    rows = pl.DataFrame({"u": [1, 1, 2], "x": [0.5, 1.0, 0.0], "g": ["a", "b", "a"]})
    return dp.protect(rows, unit="u", budget=dp.Budget(epsilon=10))


def ask(frame):
    return frame.sum("x", bounds=(0, 1), max_rows=2)


def test_two_queries_that_are_typed_alike_are_two_in_a_batch():
    """Each of them has noise of its own, for half of the price."""
    frame = protected()
    alone, batch = ask(frame), frame.budget.plan([ask(frame), ask(frame)], epsilon=2)
    assert (
        batch.noise.get_column("scale").to_list()
        == alone.release(epsilon=1).noise.get_column("scale").to_list() * 2
    )
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
    ask(frame).release(epsilon=1)
    step = weakref.ref(step_of(frame))
    gc.disable()
    try:
        del frame
        assert step() is None
    finally:
        gc.enable()


def test_threads_add_up_their_own_tables():
    tables = [pl.DataFrame({"x": [1.0] * (300 + 50 * i)}) for i in range(6)]
    queries = [dp.protect(rows, unit=dp.Rows(1)).count() for rows in tables]

    def repeated(i):
        return [int(engine.totals(question_of(queries[i]), 0).values[0][0]) for _ in range(10)]

    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(repeated, range(6)))
    assert results == [[rows.height] * 10 for rows in tables]
