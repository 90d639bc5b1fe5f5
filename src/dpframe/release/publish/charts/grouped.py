"""The chart of a grouped release: which key is the axis, which the colour, what is shown and what is not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpframe.errors import UnsupportedOperation
from dpframe.release.publish.charts.bars import below_one_another, beside_one_another, how_many_fit, label_every
from dpframe.release.publish.charts.lines import over_steps, over_time
from dpframe.release.publish.charts.look import SERIES, Heading, Look, Order, drawn, label_of_key
from dpframe.release.publish.charts.marks import Mark
from dpframe.release.publish.charts.parts import Grouped, Groups, Parts, read_parts
from dpframe.release.publish.charts.places import Bins, Names, Numbers, Times

__all__ = ["grouped_chart"]

_BARS = 120  # standing ones, that can be told apart; of more a line is drawn
_NOTED = 3  # numbers that a note has in full


def grouped_chart(grouped: Grouped, heading: Heading, look: Look) -> Any:
    """Bars with their intervals for groups and bins, lines in a band for dates; see `Release.plot`.

    Errors: UnsupportedOperation where there is no group
    """
    if grouped.errors.is_empty():
        raise UnsupportedOperation("plot(): no group was released, so there is nothing to show.")
    parts = read_parts(grouped, look)
    notes = []
    if len(parts.series) > len(SERIES):
        notes.append(f"The {len(SERIES)} largest of {len(parts.series):,} are shown.")
        parts = _fewer_series(parts)
    as_lines = isinstance(parts.place, Times)
    if isinstance(parts.place, Names):
        parts, note = _cut(parts, look)
        chart, size = below_one_another(parts, look)
    else:
        parts, note, apart = _apart(parts)
        as_lines = as_lines or parts.place.size * len(parts.series) > _BARS  # type: ignore[union-attr]
        if as_lines:
            chart, size = _lines(parts, look)
        else:
            parts = replace(parts, groups=[*parts.groups, *apart])
            chart, size = beside_one_another(parts, look)
            note = ""
    meant = "Band" if as_lines else "Whiskers"
    sure = "" if grouped.sure else ", likely and not proved"
    intervals = f"{meant}: {100 * (1 - grouped.alpha):.6g}% margins of error of the noise{sure}."
    hollow = any(mark.noise for mark in parts.marks) and not as_lines
    hollow_note = "Hollow: no larger than the margin of error." if hollow else ""
    missing = sum(mark.value is None for mark in parts.marks)
    notes += [note, f"Suppressed: {missing:,}." if missing else ""]
    return drawn(
        chart, heading.also(" ".join(filter(None, [intervals, hollow_note])), " ".join(filter(None, notes))), look, size
    )


def _size(of: Mapping[str, Mark]) -> float:
    """By what a group is sorted: its numbers together."""
    values = [mark.value for mark in of.values() if mark.value is not None]
    return sum(values) if values else -math.inf


def _fewer_series(parts: Parts) -> Parts:
    """As many series as there are colours, the largest."""
    sizes = dict.fromkeys(parts.series, 0.0)
    for _, of in parts.groups:
        for one, mark in of.items():
            sizes[one] += mark.value or 0.0
    largest = sorted(parts.series, key=lambda one: -sizes[one])[: len(SERIES)]
    series = [one for one in parts.series if one in largest]
    groups = [(key, {one: of[one] for one in series if one in of}) for key, of in parts.groups]
    kept = replace(parts, groups=[(key, of) for key, of in groups if of], series=series)
    return replace(kept, values=parts.values.of(kept.marks))


def _cut(parts: Parts, look: Look) -> tuple[Parts, str]:
    """As many groups as fit below one another, in order, and how many are not shown; the rest stays last."""
    apart = [(key, of) for key, of in parts.groups if any(mark.rest for mark in of.values())]
    groups = [(key, of) for key, of in parts.groups if not any(mark.rest for mark in of.values())]
    every = len(groups)
    order = look.order
    if order is None and how_many_fit([key for key, _ in parts.groups], len(parts.series), look) < len(parts.groups):
        order = Order.LARGEST
    if order is Order.LARGEST:
        groups.sort(key=lambda pair: -_size(pair[1]))
    elif order is Order.SMALLEST:
        groups.sort(key=lambda pair: (_size(pair[1]) == -math.inf, _size(pair[1])))
    fit = how_many_fit([key for key, _ in [*apart, *groups]], len(parts.series), look) - len(apart)
    groups = groups[: max(fit, 1)]
    hidden = every - len(groups)
    which = {Order.LARGEST: "largest", Order.SMALLEST: "smallest"}.get(order or Order.KEYS, "first")
    note = f"The {len(groups)} {which} of {every:,} groups; {hidden:,} are not shown." if hidden else ""
    parts = replace(parts, groups=[*groups, *apart])
    return replace(parts, values=parts.values.of(parts.marks)), note


def _apart(parts: Parts) -> tuple[Parts, str, Groups]:
    """What has a place in an order of steps or dates; of the others a note, and the groups themselves."""
    placed: Groups = []
    apart: Groups = []
    for key, of in parts.groups:
        (apart if key[0] is None or any(mark.rest for mark in of.values()) else placed).append((key, of))
    others = [
        f"{', '.join(filter(None, [label_of_key(key), one]))}: {mark.text}"
        for key, of in apart
        for one, mark in of.items()
    ]
    more = f" and {len(others) - _NOTED} more" if len(others) > _NOTED else ""
    note = f"Not on the axis: {'; '.join(others[:_NOTED])}{more}." if others else ""
    return replace(parts, groups=placed), note, apart


def _lines(parts: Parts, look: Look) -> tuple[Any, Mapping[str, Any]]:
    """A line for each series over dates, or over more steps than bars can show."""
    lines: dict[str, list[tuple[float, Mark]]] = {one: [] for one in parts.series}
    place = parts.place
    for key, of in parts.groups:
        for one, mark in of.items():
            at = place.moment(key[0]) if isinstance(place, Times) else place.position(key[0]) + 0.5  # type: ignore[union-attr]
            lines[one].append((at, mark))
    lines = {one: line for one, line in lines.items() if line}
    parts = replace(parts, values=parts.values.of(parts.marks))
    if isinstance(place, Times):
        return over_time(lines, parts, look)
    assert isinstance(place, Bins | Numbers)
    room = (look.width - 70) / place.size
    ticks = place.ticks(label_every(place.labels, room, by_value=isinstance(place, Numbers)))
    return over_steps(lines, ticks, float(place.size), parts, look)
