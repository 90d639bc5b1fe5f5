"""The types of columns in a plan, and checks of values and conversions by type."""

from __future__ import annotations

import datetime as dt
import math
import zoneinfo
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, WrongType, kind_of, said

Scalar = bool | int | float | str | Decimal | dt.date | dt.datetime | dt.timedelta


class Kind(StrEnum):
    """The kind of a column's type. It decides which operations the column has."""

    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"
    STRING = "string"
    DATE = "date"
    DATETIME = "datetime"
    DURATION = "duration"
    OTHER = "other"

    def __repr__(self) -> str:
        return repr(self.value)

    @property
    def real(self) -> bool:
        """Whether its values are floats inside the engine."""
        return self in (Kind.FLOAT, Kind.DECIMAL)


TIMES = (Kind.DATE, Kind.DATETIME, Kind.DURATION)  # the families of types whose values are whole numbers of ticks

_NAMES: Mapping[str, DType] = {
    **{name.lower(): getattr(nw, name)() for name in ("Int8", "Int16", "Int32", "Int64")},
    **{name.lower(): getattr(nw, name)() for name in ("UInt8", "UInt16", "UInt32", "UInt64")},
    **{name.lower(): getattr(nw, name)() for name in ("Float32", "Float64", "Boolean", "String", "Date")},
    "bool": nw.Boolean(),
    "int": nw.Int64(),
    "float": nw.Float64(),
    "str": nw.String(),
    "datetime": nw.Datetime(),
}
_PYTHON: Mapping[type, DType] = {
    bool: nw.Boolean(),
    int: nw.Int64(),
    float: nw.Float64(),
    str: nw.String(),
    dt.date: nw.Date(),
    dt.datetime: nw.Datetime(),
}


def kind(dtype: DType) -> Kind:
    """The kind of a type."""
    if dtype.is_integer():
        return Kind.INTEGER
    if dtype.is_float():
        return Kind.FLOAT
    if dtype.is_decimal():
        return Kind.DECIMAL
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return Kind.STRING
    simple = {nw.Boolean: Kind.BOOLEAN, nw.Date: Kind.DATE, nw.Datetime: Kind.DATETIME, nw.Duration: Kind.DURATION}
    return next((name for family, name in simple.items() if dtype == family), Kind.OTHER)


class Unread(nw.Unknown):
    """The type of a column that cannot be read; `what` says what it is, and what to type before it is protected."""

    __slots__ = ("what",)

    def __init__(self, what: str) -> None:
        self.what = what


class Null(nw.Unknown):
    """The type of a null that the user typed. It goes with every type, and no column has it."""


def show(dtype: DType) -> str:
    """A type as a person writes it, without its categories."""
    if isinstance(dtype, Unread):
        return dtype.what
    return "Enum" if dtype == nw.Enum else str(dtype)


def number(value: float | dt.date | dt.timedelta) -> str:
    """A number or a time as a person writes it: no trailing zeros, and every digit that matters.

    Durations have no comma, so that they can stand in a list.

    >>> number(dt.timedelta(days=30)), number(dt.timedelta(days=1, hours=2)), number(dt.timedelta(minutes=-5))
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
    """A key or a cell as text for people: durations as `number` writes them, other values as Python does.

    >>> label(None), label(True), label(dt.timedelta(days=2))
    ('null', 'True', '2 days')
    """
    value = plain(value)
    return "null" if value is None else number(value) if isinstance(value, dt.timedelta) else str(value)


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
    """Listed values in a stable order. The values of a set are sorted, since its order differs between processes.

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
    r"""Errors: InvalidArgument for half of a pair of surrogates, such as "\ud800", which no engine takes as a text."""
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        half = text[problem.start]
        raise InvalidArgument(f"{what}: {half!r} is half of a pair, and no letter of Unicode. Leave it out.") from None


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
    raise InvalidArgument(f"A plan holds numbers, strings, bools and dates, not {kind_of(value)}.{unfinished}")


