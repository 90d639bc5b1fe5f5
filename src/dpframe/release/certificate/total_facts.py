"""Totals as a certificate says them: what is added up, under which limits,
and how far one unit moves it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from dpframe.fields import FieldDict
from dpframe.plan import Allotment, Limits, Product, Question, Total, TotalKind, UnitMoment
from dpframe.release.certificate.rationals import text
from dpframe.theory.formulas.sensitivity import Relation, Sensitivity

Ids = Mapping[Hashable, str]  # of the totals of one question, by their keys
# nothing rests on these
_NOT_CLAIMED = {"interaction": ("l0", "l1", "linf"), "tree": ("l0",), "key_weights": ("l1",)}


def sensitivity_facts(bound: Sensitivity) -> FieldDict:
    """The distance by which one unit moves a total (units of its integer)."""
    return {
        "l0": bound.l0,
        "l1": text(bound.exact_l1),
        "l2_squared": text(bound.l2_squared),
        "linf": text(bound.exact_linf),
    }


def own_limits(question: Question) -> list[Limits]:
    """The limits of single columns, each once, in the order of the totals that have them."""
    return list(
        dict.fromkeys(
            one.total.limits for one in question.allotments if one.total.limits is not None
        )
    )


def total_facts(question: Question, allotment: Allotment, number: int, ids: Ids) -> FieldDict:
    """A total of a question. Input: number: the place of the question; ids: of its totals."""
    total = allotment.total
    kind, more = _made(question, total, ids)
    bound = sensitivity_facts(total.sensitivity)
    for name in _NOT_CLAIMED.get(kind, ()):
        del bound[name]
    return {
        "id": ids[total.key],
        "question": number,
        "names": list(allotment.names),
        "kind": kind,
        "fraction": total.fraction,
        "own_limits": None if total.limits is None else own_limits(question).index(total.limits),
        "sensitivity": bound,
        **more,
    }


@dataclass(frozen=True)
class Read:
    """A noisy answer with Laplace noise that a choice of limits or bounds
    followed from: its kind and size.

    One unit brings at most `most` to all entries together, in units of their integer; the scale is
    in these units too.
    """

    kind: Literal["histogram", "count_of_pairs"]
    entries: int
    most: int
    scale: float


def read_facts(question: Question, read: Read, name: str) -> FieldDict:
    """A total that a choice was made by.

    Bound:  the entries of a histogram move by `most` together when a unit joins or leaves, and by
            twice that when one is exchanged. One number of pairs moves by `most` at most: see
            `release.auto.noisy_histograms`
    """
    times = 2 if question.table.relation == Relation.REPLACE and read.kind == "histogram" else 1
    l1 = times * read.most
    bound = Sensitivity.of(l0=read.entries, l1=l1, l2_squared=l1**2, linf=l1)
    about = {
        "id": name,
        "question": 0,
        "names": ["read by dp.Auto()"],
        "kind": read.kind,
        "fraction": 0,
    }
    about |= {"own_limits": None}
    return {
        **about,
        "cells": read.entries,
        "most": read.most,
        "sensitivity": sensitivity_facts(bound),
    }


def _made(question: Question, total: Total, ids: Ids) -> tuple[str, FieldDict]:
    """The kind of a total, and what its sensitivity follows from."""
    if total.merged:
        of = ids[replace(total, merged="").key]
        assert question.shape is not None
        down, across = question.shape
        return "merged", {
            "of": of,
            "cells": {"rows": down, "columns": across, "total": 1}[total.merged],
        }
    if total.follows is not None:
        centre = total.follows[0].grid.centre / total.follows[0].grid.step
        return "sum", {
            **_values(question, total),
            "of": "value",
            "shift": int(centre),
            **question.limits_on(total),
        }
    kind, facts = _KINDS[total.kind]
    more = _factor(total.moment, ids) if total.moment is not None else {}
    entries = {"cells": None} if kind == "tree" else {}  # they are blocks, in any number
    return kind, {**facts(question, total), **more, **question.limits_on(total), **entries}


def _values(question: Question, total: Total) -> FieldDict:
    """The grid of what is added up, the bounds that follow from it, and the columns."""
    grid = total.grid
    nullable = any(column.domain.nullable for column in total.columns)
    return {
        "range": [grid.lower, grid.upper],
        "grid": {"step": text(grid.step), "centre": text(grid.centre)},
        "bounds": [text(end) for end in grid.ends],
        "nullable": nullable,
        "one_row": question.unit_limits.one_row_each and not nullable,
        **_columns(question, total),
    }


def _columns(question: Question, total: Total) -> FieldDict:
    """The column that is read, and all of those that have a value in each row that is added up.

    A column that has no name any more has a number, in the order of the totals of the question.
    """
    names = question.table.names_by_id
    for one in (column for allotment in question.allotments for column in allotment.total.columns):
        names.setdefault(one.id, f"#{len(names)}")
    own = None if total.column is None else names[total.column.id]
    return {"column": own, "present": sorted({names[column.id] for column in total.columns})}


def _sum(of: str) -> Callable[[Question, Total], FieldDict]:
    return lambda question, total: {**_values(question, total), "of": of}


def _rows(question: Question, total: Total) -> FieldDict:
    return {"range": [1, 1], "one_row": question.unit_limits.one_row_each}


def _present(question: Question, total: Total) -> FieldDict:
    return {**_values(question, total), "range": [0, 1], "one_row": False}


def _plain(question: Question, total: Total) -> FieldDict:
    return {}


def _of_column(question: Question, total: Total) -> FieldDict:
    return _columns(question, total)


def _products(question: Question, total: Total) -> FieldDict:
    assert total.moment is not None
    before = {"before": total.moment.place} if total.between_groups else {}
    nullable = not total.moment.one_row
    return {
        "range": [total.grid.lower, total.grid.upper],
        "nullable": nullable,
        "one_row": not nullable,
        **before,
    }


def _factor(moment: UnitMoment, ids: Ids) -> FieldDict:
    """The bound of a unit's products in all of its groups:
    the size of one factor, as `plan.UnitMoment` makes it.
    """
    if moment.in_all is None or moment.product is Product.BETWEEN:
        return {"factor": None}
    if moment.counts is not None:
        times = moment.most_rows if moment.product is Product.ROW_SPREAD else moment.cap
        of, scale, off = moment.counts, Fraction(1, 2**moment.rows_shift), 0
    else:
        assert moment.sums is not None
        of, times, scale, off = (
            moment.sums,
            moment.most,
            Fraction(2, 2 ** (moment.pre + moment.shift)),
            2,
        )
    return {"factor": {"of": ids[of], "times": times, "scale": text(scale), "off": off}}


def _places(question: Question, total: Total) -> FieldDict:
    return {**_columns(question, total), "places": total.width}


def _weights(question: Question, total: Total) -> FieldDict:
    return {"most": total.sensitivity.l0, "one": int(total.sensitivity.exact_linf)}


_KINDS: Mapping[TotalKind, tuple[str, Callable[[Question, Total], FieldDict]]] = {
    TotalKind.ROWS: ("rows", _rows),
    TotalKind.VALUES: ("values", _present),
    TotalKind.UNITS: ("units", _plain),
    TotalKind.SUM: ("sum", _sum("value")),
    TotalKind.PRODUCT: ("sum", _sum("product")),
    TotalKind.LOG: ("sum", _sum("log")),
    TotalKind.KEY_WEIGHTS: ("key_weights", _weights),
    TotalKind.UNIT_SUM: ("unit_sum", _values),
    TotalKind.DISTINCT: ("distinct", _of_column),
    TotalKind.RANKS: ("choice", _places),
    TotalKind.MODES: ("choice", _places),
    TotalKind.TREE: ("tree", _places),
    TotalKind.INTERACTION: ("interaction", _plain),
    TotalKind.MOMENT: ("unit_products", _products),
}
