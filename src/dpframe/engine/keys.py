"""The groups of a table of totals, in the order in which they are released."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from narwhals.dtypes import DType

from dpframe.engine.native import polars_dtype
from dpframe.plan.ask import Ask
from dpframe.plan.types import kind

__all__ = ["key_frame"]


def key_frame(ask: Ask, names: Sequence[str]) -> pl.DataFrame:
    """The listed keys of an ask, one row each, in the order listed; text for categories."""
    assert ask.keys is not None
    levels = [
        pl.Series(name, list(level), dtype=_held(column.facts.dtype), strict=False)
        for name, level, column in zip(names, ask.keys.levels, ask.group_columns, strict=True)
    ]
    if ask.keys.rows is not None:
        columns = zip(*ask.keys.rows, strict=True)
        return pl.DataFrame(
            [
                pl.Series(s.name, list(values), dtype=s.dtype, strict=False)
                for s, values in zip(levels, columns, strict=True)
            ]
        )
    table = levels[0].to_frame()
    for level in levels[1:]:
        table = table.join(level.to_frame(), how="cross", maintain_order="left_right")
    return table


def _held(dtype: DType) -> Any:
    """The type in which the engine holds a key."""
    family = kind(dtype)
    if family == "string":
        return pl.String()
    return pl.Float64() if family == "float" else polars_dtype(dtype)
