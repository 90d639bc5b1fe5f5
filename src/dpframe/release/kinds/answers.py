"""The base of the kinds of answer: all that a release must know of one kind of
question; and that of one table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, Generic, TypeVar

from dpframe import engine
from dpframe.plan import Question
from dpframe.release.answer import Numbers, drawn_influences, drawn_table
from dpframe.release.pricing import NoisePlan, Price
from dpframe.release.shown import Record, Release
from dpframe.release.stored import Answer

AskedFor = TypeVar("AskedFor", bound=Question)


class AnswerKind(ABC, Generic[AskedFor]):
    """One kind of answer: how its question is validated, priced, read and
    drawn, described, and laid out.
    """

    # the refusal where a question of this kind is part of a batch; empty where it may be
    alone = ""

    def validate(self, question: AskedFor) -> None:
        """Run the whole query on a table without rows, so that it cannot fail after the charge."""
        engine.validate(question)

    def noise(self, question: AskedFor, price: Price) -> NoisePlan:
        """The noise that a price buys for a question.
        Errors: DeltaRequired, UnsupportedOperation.
        """
        return price.plan(question)

    def queries(self, question: AskedFor) -> list[Any]:
        """The queries of a release, on tables without their rows."""
        return engine.queries(question)

    @abstractmethod
    def answer(self, question: AskedFor, plan: NoisePlan, salt: int) -> Answer:
        """Read the rows and draw the noise. Raw totals do not outlive this method.
        Input: salt: 64 random bits.
        """

    def facts(self, question: AskedFor) -> Mapping[str, Any]:
        """Facts for the privacy statement, in addition to those of every release."""
        return {}

    @abstractmethod
    def released(self, question: AskedFor, plan: NoisePlan, answer: Answer, record: Record) -> Any:
        """The released object, from the answer as it is stored."""


class TableAnswer(AnswerKind[Question]):
    """One table with a row for each group, or one row."""

    def answer(self, question: Question, plan: NoisePlan, salt: int) -> Answer:
        """The released table; then, where intervals need them, the influences of
        people, from a second reading.
        """
        raw = engine.totals(question, salt)
        table, parts = drawn_table(question, plan, raw)
        again = partial(engine.totals, question, salt, None)
        return Answer(table, parts | drawn_influences(question, plan, (table, parts), raw, again))

    def released(
        self, question: Question, plan: NoisePlan, answer: Answer, record: Record
    ) -> Release[Any]:
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
            sampled=question.sampled,
            unit_limits=question.limits,
            ranked=question.row_names != question.by,
        )
        return Release(record, numbers)
