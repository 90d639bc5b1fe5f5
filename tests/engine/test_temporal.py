"""Dates, times and durations: whole ticks inside, times again in what is released."""

from __future__ import annotations

import datetime as dt
import random
import statistics
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.engine.backends import backend_of
from dpframe.engine.stages import lower
from dpframe.errors import DpFrameError, InvalidArgument, InvalidBounds, MissingBounds, WrongType
from dpframe.plan import ticks
from inside import question_of, step_of
from strategies import answer, check_claims
from tiers import in_turn

DAY, TIME, LONG = dt.date, dt.datetime, dt.timedelta
CERTAIN = 1e9  # so large a price that the noise is zero but for a chance below 1e-400
SPAN = {
    "day": (DAY(2019, 1, 1), DAY(2022, 1, 1)),
    "time": (TIME(2019, 1, 1), TIME(2022, 1, 1)),
    "long": (LONG(0), LONG(2)),
}
UNITS = ["ms", "us", "ns"]


def zoned(bounds, zone):
    return tuple(
        b.replace(tzinfo=ZoneInfo(zone)) if zone and isinstance(b, TIME) else b for b in bounds
    )


def made(rows, unit="us", zone=None):
    """A table of (unit, date, time, duration)."""
    schema = {"u": pl.Int64, "day": pl.Date, "time": pl.Datetime("us"), "long": pl.Duration("us")}
    frame = pl.DataFrame(rows, schema, orient="row")
    times = (
        pl.col("time")
        .dt.cast_time_unit(unit)
        .dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    )
    return frame.with_columns(times, pl.col("long").dt.cast_time_unit(unit))


def brought(frame, kind):
    match kind:
        case "pandas":
            return frame.to_arrow().to_pandas(types_mapper=pd.ArrowDtype)
        case "lazy":
            return frame.lazy()
        case "pyarrow":
            return frame.to_arrow()
    return frame


def drawn(rng, unit, many):
    start = TIME(2018, 6, 1)
    moments = [start + LONG(milliseconds=rng.randrange(5 * 365 * 86_400_000)) for _ in range(many)]
    heaped = rng.choice([None, TIME(1800, 1, 1), TIME(2200, 1, 1)])
    return [
        (
            unit,
            rng.choice([(heaped or m).date(), m.date(), None]),
            rng.choice([heaped or m, m, None]),
            rng.choice(
                [
                    LONG(seconds=rng.randint(-100_000, 300_000)),
                    LONG(days=rng.choice([-9, 99])),
                    None,
                ]
            ),
        )
        for m in moments
    ]


# Values and types


@pytest.mark.one_in(3)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_units_and_zones_are_preserved(kind, unit, zone):
    rng = random.Random(f"{unit} {zone}")
    rows = [
        (i, TIME(2020, 1, 1) + LONG(days=rng.randrange(700), milliseconds=rng.randrange(10**7)))
        for i in range(40)
    ]
    rows = [(i, m.date(), m, LONG(milliseconds=rng.randrange(10**8))) for i, m in rows]
    frame = made(rows, unit, zone)
    private = dp.protect(brought(frame, kind), unit="u", budget=dp.Budget(epsilon=1e12))
    span = {name: zoned(bounds, zone) for name, bounds in SPAN.items()}
    aggregates = {
        f"{verb}_{name}": getattr(dp, verb)(name, bounds=bounds)
        for name, bounds in span.items()
        for verb in ("mean", "std", "median", "min", "max")
    }
    query = private.agg(max_rows=1, sum_long=dp.sum("long", span["long"]), **aggregates)
    out = query.release(epsilon=CERTAIN).to_polars()
    time, long = pl.Datetime(unit, zone), pl.Duration(unit)
    types = {
        **{"sum_long": long, "mean_day": pl.Datetime("us"), "std_day": pl.Duration("us")},
        **{f"{verb}_day": pl.Date() for verb in ("median", "min", "max")},
        **{f"{verb}_time": time for verb in ("mean", "median", "min", "max")},
        **{f"{verb}_long": long for verb in ("mean", "std", "median", "min", "max")},
        "std_time": long,
    }
    assert dict(out.schema) == types
    row = out.row(0, named=True)
    days = [TIME(m.year, m.month, m.day) for _, m, _, _ in rows]
    times, longs = [_at_utc(t) for t in frame["time"]], [x for *_, x in rows]
    row = {name: _at_utc(value) for name, value in row.items()}
    near = LONG(seconds=10)  # the grid has 2^24 steps or more over three years
    assert abs(row["mean_day"] - _mean(days)) < near
    assert abs(row["mean_time"] - _mean(times)) < near
    assert abs(row["std_day"] - _std(days)) < 30 * near
    assert abs(row["std_time"] - _std(times)) < 30 * near
    assert abs(row["sum_long"] - sum(longs, LONG(0))) < near
    assert abs(row["mean_long"] - sum(longs, LONG(0)) / len(longs)) < near
    step = (SPAN["time"][1] - SPAN["time"][0]) / 1023
    assert abs(row["min_time"] - min(times)) <= step
    assert abs(row["max_day"] - max(days).date()) <= LONG(days=2)
    assert (
        sorted(days)[18].date() - LONG(days=3)
        <= row["median_day"]
        <= sorted(days)[21].date() + LONG(days=3)
    )


