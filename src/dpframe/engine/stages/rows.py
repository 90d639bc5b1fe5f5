"""Stage 1: the rows on which a question is computed, with only the columns that it needs.

A column is called by its version ("v3"), never by the user's name, so that no two names can collide on an engine that
ignores case. Identifier columns are called "u0", "u1", ….
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import singledispatch

import narwhals as nw

from dpframe.engine.backends import Frame, backend_of
from dpframe.engine.stages.lowering import Lowering
from dpframe.engine.stages.values import in_calendar, in_timedelta, not_nan, one_zero, to_float
from dpframe.errors import UnsupportedOperation
from dpframe.plan import TIMES, Column, ColumnDomain, Kind, Node, Table, kind, nodes
from dpframe.plan.steps import basic as steps
from dpframe.plan.steps import rewrites, sources_of


def unit_names(table: Table) -> list[str]:
    """The hidden identifier columns of a table."""
    return [f"u{i}" for i in range(len(table.unit))]


def lower(step: steps.Step, live: AbstractSet[str], *, empty: bool = False) -> Frame:
    """The rows after a step, with the column versions `live` and the identifier columns."""
    frame = lowered(step, frozenset(live), empty)
    names = [*unit_names(step.table), *sorted(live)]
    return frame.select(*names) if names else frame


@singledispatch
def lowered(step: steps.Step, live: frozenset[str], empty: bool) -> Frame:
    """The rows after a step that changes no value (select, drop, rename, bound): those before it.

    Each other step has a function registered for its class, or for `Rewrite`.
    """
    if not isinstance(step, (steps.Select, steps.Drop, steps.Rename, steps.Bound)) or step.parent is None:
        raise UnsupportedOperation(f"{step.shown}: no engine can run this step.")
    return lowered(step.parent, live, empty)


@lowered.register
def _(step: steps.Source, live: frozenset[str], empty: bool) -> Frame:
    table = step.table
    columns = [(name, column) for name, column in table.columns.items() if column.id in live]
    names = dict.fromkeys(name for name, _ in columns)
    names.update(dict.fromkeys(step.unit if isinstance(step.unit, tuple) else ()))
    if not names:  # counting rows needs a column to count along
        names = dict.fromkeys(_narrowest(table))
    frame: Frame = nw.from_native(step.data.scan(list(names), empty=empty))
    scan_name = step.data.called
    if not columns and not table.unit:
        return frame
    engine = backend_of(frame)
    texts = as_bytes(frame, [column for _, column in [*_unit(step), *columns]])
    source = frame
    frame = source.select(
        *(_identifier(scan_name(name), column, texts).alias(f"u{i}") for i, (name, column) in enumerate(_unit(step))),
        *(
            readable(source, nw.col(scan_name(name)), column.domain, bytewise=texts).alias(column.id)
            for name, column in columns
        ),
    )
    for i, (_, column) in enumerate(_unit(step)):
        if kind(column.domain.dtype) == Kind.DECIMAL and engine.bytewise(frame):  # `_identifier` made it a text
            frame = engine.to_bytes(frame, f"u{i}", f"u{i}")
    present = [~nw.col(name).is_null() for name in unit_names(table)]
    return frame.filter(*present) if present else frame


def _unit(step: steps.Source) -> list[tuple[str, Column]]:
    names = step.unit if isinstance(step.unit, tuple) else ()
    return [(name, step.table.columns[name]) for name in names]


def _narrowest(table: Table) -> list[str]:
    """The first readable column, in a list; an empty list where no column is readable."""
    return [name for name, column in table.columns.items() if kind(column.domain.dtype) != Kind.OTHER][:1]


def as_bytes(frame: Frame, columns: Sequence[Column]) -> bool:
    """Whether some of the columns are texts and the engine holds texts as bytes."""
    return any(kind(column.domain.dtype) == Kind.STRING for column in columns) and backend_of(frame).bytewise(frame)


def readable(frame: Frame, value: nw.Expr, domain: ColumnDomain, *, bytewise: bool = False) -> nw.Expr:
    """A column of a frame as the engine holds it: floats and decimals as Float64 without NaN, categories as text.

    With `bytewise`, the scan already gives texts as bytes, so they are not cast. A date or time outside of the years 1
    to 9999 becomes null, because engines disagree there and some fail; so does a duration beyond those of Python.
    """
    family = kind(domain.dtype)
    if family in (Kind.FLOAT, Kind.DECIMAL):
        return not_nan(to_float(value) if family == Kind.FLOAT else backend_of(frame).decimal(frame, value))
    if family in (Kind.DATE, Kind.DATETIME):
        return in_calendar(value, domain.dtype)
    if family == Kind.DURATION:
        return in_timedelta(value, domain.dtype)
    return value.cast(nw.String) if family == Kind.STRING and not bytewise else value


def _identifier(name: str, column: Column, bytewise: bool) -> nw.Expr:
    """An identifier, exactly: no two identifiers become one, but NaN becomes null and -0.0 becomes 0.0.

    A date or time outside of the years 1 to 9999 becomes null too, as in any other column: some engines lack it. A
    duration beyond those of Python does as well.
    """
    value = nw.col(name)
    family = kind(column.domain.dtype)
    if family in (Kind.DATE, Kind.DATETIME):
        return in_calendar(value, column.domain.dtype)
    if family == Kind.DURATION:
        return in_timedelta(value, column.domain.dtype)
    if family == Kind.FLOAT:
        return one_zero(not_nan(value))
    as_text = family == Kind.DECIMAL or (family == Kind.STRING and not bytewise)
    return value.cast(nw.String) if as_text else value


@lowered.register
def _(step: steps.Filter, live: frozenset[str], empty: bool) -> Frame:
    table = step.before.table
    rows = lowered(step.before, live | _read(step.condition._node, table), empty)
    here = Lowering(table, rows, [*unit_names(table), *live])
    condition = here.expr(step.condition._node)
    if not nodes.names(step.condition._node):  # a constant has one value; as a column it has one for each row
        return here.frame.with_columns(condition.alias("t")).filter(nw.col("t"))
    return here.frame.filter(condition)


@lowered.register
def _(step: rewrites.Rewrite, live: frozenset[str], empty: bool) -> Frame:
    """The rows with the new column versions that are needed, each computed from the versions before the step."""
    table = step.before.table
    nodes_by_version = [(step.table.columns[name].id, node) for name, node in step.written]
    nodes_by_version = [(into, node) for into, node in nodes_by_version if into in live]
    inputs = (live - {into for into, _ in nodes_by_version}).union(
        *(_read(node, table) for _, node in nodes_by_version)
    )
    kept = [*unit_names(table), *sorted(live - {into for into, _ in nodes_by_version})]
    rows = lowered(step.before, inputs, empty)
    here = Lowering(table, rows, kept)
    values = here.exprs(node for _, node in nodes_by_version)
    columns = [value.alias(into) for (into, _), value in zip(nodes_by_version, values, strict=True)]
    if not columns:
        return here.frame
    computed = here.frame.select(*kept, *columns)
    # Columns of computed columns: see `Backend.settled`. Others, and filters on them, may be moved to the files.
    plain = {column.id for source in sources_of(step) for column in source.table.columns.values()}
    read = frozenset[str]().union(*(_read(node, table) for _, node in nodes_by_version))
    return computed if here.frame is rows and read <= plain else here.engine.settled(computed)


@lowered.register
def _(step: steps.DropNulls, live: frozenset[str], empty: bool) -> Frame:
    columns = {step.before.table.columns[name].id for name in step.names}
    frame = lowered(step.before, live | columns, empty)
    return frame.filter(*(~nw.col(column).is_null() for column in sorted(columns))) if columns else frame


@lowered.register
def _(step: steps.Cut, live: frozenset[str], empty: bool) -> Frame:
    into = step.table.columns[step.into].id
    if into not in live:
        return lowered(step.before, live, empty)
    column = step.before.table.columns[step.name]
    frame = lowered(step.before, (live - {into}) | {column.id}, empty)
    value = nw.col(column.id)
    value = value.cast(nw.Int64) if kind(column.domain.dtype) in TIMES else to_float(value)
    first, *edges, last = step.intervals.edges_of(column.domain.dtype, "cut")
    right, both = step.intervals.right, step.intervals.closed_ends
    after = value > first if right and not both else value >= first
    beyond = value > last if right or both else value >= last
    labels, engine = backend_of(frame).texts(frame, step.intervals.labels), backend_of(frame)
    frame = engine.labelled(frame.with_columns(value.alias("t")), "t", edges, right, labels, into)
    return frame.with_columns(nw.when(after & ~beyond).then(nw.col(into)).alias(into))


def _read(node: Node, table: Table) -> frozenset[str]:
    return frozenset(table.columns[name].id for name in nodes.names(node))
