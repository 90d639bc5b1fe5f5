"""Which groups a question releases, and which rows count in none of them, in sentences."""

from __future__ import annotations

from dpframe.plan.question import Question
from dpframe.plan.steps import Cut, lineage
from dpframe.plan.tables import Hierarchy, Marginals, Synthesis
from dpframe.plan.types import Kind, kind
from dpframe.theory.formulas.loss import ROUNDS

__all__ = ["in_number", "released_groups"]

_OTHER = " The last row adds up the groups that are not released, with noise of its own."
_LARGEST = (
    " Of the groups that are found, the {} with the largest noisy numbers are kept, or all if there are fewer. "
    "Intervals hold for all found groups together, so also for the kept ones."
)


def released_groups(question: Question) -> str:
    """Which groups are released, by which rule, and which rows are in none of them because of null."""
    return f"{_rule(question)}{_nulls(question)}"


def in_number(number: int, noun: str) -> str:
    """A number with its noun, in the plural unless it is 1."""
    return f"{number} {noun}{'s' if number != 1 else ''}"


def _rule(question: Question) -> str:
    if question.layout.is_description:
        return "One table is released: a row for each statistic, a column for each column."
    if not question.by:
        return "One row is released." if question.rounds == 1 else f"{question.rounds} rows are released."
    if isinstance(question, Synthesis):
        return _rows_in_words(question)
    if isinstance(question, Marginals):
        return _tables(question)
    if isinstance(question, Hierarchy):
        return _levels(question)
    if question.keys is not None:
        sentence = f"Keys are public: all {question.keys.size} listed groups are released, whatever the data holds."
        return sentence if question.shape is None else f"{sentence} {_shares(question)}"
    also = "" if question.other is None else _OTHER
    if question.layout.largest is not None:
        also = _LARGEST.format(question.layout.largest)
    return f"{_key_rule(question)}{also}"


def _nulls(question: Question) -> str:
    """What becomes of rows with null in a column of keys, after a space; empty where no row is left out for null."""
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
    """The columns of keys that may be null, where null is no key: with their kinds, and those that were cut into bins.

    Values of synthetic rows are moved into the bins first, so that null alone has none.
    """
    cuts = {step.into: step for step in lineage(question.step) if isinstance(step, Cut)}
    gaps, binned = {}, []
    for place, (name, column) in enumerate(zip(question.by, question.group_columns, strict=True)):
        domain = column.domain
        if name in cuts and isinstance(question, Synthesis):
            domain = cuts[name].before.table.columns[name].domain
        if not domain.nullable or (question.keys is not None and question.keys.nullable[place]):
            continue
        if name in cuts and not isinstance(question, Synthesis):
            binned.append(name)
        else:
            gaps[name] = kind(domain.dtype)
    return gaps, binned


def _key_rule(question: Question) -> str:
    """The rule by which groups found in the data are released."""
    noun = "units" if question.table.unit else "rows"
    if question.in_rounds:
        return (
            f"Keys are found in the data, in {ROUNDS} rounds (needs δ). In each round, each unit spreads a weight of 1 "
            "over its keys that are still in play: 1/√t to each of t keys. Gaussian noise is added to the weights of "
            "each key. A key is released when the sum of its noisy weights so far reaches a threshold, and drops out "
            "when this sum is far behind on the way to the last threshold: below a fifth of it at first, and below "
            "four fifths before the last round."
        )
    if any(p.hidden and p.total.sensitivity.exact_linf == 1 for p in question.allotments):
        return (
            f"Keys are found in the data: the more {noun} a group has, the likelier it is released (needs δ). Either "
            f"the optimal rule decides, or a threshold on the noisy number of {noun}: whichever releases more keys at "
            "this price."
        )
    return (
        f"Keys are found in the data: a group is released when its noisy number of {noun} reaches a threshold "
        "(needs δ)."
    )


def _tables(question: Marginals) -> str:
    """How many marginals are released, and how the price is split over their interactions."""
    whole, by_size = sum(allotment.share for allotment in question.allotments), dict[int, float]()
    for allotment in question.allotments:
        ways = len(allotment.total.among)
        by_size[ways] = by_size.get(ways, 0.0) + float(allotment.share / whole)
    nouns = {0: "the total", 1: "single columns", 2: "pairs"}
    parts = ", ".join(f"{share:.2%} {nouns.get(ways, f'sets of {ways}')}" for ways, share in by_size.items())
    tables = in_number(len(question.workload), "table")
    return (
        f"Keys are public: {tables} with all listed keys, whatever the data holds. A "
        "row counts if it has a listed key in every column. Interactions of columns are measured once each, with "
        "Gaussian noise, and the tables are computed from them. ρ is split so that the sum of the cells' variances is "
        f"the smallest: {parts}."
    )


def _levels(question: Hierarchy) -> str:
    """The levels of a hierarchy, and how the price is split over them."""
    tree = question.levels
    nodes = ", ".join(f"{size:,} {name}" for size, name in zip(tree.shape.sizes, tree.names, strict=True))
    by = f", each by {' and '.join(tree.crossed)} ({tree.cells} cells)" if tree.crossed else ""
    normal, pure = (
        [float(share / sum(shares)) for share in shares]
        for shares in (
            [allotment.share for allotment in question.allotments],
            [allotment.epsilon_share for allotment in question.allotments],
        )
    )
    of_rho, of_epsilon = (
        ", ".join(f"{share:.2%} {name}" for share, name in zip(shares, tree.names, strict=True))
        for shares in (normal, pure)
    )
    return (
        f"Keys are public: a tree with {nodes}{by}, whatever the data holds. A row counts if its leaf is listed. Every "
        "level is measured with noise of its own, and all levels are fitted to each other by least squares, so that "
        f"they add up. Shares of ρ, for Gaussian noise: {of_rho}. Shares of ε, for Laplace noise: {of_epsilon}."
    )


def _rows_in_words(question: Synthesis) -> str:
    """How synthetic rows come about."""
    rows = "the noisy number of rows" if question.rows is None else f"{question.rows:,}"
    target = "" if question.target is None else f" Tables that have {question.target!r} count four times as much."
    return (
        f"Keys are public: {len(question.by)} columns with their listed keys, whatever the data holds. A row counts if "
        "it has a listed key in every column. First the table of each column is measured. Then, in rounds, one of "
        f"{len(question.candidates)} tables of some columns is chosen by the exponential mechanism, and measured with "
        f"Gaussian noise; all costs add up.{target} Synthetic rows are drawn from a model of the noisy "
        f"tables. Their number: {rows}."
    )


def _shares(question: Question) -> str:
    """How the price is split over cells and measured margins, for each kind of noise."""
    if len(question.allotments) == 1:
        return "Margins are not worth measuring in a table of this shape: they are derived from the cells."
    parts = [(allotment.total.merged or "cells", allotment) for allotment in question.allotments]
    normal = ", ".join(f"{float(p.share):.2%} {name}" for name, p in parts)
    pure = ", ".join(f"{float(p.epsilon_share):.2%} {name}" for name, p in parts if p.epsilon_share)
    alone = " (margins are then derived)" if question.allotments[0].epsilon_share == 1 else ""
    return (
        "Margins are measured and reconciled with the cells by weighted least squares; the shares follow from the "
        f"table's shape alone. With Gaussian noise, of ρ: {normal}. With Laplace noise, of ε: {pure}{alone}."
    )
