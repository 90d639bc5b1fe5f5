"""Which files rows come from: what is public of them, for the name of a release. No row, count or statistic is read."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from dpframe.errors import InvalidArgument, kind_of

__all__ = ["files_of", "origin_of", "read_origin"]

_DATASET = re.compile(r"^\s*PythonDataset SCAN", re.MULTILINE)
_SHOWN = 3  # files that are named; of more, the first ones
Origin = dict[str, Any]


def read_origin(data: object) -> str | Path | None:
    """What `data=` may be: a text, a date, a whole number, the path of a file or folder, or a table with versions.

    Errors: InvalidArgument
    """
    if data is None or isinstance(data, Path):
        return data
    version = _version_of(data)
    if version is not None:
        return version
    if isinstance(data, str) and data.strip() and "\0" not in data and data.isprintable():
        return data
    if isinstance(data, (int, dt.date)) and not isinstance(data, bool):
        return str(data)
    raise InvalidArgument(
        "data= says which rows these are, without looking at them: a text or a date, data='2026-01', or the path of "
        f"their file, data=pathlib.Path('visits.parquet'), or a Delta or Iceberg table object; not {kind_of(data)}."
    )


def origin_of(data: str | Path | None, files: Sequence[Path]) -> Origin | None:
    """What is public of where rows come from, as JSON with words of its own; None where nothing is known.

    Input:  what `data=` said; the files that a lazy table scans
    Output: a text as it is; of files: paths, times of modification, and of Parquet files the types in their footers.
            How large they are and how many rows they have is left out, since that is a count of rows
    """
    if isinstance(data, str):
        return {"": data, "said": data}
    listed = list(files) if data is None else _inside(data)
    if not listed:
        return None
    found = [_file(path) for path in listed]
    names = ", ".join(f"{one['path']} of {one['modified']}" for one in found[:_SHOWN])
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    digest = hashlib.sha256(repr([sorted(one.items()) for one in found]).encode()).hexdigest()[:16]
    return {"": f"{names}{more} ({digest})", "files": digest}


def _version_of(table: Any) -> str | None:
    """Which version a Delta table or an Iceberg table is, as its object says; None for anything else.

    Both are public: the number of a transaction, and the identifier of a snapshot. Nothing is read for it.
    """
    package = type(table).__module__.partition(".")[0]
    if package == "deltalake" and hasattr(table, "version") and hasattr(table, "table_uri"):
        return f"Delta table {table.table_uri}, version {table.version()}"
    if package == "pyiceberg" and hasattr(table, "current_snapshot") and hasattr(table, "name"):
        snapshot = table.current_snapshot()
        name = ".".join(table.name())
        return f"Iceberg table {name}, {'no snapshot' if snapshot is None else f'snapshot {snapshot.snapshot_id}'}"
    return None


def _inside(path: Path) -> list[Path]:
    """A file, or the files in a folder."""
    if path.is_dir():
        return sorted(one for one in path.rglob("*") if one.is_file() and not one.name.startswith((".", "_")))
    if not path.exists():
        raise InvalidArgument(f"data={str(path)!r}: there is no such file.")
    return [path]


def _file(path: Path) -> dict[str, str]:
    """What is public of one file."""
    try:
        nanoseconds = path.stat().st_mtime_ns
    except OSError:
        return {"path": str(path), "modified": "unknown"}
    moment = dt.datetime.fromtimestamp(nanoseconds // 10**9, dt.UTC)
    modified = f"{moment:%Y-%m-%d %H:%M:%S}.{nanoseconds % 10**9:09d} UTC"
    return {"path": str(path.absolute()), "modified": modified, "footer": _footer(path)}


def _footer(path: Path) -> str:
    """The types in a Parquet file's footer and what wrote it; "" for another file.

    Its metadata beside that are left out: pandas writes the number of rows there.
    """
    if path.suffix not in (".parquet", ".pq"):
        return ""
    import pyarrow.parquet as pq

    try:
        footer = pq.ParquetFile(path)
        return f"{footer.metadata.created_by} {footer.schema_arrow.remove_metadata()}"
    except Exception:  # not a Parquet file after all, or one that is read elsewhere
        return ""


def files_of(frame: pl.LazyFrame) -> list[Path]:
    """The files that a lazy table scans, from the nodes of its plan; none where that cannot be told.

    A table of Delta or Iceberg is a Python object in the plan, which Polars asks for its files. It waits for Python
    then, and Python for it, so such a plan is not looked at: `data=` says which version it is.
    """
    try:
        if _DATASET.search(frame.explain(optimized=False)):
            return []
        plan: Any = frame._ldf.visit()
        pending, found = [plan.get_node()], []
        while pending:
            plan.set_node(pending.pop())
            node = plan.view_current_node()
            found += [Path(str(path)) for path in getattr(node, "paths", None) or []]
            pending += plan.get_inputs()
    except BaseException as error:  # Polars' panics too: the nodes of a plan are no promise of Polars
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return []
    return found
