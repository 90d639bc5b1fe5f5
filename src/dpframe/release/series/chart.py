"""The chart of a series: a line over time in the band of its errors, one for each group. It needs Altair."""

from __future__ import annotations

from typing import Any

import polars as pl

from dpframe.errors import UnsupportedOperation

__all__ = ["line_chart"]

_WIDTH, _HEIGHT = 560, 240
_COLORS = ["#2c5f8a", "#d98a29", "#4a8f5a", "#a34d6b", "#7a6bb0", "#5f6b75", "#b5a13a", "#3f9fa8"]


def line_chart(table: pl.DataFrame, period: str, keys: list[str], column: str, title: str, under: str) -> Any:
    """A line with a band.

    Input:  table: a row for each period and group, with `column` and `column_error`; period: the column of time; keys:
            those of the groups; title and under: what was asked, and at what price
    Errors: UnsupportedOperation without Altair, for one period, and for more groups than colours
    """
    try:
        import altair as alt
    except ImportError as problem:
        raise UnsupportedOperation("plot() needs Altair. Install it with: pip install 'dpframe[charts]'") from problem
    label = pl.concat_str([pl.col(key).cast(pl.String).fill_null("null") for key in keys], separator=", ")
    shown = table.select(
        pl.col(period).cast(pl.Datetime("ms")).alias("period"),
        (label if keys else pl.lit(column)).alias("group"),
        pl.col(column).alias("value"),
        (pl.col(column) - pl.col(f"{column}_error")).alias("lower"),
        (pl.col(column) + pl.col(f"{column}_error")).alias("upper"),
    )
    groups = shown.get_column("group").unique(maintain_order=True).to_list()
    if len(groups) > len(_COLORS):
        raise UnsupportedOperation(f"plot(): {len(groups)} lines cannot be told apart; at most {len(_COLORS)} groups.")
    axis = alt.Axis(title=None, format="%Y-%m-%d", tickCount=6, labelOverlap=True)
    base = alt.Chart(shown.to_pandas()).encode(
        alt.X("period:T", axis=axis, scale=alt.Scale(type="utc")),
        color=alt.Color(
            "group:N",
            sort=groups,
            scale=alt.Scale(domain=groups, range=_COLORS[: len(groups)]),
            legend=alt.Legend(title=", ".join(keys)) if keys else None,
        ),
    )
    y = alt.Axis(title=f"{column}, with 95% margins of error", format="~s")
    band = base.mark_area(opacity=0.25).encode(alt.Y("lower:Q", axis=y), alt.Y2("upper"))
    tips = [
        alt.Tooltip("period:T", format="%Y-%m-%d %H:%M"),
        "group:N",
        *(f"{end}:Q" for end in ("value", "lower", "upper")),
    ]
    line = base.mark_line(point=table.height <= 60 * len(groups)).encode(alt.Y("value:Q"), tooltip=tips)
    heading = alt.Title(title, subtitle=under, anchor="start", fontSize=13, fontWeight="normal")
    return alt.layer(band, line).properties(width=_WIDTH, height=_HEIGHT, title=heading)
