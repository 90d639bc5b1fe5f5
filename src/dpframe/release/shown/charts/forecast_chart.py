"""The chart of a budget's forecast: the spent and the expected
loss, day by day, up to the limit.
"""

from __future__ import annotations

import polars as pl

from dpframe.budget import Forecast
from dpframe.drawing import Chart, altair
from dpframe.errors import UnsupportedOperation
from dpframe.release.shown.charts.look import GREY, NOISE, SERIES, TINTS, Heading, Look, drawn
from dpframe.usage import body_of

_HIGH = 160  # pixels of each budget
_KINDS = {"spent": SERIES[0], "planned": TINTS[0], "expected": NOISE}
_LINES = (
    "Up to the dashed line a budget pays.",
    "Planned: by allowances. Expected: at the pace of the last days.",
)


@body_of(Forecast.plot)
def forecast_chart(forecast: Forecast) -> Chart:
    """An area for each budget and allowance, with a line at its limit.
    Errors: UnsupportedOperation without Altair.
    """
    alt, look = altair(), Look()
    if not forecast.table.height:
        raise UnsupportedOperation(
            "plot(): nothing was spent yet and nothing is planned, so there is no chart."
        )
    kinds = [kind for kind in _KINDS if kind in forecast.table.get_column("kind").to_list()]
    begins = forecast.table.with_columns(pl.col("day").cast(pl.Datetime("ms")))
    lasts = begins.group_by("of", "kind", maintain_order=True).last().select(begins.columns)
    # the step of the last day is as wide as the others
    ends = lasts.with_columns(pl.col("day").dt.offset_by("1d"))
    steps = (
        pl.concat([begins, ends])
        .sort("of", "day", "total")
        .with_columns(pl.col("day").dt.epoch("ms"))
    )
    whole = "utchours(datum.value) == 0 ? utcFormat(datum.value, '%Y-%m-%d') : ''"
    days = alt.Axis(title=None, labelExpr=whole, tickCount=5, grid=False, labelOverlap=True)
    x = alt.X("day:T", axis=days, scale=alt.Scale(type="utc"))
    y = alt.Axis(title="spent in total", tickCount=5)
    base = alt.Chart()
    area = base.mark_area(interpolate="step-after").encode(
        x,
        alt.Y("total:Q", axis=y, stack=None),
        alt.Color(
            "kind:N",
            scale=alt.Scale(domain=kinds, range=[_KINDS[kind] for kind in kinds]),
            legend=alt.Legend(title=None, orient="top", symbolType="square"),
        ),
        tooltip=[
            "of:N",
            alt.Tooltip("day:T", format="%Y-%m-%d"),
            "spent:Q",
            "total:Q",
            "limit:Q",
            "kind:N",
        ],
    )
    limit = base.mark_rule(color=GREY, strokeDash=[4, 3]).encode(y="limit:Q")
    each = alt.layer(area, limit).properties(width=look.width - 90, height=_HIGH)
    header = alt.Header(
        title=None, labelColor=GREY, labelFontSize=12, labelOrient="top", labelAnchor="start"
    )
    data = alt.InlineData(values=steps.to_dicts())
    chart = each.facet(row=alt.Row("of:N", header=header), data=data)
    return drawn(
        chart.resolve_scale(x="independent", y="independent"),
        Heading("What is spent, and how long it lasts", _LINES),
        look,
        {},
        inner=look.width,
    )