def _at_utc(value):
    """Python subtracts two times of one zone by their clocks, not by their moments."""
    return value.astimezone(dt.UTC) if isinstance(value, TIME) and value.tzinfo else value


def _mean(times):
    return times[0] + sum((t - times[0] for t in times), LONG(0)) / len(times)


def _std(times):
    return LONG(seconds=statistics.stdev((t - times[0]).total_seconds() for t in times))


def test_the_kind_of_the_user_has_times_too(kind):
    frame = made([(1, DAY(2020, 5, 1), TIME(2020, 5, 1, 12), LONG(hours=3))] * 3)
    private = dp.protect(brought(frame, kind), unit="u", budget=dp.Budget(epsilon=1e12))
    out = private.agg(
        max_rows=3,
        t=dp.mean("time", SPAN["time"]),
        s=dp.sum("long", SPAN["long"]),
        d=dp.max("day", SPAN["day"]),
    ).release(epsilon=CERTAIN)
    if kind == "pandas":
        assert out.table["t"].dtype.kind == "M"
        assert out.table["s"].dtype.kind == "m"
    elif kind == "pyarrow":
        assert str(out.table.schema.field("d").type) == "date32[day]"
    assert abs(out.to_polars()["s"].item() - LONG(hours=9)) < LONG(seconds=1)
    value = private.sum("long", SPAN["long"], max_rows=3).release(epsilon=CERTAIN).value
    assert abs(value - LONG(hours=9)) < LONG(seconds=1)
    errors = out.accuracy()
    assert len(errors) == 3


@pytest.mark.parametrize("unit", UNITS)
def test_what_is_released_stays_inside_its_bounds_and_can_be_shown(unit):
    frame = made([(1, DAY(2020, 1, 1), TIME(2020, 1, 1), LONG(1))], unit)
    private = dp.protect(frame, unit="u", budget=dp.Budget(epsilon=1e12))
    for _ in range(4):
        out = private.agg(
            max_rows=1,
            m=dp.mean("time", SPAN["time"]),
            d=dp.mean("day", SPAN["day"]),
            q=dp.median("time", SPAN["time"]),
            s=dp.sum("long", (LONG(0), LONG(days=100 if unit == "ns" else 10**8))),
        ).release(epsilon=1e-3, fill=True)
        row = out.table.row(0, named=True)
        for name in "mdq":
            assert SPAN["time"][0] <= TIME.fromisoformat(str(row[name])) <= SPAN["time"][1]
        assert isinstance(row["s"], LONG)
        out.to_pandas(), out.to_arrow(), repr(out), out.accuracy()


# Neighbours


def _asks(rng, rows_as_unit):
    zone, unit = rng.choice([None, "Europe/Berlin"]), rng.choice(UNITS)
    bounds = {
        "day": rng.choice(
            [SPAN["day"], (DAY(1950, 1, 1), DAY(1960, 1, 1)), (DAY(2020, 1, 1), DAY(2020, 1, 1))]
        ),
        "time": zoned(rng.choice([SPAN["time"], (TIME(2020, 3, 1), TIME(2020, 3, 1, 0, 1))]), zone),
        "long": rng.choice([SPAN["long"], (LONG(-3), LONG(1)), (LONG(hours=5), LONG(hours=6))]),
    }
    offered = {
        f"{verb}_{name}": getattr(dp, verb)(name, bounds=bounds[name])
        for name in bounds
        for verb in ("mean", "std")
    }
    offered |= {
        "sum": dp.sum("long", bounds=bounds["long"]),
        "n": dp.count("day"),
        "distinct": dp.n_unique("time"),
    }
    if not rows_as_unit:
        offered["total"] = dp.sum("long", unit_bounds=bounds["long"])
    chosen = {name: offered[name] for name in rng.sample(sorted(offered), 4)}
    steps = rng.sample(["clip", "fill", "filter", "bins", "rename"], 2)
    clip = (bounds["time"], rng.choice([(LONG(0), None), (LONG(-1), LONG(1))]))
    limits = {"max_rows": rng.randint(1, 5)}
    by = rng.choice([None, "bin"])
    edges = [DAY(2018, 1, 1), DAY(2019, 6, 1), DAY(2021, 1, 1)]

    def ask(rows, kind, **whose):
        frame = dp.protect(brought(made(rows, unit, zone), kind), **whose)
        for step in steps:
            if step == "clip":
                frame = frame.clip("time", *clip[0]).clip("long", *clip[1])
            elif step == "fill":
                frame = frame.fill_null(
                    {"long": LONG(hours=1), "day": DAY(2020, 2, 2), "time": bounds["time"][0]}
                )
            elif step == "filter":
                frame = frame.filter((dp.col("long") > LONG(0)) | dp.col("long").is_null())
        if rows_as_unit:
            return frame.agg(**chosen)
        if by is not None:
            frame = frame.cut("day", edges, into="bin", right=False)
            return frame.group_by("bin", max_groups=2, max_rows_per_group=2, **limits).agg(**chosen)
        return frame.agg(**limits, **chosen)

    return ask


