"""The engines that queries run on.
Each engine has one module, with the operations for which narwhals has no name.

To add an engine, write a module with a `Backend` named BACKEND, and add a line to each of the two
tables below. The module is imported when the first table of its kind is protected.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import narwhals as nw

from dpframe.engine.backends.base import (
    Backend,
    Cased,
    CellFunction,
    Frame,
    Parsed,
    Part,
    Piece,
    Replaced,
    Selection,
    Stripped,
)

__all__ = [
    "Backend",
    "Cased",
    "CellFunction",
    "Frame",
    "Parsed",
    "Part",
    "Piece",
    "Replaced",
    "Selection",
    "Stripped",
    "backend_named",
    "backend_of",
    "backend_taking",
]

_LAYER: Mapping[nw.Implementation, str] = {  # from narwhals' implementation to our module
    nw.Implementation.POLARS: "polars",
    nw.Implementation.DUCKDB: "duckdb",
    nw.Implementation.IBIS: "ibis",
    nw.Implementation.PYSPARK: "spark",
    nw.Implementation.PYSPARK_CONNECT: "spark",
}
_BROUGHT: Mapping[str, str] = {  # from the package of a table's class to our module
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
    """The engine with a name; its module is imported if it is not yet."""
    return import_module(f"dpframe.engine.backends.{name}").BACKEND


def backend_of(frame: Frame) -> Backend:
    """The engine that a frame runs on."""
    return backend_named(_LAYER[frame.implementation])


def backend_taking(table: object) -> Backend | None:
    """The engine of a user's table, by the package of its class;
    None for an object that no engine takes in.
    """
    name = _BROUGHT.get(type(table).__module__.partition(".")[0])
    return None if name is None else backend_named(name)
