"""The chart of a grouped release: its kind, the groups and series that are shown,
and notes on those that are not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from dpframe.drawing import Chart, Entries
from dpframe.errors import UnsupportedOperation
from dpframe.release.shown.charts.bars import (
    below_one_another,
    beside_one_another,
    how_many_fit,
    label_every,
    over_steps,
    over_time,
)
from dpframe.release.shown.charts.look import SERIES, Heading, Look, Order, drawn, label_of_key
from dpframe.release.shown.charts.marks import ChartMark
from dpframe.release.shown.charts.places import (
    BinPlace,
    Grouped,
    Groups,
    NumberPlace,
    Parts,
    TimePlace,
    read_parts,
)

_BARS = 120  # the largest number of vertical bars; for more, a line is drawn
_NOTED = 3  # the largest number of groups that a note lists


def grouped_chart(grouped: Grouped, heading: Heading, look: Look) -> Chart:
    """Bars with their intervals for groups and bins, lines in a band for dates; see `Release.plot`.

    Errors: UnsupportedOperation if there is no group
    """
    if grouped.errors.is_empty():
        raise UnsupportedOperation("plot(): no group was released, so there is nothing to show.")
    parts = read_parts(grouped, look)
    notes = []
    if len(parts.series) > len(SERIES):
        notes.append(f"The {len(SERIES)} largest of {len(parts.series):,} are shown.")
        parts = _fewer_series(parts)
    as_lines, place = False, parts.place
    if not place.ordered:
        parts, note = _cut(parts, look)
        chart, size = below_one_another(parts, look)
    else:
        parts, note, apart = _apart(parts)
        as_lines = isinstance(place, TimePlace) or place.size * len(parts.series) > _BARS
        if as_lines:
            chart, size = _lines(parts, look)
        else:
            parts = replace(parts, groups=[*parts.groups, *apart])
            chart, size = beside_one_another(parts, look)
            note = ""
    mark_name = "Band" if as_lines else "Whiskers"
    sure = "" if grouped.sure else ", likely and not proved"
    intervals = (
        f"{mark_name}: {100 * (1 - grouped.alpha):.6g}% margins of error "
        f"{grouped.covers.margins}{sure}."
    )
    hollow = any(mark.noise for mark in parts.marks) and not as_lines
    hollow_note = "Hollow: no larger than the margin of error." if hollow else ""
    missing = sum(mark.value is None for mark in parts.marks)
    notes += [note, f"Suppressed or hidden by noise: {missing:,}." if missing else ""]
    return drawn(
        chart,
        heading.also(
            " ".join(filter(None, [intervals, hollow_note])), " ".join(filter(None, notes))
        ),
        look,
        size,
    )


def _size(of: Mapping[str, ChartMark]) -> float:
    """The sum of a group's numbers, by which groups are sorted."""
    values = [mark.value for mark in of.values() if mark.value is not None]
    return sum(values) if values else -math.inf


def _fewer_series(parts: Parts) -> Parts:
    """The parts with the largest series only, as many as there are colours."""
    sizes = dict.fromkeys(parts.series, 0.0)
    for _, of in parts.groups:
        for name, mark in of.items():
            sizes[name] += mark.value or 0.0
    largest = sorted(parts.series, key=lambda name: -sizes[name])[: len(SERIES)]
    series = [name for name in parts.series if name in largest]
    groups = [(key, {name: of[name] for name in series if name in of}) for key, of in parts.groups]
    fewer = replace(parts, groups=[(key, of) for key, of in groups if of], series=series)
    return replace(fewer, values=parts.values.of(fewer.marks))


def _cut(parts: Parts, look: Look) -> tuple[Parts, str]:
    """The parts with as many groups as fit, in order, and a note on the
    others; the `rest` group stays last.
    """
    apart = [(key, of) for key, of in parts.groups if any(mark.rest for mark in of.values())]
    groups = [(key, of) for key, of in parts.groups if not any(mark.rest for mark in of.values())]
    every = len(groups)
    order = look.order
    if order is None and how_many_fit(
        [key for key, _ in parts.groups], len(parts.series), look
    ) < len(parts.groups):
        order = Order.LARGEST
    if order is Order.LARGEST:
        groups.sort(key=lambda pair: -_size(pair[1]))
    elif order is Order.SMALLEST:
        groups.sort(key=lambda pair: (_size(pair[1]) == -math.inf, _size(pair[1])))
    fit = how_many_fit([key for key, _ in [*apart, *groups]], len(parts.series), look) - len(apart)
    groups = groups[: max(fit, 1)]
    missing = every - len(groups)
    which = {Order.LARGEST: "largest", Order.SMALLEST: "smallest"}.get(order or Order.KEYS, "first")
    note = (
        f"The {len(groups)} {which} of {every:,} groups; {missing:,} are not shown."
        if missing
        else ""
    )
    parts = replace(parts, groups=[*groups, *apart])
    return replace(parts, values=parts.values.of(parts.marks)), note


def _apart(parts: Parts) -> tuple[Parts, str, Groups]:
    """The parts with the groups that have a place on the axis, a note on the
    other groups, and these groups.
    """
    placed: Groups = []
    apart: Groups = []
    for key, of in parts.groups:
        (apart if key[0] is None or any(mark.rest for mark in of.values()) else placed).append(
            (key, of)
        )
    texts = [
        f"{', '.join(filter(None, [label_of_key(key), name]))}: {mark.text}"
        for key, of in apart
        for name, mark in of.items()
    ]
    more = f" and {len(texts) - _NOTED} more" if len(texts) > _NOTED else ""
    note = f"Not on the axis: {'; '.join(texts[:_NOTED])}{more}." if texts else ""
    return replace(parts, groups=placed), note, apart


def _lines(parts: Parts, look: Look) -> tuple[Chart, Entries]:
    """A line for each series over dates, or over more bins or numbers than bars can show."""
    lines: dict[str, list[tuple[float, ChartMark]]] = {name: [] for name in parts.series}
    place = parts.place
    dated = isinstance(place, TimePlace)
    for key, of in parts.groups:
        for name, mark in of.items():
            at = place.moment(key[0]) if dated else place.position(key[0]) + 0.5  # type: ignore[union-attr]
            lines[name].append((at, mark))
    lines = {name: line for name, line in lines.items() if line}
    parts = replace(parts, values=parts.values.of(parts.marks))
    if dated:
        return over_time(lines, parts, look)
    assert isinstance(place, BinPlace | NumberPlace)
    room = (look.width - 70) / place.size
    ticks = place.ticks(label_every(place.labels, room, by_value=place.by_value))
    return over_steps(lines, ticks, float(place.size), parts, look)
