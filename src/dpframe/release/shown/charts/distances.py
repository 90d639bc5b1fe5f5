"""The chart of the distances between synthetic rows and the noisy tables that they come from."""

from __future__ import annotations

import polars as pl

from dpframe.drawing import Chart, altair
from dpframe.release.shown.charts.look import SERIES, Heading, Look, drawn, lines_of_labels

_MOST = 40  # tables in the chart
_BAR = 16  # height of a table's line (pixels)


def distances_chart(distances: pl.DataFrame, look: Look) -> Chart:
    """A bar for each table with its distance, the farthest first, and a tick for
    what noise alone makes (Altair).

    Input:  distances: columns `table`, `distance` and `noise`, of which the first 40 rows are shown
    """
    alt = altair()
    shown = distances.drop_nulls("distance").head(_MOST)
    labels = [str(text) for text in shown["table"]]
    room = min(lines_of_labels(labels, centred=True)["minExtent"], look.label)
    place = alt.Y(
        "table:N",
        sort=shown["table"].to_list(),
        title=None,
        axis=alt.Axis(labelLimit=look.label, minExtent=room),
    )
    base = alt.Chart(alt.InlineData(values=shown.to_dicts()))
    axis = alt.X("distance:Q", title="part of the rows", axis=alt.Axis(format="~%", tickCount=5))
    bars = base.mark_bar(color=SERIES[0], height=9).encode(x=axis, y=place)
    ticks = base.mark_tick(color=SERIES[1], thickness=3, size=13).encode(x="noise:Q", y=place)
    heading = Heading(
        "Synthetic rows and noisy tables",
        (
            "Bar: the part of the synthetic rows that would have to change to agree with the "
            "noisy table.",
            "Tick: as much as the noise of the table makes by itself.",
        ),
    )
    return drawn(
        bars + ticks, heading, look, {"width": look.width, "height": look.high or alt.Step(_BAR)}
    )
