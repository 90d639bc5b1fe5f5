"""The release: the only place where plan, engine, noise and budget meet.

Order of events: the whole query is validated on a table without rows; the price is charged; only then are rows read,
noise drawn and the table made; the table is stored with its charge; then it is given back. A refusal spends nothing; a
failure after the charge loses budget, never privacy.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from dpframe import engine
from dpframe.budget import Loss, Receipt, Stored, Terms
from dpframe.errors import BudgetMismatch, UnsupportedOperation
from dpframe.noise import bits
from dpframe.plan import Derivation, Marginals, Question, asked, derivation, described, unit_words
from dpframe.plan.steps import source_of, sources_of
from dpframe.release.answer import Numbers, drawn_table, is_scaled, scaled
from dpframe.release.auto import check_choice, choose, restored
from dpframe.release.failing import recorded
from dpframe.release.pricing import UNNAMED, NoisePlan, Price, described_price
from dpframe.release.publish import MarginalsRelease, Release, drawn_interactions, loss_json, noise_table, statement
from dpframe.release.stored import Answer, packed, unpacked

__all__ = ["Account", "PricedQuestion", "described_origin", "release", "settled", "subject_of", "told"]

_LOG = logging.getLogger("dpframe")

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
        retry: bool = False,
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
    ask: Question,
    account: Account,
    price: Price,
    *,
    name: str | None = None,
    refresh: bool = False,
    retry: bool = False,
) -> Any:
    """Validate, charge, read, draw, store, lay out; or the stored answer of the name.

    Output: a Release; of marginals, a MarginalsRelease
    Bound:  the table is a function of the noisy totals and choices alone (`drawn_table`), and these have the loss that
            was charged; the stored answer is post-processing
    Errors: every DpFrameError that concerns a price or a budget, before anything is read
    """
    plan = price.plan(ask)
    cost = check_choice(ask, price) if ask.undecided else plan.cost
    (one,) = settled([(ask, plan)], account, cost, price, name=name, refresh=refresh, retry=retry)
    return one


def settled(
    questions: Sequence[PricedQuestion],
    account: Account,
    cost: Loss,
    price: Price,
    *,
    name: str | None,
    refresh: bool,
    retry: bool = False,
    batch: bool = False,
) -> list[Any]:
    """Questions that are charged once, together, and answered.

    Input:  asks with their noise; the account; what all of it costs; the price, for what the name stands for; name,
            refresh, retry as in `Budget.charge`; batch, whether the questions were fixed together
    Errors: BudgetMismatch for questions about different units; those of the account; EngineError after the charge
    """
    for ask, _ in questions:
        if batch and ask.undecided:
            raise UnsupportedOperation("A batch is priced before any of it runs; release what has dp.Auto() by itself.")
        _validate(ask)
    subjects = {subject_of(ask) for ask, _ in questions}
    if len(subjects) != 1:
        raise BudgetMismatch(f"One release is about one unit; these are about {' and '.join(sorted(subjects))}.")
    words = "; ".join(asked(ask) for ask, _ in questions)
    query = f"batch of {len(questions)}: {words}" if batch else words
    plan = _described(questions, price) if name is not None else None
    events = [event for ask, noisy in questions for event in ([UNNAMED] if ask.undecided else noisy.events)]
    said: dict[str, Any] = {"name": name, "plan": plan, "refresh": refresh, "batch": batch, "events": events}
    said |= {"retry": True} if retry else {}
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
            question if chosen is None else restored(question[0], chosen, price)
            for question, chosen in zip(questions, decided, strict=True)
        ]
        reasons = [derivation(ask) for ask, _ in questions]
    again = told(receipt, name)
    return [
        _release(question, why, answer, receipt, {**said, **again})
        for question, why, answer, said in zip(questions, reasons, answers, stored.statement["releases"], strict=True)
    ]


def told(receipt: Receipt, name: str | None) -> dict[str, str]:
    """What is said, and logged, of an answer that came from the store, or that was paid for again."""
    if receipt.stored is not None:
        words = f"Stored answer of {receipt.stored.when:%Y-%m-%d %H:%M} UTC, nothing charged."
        _LOG.info("%s: %s", name, words)
        return {"stored": words}
    if receipt.again:
        _LOG.info("%s: paid for again, %s", name, receipt.loss)
    return {}


def _answered(
    questions: Sequence[PricedQuestion],
    account: Account,
    receipt: Receipt,
    price: Price,
    name: str | None,
) -> tuple[list[PricedQuestion], list[Answer], list[Derivation], list[dict[str, Any]]]:
    """Questions as they were decided, their answers, derivations and statements; rows are read here."""
    found = [_found(question, price) for question in questions]
    reasons = [derivation(ask) for (ask, _), _, _ in found]
    about = {"name": name, "drawn": dt.datetime.now(dt.UTC).isoformat(), "batch": len(questions)}
    statements = [
        {**_statement(question, why, account, receipt, about), **chosen}
        for (question, _, chosen), why in zip(found, reasons, strict=True)
    ]
    return [question for question, _, _ in found], [answer for _, answer, _ in found], reasons, statements


def _validate(ask: Question) -> None:
    if isinstance(ask, Marginals):
        engine.validate_marginals(ask)
    else:
        engine.validate(ask)


def subject_of(ask: Question) -> str:
    """Whose privacy a release is about: the unit and the neighbour relation."""
    return f"{unit_words(source_of(ask.step).table)}, {ask.table.relation}"


def _described(questions: Sequence[PricedQuestion], price: Price) -> dict[str, Any]:
    """What a name stands for: every question, its noise and its price; no data."""
    plans = [{**described(ask), **described_price(noisy, price), **described_origin(ask)} for ask, noisy in questions]
    return plans[0] if len(plans) == 1 else {"batch": plans}


def described_origin(ask: Question) -> dict[str, Any]:
    """What is public of where the rows come from, for the name of a release; nothing where that is not known."""
    origins = [engine.origin_of(source.origin, source.data.files()) for source in sources_of(ask.step)]
    known = [origin for origin in origins if origin is not None]
    return {"data": known} if known else {}


def _found(question: PricedQuestion, price: Price) -> tuple[PricedQuestion, Answer, dict[str, Any]]:
    """A question with its answer, and what is said of what it left open; no error shows a raw total."""
    return engine.sealed(lambda: _read(question, price))


def _read(question: PricedQuestion, price: Price) -> tuple[PricedQuestion, Answer, dict[str, Any]]:
    """A question with its answer. Limits and bounds that it asked for are chosen here, for a part of its price."""
    ask, plan = question
    if not ask.undecided:
        return question, _answer(ask, plan), {}
    made, plan, said, left = choose(ask, price)
    answer = _answer(made, plan)
    if left is not None:
        long, factor = scaled(made, plan, left, answer.long, answer.parts)
        answer, said = replace(answer, long=long), {**said, "scaled": factor}
        if factor > 1:
            names = ", ".join(output.name for output in made.outputs if is_scaled(output))
            said["reason"] = [*said["reason"], _SCALED.format(f"{factor:g}", names)]
    return (made, plan), answer, {"chosen": said}


def _answer(ask: Question, plan: NoisePlan) -> Answer:
    """Read the rows and draw the noise. The raw totals do not outlive this function."""
    salt = int(bits.random_words(1)[0])
    if isinstance(ask, Marginals):
        return Answer(drawn_interactions(ask, plan, engine.marginal_totals(ask, salt)), {})
    return Answer(*drawn_table(ask, plan, engine.totals(ask, salt)))


def _statement(
    question: PricedQuestion, why: Derivation, account: Account, receipt: Receipt, about: Mapping[str, Any]
) -> dict[str, Any]:
    ask, plan = question
    budget = {
        "accountant": account.accountant,
        "limit": loss_json(account.limit),
        "remaining": loss_json(receipt.remaining),
        "failures": receipt.failures._asdict(),
    }
    noise = noise_table(ask.outputs, plan).to_dicts()
    unit = unit_words(source_of(ask.step).table)
    if isinstance(ask, Marginals):
        about = {**about, "batch": len(ask.workload)}
    return statement(why, ask.table.relation, unit, noise, receipt.loss, budget, **about)


def _release(
    question: PricedQuestion, why: Derivation, answer: Answer, receipt: Receipt, said: Mapping[str, Any]
) -> Release | MarginalsRelease:
    ask, plan = question
    kind = source_of(ask.step).data.kind
    when = dt.datetime.fromisoformat(said["drawn"])
    if isinstance(ask, Marginals):
        keys = tuple(engine.marginal_keys(ask, (i,)) for i in range(len(ask.by)))
        return MarginalsRelease(receipt.loss, why, ask.tables, keys, plan, answer.long, kind, when, said)
    factor = said.get("chosen", {}).get("scaled", 1.0)
    numbers = Numbers(answer.long, ask.row_names, ask.outputs, plan, ask.layout, answer.parts, factor=factor)
    return Release(receipt.loss, why, numbers, kind, when, said)
