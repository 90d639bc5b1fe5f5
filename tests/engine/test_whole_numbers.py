"""Sums of whole numbers from the middle of odd bounds:
equal integers on every engine, for the ends of every type.
"""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe import engine as engines
from inside import question_of

_DAY, _TIME = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)
_MICRO = dt.timedelta(microseconds=1)
COLUMNS = {  # values, and bounds that are an odd number of units apart
    "yes": ([True, False, True, None], None),
    "tiny": (pl.Series([-128, 127, 2, None], dtype=pl.Int8), (-1, 2)),
    "int": (pl.Series([-(2**63), 2**63 - 1, 3, 4]), (3, 6)),
    "lowest": (pl.Series([-(2**63), 2**63 - 1, 3, -(2**63) + 2]), (-(2**63), -(2**63) + 5)),
    "highest": (pl.Series([-(2**63), 2**63 - 1, 3, 2**63 - 3]), (2**63 - 4, 2**63 - 1)),
    "unsigned": (pl.Series([0, 2**64 - 1, 2**63, 5], dtype=pl.UInt64), (4, 7)),
    "day": (
        [dt.date(1, 1, 1), dt.date(9999, 12, 31), _DAY, None],
        (_DAY, _DAY + dt.timedelta(days=365)),
    ),
    "time": (
        pl.Series(
            [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31), _TIME + _MICRO, None],
            dtype=pl.Datetime("us"),
        ),
        (_TIME, _TIME + 3 * _MICRO),
    ),
}
_ZERO = {dt.date: dt.date(1970, 1, 1), dt.datetime: dt.datetime(1970, 1, 1)}


def _number(value):
    """A value as a whole number: days, or microseconds, since 1970."""
    if type(value) in _ZERO:
        return (value - _ZERO[type(value)]) // (
            _MICRO if isinstance(value, dt.datetime) else dt.timedelta(days=1)
        )
    return int(value)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("unit", ["u", dp.Rows(1)], ids=str)
@pytest.mark.parametrize("name", COLUMNS)
def test_each_value_is_twice_its_distance_from_the_middle(engine, name, unit):
    values, bounds = COLUMNS[name]
    if name == "unsigned" and engine.name in ("spark", "postgres", "sqlite", "datafusion"):
        pytest.skip("the engine has no such type")
    frame = dp.protect(engine(pl.DataFrame({"u": [1, 2, 3, 4], "x": values})), unit=unit)
    query = frame.agg(m=dp.mean("x", bounds=bounds), **({"max_rows": 1} if unit == "u" else {}))
    low, high = (0, 1) if bounds is None else map(_number, bounds)
    numbers = [min(max(_number(value), low), high) for value in values if value is not None]
    (total,) = (paid.total for paid in question_of(query).read if paid.names == ("m.sum",))
    found = dict(
        zip(
            (p.names[0] for p in question_of(query).read),
            engines.totals(question_of(query), 1).values,
            strict=True,
        )
    )
    assert (
        int(found["m.sum"][0])
        == sum(2 * number - low - high for number in numbers) << total.fraction
    )
    assert total.unit == Fraction(1, 2 << total.fraction)
