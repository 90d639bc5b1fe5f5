"""Days and times that operations can give: see `dpframe.plan.operations.images`.

A key is a date, or a time with or without a zone; columns of a zone are compared as moments.
"""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from typing import Any

from narwhals.dtypes import DType

from dpframe.plan.columns import ColumnDomain, Possible
from dpframe.plan.operations.rules import Applied, Image
from dpframe.plan.operations.windows import Every, Window, is_local
from dpframe.plan.scalars import has_zone
from dpframe.plan.types import Kind, kind, ticks_of_a_second

_EPOCH, _MONDAY, _DAY = dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 5), dt.timedelta(days=1)


def shown_in_utc(key: Any) -> dt.datetime:
    """A date or time as UTC's clock shows it, without a zone."""
    if not isinstance(key, dt.datetime):
        return dt.datetime(key.year, key.month, key.day)
    return key if key.tzinfo is None else key.astimezone(dt.UTC).replace(tzinfo=None)


def _wall(key: Any, zone: str | None) -> dt.datetime:
    """A date or time as the clock of its column's zone shows it, without a zone."""
    shown = shown_in_utc(key)
    return (
        shown
        if zone in (None, "UTC")
        else shown.replace(tzinfo=dt.UTC).astimezone(_zoned(zone)).replace(tzinfo=None)
    )


def _zone(dtype: DType) -> str | None:
    zone: str | None = getattr(dtype, "time_zone", None)
    return zone


def _zoned(zone: str | None) -> dt.tzinfo | None:
    return None if zone is None else zoneinfo.ZoneInfo(zone)


def _starts(every: Every, shown: dt.datetime) -> bool:
    """Whether a window begins at a time."""
    if every.window is Window.MONTH:
        months = (shown.year - 1970) * 12 + shown.month - 1
        return shown.day == 1 and shown.time() == dt.time() and months % every.months == 0
    origin = _MONDAY if every.window is Window.WEEK else _EPOCH
    return not (shown - origin) % dt.timedelta(seconds=every.seconds)


def truncated(asked: Applied, result: ColumnDomain) -> Possible:
    """Starts of windows."""
    every, zone = Every.read(asked["every"]), _zone(result.dtype)
    length = dt.timedelta(seconds=every.seconds)

    def holds(key: Any) -> bool:
        if _starts(every, _wall(key, zone)):
            return True
        if (
            not is_local(result.dtype)
            or every.window is not Window.CLOCK
            or dt.timedelta(hours=1) % length
        ):
            return False
        # The clock may change within such a window, whose start is then counted on the clock after
        # the change.
        after = shown_in_utc(key) + length
        return not (shown_in_utc(key) + (_wall(after, zone) - after) - _EPOCH) % length

    days = every.window is not Window.CLOCK or every.seconds % 86_400 == 0
    return Possible(holds, _starts_in_words(asked["every"], every, result.dtype), None, days)


def _starts_in_words(typed: str, every: Every, dtype: DType) -> str:
    days = {("1w", Window.WEEK): "Mondays", ("1mo", Window.MONTH): "first days of months"}
    what = days.get((typed, every.window), f"starts of windows of {typed!r}")
    example = dt.datetime(2026, 2, 1)
    while not _starts(every, example) and example.year > 1970:
        example -= _DAY
    return f"{what}, such as {_example(example, dtype)}"


def _example(shown: dt.datetime, dtype: DType) -> str:
    if kind(dtype) == Kind.DATE:
        return f"datetime.date({shown.year}, {shown.month}, {shown.day})"
    zone = _zone(dtype)
    typed = "" if zone is None else f", tzinfo=zoneinfo.ZoneInfo({zone!r})"
    return f"datetime.datetime({shown.year}, {shown.month}, {shown.day}{typed})"


def _is_last(shown: dt.datetime) -> bool:
    """Whether a day is the last of its month."""
    return (shown.month, shown.day) == (12, 31) or (shown + _DAY).day == 1


def edge_of_month(*, last: bool) -> Image:
    """The first day of a month, or its last."""

    def rule(asked: Applied, result: ColumnDomain) -> Possible:
        zone, source = _zone(result.dtype), asked.on.possible
        example = _example(dt.datetime(2026, 1, 31 if last else 1), result.dtype)

        def holds(key: Any) -> bool:
            shown = _wall(key, zone)
            return _is_last(shown) if last else shown.day == 1

        give = f"{'last' if last else 'first'} days of months, such as {example}"
        return Possible(holds, give, None, source is not None and source.midnights)

    return rule


