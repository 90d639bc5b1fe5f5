"""Values of cells as people type them: checked against the type of a column, held
as it holds them, and in words.
"""

from __future__ import annotations

import datetime as dt
import math
import zoneinfo
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, WrongType, kind_of
from dpframe.plan.types import TICKS, Kind, kind, mean_type, show, time_unit, zone_of

Scalar = bool | int | float | str | Decimal | dt.date | dt.datetime | dt.timedelta


def number(value: float | dt.date | dt.timedelta) -> str:
    """A number or a time as a person writes it: no trailing zeros, and every digit that matters.

    Durations have no comma, so that they can stand in a list.

    >>> (
    ...     number(dt.timedelta(days=30)),
    ...     number(dt.timedelta(days=1, hours=2)),
    ...     number(dt.timedelta(minutes=-5)),
    ... )
    ('30 days', '1 day 2:00:00', '-0:05:00')
    """
    match value:
        case dt.datetime():
            return value.isoformat(" ")
        case dt.timedelta():
            text = str(abs(value)).removesuffix(", 0:00:00").replace(", ", " ")
            return f"-{text}" if value < dt.timedelta() else text
        case dt.date():
            return str(value)
    return str(value) if isinstance(value, int) else repr(value).removesuffix(".0")


def label(value: object) -> str:
    """A key or a cell as text for people: durations as `number` writes
    them, other values as Python does.

    >>> label(None), label(True), label(dt.timedelta(days=2))
    ('null', 'True', '2 days')
    """
    value = plain(value)
    return (
        "null"
        if value is None
        else number(value)
        if isinstance(value, dt.timedelta)
        else str(value)
    )


def on_its_day(value: object) -> str:
    """As `label`, of a midnight its day.

    >>> on_its_day(dt.datetime(2026, 1, 31)), on_its_day(dt.datetime(2026, 1, 31, 7, 30))
    ('2026-01-31', '2026-01-31 07:30:00')
    """
    return label(as_held(plain(value), nw.Date()))


_FEW = 5  # a longer list is shown by its first three values


def listed(values: Sequence[object]) -> str:
    """Values as text for people: of a long list, the first three and the number of values.

    >>> listed([1, 2, 3, 4, 5]), listed(range(10))
    ('[1, 2, 3, 4, 5]', '[0, 1, 2, … (10 values)]')
    """
    if len(values) <= _FEW:
        return repr(list(values))
    return f"[{', '.join(map(repr, values[:3]))}, … ({len(values)} values)]"


def in_order(values: Iterable[object]) -> list[object]:
    """Listed values in a stable order.
    The values of a set are sorted, since its order differs between processes.

    >>> in_order({"b", "a"}), in_order(["b", "a"])
    (['a', 'b'], ['b', 'a'])
    """
    if not isinstance(values, (set, frozenset)):
        return list(values)
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def check_text(text: str, what: str) -> None:
    r"""Errors: InvalidArgument for half of a pair of surrogates, such as "\ud800",
    which no engine takes as a text.
    """
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        half = text[problem.start]
        raise InvalidArgument(
            f"{what}: {half!r} is half of a pair, and no letter of Unicode. Leave it out."
        ) from None


def kind_of_scalar(value: object) -> str:
    """The kind of a Python (or numpy) value in a plan; that of null is "null"."""
    value = plain(value)
    match value:
        case None:
            return "null"
        case str():
            check_text(value, "A text")
            return "string"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "float"
        case Decimal():
            return "decimal"
        case dt.datetime():
            return "datetime"
        case dt.date():
            return "date"
        case dt.timedelta():
            return "duration"
    unfinished = {
        "When": " After dp.when(...) comes .then(...).",
        "Period": " Give its first day: period.start_time, or periods.to_timestamp() of an index.",
    }.get(type(value).__name__, "")
    raise InvalidArgument(
        f"A plan holds numbers, strings, bools and dates, not {kind_of(value)}.{unfinished}"
    )


def check_years(value: dt.datetime, what: str) -> None:
    """Refuse a time with a zone in the first or last year of Python, which
    another zone's clock may not have.
    """
    if value.tzinfo is not None and not 1 < value.year < 9999:
        raise WrongType(
            f"{what}: a time with a zone must be in the years 2 to 9998, such as "
            "datetime.datetime(9998, 12, 31, tzinfo=datetime.timezone.utc)."
        )


