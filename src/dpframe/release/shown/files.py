"""Released tables as files and markup, with their privacy statements and margins of error."""

from __future__ import annotations

import datetime as dt
import errno
import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from dpframe.budget import canonical
from dpframe.errors import InvalidArgument, UnsupportedOperation, UnwritableFile
from dpframe.fields import Fields
from dpframe.plan import on_its_day
from dpframe.release.shown.charts import seconds_of
from dpframe.release.shown.crosstab import label_of, unlike
from dpframe.safe_text import MAY_RUN, for_latex, for_spreadsheets, printable
from dpframe.usage import in_tuple

# not allowed in the name of a sheet, which has at most 31 characters
_FORBIDDEN = re.compile(r"[\[\]:*?/\\']")
_LINES = 2**20  # the largest number of lines of a sheet, of which one has the names
_SIGNS = {"ε": "varepsilon", "δ": "delta", "ρ": "rho", "±": "pm", "≥": "geq", "≤": "leq"}
_NEARLY = 1e-6  # of a step; more than the errors of floats


@contextmanager
def whole(path: Any) -> Iterator[Any]:
    """The path of a new file beside this one, which takes its place when it is
    whole: readers never see a part.

    A stream, a URL, a device or a pipe is written directly. Errors: UnwritableFile for a file that
    cannot be written

    >>> with whole("a.csv") as beside:
    ...     beside.name != "a.csv", beside.suffix
    ...     _ = beside.write_text("city,count")
    (True, '.csv')
    >>> Path("a.csv").unlink()
    """
    if not isinstance(path, (str, os.PathLike)) or "://" in str(path):
        yield path
        return
    problem = None
    try:
        with _beside(path) as beside:
            yield beside
    except (OSError, pl.exceptions.PolarsError) as error:
        problem = getattr(error, "strerror", None) or str(error)
    if problem is not None:
        raise UnwritableFile(
            f"{os.fspath(path)!a} cannot be written: {problem}. No part of it is there, and "
            "nothing was spent: the answer stays. Make its folder or make room, or write it to "
            "another place."
        )


@contextmanager
def _beside(path: Any) -> Iterator[Any]:
    """The path of a new file beside this one; errors of the system stay."""
    try:
        str(path).encode()
        place = Path(path).expanduser().resolve()  # a link stays a link
    except (ValueError, RuntimeError):  # a NUL, no letter, a link to itself, a home of nobody
        raise OSError(errno.EINVAL, "no file can have this name") from None
    if not place.parent.is_dir() or place.is_dir():
        raise FileNotFoundError(
            errno.ENOENT, "it is a folder" if place.is_dir() else "there is no such folder"
        )
    if place.exists() and not place.is_file():
        yield path
        return
    beside = place.with_name(f".{place.stem[:40]}.{uuid.uuid4().hex}{place.suffix}")
    try:
        yield beside
        if place.exists():
            shutil.copymode(place, beside)
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, place)
    finally:
        beside.unlink(missing_ok=True)


def write_parquet(table: Any, path: Any, about: Fields) -> None:
    """Write a PyArrow table as a Parquet file.
    Its metadata has what is said about it as JSON, under `dpframe.NAME`.
    """
    import pyarrow.parquet as pq

    texts = {
        f"dpframe.{name}".encode(): json.dumps(said, ensure_ascii=False).encode()
        for name, said in about.items()
    }
    with whole(path) as beside:
        pq.write_table(
            table.replace_schema_metadata({**(table.schema.metadata or {}), **texts}), beside
        )


def check_beside(path: Any, *, certificate: bool) -> None:
    """Check that a certificate can be written beside a file. Errors: InvalidArgument."""
    if certificate and not isinstance(path, (str, os.PathLike)):
        raise InvalidArgument(
            "to_csv(certificate=True): give the path of the file, to_csv('table.csv', "
            "certificate=True)."
        )


def write_certificate(certificate: Fields, path: str | os.PathLike[str]) -> None:
    """Write a certificate as JSON with sorted keys, beside the file of its table."""
    with whole(f"{os.fspath(path)}.certificate.json") as beside:
        Path(beside).write_text(canonical(certificate), encoding="utf-8")


