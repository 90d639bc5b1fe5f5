"""The chart of a crosstab: shaded cells with their numbers;
cells within their margin of error are hatched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpframe.arrays import Floats, Integers
from dpframe.drawing import Chart, Entries, altair
from dpframe.errors import UnsupportedOperation
from dpframe.plan import Covers
from dpframe.release.shown.charts.look import (
    GREY,
    MOST,
    Heading,
    Look,
    Order,
    drawn,
    label_of_key,
    labels_of,
    lines_of_labels,
)
from dpframe.release.shown.charts.numbers import MISSING, largest, margin, margins, shown, tick_text
from dpframe.release.shown.crosstab import Crosstab

# Cells are opaque, so that their numbers are readable on dark and on light pages.
_SHADES = ("#eaf1f8", "#1f5a92")
_BELOW, _ZERO = "#a8481c", "#f4f2ee"
# the colour under the hatching of a cell that is no larger than its margin of error
_PLAIN = "#e4e4e4"
_HATCH, _INK, _PAPER = "#c4c4c4", "#22303c", "#ffffff"
_CELL = (50, 34)  # the smallest width and height of a cell with a number (pixels)
_BARE = (14, 14)  # the smallest width and height of a cell without a number (pixels)
_UPRIGHT = 24  # the width (pixels) below which the label of a column is vertical
_TALL = 560  # the largest height of all cells together (pixels)
_LETTER = 7  # the width of a digit (pixels)


@dataclass(frozen=True)
class _Sheet:
    """The part of a grid that is drawn, with its labels and the size of its cells."""

    grid: Crosstab
    down: list[str]
    across: list[str]
    width: int  # width of a cell (pixels)
    height: int  # height of a cell (pixels)
    numbers: bool  # whether cells show their numbers
    angle: int  # angle of the labels above the columns
    notes: tuple[str, ...]


def heatmap(
    grid: Crosstab,
    words: str,
    heading: Heading,
    look: Look,
    *,
    signed: bool,
    covers: Covers = Covers.NOISE,
) -> Chart:
    """A crosstab as shaded cells with their numbers and margins of error; margins stay unshaded.

    Input:  grid, with intervals; words: a description of the numbers; heading; look; signed:
            whether a number can be negative without noise (there are then two colours, on either
            side of zero); covers: what intervals hold
    Output: Altair chart, at most 800 pixels wide and high; for larger tables the largest rows and
            columns
    Errors: UnsupportedOperation if there is no cell
    """
    if not all(grid.sizes):
        raise UnsupportedOperation("plot(): no group was released, so there is nothing to show.")
    alt = altair()
    sheet = _sheet(_sorted(grid, look.order), look)
    rows, shared_error = _rows(sheet)
    base = alt.Chart().encode(*_axes(sheet), tooltip=_tips(grid, words))
    inside = [row["value"] for row in rows if row["value"] is not None and not row["noise"]]
    scale, deep = _scale(inside, signed)
    legend = (
        None
        if sheet.numbers
        else alt.Legend(
            title=None,
            orient="bottom",
            gradientLength=min(240, sheet.width * len(sheet.across)),
            labelExpr=tick_text(largest(inside)),
        )
    )
    layers = [
        base.transform_filter("isValid(datum.value) && !datum.noise")
        .mark_rect()
        .encode(color=alt.Color("value:Q", scale=scale, legend=legend)),
        *_hatched(base, sheet, any(row["noise"] for row in rows)),
    ]
    if sheet.numbers:
        layers += _numbers(base, _ink(deep))
    # a row or column of them alone would not be on the axis
    elif any(row["value"] is None for row in rows):
        missing = base.transform_filter("!isValid(datum.value)")
        layers.append(missing.mark_text(fontSize=12, color=GREY).encode(text="text:N"))
    meanings = _meanings(sheet, shared_error, covers, hatched=any(row["noise"] for row in rows))
    size = {"width": alt.Step(sheet.width), "height": alt.Step(sheet.height)}
    chart = alt.layer(*layers, data=alt.InlineData(values=rows))
    heading = heading.also(*meanings, " ".join(sheet.notes))
    beside = _LETTER * max(len(line) for label in sheet.down for line in label.split("\n"))
    return drawn(chart, heading, look, size, inner=int(beside) + sheet.width * len(sheet.across))


# The table


def _sorted(grid: Crosstab, order: Order | None) -> Crosstab:
    """The grid with rows and columns sorted by their sums; margins stay last."""
    if order in (None, Order.KEYS):
        return grid
    sign = -1 if order is Order.LARGEST else 1
    down, across = (np.argsort(sign * sums, kind="stable") for sums in _sums(grid))
    return _taken(grid, down, across)


def _sums(grid: Crosstab) -> tuple[Floats, Floats]:
    """The sums of the inner cells of each row and of each column."""
    inner = np.nan_to_num(grid.numbers[: grid.sizes[0], : grid.sizes[1]], posinf=0.0, neginf=0.0)
    return inner.sum(axis=1), inner.sum(axis=0)


def _taken(grid: Crosstab, down: Integers, across: Integers, *, margins: bool = True) -> Crosstab:
    """Some rows and columns of a grid, with its margins or without."""
    height, width = grid.sizes
    rows = [*down.tolist(), *(range(height, len(grid.rows)) if margins else ())]
    columns = [*across.tolist(), *(range(width, len(grid.columns)) if margins else ())]
    at = np.ix_(rows, columns)
    return replace(
        grid,
        rows=[grid.rows[i] for i in rows],
        columns=[grid.columns[j] for j in columns],
        values=grid.values[at],
        lower=grid.lower[at],
        upper=grid.upper[at],
        marks=None if grid.marks is None else grid.marks[at],
        sizes=(len(down), len(across)),
    )


def _sheet(grid: Crosstab, look: Look) -> _Sheet:
    """Choose the part of a grid that fits, with its labels and the size of its cells."""
    wide = (look.wide or MOST) - 20
    tall = (look.high - 200) if look.high else _TALL
    row_labels = labels_of(grid.rows, min(look.label, 220))
    beside = max(6.6 * max(len(line) for line in label.split("\n")) for label in row_labels)
    room = int(wide - beside)
    digits = max((len(text) for text in _texts(grid)), default=1)
    need = max(_CELL[0], digits * _LETTER + 8)
    if need * len(grid.columns) <= room and _CELL[1] * len(grid.rows) <= tall:
        sheet = _with_numbers(grid, row_labels, need, room, tall, look)
        if sheet is not None:
            return sheet
    return _without_numbers(grid, look, room, tall)


def _with_numbers(
    grid: Crosstab, row_labels: list[str], need: int, room: int, tall: int, look: Look
) -> _Sheet | None:
    """A sheet of cells with numbers; None if labels (slanted if long) leave too little room."""
    most = room // len(grid.columns)
    words = max(len(word) for key in grid.columns for word in label_of_key(key).split())
    width = min(max(need, min(words * 7 + 10, 110), 84 if len(grid.columns) <= 5 else 0), most)
    width = most if look.wide else width
    if words * 7 <= width:
        top, angle = labels_of(grid.columns, width - 6), 0
    else:
        top, angle = _turned(grid.columns, width)
        width = min(width, (room - _overhang(top, angle)) // len(grid.columns))
    if width < need:
        return None
    lines = max(label.count("\n") + 1 for label in row_labels)
    tall -= max(_reach(top) - 90, 0) if angle else 0
    height = (
        tall // len(grid.rows)
        if look.high
        else min(max(_CELL[1], 14 * lines + 6), tall // len(grid.rows))
    )
    if height < 20:
        return None
    return _Sheet(grid, row_labels, top, width, height, True, angle, ())


def _turned(columns: Sequence[Any], width: int) -> tuple[list[str], int]:
    """Labels for narrow columns, and their angle: slanted, or vertical for too many lines."""
    if width >= _UPRIGHT:
        for pixels in (150, 200):
            labels = labels_of(columns, pixels)
            if 14 * max(label.count("\n") + 1 for label in labels) <= 0.77 * width:
                return labels, -50
    return labels_of(columns, 250, max(width // 14, 1)), -90


def _overhang(labels: Sequence[str], angle: int) -> int:
    """The length by which the longest line of a slanted label reaches beyond its
    column, to the right (pixels).
    """
    return int(0.65 * _reach(labels)) if angle == -50 else 0


def _reach(labels: Sequence[str]) -> int:
    """The length of the longest line of any label (pixels)."""
    return 7 * max(len(line) for label in labels for line in label.split("\n"))


def _without_numbers(grid: Crosstab, look: Look, room: int, tall: int) -> _Sheet:
    """A sheet of shades without numbers and margins;
    of too many rows or columns only the largest are shown.
    """
    height, width = grid.sizes
    tall -= max(min(7 * max(len(label_of_key(key)) for key in grid.columns), 250) - 60, 0)
    most = max(tall // _BARE[1], 1), max(room // _BARE[0], 1)
    notes = []
    shown_places = []
    for number, limit, sums, name in zip(
        (height, width), most, _sums(grid), ("rows", "columns"), strict=True
    ):
        places = np.arange(number)
        if number > limit:
            ordered = look.order not in (None, Order.KEYS)
            places = (
                places[:limit] if ordered else np.sort(np.argsort(-sums, kind="stable")[:limit])
            )
            which = "smallest" if look.order is Order.SMALLEST else "largest"
            notes.append(
                f"The {limit} {which} of {number:,} {name}; {number - limit:,} are not shown."
            )
        shown_places.append(places)
    part = _taken(grid, shown_places[0], shown_places[1], margins=False)
    lines = max(label.count("\n") + 1 for label in labels_of(part.rows, min(look.label, 220)))
    high = min(max(tall // len(part.rows), _BARE[1]), max(26, 14 * lines + 4))
    row_labels = labels_of(part.rows, min(look.label, 220), max(high // 14, 1))
    top, angle = labels_of(part.columns, 1000), 0
    step = min(room // len(top), 1000 if look.wide else 34)
    if max(len(label) for label in top) * 7 + 4 > step:
        top, angle = _turned(part.columns, step)
        step = max(min(step, (room - _overhang(top, angle)) // len(top)), 1)
    return _Sheet(part, row_labels, top, step, high, False, angle, tuple(notes))


def _texts(grid: Crosstab) -> list[str]:
    """The numbers of all cells as text."""
    return [_text(grid, i, j) for i, j in np.ndindex(grid.values.shape)]


def _text(grid: Crosstab, i: int, j: int) -> str:
    """The number of a cell as text; its mark, or a dash, where none is shown."""
    if grid.values[i, j] is not None:
        return shown(grid.values[i, j], grid.errors[i, j].item())
    mark = None if grid.marks is None else grid.marks[i, j]
    return MISSING if not mark else str(mark)


def _rows(sheet: _Sheet) -> tuple[list[Entries], str | None]:
    """The cells as rows of data, and the margin of error that all inner cells share, if any."""
    grid = sheet.grid
    height, width = grid.sizes
    shared_error = margins(
        e
        for e, v in zip(
            grid.errors[:height, :width].ravel(), grid.values[:height, :width].ravel(), strict=True
        )
        if v is not None
    )
    rows = []
    for (i, j), value in np.ndenumerate(grid.values):
        error = grid.errors[i, j].item()
        inner = i < height and j < width
        certain = value is not None and not math.isnan(error)
        finite = value is not None and math.isfinite(value)
        interval = f"± {margin(error)}" if certain else ""
        rows.append(
            {
                "down": sheet.down[i],
                "across": sheet.across[j],
                "value": float(value) if inner and finite else None,
                "text": _text(grid, i, j),
                "error": "" if inner and shared_error is not None else interval,
                "interval": interval,
                "noise": bool(inner and finite and certain and abs(value) <= error > 0),
                "row": label_of_key(grid.rows[i]),
                "column": label_of_key(grid.columns[j]),
            }
        )
    return rows, shared_error


# The picture


def _axes(sheet: _Sheet) -> tuple[Chart, Chart]:
    alt = altair()
    grid = sheet.grid
    turned: Entries = {"labelAngle": 0, "labelPadding": _above(14)}
    if sheet.angle == -50:
        turned = {
            "labelAngle": -50,
            "labelAlign": "left",
            "labelPadding": _above(9),
            "labelOffset": _above(-5, 0),
        }
    if sheet.angle == -90:
        turned = {
            "labelAngle": -90,
            "labelAlign": "left",
            "labelPadding": 5,
            "labelOffset": _above(-7, 0),
        }
    top = {
        "orient": "top",
        "titleAnchor": "start",
        **lines_of_labels(sheet.across, centred=False),
        **turned,
    }
    beside = {"titleAngle": 0, "titleAlign": "right", "titleX": -8, "titleY": -8, "labelPadding": 6}
    across = alt.Axis(title=", ".join(grid.across), **top)
    title = ", ".join(grid.down)
    down = alt.Axis(title=title, **beside, **lines_of_labels(sheet.down, title, centred=True))
    between = alt.Scale(paddingInner=0.03 if sheet.numbers else 0.0, paddingOuter=0)
    x = alt.X("across:N", sort=sheet.across, axis=across, scale=between)
    rows = [sheet.down[i] for i in grid.order]
    return x, alt.Y("down:N", sort=rows, axis=down, scale=between)


def _above(per_line: int, first: int = 5) -> dict[str, str]:
    """A distance (pixels) that grows with each further line of a label."""
    return {"expr": f"{first} + {per_line} * (length(split(datum.label, '\\n')) - 1)"}


def _tips(grid: Crosstab, words: str) -> list[Chart]:
    alt = altair()
    return [
        alt.Tooltip("row:N", title=", ".join(grid.down)),
        alt.Tooltip("column:N", title=", ".join(grid.across)),
        alt.Tooltip("text:N", title=words),
        alt.Tooltip("interval:N", title="95% margin of error"),
    ]


def _scale(inside: Sequence[float], signed: bool) -> tuple[Chart, str]:
    """The colours of cells, and the condition under which a cell is so dark
    that its number must be white.
    """
    alt = altair()
    most, plain = max(map(abs, inside), default=0.0) or 1.0, {"clamp": True, "interpolate": "rgb"}
    if signed and min(inside, default=0.0) < 0:
        scale = alt.Scale(domain=[-most, 0, most], range=[_BELOW, _ZERO, _SHADES[1]], **plain)
        return scale, f"abs(datum.value) > {0.6 * most!r}"
    return alt.Scale(
        domain=[0, most], range=list(_SHADES), **plain
    ), f"datum.value > {0.6 * most!r}"


def _ink(deep: str) -> Chart:
    """The colour of a number: white on dark cells, dark on light cells, and the
    colour of the axes in a margin.
    """
    inner = {"test": "isValid(datum.value)", "value": _INK}
    return {
        "condition": [
            {"test": f"{inner['test']} && !datum.noise && ({deep})", "value": _PAPER},
            inner,
        ],
        "value": GREY,
    }


def _numbers(base: Chart, color: Chart) -> list[Chart]:
    """The numbers of cells, and below them their margins of error unless all cells share one."""
    alone, above = (
        base.transform_filter(test) for test in ("datum.error == ''", "datum.error != ''")
    )
    return [
        alone.mark_text(fontSize=12).encode(text="text:N", color=color),
        above.mark_text(dy=-6, fontSize=12).encode(text="text:N", color=color),
        above.mark_text(dy=8, fontSize=10).encode(text="error:N", color=color),
    ]


def _hatched(base: Chart, sheet: _Sheet, some: bool) -> list[Chart]:
    """Cells that are no larger than their margins of error: grey, with lines across them."""
    if not some:
        return []
    alt = altair()
    gap = 0.03 if sheet.numbers else 0.0
    lines = _hatching(sheet.width * (1 - gap), sheet.height * (1 - gap))
    noise = base.transform_filter("datum.noise")
    return [
        noise.mark_rect(color=_PLAIN),
        noise.mark_point(
            shape=lines, size=4, filled=False, stroke=_HATCH, strokeWidth=1, opacity=1
        ).encode(size=alt.value(4)),
    ]


def _hatching(width: float, height: float, apart: float = 9.0) -> str:
    """A path of slanted lines across a cell whose middle is at 0 (pixels)."""
    right, low = width / 2, height / 2
    parts = []
    for number in range(-int((right + low) / apart), int((right + low) / apart) + 1):
        shift = number * apart  # the line x + y = shift
        ends = [(x, shift - x) for x in (-right, right) if -low <= shift - x <= low]
        ends += [(shift - y, y) for y in (-low, low) if -right < shift - y < right]
        if len(ends) >= 2:
            (a, b), (c, d) = ends[0], ends[-1]
            parts.append(f"M{a:.1f},{b:.1f}L{c:.1f},{d:.1f}")
    return "".join(parts)


def _meanings(
    sheet: _Sheet, shared_error: str | None, covers: Covers, *, hatched: bool
) -> list[str]:
    """The lines of the subtitle that explain shades, numbers and hatching."""
    grid = sheet.grid
    inner = grid.errors[: grid.sizes[0], : grid.sizes[1]]
    errors = inner[~np.isnan(inner)]
    lines = []
    if shared_error is not None:
        lines.append(f"95% margin of error of a cell: ± {shared_error}, {covers.margins}.")
    elif sheet.numbers and errors.size:
        lines.append(f"Small: 95% margins of error {covers.margins}.")
    elif errors.size:
        lines.append(
            f"95% margins of error {covers.margins}: up to ± {margin(float(errors.max()))}."
        )
    if hatched:
        lines.append("Hatched: no larger than the margin of error.")
    marks = dict.fromkeys(
        _text(grid, i, j) for i, j in np.ndindex(grid.values.shape) if grid.values[i, j] is None
    )
    if marks:
        lines.append(
            f"{', '.join(marks)}: no number is {'shown' if grid.marks is not None else 'released'}."
        )
    return [" ".join(lines)] if lines else []
