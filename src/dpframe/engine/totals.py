"""The engine's answer: exact integer totals per group. They never leave the release function."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engine.compile import HIGH, compiled, group_names, split_bits
from dpframe.engine.hooks import Frame
from dpframe.engine.keys import key_frame
from dpframe.engine.native import polars_dtype
from dpframe.errors import DpFrameError, EngineError
from dpframe.plan.ask import Ask
from dpframe.plan.steps import source_of

__all__ = ["Totals", "totals", "validate"]

T = TypeVar("T")
Integers = NDArray[np.int64] | NDArray[np.object_]


@dataclass(frozen=True, repr=False)
class Totals:
    """Keys (one row per group) and, for each measure of `ask.paid`, an integer per group: raw, not private."""

    keys: pl.DataFrame = field(repr=False)
    values: tuple[Integers, ...] = field(repr=False)


def totals(ask: Ask, salt: int) -> Totals:
    """Read the rows and add up. Input: the ask, a 64-bit salt for the choice of groups. Errors: EngineError."""
    return _guarded(lambda: _assembled(ask, _collected(ask, compiled(ask, salt))))


def validate(ask: Ask) -> None:
    """Run the whole query on a table with the same columns and no row, so that it cannot fail after it is paid."""
    _guarded(lambda: _assembled(ask, _collected(ask, compiled(ask, 0, empty=True))))


def _guarded(run: Callable[[], T]) -> T:
    """Run, and replace whatever an engine raises by a constant message: its own may hold cells.

    Polars' PanicException is a BaseException. The new error is raised outside of the handler, so that nothing of the
    old one hangs on it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return run()
    except (DpFrameError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        pass
    raise EngineError(
        "The engine could not run this query. Its own message is withheld because it may show cells; "
        "run the same steps on a few made-up rows to see it."
    )


def _collected(ask: Ask, frame: Frame) -> pl.DataFrame:
    native: pl.LazyFrame = frame.to_native()
    lazy_source = source_of(ask.step).data.lazy
    return native.collect(engine="streaming" if lazy_source else "auto")


def _assembled(ask: Ask, table: pl.DataFrame) -> Totals:
    names = group_names(ask)
    values = [name for name in table.columns if name not in names]
    if ask.keys is not None and names:
        listed = key_frame(ask, names)
        table = listed.join(table, on=names, how="left", nulls_equal=True, maintain_order="left")
        table = table.with_columns(pl.col(values).fill_null(0))
    elif names:
        table = table.sort(names)
    keys = pl.DataFrame(
        [
            table.get_column(name).cast(polars_dtype(column.facts.dtype)).alias(public)
            for name, public, column in zip(names, ask.by, ask.group_columns, strict=True)
        ]
    )
    return Totals(keys, tuple(_joined(table, i, split_bits(p.measure)) for i, p in enumerate(ask.paid)))


def _joined(table: pl.DataFrame, i: int, low: int) -> Integers:
    """A total from its parts, as int64 where it fits and as Python integers where not."""
    total: Integers = table.get_column(f"t{i}").to_numpy()
    if not low:
        return total
    high: Integers = table.get_column(f"t{i}{HIGH}").to_numpy()
    if np.all(np.abs(high) < 2 ** (61 - low)) and np.all(np.abs(total) < 2**62):
        return np.asarray(high * 2**low + total)
    return np.asarray(high.astype(object) * 2**low + total.astype(object))
