"""What fingers type from pandas and Polars is answered with the line to type here, by a typed error."""

import pandas as pd
import pytest

import dpframe as dp
from dpframe.errors import (
    DpFrameError,
    InvalidArgument,
    InvalidBounds,
    InvalidPrice,
    ReleaseMismatch,
    UnknownAttribute,
    UnknownColumn,
    WrongType,
)
from dpframe.plan import habits

TABLE = pd.DataFrame({"user": [1, 1, 2], "wage": [1.0, 2.0, 3.0], "city": ["a", "b", "c"], "n": [1, 2, 3]})


@pytest.fixture
def frame():
    return TABLE.dp(unit="user", budget=dp.Budget(epsilon=100))


def groups_of(frame):
    return frame.group_by("city", keys=["a"], max_groups=1, max_rows_per_group=1)


NAMES = {
    "f.groupby": "group_by(",
    "f.assign": "with_columns(",
    "f.query": "filter(",
    "f.dropna": "drop_nulls(",
    "f.merge": "join(",
    "f.value_counts": "count()",
    "f.head": "not shown",
    "f.shape": "not shown",
    "f.wage": "dp.col('wage')",
    "f.coutn": "'count'",
    "g.size": ".count()",
    "q.table": ".release(",
    "q.relese": "'release'",
    "out.head": ".table",
    "dp.col('n').isin": ".is_in(",
    "dp.col('n').isna": ".is_null()",
    "dp.col('n').mean": "agg(",
    "dp.col('n').alias": "keyword",
    "dp.col('city').str.lower": "to_lowercase",
    "dp.col('n').dt.dayofweek": "weekday",
    "TABLE.dp.head": "not shown",
    "TABLE.dp.groupby": "df.dp(unit='user_id')",
    "TABLE.wage.dp.head": "not shown",
}


@pytest.mark.parametrize("typed", NAMES)
def test_a_name_from_elsewhere_is_answered_with_the_one_here(frame, typed):
    groups = groups_of(frame)
    query = groups.count()
    known = {"f": frame, "g": groups, "q": query, "dp": dp, "TABLE": TABLE, "out": query.release(epsilon=1)}
    with pytest.raises(UnknownAttribute) as caught:
        eval(typed, known)
    assert isinstance(caught.value, AttributeError)
    assert NAMES[typed] in str(caught.value)


KINDS = {
    "FRAME": dp.PrivateFrame,
    "GROUPS": dp.PrivateGroupBy,
    "QUERY": dp.Query,
    "RELEASE": dp.Release,
    "EXPRESSION": dp.Expr,
    "TEXT": type(dp.col("x").str),
    "CALENDAR": type(dp.col("x").dt),
    "ACCESSOR": type(TABLE.dp),
}


@pytest.mark.parametrize("table", KINDS)
def test_no_advice_is_given_on_a_name_that_exists(table):
    assert set(getattr(habits, table)).isdisjoint(dir(KINDS[table]))


ASKED = {
    "f['wage']": "dp.col('wage')",
    "f[['wage', 'n']]": "select(",
    "f[dp.col('wage') > 1]": "filter(",
    "f[0]": "not shown",
    "g['wage']": ".mean('wage'",
    "out['n']": ".table['n']",
    "g.agg(['mean'])": "agg(n=dp.count()",
    "g.agg({'wage': 'mean'})": "agg(n=dp.count()",
    "f.agg(n=dp.count(), max_rows=1, epsilon=1)": ".release(epsilon=...)",
    "TABLE.dp.agg(['mean'], unit='user')": "agg(n=dp.count()",
    "f.count(max_rows=dp.Auto())": "limits=dp.Auto()",
}


@pytest.mark.parametrize("typed", ASKED)
def test_an_argument_from_elsewhere_is_answered_too(frame, typed):
    groups = groups_of(frame)
    known = {"f": frame, "g": groups, "dp": dp, "TABLE": TABLE, "out": groups.count().release(epsilon=1)}
    with pytest.raises(InvalidArgument) as caught:
        eval(typed, known)
    assert ASKED[typed] in str(caught.value)


def test_what_other_libraries_ask_an_object_gets_python_s_own_answer(frame):
    for thing in (frame, groups_of(frame), frame.count_units(), dp.col("x"), TABLE.dp):
        for name in ("__array__", "__dataframe__", "_ipython_display_", "_repr_png_", "__len__"):
            with pytest.raises(AttributeError) as caught:
                getattr(thing, name)
            assert not isinstance(caught.value, DpFrameError)


def test_right_refusals_name_a_line_to_type(frame):
    query = groups_of(frame).count()
    for kind, words, ask in (
        (WrongType, "whole numbers", lambda: frame.group_by("n", keys=["x"], max_groups=1)),
        (WrongType, "cast('x', 'float64')", lambda: frame.clip("city", 0, 1)),
        (WrongType, "cast('float64')", lambda: frame.filter(dp.col("n") > "3")),
        (InvalidBounds, "bounds=dp.Auto()", lambda: frame.mean("wage", bounds="auto", max_rows=1)),
        (UnknownColumn, "mean 'wage'", lambda: frame.mean("wag", bounds=(0, 1), max_rows=1)),
        (InvalidPrice, "accuracy(epsilon=0.1)", query.accuracy),
    ):
        with pytest.raises(kind) as caught:
            ask()
        assert words in str(caught.value)
    assert "keys of 'city'" in repr(frame.group_by("city", max_groups=1).keys())


def test_another_question_under_a_name_is_told_in_words_that_were_typed(frame):
    groups_of(frame).count().release(epsilon=1, name="x")
    with pytest.raises(ReleaseMismatch) as caught:
        groups_of(frame.filter(dp.col("wage") > 1)).count().release(epsilon=1, name="x")
    assert "steps[0]: nothing, filter((wage > 1))\n" in str(caught.value)
    assert "condition" not in str(caught.value)
    with pytest.raises(ReleaseMismatch) as caught:
        groups_of(frame).count().release(epsilon=2, name="x")
    assert "price.epsilon: 1, 2\n" in str(caught.value)
    assert "scales" not in str(caught.value)


def test_suppressed_counts_of_pandas_stay_whole(frame):
    table = groups_of(frame).count().release(epsilon=1).suppress(below=1e9).table
    assert table["count"].dtype == pd.Int64Dtype()
    assert table["count"].isna().all()


def test_one_number_is_a_float(frame):
    out = frame.count_units().release(epsilon=1)
    assert float(out) == out.value
