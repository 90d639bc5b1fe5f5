"""Charts of releases: bars, lines, heat maps, and error against the price; and the text form of their numbers.

A chart is made of released numbers, or of errors that are known before a release; no row is read here. Charts need the
extra `charts` (Altair).
"""

from dpframe.release.publish.charts.distances import distances_chart
from dpframe.release.publish.charts.expected import (
    expected_errors,
)
from dpframe.release.publish.charts.forecast import (
    forecast_chart,
)
from dpframe.release.publish.charts.grouped import (
    grouped_chart,
)
from dpframe.release.publish.charts.heatmap import (
    heatmap,
)
from dpframe.release.publish.charts.look import (
    Heading,
    Look,
    read_look,
)
from dpframe.release.publish.charts.numbers import (
    margin,
    margins,
    shown,
)
from dpframe.release.publish.charts.parts import (
    Grouped,
)

__all__ = [
    "Grouped",
    "Heading",
    "Look",
    "distances_chart",
    "expected_errors",
    "forecast_chart",
    "grouped_chart",
    "heatmap",
    "margin",
    "margins",
    "read_look",
    "shown",
]
