"""Numbers, margins of error and times as text, in tables and on axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import polars as pl

from dpframe.plan import TICKS, time_unit

DAY = 86_400  # seconds
_TIMES = (DAY, "days"), (3_600, "hours"), (60, "minutes")
_FULL = 1e15  # from here on, numbers are written with an exponent
_TINY = 1e-9
MISSING = "–"  # in place of a number that is not shown


def shown(value: float, error: float | None = None) -> str:
    """A number as text: integers in full, other numbers to two digits of
    their error, or to four digits.

    >>> shown(1234567), shown(67.7123, 1.2), shown(1.5e300)
    ('1,234,567', '67.7', '1.5e+300')
    """
    if abs(value) >= _FULL:
        return (
            f"{value:,.0f}"
            if isinstance(value, int) and abs(value) < 2**64
            else f"{float(value):.4g}"
        )
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    if error is not None and _TINY < error < math.inf:
        text = f"{value:.{decimals(error)}f}"
        return text.removeprefix("-") if not float(text) else text
    return f"{value:.4g}"


def decimals(error: float | None, dtype: pl.DataType | None = None) -> int:
    """The decimals of a number with a margin of error:
    two digits of that margin; 12 where there is no margin.

    For a column of times (errors in ticks) they are those of seconds.

    >>> (
    ...     decimals(1.2),
    ...     decimals(0.031),
    ...     decimals(40.0),
    ...     decimals(None),
    ...     decimals(3.1e4, pl.Duration("us")),
    ... )
    (1, 3, 0, 12, 3)
    """
    if error is not None and dtype is not None and dtype.is_temporal():
        error = seconds_of(error, dtype)
    if error is None or not _TINY < error < math.inf:
        return 12
    return min(max(1 - math.floor(math.log10(error)), 0), 12)


def decimals_by_column(errors: Mapping[str, Iterable[float | None]]) -> dict[str, int]:
    """The decimals of columns that have several numbers:
    those of the least margin of error in each.

    >>> decimals_by_column({"x": [1.2, 0.031, None], "y": []})
    {'x': 3, 'y': 12}
    """
    known = {
        name: [x for x in column if x is not None and _TINY < x < math.inf]
        for name, column in errors.items()
    }
    return {name: decimals(min(column, default=None)) for name, column in known.items()}


def margin(error: float, dtype: pl.DataType | None = None) -> str:
    """A margin of error to three digits, rounded up;
    for a column of times (errors in ticks) in a unit of time.

    >>> margin(0.12345), margin(3.6e9, pl.Datetime("us")), margin(12.5, pl.Date())
    ('0.124', '60 minutes', '12.5 days')
    """
    if dtype is not None and dtype.is_temporal():
        seconds = seconds_of(error, dtype)
        size, unit = unit_of_time(seconds)
        return f"{margin(seconds / size)} {unit}"
    if error <= 0 or not math.isfinite(error):
        return f"{error:g}"
    step = 10.0 ** min(math.floor(math.log10(error)) - 2, 0)
    if error < _TINY or error >= _FULL:
        step = 10.0 ** (math.floor(math.log10(error)) - 2)
        return f"{math.ceil(error / step - 1e-9) * step:.3g}" if step else f"{error:.3g}"
    return shown(round(math.ceil(error / step - 1e-9) * step, 12))


def margins(errors: Iterable[float | None], dtype: pl.DataType | None = None) -> str | None:
    """The margin of error that two or more numbers share, as text;
    None if they differ or one has none.
    """
    several, text, last = False, None, math.nan
    for error in errors:
        if error is None or math.isnan(error):
            return None
        if error == last:
            several = True
            continue
        words = margin(error, dtype)
        if text not in (None, words):
            return None
        several, text, last = text is not None, words, error
    return text if several else None


def seconds_of(ticks: float, dtype: pl.DataType) -> float:
    """A length of time in seconds, from the ticks of a column of times."""
    return ticks * (DAY if dtype == pl.Date else 1 / TICKS[time_unit(dtype)])


def unit_of_time(seconds: float) -> tuple[int, str]:
    """The unit for a length of time: how many seconds it has, and its name."""
    return next((time for time in _TIMES if seconds >= 2 * time[0]), (1, "seconds"))


def largest(values: Iterable[float | None]) -> float:
    """The largest absolute value; 0 if there are no values."""
    return max((abs(value) for value in values if value is not None), default=0.0)


def tick_text(most: float) -> str:
    """The Vega expression that writes a tick of an axis whose largest number is `most`.

    >>> tick_text(20)
    "format(datum.value, ',.9~g')"
    """
    for limit, name in ((1e9, "bn"), (1e6, "M")):
        if limit <= most < _FULL:
            return (
                f"datum.value == 0 ? '0' : format(datum.value / {limit:.0f}, ',.6~g') + ' {name}'"
            )
    if most >= _FULL or 0 < most < 1e-4:
        return "datum.value == 0 ? '0' : format(datum.value, '.3~e')"
    return "format(datum.value, ',.9~g')"
