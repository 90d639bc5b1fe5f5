"""The rows of a synthesis as places of keys: one line for each combination of keys that occurs, with its weight."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engine.compile import compiled, split_bits
from dpframe.engine.forks import check_threads
from dpframe.engine.parts import Sums, added, planned
from dpframe.engine.stages import group_names, key_frame
from dpframe.engine.totals import guarded, joined
from dpframe.plan import Question, Synthesis
from dpframe.theory.formulas.error import Attributes


@dataclass(frozen=True, repr=False)
class Contingency:
    """Combinations of keys with their weights, which are not private.

    `codes` has the place of each key among the listed keys of its column, of shape (combinations, columns); `weights`
    are integers in units of 2^-fraction rows; `sizes` are the numbers of keys, which are public.
    """

    codes: NDArray[np.int32] = field(repr=False)
    weights: NDArray[np.int64] = field(repr=False)
    fraction: int
    sizes: tuple[int, ...]

    def table(self, part: Attributes) -> NDArray[np.int64]:
        """The weights by some of the columns: an array with an axis for each."""
        place = np.zeros(len(self.codes), np.int64)
        for i in part:
            place = place * self.sizes[i] + self.codes[:, i]
        shape = [self.sizes[i] for i in part]
        values = np.zeros(int(np.prod(shape)), np.int64)
        np.add.at(values, place, self.weights)
        return values.reshape(shape)


def contingency(question: Synthesis, salt: int) -> Contingency:
    """Read the rows and add up their weights by all columns. Errors: EngineError."""
    return guarded(lambda: _coded(question, added(question, partial(_sums, salt))))


def validate_contingency(question: Synthesis) -> None:
    """Run the whole query on a table with the same columns and no row, so that it cannot fail after the charge."""
    check_threads(question.step)
    guarded(lambda: _coded(question, planned(question, [sums.frame for sums in _sums(0, question, True, empty=True)])))


def _sums(salt: int, question: Question, whole: bool, *, empty: bool = False) -> list[Sums]:
    """The sums of the weights of rows by all columns. whole: whether the rows are those of all units."""
    return [Sums(compiled(question, salt, empty=empty, whole=whole).main, tuple(group_names(question)))]


def _coded(question: Synthesis, tables: list[pl.DataFrame]) -> Contingency:
    (table,), (allotment,) = tables, question.read
    for i in range(len(question.by)):
        level = key_frame(question.one((i,)))
        level = level.rename({name: name.replace("k0", f"k{i}") for name in level.columns}).with_row_index(f"at{i}")
        keys = [name for name in level.columns if name != f"at{i}"]
        table = table.join(level, on=keys, how="inner").drop(keys)
    codes = table.select(pl.col(f"at{i}").cast(pl.Int32) for i in range(len(question.by))).to_numpy()
    weights = np.asarray(joined(table, 0, split_bits(allotment.total)), np.int64)
    return Contingency(codes, weights, allotment.total.fraction, question.tables.sizes)