def later(time: ColumnDomain, duration: ColumnDomain, sign: int) -> Possible | None:
    """A time that is moved by a constant, in whole ticks of its type."""
    values = duration.values
    if (
        time.possible is None
        or values is None
        or len(values) != 1
        or kind(time.dtype) == Kind.DURATION
    ):
        return None
    by = sign * next(iter(values))
    per_second = ticks_of_a_second(time.dtype)
    tick = (
        dt.timedelta(seconds=1) / per_second
        if per_second and per_second <= 10**6
        else dt.timedelta(microseconds=1)
    )
    return None if by % (tick if per_second else _DAY) else _shifted(time.possible, by, time.dtype)


def _shifted(possible: Possible, by: dt.timedelta, dtype: DType) -> Possible:
    days = possible.midnights and not by % _DAY and not is_local(dtype)
    words = (
        f"what is {by} after {possible.give}"
        if by > dt.timedelta(0)
        else f"what is {-by} before {possible.give}"
    )
    return Possible(lambda key: _moved(possible, key, -by), words, None, days)


def _moved(possible: Possible, key: Any, by: dt.timedelta) -> bool:
    try:
        return possible.holds((key.astimezone(dt.UTC) if has_zone(key) else key) + by)
    except OverflowError:
        return False


def offset(asked: Applied, result: ColumnDomain) -> Possible | None:
    """Times that are a constant away from others."""
    typed, possible = asked["by"], asked.on.possible
    every = Every.read(typed.removeprefix("-"))
    sign = -1 if typed.startswith("-") else 1
    if possible is None:
        return None
    if every.window is not Window.MONTH:
        return _shifted(possible, sign * dt.timedelta(seconds=every.seconds), result.dtype)

    zone = _zoned(_zone(result.dtype))

    def holds(key: Any) -> bool:
        """Of a day that is the last of its month, several days may have been moved to it."""
        shown = shown_in_utc(key)
        if _is_last(shown):
            return True
        months = shown.year * 12 + shown.month - 1 - sign * every.months
        try:
            before = shown.replace(year=months // 12, month=months % 12 + 1, tzinfo=zone)
        except ValueError:  # no such day there
            return False
        return possible.holds(before if isinstance(key, dt.datetime) else before.date())

    return Possible(holds, f"what is {typed!r} from {possible.give}", None, possible.midnights)


def day(asked: Applied, result: ColumnDomain) -> Possible | None:
    """The day of times of which each is a midnight."""
    possible, zone = asked.on.possible, _zone(asked.dtype)
    if possible is None or kind(asked.dtype) == Kind.DATE:
        return possible
    if not possible.midnights:
        return None
    give = re.sub(
        r"datetime\.datetime\((\d+, \d+, \d+).*?\)(?!\))", r"datetime.date(\1)", possible.give
    )
    return possible.seen(
        lambda key: dt.datetime(key.year, key.month, key.day, tzinfo=_zoned(zone)),
        give,
        midnights=True,
    )


def _fine(dtype: DType) -> int:
    return ticks_of_a_second(dtype) or 0


def rezoned(asked: Applied, result: ColumnDomain) -> Possible | None:
    """The same moments on another clock."""
    possible, source = asked.on.possible, _zone(asked.dtype)
    if possible is None or _fine(asked.dtype) > _fine(result.dtype):
        return None
    target = None if source is None else dt.UTC
    alike = _zone(result.dtype) in (
        source,
        None if source == "UTC" else "UTC" if source is None else source,
    )
    return possible.seen(
        lambda key: shown_in_utc(key).replace(tzinfo=target), midnights=possible.midnights and alike
    )


def relabelled(asked: Applied, result: ColumnDomain) -> Possible | None:
    """The same clock, of another zone or of none."""
    possible, source, target = asked.on.possible, _zone(asked.dtype), _zone(result.dtype)
    if possible is None:
        return None

    def holds(key: Any) -> bool:
        shown = _wall(key, target)
        return any(
            possible.holds(shown.replace(tzinfo=_zoned(source), fold=fold)) for fold in (0, 1)
        )

    return Possible(holds, possible.give, None, possible.midnights)


def named(asked: Applied, result: ColumnDomain) -> Possible | None:
    """Times as fine as their form."""
    absent = [
        part
        for part in ("hour", "minute", "second")
        if f"%{part[0].upper()}" not in asked["format"]
    ]
    return Possible(
        lambda key: not key.microsecond and not any(getattr(key, part) for part in absent),
        f"times whose {', '.join((*absent, 'fraction of a second'))} {'are' if absent else 'is'} 0",
        None,
        len(absent) == 3,
    )


def years(asked: Applied, result: ColumnDomain) -> Possible:
    """Years of the calendar."""
    return Possible(lambda key: 1 <= key <= 9999, "years, such as 2026")
