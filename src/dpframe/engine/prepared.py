"""Compiled questions on small tables in memory, kept for the next question that is alike.

Compiling a question takes longer than adding up ten thousand rows. What is compiled depends on the question and on the
types of the table's columns, and on no row. So the frames are compiled once, over a place for rows that is empty. To
validate a question, they run on this empty place; to answer it, the rows are put there for the time of one reading. A
question that is asked again, of this table or of another with the same columns, is neither compiled nor validated
again: the frames that run are those that were validated.

Why a plan is never used for what it was not compiled for:

- Another question: the key holds the description of the question, each step as it was typed, the types of all columns,
  the limits and the totals. The description has more than 100 listed keys as 64 bits of their SHA-256, and keeps 1 and
  1.0 apart.
- Another schema or other categories: `fits` compares the types of the columns that the plan reads, as Polars holds
  them, to those of the table: units and zones of times, digits of decimals, the categories of an Enum. Texts of a
  Categorical of pandas or PyArrow arrive as texts. A Polars table with a Categorical has no plan. The types are
  compared once more when rows are read.
- Other data: rows are read for each answer, from the table of the question that is asked, and put away with it.
- Other settings: a plan is compiled for Polars alone, in this process, and no setting of Polars changes what it
  computes. The salt is set for each reading.

A plan is used by one thread at a time. It holds rows only while it runs. Lazy tables have no plan: the choice of groups
under a salt that is set late needs all rows at once, which is what a lazy table is there to avoid.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any, cast

import polars as pl
from polars.io.plugins import register_io_source

from dpframe.engine.backends import Frame
from dpframe.engine.backends.polars import LateSalt, plainly
from dpframe.engine.compile import compiled
from dpframe.engine.parts import collected
from dpframe.errors import UnsupportedOperation
from dpframe.plan import Question, described, once
from dpframe.plan.steps import Source, Step, exchanged, lineage, source_of
from dpframe.plan.steps.basic import Bound, Cut, Drop, DropNulls, Filter, Rename, Select
from dpframe.plan.steps.rewrites import Rewrite

__all__ = ["Plan", "forget", "kept"]

_MOST = 64  # different questions that are kept
_OWN: tuple[type[Step], ...] = (
    Filter,
    Select,
    Drop,
    Rename,
    DropNulls,
    Bound,
    Cut,
    Rewrite,
)  # steps that read nothing but the table before them
_FEW = 2**16  # rows of a table for which Polars' optimizer takes longer than it saves
_ROWS = 2**20  # rows of the largest table; for more, compiling takes no time to speak of
_GROUPS = 10**4  # listed groups: to compare more takes as long as to compile


class Plan:
    """The frames of a question over a place for rows; `validated` once they have run without rows."""

    validated = False

    def __init__(self, question: Question, source: Source, *, small: bool) -> None:
        self._small = small
        self._rows: dict[tuple[str, ...], pl.DataFrame] = {}
        self._salt = LateSalt()
        self._places: dict[tuple[str, ...], pl.Schema] = {}

        def scan(names: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
            selection = tuple(names)
            nothing = source.data.scan(names, empty=True).collect()
            self._places[selection] = nothing.schema

            def rows(
                columns: list[str] | None, predicate: pl.Expr | None, most: int | None, _: int | None
            ) -> Iterator[pl.DataFrame]:
                table = self._rows.get(selection, nothing)
                table = table if columns is None or columns == table.columns else table.select(columns)
                table = table if predicate is None else table.filter(predicate)
                yield table if most is None else table.head(most)

            return register_io_source(rows, schema=nothing.schema)

        data = replace(source.data, scan=scan)
        placed = replace(question, step=exchanged(question.step, lambda one: replace(one, data=data)))
        self._frames = compiled(placed, cast("int", self._salt))  # stages hand it on as it is
        self._numbers = tuple(self._frames.apart)

    def fits(self, question: Question) -> bool:
        """Whether the table of a question has the types for which the plan was compiled, with all their parts."""
        return all(once(_types, question, names) == types for names, types in self._places.items())

    def tables(
        self, question: Question, salt: int, *, empty: bool = False
    ) -> tuple[list[pl.DataFrame], dict[int, pl.DataFrame]] | None:
        """The tables of totals of a question; empty: those of its table without rows. Errors: those of the engine.

        Output: None where the rows are not of the types of the plan; the question is then compiled for its table
        """
        try:
            if not empty:
                data = source_of(question.step).data
                self._rows = {names: plainly(data.scan(names)) for names in self._places}
            if any(table.schema != self._places[names] for names, table in self._rows.items()):
                return None
            self._salt.value = salt
            frames: list[Frame] = [*self._frames.mains, *self._frames.apart.values()]
            tables = collected(question, frames, small=self._small)
        finally:
            self._rows = {}
        mains = len(self._frames.mains)
        return tables[:mains], dict(zip(self._numbers, tables[mains:], strict=True))


_plans: OrderedDict[Any, list[Plan]] = OrderedDict()
_lock = Lock()


def _fresh_lock() -> None:
    global _lock  # if another thread holds the lock at a fork, the child's copy of it is never released
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh_lock)


@contextmanager
def kept(question: Question) -> Iterator[Plan | None]:
    """The plan of a question, for the use of this thread alone; it is kept if the block raises nothing.

    Output: None for a question whose plans are not kept: one about a large table, a table that is not in memory, or
            several tables
    """
    source = _small_table(question)
    key = None if source is None else once(_key, question)
    if source is None or key is None:
        yield None
        return
    small = (source.data.height or 0) <= _FEW
    with _lock:
        plans = _plans.get((key, small), [])
        plan = next((plan for plan in plans if plan.fits(question)), None)
        if plan is not None:
            plans.remove(plan)
    plan = plan or Plan(question, source, small=small)
    yield plan
    with _lock:
        _plans.setdefault((key, small), []).append(plan)
        _plans.move_to_end((key, small))
        while len(_plans) > _MOST:
            _plans.popitem(last=False)


class _Key:
    """What a plan depends on, with its hash: the parts of a key are many, and are hashed once."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, *parts: Any) -> None:
        self._parts, self._hash = parts, hash(parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._parts == other._parts


def _key(question: Question) -> _Key | None:
    """What a plan depends on; None for a question of which something has no lasting description."""
    try:
        return _Key(json.dumps(described(question)), question.limits, tuple(question.read))
    except UnsupportedOperation:
        return None


def _types(question: Question, names: tuple[str, ...]) -> pl.Schema:
    """The types in which Polars holds columns of a question's table."""
    types: pl.Schema = source_of(question.step).data.scan(names, empty=True).collect_schema()
    return types


def forget() -> None:
    """Keep no plan."""
    with _lock:
        _plans.clear()


def _small_table(question: Question) -> Source | None:
    """The table of a question about one small table in memory, with few listed groups and no public table; or None."""
    if type(question) is not Question:
        return None
    first, *later = lineage(question.step)
    if not isinstance(first, Source) or not all(isinstance(step, _OWN) for step in later):
        return None
    height, groups = first.data.height, 1 if question.keys is None else question.keys.size
    return first if height is not None and height <= _ROWS and groups <= _GROUPS else None
