"""Dask dataframes: each partition is converted to the types of the whole table, and
queries run on parts of the units.

`dpframe.engine.parts.shuffle` makes the parts, runs Polars on each, and adds up their sums.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import polars as pl
from dask import threaded
from dask._task_spec import Task
from dask.delayed import Delayed, delayed
from fsspec.core import OpenFile
from fsspec.implementations.local import LocalFileSystem

from dpframe.engine.backends.polars import PolarsBackend
from dpframe.engine.intake import arrow
from dpframe.engine.tables import Data


class _Dask(PolarsBackend):
    name = "dask"

    def adopt(self, table: object) -> Data | None:
        """The table with the types that Dask states.
        No partition is inspected, although its types may differ.
        """
        if not isinstance(table, dd.DataFrame):
            return None
        types = arrow.from_pandas(table._meta)
        if types is None:
            return None

        def scan(names: Sequence[str], *, empty: bool = False) -> Any:
            return types.scan(names, empty=True) if empty else table[list(names)]

        return Data("pandas", types.schema, scan, engine="dask", watched=_local_files(table))

    def try_threads(self, data: Data) -> None:
        """A task of Dask's: an empty table is one of Polars.
        Only the main thread gets Dask's pool of threads.
        """
        task: Any = delayed
        task(int)().compute()
        pool = threaded.default_pool
        if pool is not None:
            pool.submit(int).result()

    def fetch(self, table: Any) -> pl.DataFrame:
        """The rows of a public table, by way of pandas."""
        data = arrow.from_pandas(table.compute())
        assert data is not None
        return data.scan(data.columns).collect()


def _local_files(table: Any) -> tuple[Path, ...]:
    """The files of this machine that a table is read from;
    Dask has their columns from its first look.
    """
    steps = list(table.expr.walk())
    found = [step._dataset_info["ds"] for step in steps if hasattr(type(step), "_dataset_info")]
    parquet = [one.files for one in found if type(one.filesystem).__name__ == "LocalFileSystem"]
    files = [*itertools.chain(*parquet), *_opened([step.operands for step in steps])]
    return tuple(map(Path, dict.fromkeys(files)))


def _opened(value: Any) -> Iterator[str]:
    """The paths of the files that are opened in tasks, as those of CSV and JSON are."""
    inside: Iterable[Any] = ()
    match value:
        case OpenFile(fs=LocalFileSystem()):
            yield value.path
        case list() | tuple():
            inside = value
        case dict():
            inside = value.values()
        case Task():
            inside = (*value.args, *value.kwargs.values())
        case Delayed():
            inside = dict(value.dask).values()
    for part in inside:
        yield from _opened(part)


BACKEND = _Dask()
