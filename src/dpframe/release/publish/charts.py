"""Charts of a release: bars with their errors, and crosstabs as heatmaps. They need the extra `charts` (Altair)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from dpframe.errors import UnsupportedOperation
from dpframe.release.publish.crosstab import Crosstab, Key

__all__ = ["bars", "heatmap", "margin", "shown"]

_BLUE, _DEEP, _DARK, _LIGHT = "#5b8db8", "#2c5f8a", "#1d2f3f", "#eef3f7"
_WIDTH = 480  # of the plot; with the labels it stays within a notebook's 800 pixels
_ABOVE = {"titleAngle": 0, "titleAlign": "right", "titleX": -8, "titleY": -10}  # the title of labels, on top of them
_LABEL = 260  # of the longest label
_STEP = 24
_MOST = 400  # bars, or cells, that can be told apart
_PARTS = ("value", "lower", "upper")
_DAY = 86_400
_TIMES = (_DAY, "days"), (3_600, "hours"), (60, "minutes")
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}


def _altair() -> Any:
    try:
        import altair
    except ImportError as problem:
        raise UnsupportedOperation("plot() needs Altair. Install it with: pip install 'dpframe[charts]'") from problem
    return altair


def bars(errors: pl.DataFrame, by: tuple[str, ...], column: str, dtype: pl.DataType | None = None) -> Any:
    """One bar per group with its interval; one point for a date or time, which has no zero for a bar to start at.

    Input:  errors: the table of `Release.accuracy`, of one column; by: what its first columns, the keys, are called;
            dtype: that of the column, times are in its ticks
    Output: Altair chart; bars lie where labels are long or many, so that these can be read
    """
    alt = _altair()
    if not errors.height:
        raise UnsupportedOperation("plot(): no group was released, so there is nothing to show.")
    if errors.height > _MOST:
        raise UnsupportedOperation(f"plot(): {errors.height} bars cannot be told apart; plot fewer groups.")
    labels = [
        ", ".join("null" if part is None else str(part) for part in key)
        for key in errors.select(errors.columns[: len(by)]).rows()
    ]
    numbers, unit = errors.select(_PARTS), ""
    moments = isinstance(dtype, pl.Date | pl.Datetime)
    if isinstance(dtype, pl.Duration):
        numbers, unit = _durations(numbers, dtype)
    if moments:
        numbers = _moments(numbers, dtype)
    data = numbers.insert_column(0, pl.Series("label", labels)).to_pandas()
    known = [x for part in _PARTS for x in data[part] if x == x]
    flat = len(labels) <= 12 and sum(len(label) for label in labels) * 7 < _WIDTH
    order = list(dict.fromkeys(labels))
    name = alt.Axis(title=", ".join(by), labelLimit=_LABEL, labelAngle=0, **({} if flat else _ABOVE))
    label = alt.X if flat else alt.Y
    number = alt.Y if flat else alt.X
    at = label("label:N", sort=order, axis=name, scale=alt.Scale(paddingInner=0.25))
    tips = [alt.Tooltip("label:N", title=", ".join(by))]
    if moments:
        kind, scale, format_ = "T", alt.Scale(type="utc", domain=_around(known), nice=False), _time_format(known)
        tips += [alt.Tooltip(f"{part}_text:N", title=part) for part in _PARTS]
    else:
        most = max(map(abs, known), default=0.0)
        kind, format_ = "Q", "~s" if most >= 1e6 else ",.0f" if most >= 20 else ",.4~g"
        low, high = min([*known, 0.0]), max([*known, 0.0])
        room = 0.03 * (high - low)
        scale = alt.Scale(domain=[low - room * (low < 0), high + room if high > low else 1.0], nice=False)
        tips += [alt.Tooltip(f"{part}:Q", format=format_) for part in _PARTS]
    axis = alt.Axis(title=f"{column}{unit}, with 95% margins of error", format=format_, tickCount=4 if moments else 8)
    base = alt.Chart(data)
    shape = base.mark_point(color=_BLUE, filled=True, opacity=1, size=70) if moments else base.mark_bar(color=_BLUE)
    bar = shape.encode(at, number(f"value:{kind}", axis=axis, scale=scale), tooltip=tips)
    second = alt.Y2 if flat else alt.X2
    rule = base.mark_rule(color=_DARK, strokeWidth=1.5).encode(
        at, number(f"lower:{kind}"), second("upper"), tooltip=tips
    )
    ends = [
        base.mark_tick(color=_DARK, thickness=1.5, size=8, orient="horizontal" if flat else "vertical").encode(
            at, number(f"{end}:{kind}"), tooltip=tips
        )
        for end in ("lower", "upper")
    ]
    size = {"width": _WIDTH, "height": 260} if flat else {"width": _WIDTH, "height": alt.Step(_STEP)}
    return alt.layer(bar, rule, *ends).properties(**size)


def _durations(ticks: pl.DataFrame, dtype: pl.Duration) -> tuple[pl.DataFrame, str]:
    """Durations in the unit that suits the largest of them, and its name in words."""
    seconds = ticks / _PER_SECOND[dtype.time_unit]
    size, unit = _unit(max((abs(x) for row in seconds.rows() for x in row if x is not None), default=0.0))
    return seconds / size, f" ({unit})"


def _moments(ticks: pl.DataFrame, dtype: pl.DataType | None) -> pl.DataFrame:
    """Dates or times as milliseconds since 1970, as a clock on the wall of their zone counts them, and as texts."""
    times = ticks.select(pl.all().round().cast(pl.Int64).cast(dtype or pl.Date))
    texts = times.select(pl.all().dt.to_string("iso").str.slice(0, 19).name.suffix("_text"))
    if isinstance(dtype, pl.Datetime):
        times = times.select(pl.all().dt.replace_time_zone(None))
    return pl.concat([times.select(pl.all().cast(pl.Datetime("ms")).cast(pl.Int64)), texts], how="horizontal")


def _around(known: list[float]) -> list[float]:
    """The ends of an axis of time (milliseconds), a little beyond what is known."""
    if not known:
        return [0.0, 1000.0 * _DAY]
    low, high = min(known), max(known)
    room = 0.05 * (high - low) or 500.0 * _DAY
    return [low - room, high + room]


def _time_format(known: list[float]) -> str:
    """How the ticks of an axis of time are written: as in ISO 8601, without what they have in common."""
    span = (max(known, default=0.0) - min(known, default=0.0)) / 1000
    return "%Y-%m-%d" if span == 0 or span > 6 * _DAY else "%Y-%m-%d %H:%M" if span > 600 else "%Y-%m-%d %H:%M:%S"


def heatmap(grid: Crosstab, title: str) -> Any:
    """A crosstab as shaded cells with their numbers and margins of error; margins stay unshaded.

    Input:  the grid, with intervals; what the numbers are
    Output: Altair chart
    """
    alt = _altair()
    height, width = grid.sizes
    if not height * width:
        raise UnsupportedOperation("plot(): no group was released, so there is nothing to show.")
    if len(grid.rows) * len(grid.columns) > _MOST:
        raise UnsupportedOperation(f"plot(): a table of {height} by {width} has too many cells to read as a picture.")
    down, across = _labels(grid.rows), _labels(grid.columns)
    rows = []
    for (i, j), value in np.ndenumerate(grid.values):
        error = grid.errors[i, j].item()
        inner = i < height and j < width
        text = "–" if value is None else shown(value, error)
        rows.append(
            (down[i], across[j], value if inner else None, text, "" if math.isnan(error) else f"± {margin(error)}")
        )
    schema = {"down": pl.String, "across": pl.String, "value": pl.Float64, "text": pl.String, "error": pl.String}
    table = pl.DataFrame(rows, schema, orient="row", strict=False)
    inside = [x for x in table["value"].to_list() if x is not None]
    low, high = min([*inside, 0.0]), max([*inside, 1e-9])
    scale = alt.Scale(range=[_LIGHT, _DEEP], domain=[low, high])
    x = alt.X(
        "across:N",
        sort=across,
        axis=alt.Axis(
            title=", ".join(grid.across),
            orient="top",
            labelLimit=_LABEL,
            labelAngle=0 if _fits(across) else -40,
            labelAlign="center" if _fits(across) else "left",
            ticks=False,
            domain=False,
        ),
    )
    y = alt.Y(
        "down:N",
        sort=down,
        axis=alt.Axis(title=", ".join(grid.down), labelLimit=_LABEL, ticks=False, domain=False, **_ABOVE),
    )
    tips = [alt.Tooltip("down:N", title=", ".join(grid.down)), alt.Tooltip("across:N", title=", ".join(grid.across))]
    tips += [alt.Tooltip("text:N", title=title), alt.Tooltip("error:N", title="95% margin of error")]
    base = alt.Chart(table.to_pandas()).encode(x, y, tooltip=tips)
    dark = alt.condition(f"datum.value > {low + 0.6 * (high - low)}", alt.value("white"), alt.value(_DARK))
    cells = (
        base.transform_filter("isValid(datum.value)")
        .mark_rect()
        .encode(color=alt.Color("value:Q", scale=scale, legend=None))
    )
    number = base.mark_text(dy=-5, fontSize=12).encode(text="text:N", color=dark)
    small = base.mark_text(dy=8, fontSize=9, opacity=0.85).encode(text="error:N", color=dark)
    step = max(58, _WIDTH // len(across)) if len(across) < 9 else 58
    layers = alt.layer(cells, number, small).properties(width=alt.Step(step), height=alt.Step(36), title=title)
    return layers.configure_view(stroke=None).configure_title(anchor="start", fontSize=13, fontWeight="normal")


def _fits(labels: list[str]) -> bool:
    step = max(58, _WIDTH // len(labels)) if len(labels) < 9 else 58
    return max(map(len, labels)) * 6.2 <= step


def _labels(keys: list[Key]) -> list[str]:
    """Keys as different texts."""
    labels: list[str] = []
    for key in keys:
        text = ", ".join("null" if part is None else str(part) for part in key if part != "")
        while text in labels:
            text += "_"
        labels.append(text)
    return labels


def shown(value: float, error: float | None = None) -> str:
    """A number as people read it: integers in full, fractions to two digits of their error, or to four digits."""
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    if error is not None and 0 < error < math.inf:
        text = f"{value:.{min(max(1 - math.floor(math.log10(error)), 0), 12)}f}"
        return text.removeprefix("-") if not float(text) else text
    return f"{value:.4g}"


def _unit(seconds: float) -> tuple[int, str]:
    """The unit in which a time is read: how many seconds it has, and its name."""
    return next((time for time in _TIMES if seconds >= 2 * time[0]), (1, "seconds"))


def margin(error: float, dtype: pl.DataType | None = None) -> str:
    """A margin of error to three digits, rounded up; of a column of times, whose errors are in ticks, in a unit.

    >>> margin(0.12345), margin(3.6e9, pl.Datetime("us")), margin(12.5, pl.Date())
    ('0.124', '60 minutes', '12.5 days')
    """
    if dtype is not None and dtype.is_temporal():
        seconds = error * (_DAY if dtype == pl.Date else 1 / _PER_SECOND[dtype.time_unit])  # type: ignore[attr-defined]
        size, unit = _unit(seconds)
        return f"{margin(seconds / size)} {unit}"
    if error <= 0 or not math.isfinite(error):
        return f"{error:g}"
    step = 10.0 ** min(math.floor(math.log10(error)) - 2, 0)
    return shown(round(math.ceil(error / step - 1e-9) * step, 12))
