# ruff: noqa: E501 (a case is a line)
"""What people type as in Polars or pandas has their answers, is refused with a
line, or differs as the pages say.

Each line is asked with next to no noise. What differs stands in `from-polars.md` and
`from-pandas.md`.
"""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.engine.stages import lower
from dpframe.errors import DpFrameError
from inside import step_of

pytestmark = pytest.mark.filterwarnings("ignore:.*budget allows")  # so much that there is no noise
NAN = float("nan")
TABLE = pl.DataFrame(
    {
        "u": range(48),
        "g": ["b", "a", "c", None, "b", "a"] * 8,
        "h": [2, 10, None, -1] * 12,
        "x": [1.5, -2.5, 0.5, None, NAN, 3.0, -0.0, 7.25, 2.5, 1e-3, 100.0, -99.5] * 4,
        "i": [3, -7, 0, None, 5, -2, 10, -10, 1, 2, 7, -1] * 4,
        "p": [k * k % 51 for k in range(48)],
        "b": [True, False, None, True] * 12,
        "s": [
            "Apple",
            "apple",
            "ÀB",
            "",
            None,
            " pad ",
            "a,b,c",
            "12",
            "x-y",
            "straße",
            "AbC",
            "zzz",
        ]
        * 4,
        "d": [
            dt.date(2024, 2, 25) + dt.timedelta(days=17 * k) if k % 7 else None for k in range(48)
        ],
        "t": [
            dt.datetime(2023, 12, 31, 23, 59, 59) + dt.timedelta(minutes=1867 * k)
            for k in range(48)
        ],
        "e": pl.Series(["lo", "hi", "mid", "lo"] * 12, dtype=pl.Enum(["lo", "mid", "hi", "never"])),
    }
)
HELD = TABLE.with_columns(pl.col("x").fill_nan(None))  # NaN and null are both missing here
PANDAS = HELD.to_pandas().assign(b=HELD["b"].to_pandas().astype("boolean"))

