"""What is said of a released table that has no rows, because no key that was found in the data was shown."""

from __future__ import annotations

from dataclasses import replace

from dpframe.errors import DpFrameError
from dpframe.plan import Question
from dpframe.release.kinds import answer_kind
from dpframe.release.pricing import NoisePlan, Price
from dpframe.release.stored import Answer
from dpframe.usage import warn


def warn_if_empty(question: Question, plan: NoisePlan, answer: Answer, price: Price | None) -> None:
    """Warn that no key reached the threshold, and say which settings have a lower one.

    Input:  the question, its noise and its answer; price, what the question was released at, or None where it had a
            part of a price only
    Bound:  that the table is empty is seen from the released table, and the rest of the message follows from the
            question and the price: it is post-processing, and nothing is read
    Warns:  DpFrameWarning, once for a release, and not when its table is read
    """
    if not question.private_keys or answer.long.height:
        return
    by, threshold = ", ".join(map(repr, question.by)), plan.threshold
    lower = [] if price is None else _lower(question, plan, price)
    keys = "keys={...}" if len(question.by) > 1 else "keys=[...]"
    warn(
        f"The released table is empty: no key of {by} reached the threshold of {threshold} units. "
        f"{'It is lower ' + ', or '.join(lower) if lower else 'A larger price or a smaller max_groups= lowers it'}. "
        f"Keys that are public can be listed, {keys}, and coarser ones have more units each."
    )


def _lower(question: Question, plan: NoisePlan, price: Price) -> list[str]:
    """Settings with a lower threshold, each with the line to type."""
    assert plan.decided_by is not None
    twice = replace(price, amount=2 * price.amount)
    delta = f", delta={float(price.delta):g}" if price.delta else ""
    settings = [(f"with release({price.terms.value}={float(twice.amount):g}{delta})", question, twice)]
    if plan.decided_by.total.sensitivity.l0 > 1 and question.table.unit:  # without a unit there is nobody to limit
        fewer = replace(question.given, max_groups=1)
        settings.append(("with max_groups=1", replace(question, given=fewer, chosen=None), price))
    lower = []
    for words, asked, setting in settings:
        threshold = _threshold(asked, setting)
        if threshold is not None and plan.threshold is not None and threshold < plan.threshold:
            lower.append(f"{words}, {threshold} units")
    return lower


def _threshold(question: Question, price: Price) -> int | None:
    """The threshold of a question at a price; None where that price cannot be paid for it."""
    try:
        return answer_kind(question).noise(question, price).threshold
    except DpFrameError:
        return None
