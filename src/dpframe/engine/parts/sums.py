"""Integer sums that add up over units: the sums of a question on one part of the
units, and on all parts together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from dpframe.engine.backends import Frame, backend_of
from dpframe.engine.stages import held_keys
from dpframe.plan import ColumnDomain, Kind, Question, is_wide, kind
from dpframe.plan.steps import sources_of

_FEW = 2**16  # rows of a table for which Polars' optimizer takes longer than it saves


@dataclass(frozen=True)
class Sums:
    """A lazy frame of integers that add up over units:
    one row for each of the `keys`, whose other columns are sums.
    """

    frame: Frame
    keys: tuple[str, ...]


# (question, whether it is on all units) to its sums
Build = Callable[[Question, bool], Sequence[Sums]]


def collected(question: Question, lazy: Sequence[Frame]) -> list[pl.DataFrame]:
    """Frames of one question, computed in one pass, so that the rows they share are read once."""
    engine = backend_of(lazy[0])
    heights = [source.data.height for source in sources_of(question.step)]
    if all(height is not None and height <= _FEW for height in heights):
        tables = engine.collect_few(lazy)
    else:
        tables = engine.collect(
            lazy, streaming=any(source.data.lazy for source in sources_of(question.step))
        )
    return [held_keys(question, table) for table in tables]


def planned(question: Question, lazy: Sequence[Frame]) -> list[pl.DataFrame]:
    """Frames of one question on its tables without rows.
    A computation that would fail later fails here.
    """
    return [held_keys(question, table) for table in backend_of(lazy[0]).planned(lazy)]


def together(
    keys: Sequence[Sequence[str]], parts: Sequence[list[pl.DataFrame]]
) -> list[pl.DataFrame]:
    """The tables of sums over all parts, from those of each part.
    A part without tables adds nothing.
    """
    answers = [tables for tables in parts if tables]
    return [
        _added(key_columns, tables) for key_columns, *tables in zip(keys, *answers, strict=True)
    ]


def _added(keys: Sequence[str], tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    if len(tables) == 1:
        return tables[0]
    table = pl.concat(tables)
    totals = pl.all().exclude(*keys) if keys else pl.all()
    return table.group_by(*keys).agg(totals.sum()) if keys else table.select(totals.sum())


def comparable(name: str, domain: ColumnDomain) -> pl.Expr:
    """An identifier in a form in which equal identifiers have equal hashes,
    also those of two joined tables.

    Two identifiers are equal if `rows` and `combine` compare them as equal: 0.0 and -0.0 are one.
    """
    value, family = pl.col(name), kind(domain.dtype)
    if family in (Kind.STRING, Kind.DECIMAL):
        return value.cast(pl.String)
    if family == Kind.FLOAT:
        return pl.when(value == 0).then(0.0).otherwise(value)
    narrow = family == Kind.INTEGER and not is_wide(domain.dtype)
    return value.cast(pl.Int64) if narrow else value
