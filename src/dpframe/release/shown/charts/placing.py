"""The parts of the chart of a grouped release: which key is the axis, which the colour, and where groups are placed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from dpframe.plan import Covers
from dpframe.release.shown.charts.look import SERIES, Look, Order, label_of_key
from dpframe.release.shown.charts.marks import Key, Mark, Values, read_marks
from dpframe.release.shown.charts.places import Names, Place, Times, place_of


@dataclass(frozen=True)
class Grouped:
    """One column of a grouped release: the table of `Release.accuracy` for it, and its description.

    `by` names the keys; `dtype` is the type of the column, whose ticks are the unit of times; `words` describes the
    numbers; with `rest` the last row adds up all groups that are not released separately; `sure` says whether the
    margins of error are proved; `alpha` is the probability of a larger error; `covers` says what they are about.
    """

    by: tuple[str, ...]
    errors: pl.DataFrame
    dtype: pl.DataType
    words: str
    rest: bool = False
    sure: bool = True
    alpha: float = 0.05
    covers: Covers = Covers.NOISE


Groups = list[tuple[Key, dict[str, Mark]]]


@dataclass(frozen=True)
class Parts:
    """A chart's marks by group and series, the axis of their values, and the places of the groups.

    `by` names all keys, `title` the keys that form groups, and `hue` the key that forms series. Without a `hue` there
    is one series, whose name is empty.
    """

    groups: Groups
    series: list[str]
    values: Values
    place: Place
    by: tuple[str, ...]
    title: str
    hue: str

    @property
    def marks(self) -> list[Mark]:
        """All marks."""
        return [mark for _, of in self.groups for mark in of.values()]


def read_parts(grouped: Grouped, look: Look) -> Parts:
    """The marks of a release in groups and series, with the places of the groups."""
    marks, values = read_marks(grouped.errors, len(grouped.by), grouped.dtype, grouped.words, rest=grouped.rest)
    places = [_standing(grouped, marks, number) for number in range(len(grouped.by))]
    hue = _hue(marks, places)
    axes = [number for number in range(len(grouped.by)) if number != hue]
    groups: dict[tuple[bool, Key], dict[str, Mark]] = {}
    for mark in marks:
        name = "" if hue is None else label_of_key((mark.key[hue],))
        groups.setdefault((mark.rest, tuple(mark.key[number] for number in axes)), {})[name] = mark
    ordered = [(key, of) for (_, key), of in groups.items()]
    series = list(dict.fromkeys(name for _, of in ordered for name in of))
    place = places[axes[0]] if len(axes) == 1 and look.order in (None, Order.KEYS) else Names()
    title = ", ".join(grouped.by[number] for number in axes)
    return Parts(ordered, series, values, place, grouped.by, title, "" if hue is None else grouped.by[hue])


def _standing(grouped: Grouped, marks: Sequence[Mark], number: int) -> Place:
    keys = [mark.key[number] for mark in marks if not mark.rest]
    return place_of(grouped.errors.dtypes[number], keys)


def _hue(marks: Sequence[Mark], places: Sequence[Place]) -> int | None:
    """The key that colours distinguish: the last key with few values; beside dates or numbers, the other key."""
    if len(places) == 1:
        return None
    widths = [len({mark.key[number] for mark in marks if not mark.rest}) for number in range(len(places))]
    steps = [number for number, place in enumerate(places) if not isinstance(place, Names)]
    if len(places) == 2 and steps:
        axis = max(steps, key=lambda number: (isinstance(places[number], Times), widths[number]))
        return 1 - axis
    few = [number for number, width in enumerate(widths) if 2 <= width <= len(SERIES)]
    return few[-1] if few else None
