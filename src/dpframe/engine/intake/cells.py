"""Cells that are Python objects: each is converted by itself to a text,
or to a value of another type.

An object's own code may raise, return anything, or claim to be of another class. If it raises, its
cell becomes null, and the error is dropped, because a release that failed would tell that there is
such a cell. Only an exception that a signal raises is passed on, so that an interrupt from the
keyboard stops the work. The result for an object depends on this object alone, never on other
cells.
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

from dpframe.plan import TICKS, integer_range, zone_of

T = TypeVar("T")
Cell = Any  # of a column of objects: whatever Python can hold
# Ctrl-C, a request to end, and a time limit that is over. Windows has no alarm.
_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(signal, name)
]


def each(reader: Callable[[Cell], T], cells: Iterable[Cell]) -> list[T | None]:
    """The result of `reader` for each cell, None where it raises.

    Errors: KeyboardInterrupt, SystemExit or any other exception of a signal's handler. A cell whose
            own code raises one of these is None
    """
    values: list[T | None] = []
    with signals() as raised:
        for cell in cells:
            try:
                values.append(reader(cell))
            except BaseException:
                if raised:
                    raise
                values.append(None)
    return values


@contextlib.contextmanager
def signals() -> Iterator[list[BaseException]]:
    """Exceptions of signals' handlers while the block runs.
    Python delivers signals to the main thread alone.

    Engines put another exception in the place of such a one, or drop it.
    """
    raised: list[BaseException] = []
    if threading.current_thread() is not threading.main_thread():
        yield raised
        return

    def noted(handler: Callable[..., Any]) -> Callable[..., Any]:
        def handle(number: int, frame: Any) -> Any:
            try:
                return handler(number, frame)
            except BaseException as error:
                raised.append(error)
                raise

        return handle

    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    replaced_handlers = {
        number: handler for number, handler in handlers.items() if callable(handler)
    }
    for number, handler in replaced_handlers.items():
        signal.signal(number, noted(handler))
    try:
        yield raised
    finally:
        for number, handler in replaced_handlers.items():
            signal.signal(number, handler)


# As text


def text(value: object) -> str | None:
    """An object as text; None for a missing value. Equal numbers have one text.
    Errors: a text that is not Unicode.
    """
    if _missing(value):
        return None
    match value:
        case str():
            characters = str.__str__(value)
        case numbers.Real() | Decimal() if not isinstance(value, (bool, np.bool_)):
            characters = _number_text(value)
        case _:
            # str(value) may be of a subclass of str with code of its own
            characters = str.__str__(str(value))
    characters.encode()
    return characters


def _missing(value: object) -> bool:
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))  # type: ignore[call-overload]


def _number_text(value: Cell) -> str:
    if not _finite(value):
        return str(float(value))
    exact = _exact(value)
    if exact.denominator == 1:
        return str(exact.numerator)
    return (
        repr(float(exact))
        if Fraction(float(exact)) == exact
        else f"{exact.numerator}/{exact.denominator}"
    )


def _finite(value: Cell) -> bool:
    """Whether a number is finite.
    An integer or fraction is, even if it is larger than any float.
    """
    match value:
        case int() | Fraction():
            return True
        case Decimal():
            return Decimal.is_finite(value)
    return math.isfinite(value)


# limit for numerator and denominator (2,466 digits); a number beyond it becomes null
_MOST_BITS = 2**13
_MOST_DIGITS = 2**12  # a decimal with more digits than this surely has more than _MOST_BITS bits


def _exact(value: Cell) -> Fraction:
    """A finite number of Python or numpy, exactly.

    Bound:  the time depends on the number of digits and not on the exponent: Decimal("1e999999999")
            has one digit, and as a fraction it would have a billion
    Errors: OverflowError where the fraction would be longer than `_MOST_BITS`
    """
    match value:
        case Decimal():
            exact = _exact_decimal(value)
        case int() | float() | Fraction():
            exact = Fraction(value)
        case _:
            exact = Fraction(value.item())
    if max(exact.numerator.bit_length(), exact.denominator.bit_length()) > _MOST_BITS:
        raise OverflowError
    return exact


def _exact_decimal(value: Decimal) -> Fraction:
    """A decimal as a fraction.
    Zeros at its end are dropped first, so that 1 and 1.00 have one result.
    """
    sign, digits, exponent = Decimal.as_tuple(value)
    assert isinstance(exponent, int)
    last = max((place for place, digit in enumerate(digits, 1) if digit), default=0)
    if not last:
        return Fraction(0)
    power = exponent + len(digits) - last  # exponent of the last digit that is not 0
    if power < -_MOST_DIGITS or last + power > _MOST_DIGITS:
        raise OverflowError
    return Fraction(Decimal((sign, digits[:last], power)))


# As a value of a column's type


def value_for(dtype: pl.DataType) -> Callable[[Cell], Any]:
    """The function that converts an object to a value of a type, or to None
    where the type cannot hold it.

    A number stays itself wherever it fits. True and False are 1 and 0. A text is neither a number
    nor a time. Times become whole ticks, rounded down. A time with a zone does not fit a column
    without one, nor the other way round.

    >>> value_for(pl.Int8())(3.0), value_for(pl.Boolean())(1), value_for(pl.Float64())(True)
    (3, True, 1.0)
    """
    if dtype == pl.Boolean:
        return _or_null(lambda value: _boolean(_number(value)))
    if dtype.is_integer():
        low, high = integer_range(dtype)
        return _or_null(lambda value: _within(_whole(_number(value)), low, high))
    if dtype.is_float():
        return _or_null(_float)
    match dtype:
        case pl.Decimal():
            return _or_null(
                lambda value: _decimal(_number(value), dtype.precision or 38, dtype.scale)
            )
        case pl.Date() | pl.Datetime() | pl.Duration():
            bits = 31 if dtype == pl.Date else 63
            return _or_null(lambda value: _within(_ticks(value, dtype), -(2**bits), 2**bits - 1))
    return lambda value: None


def _or_null(reader: Callable[[Cell], Any]) -> Callable[[Cell], Any]:
    return lambda value: None if _missing(value) else reader(value)


def _number(value: Cell) -> Fraction | None:
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (numbers.Real, Decimal)) or not _finite(value):
        return None
    return _exact(int(value) if isinstance(value, bool) else value)


def _whole(exact: Fraction | None) -> int | None:
    return None if exact is None or exact.denominator != 1 else exact.numerator


def _boolean(exact: Fraction | None) -> bool | None:
    return bool(exact) if exact in (0, 1) else None


def _within(number: int | None, low: int, high: int) -> int | None:
    return number if number is not None and low <= number <= high else None


def _float(value: Cell) -> float | None:
    if isinstance(value, (float, np.floating, Decimal)):
        return float(value)  # rounded once; a number beyond the floats becomes infinite or 0
    exact = _number(value)
    return None if exact is None else float(exact)


def _decimal(exact: Fraction | None, digits: int, scale: int) -> Decimal | None:
    """A Decimal of at most `digits` digits, `scale` of them after the point;
    None where the number does not fit.
    """
    digits_as_integer = None if exact is None else _whole(exact * 10**scale)
    if digits_as_integer is None or abs(digits_as_integer) >= 10**digits:
        return None
    return Decimal(
        (int(digits_as_integer < 0), tuple(map(int, str(abs(digits_as_integer)))), -scale)
    )


def _ticks(value: Cell, dtype: pl.DataType) -> int | None:
    """A date, time or duration in the ticks of a column's type."""
    if isinstance(dtype, pl.Duration):
        if not isinstance(value, (dt.timedelta, np.timedelta64)):
            return None
        duration: Any = pd.Timedelta(value)
        return _floored(duration.to_timedelta64(), duration.unit, dtype.time_unit)
    if not isinstance(value, (dt.date, np.datetime64)):
        return None
    time: Any = pd.Timestamp(value)
    if (time.tzinfo is None) != (zone_of(dtype) is None):
        return None
    ticks = time.to_datetime64()
    if isinstance(dtype, pl.Datetime):
        return _floored(ticks, time.unit, dtype.time_unit)
    days, remainder = divmod(int(ticks.astype("int64")), 86_400 * TICKS[time.unit])
    return None if remainder else days


def _floored(ticks: Any, unit: str, into: str) -> int:
    return int(ticks.astype("int64")) * TICKS[into] // TICKS[unit]
