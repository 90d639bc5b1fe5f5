"""A series reads several periods in one pass: each has the totals that a
question of that period alone has.
"""

from __future__ import annotations

import datetime as dt
import random

import polars as pl
import pytest

import dpframe as dp
from dpframe.release.kinds.series import questions
from dpframe.release.kinds.series.answer import Reading
from dpframe.release.kinds.series.calendar import Calendar
from dpframe.release.kinds.series.questions import PeriodQuery
from inside import question_of

DAY = dt.date(2026, 3, 2)
PERIODS = [0, 1, 4]
DAYS = [-1, 0, 0, 1, 1, 2, 4, 4, 6, 7, 13, 28, 34, 35, 59, 61, 121]
KEYS = {"g": [0, 1, None]}
PAIRS = [(0, 0), (1, 2), (1, 0)]
CALENDARS = [("day", "1d"), ("day", "1w"), ("when", "1d"), ("when", "1mo"), ("text", "1d")]


def table(units=30, seed=3):
    """Units with rows in many periods, on both sides of each border, without a
    day, and outside of the bounds.
    """
    rng, rows = random.Random(seed), []
    for unit in [*range(units), None]:
        for _ in range(rng.choice([1, 3, 12])):
            day = rng.choice([None, *(DAY + dt.timedelta(days=n) for n in DAYS)])
            clock = rng.choice([dt.time(), dt.time(12), dt.time(23, 59, 59, 999000)])
            when = None if day is None else dt.datetime.combine(day, clock)
            rows.append(
                (
                    unit,
                    day,
                    when,
                    day and day.isoformat(),
                    rng.choice([0, 1, 2, None]),
                    rng.choice([-9.0, 0.5, 3.0]),
                )
            )
    return pl.DataFrame(
        rows,
        {
            "u": pl.Int64,
            "day": pl.Date,
            "when": pl.Datetime("ms"),
            "text": pl.String,
            "g": pl.Int64,
            "x": pl.Float64,
        },
        orient="row",
    )


TABLE = table()
QUERIES = {
    "rows": lambda f: f.count(max_rows=2),
    "units": lambda f: f.count_units(),
    "groups": lambda f: f.group_by(
        "g", keys=KEYS, max_groups=3, max_rows_per_group=2, max_rows=4
    ).agg(n=dp.count(), s=dp.sum("x", (-1, 5)), m=dp.count(max_rows_per_group=1)),
    "pairs": lambda f: (
        f.with_columns(h=dp.col("g") * 2)
        .group_by("g", "h", keys=PAIRS, max_rows=3)
        .agg(s=dp.sum("x", (-1, 5)), people=dp.count_units())
    ),
    "steps": lambda f: (
        f.bound(max_rows=3)
        .filter(dp.col("x") < 2)
        .join({"g": [0, 1, 1], "w": [1, 2, 3]}, on="g")
        .sum("w", (0, 3))
    ),
}


def readings(frame, on, query, every="1d"):
    """The totals of some periods by one question, and by one question for each."""
    calendar = Calendar.read(every, DAY)
    source = PeriodQuery(query(frame), on, lambda made: question_of(made))
    alone = [Reading(source.of(calendar, period), (period,)) for period in PERIODS]
    together = source.together(calendar, alone[0].question, PERIODS)
    return (None if together is None else Reading(together, PERIODS)), alone


def totals(reading):
    keys, each = reading.totals()
    return keys.rows(), {
        period: [list(map(int, values)) for values in made] for period, made in each
    }


def same(frame, on, query, every="1d"):
    together, alone = readings(frame, on, query, every)
    expected = [totals(reading) for reading in alone]
    assert any(
        sum(values) for _, each in expected for (made,) in [each.values()] for values in made
    )
    assert totals(together) == (
        expected[0][0],
        {period: made for _, each in expected for period, made in each.items()},
    )


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("on", "every"), [("day", "1d"), ("when", "1w")])
def test_periods_that_are_read_in_one_pass_have_the_totals_of_their_own_questions(
    engine, on, every
):
    same(dp.protect(engine(TABLE), unit="u"), on, QUERIES["groups"], every)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    ("on", "every"), [("day", "1d"), ("day", "1w"), ("when", "1d"), ("when", "1mo"), ("text", "1d")]
)
def test_every_question_and_calendar(query, on, every):
    relation = "replace" if query == "groups" else "add-remove"
    same(dp.protect(TABLE, unit="u", neighbors=relation), on, QUERIES[query], every)


@pytest.mark.parametrize("on", ["day", "when", "text"])
def test_without_identifiers(on):
    same(
        dp.protect(TABLE, unit=dp.Rows(1)),
        on,
        lambda f: f.group_by("g", keys=[1, 0]).agg(n=dp.count()),
    )


def test_a_unit_keeps_as_many_groups_in_each_period_as_alone():
    """Which groups it keeps is drawn in each reading, so numbers of
    units over all groups are compared.
    """
    frame = dp.protect(TABLE, unit="u")
    together, alone = readings(
        frame, "day", lambda f: f.group_by("g", keys=KEYS, max_groups=1).agg(n=dp.count_units())
    )
    (_, made), all_alone = totals(together), [totals(reading) for reading in alone]
    assert {period: sum(values) for period, (values,) in made.items()} == {
        period: sum(values) for _, each in all_alone for period, (values,) in each.items()
    }


@pytest.mark.parametrize(
    "query",
    [
        lambda f: f.rename({"day": "d"}).with_columns(day=dp.lit(DAY)).count(max_rows=1),
        lambda f: f.select("x").count(max_rows=1),
        lambda f: f.per_unit(n=dp.count()).count(max_rows=1),
        lambda f: f.join(f.per_unit(n=dp.count()), on="u").count(max_rows=1),
        lambda f: f.group_by("day", keys=[DAY], max_groups=1).count_units(),
    ],
)
def test_a_question_whose_rows_do_not_come_from_one_row_of_a_known_day_each_is_read_by_period(
    query,
):
    together, _ = readings(dp.protect(TABLE, unit="u"), "day", query)
    assert together is None


def test_the_comparison_sees_a_reading_in_which_units_are_the_same_in_all_periods(monkeypatch):
    monkeypatch.setattr(questions, "ApartByPeriod", lambda step, name: step)
    with pytest.raises(AssertionError):
        same(dp.protect(TABLE, unit="u"), "day", QUERIES["groups"])


def test_a_label_that_a_list_of_texts_has_not_is_an_empty_period():
    days = [(DAY + dt.timedelta(days=n)).isoformat() for n in PERIODS]
    frame = dp.protect(
        TABLE.with_columns(day=pl.col("text").cast(pl.Enum(days), strict=False)), unit="u"
    )
    same(frame, "day", QUERIES["groups"])
    few = dp.protect(
        TABLE.with_columns(day=pl.col("text").cast(pl.Enum(days[:2]), strict=False)), unit="u"
    )
    together, alone = readings(few, "day", QUERIES["groups"])
    assert together is None
    assert not any(sum(values) for values in totals(alone[-1])[1][PERIODS[-1]])
