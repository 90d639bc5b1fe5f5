"""Released tables as files and markup, each with what a reader needs to know of its noise."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.util import find_spec
from typing import Any

import numpy as np
import polars as pl

from dpframe.errors import UnsupportedOperation
from dpframe.release.publish.charts import margin, margins, shown
from dpframe.release.publish.crosstab import Crosstab, Key

__all__ = ["check_installed", "grid_html", "long_html", "write_excel", "write_parquet"]

_FORBIDDEN = re.compile(r"[\[\]:*?/\\']")  # in the name of a sheet, which has at most 31 characters
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # what XML, and so Excel, has no sign for
STATEMENT = b"dpframe.privacy_statement"  # the key of the statement in the metadata of a Parquet file
_ROWS = 60  # of a table in a notebook
_SMALL = "font-size:75%;opacity:.7;white-space:nowrap"
_WIDE = "overflow-x:auto;margin:.6em 0"  # a wide table scrolls in its place
_CELL = "text-align:right;padding:.15em .6em"
_HEAD = "text-align:left;padding:.15em .6em"


def write_parquet(table: Any, path: Any, statement: Mapping[str, Any]) -> None:
    """A PyArrow table as a Parquet file whose metadata hold the privacy statement, as JSON."""
    import pyarrow.parquet as pq

    said = json.dumps(statement, ensure_ascii=False).encode()
    pq.write_table(table.replace_schema_metadata({**(table.schema.metadata or {}), STATEMENT: said}), path)


def check_installed(module: str, said: str, extra: str) -> None:
    """Refuse where an extra is not installed, with what to type. Errors: UnsupportedOperation."""
    if find_spec(module) is None:
        raise UnsupportedOperation(f"{said}. Install it with: pip install 'dpframe[{extra}]'")


def write_excel(sheets: Mapping[str, tuple[Any, bool]], path: Any, report: str) -> None:
    """Pandas tables as sheets of an Excel file, each with or without its index, and the privacy statement on the last.

    Errors: UnsupportedOperation
    """
    check_installed("openpyxl", "to_excel() needs openpyxl", "excel")
    import pandas as pd

    ready = []
    for number, (name, (table, index)) in enumerate(sheets.items(), 1):
        title = name if len(sheets) == 1 else f"{number} {name}"
        ready.append((_FORBIDDEN.sub("_", title)[:31], _for_excel(table), index))
    ready.append(("privacy", _for_excel(pd.DataFrame({"Privacy statement": report.splitlines()[1:]})), False))
    with pd.ExcelWriter(path, engine="openpyxl") as book:
        for title, table, index in ready:
            table.to_excel(book, sheet_name=title, index=index)
        for cell in (cell for sheet in book.sheets.values() for row in sheet.iter_rows() for cell in row):
            if cell.data_type == "f":
                cell.data_type = "s"  # a text that begins with "=" is no formula
            if cell.number_format == "0":  # what pandas gives to durations, which then show as whole days
                cell.number_format = "[h]:mm:ss"


def _for_excel(table: Any) -> Any:
    """A pandas table of what a cell of Excel can hold: see `_excel_cell`."""
    table = table.copy()
    for at, dtype in enumerate(table.dtypes):
        if dtype.kind not in "iufbm":  # a table may have two columns of one name
            table.isetitem(at, table.iloc[:, at].map(_excel_cell))
    return table.set_axis(_excel_axis(table.index), axis=0).set_axis(_excel_axis(table.columns), axis=1)


def _excel_axis(axis: Any) -> Any:
    """The labels of rows or columns, and the names of these, as Excel can hold them."""
    labels = axis.map(_excel_cell if axis.nlevels == 1 else lambda key: tuple(map(_excel_cell, key)))
    return labels.set_names([_excel_cell(name) for name in axis.names])


def _excel_cell(value: object) -> object:
    """A value as Excel can hold it: times with a zone as text, and texts without control characters."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.isoformat(" ")
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", value) if isinstance(value, str) else value


