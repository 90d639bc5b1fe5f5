"""Calls that are refused, by what is wrong with them:
their messages are part of what people read.
"""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

import dpframe as dp
from golden.tables import HOMES, PLAIN, SHOPS, VISITS

Call = Callable[[Any, Any], Any]  # of the protected frame and the page
c = dp.col
KEYS = {"keys": list(HOMES), "max_groups": 1}

REFUSALS: Mapping[str, Mapping[str, Call]] = {
    "whose privacy": {
        "no unit": lambda f, p: PLAIN.dp(),
        "an unknown unit": lambda f, p: PLAIN.dp(unit="usr"),
        "a unit named twice": lambda f, p: PLAIN.dp(unit=("user", "user")),
        "rows below 1": lambda f, p: PLAIN.dp(unit=dp.Rows(0)),
        "no relation": lambda f, p: PLAIN.dp(unit="user", neighbors="swap"),
        "no budget": lambda f, p: dp.protect(PLAIN, unit="user", budget=1.0),
        "no table": lambda f, p: dp.protect([1, 2], unit="user"),
        "a path": lambda f, p: dp.protect("visits.csv", unit="user"),
        "a database": lambda f, p: dp.protect(sqlite3.connect(":memory:"), unit="user"),
        "protected already": lambda f, p: dp.protect(f, unit="user"),
        "no default budget": lambda f, p: PLAIN.dp(unit="user").count_units().release(epsilon=1.0),
        "a series without identifiers": lambda f, p: PLAIN["age"].dp(unit="user"),
    },
    "missing limits": {
        "count": lambda f, p: f.count().release(epsilon=0.1),
        "sum": lambda f, p: f.sum("spend", bounds=(0, 1)).release(epsilon=0.1),
        "mean": lambda f, p: f.mean("spend", bounds=(0, 1)).sensitivity,
        "groups": lambda f, p: f.group_by("home", keys=["Bonn"]).count_units().release(epsilon=0.1),
        "rows per group": lambda f, p: f.group_by("home", **KEYS).count().release(epsilon=0.1),
        "groups of keys found": lambda f, p: (
            f.group_by("home").count_units().release(epsilon=0.1, delta=1e-9)
        ),
        "crosstab": lambda f, p: f.crosstab("home", "member", keys={"home": ["Bonn"]}).release(
            epsilon=0.1
        ),
        "histogram": lambda f, p: f.histogram("age", bins=[0, 50, 100]).release(epsilon=0.1),
        "marginals": lambda f, p: f.marginals(["member"], "1-way"),
        "different values": lambda f, p: f.n_unique("shop").release(epsilon=0.1),
        "several": lambda f, p: f.agg(n=dp.count(), m=dp.median("age", bounds=(0, 9))).accuracy(
            epsilon=0.1
        ),
    },
    "missing bounds": {
        "sum": lambda f, p: f.sum("spend", max_rows=3).release(epsilon=0.1),
        "mean": lambda f, p: f.mean("spend", max_rows=3).release(epsilon=0.1),
        "var": lambda f, p: f.group_by("home", **KEYS).var("spend").release(epsilon=0.1),
        "median": lambda f, p: f.median("when", max_rows=3).release(epsilon=0.1),
        "one side": lambda f, p: f.clip("spend", 0).sum("spend", max_rows=3).release(epsilon=0.1),
        "in the wrong order": lambda f, p: f.sum("spend", bounds=(9, 1), max_rows=3),
        "infinite": lambda f, p: f.sum("spend", bounds=(0, float("inf")), max_rows=3),
        "of another type": lambda f, p: f.sum(
            "spend", bounds=(dt.date(2020, 1, 1), dt.date(2021, 1, 1)), max_rows=3
        ),
        "both kinds": lambda f, p: f.sum("spend", bounds=(0, 1), unit_bounds=(0, 1), max_rows=3),
        "one number": lambda f, p: f.sum("spend", bounds=7, max_rows=3),
        "the word auto": lambda f, p: f.sum("spend", bounds="auto", max_rows=3),
        "scaled bounds": lambda f, p: f.sum("spend", bounds=dp.Auto(scaled=False), max_rows=3),
        "chosen totals": lambda f, p: f.sum("spend", unit_bounds=dp.Auto(), max_rows=3),
        "clip with auto": lambda f, p: f.clip("spend", dp.Auto(), 9),
    },
    "columns": {
        "unknown": lambda f, p: f.sum("spent", bounds=(0, 1), max_rows=3),
        "unknown key": lambda f, p: f.group_by("hom", max_groups=1),
        "values for columns": lambda f, p: f.select("Aachen", "Bonn", "Kiel"),
        "text has no sum": lambda f, p: f.sum("home", bounds=(0, 1), max_rows=3),
        "a time has no sum": lambda f, p: f.sum("when", max_rows=3),
        "the unit's column rewritten": lambda f, p: f.with_columns(user=c("age")),
        "a text that is the name of a column": lambda f, p: f.with_columns(years="age"),
        "the unit's column as a key": lambda f, p: (
            f.group_by("user", max_groups=1).count_units().release(epsilon=0.1, delta=1e-9)
        ),
        "several to choose from": lambda f, p: f.mean(bounds=(0, 1), max_rows=1),
        "no name": lambda f, p: f.mean(7, bounds=(0, 1), max_rows=1),
        "a name twice": lambda f, p: f.rename({"home": "site"}),
        "text and numbers": lambda f, p: f.filter(c("home") > 3),
        "no condition": lambda f, p: f.filter(c("age")),
        "a text as a condition": lambda f, p: f.filter("age > 3"),
        "arithmetic with text": lambda f, p: f.with_columns(x=c("home") * 2),
        "a method without brackets": lambda f, p: f.with_columns(month=c("day").dt.month),
        "a function": lambda f, p: f.with_columns(double=lambda row: row.age * 2),
        "a part of a time": lambda f, p: f.with_columns(month=c("day").month()),
        "no brackets": lambda f, p: f.filter((c("home") == "Bonn") & c("age") > 3),
        "no brackets after a tilde": lambda f, p: f.filter(~c("home") == "Bonn"),
        "truth of an expression": lambda f, p: f.filter(c("age") > 3 and c("age") < 9),
        "a cast to nothing": lambda f, p: f.cast("age", "number"),
        "a fill of another type": lambda f, p: f.fill_null("spend", "none"),
        "edges in the wrong order": lambda f, p: f.cut("age", [9, 3]),
        "labels that do not fit": lambda f, p: f.cut("age", [1, 2, 3], labels=["one"]),
        "bins of text": lambda f, p: f.histogram("home", bins=[0, 1], max_rows=1),
        "neither bins nor keys": lambda f, p: f.histogram("age", max_rows=1),
    },
    "prices": {
        "none": lambda f, p: f.count_units().release(),
        "zero": lambda f, p: f.count_units().release(epsilon=0),
        "negative": lambda f, p: f.count_units().release(epsilon=-1),
        "infinite": lambda f, p: f.count_units().release(epsilon=float("inf")),
        "a text": lambda f, p: f.count_units().release(epsilon="much"),
        "rho and epsilon": lambda f, p: f.count_units().release(epsilon=1, rho=1),
        "rho from epsilon": lambda f, p: f.count_units().release(rho=0.1),
        "delta of 1": lambda f, p: f.count_units().release(epsilon=0.1, delta=1.0),
        "keys found without delta": lambda f, p: (
            f.group_by("home", max_groups=1).count_units().release(epsilon=0.1)
        ),
        "gaussian without delta": lambda f, p: f.count_units().release(
            epsilon=0.1, noise="gaussian"
        ),
        "no noise": lambda f, p: f.count_units().release(epsilon=0.1, noise="uniform"),
        "too much": lambda f, p: f.count_units().release(epsilon=1.5),
        "delta that the budget has not": lambda f, p: (
            f.group_by("home", max_groups=1).count_units().release(epsilon=0.1, delta=1e-6)
        ),
        "ci of 1": lambda f, p: f.count_units().release(epsilon=0.1, ci=1),
        "accuracy without a price": lambda f, p: f.count_units().accuracy(),
        "alpha of 2": lambda f, p: f.count_units().accuracy(epsilon=1, alpha=2),
        "rows below 1": lambda f, p: f.mean("age", bounds=(0, 1), max_rows=1).accuracy(
            epsilon=1, assume_rows=0
        ),
        "an error of 0": lambda f, p: f.count_units().epsilon_for(error=0),
        "an error of no column": lambda f, p: f.count_units().epsilon_for(error=1, column="n"),
        "an error that depends on rows": lambda f, p: f.mean(
            "age", bounds=(0, 9), max_rows=1
        ).epsilon_for(error=1),
        "a name that is empty": lambda f, p: f.count_units().release(epsilon=0.1, name=" "),
        "refresh without a name": lambda f, p: f.count_units().release(epsilon=0.1, refresh=True),
        "a share of 0": lambda f, p: dp.count(share=0),
        "a budget of nothing": lambda f, p: dp.Budget(),
        "a budget of both": lambda f, p: dp.Budget(epsilon=1, rho=1),
        "no accountant": lambda f, p: dp.Budget(epsilon=1, accountant="rdp"),
        "a plan of nothing": lambda f, p: f.budget.plan([], epsilon=1),
        "a plan of tables": lambda f, p: f.budget.plan([PLAIN], epsilon=1),
        "a plan with too few shares": lambda f, p: f.budget.plan(
            [f.count_units()] * 2, epsilon=0.1, shares=[1]
        ),
        "a plan of another budget": lambda f, p: dp.Budget(epsilon=1).plan(
            [f.count_units()], epsilon=0.1
        ),
    },
    "questions": {
        "no aggregate": lambda f, p: f.agg(max_rows=1),
        "an aggregate without a name": lambda f, p: f.agg(5, max_rows=1),
        "a price in agg": lambda f, p: f.agg(n=dp.count(), epsilon=1.0, max_rows=1),
        "no aggregate at all": lambda f, p: f.agg(n="count", max_rows=1),
        "a rank of 2": lambda f, p: f.quantile("age", 2, bounds=(0, 1), max_rows=1),
        "ranks twice": lambda f, p: f.quantile("age", [0.5, 0.5], bounds=(0, 1), max_rows=1),
        "no listed values": lambda f, p: f.mode("home", max_rows=1),
        "limits on listed values": lambda f, p: f.top_k("shop", 2, keys=list(SHOPS), max_groups=1),
        "more than are listed": lambda f, p: f.top_k("shop", 9, keys=list(SHOPS), max_rows=1),
        "first outside of per_unit": lambda f, p: f.agg(
            x=dp.first("age", by="when"), max_rows=1
        ).release(epsilon=0.1),
        "median of a unit": lambda f, p: f.per_unit(x=dp.median("age", bounds=(0, 1))),
        "keys twice": lambda f, p: f.group_by("home", keys=["Bonn", "Bonn"], max_groups=1),
        "keys that are one text": lambda f, p: f.group_by("home", keys="Bonn", max_groups=1),
        "keys of another type": lambda f, p: f.group_by("age", keys=["Bonn"], max_groups=1),
        "no keys": lambda f, p: f.group_by("home", keys=[], max_groups=1),
        "listed keys alone": lambda f, p: f.group_by("home", **KEYS).keys(),
        "other that is listed": lambda f, p: f.group_by("home", **KEYS, other="Bonn").count_units(),
        "a limit below 1": lambda f, p: f.count(max_rows=0),
        "a limit of a half": lambda f, p: f.count(max_rows=0.5),
        "limits that are no Auto": lambda f, p: f.count(limits=3),
        "Auto as a limit": lambda f, p: f.count(max_rows=dp.Auto()),
        "all of the price for limits": lambda f, p: dp.Auto(1),
        "sensitivity of what is not chosen": lambda f, p: f.count(limits=dp.Auto()).sensitivity,
        "margins of keys found": lambda f, p: f.crosstab(
            "home", "level", max_groups=1, margins=True
        ),
        "parts of means": lambda f, p: f.crosstab(
            "home",
            "member",
            "age",
            "mean",
            bounds=(0, 9),
            keys={"home": ["Bonn"]},
            normalize=True,
            max_rows=1,
        ),
        "margins of medians": lambda f, p: f.crosstab(
            "home",
            "member",
            "age",
            "median",
            bounds=(0, 9),
            keys={"home": ["Bonn"]},
            margins=True,
            max_rows=1,
        ),
        "margins of people": lambda f, p: f.crosstab(
            "home",
            "member",
            aggfunc="count_units",
            keys={"home": ["Bonn", "Kiel"]},
            margins=True,
            max_groups=2,
        ),
        "subtotals of one key": lambda f, p: f.crosstab(
            "home", "member", margins=True, subtotals=True, max_rows=1
        ),
        "margins of no kind": lambda f, p: f.crosstab("home", "member", margins="some", max_rows=1),
        "marginals without delta": lambda f, p: f.marginals(
            ["member"], "1-way", max_rows=1
        ).release(epsilon=0.1),
        "marginals without keys": lambda f, p: f.marginals(["home"], "1-way", max_rows=1),
        "marginals of no workload": lambda f, p: f.marginals(["member"], "three", max_rows=1),
        "partition under replace": lambda f, p: PLAIN.dp(
            unit="user", budget=f.budget, neighbors="replace"
        ).partition("home", keys=["Bonn"]),
        "tune with Rows": lambda f, p: (
            PLAIN.dp(unit=dp.Rows(2), budget=f.budget).count().tune({"max_rows": [1]}, epsilon=0.1)
        ),
        "tune of no limit": lambda f, p: f.count(max_rows=1).tune({"rows": [1]}, epsilon=0.1),
        "join with a column of the same name": lambda f, p: f.join(
            {"home": ["Bonn"], "age": [1]}, on="home"
        ),
        "join on nothing": lambda f, p: f.join({"home": ["Bonn"]}, on="town"),
        "an outer join": lambda f, p: f.join(
            {"home": ["Bonn"], "sea": [True]}, on="home", how="outer"
        ),
        "concat of one budget and another": lambda f, p: dp.concat(
            [f, PLAIN.dp(unit="user", budget=dp.Budget(epsilon=1))]
        ),
        "concat of different columns": lambda f, p: dp.concat([f, f.drop("age")]),
        "an average per unit without columns": lambda f, p: f.per_unit(),
    },
    "habits of pandas and Polars": {
        "a column": lambda f, p: f["age"],
        "a condition": lambda f, p: f[c("age") > 3],
        "columns": lambda f, p: f[["age", "home"]],
        "head": lambda f, p: f.head(),
        "length": lambda f, p: f.shape,
        "an attribute": lambda f, p: f.age,
        "misspelt": lambda f, p: f.cuont(),
        "assign": lambda f, p: f.assign(x=1),
        "describe": lambda f, p: f.describe(),
        "value_counts": lambda f, p: f.value_counts("home"),
        "a group": lambda f, p: f.group_by("home", **KEYS)["age"],
        "a loop over groups": lambda f, p: list(f.group_by("home", **KEYS)),
        "apply": lambda f, p: f.group_by("home", **KEYS).apply(len),
        "a result of a query": lambda f, p: f.count_units().value,
        "a column of a release": lambda f, p: f.count_units().release(epsilon=0.01)["count_units"],
        "one value of many": lambda f, p: (
            f.histogram("home", keys=["Bonn"], max_rows=1).release(epsilon=0.01).value
        ),
        "in the module": lambda f, p: dp.average("age"),
        "in the accessor": lambda f, p: PLAIN.dp["age"],
        "a copy": lambda f, p: pickle.dumps(f),
        "a copy of a query": lambda f, p: copy.copy(f.count_units()),
        "a copy of a budget": lambda f, p: pickle.dumps(f.budget),
        "a plot of one number": lambda f, p: f.count_units().release(epsilon=0.01).plot(),
        "a plot of several numbers": lambda f, p: (
            f.quantile("age", [0.1, 0.9], bounds=(0, 9), max_rows=1).release(epsilon=0.01).plot()
        ),
        "a plot of a matrix": lambda f, p: (
            f.corr(["age", "spend"], {"age": (0, 9), "spend": (0, 9)}, max_rows=1)
            .release(epsilon=0.01)
            .plot()
        ),
        "a regression on no column": lambda f, p: f.ols(
            y="spend", x="agee", bounds={"spend": (0, 9), "age": (0, 9)}, max_rows=1
        ),
    },
    "wrong calls": {
        "sum without a column": lambda f, p: dp.sum(),
        "sum with too much": lambda f, p: f.sum("age", bound=(0, 1)),
        "release with a word": lambda f, p: f.count_units().release(eps=0.1),
        "group_by with a limit of no name": lambda f, p: f.group_by("home", max_group=1),
        "budget with a word": lambda f, p: dp.Budget(eps=1),
        "clip without a column": lambda f, p: f.clip(),
        "protect without a table": lambda f, p: dp.protect(),
    },
    "what a release cannot": {
        "nothing below 0": lambda f, p: (
            f.mean("age", bounds=(0, 9), max_rows=1).release(epsilon=0.01).nonnegative()
        ),
        "nothing to suppress by": lambda f, p: (
            f.mode("shop", keys=list(SHOPS), max_rows=1).release(epsilon=0.01).suppress(3)
        ),
        "ci of a crosstab": lambda f, p: (
            f.crosstab("home", "member", keys={"home": ["Bonn"]}, max_rows=1)
            .release(epsilon=0.01)
            .with_ci()
        ),
        "ci of a quantile that was not paid": lambda f, p: (
            f.median("age", bounds=(0, 9), max_rows=1).release(epsilon=0.01).with_ci()
        ),
        "a chart of no column": lambda f, p: (
            f.histogram("home", keys=["Bonn"], max_rows=1).release(epsilon=0.01).plot("x")
        ),
        "a durations' sum without bounds": lambda f, p: (
            dp.protect(VISITS, unit="user", budget=f.budget)
            .sum("stay", max_rows=1)
            .release(epsilon=0.01)
        ),
        "binary columns": lambda f, p: (
            dp.protect(pl.DataFrame({"user": [1], "raw": [b"x"]}), unit="user", budget=f.budget)
            .n_unique("raw", max_rows=1)
            .release(epsilon=0.01)
        ),
    },
}
