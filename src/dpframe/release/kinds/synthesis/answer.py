"""Synthetic rows as a kind of answer."""

from __future__ import annotations

from typing import Any

from dpframe import engine
from dpframe.plan import Synthesis
from dpframe.release.kinds.answers import AnswerKind
from dpframe.release.kinds.synthesis.release import SyntheticRelease, synthetic_answer
from dpframe.release.pricing import NoisePlan, Price
from dpframe.release.shown import Record
from dpframe.release.stored import Answer


class SyntheticAnswer(AnswerKind[Synthesis]):
    """Rows drawn from a model of noisy tables."""

    alone = "synthetic rows come from tables in rounds; release them by themselves."

    def validate(self, question: Synthesis) -> None:
        """Run the query of the one raw table on a table without rows."""
        engine.validate_contingency(question)

    def noise(self, question: Synthesis, price: Price) -> NoisePlan:
        """The ρ of all rounds of choices and noisy tables."""
        return price.tables(question)

    def answer(self, question: Synthesis, plan: NoisePlan, salt: int) -> Answer:
        """The synthetic rows, and the noisy tables."""
        return Answer(*synthetic_answer(question, plan, engine.contingency(question, salt)))

    def released(self, question: Synthesis, plan: NoisePlan, answer: Answer, record: Record) -> SyntheticRelease[Any]:
        """A `SyntheticRelease`."""
        return SyntheticRelease(record, answer.long, answer.parts, question.tables, question.columns)
