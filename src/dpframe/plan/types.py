"""The types of columns in a plan, and checks of values and conversions by type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, WrongType, kind_of, said
from dpframe.fields import Word


class Kind(Word):
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

    @property
    def real(self) -> bool:
        """Whether its values are floats inside the engine."""
        return self in (Kind.FLOAT, Kind.DECIMAL)


# the families of types whose values are whole numbers of ticks
TIMES = (Kind.DATE, Kind.DATETIME, Kind.DURATION)

_NAMES: Mapping[str, DType] = {
    **{name.lower(): getattr(nw, name)() for name in ("Int8", "Int16", "Int32", "Int64")},
    **{name.lower(): getattr(nw, name)() for name in ("UInt8", "UInt16", "UInt32", "UInt64")},
    **{
        name.lower(): getattr(nw, name)()
        for name in ("Float32", "Float64", "Boolean", "String", "Date")
    },
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
    simple = {
        nw.Boolean: Kind.BOOLEAN,
        nw.Date: Kind.DATE,
        nw.Datetime: Kind.DATETIME,
        nw.Duration: Kind.DURATION,
    }
    return next((name for family, name in simple.items() if dtype == family), Kind.OTHER)


class Unread(nw.Unknown):
    """The type of a column that cannot be read; `what` says what it is, and what
    to type before it is protected.
    """

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


_DAY = 86_400_000_000  # microseconds
# of a second, by the unit of a type of times
TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def ticks_of_a_second(dtype: DType) -> int | None:
    """Number of ticks of a type of times in a second;
    0 for dates, and None for types that are no times.
    """
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


def is_wide(dtype: object) -> bool:
    """Whether whole numbers of a type may not fit in 64 bits with a sign."""
    return dtype in (nw.UInt64, nw.Int128, nw.UInt128)


def mean_type(dtype: DType) -> tuple[DType | None, int]:
    """The type of a mean of times, and how many of its ticks are one tick
    of the column; None for numbers.

    The mean of dates is a time, as in Polars.

    >>> mean_type(nw.Date()), mean_type(nw.Int8())
    ((Datetime(time_unit='us', time_zone=None), 86400000000), (None, 1))
    """
    if dtype == nw.Date:
        return nw.Datetime("us"), _DAY
    return (dtype if kind(dtype) in TIMES else None), 1


def integer_range(dtype: object) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    digits = "".join(c for c in str(dtype) if c.isdigit())
    bits = int(digits)
    return (
        (0, 2**bits - 1)
        if str(dtype).startswith("U")
        else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )


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
    if type(value).__module__.startswith("polars") or str(
        getattr(value, "__module__", "")
    ).startswith("polars"):
        import polars as pl

        if not isinstance(value, pl.DataType) and not (
            isinstance(value, type) and issubclass(value, pl.DataType)
        ):
            raise InvalidArgument(
                f"A type is pl.Int64 or 'int64', for example, not {kind_of(value)}."
            )
        native = (
            value()
            if isinstance(value, type) and value not in (pl.Enum, pl.List, pl.Array)
            else value
        )
        return nw.from_native(pl.DataFrame(schema={"x": native})).schema["x"]
    match value:
        # numpy's types have names
        case (str() as name) | object(name=str() as name) if name.lower() in _NAMES:
            return _NAMES[name.lower()]
    raise InvalidArgument(f"A type is one of {', '.join(sorted(_NAMES))}, not {said(value)}.")


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
    """The end of a message about a column of texts where another type
    is needed; "" for other columns.
    """
    if kind(dtype) != Kind.STRING:
        return ""
    return (
        f" Numbers and times that are held as text: cast({name!r}, 'float64'), 'date' or "
        "'datetime', before it. A pandas column of other Python objects is read as text too: give "
        f"it its type before the table is protected, as in astype({{{name!r}: 'float64'}}), or "
        "'boolean' for True and False."
    )


def check_cast(source: DType, target: DType, what: str) -> None:
    """Refuse a conversion whose result differs between engines, or that is impossible row by row.
    Errors: WrongType.
    """
    if kind(target) not in _MAY_CONVERT.get(kind(source), set()):
        cast = cast_to(source, *sorted(_MAY_CONVERT.get(kind(source), {kind(target)})))
        raise WrongType(
            f"{what}: {show(source)} does not convert to {show(target)} in the same way on every "
            f"engine.{cast}"
        )


_CAST = {"integer": "int64", "float": "float64"}  # what to type for a kind that is no type


def cast_to(source: DType, *kinds: str) -> str:
    """A line to type where a column of one of some kinds is needed, as the end of a message."""
    typed = [
        repr(_CAST.get(name, name))
        for name in kinds
        if name in _MAY_CONVERT.get(kind(source), set())
    ]
    if typed:
        others = f", or to {' or '.join(typed[1:])}" if typed[1:] else ""
        return f" Cast it, as in dp.col('x').cast({typed[0]}){others}."
    # a type that says itself what to do
    told = isinstance(source, nw.Unknown) and type(source) is not nw.Unknown
    return "" if told else f" Make it {' or '.join(kinds)} before dp.protect(...)."
