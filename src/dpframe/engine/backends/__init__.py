"""The engines that queries run on. Each has one module, which says what narwhals has no word for there.

To add one: a module with a `Backend` named BACKEND, and its line in the two tables below. A module is imported when a
table of its kind is brought.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import narwhals as nw
import polars as pl

from dpframe.engine.backends.base import Backend, Frame
from dpframe.engine.tables import Data

__all__ = ["Backend", "Frame", "adopted", "backend_named", "backend_of", "fetched"]

_LAYER: Mapping[nw.Implementation, str] = {  # what narwhals calls an engine
    nw.Implementation.POLARS: "polars",
    nw.Implementation.DUCKDB: "duckdb",
    nw.Implementation.IBIS: "ibis",
    nw.Implementation.PYSPARK: "spark",
    nw.Implementation.PYSPARK_CONNECT: "spark",
}
_BROUGHT: Mapping[str, str] = {  # the package whose tables an engine takes in
    "polars": "polars",
    "pandas": "polars",
    "pyarrow": "polars",
    "modin": "polars",
    "duckdb": "duckdb",
    "_duckdb": "duckdb",
    "ibis": "ibis",
    "pyspark": "spark",
    "dask": "dask",
}


def backend_named(name: str) -> Backend:
    """An engine by its name, imported now."""
    backend: Backend = import_module(f"dpframe.engine.backends.{name}").BACKEND
    return backend


def backend_of(frame: Frame) -> Backend:
    """The engine that a frame runs on."""
    return backend_named(_LAYER[frame.implementation])


def adopted(table: Any) -> Data | None:
    """A table that a user brought, of an engine that takes it in; None for anything else. Nothing is read."""
    name = _brought(table)
    return None if name is None else backend_named(name).adopt(table)


def fetched(table: Any) -> pl.DataFrame:
    """A public table of an engine that takes it in, read."""
    name = _brought(table)
    assert name is not None
    return backend_named(name).fetch(table)


def _brought(table: Any) -> str | None:
    return _BROUGHT.get(type(table).__module__.partition(".")[0])
