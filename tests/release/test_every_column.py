"""Every aggregate of every type of column, alone and by group, for every kind of table, to the end.

What comes out has the same columns, types and rows whatever was in the table, and none at all
included: nothing but the noisy values depends on it.
"""

from __future__ import annotations

import datetime as dt

import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from statistics_table import shapes
from tiers import in_turn

KINDS = {
    "integer": (pl.Int32, [3, 9, 200, None], (0, 100)),
    "float": (pl.Float32, [0.5, float("nan"), float("inf"), None], (0, 100)),
    "boolean": (pl.Boolean, [True, False, True, None], None),
    "date": (
        pl.Date,
        [dt.date(2020, 5, 1), dt.date(1900, 1, 1), None],
        (dt.date(2020, 1, 1), dt.date(2021, 1, 1)),
    ),
    "datetime": (
        pl.Datetime("ms", "Europe/Berlin"),
        [dt.datetime(2020, 5, 1, tzinfo=dt.UTC), dt.datetime(2020, 7, 1, 12, tzinfo=dt.UTC), None],
        (dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2021, 1, 1, tzinfo=dt.UTC)),
    ),
    "duration": (
        pl.Duration("us"),
        [dt.timedelta(hours=5), None],
        (dt.timedelta(0), dt.timedelta(days=1)),
    ),
}
TIMES = {"date", "datetime", "duration"}


def aggregates(kind):
    """Name, aggregate and the type of its column."""
    dtype, _, bounds = KINDS[kind]
    whole = {"integer": pl.Int64, "boolean": pl.Int64}.get(kind, pl.Float64)
    same = dtype if kind in TIMES else pl.Float64
    ranked = dtype if kind in TIMES else whole
    asked = {
        "rows": (dp.count(), pl.Int64),
        "values": (dp.count("x"), pl.Int64),
        "units": (dp.count_units(), pl.Int64),
        "different": (dp.n_unique("x"), pl.Int64),
        "mean": (dp.mean("x", bounds), pl.Datetime("us") if kind == "date" else same),
        "median": (dp.median("x", bounds), ranked),
        "q": (dp.quantile("x", 0.9, bounds), ranked),
        "q5": (dp.quantile("x", [0.1, 0.3, 0.5, 0.7, 0.9], bounds), ranked),
        "least": (dp.min("x", bounds), ranked),
        "most": (dp.max("x", bounds), ranked),
    }
    spread = pl.Duration(getattr(dtype, "time_unit", None) or "us") if kind in TIMES else pl.Float64
    asked["std"] = (dp.std("x", bounds), spread)
    if kind not in ("date", "datetime"):
        asked["total"] = (dp.sum("x", bounds), dtype if kind == "duration" else whole)
        asked["per_unit"] = (
            dp.sum("x", unit_bounds=bounds or (0, 1)),
            dtype if kind == "duration" else whole,
        )
    if kind not in TIMES:
        asked["var"] = (dp.var("x", bounds), pl.Float64)
        asked |= {verb: (shape, pl.Float64) for verb, shape in shapes("x", bounds).items()}
        if kind != "boolean":  # the sum of its values is the only one that it has
            asked["ratio"] = (dp.ratio(dp.sum("x", bounds), dp.sum("x", (0, 7))), pl.Float64)
        asked["geometric"] = (dp.geometric_mean("x", (0.5, 100)), pl.Float64)
    return asked


def columns(kind):
    """The released columns, each with its type."""
    return {
        name: dtype for n, (made, dtype) in aggregates(kind).items() for name, _ in made.columns(n)
    }


