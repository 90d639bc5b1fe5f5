"""The kind of answer that is one table: aggregates of listed or found groups."""

from __future__ import annotations

from functools import partial
from typing import Any

from dpframe import engine
from dpframe.plan import Question
from dpframe.release.answer import Numbers, drawn_influences, drawn_table
from dpframe.release.kinds.answers import AnswerKind
from dpframe.release.pricing import NoisePlan
from dpframe.release.shown import Record, Release
from dpframe.release.stored import Answer


class TableAnswer(AnswerKind[Question]):
    """One table with a row for each group, or one row."""

    def answer(self, question: Question, plan: NoisePlan, salt: int) -> Answer:
        """The released table; then, where intervals need them, the influences of people, from a second reading."""
        raw = engine.totals(question, salt)
        table, parts = drawn_table(question, plan, raw)
        again = partial(engine.totals, question, salt, None)
        return Answer(table, parts | drawn_influences(question, plan, (table, parts), raw, again))

    def released(self, question: Question, plan: NoisePlan, answer: Answer, record: Record) -> Release[Any]:
        """A `Release`."""
        numbers = Numbers(
            answer.long,
            question.row_names,
            question.outputs,
            plan,
            question.layout,
            answer.parts,
            factor=record.statement.get("chosen", {}).get("scaled", 1.0),
            covers=question.covers,
            unit_limits=question.limits,
            ranked=question.row_names != question.by,
        )
        return Release(record, numbers)