def check_installed(module: str, need: str) -> None:
    """Check that a module is installed, whose package has its name.
    Errors: UnsupportedOperation, with the line.
    """
    if find_spec(module) is None:
        raise UnsupportedOperation(f"{need}. Install it with: pip install {module}")


def _with_decimals(sheet: Any, table: Any, places: Mapping[str, int], before: int) -> None:
    """Format the numbers of each column that is in `places`;
    so many columns of the sheet stand before the table.
    """
    for number, name in enumerate(table.columns, before + 1):
        if (decimals := _places(name, places)) is not None:
            for (cell,) in sheet.iter_rows(min_col=number, max_col=number):
                if (
                    cell.number_format == "General"
                    and cell.data_type == "n"
                    and cell.value is not None
                ):
                    cell.number_format = "#,##0" + ("." + "0" * decimals if decimals else "")


def write_excel(
    sheets: Mapping[str, tuple[Any, bool]],
    path: Any,
    report: Sequence[str],
    places: Mapping[str, int],
    *,
    numbered: bool = False,
) -> None:
    """Write pandas tables as sheets of an Excel file, with or without index;
    the last sheet is the privacy statement.

    Columns that are in `places` are formatted with these decimals and with thousands. With numbers
    in front, names that are alike in their first letters stay different.

    Errors: UnsupportedOperation, also for a table that is longer than a sheet
    """
    check_installed("openpyxl", "to_excel() needs openpyxl")
    import pandas as pd

    ready = []
    for number, (name, (table, index)) in enumerate(sheets.items(), 1):
        if len(table) + table.columns.nlevels > _LINES:
            raise UnsupportedOperation(
                f"to_excel(): a sheet holds {_LINES - 1:,} rows, and {name!r} has more. Type "
                "out.to_csv('table.csv')."
            )
        title = f"{number} {name}" if numbered and len(sheets) > 1 else name
        ready.append(
            (_FORBIDDEN.sub("_", printable(title))[:31], _with_texts(table, _excel_cell), index)
        )
    statement = pd.DataFrame({"Privacy statement": report})
    ready.append(("privacy", _with_texts(statement, _excel_cell), False))
    with whole(path) as beside, pd.ExcelWriter(beside, engine="openpyxl") as book:
        for title, table, index in ready:
            table.to_excel(
                book, sheet_name=title, index=index, index_label=_corner(table) if index else None
            )
            _with_decimals(book.sheets[title], table, places, table.index.nlevels if index else 0)
        for cell in (
            cell for sheet in book.sheets.values() for row in sheet.iter_rows() for cell in row
        ):
            if cell.data_type in ("f", "e"):
                # A text such as "=1" or "#N/A" must become neither a formula nor an error.
                cell.data_type = "s"
                cell.quotePrefix = True  # nor when somebody edits it
            # Pandas gives durations this format, which would show whole days.
            if cell.number_format == "0":
                cell.number_format = "[h]:mm:ss"


def _places(name: Any, places: Mapping[str, int]) -> int | None:
    """The decimals of a pandas column, whose name in `places` is its key as
    text; None where nothing says them.
    """
    return places.get(label_of(in_tuple(name)))


def formats(table: Any, places: Mapping[str, int]) -> dict[Any, Callable[[Any], str]]:
    """The form of each column of a pandas table; marks among the numbers stay as they are."""

    def format_of(decimals: int) -> Callable[[Any], str]:
        return lambda cell: f"{cell:.{decimals}f}" if isinstance(cell, float) else on_its_day(cell)

    found = {name: _places(name, places) for name in table.columns}
    return {name: format_of(decimals) for name, decimals in found.items() if decimals is not None}


def _corner(table: Any) -> list[str] | None:
    """The names of the rows' keys, the last with the name of the columns' keys after a backslash.

    A head of several lines has cells for these names.
    """
    across = table.columns.names
    if len(across) > 1 or across[0] is None:
        return None
    down = [name or "" for name in table.index.names]
    return [*down[:-1], f"{down[-1]} \\ {across[0]}"]


