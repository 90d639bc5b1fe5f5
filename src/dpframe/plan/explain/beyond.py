"""Rows beyond limits, and values beyond bounds, in each released column, and what becomes of them.

Whether a table has any is a fact about its rows, which nobody has paid for. So a sentence says what
would become of them. It follows from the question alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from dpframe.fields import Names
from dpframe.plan import nodes
from dpframe.plan.columns import Bounds, Limits, Table
from dpframe.plan.declared import used_by
from dpframe.plan.question import Question
from dpframe.plan.statistics import Aggregate, Formula
from dpframe.plan.steps import Filter, Step, lineage, source_of
from dpframe.plan.steps.combine import Join
from dpframe.plan.totals import Total, TotalKind, in_ticks

_TOTALS = (Formula.COUNT, Formula.SUM, Formula.MISSING)
_NAMED = 6  # columns that a sentence names
_ONE = Limits(1).typed


@dataclass(frozen=True)
class Beyond:
    """The losses of a released column: limits beyond which rows count less, and bounds of values.

    `total` says whether it is a count or a sum, which gets smaller; other statistics lean.
    `clipped` has lines such as "spend beyond [0, 100]", `before` what clipped values before the
    question: a policy file, a feature of units.
    """

    column: str
    limits: str
    total: bool
    clipped: Names = ()
    before: Names = ()


def beyond(question: Question) -> tuple[Beyond, ...]:
    """The limits and bounds beyond which each released column leaves something out."""
    table, aggregates = question.table, dict(question.aggregates)
    filters = tuple(dict.fromkeys(_clipped_in_filters(question.step)))
    found = []
    if not question.outputs:  # of rows that are made from tables
        made = [
            a.total
            for a in question.allotments
            if not a.total.finds and a.total.kind != TotalKind.KEY_WEIGHTS
        ]
        found += [
            Beyond("the rows", limits, total=True)
            for limits in filter(None, (_binding(question, t) for t in made))
        ]
    for output in question.outputs:
        limits = _binding(question, output.total)
        aggregate = aggregates.get(output.name)
        clipped = (
            ()
            if aggregate is None or output.formula is Formula.CDF
            else tuple(_clipped(aggregate, table))
        )
        columns = (
            *question.group_columns,
            *(c for _, total in output.totals for c in total.columns),
        )
        before = dict.fromkeys([*filters, *(c.domain.clipped for c in columns if c.domain.clipped)])
        found.append(Beyond(output.name, limits, output.formula in _TOTALS, clipped, tuple(before)))
    return tuple(found)


def _binding(question: Question, total: Total) -> str:
    """The limits of a total that the others do not imply, as typed; empty where none is left."""
    if not question.table.unit or question.table.single:
        return ""
    limits, grouped = total.limits or question.limits, bool(question.by)
    cells = question.cells or math.inf
    most = limits.max_rows or math.inf
    groups, rows = (
        limit if grouped and limit and limit < most else None
        for limit in (limits.max_groups, limits.max_rows_per_group)
    )
    groups = None if groups is not None and groups >= cells else groups
    if not total.of_units:
        return Limits(limits.max_rows, groups, rows).typed
    return Limits(
        limits.max_rows if grouped and groups is None and most < cells else None, groups
    ).typed


def _clipped(aggregate: Aggregate, table: Table) -> Iterator[str]:
    """The columns whose values may lie beyond bounds, with these: "spend beyond [0, 100]"."""
    for name, bounds, fact in used_by(aggregate):
        column = table.columns.get(name) if isinstance(name, str) else None
        if column is None or fact == "keys" or not isinstance(bounds, Bounds):
            continue
        known, ends = column.domain.bounds, in_ticks(bounds, column, aggregate.typed)
        if fact == "unit_bounds":
            yield f"a unit's total of {name} beyond {bounds}"
        elif known is None or known.lower < ends.lower or known.upper > ends.upper:
            yield f"{name} beyond {bounds}"


def _all_of(step: Step) -> Iterator[Step]:
    """The steps of a plan, and of the plans that join it."""
    for earlier in lineage(step):
        for other in earlier.others:
            yield from _all_of(other)
        yield earlier


def _clipped_in_filters(step: Step) -> Iterator[str]:
    """Bounds that clipped the values which conditions of filters read."""
    for earlier in _all_of(step):
        if isinstance(earlier, Filter) and earlier.parent is not None:
            columns, names = earlier.parent.table.columns, nodes.names(earlier.condition._node)
            yield from filter(None, (columns[name].domain.clipped for name in sorted(names)))


# In words


def beyond_words(
    columns: Iterable[Beyond], estimated: Callable[[str, str], bool] = lambda _, __: False
) -> list[str]:
    """Sentences about what released columns leave out; columns with the same limits share one.

    Input:  estimated: whether a release has an estimate of what is left out of a column, by its
            "limits" or "bounds"
    """
    shown = list(columns)
    said, limited = [], dict[tuple[str, bool], list[str]]()
    for one in shown:
        if one.limits and not (one.total and estimated(one.column, "limits")):
            limited.setdefault((one.limits, one.total), []).append(one.column)
    for (limits, total), names in limited.items():
        said.append(
            _TOTAL[limits == _ONE].format(limits, _and(names)) if total else _leaning(limits, names)
        )
    clipped = [line for one in shown if not estimated(one.column, "bounds") for line in one.clipped]
    if clipped:
        values = _and(list(dict.fromkeys(clipped)))
        said.append(
            f"Values of {values} count as the nearer end; no interval holds what that changes."
        )
    said += [
        f"{file} moved values beyond its bounds to the nearer end before anything was computed of "
        "them."
        for file in dict.fromkeys(name for one in shown for name in one.before)
    ]
    return said


_TOTAL = (
    "What {} leaves out of {} is unknown.",
    "Where each unit has one row, {} leaves nothing out of {}; where units have more, how much "
    "is unknown.",
)


def _leaning(limits: str, names: Sequence[str]) -> str:
    lean = "lean" if len(names) > 1 else "leans"
    return (
        f"Where a unit has more than {limits}, its rows weigh less: {_and(names)} then {lean} to "
        "units with few rows, by an unknown amount that no interval holds."
    )


def _and(names: Sequence[str]) -> str:
    if len(names) > _NAMED:
        return f"{', '.join(names[: _NAMED - 1])} and {len(names) - _NAMED + 1} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def of_rows(step: Step) -> Names:
    """Sentences about rows that are not counted, or more than once, whatever the question."""
    joins = [join for join in _all_of(step) if isinstance(join, Join) and join.most > 1]
    limited = "; limits count the rows that come out" if step.table.unit else ""
    many = (
        f"{j.shown}: a key has up to {j.most:,} rows there, so one row may become as many{limited}."
        for j in joins
    )
    return tuple(filter(None, (of_nobody(step), *many)))


def of_nobody(step: Step) -> str:
    """The sentence about rows without an identifier of a unit; empty where none can be."""
    source = source_of(step).table
    names = [
        name for name, column in source.columns.items() if column.is_unit and column.domain.nullable
    ]
    return f"Rows with no {' or '.join(map(repr, names))} are not counted." if names else ""
