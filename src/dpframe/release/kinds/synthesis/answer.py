"""Synthetic rows as a kind of answer."""

from __future__ import annotations

from typing import Any

from dpframe import engine
from dpframe.budget import Terms
from dpframe.errors import DeltaRequired, UnsupportedOperation
from dpframe.plan import Synthesis
from dpframe.release.kinds.answers import AnswerKind
from dpframe.release.kinds.synthesis.release import SyntheticRelease, synthetic_answer
from dpframe.release.kinds.synthesis.rounds import TableRounds
from dpframe.release.pricing import EpsilonFromRho, Noise, NoisePlan, Price, check_shared
from dpframe.release.shown import Record
from dpframe.release.stored import Answer
from dpframe.theory.formulas.loss import gaussian_scale_rho, rho_within


class SyntheticAnswer(AnswerKind[Synthesis]):
    """Rows drawn from a model of noisy tables."""

    alone = "synthetic rows come from tables in rounds; release them by themselves."

    def validate(self, question: Synthesis) -> None:
        """Run the query of the one raw table on a table without rows."""
        engine.validate_contingency(question)

    def noise(self, question: Synthesis, price: Price) -> NoisePlan:
        """The ρ of all rounds of choices and noisy tables; at (ε, δ), the largest that implies it.

        Source: Bun, Steinke 2016, arXiv:1605.02065, for adaptive composition; Feldman, Zrnic 2021, arXiv:2008.11193,
                for prices that are chosen as the rounds go, within a fixed sum
        Errors: DeltaRequired; UnsupportedOperation for Laplace noise
        """
        check_shared(question, price.noise)
        if isinstance(price, EpsilonFromRho):
            raise UnsupportedOperation("synthesize is paid from this budget in ρ: release(rho=0.01).")
        rho, with_delta = price.amount, price.terms is Terms.EPSILON
        if with_delta:
            if price.delta == 0:
                raise DeltaRequired(
                    "synthesize: choices and tables in rounds need a δ: release(epsilon=..., delta=1e-9)."
                )
            rho = rho_within(price.amount, price.delta)
        if not price.noise.normal:
            raise UnsupportedOperation(
                "synthesize: tables are measured with Gaussian noise: release(epsilon=..., delta=1e-9) without noise=, "
                "or release(rho=0.01) from a budget in ρ."
            )
        (allotment,) = question.allotments
        scale = gaussian_scale_rho(l2_squared=allotment.total.sensitivity.l2_squared, rho=rho)
        return NoisePlan((Noise(allotment, TableRounds(scale, rho)),), None, None, price.loss(delta=with_delta))

    def answer(self, question: Synthesis, plan: NoisePlan, salt: int) -> Answer:
        """The synthetic rows, and the noisy tables."""
        return Answer(*synthetic_answer(question, plan, engine.contingency(question, salt)))

    def released(self, question: Synthesis, plan: NoisePlan, answer: Answer, record: Record) -> SyntheticRelease[Any]:
        """A `SyntheticRelease`."""
        return SyntheticRelease(record, answer.long, answer.parts, question.tables, question.columns)