def _with_texts(table: Any, change: Callable[[object], object], numbers: str = "iufbm") -> Any:
    """A pandas table whose cells, labels and names are changed one by one;
    columns of the kinds `numbers` are not.
    """
    table = table.copy()
    for at, dtype in enumerate(table.dtypes):
        # Columns are addressed by position, since two may have one name.
        if dtype.kind not in numbers:
            table.isetitem(at, table.iloc[:, at].map(change))
    return table.set_axis(_axis(table.index, change), axis=0).set_axis(
        _axis(table.columns, change), axis=1
    )


def _axis(axis: Any, change: Callable[[object], object]) -> Any:
    """The labels of rows or columns, and the names of these, each changed."""
    labels = axis.map(change if axis.nlevels == 1 else lambda key: tuple(map(change, key)))
    return labels.set_names([change(name) for name in axis.names])


def _excel_cell(value: object) -> object:
    """A value that Excel can hold: times with a zone are texts, control characters replaced."""
    match value:
        case dt.datetime() if value.tzinfo is not None:
            return value.isoformat(" ")
        case str():
            return printable(value)
    return value


def write_text(write: Callable[[Any], str | None], path: Any) -> str | None:
    """The text that `write` gives without a path, or the file that it writes."""
    if path is None:
        return write(None)
    with whole(path) as beside:
        return write(beside)


def in_file(text: str, path: Any) -> str | None:
    """A text, or the file or stream that it is written to."""

    def write(beside: Any) -> str | None:
        if beside is None:
            return text
        if hasattr(beside, "write"):
            beside.write(text)
        else:
            Path(beside).write_text(text, encoding="utf-8")
        return None

    return write_text(write, path)


def write_sql(table: Any, name: str, connection: Any, if_exists: str, release: str | None) -> None:
    """Write a pandas table, with the name of its release in a column, into
    a database, in one transaction.

    Errors: InvalidArgument
    """
    import sqlalchemy as sa

    if if_exists not in ("fail", "append", "replace"):
        raise InvalidArgument("to_sql: if_exists= is 'fail', 'append' or 'replace'.")
    if isinstance(connection, str):
        connection = sa.create_engine(connection)
    if not isinstance(connection, (sa.Engine, sa.Connection)):
        raise InvalidArgument(
            "to_sql: connection= is a connection or an engine of SQLAlchemy, or its URL."
        )
    column = unlike("release", set(map(str, table.columns)))
    table = table.assign(**{column: release})
    with ExitStack() as stack:
        if isinstance(connection, sa.Engine):
            connection = stack.enter_context(connection.begin())
        elif not connection.in_transaction():
            stack.enter_context(connection.begin())
        if if_exists == "append" and release is not None and sa.inspect(connection).has_table(name):
            kept = sa.table(name, sa.column(column))
            connection.execute(sa.delete(kept).where(kept.c[column] == release))
        table.to_sql(name, connection, if_exists=if_exists, index=False)


def write_latex(
    table: Any, path: Any, index: bool, options: Fields, notes: Sequence[str] = ()
) -> str | None:
    """A pandas table in LaTeX, with pandas' options.
    All texts are escaped, unless escape=False is among these.
    """
    check_installed("jinja2", "to_latex() needs Jinja2")
    more = {"index": index, "multirow": False, **options}  # which would need a package of its own
    if more.pop("escape", True):
        before, table = table.columns, _with_texts(table, _escaped, "iufb")
        if isinstance(kept := more.get("formatters"), Mapping):
            names = zip(before, table.columns, strict=True)
            more["formatters"] = {new: kept[old] for old, new in names if old in kept}
    below = "".join(f"\\par\\noindent {_in_latex(note)}\n" for note in notes)
    text = table.to_latex(escape=False, **more) + (
        f"{{\\footnotesize\n{below}\\par}}\n" if below else ""
    )
    return in_file(text, path)


def _in_latex(note: str) -> str:
    """A sentence for LaTeX, which has no letters of its own for the signs of mathematics."""
    text = for_latex(note)
    for sign, name in _SIGNS.items():
        text = text.replace(sign, f"\\ensuremath{{\\{name}}}")
    return text


def _escaped(value: object) -> object:
    match value:
        case dt.date() | dt.timedelta():
            return on_its_day(value)
        case str():
            return for_latex(value)
    return value