@pytest.mark.one_in(3)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("rows_as_unit", [False, True])
def test_one_unit_moves_totals_of_times_by_no_more_than_claimed(kind, relation, rows_as_unit):
    rng = random.Random(f"{kind} {relation} {rows_as_unit}")
    for _ in range(8):
        ask = _asks(rng, rows_as_unit)
        rows = [
            row for unit in range(4) for row in drawn(rng, unit, rng.choice([1, 2, 9]))
        ] + drawn(rng, None, 2)
        k = rng.choice([1, 2])
        other = rows[k:] if rows_as_unit else [row for row in rows if row[0] != 0]
        if relation == "replace":
            other = other + drawn(rng, 9, k if rows_as_unit else rng.randint(1, 9))
        whose = {"unit": dp.Rows(k) if rows_as_unit else "u", "neighbors": relation}
        check_claims(ask(rows, kind, **whose), ask(other, kind, **whose), salt=rng.getrandbits(64))


def test_sums_of_ticks_are_exact_where_the_grid_is():
    rng = random.Random(6)
    rows = [(i, None, None, LONG(seconds=rng.randint(-500, 900))) for i in range(300)]
    frame = made(rows).with_columns(
        pl.col("long").dt.total_seconds().mul(1000).cast(pl.Duration("ms"))
    )
    query = dp.protect(frame, unit="u").sum("long", bounds=(LONG(0), LONG(minutes=10)), max_rows=1)
    paid = question_of(query).allotments[0].total
    assert paid.grid.step == 1
    exact = sum(min(max(x, LONG(0)), LONG(minutes=10)).total_seconds() * 1000 for *_, x in rows)
    assert answer(query)[0][()] * paid.unit == exact
    assert query.sensitivity["long"].l1 == 600_000


@pytest.mark.parametrize(
    "dtype", [pl.Datetime("ns"), pl.Datetime("us"), pl.Duration("ns"), pl.Duration("ms"), pl.Date]
)
def test_totals_of_far_times_never_wrap(dtype):
    first, last = (-(2**31), 2**31 - 1) if dtype == pl.Date else (-(2**63) + 1, 2**63 - 1)
    unit = "long" if isinstance(dtype, pl.Duration) else "time"
    far = {
        "long": (LONG(days=-100_000), LONG(days=100_000)),
        "time": (TIME(1680, 1, 1), TIME(2260, 1, 1)),
    }[unit]
    for value in (first, last):
        frame = pl.DataFrame(
            {
                "u": range(400),
                "x": pl.Series([value] * 400).cast(pl.Int32 if dtype == pl.Date else pl.Int64),
            }
        )
        frame = frame.with_columns(pl.col("x").cast(dtype))
        query = dp.protect(frame, unit="u").agg(max_rows=2, m=dp.mean("x", far), q=dp.count("x"))
        total, count = (
            answer(query)[i][()] * p.total.unit for i, p in enumerate(question_of(query).allotments)
        )
        low, high = (ticks(x, question_of(query).table.columns["x"].domain.dtype, "") for x in far)
        if count:  # a time outside of the calendar is missing
            assert count == 400
            grid = question_of(query).allotments[0].total.grid
            wanted = 400 * (Fraction(high if value > 0 else low) - grid.centre)
            assert abs(total - wanted) <= abs(wanted) / 2**9
        else:
            assert total == 0


