"""Each question gives equal totals and claims on all engines, or a refusal that says why."""

from __future__ import annotations

import re

import pytest

import dpframe as dp
from dpframe.engine import validate
from dpframe.errors import DpFrameError
from inside import question_of
from questions import ABSENT, QUESTIONS, REFUSED, TABLE, UNITS, exact, expected, protected


@pytest.mark.one_in(16)
@pytest.mark.parametrize("name", QUESTIONS)
def test_every_engine_has_the_same_totals(engine, name):
    ask, private = QUESTIONS[name], protected(engine(TABLE))
    if (engine.name, name) in ABSENT:
        pytest.skip("the engine has no such type")
    why = REFUSED.get((engine.name, name))
    if why is not None:
        with pytest.raises(DpFrameError, match=re.escape(why)):
            ask(private)
        return
    query = ask(private)
    assert exact(query) == expected(name)
    assert query.sensitivity == ask(protected(TABLE)).sensitivity


# To validate is to compile once more, which takes as long as the answer on engines that speak SQL:
# a sixth is enough.
_AT_LENGTH = [name for i, name in enumerate(QUESTIONS) if i % 6]


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    "name", [pytest.param(q, marks=pytest.mark.long) if q in _AT_LENGTH else q for q in QUESTIONS]
)
def test_what_an_engine_answers_passes_on_a_table_without_rows(engine, name):
    if (engine.name, name) in ABSENT or (engine.name, name) in REFUSED:
        pytest.skip("there is nothing to answer")
    validate(question_of(QUESTIONS[name](protected(engine(TABLE)))))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", UNITS)
def test_units_are_told_apart_alike(engine, name):
    def ask(frame):
        private = dp.protect(frame, unit=UNITS[name])
        return private.agg(
            max_rows=2, n=dp.count(), u=dp.count_units(), s=dp.sum("a", bounds=(-3, 10))
        )

    assert exact(ask(engine(TABLE))) == exact(ask(TABLE))
