"""`enforce=True`: each unit is counted in the first periods in which it has rows,
against a loop in plain Python.
"""

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
    return made.with_columns(
        when=pl.col("day").cast(pl.Datetime("us")), text=pl.col("day").cast(pl.String)
    )


def expected(rows, order, most, cities):
    """Units of each night and city, each in the first nights that were added
    in which it has a listed city.
    """
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
    return budget.series(
        "s",
        every="1d",
        horizon=30,
        epsilon=1e5,
        unit_periods=most,
        enforce=True,
        start=START,
        **said,
    )


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
            series.add(
                of if on is None else ask(dp.protect(rows, unit="id", budget=budget)), day(night)
            )
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
        return (
            dp.protect(brought, unit="id", budget=budget)
            .filter(dp.col("text") == night)
            .count(max_rows=1)
        )

    frame = dp.protect(brought, unit="id", budget=budget)
    for night in range(4):
        series.add(of if on is None else frame.count(max_rows=1), day(night))
    wanted = expected(rows, range(4), 2, ["a", "b", "elsewhere", None])
    once = (
        rows.select("id", "day")
        .unique()
        .group_by("id")
        .agg(pl.col("day").filter(pl.col("day") < day(4)).len())
    )
    assert sum(wanted.values()) > 0
    assert abs(series.total().value - sum(min(2, n) for n in once["day"])) < 0.1


def test_what_is_said_and_what_is_read_again():
    rows, budget = table(random.Random(4)), dp.Budget(epsilon=1e7)
    frame, series = dp.protect(rows, unit="id", budget=budget), opened(budget, on="day")
    told = series.explain(frame.count_units(), day(0))
    for night in range(3):
        series.add(frame.count_units(), day(night))
    assert series.explain() == told
    assert (
        "The promise is for every unit 'id'. Each is counted in the first 2 periods in which it "
        "has rows" in told
    )
    assert "are not scaled up" in told
    assert "nothing checks it" not in told
    assert "enforce=True" in series.total().report()
    assert series.reads(day(3)) == [str(day(night)) for night in range(4)]
    declared = budget.series(
        "s", every="1d", horizon=30, epsilon=1e5, unit_periods=2, start=START, on="day"
    )
    with pytest.raises(errors.ReleaseMismatch, match="enforce"):
        declared.add(frame.count_units(), day(4))
    again = budget.series("s", on="day")
    again.add(frame.count_units(), day(4))
    whole = budget.series(
        "whole", every="1d", horizon=2, epsilon=1.0, unit_periods=2, enforce=True, on="day"
    )
    assert "it may be counted in all periods" in whole.explain(frame.count_units(), day(0)), (
        "nothing is to be enforced"
    )


def test_what_cannot_be_enforced_is_refused_before_anything_is_paid():
    rows, budget = table(random.Random(5)), dp.Budget(epsilon=1e7)
    frame = dp.protect(rows, unit="id", budget=budget)
    with pytest.raises(errors.UnsupportedOperation, match="must read their rows"):
        opened(budget).add(frame.count_units(), day(0))
    with pytest.raises(errors.UnsupportedOperation, match="identifies units"):
        opened(budget, on="day").add(
            dp.protect(rows, unit=dp.Rows(1), budget=budget).count(), day(0)
        )
    with pytest.raises(errors.InvalidArgument, match="enforce"):
        budget.series("s", every="1d", horizon=30, epsilon=1.0, unit_periods=2, enforce="yes")

    def other(night):
        numbers = rows.select(pl.col("id").str.slice(1).cast(pl.Int64), "text")
        return dp.protect(
            rows if night == str(day(0)) else numbers, unit="id", budget=budget
        ).count_units()

    series = opened(budget)
    series.add(other, day(0))
    series.add(other, day(1))  # one period before it: nothing to compare with
    spent = budget.entries()
    with pytest.raises(errors.WrongType, match="the unit is of type"):
        series.add(other, day(2))
    assert budget.entries() == spent


def test_a_night_that_was_lost_has_used_up_a_period_of_its_units(monkeypatch):
    """Whether its answer came out or not: who was counted in it is not
    counted once more in its place.
    """
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