def write_csv(table: pl.DataFrame, path: Any, notes: Sequence[str] = ()) -> str | None:
    """A table as CSV: a text, or a file if there is a path.
    No cell and no name is a formula to a spreadsheet.

    Durations are written as in ISO 8601. Notes follow, each in a line that begins with "#".
    """
    table = _for_csv(table)
    if not notes:
        return write_text(table.write_csv, path)
    lines = [
        f"# {printable(note)}".replace("\n", " ").replace("\r", " ").replace('"', "'")
        for note in notes
    ]
    return in_file(table.write_csv() + "".join(f"{line}\n" for line in lines), path)


def write_csvw(
    table: pl.DataFrame, path: Any, keys: Sequence[str], nulls: Sequence[str], notes: Sequence[str]
) -> None:
    """Write the metadata of a CSV file beside it, as the W3C's "CSV on the Web" has them: JSON.

    Input:  table: as it is without marks, whose types are those of the numbers; keys: the columns
            that name a row; nulls: the marks
    Source: Metadata Vocabulary for Tabular Data, W3C Recommendation 2015
    """
    written_table, columns = _for_csv(table), []
    for name, title, dtype in zip(table.columns, written_table.columns, table.dtypes, strict=True):
        kind = next((word for types, word in _CSVW if isinstance(dtype, types)), "string")
        columns.append(
            {"titles": title, "datatype": kind, "null": "" if name in keys else list(nulls)}
        )
    about = {
        "@context": "http://www.w3.org/ns/csvw",
        "url": Path(path).name,
        "dialect": {"commentPrefix": "#"},
        "notes": list(notes),
        "tableSchema": {"columns": columns},
    }
    with whole(f"{os.fspath(path)}-metadata.json") as beside:
        Path(beside).write_text(json.dumps(about, indent=2, ensure_ascii=False), encoding="utf-8")


_CSVW: tuple[tuple[Any, str], ...] = (
    (pl.Boolean, "boolean"),
    (pl.Date, "date"),
    (pl.Datetime, "datetime"),
    (pl.Duration, "duration"),
    (pl.Time, "time"),
    ((pl.Float32, pl.Float64), "double"),
    ((pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64), "integer"),
    (pl.Decimal, "decimal"),
)


def in_iso(values: pl.Series) -> pl.Series:
    """Values as texts for files: times and durations as ISO 8601 writes them."""
    if not values.dtype.is_temporal():
        return values.cast(pl.String)
    return values.dt.to_string("iso" if values.dtype == pl.Duration else "iso:strict")


def _for_csv(table: pl.DataFrame) -> pl.DataFrame:
    texts = [column for column in table if column.dtype in (pl.String, pl.Categorical, pl.Enum)]
    table = table.with_columns(*map(_harmless, texts), pl.selectors.duration().dt.to_string("iso"))
    names: list[str] = []
    for name in table.columns:
        names.append(unlike(for_spreadsheets(name), set(names)))
    table.columns = names
    return table


def in_decimals(table: pl.DataFrame, places: Mapping[str, int]) -> pl.DataFrame:
    """A table with columns in so many decimals; ends of intervals, such as `x_low`
    and `high`, are rounded outward.

    The decimals of times and durations are those of their seconds.
    """
    columns = []
    for name, number in places.items():
        dtype, column = table.schema.get(name), pl.col(name)
        if dtype in (pl.Datetime, pl.Duration):
            step = round(max(1.0, 1 / seconds_of(1.0, dtype) / 10**number))
            up = 0 if name.endswith("_low") else step - 1 if name.endswith("_high") else step // 2
            ticks = column.to_physical().clip(step - 2**63, 2**63 - 1 - step)
            columns.append(((ticks + up) // step * step).cast(dtype))
        if dtype is None or not dtype.is_float():
            continue
        step = 10.0**number
        end = name.rpartition("_")[2]
        if end == "low":
            column = (column * step + _NEARLY).floor() / step
        if end == "high":
            column = (column * step - _NEARLY).ceil() / step
        columns.append(column.round(number))
    return table.with_columns(columns)


def _harmless(column: pl.Series) -> pl.Series:
    column = column.cast(pl.String)
    if not column.str.contains(MAY_RUN).any():
        return column
    texts = [None if text is None else for_spreadsheets(text) for text in column]
    return pl.Series(column.name, texts, dtype=pl.String)
