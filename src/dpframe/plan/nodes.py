"""The tree of a row expression: columns, constants and operations, as they were written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw

from dpframe.plan.columns import Bounds, ColumnDomain, Table
from dpframe.plan.operations import OPERATIONS
from dpframe.plan.types import Null, Scalar, kind_of_scalar, listed

__all__ = ["Call", "Listed", "Literal", "Name", "Node", "domain", "names", "text"]


@dataclass(frozen=True)
class Name:
    """A column, by the name it has where the expression is used."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A value that the user typed."""

    value: Scalar | None


@dataclass(frozen=True)
class Call:
    """An operation of `OPERATIONS` on expressions."""

    operation: str
    args: tuple[Node, ...]
    options: tuple[tuple[str, Any], ...] = field(default=())


Node = Name | Literal | Call


_LITERAL_TYPES: Mapping[str, nw.dtypes.DType] = {
    "null": Null(),
    "boolean": nw.Boolean(),
    "integer": nw.Int64(),
    "float": nw.Float64(),
    "decimal": nw.Float64(),
    "string": nw.String(),
    "date": nw.Date(),
    "datetime": nw.Datetime(),
    "duration": nw.Duration(),
}


def text(node: Node, *, short: bool = False) -> str:
    """An expression as the user would type it; with `short`, long lists are cut, for people to read."""
    match node:
        case Name(name):
            return name
        case Literal(value):
            return repr(value)
        case Call(operation, args, options):
            parts = {name: listed(o) if short and isinstance(o, Listed) else o for name, o in options}
            return OPERATIONS[operation].text.format(*(text(a, short=short) for a in args), **parts)


def domain(node: Node, table: Table, call: str) -> ColumnDomain:
    """The domain of an expression's values on a table. Errors: UnknownColumn, WrongType."""
    match node:
        case Name(name):
            return table.column(name, call).domain
        case Literal(value):
            family = kind_of_scalar(value)
            bounds = Bounds(value, value) if isinstance(value, (bool, int, float)) else None
            has_zone = isinstance(value, dt.datetime) and value.tzinfo is not None
            return ColumnDomain(nw.Datetime("us", "UTC") if has_zone else _LITERAL_TYPES[family], value is None, bounds)
        case Call(operation, args, options):
            domains = [domain(a, table, call) for a in args]
            return OPERATIONS[operation].rule(f"{call}: {text(node, short=True)}", domains, dict(options))


def names(node: Node) -> frozenset[str]:
    """The columns an expression reads."""
    match node:
        case Name(name):
            return frozenset({name})
        case Call(_, args, _):
            return frozenset().union(*(names(a) for a in args))
        case _:
            return frozenset()


class Listed(tuple[Any, ...]):
    """Values of `is_in`, written as a list."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        return repr(list(self))
