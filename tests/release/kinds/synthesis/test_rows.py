"""Synthetic rows look like those of the table:
as finely given, several for one unit, and all with a given value.
"""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import InvalidArgument, UnknownColumn
from dpframe.release.kinds.synthesis.row_layout import linked

PRICE = {"epsilon": 30.0, "delta": 1e-6}
FROM, TO = dt.datetime(2026, 3, 1), dt.datetime(2026, 5, 1)
ZONE = "America/Santiago"  # clocks skip a midnight in autumn


def visits(people=2000):
    """Person k has 1 + k % 4 rows, and one sex."""
    draw = np.random.default_rng(0)
    unit = np.repeat(np.arange(people), 1 + np.arange(people) % 4)
    days = draw.integers(0, 61, len(unit))
    minutes = [FROM + dt.timedelta(minutes=int(k)) for k in draw.integers(0, 61 * 1440, len(unit))]
    midnights = [FROM + dt.timedelta(days=int(k)) for k in days]
    return pl.DataFrame(
        {
            "person": [f"p{k}" for k in unit],
            "sex": np.where(unit % 3 == 0, "F", "M"),
            "height": 150.0 + unit % 3 * 20 + draw.integers(0, 20, len(unit)),
            "price": draw.gamma(2, 20, len(unit)).round(2),
            "share": draw.random(len(unit)),
            "mixed": np.where(draw.random(len(unit)) < 0.5, 3.0, 2.5),
            "midnight": midnights,
            "minute": minutes,
            "zoned": pl.Series(midnights).dt.replace_time_zone(ZONE),
            "month": [dt.date(2026, int(k), 1) for k in draw.integers(1, 7, len(unit))],
            "day": [day.date() for day in midnights],
            "stay": [dt.timedelta(days=int(k)) for k in days],
            "shift": [dt.timedelta(hours=int(k)) for k in days],
            "paid": pl.Series([Decimal(int(k)) / 4 for k in days], dtype=pl.Decimal(10, 2)),
        }
    )


BOUNDS = {
    **{
        "height": (100, 250),
        "price": (0, 200),
        "share": (0, 1),
        "mixed": (0, 8),
        "zoned": (FROM.date(), TO.date()),
    },
    **{"midnight": (FROM, TO), "minute": (FROM, TO), "day": (FROM.date(), TO.date())},
    "month": (dt.date(2026, 1, 1), dt.date(2026, 6, 30)),
    **dict.fromkeys(("stay", "shift"), (dt.timedelta(0), dt.timedelta(61))),
    "paid": (0, 20),
}


def asked(table, **more):
    frame = dp.protect(table, unit="person", budget=dp.Budget(epsilon=1000, delta=0.1))
    said = {
        "keys": {"sex": ["F", "M"]},
        "bounds": BOUNDS,
        "workload": "1-way",
        "max_rows": 4,
        **more,
    }
    return frame.synthesize(**said)


@pytest.fixture(scope="module")
def out():
    work = [("sex", "height"), *BOUNDS]
    return asked(
        visits(), per_unit=["sex"], workload=[(n,) if isinstance(n, str) else n for n in work]
    ).release(**PRICE)


