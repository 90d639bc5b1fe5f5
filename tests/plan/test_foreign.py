"""Expressions of Polars, wherever one of ours stands:
read node by node, or refused with what to type.
"""

from __future__ import annotations

import datetime as dt
import functools
import operator
import re
import zoneinfo

import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import DpFrameError, InvalidArgument, UnknownColumn, UnsupportedOperation
from dpframe.plan import hints, read_polars
from dpframe.plan.nodes import text
from inside import node_of

A, S, T = (pl.col(x) for x in "ast")
OURS = {"a": dp.col("a"), "s": dp.col("s"), "t": dp.col("t")}
CALENDAR = [
    "year",
    "month",
    "day",
    "weekday",
    "ordinal_day",
    "hour",
    "minute",
    "date",
    "week",
    "quarter",
    "month_start",
    "month_end",
    "second",
]


_BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
HOURS = [  # the last two are an hour that the clock shows twice
    dt.datetime(2024, 7, 1, 5, tzinfo=zoneinfo.ZoneInfo("UTC")),
    dt.datetime(1850, 1, 1, 0, 0, 0, 1),
    dt.datetime(2024, 10, 27, 2, 30, tzinfo=_BERLIN),
    dt.datetime(2024, 10, 27, 2, 30, tzinfo=_BERLIN, fold=1),
]


