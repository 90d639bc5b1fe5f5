"""Lines in a band of their intervals: over time, and over more bins or numbers than bars can show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpframe.drawing import altair
from dpframe.release.shown.charts.bars import color_of, steps_axis
from dpframe.release.shown.charts.look import BAND, BANDS, SERIES, TINTS, Look
from dpframe.release.shown.charts.marks import Mark, time_format, tooltips
from dpframe.release.shown.charts.numbers import DAY
from dpframe.release.shown.charts.places import Times
from dpframe.release.shown.charts.placing import Parts

Lines = Mapping[str, Sequence[tuple[float, Mark]]]  # the marks of each series, each with its place on the axis
_POINTS = 62  # the largest number of points of a line that are marked
_HIGH = 380  # height (pixels)
_TICKED = 31  # the largest number of dates that have ticks of their own
_SIGN = 6.6  # width of a sign in a label of 12 pixels (pixels)


def over_time(lines: Lines, parts: Parts, look: Look) -> tuple[Any, Mapping[str, Any]]:
    """A line for each series over dates or times, in a band of the intervals; a suppressed number leaves a gap.

    Ticks of few dates are at dates of the table, such as the first days of months. Others are at round dates.

    Input:  lines: the marks of each series with their moments (milliseconds); parts of the chart; look
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
    if len(places) <= _TICKED and parts.place == Times():
        axis.format, size = _form(places)
        axis.values = places[:: math.ceil(len(places) / max((look.width - 70) // (size * _SIGN + 14), 1))]
    elif low == high:
        axis.values = [low]
    scale = alt.Scale(type="utc", domain=[low - room, high + room], nice=False)
    return _lines(lines, alt.X("place:T", axis=axis, scale=scale), parts, look)


def _form(places: Sequence[float]) -> tuple[str, int]:
    """The shortest format of ISO 8601 that shows moments (milliseconds) in full, and its length in signs."""
    if all(place % (1000 * DAY) == 0 for place in places):
        return "%Y-%m-%d", 10
    return ("%Y-%m-%d %H:%M", 16) if all(place % 60_000 == 0 for place in places) else ("%Y-%m-%d %H:%M:%S", 19)


def over_steps(
    lines: Lines, ticks: Mapping[float, str], size: float, parts: Parts, look: Look
) -> tuple[Any, Mapping[str, Any]]:
    """A line over bins or numbers, if there are too many for bars; `ticks` has their labels by place."""
    alt = altair()
    scale = alt.Scale(domain=[0, size], nice=False, zero=False)
    return _lines(lines, alt.X("place:Q", axis=steps_axis(ticks, parts.title), scale=scale), parts, look)


def _lines(lines: Lines, x: Any, parts: Parts, look: Look) -> tuple[Any, Mapping[str, Any]]:
    alt = altair()
    ordered = {name: sorted(line, key=lambda pair: pair[0]) for name, line in lines.items()}
    bands = dict(zip(lines, TINTS if len(lines) == 1 else BANDS, strict=False))
    rows = [mark.row(name, place=place, band=bands[name]) for name, line in ordered.items() for place, mark in line]
    base = alt.Chart().encode(x, tooltip=tooltips(parts.by, parts.values.title))
    color = color_of(alt.Color, parts, SERIES, look)
    value, lower = parts.values.encoding(alt.Y, zero=False), parts.values.end(alt.Y, "lower")
    opacity = 1 if len(parts.series) == 1 else BAND  # Several bands are translucent, so that none hides another.
    fill = alt.Fill("band:N", scale=None)
    band = base.mark_area(fillOpacity=opacity).encode(lower, alt.Y2("upper"), fill, alt.Detail("series:N"))
    longest = max(len(line) for line in ordered.values())
    line = base.mark_line(strokeWidth=2 if longest <= 2 * _POINTS else 1.2 if longest <= 8 * _POINTS else 0.6).encode(
        value, color
    )
    layers = [band, line]
    if longest <= _POINTS:
        layers.append(base.mark_point(filled=True, opacity=1, size=30).encode(value, color))
    if longest == 1:
        layers.append(base.mark_rule(strokeWidth=2).encode(lower, alt.Y2("upper"), color))
    return alt.layer(*layers, data=alt.InlineData(values=rows)), {"width": look.width, "height": look.high or _HIGH}