# Steps that change from night to night

BANDS = [(f"p{unit}", day(night), night, unit % 3) for unit in range(40) for night in range(8)]


def banded():
    return pl.DataFrame(
        BANDS, {"id": pl.String, "day": pl.Date, "band": pl.Int64, "side": pl.Int64}, orient="row"
    )


def total_of(series):
    return round(series.total().value)


def test_a_filter_that_changes_each_night_counts_nobody_twice():
    """It counted each of 40 people in all 8 nights:
    earlier nights were counted with the filter of this night.
    """
    budget = dp.Budget(epsilon=1e7)
    frame, series = dp.protect(banded(), unit="id", budget=budget), opened(budget, 1, on="day")
    series.add(frame.filter(dp.col("band") == 0).count(max_rows=1), day(0))
    lines = budget.entries()
    for night in range(1, 8):
        with pytest.raises(
            errors.ReleaseMismatch, match="Give a function that returns for each period its own"
        ):
            series.add(frame.filter(dp.col("band") == night).count(max_rows=1), day(night))
    assert budget.entries() == lines
    assert total_of(series) == 40


STEPS_OF_A_NIGHT = {
    "filter": lambda f, night: f.filter(dp.col("side") == night % 3),
    "a public table": lambda f, night: f.join({"side": [night % 3, 5]}, on="side"),
    "computed": lambda f, night: f.with_columns(k=(dp.col("side") + night) % 3).filter(
        dp.col("k") == 0
    ),
    "dropped": lambda f, night: f.filter((dp.col("side") == night % 3) | (dp.col("band") > 4)).drop(
        "band"
    ),
    "a feature": lambda f, night: f.per_unit(s=dp.max("side")).filter(dp.col("s") == night % 3),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("name", STEPS_OF_A_NIGHT)
def test_a_function_counts_each_night_with_its_own_steps(name, most):
    """A loop in plain Python counts the nights in which each person was among the
    rows of that night's question.
    """
    budget, frame = dp.Budget(epsilon=1e7), None
    frame, series = dp.protect(banded(), unit="id", budget=budget), opened(budget, most)

    def of(label):
        night = (dt.date.fromisoformat(label) - START).days
        return STEPS_OF_A_NIGHT[name](frame.filter(dp.col("day") == day(night)), night).count(
            max_rows=1
        )

    used, wanted = {}, {}
    for night in (0, 3, 1, 2, 6, 5, 7):
        series.add(of, day(night))
        for unit in range(40):
            if unit % 3 == {"computed": -night % 3}.get(name, night % 3) or (
                name == "dropped" and night > 4
            ):
                wanted[night] = wanted.get(night, 0) + (used.get(unit, 0) < most)
                used[unit] = used.get(unit, 0) + 1
    counts = series.table().to_polars()
    assert [round(value) for value in counts["count"]] == [
        wanted[night] for night in sorted(wanted)
    ]
    assert max(used.values()) > most, "somebody was left out"


CHANGES = {
    "a condition": lambda f, change: f.filter(dp.col("side") >= change),
    "a list": lambda f, change: f.filter(dp.col("side").is_in([*range(200 + change)])),
    "a public table": lambda f, change: f.join({"side": [0, 1, 2 + change]}, on="side"),
    "a column": lambda f, change: f.with_columns(side=dp.col("side") * (1 + change)),
    "a step": lambda f, change: f.drop("band") if change else f,
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("on", ["day", None])
def test_a_night_that_was_added_keeps_its_steps_also_in_another_process(name, on, tmp_path):
    """Also where it is measured again, or marked as lost:
    what it was first asked may have been seen.
    """

    def started():
        budget = dp.Ledger(tmp_path / "ledger.sqlite").budget("b", epsilon=1e7)
        frame = dp.protect(banded(), unit="id", budget=budget)

        def ask(label, change):
            rows = frame if on else frame.filter(dp.col("day") == dt.date.fromisoformat(label))
            return CHANGES[name](rows, change).count(max_rows=1)

        def of(change):
            return ask("", change) if on else lambda label: ask(label, change)

        return budget, opened(budget, 1, on=on), of

    budget, series, of = started()
    series.add(of(0), day(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(budget), "store", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            series.add(of(0), day(1))
    budget, series, of = started()
    for how in ("retry", "refuse"):
        if how == "refuse":
            budget.resolve(f"s {day(1)}")
        lines = budget.entries()
        for night in (1, 2):
            with pytest.raises(errors.ReleaseMismatch, match="counts a unit's periods"):
                series.add(of(1), day(night), on_pending=how)
        assert budget.entries() == lines
    series.add(of(0), day(1))
    series.add(of(0), day(2))
    assert [round(value) for value in series.table().to_polars()["count"]] == [40, 0, 0]


def test_a_night_that_was_marked_as_lost_is_asked_like_any_other():
    """It was measured without its blocks' other nights, and without the
    periods that its units had used up.
    """
    for enforce, wanted in ((True, 40), (False, 320)):
        budget = dp.Budget(epsilon=1e7)
        frame = dp.protect(banded(), unit="id", budget=budget)
        said = {
            "every": "1d",
            "horizon": 60,
            "epsilon": 1e5,
            "unit_periods": 1,
            "enforce": enforce,
            "on": "day",
        }
        series = budget.series("s", **said)
        for night in range(8):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(
                    type(budget), "store", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
                )
                with pytest.raises(KeyboardInterrupt):
                    series.add(frame.count(max_rows=1), day(night))
            budget.resolve(f"s {day(night)}")
            series.add(frame.count(max_rows=1), day(night))
        assert total_of(series) == wanted


def test_a_table_that_is_joined_with_itself_is_counted_night_by_night():
    """One reading of all earlier nights gave each person one row for all of
    them, which a filter could drop.
    """
    budget = dp.Budget(epsilon=1e7)
    frame, series = dp.protect(banded(), unit="id", budget=budget), opened(budget, 1, on="day")
    once = frame.join(frame.per_unit(n=dp.count()), on="id").filter(dp.col("n") == 1)
    for night in range(6):
        series.add(once.count(max_rows=1), day(night))
    assert total_of(series) == 40


def test_nights_that_an_earlier_version_added_are_not_counted_by_guess():
    budget = dp.Budget(epsilon=1e7)
    frame, series = dp.protect(banded(), unit="id", budget=budget), opened(budget, 1, on="day")
    series.add(frame.count(max_rows=1), day(0))
    del budget.entries()[-2].body["within"]["asked"]
    with pytest.raises(errors.ReleaseMismatch, match="added by a version that stored no question"):
        series.add(frame.count(max_rows=1), day(1))


@pytest.mark.parametrize("most", [1, 2])
def test_months_of_a_calendar_are_periods(most):
    """Person k comes in the months k % 4 to 3: each is counted in its first
    months, whichever of 28 to 31 days.
    """
    begins = [dt.date(2026, month, 1) for month in range(1, 6)]
    days = [(k, month, day) for k in range(40) for month in range(1 + k % 4, 5) for day in (1, 28)]
    table = pl.DataFrame(
        {"u": [k for k, *_ in days], "on": [dt.date(2026, month, day) for _, month, day in days]}
    )
    budget = dp.Budget(epsilon=1e6)
    said = {
        "every": "1mo",
        "horizon": 12,
        "epsilon": 1e5,
        "unit_periods": most,
        "enforce": True,
        "on": "on",
    }
    series = budget.series("months", **said)
    query = table.dp(unit="u", budget=budget).count_units()
    for begin in begins[:4]:
        series.add(query, period=begin)
    rows = series.table("2mo").table
    assert rows["period"].to_list() == begins[:4]
    first = [10, 20, 20, 20] if most == 2 else [10, 10, 10, 10]
    assert rows["count_units"].round().to_list() == first
    assert rows["count_units_2mo"].round().to_list()[1:] == [
        sum(first[i - 1 : i + 1]) for i in (1, 2, 3)
    ]
    with pytest.raises(errors.InvalidArgument, match="one begins at 2026-02-01"):
        series.add(query, period="2026-02-15")
    with pytest.raises(errors.InvalidArgument, match="calendar month"):
        series.table("7d")
