"""Rows are read only after the charge, and nobody can see a cell."""

from __future__ import annotations

import logging
import pickle

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from polars.io.plugins import register_io_source

import dpframe as dp
from dpframe import engine
from dpframe.errors import BudgetExceeded, DpFrameError, DpFrameWarning, EngineError
from inside import question_of, step_of
from strategies import bring

CANARY = "canary-7b1f"
NUMBER = 8675309


class _Reads:
    """A lazy table that records when it is read, and whether the
    budget had been charged by then.
    """

    def __init__(self, frame, budget):
        self.spent_at_reads = []
        self.budget, self.frame = budget, frame

    def table(self):
        def source(with_columns, predicate, n_rows, batch_size):
            self.spent_at_reads.append(self.budget.spent.epsilon)
            made = self.frame.select(with_columns) if with_columns else self.frame
            yield made.filter(predicate) if predicate is not None else made

        return register_io_source(source, schema=self.frame.schema)


@pytest.fixture
def frame():
    return pl.DataFrame(
        {
            "u": [f"{CANARY}-{i}" for i in range(6)],
            "city": [CANARY, "Bonn"] * 3,
            "x": [float(NUMBER), 1.0] * 3,
            "i": [NUMBER, 1] * 3,
        }
    )


@pytest.fixture
def reads(frame):
    return _Reads(frame, dp.Budget(epsilon=1, delta=1e-6))


@pytest.mark.filterwarnings("ignore:With .* rows in a group")  # so few are assumed
@pytest.mark.filterwarnings("ignore:The released table is empty")  # there are few units
def test_rows_are_read_once_and_after_the_charge(reads):
    private = (
        dp.protect(reads.table(), unit="u", budget=reads.budget)
        .filter(dp.col("i") > 0)
        .clip("x", 0, 5)
    )
    query = private.group_by("city", max_groups=1, max_rows_per_group=1).agg(
        n=dp.count(), m=dp.mean("x")
    )
    str(query.explain()), repr(query), repr(private), private._repr_html_(), query._repr_html_()
    query.accuracy(epsilon=1, delta=1e-6, assume_rows=5)
    engine.validate(question_of(query))
    assert reads.spent_at_reads == []
    query.release(epsilon=0.5, delta=1e-6)
    assert reads.spent_at_reads == [0.5]


@pytest.mark.parametrize(
    "ask",
    [
        lambda f: f.sum("nothing", max_rows=1).release(epsilon=0.1),
        lambda f: f.sum("city", bounds=(0, 1), max_rows=1).release(epsilon=0.1),
        lambda f: f.sum("x", max_rows=1).release(epsilon=0.1),
        lambda f: f.sum("x", bounds=(0, 1)).release(epsilon=0.1),
        lambda f: f.sum("x", bounds=(1, 0), max_rows=1).release(epsilon=0.1),
        lambda f: f.count(max_rows=1).release(),
        lambda f: f.count(max_rows=1).release(epsilon=-1),
        lambda f: f.count(max_rows=1).release(epsilon=0),
        lambda f: f.count(max_rows=1).release(epsilon=float("nan")),
        lambda f: f.count(max_rows=1).release(epsilon=float("inf")),
        lambda f: f.count(max_rows=1).release(epsilon=0.1, delta=1),
        lambda f: f.count(max_rows=1).release(epsilon=0.1, delta=-1e-9),
        lambda f: f.count(max_rows=1).release(epsilon=2),
        lambda f: f.count(max_rows=1).release(epsilon=0.1, noise="gaussian"),
        lambda f: f.count(max_rows=1).release(epsilon=0.1, noise="purple"),
        lambda f: f.group_by("city", max_groups=1).count_units().release(epsilon=0.1),
        lambda f: f.group_by("city", max_groups=1).count_units().release(epsilon=0.1, delta=1e-3),
        lambda f: f.filter(dp.col("city") > 3).count(max_rows=1).release(epsilon=0.1),
        lambda f: f.filter(dp.col("x")).count(max_rows=1).release(epsilon=0.1),
        lambda f: f.group_by("u", max_groups=1).count_units().release(epsilon=0.1),
        lambda f: f.count(max_rows=0).release(epsilon=0.1),
        lambda f: f.count(max_rows=2**31).release(epsilon=0.1),
        lambda f: f.count(max_rows=1.5).release(epsilon=0.1),
    ],
)
def test_a_refusal_reads_nothing_and_spends_nothing(reads, ask):
    with pytest.raises(DpFrameError) as caught:
        ask(dp.protect(reads.table(), unit="u", budget=reads.budget))
    assert CANARY not in str(caught.value)
    assert reads.spent_at_reads == []
    assert (reads.budget.spent.epsilon, reads.budget.spent.delta, len(reads.budget.history())) == (
        0,
        0,
        0,
    )
    # and the budget is not bricked
    dp.protect(reads.table(), unit="u", budget=reads.budget).count_units().release(epsilon=1)


