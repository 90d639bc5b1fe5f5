"""The base of the kinds of answer: all that a release must know of one kind of question."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from dpframe import engine
from dpframe.plan import Question
from dpframe.release.pricing import NoisePlan, Price
from dpframe.release.shown import Record
from dpframe.release.stored import Answer

AskedFor = TypeVar("AskedFor", bound=Question)


class AnswerKind(ABC, Generic[AskedFor]):
    """One kind of answer: how its question is validated, priced, read and drawn, described, and laid out."""

    alone = ""  # the refusal where a question of this kind is part of a batch; empty where it may be

    def validate(self, question: AskedFor) -> None:
        """Run the whole query on a table without rows, so that it cannot fail after the charge."""
        engine.validate(question)

    def noise(self, question: AskedFor, price: Price) -> NoisePlan:
        """The noise that a price buys for a question. Errors: DeltaRequired, UnsupportedOperation."""
        return price.plan(question)

    def queries(self, question: AskedFor) -> list[Any]:
        """The queries of a release, on tables without their rows."""
        return engine.queries(question)

    @abstractmethod
    def answer(self, question: AskedFor, plan: NoisePlan, salt: int) -> Answer:
        """Read the rows and draw the noise. Raw totals do not outlive this method. Input: salt: 64 random bits."""

    def facts(self, question: AskedFor) -> Mapping[str, Any]:
        """Facts for the privacy statement, in addition to those of every release."""
        return {}

    @abstractmethod
    def released(self, question: AskedFor, plan: NoisePlan, answer: Answer, record: Record) -> Any:
        """The released object, from the answer as it is stored."""
