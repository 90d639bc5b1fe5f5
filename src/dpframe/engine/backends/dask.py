"""Dask dataframes: each partition is read by the types of the whole table, and queries run on parts of the units.

How the parts are made and added up is in `dpframe.engine.parts.shuffle`; on each of them it is Polars that runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dask.dataframe as dd
import polars as pl

from dpframe.engine.backends.polars import PolarsBackend
from dpframe.engine.intake import arrow
from dpframe.engine.tables import Data

__all__ = ["BACKEND"]


class _Dask(PolarsBackend):
    name = "dask"

    def adopt(self, table: Any) -> Data | None:
        """The table by the types that Dask says it has: of its partitions, which may differ, nothing is looked at."""
        if not isinstance(table, dd.DataFrame):
            return None
        types = arrow.from_pandas(table._meta)
        if types is None:
            return None

        def scan(names: Sequence[str], *, empty: bool = False) -> Any:
            return types.scan(names, empty=True) if empty else table[list(names)]

        return Data("pandas", types.schema, scan, engine="dask")

    def fetch(self, table: Any) -> pl.DataFrame:
        """A public table, read as a pandas one."""
        data = arrow.from_pandas(table.compute())
        assert data is not None
        rows: pl.DataFrame = data.scan([name for name, _ in data.schema]).collect()
        return rows


BACKEND = _Dask()
