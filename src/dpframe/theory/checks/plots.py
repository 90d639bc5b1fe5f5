"""Charts of distributions, events and sensitivities, for notebooks.
They need the extra `charts` (Altair).

Every function returns an Altair chart of modest size. The colours of two datasets differ in
brightness too, so a chart is readable in grey.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from types import ModuleType
from typing import Any, ParamSpec

import numpy as np

from dpframe.arrays import Array
from dpframe.drawing import altair, finished
from dpframe.theory.checks.divergence import Distribution, event_mass, max_divergence

_COLOURS = ["#1f5a92", "#d1662a", "#4d8f4d", "#8a5ba6", "#6b6b6b"]
_WIDTH, _HEIGHT = 480, 240

Chart = Any  # of Altair, which may not be installed
P = ParamSpec("P")


def _plot(draw: Callable[P, Chart]) -> Callable[P, Chart]:
    """A function that draws, whose chart is finished."""

    @wraps(draw)
    def drawn(*args: P.args, **options: P.kwargs) -> Chart:
        return finished(draw(*args, **options))

    return drawn


def _rows(**columns: Iterable[object]) -> Chart:
    import pandas as pd

    return pd.DataFrame({k: list(v) for k, v in columns.items()})


def _colour(alt: ModuleType, names: Sequence[str], title: str | None = None) -> Chart:
    scale = alt.Scale(domain=list(names), range=_COLOURS[: len(names)])
    return alt.Color("name:N", scale=scale, legend=alt.Legend(title=title, orient="top"))


def _span(distributions: Sequence[Distribution], tail: float) -> Array:
    low = min(float(d.ppf(tail)) for d in distributions)
    high = max(float(d.isf(tail)) for d in distributions)
    kinks = [float(d.median()) for d in distributions]
    return np.unique(np.concatenate([np.linspace(low, high, 401), kinks]))


@_plot
def densities(
    p: Distribution,
    q: Distribution,
    over: tuple[float, float] | None = None,
    names: tuple[str, str] = ("u", "v"),
    title: str = "What may be released",
) -> Chart:
    """Both output densities, with the event S = [lower, upper] shaded where one is given.

    Input:  p and q: continuous scipy distributions; over: an interval in the unit of the release
    Output: Altair chart
    """
    alt = altair()
    x = _span([p, q], 0.002)
    data = _rows(
        x=[*x, *x], density=[*p.pdf(x), *q.pdf(x)], name=[names[0]] * len(x) + [names[1]] * len(x)
    )
    lines = (
        alt.Chart(data)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X(
                "x:Q",
                title="release",
                scale=alt.Scale(domain=[float(x[0]), float(x[-1])], nice=False),
            ).axis(grid=False),
            y=alt.Y("density:Q", title="density").axis(grid=False),
            color=_colour(alt, names, "dataset"),
            strokeDash=alt.StrokeDash("name:N", sort=list(names), legend=None),
        )
    )
    if over is None:
        return lines.properties(width=_WIDTH, height=_HEIGHT, title=title)
    inside = data[(data["x"] >= over[0]) & (data["x"] <= over[1])]
    areas = (
        alt.Chart(inside)
        .mark_area(opacity=0.25)
        .encode(x="x:Q", y=alt.Y("density:Q", stack=None), color=_colour(alt, names, "dataset"))
    )
    return (areas + lines).properties(width=_WIDTH, height=_HEIGHT, title=title)


@_plot
def event(
    p: Distribution,
    q: Distribution,
    over: tuple[float, float],
    names: tuple[str, str] = ("u", "v"),
    title: str | None = None,
) -> Chart:
    """The probability of the event S under both distributions, with the log ratio in the title.

    Input:  as `densities`
    Output: Altair chart
    """
    alt = altair()
    masses = [event_mass(d, over) for d in (p, q)]
    ratio = abs(max_divergence(p, q, over=over))
    data = _rows(name=names, mass=masses, label=[f"{m:.3g}" for m in masses])
    base = alt.Chart(data).encode(
        y=alt.Y("name:N", title=None, sort=list(names)),
        x=alt.X("mass:Q", title=f"probability of S = [{over[0]:g}, {over[1]:g}]").axis(grid=False),
    )
    bars = base.mark_bar(size=26).encode(color=_colour(alt, names).legend(None))
    text = base.mark_text(align="left", dx=4).encode(text="label:N")
    return (bars + text).properties(
        width=_WIDTH, height=90, title=title or f"The log ratio of the two is {ratio:.3g}"
    )


@_plot
def averaged_pair(epsilon: float = 1.0, sensitivity: float = 1.0) -> Chart:
    """The loss of the average of two Laplace releases at ε each, compared with the bound 2ε.

    The chart shows the log ratio of the densities of the average on two neighbours, the log ratio
    of one release, and the bound of sequential composition. The log ratio comes near 2ε only far
    out in the tails.

    Input:  epsilon of each release; sensitivity (unit of the release)
    Output: Altair chart
    """
    alt = altair()
    scale = sensitivity / epsilon
    x = np.linspace(-6 * scale, 6 * scale + sensitivity, 601)

    def log_density(at: Array) -> Array:
        # The sum of two Laplace draws has density (1 + |s|/b)·exp(-|s|/b)/(4b), and the average is
        # half of it.
        s = np.abs(2 * at) / scale
        result: Array = np.log1p(s) - s - math.log(2 * scale)
        return result

    ratio = np.abs(log_density(x) - log_density(x - sensitivity))
    single = np.abs(np.abs(x - sensitivity) - np.abs(x)) / scale
    names = ["one release", "average of two", "bound 2ε"]
    data = _rows(
        x=[*x, *x, *x],
        loss=[*single, *ratio, *([2 * epsilon] * len(x))],
        name=[n for n in names for _ in x],
    )
    return (
        alt.Chart(data)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X("x:Q", title="release (true answers 0 and " + f"{sensitivity:g})").axis(
                grid=False
            ),
            y=alt.Y(
                "loss:Q", title="privacy loss", scale=alt.Scale(domain=[0, 2.2 * epsilon])
            ).axis(grid=False),
            color=_colour(alt, names),
            strokeDash=alt.StrokeDash("name:N", sort=names, legend=None),
        )
        .properties(
            width=_WIDTH, height=_HEIGHT, title="The sum of the losses is a bound, not the loss"
        )
    )


@_plot
def relative_errors(
    errors: Mapping[str, Sequence[float]], title: str = "Error of the cells of a table"
) -> Chart:
    """The spread of the relative errors of the cells of several tables, one
    row per table, on a log scale.

    Input:  {table: relative error of each of its cells}; errors below 0.1% are drawn there
    Output: Altair chart
    """
    alt = altair()
    names = list(errors)
    data = _rows(
        name=[n for n in names for _ in errors[n]],
        error=[max(float(e), 1e-3) for n in names for e in errors[n]],
    )
    base = alt.Chart(data).encode(
        y=alt.Y("name:N", title=None, sort=names),
        x=alt.X(
            "error:Q",
            title="|noisy − true| / true",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(format="%", tickCount=6, grid=False),
        ),
    )
    ticks = base.mark_tick(thickness=1.5, size=16, opacity=0.5, color=_COLOURS[0])
    middle = base.mark_point(shape="diamond", filled=True, size=90, color=_COLOURS[1]).encode(
        x="median(error):Q"
    )
    return (ticks + middle).properties(width=_WIDTH, height=34 * len(names) + 10, title=title)


@_plot
def sensitivities(
    figures: Mapping[str, Mapping[int, float]],
    unit: str = "",
    title: str = "Sensitivity by brute force",
) -> Chart:
    """Sensitivity against the number of records in which neighbours differ, one line per query.

    Input:  {query: {distance: sensitivity}}, as `empirical_sensitivity` finds them; unit: of the
            answers
    Output: Altair chart
    """
    alt = altair()
    names = list(figures)
    points = [(n, d, s) for n in names for d, s in figures[n].items()]
    data = _rows(
        name=[p[0] for p in points],
        distance=[p[1] for p in points],
        sensitivity=[p[2] for p in points],
    )
    return (
        alt.Chart(data)
        .mark_line(point=True, strokeWidth=2)
        .encode(
            x=alt.X("distance:O", title="records that differ", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("sensitivity:Q", title=f"sensitivity ({unit})" if unit else "sensitivity").axis(
                grid=False
            ),
            color=_colour(alt, names),
            strokeDash=alt.StrokeDash("name:N", sort=names, legend=None),
        )
        .properties(width=_WIDTH // 2, height=_HEIGHT, title=title)
    )


@_plot
def histograms(
    first: Sequence[float] | Sequence[str],
    second: Sequence[float] | Sequence[str],
    names: tuple[str, str] = ("table", "neighbour"),
    title: str = "What is released",
) -> Chart:
    """Relative frequencies of the releases from two datasets: bars for texts, steps for numbers.

    Input:  first, second: the outcomes, numbers or texts; the 20 most common texts are shown
    Output: Altair chart
    """
    alt = altair()
    texts = any(isinstance(value, str) for value in (*first, *second))
    if texts:
        frequencies = Counter([*first, *second])
        order: list[Any] = [value for value, _ in frequencies.most_common(20)]
        heights: list[Any] = [
            [list(side).count(value) / len(side) for value in order] for side in (first, second)
        ]
        at = alt.Y("at:N", title="release", sort=order)
    else:
        values = [np.asarray(side, float) for side in (first, second)]
        low, high = np.quantile(np.concatenate(values), [0.002, 0.998])
        edges = np.linspace(low, max(high, low + 1e-9), 41)
        heights = [np.histogram(np.clip(side, low, high), edges)[0] / len(side) for side in values]
        order = [float(x) for x in (edges[1:] + edges[:-1]) / 2]
        at = alt.X("at:Q", title="release", scale=alt.Scale(zero=False)).axis(grid=False)
    data = _rows(
        at=order * 2, part=[*heights[0], *heights[1]], name=[n for n in names for _ in order]
    )
    colour = _colour(alt, names, "dataset")
    part = (alt.X if texts else alt.Y)("part:Q", title="part of the releases").axis(grid=False)
    if texts:
        chart = (
            alt.Chart(data)
            .mark_bar()
            .encode(y=at, x=part, color=colour, yOffset=alt.YOffset("name:N"))
        )
        return chart.properties(width=_WIDTH, height=30 * len(order), title=title)
    chart = alt.Chart(data).mark_area(interpolate="step", opacity=0.35, line=True)
    return chart.encode(x=at, y=part.stack(None), color=colour).properties(
        width=_WIDTH, height=_HEIGHT, title=title
    )
