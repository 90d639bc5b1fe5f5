"""A question that is answered on one part of the units after another, for tables whose
partials do not fit in memory.

Why the totals of the parts add up to the totals of the whole table. Each unit is in exactly one
part, and a part holds every row of its units. Stages 1 to 3 look at one unit at a time:

- a row operation looks at one row;
- a join of protected tables, a concat and a feature look at the rows of one unit;
- a partial looks at the rows of one unit in one group;
- the limits look at the partials of one unit. They choose its groups by a hash of the salt, the
  unit and the group, and this hash does not depend on the part.

So stage 4 adds up the weighted rows of the whole table, each in one part. The weights are integers,
so the order and the grouping of the additions do not matter. A group that occurs in the data occurs
in some part, and it has 0 in the parts that lack it. Numbers of rows at a candidate, and of units
by size, add up in the same way.

Numbers of distinct values do not add up, because two units in two parts may have one value.
Therefore a part does not count values, but gives the pairs of group and value that its units keep.
The union of these pairs over all parts is the set of pairs of the whole table.

The number of parts follows from the number of rows, the question, and the memory that the process
may take. It changes when and where numbers are added, never a total, and no release is refused for
the number of its rows. Someone who watches the clock or the progress line may learn the number of
parts, as they learn the running time.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from dpframe.engine.attended import attended
from dpframe.engine.parts.sums import Build, collected, comparable, together
from dpframe.engine.tables import Data
from dpframe.plan import Question
from dpframe.plan.steps import Source, exchanged, sources_of
from dpframe.progress import watched

_USUAL = 2**32  # bytes for a part, unless somebody says otherwise or the process may take less
# bytes for a row of a part, and for each of its numbers (measured: 116 to 400 in all)
_ROW, _TOTAL = 96, 20
_FEWEST = 2**16  # rows of a part
# bytes of address space that threads and readers of an engine reserve, however few rows there are
_RESERVED = 3 * 2**29
# bytes of address space that are reserved for each byte that is used (measured: 2 to 3)
_SPARSE = 3
# seed of the hash that gives a unit its part. It is public, and is not the salt that chooses groups
_SEED = 0x5EED


def added(question: Question, build: Build) -> list[pl.DataFrame]:
    """The sums of a question, computed on all rows at once where they
    fit in memory, or else in parts.

    Input:  the question; build(question, whole): its lazy sums
    Output: one table for each of the sums, its rows in any order
    """
    if any(source.data.engine == "dask" for source in sources_of(question.step)):
        from dpframe.engine.parts import shuffle  # it imports Dask

        return shuffle.added(question, build)
    parts = split(question)
    if len(parts) == 1:
        return collected(question, [sums.frame for sums in build(question, True)])
    tables: list[pl.DataFrame] = []
    for part in watched(parts, len(parts), "parts of the units"):
        sums = build(part, False)
        tables = together(
            [entry.keys for entry in sums],
            [tables, collected(part, [entry.frame for entry in sums])],
        )
    return tables


# Memory

_most: int | None = None  # bytes


def set_most(memory: int | None) -> None:
    """The most bytes that one part may take; None: 4 GiB, or what the process may have."""
    global _most
    _most = memory


def _rows_of_a_part(question: Question) -> int:
    """Number of rows that fit into memory at once;
    rows at candidates and distinct values take twice as much.
    """
    numbers = len(question.read)
    wide = 1 if all(allotment.total.additive for allotment in question.read) else 2
    memory = min(_USUAL, _address_space(), _container()) if _most is None else _most
    return max(memory // (wide * (_ROW + _TOTAL * numbers)), _FEWEST)


def _address_space() -> int:
    """Bytes that are left below the limit on this process's address space,
    `ulimit -v`, where there is one.
    """
    try:
        resource = importlib.import_module("resource")  # not on Windows
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError, ValueError):
        return _USUAL
    return _USUAL if limit == resource.RLIM_INFINITY else (limit - taken - _RESERVED) // _SPARSE


def _container() -> int:
    """Bytes that are left below the limit of this container, where there is one.
    Its cache of files can be freed.
    """
    try:
        limit, taken = (
            int(Path(f"/sys/fs/cgroup/memory.{name}").read_text()) for name in ("max", "current")
        )
    except (OSError, ValueError):
        return _USUAL
    return max(limit - taken, limit // 4)


# Parts


def split(question: Question) -> list[Question]:
    """The question on each part of the units, or the question alone where it needs no parts.

    It needs none where the table is small, where there are no unit columns, and on engines other
    than Polars.
    """
    # the engine adds up rows as it reads them, and holds only the groups in memory
    if not question.table.unit:
        return [question]
    # these manage their own memory
    if any(source.data.engine != "polars" for source in sources_of(question.step)):
        return [question]
    number = -(
        -sum(_height(source) for source in sources_of(question.step)) // _rows_of_a_part(question)
    )
    return [question] if number <= 1 else [_part(question, i, number) for i in range(number)]


def _height(source: Source) -> int:
    """The number of rows of a table, which a Parquet file states in its footer.

    The result is 0 where Python code produces the rows, so that this code runs once and not twice.
    """
    if source.data.height is not None:
        return source.data.height
    rows: pl.LazyFrame = source.data.scan(source.ids[:1] if source.data.kind == "polars" else ())
    height = rows.select(pl.len())
    return 0 if "PYTHON" in height.explain() else int(attended(height.collect).item())


def _part(question: Question, number: int, of: int) -> Question:
    """The question on the units whose hash modulo `of` is `number`, in every protected table."""
    part = exchanged(question.step, lambda source: replace(source, data=_rows(source, number, of)))
    return replace(question, step=part)


def _rows(source: Source, number: int, of: int) -> Data:
    data, domain = source.data, dict(source.schema)
    names = source.ids
    inside = pl.struct(comparable(name, domain[name]) for name in names).hash(_SEED) % of == number

    def scan(selection: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
        columns = dict.fromkeys([*selection, *names])
        rows: pl.LazyFrame = data.scan(list(columns), empty=empty)
        return rows.filter(inside).select(selection)

    return Data(data.kind, data.schema, scan, data.lazy)
