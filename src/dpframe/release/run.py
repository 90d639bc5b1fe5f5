"""The release: the only place where plan, engine, noise and budget meet.

A release has five steps. The query is validated on a table without rows. The price is charged. Rows
are read, noise is drawn, and the table is made. The table is stored with its charge. Then it is
returned. A refusal spends nothing. A failure after the charge loses budget, never privacy.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Unpack

from dpframe import engine
from dpframe.budget import Loss, Normal, Receipt, Stored, Terms, loss_json
from dpframe.errors import BudgetMismatch, DpFrameError, UnsupportedOperation
from dpframe.fields import FieldDict, Fields
from dpframe.noise import bits
from dpframe.plan import (
    Covers,
    Derivation,
    Question,
    asked,
    derivation,
    described,
    unit_words,
)
from dpframe.plan.steps import source_of
from dpframe.release.answer import (
    found_words,
    is_scaled,
    largest_groups,
    scaled,
)
from dpframe.release.auto import Seen, check_choice, choose, restored
from dpframe.release.certificate import certified, charged_facts
from dpframe.release.kept_answers import Correction, described_correction, said_of, shown_of
from dpframe.release.kinds import Record, answer_kind
from dpframe.release.left_out import left_out
from dpframe.release.paying import (
    Account,
    Naming,
    charged,
    described_origin,
    ran_by,
    recorded,
    subject_of,
    told,
    under_policy,
)
from dpframe.release.pricing import UNNAMED, GaussianPrice, NoisePlan, Price, described_price
from dpframe.release.shown import (
    Filed,
    bias_words,
    noise_rows,
    statement,
)
from dpframe.release.stored import Answer, packed, unpacked
from dpframe.usage import warn

PricedQuestion = tuple[Question, NoisePlan]
_Answered = tuple[list[PricedQuestion], list[Answer], list[Derivation]]
_SCALED = (
    "Multiplied by {}: {}. By these histograms, that is the ratio of all rows to the rows that "
    "count under these limits. It is one factor for all groups, so groups whose people have few "
    "rows come out too large. Margins of error are multiplied too; they do not include the error "
    "of the factor. dp.Auto(scaled=False) leaves numbers as they are."
)


def release(
    question: Question,
    account: Account,
    price: Price,
    corrects: Correction | None = None,
    **naming: Unpack[Naming],
) -> Any:
    """Validate, charge, read, draw, store and lay out; or return the stored answer of the name.

    Output: a Release; of marginals, a MarginalsRelease; of a hierarchy, a HierarchyRelease
    Bound:  the table is a function of the noisy totals and choices alone (`drawn_table`). Their
            loss is the charge. A stored answer is post-processing
    Errors: every DpFrameError that concerns a price or a budget, before anything is read
    """
    price, plan = bought(question, price)
    cost = check_choice(question, price) if question.undecided else plan.cost
    (one,) = settled([(question, plan)], account, cost, price, corrects=corrects, **naming)
    return one


def bought(question: Question, price: Price) -> tuple[Price, NoisePlan]:
    """The noise that a price buys, and the price.
    What has no plan in μ² is paid in the ε that has this μ².
    """
    plan = answer_kind(question).noise(question, price)
    if isinstance(price, GaussianPrice) and (question.undecided or plan.mu_squared is None):
        return price.pure, answer_kind(question).noise(question, price.pure)
    return price, plan


def _normal(questions: Sequence[PricedQuestion]) -> Normal | None:
    """Facts of questions besides their price; None if one is made of parts
    that depend on earlier answers.
    """
    squares = [None if question.undecided else plan.mu_squared for question, plan in questions]
    if None in squares:
        return None
    total = sum((square or Fraction(0) for square in squares), Fraction(0))
    return Normal(total, any(question.private_keys for question, _ in questions))


def _validated(questions: Sequence[Question], *, batch: bool) -> str:
    """The unit that valid questions are about.
    Errors: BudgetMismatch for several; those of the questions.
    """
    for question in questions:
        if batch and question.undecided:
            raise UnsupportedOperation(
                "A batch is priced before any of it runs; release what has dp.Auto() by itself."
            )
        engine.check_unchanged(question.step)
        answer_kind(question).validate(question)
    subjects = {subject_of(question) for question in questions}
    if len(subjects) != 1:
        raise BudgetMismatch(
            f"One release is about one unit; these are about {' and '.join(sorted(subjects))}."
        )
    return subjects.pop()


def settled(
    questions: Sequence[PricedQuestion],
    account: Account,
    cost: Loss,
    price: Price,
    *,
    batch: bool = False,
    corrects: Correction | None = None,
    **naming: Unpack[Naming],
) -> list[Any]:
    """Charge several questions once, together, and answer them.

    Input:  questions with their noise; the account; the cost of all together; the price, for the
            description under the name; batch: whether the questions were fixed together; corrects:
            the release that this one takes the place of; naming as in `Budget.charge`
    Errors: BudgetMismatch for questions about different units; those of the account; EngineError
            after the charge
    """
    asked_for = [question for question, _ in questions]
    subject = _validated(asked_for, batch=batch)
    words = "; ".join(map(asked, asked_for))
    query = f"batch of {len(questions)}: {words}" if batch else words
    name = naming.get("name")
    plan = _description(questions, price) if name is not None else None
    plan = described_correction(plan, corrects, name, account)
    options: FieldDict = {**naming, "plan": plan, "batch": batch, "events": _events(questions)}
    options |= under_policy(asked_for, account, cost)
    options |= {"normal": _normal(questions)} if account.terms is Terms.EITHER else {}
    normal = options.get("normal")
    undecided = any(question.undecided for question in asked_for)
    certificate = None if undecided else certified(questions, cost, normal)
    receipt = charged(account, cost, subject, query, **options)
    if receipt.stored is None:
        read = partial(_answer_all, questions, account, receipt, price, name, corrects)

        def stated() -> tuple[_Answered, bytes, FieldDict]:
            pairs, answers, reasons, statements, seen = read()
            data = packed(answers)
            entry = charged_facts(receipt, account.accountant, name, data)
            claimed = certificate or certified(pairs, cost, normal, seen.reads)
            facts = {"releases": statements, "certificate": {**claimed, **entry}}
            facts["run"] = ran_by(asked_for)
            if name is not None:
                made = zip(pairs, reasons, answers, statements, strict=True)
                facts["shown"] = [_shown(*one, receipt) for one in made]
            return (pairs, answers, reasons), data, facts

        (questions, answers, reasons), record = recorded(account, receipt, name, asked_for, stated)
    else:
        record = receipt.stored
        questions, answers, reasons = _answered_before(questions, record, price)
    again = told(account, receipt, name, [question for question, _ in questions])
    whole = len(questions) == 1 and "chosen" not in record.statement["releases"][0]
    for (question, noisy), answer in zip(questions, answers, strict=True):
        warn_if_empty(question, noisy, answer, price if whole else None)
    entries = zip(questions, reasons, answers, record.statement["releases"], strict=True)
    return [
        _release(pair, why, answer, receipt, {**entry, **again}, _filed(record.statement, number))
        for number, (pair, why, answer, entry) in enumerate(entries)
    ]


def _events(questions: Sequence[PricedQuestion]) -> list[Fields]:
    """The mechanisms of all questions; those of `dp.Auto` have no name yet."""
    named = [[UNNAMED] if question.undecided else noisy.events for question, noisy in questions]
    return [event for events in named for event in events]


def _shown(
    pair: PricedQuestion, why: Derivation, answer: Answer, entry: Fields, receipt: Receipt
) -> Fields:
    """What is kept of a release, so that it can be shown without its table."""
    return shown_of(_release(pair, why, answer, receipt, entry, Filed()))


def _answered_before(
    questions: Sequence[PricedQuestion], stored: Stored, price: Price
) -> _Answered:
    """A stored answer, and its questions with the limits and bounds that `dp.Auto` chose."""
    choices = [entry.get("chosen") for entry in stored.statement["releases"]]
    chosen = [
        pair if choice is None else restored(pair[0], choice, price)
        for pair, choice in zip(questions, choices, strict=True)
    ]
    return chosen, unpacked(stored.data), [derivation(question) for question, _ in chosen]


def _filed(stored: Fields, number: int) -> Filed:
    """Things that were kept with a charge beside the statements, for the question at this place."""
    return Filed(stored.get("certificate"), number, stored.get("run"))


def _answer_all(
    questions: Sequence[PricedQuestion],
    account: Account,
    receipt: Receipt,
    price: Price,
    name: str | None,
    corrects: Correction | None,
) -> tuple[list[PricedQuestion], list[Answer], list[Derivation], list[FieldDict], Seen]:
    """The questions with chosen limits and bounds, answers, derivations,
    statements, and what choices read.

    Rows are read here.
    """
    seen = Seen()
    results = [_read_whole(pair, price, seen) for pair in questions]
    reasons = [derivation(question) for (question, _), _, _ in results]
    about = {"name": name, "drawn": dt.datetime.now(dt.UTC).isoformat(), "batch": len(questions)}
    statements = [
        {
            **_statement(pair, why, account, receipt, about),
            **_covered(pair[0]),
            **choice,
            **said_of(corrects),
        }
        for (pair, _, choice), why in zip(results, reasons, strict=True)
    ]
    return (
        [pair for pair, _, _ in results],
        [answer for _, answer, _ in results],
        reasons,
        statements,
        seen,
    )


def _description(questions: Sequence[PricedQuestion], price: Price) -> FieldDict:
    """The description under a name: every question, its noise, its price and
    where its rows are from; no data.
    """
    plans = [
        {**described(question), **described_price(noisy, price), **described_origin(question)}
        for question, noisy in questions
    ]
    return plans[0] if len(plans) == 1 else {"batch": plans}


def _read_whole(
    pair: PricedQuestion, price: Price, seen: Seen
) -> tuple[PricedQuestion, Answer, FieldDict]:
    """A question with its answer, of which it may show the largest groups
    alone, and the choices of dp.Auto.
    """
    (question, plan), answer, said = _read(pair, price, seen)
    if question.layout.largest is None:
        return (question, plan), answer, said
    kept = Answer(*largest_groups(question, answer.long, dict(answer.parts)))
    return (question, plan), kept, {**said, "found": found_words(question, answer.long)}


def _read(
    pair: PricedQuestion, price: Price, seen: Seen
) -> tuple[PricedQuestion, Answer, FieldDict]:
    """A question with its answer.
    For dp.Auto, limits and bounds are chosen here, for a part of the price.
    """
    question, plan = pair
    if not question.undecided:
        return pair, _answer(question, plan), {}
    result, plan, choice, remaining = choose(question, price, seen)
    answer = _answer(result, plan)
    if remaining is not None:
        long, factor = scaled(result, plan, remaining, answer.long, answer.parts)
        answer, choice = replace(answer, long=long), {**choice, "scaled": factor}
        if factor > 1:
            names = ", ".join(output.name for output in result.outputs if is_scaled(output))
            choice["reason"] = [*choice["reason"], _SCALED.format(f"{factor:g}", names)]
    columns, lines = left_out(
        result, plan, seen, answer.long, answer.parts, choice.get("scaled", 1.0)
    )
    answer = replace(answer, parts={**answer.parts, **columns})
    about = {"bias": bias_words(result, lines), "left_out": lines} if lines else {}
    return (result, plan), answer, {"chosen": choice, **about}


def _answer(question: Question, plan: NoisePlan) -> Answer:
    """Read the rows and draw the noise, with a fresh salt for the choice of groups."""
    return answer_kind(question).answer(question, plan, bits.random_word())


def _statement(
    pair: PricedQuestion, why: Derivation, account: Account, receipt: Receipt, about: Fields
) -> FieldDict:
    question, plan = pair
    budget = {
        "accountant": account.accountant,
        "limit": loss_json(account.limit),
        "remaining": loss_json(receipt.remaining),
        "failures": receipt.failures._asdict(),
        **({} if receipt.standing is None else receipt.standing.to_json()),
    }
    noise = noise_rows(question.outputs, plan)
    unit = unit_words(source_of(question.step).table)
    about = {**about, **answer_kind(question).facts(question)}
    return statement(why, question.table.relation, unit, noise, receipt.loss, budget, **about)


def _covered(question: Question) -> dict[str, str]:
    """The coverage of the intervals, where they are about more than the noise."""
    return {} if question.covers is Covers.NOISE else {"intervals": question.covers.label(0.95)}


def _release(
    pair: PricedQuestion,
    why: Derivation,
    answer: Answer,
    receipt: Receipt,
    entry: Fields,
    filed: Filed,
) -> Any:
    question, plan = pair
    when = dt.datetime.fromisoformat(entry["drawn"])
    record = Record(receipt.loss, why, source_of(question.step).data.kind, when, entry, filed)
    return answer_kind(question).released(question, plan, answer, record)


# A table without rows


def warn_if_empty(question: Question, plan: NoisePlan, answer: Answer, price: Price | None) -> None:
    """Warn that no key reached the threshold, and say which settings have a lower one.

    Input:  the question, its noise and its answer; price, what the question was released at, or
            None where it had a part of a price only
    Bound:  that the table is empty is seen from the released table, and the rest of the message
            follows from the question and the price: it is post-processing, and nothing is read
    Warns:  DpFrameWarning, once for a release, and not when its table is read
    """
    if not question.private_keys or answer.long.height:
        return
    by, threshold = ", ".join(map(repr, question.by)), plan.threshold
    lower = [] if price is None else _lower(question, plan, price)
    keys = "keys={...}" if len(question.by) > 1 else "keys=[...]"
    helps = (
        f"It is lower {', or '.join(lower)}"
        if lower
        else "A larger price or a smaller max_groups= lowers it"
    )
    warn(
        f"The released table is empty: no key of {by} reached the threshold of {threshold} units. "
        f"{helps}. Keys that are public can be listed, {keys}, and coarser ones have more units "
        "each."
    )


def _lower(question: Question, plan: NoisePlan, price: Price) -> list[str]:
    """Settings with a lower threshold, each with the line to type."""
    assert plan.decided_by is not None
    twice = replace(price, amount=2 * price.amount)
    delta = f", delta={float(price.delta):g}" if price.delta else ""
    settings = [
        (f"with release({price.terms.value}={float(twice.amount):g}{delta})", question, twice)
    ]
    # without a unit there is nobody to limit
    if plan.decided_by.total.sensitivity.l0 > 1 and question.table.unit:
        fewer = replace(question.given, max_groups=1)
        settings.append(("with max_groups=1", replace(question, given=fewer, chosen=None), price))
    lower = []
    for words, cheaper, setting in settings:
        threshold = _threshold(cheaper, setting)
        if threshold is not None and plan.threshold is not None and threshold < plan.threshold:
            lower.append(f"{words}, {threshold} units")
    return lower


def _threshold(question: Question, price: Price) -> int | None:
    """The threshold of a question at a price; None where that price cannot be paid for it."""
    try:
        return answer_kind(question).noise(question, price).threshold
    except DpFrameError:
        return None
