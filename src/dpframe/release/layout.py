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
    frame = table.to_pandas()
    frame[value] = frame[value].astype("int64" if frame[value].notna().all() else "Int64")
    wide = frame.set_index([*down, *across])[value].unstack(across, sort=False)
    rows, columns = _order(table, down), _order(table, across)
    wide = wide.reindex(index=_index(pd, rows, down), columns=_index(pd, columns, across))
    if layout.margins:
        wide[ALL if len(across) == 1 else (ALL, *[""] * (len(across) - 1))] = wide.sum(axis=1)
        wide.loc[ALL if len(down) == 1 else (ALL, *[""] * (len(down) - 1)), :] = wide.sum(axis=0)
        wide = wide.astype("int64")
    return wide


def _order(table: pl.DataFrame, names: Sequence[str]) -> list[tuple[Any, ...]]:
    return list(table.select(names).unique(maintain_order=True).iter_rows())


def _index(pd: Any, keys: list[tuple[Any, ...]], names: Sequence[str]) -> Any:
    if len(names) == 1:
        return pd.Index([key[0] for key in keys], name=names[0])
    return pd.MultiIndex.from_tuples(keys, names=list(names))


def _wide(table: pl.DataFrame, down: Sequence[str], layout: Layout, value: str) -> pl.DataFrame:
    across = list(layout.across)
    columns = _order(table, across)
    wide = table.select(down).unique(maintain_order=True)
    for key, label in zip(columns, _labels(columns), strict=True):
        match = pl.all_horizontal(pl.col(n).eq_missing(pl.lit(k)) for n, k in zip(across, key, strict=True))
        cells = table.filter(match).select(*down, pl.col(value).alias(label))
        wide = wide.join(cells, on=down, how="left", nulls_equal=True, maintain_order="left")
    if not layout.margins:
        return wide
    labels = wide.columns[len(down) :]
    wide = wide.with_columns(pl.col(down).cast(pl.String), pl.sum_horizontal(labels).alias(ALL))
    first = {name: pl.lit(ALL if i == 0 else "").alias(name) for i, name in enumerate(down)}
    return pl.concat([wide, wide.select(*first.values(), pl.col([*labels, ALL]).sum())])


def _labels(keys: list[tuple[Any, ...]]) -> list[str]:
    """Keys as column names: ("a", 1) is "a, 1"."""
    return [", ".join("null" if part is None else str(part) for part in key) for key in keys]
