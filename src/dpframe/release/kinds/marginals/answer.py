"""Marginals as a kind of answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpframe import engine
from dpframe.plan import Marginals
from dpframe.release.kinds.answers import AnswerKind
from dpframe.release.kinds.marginals.draw import drawn_interactions
from dpframe.release.kinds.marginals.release import MarginalsRelease
from dpframe.release.pricing import NoisePlan, Price, check_shared
from dpframe.release.shown import Record
from dpframe.release.stored import Answer


class MarginalsAnswer(AnswerKind[Marginals]):
    """Many tables that agree wherever they share columns."""

    alone = "marginals share their noise; release them by themselves."

    def validate(self, question: Marginals) -> None:
        """Run the queries of all tables on a table without rows."""
        engine.validate_marginals(question)

    def queries(self, question: Marginals) -> list[Any]:
        """One query for all tables, or one for each."""
        return engine.empty_sums(question)

    def noise(self, question: Marginals, price: Price) -> NoisePlan:
        """Gaussian noise for each interaction: the only kind with a proof."""
        check_shared(question, price.noise)
        return price.gaussian("marginals are").plan(question)

    def answer(self, question: Marginals, plan: NoisePlan, salt: int) -> Answer:
        """The noisy interactions."""
        return Answer(drawn_interactions(question, plan, engine.marginal_totals(question, salt)), {})

    def facts(self, question: Marginals) -> Mapping[str, Any]:
        """The number of tables that were charged together."""
        return {"batch": len(question.workload)}

    def released(self, question: Marginals, plan: NoisePlan, answer: Answer, record: Record) -> MarginalsRelease[Any]:
        """A `MarginalsRelease`."""
        keys = tuple(engine.marginal_keys(question, (i,)) for i in range(len(question.by)))
        return MarginalsRelease(record, question.tables, keys, plan, answer.long)
