"""The certificate of a release: everything that its privacy claim
rests on, and nothing of the data.

The losses of its mechanisms and keys add up to what was charged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction

from dpframe.budget import Loss, Normal, Receipt
from dpframe.fields import FieldDict, Fields
from dpframe.noise import bits
from dpframe.plan import Question, asked
from dpframe.release.certificate.measures import Stated, stated_mechanisms, stated_read
from dpframe.release.certificate.rationals import text
from dpframe.release.certificate.step_facts import question_facts, unit_facts
from dpframe.release.certificate.total_facts import Ids, Read, read_facts, total_facts
from dpframe.release.pricing import Noise, NoisePlan, Rule
from dpframe.theory.formulas.loss import zcdp_order


def charge_facts(cost: Loss, normal: Normal | None) -> FieldDict:
    """The charge, and the μ² that the account counts."""
    in_rho = cost.exact_rho is not None
    size = {"rho": text(cost.exact_rho or 0)} if in_rho else {"epsilon": text(cost.exact_epsilon)}
    more = (
        {}
        if normal is None
        else {"gaussian": {"mu_squared": text(normal.mu_squared), "keys": normal.keys}}
    )
    return {**size, "delta": text(cost.exact_delta), **more}


def composition(rule: Rule, mechanisms: Sequence[Stated], cost: Loss) -> FieldDict:
    """The rule by which losses add up, with the parts of ε and δ of what does not add up simply.

    Input:  rule: of the plans; the mechanisms; what was charged
    """
    key_delta = sum((one.key_delta for one in mechanisms), Fraction(0))
    if not key_delta and not any(one.rho or one.epsilon or one.mu_squared for one in mechanisms):
        return {"rule": "epsilon" if cost.exact_rho is None else "rho"}
    pure = sum((one.epsilon or Fraction(0) for one in mechanisms), Fraction(0))
    left = {"epsilon": text(cost.exact_epsilon - pure), "delta": text(cost.exact_delta - key_delta)}
    if rule in (Rule.GAUSSIAN, Rule.BESIDE):
        return {"rule": rule.value, **left}
    if rule is Rule.RHO and cost.exact_rho is None:
        rho = sum((one.rho_up() for one in mechanisms), Fraction(0))
        order = text(zcdp_order(rho, cost.exact_delta - key_delta))
        return {"rule": rule.value, "order": order, "delta": left["delta"]}
    return {"rule": rule.value}


VERSION = 3


def charged_facts(receipt: Receipt, accountant: str, name: str | None, data: bytes) -> FieldDict:
    """Facts after the charge: its entry in the ledger, the stored answer,
    and whether the noise was fixed.
    """
    entry = {"number": receipt.number, "hash": receipt.hash, "previous": receipt.previous}
    test = {"test": "the noise was fixed"} if bits.are_told() else {}
    answer = hashlib.sha256(data).hexdigest()
    return {"ledger": {**entry, "accountant": accountant, "name": name}, "answer": answer, **test}


PricedQuestion = tuple[Question, NoisePlan]


def certified(
    asked_for: Sequence[PricedQuestion],
    cost: Loss,
    normal: Normal | None,
    reads: Sequence[Read] = (),
) -> FieldDict:
    """The certificate of questions that are charged together, without
    what is known after the charge.

    Input:  questions with their noise; what all of them cost; what the account knows besides;
            reads: noisy answers that choices of limits and bounds followed from
    Bound:  it is a function of the questions, the price and, with `dp.Auto()`, of noisy answers: of
            no row
    Order:  a total refers only to totals before it, of its own question. Margins stand after their
            cells, and products after the sums and counts of their column that bound them. A sum
            that follows from a pair is not stated
    """
    questions, plans = [question for question, _ in asked_for], [plan for _, plan in asked_for]
    totals: list[FieldDict] = []
    mechanisms: list[Stated] = []
    for number, (question, plan) in enumerate(asked_for):
        own = [noise for noise in plan.noises if not (noise.total.collects or _of_a_pair(noise))]
        stated = [noise.allotment for noise in own]
        names: Ids = {one.total.key: f"t{len(totals) + i}" for i, one in enumerate(stated)}
        totals += [total_facts(question, one, number, names) for one in stated]
        mechanisms += stated_mechanisms(plan, names)
    for read in reads:
        totals.append(read_facts(questions[0], read, f"t{len(totals)}"))
        mechanisms.append(stated_read(read, totals[-1]))
    rule = next((plan.rule for plan in plans if plan.rule is not Rule.EPSILON), Rule.EPSILON)
    made = document(
        [(one, asked(one)) for one in questions], totals, mechanisms, rule, cost, normal
    )
    return {**made, "chosen": {"limits": questions[0].chosen is not None}} if reads else made


def _of_a_pair(noise: Noise) -> bool:
    """Whether a sum is computed from a sum and a count that are measured
    together, without noise of its own.
    """
    return noise.total.follows is not None and (noise.paired or noise.mechanism.joined)


def document(
    questions: Sequence[tuple[Question, str]],
    totals: Sequence[Fields],
    mechanisms: Sequence[Stated],
    rule: Rule,
    cost: Loss,
    normal: Normal | None = None,
) -> FieldDict:
    """The parts of a certificate together.
    Input: questions, each with its words; rule: by which losses add up.
    """
    in_squares, in_rho = normal is not None or rule is Rule.MU_SQUARED, rule is Rule.RHO
    (first, _), *_ = questions
    return {
        "certificate": VERSION,
        "unit": unit_facts(first),
        "relation": first.table.relation,
        "questions": [question_facts(*pair) for pair in questions],
        "totals": list(totals),
        "mechanisms": [
            one.to_json(f"m{i}", in_rho=in_rho, in_squares=in_squares)
            for i, one in enumerate(mechanisms)
        ],
        "composition": composition(rule, mechanisms, cost),
        "charge": charge_facts(cost, normal),
        "chosen": None,
    }