# Steps


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_clip_and_fill_are_those_of_python(kind, unit, zone):
    rng = random.Random(f"{unit} {zone}")
    rows = [row for i in range(5) for row in drawn(rng, i, 6)]
    span = zoned(SPAN["time"], zone)
    private = dp.protect(brought(made(rows, unit, zone), kind), unit="u")
    frame = (
        private.clip("time", *span)
        .clip("day", None, DAY(2020, 1, 1))
        .clip("long", LONG(hours=1), LONG(hours=2))
    )
    frame = frame.fill_null("long", LONG(hours=9)).with_columns(z=dp.col("time").fill_null(span[0]))
    table = step_of(frame).table
    ids = {name: table.columns[name].id for name in ("day", "time", "long", "z")}
    found = lower(step_of(frame), set(ids.values())).to_native().collect()
    clean = made(rows, unit, zone)
    inside = [None if t is None else min(max(t, span[0]), span[1]) for t in clean["time"]]
    assert found[ids["time"]].to_list() == inside
    assert found[ids["z"]].to_list() == [span[0] if t is None else t for t in inside]
    assert found[ids["day"]].to_list() == [
        None if d is None else min(d, DAY(2020, 1, 1)) for _, d, _, _ in rows
    ]
    clipped = [
        LONG(hours=9) if x is None else min(max(x, LONG(hours=1)), LONG(hours=2)) for *_, x in rows
    ]
    assert found[ids["long"]].to_list() == clipped
    assert {name: found[i].dtype for name, i in ids.items()} == {
        "day": pl.Date,
        "time": pl.Datetime(unit, zone),
        "long": pl.Duration(unit),
        "z": pl.Datetime(unit, zone),
    }
    facts = {name: table.columns[name].domain for name in ids}
    assert facts["day"].bounds is None
    assert facts["long"].bounds[1] == ticks(LONG(hours=9), facts["long"].dtype, "")
    assert not facts["z"].nullable
    assert not facts["long"].nullable
    assert frame.mean("long", max_rows=1).sensitivity["long.sum"].l1 > 0  # bounds were carried


@pytest.mark.parametrize("right", [True, False])
def test_cut_of_times_is_that_of_pandas(kind, right):
    rng = random.Random(f"{kind} {right}")
    edges = [TIME(2019, 1, 1), TIME(2020, 1, 1, 12), TIME(2021, 1, 1)]
    rows = [row for i in range(30) for row in drawn(rng, i, 1)]
    rows += [(99 + i, e.date(), e, LONG(i)) for i, e in enumerate(edges)]
    private = dp.protect(brought(made(rows), kind), unit="u").cut(
        "time", edges, right=right, into="bin"
    )
    found = answer(private.group_by("bin", max_groups=1).count_units())[0]
    cut = pd.cut(
        pd.Series([t for _, _, t, _ in rows], dtype="datetime64[us]"),
        edges,
        right=right,
        labels=["a", "b"],
    )
    assert list(found.values()) == [int((cut == label).sum()) for label in "ab"]
    text = "2019-01-01 00:00:00, 2020-01-01 12:00:00"
    assert next(iter(found)) == ((f"({text}]" if right else f"[{text})"),)
    days = private.histogram(
        "day", bins=[DAY(2019, 1, 1), DAY(2020, 1, 1), DAY(2021, 1, 1)], max_rows=1
    )
    known = [d for _, d, _, _ in rows if d is not None]
    assert list(answer(days)[0].values()) == [
        sum(DAY(2019, 1, 1) <= d < DAY(2020, 1, 1) for d in known),
        sum(DAY(2020, 1, 1) <= d <= DAY(2021, 1, 1) for d in known),
    ]
    longs = private.histogram("long", bins=[LONG(0), LONG(1), LONG(9)], max_rows=1)
    assert sum(answer(longs)[0].values()) == sum(
        x is not None and LONG(0) <= x <= LONG(9) for *_, x in rows
    )


def test_features_of_a_unit_can_be_times(kind):
    rows = [
        (1, DAY(2020, 1, 1), TIME(2020, 1, 1), LONG(hours=1)),
        (1, DAY(2020, 3, 1), TIME(2020, 3, 1), LONG(hours=5)),
        (2, None, None, LONG(hours=9)),
    ]
    private = dp.protect(brought(made(rows), kind), unit="u", neighbors="replace")
    units = private.per_unit(
        first=dp.min("day"),
        spent=dp.sum("long"),
        last=dp.last("long", by="time"),
        little=dp.sum("long", (LONG(0), LONG(hours=2))),
    )
    query = units.agg(
        n=dp.count("first"),
        s=dp.sum("spent", (LONG(0), LONG(1))),
        last=dp.sum("last", SPAN["long"]),
        k=dp.sum("little", SPAN["long"]),
    )
    values = [
        int(answer(query)[i][()] * p.total.unit)
        for i, p in enumerate(question_of(query).allotments)
    ]
    assert values[0] == 1
    assert [round(v / 3.6e9, 2) for v in values[1:]] == [15, 5, 5]
    # exactly one row each: the width of the bounds
    assert query.sensitivity["s"].l1 >= 86_400_000_000
    assert query.sensitivity["s"].l1 < 86_400_010_000


