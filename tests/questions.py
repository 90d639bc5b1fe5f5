"""A table with what types can hold, and questions about it that every
engine answers alike, or refuses.

No choice of groups by hash is at stake in them, since each engine has its own hash: limits are
above what units have, or there are as many groups as keys.
"""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from functools import cache

import numpy as np
import polars as pl

import dpframe as dp
from dpframe import engine
from dpframe.api import Query
from dpframe.plan import Covers
from inside import question_of, step_of
from statistics_table import shapes

INF, NAN = float("inf"), float("nan")
DAY, TIME = dt.date, dt.datetime
CITIES, DAYS = (
    ["Aachen", "Bonn", "Düren", ""],
    [DAY(1969, 12, 31), DAY(2020, 2, 29), DAY(2021, 1, 1)],
)
_REALS = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    1e300,
    -1e300,
    1e-300,
    INF,
    -INF,
    NAN,
    None,
    127.5,
    -129.0,
    2.0**63,
]
_WHOLE = [0, 1, -1, 5, -7, 127, -128, 2**40 + 3, -(2**40) - 3, 2**63 - 1, -(2**63), None]
_TEXTS = [
    "5",
    "-3",
    "+7",
    " 5",
    "5.5",
    "1e3",
    "",
    "abc",
    "2020-02-29",
    "2020-02-30",
    "2020-02-29 01:02:03",
    None,
]
_TEXTS += [
    "2020-02-29T23:59:59.999999",
    "9223372036854775808",
    "Übung",
    "x y",
    "inf",
    "NaN",
    "1_000",
    "0x10",
    ".5",
]
_TIMES = [
    TIME(1969, 12, 31, 23, 59, 59, 999_999),
    TIME(2020, 2, 29, 1, 2, 3, 4),
    TIME(2020, 7, 1),
    None,
]
_TIMES += [TIME(1, 1, 1), TIME(9999, 12, 31, 23, 59, 59), TIME(2021, 3, 28, 2, 30)]
SCHEMA = {
    "u": pl.Int64,
    "w": pl.String,
    "f": pl.Float64,
    "a": pl.Int8,
    "i": pl.Int64,
    "x": pl.Float64,
    "y": pl.Float32,
    "d": pl.Decimal(10, 2),
    "yes": pl.Boolean,
    "city": pl.String,
    "s": pl.String,
    "day": pl.Date,
    "time": pl.Datetime("us"),
    "milli": pl.Datetime("ms"),
    "zone": pl.Datetime("us", "Europe/Berlin"),
    "nano": pl.Datetime("ns"),
    "long": pl.Duration("us"),
    "n": pl.Int32,
    "q0": pl.Int32,
}


