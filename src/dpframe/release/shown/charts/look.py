"""The look of every chart: size, colours for light and dark pages, title, and the
arguments of `plot()` for them.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dpframe.drawing import Chart, Entries, altair, finished
from dpframe.errors import InvalidArgument
from dpframe.plan import Derivation, on_its_day
from dpframe.usage import read_whole

# Colours with equal contrast on white and on the #111 of dark notebooks; charts have no background.
# Shapes are opaque, or translucent in dark colours: on a transparent background vl-convert writes
# translucent light colours too dark.
GREY = "#797979"  # texts, axes
FAINT = "#888888"  # the lines of a grid
NOISE = "#8a8a8a"  # numbers that are no larger than their margins of error
# lines; they differ in brightness too
SERIES = ("#2b6cb0", "#c0600f", "#12805f", "#93479a", "#857014", "#bb3d3d")
# fillings inside the lines
TINTS = ("#a3c7e8", "#f3bd8d", "#92d2bb", "#d9b0dc", "#d6ca86", "#efaaaa")
# bands, at the opacity BAND
BANDS = ("#0f4272", "#723500", "#005a3c", "#56225c", "#5a4a00", "#701c1c")
BAND = 0.45

MOST = 800  # the largest default width and height of a chart (pixels)
_WIDTH = 640  # the default width (pixels)
_LETTER = 6.8  # width of a letter in a label of 12 pixels, in a wide font (pixels)
_LINES = 12  # the largest number of lines of a label
_PARTS = {
    "": "",
    "index": ", in % of the row",
    "columns": ", in % of the column",
    "all": ", in % of all cells",
}


class Order(StrEnum):
    """The order of groups: that of the released table, the largest
    number first, or the smallest first.
    """

    KEYS = "keys"
    LARGEST = "descending"
    SMALLEST = "ascending"


@dataclass(frozen=True)
class Look:
    """The arguments of `plot()` about the look of a chart; None for a default.
    Sizes are in pixels.
    """

    title: str | None = None
    wide: int | None = None
    high: int | None = None
    order: Order | None = None
    words: str | None = None  # of the user for the numbers

    @property
    def width(self) -> int:
        """The width of the picture (pixels)."""
        return self.wide or _WIDTH

    @property
    def label(self) -> int:
        """The largest width of labels beside an axis (pixels)."""
        return min(int(0.4 * self.width), 260)


@dataclass(frozen=True)
class Heading:
    """The title of a chart, and the lines below it about the release and the marks."""

    title: str
    lines: tuple[str, ...]

    def also(self, *lines: str) -> Heading:
        """The heading with more lines; empty ones are left out."""
        return Heading(self.title, (*self.lines, *filter(None, lines)))


def in_words(why: Derivation, column: str) -> str:
    """The statistic of a released column in words: `Mean of spend`."""
    words = dict(why.words).get(column, column)
    return words[:1].upper() + words[1:]


def title_of(why: Derivation, words: str, by: Sequence[str], normalize: str = "") -> str:
    """The question as a title: `Mean of spend by city and sex, where age >= 18`."""
    keys = " and ".join(filter(None, [", ".join(by[:-1]), *by[-1:]]))
    where = f", where {' and '.join(why.where)}" if why.where else ""
    return f"{words}{f' by {keys}' if keys else ''}{_PARTS[normalize]}{where}"


def read_look(
    title: object, width: object, height: object, sort: object, label: object = None
) -> Look:
    """The arguments of `plot()`, checked. Errors: InvalidArgument."""
    if title is not None and not isinstance(title, str):
        raise InvalidArgument(
            "plot: title= is a text; an empty one, title='', leaves the title out."
        )
    sizes: dict[str, int | None] = {}
    for name, size in (("width", width), ("height", height)):
        sentence = (
            f"plot: {name}= is a whole number of pixels from 200 to 4000, such as {name}=600."
        )
        sizes[name] = None if size is None else read_whole(size, 200, 4000, sentence)
    orders = [order.value for order in Order]
    if sort is not None and (not isinstance(sort, str) or sort not in orders):
        raise InvalidArgument(
            f"plot: sort= is {', '.join(map(repr, orders[:-1]))} or {orders[-1]!r}."
        )
    if label is not None and (not isinstance(label, str) or not label.strip()):
        raise InvalidArgument("plot: label= is a text, such as label='people per day'.")
    return Look(
        title, sizes["width"], sizes["height"], None if sort is None else Order(sort), label
    )


# Texts


def wrapped(text: str, pixels: float, letter: float = _LETTER, lines: int = _LINES) -> list[str]:
    """A text in lines of at most `pixels` pixels. A text with too many lines ends with an ellipsis.

    >>> wrapped("Craft and related trades workers", 120)
    ['Craft and related', 'trades workers']
    """
    plain = "".join(" " if unicodedata.category(sign)[0] in "CZ" else sign for sign in text)
    wide = any(unicodedata.east_asian_width(sign) in "WF" for sign in plain)
    signs = max(int(pixels / (letter * (2 if wide else 1))), 4)
    parts = textwrap.wrap(plain, signs, drop_whitespace=True) or [" "]
    return (
        parts if len(parts) <= lines else [*parts[: lines - 1], f"{parts[lines - 1][: signs - 1]}…"]
    )


def label_of_key(key: Iterable[Any]) -> str:
    """A key as text: its parts joined by commas, "null" for null,
    without the empty parts of a margin.

    >>> import datetime as dt
    >>> (
    ...     label_of_key((dt.datetime(2026, 1, 31), None)),
    ...     label_of_key((dt.datetime(2026, 1, 31, 7, 30),)),
    ... )
    ('2026-01-31, null', '2026-01-31 07:30:00')
    """
    words = (on_its_day(part) for part in key if part != "")
    return ", ".join(words) or "(empty)"


def labels_of(keys: Sequence[Iterable[Any]], pixels: float, lines: int = _LINES) -> list[str]:
    """Keys as distinct labels with line breaks; underscores distinguish equal labels."""
    labels: dict[str, None] = {}
    for key in keys:
        label = "\n".join(wrapped(label_of_key(key), pixels, lines=lines))
        while label in labels:
            label += "_"
        labels[label] = None
    return list(labels)


def lines_of_labels(labels: Sequence[str], title: str | None = None, *, centred: bool) -> Entries:
    """The settings of an axis for labels of several lines;
    `centred` (vertical axes) centres them at their tick.

    Beside a vertical axis there is room for the labels, and for the title above them, in the widest
    of the usual fonts, since the font of a reader is not known.
    """
    lines = "split(datum.label, '\\n')"
    plain = {
        "labelExpr": lines,
        "labelLimit": 0,
        "labelLineHeight": 14,
        "ticks": False,
        "domain": False,
    }
    texts = [line for label in (*labels, title or "") for line in label.split("\n")]
    room = _LETTER * max(map(len, texts)) + 8
    centre = {"labelOffset": {"expr": f"-7 * (length({lines}) - 1)"}, "minExtent": room}
    return {**plain, **centre} if centred else plain


# The frame


def drawn(
    chart: Chart, heading: Heading, look: Look, size: Entries, *, inner: int | None = None
) -> Chart:
    """A chart with its title, its size and the colours of its axes.

    Input:  chart; heading; look; size: its width and height in Altair's form, numbers for the whole
            picture, with labels and title; inner: where the size is that of the marks, their width
            with labels (pixels)
    """
    alt = altair()
    title = heading.title if look.title is None else look.title
    wide = size["width"] if isinstance(size.get("width"), int) else look.width
    lines = [part for line in heading.lines for part in wrapped(line, wide - 10, 6.7)]
    heads = wrapped(title, wide - 10, 9.6) if title else []
    text = alt.TitleParams(
        text=heads or [" "],
        subtitle=lines,
        anchor="start",
        frame="bounds",
        color=GREY,
        subtitleColor=GREY,
        fontSize=15 if heads else 1,
        subtitleFontSize=12,
        subtitleLineHeight=15,
        lineHeight=19,
        subtitlePadding=5 if heads else 0,
        offset=12,
    )
    kind = "fit" if isinstance(size.get("height"), int) else "fit-x"
    frame: Entries = {"autosize": alt.AutoSizeParams(type=kind, contains="padding")}
    # a reader's font may be wider than the one that the picture is measured with
    if inner is not None:
        text_width = max(
            6.7 * max(map(len, lines), default=0), 9.6 * max(map(len, heads), default=0)
        )
        more = max(min(text_width / 5, text_width - inner), 0)
        frame = {"padding": {"left": 5, "top": 5, "bottom": 5, "right": 5 + int(more)}}
    chart = chart.properties(title=text, background="transparent", **size, **frame)
    words = {"labelColor": GREY, "titleColor": GREY, "labelFontSize": 12, "titleFontSize": 12}
    chart = (
        chart.configure_view(stroke=None)
        .configure_axis(
            **words,
            titleFontWeight="normal",
            gridColor=FAINT,
            gridWidth=0.5,
            domainColor=FAINT,
            tickColor=FAINT,
            labelSeparation=10,
        )
        .configure_legend(
            **words, titleFontWeight="normal", labelLimit=0, titleLimit=0, symbolOpacity=1
        )
    )
    return finished(chart)
