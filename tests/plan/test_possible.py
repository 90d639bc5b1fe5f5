"""Keys that no row can have, at every door: lists, frames, other verbs,
comparisons and public tables.
"""

import datetime as dt

import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import InvalidArgument

TABLE = pl.DataFrame(
    {
        "user": [1, 2],
        "city": ["Bonn", "Kiel"],
        "when": [dt.datetime(2026, 1, 5, 3), dt.datetime(2026, 1, 7)],
        "n": [1, 2],
    }
)
WHEN, CITY = dp.col("when"), dp.col("city")
SUNDAYS = [dt.date(2026, 1, 4), dt.date(2026, 1, 11)]
MONDAYS = [dt.date(2026, 1, 5), dt.date(2026, 1, 12)]


def frame(**declared):
    return TABLE.dp(unit="user", max_rows=1, budget=dp.Budget(epsilon=9), **declared)


WEEKS = frame().with_columns(week=WHEN.dt.truncate("1w").dt.date())
DOORS = {
    "list": lambda keys: WEEKS.group_by("week", keys=keys).count(),
    "dict": lambda keys: WEEKS.group_by("week", keys={"week": keys}).count(),
    "frame": lambda keys: WEEKS.group_by("week", keys=pl.DataFrame({"week": keys})).count(),
    "pandas frame": lambda keys: WEEKS.group_by("week", keys=pd.DataFrame({"week": keys})).count(),
    "tuples": lambda keys: WEEKS.group_by("week", "n", keys=[(key, 1) for key in keys]).count(),
    "histogram": lambda keys: WEEKS.histogram("week", keys=keys),
    "crosstab": lambda keys: WEEKS.crosstab("week", "n", keys={"week": keys, "n": [1, 2]}),
    "mode": lambda keys: WEEKS.mode("week", keys=keys),
    "top_k": lambda keys: WEEKS.top_k("week", 1, keys=keys),
    "marginals": lambda keys: WEEKS.marginals(["week", "n"], keys={"week": keys, "n": [1, 2]}),
    "synthesize": lambda keys: WEEKS.select("week", "n").synthesize(
        keys={"week": keys, "n": [1, 2]}
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_key_that_no_row_can_have_is_refused_at_each_door(door):
    DOORS[door](MONDAYS)
    with pytest.raises(InvalidArgument, match=r"'week'.*Mondays, such as datetime\.date\(2026"):
        DOORS[door](SUNDAYS)


def test_declared_keys_are_refused_too(tmp_path):
    table = TABLE.with_columns(week=pl.Series([MONDAYS[0]] * TABLE.height))
    later = dp.protect(
        table, unit="user", budget=dp.Budget(epsilon=1), keys={"week": SUNDAYS}, max_rows=1
    )
    assert later.group_by("week").count()  # of a column of the table any day may be
    with pytest.raises(InvalidArgument, match="Mondays"):
        WEEKS.group_by("week", keys={"week": SUNDAYS})


NEVER = {
    "weekday": WHEN.dt.weekday() == 0,
    "hour": WHEN.dt.hour() == 24,
    "case": CITY.str.to_lowercase() == "Bonn",
    "the other way": dp.lit("Bonn") == CITY.str.to_lowercase(),
    "not": CITY.str.to_lowercase() != "Bonn",
    "list": CITY.str.to_lowercase().is_in(["Bonn", "Kiel"]),
    "branch": dp.when(dp.col("n") > 1).then("many").otherwise("few") == "Many",
    "part": CITY.str.to_lowercase().str.contains("Bo"),
    "start": CITY.str.to_uppercase().str.starts_with("b"),
    "time of a day": WHEN.dt.date() == dt.datetime(2026, 1, 5, 3),
    "window": WHEN.dt.truncate("1w").dt.date() == SUNDAYS[0],
}


@pytest.mark.parametrize("name", NEVER)
def test_a_comparison_that_no_row_fulfils_is_refused(name):
    with pytest.raises(InvalidArgument, match=r"no (row|day) has"):
        frame().filter(NEVER[name])


def test_an_interval_without_values_is_refused():
    with pytest.raises(InvalidArgument, match="the first end is above"):
        dp.col("n").is_between(9, 1)
    dp.col("n").is_between(1, 1)


def test_a_comparison_that_a_row_may_fulfil_is_asked():
    for condition in (
        WHEN.dt.weekday() == 7,
        CITY.str.to_lowercase().is_in(["Bonn", "kiel"]),
        CITY == "nowhere",
        CITY.str.to_lowercase().str.contains("bo"),
        WHEN.dt.date() == dt.datetime(2026, 1, 5),
        dp.lit(1) == 2,
        WHEN.dt.truncate("1d") == dt.date(2026, 1, 5),
    ):
        assert frame().filter(condition).count().release(epsilon=0.1).value is not None


@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_public_table_that_would_join_nothing_is_refused(how):
    lower = frame().with_columns(city=CITY.str.to_lowercase())
    with pytest.raises(InvalidArgument, match="nothing would be joined"):
        lower.join({"city": ["Bonn", "Kiel"], "sea": [False, True]}, on="city", how=how)
    joined = lower.join({"city": ["bonn", "Kiel"], "sea": ["no", "yes"]}, on="city", how=how)
    with pytest.raises(InvalidArgument, match=r"what the public table has: 'no', 'yes'"):
        joined.group_by("sea", keys=["No"])
    assert joined.group_by("sea", keys=["no"]).count().release(epsilon=0.1).to_polars().height == 1


def test_what_is_known_goes_through_steps_and_is_forgotten_where_a_column_is_written():
    steps = WEEKS.filter(dp.col("n") > 0).rename({"week": "w"}).drop_nulls("w")
    with pytest.raises(InvalidArgument, match="Mondays"):
        steps.group_by("w", keys=SUNDAYS)
    steps.with_columns(w=dp.col("when").dt.date()).group_by("w", keys=SUNDAYS)
    with pytest.raises(InvalidArgument, match="numbers from 1 on"):
        frame().per_unit(visits=dp.count()).group_by("visits", keys=[0, 1])
    with pytest.raises(InvalidArgument, match=r"\['low', 'high'\]|'low', 'high'"):
        frame().cut("n", [0, 1, 2], labels=["low", "high"]).cast("n", "string").group_by(
            "n", keys=["Low"]
        )


def test_a_refused_key_is_not_shown():
    """Keys may have been computed from the data, so a message names the column and what to list."""
    with pytest.raises(InvalidArgument) as refused:
        frame().with_columns(city=CITY.str.to_lowercase()).group_by("city", keys=["Zanzibar"])
    assert "Zanzibar" not in str(refused.value)