# What is typed


def test_times_of_numpy_and_pandas_are_times():
    frame = dp.protect(made([]), unit="u")
    for low, high in (
        (np.datetime64("2019-01-01"), np.datetime64("2022-01-01")),
        (np.datetime64("2019-01-01", "ns"), np.datetime64("2022-01-01", "s")),
        (pd.Timestamp("2019-01-01"), pd.Timestamp("2022-01-01 00:00:00.000000001")),
    ):
        query = frame.mean("time", bounds=(low, high), max_rows=1)
        assert query.sensitivity == frame.mean("time", bounds=SPAN["time"], max_rows=1).sensitivity
    for low, high in (
        (np.timedelta64(0, "D"), np.timedelta64(2, "D")),
        (pd.Timedelta(0), pd.Timedelta("2 days")),
    ):
        query = frame.sum("long", bounds=(low, high), max_rows=1)
        assert query.sensitivity == frame.sum("long", bounds=SPAN["long"], max_rows=1).sensitivity
    days = frame.mean(
        "day", bounds=(np.datetime64("2019-01-01"), pd.Timestamp("2022-01-01").date()), max_rows=1
    )
    assert days.sensitivity == frame.mean("day", bounds=SPAN["day"], max_rows=1).sensitivity
    # a date is its midnight
    assert frame.mean("time", bounds=SPAN["day"], max_rows=1).sensitivity["time.sum"].l1 > 0


@pytest.mark.parametrize(
    ("ask", "error"),
    [
        (lambda f: f.sum("day", SPAN["day"], max_rows=1), WrongType),
        (lambda f: f.sum("time", SPAN["time"], max_rows=1), WrongType),
        (lambda f: f.var("long", SPAN["long"], max_rows=1), WrongType),
        (lambda f: f.mean("day", (0, 5), max_rows=1), WrongType),
        (lambda f: f.mean("u2", SPAN["day"], max_rows=1), WrongType),
        (lambda f: f.mean("day", SPAN["long"], max_rows=1), WrongType),
        (lambda f: f.mean("day", (TIME(2019, 1, 1, 5), TIME(2020, 1, 1)), max_rows=1), WrongType),
        (lambda f: f.mean("time", zoned(SPAN["time"], "UTC"), max_rows=1), WrongType),
        (lambda f: f.sum("long", (LONG(0), LONG(microseconds=5)), max_rows=1), WrongType),
        (lambda f: f.mean("day", max_rows=1), MissingBounds),
        (lambda f: f.mean("time", (TIME(2020, 1, 1), DAY(2021, 1, 1)), max_rows=1), InvalidBounds),
        (lambda f: f.mean("time", (TIME(2020, 1, 1), 5), max_rows=1), InvalidBounds),
        (lambda f: f.mean("time", (TIME(2020, 1, 1), TIME(2019, 1, 1)), max_rows=1), InvalidBounds),
        (lambda f: f.mean("time", (pd.NaT, TIME(2019, 1, 1)), max_rows=1), InvalidBounds),
        (
            lambda f: f.mean("time", (TIME(2020, 1, 1), zoned(SPAN["time"], "UTC")[1]), max_rows=1),
            InvalidBounds,
        ),
        (lambda f: f.clip("day", 0, 5), WrongType),
        (lambda f: f.clip("u2", *SPAN["day"]), WrongType),
        (lambda f: f.fill_null("long", 5), WrongType),
        (lambda f: f.fill_null("time", 5), WrongType),
        (lambda f: f.cut("day", [0, 5, 9]), WrongType),
        (lambda f: f.cut("u2", [*SPAN["day"]]), WrongType),
        (lambda f: f.cut("day", [DAY(2020, 1, 1), 5]), InvalidArgument),
        (lambda f: f.cut("day", [DAY(2020, 1, 1), DAY(2019, 1, 1)]), InvalidArgument),
        (lambda f: f.filter(dp.col("long") > DAY(2020, 1, 1)), WrongType),
    ],
)
def test_what_does_not_go_with_a_time_is_refused(ask, error):
    frame = dp.protect(made([], "ms"), unit="u").with_columns(u2=dp.col("u") * 2)
    with pytest.raises(error):
        ask(frame)


