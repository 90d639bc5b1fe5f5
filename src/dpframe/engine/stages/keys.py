"""The groups of a table of totals: the key columns of rows, and the
listed keys in the order of release.

A key column that may be null becomes two columns inside the engine, because null matches nothing in
a join: the value, with some key of the column's type in place of null, and a flag that is true for
null. The values are called "k0", "k1", …, the flags "k0n", "k1n", ….
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import narwhals as nw
import polars as pl
from narwhals.dtypes import DType

from dpframe.engine.backends import Backend, Frame, backend_of
from dpframe.engine.stages.coerced import one_zero, typed
from dpframe.engine.tables import polars_dtype
from dpframe.plan import (
    FRACTION_BITS,
    TIMES,
    Column,
    Keys,
    Kind,
    Question,
    Total,
    kind,
    ticks,
    zone_of,
)
from dpframe.theory.formulas.sensitivity import spread_weight


def group_names(question: Question) -> list[str]:
    """The names of the columns that define the groups inside the engine."""
    names = []
    for i in range(len(question.by)):
        names += [f"k{i}", f"k{i}n"] if _may_be_null(question, i) else [f"k{i}"]
    return names


def _may_be_null(question: Question, i: int) -> bool:
    return question.keys is not None and question.keys.nullable[i]


def keyed(question: Question, frame: Frame) -> Frame:
    """Rows with their key columns, without the rows of groups that are not listed.

    These rows are removed before the limits are applied, so that none of the groups that a unit
    keeps is one of them. A null key is a group only where null is listed. Where keys come to the
    engine as a table, the rows are joined to it after null got its stand-in, which is a listed key.
    It is a semi join, so no row is repeated whatever the table holds.
    """
    if not question.by:
        return frame
    filters, keys, tables, engine = [], [], {}, backend_of(frame)
    for i, column in enumerate(question.group_columns):
        value, level = nw.col(column.id), None if question.keys is None else question.keys.levels[i]
        values = (
            level
            if level is None or not _may_be_null(question, i)
            else [v for v in level if v is not None]
        )
        table = None if not values else engine.key_table(frame, _filled_level(question, i))
        if table is not None:
            tables[f"k{i}"] = table
        if not values or table is not None:
            is_listed = ~value.is_null()
        else:
            frame, is_listed = _known(question, i, frame, values)
        if not _may_be_null(question, i):
            filters.append(is_listed)
            keys.append(_one_zero(value, column).alias(f"k{i}"))
        else:
            if table is None:
                filters.append((is_listed | value.is_null()) if values else value.is_null())
            (some,) = engine.texts(frame, [_some(question, i)])
            stand_in = (
                nw.lit(0, nw.Int32)
                if _only_null(question, i)
                else _filled(engine, value, column, some)
            )
            keys += [stand_in.alias(f"k{i}"), value.is_null().alias(f"k{i}n")]
    frame = (frame.filter(*filters) if filters else frame).with_columns(*keys)
    for name, table in tables.items():
        frame = frame.join(table, on=name, how="semi")
    return frame


def _known(
    question: Question, i: int, frame: Frame, values: Sequence[object]
) -> tuple[Frame, nw.Expr]:
    """Rows, perhaps with a new column, and the expression that says
    whether a row's key is listed.
    """
    engine, column, into = backend_of(frame), question.group_columns[i], f"l{i}"
    if column.kind in TIMES:
        return frame, listed(frame, column, values)
    rows = engine.membership(frame, column.id, _level(question, i).drop_nulls(), into)
    return (frame, listed(frame, column, values)) if rows is None else (rows, nw.col(into))


def listed(frame: Frame, column: Column, values: Sequence[object]) -> nw.Expr:
    """Whether a key is one of the listed values.
    Times are compared by their ticks, which all engines share.
    """
    value, dtype = nw.col(column.id), column.domain.dtype
    if dtype not in (nw.Date, nw.Datetime):
        return backend_of(frame).is_one_of(frame, value, values)
    return value.cast(nw.Int64).is_in([ticks(v, _in_milliseconds(dtype), "keys") for v in values])


def _in_milliseconds(dtype: DType) -> DType:
    """The type in which the engine holds a time: a column in seconds is held in milliseconds."""
    seconds = isinstance(dtype, nw.Datetime) and dtype.time_unit == "s"
    return nw.Datetime("ms", zone_of(dtype)) if seconds else dtype


def _filled(engine: Backend, value: nw.Expr, column: Column, some: Any) -> nw.Expr:
    """A key column with the key `some` in place of null."""
    dtype = _in_milliseconds(column.domain.dtype)
    if kind(dtype) not in TIMES:
        return _one_zero(value, column).fill_null(typed(some))
    return (
        nw.when(value.is_null())
        .then(engine.from_ticks(nw.lit(ticks(some, dtype, "keys")), dtype))
        .otherwise(value)
    )


def _one_zero(value: nw.Expr, column: Column) -> nw.Expr:
    return one_zero(value) if column.kind == Kind.FLOAT else value


def _only_null(question: Question, i: int) -> bool:
    return question.keys is not None and question.keys.levels[i] == (None,)


def _some(question: Question, i: int) -> Any:
    """A listed key that takes the place of null; 0 where null is the only listed key."""
    assert question.keys is not None
    return next((v for v in question.keys.levels[i] if v is not None), 0)


def listed_only(question: Question, frame: Frame) -> Frame:
    """The rows whose combination of keys is listed.
    Without a list of combinations, each combination is.
    """
    if question.keys is None or question.keys.rows is None:
        return frame
    return frame.join(
        backend_of(frame).bring(frame, key_frame(question)), on=group_names(question), how="semi"
    )


def among(rows: Frame, total: Total) -> Frame:
    """Add the position of a row's value in a total's list of values as
    "b"; -1 where it is none of them.
    """
    column, values = total.column, total.values
    assert column is not None
    value, listed_ones = nw.col(column.id), [(i, v) for i, v in enumerate(values) if v is not None]
    table = pl.DataFrame(
        [
            pl.Series(
                "v", [v for _, v in listed_ones], dtype=_held(column.domain.dtype), strict=False
            ),
            pl.Series("b", [i for i, _ in listed_ones], dtype=pl.Int64),
        ]
    )
    rows = rows.with_columns(_one_zero(value, column).alias("v"))
    rows = rows.join(backend_of(rows).bring(rows, table), on="v", how="left")
    if None in values:
        null = nw.lit(values.index(None), nw.Int64)
        rows = rows.with_columns(
            nw.when(value.is_null()).then(null).otherwise(nw.col("b")).alias("b")
        )
    return rows.with_columns(nw.col("b").fill_null(-1))


_KEPT: dict[tuple[object, ...], tuple[ref[Keys], pl.Series]] = {}


def _with_keys(keys: Keys, place: tuple[object, ...], column: Callable[[], pl.Series]) -> pl.Series:
    """A column of listed keys, kept as long as the keys:
    a release needs it often, and making it reads every key.
    """
    place = id(keys), *place
    if place not in _KEPT:
        _KEPT[place] = ref(keys, lambda _: _KEPT.pop(place, None)), column()
    return _KEPT[place][1]


def _level(question: Question, i: int) -> pl.Series:
    """The listed keys of a column as the engine holds them."""
    keys, dtype = question.keys, question.group_columns[i].domain.dtype
    assert keys is not None
    held = pl.Int32() if _only_null(question, i) else _held(dtype)
    return _with_keys(
        keys, (i, held), lambda: pl.Series(f"k{i}", list(keys.levels[i]), dtype=held, strict=False)
    )


def _filled_level(question: Question, i: int) -> pl.DataFrame:
    """The listed keys of a column as a table, without null, whose stand-in is one of them."""
    level = _level(question, i)

    def different() -> pl.Series:
        column = level.drop_nulls().to_frame()
        if level.dtype.is_float():
            column = nw.from_native(column).with_columns(one_zero(nw.col(level.name))).to_native()
        return column.unique().to_series()

    assert question.keys is not None
    return _with_keys(question.keys, (i, level.dtype, "different"), different).to_frame()


def key_frame(question: Question) -> pl.DataFrame:
    """The listed keys as the engine holds them, one row per group, in the
    order in which they are listed.
    """
    assert question.keys is not None
    types = [
        pl.Int32() if _only_null(question, i) else _held(c.domain.dtype)
        for i, c in enumerate(question.group_columns)
    ]
    levels = [_level(question, i) for i in range(len(types))]
    if question.keys.rows is not None:
        columns = zip(*question.keys.rows, strict=True)
        table = pl.DataFrame(
            [
                pl.Series(f"k{i}", list(v), dtype=t, strict=False)
                for i, (v, t) in enumerate(zip(columns, types, strict=True))
            ]
        )
    else:
        table = levels[0].to_frame()
        for level in levels[1:]:
            table = table.join(level.to_frame(), how="cross", maintain_order="left_right")
    nullable = [i for i in range(len(types)) if _may_be_null(question, i)]
    table = table.with_columns(pl.col(f"k{i}").is_null().alias(f"k{i}n") for i in nullable)
    # a listed time may have another zone
    fillers = {i: pl.lit(_some(question, i)).cast(types[i]) for i in nullable}
    return table.with_columns(
        pl.col(f"k{i}").fill_null(filler).cast(types[i]) for i, filler in fillers.items()
    )


def listed_groups(question: Question) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The listed groups as the engine holds them, and as they are released.

    Both follow from the question alone: from its keys, and from the types of the columns that it
    groups by.
    """
    held = key_frame(question).select(group_names(question))
    return held, public_keys(question, held)


