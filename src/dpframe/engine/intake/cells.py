"""Cells that are Python objects, one by one: as text, or as what a column of another type holds of them.

An object's own code may raise, give back anything, or say that it is of another class. What it raises makes its cell
null and reaches nobody: a release that failed would tell of it. Only what a signal raises is let through, so that an
interrupt from the keyboard stops the work. How an object is read depends on it alone, never on those beside it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import numbers
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import polars as pl

__all__ = ["each", "text", "value_for"]

T = TypeVar("T")


def each(reader: Callable[[Any], T], cells: Iterable[Any]) -> list[T | None]:
    """What `read` gives for each cell, None where it raises.

    Errors: KeyboardInterrupt, SystemExit or whatever else a signal's handler raises; a cell that raises these is None
    """
    values: list[T | None] = []
    with _signals() as arrived:
        for cell in cells:
            try:
                values.append(reader(cell))
            except BaseException:
                if arrived:
                    raise
                values.append(None)
    return values


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """The signals that arrive while the block runs. Python gives them to the main thread alone."""
    arrived: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield arrived
        return

    def noted(handler: Callable[..., Any]) -> Callable[..., Any]:
        def handle(number: int, frame: Any) -> Any:
            arrived.append(number)
            return handler(number, frame)

        return handle

    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    replaced_handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number, handler in replaced_handlers.items():
        signal.signal(number, noted(handler))
    try:
        yield arrived
    finally:
        for number, handler in replaced_handlers.items():
            signal.signal(number, handler)


# As text


def text(value: object) -> str | None:
    """One object as text: equal numbers have one text; what is missing is null, and so is what is no Unicode."""
    if _missing(value):
        return None
    if isinstance(value, str):
        characters = str.__str__(value)
    elif isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, (bool, np.bool_)):
        characters = _number_text(value)
    else:
        characters = str.__str__(str(value))  # which a class of texts may give, with code of its own
    characters.encode()
    return characters


def _missing(value: object) -> bool:
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))  # type: ignore[call-overload]


def _number_text(value: Any) -> str:
    if not _finite(value):
        return str(float(value))
    exact = _exact(value)
    if exact.denominator == 1:
        return str(exact.numerator)
    return repr(float(exact)) if Fraction(float(exact)) == exact else f"{exact.numerator}/{exact.denominator}"


def _finite(value: Any) -> bool:
    """Whether a number is finite; one that is no float may be, and be larger than any float."""
    if isinstance(value, (int, Fraction)):
        return True
    return Decimal.is_finite(value) if isinstance(value, Decimal) else math.isfinite(value)


_MOST_BITS = 2**13  # those of a fraction's parts, some 2,400 digits; a number with more is null
_MOST_DIGITS = 2**12  # above which a decimal surely has more bits


def _exact(value: Any) -> Fraction:
    """A finite number of Python or numpy, exactly.

    Bound:  the time depends on the digits that are there and not on the exponent: as a fraction, Decimal("1e999999999")
            would have a billion digits
    Errors: OverflowError where the fraction would be longer than `_MOST_BITS`
    """
    if isinstance(value, Decimal):
        exact = _exact_decimal(value)
    else:
        exact = Fraction(value if isinstance(value, (int, float, Fraction)) else value.item())
    if max(exact.numerator.bit_length(), exact.denominator.bit_length()) > _MOST_BITS:
        raise OverflowError
    return exact


def _exact_decimal(value: Decimal) -> Fraction:
    """A decimal without the zeros at its end, so that 1 and 1.00 are one number whatever their exponents are."""
    sign, digits, exponent = Decimal.as_tuple(value)
    assert isinstance(exponent, int)
    last = max((place for place, digit in enumerate(digits, 1) if digit), default=0)
    if not last:
        return Fraction(0)
    power = exponent + len(digits) - last  # that of the last digit that is not 0
    if power < -_MOST_DIGITS or last + power > _MOST_DIGITS:
        raise OverflowError
    return Fraction(Decimal((sign, digits[:last], power)))


# As what a column of another type holds


def value_for(dtype: pl.DataType) -> Callable[[Any], Any]:
    """How a column of a type reads an object: as the value of that type that it is, None where it is none.

    A number is itself wherever it fits, True and False are 1 and 0, a text is no number and no time. Times are whole
    ticks, rounded down; a time with a zone is none without.

    >>> value_for(pl.Int8())(3.0), value_for(pl.Boolean())(1), value_for(pl.Float64())(True)
    (3, True, 1.0)
    """
    if dtype == pl.Boolean:
        return _or_null(lambda value: _boolean(_number(value)))
    if dtype.is_integer():
        low, high = _range(dtype)
        return _or_null(lambda value: _within(_whole(_number(value)), low, high))
    if dtype.is_float():
        return _or_null(_float)
    if isinstance(dtype, pl.Decimal):
        return _or_null(lambda value: _decimal(_number(value), dtype.precision or 38, dtype.scale))
    if isinstance(dtype, (pl.Date, pl.Datetime, pl.Duration)):
        bits = 31 if dtype == pl.Date else 63
        return _or_null(lambda value: _within(_ticks(value, dtype), -(2**bits), 2**bits - 1))
    return lambda value: None


def _or_null(reader: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if _missing(value) else reader(value)


def _number(value: Any) -> Fraction | None:
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (numbers.Real, Decimal)) or not _finite(value):
        return None
    return _exact(int(value) if isinstance(value, bool) else value)


def _whole(exact: Fraction | None) -> int | None:
    return None if exact is None or exact.denominator != 1 else exact.numerator


def _boolean(exact: Fraction | None) -> bool | None:
    return bool(exact) if exact in (0, 1) else None


def _range(dtype: pl.DataType) -> tuple[int, int]:
    bits = int(str(dtype).lstrip("UInt"))
    return (0, 2**bits - 1) if str(dtype).startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _within(number: int | None, low: int, high: int) -> int | None:
    return number if number is not None and low <= number <= high else None


def _float(value: Any) -> float | None:
    if isinstance(value, (float, np.floating, Decimal)):
        return float(value)  # rounded once, and infinite or 0 beyond the floats
    exact = _number(value)
    return None if exact is None else float(exact)


def _decimal(exact: Fraction | None, digits: int, scale: int) -> Decimal | None:
    """A number of at most so many digits, of which so many are after the point."""
    digits_as_integer = None if exact is None else _whole(exact * 10**scale)
    if digits_as_integer is None or abs(digits_as_integer) >= 10**digits:
        return None
    return Decimal((int(digits_as_integer < 0), tuple(map(int, str(abs(digits_as_integer)))), -scale))


PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _ticks(value: Any, dtype: pl.DataType) -> int | None:
    """A date, time or duration as the whole number that a column holds for it."""
    if isinstance(dtype, pl.Duration):
        if not isinstance(value, (dt.timedelta, np.timedelta64)):
            return None
        duration: Any = pd.Timedelta(value)
        return _floored(duration.to_timedelta64(), duration.unit, dtype.time_unit)
    if not isinstance(value, (dt.date, np.datetime64)):
        return None
    time: Any = pd.Timestamp(value)
    if (time.tzinfo is None) != (getattr(dtype, "time_zone", None) is None):
        return None
    ticks = time.to_datetime64()
    if isinstance(dtype, pl.Datetime):
        return _floored(ticks, time.unit, dtype.time_unit)
    days, remainder = divmod(int(ticks.astype("int64")), 86_400 * PER_SECOND[time.unit])
    return None if remainder else days


def _floored(ticks: Any, unit: str, into: str) -> int:
    return int(ticks.astype("int64")) * PER_SECOND[into] // PER_SECOND[unit]
