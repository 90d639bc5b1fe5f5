"""The totals of many marginals: rows are weighted once over all columns, and then summed for each marginal table.

Memory holds one row for each combination of keys that occurs in the data, and the listed keys of each marginal table.
The product of the keys of all columns is never built.
"""

from __future__ import annotations

from functools import partial

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engine.compile import HIGH, compiled, split_bits
from dpframe.engine.parts import Sums, added, planned
from dpframe.engine.stages import group_names, key_frame, public_keys
from dpframe.engine.totals import guarded, joined
from dpframe.plan import FRACTION_BITS, Marginals, Question
from dpframe.theory.formulas.error import Attributes

__all__ = ["listed_keys", "marginal_keys", "marginal_totals", "validate_marginals"]

Tables = tuple[NDArray[np.int64], ...]  # one array for each marginal of the workload, an axis per column; not private


def marginal_totals(question: Marginals, salt: int) -> Tables:
    """Read the rows and add them up: one array for each marginal, in units of 2^-20 rows. Errors: EngineError."""
    return guarded(lambda: _placed(question, added(question, partial(_sums, salt))))


def validate_marginals(question: Marginals) -> None:
    """Run the whole query on a table with the same columns and no row, so that it cannot fail after the charge."""
    guarded(lambda: _placed(question, planned(question, [sums.frame for sums in _sums(0, question, True, empty=True)])))


def marginal_keys(question: Marginals, table: Attributes) -> pl.DataFrame:
    """The keys of a marginal as they are released; the keys of the last column change fastest."""
    one = question.one(table)
    return public_keys(one, key_frame(one)) if table else pl.DataFrame()


def listed_keys(question: Question) -> pl.DataFrame:
    """The listed keys of a question as they are released, in their order."""
    return public_keys(question, key_frame(question))


def _sums(salt: int, question: Question, whole: bool, *, empty: bool = False) -> list[Sums]:
    """For each marginal table, the sums of the weights of its groups, from the groups over all columns.

    Input:  whole: whether the rows are those of all units, as in `buckets`
    """
    assert isinstance(question, Marginals)
    main = compiled(question, salt, empty=empty, whole=whole).main
    names = [name for name in ("t0", f"t0{HIGH}") if name in main.collect_schema().names()]
    sums = [nw.col(name).sum().alias(name) for name in names]
    groups = [_group_names(question, table) for table in question.workload]
    return [Sums(main.group_by(*keys).agg(*sums), tuple(keys)) for keys in groups]


def _group_names(question: Marginals, table: Attributes) -> list[str]:
    """The engine's names for the columns of a marginal table."""
    return [name for name in group_names(question) if int(name[1:].rstrip("n")) in table]


def _placed(question: Marginals, tables: list[pl.DataFrame]) -> Tables:
    """The sums of each marginal as an array over its listed keys, 0 for a key without rows."""
    ((_, total),) = [(p.names, p.total) for p in question.read]
    step = 2 ** (FRACTION_BITS - total.fraction)
    arrays = []
    for table, sums in zip(question.workload, tables, strict=True):
        values = np.zeros([question.tables.sizes[i] for i in table], np.int64)
        for i in table:
            sums = sums.join(_level(question, i), on=[n for n in sums.columns if n.rstrip("n") == f"k{i}"], how="inner")
        at = tuple(sums.get_column(f"at{i}").to_numpy() for i in table)
        values[at] = joined(sums, 0, split_bits(total)) * step
        arrays.append(values)
    return tuple(arrays)


def _level(question: Marginals, i: int) -> pl.DataFrame:
    """The listed keys of a column as the engine holds them, each with its position along the axis."""
    keys = key_frame(question.one((i,)))
    return keys.rename({name: name.replace("k0", f"k{i}") for name in keys.columns}).with_row_index(f"at{i}")