def test_what_does_not_go_with_a_time_is_answered_with_what_does():
    zone = pl.DataFrame({"u": [1]}).with_columns(
        at=pl.lit(TIME(2020, 1, 1)).dt.replace_time_zone("Europe/Berlin")
    )
    frame, there = dp.protect(made([]), unit="u"), dp.protect(zone, unit="u")
    utc = zoned(SPAN["time"], "UTC")
    for ask, words in (
        (lambda: frame.sum("day", SPAN["day"], max_rows=1), "Ask for mean('day')."),
        (lambda: frame.var("long", SPAN["long"], max_rows=1), "Ask for std('long')."),
        (lambda: frame.mean("time", utc, max_rows=1), "datetime.datetime(2026, 1, 31, 12)."),
        (lambda: there.mean("at", SPAN["time"], max_rows=1), "12, tzinfo=datetime.timezone.utc)."),
        (
            lambda: there.group_by("at", keys=[SPAN["time"][0]]),
            "12, tzinfo=datetime.timezone.utc).",
        ),
        (lambda: there.filter(dp.col("at") > SPAN["time"][0]), "tzinfo=datetime.timezone.utc."),
        (
            lambda: frame.filter(dp.col("day") > "2020-01-01"),
            "datetime.date(2026, 1, 31), or cast the texts before: dp.col('x').cast('date').",
        ),
        (lambda: frame.filter(dp.col("long") > "1 day"), "datetime.timedelta(hours=1)."),
    ):
        with pytest.raises(WrongType) as caught:
            ask()
        assert str(caught.value).endswith(words)


def test_a_derivation_shows_times():
    frame = dp.protect(made([]), unit="u").clip("day", *SPAN["day"])
    shown = str(frame.agg(max_rows=1, m=dp.mean("day"), q=dp.max("time", SPAN["time"])).explain())
    for text in ("2019-01-01", "2022-01-01", "from 2019-01-01 00:00:00 to 2022-01-01 00:00:00"):
        assert text in shown
    assert "day: in [2019-01-01, 2022-01-01]" in shown
    assert "17897" not in shown


def test_a_named_release_of_times_is_kept():
    budget = dp.Budget(epsilon=2)
    query = dp.protect(made([(1, None, None, LONG(1))]), unit="u", budget=budget).mean(
        "time", SPAN["time"], max_rows=1
    )
    first = query.release(epsilon=1, name="when", fill=True)
    assert query.release(epsilon=1, name="when", fill=True).value == first.value
    assert isinstance(first.value, TIME)
    with pytest.raises(DpFrameError):
        query.release(epsilon=0.5, name="when")


@pytest.mark.parametrize("unit", UNITS)
def test_a_date_among_keys_stands_for_its_midnight_as_in_bounds(kind, unit):
    """A time one second from midnight is another key than the date.
    In a zone, midnight is that of the zone.
    """
    first, second = TIME(2020, 1, 1), TIME(2020, 1, 2)
    rows = [
        (i, None, time, None)
        for i, time in enumerate([first, first, second, second + LONG(seconds=1)])
    ]
    for zone in (None, "Europe/Berlin"):
        private = dp.protect(brought(made(rows, unit, zone), kind), unit="u")
        asked = private.group_by(
            "time", keys=[first.date(), second.date()], max_groups=1, max_rows_per_group=1
        )
        keys = [key.replace(tzinfo=ZoneInfo(zone)) if zone else key for key in (first, second)]
        assert answer(asked.count())[0] == {(keys[0],): 2, (keys[1],): 1}
        assert private.mode("time", keys=[first.date()], max_rows=1)
        with pytest.raises(InvalidArgument, match="twice"):
            private.histogram(
                "time", keys=[first.date(), keys[0]], max_groups=1, max_rows_per_group=1
            )
    days = dp.protect(brought(made([(1, first.date(), None, None)]), kind), unit="u")
    midnight = days.group_by("day", keys=[first], max_groups=1, max_rows_per_group=1)
    assert answer(midnight.count())[0] == {(first.date(),): 1}
    with pytest.raises(WrongType, match=r"datetime\.date"):
        days.group_by("day", keys=[first + LONG(hours=1)], max_groups=1, max_rows_per_group=1)


# Clocks