def test_values_are_given_as_finely_as_in_the_table(out):
    rows = out.table
    assert (rows["height"] % 1 == 0).all()
    assert rows["price"].round(2).equals(rows["price"])
    assert not rows["price"].round(1).equals(rows["price"])
    assert not rows["share"].round(4).equals(rows["share"])
    assert rows["mixed"].round(1).equals(rows["mixed"])
    for name, every in (("midnight", "1d"), ("minute", "1m"), ("zoned", "1d"), ("month", "1mo")):
        assert (rows[name].dt.truncate(every) == rows[name]).mean() > 0.99, name
    assert not rows["minute"].dt.truncate("1h").equals(rows["minute"])
    assert rows["day"].n_unique() > 50
    for name, every in (("stay", dt.timedelta(1)), ("shift", dt.timedelta(hours=1))):
        assert (
            rows[name].dt.total_microseconds() % (every // dt.timedelta(microseconds=1)) == 0
        ).mean() > 0.99, name
    assert rows["stay"].n_unique() > 30
    assert (rows["shift"].dt.total_hours() % 24 > 0).mean() > 0.5
    assert rows.schema["paid"] == pl.Decimal(10, 2)
    assert not rows["paid"].cast(float).round(1).equals(rows["paid"].cast(float))
    for name, (low, high) in BOUNDS.items():
        values = rows[name].dt.date() if name == "zoned" else rows[name]
        assert values.is_between(low, high).all(), name
    assert rows.null_count().sum_horizontal().item() == 0


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_decimals_come_back_as_decimals(kind):
    """Of keys and of bins; bounds beyond what the type holds end where it ends."""
    paid = pl.Series([Decimal("0.25"), Decimal("99.99")] * 50, dtype=pl.Decimal(4, 2))
    table = pl.DataFrame({"person": range(100), "paid": paid, "rate": paid})
    table = table if kind == "polars" else table.to_arrow()
    said = {
        "keys": {"rate": [0.25, 99.99]},
        "bounds": {"paid": (0, 10**9)},
        "rows": 50,
        "max_rows": 1,
    }
    out = asked(table, **said, columns=["paid", "rate"]).release(**PRICE)
    rows = pl.DataFrame(out.table)
    assert rows.schema == {"paid": pl.Decimal(4, 2), "rate": pl.Decimal(4, 2)}
    assert set(rows["rate"]) <= {Decimal("0.25"), Decimal("99.99")}
    assert rows.null_count().sum_horizontal().item() == 0
    assert all(isinstance(value, Decimal) for value in out.to_pandas()["paid"])


@pytest.mark.parametrize(
    "first", [dt.date(9999, 12, 1), dt.date(9999, 12, 31), dt.date(2026, 1, 1)]
)
def test_dates_may_reach_the_last_day(first):
    table = pl.DataFrame({"person": range(100), "until": [dt.date(9999, 12, 31), first] * 50})
    rows = (
        asked(table, keys=None, bounds={"until": (first, dt.date(9999, 12, 31))}, max_rows=1)
        .release(**PRICE)
        .table
    )
    assert rows["until"].is_between(first, dt.date(9999, 12, 31)).all()
    assert rows.height > 50


def test_so_much_noise_that_nothing_is_known_leaves_values_as_fine_as_their_type():
    rows = (
        asked(visits(20), rows=500, columns=["height"], keys=None, bounds={"height": (0, 250)})
        .release(epsilon=0.01, delta=1e-9)
        .table
    )
    assert rows["height"].round(3).equals(rows["height"]) is False


def test_units_have_as_many_rows_as_in_the_table(out):
    rows, truth = out.table, visits()
    assert rows.columns[0] == "person"
    assert rows.schema["person"] == pl.String
    sizes = [
        t.group_by("person").len().group_by("len").len(name="n").sort("len") for t in (rows, truth)
    ]
    assert sizes[0]["len"].to_list() == [1, 2, 3, 4]
    assert np.allclose(sizes[0]["n"], sizes[1]["n"], atol=60)
    assert rows.group_by("person").agg(pl.col("sex").n_unique())["sex"].max() == 1
    assert ("rows of person",) in out.marginals


def test_rows_alone_have_no_unit():
    assert asked(visits(50), columns=["sex"], bounds=None).release(**PRICE).table.columns == ["sex"]


def test_the_unit_of_pandas_keeps_its_type():
    table = pd.DataFrame({"person": np.repeat(np.arange(300), 2), "yes": True})
    frame = dp.protect(table, unit="person", budget=dp.Budget(epsilon=1000, delta=0.1))
    rows = frame.synthesize(max_rows=3, per_unit=True, rows=100).release(**PRICE).table
    assert rows.dtypes.equals(table.dtypes)
    assert len(rows) == 100


def test_linked_rows_are_cut_into_runs():
    codes = np.array([[0, 1], [1, 1], [0, 1], [1, 0], [0, 2], [1, 2], [1, 2]], np.int32)
    rows, unit = linked(codes, 1, [0], np.random.default_rng(1))
    assert sorted(np.bincount(unit).tolist()) == [1, 1, 2, 3]
    for number in set(unit):
        assert len({tuple(row) for row in rows[unit == number]}) == 1
        assert (rows[unit == number][:, 1] + 1 == (unit == number).sum()).all()
    none, nobody = linked(codes[:0], 1, [0], np.random.default_rng(1))
    assert len(none) == len(nobody) == 0


def test_more_rows_with_a_given_value(out):
    rows = out.sample(3000, given={"sex": "F", "midnight": FROM + dt.timedelta(days=30)})
    assert rows.columns == out.table.columns
    assert rows["sex"].unique().to_list() == ["F"]
    assert rows["midnight"].unique().to_list() == [FROM + dt.timedelta(days=30)]
    truth = out.table.filter(sex="F")["height"].mean()
    assert abs(rows["height"].mean() - truth) < 3
    assert abs(out.sample(3000, given={"height": 201})["sex"].eq("M").mean() - 1) < 0.1
    assert not out.sample(50).equals(out.sample(50))


@pytest.mark.parametrize(
    ("error", "words", "said"),
    [
        (InvalidArgument, "whole number", {"rows": 0}),
        (InvalidArgument, "dict", {"rows": 5, "given": "sex"}),
        (UnknownColumn, "nope", {"rows": 5, "given": {"nope": 1}}),
        (InvalidArgument, "'sex'", {"rows": 5, "given": {"sex": "X"}}),
        (InvalidArgument, "'price'", {"rows": 5, "given": {"price": 900}}),
        (InvalidArgument, "'price'", {"rows": 5, "given": {"price": None}}),
    ],
)
def test_a_sample_that_cannot_be_is_refused(out, error, words, said):
    with pytest.raises(error, match=words):
        out.sample(**said)
