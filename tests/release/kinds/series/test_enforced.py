"""`enforce=True`: each unit is counted in the first periods in which it has rows, against a loop in plain Python."""

import datetime as dt
import random

import polars as pl
import pytest

import dpframe as dp
from dpframe import errors
from strategies import bring

START = dt.date(2026, 1, 1)
NIGHTS = 12


def day(night):
    return START + dt.timedelta(days=night)


def table(rng):
    """People with rows in some nights, some of them of a city that is not listed, or of none."""
    rows = [
        (f"p{unit}", day(night), rng.choice(["a", "b", "elsewhere", None]))
        for unit in range(80)
        for night in sorted(rng.sample(range(NIGHTS), rng.randint(0, 7)))
        for _ in range(rng.randint(1, 2))
    ]
    rng.shuffle(rows)
    made = pl.DataFrame(rows, {"id": pl.String, "day": pl.Date, "city": pl.String}, orient="row")
    return made.with_columns(when=pl.col("day").cast(pl.Datetime("us")), text=pl.col("day").cast(pl.String))


def expected(rows, order, most, cities):
    """Units of each night and city, each in the first nights that were added in which it has a listed city."""
    used, counts = {}, {}
    for night in order:
        here = {}
        for unit, at, city in rows.select("id", "day", "city").iter_rows():
            if at == day(night) and city in cities:
                here.setdefault(unit, set()).add(city)
        for unit, some in here.items():
            if used.get(unit, 0) < most:
                for city in some:
                    counts[night, city] = counts.get((night, city), 0) + 1
            used[unit] = used.get(unit, 0) + 1
    return counts


def opened(budget, most=2, **said):
    return budget.series("s", every="1d", horizon=30, epsilon=1e5, unit_periods=most, enforce=True, start=START, **said)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("on", ["day", "when", "text", None])
def test_each_unit_is_counted_in_its_first_periods_in_whatever_order_they_are_added(on):
    rng = random.Random(f"{on}")
    for most in (1, 3):
        rows, cities = table(rng), ["a", None]
        order = rng.sample(range(NIGHTS), 9)
        budget = dp.Budget(epsilon=1e7)
        series = opened(budget, most, on=on)

        def ask(frame, cities=cities):
            return frame.group_by("city", keys=cities, max_groups=2).count_units()

        def of(night, rows=rows, budget=budget, ask=ask):
            return ask(dp.protect(rows.filter(pl.col("text") == night), unit="id", budget=budget))

        for night in order:
            series.add(of if on is None else ask(dp.protect(rows, unit="id", budget=budget)), day(night))
        wanted = expected(rows, order, most, cities)
        for at, city, value, _ in series.table().to_polars().select(pl.nth(range(4))).iter_rows():
            assert abs(value - wanted.get(((at - START).days, city), 0)) < 0.1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "pyarrow", "duckdb", "ibis"])
@pytest.mark.parametrize("on", ["day", None])
def test_it_is_so_on_every_engine(kind, on):
    rows = table(random.Random(3))
    budget = dp.Budget(epsilon=1e7)
    series = opened(budget, on=on)
    brought = bring(rows, kind)

    def of(night):
        return dp.protect(brought, unit="id", budget=budget).filter(dp.col("text") == night).count(max_rows=1)

    frame = dp.protect(brought, unit="id", budget=budget)
    for night in range(4):
        series.add(of if on is None else frame.count(max_rows=1), day(night))
    wanted = expected(rows, range(4), 2, ["a", "b", "elsewhere", None])
    once = rows.select("id", "day").unique().group_by("id").agg(pl.col("day").filter(pl.col("day") < day(4)).len())
    assert sum(wanted.values()) > 0
    assert abs(series.total().value - sum(min(2, n) for n in once["day"])) < 0.1


def test_what_is_said_and_what_is_read_again():
    rows, budget = table(random.Random(4)), dp.Budget(epsilon=1e7)
    frame, series = dp.protect(rows, unit="id", budget=budget), opened(budget, on="day")
    told = series.explain(frame.count_units(), day(0))
    for night in range(3):
        series.add(frame.count_units(), day(night))
    assert series.explain() == told
    assert "The promise is for every unit 'id'. Each is counted in the first 2 periods in which it has rows" in told
    assert "are not scaled up" in told
    assert "nothing checks it" not in told
    assert "enforce=True" in series.total().report()
    assert series.reads(day(3)) == [str(day(night)) for night in range(4)]
    declared = budget.series("s", every="1d", horizon=30, epsilon=1e5, unit_periods=2, start=START, on="day")
    with pytest.raises(errors.ReleaseMismatch, match="enforce"):
        declared.add(frame.count_units(), day(4))
    again = budget.series("s", on="day")
    again.add(frame.count_units(), day(4))
    whole = budget.series("whole", every="1d", horizon=2, epsilon=1.0, unit_periods=2, enforce=True, on="day")
    assert "it may be counted in all periods" in whole.explain(frame.count_units(), day(0)), "nothing is to be enforced"


def test_what_cannot_be_enforced_is_refused_before_anything_is_paid():
    rows, budget = table(random.Random(5)), dp.Budget(epsilon=1e7)
    frame = dp.protect(rows, unit="id", budget=budget)
    with pytest.raises(errors.UnsupportedOperation, match="must read their rows"):
        opened(budget).add(frame.count_units(), day(0))
    with pytest.raises(errors.UnsupportedOperation, match="identifies units"):
        opened(budget, on="day").add(dp.protect(rows, unit=dp.Rows(1), budget=budget).count(), day(0))
    with pytest.raises(errors.InvalidArgument, match="enforce"):
        budget.series("s", every="1d", horizon=30, epsilon=1.0, unit_periods=2, enforce="yes")

    def other(night):
        numbers = rows.select(pl.col("id").str.slice(1).cast(pl.Int64), "text")
        return dp.protect(rows if night == str(day(0)) else numbers, unit="id", budget=budget).count_units()

    series = opened(budget)
    series.add(other, day(0))
    series.add(other, day(1))  # one period before it: nothing to compare with
    spent = budget.entries()
    with pytest.raises(errors.WrongType, match="the unit is of type"):
        series.add(other, day(2))
    assert budget.entries() == spent


def test_a_night_that_was_lost_has_used_up_a_period_of_its_units(monkeypatch):
    """Whether its answer came out or not: who was counted in it is not counted once more in its place."""
    rows = pl.DataFrame({"id": ["p"] * 4, "day": [day(night) for night in range(4)]})
    budget = dp.Budget(epsilon=1e7)
    frame, series = dp.protect(rows, unit="id", budget=budget), opened(budget, on="day")
    series.add(frame.count_units(), day(0))
    with monkeypatch.context() as patch:
        patch.setattr(type(budget), "store", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            series.add(frame.count_units(), day(1))
    series.add(frame.count_units(), day(2))
    assert abs(series.total().value - 1) < 0.1
    series.add(frame.count_units(), day(1), on_pending="retry")
    series.add(frame.count_units(), day(3))
    assert abs(series.total().value - 2) < 0.1
