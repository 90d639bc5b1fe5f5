"""Conversions between types of columns: which are alike on every engine, and what a message says to type."""

from __future__ import annotations

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.errors import WrongType
from dpframe.plan.types import Kind, kind, show

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
    """What to type where a column of one of some kinds is needed, as the end of a message."""
    typed = [repr(_CAST.get(name, name)) for name in kinds if name in _MAY_CONVERT.get(kind(source), set())]
    if typed:
        others = f", or to {' or '.join(typed[1:])}" if typed[1:] else ""
        return f" Cast it, as in dp.col('x').cast({typed[0]}){others}."
    told = isinstance(source, nw.Unknown) and type(source) is not nw.Unknown  # a type that says itself what to do
    return "" if told else f" Make it {' or '.join(kinds)} before dp.protect(...)."