def check_years(value: dt.datetime, what: str) -> None:
    """Refuse a time with a zone in the first or last year of Python, which another zone's clock may not have."""
    if value.tzinfo is not None and not 1 < value.year < 9999:
        raise WrongType(
            f"{what}: a time with a zone must be in the years 2 to 9998, such as datetime.datetime(9998, 12, 31, "
            "tzinfo=datetime.timezone.utc)."
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
    """A Python or numpy number as Python's int or float; None for anything else, and for True and False.

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
        raise WrongType(f"{what}: a column of type {show(dtype)} goes with numbers, not with times.")


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
    """`value` as a plain Python value that a column of `dtype` can hold, or a typed error that names `what`.

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
        give += " Times that are held as text become times by cast('x', 'date') or 'datetime', before it."
    article = "an" if have == Kind.INTEGER else "a"
    raise WrongType(f"{what}: {article} {have} does not go with a column of type {show(dtype)}.{give}")


def _other_zone(what: str, *, in_zone: bool) -> WrongType:
    """The error for a time with a zone (`in_zone`) and a column without one, or the other way round."""
    zone = "" if in_zone else ", tzinfo=datetime.timezone.utc"
    return WrongType(
        f"{what}: a time must have a zone just where the column has one. Type it as "
        f"datetime.datetime(2026, 1, 31, 12{zone})."
    )


TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}  # of a second, by the unit of a type of times
_EPOCH = dt.date(1970, 1, 1)


def ticks(value: object, dtype: DType, what: str) -> int:
    """A date, time or duration as the whole number that a column of `dtype` holds for it, or a typed error.

    For a date these are days since 1970. For a time they are units of the type since 1970 (in UTC if the column has a
    zone), for a duration units of the type. Dates and midnights stand for each other: see `as_held`.

    >>> ticks(dt.date(1970, 1, 31), nw.Date(), "bounds"), ticks(dt.timedelta(seconds=2), nw.Duration("ms"), "bounds")
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
                f"{what}: a column of type {show(dtype)} goes with {needed}, not with {kind_of(value)}.{give}"
            )
    micro = since // dt.timedelta(microseconds=1)
    count, rest = divmod(micro * TICKS[time_unit(dtype)], 10**6)
    if rest:
        raise WrongType(f"{what}: the time is finer than the column's type, {show(dtype)}. Give {GIVE[family]}.")
    if not -(2**63) < count < 2**63 - 1:
        raise WrongType(f"{what}: the time is outside of the column's type, {show(dtype)}. Give {GIVE[family]}.")
    return count


def ticks_of_a_second(dtype: DType) -> int | None:
    """Number of ticks of a type of times in a second; 0 for dates, and None for types that are no times."""
    family = kind(dtype)
    if family not in TIMES:
        return None
    return 0 if family == Kind.DATE else TICKS[time_unit(dtype)]


def ticks_of_a_day(dtype: DType) -> int:
    """Number of ticks of a type of times in a day: one of a date."""
    return 1 if kind(dtype) == Kind.DATE else 86_400 * TICKS[time_unit(dtype)]


def time_unit(dtype: object) -> Any:
    """The unit of a type of times; microseconds where it has none."""
    return getattr(dtype, "time_unit", "us")


def zone_of(dtype: object) -> str | None:
    """The zone of a type of times."""
    return getattr(dtype, "time_zone", None)


def has_zone(value: object) -> bool:
    """Whether a value is a time with a time zone."""
    return isinstance(value, dt.datetime) and value.tzinfo is not None


def is_wide(dtype: object) -> bool:
    """Whether whole numbers of a type may not fit in 64 bits with a sign."""
    return dtype in (nw.UInt64, nw.Int128, nw.UInt128)


def as_held(value: object, dtype: DType) -> object:
    """A date as its midnight for a column of times, a midnight as its date for one of dates; else the value itself.

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


_DAY = 86_400_000_000  # microseconds


def mean_type(dtype: DType) -> tuple[DType | None, int]:
    """The type of a mean of times, and how many of its ticks are one tick of the column; None for numbers.

    The mean of dates is a time, as in Polars.

    >>> mean_type(nw.Date()), mean_type(nw.Int8())
    ((Datetime(time_unit='us', time_zone=None), 86400000000), (None, 1))
    """
    if dtype == nw.Date:
        return nw.Datetime("us"), _DAY
    return (dtype if kind(dtype) in TIMES else None), 1


def _since_epoch(value: dt.datetime, zone: str | None, what: str) -> dt.timedelta:
    """The time since 1970. Errors: WrongType if only one of value and column has a zone."""
    if (value.tzinfo is None) != (zone is None):
        raise _other_zone(what, in_zone=zone is None)
    check_years(value, what)
    return value - dt.datetime(1970, 1, 1, tzinfo=None if zone is None else dt.UTC)