_YEARS = (
    1,
    2,
    1850,
    1970,
    2020,
    2037,
    2038,
    2071,
    2099,
    2100,
    2101,
    2172,
    2399,
    2400,
    2500,
    4000,
    9998,
)
_ZONES = (
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Europe/Dublin",
    "UTC",
)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("zone", "kind"), in_turn(_ZONES, ["polars", "lazy", "pyarrow", "duckdb"]))
def test_clocks_change_in_all_years_by_the_rule_of_their_zone(zone, kind):
    """Polars lists clock changes up to 2099, and then had winter time;
    Python and DuckDB continue the rule.
    """
    days = [(1, 1), (3, 10), (3, 28), (3, 31), (4, 5), (7, 1), (10, 5), (10, 28), (11, 5), (12, 31)]
    times = [TIME(y, m, d, hour, 30) for y in _YEARS for m, d in days for hour in (0, 6, 15, 23)][
        8:
    ]
    local = [t.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)) for t in times]
    wanted = [
        None,
        *(
            ((t.year * 100 + t.month) * 100 + t.day) * 10_000 + t.hour * 100 + t.minute
            for t in local
        ),
    ]
    moments = (
        pl.Series([None, *times], dtype=pl.Datetime("us"))
        .dt.replace_time_zone("UTC")
        .dt.convert_time_zone(zone)
    )
    frame = pl.DataFrame({"u": range(len(moments)), "t": moments})
    if kind == "duckdb":
        connection = pytest.importorskip("duckdb").connect()
        connection.execute(f"SET TimeZone = '{zone}'")
        connection.register("brought", frame.to_arrow())
        table = connection.sql("SELECT * FROM brought")
    else:
        table = brought(frame, kind)
    part = dp.col("t").dt
    day = (part.year() * 100 + part.month()) * 100 + part.day()
    step = step_of(
        dp.protect(table, unit=dp.Rows(1)).with_columns(
            c=day * 10_000 + part.hour() * 100 + part.minute()
        )
    )
    columns = [step.table.columns[name].id for name in ("u", "c")]
    rows = lower(step, frozenset(columns))
    (found,) = backend_of(rows).collect([rows])
    assert found.sort(columns[0])[columns[1]].to_list() == wanted


@pytest.mark.parametrize("unit", UNITS)
def test_clocks_of_nanoseconds_and_milliseconds_change_by_the_same_rule(unit):
    times = [TIME(y, 7, 1, 12) for y in (1700, 2020, 2099, 2100, 2250)] + [
        TIME(9000 if unit != "ns" else 2261, 7, 1, 12)
    ]
    moments = (
        pl.Series(times, dtype=pl.Datetime(unit))
        .dt.replace_time_zone("UTC")
        .dt.convert_time_zone("Europe/Berlin")
    )
    frame = dp.protect(pl.DataFrame({"u": range(6), "t": moments}), unit="u").with_columns(
        h=dp.col("t").dt.hour()
    )
    assert answer(frame.group_by("h", keys=[12, 13, 14], max_groups=1).count_units()) == [
        {(12,): 1, (13,): 0, (14,): 5}
    ]


# Days that not all engines have

_OUTSIDE = "SELECT unnest([-719163, -719162, -719162, 0, 2932896, 2932897, 100000000, NULL]) AS day"


@pytest.mark.parametrize("cast", ["d", "CAST(CASE WHEN day < 10000000 THEN d END AS TIMESTAMP)"])
def test_a_day_outside_of_the_years_1_to_9999_identifies_nobody_on_any_engine(cast):
    """It was a unit on some engines and not on others, so that totals differed."""
    duckdb, ibis = pytest.importorskip("duckdb"), pytest.importorskip("ibis")
    days = (
        f"SELECT {cast} AS d FROM (SELECT day, DATE '1970-01-01' + CAST(day AS INTEGER) AS d FROM "
        f"({_OUTSIDE}))"
    )
    connection, other = duckdb.connect(), ibis.duckdb.connect()
    other.raw_sql(f"CREATE TABLE t AS {days}")
    ticks = [-719163, -719162, -719162, 0, 2932896, 2932897, 100000000, None]
    held = pl.DataFrame({"d": pl.Series(ticks, dtype=pl.Int32).cast(pl.Date)})
    if cast != "d":
        held = held.with_columns(
            pl.when(pl.col("d").dt.year() < 20000).then(pl.col("d")).cast(pl.Datetime("us"))
        )
    for table in (held, held.lazy(), held.to_arrow(), connection.sql(days), other.table("t")):
        frame = dp.protect(table, unit="d")
        assert answer(frame.count_units()) == [{(): 3}]
        assert answer(frame.count(max_rows=2)) == [{(): 4}]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize(
    "ticks", [2**63 - 1, 2**62, -(2**62), 999_999_999 * 86_400_000, -999_999_999 * 86_400_000 - 1]
)
def test_a_duration_that_python_does_not_have_is_missing(unit, ticks):
    """A table with such a key could not be shown, and whether
    there was one depended on the rows.
    """
    rows = pl.DataFrame(
        {"u": range(300), "d": pl.Series([ticks] * 150 + [5] * 150).cast(pl.Duration(unit))}
    )
    inside = unit != "ms" or abs(ticks) == 999_999_999 * 86_400_000
    for table in (rows, rows.lazy(), rows.to_arrow()):
        frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=100, delta=1e-3))
        query = frame.group_by("d", max_groups=1, max_rows_per_group=1).count()
        out = query.release(epsilon=50, delta=1e-5)
        assert out.to_polars().height == 1 + inside
        assert "<table" in out._repr_html_()
        assert (
            "<table"
            in frame.top_k("d", 2, max_rows=1).release(epsilon=40, delta=1e-5)._repr_html_()
        )
        assert answer(dp.protect(table, unit="d").count_units()) == [{(): 1 + inside}]


