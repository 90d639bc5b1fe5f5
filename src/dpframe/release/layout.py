"""Tables as people read them: a released long table laid out as a crosstab, and as the user's kind of table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from dpframe.engine.native import Kind, as_kind
from dpframe.plan.ask import Layout

__all__ = ["ALL", "laid_out"]

ALL = "All"  # the name of a margin, as in pandas


def laid_out(table: pl.DataFrame, by: Sequence[str], layout: Layout, kind: Kind) -> Any:
    """The released table in its layout, as the user's kind of table."""
    if layout.form == "long":
        return as_kind(table, kind)
    (value,) = [name for name in table.columns if name not in by]
    down = [name for name in by if name not in layout.across]
    if kind == "pandas":
        return _pandas_crosstab(table, down, layout, value)
    return as_kind(_wide(table, down, layout, value), kind)


def _pandas_crosstab(table: pl.DataFrame, down: Sequence[str], layout: Layout, value: str) -> Any:
    import pandas as pd

    across = list(layout.across)
    rows, columns = _order(table, down), _order(table, across)
    cells = {(row[: len(down)], row[len(down) : -1]): row[-1] for row in table.select(*down, *across, value).rows()}
    numbers = [[cells.get((row, column)) for column in columns] for row in rows]
    wide = pd.DataFrame(numbers, index=_index(pd, rows, down), columns=_index(pd, columns, across), dtype="Int64")
    if layout.margins:
        beside = pd.DataFrame({0: wide.sum(axis=1)}, dtype="Int64")
        beside.columns = _index(pd, [_margin(columns)], across)
        wide = pd.concat([wide, beside], axis=1)
        below = pd.DataFrame([wide.sum(axis=0).tolist()], columns=wide.columns, dtype="Int64")
        below.index = _index(pd, [_margin(rows)], down)
        wide = pd.concat([wide, below])
    return wide if len(cells) < len(rows) * len(columns) else wide.astype("int64")


def _order(table: pl.DataFrame, names: Sequence[str]) -> list[tuple[Any, ...]]:
    return list(table.select(names).unique(maintain_order=True).iter_rows())


def _index(pd: Any, keys: list[tuple[Any, ...]], names: Sequence[str]) -> Any:
    if len(names) == 1:
        return pd.Index([key[0] for key in keys], name=names[0])
    return pd.MultiIndex.from_tuples(keys, names=list(names))


def _margin(keys: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The key of a margin: "All", or with underscores after it where that is a key already."""
    name = _unlike(ALL, {key[0] for key in keys})
    return (name, *[""] * (len(keys[0]) - 1 if keys else 0))


def _unlike(name: str, taken: set[Any]) -> str:
    while name in taken:
        name += "_"
    return name


def _wide(table: pl.DataFrame, down: Sequence[str], layout: Layout, value: str) -> pl.DataFrame:
    across = list(layout.across)
    keys = _order(table, across)
    rows = _order(table, down)
    cells = {(row[: len(down)], row[len(down) : -1]): row[-1] for row in table.select(*down, *across, value).rows()}
    wide = table.select(down).unique(maintain_order=True)
    labels = _labels(keys, set(down))
    counts = [
        pl.Series(label, [cells.get((row, key)) for row in rows], dtype=pl.Int64)
        for label, key in zip(labels, keys, strict=True)
    ]
    wide = wide.with_columns(counts)
    if not layout.margins:
        return wide
    total, bottom = _unlike(ALL, {*labels, *down}), _margin(rows)
    wide = wide.with_columns(pl.col(down).cast(pl.String), pl.sum_horizontal(pl.col(labels)).alias(total))
    last = [pl.lit(part).alias(name) for name, part in zip(down, bottom, strict=True)]
    return pl.concat([wide, wide.select(*last, pl.col([*labels, total]).sum())])


def _labels(keys: list[tuple[Any, ...]], taken: set[str]) -> list[str]:
    """Keys as different column names: ("a", 1) is "a, 1"; underscores tell apart what would look alike."""
    labels: list[str] = []
    for key in keys:
        text = ", ".join("null" if part is None else str(part) for part in key)
        labels.append(_unlike(text, taken | set(labels)))
    return labels
