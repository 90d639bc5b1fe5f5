"""The numbers of a chart, each with its interval, and the axis of these numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from dpframe.drawing import Chart, Entries, altair
from dpframe.release.shown.charts.look import label_of_key
from dpframe.release.shown.charts.numbers import (
    DAY,
    largest,
    margin,
    seconds_of,
    shown,
    tick_text,
    unit_of_time,
)

Key = tuple[Any, ...]


@dataclass(frozen=True)
class ChartMark:
    """One released number: its key, its value with the ends of its interval
    (units of the axis), and its text.

    `noise` says that the value is no larger than its margin of error. `rest` marks the row that
    adds up all groups that are not released separately.
    """

    key: Key
    value: float | None
    lower: float | None
    upper: float | None
    text: str
    interval: str
    noise: bool = False
    rest: bool = False

    def row(self, series: str = "", **places: Any) -> Entries:
        """The mark as a row of a chart's data: its place, and the fields of `tooltips`."""
        keys = {f"key{number}": label_of_key((part,)) for number, part in enumerate(self.key)}
        ends = {"value": self.value, "lower": self.lower, "upper": self.upper, "noise": self.noise}
        return {
            **places,
            **keys,
            "series": series,
            **ends,
            "text": self.text,
            "interval": self.interval,
        }


@dataclass(frozen=True)
class Values:
    """The axis of released numbers: its title, whether it shows dates
    or times, and the numbers on it.
    """

    title: str
    moments: bool
    ends: tuple[float, ...]

    def of(self, marks: Iterable[ChartMark]) -> Values:
        """The axis for some of the marks."""
        parts = [(mark.value, mark.lower, mark.upper) for mark in marks]
        return replace(self, ends=tuple(x for part in parts for x in part if x is not None))

    def encoding(self, channel: Chart, *, zero: bool = True) -> Chart:
        """The encoding of values on an axis of Altair, `alt.X` or `alt.Y`;
        `zero`: whether bars start at 0.
        """
        alt = altair()
        if self.moments:
            scale = alt.Scale(type="utc", domain=list(self._moments), nice=False)
            axis = alt.Axis(title=self.title, format=time_format(self.ends), tickCount=4)
            return channel("value:T", axis=axis, scale=scale)
        axis = alt.Axis(
            title=self.title, labelExpr=tick_text(largest(self.ends)), tickCount=6, labelFlush=False
        )
        return channel(
            "value:Q",
            axis=axis,
            scale=alt.Scale(domain=list(self._domain(zero)), nice=False, zero=False),
        )

    def end(self, channel: Chart, name: str) -> Chart:
        """The encoding of one end of an interval on the same axis."""
        return channel(f"{name}:{'T' if self.moments else 'Q'}")

    def _domain(self, zero: bool) -> tuple[float, float]:
        low, high = min(self.ends, default=0.0), max(self.ends, default=0.0)
        if zero or low <= 0.5 * high:
            low, high = min(low, 0.0), max(high, 0.0)
        size = largest((low, high))
        room = 0.04 * (high / size - low / size) * size if size else 0.0
        if not room:
            return (low - 0.5 * size, high + 0.5 * size) if size and low else (0.0, 1.0)
        low, high = low - room * (low != 0), high + room * (high != 0)
        return max(low, -1.7e308), min(high, 1.7e308)

    @property
    def _moments(self) -> tuple[float, float]:
        """The ends of an axis of time (milliseconds), slightly beyond the values on it."""
        if not self.ends:
            return 0.0, 1000.0 * DAY
        low, high = min(self.ends), max(self.ends)
        room = 0.05 * (high - low) or 500.0 * DAY
        return low - room, high + room


