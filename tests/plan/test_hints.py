"""What fingers type from pandas and Polars is answered with the line
to type here, by a typed error.
"""

import contextlib
import datetime as dt
import inspect

import pandas as pd
import pytest

import dpframe as dp
from dpframe import usage
from dpframe.api.synthesis import SynthesisQuery
from dpframe.errors import (
    BudgetRequired,
    DpFrameError,
    InvalidArgument,
    InvalidBounds,
    InvalidPrice,
    ReleaseMismatch,
    UnknownAttribute,
    UnknownColumn,
    WrongCall,
    WrongType,
)
from dpframe.plan import hints as habits
from dpframe.release import MarginalsRelease, SyntheticRelease
from dpframe.release.kinds.regression import MatrixRelease, Regression

TABLE = pd.DataFrame(
    {"user": [1, 1, 2], "wage": [1.0, 2.0, 3.0], "city": ["a", "b", "c"], "n": [1, 2, 3]}
)


@pytest.fixture
def frame():
    return TABLE.dp(unit="user", budget=dp.Budget(epsilon=100))


MARGINALS = TABLE.dp(unit="user", budget=dp.Budget(epsilon=100, delta=0.1)).marginals(
    ["city", "n"], "2-way", keys={"city": ["a", "b"], "n": [1, 2]}, max_rows=1
)


def groups_of(frame):
    return frame.group_by("city", keys=["a"], max_groups=1, max_rows_per_group=1)


