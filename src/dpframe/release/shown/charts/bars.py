"""Bars and lines with their intervals.

Bars are horizontal for names, vertical for bins and numbers; dates and times are points. Lines
stand in a band of their intervals: over time, and over more bins or numbers than bars can show.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpframe.drawing import Chart, Entries, altair
from dpframe.release.shown.charts.look import (
    BAND,
    BANDS,
    NOISE,
    SERIES,
    TINTS,
    Look,
    label_of_key,
    labels_of,
    lines_of_labels,
)
from dpframe.release.shown.charts.marks import ChartMark, Key, time_format, tooltips
from dpframe.release.shown.charts.numbers import DAY
from dpframe.release.shown.charts.places import BinPlace, NumberPlace, Parts, TimePlace
from dpframe.safe_text import for_script

HIGH = 610  # height of the bars of a chart (pixels); with its title the chart stays within 800
# places the axis title above the labels
_ABOVE = {"titleAngle": 0, "titleAlign": "right", "titleX": -8, "titleY": -8}


def step_of(lines: int, series: int) -> int:
    """The height of a group of horizontal bars (pixels):
    room for its label and for each of its bars.
    """
    return max(24, 14 * lines + 8, 13 * series + 8 if series > 1 else 0)


def how_many_fit(keys: Sequence[Key], series: int, look: Look) -> int:
    """The number of groups of horizontal bars that fit into a picture."""
    high = HIGH if look.high is None else max(look.high - 130, 40)
    for number in range(min(len(keys), high // step_of(1, series)), 1, -1):
        lines = max(label.count("\n") + 1 for label in labels_of(keys[:number], look.label))
        if number * step_of(lines, series) <= high:
            return number
    return 1


def below_one_another(parts: Parts, look: Look) -> tuple[Chart, Entries]:
    """Horizontal bars with intervals: one for each group, or one for each series of a group.

    Output: Altair chart, and its size
    """
    alt = altair()
    labels = labels_of([key for key, _ in parts.groups], look.label)
    rows = [
        _row(mark, name, parts, label=label)
        for label, (_, marks) in zip(labels, parts.groups, strict=True)
        for name, mark in marks.items()
    ]
    axis = alt.Axis(
        title=parts.title,
        labelPadding=6,
        **_ABOVE,
        **lines_of_labels(labels, parts.title, centred=True),
    )
    y = alt.Y(
        "label:N", sort=labels, axis=axis, scale=alt.Scale(paddingInner=0.28, paddingOuter=0.14)
    )
    several = len(parts.series) > 1
    places = [y, alt.YOffset("series:N", sort=parts.series)] if several else [y]
    base = alt.Chart().encode(*places, tooltip=tooltips(parts.by, parts.values.title))
    tick = base.mark_tick(thickness=2, size=8, orient="vertical")
    lines = max((label.count("\n") + 1 for label in labels), default=1)
    step = {"step": step_of(lines, len(parts.series)), **({"for": "position"} if several else {})}
    return _layers(rows, base, base, tick, parts, alt.X, look), {
        "width": look.width,
        "height": look.high or step,
    }


def beside_one_another(parts: Parts, look: Look) -> tuple[Chart, Entries]:
    """Vertical bars in the order of bins or numbers; the null group stands apart at the end.

    Output: Altair chart, and its size
    """
    alt = altair()
    place = parts.place
    assert isinstance(place, BinPlace | NumberPlace)
    room = (look.width - 70) / (place.size + 1)  # pixels of a group
    ticks = place.ticks(label_every(place.labels, room, by_value=place.by_value))
    size, rows, width = float(place.size), [], 0.84 / len(parts.series)
    for key, marks in parts.groups:
        if key[0] is None or any(mark.rest for mark in marks.values()):
            label = label_of_key(key)
            at = size + max(0.3, (len(label) * 4 + 12) / room - 0.5)
            size = at + max(1.0, (len(label) * 3.3 + 4) / room + 0.5)
            ticks[at + 0.5] = label
        else:
            at = float(place.position(key[0]))
            if place.open(key[0]) and room >= 7 * len(str(key[0])):
                ticks[at + 0.5] = str(key[0])
        for number, name in enumerate(parts.series):
            if name in marks:
                start = at + 0.08 + number * width
                where = {
                    "left": start,
                    "right": start + width * 0.97,
                    "middle": start + width * 0.485,
                }
                rows.append(_row(marks[name], name, parts, **where))
    scale = alt.Scale(domain=[0, size], nice=False, zero=False)
    base = alt.Chart().encode(tooltip=tooltips(parts.by, parts.values.title))
    axis = steps_axis(ticks, parts.title)
    middle = base.encode(alt.X("middle:Q", scale=scale, axis=axis))
    wide = max(min(8.0, width * room * 0.8), 1.0)
    tick = middle.mark_tick(thickness=2 if room * width > 12 else 1, size=wide, orient="horizontal")
    filled = base.encode(alt.X("left:Q", scale=scale, axis=axis), alt.X2("right"))
    chart = _layers(rows, middle, filled, tick, parts, alt.Y, look, thin=room * width < 12)
    return chart, {"width": look.width, "height": look.high or 380}


def _row(mark: ChartMark, name: str, parts: Parts, **where: Any) -> Entries:
    """A mark as a row of data, with the colour of its lines."""
    color = SERIES[parts.series.index(name)] if parts.hue or not mark.noise else NOISE
    return {**mark.row(name, **where), "line": color}


def steps_axis(ticks: Mapping[float, str], title: str) -> Chart:
    """An axis of places that has exactly these labels."""
    alt = altair()
    texts = json.dumps({f"{place:g}": for_script(text) for place, text in ticks.items()})
    return alt.Axis(
        title=title,
        values=list(ticks),
        labelExpr=f"{texts}[format(datum.value, '.9~g')]",
        labelOverlap=False,
        labelFlush=False,
        labelLimit=0,
        grid=False,
    )


def label_every(labels: Sequence[str], room: float, *, by_value: bool) -> int:
    """The number of places per label, so that labels do not overlap."""
    need = max((len(label) for label in labels), default=1) * 7 + 12
    least = max(math.ceil(need / room), 1)
    steps = (1, 2, 5, 10) if by_value else (1, 2, 3, 4, 5, 10)
    return next(
        (step * 10**power for power in range(20) for step in steps if step * 10**power >= least),
        least,
    )


def color_of(channel: Chart, parts: Parts, colors: Sequence[str], look: Look) -> Chart:
    """The colour of a series on a channel of Altair, with a legend if there are several series."""
    alt = altair()
    series = parts.series
    scale = alt.Scale(domain=series, range=list(colors[: len(series)]))
    columns = max(
        (look.width - 90 - 7 * len(parts.hue)) // (max(len(name) for name in series) * 7 + 30), 1
    )
    legend = {
        "title": f"{parts.hue}:",
        "titleOrient": "left",
        "orient": "top",
        "columns": columns,
        "offset": 8,
    }
    key_legend = alt.Legend(**legend, symbolType="square") if parts.hue else None
    return channel("series:N", scale=scale, sort=series, legend=key_legend)


def _layers(
    rows: list[Entries],
    base: Chart,
    filled: Chart,
    tick: Chart,
    parts: Parts,
    channel: Chart,
    look: Look,
    *,
    thin: bool = False,
) -> Chart:
    """Bars, or points for dates and times, with the lines and ends of their intervals.

    `base` encodes the places of marks, and `filled` the extent of bars; `channel` is the axis of
    values.
    """
    alt = altair()
    second, zero = (alt.X2, alt.X2Datum) if channel is alt.X else (alt.Y2, alt.Y2Datum)
    line, value = alt.Color("line:N", scale=None), parts.values.encoding(channel)
    if parts.values.moments:
        point = base.mark_point(opacity=1, size=60, strokeWidth=0)
        bar = point.encode(value, color_of(alt.Fill, parts, SERIES, look))
    else:
        solid = alt.condition("datum.noise", alt.value(0), alt.value(1))
        bar = filled.mark_bar(strokeWidth=1).encode(
            value,
            zero(0),
            color_of(alt.Fill, parts, TINTS, look),
            fillOpacity=solid,
            stroke=alt.Stroke("line:N", scale=None),
        )
    rule = base.mark_rule(strokeWidth=1 if thin else 2).encode(
        parts.values.end(channel, "lower"), second("upper"), line
    )
    ends = [tick.encode(parts.values.end(channel, end), line) for end in ("lower", "upper")]
    return alt.layer(bar, rule, *ends, data=alt.InlineData(values=rows))


# Lines

# the marks of each series, each with its place on the axis
Lines = Mapping[str, Sequence[tuple[float, ChartMark]]]
_POINTS = 62  # the largest number of points of a line that are marked
_HIGH = 380  # height (pixels)
_TICKED = 31  # the largest number of dates that have ticks of their own
_SIGN = 6.6  # width of a sign in a label of 12 pixels (pixels)


def over_time(lines: Lines, parts: Parts, look: Look) -> tuple[Chart, Entries]:
    """A line for each series over dates or times, in a band of the intervals;
    a suppressed number leaves a gap.

    Ticks of few dates are at dates of the table, such as the first days of months. Others are at
    round dates.

    Input:  lines: the marks of each series with their moments (milliseconds); parts of the chart;
            look
    """
    alt = altair()
    moments = [moment for line in lines.values() for moment, _ in line]
    low, high = min(moments), max(moments)
    room = 0.01 * (high - low) or 500.0 * DAY
    at_midnight = all(moment % (1000 * DAY) == 0 for moment in moments)
    few = at_midnight and 0 < high - low < 7000 * DAY
    count = alt.TimeIntervalStep(interval="day", step=1) if few else 6
    form = "%Y-%m-%d" if few else time_format(moments)
    axis = alt.Axis(title=parts.title, format=form, tickCount=count, grid=False, labelOverlap=True)
    places = sorted(set(moments))
    if len(places) <= _TICKED and parts.place == TimePlace():
        axis.format, size = _form(places)
        axis.values = places[
            :: math.ceil(len(places) / max((look.width - 70) // (size * _SIGN + 14), 1))
        ]
    elif low == high:
        axis.values = [low]
    scale = alt.Scale(type="utc", domain=[low - room, high + room], nice=False)
    return _lines(lines, alt.X("place:T", axis=axis, scale=scale), parts, look)


def _form(places: Sequence[float]) -> tuple[str, int]:
    """The shortest format of ISO 8601 that shows moments (milliseconds) in
    full, and its length in signs.
    """
    if all(place % (1000 * DAY) == 0 for place in places):
        return "%Y-%m-%d", 10
    return (
        ("%Y-%m-%d %H:%M", 16)
        if all(place % 60_000 == 0 for place in places)
        else ("%Y-%m-%d %H:%M:%S", 19)
    )


def over_steps(
    lines: Lines, ticks: Mapping[float, str], size: float, parts: Parts, look: Look
) -> tuple[Chart, Entries]:
    """A line over bins or numbers, if there are too many for bars;
    `ticks` has their labels by place.
    """
    alt = altair()
    scale = alt.Scale(domain=[0, size], nice=False, zero=False)
    return _lines(
        lines, alt.X("place:Q", axis=steps_axis(ticks, parts.title), scale=scale), parts, look
    )


def _lines(lines: Lines, x: Chart, parts: Parts, look: Look) -> tuple[Chart, Entries]:
    alt = altair()
    ordered = {name: sorted(line, key=lambda pair: pair[0]) for name, line in lines.items()}
    bands = dict(zip(lines, TINTS if len(lines) == 1 else BANDS, strict=False))
    rows = [
        mark.row(name, place=place, band=bands[name])
        for name, line in ordered.items()
        for place, mark in line
    ]
    base = alt.Chart().encode(x, tooltip=tooltips(parts.by, parts.values.title))
    color = color_of(alt.Color, parts, SERIES, look)
    value, lower = parts.values.encoding(alt.Y, zero=False), parts.values.end(alt.Y, "lower")
    # Several bands are translucent, so that none hides another.
    opacity = 1 if len(parts.series) == 1 else BAND
    fill = alt.Fill("band:N", scale=None)
    band = base.mark_area(fillOpacity=opacity).encode(
        lower, alt.Y2("upper"), fill, alt.Detail("series:N")
    )
    longest = max(len(line) for line in ordered.values())
    line = base.mark_line(
        strokeWidth=2 if longest <= 2 * _POINTS else 1.2 if longest <= 8 * _POINTS else 0.6
    ).encode(value, color)
    layers = [band, line]
    if longest <= _POINTS:
        layers.append(base.mark_point(filled=True, opacity=1, size=30).encode(value, color))
    if longest == 1:
        layers.append(base.mark_rule(strokeWidth=2).encode(lower, alt.Y2("upper"), color))
    return alt.layer(*layers, data=alt.InlineData(values=rows)), {
        "width": look.width,
        "height": look.high or _HIGH,
    }
