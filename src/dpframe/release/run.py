"""The release: the only place where plan, engine, noise and budget meet.

Order of events: the whole query is validated on a table without rows; the price is charged; only then are rows read,
noise drawn and the table made; the table is stored with its charge; then it is given back. A refusal spends nothing; a
failure after the charge loses budget, never privacy.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from dpframe import engine
from dpframe.budget import Loss, Receipt, Stored, Terms
from dpframe.errors import BudgetMismatch, UnsupportedOperation
from dpframe.noise import bits
from dpframe.plan import Derivation, Marginals, Question, asked, derivation, described, unit_words
from dpframe.plan.steps import source_of
from dpframe.release.answer import Numbers, drawn_table, is_scaled, scaled
from dpframe.release.auto import check_choice, choose, restored
from dpframe.release.empty import warn_if_empty
from dpframe.release.failing import recorded
from dpframe.release.pricing import UNNAMED, NoisePlan, Price, described_price
from dpframe.release.publish import MarginalsRelease, Release, drawn_interactions, loss_json, noise_table, statement
from dpframe.release.stored import Answer, packed, unpacked

__all__ = ["Account", "PricedQuestion", "release", "settled", "subject_of"]

PricedQuestion = tuple[Question, NoisePlan]
_SCALED = (
    "Multiplied by {}: {}. So many rows there are, by the same histograms, for each that counts under these limits. It "
    "is one factor for all groups, so those whose people have few rows come out too large; margins of error are "
    "multiplied too, and leave out how far the factor is off. dp.Auto(scaled=False) leaves numbers as they are."
)


class Account(Protocol):
    """Whatever can be charged, and keeps released tables with their charges."""

    @property
    def terms(self) -> Terms:
        """Whether it is charged in "epsilon" or "rho"."""
        ...

    @property
    def accountant(self) -> str:
        """How losses add up."""
        ...

    @property
    def limit(self) -> Loss:
        """What all releases together may cost."""
        ...

    def charge(
        self,
        loss: Loss,
        subject: str,
        query: str,
        *,
        name: str | None = None,
        plan: Mapping[str, Any] | None = None,
        refresh: bool = False,
        batch: bool = False,
        events: Sequence[Mapping[str, Any]] = (),
    ) -> Receipt:
        """Pay, or refuse and change nothing, or find the stored answer."""
        ...

    def fail(self, receipt: Receipt) -> None:
        """Record that an error was raised after a charge."""
        ...

    def store(self, receipt: Receipt, data: bytes, statement: Mapping[str, Any]) -> Stored:
        """Keep the released table with its charge."""
        ...


def release(
    question: Question,
    account: Account,
    price: Price,
    *,
    name: str | None = None,
    refresh: bool = False,
) -> Any:
    """Validate, charge, read, draw, store, lay out; or the stored answer of the name.

    Output: a Release; of marginals, a MarginalsRelease
    Bound:  the table is a function of the noisy totals and choices alone (`drawn_table`), and these have the loss that
            was charged; the stored answer is post-processing
    Errors: every DpFrameError that concerns a price or a budget, before anything is read
    """
    plan = price.plan(question)
    cost = check_choice(question, price) if question.undecided else plan.cost
    (one,) = settled([(question, plan)], account, cost, price, name=name, refresh=refresh)
    return one


def settled(
    questions: Sequence[PricedQuestion],
    account: Account,
    cost: Loss,
    price: Price,
    *,
    name: str | None,
    refresh: bool,
    batch: bool = False,
) -> list[Any]:
    """Questions that are charged once, together, and answered.

    Input:  asks with their noise; the account; what all of it costs; the price, for what the name stands for; name,
            refresh; batch, whether the questions were fixed together
    Errors: BudgetMismatch for questions about different units; those of the account; EngineError after the charge
    """
    for question, _ in questions:
        if batch and question.undecided:
            raise UnsupportedOperation("A batch is priced before any of it runs; release what has dp.Auto() by itself.")
        _validate(question)
    subjects = {subject_of(question) for question, _ in questions}
    if len(subjects) != 1:
        raise BudgetMismatch(f"One release is about one unit; these are about {' and '.join(sorted(subjects))}.")
    words = "; ".join(asked(question) for question, _ in questions)
    query = f"batch of {len(questions)}: {words}" if batch else words
    plan = _described(questions, price) if name is not None else None
    events = [event for question, noisy in questions for event in ([UNNAMED] if question.undecided else noisy.events)]
    said: dict[str, Any] = {"name": name, "plan": plan, "refresh": refresh, "batch": batch, "events": events}
    receipt = account.charge(cost, subjects.pop(), query, **said)
    if receipt.stored is None:
        answered = recorded(account, receipt, lambda: _answered(questions, account, receipt, price, name))
        questions, answers, reasons, statements = answered
        stored = account.store(receipt, packed(answers), {"releases": statements})
    else:
        stored = receipt.stored
        answers = unpacked(stored.data)
        decided = [said.get("chosen") for said in stored.statement["releases"]]
        questions = [
            priced if chosen is None else restored(priced[0], chosen, price)
            for priced, chosen in zip(questions, decided, strict=True)
        ]
        reasons = [derivation(question) for question, _ in questions]
    whole = len(questions) == 1 and "chosen" not in stored.statement["releases"][0]
    for (question, noisy), answer in zip(questions, answers, strict=True):
        warn_if_empty(question, noisy, answer, price if whole else None)
    return [
        _release(priced, why, answer, receipt, said)
        for priced, why, answer, said in zip(questions, reasons, answers, stored.statement["releases"], strict=True)
    ]


def _answered(
    questions: Sequence[PricedQuestion],
    account: Account,
    receipt: Receipt,
    price: Price,
    name: str | None,
) -> tuple[list[PricedQuestion], list[Answer], list[Derivation], list[dict[str, Any]]]:
    """Questions as they were decided, their answers, derivations and statements; rows are read here."""
    found = [_found(priced, price) for priced in questions]
    reasons = [derivation(question) for (question, _), _, _ in found]
    about = {"name": name, "drawn": dt.datetime.now(dt.UTC).isoformat(), "batch": len(questions)}
    statements = [
        {**_statement(priced, why, account, receipt, about), **chosen}
        for (priced, _, chosen), why in zip(found, reasons, strict=True)
    ]
    return [priced for priced, _, _ in found], [answer for _, answer, _ in found], reasons, statements


def _validate(question: Question) -> None:
    if isinstance(question, Marginals):
        engine.validate_marginals(question)
    else:
        engine.validate(question)


def subject_of(question: Question) -> str:
    """Whose privacy a release is about: the unit and the neighbour relation."""
    return f"{unit_words(source_of(question.step).table)}, {question.table.relation}"


def _described(questions: Sequence[PricedQuestion], price: Price) -> dict[str, Any]:
    """What a name stands for: every question, its noise and its price; no data."""
    plans = [{**described(question), **described_price(noisy, price)} for question, noisy in questions]
    return plans[0] if len(plans) == 1 else {"batch": plans}


def _found(priced: PricedQuestion, price: Price) -> tuple[PricedQuestion, Answer, dict[str, Any]]:
    """A question with its answer, and what is said of what it left open; no error shows a raw total."""
    return engine.sealed(lambda: _read(priced, price))


def _read(priced: PricedQuestion, price: Price) -> tuple[PricedQuestion, Answer, dict[str, Any]]:
    """A question with its answer. Limits and bounds that it asked for are chosen here, for a part of its price."""
    question, plan = priced
    if not question.undecided:
        return priced, _answer(question, plan), {}
    made, plan, said, left = choose(question, price)
    answer = _answer(made, plan)
    if left is not None:
        long, factor = scaled(made, plan, left, answer.long, answer.parts)
        answer, said = replace(answer, long=long), {**said, "scaled": factor}
        if factor > 1:
            names = ", ".join(output.name for output in made.outputs if is_scaled(output))
            said["reason"] = [*said["reason"], _SCALED.format(f"{factor:g}", names)]
    return (made, plan), answer, {"chosen": said}


def _answer(question: Question, plan: NoisePlan) -> Answer:
    """Read the rows and draw the noise. The raw totals do not outlive this function."""
    salt = int(bits.random_words(1)[0])
    if isinstance(question, Marginals):
        return Answer(drawn_interactions(question, plan, engine.marginal_totals(question, salt)), {})
    return Answer(*drawn_table(question, plan, engine.totals(question, salt)))


def _statement(
    priced: PricedQuestion, why: Derivation, account: Account, receipt: Receipt, about: Mapping[str, Any]
) -> dict[str, Any]:
    question, plan = priced
    budget = {
        "accountant": account.accountant,
        "limit": loss_json(account.limit),
        "remaining": loss_json(receipt.remaining),
        "failures": receipt.failures._asdict(),
    }
    noise = noise_table(question.outputs, plan).to_dicts()
    unit = unit_words(source_of(question.step).table)
    if isinstance(question, Marginals):
        about = {**about, "batch": len(question.workload)}
    return statement(why, question.table.relation, unit, noise, receipt.loss, budget, **about)


def _release(
    priced: PricedQuestion, why: Derivation, answer: Answer, receipt: Receipt, said: Mapping[str, Any]
) -> Release | MarginalsRelease:
    question, plan = priced
    kind = source_of(question.step).data.kind
    when = dt.datetime.fromisoformat(said["drawn"])
    if isinstance(question, Marginals):
        keys = tuple(engine.marginal_keys(question, (i,)) for i in range(len(question.by)))
        return MarginalsRelease(receipt.loss, why, question.tables, keys, plan, answer.long, kind, when, said)
    factor = said.get("chosen", {}).get("scaled", 1.0)
    numbers = Numbers(
        answer.long, question.row_names, question.outputs, plan, question.layout, answer.parts, factor=factor
    )
    return Release(receipt.loss, why, numbers, kind, when, said)
