"""The rows of one part of a partition. Which parts a unit is in is the same in every release, on every machine."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import polars as pl

from dpframe.engine.hooks import Frame
from dpframe.engine.rows import lowered, unit_names
from dpframe.plan.partition import Part

__all__: list[str] = []


@lowered.register
def _(step: Part, live: frozenset[str], empty: bool) -> Frame:
    column = step.before.table.columns[step.name].id
    frame = lowered(step.before, live | {column}, empty)
    here = frame.filter(nw.col(column) == step.key)
    units = unit_names(step.table)
    if not units or step.max_groups >= len(step.keys):
        return here
    listed = frame.filter(nw.col(column).is_in(list(step.keys))).select(*units, column).unique()
    return here.join(_keeping(listed, units, column, step), on=units, how="semi")


def _keeping(pairs: Frame, units: Sequence[str], column: str, step: Part) -> Frame:
    """The units that keep the part's key: of their keys, the `max_groups` with the lowest hashes; ties all go."""
    native: pl.LazyFrame = pairs.to_native()
    salt = bytes.fromhex(step.salt)
    schema = native.collect_schema()

    def keep(table: pl.DataFrame) -> pl.DataFrame:
        many = pl.len().over(units) > step.max_groups
        # Hashes are only taken where there is something to choose.
        chosen = table.filter(many)
        hashes = [_hash(row, salt) for row in chosen.select(*units, column).iter_rows()]
        ranked = chosen.with_columns(pl.Series("h", hashes, dtype=pl.UInt64))
        kept = ranked.filter(pl.col("h").rank("max").over(units) <= step.max_groups).select(table.columns)
        both = pl.concat([table.filter(~many), kept])
        return both.filter(pl.col(column) == step.key).select(units)

    return nw.from_native(native.map_batches(keep, schema={name: schema[name] for name in units}))


def _hash(row: tuple[Any, ...], salt: bytes) -> int:
    """A keyed hash that never changes: an engine's own may with its version."""
    text = "\x1f".join(f"{type(value).__name__}:{value}" for value in row)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8, key=salt).digest(), "little")
