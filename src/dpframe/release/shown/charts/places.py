"""Places of a chart's groups: names below one another, bins or numbers side by side,
or moments on an axis of time.

One key is the axis, another one the colour.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import polars as pl

from dpframe.plan import Covers
from dpframe.release.shown.charts.look import SERIES, Look, Order, label_of_key
from dpframe.release.shown.charts.marks import ChartMark, Key, Values, read_marks

_BETWEEN = re.compile(r"^[\[(](.+), (.+)[\])]$")
_BELOW, _ABOVE = re.compile(r"^< (.+)$"), re.compile(r"^≥ (.+)$")


@dataclass(frozen=True)
class NamePlace:
    """Keys without a natural order, or combinations of several keys."""

    ordered: ClassVar[bool] = False
    timed: ClassVar[bool] = False
    size: ClassVar[int] = 0


@dataclass(frozen=True)
class NumberPlace:
    """Keys that are numbers in order: the place and the label of each."""

    keys: tuple[Any, ...]
    ordered: ClassVar[bool] = True
    timed: ClassVar[bool] = False
    by_value: ClassVar[bool] = True

    def open(self, key: object) -> bool:
        """No number is open at an end."""
        return False

    def position(self, key: object) -> int:
        """The place of a key from the left."""
        return int(key) - self.keys[0] if self._dense else self._order[key]  # type: ignore[call-overload]

    @property
    def size(self) -> int:
        """The number of places."""
        return self.position(self.keys[-1]) + 1

    @cached_property
    def _order(self) -> dict[Any, int]:
        return {key: place for place, key in enumerate(self.keys)}

    @cached_property
    def _dense(self) -> bool:
        """Whether keys are whole numbers with few gaps; the gaps are then drawn."""
        integers = all(isinstance(key, int) for key in self.keys)
        return integers and self.keys[-1] - self.keys[0] < 3 * len(self.keys)

    def ticks(self, every: int) -> dict[float, str]:
        """Labels by their place, one for every `every` places."""
        if self._dense:
            return {
                key - self.keys[0] + 0.5: str(key)
                for key in range(self.keys[0], self.keys[-1] + 1)
                if key % every == 0
            }
        return {place + 0.5: str(key) for place, key in enumerate(self.keys) if place % every == 0}

    @property
    def labels(self) -> list[str]:
        """All labels."""
        return [str(key) for key in self.keys]


@dataclass(frozen=True)
class BinPlace:
    """Adjoining intervals in order: their labels, and the edges between them;
    an open end has the edge None.
    """

    names: tuple[str, ...]
    edges: tuple[str | None, ...]
    ordered: ClassVar[bool] = True
    timed: ClassVar[bool] = False
    by_value: ClassVar[bool] = False

    def position(self, key: object) -> int:
        """The place of an interval from the left."""
        return self._order[str(key)]

    @cached_property
    def _order(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def open(self, key: object) -> bool:
        """Whether an interval is open at one end."""
        place = self.position(key)
        return None in self.edges[place : place + 2]

    @property
    def size(self) -> int:
        """The number of places."""
        return len(self.names)

    def ticks(self, every: int) -> dict[float, str]:
        """Edges by their place, one for every `every` places."""
        return {
            float(place): edge
            for place, edge in enumerate(self.edges)
            if edge is not None and place % every == 0
        }

    @property
    def labels(self) -> list[str]:
        """All edges."""
        return [edge for edge in self.edges if edge is not None]


@dataclass(frozen=True)
class TimePlace:
    """Keys that are dates or times, or intervals of these; an interval is placed at its middle."""

    intervals: BinPlace | None = None
    ordered: ClassVar[bool] = True
    timed: ClassVar[bool] = True

    def moment(self, key: Any) -> float:
        """The place of a key (milliseconds since 1970, in the local time of its zone)."""
        if self.intervals is None:
            return _milliseconds(key)
        place = self.intervals.position(key)
        start, end = (_moment(edge) for edge in self.intervals.edges[place : place + 2])
        assert start is not None
        assert end is not None
        return (_milliseconds(start) + _milliseconds(end)) / 2


Place = NamePlace | NumberPlace | BinPlace | TimePlace


def place_of(dtype: pl.DataType, keys: Sequence[Any]) -> Place:
    """The kind of place for the keys of a column.
    It depends on the type, not on the number of keys.
    """
    listed = [key for key in keys if key is not None]
    if not listed:
        return NamePlace()
    match dtype:
        case pl.Date() | pl.Datetime():
            return TimePlace()
        case pl.Enum():
            intervals = _bins(dtype.categories.to_list(), set(listed))
            if intervals is None:
                return NamePlace()
            moments = [_moment(edge) for edge in intervals.edges]
            return (
                BinPlace(intervals.names, intervals.edges)
                if None in moments
                else TimePlace(intervals)
            )
    return NumberPlace(tuple(sorted(set(listed)))) if dtype.is_numeric() else NamePlace()


def _bins(labels: list[str], used: set[Any]) -> BinPlace | None:
    """The intervals in the labels, from the first to the last used one;
    None if they do not adjoin one another.
    """
    ends = [_ends(label) for label in labels]
    if not labels or any(end is None for end in ends):
        return None
    pairs = [end for end in ends if end is not None]
    if any(a[1] is None or a[1] != b[0] for a, b in pairwise(pairs)):
        return None
    places = [place for place, label in enumerate(labels) if label in used]
    if not places:
        return None
    first, last = places[0], places[-1] + 1
    return BinPlace(
        tuple(labels[first:last]), (pairs[first][0], *(pair[1] for pair in pairs[first:last]))
    )


def _ends(label: str) -> tuple[str | None, str | None] | None:
    """The ends of an interval, read from its label:
    `[0, 18)` is ("0", "18"), `≥ 65` is ("65", None).
    """
    if between := _BETWEEN.match(label):
        return between[1], between[2]
    if below := _BELOW.match(label):
        return None, below[1]
    if above := _ABOVE.match(label):
        return above[1], None
    return None


def _moment(text: str | None) -> dt.datetime | None:
    """A date or time in ISO 8601; None for any other text, such as a number."""
    if text is None or not re.match(r"^\d{4}-\d\d-\d\d", text):
        return None
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        return None


def _milliseconds(moment: dt.date) -> float:
    clock = (
        moment.replace(tzinfo=None)
        if isinstance(moment, dt.datetime)
        else dt.datetime(*moment.timetuple()[:3])
    )
    return (clock - dt.datetime(1970, 1, 1)) / dt.timedelta(milliseconds=1)


# Where groups are placed


@dataclass(frozen=True)
class Grouped:
    """One column of a grouped release: the table of `Release.accuracy` for it, and its description.

    `by` names the keys; `dtype` is the type of the column, whose ticks are the unit of times;
    `words` describes the numbers; with `rest` the last row adds up all groups that are not released
    separately; `sure` says whether the margins of error are proved; `alpha` is the probability of a
    larger error; `covers` says what they are about.
    """

    by: tuple[str, ...]
    errors: pl.DataFrame
    dtype: pl.DataType
    words: str
    rest: bool = False
    sure: bool = True
    alpha: float = 0.05
    covers: Covers = Covers.NOISE


Groups = list[tuple[Key, dict[str, ChartMark]]]


@dataclass(frozen=True)
class Parts:
    """A chart's marks by group and series, the axis of their values, and the places of the groups.

    `by` names all keys, `title` the keys that form groups, and `hue` the key that forms series.
    Without a `hue` there is one series, whose name is empty.
    """

    groups: Groups
    series: list[str]
    values: Values
    place: Place
    by: tuple[str, ...]
    title: str
    hue: str

    @property
    def marks(self) -> list[ChartMark]:
        """All marks."""
        return [mark for _, of in self.groups for mark in of.values()]


def read_parts(grouped: Grouped, look: Look) -> Parts:
    """The marks of a release in groups and series, with the places of the groups."""
    marks, values = read_marks(
        grouped.errors, len(grouped.by), grouped.dtype, grouped.words, rest=grouped.rest
    )
    places = [_standing(grouped, marks, number) for number in range(len(grouped.by))]
    hue = _hue(marks, places)
    axes = [number for number in range(len(grouped.by)) if number != hue]
    groups: dict[tuple[bool, Key], dict[str, ChartMark]] = {}
    for mark in marks:
        name = "" if hue is None else label_of_key((mark.key[hue],))
        groups.setdefault((mark.rest, tuple(mark.key[number] for number in axes)), {})[name] = mark
    ordered = [(key, of) for (_, key), of in groups.items()]
    series = list(dict.fromkeys(name for _, of in ordered for name in of))
    place = places[axes[0]] if len(axes) == 1 and look.order in (None, Order.KEYS) else NamePlace()
    title = ", ".join(grouped.by[number] for number in axes)
    return Parts(
        ordered, series, values, place, grouped.by, title, "" if hue is None else grouped.by[hue]
    )


def _standing(grouped: Grouped, marks: Sequence[ChartMark], number: int) -> Place:
    keys = [mark.key[number] for mark in marks if not mark.rest]
    return place_of(grouped.errors.dtypes[number], keys)


def _hue(marks: Sequence[ChartMark], places: Sequence[Place]) -> int | None:
    """The key that colours distinguish: the last key with few values;
    beside dates or numbers, the other key.
    """
    if len(places) == 1:
        return None
    widths = [
        len({mark.key[number] for mark in marks if not mark.rest}) for number in range(len(places))
    ]
    steps = [number for number, place in enumerate(places) if place.ordered]
    if len(places) == 2 and steps:
        axis = max(steps, key=lambda number: (places[number].timed, widths[number]))
        return 1 - axis
    few = [number for number, width in enumerate(widths) if 2 <= width <= len(SERIES)]
    return few[-1] if few else None
