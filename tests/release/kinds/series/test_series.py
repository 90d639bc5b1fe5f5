"""A series as people use it: adding nights, reading totals, windows
and tables, and what is refused.
"""

import datetime as dt
import os
import re
import warnings
from random import Random

import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine, errors
from dpframe.release.kinds.series.progress import Block, Progress
from dpframe.release.kinds.series.shape import Shape, Shapes

DAYS = [dt.date(2026, 11, 1) + dt.timedelta(days=night) for night in range(20)]
ROWS = pl.DataFrame(
    {
        "id": range(2000),
        "day": [DAYS[i % 20] for i in range(2000)],
        "when": [dt.datetime(2026, 11, 1 + i % 20, 13) for i in range(2000)],
        "text": [str(DAYS[i % 20]) for i in range(2000)],
        "city": ["a" if i % 4 else "b" for i in range(2000)],
        "x": [float(i % 5) for i in range(2000)],
        "zone": [True] * 2000,
    }
)
EXACT = {"epsilon": 100.0}  # noise of a count that is other than 0 once in 10^20 draws


def made(budget=None, rows=ROWS, on="day", **said):
    budget = dp.Budget(epsilon=1e7) if budget is None else budget
    typed = {"every": "1d", "horizon": 60, "unit_periods": 1, **EXACT, **said}
    return dp.protect(rows, unit="id", budget=budget), budget.series("signups", on=on, **typed)


@pytest.mark.parametrize("on", ["day", "when", "text"])
def test_nights_totals_and_windows_of_a_table_with_a_column_of_nights(on):
    frame, series = made(on=on)
    for day in DAYS[:10]:
        assert series.add(frame.count(max_rows=1), day).value == pytest.approx(100, abs=1e-3)
    assert series.total().value == pytest.approx(1000, abs=1e-3)
    assert series.window("7d").value == pytest.approx(700, abs=1e-3)
    table = series.table(["3d", "7d"]).table
    assert table["period"].to_list() == DAYS[:10]
    assert table["count_total"].to_list() == pytest.approx(
        [100 * n for n in range(1, 11)], abs=1e-3
    )
    assert table["count_3d"].to_list() == pytest.approx([100, 200, *[300] * 8], abs=1e-3)
    assert (table["count_error"] > 0).all()


def test_a_function_of_the_night_reads_the_file_of_each(tmp_path):
    """Each night is a file; blocks that end with a night read those of earlier nights again."""
    for day in DAYS:
        ROWS.filter(pl.col("day") == day).drop("day").write_parquet(tmp_path / f"{day}.parquet")
    budget, read = dp.Budget(epsilon=10), []

    def query(night):
        read.append(night)
        return dp.protect(
            pl.scan_parquet(tmp_path / f"{night}.parquet"), unit="id", budget=budget
        ).count_units()

    series = budget.series("signups", every="1d", horizon=120, epsilon=1.0, unit_periods=1)
    for day in DAYS:
        expected = [str(day)] if day == DAYS[0] else series.reads(day)
        read.clear()
        series.add(query, day)
        assert sorted(set(read)) == expected
    assert max(len(series.reads(day)) for day in DAYS) > 5
    assert abs(series.total().value - 2000) < series.total(alpha=1e-9).error


def test_rows_of_one_night_alone_add_up_and_say_so():
    budget = dp.Budget(epsilon=10)
    series = budget.series("signups", every="1d", horizon=365, epsilon=1.0, unit_periods=1)
    for day in DAYS[:4]:
        frame = dp.protect(ROWS.filter(pl.col("day") == day), unit="id", budget=budget)
        series.add(frame.count(max_rows=1), period=day)
    assert "Only single periods are measured" in series.explain()
    assert abs(series.total().value - 400) < series.total(alpha=1e-9).error
    assert series.total().error == pytest.approx(2 * series.table().table["count_error"][0])