def long_html(table: pl.DataFrame, errors: Mapping[str, Sequence[float | None]], keys: Sequence[str]) -> str:
    """A long table in HTML, each number with its margin of error in small type; long ones are shortened.

    A margin of error that all rows share is under the name of the column, once.
    """
    named = {name: _shared(table.get_column(name), errors[name]) for name in table.columns if name not in keys}
    head = "".join(
        f"<th style='{_HEAD if name in keys else _CELL}'>{escape(name)}{_small(named.get(name))}</th>"
        for name in table.columns
    )
    body = []
    for i, row in enumerate(table.head(_ROWS).iter_rows()):
        cells = [
            _text(_key(value))
            if name in keys
            else _number(value, errors[name][i], table.schema[name], alone=named[name] is not None)
            for name, value in zip(table.columns, row, strict=True)
        ]
        body.append(f"<tr>{''.join(cells)}</tr>")
    more = f"<p>… and {table.height - _ROWS} more rows.</p>" if table.height > _ROWS else ""
    return (
        f"<div style='{_WIDE}'><table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>{more}"
    )


def _shared(values: pl.Series, errors: Sequence[float | None]) -> str | None:
    """The margin of error of every number of a column that is shown, where there is but one."""
    return margins((e for value, e in zip(values, errors, strict=True) if value is not None), values.dtype)


def grid_html(grid: Crosstab) -> str:
    """A crosstab in HTML, each number with its margin of error in small type; long ones are shortened.

    A margin of error that all inner cells share is said once, above the rows. One that the numbers of a margin share is
    beside its name.
    """
    height, width = grid.sizes
    inner, right, bottom = (
        _same(grid, part) for part in (np.s_[:height, :width], np.s_[:height, width:], np.s_[height:, :width])
    )
    lines = []
    gap = "".join(f"<th style='{_HEAD}'>{escape(name)}</th>" for name in grid.down)
    for level, name in enumerate(grid.across):
        last = level == len(grid.across) - 1
        before = gap if last else "<th></th>" * len(grid.down)
        keys = "".join(
            f"<th style='{_CELL}'>{escape(_key(key[level]))}{_small(right) if last and j >= width else ''}</th>"
            for j, key in enumerate(grid.columns)
        )
        said = f"<br>each cell ± {escape(inner)}" if last and inner is not None else ""
        lines.append(f"<tr>{before}<th style='{_SMALL}'>{escape(name)}{said}</th>{keys}</tr>")
    body = []
    for i in range(min(len(grid.rows), _ROWS)):
        shared = inner if i < height else bottom, right if i < height else None
        cells = "".join(
            _number(grid.values[i, j], grid.errors[i, j].item(), alone=shared[j >= width] is not None)
            for j in range(len(grid.columns))
        )
        beside = _small(bottom).removeprefix("<br>") if i >= height else ""
        body.append(f"<tr>{_row_keys(grid.rows[i])}<td>{beside}</td>{cells}</tr>")
    more = f"<p>… and {len(grid.rows) - _ROWS} more rows.</p>" if len(grid.rows) > _ROWS else ""
    return (
        f"<div style='{_WIDE}'><table><thead>{''.join(lines)}</thead><tbody>{''.join(body)}</tbody></table></div>{more}"
    )


def _same(grid: Crosstab, part: Any) -> str | None:
    """The margin of error of every number in a part of a grid, where there is but one."""
    pairs = zip(grid.values[part].ravel(), grid.errors[part].ravel().tolist(), strict=True)
    return margins(error for value, error in pairs if value is not None)


def _small(error: str | None) -> str:
    """A margin of error in small type, below what it belongs to."""
    return "" if error is None else f"<br><span style='{_SMALL}'>± {escape(error)}</span>"


def _row_keys(key: Key) -> str:
    return "".join(f"<th style='{_HEAD}'>{escape(_key(part))}</th>" for part in key)


def _key(part: Any) -> str:
    return "null" if part is None else str(part)


def _text(text: str) -> str:
    return f"<td style='{_HEAD}'>{escape(text)}</td>"


def _number(value: Any, error: float | None, dtype: pl.DataType | None = None, *, alone: bool = False) -> str:
    """A cell, `alone` without its margin of error; a dash where the number is suppressed or there is none."""
    if value is None:
        return f"<td style='{_CELL}'>–</td>"
    text = shown(value, error) if isinstance(value, (int, float)) else str(value)
    known = not alone and error is not None and not math.isnan(error)
    small = _small(margin(error, dtype)) if known and error is not None else ""
    return f"<td style='{_CELL}'>{escape(text)}{small}</td>"
