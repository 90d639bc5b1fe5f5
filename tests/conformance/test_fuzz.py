"""Random steps, expressions and questions on random tables of hostile cells:
no error once a release is paid.

Each case is a table, an engine, a chain of steps with expressions in them, and a question that is
released. Before the charge a typed refusal is right, if the table without rows has the same one.
After it nothing is: an error there may be one that a cell caused. Where limits leave no choice, the
raw totals are those of Polars.

How to run it. `pytest tests/conformance/test_fuzz.py` takes twenty seconds: a case or two on each
engine but Spark. With `-m long` it takes about twenty minutes of one core, and asks every engine,
Spark too. The numbers of the cases are fixed, so each run is the same. `DPFRAME_FUZZ_SEED=1000000`
goes on from there, in both tiers: other numbers, other cases. A failing case names its engine and
its number, and `hold_case("duckdb", 21)` is that case again.

`make fuzz` asks other cases each time, for a minute of processor time, on every engine but Spark;
`MINUTES=20` for twenty. It says at which number it begins, and a failure says its own: `make fuzz
SEED=21` begins with case 21.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import random
import secrets
import time
from collections import Counter

import numpy as np
import pytest
from asking import AFTER, Side, a_question, a_step, a_table
from cells import TYPES, pairs
from engines import ENGINES, READERS, STARTED
from expressions import of_one, of_two
from suite import check, refused

import dpframe as dp
from dpframe import engine as asked
from dpframe.errors import DpFrameError, EngineError, WrongType
from dpframe.noise import bits
from dpframe.plan import Question
from inside import question_of, step_of

# Few units reach a threshold here, and an empty table is no failure.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The released table is empty"),
    pytest.mark.filterwarnings("ignore:join. on= holds the columns that identify the unit"),
]

ALL = (*ENGINES, *READERS)
FEW = 2  # cases on each engine in each run of the tests, 1 where SQL is written
CASES = 40  # in the long tier; fewer where one takes longer
POLARS = ENGINES[0]
START = int(os.environ.get("DPFRAME_FUZZ_SEED") or 0)
# of processor time, as `make fuzz` says
MINUTES = float(os.environ.get("DPFRAME_FUZZ_MINUTES") or 0)
# Of the first some cells are known to differ, see known.py; the others leave a choice by a hash.
ELSEWHERE = (".dt.", "max_rows=1)", "max_rows=3)")


class Case:
    """One random case on an engine: a table, steps and questions, also
    on the table without its rows.
    """

    def __init__(self, engine, number):
        self.rng, self.engine = random.Random(number), engine
        self.silent = []  # refusals of a type that name nothing to type
        self.side = self.protected()
        self.empty, self.steps = self.side.without_rows(), []

    def protected(self):
        """A table; another one where the engine has no column of the
        unit's type, or it can be no unit.
        """
        while True:
            table, unit = a_table(self.rng)
            if _has(self.engine, table, unit):
                try:
                    return Side(self.engine, table, unit, dp.Budget(epsilon=1000, delta=0.5))
                except DpFrameError as error:
                    self.refused("unit", error)

    def hold(self):
        """Up to five steps that are not refused, and two questions."""
        for _ in range(self.rng.randint(0, 5)):
            self.step()
        for wide in (True, False):
            self.question(wide=wide)
        assert not self.silent, self.silent

    def step(self):
        """A random step. A refused step is left out."""
        step = a_step(self.rng, self.side)
        frame, nothing = _tried(step, self.side), _tried(step, self.empty)
        if _same_refusal(frame, nothing):
            self.refused("step", frame)
        else:
            assert step_of(frame).table.columns.keys() == step_of(nothing).table.columns.keys()
            self.side.frame, self.empty.frame = frame, nothing
            self.steps.append(step)

    def question(self, *, wide):
        """A question, released; with the totals of Polars where no
        unit has more than its limits.
        """
        question = a_question(self.rng, self.side, wide=wide)
        query, nothing = _tried(question, self.side), _tried(question, self.empty)
        if _same_refusal(query, nothing):
            return self.refused("question", query)
        noise = self.rng.choice(["auto", "auto", "laplace", "gaussian"])
        options = {"noise": noise}
        if not repr(query).startswith("Synthetic"):  # rows have no intervals
            options |= {
                "ci": self.rng.choice([None, None, 0.95]),
                "covers": self.rng.choice(["noise", "population"]),
            }
        released = self.release(query, self.side.budget, options)
        if isinstance(released, DpFrameError):
            other = self.release(nothing, self.empty.budget, options)
            assert _same_kind(released, other), f"a refusal depends on rows: {released}"
            return self.refused("release", released)
        COUNTED["released", self.engine.name] += 1
        asked_for = getattr(query, "_question", None)  # synthetic rows have a query of their own
        if (
            wide
            and self.engine is not POLARS
            and type(asked_for) is Question
            and not asked_for.undecided
        ):
            self.compare(question, query)
        return None

    def release(self, query, budget, options):
        """The released table, or the refusal; any error once it is paid,
        and any of no type, is a failure.
        """
        before = budget.spent
        try:
            released = query.release(epsilon=1, delta=1e-6, **options)
            return released, shown(released)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            paid = budget.spent != before or budget.failures.failed
            if paid or not isinstance(error, DpFrameError) or isinstance(error, EngineError):
                when = "after the charge" if paid else "before the charge"
                raise AssertionError(
                    f"{type(error).__name__} {when}: {error}\n{query.explain()}"
                ) from error
            return error

    def compare(self, question, query):
        """Compare the raw totals with those of Polars for equal cells,
        unless Polars refuses the question.
        """
        written = str(query.explain())
        if any(word in written for word in ELSEWHERE) or _times_of_ibis(self.engine, self.side):
            return
        other = _other(self.side)
        try:
            for step in self.steps:
                other.frame = step(other)
            theirs = question(other)
        except DpFrameError:
            return
        # SQL holds milliseconds as microseconds, on another grid
        if _types(query) != _types(theirs):
            return
        assert _totals(query) == _totals(theirs), f"other totals than Polars'\n{written}"
        COUNTED["compared", self.engine.name] += 1

    def refused(self, what, error):
        COUNTED["refused", self.engine.name] += 1
        self.silent += refused(self.engine.name, f"a {what} of a random case", error) * isinstance(
            error, WrongType
        )


VIEWS = (
    "accuracy",
    "report",
    "to_polars",
    "to_pandas",
    "to_arrow",
    "to_csv",
    "to_html",
    "plot",
    "with_ci",
)
CHANGES = ("nonnegative", "round", "shrink", "independence")


def shown(released):
    """What a user looks at after a release.
    A refusal that says that this release has no such thing is right.
    """
    views = [repr(released), released._repr_html_()]
    calls = [(name, ()) for name in (*VIEWS, *CHANGES)]
    calls += [("suppress", (5,)), *((name, (io.BytesIO(),)) for name in ("to_parquet", "to_excel"))]
    numbers = getattr(released, "_numbers", None)
    if hasattr(released, "compare") and numbers.by and numbers.long.height > 1:
        first, second = map(tuple, numbers.long.select(numbers.by).head(2).rows())
        calls += [("difference", (first, second)), ("compare", (first,))]
    for name, args in calls:
        with contextlib.suppress(DpFrameError, AttributeError):
            views.append(repr(getattr(released, name)(*args)))
    return views


COUNTED = Counter()
WHAT = ("cases", "released", "compared", "refused")


def _has(engine, table, unit):
    """Whether an engine has columns of the unit's types."""
    names = {unit} if isinstance(unit, str) else set() if isinstance(unit, dp.Rows) else set(unit)
    return names <= engine.make(table)[1].keys()


