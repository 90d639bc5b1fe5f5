"""Times with and without zones, the ends of the calendar, bounds and types at their limits."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

import dpframe as dp
from dpframe import engine
from dpframe.errors import DpFrameError
from inside import question_of
from strategies import answer

NOON = dt.datetime(2020, 1, 1, 12)
AWARE = NOON.replace(tzinfo=dt.UTC)


@pytest.mark.parametrize(
    "condition",
    [
        lambda c: c("utc") >= NOON,
        lambda c: c("naive") >= AWARE,
        lambda c: c("utc") == c("naive"),
        lambda c: c("utc") == c("berlin"),
        lambda c: c("berlin") >= AWARE,
    ],
)
def test_times_that_do_not_compare_are_refused_before_they_are_paid(condition):
    """A question works, or is refused where it is typed. It must not fail later, on a row."""
    naive = pl.Series([NOON])
    utc = naive.dt.replace_time_zone("UTC")
    frame = pl.DataFrame(
        {"u": [1], "naive": naive, "utc": utc, "berlin": utc.dt.convert_time_zone("Europe/Berlin")}
    )
    try:
        query = dp.protect(frame, unit="u").filter(condition(dp.col)).count(max_rows=1)
        engine.validate(question_of(query))
    except DpFrameError:
        return
    engine.totals(question_of(query), 1)


@pytest.mark.parametrize("day", [dt.date(9999, 12, 31), dt.date(1, 1, 1)])
@pytest.mark.parametrize("dtype", [pl.Date, pl.Datetime("us")])
def test_the_first_and_the_last_day_are_days(day, dtype):
    """Many tables write 9999-12-31 for "no end". It is a value, not a missing one."""
    frame = pl.DataFrame({"u": [1], "d": pl.Series([day]).cast(dtype)})
    assert answer(dp.protect(frame, unit="u").count("d", max_rows=1)) == [{(): 2**20}]


def test_a_key_of_a_small_float_is_that_float():
    frame = dp.protect(pl.DataFrame({"u": [1], "k": pl.Series([0.1], dtype=pl.Float32)}), unit="u")
    assert list(
        answer(frame.group_by("k", keys=[0.1], max_groups=1).count_units())[0].values()
    ) == [1]


def test_a_sensitivity_of_large_bounds_can_be_read():
    frame = dp.protect(
        pl.DataFrame({"u": [1], "g": ["a"], "x": [1.0]}), unit="u", budget=dp.Budget(epsilon=1)
    )
    query = frame.group_by("g", keys=["a", "b"], max_groups=2).sum("x", unit_bounds=(-1e270, 1e270))
    assert 1.41e270 < query.sensitivity["x"].l2 < 1.42e270
    query.explain()
    query.release(epsilon=1e-12).accuracy()