def test_groups_and_several_totals():
    frame, series = made()
    query = frame.group_by("city", keys=["a", "b", "c"], max_groups=1, max_rows_per_group=1).agg(
        n=dp.count(), x=dp.sum("x", (0, 4)), people=dp.count_units()
    )
    for day in DAYS[:6]:
        out = series.add(query, day)
    assert out.table.columns == ["city", "n", "n_error", "x", "x_error", "people", "people_error"]
    total = series.total().table
    assert total["city"].to_list() == ["a", "b", "c"]
    number = (
        ROWS.filter(pl.col("day") <= DAYS[5]).group_by("city").len().sort("city")["len"].to_list()
    )
    assert total["n"].to_list() == pytest.approx([*number, 0], abs=0.01)
    cells = (
        ROWS.filter(pl.col("day") <= DAYS[5])
        .group_by("city")
        .agg(pl.col("x").sum())
        .sort("city")["x"]
        .to_list()
    )
    assert total["x"].to_list() == pytest.approx([*cells, 0], abs=5)
    assert total["people"].to_list() == pytest.approx([*number, 0], abs=0.01)
    assert series.table("3d").table.height == 18


def test_late_repeated_and_missing_nights_are_free_and_well_defined():
    frame, series = made(start=DAYS[0])
    spent = []
    for night in (0, 1, 5, 9, 3, 9, 0):  # 2, 4, 6, 7, 8 are missing, 3 is late
        out = series.add(frame.count(max_rows=1), DAYS[night])
        spent.append(frame.budget.spent)
        assert out.value == pytest.approx(100, abs=1e-3)
    assert len(set(map(str, spent))) == 1
    assert out.stored.startswith("Stored answer of ")
    assert "Stored answer of" in repr(out)
    assert "Stored answer of" in out._repr_html_()
    assert "Stored answer of" in out.report()
    assert series.total().value == pytest.approx(500, abs=1e-3), (
        "of the nights that were added, and of no other"
    )
    assert series.window("7d").value == pytest.approx(300, abs=1e-3), "nights 3, 5 and 9"
    assert series.table().table["period"].to_list() == [DAYS[n] for n in (0, 1, 3, 5, 9)]
    assert "added periods alone" not in repr(series.table("1d")) + repr(series.table())
    sentence = "Windows of {} hold the added periods alone: none was added {}."
    two = ", nor ".join(f"for {DAYS[n]}" for n in (2, 4, 8))
    assert sentence.format("2d", f"before {DAYS[0]}, nor {two}") in repr(series.table(["1d", "2d"]))
    seven = ", nor ".join(f"for {DAYS[n]}" for n in (4, 6, 7, 8))
    assert sentence.format("7d", seven) in repr(series.window("7d"))
    assert "added periods alone" in str(series.table("7d").plot("count_7d").to_dict())


def test_periods_of_other_lengths():
    rows = pl.DataFrame(
        {
            "id": range(96),
            "at": [dt.datetime(2026, 1, 1) + dt.timedelta(hours=i) for i in range(96)],
        }
    )
    frame, series = made(rows=rows, on="at", every="12h", horizon=None)
    for place in range(8):
        series.add(
            frame.count(max_rows=1), dt.datetime(2026, 1, 1) + place * dt.timedelta(hours=12)
        )
    assert series.table("1d").table["period"].dtype == pl.Datetime("us")
    assert series.window("1d").value == pytest.approx(24, abs=1e-3)
    with pytest.raises(errors.InvalidArgument, match="one begins at 2026-01-01T00:00"):
        series.add(frame.count(max_rows=1), "2026-01-01T05:00")
    with pytest.raises(errors.InvalidArgument, match="whole number of periods"):
        series.window("7h")


def test_the_kind_of_table_that_was_brought_comes_back():
    frame, series = made(rows=ROWS.to_pandas())
    series.add(frame.count(max_rows=1), DAYS[0])
    assert isinstance(series.table().table, pd.DataFrame)
    assert isinstance(series.total().to_polars(), pl.DataFrame)


@pytest.mark.parametrize("unit", ["id", dp.Rows(1)])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_declared_rows_and_exchanged_people(unit, relation):
    """A person may move from one night to another:
    a count is never exact, even where everyone has one row a night.
    """
    budget = dp.Budget(epsilon=100)
    frame = dp.protect(ROWS.select("id", "day"), unit=unit, budget=budget, neighbors=relation)
    series = budget.series("s", every="1d", horizon=60, epsilon=2.0, unit_periods=1, on="day")
    query = frame.count() if isinstance(unit, dp.Rows) else frame.count(max_rows=1)
    series.add(query, DAYS[0])
    ((level, *_),) = budget.entries()[1].body["opens"]["scales"]
    assert (
        level[0]
        == (2.0 if relation == "replace" else 1.0)
        * len(budget.entries()[1].body["opens"]["scales"][0])
        / 2
    )


