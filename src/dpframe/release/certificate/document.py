"""The certificate of a release: everything that its privacy claim rests on, and nothing of the data."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

from dpframe.budget import Loss, Normal, Receipt
from dpframe.plan import Question, asked
from dpframe.release.certificate.adding_up import charge_facts, composition
from dpframe.release.certificate.key_rules import key_rule
from dpframe.release.certificate.measures import stated_mechanisms, stated_read
from dpframe.release.certificate.step_facts import chosen_facts, question_facts, unit_facts
from dpframe.release.certificate.total_facts import Ids, ReadFacts, read_facts, total_facts
from dpframe.release.pricing import NoisePlan, Rule

VERSION = 1


def charged_facts(receipt: Receipt, accountant: str, name: str | None, data: bytes) -> dict[str, Any]:
    """What is known after the charge: its entry in the ledger, and the stored answer."""
    entry = {"number": receipt.number, "hash": receipt.hash, "previous": receipt.previous}
    return {"ledger": {**entry, "accountant": accountant, "name": name}, "answer": hashlib.sha256(data).hexdigest()}


class Chosen(Protocol):
    """What the choices of `dp.Auto()` read: noisy answers, and questions with noise of their own."""

    @property
    def reads(self) -> Sequence[ReadFacts]:
        """Noisy histograms and counts."""
        ...

    @property
    def asked(self) -> Sequence[tuple[Question, NoisePlan]]:
        """Questions that narrower bounds followed from."""
        ...


def certified(
    asked_for: Sequence[tuple[Question, NoisePlan]], cost: Loss, normal: Normal | None, chosen: Chosen | None = None
) -> dict[str, Any]:
    """The certificate of questions that are charged together, without what is known after the charge.

    Input:  questions with their noise; what all of them cost; what the account knows besides; chosen: what choices of
            limits and bounds read
    Bound:  it is a function of the questions, the price and, with `dp.Auto()`, of noisy answers: of no row
    """
    pairs = [*asked_for, *(() if chosen is None else chosen.asked)]
    questions, plans = [question for question, _ in pairs], [plan for _, plan in pairs]
    totals: list[dict[str, Any]] = []
    ids: list[Ids] = []
    for number, (question, plan) in enumerate(pairs):
        first = len(totals)
        names: Ids = {noise.allotment.total.key: f"t{first + i}" for i, noise in enumerate(plan.noises)}
        totals += [total_facts(question, noise.allotment, number, names) for noise in plan.noises]
        ids.append(names)
    mechanisms, places = stated_mechanisms(plans, ids)
    keys, key_delta = [], Fraction(0)
    for number, plan in enumerate(plans):
        if plan.decided_by is not None:
            key = plan.decided_by.total.key
            facts, delta = key_rule(plan, number, ids[number][key], f"m{places[number, key]}")
            keys.append(facts)
            key_delta += delta
    for read in () if chosen is None else chosen.reads:
        totals.append(read_facts(questions[0], read, f"t{len(totals)}"))
        mechanisms.append(stated_read(read, totals[-1]))
    rule = next((plan.rule for plan in plans if plan.rule is not Rule.EPSILON), Rule.EPSILON)
    in_squares, in_rho = normal is not None or rule is Rule.MU_SQUARED, rule is Rule.RHO
    return {
        "certificate": VERSION,
        "unit": unit_facts(questions[0]),
        "relation": questions[0].table.relation,
        "questions": [question_facts(question, asked(question)) for question in questions],
        "totals": totals,
        "mechanisms": [one.to_json(f"m{i}", in_rho=in_rho, in_squares=in_squares) for i, one in enumerate(mechanisms)],
        "keys": keys,
        "composition": composition(rule, mechanisms, key_delta, cost),
        "charge": charge_facts(cost, normal),
        "chosen": None if chosen is None or not (chosen.reads or chosen.asked) else chosen_facts(questions[0]),
    }