# What Polars answers alike, typed with dp.col and dp, or with pl.col and pl: c and M; L are types
SAME = r"""
c("x")+1
c("x")-c("i")
c("x")*c("i")
c("x")/c("i")
c("i")/c("i")
c("i")//2
c("i")%3
c("i")//c("i")
c("i")%c("i")
-c("i")
abs(c("i"))
c("i").abs()
c("x").abs()
c("x").round(0)
c("x").round(1)
c("x").floor()
c("x").ceil()
c("x").sqrt()
c("x").exp()
c("x").log()
c("x").log(2)
c("x").log(10)
c("x").log1p()
c("x").log10()
c("i").sign()
c("x").sign()
c("i").pow(2)
c("i")**2
c("x")**2
c("x")**0.5
c("x").clip(0,5)
c("i").clip(0,5)
c("x")>1.5
c("x")>=1.5
c("x")<1.5
c("x")==1.5
c("x")!=1.5
c("i")==c("x")
c("i")!=3
c("x").is_null()
c("x").is_not_null()
c("i").is_between(-1,5)
c("i").is_between(-1,5,closed="left")
c("i").is_between(-1,5,closed="right")
c("i").is_between(-1,5,closed="none")
c("i").is_in([1,2,3])
c("s").is_in(["Apple",""])
c("i").is_in([])
~c("b")
c("b")&(c("i")>0)
c("b")|(c("i")>0)
c("b")^(c("i")>0)
c("i").eq_missing(3)
c("i").ne_missing(3)
c("i").eq_missing(None)
c("i").fill_null(0)
c("x").fill_null(0)
c("s").fill_null("none")
c("i").cast(L.Float64)
c("i").cast(L.String)
c("b").cast(L.Int64)
c("i").cast(L.Boolean)
c("d").cast(L.Datetime("us"))
c("t").cast(L.Date)
c("d").cast(L.String)
c("s").str.to_lowercase()
c("s").str.len_chars()
c("s").str.starts_with("a")
c("s").str.ends_with("e")
c("s").str.contains("a",literal=True)
c("s").str.contains("p")
c("s").str.slice(1)
c("s").str.slice(1,2)
c("s").str.slice(-2)
c("s").str.slice(-2,1)
c("s").str.slice(0,0)
c("s").str.head(2)
c("s").str.head(-1)
c("s").str.tail(2)
c("s").str.tail(-1)
c("s").str.strip_chars()
c("s").str.strip_chars("ae")
c("s").str.strip_chars_start()
c("s").str.strip_prefix("A")
c("s").str.strip_suffix("e")
c("s").str.replace("a","X")
c("s").str.replace_all("p","")
c("s").str.zfill(5)
c("s").str.split(",").list.get(0)
c("s").str.split(",").list.get(-1)
c("s").str.split(",").list.get(5,null_on_oob=True)
c("s")+"!"
c("s")+c("s")
M.concat_str(["s","g"],separator="-")
M.concat_str("s","g",separator="-")
M.concat_str([c("s"),c("g")])
M.coalesce("i",c("x"))
M.coalesce(c("s"),M.lit("z"))
c("g").replace({"a":"A"})
c("g").replace_strict({"a":1,"b":2},default=0)
c("g").replace_strict({"a":1,"b":2,"c":3})
c("i").replace({3:30})
M.when(c("i")>0).then(1).otherwise(0)
M.when(c("i")>0).then(M.lit("p")).otherwise(M.lit("n"))
M.when(c("b")).then(c("i")).otherwise(c("x"))
M.when(c("i")>5).then(2).when(c("i")>0).then(1).otherwise(0)
M.when(c("i")>5).then(2)
c("t").dt.year()
c("t").dt.month()
c("t").dt.day()
c("t").dt.hour()
c("t").dt.minute()
c("t").dt.second()
c("t").dt.weekday()
c("t").dt.ordinal_day()
c("t").dt.week()
c("t").dt.quarter()
c("t").dt.date()
c("d").dt.weekday()
c("d").dt.week()
c("d").dt.quarter()
c("d").dt.month_start()
c("d").dt.month_end()
c("t").dt.month_start()
c("t").dt.month_end()
c("t").dt.truncate("1d")
c("t").dt.truncate("1h")
c("t").dt.truncate("15m")
c("t").dt.truncate("1w")
c("t").dt.truncate("2w")
c("t").dt.truncate("1mo")
c("t").dt.truncate("3mo")
c("t").dt.truncate("1q")
c("t").dt.truncate("1y")
c("d").dt.truncate("1w")
c("d").dt.truncate("2w")
c("d").dt.truncate("5d")
c("d").dt.truncate("1mo")
c("d").dt.offset_by("1mo")
c("d").dt.offset_by("-1y")
c("d").dt.offset_by("3d")
c("t").dt.offset_by("90m")
c("t").dt.offset_by("1mo")
c("d")+M.duration(days=3)
c("t")+M.duration(hours=3)
c("t")-M.duration(weeks=1)
c("d")-dt.date(2024,1,1)
c("t")-dt.datetime(2024,1,1)
(c("t")-dt.datetime(2024,1,1)).dt.total_days()
(c("t")-dt.datetime(2024,1,1)).dt.total_hours()
(c("t")-dt.datetime(2024,1,1)).dt.total_minutes()
(c("t")-dt.datetime(2024,1,1)).dt.total_seconds()
c("t")>dt.date(2024,1,5)
c("t")==c("d")
c("d")>=dt.date(2024,5,1)
c("t").dt.replace_time_zone("UTC")
c("t").dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo").dt.hour()
c("d").cast(L.String).str.to_date("%Y-%m-%d")
c("e")=="lo"
c("e").is_in(["lo","hi"])
c("e").cast(L.String)
c("b")==True
True & c("b")
c("s").str.count_matches("p")
c("s").str.extract("([a-z])-([a-z])",2)
c("i").is_null()&c("b").is_null()
""".strip().splitlines()
# What is typed with Polars alone
POLARS_ALONE = r"""
c("x").clip(lower_bound=0)
c("x").clip(upper_bound=0)
c("x").cast(L.Int64,strict=False)
c("s").cast(L.Int64,strict=False)
c("s").cast(L.Float64,strict=False)
c("t").dt.replace_time_zone("Europe/Berlin",ambiguous="null",non_existent="null")
c("s").str.to_date("%Y-%m-%d",strict=False)
c("s").str.contains("^a",literal=False)
M.all_horizontal("b",c("i")>0)
M.any_horizontal("b",c("i")>0)
""".strip().splitlines()
REFUSED = r"""
c("i")//-2
c("i")%-3
c("x")//2
c("x")%2
c("s").str.len_bytes()
c("t").dt.offset_by("1mo2d")
(c("t")-c("d"))
c("i")&3
c("b")+c("b")
c("x").is_nan()
c("x").is_finite()
c("i").max()
c("i").mean()
c("i")+c("b")
M.max_horizontal("i","x")
M.sum_horizontal("i","x")
""".strip().splitlines()


def protected(table):
    return dp.protect(
        table,
        unit=dp.Rows(1),
        budget=dp.Budget(epsilon=1e18, delta=1e-2),
        bounds={"x": (-100, 100), "i": (-10, 10), "p": (0, 50), "h": (-10, 20)},
        keys={"g": ["a", "b", "c"], "b": [False, True]},
    )