def test_the_derivation_says_what_is_promised_over_the_whole_horizon():
    frame, series = made(unit_periods=3, budget=dp.Budget(rho=10), epsilon=None, rho=0.5)
    told = series.explain(frame.count(max_rows=2), DAYS[0])
    assert "Over the whole series one unit 'id' is promised ρ = 0.5" in told
    assert "at most 3 periods (unit_periods=3)" in told
    assert "nothing checks it" in told
    assert "k² times the ρ" in told
    assert "at most 2 rows" in told
    assert frame.budget.history() == []
    series.add(frame.count(max_rows=2), DAYS[0])
    assert series.explain() == told
    assert "is promised ρ = 0.5" in series.total().report()
    assert frame.budget.history()[0].status == "open"


def test_nothing_is_read_or_paid_by_looking(monkeypatch):
    frame, series = made()
    series.add(frame.count(max_rows=1), DAYS[0])
    before = frame.budget.entries()

    def never(*_):
        raise AssertionError("rows were read")

    monkeypatch.setattr(engine, "totals", never)
    for look in (
        series.total,
        series.table,
        series.explain,
        lambda: series.window("7d"),
        lambda: series.reads(DAYS[5]),
    ):
        look()
    repr(series)
    assert frame.budget.entries() == before


REFUSED = {
    "keys of the data": (lambda f: f.group_by("city", max_groups=1).count_units(), "list the keys"),
    "a mean": (lambda f: f.mean("x", (0, 4), max_rows=1), "counts and sums"),
    "a median": (lambda f: f.median("x", (0, 4), max_rows=1), "counts and sums"),
    "different values": (lambda f: f.n_unique("city", max_rows=1), "counts and sums"),
    "chosen limits": (lambda f: f.count(limits=dp.Auto()), "give limits and bounds"),
    "a crosstab": (
        lambda f: f.crosstab("city", "zone", keys={"city": ["a"]}, max_rows=1),
        "not crosstabs",
    ),
    "no query": (lambda f: f, "takes a query"),
    "a table": (lambda f: ROWS, "takes a query"),
    "a function of a table": (lambda f: lambda _: ROWS, "takes a query"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_a_series_is_refused_before_anything_is_paid(name):
    ask, words = REFUSED[name]
    frame, series = made()
    with pytest.raises(errors.DpFrameError, match=words):
        series.add(ask(frame), DAYS[0])
    assert frame.budget.entries() == frame.budget.entries()[:1]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"unit_periods": None}, errors.InvalidArgument),
        ({"unit_periods": 0}, errors.InvalidArgument),
        ({"every": "1 month"}, errors.InvalidArgument),
        ({"horizon": -1}, errors.InvalidArgument),
        ({"horizon": 10**6}, errors.InvalidArgument),
        ({"epsilon": None}, errors.InvalidPrice),
        ({"epsilon": -1}, errors.InvalidPrice),
        ({"rho": 1.0}, errors.InvalidPrice),
        ({"noise": "none"}, errors.InvalidArgument),
        ({"on": 7}, errors.InvalidArgument),
    ],
)
def test_what_no_series_can_be_opened_with(said, kind):
    with pytest.raises(kind):
        made(**said)


ENDS = [
    *(edge for kind in (dt.date, dt.datetime) for edge in (kind.min, kind.max)),
    *("0001-01-01", "9999-12-31", "9999-12-31T23:00"),
]


@pytest.mark.parametrize("every", ["1h", "1d", "999999w"])
@pytest.mark.parametrize("on", ["day", "when", "text", None])
def test_the_first_and_last_days_of_all_are_answered_or_refused_by_name(every, on):
    """Python's dates end with the year 9999: a period that ends later is
    refused before anything is paid.
    """
    words = []
    for moment in ENDS:
        for start in (None, "0001-01-01"):
            frame, series = made(on=on, every=every, horizon=None, start=start)
            lines = frame.budget.entries()
            try:
                series.add(frame.count(max_rows=1), moment)
            except (errors.InvalidArgument, errors.WrongType) as refused:
                assert frame.budget.entries() == lines
                words.append(str(refused))
            else:
                assert series.reads(moment)
                assert series.table("999999w").to_polars().height == 1
    assert not [one for one in words if "allocate" in one], "words of another verb"


