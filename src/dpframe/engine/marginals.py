"""The totals of many marginals: rows are weighted once over all columns, and then
summed for each marginal table.

Memory holds one row for each combination of keys that occurs in the data, and the listed keys of
each marginal table. The product of the keys of all columns is never built.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.arrays import Array, Floats, Integers, row_cells
from dpframe.engine.backends import Frame
from dpframe.engine.compile import HIGH, compiled, split_bits
from dpframe.engine.forks import check_threads
from dpframe.engine.parts import Sums, added, planned
from dpframe.engine.stages import group_names, held_keys, key_frame, public_keys
from dpframe.engine.totals import guarded, joined
from dpframe.plan import FRACTION_BITS, Marginals, Question, Synthesis
from dpframe.theory.formulas.error import Attributes

_CELLS = 2**20  # where keys have more combinations than this, most rows have one of their own

# one array for each marginal of the workload, an axis per column; not private
Tables = tuple[Integers, ...]


def marginal_totals(question: Marginals, salt: int) -> Tables:
    """Read the rows and add them up: one array for each marginal, in units of 2^-20 rows.
    Errors: EngineError.
    """
    return guarded(lambda: _placed(question, added(question, partial(_sums, salt))))


def validate_marginals(question: Marginals) -> None:
    """Run the whole query on a table with the same columns and no row, so that
    it cannot fail after the charge.
    """
    check_threads(question.step)
    guarded(lambda: _placed(question, planned(question, empty_sums(question))))


def empty_sums(question: Marginals) -> list[Frame]:
    """The lazy frames of the sums, on tables without their rows."""
    return [sums.frame for sums in _sums(0, question, True, empty=True)]


def marginal_keys(question: Marginals, table: Attributes) -> pl.DataFrame:
    """The keys of a marginal as they are released; the keys of the last column change fastest."""
    one = question.one(table)
    return public_keys(one, key_frame(one)) if table else pl.DataFrame()


def listed_keys(question: Question) -> pl.DataFrame:
    """The listed keys of a question as they are released, in their order."""
    return public_keys(question, key_frame(question))


def _sums(salt: int, question: Question, whole: bool, *, empty: bool = False) -> list[Sums]:
    """The sums of the weights of the groups of each marginal table,
    from the groups over all columns.

    Where the engine computes in this process, one frame holds the sums of all tables. Elsewhere
    each table has a frame of its own, so that nothing but totals leaves the engine.

    Input:  whole: whether the rows are those of all units, as in `buckets`
    """
    assert isinstance(question, Marginals)
    frames = compiled(question, salt, empty=empty, whole=whole)
    names = [name for name in ("t0", f"t0{HIGH}") if name in frames.main.collect_schema().names()]
    if isinstance(frames.main.to_native(), pl.LazyFrame):
        wide = math.prod(question.tables.sizes) > _CELLS
        parts = (
            frames.parts.select(*group_names(question), nw.col(frames.names[0]).alias("t0"))
            if wide
            else frames.main
        )
        tabulated = parts.to_native().map_batches(
            partial(_tabulated, question, names),
            predicate_pushdown=False,
            projection_pushdown=False,
            slice_pushdown=False,
            schema=dict.fromkeys(("table", "cell", *names), pl.Int64),
        )
        return [Sums(nw.from_native(tabulated), ("table", "cell"))]
    sums = [nw.col(name).sum().alias(name) for name in names]
    groups = [_group_names(question, table) for table in question.workload]
    return [Sums(frames.main.group_by(*keys).agg(*sums), tuple(keys)) for keys in groups]


def _group_names(question: Marginals, table: Attributes) -> list[str]:
    """The engine's names for the columns of a marginal table."""
    return [name for name in group_names(question) if int(name[1:].rstrip("n")) in table]


def _tabulated(question: Marginals, names: list[str], groups: pl.DataFrame) -> pl.DataFrame:
    """The sums of all marginal tables: the number of the table, that of its cell, and the sums.

    Input:  names: the columns to add up; groups: keys of all columns, one row or several for each
            combination
    """
    sizes, used = question.tables.sizes, sorted({i for table in question.workload for i in table})
    groups = groups.with_columns(_positions(question, i, groups) for i in used).drop_nulls(
        [f"at{i}" for i in used]
    )
    at = {i: groups.get_column(f"at{i}").to_numpy() for i in used}
    numbers = {name: groups.get_column(name).to_numpy() for name in names if name in groups.columns}
    sums = {**dict.fromkeys(names), **_in_floats(question, numbers)}
    shapes = [math.prod(sizes[i] for i in table) for table in question.workload]
    totals: dict[str, list[Integers]] = {name: [] for name in names}
    before: Attributes = ()
    # the cells of the table `before`; neighbours share all but one column
    prefix = np.zeros(groups.height, np.int64)
    for table, cells in zip(question.workload, shapes, strict=True):
        if table[:-1] != before:
            before, prefix = table[:-1], np.zeros(groups.height, np.int64)
            for i in before:
                prefix = prefix * sizes[i] + at[i]
        cell = prefix * sizes[table[-1]] + at[table[-1]] if table else prefix
        for name, values in sums.items():
            totals[name].append(_added(cell, values, cells))
    places = {
        "table": np.repeat(np.arange(len(shapes)), shapes),
        "cell": np.concatenate([*map(np.arange, shapes)]),
    }
    return pl.DataFrame(
        {**places, **{name: np.concatenate(arrays) for name, arrays in totals.items()}}
    )


