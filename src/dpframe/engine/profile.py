"""How many rows and groups units have: histograms from which `dp.Auto` chooses limits. Raw, not private.

Each unit counts once in each histogram, in one bucket. So when one unit joins or leaves, one bucket of each changes by
one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engine.buckets import Sums, added, planned
from dpframe.engine.compile import unit_rows
from dpframe.engine.hooks import Frame
from dpframe.engine.keys import group_names
from dpframe.engine.rows import unit_names
from dpframe.engine.totals import guarded
from dpframe.plan.ask import Ask

__all__ = ["EDGES", "Profile", "profile"]

# Upper ends of the buckets: 1, 2, 4, …; the last holds whatever is larger.
EDGES: NDArray[np.int64] = 2 ** np.arange(32, dtype=np.int64)


@dataclass(frozen=True, repr=False)
class Profile:
    """Units per bucket of: rows in all, groups, most rows in one group. Arrays of len(EDGES)."""

    rows: NDArray[np.int64] = field(repr=False)
    groups: NDArray[np.int64] = field(repr=False)
    rows_per_group: NDArray[np.int64] = field(repr=False)


def profile(ask: Ask, *, empty: bool = False) -> Profile:
    """Read the rows that reach an ask and count units by size. Errors: EngineError."""
    return guarded(lambda: _profile(ask, empty))


def _profile(ask: Ask, empty: bool) -> Profile:
    (table,) = planned(ask, [_sizes(ask, empty=True)]) if empty else added(ask, _sums)
    return Profile(*(_histogram(table, name) for name in ("a", "b", "c")))


def _sums(ask: Ask, whole: bool) -> list[Sums]:
    return [Sums(_sizes(ask), ("a", "b", "c"))]


def _sizes(ask: Ask, *, empty: bool = False) -> Frame:
    """How many units "u" have "a" rows in all, "b" groups and "c" rows in their largest group."""
    units, groups = unit_names(ask.table), group_names(ask)
    partials = unit_rows(ask, empty=empty).group_by(*units, *groups).agg(nw.len().cast(nw.Int64).alias("n"))
    per_unit = partials.group_by(*units).agg(
        nw.col("n").sum().alias("a"), nw.len().cast(nw.Int64).alias("b"), nw.col("n").max().alias("c")
    )
    return per_unit.group_by("a", "b", "c").agg(nw.len().cast(nw.Int64).alias("u"))


def _histogram(table: pl.DataFrame, size: str) -> NDArray[np.int64]:
    bucket = np.searchsorted(EDGES, np.minimum(table.get_column(size).to_numpy(), EDGES[-1]))
    counts = np.zeros(len(EDGES), np.int64)
    np.add.at(counts, bucket, table.get_column("u").to_numpy())
    return counts