def test_noise_that_needs_a_delta_or_is_not_offered():
    frame, series = made(noise="gaussian")
    with pytest.raises(errors.DeltaRequired):
        series.add(frame.count(max_rows=1), DAYS[0])
    frame, series = made(dp.Budget(rho=1), noise="laplace", epsilon=None, rho=0.1)
    with pytest.raises(errors.UnsupportedOperation, match="Gaussian noise"):
        series.add(frame.count(max_rows=1), DAYS[0])
    frame, series = made(dp.Budget(epsilon=1), epsilon=2.0)
    with pytest.raises(errors.BudgetExceeded):
        series.add(frame.count(max_rows=1), DAYS[0])


@pytest.mark.parametrize(
    "period", ["soon", 7, None, "2026-10-01", "2026-11-01T05:00", "2027-11-01"]
)
def test_periods_that_are_not_of_the_series(period):
    frame, series = made()
    series.add(frame.count(max_rows=1), DAYS[0])
    lines = frame.budget.entries()
    with pytest.raises(errors.InvalidArgument, match="period"):
        series.add(frame.count(max_rows=1), period)
    assert frame.budget.entries() == lines


def test_another_question_is_another_series():
    frame, series = made()
    series.add(frame.count(max_rows=1), DAYS[0])
    for other in (frame.count(max_rows=2), frame.count_units(), frame.sum("x", (0, 4), max_rows=1)):
        with pytest.raises(errors.ReleaseMismatch):
            series.add(other, DAYS[1])
    with pytest.raises(
        errors.ReleaseMismatch,
        match=r"(?s)^The series 'signups' was opened .*horizon: 60, 61\n.*"
        r"budget\.series\('signups'\) goes on with it.*budget\.series\('signups 2', \.\.\.\)",
    ):
        made(frame.budget, horizon=61)[1].add(frame.count(max_rows=1), DAYS[1])
    with pytest.raises(errors.BudgetMismatch):
        series.add(
            dp.protect(ROWS, unit="id", budget=dp.Budget(epsilon=1)).count(max_rows=1), DAYS[1]
        )
    budget, rows = frame.budget, {"other": 5}

    def changing(night):
        return (
            dp.protect(ROWS, unit="id", budget=budget)
            .filter(dp.col("text") == night)
            .count(max_rows=rows.get(night, 1))
        )

    series = budget.series("functions", every="1d", horizon=60, epsilon=1.0, unit_periods=1)
    for day in DAYS[:3]:
        series.add(changing, day)
    rows[str(DAYS[1])] = 2
    late = next(day for day in DAYS[3:] if str(DAYS[1]) in series.reads(day))
    with pytest.raises(errors.ReleaseMismatch, match="another question"):
        series.add(changing, late)


def test_a_night_that_fails_is_told_and_may_be_measured_again(monkeypatch):
    frame, series = made(epsilon=2.0, budget=dp.Budget(epsilon=20))
    series.add(frame.count(max_rows=1), DAYS[0])
    with monkeypatch.context() as patch:
        patch.setattr(engine, "totals", lambda *_: 1 / 0)
        with pytest.raises(errors.EngineError):
            series.add(frame.count(max_rows=1), DAYS[1])
    with pytest.raises(errors.ReleasePending, match="failed after that") as told:
        series.add(frame.count(max_rows=1), DAYS[1])
    series.add(frame.count(max_rows=1), DAYS[2])
    assert series.table().table.height == 2
    out = series.add(frame.count(max_rows=1), DAYS[1], on_pending="retry")
    assert 0 < out.cost.epsilon <= 2.0
    assert frame.budget.spent.epsilon == 2.0 + out.cost.epsilon
    assert f"To pay again costs {out.cost}, beside" in str(told.value)
    assert "refresh" not in str(told.value), "series.add has none"
    assert f"each time: {out.cost}" in series.explain()
    assert series.table().table.height == 3


