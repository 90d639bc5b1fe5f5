"""A lasting description of a question.
Equal questions on equal schemas have equal descriptions, and no data is in it.

The name of a release stands for this description. Two runs of one script give equal descriptions,
on every machine and in every process. Where two descriptions differ, the difference shows in the
words that a person typed.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.errors import UnsupportedOperation, kind_of
from dpframe.plan.columns import ColumnDomain
from dpframe.plan.expressions import Expr
from dpframe.plan.moments import Covers
from dpframe.plan.question import Question
from dpframe.plan.steps import Source, Step, lineage

LONG = 100  # a longer list is described by its length and hash

Json = Any


def described(question: Question) -> dict[str, Json]:
    """A question as JSON: whose privacy, the schema, every step, the groups,
    limits and aggregates; never a row.

    Errors: UnsupportedOperation when something in the plan has no lasting description
    """
    limits = {
        name: _plain(limit) for name, limit in vars(question.given).items() if limit is not None
    }
    return {
        **described_table(question.step),
        "ask": {
            "by": list(question.by),
            "keys": _plain(question.keys),
            "limits": limits,
            "aggregates": {name: _plain(aggregate) for name, aggregate in question.aggregates},
            "layout": _plain(question.layout),
            **({} if question.other is None else {"other": _plain(question.other)}),
            **({} if question.min_units is None else {"min_units": question.min_units}),
            **({} if question.ci is None else {"ci": question.ci}),
            **({} if question.covers is Covers.NOISE else {"covers": question.covers.value}),
            **{name: _plain(value) for name, value in question.tables_asked.items()},
        },
    }


def described_table(step: Step) -> dict[str, Json]:
    """The table after a step as JSON: whose privacy, the schema, every step; never a row."""
    first, *later = list(lineage(step))
    return {"table": _source(first), "steps": [_step(s) for s in later]}


def _source(step: Step) -> Json:
    assert isinstance(step, Source)
    return {
        "unit": _plain(step.unit),
        "neighbors": step.relation,
        "columns": {name: _domain(domain) for name, domain in step.schema},
    }


def _step(step: Step) -> Json:
    parts = {
        f.name: _plain(getattr(step, f.name)) for f in fields(step) if f.name != "before" and f.repr
    }
    return {"": step.typed, **parts}


def _domain(domain: ColumnDomain) -> str:
    return str(_plain(domain.dtype))


def _plain(value: Any) -> Json:
    """A value of a plan as JSON, with its type where two types could look alike."""
    match value:
        case None | bool() | str():
            return value
        case float():
            return repr(value)
        case int() | Decimal() | Fraction():
            return str(value)
        case dt.date() | dt.timedelta():
            return f"{type(value).__name__} {value}"
        case nw.Enum():
            return f"Enum of {_plain(list(value.categories))}"
        case DType():
            return str(value)
        case Step():
            return described_table(value)
        case Expr():
            return _plain(value._node)
        case _ if is_dataclass(value):
            parts = {
                f.name: _plain(getattr(value, f.name))
                for f in fields(value)
                if not _unsaid(value, f)
            }
            return {"": getattr(value, "typed", type(value).__name__), **parts}
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case tuple() | list():
            return _short([_plain(item) for item in value])
    raise UnsupportedOperation(
        f"release(name=...): the plan holds {kind_of(value)}, which has no description that lasts; "
        "leave the name out."
    )


def _unsaid(value: Any, part: Field[Any]) -> bool:
    """Whether a part that can be typed by name alone was not typed, so that it
    is no part of the description.
    """
    return part.kw_only and bool(getattr(value, part.name) == part.default)


def _short(items: list[Json]) -> Json:
    if len(items) <= LONG:
        return items
    digest = hashlib.sha256(json.dumps(items, sort_keys=True).encode()).hexdigest()
    return f"{len(items)} values, sha256 {digest[:16]}"