def column(expr, dtype):
    """The values of a row expression, in the order of the rows. Input: dtype: that of Polars."""
    step = step_of(protected(TABLE).with_columns(y=expr))
    names = [step.table.columns[name].id for name in ("u", "y")]
    made = lower(step, set(names)).to_native().collect().sort(names[0])[names[1]]
    return plain(made.cast(dtype) if dtype.is_temporal() else made)


def plain(values):
    """Values without a type. No result is missing, where Polars has NaN or an infinite number."""
    kept = [None if isinstance(x, float) and not math.isfinite(x) else x for x in values.to_list()]
    return [(type(x) is bool, pytest.approx(x) if type(x) is float else x) for x in kept]


@pytest.mark.parametrize("typed", [*SAME, *POLARS_ALONE])
def test_a_row_expression_means_what_it_means_in_polars(typed):
    if "zfill" in typed and pl.select(pl.lit("À").str.zfill(2)).item() != "0À":
        pytest.skip(
            "this version of Polars counts the bytes of a text in zfill, as 1.30 does; dpframe "
            "its characters"
        )
    wanted = HELD.select(y=eval(typed, {"c": pl.col, "M": pl, "L": pl, "dt": dt}))["y"]
    want, dtype = plain(wanted), wanted.dtype
    assert column(eval(typed, {"c": pl.col, "M": pl, "L": pl, "dt": dt}), dtype) == want
    if typed in SAME:
        assert column(eval(typed, {"c": dp.col, "M": dp, "L": pl, "dt": dt}), dtype) == want


@pytest.mark.parametrize("typed", REFUSED)
def test_what_has_no_counterpart_is_refused(typed):
    for names in ({"c": dp.col, "M": dp}, {"c": pl.col, "M": pl}):
        with pytest.raises(DpFrameError):
            protected(TABLE).with_columns(y=eval(typed, {**names, "L": pl, "dt": dt}))


