"""Integers that add up over units: what an ask reads from each part of them, and all parts together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import narwhals as nw
import polars as pl

from dpframe.engine.backends import Frame, backend_of
from dpframe.engine.stages import held_keys
from dpframe.plan import ColumnDomain, Kind, Question, kind
from dpframe.plan.steps import sources_of

__all__ = ["Build", "Sums", "collected", "comparable", "planned", "together"]


@dataclass(frozen=True)
class Sums:
    """A lazy frame of integers that add up over units: one row for each of the `keys`, whose other columns are sums."""

    frame: Frame
    keys: tuple[str, ...]


Build = Callable[[Question, bool], Sequence[Sums]]  # of the ask, on the whole or on a part of the units


def collected(question: Question, lazy: Sequence[Frame]) -> list[pl.DataFrame]:
    """Frames of one ask, computed in one go, so that what they share is read and computed once."""
    tables = backend_of(lazy[0]).collect(lazy, streaming=any(source.data.lazy for source in sources_of(question.step)))
    return [held_keys(question, table) for table in tables]


def planned(question: Question, lazy: Sequence[Frame]) -> list[pl.DataFrame]:
    """Frames of one ask on its table without rows: whatever could fail when they are computed fails here."""
    return [held_keys(question, table) for table in backend_of(lazy[0]).planned(lazy)]


def together(keys: Sequence[Sequence[str]], parts: Sequence[list[pl.DataFrame]]) -> list[pl.DataFrame]:
    """The tables of several parts as those of all of them; a part without tables is none."""
    answers = [tables for tables in parts if tables]
    return [_added(key_columns, tables) for key_columns, *tables in zip(keys, *answers, strict=True)]


def _added(keys: Sequence[str], tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    if len(tables) == 1:
        return tables[0]
    table = pl.concat(tables)
    totals = pl.all().exclude(*keys) if keys else pl.all()
    return table.group_by(*keys).agg(totals.sum()) if keys else table.select(totals.sum())


def comparable(name: str, domain: ColumnDomain) -> pl.Expr:
    """An identifier such that equal ones, also of two tables that meet, have one hash (see `rows` and `combine`)."""
    value, family = pl.col(name), kind(domain.dtype)
    if family in (Kind.STRING, Kind.DECIMAL):
        return value.cast(pl.String)
    if family == Kind.FLOAT:
        return value + 0.0
    narrow = family == Kind.INTEGER and not isinstance(domain.dtype, (nw.UInt64, nw.Int128, nw.UInt128))
    return value.cast(pl.Int64) if narrow else value