def table(seed: int = 1, units: int = 9) -> pl.DataFrame:
    """Rows of a few units, and of nobody."""
    rng, rows = random.Random(seed), []
    for unit in [*range(units), None]:
        for _ in range(rng.choice([1, 2, 3, 8])):
            time = rng.choice(_TIMES)
            rows.append(
                {
                    "u": unit,
                    "w": None if unit is None else f"w{unit % 3}",
                    "f": rng.choice([0.0, -0.0, 1.5, NAN, INF, None]),
                    "a": rng.choice([*range(-3, 9), 127, -128, None]),
                    "i": rng.choice(_WHOLE),
                    "x": rng.choice([*_REALS, rng.gauss(0, 5), rng.gauss(0, 5)]),
                    "y": rng.choice([0.1, 3.5, INF, NAN, None, -2.25]),
                    "d": rng.choice([Decimal("1.50"), Decimal("-7.25"), Decimal("0.01"), None]),
                    "yes": rng.choice([True, False, None]),
                    "city": rng.choice([*CITIES, None]),
                    "s": rng.choice(_TEXTS),
                    "day": rng.choice([*DAYS, DAY(1, 1, 1), DAY(9999, 12, 31), None]),
                    "time": time,
                    "milli": None
                    if time is None
                    else time.replace(microsecond=time.microsecond // 1000 * 1000),
                    "zone": None
                    if time is None or time.year in (1, 9999) or time.month == 3
                    else time,
                    "nano": None if time is None or time.year in (1, 9999) else time,
                    "long": rng.choice([dt.timedelta(1), dt.timedelta(seconds=-3), None]),
                    "n": rng.randint(0, 3),
                    "q0": rng.randint(0, 3),
                }
            )
    naive = {**SCHEMA, "zone": pl.Datetime("us")}
    return pl.DataFrame(rows, naive).with_columns(
        pl.col("zone").dt.replace_time_zone("Europe/Berlin")
    )


TABLE = table()
c = dp.col


def _results(**columns):
    """A question about every value of some row expressions, together."""

    def ask(f):
        made = f.with_columns(**columns)
        asked = {}
        for name in columns:
            dtype = step_of(made).table.columns[name].domain.dtype
            bounds = {"bounds": (-(2**62), 2**62) if dtype.is_integer() else (-1000, 1000.5)}
            asked[f"{name}_n"] = dp.count(name)
            asked[f"{name}_s"] = dp.sum(name, **(bounds if dtype.is_numeric() else {}))
        return made.agg(max_rows=99, **asked)

    return ask


def _texts(expr):
    return lambda f: f.with_columns(r=expr).group_by("r", max_groups=99).agg(n=dp.count_units())


def _when(condition, otherwise):
    return dp.when(condition).then(otherwise).otherwise(c("x"))


_HALF = dt.datetime(2020, 2, 29, 1, 2, 3, 4, tzinfo=dt.UTC)
_REGIONS = {
    "city": ["Bonn", "Düren", None, "Nowhere"],
    "area": [1.5, 2.5, 3.5, 4.5],
    "since": [DAY(2020, 1, 1), None, DAY(1, 1, 1), DAY(2000, 1, 1)],
    "sea": [True, False, None, True],
}
_ALL = {"max_groups": 99, "max_rows_per_group": 99}


def _grouped(**keys):
    return lambda f: f.group_by(*keys, keys=keys, max_groups=99, max_rows_per_group=2).agg(
        n=dp.count(),
        units=dp.count_units(),
        s=dp.sum("a", bounds=(-3, 10)),
        t=dp.sum("x", bounds=(-2.5, 7)),
    )


AREAS = {
    "Row expressions: arithmetic, comparison, logic, text, calendar": {
        "arithmetic": _results(
            a1=c("i") + c("a"),
            a2=c("i") * c("a"),
            a3=c("i") - c("i"),
            a4=c("x") + c("a"),
            a5=c("x") * c("x"),
            a6=c("x") / c("a"),
            a7=c("a") / c("a"),
            a8=-c("i"),
            a9=c("i").abs(),
            a10=-c("x"),
            a11=c("x").abs(),
            a12=c("d") + c("y"),
        ),
        "division": _results(
            b1=c("i") // 3,
            b2=c("i") % 3,
            b3=c("i") // (2**33),
            b4=c("i") % (2**61),
            b5=c("a") // 7,
            b6=c("i") // 1_000_003,
            b7=c("i") % 1_000_003,
            b8=c("i") // 1,
        ),
        "rounding": _results(
            d1=c("x").floor(), d2=c("x").ceil(), d3=c("x").sqrt(), d4=c("d").floor()
        ),
        "functions": _results(
            d5=c("x").log(),
            d6=c("x").log1p(),
            d7=c("x").exp(),
            d8=c("x").round(1),
            d9=c("x") ** 3,
            d10=c("x").sign(),
            d11=c("i") ** 2,
        ),
        "comparison": _results(
            e1=c("x") > 0.5,
            e2=c("x") == 0,
            e3=c("i") >= c("a"),
            e4=c("city") < "Bonn",
            e5=c("day") <= DAYS[1],
            e6=c("time") == _TIMES[1],
            e7=c("milli") < c("time"),
            e8=c("a") != 5,
            e9=c("d") == 1.5,
            e10=c("yes") == True,  # noqa: E712
            e11=c("y") < c("x"),
            e12=c("i") == 2**63 - 1,
        ),
        "logic": _results(
            g1=(c("a") > 0) & c("yes"),
            g2=(c("a") > 0) | c("yes"),
            g3=~c("yes"),
            g4=c("x").is_null(),
            g5=c("a").is_in([1, 5, 2**62]),
            g6=c("city").is_in(["Bonn", ""]),
            g7=c("x").is_in([0, 0.5, 7]),
            g8=c("day").is_in(DAYS[:2]),
            g9=c("time").is_in([_TIMES[1], _TIMES[2]]),
            g10=c("a").is_in([0.5]),
        ),
        "case": _results(
            h1=_when(c("yes"), c("a")),
            h2=_when(c("a") > 3, 0.5),
            h3=dp.when(c("x") > 0).then(c("i")),
            h4=dp.when(c("yes")).then(1).otherwise(None),
        ),
        "text": _results(
            j1=c("city").str.len_chars(),
            j2=c("s").str.contains("5"),
            j3=c("s").str.starts_with("2020"),
            j4=c("city").str.ends_with("n"),
            j5=c("s").str.contains(".", literal=True),
        ),
        "text made": _texts(c("city").str.to_uppercase().str.head(3)),
        "text pieces": _texts(c("s").str.split("-").list.get(1)),
        "text replaced": _texts(c("city").str.replace_all("n", "nn").str.slice(1, 4)),
        "text small": _texts(c("s").str.to_lowercase()),
        "text joined and stripped": _texts(
            dp.concat_str("city", c("s").str.strip_chars("5 "), separator="-")
        ),
        "values replaced": _texts(
            dp.coalesce(c("city").replace({"": "none"}), c("w")).replace_strict({"Bonn": "B"})
        ),
        "pattern found": _results(l1=c("s").str.contains("^[+-]?[0-9]+$|[xX]", regex=True)),
        "matches of a pattern": _results(
            n1=c("s").str.extract("([0-9]+)-", 1).cast("int64"),
            n2=c("s").str.count_matches("[0-9]", regex=True),
            n3=c("s").str.replace("[^0-9]", "", regex=True).str.len_chars(),
            n4=c("s").str.replace_all("[0-9]+", "12", regex=True).str.len_chars(),
        ),
        "matches of alternatives": _results(v1=c("s").str.extract("0|0x", 0).str.len_chars()),
        "calendar": _results(
            k1=c("day").dt.year(),
            k2=c("day").dt.month(),
            k3=c("day").dt.day(),
            k4=c("day").dt.weekday(),
            k5=c("day").dt.ordinal_day(),
            k6=c("time").dt.year(),
            k7=c("time").dt.hour(),
            k8=c("time").dt.minute(),
            k9=c("milli").dt.weekday(),
            k10=c("time").dt.ordinal_day(),
            k11=c("time").dt.week(),
            k12=c("day").dt.quarter(),
            k13=c("time").dt.truncate("1q").dt.ordinal_day(),
            k14=c("time").dt.date().dt.month_start().dt.weekday(),
        ),
        "time between, later and shorter": _results(
            z1=(c("time") - c("day").cast("datetime")).dt.total_hours(),
            z2=(c("day") + dp.duration(days=3)).dt.offset_by("1mo").dt.ordinal_day(),
            z3=c("time").dt.offset_by("-90m").dt.truncate("2w").dt.month_end().dt.second(),
            z4=c("s").str.to_date("%Y-%m-%d").dt.day(),
        ),
    },
    "Steps: filter, clip, cast, cut, fill_null, drop_nulls": {
        "casts": _results(
            m1=c("x").cast("int8"),
            m2=c("x").cast("int64"),
            m3=c("i").cast("int8"),
            m4=c("i").cast("uint8"),
            m5=c("a").cast("float64"),
            m6=c("x").cast("float32"),
            m7=c("a").cast("bool"),
            m8=c("yes").cast("int32"),
            m9=c("d").cast("int16"),
            m10=c("i").cast("float32"),
        ),
        "texts parsed": _results(
            o1=c("s").cast("int64"),
            o2=c("s").cast("int8"),
            o3=c("s").cast("float64"),
            o4=c("s").cast("date").dt.day(),
            o5=c("s").cast("datetime").dt.hour(),
        ),
        "texts of values": _texts(c("day").cast("str")),
        "texts of numbers": _texts(c("i").cast("str")),
        "times cast": _results(
            p1=c("time").cast("date").dt.day(),
            p2=c("day").cast("datetime").dt.year(),
            p3=c("time").cast("date").is_null(),
        ),
        "filter": lambda f: (
            f.filter(c("x") > -1).filter(c("yes") | (c("city") == "Bonn")).count(max_rows=99)
        ),
        "filter constant": lambda f: f.filter(dp.lit(True)).count(max_rows=99),
        "clip": lambda f: (
            f.clip("x", -3, 10.5)
            .clip("i", -5, None)
            .clip("day", DAYS[1], None)
            .clip("time", None, _TIMES[2])
            .agg(
                max_rows=99,
                s=dp.sum("x"),
                t=dp.sum("i", bounds=(-9, 99)),
                m=dp.mean("day", bounds=(DAYS[0], DAYS[2])),
            )
        ),
        "fill": lambda f: (
            f.fill_null(
                {"x": 2.5, "a": 7, "city": "Kiel", "day": DAYS[1], "time": _TIMES[2], "yes": True}
            )
            .group_by("city", max_groups=99, max_rows_per_group=99)
            .agg(
                s=dp.sum("x", bounds=(0, 5)),
                t=dp.sum("a", bounds=(0, 9)),
                n=dp.count("day"),
                y=dp.sum("yes"),
            )
        ),
        "drop": lambda f: f.drop_nulls(["x", "city", "time"]).agg(
            max_rows=99, n=dp.count(), k=dp.count("a")
        ),
        "cut": lambda f: (
            f.cut("x", [-5, 0, 2.5, 10], into="bin", right=False)
            .cut(
                "time", [TIME(1900, 1, 1), TIME(2020, 2, 29, 1, 2, 3), TIME(2021, 1, 1)], into="era"
            )
            .group_by("bin", "era", max_groups=99)
            .count_units()
        ),
        "shape": lambda f: (
            f.rename({"a": "x", "x": "a"})
            .select("a", "x", "n", "q0")
            .sum("x", bounds=(0, 5), max_rows=99)
        ),
    },
    "Keys: listed, Boolean, several, null, found in the data": {
        "city": _grouped(city=[*CITIES, None, "Nowhere"]),
        "flags": _grouped(yes=[True, False, None]),
        "whole": _grouped(a=[0, 5, 127, None]),
        "real": _grouped(x=[0.0, 0.5, 2.5, 1e300, None]),
        "days": _grouped(day=[*DAYS, None]),
        "times": _grouped(time=[t for t in _TIMES if t is not None]),
        "coarse": _grouped(milli=[TIME(2020, 7, 1), None]),
        "two": _grouped(city=["Bonn", "Aachen"], yes=[True, False]),
        "pairs": lambda f: f.group_by(
            "city",
            "day",
            keys=[("Bonn", DAYS[1]), ("Aachen", DAYS[2]), (None, DAYS[0])],
            max_groups=3,
        ).count_units(),
        "nulls": lambda f: f.group_by("city", keys=[None], max_groups=1).count_units(),
        "other": lambda f: f.group_by("city", keys=CITIES[:2], other="(other)", **_ALL).agg(
            n=dp.count(), s=dp.sum("a", bounds=(-3, 10))
        ),
        "other number": lambda f: f.group_by(
            "a", "day", keys=[(5, DAYS[1]), (0, DAYS[2])], other=(-5, None), **_ALL
        ).count(),
        "other cell": lambda f: f.crosstab(
            "city", "yes", keys={"city": [*CITIES[:2], None]}, other=("(other)", None), max_rows=20
        ),
        "found": lambda f: f.group_by("city", "yes", "day", **_ALL).agg(
            n=dp.count(), u=dp.count_units()
        ),
        "found real": lambda f: f.group_by("x", "f", **_ALL).count(),
        "names alike": lambda f: f.group_by("n", "q0", **_ALL).agg(
            s=dp.sum("n", bounds=(0, 3)), t=dp.count("q0")
        ),
        "histogram": lambda f: f.histogram(
            "x", bins=[-5, 0, 2.5, 10], max_groups=3, max_rows_per_group=2
        ),
        "crosstab": lambda f: f.crosstab(
            "city", "yes", keys={"city": CITIES, "yes": [True, False]}, max_rows=20
        ),
    },
    "Limits: rows, groups, rows per group; composite and odd units": {
        "rows": lambda f: f.agg(
            max_rows=2, n=dp.count(), s=dp.sum("a", bounds=(-3, 10)), x=dp.sum("x", bounds=(-1, 1))
        ),
        "all three": lambda f: f.group_by(
            "city", keys=CITIES, max_groups=4, max_rows_per_group=2, max_rows=3
        ).agg(
            n=dp.count(), s=dp.sum("x", bounds=(-3, 10)), i=dp.sum("i", bounds=(-(2**60), 2**60))
        ),
        "of a unit": lambda f: f.group_by("city", keys=CITIES, max_groups=4).agg(
            s=dp.sum("x", unit_bounds=(-5, 20)), i=dp.sum("i", unit_bounds=(0, 100))
        ),
        "bound": lambda f: (
            f.bound(max_rows=3).filter(c("a") > 0).agg(n=dp.count(), u=dp.count_units())
        ),
    },
    "Aggregates: counts, sums, means, variances, quantiles, distinct values": {
        "moments": lambda f: f.agg(
            max_rows=99,
            m=dp.mean("x", bounds=(-3, 10)),
            v=dp.var("a", bounds=(0, 9)),
            s=dp.std("d", bounds=(-9, 9)),
        ),
        "second moments of people": lambda f: _population(
            f.group_by("yes", max_groups=2, max_rows_per_group=3, max_rows=4).agg(
                m=dp.mean("x", bounds=(-3, 10)),
                n=dp.count(),
                s=dp.sum("a", bounds=(0, 9)),
                d=dp.sum("d", bounds=(-9, 9)),
                u=dp.sum("x", unit_bounds=(-5, 20)),
            )
        ),
        "description": lambda f: f.describe(
            ["x", "a", "yes"], {"x": (-3, 10), "a": (0, 9)}, max_rows=5
        ),
        "cubes": lambda f: f.agg(
            max_rows=99,
            **{
                f"{name} {verb}": asked
                for name, bounds in {"x": (-3, 10), "a": (0, 9), "d": (-9, 9)}.items()
                for verb, asked in shapes(name, bounds).items()
            },
        ),
        "pairs": lambda f: f.agg(
            max_rows=99,
            c=dp.cov("x", "a", {"x": (-3, 10), "a": (0, 9)}),
            r=dp.corr("d", "x", {"d": (-9, 9), "x": (-3, 10)}),
            w=dp.mean("x", (-3, 10), weights="a", weight_bounds=(0, 9)),
            s=dp.ratio(dp.sum("x", (-3, 10)), dp.sum("a", (0, 9))),
        ),
        "logarithms": lambda f: f.agg(
            max_rows=99,
            x=dp.geometric_mean("x", bounds=(0.1, 10)),
            a=dp.geometric_mean("a", bounds=(1, 20)),
            d=dp.geometric_mean("d", bounds=(0.5, 9)),
        ),
        "ranks": lambda f: f.group_by("yes", max_groups=2, max_rows_per_group=3).agg(
            q=dp.median("x", bounds=(-3, 10)),
            m=dp.min("a", bounds=(-5, 9)),
            n=dp.quantile("i", 0.9, bounds=(-9, 9)),
        ),
        "trees": lambda f: f.group_by("yes", max_groups=2, max_rows_per_group=3).agg(
            q=dp.quantile("x", [0.1, 0.5, 0.9], bounds=(-3, 10)),
            c=dp.cdf("i", [-2, 0, 5], bounds=(-9, 9)),
            t=dp.cdf("time", [TIME(2020, 1, 1)], bounds=(TIME(2019, 1, 1), TIME(2022, 1, 1))),
        ),
        "distinct": lambda f: f.group_by("yes", max_groups=2, max_rows_per_group=99).agg(
            c=dp.n_unique("city"), d=dp.n_unique("day"), x=dp.n_unique("a")
        ),
        "distinct in all": lambda f: f.agg(
            max_rows=99, c=dp.n_unique("city"), t=dp.n_unique("time")
        ),
        "times": lambda f: f.agg(
            max_rows=5,
            m=dp.mean("day", bounds=(DAYS[0], DAYS[2])),
            t=dp.mean("time", bounds=(TIME(2019, 1, 1), TIME(2022, 1, 1))),
            q=dp.median("time", bounds=(TIME(2019, 1, 1), TIME(2022, 1, 1))),
        ),
    },
    "Joins with public and protected tables, concat, per_unit, partition": {
        "public": lambda f: (
            f.join(_REGIONS, on="city")
            .filter(c("area") > 1)
            .group_by("sea", max_groups=2, max_rows_per_group=99)
            .agg(n=dp.count(), a=dp.sum("area", bounds=(0, 9)), d=dp.count("since"))
        ),
        "public left": lambda f: f.join(_REGIONS, on="city", how="left").agg(
            max_rows=99, n=dp.count(), a=dp.count("area")
        ),
        "itself": lambda f: (
            f.select("u", "a")
            .join(f.select("u", "x").filter(c("x") > 0), on="u")
            .agg(max_rows=99, s=dp.sum("a", bounds=(0, 9)), x=dp.sum("x", bounds=(0, 9)))
        ),
        "concat": lambda f: dp.concat(
            [f.select("u", "a", "city"), f.filter(c("yes")).select("u", "a", "city")]
        ).agg(max_rows=99, n=dp.count(), s=dp.sum("a", bounds=(0, 9)), c=dp.n_unique("city")),
        "features": lambda f: f.per_unit(
            n=dp.count(),
            k=dp.count("x"),
            s=dp.sum("x"),
            b=dp.sum("x", bounds=(-10, 10)),
            i=dp.sum("i"),
            m=dp.mean("a"),
            lo=dp.min("x"),
            hi=dp.max("day"),
            dist=dp.n_unique("city"),
            mi=dp.mean("i"),
        ).agg(
            n=dp.sum("n", bounds=(0, 99)),
            k=dp.sum("k", bounds=(0, 99)),
            s=dp.sum("s", bounds=(-1e6, 1e6)),
            b=dp.sum("b", bounds=(-50, 50)),
            i=dp.sum("i", bounds=(-(2**62), 2**62)),
            m=dp.sum("m", bounds=(-9, 9)),
            lo=dp.sum("lo", bounds=(-9, 9)),
            hi=dp.count("hi"),
            dist=dp.sum("dist", bounds=(0, 9)),
            mi=dp.sum("mi", bounds=(-(2**62), 2**62)),
        ),
        "first and last": lambda f: f.per_unit(
            a=dp.first("a", by="time"), b=dp.last("x", by="day")
        ).agg(a=dp.sum("a", bounds=(0, 9)), b=dp.sum("b", bounds=(-9, 9))),
        "part": lambda f: f.partition("city", keys=["Bonn", "Aachen"], max_groups=2)["Bonn"].sum(
            "a", bounds=(0, 9), max_rows=3
        ),
        "part by day": lambda f: f.partition("day", keys=DAYS, max_groups=3)[DAYS[1]].count(
            max_rows=3
        ),
    },
    "Times with a zone": {
        "zone": _results(
            z1=c("zone") < _HALF,
            z2=c("zone").dt.hour(),
            z3=c("zone").cast("date").dt.day(),
            z4=c("zone").is_in([_HALF]),
        ),
        "zone keys": lambda f: f.group_by("zone", **_ALL).count_units(),
    },
    "Durations": {
        "durations": lambda f: f.sum(
            "long", bounds=(dt.timedelta(0), dt.timedelta(days=2)), max_rows=9
        ),
    },
    "Times in nanoseconds": {
        "nanoseconds": lambda f: f.mean(
            "nano", bounds=(TIME(2019, 1, 1), TIME(2022, 1, 1)), max_rows=9
        ),
    },
}
UNITS = {
    "one": "u",
    "two": ("u", "w"),
    "text": "w",
    "real": "f",
    "truth": "yes",
    "day": "day",
    "time": "time",
}
_POLARS = "dp.protect(pl.from_arrow(table), ...)"
REFUSED = {  # what an engine refuses, with the line to type, which its message must have
    **{(name, "durations"): "EXTRACT(EPOCH FROM x)" for name in ("duckdb", "ibis", "postgres")},
    ("spark", "durations"): "EXTRACT(DAY FROM x)",
    **{(name, "nanoseconds"): "CAST(x AS TIMESTAMP)" for name in ("duckdb", "ibis")},
    **{("postgres", ask): "store times without one" for ask in ("zone", "zone keys")},
    **{
        ("sqlite", ask): "table.mutate(x=table['zone'].cast('timestamp'))"
        for ask in ("zone", "zone keys")
    },
    **{
        ("datafusion", ask): "table.mutate(x=table['zone'].cast('timestamp'))"
        for ask in ("zone", "zone keys")
    },
    **{(name, "matches of alternatives"): _POLARS for name in ("postgres", "spark")},
    ("spark", "matches of a pattern"): _POLARS,
    ("datafusion", "durations"): "table.mutate(x=table['long'].cast('int64'))",
    ("datafusion", "nanoseconds"): "table.mutate(x=table['nano'].cast('timestamp(6)'))",
}
ABSENT = {  # types that an engine does not have at all
    *(("spark", "nanoseconds"), ("postgres", "nanoseconds")),
    *(("sqlite", "nanoseconds"), ("sqlite", "durations")),
}
QUESTIONS = {name: ask for area in AREAS.values() for name, ask in area.items()}


def _population(query):
    """The question with the second moments that intervals for the population need."""
    return Query(question_of(query).covering(Covers.POPULATION), query._budget)


def exact(query, salt=7):
    """Raw totals of a question: for each of its measures, group → integer or integers."""
    found = engine.totals(question_of(query), salt)
    keys = found.keys.rows() if question_of(query).by else [()]
    keys = [tuple(k.isoformat() if isinstance(k, dt.date) else k for k in key) for key in keys]
    assert len(set(keys)) == len(keys)
    names = [paid.names for paid in question_of(query).allotments]
    values = [dict(zip(keys, np.asarray(v).tolist(), strict=True)) for v in found.values]
    return dict(zip(names, values, strict=True))


@cache
def expected(name):
    """A question's totals on Polars."""
    return exact(QUESTIONS[name](protected(TABLE)))


def protected(frame):
    """A table of units "u", with a budget: the parts of a partition must know theirs."""
    return dp.protect(frame, unit="u", budget=dp.Budget(epsilon=1e6, delta=0.1))
