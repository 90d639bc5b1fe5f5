"""The chart of the expected error against the price, before a release."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import narwhals as nw
import polars as pl

from dpframe.budget import Terms
from dpframe.drawing import Chart, altair
from dpframe.errors import UnsupportedOperation
from dpframe.plan import (
    COUNT,
    Marginals,
    Question,
    ReleasedColumn,
    derivation,
    time_unit,
    titled,
    unit_words,
)
from dpframe.plan.steps import source_of
from dpframe.release.estimators import estimator_of
from dpframe.release.shown.charts.look import GREY, SERIES, Heading, Look, drawn, in_words, title_of
from dpframe.release.shown.charts.numbers import (
    largest,
    margin,
    seconds_of,
    tick_text,
    unit_of_time,
)


def priced_chart(
    table: pl.DataFrame, question: Question, terms: Terms, alpha: float, look: Look
) -> Chart:
    """The expected error of each column of a question against the price; see `Query.plot`.

    Input:  table: the price (ε or ρ), column and error, as `Query.accuracy` returns them; the
            question; terms: whether the price is an ε or a ρ; alpha: the probability of a larger
            error; look
    Output: Altair chart on axes of powers of ten: one panel for each column
    Bound:  no row is read: the errors follow from the question and the price
    Errors: UnsupportedOperation if no error is known, and for keys alone
    """
    why, names = derivation(question), set(table["column"])
    outputs = [
        output for output in question.outputs if {output.name, f"{output.name}.other"} & names
    ]
    words = [in_words(why, output.name) for output in outputs]
    listed = ", ".join([*words[:1], *(word[:1].lower() + word[1:] for word in words[1:])])
    question_title = title_of(why, listed, question.by)
    if isinstance(question, Marginals):
        question_title = title_of(
            why, in_words(why, COUNT), [" and ".join(map(titled, question.tables.named))]
        )
    unit = unit_words(source_of(question.step).table)
    meaning = (
        f"{100 * (1 - alpha):g}% margins of error of the noise, before any release; protected: "
        f"{unit}."
    )
    heading = Heading(f"Error to expect: {question_title}", (meaning,))
    types = {f"{output.name}{part}": _time(output) for output in outputs for part in ("", ".other")}
    rows = {output.name for output in outputs if not estimator_of(output).is_number}
    return _panels(table, terms, types, rows, heading, look)


def _time(output: ReleasedColumn) -> pl.DataType | None:
    """The time type whose ticks are the unit of a column's error; None for numbers."""
    if output.dtype is None:
        return None
    return pl.Date() if output.dtype == nw.Date else pl.Duration(time_unit(output.dtype))


_PANELS = 4  # the largest number of panels, one for each column
_HIGH = (300, 190, 130, 90)  # the height of a panel (pixels) if there are 1, 2, 3 or 4
_FEW = 12  # the largest number of prices for which numbers are written beside the points


def _panels(
    table: pl.DataFrame,
    terms: Terms,
    dtypes: Mapping[str, pl.DataType | None],
    in_rows: Collection[str],
    heading: Heading,
    look: Look,
) -> Chart:
    """The panels of the chart.
    Input: dtypes: the types of columns of times; in_rows: columns whose errors are rows.
    """
    alt, symbol = altair(), "ε" if terms is Terms.EPSILON else "ρ"
    if table.is_empty():
        raise UnsupportedOperation("plot(): the question releases keys alone, which have no error.")
    errors = table.filter(pl.col("error").is_not_null())
    if errors.is_empty():
        raise UnsupportedOperation(
            "plot(): the error of a ratio or a quantile depends on the data; assume a number of "
            "values per group: plot(epsilon=[0.1, 1], assume_rows=100)."
        )
    names, every = (
        errors["column"].unique(maintain_order=True).to_list(),
        table["column"].unique().to_list(),
    )
    panels = [
        _panel(
            errors.filter(pl.col("column") == name).select(
                pl.col(terms.value).alias("price"), "error"
            ),
            f"error of {name}{' (rows fewer)' if name in in_rows else ''}",
            symbol,
            dtypes.get(name),
            look,
            min(len(names), _PANELS),
        )
        for name in names[:_PANELS]
    ]
    notes = []
    if len(names) > _PANELS:
        notes.append(f"The first {_PANELS} of {len(names)} columns.")
    if len(every) > len(names):
        unknown = sorted(set(every) - set(names))
        notes.append(
            f"Not known without the data: {', '.join(unknown)}; assume_rows= assumes a number of "
            "values."
        )
    chart = panels[0] if len(panels) == 1 else alt.vconcat(*panels, spacing=14)
    return drawn(chart, heading.also(" ".join(notes)), look, {}, inner=look.width)


def _panel(
    rows: pl.DataFrame, words: str, symbol: str, dtype: pl.DataType | None, look: Look, panels: int
) -> Chart:
    """The panel of one column: its errors against the listed prices."""
    alt = altair()
    size = 1.0
    if dtype is not None:
        second = seconds_of(1.0, dtype)
        seconds, unit = unit_of_time(largest(rows["error"]) * second)
        size, words = seconds / second, f"{words} ({unit})"
    data = [
        {
            "price": allotment,
            "error": error / size,
            "text": f"± {margin(error / size)}",
            "paid": f"{symbol} = {allotment:g}",
        }
        for allotment, error in sorted(rows.unique().rows())
    ]
    allotment, errors = [row["price"] for row in data], [row["error"] for row in data]
    few = len(data) <= _FEW
    ticks = {"values": allotment} if few else {"tickCount": 6}
    x = alt.X(
        "price:Q",
        scale=alt.Scale(
            type="log", domain=[min(allotment) / 1.25, max(allotment) * 1.5], nice=False
        ),
        axis=alt.Axis(
            title=f"price, {symbol}", grid=False, format="~g", labelOverlap=True, **ticks
        ),
    )
    power = min(errors) > 0
    ends = [min(errors) / 1.6, max(errors) * 2.0] if power else [0, max(errors) * 1.2 or 1.0]
    y = alt.Y(
        "error:Q",
        scale=alt.Scale(type="log" if power else "linear", domain=ends, nice=False),
        axis=alt.Axis(
            title=words,
            labelExpr=tick_text(largest(errors)),
            **({"values": _round(*ends)} if power else {}),
        ),
    )
    tips = [alt.Tooltip("paid:N", title="price"), alt.Tooltip("text:N", title=words)]
    base = alt.Chart().encode(x, y, tooltip=tips)
    point = base.mark_point(color=SERIES[0], filled=True, size=45, opacity=1)
    layers = [base.mark_line(color=SERIES[0], strokeWidth=2), *([point] if few else [])]
    if few:
        layers.append(
            base.mark_text(color=GREY, align="left", dx=7, dy=-8, fontSize=12).encode(text="text:N")
        )
    high = (look.high - 90) // panels - 50 if look.high else _HIGH[panels - 1]
    return alt.layer(*layers, data=alt.InlineData(values=data)).properties(
        width=look.width - 90, height=max(high, 60)
    )


def _round(low: float, high: float) -> list[float]:
    """Round numbers between two, for an axis of powers of ten."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(powers) <= 3 else (1,)
    apart = max(len(powers) // 6, 1)
    every = [step * 10.0**power for power in powers if power % apart == 0 for step in steps]
    return [number for number in every if low <= number <= high]