def read_marks(
    errors: pl.DataFrame, keys: int, dtype: pl.DataType, words: str, *, rest: bool
) -> tuple[list[ChartMark], Values]:
    """The rows of a table of errors as marks, and the axis of their values.

    Input:  errors: the table of `Release.accuracy` for one column; keys: how many of its columns
            are keys; dtype: the type of the released column, whose ticks are the unit of times;
            words: a description of the numbers; rest: whether the last row adds up the groups that
            are not released
    """
    numbers = errors.select("value", "lower", "upper", "error").with_columns(
        pl.all().cast(pl.Float64)
    )
    moments, title = dtype in (pl.Date, pl.Datetime), words
    size = 1.0
    if dtype == pl.Duration:
        most = largest(
            numbers["value"].to_list() + numbers["lower"].to_list() + numbers["upper"].to_list()
        )
        second = seconds_of(1.0, dtype)
        seconds, unit = unit_of_time(most * second)
        size, title = seconds / second, f"{words} ({unit})"
    texts: list[tuple[str, str] | None] = [None] * numbers.height
    if moments:
        texts = [*_moment_texts(numbers, dtype)]
    parts = errors.select(errors.columns[:keys]).rows() if keys else [()] * errors.height
    marks = []
    for i, (key, row) in enumerate(zip(parts, numbers.rows(), strict=True)):
        value, lower, upper, error = (
            None if x is None or not math.isfinite(x) else x / size for x in row
        )
        noise = not moments and value is not None and error is not None and abs(value) <= error > 0
        text, interval = texts[i] or _texts(value, lower, upper, error)
        marks.append(
            ChartMark(
                key, value, lower, upper, text, interval, noise, rest and i == errors.height - 1
            )
        )
    if moments:
        marks = _on_a_clock(marks, dtype)
    return marks, Values(title, moments, ()).of(marks)


def _texts(
    value: float | None, lower: float | None, upper: float | None, error: float | None
) -> tuple[str, str]:
    if value is None:
        return "suppressed", ""
    text = shown(int(value) if value.is_integer() and abs(value) < 2**53 else value, error)
    if lower is None or upper is None or error is None:
        return text, ""
    return f"{text} ± {margin(error)}", f"{shown(lower, error)} to {shown(upper, error)}"


def _moment_texts(ticks: pl.DataFrame, dtype: pl.DataType) -> list[tuple[str, str]]:
    """Dates or times, and the ends of their intervals, as texts."""
    times = ticks.select(pl.col("value", "lower", "upper").round().cast(pl.Int64).cast(dtype))
    texts = times.select(pl.all().dt.to_string("iso").str.slice(0, 19))
    return [
        ("suppressed", "")
        if value is None
        else (value, "" if None in (lower, upper) else f"{lower} to {upper}")
        for value, lower, upper in texts.rows()
    ]


def _on_a_clock(marks: Sequence[ChartMark], dtype: pl.DataType) -> list[ChartMark]:
    """Dates or times as milliseconds since 1970, in the local time of their zone."""
    table = pl.DataFrame(
        [(mark.value, mark.lower, mark.upper) for mark in marks],
        schema={"value": pl.Float64, "lower": pl.Float64, "upper": pl.Float64},
        orient="row",
    )
    times = table.select(pl.all().round().cast(pl.Int64).cast(dtype))
    if isinstance(dtype, pl.Datetime):
        times = times.select(pl.all().dt.replace_time_zone(None))
    rows = times.select(pl.all().cast(pl.Datetime("ms")).cast(pl.Int64)).rows()
    return [
        replace(mark, value=value, lower=lower, upper=upper)
        for mark, (value, lower, upper) in zip(marks, rows, strict=True)
    ]


def time_format(moments: Sequence[float]) -> str:
    """The format of the ticks of an axis of time (milliseconds):
    ISO 8601, as short as the span of the axis allows.
    """
    span = (max(moments, default=0.0) - min(moments, default=0.0)) / 1000
    if span > 2000 * DAY:
        return "%Y"
    return (
        "%Y-%m-%d"
        if span == 0 or span > 6 * DAY
        else "%Y-%m-%d %H:%M"
        if span > 600
        else "%Y-%m-%d %H:%M:%S"
    )


def tooltips(by: Sequence[str], words: str) -> list[Chart]:
    """The tooltip of a mark: its keys in full, its number and its interval."""
    alt = altair()
    keys = [alt.Tooltip(f"key{number}:N", title=name) for number, name in enumerate(by)]
    return [
        *keys,
        alt.Tooltip("text:N", title=words),
        alt.Tooltip("interval:N", title="95% interval"),
    ]