def test_an_engine_that_fails_says_nothing(kind, frame, monkeypatch, capfd):
    """A failure in the engine costs budget and shows a constant message, not the engine's own."""
    budget = dp.Budget(epsilon=1)
    private = dp.protect(bring(frame, kind), unit="u", budget=budget)
    query = private.sum("x", bounds=(0, 5), max_rows=2)

    def burst(*_, **__):
        error = ValueError(CANARY)
        error.add_note(CANARY)
        raise error

    monkeypatch.setattr(pl.LazyFrame, "collect", burst)
    monkeypatch.setattr(pl, "collect_all", burst)
    with pytest.raises(EngineError) as caught:
        engine.totals(question_of(query), 1)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert not hasattr(error, "__notes__")
    assert CANARY not in str(error)
    assert CANARY not in "".join(capfd.readouterr())
    with pytest.raises(EngineError):
        query.release(epsilon=0.5)
    assert budget.spent.epsilon == 0  # it failed on the table without rows already


@pytest.mark.parametrize(
    "panic", [pl.exceptions.PanicException, pl.exceptions.ComputeError, MemoryError]
)
def test_a_failure_that_only_rows_cause_costs_budget_and_says_nothing(frame, panic):
    budget = dp.Budget(epsilon=1)

    def fail(series):
        if len(series):
            raise panic(CANARY)
        return series

    lazy = frame.lazy().with_columns(pl.col("x").map_batches(fail, return_dtype=pl.Float64))
    with pytest.raises(EngineError) as caught:
        dp.protect(lazy, unit="u", budget=budget).sum("x", bounds=(0, 5), max_rows=2).release(
            epsilon=0.5
        )
    assert CANARY not in str(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert budget.spent.epsilon == 0.5


def test_interrupts_pass(frame):
    def stop(series):
        if len(series):
            raise KeyboardInterrupt
        return series

    lazy = frame.lazy().with_columns(pl.col("x").map_batches(stop, return_dtype=pl.Float64))
    query = dp.protect(lazy, unit="u").sum("x", bounds=(0, 5), max_rows=2)
    with pytest.raises((KeyboardInterrupt, EngineError)):
        engine.totals(question_of(query), 1)


def test_nothing_that_prints_shows_a_cell(kind, frame, caplog, capfd, recwarn):
    caplog.set_level(logging.DEBUG)
    budget = dp.Budget(epsilon=100, delta=1e-6)
    private = dp.protect(bring(frame, kind), unit="u", budget=budget).clip("x", 0, 5)
    groups = private.group_by("city", max_groups=1, max_rows_per_group=1)
    query = groups.agg(n=dp.count(), m=dp.mean("x"))
    out = query.release(epsilon=0.01, delta=1e-9)  # so little that no key passes
    shown = [
        repr(o)
        for o in (
            private,
            groups,
            query,
            budget,
            out,
            out.noise,
            question_of(query).step,
            question_of(query).step.table,
        )
    ]
    shown += [
        str(query.explain()),
        query._repr_html_(),
        private._repr_html_(),
        out.report(),
        out._repr_html_(),
    ]
    shown += [
        repr(engine.totals(question_of(query), 1)),
        repr(step_of(private)),
        repr(budget.history()),
    ]
    shown += [repr(step_of(dp.protect(bring(frame, kind), unit="u")).data)]
    for name, wrong in {
        "filter": dp.col("city") > 3,
        "sum": "city",
        "clip": "city",
        "cast": {"city": bytes},
    }.items():
        with pytest.raises(DpFrameError) as caught:
            getattr(private, name)(wrong)
        shown.append(str(caught.value))
    everything = "\n".join(
        [*shown, caplog.text, *capfd.readouterr(), *(str(w.message) for w in recwarn)]
    )
    assert CANARY not in everything
    assert str(NUMBER) not in everything


def test_what_holds_rows_cannot_be_pickled(kind, frame):
    private = dp.protect(bring(frame, kind), unit="u", budget=dp.Budget(epsilon=1))
    for held in (
        private,
        private.group_by("city", max_groups=1),
        private.count_units(),
        step_of(private).data,
    ):
        with pytest.raises(DpFrameError):
            pickle.dumps(held)
    released = private.count_units().release(epsilon=1)
    assert CANARY.encode() not in pickle.dumps(released.table)


# What is released


@pytest.mark.one_in(2)
def test_listed_rows_and_types_do_not_depend_on_the_data(kind, frame):
    keys = {"city": ["Nowhere", CANARY, None], "i": [1, NUMBER]}
    made = []
    for rows in (frame, frame.head(0), frame.head(1)):
        private = dp.protect(bring(rows, kind), unit="u", budget=dp.Budget(epsilon=10))
        query = private.group_by("city", "i", keys=keys, max_groups=1, max_rows_per_group=1)
        made.append(
            query.agg(
                n=dp.count(), s=dp.sum("x", bounds=(0, 5)), m=dp.mean("x", bounds=(0, 5))
            ).release(epsilon=1)
        )
    tables = [out.to_polars() for out in made]
    assert all(t.select("city", "i").equals(tables[0].select("city", "i")) for t in tables)
    assert all(t.schema == tables[0].schema for t in tables)
    assert tables[0].rows()[0][:2] == ("Nowhere", 1)
    assert {type(out.table) for out in made} == {
        {"pandas": pd.DataFrame, "pyarrow": pa.Table}.get(kind, pl.DataFrame),
    }


def test_found_keys_come_sorted(kind):
    units = range(900)
    frame = pl.DataFrame({"u": units, "k": [["b", "ä", "a", "", "B", "aa"][i % 6] for i in units]})
    for rows in (frame, frame.reverse(), frame.sample(fraction=1, shuffle=True)):
        private = dp.protect(bring(rows, kind), unit="u", budget=dp.Budget(epsilon=10, delta=1e-3))
        out = (
            private.group_by("k", max_groups=1)
            .count_units()
            .release(epsilon=5, delta=1e-3)
            .to_polars()
        )
        assert out["k"].to_list() == ["", "B", "a", "aa", "b", "ä"]
        assert out.columns == ["k", "count_units"]


def test_a_rare_key_does_not_appear():
    frame = pl.DataFrame({"u": range(101), "k": ["common"] * 100 + [CANARY]})
    for _ in range(50):  # each shows the rare key with probability below 1e-9
        private = dp.protect(frame, unit="u", budget=dp.Budget(epsilon=1, delta=1e-9))
        out = private.group_by("k", max_groups=1).count_units().release(epsilon=1, delta=1e-9)
        assert CANARY not in out.to_polars()["k"].to_list()


def test_an_empty_table_is_released(kind, frame):
    private = dp.protect(
        bring(frame.head(0), kind), unit="u", budget=dp.Budget(epsilon=100, delta=1e-6)
    )
    assert abs(private.count(max_rows=1).release(epsilon=50).value) < 5
    with pytest.warns(DpFrameWarning, match="The released table is empty"):
        out = private.group_by("city", max_groups=1).count_units().release(epsilon=1, delta=1e-7)
    assert out.to_polars().shape == (0, 2)


def test_a_budget_that_is_not_enough_is_not_touched(frame):
    budget = dp.Budget(epsilon=1)
    private = dp.protect(frame, unit="u", budget=budget)
    private.count_units().release(epsilon=0.9)
    with pytest.raises(BudgetExceeded, match="Nothing was spent"):
        private.count_units().release(epsilon=0.2)
    assert budget.spent.epsilon == 0.9
    private.count_units().release(epsilon=0.1)
