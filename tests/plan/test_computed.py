"""Keys and bounds whose type shows that they were computed from a table:
a warning by type alone, once a call.
"""

import contextlib
import datetime as dt
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpframe as dp
from dpframe.errors import DpFrameWarning, InvalidArgument

TABLE = pd.DataFrame(
    {"user": [1, 2, 3], "city": ["Bonn", "Kiel", "Kiel"], "sex": ["f", "m", "f"], "x": [1.0, 2, 3]}
)
LIST = ["Bonn", "Kiel"]

COMPUTED = {
    "pandas Series": pd.Series(LIST),
    "Series of objects": pd.Series(LIST, dtype=object),
    "categorical": pd.Series(LIST, dtype="category").array,
    "pandas unique": TABLE["city"].unique(),
    "Index": pd.Index(LIST),
    "array": np.array(LIST),
    "array of objects": np.array(LIST, dtype=object),
    "Polars Series": pl.Series(LIST),
    "PyArrow array": pa.array(LIST).to_pandas(),
}
PUBLIC = {
    "list": LIST,
    "tuple": tuple(LIST),
    "set": set(LIST),
    "dict keys": dict.fromkeys(LIST).keys(),
    "generator": lambda: (city for city in LIST),
    "list of an array": list(np.array(LIST)),
    "dict of lists": {"city": LIST},
    "pandas frame": pd.DataFrame({"city": LIST}),
    "Polars frame": pl.DataFrame({"city": LIST}),
    "PyArrow table": pa.table({"city": LIST}),
}


def frame(table=TABLE):
    return dp.protect(table, unit="user", budget=dp.Budget(epsilon=5, delta=1e-6))


def said_of(make):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make()
    assert all(w.category is DpFrameWarning and w.filename == __file__ for w in caught)
    return [str(w.message) for w in caught]


