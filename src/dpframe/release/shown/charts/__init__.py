"""Charts of releases: bars, lines, heat maps, and error against the price;
and the text form of their numbers.

A chart is made of released numbers, or of errors that are known before a release; no row is read
here. Charts need the extra `charts` (Altair).
"""

from dpframe.release.shown.charts.distances import distances_chart
from dpframe.release.shown.charts.expected import (
    priced_chart,
)
from dpframe.release.shown.charts.forecast_chart import (
    forecast_chart,
)
from dpframe.release.shown.charts.grouped_chart import (
    grouped_chart,
)
from dpframe.release.shown.charts.heatmap import (
    heatmap,
)
from dpframe.release.shown.charts.look import (
    Heading,
    Look,
    in_words,
    read_look,
    title_of,
)
from dpframe.release.shown.charts.numbers import (
    MISSING,
    decimals,
    decimals_by_column,
    margin,
    margins,
    seconds_of,
    shown,
)
from dpframe.release.shown.charts.places import (
    Grouped,
)

__all__ = [
    "MISSING",
    "Grouped",
    "Heading",
    "Look",
    "decimals",
    "decimals_by_column",
    "distances_chart",
    "forecast_chart",
    "grouped_chart",
    "heatmap",
    "in_words",
    "margin",
    "margins",
    "priced_chart",
    "read_look",
    "seconds_of",
    "shown",
    "title_of",
]