def plain(value: Any) -> Any:
    """A numpy or pandas scalar as the Python value it holds; anything else as it is.

    Times are held to the microsecond, as Python holds them; NaT is null.
    """
    module = type(value).__module__
    if module.startswith("numpy") and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        if type(value).__name__ in ("datetime64", "timedelta64"):
            name, count = np.datetime_data(value.dtype)
            if name in ("ns", "ps", "fs", "as") or count != 1:
                return value.astype(f"{type(value).__name__}[us]").item()
        return value.item()
    if module.startswith("pandas") and hasattr(value, "to_pydatetime"):
        return None if type(value).__name__ == "NaTType" else value.floor("us").to_pydatetime()
    if module.startswith("pandas") and hasattr(value, "to_pytimedelta"):
        return value.floor("us").to_pytimedelta()
    return value


def real(value: object) -> int | float | None:
    """A Python or numpy number as Python's int or float;
    None for anything else, and for True and False.

    >>> real(np.float32(0.5)), real(np.int8(3)), real(True), real("3")
    (0.5, 3, None, None)
    """
    match plain(value):
        case int() | float() as number if not isinstance(number, bool):
            return number
    return None


def alike(key: object, typed: object) -> bool:
    """Whether a key was typed; that 1 equals true is no reason."""
    return isinstance(key, bool) == isinstance(typed, bool) and key == typed


def check_no_times(values: Iterable[object], dtype: DType, what: str) -> None:
    """Refuse times beside a column of numbers. Errors: WrongType."""
    if any(isinstance(value, (dt.date, dt.timedelta)) for value in values):
        raise WrongType(
            f"{what}: a column of type {show(dtype)} goes with numbers, not with times."
        )


def is_finite(value: object) -> bool:
    """Whether a scalar is neither infinite nor NaN; a value that is no number is finite."""
    match value:
        case Decimal():
            return value.is_finite()
        case float():
            return math.isfinite(value)
    return True


GIVE = {  # what to type for each family, in words
    "integer": "whole numbers, such as 1",
    "float": "numbers, such as 1.5",
    "decimal": "numbers, such as 1.5",
    "string": "texts, such as 'a'",
    "boolean": "True or False",
    "date": "dates, such as datetime.date(2026, 1, 31)",
    "datetime": "times, such as datetime.datetime(2026, 1, 31, 12)",
    "duration": "durations, such as datetime.timedelta(hours=1)",
}


def check_scalar(value: object, dtype: DType, what: str) -> Scalar | None:
    """`value` as a plain Python value that a column of `dtype` can hold, or a
    typed error that names `what`.

    Dates and midnights stand for each other: see `as_held`.
    """
    value = as_held(plain(value), dtype)
    have, want = kind_of_scalar(value), kind(dtype)
    if not is_finite(value):
        raise InvalidArgument(f"{what}: numbers must be finite.")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise InvalidArgument(f"{what}: whole numbers must fit in 64 bits.")
    if have == want == Kind.DATETIME and has_zone(value) != (zone_of(dtype) is not None):
        raise _other_zone(what, in_zone=has_zone(value))
    numbers = {"integer", "float", "decimal"}
    if have == "null" or have == want or (have in numbers and want in numbers):
        return value  # type: ignore[return-value]
    give = f" Give {GIVE[want]}." if want in GIVE else ""
    if want == Kind.STRING and have in (Kind.DATE, Kind.DATETIME):
        give += (
            " Times that are held as text become times by cast('x', 'date') or 'datetime', before "
            "it."
        )
    article = "an" if have == Kind.INTEGER else "a"
    raise WrongType(
        f"{what}: {article} {have} does not go with a column of type {show(dtype)}.{give}"
    )


def _other_zone(what: str, *, in_zone: bool) -> WrongType:
    """The error for a time with a zone (`in_zone`) and a column
    without one, or the other way round.
    """
    zone = "" if in_zone else ", tzinfo=datetime.timezone.utc"
    return WrongType(
        f"{what}: a time must have a zone just where the column has one. Type it as "
        f"datetime.datetime(2026, 1, 31, 12{zone})."
    )


_EPOCH = dt.date(1970, 1, 1)


