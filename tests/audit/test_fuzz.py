"""Random plans on random tables, one rule after another (Hypothesis):
what is claimed holds, and nothing else happens.

Seconds of the same cases in each run of the tests, as many as the machine gets through; two minutes
of new ones in the long tier, or as many as `DPFRAME_FUZZ_SECONDS` says.
"""

from __future__ import annotations

import os
import random
import time

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import dpframe as dp
from dpframe.errors import BudgetExceeded, DpFrameError, EngineError
from inside import question_of
from strategies import (
    _STEPS,
    KINDS,
    as_frame,
    bring,
    check_claims,
    random_question,
    random_rows,
    rows_of_unit,
)

SEEDS = st.integers(0, 2**32 - 1)
LIMIT = 4.0
RELATIONS = ["add-remove", "replace"]


class Analyst(RuleBasedStateMachine):
    """Somebody who transforms a protected table and asks questions;
    beside it walks a neighbour of the table.
    """

    @initialize(
        seed=SEEDS,
        kind=st.sampled_from(KINDS),
        relation=st.sampled_from(["add-remove", "replace"]),
        rows=st.booleans(),
    )
    def protect(self, seed, kind, relation, rows):
        rng = random.Random(seed)
        unit = dp.Rows(2) if rows else rng.choice(["u", ("u", "w")])
        here = random_rows(rng, units=3, most=4)
        gone = rng.randrange(3)
        if rows:
            there = here[2:] + (rows_of_unit(rng, 9, 2) if relation == "replace" else [])
        else:
            there = [row for row in here if row[0] != gone]
            there += (
                rows_of_unit(rng, rng.choice([gone, 77]), rng.randint(1, 8))
                if relation == "replace"
                else []
            )
        rng.shuffle(there)
        self.limited = not rows
        self.budgets = [dp.Budget(epsilon=LIMIT, delta=1e-3) for _ in range(2)]
        self.frames = [
            dp.protect(bring(as_frame(side), kind), unit=unit, neighbors=relation, budget=budget)
            for side, budget in zip((here, there), self.budgets, strict=True)
        ]
        self.query = None

    def both(self, act, things):
        """The same act on both sides: both succeed, or both fail in the same words."""
        made = []
        for thing in things:
            try:
                made.append((act(thing), None))
            except DpFrameError as error:
                made.append((None, (type(error), str(error))))
        assert made[0][1] == made[1][1], made
        return None if made[0][1] else [thing for thing, _ in made]

    @rule(step=st.sampled_from(_STEPS), seed=SEEDS)
    def transform(self, step, seed):
        self.frames = self.both(lambda f: step(random.Random(seed), f), self.frames) or self.frames

    @rule(seed=SEEDS)
    def ask(self, seed):
        question = random_question(random.Random(seed), limited=self.limited)
        self.query = self.both(question, self.frames)

    @precondition(lambda self: self.query is not None)
    @rule(salt=st.integers(0, 2**64 - 1))
    def measure(self, salt):
        try:
            check_claims(*self.query, salt)
        except EngineError:
            self.query = None

    @precondition(lambda self: self.query is not None)
    @rule(
        epsilon=st.sampled_from([0.1, 0.5, 1.0, 3.0]),
        noise=st.sampled_from(["auto", "laplace", "gaussian"]),
    )
    def release(self, epsilon, noise):
        out = self.both(lambda q: q.release(epsilon=epsilon, delta=1e-4, noise=noise), self.query)
        if out is not None and not question_of(self.query[0]).private_keys:
            first, second = (side.to_polars() for side in out)
            keys = list(question_of(self.query[0]).by)
            assert first.schema == second.schema
            assert first.height == second.height
            assert (
                not keys
                or set(keys) - set(first.columns)
                or first.select(keys).equals(second.select(keys))
            )

    @precondition(lambda self: self.query is not None)
    @rule()
    def look(self):
        repr(self.query[0])
        str(self.query[0].explain())
        self.both(lambda q: str(q.accuracy(epsilon=1.0, delta=1e-4, assume_rows=9)), self.query)

    @invariant()
    def budgets_hold(self):
        if hasattr(self, "budgets"):
            assert all(b.spent.epsilon <= LIMIT for b in self.budgets)
            assert str(self.budgets[0].spent) == str(self.budgets[1].spent)
            with pytest.raises((BudgetExceeded, DpFrameError)):
                self.frames[0].count_units().release(epsilon=2 * LIMIT)


def fuzz(seconds, steps, *, fresh):
    """Cases until the processor time is over: new ones, or those
    of the seeds 0, 1, 2, and so on.
    """
    ends = time.process_time() + seconds
    rounds = 0
    while time.process_time() < ends or not rounds:
        run_state_machine_as_test(
            Analyst if fresh else seed(rounds)(type("Seeded", (Analyst,), {})),
            settings=settings(
                max_examples=6,
                stateful_step_count=steps,
                deadline=None,
                database=None,
                derandomize=False,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate, Phase.shrink],
            ),
        )
        rounds += 1
    return rounds


@pytest.mark.filterwarnings("ignore:The released table is empty")  # there are few units
@pytest.mark.filterwarnings("ignore:With 9 rows in a group")  # so few are assumed
def test_an_analyst_finds_nothing_in_seconds():
    assert fuzz(float(os.environ.get("DPFRAME_FUZZ_SECONDS", "2")), 12, fresh=False)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The released table is empty")  # there are few units
@pytest.mark.filterwarnings("ignore:With 9 rows in a group")  # so few are assumed
def test_an_analyst_finds_nothing_in_two_minutes():
    assert fuzz(float(os.environ.get("DPFRAME_FUZZ_SECONDS", "120")), 30, fresh=True)


# What it found


def test_a_total_of_suppressed_groups_that_nobody_can_change_needs_no_noise():
    frame = dp.protect(
        as_frame(random_rows(random.Random(1))),
        unit="u",
        budget=dp.Budget(epsilon=LIMIT, delta=1e-3),
    )
    query = frame.group_by("city", max_groups=1, other="(other)").agg(
        s=dp.sum("x", unit_bounds=(0, 0))
    )
    assert query.accuracy(epsilon=1.0, delta=1e-4)["scale"].to_list() == [0.0, 0.0]
    assert set(query.release(epsilon=1.0, delta=1e-4).table["s"]) == {0.0}