def rows_of(kind, *, without=(), empty=False):
    dtype, found, _ = KINDS[kind]
    rows = [
        (i // 2, "abc"[i % 3], found[i % len(found)]) for i in range(24) if i // 2 not in without
    ]
    return pl.DataFrame(
        [] if empty else rows, {"id": pl.Int64, "g": pl.String, "x": dtype}, orient="row"
    )


def brought(table, engine):
    return (
        table.lazy() if engine == "lazy" else table.to_arrow().to_pandas(types_mapper=pd.ArrowDtype)
    )


def asked_of(table, kind, place):
    frame = dp.protect(table, unit="id", budget=dp.Budget(epsilon=1e9, delta=0.5))
    chosen = {name: aggregate for name, (aggregate, _) in aggregates(kind).items()}
    if place == "alone":
        return frame.bound(max_rows=3).agg(**chosen)
    keys = ["a", "b", "z"] if place == "listed" else None
    return frame.group_by("g", keys=keys, max_groups=2, max_rows_per_group=2, max_rows=3).agg(
        **chosen
    )


def inside(values, bounds):
    """Whether released values stay inside their bounds."""
    low, high = bounds
    return all(value is not None and low <= value <= high for value in values)


PLACES = {"alone": "laplace", "listed": "gaussian", "found": "laplace"}


@pytest.mark.filterwarnings("ignore:With .* rows in a group")  # the price is low
@pytest.mark.one_in(12)
@pytest.mark.parametrize(("kind", "place"), in_turn(KINDS, PLACES))
# too few units: one of the tables has none
@pytest.mark.filterwarnings("ignore:The released table is empty")
def test_every_aggregate_runs_to_the_end_whatever_the_rows(kind, place):
    """Of a table, a neighbour, and none; at a low price, so that every value is far from the truth.
    Groups that must be found are so at a high one."""
    epsilon, noise = 1000 if place == "found" else 0.1, PLACES[place]
    expected = columns(kind)
    for rows in (rows_of(kind), rows_of(kind, without=(3,)), rows_of(kind, empty=True)):
        query = asked_of(rows, kind, place)
        before = query.accuracy(epsilon=epsilon, delta=1e-6, noise=noise, assume_rows=50)
        assert before["error"].null_count() == 0
        assert before["column"].to_list() == list(expected)
        assert "unit" in str(query.explain())
        out = query.release(epsilon=epsilon, delta=1e-6, noise=noise, ci=0.9, fill=True)
        table = out.table
        if place == "listed":
            assert table["g"].to_list() == ["a", "b", "z"]
        if place == "alone":
            assert table.height == 1
        for name, dtype in expected.items():
            assert table.schema[name] == dtype, name
            assert table.schema[f"{name}_low"] == table.schema[f"{name}_high"] == dtype, name
            assert table[name].null_count() == 0
            assert (table[f"{name}_low"] <= table[name]).all(), name
            assert (table[name] <= table[f"{name}_high"]).all(), name
        bounds = KINDS[kind][2] or (0, 1)
        if kind == "date":  # the mean of dates is a time
            bounds = tuple(dt.datetime(day.year, day.month, day.day) for day in bounds)
        names = ["mean", "median", "q", "q5_0.1", "q5_0.9", "least", "most"]
        for column in (f"{name}{end}" for name in names for end in ("", "_low", "_high")):
            values = table[column].cast(pl.Datetime("us")) if kind == "date" else table[column]
            assert inside(values.to_list(), bounds), column
        after = out.accuracy()
        assert after["error"].null_count() == 0
        assert after.height == table.height * len(expected)
        assert (
            "95% margin of error"
            if table.height
            else "No number with a margin of error was released"
        ) in out.report()
        assert out.to_csv()
        assert "dpframe" in out._repr_html_()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("engine", ["pandas", "lazy"])
def test_the_same_types_from_every_kind_of_table(kind, engine):
    asked = asked_of(brought(rows_of(kind), engine), kind, "listed")
    out = asked.release(epsilon=1, ci=0.9).to_polars()
    assert {name: out.schema[name] for name in columns(kind)} == columns(kind)


def test_counts_are_signed():
    """At this price 200 counts of nothing are all at least 0 with probability below 2^-190."""
    frame = dp.protect(rows_of("integer", empty=True), unit="id", budget=dp.Budget(epsilon=1))
    query = frame.group_by(
        "g", keys=[str(i) for i in range(200)], max_groups=1, max_rows_per_group=1
    )
    out = query.agg(
        n=dp.count(), units=dp.count_units(), values=dp.count("x"), d=dp.n_unique("x")
    ).release(epsilon=0.1)
    assert all((out.table[name] < 0).any() for name in ("n", "units", "values", "d"))
