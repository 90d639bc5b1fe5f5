"""Listed keys: those that no row can have are refused in every verb that
takes keys; public tables of keys.
"""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import InvalidArgument, WrongType
from inside import step_of

WHEN = [dt.datetime(2026, 1, day, hour) for day, hour in ((1, 0), (2, 0), (3, 12))]
ROWS = pl.DataFrame({"user": [1, 2, 3], "when": WHEN, "x": [1, 5, 9], "city": ["a", "b", "b"]})
BIG = 1e9


@pytest.fixture
def frame():
    return ROWS.dp(unit="user", budget=dp.Budget(epsilon=1e12), max_rows=1)


PARTS = {  # an expression whose values are known to lie in a range, and a key outside
    "weekday": (dp.col("when").dt.weekday(), 0, "from 1 to 7"),
    "month": (dp.col("when").dt.month(), 13, "from 1 to 12"),
    "hour": (dp.col("when").dt.hour(), 24, "from 0 to 23"),
    "quarter": (dp.col("when").dt.quarter(), 0, "from 1 to 4"),
    "clip": (dp.col("x").clip(0, 5), 6, "from 0 to 5"),
    "condition": ((dp.col("x") > 3).cast("int64"), 2, "from 0 to 1"),
}
VERBS = {
    "group_by": lambda f, keys: f.group_by("k", keys=keys).count(),
    "with null": lambda f, keys: f.group_by("k", keys=[None, *keys]).count(),
    "two columns": lambda f, keys: f.group_by("k", "city", keys=[(k, "a") for k in keys]).count(),
    "table": lambda f, keys: f.group_by("k", keys=pl.DataFrame({"k": keys})).count(),
    "histogram": lambda f, keys: f.histogram("k", keys=keys),
    "crosstab": lambda f, keys: f.crosstab("k", "city", keys={"k": keys, "city": ["a", "b"]}),
    "marginals": lambda f, keys: f.marginals(["k", "city"], keys={"k": keys, "city": ["a", "b"]}),
    "partition": lambda f, keys: f.partition("k", keys=keys),
    "mode": lambda f, keys: f.mode("k", keys=keys),
    "top_k": lambda f, keys: f.top_k("k", 1, keys=keys),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("part", PARTS)
def test_a_key_that_no_row_can_have_is_refused(frame, part, verb):
    expr, outside, words = PARTS[part]
    made = frame.with_columns(k=expr)
    low, high = step_of(made).table.columns["k"].domain.bounds
    VERBS[verb](made, list(range(int(low), int(high) + 1)))
    with pytest.raises(InvalidArgument, match=f"'k' is {words} after .*range"):
        VERBS[verb](made, [int(low), outside])
    assert frame.budget.spent.epsilon == 0


def test_where_nothing_is_known_of_a_column_any_key_may_be_listed(frame):
    table = frame.group_by("x", keys=[-1, 5, 2**40]).count().release(BIG).table
    assert table["count"].to_list() == [0, 1, 0]


DAY = dt.date(2026, 1, 2)


@pytest.mark.parametrize("column", ["when", "seconds", "fine"])
def test_a_date_stands_for_its_midnight_beside_a_time(frame, column):
    table = ROWS.with_columns(
        seconds=pl.col("when").cast(pl.Datetime("ms")), fine=pl.col("when").cast(pl.Datetime("ns"))
    )
    frame, day = table.dp(unit="user", budget=dp.Budget(epsilon=1e12), max_rows=1), pl.col(column)
    for condition in (
        day >= DAY,
        day > DAY,
        day == DAY,
        day != DAY,
        day <= DAY,
        day.is_between(DAY, DAY),
    ):
        assert frame.filter(condition).count().release(BIG).value == len(table.filter(condition))
    assert frame.filter(dp.col(column).is_in([DAY])).count().release(BIG).value == 1
    assert frame.filter(dp.col(column).dt.date() < dp.col(column)).count().release(BIG).value == 1
    query = (
        frame.with_columns(t=dp.when(dp.col("x") > 1).then(dp.col(column)))
        .fill_null("t", DAY)
        .filter(dp.col("t") == DAY)
    )
    assert query.count().release(BIG).value == 2


def test_a_date_does_not_compare_with_a_time_in_a_zone(frame):
    zoned = ROWS.with_columns(pl.col("when").dt.replace_time_zone("Europe/Berlin")).dp(
        unit="user", max_rows=1
    )
    with pytest.raises(WrongType, match=r"Compare the day in that zone: .*\.dt\.date\(\)"):
        zoned.filter(dp.col("when") >= DAY)
    zoned.filter(dp.col("when").dt.date() >= DAY).count()
