"""Stage 1 for the steps that combine several rows or several tables:
per_unit, join, concat and partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import narwhals as nw
import polars as pl
from narwhals.dtypes import DType

from dpframe.engine.backends import Frame, backend_of
from dpframe.engine.stages.coerced import int64, one_zero, to_float
from dpframe.engine.stages.keys import listed
from dpframe.engine.stages.lowering import Lowering
from dpframe.engine.stages.rows import as_bytes, lowered, readable, unit_names
from dpframe.engine.stages.unit_features import per_unit
from dpframe.engine.tables import Data
from dpframe.plan import Column, ColumnDomain, Kind, kind
from dpframe.plan.steps import ApartByPeriod, FirstPeriods, PartitionPart, PerUnit, combine


@lowered.register
def _(step: PerUnit, live: frozenset[str], empty: bool) -> Frame:
    table = step.before.table
    identifiers = sorted(
        column.id for column in step.table.columns.values() if column.is_unit and column.id in live
    )
    features = {step.table.columns[name].id: feature for name, feature in step.made.items()}
    features = {into: feature for into, feature in features.items() if into in live}
    inputs = {table.columns[name].id for feature in features.values() for name in feature.reads}
    read = frozenset(identifiers) | inputs
    here = Lowering(table, lowered(step.before, read, empty), [*unit_names(table), *read])
    return per_unit(here, unit_names(table), identifiers, features)


def _key(value: nw.Expr, domain: ColumnDomain, dtype: DType) -> nw.Expr:
    """A key in the type in which a join compares it."""
    if dtype == nw.Int64:
        return int64(value, domain)
    return one_zero(to_float(value)) if dtype == nw.Float64 else value


def _public_keys(
    rows: Frame, public: Data, on: Sequence[str], types: Sequence[DType]
) -> list[nw.Expr]:
    """The keys of a public table, as columns "j0", "j1", …."""
    domains = dict(public.schema)
    return [
        _key(readable(rows, nw.col(name), domains[name]), domains[name], dtype).alias(f"j{i}")
        for i, (name, dtype) in enumerate(zip(on, types, strict=True))
    ]


def most_per_key(public: Data, on: Sequence[str], types: Sequence[DType]) -> int:
    """The largest number of rows that one key has in a public table; 0 for a table without rows."""
    rows: Frame = nw.from_native(public.scan(list(on)))
    names = [f"j{i}" for i in range(len(on))]
    keys = rows.select(*_public_keys(rows, public, on, types)).drop_nulls()
    counts = keys.group_by(*names).agg(nw.len().alias("n")).select(nw.col("n").max())
    most: pl.DataFrame = counts.to_native().collect()
    return int(most.item() or 0)


@lowered.register
def _(step: combine.Join, live: frozenset[str], empty: bool) -> Frame:
    table, after = step.before.table, step.table
    brought = [name for name in step.brought if after.columns[name].id in live]
    keys = {table.columns[name].id: name for name in step.on}
    own = live - {after.columns[name].id for name in brought}
    rows = lowered(step.before, own | keys.keys(), empty)
    rows = rows.with_columns(
        _key(nw.col(table.columns[name].id), table.columns[name].domain, dtype).alias(f"j{i}")
        for i, (name, dtype) in enumerate(zip(step.on, step.keys, strict=True))
    )
    # public tables are Polars frames
    scan = partial(step.public.scan, [*step.on, *brought])
    there: Frame = nw.from_native(scan())
    there = backend_of(there).rehearsed(there, scan) if empty else there
    there = there.select(
        *_public_keys(there, step.public, step.on, step.keys),
        *(
            readable(there, nw.col(name), step.brought[name]).alias(after.columns[name].id)
            for name in brought
        ),
    )
    names = [f"j{i}" for i in range(len(step.on))]
    there = there.drop_nulls(names)
    engine = backend_of(rows)
    if engine is not backend_of(there):
        there = engine.bring(rows, there.to_native().collect())
    return rows.join(there, on=names, how=step.how.value).drop(names)


def _identifiers(types: Sequence[DType | None], prefix: str) -> list[nw.Expr]:
    """Identifiers in the types in which they are compared, exactly, with those of other tables."""
    values = [
        nw.col(f"u{i}") if dtype is None else nw.col(f"u{i}").cast(dtype)
        for i, dtype in enumerate(types)
    ]
    return [value.alias(f"{prefix}{i}") for i, value in enumerate(values)]


@lowered.register
def _(step: combine.JoinProtected, live: frozenset[str], empty: bool) -> Frame:
    own_table, other_table, after = step.before.table, step.other.table, step.table
    brought = {
        name: column for name, column in step.brought.items() if after.columns[name].id in live
    }
    own = live - {after.columns[name].id for name in brought}
    rows = lowered(step.before, own | {own_table.columns[name].id for name in step.besides}, empty)
    other_columns = {column.id for column in brought.values()} | {
        other_table.columns[name].id for name in step.besides
    }
    there = lowered(step.other, frozenset(other_columns), empty)

    def keys(columns: Mapping[str, Column]) -> list[nw.Expr]:
        besides = (columns[name] for name in step.besides)
        return [
            *_identifiers(step.units, "j"),
            *(
                _key(nw.col(column.id), column.domain, dtype).alias(f"j{i}")
                for i, (column, dtype) in enumerate(
                    zip(besides, step.keys, strict=True), len(step.units)
                )
            ),
        ]

    names = [f"j{i}" for i in range(len(step.on))]
    there = there.select(
        *keys(other_table.columns),
        *(nw.col(column.id).alias(after.columns[name].id) for name, column in brought.items()),
    ).drop_nulls(names)
    return (
        rows.with_columns(*keys(own_table.columns))
        .join(there, on=names, how=step.how.value)
        .drop(names)
    )


@lowered.register
def _(step: combine.Concat, live: frozenset[str], empty: bool) -> Frame:
    names = [name for name, column in step.table.columns.items() if column.id in live]
    frames, read = [], {}
    for part in step.parts:
        columns = part.table.columns
        if id(part) not in read:
            rows = lowered(part, frozenset(columns[name].id for name in names), empty)
            several = sum(part is other for other in step.parts) > 1
            read[id(part)] = backend_of(rows).shared(rows) if several else rows
        rows = read[id(part)]
        bytewise = as_bytes(rows, [columns[name] for name in names])
        values = [_held(columns[name], step.table.columns[name], bytewise) for name in names]
        frames.append(rows.select(*_identifiers(step.units, "u"), *values))
    return nw.concat(frames, how="vertical")


@lowered.register
def first_periods(step: FirstPeriods, live: frozenset[str], empty: bool) -> Frame:
    """The rows of units with fewer than `most` earlier periods;
    many rows of a unit in a period count as one.
    """
    rows, names = lowered(step.before, live, empty), [f"j{i}" for i in range(len(step.units))]
    pairs = []
    for earlier in step.earlier:
        columns = earlier.table.columns
        periods = [columns[step.each].id] if step.each else []
        keys = [(columns[name], values) for name, values in step.listed]
        there = lowered(earlier, frozenset(periods) | {column.id for column, _ in keys}, empty)
        there = (
            there.filter(*(_has_key(there, column, values) for column, values in keys))
            if keys
            else there
        )
        pairs.append(
            backend_of(there).unique(there.select(*_identifiers(step.units, "j"), *periods))
        )
    used = nw.concat(pairs, how="vertical").group_by(*names).agg(nw.len().alias("n"))
    used = used.filter(nw.col("n") >= step.most).select(*names)
    return (
        rows.with_columns(*_identifiers(step.units, "j"))
        .join(used, on=names, how="anti")
        .drop(names)
    )


@lowered.register
def _(step: ApartByPeriod, live: frozenset[str], empty: bool) -> Frame:
    column = step.table.unit[-1].id
    return lowered(step.before, live | {column}, empty).with_columns(
        nw.col(column).alias(unit_names(step.table)[-1])
    )


def _has_key(frame: Frame, column: Column, values: Sequence[object]) -> nw.Expr:
    """Whether the key of a row is among the listed values; null may be one of them."""
    present, null = [value for value in values if value is not None], nw.col(column.id).is_null()
    if not present:
        return null
    return (
        listed(frame, column, present) | null if None in values else listed(frame, column, present)
    )


def _held(column: Column, into: Column, bytewise: bool) -> nw.Expr:
    """A column of one table in the type that it has in the concatenated table."""
    value, dtype = nw.col(column.id), into.domain.dtype
    family = kind(dtype)
    if family == Kind.STRING:
        value = value if bytewise else value.cast(nw.String)
    elif family.real:
        value = to_float(value)
    elif family == Kind.INTEGER:
        value = value.cast(dtype) if column.domain.dtype == dtype else int64(value, column.domain)
    return value.alias(into.id)


@lowered.register
def _(step: PartitionPart, live: frozenset[str], empty: bool) -> Frame:
    """The parts of a unit do not change between releases or machines."""
    column = step.before.table.columns[step.name]
    frame = lowered(step.before, live | {column.id}, empty)
    here = frame.filter(listed(frame, column, [step.key]))
    units = unit_names(step.table)
    if not units or step.max_groups >= len(step.keys):
        return here
    engine = backend_of(frame)
    pairs = engine.unique(frame.filter(listed(frame, column, step.keys)).select(*units, column.id))
    memberships = engine.kept(pairs, units, column.id, step.max_groups, step.salt, step.hashes)
    return here.join(
        memberships.filter(listed(memberships, column, [step.key])).select(*units),
        on=units,
        how="semi",
    )