def _times_of_ibis(engine, side):
    """Whether a date or time is the unit in Ibis, where rows of a year that
    Python has not are of no unit.
    """
    units = (
        ()
        if isinstance(side.unit, dp.Rows)
        else (side.unit,)
        if isinstance(side.unit, str)
        else side.unit
    )
    times = any(side.held[name].name.startswith(("a_date", "b_date")) for name in units)
    return engine.name.startswith("ibis") and times


def _other(side):
    """The cells of an engine's table, as a Polars table."""
    held = {name: cells for name, cells in side.held.items() if name != "r"}
    return Side(POLARS, held, side.unit, dp.Budget(epsilon=1))


def _tried(step, side):
    """The table after a step, or the step's refusal."""
    try:
        return step(side)
    except DpFrameError as error:
        return error


def _same_kind(one, other):
    refused = [isinstance(x, DpFrameError) for x in (one, other)]
    return (refused == [True, True] and type(one) is type(other)) or refused == [False, False]


def _same_refusal(one, other):
    """Whether both tables refuse.
    If one alone refuses, the refusal depends on rows, and the test fails.
    """
    assert _same_kind(one, other), f"a refusal depends on rows: {one!r:.300}, {other!r:.300}"
    return isinstance(one, DpFrameError)


def _types(query):
    """The types of the columns that a question adds up."""
    return [
        None if (column := paid.total.column) is None else column.domain.dtype
        for paid in question_of(query).read
    ]