VERBS = {
    "group_by": lambda keys: frame().group_by("city", keys=keys, max_groups=1),
    "histogram": lambda keys: frame().histogram("city", keys=keys, max_rows=1),
    "partition": lambda keys: frame().partition("city", keys=keys),
    "mode": lambda keys: frame().mode("city", keys=keys, max_rows=1),
    "top_k": lambda keys: frame().top_k("city", 1, keys=keys, max_rows=1),
    "dp.mode": lambda keys: dp.mode("city", keys=keys),
    "accessor": lambda keys: TABLE.dp.histogram(
        "city", keys=keys, unit="user", max_rows=1, budget=dp.Budget(epsilon=1), epsilon=0.5
    ),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
@pytest.mark.parametrize("keys", COMPUTED.values(), ids=COMPUTED)
def test_a_column_or_array_as_keys_warns_once(verb, keys):
    (words,) = said_of(lambda: verb(keys))
    assert "type them as a list: keys=['Bonn', 'Kiel'], or keys=list(...)" in words


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
@pytest.mark.parametrize("keys", PUBLIC.values(), ids=PUBLIC)
def test_a_public_list_does_not_warn(verb, keys):
    def make():
        with contextlib.suppress(InvalidArgument):  # not every verb takes every kind of list
            verb(keys() if callable(keys) else keys)

    assert not said_of(make)


def test_each_of_several_columns_is_looked_at_and_one_is_named():
    keys = {"city": LIST, "sex": TABLE["sex"].unique()}
    for verb in (
        lambda: frame().group_by("city", "sex", keys=keys, max_groups=1),
        lambda: frame().crosstab("city", "sex", keys=keys, max_rows=1),
        lambda: frame().marginals(["city", "sex"], keys=keys, max_rows=1),
    ):
        (words,) = said_of(verb)
        # pandas 2 gives an array of NumPy
        assert re.search("the keys of 'sex' are a (pandas|NumPy) ", words)


@pytest.mark.parametrize(
    ("values", "warns"), [(range(3), False), ([0, 1, 2], False), (np.arange(3), True)]
)
def test_a_range_is_public(values, warns):
    table = frame(TABLE.assign(x=[0, 1, 2]))
    assert bool(said_of(lambda: table.histogram("x", keys=values, max_rows=1))) == warns


def test_a_range_of_days_is_public_and_the_days_of_a_column_are_not():
    days = pd.date_range("2026-01-01", periods=3)
    table = frame(TABLE.assign(day=days)).with_columns(day=dp.col("day").dt.date())
    assert not said_of(lambda: table.histogram("day", keys=days, max_rows=1))
    assert not said_of(lambda: table.histogram("day", keys=[dt.date(2026, 1, 1)], max_rows=1))
    assert said_of(lambda: table.histogram("day", keys=pd.Series(days), max_rows=1))
    assert said_of(lambda: table.histogram("day", keys=pd.Series(days).unique(), max_rows=1))


def test_days_as_keys_of_times_are_midnights():
    """As in pandas, whose columns of days are midnights."""
    days = pd.date_range("2026-01-01", periods=3)
    table = frame(TABLE.assign(when=days))
    assert not said_of(lambda: table.histogram("when", max_rows=1, keys=[dt.date(2026, 1, 1)]))
    assert not said_of(lambda: table.histogram("when", max_rows=1, keys=days))
    midnights = table.with_columns(when=dp.col("when").dt.truncate("1d"))
    assert not said_of(
        lambda: midnights.histogram(
            "when", max_rows=1, keys=[dt.date(2026, 1, 1), dt.date(2026, 1, 2)]
        )
    )


ASKED = {
    "sum": lambda bounds: frame().sum("x", bounds=bounds, max_rows=1),
    "unit_bounds": lambda bounds: frame().sum("x", unit_bounds=bounds),
    "mean": lambda bounds: frame().mean("x", bounds=bounds, max_rows=1),
    "std": lambda bounds: frame().std("x", bounds=bounds, max_rows=1),
    "median": lambda bounds: frame().median("x", bounds=bounds, max_rows=1),
    "dp.max": lambda bounds: dp.max("x", bounds=bounds),
    "clip": lambda bounds: frame().clip("x", *bounds),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_numbers_of_a_column_as_bounds_warn_once(ask):
    for bounds in (
        (TABLE["x"].min(), TABLE["x"].max()),
        [0, np.int64(3)],
        np.percentile(TABLE["x"], [1, 99]),
    ):
        (words,) = said_of(lambda bounds=bounds: ask(bounds))
        assert "bounds=(0, 100)" in words


@pytest.mark.parametrize("bounds", [TABLE["x"].agg(["min", "max"]), pl.Series([0.0, 1.0])])
def test_a_column_as_bounds_warns_once(bounds):
    for name, ask in ASKED.items():
        if name != "clip":  # which takes two numbers
            (words,) = said_of(lambda ask=ask: ask(bounds))
            assert "Series" in words


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("bounds", [(0, 100), [0.0, 1.5], (float(np.float64(0)), 3)])
def test_bounds_that_were_typed_do_not_warn(ask, bounds):
    assert not said_of(lambda: ask(bounds))


def test_bounds_of_times_and_chosen_bounds_do_not_warn():
    table = frame(TABLE.assign(day=pd.date_range("2026-01-01", periods=3)))
    times = (pd.Timestamp("2026-01-01"), dt.datetime(2026, 2, 1))
    assert not said_of(lambda: table.mean("day", bounds=times, max_rows=1))
    assert not said_of(lambda: frame().mean("x", bounds=dp.Auto(), max_rows=1))


def test_what_is_said_shows_no_value():
    words = said_of(lambda: VERBS["group_by"](np.array(["Oldenburg"])))
    words += said_of(lambda: ASKED["sum"](np.array([0.125, 77.5])))
    assert len(words) == 2
    assert not any(cell in word for word in words for cell in ("Oldenburg", "0.125", "77.5"))


PEOPLE = pd.DataFrame({"user": [1, 2], "age": [30, 40]})
JOINED = {
    "a table on the unit": (lambda: frame().join(PEOPLE, on="user"), True),
    "the unit among others": (
        lambda: frame().join(PEOPLE.assign(city="Bonn"), on=["user", "city"]),
        True,
    ),
    "the unit under another name": (
        lambda: frame().rename({"user": "id"}).join(PEOPLE.rename(columns={"user": "id"}), on="id"),
        True,
    ),
    "typed by hand": (lambda: frame().join({"user": [1, 2], "age": [30, 40]}, on="user"), False),
    "on another column": (
        lambda: frame().join(pd.DataFrame({"city": LIST, "sea": [False, True]}), on="city"),
        False,
    ),
    "without identifiers": (lambda: TABLE.dp(unit=dp.Rows(1)).join(PEOPLE, on="user"), False),
}


@pytest.mark.parametrize(("make", "warns"), JOINED.values(), ids=JOINED)
def test_a_public_table_that_is_joined_on_the_unit_warns(make, warns):
    said = said_of(make)
    assert len(said) == warns
    assert all("protect it too" in words for words in said)


def test_a_protected_table_that_is_joined_on_the_unit_is_silent():
    budget = dp.Budget(epsilon=1)
    assert (
        said_of(
            lambda: TABLE.dp(unit="user", budget=budget).join(
                PEOPLE.dp(unit="user", budget=budget), "user"
            )
        )
        == []
    )
