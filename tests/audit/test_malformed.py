"""Malformed calls: every public parameter with every bad value.
All are refused by a DpFrameError, before a row is read and before anything is paid.

A name of a parameter that does not exist is Python's own TypeError, which is raised before any code
here runs.
"""

from __future__ import annotations

import datetime as dt
import tempfile
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from watched import Watched

import dpframe as dp
from dpframe import audit
from dpframe.budget import Loss
from dpframe.errors import DpFrameError
from inside import book_of
from statistics_table import STATISTICS, of

# some of what is accepted warns
pytestmark = pytest.mark.filterwarnings("ignore::dpframe.errors.DpFrameWarning")
TABLE = Watched()
NAN, INF = float("nan"), float("inf")
POOL = [
    *(None, True, False, 0, -1, 1, 3, 2**31, 2**63, 10**400, -(10**400)),
    *(0.5, 1.0, 2.5, -0.5, NAN, INF, -INF, 5e-324, 1.7e308, 1j),
    *(Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1.5"), Fraction(1, 3)),
    *(
        "",
        " ",
        "no such column",
        "city",
        "x",
        "laplace",
        "int64",
        "\x00",
        "\ud800",
        "é" * 300,
        b"x",
        bytearray(b"x"),
    ),
    *(
        (),
        [],
        {},
        set(),
        frozenset({1}),
        (1,),
        (1, 2),
        (2, 1),
        (NAN, 1),
        (None, None),
        (1, 2, 3),
        ("a", "b"),
    ),
    *(["x"], [[]], [None], [object()], [1, "x"], [1, 1], [2, 1], [[1, 2]], [INF], ["\ud800"]),
    *({"x": 1}, {1: 2}, {"x": None}, {"nope": "x"}, {"x": "x"}, {"x": []}, {"x": [1, 2], "y": [1]}),
    *(
        object(),
        object,
        len,
        lambda: 0,
        range(0),
        range(3),
        slice(1),
        Ellipsis,
        NotImplemented,
        iter(()),
    ),
    *(dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.time(1), dt.timedelta(1)),
    *(np.datetime64("NaT", "s"), np.array([]), np.array(["x"]), np.array([1, 2])),
    *(np.nan, np.float64(1), np.int64(3), np.bool_(True)),
    *(pd.NA, pd.NaT, pd.Timestamp("2020-01-01"), pd.Series([1, 2]), pd.DataFrame({"q": [1]})),
    *(pl.Series([1, 2]), pl.DataFrame({"q": [1]}), pl.col("x"), pl.lit(1), pl.Int64, nw.Int64),
    *(
        dp.count(),
        dp.sum("x"),
        dp.col("x"),
        dp.col("no such column"),
        dp.Rows(1),
        dp.Auto(),
        dp.first("x", by="n"),
    ),
]


def frame(**said):
    return dp.protect(TABLE.frame, unit="user", budget=BUDGET, **said)


BUDGET = dp.Budget(epsilon=1e9, delta=0.1)
FRAME = frame()
GROUPS = FRAME.group_by("city", keys=["Bonn"], max_groups=1, max_rows_per_group=1)
QUERY = GROUPS.agg(n=dp.count(), m=dp.mean("x", (0, 9)))
NUMBER = FRAME.sum("x", (0, 9), max_rows=1)
RELEASED = dp.protect(TABLE.rows, unit="user", budget=BUDGET).count_units().release(epsilon=1)
GROUPED = (
    dp.protect(TABLE.rows, unit="user", budget=BUDGET)
    .histogram("x", bins=[0, 9], max_rows=1)
    .release(epsilon=1)
)
MEANS = (
    dp.protect(TABLE.rows, unit="user", budget=BUDGET)
    .group_by("city", keys=["a", "b", "c", "d"], max_rows=1)
    .agg(m=dp.mean("x", bounds=(0, 1)))
    .release(epsilon=1)
)
LOOK = {"title": "A title", "width": 500, "height": 300}
SERIES = BUDGET.series(
    "nights", every="1d", horizon=9, epsilon=1.0, unit_periods=1, on="city", start="2026-01-01"
)
ROWS = {"max_rows": 2}


def _added():
    """The series with a night."""
    SERIES.add(FRAME.count(max_rows=1), "2026-01-01")
    return SERIES


def _resolved(release, by):
    """Mark a release as lost that is pending."""
    budget = dp.Budget(epsilon=1)
    budget.charge(
        Loss.charged(Fraction(1, 2), Fraction(0)),
        "unit 'user', add-remove",
        "count()",
        name="pending",
    )
    budget.resolve(release, by)


LIMITS = ("max_rows", "max_groups", "max_rows_per_group")
OWN = dict.fromkeys(LIMITS, 1)  # limits of one column


POLICY = Path(tempfile.mkdtemp()) / "policy.toml"
POLICY.write_text('unit = "user"\nmax_rows = 2\n[bounds]\nx = [0, 1]\n[keys]\ncity = ["Bonn"]')

# Each call with arguments that are right; every one of them is replaced by every bad value in turn.

PRICE = {"epsilon": 0.1, "delta": 1e-9}
CELLS = {
    "keys": {"city": ["Bonn"], "yes": [True]},
    "max_rows": 1,
    "max_groups": 1,
    "max_rows_per_group": 1,
}
CALLS = {
    "protect": (
        dp.protect,
        {
            "frame": TABLE.frame,
            "unit": "user",
            "budget": BUDGET,
            "neighbors": "replace",
            "data": "January",
        },
    ),
    "protect, declared": (
        frame,
        {
            "min_units": 3,
            "bounds": {"x": (0, 1)},
            "keys": {"city": ["Bonn"]},
            **dict.fromkeys(LIMITS, 1),
        },
    ),
    "protect, of people": (
        lambda people: dp.protect(TABLE.frame, "user", people=people),
        {"people": "users"},
    ),
    "protect, of columns": (
        lambda bounds, keys: frame(bounds={"x": bounds}, keys={"city": keys}),
        {"bounds": (0, 1), "keys": ["Bonn"]},
    ),
    "protect, under a policy": (
        lambda policy: dp.protect(TABLE.frame, policy=policy, budget=BUDGET),
        {"policy": POLICY},
    ),
    "Policy": (dp.Policy, {"path": POLICY}),
    "content_hash": (dp.content_hash, {"path": POLICY, "key": "a key of our team"}),
    "on_release": (lambda callback: dp.on_release(callback)(), {"callback": print}),
    "filter": (lambda condition: FRAME.filter(condition), {"condition": dp.col("x") > 0}),
    "with_columns": (lambda value: FRAME.with_columns(z=value), {"value": 1}),
    "select": (lambda column, more: FRAME.select(column, more), {"column": "x", "more": "city"}),
    "drop": (lambda column: FRAME.drop(column), {"column": "x"}),
    "rename": (FRAME.rename, {"columns": {"x": "z"}}),
    "clip": (FRAME.clip, {"column": "x", "lower": 0, "upper": 1}),
    "fill_null": (FRAME.fill_null, {"column": "x", "value": 0}),
    "drop_nulls": (lambda column: FRAME.drop_nulls(column), {"column": "x"}),
    "cast": (FRAME.cast, {"column": "x", "dtype": "int64"}),
    "cut": (
        FRAME.cut,
        {
            "column": "x",
            "bins": [0, 1, 2],
            "labels": ["a", "b"],
            "right": True,
            "include_lowest": True,
            "into": "z",
        },
    ),
    "bound": (FRAME.bound, {"max_rows": 1, "limits": dp.Auto()}),
    "per_unit": (lambda feature: FRAME.per_unit(z=feature), {"feature": dp.count()}),
    "join": (FRAME.join, {"other": {"city": ["Bonn"], "sea": [True]}, "on": "city", "how": "left"}),
    "partition": (FRAME.partition, {"by": "city", "keys": ["Bonn"], "max_groups": 1}),
    "concat": (dp.concat, {"frames": [FRAME, FRAME]}),
    "set_budget": (dp.set_budget, {"budget": None}),
    "set_memory": (dp.set_memory, {"gib": None}),
    # Questions; those that are statistics follow from their table, below
    "describe": (
        FRAME.describe,
        {
            "columns": ["x", "n"],
            "bounds": {"x": (0, 1), "n": (0, 1)},
            "percentiles": [0.5],
            "max_rows": 1,
        },
    ),
    "describe, chosen": (
        FRAME.describe,
        {"columns": "x", "bounds": dp.Auto(), "limits": dp.Auto()},
    ),
    "agg": (FRAME.agg, {"max_rows": 1, "limits": dp.Auto(), "made": dp.count()}),
    "group_by": (
        lambda by, **rest: FRAME.group_by(by, **rest),
        {"by": "city", "keys": ["Bonn"], "limits": dp.Auto(), **dict.fromkeys(LIMITS, 1)},
    ),
    "group_by, found": (
        lambda by, **rest: FRAME.group_by(by, **rest),
        {"by": "city", "min_units": 3, **dict.fromkeys(LIMITS, 1)},
    ),
    "histogram": (
        FRAME.histogram,
        {
            "column": "x",
            "bins": [0, 1],
            "underflow": True,
            "overflow": True,
            **dict.fromkeys(LIMITS, 1),
        },
    ),
    "histogram of keys": (
        FRAME.histogram,
        {"column": "city", "keys": ["Bonn"], "limits": dp.Auto()},
    ),
    "crosstab": (
        FRAME.crosstab,
        {"index": "city", "columns": "yes", "margins": True, "normalize": "index", **CELLS},
    ),
    "crosstab of sums": (
        FRAME.crosstab,
        {
            "index": "city",
            "columns": "yes",
            "values": "x",
            "aggfunc": "sum",
            "bounds": (0, 1),
            **CELLS,
        },
    ),
    "top_k": (FRAME.top_k, {"column": "city", "k": 1, "keys": ["Bonn", "Kiel"], "max_rows": 1}),
    "top_k of found values": (FRAME.top_k, {"column": "city", "k": 1, **dict.fromkeys(LIMITS, 1)}),
    "marginals": (
        FRAME.marginals,
        {
            "columns": ["city", "yes"],
            "workload": "1-way",
            "keys": {"city": ["Bonn"]},
            "max_rows": 1,
        },
    ),
    "hierarchy": (
        FRAME.hierarchy,
        {
            "columns": ["city", "yes"],
            "keys": [("Bonn", True)],
            "values": "x",
            "aggfunc": "sum",
            "by": {"n": [1]},
            "bounds": (0, 1),
            "shares": {"total": 1, "city": 1, "yes": 1},
            **dict.fromkeys(LIMITS, 1),
        },
    ),
    "synthesize": (
        FRAME.synthesize,
        {
            "columns": ["city", "yes", "x"],
            "rows": 10,
            "workload": "2-way",
            "keys": {"city": ["Bonn"]},
            "bounds": {"x": (0, 9)},
            "bins": None,
            "nulls": ["city"],
            "for_model": "yes",
            "max_rows": 1,
            "per_unit": ["city"],
        },
    ),
    "group_by with others": (
        lambda **said: FRAME.group_by("city", max_groups=1, **said).count_units(),
        {"other": "(other)"},
    ),
    # Groups, and aggregates
    "groups.agg": (GROUPS.agg, {"made": dp.count()}),
    "dp.first": (dp.first, {"column": "x", "by": "n"}),
    "dp.last": (dp.last, {"column": "x", "by": "n"}),
    "dp.Auto": (dp.Auto, {"share": 0.1}),
    "dp.Rows": (dp.Rows, {"max_rows": 1}),
    # Expressions, where they meet a table
    "dp.col": (lambda name: FRAME.filter(dp.col(name) > 0), {"name": "x"}),
    "dp.when": (
        lambda condition, then, otherwise: FRAME.with_columns(
            z=dp.when(condition).then(then).otherwise(otherwise)
        ),
        {"condition": dp.col("yes"), "then": 1, "otherwise": 2},
    ),
    "col.clip": (
        lambda **said: FRAME.with_columns(z=dp.col("x").clip(**said)),
        {"lower": 0, "upper": 1},
    ),
    "col.is_between": (
        lambda **said: FRAME.filter(dp.col("x").is_between(**said)),
        {"lower": 0, "upper": 1},
    ),
    "col.is_in": (lambda values: FRAME.filter(dp.col("n").is_in(values)), {"values": [1, 2]}),
    "col.fill_null": (
        lambda value: FRAME.with_columns(z=dp.col("x").fill_null(value)),
        {"value": 0},
    ),
    "col.cast": (lambda dtype: FRAME.with_columns(z=dp.col("x").cast(dtype)), {"dtype": "int64"}),
    "col.plus": (lambda other: FRAME.with_columns(z=dp.col("x") + other), {"other": 1}),
    "col.times": (lambda other: FRAME.with_columns(z=dp.col("x") * other), {"other": 1}),
    "col.over": (lambda other: FRAME.with_columns(z=dp.col("x") / other), {"other": 1}),
    "col.floordiv": (lambda by: FRAME.with_columns(z=dp.col("n") // by), {"by": 2}),
    "col.mod": (lambda by: FRAME.with_columns(z=dp.col("n") % by), {"by": 2}),
    "col.less": (lambda other: FRAME.filter(dp.col("x") < other), {"other": 1}),
    "col.equal": (lambda other: FRAME.filter(dp.col("city") == other), {"other": "Bonn"}),
    "col.and": (lambda other: FRAME.filter(dp.col("yes") & other), {"other": dp.col("yes")}),
    "str.contains": (
        lambda **said: FRAME.filter(dp.col("city").str.contains(**said)),
        {"pattern": "B", "literal": True},
    ),
    "str.starts_with": (
        lambda prefix: FRAME.filter(dp.col("city").str.starts_with(prefix)),
        {"prefix": "B"},
    ),
    "str.ends_with": (
        lambda suffix: FRAME.filter(dp.col("city").str.ends_with(suffix)),
        {"suffix": "B"},
    ),
    "str.head": (lambda n: FRAME.with_columns(z=dp.col("city").str.head(n)), {"n": 1}),
    # Prices
    "release": (
        QUERY.release,
        {
            **PRICE,
            "noise": "laplace",
            "name": "a name",
            "refresh": True,
            "ci": 0.9,
            "covers": "noise",
            "data": "x",
            "fill": True,
        },
    ),
    "release of a matrix": (
        FRAME.cov(["x", "n"], {"x": (0, 9), "n": (0, 9)}, max_rows=1).release,
        {**PRICE, "noise": "laplace", "name": "a matrix", "refresh": True, "covers": "noise"},
    ),
    "release of a narrowed matrix": (
        FRAME.corr(["x", "n"], {"x": (0, 9), "n": (0, 9)}, max_rows=1, narrow=True).release,
        {
            **PRICE,
            "noise": "laplace",
            "name": "a narrowed matrix",
            "refresh": True,
            "covers": "noise",
        },
    ),
    "release of a regression": (
        FRAME.ols(y="x", x=["n"], bounds={"x": (0, 9), "n": (0, 9)}, max_rows=1).release,
        {
            **PRICE,
            "noise": "laplace",
            "name": "a regression",
            "refresh": True,
            "covers": "population",
        },
    ),
    "release of a narrowed regression": (
        FRAME.ols(
            y="x", x=["n"], bounds={"x": (0, 9), "n": (0, 9)}, max_rows=1, narrow=True
        ).release,
        {**PRICE, "noise": "laplace", "name": "narrowed", "refresh": True, "covers": "population"},
    ),
    "release after a crash": (
        QUERY.release,
        {**PRICE, "name": "another name", "on_pending": "retry"},
    ),
    "release in rho": (NUMBER.release, {"epsilon": 0.1, "rho": None}),
    "accuracy": (
        QUERY.accuracy,
        {**PRICE, "alpha": 0.1, "noise": "laplace", "assume_rows": 9, "ci": 0.9},
    ),
    "plot": (NUMBER.plot, {"column": "x", "epsilon": 0.1}),
    "epsilon_for": (
        NUMBER.epsilon_for,
        {
            "error": 5.0,
            "column": "x",
            "alpha": 0.1,
            "delta": 1e-6,
            "noise": "laplace",
            "assume_rows": 9,
            "ci": 0.9,
        },
    ),
    "tune": (
        lambda **said: QUERY.tune(**{"grid": {"max_rows": [1]}, **said}),
        {"epsilon": 0.1, "at": 1.0, "delta": 1e-6, "noise": "auto"},
    ),
    "check": (NUMBER.check, {"table": TABLE.rows}),
    "exact_totals": (NUMBER.exact_totals, {"table": TABLE.rows}),
    "plan": (
        BUDGET.plan,
        {
            "queries": [NUMBER],
            "epsilon": 0.1,
            "delta": 1e-9,
            "noise": "auto",
            "shares": [1],
            "ci": 0.9,
        },
    ),
    "series": (
        lambda **said: BUDGET.series("s", **said),
        {
            "every": "1d",
            "horizon": 9,
            "epsilon": 1.0,
            "delta": 1e-6,
            "unit_periods": 1,
            "enforce": True,
            "start": "2026-01-01",
            "on": "city",
            "noise": "laplace",
        },
    ),
    "series.add": (
        SERIES.add,
        {"query": FRAME.count(max_rows=1), "period": "2026-01-01", "on_pending": "refuse"},
    ),
    "series.window": (
        lambda length, alpha: _added().window(length, alpha),
        {"length": "7d", "alpha": 0.1},
    ),
    "series.table": (
        lambda window, alpha: _added().table(window, alpha),
        {"window": "7d", "alpha": 0.1},
    ),
    "allocate": (
        BUDGET.allocate,
        {
            "per": "night",
            "nights": 3,
            "epsilon": 0.5,
            "delta": 1e-9,
            "carry": True,
            "start": "2026-01-01",
            "name": "m",
        },
    ),
    "allocate, months": (
        lambda per, periods, zone: BUDGET.allocate(
            per, periods=periods, zone=zone, epsilon=0.5, name="c"
        ),
        {"per": "1mo", "periods": 3, "zone": "Europe/Vienna"},
    ),
    "for_spender": (BUDGET.for_spender, {"spender": "ana"}),
    "Caps": (
        dp.Caps,
        {**dict.fromkeys(["release", "spender", "day", "week", "month"], 1), "zone": "UTC"},
    ),
    "Caps, of δ": (lambda amount: dp.Caps(day={"epsilon": 1, "delta": amount}), {"amount": 1e-9}),
    "resolve": (lambda **said: _resolved(**said), {"release": "pending", "by": "Ada"}),
    "Budget": (dp.Budget, {"epsilon": 1, "delta": 1e-6, "accountant": "basic", "min_units": 1000}),
    "Budget in rho": (dp.Budget, {"rho": 1, "delta": 1e-6}),
    "Budget with caps": (dp.Budget, {"epsilon": 1, "caps": {"day": 1}}),
    # Releases
    "released.accuracy": (RELEASED.accuracy, {"alpha": 0.1}),
    "released.with_ci": (RELEASED.with_ci, {"ci": 0.9, "covers": "noise"}),
    "released.to_sdmx": (
        lambda structure: RELEASED.to_sdmx(structure=structure),
        {"structure": "A:B(1.0)"},
    ),
    "released.suppress": (RELEASED.suppress, {"below": 3}),
    "released.shrink": (MEANS.shrink, {"column": "m"}),
    "released.difference": (
        MEANS.difference,
        {"first": "a", "second": "b", "column": "m", "alpha": 0.1},
    ),
    "released.compare": (MEANS.compare, {"reference": "a", "column": "m", "alpha": 0.1}),
    "released.share": (GROUPED.share, {"column": "count", "alpha": 0.1}),
    "released.rolling": (
        GROUPED.rolling,
        {"window": 2, "column": "count", "on": "x", "alpha": 0.1},
    ),
    "released.diff": (GROUPED.diff, {"periods": 1, "column": "count", "on": "x", "alpha": 0.1}),
    "released.pct_change": (
        GROUPED.pct_change,
        {"periods": 1, "column": "count", "on": "x", "alpha": 0.1},
    ),
    "released.rebase": (
        GROUPED.rebase,
        {"base": "[0, 9]", "to": 1, "column": "count", "on": "x", "alpha": 0.1},
    ),
    "released.round": (GROUPED.round, {"base": 5}),
    "released.plot": (GROUPED.plot, {"column": "count", **LOOK, "sort": "keys", "label": "people"}),
    "released.plot, shaded": (GROUPED.plot, {"kind": "heatmap"}),
    # One line
    "one line": (
        TABLE.frame.dp.sum,
        {
            "column": "x",
            "bounds": (0, 1),
            "max_rows": 1,
            "unit": "user",
            "budget": BUDGET,
            **PRICE,
            "noise": "auto",
        },
    ),
    # Checks
    "audit.neighbours": (
        lambda **said: list(audit.neighbours(**said)),
        {"table": TABLE.rows, "unit": "user"},
    ),
    "audit.audit": (
        lambda **said: audit.audit(len, [1], [], **said),
        {"epsilon": 1, "delta": 0.1, "trials": 4},
    ),
    "audit.check_query": (
        lambda **said: audit.check_query(lambda f: f.count_units(), **said),
        {"universe": TABLE.rows, "unit": "user", "size": 1, "limit": 99},
    ),
}

for _label, _made in STATISTICS.items():
    _own = {"share": 1, **OWN} if _made.limited else {"share": 1}
    CALLS[f"dp.{_label}"] = (getattr(dp, _made.verb), {**_made.arguments, **_own})
for _label, _made in of("frames").items():
    CALLS[_label] = (
        getattr(FRAME, _made.verb),
        {**_made.arguments, **({"max_rows": 1} if _made.limited else {})},
    )
for _label, _made in of("groups").items():
    CALLS[f"groups.{_label}"] = (getattr(GROUPS, _made.verb), dict(_made.arguments))

# What a parameter of this name may be, wherever it stands; of what is not listed, the schema
# decides.


def whole(value):
    return (
        isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 1 <= value < 2**31
    )


def positive(value):
    numeric = isinstance(value, (int, float, np.number, Decimal, Fraction)) and not isinstance(
        value, (bool, np.bool_)
    )
    return numeric and value == value and value > 0 and abs(value) != INF


def pair(value):
    return type(value).__name__ == "Auto" or (len(value) == 2 and value[0] <= value[1])


def prices(value):
    several = isinstance(value, (list, tuple, range)) or len(getattr(value, "shape", ())) == 1
    return (len(value) > 0 and all(map(positive, value))) if several else positive(value)


LAWFUL = {
    **{(name, "epsilon"): prices for name in ("accuracy", "plot")},
    ("dp.Auto", "share"): lambda v: v is None or positive(v),
    **dict.fromkeys(["width", "height", "sort"], lambda v: v is None),
    "title": lambda v: v is None or isinstance(v, str),
    **dict.fromkeys(LIMITS, lambda v: v is None or whole(v)),
    **dict.fromkeys(["share", "epsilon", "rho", "error", "below"], positive),
    **dict.fromkeys(["bounds", "unit_bounds"], lambda v: v is None or pair(v)),
    **dict.fromkeys(
        ["underflow", "overflow", "right", "include_lowest", "refresh", "fill"],
        lambda v: isinstance(v, bool),
    ),
    **dict.fromkeys(["assume_rows", "rho"], lambda v: v is None or positive(v)),
    "policy": lambda v: v is None,
    "path": lambda v: False,
    "key": lambda v: isinstance(v, str) and len(v) >= 16,
    "min_units": lambda v: v is None or whole(v) or (type(v) is int and 1 <= v <= 10**15),
    ("audit.audit", "epsilon"): lambda v: v == 0 or positive(v),
    "delta": lambda v: v is None or v == 0 or (positive(v) and v < 1),
    "alpha": lambda v: positive(v) and v < 1,
    "ddof": lambda v: type(v) is int and v in (0, 1),
    "noise": lambda v: v == "laplace",
    "covers": lambda v: v in ("noise", "population"),
    # None: as the release was asked, and of a rate the population where that is free
    **{
        (name, "covers"): lambda v: v in (None, "noise", "population")
        for name in ("released.with_ci", "release")
    },
    "limits": lambda v: v is None or type(v).__name__ == "Auto",
    "column": lambda v: v is None or isinstance(v, (str, list, tuple, pl.Expr)),
    "name": lambda v: v is None or isinstance(v, str),
    ("allocate", "name"): lambda v: isinstance(v, str),
    "data": lambda v: v is None or isinstance(v, (str, int, dt.date, Path)),
    "on_pending": lambda v: v in ("refuse", "retry"),
    "every": lambda v: v is None or v in ("1d", "day"),
    "horizon": lambda v: v is None or whole(v),
    "unit_periods": whole,
    "enforce": lambda v: isinstance(v, bool),
    ("series", "on"): lambda v: v is None or isinstance(v, str),
    **dict.fromkeys(["start", "period"], lambda v: v is None or isinstance(v, (str, dt.date))),
    **dict.fromkeys(["nights", "periods"], whole),
    **{
        ("Caps", name): lambda v: v is None or positive(v)
        for name in ("release", "spender", "day", "week", "month")
    },
    "amount": lambda v: v is None or v == 0 or (positive(v) and v < 1),
    "zone": lambda v: v is None or v == "UTC",
    "caps": lambda v: v is None,
    "people": lambda v: v is None or isinstance(v, str),
    ("for_spender", "spender"): lambda v: v is None or isinstance(v, str),
    "carry": lambda v: isinstance(v, bool),
    "release": lambda v: v == 2,
    ("resolve", "by"): lambda v: v is None or isinstance(v, str),
    "into": lambda v: v is None or isinstance(v, str),
}


def written():
    """How many lines the book holds.
    `history` would make each of them anew, which is most of the time here.
    """
    return len(book_of(BUDGET).entries())


def outcome(call, said, parameter, value, lawful):
    """ "refused", "accepted", or what is wrong with how a bad value was met."""
    reads, paid = TABLE.reads, written()
    try:
        call(**{**said, parameter: value})
    except DpFrameError as error:
        if error.__cause__ is not None or (TABLE.reads, written()) != (reads, paid):
            return "read, paid or chained"
        return "refused"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:80]}"
    return "accepted" if lawful(value) else "accepted what it should not"


@pytest.mark.parametrize("every", [90, pytest.param(1, marks=pytest.mark.long)])
def test_every_bad_value_of_every_parameter_is_refused_before_anything_is_read_or_paid(
    every, capsys
):
    """Quick is one value of each parameter, another for the next parameter."""
    counted, wrong, turn = Counter(), [], 0
    for name, (call, said) in CALLS.items():
        call(**said)  # right as it stands
        for parameter in said:
            lawful = LAWFUL.get((name, parameter), LAWFUL.get(parameter, lambda v: True))
            turn += 1
            for value in POOL[turn % every :: every]:
                found = outcome(call, said, parameter, value, lawful)
                counted[found] += 1
                if found not in ("refused", "accepted"):
                    wrong.append((name, parameter, repr(value)[:40], found))
    with capsys.disabled():
        print(f"\n  malformed calls: {dict(counted)}")
    assert not wrong, wrong[:20]
    assert counted["refused"] > 20_000 / every
    assert counted["accepted"] < counted["refused"] / 8


def test_a_refusal_leaves_a_ledger_as_it_was(tmp_path):
    budget = dp.Ledger(tmp_path / "study.sqlite").budget("b", epsilon=10, delta=0.1)
    query = dp.protect(TABLE.rows, unit="user", budget=budget).count_units()
    query.release(epsilon=1, name="once")
    before, refused = budget.history(), 0
    for parameter in ("epsilon", "delta", "rho", "noise", "name", "refresh"):
        for value in POOL:
            try:
                query.release(**{"epsilon": 0.1, "name": "once", parameter: value})
            except DpFrameError:
                refused += 1
            assert len(budget.history()) == len(before) or parameter in ("name", "refresh")
            before = budget.history()
    assert refused > 300


def test_what_is_given_in_place_of_a_name_is_not_shown():
    cells = pl.DataFrame({"secret": ["canary-4711"]})
    for name, (call, said) in CALLS.items():
        # values of an expression are typed, and shown
        if name in ("col.is_in", "dp.when", "with_columns"):
            continue
        for parameter in said:
            for value in (cells, cells.to_pandas(), cells["secret"], cells.to_pandas()["secret"]):
                try:
                    call(**{**said, parameter: value})
                except DpFrameError as error:
                    message = str(error)
                    assert "canary-4711" not in message, (name, parameter)


def test_unknown_parameters_are_type_errors():
    for verb in (FRAME.count, FRAME.clip, FRAME.count_units().release):
        with pytest.raises(TypeError):
            verb(no_such_parameter=1)