def _in_floats(
    question: Marginals, sums: dict[str, Integers]
) -> dict[str, Integers | Floats | None]:
    """The columns to add up, as floats where no sum of them can be
    rounded; None for a column of zeros.

    Two halves of a total become one number and zeros where the sums of the number are exact too.
    """
    names = list(sums)
    if len(names) == 2:
        ((_, total),) = [(p.names, p.total) for p in question.read]
        low, high = (sums[name] for name in names)
        if _is_small(high * 2.0 ** split_bits(total)) and _is_small(low):
            whole = (high * 2 ** split_bits(total) + low).astype(np.float64)
            return {names[0]: whole, names[1]: None}
    return {
        name: values.astype(np.float64) if _is_small(values) else values
        for name, values in sums.items()
    }


def _is_small(values: Array) -> bool:
    """Whether any sum of some of the integers is exact in floats, also
    beside another sum of this kind.
    """
    return float(np.abs(values).sum(dtype=np.float64)) < 2.0**51


def _positions(question: Marginals, i: int, groups: pl.DataFrame) -> pl.Series:
    """The position of each group's key of a column among the listed keys of this column."""
    level = _level(question, i)
    names = [name for name in level.columns if name != f"at{i}"]
    keys = held_keys(question, groups.select(names))
    return (
        keys.join(level, on=names, how="left", maintain_order="left")
        .get_column(f"at{i}")
        .cast(pl.Int64)
    )


def _added(cells: Integers, values: Integers | Floats | None, number: int) -> Integers:
    """The sum of the values in each cell, exactly: floats are integers whose sums floats hold."""
    totals = np.zeros(number, np.int64)
    if values is None:
        return totals
    if values.dtype == np.float64:
        return np.bincount(cells, weights=values, minlength=number).astype(np.int64)
    np.add.at(totals, cells, values)
    return totals


def _placed(question: Marginals, tables: list[pl.DataFrame]) -> Tables:
    """The sums of each marginal as an array over its listed keys, 0 for a key without rows."""
    ((_, total),) = [(p.names, p.total) for p in question.read]
    step, low = 2 ** (FRACTION_BITS - total.fraction), split_bits(total)
    shapes = [[question.tables.sizes[i] for i in table] for table in question.workload]
    if "cell" in tables[0].columns:
        one = tables[0].sort("table", "cell")
        starts = np.cumsum([0, *map(math.prod, shapes)])
        sums = np.zeros(starts[-1], np.int64)
        at = starts[one.get_column("table").to_numpy()] + one.get_column("cell").to_numpy()
        sums[at] = joined(one, 0, low) * step
        return tuple(
            sums[a:b].reshape(shape)
            for a, b, shape in zip(starts, starts[1:], shapes, strict=False)
        )
    levels = {i: _level(question, i) for i in range(len(question.by))}
    arrays = []
    for table, shape, numbers in zip(question.workload, shapes, tables, strict=True):
        values = np.zeros(shape, np.int64)
        for i in table:
            numbers = numbers.join(
                levels[i], on=[n for n in numbers.columns if n.rstrip("n") == f"k{i}"], how="inner"
            )
        values[tuple(numbers.get_column(f"at{i}").to_numpy() for i in table)] = (
            joined(numbers, 0, low) * step
        )
        arrays.append(values)
    return tuple(arrays)


def _level(question: Marginals, i: int) -> pl.DataFrame:
    """The listed keys of a column as the engine holds them, each
    with its position along the axis.
    """
    keys = key_frame(question.one((i,)))
    return keys.rename({name: name.replace("k0", f"k{i}") for name in keys.columns}).with_row_index(
        f"at{i}"
    )


# The rows of a synthesis


@dataclass(frozen=True, repr=False)
class Contingency:
    """Combinations of keys with their weights, which are not private.

    `codes` has the place of each key among the listed keys of its column, of shape (combinations,
    columns); `weights` are integers in units of 2^-fraction rows; `sizes` are the numbers of keys,
    which are public.
    """

    codes: NDArray[np.int32] = field(repr=False)
    weights: Integers = field(repr=False)
    fraction: int
    sizes: tuple[int, ...]

    def table(self, part: Attributes) -> Integers:
        """The weights by some of the columns: an array with an axis for each."""
        shape = [self.sizes[i] for i in part]
        return _added(
            row_cells(self.codes, part, self.sizes), self.weights, math.prod(shape)
        ).reshape(shape)


def contingency(question: Synthesis, salt: int) -> Contingency:
    """Read the rows and add up their weights by all columns. Errors: EngineError."""
    return guarded(lambda: _coded(question, added(question, partial(_weight_sums, salt))))


def validate_contingency(question: Synthesis) -> None:
    """Run the whole query on a table with the same columns and no row, so that
    it cannot fail after the charge.
    """
    check_threads(question.step)
    guarded(
        lambda: _coded(
            question,
            planned(question, [sums.frame for sums in _weight_sums(0, question, True, empty=True)]),
        )
    )


def _weight_sums(salt: int, question: Question, whole: bool, *, empty: bool = False) -> list[Sums]:
    """The sums of the weights of rows by all columns.
    whole: whether the rows are those of all units.
    """
    return [
        Sums(compiled(question, salt, empty=empty, whole=whole).main, tuple(group_names(question)))
    ]


def _coded(question: Synthesis, tables: list[pl.DataFrame]) -> Contingency:
    (table,), (allotment,) = tables, question.read
    for i in range(len(question.by)):
        level = _level(question, i)
        keys = [name for name in level.columns if name != f"at{i}"]
        table = table.join(level, on=keys, how="inner").drop(keys)
    codes = table.select(
        pl.col(f"at{i}").cast(pl.Int32) for i in range(len(question.by))
    ).to_numpy()
    weights = np.asarray(joined(table, 0, split_bits(allotment.total)), np.int64)
    return Contingency(codes, weights, allotment.total.fraction, question.tables.sizes)
