"""Stage 1: the rows on which a question is computed, with only the columns that it needs.

A column is called by its version ("v3"), never by the user's name, so that no two names can collide
on an engine that ignores case. Identifier columns are called "u0", "u1", ….
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import partial, singledispatch
from typing import NamedTuple

import narwhals as nw

from dpframe.engine.backends import Frame, backend_of
from dpframe.engine.stages.coerced import in_calendar, in_timedelta, not_nan, one_zero, to_float
from dpframe.engine.stages.lowering import Lowering
from dpframe.errors import UnsupportedOperation
from dpframe.plan import TIMES, Column, ColumnDomain, Kind, Node, Table, nodes
from dpframe.plan.steps import basic as steps
from dpframe.plan.steps import rewrites, sources_of

_UNCHANGED = (steps.Select, steps.Drop, steps.Rename, steps.Bound)  # steps that change no value
_MOST_STATED = 1000  # times that columns stand in the expressions of several steps together


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
    if not isinstance(step, _UNCHANGED) or step.parent is None:
        raise UnsupportedOperation(f"{step.shown}: no engine can run this step.")
    return lowered(step.parent, live, empty)


@lowered.register
def _(step: steps.Source, live: frozenset[str], empty: bool) -> Frame:
    table = step.table
    columns = [(name, column) for name, column in table.columns.items() if column.id in live]
    names = dict.fromkeys(name for name, _ in columns)
    names.update(dict.fromkeys(step.ids))
    if not names:  # counting rows needs a column to count along
        names = dict.fromkeys(_narrowest(table))
    rows = partial(step.data.scan, list(names))
    frame: Frame = nw.from_native(rows(empty=empty))
    scan_name, engine = step.data.called, backend_of(frame)
    frame = engine.rehearsed(frame, rows) if empty else frame
    if not columns and not table.unit:
        return frame
    texts = as_bytes(frame, [column for _, column in [*_unit(step), *columns]])
    source = frame
    frame = source.select(
        *(
            _identifier(scan_name(name), column, texts).alias(f"u{i}")
            for i, (name, column) in enumerate(_unit(step))
        ),
        *(
            readable(source, nw.col(scan_name(name)), column.domain, bytewise=texts).alias(
                column.id
            )
            for name, column in columns
        ),
    )
    for i, (_, column) in enumerate(_unit(step)):
        if column.kind == Kind.DECIMAL and engine.bytewise(frame):  # `_identifier` made it a text
            frame = engine.to_bytes(frame, f"u{i}", f"u{i}")
    units = unit_names(table)
    return frame.drop_nulls(units) if units else frame


def _unit(step: steps.Source) -> list[tuple[str, Column]]:
    names = step.ids
    return [(name, step.table.columns[name]) for name in names]


def _narrowest(table: Table) -> list[str]:
    """The first readable column, in a list; an empty list where no column is readable."""
    return [name for name, column in table.columns.items() if column.kind != Kind.OTHER][:1]


def as_bytes(frame: Frame, columns: Sequence[Column]) -> bool:
    """Whether some of the columns are texts and the engine holds texts as bytes."""
    return any(column.kind == Kind.STRING for column in columns) and backend_of(frame).bytewise(
        frame
    )


def readable(
    frame: Frame, value: nw.Expr, domain: ColumnDomain, *, bytewise: bool = False
) -> nw.Expr:
    """A column of a frame as the engine holds it: floats and decimals as Float64
    without NaN, categories as text.

    With `bytewise`, the scan already gives texts as bytes, so they are not cast. A date or time
    outside of the years 1 to 9999 becomes null, because engines disagree there and some fail; so
    does a duration beyond those of Python.
    """
    family = domain.kind
    if family.real:
        if family == Kind.DECIMAL:
            return not_nan(backend_of(frame).decimal(frame, value))
        return not_nan(value if domain.dtype == nw.Float64 else to_float(value))
    if family in (Kind.DATE, Kind.DATETIME):
        return in_calendar(value, domain.dtype)
    if family == Kind.DURATION:
        return in_timedelta(value, domain.dtype)
    return value.cast(nw.String) if family == Kind.STRING and not bytewise else value


def _identifier(name: str, column: Column, bytewise: bool) -> nw.Expr:
    """An identifier, exactly: no two identifiers become one, but NaN
    becomes null and -0.0 becomes 0.0.

    A date or time outside of the years 1 to 9999 becomes null too, as in any other column: some
    engines lack it. A duration beyond those of Python does as well.
    """
    value = nw.col(name)
    family = column.kind
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
    """The rows that satisfy a condition, and those of the filters right
    before it: all are one filter.
    """
    before, conditions = step.before, [step.condition._node]
    while isinstance(before, steps.Filter):
        conditions.insert(0, before.condition._node)
        before = before.before
    table = before.table
    rows = lowered(
        before, live.union(*(_read(condition, table) for condition in conditions)), empty
    )
    here = Lowering(table, rows, [*unit_names(table), *live])
    exprs = here.exprs(conditions)
    frame = here.frame
    for i, condition in enumerate(conditions):
        # a constant has one value; as a column it has one for each row
        if not nodes.names(condition):
            frame, exprs[i] = frame.with_columns(exprs[i].alias(f"c{i}")), nw.col(f"c{i}")
    return frame.filter(*exprs)


@lowered.register
def _(step: rewrites.Rewrite, live: frozenset[str], empty: bool) -> Frame:
    """The rows with the new column versions that are needed, each computed
    from the versions before the step.

    Steps right after each other are compiled as one expression of each column would be, as long as
    none is larger than somebody may type. An engine's cost of planning grows with the square of its
    subqueries within each other.
    """
    run = _run(step, live)
    first = run[0].step.since
    rows = lowered(first, run[0].inputs, empty)
    here = Lowering(first.table, rows, [*unit_names(first.table), *run[0].inputs])
    for part, later in zip(run, [*(part.inputs for part in run[1:]), live], strict=True):
        here.write(part.step.since.table, part.columns, later)
    columns = here.written
    if not columns:
        return here.frame
    computed = here.frame.select(
        *unit_names(first.table),
        *sorted(live - set(columns)),
        *(value.alias(into) for into, value in columns.items()),
    )
    # Columns of computed columns: see `Backend.settled`. Others, and filters on them, may be moved
    # to the files.
    plain = {column.id for source in sources_of(step) for column in source.table.columns.values()}
    read = {
        version
        for part in run
        for node in part.columns.values()
        for version in _read(node, part.step.since.table)
    }
    written = {version for part in run for version in part.columns}
    return (
        computed
        if here.frame is rows and read - written <= plain
        else here.engine.settled(computed)
    )


class _WrittenPart(NamedTuple):
    """A step that writes columns, the columns of it that are needed, and the
    columns that are needed before it.
    """

    step: rewrites.Rewrite
    columns: dict[str, Node]
    inputs: frozenset[str]


def _run(step: steps.Step, live: frozenset[str]) -> list[_WrittenPart]:
    """A step that writes columns, after those right before it, the first at first."""
    run: list[_WrittenPart] = []
    # how often each version stands in the expressions of the columns in the end
    times, depth = Counter(live), 0
    while isinstance(step, rewrites.Rewrite):
        table = step.since.table
        written = {step.table.columns[name].id: node for name, node in step.written}
        columns = {into: node for into, node in written.items() if into in live}
        depth += max((node.depth for node in columns.values()), default=0)
        before = Counter(
            {version: count for version, count in times.items() if version not in columns}
        )
        for into, node in columns.items():
            for name, count in nodes.stated(node).items():
                before[table.columns[name].id] += count * times[into]
        if run and (depth > nodes.DEEPEST or before.total() > _MOST_STATED):
            break
        live = live.difference(columns).union(*(_read(node, table) for node in columns.values()))
        run.insert(0, _WrittenPart(step, columns, live))
        step, times = step.since, before
        while isinstance(step, _UNCHANGED) and step.parent is not None:
            step = step.parent
    return run


@lowered.register
def _(step: steps.DropNulls, live: frozenset[str], empty: bool) -> Frame:
    columns = {step.before.table.columns[name].id for name in step.names}
    frame = lowered(step.before, live | columns, empty)
    return (
        frame.filter(*(~nw.col(column).is_null() for column in sorted(columns)))
        if columns
        else frame
    )


@lowered.register
def _(step: steps.Cut, live: frozenset[str], empty: bool) -> Frame:
    into = step.table.columns[step.into].id
    if into not in live:
        return lowered(step.before, live, empty)
    column = step.before.table.columns[step.name]
    frame = lowered(step.before, (live - {into}) | {column.id}, empty)
    value = nw.col(column.id)
    value = value.cast(nw.Int64) if column.kind in TIMES else to_float(value)
    first, *edges, last = step.intervals.edges_of(column.domain.dtype, "cut")
    right, both = step.intervals.right, step.intervals.closed_ends
    after = value > first if right and not both else value >= first
    beyond = value > last if right or both else value >= last
    labels, engine = backend_of(frame).texts(frame, step.intervals.labels), backend_of(frame)
    frame = engine.labelled(frame.with_columns(value.alias("t")), "t", edges, right, labels, into)
    return frame.with_columns(nw.when(after & ~beyond).then(nw.col(into)).alias(into))


def _read(node: Node, table: Table) -> frozenset[str]:
    return frozenset(table.columns[name].id for name in nodes.names(node))