# Statistics: what is typed here, and what is typed there. F and FP are the protected tables, T and
#             P the tables without
# NaN; D is T where g is not null. Keys are in the order in which they were listed, found ones in
# their own order.
ANSWERED_ALIKE = r"""
F.count() ~ T.height
F.count("g") ~ T["g"].count()
F.agg(pl.len()) ~ T.height
F.agg(pl.col("g").null_count()) ~ T["g"].null_count()
F.agg(pl.col("x").count()) ~ T["x"].count()
F.mean("x") ~ T["x"].mean()
F.sum("x") ~ T["x"].sum()
F.std("x") ~ T["x"].std()
F.var("x") ~ T["x"].var()
F.mean("i") ~ T["i"].mean()
F.sum("i") ~ T["i"].sum()
F.std("p") ~ T["p"].std()
F.std("p", ddof=0) ~ T["p"].std(ddof=0)
F.agg(pl.col("p").var(ddof=0)) ~ T["p"].var(ddof=0)
F.agg(pl.col("p").skew()) ~ T["p"].skew()
F.agg(pl.col("p").kurtosis()) ~ T["p"].kurtosis()
F.agg(pl.corr("i", "p")) ~ T.select(pl.corr("i", "p")).item()
F.agg(c=dp.cov("i", "p")) ~ T.select(pl.cov("i", "p")).item()
F.mean("b") ~ T["b"].mean()
F.sum("b") ~ T["b"].sum()
F.agg((pl.col("i") > 0).sum().alias("k")) ~ (T["i"] > 0).sum()
F.agg((pl.col("i") > 0).mean().alias("k")) ~ (T["i"] > 0).mean()
F.agg(pl.col("i").filter(pl.col("b")).sum()) ~ T.filter("b")["i"].sum()
F.agg(pl.col("i").filter(pl.col("b")).mean()) ~ T.filter("b")["i"].mean()
F.agg(pl.col("i").filter(pl.col("b")).len()) ~ T.filter("b").height
F.agg(pl.col("i").filter(pl.col("b")).count()) ~ T.filter("b")["i"].count()
F.agg(pl.col("x").clip(0, 5).sum()) ~ T["x"].clip(0, 5).sum()
F.clip("x", 0, 5).sum("x") ~ T["x"].clip(0, 5).sum()
F.min("i") ~ T["i"].min()
F.max("i") ~ T["i"].max()
F.n_unique("p") ~ T["p"].n_unique()
FP.n_unique("g") ~ P["g"].nunique()
FP.agg(n=("g", "nunique")) ~ P["g"].nunique()
FP.agg(n=("x", "count")) ~ P["x"].count()
FP.agg(n=("x", "size")) ~ len(P)
FP.agg(m=("x", "mean")) ~ P["x"].mean()
FP.agg(m=("x", np.std)) ~ P["x"].std()
FP.agg({"x": "sum"}) ~ P["x"].sum()
F.filter(dp.col("b")).count() ~ T.filter("b").height
F.filter(~dp.col("b")).count() ~ T.filter(~pl.col("b")).height
F.filter(dp.col("i") != 3).count() ~ T.filter(pl.col("i") != 3).height
F.filter(dp.col("i").ne_missing(3)).count() ~ (P["i"] != 3).sum()
F.filter(dp.col("b") | (dp.col("i") > 0)).count() ~ T.filter(pl.col("b") | (pl.col("i") > 0)).height
F.drop_nulls().count() ~ T.drop_nulls().height
F.drop_nulls("x").count() ~ T.drop_nulls("x").height
FP.drop_nulls(["x", "i"]).count() ~ len(P.dropna(subset=["x", "i"]))
F.fill_null("i", 0).count("i") ~ T["i"].fill_null(0).count()
F.join({"g": ["a", "b"], "w": [1, 2]}, on="g").count() ~ T.join(pl.DataFrame({"g": ["a", "b"]}), on="g").height
F.join({"g": ["a", "b"], "w": [1, 2]}, on="g", how="left").count() ~ T.height
F.join({"g": ["a", "b"], "w": [1, 2]}, on="g", how="left").count("w") ~ T["g"].is_in(["a", "b"]).sum()
F.join({"g": ["a", None], "w": [1, 2]}, on="g").count() ~ T["g"].eq("a").sum()
F.group_by("g").count() ~ D.group_by("g").len().sort("g")
F.group_by("g").agg(pl.len()) ~ D.group_by("g").len().sort("g")
FP.group_by("g").count() ~ P.groupby("g").size().reset_index()
FP.groupby("g").mean("x") ~ P.groupby("g")["x"].mean().reset_index()
F.group_by("g").mean("x") ~ D.group_by("g").agg(pl.col("x").mean()).sort("g")
F.group_by("g").sum("i") ~ D.group_by("g").agg(pl.col("i").sum()).sort("g")
F.group_by("g").std("i") ~ D.group_by("g").agg(pl.col("i").std()).sort("g")
F.group_by("g").var("p") ~ D.group_by("g").agg(pl.col("p").var()).sort("g")
F.group_by("g").count("x") ~ D.group_by("g").agg(pl.col("x").count()).sort("g")
F.group_by("g").min("i") ~ D.group_by("g").agg(pl.col("i").min()).sort("g")
F.group_by("g").max("i") ~ D.group_by("g").agg(pl.col("i").max()).sort("g")
F.group_by("g").n_unique("p") ~ D.group_by("g").agg(pl.col("p").n_unique()).sort("g")
FP.group_by("g").agg(n=("h", "nunique")) ~ P.groupby("g").agg(n=("h", "nunique")).reset_index()
F.group_by("g").agg(pl.col("i").sum(), pl.col("x").mean()) ~ D.group_by("g").agg(pl.col("i").sum(), pl.col("x").mean()).sort("g")
F.group_by("g").mean(["i", "p"]) ~ D.group_by("g").agg(pl.col("i", "p").mean()).sort("g")
F.group_by("g", keys=["c", "a"]).count() ~ [["c", 8], ["a", 16]]
F.group_by("g", keys=["a", "new"]).count() ~ [["a", 16], ["new", 0]]
F.group_by("g", keys=["a", None]).count() ~ [["a", 16], [None, 8]]
F.group_by("h").count() ~ T.drop_nulls("h").group_by("h").len().sort("h")
F.group_by("b").count() ~ T.drop_nulls("b").group_by("b").len().sort("b")
F.group_by("e").count() ~ [["lo", 24], ["mid", 12], ["hi", 12], ["never", 0]]
FP.group_by("g", "h", keys={"h": [2, 10]}).sum("i") ~ [[g, h, P.query("g == @g and h == @h")["i"].sum()] for g in "abc" for h in (2, 10)]
F.group_by("d", keys=[dt.date(2024, 3, 13)]).count() ~ [[dt.date(2024, 3, 13), 1]]
F.group_by(m=dp.col("t").dt.truncate("1d"), keys=DAYS).count() ~ [list(x) for x in P.resample("1D", on="t").size().items()]
F.group_by(m=dp.col("t").dt.truncate("1w"), keys=WEEKS).count() ~ [list(x) for x in P.resample("W-MON", on="t", closed="left", label="left").size().items()]
F.group_by(m=dp.col("t").dt.truncate("1mo"), keys=MONTHS).count() ~ [list(x) for x in P.resample("MS", on="t").size().items()]
F.group_by(pl.col("t").dt.weekday(), keys=range(1, 8)).count() ~ T.group_by(pl.col("t").dt.weekday()).len().sort("t")
F.histogram("p", bins=EDGES) ~ np.histogram(P["p"], EDGES)[0]
F.histogram("x", bins=[-100, -1, 0, 1, 100]) ~ np.histogram(T["x"].drop_nulls(), [-100, -1, 0, 1, 100])[0]
F.histogram("g") ~ T["g"].drop_nulls().value_counts().sort("g")
FP.cut("p", EDGES).group_by("p").count() ~ pd.cut(P["p"], EDGES).value_counts(sort=False).rename(str).reset_index().astype({"p": str})
FP.cut("p", EDGES, right=False).group_by("p").count() ~ pd.cut(P["p"], EDGES, right=False).value_counts(sort=False).reset_index().astype({"p": str})
FP.cut("p", EDGES, include_lowest=True).group_by("p").count() ~ list(pd.cut(P["p"], EDGES, include_lowest=True).value_counts(sort=False))
F.cut("p", EDGES, include_lowest=True).group_by("p").count() ~ T["p"].hist(EDGES)["count"]
FP.cut("p", EDGES, labels=list("abcde")).group_by("p").count() ~ pd.cut(P["p"], EDGES, labels=list("abcde")).value_counts(sort=False).reset_index()
FP.crosstab("g", "h", keys={"h": [-1, 2, 10]}) ~ pd.crosstab(P["g"], P["h"]).reset_index()
FP.crosstab("g", "h", keys={"h": [-1, 2, 10]}, margins=True) ~ pd.crosstab(P["g"], P["h"], margins=True).reset_index()
FP.crosstab("e", "g", keys={"e": ["lo"]}, values="i", aggfunc="sum") ~ pd.crosstab(P["e"], P["g"], P["i"], aggfunc="sum").loc[["lo"]].fillna(0).reset_index()
FP.corr(["x", "i"]) ~ P[["x", "i"]].dropna().corr().reset_index()
FP.cov(["x", "i"]) ~ P[["x", "i"]].dropna().cov().reset_index()
F.top_k("e", 1) ~ [[1, "lo"]]
F.mode("e") ~ "lo"
""".strip().splitlines()
EDGES = [0, 10, 20, 30, 40, 50]
DAYS, WEEKS, MONTHS = (
    [
        x.to_pydatetime()
        for x in PANDAS.resample(every, on="t", closed="left", label="left").size().index
    ]
    for every in ("1D", "W-MON", "MS")
)