def moment(count: float, dtype: DType) -> dt.date | dt.timedelta | float:
    """The date, time or duration of a number of ticks; the number itself if Python has no value for it.

    Between two days it is a time.
    """
    if kind(dtype) == Kind.DATE and count % 1:
        return moment(count * _DAY, nw.Datetime("us"))
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


def integer_range(dtype: object) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    digits = "".join(c for c in str(dtype) if c.isdigit())
    bits = int(digits)
    return (0, 2**bits - 1) if str(dtype).startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def as_dtype(value: object) -> DType:
    """A type from its name ("int64"), a Python type, a numpy dtype, or a Polars or narwhals type.

    >>> as_dtype("int64"), as_dtype(float)
    (Int64, Float64)
    """
    match value:
        case type() if value in _PYTHON:
            return _PYTHON[value]
        case DType():
            return value
        case type() if issubclass(value, DType) and value is not nw.Enum:
            return value()
    if type(value).__module__.startswith("polars") or str(getattr(value, "__module__", "")).startswith("polars"):
        import polars as pl

        if not isinstance(value, pl.DataType) and not (isinstance(value, type) and issubclass(value, pl.DataType)):
            raise InvalidArgument(f"A type is pl.Int64 or 'int64', for example, not {kind_of(value)}.")
        native = value() if isinstance(value, type) and value not in (pl.Enum, pl.List, pl.Array) else value
        return nw.from_native(pl.DataFrame(schema={"x": native})).schema["x"]
    match value:
        case (str() as name) | object(name=str() as name) if name.lower() in _NAMES:  # numpy's types have names
            return _NAMES[name.lower()]
    raise InvalidArgument(f"A type is one of {', '.join(sorted(_NAMES))}, not {said(value)}.")


def check_choice(value: object, choices: tuple[str, ...], what: str, more: str = "") -> None:
    """Errors: InvalidArgument, with the choices, and `more` of what is allowed.

    The message shows the refused value only if it is a text.
    """
    if not isinstance(value, str) or value not in choices:
        text = f"{what}={value!r}" if isinstance(value, str) else what
        raise InvalidArgument(f"{text}: choose {', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}{more}.")


def counted(number: int, noun: str) -> str:
    """A number of things in words.

    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{number} {noun}{'s' if number != 1 else ''}"


# Conversions

_MAY_CONVERT = {  # what Polars, SQL and Spark convert alike
    "integer": {"integer", "float", "boolean", "string"},
    "float": {"integer", "float"},
    "decimal": {"integer", "float"},
    "boolean": {"integer", "float", "boolean", "string"},
    "string": {"integer", "float", "string", "date", "datetime"},
    "date": {"date", "datetime", "string"},
    "datetime": {"date", "datetime"},
}


def cast_first(dtype: DType, name: str = "x") -> str:
    """The end of a message about a column of texts where another type is needed; "" for other columns."""
    if kind(dtype) != Kind.STRING:
        return ""
    return (
        f" Numbers and times that are held as text: cast({name!r}, 'float64'), 'date' or 'datetime', before it. A "
        "pandas column of other Python objects is read as text too: give it its type before the table is protected, as "
        f"in astype({{{name!r}: 'float64'}}), or 'boolean' for True and False."
    )


def check_cast(source: DType, target: DType, what: str) -> None:
    """Refuse a conversion whose result differs between engines, or that is impossible row by row. Errors: WrongType."""
    if kind(target) not in _MAY_CONVERT.get(kind(source), set()):
        cast = cast_to(source, *sorted(_MAY_CONVERT.get(kind(source), {kind(target)})))
        raise WrongType(
            f"{what}: {show(source)} does not convert to {show(target)} in the same way on every engine.{cast}"
        )


_CAST = {"integer": "int64", "float": "float64"}  # what to type for a kind that is no type


def cast_to(source: DType, *kinds: str) -> str:
    """A line to type where a column of one of some kinds is needed, as the end of a message."""
    typed = [repr(_CAST.get(name, name)) for name in kinds if name in _MAY_CONVERT.get(kind(source), set())]
    if typed:
        others = f", or to {' or '.join(typed[1:])}" if typed[1:] else ""
        return f" Cast it, as in dp.col('x').cast({typed[0]}){others}."
    told = isinstance(source, nw.Unknown) and type(source) is not nw.Unknown  # a type that says itself what to do
    return "" if told else f" Make it {' or '.join(kinds)} before dp.protect(...)."
