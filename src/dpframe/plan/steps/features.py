"""What can be computed of the rows of one unit, to stand in its one row: totals, extremes, first and last values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw

from dpframe.errors import InvalidArgument, UnsupportedOperation, WrongType
from dpframe.plan import expressions as plan
from dpframe.plan.columns import Auto, Bounds, ColumnDomain, Table
from dpframe.plan.expressions import Call, Name, Node
from dpframe.plan.operations import clip_facts
from dpframe.plan.statistics import Aggregate, Count, CountDistinct, Mean, Quantile, Sum
from dpframe.plan.totals import ReleasedColumn, UnitLimits
from dpframe.plan.types import TIMES, Kind, cast_first, cast_to, kind, mean_type, show

__all__ = ["Feature", "Pick", "feature", "small"]

_NUMBERS = ("integer", "float", "decimal", "boolean")
_ORDERED = ("integer", "float", "decimal", "date", "datetime", "duration")


@dataclass(frozen=True, repr=False)
class Pick(Aggregate):
    """The value of a column in a unit's first or last row by another column."""

    column: str = ""
    by: str = ""
    last: bool = False

    @property
    def typed(self) -> str:
        return f"{'last' if self.last else 'first'}({self.column!r}, by={self.by!r})"

    def output(self, name: str, scope: UnitLimits) -> ReleasedColumn:
        raise UnsupportedOperation(
            f"{self.typed}: that row is one person's. Take it for each unit, per_unit({name}=dp.{self.typed}), and "
            "then ask for a statistic over the units."
        )


@dataclass(frozen=True)
class Feature:
    """One value for each unit: how it is made of the unit's rows, and what is known of it.

    `made` is "rows", "values", "distinct", "sum", "mean", "min", "max", "first" or "last"; `value` is the expression of
    a row that it is made of, of which `known` is known; `by` is the column that "first" and "last" go by. Sums and
    means are clipped to the bounds in `facts`. A mean of times is `ticks` of its type for each of the values.
    """

    made: str
    value: Node | None
    known: ColumnDomain | None
    by: str | None
    facts: ColumnDomain
    ticks: int = 1

    @property
    def reads(self) -> frozenset[str]:
        """The columns it is made of."""
        read = frozenset() if self.value is None else plan.names(self.value)
        return read if self.by is None else read | {self.by}


def feature(name: str, aggregate: Aggregate, table: Table) -> Feature:
    """How an aggregate is made of one unit's rows, and its facts, or a typed error.

    A unit has at least one row, so a count of rows and a sum are never missing, and the rest is missing only where all
    that it is made of is. Bounds of values hold for their mean and their extremes; a sum has those of unit_bounds.
    """
    asked = f"per_unit({name}={aggregate.typed})"
    if aggregate.share != 1:
        raise InvalidArgument(f"{asked}: share= splits a price, and nothing is paid here; leave it out.")
    match aggregate:
        case Count(column=None):
            return Feature("rows", None, None, None, ColumnDomain(nw.Int64(), False))
        case Count(column=str(column)):
            known = _known(column, table, asked)
            return Feature("values", Name(column), known, None, ColumnDomain(nw.Int64(), False))
        case CountDistinct(column=column):
            known = _known(column, table, asked)
            return Feature("distinct", Name(column), known, None, ColumnDomain(nw.Int64(), False))
        case Sum(column=column, bounds=bounds, unit_bounds=unit_bounds):
            return _sum(column, bounds, unit_bounds, table, asked)
        case Mean(column=column, bounds=bounds):
            value, known = _clipped(column, bounds, table, asked, *_NUMBERS, *TIMES)
            dtype, ticks = mean_type(known.dtype)
            inside = known.bounds and Bounds(*(float(x) if dtype is None else x * ticks for x in known.bounds))
            facts = ColumnDomain(dtype or nw.Float64(), known.nullable, inside)
            return Feature("mean", value, known, None, facts, ticks)
        case Quantile(column=column, bounds=bounds, verb="min" | "max" as verb):
            value, known = _clipped(column, bounds, table, asked, *_ORDERED)
            return Feature(verb, value, known, None, replace(known, dtype=_held(known), keys=None))
        case Pick(column=column, by=by, last=last):
            known, order = _known(column, table, asked), _known(by, table, asked)
            if kind(order.dtype) not in (*_ORDERED, Kind.STRING) or isinstance(order.dtype, nw.Enum):
                raise WrongType(f"{asked}: by= is a number, a time or a text, not of type {show(order.dtype)}.")
            facts = replace(known, dtype=_held(known), nullable=known.nullable or order.nullable)
            return Feature("last" if last else "first", Name(column), known, by, facts)
    raise UnsupportedOperation(
        f"{asked}: of one unit's rows there are count, n_unique, sum, mean, min, max, first and last. Ask for the rest "
        "over the units, after per_unit."
    )


def _known(column: str, table: Table, asked: str) -> ColumnDomain:
    facts = table.column(column, asked).facts
    if kind(facts.dtype) == Kind.OTHER:
        raise WrongType(f"{asked}: a column of type {show(facts.dtype)} cannot be read.")
    return facts


def _held(facts: ColumnDomain) -> Any:
    """The type in which a value is held from here on: a decimal is a float inside the engine."""
    return nw.Float64() if kind(facts.dtype) in (Kind.FLOAT, Kind.DECIMAL) else facts.dtype


def _clipped(
    column: str, bounds: Bounds | Auto | None, table: Table, asked: str, *kinds: str
) -> tuple[Node, ColumnDomain]:
    """A column's value clipped to the bounds given, and what is known of it then."""
    facts = _known(column, table, asked)
    if kind(facts.dtype) not in kinds:
        raise WrongType(
            f"{asked}: needs {' or '.join(kinds)}, not a column of type {show(facts.dtype)}."
            f"{cast_first(facts.dtype, column) or cast_to(facts.dtype, *kinds)}"
        )
    if isinstance(bounds, Auto):
        raise UnsupportedOperation(f"{asked}: a feature of a unit needs bounds that are said, no dp.Auto().")
    if bounds is None:
        return Name(column), facts
    if kind(facts.dtype) == Kind.BOOLEAN:
        raise WrongType(f"{asked}: true and false need no bounds; leave bounds= out.")
    options: Mapping[str, Any] = {"lower": bounds.lower, "upper": bounds.upper}
    return Call("clip", (Name(column),), tuple(options.items())), clip_facts(asked, facts, *bounds)


def _sum(column: str, bounds: Bounds | Auto | None, unit_bounds: Bounds | None, table: Table, asked: str) -> Feature:
    """A sum: of integers and durations in 64 bits, which it is held inside; of floats as a float."""
    value, known = _clipped(column, bounds, table, asked, *_NUMBERS, "duration")
    family = kind(known.dtype)
    whole = family in (Kind.INTEGER, Kind.BOOLEAN)
    dtype = nw.Int64() if whole else known.dtype if family == Kind.DURATION else nw.Float64()
    facts = ColumnDomain(dtype, False)
    if unit_bounds is not None:
        facts = clip_facts(asked, facts, *unit_bounds)
    return Feature("sum", value, known, None, facts)


def small(facts: ColumnDomain) -> bool:
    """Whether integers are so small that 2^31 of them cannot leave 64 bits."""
    if facts.bounds is not None and facts.bounds.magnitude <= 2**31:
        return True
    return isinstance(facts.dtype, (nw.Boolean, nw.Int8, nw.Int16, nw.Int32, nw.UInt8, nw.UInt16))
