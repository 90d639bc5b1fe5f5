"""A table that knows when its rows are read, and what a release looks like from outside."""

from __future__ import annotations

from typing import Any

import polars as pl

COLUMNS = {
    "user": ["ada", "ada", "bea", "cyd"],
    "city": ["Bonn", "Kiel", "Bonn", "Bonn"],
    "level": ["low", "high", "low", None],
    "yes": [True, False, None, True],
    "n": [1, 2, 3, 4],
    "x": [1.5, None, 3.0, 40.0],
}
SCHEMA = {
    "user": pl.String,
    "city": pl.String,
    "level": pl.Enum(["low", "high"]),
    "yes": pl.Boolean,
    "n": pl.Int64,
    "x": pl.Float64,
}


class Watched:
    """A lazy frame whose rows count how often they are asked for."""

    def __init__(self, columns: dict[str, list[Any]] | None = None) -> None:
        self.reads = 0
        self.rows = pl.DataFrame(COLUMNS if columns is None else columns, SCHEMA)
        self.frame = self.rows.lazy().map_batches(self._read, schema=self.rows.schema)

    def _read(self, rows: pl.DataFrame) -> pl.DataFrame:
        self.reads += 1
        return rows