def _totals(query):
    """The raw totals by name and key, in the unit of the column."""
    totals = asked.totals(question_of(query), 1)
    keys = list(map(repr, totals.keys.rows())) if question_of(query).by else ["()"]
    return {
        (name, key): [
            int(x) * paid.total.unit for x in (value if hasattr(value, "__len__") else [value])
        ]
        for paid, values in zip(question_of(query).read, totals.values, strict=True)
        for name in paid.names
        for key, value in zip(keys, np.asarray(values), strict=True)
    }


def hold_case(name, number):
    """Run one case on an engine, with fixed noise."""
    engine = next(engine for engine in ALL if engine.name == name)
    COUNTED["cases", name] += 1
    draw = np.random.default_rng(number)
    try:
        with bits.substitute(lambda count: draw.integers(0, 2**64, count, dtype=np.uint64)):
            Case(engine, number).hold()
    except Exception as error:
        raise AssertionError(f"hold_case({name!r}, {number}): {error}") from error


def hold_expressions(number):
    """Chains of operations on two types, on one engine, of which each
    value is held against `reference`.
    """
    rng = random.Random(number)
    first, second = rng.sample(sorted(TYPES), 2)
    chains = []
    for _ in range(25):
        expr = rng.choice(rng.choice([of_one(first), of_one(second), of_two(first, second)]))
        for _ in range(rng.randint(0, 3)):
            expr = rng.choice(AFTER)(expr)
        chains.append(expr)
    engine = rng.choice([engine for engine in ENGINES if not engine.needs])
    try:
        check(engine, pairs([first, second], most=200), chains)
    except Exception as error:
        raise AssertionError(f"hold_expressions({number}): {error}") from error


def hold_number(number):
    """One case on the engine whose turn it is at a number, or chains of operations."""
    engines = [engine for engine in ALL if not engine.long]
    try:
        if number % 8 == 7:
            hold_expressions(number)
        else:
            hold_case(engines[number % len(engines)].name, number)
    except AssertionError as error:
        raise AssertionError(f"make fuzz SEED={number} begins with this case: {error}") from error


def first(engine):
    """The number of the first case of an engine; each engine has other cases."""
    return START + 1000 * ALL.index(engine)


def group(engine):
    """Tests that share one server or session run in one process."""
    return [pytest.mark.xdist_group(engine.needs)] if engine.needs else []


QUICK = [pytest.param(e, id=e.name, marks=group(e)) for e in ALL if not e.long]
EVERY = [pytest.param(e, id=e.name, marks=[pytest.mark.long, *group(e)]) for e in ALL]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("engine", QUICK)
def test_nothing_is_raised_after_a_charge(engine):
    few = 1 if engine.name.startswith(("duckdb", "ibis", "postgres")) else FEW
    for number in range(first(engine), first(engine) + few):
        hold_case(engine.name, number)


@pytest.mark.parametrize("engine", EVERY)
def test_nothing_is_raised_after_a_charge_at_length(engine):
    cases = CASES // (8 if engine.long else 2 if engine.needs else 1)
    for number in range(first(engine) + 1, first(engine) + cases):
        hold_case(engine.name, number)


def test_chains_of_operations():
    for number in range(START, START + 4):
        hold_expressions(number)


@pytest.mark.long
def test_chains_of_operations_at_length():
    for number in range(START + 4, START + 64):
        hold_expressions(number)


@pytest.mark.long
@pytest.mark.skipif(not MINUTES, reason="`make fuzz` says for how many minutes")
def test_for_some_minutes(request, capfd):
    """Cases of numbers that no run had before, one engine after the
    other, until the time is over.
    """
    for name in {engine.needs for engine in ALL if engine.needs and not engine.long}:
        STARTED[name] = request.getfixturevalue(name)
    begin, until = START or secrets.randbelow(10**9), time.process_time() + 60 * MINUTES
    with capfd.disabled():
        print(
            f"\nFuzz from number {begin}: make fuzz SEED={begin} MINUTES={MINUTES:g} is this run "
            "again."
        )
    before = COUNTED.copy()
    for number in itertools.count(begin):
        hold_number(number)
        if time.process_time() > until:
            break
    with capfd.disabled():
        counts = {
            what: sum(many for (key, _), many in (COUNTED - before).items() if key == what)
            for what in WHAT
        }
        print(
            f"{number - begin + 1} numbers: "
            f"{', '.join(f'{many} {what}' for what, many in counts.items())}"
        )
