"""The functions that DataFusion calls.
Each is a Polars expression: total, and null where there is no result.

A column has one of four types inside: whole numbers of 64 bits, floats of 64 bits, texts, Booleans.
A float has one form of zero and one of NaN, because DataFusion compares floats by their bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import narwhals as nw
import polars as pl
import pyarrow as pa
from ibis.expr.datatypes import DataType

from dpframe.engine.backends import polars as computed
from dpframe.engine.backends.base import CellFunction, Parsed, Part, digest
from dpframe.engine.intake import sound, views_are_read
from dpframe.plan import TICKS

Expr = pl.Expr
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, in days since 1970
_DAY = 86_400_000_000  # microseconds
_MILLISECONDS = 86_400_000  # of a day


def arrow_type(dtype: DataType) -> pa.DataType:
    """The Arrow type in which DataFusion has a column of a type of Ibis.
    Texts have offsets of 64 bits.
    """
    if dtype.is_string():
        return pa.large_string()
    if dtype.is_boolean():
        return pa.bool_()
    return pa.float64() if dtype.is_floating() else pa.int64()


def _canonical(value: Expr) -> Expr:
    """A float with one form of zero and one of NaN.
    In Polars, as in other engines, -0.0 is equal to 0.0.
    """
    return pl.when(value.is_nan()).then(math.nan).when(value == 0).then(0.0).otherwise(value)


# Columns of the user's, as Arrow has them


def as_held(array: pa.Array) -> pl.Series:
    """A column of the user's as dpframe holds it.

    A time is its ticks. NaN is null, and so is a time outside of the years 1 to 9999. A cell that
    does not hold in its type is null: a session takes over the memory of tables as it is, also a
    code outside of its dictionary.
    """
    array = _checked(array)
    dtype = array.type
    if pa.types.is_temporal(dtype):
        return _ticks(array)
    if pa.types.is_floating(dtype) or pa.types.is_decimal(dtype):
        column = (
            _of_decimals(array) if pa.types.is_decimal(dtype) else series(array.cast(pa.float64()))
        )
        return _one(column.to_frame("a"), _canonical(pl.col("a").fill_nan(None)))
    column = series(array)
    return column.cast(pl.Int64) if column.dtype.is_integer() else column


def _checked(array: pa.Array) -> pa.Array:
    """The array with null for each cell that is not valid, without dictionaries and runs."""
    # DataFusion makes such arrays of its files
    if array.type == pa.string_view() and not views_are_read():
        return computed.unicode(series(array)).to_arrow()
    checked = sound(array)
    return checked.chunk(0) if checked.num_chunks == 1 else checked.combine_chunks()


def _of_decimals(array: pa.Array) -> pl.Series:
    """Decimals as floats, by way of their texts, so that they are rounded once."""
    decimals = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    return series(decimals).cast(pl.String).cast(pl.Float64)


def _ticks(array: pa.Array) -> pl.Series:
    """Days of a date, microseconds of a time.
    A range is checked before ticks are multiplied, so nothing wraps.
    """
    dtype = array.type
    if pa.types.is_date32(dtype):
        days = series(array.view(pa.int32())).cast(pl.Int64)
        return _one(days.to_frame("a"), _inside(pl.col("a"), _FIRST_DAY, _LAST_DAY))
    ticks = series(array.view(pa.int64())).to_frame("a")
    if pa.types.is_date64(dtype):
        return _one(ticks, _inside(pl.col("a") // _MILLISECONDS, _FIRST_DAY, _LAST_DAY))
    per_second = TICKS[dtype.unit]
    first, end = _FIRST_DAY * 86_400 * per_second, (_LAST_DAY + 1) * 86_400 * per_second
    return _one(ticks, _inside(pl.col("a"), first, end - 1) * (TICKS["us"] // per_second))


def series(array: pa.Array) -> pl.Series:
    """An Arrow array as Polars holds it."""
    return pl.Series(array)


def _one(frame: pl.DataFrame, value: Expr) -> pl.Series:
    return frame.select(value.alias("a")).to_series()


def _inside(value: Expr, low: int, high: int) -> Expr:
    return pl.when(value.is_between(low, high)).then(value)


# Numbers


def _whole(value: Expr, low: int, high: int) -> Expr:
    """A number without its fraction, null where it leaves the range."""
    return _inside(value.cast(pl.Int64, strict=False), low, high)


def _floor(value: Expr) -> Expr:
    return value.floor().cast(pl.Int64, strict=False)


def _remainder(top: Expr, bottom: Expr) -> Expr:
    """A remainder with the sign of the number that is divided, as in
    SQL; null for a division by zero.
    """
    divisor = pl.when(bottom != 0).then(bottom)
    remainder = top % divisor
    other_sign = (remainder != 0) & ((top < 0) != (divisor < 0))
    return pl.when(other_sign).then(remainder - divisor).otherwise(remainder)


def _clipped(value: Expr, *ends: Expr | None) -> Expr:
    lower, upper = ends
    for limit, beyond in ((lower, Expr.__lt__), (upper, Expr.__gt__)):
        if limit is not None:
            value = pl.when(beyond(value, limit)).then(limit).otherwise(value)
    return value


_MOST = 2**63 - 1


def _rank(frame: pl.DataFrame) -> pl.Series:
    """The bits of a float as a whole number that has the place of the float among all floats."""
    bits = series(frame.to_series().to_arrow().view(pa.int64()))
    return _one(bits.to_frame("a"), _turned(pl.col("a")))


def _unrank(frame: pl.DataFrame) -> pl.Series:
    """The float of a whole number that `_rank` gave."""
    return series(_one(frame, _turned(pl.col(frame.columns[0]))).to_arrow().view(pa.float64()))


def _turned(bits: Expr) -> Expr:
    """Negative floats in their order: the bits beneath the sign are
    turned, which a second time undoes.
    """
    return pl.when(bits < 0).then(bits ^ _MOST).otherwise(bits)


# As the backend of Polars computes it


def _keyed_hash(frame: pl.DataFrame, salt: int) -> pl.Series:
    return _one(frame, computed.hash_of(frame.columns, salt).reinterpret(signed=True))


def _parsed(value: Expr, function: Parsed) -> Expr:
    found = computed.applied(value, function)
    return (found.cast(pl.Datetime("us")) if function.dtype == nw.Datetime else found).to_physical()


def _applied(value: Expr, function: CellFunction) -> Expr:
    if isinstance(function, Part):
        value = value.cast(pl.Date if function.dtype == nw.Date else pl.Datetime("us"))
    return computed.applied(value, function)


def _stable_hash(frame: pl.DataFrame, salt: str) -> pl.Series:
    rows = ([x.encode() if isinstance(x, str) else x for x in row] for row in frame.iter_rows())
    return pl.Series([digest(16, salt.encode(), row).hex() for row in rows], dtype=pl.String)


def _expression(function: Callable[..., Expr], real: bool = False) -> Callable[..., pl.Series]:
    """A function of columns as a function of a frame.
    With `real`, floats as they are held come out.
    """

    def column(frame: pl.DataFrame, *options: object) -> pl.Series:
        value = function(*map(pl.col, frame.columns), *options)
        return _one(frame, _canonical(value) if real else value)

    return column


def _limits(value: Expr, *ends: Any) -> Expr:
    """A clip whose ends are columns too; a flag for each end says whether it is there."""
    *limits, has_lower, has_upper = ends
    given = iter(limits)
    return _clipped(value, next(given) if has_lower else None, next(given) if has_upper else None)


_OF_COLUMNS: Mapping[str, Callable[..., Expr]] = {
    "whole": _whole,
    "floor": _floor,
    "remainder": _remainder,
    "size": lambda a: pl.when(a < 0).then(0 - a).otherwise(a),
    "clip": _limits,
    "text": lambda a: a.cast(pl.String),
    "is_nan": lambda a: a.is_nan(),
    "length": lambda a: a.str.len_chars().cast(pl.Int64),
    "contains": lambda a, b: a.str.contains(b, literal=True),
    "starts": lambda a, b: a.str.starts_with(b),
    "ends": lambda a, b: a.str.ends_with(b),
    "head": lambda a, start, length: a.str.slice(start, length),
    "matches": lambda a, pattern: a.str.contains(pattern),
    "joined": lambda *texts: pl.concat_str(texts),
    "parsed": _parsed,
    "applied": _applied,
}
_OF_FLOATS: Mapping[str, Callable[..., Expr]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "negate": lambda a: -a,
    "truth": lambda a: a.cast(pl.Float64),
    "single": lambda a: a.cast(pl.Float32).cast(pl.Float64),
    "not_nan": lambda a: a.fill_nan(None),
    "floor": lambda a: a.floor(),
    "size": lambda a: a.abs(),
    "clip": _limits,
    "root": lambda a: pl.when(a >= 0).then(a.sqrt()),
    "logarithm": lambda a, base: pl.when(a > 0).then(a.log(base)),
}
# From the name of a function to what it does with a frame whose columns are its operands, a0, a1,
# …, and its options.
FUNCTIONS: Mapping[str, Callable[..., pl.Series]] = {
    **{name: _expression(function) for name, function in _OF_COLUMNS.items()},
    **{f"{name}_real": _expression(function, real=True) for name, function in _OF_FLOATS.items()},
    "hash": _keyed_hash,
    "stable_hash": _stable_hash,
    "rank": _rank,
    "unrank": _unrank,
}
