"""Compiled questions on small tables in memory, kept for the next question that is alike.

Compiling a question takes longer than adding up ten thousand rows. What is compiled depends on the question and on the
types of the table's columns, and on no row. So the frames are compiled once, over a place for rows that is empty. To
validate a question, they run on this empty place; to answer it, the rows are put there for the time of one reading. A
question that is asked again, of this table or of another with the same columns, is neither compiled nor validated
again: the frames that run are those that were validated.

A plan is used by one thread at a time. It holds rows only while it runs.
"""

from __future__ import annotations

import json
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


class Plan:
    """The frames of a question over a place for rows; `validated` once they have run without rows."""

    validated = False

    def __init__(self, question: Question, source: Source, *, small: bool) -> None:
        self._small = small
        self._rows: dict[tuple[str, ...], pl.DataFrame] = {}
        self._salt = LateSalt()
        self._scanned: set[tuple[str, ...]] = set()

        def scan(names: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
            selection = tuple(names)
            nothing = source.data.scan(names, empty=True).collect()
            self._scanned.add(selection)

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

    def tables(
        self, question: Question, salt: int, *, empty: bool = False
    ) -> tuple[list[pl.DataFrame], dict[int, pl.DataFrame]]:
        """The tables of totals of a question; empty: those of its table without rows. Errors: those of the engine."""
        try:
            if not empty:
                data = source_of(question.step).data
                self._rows = {names: plainly(data.scan(names)) for names in self._scanned}
            self._salt.value = salt
            frames: list[Frame] = [*self._frames.mains, *self._frames.apart.values()]
            tables = collected(question, frames, small=self._small)
        finally:
            self._rows = {}
        mains = len(self._frames.mains)
        return tables[:mains], dict(zip(self._numbers, tables[mains:], strict=True))


_plans: OrderedDict[Any, list[Plan]] = OrderedDict()
_lock = Lock()


@contextmanager
def kept(question: Question) -> Iterator[Plan | None]:
    """The plan of a question, for the use of this thread alone; it is kept if the block raises nothing.

    Output: None for a question whose plans are not kept: one about a large table, a table that is not in memory, a
            table of another library, or several tables
    """
    source = _small_table(question)
    key = None if source is None else once(_key, question)
    if source is None or key is None:
        yield None
        return
    small = (source.data.height or 0) <= _FEW
    with _lock:
        plans = _plans.get((key, small))
        plan = plans.pop() if plans else None
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


def forget() -> None:
    """Keep no plan."""
    with _lock:
        _plans.clear()


def _small_table(question: Question) -> Source | None:
    """The table of a question about one small Polars table in memory, with no public table; else None."""
    if type(question) is not Question:
        return None
    first, *later = lineage(question.step)
    if not isinstance(first, Source) or not all(isinstance(step, _OWN) for step in later):
        return None
    height = first.data.height
    return first if height is not None and height <= _ROWS else None
