"""Released tables as notebooks show them: HTML with margins of error in small type."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import polars as pl

from dpframe.plan import label, on_its_day
from dpframe.release.shown.charts import decimals, margin, margins, shown
from dpframe.release.shown.crosstab import Crosstab, Key
from dpframe.release.shown.files import in_decimals

_ROWS = 60  # the largest number of rows of a table in a notebook
_SMALL = "font-size:75%;opacity:.7;white-space:nowrap"
_WIDE = "overflow-x:auto;margin:.6em 0"  # a wide table scrolls in its place
_CELL = "text-align:right;padding:.15em .6em"
_HEAD = "text-align:left;padding:.15em .6em"


def long_html(
    table: pl.DataFrame,
    errors: Mapping[str, Sequence[float | None]],
    keys: Sequence[str],
    mark: str | None = None,
) -> str:
    """A long table in HTML, each number with its margin of error in small
    type; at most 60 rows are shown.

    `mark` stands for a suppressed number, in place of a dash.

    If all rows share a margin of error, it is shown once, under the name of the column.
    """
    shared_errors = {
        name: _shared(table.get_column(name), errors[name])
        for name in table.columns
        if name not in keys
    }
    styles = {name: _HEAD if name in keys else _CELL for name in table.columns}
    head = "".join(
        f"<th style='{style}'>{escape(name)}{_small(shared_errors.get(name))}</th>"
        for name, style in styles.items()
    )
    body = []
    for i, row in enumerate(table.head(_ROWS).iter_rows()):
        cells = [
            _text(_key(value))
            if name in keys
            else _number(
                mark if value is None else value,
                errors[name][i],
                table.schema[name],
                alone=shared_errors[name] is not None,
            )
            for name, value in zip(table.columns, row, strict=True)
        ]
        body.append(f"<tr>{''.join(cells)}</tr>")
    return _wide(f"<tr>{head}</tr>", body, table.height)


def _wide(head: str, body: Sequence[str], rows: int) -> str:
    """A table of at most 60 rows that scrolls in its place, and the number of further rows."""
    more = f"<p>… and {rows - _ROWS} more rows.</p>" if rows > _ROWS else ""
    return (
        "<div "
        f"style='{_WIDE}'><table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table></div>{more}"
    )


def _shared(values: pl.Series, errors: Sequence[float | None]) -> str | None:
    """The margin of error that all shown numbers of a column share; None if they differ."""
    return margins(
        (e for value, e in zip(values, errors, strict=True) if value is not None), values.dtype
    )


def grid_html(grid: Crosstab) -> str:
    """A crosstab in HTML, each number with its margin of error in small
    type; at most 60 rows are shown.

    If all inner cells share a margin of error, it is shown once, above the rows. If all numbers of
    a margin share one, it is shown beside the name of the margin.
    """
    height, width = grid.sizes
    inner, right, bottom = (
        _same(grid, part)
        for part in (np.s_[:height, :width], np.s_[:height, width:], np.s_[height:, :width])
    )
    lines = []
    gap = "".join(f"<th style='{_HEAD}'>{escape(name)}</th>" for name in grid.down)
    for level, name in enumerate(grid.across):
        last = level == len(grid.across) - 1
        before = gap if last else "<th></th>" * len(grid.down)
        notes = [_small(right) if last and j >= width else "" for j in range(len(grid.columns))]
        keys = "".join(
            f"<th style='{_CELL}'>{escape(_key(key[level]))}{small}</th>"
            for key, small in zip(grid.columns, notes, strict=True)
        )
        note = f"<br>each cell ± {escape(inner)}" if last and inner is not None else ""
        lines.append(f"<tr>{before}<th style='{_SMALL}'>{escape(name)}{note}</th>{keys}</tr>")
    body = []
    for i in grid.order[:_ROWS]:
        shared = inner if i < height else bottom, right if i < height else None
        cells = "".join(
            _number(
                grid.marked[i, j], grid.errors[i, j].item(), alone=shared[j >= width] is not None
            )
            for j in range(len(grid.columns))
        )
        beside = _small(bottom).removeprefix("<br>") if i >= height else ""
        body.append(f"<tr>{_row_keys(grid.rows[i])}<td>{beside}</td>{cells}</tr>")
    return _wide("".join(lines), body, len(grid.rows))


def _same(grid: Crosstab, part: Any) -> str | None:
    """The margin of error that all numbers in a part of a grid share; None if they differ."""
    shown_ones: Any = grid.values[part].ravel() != None  # noqa: E711  # of each element
    errors = grid.errors[part].ravel()[shown_ones.astype(bool)]
    if errors.size > 1 and np.all(errors == errors[0]):
        return margins(errors[:2].tolist())
    return margins(errors.tolist())


def _small(error: str | None) -> str:
    """A margin of error in small type, on a line below its number or name."""
    return "" if error is None else f"<br><span style='{_SMALL}'>± {escape(error)}</span>"


def _row_keys(key: Key) -> str:
    return "".join(f"<th style='{_HEAD}'>{escape(_key(part))}</th>" for part in key)


def _key(part: Any) -> str:
    return on_its_day(part)


def _text(text: str) -> str:
    return f"<td style='{_HEAD}'>{escape(text)}</td>"


def _number(
    value: Any, error: float | None, dtype: pl.DataType | None = None, *, alone: bool = False
) -> str:
    """A cell with its margin of error (without it if `alone`);
    a dash if the number is suppressed or missing.
    """
    if value is None:
        return f"<td style='{_CELL}'>–</td>"
    if isinstance(value, dt.datetime | dt.timedelta) and dtype is not None:
        value = in_decimals(
            pl.DataFrame({"x": [value]}, {"x": dtype}), {"x": decimals(error, dtype)}
        )["x"][0]
    text = shown(value, error) if isinstance(value, (int, float)) else label(value)
    has_error = not alone and error is not None and not math.isnan(error)
    small = _small(margin(error, dtype)) if has_error and error is not None else ""
    return f"<td style='{_CELL}'>{escape(text)}{small}</td>"
