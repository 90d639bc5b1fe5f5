"""A question about Dask dataframes: rows are shuffled by unit, Polars runs on each
part, and the integers are added.

Why the totals of the parts add up to the totals of the whole table: see
`dpframe.engine.parts.buckets`. A row goes to the part that a hash of its identifier names, so a
part holds every row of its units. The hash is taken after the identifiers are converted to the
types of the whole table. By then equal identifiers are one text or one number, in whatever
partition, table or Python type they came. The hash is that of pandas, which does not depend on the
machine. Tasks draw no random numbers, so a task that runs again gives an identical result.

A partition may differ from what Dask says: it may have other types, its columns in another order,
fewer columns, or be no table at all. Each cell is read from its own value and the column's type in
the whole table, and is null where that type cannot hold it (see
`dpframe.engine.intake.arrow.partition_of`).

A worker gets no more than a plan without rows, the public tables that the plan joins, and the salt.
It returns the sums of a part, and the caller gets only the sums over all parts. A task of ours
never raises: an exception, or a scheduler's log of it, may show cells. It returns None instead, and
then the whole result is None.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import IO, Any, TypeVar

import numpy as np
import pandas as pd
import polars as pl
from cloudpickle import CloudPickler
from dask.base import compute
from dask.dataframe.dask_expr import new_collection  # type: ignore[attr-defined]
from dask.delayed import delayed
from numpy.typing import NDArray

from dpframe.engine.intake import partition_of
from dpframe.engine.parts.sums import Build, collected, comparable, together
from dpframe.engine.tables import Data, PandasType
from dpframe.plan import TIMES, ColumnDomain, Question, kind
from dpframe.plan.steps import Source, exchanged, sources_of

_PARTS = 128  # largest number of parts; each partition is cut into one piece for each part
_FAN = 16  # number of parts that one task adds up


def added(question: Question, build: Build) -> list[pl.DataFrame]:
    """The sums of a question about Dask dataframes; see `buckets.added`."""
    sources = sources_of(question.step)
    names, keys = _needed(question, build)
    frames = [source.data.scan(columns) for source, columns in zip(sources, names, strict=True)]
    number = min(max(frame.npartitions for frame in frames), _PARTS)
    pieces = []
    for source, frame in zip(sources, frames, strict=True):
        cut = delayed(_cut, nout=number)
        about = delayed((frame._meta.dtypes.to_dict(), _units(source), number))
        pieces.append([cut(partition, about) for partition in _unprojected(frame).to_delayed()])
    plan = delayed(_packed(question, build))
    parts = [
        delayed(_summed)(plan, [[cut[i] for cut in table] for table in pieces])
        for i in range(number)
    ]
    while len(parts) > 1:
        parts = [delayed(_together)(keys, parts[i : i + _FAN]) for i in range(0, len(parts), _FAN)]
    (tables,) = compute(parts[0])  # type: ignore[no-untyped-call]
    if tables is None:
        raise RuntimeError  # `totals.guarded` replaces it by an EngineError with a message
    return list(tables)


def _needed(question: Question, build: Build) -> tuple[list[list[str]], list[tuple[str, ...]]]:
    """The columns that the question reads of each table, and the keys of each of its sums.

    Both are recorded while the question is built on the tables without rows.
    """
    columns: dict[int, dict[str, None]] = {id(source): {} for source in sources_of(question.step)}

    def listening(source: Source) -> Data:
        def scan(names: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
            columns[id(source)].update(dict.fromkeys([*names, *_units(source)]))
            return source.data.scan(names, empty=True)

        return Data(source.data.kind, source.data.schema, scan)

    heard = exchanged(question.step, lambda source: replace(source, data=listening(source)))
    sums = build(replace(question, step=heard), False)
    return [list(names) for names in columns.values()], [entry.keys for entry in sums]


def _unprojected(frame: Any) -> Any:
    """A dataframe without a selection of columns as its last task.

    Such a task would fail on a partition that lacks one of the columns. Selections that are part of
    reading a file, or that come before other tasks, stay.
    """
    expression = frame.optimize(fuse=False).expr
    while type(expression).__name__ == "Projection":
        expression = expression.frame
    return new_collection(expression)


def _units(source: Source) -> dict[str, ColumnDomain]:
    """The identifier columns of a table; none with `dp.Rows(k)`."""
    domains = dict(source.schema)
    return {name: domains[name] for name in source.ids}


# What runs on workers

T = TypeVar("T")


def _or_none(run: Callable[[], T]) -> T | None:
    """The result of a function, None where it raises.
    BaseException is caught, as Polars' PanicException is one.
    """
    try:
        return run()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        return None


def _cut(
    partition: object, about: tuple[dict[str, PandasType], dict[str, ColumnDomain], int]
) -> list[pl.DataFrame | None]:
    """The rows of a partition that belong to each part.

    A row without an identifier belongs to no part. In a table without unit columns, row i belongs
    to part i modulo the number of parts.
    """
    types, units, number = about

    def cut() -> list[pl.DataFrame | None]:
        rows = partition_of(partition, types)
        hashes: NDArray[np.integer] = np.arange(rows.height)
        if units:
            rows = rows.drop_nulls(list(units))
            ids = rows.select(_hashable(name, domain) for name, domain in units.items()).to_pandas()
            hashes = pd.util.hash_pandas_object(ids, index=False).to_numpy()
        part = pl.Series(hashes % number)
        return [rows.filter(part == i) for i in range(number)]

    return _or_none(cut) or [None] * number


def _hashable(name: str, domain: ColumnDomain) -> pl.Expr:
    """An identifier as a number or text that pandas can hash."""
    value = comparable(name, domain)
    if kind(domain.dtype) in TIMES:
        return value.to_physical().cast(pl.Int64)
    return value.cast(pl.String) if str(domain.dtype).endswith("128") else value


def _summed(plan: bytes, pieces: list[list[pl.DataFrame | None]]) -> list[pl.DataFrame] | None:
    """The sums of one part; None where one of its pieces is None."""
    if any(rows is None for table in pieces for rows in table):
        return None

    def summed() -> list[pl.DataFrame]:
        tables = [pl.concat([rows for rows in table if rows is not None]) for table in pieces]
        question, build = _Unpickler(io.BytesIO(plan), tables).load()
        return collected(question, [sums.frame for sums in build(question, False)])

    return _or_none(summed)


def _together(
    keys: list[tuple[str, ...]], parts: list[list[pl.DataFrame] | None]
) -> list[pl.DataFrame] | None:
    """The sums over several parts; None where the sums of one of them are None."""
    answers = [tables for tables in parts if tables is not None]
    return _or_none(lambda: together(keys, answers)) if len(answers) == len(parts) else None


# Sending a plan to the workers


def _packed(question: Question, build: Build) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer, [source.data for source in sources_of(question.step)]).dump((question, build))
    return buffer.getvalue()


class _Pickler(CloudPickler):
    """Writes a protected table as its number, a public table as its
    rows, and a function as Dask does.
    """

    def __init__(self, file: IO[bytes], tables: list[Data]) -> None:
        super().__init__(file)
        self.tables = tables

    def persistent_id(self, obj: object) -> tuple[object, ...] | None:
        if not isinstance(obj, Data):
            return None
        number = next((i for i, table in enumerate(self.tables) if table is obj), None)
        if number is not None:
            return number, obj.kind, obj.schema
        rows = obj.scan(obj.columns).collect()
        return None, obj.kind, obj.schema, rows


class _Unpickler(pickle.Unpickler):
    """Reads a plan and puts the rows of one part in place of its protected tables."""

    def __init__(self, file: IO[bytes], tables: list[pl.DataFrame]) -> None:
        super().__init__(file)
        self.tables = tables

    def persistent_load(self, pid: Any) -> Data:
        number, kind, schema, *public = pid
        rows: pl.DataFrame = public[0] if public else self.tables[number]

        def scan(names: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
            return (rows.head(0) if empty else rows).lazy().select(names)

        return Data(kind, schema, scan)
