"""A file that is written after its table was protected:
refused before the charge, and noted where it is read.

Each way to read rows is tried, since parts of an answer would be about different rows.
"""

import datetime as dt
import os

import polars as pl
import pytest

import dpframe as dp
from dpframe.budget import Budget
from dpframe.errors import EngineError

ROWS = pl.DataFrame(
    {
        "u": range(60),
        "g": ["a", "b"] * 30,
        "h": ["x", "y", "z"] * 20,
        "x": [float(i % 7) for i in range(60)],
        "y": [float(i % 5) for i in range(60)],
        "day": pl.Series(["2026-01-01", "2026-01-02"] * 30).str.to_datetime("%Y-%m-%d"),
    }
)
PRICE = {"epsilon": 1.0, "delta": 1e-6}
BOUNDS = (0, 6)
KEYS = {"g": ["a", "b"], "h": ["x", "y", "z"]}


SERIES = {"every": "1d", "horizon": 4, "epsilon": 1, "unit_periods": 2}
ASKED = {
    "release": lambda f, b: f.count(max_rows=1).release(**PRICE),
    "automatic limits": lambda f, b: (
        f.group_by("g", keys=["a", "b"], limits=dp.Auto()).sum("x", bounds=BOUNDS).release(**PRICE)
    ),
    "automatic bounds": lambda f, b: f.mean("x", bounds=dp.Auto(), max_rows=1).release(**PRICE),
    "keys in rounds": lambda f, b: f.group_by("g").keys().release(**PRICE),
    "batch": lambda f, b: b.plan([f.count(max_rows=1), f.count_units()], **PRICE).release(),
    "tune": lambda f, b: f.count(max_rows=1).tune({"max_rows": [1, 2]}, epsilon=0.1),
    "narrowing": lambda f, b: f.ols(
        y="y", x=["x"], bounds={"x": (0, 100), "y": (0, 100)}, narrow=True, max_rows=1
    ).release(**PRICE),
    "series": lambda f, b: b.series("s", **SERIES).add(f.count(max_rows=1), "2026-01-01"),
    "series on": lambda f, b: b.series("s", on="day", **SERIES).add(
        f.count(max_rows=1), "2026-01-01"
    ),
    "series function": lambda f, b: b.series("s", **SERIES).add(
        lambda day: f.count(max_rows=1), "2026-01-01"
    ),
    "marginals": lambda f, b: f.marginals(["g", "h"], keys=KEYS, max_rows=1).release(**PRICE),
    "hierarchy": lambda f, b: f.hierarchy(
        ["g", "h"], keys=KEYS, max_groups=1, max_rows_per_group=1
    ).release(**PRICE),
    "synthesis": lambda f, b: (
        f.select("u", "g", "h").synthesize(keys=KEYS, max_rows=1).release(**PRICE)
    ),
    "part": lambda f, b: f.partition("g", ["a", "b"])["a"].count(max_rows=1).release(**PRICE),
}


def written(path):
    """The file is written again, a second later, with the same rows."""
    before = os.stat(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))


def protected(path):
    """The table of a file, and its budget."""
    budget = dp.Budget(epsilon=50, delta=1e-3)
    return dp.protect(pl.scan_parquet(path), unit="u", budget=budget), budget


@pytest.fixture
def path(tmp_path):
    ROWS.write_parquet(tmp_path / "visits.parquet")
    return tmp_path / "visits.parquet"


@pytest.mark.parametrize("way", ASKED)
def test_it_is_refused_before_the_charge(way, path):
    frame, budget = protected(path)
    written(path)
    with pytest.raises(EngineError, match="written after"):
        ASKED[way](frame, budget)
    assert budget.spent.epsilon == 0
    assert len(budget.history()) == 0
    assert budget.failures == (0, 0)


@pytest.mark.parametrize("way", ASKED)
def test_it_is_noted_where_it_is_written_after_the_charge(way, path, monkeypatch):
    frame, budget = protected(path)
    charge = Budget.charge

    def paid(*args, **options):
        receipt = charge(*args, **options)
        written(path)
        return receipt

    monkeypatch.setattr(Budget, "charge", paid)
    with pytest.raises(EngineError, match="written after"):
        ASKED[way](frame, budget)
    assert budget.failures == (1, 1)


@pytest.mark.parametrize("way", ASKED)
def test_a_file_that_stays_is_answered(way, path):
    """The negative control."""
    frame, budget = protected(path)
    ASKED[way](frame, budget)
    assert budget.failures == (0, 0)
    assert {charge.status for charge in budget.history()} <= {"released", "open"}


@pytest.mark.parametrize("on", [None, "day"])
def test_a_series_refuses_a_file_of_an_earlier_night(on, path):
    """The rows of the first night are read again with those of the second.
    They cost nothing, and are not measured.
    """
    frame, budget = protected(path)
    series = budget.series("s", on=on, **SERIES)

    def query(day):
        return frame.filter(dp.col("day") == dt.datetime.fromisoformat(day)).count(max_rows=1)

    asked = query if on is None else frame.count(max_rows=1)
    series.add(asked, "2026-01-01")
    written(path)
    with pytest.raises(EngineError, match="written after"):
        series.add(asked, "2026-01-02")
    assert len(series.table().table) == 1
    assert budget.failures == (0, 0)
