"""What the golden run asks, through public names alone:
releases, their prices and words, and what they are written as.

A question that refuses writes its refusal down, so that a price or a unit that something cannot
have is part of the record. `refusals` and `figures` hold the messages and the numbers of the
theory.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pandas as pd
import polars as pl

import dpframe as dp
from dpframe.errors import DpFrameError
from golden.figures import FIGURES
from golden.record import Page, Question, as_json, refusal, rounded
from golden.refusals import REFUSALS
from golden.tables import HOMES, LEVELS, PLAIN, REGIONS, SHOPS, VISITS

QUESTIONS: list[Question] = []
c = dp.col

PURE, APPROXIMATE, CONCENTRATED = {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.05}
HOME = {"keys": list(HOMES), "max_groups": 1, "max_rows_per_group": 5}
SHOP = {"keys": list(SHOPS), "max_groups": 5, "max_rows_per_group": 1}
FOUND = {"max_groups": 1, "max_rows_per_group": 5}
DAYS = (dt.date(2025, 1, 1), dt.date(2025, 12, 31))
TIMES = (dt.datetime(2025, 1, 1), dt.datetime(2026, 1, 1))
STAYS = (dt.timedelta(0), dt.timedelta(hours=6))
CELLS = {"keys": {"home": list(HOMES), "member": [True, False]}, "max_rows": 5}
Ask = Callable[[Any], Any]


# How a question is written down


def released(page: Page, query: Any, price: Mapping[str, Any], *, auto: bool = False) -> Any:
    """Everything that a query shows before and after its release; or its refusal."""
    floats = page.near if auto else page.note
    if not auto:
        page.note("sensitivity", query.sensitivity)
    page.note("explain", str(query.explain()))
    out = query.release(**price)
    page.note("cost", repr(out.cost))
    floats("table", out.to_polars())
    page.note("types", [str(dtype) for dtype in out.to_polars().dtypes])
    floats("noise", out.noise)
    page.near("accuracy", out.accuracy())
    if auto:
        page.note("derivation", str(out.derivation))
        page.near("chosen", str(as_json(rounded(out.report().to_dict().get("chosen", {})))))
    return out


def before(page: Page, query: Any, price: Mapping[str, Any]) -> None:
    """The error to expect, with and without an assumed number of rows."""
    expected = {name: value for name, value in price.items() if name not in ("name", "refresh")}
    page.near("accuracy before", query.accuracy(**expected, assume_rows=60))
    page.near("accuracy before, alpha=0.01", query.accuracy(**expected, alpha=0.01))


def question(
    topic: str,
    name: str,
    ask: Ask,
    price: Mapping[str, Any] = PURE,
    *,
    table: pl.DataFrame = PLAIN,
    unit: Any = "user",
    neighbors: str = "add-remove",
    said: Mapping[str, Any] = MappingProxyType({}),
    everywhere: bool = False,
    auto: bool = False,
    words: bool = False,
    ahead: bool = False,
    versions: tuple[str, ...] = (),
    then: Callable[[Page, Any], None] | None = None,
) -> None:
    """A release of one query, with a budget of its own.

    `said`: what the table declares; `words`: the report is written down too; `ahead`: the accuracy
    before; `then` writes down more.
    """

    def fill(page: Page) -> None:
        limit = {"rho": 1.0, "delta": 1e-3} if "rho" in price else {"epsilon": 10.0, "delta": 1e-3}
        budget = dp.Budget(**limit)
        try:
            frame = dp.protect(
                page.bring(table), unit=unit, budget=budget, neighbors=neighbors, **said
            )
            query = ask(frame)
            if ahead:
                before(page, query, price)
            out = released(page, query, price, auto=auto)
        except DpFrameError as error:
            page.note("refused", refusal(error))
            return
        page.note("left", repr(budget.remaining))
        if words:
            page.note("report", str(out.report()))
        if then is not None:
            then(page, out)

    QUESTIONS.append(Question(topic, name, fill, everywhere, versions))


def written(
    topic: str,
    name: str,
    *,
    everywhere: bool = False,
    versions: tuple[str, ...] = (),
    long: bool = False,
) -> Any:
    """A question that writes its page itself."""

    def registered(fill: Callable[[Page], None]) -> Callable[[Page], None]:
        QUESTIONS.append(Question(topic, name, fill, everywhere, versions, long))
        return fill

    return registered


def visits(page: Page, *, unit: Any = "user", budget: Any = None, **options: Any) -> Any:
    """The protected table, with a large budget where none is given."""
    budget = dp.Budget(epsilon=100.0, delta=1e-2) if budget is None else budget
    return dp.protect(page.bring(PLAIN), unit=unit, budget=budget, **options)


# Every statistic, at every kind of price

STATISTICS: Mapping[str, Any] = {
    "count": dp.count(),
    "count of a column": dp.count("spend"),
    "count_units": dp.count_units(),
    "sum of integers": dp.sum("items", bounds=(0, 12)),
    "sum of floats": dp.sum("spend", bounds=(0, 150)),
    "sum with bounds below and above 0": dp.sum("spend", bounds=(-10.5, 99.5)),
    "sum of units' totals": dp.sum("spend", unit_bounds=(0, 400)),
    "sum of a Boolean": dp.sum("member"),
    "mean": dp.mean("spend", bounds=(0, 150)),
    "mean of integers": dp.mean("age", bounds=(18, 90)),
    "mean of days": dp.mean("day", bounds=DAYS),
    "var": dp.var("spend", bounds=(0, 150)),
    "std, ddof=0": dp.std("items", bounds=(0, 12), ddof=0),
    "skewness": dp.skew("spend", bounds=(0, 150)),
    "geometric mean": dp.geometric_mean("spend", bounds=(1, 150)),
    "median": dp.median("spend", bounds=(0, 150)),
    "quantile 0.9 of integers": dp.quantile("items", 0.9, bounds=(0, 12)),
    "quantile of times": dp.quantile("when", 0.25, bounds=TIMES),
    "min": dp.min("spend", bounds=(0, 150)),
    "max of days": dp.max("day", bounds=DAYS),
    "n_unique": dp.n_unique("items"),
    "mode": dp.mode("shop", keys=list(SHOPS)),
}
EVERYWHERE_ALONE = (
    "count of a column",
    "count_units",
    "sum of floats",
    "mean",
    "std, ddof=0",
    "median",
    "mean of days",
    "geometric mean",
    "skewness",
)
EVERYWHERE_GROUPED = (
    "sum of integers",
    "var",
    "quantile 0.9 of integers",
    "mode",
    "max of days",
    "n_unique",
)


def _alone(aggregate: Any) -> Ask:
    return lambda f: f.agg(max_rows=5, x=aggregate)


def _by_home(aggregate: Any, **groups: Any) -> Ask:
    return lambda f: f.group_by("home", **{**HOME, **groups}).agg(x=aggregate)


for _name, _aggregate in STATISTICS.items():
    question(
        "alone",
        f"{_name}, alone, epsilon",
        _alone(_aggregate),
        everywhere=_name in EVERYWHERE_ALONE,
        ahead=True,
    )
    question(
        "listed",
        f"{_name}, by listed keys, epsilon and delta",
        _by_home(_aggregate),
        APPROXIMATE,
        everywhere=_name in EVERYWHERE_GROUPED,
    )
    question("rho", f"{_name}, by listed keys, rho", _by_home(_aggregate), CONCENTRATED)
    question(
        "replace",
        f"{_name}, alone, neighbors='replace'",
        _alone(_aggregate),
        APPROXIMATE,
        neighbors="replace",
    )
for _name in (
    "count",
    "sum of integers",
    "mean",
    "var",
    "median",
    "n_unique",
    "count_units",
    "mode",
):
    _ways: Sequence[tuple[str, Any]] = (
        ("laplace", APPROXIMATE),
        ("gaussian", APPROXIMATE),
        ("gaussian", CONCENTRATED),
    )
    for _noise, _price in (*_ways, ("laplace", CONCENTRATED)):
        _terms = "rho" if "rho" in _price else "epsilon and delta"
        question(
            "noises",
            f"{_name}, noise={_noise!r}, {_terms}",
            _by_home(STATISTICS[_name]),
            {**_price, "noise": _noise},
        )
question(
    "noises", "gaussian without delta", _by_home(dp.count()), {"epsilon": 1.0, "noise": "gaussian"}
)
question(
    "noises",
    "many groups of one unit, epsilon and delta",
    lambda f: f.group_by("shop", **SHOP).count(),
    APPROXIMATE,
)


# The same questions as verbs of a frame

VERBS: Mapping[str, Ask] = {
    "count()": lambda f: f.count(max_rows=5),
    "count(column)": lambda f: f.count("day", max_rows=3),
    "count_units()": lambda f: f.count_units(),
    "sum()": lambda f: f.clip("spend", 0, 100).sum("spend", max_rows=2),
    "sum(unit_bounds=)": lambda f: f.sum("items", unit_bounds=(0, 30)),
    "mean()": lambda f: f.fill_null("items", 0).mean("items", bounds=(0, 12), max_rows=5),
    "var()": lambda f: f.var("items", bounds=(0, 12), max_rows=5),
    "std()": lambda f: f.std("when", bounds=TIMES, max_rows=5),
    "skew()": lambda f: f.skew("items", bounds=(0, 12), max_rows=5),
    "geometric_mean()": lambda f: f.geometric_mean("items", bounds=(1, 12), max_rows=5),
    "quantile(several)": lambda f: f.quantile(
        "spend", [0.1, 0.5, 0.99], bounds=(0, 150), max_rows=5
    ),
    "cdf()": lambda f: f.cdf("spend", [10, 50, 100], bounds=(0, 150), max_rows=5),
    "median()": lambda f: f.median("age", bounds=(18, 90), max_rows=1),
    "min()": lambda f: f.min("age", bounds=(0, 120), max_rows=5),
    "max()": lambda f: f.max("age", bounds=(0, 120), max_rows=5),
    "mode()": lambda f: f.mode("level", keys=list(LEVELS), max_rows=5),
    "top_k()": lambda f: f.top_k("shop", 3, keys=list(SHOPS), max_rows=5),
    "n_unique()": lambda f: f.n_unique("items", max_rows=5),
    "histogram(bins=)": lambda f: f.histogram("spend", bins=[0, 25, 50, 100], max_rows=5),
    "histogram(underflow=)": lambda f: f.histogram(
        "age", bins=[30, 50, 70], underflow=True, overflow=True, max_rows=5
    ),
    "histogram(keys=)": lambda f: f.histogram("home", keys=list(HOMES), max_rows=5),
    "several": lambda f: f.agg(
        max_rows=5,
        n=dp.count(),
        u=dp.count_units(),
        m=dp.mean("spend", bounds=(0, 150)),
        v=dp.var("spend", bounds=(0, 150), share=2),
        q=dp.median("spend", bounds=(0, 150)),
        s=dp.sum("items", bounds=(0, 12), share=0.5),
    ),
    "group_by().top_k()": lambda f: f.group_by("home", **HOME).top_k("shop", 2, keys=list(SHOPS)),
    "group_by().cdf()": lambda f: f.group_by("home", **HOME).cdf("age", [30, 60], bounds=(18, 90)),
    "group_by().quantile(several)": lambda f: f.group_by("home", **HOME).quantile(
        "age", [0.25, 0.75], bounds=(18, 90)
    ),
}
for _name, _ask in VERBS.items():
    question(
        "verbs",
        _name,
        _ask,
        {"epsilon": 0.5, "delta": 1e-7},
        ahead=True,
        everywhere=_name in ("several", "top_k()"),
    )
    question(
        "intervals",
        f"{_name}, ci=0.9",
        _ask,
        {"epsilon": 2.0, "ci": 0.9},
        words=_name in ("several", "median()"),
    )


# Keys

KEYS: Mapping[str, tuple[Ask, Mapping[str, Any]]] = {
    "found, counts of units": (lambda f: f.group_by("home", **FOUND).count_units(), APPROXIMATE),
    "found, rows": (lambda f: f.group_by("home", **FOUND).count(), APPROXIMATE),
    "found, means": (
        lambda f: f.group_by("home", **FOUND).agg(
            m=dp.mean("spend", bounds=(0, 150)), u=dp.count_units()
        ),
        {"epsilon": 3.0, "delta": 1e-5},
    ),
    "found, laplace": (
        lambda f: f.group_by("home", **FOUND).count(),
        {**APPROXIMATE, "noise": "laplace"},
    ),
    "found, gaussian": (
        lambda f: f.group_by("home", **FOUND).count_units(),
        {**APPROXIMATE, "noise": "gaussian"},
    ),
    "found, rho": (lambda f: f.group_by("home", **FOUND).count(), {"rho": 0.1, "delta": 1e-6}),
    "found, two columns": (
        lambda f: f.group_by("home", "level", max_groups=3, max_rows_per_group=5).count(),
        {"epsilon": 4.0, "delta": 1e-4},
    ),
    "found, quantiles": (
        lambda f: f.group_by("home", **FOUND).median("age", bounds=(18, 90)),
        APPROXIMATE,
    ),
    "found, other": (
        lambda f: f.group_by("home", **FOUND, other="(other)").agg(
            n=dp.count(), s=dp.sum("items", bounds=(0, 12))
        ),
        APPROXIMATE,
    ),
    "found, other, rho": (
        lambda f: f.group_by("home", **FOUND, other="(other)").agg(
            u=dp.count_units(), m=dp.mean("age", bounds=(18, 90))
        ),
        {"rho": 0.1, "delta": 1e-6},
    ),
    "found, other of two columns": (
        lambda f: f.group_by(
            "home", "level", max_groups=3, max_rows_per_group=5, other=("(other)", None)
        ).count(),
        {"epsilon": 4.0, "delta": 1e-4},
    ),
    "found, whole numbers": (
        lambda f: f.group_by("items", max_groups=5, max_rows_per_group=5, other=-1).count(),
        {"epsilon": 4.0, "delta": 1e-4},
    ),
    "keys alone": (lambda f: f.group_by("home", max_groups=1).keys(), APPROXIMATE),
    "keys alone, rho": (
        lambda f: f.group_by("home", max_groups=1).keys(),
        {"rho": 0.1, "delta": 1e-6},
    ),
    "the largest that are found": (
        lambda f: f.top_k("home", 2, max_rows=1),
        {"epsilon": 4.0, "delta": 1e-4},
    ),
    "the largest that are found, rows": (
        lambda f: f.top_k("items", 9, max_groups=5, max_rows_per_group=5),
        {"epsilon": 4.0, "delta": 1e-4},
    ),
    "keys in rounds": (lambda f: f.group_by("home").keys(), {"epsilon": 4.0, "delta": 1e-4}),
    "keys in rounds, rho": (
        lambda f: f.group_by("home", "member").keys(),
        {"rho": 0.9, "delta": 1e-4},
    ),
    "keys alone, two columns": (
        lambda f: f.group_by("home", "member", max_groups=1).keys(),
        APPROXIMATE,
    ),
    "Boolean": (lambda f: f.group_by("member", max_groups=2, max_rows_per_group=5).count(), PURE),
    "listed tuples": (
        lambda f: f.group_by(
            "home",
            "level",
            keys=[("Bonn", "low"), ("Kiel", "high"), (None, "low")],
            max_groups=3,
            max_rows_per_group=5,
        ).count(),
        PURE,
    ),
    "listed product": (
        lambda f: f.group_by(
            "home",
            "shop",
            keys={"home": ["Bonn", "Kiel"], "shop": list(SHOPS)},
            max_groups=5,
            max_rows_per_group=1,
        ).agg(n=dp.count(), m=dp.mean("spend", bounds=(0, 150))),
        PURE,
    ),
    "listed, null and absent": (
        lambda f: f.group_by("home", **{**HOME, "keys": [None, "Nowhere"]}).count_units(),
        PURE,
    ),
    "listed days": (
        lambda f: f.group_by(
            "day",
            keys=[dt.date(2025, 1, 1), dt.date(2025, 2, 9)],
            max_groups=2,
            max_rows_per_group=5,
        ).count(),
        PURE,
    ),
    "listed, all three limits": (
        lambda f: f.group_by(
            "home", keys=list(HOMES), max_groups=2, max_rows_per_group=3, max_rows=2
        ).agg(n=dp.count(), s=dp.sum("items", bounds=(0, 12))),
        PURE,
    ),
}
SOMEWHERE = (
    "keys alone, rho",
    "found, rho",
    "found, laplace",
    "found, gaussian",
    "listed days",
)  # days are times in pandas
for _name, (_ask, _price) in KEYS.items():
    question(
        "keys",
        _name,
        _ask,
        _price,
        everywhere=_name not in SOMEWHERE,
        ahead=True,
        words="other" in _name,
    )
    if "found" in _name and "whole" not in _name and "two" not in _name and "rho" not in _name:
        question("keys", f"{_name}, neighbors='replace'", _ask, _price, neighbors="replace")


# Whose privacy

UNITS: Mapping[str, Any] = {
    "a tuple": ("user", "site"),
    "Rows(1)": dp.Rows(1),
    "Rows(3)": dp.Rows(3),
}
for _title, _unit in UNITS.items():
    _named = isinstance(_unit, tuple)  # where units have no name, `dp.Rows` is the only limit
    _rows, _groups = ({"max_rows": 5}, FOUND) if _named else ({}, {})
    _levels = {
        "keys": list(LEVELS),
        **({"max_groups": 3, "max_rows_per_group": 5} if _named else {}),
    }
    _asked: Mapping[str, Ask] = {
        "count and mean": lambda f, rows=_rows: f.agg(
            n=dp.count(), m=dp.mean("spend", bounds=(0, 150)), **rows
        ),
        "found": lambda f, groups=_groups: f.group_by("home", **groups).count(),
        "units and different values": lambda f, levels=_levels: f.group_by("level", **levels).agg(
            u=dp.count_units(), k=dp.n_unique("shop")
        ),
        "listed": lambda f, groups=_groups: f.group_by("home", keys=list(HOMES), **groups).agg(
            s=dp.sum("items", bounds=(0, 12)), q=dp.median("age", bounds=(18, 90))
        ),
    }
    for _name, _ask in _asked.items():
        question(
            "units", f"{_name}, unit is {_title}", _ask, APPROXIMATE, unit=_unit, everywhere=_named
        )
    question(
        "units",
        f"listed, unit is {_title}, neighbors='replace'",
        lambda f, groups=_groups: f.group_by("home", keys=list(HOMES), **groups).mean(
            "age", bounds=(18, 90)
        ),
        unit=_unit,
        neighbors="replace",
    )


# What is declared once

DECLARED = {
    "bounds": {"spend": (0, 150), "age": (18, 90), "day": DAYS},
    "keys": {"home": list(HOMES)},
    **FOUND,
}
DECLARED_ASKS: Mapping[str, Ask] = {
    "a grouped mean": lambda f: f.group_by("home").mean("spend"),
    "what is typed beside it": lambda f: f.group_by("home", max_groups=2).agg(
        n=dp.count(max_rows=3), s=dp.sum("spend", bounds=(0, 50)), d=dp.mean("day")
    ),
    "keys that are found": lambda f: f.group_by("shop").agg(n=dp.count(), m=dp.median("age")),
    "after a row for each unit": lambda f: (
        f.per_unit(m=dp.mean("spend"), home=dp.last("home", by="day")).group_by("home").mean("m")
    ),
    "keys of large groups": lambda f: f.group_by("shop", min_units=15).agg(
        n=dp.count(), u=dp.count_units()
    ),
    "large groups and the others": lambda f: f.group_by(
        "shop", min_units=15, other="(other)"
    ).count_units(),
    "min_units of listed keys": lambda f: f.group_by("home", min_units=15),
    "no limit on rows": lambda f: f.mean("spend"),
}
for _name, _ask in DECLARED_ASKS.items():
    question(
        "declared",
        _name,
        _ask,
        APPROXIMATE,
        said=DECLARED,
        everywhere=True,
        words=_name == "a grouped mean",
    )


# Limits and bounds that are chosen

AUTO: Mapping[str, tuple[Ask, Mapping[str, Any]]] = {
    "limits of a count": (lambda f: f.count(limits=dp.Auto()), PURE),
    "limits of a count, larger share": (lambda f: f.count(limits=dp.Auto(0.5)), APPROXIMATE),
    "limits of groups": (
        lambda f: f.group_by("home", keys=list(HOMES), limits=dp.Auto()).agg(
            n=dp.count(), u=dp.count_units()
        ),
        {"epsilon": 2.0},
    ),
    "limits of groups, rho": (
        lambda f: f.group_by("home", keys=list(HOMES), limits=dp.Auto()).agg(n=dp.count()),
        {"rho": 0.1},
    ),
    "limits of twelve groups and more": (
        lambda f: f.group_by("age", keys=list(range(18, 80)), limits=dp.Auto()).agg(
            n=dp.count(), s=dp.sum("items", bounds=(0, 12))
        ),
        {"epsilon": 3.0},
    ),
    "not scaled": (
        lambda f: f.group_by("age", keys=list(range(18, 80)), limits=dp.Auto(scaled=False)).count(),
        {"epsilon": 3.0},
    ),
    "limits of keys found": (
        lambda f: f.group_by("home", limits=dp.Auto()).count(),
        {"epsilon": 2.0, "delta": 1e-6},
    ),
    "bounds of a sum": (lambda f: f.sum("spend", bounds=dp.Auto(), max_rows=5), {"epsilon": 2.0}),
    "bounds of a mean": (lambda f: f.mean("age", bounds=dp.Auto(), max_rows=5), {"epsilon": 2.0}),
    "bounds of a quantile": (
        lambda f: f.median("spend", bounds=dp.Auto(), max_rows=5),
        {"epsilon": 2.0},
    ),
    "bounds of days": (lambda f: f.mean("day", bounds=dp.Auto(), max_rows=5), {"epsilon": 3.0}),
    "bounds of a mean, rho": (
        lambda f: f.mean("items", bounds=dp.Auto(), max_rows=5),
        {"rho": 0.3},
    ),
    "bounds by group": (
        lambda f: f.group_by("home", **HOME).agg(
            m=dp.mean("spend", bounds=dp.Auto()), v=dp.var("spend", bounds=dp.Auto())
        ),
        {"epsilon": 3.0, "delta": 1e-6},
    ),
    "limits and bounds": (
        lambda f: f.agg(limits=dp.Auto(), s=dp.sum("spend", bounds=dp.Auto()), n=dp.count()),
        {"epsilon": 3.0},
    ),
    "limits of different values": (
        lambda f: f.n_unique("level", limits=dp.Auto()),
        {"epsilon": 3.0},
    ),
    "limits under neighbors": (lambda f: f.bound(limits=dp.Auto()).count(), PURE),
}
for _name, (_ask, _price) in AUTO.items():
    question(
        "auto",
        _name,
        _ask,
        _price,
        auto=True,
        words=_name in ("limits of groups", "bounds of a mean", "limits of twelve groups and more"),
        everywhere=_name in ("limits of groups", "bounds of a mean", "bounds of days"),
    )


@written("auto", "tune")
def _tune(page: Page) -> None:
    query = (
        visits(page).group_by("home", **HOME).agg(n=dp.count(), s=dp.sum("items", bounds=(0, 12)))
    )
    grid = {"max_groups": [1, 2], "max_rows_per_group": [1, 5, 20]}
    page.near("table", query.tune(grid, epsilon=0.5))
    page.near(
        "at a planned price",
        query.tune({"max_rows": [1, 5]}, epsilon=0.5, at=2.0, delta=1e-6, noise="gaussian"),
    )
    page.near("alone", visits(page).count(max_rows=1).tune({"max_rows": [1, 3, 9]}, epsilon=0.1))


# Steps

STEPS: Mapping[str, Ask] = {
    "filter": lambda f: f.filter((c("spend") > 20) & c("home").is_in(["Bonn", "Kiel"])).count(
        max_rows=5
    ),
    "filter, several": lambda f: f.filter(
        c("member") | c("spend").is_null(), c("age") < 60
    ).count_units(),
    "with_columns": lambda f: f.with_columns(
        each=c("spend") / (c("items") + 1), year=c("when").dt.year(), old=c("age") >= 65
    ).agg(max_rows=5, e=dp.mean("each", bounds=(0, 50)), y=dp.count("year"), o=dp.sum("old")),
    "when": lambda f: f.with_columns(x=dp.when(c("member")).then(c("spend")).otherwise(0.0)).sum(
        "x", bounds=(0, 100), max_rows=5
    ),
    "text and calendar": lambda f: (
        f.with_columns(first=c("home").str.to_uppercase().str.head(1), month=c("day").dt.month())
        .filter(c("first") == "B")
        .group_by("month", keys=list(range(1, 13)), max_groups=5, max_rows_per_group=5)
        .count()
    ),
    "clip": lambda f: (
        f.clip("items", 2, 9)
        .clip("day", dt.date(2025, 2, 1), None)
        .agg(max_rows=5, s=dp.sum("items"), n=dp.count("day"))
    ),
    "cast and fill": lambda f: (
        f.cast({"items": "float64", "spend": "int32"})
        .fill_null({"items": 0.5})
        .agg(max_rows=5, a=dp.sum("items", bounds=(0, 12)), b=dp.sum("spend", bounds=(0, 150)))
    ),
    "drop_nulls": lambda f: f.drop_nulls("spend", "items").agg(
        max_rows=5, n=dp.count(), m=dp.mean("spend", bounds=(0, 150))
    ),
    "select, rename, drop": lambda f: (
        f.rename({"home": "town"})
        .drop("site")
        .select("town", "items")
        .group_by("town", **HOME)
        .count()
    ),
    "cut": lambda f: (
        f.cut("age", [18, 30, 50, 90], labels=["young", "middle", "old"], right=False)
        .group_by("age", max_groups=1, max_rows_per_group=5)
        .count()
    ),
    "cut of times": lambda f: (
        f.cut("when", [*TIMES[:1], dt.datetime(2025, 7, 1), *TIMES[1:]], into="half")
        .group_by("half", max_groups=2, max_rows_per_group=5)
        .count()
    ),
    "bound": lambda f: f.bound(max_rows=2).group_by("home", keys=list(HOMES), max_groups=1).count(),
    "per_unit": lambda f: (
        f.per_unit(
            n=dp.count(),
            total=dp.sum("spend", bounds=(0, 150)),
            last=dp.last("home", by="when"),
            top=dp.max("items"),
        )
        .group_by("last", keys=list(HOMES))
        .agg(u=dp.count(), m=dp.mean("total", bounds=(0, 500)), t=dp.mean("top", bounds=(0, 12)))
    ),
    "join, public": lambda f: (
        f.join(REGIONS, on="home")
        .group_by("sea", max_groups=2, max_rows_per_group=5)
        .agg(n=dp.count(), a=dp.mean("area", bounds=(0, 200)))
    ),
    "join, left": lambda f: f.join(REGIONS, on="home", how="left").agg(
        max_rows=5, n=dp.count(), a=dp.count("area")
    ),
    "join, protected": lambda f: (
        f.select("user", "items")
        .join(f.per_unit(total=dp.sum("spend", bounds=(0, 150))), on="user")
        .agg(max_rows=5, n=dp.count(), t=dp.sum("total", bounds=(0, 500)))
    ),
    "concat": lambda f: (
        dp.concat([f.select("user", "home"), f.filter(c("member")).select("user", "home")])
        .group_by("home", keys=list(HOMES), max_groups=1, max_rows_per_group=10)
        .count()
    ),
    "median of times": lambda f: f.median("when", bounds=TIMES, max_rows=5),
    "mean and spread of days": lambda f: f.agg(
        max_rows=5, m=dp.mean("day", bounds=DAYS), s=dp.std("day", bounds=DAYS)
    ),
}
for _name, _ask in STEPS.items():
    question(
        "steps",
        _name,
        _ask,
        {"epsilon": 1.5},
        everywhere=_name in ("filter", "cut", "per_unit", "join, public", "concat"),
    )
DURATIONS: Mapping[str, Ask] = {
    "sum of durations": lambda f: f.sum("stay", bounds=STAYS, max_rows=5),
    "mean and spread of durations": lambda f: f.agg(
        max_rows=5, m=dp.mean("stay", bounds=STAYS), s=dp.std("stay", bounds=STAYS)
    ),
    "quantile of durations": lambda f: f.quantile("stay", 0.75, bounds=STAYS, max_rows=5),
    "histogram of durations": lambda f: f.histogram(
        "stay", bins=[dt.timedelta(hours=h) for h in (0, 2, 4, 6)], max_rows=5
    ),
    "bounds of durations": lambda f: f.group_by("home", **HOME).sum(
        "stay", unit_bounds=(STAYS[0], 4 * STAYS[1])
    ),
}
for _name, _ask in DURATIONS.items():
    question(
        "steps", _name, _ask, {"epsilon": 1.5, "ci": 0.9} if "mean" in _name else PURE, table=VISITS
    )
_TYPED = VISITS.with_columns(
    pl.col("level").cast(pl.Enum(LEVELS)),
    pl.col("spend").cast(pl.Decimal(8, 2)),
    pl.col("when").dt.replace_time_zone("UTC"),
    pl.col("age").cast(pl.UInt8),
)
question(
    "steps",
    "Enum, Decimal and zones",
    lambda f: f.group_by("level", max_groups=3, max_rows_per_group=5).agg(
        n=dp.count(),
        s=dp.sum("spend", bounds=(0, 150)),
        w=dp.mean("when", bounds=tuple(t.replace(tzinfo=dt.UTC) for t in TIMES)),
    ),
    table=_TYPED,
)


@written("steps", "frames in words", everywhere=True)
def _frames(page: Page) -> None:
    frame = visits(page)
    made = (
        frame.clip("spend", 0, 100)
        .filter(c("age") > 20)
        .cut("age", [20, 40, 90], into="era")
        .bound(max_rows=3)
    )
    for title, one in {
        "source": frame,
        "steps": made,
        "per_unit": frame.per_unit(n=dp.count()),
    }.items():
        page.note(title, repr(one))
        page.note(f"{title}, columns", [*one.columns, *one.unit, one.neighbors])
    page.note("html", made._repr_html_())
    page.note("groups", repr(frame.group_by("home", **HOME)))
    page.note(
        "query",
        repr(frame.group_by("home", **HOME).agg(n=dp.count(), m=dp.mean("age", bounds=(0, 99)))),
    )
    page.note("explain, html", frame.group_by("home", **HOME).count().explain()._repr_html_())
    page.note("rows", repr(dp.protect(page.bring(PLAIN), unit=dp.Rows(2))))


@written("steps", "partition")
def _partition(page: Page) -> None:
    budget = dp.Budget(epsilon=10.0, delta=1e-3)
    parts = visits(page, budget=budget).partition("home", keys=list(HOMES))
    for key, price in (("Bonn", 1.0), ("Kiel", 2.0), ("Bonn", 0.5)):
        out = released(
            page,
            parts[key].agg(max_rows=5, n=dp.count(), m=dp.mean("spend", bounds=(0, 150))),
            {"epsilon": price},
        )
        page.note("spent", repr(budget.spent))
    page.note("report", str(out.report()))
    shops = visits(page, budget=dp.Budget(rho=1.0)).partition(
        "shop", keys=list(SHOPS), max_groups=5
    )
    out = released(page, shops["b"].count_units(), CONCENTRATED)
    page.note("left", repr(shops["b"].budget.remaining))


@written("steps", "exact totals of a made-up table", everywhere=True)
def _exact_totals(page: Page) -> None:
    table = page.bring(PLAIN.head(40))
    frame = visits(page)
    for title, query in {
        "several": frame.group_by("home", **HOME).agg(
            n=dp.count(),
            s=dp.sum("spend", bounds=(0, 150)),
            m=dp.mean("items", bounds=(0, 12)),
            v=dp.var("age", bounds=(18, 90)),
        ),
        "alone": frame.agg(
            max_rows=2, n=dp.count(), k=dp.n_unique("shop"), t=dp.mean("when", bounds=TIMES)
        ),
    }.items():
        totals = query.exact_totals(table)
        page.note(
            title,
            {
                name: [(str(k), str(v)) for k, v in values.items()]
                for name, values in totals.items()
            },
        )


# Tables with two sides, and many of them

CROSSTABS: Mapping[str, tuple[dict[str, Any], Mapping[str, Any]]] = {
    "counts": ({}, PURE),
    "margins": ({"margins": True}, PURE),
    "margins, measured, rho": ({"margins": "measured"}, CONCENTRATED),
    "margins, measured, epsilon": ({"margins": "measured"}, PURE),
    "margins, measured, gaussian": (
        {"margins": "measured", "max_groups": 2},
        {**APPROXIMATE, "noise": "gaussian"},
    ),
    "sums": ({"values": "items", "aggfunc": "sum", "bounds": (0, 12), "margins": True}, PURE),
    "sums, measured": (
        {"values": "items", "aggfunc": "sum", "bounds": (-3, 12), "margins": "measured"},
        CONCENTRATED,
    ),
    "means": ({"values": "spend", "aggfunc": "mean", "bounds": (0, 150)}, {"epsilon": 3.0}),
    "counts of values": ({"values": "spend", "aggfunc": "count"}, PURE),
    "parts of rows": ({"normalize": "index"}, PURE),
    "parts of columns": ({"normalize": "columns", "margins": True}, PURE),
    "parts of all": ({"normalize": True}, APPROXIMATE),
}


def _crosstab(**options: Any) -> Ask:
    return lambda f: f.crosstab("home", "member", **{**CELLS, **options})


for _name, (_options, _price) in CROSSTABS.items():
    question(
        "crosstabs",
        _name,
        _crosstab(**_options),
        _price,
        ahead=True,
        words="measured" in _name,
        everywhere=_name == "margins",
    )
question(
    "crosstabs",
    "keys found",
    lambda f: f.crosstab(
        "home", "level", max_groups=3, max_rows_per_group=5, other=("(other)", "(other)")
    ),
    {"epsilon": 4.0, "delta": 1e-4},
    everywhere=True,
)
question(
    "crosstabs",
    "two columns down",
    lambda f: f.crosstab(
        ["home", "member"],
        "level",
        keys={"home": ["Bonn"], "member": [True, None], "level": list(LEVELS)},
        max_rows=5,
        margins=True,
    ),
)
question(
    "crosstabs",
    "limits chosen",
    lambda f: f.crosstab("home", "member", keys=CELLS["keys"], limits=dp.Auto()),
    auto=True,
)

question(
    "crosstabs",
    "description",
    lambda f: f.describe(
        ["spend", "age", "member"], {"spend": (0, 150), "age": (0, 120)}, max_rows=5
    ),
    {"epsilon": 4.0},
    everywhere=True,
    ahead=True,
    words=True,
)
question(
    "crosstabs",
    "description, chosen",
    lambda f: f.describe(["spend", "age"], dp.Auto(), percentiles=[0.1, 0.9], limits=dp.Auto()),
    {"epsilon": 5.0},
    auto=True,
)

WIDE = {"home": list(HOMES), "member": [True, False], "level": list(LEVELS)}
for _name, (_work, _price) in {
    "2-way": ("2-way", APPROXIMATE),
    "1-way, rho": ("1-way", CONCENTRATED),
    "a list": ([("home", "level"), ("member",)], {"epsilon": 2.0, "delta": 1e-5}),
}.items():

    @written("crosstabs", f"marginals, {_name}", everywhere=_name == "2-way")
    def _marginals(page: Page, workload: Any = _work, price: Mapping[str, Any] = _price) -> None:
        limit = {"rho": 1.0} if "rho" in price else {"epsilon": 10.0, "delta": 1e-3}
        frame = visits(page, budget=dp.Budget(**limit))
        query = frame.marginals(["home", "member", "level"], workload, keys=WIDE, max_rows=5)
        page.note("explain", str(query.explain()))
        page.note("sensitivity", query.sensitivity)
        page.near("accuracy before", query.accuracy(**price))
        out = query.release(**price)
        page.near("table", out.to_polars())
        page.near("noise", out.noise)
        page.near("accuracy", out.accuracy())
        page.note("cost", repr(out.cost))
        page.note("names", [*map(str, out)])
        page.near("one table", out["home"].to_polars())
        if workload == "2-way":
            page.near("crosstab", out["level", "home"].to_polars())
            page.near("rounded", out["home", "member"].nonnegative().round().to_polars())
            page.note("report", str(out.report()))


@written("crosstabs", "hierarchy")
def _hierarchy(page: Page) -> None:
    frame = visits(page, budget=dp.Budget(epsilon=10.0, delta=1e-3))
    tree = [
        (home, level) for number, home in enumerate(HOMES) for level in LEVELS[: number % 3 + 1]
    ]
    query = frame.hierarchy(
        ["home", "level"], tree, by=["member"], max_groups=2, max_rows_per_group=3
    )
    page.note("explain", str(query.explain()))
    page.note("sensitivity", query.sensitivity)
    page.near("accuracy before", query.accuracy(**APPROXIMATE))
    out = query.release(**APPROXIMATE)
    page.near("levels", out.to_polars())
    page.near("noise", out.noise)
    page.near("accuracy", out.accuracy())
    page.note("cost", repr(out.cost))
    page.note("repr", repr(out))
    whole = out.nonnegative().round().suppress(below=5, marker="<5", secondary=True)
    page.near("whole", whole.to_polars())
    page.note("report", str(whole.report()))


@written("crosstabs", "synthesize")
def _synthesize(page: Page) -> None:
    """Its rows hang on the last digits of floats, so that they are not written down."""
    frame = visits(page, budget=dp.Budget(epsilon=10.0, delta=1e-3))
    query = frame.synthesize(
        ["home", "items"],
        20,
        keys={"home": HOME["keys"]},
        bins={"items": [0, 1, 3, 12]},
        max_rows=5,
    )
    page.note("explain", str(query.explain()))
    page.note("sensitivity", query.sensitivity)
    page.note("repr", repr(query))
    out = query.release(epsilon=5.0, delta=1e-6)
    page.near("noise", out.noise)
    page.near("marginal", out.marginals["home",].table.drop("synthetic"))
    page.note("schema", str(dict(out.table.schema)))
    page.note("cost", repr(out.cost))


# Prices


@written("prices", "epsilon_for")
def _epsilon_for(page: Page) -> None:
    frame = visits(page)
    grouped = frame.group_by("home", **HOME)
    page.near("count", frame.count(max_rows=5).epsilon_for(error=10))
    page.near(
        "count, gaussian", grouped.count().epsilon_for(error=10, delta=1e-6, noise="gaussian")
    )
    page.near(
        "auto", frame.group_by("shop", **SHOP).count().epsilon_for(error=10, delta=1e-6, alpha=0.01)
    )
    both = grouped.agg(n=dp.count(), s=dp.sum("items", bounds=(0, 12)))
    page.near("one column", both.epsilon_for(error=50, column="s"))
    page.near("every column", both.epsilon_for(error=50))
    page.near(
        "mean",
        frame.mean("spend", bounds=(0, 150), max_rows=5).epsilon_for(error=3, assume_rows=500),
    )
    page.near(
        "median",
        frame.median("spend", bounds=(0, 150), max_rows=5).epsilon_for(error=9, assume_rows=500),
    )


@written("prices", "batches")
def _batches(page: Page) -> None:
    for limit, price in (
        ({"epsilon": 5.0, "delta": 1e-5}, {"epsilon": 1.0, "delta": 1e-6}),
        ({"epsilon": 5.0}, {"epsilon": 1.0}),
        ({"rho": 1.0, "delta": 1e-5}, {"rho": 0.1, "delta": 1e-6}),
        (
            {"epsilon": 5.0, "delta": 1e-5},
            {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian", "shares": [1, 2, 1, 4]},
        ),
        (
            {"epsilon": 5.0, "delta": 1e-5},
            {"epsilon": 1.0, "delta": 1e-6, "noise": "laplace", "ci": 0.9},
        ),
    ):
        budget = dp.Budget(**limit)
        frame = visits(page, budget=budget)
        queries = [
            frame.count(max_rows=5),
            frame.group_by("home", **HOME).mean("spend", bounds=(0, 150)),
            frame.median("age", bounds=(18, 90), max_rows=5),
            frame.group_by("home", **(HOME if "delta" not in price else FOUND)).count_units(),
        ]
        plan = budget.plan(queries, **price)
        page.note(f"plan {price}", repr(plan))
        outs = plan.release()
        for out in outs:
            page.note("table", out.to_polars())
        page.note("spent", f"{budget.spent!r}, cost {outs[0].cost!r}")
        page.note("report", str(outs[3].report()))


@written(
    "prices", "batches, accountant='pld'", versions=("dp-accounting", "scipy", "numpy"), long=True
)
def _distributions(page: Page) -> None:
    budget = dp.Budget(epsilon=5.0, delta=1e-5, accountant="pld")
    frame = visits(page, budget=budget)
    queries = [
        frame.count(max_rows=5),
        frame.group_by("shop", **SHOP).count(),
    ]
    plan = budget.plan(queries, epsilon=1.0, delta=1e-6, noise="laplace")
    page.near("noise", plan.noise)
    for out in plan.release():
        page.near("table", out.to_polars())
    page.near("spent", [budget.spent.epsilon, budget.spent.delta])
    page.refused("one alone", lambda: queries[0].release(epsilon=0.1))


@written("prices", "budgets")
def _budgets(page: Page) -> None:
    for limit in (
        {"epsilon": 2.0, "delta": 1e-6},
        {"rho": 0.5, "delta": 1e-6},
        {"epsilon": 2.0, "delta": 1e-6, "accountant": "basic"},
        {"rho": 0.5, "accountant": "zcdp"},
    ):
        budget = dp.Budget(**limit)
        frame = visits(page, budget=budget)
        price = {"rho": 0.1} if "rho" in limit else {"epsilon": 0.7}
        page.note("budget", repr(budget))
        out = frame.count(max_rows=5).release(**price)
        frame.group_by("home", **HOME).agg(n=dp.count(), m=dp.mean("age", bounds=(18, 90))).release(
            **price
        )
        page.note(
            "after two",
            [
                repr(budget.spent),
                repr(budget.remaining),
                repr(budget.limit),
                budget.accountant,
                budget.terms,
            ],
        )
        page.note(
            "history",
            [
                (repr(e.query), e.epsilon, e.delta, e.rho, e.name, e.status, e.number)
                for e in budget.history()
            ],
        )
        page.note(
            "statement",
            as_json(out.report().to_dict()["guarantee"])
            + as_json(out.report().to_dict()["budget"]),
        )
        page.refused(
            "too much",
            lambda frame=frame, limit=limit: frame.count(max_rows=5).release(
                **dict.fromkeys(price_of(limit), 3.0)
            ),
        )
    page.note("rho from a budget in epsilon", "")
    page.refused(
        "terms",
        lambda: visits(page, budget=dp.Budget(epsilon=1.0)).count(max_rows=5).release(rho=0.1),
    )


def price_of(limit: Mapping[str, Any]) -> list[str]:
    """In which terms a budget is charged."""
    return ["rho"] if "rho" in limit else ["epsilon"]


@written("prices", "names and ledgers")
def _ledgers(page: Page) -> None:
    ledger = dp.testing.ledger(page.folder / "study.sqlite")
    budget = ledger.budget("visits", epsilon=2.0, delta=1e-6)
    frame = visits(page, budget=budget)
    query = frame.group_by("home", **HOME).agg(n=dp.count(), m=dp.mean("age", bounds=(18, 90)))
    out = query.release(epsilon=0.5, name="by home")
    page.note("first", out.to_polars())
    again = query.release(epsilon=0.5, name="by home")
    page.note("asked again", [again.to_polars().equals(out.to_polars()), repr(budget.spent)])
    page.note("anew", query.release(epsilon=0.5, name="by home", refresh=True).to_polars())
    page.refused("another price", lambda: query.release(epsilon=0.25, name="by home"))
    page.refused(
        "another question", lambda: frame.count(max_rows=4).release(epsilon=0.5, name="by home")
    )
    reopened = dp.Ledger(page.folder / "study.sqlite").budget("visits")
    page.note("reopened", repr(reopened))
    page.note(
        "history",
        [(e.query, e.epsilon, e.delta, e.name, e.status, e.number) for e in reopened.history()],
    )
    page.refused("another limit", lambda: ledger.budget("visits", epsilon=3.0))
    page.refused(
        "another unit",
        lambda: (
            visits(page, unit=("user", "site"), budget=budget)
            .count(max_rows=3)
            .release(epsilon=0.1)
        ),
    )
    page.refused("no budget of this name", lambda: ledger.budget("others"))
    page.note("report", str(again.report()))
    page.note(
        "stored kinds", [str(dict(query.release(epsilon=0.5, name="by home").to_polars().schema))]
    )


@written("prices", "sensitivities and accuracies over limits")
def _limits(page: Page) -> None:
    frame = visits(page)
    for groups, rows, each in ((1, None, 1), (3, None, 2), (3, 4, 2), (2, 9, None), (5, 1, None)):
        query = frame.group_by(
            "shop", keys=list(SHOPS), max_groups=groups, max_rows=rows, max_rows_per_group=each
        ).agg(
            n=dp.count(),
            u=dp.count_units(),
            s=dp.sum("spend", bounds=(-10, 99.5)),
            m=dp.mean("age", bounds=(18, 90)),
            q=dp.median("age", bounds=(18, 90)),
            k=dp.n_unique("items"),
        )
        page.note(f"sensitivity {(groups, rows, each)}", query.sensitivity)
        page.near(
            f"accuracy {(groups, rows, each)}",
            query.accuracy(epsilon=1.0, delta=1e-6, assume_rows=100),
        )
        page.near("with ci", query.accuracy(epsilon=1.0, delta=1e-6, assume_rows=100, ci=0.95))


# What comes out


@written("outputs", "reports of a release")
def _reports(page: Page) -> None:
    frame = visits(page)
    query = (
        frame.clip("spend", 0, 100)
        .filter(c("age") > 20)
        .group_by("home", **HOME)
        .agg(n=dp.count(), m=dp.mean("spend"), q=dp.median("age", bounds=(18, 90)))
    )
    report = query.release(epsilon=1.0, name="reported").report()
    page.note("text", str(report))
    page.note("json", report.to_json())
    page.note("html", report.to_html())
    page.note("errors", [*report.errors])


for _name, (_ask, _price) in {
    "rho": (lambda f: f.count(max_rows=5), CONCENTRATED),
    "keys found": (lambda f: f.group_by("home", **FOUND, other="(other)").count(), APPROXIMATE),
    "auto": (lambda f: f.mean("age", bounds=dp.Auto(), limits=dp.Auto()), APPROXIMATE),
    "crosstab": (_crosstab(margins="measured"), PURE),
    "replace": (lambda f: f.mean("spend", bounds=(0, 150), max_rows=5), APPROXIMATE),
    "a choice": (lambda f: f.top_k("shop", 2, keys=list(SHOPS), max_rows=5), PURE),
    "a long list of keys": (
        lambda f: f.group_by("age", keys=list(range(18, 90)), max_groups=1).count_units(),
        PURE,
    ),
}.items():

    @written("statements", _name)
    def _statement(
        page: Page, ask: Ask = _ask, price: Mapping[str, Any] = _price, name: str = _name
    ) -> None:
        limit = {"rho": 1.0} if "rho" in price else {"epsilon": 3.0, "delta": 1e-3}
        relation = "replace" if name == "replace" else "add-remove"
        out = ask(visits(page, budget=dp.Budget(**limit), neighbors=relation)).release(**price)
        page.note("json", as_json(rounded(json.loads(out.report().to_json()))))
        page.note("html", out.report().to_html())


@written("outputs", "texts of a release", versions=("pandas",))
def _texts(page: Page) -> None:
    frame = visits(page)
    outs = {
        "grouped": frame.group_by("home", **HOME).agg(
            n=dp.count(), d=dp.mean("day", bounds=DAYS), t=dp.mode("shop", keys=list(SHOPS))
        ),
        "alone": frame.agg(max_rows=5, n=dp.count(), w=dp.median("when", bounds=TIMES)),
        "crosstab": frame.crosstab("home", "member", **CELLS, margins=True),
        "with ci": frame.group_by("home", **HOME).agg(
            n=dp.count(), q=dp.median("age", bounds=(18, 90))
        ),
    }
    for title, query in outs.items():
        out = query.release(epsilon=2.0, **({"ci": 0.95} if title == "with ci" else {}))
        page.note(f"{title}, csv", out.to_csv())
        page.note(f"{title}, latex", out.to_latex())
        page.note(f"{title}, html", out.to_html())
        page.note(f"{title}, in a notebook", out._repr_html_())
        out.to_csv(page.folder / "table.csv")
        page.note(
            f"{title}, file", str((page.folder / "table.csv").read_text("utf-8") == out.to_csv())
        )
    page.note("value", frame.count(max_rows=5).release(epsilon=1.0).value)
    page.note("float", float(frame.mean("age", bounds=(18, 90), max_rows=5).release(epsilon=1.0)))
    page.note("repr", repr(frame.count(max_rows=5).release(epsilon=1.0)))


@written("outputs", "Parquet")
def _parquet(page: Page) -> None:
    import pyarrow.parquet as pq

    out = visits(page).group_by("home", **HOME).agg(n=dp.count()).release(epsilon=1.0)
    out.to_parquet(page.folder / "table.parquet")
    read = pq.read_table(page.folder / "table.parquet")
    page.note("table", pl.DataFrame(pl.from_arrow(read)))
    page.note("statement", as_json(json.loads(read.schema.metadata[b"dpframe.privacy_statement"])))


@written("outputs", "Excel", versions=("pandas", "openpyxl"))
def _excel(page: Page) -> None:
    out = visits(page).crosstab("home", "member", **CELLS, margins=True).release(epsilon=1.0)
    out.to_excel(page.folder / "table.xlsx")
    for sheet, table in pd.read_excel(
        page.folder / "table.xlsx", sheet_name=None, header=None
    ).items():
        page.note(sheet, [[str(cell) for cell in row] for row in table.to_numpy().tolist()])


@written("outputs", "free steps")
def _free(page: Page) -> None:
    frame = visits(page)
    small = frame.filter(c("age") > 60)
    grouped = small.group_by("home", **HOME).agg(
        n=dp.count(), s=dp.sum("items", bounds=(0, 12)), m=dp.mean("age", bounds=(18, 90))
    )
    tables = {
        "grouped": grouped.release(epsilon=0.2),
        "crosstab": small.crosstab("home", "member", **CELLS, margins=True).release(epsilon=0.1),
        "measured": small.crosstab("home", "member", **CELLS, margins="measured").release(
            epsilon=0.1
        ),
    }
    for title, out in tables.items():
        page.near(title, out.to_polars())
        for name, step in {
            "nonnegative": out.nonnegative(),
            "round": out.round(),
            "suppress": out.suppress(below=20),
            "all three": out.nonnegative().round().suppress(below=10),
        }.items():
            page.near(f"{title}, {name}", step.to_polars())
            page.near(f"{title}, {name}, accuracy", step.accuracy())
        lines = str(out.nonnegative().round().suppress(below=10).report()).splitlines()
        page.note(f"{title}, report", "\n".join(lines[-14:]))
    page.near("with ci", tables["grouped"].with_ci(0.8).to_polars())
    page.near("accuracy, alpha", tables["grouped"].accuracy(alpha=0.3))
    page.refused("wrong", lambda: tables["grouped"].suppress(below=-1))


def _pandas() -> Any:
    """The table in pandas, in Arrow's types: a column of its own has
    no type for Booleans and nulls.
    """
    return PLAIN.to_arrow().to_pandas(types_mapper=pd.ArrowDtype)


@written("outputs", "kinds of tables", versions=("pandas",))
def _kinds(page: Page) -> None:
    for kind, table in {
        "pandas": _pandas(),
        "polars": PLAIN,
        "lazy": PLAIN.lazy(),
        "pyarrow": PLAIN.to_arrow(),
    }.items():
        frame = dp.protect(table, unit="user", budget=dp.Budget(epsilon=50.0, delta=1e-3))
        for query in (
            frame.group_by("home", **HOME).agg(
                n=dp.count(), d=dp.mean("day", bounds=DAYS), m=dp.mean("age", bounds=(18, 90))
            ),
            frame.crosstab("home", "member", **CELLS, margins=True),
            frame.group_by("when", keys=list(TIMES), max_groups=2, max_rows_per_group=1).agg(
                q=dp.median("spend", bounds=(0, 150))
            ),
        ):
            out = query.release(epsilon=1.0)
            found = out.table
            module = type(found).__module__.partition(".")[0]
            page.note(f"{kind}: {module}.{type(found).__name__}", found)
            types = found.dtypes.to_dict() if module == "pandas" else found.schema
            types_text = (
                types.to_string(show_schema_metadata=False)
                if module == "pyarrow"
                else str(dict(types))
            )
            page.note(f"{kind}: types", types_text)
            page.note(
                f"{kind}: to_pandas, to_arrow",
                [type(out.to_pandas()).__name__, type(out.to_arrow()).__name__],
            )
            page.note(f"{kind}: accuracy", type(out.accuracy()).__module__.partition(".")[0])


@written("outputs", "accessors")
def _accessors(page: Page) -> None:
    whose = {"unit": "user", "budget": dp.Budget(epsilon=50.0, delta=1e-3), "epsilon": 1.0}
    for kind, table in {"pandas": _pandas(), "polars": PLAIN}.items():
        page.note(
            f"{kind}: sum", table.dp.sum("spend", bounds=(0, 150), max_rows=5, **whose).to_polars()
        )
        page.note(f"{kind}: agg", table.dp.agg(n=dp.count(), max_rows=5, **whose).to_polars())
        page.note(
            f"{kind}: histogram",
            table.dp.histogram("home", keys=list(HOMES), max_rows=5, **whose).to_polars(),
        )
        alone = {"budget": dp.Budget(epsilon=9.0), "epsilon": 1.0}
        mean = table["age"].dp.mean(bounds=(18, 90), unit=table["user"], max_rows=5, **alone)
        page.note(f"{kind}: series", mean.to_polars())
        page.note(
            f"{kind}: rows",
            table["age"].dp.count(unit=dp.Rows(1), budget=dp.Budget(rho=1.0), rho=0.1).to_polars(),
        )
        page.note(f"{kind}: in words", [repr(table.dp), repr(table["age"].dp)])
    dp.set_budget(dp.Budget(epsilon=1.0))
    try:
        page.note(
            "default budget", PLAIN.dp.count(unit="user", max_rows=5, epsilon=0.5).to_polars()
        )
    finally:
        dp.set_budget(None)


@written("charts", "charts", versions=("altair", "pandas"))
def _charts(page: Page) -> None:
    frame = visits(page)
    for title, query in {
        "groups": frame.group_by("home", **HOME).agg(
            n=dp.count(), m=dp.mean("age", bounds=(18, 90))
        ),
        "bins": frame.histogram("spend", bins=[0, 25, 50, 100], max_rows=5),
        "crosstab": frame.crosstab("home", "member", **CELLS, margins=True),
        "parts": frame.crosstab("home", "member", **CELLS, normalize="index"),
        "days": frame.group_by("home", **HOME).agg(d=dp.mean("day", bounds=DAYS)),
        "two keys": frame.group_by(
            "home",
            "level",
            keys={"home": ["Bonn"], "level": list(LEVELS)},
            max_groups=3,
            max_rows=5,
        ).count(),
    }.items():
        out = query.release(epsilon=2.0)
        for column in [None, "m"] if title == "groups" else [None]:
            chart = out.plot(column).to_dict()
            chart.pop("$schema", None)
            page.note(f"{title}, {column}", as_json(rounded(chart)))
        if title == "bins":
            chart = out.nonnegative().round().plot().to_dict()
            chart.pop("$schema", None)
            page.note("bins, rounded", as_json(rounded(chart)))


# Messages and figures

for _topic, _calls in REFUSALS.items():

    @written("refusals", _topic)
    def _refused(page: Page, calls: Mapping[str, Any] = _calls) -> None:
        frame = visits(page, budget=dp.Budget(epsilon=1.0))
        for call, asked in calls.items():
            page.refused(call, lambda asked=asked: asked(frame, page))


for _topic, _lines in FIGURES.items():

    @written("figures", _topic)
    def _figures(page: Page, lines: Sequence[str] = _lines) -> None:
        from golden.figures import value_of

        for line in lines:
            page.near(line, value_of(line)) if line.startswith("~") else page.note(
                line, repr(value_of(line))
            )