def ticks(value: object, dtype: DType, what: str) -> int:
    """A date, time or duration as the whole number that a column of `dtype`
    holds for it, or a typed error.

    For a date these are days since 1970. For a time they are units of the type since 1970 (in UTC
    if the column has a zone), for a duration units of the type. Dates and midnights stand for each
    other: see `as_held`.

    >>> (
    ...     ticks(dt.date(1970, 1, 31), nw.Date(), "bounds"),
    ...     ticks(dt.timedelta(seconds=2), nw.Duration("ms"), "bounds"),
    ... )
    (30, 2000)
    """
    value, family = as_held(plain(value), dtype), kind(dtype)
    match family, value:
        case Kind.DATETIME, dt.datetime():
            since = _since_epoch(value, zone_of(dtype), what)
        case Kind.DATE, dt.date() if not isinstance(value, dt.datetime):
            return value.toordinal() - _EPOCH.toordinal()
        case Kind.DURATION, dt.timedelta():
            since = value
        case _:
            wanted = {"date": "a date", "datetime": "a date or a time", "duration": "a timedelta"}
            needed = wanted.get(family, "a number")
            give = f" Give {GIVE[family]}." if family in GIVE else ""
            raise WrongType(
                f"{what}: a column of type {show(dtype)} goes with {needed}, not with "
                f"{kind_of(value)}.{give}"
            )
    micro = since // dt.timedelta(microseconds=1)
    count, rest = divmod(micro * TICKS[time_unit(dtype)], 10**6)
    if rest:
        raise WrongType(
            f"{what}: the time is finer than the column's type, {show(dtype)}. Give {GIVE[family]}."
        )
    if not -(2**63) < count < 2**63 - 1:
        raise WrongType(
            f"{what}: the time is outside of the column's type, {show(dtype)}. Give {GIVE[family]}."
        )
    return count


def has_zone(value: object) -> bool:
    """Whether a value is a time with a time zone."""
    return isinstance(value, dt.datetime) and value.tzinfo is not None


def as_held(value: object, dtype: DType) -> object:
    """A date as its midnight for a column of times, a midnight as its date for one
    of dates; else the value itself.

    >>> as_held(dt.date(2026, 1, 31), nw.Datetime()), as_held(dt.datetime(2026, 1, 31), nw.Date())
    (datetime.datetime(2026, 1, 31, 0, 0), datetime.date(2026, 1, 31))
    """
    match value:
        case dt.datetime():
            midnight = value.tzinfo is None and value.time() == dt.time()
            return value.date() if midnight and kind(dtype) == Kind.DATE else value
        case dt.date() if kind(dtype) == Kind.DATETIME:
            zone = zone_of(dtype)
            try:
                tzinfo = None if zone is None else zoneinfo.ZoneInfo(zone)
            except (zoneinfo.ZoneInfoNotFoundError, ValueError):
                tzinfo = None  # the time has no zone then, and is refused for this column
            return dt.datetime(value.year, value.month, value.day, tzinfo=tzinfo)
    return value


def _since_epoch(value: dt.datetime, zone: str | None, what: str) -> dt.timedelta:
    """The time since 1970. Errors: WrongType if only one of value and column has a zone."""
    if (value.tzinfo is None) != (zone is None):
        raise _other_zone(what, in_zone=zone is None)
    check_years(value, what)
    return value - dt.datetime(1970, 1, 1, tzinfo=None if zone is None else dt.UTC)


def moment(count: float, dtype: DType) -> dt.date | dt.timedelta | float:
    """The date, time or duration of a number of ticks;
    the number itself if Python has no value for it.

    Between two days it is a time.
    """
    if kind(dtype) == Kind.DATE and count % 1:
        return moment(count * mean_type(dtype)[1], nw.Datetime("us"))
    micro = round(count) * 10**6 // TICKS[time_unit(dtype)]
    try:
        if kind(dtype) == Kind.DATE:
            return _EPOCH + dt.timedelta(days=round(count))
        if kind(dtype) == Kind.DURATION:
            return dt.timedelta(microseconds=micro)
        zone = None if zone_of(dtype) is None else dt.UTC
        return dt.datetime(1970, 1, 1, tzinfo=zone) + dt.timedelta(microseconds=micro)
    except OverflowError:
        return count


def check_choice(value: object, choices: tuple[str, ...], what: str, more: str = "") -> None:
    """Errors: InvalidArgument, with the choices, and `more` of what is allowed.

    The message shows the refused value only if it is a text.
    """
    if not isinstance(value, str) or value not in choices:
        text = f"{what}={value!r}" if isinstance(value, str) else what
        raise InvalidArgument(
            f"{text}: choose {', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}{more}."
        )


def counted(number: int, noun: str) -> str:
    """A number of things in words.

    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{number} {noun}{'s' if number != 1 else ''}"
