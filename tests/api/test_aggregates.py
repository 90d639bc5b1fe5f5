"""What people type in agg(...): aggregates of Polars, words of pandas, and statistics of dpframe in other clothes."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import dpframe as dp
from dpframe.errors import DpFrameError, InvalidArgument, UnsupportedOperation, WrongCall

ROWS = pl.DataFrame(
    {
        "user": [1, 1, 2, 3, 3, 4],
        "spend": [3.0, 200.0, 5.0, None, 40.0, -2.0],
        "items": [1, 2, 3, 4, 5, 6],
        "city": ["a", "b", "a", "a", "b", None],
    }
)
SPEND, ITEMS = pl.col("spend"), pl.col("items")
BIG = 1e9  # so much ε that the noise is far below the last digits that are compared


@pytest.fixture
def frame():
    return ROWS.dp(unit="user", budget=dp.Budget(epsilon=1e12), max_rows=9)


SAME = {  # what Polars answers to the same expression
    "mean": SPEND.clip(0, 100).mean().alias("m"),
    "mean of a filter": SPEND.filter(ITEMS > 1).clip(0, 100).mean(),
    "filter of a clip": SPEND.clip(0, 100).filter(ITEMS > 1, pl.col("city") == "b").mean(),
    "rows of a filter": SPEND.filter(ITEMS > 2).len(),
    "values of a filter": SPEND.filter(ITEMS > 2).count(),
    "sum": ITEMS.clip(0, 4).sum(),
    "sum of an expression": ((ITEMS + 1) * 2).clip(0, 10).sum().alias("twice"),
    "sum of two columns": (ITEMS.clip(0, 9) + SPEND.fill_null(0).clip(0, 9)).sum(),
    "rate": (ITEMS > 2).mean(),
    "missing": SPEND.is_null().sum(),
    "len": pl.len(),
    "length": SPEND.len().alias("rows"),
    "count": SPEND.count(),
    "std": ITEMS.clip(0, 9).std(),
    "var": ITEMS.clip(0, 9).var(ddof=0),
    "n_unique": ITEMS.n_unique(),
    "without nulls": SPEND.drop_nulls().clip(0, 100).mean(),
    "two columns": pl.col("spend", "items").clip(0, 100).mean(),
}


@pytest.mark.parametrize("expr", SAME.values(), ids=SAME)
def test_an_aggregate_of_polars_is_what_polars_answers(frame, expr):
    table = frame.agg(expr).release(epsilon=BIG).table
    wanted = ROWS.select(expr)
    assert table.columns == wanted.columns
    assert_frame_equal(table.cast(pl.Float64), wanted.cast(pl.Float64), abs_tol=1e-5)


@pytest.mark.parametrize("expr", [e for n, e in SAME.items() if n not in ("std", "var", "filter of a clip")])
def test_an_aggregate_of_polars_in_groups(frame, expr):
    groups = frame.group_by("city", keys=["a", "b"], max_groups=2, max_rows_per_group=9)
    table = groups.agg(expr).release(epsilon=BIG).table
    wanted = ROWS.filter(pl.col("city").is_in(["a", "b"])).group_by("city").agg(expr).sort("city")
    assert table.columns == wanted.columns
    numbers = pl.all().exclude("city").cast(pl.Float64)
    assert_frame_equal(table.with_columns(numbers), wanted.with_columns(numbers), abs_tol=1e-5)


@pytest.mark.parametrize("verb", ["median", "min", "max"])
def test_choices_are_questions_with_bounds(frame, verb):
    query = frame.agg(getattr(ITEMS.clip(0, 9), verb)(), q=ITEMS.clip(0, 9).quantile(0.9))
    typed = frame.agg(items=getattr(dp, verb)("items", bounds=(0, 9)), q=dp.quantile("items", 0.9, bounds=(0, 9)))
    assert str(query.explain()) == str(typed.explain())
    assert query.sensitivity == typed.sensitivity


def test_a_question_in_words_of_polars_is_the_question_in_words_of_dpframe(frame):
    groups = frame.group_by("city", keys=["a", "b"], max_groups=2, max_rows_per_group=9)
    for query, typed in (
        (
            frame.agg(SPEND.clip(0, 100).mean(), n=pl.len()),
            frame.agg(spend=dp.mean("spend", bounds=(0, 100)), n=dp.count()),
        ),
        (groups.agg(SPEND.clip(0, 1).sum()), groups.agg(spend=dp.sum("spend", bounds=(0, 1)))),
        (
            frame.agg((ITEMS * 2).clip(0, 9).mean().alias("m")),
            frame.with_columns(**{"(items * 2)": dp.col("items") * 2}).agg(m=dp.mean("(items * 2)", bounds=(0, 9))),
        ),
    ):
        assert query.sensitivity == typed.sensitivity
        assert str(query.explain()).splitlines()[-4:] == str(typed.explain()).splitlines()[-4:]


def test_words_of_pandas():
    table = ROWS.to_pandas()
    frame = table.dp(unit="user", budget=dp.Budget(epsilon=1e12), max_rows=9)
    frame = frame.clip("spend", 0, 100).clip("items", 0, 9)
    groups = frame.group_by("city", keys=["a", "b"], max_groups=2, max_rows_per_group=9)
    ours = groups.agg({"items": "mean", "spend": ["sum", "count"]}).release(epsilon=BIG).table
    assert list(ours.columns) == ["city", "items", "spend_sum", "spend_count"]
    ours = groups.agg(m=("items", "mean"), n=("items", "size"), k=("items", "nunique")).release(epsilon=BIG).table
    wanted = table.groupby("city").agg(m=("items", "mean"), n=("items", "size"), k=("items", "nunique"))
    ours = ours.set_index("city")
    pd.testing.assert_frame_equal(ours.astype(float), wanted.astype(float), atol=1e-5)


def test_statistics_have_names_of_their_own(frame):
    query = frame.agg(dp.count().alias("n"), dp.mean("items", bounds=(0, 9)), dp.count_units(), other=dp.count("spend"))
    assert query.release(epsilon=1).table.columns == ["n", "items", "count_units", "other"]
    assert frame.agg([dp.count(), pl.len()]).release(epsilon=1).table.columns == ["count", "len"]


REFUSED = {
    "product": (lambda f: f.agg(SPEND.product()), "these are read: mean"),
    "a window": (lambda f: f.agg(SPEND.sum().over("city")), "these are read: mean"),
    "a rounded mean": (lambda f: f.agg(SPEND.mean().round(2)), "with the released numbers"),
    "a quotient": (lambda f: f.agg(SPEND.sum() / pl.len()), "these are read: mean"),
    "no aggregate": (lambda f: f.agg(SPEND), "these are read: mean"),
    "a filter in a function": (lambda f: f.agg(SPEND.filter(SPEND.mean() > 3).mean()), "agg"),
    "one name twice": (lambda f: f.agg(SPEND.clip(0, 1).mean(), SPEND.clip(0, 1).sum()), "alias"),
    "one name for two": (lambda f: f.agg(m=pl.col("spend", "items").clip(0, 1).mean()), "Type one for each"),
    "an alias for two": (lambda f: f.agg(pl.col("spend", "items").mean().alias("m")), "Type one for each"),
    "no word": (lambda f: f.agg(m=("items", "meen")), "Did you mean 'mean'"),
    "no column": (lambda f: f.agg(pl.col("nowhere").clip(0, 1).mean()), "no column 'nowhere'"),
    "no bounds": (lambda f: f.agg(SPEND.mean()), "clip"),
    "one bound": (lambda f: f.agg(SPEND.clip(0, None).mean()), ".clip(0, 100).mean()"),
    "no bounds of what is computed": (lambda f: f.agg((SPEND / 10).mean()), ".clip(0, 100).mean()"),
    "no bounds of a filter": (lambda f: f.agg(SPEND.filter(ITEMS > 1).sum()), ".clip(0, 100).sum()"),
    "a number": (lambda f: f.agg(5), "name each aggregate"),
    "a function": (lambda f: f.agg(SPEND.map_elements(abs, return_dtype=pl.Float64).mean()), "has no counterpart"),
}


@pytest.mark.parametrize(("ask", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_refused_with_what_to_type(frame, ask, words):
    with pytest.raises(DpFrameError) as caught:
        ask(frame).release(epsilon=1)
    assert words in str(caught.value)
    assert frame.budget.spent.epsilon == 0


def test_a_dict_takes_columns_and_words(frame):
    with pytest.raises(InvalidArgument, match="no statistic"):
        frame.agg({"items": "nothing"})
    with pytest.raises((InvalidArgument, UnsupportedOperation)):
        frame.agg({"items": 3})


def test_keys_have_names_as_in_polars(frame):
    limits = {"max_groups": 2, "max_rows_per_group": 9}
    for groups in (
        frame.group_by(large=dp.col("items") > 3, keys=[True, False], **limits),
        frame.group_by(large=ITEMS > 3, keys=[True, False], **limits),
    ):
        table = groups.count().release(epsilon=BIG).table
        assert table.rows() == [(True, 3), (False, 3)]
        assert table.columns == ["large", "count"]
    town = frame.group_by(town="city", keys=["a", "b"], **limits).count().release(epsilon=BIG).table
    assert town.rows() == [("a", 3), ("b", 2)]
    both = frame.group_by("city", even=dp.col("items") % 2 == 0, keys=[("a", True), ("b", False)], **limits)
    assert both.count().release(epsilon=BIG).table.columns == ["city", "even", "count"]


def test_a_misspelt_limit_of_groups_is_no_key(frame):
    for typed, near in (({"max_group": 3}, "max_groups"), ({"key": ["a"]}, "keys"), ({"minunits": 3}, "min_units")):
        with pytest.raises(WrongCall, match=f"Did you mean '{near}'"):
            frame.group_by("city", **typed)