@pytest.mark.parametrize(
    "price", [{"epsilon": 2.0}, {"epsilon": 2.0, "delta": 1e-6, "noise": "gaussian"}]
)
@pytest.mark.parametrize("how", ["text", "file", "day", "on"])
def test_a_night_whose_rows_are_others_by_now_says_so_and_is_corrected_by_the_line_it_names(
    tmp_path, monkeypatch, how, price
):
    """Whatever gives the rows of a night and their label; nothing is read, and the loop goes on."""
    budget = dp.Ledger(tmp_path / "study.sqlite").budget("visits", epsilon=50, delta=1e-4)

    def asked(said):
        frame, label = (ROWS if how == "on" else ROWS.filter(pl.col("day") == DAYS[0]), said)
        if how == "file" and said is not None:
            frame.write_parquet(tmp_path / "night.parquet")
            os.utime(tmp_path / "night.parquet", times=(len(said), len(said)))
            frame, label = pl.scan_parquet(tmp_path / "night.parquet"), tmp_path / "night.parquet"
        return dp.protect(frame, unit="id", budget=budget, data=label).count(max_rows=1)

    def add(said):
        query = asked(said)
        return series.add(query if how in ("day", "on") else lambda night: query, DAYS[0])

    typed = {
        "every": "1d",
        "horizon": 60,
        "unit_periods": 1,
        "on": "day" if how == "on" else None,
        **price,
    }
    series = budget.series("signups", **typed)
    first = add("one")
    series, before = budget.series("signups", on=typed["on"]), budget.entries()
    with monkeypatch.context() as patch:
        patch.setattr(engine, "totals", lambda *_: 1 / 0)
        with warnings.catch_warnings(action="error"):
            assert add("one").value == first.value
        with pytest.warns(
            errors.StoredAnswerWarning, match=r"another label by now \(before: .+; now: .+\)\."
        ) as told:
            again = add("three")
        with pytest.warns(
            errors.StoredAnswerWarning, match="Say which rows a table has, dp.protect"
        ):
            add(None)
    assert (again.value, budget.entries()) == (first.value, before)
    assert again.stored.endswith("Its rows may be others by now.")
    (line,) = re.findall(r"query(\.release\(.+\))\.$", str(told[0].message))
    out = eval(f"query{line}", {"query": asked("three")})
    assert budget.history()[-1].supersedes == "signups 2026-11-01"
    assert 0.1 < out.accuracy()["error"][0] / series.table().table["count_error"][0] <= 1.01
    assert "'signups 2026-11-01, corrected' has taken the place" in add("three").stored
    dp.Ledger(tmp_path / "study.sqlite").verify()


def delivered(budget, nights, said):
    """The question of a night, from the rows that it has now."""
    return lambda night: dp.protect(
        pl.DataFrame({"id": nights[night]}, {"id": pl.Int64}),
        unit="id",
        budget=budget,
        data=said.get(night),
    ).count(max_rows=1)


def test_sums_of_later_nights_go_without_a_night_that_was_corrected():
    """Its answer is that of the rows of before, and other rows were subtracted as if they were."""
    budget, days = dp.Budget(rho=4.0), [f"{day}" for day in DAYS[:5]]
    nights = {day: range(9000 * i, 9000 * i + 9000) for i, day in enumerate(days)}
    said = {day: f"{day}, first" for day in days}
    series = budget.series("s", every="1d", horizon=8, unit_periods=1, rho=4.0)
    for day in days:
        series.add(delivered(budget, nights, said), day)
        if day == days[1]:
            nights[day], said[day] = [], f"{day}, second"
    numbers = series.table("3d").table
    for column, length in (("count", 1), ("count_total", 5), ("count_3d", 3)):
        off = numbers[column][4] - 9000 * length
        assert abs(off) < 5 * numbers[f"{column}_error"][4] < 100, column
    read = [block[3] for e in budget.entries() for block in e.within.get("blocks", ())]
    assert read == [[[0, 0]], [[0, 1]], *([[0, 0], [2, night]] for night in (2, 3, 4))]


def test_blocks_stay_nested_whichever_nights_are_late_or_corrected():
    """Least squares over blocks of ones needs that, whatever was measured before a correction."""
    random, shapes, sizes = Random(5), Shapes((Shape.of_degree(27, 3, 4),)), set[int]()
    for _ in range(20):
        measured, gone = dict[int, tuple[Block, ...]](), frozenset[int]()
        for night in sorted(range(27), key=lambda night: night + random.randint(0, 4)):
            progress = Progress(measured, {})
            blocks = progress.without(progress.measured_by(night, shapes), gone)
            assert blocks[0].periods == (night,)
            measured[night] = blocks
            gone |= {corrected for corrected in measured if random.random() < 0.02}
        each = [set(block.periods) for blocks in measured.values() for block in blocks]
        assert all(one <= two or two <= one or not one & two for one in each for two in each)
        sizes |= {len(block) for block in each if gone}
    assert sizes > {1, 2, 3, 4, 9}


