"""What people type in agg(...): aggregates of Polars, words of pandas, and
statistics of dpframe in other clothes.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import polars.selectors as cs
import pytest

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
OLD = tuple(map(int, pl.__version__.split(".")[:2])) < (1, 31)  # these write down fewer expressions
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
    "numbers": (cs.numeric() - cs.by_name("user")).clip(0, 100).sum(),
    "names": cs.by_name("spend", "items").clip(0, 100).mean(),
    "beginnings": cs.starts_with("it").clip(0, 9).sum(),
    "a pattern": pl.col("^s.*d$").clip(0, 100).sum(),
    "a type": pl.col(pl.Float64).clip(0, 100).sum(),
    "suffix": cs.by_name("spend", "items").clip(0, 100).mean().name.suffix("_mean"),
    "skew": ITEMS.clip(0, 9).skew(),
    "kurtosis": ITEMS.clip(0, 9).kurtosis(),
    "null_count": SPEND.null_count(),
    "fill_nan and fill_null": SPEND.fill_nan(0.0).fill_null(0.0).clip(0, 9).mean(),
    "fill_null and fill_nan": SPEND.fill_null(1.0).fill_nan(1.0).clip(0, 9).mean(),
    "replaced": ITEMS.replace({1: 6}).clip(0, 9).sum(),
    "approx_n_unique": ITEMS.approx_n_unique(),
}


if OLD:
    SAME = {name: expr for name, expr in SAME.items() if name not in ("suffix", "numbers")}


def close(table, wanted):
    pd.testing.assert_frame_equal(table.to_pandas(), wanted.to_pandas(), atol=1e-5)


@pytest.mark.parametrize("expr", SAME.values(), ids=SAME)
def test_an_aggregate_of_polars_is_what_polars_answers(frame, expr):
    table = frame.agg(expr).release(epsilon=BIG).table
    wanted = ROWS.select(expr)
    assert table.columns == wanted.columns
    close(table.cast(pl.Float64), wanted.cast(pl.Float64))


# of groups so small that noise shows, or null in Polars
SMALL = ("std", "var", "filter of a clip", "skew", "kurtosis")


if OLD:
    # whose column Polars 1.30 calls "literal" in groups, and "items" without
    SMALL = (*SMALL, "replaced")


@pytest.mark.parametrize("expr", [e for n, e in SAME.items() if n not in SMALL])
def test_an_aggregate_of_polars_in_groups(frame, expr):
    groups = frame.group_by("city", keys=["a", "b"], max_groups=2, max_rows_per_group=9)
    table = groups.agg(expr).release(epsilon=BIG).table
    wanted = ROWS.filter(pl.col("city").is_in(["a", "b"])).group_by("city").agg(expr).sort("city")
    assert table.columns == wanted.columns
    numbers = pl.all().exclude("city").cast(pl.Float64)
    close(table.with_columns(numbers), wanted.with_columns(numbers))


@pytest.mark.parametrize("verb", ["median", "min", "max"])
def test_choices_are_questions_with_bounds(frame, verb):
    query = frame.agg(getattr(ITEMS.clip(0, 9), verb)(), q=ITEMS.clip(0, 9).quantile(0.9))
    typed = frame.agg(
        items=getattr(dp, verb)("items", bounds=(0, 9)), q=dp.quantile("items", 0.9, bounds=(0, 9))
    )
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
            frame.with_columns(**{"(items * 2)": dp.col("items") * 2}).agg(
                m=dp.mean("(items * 2)", bounds=(0, 9))
            ),
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
    ours = (
        groups.agg(m=("items", "mean"), n=("items", "size"), k=("items", "nunique"))
        .release(epsilon=BIG)
        .table
    )
    wanted = table.groupby("city").agg(
        m=("items", "mean"), n=("items", "size"), k=("items", "nunique")
    )
    ours = ours.set_index("city")
    pd.testing.assert_frame_equal(ours.astype(float), wanted.astype(float), atol=1e-5)


def test_more_words_of_pandas():
    frame = ROWS.to_pandas().dp(
        unit="user", budget=dp.Budget(epsilon=1e12), max_rows=9, bounds={"items": (0, 9)}
    )
    query = frame.agg(
        a=pd.NamedAgg("items", "mean"),
        b=pd.NamedAgg(column="items", aggfunc=np.sum),
        c=("items", max),
        d=("items", len),
    )
    typed = frame.agg(a=dp.mean("items"), b=dp.sum("items"), c=dp.max("items"), d=dp.count())
    assert str(query.explain()) == str(typed.explain())
    assert list(frame.agg({"items": ["mean", "sum"]}).release(1).table.columns) == [
        "items_mean",
        "items_sum",
    ]


BOUNDS = {"spend": (0, 100), "items": (0, 9)}
SEVERAL = ("sum", "mean", "var", "std", "skew", "kurtosis", "median", "min", "max", "quantile")


def same(query, typed):
    assert query.sensitivity == typed.sensitivity
    assert str(query.explain()).split()[-40:] == str(typed.explain()).split()[-40:]


@pytest.mark.parametrize(
    "asked", [["spend", "items"], pl.col("spend", "items"), cs.numeric()], ids=str
)
@pytest.mark.parametrize("verb", SEVERAL)
def test_a_verb_takes_several_columns(frame, verb, asked):
    rank = (0.5,) if verb == "quantile" else ()
    for made in (
        frame,
        frame.group_by("city", keys=["a", "b"], max_groups=2, max_rows_per_group=9),
    ):
        query = getattr(made, verb)(asked, *rank, bounds=BOUNDS)
        same(
            query,
            made.agg(
                **{name: getattr(dp, verb)(name, *rank, bounds=BOUNDS[name]) for name in BOUNDS}
            ),
        )


def test_counts_take_several_columns_and_bounds_may_be_the_same_for_all(frame):
    same(frame.count(["spend", "city"]), frame.agg(spend=dp.count("spend"), city=dp.count("city")))
    same(frame.n_unique(cs.string()), frame.agg(city=dp.n_unique("city")))
    same(
        frame.sum(["spend", "items"], (0, 5)),
        frame.sum(["spend", "items"], {"spend": (0, 5), "items": (0, 5)}),
    )
    declared = ROWS.dp(unit="user", max_rows=9, bounds=BOUNDS)
    same(declared.mean(["items"]), declared.mean("items"))


def test_a_selector_means_neither_the_unit_nor_the_keys_of_groups(frame):
    assert frame.count(pl.all()).release(1).table.columns == ["spend", "items", "city"]
    groups = frame.group_by("city", keys=["a", "b"], max_groups=2, max_rows_per_group=9)
    assert groups.count(pl.all()).release(1).table.columns == ["city", "spend", "items"]
    assert groups.agg(pl.all().count()).release(1).table.columns == ["city", "spend", "items"]
    assert frame.select(cs.numeric()).columns == ["spend", "items"]
    assert frame.drop(cs.string(), "items").columns == ["user", "spend"]


@pytest.mark.parametrize(
    "verb", ["mean", "sum", "median", "min", "max", "std", "var", "skew", "kurtosis"]
)
def test_a_filter_in_an_aggregate_keeps_what_is_declared(verb):
    frame = ROWS.dp(unit="user", max_rows=9, bounds=BOUNDS)
    query = frame.agg(getattr(SPEND.filter(ITEMS > 1), verb)())
    typed = ROWS.dp(unit="user", max_rows=9).agg(
        getattr(SPEND.filter(ITEMS > 1).clip(0, 100), verb)()
    )
    assert query.sensitivity == typed.sensitivity
    with pytest.raises(DpFrameError, match="clip"):
        # other values than those that have bounds
        frame.agg(getattr((SPEND * 2).filter(ITEMS > 1), verb)())


def test_statistics_have_names_of_their_own(frame):
    query = frame.agg(
        dp.count().alias("n"),
        dp.mean("items", bounds=(0, 9)),
        dp.count_units(),
        other=dp.count("spend"),
    )
    assert query.release(epsilon=1).table.columns == ["n", "items", "count_units", "other"]
    assert frame.agg([dp.count(), pl.len()]).release(epsilon=1).table.columns == ["count", "len"]


def test_columns_have_the_names_that_polars_gives(frame):
    exprs = [
        pl.col("city").replace({"a": "z"}), ITEMS.replace_strict({1: 2}, default=0), pl.lit(1.0),
        pl.when(ITEMS > 1).then(SPEND), 1 - ITEMS.alias("less"), pl.coalesce("spend", "items"),
    ]  # fmt: skip
    for expr in exprs:
        made = frame.with_columns(expr)
        assert made.columns == ROWS.with_columns(expr).columns
        assert made.columns == frame.with_columns(**{expr.meta.output_name(): expr}).columns
    assert frame.with_columns(dp.col("city").replace({"a": "z"})).columns == frame.columns


def test_a_column_is_an_attribute_as_in_polars(frame):
    assert str(dp.col.spend > 1) == str(dp.col("spend") > 1)
    frame.filter(dp.col.spend > 1)
    with pytest.raises(DpFrameError, match="no column 'cost'"):
        frame.filter(dp.col.cost > 1)
    assert not hasattr(dp.col, "__array__")


def test_an_unnamed_list_of_ranks_is_named_after_its_column(frame):
    table = frame.agg(dp.quantile("items", np.array([0.25, 0.75]), bounds=(0, 9))).release(1).table
    assert table.columns == ["items_0.25", "items_0.75"]


REFUSED = {
    "a word alone": (lambda f: f.agg("mean"), "mean(['x', 'y'])"),
    "words alone": (lambda f: f.agg(["mean", "sum"]), "agg({'x': ['mean']})"),
    "an aggregate among columns": (lambda f: f.select(pl.len()), "agg(pl.len())"),
    "fill_nan alone": (lambda f: f.agg(SPEND.fill_nan(0.0).clip(0, 1).mean()), "is_not_null"),
    "fill_nan of another value": (
        lambda f: f.agg(SPEND.fill_nan(0.0).fill_null(1.0).clip(0, 1).mean()),
        "is_not_null",
    ),
    "product": (
        lambda f: f.agg(SPEND.product()),
        "'product' of Polars is not read. Type agg(y=dp.geo",
    ),
    "a window": (lambda f: f.agg(SPEND.sum().over("city")), "frame.group_by('city', keys=[...])"),
    "a rounded mean": (
        lambda f: f.agg(SPEND.mean().round(2)),
        "'round' of Polars is not read. Release first",
    ),
    "a quotient": (lambda f: f.agg(SPEND.sum() / pl.len()), "dp.ratio(dp.sum('spend'"),
    "no aggregate": (lambda f: f.agg(SPEND), "pl.col('spend').clip(0, 100).mean()"),
    "a filter in a function": (lambda f: f.agg(SPEND.filter(SPEND.mean() > 3).mean()), "agg"),
    "one name twice": (lambda f: f.agg(SPEND.clip(0, 1).mean(), SPEND.clip(0, 1).sum()), "alias"),
    "one name for two": (
        lambda f: f.agg(m=pl.col("spend", "items").clip(0, 1).mean()),
        "Type one for each",
    ),
    "an alias for two": (
        lambda f: f.agg(pl.col("spend", "items").mean().alias("m")),
        "Type one for each",
    ),
    "no word": (lambda f: f.agg(m=("items", "meen")), "Did you mean 'mean'"),
    "no column": (lambda f: f.agg(pl.col("nowhere").clip(0, 1).mean()), "no column 'nowhere'"),
    "no bounds": (lambda f: f.agg(SPEND.mean()), "clip"),
    "one bound": (lambda f: f.agg(SPEND.clip(0, None).mean()), ".clip(0, 100).mean()"),
    "no bounds of what is computed": (lambda f: f.agg((SPEND / 10).mean()), ".clip(0, 100).mean()"),
    "no bounds of a filter": (
        lambda f: f.agg(SPEND.filter(ITEMS > 1).sum()),
        ".clip(0, 100).sum()",
    ),
    "a mode": (lambda f: f.agg(pl.col("city").mode()), "dp.mode('city', keys=[...])"),
    "a first row": (lambda f: f.agg(SPEND.first()), "per_unit(y=dp.first('spend'"),
    "skew of samples": (lambda f: f.agg(SPEND.skew(bias=False)), "'skew' of Polars"),
    "an unknown name": (
        lambda f: f.agg((cs.numeric() - cs.by_name("nowhere")).max()),
        "not there. Columns: user",
    ),
    "a selector of nothing": (lambda f: f.agg(cs.date().max()), "means no column"),
    "a verb's selector of nothing": (lambda f: f.max(cs.date(), (0, 1)), "means no column"),
    "a list in a statistic": (
        lambda f: f.agg(dp.mean(["spend", "items"])),
        "agg(dp.mean('x'), dp.mean('y'))",
    ),
    "another column's bounds": (lambda f: f.mean(["spend"], bounds={"items": (0, 1)}), "'items'"),
    "no bounds of one": (
        lambda f: f.mean(["spend", "items"], bounds={"items": (0, 1)}),
        "mean('spend')",
    ),
    "a number": (lambda f: f.agg(5), "name each aggregate"),
    "a function": (
        lambda f: f.agg(SPEND.map_elements(abs, return_dtype=pl.Float64).mean()),
        "has no counterpart",
    ),
}


if OLD:
    REFUSED = {
        name: case for name, case in REFUSED.items() if name not in ("product", "an unknown name")
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
    both = frame.group_by(
        "city", even=dp.col("items") % 2 == 0, keys=[("a", True), ("b", False)], **limits
    )
    assert both.count().release(epsilon=BIG).table.columns == ["city", "even", "count"]


def test_a_misspelt_limit_of_groups_is_no_key(frame):
    for typed, near in (
        ({"max_group": 3}, "max_groups"),
        ({"key": ["a"]}, "keys"),
        ({"minunits": 3}, "min_units"),
    ):
        with pytest.raises(WrongCall, match=f"Did you mean '{near}'"):
            frame.group_by("city", **typed)
