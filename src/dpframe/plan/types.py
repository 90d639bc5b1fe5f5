"""The types a column can have in a plan, and what each kind of type can be asked."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from decimal import Decimal

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, WrongType

__all__ = [
    "Scalar",
    "as_dtype",
    "check_cast",
    "check_scalar",
    "integer_range",
    "kind",
    "kind_of_scalar",
    "number",
    "plain",
    "show",
]

Scalar = bool | int | float | str | Decimal | dt.date | dt.datetime

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
_MAY_CONVERT = {  # what Polars, SQL and Spark convert alike
    "integer": {"integer", "float", "boolean", "string"},
    "float": {"integer", "float"},
    "decimal": {"integer", "float"},
    "boolean": {"integer", "float", "boolean", "string"},
    "string": {"integer", "float", "string", "date", "datetime"},
    "date": {"date", "datetime", "string"},
    "datetime": {"date", "datetime"},
}


def kind(dtype: DType) -> str:
    """The family of a type: integer, float, decimal, boolean, string, date, datetime, duration or other."""
    if dtype.is_integer():
        return "integer"
    if dtype.is_float():
        return "float"
    if dtype.is_decimal():
        return "decimal"
    if isinstance(dtype, (nw.String, nw.Categorical, nw.Enum)):
        return "string"
    simple = {nw.Boolean: "boolean", nw.Date: "date", nw.Datetime: "datetime", nw.Duration: "duration"}
    return next((name for family, name in simple.items() if isinstance(dtype, family)), "other")


def show(dtype: DType) -> str:
    """A type as a person writes it, without its categories."""
    return "Enum" if isinstance(dtype, nw.Enum) else str(dtype)


def number(value: float) -> str:
    """A number as a person writes it: no trailing zeros, and every digit that matters."""
    return str(value) if isinstance(value, int) else repr(value).removesuffix(".0")


def kind_of_scalar(value: object) -> str:
    """The family of a Python (or numpy) value that stands in a plan; null is "null"."""
    value = plain(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, dt.datetime):
        return "datetime"
    for family, name in ((int, "integer"), (float, "float"), (Decimal, "decimal"), (str, "string"), (dt.date, "date")):
        if isinstance(value, family):
            return name
    raise InvalidArgument(f"A {type(value).__name__} cannot stand in a plan; use a number, string, bool or date.")


def plain(value: object) -> object:
    """A numpy or pandas scalar as the Python value it holds; anything else as it is."""
    module = type(value).__module__
    if module.startswith("numpy") and hasattr(value, "item"):
        return value.item()
    if module.startswith("pandas") and hasattr(value, "to_pydatetime"):
        return value.to_pydatetime()
    return value


def check_scalar(value: object, dtype: DType, what: str) -> Scalar | None:
    """`value` as a plain Python value that a column of `dtype` can hold, or a typed error that names `what`."""
    value = plain(value)
    have, want = kind_of_scalar(value), kind(dtype)
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidArgument(f"{what}: numbers must be finite.")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise InvalidArgument(f"{what}: whole numbers must fit in 64 bits.")
    zoned = isinstance(value, dt.datetime) and value.tzinfo is not None
    if have == want == "datetime" and zoned != (getattr(dtype, "time_zone", None) is not None):
        raise WrongType(f"{what}: a time must have a zone just where the column has one.")
    numbers = {"integer", "float", "decimal"}
    if have == "null" or have == want or (have in numbers and want in numbers):
        return value  # type: ignore[return-value]
    raise WrongType(f"{what}: a {have} does not go with a column of type {show(dtype)}.")


def integer_range(dtype: DType) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    digits = "".join(c for c in str(dtype) if c.isdigit())
    bits = int(digits)
    return (0, 2**bits - 1) if str(dtype).startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def as_dtype(given: object) -> DType:
    """A type from its name ("int64"), a Python type, a numpy dtype, or a Polars or narwhals type.

    >>> as_dtype("int64"), as_dtype(float)
    (Int64, Float64)
    """
    if isinstance(given, type) and given in _PYTHON:
        return _PYTHON[given]
    if isinstance(given, DType):
        return given
    if isinstance(given, type) and issubclass(given, DType) and given is not nw.Enum:
        return given()
    if type(given).__module__.startswith("polars") or getattr(given, "__module__", "").startswith("polars"):
        import polars as pl

        native = given() if isinstance(given, type) and given not in (pl.Enum, pl.List, pl.Array) else given
        return nw.from_native(pl.DataFrame(schema={"x": native})).schema["x"]  # type: ignore[dict-item]
    name = str(getattr(given, "name", given)).lower()
    if name in _NAMES:
        return _NAMES[name]
    raise InvalidArgument(f"{given!r} is not a type that dpframe knows; try one of {', '.join(sorted(_NAMES))}.")


def check_cast(source: DType, target: DType, what: str) -> None:
    """Refuse a conversion that engines do differently or cannot do row by row."""
    if kind(target) not in _MAY_CONVERT.get(kind(source), set()):
        raise WrongType(f"{what}: {show(source)} does not convert to {show(target)} in the same way on every engine.")
