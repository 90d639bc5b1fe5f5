"""The public facts about the files that rows come from, for the name of a release.
No row or count is read.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import io
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from dpframe.errors import InvalidArgument, MissingFile, kind_of
from dpframe.usage import door

_DATASET = re.compile(r"^\s*PythonDataset SCAN", re.MULTILINE)
_SCANNED = re.compile(r" SCAN \[([^\],]+)")
_KEY = 16  # characters
_SHOWN = 3  # number of files that are named
Origin = dict[str, Any]


def read_origin(data: object) -> str | Path | None:
    """Check `data=`: a text, a date, a whole number, the path of a file or folder,
    or a table of Delta or Iceberg.

    Errors: InvalidArgument
    """
    if data is None or isinstance(data, Path):
        return data
    version = _version_of(data)
    if version is not None:
        return version
    match data:
        case str() if data.strip() and "\0" not in data and data.isprintable():
            return data
        case int() | dt.date() if not isinstance(data, bool):
            return str(data)
    raise InvalidArgument(
        "data= names the rows without reading them. It is a text or a date, data='2026-01', the "
        "path of their file, data=pathlib.Path('visits.parquet'), or a table object of Delta or "
        f"Iceberg; not {kind_of(data)}."
    )


@door
def content_hash(path: str | Path, key: str) -> str:
    """A label for `data=` that follows from the content of a file or folder,
    and not from its time or place.

    A copy, a restore or rsync does not change it, so a name is not refused for these.

    Input:  path: a file or a folder; key: a secret of yours of at least 16 characters, the same for
            all jobs. Without it somebody who knows all rows but one could try what the last one is,
            since a hash says whether a guess is right
    Output: a text: 128 bits of HMAC-SHA-256 of the content, under the key
    Bound:  whoever does not know the key learns from labels only which of them are equal. A name
            that is refused because its label differs says that the rows were changed: let only
            those see it who may see the rows
    Errors: InvalidArgument

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("city")
    ...     content_hash(Path(folder, "a.csv"), "a key of our team")[:8]
    'content '
    """
    if not isinstance(key, str) or len(key) < _KEY:
        raise InvalidArgument(
            f"content_hash: the key is a secret text of at least {_KEY} characters, "
            "dp.content_hash(path, key=...). Keep it where jobs keep their passwords."
        )
    if not isinstance(path, (str, Path)) or path == "":
        raise InvalidArgument(
            "content_hash: the path is that of a file or folder, "
            f"dp.content_hash('visits.parquet', key=...); not {kind_of(path)}."
        )
    root = Path(path)
    label = hmac.new(key.encode(errors="surrogatepass"), digestmod=hashlib.sha256)
    for file in _inside(root):
        place = "" if file == root else file.relative_to(root).as_posix()
        with open(file, "rb") as stream:
            inside = hashlib.file_digest(stream, "sha256").digest()
        label.update(f"{len(place)} {place} ".encode() + inside)
    return f"content {label.hexdigest()[:32]}"


def origin_of(data: str | Path | None, files: Sequence[Path]) -> Origin | None:
    """The public facts about the origin of rows, as JSON; None where the origin is not known.

    Input:  data: the argument `data=`; files: the files that a lazy table scans
    Output: a text as the user typed it; for files their paths, their times of modification, and for
            Parquet files the types in their footers. The sizes of the files and their numbers of
            rows are left out, because both count rows
    """
    if isinstance(data, str):
        return {"": data, "said": data}
    paths = list(files) if data is None else _inside(data)
    if not paths:
        return None
    descriptions = [_file(path) for path in paths]
    names = ", ".join(f"{file['path']} of {file['modified']}" for file in descriptions[:_SHOWN])
    ending = f" and {len(descriptions) - _SHOWN} more" if len(descriptions) > _SHOWN else ""
    digest = hashlib.sha256(
        repr([sorted(file.items()) for file in descriptions]).encode()
    ).hexdigest()[:16]
    return {"": f"{names}{ending} ({digest})", "files": digest}


def _version_of(table: Any) -> str | None:
    """The version of a Delta or Iceberg table from its object, as a
    text; None for any other object.

    A Delta version is the number of a transaction, and an Iceberg version is the identifier of a
    snapshot. Both are public. No row is read.
    """
    package = type(table).__module__.partition(".")[0]
    if package == "deltalake" and hasattr(table, "version") and hasattr(table, "table_uri"):
        return f"Delta table {table.table_uri}, version {table.version()}"
    if package == "pyiceberg" and hasattr(table, "current_snapshot") and hasattr(table, "name"):
        snapshot = table.current_snapshot()
        name = ".".join(table.name())
        return (
            f"Iceberg table {name}, "
            f"{'no snapshot' if snapshot is None else f'snapshot {snapshot.snapshot_id}'}"
        )
    return None


def _inside(path: Path) -> list[Path]:
    """A file, or the files in a folder.
    Errors: MissingFile where there is none, or no file can have this name.
    """
    files = [path]
    if os.path.isdir(path):
        files = sorted(
            file
            for file in path.rglob("*")
            if file.is_file() and not file.name.startswith((".", "_"))
        )
    # unlike pathlib, it answers for a name that is too long
    if not files or not os.path.exists(path):
        raise no_file(str(path))
    return files


def no_file(path: str | None = None) -> MissingFile:
    """The refusal of rows whose files are not there, or not yet;
    without a path where an engine names none.
    """
    named = "" if path is None else f" {path!r}"
    return MissingFile(
        f"There is no file{named}, so there are no rows to protect. Nothing was spent. If it comes "
        "later, run this again then: except dp.errors.MissingFile tells it from other errors."
    )


def check_there(files: Sequence[Path]) -> None:
    """Refuse files of this machine that are not there.
    An address of elsewhere, and a pattern, may be.

    Errors: MissingFile
    """
    for path in files:
        elsewhere = path.parts[:1] and path.parts[0].endswith(":")
        if not os.path.exists(path) and not elsewhere and not set("*?[") & set(str(path)):
            raise no_file(str(path))


def says_missing(error: BaseException) -> bool:
    """Whether an engine says that a file is not there, by the type of its error
    and, of DuckDB's, its first words.
    """
    kinds = {kind.__name__ for kind in type(error).__mro__}
    return "FileNotFoundError" in kinds or (
        "IOException" in kinds and "No files found that match" in str(error)
    )


def _file(path: Path) -> dict[str, str]:
    """The public facts about one file: path, time of modification, types in its footer."""
    try:
        nanoseconds = path.stat().st_mtime_ns
    except OSError:
        return {"path": str(path), "modified": "unknown"}
    moment = dt.datetime.fromtimestamp(nanoseconds // 10**9, dt.UTC)
    modified = f"{moment:%Y-%m-%d %H:%M:%S}.{nanoseconds % 10**9:09d} UTC"
    return {"path": str(path.absolute()), "modified": modified, "footer": _footer(path)}


def _footer(path: Path) -> str:
    """The types in a Parquet file's footer and the program that wrote the file;
    "" for a file of another format.

    The footer's other metadata is left out, because pandas writes the number of rows there.
    """
    if path.suffix not in (".parquet", ".pq"):
        return ""
    import pyarrow.parquet as pq

    try:
        footer = pq.ParquetFile(path)
        return f"{footer.metadata.created_by} {footer.schema_arrow.remove_metadata()}"
    # the file is not in Parquet's format in spite of its name, or cannot be opened here
    except Exception:
        return ""


def versions(files: Sequence[Path]) -> tuple[object, ...]:
    """Facts that change when a file is written: its identity, size and time.
    They are compared, and never shown.
    """
    return tuple(_version(path) for path in files)


def _version(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def is_lake(frame: pl.LazyFrame) -> bool:
    """Whether a lazy table scans one of Delta or Iceberg."""
    return _DATASET.search(frame.explain(optimized=False)) is not None


def types_of_lake(frame: pl.LazyFrame) -> dict[str, str]:
    """The types of the columns of a lazy table on Delta or Iceberg, as the lake states them now.
    No row is read.

    A plan keeps the types that it found first; its copy asks anew. Whoever reads an earlier version
    needs its files, which a lake removes one day: an optimised plan names the first of them.

    Errors: any, where the lake cannot be asked
    """
    again = pl.LazyFrame.deserialize(io.BytesIO(frame.serialize()))
    now = {name: str(dtype) for name, dtype in again.collect_schema().items()}
    if all(now.get(name) == str(dtype) for name, dtype in frame.collect_schema().items()):
        files = [file.removeprefix("file://") for file in _SCANNED.findall(frame.explain())]
        for file in filter(os.path.isabs, files):
            os.stat(file)
    return now


def files_of(frame: pl.LazyFrame) -> list[Path]:
    """The files that a lazy table scans, from the nodes of its plan;
    none where the plan does not show them.

    The files of a dataset of PyArrow are those that it found when it was made, on this machine.

    A table of Delta or Iceberg is a Python object in the plan. Polars would ask this object for its
    files and wait for Python, while Python waits for Polars. So the nodes of such a plan are not
    read: `data=` names the table's version.
    """
    try:
        if is_lake(frame):
            return []
        plan: Any = frame._ldf.visit()
        pending, paths = [plan.get_node()], []
        while pending:
            plan.set_node(pending.pop())
            node = plan.view_current_node()
            paths += [Path(str(path)) for path in getattr(node, "paths", None) or []]
            paths += _of_dataset(getattr(node, "options", None))
            pending += plan.get_inputs()
    # also a panic: the nodes of a plan are not part of Polars' public interface
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return []
    return paths


def _of_dataset(options: Any) -> list[Path]:
    """The files of the datasets of PyArrow that the function of a
    scan reads; none for another node.
    """
    function = options[0] if isinstance(options, tuple) and options else None
    pending, paths = list(getattr(function, "args", ())), []
    while pending:
        dataset = pending.pop()
        pending += getattr(dataset, "children", ())
        if type(getattr(dataset, "filesystem", None)).__name__ == "LocalFileSystem":
            paths += [Path(path) for path in dataset.files]
    return paths
