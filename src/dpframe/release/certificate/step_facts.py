"""Steps of a plan as a certificate says them: what they do to rows, and facts
about the columns that they wrote.
"""

from __future__ import annotations

from fractions import Fraction

from dpframe.fields import FieldDict
from dpframe.plan import Column, Limits, Question, Table, show
from dpframe.plan.steps import Rows, Step, lineage, source_of
from dpframe.release.certificate.rationals import text
from dpframe.release.certificate.total_facts import own_limits

_NAMES = {"groups": "max_groups", "rows_per_group": "max_rows_per_group", "rows": "max_rows"}


def unit_facts(question: Question) -> FieldDict:
    """The unit whose privacy it is."""
    source = source_of(question.step)
    unit = (
        {"rows": source.unit.max_rows}
        if isinstance(source.unit, Rows)
        else {"columns": list(source.unit)}
    )
    return {**unit, "people": source.people}


def question_facts(question: Question, typed: str) -> FieldDict:
    """A question: its steps, its groups, and its limits with where they come from.
    Input: typed: in words.
    """
    table = question.table
    limits = _limits(question.limits)
    return {
        "asked": typed,
        "steps": steps(question.step),
        "contribution": {"rows": _most_rows(table), "exactly_one": table.exactly_one},
        "by": list(question.by),
        "cells": question.cells,
        "limits": limits,
        "limits_from": {
            name: _origin(question, _NAMES[name], limit) for name, limit in limits.items() if limit
        },
        "own_limits": [
            {"limits": _limits(own), "typed": own.typed} for own in own_limits(question)
        ],
        "policies": [{"file": lock.file, "sha256": lock.sha256} for lock in table.locks],
    }


def _limits(limits: Limits) -> dict[str, int | None]:
    return {name: getattr(limits, of) for name, of in _NAMES.items()}


def _most_rows(table: Table) -> int | None:
    """Largest number of rows of one unit, by the steps alone."""
    return table.declared if table.declared is not None else 1 if table.single else None


def _origin(question: Question, name: str, limit: int) -> str:
    """The origin of a limit."""
    table = question.table
    if table.declared is not None:
        return "unit"
    if question.chosen is not None and getattr(question.chosen, name) == limit:
        return "auto"
    for lock in table.locks:
        if limit in (getattr(lock.limits, name), getattr(lock.defaults, name)):
            return f"policy {lock.sha256}"
    if limit == getattr(table.defaults, name):
        return "declared"
    return "typed" if limit == getattr(question.typed_limits, name) else "follows"


def steps(step: Step) -> list[FieldDict]:
    """All steps up to one, from the source."""
    facts = []
    for one in lineage(step):
        others = [steps(other) for other in one.others]
        facts.append(
            {
                "step": one.effect,
                "typed": one.typed,
                "columns": _written(one),
                **one.effect_facts,
                **({"others": others} if others else {}),
            }
        )
    return facts


def _written(step: Step) -> FieldDict:
    """Facts about each column that a step wrote or changed, after it."""
    before = step.parent.table.columns if step.parent is not None else {}
    return {
        name: _column(column)
        for name, column in step.table.columns.items()
        if before.get(name) != column
    }


def _column(column: Column) -> FieldDict:
    domain = column.domain
    bounds = None if domain.bounds is None else [text(Fraction(end)) for end in domain.bounds]
    keys = None if domain.keys is None else len(domain.keys)
    return {"type": show(domain.dtype), "nullable": domain.nullable, "bounds": bounds, "keys": keys}
