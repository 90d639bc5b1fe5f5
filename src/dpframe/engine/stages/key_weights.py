"""Weights of keys: each unit spreads a weight of length 1 over its keys, in integers that every engine shares."""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw
import polars as pl

from dpframe.engine.backends import Frame, backend_of
from dpframe.plan import FRACTION_BITS
from dpframe.theory.formulas.sensitivity import spread_weight


def weighted_keys(
    partials: Frame, units: Sequence[str], groups: Sequence[str], into: str, most: int, in_play: pl.DataFrame | None
) -> Frame:
    """The partials of keys in play, with the weight that their unit gives them in the column `into`.

    Input:  partials: one row for each unit and key that it keeps, at most `most` for each unit; in_play: the keys that
            are in play, under the names of `groups`, or None where every key is
    Bound:  the weights of a unit follow from its own partials and from `in_play` alone. If t of its keys are in play,
            each has the weight `spread_weight(t)`, from a public table: no engine computes a root. So the squares of
            its weights add up to at most 2^40, and a weight is at most 2^20 = 1
    """
    engine = backend_of(partials)
    if in_play is not None:
        partials = partials.join(engine.bring(partials, in_play), on=list(groups), how="semi")
    ones = partials.with_columns(nw.lit(1).cast(nw.Int64).alias("t"))
    counted = ones.with_columns(nw.col("t").sum().over(*units).cast(nw.Int64).alias("t")).select(*groups, "t")
    numbers = range(1, most + 1)
    weights = [spread_weight(t, 2**FRACTION_BITS) for t in numbers]
    table = pl.DataFrame({"t": numbers, into: weights}, schema={"t": pl.Int64, into: pl.Int64})
    return counted.join(engine.bring(partials, table), on="t", how="inner")
