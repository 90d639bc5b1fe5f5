"""An ask run on parts of the units, one after another, and added up: for tables whose partials would not fit.

Why the totals of the parts add up to those of the whole. A part holds every row of some units and no row of any other,
and each unit is in one part. Stages 1 to 3 look at one unit at a time: a row operation at one row, a join of protected
tables, a concat and features at the rows of one unit, a partial at the rows of one unit and group, and the limits at
the partials of one unit, whose groups are chosen by a hash of the salt, the unit and the group, which is the same in
each part. So the rows that stage 4 adds up are those of the whole, each in one part, and what it adds are integers: any
grouping of them has the same sum. Groups found in the data are those of some part, so their union is that of the whole,
and a group that a part does not have has 0 there. Rows at a candidate, and units of a size, add up likewise.

Different values do not add up: two units in two parts may bring one value. Therefore a part does not count them but
gives the pairs of group and value that its units keep; those of all parts together, each once, are those of the whole.

How many parts there are follows from the number of rows. It changes when and where numbers are added, never a number;
whoever watches the clock, or the progress line, may learn it, as they learn how long a query runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from dpframe.engine.parts.sums import Build, collected, comparable, together
from dpframe.engine.tables import Data
from dpframe.plan import Question
from dpframe.plan.steps import Source, exchanged, sources_of
from dpframe.progress import watched

__all__ = ["added"]

_ROWS = 2**25  # rows of a part: what is held of them at once is 2 to 4 GiB
_SEED = 0x5EED  # of the hash that says which part a unit is in: another one than chooses groups, and no secret


def added(question: Question, build: Build) -> list[pl.DataFrame]:
    """What an ask adds up, on the whole where it fits, or in parts.

    Input:  the ask; build(ask, whole): its sums, lazily
    Output: a table for each of the sums, in any order of rows
    """
    if any(source.data.engine == "dask" for source in sources_of(question.step)):
        from dpframe.engine.parts import shuffle  # which stands on Dask

        return shuffle.added(question, build)
    parts = split(question)
    if len(parts) == 1:
        return collected(question, [sums.frame for sums in build(question, True)])
    tables: list[pl.DataFrame] = []
    for part in watched(parts, len(parts), "parts of the units"):
        sums = build(part, False)
        tables = together([entry.keys for entry in sums], [tables, collected(part, [entry.frame for entry in sums])])
    return tables


# Parts


def split(question: Question) -> list[Question]:
    """The same ask of parts of the units; itself alone where it is small, or where nobody knows units."""
    if not question.table.unit:  # rows are added up as they come: nothing is held but the groups
        return [question]
    if any(source.data.engine != "polars" for source in sources_of(question.step)):  # which have ways of their own
        return [question]
    number = -(-sum(_height(source) for source in sources_of(question.step)) // _ROWS)
    return [question] if number <= 1 else [_part(question, i, number) for i in range(number)]


def _height(source: Source) -> int:
    """The number of rows, which a Parquet file knows; 0 where Python gives them, so that it is asked for them once."""
    assert isinstance(source.unit, tuple)
    rows: pl.LazyFrame = source.data.scan(source.unit[:1] if source.data.kind == "polars" else ())
    height = rows.select(pl.len())
    return 0 if "PYTHON" in height.explain() else int(height.collect().item())


def _part(question: Question, number: int, of: int) -> Question:
    """The ask of the units whose hash leaves a remainder, in every protected table."""
    parts = {id(source): replace(source, data=_rows(source, number, of)) for source in sources_of(question.step)}
    return replace(question, step=exchanged(question.step, lambda source: parts[id(source)]))


def _rows(source: Source, number: int, of: int) -> Data:
    data, domain = source.data, dict(source.schema)
    names = source.unit if isinstance(source.unit, tuple) else ()
    inside = pl.struct(comparable(name, domain[name]) for name in names).hash(_SEED) % of == number

    def scan(selection: Sequence[str], *, empty: bool = False) -> pl.LazyFrame:
        columns = dict.fromkeys([*selection, *names])
        rows: pl.LazyFrame = data.scan(list(columns), empty=empty)
        return rows.filter(inside).select(selection)

    return Data(data.kind, data.schema, scan, data.lazy)