def public_keys(question: Question, table: pl.DataFrame) -> pl.DataFrame:
    """The key columns as they are released: under the user's names, in the
    columns' types, with their nulls.
    """
    columns = []
    for i, (name, column) in enumerate(zip(question.by, question.group_columns, strict=True)):
        value = pl.col(f"k{i}")
        if _may_be_null(question, i):
            value = (
                pl.lit(None) if _only_null(question, i) else pl.when(~pl.col(f"k{i}n")).then(value)
            )
        columns.append(value.cast(polars_dtype(column.domain.dtype)).alias(name))
    return table.select(columns)


def held_keys(question: Question, table: pl.DataFrame) -> pl.DataFrame:
    """A table of totals with its keys cast to the types of `key_frame`, since
    engines return them in other types.
    """
    types = {
        f"k{i}": _held(c.domain.dtype)
        for i, c in enumerate(question.group_columns)
        if not _only_null(question, i)
    }
    schema = table.schema
    other = [
        pl.col(name).cast(dtype)
        for name, dtype in types.items()
        if schema.get(name, dtype) != dtype
    ]
    return table.with_columns(other) if other else table


def _held(dtype: DType) -> Any:
    """The type in which the engine holds a key."""
    family = kind(dtype)
    if family == Kind.STRING:
        return pl.String()
    return pl.Float64() if family.real else polars_dtype(dtype)


