"""Outputs that are compared: of one question on several engines, and with those that a file keeps.

Under the same noise the tables are equal to the last digit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from dpframe.errors import InvalidArgument
from dpframe.testing.fixed_noise import fixed_noise

REWRITE = "DPFRAME_REWRITE"


def _duckdb(frame: pl.DataFrame) -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.register("brought", frame.to_arrow())
    connection.execute("CREATE TABLE kept AS SELECT * FROM brought")
    return connection.table("kept")


def _dask(frame: pl.DataFrame) -> Any:
    from_pandas: Any = import_module("dask.dataframe").from_pandas
    return from_pandas(frame.to_pandas(), npartitions=2)


def _spark(frame: pl.DataFrame) -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate().createDataFrame(frame.to_arrow())


ENGINES: Mapping[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda frame: frame,
    "polars-lazy": lambda frame: frame.lazy(),
    "pandas": lambda frame: frame.to_pandas(),
    "pyarrow": lambda frame: frame.to_arrow(),
    "duckdb": _duckdb,
    "dask": _dask,
    "spark": _spark,
}


def assert_same_on(
    engines: Iterable[str] | Mapping[str, Callable[[pl.DataFrame], Any]],
    pipeline: Callable[[Any], Any],
    table: Any,
    *,
    seed: int | str = 0,
) -> Any:
    """Run a pipeline in several engines under the same noise, and compare what it releases.

    Parameters
    ----------
    engines : names, or mapping of name to function
        Of `ENGINES`; or functions of your own, each of which takes a Polars frame and gives a table
        of an engine.
    pipeline : function
        Takes a table, and gives a release. It uses a throwaway budget, or a test ledger with
        another name for each.
    table : table
        A made-up table.
    seed : int or str
        As in `fixed_noise`.

    Returns
    -------
    Release
        That of the first engine.

    Raises
    ------
    AssertionError
        Names the two engines whose tables differ.

    Examples
    --------
    >>> from dpframe import testing
    >>> rows = pl.DataFrame({"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"]})
    >>> def visits(table):
    ...     import dpframe as dp
    ...
    ...     people = dp.protect(table, unit="user", budget=testing.budget(), max_rows=2)
    ...     return people.group_by("city", keys=["Bonn", "Kiel"]).count().release(epsilon=1.0)
    >>> testing.assert_same_on(["polars", "pandas", "duckdb"], visits, rows).table.columns
    ['city', 'count']
    """
    if isinstance(engines, str):
        raise InvalidArgument(f"assert_same_on: give a list of engines, [{engines!r}, 'pandas'].")
    makers = engines if isinstance(engines, Mapping) else {name: _maker(name) for name in engines}
    if not makers:
        raise InvalidArgument("assert_same_on: give the engines, such as ['polars', 'duckdb'].")
    rows: pl.DataFrame = nw.from_native(table, eager_only=True).to_polars()
    first: tuple[str, Any] | None = None
    for name, make in makers.items():
        with fixed_noise(seed):
            out = pipeline(make(rows))
        if first is None:
            first = name, out
        elif not out.to_polars().equals(first[1].to_polars()):
            raise AssertionError(f"{first[0]} and {name} give other tables:\n{first[1]!r}\n{out!r}")
    assert first is not None
    return first[1]


def _maker(name: str) -> Callable[[pl.DataFrame], Any]:
    if name not in ENGINES:
        raise InvalidArgument(f"assert_same_on: choose from {', '.join(map(repr, ENGINES))}.")
    return ENGINES[name]


def assert_golden(out: Any, path: str | Path, *, rewrite: bool | None = None) -> None:
    """Compare a released table with the one that a file holds, as CSV.
    Release it under `fixed_noise`.

    Parameters
    ----------
    out : Release
        What was released.
    path : str or path
        The file.
    rewrite : bool, optional
        Write the file anew; by default where the environment has DPFRAME_REWRITE=1. Read the
        difference then.

    Raises
    ------
    AssertionError
        If they differ, with the first line that does, or there is no file.
    """
    path, text = Path(path), out.to_csv()
    if os.environ.get(REWRITE) == "1" if rewrite is None else rewrite:
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    if not path.exists():
        raise AssertionError(
            f"There is no {path}. Run the test once with {REWRITE}=1, and read what it writes."
        )
    kept, now = path.read_text(encoding="utf-8").splitlines(), text.splitlines()
    for number, (old, new) in enumerate(zip(kept, now, strict=False), 1):
        if old != new:
            raise AssertionError(
                f"{path}, line {number} was {old!r}, and is {new!r}. {REWRITE}=1 writes it anew."
            )
    if len(kept) != len(now):
        raise AssertionError(
            f"{path} has {len(kept)} lines, and the table {len(now)}. {REWRITE}=1 writes it anew."
        )
