"""Every public question on every engine, by `release`:
answered, or refused by an error of dpframe with nothing spent.

Each engine has a process of its own, which is killed where a cell outlives its limit. The long tier
asks all questions of all engines, on plain rows and on hostile ones. The quick tier asks some of
them, of engines that start quickly.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import dpframe as dp
from dpframe.api.regression import MomentsQuery
from dpframe.api.synthesis import SynthesisQuery
from dpframe.release import Batch, Series
from engine.conftest import ENGINES
from questions import ABSENT, REFUSED
from walk import CELLS

# seconds for a cell; nearly all take less than one, and the longest ten on an idle machine
LIMIT = 300
QUICK = {"polars": 12, "pandas": 40, "duckdb": 80, "sqlite": 120}  # every n-th question
SCRIPT = Path(__file__).with_name("walk.py")
FACTS = {
    "accuracy",
    "epsilon_for",
    "check",
    "exact_totals",
    "explain",
    "only_in_both",
    "plot",
    "reads",
    "table",
    "total",
    "window",
}
# what an engine refuses of the walk's own expressions, with a part of the line to type
ELSEWHERE = {
    **{(name, "matches"): "dp.protect(" for name in ("postgres", "sqlite", "spark")},
    ("postgres", "zones"): "store times without one",
    **{(name, "zones"): "table.mutate(" for name in ("sqlite", "datafusion")},
}
NO_QUESTIONS = {"set_budget", "set_memory", "content_hash", "on_release"}
NO_OPERATORS = {
    "__init__",
    "__getitem__",
    "__round__",
    "__repr__",
    "__bool__",
    "__iter__",
    "__hash__",
    "__rpow__",
}


def walked(*words):
    """The lines of a walk. A cell that outlived its limit is the last, and has no outcome."""
    done = subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, check=False
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines, done.stderr
    return lines, done.stderr[-3000:]


def check(engine, table, url, every):
    lines, said = walked(SCRIPT, engine, table, LIMIT, url, "--every", every)
    assert "cell" in lines[-1], f"{engine}, {table}: {lines[-1]['begun']} did not end.\n{said}"
    wrong = [
        line
        for line in lines
        if line.get("outcome", "answered") != "answered" and not expected(engine, line)
    ]
    assert not wrong, (engine, table, wrong)
    cells = [line for line in lines if "cell" in line]
    assert len(cells) == len(list(CELLS)[::every])
    return cells


def expected(engine, line):
    """Whether a question is one that the engine is known to refuse, at the
    question, with the line to type.
    """
    topic, _, name = line["cell"].partition(": ")
    why = (REFUSED if topic == "questions" else ELSEWHERE).get((engine, name))
    absent = topic == "questions" and (engine, name) in ABSENT
    return topic in ("questions", "expressions") and (
        absent or (why is not None and why in line["why"] and "question" in line["outcome"])
    )


@pytest.mark.parametrize("engine", QUICK)
def test_some_questions_are_answered(engine):
    check(engine, "hostile", "", QUICK[engine])


@pytest.mark.long
@pytest.mark.parametrize("table", ["plain", "hostile"])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_question_is_answered(engine, table, request):
    url = request.getfixturevalue("postgres_server") if engine == "postgres" else ""
    check(engine, table, url, 1)


def test_a_question_that_does_not_end_is_killed():
    lines, said = walked(SCRIPT, "polars", "plain", 0.001, "", "--only", "groups: median")
    assert lines == [{"begun": "groups: median"}]
    assert "Timeout" in said


# Verbs

# Functions of dpframe are noted that a file of the tests calls, by itself or through what names the
# line to type. This begins before the questions are imported: some write their expressions then.
NOTED = f"""
import sys
called = set()
def note(frame, event, _):
    if event == "call" and "dpframe" in frame.f_code.co_filename:
        caller = frame.f_back
        while caller is not None and caller.f_code.co_filename.endswith("dpframe/usage.py"):
            caller = caller.f_back
        if caller is not None and caller.f_code.co_filename.startswith({str(SCRIPT.parent)!r}):
            called.add(f"{{frame.f_code.co_filename}}: {{frame.f_code.co_qualname}}")
sys.path.insert(0, {str(SCRIPT.parent)!r})
sys.settrace(note)
import walk
walk.ask_all()
sys.settrace(None)
import json
print(json.dumps(sorted(called)))
"""


def place(code):
    return f"{code.co_filename}: {code.co_qualname}"


def asked():
    """Every public function that asks or answers, by its name."""
    x = dp.col("x")
    made = {f"dp.{name}": getattr(dp, name) for name in set(dp.__all__) - NO_QUESTIONS}
    for value in (x, x.str, x.str.split("-"), x.dt, dp.when(x > 0), dp.when(x > 0).then(1)):
        kind = type(value)
        own = {
            name
            for name in vars(kind)
            if not name.startswith("_") or (value is x and name.endswith("__"))
        }
        made |= {f"{kind.__name__}.{name}": getattr(kind, name) for name in own - NO_OPERATORS}
    for kind in (
        dp.PrivateFrame,
        dp.PrivateGroupBy,
        dp.Query,
        MomentsQuery,
        SynthesisQuery,
        Batch,
        Series,
    ):
        public = {name for name in dir(kind) if not name.startswith("_")} - FACTS
        made |= {f"{kind.__name__}.{name}": getattr(kind, name) for name in public}
    return {name: inspect.unwrap(made) for name, made in made.items() if inspect.isfunction(made)}


def unasked(called):
    return {name for name, function in asked().items() if place(function.__code__) not in called}


def test_every_public_verb_is_in_the_walk():
    lines, _ = walked("-c", NOTED)
    assert not unasked(set(lines[0]))


def test_a_verb_that_nobody_asks_is_noticed(monkeypatch):
    monkeypatch.setattr(dp.PrivateFrame, "newest", lambda self: self, raising=False)
    assert "PrivateFrame.newest" in unasked(set())