def weighted_keys(
    partials: Frame,
    units: Sequence[str],
    groups: Sequence[str],
    into: str,
    most: int,
    in_play: pl.DataFrame | None,
) -> Frame:
    """The partials of keys in play, with the weight that their unit
    gives them in the column `into`.

    Each unit spreads a weight of length 1 over its keys, in integers that every engine shares.

    Input:  partials: one row for each unit and key that it keeps, at most `most` for each unit;
            in_play: the keys that are in play, under the names of `groups`, or None where every key
            is
    Bound:  the weights of a unit follow from its own partials and from `in_play` alone. If t of its
            keys are in play, each has the weight `spread_weight(t)`, from a public table: no engine
            computes a root. So the squares of its weights add up to at most 2^40, and a weight is
            at most 2^20 = 1
    """
    engine = backend_of(partials)
    if in_play is not None:
        partials = partials.join(engine.bring(partials, in_play), on=list(groups), how="semi")
    ones = partials.with_columns(nw.lit(1).cast(nw.Int64).alias("t"))
    counted = ones.with_columns(nw.col("t").sum().over(*units).cast(nw.Int64).alias("t")).select(
        *groups, "t"
    )
    numbers = range(1, most + 1)
    weights = [spread_weight(t, 2**FRACTION_BITS) for t in numbers]
    table = pl.DataFrame({"t": numbers, into: weights}, schema={"t": pl.Int64, into: pl.Int64})
    return counted.join(engine.bring(partials, table), on="t", how="inner")