@pytest.mark.parametrize(
    ("day", "zone"),
    [("9999-12-31T23:59:59", "Europe/Berlin"), ("0001-01-01T00:00:00", "America/New_York")],
)
@pytest.mark.parametrize("dtype", [pl.Datetime("us"), pl.Datetime("ms"), pl.String, pl.Date])
def test_a_time_at_the_end_of_the_calendar_gets_no_zone(day, zone, dtype):
    """The zone's clock showed a year that Python does not have, and a table with
    such a key could not be shown.
    """
    days = pl.Series([day] * 150 + ["2020-05-01T00:00:00"] * 150)
    cells = days if dtype == pl.String else days.str.to_datetime("%Y-%m-%dT%H:%M:%S").cast(dtype)
    for table in (
        rows := pl.DataFrame({"u": range(300), "d": cells}),
        rows.lazy(),
        rows.to_arrow(),
    ):
        frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=100, delta=1e-3))
        zoned = frame.with_columns(z=dp.col("d").cast(pl.Datetime("us", zone)))
        out = (
            zoned.group_by("z", max_groups=1, max_rows_per_group=1)
            .count()
            .release(epsilon=50, delta=1e-5)
        )
        assert out.to_polars().height == 1
        assert "<table" in out._repr_html_()


ENDS = [TIME(1, 1, 1), TIME(1, 12, 31, 23), TIME(9999, 1, 1), TIME(9999, 12, 31, 23, 59)]


@pytest.mark.one_in(3)
def test_a_time_typed_at_the_end_of_the_calendar_is_refused_in_every_verb(engine):
    """By the clock of UTC, or of the column's zone, it may be in the year 0 or 10000.
    In the years beside it, it is compared."""
    times = pl.DataFrame(
        {"t": [TIME(2020, 1, 1, tzinfo=dt.UTC), None]}, {"t": pl.Datetime("us", "UTC")}
    )
    rows = dp.protect(engine(times), unit=dp.Rows(1), budget=dp.Budget(epsilon=CERTAIN))
    if getattr(step_of(rows).table.columns["t"].domain.dtype, "time_zone", None) is None:
        pytest.skip("this engine has no times with a zone")
    time, first = dp.col("t"), TIME(2020, 1, 1, tzinfo=dt.UTC)
    for end in (
        x.replace(tzinfo=ZoneInfo(zone))
        for x in ENDS
        for zone in ("UTC", "Europe/Berlin", "America/New_York")
    ):
        near = end.replace(year=2 if end.year == 1 else 9998)
        for compared, right in (
            (lambda x: time > x, int(end.year == 1)),
            (lambda x: time == x, 0),
            (lambda x: time.is_in([x, first]), 1),
            (lambda x: ~time.is_between(x, x), 1),
        ):
            assert answer(rows.filter(compared(near)).count()) == [{(): right}]
            with pytest.raises(WrongType, match="years 2 to 9998"):
                rows.filter(compared(end))
        for refused in (
            lambda x: rows.filter(time.dt.truncate("1w") == x),
            lambda x: rows.filter(time.is_in([first, x.date()])),
            lambda x: rows.with_columns(y=dp.when(time > first).then(x).otherwise(time)),
            lambda x: rows.with_columns(y=time - x),
            lambda x: rows.with_columns(y=time.clip(x, None)),
            lambda x: rows.with_columns(y=time.fill_null(x)),
        ):
            with pytest.raises(WrongType, match="years 2 to 9998"):
                refused(end)