def test_enforce_counts_no_unit_twice_that_a_correction_moved():
    """It was counted in the first night, whose rows by now do not have it."""
    budget = dp.Budget(epsilon=8.0)
    days = [f"{day}" for day in DAYS[:2]]
    nights, said = {day: [1] for day in days}, {day: day for day in days}
    query = delivered(budget, nights, said)
    series = budget.series("s", every="1d", horizon=8, unit_periods=1, enforce=True, epsilon=8.0)
    series.add(query, days[0])
    nights[days[0]], said[days[0]] = [], "corrected"
    before = budget.entries()
    with pytest.raises(errors.ReleaseMismatch, match=f"those of {days[0]} have another label"):
        series.add(query, days[1])
    assert budget.entries() == before
    said |= dict.fromkeys(days, "all days, until today")  # one table with all of them
    series.add(query, days[1])


@pytest.mark.parametrize("cap", [0.001, 2.0])
def test_a_night_that_is_measured_again_keeps_to_the_cap_of_a_policy(cap, tmp_path, monkeypatch):
    """The file was tightened after the series was paid."""
    policy, budget = tmp_path / "visits.toml", dp.Budget(epsilon=20)

    def asked(most):
        policy.write_text(f'unit = "id"\nmax_rows = 1\n[caps]\nrelease = {{epsilon = {most}}}\n')
        return dp.protect(ROWS, policy=str(policy), budget=budget).count()

    series = budget.series("signups", on="day", every="1d", horizon=60, unit_periods=1, epsilon=2.0)
    series.add(asked(2.0), DAYS[0])
    with monkeypatch.context() as patch:
        patch.setattr(engine, "totals", lambda *_: 1 / 0)
        with pytest.raises(errors.EngineError):
            series.add(asked(2.0), DAYS[1])
    before, query = budget.entries(), asked(cap)
    if cap < 1:
        with pytest.raises(errors.PolicyExceeded, match=r"allows ε = 0\.001 for one"):
            series.add(query, DAYS[1], on_pending="retry")
        assert budget.entries() == before
    else:
        assert series.add(query, DAYS[1], on_pending="retry").cost.epsilon > 0.001


# Charts


def drawn(chart):
    """A chart as Vega-Lite, and the rows of its data."""
    made = chart.to_dict()
    return made, next(iter(made["datasets"].values()))


def test_a_table_is_drawn_as_lines_in_bands():
    frame, series = made()
    query = frame.group_by("city", keys=["a", "b"], max_groups=1, max_rows_per_group=1).count()
    for day in DAYS[:12]:
        series.add(query, day)
    chart, rows = drawn(series.table("7d").plot("count_7d"))
    assert [layer["mark"]["type"] for layer in chart["layer"]] == ["area", "line", "point"]
    assert chart["title"]["text"] == ["signups: count, last 7d by city"]
    under = " ".join(chart["title"]["subtitle"])
    assert "Released at ε = 100 for all periods; protected: unit 'id'" in under
    assert "Band: 95% margins of error of the noise." in under
    assert len(rows) == 24
    assert {row["series"] for row in rows} == {"a", "b"}
    assert all(row["lower"] < row["value"] < row["upper"] for row in rows)
    wide, _ = drawn(
        series.table("7d", alpha=0.01).plot("count_total", title="Sign-ups", width=500, height=300)
    )
    assert wide["title"]["text"] == ["Sign-ups"]
    assert (wide["width"], wide["height"]) == (500, 300)
    assert "99% margins of error" in " ".join(wide["title"]["subtitle"])
    with pytest.raises(errors.InvalidArgument, match="width="):
        series.table().plot(width=3)
    with pytest.raises(errors.InvalidArgument, match="no column 'x'"):
        series.table().plot("x")
    with pytest.raises(errors.UnsupportedOperation, match="no column of periods"):
        series.total().plot()