def pairs():
    """Each operation as it is typed with `pl.col`, and with `dp.col`."""
    a, s, t = OURS["a"], OURS["s"], OURS["t"]
    one = [
        (name, getattr(A, name)(), getattr(a, name)())
        for name in ["log", "log1p", "exp", "sqrt", "floor", "ceil", "abs", "sign"]
    ]
    one += [
        (name, getattr(A, name)(), getattr(a, name)())
        for name in ("is_null", "is_not_null", "round", "log10")
    ]
    one += [(name, getattr(T.dt, name)(), getattr(t.dt, name)()) for name in CALENDAR]
    return [
        *one,
        ("arithmetic", (1 - A * 2.5 + A) / 2, (1 - a * 2.5 + a) / 2),
        ("whole", -(A // 2) % 3, -(a // 2) % 3),
        ("power", A**2 + A**0.5, a**2 + a**0.5),
        ("rounded", A.round(2), a.round(2)),
        ("base", A.log(2), a.log(2)),
        ("logic", (A >= 1) & (A < 5) | ~(A == 3), (a >= 1) & (a < 5) | ~(a == 3)),
        ("compared", (A != 2) & (A <= 4) & (A > 0), (a != 2) & (a <= 4) & (a > 0)),
        ("between", A.is_between(1, 2), a.is_between(1, 2)),
        ("among", A.is_in([1, 2]) & S.is_in(["x", "y"]), a.is_in([1, 2]) & s.is_in(["x", "y"])),
        ("clipped", A.clip(0, 10), a.clip(0, 10)),
        ("above", A.clip(upper_bound=3), a.clip(None, 3)),
        ("below", A.clip(lower_bound=3), a.clip(3)),
        ("filled", A.fill_null(0), a.fill_null(0)),
        ("cast", A.cast(pl.Int64), a.cast("int64")),
        ("cast time", S.cast(pl.Datetime("us"), strict=False), s.cast("datetime")),
        (
            "choice",
            pl.when(A > 1).then(pl.lit("x")).otherwise(S),
            dp.when(a > 1).then("x").otherwise(s),
        ),
        ("no otherwise", pl.when(A > 1).then(1), dp.when(a > 1).then(1)),
        (
            "cases",
            S.str.to_lowercase() == S.str.to_uppercase(),
            s.str.to_lowercase() == s.str.to_uppercase(),
        ),
        ("length", S.str.len_chars(), s.str.len_chars()),
        ("contains", S.str.contains("a.", literal=True), s.str.contains("a.", literal=True)),
        ("contains letters", S.str.contains("ab"), s.str.contains("ab")),
        (
            "ends",
            S.str.starts_with("a") | S.str.ends_with("b"),
            s.str.starts_with("a") | s.str.ends_with("b"),
        ),
        ("head", S.str.head(3), s.str.head(3)),
        ("slice", S.str.slice(1, 2), s.str.slice(1, 2)),
        ("rest", S.str.slice(1), s.str.slice(1)),
        ("replace", S.str.replace("a", "b", literal=True), s.str.replace("a", "b")),
        ("replace all", S.str.replace_all("a", "b", literal=True), s.str.replace_all("a", "b")),
        ("piece", S.str.split(",").list.get(-1, null_on_oob=True), s.str.split(",").list.get(-1)),
        ("truncate", T.dt.truncate("1w"), t.dt.truncate("1w")),
        ("date", dt.date(2020, 1, 1) <= T, t >= dt.date(2020, 1, 1)),
        ("date of Polars", pl.date(2020, 1, 1) <= T, dp.lit(dt.date(2020, 1, 1)) <= t),
        ("time", dt.datetime(2020, 1, 1, 2) < T, t > dt.datetime(2020, 1, 1, 2)),
        *((f"time in {hour.tzinfo}, {hour.fold}", hour < T, t > hour) for hour in HOURS),
        ("times", T.is_between(*HOURS[:2]), t.is_between(*HOURS[:2])),
        ("time in place of null", T.fill_null(HOURS[2]), t.fill_null(HOURS[2])),
        (
            "chain",
            pl.when(A > 2).then(pl.lit("x")).when(A > 1).then(pl.lit("y")).otherwise(S),
            dp.when(a > 2).then("x").when(a > 1).then("y").otherwise(s),
        ),
        ("half open", A.is_between(1, 2, closed="left"), a.is_between(1, 2, closed="left")),
        ("exclusive", (A > 1) ^ (A < 3), (a > 1) ^ (a < 3)),
        ("missing", A.eq_missing(1) | A.ne_missing(T), a.eq_missing(1) | a.ne_missing(t)),
        ("divided", A // T + A % T, a // t + a % t),
        ("first", pl.coalesce("a", T, 1), dp.coalesce("a", t, 1)),
        ("texts", pl.concat_str(["s", A], separator="-"), dp.concat_str(["s", a], separator="-")),
        ("sum of texts", S + "x", s + "x"),
        (
            "end",
            S.str.slice(-3) + S.str.head(-2) + S.str.tail(2),
            s.str.slice(-3) + s.str.head(-2) + s.str.tail(2),
        ),
        ("zeros", S.str.zfill(4), s.str.zfill(4)),
        ("replaced", S.replace({"a": "b"}), s.replace({"a": "b"})),
        (
            "replaced strictly",
            S.replace_strict({"a": 1}, default=0),
            s.replace_strict({"a": 1}, default=0),
        ),
        ("day", S.str.to_date("%d.%m.%Y"), s.str.to_date("%d.%m.%Y")),
        ("clock", S.str.to_datetime("%d.%m.%Y %H:%M"), s.str.to_datetime("%d.%m.%Y %H:%M")),
        ("pattern", S.str.contains("a|b"), s.str.contains("a|b", regex=True)),
        ("just these", S.str.contains("a|b", literal=True), s.str.contains("a|b", literal=True)),
        ("group", S.str.extract("(a)b"), s.str.extract("(a)b")),
        ("many", S.str.count_matches("[ab]"), s.str.count_matches("[ab]", regex=True)),
        (
            "pattern replaced",
            S.str.replace_all("a+", "b"),
            s.str.replace_all("a+", "b", regex=True),
        ),
        (
            "stripped",
            S.str.strip_chars() + S.str.strip_chars_end("a"),
            s.str.strip_chars() + s.str.strip_chars_end("a"),
        ),
        (
            "start",
            S.str.strip_prefix("a") + S.str.strip_suffix("b"),
            s.str.strip_prefix("a") + s.str.strip_suffix("b"),
        ),
        ("zone", T.dt.convert_time_zone("Asia/Tokyo"), t.dt.convert_time_zone("Asia/Tokyo")),
        (
            "clock of a zone",
            T.dt.replace_time_zone("Asia/Tokyo"),
            t.dt.replace_time_zone("Asia/Tokyo"),
        ),
        ("no zone", T.dt.replace_time_zone(None), t.dt.replace_time_zone(None)),
        ("between days", (T - T).dt.total_days(), (t - t).dt.total_days()),
        ("later", T + pl.duration(days=3), t + dp.duration(days=3)),
        ("offset", T.dt.offset_by("-1mo"), t.dt.offset_by("-1mo")),
        ("mixed", OURS["a"] + A, a + a),
    ]


@pytest.mark.parametrize(
    ("theirs", "ours"), [pair[1:] for pair in pairs()], ids=[pair[0] for pair in pairs()]
)
def test_an_expression_of_polars_is_the_one_of_ours_that_is_typed_alike(theirs, ours):
    read = read_polars(theirs) if isinstance(theirs, pl.Expr) else theirs
    assert text(node_of(read)) == text(node_of(ours))


REFUSED = {
    "mean": A.mean(),
    "total": A + A.sum(),
    "len": pl.len(),
    "separator kept": S.str.split(",", inclusive=True).list.get(0),
    "function": A.map_elements(lambda x: x, return_dtype=pl.Int64),
    "shift": A.shift(1),
    "rank": A.rank(),
    "window": A.over("s"),
    "every match": S.str.extract_all("a"),
    "forward": A.fill_null(strategy="forward"),
    "column": T.dt.truncate(S),
    "column of texts": S.str.starts_with(S),
    "struct": pl.struct("a"),
    "largest": pl.max_horizontal("a", "t"),
    "written": T.dt.strftime("%Y"),
    "several groups": S.str.extract_groups("(a)(b)"),
    "earliest": T.dt.replace_time_zone("UTC", ambiguous="earliest"),
    "milliseconds": (T - T).dt.total_milliseconds(),
    "nulls left out": pl.concat_str("s", "s", ignore_nulls=True),
    "another unit": S.str.to_datetime("%Y-%m-%d", time_unit="ns"),
    "all": pl.all(),
    "several": pl.col("a", "s"),
    "types": pl.col(pl.Int64),
}


@pytest.mark.parametrize("typed", REFUSED)
def test_what_has_no_counterpart_is_refused_with_what_to_type(typed):
    with pytest.raises(UnsupportedOperation) as caught:
        read_polars(REFUSED[typed])
    assert offered(str(caught.value)), "the message offers nothing to type"


PLACES = {
    "dp": dp,
    "str": type(OURS["s"].str),
    "dt": type(OURS["t"].dt),
    "list": type(OURS["s"].str.split(",")),
    "table": pl.DataFrame,
    "frame": dp.PrivateFrame,
}


def offered(message):
    """The calls that a message offers; each of them exists."""
    calls = re.findall(r"(?:\b(\w+))?\.([a-z]\w*)\(|\b(agg|per_unit)\(", message)
    choices = ("then", "otherwise")  # which dp.when has
    for place, name, verb in calls:
        assert hasattr(PLACES.get(place, dp.Expr), name) or verb or name in choices, (
            place,
            name,
            message,
        )
    return calls


@pytest.mark.parametrize("table", ["EXPRESSION", "TEXT", "CALENDAR", "PIECES"])
def test_advice_on_names_of_other_libraries_offers_what_exists(table):
    for advice in set(getattr(hints, table).values()):
        assert offered(advice.replace("[...]", "")) or "no" in advice, advice


TABLE = pl.DataFrame(
    {
        "user": [1, 1, 2, 3],
        "a": [1.0, 2.0, 4.0, None],
        "t": [
            dt.datetime(2024, 1, 1, 5),
            dt.datetime(2024, 1, 2),
            dt.datetime(2024, 1, 8),
            dt.datetime(2024, 2, 1),
        ],
    }
)


@pytest.mark.parametrize("values", [["ab", "cd"], ["ab"], []])
def test_a_series_in_a_list_of_values_is_read_whole(values):
    series = pl.Series(values, dtype=pl.String)
    for theirs in (S.is_in(series.to_list()), S.is_in(series), S.is_in(pl.lit(series))):
        assert text(node_of(read_polars(theirs))) == text(node_of(OURS["s"].is_in(values)))


SECRET = pl.Series("s", ["a cell", "another"])


@pytest.mark.parametrize(
    "typed",
    [
        lambda: pl.lit(SECRET) == S,
        lambda: S == SECRET,
        lambda: A.clip(pl.Series([1, 2]), 5),
        lambda: A + pl.Series([]),
    ],
)
def test_a_series_in_place_of_a_constant_is_refused_without_its_cells(typed):
    with pytest.raises(UnsupportedOperation, match="a series of values") as error:
        read_polars(typed())
    assert "cell" not in str(error.value)


@pytest.fixture
def frame():
    return dp.protect(TABLE, unit="user", budget=dp.Budget(epsilon=5000))


def test_it_stands_wherever_an_expression_does(frame):
    kept = frame.filter(
        pl.col("a") >= 2, dp.when(pl.col("a") > 3).then(True).otherwise(pl.col("a") < 3)
    )
    assert kept.count(max_rows=5).release(epsilon=500).value == 2
    made = frame.with_columns(
        (pl.col("a") * 2).alias("b"), (dp.col("a") + 1).alias("c"), pl.col("a").log(), d=pl.lit(1)
    )
    assert made.columns == ["user", "a", "t", "b", "c", "d"]


def test_an_expression_without_a_name_is_called_like_its_first_column(frame):
    assert frame.with_columns(dp.when(dp.col("a") > 1).then(dp.col("t"))).columns == [
        "user",
        "a",
        "t",
    ]
    assert frame.with_columns([dp.col("a").alias("b") * 2]).columns == ["user", "a", "t", "b"]
    with pytest.raises(InvalidArgument, match=r"\.alias\('more'\)"):
        frame.with_columns(1 + dp.col("a"))
    with pytest.raises(InvalidArgument, match=r"\.alias\('y'\)"):
        frame.with_columns(dp.col("a") + 1, a=dp.col("a"))


def test_rows_are_counted_by_the_name_that_polars_has_for_it(frame):
    groups = frame.group_by(
        dp.col("t").dt.date(), keys=[dt.date(2024, 1, 1)], max_groups=1, max_rows_per_group=1
    )
    assert groups.agg(pl.len()).release(epsilon=1).table.columns == ["t", "len"]
    assert groups.agg(pl.len().alias("n"), m=pl.len()).release(epsilon=1).table.columns == [
        "t",
        "n",
        "m",
    ]
    assert frame.agg(n=pl.len(), max_rows=2).release(epsilon=1).table.columns == ["n"]
    with pytest.raises(UnsupportedOperation, match="alone is a value of each row"):
        groups.agg(m=pl.col("a"))


def test_expressions_are_keys(frame):
    weeks = [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 8), dt.datetime(2024, 1, 15)]
    groups = frame.group_by(
        pl.col("t").dt.truncate("1w"), keys=weeks, max_groups=3, max_rows_per_group=5
    )
    assert groups.count().release(epsilon=500).table["count"].to_list() == [2, 1, 0]
    both = frame.group_by(
        dp.col("t").dt.month().alias("month"),
        "a",
        keys={"month": [1, 2], "a": [1.0, 3.0]},
        max_groups=2,
        max_rows_per_group=5,
    )
    assert both.count().release(epsilon=500).table.columns == ["month", "a", "count"]
    latest = both.max("t", bounds=(dt.datetime(2024, 1, 1), dt.datetime(2025, 1, 1)))
    assert latest.release(epsilon=1).table.columns == ["month", "a", "t"]


def test_a_key_that_took_the_name_of_a_column_is_not_what_is_asked_about(frame):
    """`group_by(a // 10).mean("a")` would be the mean of the keys."""
    groups = frame.group_by(dp.col("a").floor(), keys=[1.0], max_groups=1, max_rows_per_group=1)
    with pytest.raises(InvalidArgument, match=r"alias\('a_key'\)"):
        groups.mean("a", bounds=(0, 10))
    with pytest.raises(InvalidArgument, match=r"alias\('a_key'\)"):
        groups.agg(x=dp.sum("a", bounds=(0, 10)))
    groups.count().release(epsilon=1)


def test_a_column_that_is_not_there_is_refused(frame):
    with pytest.raises(UnknownColumn, match="nothing"):
        frame.filter(pl.col("nothing") > 1)
    with pytest.raises(DpFrameError):
        frame.group_by(dp.col("nothing").floor(), keys=[1.0], max_groups=1)


@pytest.mark.parametrize("terms", [100, 3000])
def test_a_chain_that_cannot_be_read_is_refused_by_its_reason(terms):
    chain = functools.reduce(operator.add, [pl.col("x")] * terms)
    frame = dp.protect(pl.DataFrame({"u": [1], "x": [1.0]}), unit="u", budget=dp.Budget(epsilon=1))
    if terms == 100:
        assert frame.with_columns(y=chain).columns == ["u", "x", "y"]
        return
    with pytest.raises(
        UnsupportedOperation, match=r"too many operations within each other.*Type it with dp\.col"
    ):
        frame.with_columns(y=chain)


def test_lists_of_values_are_read_whole():
    for theirs, ours in (
        (pl.col("g").replace({"a": "x", "b": "y"}), dp.col("g").replace({"a": "x", "b": "y"})),
        (pl.col("g").replace(["a", "b"], "z"), dp.col("g").replace({"a": "z", "b": "z"})),
        (pl.col("g").replace(["a", "b"], ["z", "y"]), dp.col("g").replace({"a": "z", "b": "y"})),
        (pl.col("g").replace("a", "z"), dp.col("g").replace({"a": "z"})),
        (
            pl.col("g").replace_strict({"a": 1}, default=0),
            dp.col("g").replace_strict({"a": 1}, default=0),
        ),
        (pl.col("g").is_in(["ab", "cd"]), dp.col("g").is_in(["ab", "cd"])),
    ):
        assert repr(read_polars(theirs)) == repr(ours)


def test_a_time_that_its_zone_leaves_out_is_refused():
    """Polars refuses it where it is typed, or where it is computed."""
    with pytest.raises((UnsupportedOperation, pl.exceptions.ComputeError)) as caught:
        read_polars(dt.datetime(2024, 3, 31, 2, 30, tzinfo=_BERLIN) < T)
    assert pl.__version__ >= "1.31" or type(caught.value) is UnsupportedOperation
