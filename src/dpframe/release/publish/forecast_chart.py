"""The chart of a budget's forecast: the spent and the expected loss, day by day, up to the limit."""

from __future__ import annotations

from typing import Any

from dpframe.budget import Forecast, offered
from dpframe.errors import UnsupportedOperation

__all__ = ["forecast_chart"]

_WIDTH, _HEIGHT = 480, 160


@offered("forecast chart")
def forecast_chart(forecast: Forecast) -> Any:
    """An area for each budget and allowance, with a line at its limit. Errors: UnsupportedOperation without Altair."""
    try:
        import altair as alt
    except ImportError as problem:
        raise UnsupportedOperation("plot() needs Altair. Install it with: pip install 'dpframe[charts]'") from problem
    if not forecast.table.height:
        raise UnsupportedOperation("plot(): nothing was spent yet and nothing is planned, so there is no chart.")
    data = forecast.table.to_pandas()
    day = alt.X("day:T", axis=alt.Axis(title=None, format="%Y-%m-%d", tickCount=6), scale=alt.Scale(type="utc"))
    base = alt.Chart(data)
    kinds = alt.Scale(domain=["spent", "planned", "expected"], range=["#2c5f8a", "#9bbcd6", "#d9d9d9"])
    area = base.mark_area(interpolate="step-after").encode(
        day,
        alt.Y("total:Q", axis=alt.Axis(title="spent in total")),
        color=alt.Color("kind:N", scale=kinds, legend=alt.Legend(title=None)),
        tooltip=["of:N", "day:T", "spent:Q", "total:Q", "limit:Q", "kind:N"],
    )
    limit = base.mark_rule(color="#1d2f3f", strokeDash=[4, 3]).encode(y="limit:Q")
    chart = alt.layer(area, limit).properties(width=_WIDTH, height=_HEIGHT)
    return chart.facet(row=alt.Row("of:N", title=None)).resolve_scale(x="independent", y="independent")
