"""The steps that write columns, each computed from its own row. Engines run all of them alike.

They are stable, as the other steps that read one row: see `basic`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from narwhals.dtypes import DType

from dpframe.errors import WrongType
from dpframe.plan import nodes
from dpframe.plan.columns import Bounds, ColumnDefaults, ColumnDomain, Limits, Lock, Table
from dpframe.plan.expressions import Expr
from dpframe.plan.nodes import Node
from dpframe.plan.operations import Applied, cast_domain, clip_domain, fill_domain, imaged
from dpframe.plan.scalars import Scalar
from dpframe.plan.steps.basic import Step, not_the_unit
from dpframe.plan.types import Kind, kind, show


@dataclass(frozen=True, eq=False)
class Rewrite(Step):
    """A step that writes columns, each computed from its own row.
    Engines run all of these steps alike.
    """

    before: Step

    @property
    def written(self) -> tuple[tuple[str, Node], ...]:
        """The new columns, each with its value as an expression on the table of `since`."""
        raise NotImplementedError

    @property
    def since(self) -> Step:
        """The step on whose table `written` is computed: the one before, or one further back."""
        return self.before


@dataclass(frozen=True, eq=False)
class WithColumns(Rewrite):
    """Write columns, each computed from its own row.
    They are new versions, so old bounds do not hold for them.
    """

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
            if domain.kind == Kind.OTHER:
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
        written = (f"{name}={nodes.text(expr._node, short=short)}" for name, expr in self.columns)
        return f"with_columns({', '.join(written)})"


@dataclass(frozen=True, eq=False)
class Clip(Rewrite):
    """Move every value of a column into [lower, upper]; missing stays missing."""

    name: str
    lower: Any  # a number or a time, None where it is open
    upper: Any

    @property
    def written(self) -> tuple[tuple[str, Node], ...]:
        _, lower, upper = self._joined
        return (_call(self.name, "clip", lower=lower, upper=upper),)

    @property
    def since(self) -> Step:
        """Clips of one column of numbers in a row are computed as one."""
        return self._joined[0]

    @cached_property
    def _joined(self) -> tuple[Step, Any, Any]:
        """The step before all clips of this column in a row, and the
        limits of all of them together.

        A value that is moved into [a, b], and then into [c, d], is moved into what [c, d] makes of
        a and of b. Limits of whole numbers are whole before that: of 5 and 9, [0, 2.5] makes 2.
        """
        before, lower, upper = self.before, self.lower, self.upper
        dtype = before.table.columns[self.name].domain.dtype
        if kind(dtype) not in (Kind.INTEGER, Kind.FLOAT):
            return before, lower, upper
        if kind(dtype) is Kind.INTEGER:
            lower, upper = _rounded(math.ceil, lower), _rounded(math.floor, upper)
        if not isinstance(before, Clip) or before.name != self.name:
            return before, lower, upper
        first, *ends = before._joined
        if first.table.columns[self.name].domain.dtype != dtype:
            return before, lower, upper
        inside = Bounds.open(lower, upper)
        low, high = (None if end is None else inside.clamp(end) for end in ends)
        return first, lower if low is None else low, upper if high is None else high

    @cached_property
    def table(self) -> Table:
        return _changed(
            self,
            "clip",
            lambda call, domain: clip_domain(call, domain, self.lower, self.upper, self.typed),
        )

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
        return _changed(
            self,
            "fill_null",
            lambda call, domain: fill_domain(call, domain, self.value, self.typed),
        )

    @property
    def typed(self) -> str:
        return f"fill_null({self.name!r}, {self.value!r})"


def _changed(
    step: Clip | FillNull, verb: str, image: Callable[[str, ColumnDomain], ColumnDomain]
) -> Table:
    """The table of a step that changes the values of one column."""
    table, call = step.before.table, f"{verb}({step.name!r})"
    not_the_unit(table, step.name, call)
    domain = table.column(step.name, call).domain
    return table.with_versions(
        [(step.name, imaged(verb, Applied(call, [domain], vars(step)), image(call, domain)))]
    )


@dataclass(frozen=True, eq=False)
class Cast(Rewrite):
    """Another type for some columns; a value that does not convert is null.
    Domains are derived anew.
    """

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
            domain = table.column(name, call).domain
            result = cast_domain(call, domain, dtype, self.typed)
            domains.append(
                (name, imaged("cast", Applied(call, [domain], {"dtype": dtype}), result))
            )
        return table.with_versions(domains)

    @property
    def typed(self) -> str:
        return "cast({" + ", ".join(f"{n!r}: {show(t)}" for n, t in self.types) + "})"


@dataclass(frozen=True, eq=False)
class UnderPolicy(Rewrite):
    """A table under a policy file: its bounds and keys hold for the cells, and its
    limits for every later question.

    Neighbours: those of the table
    Changes:  the unit's own rows alone: a value outside of the bounds is moved to the nearest one,
                and a value that the keys do not list is missing from here on
    Bound:  one row for each row, of the same unit. The limits are enforced on the rows that reach a
                question, as those of `Bound` are
    Why:  a cell is computed from itself and the file, which is fixed before anything is read. No
                later step sees the cells as they were. So whatever is typed after this, a question
                is one about the table that the file describes, in which each value lies within the
                bounds and keys; a question with wider bounds or limits has more noise, and no value
                or row counts for more
    Source:     post-processing of each row, as for all steps here
    """

    lock: Lock
    bounds: Mapping[str, Bounds]
    keys: Mapping[str, tuple[Scalar | None, ...]]
    defaults: Mapping[str, ColumnDefaults]

    @property
    def limits(self) -> Limits:
        """The limits of every later question, beside its own."""
        return self.lock.limits

    @property
    def written(self) -> tuple[tuple[str, Node], ...]:
        return tuple((name, self._cell(name)) for name in dict.fromkeys((*self.bounds, *self.keys)))

    def _cell(self, name: str) -> Node:
        """The value of a column under the policy."""
        value: Node = nodes.Name(name)
        if name in self.bounds:
            lower, upper = self.bounds[name]
            _, value = _call(name, "clip", lower=lower, upper=upper)
        if name in self.keys:
            listed = nodes.Call("is_in", (value,), (("values", nodes.Listed(self.keys[name])),))
            value = nodes.Call("case", (listed, value, nodes.Literal(None)))
        return value

    @cached_property
    def table(self) -> Table:
        table, domains = self.before.table, []
        for name, value in self.written:
            call = f"{self.lock.file}: {name!r}"
            not_the_unit(table, name, call)
            domain = nodes.domain(value, table, call)
            clipped = self.lock.file if name in self.bounds else ""
            domains.append(
                (
                    name,
                    replace(
                        domain, keys=self.keys.get(name), origin=self.lock.file, clipped=clipped
                    ),
                )
            )
        table = table.with_versions(domains).with_defaults(self.defaults)
        return replace(
            table,
            limits=table.limits.and_also(self.limits),
            locks=(*table.locks, self.lock),
            defaults=table.defaults.or_else(self.lock.defaults),
            min_units=table.min_units or self.lock.min_units or self.lock.default_min_units,
        )

    @property
    def typed(self) -> str:
        return f"policy({self.lock.file!r}, sha256={self.lock.sha256!r})"

    @property
    def shown(self) -> str:
        return f"policy({self.lock.file!r}, sha256={self.lock.sha256[:12]!r})"


def _rounded(to: Callable[[Any], int], end: Any) -> Any:
    """A limit as a whole number; an open one as it is."""
    return end if end is None or math.isinf(end) else to(end)


def _call(name: str, operation: str, **options: Any) -> tuple[str, Node]:
    """A column whose value is one operation on its own old value."""
    return name, nodes.Call(operation, (nodes.Name(name),), tuple(options.items()))
