"""Groups that a question releases, and rows that count in none of them, in sentences."""

from __future__ import annotations

from dpframe.plan.question import Question
from dpframe.plan.steps import Cut, lineage
from dpframe.plan.tables import Synthesis
from dpframe.plan.types import Kind, kind
from dpframe.theory.formulas.loss import ROUNDS

_OTHER = " The last row adds up the groups that are not released, with noise of its own."
_LARGEST = (
    " Of the groups that are found, the {} with the largest noisy numbers are kept, or all if "
    "there are fewer. Intervals hold for all found groups together, so also for the kept ones."
)


def released_groups(question: Question) -> str:
    """Released groups, the rule that releases them, and the rows that are
    in none of them because of null.
    """
    return f"{_rule(question)}{_nulls(question)}"


def _rule(question: Question) -> str:
    if question.layout.is_description:
        return "One table is released: a row for each statistic, a column for each column."
    if not question.by:
        return (
            "One row is released."
            if question.rounds == 1
            else f"{question.rounds} rows are released."
        )
    if question.tables_in_words:
        return question.tables_in_words
    if question.keys is not None:
        sentence = (
            f"Keys are public: all {question.keys.size} listed groups are released, whatever the "
            "data holds."
        )
        return sentence if question.shape is None else f"{sentence} {_shares(question)}"
    also = "" if question.other is None else _OTHER
    if question.layout.largest is not None:
        also = _LARGEST.format(question.layout.largest)
    return f"{_key_rule(question)}{_fewest(question)}{also}"


def _fewest(question: Question) -> str:
    """Groups that are too small to be released whatever the noise is, after a
    space; empty where there are none.
    """
    if question.min_units is None:
        return ""
    unit = (
        f"{question.min_units} units"
        if question.table.unit
        else f"as many rows as {question.min_units} people have"
    )
    return (
        f" A group in which fewer than {unit} count is never released "
        f"(min_units={question.min_units})."
    )


def _nulls(question: Question) -> str:
    """The fate of rows with null in a column of keys, after a space;
    empty where no row is left out for null.
    """
    if question.layout.is_description:
        return " Null and NaN count as missing, and are in no other number."
    gaps, binned = _gaps(question)
    names, rows = [repr(name) for name in gaps], []
    if gaps:
        missing = "null or NaN" if Kind.FLOAT in gaps.values() else "null"
        rows.append(f"with {missing} in {' or '.join(names)}")
    if binned:
        rows.append(f"without a value in the bins of {' or '.join(map(repr, binned))}")
    way = ""
    if gaps and question.keys is None:
        value = "'(none)'" if next(iter(gaps.values())) == Kind.STRING else "..."
        way = f" fill_null({names[0]}, {value}) before gives them a key."
    elif gaps and isinstance(question, Synthesis):
        way = f" synthesize(..., nulls=[{', '.join(names)}]) counts them."
    return f" Rows {' or '.join(rows)} do not count.{way}" if rows else ""


def _gaps(question: Question) -> tuple[dict[str, Kind], list[str]]:
    """The columns of keys that may be null, where null is no key:
    with their kinds, and those that were cut into bins.

    Values of synthetic rows are moved into the bins first, so that null alone has none.
    """
    cuts = {step.into: step for step in lineage(question.step) if isinstance(step, Cut)}
    gaps, binned, drawn = {}, [], isinstance(question, Synthesis)
    for place, (name, column) in enumerate(zip(question.by, question.group_columns, strict=True)):
        domain = column.domain
        if name in cuts and drawn:
            domain = cuts[name].before.table.columns[name].domain
        if not domain.nullable or (question.keys is not None and question.keys.nullable[place]):
            continue
        if name in cuts and not drawn:
            binned.append(name)
        else:
            gaps[name] = kind(domain.dtype)
    return gaps, binned


def _key_rule(question: Question) -> str:
    """The rule by which groups found in the data are released."""
    noun = "units" if question.table.unit else "rows"
    if question.in_rounds:
        return (
            f"Keys are found in the data, in {ROUNDS} rounds (needs δ). In each round, each unit "
            "spreads a weight of 1 over its keys that are still in play: 1/√t to each of t keys. "
            "Gaussian noise is added to the weights of each key. A key is released when the sum "
            "of its noisy weights so far reaches a threshold, and drops out when this sum is far "
            "behind on the way to the last threshold: below a fifth of it at first, and below "
            "four fifths before the last round."
        )
    if any(p.hidden and p.total.sensitivity.exact_linf == 1 for p in question.allotments):
        return (
            f"Keys are found in the data: the more {noun} a group has, the likelier it is released "
            "(needs δ). Either the optimal rule decides, or a threshold on the noisy number of "
            f"{noun}: whichever releases more keys at this price."
        )
    return (
        f"Keys are found in the data: a group is released when its noisy number of {noun} reaches "
        "a threshold (needs δ)."
    )


def _shares(question: Question) -> str:
    """The split of the price over cells and measured margins, for each kind of noise."""
    if len(question.allotments) == 1:
        return (
            "Margins are not worth measuring in a table of this shape: they are derived from the "
            "cells."
        )
    parts = [(allotment.total.merged or "cells", allotment) for allotment in question.allotments]
    normal = ", ".join(f"{float(p.share):.2%} {name}" for name, p in parts)
    pure = ", ".join(f"{float(p.epsilon_share):.2%} {name}" for name, p in parts if p.epsilon_share)
    alone = " (margins are then derived)" if question.allotments[0].epsilon_share == 1 else ""
    return (
        "Margins are measured and reconciled with the cells by weighted least squares; the shares "
        f"follow from the table's shape alone. With Gaussian noise, of ρ: {normal}. With Laplace "
        f"noise, of ε: {pure}{alone}."
    )