def rows(answer):
    """A table as its rows, a column of numbers, or one number.
    A released table of one row and column is a number.
    """
    if isinstance(answer, pd.DataFrame):
        answer = answer if isinstance(answer.index, pd.RangeIndex) else answer.reset_index()
        answer = pl.DataFrame({str(name): answer[name].tolist() for name in answer}, strict=False)
    if isinstance(answer, pl.DataFrame):
        answer = [list(row) for row in answer.rows()]
        answer = answer[0][0] if len(answer) == len(answer[0]) == 1 else answer
    return (
        answer.to_list()
        if isinstance(answer, pl.Series)
        else list(answer)
        if isinstance(answer, np.ndarray)
        else answer
    )


def close(one, other):
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    one, other = (None if isinstance(x, float) and math.isnan(x) else x for x in (one, other))
    return one == other or (
        isinstance(one, float | int)
        and other is not None
        and one == pytest.approx(other, 1e-5, 1e-6)
    )


@pytest.mark.parametrize("typed", ANSWERED_ALIKE)
def test_a_question_has_the_answer_that_the_other_library_has(typed):
    ours, _, theirs = typed.partition(" ~ ")
    shared = {
        "dp": dp,
        "pl": pl,
        "pd": pd,
        "np": np,
        "dt": dt,
        "EDGES": EDGES,
        "DAYS": DAYS,
        "WEEKS": WEEKS,
    }
    shared |= {"MONTHS": MONTHS, "T": HELD, "P": PANDAS, "D": HELD.drop_nulls("g")}
    query = eval(ours, {**shared, "F": protected(TABLE), "FP": protected(PANDAS)})
    got, want = rows(query.release(1e12, delta=1e-6).table), rows(eval(theirs, shared))
    if isinstance(want, list) and want and not isinstance(want[0], list):
        got = [row[-1] for row in got]
    assert close(got, want), (got, want)