NAMES = {
    "f.assign": "with_columns(",
    "f.query": "filter(",
    "f.dropna": "drop_nulls(",
    "f.merge": "join(",
    "f.value_counts": "count()",
    "f.head": "not shown",
    "f.shape": "not shown",
    "f.wage": "dp.col('wage')",
    "f.coutn": "'count'",
    "f.sort_values": "sort that",
    "f.plot": ".release(epsilon=0.1).plot()",
    "g.size": ".count()",
    "g.ols": "frame.partition('city', keys=[...])",
    "g.wage": ".mean('wage', bounds=(0, 100))",
    "q.table": ".release(",
    "q.relese": "'release'",
    "out.head": ".table",
    "out.nlargest": ".table",
    "out.left_out": "column of .accuracy()",
    "tables.with_ci": "out['a', 'b'].accuracy()",
    "tables.plot": "out['a', 'b']",
    "tables.reprot": "'report'",
    "dp.avg": "dp.mean(",
    "dp.size": "dp.count()",
    "dp.rate": "mean of a condition",
    "dp.nunique": "dp.n_unique(",
    "dp.meann": "'mean'",
    "dp.col('n').isin": ".is_in(",
    "dp.col('n').isna": ".is_null()",
    "dp.col('n').mean": "agg(",
    "f.resample": "dt.truncate('1w'), keys=pd.date_range(",
    "f.nlargest": "delta=",
    "f.nsmallest": "top_k('x', 3",
    "f.melt": "There is no melt",
    "f.drop_duplicates": "there is no drop_duplicates",
    "f.unique": "n_unique('x')",
    "f.explode": "There is no explode",
    "f.rolling": "dt.date()",
    "f.append": "dp.concat([frame, other])",
    "dp.col('n').name": ".alias('weekly')",
    "dp.col('n').nlargest": "frame.top_k(",
    "dp.col('n').shift": "per_unit(",
    "dp.col('n').dt.floor": ".dt.truncate('1d')",
    "dp.col('n').dt.isocalendar": ".dt.week()",
    "dp.col('n').str.strip": ".str.strip_chars()",
    "dp.col('n').str.count": ".str.count_matches('a')",
    "dp.col('n').dt.tz_convert": ".dt.convert_time_zone('Europe/Berlin')",
    "dp.col('n').str.get": ".list.get(0)",
    "dp.col('n').str.split(',').len": ".list.get(0)",
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
    known = {
        "f": frame,
        "g": groups,
        "q": query,
        "dp": dp,
        "TABLE": TABLE,
        "out": query.release(epsilon=1),
    }
    if typed.startswith("tables."):
        known["tables"] = MARGINALS.release(epsilon=1, delta=1e-6)
    with pytest.raises(UnknownAttribute) as caught:
        eval(typed, known)
    assert isinstance(caught.value, AttributeError)
    assert NAMES[typed] in str(caught.value)


KINDS = {
    "MODULE": dp,
    "FRAME": dp.PrivateFrame,
    "GROUPS": dp.PrivateGroupBy,
    "QUERY": dp.Query,
    "RELEASE": dp.Release,
    "MATRIX": MatrixRelease,
    "REGRESSION": Regression,
    "SYNTHETIC": SyntheticRelease,
    "SYNTHETIC_QUERY": SynthesisQuery,
    "HIERARCHY": dp.HierarchyRelease,
    "MARGINALS": MarginalsRelease,
    "EXPRESSION": dp.Expr,
    "TEXT": type(dp.col("x").str),
    "CALENDAR": type(dp.col("x").dt),
    "ACCESSOR": type(TABLE.dp),
}


@pytest.mark.parametrize("table", KINDS)
def test_no_advice_is_given_on_a_name_that_exists(table):
    assert set(getattr(habits, table)).isdisjoint(dir(KINDS[table]))


def test_what_statistics_are_called_elsewhere_is_no_name_here():
    assert {"gmean", "nunique", "stddev", "percentile"} <= usage.ELSEWHERE.keys()
    assert usage.ELSEWHERE.keys().isdisjoint({*dir(dp), *habits.MODULE})


ASKED = {
    "f['wage']": "dp.col('wage')",
    "f[['wage', 'n']]": "select(",
    "f[dp.col('wage') > 1]": "filter(",
    "f[0]": "not shown",
    "list(f)": "does not tell its number of rows",
    "f.filter('wage > 1')": "not text but an expression, such as dp.col('wage') >= 18",
    "g['wage']": ".mean('wage'",
    "[key for key in g]": "no loop: one frame for each key is in partition('city', keys=[...], "
    "max_groups=1)",
    "out['n']": ".table['n']",
    "g.agg(['mean'])": "mean(['x', 'y'])",
    "g.agg({'wage': 'avg'})": "no statistic 'avg'",
    "f.agg(n=dp.count(), max_rows=1, epsilon=1)": ".release(epsilon=...)",
    "TABLE.dp.agg(['mean'], unit='user')": "mean(['x', 'y'])",
    "f.count(max_rows=dp.Auto())": "limits=dp.Auto()",
    "f.bound(max_groups=3)": "group_by('city', max_groups=3)",
    "dp.col('when').dt.truncate('1w', offset='-1d')": "+ "
    "dp.duration(days=1)).dt.truncate('1w') "
    "- dp.duration(days=1)",
    "dp.sum('wage') / dp.count()": "fill_null('wage', 0)",
    "dp.ratio(dp.sum('wage'), dp.count('wage'))": "dp.mean('wage')",
    "dp.ratio(dp.sum('wage'), dp.count_units())": "per_unit(total=dp.sum('wage')).mean('total', "
    "bounds=(0, 100))",
    "TABLE.dp['wage']": "frame.mean('wage'",
    "TABLE.dp[['wage']]": "df.dp(unit='user_id')",
    "TABLE.wage.dp[0]": "df.dp(unit='user_id')",
    "f.mean(epsilon=1)": "mean('wage', bounds=(0, 100), max_rows=5).release(epsilon=0.1)",
    "f.top_k()": "'column'. Type top_k('city', 1,",
    "f.count_units(max_rows=1)": "count_units().release(",
    "f.group_by('city', max_group=1)": "Did you mean 'max_groups'? Type group_by('city', "
    "keys=['Bonn', 'Kiel'],",
    "g.mean()": "'column'. Type .mean('wage', bounds=(0, 100))",
    "dp.sum()": "'column'. Type dp.sum('wage', bounds=(0, 100))",
    "dp.quantile('wage')": "'q'. Type dp.quantile('wage', 0.9,",
    "TABLE.dp.crosstab()": "df.dp.crosstab('region', 'sex',",
}


@pytest.mark.parametrize("typed", ASKED)
def test_an_argument_from_elsewhere_is_answered_too(frame, typed):
    groups = groups_of(frame)
    known = {
        "f": frame,
        "g": groups,
        "dp": dp,
        "TABLE": TABLE,
        "out": groups.count().release(epsilon=1),
    }
    with pytest.raises(InvalidArgument) as caught:
        eval(typed, known)
    assert ASKED[typed] in str(caught.value)


def test_a_column_of_texts_is_cast_before_it_is_compared_with_dates():
    table = pd.DataFrame(
        {"user": [1], "ts": pd.to_datetime(["2026-01-01"]), "day": ["2026-01-01"], "shop": ["a"]}
    )
    frame = table.dp(unit="user")
    with pytest.raises(
        WrongType, match=r"The column holds texts: cast them before, dp.col\('x'\).cast\('date'\)"
    ):
        frame.filter(dp.col("day") >= dt.date(2026, 1, 1))
    with pytest.raises(UnknownAttribute, match="join\\(other, on='day'\\)"):  # a text before a time
        _ = frame.merge


PEOPLE = pd.DataFrame(
    {
        "user_id": [1, 1, 2],
        "wage": 9.0,
        "city": "Bonn",
        "when": [3, 1, 2],
        "region": ["north", "north", "south"],
    }
).assign(sex="f", hours=40.0)


@pytest.mark.parametrize("place", ["", ".", "dp.", "df.dp.", "series.dp."])
def test_every_line_that_is_named_for_a_question_works(place):
    frame = PEOPLE.dp(unit="user_id", budget=dp.Budget(epsilon=100, delta=0.1))
    groups = frame.group_by("sex", keys=["f", "m"], max_groups=1, max_rows_per_group=1)
    of = {"": frame, ".": groups, "dp.": dp, "df.dp.": PEOPLE.dp, "series.dp.": PEOPLE["wage"].dp}[
        place
    ]
    verbs = usage.ARGUMENTS.keys() & set(dir(of))
    assert verbs >= {
        "count",
        "sum",
        "mean",
        "var",
        "std",
        "median",
        "quantile",
        "min",
        "max",
        "mode",
        "n_unique",
    }
    for verb in verbs:
        with pytest.raises(WrongCall) as caught:
            getattr(of, verb)(1, 2, 3, 4, 5, 6, nothing=0)
        line = str(caught.value).partition("Type ")[2].removesuffix(".")
        assert line.startswith(f"{place}{verb}(")
        line = {"": f"frame.{line}", ".": f"groups{line}"}.get(place, line).replace(
            "epsilon=0.1", "epsilon=1, delta=0.01"
        )
        with contextlib.suppress(BudgetRequired):  # a one-liner says no budget
            series = PEOPLE["city" if "'city'" in line else "wage"]
            eval(line, {"frame": frame, "groups": groups, "dp": dp, "df": PEOPLE, "series": series})


# which takes any arguments
@pytest.mark.parametrize("verb", [verb for verb in usage.STEPS if verb != "filter"])
def test_every_line_that_is_named_for_a_step_works(verb):
    frame = PEOPLE.dp(unit="user_id", budget=dp.Budget(epsilon=100))
    with pytest.raises(WrongCall, match=f"^{verb}: ") as caught:
        getattr(frame, verb)(
            1, 2, 3, 4, 5, 6, **({} if verb in ("with_columns", "per_unit") else {"nothing": 0})
        )
    line = str(caught.value).partition("Type ")[2].removesuffix(".")
    assert line.startswith(f"{verb}(")
    eval(f"frame.{line}", {"frame": frame, "dp": dp})


def test_every_line_that_is_named_for_a_query_or_a_batch_works():
    budget = dp.Budget(epsilon=100)
    query = PEOPLE.dp(unit="user_id", budget=budget).count(max_rows=5)
    for verb in usage.PRICED:
        ask = (
            (lambda **wrong: budget.plan([query], **wrong))
            if verb == "batch_of"
            else getattr(query, verb)
        )
        with pytest.raises(WrongCall) as caught:
            ask(nothing=0)
        line = (
            str(caught.value)
            .partition("Type ")[2]
            .removesuffix(".")
            .replace("[query, ...]", "[query]")
        )
        assert line.startswith("budget.plan(" if verb == "batch_of" else f".{verb}(")
        eval(line if verb == "batch_of" else f"query{line}", {"query": query, "budget": budget})
    with pytest.raises(InvalidPrice, match=r"budget.plan\(\[...\], epsilon=1.0"):
        budget.plan([query])
    batch = budget.plan([query], epsilon=1)
    for name in ("accuracy", "explain", "epsilon_for", "table"):
        with pytest.raises(UnknownAttribute, match="ype "):
            getattr(batch, name)


def test_wrong_names_at_the_doors_and_of_released_tables_are_answered_with_a_line_that_works(
    tmp_path,
):
    budget, ledger = dp.Budget(epsilon=100), dp.Ledger(tmp_path / "study.sqlite")
    out = PEOPLE.dp(unit="user_id", budget=budget).count(max_rows=5).release(epsilon=1)
    known = {"dp": dp, "table": PEOPLE, "df": PEOPLE}
    for ask, line in (
        (lambda: dp.Budget(eps=1), ""),
        (lambda: ledger.budget("visits", eps=1), "ledger"),
        (lambda: dp.protect(PEOPLE, user="user_id"), ""),
        (lambda: PEOPLE.dp(user_id="user_id"), ""),
        (lambda: out.with_ci(level=0.9), "out"),
        (lambda: out.suppress(min=10), "out"),
        (lambda: out.accuracy(confidence=0.9), "out"),
    ):
        with pytest.raises(WrongCall, match=r"argument:? '\w+'\. Type ") as caught:
            ask()
        assert "__" not in str(caught.value)
        typed = str(caught.value).partition("Type ")[2].removesuffix(".")
        assert eval(f"{line}{typed}", {**known, "out": out, "ledger": ledger}) is not None


def test_a_plan_that_is_called_wrongly_is_answered_with_the_line():
    budget = dp.Budget(epsilon=1)
    query = PEOPLE.dp(unit="user_id", budget=budget).count(max_rows=5)
    for ask in (lambda: budget.plan(query, query, epsilon=0.5), lambda: budget.plan()):
        with pytest.raises(
            WrongCall, match=r"Type budget\.plan\(\[query, \.\.\.\], epsilon=0\.1\)\.$"
        ):
            ask()
    with pytest.raises(WrongCall, match=r"'epsilon'\. Type plan\.release\(\)\.$"):
        budget.plan([query], epsilon=0.5).release(epsilon=0.5)


def test_an_error_inside_a_question_stays_what_it_is(frame):
    with pytest.raises(WrongType):  # which is a TypeError too
        frame.mean("city", bounds=(0, 1), max_rows=1)
    assert list(inspect.signature(dp.mean).parameters) == [
            "column", "bounds", "weights", "weight_bounds", "share", "max_rows", "max_groups",
            "max_rows_per_group",
        ]  # fmt: skip


def test_what_other_libraries_ask_an_object_gets_python_s_own_answer(frame):
    for thing in (frame, groups_of(frame), frame.count_units(), dp.col("x"), TABLE.dp):
        for name in ("__array__", "__dataframe__", "_ipython_display_", "_repr_png_", "__float__"):
            with pytest.raises(AttributeError) as caught:
                getattr(thing, name)
            assert not isinstance(caught.value, DpFrameError)


def test_right_refusals_name_a_line_to_type(frame):
    query = groups_of(frame).count()
    for kind, words, ask in (
        (WrongType, "whole numbers", lambda: frame.group_by("n", keys=["x"], max_groups=1)),
        (WrongType, "cast('x', 'float64')", lambda: frame.clip("city", 0, 1)),
        (WrongType, "cast('x', 'float64')", lambda: frame.cut("city", [0, 1])),
        (WrongType, "cast('city', 'float64')", lambda: frame.per_unit(m=dp.max("city"))),
        (WrongType, "cast('float64')", lambda: frame.filter(dp.col("n") > "3")),
        (InvalidBounds, "bounds=dp.Auto()", lambda: frame.mean("wage", bounds="auto", max_rows=1)),
        (UnknownColumn, "mean 'wage'", lambda: frame.mean("wag", bounds=(0, 1), max_rows=1)),
        (InvalidPrice, "accuracy(epsilon=0.1)", query.accuracy),
        (InvalidPrice, "it is a str.", lambda: query.accuracy(epsilon="1")),
        (InvalidArgument, "not an int.", lambda: frame.select(1)),
        (WrongType, "dp.col('x') == 'yes'", lambda: frame.filter("city")),
        (
            WrongType,
            "cast('city', 'float64')",
            lambda: frame.sum("city", bounds=(0, 1), max_rows=1),
        ),
        (
            WrongType,
            "astype({'city': 'float64'}), or 'boolean'",
            lambda: frame.mean("city", max_rows=1),
        ),
        (WrongType, "astype({'x': 'float64'}), or 'boolean'", lambda: frame.clip("city", 0, 1)),
        (
            WrongType,
            "leave it out",
            lambda: frame.with_columns(old=dp.col("n") > 3).clip("old", 0, 1),
        ),
        (
            InvalidBounds,
            "datetime.date(2026, 1, 31)",
            lambda: frame.mean("n", bounds=("2026-01-01", 5), max_rows=1),
        ),
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
    with pytest.raises(ReleaseMismatch) as caught:
        frame.agg(m=dp.mean("wage", bounds=dp.Auto(0.2)), limits=dp.Auto()).release(
            epsilon=1, name="x"
        )
    for line in (
        "ask.keys: listed, nothing",
        "ask.aggregates.count: count(), nothing",
        "ask.aggregates.m: nothing, mean('wage', bounds=dp.Auto(0.2))",
        "ask.limits.auto: nothing, dp.Auto()",
    ):
        assert f"  {line}\n" in str(caught.value)


def test_the_module_is_asked_for_what_it_may_have():
    assert dp.audit.__name__ == "dpframe.audit"
    assert not hasattr(dp, "avg")
    with pytest.raises(ImportError):
        exec("from dpframe import avg")
    with pytest.raises(AttributeError) as caught:
        dp._nothing  # noqa: B018
    assert not isinstance(caught.value, DpFrameError)


def test_suppressed_counts_of_pandas_stay_whole(frame):
    table = groups_of(frame).count().release(epsilon=1).suppress(below=1e9).table
    assert table["count"].dtype == pd.Int64Dtype()
    assert table["count"].isna().all()


def test_one_number_is_a_float(frame):
    out = frame.count_units().release(epsilon=1)
    assert float(out) == out.value


def test_an_aggregate_shows_as_it_was_typed():
    for line in (
        "dp.count()",
        "dp.count_units(share=2)",
        "dp.sum('wage', unit_bounds=(0, 9))",
        "dp.mean('wage', bounds=dp.Auto(), share=0.5)",
        "dp.std('wage', bounds=(0, 100), ddof=0)",
        "dp.n_unique('city')",
        "dp.quantile('wage', 0.25)",
        "dp.last('city', by='n')",
        "dp.Auto(0.2)",
    ):
        assert repr(eval(line)) == line


def test_a_type_error_from_inside_a_question_stays_what_it_is():
    def mean(column):
        raise TypeError(f"not of the call: {column}")

    with pytest.raises(TypeError, match="not of the call: x") as caught:
        usage.explained(mean)("x")
    assert type(caught.value) is TypeError
    with pytest.raises(WrongCall, match="missing a required argument"):
        usage.explained(mean)()
