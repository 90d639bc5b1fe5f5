"""A hierarchy as a kind of answer."""

from __future__ import annotations

from functools import partial
from typing import Any

from dpframe import engine
from dpframe.plan import Hierarchy
from dpframe.release.kinds.answers import AnswerKind
from dpframe.release.kinds.hierarchy.draw import drawn_levels
from dpframe.release.kinds.hierarchy.errors import log_noise_of_levels
from dpframe.release.kinds.hierarchy.release import HierarchyRelease
from dpframe.release.pricing import NoisePlan, Price
from dpframe.release.shown import Record
from dpframe.release.stored import Answer


class HierarchyAnswer(AnswerKind[Hierarchy]):
    """One table for each level of a tree, which add up."""

    alone = "the levels of a hierarchy share their price; release it by itself."

    def noise(self, question: Hierarchy, price: Price) -> NoisePlan:
        """The noise of each level. Of several ways to spend the price, the one whose fitted levels have the least."""
        return price.plan(question, partial(log_noise_of_levels, question))

    def answer(self, question: Hierarchy, plan: NoisePlan, salt: int) -> Answer:
        """The noisy totals of all levels."""
        return Answer(drawn_levels(question, plan, engine.totals(question, salt)), {})

    def released(self, question: Hierarchy, plan: NoisePlan, answer: Answer, record: Record) -> HierarchyRelease[Any]:
        """A `HierarchyRelease`."""
        keys, (value, _) = engine.listed_keys(question), question.aggregates[0]
        return HierarchyRelease(record, question.levels, question.outputs, keys, plan, answer.long, value)
