"""The steps that write columns, each computed from its own row. Engines run all of them alike.

They are stable, as the other steps that read one row: see `basic`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from narwhals.dtypes import DType

from dpframe.errors import WrongType
from dpframe.plan import nodes
from dpframe.plan.columns import Table
from dpframe.plan.expressions import Expr
from dpframe.plan.nodes import Node
from dpframe.plan.operations import cast_domain, clip_domain, fill_domain
from dpframe.plan.steps.basic import Step, not_the_unit
from dpframe.plan.types import Kind, kind, show


@dataclass(frozen=True, eq=False)
class Rewrite(Step):
    """A step that writes columns, each computed from its own row. Engines run all of these steps alike."""

    before: Step

    @property
    def written(self) -> tuple[tuple[str, Node], ...]:
        """The new columns, each with its value as an expression on the table before the step."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class WithColumns(Rewrite):
    """Write columns, each computed from its own row. They are new versions, so old bounds do not hold for them."""

    columns: tuple[tuple[str, Expr], ...]

    @property
    def written(self) -> tuple[tuple[str, Node], ...]:
        return tuple((name, expr._node) for name, expr in self.columns)

    @cached_property
    def table(self) -> Table:
        table, domains, line = self.before.table, [], self.shown
        for name, expr in self.columns:
            call = f"with_columns({name}=...)"
            not_the_unit(table, name, call)
            domain = nodes.domain(expr._node, table, call)
            if kind(domain.dtype) == Kind.OTHER:
                raise WrongType(f"{call}: the expression is of type {show(domain.dtype)}.")
            domains.append((name, replace(domain, origin=domain.origin or line)))
        return table.with_versions(domains)

    @property
    def typed(self) -> str:
        return self._line(short=False)

    @property
    def shown(self) -> str:
        return self._line(short=True)

    def _line(self, *, short: bool) -> str:
        return f"with_columns({', '.join(f'{n}={nodes.text(e._node, short=short)}' for n, e in self.columns)})"


@dataclass(frozen=True, eq=False)
class Clip(Rewrite):
    """Move every value of a column into [lower, upper]; missing stays missing."""

    name: str
    lower: Any  # a number or a time, None where it is open
    upper: Any

    @property
    def written(self) -> tuple[tuple[str, Node], ...]:
        return (_call(self.name, "clip", lower=self.lower, upper=self.upper),)

    @cached_property
    def table(self) -> Table:
        table, call = self.before.table, f"clip({self.name!r})"
        not_the_unit(table, self.name, call)
        domain = table.column(self.name, call).domain
        return table.with_versions([(self.name, clip_domain(call, domain, self.lower, self.upper, self.typed))])

    @property
    def typed(self) -> str:
        return f"clip({self.name!r}, {self.lower}, {self.upper})"


@dataclass(frozen=True, eq=False)
class FillNull(Rewrite):
    """A constant in place of what is missing (null or NaN) in a column."""

    name: str
    value: Any

    @property
    def written(self) -> tuple[tuple[str, Node], ...]:
        return (_call(self.name, "fill_null", value=self.value),)

    @cached_property
    def table(self) -> Table:
        table, call = self.before.table, f"fill_null({self.name!r})"
        not_the_unit(table, self.name, call)
        domain = table.column(self.name, call).domain
        return table.with_versions([(self.name, fill_domain(call, domain, self.value, self.typed))])

    @property
    def typed(self) -> str:
        return f"fill_null({self.name!r}, {self.value!r})"


@dataclass(frozen=True, eq=False)
class Cast(Rewrite):
    """Another type for some columns; a value that does not convert is null. Domains are derived anew."""

    types: tuple[tuple[str, DType], ...]

    @property
    def written(self) -> tuple[tuple[str, Node], ...]:
        return tuple(_call(name, "cast", dtype=dtype) for name, dtype in self.types)

    @cached_property
    def table(self) -> Table:
        table, domains = self.before.table, []
        for name, dtype in self.types:
            call = f"cast({name!r})"
            not_the_unit(table, name, call)
            domains.append((name, cast_domain(call, table.column(name, call).domain, dtype, self.typed)))
        return table.with_versions(domains)

    @property
    def typed(self) -> str:
        return "cast({" + ", ".join(f"{n!r}: {show(t)}" for n, t in self.types) + "})"


def _call(name: str, operation: str, **options: Any) -> tuple[str, Node]:
    """A column whose value is one operation on its own old value."""
    return name, nodes.Call(operation, (nodes.Name(name),), tuple(options.items()))
